# SPDX-License-Identifier: GPL-2.0
"""Commands for machine files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cpuwhy import texts

from .. import cli
from ..errors import UsageError
from ..text import show
from . import adopt, break_even, convert, faults, machine


def add(sub: cli.Commands) -> None:
    one = sub.add_parser("check", help="check machine files (default: all)")
    one.add_argument("machines", nargs="*")
    one.add_argument("--machine", help="one more, or the only one")
    one.add_argument("--cpus", type=int, help="must be allowed on each")
    one.add_argument("--faults", type=Path, help="a file of faults, too")
    one.set_defaults(run=check)

    one = sub.add_parser("energy", help="from which time of rest each idle state pays, and "
                         "what the driver says")
    one.add_argument("machines", nargs="*", help="default: all")
    one.set_defaults(run=energy)

    one = sub.add_parser("convert", help="a dump of a real machine to a machine file")
    one.add_argument("dumps", nargs="+", metavar="dump",
                     help="files, folders or archives of one machine, or - for standard input")
    one.add_argument("--part", metavar="NAME", help="as a part of a family's file instead")
    one.add_argument("-o", "--output")
    one.set_defaults(run=converted)

    one = sub.add_parser("adopt", help="what cpuwhy probe wrote of a real machine to a machine "
                         "file; `compare --machine` with it predicts what the series changes "
                         "there, `validate --probe` compares model and measurement")
    one.add_argument("file", type=Path, help="of cpuwhy probe")
    one.add_argument("-o", "--output", type=Path, help="machine file (default: standard output)")
    one.set_defaults(run=adopted)


def check(args: argparse.Namespace) -> int:
    """Each file is read; the first that is wrong ends it."""
    if args.faults:
        faults.read(args.faults)
    asked = args.machines + ([args.machine] if args.machine else [])
    for name in asked or ([cli.DEFAULT_MACHINE] if args.cpus is not None
                          else machine.names()):
        m = machine.load(name)
        if args.cpus is not None:
            m.check_cpus(args.cpus)
        print(f"{m.name}: {m.title}, {m.packages} x {m.cores} cores, "
              + "-".join(f"{round(m.mhz(ratio), 1):g}" for ratio in (
                  m.min_ratio, m.base_ratio, m.max_ratio)) + " MHz, "
              + " ".join(state.name for state in m.idle))
    return 0


def energy(args: argparse.Namespace) -> int:
    show("From which time of rest a state pays", break_even.HEAD, break_even.table(
        [machine.load(name) for name in args.machines or machine.names()]))
    return 0


def converted(args: argparse.Namespace) -> int:
    """A file is read back, so that what is written is accepted by all commands."""
    read = texts.read(args.dumps)
    for name, reason in read.unknown:
        if name in args.dumps or not read.recognised:
            raise UsageError(f"{name}: {reason}")
    if args.part:
        made = convert.part(read, args.part)
    else:
        made = convert.machine_file(read)
        machine.parse(made, Path(args.output or "converted.toml"))
    return _written(made, args.output)


def _written(made: str, output: str | Path | None) -> int:
    if output:
        Path(output).write_text(made, encoding="utf-8")
    else:
        sys.stdout.write(made)
    return 0


def adopted(args: argparse.Namespace) -> int:
    """As converted()."""
    made = adopt.text(adopt.read(args.file), args.file.name)
    machine.parse(made, args.output or Path("adopted.toml"))
    return _written(made, args.output)
