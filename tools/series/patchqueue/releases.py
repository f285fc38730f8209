# SPDX-License-Identifier: GPL-2.0
"""The series on every point release that the package manager offers.

Of each release only the directories that the series touches are kept (in the
cache), so that the second check takes seconds.
"""
from __future__ import annotations

import difflib
import os
from pathlib import Path

from .. import git
from ..fetch import base, importer
from ..fetch.base import Base
from ..ui import Fail, say
from . import basehashes, commits, mail
from .manifest import Series


def directories(series: Series) -> set[str]:
    """Directories of the base that the series reads or writes."""
    paths = [f.path for e in series.entries for f in e.files]
    for commit in commits.listed(series):
        paths += mail.touched(commit.mail.diff)
    return {os.path.dirname(p) for p in paths}


def check(series: Series, offered: list[Base], known: basehashes.Known) -> list[tuple[str, str]]:
    """[(release, reason it fails or '')] for each offered base."""
    wanted, results = directories(series), []
    for candidate in offered:
        repo = candidate.excerpt(wanted)
        try:
            commits.build(repo, importer.BRANCH, series, known)
            reason = ""
        except Fail as failure:
            reason = str(failure)
        results.append((base.release(repo), reason))
        say(f"series on {candidate.label}: {reason or 'applies'}")
    return results


def learn(series: Series, repos: list[Path], known: basehashes.Known) -> None:
    """Put the replaced files of these bases on record; the caller writes it."""
    replaced = {f.path for e in series.entries for f in e.files if f.replaces}
    known.keep_only(replaced)
    for repo in repos:
        release = base.release(repo)
        for path in sorted(replaced):
            content = git.blob(repo, importer.BRANCH, path)
            if content is None:
                raise Fail(f"{path} is said to replace a base file, but {release} has none there")
            known.add(path, basehashes.digest(content), release)


def difference(unknown: basehashes.UnknownBase, repo: Path, series: Series) -> str:
    """What changed in a replaced file since the newest release we know, if
    the package manager still has that."""
    new = git.blob(repo, importer.BRANCH, unknown.path) or b""
    for candidate in base.on_offer():
        if candidate.offer and candidate.offer.release == unknown.newest:
            old_repo = candidate.excerpt(directories(series))
            old = git.blob(old_repo, importer.BRANCH, unknown.path) or b""
            return "".join(difflib.unified_diff(
                old.decode(errors="replace").splitlines(True),
                new.decode(errors="replace").splitlines(True),
                f"{unknown.newest}/{unknown.path}", f"{base.release(repo)}/{unknown.path}"))
    return (f"{unknown.details}\n{unknown.newest or 'A known release'} is not on offer, so there is"
            " no diff; compare with the base's history of the file")
