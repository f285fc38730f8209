# SPDX-License-Identifier: GPL-2.0
"""`cpuwhy probe` in a guest, which gets Debian's Python for it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ... import paths
from ...guest import boot, initramfs, pool
from ...guest.initramfs import Item
from ...guest.job import Job
from ...machine.machine import Machine

PYTHON = "/usr/bin/python3"
CPUWHY = paths.ROOT / "tools/power/cpuwhy"
CPUS = 4
#: Less than a user takes: fewer samples, and times that deterministic time affords.
SECONDS = 3

#: What Python has open once cpuwhy has read all that it needs.
_MODULES = """
import sys
sys.argv[1:] = ["probe", "--help"]
import runpy, encodings.ascii, encodings.latin_1
try:
    runpy.run_module("cpuwhy")
except SystemExit:
    pass
for module in list(sys.modules.values()):
    if file := getattr(module, "__file__", None):
        print(file, file=sys.stderr)
"""


def python() -> list[Item]:
    """The interpreter, and those parts of its library that cpuwhy imports."""
    said = subprocess.run([PYTHON, "-s", "-c", _MODULES], capture_output=True, text=True,
                          check=True, env={"PYTHONPATH": str(CPUWHY.parent)}).stderr
    found = [Path(line) for line in said.splitlines()]
    items = [Item("package", PYTHON, PYTHON, "python3-minimal")]
    for path in sorted({path for path in found if CPUWHY not in path.parents}):
        kind = "package" if path.suffix == ".so" else "own"	# with its libraries
        items.append(Item(kind, str(path), str(path), "python3"))
    return items + [Item("own", str(path), f"job/cpuwhy/{path.name}")
                    for path in sorted(CPUWHY.glob("*.py"))]


def archive(out: Path) -> Path:
    return initramfs.ensure(out, None, python())


def job(seconds: float = SECONDS) -> Job:
    made = Job()
    made.step("probe", f"cd /job && {PYTHON} -m cpuwhy probe --seconds {seconds:g} 2>/tmp/said")
    made.step("said", "cat /tmp/said")
    made.step("settings", "dump $CPU/cpu[0-9]*/cpufreq/scaling_*_freq "
              "$CPU/cpu[0-9]*/cpuidle/state[0-9]*/disable; ls /sys/kernel/tracing/instances")
    return made


def guest(name: str, m: Machine, kernel: Path, seconds: float = SECONDS) -> pool.Guest:
    """In deterministic time."""
    cpus = min(CPUS, m.packages * m.cores * m.threads)
    return pool.Guest(name, m, cpus, kernel, job(seconds), boot.KERNEL_ARGS)
