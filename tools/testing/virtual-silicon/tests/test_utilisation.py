# SPDX-License-Identifier: GPL-2.0
"""Utilisation of periodic work against PELT worked out from the model's clock.

All clocks but the highest lie below freq_max, where nothing is cut off at 1024. The
functions that are called here do not know how the kernel does it: studies/
invariance_util.py. tools/testing/mutants/invariance.toml has the mistakes that they find.
"""

from __future__ import annotations

import pytest
from guests import Guests
from scenarios import KINDS_KHZ, KINDS_MARKS, LIMITED_RATIO, OFF_SELFTESTS
from virtual_silicon.guest.boot import Result
from virtual_silicon.machine import machine
from virtual_silicon.studies.invariance import pelt
from virtual_silicon.studies.invariance import utilisation as util


def test_sum_over_runs_is_the_closed_form() -> None:
    period, ran, events = 10_000_000, 2_000_000, [(0, 2_000_000)]
    bursts = [pelt.Burst(i * period + ran, ran, 0) for i in range(200)]
    half = pelt.expected(bursts, pelt.Clock(events, 4_000_000))[-1]
    assert half == pytest.approx(pelt.steady(ran / 2, period), rel=1e-3)
    assert pelt.steady_run(half, period) == pytest.approx(ran / 2, rel=1e-3)
    always = [pelt.Burst((i + 1) * period, period, 0) for i in range(200)]
    assert pelt.expected(always, pelt.Clock(events, 2_000_000))[-1] == \
        pytest.approx(1024, rel=1e-3)


GROUPS, BYTES = machine.load("sapphire-rapids"), machine.load("e5-2698-v4")


class TestFixedClocks:
    pytestmark = pytest.mark.boots("utilisation")

    @pytest.fixture(scope="class")
    def rows(self, guests: Guests) -> list[util.Fixed]:
        result = guests.get("utilisation")
        return util.fixed(result, util.events(result), "clocks", 1, util.freq_max_khz(GROUPS))

    def test_utilisation_is_pelts_at_every_p_state(self, rows) -> None:
        assert len(rows) == 31
        wrong = {r.khz: r.errors for r in rows
                 if abs(r.errors.mean) > 1 or abs(r.errors.worst) > 2 or r.errors.bursts < 8}
        assert wrong == {}

    def test_scale_at_the_lowest_clock(self, rows) -> None:
        """0.8 of 3.8 GHz."""
        lowest = min(rows, key=lambda r: r.khz)
        assert lowest.wanted_scale == pytest.approx(215.6, abs=0.1)
        assert lowest.scale == pytest.approx(215.6, rel=0.01)

    @pytest.mark.parametrize("step,mark,scale", [
        ("no-turbo", 2, 800 / 2000 * 1024), ("turbo", 3, 800 / 3800 * 1024)])
    def test_freq_max_follows_no_turbo(self, result: Result, step: str, mark: int,
                                       scale: float) -> None:
        base = GROUPS.base_ratio * GROUPS.bus_khz
        row, = util.fixed(result, util.events(result), step, mark,
                          base if step == "no-turbo" else util.freq_max_khz(GROUPS))
        assert row.scale == pytest.approx(scale, rel=0.01)


@pytest.mark.boots("utilisation-bytes")
@pytest.mark.parametrize("khz,scale", [(2_200_000, 682.7), (2_900_000, 899.9)])
def test_scale_by_a_table_of_bytes(result: Result, khz: int, scale: float) -> None:
    """Of 3.3 GHz, which four cores can have."""
    rows = util.fixed(result, util.events(result), "clocks", 1, util.freq_max_khz(BYTES))
    found = next(r for r in rows if r.khz == khz)
    assert found.wanted_scale == pytest.approx(scale, abs=0.1)
    # Until a tick meets the task its scale is that of the clock before
    assert found.scale == pytest.approx(scale, rel=0.03) and abs(found.errors.mean) <= 3


class TestKinds:
    """Fast and dense cores: the scale is the same at one clock."""

    pytestmark = pytest.mark.boots("utilisation-kinds")
    M = machine.load("ryzen-5-7545u")

    def freq_max_khz(self, boost: bool) -> float:
        """Half-way to the fast cores' highest performance, 196; the nominal one is 128."""
        nominal = self.M.base_ratio * self.M.bus_khz
        return nominal * (196 + 128) / 2 / 128 if boost else nominal

    @pytest.mark.parametrize("boost,cpu,mark", [(boost == "boost", cpu, mark) for
                                                (boost, cpu), mark in KINDS_MARKS.items()])
    def test_same_work_at_the_same_clock(self, result: Result, boost: bool, cpu: int,
                                         mark: int) -> None:
        step = next(f"{name}-{n}" for (name, n), m in KINDS_MARKS.items() if m == mark)
        row, = util.fixed(result, util.events(result), step, mark, self.freq_max_khz(boost), cpu)
        assert row.khz == pytest.approx(KINDS_KHZ, rel=0.01)
        assert row.scale == pytest.approx(row.wanted_scale, rel=0.02)


@pytest.mark.boots("utilisation-off")
def test_frequency_is_measured_where_invariance_is_off(result: Result) -> None:
    """What was asked for is three times as much."""
    khz = [int(word) for word in result.text("load").split() if word.isdigit()][:10]
    assert khz[2:] == pytest.approx([LIMITED_RATIO * 100_000] * 8, rel=0.02)


@pytest.mark.boots("utilisation-off")
@pytest.mark.parametrize("test,status", OFF_SELFTESTS.items())
def test_selftests_skip_what_is_off(result: Result, test: str, status: int) -> None:
    text = result.text(test)
    assert result.step_status(test) == status, text
    assert "aperfmperf.freq_max=off" in text and "not ok" not in text


class TestFaults:
    """At 0.8 of 3.8 GHz: what utilisation says of the scale while counters fail."""

    pytestmark = pytest.mark.boots("utilisation-faults")
    RIGHT = 800 / 3800 * 1024

    @pytest.fixture(scope="class")
    def scales(self, guests: Guests) -> list[tuple[float, float]]:
        result = guests.get("utilisation-faults")
        return util.fault_scales(result, util.events(result))

    @staticmethod
    def off(scales: list[float], wanted: float) -> int:
        """How many are. An interrupt before the work's end is read moves some of one
        burst's scale to the next."""
        return sum(abs(s / wanted - 1) > 0.02 for s in scales)

    def test_right_before_and_between(self, scales) -> None:
        """Back within a second of the end."""
        quiet = [s for t, s in scales if 2 < t < 2.98 or t > 6.5]
        assert len(quiet) > 100 and self.off(quiet, self.RIGHT) <= 4
        assert [s for t, s in scales if t > 4.99][0] == pytest.approx(self.RIGHT, rel=0.02)

    def test_a_lasting_fault_leaves_the_scale_of_no_invariance(self, scales) -> None:
        during = [s for t, s in scales if 3.1 < t < 3.99]
        assert len(during) > 100 and self.off(during, 1024) <= 4

    def test_counters_that_jump_ahead_count_while_they_jump(self, scales) -> None:
        """By as much: their quotient is nearly 1, so the scale is that of the base clock, 539."""
        during = [s for t, s in scales if 5 < t < 5.49]
        jumps = [s for s in during if s == pytest.approx(2100 / 3800 * 1024, rel=0.06)]
        assert len(during) > 50 and jumps
        assert [s for s in during if s not in jumps and
                not (s == pytest.approx(self.RIGHT, rel=0.03) or s > 1000)][2:] == []
