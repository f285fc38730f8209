# SPDX-License-Identifier: GPL-2.0
"""Builds the patched kernel with a mutant's files and runs tests of the guest with it.

usage: python3 -m series.check.mutant_kernel TREE TEST [PYTEST OPTION...], TEST a file of
virtual-silicon/tests

The build has a tree of its own in build/mutants/linux, in which only what a mutant
changes is compiled again. Exit status 1: a test failed; 2: the kernel does not build, or
there is none of build/linux to begin with.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from virtual_silicon.errors import Fail

from .. import paths
from ..compile import kernel
from ..guest import PYTHON

TREE = paths.BUILD / "mutants/linux"
TESTS = paths.SILICON / "tests"


def put(source: Path, target: Path) -> None:
    """By a new file: the old one may be a link into build/linux."""
    target.unlink(missing_ok=True)
    shutil.copyfile(source, target)


def prepare() -> None:
    """The tree of build/linux: sources linked, objects copied; once per state of it."""
    made_from = paths.OUT / "patched/made-from"
    mark = TREE.parent / "made-from"
    if not made_from.exists():
        raise Fail("build/linux has no kernel of committed sources: make kernel")
    if mark.exists() and mark.read_text() == made_from.read_text():
        return
    mark.unlink(missing_ok=True)
    shutil.rmtree(TREE, ignore_errors=True)
    TREE.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["rsync", "-a", f"--link-dest={paths.LINUX}", "--exclude=/.git",
                    f"--exclude=/{kernel.OBJ}", f"{paths.LINUX}/", TREE], check=True)
    subprocess.run(["rsync", "-a", f"{paths.LINUX}/{kernel.OBJ}", TREE], check=True)
    put(made_from, mark)


def take_over(files: Path) -> None:
    for path, _, names in os.walk(files):
        for name in names:
            source = Path(path) / name
            target = TREE / source.relative_to(files)
            if not target.exists() or target.read_bytes() != source.read_bytes():
                put(source, target)


def main() -> int:
    tree, test, *options = sys.argv[1:]
    try:
        prepare()
        take_over(Path(tree))
        kernel.build(TREE, "mutant", kernel.patched_fragments())
    except Fail as failure:
        print(failure.details or failure, file=sys.stderr)
        return 2
    image = TREE / kernel.OBJ / "arch/x86/boot/bzImage"
    return subprocess.run([PYTHON, "-m", "pytest", "-q", "-x", "-p",
                           "no:cacheprovider", TESTS / test, f"--patched-kernel={image}",
                           *options], cwd=paths.SILICON).returncode


if __name__ == "__main__":
    sys.exit(main())
