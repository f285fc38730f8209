# SPDX-License-Identifier: GPL-2.0
"""A directory that guests write to belongs to one process at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from ..errors import UsageError

_ours: dict[Path, int] = {}


def _opened(directory: Path) -> int:
    directory.mkdir(parents=True, exist_ok=True)
    return os.open(directory, os.O_RDONLY)


def taken(directory: Path) -> bool:
    """Whether another process has it. Else it is ours until we end, however that is."""
    path = directory.resolve()
    if path in _ours:
        return False
    descriptor = _opened(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return True
    _ours[path] = descriptor
    return False


def claim(directory: Path) -> None:
    if taken(directory):
        raise UsageError(f"{directory}: another process runs guests there; wait for it, or name"
                         " another directory where that is possible")


def free(directory: Path) -> Path:
    """It, or while others have it the next of DIRECTORY-2, DIRECTORY-3: as many as ever ran at
    the same time."""
    names = (directory.with_name(f"{directory.name}-{n}") for n in count(2))
    return directory if not taken(directory) else next(path for path in names if not taken(path))


@contextmanager
def waited_for(directory: Path) -> Iterator[None]:
    """For what takes moments: the second waits."""
    descriptor = _opened(directory)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
