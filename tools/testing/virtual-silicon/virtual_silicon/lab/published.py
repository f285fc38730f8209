# SPDX-License-Identifier: GPL-2.0
"""What published tables say, beside the same ratio here: directions and ranks."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..text import publish
from . import stats
from .plan import Plan
from .table import NEAR, Row

FILE = Path(__file__).with_name("published.csv")
#: Of parts that begin with this.
PART = "published"
TITLES = {"performance": "performance", "per_watt": "performance per watt", "watts": "power",
          "updates": "changes of the clock that are asked for"}
HEAD = ("table", "same direction", "rank correlation", "cells compared", "without counterpart")


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
    def title(self) -> str:
        return f"{self.source}, {self.machine}, {TITLES[self.measure]}"

    @property
    def neutral(self) -> bool:
        """What software that is published calls no change."""
        return abs(self.value - 1) <= NEAR


def read(path: Path = FILE) -> list[Published]:
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


def here(p: Published, rows: Iterable[Row], plan: Plan) -> float | None:
    """Geometric mean over a load's parameters. Of loads that end performance is their time, and
    changes are counted until then."""
    found: dict[str, dict[str, float | None]] = {}
    for row in rows:
        part, machine, load, column = row.key
        if part.startswith(PART) and (machine, load.partition(":")[0], column, row.over) == (
                p.machine, p.load, p.column, p.baseline):
            found.setdefault(load, {})[row.measure] = row.ratio
    ratios: list[float | None] = []
    for of in found.values():
        result, energy = of.get("result"), of.get("mJ")
        ends = plan.loads[p.load].unit == "s"
        changes = of.get("changes/s")
        ratios.append({"performance": result, "watts": of.get("W"),
                       "per_watt": energy and 1 / energy,
                       "updates": changes and (changes * (result or 0) if ends else changes)
                       }[p.measure])
    known = [ratio for ratio in ratios if ratio]
    return statistics.geometric_mean(known) if known and len(known) == len(ratios) else None


@dataclass(frozen=True)
class Agreement:
    """@pairs: what was measured beside it, None if nothing was."""

    title: str
    pairs: Sequence[tuple[Published, float | None]]

    def row(self) -> list[str]:
        both = [(p, ours) for p, ours in self.pairs if ours is not None]
        clear = [(p.value > 1) == (ours > 1) for p, ours in both if not p.neutral]
        rank = None if self.title == "all" else stats.spearman(
            [p.value for p, _ in both], [ours for _, ours in both])
        return [self.title, f"{sum(clear)} of {len(clear)}", "-" if rank is None else
                f"{rank:.2f}", str(len(both)), str(len(self.pairs) - len(both))]


def agreements(rows: Sequence[Row], plan: Plan, cells: Sequence[Published]) -> list[Agreement]:
    """Of each published table, then of all."""
    pairs = [(p, here(p, rows, plan)) for p in cells]
    return [Agreement(title, [pair for pair in pairs if title in ("all", pair[0].title)])
            for title in (*dict.fromkeys(p.title for p in cells), "all")]


def write(rows: Sequence[Row], plan: Plan, out: Path) -> None:
    of = agreements(rows, plan, read())
    publish(out / "agreement.csv", HEAD, [a.row() for a in of],
            "Agreement with what was published. "
            f"Directions: of published ratios that are more than {NEAR:.0%} from 1.")
    publish(out / "other-direction.csv", ("table", "load", "column", "published", "here"), [
        [p.title, p.load, p.column, f"{p.value:.2f}", f"{ours:.2f}"] for p, ours in of[-1].pairs
        if ours is not None and not p.neutral and (p.value > 1) != (ours > 1)],
        "Published, and with another direction here.")
