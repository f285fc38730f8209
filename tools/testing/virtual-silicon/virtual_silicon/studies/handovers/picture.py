# SPDX-License-Identifier: GPL-2.0
"""A picture of whose gain it is: rate and energy of each load over the base's, by machine.

Reads the tables of the parts whose-gain*, and writes one picture.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

from ... import cli
from ...errors import UsageError

#: Column: what the legend says, and the colour
SHOWN = {"stock": ("Debian's 7.3", "#666666"),
         "ours": ("the series", "#1b6ca8"), "no-chains": ("without chains", "#e08214"),
         "no-choice": ("without the choice of CPU", "#b2182b"),
         "ours-menu": ("with menu in place of teo", "#7fbc41"),
         "base-schedutil": ("with the base's schedutil", "#8073ac")}
MEASURES = {"rate": "rate over the base's", "mJ each": "energy for the same over the base's"}


def read(file: Path) -> dict[str, dict[str, dict[str, float]]]:
    """By load and column: each measure over the base's."""
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    rows: dict[str, dict[str, dict[str, float]]] = {}
    for row in csv.DictReader(lines):
        try:
            rows.setdefault(row["load"], {})[row["setting"]] = {
                name: float(row[name]) for name in MEASURES}
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"{file}: not a table of handovers.py: {error}") from error
    return {load: {column: {name: found[name] / columns["base"][name] for name in MEASURES}
                   for column, found in columns.items()} for load, columns in rows.items()}


def draw(tables: dict[str, Path], out: Path) -> None:
    import matplotlib  # slow, and only pictures need it

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(MEASURES), len(tables), squeeze=False, sharey=True,
                                   figsize=(4.2 * len(tables) + 1, 9))
    for x, (title, file) in enumerate(tables.items()):
        values = read(file)
        for y, (measure, label) in enumerate(MEASURES.items()):
            ax = axes[y][x]
            for i, (column, (_, colour)) in enumerate(SHOWN.items()):
                bars = [(n + 0.8 * ((i + 0.5) / len(SHOWN) - 0.5), columns[column][measure] - 1)
                        for n, columns in enumerate(values.values()) if column in columns]
                ax.barh([at for at, _ in bars], [length for _, length in bars],
                        height=0.75 / len(SHOWN), left=1, color=colour)
            ax.axvline(1, color="black", linewidth=0.8)
            ax.set(xscale="linear" if y else "log", xlabel=label, title="" if y else title)
            ax.xaxis.set_major_formatter("{x:g}")
            ax.set_yticks(range(len(values)), list(values))
            ax.grid(axis="x", alpha=0.4)
    axes[0][0].invert_yaxis()	# of all: they share it
    figure.legend([pyplot.Rectangle((0, 0), 1, 1, color=colour) for _, colour in SHOWN.values()],
                  [text for text, _ in SHOWN.values()], loc="lower center", ncol=3)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(out, dpi=80)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("tables", nargs="+", metavar="TITLE=FILE")
    parser.add_argument("--out", type=Path, required=True, help="the picture, .png")
    args = parser.parse_args()
    if wrong := [word for word in args.tables if "=" not in word]:
        raise UsageError(f"{wrong[0]!r}: a table is TITLE=FILE")
    draw({title: Path(file) for title, _, file in (w.partition("=") for w in args.tables)},
         args.out)
    return 0


if __name__ == "__main__":
    sys.exit(cli.ended("picture", main))
