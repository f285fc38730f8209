# SPDX-License-Identifier: GPL-2.0
"""What was measured as one text: figures with intervals and a verdict for each load."""
from __future__ import annotations

import hashlib
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cpuwhy import judge
from virtual_silicon.lab import stats

from .plan import KERNELS, Plan

Run = dict[str, Any]


def samples(runs: Iterable[Run], kernel: str, load: str, measure: str) -> list[list[float]]:
    """A row per parameter, a column per run: the geometric mean of its passes."""
    rows: dict[int, list[float]] = {}
    for run in runs:
        if run["kernel"] != kernel:
            continue
        passes: dict[int, list[float]] = {}
        for cell in run["cells"]:
            if cell["load"] == load and cell.get(measure):
                passes.setdefault(cell["parameter"], []).append(cell[measure])
        for parameter, values in passes.items():
            rows.setdefault(parameter, []).append(statistics.geometric_mean(values))
    shortest = min(map(len, rows.values()), default=0)
    return [rows[parameter][:shortest] for parameter in sorted(rows)]


@dataclass(frozen=True)
class Line:
    load: str
    measure: str
    base: float
    patched: float
    ratio: judge.Ratio | None
    verdict: str

    def __str__(self) -> str:
        return (f"{self.load:11} {self.measure:12} "
                + judge.figures(self.base, self.patched, self.ratio, self.verdict))


def line(runs: Sequence[Run], load: str, measure: str) -> Line:
    of = {kernel: samples(runs, kernel, load, measure) for kernel in KERNELS}
    if not all(of.values()) or len(of["base"]) != len(of["patched"]):
        return Line(load, measure, 0, 0, None, "not measured")
    base, patched = (statistics.geometric_mean(v for row in of[kernel] for v in row)
                     for kernel in KERNELS)
    if min(len(rows[0]) for rows in of.values()) < 2:
        return Line(load, measure, base, patched, None, "too few runs")
    ratio = stats.ratio(of["patched"], of["base"])
    return Line(load, measure, base, patched, ratio, judge.verdict(ratio))


def lines(plan: Plan, runs: Sequence[Run]) -> list[Line]:
    return [line(runs, load, measure) for load in plan.loads
            for measure in ("performance", "per watt")]


def reason(failed: str) -> str:
    """Not what a program said, which may have a name in it."""
    status = re.match(r"status \d+", failed)
    return status[0] if status else "without a result"


def text(plan: Plan, runs: Sequence[Run], probe: str) -> str:
    """The report; runs that were lost are counted."""
    order = plan.order()
    said = probe.partition("\n#\n")[2] or probe     # what follows the probe's preface
    out = ["# x86-dvfs: patched kernel over base, each with schedutil; idle governors "
           f"{plan.idle}, menu",
           *(row for row in said.splitlines()[:2] if row.startswith("# ")),
           f"# {len(runs)} of {len(order)} runs, {plan.seconds:g} s of loads each, in the order "
           + " ".join(run["kernel"] for run in runs),
           f"# {'load':9} {'measure':12} {'base':>9} {'patched':>9}  ratio 95 % interval"]
    out += map(str, lines(plan, runs))
    failed = sorted({f"{cell['load']}, {reason(cell['failed'])}" for run in runs
                     for cell in run["cells"] if "failed" in cell})
    out += [f"# failed: {row}" for row in failed[:5]]
    hot = [str(run["number"]) for run in runs if run.get("throttled")]
    out += [f"# the CPU throttled in run {', '.join(hot)}"] * bool(hot)
    if peaks := [run["celsius"] for run in runs if run.get("celsius")]:
        out.append(f"# at most {max(peaks):.0f} degrees C")
    return "\n".join(out) + "\n"


#: What follows on a screen: how to go on, and the cursor.
BELOW = 2


def screen(report: str, picture: str, last: str, rows: int, columns: int) -> str:
    """What fits: consoles do not scroll back. Figures and the code always; as far as there is
    room, what follows the figures, what is before them, the code's picture."""
    lines = report.splitlines()
    at = next((n for n, row in enumerate(lines) if row.startswith("# load ")), len(lines))
    figures = [row for n, row in enumerate(lines[at:]) if n == 0 or not row.startswith("# ")]

    def height(group: Sequence[str]) -> int:
        return sum(max(1, -(-len(row) // columns)) for row in group)
    room = rows - BELOW - height([*figures, last])

    def fits(group: list[str]) -> list[str]:
        nonlocal room
        if height(group) > room:
            return []
        room -= height(group)
        return group
    after = [kept for row in lines[at + len(figures):] for kept in fits([row])]
    before = fits(lines[:at])
    shown = [*fits(picture.splitlines()), *before, *figures, *after, last]
    return "".join(f"{row}\n" for row in shown)


def code(report: str) -> str:
    """Of its checksum, to be read out: 16 digits in groups of four."""
    digest = hashlib.sha256(report.encode()).hexdigest()
    return " ".join(digest[n:n + 4] for n in range(0, 16, 4))
