# SPDX-License-Identifier: GPL-2.0
"""The series on a newer kernel: what differs is beside the patches, see variant.py.

Where a commit does not apply there, git am merges it and all after it in three ways, from the
kernel that the patches are for; its conflicts are its user's, and refresh takes the result back.
"""
from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from virtual_silicon.errors import Fail
from virtual_silicon.progress import say

from .. import git, paths
from ..fetch import cache
from . import commits, mail, manifest, refresh, variant
from . import tree as trees
from .commits import DoesNotApply
from .mail import Mail
from .manifest import Entry, Series
from .tree import BASE, TIP, Tree
from .variant import OPEN, Difference, Variant

MARK = "x86-dvfs.port"


def directory(patch_dir: Path, version: str) -> Path:
    return patch_dir / version


def versions(patch_dir: Path) -> list[str]:
    """The newer kernels of which we have what differs."""
    return sorted(file.parent.name for file in patch_dir.glob("*/series"))


def nearest(patch_dir: Path, version: str) -> Path:
    """The differences to begin with: of this version, or of the newest one before it."""
    def number(name: str) -> list[int]:
        return [int(part) for part in name.split(".")]
    there = [d for d in patch_dir.glob("*.*") if d.is_dir() and number(d.name) <= number(version)]
    return max(there, key=lambda d: number(d.name), default=directory(patch_dir, version))


def of_version(common: Series, version: str) -> Series:
    """The series as it is for that kernel."""
    if version == paths.DEFAULT_BASE:
        return common
    return variant.applied(common, variant.load(nearest(common.patch_dir, version), common))


def make(tree: Tree, base_repo: Path, common: Series, version: str,
         default_repo: Callable[[], Path]) -> None:
    """Bring @tree to the series on a newer base, or begin to merge there."""
    series = of_version(common, version)
    if tree.git_dir.is_dir():
        if where := trees.stopped(tree):
            raise Fail(where)
        if _marked(tree, common):
            say(f"tree: {paths.shown(tree.path)} is merged: see what became of it, then"
                f" {trees.REFRESH}")
            return
    try:
        trees.make(tree, base_repo, series)
    except DoesNotApply as failure:
        _merge(tree, base_repo, series, common, default_repo, failure)


def _key(common: Series) -> str:
    differences = sorted(file for file in common.patch_dir.glob("*/**/*") if file.is_file())
    return cache.key(commits.inputs_key(common), *(file.read_bytes() for file in differences))


def _marked(tree: Tree, common: Series) -> bool:
    """Whether the tree has what was merged from the series as it still is, and more than
    what applied: git am may have been given up."""
    mark = tree.git_dir / MARK
    return (mark.exists() and mark.read_text() == _key(common)
            and tree.ref("HEAD") != tree.ref(TIP))


def _merge(tree: Tree, base_repo: Path, series: Series, common: Series,
           default_repo: Callable[[], Path], failure: DoesNotApply) -> None:
    base = trees.begin(tree, base_repo)
    made, _ = commits.build_until(tree.git_dir, base, series)
    old = dict(zip((e.patch for e in common.entries), commits.build(
        tree.git_dir, trees.take_base(tree, default_repo()), common)))
    trees.move(tree, base, made[-1] if made else base)
    (tree.git_dir / MARK).write_text(_key(common))
    say(f"tree: {failure}; merging by git am")
    with tempfile.TemporaryDirectory() as tmp:
        files = []
        for number, entry in enumerate(series.entries[len(made):]):
            files.append(Path(tmp, f"{number:04d}"))
            files[-1].write_bytes(_mail(tree, base, series, entry, old[entry.patch]))
        done = git.call("am", "--quiet", "--3way", "--keep-cr", *files, repo=tree.path,
                        check=False)
    if where := trees.stopped(tree):
        raise Fail(where)
    if done.returncode:
        raise Fail(f"git am in {paths.shown(tree.path)} failed", done.stderr.decode())
    raise Fail(f"{paths.shown(tree.path)}: all commits were merged with the base without a"
               f" conflict: see what became of them, then {trees.REFRESH}")


def _mail(tree: Tree, base: str, series: Series, entry: Entry, old: str) -> bytes:
    """Of a commit that differs what differs, else the commit on the default base, which
    git am can merge: the tree has its files."""
    named = [series.patch_dir / entry.patch, *(series.files_root / f.path for f in entry.files)]
    if not series.changed.keys() & set(named):
        return git.raw("format-patch", "--stdout", "--full-index", "-1", old, repo=tree.path)
    whole = commits.whole_files(tree.git_dir, base, series, entry)
    letter = series.letter(entry)
    return mail.write(replace(letter, diff=letter.diff + whole)).encode(errors="surrogateescape")


def take_back(tree: Tree, common: Series, version: str) -> None:
    """Write what differs in the tree's commits into patches/7.3."""
    where = paths.shown(tree.path)
    if not tree.git_dir.is_dir():
        raise Fail(f"{where} does not exist; make it first (make tree BASE={version})")
    if stopped := trees.stopped(tree):
        raise Fail(stopped)
    if changed := trees.uncommitted(tree):
        raise Fail(f"{where} has uncommitted changes ({', '.join(changed[:3])}): commit them first")
    if not _marked(tree, common):
        if trees.tip_of(tree, tree.ref(BASE), of_version(common, version)) != tree.ref(TIP):
            raise Fail(f"the repository's series has changed since {where} was made: make tree"
                       f" BASE={version} first")
    base = trees.base_of(tree)
    letters = _letters(tree, base, common)
    before = variant.load(nearest(common.patch_dir, version), common)
    for exact in (False, True):
        changed = _write(tree, common, before, directory(common.patch_dir, version), letters, exact)
        common = manifest.load(common.patch_dir, common.files_root)
        tip = _tip(tree, base, of_version(common, version))
        if tip and not git.run("diff", "--name-only", tip, "HEAD", repo=tree.path):
            break
    else:
        raise Fail("the refreshed series does not give the tree it was taken from; its commits are"
                   f" still in {where}")
    git.run("reset", "--quiet", "--soft", tip, repo=tree.path)
    trees.agree(tree, base, tip)
    (tree.git_dir / MARK).unlink(missing_ok=True)
    for line in changed:
        say(line)
    say(f"refresh: {where}: "
        + (f"{len(changed)} files of the repository changed" if changed else "no difference"))


def _tip(tree: Tree, base: str, series: Series) -> str:
    try:
        return trees.tip_of(tree, base, series)
    except DoesNotApply:
        return ""


def _letters(tree: Tree, base: str, common: Series) -> dict[str, Mail]:
    """{patch: its commit in the tree, without whole files}"""
    by_subject = {common.letter(e).subject: e.patch for e in common.entries}
    known = {e.patch for e in common.entries}
    found: dict[str, Mail] = {}
    in_base = refresh.blobs(tree, base)
    for commit in git.run("rev-list", "--reverse", f"{base}..HEAD", repo=tree.path).split():
        whole = [p for p in refresh.touched(tree, commit) if p in common.files()]
        letter = refresh.letter(tree, commit, whole)
        note = git.call("notes", f"--ref={trees.NOTES}", "show", commit, repo=tree.path,
                        check=False).stdout.decode().partition("\n")[0]
        patch = note if note in known else by_subject.get(letter.subject)
        if not patch or patch in found:
            raise Fail(f"'{letter.subject}' is no commit of {paths.shown(common.file)}: add it to"
                       f" {paths.shown(paths.build_of(paths.DEFAULT_BASE))}/linux first")
        new = [p for p in mail.touched(letter.diff) if p not in in_base]
        if new:
            raise Fail(f"{patch}: {new[0]} is neither in the base nor a file of this repository")
        found[patch] = letter
    return found


def _write(tree: Tree, common: Series, before: Variant, target: Path, letters: dict[str, Mail],
           exact: bool) -> list[str]:
    """patches/7.3, and the base's versions of files that ours replace; a line for each change."""
    rows: dict[str, Difference] = {}
    changed, wanted, entries = [], set(), []
    in_base, in_head = (refresh.blobs(tree, c) for c in (trees.base_of(tree), "HEAD"))
    for entry in common.entries:
        old = before.rows.get(entry.patch, Difference(False, OPEN))
        if entry.patch not in letters:
            rows[entry.patch] = replace(old, left_out=True)
            entries.append(entry)
            continue
        entries.append(replace(entry, files=[
            refresh.whole_file(common, f.path, in_base.get(f.path)) for f in entry.files]))
        new = {common.files_root / f.path: git.raw("cat-file", "blob", f"HEAD:{f.path}",
                                                   repo=tree.path)
               for f in entry.files if f.path in in_head}
        new[common.patch_dir / entry.patch] = _text(common, entry, letters[entry.patch], exact)
        if text := variant.difference(common, entry, new):
            rows[entry.patch] = replace(old, left_out=False)
            wanted.add(target / entry.patch)
            if not _same(before.diff(entry.patch), text) or before.directory != target:
                changed += refresh.write_file(target / entry.patch, text)
    for patch in sorted(p for p, row in rows.items() if row.reason == OPEN):
        say(f"{paths.shown(target / 'series')}: say after {patch} why it differs")
    changed += refresh.write_file(target / "series", variant.dump(replace(
        before, directory=target, rows=rows)))
    changed += refresh.write_manifest(common, entries)
    for file in sorted(set(target.glob("*.patch")) - wanted):
        file.unlink()
        changed.append(f"removed {paths.shown(file)}")
    return changed


def _same(file: Path, text: bytes) -> bool:
    """But for the places in the patch, which move with every edit of it."""
    def core(data: bytes) -> bytes:
        return re.sub(rb"^@@ .*$", b"", data, flags=re.M)
    return file.exists() and core(file.read_bytes()) == core(text)


def _text(common: Series, entry: Entry, letter: Mail, exact: bool) -> bytes:
    """The patch as it has to be for this tree, in the words of the common one."""
    text = (common.patch_dir / entry.patch).read_text(errors="surrogateescape")
    was = common.letter(entry)
    head, _, rest = text.partition("\ndiff --git ")
    if (letter.author, letter.subject, letter.body) != (was.author, was.subject, was.body):
        head = mail.write(replace(letter, date=was.date, diff="")).rstrip("\n") + "\n"
    diff = variant.alike("diff --git " * bool(rest) + rest, mail.strip_blob_names(letter.diff),
                         exact)
    return (head + ("\n" if diff else "") + diff).encode(errors="surrogateescape")
