# SPDX-License-Identifier: GPL-2.0
"""Tables, for documents and for the terminal, and numbers in them."""

from __future__ import annotations

import csv
import statistics
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path


def spread(values: Sequence[float], form: str = "g") -> str:
    """Median, and least to most where these differ."""
    text = format(statistics.median(values), form)
    if min(values) != max(values):
        text += f" ({min(values):{form}} to {max(values):{form}})"
    return text


def ends(values: Sequence[float], form: str = "g") -> list[str]:
    """Median, least and most: three columns."""
    return [format(v, form) for v in (statistics.median(values), min(values), max(values))]


def write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[str]], *notes: str) -> None:
    """A table as data, with remarks above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"# {line}\n" for note in notes for line in textwrap.wrap(note, 98))
        csv.writer(file, lineterminator="\n").writerows([head, *rows])


def read_csv(path: Path) -> csv.DictReader[str]:
    """What write_csv wrote: rows by the names of their columns, without the remarks."""
    return csv.DictReader(line for line in path.read_text(encoding="utf-8").splitlines()
                          if not line.startswith("#"))


def publish(path: Path, head: Sequence[str], rows: Sequence[Sequence[str]], *notes: str) -> None:
    """On the terminal and as CSV."""
    write_csv(path, head, rows, *notes)
    print(plain("\n".join([*notes, f"{path}:"]), head, rows) + "\n")


def plain(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest entry, numbers to the right."""
    shown = ([head] if any(head) else []) + list(rows)
    widths = [max(len(row[i]) for row in shown) for i in range(len(head))]
    lines = [title]
    for row in shown:
        cells = [cell.ljust(width) if i == 0 or not any(head) else cell.rjust(width)
                 for i, (cell, width) in enumerate(zip(row, widths))]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)


def show(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(plain(title, head, rows) + "\n")
