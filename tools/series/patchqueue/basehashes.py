# SPDX-License-Identifier: GPL-2.0
"""patches/base-hashes: which versions of a replaced base file we have seen.

A line is `sha256  path  releases...`. Our file takes the place of the base's,
so a fix that a new point release made there would be lost without a word; an
unknown version stops the build until someone has looked at it.
"""
from __future__ import annotations

import hashlib
from pathlib import Path

from ..ui import Fail

NAME = "base-hashes"

HEADER = """\
# Versions of the base files that ours take the place of: sha256, path, point
# releases. "make accept-base" adds the present base, "make accept-base BASE=all"
# each on offer; look at the diff before accepting.
"""


class UnknownBase(Fail):
    """A replaced file that has changed in the base; the caller has the diff."""

    def __init__(self, path: str, digest: str, newest: str | None):
        known = f"the newest known is that of {newest}" if newest else "none is known yet"
        super().__init__(f"{path} has changed in this base ({known}); carry the change over"
                         " into ours, then: make accept-base", f"sha256 of the base's: {digest}")
        self.path, self.newest = path, newest


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def release_order(release: str) -> tuple[int, ...]:
    return tuple(int(n) for n in release.split("."))


class Known:
    """The file, in memory: {path: {sha256: {releases}}}."""

    def __init__(self, file: Path):
        self.file = file
        self.versions: dict[str, dict[str, set[str]]] = {}
        if file.exists():
            for number, line in enumerate(file.read_text().splitlines(), 1):
                self._read(line, number)

    def _read(self, line: str, number: int) -> None:
        if not line.strip() or line.startswith("#"):
            return
        words = line.split()
        if len(words) < 3 or len(words[0]) != 64:
            raise Fail(f"{self.file}:{number}: expected 'sha256  path  releases...'")
        self.add(words[1], words[0], *words[2:])

    def add(self, path: str, sha256: str, *releases: str) -> None:
        self.versions.setdefault(path, {}).setdefault(sha256, set()).update(releases)

    def newest(self, path: str) -> str | None:
        """The latest release of which we know `path`."""
        releases = {r for known in self.versions.get(path, {}).values() for r in known}
        return max(releases, key=release_order) if releases else None

    def check(self, path: str, content: bytes | None) -> None:
        """Raise unless `content` of the base's file is a version we know."""
        if content is None:
            raise Fail(f"{path} is said to replace a base file, but the base has none there")
        sha256 = digest(content)
        if sha256 not in self.versions.get(path, {}):
            raise UnknownBase(path, sha256, self.newest(path))

    def keep_only(self, paths: set[str]) -> None:
        self.versions = {p: v for p, v in self.versions.items() if p in paths}

    def write(self) -> None:
        lines = []
        for path in sorted(self.versions):
            by_age = sorted(self.versions[path].items(),
                            key=lambda item: min(map(release_order, item[1])))
            for sha256, releases in by_age:
                lines.append(f"{sha256}  {path}  {' '.join(sorted(releases, key=release_order))}")
        self.file.write_text(HEADER + "".join(line + "\n" for line in lines))
