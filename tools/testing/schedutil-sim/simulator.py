# SPDX-License-Identifier: GPL-2.0
"""Builds the programs of this directory with a kernel tree's schedutil governor.

What the governor calls of the scheduler is taken from the same tree, word for
word: kernel/sched/cpufreq.c as a whole, and the functions named here. What is
left is in ../shim.
"""
from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[2]
LINUX = Path(os.environ.get("X86_DVFS_BUILD", TOP / "build")) / "linux"
CC = TOP / "tools/testing/shim/cc.py"
GOVERNOR = "kernel/sched/cpufreq_schedutil.c"
CFLAGS = ["-O2", "-Wall", "-Werror", "-Wno-unused-function", "-Wno-unused-variable",
          "-Wno-unused-but-set-variable"]
#: Not in programs whose instructions are counted.
CHECKS = ["-fsanitize=undefined", "-fno-sanitize-recover"]

#: In the order in which they need each other.
FUNCTIONS: dict[str, list[str]] = {
    "include/linux/sched/cpufreq.h": ["map_util_freq", "map_util_perf"],
    "kernel/sched/sched-pelt.h": [],
    "kernel/sched/ext/ext.h": ["scx_cpuperf_target"],
    "kernel/sched/sched.h": [
        "cpufreq_update_util", "cpu_bw_dl", "cpu_util_dl", "cpu_util_rt", "uclamp_is_used",
        "uclamp_rq_get", "uclamp_rq_is_capped", "cpu_util_irq", "scale_irq_capacity"],
    "kernel/sched/fair.c": ["cpu_util", "cpu_util_cfs", "cpu_util_cfs_boost",
                            "effective_cpu_util"],
}
DEFINITIONS = re.compile(r"^#define (?:SCHED_CPUFREQ_\w+|LOAD_AVG_PERIOD)\s+.*|"
                         r"^struct update_util_data {\n[^}]*};", re.M)


class Tree:
    """Kernel sources: a commit of a git tree, or a directory."""

    def __init__(self, path: Path, commit: str | None = None):
        self.path, self.commit = path, commit

    def has(self, name: str) -> bool:
        if not self.commit:
            return (self.path / name).exists()
        return not subprocess.run(["git", "-C", self.path, "cat-file", "-e",
                                   f"{self.commit}:{name}"], capture_output=True).returncode

    def read(self, name: str) -> str:
        """On 6.12 files of sched_ext are not in a directory of their own."""
        name = name if self.has(name) else name.replace("ext/", "")
        if not self.commit:
            return (self.path / name).read_text()
        return subprocess.run(["git", "-C", self.path, "show", f"{self.commit}:{name}"],
                              check=True, capture_output=True, text=True).stdout


def base_of(linux: Path = LINUX) -> Tree:
    return Tree(linux, "refs/series/base")


def function(source: str, name: str) -> str:
    """The first definition of a function, which begins and ends in column 0."""
    head = r"^(?:(?:static|unsigned|bool)[\w ]*\n)?(?=\w)[^\n;=#]*?"
    found = re.search(rf"{head}\b{name}\([^;{{]*?\)\n{{\n.*?^}}\n", source, re.M | re.S)
    if not found:
        raise LookupError(f"there is no function {name} in column 0")
    return found[0]


def _scheduler(tree: Tree) -> str:
    parts = []
    for file, names in FUNCTIONS.items():
        source = tree.read(file)
        parts += DEFINITIONS.findall(source)
        parts += [function(source, name) for name in names]
    return "\n".join(parts)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def build(program: str, tree: Tree, out: Path) -> Path:
    """`out`/`program`, made from `program`.c and the tree's governor."""
    source = tree.read(GOVERNOR)
    _write(out / "scheduler.h", _scheduler(tree))
    for name in ("kernel/sched/cpufreq.c", GOVERNOR):
        _write(out / name, tree.read(name))
    for header in re.findall(r'^#include "(.*?)"', source, re.M):
        _write(out / "kernel/sched" / header,
               tree.read(f"kernel/sched/{header}") if header != "sched.h" else "")
    flags = CHECKS if program == "fuzz" else []
    subprocess.run([sys.executable, CC, "--tree", tree.path, "gcc", *CFLAGS, *flags,
                    "-DMAX_CPUS=8", f"-iquote{out}", HERE / f"{program}.c", "-o", out / program,
                    "-lm"], check=True)
    return out / program
