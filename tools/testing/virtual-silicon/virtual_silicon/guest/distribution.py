# SPDX-License-Identifier: GPL-2.0
"""Packages of the distribution that are not installed, kernels above all.

Debian's kernels have console, initramfs, intel_pstate, amd-pstate and intel_idle
built in; registers, energy and the ACPI driver are modules.
"""

from __future__ import annotations

import lzma
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ..errors import MissingError, UsageError

#: In the order in which the guest's init inserts them.
MODULES = ("msr", "cpuid", "intel_rapl_common", "intel_rapl_msr", "cpufreq_powersave",
           "acpi-cpufreq")


@dataclass(frozen=True)
class Kernel:
    """A package's image and modules, unpacked below `root`."""

    release: str
    image: Path
    root: Path

    def module(self, name: str) -> bytes:
        """As the kernel takes it: a compressed one is unpacked here."""
        for path in sorted(self.root.glob(f"lib/modules/*/kernel/**/{name}.ko*")):
            data = path.read_bytes()
            return lzma.decompress(data) if path.suffix == ".xz" else data
        raise UsageError(f"kernel {self.release} has no module {name}")

    def files(self) -> dict[str, bytes]:
        """For a job's archive; the names sort in the order of insertion."""
        return {f"modules/{number}-{name}.ko": self.module(name)
                for number, name in enumerate(MODULES)}


def unpacked(package: Path, target: Path) -> Path:
    """Where the files of a .deb lie, not installed; what is there already is used."""
    if not package.is_file():
        raise UsageError(f"package {package}: not found")
    root = target / package.stem
    if not root.is_dir():
        scratch = target / f"{package.stem}.tmp"
        scratch.mkdir(parents=True, exist_ok=True)
        result = subprocess.run(["dpkg-deb", "-x", str(package), str(scratch)],
                                capture_output=True, text=True, check=False)
        if result.returncode:
            raise UsageError(f"{package}: {result.stderr.strip()}")
        scratch.rename(root)
    return root


def unpack(package: Path, target: Path) -> Kernel:
    """A .deb with a kernel."""
    root = unpacked(package, target)
    images = sorted(root.glob("boot/vmlinuz-*"))
    if not images:
        raise UsageError(f"{package} has no boot/vmlinuz-*")
    return Kernel(images[0].name.removeprefix("vmlinuz-"), images[0], root)


def fetch(name: str, target: Path) -> Path:
    """Downloads a package by name with apt; where it lies."""
    target.mkdir(parents=True, exist_ok=True)
    known = sorted(target.glob(f"{name}_*.deb"))
    if known:
        return known[-1]
    result = subprocess.run(["apt-get", "download", name], cwd=target,
                            capture_output=True, text=True, check=False)
    known = sorted(target.glob(f"{name}_*.deb"))
    if result.returncode or not known:
        raise MissingError(f"package {name} cannot be downloaded: "
                           + (result.stderr.strip().splitlines() or ["?"])[-1])
    return known[-1]
