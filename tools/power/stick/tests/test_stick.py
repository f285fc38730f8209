# SPDX-License-Identifier: GPL-2.0
"""The order of runs, what a loss of power leaves, verdicts, and what may be written."""
from __future__ import annotations

import fcntl
import lzma
import os
import random
import re
import select
import struct
import subprocess
import termios
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from cpuwhy import judge
from series.compile import deb
from series.compile import stick as image
from series.patchqueue import tree as trees
from stick import __main__ as menu
from stick import measure, medium, plan, report
from virtual_silicon.errors import Fail
from virtual_silicon.guest import distribution

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[3] / "docs/stick.md"


def test_files_are_whole_or_not_there(tmp_path: Path) -> None:
    """Cut anywhere, a file is none."""
    path = tmp_path / "run-01.txt"
    medium.write(path, "{}\n")
    assert medium.read(path) == "{}\n" and list(tmp_path.iterdir()) == [path]
    whole = path.read_bytes()
    for end in range(len(whole) - 1):
        path.write_bytes(whole[:end])
        assert medium.read(path) is None
    path.write_bytes(b"\0" * len(whole))
    assert medium.read(path) is None


def block(root: Path, name: str, where: str, label: bytes) -> None:
    """A block device of sysfs and its first sector."""
    real = root / "sys/devices" / where / name
    real.mkdir(parents=True)
    link = root / "sys/class/block" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(real)
    (root / "dev").mkdir(exist_ok=True)
    (root / "dev" / name).write_bytes(bytes(medium.LABEL_AT) + label + bytes(512))


def test_only_the_sticks_partition_is_found(tmp_path: Path) -> None:
    """A disk of the machine with the same label, and a stick with another one, are not ours."""
    block(tmp_path, "sda3", "pci0/ata1", medium.LABEL)
    block(tmp_path, "sdb1", "pci0/usb1/1-1", b"PHOTOS     ")
    assert medium.find(tmp_path / "sys", tmp_path / "dev") is None
    block(tmp_path, "sdc3", "pci0/usb1/1-2", medium.LABEL)
    assert medium.find(tmp_path / "sys", tmp_path / "dev") == tmp_path / "dev/sdc3"


def test_the_label_is_one() -> None:
    """Of what makes the partition, of the boot loader and of what looks for it."""
    assert medium.LABEL == image.LABEL.encode().ljust(11)
    assert f" --label {image.LABEL} --set data\n" in (HERE.parent / "grub.cfg").read_text()


# --- order ----------------------------------------------------------------------

def test_order_is_random_and_balanced() -> None:
    orders = {tuple(plan.Plan(seed).order()) for seed in range(50)}
    assert len(orders) > 15
    for order in orders:
        assert all(sorted(order[n:n + 2]) == ["base", "patched"] for n in range(0, 10, 2))
    assert plan.Plan(3).order() == plan.Plan(3).order()


def test_plan_of_the_command_line(tmp_path: Path) -> None:
    said = menu.words("stick.rounds=2 stick.seconds=1 stick.loads=pipe,hackbench quiet")
    found = plan.wanted(said, 7)
    assert (found.seed, found.rounds, found.seconds, found.loads) == (
        7, 2, 1, ("pipe", "hackbench"))
    assert plan.parse(found.text()) == found


@pytest.mark.parametrize("loads", ["pipe,erika", "", "pipe,"])
def test_an_unknown_load_is_refused(loads: str) -> None:
    """Before a run; and a report cannot have it."""
    with pytest.raises(Fail, match="^stick.loads=.*: there are tbench,"):
        plan.wanted({"stick.loads": loads}, 7)


@pytest.mark.parametrize("seed", range(20))
def test_a_loss_of_power_loses_one_run(seed: int, tmp_path: Path) -> None:
    """Whenever it comes: while a run is measured or while a file is written."""
    rng = random.Random(seed)
    made = plan.Plan(seed, rounds=3)
    root = tmp_path / plan.fresh(tmp_path)
    root.mkdir()
    medium.write(root / "plan.txt", made.text())
    store, cuts, boots = plan.Store(tmp_path, root.name), 0, 0
    while (number := store.next(made)) is not None:
        boots += 1
        assert plan.current(tmp_path) == root.name
        store.begin(number)
        if rng.random() < 0.4:
            cuts += 1
            if rng.random() < 0.5:
                store.run(number).write_text('{"number": ')
            continue
        medium.write(store.run(number), "{}\n")
    done = [n for n in range(1, 7) if medium.read(store.run(n))]
    assert boots == len(done) + cuts and len(done) >= 6 - cuts // 2
    medium.write(root / "report.txt", "")
    assert plan.current(tmp_path) is None and plan.fresh(tmp_path) == "compare-02"


def test_the_next_kernel_gets_the_same_words() -> None:
    line = "BOOT_IMAGE=/boot/base quiet stick=compare stick.kernel=base stick.rounds=2"
    once = menu.command_line(line, "patched", 1)
    assert once == "quiet stick=compare stick.rounds=2 stick.kernel=patched stick.run=1"
    assert menu.command_line(once, "base", 2) == (
        "quiet stick=compare stick.rounds=2 stick.kernel=base stick.run=2")


# --- figures --------------------------------------------------------------------

def run(number: int, kernel: str, value: float) -> report.Run:
    return {"number": number, "kernel": kernel, "cells": [
        {"load": "pipe", "parameter": p, "performance": value * p, "per watt": value}
        for p in (1, 2)]}


@pytest.mark.parametrize(("gain", "noise", "said"), [
    (1.2, 0.01, "better"), (0.8, 0.01, "worse"), (1.0, 0.002, "same"), (1.01, 0.001, "same"),
    (1.05, 0.2, "cannot tell")])
def test_verdicts(gain: float, noise: float, said: str) -> None:
    around = [1 - noise, 1 + noise, 1, 1 - noise / 2, 1 + noise / 2]
    runs = [run(2 * n + k, kernel, (gain, 1.0)[kernel == "base"] * around[n])
            for n in range(5) for k, kernel in enumerate(plan.KERNELS)]
    found = report.line(runs, "pipe", "performance")
    assert found.verdict == said
    assert found.ratio and found.ratio.value == pytest.approx(gain, rel=1e-6)
    text = report.text(plan.Plan(1, loads=("pipe",)), runs,
                       "# What cpuwhy has read.\n#\n# A CPU, Linux 6.12.117.\n")
    assert "# A CPU, Linux 6.12.117." in text and "cpuwhy" not in text and f"  {said}\n" in text


def test_a_wide_interval_is_no_same() -> None:
    assert judge.verdict(judge.Ratio(1.0, 0.5, 2.0)) == "cannot tell"


def test_a_line_is_no_longer_than_a_screen() -> None:
    for high, said in ((1.0364, "1.036"), (61.7712, "61.77"), (7079.37, "7079"), (15779., "15779")):
        line = str(report.Line("cyclictest", "performance", 0.05961, 1.234e-05,
                               judge.Ratio(0.66, 0.007, high), "cannot tell"))
        assert len(line) <= 80 and line.split()[-3:] == [said, "cannot", "tell"]


def test_one_run_of_each_has_figures() -> None:
    found = str(report.line([run(1, "base", 3), run(2, "patched", 4)], "pipe", "per watt"))
    assert found.split() == ["pipe", "per", "watt", "3", "4", "too", "few", "runs"]


def test_runs_that_are_lost_are_said() -> None:
    text = report.text(plan.Plan(1, loads=("pipe",)), [run(1, "base", 1)], "")
    assert "1 of 10 runs" in text and "not measured" in text


def test_the_document_lists_every_line_of_a_report() -> None:
    """And a report has no others, also where loads have failed, saying who and where."""
    planted = "erika@erikas-laptop 5CD1234XYZ 52:54:00:12:34:56"
    runs: list[report.Run] = [run(number, plan.KERNELS[number % 2], 1)
                              | {"celsius": 71.5, "throttled": True} for number in range(1, 5)]
    runs[0]["cells"] += [{"load": "gitsource", "parameter": 1, "failed": f"{said}{planted}"}
                         for said in ("status 1: ", "")]
    text = report.text(plan.Plan(1, loads=("pipe", "gitsource")), runs,
                       "# What cpuwhy has read.\n#\n# INTEL(R) XEON(R) PLATINUM 8592+, Linux"
                       " 6.12.117.\n# Your kernel takes 3.1 GHz for your highest clock; it is"
                       f" 3.9.\n\nname = \"{planted}\"\n")
    text += report.text(plan.Plan(1, loads=("pipe",)), runs[:2], "# Not probed: no registers.\n")
    assert not set(planted.split()) & set(text.split())
    rows = re.findall(r"^\| `([^`]+)` \|", PAGE.read_text().partition("## Every line")[2], re.M)
    forms = {row: re.sub(r"[A-Z]{2,}", ".+", re.escape(row)) for row in rows}
    met = {line: [row for row, form in forms.items() if re.fullmatch(form, " ".join(line.split()))]
           for line in text.splitlines()}
    assert [line for line, found in met.items() if not found] == []
    assert set(rows) == {row for found in met.values() for row in found}


# --- the screen -----------------------------------------------------------------

@dataclass
class Consoles:
    """A screen of @rows lines and a serial line, as the menu sees them."""

    root: Path
    rows: int
    columns: int = 80

    def __post_init__(self) -> None:
        self.ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", self.rows, self.columns, 0, 0))
        (self.root / "tty0").symlink_to(os.ttyname(theirs))

    def names(self) -> list[Path]:
        return [self.root / "ttyS0", self.root / "tty0"]

    def shown(self) -> list[str]:
        """Lines of the screen, with those of init's invitation below them."""
        data = b""
        while select.select([self.ours], [], [], 0)[0]:
            data += os.read(self.ours, 4096)
        rows = []
        for line in data.decode().rpartition("\33[H\33[2J")[2].replace("\r\r", "\r").split("\r\n"):
            line = line.rpartition("\r\33[K")[2]
            rows += [line[n:n + self.columns] for n in range(0, len(line) or 1, self.columns)]
        return [*rows[:-1], "Switch the machine off, or ...", ""]


@pytest.fixture
def whole() -> str:
    """A report of all loads, one of which failed."""
    runs = [run(n, plan.KERNELS[n % 2], 1 + n / 100) for n in range(1, 11)]
    for one in runs:
        one["cells"] = [cell | {"load": load} for load in plan.LOADS for cell in one["cells"]]
    runs[0]["cells"].append({"load": "dbench", "parameter": 1, "failed": "status 1: x"})
    return report.text(plan.Plan(1), runs, f"# {'A CPU, ' * 20}.\n# Your kernel ...\n")


@pytest.mark.parametrize(("rows", "head", "picture"), [
    (25, False, False), (30, True, False), (60, True, True)])
def test_the_result_is_on_the_screen(rows: int, head: bool, picture: bool, whole: str,
                                     tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its end, and nothing cut: a console does not scroll back. All is on the serial line."""
    consoles = Consoles(tmp_path, rows)
    monkeypatch.setattr(menu, "consoles", consoles.names)
    qr = "\n".join(["#" * 40] * 17) + "\n"
    monkeypatch.setattr(menu.subprocess, "run", lambda *words, **more: SimpleNamespace(stdout=qr))
    menu.show(whole, "compare-01/report.txt")
    shown = consoles.shown()
    assert len(shown) <= rows
    for load in plan.LOADS:
        assert len([row for row in shown if row.startswith(load)]) == 2, "\n".join(shown)
    assert report.code(whole) in shown[-3] and "# failed: dbench, status 1" in shown
    assert any("x86-dvfs: patched" in row for row in shown) == head
    assert ("#" * 40 in shown) == picture
    said = (tmp_path / "ttyS0").read_text().replace("\r", "")
    assert whole in said and qr in said and report.code(whole) in said


def test_a_probe_is_told_on_the_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sentences, which are before a hundred lines of figures."""
    consoles = Consoles(tmp_path, 25)
    monkeypatch.setattr(menu, "consoles", consoles.names)
    monkeypatch.setattr(medium, "wait", lambda seconds: None)
    text = "# A CPU.\n# To wake from C6 takes 207 us.\n\n" + "figure = 1\n" * 100
    monkeypatch.setattr(menu, "probed", lambda seconds: text)
    with pytest.raises(Fail, match="no partition"):
        menu.only_probe({})
    assert {"# A CPU.", "# To wake from C6 takes 207 us."} <= set(consoles.shown()[-25:])
    assert (tmp_path / "ttyS0").read_text().count("# A CPU.") == 1


def test_the_screen_says_what_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after kexec, which leaves the old text there, and after many loads."""
    consoles = Consoles(tmp_path, 25)
    monkeypatch.setattr(menu, "consoles", consoles.names)
    menu.tell("\n".join(["left by the last kernel"] * 30))
    left = plan.Plan(1).left(3)
    assert left == 8 * (150 + plan.START_S)
    menu.run_headline("compare-01", "run 3 of 10, patched", left)
    for n in range(100):
        menu.going(f"pipe {n}")
    shown = consoles.shown()
    assert shown[:3] == [
        "x86-dvfs stick compares two kernels: run 3 of 10, patched, about 24 min left",
        "The machine's disks are not touched. Switching off is safe at any time: booted",
        "again, the stick goes on. The result comes here and to compare-01/report.txt."]
    assert len(shown) <= consoles.rows and not any("last kernel" in row for row in shown)


def test_init_has_its_programs() -> None:
    """Of the packages that the stick takes: an unknown applet is an error on the screen. The
    screen is cleared before anything is said there."""
    init = (HERE.parent / "init").read_text()
    applets = subprocess.run(["busybox", "--list"], capture_output=True, text=True,
                             check=True).stdout.split()
    used = set(re.findall(r"(?<!/)busybox (\w+)", init))
    assert used and not used - set(applets)
    assert init.index(r"\033[H\033[2J") < init.index("exec </dev/console")


def test_the_code_is_of_every_character() -> None:
    assert report.code("a\n") == "8742 8fc5 2280 3d31"
    assert report.code("a\n") != report.code("b\n")


def test_what_is_lacking_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("flags\t\t: fpu\n")
    assert measure.lacks(tmp_path) == "this machine has no driver for its clock"
    (tmp_path / "proc/cpuinfo").write_text("flags\t\t: hypervisor\n")
    assert measure.lacks(tmp_path).startswith("this is a virtual machine")


def test_modules_are_compiled_with_those_that_they_need(tmp_path: Path) -> None:
    """By their paths in the source, compressed or not."""
    root = tmp_path / "kernel/x"
    for number, name in enumerate(("usb-common", *image.DRIVERS)):
        file = root / f"lib/modules/6.12.1/kernel/arch/x86/kernel/{number}/{name}.ko"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"\0depends=usb-common\0" if name == "usbhid" else b"")
    file.with_suffix(".ko.xz").write_bytes(lzma.compress(file.read_bytes()))
    file.unlink()
    paths = image.paths_of(distribution.Kernel("6.12.1", root / "vmlinuz", root))
    assert set(paths) == {f"arch/x86/kernel/{number}/{name}.ko"
                          for number, name in enumerate(("usb-common", *image.DRIVERS))}


def test_kernel_and_modules_are_compiled_one_after_the_other(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """vmlinux is what modules are linked against, and all of them in one call."""
    modules, calls = ["arch/x86/kernel/msr.ko", "fs/fat/fat.ko"], []

    def compiled(call: list[str], *_: object) -> None:
        calls.append(call[1:])
        for name in call[1:]:
            file = tmp_path / "obj" / ("arch/x86/boot/bzImage" if name == "bzImage" else name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(name.encode())
    monkeypatch.setattr(deb, "configured", lambda *_: ["make"])
    monkeypatch.setattr(deb.kernel, "compiled", compiled)
    for release in ("6.12.1", "6.12.2"):
        monkeypatch.setattr(deb.proc, "text", lambda _, said=release: f"{said}\n")
        kernel = deb.unpacked(trees.LINUX, modules, tmp_path)
        assert kernel.release == release and kernel.image.read_bytes() == b"bzImage"
        assert {name: kernel.file(name).read_bytes() for name in ("msr", "fat")} == {
            "msr": b"arch/x86/kernel/msr.ko", "fat": b"fs/fat/fat.ko"}
    assert calls == 2 * [["bzImage"], modules]
    assert [path.name for path in (tmp_path / "kernel/lib/modules").iterdir()] == ["6.12.2"]


@pytest.mark.parametrize("name", ["base", "none.deb", "."])
def test_only_packages_are_put_on_the_stick(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL", name)
    with pytest.raises(Fail, match=f"^KERNEL={re.escape(name)}: the stick takes the file of a"):
        image.given()
