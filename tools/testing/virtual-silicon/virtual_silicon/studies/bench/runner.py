# SPDX-License-Identifier: GPL-2.0
"""Measures cells in guests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from ... import paths
from ...errors import Fail
from ...guest import boot, initramfs, options
from ...guest.pool import Guest, Guests
from ...lab.variants import COEFFICIENTS, as_it_is
from ...loads import RECIPE
from ...machine import machine
from .cells import Cell, Start, starts
from .loads import HERE


@dataclass(frozen=True)
class Result:
    """@amount: bytes or transactions, or 1; @value: what counts where the load prints it;
    @updates: of the clock, if they were counted."""

    seconds: float
    joules: float
    amount: float
    mhz: float
    updates: int | None
    value: float | None = None

    @property
    def performance(self) -> float:
        return 1 / self.value if self.value else self.amount / self.seconds

    @property
    def watts(self) -> float:
        return self.joules / self.seconds

    @property
    def per_watt(self) -> float:
        return self.performance / self.watts


@dataclass(frozen=True)
class Failure:
    reason: str
    log: str


Results = dict[Cell, Result | Failure]


def result(cell: Cell, words: list[str], tsc_khz: int, said: str, log: str) -> Result | Failure:
    """Of what cell() in programs.sh prints after the cell's name."""
    if not words:
        return Failure(said or "the guest did not come to it", log)
    try:
        if len(words) < 7:
            raise ValueError(said or "numbers are missing")
        status, updates, seconds, joules, amount, aperf, mperf, *value = map(float, words)
        if status:
            return Failure(f"status {status:.0f}: {said}", log)
        if min(seconds, joules) <= 0 or cell.load.rate and not amount or \
                cell.load.prints and not any(value):
            raise ValueError("time, energy, amount or value is 0 or missing")
        return Result(seconds, joules, amount if cell.load.rate else 1,
                      aperf / mperf * tsc_khz / 1000, int(updates), *value)
    except (ValueError, ZeroDivisionError, TypeError) as error:
        return Failure(f"{error}: {' '.join(words)}", log)


def parse(start: Start, setting: str, text: str, tsc_khz: int, log: str) -> Results:
    """The lines of a step. A cell without a good line has failed."""
    lines = text.splitlines()
    found: dict[tuple[str, ...], list[str]] = {
        tuple(w[1:4]): w[4:] for w in map(str.split, lines) if w[:1] == ["cell"]}
    out: Results = {}
    for cell in start.cells:
        if cell.setting.name != setting:
            continue
        words = found.get((cell.load.name, str(cell.parameter), str(cell.seed)), [])
        said = " | ".join(line for line in lines if not line.startswith("cell"))[-300:]
        out[cell] = result(cell, words, tsc_khz, said, log)
    return out


def as_published(m: machine.Machine, start: Start) -> machine.Machine:
    """The part under the loads of a start, in the machine of the published tables: their
    watts are of all packages.  A package without a busy core draws what the uncore of the busy
    one does: 45.0 W beside 46.2 W on Cascade Lake (data/measurements.csv)."""
    load = start.cells[0].load
    return replace(
        m, power=replace(m.power, uncore_w=m.power.uncore_w * start.machine.packages),
        time=replace(m.time, user_cycles_per_1000_insns=load.cycles,
                     memory_permille=load.memory))


class Bench(Guests):
    """@kernels: images by the name that a cell's boot has for them; @modules: what stock needs."""

    def __init__(self, out: Path, kernels: Mapping[str, Path], qemu: Path, jobs: int = 1,
                 modules: Mapping[str, bytes] = MappingProxyType({})) -> None:
        archive = initramfs.ensure(out / "guest", more=RECIPE)
        super().__init__(out, archive, qemu, jobs)
        self._kernels, self._modules = kernels, modules
        self.digests = {name: self.digest(path) for name, path in
                        (*kernels.items(), ("qemu", qemu), ("guest", archive))}

    def guest(self, start: Start) -> Guest:
        name = start.boot.machine or start.machine.name
        own = HERE / f"{name}.toml"
        m = machine.load(str(own) if own.exists() else name)
        change = COEFFICIENTS.get(start.machine.variant, as_it_is)
        job = start.job()
        if start.boot.kernel == "stock":
            job.files.update(self._modules)
        return Guest(start.name, change(as_published(m, start)),
                     start.machine.cpus, self._kernels[start.boot.kernel], job,
                     start.boot.append, start.boot.faults,
                     cost=len(start.cells) * start.machine.cpus)

    def results(self, start: Start, guest: Guest, answer: boot.Result | Fail) -> Results:
        out = self.out / guest.name
        if isinstance(answer, Fail):
            return {cell: Failure(str(answer), str(out / "console.log")) for cell in start.cells}
        results: Results = {}
        for name in dict.fromkeys(cell.setting.name for cell in start.cells):
            section = answer.answer.sections.get(name.replace(" ", "-"))
            results |= parse(start, name, section.text if section else "",
                             guest.machine.tsc_khz, str(out / "results.log"))
        return results

    def run(self, cells: Iterable[Cell], kept_only: bool = False) -> Results:
        """The longest first, so that the end is not one guest alone."""
        todo = sorted(((start, self.guest(start)) for start in starts(cells)),
                      key=lambda pair: -pair[1].cost)
        answers = self.outcomes([guest for _, guest in todo], kept_only)
        done: Results = {}
        for (start, guest), answer in zip(todo, answers):
            if answer:
                done |= self.results(start, guest, answer)
        return done


def images(stock: Path | None, out: Path) -> tuple[dict[str, Path], dict[str, bytes]]:
    """And modules, of the package @stock if there is one."""
    found = {name: paths.kernel(name) for name in ("base", "patched")}
    if not stock:
        return found, {}
    image, files = options.packaged(stock, out)
    return found | {"stock": image}, files
