# SPDX-License-Identifier: GPL-2.0
"""Kernel packages of the distribution, and the table of stock tools."""

from __future__ import annotations

import dataclasses
import lzma
import subprocess
from pathlib import Path

import pytest
from guests import Guests
from virtual_silicon.errors import UsageError
from virtual_silicon.guest import boot, distribution
from virtual_silicon.machine import machine
from virtual_silicon.studies import stock_tools


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A small one, with the layout of Debian's."""
    root = tmp_path / "root"
    modules = root / "lib/modules/6.1.0-1-amd64/kernel"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "boot").mkdir()
    (root / "DEBIAN/control").write_text(
        "Package: linux-image-test\nVersion: 1\nArchitecture: all\n"
        "Maintainer: nobody <nobody@example.org>\nDescription: test\n")
    (root / "boot/vmlinuz-6.1.0-1-amd64").write_bytes(b"kernel")
    for number, name in enumerate(distribution.MODULES):
        path = modules / f"drivers/{number}/{name}.ko"
        path.parent.mkdir(parents=True)
        if number % 2:
            path.with_suffix(".ko.xz").write_bytes(lzma.compress(name.encode()))
        else:
            path.write_bytes(name.encode())
    target = tmp_path / "linux-image-test_1_all.deb"
    subprocess.run(["dpkg-deb", "-b", str(root), str(target)], check=True,
                   capture_output=True)
    return target


def test_image_and_modules(package: Path, tmp_path: Path) -> None:
    kernel = distribution.unpack(package, tmp_path / "kernels")
    assert kernel.release == "6.1.0-1-amd64"
    assert kernel.image.read_bytes() == b"kernel"
    files = kernel.files()
    assert sorted(files) == [f"modules/{number}-{name}.ko"
                             for number, name in enumerate(distribution.MODULES)]
    assert [files[name].decode() for name in sorted(files)] == list(distribution.MODULES)


def test_missing_module_and_package(package: Path, tmp_path: Path) -> None:
    kernel = distribution.unpack(package, tmp_path / "kernels")
    with pytest.raises(UsageError, match="6.1.0-1-amd64 has no module kvm"):
        kernel.module("kvm")
    with pytest.raises(UsageError, match="not found"):
        distribution.unpack(tmp_path / "none.deb", tmp_path)
    (tmp_path / "bad.deb").write_bytes(b"no package")
    with pytest.raises(UsageError, match="bad.deb"):
        distribution.unpack(tmp_path / "bad.deb", tmp_path)


@pytest.mark.boots("two-kinds-amd")
def test_row_of_the_table(guests: Guests) -> None:
    """From a guest that ran the table's own job."""
    m = machine.load("ryzen-5-7545u")
    c = guests.config("two-kinds-amd", stock_tools.job(None).archive())
    c = dataclasses.replace(c, out=c.out / "stock-tools", append=stock_tools.APPEND, cpus=2)
    row = stock_tools.row(m, 2, "base", boot.run(c))
    cells = dict(zip(stock_tools.HEAD, row.cells))
    assert cells["driver"] == "amd-pstate" and cells["idle states"] == "C1 C2 C3"
    assert int(cells["one CPU MHz"]) == pytest.approx(4900, rel=0.01)
    assert [int(mhz) for mhz in cells["all MHz"].split("/")] == \
        pytest.approx([4900, 3500], rel=0.01)
    assert cells["warnings"] == "none" and cells["energy"] == "yes"
    assert row.cells[:2] == ["ryzen-5-7545u", "base"]
