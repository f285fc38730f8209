#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Judges the governor of a kernel tree: judge.py TREE STREAMS [WORDS OF fuzz...]

Runs the oracle with each kind of input and driver that the words leave open, and the
boost for IO beside the base's. Stops at what it finds. Exit status 1: it found
something; 2: the governor does not compile.
"""
from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

import simulator
from compare import DRIVERS, INPUTS


def main() -> int:
    tree, streams, *words = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch)
        try:
            ours = simulator.build("fuzz", simulator.Tree(Path(tree)), out / "ours")
        except (LookupError, subprocess.CalledProcessError) as error:
            print(error, file=sys.stderr)
            return 2
        if words == ["io"]:
            base = simulator.build("fuzz", simulator.base_of(), out / "base")
            said = [subprocess.run([p, "io=50000"], capture_output=True).stdout
                    for p in (base, ours)]
            print("the boost for IO is" + " not" * (said[0] != said[1]) + " that of the base")
            return int(said[0] != said[1])
        inputs = [w for w in words if w.startswith("inputs=")] or [f"inputs={i}" for i in INPUTS]
        drivers = [w for w in words if w.split("=")[0] in ("cpus", "driver")] or DRIVERS
        for combination in itertools.product(inputs, drivers):
            done = subprocess.run([ours, "contract=ours", f"streams={streams}", *combination],
                                  capture_output=True, text=True)
            if done.returncode:
                print(*combination, done.stdout, done.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
