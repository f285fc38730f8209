#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""schedutil in a guest: shared policies, loads and steps, kernels side by side.

policies: the random life of guest-policies.sh, for each size of a policy and each way
to set its frequency. loads: guest-loads.sh; calls are counted only by a kernel of
measure.config. steps: how long a CPU-bound task waits for the highest frequency.
energy: that of the package under regular loads and timed bursts. All in deterministic time: equal
arguments, equal numbers.
"""
from __future__ import annotations

import argparse
import math
import statistics
import sys
from pathlib import Path

from virtual_silicon import paths
from virtual_silicon.guest.initramfs import Item, ensure
from virtual_silicon.guest.job import Job
from virtual_silicon.guest.pool import Guest, Guests
from virtual_silicon.machine import machine
from virtual_silicon.text import spread

HERE = Path(__file__).resolve().parent

ACPI = "intel_pstate=disable cpufreq.default_governor=schedutil"
PASSIVE = "intel_pstate=passive cpufreq.default_governor="
LOADS = ("hackbench", "pipe_one", "pipe_two", "churn", "cyclic_100us", "cyclic_1ms", "rt_1ms",
         "bursts_20ms", "bursts_100ms", "work_20ms", "work_100ms", "noise_30", "light_10")
#: What vs-rise plays; "behind" is a new task, so many ms after another's 300 ms
MODES = {"step": "-m step -f", "new": "-m new -f", "return": "-m return -f",
         **{f"behind-{rest}": f"-m new -p {rest}" for rest in (100, 300, 600, 1500)}}
#: Name: ms of work at 3.8 GHz, period in ms, number of periods
MIX = {"10%": (2, 20, 100), "30%": (6, 20, 100), "60%": (12, 20, 100), "burst-2": (2, 500, 10),
       "burst-10": (10, 500, 10), "burst-50": (50, 1000, 10), "burst-200": (200, 2000, 10)}
#: Busy for so many ms at any frequency
TIMED = {"timed-20": (20, 100, 50), "timed-50": (50, 200, 25), "timed-100": (100, 400, 15)}
#: Of the idle states none but POLL and one
ONLY_IDLE = """for state in /sys/devices/system/cpu/cpu*/cpuidle/state[1-9]; do
	[ $(cat $state/name) = {state} ] || echo 1 >$state/disable
done"""
#: 5 % of 10 ms at 3.8 GHz
LIGHT_STEPS = 59000


def guest(options: argparse.Namespace, name: str, machine_name: str, cpus: int,
          kernel: str, script: str, append: str) -> str:
    """What the script says in the guest; an answer is kept."""
    archive = ensure(options.out / "guest", more=[
        Item("compile", str(HERE / "guest-load.c"), "usr/bin/guest-load"),
        Item("package", "/usr/bin/uclampset", "usr/bin/uclampset", "util-linux")])
    return Guests(options.out, archive, paths.qemu()).answers([Guest(
        name, machine.load(machine_name), cpus, paths.kernel(kernel), Job([("script", script)]),
        append)])[0].text("script")


def kernels(options: argparse.Namespace) -> list[tuple[str, str]]:
    """(what it is called, image)"""
    named = [name.partition("=") for name in options.kernel]
    return [(name, image or name) for name, _, image in named]


def hint(options: argparse.Namespace) -> str:
    return f"uclampset -m {options.hint} " if options.hint else ""


def setting(options: argparse.Namespace) -> str:
    return options.governor + (f"-{options.hint}" if options.hint else "")


def policies(options: argparse.Namespace) -> int:
    script = (HERE / "guest-policies.sh").read_text()
    lost = 0
    for name, image in kernels(options):
        for how in options.coordination:
            for cpus in options.cpus:
                said = guest(options, f"{name}-{how}-{cpus}", str(HERE / f"shared-{how}.toml"),
                             cpus, image, f"SEED={options.seed} LENGTH={options.seconds} "
                             f"HZ={options.hz}\n{script}", ACPI)
                print(f"{name}, {cpus} CPUs, {how}:\n{said}", flush=True)
                lost += not said.endswith("complaints 0 stayed 0 lost 0")
    return int(lost > 0)


def loads(options: argparse.Namespace) -> int:
    """Medians per second: calls, those that compute the utilisation, changes; result."""
    script = (HERE / "guest-loads.sh").read_text()
    rows: dict[str, dict[str, list[list[float]]]] = {}
    for name, image in kernels(options):
        said = guest(options, f"loads-{name}-{options.clamped or 'free'}-{options.governor}",
                     options.machine, 4, image,
                     f"REPEAT={options.repeat} LOADS='{' '.join(options.load)}' "
                     f"CLAMPED={options.clamped or ''}\n{script}",
                     PASSIVE + options.governor)
        for line in said.splitlines():
            load, *words = line.split()
            if load in LOADS and len(words) == 5:
                rows.setdefault(load, {}).setdefault(name, []).append(
                    [float(word) for word in words])
            else:
                print(f"{name}: {line}")
    for load, found in rows.items():
        for name, values in found.items():
            result, seconds, *counts = zip(*values)
            calls, computed, changed = ([round(n / s, 1) for n, s in zip(count, seconds)]
                                        for count in counts)
            early = [100 * (1 - b / a) for a, b in zip(calls, computed) if a] or [math.nan]
            print(f"{load:14} {name:8} calls {statistics.median(calls):6g} computed "
                  f"{statistics.median(computed):6g} early {statistics.median(early):5.1f} % "
                  f"changes {spread(changed):22} result {spread(list(result))}")
    return 0


def steps(options: argparse.Namespace) -> int:
    """ms until the highest frequency is asked for and kept, and, after 300 ms, less."""
    script = "\n".join(
        f"echo {mode}; {hint(options)}vs-rise -c 1 {how} -r 38 -n {options.repeat} -k 12 -b 300 "
        f"-w {LIGHT_STEPS}" for mode, how in MODES.items())
    for name, image in kernels(options):
        mode = ""
        found: dict[str, list[list[float]]] = {}
        for line in guest(options, f"steps-{name}-{setting(options)}", "sapphire-rapids", 2,
                          image, script, PASSIVE + options.governor).splitlines():
            if line in MODES:
                mode = line
            else:
                found.setdefault(mode, []).append([float(word) for word in line.split()])
        for mode, values in found.items():
            first, kept, fall = zip(*values)
            print(f"{mode:11} {name:8} first {spread(list(first)):28} "
                  f"kept {spread(list(kept)):28} fall {spread(list(fall))}", flush=True)
    return 0


def energy(options: argparse.Namespace) -> int:
    """J of the package in the first 5 periods of regular loads of 4 CPUs, and afterwards."""
    script = "\n".join(
        f"sleep 1; echo {name} "
        f"$({hint(options)}guest-load {kind} 0,1,2,3 {period * number / 1000} {work} {period})"
        for kind, named in (("every", MIX), ("timed", TIMED))
        for name, (work, period, number) in named.items() for _ in range(options.repeat))
    if options.idle:
        script = f"{ONLY_IDLE.format(state=options.idle)}\n{script}"
    for name, image in kernels(options):
        found: dict[str, list[list[float]]] = {}
        for line in guest(options, f"energy-{name}-{options.idle or 'all'}-{setting(options)}",
                          options.machine, 4, image, script,
                          PASSIVE + options.governor).splitlines():
            load, *words = line.split()
            found.setdefault(load, []).append([float(word) / 1000 for word in words])
        for load, values in found.items():
            first, known = zip(*values)
            print(f"{load:10} {name:8} first {spread(list(first)):30} known "
                  f"{spread(list(known))}", flush=True)
        sums = [statistics.median(x) for values in found.values() for x in zip(*values)]
        print(f"{'sum':10} {name:8} first {sum(sums[::2]):.3f} known {sum(sums[1::2]):.3f}",
              flush=True)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["policies", "loads", "steps", "energy"])
    parser.add_argument("--kernel", nargs="+", default=["patched"], metavar="NAME[=IMAGE]",
                        help="patched, base, or a name and the path of a bzImage")
    parser.add_argument("--out", type=Path, default=paths.BUILD / "schedutil-guest")
    group = parser.add_argument_group("policies")
    group.add_argument("--seed", type=int, default=1)
    group.add_argument("--seconds", type=int, default=600, help="virtual, of each guest")
    group.add_argument("--cpus", type=int, nargs="+", default=[2, 4, 8])
    group.add_argument("--coordination", nargs="+", choices=["any", "all"],
                       default=["any", "all"])
    group.add_argument("--hz", type=int, default=250, help="of the kernel")
    group = parser.add_argument_group("loads, steps and energy")
    group.add_argument("--machine", default="sapphire-rapids", help="of loads and energy")
    group.add_argument("--governor", default="schedutil")
    group.add_argument("--repeat", type=int, default=20)
    group.add_argument("--clamped", type=int, metavar="MAX",
                       help="of loads: a task that is clamped to this sleeps on CPU 3")
    group.add_argument("--hint", type=int, metavar="MIN", help="of steps and energy: "
                       "the loads ask for at least this utilisation (uclampset, 1 to 1024)")
    group.add_argument("--idle", metavar="STATE", help="of energy: the only idle state")
    group.add_argument("--load", nargs="+", default=list(LOADS), choices=LOADS)
    options = parser.parse_args()
    if options.hint is not None and not 1 <= options.hint <= 1024:
        parser.error(f"--hint {options.hint}: allowed are 1 to 1024")
    return options


def main() -> int:
    options = parse()
    return {"policies": policies, "loads": loads, "steps": steps,
            "energy": energy}[options.what](options)


if __name__ == "__main__":
    sys.exit(main())
