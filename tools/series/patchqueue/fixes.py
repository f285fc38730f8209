# SPDX-License-Identifier: GPL-2.0
"""Fixes of what is wrong in a newer kernel, as mails of their own: build/7.3/series/fixes.

patches/7.3/fixes/series names them in order: a patch of the series, which may have no whole
files, or one that lies there. Each has to apply to that kernel alone, and after the others.
"""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from virtual_silicon.errors import Fail

from .. import git
from . import commits, mails, manifest
from .commits import DoesNotApply
from .manifest import Entry, Series
from .tree import BASE, Tree

FIXES = "fixes"
SUBJECT = "fixes of frequency invariance, schedutil and cpuidle"
TEXT = "Each of these applies alone, and depends on none of the others."


def load(directory: Path, series: Series) -> Series:
    """The fixes in @directory as a series; patches of @series as they are there."""
    file = directory / "series"
    named, _ = manifest.parse(file.read_text().splitlines(), str(file))
    known = {entry.patch: entry for entry in series.entries}
    texts = {}
    for entry in named:
        own = directory / entry.patch
        if not own.exists() and (entry.patch not in known or known[entry.patch].files):
            raise Fail(f"{file}: {entry.patch} is neither in {directory} nor a patch of the series"
                       " without whole files")
        path = series.patch_dir / entry.patch
        texts[path] = own.read_bytes() if own.exists() else series.content(path)
    return replace(series, entries=named, changed=texts)


def write(tree: Tree, directory: Path, series: Series, target: Path) -> list[Path]:
    """The mails, each tried alone."""
    if not (directory / "series").exists():
        return []
    fixes = load(directory, series)
    base = git.run("rev-parse", BASE, repo=tree.path)
    for entry in fixes.entries:
        _alone(tree, base, fixes, entry)
    tip = commits.build(tree.git_dir, base, fixes)[-1]
    return mails.mails(tree, tip, target, SUBJECT, [TEXT])


def _alone(tree: Tree, base: str, fixes: Series, entry: Entry) -> None:
    try:
        commits.build(tree.git_dir, base, replace(fixes, entries=[entry]))
    except DoesNotApply as failure:
        raise Fail(f"the fix does not apply alone: {failure}") from None
