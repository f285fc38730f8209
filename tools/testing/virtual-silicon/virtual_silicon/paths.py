# SPDX-License-Identifier: GPL-2.0
"""Where the build leaves what is booted, and where runs leave their output."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import MissingError

ROOT = Path(__file__).resolve().parents[4]
SILICON = ROOT / "tools/testing/virtual-silicon"
#: make sets it for a kernel newer than the default
BUILD = Path(os.environ.get("X86_DVFS_BUILD") or ROOT / "build")
RUN = BUILD / "run"
QEMU = BUILD / "out" / "qemu" / "qemu-system-x86_64"


def kernel(kind: str) -> Path:
    """Kernel image by the kind of build ("base", "patched") or by path."""
    if kind in ("base", "patched"):
        return need(BUILD / "out" / kind / "bzImage",
                    f"make kernel builds the {kind} kernel")
    return need(Path(kind), "give the path of a bzImage")


def qemu(path: str | None = None) -> Path:
    return need(Path(path) if path else QEMU, "make qemu builds it")


def need(path: Path, hint: str) -> Path:
    if not path.is_file():
        raise MissingError(f"{path} is not there ({hint})")
    return path


def selftests() -> Path | None:
    """kselftests of ours as `make install` leaves them, if they are built."""
    path = BUILD / "out" / "selftests"
    return path if path.is_dir() else None
