# SPDX-License-Identifier: GPL-2.0
"""make bench, and the same loads on the machine at hand."""

from __future__ import annotations

import argparse
import platform
from functools import partial
from pathlib import Path

from ... import cli, paths
from ...errors import UsageError
from ...guest import initramfs, options
from ...loads import HERE as SCRIPTS
from . import cells, host, loads, report, runner, tables


def add(sub: cli.Commands) -> None:
    machines = [m.name for m in cells.MACHINES]
    one = sub.add_parser("bench", help="the published tables, measured in guests")
    one.add_argument("--extent", default="short", choices=loads.EXTENTS,
                     help="short (the default), results: tbench and pgbench, too; assumptions: "
                     "two loads with each assumption of the model changed")
    one.add_argument("--stock", type=Path,
                     help="package of another kernel, for the column stock")
    one.add_argument("--kept", action="store_true",
                     help="only what has been measured before, without any guest")
    one.add_argument("--machines", nargs="+", metavar="MACHINE", choices=machines,
                     default=machines, help="of: " + ", ".join(machines))
    one.add_argument("--qemu", help="emulator (default: the built one)")
    options.jobs(one)
    one.add_argument("-o", "--output", type=Path, default=paths.BUILD / "bench",
                     help="directory for the tables and what was measured")
    one.set_defaults(run=bench)

    one = sub.add_parser("run-on-host", help="the loads of bench on this machine, which must "
                         "not be used meanwhile; every setting is put back")
    one.add_argument("-o", "--output", type=Path, default=paths.BUILD / "bench-host",
                     help="directory for the tables")
    one.set_defaults(run=on_host)


def bench(args: argparse.Namespace) -> int:
    """1 if a cell failed."""
    out = args.output.resolve()
    kernels, modules = runner.images(args.stock, out)
    guests = runner.Bench(out, kernels, paths.qemu(args.qemu), args.jobs, modules)
    machines = [m for m in cells.MACHINES if m.name in args.machines]
    todo = [cell for cell in cells.all_cells(args.extent, machines)
            if cell.setting.boot.kernel in kernels]
    if not todo:
        raise UsageError(f"--extent {args.extent} has no cells of {', '.join(args.machines)}; it "
                         "has of: " + ", ".join(dict.fromkeys(
                             c.machine.name for c in cells.all_cells(args.extent))))
    results = guests.run(todo, args.kept)
    about = report.made_from(guests.digests, "make bench" + (
        f" BENCH={args.extent}" if args.extent != "short" else ""))
    if absent := len(todo) - len(results):
        about["cells not measured, which have -"] = absent
        print(f"{absent} cells have not been measured; - stands for them")
    measured = tables.Measured(results)
    if args.extent == "assumptions":
        print(report.write(out / args.extent, results, about, (), [tables.sensitivity(measured)]))
    else:
        print(report.write(out, results, about, ends=report.verdicts(measured)))
    return int(any(isinstance(result, runner.Failure) for result in results.values()))


def on_host(args: argparse.Namespace) -> int:
    """1 if a cell failed or a setting could not be put back."""
    knobs = host.Knobs(Path("/"))
    host.check(knobs)
    out = args.output.resolve()
    initramfs.compiled(SCRIPTS / "stopwatch.c", out)
    initramfs.compiled(SCRIPTS / "disk.c", out, shared=True)
    machine, results, lost = host.run(
        knobs, platform.node(), partial(host.load, out, host.tsc_khz()), print,
        host.surroundings(out))
    about = report.made_from({"kernel": platform.release()}, "run-on-host")
    print(report.write(out, results, about, [host.table(machine)]))
    return int(bool(lost) or any(isinstance(r, runner.Failure) for r in results.values()))
