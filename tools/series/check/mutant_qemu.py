# SPDX-License-Identifier: GPL-2.0
"""Builds the emulator with a mutant's files and runs tests with it.

usage: python3 -m series.check.mutant_qemu TREE TEST [PYTEST OPTION...], TEST a file of
virtual-silicon/tests

The build has source and objects of its own in build/mutants/qemu, in which only what a
mutant changes is compiled again. Exit status 1: a test failed; 2: it does not build.
"""
from __future__ import annotations

import shutil
import subprocess
import sys

from virtual_silicon.errors import Fail

from .. import paths, proc
from ..compile import kernel, qemu
from ..guest import PYTHON
from ..patchqueue import commits

ROOT = paths.BUILD / "mutants/qemu"
TESTS = paths.SILICON / "tests"


def prepare() -> None:
    """The source with our patches, once per state of them."""
    mark, series = ROOT / "made-from", qemu.series()
    key = commits.inputs_key(series)
    if mark.exists() and mark.read_text() == key:
        return
    mark.unlink(missing_ok=True)
    if not (paths.QEMU / "src").is_dir():
        qemu.source(qemu.offered_version(), series)
    shutil.rmtree(ROOT / "src", ignore_errors=True)
    ROOT.mkdir(parents=True, exist_ok=True)
    subprocess.run(["rsync", "-a", "--exclude=/.git", f"{paths.QEMU}/src", ROOT], check=True)
    mark.write_text(key)


def main() -> int:
    tree, test, *options = sys.argv[1:]
    try:
        prepare()
        # Of other content only, with the present time: what is restored is compiled again, too.
        proc.capture(["rsync", "-rlc", f"{tree}/", ROOT / "src"])
        for file in qemu.compiled(ROOT):
            kernel.link(ROOT / "out" / file.name, file)
    except Fail as failure:
        print(failure.details or failure, file=sys.stderr)
        return 2
    return subprocess.run([PYTHON, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
                           TESTS / test, f"--qemu={ROOT / 'out' / qemu.PROGRAM}", *options],
                          cwd=paths.SILICON).returncode


if __name__ == "__main__":
    sys.exit(main())
