# SPDX-License-Identifier: GPL-2.0
"""How does our TEO governor take situations whose outcome can be told?

Idle times made by hand are replayed: what is needed to take them well is known, whatever
the governor's arithmetic is. KERNEL_TREE names another tree than build/linux.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import units

TOP = Path(__file__).resolve().parents[3]
TREE = Path(os.environ.get("KERNEL_TREE", units.LINUX))
US, MS = 1_000, 1_000_000
TICK = 4 * MS
HEADER = (
    "# idle periods v1; workload=made by hand; hz=250; tick_ns=4000000\n"
    "cpu,entry_ns,dur_ns,wake_ns,sleep_ns,delta_ns,next,src,irq,flags,state\n"
)

Result = dict[str, float]


@dataclass
class Trace:
    """Idle times one after the other, each followed by some work."""

    now: int = MS
    rows: list[str] = field(default_factory=list)

    def idle(self, time: int, timer: int = 500 * MS, *, goes_on: bool = False,
             before_tick: int | None = None) -> None:
        """Something else than the timer ends it if that is due later."""
        if before_tick is not None:
            self.now += TICK - (self.now + before_tick) % TICK
        due = time == timer
        flags = (16 if goes_on else 4) + 32 * due
        self.rows.append(
            f"0,{self.now},{time},{time},{timer},{timer},h,{'T' if due else 'C'},0,{flags},1"
        )
        self.now += time + 30 * US


def idle_for_long(trace: Trace) -> None:
    for _ in range(50):
        trace.idle(400 * MS, 400 * MS)


def long_after_short(trace: Trace) -> None:
    for _ in range(20):
        for _ in range(200):
            trace.idle(20 * US)
        trace.idle(2000 * MS, 2000 * MS)


def short(trace: Trace) -> None:
    for _ in range(3000):
        trace.idle(28 * US)


def shorter(trace: Trace) -> None:
    for _ in range(3000):
        trace.idle(5 * US)


def tick_in_between(trace: Trace) -> None:
    for _ in range(300):
        trace.idle(3900 * US, before_tick=300 * US)


def in_turns(trace: Trace) -> None:
    for _ in range(500):
        trace.idle(60 * US, before_tick=3 * MS)
        trace.idle(2 * MS, before_tick=3 * MS)


def by_end(trace: Trace) -> None:
    """A timer, and then something else sooner than C6 takes to pay off."""
    for _ in range(500):
        trace.idle(1600 * US, 1600 * US, before_tick=3 * MS)
        trace.idle(600 * US, before_tick=3 * MS)


def slow_exit(trace: Trace) -> None:
    """What others end only seems to be long enough for C6, as the exit is part of it."""
    for n in range(1500):
        if n % 10 == 0:
            trace.idle(2600 * US, 2600 * US, before_tick=3 * MS)
        else:
            trace.idle(1900 * US, before_tick=3 * MS)


def stopped_already(trace: Trace) -> None:
    """An interrupt without a task; after most, a task makes the next one short."""
    for n in range(400):
        trace.idle(60 * MS)
        if n % 12:
            trace.idle(20 * US)
        else:
            trace.idle(300 * MS, 310 * MS, goes_on=True)


def tick_soon(trace: Trace) -> None:
    for _ in range(300):
        trace.idle(900 * US, before_tick=300 * US)


def too_short_for_c2(trace: Trace) -> None:
    for _ in range(2000):
        trace.idle(700 * US)


def soon_after_the_tick(trace: Trace) -> None:
    """Something comes soon after a tick, seldom after the third or ninth; then 200 ms nothing."""
    for n in range(2000):
        more = 8 if n % 100 == 50 else 2 if n % 10 == 5 else 0
        trace.idle(1020 * US + more * MS, before_tick=3990 * US)
        if n % 200 == 199:
            trace.idle(200 * MS, before_tick=3990 * US)


def soon_after_a_late_tick(trace: Trace) -> None:
    """At HZ 100: short ones, and then one that ends soon after a tick, or lasts for 2 s."""
    for n in range(60):
        for _ in range(100):
            trace.idle(20 * US)
        trace.now += 10 * MS - (trace.now + 9 * MS) % (10 * MS)
        trace.idle(2000 * MS if n % 20 == 19 else 9030 * US)


def long_between_middle(trace: Trace) -> None:
    """Idle times for the middle state, and seldom a long one, far from any timer."""
    for _ in range(40):
        for _ in range(20):
            trace.idle(2 * MS, before_tick=3 * MS)
        trace.idle(400 * MS, before_tick=3 * MS)


def steady(trace: Trace) -> None:
    """Devices end them; none is worth the deepest state."""
    for n in range(3000):
        trace.idle(4 * MS + n % 7 * US)


def rest_after_work(trace: Trace) -> None:
    """Idle times for a state that needs more than a tick period, and then a rest."""
    for _ in range(60):
        for _ in range(40):
            trace.idle(6500 * US)
        trace.idle(1000 * MS, 1000 * MS)


def rest_after_much_work(trace: Trace) -> None:
    """A third of a second of idle times for a middle state, and then a second."""
    for n in range(3000):
        trace.idle(1200 * US + n % 60 * US, 1000 * MS)
        if n % 300 == 299:
            trace.idle(1000 * MS, 1000 * MS)


def far_timer(trace: Trace) -> None:
    """The tick is kept, and ends three parts of each idle time; the first of a kind counts."""
    for n in range(3000):
        trace.idle(3800 * US + n * 7 % 400 * US, 20000 * MS)


def very_far_timer(trace: Trace) -> None:
    for n in range(3000):
        trace.idle(3000 * US + n * 7 % 400 * US, 20000 * MS)


def task_after_tick(trace: Trace) -> None:
    """The tick makes a task run for 30 us, so no idle time continues."""
    for _ in range(1000):
        trace.idle(300 * US, before_tick=300 * US)


def messages(trace: Trace) -> None:
    for n in range(3000):
        trace.idle(200 * US + n % 80 * US, 20000 * MS)


def messages_and_rests(trace: Trace) -> None:
    """No tick and no timer ends the first rest after messages unless teo starts the tick."""
    for _ in range(40):
        for n in range(100):
            trace.idle(200 * US + n % 80 * US, 20000 * MS)
        for _ in range(20):
            trace.idle(400 * MS, 400 * MS)


def device(trace: Trace) -> None:
    for n in range(3000):
        trace.idle(160 * US + n % 80 * US)


def beyond_polling(trace: Trace) -> None:
    """What ends by itself while polling is short; what polling gives up is not."""
    for n in range(3000):
        trace.idle({0: 200 * US, 5: 2 * MS}.get(n % 10, 5 * US), before_tick=3 * MS)


@dataclass(frozen=True)
class Case:
    make: Callable[[Trace], None]
    states: str
    right: Callable[[Result], bool]
    options: tuple[str, ...] = ()


CASES = {
    "idle": Case(idle_for_long, "c1-c6", lambda r: r["ticks"] < 30 and r["more"] < 1.02),
    "idle, two states": Case(idle_for_long, "c1", lambda r: r["ticks"] < 30),
    "idle, limit": Case(idle_for_long, "spr-c02",
        lambda r: r["ticks"] < 30, ("--latency-ns", "1000")),
    "idle, deep states disabled": Case(idle_for_long, "{shallow}", lambda r: r["ticks"] < 30),
    "soon after the tick": Case(soon_after_the_tick, "spr-c02",
        lambda r: r["ticks"] <= 2000 + 2 * 200 + 8 * 20 + 10 * 4, ("--hz", "1000")),
    "soon after a late tick": Case(soon_after_a_late_tick, "spr-c02",
        lambda r: r["ticks"] <= 60 * 2 + 3 * 4, ("--hz", "100")),
    "idle, deepest beyond the tick": Case(idle_for_long, "skl",
        lambda r: r["ticks"] < 30 and r["more"] < 1.02),
    "long after short": Case(long_after_short, "c1-c6", lambda r: r["ticks"] <= 20 * (3 + 1)),
    "short, limit": Case(short, "skl", lambda r: r["tick_stops"] < 5, ("--latency-ns", "20000")),
    "short, HZ 1000": Case(short, "adl", lambda r: r["tick_stops"] < 5, ("--hz", "1000")),
    "timer not asked for": Case(shorter, "skx", lambda r: r["timer_queries"] < 100),
    "timer asked for": Case(in_turns, "skx", lambda r: r["timer_queries"] > 450),
    "tick in between": Case(tick_in_between, "spr-c02", lambda r: r["tick_stops"] > 250),
    "tick soon": Case(tick_soon, "{quick}", lambda r: r["too_deep"] < 10),
    "long between middle": Case(long_between_middle, "{client}", lambda r: r["more"] < 1.3),
    "steady": Case(steady, "skl",
        lambda r: r["more"] < 1.1 and r["ticks"] < 1000, ("--hz", "1000")),
    "steady, quarter of a tick": Case(steady, "{client}", lambda r: r["more"] < 1.15),
    "rest after work": Case(rest_after_work, "skl", lambda r: r["more"] < 1.1),
    "rest after much work": Case(rest_after_much_work, "spr", lambda r: r["more"] < 1.5),
    "far timer": Case(far_timer, "{client}", lambda r: r["more"] < 1.45, ("--hz", "1000")),
    "very far timer": Case(very_far_timer, "adl", lambda r: r["more"] < 1.7, ("--hz", "1000")),
    "task after tick": Case(task_after_tick, "spr-c02", lambda r: r["too_deep"] < 10),
    "no tick, messages": Case(messages, "spr-c02", lambda r: r["too_deep"] < 10, ("--nohz-full",)),
    "no tick, messages and rests": Case(messages_and_rests, "spr-c02",
        lambda r: r["too_deep"] < 2 * 40 and r["more"] < 1.01, ("--nohz-full",)),
    "no tick, polling": Case(messages_and_rests, "spr-c02",
        lambda r: r["ticks"] == 0, ("--nohz-full", "--latency-ns", "0")),
    "C1 of ACPI": Case(device, "{acpi}", lambda r: r["more"] < 1.1),
    "beyond polling": Case(beyond_polling, "{deep}", lambda r: r["more"] < 1.5),
    "shallow keeps the tick": Case(too_short_for_c2, "amd-genoa",
        lambda r: r["tick_stops"] < 5, ("--hz", "1000")),
    "no deeper state": Case(too_short_for_c2, "c1",
        lambda r: r["tick_stops"] > 1900, ("--hz", "1000")),
    "polling keeps the tick": Case(tick_in_between, "poll", lambda r: r["tick_stops"] == 0),
    "polling keeps the tick, limit": Case(tick_in_between, "spr-c02",
        lambda r: r["tick_stops"] == 0, ("--latency-ns", "0")),
    "idle, limit, not polling": Case(idle_for_long, "{halts}",
        lambda r: r["ticks"] <= 50 * 4, ("--latency-ns", "0")),
    "idle, limit, polling disabled": Case(idle_for_long, "{disabled}",
        lambda r: r["ticks"] <= 50 * 4, ("--latency-ns", "0")),
    "in turns": Case(in_turns, "spr-c02", lambda r: r["adequate"] > 0.97 * r["decisions"]),
    "by end": Case(by_end, "spr-c02", lambda r: r["adequate"] > 0.97 * r["decisions"]),
    "slow exit": Case(slow_exit, "{slow}", lambda r: r["wake_latency_ns"] < 300 * 600 * US),
    "stopped already": Case(stopped_already, "spr-c02", lambda r: r["more"] < 1.1),
    "overhead": Case(by_end, "spr-c02",
        lambda r: r["adequate"] > 0.97 * r["decisions"], ("--overhead-ns", "6000")),
}

TABLES = {
    "acpi": "POLL 0 0 polling\nC1 0 0\n",
    "slow": "POLL 0 0 polling\nC1 1000 1000\nC6 600000 800000\n",
    "halts": "C1 0 0\nC6 133000 600000\n",
    "disabled": "POLL 0 0 polling disabled\nC1 1000 1000\nC6 133000 600000\n",
    "quick": "POLL 0 0 polling\nC1 1000 1000\nC6 50000 600000\n",
    "shallow": "POLL 0 0 polling\nC1 1000 1000\nC6 133000 600000 disabled\n",
    "client": "POLL 0 0 polling\nC1 1000 1000\nC2 120000 360000\nC3 1034000 3102000\n",
    "deep": "POLL 0 0 polling\nC6 133000 600000\n",
}


pytestmark = pytest.mark.skipif(not TREE.is_dir(), reason="no build/linux (make tree)")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("replay")
    subprocess.run(["make", "-s", "-j2", "-C", TOP / "tools/testing/cpuidle-replay",
                    f"OUT={out}", f"KSRC={units.LINUX}",
                    f"OURS={TREE}/drivers/cpuidle/governors", "WARN=-w", "KWARN=-w"], check=True)
    return out / "governor-replay"


def replay(program: Path, case: Case, scratch: Path) -> Result:
    trace = Trace()
    case.make(trace)
    file = scratch / "trace.csv"
    file.write_text(HEADER + "\n".join(trace.rows) + "\n")
    for name, text in TABLES.items():
        (scratch / name).write_text(text)
    states = case.states.format(**{name: scratch / name for name in TABLES})
    done = subprocess.run([program, "--json", "--governor", "teo", "--governor", "least-energy",
                           "--states", states, *case.options, file],
                          capture_output=True, text=True)
    assert not done.returncode, done.stderr
    governors = json.loads(done.stdout)["governors"]
    more = governors["teo"]["energy"] / governors["least-energy"]["energy"]
    return governors["teo"] | {"more": more}


@pytest.mark.parametrize("title", CASES)
def test_teo(title: str, program: Path, tmp_path: Path) -> None:
    result = replay(program, CASES[title], tmp_path)
    assert CASES[title].right(result), result
