# SPDX-License-Identifier: GPL-2.0
"""What is measured: machines x columns x loads x seeds, from plans/*.toml.

A column is a kernel, how it is booted, and what is set at run time. Its name means the same in
every table. A cell is one load, once, in one column of one machine. Cells of a part that need the
same boot share a guest.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import hashlib
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ..errors import UsageError
from ..loads import packages
from ..machine import machine
from . import variants

HERE = Path(__file__).resolve().parent / "plans"
LOADS = HERE / "loads.toml"
TIERS = ("check", "release", "model")
#: What a column may set, NAME=VALUE: settings() in cells.sh.
SETTINGS = ("status", "freq_max", "idle_poll", "feature", "states", "shallower", "limit", "hint")
#: Measures that every cell has, and that a load may print.
COMMON = ("result", "W", "mJ", "MHz", "wait us", "changes/s", "above/s", "below/s")
PRINTED = ("-", "result", "W", "p50", "p99", "longest", "fall")


@dataclass(frozen=True)
class Kernel:
    """@like: base or patched; @of: 6.12, 7.3 or a Debian package; @config: options that differ."""

    name: str
    like: str = "base"
    of: str = "6.12"
    config: tuple[str, ...] = ()


@dataclass(frozen=True)
class Boot:
    """What all cells of a guest have in common, beside machine and loads."""

    kernel: str
    append: str = ""
    faults: str = ""
    variant: str = ""


@dataclass(frozen=True)
class Column:
    """@variant: of the machine; @idle: governor; without one the kernel's own. @set: NAME=VALUE,
    of SETTINGS. What is not named is as the kernel began."""

    name: str
    kernel: str
    append: str = ""
    faults: str = ""
    variant: str = ""
    governor: str = "schedutil"
    idle: str = ""
    set: tuple[str, ...] = ()

    @property
    def boot(self) -> Boot:
        return Boot(self.kernel, self.append, self.faults, self.variant)


@dataclass(frozen=True)
class Load:
    """@run: shell, of which $N is the parameter and $SEED the seed; @takes: pattern of the
    parameter; @better: more or less of the result; @prints: what its last line has, in the order
    of that; @before: once in a guest; @seconds: of a host's core that a cell takes, about;
    @cycles, @memory: of the user code of 1000 instructions, and the permille of time that waits
    for memory, if not as in the machine's [time], which loads are written for that do a number of
    steps. On real machines, @host: its parameters there; @programs: packages of recipe.txt that
    it needs; @scratch: what it leaves in /tmp."""

    name: str
    title: str
    run: str
    takes: str = ""
    unit: str = "1/s"
    better: str = "more"
    prints: tuple[str, ...] = ()
    before: str = ""
    seconds: float = 2.5
    cycles: int = 0
    memory: int = 0
    words: dict[str, str] = field(default_factory=dict, hash=False)
    host: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """Rows of a table. @loads: NAME or NAME:PARAMETER; @over: columns that each is compared with;
    @judged: columns that are to be no worse; @tier: the run that has it; @power: whether it can
    be read; @packages: watts are of all packages of the machine; @variants: of the model's
    assumptions, "" for the machine as it is; @only: loads of columns that do not have all, as
    in the shell; @holds: for
    "COLUMN/COLUMN LOAD MEASURE" the least and most that the first may be over the second."""

    name: str
    question: str
    machines: tuple[str, ...]
    cpus: int
    columns: tuple[str, ...]
    loads: tuple[str, ...]
    over: tuple[str, ...] = ("base",)
    judged: tuple[str, ...] = ("ours",)
    seeds: int = 3
    tier: str = "release"
    power: bool = True
    packages: bool = False
    variants: tuple[str, ...] = ("",)
    only: dict[str, list[str]] = field(default_factory=dict, hash=False)
    holds: dict[str, list[float]] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Cell:
    part: str
    machine: str
    cpus: int
    column: Column
    load: Load
    parameter: str
    seed: int
    power: bool = True
    variant: str = ""
    packages: bool = False

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What the seeds have in common."""
        load = f"{self.load.name}:{self.parameter}" if self.parameter else self.load.name
        machine = f"{self.machine}, {self.variant}" if self.variant else self.machine
        return self.part, machine, load, self.column.name

    def __str__(self) -> str:
        return f"{'/'.join(self.key)}, seed {self.seed}"


@dataclass(frozen=True)
class Plan:
    kernels: dict[str, Kernel]
    columns: dict[str, Column]
    loads: dict[str, Load]
    parts: dict[str, Part]

    def check(self, part: Part, where: str) -> None:
        """UsageError says what is not there, and what is."""
        _each(where, "machine", part.machines, machine.names())
        _each(where, "column", (*part.columns, *part.over, *part.judged), self.columns)
        _each(where, "tier", [part.tier], TIERS)
        for word in part.loads:
            self.load(word, where)
        _each(where, "variant", filter(None, part.variants), variants.ALL)
        _each(f"{where}: only", "column", part.only, part.columns)
        for patterns in part.only.values():
            _each(f"{where}: only", "load like", (
                one for one in patterns if not fnmatch.filter(part.loads, one)), part.loads)
        for of in part.holds:
            pair, load, measure = (*of.split(" ", 2), "", "")[:3]
            _each(f"{where}: holds", "column", pair.split("/")[:1], part.columns)
            _each(f"{where}: holds", "column that it is over", pair.split("/")[1:], part.over)
            _each(f"{where}: holds", "load", [load], part.loads)
            _each(f"{where}: holds", "measure", [measure],
                  (*COMMON, *self.load(load, where)[0].prints))

    def load(self, word: str, where: str) -> tuple[Load, str]:
        """And its parameter, of NAME:PARAMETER."""
        name, _, parameter = word.partition(":")
        _each(where, "load", [name], self.loads)
        load = self.loads[name]
        if not re.fullmatch(load.takes, parameter):
            allowed = f"takes {load.takes}" if load.takes else "takes none"
            raise UsageError(f"{where}: load {word}: no parameter {parameter or 'given'}; it "
                             f"{allowed}")
        return load, parameter


T = TypeVar("T", Kernel, Column, Load, Part)


def _made(kind: type[T], file: str, name: str, row: dict[str, Any]) -> T:
    fields = [f for f in dataclasses.fields(kind) if f.name != "name"]
    where = f"{file}: {kind.__name__.lower()} {name}"
    _each(where, "field", row, [f.name for f in fields])
    if lacking := [f.name for f in fields if f.default is dataclasses.MISSING
                   and f.default_factory is dataclasses.MISSING and f.name not in row]:
        raise UsageError(f"{where} lacks {', '.join(lacking)}")
    return kind(name=name, **{key: tuple(value) if isinstance(value, list) else value
                              for key, value in row.items()})


def _each(where: str, what: str, names: Iterable[str], known: Iterable[str]) -> None:
    if unknown := dict.fromkeys(name for name in names if name not in known):
        raise UsageError(f"{where}: no {what} {', '.join(unknown)}; there are: {', '.join(known)}")


def _check_load(load: Load, where: str) -> None:
    _each(f"{where}: better", "value", [load.better], ("more", "less"))
    _each(f"{where}: prints", "measure", load.prints, PRINTED)
    for parameter in load.words:
        if not re.fullmatch(load.takes, parameter):
            raise UsageError(f"{where}: words: no parameter {parameter or 'of none'}; it takes "
                             f"{load.takes or 'none'}")
    _each(f"{where}: programs", "package in recipe.txt", load.programs, packages())
    if bool(load.takes) != bool(re.search(r"\$\{?N\b", load.run)):
        raise UsageError(f"{where}: run has $N if and only if the load takes a parameter")


def _tables(file: Path, kinds: Iterable[str]) -> dict[str, Any]:
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file.name}: {error}") from error
    _each(file.name, "table", data, kinds)
    return data


def on_hosts() -> dict[str, Load]:
    """The loads of real machines, where there are no files of machines."""
    found = {name: _made(Load, LOADS.name, name, row)
             for name, row in _tables(LOADS, ["load"])["load"].items()}
    return {name: load for name, load in found.items() if load.host}


def read(directory: Path = HERE) -> Plan:
    """UsageError says file, name and what is allowed."""
    kinds = {"kernel": Kernel, "column": Column, "load": Load, "part": Part}
    found: dict[str, dict[str, Any]] = {kind: {} for kind in kinds}
    files: dict[tuple[str, str], str] = {}
    for file in sorted(directory.glob("*.toml")):
        for kind, rows in _tables(file, kinds).items():
            for name, row in rows.items():
                if (kind, name) in files:
                    raise UsageError(f"{file.name}: {kind} {name} is in {files[kind, name]} too")
                files[kind, name] = f"{file.name}: {kind} {name}"
                found[kind][name] = _made(kinds[kind], file.name, name, row)
    plan = Plan(found["kernel"], found["column"], found["load"], found["part"])
    for (kind, name), where in files.items():
        if kind == "column":
            _each(where, "kernel", [plan.columns[name].kernel], plan.kernels)
            _each(where, "setting", (word.partition("=")[0] for word in plan.columns[name].set),
                  SETTINGS)
            _each(where, "variant", filter(None, [plan.columns[name].variant]), variants.ALL)
        elif kind == "load":
            _check_load(plan.loads[name], where)
        elif kind == "part":
            plan.check(plan.parts[name], where)
    return plan


def number(word: str, cpus: int) -> str:
    """A parameter may be a share of the CPUs: n, n/2."""
    if match := re.fullmatch(r"n(?:/(\d+))?", word):
        return str(max(cpus // int(match[1] or 1), 1))
    return word


def cells(plan: Plan, parts: Sequence[str]) -> list[Cell]:
    """A repetition of a load comes after all others."""
    return [Cell(part.name, of, part.cpus, plan.columns[column], load, number(parameter, part.cpus),
                 seed, part.power, variant, part.packages)
            for part in (plan.parts[name] for name in parts) for of in part.machines
            for variant in part.variants
            for column in part.columns for seed in range(1, part.seeds + 1)
            for load, parameter in (
                plan.load(word, part.name) for word in part.loads
                if any(fnmatch.fnmatch(word, one) for one in part.only.get(column, "*")))]


@dataclass(frozen=True)
class Start:
    """One guest, and the cells that it measures, in this order."""

    machine: str
    cpus: int
    boot: Boot
    cells: tuple[Cell, ...]

    @property
    def name(self) -> str:
        """Of no two starts of a plan the same."""
        one = self.cells[0]
        what = repr((self.cpus, one.variant, self.boot, one.load.cycles, one.load.memory))
        return (f"{one.part}-{self.machine}-{self.boot.kernel}-"
                + hashlib.sha256(what.encode()).hexdigest()[:4])


def starts(wanted: Iterable[Cell]) -> list[Start]:
    found: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in wanted:
        load = cell.load
        found.setdefault((cell.part, cell.machine, cell.variant, cell.cpus, cell.column.boot,
                          load.cycles, load.memory), []).append(cell)
    return [Start(of[0].machine, of[0].cpus, of[0].column.boot, tuple(of))
            for of in found.values()]
