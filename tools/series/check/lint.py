# SPDX-License-Identifier: GPL-2.0
"""make lint: mypy and ruff on every Python file of the repository.

mypy and the libraries whose types it reads are Debian's. Debian 12 has no ruff:
that is installed from PyPI into the cache, in the version that is pinned here.
"""
from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from virtual_silicon.progress import Step

from .. import git, paths, proc
from ..fetch import cache

RUFF = "0.8.6"
CONFIG = paths.TOP / "pyproject.toml"

#: Directories whose modules find each other by name; the deepest has a file.
ROOTS = ("tools", "tools/power", "tools/testing", "tools/testing/cpuidle-replay",
         "tools/testing/fuzz", "tools/testing/schedutil-sim", "tools/testing/virtual-silicon")


def ruff() -> Path:
    def make(part: Path) -> list[str]:
        with Step(f"lint: installing ruff {RUFF}"):
            proc.capture([sys.executable, "-m", "venv", part])
            proc.capture([part / "bin/pip", "install", "--no-cache-dir", f"ruff=={RUFF}"])
        return ["bin/ruff"]

    return cache.get("ruff", cache.key(RUFF), make) / "bin/ruff"


def files(top: Path) -> list[str]:
    """What git tracks and Python runs, by name or by first line."""
    names = git.run("ls-files", "-z", repo=top).split("\0")
    return [n for n in names if n and (top / n).is_file() and _is_python(top / n)]


def _is_python(file: Path) -> bool:
    if file.suffix:
        return file.suffix == ".py"
    with open(file, "rb") as f:
        return bool(re.match(rb"#!.*python3", f.readline(80)))


def root_of(name: str) -> str:
    """The deepest of the roots above a file."""
    above = [r for r in ROOTS if name.startswith(r + "/")]
    return max(above, key=len, default="")


def groups(names: Iterable[str]) -> dict[tuple[str, bool], list[str]]:
    """Files that mypy looks at in one call: by root, and tests apart."""
    found: dict[tuple[str, bool], list[str]] = {}
    for name in names:
        found.setdefault((root_of(name), "/tests/" in name), []).append(name)
    return found


def problems(top: Path) -> dict[str, str]:
    """{check: what it said, or nothing if all is well}"""
    names = files(top)
    said = {"ruff": _said([ruff(), "check", f"--config={CONFIG}", "--no-cache",
                           "--output-format=concise", *names], top)}
    for (root, tests), members in groups(names).items():
        # Tests need no types of their own: pytest passes what they ask for.
        options = ["--allow-untyped-defs"] if tests else []
        said[f"mypy {root}{'/tests' * tests}"] = _said(
            ["mypy", f"--config-file={CONFIG}", "--no-error-summary", "--scripts-are-modules",
             f"--cache-dir={paths.BUILD / 'mypy'}", *options,
             *(str(Path(n).relative_to(root)) for n in members)],
            top / root, {"MYPYPATH": f"{top / root}:{top / root / 'tests'}"})
    return said


def _said(argv: list[str | Path], where: Path, env: dict[str, str] | None = None) -> str:
    done = proc.capture(argv, cwd=where, check=False, env=proc.environment(env))
    return (done.stdout + done.stderr).decode(errors="replace").strip() if done.returncode else ""
