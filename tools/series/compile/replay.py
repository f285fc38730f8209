# SPDX-License-Identifier: GPL-2.0
"""build/replay/governor-replay: governors of the base and ours in user space.

TREE="NAME=path..." names kernel trees whose governors join as NAME-teo and so on; 7.3 is Debian's
kernel of that version.
"""
from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

from virtual_silicon import cli
from virtual_silicon.errors import Fail
from virtual_silicon.progress import Step

from .. import git, paths, proc
from ..fetch import base, importer

SOURCE = paths.TOP / "tools/testing/cpuidle-replay"
#: What it compiles of the base, unmodified.
OF_BASE = ("drivers/cpuidle/governors", "drivers/idle/intel_idle.c",
           "include/linux/cpuidle.h")


def unpack(repo: Path, target: Path, *files: str) -> Path:
    """Times come from the commit, so that make sees no change where there is none."""
    data = git.raw("archive", "--format=tar", importer.BRANCH, *files, repo=repo)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(target)
    return target


def build(chosen: base.Base) -> None:
    target = paths.BUILD / "replay"
    base_tree = unpack(chosen.repo(), target / "base", *OF_BASE)
    with Step("replay: compiling"):
        proc.logged(["make", "-C", SOURCE, f"OUT={target}", f"KSRC={base_tree}",
                     f"PYTHON={sys.executable}", trees()],
                    paths.LOG / "replay.log", what="replay")


def others() -> None:
    """Refuses a TREE= that is none, before anything is compiled."""
    for word in os.environ.get("TREE", "").split():
        path = (paths.TOP / word.rpartition("=")[2]).resolve()
        if not re.fullmatch(r"\d+\.\d+", word) and not (path / OF_BASE[0]).is_dir():
            raise Fail(f"TREE={word}: {path} is no kernel tree, with {OF_BASE[0]}", code=2)


def trees() -> str:
    """Relative paths are from where make was called, not from where it goes."""
    words = []
    for word in os.environ.get("TREE", "").split():
        if re.fullmatch(r"\d+\.\d+", word):
            words.append(f"{word}={of_debian(word)}")
            continue
        name, equals, path = word.rpartition("=")
        words.append(f"{name}{equals}{(paths.TOP / path).resolve()}")
    return "TREE=" + " ".join(words)


def of_debian(version: str) -> Path:
    """The governors of another version. It is BASE= in a process of its own."""
    done = subprocess.run([sys.executable, "-m", __name__], env={**os.environ, "BASE": version},
                          stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Fail(f"TREE={version}: Debian's source of it cannot be had")
    return unpack(Path(done.stdout.splitlines()[-1]), paths.BUILD / "replay" / version, OF_BASE[0])


def main() -> int:
    print(base.choose().excerpt({OF_BASE[0]}))
    return 0


if __name__ == "__main__":
    sys.exit(cli.ended("replay", main))
