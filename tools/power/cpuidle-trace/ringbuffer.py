# SPDX-License-Identifier: GPL-2.0
"""Binary events from tracefs: what trace_pipe_raw gives, with full ns."""
from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FIELD = re.compile(r"field:(?P<type>.*?)\s*(?P<name>\w+)(\[.*\])?;\s*offset:(?P<offset>\d+);"
                   r"\s*size:(?P<size>\d+);\s*signed:(?P<signed>\d)")
PAGE_HEADER = struct.Struct("<QQ")
COMMIT_SIZE = (1 << 20) - 1     # the rest of the commit word are flags
LOST_EVENTS = 1 << 31


@dataclass(frozen=True)
class Event:
    """One event; what fields holds depends on its name."""
    time: int
    cpu: int
    name: str
    fields: dict[str, int]


class Format:
    """Where the numbers of one kind of event are."""

    def __init__(self, name: str, text: str, wanted: tuple[str, ...]):
        self.name = name
        self.id = int(re.findall(r"^ID: (\d+)", text, re.M)[0])
        self.fields = [(m["name"], int(m["offset"]), int(m["size"]), m["signed"] == "1")
                       for m in FIELD.finditer(text) if m["name"] in wanted]

    def decode(self, data: bytes) -> dict[str, int]:
        return {name: int.from_bytes(data[at:at + size], "little", signed=signed)
                for name, at, size, signed in self.fields}


def page_events(page: bytes, cpu: int, formats: dict[int, Format]) -> Iterator[Event]:
    """The events of one sub-buffer, in time order."""
    time, commit = PAGE_HEADER.unpack_from(page)
    at, end = PAGE_HEADER.size, PAGE_HEADER.size + (commit & COMMIT_SIZE)
    while at + 4 <= end:
        word, = struct.unpack_from("<I", page, at)
        kind, delta = word & 31, word >> 5
        at += 4
        if kind == 29:                          # padding, to the end if empty
            if delta == 0:
                return
            length, = struct.unpack_from("<I", page, at)
            at += length
            continue
        if kind >= 30:                          # a longer time difference, or a time
            high, = struct.unpack_from("<I", page, at)
            at += 4
            long = high << 27 | delta
            time = time + long if kind == 30 else (time & ~((1 << 59) - 1)) | long
            continue
        if kind == 0:                           # the length is in a word of its own
            length, = struct.unpack_from("<I", page, at)
            data, at = page[at + 4:at + length], at + length
        else:
            data, at = page[at:at + 4 * kind], at + 4 * kind
        time += delta
        event = formats.get(int.from_bytes(data[:2], "little"))
        if event:
            yield Event(time, cpu, event.name, event.decode(data))


def cpu_events(raw: Path, cpu: int, page_size: int, formats: dict[int, Format]) -> Iterator[Event]:
    """All events that were taken down on one CPU."""
    data = raw.read_bytes()
    for start in range(0, len(data), page_size):
        page = data[start:start + page_size]
        if len(page) >= PAGE_HEADER.size:
            yield from page_events(page, cpu, formats)
