# SPDX-License-Identifier: GPL-2.0
"""make static: what compilers and checkers say of the series, beyond what they say of the base.

Each builds the directories that the series touches at the base and at the series; a remark
on the second that was not there on the first has failed.
"""
from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

from virtual_silicon.errors import Fail

from .. import git, proc
from ..patchqueue.tree import BASE, TIP, Tree
from . import bisect
from .configs import Config, touched
from .testrun import Count

FILE = Path(__file__).with_name("static.toml")
_REMARK = re.compile(r"^(\S+?\.[chS]):[\d:]+ ((?:warning|error|Warning): .*)", re.M)


def remarks(text: str) -> set[str]:
    """File and text of each; line numbers differ between base and series."""
    return {f"{Path(file).as_posix().lstrip('./')}: {said}" for file, said in
            _REMARK.findall(text)}


def new_remarks(look: Callable[[], str]) -> Count:
    """What @look says at the series and not at the base, each checked out before."""
    said = []
    for commit in (BASE, TIP):
        git.run("checkout", "--quiet", "--force", "--detach", commit, repo=bisect.WORK.path)
        said.append(remarks(look()))
    return case(sorted(said[1] - said[0]))


def compiler(name: str, data: dict[str, Any], directories: list[str]) -> Count:
    config = Config(f"static-{name}", {"symbols": "CONFIG_DEBUG_KERNEL=y", **data}, bisect.WORK)
    shutil.rmtree(config.obj, ignore_errors=True)

    def look() -> str:
        config.configure()
        config.compile(directories)
        return config.log("kernel").read_text(errors="replace")

    return new_remarks(look)


def allowed(text: str, subjects: Collection[str]) -> dict[str, bool]:
    """{remark that stays: was it made}, none as yet; each row of the file has a reason. A row
    with a commit counts if that is one of @subjects."""
    stay: dict[str, bool] = {}
    for row in tomllib.loads(text)["allowed"]:
        if not row.get("reason", "").strip():
            raise Fail(f"{FILE.name}: no reason is given for {row['remark']!r}")
        if row["remark"] in stay:
            raise Fail(f"{FILE.name}: listed twice: {row['remark']!r}")
        if row.get("commit") in (None, *subjects):
            stay[row["remark"]] = False
    return stay


def checkpatch(tree: Tree) -> Count:
    """A case for each commit, and one for exceptions that no remark needs."""
    series = bisect.of_series(tree)
    stay = allowed(FILE.read_text(), [subject for _, subject in series])
    count = Count()
    for commit, subject in series:
        patch = git.run("format-patch", "--stdout", "-1", commit, repo=tree.path)
        done = proc.capture([tree.path / "scripts/checkpatch.pl", "--strict", "--terse",
                             "--no-summary", "--no-tree", "-"], stdin=patch.encode(),
                            cwd=tree.path, check=False)
        said = re.findall(r"^\S+?:\d+: ((?:ERROR|WARNING|CHECK): .*)$", done.stdout.decode(), re.M)
        stay.update((remark, True) for remark in said if remark in stay)
        count += case([f"{subject}: {remark}" for remark in said if remark not in stay])
    return count + case([f"exception for {remark}" for remark, made in stay.items() if not made])


def case(failures: list[str]) -> Count:
    return Count(passed=int(not failures), failures=failures)


def kernel_doc(tree: Tree) -> Count:
    """Of the files that the series adds or changes."""
    files = git.run("diff", "--name-only", "--diff-filter=d", BASE, TIP, "--", "*.[ch]",
                    ":!tools", repo=tree.path).split()

    def look() -> str:
        there = [f for f in files if (bisect.WORK.path / f).exists()]
        return proc.capture(["scripts/kernel-doc", "-none", *there], cwd=bisect.WORK.path,
                            check=False).stderr.decode()

    return new_remarks(look)


def checks(tree: Tree) -> list[tuple[str, Callable[[], Count]]]:
    directories = touched(tree)
    bisect.work_tree(tree)
    return [("checkpatch", partial(checkpatch, tree)),
            ("kernel-doc", partial(kernel_doc, tree)),
            *((name, partial(compiler, name, row, directories))
              for name, row in tomllib.loads(FILE.read_text())["compiler"].items())]
