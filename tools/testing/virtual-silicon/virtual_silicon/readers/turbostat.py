# SPDX-License-Identifier: GPL-2.0
"""Reader of turbostat's output: the table, and what its header says of turbo."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from cpuwhy import texts

from ..errors import GuestError


@dataclass
class Table:
    """Values by column: of the whole machine, and per CPU; length of the window."""

    seconds: float = 0.0
    summary: dict[str, float] = field(default_factory=dict)
    cpus: dict[int, dict[str, float]] = field(default_factory=dict)


def _values(cells: dict[str, str]) -> dict[str, float]:
    """A row; '-' means that the column does not apply."""
    out = {}
    for column, word in cells.items():
        try:
            out[column] = float(word)
        except ValueError:
            continue
    return out


def table(text: str) -> Table:
    """The last table in the text."""
    tables = [found for found in texts.read_text(text).tables if "Bzy_MHz" in found.columns]
    if not tables:
        raise GuestError("turbostat printed no table", "\n".join(text.splitlines()[-5:]))
    out = Table()
    if elapsed := re.search(r"^(\d+\.\d+) sec$", text, re.MULTILINE):
        out.seconds = float(elapsed[1])
    for cells, _ in tables[-1].rows:
        values = _values(cells)
        if "CPU" in values:
            out.cpus[int(values["CPU"])] = values
        else:
            out.summary = values
    if not out.cpus and out.summary:
        out.cpus[0] = out.summary	# one CPU: turbostat prints no CPU column
    return out


_TURBO = re.compile(r"^(\d+) \* ([\d.]+) = ([\d.]+) MHz max turbo (\d+) active cores?$",
                    re.MULTILINE)
_BASE = re.compile(r"^\d+ \* [\d.]+ = ([\d.]+) MHz base frequency", re.MULTILINE)
_LOW = re.compile(r"^\d+ \* [\d.]+ = ([\d.]+) MHz "
                  r"(?:max efficiency frequency|low frequency mode)",
                  re.MULTILINE)


@dataclass
class Header:
    """Frequencies in MHz as turbostat decodes them from the registers."""

    base: float
    low: float
    turbo: dict[int, float]


def header(text: str) -> Header:
    base, low = _BASE.search(text), _LOW.search(text)
    if not base or not low:
        raise GuestError("turbostat's header has no base frequency",
                         "\n".join(text.splitlines()[-5:]))
    return Header(float(base[1]), float(low[1]),
                  {int(cores): float(mhz) for _, _, mhz, cores in
                   reversed(_TURBO.findall(text))})	# those of E-cores come last


def residency_sum(row: dict[str, float]) -> float:
    """Busy% and the hardware's core residencies of one CPU."""
    return row["Busy%"] + sum(value for column, value in row.items()
                              if column.startswith("CPU%c"))
