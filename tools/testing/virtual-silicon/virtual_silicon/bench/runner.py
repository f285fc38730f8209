# SPDX-License-Identifier: GPL-2.0
"""Measures cells in guests, in deterministic time, and keeps what was measured."""

from __future__ import annotations

import hashlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .. import boot, emulator, faults, initramfs, machine, paths, ssdt
from ..errors import GuestError
from . import sensitivity
from .cells import Cell, Start, starts

HERE = Path(__file__).resolve().parents[2] / "experiments/bench"
_LIMITS = boot.Limits(boot=900, silence=3600, overall=14400)


@dataclass(frozen=True)
class Result:
    """@amount: bytes, or 1; @value: what counts where the load prints it."""

    seconds: float
    joules: float
    amount: float
    mhz: float
    updates: int
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
    """Of what cell() in loads.sh prints after the cell's name."""
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
            raise ValueError("time, energy, bytes or value is 0 or missing")
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


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Bench:
    """@kernels: images by the name that a cell's boot has for them."""

    def __init__(self, out: Path, kernels: Mapping[str, Path], qemu: Path) -> None:
        self._out, self._kernels, self._qemu = out, kernels, qemu
        self._archive = initramfs.ensure(out / "guest", more=HERE / "recipe.txt")
        self.digests = {name: _digest(path) for name, path in
                        (*kernels.items(), ("qemu", qemu), ("guest", self._archive))}

    def _changed(self, start: Start) -> bool:
        """Whether a build has replaced what a guest was just started from."""
        return any(_digest(path) != self.digests[name] for name, path in (
            (start.boot.kernel, self._kernels[start.boot.kernel]), ("qemu", self._qemu),
            ("guest", self._archive)))

    def config(self, start: Start) -> boot.Config:
        name = start.boot.machine or start.machine.name
        own = HERE / f"{name}.toml"
        m = machine.load(str(own) if own.exists() else name)
        out = self._out / start.name
        return boot.Config(
            machine=sensitivity.VARIANTS[start.machine.variant](m), cpus=start.machine.cpus,
            kernel=self._kernels[start.boot.kernel], qemu=self._qemu, initramfs=self._archive,
            out=out, job=start.job().archive(), mode="deterministic", append=start.boot.append,
            trace=False, faults=out / "faults" if start.boot.faults else None, limits=_LIMITS)

    def key(self, start: Start) -> str:
        """Of everything that determines what the guest will answer."""
        c = self.config(start)
        parts = (*(self.digests[name] for name in (start.boot.kernel, "qemu", "guest")),
                 boot.kernel_command_line(c), emulator.option(
                     c.machine, c.cpus, [faults.parse(start.boot.faults)] if start.boot.faults
                     else (), time=c.mode),
                 ssdt.source(c.machine, c.cpus), str(boot.cpu_options(c.machine, c.cpus, c.mode)),
                 start.job().script().decode())
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def measure(self, start: Start, kept_only: bool = False) -> tuple[Results, bool]:
        """And whether a guest was needed for it. @kept_only: nothing if one would be."""
        c, key = self.config(start), self.key(start)
        kept = boot.kept(c.out, key)
        if not kept and kept_only:
            return {}, False
        if not kept:
            c.out.mkdir(parents=True, exist_ok=True)
            (c.out / "key").unlink(missing_ok=True)
            if c.faults:
                c.faults.write_text(start.boot.faults + "\n", encoding="ascii")
            reason = ""
            try:
                kept = boot.run(c)
            except GuestError as error:
                reason = str(error)
            else:
                (c.out / "key").write_text(key, encoding="ascii")
            if self._changed(start):
                (c.out / "key").unlink(missing_ok=True)
                return {cell: Failure("kernel, emulator or guest were built anew meanwhile", "")
                        for cell in start.cells}, True
        log = str(c.out / "console.log")
        if not kept:
            return {cell: Failure(reason, log) for cell in start.cells}, True
        results: Results = {}
        for name in dict.fromkeys(cell.setting.name for cell in start.cells):
            section = kept.answer.sections.get(name.replace(" ", "-"))
            results |= parse(start, name, section.text if section else "", c.machine.tsc_khz,
                             str(c.out / "results.log"))
        return results, kept.seconds > 0

    def run(self, cells: Iterable[Cell], jobs: int,
            tell: Callable[[int, int, Start, bool], None], kept_only: bool = False) -> Results:
        """The longest first, so that the end is not one guest alone."""
        todo = sorted(starts(cells), key=lambda s: -len(s.cells) * s.machine.cpus)
        done: Results = {}
        lock, number = threading.Lock(), 0

        def one(start: Start) -> None:
            nonlocal number
            results, measured = self.measure(start, kept_only)
            with lock:
                done.update(results)
                number += 1
                tell(number, len(todo), start, measured)
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(one, todo))
        return done


class Bar:
    """A bar on a terminal, a line per guest elsewhere."""

    WIDTH = 30

    def __init__(self, shown: bool = True) -> None:
        self._begin, self._measured, self._shown = time.monotonic(), 0, shown

    def __call__(self, number: int, total: int, start: Start, measured: bool) -> None:
        seconds = time.monotonic() - self._begin
        self._measured += measured
        if not self._shown:
            return
        text = f"{number} of {total} guests, {seconds / 60:.0f} min"
        if self._measured and number < total:
            text += f", about {seconds / self._measured * (total - number) / 60:.0f} more"
        if sys.stdout.isatty():
            full = self.WIDTH * number // total
            print(f"\r[{'#' * full}{'.' * (self.WIDTH - full)}] {text}  ",
                  end="\n" if number == total else "", flush=True)
        else:
            print(f"  {text}: {start.name}{'' if measured else ' (kept)'}", flush=True)


def images() -> dict[str, Path]:
    return {name: paths.kernel(name) for name in ("base", "patched")}
