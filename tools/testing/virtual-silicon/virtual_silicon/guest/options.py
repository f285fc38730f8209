# SPDX-License-Identifier: GPL-2.0
"""Options of commands that boot guests, and the guests that they ask for."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from .. import cli, paths
from ..machine import machine
from . import boot, claim, distribution, initramfs, python
from .pool import Guest, Guests


def jobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=cli.count, default=len(os.sched_getaffinity(0)),
                        help="guests at a time (default: the host's CPUs)")


def pool_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--qemu", help="emulator (default: the built one)")
    jobs(parser)


def boot_options(parser: argparse.ArgumentParser) -> None:
    """Of a guest; config() is what they ask for."""
    add = parser.add_argument
    add("--machine", default=cli.DEFAULT_MACHINE, help="name or file; ? lists the names")
    add("--cpus", type=int, help="number of CPUs (default 4)")
    add("--kernel", default="patched",
        help="patched, base, or the path of a bzImage or a Debian package")
    add("--qemu", help="emulator (default: the built one)")
    add("--time", choices=boot.MODES, default="free",
        help="free: counters follow the host's time; deterministic: virtual time follows "
        "instructions, frequency sets speed")
    add("--append", default="", help="more for the kernel command line")
    add("--faults", metavar="FILE", help="what to break, and when (format: see README.md)")
    add("--qmp", metavar="SOCKET", help="control socket, for the command fault")
    add("--compact", action="store_true", help="the trace compressed, as trace.gz")
    add("--out", help="directory for output (default: build/run, or build/run-2 and so on while "
        "others run)")


def packaged(package: Path, where: Path) -> tuple[Path, dict[str, bytes]]:
    """The image of a Debian package, and modules for a job."""
    unpacked = distribution.unpack(package, where / "kernels")
    return unpacked.image, unpacked.files()


def image(kernel: str, where: Path) -> tuple[Path, dict[str, bytes]]:
    """Of patched, base, a bzImage or a Debian package, whose modules the job gets."""
    if not kernel.endswith(".deb"):
        return paths.kernel(kernel), {}
    return packaged(Path(kernel), where)


def _output(wanted: str | None) -> Path:
    """Ours until we end."""
    if wanted:
        claim.claim(Path(wanted))
        return Path(wanted)
    out = claim.free(paths.RUN)
    if out != paths.RUN:
        print(f"virtual-silicon: another guest writes to {paths.RUN}, this one to {out}",
              file=sys.stderr)
    return out


def config(args: argparse.Namespace, job: bytes, append: str,
           python_too: bool = False) -> boot.Config:
    """@python_too: and cpuwhy."""
    m = machine.load(args.machine)
    cpus = m.check_cpus(min(4, m.cores) if args.cpus is None else args.cpus)
    parent = Path(args.out or paths.RUN).parent
    kernel, modules = image(args.kernel, parent)
    if modules:
        job += initramfs.job(modules)
    return boot.Config(
        machine=m, cpus=cpus, kernel=kernel,
        qemu=paths.qemu(args.qemu),
        initramfs=initramfs.ensure(parent / ("shell" if python_too else "guest"), paths.selftests(),
                                   python.items(parent / "shell") if python_too else ()),
        out=_output(args.out), job=job, mode=args.time, append=f"{append} {args.append}".strip(),
        faults=Path(args.faults) if args.faults else None, compact=args.compact,
        qmp=Path(args.qmp).resolve() if args.qmp else None,
        # CPUs start one by one, and the host has fewer than the guest.
        limits=boot.Limits(boot=60 + 3 * cpus))


def where(parser: argparse.ArgumentParser, directory: str) -> None:
    """Of each study."""
    jobs(parser)
    parser.add_argument("--out", type=Path, default=paths.BUILD / directory)


def words(text: str) -> list[str]:
    """Of an option whose value is a list."""
    return re.split(r"[,\s]+", text.strip())


def answers(args: argparse.Namespace, todo: Sequence[Guest], recipe: Path | None = None,
            selftests: Path | None = None, archive: str = "guest") -> list[boot.Result]:
    """Of a study's guests. @recipe: what they need beside guest/recipe.txt; @archive: the
    directory of what they have in common."""
    made = initramfs.ensure(args.out / archive, selftests, recipe or ())
    return Guests(args.out, made, paths.qemu(), args.jobs).answers(todo)
