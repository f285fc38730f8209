# SPDX-License-Identifier: GPL-2.0
"""The packages of tools. Those of the kernel take an hour: virtual_silicon installed."""
from __future__ import annotations

from pathlib import Path

import pytest

from .. import paths, proc
from ..compile import deb

VERSION = "6.12.1+x86dvfs9-1"
PROFILE = "usr/lib/tuned/x86-dvfs/tuned.conf"
EXAMPLE = "usr/share/doc/x86-dvfs-tools/examples/tmpfiles.conf"


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> list[Path]:
    out = tmp_path_factory.mktemp("deb")
    deb.tools(paths.LINUX / "tools/power/x86", VERSION, out)
    return sorted(out.glob("*.deb"))


@pytest.fixture(scope="module")
def root(built, tmp_path_factory) -> Path:
    """Where both are unpacked."""
    to = tmp_path_factory.mktemp("root")
    for package in built:
        proc.capture(["dpkg-deb", "-x", package, to])
    return to


def test_names_and_versions(built):
    assert [package.name for package in built] == \
        ["cpuwhy_2_all.deb", f"x86-dvfs-tools_{VERSION}_amd64.deb"]
    deb.judge(built)


def test_no_file_is_another_package_s(root):
    ours = {f"/{path.relative_to(root)}" for path in root.rglob("*") if not path.is_dir()}
    theirs = set(proc.text(["dpkg", "-L", "linux-cpupower", "linux-perf"]).split())
    assert "/usr/sbin/turbostat" in theirs and not ours & theirs


def test_turbostat_is_that_of_the_series(root):
    program = (root / "usr/sbin/turbostat-x86dvfs").read_bytes()
    assert b"CPU%c01" in program and b"CPU%c02" in program
    assert (root / "usr/share/man/man8/turbostat-x86dvfs.8.gz").exists()


def test_programs_and_settings(root):
    assert proc.text([root / "usr/sbin/c02-bench", "-h"]).strip().endswith("[-c CPU]")
    assert (root / "usr/share/man/man8/c02-bench.8.gz").exists()
    assert proc.text([root / "usr/sbin/cpuwhy", "--help"]).startswith("usage: cpuwhy")
    for here, there in (("tuned/x86-dvfs/tuned.conf", PROFILE), ("tmpfiles.conf", EXAMPLE)):
        assert (root / there).read_text() == (paths.SETTINGS / here).read_text()


def test_errors_of_lintian_are_told(built, tmp_path):
    """A package without its copyright file."""
    proc.capture(["dpkg-deb", "-R", built[1], tmp_path / "x"])
    (tmp_path / "x/usr/share/doc/x86-dvfs-tools/copyright").unlink()
    proc.capture(["dpkg-deb", "-b", tmp_path / "x", tmp_path / "bad.deb"])
    with pytest.raises(deb.Fail, match="copyright"):
        deb.judge([tmp_path / "bad.deb"])
