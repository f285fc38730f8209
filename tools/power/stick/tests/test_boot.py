# SPDX-License-Identifier: GPL-2.0
"""The image that `make stick` has made, from its boot loader to its report, on a virtual machine
with a disk of its own. All need minutes."""
from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from stick import medium, plan, report
from virtual_silicon import paths
from virtual_silicon.errors import MissingError
from virtual_silicon.guest import boot, qmp
from virtual_silicon.machine import machine

IMAGE = paths.BUILD / "stick/x86-dvfs-stick.img"
#: Debian's package ovmf. With "secboot" and "ms", Secure Boot is on and has Microsoft's keys.
OVMF = Path("/usr/share/OVMF")
FIRMWARE = {"BIOS": (), "UEFI": ("OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"),
            "Secure Boot": ("OVMF_CODE_4M.secboot.fd", "OVMF_VARS_4M.ms.fd")}
LOADS = ("pipe", "hackbench")
#: What tells one machine or its owner from another, and must not come out: serial numbers of
#: board, memory and disks, an address, a UUID, names.
SERIAL, MEMORY, DISK, USB = "5CD1234XYZ", "MEM98765432", "WD-WCC4E1234567", "AA00000000000489"
MAC, UUID = "52:54:00:12:34:56", "4c4c4544-0042-3510-8052-b4c04f4e5931"
OWNER, HOST = "erika", "erikas-laptop"
SECRETS = (SERIAL, MEMORY, DISK, USB, MAC, MAC.replace(":", ""), UUID, OWNER)
#: STICK=stick.idle=menu is for a kernel of KERNEL= that has no other idle governor.
WORDS = (f"hostname={HOST} stick.off=1 stick.loads={','.join(LOADS)} stick.probe=1"
         f" {os.environ.get('STICK', '')}")
#: Of the host, for a boot until its first run, and for a comparison of four runs.
BOOT_S, COMPARE_S = 900, 1800
#: How often power is cut, each time within so many seconds from when a run was begun.
CUTS, SPAN_S = 5, 60


def partition(stick: Path) -> str:
    """The third one, as mtools wants it."""
    with open(stick, "rb") as file:
        entry = file.read(512)[446 + 2 * 16:446 + 3 * 16]
    return f"{stick}@@{int.from_bytes(entry[8:12], 'little') * 512}"


@dataclass(frozen=True)
class Computer:
    """Starts from USB; has a disk and 2 GB."""

    out: Path
    firmware: str

    def __post_init__(self) -> None:
        shutil.copy(IMAGE, self.stick)
        self.disk.write_bytes(random.Random(1).randbytes(16 << 20))
        for name in FIRMWARE[self.firmware]:
            shutil.copy(OVMF / name, self.out)

    @property
    def stick(self) -> Path:
        return self.out / "stick.img"

    @property
    def disk(self) -> Path:
        return self.out / "disk.img"

    def insert(self, words: str) -> None:
        config = self.out / "stick.cfg"
        config.write_text(f'set timeout=0\nset more="{words}"\n')
        subprocess.run(["mcopy", "-i", partition(self.stick), config, "::stick.cfg"], check=True)

    def command(self) -> list[str]:
        names = FIRMWARE[self.firmware]
        c = boot.Config(machine.load("e3-1240-v5"), 2, Path(), paths.qemu(), Path(), self.out,
                        disk=self.stick, trace=False, qmp=self.out / "qmp",
                        firmware=(self.out / names[0], self.out / names[1]) if names else None)
        boot.prepare(c)
        words = boot.machine_options(c)
        at = words.index("-drive")
        words[at:at + 2] = [
            "-drive", f"file={self.disk},format=raw,if=none,id=disk",
            "-device", f"ide-hd,drive=disk,serial={DISK}",
            "-drive", f"file={self.stick},format=raw,if=none,id=stick", "-device", "qemu-xhci",
            "-device", f"usb-storage,drive=stick,bootindex=0,serial={USB}",
            "-device", f"e1000e,mac={MAC},romfile=", "-uuid", UUID,
            "-smbios", f"type=1,serial={SERIAL},manufacturer={OWNER},product={HOST}",
            "-smbios", f"type=2,serial={SERIAL},asset={OWNER}",
            "-smbios", f"type=17,serial={MEMORY}"]
        words[words.index("-m") + 1] = "2048"
        return [*words, "-device", "VGA", "-serial", f"file:{self.out / 'console.log'}"]

    @contextmanager
    def on(self) -> Iterator[subprocess.Popen[bytes]]:
        process = boot.start(self.command())
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def console(self) -> str:
        path = self.out / "console.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def screen(self) -> list[str]:
        """Of BIOS: the last 25 rows of the card's text, in which Linux moves on to scroll."""
        with qmp.Monitor(self.out / "qmp") as monitor:
            monitor.execute("pmemsave", val=0xb8000, size=0x8000, filename=str(self.out / "vga"))
        text = (self.out / "vga").read_bytes()[::2].decode("cp437")
        rows = [text[at:at + 80].rstrip("\0 ") for at in range(0, len(text), 80)]
        last = max((n for n, row in enumerate(rows) if row), default=0)
        return rows[max(0, last - 24):last + 1]

    def wait(self, process: subprocess.Popen[bytes], wanted: str) -> None:
        """Until the console has a pattern."""
        end = time.monotonic() + BOOT_S
        while not re.search(wanted, self.console()):
            assert process.poll() is None and time.monotonic() < end, self.console()[-2000:]
            time.sleep(0.2)

    def rest(self) -> tuple[bytes, bytes]:
        """All that is not to change: the stick before its partition, and the disk."""
        with open(self.stick, "rb") as file:
            return (file.read(int(partition(self.stick).rpartition("@")[2])),
                    self.disk.read_bytes())

    def compared(self) -> Path:
        """The comparison, copied from the stick."""
        subprocess.run(["mcopy", "-s", "-i", partition(self.stick), "::compare-01", self.out],
                       check=True)
        return self.out / "compare-01"


@pytest.fixture
def computer(tmp_path: Path, request: pytest.FixtureRequest) -> Computer:
    if not IMAGE.exists():
        pytest.skip(f"{IMAGE} is not there: make stick")
    for name in FIRMWARE[request.param]:
        if not (OVMF / name).exists():
            pytest.skip(f"{OVMF / name} is not there: apt-get install ovmf")
    try:
        paths.qemu()
    except MissingError as missing:
        pytest.skip(str(missing))
    return Computer(tmp_path, request.param)


@pytest.mark.parametrize("computer", ["BIOS", "UEFI"], indirect=True)
def test_compare_from_usb(computer: Computer) -> None:
    """All runs, a report with its verdicts, and nothing else was written."""
    computer.insert(f"loglevel=7 {WORDS} stick.rounds=2 stick.seconds=1")
    before = computer.rest()
    began = time.monotonic()
    with computer.on() as process:
        assert process.wait(COMPARE_S) == 0
    print(f"{time.monotonic() - began:.0f} s")
    assert computer.rest() == before
    compared = computer.compared()
    assert {path.name for path in compared.iterdir()} >= {
        "plan.txt", "probe.txt", "report.txt", *(f"run-0{n}.txt" for n in range(1, 5))}
    report = (compared / "report.txt").read_text()
    assert "4 of 4 runs" in report and "failed" not in report
    assert "E3-1240 V5" in report.upper()
    for load in LOADS:
        assert any(line.startswith(load) and line.split()[-1] in
                   ("better", "same", "worse", "tell") for line in report.splitlines())
        assert load in computer.console()
    assert "its code is" in computer.console()
    assert OWNER in computer.console() and USB in computer.console()    # the kernel had them
    for path in compared.iterdir():
        said = path.read_text().lower()
        assert [secret for secret in SECRETS if secret.lower() in said] == [], path.name


@pytest.mark.parametrize("computer", ["BIOS"], indirect=True)
def test_the_last_screen(computer: Computer) -> None:
    """As the card shows it: the whole table, its code, what to do, and no error. A minute, for all
    runs are on the stick."""
    store = plan.Store(computer.out, "compare-01")
    store.root.mkdir()
    made = plan.Plan(1, loads=LOADS)
    medium.write(store.root / "plan.txt", made.text())
    medium.write(store.root / "probe.txt", "# A CPU, Linux 6.12.117.\n")
    for n, kernel in enumerate(made.order(), 1):
        medium.write(store.run(n), json.dumps({"number": n, "kernel": kernel, "cells": [
            {"load": load, "parameter": 1, "performance": 100 + n, "per watt": n}
            for load in LOADS]}) + "\n")
    subprocess.run(["mcopy", "-s", "-i", partition(computer.stick), store.root, "::"], check=True)
    computer.insert("")
    with computer.on() as process:
        computer.wait(process, "its code is")
        end = time.monotonic() + 20
        while not (shown := computer.screen()) or "press Enter" not in shown[-1]:
            assert time.monotonic() < end, "\n".join(shown)
            time.sleep(0.5)
    print("\n".join(shown))
    text = medium.read(computer.compared() / "report.txt")
    assert text and any(report.code(text) in row for row in shown)
    for load in LOADS:
        assert len([row for row in shown if row.startswith(load)]) == 2
    assert not [row for row in shown if "not found" in row or "BusyBox" in row]


@pytest.mark.parametrize("computer", ["BIOS"], indirect=True)
def test_power_cuts(computer: Computer) -> None:
    """Five in runs, each followed by a boot that goes on: each loses the run of that moment. What
    the stick was sent is on it, as Linux takes USB storage for one without a cache."""
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(10**6))
    print(f"SEED={seed}")
    rng = random.Random(seed)
    computer.insert(f"{WORDS} stick.rounds=3 stick.seconds=10")
    before = computer.rest()
    for cut in range(1, CUTS + 1):
        with computer.on() as process:
            computer.wait(process, r"run \d+ of 6")
            after = rng.uniform(0, SPAN_S)
            with pytest.raises(subprocess.TimeoutExpired):      # or the comparison was over
                process.wait(after)
        lines = [line.strip() for line in computer.console().splitlines() if line.strip()]
        print(f"cut {cut}, {after:.1f} s after the first run began: {lines[-1][:60]}")
    with computer.on() as process:
        assert process.wait(COMPARE_S) == 0
    assert computer.rest() == before
    store = plan.Store(computer.compared().parent, "compare-01")
    made = store.plan()
    assert made
    numbers = range(1, len(made.order()) + 1)
    done = [n for n in numbers if medium.read(store.run(n))]
    begun = {n: [t for t in range(1, plan.TRIES + 1) if store.begun(n, t).exists()]
             for n in numbers}
    print(f"{len(done)} of {len(numbers)} runs; begun: {begun}")
    report = medium.read(store.root / "report.txt")
    assert report and f"{len(done)} of {len(numbers)} runs" in report
    assert medium.read(store.root / "probe.txt")
    assert sum(map(len, begun.values())) - len(done) <= CUTS
    assert all(n in done or len(begun[n]) == plan.TRIES for n in numbers)
    with open(computer.stick, "rb") as file, open(computer.out / "partition", "wb") as out:
        file.seek(int(partition(computer.stick).rpartition("@")[2]))
        shutil.copyfileobj(file, out)
    checked = subprocess.run(["/usr/sbin/fsck.fat", "-n", computer.out / "partition"],
                             capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("computer", ["Secure Boot"], indirect=True)
def test_secure_boot_refuses_the_stick(computer: Computer) -> None:
    """By the firmware, before anything of the stick has run."""
    before = computer.stick.read_bytes()
    refused = r"failed to load .*USB HARDDRIVE.*Access Denied"
    with computer.on() as process:
        computer.wait(process, refused)
    print(re.findall(refused, computer.console()))
    assert computer.stick.read_bytes() == before
