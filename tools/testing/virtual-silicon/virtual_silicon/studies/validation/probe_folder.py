# SPDX-License-Identifier: GPL-2.0
"""The folder of what others have measured: what a file there must be, and its row of the table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cpuwhy import form

from ...errors import Fail
from ...machine import adopt, machine

README = "README.md"


def row(name: str, data: form.Data) -> str:
    """Of the table in README.md."""
    kernel, clock, power = (data.get(table, {}) for table in ("kernel", "clock", "power"))
    base = clock.get("base_mhz", 0)
    clocks = [f"{base * table['freq_max'] / 1024e3:.2f}" if base and "freq_max" in table else "-"
              for table in (kernel, clock)]
    woken = [state for state in data.get("state", ()) if "wake_us" in state]
    cells = [f"[{name}]({name}.txt)", data["cpu"].get("name", "-"), kernel.get("release", "-"),
             *clocks,
             f"{woken[-1]['name']}: {woken[-1]['wake_us'][2]:.3g}, {woken[-1]['exit_us']}"
             if woken else "-",
             f"{power['idle_w']:g}, {power['busy_w']:g}" if power else "-"]
    return f"| {' | '.join(cells)} |"


def problems(folder: Path) -> Iterator[str]:
    """Form and privacy of each file, that a machine can be made of it, and that the table has it
    and nothing else."""
    rows = []
    for path in sorted(folder.iterdir()):
        if path.name == README:
            continue
        if path.suffix != ".txt" or not re.fullmatch(r"[a-z0-9-]+", path.stem):
            yield f"{path.name}: a file is called NAME.txt, of a-z, 0-9 and -"
            continue
        try:
            data = adopt.read(path)
            machine.parse(adopt.text(data, path.name), Path("adopted.toml"))
        except Fail as fail:
            yield str(fail)
            continue
        rows.append(row(path.stem, data))
    there = [line for line in (folder / README).read_text().splitlines()
             if line.startswith("| [")]
    yield from (f"{README} lacks: {line}" for line in rows if line not in there)
    yield from (f"{README} has, but no file: {line}" for line in there if line not in rows)
