# SPDX-License-Identifier: GPL-2.0
"""Entries kept by content hash: complete and whole, or not there.

An entry is made in `<name>.part` under a lock and renamed when done, with a
marker that lists its files and their checksums. A part that was interrupted
stays, so that its maker may continue; an entry that no longer agrees with its
marker is thrown away and made again.
"""
from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from virtual_silicon.progress import say

from .. import paths

MARKER = ".complete"


def key(*parts: str | bytes) -> str:
    """One hash of all parts, each with its length so that none runs into the next."""
    h = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        h.update(b"%d:" % len(data) + data)
    return h.hexdigest()


def file_hash(path: Path) -> str:
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


@contextmanager
def lock(path: Path, what: str) -> Iterator[None]:
    """Exclusive among processes; gone with the process, however it ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting: another process works on {what}")
            fcntl.flock(f, fcntl.LOCK_EX)
        yield


def _write_marker(entry: Path, files: Iterable[str]) -> None:
    sums = {f: file_hash(entry / f) for f in sorted(files)}
    part = entry / (MARKER + ".part")
    with open(part, "w") as f:
        json.dump(sums, f, indent=1)
        f.flush()
        os.fsync(f.fileno())
    part.rename(entry / MARKER)


def damage(entry: Path) -> str | None:
    """What is wrong with an entry, or None."""
    try:
        sums = json.loads((entry / MARKER).read_text())
    except (OSError, ValueError):
        return "its list of files is missing or cut off"
    for name, want in sums.items():
        if not (entry / name).is_file():
            return f"{name} is missing"
        if file_hash(entry / name) != want:
            return f"{name} has changed"
    return None


def get(kind: str, digest: str, make: Callable[[Path], Iterable[str]], *,
        resume: bool = False) -> Path:
    """The entry `kind`-`digest`, made by `make(dir)` if it is not there.

    `make` fills the directory and returns the files that matter, relative to
    it. With `resume` it finds what an interrupted call left behind; without,
    it always starts in an empty directory.
    """
    root = paths.cache_root()
    entry = root / f"{kind}-{digest[:16]}"
    with lock(root / "lock" / entry.name, entry.name):
        if entry.exists():
            wrong = damage(entry)
            if not wrong:
                return entry
            say(f"cache: {entry.name} is damaged ({wrong}), making it again")
            shutil.rmtree(entry)
        part = entry.with_name(entry.name + ".part")
        if part.exists() and not resume:
            shutil.rmtree(part)
        part.mkdir(parents=True, exist_ok=True)
        _write_marker(part, make(part))
        part.rename(entry)
    return entry


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory for downloads, on the cache's disk, gone afterwards."""
    root = paths.cache_root()
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tmp-", dir=root) as directory:
        yield Path(directory)


def clean() -> None:
    """Remove all entries, for all clones. Trees live on: they have links."""
    root = paths.cache_root()
    if root.exists():
        shutil.rmtree(root)
    say(f"removed {root}")
