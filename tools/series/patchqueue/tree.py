# SPDX-License-Identifier: GPL-2.0
"""Git working trees with the series on its base: build/linux, build/qemu/src.

A tree moves only if what it is made from has changed, touches only the files
that differ (so that an incremental build stays one), and never moves over
edits that the repository does not have.

Each commit has a git note with the name of its patch, which git carries along when one
amends and rebases: make refresh knows by it what a commit was. A base that the patches
do not apply to is reached by git rebase, whose three-way merge stops at a conflict.
"""
from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from virtual_silicon.errors import Fail
from virtual_silicon.progress import Step, say

from .. import git, paths, proc
from ..fetch import importer
from . import commits
from .commits import DoesNotApply
from .manifest import Series

TIP = "refs/series/tip"         # what the repository says,
BASE = "refs/series/base"       # on this base
ONTO = "refs/series/onto"       # the base of a rebase that refresh has not taken back yet
NOTES = "series"
BRANCH = "series"
REFRESH = "make refresh" + (
    f" BASE={paths.BASE_VERSION}" if paths.BASE_VERSION != paths.DEFAULT_BASE else "")


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


def make(tree: Tree, base_repo: Path, series: Series) -> str:
    """Bring `tree` to the series on the base; returns the last commit of the series."""
    if not tree.git_dir.is_dir():
        return _create(tree, base_repo, series)
    if where := stopped(tree):
        raise Fail(where)
    _finish_interrupted_move(tree)
    base = take_base(tree, base_repo)
    try:
        tip = tip_of(tree, tree.ref(BASE) if _rebased_to(tree, base) else base, series)
    except DoesNotApply as failure:
        _rebase(tree, base, series, failure)
    if tip == tree.ref(TIP):
        if found := edits(tree):
            say(f"tree: {paths.shown(tree.path)} has {found} (make refresh takes commits over)")
    else:
        refuse_to_lose(tree)
        move(tree, base, tip)
        say(f"tree: {paths.shown(tree.path)} moved to {describe(tree)}")
    return tip


def begin(tree: Tree, base_repo: Path) -> str:
    """A tree with the base's objects, to make commits in; returns the base. What an older one
    has stays."""
    if not tree.git_dir.is_dir():
        proc.need_space(tree.path, tree.mib, paths.shown(tree.path))
        git.run("init", "--quiet", f"--initial-branch={BRANCH}", tree.path)
    elif tree.ref(TIP):
        refuse_to_lose(tree)
    return take_base(tree, base_repo)


def _create(tree: Tree, base_repo: Path, series: Series) -> str:
    """Make the tree aside and rename it: there is never half of one."""
    if tree.path.exists() and any(tree.path.iterdir()):
        raise Fail(f"{paths.shown(tree.path)} exists and is not a tree of ours; move it away")
    part = Tree(tree.name, tree.path.with_name(tree.path.name + ".part"), tree.mib)
    proc.need_space(tree.path, tree.mib, paths.shown(tree.path))
    shutil.rmtree(part.path, ignore_errors=True)
    git.run("init", "--quiet", f"--initial-branch={BRANCH}", part.path)
    try:
        base = take_base(part, base_repo)
        tip = tip_of(part, base, series)
        with Step(f"tree: writing {paths.shown(tree.path)}"):
            move(part, base, tip)
    except Fail as failure:
        shutil.rmtree(part.path)
        if isinstance(failure, DoesNotApply):
            failure.details += ("\nA tree of a base that it applies to is brought to this one by a"
                                " three-way merge: make tree BASE=..., then make tree")
        raise
    if tree.path.exists():
        tree.path.rmdir()
    part.path.rename(tree.path)
    say(f"tree: {paths.shown(tree.path)} is {describe(tree)}")
    return tip


def take_base(tree: Tree, base_repo: Path) -> str:
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


def tip_of(tree: Tree, base: str | None, series: Series) -> str:
    """The last commit of the series on @base, made now or remembered from last time."""
    memory = tree.git_dir / "x86-dvfs.tip"
    key = f"{base} {commits.inputs_key(series)}"
    if memory.exists():
        old, _, tip = memory.read_text().rpartition(" ")
        if old == key and tree.ref(tip):
            return tip
    assert base
    made = commits.build(tree.git_dir, base, series)
    for setting in ("gc.auto=0", "checkout.workers=0", "core.fileMode=true",
                    f"notes.rewriteRef=refs/notes/{NOTES}", f"notes.displayRef=refs/notes/{NOTES}"):
        git.run("config", *setting.split("="), repo=tree.path)
    for commit, entry in zip(made, series.entries):
        git.run("notes", f"--ref={NOTES}", "add", "--force", "-m", entry.patch, commit,
                repo=tree.path)
    tip = made[-1] if made else base
    memory.write_text(f"{key} {tip}")
    return tip


def _stands_on(tree: Tree, base: str) -> bool:
    return not git.call("merge-base", "--is-ancestor", base, "HEAD", repo=tree.path,
                        check=False).returncode


def base_of(tree: Tree) -> str:
    """The base that the tree's commits stand on."""
    for base in filter(None, (tree.ref(ONTO), tree.ref(BASE))):
        if _stands_on(tree, base):
            return base
    where = paths.shown(tree.path)
    raise Fail(f"{where}: its commits do not stand on {BASE}; if they shall stand on another"
               f" commit, say on which: git -C {where} update-ref {ONTO} COMMIT")


def _rebased_to(tree: Tree, base: str) -> bool:
    """Whether the commits stand on @base and are still to be taken back from there."""
    return base == tree.ref(ONTO) and _stands_on(tree, base)


def _rebase(tree: Tree, base: str, series: Series, failure: DoesNotApply) -> NoReturn:
    """Bring the series from the base that the tree has to @base by git's three-way merge,
    which may take the user's help. Ends with what is left to do."""
    old = tree.ref(BASE)
    if not old or old == base:
        raise failure
    refuse_to_lose(tree)
    move(tree, old, tip_of(tree, old, series))
    git.run("update-ref", ONTO, base, repo=tree.path)
    say(f"tree: {failure}; merging by git rebase")
    done = git.call("rebase", "--quiet", "--onto", base, old, repo=tree.path, check=False)
    if not done.returncode:
        raise Fail(f"{paths.shown(tree.path)}: all commits were merged with the base without a"
                   " conflict: see what became of them, then make refresh",
                   git.run("range-diff", f"{old}..{TIP}", f"{base}..HEAD", repo=tree.path))
    if where := stopped(tree):
        raise Fail(where)
    raise Fail(f"git rebase of {paths.shown(tree.path)} failed", done.stderr.decode())


def stopped(tree: Tree) -> str:
    """At which commit a rebase of the tree has stopped, and its conflicts; '' if none has."""
    if (tree.git_dir / "rebase-apply").is_dir():
        return _am_stopped(tree)
    if not (tree.git_dir / "rebase-merge").is_dir():
        return ""
    where, at = paths.shown(tree.path), ""
    if commit := tree.ref("REBASE_HEAD"):       # none after a command of the user's that failed
        patch, subject = git.run("show", "-s", f"--notes={NOTES}", "--format=%N%x00%s", commit,
                                 repo=tree.path).split("\0")
        at = f" at {patch.strip() or commit[:12]} ({subject})"
    found = _all_conflicts(tree)
    return (f"{where} is being rebased and has stopped{at}: "
            + (f"conflicts in {', '.join(found)}: resolve them, git add" if found else "go on")
            + f", git -C {where} rebase --continue (or --abort); at the end make refresh")


def _am_stopped(tree: Tree) -> str:
    where, state = paths.shown(tree.path), tree.git_dir / "rebase-apply"
    message = state / "final-commit"
    subject = message.read_text(errors="replace").partition("\n")[0] if message.exists() else ""
    found = _all_conflicts(tree)
    return (f"{where} is being merged and has stopped at '{subject}': "
            + (f"conflicts in {', '.join(found)}: resolve them, git add" if found else
               f"make its change by hand ({paths.shown(state / 'patch')}), git add")
            + f", git -C {where} am --continue (or --abort); at the end {REFRESH}")


def _all_conflicts(tree: Tree) -> list[str]:
    names = git.run("diff", "--name-only", "-z", "--diff-filter=U", repo=tree.path).split("\0")
    return [place for name in filter(None, names) for place in _conflicts(tree.path, name)]


def _conflicts(root: Path, name: str) -> list[str]:
    """file:line of each; of a file that only one side has there are no lines."""
    file = root / name
    lines = file.read_bytes().splitlines() if file.is_file() else []
    return [f"{name}:{number}" for number, line in enumerate(lines, 1)
            if line.startswith(b"<<<<<<< ")] or [f"{name} (one side removes it)"]


def _moving(tree: Tree) -> Path:
    return tree.git_dir / "x86-dvfs.moving"


def move(tree: Tree, base: str, tip: str) -> None:
    """Change files, index and refs. The note says that a half-changed tree is
    our doing and not the user's."""
    _moving(tree).write_text(f"{base} {tip}\n")
    git.run("reset", "--quiet", "--hard", tip, repo=tree.path)
    agree(tree, base, tip)
    _moving(tree).unlink()


def agree(tree: Tree, base: str, tip: str) -> None:
    """The repository now says @tip on @base."""
    git.run("update-ref", BASE, base, repo=tree.path)
    git.run("update-ref", TIP, tip, repo=tree.path)
    git.run("update-ref", "-d", ONTO, repo=tree.path)


def _finish_interrupted_move(tree: Tree) -> None:
    if _moving(tree).exists():
        (tree.git_dir / "index.lock").unlink(missing_ok=True)
        words = _moving(tree).read_text().split()
        if len(words) != 2 or not git.resolve(tree.path, words[1]):
            raise Fail(f"{paths.shown(tree.path)} was left half-made: remove it and call again")
        move(tree, *words)


def uncommitted(tree: Tree) -> list[str]:
    """Paths with changes that no commit has."""
    said = git.raw("status", "--porcelain", "-z", "--no-renames", repo=tree.path)
    return [entry[3:].decode(errors="replace") for entry in said.split(b"\0") if entry]


def unrefreshed(tree: Tree) -> int:
    """Commits on the tree's branch that the series does not have. A branch
    that was rewound counts as one."""
    head, tip = tree.ref("HEAD"), tree.ref(TIP)
    known = [ref for ref in (TIP, ONTO) if tree.ref(ref)]
    ahead = int(git.run("rev-list", "--count", "HEAD", "--not", *known, repo=tree.path))
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


def describe(tree: Tree) -> str:
    count = int(git.run("rev-list", "--count", f"{BASE}..{TIP}", repo=tree.path))
    label = git.run("show", "-s", "--format=%s", BASE, repo=tree.path)
    return f"{label} with {count} commit{'s' * (count != 1)}"
