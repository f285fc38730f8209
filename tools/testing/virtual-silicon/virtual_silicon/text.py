# SPDX-License-Identifier: GPL-2.0
"""Tables, for documents and for the terminal, and numbers in them."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable, Sequence

try:
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
except ImportError:
    Console = None	# type: ignore[assignment,misc]


def spread(values: Sequence[float], form: str = "g") -> str:
    """Median, and least to most where these differ."""
    text = format(statistics.median(values), form)
    if min(values) != max(values):
        text += f" ({min(values):{form}} to {max(values):{form}})"
    return text


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, without a newline at its end."""
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    return "\n".join([line(head), "|" + "---|" * len(head), *map(line, rows)])


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


def _rich(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = RichTable(title=title, title_justify="left", title_style="bold",
                      box=box.SIMPLE_HEAD, show_header=any(head), padding=(0, 1, 0, 0))
    for i, name in enumerate(head):
        right = i > 0 and any(head)
        table.add_column(name, justify="right" if right else "left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def show(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """On the terminal: by rich where it is installed, else plain."""
    if Console is not None and sys.stdout.isatty():
        _rich(title, head, rows)
    else:
        print(plain(title, head, rows) + "\n")
