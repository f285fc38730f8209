# SPDX-License-Identifier: GPL-2.0
"""Runs the cells of a plan in guests, and keeps what they said."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import Fail
from ..guest import boot, initramfs
from ..guest.job import Job
from ..guest.pool import Guest, Guests
from ..loads import RECIPE
from ..machine import machine
from ..text import read_csv, write_csv
from . import kernels, variants
from .plan import COMMON, Cell, Column, Plan, Start, starts

HERE = Path(__file__).resolve().parent
SCRIPT = ". /usr/lib/vs/cells.sh"
#: Of all guests: the drivers that leave the clock to governors.
APPEND = "intel_pstate=passive amd_pstate=passive cpufreq.default_governor=schedutil"
#: A CPU that another one wakes starts at the next step of time, so steps are short.
QUANTUM_NS = 1000
#: What all guests' shell may call.
COMMON_SHELL = initramfs.GUEST / "guest.sh"
#: Of a host's core, until the first cell.
BOOT_S = 8
#: What the line of a cell has, before what the load prints.
LINE = ("status", "s", "J", "amount", "aperf", "mperf", "changes", "above", "below", "waited ns",
        "waits")


@dataclass(frozen=True)
class Sample:
    """One cell: what was measured, by name. @made: made_from() of its guest."""

    cell: Cell
    of: dict[str, float]
    made: str = ""


@dataclass
class Measured:
    """@failed: why cells have no sample, a line each."""

    samples: list[Sample] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def parse(cell: Cell, words: Sequence[str], tsc_khz: int) -> Sample:
    """The words behind the cell's name; ValueError says what is wrong with them."""
    if not words:
        raise ValueError("the guest did not come to it")
    if float(words[0]):
        raise ValueError(f"status {words[0]}")
    if len(words) != (wanted := len(LINE) + len(cell.load.prints)):
        raise ValueError(f"{len(words)} numbers instead of {wanted}: the load prints "
                         f"{', '.join(cell.load.prints) or 'none'}")
    raw = dict(zip(LINE, map(float, words)))
    own = {name: float(word) for name, word in zip(cell.load.prints, words[len(LINE):])
           if name != "-"}
    if min(raw["s"], raw["mperf"], *[raw["J"]] * cell.power) <= 0:
        raise ValueError("time, energy or MPERF is 0")
    rate = cell.load.better == "more"
    result = own.pop("result", raw["amount"] / raw["s"] if rate else raw["s"])
    if not result > 0:
        raise ValueError(f"the result is {result:g}")
    watts = own.pop("W", raw["J"] / raw["s"])
    # Of a unit of work, or of the whole load
    power = {"W": watts, "mJ": 1000 * (watts / result if rate else raw["J"])}
    return Sample(cell, {
        "result": result, **(power if cell.power else {}),
        "MHz": raw["aperf"] / raw["mperf"] * tsc_khz / 1000,
        "wait us": raw["waited ns"] / max(raw["waits"], 1) / 1000,
        **{f"{name}/s": raw[name] / raw["s"] for name in ("changes", "above", "below")}, **own})


def setting(column: Column) -> str:
    """Shell that sets a column up."""
    words = (f"governor={column.governor}", f"idle={column.idle}", *column.set)
    return "settings " + " ".join(map(shlex.quote, words))


def line(cell: Cell) -> str:
    """Shell that measures a cell."""
    return "cell " + shlex.join((cell.load.name, cell.parameter, str(cell.seed),
                                 str(len(cell.load.prints)), cell.load.run))


def job(start: Start) -> Job:
    """A step per column."""
    out = Job()
    before = dict.fromkeys(cell.load.before for cell in start.cells if cell.load.before)
    out.step("prepare", " && ".join((SCRIPT, "prepare", *before)))
    for column in dict.fromkeys(cell.column for cell in start.cells):
        of = [line(cell) for cell in start.cells if cell.column == column]
        out.step(column.name, "\n".join((SCRIPT, f"{setting(column)} || return", *of)))
    return out


def cost(start: Start) -> float:
    """Seconds of a core, about: of the boot, and of the cells."""
    return BOOT_S * max(start.cpus / 16, 1) + sum(cell.load.seconds for cell in start.cells)


def guest(start: Start, plan: Plan) -> Guest:
    m, load = machine.load(start.machine), start.cells[0].load
    m = replace(m, time=replace(
        m.time, user_cycles_per_1000_insns=load.cycles or m.time.user_cycles_per_1000_insns,
        memory_permille=load.memory or m.time.memory_permille, quantum_ns=QUANTUM_NS))
    if start.cells[0].packages:
        # One without a busy core draws what the uncore of the busy one does: 45.0 W beside
        # 46.2 W on Cascade Lake (data/measurements.csv).
        m = replace(m, power=replace(m.power, uncore_w=m.power.uncore_w * m.packages))
    m = variants.changed(variants.changed(m, start.boot.variant), start.cells[0].variant)
    image, modules = kernels.image(plan.kernels[start.boot.kernel])
    made = job(start)
    made.files.update(modules)
    return Guest(start.name, m, start.cpus, image, made, f"{APPEND} {start.boot.append}".strip(),
                 start.boot.faults, cost=cost(start))


def helpers(shell: str, script: str) -> list[str]:
    """Functions of @script that @shell calls, and those that these call."""
    found = dict(re.findall(r"^(\w+)\(\)\n(\{\n.*?^\})", script, re.M | re.S))
    todo = [shell]
    out: dict[str, str] = {}
    for text in todo:
        for name in found.keys() & set(re.findall(r"\w+", text)) - out.keys():
            out[name] = f"{name}()\n{found[name]}"
            todo.append(found[name])
    return [out[name] for name in found if name in out]


def made_from(guest: Guest, guests: Guests) -> str:
    """Digest of kernel, emulator, machine, boot, shell, and the sources of programs that the shell
    names; of guest.sh of what it calls."""
    shell = guest.job.script().decode()
    items = [item for item in (*initramfs.read_recipe(), *RECIPE)
             if not item.target.endswith(COMMON_SHELL.name)]
    scripts = [Path(item.source).read_bytes() for item in items if item.kind == "own"]
    text = shell + b"".join(scripts).decode(errors="replace")
    programs = [Path(item.source).read_bytes() for item in items if item.kind == "compile"
                and re.search(rf"\b{Path(item.target).name}\b", text)]
    called = "".join(helpers(text, COMMON_SHELL.read_text(encoding="utf-8")))
    return guests.key(guest, hashlib.sha256(
        b"".join((*scripts, *programs, called.encode()))).hexdigest())[:8]


def read(start: Start, answer: boot.Result, tsc_khz: int, out: Measured, made: str = "") -> None:
    """The lines of each column's step. A cell without a good one has failed."""
    for column in dict.fromkeys(cell.column for cell in start.cells):
        section = answer.answer.sections.get(column.name)
        lines = section.lines if section else []
        found = {tuple(words[1:4]): words[4:] for words in map(str.split, lines)
                 if words[:1] == ["cell"]}
        said = " | ".join(text for text in lines if not text.startswith("cell "))[-300:]
        for cell in (c for c in start.cells if c.column == column):
            words = found.get((cell.load.name, cell.parameter or "-", str(cell.seed)), [])
            try:
                out.samples.append(replace(parse(cell, words, tsc_khz), made=made))
            except ValueError as error:
                out.failed.append(f"{cell}: {error}" + f" ({said})" * bool(said))


def archive(out: Path) -> Path:
    """What guests have in common."""
    return initramfs.ensure(out / "guest", None, RECIPE)


def measure(cells: Sequence[Cell], plan: Plan, out: Path, qemu: Path, jobs: int,
            kept_only: bool = False, known: Iterable[Sample] = ()) -> Measured:
    """The longest guests first. A guest that failed is named, and the others go on. @known:
    samples of another run; a guest that would measure the same is not booted."""
    guests, found = Guests(out, archive(out), qemu, jobs), Measured()
    old = {(sample.cell, sample.made): sample for sample in known}
    todo = []
    for start in starts(cells):
        g = guest(start, plan)
        made = made_from(g, guests)
        if all((cell, made) in old for cell in start.cells):
            found.samples += [old[cell, made] for cell in start.cells]
        else:
            todo.append((start, g, made))
    todo.sort(key=lambda three: -three[1].cost)
    answers = guests.outcomes([g for _, g, _ in todo], kept_only)
    for (start, g, made), answer in zip(todo, answers):
        if isinstance(answer, boot.Result):
            read(start, answer, g.machine.tsc_khz, found, made)
        else:
            why = f"{answer} ({out / g.name}/console.log)" if isinstance(answer, Fail) else \
                "not measured yet"
            found.failed.append(f"{g.name}: {len(start.cells)} cells: {why}")
    order = {cell: n for n, cell in enumerate(cells)}
    found.samples.sort(key=lambda sample: order[sample.cell])
    return found


SAMPLE = ("part", "machine", "load", "column", "seed", "made")


def save(samples: Sequence[Sample], file: Path) -> None:
    """A row per cell: all tables follow from these."""
    measures = (*COMMON, *sorted({name for sample in samples for name in sample.of} - {*COMMON}))
    write_csv(file, (*SAMPLE, *measures), [
        [*sample.cell.key, str(sample.cell.seed), sample.made,
         *(f"{sample.of[name]:.6g}" if name in sample.of else "" for name in measures)]
        for sample in samples], "A row per cell: what was measured; lab/README.md says what.")


def saved(cells: Iterable[Cell], file: Path, besides: Iterable[Cell] = ()) -> Measured:
    """Of these cells what is in the file, which has no others of their parts but @besides."""
    todo: dict[tuple[str, ...], Cell] = {(*cell.key, str(cell.seed)): cell for cell in cells}
    parts = {key[0] for key in todo}
    known = {(*cell.key, str(cell.seed)) for cell in besides}
    out = Measured()
    for row in read_csv(file):
        *key, made = (row.pop(name) for name in SAMPLE)
        if cell := todo.pop(tuple(key), None):
            out.samples.append(Sample(cell, {name: float(value) for name, value in row.items()
                                             if value}, made))
        elif key[0] in parts and tuple(key) not in known:
            out.failed.append(f"{file}: {'/'.join(key[:4])}, seed {key[4]}: not in the plan")
    out.failed += [f"{cell}: not in {file}" for cell in todo.values()]
    return out
