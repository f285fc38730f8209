# SPDX-License-Identifier: GPL-2.0
"""How tables are written."""

from __future__ import annotations

import csv
from pathlib import Path

from virtual_silicon import text


def test_csv_has_remarks_above_it(tmp_path: Path) -> None:
    text.write_csv(tmp_path / "new/t.csv", ("a", "b"), [["1,5", "x"]], "word " * 30)
    lines = (tmp_path / "new/t.csv").read_text().splitlines()
    assert [line.startswith("# word") for line in lines] == [True, True, False, False]
    assert max(map(len, lines)) <= 100
    assert list(csv.reader(lines[2:])) == [["a", "b"], ["1,5", "x"]]
