# SPDX-License-Identifier: GPL-2.0
"""The command for traces."""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import cli
from . import plot, trace


def add(sub: cli.Commands) -> None:
    one = sub.add_parser("plot", help="picture of a trace")
    one.add_argument("trace")
    one.add_argument("output", help="PNG file")
    one.add_argument("--begin", type=float, default=0, help="from, in s")
    one.add_argument("--end", type=float, help="to, in s (default: all)")
    one.add_argument("--title", default="")
    one.set_defaults(run=picture)


def picture(args: argparse.Namespace) -> int:
    plot.draw(trace.read(Path(args.trace)), Path(args.output), args.begin, args.end,
              args.title)
    print(args.output)
    return 0
