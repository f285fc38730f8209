# SPDX-License-Identifier: GPL-2.0
"""What commands have in common: options of experiments, and how all end."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from . import paths
from .errors import Fail
from .guest import boot
from .guest.job import Job
from .guest.pool import Guest
from .machine import machine


def options(parser: argparse.ArgumentParser, directory: str, machine_file: Path,
            boots: int) -> None:
    """Of an experiment that boots both kernels several times."""
    add = parser.add_argument
    add("--boots", type=int, default=boots, help=f"of each kernel (default {boots})")
    add("--jobs", type=int, default=1, help="guests at a time")
    add("--machine", default=str(machine_file))
    add("--cpus", type=int, default=4)
    add("--base", default="base", help="the base's image")
    add("--patched", default="patched", help="our image")
    add("--append", default="", help="more for the kernel command line")
    add("--out", type=Path, default=paths.BUILD / directory)


def guest(args: argparse.Namespace, name: str, kernel: str, job: Job,
          trace: bool = False) -> Guest:
    """Of the options. @kernel: base or patched."""
    return Guest(name, machine.load(args.machine), args.cpus,
                 paths.kernel(getattr(args, kernel)), job, f"intel_pstate=passive {args.append}",
                 trace=trace)


def _terminated(number: int, frame: FrameType | None) -> None:
    """So that SIGTERM runs the same clean-up as ctrl-C."""
    boot.interrupted.set()
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
