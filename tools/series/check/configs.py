# SPDX-License-Identifier: GPL-2.0
"""make configs: the series in other configurations of the kernel (configs.toml)."""
from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from virtual_silicon.progress import Step, counter

from .. import git, guest, paths, proc
from ..compile import kernel
from ..patchqueue.tree import Tree
from . import testrun
from .testrun import Count

FILE = Path(__file__).with_name("configs.toml")


class Config:
    def __init__(self, name: str, data: dict[str, Any], tree: Tree) -> None:
        self.name, self.source = name, tree.path
        self.obj = tree.path / f"{kernel.OBJ}-{name}"
        self.image = self.obj / "arch/x86/boot/bzImage"
        self.symbols = data["symbols"].strip() + "\n"
        self.arch = data.get("arch", "x86_64")
        self.boots, self.words = data.get("boot", []), data.get("make", [])
        self.fragments = kernel.patched_fragments() if data.get("fragments", True) else []

    def make(self, *words: str) -> list[str]:
        return [*kernel.make(self.source, self.obj, self.arch), *self.words, *words]

    def log(self, what: str) -> Path:
        return paths.LOG / f"{what}-{self.name}.log"

    def configure(self) -> None:
        """allnoconfig plus kernel.config, in which our symbols take the place of the same
        ones and of their choice; ours have to come out as asked."""
        fragments = "".join(f.read_text() for f in self.fragments) + self.symbols
        kernel.configure(self.make(), self.obj, fragments, self.symbols, self.name,
                         self.log("config"))

    def build(self, *targets: str) -> None:
        with Step(f"configs: {self.name}") as step:
            proc.logged(self.make(f"-j{proc.jobs()}", *targets), self.log("kernel"),
                        what=self.name, count=kernel.COMPILED, progress=counter(step, "objects"))

    def compile(self, directories: list[str]) -> None:
        """Those of them that there are, without other architectures'."""
        arch = self.arch.replace("i386", "x86").removesuffix("_64")
        mine = [d for d in directories
                if not d.startswith("arch/") or d.startswith(f"arch/{arch}/")]
        self.build("prepare", *(d for d in mine if (self.source / d).is_dir()))

    def run(self, number: int, selftests: str, machine: str = "sapphire-rapids",
            append: str = "", env: str = "SECONDS_EACH=8") -> Count:
        """The kselftests in the guest, and whether its kernel complained."""
        out = paths.TESTS / f"configs-{self.name}-{number}"
        with Step(f"configs: {self.name}: {selftests} on {Path(machine).stem}"):
            said = guest.boot("cd /selftests && "
                              f"{env} ./run_kselftest.sh {selftests}", out,
                              "--time=deterministic", "--limit=1800", "--cpus=4",
                              f"--machine={machine}",
                              f"--append={append}", image=self.image)
        self.log(f"test-{number}").write_text(said)
        return testrun.count_kselftests(said) + testrun.unseen(
            set(), set(), (out / "console.log").read_text(errors="replace"))


def touched(tree: Tree) -> list[str]:
    """Directories of the kernel in which the series changes or adds C files."""
    first = git.run("rev-list", "--max-parents=0", "HEAD", repo=tree.path)
    files = git.run("diff", "--name-only", first, "HEAD", "--", "arch/**.c", "drivers/**.c",
                    "kernel/**.c", repo=tree.path).split()
    return sorted({f"{os.path.dirname(file)}/" for file in files})


def check(name: str, data: dict[str, Any], tree: Tree) -> Count:
    """One configuration: built, and run if it says how to boot, or that KUnit is to run."""
    config = Config(name, data, tree)
    config.configure()
    if data.get("kunit"):
        config.build("bzImage")
        with Step(f"configs: {name}: KUnit"):
            return testrun.kunit_alone(tree.path, config.image, paths.TESTS / f"configs-{name}")
    if not config.boots:
        config.compile(touched(tree))
        return Count(passed=1)
    config.build("bzImage")
    return sum((config.run(number, **boot) for number, boot in enumerate(config.boots, 1)),
               Count(passed=1))


def wanted() -> list[str]:
    return proc.chosen("CONFIGS", tomllib.loads(FILE.read_text()))


def checks(tree: Tree) -> list[tuple[str, Callable[[], Count]]]:
    """The configurations that CONFIGS= names, all without it, for testrun.run()."""
    there = tomllib.loads(FILE.read_text())
    return [(name, partial(check, name, there[name], tree))
            for name in wanted()]
