# SPDX-License-Identifier: GPL-2.0
"""The series as mails for a mailing list: build/series, and its parts below that.

patches/cover-letter: a subject, an introduction, and for each part `[NNNN] subject`, where
NNNN begins the name of its first patch, and a text. What follows `[]` closes all letters.
"""
from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import NamedTuple

from .. import git, paths
from ..ui import Fail, say
from . import manifest
from .tree import BASE, TIP, Tree

COVER = "cover-letter"
_HEADING = re.compile(r"^\[(\d*)\] *(.*)\n", re.M)


class Part(NamedTuple):
    first: str
    subject: str
    text: str


class Cover(NamedTuple):
    subject: str
    text: str
    parts: list[Part]
    closing: str


def read(text: str) -> Cover:
    head, *rest = _HEADING.split(text)
    subject, _, intro = head.partition("\n")
    parts = [Part(*(word.strip() for word in rest[n:n + 3])) for n in range(0, len(rest), 3)]
    closing = parts.pop().text if parts and not parts[-1].first else ""
    return Cover(subject.strip(), intro.strip(), parts, closing)


def write(tree: Tree, patch_dir: Path, target: Path) -> list[Path]:
    """Mails that git am takes on the base, and a cover letter next to them; below
    NNNN/ each part likewise.

    The cover letter is a .txt: git am stops at a mail without a patch.
    """
    commits = git.run("rev-list", "--reverse", f"{BASE}..{TIP}", repo=tree.path).split()
    if not commits:
        raise Fail(f"{paths.shown(patch_dir / 'series')} is empty: there is nothing to send")
    shutil.rmtree(target, ignore_errors=True)
    file = patch_dir / COVER
    cover = read(file.read_text() if file.exists() else "")
    starts = [_start(patch_dir, part) for part in cover.parts]
    ends = [*starts[1:], len(commits)]
    summary = [f"{start + 1} to {end}, {part.subject}.\n\n{part.text}"
               for part, start, end in zip(cover.parts, starts, ends)]
    mails = _mails(tree, TIP, target, cover.subject, [cover.text, *summary, cover.closing])
    for part, start, end in zip(cover.parts, starts, ends):
        _mails(tree, _alone(tree, commits[start:end], part), target / part.first,
               part.subject, [part.text, cover.closing])
    say(f"series: {len(mails)} mails and a cover letter in {paths.shown(target)}"
        + f", {len(starts)} parts below" * bool(starts))
    return mails


def _start(patch_dir: Path, part: Part) -> int:
    file = patch_dir / "series"
    entries, _ = manifest.parse(file.read_text().splitlines(), str(file))
    for number, entry in enumerate(entries):
        if entry.patch.startswith(part.first):
            return number
    raise Fail(f"{paths.shown(patch_dir / COVER)}: [{part.first}]: no patch begins so")


def _alone(tree: Tree, commits: list[str], part: Part) -> str:
    """These commits on the base, without those before them; no work tree is touched."""
    tip = git.run("rev-parse", BASE, repo=tree.path)
    for commit in commits:
        # merge-tree takes the base of the merge from history: give it one.
        ours = git.run("commit-tree", "-p", f"{commit}^", "-m", "", f"{tip}^{{tree}}",
                       repo=tree.path)
        merged = git.call("merge-tree", "--write-tree", ours, commit, repo=tree.path, check=False)
        result = merged.stdout.decode(errors="replace").split("\n", 1)[0]
        if merged.returncode:
            subject = git.run("show", "-s", "--format=%s", commit, repo=tree.path)
            raise Fail(f"[{part.first}] does not apply alone: {subject}")
        author = dict(zip(("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"),
                          git.run("show", "-s", "--format=%an%n%ae%n%ad", commit,
                                  repo=tree.path).split("\n")))
        tip = git.run("commit-tree", "-p", tip, "-F", "-", result, repo=tree.path, env=author,
                      stdin=git.raw("show", "-s", "--format=%B", commit, repo=tree.path))
    return tip


def _mails(tree: Tree, tip: str, target: Path, subject: str, texts: list[str]) -> list[Path]:
    git.run("format-patch", "--quiet", "--no-signature", "--zero-commit", "--cover-letter",
            "-o", target, f"{BASE}..{tip}", repo=tree.path)
    letter = target / "0000-cover-letter.patch"
    text = letter.read_text()
    if subject:
        text = text.replace("*** SUBJECT HERE ***", subject)
        text = text.replace("*** BLURB HERE ***", "\n\n".join(filter(None, texts)))
    letter.write_text(text)
    letter.rename(letter.with_suffix(".txt"))
    return sorted(target.glob("*.patch"))
