# SPDX-License-Identifier: GPL-2.0
"""What C0.2 is worth beside POLL and C1, in guests: watts, latencies, how often it is used.

Boots the base kernel and ours, in deterministic time at 3.8 GHz. c02.md says what to
make of the tables.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from ... import cli, stats
from ...errors import GuestError
from ...guest import boot, options
from ...guest.job import Job
from ...guest.pool import Guest
from ...text import publish

HERE = Path(__file__).resolve().parent

#: Rows: kernel; governor, latency limit in us, idle_poll, states allowed.
CASES: dict[str, tuple[str, str]] = {
    "no limit, base menu": ("base", "menu '' off"),
    "no limit, base teo": ("base", "teo '' off"),
    "no limit, ours": ("patched", "teo '' off"),
    "no limit, ours without C0.2": ("patched", "teo '' off POLL C1 C1E C6"),
    "POLL": ("base", "menu 0 off"),
    "limit 0, ours": ("patched", "teo 0 off"),
    "limit 0, idle_poll=c02": ("patched", "teo 0 c02"),
    "limit 1 us, base menu": ("base", "menu 1 off"),
    "limit 1 us, base teo": ("base", "teo 1 off"),
    "limit 1 us, ours": ("patched", "teo 1 off"),
    "limit 1 us, C1 forbidden, base": ("base", "menu 1 off POLL"),
    "limit 1 us, C1 forbidden, ours": ("patched", "teo 1 off POLL C0.2"),
    "C1 only": ("base", "menu '' off C1"),
}

#: Columns: what of which load, and its unit.
COLUMNS: dict[str, tuple[str, str]] = {
    "idle, W": ("idle", "watts"),
    "interrupt, median ns": ("irq", "median"),
    "interrupt, p99 ns": ("irq", "p99"),
    "signal, median ns": ("signal", "median"),
    "1 us polling, mean ns": ("poll", "mean"),
    "1 us polling, W": ("poll", "watts"),
    "1 us polling, entries of C0.2/s": ("poll", "state C0.2"),
    "hand-over, mean ns": ("handover", "mean"),
    "hand-over, W": ("handover", "watts"),
    "hand-over, entries of C0.2/s": ("handover", "state C0.2"),
}

Values = dict[str, dict[str, list[float]]]	# case, column


def parse(text: str) -> dict[tuple[str, str], float]:
    """One repetition."""
    found: dict[tuple[str, str], float] = {}
    samples: dict[str, list[float]] = defaultdict(list)
    for line in text.splitlines():
        load, *words = line.split()
        if words[:1] == ["ns"]:
            samples[load].append(float(words[1]))
        elif words[:1] == ["state"]:
            found[load, f"state {words[1]}"] = float(words[2])
        elif len(words) == 2:
            found[load, words[0]] = float(words[1])
    for load, values in samples.items():
        values.sort()
        found[load, "median"] = statistics.median(values)
        found[load, "p99"] = values[len(values) * 99 // 100]
    return found


def cases(args: argparse.Namespace, kernel: str) -> list[str]:
    return [name for name, (which, _) in CASES.items()
            if which == kernel and (not args.cases or name in args.cases)]


def guest(args: argparse.Namespace, kernel: str, number: int) -> Guest:
    job = Job()
    job.step("clock", f"put userspace $CPU/cpu[0-9]*/cpufreq/scaling_governor; "
             f"put {args.khz} $CPU/cpu[0-9]*/cpufreq/scaling_setspeed; "
             f"sleep 1.{37 * number + 1:04d}")
    for i, name in enumerate(cases(args, kernel)):
        job.step(f"case-{i}", f". /usr/lib/vs/c02.sh; under {CASES[name][1]}; loads")
    return options.guest(args, f"c02-{kernel}-{number}", kernel, job)


def read(result: boot.Result, names: list[str], into: Values) -> None:
    for i, name in enumerate(names):
        found = parse(result.text(f"case-{i}"))
        if not found.keys() & COLUMNS.values():
            raise GuestError(f"{name}: the guest measured nothing",
                             result.text(f"case-{i}"))
        for column, key in COLUMNS.items():
            if key in found:
                into[name][column].append(found[key])


def shown(values: list[float]) -> list[str]:
    """Mean and half the 95 % interval."""
    mean = statistics.fmean(values)
    return [f"{mean:.0f}" if mean >= 1000 else f"{mean:.4g}",
            f"{stats.half(values):.2g}" if len(values) > 1 else ""]


def table(values: Values) -> list[list[str]]:
    return [[name, column, *shown(values[name][column])] for name in CASES for column in COLUMNS
            if values.get(name, {}).get(column)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    options.both_kernels(parser, "idle", HERE / "sapphire-rapids-fine.toml", 5)
    parser.add_argument("--khz", type=int, default=3_800_000)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), metavar="ROW",
                        help="these rows only")
    args = parser.parse_args()
    values: Values = defaultdict(lambda: defaultdict(list))
    boots = [(kernel, number) for number in range(args.boots) for kernel in ("base", "patched")]
    results = options.answers(args, [guest(args, *which) for which in boots],
                              HERE / "c02-recipe.txt", archive="guest-c02")
    for (kernel, _), result in zip(boots, results):
        read(result, cases(args, kernel), values)
    publish(args.out / "c02.csv", ("case", "measure", "mean", "±"), table(values),
            "Mean and half the 95 % interval of all boots.")
    return 0


if __name__ == "__main__":
    sys.exit(cli.ended("c02", main))
