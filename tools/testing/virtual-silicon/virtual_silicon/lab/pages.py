# SPDX-License-Identifier: GPL-2.0
"""Tables in documents, from results/: the lines between "<!-- lab: ... -->" and "<!-- end -->".

    lab: PART over COLUMN; columns A B; loads X Y; measures M    what columns have over another's
    lab: PART; columns A B; loads X Y; measures M                medians
    lab: losers over A B                                         where judged columns are worse
    csv: FILE; columns A, B                                      a table of results/

columns, loads and measures (result mJ) may be left out.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from .. import paths
from ..errors import UsageError
from ..text import read_csv
from . import claims, plan, results, table

Rows = Sequence[table.Row]
_BLOCK = re.compile(r"^(<!-- (?:lab|csv): .*? -->\n)(.*?)(?=^<!-- end -->$)", re.M | re.S)
MEASURES = ("result", "mJ")
#: Of the order of the words of a mark
_WORDS = re.compile(r"<!-- (lab|csv): (\S+)(?: over ([^;]+))?(?:; columns ([^;]+))?"
                    r"(?:; loads ([^;]+))?(?:; measures ([^;]+))? -->\n")


def lines(head: Iterable[str], body: Iterable[Iterable[str]]) -> str:
    """Of Markdown."""
    head = list(head)
    return "".join(f"| {' | '.join(row)} |\n" for row in
                   (head, ["---"] * len(head), *body))


def shown(number: float) -> str:
    """Four digits."""
    rounded = float(f"{number:.4g}")
    return f"{rounded:,.0f}" if rounded >= 1000 else f"{rounded:g}"


def label(load: plan.Load, word: str) -> str:
    """What a load is called."""
    return load.words.get(word.partition(":")[2], f"`{word}`")


def named(word: str, part: plan.Part) -> str:
    """As samples call it: with the number for a share of the CPUs."""
    load, colon, parameter = word.partition(":")
    return load + colon + plan.number(parameter, part.cpus)


def grid(whole: plan.Plan, part: plan.Part, columns: Sequence[str], loads: Sequence[str],
         cell: Callable[[str, str, str], Iterable[str]], units: bool) -> str:
    """A row for each load of each machine. @cell: what it says of a machine, load and column."""
    def title(machine: str, word: str) -> str:
        load = whole.load(word, part.name)[0]
        return ", ".join([machine] * (len(part.machines) > 1) + [label(load, word)]
                         + [load.unit] * units)
    return lines(["", *columns], [
        [title(machine, word),
         *("; ".join(cell(machine, named(word, part), column)) for column in columns)]
        for machine in part.machines for word in loads])


def over(rows: Rows, whole: plan.Plan, part: plan.Part, base: str, columns: Sequence[str],
         loads: Sequence[str], measures: Sequence[str]) -> str:
    """Of a result how many times as fast, of all else the ratio; a star where it is worse."""
    by = {(row.key[1:], row.measure): row for row in rows
          if row.key[0] == part.name and row.over == base}

    def cell(machine: str, load: str, column: str) -> Iterator[str]:
        for measure in measures:
            row = by.get(((machine, load, column), measure))
            if row is None or row.ratio is None:
                yield "-"
                continue
            of = 1 / row.ratio if measure == "result" and row.less else row.ratio
            yield f"{of:.{1 if of >= 9.95 else 2}f}" + "*" * (row.verdict == "worse")
    return grid(whole, part, columns, loads, cell, units=False)


def medians(rows: Rows, whole: plan.Plan, part: plan.Part, columns: Sequence[str],
            loads: Sequence[str], measures: Sequence[str]) -> str:
    by = {(row.key[1:], row.measure): row.values for row in rows if row.key[0] == part.name}

    def cell(machine: str, load: str, column: str) -> Iterator[str]:
        for measure in measures:
            values = by.get(((machine, load, column), measure))
            yield shown(statistics.median(values)) if values else "-"
    return grid(whole, part, columns, loads, cell, units="result" in measures)


def losers(rows: Rows, whole: plan.Plan, references: Sequence[str]) -> str:
    """A row for each load and column, with what it loses of these measures."""
    found: dict[tuple[str, str, str, str], list[str]] = {}
    called = {(part.name, named(word, part)): label(whole.load(word, part.name)[0], word)
              for part in whole.parts.values() for word in part.loads}
    for row in table.losers(rows, whole):
        if row.over in references and row.measure in MEASURES and row.interval:
            of = row.interval
            name, machine, load, column = row.key
            found.setdefault((name, machine, called[name, load], column), []).append(
                f"{row.measure} {of.value:.2f} of {row.over} ({of.low:.2f} to {of.high:.2f})")
    return lines(["part", "machine", "load", "column", "loses"],
                 [[*key, "; ".join(said)] for key, said in found.items()])


def of_results(file: Path, columns: Sequence[str]) -> str:
    rows = list(read_csv(file))
    columns = columns or list(rows[0])
    if unknown := [name for name in columns if name not in rows[0]]:
        raise UsageError(f"{file.name}: no column {', '.join(unknown)}; there are: "
                         f"{', '.join(rows[0])}")
    return lines(columns, [[row[name] for name in columns] for row in rows])


def made(mark: str, whole: plan.Plan, rows: Rows | None, where: Path = results.DIR
         ) -> str | None:
    """The lines below a mark; None if nothing of it was measured."""
    if not (match := _WORDS.fullmatch(mark)):
        raise UsageError(f"{mark.strip()}: pages.py says what may be in it")
    kind, name, base, *lists = match.groups()
    if kind == "csv":
        return of_results(where / name, lists[0].split(", ") if lists[0] else [])
    columns, loads, measures = ((of or "").split() for of in lists)
    if rows is None:
        return None
    if name == "losers":
        return losers(rows, whole, (base or "").split())
    if name not in whole.parts:
        raise UsageError(f"{mark.strip()}: no part {name}; there are: {', '.join(whole.parts)}")
    part = whole.parts[name]
    for what, words, known in (("column", columns, part.columns), ("load", loads, part.loads),
                               ("column that it is over", (base or "").split(), part.over)):
        if unknown := [word for word in words if word not in known]:
            raise UsageError(f"{mark.strip()}: no {what} {', '.join(unknown)}; there are: "
                             f"{', '.join(known)}")
    if not any(row.key[0] == name for row in rows):
        return None
    columns = columns or [column for column in part.columns if column != base]
    loads, measures = loads or list(part.loads), measures or list(MEASURES)
    if base:
        return over(rows, whole, part, base, columns, loads, measures)
    return medians(rows, whole, part, columns, loads, measures)


def filled(text: str, made_: Callable[[str], str | None]) -> str:
    """With all tables as they are now."""
    def block(match: re.Match[str]) -> str:
        now = made_(match[1])
        return match[1] + (match[2] if now is None else now)
    return _BLOCK.sub(block, text)


def fill(documents: Iterable[Path], samples: Sequence[Path] = claims.SAMPLES,
         write: bool = True) -> list[Path]:
    """Documents whose tables were others."""
    whole = plan.read()
    rows = table.rows(claims.measurements(whole, samples), whole) if samples else None
    changed = []
    for document in documents:
        text = document.read_text("utf-8")
        now = filled(text, lambda mark: made(mark, whole, rows))
        if now != text:
            changed.append(document)
            if write:
                document.write_text(now, "utf-8")
    return changed


def documents(top: Path = paths.ROOT) -> list[Path]:
    return [top / "README.md", *sorted((top / "docs").glob("*.md")),
            *sorted((top / "tools/testing").glob("*/README.md"))]
