# SPDX-License-Identifier: GPL-2.0
"""The targets of the Makefile: python3 -m series TARGET."""
from __future__ import annotations

import argparse
import sys

from virtual_silicon import cli

from . import proc, targets


def main() -> int:
    parser = argparse.ArgumentParser(prog="make", description="Build and run the series.")
    parser.add_argument("target", choices=list(targets.TARGETS), metavar="target",
                        help=", ".join(targets.TARGETS))
    name = parser.parse_args().target

    def run() -> int:
        proc.jobs()
        return targets.TARGETS[name].make()
    return cli.ended(f"make {name}", run)


if __name__ == "__main__":
    sys.exit(main())
