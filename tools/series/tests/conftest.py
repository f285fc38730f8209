# SPDX-License-Identifier: GPL-2.0
"""A base of four files, a series on it, a cache of its own: all in tmp_path."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from .. import git
from ..fetch import base
from ..patchqueue import manifest
from ..patchqueue import tree as trees

MAKEFILE = "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 99\nEXTRAVERSION =\n"
NUMBERS = "".join(f"line {n}\n" for n in range(1, 41))
OLD = "int replaced;\n"

PATCH = """\
From: A Writer <writer@example.org>
Subject: kernel: change two lines

Say why.

---

diff --git a/kernel/numbers.c b/kernel/numbers.c
--- a/kernel/numbers.c
+++ b/kernel/numbers.c
@@ -2,7 +2,7 @@
 line 2
 line 3
 line 4
-line 5
+line five
 line 6
 line 7
 line 8
@@ -27,7 +27,7 @@
 line 27
 line 28
 line 29
-line 30
+line thirty
 line 31
 line 32
 line 33
"""

NO_DIFF = """\
From: B Writer <b@example.org>
Date: Mon, 05 Jan 2026 10:00:00 +0100
Subject: lib: add a file and replace another

Two whole files.

---
"""


@dataclass
class Place:
    """A repository, a base and the tree that they make."""
    top: Path
    source: Path
    tree: trees.Tree

    def series(self) -> manifest.Series:
        return manifest.load(self.top / "patches", self.top)

    def base(self) -> base.Base:
        return base.from_path(self.source)

    def make(self) -> str:
        return trees.make(self.tree, self.base().repo(), self.series())

    def files(self) -> dict[str, bytes]:
        """The repository's content."""
        return {str(p.relative_to(self.top)): p.read_bytes()
                for p in sorted(self.top.rglob("*")) if p.is_file()}

    def commit(self, message: str, *options: str) -> None:
        """Commit all changes in the tree, as its user would."""
        git.run("add", "--all", repo=self.tree.path)
        git.run("commit", "--quiet", "-m", message, *options, repo=self.tree.path)


def write(root: Path, **files: str) -> None:
    for name, content in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


@pytest.fixture(autouse=True)
def cache_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("KSRC", "BASE", "JOBS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache/x86-dvfs"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    source, top = tmp_path / "source", tmp_path / "top"
    write(source, Makefile=MAKEFILE, kernel__numbers_dot_c=NUMBERS, lib__old_dot_c=OLD,
          README="base\n")
    (source / "link").symlink_to("README")
    write(top, lib__new_dot_c="int added;\n", lib__old_dot_c="int ours;\n",
          patches__series="# what this is\n\n0001-kernel.patch\n# two files\n0002-lib.patch\n"
                          "\tlib/new.c\n\tlib/old.c replaces edeb834d7f96\n")
    (top / "patches/0001-kernel.patch").write_text(PATCH)
    (top / "patches/0002-lib.patch").write_text(NO_DIFF)
    return Place(top, source, trees.Tree("linux", tmp_path / "build/linux", 1))
