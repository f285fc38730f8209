# SPDX-License-Identifier: GPL-2.0
"""Commands for guests: shell, repeat, and what goes through the control socket."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path

from .. import cli
from . import boot, initramfs, options, qmp, repeat
from .job import Job


def add(sub: cli.Commands) -> None:
    one = sub.add_parser("shell", help="root shell in the guest")
    options.boot_options(one)
    one.add_argument("--cmd", help="command to run on its terminal instead of a shell")
    one.set_defaults(run=shell)

    one = sub.add_parser("fault", help="break a running guest's CPU, by its --qmp socket")
    one.add_argument("socket")
    one.add_argument("lines", nargs="+", help="as in a fault file")
    one.set_defaults(run=fault)

    one = sub.add_parser("counters", help="the model's counters as of now, by the --qmp socket")
    one.add_argument("socket")
    one.set_defaults(run=counters)

    one = sub.add_parser("repeat", help="the same start several times, in deterministic "
                         "time: identical to the byte?")
    options.boot_options(one)
    one.add_argument("--cmd", help="shell command (default: a mix)")
    one.add_argument("--runs", type=int, default=10)
    one.add_argument("--load", type=int, default=4,
                     help="busy host processes beside every second run (default 4)")
    one.add_argument("--limit", type=cli.positive, default=600,
                     help="host seconds of one run (default 600)")
    one.set_defaults(run=repeated)


def shell(args: argparse.Namespace) -> int:
    """An interactive root shell; the kernel's messages only if they matter."""
    command = f"sh -lc {shlex.quote(args.cmd)}" if args.cmd else "sh -l"
    script = ("#!/bin/busybox sh\n"
              "cat /etc/motd >/dev/console\n"
              f"exec setsid -c {command} </dev/console >/dev/console 2>&1\n")
    c = options.config(args, initramfs.job({"run": script.encode()}),
                f"{boot.KERNEL_ARGS} quiet loglevel=4")
    return boot.interactive(c)


def fault(args: argparse.Namespace) -> int:
    with qmp.Monitor(Path(args.socket)) as monitor:
        for line in args.lines:
            monitor.fault(line)
    return 0


def counters(args: argparse.Namespace) -> int:
    with qmp.Monitor(Path(args.socket)) as monitor:
        print(json.dumps(monitor.counters(), indent=1))
    return 0


def repeated(args: argparse.Namespace) -> int:
    """0 if all runs left the same bytes and the guest's command did not fail."""
    job = Job()
    job.step("command", f"sh -c {shlex.quote(args.cmd or repeat.COMMAND)}")
    args.time = "deterministic"
    c = options.config(args, job.archive(), boot.KERNEL_ARGS)
    c.limits = boot.Limits(args.limit, args.limit, args.limit)
    done = []
    time = c.machine.time
    print(f"{c.cpus} CPUs of {c.machine.name}, {args.kernel} kernel; cycles per instruction: "
          f"{time.kernel_cycles_per_1000_insns / 1000:g} in the kernel, "
          f"{time.user_cycles_per_1000_insns / 1000:g} in user space")
    for run in repeat.runs(c, args.runs, args.load):
        done.append(run)
        speed = run.instructions / run.cpu_seconds / 1e6
        print(f"  {run.seconds:6.1f} s of the host ({run.cpu_seconds:.1f} s of its "
              f"CPUs), {run.virtual:8.3f} s virtual, {speed:.0f} million instructions "
              "or more per CPU second"
              + (", loaded host" if run.loaded else ""), flush=True)
    for name, digest in done[0].digests.items():
        print(f"  {name}: " + ("differs" if name in repeat.differing(done)
                               else f"{digest} in all {len(done)}"))
    return 1 if repeat.differing(done) or any(run.status for run in done) else 0
