#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""One governor against the best of others, in cells of state table, HZ and latency.

For each cell and set of traces (recorded ones, and those of generate_traces.py with each
seed): energy, and the exit latency of wake-ups that a task waits for, beside the
least that an opponent has; whether one of them dominates the governor, with no more
of either; the share of the distance between the best opponent and the least energy
that it closes, the same for adequate choices, its worst trace and its tick stops.
Each trace weighs the same; the best opponent is the one with the best mean. A second
table has the traces on which it loses. Where there are several sets,
figures are medians over them, with the least and the greatest.
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
from statistics import geometric_mean, mean, median

import generate_traces

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
    cost: float             # energy and priced waiting
    menu_cost: float

    @property
    def worse(self) -> float:
        return 100 * (self.energy / self.best - 1)

    @property
    def cost_more(self) -> float:
        """Than menu."""
        return 100 * (self.cost / self.menu_cost - 1)

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
    wait: float             # us per wake-up that a task waits for
    wait_best: float
    dominated: list[str] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)

    @property
    def latency_more(self) -> float:
        return 100 * (self.latency / self.least_latency - 1) if self.least_latency else 0.0

    @property
    def worst_cost(self) -> Trace:
        return max(self.traces, key=lambda t: t.cost_more)

    @property
    def worst(self) -> Trace:
        return max(self.traces, key=lambda t: t.worse)


def share(part: float, whole: float) -> float:
    """Percent; of nothing there is nothing to close."""
    return 100 * part / whole if whole > 1e-9 else 0.0


def wake_latency(result: Result) -> float:
    return result["wake_latency_ns"] / result["periods"] / 1000


def waits(result: Result) -> float:
    return result["wait_latency_ns"] / max(result["waits"], 1) / 1000


def axes(runs: Runs, governor: str) -> tuple[float, float]:
    """Energy over the least, and us per wake-up that a task waits for."""
    return (mean(r[governor]["energy"] / r[BOUND]["energy"] for r in runs.values()),
            mean(waits(r[governor]) for r in runs.values()))


def dominates(other: tuple[float, float], this: tuple[float, float]) -> bool:
    """By no more of either, and less of one."""
    return other != this and other[0] <= this[0] and other[1] <= this[1]


def judge(runs: Runs, governor: str, opponents: list[str], menu: str, price: float, **key: object) -> Cell:
    """What the results of one cell come to."""
    place = {g: axes(runs, g) for g in [governor, *opponents]}
    energy = {g: at[0] for g, at in place.items()}
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
                            wake_latency(r[governor]), wake_latency(r[BOUND]),
                            *(r[g]["energy"] + price * r[g]["wait_latency_ns"] for g in (governor, menu))))
    return Cell(opponent=opponent, energy=energy[governor], best=energy[opponent],
                energy_closed=share(energy[opponent] - energy[governor], energy[opponent] - 1),
                adequate=adequate[governor], adequate_best=best_adequate,
                adequate_closed=share(adequate[governor] - best_adequate, 100 - best_adequate),
                stops=sum(t.stops for t in traces), menu_stops=sum(t.menu_stops for t in traces),
                latency=mean(t.latency for t in traces), least_latency=mean(t.least_latency for t in traces),
                wait=place[governor][1], wait_best=min(place[o][1] for o in opponents),
                dominated=[o for o in opponents if dominates(place[o], place[governor])],
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
    begin, terminal = time.monotonic(), sys.stderr.isatty()
    with ThreadPoolExecutor(args.jobs) as pool:
        waiting = {pool.submit(run, job, args, governors): job for job in jobs}
        for number, future in enumerate(as_completed(waiting), 1):
            job = waiting[future]
            for line in future.result():
                cell = found.setdefault((line["states"], job.hz, job.share, job.set), {})
                cell.setdefault(line["trace"], {}).update(line["governors"])
            if not args.quiet and (terminal or number % 20 == 0 or number == len(jobs)):
                print(f"{number} of {len(jobs)} replays, {time.monotonic() - begin:.0f} s",
                      end="\r" if terminal and number < len(jobs) else "\n", file=sys.stderr,
                      flush=True)
    return found


CELLS = ("traces", "states", "hz", "latency", "adequate best %", "adequate %", "adequate closed %",
         "adequate closed least", "adequate closed most", "energy best", "energy", "energy closed %",
         "energy closed least", "energy closed most", "worst trace", "worst energy %",
         "tick stops % of menu", "exit latency % over bound", "energy % over least", "us waited least",
         "us waited", "us waited % over least", "dominated by", "costliest trace", "its cost % over menu")
LOSERS = ("traces", "trace", "measure", "of the governor", "of the opponent", "opponent", "cell", "cells")


def ends(values: list[float]) -> list[str]:
    return [f"{v:.0f}" for v in (median(values), min(values), max(values))]


def values(cells: list[Cell]) -> list[str]:
    """Of one cell over several sets, as CELLS has them behind the kind of the traces."""
    first = cells[0]
    worst = max((c.worst for c in cells), key=lambda t: t.worse)
    costly = max((c.worst_cost for c in cells), key=lambda t: t.cost_more)
    return [first.table, str(first.hz), first.share,
            f"{median(c.adequate_best for c in cells):.1f}", f"{median(c.adequate for c in cells):.1f}",
            *ends([c.adequate_closed for c in cells]),
            f"{median(c.best for c in cells):.3f}", f"{median(c.energy for c in cells):.3f}",
            *ends([c.energy_closed for c in cells]), worst.name, f"{worst.worse:+.1f}",
            f"{share(sum(c.stops for c in cells), sum(c.menu_stops for c in cells)):.0f}",
            f"{median(c.latency_more for c in cells):+.1f}",
            f"{median(100 * (c.energy / c.best - 1) for c in cells):+.1f}",
            f"{median(c.wait_best for c in cells):.1f}", f"{median(c.wait for c in cells):.1f}",
            f"{median(100 * (c.wait / c.wait_best - 1) for c in cells):+.1f}",
            " ".join(sorted({o for c in cells for o in c.dominated})) or "-", costly.name,
            f"{costly.cost_more:+.1f}"]


def losers(cells: list[Cell], margin: float, cost_margin: float) -> list[tuple[str, ...]]:
    """By trace: where it takes more energy, or stops the tick more often, than it may; LOSERS
    without the kind of the traces."""
    energy: dict[str, list[tuple[float, str, str]]] = {}
    cost: dict[str, list[tuple[float, str]]] = {}
    stops: dict[str, list[tuple[int, int, str]]] = {}
    for c in cells:
        for t in c.traces:
            if t.worse > margin:
                energy.setdefault(t.name, []).append((t.worse, t.opponent, f"{c.table} {c.hz} {c.share}"))
            if t.cost_more > cost_margin:
                cost.setdefault(t.name, []).append((t.cost_more, f"{c.table} {c.hz} {c.share}"))
            if t.stops_more():
                stops.setdefault(t.name, []).append((t.stops, t.menu_stops, f"{c.table} {c.hz} {c.share}"))
    found: list[tuple[str, ...]] = []
    for name in sorted(energy, key=lambda n: -max(energy[n])[0]):
        by, opponent, where = max(energy[name])
        found.append((name, "energy %", f"{by:+.1f}", "", opponent, where, str(len(energy[name]))))
    for name in sorted(cost, key=lambda n: -max(cost[n])[0]):
        by, where = max(cost[name])
        found.append((name, "cost %", f"{by:+.1f}", "", "base-menu", where, str(len(cost[name]))))
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


def tables(cells: list[Cell], margin: float, cost_margin: float) -> dict[str, list[Sequence[str]]]:
    """The rows of cells.csv and losers.csv."""
    some = kinds(cells)
    return {"cells": [CELLS, *([kind, *values(g)] for kind, c in some.items() for g in grouped(c))],
            "losers": [LOSERS, *([kind, *x] for kind, c in some.items() for x in losers(c, margin, cost_margin))]}


def over_all(kind: str, cells: list[Cell]) -> str:
    low = min(cells, key=lambda c: c.energy_closed)
    more = [t.energy / t.best for c in cells for t in c.traces]
    return (f"{kind}, over all cells: energy {mean(c.energy_closed for c in cells):.0f} % closed (least"
            f" {low.energy_closed:.0f} % in {low.table} {low.hz} {low.share}), adequate"
            f" {mean(c.adequate_closed for c in cells):.0f} % (least"
            f" {min(c.adequate_closed for c in cells):.0f} %), waiting"
            f" {mean(100 * (c.wait / c.wait_best - 1) for c in cells):+.0f} % over the shortest"
            f" (most {max(100 * (c.wait / c.wait_best - 1) for c in cells):+.0f} %), dominated in"
            f" {sum(bool(c.dominated) for c in cells)} of {len(cells)}; energy of a trace over its best:"
            f" {(geometric_mean(more) - 1) * 100:+.1f} %,"
            f" {', '.join(f'{k:g} times in {sum(m >= k for m in more)}' for k in (1.1, 1.6, 2))} of {len(more)}")


def available(program: Path) -> list[str]:
    """All governors that the program was built with; it names them where it knows none."""
    said = subprocess.run([program, "--governor", "?"], capture_output=True, text=True).stderr
    return said.partition("must be ")[2].strip().split(", ")


def find_traces(args: argparse.Namespace, scratch: Path) -> dict[str, list[Path]]:
    sets: dict[str, list[Path]] = {}
    for place in args.traces:
        files = sorted(f for f in place.iterdir() if f.name.endswith((".csv", ".csv.xz"))) if place.is_dir() else [place]
        sets.setdefault(place.name if place.parent.name == "traces" else "recorded", []).extend(files)
    if args.seeds:
        with ThreadPoolExecutor(args.jobs) as pool:
            names = {seed: scratch / str(seed) for seed in args.seeds}
            list(pool.map(lambda s: subprocess.run([HERE / "generate_traces.py", names[s], "--seed", str(s)], check=True),
                          args.seeds))
        for seed, directory in names.items():
            sets[f"seed {seed}"] = sorted(directory.iterdir())
    if args.modes:
        sets["modes"] = generate_traces.write(scratch / "modes", args.modes[1], number_modes=args.modes[0])
    if args.only:
        sets = {name: [f for f in files if f.name.split(".")[0] in args.only] for name, files in sets.items()}
    return {name: files for name, files in sets.items() if files}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, default=PROGRAM, help="default: that of make replay")
    parser.add_argument("--traces", type=Path, nargs="*", default=[HERE / "traces"],
                        help="files, or directories of them (default: traces/)")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3], help="of generate_traces.py (default: 1 2 3)")
    parser.add_argument("--modes", type=int, nargs=2, metavar=("N", "SEED"), help="N loads of a few lengths, the timer far away")
    parser.add_argument("--only", nargs="+", metavar="TRACE", help="these traces alone")
    parser.add_argument("--states", nargs="+", default=["spr-c02", "skx", "hsx", "c1-c6", "skl", "adl",
                                                        "amd-rome", "amd-milan", "amd-genoa", "amd-turin"])
    parser.add_argument("--hz", type=int, nargs="+", default=[250, 1000])
    parser.add_argument("--exit-latency", nargs="+", default=["full", "half"], metavar="full|half|PERCENT")
    parser.add_argument("--price", type=float, default=4, help="what a ns costs that a task waits, in"
                        " units of polling power (default: 4)")
    parser.add_argument("--cost-margin", type=float, default=2, help="percent of energy and priced waiting,"
                        " over menu (default: 2)")
    parser.add_argument("--governor", default="teo")
    parser.add_argument("--against", nargs="+", metavar="GOVERNOR",
                        help="default: base-menu, base-teo, and teo of the trees that the program was built with")
    parser.add_argument("--margin", type=float, default=5, help="percent of energy (default: 5)")
    parser.add_argument("--csv", type=Path, metavar="DIRECTORY", help="write the tables there (default: stdout)")
    parser.add_argument("--json", type=Path, help="write all figures there, of each trace too")
    parser.add_argument("--jobs", type=int, default=2, help="replays at a time (default: 2)")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument("options", nargs="*", metavar="-- OPTION",
                        help="for governor-replay: -- --overhead-ns 3000 and so on")
    parser.add_argument("--published", action="store_true", help="all that results/replay has, there")
    args = parser.parse_args()
    if args.published:
        args.traces = [HERE / "traces", HERE / "traces/guests", HERE / "traces/held-out"]
        args.seeds, args.exit_latency = [1117, 2903], ["full", "half", "150"]
        args.modes = [40, 4441]
        args.csv = HERE.parents[2] / "results/replay"
    return args


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
    cells = [judge(runs[key], args.governor, opponents, "base-menu", args.price,
                   table=key[0], hz=key[1], share=key[2], set=key[3])
             for key in itertools.product(args.states, args.hz, args.exit_latency, sets)]
    if args.csv:
        args.csv.mkdir(parents=True, exist_ok=True)
    written = tables(cells, args.margin, args.cost_margin)
    for name, rows in written.items():
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
