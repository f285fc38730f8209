# SPDX-License-Identifier: GPL-2.0
"""Commands for traces."""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import cli
from . import plot, trace


def add(sub: cli.Commands) -> None:
    one = sub.add_parser("trace", help="summary of a trace")
    one.add_argument("trace")
    one.set_defaults(run=summary)

    one = sub.add_parser("plot", help="picture of a trace")
    one.add_argument("trace")
    one.add_argument("output", help="PNG file")
    one.add_argument("--begin", type=float, default=0, help="from, in s")
    one.add_argument("--end", type=float, help="to, in s (default: all)")
    one.add_argument("--title", default="")
    one.set_defaults(run=picture)


def summary(args: argparse.Namespace) -> int:
    """Per CPU: how often what was entered, and the counters at the marks."""
    t = trace.read(Path(args.trace))
    print(f"{t.end_ns / 1e9:.3f} s, {len(t.marks)} marks")
    for cpu in sorted(t.khz):
        entered: dict[str, int] = {}
        for _, state in t.idle.get(cpu, []):
            if state:
                entered[state] = entered.get(state, 0) + 1
        print(f"CPU {cpu}: {len(t.khz[cpu])} frequency changes, entered "
              + (", ".join(f"{name} {count}" for name, count in sorted(entered.items()))
                 or "nothing"))
    for first, last in zip(t.marks[::2], t.marks[1::2]):
        w = trace.window(t, first.value, last.value)
        print(f"marks {first.value}-{last.value}: {w.seconds:.3f} s, "
              f"{w.package_j:.3f} J")
        for cpu, seen in w.cpus.items():
            print(f"  CPU {cpu}: busy {100 * seen.busy:6.2f} % at {seen.mhz:7.1f} MHz")
    return 0


def picture(args: argparse.Namespace) -> int:
    plot.draw(trace.read(Path(args.trace)), Path(args.output), args.begin, args.end,
              args.title)
    print(args.output)
    return 0
