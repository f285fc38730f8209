# SPDX-License-Identifier: GPL-2.0
"""Tables and pictures of the documents: which are older than what they describe."""
from __future__ import annotations

import functools
import hashlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from virtual_silicon.errors import Fail
from virtual_silicon.progress import say

from .. import git, paths, proc

FILE = Path(__file__).with_name("figures.toml")
#: What differs on a newer base. It counts for figures that name it.
NEWER = re.compile(r"patches/\d+\.\d+\b")
#: No kernel that is measured differs by these.
TEXT = re.compile(r"/cover-letter$|/\d+\.\d+/series$|_kunit\.c$")
COMMENT = re.compile(r"""("(?:\\.|[^"\\\n])*"|'\\?.')|/\*.*?\*/|//[^\n]*""", re.DOTALL)
#: Of a patch: documentation, lines of comments, and where a hunk is.
WORDS = re.compile(r"""^diff\ --git\ a/Documentation/.*?(?=^diff\ --git\ |\Z)
                       |^[-+ ]{1,2}\s*(?:/\*(?:(?!\*/).)*(?:\*/)?|\*(?:[ /][^\n]*)?)\n
                       |^@@[^@\n]*@@""", re.DOTALL | re.MULTILINE | re.VERBOSE)


@dataclass(frozen=True)
class Figure:
    document: str
    command: str
    inputs: tuple[str, ...]
    made_from: str


def load(file: Path = FILE) -> list[Figure]:
    data = tomllib.loads(file.read_text())
    out = []
    for row in data["figure"]:
        if unknown := set(row["of"]) - set(data["inputs"]):
            raise Fail(f"{file.name}: {row['document']}: no input {', '.join(sorted(unknown))};"
                       f" there are: {', '.join(data['inputs'])}")
        inputs = tuple(path for name in row["of"] for path in data["inputs"][name])
        out.append(Figure(row["document"], row["command"], inputs, row.get("made_from", "")))
    return out


@functools.cache
def _code(top: Path, blob: str, kind: str) -> str:
    """What a program reads of a patch or of a file in C or TOML."""
    text = git.run("cat-file", "blob", blob, repo=top) + "\n"
    if kind == "toml":
        return repr(tomllib.loads(text))
    if kind == "patch":
        _, found, code = text.partition("\n---\n")
        return WORDS.sub("", code if found else text)
    return " ".join(COMMENT.sub(r"\1 ", text).split())


def version(inputs: Iterable[str], top: Path = paths.TOP, commit: str = "HEAD") -> str:
    """Of the content of files and directories, as committed, without messages and comments."""
    content = []
    for path in sorted(inputs):
        listed = git.run("ls-tree", "-r", commit, "--", path, repo=top)
        if not listed:
            raise Fail(f"{FILE.name}: {path} is not in the repository")
        for line in listed.splitlines():
            if TEXT.search(line) or NEWER.search(line) and not NEWER.match(path):
                continue
            if line.endswith((".patch", ".c", ".h", ".toml")):
                line = f"{line.split()[3]} {_code(top, line.split()[2], line.rpartition('.')[2])}"
            content.append(line)
    return hashlib.sha256("\n".join(content).encode()).hexdigest()[:12]


def stale(figures: Iterable[Figure], top: Path = paths.TOP) -> list[Figure]:
    return [f for f in figures if version(f.inputs, top) != f.made_from]


def record(figure: Figure, made_from: str, file: Path = FILE) -> None:
    """Writes the version into the figure's table, whose other lines stay as they are."""
    head, found, rest = file.read_text().partition(f'document = "{figure.document}"\n')
    if not found:
        raise Fail(f"{file.name}: no figure of {figure.document}")
    body, gap, after = rest.partition("\n\n")
    body = re.sub(r"\n*made_from = .*", "", body.rstrip("\n"))
    file.write_text(f'{head}{found}{body}\nmade_from = "{made_from}"\n' + gap[1:] + after)


def sign(figure: Figure, made_from: str, top: Path) -> None:
    """Puts command and version at the head of each CSV file that the command wrote."""
    head = (f"# command: {figure.command}\n"
            f"# version: {git.run('describe', '--always', repo=top).strip()}, inputs {made_from}\n")
    document = top / figure.document
    for table in sorted(document.glob("*.csv")) if document.is_dir() else [document]:
        if table.suffix == ".csv":
            body = re.sub(r"\A(# (command|version): .*\n)+", "", table.read_text("utf-8"))
            table.write_text(head + body, "utf-8")


def tell(figures: Iterable[Figure]) -> None:
    for figure in figures:
        say(f"older than what it describes: {figure.document} ({figure.command})")


def make(top: Path = paths.TOP, file: Path = FILE) -> int:
    """Those that are stale. What cannot be made keeps its version; others are made."""
    failed = 0
    # "python3" in the commands is the interpreter that make runs on.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for figure in stale(load(file), top):
        say(f"{figure.document}: {figure.command}")
        if subprocess.run(["sh", "-c", figure.command], cwd=top,
                          env=proc.environment({"PATH": path})).returncode:
            say(f"FAILED {figure.document}")
            failed += 1
        else:
            sign(figure, version(figure.inputs, top), top)
            record(figure, version(figure.inputs, top), file)
    return int(failed > 0)
