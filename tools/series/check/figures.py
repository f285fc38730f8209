# SPDX-License-Identifier: GPL-2.0
"""Tables and pictures of the documents: of which release they are, and how they are made anew."""
from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from virtual_silicon.progress import say

from .. import git, paths, proc

FILE = Path(__file__).with_name("figures.toml")
VERSION = "results/VERSION"
#: What the results are of; results/VERSION is written when all are made anew.
OF = {"kernel": ("arch", "drivers", "include", "kernel", "patches"),
      "model": ("tools/testing/virtual-silicon/qemu", "tools/testing/virtual-silicon/machines")}


@dataclass(frozen=True)
class Figure:
    """@document: a file, or a directory with tables."""
    document: str
    command: str


def load(file: Path = FILE) -> list[Figure]:
    return [Figure(**row) for row in tomllib.loads(file.read_text())["figure"]]


def behind(top: Path = paths.TOP) -> str:
    """How many commits of the kernel and the model the results do not have."""
    made = git.run("log", "-1", "--format=%H", "--", VERSION, repo=top).strip()
    since = ", ".join(
        git.run("rev-list", "--count", f"{made}..HEAD", "--", *where, repo=top).strip()
        + f" of the {what}" for what, where in OF.items())
    return (f"results are of v{(top / VERSION).read_text().strip()}: since then, commits: {since}"
            " (make figures makes them anew)")


def sign(figure: Figure, top: Path) -> None:
    """Puts command and version at the head of each CSV file that the command wrote."""
    head = (f"# command: {figure.command}\n"
            f"# version: {git.run('describe', '--always', repo=top).strip()}\n")
    document = top / figure.document
    for table in sorted(document.glob("*.csv")) if document.is_dir() else [document]:
        if table.suffix == ".csv":
            body = re.sub(r"\A(# (command|version): .*\n)+", "", table.read_text("utf-8"))
            table.write_text(head + body, "utf-8")


def make(top: Path = paths.TOP, file: Path = FILE) -> int:
    """All, for a release, whose number becomes theirs if none failed. What guests have answered
    is kept, so a second run goes on where the first ended."""
    failed = 0
    # "python3" in the commands is the interpreter that make runs on.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for figure in load(file):
        say(f"{figure.document}: {figure.command}")
        if subprocess.run(["sh", "-c", figure.command], cwd=top,
                          env=proc.environment({"PATH": path})).returncode:
            say(f"FAILED {figure.document}")
            failed += 1
        else:
            sign(figure, top)
    if not failed:
        newest = re.search(r"^## (\S+)$", (top / "CHANGELOG.md").read_text("utf-8"), re.M)
        assert newest, "CHANGELOG.md has a heading per version"
        (top / VERSION).write_text(f"{newest[1]}\n")
    return int(failed > 0)
