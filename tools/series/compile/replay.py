# SPDX-License-Identifier: GPL-2.0
"""build/replay/governor-replay: governors of the base and ours in user space.

TREE="NAME=path..." names kernel trees whose governors join as NAME-teo and so on.
"""
from __future__ import annotations

import io
import os
import sys
import tarfile

from virtual_silicon.progress import Step

from .. import git, paths, proc
from ..fetch import importer
from ..fetch.base import Base

SOURCE = paths.TOP / "tools/testing/cpuidle-replay"
#: What it compiles of the base, unmodified.
OF_BASE = ("drivers/cpuidle/governors", "drivers/idle/intel_idle.c",
           "include/linux/cpuidle.h")


def build(chosen: Base) -> None:
    target = paths.BUILD / "replay"
    base_tree = target / "base"
    data = git.raw("archive", "--format=tar", importer.BRANCH, *OF_BASE, repo=chosen.repo())
    # Times come from the commit, so that make sees no change where there is none.
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(base_tree)
    with Step("replay: compiling"):
        proc.logged(["make", "-C", SOURCE, f"OUT={target}", f"KSRC={base_tree}",
                     f"PYTHON={sys.executable}", trees()],
                    paths.LOG / "replay.log", what="replay")


def trees() -> str:
    """Relative paths are from where make was called, not from where it goes."""
    words = []
    for word in os.environ.get("TREE", "").split():
        name, equals, path = word.rpartition("=")
        words.append(f"{name}{equals}{(paths.TOP / path).resolve()}")
    return "TREE=" + " ".join(words)
