#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""schedutil in guests: tables of kernels side by side, and shared policies.

steps: how long a CPU-bound task waits for the highest frequency. energy: that of the package under
regular loads and timed bursts. changes: of the frequency, and the results of loads. calls: of the
hook, and of those that compute the utilisation. policies: the random life of guest-policies.sh,
for each size of a policy and each way to set its frequency. All in deterministic time: equal
arguments, equal numbers.
"""
from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Collection, Iterable
from pathlib import Path

from virtual_silicon import cli, loads, paths
from virtual_silicon.errors import GuestError
from virtual_silicon.guest import initramfs, options
from virtual_silicon.guest.job import Job
from virtual_silicon.guest.pool import Guest, Guests
from virtual_silicon.machine import machine
from virtual_silicon.text import ends, publish

HERE = Path(__file__).resolve().parent

ACPI = "intel_pstate=disable cpufreq.default_governor=schedutil"
PASSIVE = "intel_pstate=passive cpufreq.default_governor="
LOADS = ("hackbench", "pipe_one", "pipe_two", "churn", "cyclic_100us", "cyclic_1ms", "rt_1ms",
         "bursts_20ms", "bursts_100ms", "work_20ms", "work_100ms", "noise_30", "light_10")
#: Column: kernel, governor, and what starts the loads of steps and energy.
COLUMNS = {"base": ("base", "schedutil", ""), "stock": ("stock", "schedutil", ""),
           "base-schedutil": ("base-schedutil", "schedutil", ""),
           "ours": ("patched", "schedutil", ""), "performance": ("base", "performance", ""),
           "hint": ("base", "schedutil", "uclampset -m 1024 ")}
NOTE = ("base: the base's kernel with menu; stock: Debian's package; base-schedutil: the series "
        "with the base's cpufreq_schedutil.c; ours: as installed; performance: the base with that "
        "governor; hint: the base, uclampset -m 1024 starts the loads.")
#: What vs-rise plays; "behind" is a new task, so many ms after another's 300 ms
MODES = {"light": "-m step -f", "new": "-m new -f", "returning": "-m return -f",
         **{f"behind {rest}": f"-m new -p {rest}" for rest in (100, 300, 600, 1500)}}
#: Name: ms of work at 3.8 GHz, period in ms, number of periods
MIX = {"10 %": (2, 20, 100), "30 %": (6, 20, 100), "60 %": (12, 20, 100),
       "burst 2": (2, 500, 10), "burst 10": (10, 500, 10), "burst 50": (50, 1000, 10),
       "burst 200": (200, 2000, 10)}
#: Busy for so many ms at any frequency
TIMED = {"timed 20": (20, 100, 50), "timed 50": (50, 200, 25), "timed 100": (100, 400, 15)}
#: Of the idle states none but POLL and one
ONLY_IDLE = """for state in /sys/devices/system/cpu/cpu*/cpuidle/state[1-9]; do
	[ $(cat $state/name) = {state} ] || echo 1 >$state/disable
done"""
#: 5 % of 10 ms at 3.8 GHz
LIGHT_STEPS = 59000


def said(args: argparse.Namespace, guests: Iterable[Guest]) -> list[str]:
    """What the scripts say in the guests; an answer is kept."""
    made = initramfs.ensure(args.out / "guest", more=[
        initramfs.Item("compile", str(loads.HERE / "guest-load.c"), "usr/bin/guest-load"),
        initramfs.Item("package", "/usr/bin/uclampset", "usr/bin/uclampset", "util-linux")])
    return [answer.text("script")
            for answer in Guests(args.out, made, paths.qemu(), args.jobs).answers(list(guests))]


def guest(args: argparse.Namespace, name: str, kernel: str, governor: str, cpus: int, script: str,
          hz: int = 250) -> Guest:
    image, files = options.built(args, kernel, hz)
    return Guest(name, machine.load("sapphire-rapids"), cpus,
                 image, Job([("script", script)], files), PASSIVE + governor)


def numbers(text: str, names: Collection[str], repeat: int) -> dict[str, list[list[float]]]:
    """Of lines that begin with one of the names, with _ for blanks; each as often as was asked."""
    found: dict[str, list[list[float]]] = {name.replace(" ", "_"): [] for name in names}
    for line in text.splitlines():
        name, *words = line.split()
        try:
            values = [float(word) for word in words]
            if not all(map(math.isfinite, values)):
                raise ValueError(line)
            found[name].append(values)
        except (KeyError, ValueError) as error:
            raise GuestError(f"not a result: {line!r}") from error
    for name, of in found.items():
        if len(of) != repeat:
            raise GuestError(f"{name}: {len(of)} results instead of {repeat}")
    return {name: found[name.replace(" ", "_")] for name in names}


def policies(args: argparse.Namespace) -> int:
    script = (HERE / "guest-policies.sh").read_text()
    todo = [(f"{how}-{cpus}", Guest(
        f"policies-{how}-{cpus}", machine.load(str(HERE / f"shared-{how}.toml")), cpus,
        paths.kernel("patched"), Job([("script", f"SEED={args.seed} LENGTH={args.seconds} "
                                       f"HZ=250\n{script}")]), ACPI))
            for how in args.coordination for cpus in args.cpus]
    lost = 0
    for (name, _), text in zip(todo, said(args, [asked for _, asked in todo])):
        print(f"{name} CPUs:\n{text}", flush=True)
        lost += not text.endswith("complaints 0 stayed 0 lost 0")
    return int(lost > 0)


def of_loads(args: argparse.Namespace, clamped: str = "") -> str:
    return (f"REPEAT={args.repeat} LOADS='{' '.join(args.load)}' CLAMPED={clamped}\n"
            + (HERE / "guest-loads.sh").read_text())


def changes(args: argparse.Namespace) -> int:
    """Of the frequency per second; results."""
    found = [numbers(text, args.load, args.repeat) for text in said(args, [
        guest(args, f"changes-{c}", *COLUMNS[c][:2], 4, of_loads(args)) for c in args.columns])]
    rows = []
    for load in args.load:
        for column, values in zip(args.columns, found):
            result, seconds, _, _, changed = zip(*values[load])
            rows.append([load, column, *ends([n / s for n, s in zip(changed, seconds)], ".1f"),
                         *ends(result)])
    publish(args.out / "changes.csv", ("load", "setting", "changes/s", "least", "most", "result",
                                       "result least", "result most"), rows,
            f"Writes of PERF_CTL that change it, per second, and the load's result: medians, least "
            f"and most of {args.repeat}. {NOTE}")
    return 0


def calls(args: argparse.Namespace) -> int:
    """Medians of calls per second, by a kernel with the function profiler, and of what share
    returns before the utilisation is computed; also beside a sleeping task with a clamp."""
    clamps = ("", "300")
    rows = []
    for clamp, text in zip(clamps, said(args, [
            guest(args, f"calls-{clamp or 'free'}", "patched-profile", "schedutil", 4,
                  of_loads(args, clamp)) for clamp in clamps])):
        for load, values in numbers(text, args.load, args.repeat).items():
            _, seconds, called, computed, _ = (statistics.median(x) for x in zip(*values))
            if not called:
                raise GuestError(f"{load}: the profiler counted no call")
            rows.append([load, clamp or "-", f"{called / seconds:.0f}", f"{computed / seconds:.0f}",
                         f"{100 * (1 - computed / called):.1f}"])
    publish(args.out / "calls.csv", ("load", "clamp", "calls/s", "computed/s", "early %"), rows,
            "Calls of schedutil's hook and of effective_cpu_util() by the function profiler, which "
            f"slows them: medians of {args.repeat}. Clamp: a task with this utilisation clamp "
            "sleeps on CPU 3. early: calls that return before the utilisation is computed.")
    return 0


def tables(args: argparse.Namespace, what: str, cpus: int, script: str
           ) -> list[tuple[int, str, str]]:
    """HZ, column and what it said; with HZ 1000 base and ours alone. @script: "HINT" stands for
    what starts a load."""
    found = [(hz, c) for hz in args.hz for c in args.columns if hz == 250 or c in ("base", "ours")]
    texts = said(args, [guest(args, f"{what}-{c}-{hz}", *COLUMNS[c][:2], cpus,
                              script.replace("HINT ", COLUMNS[c][2]), hz) for hz, c in found])
    return [(hz, c, text) for (hz, c), text in zip(found, texts)]


def steps(args: argparse.Namespace) -> int:
    """ms until the highest frequency is asked for and kept, and then less."""
    script = "\n".join(
        f"HINT vs-rise -c 1 {how} -r 38 -n {args.repeat} -k 12 -b 300 -w {LIGHT_STEPS} | "
        f"sed 's/^/{mode.replace(' ', '_')} /'" for mode, how in MODES.items())
    rows = []
    for hz, column, text in tables(args, "steps", 2, script):
        for mode, values in numbers(text, MODES, args.repeat).items():
            _, kept, fall = zip(*values)
            rows.append([str(hz), mode, column, *ends(kept, ".1f"),
                         f"{statistics.median(fall):.1f}" if "-f" in MODES[mode] else ""])
    publish(args.out / "steps.csv", ("hz", "task", "setting", "ms", "least", "most", "fall"), rows,
            "ms until the highest frequency is asked for and kept: median, least, most of "
            f"{args.repeat}; ms of little work, after 300 of work, until less is asked for: "
            f"median. behind: a new task, so many ms after another's burst of 300 ms. {NOTE}")
    return 0


def energy(args: argparse.Namespace) -> int:
    """J of the package in the first 5 periods of regular loads of 4 CPUs, and afterwards."""
    script = "\n".join(
        f"sleep 1; echo {name.replace(' ', '_')} "
        f"$(HINT guest-load {kind} 0,1,2,3 {period * number / 1000} {work} {period})"
        for kind, named in (("every", MIX), ("timed", TIMED))
        for name, (work, period, number) in named.items() for _ in range(args.repeat))
    rows = []
    for idle in args.idle:
        only = ONLY_IDLE.format(state=idle) + "\n" if idle != "all" else ""
        for hz, column, text in tables(args, f"energy-{idle}", 4, only + script):
            sums = [0.0, 0.0]
            for load, values in numbers(text, (*MIX, *TIMED), args.repeat).items():
                first, known = ([mj / 1000 for mj in of] for of in zip(*values))
                sums = [x + statistics.median(of) for x, of in zip(sums, (first, known))]
                rows.append([idle, str(hz), load, column, f"{statistics.median(first):.1f}",
                             *ends(known, ".1f")])
            rows.append([idle, str(hz), "sum", column, *(f"{x:.1f}" for x in sums), "", ""])
    publish(args.out / "energy.csv", ("idle in", "hz", "load", "setting", "J first", "J", "least",
                                      "most"), rows,
            "J of the package: in the first five periods, and afterwards: medians, least and most "
            f"of {args.repeat}. Idle in: the only idle state beside POLL. {NOTE}")
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    add = parser.add_argument
    add("what", choices=["steps", "energy", "changes", "calls", "policies"])
    options.where(parser, "schedutil-guest")
    add("--repeat", type=cli.count, default=5)
    add("--columns", nargs="+", default=[c for c in COLUMNS if c != "stock"], choices=COLUMNS)
    options.stock(parser)
    add("--hz", nargs="+", type=int, choices=(250, 1000), default=[250],
        help="of the kernels of steps and energy")
    add("--idle", nargs="+", default=["all"], choices=("all", "C1", "C1E", "C6"),
        help="of energy: the only idle state, or all")
    add("--load", nargs="+", default=list(LOADS), choices=LOADS, help="of changes and calls")
    group = parser.add_argument_group("policies")
    group.add_argument("--seed", type=int, default=1)
    group.add_argument("--seconds", type=cli.count, default=600, help="virtual, of each guest")
    group.add_argument("--cpus", type=cli.count, nargs="+", default=[2, 4, 8])
    group.add_argument("--coordination", nargs="+", choices=["any", "all"],
                       default=["any", "all"])
    args = parser.parse_args()
    for name in ("columns", "hz", "idle", "load"):
        if len(set(values := getattr(args, name))) < len(values):
            parser.error(f"--{name}: the same twice")
    if args.what == "changes":
        args.columns = [c for c in args.columns if not COLUMNS[c][2]]
    if 250 not in args.hz:
        args.columns = [c for c in args.columns if c in ("base", "ours")]
    if not args.columns:
        parser.error(f"--columns: none of these has a row in the table of {args.what}")
    return args


def main() -> int:
    args = parse()
    return {"steps": steps, "energy": energy, "changes": changes, "calls": calls,
            "policies": policies}[args.what](args)


if __name__ == "__main__":
    sys.exit(cli.ended("guest.py", main))
