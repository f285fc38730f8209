# SPDX-License-Identifier: GPL-2.0
"""Where everything is. Nothing else in this directory spells out a path."""
from __future__ import annotations

import os
import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]

PATCHES = TOP / "patches"
SILICON = TOP / "tools/testing/virtual-silicon"
SCHEDUTIL_SIM = TOP / "tools/testing/schedutil-sim"
PYTHONPATH = f"{TOP}/tools:{TOP}/tools/power:{SILICON}"
FUZZ = TOP / "tools/testing/fuzz"
UNIT = TOP / "tools/testing/unit"
POWER = TOP / "tools/power"
CPUWHY = POWER / "cpuwhy"
SETTINGS = POWER / "settings"
KERNEL_CONFIG = SILICON / "kernel.config"
PATCHED_CONFIG = SILICON / "kernel-patched.config"
DEBIAN_RULES = SILICON / "kernel-debian.toml"
PACKAGES = TOP / "tools/series/fetch/packages.txt"

#: The kernel that the series is for; BASE= may ask for a newer one.
DEFAULT_BASE = "6.12"


def version_of(base: str) -> str:
    """7.3 of 7.3, 7.3.4 and Debian's 7.3.4-1~bpo13+1; the default of anything else."""
    found = re.match(r"\d+\.\d+(?![^.~-])", base)
    return found[0] if found else DEFAULT_BASE


def build_of(version: str) -> Path:
    """What is generated for a newer kernel is in a directory of its own, with the same names."""
    return TOP / "build" / (version if version != DEFAULT_BASE else "")


BASE_VERSION = version_of(os.environ.get("BASE", ""))
BUILD = build_of(BASE_VERSION)
LINUX = BUILD / "linux"
QEMU = build_of(DEFAULT_BASE) / "qemu"
OUT = BUILD / "out"
LOG = BUILD / "log"
RUN = BUILD / "run"
SERIES = BUILD / "series"
TESTS = BUILD / "test"
SELFTESTS = OUT / "selftests"      # the guest takes them from there

QEMU_BINARY = OUT / "qemu/qemu-system-x86_64"


def kernel_image(name: str) -> Path:
    """bzImage of `name`, which is "patched" or "base"."""
    return OUT / name / "bzImage"


def cache_root() -> Path:
    """What outlives a clone: entries that depend on pinned inputs alone."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "x86-dvfs"


def shown(path: Path) -> str:
    """`path` as a user at the top of the repository would type it."""
    try:
        return str(path.relative_to(TOP))
    except ValueError:
        return str(path)
