# SPDX-License-Identifier: GPL-2.0
"""patches/series: which patch and which whole files make up each commit.

	# comment
	0001-first.patch
		kernel/new.c
		arch/x86/kernel/old.c replaces edeb834d7f96

An unindented line names a patch in mail format. Indented lines below it name
whole files of the same commit. `replaces` says that the base has the file too, and
which versions of it ours has been compared with: git's names of them (git hash-object).
A fix that a new release of the base makes there would be lost without a word else.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NoReturn

from virtual_silicon.errors import Fail

from . import mail
from .mail import Mail


@dataclass(frozen=True)
class WholeFile:
    path: str
    replaces: tuple[str, ...] = ()


@dataclass
class Entry:
    """One commit. `comments` are the lines that stand above it."""
    patch: str
    files: list[WholeFile] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)

    @property
    def number(self) -> int:
        return int(self.patch[:4])


@dataclass(frozen=True)
class Series:
    """A manifest with the places it speaks of."""
    patch_dir: Path
    files_root: Path
    entries: list[Entry]
    trailer: list[str] = field(default_factory=list)
    #: What a file holds for this base, where that is not what the repository's has.
    changed: dict[Path, bytes] = field(default_factory=dict)
    #: Patches of which that cannot be told any more, with the reason.
    broken: dict[str, str] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        return self.patch_dir / "series"

    def content(self, path: Path) -> bytes:
        return self.changed[path] if path in self.changed else path.read_bytes()

    def letter(self, entry: Entry) -> Mail:
        path = self.patch_dir / entry.patch
        return mail.parse(self.content(path), path)

    def files(self) -> dict[str, WholeFile]:
        """All whole files, by path."""
        return {f.path: f for e in self.entries for f in e.files}


def load(patch_dir: Path, files_root: Path) -> Series:
    """Read and check the manifest; no manifest is an empty series."""
    file = patch_dir / "series"
    lines = file.read_text().splitlines() if file.exists() else []
    entries, trailer = parse(lines, str(file))
    series = Series(patch_dir, files_root, entries, trailer)
    _check_presence(series, lines)
    return series


def _fail(where: str, reason: str) -> NoReturn:
    raise Fail(f"{where}: {reason}")


def parse(lines: list[str], name: str) -> tuple[list[Entry], list[str]]:
    entries: list[Entry] = []
    comments: list[str] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        fail = partial(_fail, f"{name}:{number}")
        if not line.strip() or line.lstrip().startswith("#"):
            comments.append(line)
            continue
        words = line.split()
        if words[0] in seen:
            fail(f"{words[0]} is named twice, first in line {seen[words[0]]}")
        seen[words[0]] = number
        if line[0].isspace():
            if not entries:
                fail(f"{words[0]}: a whole file must stand below the patch whose commit it is in")
            entries[-1].files.append(_whole_file(words, fail))
        else:
            if len(words) > 1:
                fail(f"'{words[1]}' after the patch name; a line holds one name")
            if not re.fullmatch(r"\d{4}-[^/]+\.patch", words[0]):
                fail(f"{words[0]}: a patch is called 0001-what-it-does.patch"
                     " (indent the line if a whole file is meant)")
            entries.append(Entry(words[0], comments=comments))
            comments = []
    return entries, comments


def _whole_file(words: list[str], fail: Callable[[str], NoReturn]) -> WholeFile:
    path = PurePosixPath(words[0])
    if path.is_absolute() or ".." in path.parts or str(path) != words[0]:
        fail(f"{words[0]}: paths are plain and relative to the top")
    if words[1:] and not re.fullmatch(r"replaces( [0-9a-f]{12,40})+", " ".join(words[1:])):
        fail(f"'{' '.join(words[1:])}' after {words[0]}; there may stand 'replaces' and the base's"
             " versions of the file, 12 digits or more of git hash-object")
    return WholeFile(words[0], tuple(words[2:]))


def _check_presence(series: Series, lines: list[str]) -> None:
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name = line.split()[0]
        root = series.files_root if line[0].isspace() else series.patch_dir
        if not (root / name).is_file():
            raise Fail(f"{series.file}:{number}: {root / name} does not exist")


def dump(entries: list[Entry], trailer: list[str]) -> str:
    """The manifest's text; parse() gives the same entries back."""
    lines: list[str] = []
    for entry in entries:
        lines += entry.comments
        lines.append(entry.patch)
        lines += ["\t" + " ".join([f.path, *(["replaces", *f.replaces] if f.replaces else [])])
                  for f in entry.files]
    return "\n".join(lines + trailer) + "\n"
