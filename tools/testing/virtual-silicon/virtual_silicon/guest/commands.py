# SPDX-License-Identifier: GPL-2.0
"""Commands for guests: a shell, and faults through the control socket."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path

from .. import cli
from . import boot, initramfs, options, qmp


def add(sub: cli.Commands) -> None:
    one = sub.add_parser("shell", help="root shell in the guest")
    options.boot_options(one)
    one.add_argument("--cmd", help="command to run on its terminal instead of a shell")
    one.set_defaults(run=shell)

    one = sub.add_parser("fault", help="break a running guest's CPU, by its --qmp socket")
    one.add_argument("socket")
    one.add_argument("lines", nargs="+", help="as in a fault file")
    one.set_defaults(run=fault)


#: The notes of all guests say that there is no Python.
NOTES = ("if [ -x /usr/bin/cpuwhy ]; then grep -v Python /etc/motd; echo 'cpuwhy doctor, explain,"
         " compare and probe are here; idle and freq need more.'; else cat /etc/motd; fi")


def shell(args: argparse.Namespace) -> int:
    """An interactive root shell; the kernel's messages only if they matter."""
    command = f"sh -lc {shlex.quote(args.cmd)}" if args.cmd else "sh -l"
    script = ("#!/bin/busybox sh\n"
              f"{NOTES} >/dev/console\n"
              f"exec setsid -c {command} </dev/console >/dev/console 2>&1\n")
    c = options.config(args, initramfs.job({"run": script.encode()}),
                f"{boot.KERNEL_ARGS} quiet loglevel=4", True)
    status = boot.interactive(c)
    # Who has typed commands has seen what became of them.
    return 0 if os.isatty(0) and not args.cmd else status


def fault(args: argparse.Namespace) -> int:
    with qmp.Monitor(Path(args.socket)) as monitor:
        for line in args.lines:
            monitor.fault(line)
    return 0
