# SPDX-License-Identifier: GPL-2.0
"""How far results are behind, and how they are made anew."""
from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ..check import figures

TEXT = """\
[[figure]]
document = "a"
command = "mkdir -p a; echo x >>a/x.csv; echo y >a/y"

[[figure]]
document = "b.csv"
command = "{second}"
"""


def commit(top: Path, **files: str) -> None:
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    subprocess.run(["git", "add", "-A"], cwd=top, check=True)
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
                   cwd=top, check=True)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    commit(tmp_path, **{"results/VERSION": "2\n", "patches/0101-a.patch": "a",
                        "CHANGELOG.md": "# Changes\n\n## 3\n\n## 2\n"})
    return tmp_path


def test_commits_since_the_release(top: Path) -> None:
    """Of each kind; what no result is of does not count."""
    assert figures.behind(top).startswith(
        "results are of v2: since then, commits: 0 of the kernel, 0 of the model (")
    commit(top, **{"patches/0101-a.patch": "b", "README.md": "a"})
    commit(top, **{"kernel/sched/a.c": "a"})
    commit(top, **{"tools/testing/virtual-silicon/qemu/a.c": "a"})
    commit(top, **{"README.md": "b"})
    assert "2 of the kernel, 1 of the model" in figures.behind(top)
    commit(top, **{"results/VERSION": "3\n"})
    assert "v3: since then, commits: 0 of the kernel, 0 of the model" in figures.behind(top)


def test_tables_have_command_and_version(top: Path) -> None:
    """Once, however often they are made; other files of the directory stay as they are."""
    file = top / "figures.toml"
    file.write_text(TEXT.format(second="echo b >b.csv"))
    for _ in "12":
        assert figures.make(top, file) == 0
        head, version, *rest = (top / "a/x.csv").read_text().splitlines()
    assert head == "# command: mkdir -p a; echo x >>a/x.csv; echo y >a/y"
    assert version.startswith("# version: ")
    assert rest == ["x", "x"] and (top / "a/y").read_text() == "y\n"
    assert (top / "results/VERSION").read_text() == "3\n"


def test_what_failed_keeps_the_release(top: Path) -> None:
    """Other figures are made."""
    file = top / "figures.toml"
    file.write_text(TEXT.format(second="echo half >b.csv; exit 3"))
    assert figures.make(top, file) == 1
    assert (top / "a/x.csv").exists() and (top / "b.csv").read_text() == "half\n"
    assert (top / "results/VERSION").read_text() == "2\n"


def test_the_list_of_this_repository() -> None:
    assert all((figures.paths.TOP / f.document).exists() for f in figures.load())
