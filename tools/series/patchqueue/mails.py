# SPDX-License-Identifier: GPL-2.0
"""The series as mails for a mailing list: build/series, and its parts below that.

patches/cover-letter: a subject, an introduction, and for each part `[NNNN] subject` and a
text; it has the patches from number NNNN on. What follows `[]` closes all letters.
"""
from __future__ import annotations

import re
import shutil
from bisect import bisect_right
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from virtual_silicon.errors import Fail
from virtual_silicon.progress import say

from .. import git, paths
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


def cover(patch_dir: Path) -> Cover:
    """The cover letter; without the file an empty one."""
    file = patch_dir / COVER
    head, *rest = _HEADING.split(file.read_text() if file.exists() else "")
    subject, _, intro = head.partition("\n")
    parts = [Part(*(word.strip() for word in rest[n:n + 3])) for n in range(0, len(rest), 3)]
    closing = parts.pop().text if parts and not parts[-1].first else ""
    return Cover(subject.strip(), intro.strip(), parts, closing)


def starts(letter: Cover) -> list[int]:
    """The numbers at which parts begin."""
    return [int(part.first) for part in letter.parts]


def write(tree: Tree, patch_dir: Path, target: Path,
          left_out: Collection[str] = ()) -> list[Path]:
    """Mails that git am takes on the base, and a cover letter next to them; below
    NNNN/ each part likewise, but for one of which all patches are @left_out.

    The cover letter is a .txt: git am stops at a mail without a patch.
    """
    commits = git.run("rev-list", "--reverse", f"{BASE}..{TIP}", repo=tree.path).split()
    if not commits:
        raise Fail(f"{paths.shown(patch_dir / 'series')} is empty: there is nothing to send")
    shutil.rmtree(target, ignore_errors=True)
    letter = cover(patch_dir)
    homes = _homes(patch_dir, letter)
    kept = [home for patch, home in homes.items() if patch not in left_out]
    letter = letter._replace(parts=[part for number, part in enumerate(letter.parts, 1)
                                    if number in kept])
    begins = [kept.index(home) for home in dict.fromkeys(kept) if home]
    ends = [*begins[1:], len(commits)]
    summary = [f"{begin + 1} to {end}, {part.subject}.\n\n{part.text}"
               for part, begin, end in zip(letter.parts, begins, ends)]
    found = mails(tree, TIP, target, letter.subject, [letter.text, *summary, letter.closing])
    for part, begin, end in zip(letter.parts, begins, ends):
        mails(tree, _alone(tree, commits[begin:end], part), target / part.first,
               part.subject, [part.text, letter.closing])
    say(f"series: {len(found)} mails and a cover letter in {paths.shown(target)}"
        + f", {len(begins)} parts below" * bool(begins))
    return found


def _homes(patch_dir: Path, letter: Cover) -> dict[str, int]:
    """Which part each patch is in, from 1 on; no part is without."""
    file = patch_dir / "series"
    entries, _ = manifest.parse(file.read_text().splitlines(), str(file))
    homes = {entry.patch: bisect_right(starts(letter), entry.number) for entry in entries}
    for number, part in enumerate(letter.parts, 1):
        if number not in homes.values():
            raise Fail(f"{paths.shown(patch_dir / COVER)}: [{part.first}]: the part has no patch")
    return homes


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


def mails(tree: Tree, tip: str, target: Path, subject: str, texts: list[str]) -> list[Path]:
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
