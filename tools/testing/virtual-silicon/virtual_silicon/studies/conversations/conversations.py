# SPDX-License-Identifier: GPL-2.0
"""Tasks that take turns, in guests: schedutil of the base, of a stock kernel, and ours without
and with chains, and the performance governor.

Boots each kernel, in deterministic time. Prints a table: result, clock of busy CPUs, energy
per unit of the result, and writes of PERF_CTL that change it per second. README.md says what
to make of it.
"""
from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from ... import cli
from ...errors import GuestError
from ...guest import options
from ...guest.job import Job
from ...guest.pool import Guest
from ...text import ends, publish

HERE = Path(__file__).resolve().parent

#: What a load's result is, by the unit; of time, less is better.
RATES = ("pipe", "unix", "tcp", "udp", "futex", "ring3", "ring4", "legs0.1", "legs1", "legs5",
         "forks", "serial", "paced5", "paced20", "paced50", "server", "busyserver", "parallel",
         "producer", "frames17", "frames33", "lapse", "join", "hog", "bystander", "tbench-1",
         "tbench-2", "tbench-4", "tbench-8", "idle")
TIMES = ("cold", "hackbench", "perf-pipe", "shell", "sockperf-udp", "sockperf-tcp")

#: Column: kernel, and the variant of conversations.sh
COLUMNS = {"base": ("base", "0"), "stock": ("stock", "0"), "without": ("patched", "0"),
           "with": ("patched", "1"), "performance": ("patched", "performance")}


@dataclass(frozen=True)
class Sample:
    """One load once, in one column."""

    column: str
    load: str
    result: float
    mhz: float
    joules: float
    seconds: float
    writes: float

    @property
    def per_unit(self) -> float:
        """Energy per unit of what was done, in any unit."""
        done = 1 if self.load in TIMES else self.result * self.seconds
        return self.joules / done


def parse(kernel: str, text: str, tsc_khz: int) -> list[Sample]:
    samples = []
    names = {pair: name for name, pair in COLUMNS.items()}
    for line in text.splitlines():
        words = line.split()
        if len(words) != 8:
            raise GuestError(f"not a result: {line!r}")
        variant, load = words[:2]
        result, seconds, cycles, reference, joules, writes = map(float, words[2:])
        samples.append(Sample(names[kernel, variant], load, result,
                              tsc_khz / 1000 * cycles / reference, joules, seconds,
                              writes / seconds))
    return samples


def guest(args: argparse.Namespace, kernel: str, number: int) -> Guest:
    variants = [COLUMNS[c][1] for c in args.columns if COLUMNS[c][0] == kernel]
    job = Job()
    # Each boot begins at another phase of everything.
    job.step("loads", f"SECONDS_EACH={args.seconds}; . /usr/lib/vs/conversations.sh; "
             f"sleep 0.{37 * number + 1:04d}; "
             f"measure_all '{' '.join(variants)}' '{' '.join(args.loads)}' {args.repeat}")
    return options.guest(args, f"{kernel}-{number}", kernel, job)


HEAD = ("load", "setting", "result", "result least", "result most", "MHz", "MHz least", "MHz most",
        "of performance", "energy of performance", "writes/s", "writes/s least", "writes/s most")
NOTE = ("Result, clock of busy CPUs, and writes of PERF_CTL that change it per second: median, "
        "least, most. Result and energy per unit of it over those with the governor performance. "
        "Of cold, hackbench, shell, perf-pipe and sockperf less is better.")


def table(samples: list[Sample]) -> list[list[str]]:
    found: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for sample in samples:
        found[sample.load, sample.column].append(sample)
    rows = []
    for load, column in itertools.product(RATES + TIMES, COLUMNS):
        here, top = found.get((load, column)), found.get((load, "performance"))
        if not here:
            continue
        shares = ["", ""]
        if top and here is not top:
            result, joules = (statistics.median(getattr(s, name) for s in here)
                              / statistics.median(getattr(s, name) for s in top)
                              for name in ("result", "per_unit"))
            shares = [f"{1 / result if load in TIMES else result:.2f}", f"{joules:.2f}"]
        rows.append([load, column, *ends([s.result for s in here], ".5g"),
                     *ends([s.mhz for s in here], ".0f"), *shares,
                     *ends([s.writes for s in here], ".0f")])
    return rows


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    options.both_kernels(parser, "conversations", HERE.parent / "idle/sapphire-rapids-fine.toml", 1)
    parser.add_argument("--loads", type=options.words, default=list(RATES + TIMES))
    parser.add_argument("--columns", type=options.words,
                        default=[column for column in COLUMNS if column != "stock"])
    options.stock(parser)
    parser.add_argument("--seconds", type=float, default=1, help="of each load")
    parser.add_argument("--repeat", type=cli.count, default=1, help="in each boot")
    args = parser.parse_args()
    options.known(parser, args, "loads", RATES + TIMES)
    options.known(parser, args, "columns", COLUMNS)
    return args


def measure(args: argparse.Namespace) -> list[Sample]:
    boots = [(kernel, number) for number in range(args.boots)
             for kernel in dict.fromkeys(COLUMNS[c][0] for c in args.columns)]
    guests = [guest(args, *which) for which in boots]
    answers = options.answers(args, guests, HERE / "recipe.txt")
    return [sample for (kernel, _), g, answer in zip(boots, guests, answers)
            for sample in parse(kernel, answer.text("loads"), g.machine.tsc_khz)]


def main() -> int:
    args = arguments()
    publish(args.out / "conversations.csv", HEAD, table(measure(args)), NOTE)
    return 0


if __name__ == "__main__":
    sys.exit(cli.ended("conversations", main))
