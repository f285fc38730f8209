# SPDX-License-Identifier: GPL-2.0
"""What the scripted guest recorded once (scripted_guest.py), as text: no guest is needed."""
from __future__ import annotations

from pathlib import Path

import pytest
from cpuwhy import freq, idle, states
from cpuwhy.events import Source
from cpuwhy.record import sidecar

TRACE = Path(__file__).parent / "data/guest.xz"


@pytest.fixture(scope="module")
def result() -> idle.Result:
    return idle.analyse(Source(TRACE), states.load(sidecar(TRACE)), "guest")


# CPU, cause and how often: 61 timers, 47 interrupts and 53 signals were ordered, and
# vs-wake sleeps once more while it starts a thread, once at its end, and wakes the thread.
WAKES = [(1, "timer", "hrtimer_wakeup", "vs-wake", 62),
         (2, "timer", "hrtimer_wakeup", "vs-wake", 54),
         (1, "device", "hpet2", "", 47), (1, "store", "need_resched", "vs-wake", 54)]


@pytest.mark.parametrize("cpu, kind, name, who, count", WAKES)
def test_wakes(cpu: int, kind: str, name: str, who: str, count: int, result: idle.Result) -> None:
    assert sum(wakeups.count for cause, wakeups in result.by_cause(cpu).items()
               if (cause.kind, cause.name, cause.who) == (kind, name, who)
               and cause.woke in ("", "vs-wake")) == count


def test_waited_for_idle_states(result: idle.Result) -> None:
    """53 signals, nearly all while CPU 1 was in C6, which the machine takes 95 to 190 us to leave,
    and 25 more where the package slept; and a few wake-ups at the program's begin and end."""
    waits = result.waited(1)["vs-wake", "C6"]
    assert 50 <= waits.count <= 56
    assert 95_000 <= waits.time / waits.count <= 215_000
    assert waits.time / waits.count < waits.most < 225_000


def test_counts_of_sysfs(result: idle.Result) -> None:
    compared = [a for a in idle.against_sysfs(result) if a.counter != "time"]
    assert len({a.cpu for a in compared}) == 4
    assert all(abs(a.trace - a.sysfs) <= max(2, 0.01 * a.sysfs) for a in compared)


def test_costs_are_those_of_the_wake_ups(result: idle.Result) -> None:
    """Energy lost is the same by state and by cause."""
    by_state = sum(use.lost_energy for use in result.total().values())
    assert sum(wakeups.lost for wakeups in result.by_cause().values()) == pytest.approx(by_state)
    assert sum(wakeups.count for wakeups in result.by_cause().values()) == sum(
        use.usage for use in result.total().values())


def test_episodes() -> None:
    """Of ten bursts on CPU 1 (test_guest_freq.py) three were held, two limited, and two had
    other CPUs busy beside them."""
    path = TRACE.with_name("freq.xz")
    result = freq.analyse(Source(path), states.load(sidecar(path)), "guest", 0, 1_000_000,
                          lambda now, facts: None)
    reasons = [e.why() for e in sorted(result.episodes, key=lambda e: e.start)
               if e.cpu == 1 and e.task == "vs-load"]
    words = ("held by rate_limit_us", "limit of 2000 MHz", "3300 MHz only")
    assert [[word for word in words if word in why] for why in reasons] == (
        [[]] * 3 + [[words[0]]] * 3 + [[words[1]]] * 2 + [[words[2]]] * 2)
