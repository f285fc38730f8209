# SPDX-License-Identifier: GPL-2.0
"""The least energy, against a search over everything a governor could do.

The program plans backwards, from what it knows of each period. Here the choices
are tried forwards, one decision at a time, whatever sense they make: each usable
state, polling that gives up, the tick stopped or not. Nothing is shared with the
program but the README's description of the model.
"""
from __future__ import annotations

import json
import random
from pathlib import Path
from typing import NamedTuple

import pytest
from test_replay import COLUMNS, FREE, GOVERNORS, PROGRAM, replay, run

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built (make replay)")
US, FAR = 1000, 1 << 62


class State(NamedTuple):
    latency: int
    residency: int
    power: float
    polling: bool = False
    disabled: bool = False

    def row(self, number: int) -> str:
        return (f"S{number} {self.latency} {self.residency} power={self.power}"
                + " polling" * self.polling + " disabled" * self.disabled)


class Period(NamedTuple):
    entry: int
    idle: int
    sleep: int      # -1: none
    next: str
    flags: int

    def row(self) -> str:
        return (f"0,{self.entry},{self.idle + 1000},{self.idle},{self.sleep},{self.sleep},"
                f"{self.next},C,0,{self.flags},1")


class Model(NamedTuple):
    states: list[State]
    tick_ns: int
    limit: int
    percent: int
    overhead: int
    stop: int
    restart: int
    tick: int
    by_latency: bool

    def options(self) -> list[object]:
        return ["--latency-ns", self.limit, "--exit-latency", self.percent,
                "--overhead-ns", self.overhead, "--tick-stop-ns", self.stop,
                "--tick-restart-ns", self.restart, "--tick-ns", self.tick,
                "--transition", "latency" if self.by_latency else "residency"]

    def energies(self) -> list[tuple[State, float]]:
        """Usable states with the energy of getting there and back."""
        found, above, energy = [], 1.0, 0.0
        for s in self.states:
            energy += (above - s.power) * s.residency
            above = s.power
            full = s.latency if self.by_latency else energy
            if not s.disabled and s.latency <= self.limit:
                found.append((s, full * self.percent / 100))
        return found


def poll_limit(model: Model) -> int:
    for s in model.states[1:]:
        if not s.disabled and s.residency >= 10 * US:
            return min(s.residency, model.tick_ns // 16)
    return model.tick_ns // 16


def search(model: Model, periods: list[Period]) -> float:
    """Least cost by the state of the tick, tried out decision by decision."""
    usable = model.energies()
    ends = {bool(periods[0].flags & 1): 0.0}
    for number, p in enumerate(periods):
        if number and not p.flags & 16:
            ends = {False: min(ends.values())}
        wake = p.entry + p.idle
        open_: dict[tuple[int, bool], float] = {(p.entry, stopped): e for stopped, e in ends.items()}
        ends = {}
        while open_:
            now, was_stopped = min(open_)
            spent = open_.pop((now, was_stopped))
            due = (now // model.tick_ns + 1) * model.tick_ns
            kept_anyway = p.next == "k" or (p.next == "w" and p.entry + p.sleep <= due)
            for stopped in {was_stopped, was_stopped or not kept_anyway}:
                paid = spent + model.overhead
                entered = now + model.overhead
                if stopped and not was_stopped:
                    paid += model.stop + model.restart
                    entered += model.stop
                # Polling gives up after a time; the bound alone may do without that.
                for state, energy, limit in [(s, e, FAR) for s, e in usable] + [
                        (s, e, poll_limit(model)) for s, e in usable if s.polling]:
                    end, tick = min(wake, entered + limit), 0
                    if not stopped and end >= due:
                        end, tick = due, model.tick
                    total = paid + tick + energy + state.power * max(end - entered, 0)
                    then = max(end, entered)
                    if then >= wake:
                        ends[stopped] = min(ends.get(stopped, FAR), total)
                    else:
                        key = (then, stopped)
                        open_[key] = min(open_.get(key, FAR), total)
    return min(ends.values())


def random_model(rng: random.Random, tick_ns: int) -> Model:
    power = [1.0] + sorted((round(rng.uniform(0.01, 0.9), 3) for _ in range(3)), reverse=True)
    latency = [0] + sorted(rng.randrange(300 * US) for _ in range(3))
    residency = [0] + sorted(rng.randrange(1, 3 * tick_ns) for _ in range(3))
    states = [State(latency[i], residency[i], power[i], polling=i == 0,
                    disabled=i > 0 and rng.random() < 0.2) for i in range(4)]
    return Model(states, tick_ns, rng.choice([0, 100 * US, 10 ** 9]), rng.choice([100, 50, 17]),
                 rng.choice([0, 1000, 6000]), rng.choice([0, 1000, 50_000]), rng.choice([0, 3000]),
                 rng.choice([0, 1000, 20_000]), rng.random() < 0.3)


def random_periods(rng: random.Random, tick_ns: int, number: int) -> list[Period]:
    """Short and long ones, some that continue the one before, timers of all kinds."""
    periods, now = [], rng.randrange(tick_ns)
    for n in range(number):
        idle = int(rng.choice([rng.uniform(0, 20 * US), rng.uniform(0, tick_ns), rng.expovariate(0.5 / tick_ns)]))
        kind = rng.choice("hhhwk-")
        sleep = -1 if kind == "-" else idle + rng.randrange(2 * tick_ns)
        flags = 4 * (rng.random() < 0.7) + 16 * (n > 0 and rng.random() < 0.4) + (n == 0 and rng.random() < 0.5)
        periods.append(Period(now, idle, sleep, kind, flags))
        now += idle + 1000 + rng.randrange(100 * US)
    return periods


def write(tmp_path: Path, model: Model, periods: list[Period]) -> tuple[Path, Path]:
    trace, states = tmp_path / "t.csv", tmp_path / "states"
    trace.write_text("\n".join([f"# tick_ns={model.tick_ns}", COLUMNS, *(p.row() for p in periods)]) + "\n")
    states.write_text("\n".join(s.row(i) for i, s in enumerate(model.states)) + "\n")
    return trace, states


@pytest.mark.parametrize("seed", range(40))
def test_least_energy_is_what_a_search_finds(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    model = random_model(rng, rng.choice([400 * US, 1000 * US]))
    periods = random_periods(rng, model.tick_ns, 30)
    trace, states = write(tmp_path, model, periods)
    got = replay("--states", states, *model.options(), trace)
    found, least = search(model, periods), got["least-energy"]["energy"]
    # The bound is let off some work where a wake-up comes that soon after a tick.
    slack = sum(model.overhead for p in periods
                if (p.entry + p.idle) % model.tick_ns < min(2 * model.overhead, p.idle))
    assert found - slack - 1e-3 <= least <= found + 1e-3
    assert got["least-energy"]["waits"] == sum(bool(p.flags & 4) for p in periods)
    # Nobody took less, and it broke no limit. The other bounds know of no ticks, and
    # ladder and haltpoll of no limits and disabled states for some of the states.
    free = len(model.energies()) == len(model.states)
    for name, result in got.items():
        if name.endswith(("teo", "menu")) or free and name.endswith(("ladder", "haltpoll")):
            assert result["energy"] >= got["least-energy"]["energy"] * (1 - 1e-12), name
        assert result["idle_ns"] == sum(p.idle for p in periods), name
    worst = max(s.latency for s, _ in model.energies())
    assert got["least-energy"]["exit_latency_ns"] <= worst * got["least-energy"]["decisions"]


TABLES = ["spr-c02", "skx", "hsx", "c1-c6", "c1", "skl", "adl", "amd-rome", "amd-milan", "hlt"]


@pytest.mark.parametrize("hz", [100, 250, 1000])
@pytest.mark.parametrize("share", ["full", "half"])
def test_no_governor_takes_less(tmp_path: Path, hz: int, share: str) -> None:
    """On real tables, with the costs as they are by default and without."""
    rng = random.Random(hz)
    periods = random_periods(rng, 10 ** 9 // hz, 2000)
    trace, _ = write(tmp_path, Model([], 10 ** 9 // hz, 0, 0, 0, 0, 0, 0, False), periods)
    tables = [word for t in TABLES for word in ("--states", t)]
    options: list[list[object]] = [[], [*FREE], ["--transition", "latency", "--overhead-ns", 6000,
                                                 "--latency-ns", 50_000]]
    for extra in options:
        done = run("--json", "--exit-latency", share, *tables, *extra, trace)
        assert done.returncode == 0, done.stderr
        for line in done.stdout.splitlines():
            found = json.loads(line)
            least = found["governors"]["least-energy"]["energy"]
            for name in GOVERNORS:
                assert found["governors"][name]["energy"] >= least * (1 - 1e-12), (found["states"], name)
