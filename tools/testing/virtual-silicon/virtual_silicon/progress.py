# SPDX-License-Identifier: GPL-2.0
"""What the user sees of what takes long: one line per step. Needs the standard library
alone; with rich, a terminal's line is rewritten in place."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.status import Status


def say(line: str) -> None:
    print(line, flush=True)


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def stopwatch() -> Callable[[str], None]:
    """Says lines, each with the seconds since now."""
    begin = time.monotonic()
    return lambda line: say(f"  {time.monotonic() - begin:6.1f} s  {line}")


class Step:
    """A step that may take long: announced, kept alive, closed with its time.

    On a terminal one line is rewritten in place. Elsewhere (a CI log) a line
    is added each `HEARTBEAT` seconds.
    """

    HEARTBEAT = 30.0
    _open: list[Step] = []    # a terminal has room for the innermost only

    def __init__(self, title: str, stream: TextIO | None = None) -> None:
        self.title = title
        self.note = ""
        self._stream = stream
        self._status: Status | None = None

    def __enter__(self) -> Step:
        self._stream = self._stream or sys.stdout
        self.start = self._last = time.monotonic()
        for outer in Step._open[-1:]:
            outer._pause(True)
        Step._open.append(self)
        if self._stream.isatty():
            self._status = _rich_status(self.title, self._stream)
        if self._status:
            self._status.start()
        else:
            self._say(f"{self.title} ...")
        return self

    def _say(self, line: str) -> None:
        print(line, file=self._stream, flush=True)

    def _pause(self, pause: bool) -> None:
        if self._status:
            self._status.stop() if pause else self._status.start()

    def update(self, note: str) -> None:
        self.note = note
        now = time.monotonic()
        if self._status:
            if now - self._last > 0.2:
                self._last = now
                self._status.update(self._line())
        elif now - self._last > self.HEARTBEAT:
            self._last = now
            self._say("  " + self._line())

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._pause(True)
        Step._open.remove(self)
        if kind is None:
            self._say(self._line())
        elif kind is KeyboardInterrupt:
            self._say(f"{self.title}: interrupted; the next call continues")
        for outer in Step._open[-1:]:
            outer._pause(False)

    def _line(self) -> str:
        elapsed = clock(time.monotonic() - self.start)
        return ", ".join(p for p in (self.title, self.note, elapsed) if p)


def _rich_status(title: str, stream: TextIO) -> Status | None:
    """A spinner where python3-rich is installed; the first run may lack it."""
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(file=stream, highlight=False, markup=False).status(title)


def counter(step: Step, unit: str, expected: int = 0) -> Callable[[int, int], None]:
    """A function that shows how many of `total` are done; without a total, of
    as many as were `expected` from last time."""
    def show(done: int, total: int = 0) -> None:
        of = f"of {total} " if total else f"of about {expected} " if expected > done else ""
        step.update(f"{done} {of}{unit}")
    return show
