# SPDX-License-Identifier: GPL-2.0
"""Errors that end a command with one line on stderr instead of a traceback."""


class UsageError(Exception):
    """The caller asked for something that cannot be: exit status 2."""


class MachineError(UsageError):
    """A machine file is wrong; carries file and line."""

    def __init__(self, path: object, line: int, reason: str) -> None:
        super().__init__(f"{path}:{line}: {reason}" if line else f"{path}: {reason}")
        self.line = line
        self.reason = reason


class GuestError(Exception):
    """The guest, or the machine under it, failed: exit status 1.

    `tail` holds the last console lines, to be printed below the reason.
    """

    def __init__(self, reason: str, tail: list[str] | None = None) -> None:
        super().__init__(reason)
        self.tail = tail or []


class MissingError(Exception):
    """Something to be built or installed is not there: exit status 3."""
