# SPDX-License-Identifier: GPL-2.0
"""Command line: python3 -m virtual_silicon COMMAND."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from . import cli, commands, paths
from .guest import boot
from .studies.sensitivity import conclusions
from .studies.validation import measurements

#: What add_subparsers() returns has no public name.
Commands = Any


def _positive(text: str) -> float:
    value = float(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def _boot_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--machine", default=commands.DEFAULT_MACHINE,
                        help="name or file; ? lists the names")
    parser.add_argument("--cpus", type=int, help="number of CPUs (default 4)")
    parser.add_argument("--kernel", default="patched",
                        help="patched, base, or the path of a bzImage or a Debian "
                        "package")
    parser.add_argument("--qemu", help="emulator (default: the built one)")
    parser.add_argument("--time", choices=boot.MODES, default="free",
                        help="free: counters follow the host's time; deterministic: "
                        "virtual time follows instructions, frequency sets speed")
    parser.add_argument("--append", default="", help="more for the kernel command line")
    parser.add_argument("--faults", metavar="FILE",
                        help="what to break, and when (format: see README.md)")
    parser.add_argument("--qmp", metavar="SOCKET",
                        help="control socket, for the commands fault and counters")
    parser.add_argument("--compact", action="store_true",
                        help="the trace compressed, as trace.gz")
    parser.add_argument("--out", default=str(paths.RUN), help="directory for output")


def _guest_commands(sub: Commands) -> None:
    one = sub.add_parser("run", help="guided demonstration, or a command in the guest")
    _boot_arguments(one)
    one.add_argument("--cmd", help="shell command to run instead")
    one.add_argument("--seconds", type=_positive,
                     help="length of a phase (default 4; deterministic 1)")
    one.add_argument("--limit", type=_positive, default=600,
                     help="host seconds that --cmd may take (default 600)")
    one.set_defaults(run=commands.run)

    one = sub.add_parser("compare", help="both kernels side by side on one machine")
    one.add_argument("--machine", default=commands.COMPARED_MACHINE,
                     help="name or file (default: %(default)s, whose turbo table the base "
                     "kernel reads wrongly)")
    one.add_argument("--qemu", help="emulator (default: the built one)")
    one.add_argument("--out", default=str(paths.BUILD / "demo"), help="directory for output")
    one.set_defaults(run=commands.compare_command)

    one = sub.add_parser("shell", help="root shell in the guest")
    _boot_arguments(one)
    one.add_argument("--cmd", help="command to run on its terminal instead of a shell")
    one.set_defaults(run=commands.shell)


def _control_commands(sub: Commands) -> None:
    one = sub.add_parser("fault", help="break a running guest's CPU, by its --qmp socket")
    one.add_argument("socket")
    one.add_argument("lines", nargs="+", help="as in a fault file")
    one.set_defaults(run=commands.fault_command)

    one = sub.add_parser("counters", help="the model's counters as of now, by the "
                         "--qmp socket")
    one.add_argument("socket")
    one.set_defaults(run=commands.counters_command)


def _repeat_command(sub: Commands) -> None:
    one = sub.add_parser("repeat", help="the same start several times, in deterministic "
                         "time: identical to the byte?")
    _boot_arguments(one)
    one.add_argument("--cmd", help="shell command (default: a mix)")
    one.add_argument("--runs", type=int, default=10)
    one.add_argument("--load", type=int, default=4,
                     help="busy host processes beside every second run (default 4)")
    one.add_argument("--limit", type=_positive, default=600,
                     help="host seconds of one run (default 600)")
    one.set_defaults(run=commands.repeat_command)


def _installed_command(sub: Commands) -> None:
    one = sub.add_parser("installed", help="kernel packages on a Debian 12: installed, "
                         "booted, used, removed")
    one.add_argument("packages", nargs="+", metavar="DEB")
    one.add_argument("--machine", default=commands.DEFAULT_MACHINE)
    one.add_argument("--qemu", help="emulator (default: the built one)")
    one.add_argument("--out", default=str(paths.BUILD / "installed"), help="directory for output")
    one.set_defaults(run=commands.installed_command)


def _witness_command(sub: Commands) -> None:
    one = sub.add_parser("witness", help="a table of what stock kernels and tools say of "
                         "each machine")
    _boot_arguments(one)
    one.add_argument("machines", nargs="*", help="default: all")
    one.add_argument("--parts", action="store_true", help="compare those made from dumps "
                     "with what was read on the parts, under the base kernel")
    one.add_argument("--kernels", nargs="+", default=["base"],
                     help="base, patched, a .deb, or the name of a package that apt "
                     "downloads")
    one.add_argument("--output", help="the table as CSV")
    one.set_defaults(run=commands.witness_command)


def _validate_command(sub: Commands) -> None:
    one = sub.add_parser("validate", help="the model against published measurements: a "
                         "table and a picture")
    one.add_argument("--measurements", type=Path, default=measurements.DATA,
                     help="file of rows (default: %(default)s)")
    one.add_argument("--rows", default="", metavar="REGEX", help="only rows whose part, "
                     "kind or quantity match")
    one.add_argument("--kernel", default="patched", help="patched, base or a bzImage")
    one.add_argument("--qemu", help="emulator (default: the built one)")
    one.add_argument("--jobs", type=int, default=1, help="guests at a time (default 1)")
    one.add_argument("-o", "--output", type=Path, default=paths.BUILD / "validate",
                     help="directory for validation.csv and validation.png")
    one.add_argument("--work", type=Path, default=paths.BUILD / "validate",
                     help="what guests answered: the same start is not made again")
    one.set_defaults(run=commands.validate_command)

    one = sub.add_parser("sensitivity", help="do conclusions hold if assumptions of the "
                         "model are others? A table")
    one.add_argument("--machine", default=commands.DEFAULT_MACHINE)
    one.add_argument("--variants", nargs="+", choices=list(conclusions.VARIANTS),
                     default=list(conclusions.VARIANTS), metavar="VARIANT",
                     help="one or more of: " + ", ".join(conclusions.VARIANTS))
    one.add_argument("--qemu", help="emulator (default: the built one)")
    one.add_argument("--jobs", type=int, default=1, help="guests at a time (default 1)")
    one.add_argument("-o", "--output", type=Path, default=paths.BUILD / "sensitivity",
                     help="directory for sensitivity.csv and sensitivity-measured.csv")
    one.add_argument("--work", type=Path, default=paths.BUILD / "sensitivity",
                     help="what guests answered")
    one.set_defaults(run=commands.sensitivity_command)


def _bench_command(sub: Commands) -> None:
    one = sub.add_parser("bench", help="the published tables, measured in guests: a report")
    one.add_argument("--extent", default="short", choices=commands.EXTENTS,
                     help="short (the default), results: tbench and pgbench, too, and each "
                     "assumption of the model changed, full: and more parameters of each load")
    one.add_argument("--kept", action="store_true",
                     help="only what has been measured before, without any guest")
    one.add_argument("--machines", nargs="+", metavar="MACHINE", choices=commands.BENCHED,
                     default=commands.BENCHED, help="of: " + ", ".join(commands.BENCHED))
    one.add_argument("--qemu", help="emulator (default: the built one)")
    one.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)),
                     help="guests at a time (default: the host's CPUs)")
    one.add_argument("-o", "--output", type=Path, default=paths.BUILD / "bench",
                     help="directory for the report and what was measured")
    one.set_defaults(run=commands.bench_command)

    one = sub.add_parser("run-on-host", help="the loads of bench on this machine, which must "
                         "not be used meanwhile; every setting is put back")
    one.add_argument("-o", "--output", type=Path, default=paths.BUILD / "bench-host",
                     help="directory for the report")
    one.set_defaults(run=commands.host_command)


def _machine_commands(sub: Commands) -> None:
    one = sub.add_parser("check", help="check machine files (default: all)")
    one.add_argument("machines", nargs="*")
    one.add_argument("--machine", help="one more, or the only one")
    one.add_argument("--cpus", type=int, help="must be allowed on each")
    one.set_defaults(run=commands.check)

    one = sub.add_parser("json", help="a machine as the emulator takes it")
    one.add_argument("machine")
    one.add_argument("--cpus", type=int, help="CPUs of the guest (default: the part's)")
    one.add_argument("-o", "--output")
    one.set_defaults(run=commands.json_command)

    one = sub.add_parser("energy", help="from which time of rest each idle state pays, and "
                         "what the driver says")
    one.add_argument("machines", nargs="*", help="default: all")
    one.set_defaults(run=commands.energy_command)

    one = sub.add_parser("ssdt", help="ACPI P-state table (.aml: compiled)")
    one.add_argument("machine")
    one.add_argument("--cpus", type=int, default=4)
    one.add_argument("-o", "--output")
    one.set_defaults(run=commands.ssdt_command)

    one = sub.add_parser("convert", help="a dump of a real machine to a machine file")
    one.add_argument("dumps", nargs="+", metavar="dump",
                     help="files of one machine, or - for standard input")
    one.add_argument("--part", metavar="NAME",
                     help="as a part of a family's file instead")
    one.add_argument("-o", "--output")
    one.set_defaults(run=commands.convert_command)

    one = sub.add_parser("packages", help="Debian packages the guest is made of")
    one.set_defaults(run=commands.packages)


def _trace_commands(sub: Commands) -> None:
    one = sub.add_parser("trace", help="summary of a trace")
    one.add_argument("trace")
    one.set_defaults(run=commands.trace_command)

    one = sub.add_parser("plot", help="picture of a trace")
    one.add_argument("trace")
    one.add_argument("output", help="PNG file")
    one.add_argument("--begin", type=float, default=0, help="from, in s")
    one.add_argument("--end", type=float, help="to, in s (default: all)")
    one.add_argument("--title", default="")
    one.set_defaults(run=commands.plot_command)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="virtual-silicon", description=__doc__)
    sub = top.add_subparsers(required=True, metavar="COMMAND")
    for add in (_guest_commands, _control_commands, _repeat_command, _installed_command,
                _witness_command, _validate_command, _bench_command, _machine_commands,
                _trace_commands):
        add(sub)
    return top


def main() -> int:
    def run() -> int:
        args = parser().parse_args()
        return args.run(args)
    return cli.ended("virtual-silicon", run)


if __name__ == "__main__":
    sys.exit(main())
