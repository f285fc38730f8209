# SPDX-License-Identifier: GPL-2.0
"""Errors that end a command with one line on stderr instead of a traceback."""

from __future__ import annotations


class Fail(Exception):
    """A reason that fits one line; @details are printed below it. @code: the exit status."""

    code = 1

    def __init__(self, reason: str, details: str = "", code: int = 0) -> None:
        super().__init__(reason)
        self.details = details
        self.code = code or self.code


def unread(error: OSError | UnicodeDecodeError) -> str:
    """Why a file is not read as text."""
    return (error.strerror if isinstance(error, OSError) else "") or "is not text"


class UsageError(Fail):
    """The caller asked for something that cannot be."""

    code = 2


class MachineError(UsageError):
    """A machine file is wrong; carries file and line."""

    def __init__(self, path: object, line: int, reason: str) -> None:
        super().__init__(f"{path}:{line}: {reason}" if line else f"{path}: {reason}")
        self.line = line
        self.reason = reason


class GuestError(Fail):
    """The guest, or the machine under it, failed. @details: the last console lines."""


class MissingError(Fail):
    """Something to be built or installed is not there."""

    code = 3
