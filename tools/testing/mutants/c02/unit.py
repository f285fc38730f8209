#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Takes parts of the kernel's source out of a tree, puts a test around them and runs it.

Usage: unit.py TREE TEST.c

A line "// FROM file: name name..." of the test is replaced by the definitions of these
functions, macros and variables, as the file has them. Kernel headers are the shims of
cpuidle-replay and the tree's own cpuidle.h.

Exit status 1: a check failed; 2: a part is not there, or it does not compile.
"""
from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

CC = Path(__file__).resolve().parents[2] / "shim/cc.py"
_FROM = re.compile(r"^// FROM (\S+): (.+)$", re.M)


def definition(lines: list[str], name: str) -> list[str] | None:
    """The lines from the one that begins the definition to the one that ends it."""
    begins = re.compile(rf"^(#define |[a-z][\w *]*[ *])?{re.escape(name)}\b[^;]*$|"
                        rf"^[a-z].*\b{re.escape(name)}(\[\])?[\w ]* = [^{{]*;?.*$")
    for first, line in enumerate(lines):
        if not begins.match(line):
            continue
        last = first
        if line.startswith("#define "):
            while lines[last].endswith("\\"):
                last += 1
        elif not line.endswith(";") and not re.match(rf"{re.escape(name)}\(", line):
            while last + 1 < len(lines) and not lines[last].startswith("}"):
                last += 1
        return lines[first:last + 1]
    return None


def parts(tree: Path, match: re.Match[str]) -> str:
    lines = (tree / match[1]).read_text().splitlines()
    out = []
    for name in match[2].split():
        found = definition(lines, name)
        if found is None:
            print(f"unit: {match[1]} has no {name}", file=sys.stderr)
            sys.exit(2)
        out += found
    return "\n".join(out)


def main() -> int:
    tree, test = Path(sys.argv[1]), Path(sys.argv[2])
    source = _FROM.sub(lambda match: parts(tree, match), test.read_text())
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch)
        (here / "test.c").write_text(source)
        if subprocess.run([sys.executable, CC, "--tree", tree, "gcc", "-O1", "-w",
                           "-fmax-errors=3", f"-I{tree}", "-o", here / "test",
                           here / "test.c"]).returncode:
            return 2
        return int(bool(subprocess.run([here / "test"]).returncode))


if __name__ == "__main__":
    sys.exit(main())
