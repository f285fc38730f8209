#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Utilisation over frequency, with and without invariance: the result of `fixed`.

Needs python3-matplotlib.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result", type=Path)
    parser.add_argument("picture", type=Path)
    args = parser.parse_args()
    rows = json.loads(args.result.read_text())["rows"]
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for enabled, label in ((1, "with invariance"), (0, "without")):
        points = [(r["khz"] / 1e6, r["kernel"]) for r in rows if r["enabled"] == enabled]
        axes.plot(*zip(*points), "o-", markersize=3, label=label)
    points = [(r["khz"] / 1e6, r["expected"]) for r in rows if r["enabled"] == 1]
    axes.plot(*zip(*points), "k--", linewidth=1, label="worked out from the model's clock")
    axes.set(xlabel="clock in GHz", ylabel="utilisation at dequeue, of 1024", ylim=(0, None),
             title="The same periodic work at each P-state (from a model)")
    axes.legend()
    figure.tight_layout()
    figure.savefig(args.picture, dpi=120)
    return 0


if __name__ == "__main__":
    sys.exit(main())
