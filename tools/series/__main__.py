# SPDX-License-Identifier: GPL-2.0
"""The targets of the Makefile: python3 -m series TARGET."""
from __future__ import annotations

import argparse
import os
import signal
import sys
from types import FrameType

from virtual_silicon.errors import Fail

from . import proc, targets


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make", description="Build and run the series.")
    parser.add_argument("target", choices=list(targets.TARGETS), metavar="target",
                        help=", ".join(targets.TARGETS))
    target = targets.TARGETS[parser.parse_args(argv).target]
    signal.signal(signal.SIGTERM, _terminated)
    try:
        proc.jobs()
        return target.make()
    except Fail as failure:
        if failure.details:
            print(failure.details, file=sys.stderr)
        print(f"make {sys.argv[-1]}: {failure}", file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:     # make help | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _terminated(number: int, frame: FrameType | None) -> None:
    """A killed build ends like an interrupted one: its children stopped."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
