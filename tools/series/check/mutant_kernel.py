# SPDX-License-Identifier: GPL-2.0
"""Builds the patched kernel with a mutant's files and runs tests of the guest with it.

usage: python3 -m series.check.mutant_kernel TREE TEST [PYTEST OPTION...], TEST a file of
virtual-silicon/tests

The build has a tree of its own in build/mutants/linux, in which only what a mutant
changes is compiled again. Exit status 1: a test failed; 2: the kernel does not build, or
there is none of build/linux to begin with.
"""
from __future__ import annotations

import shutil
import subprocess
import sys

from virtual_silicon.errors import Fail

from .. import paths, proc
from ..compile import kernel
from ..guest import PYTHON

TREE = paths.BUILD / "mutants/linux"
TESTS = paths.SILICON / "tests"


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
    shutil.copyfile(made_from, mark)


def main() -> int:
    tree, test, *options = sys.argv[1:]
    try:
        prepare()
        # Of other content only, and by new files: the old ones are links into build/linux.
        proc.capture(["rsync", "-rlc", f"{tree}/", TREE])
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
