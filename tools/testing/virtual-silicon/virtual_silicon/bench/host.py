# SPDX-License-Identifier: GPL-2.0
"""The same loads on the machine at hand. Every knob is put back, however it ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from ..errors import UsageError
from .cells import LOADS, SEEDS, Boot, Cell, Machine, Setting
from .runner import HERE, Failure, Result, Results, result
from .tables import Table

PROGRAMS = {"tbench": "dbench", "tbench_srv": "dbench", "hackbench": "rt-tests", "git": "git",
            "make": "make", "gcc-12": "gcc-12", "busybox": "busybox-static"}
_HERE = Boot("host")
#: What can be compared without another boot, if the machine has it.
CANDIDATES = (
    Setting("base", _HERE), Setting("performance", _HERE, "performance"),
    Setting("teo", _HERE, idle="teo"),
    *(Setting(policy, _HERE, policy=policy)
      for policy in ("1c", "4c", "8c", "boost", "midpoint", "nominal")),
    Setting("i_pstate", _HERE, "powersave", status="active"))
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Knobs:
    """Files below @root, which is / but in tests."""

    root: Path

    @property
    def _cpu(self) -> Path:
        return self.root / "sys/devices/system/cpu"

    @property
    def status(self) -> Path:
        return self._cpu / "intel_pstate/status"

    @property
    def idle(self) -> Path:
        return self._cpu / "cpuidle/current_governor"

    @property
    def policy(self) -> Path:
        return self._cpu / "freq_invariance/policy"

    def governors(self) -> list[Path]:
        return sorted(self._cpu.glob("cpufreq/policy*/scaling_governor"))

    def chains(self) -> list[Path]:
        return sorted(self._cpu.glob("cpufreq/**/chains"))

    def saved(self) -> list[tuple[Path, str]]:
        """In the order in which they are put back: a driver before its governors."""
        files = [self.status, *self.governors(), self.idle, self.policy, *self.chains()]
        return [(file, _chosen(file)) for file in files if file.exists()]

    def lacks(self, setting: Setting) -> str:
        """Why a setting cannot be had; nothing if it can."""
        governors = self.governors()
        offered = governors[0].with_name("scaling_available_governors").read_text().split()
        if setting.status == "-" and setting.governor not in offered:
            return f"governor {setting.governor} (there are: {' '.join(offered)})"
        idle = self.idle.with_name("available_governors")
        if setting.idle not in (idle.read_text().split() if idle.exists() else ()):
            return f"idle governor {setting.idle}"
        if setting.policy != "-" and not self.policy.exists():
            return "freq_invariance/policy: not a kernel of this series"
        if setting.status != "-" and not self.status.exists():
            return "intel_pstate"
        return ""

    def apply(self, setting: Setting) -> None:
        if setting.status != "-":
            self.status.write_text(setting.status)
        for file in self.governors():
            file.write_text(setting.governor)
        self.idle.write_text(setting.idle)
        if setting.policy != "-":
            self.policy.write_text(setting.policy)
        for file in self.chains():
            file.write_text(str(setting.chains))


def _chosen(file: Path) -> str:
    """A file that shows all choices has the present one in brackets."""
    text = file.read_text().strip()
    return text.partition("[")[2].partition("]")[0] or text


def _stop(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


@contextmanager
def restored(knobs: Knobs) -> Iterator[None]:
    """A second signal does not stop putting back what the first one interrupted."""
    saved = knobs.saved()
    before = {number: signal.signal(number, _stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        for file, value in saved:
            if file.exists() and _chosen(file) != value:
                file.write_text(value)
        for number, handler in before.items():
            signal.signal(number, handler)


def check(knobs: Knobs) -> None:
    """Refuse before anything is changed."""
    if os.geteuid():
        raise UsageError("this needs root: it writes to sysfs and reads MSRs")
    if not knobs.governors():
        raise UsageError("no cpufreq policy: this machine has no driver for its clock")
    if not list(knobs.root.glob("sys/class/powercap/intel-rapl:?/energy_uj")):
        raise UsageError("no RAPL package zone in /sys/class/powercap (modprobe intel_rapl_msr)")
    if not list(knobs.root.glob("dev/cpu/*/msr")):
        raise UsageError("no /dev/cpu/*/msr (modprobe msr)")
    missing = {package for name, package in PROGRAMS.items() if not shutil.which(name)}
    if missing:
        raise UsageError("programs are missing; run: apt-get install "
                         + " ".join(sorted(missing)))


def _machine(knobs: Knobs, name: str) -> tuple[Machine, list[str]]:
    """With the settings that it can have, and why others are left out."""
    lacks = {setting: knobs.lacks(setting) for setting in CANDIDATES}
    have = tuple(s for s, why in lacks.items() if not why)
    if CANDIDATES[0] not in have:
        raise UsageError(f"the baseline cannot be had: no {lacks[CANDIDATES[0]]}")
    return (Machine(name, os.cpu_count() or 1, have),
            [f"{setting.name}: no {why}" for setting, why in lacks.items() if why])


def load(tools: Path, cell: Cell) -> Result | Failure:
    """One load by the guest's script, with the stopwatch that is in @tools."""
    path = f"{tools}:{os.environ['PATH']}"
    done = subprocess.run(
        ["busybox", "sh", "-c", '. ./loads.sh; load "$@"; code=$?; value "$1"; exit $code',
         "load", cell.load.name, str(cell.parameter), str(cell.seed)],
        cwd=HERE, env=os.environ | {"PATH": path, "SCRIPTS": str(HERE)}, capture_output=True,
        text=True)
    said = done.stderr.strip()
    return result(cell, [str(done.returncode), "0", *done.stdout.split()], 0, said, "")


@contextmanager
def server() -> Iterator[None]:
    """tbench's."""
    process = subprocess.Popen(["tbench_srv"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def table(machine: Machine) -> Table:
    return Table("host", f"{machine.name}, over its own schedutil and menu", (machine,), "base",
                 tuple(s.name for s in machine.settings[1:]),
                 ("tbench", "hackbench", "kernbench", "gitsource"))


def run(knobs: Knobs, name: str, measure: Callable[[Cell], Result | Failure],
        tell: Callable[[str], None]) -> tuple[Machine, Results]:
    machine, without = _machine(knobs, name)
    for line in without:
        tell(f"left out: {line}")
    cells = [Cell(machine, setting, LOADS[load_], parameter, seed)
             for setting in machine.settings for seed in range(1, SEEDS + 1)
             for load_, parameters in (("tbench", (1, machine.cpus // 2 or 1, 2 * machine.cpus)),
                                       ("hackbench", (2,)), ("gitsource", (40,)),
                                       ("kernbench", (2, machine.cpus)))
             for parameter in dict.fromkeys(parameters)]
    results: Results = {}
    with restored(knobs):
        now: Setting | None = None
        for cell in cells:
            if cell.setting != now:
                now = cell.setting
                tell(f"{now.name} ...")
                knobs.apply(now)
            results[cell] = measure(cell)
    return machine, results
