#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The schedutil governor of the base and of the series, side by side in the model.

Builds sim.c and fuzz.c with either source (from build/linux, which "make tree" makes),
runs both with the same arguments and prints the results.
"""
from __future__ import annotations

import argparse
import csv
import re
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import simulator
from simulator import HERE, TOP

MIX = ("10%", "30%", "60%", "burst-2", "burst-10", "burst-50", "burst-200")
RANDOM = ("random", "timed-20", "timed-50", "timed-100", "fixed-20", "fixed-50", "fixed-100",
          "quota-50", "quota-20")
PLOTS = ("step", "ramp", "noise", "periodic", "migrating")
INPUTS = ("fair", "rt", "dl", "irq", "uclamp", "scx", "io", "bare", "pairs", "quota", "mix")
DRIVERS = ("driver=fast", "driver=slow", "driver=perf", "cpus=3")
#: What `rises` measures, as results/schedutil/model-steps.csv calls it
TASKS = {"step": "light", "new": "new", "behind 20": "new, 20 ms behind another's burst",
         "behind 100": "100 ms behind", "behind 300": "300 ms behind",
         "behind 600": "600 ms behind", "behind 1500": "1500 ms behind", "return": "returning",
         "fall": "stays"}
VARIANTS = ("base", "ours")


def build(out: Path) -> None:
    for name, tree in (("base", simulator.base_of()), ("ours", simulator.Tree(simulator.LINUX))):
        simulator.build("sim", tree, out / name)
        simulator.build("fuzz", tree, out / name)


def run(out: Path, variant: str, *words: str) -> str:
    return subprocess.run([out / variant / "sim", *words], check=True,
                          capture_output=True, text=True).stdout


def write(file: Path, *rows: Sequence[object]) -> None:
    """A table; its copy in results/ says at its head how it is made."""
    with file.open("w", encoding="ascii") as to:
        csv.writer(to, lineterminator="\n").writerows(rows)


def rises(out: Path) -> None:
    """Phase by phase beside the base: how many are later, or for falls sooner."""
    print("ms to the highest frequency, or for falls ms for which it stays: median "
          "(least to most) of 50")
    rows: list[Sequence[object]] = []
    for mode in TASKS:
        for hz in (250, 1000):
            base: list[float] = []
            for variant in VARIANTS:
                took = [float(x) for x in run(out, variant, "rise", *mode.split(),
                                              f"hz={hz}").split()]
                base = base or took
                worse = sum(b > a if mode == "fall" else a > b for a, b in zip(took, base))
                print(f"  {mode:11} HZ {hz:4}  {variant:5} {statistics.median(took):6.1f}"
                      f" ({min(took):.1f} to {max(took):.1f}), {worse} worse than the base")
                rows.append((TASKS[mode], hz, variant, f"{statistics.median(took):.1f}",
                             f"{max(took):.1f}", worse))
    write(out / "model-steps.csv",
          ("task", "hz", "setting", "median ms", "longest ms", "phases worse than base"), *rows)


def mix(out: Path) -> None:
    print("Energy of the core J and of it after 5 periods, mean and longest duration ms, "
          "changes, calls of the hook")
    rows: list[Sequence[object]] = []
    for idle, state in (("idle=2", "C1E"), ("idle=1", "C1"), ("idle=6", "C6")):
        print(f"idle in {state}")
        for variant in VARIANTS:
            total = total_known = 0.0
            for name in (*MIX, *RANDOM):
                _, joules, known, _, mean, longest, changes, calls = run(
                    out, variant, "run", name, idle).split()
                if name in MIX:
                    total += float(joules)
                    total_known += float(known)
                print(f"  {variant:5} {name:10} {float(joules):8.2f} {float(known):8.2f}"
                      f" {float(mean):8.2f}"
                      f" {float(longest):8.2f} {changes:>6} {calls:>6}")
                rows.append((state, name, variant, joules, known, mean, changes))
            print(f"  {variant:5} {'sum':10} {total:8.2f} {total_known:8.2f}")
            rows.append((state, "sum", variant, f"{total:.2f}", f"{total_known:.2f}", "", ""))
    write(out / "model-mix.csv",
          ("idle in", "load", "setting", "J", "J once known", "ms", "changes"), *rows)


def noise(out: Path) -> None:
    print("Changes of a 30 % load with noise of 2 units, any frequency or perf path")
    for variant in VARIANTS:
        counts = [run(out, variant, "run", "30%", "any=1", "noise=2", *perf).split()[6]
                  for perf in (["perf=0"], ["perf=1"])]
        print(f"  {variant:5} {counts[0]:>6} {counts[1]:>6}")


def fuzz(out: Path, streams: int) -> int:
    """1 if the oracle found anything"""
    wrong = False
    for who in ("base", "ours"):
        for inputs in INPUTS:
            for driver in DRIVERS:
                done = subprocess.run([out / who / "fuzz", f"contract={who}", f"inputs={inputs}",
                                       driver, f"streams={streams}"],
                                      capture_output=True, text=True)
                print(f"{who} {inputs} {driver}: {done.stdout.strip()}{done.stderr.strip()}")
                wrong |= bool(done.returncode)
    return int(wrong)


def instructions(out: Path, variant: str, kind: str, calls: int) -> int:
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", out / variant / "sim",
         "cost", kind, str(calls)], check=True, capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found, done.stderr
    return int(found[1])


def cost(out: Path) -> None:
    """The loop around the calls is counted too: 'none' is what it takes alone."""
    print("Instructions per call of the hook (loop taken off)")
    for kind in ("same", "change"):
        for variant in VARIANTS:
            count = (instructions(out, variant, kind, 12000) -
                     instructions(out, variant, kind, 2000)) / 10000
            loop = (instructions(out, variant, "none", 12000) -
                    instructions(out, variant, "none", 2000)) / 10000
            print(f"  {kind:6} {variant:5} {count - loop:6.0f}")


def plot(out: Path, png: Path) -> None:
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(PLOTS), 2, figsize=(12, 13), sharey=True)
    for row, name in zip(axes, PLOTS):
        for axis, variant in zip(row, ("base", "ours")):
            points = [tuple(map(float, line.split()))
                      for line in run(out, variant, "plot", name).splitlines()]
            ms, wanted, set_to = zip(*points)
            axis.plot(ms, wanted, color="0.6", linewidth=0.8, label="utilisation wants")
            axis.step(ms, set_to, where="post", color="C3", linewidth=0.9, label="set")
            axis.set_title(f"{name}, {variant}", fontsize=9)
    for axis in axes[-1]:
        axis.set_xlabel("ms")
    for axis in axes[:, 0]:
        axis.set_ylabel("MHz")
    axes[0][0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(png, dpi=80)


WHAT = ("rises", "mix", "noise", "cost", "fuzz", "plot")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", help=f"of {', '.join(WHAT)}; by default the first three")
    parser.add_argument("--out", type=Path, default=TOP / "build/schedutil-sim")
    parser.add_argument("--png", type=Path, default=HERE / "frequency.png")
    parser.add_argument("--streams", type=int, default=10000, help="for fuzz")
    options = parser.parse_args()
    if unknown := set(options.what) - set(WHAT):
        parser.error(f"{', '.join(unknown)}: there are: {', '.join(WHAT)}")
    build(options.out)
    for what in options.what or WHAT[:3]:
        if what == "fuzz":
            if fuzz(options.out, options.streams):
                return 1
        elif what == "plot":
            plot(options.out, options.png)
        else:
            {"rises": rises, "mix": mix, "noise": noise, "cost": cost}[what](options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
