#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What arch_scale_freq_tick() costs, ours beside the base's, with the same flags.

Both are compiled as the kernel compiles them (with jump labels, which the guests'
small kernels lack), linked into a user-space program with nothing behind the
symbols that the tick does not need, and run there. Needs build/linux, built.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TREE = HERE.parents[3] / "build/linux"
FILE = "arch/x86/kernel/cpu/aperfmperf.c"


def call(words: list[str], cwd: Path) -> str:
    return subprocess.run(words, cwd=cwd, check=True, capture_output=True, text=True).stdout


#: In place of a read, for the time: a counter in memory
FAKE = """	addl $0x2000, fake_counter
	movl fake_counter, %eax
	xorl %edx, %edx
"""


def compile_like_the_kernel(tree: Path, source: Path, target: Path, fake: bool) -> None:
    """By the commands that the kernel's build has saved: compiler and objtool."""
    obj, listing = tree / ".obj", target.with_suffix(".s")
    saved = (obj / f"{Path(FILE).parent}/.{Path(FILE).stem}.o.cmd").read_text().splitlines()[0]
    compiler, objtool = (shlex.split(c) for c in saved.split(":=", 1)[1].split(";")[:2])
    words = [w for w in compiler if not w.startswith("-Wp,-MMD") and w != "-c"
             and not w.endswith(("/aperfmperf.o", FILE)) and w != "-o"]
    call(words + ["-DCONFIG_JUMP_LABEL=1", f"-I../{Path(FILE).parent}", "-S", "-o",
                  str(listing), str(source)], obj)
    if fake:
        text = re.sub(r"1: rdmsr.*\n", "1:\n" + FAKE, listing.read_text())
        listing.write_text(re.sub(r"^\s*rdtsc\s*$", FAKE, text, flags=re.MULTILINE))
    call(["gcc", "-c", "-o", str(target), str(listing)], obj)
    call([str(target) if w.endswith("/aperfmperf.o") else w for w in objtool], obj)


def measure(work: Path, name: str, tree: Path, source: str, fake: bool) -> dict[str, float]:
    code, target = work / f"{name}.c", work / f"{name}.o"
    code.write_text(source)
    compile_like_the_kernel(tree, code, target, fake)
    call(["objcopy", "--rename-section", ".text=ticktext,contents,alloc,load,readonly,code",
          "--remove-section=.altinstructions", "--remove-section=.discard*", str(target)], work)
    provided = {"fake_counter", "this_cpu_off", "pcpu_hot", "jiffies", "cpu_khz", "tsc_khz"}
    missing = {line.split()[-1] for line in call(["nm", "-u", str(target)], work).splitlines()}
    stubs = work / f"{name}-stubs.s"
    # Functions return at once: what a bad sample calls, if the host stops us between
    # two reads. Static keys and tracepoints are off, features are there.
    def stub(symbol: str) -> str:
        label = f".globl {symbol}\n.balign 64\n{symbol}:"
        if not re.search("_key|__tracepoint|_mask|_offset|boot_cpu_data", symbol):
            return f".text\n{label} ret\n"
        return f".data\n{label} .fill 4096, 1, {255 if symbol == 'boot_cpu_data' else 0}\n"

    stubs.write_text("".join(stub(s) for s in sorted(missing - provided)))
    program = work / name
    call(["gcc", "-O2", "-static", "-no-pie", "-Wl,-z,execstack", "-o", str(program),
          str(HERE / "tick_cost.c"), str(target), str(stubs)], work)
    out = call([str(program)] + ["time"] * fake, work)
    return {key: float(value) for key, value in
            (line.split() for line in out.splitlines() if len(line.split()) == 2)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, default=TREE)
    tree = parser.parse_args().tree.resolve()
    sources = {"base": call(["git", "show", f"refs/series/base:{FILE}"], tree),
               "ours": call(["git", "show", f"series:{FILE}"], tree)}
    rows: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as work:
        for name, source in sources.items():
            rows[name] = measure(Path(work), name, tree, source, fake=False)
            rows[name]["ns"] = measure(Path(work), f"{name}-time", tree, source,
                                       fake=True)["ns"]
            print(f"{name}: {rows[name]['instructions']:.0f} instructions, "
                  f"{rows[name]['ns']:.2f} ns")
    for key in ("instructions", "ns"):
        print(f"{key}: {rows['ours'][key] / rows['base'][key]:.2f} of the base's")
    return 0


if __name__ == "__main__":
    sys.exit(main())
