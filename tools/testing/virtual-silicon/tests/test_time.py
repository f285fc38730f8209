# SPDX-License-Identifier: GPL-2.0
"""How long instructions, wake-ups and changes of frequency take."""

from __future__ import annotations

import math
import statistics

import pytest
from guests import Guests, events
from scenarios import (
    CALLS_MARK,
    CALLS_TIMES,
    LOW_W,
    PAIRS,
    RATES,
    SWITCH_MARK,
    SWITCHES,
    WINDOW_W,
    WINDOWS_S,
    limit_value,
)
from virtual_silicon.guest.boot import Result
from virtual_silicon.machine import machine
from virtual_silicon.readers import sysfs, trace


def _trace(result: Result) -> trace.Trace:
    assert result.status == 0
    return events(result)


# --- instructions ---------------------------------------------------------------

ALL_RATES = pytest.mark.boots(*(f"rates-{kernel}-{user}" for kernel, user in RATES))


def _call_cycles(guests: Guests, kernel: int, user: int) -> int:
    """The median of several: a tick or another task comes on top of some."""
    t = _trace(guests.get(f"rates-{kernel}-{user}"))
    return statistics.median_low(
        t.mark(mark + 1).cpus[1].aperf - t.mark(mark).cpus[1].aperf
        for mark in range(CALLS_MARK, CALLS_MARK + 2 * CALLS_TIMES, 2))


@ALL_RATES
def test_cycles_are_linear_in_both_rates(guests: Guests) -> None:
    """kernel_insns * kernel + user_insns * user: the fourth run follows from three."""
    a, b, c, d = (_call_cycles(guests, *rates) for rates in RATES)
    assert b > 1.05 * a > 1.1 * c	# both kinds of instructions are in it
    assert d == pytest.approx(b + c - a, rel=0.005)


@ALL_RATES
def test_user_work_takes_the_users_rate(guests: Guests) -> None:
    rate = {rates: sysfs.work(guests.get(f"rates-{rates[0]}-{rates[1]}").text(
        "user"))[0].rate for rates in RATES}
    assert rate[1000, 4000] / rate[1000, 8000] == pytest.approx(2, rel=0.01)
    assert rate[2000, 8000] / rate[1000, 8000] == pytest.approx(1, rel=0.01)


@pytest.mark.boots("rates-2000-4000")
def test_report_states_both_rates(result: Result) -> None:
    assert result.report["cycles_per_1000_insns"] == {
        "kernel": 2000, "user": 4000}


# --- wake-ups -------------------------------------------------------------------

@pytest.mark.parametrize("quantum", [
    pytest.param(ns, marks=pytest.mark.boots(f"wakes-{ns}")) for ns in (1_000, 10_000)])
def test_wake_up_takes_the_same_in_both_directions(result: Result, quantum: int) -> None:
    """By whom and whatever the numbers; today's way made it 0 and up to 10 us."""
    medians = {}
    for caller, callee in PAIRS:
        samples = [int(ns) for ns in result.text(f"wake-{caller}-{callee}").split()]
        assert len(samples) > 250
        medians[caller, callee] = statistics.median(samples)
    assert max(medians.values()) - min(medians.values()) < 200, medians


# --- changes of frequency -------------------------------------------------------

def _changes(t: trace.Trace, cpu: int) -> list[int]:
    """Times at which the clock of a CPU changed, after the start."""
    return [ns for ns, _ in t.khz[cpu][1:]]


def _delays(t: trace.Trace, cpu: int) -> list[int]:
    """From each request to the change; the mark comes just before the write."""
    out = []
    for number in range(cpu - 1, 2 * SWITCHES, 2):
        asked = t.mark(SWITCH_MARK + number).time_ns
        out.append(min(ns for ns in _changes(t, cpu) if ns > asked) - asked)
    return out[1:]		# the first may ask for what there was


def _window(t: trace.Trace, changes: list[int]) -> list[int]:
    begin, end = t.mark(SWITCH_MARK).time_ns, t.mark(SWITCH_MARK - 1).time_ns
    return [ns for ns in changes if begin < ns < end]


@pytest.mark.boots("switches-platinum-8180")
def test_slots_of_a_package(result: Result) -> None:
    """All changes, also those of the turbo limit, 9 us after a slot of all cores."""
    t = _trace(result)
    places = {(ns - 9_000) % 501_000 for cpu in range(4) for ns in _changes(t, cpu)}
    assert len(places) == 1
    assert sum(len(_changes(t, cpu)) for cpu in (1, 2)) >= 2 * SWITCHES - 2
    assert len({khz for _, khz in t.khz[3]}) > 1	# the turbo limit's


@pytest.mark.boots("switches-platinum-8180")
def test_delays_are_spread_over_the_period(result: Result) -> None:
    t = _trace(result)
    delays = sorted(_delays(t, 1) + _delays(t, 2))
    assert 9_000 <= delays[0] < 80_000 and 440_000 < delays[-1] < 540_000
    assert statistics.mean(delays) == pytest.approx(259_000, rel=0.25)


@pytest.mark.boots("switches-platinum-8180")
def test_core_stands_still_at_a_change(result: Result) -> None:
    """11 us each, in which neither time in C0 nor in an idle state passes."""
    t = _trace(result)
    a, b = t.mark(SWITCH_MARK), t.mark(SWITCH_MARK - 1)
    count = len(_window(t, _changes(t, 1)))
    lost = b.time_ns - a.time_ns
    lost -= b.cpus[1].busy_ns - a.cpus[1].busy_ns
    lost -= sum(b.cpus[1].states[name][1] - ns for name, (_, ns) in a.cpus[1].states.items())
    assert count > SWITCHES / 2 and lost == pytest.approx(11_000 * count, abs=11_000)


@pytest.mark.boots("switches-sapphire-rapids")
def test_slots_of_each_core(result: Result) -> None:
    """Up to 1.8 GHz, or soon after a change, 1160 us apart; each core its own."""
    t = _trace(result)
    high = machine.load("sapphire-rapids").base_ratio - 1
    places: list[int] = []
    for cpu in (1, 2):
        down = {(ns - 20_000) % 1_160_000 for ns, khz in t.khz[cpu][1:]
                if khz < high * 100_000}
        assert len(down) == 1
        places += down
    assert places[0] != places[1]


@pytest.mark.boots("returns")
@pytest.mark.parametrize("way,soon_us,late_us", [("up", 1, 360), ("down", 160, 390)])
def test_going_back_soon_is_quick(result: Result, way: str, soon_us: float,
                                  late_us: float) -> None:
    """The work that is timed shows the change up to 15 us late."""
    soon, late = ([int(ns) / 1000 for ns in result.text(f"{way}-{when}").split()]
                  for when in ("soon", "late"))
    assert len(soon) > 30 and len(late) > 30
    assert soon_us <= statistics.median(soon) < soon_us + 15
    assert min(late) > late_us and max(late) > late_us + 700


# --- power limits ---------------------------------------------------------------

LIMITS = pytest.mark.boots("limits")


def _watts(t: trace.Trace, mark: int) -> float:
    seen = trace.window(t, mark, mark + 1)
    return seen.package_j / seen.seconds


def _mhz(t: trace.Trace, mark: int) -> list[float]:
    return [cpu.mhz for cpu in trace.window(t, mark, mark + 1).cpus.values()]


@LIMITS
def test_registers_without_their_cpuid_bits_fault(result: Result) -> None:
    """SDM vol. 2, CPUID 6.EAX: 0x773 comes with bit 8, 0x772 with bit 11."""
    assert result.text("hwp").splitlines() == ["0x772 fault", "0x773 fault"]


@LIMITS
def test_window_is_the_one_that_is_advertised(result: Result) -> None:
    value = sysfs.msr_values(result.text("register"))[0x610]
    assert value is not None and value >> 17 & 0x7F == limit_value(350, 0.02, True) >> 17 & 0x7F


@LIMITS
def test_second_limit_holds(result: Result) -> None:
    t = _trace(result)
    assert _watts(t, 42) > 1.05 * WINDOW_W
    assert _watts(t, 44) == pytest.approx(WINDOW_W, rel=0.03)


@LIMITS
def test_without_clamping_the_base_clock_is_the_least(result: Result) -> None:
    t = _trace(result)
    assert _mhz(t, 46) == pytest.approx([2000] * 4, rel=0.01)
    assert _watts(t, 46) > 1.03 * LOW_W
    assert _watts(t, 48) == pytest.approx(LOW_W, rel=0.02)
    assert max(_mhz(t, 48)) < 1900


@LIMITS
@pytest.mark.parametrize("window_s", WINDOWS_S)
def test_average_crosses_the_limit_in_its_time(result: Result, window_s: float) -> None:
    """From idle to full power: P(t) = full + (idle - full) * exp(-t / window)."""
    t = _trace(result)
    idle, full = _watts(t, 40), _watts(t, 42)
    expected_s = window_s * math.log((full - idle) / (full - WINDOW_W))
    begin = t.mark(WINDOWS_S[window_s]).time_ns
    top = max(khz for _, khz in t.khz[3])
    fell = min(ns for ns, khz in t.khz[3] if ns > begin and khz < top)
    # a step each ms, and up to two slots until the first has its effect
    assert (fell - begin) / 1e9 == pytest.approx(expected_s, rel=0.05, abs=0.003)
