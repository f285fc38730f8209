#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Compiles a KUnit unit of pure functions in user space and runs it.

usage: run.py UNIT [SOURCE OR OPTION OF CC.PY...]

Exit status 1: a case failed; 2: it does not compile.
"""
from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[4]
CC = TOP / "tools/testing/shim/cc.py"


def main() -> int:
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "unit"
        if subprocess.run([sys.executable, CC, "--tree", TOP / "build/linux", "gcc", "-O1", "-w",
                           "-fmax-errors=3", *sys.argv[1:], "-o", program]).returncode:
            return 2
        return int(bool(subprocess.run([program]).returncode))


if __name__ == "__main__":
    sys.exit(main())
