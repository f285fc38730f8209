#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""One governor against the best of others, in cells of state table, HZ and latency.

For each cell and set of traces (recorded ones, and those of generate_traces.py with each
seed): of the distance between the best opponent and the least energy, the share
that the governor closes, the same for adequate choices, its worst trace, its tick
stops and its exit latency. Each trace weighs the same; the best opponent is the one
with the best mean. A second table has the traces on which it loses. Where there are
several sets, figures are medians over them, with the least and the greatest.
"""
from __future__ import annotations

import argparse
import csv
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean, median

HERE = Path(__file__).resolve().parent
PROGRAM = HERE.parents[2] / "build/replay/governor-replay"
BOUND = "least-energy"
#: Stops of the tick that are not looked at, however many times menu's they are.
FEW_STOPS = 20

Result = dict[str, float]
Runs = dict[str, dict[str, Result]]     # by trace and governor


@dataclass
class Trace:
    """The governor on one trace, beside the opponent that did best there."""
    name: str
    energy: float           # the governor's, of the least
    best: float             # the opponent's
    opponent: str
    stops: int
    menu_stops: int
    latency: float          # us per wake-up
    least_latency: float    # the bound's

    @property
    def worse(self) -> float:
        return 100 * (self.energy / self.best - 1)

    def stops_more(self) -> bool:
        return self.stops > 1.1 * self.menu_stops + FEW_STOPS


@dataclass
class Cell:
    """One state table, tick rate and latency, over one set of traces."""
    table: str
    hz: int
    share: str
    set: str
    opponent: str
    energy: float
    best: float
    energy_closed: float    # %
    adequate: float         # %
    adequate_best: float
    adequate_closed: float
    stops: int
    menu_stops: int
    latency: float
    least_latency: float
    traces: list[Trace] = field(default_factory=list)

    @property
    def latency_more(self) -> float:
        return 100 * (self.latency / self.least_latency - 1) if self.least_latency else 0.0

    @property
    def worst(self) -> Trace:
        return max(self.traces, key=lambda t: t.worse)


def share(part: float, whole: float) -> float:
    """Percent; of nothing there is nothing to close."""
    return 100 * part / whole if whole > 1e-9 else 0.0


def wake_latency(result: Result) -> float:
    return result["wake_latency_ns"] / result["periods"] / 1000


def judge(runs: Runs, governor: str, opponents: list[str], menu: str, **key: object) -> Cell:
    """What the results of one cell come to."""
    energy = {g: mean(r[g]["energy"] / r[BOUND]["energy"] for r in runs.values())
              for g in [governor, *opponents]}
    adequate = {g: mean(100 * r[g]["adequate"] / r[g]["decisions"] for r in runs.values())
                for g in [governor, *opponents]}
    opponent = min(opponents, key=energy.__getitem__)
    best_adequate = max(adequate[o] for o in opponents)
    traces = []
    for name, r in runs.items():
        there = min(opponents, key=lambda o: r[o]["energy"])
        traces.append(Trace(name, r[governor]["energy"] / r[BOUND]["energy"],
                            r[there]["energy"] / r[BOUND]["energy"], there,
                            int(r[governor]["tick_stops"]), int(r[menu]["tick_stops"]),
                            wake_latency(r[governor]), wake_latency(r[BOUND])))
    return Cell(opponent=opponent, energy=energy[governor], best=energy[opponent],
                energy_closed=share(energy[opponent] - energy[governor], energy[opponent] - 1),
                adequate=adequate[governor], adequate_best=best_adequate,
                adequate_closed=share(adequate[governor] - best_adequate, 100 - best_adequate),
                stops=sum(t.stops for t in traces), menu_stops=sum(t.menu_stops for t in traces),
                latency=mean(t.latency for t in traces), least_latency=mean(t.least_latency for t in traces),
                traces=traces, **key)   # type: ignore[arg-type]


@dataclass(frozen=True)
class Job:
    """One call of the program: some traces of a set, all tables."""
    set: str
    hz: int
    share: str
    files: tuple[Path, ...]


def split(files: list[Path], parts: int) -> Iterator[tuple[Path, ...]]:
    """Of about the same size each, so that no one waits for the last."""
    ordered = sorted(files, key=lambda f: -f.stat().st_size)
    for part in range(parts):
        if chosen := tuple(ordered[part::parts]):
            yield chosen


class Failed(Exception):
    """What the program said."""


def run(job: Job, args: argparse.Namespace, governors: list[str]) -> list[dict]:
    words: list[object] = [args.program, "--json", "--hz", job.hz, "--exit-latency", job.share]
    for option, values in (("--governor", governors), ("--states", args.states)):
        words += itertools.chain.from_iterable((option, v) for v in values)
    words += [*args.options, *job.files]
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode:
        raise Failed(done.stderr.strip())
    return [json.loads(line) for line in done.stdout.splitlines()]


def run_all(jobs: list[Job], args: argparse.Namespace, governors: list[str]) -> dict[tuple, Runs]:
    """By table, HZ, share and set."""
    found: dict[tuple, Runs] = {}
    begin = time.monotonic()
    with ThreadPoolExecutor(args.jobs) as pool:
        waiting = {pool.submit(run, job, args, governors): job for job in jobs}
        for number, future in enumerate(as_completed(waiting), 1):
            job = waiting[future]
            for line in future.result():
                cell = found.setdefault((line["states"], job.hz, job.share, job.set), {})
                cell[line["trace"]] = line["governors"]
            if not args.quiet:
                print(f"\r{number} of {len(jobs)} replays, {time.monotonic() - begin:.0f} s",
                      end="", file=sys.stderr, flush=True)
    if not args.quiet:
        print(file=sys.stderr)
    return found


CELLS = ("traces", "states", "hz", "latency", "adequate best %", "adequate %", "adequate closed %",
         "adequate closed least", "adequate closed most", "energy best", "energy", "energy closed %",
         "energy closed least", "energy closed most", "worst trace", "worst energy %",
         "tick stops % of menu", "exit latency % over bound")
LOSERS = ("traces", "trace", "measure", "of the governor", "of the opponent", "opponent", "cell", "cells")


def ends(values: list[float]) -> list[str]:
    return [f"{v:.0f}" for v in (median(values), min(values), max(values))]


def values(cells: list[Cell]) -> list[str]:
    """Of one cell over several sets, as CELLS has them behind the kind of the traces."""
    first = cells[0]
    worst = max((c.worst for c in cells), key=lambda t: t.worse)
    return [first.table, str(first.hz), first.share,
            f"{median(c.adequate_best for c in cells):.1f}", f"{median(c.adequate for c in cells):.1f}",
            *ends([c.adequate_closed for c in cells]),
            f"{median(c.best for c in cells):.3f}", f"{median(c.energy for c in cells):.3f}",
            *ends([c.energy_closed for c in cells]), worst.name, f"{worst.worse:+.1f}",
            f"{share(sum(c.stops for c in cells), sum(c.menu_stops for c in cells)):.0f}",
            f"{median(c.latency_more for c in cells):+.1f}"]


def losers(cells: list[Cell], margin: float) -> list[tuple[str, ...]]:
    """By trace: where it takes more energy, or stops the tick more often, than it may; LOSERS
    without the kind of the traces."""
    energy: dict[str, list[tuple[float, str, str]]] = {}
    stops: dict[str, list[tuple[int, int, str]]] = {}
    for c in cells:
        for t in c.traces:
            if t.worse > margin:
                energy.setdefault(t.name, []).append((t.worse, t.opponent, f"{c.table} {c.hz} {c.share}"))
            if t.stops_more():
                stops.setdefault(t.name, []).append((t.stops, t.menu_stops, f"{c.table} {c.hz} {c.share}"))
    found: list[tuple[str, ...]] = []
    for name in sorted(energy, key=lambda n: -max(energy[n])[0]):
        by, opponent, where = max(energy[name])
        found.append((name, "energy %", f"{by:+.1f}", "", opponent, where, str(len(energy[name]))))
    for name in sorted(stops, key=lambda n: -max(stops[n])[0]):
        ours, menus, where = max(stops[name])
        found.append((name, "tick stops", str(ours), str(menus), "base-menu", where, str(len(stops[name]))))
    return found


def kinds(cells: list[Cell]) -> dict[str, list[Cell]]:
    """Sets of one kind belong together: `seed 1` and `seed 2` are generated ones."""
    found: dict[str, list[Cell]] = {}
    for c in cells:
        found.setdefault("generated" if c.set.startswith("seed ") else c.set, []).append(c)
    return found


def grouped(cells: list[Cell]) -> list[list[Cell]]:
    """Of the same states, HZ and latency."""
    by_key: dict[tuple, list[Cell]] = {}
    for c in cells:
        by_key.setdefault((c.table, c.hz, c.share), []).append(c)
    return list(by_key.values())


def tables(cells: list[Cell], margin: float) -> dict[str, list[Sequence[str]]]:
    """The rows of cells.csv and losers.csv."""
    some = kinds(cells)
    return {"cells": [CELLS, *([kind, *values(g)] for kind, c in some.items() for g in grouped(c))],
            "losers": [LOSERS, *([kind, *x] for kind, c in some.items() for x in losers(c, margin))]}


def over_all(kind: str, cells: list[Cell]) -> str:
    low = min(cells, key=lambda c: c.energy_closed)
    return (f"{kind}, over all cells: energy {mean(c.energy_closed for c in cells):.0f} % closed (least"
            f" {low.energy_closed:.0f} % in {low.table} {low.hz} {low.share}), adequate"
            f" {mean(c.adequate_closed for c in cells):.0f} % (least"
            f" {min(c.adequate_closed for c in cells):.0f} %)")


def available(program: Path) -> list[str]:
    """All governors that the program was built with; it names them where it knows none."""
    said = subprocess.run([program, "--governor", "?"], capture_output=True, text=True).stderr
    return said.partition("must be ")[2].strip().split(", ")


def find_traces(args: argparse.Namespace, scratch: Path) -> dict[str, list[Path]]:
    sets: dict[str, list[Path]] = {}
    for place in args.traces:
        files = sorted(f for f in place.iterdir() if f.name.endswith((".csv", ".csv.xz"))) if place.is_dir() else [place]
        sets.setdefault("recorded", []).extend(files)
    if args.seeds:
        with ThreadPoolExecutor(args.jobs) as pool:
            names = {seed: scratch / str(seed) for seed in args.seeds}
            list(pool.map(lambda s: subprocess.run([HERE / "generate_traces.py", names[s], "--seed", str(s)], check=True),
                          args.seeds))
        for seed, directory in names.items():
            sets[f"seed {seed}"] = sorted(directory.iterdir())
    if args.only:
        sets = {name: [f for f in files if f.name.split(".")[0] in args.only] for name, files in sets.items()}
    return {name: files for name, files in sets.items() if files}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, default=PROGRAM, help="default: that of make replay")
    parser.add_argument("--traces", type=Path, nargs="*", default=[HERE / "traces"],
                        help="files, or directories of them (default: traces/)")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3], help="of generate_traces.py (default: 1 2 3)")
    parser.add_argument("--only", nargs="+", metavar="TRACE", help="these traces alone")
    parser.add_argument("--states", nargs="+", default=["spr-c02", "skx", "hsx", "c1-c6", "skl", "adl",
                                                        "amd-rome", "amd-milan", "amd-genoa", "amd-turin"])
    parser.add_argument("--hz", type=int, nargs="+", default=[250, 1000])
    parser.add_argument("--exit-latency", nargs="+", default=["full", "half"], metavar="full|half|PERCENT")
    parser.add_argument("--governor", default="teo")
    parser.add_argument("--against", nargs="+", metavar="GOVERNOR",
                        help="default: base-menu, base-teo, and teo of the trees that the program was built with")
    parser.add_argument("--margin", type=float, default=5, help="percent of energy (default: 5)")
    parser.add_argument("--csv", type=Path, metavar="DIRECTORY", help="write cells.csv and losers.csv there (default: stdout)")
    parser.add_argument("--json", type=Path, help="write all figures there, of each trace too")
    parser.add_argument("--jobs", type=int, default=2, help="replays at a time (default: 2)")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument("options", nargs="*", metavar="-- OPTION",
                        help="for governor-replay: -- --overhead-ns 3000 and so on")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    if not args.program.exists():
        print(f"{args.program} is not there: make replay", file=sys.stderr)
        return 1
    there = available(args.program)
    opponents = args.against or ["base-menu", "base-teo", *(g for g in there if g.endswith("-teo") and
                                                            not g.startswith("base-"))]
    for name in [args.governor, *opponents]:
        if name not in there:
            print(f"there is no governor {name}, must be one of {', '.join(there)}", file=sys.stderr)
            return 1
    governors = list(dict.fromkeys([args.governor, *opponents, "base-menu", BOUND]))
    with tempfile.TemporaryDirectory() as scratch:
        sets = find_traces(args, Path(scratch))
        if not sets:
            print("there are no traces: --traces names files or directories, --seeds generates some", file=sys.stderr)
            return 1
        jobs = [Job(name, hz, latency, files) for name, all_files in sets.items()
                for hz in args.hz for latency in args.exit_latency for files in split(all_files, 4)]
        try:
            runs = run_all(jobs, args, governors)
        except Failed as failed:
            print(failed, file=sys.stderr)
            return 2
    cells = [judge(runs[key], args.governor, opponents, "base-menu",
                   table=key[0], hz=key[1], share=key[2], set=key[3])
             for key in itertools.product(args.states, args.hz, args.exit_latency, sets)]
    if args.csv:
        args.csv.mkdir(parents=True, exist_ok=True)
    for name, rows in tables(cells, args.margin).items():
        with (args.csv / f"{name}.csv").open("w") if args.csv else nullcontext(sys.stdout) as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    print(f"{args.governor} against the best of {', '.join(opponents)}; the bound is the least energy")
    for kind, some in kinds(cells).items():
        print(over_all(kind, some))
    if args.json:
        args.json.write_text(json.dumps([asdict(c) for c in cells], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
