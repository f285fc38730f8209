# SPDX-License-Identifier: GPL-2.0
"""Published tables beside what the lab measures."""

from __future__ import annotations

import dataclasses

import pytest
from virtual_silicon.lab import plan, published, table

PLAN = plan.read()
CELL = published.Published("s", 1, "m", "performance", "tbench", "b", "c", 1.2)


def test_published() -> None:
    """Watts over the baseline's, a tilde is 1; each has a load and columns of a part."""
    cells = published.read()
    found = {(p.source, p.machine, p.measure, p.load, p.column): p.value for p in cells}
    assert found["invariance-2019", "e5-2698-v4", "performance", "gitsource", "4c"] == 0.49
    assert found["invariance-2019", "e3-1240-v5", "per_watt", "tbench", "i_pstate-HWP"] == 1.17
    assert found["invariance-2019", "e5-2670-v3", "performance", "tbench", "12c"] == 1.25
    assert found["invariance-2019", "e5-2698-v4", "performance", "netudp", "1c"] == 1	# a tilde
    assert found["epyc-2020", "epyc-7742", "watts", "tbench", "performance"] == \
        pytest.approx(281.83 / 227.25)
    there = {(machine, load.partition(":")[0], column, over)
             for part in PLAN.parts.values() if part.name.startswith(published.PART)
             for machine in part.machines for load in part.loads for column in part.columns
             for over in part.over}
    assert {(p.machine, p.load, p.column, p.baseline) for p in cells} <= there
    assert len(cells) == 402


def row(load: str, measure: str, ratio: float, column: str = "4c", machine: str = "e5-2698-v4",
        over: str = "non-inv") -> table.Row:
    return table.Row(("published", machine, load, column), measure, (ratio, ratio), over,
                     (1.0, 1.0))


def test_the_same_ratio_here() -> None:
    """Over all parameters; of loads that end their time; per watt is one over the energy."""
    p = dataclasses.replace(CELL, machine="e5-2698-v4", load="tbench", baseline="non-inv",
                            column="4c")
    rows = [row("tbench:1", "result", 4), row("tbench:4", "result", 0.25),
            row("tbench:1", "mJ", 0.5), row("tbench:4", "mJ", 0.5),
            row("tbench:1", "W", 3), row("tbench:4", "W", 3),
            row("tbench:1", "result", 9, column="3c"), row("tbench:1", "result", 9, over="base"),
            row("tbench:1", "result", 9, machine="e5-2670-v3"),
            row("pipe:2000", "result", 0.5), row("pipe:2000", "changes/s", 3),
            row("cyclictest:1000", "result", 0.5), row("cyclictest:1000", "changes/s", 3)]

    def here(**changes: str) -> float | None:
        return published.here(dataclasses.replace(p, **changes), rows, PLAN)
    assert here() == pytest.approx(1) and here(measure="per_watt") == pytest.approx(2)
    assert here(measure="watts") == pytest.approx(3)
    assert here(load="pipe") == 0.5 and here(load="pipe", measure="updates") == pytest.approx(1.5)
    assert here(load="cyclictest", measure="updates") == pytest.approx(3)
    assert here(machine="m") is None and here(column="1c") is None
    # One of its parameters has no number, or nothing was changed
    assert published.here(p, [*rows, row("tbench:2", "mJ", 1)], PLAN) is None
    assert published.here(dataclasses.replace(p, measure="updates", load="pipe"), [
        row("pipe:2000", "result", 0.5), row("pipe:2000", "changes/s", 0)], PLAN) is None


def test_directions_and_ranks() -> None:
    """Of what is not neutral, the same side of 1; of fewer than three there is no rank."""
    less, neutral = (dataclasses.replace(CELL, value=v) for v in (0.8, 1.02))
    found = published.Agreement("t", [(CELL, 1.1), (less, 1.2), (neutral, 0.5), (CELL, None)])
    assert found.row() == ["t", "1 of 2", "-0.50", "3", "1"]
    assert published.Agreement("t", [(CELL, 1.1)]).row() == ["t", "1 of 1", "-", "1", "0"]
