# SPDX-License-Identifier: GPL-2.0
"""patches/series: which patch and which whole files make up each commit.

	# comment
	0001-first.patch
		kernel/new.c
		arch/x86/kernel/old.c replaces

An unindented line names a patch in mail format. Indented lines below it name
whole files of the same commit; `replaces` says that the base has the file too.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NoReturn

from ..ui import Fail


@dataclass(frozen=True)
class WholeFile:
    path: str
    replaces: bool = False


@dataclass
class Entry:
    """One commit. `comments` are the lines that stand above it."""
    patch: str
    files: list[WholeFile] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Series:
    """A manifest with the places it speaks of. `loose`: files below
    `files_root` that no entry names are a first commit of their own."""
    patch_dir: Path
    files_root: Path
    entries: list[Entry]
    trailer: list[str] = field(default_factory=list)
    loose: str = ""

    @property
    def file(self) -> Path:
        return self.patch_dir / "series"

    def owner(self, path: str) -> Entry | None:
        return next((e for e in self.entries if path in (f.path for f in e.files)), None)


def load(patch_dir: Path, files_root: Path, loose: str = "") -> Series:
    """Read and check the manifest; no manifest is an empty series."""
    file = patch_dir / "series"
    lines = file.read_text().splitlines() if file.exists() else []
    entries, trailer = parse(lines, str(file))
    series = Series(patch_dir, files_root, entries, trailer, loose)
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
            if "/" in words[0] or not words[0].endswith(".patch"):
                fail(f"{words[0]}: a patch is a file name that ends in .patch"
                     " (indent the line if a whole file is meant)")
            entries.append(Entry(words[0], comments=comments))
            comments = []
    return entries, comments


def _whole_file(words: list[str], fail: Callable[[str], NoReturn]) -> WholeFile:
    path = PurePosixPath(words[0])
    if path.is_absolute() or ".." in path.parts or str(path) != words[0]:
        fail(f"{words[0]}: paths are plain and relative to the top")
    if words[1:] not in ([], ["replaces"]):
        fail(f"'{' '.join(words[1:])}' after {words[0]}; only 'replaces' may stand there")
    return WholeFile(words[0], bool(words[1:]))


def _check_presence(series: Series, lines: list[str]) -> None:
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name = line.split()[0]
        root = series.files_root if line[0].isspace() else series.patch_dir
        if not (root / name).is_file():
            raise Fail(f"{series.file}:{number}: {root / name} does not exist")


def loose_files(series: Series) -> list[str]:
    """Files below `files_root` that no entry names, if the series has such."""
    if not series.loose or not series.files_root.is_dir():
        return []
    named = {f.path for e in series.entries for f in e.files}
    here = (str(p.relative_to(series.files_root)) for p in series.files_root.rglob("*")
            if p.is_file())
    return sorted(p for p in here if p not in named)


def dump(entries: list[Entry], trailer: list[str]) -> str:
    """The manifest's text; parse() gives the same entries back."""
    lines: list[str] = []
    for entry in entries:
        lines += entry.comments
        lines.append(entry.patch)
        lines += [f"\t{f.path}" + (" replaces" if f.replaces else "") for f in entry.files]
    return "\n".join(lines + trailer) + "\n"
