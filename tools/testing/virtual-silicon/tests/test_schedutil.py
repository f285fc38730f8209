# SPDX-License-Identifier: GPL-2.0
"""schedutil's tunables, in the patched kernel."""

from __future__ import annotations

import pytest
from scenarios import SCHEDUTIL_REFUSED
from virtual_silicon.guest.boot import Result

pytestmark = pytest.mark.boots("schedutil")


def values(text: str) -> dict[str, int]:
    """{last part of the file's name: value}"""
    return {name.rsplit("/", 1)[1]: int(value)
            for name, _, value in (line.partition(":") for line in text.split())}


def test_defaults(result: Result) -> None:
    found = values(result.text("defaults"))
    assert found == {"rate_limit_us": 500}


@pytest.mark.parametrize("name", SCHEDUTIL_REFUSED)
def test_values_out_of_range_change_nothing(result: Result, name: str) -> None:
    assert result.text(f"refused-{name}") == ""


def test_a_task_that_becomes_cpu_bound_is_soon_at_the_top(result: Result) -> None:
    """The base takes 130 ms and more."""
    rows = [line.split() for line in result.text("steps").splitlines()]
    assert len(rows) == 5
    assert all(float(first) <= 16 for first, *_ in rows), rows
