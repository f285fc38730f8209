# SPDX-License-Identifier: GPL-2.0
"""Git working trees with the series on its base: build/linux, build/qemu/src.

A tree moves only if what it is made from has changed, touches only the files
that differ (so that an incremental build stays one), and never moves over
edits that the repository does not have.
"""
from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from .. import git, paths, proc
from ..fetch import importer
from ..ui import Fail, Step, say
from . import basehashes, commits
from .manifest import Series

TIP = "refs/series/tip"
BASE = "refs/series/base"
BRANCH = "series"


@dataclass(frozen=True)
class Tree:
    """A working tree at `path`; `mib` is what it takes when checked out."""
    name: str
    path: Path
    mib: int

    @property
    def git_dir(self) -> Path:
        return self.path / ".git"

    def ref(self, name: str) -> str | None:
        return git.resolve(self.path, name)


LINUX = Tree("linux", paths.LINUX, 2300)
QEMU = Tree("qemu", paths.QEMU / "src", 500)


def make(tree: Tree, base_repo: Path, series: Series, known: basehashes.Known) -> str:
    """Bring `tree` to the series on the base; returns the last commit."""
    if not tree.git_dir.is_dir():
        return _create(tree, base_repo, series, known)
    _finish_interrupted_move(tree)
    base = _take_base(tree, base_repo)
    tip = tip_of(tree, base, series, known)
    if tip == tree.ref(TIP):
        _mention_edits(tree)
    else:
        refuse_to_lose(tree)
        _move(tree, base, tip)
        say(f"tree: {paths.shown(tree.path)} moved to {describe(tree)}")
    return tip


def _create(tree: Tree, base_repo: Path, series: Series, known: basehashes.Known) -> str:
    """Make the tree aside and rename it: there is never half of one."""
    if tree.path.exists() and any(tree.path.iterdir()):
        raise Fail(f"{paths.shown(tree.path)} exists and is not a tree of ours; move it away")
    part = Tree(tree.name, tree.path.with_name(tree.path.name + ".part"), tree.mib)
    proc.need_space(tree.path, tree.mib, paths.shown(tree.path))
    shutil.rmtree(part.path, ignore_errors=True)
    git.run("init", "--quiet", f"--initial-branch={BRANCH}", part.path)
    for setting in ("gc.auto=0", "checkout.workers=0", "core.fileMode=true"):
        git.run("config", *setting.split("="), repo=part.path)
    try:
        base = _take_base(part, base_repo)
        tip = tip_of(part, base, series, known)
        with Step(f"tree: writing {paths.shown(tree.path)}"):
            _move(part, base, tip)
    except Fail:
        shutil.rmtree(part.path)
        raise
    if tree.path.exists():
        tree.path.rmdir()
    part.path.rename(tree.path)
    say(f"tree: {paths.shown(tree.path)} is {describe(tree)}")
    return tip


def _take_base(tree: Tree, base_repo: Path) -> str:
    """Give the tree the base's objects. They are hard links: no space used,
    and the tree survives the cache."""
    base = git.run("rev-parse", importer.BRANCH, repo=base_repo)
    pack_dir = tree.git_dir / "objects/pack"
    # An .idx makes git look for its .pack, so that has to be there first.
    for file in sorted((base_repo / "objects/pack").glob("*"), key=lambda p: p.suffix != ".pack"):
        target = pack_dir / file.name
        if file.suffix in (".pack", ".idx") and not target.exists():
            try:
                os.link(file, target)
            except OSError:
                shutil.copyfile(file, target)
    return base


def tip_of(tree: Tree, base: str, series: Series, known: basehashes.Known) -> str:
    """The last commit of the series, made now or remembered from last time."""
    memory = tree.git_dir / "x86-dvfs.json"
    key = commits.inputs_key(series, base)
    try:
        old = json.loads(memory.read_text())
    except (OSError, ValueError):
        old = {}
    if old.get("key") == key and git.resolve(tree.path, old["tip"]):
        return old["tip"]
    tip = commits.build(tree.git_dir, base, series, known)
    memory.write_text(json.dumps({"key": key, "tip": tip}))
    return tip


def _moving(tree: Tree) -> Path:
    return tree.git_dir / "x86-dvfs.moving"


def _move(tree: Tree, base: str, tip: str) -> None:
    """Change files, index and refs. The note says that a half-changed tree is
    our doing and not the user's."""
    _moving(tree).write_text(f"{base} {tip}\n")
    git.run("reset", "--quiet", "--hard", tip, repo=tree.path)
    git.run("update-ref", BASE, base, repo=tree.path)
    git.run("update-ref", TIP, tip, repo=tree.path)
    _moving(tree).unlink()


def _finish_interrupted_move(tree: Tree) -> None:
    if _moving(tree).exists():
        (tree.git_dir / "index.lock").unlink(missing_ok=True)
        words = _moving(tree).read_text().split()
        if len(words) != 2 or not git.resolve(tree.path, words[1]):
            raise Fail(f"{paths.shown(tree.path)} was left half-made: remove it and call again")
        _move(tree, *words)


def uncommitted(tree: Tree) -> list[str]:
    """Paths with changes that no commit has."""
    said = git.raw("status", "--porcelain", "-z", "--no-renames", repo=tree.path)
    return [entry[3:].decode(errors="replace") for entry in said.split(b"\0") if entry]


def unrefreshed(tree: Tree) -> int:
    """Commits on the tree's branch that the series does not have. A branch
    that was rewound counts as one."""
    head, tip = tree.ref("HEAD"), tree.ref(TIP)
    ahead = int(git.run("rev-list", "--count", f"{TIP}..HEAD", repo=tree.path)) if tip else 0
    return ahead or int(head != tip)


def edits(tree: Tree) -> str:
    """What the tree has and the repository has not, in words, or ''."""
    changed = uncommitted(tree)
    if changed:
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        return f"uncommitted changes ({', '.join(changed[:3])}{more})"
    count = unrefreshed(tree)
    return f"{count} commit{'s' * (count > 1)} that the repository lacks" if count else ""


def refuse_to_lose(tree: Tree) -> None:
    if found := edits(tree):
        where = paths.shown(tree.path)
        raise Fail(f"{where} has {found}: commit and 'make refresh' to keep them, or drop them by"
                   f" 'git -C {where} reset --hard {TIP} && git -C {where} clean -fd'")


def _mention_edits(tree: Tree) -> None:
    if found := edits(tree):
        say(f"tree: {paths.shown(tree.path)} has {found} (make refresh takes commits over)")


def describe(tree: Tree) -> str:
    count = int(git.run("rev-list", "--count", f"{BASE}..{TIP}", repo=tree.path))
    label = git.run("show", "-s", "--format=%s", BASE, repo=tree.path)
    return f"{label} with {count} commit{'s' * (count != 1)}"
