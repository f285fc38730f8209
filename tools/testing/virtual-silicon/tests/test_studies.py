# SPDX-License-Identifier: GPL-2.0
"""Tables of the studies from made-up answers, and how tables are written."""

from __future__ import annotations

import csv
from pathlib import Path

from virtual_silicon import text
from virtual_silicon.studies.scaling import scaling


def test_csv_has_remarks_above_it(tmp_path: Path) -> None:
    text.write_csv(tmp_path / "new/t.csv", ("a", "b"), [["1,5", "x"]], "word " * 30)
    lines = (tmp_path / "new/t.csv").read_text().splitlines()
    assert [line.startswith("# word") for line in lines] == [True, True, False, False]
    assert max(map(len, lines)) <= 100
    assert list(csv.reader(lines[2:])) == [["a", "b"], ["1,5", "x"]]


def test_scaling() -> None:
    rows = [scaling.Row("hook", "ours", "one policy", 4, 10, 0.5, 0.25),
            scaling.Row("/proc/cpuinfo", "base", "own policies", 4, 2.0, 1500.0, 1500.0),
            scaling.Row("/proc/cpuinfo", "base", "one policy", 4, 2.0, 1.0, 1.0)]
    assert scaling.paths_table(rows) == [["hook, one policy", "ours", "4", "500", "250"]]
    assert scaling.files_table(rows) == [["/proc/cpuinfo", "base", "4", "1.5", "2.00"]]
