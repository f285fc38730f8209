# SPDX-License-Identifier: GPL-2.0
"""Ratios, their intervals, and ranks."""

from __future__ import annotations

import math

import pytest
from virtual_silicon.lab import stats


def test_welch_by_hand() -> None:
    """Means 2 and 6, variances 1 and 4, three samples each: t of 2.94 degrees of freedom."""
    assert stats.welch([1, 2, 3], [4, 6, 8]) == pytest.approx(4.302653 * math.sqrt(1 / 3 + 4 / 3))
    assert stats.welch([1, 1], [2, 2]) == 0


def test_ratio_is_of_geometric_means_over_parameters() -> None:
    """4 and 1/2 times the baseline's make the root of 2; arithmetic means would make 2.25,
    and sums 0.67."""
    found = stats.ratio([[4.0, 4.0], [50.0, 50.0]], [[1.0, 1.0], [100.0, 100.0]])
    assert found.value == pytest.approx(math.sqrt(2))
    assert (found.low, found.high) == pytest.approx((found.value, found.value))


def test_tilde_only_where_the_interval_has_1() -> None:
    base = [[100.0, 101, 99, 100, 100]]
    assert str(stats.ratio([[101.0, 99, 102, 98, 100]], base)) == "~"
    assert str(stats.ratio([[110.0, 111, 109, 110, 110]], base)) == "1.10"
    # Far from 1, but as far apart from each other
    assert str(stats.ratio([[50.0, 200, 150, 60, 190]], base)) == "~"


def test_spearman() -> None:
    """IQ and hours of television of the usual example: -29/165."""
    iq = [106, 100, 86, 101, 99, 103, 97, 113, 112, 110]
    hours = [7, 27, 2, 50, 28, 29, 20, 12, 6, 17]
    assert stats.spearman(iq, hours) == pytest.approx(-29 / 165)
    assert stats.ranks([3, 1, 3]) == [2.5, 1, 2.5]
    assert stats.spearman([1, 2, 3], [5, 5, 5]) is None
