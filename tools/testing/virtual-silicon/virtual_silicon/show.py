# SPDX-License-Identifier: GPL-2.0
"""Tables on the terminal: by rich where it is installed, else plain."""

from __future__ import annotations

import sys

try:
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
except ImportError:
    Console = None	# type: ignore[assignment,misc]


def plain(title: str, head: list[str], rows: list[list[str]]) -> str:
    """Columns as wide as their widest entry, numbers to the right."""
    shown = ([head] if any(head) else []) + rows
    widths = [max(len(row[i]) for row in shown) for i in range(len(head))]
    lines = [title]
    for row in shown:
        cells = [cell.ljust(width) if i == 0 or not any(head) else cell.rjust(width)
                 for i, (cell, width) in enumerate(zip(row, widths))]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def _rich(title: str, head: list[str], rows: list[list[str]]) -> None:
    table = RichTable(title=title, title_justify="left", title_style="bold",
                      box=box.SIMPLE_HEAD, show_header=any(head), padding=(0, 1, 0, 0))
    for i, name in enumerate(head):
        right = i > 0 and any(head)
        table.add_column(name, justify="right" if right else "left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def table(title: str, head: list[str], rows: list[list[str]]) -> None:
    if Console is not None and sys.stdout.isatty():
        _rich(title, head, rows)
    else:
        print(plain(title, head, rows))
