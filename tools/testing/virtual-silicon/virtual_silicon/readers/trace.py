# SPDX-License-Identifier: GPL-2.0
"""Reader of the model's trace: what really happened, next to what the guest saw.

Format: one event per line, time in ns first; see qemu/ and ../../README.md.
"""

from __future__ import annotations

import gzip
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import UsageError

HEADER = "# virtual-silicon trace 1"


@dataclass
class Counters:
    """Counters of one CPU at a mark; states are (entries, ns)."""

    tsc: int
    mperf: int
    aperf: int
    busy_ns: int
    states: dict[str, tuple[int, int]]
    pause_cycles: int = 0
    exit_ns: int = 0


@dataclass
class Mark:
    """Everything the model counts, at the moment the guest asked for it."""

    time_ns: int
    value: int
    cpus: dict[int, Counters] = field(default_factory=dict)
    energy_uj: dict[int, tuple[int, int, int]] = field(default_factory=dict)


@dataclass
class Trace:
    """Events by CPU or package, each list in order of time."""

    khz: dict[int, list[tuple[int, int]]] = field(
        default_factory=lambda: defaultdict(list))
    #: state entered, or None for leaving it
    idle: dict[int, list[tuple[int, str | None]]] = field(
        default_factory=lambda: defaultdict(list))
    wakes: dict[int, list[tuple[int, str, str]]] = field(
        default_factory=lambda: defaultdict(list))
    energy: dict[int, list[tuple[int, int]]] = field(
        default_factory=lambda: defaultdict(list))
    marks: list[Mark] = field(default_factory=list)
    end_ns: int = 0

    def mark(self, value: int) -> Mark:
        """The last mark of this value."""
        for mark in reversed(self.marks):
            if mark.value == value:
                return mark
        raise UsageError(f"the trace has no mark {value}")


def _counters(words: list[str]) -> Counters:
    states = {}
    numbers = [int(word) for word in words if "=" not in word]
    for word in words[len(numbers):]:
        name, _, pair = word.partition("=")
        entries, _, ns = pair.partition(":")
        states[name] = (int(entries), int(ns))
    tsc, mperf, aperf, busy, pause, exit_ns = numbers + [0, 0] * (len(numbers) == 4)
    return Counters(tsc, mperf, aperf, busy, states, pause, exit_ns)


def _event(trace: Trace, time_ns: int, kind: str, where: int, rest: list[str]) -> None:
    if kind == "F":
        trace.khz[where].append((time_ns, int(rest[0])))
    elif kind == "I":
        trace.idle[where].append((time_ns, rest[0]))
    elif kind == "W":
        trace.idle[where].append((time_ns, None))
        trace.wakes[where].append((time_ns, rest[0], rest[1]))
    elif kind == "E":
        trace.energy[where].append((time_ns, int(rest[0])))
    elif kind == "M":
        trace.marks.append(Mark(time_ns, int(rest[0])))
    elif kind == "C":
        trace.marks[-1].cpus[where] = _counters(rest)
    elif kind == "P":
        package, cores, dram = (int(word) for word in rest)
        trace.marks[-1].energy_uj[where] = (package, cores, dram)
    else:
        raise ValueError(f"unknown event {kind!r}")


def _lines(path: Path) -> Iterator[str]:
    """Of the text, or of the compressed form; a killed emulator cuts either short."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rt", encoding="ascii") if packed else \
            path.open(encoding="ascii") as text:
        try:
            yield from text
        except EOFError:
            pass


def read(path: Path) -> Trace:
    """The whole trace.  A last line cut short (emulator killed) is left out."""
    trace = Trace()
    try:
        lines = _lines(path)
        if next(lines, "").rstrip("\n") != HEADER:
            raise UsageError(f"{path}: not a trace (no {HEADER!r} line)")
        for number, line in enumerate(lines, 2):
            if line.endswith("\n"):
                _line(trace, path, number, line)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not a trace ({error.reason})") from error
    except (OSError, zlib.error) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    return trace


def _line(trace: Trace, path: Path, number: int, line: str) -> None:
    words = line.split()
    try:
        time_ns = int(words[0])
        _event(trace, time_ns, words[1], int(words[2]), words[3:])
    except (ValueError, IndexError) as error:
        raise UsageError(f"{path}:{number}: not a trace event: {line.strip()!r} "
                         f"({error})") from error
    trace.end_ns = max(trace.end_ns, time_ns)


@dataclass
class CpuWindow:
    """One CPU between two marks; shares are of elapsed time."""

    busy: float
    mhz: float
    states: dict[str, float]
    entries: dict[str, int]


@dataclass
class Window:
    """The machine between two marks, as the model counted it."""

    seconds: float
    cpus: dict[int, CpuWindow]
    package_j: float
    cores_j: float
    dram_j: float


def _cpu_window(a: Counters, b: Counters, ns: int) -> CpuWindow:
    busy_ns = b.busy_ns - a.busy_ns
    # Cycles per ns of execution: the clock while busy, from the model's own
    # time and not from MPERF.
    mhz = (b.aperf - a.aperf) * 1e3 / busy_ns if busy_ns else 0.0
    states = {name: (b.states[name][1] - a.states[name][1]) / ns for name in b.states}
    entries = {name: b.states[name][0] - a.states[name][0] for name in b.states}
    return CpuWindow(busy_ns / ns, mhz, states, entries)


def window(trace: Trace, first: int, last: int) -> Window:
    """What happened between the marks with these values."""
    a, b = trace.mark(first), trace.mark(last)
    ns = b.time_ns - a.time_ns
    if ns <= 0:
        raise UsageError(f"mark {last} is not after mark {first}")
    energy = [sum(b.energy_uj[p][i] - a.energy_uj[p][i] for p in b.energy_uj) / 1e6
              for i in range(3)]
    return Window(ns / 1e9,
                  {cpu: _cpu_window(a.cpus[cpu], b.cpus[cpu], ns) for cpu in b.cpus},
                  *energy)
