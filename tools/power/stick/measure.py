# SPDX-License-Identifier: GPL-2.0
"""One run: loads of the lab on the kernel that runs, until the time is over."""
from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cpuwhy.sample import celsius, throttled
from virtual_silicon.errors import Fail
from virtual_silicon.lab import host
from virtual_silicon.lab.plan import Cell, Column

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


def _row(cell: Cell, khz: int) -> dict[str, Any]:
    """Performance is the load's rate, or one over its time."""
    row: dict[str, Any] = {"load": cell.load.name, "parameter": cell.parameter}
    try:
        found = host.load(TOOLS, khz, cell).of
    except ValueError as error:
        return row | {"failed": str(error)[:80]}
    less = cell.load.better == "less"
    performance = 1 / found["result"] if less else found["result"]
    return row | {"performance": performance, "per watt": performance / found["W"],
                  "watts": found["W"], "mhz": found["MHz"], "less is better": less}


def run(plan: Plan, number: int, kernel: str, tell: Tell) -> Run:
    knobs, khz = host.Knobs(Path("/")), host.tsc_khz()
    column = Column(kernel, "host", idle="menu" if kernel == "base" else plan.idle)
    if why := knobs.lacks(column):
        raise Fail(f"no {why}")
    knobs.apply(column)
    wanted = host.cells(column, len(list(Path("/dev/cpu").glob("[0-9]*"))), 1, plan.loads)
    rng = random.Random(plan.seed * 1000 + number)
    before, hottest, rows = throttled(), celsius(), []
    time.sleep(SETTLE_S)
    with host.servers():
        tell("warm-up")
        _row(wanted[0], khz)
        end, passes = time.monotonic() + plan.seconds, 0
        while not passes or time.monotonic() < end:
            passes += 1
            for cell in rng.sample(wanted, len(wanted)):
                if passes > 1 and time.monotonic() > end:
                    break
                tell(f"{cell.load.name} {cell.parameter}")
                rows.append(_row(cell, khz))
                hottest = max((t for t in (hottest, celsius()) if t), default=None)
                time.sleep(REST_S)
    return {"number": number, "kernel": kernel, "cells": rows, "celsius": hottest,
            "throttled": throttled() > before}
