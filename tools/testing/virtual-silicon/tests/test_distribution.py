# SPDX-License-Identifier: GPL-2.0
"""Kernel packages of the distribution."""

from __future__ import annotations

import lzma
import re
import subprocess
from pathlib import Path

import pytest
from virtual_silicon.errors import UsageError
from virtual_silicon.guest import distribution


def built(directory: Path, name: str) -> Path:
    """What is to become a package, without files as yet."""
    put(directory / name, "DEBIAN/control",
        f"Package: {name}\nVersion: 1\nArchitecture: all\n"
        "Maintainer: nobody <nobody@example.org>\nDescription: test\n".encode())
    return directory / name


def put(root: Path, name: str, data: bytes) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(data)


def packed(root: Path) -> Path:
    target = root.with_name(f"{root.name}.deb")
    subprocess.run(["dpkg-deb", "-b", str(root), str(target)], check=True,
                   capture_output=True)
    return target


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A small one, with the layout of Debian's."""
    root = built(tmp_path, "linux-image-test")
    put(root, "boot/vmlinuz-6.1.0-1-amd64", b"kernel")
    for number, name in enumerate(distribution.MODULES):
        path = f"lib/modules/6.1.0-1-amd64/kernel/drivers/{number}/{name}.ko"
        if number % 2:
            put(root, f"{path}.xz", lzma.compress(name.encode()))
        else:
            put(root, path, name.encode())
    return packed(root)


def test_image_and_modules(package: Path, tmp_path: Path) -> None:
    kernel = distribution.unpack(package, tmp_path / "kernels")
    assert kernel.release == "6.1.0-1-amd64"
    assert kernel.image.read_bytes() == b"kernel"
    files = kernel.files()
    assert sorted(files) == [f"modules/{number:02}-{name}.ko"
                             for number, name in enumerate(distribution.MODULES)]
    assert [files[name].decode() for name in sorted(files)] == list(distribution.MODULES)


def test_split_packages(tmp_path: Path) -> None:
    """As from 7.3 on; a module comes behind the one that it depends on."""
    release = "7.3.4+deb13-cloud-amd64"
    binary, modules = (built(tmp_path, f"linux-{part}-{release}") for part in
                       ("binary", "modules"))
    put(binary, f"usr/lib/modules/{release}/vmlinuz", b"kernel")
    for name in ("iosf_mbi", *distribution.MODULES):
        put(modules, f"usr/lib/modules/{release}/kernel/{name}.ko.xz", lzma.compress(
            b"\0depends=iosf_mbi,intel_rapl_common\0" if name == "intel_rapl_msr" else b""))
    package = packed(binary)
    with pytest.raises(UsageError, match=f"linux-modules-{re.escape(release)}.deb: not found"):
        distribution.unpack(package, tmp_path / "kernels")
    packed(modules)
    kernel = distribution.unpack(package, tmp_path / "kernels")
    assert (kernel.release, kernel.image.read_bytes()) == (release, b"kernel")
    names = [name.partition("-")[2] for name in sorted(kernel.files())]
    assert names.index("iosf_mbi.ko") < names.index("intel_rapl_msr.ko")
    assert names.count("intel_rapl_common.ko") == 1


def test_missing_module_and_package(package: Path, tmp_path: Path) -> None:
    kernel = distribution.unpack(package, tmp_path / "kernels")
    with pytest.raises(UsageError, match="6.1.0-1-amd64 has no module kvm"):
        kernel.file("kvm")
    with pytest.raises(UsageError, match="not found"):
        distribution.unpack(tmp_path / "none.deb", tmp_path)
    (tmp_path / "bad.deb").write_bytes(b"no package")
    with pytest.raises(UsageError, match="bad.deb"):
        distribution.unpack(tmp_path / "bad.deb", tmp_path)
