# SPDX-License-Identifier: GPL-2.0
"""Writer of cpio archives ("newc") as the kernel unpacks them.

Owner, times and inode numbers are fixed and names are sorted, so the same
input gives the same bytes; and device nodes need no root.
"""

from __future__ import annotations

import stat
from pathlib import Path, PurePosixPath

ALIGN = 4


class Archive:
    """Entries by name (no leading slash); parents are added as needed."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[int, bytes, tuple[int, int]]] = {}

    def __contains__(self, name: str) -> bool:
        return name.lstrip("/") in self._entries

    def _add(self, name: str, mode: int, data: bytes = b"",
             rdev: tuple[int, int] = (0, 0)) -> None:
        name = name.lstrip("/")
        for parent in reversed(PurePosixPath(name).parents):
            if str(parent) != "." and str(parent) not in self._entries:
                self._entries[str(parent)] = (stat.S_IFDIR | 0o755, b"", (0, 0))
        self._entries[name] = (mode, data, rdev)

    def directory(self, name: str, mode: int = 0o755) -> None:
        self._add(name, stat.S_IFDIR | mode)

    def file(self, name: str, data: bytes, mode: int = 0o644) -> None:
        self._add(name, stat.S_IFREG | mode, data)

    def symlink(self, name: str, target: str) -> None:
        self._add(name, stat.S_IFLNK | 0o777, target.encode())

    def node(self, name: str, major: int, minor: int, mode: int = 0o600) -> None:
        self._add(name, stat.S_IFCHR | mode, b"", (major, minor))

    def copy(self, source: Path, name: str) -> None:
        """A file of the host, with its permission bits."""
        self.file(name, source.read_bytes(), source.stat().st_mode & 0o755)

    def names(self) -> list[str]:
        return sorted(self._entries)

    def data(self) -> bytes:
        out = bytearray()
        for inode, name in enumerate(self.names(), 1):
            mode, data, rdev = self._entries[name]
            _append(out, inode, name, mode, data, rdev)
        _append(out, 0, "TRAILER!!!", 0, b"", (0, 0))
        return bytes(out)


def _pad(out: bytearray) -> None:
    out.extend(b"\0" * (-len(out) % ALIGN))


def _append(out: bytearray, inode: int, name: str, mode: int, data: bytes,
            rdev: tuple[int, int]) -> None:
    encoded = name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    fields = [inode, mode, 0, 0, links, 0, len(data), 0, 0, *rdev, len(encoded), 0]
    out += b"070701" + b"".join(b"%08X" % value for value in fields)
    out += encoded
    _pad(out)
    out += data
    _pad(out)
