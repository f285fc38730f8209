#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What a decision costs: instructions and time per select and reflect.

Instructions are the governor's own, as valgrind's callgrind counts them in the
replay; the services that it calls are left out. Time includes these and is what
the replay needs for a governor beyond what it needs for a bound.
"""
from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

GOVERNORS = {"teo": "teo", "base-teo": "teo", "base-menu": "menu"}      # name: prefix of its functions
BOUND = "oracle"
REPEAT = 20      # replays of a trace, to have something to measure
TEN = """POLL 0 0 polling
A 200 200\nB 1000 1000\nC 4000 10000\nD 20000 60000\nE 50000 200000
F 80000 400000\nG 120000 800000\nH 300000 2000000\nI 600000 6000000
"""
COUNT = re.compile(r"^\s*([\d,]+) \([ \d.]+%\)\s+(\S+)", re.M)


def decisions(output: str, governor: str) -> int:
    return sum(json.loads(line)["governors"][governor]["decisions"] for line in output.splitlines())


def instructions(program: str, governor: str, states: str, traces: list[str], scratch: Path) -> float:
    prefix = GOVERNORS[governor]
    out = scratch / "callgrind"
    run = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}",
                          f"--toggle-collect={prefix}_select", f"--toggle-collect={prefix}_reflect",
                          program, "--governor", governor, "--states", states, "--json", *traces],
                         capture_output=True, text=True, check=True)
    lines = subprocess.run(["callgrind_annotate", "--threshold=100", out],
                           capture_output=True, text=True, check=True).stdout
    own = sum(int(count.replace(",", "")) for count, where in COUNT.findall(lines)
              if ":" in where and "emulate.c:" not in where)
    return own / decisions(run.stdout, governor)


def user_seconds(command: list[str]) -> tuple[float, str]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, out


def nanoseconds(program: str, governor: str, states: str, traces: list[str]) -> float:
    """Best of five, as what disturbs it only makes it slower."""
    best: dict[str, float] = {}
    for name in 5 * [governor, BOUND]:
        spent, out = user_seconds([program, "--governor", name, *REPEAT * ["--states", states], "--json", *traces])
        best[name] = min(best.get(name, spent), spent)
        if name == governor:
            number = decisions(out, name)
    return 1e9 * (best[governor] - best[BOUND]) / number


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="governor-replay")
    parser.add_argument("traces", nargs="+")
    args = parser.parse_args()

    print(f"{'states':8}" + "".join(f"{name:>22}" for name in GOVERNORS))
    with tempfile.TemporaryDirectory() as scratch:
        ten = Path(scratch) / "ten"
        ten.write_text(TEN)
        for number, states in ((3, "c1-c6"), (5, "spr-c02"), (10, str(ten))):
            print(f"{number:<8}", end="")
            for governor in GOVERNORS:
                count = instructions(args.program, governor, states, args.traces, Path(scratch))
                spent = nanoseconds(args.program, governor, states, args.traces)
                print(f"{count:>10.0f} instr {spent:>3.0f} ns", end="", flush=True)
            print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
