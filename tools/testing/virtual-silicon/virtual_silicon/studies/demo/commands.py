# SPDX-License-Identifier: GPL-2.0
"""make run and make demo."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ... import cli, paths, progress, text
from ...errors import MissingError, UsageError
from ...guest import boot, initramfs, options
from ...guest.job import Job, Section
from ...guest.pool import Guest, Guests
from ...machine import machine
from ...readers import plot, sysfs
from . import compare, demo, report

COMPARED_MACHINE = "platinum-8592"


def add(sub: cli.Commands) -> None:
    one = sub.add_parser("run", help="guided demonstration, or a command in the guest")
    options.boot_options(one)
    one.add_argument("--cmd", help="shell command to run instead")
    one.add_argument("--seconds", type=cli.positive,
                     help="length of a phase (default 4; deterministic 1)")
    one.add_argument("--limit", type=cli.positive, default=600,
                     help="host seconds that --cmd may take (default 600)")
    one.set_defaults(run=run)

    one = sub.add_parser("compare", help="both kernels side by side on one machine")
    one.add_argument("--machine", default=COMPARED_MACHINE,
                     help="name or file (default: %(default)s, whose turbo table the base "
                     "kernel reads wrongly)")
    one.add_argument("--base", default="base",
                     help="a bzImage or Debian package in place of the base kernel")
    one.add_argument("--qemu", help="emulator (default: the built one)")
    one.add_argument("--out", default=str(paths.BUILD / "demo"), help="directory for output")
    one.add_argument("--check", action="store_true", help="only whether the machine can be taken")
    one.set_defaults(run=compared)


def run(args: argparse.Namespace) -> int:
    return _run_command(args) if args.cmd is not None else _run_demo(args)


def _run_command(args: argparse.Namespace) -> int:
    """One shell command in the guest: its output here, its status ours."""
    job = Job()
    job.step("command", f"sh -c {shlex.quote(args.cmd)}")
    c = options.config(args, job.archive(), boot.KERNEL_ARGS)
    c.limits = boot.Limits(min(c.limits.boot, args.limit), args.limit, args.limit)
    result = boot.run(c)
    if said := result.text("command"):
        print(said)
    return result.status


def _progress(plan: demo.Plan, tell: Callable[[str], None], section: Section) -> None:
    """A line as each phase ends: what the guest saw."""
    phase = next((p for p in plan.phases if p.name == section.name), None)
    if phase is None:
        return
    if section.status:
        tell(f"{phase.title}: failed, {' '.join(section.lines[-1:])}")
        return
    seen = report.guest_view(section.text)
    what = f"{phase.title}, {phase.knob}" if phase.knob else phase.title
    tell(f"{what:<40} {seen.busy:6.1f} % busy at {seen.mhz or 0:6.0f} MHz")


def _demo_limits(c: boot.Config, plan: demo.Plan) -> boot.Limits:
    """Host seconds: in deterministic time every busy CPU runs after the other."""
    phase = plan.seconds * (1 + 8 * c.cpus if c.mode == "deterministic" else 1)
    return boot.Limits(c.limits.boot, 60 + 2 * phase,
                       120 + c.limits.boot + 3 * phase * len(plan.phases))


def _run_demo(args: argparse.Namespace) -> int:
    c = options.config(args, b"", boot.KERNEL_ARGS)
    seconds = args.seconds or demo.SECONDS[args.time]
    plan = demo.plan(c.machine, c.cpus, seconds)
    c.job = demo.job(c.machine, plan).archive()
    c.limits = _demo_limits(c, plan)
    print(f"Booting {args.kernel} kernel on {c.machine.name}, {c.cpus} CPUs: "
          f"{len(plan.phases)} phases of {seconds:g} s", flush=True)
    result = boot.run(c, partial(_progress, plan, progress.stopwatch()))
    tables = report.tables(c, plan, result)
    (c.out / "report.json").write_text(json.dumps(
        {title: [head, *rows] for title, head, rows in tables}, indent=1) + "\n")
    print()
    for title, head, rows in tables:
        text.show(title, head, rows)
    for line in sysfs.warnings(result.text("dmesg")):
        print(f"kernel: {line}")
    print(f"The same as data: {c.out / 'report.json'}; events: {result.trace}")
    return result.status


def compared(args: argparse.Namespace) -> int:
    """Both kernels at once, each in its guest; a table, the same as data, a picture."""
    m, out = machine.load(args.machine), Path(args.out)
    if m.vendor != "GenuineIntel":
        raise UsageError(f"{m.name}: compare reads registers that only Intel's CPUs have")
    if args.check:
        return 0
    plot.load_pyplot()
    qemu = paths.qemu(args.qemu)
    images = {name: options.image(kernel, out.parent)
              for name, kernel in zip(compare.KERNELS, (args.base, "patched"))}
    if not (selftests := paths.selftests()):
        raise MissingError("the selftests are not built (make demo builds them)")
    archive = initramfs.ensure(out.parent / "guest", selftests)
    print(f"Booting both kernels on {m.name}, 4 CPUs, in deterministic time", flush=True)
    tell = progress.stopwatch()
    guests = [Guest(kernel, m, m.check_cpus(4), image, compare.job(m, kernel, files),
                    boot.KERNEL_ARGS, compare.FAULTS, trace=True,
                    limits=boot.Limits(300, 300, 900))
              for kernel, (image, files) in images.items()]
    results = dict(zip(images, Guests(out, archive, qemu, len(images), keep=False).answers(
        guests, lambda guest, section: tell(f"{guest.name:8} {section.name}"))))
    rows = compare.table(m, results)
    print(f"\n{compare.text(m, rows)}\n")
    text.write_csv(out / "compare.csv", ("what", *compare.KERNELS, "verdict", "believe"), rows)
    compare.draw(results, out / "compare.png")
    print(f"The same as data: {out / 'compare.csv'}; picture: {out / 'compare.png'}")
    return 0
