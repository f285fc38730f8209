#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What a decision costs: instructions and cache lines of select and reflect.

valgrind's lackey tells each instruction and access of the replay. Those of a
governor's own functions count, by symbol; the services that it calls and the stack,
which the idle loop has used just before, do not. Warm, a call takes its
instructions. Cold, each line of 64 bytes that it touches, code or data, is a miss.
With --time, also ns per decision on this machine: what the replay takes for a
governor beyond what it takes for a bound.
"""
from __future__ import annotations

import argparse
import json
import lzma
import re
import resource
import subprocess
import sys
import tempfile
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

GOVERNORS = ["teo", "base-teo", "base-menu"]
BOUND = "timer"
CALLS = ("select", "reflect")
LINE = 64
STACK = 0x1f_0000_0000      # where valgrind's is, above all else
REPEAT = 20      # replays of a trace, to have something to measure
TEN = """POLL 0 0 polling
A 200 200\nB 1000 1000\nC 4000 10000\nD 20000 60000\nE 50000 200000
F 80000 400000\nG 120000 800000\nH 300000 2000000\nI 600000 6000000
"""
SYMBOL = re.compile(r"^([0-9a-f]+) ([0-9a-f]+) [tT] (\S+)\t(\S+):\d+$", re.M)


@dataclass
class Cost:
    """Of all calls of one kind."""
    calls: int = 0
    instructions: int = 0
    code_lines: int = 0
    data_lines: int = 0

    def each(self) -> str:
        n = max(self.calls, 1)
        return f"{self.instructions / n:6.0f} {self.code_lines / n:6.1f} {self.data_lines / n:6.1f}"


@dataclass
class Code:
    """Where the functions of one governor are in the program."""
    starts: list[int]
    ends: list[int]
    entries: dict[int, str]     # of select and reflect

    def has(self, address: int) -> bool:
        at = bisect_right(self.starts, address) - 1
        return at >= 0 and address < self.ends[at]


def functions(program: Path) -> list[tuple[int, int, str, str]]:
    """Address, size, name and source file of each, as nm tells them."""
    said = subprocess.run(["nm", "-lSn", program], capture_output=True, text=True, check=True).stdout
    return [(int(a, 16), int(size, 16), name, file) for a, size, name, file in SYMBOL.findall(said)]


def initcall(governor: str) -> str:
    """What the Makefile and compile_trees.py call it."""
    tree, _, kind = governor.rpartition("-")
    within = {"": "", "base": "base_"}.get(tree, f"tree_{tree.replace('.', '_')}_")
    return f"init_{within}{kind}"


def find_code(program: Path, governor: str) -> Code:
    """All functions from the source that has the initcall, and from its headers."""
    there = functions(program)
    file = next((file for *_, name, file in there if name == initcall(governor)), None)
    if file is None:
        raise SystemExit(f"cost.py: {program} has no governor {governor}, --governor ? lists those it has")
    kind, directory = governor.rpartition("-")[2], file.rpartition("/")[0]
    own = [(a, size, name) for a, size, name, where in there
           if where == file or (where.startswith(directory + "/") and where.endswith(".h") and name.startswith(kind))]
    return Code([a for a, _, _ in own], [a + size for a, size, _ in own],
                {a: call for a, _, name in own for call in CALLS if name == f"{kind}_{call}"})


def count(lines: Iterable[str], code: Code, outside: Code) -> dict[str, Cost]:
    """From lackey's trace. A call ends where the engine (`outside`) goes on."""
    costs = {call: Cost() for call in CALLS}
    cost: Cost | None = None
    touched: tuple[set[int], set[int]] = (set(), set())
    own = False
    for line in lines:
        kind = line[:2]
        if kind == "I ":
            address = int(line[3:line.index(",")], 16)
            if cost is None:
                if address not in code.entries:
                    continue
                cost = costs[code.entries[address]]
                cost.calls += 1
                touched = (set(), set())
            elif outside.has(address):
                cost.code_lines += len(touched[0])
                cost.data_lines += len(touched[1])
                cost = None
                continue
            own = code.has(address)
            if own:
                cost.instructions += 1
                touched[0].add(address // LINE)
        elif cost is not None and own and kind in (" L", " S", " M"):
            at, _, size = line[3:].partition(",")
            address = int(at, 16)
            if address < STACK:
                touched[1].update(range(address // LINE, (address + int(size) - 1) // LINE + 1))
    return costs


def engine_code(program: Path) -> Code:
    own = [(a, size) for a, size, _, file in functions(program) if file.endswith("/engine.c")]
    return Code([a for a, _ in own], [a + size for a, size in own], {})


def measure(program: Path, governor: str, states: str, trace: Path) -> dict[str, Cost]:
    with subprocess.Popen(["valgrind", "--tool=lackey", "--trace-mem=yes", "--log-fd=1", program,
                           "--governor", governor, "--states", states, "--json", trace],
                          stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout
        return count(run.stdout, find_code(program, governor), engine_code(program))


def excerpt(traces: list[Path], periods: int, scratch: Path) -> Path:
    """Some idle times of each trace, one after another, as one trace."""
    text: list[str] = []
    shift = 0
    for path in traces:
        data = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        rows = data.decode().splitlines()[:periods + 2]
        text = text or rows[:2]
        first = int(rows[2].split(",")[1])
        for row in rows[2:]:
            cpu, entry, rest = row.split(",", 2)
            text.append(f"{cpu},{int(entry) - first + shift},{rest}")
        last = text[-1].split(",")
        # The ticks fall where they did.
        shift = (int(last[1]) + int(last[2])) // 4_000_000 * 4_000_000 + 8_000_000
    target = scratch / "excerpt.csv"
    target.write_text("\n".join(text) + "\n")
    return target


def user_seconds(command: list[str]) -> tuple[float, str]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, out


def nanoseconds(program: Path, governor: str, states: str, traces: list[Path]) -> float:
    """Best of five, as what disturbs it only makes it slower."""
    best: dict[str, float] = {}
    number = 1
    for name in 5 * [governor, BOUND]:
        spent, out = user_seconds([str(program), "--governor", name, *REPEAT * ["--states", states], "--json",
                                   *map(str, traces)])
        best[name] = min(best.get(name, spent), spent)
        if name == governor:
            number = sum(json.loads(line)["governors"][name]["decisions"] for line in out.splitlines())
    return 1e9 * (best[governor] - best[BOUND]) / number


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path, help="governor-replay")
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--governor", nargs="+", default=GOVERNORS)
    parser.add_argument("--periods", type=int, default=300, help="of each trace (default: 300)")
    parser.add_argument("--time", action="store_true", help="also ns per decision")
    args = parser.parse_args()

    print("each: instructions, lines of code, lines of data")
    print(f"{'states':8}{'governor':16}{'select':>20}{'reflect':>22}" + ("          ns" if args.time else ""))
    with tempfile.TemporaryDirectory() as scratch:
        trace = excerpt(args.traces, args.periods, Path(scratch))
        ten = Path(scratch) / "ten"
        ten.write_text(TEN)
        for number, states in ((3, "c1-c6"), (5, "spr-c02"), (10, str(ten))):
            for governor in args.governor:
                costs = measure(args.program, governor, states, trace)
                line = f"{number:<8}{governor:16}{costs['select'].each()}  {costs['reflect'].each()}"
                if args.time:
                    line += f"{nanoseconds(args.program, governor, states, args.traces):12.0f}"
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
