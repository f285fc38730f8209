# SPDX-License-Identifier: GPL-2.0
"""The doors of the Makefile: python3 tools/series DOOR."""
from __future__ import annotations

import argparse
import os
import signal
import sys
from types import FrameType

import doors
import proc
from ui import Fail


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make", description="Build and run the series.")
    parser.add_argument("door", choices=list(doors.DOORS), metavar="door",
                        help=", ".join(doors.DOORS))
    door = doors.DOORS[parser.parse_args(argv).door]
    signal.signal(signal.SIGTERM, _terminated)
    try:
        proc.jobs()
        return door.open()
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
