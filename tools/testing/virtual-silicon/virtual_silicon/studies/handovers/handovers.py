# SPDX-License-Identifier: GPL-2.0
"""Work that goes from thread to thread, in guests: hops, wake-up latency, energy per hop.

Boots each kernel once per part of the plan, in deterministic time. Prints a table per part,
and the cells in which ours misses a goal. README.md says what to make of them.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import tomllib
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

from ... import cli, paths
from ...errors import Fail, GuestError, UsageError
from ...guest import initramfs, options
from ...guest.job import Job
from ...guest.pool import Guest, Guests
from ...loads import RECIPE
from ...machine import machine
from ...text import ends, publish
from ..bench import loads as bench

HERE = Path(__file__).resolve().parent
PLAN = HERE / "plan.toml"

#: Column: kernel, the variant of handovers.sh, and the idle governor if not the part's
COLUMNS = {"base": ("base", "schedutil", ""), "stock": ("stock", "schedutil", ""),
           "ours": ("patched", "schedutil", ""), "ours-menu": ("patched", "schedutil", "menu"),
           "no-chains": ("patched", "no-chains", ""), "no-choice": ("patched", "no-choice", ""),
           "base-schedutil": ("base-schedutil", "schedutil", ""),
           "ours-performance": ("patched", "performance", ""),
           "menu-performance": ("patched", "performance", "menu"),
           "performance": ("base", "performance", ""), "shallow": ("base", "shallow", ""),
           **{f"{teo}{end}": (teo, variant, "") for teo in ("base-teo", "7.3-teo")
              for end, variant in (("", "schedutil"), ("-no-choice", "no-choice"))}}
#: Which are to reach the goals.
OURS = ("ours", "ours-menu")
#: What a part has if it does not say.
USUAL = tuple(c for c in COLUMNS if "-teo" not in c
              and c not in ("no-chains", "no-choice", "base-schedutil", "menu-performance"))
#: Of hops per second as in the column shallow.
GOAL = 0.9
#: What handovers.sh takes: options of handovers.c, or a program and its parameter.
OPTIONS = re.compile(r"[a-z]=\w+(,[a-z]=\w+)*")
PROGRAMS = ("idle", "messages", "messaging", *bench.LOADS)


@dataclass(frozen=True)
class Part:
    """A table: of plan.toml."""

    name: str
    machine: str
    cpus: int
    hz: int
    idle: tuple[str, ...]
    loads: tuple[str, ...]
    columns: tuple[str, ...] = USUAL


@dataclass(frozen=True)
class Sample:
    """One load once."""

    rate: float
    p50: float
    p99: float
    longest: float
    watts: float

    @property
    def energy(self) -> float:
        """mJ per hop."""
        return 1000 * self.watts / self.rate


Key = tuple[str, str, str]	# idle governor, load, column
Samples = dict[Key, list[Sample]]


def plan(file: Path = PLAN) -> dict[str, Part]:
    parts = {}
    for name, row in tomllib.loads(file.read_text(encoding="utf-8"))["part"].items():
        try:
            part = Part(name, **{key: tuple(value) if isinstance(value, list) else value
                                 for key, value in row.items()})
        except TypeError as error:
            raise UsageError(f"{file.name}: part {name}: {error}") from error
        if unknown := set(part.columns) - COLUMNS.keys():
            raise UsageError(f"{file.name}: part {name}: no column {', '.join(sorted(unknown))}; "
                             f"there are: {', '.join(COLUMNS)}")
        for load in part.loads:
            _check(load, f"{file.name}: part {name}")
        parts[name] = part
    return parts


def _check(load: str, where: str) -> None:
    program, _, number = load.partition(":")
    if not OPTIONS.fullmatch(load) and not (program in PROGRAMS and number.isdecimal()):
        raise UsageError(f"{where}: {load!r} is no load; there are options like n=4,w=60, and "
                         f"PROGRAM:NUMBER of {', '.join(PROGRAMS)}")


def guest(args: argparse.Namespace, part: Part, kernel: str) -> Guest:
    path, files = options.built(args, kernel, part.hz)
    job = Job(files=dict(files))
    job.step("prepare", f"SECONDS_EACH={args.seconds}; . /usr/lib/vs/handovers.sh; "
             f"prepare_all '{' '.join(part.loads)}'")
    for idle in part.idle:
        for column in part.columns:
            of, variant, governor = COLUMNS[column]
            if of == kernel:
                job.step(f"{idle}/{column}", f"measure {governor or idle} {variant} "
                         f"'{' '.join(part.loads)}' {args.repeat}")
    m = machine.load(part.machine)
    # Steps of time of 1 us: a CPU that another one wakes starts at the next.
    m = replace(m, time=replace(m.time, quantum_ns=1000))
    return Guest(f"{part.name}-{kernel}", m, part.cpus, path, job,
                 f"intel_pstate=passive amd_pstate=passive {args.append}",
                 cost=part.cpus * len(part.loads) * len(job.steps))


def parse(text: str) -> list[tuple[str, Sample]]:
    found = []
    for line in text.splitlines():
        words = line.split()
        try:
            load, _, *numbers = words
            found.append((load, Sample(*map(float, numbers))))
        except (ValueError, TypeError) as error:
            raise GuestError(f"not a result: {line!r}") from error
    return found


def measure(args: argparse.Namespace, parts: list[Part]) -> dict[str, Samples]:
    """Of each part whose guests all answered."""
    recipe = RECIPE + initramfs.read_recipe(HERE / "recipe.txt")
    made = initramfs.ensure(args.out / "guest", None, recipe)
    todo = [(part, guest(args, part, kernel)) for part in parts for kernel in
            dict.fromkeys(COLUMNS[c][0] for c in part.columns)]
    answers = Guests(args.out, made, paths.qemu(), args.jobs).outcomes(
        [g for _, g in todo], args.kept)
    results: dict[str, Samples] = {part.name: defaultdict(list) for part in parts}
    for (part, g), answer in zip(todo, answers):
        if isinstance(answer, Fail):
            print(f"{g.name}: {answer} ({args.out / g.name}/console.log)", file=sys.stderr)
        if answer is None or isinstance(answer, Fail):
            continue
        for idle in part.idle:
            for column in part.columns:
                if f"{part.name}-{COLUMNS[column][0]}" == g.name:
                    for load, sample in parse(answer.text(f"{idle}/{column}")):
                        results[part.name][idle, load, column].append(sample)
    return results


HEAD = ("idle governor", "load", "setting", "rate", "rate least", "rate most", "p50 us", "p99 us",
        "longest us", "mJ each", "rate of shallow", "energy of shallow", "rate of base")
NOTE = ("Rate: hops per second, or what a program does in a second: median, least, most. Time from "
        "the call that wakes a thread until it runs; energy of the package per hop: medians. The "
        "last columns: over the medians of shallow, which is the base with performance and "
        "without states that take more than 20 us to leave, and of the base. Idle governor "
        "installed: the kernel's default, menu on the base and stock, teo on ours.")


def median(samples: list[Sample], name: str) -> float:
    return statistics.median(getattr(s, name) for s in samples)


def over(samples: Samples, key: Key, other: str, name: str) -> float | None:
    """Of the median in the other column. Where power cannot be read, energies are 0."""
    reference = samples.get((*key[:2], other))
    whole = median(reference, name) if reference else 0
    return median(samples[key], name) / whole if whole else None


def table(part: Part, samples: Samples) -> list[list[str]]:
    rows = []
    for key in ((idle, load, column) for idle in part.idle for load in part.loads
                for column in part.columns):
        if not (here := samples.get(key)):
            continue
        shares = [over(samples, key, *of) for of in
                  (("shallow", "rate"), ("shallow", "energy"), ("base", "rate"))]
        rows.append([*key, *ends([s.rate for s in here], ".5g"),
                     *(format(median(here, name), ".1f") for name in ("p50", "p99", "longest")),
                     f"{median(here, 'energy'):.4g}",
                     *("" if share is None else f"{share:.2f}" for share in shares)])
    return rows


def missed(part: Part, samples: Samples) -> list[list[str]]:
    """Cells in which the series is below a goal."""
    rows = []
    for key in samples:
        if key[2] not in OURS:
            continue
        shares = (over(samples, key, *of) for of in (
            ("shallow", "rate"), ("shallow", "energy"), ("base", "rate")))
        # As the table shows them
        rate, energy, of_base = (None if share is None else round(share, 2) for share in shares)
        why = [text for text, bad in (
            (f"{rate or 0:.2f} of shallow's rate", rate is not None and rate < GOAL),
            (f"{energy or 0:.2f} of its energy", energy is not None and energy > 1),
            (f"{of_base or 0:.2f} of the base's rate", of_base is not None and of_base < 1)) if bad]
        if why:
            rows.append([part.name, *key, ", ".join(why)])
    return rows


def main() -> int:
    parts = plan()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    options.where(parser, "handovers")
    options.stock(parser)
    add = parser.add_argument
    add("--parts", type=options.words, default=list(parts))
    add("--columns", type=options.words, default=[], help="in place of the parts'")
    add("--loads", type=str.split, help="those of handovers.sh, in place of the parts'")
    add("--base", default="base", help="the base's image")
    add("--patched", default="patched", help="our image")
    add("--seconds", type=float, default=0.15, help="of each load of handovers.c")
    add("--repeat", type=cli.count, default=5)
    add("--append", default="", help="more for the kernel command line")
    add("--kept", action="store_true", help="tables of what was measured before")
    args = parser.parse_args()
    options.known(parser, args, "parts", parts)
    options.known(parser, args, "columns", COLUMNS)
    for load in args.loads or ():
        _check(load, "--loads")
    chosen = [replace(p, columns=tuple(args.columns or p.columns),
                      loads=tuple(args.loads or p.loads))
              for p in (parts[name] for name in args.parts)]
    results = measure(args, chosen)
    chosen = [part for part in chosen if results[part.name]]
    for part in chosen:
        publish(args.out / f"{part.name}.csv", HEAD, table(part, results[part.name]), NOTE)
    publish(args.out / "missed.csv", ("part", "idle governor", "load", "setting", "has"),
            [row for part in chosen for row in missed(part, results[part.name])],
            f"Cells in which ours, with its idle governor or with menu, has less than {GOAL} of "
            "shallow's rate, more energy per hop than it, or a lower rate than the base.")
    return 0


if __name__ == "__main__":
    sys.exit(cli.ended("handovers", main))
