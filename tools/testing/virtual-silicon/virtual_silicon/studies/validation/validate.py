# SPDX-License-Identifier: GPL-2.0
"""The model against published measurements: a table and a picture."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ... import cli, paths
from ...errors import Fail, GuestError, UsageError
from ...guest import boot, initramfs, options, pool
from ...guest.job import Job
from ...machine import adopt
from ...readers import plot
from ...text import show, write_csv
from . import measurements, probe, reproduce
from .measurements import Row
from .reproduce import Experiment, Guest

#: A prediction counts as met within this share of the published value, and of all
#: predictions so many have to be.
TOLERANCE = 0.25
GOAL = 0.8

HEAD = ("part", "machine", "quantity", "experiment", "model", "published", "unit", "error",
        "number", "remark")
NOTE = ("Each row is one of data/measurements.csv, which has sources and methods. put in: the "
        "number from which a coefficient of the machine file was taken; not repeated: the remark "
        "says why. A bound or a range counts as met within it; of several values in a row the "
        "worst counts. Kernel code takes 1.5 cycles per instruction and user code 8 unless the "
        "machine file says otherwise; guests run in steps of 10 us.")

PREDICTED, PUT_IN, NOT_REPEATED = "predicted", "put in", "not repeated"


@dataclass(frozen=True)
class Verdict:
    """One row: what the model has for it, and how far off that is."""

    row: Row
    number: str			# predicted, put in, not repeated
    machine: str = ""
    how: str = ""		# the experiment; why there is none
    model: tuple[float | None, ...] = ()
    error: float | None = None
    put_in: str = ""

    @property
    def off(self) -> bool:
        return self.error is not None and abs(self.error) > TOLERANCE


def job(steps: Iterable[str]) -> Job:
    job = Job()
    job.step("prelude", reproduce.PRELUDE)
    for number, step in enumerate(steps):
        job.step(f"step-{number}", f"fresh; {step}")
    return job


def _outputs(result: boot.Result, steps: Sequence[str]) -> dict[str, str | Fail]:
    out: dict[str, str | Fail] = {}
    for number, step in enumerate(steps):
        text = result.text(f"step-{number}")
        failed = result.step_status(f"step-{number}")
        last = (text.splitlines() or ["nothing said"])[-1]
        out[step] = GuestError(last) if failed else text
    return out


#: What boots guests; tests put their own in its place.
Boots = Callable[[Sequence[tuple[Guest, Job]]], Sequence[boot.Result | Fail | None]]


def run_guests(wanted: Iterable[Experiment],
               start: Boots) -> dict[Guest, dict[str, str | Fail]]:
    """Each guest once, with all steps that its rows need."""
    steps: dict[Guest, dict[str, None]] = {}
    for experiment in wanted:
        steps.setdefault(experiment.guest, {}).update(dict.fromkeys(experiment.steps))
    answers = start([(guest, job(todo)) for guest, todo in steps.items()])
    return {guest: _outputs(answer, list(todo)) if isinstance(answer, boot.Result)
            else dict.fromkeys(todo, answer or GuestError("not started"))
            for (guest, todo), answer in zip(steps.items(), answers)}


#: What taking numbers from what a guest said may end with.
UNREAD = (GuestError, UsageError, ValueError, ArithmeticError, LookupError)


def _taken_from(found: Experiment, texts: list[str], model: tuple[float | None, ...]) -> str:
    """The coefficients, if a row of the repository that was put in is this number of the model:
    then this row, too, says nothing of the model, whoever measured it."""
    for row in measurements.read(measurements.DATA):
        other = reproduce.experiment(row) if row.put_in else ""
        if isinstance(other, Experiment) and (other.guest, other.steps) == (found.guest,
                                                                            found.steps):
            with suppress(*UNREAD):
                if tuple(other.value(texts)) == model:
                    return row.put_in
    return ""


def _verdict(row: Row, put_in: str | None, found: Experiment | str,
             outputs: dict[Guest, dict[str, str | Fail]]) -> Verdict:
    """@put_in: None of a row that the repository does not have."""
    if isinstance(found, str):
        return Verdict(row, NOT_REPEATED, how=found, put_in=put_in or "")
    texts = []
    for step in found.steps:
        text = outputs[found.guest][step]
        if isinstance(text, Fail):
            return Verdict(row, NOT_REPEATED, found.guest.machine, f"failed: {text}",
                           put_in=put_in or "")
        texts.append(text)
    try:
        model = tuple(found.value(texts))
    except UNREAD as error:
        return Verdict(row, NOT_REPEATED, found.guest.machine, f"failed: {error}",
                       put_in=put_in or "")
    if put_in is None:
        put_in = row.put_in or _taken_from(found, texts, model)
    off = row.error(model)
    number = NOT_REPEATED if off is None else PUT_IN if put_in else PREDICTED
    return Verdict(row, number, found.guest.machine, found.how, model, off, put_in)


def judge(rows: Sequence[Row], start: Boots) -> list[Verdict]:
    """All rows.  Which numbers were put in is known from the repository's own file,
    whichever file `rows` are from and however they are worded there."""
    put_in = {row.key: row.put_in for row in measurements.read(measurements.DATA)}
    found = [reproduce.experiment(row) for row in rows]
    outputs = run_guests((m for m in found if isinstance(m, Experiment)), start)
    return [_verdict(row, put_in.get(row.key), one, outputs)
            for row, one in zip(rows, found)]


def counts(verdicts: Sequence[Verdict]) -> dict[str, int]:
    predicted = [v for v in verdicts if v.number == PREDICTED]
    return {"rows": len(verdicts), "predicted": len(predicted),
            "within": sum(not v.off for v in predicted),
            "put in": sum(v.number == PUT_IN for v in verdicts),
            "put in, off": sum(v.number == PUT_IN and v.off for v in verdicts),
            "not repeated": sum(v.number == NOT_REPEATED for v in verdicts)}


def summary(verdicts: Sequence[Verdict]) -> str:
    n = counts(verdicts)
    share = f" ({100 * n['within'] / n['predicted']:.0f} %)" if n["predicted"] else ""
    return (f"{n['rows']} rows: {n['predicted']} predicted, {n['within']} of them{share} within "
            f"{TOLERANCE:.0%}; {n['put in']} put in; {n['not repeated']} not repeated")


def met(verdicts: Sequence[Verdict]) -> bool:
    n = counts(verdicts)
    return n["within"] >= GOAL * n["predicted"]


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def _model(v: Verdict) -> str:
    separator = ".." if len(v.model) == 2 and len(v.row.bands) == 1 else " / "
    return separator.join(_shown(value) for value in v.model)


def _remark(v: Verdict) -> str:
    words = [v.how] if v.error is None else []
    words += [f"from it: {v.put_in}"] if v.put_in else []
    if v.off:
        words.append(reproduce.why_off(v.row))
    return "; ".join(word for word in words if word)


def _what(row: Row) -> str:
    return f"{row.quantity} ({row.conditions})" if row.conditions else row.quantity


def table(verdicts: Sequence[Verdict]) -> list[list[str]]:
    """Compared rows, then those that were not compared."""
    return [[v.row.cpu, v.machine, _what(v.row), "" if v.error is None else v.how, _model(v),
             v.row.text, v.row.unit, "" if v.error is None else f"{v.error:+.1%}", v.number,
             _remark(v)]
            for v in sorted(verdicts, key=lambda v: v.number == NOT_REPEATED)]


def _points(verdicts: Iterable[Verdict]) -> list[tuple[float, float]]:
    """(published, model) of each number that has a place on logarithmic axes."""
    out = []
    for v in verdicts:
        bands = v.row.bands
        ends = [bands[0].low, bands[0].high] if len(bands) == 1 and len(v.model) == 2 else \
            [(band.low + band.high) / 2 for band in bands]
        out += [(abs(end), abs(value)) for end, value in zip(ends, v.model)
                if value and end and value * end > 0]
    return out


def picture(verdicts: Sequence[Verdict], path: Path) -> None:
    """Predicted over published, with the band that counts as met."""
    pyplot = plot.load_pyplot()
    figure, axes = pyplot.subplots(figsize=(6.5, 6))
    edges = (0.05, 5000)
    axes.fill_between(edges, [x * (1 - TOLERANCE) for x in edges],
                      [x * (1 + TOLERANCE) for x in edges], color="#dddddd",
                      label=f"within {TOLERANCE:.0%}")
    axes.plot(edges, edges, color="#888888", linewidth=0.7)
    for number, style in ((PUT_IN, {"facecolors": "none", "edgecolors": "#d95f02"}),
                          (PREDICTED, {"color": "#1b6ca8"})):
        points = _points(v for v in verdicts if v.number == number and v.error is not None)
        if points:
            axes.scatter(*zip(*points), s=22, label=number, zorder=3, **style)
    axes.set(xscale="log", yscale="log", xlim=edges, ylim=edges,
             xlabel="published (us, ms, W, GHz, %)", ylabel="model")
    axes.legend(loc="upper left", frameon=False)
    figure.savefig(path, dpi=110, bbox_inches="tight")
    pyplot.close(figure)


def write(verdicts: Sequence[Verdict], directory: Path) -> None:
    """Table and picture."""
    write_csv(directory / "validation.csv", HEAD, table(verdicts), NOTE)
    picture(verdicts, directory / "validation.png")


def add(sub: cli.Commands) -> None:
    one = sub.add_parser("validate", help="the model against published measurements: a "
                         "table and a picture")
    one.add_argument("--measurements", type=Path, default=measurements.DATA,
                     help="file of rows (default: %(default)s)")
    one.add_argument("--rows", default="", metavar="REGEX", help="only rows whose part, "
                     "kind or quantity match")
    one.add_argument("--probe", type=Path, metavar="FILE", help="what cpuwhy probe measured on a "
                     "machine, beside what it measures on the model made of that, instead")
    one.add_argument("--kernel", help="patched, base or a bzImage (default: patched; with --probe "
                     "as on the machine)")
    options.pool_options(one)
    one.add_argument("-o", "--output", type=Path, default=paths.BUILD / "validate",
                     help="directory for validation.csv and validation.png")
    one.add_argument("--work", type=Path, default=paths.BUILD / "validate",
                     help="what guests answered: the same start is not made again")
    one.set_defaults(run=command)


def command(args: argparse.Namespace) -> int:
    """1 if the goal is not met."""
    if args.probe:
        return _probed(args)
    try:
        wanted = re.compile(args.rows)
    except re.error as error:
        raise UsageError(f"--rows {args.rows}: {error}") from error
    rows = [row for row in measurements.read(args.measurements)
            if wanted.search(f"{row.cpu} {row.kind} {row.quantity}")]
    if not rows:
        raise UsageError(f"{args.measurements}: no row matches {args.rows!r}")
    plot.load_pyplot()	# or it is missed once all guests have ended
    kernel, work = paths.kernel(args.kernel or "patched"), args.work.resolve()
    guests = pool.Guests(work, initramfs.ensure(work / "guest"), paths.qemu(args.qemu), args.jobs)
    verdicts = judge(rows, lambda todo: guests.outcomes([
        pool.Guest(guest.name, guest.build(), guest.cpus, kernel, job, guest.append)
        for guest, job in todo]))
    write(verdicts, args.output)
    print(summary(verdicts))
    print(args.output / "validation.csv")
    return 0 if met(verdicts) else 1


def _probed(args: argparse.Namespace) -> int:
    kernel = (paths.kernel(args.kernel) if args.kernel
              else probe.kernel_of(adopt.read(args.probe)))
    found = probe.run(args.probe, kernel, paths.qemu(args.qemu), args.work.resolve())
    show(f"{args.probe.name}: measured, and by the model", list(probe.HEAD), found)
    return 0
