# SPDX-License-Identifier: GPL-2.0
"""Faults as users write them, a line each: `CPU KIND key=value ...`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from ..errors import UsageError, unread
from .qapi import Struct

MOST_CPUS = 256
_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}


def _number(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text, 0)
        if not low <= value <= high:
            raise ValueError
        return value
    return parse


def _time(low: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        match = re.fullmatch(r"(\d+)(ns|us|ms|s)", text)
        value = int(match[1]) * _UNITS[match[2]] if match else -1
        if not low <= value < 2**62:
            raise ValueError
        return value
    return parse


def _choice(*names: str) -> Callable[[str], str]:
    def parse(given: str) -> str:
        if given not in names:
            raise ValueError
        return given
    return parse


_U8, _U32, _U64 = (2**bits - 1 for bits in (8, 32, 64))

#: Keys of a line: what is allowed, in words; the member that it is in the emulator's
#: type; the parser, which raises ValueError.
_KEYS: dict[str, tuple[str, str, Callable[[str], object]]] = {
    "counter": ("aperf|mperf|both", "counter", _choice("aperf", "mperf", "both")),
    "permille": ("0 to 4294967295", "permille", _number(0, _U32)),
    "cycles": ("[-]N", "cycles", _number(-2**63, 2**63 - 1)),
    "msr": ("a register's number", "msr", _number(0, _U32)),
    "value": ("a 64-bit number", "value", _number(0, _U64)),
    "leaf": ("a 32-bit number", "leaf", _number(0, _U32)),
    "sub": ("a 32-bit number", "sub", _number(0, _U32)),
    "reg": ("eax|ebx|ecx|edx", "reg", _choice("eax", "ebx", "ecx", "edx")),
    "clear": ("a 32-bit mask", "clear", _number(1, _U32)),
    "ratio": ("1 to 255", "ratio", _number(1, _U8)),
    "reads": ("1 or more", "reads", _number(1, _U64)),
    "at": ("a time with ns, us, ms or s", "at-ns", _time(0)),
    "for": ("a time above 0 with ns, us, ms or s", "duration-ns", _time(1)),
    "every": ("a time of 1us or more", "every-ns", _time(1000)),
}

#: Keys that a kind needs, and those that it may have; all may have `at` and `for`.
_KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "freeze": (("counter",), ("reads",)),
    "zero": (("counter",), ("reads",)),
    "rate": (("counter", "permille"), ("reads",)),
    "add": (("counter", "cycles"), ()),
    "gp": (("msr",), ("reads",)),
    "msr": (("msr", "value"), ("reads",)),
    "cpuid": (("leaf", "sub", "reg", "clear"), ()),
    "wake": ((), ("every",)),
    "limit": (("ratio",), ()),
}


def _key(kind: str, word: str) -> tuple[str, object]:
    name, _, text = word.partition("=")
    needs, may = _KINDS[kind]
    allowed = (*needs, *may, "at", "for")
    if name not in allowed:
        raise UsageError(f"{word!r}: {kind} takes " + ", ".join(allowed))
    words, member, parse = _KEYS[name]
    try:
        return member, parse(text)
    except ValueError:
        raise UsageError(f"{word!r}: {name} must be {words}") from None


def _fault(line: str) -> Struct:
    words = line.split()
    if len(words) < 2:
        raise UsageError("needs CPU KIND")
    cpu, kind, *words = words
    if cpu != "*" and not (cpu.isdecimal() and int(cpu) < MOST_CPUS):
        raise UsageError(f"{cpu!r} is no CPU; a number below {MOST_CPUS} or *")
    if kind not in _KINDS:
        raise UsageError(f"unknown kind {kind!r}; there are: " + ", ".join(_KINDS))
    members = dict(_key(kind, word) for word in words)
    for name in _KINDS[kind][0]:
        if _KEYS[name][1] not in members:
            raise UsageError(f"{kind} needs {name}={_KEYS[name][0]}")
    return {"kind": kind, **({} if cpu == "*" else {"cpu": int(cpu)}), **members}


def parse(line: str) -> Struct:
    """VirtualSiliconFault of a line; UsageError says what is wrong with it."""
    try:
        return _fault(line)
    except UsageError as error:
        raise UsageError(f"fault {line!r}: {error}") from error


def read(path: Path) -> list[Struct]:
    """Those of a file; empty lines and comments are skipped."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"fault file {path}: {unread(error)}") from error
    out = []
    for number, line in enumerate(map(str.strip, lines), 1):
        if line and not line.startswith("#"):
            try:
                out.append(parse(line))
            except UsageError as error:
                raise UsageError(f"{path}:{number}: {error}") from error
    return out
