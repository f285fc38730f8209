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
from dataclasses import dataclass
from pathlib import Path

from .. import git
from ..fetch import cache
from ..ui import Fail
from . import basehashes, mail
from .mail import Mail
from .manifest import Series, WholeFile, loose_files


@dataclass(frozen=True)
class Commit:
    """One commit to be: where it comes from, its mail, its whole files."""
    origin: str
    mail: Mail
    files: list[WholeFile]


def listed(series: Series) -> list[Commit]:
    """The series with its mails read."""
    found = []
    loose = loose_files(series)
    if loose:
        letter = Mail(git.IDENTITY, "", series.loose, "", "")
        found.append(Commit(str(series.files_root), letter, [WholeFile(p) for p in loose]))
    for entry in series.entries:
        found.append(Commit(entry.patch, mail.read(series.patch_dir / entry.patch), entry.files))
    return found


def inputs_key(series: Series, base: str) -> str:
    """Changes with everything that build() looks at."""
    parts: list[str | bytes] = ["chain 1", base]
    for file in (series.file, series.patch_dir / basehashes.NAME):
        parts.append(file.read_bytes() if file.exists() else b"")
    for entry in series.entries:
        parts += [entry.patch, (series.patch_dir / entry.patch).read_bytes()]
    for path in [f.path for e in series.entries for f in e.files] + loose_files(series):
        source = series.files_root / path
        parts += [path, _mode(source), source.read_bytes()]
    return cache.key(*parts)


def build(repo: Path, base: str, series: Series, known: basehashes.Known) -> str:
    """Commit the series on top of `base` in `repo`; returns the last commit."""
    date = git.run("show", "-s", "--format=%cd", "--date=raw", base, repo=repo)
    tip = base
    with tempfile.TemporaryDirectory(dir=repo) as tmp:
        env = {"GIT_INDEX_FILE": os.path.join(tmp, "index")}
        git.run("read-tree", base, repo=repo, env=env)
        for commit in listed(series):
            _apply(repo, env, commit)
            _add_files(repo, env, base, series, commit, known)
            tip = _commit(repo, env, tip, commit.mail, date)
    return tip


def _apply(repo: Path, env: dict[str, str], commit: Commit) -> None:
    """Apply the diff to the index. git apply knows no fuzz: every context line
    has to be there."""
    diff = commit.mail.diff
    if not diff:
        return
    done = git.call("apply", "--cached", "--whitespace=nowarn", "-p1", repo=repo, env=env,
                    stdin=diff.encode(errors="surrogateescape"), check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace")
        raise Fail(f"{commit.origin} does not apply: {_culprits(diff, said)}", said.strip())


def _culprits(diff: str, said: str) -> str:
    found = re.findall(r"^error: patch failed: (.+):(\d+)$", said, re.M)
    if found:
        return "; ".join(f"{path}, {mail.hunk_at(diff, path, int(line))}" for path, line in found)
    first = re.search(r"^error: (.*)$", said, re.M)
    return first[1] if first else "git apply refused it"


def _add_files(repo: Path, env: dict[str, str], base: str, series: Series, commit: Commit,
               known: basehashes.Known) -> None:
    for file in commit.files:
        old = git.blob(repo, base, file.path)
        if file.replaces:
            known.check(file.path, old)
        elif old is not None:
            raise Fail(f"{series.file}: the base has {file.path} already:"
                       " say 'replaces' after it, or edit it by the patch")
        source = series.files_root / file.path
        blob = git.run("hash-object", "-w", "--no-filters", "--", source.resolve(), repo=repo)
        git.run("update-index", "--add", "--cacheinfo", f"{_mode(source)},{blob},{file.path}",
                repo=repo, env=env)


def _mode(path: Path) -> str:
    return "100755" if os.access(path, os.X_OK) else "100644"


def _commit(repo: Path, env: dict[str, str], parent: str, letter: Mail, base_date: str) -> str:
    tree = git.run("write-tree", "--missing-ok", repo=repo, env=env)
    name, address = letter.author[:-1].split(" <", 1)
    date = letter.date or base_date
    return git.run("commit-tree", tree, "-p", parent, repo=repo, stdin=letter.message.encode(),
                   env={**env, "GIT_AUTHOR_NAME": name or address, "GIT_AUTHOR_EMAIL": address,
                        "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date})
