# SPDX-License-Identifier: GPL-2.0
"""Command line: python3 -m virtual_silicon COMMAND."""

from __future__ import annotations

import argparse
import sys

from . import cli


def parser() -> argparse.ArgumentParser:
    """Imports here: what is wrong in a file that they read, loads.toml, is one line too."""
    from .guest import commands as guest
    from .lab import commands as lab
    from .machine import commands as machine
    from .readers import commands as readers
    from .studies import installed
    from .studies.demo import commands as demo
    from .studies.validation import validate

    top = argparse.ArgumentParser(prog="virtual-silicon", description=__doc__)
    sub = top.add_subparsers(required=True, metavar="COMMAND")
    for part in (demo, guest, lab, installed, validate, machine, readers):
        part.add(sub)
    return top


def main() -> int:
    def run() -> int:
        args = parser().parse_args()
        return args.run(args)
    return cli.ended("virtual-silicon", run)


if __name__ == "__main__":
    sys.exit(main())
