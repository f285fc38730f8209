# SPDX-License-Identifier: GPL-2.0
"""One run: the loads of the bench on the kernel that runs, until the time is over."""
from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from virtual_silicon.errors import Fail
from virtual_silicon.studies.bench import cells, host, runner
from virtual_silicon.studies.bench.loads import LOADS
from virtual_silicon.studies.bench.tables import smaller_is_better

from .plan import Plan
from .report import Run

Tell = Callable[[str], None]
#: Where stopwatch is.
TOOLS = Path("/opt/x86-dvfs/bin")
#: Between two loads, and until all is idle after the boot.
REST_S, SETTLE_S = 0.5, 5.0


def lacks(root: Path = Path("/")) -> str:
    """Why nothing can be compared on this machine; nothing if it can."""
    if "hypervisor" in (root / "proc/cpuinfo").read_text() and not list(
            root.glob("sys/devices/system/cpu/cpufreq/policy*")):
        return "this is a virtual machine: its clocks are its host's"
    for pattern, what in (("sys/devices/system/cpu/cpufreq/policy*", "no driver for its clock"),
                          ("sys/class/powercap/intel-rapl:?/energy_uj", "no counter of energy"),
                          ("dev/cpu/*/msr", "no registers")):
        if not list(root.glob(pattern)):
            return f"this machine has {what}"
    return ""


def celsius(root: Path = Path("/")) -> float | None:
    """The hottest sensor of the CPUs."""
    found = []
    for chip in root.glob("sys/class/hwmon/hwmon*"):
        try:
            if (chip / "name").read_text().strip() in ("coretemp", "k10temp"):
                found += [int(path.read_text()) / 1000 for path in chip.glob("temp*_input")]
        except (OSError, ValueError):
            continue
    return max(found, default=None)


def throttled(root: Path = Path("/")) -> int:
    return sum(int(path.read_text()) for path in root.glob(
        "sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count"))


def _row(cell: cells.Cell, found: runner.Result | runner.Failure) -> dict[str, Any]:
    """Performance is the load's rate, or one over its time."""
    row: dict[str, Any] = {"load": cell.load.name, "parameter": cell.parameter}
    if isinstance(found, runner.Failure):
        return row | {"failed": found.reason[:80]}
    return row | {"performance": found.performance, "per watt": found.per_watt,
                  "watts": found.watts, "mhz": found.mhz, "seconds": found.seconds,
                  "less is better": smaller_is_better(cell.load.name, "performance")}


def run(plan: Plan, number: int, kernel: str, tell: Tell) -> Run:
    knobs, khz = host.Knobs(Path("/")), host.tsc_khz()
    machine = cells.Machine("this", len(list(Path("/dev/cpu").glob("[0-9]*"))), ())
    idle = "menu" if kernel == "base" else plan.idle
    setting = cells.Setting(kernel, cells.Boot("host"), idle=idle)
    if why := knobs.lacks(setting):
        raise Fail(f"no {why}")
    knobs.apply(setting)
    wanted = [cells.Cell(machine, setting, LOADS[name], parameter, 1) for name in plan.loads
              for parameter in host.parameters(LOADS[name], machine.cpus)]
    rng = random.Random(plan.seed * 1000 + number)
    before, hottest, rows = throttled(), celsius(), []
    time.sleep(SETTLE_S)
    with host.servers():
        tell("warm-up")
        host.load(TOOLS, khz, wanted[0])
        end, passes = time.monotonic() + plan.seconds, 0
        while not passes or time.monotonic() < end:
            passes += 1
            for cell in rng.sample(wanted, len(wanted)):
                if passes > 1 and time.monotonic() > end:
                    break
                tell(f"{cell.load.name} {cell.parameter}")
                rows.append(_row(cell, host.load(TOOLS, khz, cell)))
                hottest = max((t for t in (hottest, celsius()) if t), default=None)
                time.sleep(REST_S)
    return {"number": number, "kernel": kernel, "cells": rows, "celsius": hottest,
            "throttled": throttled() > before}
