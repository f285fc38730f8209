#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Write traces of made-up loads, for replay.

They are no substitute for recorded ones. They show how a governor takes loads
that nobody has tuned it to, of which one knows what there is to be known:
timers at a rate, wake-ups by others with several distributions, bursts, phases.
The same seed writes the same traces.
"""
from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

TICK = 4_000_000
US, MS = 1_000, 1_000_000
COLUMNS = "cpu,entry_ns,dur_ns,wake_ns,sleep_ns,delta_ns,next,src,irq,flags,state"
HANDLER = 2 * US        # from the wake-up to the end of the period
TASK_RUNS, TIMER_EXPIRED = 4, 32

Draw = Callable[[float], float]     # a number with this mean


class Idle(NamedTuple):
    other: float        # ns until something other than a timer wakes the CPU
    timer: float        # ns until the next timer
    busy: float         # ns until the CPU is idle again


Load = Callable[[dict, int, random.Random], Idle]


def until(state: dict, now: int, key: str, following: Callable[[int], float]) -> float:
    """Time to the next event of a process; after it, `following` says when the next is."""
    if state.get(key, 0) <= now:
        state[key] = following(now)
    return state[key] - now


def draws(rng: random.Random) -> dict[str, Draw]:
    return {"exponential": lambda mean: rng.expovariate(1 / mean),
            "uniform": lambda mean: rng.uniform(0, 2 * mean),
            "regular": lambda mean: rng.gauss(mean, 0.15 * mean),
            "lognormal": lambda mean: rng.lognormvariate(-0.5, 1) * mean}


def periodic(hz: float, jitter: float = 0) -> Load:
    """A timer at a rate, and now and then something else."""
    def load(state: dict, now: int, rng: random.Random) -> Idle:
        period = 1e9 / hz
        timer = until(state, now, "timer", lambda t: (t // period + 1) * period + rng.uniform(0, jitter))
        other = until(state, now, "other", lambda t: t + rng.expovariate(1 / (30 * MS)))
        return Idle(other, timer, rng.uniform(20 * US, 80 * US))
    return load


def remote(shape: str, mean: float, busy: float = 30 * US) -> Load:
    """Wake-ups by others, the next timer is far away."""
    def load(state: dict, now: int, rng: random.Random) -> Idle:
        timer = until(state, now, "timer", lambda t: t + rng.uniform(50 * MS, 150 * MS))
        return Idle(draws(rng)[shape](mean), timer, rng.expovariate(1 / busy))
    return load


def bursts(length: int, gap: float, pause: float) -> Load:
    """Short idle times, and after so many of them a long one."""
    def load(state: dict, now: int, rng: random.Random) -> Idle:
        state["n"] = state.get("n", 0) + 1
        long = state["n"] % length == 0
        mean = pause if long else gap
        return Idle(rng.gauss(mean, 0.1 * mean), 3 * pause, 10 * US)
    return load


def rarely_long(gap: float, share: float, pause: float) -> Load:
    """The same, but nothing tells when the long one comes."""
    def load(state: dict, now: int, rng: random.Random) -> Idle:
        timer = until(state, now, "timer", lambda t: t + 20 * MS)
        long = rng.random() < share
        other = rng.expovariate(1 / pause) if long else rng.gauss(gap, 0.15 * gap)
        return Idle(other, timer, 8 * US)
    return load


def sleeper(least: float, most: float, others: float) -> Load:
    """A task that sleeps for random times, and others that wake up the CPU."""
    def load(state: dict, now: int, rng: random.Random) -> Idle:
        timer = until(state, now, "timer", lambda t: t + rng.uniform(least, most))
        other = until(state, now, "other", lambda t: t + rng.expovariate(1 / others))
        return Idle(other, timer, 40 * US)
    return load


def phases() -> Load:
    """Another behaviour every 200 ms."""
    kinds = [("regular", 25 * US), ("exponential", 2 * MS), ("uniform", 500 * US), ("exponential", 8 * MS)]

    def load(state: dict, now: int, rng: random.Random) -> Idle:
        shape, mean = kinds[now // (200 * MS) % len(kinds)]
        timer = until(state, now, "timer", lambda t: t + 30 * MS)
        return Idle(draws(rng)[shape](mean), timer, 20 * US)
    return load


LOADS: dict[str, tuple[int, Load]] = {     # name: periods, load
    "periodic_73": (3000, periodic(73)), "periodic_199": (6000, periodic(199)),
    "periodic_401": (9000, periodic(401)), "jitter_997": (12000, periodic(997, 200 * US)),
    "remote_exp_50us": (30000, remote("exponential", 50 * US)),
    "remote_exp_330us": (20000, remote("exponential", 330 * US)),
    "remote_exp_5ms": (5000, remote("exponential", 5 * MS)),
    "remote_uniform_600us": (15000, remote("uniform", 600 * US)),
    "remote_regular_100us": (30000, remote("regular", 100 * US)),
    "remote_regular_700us": (12000, remote("regular", 700 * US)),
    "remote_regular_2500us": (8000, remote("regular", 2500 * US)),
    "remote_lognormal_4us": (30000, remote("lognormal", 4 * US, busy=3 * US)),
    "remote_lognormal_500us": (15000, remote("lognormal", 500 * US)),
    "remote_lognormal_5ms": (6000, remote("lognormal", 5 * MS)),
    "bursts_8": (12000, bursts(8, 60 * US, 3 * MS)), "bursts_50": (20000, bursts(50, 22 * US, 10 * MS)),
    "rarely_long_1": (30000, rarely_long(18 * US, 0.01, 5 * MS)),
    "rarely_long_5": (30000, rarely_long(45 * US, 0.05, 1 * MS)),
    "sleeper_1ms": (12000, sleeper(50 * US, 2 * MS, 4 * MS)),
    "sleeper_10ms": (8000, sleeper(1 * MS, 20 * MS, 3 * MS)),
    "phases": (15000, phases()),
}


def rows(periods: int, load: Load, rng: random.Random) -> list[str]:
    state: dict = {}
    now, lines = MS, []
    for _ in range(periods):
        idle = load(state, now, rng)
        timer = max(int(idle.timer), 0)
        wake = min(max(int(idle.other), US // 2), timer)
        by_timer = wake == timer
        lines.append(f"0,{now},{wake + HANDLER},{wake},{timer},{min(timer, TICK - now % TICK)},h,"
                     f"{'T' if by_timer else 'C'},0,{TASK_RUNS + TIMER_EXPIRED * by_timer},1")
        now += wake + HANDLER + max(int(idle.busy), US)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, help="where to write NAME.csv")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    args.directory.mkdir(parents=True, exist_ok=True)
    for name, (periods, load) in LOADS.items():
        rng = random.Random(f"{name} {args.seed}")
        text = [f"# idle periods v1; workload={name}; hz=250; tick_ns={TICK}", COLUMNS,
                *rows(periods, load, rng)]
        (args.directory / f"{name}.csv").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
