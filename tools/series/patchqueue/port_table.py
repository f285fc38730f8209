# SPDX-License-Identifier: GPL-2.0
"""make port: what becomes of each commit on another kernel, without a work tree."""
from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from .. import git
from . import commits, releases
from . import tree as trees
from .manifest import Entry, Series
from .tree import Tree

#: Identifiers: with an underscore, or called.
_WORD = re.compile(rb"\b[A-Za-z]\w*_\w+|\b[A-Za-z]\w{3,}(?=\()")


@dataclass(frozen=True)
class Row:
    patch: str
    result: str          # applies, differs, merges, conflict, left out
    where: str = ""      # files that conflict, with the number of places
    gone: str = ""       # identifiers that the commit uses and the kernel has no more

    def __str__(self) -> str:
        gone = f" (gone: {self.gone})" if self.gone else ""
        return f"{self.patch[:52]:52} {self.result:9} {self.where}{gone}".rstrip()


def table(base_repo: Path, default_repo: Path, series: Series, common: Series,
          say: Callable[[str], None]) -> list[Row]:
    """A row for each commit of @common, which @series is for the new kernel."""
    rows = []
    with tempfile.TemporaryDirectory(dir=base_repo.parent) as tmp:
        tree = Tree("port", Path(tmp), 0)
        git.run("init", "--quiet", tree.path)
        tip, old_base = (trees.take_base(tree, repo) for repo in (base_repo, default_repo))
        old = dict(zip((e.patch for e in common.entries),
                       commits.build(tree.git_dir, old_base, common)))
        lost = _lost(tree, old_base, tip, releases.directories(common))
        kept = {entry.patch for entry in series.entries}
        for entry in common.entries:
            if entry.patch not in kept:
                row = Row(entry.patch, "left out")
            else:
                tip, row = _one(tree, tip, series, entry, old[entry.patch])
                row = replace(row, gone=b" ".join(sorted(_added(tree, tip) & lost)).decode())
            rows.append(row)
            say(str(row))
    return rows


def _one(tree: Tree, tip: str, series: Series, entry: Entry, old: str) -> tuple[str, Row]:
    made, failure = commits.build_until(tree.git_dir, tip, replace(series, entries=[entry]))
    if not failure:
        named = {series.patch_dir / entry.patch,
                 *(series.files_root / file.path for file in entry.files)}
        return made[0], Row(entry.patch, "differs" if named & series.changed.keys() else "applies")
    ours = git.run("commit-tree", "-p", f"{old}^", "-m", "", f"{tip}^{{tree}}", repo=tree.path)
    merged = git.call("merge-tree", "--write-tree", ours, old, repo=tree.path, check=False)
    said = merged.stdout.decode(errors="replace").splitlines()
    # What conflicts goes on with both sides and git's marks.
    new = git.run("commit-tree", "-p", tip, "-m", entry.patch, said[0], repo=tree.path)
    if not merged.returncode:
        return new, Row(entry.patch, "merges")
    files = sorted(set(re.findall(r"^CONFLICT .*? in (\S+)$|^CONFLICT \([^)]*\): (\S+) ",
                                  "\n".join(said), re.M)))
    names = [one or other for one, other in files]
    return new, Row(entry.patch, "conflict",
                    ", ".join(f"{name}: {_places(tree, new, name)}" for name in names))


def _places(tree: Tree, commit: str, name: str) -> int:
    text = git.blob(tree.path, commit, name) or b""
    return text.count(b"\n<<<<<<< ") + text.startswith(b"<<<<<<< ") or 1


def _lost(tree: Tree, old: str, new: str, directories: set[str]) -> set[bytes]:
    """Words that the headers and the directories of the series had, and have no more."""
    wanted = ["include", "arch/x86/include", *sorted(
        d for d in directories if d and not d.startswith(("Documentation", "tools")))]
    return _words(tree, old, wanted) - _words(tree, new, wanted)


def _words(tree: Tree, commit: str, directories: list[str]) -> set[bytes]:
    there = [d for d in directories if git.call("cat-file", "-e", f"{commit}:{d}", repo=tree.path,
                                                check=False).returncode == 0]
    data = git.raw("archive", "--format=tar", commit, *there, repo=tree.path)
    return set(_WORD.findall(data))


def _added(tree: Tree, commit: str) -> set[bytes]:
    diff = git.raw("show", "--format=", "--unified=0", commit, "--", "*.[chS]", "*Kconfig*",
                   "*Makefile", repo=tree.path)
    return {word for line in diff.splitlines() if line.startswith(b"+")
            for word in _WORD.findall(line)}

