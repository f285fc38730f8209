# SPDX-License-Identifier: GPL-2.0
"""Claims and tables in documents: what no longer holds is found, and is set anew. Whether those of
this repository hold is in tools/series/tests/test_documents.py."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import pytest
from virtual_silicon.__main__ import main
from virtual_silicon.errors import UsageError
from virtual_silicon.lab import claims, pages, plan, store, table

PLAN = """
[kernel.base]
[column.base]
kernel = "base"
[column.ours]
kernel = "base"
set = ["feature=NO_X"]
[load.turns]
title = "turns"
takes = '\\d+|n/2'
run = "stopwatch turns $N"
prints = ["result", "p99"]
words = { 1 = "one turn" }
[load.end]
title = "ends"
run = "stopwatch end"
better = "less"
unit = "ms"
[part.one]
question = "?"
machines = ["sapphire-rapids"]
cpus = 4
columns = ["base", "ours"]
loads = ["turns:1", "turns:n/2", "end"]
seeds = 2
[part.model]
question = "?"
machines = ["sapphire-rapids"]
cpus = 4
columns = ["base", "ours"]
loads = ["end"]
tier = "model"
"""
ROW = "one/sapphire-rapids/turns:1/ours"
#: By load, column and measure
VALUES = {("turns:1", "base", "result"): (100, 110), ("turns:1", "ours", "result"): (2000, 2200),
          ("turns:2", "base", "result"): (100, 101), ("turns:2", "ours", "result"): (90, 91),
          ("turns:1", "base", "mJ"): (1, 1.01), ("turns:1", "ours", "mJ"): (1.3, 1.31),
          ("turns:2", "base", "mJ"): (1, 1), ("turns:2", "ours", "mJ"): (1.02, 1.02),
          ("end", "base", "result"): (80, 84), ("end", "ours", "result"): (8, 8.4)}


@pytest.fixture
def whole(tmp_path: Path) -> plan.Plan:
    (tmp_path / "plan").mkdir()
    (tmp_path / "plan/a.toml").write_text(PLAN)
    return plan.read(tmp_path / "plan")


@pytest.fixture
def file(tmp_path: Path, whole: plan.Plan) -> Path:
    made = []
    for cell in plan.cells(whole, ["one"]):
        load, column = cell.key[2:]
        made.append(store.Sample(cell, {m: VALUES[load, column, m][cell.seed - 1]
                                        for m in ("result", "mJ")
                                        if (load, column, m) in VALUES}))
    store.save(made, tmp_path / "samples.csv")
    return tmp_path / "samples.csv"


@pytest.fixture
def tables(tmp_path: Path) -> sqlite3.Connection:
    (tmp_path / "results/replay").mkdir(parents=True)
    (tmp_path / "results/replay/cells.csv").write_text(
        "# note\nwhat,energy closed %,ms\nA,+18.4%,7.9\nB,-2%,x\n")
    (tmp_path / "results/samples.csv").write_text("")
    return claims.database(tmp_path / "results")


def check(whole: plan.Plan, files: list[Path], tables: sqlite3.Connection, says: str,
          of: tuple[str, ...], text: str) -> claims.Check:
    top = Path(str(files[0].parent) if files else "/nowhere")
    (top / "a.md").write_text(text)
    return claims.Check([claims.Claim("a.md", says, of)], claims.samples(whole, files), tables, top)


@pytest.mark.parametrize("said, of, holds", [
    # A median: between least and most, 3 % wider
    ("2,100", ROW, True), ("1,945", ROW, True), ("2,260", ROW, True), ("1,900", ROW, False),
    ("2,300", ROW, False), ("2.1", f"thousand {ROW}", True), ("2100", f"thousand {ROW}", False),
    # A ratio: its interval
    ("20", f"{ROW} over base", True), ("16", f"{ROW} over base", True),
    ("5", f"{ROW} over base", False), ("40", f"{ROW} over base", False),
    # To the digits that are said
    ("0.02", "one/sapphire-rapids/turns:2/ours mJ over base", False),
    ("1.02", "one/sapphire-rapids/turns:2/ours mJ over base", True),
    ("1.03", "one/sapphire-rapids/turns:2/ours mJ over base", False),
    ("1.0", "one/sapphire-rapids/turns:2/ours mJ over base", True),
    ("2.0", "% more one/sapphire-rapids/turns:2/ours mJ over base", True),
    ("2.6", "% more one/sapphire-rapids/turns:2/ours mJ over base", False),
    ("-2.0", "% less one/sapphire-rapids/turns:2/ours mJ over base", True),
    ("−2.0", "% less one/sapphire-rapids/turns:2/ours mJ over base", True),
    ("10", "times as fast one/sapphire-rapids/end/ours over base", True),
    ("0.1", "times as fast one/sapphire-rapids/end/ours over base", False),
    ("90", "% less one/sapphire-rapids/end/ours over base", True),
    # Of several rows
    ("90", "least one/*/turns:*/ours", True), ("2100", "least one/*/turns:*/ours", False),
    ("2100", "most one/*/turns:*/ours", True), ("90", "most one/*/turns:*/ours", False),
    # Of other tables exactly
    ("18", "select [energy closed %] from [replay/cells] where what = 'A'", True),
    ("18.4", "select [energy closed %] from [replay/cells] where what = 'A'", True),
    ("18.3", "select [energy closed %] from [replay/cells] where what = 'A'", False),
    ("3", "select -2, 18 from [replay/cells] where what = 'A'", True),
    ("19", "select -2, 18 from [replay/cells] where what = 'A'", False),
])
def test_when_a_number_holds(whole: plan.Plan, file: Path, tables: sqlite3.Connection, said: str,
                             of: str, holds: bool) -> None:
    found, = check(whole, [file], tables, "makes N hops", (of,), f"It makes {said} hops.")
    assert isinstance(found, claims.Found) and found.now, found
    assert found.wrong != holds, found


def test_a_few_seeds_alone(whole: plan.Plan) -> None:
    """One seed has no interval; what is 0 has no ratio."""
    assert claims.ratio([2.0], [1.0]) == claims.Number(2, 2 * 0.97, 2 * 1.03)
    assert claims.ratio([0.0, 1.0], [1.0, 1.0]) is None


@pytest.mark.parametrize("name", [
    "one/sapphire-rapids/turns:3/ours", "one/sapphire-rapids/turns:1/theirs",
    f"{ROW} p50", f"{ROW} over stock", "two/sapphire-rapids/turns:1/ours",
    "most one/*/turns:7*/ours", "select ms from [replay/cells] where what = 'C'",
    "select ms from [replay/cells]", "select s from [replay/cells]", "select ms from gone",
    "select ms from [replay/cells] where what = 'B'"])
def test_a_row_that_is_gone(whole: plan.Plan, file: Path, tables: sqlite3.Connection,
                            name: str) -> None:
    found, = check(whole, [file], tables, "makes N hops", (name,), "makes 5 hops")
    assert isinstance(found, str) and name in found


def test_a_row_is_gone_before_it_is_measured(whole: plan.Plan, file: Path,
                                             tables: sqlite3.Connection) -> None:
    """Nothing is known of a tier without samples, but what it will have."""
    for name, text in (("model/sapphire-rapids/end/ours over base", "not measured: 5: "),
                       ("model/sapphire-rapids/end/ours wait us", "not measured: 5: "),
                       ("model/sapphire-rapids/end/our", "no row model/")):
        found = check(whole, [file], tables, "makes N hops", (name,), "makes 5 hops")
        assert text in str(*found)
        assert bool(found.problems()) == ("no row" in text)


@pytest.mark.parametrize("gone, problems", [
    (",turns:1,ours,", [f"a.md: makes N hops: no row {ROW}"]), (",ours,", [])])
def test_a_sample_that_is_gone(whole: plan.Plan, file: Path, tables: sqlite3.Connection, gone: str,
                               problems: list[str]) -> None:
    """Of a column that has others; a column without any is not measured yet."""
    file.write_text("".join(line for line in file.read_text().splitlines(True)
                            if gone not in line))
    found = check(whole, [file], tables, "makes N hops", (ROW,), "makes 5 hops")
    assert found.problems() == problems


@pytest.mark.parametrize("text, count", [
    ("makes 5 hops", 1), ("It makes\n5 hops.", 1), ("# makes\n# 5\n#\thops", 1),
    ("+makes 5\n+hops", 1), ("makes five hops", 0), ("takes 5 hops", 0),
    ("makes 5 hops, makes 6 hops", 2), ("", 0)])
def test_a_sentence_that_is_gone(whole: plan.Plan, file: Path, tables: sqlite3.Connection,
                                 text: str, count: int) -> None:
    problems = check(whole, [file], tables, "makes N hops", (ROW,), text).problems()
    assert len(problems) == 1
    assert problems[0].startswith("a.md: makes N hops: OUTSIDE: 5: " if count == 1 else
                                  f"a.md: says {count} times: makes N hops")


def test_a_document_that_is_gone(whole: plan.Plan, file: Path, tables: sqlite3.Connection) -> None:
    gone = claims.Check([claims.Claim("b.md", "N", (ROW,))], claims.samples(whole, [file]), tables,
                        file.parent)
    assert gone.problems() == ["b.md: No such file or directory"]


@pytest.mark.parametrize("text, said", [
    ("makes N of N hops' = ['a/b/c/d']", "2 numbers, 1 names"),
    ("makes hops' = []", "0 numbers, 0 names"),
    ("makes N' = ['a/b/c']", "a/b/c: neither a select nor PART/MACHINE/LOAD/COLUMN"),
    ("makes N' = ['best a/b/c/d']", "after least, most, thousand, %, % more, ")])
def test_wrong_claims(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "claims.toml").write_text(f"['a.md']\n'{text}\n")
    with pytest.raises(UsageError) as refused:
        claims.load(tmp_path / "claims.toml")
    assert str(refused.value).startswith("claims.toml: a.md: ") and said in str(refused.value)


def test_numbers_without_a_claim() -> None:
    text = ("makes 1,200 hops, for 2 % more; 4.5 W\nof 3 CPUs\n<!-- csv: a.csv -->\n| 7.5 |\n"
            "<!-- end -->\n    7.6\n`7.7` [a](b-7.8.md) E5-2698 6.12.1")
    claim = claims.Claim("a.md", "for N % more", (ROW,))
    assert claims.unclaimed("a.md", [claim], text) == ["1,200", "4.5", "6.12.1"]
    assert claims.unclaimed("b.md", [claim], text) == ["1,200", "2", "4.5", "6.12.1"]


def test_new_numbers_are_set(whole: plan.Plan, file: Path, tables: sqlite3.Connection) -> None:
    """Where the old ones do not hold, as these are written; others stay."""
    found = check(whole, [file], tables, "hops N N times, N %, N J", (
        ROW, f"{ROW} over base", "% more one/sapphire-rapids/turns:2/ours mJ over base",
        f"{ROW} mJ"), "hops  12,345 20 times, +9.0\n%, 1.31 J")
    assert len(found.problems()) == 2
    assert found.set() == ["a.md: hops N N times, N %, N J: 12,345 became 2,100",
                           "a.md: hops N N times, N %, N J: +9.0 became +2.0"]
    assert (file.parent / "a.md").read_text() == "hops   2,100 20 times, +2.0\n%, 1.31 J"


def test_another_sign_needs_another_sentence(whole: plan.Plan, file: Path,
                                             tables: sqlite3.Connection) -> None:
    found = check(whole, [file], tables, "N % less energy",
                  ("% less one/sapphire-rapids/turns:2/ours mJ over base",), "3.0 % less energy")
    assert found.set() == [] and "OUTSIDE: 3.0: " in found.problems()[0]
    (file.parent / "a.md").write_text("+3.0 % less energy")
    again = claims.Check(found.claims, found.of, tables, file.parent)
    assert again.set() == ["a.md: N % less energy: +3.0 became -2.0"]


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Of this repository: as many lines as numbers, and the count."""
    monkeypatch.setattr(sys, "argv", ["virtual-silicon", "lab", "claims", "--list"])
    main()
    *lines, count = capsys.readouterr().out.splitlines()
    assert count.startswith(f"{len(lines)} numbers in {len(claims.load())} sentences, ")
    monkeypatch.setattr(sys, "argv", ["virtual-silicon", "lab", "first", "--set"])
    assert main() == 2
    assert "--list and --set are of lab claims alone" in capsys.readouterr().err


def rows(whole: plan.Plan, file: Path) -> list[table.Row]:
    return table.rows(claims.measurements(whole, [file]), whole)


TABLE = """\
| | ours |
|---|---|
| one turn | 20.0; 1.30* |
| `turns:n/2` | 0.90*; 1.02 |
| `end` | 10.0; - |
"""


def test_tables_of_documents(whole: plan.Plan, file: Path, tables: sqlite3.Connection) -> None:
    """More is better of a result, less of energy."""
    mark = "<!-- lab: one over base -->\n"
    text = f"a\n{mark}old\n<!-- end -->\n\n<!-- csv: c.csv -->\n<!-- end -->\nb\n"

    def made(mark: str) -> str | None:
        return "c\n" if "csv" in mark else pages.made(mark, whole, rows(whole, file), file.parent)
    now = pages.filled(text, made)
    expected = TABLE.replace("|---|---|", "| --- | --- |").replace("| | ours", "|  | ours")
    assert now == (f"a\n{mark}{expected}<!-- end -->\n\n<!-- csv: c.csv -->\nc\n<!-- end -->\n"
                   "b\n")
    assert pages.filled(now, made) == now
    assert pages.filled(now, lambda mark: None) == now


@pytest.mark.parametrize("mark, said", [
    ("lab: one; columns ours base; loads end turns:1; measures result",
     "|  | ours | base |\n| --- | --- | --- |\n| `end`, ms | 8.2 | 82 |\n"
     "| one turn, 1/s | 2,100 | 105 |\n"),
    ("csv: replay/cells.csv; columns what, energy closed %",
     "| what | energy closed % |\n| --- | --- |\n| A | +18.4% |\n| B | -2% |\n"),
    ("lab: losers over base",
     "| part | machine | load | column | loses |\n| --- | --- | --- | --- | --- |\n"
     "| one | sapphire-rapids | one turn | ours | mJ 1.30 of base (1.20 to 1.41) |\n"
     "| one | sapphire-rapids | `turns:n/2` | ours | result 0.90 of base (0.82 to 0.99) |\n"),
    ("lab: losers over stock", "| part | machine | load | column | loses |\n"
     "| --- | --- | --- | --- | --- |\n"),
    ("lab: model over base", None)])
def test_marks(whole: plan.Plan, file: Path, tables: sqlite3.Connection, mark: str,
               said: str | None) -> None:
    found = pages.made(f"<!-- {mark} -->\n", whole, rows(whole, file), file.parent / "results")
    assert found == said


@pytest.mark.parametrize("mark, said", [
    ("lab: two over base", "no part two; there are: one, model"),
    ("lab: one over stock", "no column that it is over stock; there are: base"),
    ("lab: one; columns stock", "no column stock; there are: base, ours"),
    ("lab: one; loads end:1", "no load end:1; there are: turns:1, "),
    ("lab: one; measure mJ", "pages.py says what may be in it"),
    ("csv: replay/cells.csv; columns who", "cells.csv: no column who; there are: what, "),
])
def test_wrong_marks(whole: plan.Plan, file: Path, tables: sqlite3.Connection, mark: str,
                     said: str) -> None:
    with pytest.raises(UsageError) as refused:
        pages.made(f"<!-- {mark} -->\n", whole, rows(whole, file), file.parent / "results")
    assert said in str(refused.value)
