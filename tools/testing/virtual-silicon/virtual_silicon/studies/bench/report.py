# SPDX-License-Identifier: GPL-2.0
"""Tables as CSV, and what is said on the terminal."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from ... import paths
from ...text import write_csv
from . import tables
from .cells import SEEDS
from .loads import HERE
from .runner import Failure, Results
from .tables import Grid, Measured, Table


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


def verdicts(measured: Measured) -> list[Grid]:
    of = tables.agreements(measured, tables.published(HERE / "published.csv"))
    return [tables.losers(measured), tables.agreement(of), tables.apart(of)]


def _write_tables(out: Path, measured: Measured, of: Iterable[Table], ends: Iterable[Grid],
                  made: str) -> None:
    write_csv(out / "cells.csv", tables.CELLS, measured.cells(), made,
              f"Means of {SEEDS} seeds, ± half the 95 % interval. The result of loads without a "
              "rate is their time in s, of cyclictest us.")
    write_csv(out / "summary.csv", tables.SUMMARY, tables.summaries(of, measured), made,
              "over: the setting that a ratio is of; ~: its 95 % interval contains 1. Of loads "
              "without a rate performance is their time, less is better; the geometric mean has "
              "their speed.")
    for grid in ends:
        if grid.file:
            write_csv(out / f"{grid.file}.csv", grid.rows[0], grid.rows[1:], made, grid.title)


def write(out: Path, results: Results, about: Mapping[str, object],
          of: Iterable[Table] = tables.TABLES, ends: Iterable[Grid] = ()) -> str:
    """What is said on the terminal. @ends: verdicts that follow the tables."""
    measured = Measured(results)
    ends = [*ends, tables.failures(results)]
    made = ", ".join(f"{k} {v}" for k, v in about.items() if k != "command")
    _write_tables(out / "tables", measured, of, ends, f"Made by {about.get('command')} from {made}")
    shown = [tables.summary(table, machine, measure, measured) for table in of
             for machine in table.machines for measure in table.measures
             if measure not in ("watts", "mhz")]
    lines = [grid.text() for grid in [*shown, *ends] if len(grid.rows) > 1]
    bad = sum(isinstance(result, Failure) for result in results.values())
    lines.append(f"{len(results)} cells, {bad} failed; {out / 'tables'}")
    return "\n\n".join(lines)
