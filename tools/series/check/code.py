# SPDX-License-Identifier: GPL-2.0
"""How many lines of code does each commit of build/linux add to the kernel?

A line of code is one that is neither blank nor comment, in arch, drivers, include and kernel;
tests do not count. A commit's number is what it adds less what it removes.
"""
from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from .. import git

COUNTED = ("arch", "drivers", "include", "kernel")
_TEST = re.compile(r"_kunit\.c$|/(Kconfig|Makefile)\b[^/]*$")
_C = re.compile(r'("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|/\*.*?\*/|//[^\n]*', re.S)


def lines(text: str) -> int:
    """Those of a C file that are left without comments and blanks."""
    return sum(bool(line.strip()) for line in _C.sub(lambda m: m[1] or "", text).splitlines())


def _lines_of(repo: Path, commit: str, path: str) -> int:
    return lines((git.blob(repo, commit, path) or b"").decode(errors="replace"))


def added(repo: Path, commit: str) -> dict[str, int]:
    """{file: net lines of code} of one commit."""
    names = git.run("diff", "--name-only", "--no-renames", f"{commit}^", commit, "--", *COUNTED,
                    repo=repo).splitlines()
    return {name: _lines_of(repo, commit, name) - _lines_of(repo, f"{commit}^", name)
            for name in names if not _TEST.search(name)}


def table(repo: Path, base: str) -> list[str]:
    """A row for each commit that adds or removes any, one for each file, and the sum."""
    rows, files = [], Counter[str]()
    for line in git.run("log", "--reverse", "--format=%H %s", f"{base}..HEAD",
                        repo=repo).splitlines():
        commit, subject = line.split(" ", 1)
        of_commit = added(repo, commit)
        files.update(of_commit)
        if count := sum(of_commit.values()):
            rows.append(f"{count:5}  {subject}")
    rows.append("")
    rows += [f"{count:5}  {name}" for name, count in sorted(files.items()) if count]
    return [*rows, "", f"{sum(files.values()):5}  in all"]
