# SPDX-License-Identifier: GPL-2.0
"""What utilisation should be, worked out from the model's clock alone.

Utilisation tends to 1024 while a task runs and to 0 while it does not, halfway in
32 periods of 1024 * 1024 ns. Invariance makes that time run slower by f / freq_max
while the CPU executes; what is lost that way is made up for when it idles.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass

HALF_LIFE_NS = 32 * 1024 * 1024


@dataclass(frozen=True)
class Burst:
    """One period's work, in ns of the model's time, and what the kernel made of it."""

    begin: int
    end: int
    util: float


def parse(text: str, mark_ns: int) -> list[Burst]:
    """Output of vs-util; `mark_ns` is when the model saw its mark."""
    lines = [line.split() for line in text.splitlines()]
    offset = next(int(words[1]) for words in lines if words[:1] == ["mark"]) - mark_ns
    return [Burst(int(words[0]) - offset, int(words[1]) - offset, float(words[2]))
            for words in lines if len(words) == 3 and words[0].isdigit()]


class Clock:
    """A CPU's clock over time, from the trace's events."""

    def __init__(self, events: list[tuple[int, int]], max_khz: float) -> None:
        self._times = [t for t, _ in events]
        self._khz = [khz for _, khz in events]
        self._max = max_khz

    def scaled(self, begin: int, end: int) -> float:
        """Time between the two, scaled by f / freq_max where that is below 1."""
        total, t = 0.0, begin
        i = max(bisect.bisect_right(self._times, begin) - 1, 0)
        while t < end:
            until = self._times[i + 1] if i + 1 < len(self._times) else end
            until = min(max(until, t), end)
            total += (until - t) * min(self._khz[i] / self._max, 1.0)
            t, i = until, i + 1
        return total


def expected(bursts: list[Burst], clock: Clock) -> list[float]:
    """Utilisation at the end of each burst; the first ones depend on the start."""
    util, asleep_since, out = 0.0, float(bursts[0].begin), []
    for b in bursts:
        util *= 0.5 ** ((b.begin - asleep_since) / HALF_LIFE_NS)
        ran = clock.scaled(b.begin, b.end)
        util = 1024 - (1024 - util) * 0.5 ** (ran / HALF_LIFE_NS)
        asleep_since = b.begin + ran
        out.append(util)
    return out


@dataclass(frozen=True)
class Errors:
    """Relative errors of the kernel's utilisation, in per cent."""

    kernel: float
    expected: float
    mean: float
    mean_abs: float
    worst: float


def compare(bursts: list[Burst], clock: Clock, settle_ns: int = 12 * HALF_LIFE_NS) -> Errors:
    """Without the first bursts, in which the task's start value still shows."""
    wanted = expected(bursts, clock)
    pairs = [(b.util, w) for b, w in zip(bursts, wanted)
             if b.begin - bursts[0].begin > settle_ns]
    if not pairs:
        raise ValueError("no burst after the utilisation has settled")
    errors = [100 * (u / w - 1) for u, w in pairs]
    n = len(pairs)
    return Errors(sum(u for u, _ in pairs) / n, sum(w for _, w in pairs) / n,
                  sum(errors) / n, sum(abs(error) for error in errors) / n,
                  max(errors, key=lambda error: abs(error)))
