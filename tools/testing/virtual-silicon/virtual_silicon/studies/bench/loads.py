# SPDX-License-Identifier: GPL-2.0
"""The loads of the bench and the packages they need, from loads.toml."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ...errors import UsageError
from ...guest.initramfs import Item

HERE = Path(__file__).resolve().parent
FILE = HERE / "loads.toml"
#: Of a run. "results" has the guests of "short", and more; "assumptions" has its own.
EXTENTS = ("short", "results", "assumptions")
#: How much of each load is done, in the unit that loads.sh has.
WORK = 4
Sizes = tuple[int | str, ...]


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


@dataclass(frozen=True)
class Package:
    name: str
    files: tuple[str, ...]
    unpack: bool = False
    libraries: tuple[str, ...] = ()


T = TypeVar("T", Load, Package)


def _made(kind: type[T], file: Path, name: str, row: dict[str, Any]) -> T:
    fields = [f for f in dataclasses.fields(kind) if f.name != "name"]
    needed = {f.name for f in fields if f.default is dataclasses.MISSING}
    where = f"{file.name}: {kind.__name__.lower()} {name}"
    if lacking := needed - row.keys():
        raise UsageError(f"{where} lacks {', '.join(sorted(lacking))}")
    if unknown := row.keys() - {f.name for f in fields}:
        raise UsageError(f"{where} has an unknown {', '.join(sorted(unknown))}; there are: "
                         + ", ".join(f.name for f in fields))
    return kind(name, **{key: tuple(value) if isinstance(value, list) else value
                         for key, value in row.items()})


def read(file: Path = FILE) -> tuple[dict[str, Load], dict[str, Package]]:
    """Loads and packages by name; UsageError says what is missing or unknown."""
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    loads = {name: _made(Load, file, name, row) for name, row in data["load"].items()}
    packages = {name: _made(Package, file, name, row) for name, row in data["package"].items()}
    for load in loads.values():
        if unknown := set(load.programs) - packages.keys():
            raise UsageError(f"{file.name}: load {load.name} needs {', '.join(sorted(unknown))}, "
                             "which is no package there")
        if load.extent not in EXTENTS[:2] or not re.fullmatch(r"\w+/s|s|us", load.unit):
            raise UsageError(f"{file.name}: load {load.name}: extent is short or results, "
                             "unit is s, us or something/s")
        other = next(one for one in loads.values() if one.batch == load.batch)
        if (load.cycles, load.memory) != (other.cycles, other.memory):
            raise UsageError(f"{file.name}: loads {other.name} and {load.name} share guests, "
                             "but not cycles and memory")
    return loads, packages


LOADS, PACKAGES = read()
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


def recipe() -> list[Item]:
    """What guests get for the loads, beside guest/recipe.txt."""
    own = (("loads.sh", "bench.sh"), ("gitsource.sh", "gitsource.sh"),
           ("kernbench.sh", "kernbench.sh"))
    return [
        *(Item("unpack" if package.unpack else "package", file, file, package.name)
          for package in PACKAGES.values() for file in package.files),
        Item("compile", str(HERE / "stopwatch.c"), "usr/bin/stopwatch"),
        Item("compile", str(HERE / "disk.c"), "usr/lib/vs/disk.so"),
        *(Item("own", str(HERE / source), f"usr/lib/vs/{target}") for source, target in own)]
