#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Draw the JSON of governor-replay: per trace adequate decisions, energy, latency."""
from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

PANELS: list[tuple[str, Callable[[dict[str, Any], dict[str, Any]], float]]] = [
    ("adequate %", lambda r, _: 100 * r["adequate"] / max(r["decisions"], 1)),
    ("energy, least = 1", lambda r, least: r["energy"] / least["energy"] if least["energy"] else 1),
    ("exit latency, us per wake-up", lambda r, _: r["wake_latency_ns"] / 1000 / max(r["periods"], 1)),
]


def draw(rows: list[dict[str, Any]], names: list[str], target: str) -> None:
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(PANELS), 1, sharex=True, figsize=(1 + 0.6 * len(rows), 9))
    width = 0.8 / len(names)
    for axis, (label, value) in zip(axes, PANELS):
        for k, name in enumerate(names):
            places = [i + (k - len(names) / 2 + 0.5) * width for i in range(len(rows))]
            axis.bar(places, [value(r["governors"][name], r["governors"]["least-energy"]) for r in rows],
                     width, label=name)
        axis.set_ylabel(label)
        axis.grid(axis="y", alpha=0.3)
    axes[1].set_ylim(bottom=0.9)
    axes[0].legend(ncols=len(names), loc="lower left")
    axes[-1].set_xticks(range(len(rows)), [r["trace"] for r in rows], rotation=60, ha="right")
    figure.suptitle(rows[0]["states"])
    figure.tight_layout()
    figure.savefig(target)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("png", help="picture to write")
    parser.add_argument("--governor", action="append", help="only these; may be given several times"
                        " (default: teo, base-teo, base-menu)")
    args = parser.parse_args()
    names = args.governor or ["teo", "base-teo", "base-menu"]

    rows = [json.loads(line) for line in sys.stdin if line.strip()]
    tables = sorted({row["states"] for row in rows})
    if len(tables) != 1:
        print(f"plot.py: the input has {len(tables)} state tables, must be one (--states)", file=sys.stderr)
        return 1
    missing = [n for n in [*names, "least-energy"] if n not in rows[0]["governors"]]
    if missing:
        print(f"plot.py: the input lacks {', '.join(missing)}, must have"
              f" some of: {', '.join(rows[0]['governors'])}", file=sys.stderr)
        return 1
    try:
        draw(rows, names, args.png)
    except ImportError:
        print("plot.py: matplotlib is missing, must be installed: apt install python3-matplotlib",
              file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
