# SPDX-License-Identifier: GPL-2.0
"""Calling the virtual machine's own program with the user's variables."""
from __future__ import annotations

import os
import subprocess

import paths
import proc

PYTHON = "/usr/bin/python3"
_OPTIONS = {"MACHINE": "--machine", "CPUS": "--cpus", "TIME": "--time", "CMD": "--cmd"}


def command(subcommand: str, *options: str) -> list[str]:
    return [PYTHON, "-m", "vsilicon", subcommand, *options]


def user_options(*names: str) -> list[str]:
    """Options for those of the variables that are set. "=" joins a value to
    its option, so that one which begins with a dash stays a value."""
    return [f"{_OPTIONS[n]}={os.environ[n]}" for n in names if os.environ.get(n)]


def environment() -> dict[str, str]:
    return proc.environment({"PYTHONPATH": str(paths.SILICON)})


def check() -> None:
    """Refuse an unknown machine or CPU count before anything is built."""
    done = subprocess.run(command("check", *user_options("MACHINE", "CPUS")), env=environment(),
                          cwd=paths.TOP, stdout=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit(done.returncode)


def call(subcommand: str, which: str) -> int:
    """Boot; the guest's exit code is ours."""
    options = ["--kernel", str(paths.kernel_image(which)), "--qemu", str(paths.QEMU_BINARY)]
    wanted = user_options(*_OPTIONS)
    return subprocess.run(command(subcommand, *options, *wanted), env=environment(),
                          cwd=paths.TOP).returncode
