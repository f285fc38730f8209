# SPDX-License-Identifier: GPL-2.0
"""Calling the virtual machine's own program with the user's variables."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from virtual_silicon.errors import Fail

from . import paths, proc

PYTHON = sys.executable		# what make runs on runs all else
_OPTIONS = {"MACHINE": "--machine", "CPUS": "--cpus", "TIME": "--time", "CMD": "--cmd",
            "FAULTS": "--faults", "APPEND": "--append"}


def command(subcommand: str, *options: str) -> list[str]:
    return [PYTHON, "-m", "virtual_silicon", subcommand, *options]


def user_options(*names: str) -> list[str]:
    """Options for those of the variables that are set. "=" joins a value to
    its option, so that one which begins with a dash stays a value."""
    return [f"{_OPTIONS[n]}={os.environ[n]}" for n in names if os.environ.get(n)]


def environment() -> dict[str, str]:
    return proc.environment({"PYTHONPATH": paths.PYTHONPATH, "X86_DVFS_BUILD": str(paths.BUILD)})


def check() -> None:
    """Refuse unknown machines, CPU counts and modes before anything is built.
    Options are looked at before --help ends the call."""
    if not re.fullmatch(r"\d*", cpus := os.environ.get("CPUS", "")):
        raise Fail(f"CPUS={cpus}: a number", code=2)
    for call_ in (command("check", *user_options("MACHINE", "CPUS", "FAULTS")),
                  command("run", *user_options("TIME"), "--help")):
        _try(call_)


def may_compare() -> None:
    """The same for what boots both kernels side by side."""
    compared()
    check()
    _try(command("compare", *user_options("MACHINE"), "--check"))


def _try(call_: list[str]) -> None:
    done = proc.capture(call_, env=environment(), cwd=paths.TOP, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        # The reason is the last line but for a list below it.
        first = max((n for n, line in enumerate(said) if not line.startswith(" ")))
        raise Fail(said[first].removeprefix("virtual-silicon: "),
                   "\n".join(said[first + 1:]), done.returncode)


def kernel(default: str = "patched") -> str:
    """patched, base, or the file that KERNEL= names."""
    wanted = os.environ.get("KERNEL") or default
    if wanted not in ("patched", "base") and not _boots(Path(wanted)):
        raise Fail(f"KERNEL={wanted}: neither patched nor base nor the file of a bzImage"
                   " or of a Debian package", code=2)
    return wanted


def _boots(file: Path) -> bool:
    """A package, or an image: these words are at these places of all."""
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        head = opened.read(0x206)
    return head.startswith(b"!<arch>\n") if file.suffix == ".deb" else head[0x202:] == b"HdrS"


def compared(option: str = "--base") -> list[str]:
    """For the kernel that the patched one is compared with, if that is not the base."""
    found = kernel("base")
    return [] if found in ("base", "patched") else [f"{option}={Path(found).resolve()}"]


def call(subcommand: str, which: str, *more: str) -> int:
    """Boot; the guest's exit code is ours. The user's variables unless there are @more."""
    image = paths.kernel_image(which) if which in ("patched", "base") else Path(which).resolve()
    options = ["--kernel", str(image), "--qemu", str(paths.QEMU_BINARY)]
    return silicon(subcommand, *options, *(more or user_options(*_OPTIONS)))


def silicon(subcommand: str, *options: str) -> int:
    """A command of the virtual machine's program on this terminal."""
    return subprocess.run(command(subcommand, *options), env=environment(),
                          cwd=paths.TOP).returncode


def boot(cmd: str, out: Path, *options: str, image: Path | None = None) -> str:
    """Run `cmd` in the patched kernel's guest, or another's, its files in `out`; returns
    what it printed. Its exit code is for whoever reads that; a guest that did
    not get so far is a Fail."""
    image = image or paths.kernel_image("patched")
    done = proc.capture(command("run", f"--kernel={image}",
                                f"--qemu={paths.QEMU_BINARY}", f"--out={out}", f"--cmd={cmd}",
                                *options), cwd=paths.TOP, env=environment(), check=False)
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode and said.startswith("virtual-silicon:"):
        reason, _, details = said.partition("\n")
        raise Fail(reason, details)
    return done.stdout.decode(errors="replace")
