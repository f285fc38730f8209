#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Builds the replay of a scratch tree and runs some of its tests.

    replay.py TREE TOP FILE [OPTION OF PYTEST...]

Exit status 1: a test failed; 2: it does not compile, or there is no base (make replay).
"""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def main() -> int:
    tree, top, file, *options = sys.argv[1:]
    out, base = Path(tree) / "out", Path(top) / "build/replay/base"
    source = Path(tree) / "tools/testing/cpuidle-replay"
    out.mkdir(exist_ok=True)
    if not base.exists():
        print(f"{base} is not there: make replay", file=sys.stderr)
        return 2
    if not (out / "base").exists():
        (out / "base").symlink_to(base)
    built = subprocess.run(["make", "-s", "-j2", "-C", source, f"OUT={out}", f"KSRC={base}",
                            "CFLAGS=-O1 -g", "WARN=-w", "KWARN=-w"])
    if built.returncode:
        return 2
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
                           "-c", os.devnull, source / "tests" / file, *options],
                          env={**os.environ, "PYTHONPATH": str(source),
                               "GOVERNOR_REPLAY": str(out / "governor-replay")})
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
