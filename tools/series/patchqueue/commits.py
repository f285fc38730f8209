# SPDX-License-Identifier: GPL-2.0
"""The series as commits on a base, made in git's object store alone.

No working tree takes part: a patch that does not apply leaves nothing behind,
and equal inputs give equal commit names, which is how everyone else finds out
that there is nothing to do.
"""
from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from virtual_silicon.errors import Fail

from .. import git
from ..fetch import cache
from .mail import Mail
from .manifest import Entry, Series, WholeFile


class DoesNotApply(Fail):
    """A commit that the base does not take as it is."""


def inputs_key(series: Series) -> str:
    """Changes with everything of the series that build() looks at."""
    parts: list[str | bytes] = [series.file.read_bytes() if series.file.exists() else b""]
    for entry in series.entries:
        parts += [entry.patch, series.content(series.patch_dir / entry.patch)]
    for path in series.files():
        source = series.files_root / path
        parts += [path, _mode(source), series.content(source)]
    return cache.key(*parts)


def build(repo: Path, base: str, series: Series) -> list[str]:
    """Commit the series on top of `base` in `repo`; returns the commits, one an entry."""
    made, failure = build_until(repo, base, series)
    if failure:
        raise failure
    return made


def build_until(repo: Path, base: str, series: Series) -> tuple[list[str], DoesNotApply | None]:
    """The same as far as it goes, and why it does not go on."""
    date = git.run("show", "-s", "--format=%cd", "--date=raw", base, repo=repo)
    made = [base]
    with tempfile.TemporaryDirectory(dir=repo) as tmp:
        env = {"GIT_INDEX_FILE": os.path.join(tmp, "index")}
        git.run("read-tree", base, repo=repo, env=env)
        for entry in series.entries:
            try:
                if entry.patch in series.broken:
                    raise DoesNotApply(series.broken[entry.patch])
                letter = series.letter(entry)
                _apply(repo, env, entry.patch, letter.diff)
                for file in entry.files:
                    _add_file(repo, env, base, series, file)
            except DoesNotApply as failure:
                return made[1:], failure
            made.append(_commit(repo, env, made[-1], letter, date))
    return made[1:], None


def _apply(repo: Path, env: dict[str, str], patch: str, diff: str) -> None:
    """Apply the diff to the index. git apply knows no fuzz: every context line
    has to be there."""
    if not diff:
        return
    done = git.call("apply", "--cached", "--whitespace=nowarn", "-p1", repo=repo, env=env,
                    stdin=diff.encode(errors="surrogateescape"), check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace")
        # Of hunks git tells the places first, then that the file failed.
        places = re.findall(r"^error: patch failed: (.+)$", said, re.M) or \
            re.findall(r"^error: (.*)$", said, re.M)
        raise DoesNotApply(f"{patch} does not apply: {', '.join(places)}",
                           said.strip())


def _add_file(repo: Path, env: dict[str, str], base: str, series: Series,
              file: WholeFile) -> None:
    theirs = git.call("rev-parse", "--quiet", "--verify", f"{base}:{file.path}", repo=repo,
                      check=False).stdout.decode().strip()
    if file.replaces and not theirs:
        raise DoesNotApply(f"{file.path} is said to replace a base file, but the base has none")
    if theirs and not file.replaces:
        raise DoesNotApply(f"{series.file}: the base has {file.path} already:"
                           " say 'replaces' after it, or edit it by the patch")
    if theirs and not theirs.startswith(file.replaces):
        raise DoesNotApply(f"{file.path} has changed in this base: carry the change over into"
                           f" ours, and add {theirs[:12]} to its line in {series.file}")
    source = series.files_root / file.path
    blob = git.run("hash-object", "-w", "--no-filters", "--stdin", repo=repo,
                   stdin=series.content(source))
    git.run("update-index", "--add", "--cacheinfo", f"{_mode(source)},{blob},{file.path}",
            repo=repo, env=env)


def whole_files(repo: Path, base: str, series: Series, entry: Entry) -> str:
    """The diff that adds the whole files of a commit."""
    with tempfile.TemporaryDirectory(dir=repo) as tmp:
        env = {"GIT_INDEX_FILE": os.path.join(tmp, "index")}
        git.run("read-tree", base, repo=repo, env=env)
        for file in entry.files:
            _add_file(repo, env, base, series, file)
        tree = git.run("write-tree", "--missing-ok", repo=repo, env=env)
        return git.raw("diff-tree", "-r", "-p", "--full-index", base, tree, repo=repo).decode(
            errors="surrogateescape")


def _mode(path: Path) -> str:
    return "100755" if os.access(path, os.X_OK) else "100644"


def _commit(repo: Path, env: dict[str, str], parent: str, letter: Mail, base_date: str) -> str:
    tree = git.run("write-tree", "--missing-ok", repo=repo, env=env)
    name, address = letter.author[:-1].split(" <", 1)
    date = letter.date or base_date
    return git.run("commit-tree", tree, "-p", parent, repo=repo, stdin=letter.message.encode(),
                   env={**env, "GIT_AUTHOR_NAME": name or address, "GIT_AUTHOR_EMAIL": address,
                        "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date})
