# SPDX-License-Identifier: GPL-2.0
"""What is wrong in a call is said in one line."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest
from virtual_silicon import cli, paths
from virtual_silicon.errors import UsageError
from virtual_silicon.guest.job import Job
from virtual_silicon.guest.pool import Guest, Guests
from virtual_silicon.machine import machine

PROBE = Path(__file__).with_name("probe-platinum-8592.txt")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "directory").mkdir()
    (tmp_path / "empty").touch()
    (tmp_path / "binary").write_bytes(b"\xff\xfe\0")
    return tmp_path


@pytest.mark.parametrize("words, status, said", [
    (["adopt", "binary"], 2, "binary: is not text"),
    (["adopt", PROBE, "-o", "directory"], 1, "directory: Is a directory"),
    (["adopt", PROBE, "-o", "nowhere/x"], 1, "nowhere/x: No such file or directory"),
    (["convert", "empty"], 2, "empty: is empty"),
    (["compare", "--machine", "./binary"], 2, "binary: is not text"),
    (["validate", "--rows", "("], 2, "--rows (: missing )"),
    (["validate", "--measurements", "binary"], 2, "binary: is not text"),
    (["validate", "--jobs", "0"], 2, "argument --jobs: 0 is not above 0"),
    (["lab", "--jobs", "-1"], 2, "argument --jobs: -1 is not above 0")])
def test_wrong_words(words: list[str | Path], status: int, said: str, files: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "virtual_silicon", *map(str, words)], cwd=files,
                          env={"PYTHONPATH": str(paths.SILICON)}, text=True, capture_output=True)
    line = done.stderr.splitlines()[-1]
    assert (done.returncode, done.stdout) == (status, "")
    assert line.startswith("virtual-silicon") and said in line
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["validate", "compare"])
def test_without_matplotlib(command: str, tmp_path: Path) -> None:
    """Said before a guest is booted. -S: without what is installed beside Python."""
    done = subprocess.run([sys.executable, "-S", "-m", "virtual_silicon", command], cwd=tmp_path,
                          env={"PYTHONPATH": str(paths.SILICON)}, text=True, capture_output=True)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("virtual-silicon: matplotlib is not installed: apt-get install")


def test_a_full_disk(capsys: pytest.CaptureFixture[str]) -> None:
    def run() -> int:
        raise OSError(errno.ENOSPC, "No space left on device")
    assert cli.ended("me", run) == 1
    assert capsys.readouterr().err == "me: No space left on device\n"


def test_cpus_of_a_study(tmp_path: Path) -> None:
    wrong = Guest("x", machine.load("sapphire-rapids"), -1, tmp_path, Job())
    with pytest.raises(UsageError, match="CPUs: -1 asked for"):
        Guests(tmp_path, tmp_path, tmp_path).answers([wrong])
