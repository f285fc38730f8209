# SPDX-License-Identifier: GPL-2.0
"""The image that `make stick` has made, from its boot loader to its report, on a virtual machine
with a disk of its own."""
from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from virtual_silicon import paths
from virtual_silicon.errors import MissingError
from virtual_silicon.guest import boot
from virtual_silicon.machine import machine

IMAGE = paths.BUILD / "stick/x86-dvfs-stick.img"
#: Of idle governors the one that also Debian's kernel has.
WORDS = ("stick.off=1 stick.rounds=2 stick.seconds=1 stick.loads=pipe,hackbench stick.probe=1"
         " stick.idle=menu")


def partition(stick: Path) -> str:
    """The third one, as mtools wants it."""
    with open(stick, "rb") as file:
        entry = file.read(512)[446 + 2 * 16:446 + 3 * 16]
    return f"{stick}@@{int.from_bytes(entry[8:12], 'little') * 512}"


def command(out: Path, stick: Path, disk: Path) -> list[str]:
    """The machine, which starts from USB and has a disk and 2 GB."""
    c = boot.Config(machine.load("e3-1240-v5"), 2, Path(), paths.qemu(), Path(), out, disk=stick,
                    trace=False)
    boot.prepare(c)
    words = boot.machine_options(c)
    at = words.index("-drive")
    words[at:at + 2] = [
        "-drive", f"file={disk},format=raw,if=none,id=disk", "-device", "ide-hd,drive=disk",
        "-drive", f"file={stick},format=raw,if=none,id=stick", "-device", "qemu-xhci",
        "-device", "usb-storage,drive=stick,bootindex=0"]
    words[words.index("-m") + 1] = "2048"
    return [*words, "-device", "VGA", "-serial", f"file:{out / 'console.log'}"]


def test_compare_from_usb(tmp_path: Path) -> None:
    """All runs, a report with its verdicts, and nothing else was written."""
    if not IMAGE.exists():
        pytest.skip(f"{IMAGE} is not there: make stick")
    try:
        paths.qemu()
    except MissingError as missing:
        pytest.skip(str(missing))
    stick, disk = tmp_path / "stick.img", tmp_path / "disk.img"
    shutil.copy(IMAGE, stick)
    disk.write_bytes(os.urandom(16 << 20))
    before = disk.read_bytes()
    config = tmp_path / "stick.cfg"
    config.write_text(f'set timeout=0\nset more="{WORDS}"\n')
    subprocess.run(["mcopy", "-i", partition(stick), config, "::stick.cfg"], check=True)
    size = int(partition(stick).rpartition("@")[2])
    with open(stick, "rb") as file:
        rest = file.read(size)
    subprocess.run(command(tmp_path, stick, disk), check=True, timeout=900)
    with open(stick, "rb") as file:
        assert file.read(size) == rest
    assert disk.read_bytes() == before
    subprocess.run(["mcopy", "-s", "-i", partition(stick), "::compare-01", tmp_path], check=True)
    found = {path.name for path in (tmp_path / "compare-01").iterdir()}
    assert found >= {"plan.txt", "probe.txt", "report.txt", *(f"run-0{n}.txt" for n in range(1, 5))}
    report = (tmp_path / "compare-01/report.txt").read_text()
    console = (tmp_path / "console.log").read_text(errors="replace")
    assert "4 of 4 runs" in report and "failed" not in report
    assert "E3-1240 V5" in report.upper()
    for load in ("pipe", "hackbench"):
        assert any(line.startswith(load) and line.split()[-1] in
                   ("better", "same", "worse", "undecided") for line in report.splitlines())
        assert load in console
    assert "its code is" in console
