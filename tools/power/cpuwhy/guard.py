# SPDX-License-Identifier: GPL-2.0
"""Settings that are put back whatever happens to the program that changes them.

A process of its own does that: it hears of each file and its value before the change, and
puts them back when its pipe is closed, which the kernel does for a program that is killed,
once the last of its children has ended, too. Signals that end programs are blocked in it.
"""
from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from .errors import Fail


def _put_back(said: str, undo: dict[str, Callable[[], object]]) -> int:
    """The last change first; one that fails does not keep the others from it."""
    failed = 0
    for line in reversed(said.splitlines()):
        path, _, value = line.partition("\t")
        try:
            if path in undo:
                undo[path]()
            else:
                Path(path).write_text(value)
        except OSError:
            failed = 1
    return failed


class Guard:
    """Context in which set() may be called. @undo: by name, what has to be done at the end
    beside files. @hint: what is said if something could not be put back."""

    def __init__(self, undo: dict[str, Callable[[], object]] | None = None,
                 hint: str = "settings could not all be put back: cpufreq's limits and cpuidle's"
                             " disable in /sys/devices/system/cpu; a reboot does it") -> None:
        self._undo, self._hint = undo or {}, hint
        self.failed = False
        self._kept: dict[Path, str] = {}

    def __enter__(self) -> Guard:
        reader, self._pipe = os.pipe()
        before = signal.pthread_sigmask(signal.SIG_BLOCK,
                                        (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
        self._pid = os.fork()
        if not self._pid:
            os.close(self._pipe)
            self._wait(reader)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(reader)
        return self

    def _wait(self, reader: int) -> None:
        status = 1
        try:
            said = b""
            while piece := os.read(reader, 65536):
                said += piece
            status = _put_back(said.decode(), self._undo)
        finally:
            os._exit(status)

    def _say(self, line: str) -> None:
        os.write(self._pipe, f"{line}\n".encode())

    def later(self, name: str) -> None:
        """One of @undo is due at the end."""
        self._say(name)

    def set(self, path: Path, value: str) -> None:
        """OSError if it cannot be."""
        if path not in self._kept:
            self._kept[path] = path.read_text().strip()
            self._say(f"{path}\t{self._kept[path]}")
        path.write_text(value)

    def back(self, path: Path) -> None:
        """To what it was, before the end."""
        if path in self._kept:
            path.write_text(self._kept[path])

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        os.close(self._pipe)
        self.failed = bool(os.waitpid(self._pid, 0)[1])
        if self.failed and kind is None:
            raise Fail(self._hint)
        if self.failed:     # what is raised says something else
            print(f"cpuwhy: {self._hint}", file=sys.stderr)
