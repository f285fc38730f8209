# SPDX-License-Identifier: GPL-2.0
"""Packages of the distribution that are not installed, kernels above all.

Debian's kernels have console, initramfs, intel_pstate, amd-pstate and intel_idle
built in; registers, energy and the ACPI driver are modules.
"""

from __future__ import annotations

import lzma
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..errors import MissingError, UsageError
from . import claim

#: In the order in which the guest's init inserts them, each behind those that it depends on.
MODULES = ("msr", "cpuid", "intel_rapl_common", "intel_rapl_msr", "cpufreq_powersave",
           "acpi-cpufreq")


#: Of a module's .modinfo.
_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")


@dataclass(frozen=True)
class Kernel:
    """A package's image, and modules below `root`."""

    release: str
    image: Path
    root: Path

    def file(self, module: str) -> Path:
        for path in sorted(self.root.glob(f"**/lib/modules/*/kernel/**/{module}.ko*")):
            return path
        raise UsageError(f"kernel {self.release} has no module {module}")

    def modules(self, names: Iterable[str]) -> dict[Path, bytes]:
        """Files, each behind those that it depends on, and what the kernel takes of them."""
        found: dict[Path, bytes] = {}
        for name in names:
            self._add(name, found)
        return found

    def files(self, modules: Iterable[str] = MODULES) -> dict[str, bytes]:
        """For a job's archive; the names sort in the order of insertion."""
        return {f"modules/{number:02}-{path.name.removesuffix('.xz')}": data
                for number, (path, data) in enumerate(self.modules(modules).items())}

    def _add(self, name: str, found: dict[Path, bytes]) -> None:
        path = self.file(name)
        if path in found:
            return
        data = path.read_bytes()
        if path.suffix == ".xz":
            data = lzma.decompress(data)
        if match := _DEPENDS.search(data):
            for needed in filter(None, match[1].decode().split(",")):
                self._add(needed, found)
        found[path] = data


def unpacked(package: Path, target: Path) -> Path:
    """Where the files of a .deb lie, not installed; what is there already is used."""
    if not package.is_file():
        raise UsageError(f"package {package}: not found")
    root = target / package.stem
    with claim.waited_for(target):
        if not root.is_dir():
            scratch = target / f"{package.stem}.tmp"
            scratch.mkdir(exist_ok=True)
            result = subprocess.run(["dpkg-deb", "-x", str(package), str(scratch)],
                                    capture_output=True, text=True, check=False)
            if result.returncode:
                raise UsageError(f"{package}: {result.stderr.strip()}")
            scratch.rename(root)
    return root


def unpack(package: Path, target: Path) -> Kernel:
    """A .deb with a kernel. Where the modules have a package of their own, as from 7.3 on, that
    is to lie beside it."""
    root = unpacked(package, target)
    if images := sorted(root.glob("boot/vmlinuz-*")):
        return Kernel(images[0].name.removeprefix("vmlinuz-"), images[0], root)
    if not (images := sorted(root.glob("usr/lib/modules/*/vmlinuz"))):
        raise UsageError(f"{package} has neither boot/vmlinuz-* nor usr/lib/modules/*/vmlinuz")
    modules = re.sub("-binary(-unsigned)?-", "-modules-", package.name)
    return Kernel(images[0].parent.name, images[0], unpacked(package.with_name(modules), target))


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
