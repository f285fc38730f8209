# SPDX-License-Identifier: GPL-2.0
"""kselftest cpuidle_teo under kernels with several HZ: a table of what it counted.

Each kernel is booted with C0.2 and without, so that there are tables of two to five
idle states; the base has no C0.2. Kernels are given as HZ=BASE,PATCHED, where both are
images; kernel.sh makes those of other HZ.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict

from ... import cli, paths
from ...errors import GuestError
from ...guest import options
from ...guest.job import Job
from ...guest.pool import Guest
from ...machine import machine
from ...text import publish

#: "with C0.2" only has the idle part that the other lacks in it: five states.
TABLES = {"": "intel_idle.c02=off", "C0.2": ""}

_ROW = re.compile(r"^# (menu|teo) +(.*?) +([\d.]+) wake-ups/s, deepest +([\d.]+) %, "
                  r"too deep +([\d.]+)/s, state 1 too shallow +([\d.]+) %", re.M)

Row = dict[str, float]
Rows = dict[tuple[int, str, str], dict[str, Row]]	# HZ, table, load; by governor


def guest(args: argparse.Namespace, hz: int, which: str, kernel: str, table: str) -> Guest:
    job = Job()
    job.step("wakeups", "/selftests/cpuidle_teo/wakeups")
    return Guest(f"wakeups-{hz}-{which}{table}", machine.load(args.machine), 2,
                 paths.kernel(kernel), job,
                 "intel_pstate=passive cpufreq.default_governor=performance " + TABLES[table])


def parse(text: str) -> dict[str, dict[str, Row]]:
    """By governor and load."""
    rows: dict[str, dict[str, Row]] = defaultdict(dict)
    for governor, load, *numbers in _ROW.findall(text):
        rows[governor][load] = dict(zip(("wakeups", "deepest", "above", "shallow1"),
                                        map(float, numbers)))
    if not rows:
        raise GuestError("the kselftest said nothing", "\n".join(text.splitlines()[-10:]))
    return rows


def measure(args: argparse.Namespace) -> Rows:
    rows: Rows = defaultdict(dict)
    todo: dict[tuple[int, str, str], str] = {}	# HZ, which, table: image
    for kernel in args.kernel:
        hz, images = kernel.split("=")
        base, patched = images.split(",")
        for table in TABLES:
            todo[int(hz), "patched", table] = patched
            if not table:	# the base has no C0.2
                todo[int(hz), "base", table] = base
    answers = options.answers(
        args, [guest(args, hz, which, image, table) for (hz, which, table), image in todo.items()],
        selftests=paths.selftests(), archive="guest-wakeups")
    for (number, which, table), answer in zip(todo, answers):
        for governor, found in parse(answer.text("wakeups")).items():
            if which == "patched" or governor == "teo":
                for load, row in found.items():
                    rows[number, table, load]["base " * (which == "base") + governor] = row
    return rows


def cells(load: str, row: Row | None) -> str:
    if row is None:
        return "-"
    if load.startswith("idle"):
        return f"{row['wakeups']:.1f}, {row['deepest']:.2f} %"
    if "remote" in load:
        return f"{row['above']:.1f}"
    return f"{row['shallow1']:.1f} %"


COLUMNS = ("menu", "base teo", "teo")
NOTE = ("2 CPUs. idle: wake-ups per second, share of time in the deepest state; remote: choices "
        "per second that are too deep; others: how often state 1 was too shallow.")


def report(rows: Rows) -> list[list[str]]:
    return [[str(hz), load + f" with {table}" * bool(table),
             *(cells(load, found.get(name)) for name in COLUMNS)]
            for (hz, table, load), found in sorted(rows.items(), key=lambda r: r[0][0])
            if not table or load.startswith("idle")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", default="sapphire-rapids")
    options.where(parser, "idle")
    parser.add_argument("kernel", nargs="*", default=["250=base,patched"],
                        help="HZ=BASE,PATCHED (default 250=base,patched)")
    args = parser.parse_args()
    publish(args.out / "wakeups.csv", ("hz", "load", *COLUMNS), report(measure(args)), NOTE)
    return 0


if __name__ == "__main__":
    sys.exit(cli.ended("wakeups", main))
