# SPDX-License-Identifier: GPL-2.0
"""What a stock kernel and stock tools say of each machine: a table.

Each machine is booted with each kernel in deterministic time; turbostat, cpupower,
stress-ng and rt-tests run, and what they print stands next to the machine file.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import boot, guestdata, turbostat
from .distribution import Kernel
from .errors import GuestError
from .job import Job
from .machine import Machine

#: All drivers in their mode for governors, and the governor that asks for most.
APPEND = ("intel_pstate=passive amd_pstate=passive "
          "cpufreq.default_governor=performance")

HEAD = ["machine", "kernel", "driver", "base MHz", "one CPU MHz", "one CPU in file",
        "all MHz", "all in file", "idle states", "energy", "warnings"]


def job(kernel: Kernel | None) -> Job:
    job = Job()
    if kernel:
        job.files |= kernel.files()
    job.step("kernel", "uname -r")
    job.step("header", "turbostat --hide IPC -o /run/h true 2>&1; cat /run/h")
    job.step("frequency-info", "cpupower frequency-info")
    job.step("idle-info", "cpupower idle-info")
    job.step("zones", "dump_zones")
    job.step("governor", "for f in $CPU/cpu[0-9]*/cpufreq/scaling_governor; do "
             "echo performance >$f; done; sleep 0.1")
    for name, cpus in (("one", "0"), ("all", "all")):
        job.step(name, f"turbostat -q --hide IPC -o /run/t vs-load -c {cpus} -t 0.15 "
                 "2>&1; cat /run/t")
    job.step("stress-ng", "stress-ng --cpu-online 1 --cpu-online-ops 20 -q 2>&1; "
             "stress-ng --cpu 2 --cpu-method int64 --cpu-ops 20 -q")
    job.step("rt-tests", "cyclictest -q -t 2 -a -i 2000 -l 20; hackbench -g 1 -l 20")
    job.step("dmesg", "dmesg")
    return job


@dataclass
class Row:
    machine: str
    cells: list[str]


def _match(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[1] if found else "-"


def _mhz(result: boot.Result, step: str, cpus: list[int]) -> str:
    """Of each kind of core once, "3800" or "4900/3500"."""
    try:
        table = turbostat.table(result.text(step))
    except GuestError:
        return "-"
    return "/".join(f"{table.cpus[cpu]['Bzy_MHz']:.0f}" for cpu in cpus
                    if cpu in table.cpus)


def _file_mhz(m: Machine, active: int, kinds: bool) -> str:
    tops = [m.max_ratio] + ([kind.max_ratio for kind in m.classes] if kinds else [])
    return "/".join(f"{m.mhz(min(top, m.turbo.limit(active))):.0f}" for top in tops)


def row(m: Machine, cpus: int, kernel: str, result: boot.Result) -> Row:
    first = [0] + [numbers[0] for _, numbers in m.class_cpus(cpus)]
    header, info = result.text("header"), result.text("frequency-info")
    base = _match(r"= ([\d.]+) MHz base frequency", header)
    idle = _match(r"Available idle states: (?:POLL )?(.*)", result.text("idle-info"))
    failed = [s.name for s in result.answer.sections.values()
              if s.status and s.name not in ("header",)]
    warnings = guestdata.warnings(result.text("dmesg"))
    return Row(m.name, [
        m.name, kernel, _match(r"driver: (\S+)", info), base.removesuffix(".0"),
        _mhz(result, "one", [0]), _file_mhz(m, 1, False),
        _mhz(result, "all", first), _file_mhz(m, -(-cpus // m.threads), True),
        idle, "yes" if "package" in result.text("zones") else "no",
        "; ".join([w.split("] ", 1)[-1] for w in warnings[:1]]
                  + [f"{name} failed" for name in failed]) or "none"])


def rows(machines: list[Machine], kernels: list[tuple[str, Path, Kernel | None]],
         config: boot.Config, cpus: int) -> Iterator[Row]:
    """`config` says the rest; a guest that fails is a row too."""
    for m in machines:
        count = min(cpus, m.cores)
        for name, image, kernel in kernels:
            c = dataclasses.replace(
                config, machine=m, cpus=count, kernel=image, mode="deterministic",
                append=APPEND, job=job(kernel).archive(),
                out=config.out / f"{m.name}-{name}")
            try:
                yield row(m, count, name, boot.run(c))
            except GuestError as error:
                yield Row(m.name, [m.name, name] + ["-"] * 8 + [str(error)])


def markdown(table: list[Row]) -> str:
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    return "\n".join(lines + ["| " + " | ".join(r.cells) + " |" for r in table]) + "\n"
