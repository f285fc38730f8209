# SPDX-License-Identifier: GPL-2.0
"""C0.2, the idle state entered by UMWAIT, in the patched kernel."""

from __future__ import annotations

import statistics

import guests
import pytest
from guests import each
from scenarios import C02_KHZ, C02_LOADS, C02_WAKEUPS, IDLE_POLL, IDLE_STATES
from virtual_silicon.guest import boot
from virtual_silicon.machine import machine
from virtual_silicon.readers import sysfs, trace


@pytest.fixture(params=each(IDLE_STATES, "idle-"))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_states_at_boot(name: str, result: boot.Result) -> None:
    states = sysfs.idle_states(result.text("cpuidle"))
    expected = IDLE_STATES[name][2].split()
    found = [("-" if s.disabled else "") + s.name for s in states.get(0, [])]
    if expected:
        assert found == expected
    else:	# another driver, or none
        assert not any("C0." in name for name in found)


def test_boot_says_that_numbers_have_moved(name: str, result: boot.Result) -> None:
    names = IDLE_STATES[name][2].replace("-", "").split()
    said = [line for line in result.text("dmesg").splitlines() if "intel_idle: state1 is" in line]
    if len(names) > 2 and names[1].startswith("C0."):
        last = len(names) - 1
        assert len(said) == 1 and f" {names[1]}:" in said[0]
        assert (f"state{last - 1}/disable for {names[-1]} must write state{last}/disable"
                in said[0])
    else:
        assert not said


@pytest.mark.parametrize("name", each(("unknown", "monitor-bug"), "idle-"))
def test_polling_by_umwait_at_boot(name: str, result: boot.Result) -> None:
    """The command line is parsed before the kernel knows that the monitor misses stores."""
    assert result.text("idle-poll") == ("off" if name == "monitor-bug" else "c02")


@pytest.mark.boots("idle-default")
def test_teo_is_the_default(result: boot.Result) -> None:
    default, available, now = result.text("governors").splitlines()
    assert {"menu", "teo"} <= set(available.split())
    assert default == "teo" and now == "menu"


#: On the default machine make test runs all kselftests.
@pytest.mark.parametrize("name", each((name for name in IDLE_STATES if name != "default"), "idle-"))
def test_kselftest(name: str, result: boot.Result) -> None:
    text = result.text("kselftest")
    assert result.step_status("kselftest") == 0, text
    assert "not ok" not in text and "ok 3 " in text


@pytest.fixture
def events(result: boot.Result) -> trace.Trace:
    return guests.events(result)


def model_used(events: trace.Trace, mark: int, state: str) -> tuple[dict[str, int], float]:
    """Ends of the state's rests by reason, and seconds in it, between two marks."""
    first, last = events.mark(mark), events.mark(mark + 1)
    reasons: dict[str, int] = {}
    for wakes in events.wakes.values():
        for when, reason, name in wakes:
            if name == state and first.time_ns < when <= last.time_ns:
                reasons[reason] = reasons.get(reason, 0) + 1
    ns = sum(last.cpus[cpu].states[state][1] - first.cpus[cpu].states[state][1]
             for cpu in last.cpus)
    return reasons, ns / 1e9


def kernel_used(text: str) -> tuple[int, float]:
    """Entries and seconds in state 1, from the counters before and after."""
    words = [int(word) for word in text.split("used ")[-1].split()]
    before, after = words[:len(words) // 2], words[len(words) // 2:]
    cpus = len(before) // 2
    grown = [b - a for a, b in zip(before, after)]
    return sum(grown[:cpus]), sum(grown[cpus:]) / 1e6


#: What a program that makes a mark takes, at both ends: 4000 rests a second.
OUTSIDE_S = 0.003
OUTSIDE_ENTRIES = 24


@pytest.mark.boots("c02")
@pytest.mark.parametrize("load", C02_LOADS)
def test_entries_and_time_as_the_model_counts(
        load: str, result: boot.Result, events: trace.Trace) -> None:
    """An entry of the kernel's is a rest, or several that the limit ends.

    The kernel's time has the exit latency in it, which the model counts apart.
    """
    state = "C0.1" if load == "c01" else "C0.2"
    m = machine.load("sapphire-rapids")
    exit_ns = 1e3 / m.mhz(m.max_ratio) * getattr(
        m.umwait, state.lower().replace(".", "") + "_exit_cycles")
    reasons, seconds = model_used(events, C02_LOADS[load][0], state)
    ended = sum(reasons.values()) - reasons.get("limit", 0)
    seconds += sum(reasons.values()) * exit_ns / 1e9
    entries, kernel_seconds = kernel_used(result.text(load))
    assert ended > 200
    assert entries == pytest.approx(ended, rel=0.01, abs=OUTSIDE_ENTRIES)
    assert kernel_seconds == pytest.approx(seconds, rel=0.01, abs=2 * OUTSIDE_S)


@pytest.mark.boots("c02")
def test_limit_of_user_space_is_no_wakeup(events: trace.Trace) -> None:
    """At rest the CPUs leave C0.2 4000 times a second and not 20000 times."""
    reasons, seconds = model_used(events, C02_LOADS["rest"][0], "C0.2")
    assert reasons["limit"] > 3 * reasons["deadline"]
    assert reasons["deadline"] / seconds == pytest.approx(4000, rel=0.1)


@pytest.mark.boots("c02")
def test_wakeups_are_stores(events: trace.Trace) -> None:
    """A task is woken on a CPU in C0.2 without an interrupt."""
    reasons, _ = model_used(events, C02_LOADS["hackbench"][0], "C0.2")
    assert reasons["store"] > 50


@pytest.mark.boots("c02")
def test_interrupts_do_not_wait_for_the_way_out(result: boot.Result) -> None:
    """Published: 22 % later than from POLL; after the way out it would be three times."""
    poll, rested = (statistics.median(map(int, result.text(f"interrupts-{s}").split()))
                    for s in (0, 1))
    assert 1.05 < rested / poll < 1.6


@pytest.mark.boots("c02")
def test_no_wakeup_is_late(result: boot.Result) -> None:
    """Two quanta of the emulator's and the exit latency leave no room for 100 us."""
    for mode in C02_WAKEUPS:
        took = [int(ns) for ns in result.text(f"wake-{mode}").split()]
        assert len(took) > 500 and max(took) < 100_000, mode


@pytest.mark.boots("c02")
def test_frequency_ratio_of_a_cpu_that_rests_in_c02(result: boot.Result) -> None:
    """APERF over MPERF is the clock's ratio; MPERF itself is no busy time."""
    rises = sysfs.msr_rises(*result.text("resting").split("--"))
    m = machine.load("sapphire-rapids")
    aperf, mperf = rises[0xE8], rises[0xE7]
    assert aperf / mperf * m.tsc_khz == pytest.approx(C02_KHZ, rel=0.002)
    assert mperf > 0.95 * 0.2 * m.tsc_khz * 1000	# 20 % of it were busy


@pytest.mark.parametrize("what", IDLE_POLL)
@pytest.mark.parametrize("loop", each(("poll-state", "poll-loop")))
def test_polling_loops_rest_by_umwait(loop: str, what: str, events: trace.Trace) -> None:
    mark = IDLE_POLL[what]
    seconds = (events.mark(mark + 1).time_ns - events.mark(mark).time_ns) / 1e9
    rested = {state: model_used(events, mark, state)[1] / seconds / 2
              for state in ("C0.1", "C0.2", "C1")}
    expected = {"c02": "C0.2"}.get(what)
    for state, share in rested.items():
        assert share > 0.9 if state == expected else share == 0, rested
