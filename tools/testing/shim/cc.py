#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compiles kernel sources as programs of user space.

usage: cc.py [--tree DIR]... COMPILER ARGUMENT...

The headers that the sources include by <...> are made for the call: a few are those of
the first tree that has them, the others are empty, as kernel.h, which the compiler
includes first, has what the sources use of them.
"""
from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: Of a tree, as they are.
REAL = ("asm/intel-family.h", "asm/msr-index.h", "linux/cpuidle.h")
#: libc includes these itself.
OF_LIBC = ("asm/errno.h", "linux/errno.h", "linux/limits.h")
_INCLUDE = re.compile(
    r'^#\s*include\s+(?:"([^"]+)"|<((?:asm|kunit|linux|trace|uapi)/[^>]+)>)', re.M)


def headers(out: Path, trees: list[Path], search: list[Path], sources: list[Path]) -> None:
    todo, done = [*sources], set[Path]()
    while todo:
        source = todo.pop()
        if source in done:
            continue
        done.add(source)
        for own, name in _INCLUDE.findall(source.read_text()):
            header = out / name
            if own:
                todo += [d / own for d in (source.parent, *search) if (d / own).exists()][:1]
            elif name not in OF_LIBC and not (HERE / name).exists() and not header.exists():
                header.parent.mkdir(parents=True, exist_ok=True)
                header.write_text(_of_tree(trees, name) if name in REAL else "")
                todo.append(header)


def _of_tree(trees: list[Path], name: str) -> str:
    for tree in trees:
        for file in (tree / "include" / name, tree / "arch/x86/include" / name):
            if file.exists():
                return file.read_text()
    sys.exit(f"cc.py: {name} must be in one of the trees: {', '.join(map(str, trees))}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, action="append", default=[])
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    if not args.command:
        parser.error("it needs a compiler, and what that is to do")
    compiler, *words = args.command
    search = [Path(found[1]) for word in words if (found := re.match(r"-(?:I|iquote)(.+)", word))]
    with tempfile.TemporaryDirectory() as name:
        headers(Path(name), args.tree, search,
                [Path(w) for w in words if w.endswith(".c") and Path(w).exists()])
        try:
            return subprocess.run([compiler, "-include", HERE / "kernel.h", f"-I{name}",
                                   f"-I{HERE}", *words]).returncode
        except FileNotFoundError:
            sys.exit(f"cc.py: {compiler} is not installed")


if __name__ == "__main__":
    sys.exit(main())
