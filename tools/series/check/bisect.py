# SPDX-License-Identifier: GPL-2.0
"""make bisect: every commit of the series compiles, so that one can bisect through it."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .. import git, paths, proc
from ..compile import kernel
from ..fetch import cache
from ..patchqueue.tree import BASE, TIP, Tree
from .configs import Config, touched
from .testrun import Count

WORK = Tree("bisect", paths.BUILD / "bisect", 2300)
#: With all of the series that a commit has, with as little as there can be, and by others.
CONFIGS: dict[str, dict[str, Any]] = {
    "all": {"symbols": "CONFIG_WERROR=y"},
    "32bit": {"symbols": "# CONFIG_64BIT is not set\nCONFIG_SMP=y\nCONFIG_WERROR=y",
              "arch": "i386"},
    "none": {"symbols": "CONFIG_64BIT=y\nCONFIG_WERROR=y", "fragments": False},
    "clang": {"symbols": "CONFIG_WERROR=y", "make": ["CC=clang-19"]},
    "arm64": {"symbols": "CONFIG_WERROR=y", "arch": "arm64",
              "make": ["CROSS_COMPILE=aarch64-linux-gnu-"]},
}
DONE = paths.BUILD / "bisect.done"


def work_tree(tree: Tree) -> None:
    """WORK, where the commits of @tree can be checked out."""
    if not WORK.git_dir.exists():
        proc.need_space(paths.BUILD, WORK.mib, "a second tree of the kernel")
        git.run("worktree", "prune", repo=tree.path)
        git.run("worktree", "add", "--quiet", "--detach", WORK.path, BASE, repo=tree.path)


def of_series(tree: Tree) -> list[tuple[str, str]]:
    """Commit and subject, the first one first."""
    return [(line[:40], line[41:]) for line in
            git.run("log", "--reverse", "--format=%H %s", f"{BASE}..{TIP}",
                    repo=tree.path).splitlines()]


def wanted() -> list[str]:
    return proc.chosen("CONFIGS", CONFIGS)


def checks(tree: Tree) -> list[tuple[str, Callable[[], Count]]]:
    """The commits in each configuration that CONFIGS= names, for testrun.run()."""
    chosen = wanted()
    work_tree(tree)
    directories = touched(tree)
    return [(f"{subject} ({name})", partial(check, commit, name, directories))
            for commit, subject in of_series(tree) for name in chosen]


def check(commit: str, name: str, directories: list[str]) -> Count:
    """What the series touches; what has been compiled alike before is passed by."""
    seen = set(DONE.read_text().split()) if DONE.exists() else set()
    content = git.run("rev-parse", f"{commit}^{{tree}}", repo=WORK.path)
    mark = cache.key(content, repr(CONFIGS[name]), kernel.compiler(),
                     *(f.read_bytes() for f in kernel.patched_fragments()))
    if mark not in seen:
        git.run("checkout", "--quiet", "--force", "--detach", commit, repo=WORK.path)
        config = Config(f"bisect-{name}", CONFIGS[name], WORK)
        config.configure()
        config.compile(directories)
        with DONE.open("a") as done:
            print(mark, file=done)
    return Count(passed=1)
