#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs units of the kernel's source as programs, under sanitizers.

A unit is a KUnit suite: one of the kernel's own (NAME_kunit.c), or one of those beside
this file. In these a line "// FROM file: name name..." is replaced by the definitions of
these functions, macros and variables, as the tree has them.

Exit status 1: a case failed; 2: a part is not there, or it does not compile.
"""
from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[2]
LINUX = Path(os.environ.get("X86_DVFS_BUILD", TOP / "build")) / "linux"
CC = TOP / "tools/testing/shim/cc.py"
UNITS = {file.stem.removesuffix("_kunit"): file
         for directory in ("arch/x86/kernel/cpu", "drivers/cpuidle/governors", "kernel/sched")
         for file in sorted((TOP / directory).glob("*_kunit.c"))
         } | {file.stem: file for file in sorted(HERE.glob("*.c"))}

_FROM = re.compile(r"^// FROM (\S+): (.+)$", re.M)


class Unbuildable(Exception):
    pass


def differing(tree: Path) -> list[str]:
    """Whole files of the series that @tree, if it is build/linux, has otherwise: edited on one
    side, and not taken to the other by make tree or make refresh."""
    if tree != TOP / "build/linux":
        return []
    ours = (file for name in ("arch", "drivers", "include", "kernel")
            for file in sorted((TOP / name).rglob("*.[ch]")))
    return [str(name) for file in ours if (theirs := tree / (name := file.relative_to(TOP)))
            and not (theirs.is_file() and theirs.read_bytes() == file.read_bytes())]


def cases(unit: str) -> list[str]:
    return re.findall(r"\bKUNIT_CASE(?:_PARAM)?\((\w+)", UNITS[unit].read_text())


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
            raise Unbuildable(f"{match[1]} has no {name}")
        out += found
    return "\n".join(out)


def run(unit: str, tree: Path, bits: int = 64) -> subprocess.CompletedProcess[str]:
    """Its output has a line "ok NAME" or "not ok NAME" for each case."""
    file = UNITS[unit]
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        if file.parent == HERE:
            source = scratch / file.name
            source.write_text(_FROM.sub(lambda match: parts(tree, match), file.read_text()))
            sources = [source]
        else:
            beside = tree / file.parent.relative_to(TOP)
            sources = [beside / file.name]
        built = subprocess.run(
            [sys.executable, CC, "--tree", tree, "--tree", LINUX, "gcc", f"-m{bits}", "-O1", "-g",
             "-w", "-fmax-errors=3", "-fsanitize=address,undefined", "-fno-sanitize-recover",
             f"-iquote{tree}", "-o", scratch / "unit", *sources],
            capture_output=True, text=True)
        if built.returncode:
            raise Unbuildable(f"{built.stderr}(headers are those of tools/testing/shim)")
        # KUnit frees what a case has allocated.
        return subprocess.run([scratch / "unit"], capture_output=True, text=True,
                              env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("unit", nargs="*", help=f"of {', '.join(UNITS)}; all by default")
    parser.add_argument("--tree", type=Path, default=LINUX, help="kernel tree (build/linux)")
    parser.add_argument("--bits", type=int, choices=(32, 64), default=64,
                        help="32 needs gcc-multilib")
    args = parser.parse_args()
    if unknown := set(args.unit) - set(UNITS):
        parser.error(f"no unit {', '.join(sorted(unknown))}; there are: {', '.join(UNITS)}")
    if names := differing(args.tree.resolve()):
        print(f"build/linux, which is tested, has another {', '.join(names)}: make tree takes it"
              " there, make refresh from there", file=sys.stderr)
    failed = 0
    for unit in args.unit or UNITS:
        try:
            done = run(unit, args.tree.resolve(), args.bits)
        except (Unbuildable, OSError) as error:
            print(f"{unit}: {error}", file=sys.stderr)
            return 2
        print(done.stdout + done.stderr, end="")
        failed |= done.returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
