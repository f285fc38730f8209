# SPDX-License-Identifier: GPL-2.0
"""The kernel's own decoder of turbo tables, compiled for user space."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ... import paths

HERE = Path(__file__).resolve().parent
TREE = paths.BUILD / "linux"
#: Of a tree with a mistake in it, for tools/testing/mutants.
CPU = Path(os.environ.get("KERNEL_TREE", TREE)) / "arch/x86/kernel/cpu"
DATA = paths.SILICON / "data/turbo.csv"
CC = paths.ROOT / "tools/testing/shim/cc.py"


def build(where: Path) -> Path:
    program = where / "decode"
    subprocess.run([sys.executable, CC, "--tree", TREE, "gcc", "-O1", "-Wall", "-Werror",
                    f"-iquote{CPU}", "-o", program, HERE / "decode.c"],
                   check=True)
    return program
