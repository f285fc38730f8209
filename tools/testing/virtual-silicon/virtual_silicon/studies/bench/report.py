# SPDX-License-Identifier: GPL-2.0
"""report.html, tables as CSV and what is said on the terminal."""

from __future__ import annotations

import base64
import html
import io
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from ... import paths
from ...readers import plot
from ...text import write_csv
from . import tables
from .cells import Machine
from .loads import HERE, LOADS
from .runner import Failure, Results
from .tables import Grid, Measured, Table

_STYLE = """body { font-family: sans-serif; max-width: 75em; margin: 2em auto; }
table { border-collapse: collapse; margin: 1em 0; }
caption { text-align: left; font-weight: bold; padding: .3em 0; }
td, th { border: 1px solid #bbb; padding: .2em .6em; text-align: right; }
td:first-child, th:first-child { text-align: left; }
td.failed { background: #fbb; }"""

RATIOS = """Ratios of geometric means over all parameters of a load; ~ where the 95 % interval of
the ratio contains 1. Five seeds of each cell."""
MODEL = """All figures are the model's, in deterministic time: virtual silicon's README.md says
what it leaves out, studies/bench/README.md which coefficients were put in."""


def made_from(digests: Mapping[str, str], command: str) -> dict[str, object]:
    """Command and versions, so that a table tells how to make it anew."""
    try:
        # The repository of a container's user may belong to the user outside.
        commit = subprocess.run(["git", "-c", "safe.directory=*", "describe", "--always",
                                 "--dirty"], cwd=paths.ROOT, capture_output=True, text=True,
                                check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "unknown"
    return {"command": command, "repository": commit,
            **{name: digest[:16] for name, digest in digests.items()}}


def grids(measured: Measured, of: Iterable[Table]) -> dict[Table, list[Grid]]:
    """Those of what was measured."""
    found = {table: [tables.summary(table, machine, measure, measured)
                     for machine in table.machines for measure in table.measures]
             for table in of}
    return {table: some for table, grids in found.items()
            if (some := [grid for grid in grids if len(grid.rows) > 1])}


def _picture(table: Table, machine: Machine, measured: Measured) -> str:
    """Performance with its interval: a group of bars per load; higher is better."""
    pyplot = plot.load_pyplot()
    columns = [c for c in table.columns if any(c == s.name for s in machine.settings)]
    loads = [x for x in table.loads if measured.parameters(machine, table.baseline, x)]
    figure, axis = pyplot.subplots(figsize=(9, 2.8), dpi=90)
    for number, column in enumerate(columns):
        points = []
        for index, load in enumerate(loads):
            ratio = measured.ratio(machine, column, table.baseline, load, "performance")
            if ratio:
                bounds = (ratio.low, ratio.value, ratio.high)
                if not LOADS[load].rate:
                    bounds = (1 / ratio.high, 1 / ratio.value, 1 / ratio.low)
                points.append((index + 0.8 * (number + 0.5) / len(columns) - 0.4, *bounds))
        if points:
            x, low, middle, high = zip(*points, strict=True)
            axis.bar(x, middle, 0.8 / len(columns), label=column, yerr=[
                [m - b for m, b in zip(middle, low, strict=True)],
                [t - m for m, t in zip(middle, high, strict=True)]])
    axis.axhline(1, color="black", linewidth=0.8)
    axis.set_xticks(range(len(loads)), loads)
    axis.set_ylabel(f"performance over {table.baseline}")
    axis.set_title(f"{machine.name}: higher is better")
    axis.legend(fontsize=7, ncol=4)
    figure.tight_layout()
    data = io.BytesIO()
    figure.savefig(data, format="png")
    pyplot.close(figure)
    return f'<img src="data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}">'


def _html(grid: Grid) -> str:
    head, *rows = grid.rows
    cells = "".join("<tr>" + "".join(
        f"<td{' class=failed' * (c == 'failed')}>{html.escape(c)}</td>" for c in row) + "</tr>\n"
        for row in rows)
    top = "".join(f"<th>{html.escape(c)}</th>" for c in head)
    return (f"<table><caption>{html.escape(grid.title)}</caption>\n<tr>{top}</tr>\n{cells}"
            "</table>\n")


def verdicts(measured: Measured) -> list[Grid]:
    of = tables.agreements(measured, tables.published(HERE / "published.csv"))
    return [tables.losers(measured), tables.agreement(of), tables.apart(of),
            tables.sensitivity(measured)]


def _write_tables(out: Path, measured: Measured, of: Iterable[Table], ends: Iterable[Grid],
                  made: str) -> None:
    write_csv(out / "cells.csv", tables.CELLS, measured.cells(), made,
              "Means of five seeds, ± half the 95 % interval. The result of loads without a rate "
              "is their time in s, of cyclictest us.")
    write_csv(out / "summary.csv", tables.SUMMARY, tables.summaries(of, measured), made,
              "over: the setting that a ratio is of; ~: its 95 % interval contains 1. Of loads "
              "without a rate performance is their time, less is better; the geometric mean has "
              "their speed.")
    for grid in ends:
        if grid.file:
            write_csv(out / f"{grid.file}.csv", grid.rows[0], grid.rows[1:], made, grid.title)


def write(out: Path, results: Results, about: Mapping[str, object],
          of: Iterable[Table] = tables.TABLES, ends: Iterable[Grid] = (), host: str = "") -> str:
    """What is said on the terminal. @ends: verdicts that follow the tables. @host: a real
    machine that was measured."""
    measured = Measured(results)
    summaries = grids(measured, of)
    ends = [*ends, tables.failures(results)]
    made = ", ".join(f"{k} {v}" for k, v in about.items() if k != "command")
    page = [f"<!doctype html><meta charset=utf-8><title>make bench</title><style>{_STYLE}"
            f"</style>\n<h1>The published tables on {host or 'virtual silicon'}</h1>",
            f"<p>{RATIOS}{'' if host else ' ' + MODEL}</p>",
            f"<p>Made by {about.get('command')} from {html.escape(made)}</p>"]
    for table, some in summaries.items():
        page.append(f"<h2>{html.escape(table.title)}</h2>")
        page += [_picture(table, machine, measured) for machine in table.machines
                 if any(measured.parameters(machine, table.baseline, x) for x in table.loads)]
        page += map(_html, some)
    page += ["<h2>Verdicts</h2>", *map(_html, ends)]
    (out / "report.html").write_text("\n".join(page), encoding="utf-8")
    _write_tables(out / "tables", measured, of, ends, f"from {made}")
    lines = [grid.text() for some in summaries.values() for grid in some
             if not any(tables.TITLES[measure] in grid.title for measure in ("watts", "mhz"))]
    lines += [grid.text() for grid in ends if len(grid.rows) > 1]
    bad = sum(isinstance(result, Failure) for result in results.values())
    lines.append(f"{len(results)} cells, {bad} failed; {out / 'report.html'}")
    return "\n\n".join(lines)
