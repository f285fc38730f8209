# SPDX-License-Identifier: GPL-2.0
"""The doors of the Makefile: python3 tools/build DOOR."""
from __future__ import annotations

import argparse
import signal
import sys
from dataclasses import dataclass
from typing import Callable

import doors
from ui import Fail


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make", description="Build and run the series.")
    parser.add_argument("door", choices=list(doors.DOORS), metavar="door",
                        help=", ".join(doors.DOORS))
    door = doors.DOORS[parser.parse_args(argv).door]
    # A killed build ends like an interrupted one: children stopped, no trace.
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    try:
        return door.open()
    except Fail as failure:
        if failure.details:
            print(failure.details, file=sys.stderr)
        print(f"make {sys.argv[-1]}: {failure}", file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
