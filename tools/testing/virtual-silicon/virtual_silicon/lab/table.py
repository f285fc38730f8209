# SPDX-License-Identifier: GPL-2.0
"""One table for all: a row per measure, with its interval, and what it is over other columns."""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from cpuwhy.judge import NEAR

from ..text import ends
from . import stats
from .plan import Plan
from .store import Sample

HEAD = ("part", "machine", "load", "column", "measure", "n", "median", "least", "most", "over",
        "ratio", "low", "high", "verdict")
NOTE = ("Median, least and most of n seeds. Ratio: geometric mean over that of the column that "
        "\"over\" names, with its 95 % interval (Welch, of logarithms) if both have several "
        "seeds. same: the interval contains 1, or the ratio is within 3 % of it. mJ: of a unit, "
        "or of the whole load if less of its result is better. wait us: mean time that a task "
        "that can run waits for its CPU. changes: of the clock that is asked for; above, below: "
        "choices of an idle state that was too deep, too shallow.")
#: More of these is better; of the result the load says.
MORE = ("MHz",)
#: In which a column can lose.
JUDGED = ("result", "mJ", "p50", "p99", "longest", "wait us")

Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class Row:
    key: Key
    measure: str
    values: tuple[float, ...]
    over: str = ""
    base: tuple[float, ...] = ()
    less: bool = False	# is better

    @property
    def ratio(self) -> float | None:
        """Over the other column."""
        if not self.base or min(*self.values, *self.base) <= 0:
            return None
        return statistics.geometric_mean(self.values) / statistics.geometric_mean(self.base)

    @property
    def interval(self) -> stats.Ratio | None:
        if self.ratio is None or min(len(self.values), len(self.base)) < 2:
            return None
        return stats.ratio([self.values], [self.base])

    @property
    def verdict(self) -> str:
        if not (found := self.interval):
            return ""
        if found.neutral or abs(found.value - 1) <= NEAR:
            return "same"
        return "worse" if (found.value > 1) == self.less else "better"

    def cells(self) -> list[str]:
        found = self.interval
        return [*self.key, self.measure, str(len(self.values)), *ends(self.values, ".5g"),
                self.over, *("" if x is None else f"{x:.3f}" for x in (
                    self.ratio, found and found.low, found and found.high)), self.verdict]


def rows(samples: Iterable[Sample], plan: Plan) -> list[Row]:
    """In the order of the samples; one for each column that it is compared with."""
    found: dict[tuple[Key, str], list[float]] = defaultdict(list)
    less: dict[tuple[Key, str], bool] = {}
    for sample in samples:
        for measure, value in sample.of.items():
            at = sample.cell.key, measure
            found[at].append(value)
            less[at] = (sample.cell.load.better == "less" if measure == "result"
                        else measure not in MORE)
    out = []
    for (key, measure), values in found.items():
        part = plan.parts[key[0]]
        others = [c for c in part.over if c != key[3] and ((*key[:3], c), measure) in found]
        out += [Row(key, measure, tuple(values), over,
                    tuple(found.get(((*key[:3], over), measure), ())), less[key, measure])
                for over in others or [""]]
    return out


def losers(of: Iterable[Row], plan: Plan) -> list[Row]:
    """Where a judged column is worse than what it is compared with."""
    return [row for row in of if row.verdict == "worse" and row.measure in JUDGED
            and row.key[3] in plan.parts[row.key[0]].judged]


def broken(of: Iterable[Row], plan: Plan) -> list[str]:
    """What a part says, and no longer holds."""
    found = {(row.key, row.measure, row.over): row for row in of}
    out = []
    for part in plan.parts.values():
        machines = [f"{m}, {v}" if v else m for m in part.machines for v in part.variants]
        for machine, (name, (low, high)) in itertools.product(machines, part.holds.items()):
            pair, load, measure = name.split(" ", 2)
            column, _, over = pair.partition("/")
            row = found.get(((part.name, machine, load, column), measure, over))
            ratio = row.ratio if row else None
            if ratio is None or not low <= ratio <= high:
                now = "not measured" if ratio is None else f"{ratio:.3g}"
                out.append(f"{part.name}/{machine}: {name}: {now}, and is to be {low:g} to "
                           f"{high:g}")
    return out
