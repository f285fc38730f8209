# SPDX-License-Identifier: GPL-2.0
"""The series as mails for a mailing list: build/series."""
from __future__ import annotations

import shutil
from pathlib import Path

import git
import paths
from tree import BASE, TIP, Tree
from ui import Fail, say

COVER = "cover-letter"      # in patches/: subject, empty line, text


def write(tree: Tree, patch_dir: Path, target: Path) -> list[Path]:
    """Mails that git am takes on the base, and a cover letter next to them.

    The cover letter is a .txt: git am stops at a mail without a patch.
    """
    if tree.ref(BASE) == tree.ref(TIP):
        raise Fail(f"{paths.shown(patch_dir / 'series')} is empty: there is nothing to send")
    shutil.rmtree(target, ignore_errors=True)
    git.run("format-patch", "--quiet", "--no-signature", "--zero-commit", "--cover-letter",
            "-o", target, f"{BASE}..{TIP}", repo=tree.path)
    _finish_cover(target / "0000-cover-letter.patch", patch_dir / COVER)
    mails = sorted(target.glob("*.patch"))
    say(f"series: {len(mails)} mails and a cover letter in {paths.shown(target)}")
    return mails


def _finish_cover(letter: Path, cover: Path) -> None:
    """Put our words where git left a gap for them."""
    if cover.exists():
        subject, _, blurb = cover.read_text().strip().partition("\n")
        text = letter.read_text().replace("*** SUBJECT HERE ***", subject)
        letter.write_text(text.replace("*** BLURB HERE ***", blurb.strip()))
    letter.rename(letter.with_suffix(".txt"))
