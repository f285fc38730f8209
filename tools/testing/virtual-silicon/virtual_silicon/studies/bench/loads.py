# SPDX-License-Identifier: GPL-2.0
"""The loads of the bench, from loads.toml."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...loads import packages

HERE = Path(__file__).resolve().parent
FILE = HERE / "loads.toml"
#: Of a run. "results" has the guests of "short", and more; "assumptions" has its own.
EXTENTS = ("short", "results", "assumptions")
#: How much of each load is done, in the unit that programs.sh has.
WORK = 4
Sizes = tuple[int | str, ...]
#: Files of each package.
PACKAGES = packages()


@dataclass(frozen=True)
class Load:
    """The fields of loads.toml, which says what they are."""

    name: str
    title: str
    parameter: str
    unit: str
    batch: str
    extent: str
    sizes: Sizes
    programs: tuple[str, ...]
    scratch: tuple[str, ...]
    cycles: int
    memory: int
    host: Sizes | None = None
    machines: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    @property
    def rate(self) -> bool:
        """More is better; else less."""
        return self.unit.endswith("/s")

    @property
    def prints(self) -> bool:
        """What counts is what it prints, not the time until it ends."""
        return self.unit == "us"


def _made(file: Path, name: str, row: dict[str, Any]) -> Load:
    fields = [f for f in dataclasses.fields(Load) if f.name != "name"]
    needed = {f.name for f in fields if f.default is dataclasses.MISSING}
    where = f"{file.name}: load {name}"
    if lacking := needed - row.keys():
        raise UsageError(f"{where} lacks {', '.join(sorted(lacking))}")
    if unknown := row.keys() - {f.name for f in fields}:
        raise UsageError(f"{where} has an unknown {', '.join(sorted(unknown))}; there are: "
                         + ", ".join(f.name for f in fields))
    return Load(name, **{key: tuple(value) if isinstance(value, list) else value
                         for key, value in row.items()})


def read(file: Path = FILE) -> dict[str, Load]:
    """Loads by name; UsageError says what is missing or unknown."""
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    loads = {name: _made(file, name, row) for name, row in data["load"].items()}
    for load in loads.values():
        if unknown := set(load.programs) - PACKAGES.keys():
            raise UsageError(f"{file.name}: load {load.name} needs {', '.join(sorted(unknown))}, "
                             "which recipe.txt does not have")
        if load.extent not in EXTENTS[:2] or not re.fullmatch(r"\w+/s|s|us", load.unit):
            raise UsageError(f"{file.name}: load {load.name}: extent is short or results, "
                             "unit is s, us or something/s")
        other = next(one for one in loads.values() if one.batch == load.batch)
        if (load.cycles, load.memory) != (other.cycles, other.memory):
            raise UsageError(f"{file.name}: loads {other.name} and {load.name} share guests, "
                             "but not cycles and memory")
    return loads


LOADS = read()
#: What several tables of the published series have.
COMMON = tuple(load.name for load in LOADS.values() if not load.machines)


def numbers(sizes: Sizes, n: int) -> Sequence[int]:
    """Parameters with @n CPUs; 1 at least."""
    def one(size: int | str) -> int:
        if isinstance(size, int):
            return size
        match = re.fullmatch(r"(\d*)n(?:/(\d+))?", size)
        if not match:
            raise UsageError(f"{FILE.name}: {size!r} is neither a number nor like n, 2n, n/2")
        return max(n * int(match[1] or 1) // int(match[2] or 1), 1)
    return sorted({one(size) for size in sizes})
