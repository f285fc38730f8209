# SPDX-License-Identifier: GPL-2.0
"""A picture of a part: result and energy of each load over another column's, by machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import UsageError
from .plan import Part
from .table import Row

MEASURES = {"result": "result, 1/time or rate", "mJ": "energy for the same"}
COLOURS = ("#666666", "#1b6ca8", "#e08214", "#b2182b", "#7fbc41", "#8073ac", "#35978f", "#bf812d")


def bars(rows: Sequence[Row], part: Part, machine: str, measure: str
         ) -> dict[str, dict[str, float]]:
    """By column and load: over the part's first reference; of a result more is better."""
    found: dict[str, dict[str, float]] = {column: {} for column in part.columns
                                          if column != part.over[0]}
    for row in rows:
        of, at, load, column = row.key
        if (of, at, row.measure, row.over) == (part.name, machine, measure, part.over[0]) and \
                row.ratio:
            found[column][load] = 1 / row.ratio if row.less and measure == "result" else row.ratio
    return found


def draw(rows: Sequence[Row], part: Part, out: Path) -> None:
    if not any(row.over == part.over[0] and row.ratio for row in rows if row.key[0] == part.name):
        raise UsageError(f"{out}: part {part.name} has nothing over {part.over[0]}")
    import matplotlib  # slow, and only pictures need it

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(MEASURES), len(part.machines), squeeze=False, sharey=True,
                                   figsize=(4.2 * len(part.machines) + 2, 9))
    for x, machine in enumerate(part.machines):
        for y, (measure, label) in enumerate(MEASURES.items()):
            ax, shown = axes[y][x], bars(rows, part, machine, measure)
            for i, (of, colour) in enumerate(zip(shown.values(), COLOURS)):
                ax.barh([part.loads.index(load) + 0.8 * ((i + 0.5) / len(shown) - 0.5)
                         for load in of], [ratio - 1 for ratio in of.values()],
                        height=0.75 / len(shown), left=1, color=colour)
            ax.axvline(1, color="black", linewidth=0.8)
            ax.set(xscale="linear" if y else "log", title="" if y else machine,
                   xlabel=f"{label} over that of {part.over[0]}")
            ax.xaxis.set_major_formatter("{x:g}")
            ax.set_yticks(range(len(part.loads)), part.loads)
            ax.grid(axis="x", alpha=0.4)
    axes[0][0].invert_yaxis()	# of all: they share it
    figure.legend([pyplot.Rectangle((0, 0), 1, 1, color=colour)
                   for _, colour in zip(shown, COLOURS)], list(shown), loc="lower center", ncol=4)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(out, dpi=80)
