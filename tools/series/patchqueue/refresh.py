# SPDX-License-Identifier: GPL-2.0
"""From a working tree back into the repository.

Each commit of the tree becomes an entry of the manifest: its changes to base
files a patch, its other files whole files of ours. What has not changed is not
written, so that a round trip leaves no difference.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .. import git, paths
from ..ui import Fail, say
from . import basehashes, mail, manifest
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
    mails: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)     # path: commit it is taken from
    notes: list[str] = field(default_factory=list)


def refresh(tree: Tree, series: Series, known: basehashes.Known) -> None:
    """Write the tree's commits into the repository."""
    if not tree.git_dir.is_dir():
        raise Fail(f"{paths.shown(tree.path)} does not exist; make it first (make tree)")
    _demand_orderly(tree, series, known)
    plan = _plan(tree, series)
    changed = _write(tree, series, plan)
    _settle(tree, series, known)
    for line in plan.notes + changed:
        say(line)
    say(f"refresh: {paths.shown(tree.path)}: "
        + (f"{len(changed)} files of the repository changed" if changed else "no difference"))


def _base(tree: Tree) -> str:
    if base := tree.ref(BASE):
        return base
    raise Fail(f"{paths.shown(tree.path)} has no {BASE}: remove it and make it again (make tree)")


def _demand_orderly(tree: Tree, series: Series, known: basehashes.Known) -> None:
    """Nothing may be lost on either side."""
    where = paths.shown(tree.path)
    changed = trees.uncommitted(tree)
    if changed:
        raise Fail(f"{where} has uncommitted changes ({', '.join(changed[:3])}):"
                   " commit them first (git commit --amend or a new commit)")
    base = _base(tree)
    if trees.tip_of(tree, base, series, known) != tree.ref(TIP):
        raise Fail(f"the repository's series has changed since {where} was made: refresh would"
                   " undo that; put those changes aside (git stash), refresh, and bring them back")
    if git.call("merge-base", "--is-ancestor", base, "HEAD", repo=tree.path,
                check=False).returncode:
        raise Fail(f"{where}: its commits do not stand on the base ({BASE})")


def _plan(tree: Tree, series: Series) -> Plan:
    plan, rest = Plan(), list(series.entries)
    in_base = set(git.run("ls-tree", "-r", "--name-only", "-z", BASE, repo=tree.path).split("\0"))
    in_head = set(git.run("ls-tree", "-r", "--name-only", "-z", "HEAD", repo=tree.path).split("\0"))
    for commit in git.run("rev-list", "--reverse", f"{BASE}..HEAD", repo=tree.path).split():
        _plan_commit(tree, series, plan, rest, commit, in_base, in_head)
    return plan


def _plan_commit(tree: Tree, series: Series, plan: Plan, rest: list[Entry], commit: str,
                 in_base: set[str], in_head: set[str]) -> None:
    touched = _touched(tree, commit)
    replaced = {p for p in touched if p in in_base and series.owner(p)}
    whole = [p for p in touched if p not in in_base or p in replaced]
    fresh = [p for p in whole if p in in_head and p not in plan.files]
    letter = _letter(tree, commit, exclude=whole)
    for path in whole:
        if path in plan.files:
            plan.notes.append(f"{path}: its change in '{letter.subject}' is folded into the"
                              " commit that has the file")
    plan.files.update(dict.fromkeys(fresh, commit))
    if series.loose:
        # Files that no entry names stay nameless.
        fresh = [p for p in fresh if series.owner(p)]
    old = next((e for e in rest if _subject(series, e) == letter.subject), None)
    if not letter.diff and not fresh and not old:
        return
    if old:
        rest.remove(old)
    files = sorted((WholeFile(p, p in replaced) for p in fresh), key=_order(old))
    entry = Entry(old.patch if old else _new_name(plan, letter), files,
                  old.comments if old else [])
    plan.entries.append(entry)
    if not old or not mail.same(mail.read(series.patch_dir / old.patch), letter):
        plan.mails[entry.patch] = mail.write(letter)


def _order(old: Entry | None) -> Callable[[WholeFile], tuple[int, str]]:
    """Sort key: as the entry listed its files so far, new ones by name behind."""
    known = [f.path for f in old.files] if old else []
    return lambda f: (known.index(f.path) if f.path in known else len(known), f.path)


def _touched(tree: Tree, commit: str) -> list[str]:
    parents = git.run("show", "-s", "--format=%P", commit, repo=tree.path).split()
    if len(parents) != 1:
        raise Fail(f"{paths.shown(tree.path)}: {commit[:12]} is a merge; a series has none")
    said = git.run("diff-tree", "-r", "-z", "--no-renames", "--name-only", f"{commit}^", commit,
                   repo=tree.path)
    return [p for p in said.split("\0") if p]


def _letter(tree: Tree, commit: str, exclude: list[str]) -> Mail:
    """The commit as a mail, without the files that are kept whole."""
    author, date, stamp, subject, body = git.run(
        "show", "-s", "--format=%an <%ae>%x00%aD%x00%at%x00%s%x00%b", commit,
        repo=tree.path).split("\0")
    base_stamp = git.run("show", "-s", "--format=%ct", BASE, repo=tree.path)
    diff = git.raw(*_DIFF, f"{commit}^", commit, "--", ".",
                   *(f":(exclude,literal,top){p}" for p in exclude), repo=tree.path)
    return Mail(author, "" if stamp == base_stamp else date, subject, body.strip("\n"),
                diff.decode(errors="surrogateescape"))


def _subject(series: Series, entry: Entry) -> str:
    return mail.read(series.patch_dir / entry.patch).subject


def _new_name(plan: Plan, letter: Mail) -> str:
    """0003-subject-in-lower-case.patch, after those before it."""
    words = "".join(c if c.isalnum() else "-" for c in letter.subject.lower())
    slug = "-".join(w for w in words.split("-") if w)[:52].rstrip("-")
    return f"{len(plan.entries) + 1:04d}-{slug}.patch"


def _write(tree: Tree, series: Series, plan: Plan) -> list[str]:
    """Write what differs; returns a line for each file changed."""
    changed = []
    for path in plan.files:
        content = git.raw("cat-file", "blob", f"HEAD:{path}", repo=tree.path)
        executable = git.run("ls-tree", "HEAD", "--", path, repo=tree.path).startswith("100755")
        changed += _write_file(series.files_root / path, content, executable)
    for name, text in plan.mails.items():
        changed += _write_file(series.patch_dir / name, text.encode(errors="surrogateescape"))
    changed += _write_manifest(series, plan)
    kept = {e.patch for e in plan.entries}
    gone = [series.patch_dir / e.patch for e in series.entries if e.patch not in kept]
    named = [f.path for e in series.entries for f in e.files] + manifest.loose_files(series)
    gone += [series.files_root / p for p in named if p not in plan.files]
    for file in gone:
        file.unlink()
        changed.append(f"removed {paths.shown(file)}")
    return changed


def _write_file(path: Path, content: bytes, executable: bool = False) -> list[str]:
    wanted = 0o755 if executable else 0o644
    if path.exists() and path.read_bytes() == content:
        if bool(path.stat().st_mode & 0o100) == executable:
            return []
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(wanted)
    return [f"wrote {paths.shown(path)}"]


def _write_manifest(series: Series, plan: Plan) -> list[str]:
    if [(e.patch, e.files) for e in plan.entries] == [(e.patch, e.files) for e in series.entries]:
        return []
    return _write_file(series.file, manifest.dump(plan.entries, series.trailer).encode())


def _settle(tree: Tree, series: Series, known: basehashes.Known) -> None:
    """Put the tree onto what the repository now says, which must be the same."""
    again = manifest.load(series.patch_dir, series.files_root, series.loose)
    tip = trees.tip_of(tree, _base(tree), again, known)

    def content(commit: str) -> str:
        return git.run("rev-parse", f"{commit}^{{tree}}", repo=tree.path)

    if content(tip) != content("HEAD"):
        raise Fail("the refreshed series does not give the tree it was taken from; its commits are"
                   f" still in {paths.shown(tree.path)}",
                   git.run("diff", "--stat", tip, "HEAD", repo=tree.path))
    git.run("reset", "--quiet", "--soft", tip, repo=tree.path)
    git.run("update-ref", TIP, tip, repo=tree.path)
