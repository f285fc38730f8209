# SPDX-License-Identifier: GPL-2.0
"""Which freq_max schedutil fares best with on servers: time, energy and latency of loads.

Boots parts with all their cores in deterministic time: the base kernel, and ours with
several freq_max. Few, half and all of the cores have work. README.md of the study
invariance says what to make of the table.
"""
from __future__ import annotations

import argparse
import statistics
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from ... import cli, paths, stats
from ...errors import GuestError
from ...guest import initramfs, options
from ...guest.initramfs import Item
from ...guest.job import Job
from ...guest.pool import Guest, Guests
from ...loads import RECIPE
from ...machine import machine
from ...text import publish

HERE = Path(__file__).resolve().parent

#: Of each part, by active cores: 4, half of them or as the base reads the table, all.
CHOICES = {"platinum-8568y": ("4c", "24c", "255c"), "platinum-8360y": ("4c", "27c", "255c"),
           "w9-3595x": ("4c", "20c", "255c")}
BASE, PARAMETER = "base", "aperfmperf.freq_max"
LOADS = ("gitsource", "kernbench-few", "kernbench-half", "kernbench-full", "tbench-few",
         "tbench-half", "tbench-full", "requests-few", "requests-half", "requests-full")
#: What counts, by the place in a line of servers.sh; less is better.
COLUMNS = ("time", "energy", "mean", "99 %")
NOTE = ("Medians with freq_max of 4 cores: s and J, of tbench per megabyte; mean and 99th "
        "percentile of requests' latencies in us. The others over that, with 95 % intervals.")

Samples = dict[tuple[str, str], list[list[float]]]	# by setting and load: a row per seed


def guest(args: argparse.Namespace, name: str, setting: str) -> Guest:
    kernel = "base" if setting == BASE else "patched"
    m, job = replace(machine.load(name), threads=1), Job()
    job.step("loads", f". /usr/lib/vs/servers.sh; servers; loads '{' '.join(args.loads)}' "
             f"{args.seeds}")
    return Guest(f"{name}-{setting}", m, m.cores, paths.kernel(getattr(args, kernel)), job,
                 "intel_pstate=passive cpufreq.default_governor=schedutil cpuidle.governor=menu"
                 + f" {PARAMETER}={setting}" * (setting != BASE))


def parse(text: str, setting: str, seeds: int, into: Samples) -> None:
    """Seconds and joules, of tbench per megabyte, and what latencies there are."""
    for line in text.splitlines():
        words = line.split()
        if words[:1] != ["load"]:
            continue
        try:
            seconds, joules, amount, _, _, *late = map(float, words[3:])
        except ValueError as error:
            raise GuestError(f"{setting}: {line}") from error
        megabytes = amount / 1e6 if words[1].startswith("tbench") else 1
        into[setting, words[1]].append([seconds / megabytes, joules / megabytes, *late])
    if any(len(rows) != seeds for rows in into.values()):
        raise GuestError(f"{setting}: loads are missing: {text[-300:]}")


def table(name: str, samples: Samples) -> list[list[str]]:
    """Each load and number: the median with 4 cores, and the others over that."""
    rows = []
    settings = (*CHOICES[name], BASE)
    for load in dict.fromkeys(of for _, of in samples):
        for n, column in enumerate(COLUMNS[:len(samples[settings[0], load][0])]):
            if (load.split("-")[0], column) == ("requests", "time"):
                continue	# that of the last arrival
            first, *others = ([row[n] for row in samples[s, load]] for s in settings)
            ratios = [stats.paired(other, first) for other in others]
            rows.append([name, load, column, f"{statistics.median(first):.4g}",
                         *(r.spread(".3f") for r in ratios)])
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.where(parser, "servers")
    parser.add_argument("--machines", type=options.words, default=list(CHOICES))
    parser.add_argument("--loads", type=options.words, default=list(LOADS))
    parser.add_argument("--seeds", type=cli.count, default=5)
    parser.add_argument("--base", default="base", help="the base's image")
    parser.add_argument("--patched", default="patched", help="our image")
    args = parser.parse_args()
    options.known(parser, args, "machines", CHOICES)
    options.known(parser, args, "loads", LOADS)
    own = [Item("own", str(HERE / "servers.sh"), "usr/lib/vs/servers.sh")]
    pool = Guests(args.out, initramfs.ensure(args.out / "guest", more=[*RECIPE, *own]),
                  paths.qemu(), args.jobs)
    todo = [(name, setting) for name in args.machines for setting in (*CHOICES[name], BASE)]
    answers = pool.answers([guest(args, *which) for which in todo])
    for name in args.machines:
        samples: Samples = defaultdict(list)
        for (of, setting), answer in zip(todo, answers):
            if of == name:
                parse(answer.text("loads"), setting, args.seeds, samples)
        publish(args.out / f"{name}.csv", ("part", "load", "what", *CHOICES[name], BASE),
                table(name, samples), NOTE)
    return 0


if __name__ == "__main__":
    sys.exit(cli.ended("servers", main))
