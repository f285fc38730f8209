# SPDX-License-Identifier: GPL-2.0
"""Utilisation of periodic work in a guest beside what it should be.

The steps of guests, and what is read from the result. Nothing here
depends on how the kernel does it: utilisation comes from /proc/PID/sched, the clock from
the model's trace, freq_max from the machine file. Used by invariance.py and by
tests/test_utilisation.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...guest.boot import Result
from ...machine.machine import Machine
from ...readers import trace
from . import pelt

#: The worker's CPU, if nothing else is said; the watcher is on CPU 0.
CPU = 1
_FREQ = "$CPU/cpu[0-9]*/cpufreq"
#: Work of 1 ms at 3.8 GHz, in the unit of vs-util.
UNITS_PER_MS = 118
#: With ticks of 4 ms: a burst of 1 ms meets one in at most four periods.
PERIOD_US = 11_000
#: Periods at each clock, and how many of them may still show the one before: until two
#: ticks have met bursts.
HOLD, SKIP = 18, 8
#: Periods until a task's first utilisation is forgotten.
SETTLE = pelt.SETTLE_NS // 1000 // PERIOD_US + 1

#: The clock changes every so many ms,
EVERY_MS = (2, 5, 11, 37, 101)


@dataclass(frozen=True)
class Work:
    """of this work: a fixed amount, or a fixed time."""

    name: str
    period_us: int
    options: str


WORKS = (Work("0.3 ms", 3_100, "-t 10"), Work("1 ms", 10_100, "-t 10"),
         Work("work of 0.3 ms", 3_100, f"-w {UNITS_PER_MS * 31 // 100}"),
         Work("work of 1 ms", 10_100, f"-w {UNITS_PER_MS}"))


def freq_max_khz(m: Machine, cores: int = 4) -> float:
    """Turbo with so many active cores, else the highest; as the kernel rounds it."""
    ratio = next((r for c, r in zip(m.turbo.cores, m.turbo.ratios) if c >= cores),
                 m.turbo.ratios[0])
    return (ratio * 1024 // m.base_ratio) / 1024 * m.tsc_khz


def clocks(m: Machine) -> list[int]:
    """All P-states."""
    return [r * m.bus_khz for r in range(m.min_ratio, max(m.turbo.ratios) + 1)]


#: All clocks are the highest until somebody asks for another.
TAKE_OVER = ("governor", f"put performance {_FREQ}/scaling_governor; sleep 0.01; "
             f"put userspace {_FREQ}/scaling_governor")


def fixed_step(name: str, mark: int, khz: list[int], cpu: int = CPU) -> tuple[str, str]:
    """The same work at one clock after the other."""
    hold = HOLD * PERIOD_US // 1000
    settle = -(-SETTLE // HOLD)
    wanted = [khz[0]] * settle + khz
    return name, (f"vs-util -c {cpu} -w {UNITS_PER_MS} -p {PERIOD_US} -n {HOLD * len(wanted)} "
                  f"-m {mark} -f {','.join(map(str, wanted))} -l {hold}")


@dataclass(frozen=True)
class Fixed:
    """At one clock: errors against the closed form, and the scale behind the
    utilisation, in 1/1024."""

    khz: int
    errors: pelt.Errors
    scale: float
    wanted_scale: float


def events(result: Result) -> trace.Trace:
    assert result.trace
    return trace.read(result.trace)


def fixed(result: Result, seen: trace.Trace, step: str, mark: int,
          max_khz: float, cpu: int = CPU) -> list[Fixed]:
    """In the order of the clocks' first use; without what comes right after a change."""
    found = pelt.parse(result.text(step), seen.mark(mark).time_ns)
    clock = pelt.Clock(seen.khz[cpu], max_khz)
    at: dict[int, list[pelt.Burst]] = {}
    same, last = 0, 0
    for b in found:
        during = {khz for _, khz in clock.during(b.begin, b.end)}
        khz = during.pop()
        same = same + 1 if not during and khz == last else 0
        last = khz
        if same >= SKIP and b.begin - found[0].begin > pelt.SETTLE_NS:
            at.setdefault(khz, []).append(b)
    out = []
    for khz, held in at.items():
        ran = sum(b.ran for b in held) / len(held)
        share, period = min(khz / max_khz, 1), PERIOD_US * 1000
        util = sum(b.util for b in held) / len(held)
        out.append(Fixed(khz, pelt.errors([(b.util, pelt.steady(ran * share, period))
                                           for b in held]),
                         1024 * pelt.steady_run(util, period) / ran, 1024 * share))
    return out


def changing_cells() -> list[tuple[int, int, Work]]:
    """(mark, ms between two changes, work)"""
    cells = [(every, work) for work in WORKS for every in EVERY_MS]
    return [(100 + i, every, work) for i, (every, work) in enumerate(cells)]


def changing_steps(m: Machine, cells: list[tuple[int, int, Work]],
                   length_ms: int) -> Iterator[tuple[str, str]]:
    """The clock jumps between the lowest and the highest."""
    for mark, every, work in cells:
        periods = pelt.SETTLE_NS // 1000 // work.period_us + length_ms * 1000 // work.period_us
        yield (f"changing-{mark}", f"vs-util -c {CPU} {work.options} -p {work.period_us} "
               f"-n {periods} -m {mark} -f {clocks(m)[0]},{clocks(m)[-1]} -l {every}")


def changing(result: Result, seen: trace.Trace, mark: int, max_khz: float) -> pelt.Errors:
    found = pelt.parse(result.text(f"changing-{mark}"), seen.mark(mark).time_ns)
    return pelt.compare(found, pelt.Clock(seen.khz[CPU], max_khz))


#: Both counters of CPU 1 stand still for a second; later they are set ahead by the same
#: number of cycles, 5 s of the base clock, in each period of the work.
FAULT_LINES = f"{CPU} freeze counter=both at=3s for=1s\n" + "".join(
    f"{CPU} add counter=both cycles=10000000000 at={ms}ms\n" for ms in range(5000, 5500, 5))
FAULT_KHZ = 800_000


#: Some work in each 5 ms at a low clock, beyond the last fault.
FAULTS_STEP = ("faults", f"vs-util -c {CPU} -w {UNITS_PER_MS // 4} -p 5000 -n 1300 -m 1 "
               f"-f {FAULT_KHZ} -l 9999")


def fault_scales(result: Result, seen: trace.Trace) -> list[tuple[float, float]]:
    """(s of virtual time, scale in 1/1024) of each burst, as utilisation shows it."""
    found = pelt.parse(result.text("faults"), seen.mark(1).time_ns)
    return [(b.begin / 1e9, 1024 * scale) for b, scale in pelt.scales(found)]
