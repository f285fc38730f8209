# SPDX-License-Identifier: GPL-2.0
"""What utilisation should be, worked out from the model's clock alone.

Utilisation is the share of time in which a task ran, and time counts half as much for
every 32 periods of 1024 * 1024 ns that it is past. Invariance makes it run slower by
f / freq_max while the CPU executes; what is lost that way is made up for when it idles.
With y for what is left after 1 ns, a run from time a to b is worth y^-a to y^-b: the sum
of these over all runs is utilisation, and a geometric series if they are all alike.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass

HALF_LIFE_NS = 32 * 1024 * 1024
#: A task begins with some utilisation. Of it is left, after so long, an 4096th.
SETTLE_NS = 12 * HALF_LIFE_NS


@dataclass(frozen=True)
class Burst:
    """One period's work, in ns of the model's time, and what the kernel made of it."""

    end: int
    ran: int
    util: float

    @property
    def begin(self) -> int:
        return self.end - self.ran


def parse(text: str, mark_ns: int) -> list[Burst]:
    """Output of vs-util; `mark_ns` is when the model saw its mark. The first burst,
    with what the task ran for before, is left out."""
    lines = [line.split() for line in text.splitlines()]
    offset = next(int(words[1]) for words in lines if words[:1] == ["mark"]) - mark_ns
    rows = [(int(words[0]) - offset, int(words[1]), float(words[2]))
            for words in lines if len(words) == 3]
    out = []
    for i in range(1, len(rows)):
        before, now = rows[i - 1][1], rows[i][1]
        if before < 0 or now < 0:
            raise ValueError(f"the watcher missed burst {i}: the period is too short for it")
        out.append(Burst(rows[i][0], now - before, rows[i][2]))
    return out


class Clock:
    """A CPU's clock over time, from the trace's events."""

    def __init__(self, events: list[tuple[int, int]], max_khz: float) -> None:
        self._times = [t for t, _ in events]
        self._khz = [khz for _, khz in events]
        self.max_khz = max_khz

    def during(self, begin: int, end: int) -> list[tuple[int, int]]:
        """(ns, kHz) of each stretch between the two."""
        out, t = [], begin
        i = max(bisect.bisect_right(self._times, begin) - 1, 0)
        while t < end:
            until = self._times[i + 1] if i + 1 < len(self._times) else end
            until = min(max(until, t), end)
            if until > t:
                out.append((until - t, self._khz[i]))
            t, i = until, i + 1
        return out

    def scaled(self, begin: int, end: int) -> float:
        """Time between the two, scaled by f / freq_max where that is below 1."""
        return sum(ns * min(khz / self.max_khz, 1) for ns, khz in self.during(begin, end))


def left(ns: float) -> float:
    """How much a moment counts after so long."""
    return 0.5 ** (ns / HALF_LIFE_NS)


def expected(bursts: list[Burst], clock: Clock) -> list[float]:
    """Utilisation at the end of each burst, as a sum over those before it."""
    scaled = [clock.scaled(b.begin, b.end) for b in bursts]
    #: When each began and ended in the kernel's scaled time, which idling puts right
    spans = [(b.begin, b.begin + s) for b, s in zip(bursts, scaled)]
    out = []
    for i, (_, now) in enumerate(spans):
        seen = spans[bisect.bisect(spans, (now - SETTLE_NS,)):i + 1]
        out.append(1024 * sum(left(now - end) - left(now - begin) for begin, end in seen))
    return out


def steady(ran_ns: float, period_ns: float) -> float:
    """Utilisation at the end of each of many runs that are all alike."""
    return 1024 * (1 - left(ran_ns)) / (1 - left(period_ns))


def steady_run(util: float, period_ns: float) -> float:
    """How long each of them must have been, in the kernel's time."""
    return -HALF_LIFE_NS * math.log2(1 - util / 1024 * (1 - left(period_ns)))


def scales(bursts: list[Burst]) -> list[tuple[Burst, float]]:
    """The scale, of 1, that makes the kernel's utilisation after one burst of that after
    the one before; beginning with the third."""
    out = []
    scaled = float(bursts[0].ran)	# wrong, for the next one only
    for before, b in zip(bursts, bursts[1:]):
        slept = b.begin - before.begin - scaled
        scaled = HALF_LIFE_NS * math.log2((1024 - before.util * left(slept)) / (1024 - b.util))
        out.append((b, scaled / b.ran))
    return out[1:]


@dataclass(frozen=True)
class Errors:
    """Relative errors of the kernel's utilisation, in per cent."""

    kernel: float
    expected: float
    mean: float
    mean_abs: float
    worst: float
    bursts: int


def errors(pairs: list[tuple[float, float]]) -> Errors:
    """Of (the kernel's, expected)."""
    relative = [100 * (u / w - 1) for u, w in pairs]
    n = len(pairs)
    return Errors(sum(u for u, _ in pairs) / n, sum(w for _, w in pairs) / n,
                  sum(relative) / n, sum(abs(e) for e in relative) / n,
                  max(relative, key=lambda e: abs(e)), n)


def compare(bursts: list[Burst], clock: Clock) -> Errors:
    """Without the first bursts, in which the task's start value still shows."""
    wanted = expected(bursts, clock)
    return errors([(b.util, w) for b, w in zip(bursts, wanted)
                   if b.begin - bursts[0].begin > SETTLE_NS])
