# SPDX-License-Identifier: GPL-2.0
"""The kernel's own decoder of turbo tables over registers read on real machines.

turbo_table.h is compiled for user space.  What it must give was worked out from
the same registers by another program, and where a log of the machine's boot is
known, by its kernel ("logged").
"""

from __future__ import annotations

import csv
import subprocess
from dataclasses import dataclass

import pytest
from virtual_silicon.studies.freq_max import decoder

#: Registers without which a row is not compared, by model.
NOT_READ = {
    0x37: "Silvermont's table is in 0x66a and 0x66c", 0x4c: "the same", 0x4d: "the same",
    0x5c: "Goldmont's numbers of cores are in 0x1ae", 0x5f: "the same", 0x7a: "the same",
}

#: Logs with another ratio than these registers give: (cpu_name, logged), and why.
NOT_LOGGED = {
    ("Intel(R) Core(TM) i7-6700K CPU @ 4.00GHz", 1024): "turbo was off",
    ("Intel(R) Core(TM) i9-14900K", 1024): "turbo was off",
    ("11th Gen Intel(R) Core(TM) i7-1185G7 @ 3.00GHz", 1467): "base of 30, here 18: cTDP",
    ("12th Gen Intel(R) Core(TM) i7-12700H", 1554): "another machine's table",
    ("12th Gen Intel(R) Core(TM) i9-12900K", 1760): "another machine's table",
    ("Genuine Intel(R) 0000", 2048): "base of 19, here 21, and read by the base's rule",
    ("Intel(R) Core(TM) i5-9600K CPU @ 3.70GHz", 1190): "overclocked here",
    ("Intel(R) Core(TM) i7-7700K CPU @ 4.20GHz", 1194): "another machine's table",
}


@dataclass(frozen=True)
class Row:
    """A line of the data, and what the decoder makes of it."""

    name: str
    model: int
    counts: int		# 0x1ae
    expected: int
    logged: list[int]
    ratio: int		# with four cores active where ours takes all
    bins: list[tuple[int, int]]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    program = decoder.build(tmp_path_factory.mktemp("decoder"))
    with decoder.DATA.open(encoding="utf-8", newline="") as file:
        data = list(csv.DictReader(file))
    registers = ("model", "msr_0xce", "msr_0x1ad", "msr_0x1ae", "msr_0x1af")
    text = "".join(" ".join(line[key] or "0" for key in registers) + "\n" for line in data)
    answer = subprocess.run([program], input=text, capture_output=True, text=True,
                            check=True).stdout.splitlines()
    assert len(answer) == len(data)
    out = []
    for line, (_, ratio, *bins) in zip(data, map(str.split, answer)):
        pairs = (entry.split(":") for entry in bins)
        out.append(Row(line["cpu_name"], int(line["model"], 16),
                       int(line["msr_0x1ae"] or "0", 16), int(line["expected"] or 0),
                       [int(n) for n in line["logged"].split()], int(ratio),
                       [(int(cores), int(top)) for cores, top in pairs]))
    return out


def complete(row: Row) -> bool:
    return row.model not in NOT_READ or row.counts != 0


def test_ratio_of_every_complete_row(rows: list[Row]) -> None:
    wrong = {row.name: row.ratio for row in rows
             if complete(row) and row.ratio != row.expected}
    assert wrong == {}
    assert sum(complete(row) for row in rows) == 156


def test_ratio_that_the_machine_logged(rows: list[Row]) -> None:
    """By the base's rule, which differs on models whose groups it reads as bytes."""
    logged = [(row, n) for row in rows for n in row.logged if complete(row)]
    wrong = {(row.name, n) for row, n in logged if row.ratio != n}
    assert wrong == set(NOT_LOGGED)
    assert len(logged) - len(wrong) == 26


def test_every_bin_is_wider_than_the_one_before(rows: list[Row]) -> None:
    """Parts with fewer kinds of load than groups repeat the last number of cores."""
    for row in rows:
        widths = [cores for cores, _ in row.bins]
        assert widths == sorted(set(widths)), row.name
    assert [row.bins for row in rows if "6746E" in row.name] == [[(28, 27)]]


def test_hole_in_the_groups(rows: list[Row]) -> None:
    """The third group of this part has a ratio and no cores: it is left out."""
    row = next(row for row in rows if "8170M" in row.name)
    assert row.counts >> 16 & 0xFF == 0
    assert [cores for cores, _ in row.bins] == [2, 4, 12, 16, 20, 24, 26]
