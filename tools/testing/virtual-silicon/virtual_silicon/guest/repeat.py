# SPDX-License-Identifier: GPL-2.0
"""The same start several times: is everything identical, and how fast was it?"""

from __future__ import annotations

import dataclasses
import hashlib
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..machine.machine import Machine
from . import boot

#: Some of everything that programs do: work, messages, timers, registers, and
#: what the kernel makes of them.
COMMAND = """\
turbostat -q --hide IPC vs-load -c all -t 0.1 -d 50 -m 50
hackbench -g 1 -l 20
cyclictest -q -t 2 -a -i 2000 -l 20
stress-ng --cpu 2 --cpu-method int64 --cpu-ops 20 --timer 1 --timer-ops 200 -q
grep . /sys/devices/system/cpu/cpu*/cpuidle/state*/usage
dmesg | tail -3
"""


@dataclass(frozen=True)
class Run:
    """One of the runs: digests by file, seconds of the host (elapsed, and of its
    CPUs), virtual seconds, instructions."""

    digests: dict[str, str]
    seconds: float
    cpu_seconds: float
    virtual: float
    instructions: int
    loaded: bool
    status: int


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def instructions(m: Machine, report: dict) -> int:
    """From cycles, as if all were the user's, whose instructions take longer: so many
    at least.  Without memory_permille, SMT and pause_cycles."""
    cycles = sum(cpu["aperf"] for cpu in report["cpus"])
    return cycles * 1000 // m.time.user_cycles_per_1000_insns


def _children_seconds() -> float:
    """CPU time of the processes waited for: the emulator, not what still spins."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@contextmanager
def busy_host(processes: int) -> Iterator[None]:
    """So many processes that do nothing but use the host's CPUs."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                for _ in range(processes)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def once(c: boot.Config, load: int) -> Run:
    with busy_host(load):
        begin, used = time.monotonic(), _children_seconds()
        result = boot.run(c)
        seconds, cpu_seconds = time.monotonic() - begin, _children_seconds() - used
    assert result.trace
    names = ("console.log", "results.log", "model.json", result.trace.name)
    return Run({name: _digest(c.out / name) for name in names}, seconds, cpu_seconds,
               result.report["time_ns"] / 1e9, instructions(c.machine, result.report),
               bool(load), result.status)


def runs(c: boot.Config, count: int, load: int) -> Iterator[Run]:
    """Every second one beside a load on the host."""
    for number in range(count):
        yield once(dataclasses.replace(c, out=c.out / f"run-{number}"),
                   load if number % 2 else 0)


def differing(all_runs: list[Run]) -> list[str]:
    """Files that were not the same in all of them."""
    return [name for name in all_runs[0].digests
            if len({run.digests[name] for run in all_runs}) > 1]
