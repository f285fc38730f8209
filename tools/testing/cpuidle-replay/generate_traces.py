#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Write traces of made-up loads, for replay.

They are no substitute for recorded ones. They show how a governor takes loads
that nobody has tuned it to, of which one knows what there is to be known:
timers at a rate, wake-ups by others with several distributions, bursts, phases,
conversations, devices. The loads called drawn_N are put together at random, rates
and shapes included, so that another seed is another load. The same seed writes the
same traces.
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
TASK_RUNS, CONTINUES, TIMER_EXPIRED = 4, 16, 32

Draw = Callable[[float], float]     # a number with this mean


class Idle(NamedTuple):
    other: float        # ns until something other than a timer wakes the CPU
    timer: float        # ns until the next timer
    busy: float         # ns until the CPU is idle again
    for_a_task: bool = True     # else the idle loop goes on after the interrupt
    wheel: bool = False         # the timer is one of the wheel, due at a tick


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


def mixed(shorts: tuple[float, float], share: float, longs: tuple[float, float], busy: float = 15 * US) -> Load:
    """Two ranges of idle times in no order, all ended by others."""
    def load(state: dict, now: int, rng: random.Random) -> Idle:
        timer = until(state, now, "timer", lambda t: t + rng.uniform(50 * MS, 150 * MS))
        return Idle(rng.uniform(*(shorts if rng.random() < share else longs)), timer, rng.expovariate(1 / busy))
    return load


def server(rate: float, work: float, workers: int = 1) -> Load:
    """Requests come at random, whether or not the last one is done (M/G/1)."""
    def load(state: dict, now: int, rng: random.Random) -> Idle:
        timer = until(state, now, "timer", lambda t: t + rng.uniform(2 * MS, 100 * MS))
        other = until(state, now, "other", lambda t: t + rng.expovariate(rate / 1e9))
        busy = rng.lognormvariate(-0.5, 1) * work * rng.randint(1, workers)
        return Idle(other, timer, busy)
    return load


def paced_io(rate: float, device: float) -> Load:
    """An I/O each time a timer expires, then the device's answer: fio with a rate."""
    def load(state: dict, now: int, rng: random.Random) -> Idle:
        period = 1e9 / rate
        timer = until(state, now, "timer", lambda t: (t // period + 1) * period)
        state["waits"] = not state.get("waits", False)
        answer = device * rng.lognormvariate(0, 0.25)
        return Idle(answer if state["waits"] else 10 * timer, timer, rng.uniform(5 * US, 15 * US))
    return load


def io_queue(device: float, depth: int, flush: float) -> Load:
    """Several I/Os under way at a device, and a flush after every 32."""
    def load(state: dict, now: int, rng: random.Random) -> Idle:
        state["n"] = state.get("n", 0) + 1
        mean = flush if state["n"] % 32 == 0 else device / depth
        return Idle(mean * rng.lognormvariate(-0.08, 0.4), 10 * MS, rng.uniform(3 * US, 9 * US))
    return load


def conversation(answer: float, length: int, think: float) -> Load:
    """Answers that take about as long each, and a pause after some of them."""
    def load(state: dict, now: int, rng: random.Random) -> Idle:
        timer = until(state, now, "timer", lambda t: t + 200 * MS)
        if rng.random() < 1 / length:
            return Idle(rng.expovariate(1 / think), timer, 40 * US)
        return Idle(abs(rng.gauss(answer, 0.2 * answer)), timer, rng.uniform(8 * US, 20 * US))
    return load


def sockets(groups: int) -> Load:
    """Senders and receivers on two CPUs: runs of very short idle times, heavy tail."""
    def load(state: dict, now: int, rng: random.Random) -> Idle:
        timer = until(state, now, "timer", lambda t: t + rng.expovariate(1 / (20 * MS)))
        if state.get("run", 0) <= 0:
            state["run"] = int(rng.paretovariate(0.8)) * groups
            state["gap"] = rng.choice([4 * US, 9 * US, 20 * US])
            return Idle(rng.paretovariate(1.2) * 30 * US, timer, rng.expovariate(1 / (60 * US)))
        state["run"] -= 1
        return Idle(rng.expovariate(1 / state["gap"]), timer, rng.expovariate(1 / (12 * US)))
    return load


def timers(*hz: float) -> Load:
    """Several regular timers on one CPU, each with its phase."""
    def load(state: dict, now: int, rng: random.Random) -> Idle:
        due = []
        for key, rate in enumerate(hz):
            period = 1e9 / rate
            phase = state.setdefault(f"phase {key}", rng.uniform(0, period))
            due.append(((now - phase) // period + 1) * period + phase - now)
        other = until(state, now, "other", lambda t: t + rng.expovariate(1 / (40 * MS)))
        return Idle(other, min(due), rng.uniform(10 * US, 120 * US))
    return load


def housekeeping(mean: float) -> Load:
    """Timers of the wheel, interrupts that no task waits for, work by others."""
    def load(state: dict, now: int, rng: random.Random) -> Idle:
        wheel = until(state, now, "wheel", lambda t: (t // TICK + rng.choice([1, 2, 4, 16, 64])) * TICK)
        other = until(state, now, "other", lambda t: t + rng.expovariate(1 / mean))
        return Idle(other, wheel, rng.uniform(10 * US, 60 * US), rng.random() < 0.6, wheel=True)
    return load


def switching(*loads: Load, stay: float) -> Load:
    """Now this load, now that, for a random time each."""
    def load(state: dict, now: int, rng: random.Random) -> Idle:
        if state.get("until", 0) <= now:
            state["until"] = now + rng.expovariate(1 / stay)
            state["which"] = rng.randrange(len(loads))
        which = state["which"]
        return loads[which](state.setdefault(f"load {which}", {}), now, rng)
    return load


def drawn(rng: random.Random) -> Load:
    """A load of which nothing was decided by hand."""
    def between(low: float, high: float) -> float:
        return low * (high / low) ** rng.random()

    makers: list[Callable[[], Load]] = [
        lambda: periodic(between(50, 5000), rng.choice([0, between(5 * US, MS)])),
        lambda: remote(rng.choice(["exponential", "uniform", "regular", "lognormal"]),
                       between(3 * US, 10 * MS), between(3 * US, 300 * US)),
        lambda: mixed((2 * US, between(5 * US, 60 * US)), rng.uniform(0.05, 0.9),
                      (between(60 * US, 200 * US), between(200 * US, 5 * MS))),
        lambda: server(between(50, 8000), between(5 * US, 80 * US), rng.randint(1, 4)),
        lambda: paced_io(between(50, 4000), between(15 * US, 200 * US)),
        lambda: io_queue(between(20 * US, 500 * US), rng.randint(1, 8), between(200 * US, 8 * MS)),
        lambda: conversation(between(8 * US, 300 * US), rng.randint(2, 200), between(300 * US, 20 * MS)),
        lambda: sockets(rng.randint(1, 40)),
        lambda: timers(*(between(20, 2000) for _ in range(rng.randint(1, 4)))),
        lambda: housekeeping(between(MS, 50 * MS)),
        lambda: bursts(rng.randint(3, 80), between(8 * US, 200 * US), between(500 * US, 20 * MS)),
        lambda: sleeper(between(20 * US, MS), between(MS, 40 * MS), between(200 * US, 40 * MS)),
    ]
    chosen = [rng.choice(makers)() for _ in range(rng.randint(1, 3))]
    return chosen[0] if len(chosen) == 1 else switching(*chosen, stay=between(3 * MS, 500 * MS))


def modes(rng: random.Random) -> Load:
    """Idle times of up to three lengths, in turns or drawn, long before the next timer. It is for
    rules of the tick: what is wrong with a choice lasts until the timer."""
    lengths = [10 ** rng.uniform(4, 7.7) for _ in range(rng.choice((1, 2, 2, 3, 3)))]
    weights = [10 ** rng.uniform(-2, 0) for _ in lengths]
    runs = [rng.choice((1, 1, 3, 20, 200, 600)) for _ in lengths]
    far, jitter, busy = 10 ** rng.uniform(8, 9.7), rng.choice((0.02, 0.2, 0.5)), rng.choice((5, 30, 200)) * US
    in_turns, announced = rng.random() < 0.5, rng.random() < 0.2
    for_tasks = rng.choice((1, 1, 0.9))

    def load(state: dict, now: int, rng: random.Random) -> Idle:
        if state.get("left", 0) < 1:
            mode = state["mode"] = ((state.get("mode", 0) + 1) % len(lengths) if in_turns
                                    else rng.choices(range(len(lengths)), weights)[0])
            state["left"] = runs[mode] if in_turns else rng.expovariate(1 / runs[mode]) + 1
        state["left"] -= 1
        idle = lengths[state["mode"]] * rng.uniform(1 - jitter, 1 + jitter)
        timer = idle if announced and state["mode"] == 0 else far
        return Idle(idle, timer, busy, rng.random() < for_tasks)
    return load


DRAWN, PERIODS_DRAWN = 12, 12000    # how many loads of that kind, and how long they are
PERIODS_MODES = 8000
LOADS: dict[str, tuple[int, Load]] = {     # name: periods, load
    "periodic_73": (3000, periodic(73)), "periodic_199": (6000, periodic(199)),
    "periodic_401": (9000, periodic(401)), "jitter_997": (12000, periodic(997, 200 * US)),
    "timers_3": (12000, timers(60, 187.5, 1000 / 7)), "timers_fast": (15000, timers(250, 1000, 3100)),
    "remote_exp_50us": (20000, remote("exponential", 50 * US)),
    "remote_exp_330us": (20000, remote("exponential", 330 * US)),
    "remote_exp_5ms": (5000, remote("exponential", 5 * MS)),
    "remote_uniform_60us": (20000, remote("uniform", 60 * US)),
    "remote_uniform_600us": (15000, remote("uniform", 600 * US)),
    "remote_uniform_2ms": (10000, remote("uniform", 2 * MS)),
    "remote_regular_100us": (20000, remote("regular", 100 * US)),
    "remote_regular_700us": (12000, remote("regular", 700 * US)),
    "remote_regular_2500us": (8000, remote("regular", 2500 * US)),
    "remote_lognormal_4us": (20000, remote("lognormal", 4 * US, busy=3 * US)),
    "remote_lognormal_70us": (20000, remote("lognormal", 70 * US)),
    "remote_lognormal_500us": (15000, remote("lognormal", 500 * US)),
    "remote_lognormal_5ms": (6000, remote("lognormal", 5 * MS)),
    "short_40_long_60": (20000, mixed((2 * US, 15 * US), 0.4, (60 * US, 150 * US))),
    "short_30_long_70": (10000, mixed((1 * US, 3 * US), 0.3, (2900 * US, 3100 * US))),
    "bursts_8": (12000, bursts(8, 60 * US, 3 * MS)), "bursts_50": (20000, bursts(50, 22 * US, 10 * MS)),
    "rarely_long_1": (20000, rarely_long(18 * US, 0.01, 5 * MS)),
    "rarely_long_5": (20000, rarely_long(45 * US, 0.05, 1 * MS)),
    "sleeper_1ms": (12000, sleeper(50 * US, 2 * MS, 4 * MS)),
    "sleeper_10ms": (8000, sleeper(1 * MS, 20 * MS, 3 * MS)),
    "server_200": (6000, server(200, 60 * US)), "server_2000": (20000, server(2000, 40 * US)),
    "server_9000": (20000, server(9000, 25 * US, 2)),
    "paced_io_150": (6000, paced_io(150, 90 * US)), "paced_io_1200": (15000, paced_io(1200, 60 * US)),
    "io_queue_1": (15000, io_queue(45 * US, 1, 900 * US)), "io_queue_4": (20000, io_queue(120 * US, 4, 3 * MS)),
    "conversation_35us": (20000, conversation(35 * US, 60, 3 * MS)),
    "conversation_180us": (15000, conversation(180 * US, 12, 2 * MS)),
    "sockets_1": (20000, sockets(1)), "sockets_20": (20000, sockets(20)),
    "housekeeping_5ms": (8000, housekeeping(5 * MS)), "housekeeping_40ms": (4000, housekeeping(40 * MS)),
    "phases": (15000, phases()),
}


def rows(periods: int, load: Load, rng: random.Random) -> list[str]:
    state: dict = {}
    now, lines, after = MS, [], 0
    for _ in range(periods):
        idle = load(state, now, rng)
        timer = max(int(idle.timer), 0)
        wake = min(max(int(idle.other), US // 2), timer)
        by_timer = wake == timer
        flags = after + TASK_RUNS * idle.for_a_task + TIMER_EXPIRED * (by_timer and not idle.wheel)
        lines.append(f"0,{now},{wake + HANDLER},{wake},{timer},{min(timer, TICK - now % TICK)},"
                     f"{'w' if idle.wheel else 'h'},{'T' if by_timer else 'C'},0,{flags},1")
        after = 0 if idle.for_a_task else CONTINUES
        now += wake + HANDLER + (max(int(idle.busy), US) if idle.for_a_task else US // 4)
    return lines


def put_together(make: Callable[[random.Random], Load], count: int, periods: int,
                 seed: int) -> dict[str, tuple[int, Load]]:
    """So many loads, by name."""
    names = [f"{make.__name__}_{number}" for number in range(1, count + 1)]
    return {name: (periods, make(random.Random(f"{name} {seed} load"))) for name in names}


def write(directory: Path, seed: int, names: list[str] | None = None, number_modes: int = 0) -> list[Path]:
    """All loads, or some, or so many of modes() alone; the files written."""
    directory.mkdir(parents=True, exist_ok=True)
    loads = (put_together(modes, number_modes, PERIODS_MODES, seed) if number_modes
             else LOADS | put_together(drawn, DRAWN, PERIODS_DRAWN, seed))
    written = []
    for name in names or loads:
        periods, load = loads[name]
        text = [f"# idle periods v1; workload={name}; seed={seed}; hz=250; tick_ns={TICK}", COLUMNS,
                *rows(periods, load, random.Random(f"{name} {seed}"))]
        written.append(directory / f"{name}.csv")
        written[-1].write_text("\n".join(text) + "\n")
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, help="where to write NAME.csv")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--modes", type=int, default=0, metavar="N",
                        help="instead, N loads of a few lengths long before the next timer")
    args = parser.parse_args()
    write(args.directory, args.seed, number_modes=args.modes)


if __name__ == "__main__":
    main()
