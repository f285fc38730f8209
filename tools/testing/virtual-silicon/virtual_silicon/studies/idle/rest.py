# SPDX-License-Identifier: GPL-2.0
"""What a client's package draws in the seconds after it has booted, under each idle governor.

A package rests only while all of its CPUs are in their deepest state: one CPU that sleeps
in another one keeps it awake. Each boot begins the measurement at another time.
"""
from __future__ import annotations

import argparse
import statistics
import sys
from dataclasses import replace

from ... import cli, paths
from ...guest import options
from ...guest.job import Job
from ...guest.pool import Guest
from ...machine import machine
from ...text import publish
from ..validation.reproduce import joules

MACHINES = {"core-i5-1035g4": 4, "core-i7-1260p": 12, "core-i9-11900k": 8, "e3-1240-v5": 4}
#: Kernel and idle governor
COLUMNS = {"base menu": ("base", "menu"), "7.3 teo": ("other", "teo"), "menu": ("patched", "menu"),
           "teo": ("patched", "teo")}
SECONDS = 3


def guest(args: argparse.Namespace, name: str, column: str, number: int) -> Guest:
    kernel, governor = COLUMNS[column]
    job = Job()
    job.step("rest", f"sleep 1.{37 * number + 1:04d}; dump_zones; vs-load -m 10 -c none "
             f"-t {SECONDS}")
    return Guest(f"rest-{name}-{column.replace(' ', '-')}-{number}",
                 replace(machine.load(name), threads=1), MACHINES[name],
                 paths.kernel(getattr(args, kernel)), job, f"cpuidle.governor={governor}",
                 cost=MACHINES[name])


def watts(text: str) -> float:
    return joules(text) / SECONDS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    options.where(parser, "idle")
    parser.add_argument("--boots", type=int, default=6, help="of each kernel and governor")
    parser.add_argument("--base", default="base", help="the base's image")
    parser.add_argument("--patched", default="patched", help="our image")
    parser.add_argument("--other", help="image of kernel.sh 7.3-teo")
    args = parser.parse_args()
    cells = [(name, column) for name in MACHINES for column in COLUMNS
             if args.other or COLUMNS[column][0] != "other"]
    results = options.answers(args, [guest(args, *cell, number) for cell in cells
                                     for number in range(args.boots)])
    rows = []
    for i, cell in enumerate(cells):
        found = [watts(result.text("rest"))
                 for result in results[i * args.boots:(i + 1) * args.boots]]
        rows.append([*cell, *(f"{w:.3f}" for w in (statistics.median(found), min(found),
                                                  max(found)))])
    publish(args.out / "rest.csv", ("machine", "setting", "W", "W least", "W most"), rows,
            f"Package power in {SECONDS} s, beginning 1 to 1.{37 * args.boots:04d} s after the "
            f"boot, {args.boots} boots: median, least, most.")
    return 0


if __name__ == "__main__":
    sys.exit(cli.ended("rest", main))
