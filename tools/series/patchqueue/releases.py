# SPDX-License-Identifier: GPL-2.0
"""The series on every point release that the package manager offers.

Of each release only the directories that the series touches are kept (in the
cache), so that the second check takes seconds.
"""
from __future__ import annotations

import os

from virtual_silicon.errors import Fail
from virtual_silicon.progress import say

from ..fetch import base, importer
from ..fetch.base import Base
from . import commits, mail
from .manifest import Series


def directories(series: Series) -> set[str]:
    """Directories of the base that the series reads or writes."""
    paths = list(series.files())
    for entry in series.entries:
        paths += mail.touched(series.letter(entry).diff)
    return {os.path.dirname(p) for p in paths}


def check(series: Series, offered: list[Base]) -> list[tuple[str, str]]:
    """[(release, reason it fails or '')] for each offered base."""
    wanted, results = directories(series), []
    for candidate in offered:
        repo = candidate.excerpt(wanted)
        try:
            commits.build(repo, importer.BRANCH, series)
            reason = ""
        except Fail as failure:
            reason = str(failure)
        results.append((base.release(repo), reason))
        say(f"series on {candidate.label}: {reason or 'applies'}")
    return results
