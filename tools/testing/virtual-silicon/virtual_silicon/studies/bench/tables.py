# SPDX-License-Identifier: GPL-2.0
"""The tables of the published series from what was measured, and how far they agree."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ... import stats
from ...text import plain
from .cells import BROADWELL, HASWELL, OTHERWISE, ROME, SAPPHIRE_RAPIDS, SEEDS, SKYLAKE, Machine
from .loads import COMMON, LOADS
from .runner import Failure, Result, Results

#: What software that is published calls a change: outside these a cell is not neutral.
NEUTRAL = (0.97, 1.03)
RATIOS = ("performance", "per_watt")
ABSOLUTE = ("watts", "mhz", "updates")
TITLES = {"performance": "performance", "per_watt": "performance per watt",
          "watts": "power, W", "mhz": "clock of busy CPUs, MHz",
          "updates": "changes of the clock that are asked for"}


@dataclass(frozen=True)
class Table:
    """@published: its name in published.csv, or nothing."""

    name: str
    title: str
    machines: tuple[Machine, ...]
    baseline: str
    columns: tuple[str, ...]
    loads: tuple[str, ...]
    measures: tuple[str, ...] = ("performance", "watts", "per_watt", "mhz")
    published: str = ""


_ALL = (SKYLAKE, BROADWELL, HASWELL, ROME)
TABLES = (
    Table("invariance", "Invariant schedutil with several freq_max, over schedutil that is not",
          (BROADWELL, SKYLAKE, HASWELL), "non-inv",
          ("i_pstate", "1c", "3c", "4c", "8c", "12c", "base", "performance"), COMMON,
          published="invariance-2019"),
    Table("epyc", "schedutil with several freq_max, over ondemand", (ROME,), "ondemand",
          ("performance", "non-inv", "boost", "midpoint", "nominal", "base"), COMMON,
          published="epyc-2020"),
    Table("updates", "The rate limiter, over the base's schedutil", (SKYLAKE,), "base",
          ("4c", "performance"), ("pipe", "hackbench", "cyclictest"), ("performance", "updates"),
          published="hook-2017"),
    Table("c02", "POLL and C0.2, over POLL alone", (SAPPHIRE_RAPIDS,), "POLL", ("C0.2",),
          ("c02hack",), published="c02-2023"),
    Table("defaults", "Ours over the base as it is (schedutil, menu)", _ALL, "base",
          ("ours-menu", "ours", "stock", "i_pstate", "performance"), COMMON),
    Table("newest", "Ours over Debian's 7.3 as it is", _ALL, "stock", ("ours",), COMMON),
)


@dataclass(frozen=True)
class Grid:
    """What is printed: on the terminal, in the page, in documents."""

    title: str
    rows: list[list[str]]		# the first is the head
    file: str = ""			# of its own, among the results

    def text(self) -> str:
        return plain(self.title, self.rows[0], self.rows[1:])


#: Columns of Measured.cells() and of summaries()
CELLS = ("machine", "setting", "load", "parameter", "result", "± %", "W", "MHz")
SUMMARY = ("table", "machine", "cpus", "measure", "over", "load", "setting", "value")


def smaller_is_better(load: str, measure: str) -> bool:
    return measure == "performance" and not LOADS[load].rate


def number(result: Result, load: str, measure: str) -> float:
    """As the published tables have it: of loads that end, performance is their time."""
    value: float = getattr(result, measure)
    return 1 / value if smaller_is_better(load, measure) else value


class Measured:
    """Samples of all cells; a setting that a machine does not have is no failure."""

    def __init__(self, results: Results) -> None:
        self._of: dict[tuple[Machine, str, str, int], list[Result | Failure]] = {}
        for cell in sorted(results, key=lambda c: c.seed):
            self._of.setdefault((cell.machine, cell.setting.name, cell.load.name,
                                 cell.parameter), []).append(results[cell])

    def machines(self) -> list[Machine]:
        return list(dict.fromkeys(machine for machine, *_ in self._of))

    def cells(self) -> list[list[str]]:
        """Of each with all seeds: means of them, in the order of CELLS; of the result half its
        95 % interval, too."""
        rows = []
        for (machine, setting, load, parameter), results in self._of.items():
            good = [r for r in results if isinstance(r, Result)]
            if len(good) == SEEDS:
                values, *others = ([number(r, load, measure) for r in good]
                                   for measure in ("performance", "watts", "mhz"))
                rows.append([machine.title, setting, load, str(parameter),
                             f"{statistics.fmean(values):.5g}",
                             f"{100 * stats.relative_error(values):.1f}",
                             *(f"{statistics.fmean(other):.5g}" for other in others)])
        return rows

    def parameters(self, machine: Machine, setting: str, load: str) -> list[int]:
        return [p for m, s, name, p in self._of if (m, s, name) == (machine, setting, load)]

    def samples(self, machine: Machine, setting: str, load: str, measure: str,
                parameter: int | None = None) -> list[list[float]] | None:
        """A row per parameter; none if that was not measured, None if one of them failed."""
        rows = []
        for p in self.parameters(machine, setting, load):
            if parameter in (None, p):
                results = self._of[machine, setting, load, p]
                good = [number(r, load, measure) for r in results if isinstance(r, Result)]
                if len(good) != SEEDS:
                    return None
                rows.append(good)
        return rows

    def missing(self, machine: Machine, *settings: str, load: str) -> str:
        """What stands where there is no number."""
        return "-" if all(self.samples(machine, s, load, "watts") is not None
                          for s in settings) else "failed"

    def ratio(self, machine: Machine, setting: str, baseline: str, load: str, measure: str,
              parameter: int | None = None) -> stats.Ratio | None:
        """None also where something is 0, as the clock's changes under performance."""
        new, base = (self.samples(machine, s, load, measure, parameter)
                     for s in (setting, baseline))
        return stats.ratio(new, base) if new and base and all(map(all, new + base)) else None


def _columns(table: Table, machine: Machine) -> list[str]:
    names = {setting.name for setting in machine.settings}
    return [column for column in table.columns if column in names]


def _loads(table: Table, machine: Machine, measured: Measured) -> list[str]:
    return [load for load in table.loads if measured.parameters(machine, table.baseline, load)]


def _head(machine: Machine, table: Table, measure: str) -> str:
    better = ("higher is better" if measure == "per_watt" else
              "higher is better; of loads with *, time, lower is better"
              if measure == "performance" else "")
    over = f", over {table.baseline}" if measure in RATIOS else ""
    return f"{table.title}\n{machine.name}, {machine.cpus} CPUs: {TITLES[measure]}{over}" + (
        f" ({better})" if better else "")


def summary(table: Table, machine: Machine, measure: str, measured: Measured) -> Grid:
    """A row per load, over all its parameters, and of ratios a geometric mean."""
    columns = _columns(table, machine)
    shown = columns if measure in RATIOS else [table.baseline, *columns]
    rows = [["", *shown]]
    better: dict[str, list[float]] = {column: [] for column in shown}
    for load in _loads(table, machine, measured):
        star = "*" if smaller_is_better(load, measure) else ""
        row = [load + star]
        for column in shown:
            if measure in ABSOLUTE:
                samples = measured.samples(machine, column, load, measure)
                row.append(f"{statistics.fmean(map(statistics.fmean, samples)):.1f}"
                           if samples else measured.missing(machine, column, load=load))
                continue
            ratio = measured.ratio(machine, column, table.baseline, load, measure)
            row.append(str(ratio) if ratio else
                       measured.missing(machine, column, table.baseline, load=load))
            if ratio:
                better[column].append((ratio.inverse if star else ratio).value)
        rows.append(row)
    if measure in RATIOS and len(rows) > 2:
        rows.append(["geometric mean, higher is better", *(
            f"{statistics.geometric_mean(better[c]):.3f}" if len(better[c]) == len(rows) - 1
            else "-"
            for c in shown)])
    return Grid(_head(machine, table, measure), rows)


def summaries(of: Iterable[Table], measured: Measured) -> list[list[str]]:
    """All of them, a value a row, in the order of SUMMARY."""
    return [[table.name, machine.name, str(machine.cpus), measure,
             table.baseline if measure in RATIOS else "",
             row[0].rstrip("*").removesuffix(", higher is better"), setting, value]
            for table in of for machine in table.machines for measure in table.measures
            for head, *rows in (summary(table, machine, measure, measured).rows,)
            for row in rows for setting, value in zip(head[1:], row[1:], strict=True)]


def losers(measured: Measured, limit: float = NEUTRAL[0]) -> Grid:
    """Parameters for which ours is below @limit of the base or of 7.3 as they are."""
    rows = [["machine, load", "column", "over", "measure", "ratio", "95 % interval"]]
    for table in (t for t in TABLES if t.name in ("defaults", "newest")):
        for machine in table.machines:
            for load in _loads(table, machine, measured):
                for column in _columns(table, machine):
                    if column in ("ours-menu", "ours"):
                        rows += _worse(measured, machine, column, table.baseline, load, limit)
    return Grid(f"Ours below {limit} of the base or of 7.3; by chance where the interval has 1",
                rows, "worse")


def _worse(measured: Measured, machine: Machine, column: str, baseline: str, load: str,
           limit: float) -> list[list[str]]:
    rows = []
    for parameter in measured.parameters(machine, column, load):
        for measure in RATIOS:
            r = measured.ratio(machine, column, baseline, load, measure, parameter)
            if r and smaller_is_better(load, measure):
                r = r.inverse
            if r and r.value < limit:
                rows.append([f"{machine.name}, {load}-{parameter}", column, baseline,
                             TITLES[measure], f"{r.value:.2f}", f"{r.low:.2f} to {r.high:.2f}"])
    return rows


@dataclass(frozen=True)
class Published:
    """One cell, as a ratio to its table's baseline."""

    source: str
    line: int
    machine: str
    measure: str
    load: str
    baseline: str
    column: str
    value: float

    @property
    def neutral(self) -> bool:
        return NEUTRAL[0] <= self.value <= NEUTRAL[1]


def published(path: Path) -> list[Published]:
    """Powers are watts there; here they are over the baseline's of the same row."""
    with path.open(encoding="ascii") as file:
        rows = list(csv.DictReader(file))
    watts = {(r["source"], r["line"]): float(r["value"]) for r in rows
             if r["measure"] == "watts" and r["column"] == r["baseline"]}
    out = []
    for r in rows:
        value = 1.0 if r["value"] == "~" else float(r["value"])
        if r["measure"] == "watts":
            value /= watts[r["source"], r["line"]]
        if r["column"] != r["baseline"]:
            out.append(Published(r["source"], int(r["line"]), r["machine"], r["measure"],
                                 r["load"], r["baseline"], r["column"], value))
    return out


@dataclass(frozen=True)
class Agreement:
    """Of one published table."""

    title: str
    pairs: list[tuple[Published, float]]	# what was measured beside it
    without: list[Published]			# no such load here, or it failed

    @property
    def same(self) -> int:
        return sum((p.value > 1) == (ours > 1) for p, ours in self.pairs if not p.neutral)

    @property
    def clear(self) -> int:
        return sum(not p.neutral for p, _ in self.pairs)

    @property
    def rank(self) -> float | None:
        return stats.spearman([p.value for p, _ in self.pairs], [ours for _, ours in self.pairs])

    def row(self) -> list[str]:
        rank = "-" if self.rank is None else f"{self.rank:.2f}"
        return [self.title, f"{self.same} of {self.clear}", rank, str(len(self.pairs)),
                str(len(self.without))]


def agreements(measured: Measured, cells: Iterable[Published]) -> list[Agreement]:
    machines = {machine.name: machine for machine in (*_ALL, SAPPHIRE_RAPIDS)}
    found: dict[str, tuple[list[tuple[Published, float]], list[Published]]] = {}
    for p in cells:
        pairs, without = found.setdefault(
            f"{p.source}, {p.machine}, {TITLES[p.measure].partition(',')[0]}", ([], []))
        ours = p.machine in machines and measured.ratio(
            machines[p.machine], p.column, p.baseline, p.load, p.measure)
        if ours:
            pairs.append((p, ours.value))
        else:
            without.append(p)
    return [Agreement(title, *lists) for title, lists in found.items()]


def agreement(of: list[Agreement]) -> Grid:
    pairs = [pair for a in of for pair in a.pairs]
    total = Agreement("all", pairs, [p for a in of for p in a.without])
    return Grid("Agreement with what was published", [
        ["table", "same direction", "rank correlation", "cells compared", "without counterpart"],
        *(a.row() for a in of), [*total.row()[:2], "-", *total.row()[3:]]], "agreement")


def apart(of: list[Agreement]) -> Grid:
    """Non-neutral cells with another direction here."""
    rows = [["table", "load", "column", "published", "here"]]
    rows += [[a.title, p.load, p.column, f"{p.value:.2f}", f"{ours:.2f}"] for a in of
             for p, ours in a.pairs if not p.neutral and (p.value > 1) != (ours > 1)]
    return Grid("Published, and with another direction here", rows, "other-direction")


def failures(results: Results) -> Grid:
    """A row for each reason, with the first of its cells."""
    of: dict[tuple[str, str], list[str]] = {}
    for cell, result in results.items():
        if isinstance(result, Failure):
            of.setdefault((result.reason, result.log), []).append(cell.name)
    rows = [["cell", "reason", "log"]]
    rows += [[names[0] + f", and {len(names) - 1} more" * (len(names) > 1), *key]
             for key, names in of.items()]
    return Grid("Failed", rows)


def sensitivity(measured: Measured) -> Grid:
    """How far the ratios of the invariance table move with each assumption."""
    rows = [["assumption", *(f"{load}-{n}, {TITLES[m]}" for load, n in OTHERWISE
                             for m in RATIOS)]]
    for machine in (m for m in measured.machines() if m.variant):
        ratios = [measured.ratio(machine, "4c", "non-inv", load, m, n)
                  for load, n in OTHERWISE for m in RATIOS]
        rows.append([machine.variant, *(r.spread(".2f") if r else "failed" for r in ratios)])
    return Grid("4c over non-inv on e5-2698-v4 under other assumptions, with 95 % intervals; "
                "gitsource's performance is its time, less is better", rows, "assumptions")
