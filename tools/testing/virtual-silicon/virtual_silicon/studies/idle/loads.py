# SPDX-License-Identifier: GPL-2.0
"""Loads under each idle governor, in guests: a table of results beside menu's.

Boots the base kernel and ours, in deterministic time; ours with the teo of Linux 7.3 if --other
names it, and a stock kernel with menu if --stock does. Each runs the loads of loads.sh under each
idle governor and each frequency governor, one after the other, several times. README.md says
what to make of the table.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from ... import cli, paths
from ...errors import GuestError
from ...guest import options
from ...guest.job import Job
from ...guest.pool import Guest
from ...stats import welch
from ...text import publish

HERE = Path(__file__).resolve().parent


#: What each load says: name and unit of each number; "-" if less is better.
LOADS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "hackbench": (("hackbench", "s", "-"),),
    "pipe": (("hackbench -p, one pair", "s", "-"),),
    "perf-pipe": (("perf bench sched pipe", "us/op", "-"),),
    "tbench-1": (("tbench, 1 client", "operations", "+"),),
    "dbench-1": (("dbench, 1 client", "operations", "+"),),
    "pipe-rr": (("pipe, round trips", "1/s", "+"),),
    "tcp-rr": (("TCP, round trips", "1/s", "+"),),
    "udp-rr": (("UDP, round trips", "1/s", "+"),),
    "pipe-rest": (("pipe, round trips after a rest", "1/s", "+"),),
    "tcp-rest": (("TCP, round trips after a rest", "1/s", "+"),),
    "udp-rest": (("UDP, round trips after a rest", "1/s", "+"),),
    "pipe-paced": (("pipe, paced round trip", "us", "-"),),
    "tcp-paced": (("TCP, paced round trip", "us", "-"),),
    "udp-paced": (("UDP, paced round trip", "us", "-"),),
    "tcp-stream": (("TCP stream", "MB/s", "+"),),
    "udp-stream": (("UDP stream", "MB/s", "+"),),
    "sockperf-udp": (("sockperf under load, UDP", "us", "-"),
                     ("sockperf under load, UDP, p99", "us", "-")),
    "sockperf-tcp": (("sockperf under load, TCP", "us", "-"),
                     ("sockperf under load, TCP, p99", "us", "-")),
    "sockperf-1ms": (("the same, UDP, a reply per ms", "us", "-"),
                     ("the same, UDP, a reply per ms, p99", "us", "-")),
    "pipe-io": (("fio-like, requests", "1/s", "+"),),
    "timers": (("lateness of timers", "us", "-"),),
    "ticks": (("tick stops", "", "-"), ("timers run for another CPU", "", "-")),
    "rest": (("power without load", "W", "-"), ("tick stops without load", "", "-"),
             ("timers run for another CPU without load", "", "-")),
    "messages": (("messages, p50", "us", "-"), ("messages, p99", "us", "-")),
    "shell": (("150 shell pipelines", "s", "-"),),
}

#: Which kernel and governor a column is of.
COLUMNS = {"base menu": ("base", "menu"), "base teo": ("base", "teo"),
           "stock menu": ("stock", "menu"), "menu": ("patched", "menu"),
           "7.3 teo": ("other", "teo"), "teo": ("patched", "teo")}
#: Governors of a kernel that has not all of --idle.
IDLE = {"stock": ["menu"], "other": ["teo"]}


@dataclass
class Samples:
    """Repetitions of one load under one kernel and governor."""

    values: list[tuple[float, ...]] = field(default_factory=list)
    above: list[float] = field(default_factory=list)
    below: list[float] = field(default_factory=list)
    watts: list[float] = field(default_factory=list)


Key = tuple[str, str, str, str]		# frequency governor, kernel, idle governor, load
Results = dict[Key, Samples]


def parse(kernel: str, text: str, into: Results) -> None:
    """Lines of loads.sh; a load that gave no result is an error."""
    for line in text.splitlines():
        words = line.split()
        if len(words) < 3 or words[2] not in LOADS:
            continue
        frequency, idle, name, *numbers = words
        try:
            *values, above, below, seconds, joules = map(float, numbers)
        except ValueError as error:
            raise GuestError(f"not a result: {line!r}") from error
        if len(values) != len(LOADS[name]):
            raise GuestError(f"{name} said nothing: {line!r}")
        samples = into[frequency, kernel, idle, name]
        samples.values.append(tuple(values))
        samples.above.append(above / seconds)
        samples.below.append(below / seconds)
        samples.watts.append(joules / seconds)


def guest(args: argparse.Namespace, kernel: str, seed: int) -> Guest:
    j = Job()
    idle = IDLE.get(kernel, args.idle)
    # perf's counter of energy is a module of Debian's kernel, which the guest lacks.
    names = [name for name in args.loads if (kernel, name) != ("stock", "rest")]
    # Time moves on by a little, and with it everything that depends on chance.
    j.step("loads", f"LOADS='{' '.join(names)}'; . /usr/lib/vs/loads.sh; "
           f"sleep 0.{37 * seed + 1:04d}; "
           f"rounds {args.rounds} '{' '.join(idle)}' '{' '.join(args.frequency)}'")
    j.step("dmesg", "dmesg")
    return options.guest(args, f"loads-{kernel}-{seed}", kernel, j, args.trace)


def change(sign: str, reference: list[float], values: list[float]) -> tuple[float, float]:
    """How much better than `reference`, and the noise, in percent; NaN if unknown or of 0."""
    mean = statistics.fmean(reference)
    if not mean:
        return math.nan, math.nan
    better = statistics.fmean(values) - mean
    noise = welch(reference, values) if min(len(values), len(reference)) > 1 else math.nan
    return 100 * (better if sign == "+" else -better) / mean, 100 * noise / mean


def column(results: Results, frequency: str, name: str, load: str) -> Samples:
    return results.get((frequency, *COLUMNS[name], load), Samples())


HEAD = ("frequency governor", "load", "unit", "setting", "result", "better %", "±", "above/s",
        "below/s", "W")
NOTE = ("Mean; how much better than the same kernel's menu, and half the 95 % interval of that; "
        "choices per second that were too deep and too shallow; power of the packages.")


def compared(sign: str, index: int, samples: Samples, reference: Samples) -> list[str]:
    """Result, how much better it is, and the noise; nothing for what is not known."""
    values = [v[index] for v in samples.values]
    shown = [f"{statistics.fmean(values):.5g}", "", ""]
    if samples is not reference and reference.values:
        for at, (number, form) in enumerate(zip(
                change(sign, [v[index] for v in reference.values], values), ("+.1f", ".1f")), 1):
            shown[at] = "" if math.isnan(number) else format(number, form)
    return shown


def table(results: Results, frequency: str, load: str) -> list[list[str]]:
    """Results beside those of the same kernel's menu, and wrong choices per second."""
    rows = []
    for (index, (title, unit, sign)), name in itertools.product(
            enumerate(LOADS[load]), COLUMNS):
        samples = column(results, frequency, name, load)
        if samples.values:
            reference = name if "menu" in name else "base menu" if "base" in name else "menu"
            more = [] if index else [(samples.above, ".0f"), (samples.below, ".0f"),
                                     (samples.watts, ".2f")]
            rows.append([frequency, title, unit, name,
                         *compared(sign, index, samples,
                                   column(results, frequency, reference, load)),
                         *([format(statistics.fmean(n), form) for n, form in more] or [""] * 3)])
    return rows


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    options.both_kernels(parser, "idle", HERE / "sapphire-rapids-fine.toml", 3)
    parser.add_argument("--rounds", type=cli.count, default=2, help="in each boot")
    parser.add_argument("--kernels", type=options.words, default=["base", "patched"])
    options.stock(parser)
    parser.add_argument("--other", help="image of kernel.sh 7.3-teo")
    parser.add_argument("--idle", type=options.words, default=["menu", "teo"])
    parser.add_argument("--frequency", type=options.words, default=["performance", "schedutil"])
    parser.add_argument("--loads", type=options.words, default=list(LOADS))
    parser.add_argument("--trace", action="store_true", help="keep the model's traces")
    parser.add_argument("--first", type=int, default=0, help="number of the first boot")
    args = parser.parse_args()
    options.known(parser, args, "loads", LOADS)
    return args


def measure(args: argparse.Namespace) -> Results:
    results: Results = defaultdict(Samples)
    boots = [(kernel, seed) for seed in range(args.first, args.first + args.boots)
             for kernel in [*args.kernels, *(k for k in IDLE if getattr(args, k))]]
    answers = options.answers(args, [guest(args, *which) for which in boots],
                              HERE / "recipe.txt", paths.selftests())
    for (kernel, _), answer in zip(boots, answers):
        parse(kernel, answer.text("loads"), results)
    return results


def main() -> int:
    args = arguments()
    results = measure(args)
    publish(args.out / "loads.csv", HEAD,
            [row for frequency in dict.fromkeys(key[0] for key in results) for load in LOADS
             for row in table(results, frequency, load)], NOTE)
    return 0


if __name__ == "__main__":
    sys.exit(cli.ended("loads", main))
