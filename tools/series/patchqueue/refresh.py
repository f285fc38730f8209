# SPDX-License-Identifier: GPL-2.0
"""From a working tree back into the repository.

Each commit of the tree becomes an entry of the manifest: its changes to base
files a patch, its other files whole files of ours. What has not changed is not
written, so that a round trip leaves no difference.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from virtual_silicon.errors import Fail
from virtual_silicon.progress import say

from .. import git, paths
from . import mail, mails, manifest, names
from . import tree as trees
from .mail import Mail
from .manifest import Entry, Series, WholeFile
from .tree import BASE, TIP, Tree

_DIFF = ("-c", "diff.algorithm=myers", "diff", "--no-color", "--no-ext-diff", "--no-renames",
         "--full-index", "--binary", "--unified=3", "--indent-heuristic",
         "--src-prefix=a/", "--dst-prefix=b/")


@dataclass
class Plan:
    """The repository as it shall be: manifest, mails, whole files."""
    entries: list[Entry] = field(default_factory=list)
    mails: dict[str, bytes] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)


def refresh(tree: Tree, series: Series) -> None:
    """Write the tree's commits into the repository."""
    if not tree.git_dir.is_dir():
        raise Fail(f"{paths.shown(tree.path)} does not exist; make it first (make tree)")
    _demand_orderly(tree, series)
    base = trees.base_of(tree)
    plan = _plan(tree, base, series)
    changed = _write(tree, series, plan)
    _settle(tree, base, series)
    for line in plan.notes + changed:
        say(line)
    say(f"refresh: {paths.shown(tree.path)}: "
        + (f"{len(changed)} files of the repository changed" if changed else "no difference"))


def _demand_orderly(tree: Tree, series: Series) -> None:
    """Nothing may be lost on either side."""
    where = paths.shown(tree.path)
    if stopped := trees.stopped(tree):
        raise Fail(stopped)
    if changed := trees.uncommitted(tree):
        raise Fail(f"{where} has uncommitted changes ({', '.join(changed[:3])}):"
                   " commit them first (git commit --amend or a new commit)")
    if trees.tip_of(tree, tree.ref(BASE), series) != tree.ref(TIP):
        raise Fail(f"the repository's series has changed since {where} was made: refresh would"
                   " undo that; put those changes aside (git stash), refresh, and bring them back")


def _plan(tree: Tree, base: str, series: Series) -> Plan:
    plan, kept = Plan(), []
    in_base = blobs(tree, base)
    in_head = blobs(tree, "HEAD")
    origins = names.origins(tree, base, series)
    for commit in git.run("rev-list", "--reverse", f"{base}..HEAD", repo=tree.path).split():
        old = origins.get(commit)
        whole = [p for p in touched(tree, commit) if p not in in_base or p in series.files()]
        fresh = [p for p in whole if p in in_head and p not in plan.files]
        mine = letter(tree, commit, whole)
        plan.notes += [f"{path}: its change in '{mine.subject}' is folded into the commit that"
                       " has the file" for path in whole if path in plan.files]
        plan.files += fresh
        if mine.diff or fresh or old:
            files = [whole_file(series, p, in_base.get(p)) for p in sorted(fresh, key=_order(old))]
            plan.entries.append(Entry("", files, old.comments if old else []))
            kept.append((mine, old))
    _name(plan, series, kept)
    return plan


def blobs(tree: Tree, commit: str) -> dict[str, str]:
    """{path: git's name of its content}"""
    listed = git.run("ls-tree", "-r", "-z", commit, repo=tree.path).split("\0")
    return {path: about.split()[2] for about, _, path in (x.partition("\t") for x in listed if x)}


def whole_file(series: Series, path: str, theirs: str | None) -> WholeFile:
    """Ours has been merged with this version of the base's, as well as with those before."""
    if theirs is None:
        return WholeFile(path)
    known = series.files()[path].replaces
    return WholeFile(path, known if known and theirs.startswith(known) else (*known, theirs[:12]))


def _name(plan: Plan, series: Series, kept: list[tuple[Mail, Entry | None]]) -> None:
    """Names of the entries, and the mails that have to be written."""
    numbers = names.numbered([old.number if old else None for _, old in kept],
                             mails.starts(mails.cover(series.patch_dir)))
    for entry, number, (letter, old) in zip(plan.entries, numbers, kept):
        file = series.patch_dir / old.patch if old else None
        was = mail.read(file) if file else None
        rest = file.name[5:] if file and was and was.subject == letter.subject else \
            names.slug(letter.subject)
        entry.patch = f"{number:04d}-{rest}"
        if old and old.patch != entry.patch:
            plan.renamed[old.patch] = entry.patch
        if not file or not was or not mail.same(was, letter):
            plan.mails[entry.patch] = mail.write(letter).encode(errors="surrogateescape")
        elif file.name != entry.patch:
            plan.mails[entry.patch] = file.read_bytes()


def _order(old: Entry | None) -> Callable[[str], tuple[int, str]]:
    """Sort key: as the entry listed its files so far, new ones by name behind."""
    known = [f.path for f in old.files] if old else []
    return lambda p: (known.index(p) if p in known else len(known), p)


def touched(tree: Tree, commit: str) -> list[str]:
    parents = git.run("show", "-s", "--format=%P", commit, repo=tree.path).split()
    if len(parents) != 1:
        raise Fail(f"{paths.shown(tree.path)}: {commit[:12]} is a merge; a series has none")
    said = git.run("diff-tree", "-r", "-z", "--no-renames", "--name-only", f"{commit}^", commit,
                   repo=tree.path)
    return [p for p in said.split("\0") if p]


def letter(tree: Tree, commit: str, exclude: list[str]) -> Mail:
    """The commit as a mail, without the files that are kept whole."""
    author, date, stamp, subject, body = git.run(
        "show", "-s", "--format=%an <%ae>%x00%aD%x00%at%x00%s%x00%b", commit,
        repo=tree.path).split("\0")
    # Without a date of its own a commit has that of the base, or of the one before.
    bases = [ref for ref in (BASE, trees.ONTO) if tree.ref(ref)]
    undated = git.run("show", "-s", "--format=%ct", *bases, repo=tree.path).split()
    diff = git.raw(*_DIFF, f"{commit}^", commit, "--", ".",
                   *(f":(exclude,literal,top){p}" for p in exclude), repo=tree.path)
    return Mail(author, "" if stamp in undated else date, subject, body.strip("\n"),
                diff.decode(errors="surrogateescape"))


def _write(tree: Tree, series: Series, plan: Plan) -> list[str]:
    """Write what differs; returns a line for each file changed."""
    changed = []
    for path in plan.files:
        if path not in series.files() and (series.files_root / path).exists():
            raise Fail(f"{path} of a commit of {paths.shown(tree.path)} is a file of this"
                       " repository already")
    for path in plan.files:
        content = git.raw("cat-file", "blob", f"HEAD:{path}", repo=tree.path)
        executable = git.run("ls-tree", "HEAD", "--", path, repo=tree.path).startswith("100755")
        changed += write_file(series.files_root / path, content, executable)
    for name, text in plan.mails.items():
        changed += write_file(series.patch_dir / name, text)
    changed += write_manifest(series, plan.entries)
    changed += _rename_differences(series, plan.renamed)
    kept = {e.patch for e in plan.entries}
    gone = [series.patch_dir / e.patch for e in series.entries if e.patch not in kept]
    gone += [series.files_root / p for p in series.files() if p not in plan.files]
    for file in gone:
        file.unlink()
        changed.append(f"removed {paths.shown(file)}")
    return changed


def write_file(path: Path, content: bytes, executable: bool = False) -> list[str]:
    wanted = 0o755 if executable else 0o644
    if path.exists() and path.read_bytes() == content:
        if bool(path.stat().st_mode & 0o100) == executable:
            return []
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(wanted)
    return [f"wrote {paths.shown(path)}"]


def write_manifest(series: Series, entries: list[Entry]) -> list[str]:
    if [(e.patch, e.files) for e in entries] == [(e.patch, e.files) for e in series.entries]:
        return []
    return write_file(series.file, manifest.dump(entries, series.trailer).encode())


def _rename_differences(series: Series, renamed: dict[str, str]) -> list[str]:
    """What differs on a newer kernel goes by the name of the patch."""
    changed = []
    for file in filter(Path.is_file, sorted(series.patch_dir.glob("*/**/*"))):
        text = file.read_text(errors="surrogateescape")
        for old, new in renamed.items():
            text = re.sub(rf"(^|patches/){re.escape(old)}", rf"\g<1>{new}", text, flags=re.M)
        target = file.with_name(renamed.get(file.name, file.name))
        if target != file:
            file.unlink()
        changed += write_file(target, text.encode(errors="surrogateescape"))
    return changed


def _settle(tree: Tree, base: str, series: Series) -> None:
    """Put the tree onto what the repository now says, which must be the same."""
    tip = trees.tip_of(tree, base, manifest.load(series.patch_dir, series.files_root))
    if git.run("diff", "--name-only", tip, "HEAD", repo=tree.path):
        raise Fail("the refreshed series does not give the tree it was taken from; its commits are"
                   f" still in {paths.shown(tree.path)}",
                   git.run("diff", "--stat", tip, "HEAD", repo=tree.path))
    git.run("reset", "--quiet", "--soft", tip, repo=tree.path)
    trees.agree(tree, base, tip)
