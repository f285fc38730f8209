# SPDX-License-Identifier: GPL-2.0
"""Numbers in sentences, and whether they still hold.

claims.toml has a table for each document: a sentence in which N stands for each number, and where
each of these is measured. A number of the laboratory holds while it is inside the interval of the
samples, so that a document changes only where it has become wrong; one of another table in results/
has to be the same. A claim also fails if its sentence or what it was measured by is gone.
"""

from __future__ import annotations

import fnmatch
import functools
import re
import sqlite3
import statistics
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import paths
from ..errors import UsageError
from ..text import read_csv
from . import plan, results, store, table

FILE = Path(__file__).resolve().parent / "claims.toml"
SAMPLES = tuple(file for file in (results.DIR / name for name in results.SAMPLES.values())
                if file.exists())
#: What a number is of a measured one, by the words before its name.
FORMS: dict[str, Callable[[float], float]] = {
    "": lambda x: x, "thousand": lambda x: x / 1000, "%": lambda x: 100 * x,
    "% more": lambda x: 100 * x - 100, "% less": lambda x: 100 - 100 * x,
    "times as fast": lambda x: 1 / x}
#: Of several rows, by patterns like shell's
ENDS: dict[str, Callable[[Sequence[float]], float]] = {"least": min, "most": max}
_NAME = re.compile(rf"(?:({'|'.join(ENDS)}) )?(?:({'|'.join(filter(None, FORMS))}) )?"
                   r"([^ /]+)/([^/]+)/([^ /]+)/([^ /]+)(?: (?!over )(.+?))?(?: over (\S+))?")
#: Measured, most likely: with a decimal point, with thousands, of per cent
_LIKELY = re.compile(r"(?<![\w.,-])(?:\d[\d,]*(?:\.\d+)+(?![\w.])|\d+(?= %)|\d{1,3}(?:,\d{3})+)")
#: Tables of pages.py, code, links
_NO_SENTENCE = re.compile(r"^<!-- (?:lab|csv): .*?^<!-- end -->$|^    .*?$|```.*?```|`[^`]*`|"
                          r"\]\([^)]*\)", re.M | re.S)
_SIGNS = "+-−"
_NUMBER = r"([-+−]?\d[\d,]*(?:\.\d+)?)"

Key = tuple[str, str, str, str, str]
Samples = Mapping[Key, Sequence[float]]


@dataclass(frozen=True)
class Claim:
    """@of: NAME for each N of @says."""

    file: str
    says: str
    of: tuple[str, ...]

    def found(self, text: str) -> list[re.Match[str]]:
        """Over the ends of lines, and what begins those of comments and patches."""
        words = (_NUMBER.join(map(re.escape, re.split(r"\bN\b", word)))
                 for word in self.says.split())
        return list(re.finditer(r"(?:\s*\n[#*+>]\s*|\s+)".join(words), text))


@dataclass(frozen=True)
class Number:
    """What was measured, and between which values it may be said to be."""

    value: float
    low: float
    high: float

    def holds(self, said: str) -> bool:
        """To the digits that are said."""
        half = 0.5000001 * 10.0 ** -len(said.partition(".")[2])
        return self.low - half <= parsed(said) <= self.high + half


@dataclass(frozen=True)
class Found:
    """A number of a document. @where: of its text; @now: None if it is in no table."""

    claim: Claim
    of: str
    said: str
    where: slice
    now: Number | None

    @property
    def wrong(self) -> bool:
        return self.now is not None and not self.now.holds(self.said)

    @property
    def new(self) -> str:
        """As it is to be said."""
        assert self.now
        digits = len(self.said.partition(".")[2])
        sign, comma = "+" * (self.said[0] in _SIGNS), "," * ("," in self.said)
        return f"{self.now.value:{sign}{comma}.{digits}f}"

    def __str__(self) -> str:
        if not self.now:
            return f"not measured: {self.said}: {self.of}"
        return (f"{'OUTSIDE' if self.wrong else 'holds'}: {self.said}: {self.of} is {self.new} "
                f"({self.now.low:.4g} to {self.now.high:.4g})")


def parsed(said: str) -> float:
    return float(said.replace(",", "").replace("−", "-"))


def load(file: Path = FILE) -> list[Claim]:
    out = []
    try:
        documents = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file.name}: {error}") from error
    for document, rows in documents.items():
        for says, of in rows.items():
            claim = Claim(document, says, tuple(of))
            if len(of) != (wanted := len(re.findall(r"\bN\b", says))) or not of:
                raise UsageError(f"{file.name}: {document}: {says}: {wanted} numbers, {len(of)} "
                                 "names")
            for name in of:
                if not name.startswith("select ") and not _NAME.fullmatch(name):
                    raise UsageError(f"{file.name}: {document}: {name}: neither a select nor "
                                     "PART/MACHINE/LOAD/COLUMN [MEASURE] [over COLUMN], after "
                                     f"{', '.join((*ENDS, *filter(None, FORMS)))} or nothing")
            out.append(claim)
    return out


def unclaimed(name: str, claims: Iterable[Claim], text: str) -> list[str]:
    """Numbers of sentences that look measured and have no claim."""
    covered = [match.span() for claim in claims if claim.file == name
               for match in claim.found(text)]
    covered += [match.span() for match in _NO_SENTENCE.finditer(text)]
    return [match[0] for match in _LIKELY.finditer(text)
            if not any(start <= match.start() < end for start, end in covered)]


def database(directory: Path = results.DIR) -> sqlite3.Connection:
    """A table per CSV file of results/, by its path without .csv. Numbers are numbers."""
    out = sqlite3.connect(":memory:")
    for file in sorted(directory.rglob("*.csv")):
        if file.name.startswith("samples"):
            continue
        rows = read_csv(file)
        head = rows.fieldnames or ()
        name = file.relative_to(directory).with_suffix("").as_posix()
        out.execute(f"create table [{name}] ({', '.join(f'[{word}]' for word in head)})")
        out.executemany(f"insert into [{name}] values ({', '.join('?' * len(head))})",
                        ([value(row[word]) for word in head] for row in rows))
    return out


def value(cell: str) -> str | float:
    try:
        return float(cell.removesuffix("%"))
    except ValueError:
        return cell


def measurements(whole: plan.Plan, files: Iterable[Path]) -> list[store.Sample]:
    cells = plan.cells(whole, list(whole.parts))
    return [sample for file in files for sample in store.saved(cells, file).samples]


def samples(whole: plan.Plan, files: Iterable[Path]) -> Samples:
    """What all seeds measured. A part's column without any has the rows that it will have, without
    numbers: a run may be of some kernels alone."""
    found: dict[Key, list[float]] = defaultdict(list)
    done = set()
    for sample in measurements(whole, files):
        done.add((sample.cell.part, sample.cell.column))
        for measure, of in sample.of.items():
            found[*sample.cell.key, measure].append(of)
    for cell in plan.cells(whole, list(whole.parts)):
        if (cell.part, cell.column) not in done:
            for measure in (*plan.COMMON, *cell.load.prints):
                found[*cell.key, measure] = []
    return found


def ratio(values: Sequence[float], base: Sequence[float]) -> Number | None:
    row = table.Row(("", "", "", ""), "", tuple(values), "over", tuple(base))
    if (middle := row.ratio) is None:
        return None
    if interval := row.interval:
        return Number(middle, interval.low, interval.high)
    return Number(middle, middle * (1 - table.NEAR), middle * (1 + table.NEAR))


def median(values: Sequence[float]) -> Number:
    return Number(statistics.median(values), min(values) * (1 - table.NEAR),
                  max(values) * (1 + table.NEAR))


def measured(name: str, of: Samples) -> Number | None:
    """UsageError: there is no such row. None: it has no numbers."""
    match = _NAME.fullmatch(name)
    assert match
    end, form, part, machine, load_, column, measure, over = match.groups()
    wanted = (part, machine, load_, column, measure or "result")
    keys = [key for key in of if all(map(fnmatch.fnmatchcase, key, wanted))] if end else \
        [wanted] * (wanted in of)
    pairs = [(key, (*key[:3], over, key[4])) for key in keys if key[3] != over]
    if not keys or over and any(base not in of for _, base in pairs):
        raise UsageError(f"no row {name}")
    found = [ratio(of[key], of[base]) if over else median(of[key]) if of[key] else None
             for key, base in pairs]
    rows = [number for number in found if number]
    if len(rows) < len(found):
        return None
    change, pick = FORMS[form or ""], ENDS.get(end or "", min)
    if form in ("% less", "times as fast"):		# which turn them round
        rows = [Number(row.value, row.high, row.low) for row in rows]
    return Number(*(pick([change(getattr(row, what)) for row in rows])
                    for what in ("value", "low", "high")))


def selected(query: str, tables: sqlite3.Connection) -> Number:
    """One row with the number, or with its least and most."""
    try:
        row, = tables.execute(query).fetchall()
    except (sqlite3.Error, ValueError) as error:
        raise UsageError(f"no row: {query}: {error}") from error
    if any(not isinstance(cell, int | float) for cell in row):
        raise UsageError(f"no number: {query}: {row}")
    return Number(statistics.fmean(row), min(row), max(row))


def problems(of: Iterable[Found | str]) -> list[str]:
    return [one if isinstance(one, str) else f"{one.claim.file}: {one.claim.says}: {one}"
            for one in of if isinstance(one, str) or one.wrong]


class Check:
    """Claims, beside what was measured."""

    def __init__(self, claims: Sequence[Claim], of: Samples, tables: sqlite3.Connection,
                 top: Path = paths.ROOT) -> None:
        self.claims, self.of, self.tables, self.top = claims, of, tables, top
        self.text = functools.cache(lambda name: (top / name).read_text(encoding="utf-8"))

    def number(self, name: str) -> Number | None:
        return selected(name, self.tables) if name.startswith("select ") else measured(
            name, self.of)

    def __iter__(self) -> Iterator[Found | str]:
        """Each number, or what is wrong with the claim."""
        for claim in self.claims:
            try:
                matches = claim.found(self.text(claim.file))
            except OSError as error:
                yield f"{claim.file}: {error.strerror}"
                continue
            if len(matches) != 1:
                yield f"{claim.file}: says {len(matches)} times: {claim.says}"
                continue
            for i, name in enumerate(claim.of, 1):
                try:
                    now = self.number(name)
                except UsageError as error:
                    yield f"{claim.file}: {claim.says}: {error}"
                    continue
                yield Found(claim, name, matches[0][i], slice(*matches[0].span(i)), now)

    def problems(self) -> list[str]:
        return problems(self)

    def set(self) -> list[str]:
        """Writes the new number where the old one no longer holds, but one that is below 0 now,
        if it had no sign: its sentence is wrong as well. All others are for people to read."""
        changes: dict[str, list[Found]] = defaultdict(list)
        for one in self:
            if isinstance(one, Found) and one.wrong and (
                    one.new[0] != "-" or one.said[0] in _SIGNS):
                changes[one.claim.file].append(one)
        for name, found in changes.items():
            text = self.text(name)
            for one in sorted(found, key=lambda one: -one.where.start):
                before = text[:one.where.start]
                # Columns of a table stay where they are.
                width = len(one.said) if before.endswith("  ") else 0
                text = before + one.new.rjust(width) + text[one.where.stop:]
            (self.top / name).write_text(text, encoding="utf-8")
        self.text.cache_clear()
        return [f"{one.claim.file}: {one.claim.says}: {one.said} became {one.new}"
                for found in changes.values() for one in found]


def check(files: Iterable[Path]) -> Check:
    """Of this repository."""
    return Check(load(), samples(plan.read(), files), database())
