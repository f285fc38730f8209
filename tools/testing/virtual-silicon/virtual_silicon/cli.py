# SPDX-License-Identifier: GPL-2.0
"""What all commands have in common: how they end, and kinds of options."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from .errors import Fail

DEFAULT_MACHINE = "sapphire-rapids"
#: What add_subparsers() returns has no public name.
Commands = Any

#: Ends the guests of threads, which do not hear of signals and are waited for.
interrupted = threading.Event()


def positive(text: str) -> float:
    value = float(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def _terminated(number: int, frame: FrameType | None) -> None:
    """So that SIGTERM runs the same clean-up as ctrl-C."""
    interrupted.set()
    raise KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)


def ended(name: str, run: Callable[[], int]) -> int:
    """Exit status of @run, or of what stopped it, which is said."""
    signal.signal(signal.SIGTERM, _terminated)
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, _terminated)
    try:
        return run()
    except Fail as error:
        print(f"{name}: {error}", file=sys.stderr)
        for line in error.details.splitlines():
            print(f"  | {line}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 141
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"{name}: {where}{error.strerror or error}", file=sys.stderr)
        return 1
