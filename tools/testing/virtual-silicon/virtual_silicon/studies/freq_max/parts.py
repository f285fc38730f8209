# SPDX-License-Identifier: GPL-2.0
"""Parts whose freq_max the base kernel gets wrong, by registers read on them.

Both kernels' own sources are compiled in user space and asked about each row of
data/turbo.csv whose turbo registers were read whole. Prints those on which the base
differs from what tools/power/cpuwhy/turbo.py makes of the registers by the base's
own rule ("registers"), and what ours takes: results/freq-max.csv. tests/test_freq_max.py
keeps that up to date. Needs build/linux.
"""
from __future__ import annotations

import csv
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from cpuwhy import turbo

from . import decoder
from .decoder import CC, DATA, HERE, TREE

FILE = "arch/x86/kernel/cpu/aperfmperf.c"


@dataclass(frozen=True)
class Row:
    """A part, and freq_max over base in 1/1024."""

    name: str
    model: int
    registers: dict[int, int]	# those that were read
    logged: list[int]		# what kernels with the base's rule printed
    base: int
    ours: int

    @property
    def base_ratio(self) -> int:
        return self.registers[0xCE] >> 8 & 0xFF

    def right(self, patched: bool = True) -> int | None:
        """By the registers' description and the rule of one kernel; None where some were
        not read."""
        return turbo.freq_max(self.model, self.registers, self.base_ratio, patched)

    @property
    def error(self) -> float:
        """Of the base's value, in per cent of what it means to read."""
        return 100 * (self.base / (self.right(patched=False) or self.base) - 1)


def base_rule() -> str:
    """From the first function that reads registers to the one that calls them."""
    text = subprocess.run(["git", "show", f"refs/series/base:{FILE}"], cwd=TREE, check=True,
                          capture_output=True, text=True).stdout
    found = re.search(r"^static bool __init slv_set_max_freq_ratio\(.*"
                      r"^static bool __init intel_set_max_freq_ratio\(void\)\n\{.*?^\}\n",
                      text, re.MULTILINE | re.DOTALL)
    if not found:
        sys.exit(f"{FILE} of the base has no slv_ to intel_set_max_freq_ratio()")
    return found[0]


def build_base(where: Path) -> Path:
    (where / "base_rule.c").write_text(base_rule())
    program = where / "base"
    subprocess.run([sys.executable, CC, "--tree", TREE, "gcc", "-O1", "-w", f"-iquote{where}",
                    "-o", program, HERE / "base.c"], check=True)
    return program


def ask(program: Path, lines: list[str]) -> list[list[str]]:
    answer = subprocess.run([program], input="".join(f"{line}\n" for line in lines),
                            capture_output=True, text=True, check=True).stdout
    return [line.split() for line in answer.splitlines()]


def rows(as_model: str = "") -> list[Row]:
    """`as_model` in place of each row's own, for our kernel."""
    with DATA.open(encoding="utf-8", newline="") as file:
        data = list(csv.DictReader(file))
    names = ("msr_0xce", "msr_0x1ad", "msr_0x1ae", "msr_0x1af")
    with tempfile.TemporaryDirectory() as directory:
        where = Path(directory)
        for name in ("base", "ours"):
            (where / name).mkdir()
        base = ask(build_base(where / "base"),
                   [" ".join([d["model"], *(d[n] or "-" for n in names[:3])]) for d in data])
        ours = ask(decoder.build(where / "ours"),
                   [" ".join([as_model or d["model"], *(d[n] or "0" for n in names)])
                    for d in data])
    return [Row(d["cpu_name"].strip(), int(d["model"], 16),
                {int(n[4:], 16): int(d[n], 16) for n in names if d[n]},
                [int(n) for n in d["logged"].split()], int(b[0]), int(o[0]))
            for d, b, o in zip(data, base, ours)]


def family(model: int) -> str:
    """As the kernel calls it."""
    text = (TREE / "arch/x86/include/asm/intel-family.h").read_text()
    ifm = rf"IFM\({model >> 8 or 6}, 0x{model & 0xFF:02X}\)"
    return re.findall(rf"^#define INTEL_(\w+)\s+{ifm}", text, re.MULTILINE)[0]


def short(name: str) -> str:
    """Without the trade marks; engineering samples have no number."""
    name = re.sub(r"\((R|TM)\)|CPU|@.*|\bGENUINE\b|\bGenuine\b", "", name, flags=re.I)
    name = " ".join(word.title() if word.isupper() and word.isalpha() else word
                    for word in name.split())
    sample = re.fullmatch(r"Intel( Xeon)?( 0000)?", name)
    return "a sample" if sample else name.removeprefix("Intel ")


def write(found: list[Row], file: TextIO) -> None:
    """Where the base is wrong, the worst first."""
    read = [r for r in found if r.right() is not None]
    wrong = [r for r in read if r.right(patched=False) != r.base]
    file.write(f"# {len(wrong)} of {len(read)} parts: freq_max over the base clock, in 1/1024\n")
    table = csv.writer(file, lineterminator="\n")
    table.writerow(("part", "family", "base", "registers", "error of the base %", "ours"))
    table.writerows((short(r.name), family(r.model), r.base, r.right(patched=False),
                     f"{r.error:+.1f}", r.ours)
                    for r in sorted(wrong, key=lambda r: r.error))


if __name__ == "__main__":
    write(rows(), sys.stdout)
