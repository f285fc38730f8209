# SPDX-License-Identifier: GPL-2.0
"""What the kernel's paths cost on few and on many CPUs: a table of base and ours.

Boots both kernels in deterministic time, with each number of CPUs, and takes the times of
single functions from the kernel's function graph tracer. README.md says what to make of it.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from ... import cli
from ...errors import GuestError
from ...guest import boot, options
from ...guest.job import Job
from ...guest.pool import Guest
from ...lab import kernels
from ...lab.plan import Kernel
from ...machine import machine
from ...text import publish

HERE = Path(__file__).resolve().parent

PATHS = ("tick", "hook", "wake-up", "wake-up by message", "select",
         "select, polling only", "reflect")
TRACER = ("FUNCTION_TRACER=y", "FUNCTION_GRAPH_TRACER=y")
KERNELS = {name: Kernel(f"{name}-trace", name, config=TRACER) for name in ("base", "patched")}
#: Kernel, idle governor, chains
SETTINGS = {"base, menu": ("base", "menu", 0), "base, teo": ("base", "teo", 0),
            "ours": ("patched", "teo", 0), "ours, chains": ("patched", "teo", 1)}
MACHINES = {"own policies": (HERE / "many.toml", "intel_pstate=passive", PATHS),
            "one policy": (HERE / "many-shared.toml", "intel_pstate=disable", ("hook",))}
FILES = ("/proc/cpuinfo /sys/kernel/debug/sched/debug $CPU/cpu0/cpufreq/scaling_cur_freq "
         "$CPU/cpu0/cpuidle/state1/above $(ls -d "
         "/sys/kernel/debug/x86/freq_invariance $CPU/cpufreq/schedutil/* "
         "$CPU/cpufreq/policy0/schedutil/* 2>/dev/null)")


@dataclass(frozen=True)
class Row:
    """Of a function (us), or of reading a file (ns): @calls are interrupts between CPUs then."""

    what: str
    setting: str
    machine: str
    cpus: int
    calls: float
    mean: float
    median: float


def traced(path: str, governor: str, shared: bool) -> tuple[str, str]:
    """Function and load."""
    return {"tick": ("sched_tick", "messages"),
            "hook": ("sugov_update_shared" if shared else "sugov_update_single_freq", "messages"),
            "wake-up": ("try_to_wake_up", "timers"),
            "wake-up by message": ("try_to_wake_up", "messages"),
            "select": (f"{governor}_select", "timers"),
            "select, polling only": (f"{governor}_select", "timers0"),
            "reflect": (f"{governor}_reflect", "timers")}[path]


def costs(kernel: str, name: str) -> list[tuple[str, str]]:
    """Settings and paths, in the order in which a guest measures them."""
    return [(setting, path) for setting, (of, _, _) in SETTINGS.items() if of == kernel
            for path in MACHINES[name][2]]


def guest(image: Path, kernel: str, name: str, cpus: int) -> Guest:
    file, append, _ = MACHINES[name]
    job = Job()
    job.step("prepare", ". /usr/lib/vs/scaling.sh; prepare")
    for number, (setting, path) in enumerate(costs(kernel, name), 1):
        _, governor, chains = SETTINGS[setting]
        function, load = traced(path, governor, name == "one policy" and cpus > 1)
        job.step(f"cost{number}", f". /usr/lib/vs/scaling.sh; setup {governor} {chains} && "
                 f"cost {function} {load}")
    job.step("reads", f"reads {FILES}")
    return Guest(f"{kernel}-{name.replace(' ', '-')}-{cpus}", machine.load(str(file)), cpus,
                 image, job, f"{append} cpufreq.default_governor=schedutil")


def parse(result: boot.Result, kernel: str, name: str, cpus: int) -> list[Row]:
    rows = []
    for number, (setting, path) in enumerate(costs(kernel, name), 1):
        words = result.text(f"cost{number}").split()
        if words[:1] != ["cost"] or len(words) != 6:
            raise GuestError(f"{setting}, {path}, {cpus} CPUs: {' '.join(words)}")
        rows.append(Row(path, setting, name, cpus, *map(float, words[3:])))
    for line in result.text("reads").splitlines():
        _, path, ns, interrupts = line.split()
        rows.append(Row(path, kernel, name, cpus, float(interrupts), float(ns), float(ns)))
    return rows


def paths_table(rows: list[Row]) -> list[list[str]]:
    return [[r.what + ", one policy" * (r.machine == "one policy"), r.setting, str(r.cpus),
             f"{1000 * r.mean:.0f}", f"{1000 * r.median:.0f}"]
            for r in rows if not r.what.startswith("/")]


def files_table(rows: list[Row]) -> list[list[str]]:
    return [[r.what.removeprefix("/sys/devices/system/cpu/"), r.setting, str(r.cpus),
             f"{r.median / 1000:.1f}", f"{r.calls:.2f}"]
            for r in rows if r.what.startswith("/") and r.machine == "own policies"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in KERNELS:
        parser.add_argument(f"--{name}", type=Path, help="an image with TRACER (default: built)")
    parser.add_argument("--cpus", type=cli.count, nargs="+", default=[1, 4, 16, 64])
    options.where(parser, "scaling")
    args = parser.parse_args()
    todo = [(kernel, name, n) for n in args.cpus for name in MACHINES
            for kernel in ("base", "patched")]
    images = {name: getattr(args, name) or kernels.image(kernel)[0]
              for name, kernel in KERNELS.items()}
    results = options.answers(args, [guest(images[which[0]], *which) for which in todo],
                              HERE / "recipe.txt")
    rows = [row for which, result in zip(todo, results) for row in parse(result, *which)]
    publish(args.out / "paths.csv", ("path", "setting", "cpus", "mean ns", "median ns"),
            paths_table(rows))
    publish(args.out / "files.csv", ("file", "kernel", "cpus", "us", "interrupts"),
            files_table(rows), "Reading a file whole: median of 21, and interrupts for it.")
    return 0


if __name__ == "__main__":
    sys.exit(cli.ended("scaling", main))
