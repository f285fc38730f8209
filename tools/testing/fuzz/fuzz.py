#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Fuzzes the kernel's pure functions in user space (README.md).

Exit status 1: a property or a sanitizer failed; 2: it could not be compiled or run.
"""
from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[2]
LINUX = Path(os.environ.get("X86_DVFS_BUILD", TOP / "build")) / "linux"
CORPUS = HERE / "corpus"
CC = HERE.parent / "shim/cc.py"

UNITS = sorted(file.stem for file in HERE.glob("*.c") if file.stem != "random")
_WHERE = ("kernel/sched", "arch/x86/kernel", "arch/x86/kernel/cpu", "drivers/cpuidle/governors")
_SANITIZE = "address,undefined"


@dataclass
class Failed(Exception):
    status: int
    said: str


def run(words: Sequence[str | Path], where: Path | None = None,
        ) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(words, cwd=where, capture_output=True, text=True,
                              errors="replace")
    except FileNotFoundError:
        raise Failed(2, f"{words[0]} is not installed") from None


def build(unit: str, tree: Path, out: Path, clang: bool) -> Path:
    if not tree.is_dir():
        raise Failed(2, f"{tree} does not exist (make tree makes build/linux)")
    program = out / unit
    compiler = (["clang", f"-fsanitize=fuzzer,{_SANITIZE}"] if clang
                else ["gcc", f"-fsanitize={_SANITIZE}", f"{HERE}/random.c"])
    done = run(
        [sys.executable, CC, "--tree", tree, "--tree", LINUX, *compiler,
         "-fno-sanitize-recover=all", "-O1", "-g", "-w",
         *(f"-iquote{root / where}" for root in (tree, LINUX) for where in _WHERE),
         HERE / f"{unit}.c", "-lm", "-o", program])
    if done.returncode:
        raise Failed(2, f"{unit} does not compile:\n{done.stderr[:3000]}")
    return program


def once(unit: str, tree: Path, number: int) -> None:
    """The corpus and so many random inputs; needs no clang."""
    with tempfile.TemporaryDirectory() as scratch:
        program = build(unit, tree, Path(scratch), clang=False)
        done = run([program, CORPUS / f"{unit}.txt", str(number)])
        if done.returncode:
            raise Failed(2 if done.returncode == 2 else 1, f"{unit}: {done.stderr[-3000:]}")


def fuzz(unit: str, tree: Path, seconds: int) -> str:
    """libFuzzer for a time; the corpus becomes the fewest inputs that reach the same.
    Returns a line that says how much was done."""
    kept = CORPUS / f"{unit}.txt"
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch)
        program = build(unit, tree, out, clang=True)
        for name in ("all", "few"):
            (out / name).mkdir()
        for number, line in enumerate(kept.read_text().split() if kept.exists() else []):
            (out / "all" / str(number)).write_bytes(bytes.fromhex(line))
        done = run([program, f"-max_total_time={seconds}", "-max_len=256",
                    "-print_final_stats=1", out / "all"], out)
        if done.returncode:
            # crash-HASH, timeout-HASH and the like
            bad = next((f for f in out.glob("*-*") if f.is_file()), None)
            raise Failed(1, f"{unit}: {done.stderr[-4000:]}"
                         + (f"\ninput: {bad.read_bytes().hex()}" if bad else ""))
        merged = run([program, "-merge=1", out / "few", out / "all"], out)
        if merged.returncode:
            raise Failed(1, f"{unit}: {merged.stderr[-4000:]}")
        kept.write_text("".join(sorted(f"{file.read_bytes().hex()}\n"
                                       for file in (out / "few").iterdir())))
    runs = re.search(r"stat::number_of_executed_units: (\d+)", done.stderr)
    cover = re.findall(r"cov: (\d+)", done.stderr)
    inputs = len(kept.read_text().split())
    return (f"{unit}: {int(runs[1]) if runs else 0} inputs in {seconds} s, "
            f"{cover[-1] if cover else 0} edges, {inputs} inputs kept")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("unit", nargs="*", help=f"of {', '.join(UNITS)}; all by default")
    parser.add_argument("--seconds", type=int, metavar="N",
                        help="libFuzzer for so long each (needs clang and its libclang-rt-*-dev);"
                             " without: the corpus and random inputs")
    parser.add_argument("--random", type=int, default=20000, metavar="N",
                        help="so many random inputs each (default: %(default)s)")
    parser.add_argument("--tree", type=Path, default=LINUX, metavar="DIR",
                        help="the kernel's source, or what is to replace parts of it")
    args = parser.parse_args()
    if unknown := set(args.unit) - set(UNITS):
        parser.error(f"no unit {', '.join(sorted(unknown))}; there are: {', '.join(UNITS)}")
    for unit in args.unit or UNITS:
        try:
            if args.seconds:
                print(fuzz(unit, args.tree, args.seconds), flush=True)
            else:
                once(unit, args.tree, args.random)
                print(f"{unit}: ok", flush=True)
        except Failed as failed:
            print(failed.said, file=sys.stderr)
            return failed.status
    return 0


if __name__ == "__main__":
    sys.exit(main())
