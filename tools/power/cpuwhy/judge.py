# SPDX-License-Identifier: GPL-2.0
"""Which of two is measured when, ratios with intervals, and verdicts: of `cpuwhy compare`, the
stick and virtual silicon. Numbers in, numbers out; imports nothing of this project.
"""
from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

#: What software that is published calls a change: a ratio this near to 1 is none.
NEAR = 0.03
BETTER, WORSE, SAME, UNKNOWN = "better", "worse", "same", "cannot tell"


def order(rng: random.Random, rounds: int, names: Sequence[str]) -> list[str]:
    """In each round both, each of them first in half of the rounds (or one more), in random
    order: what changes slowly meets both, and a steady drift falls out of the mean."""
    begin = rng.randrange(2)
    first = [(begin + number) % 2 for number in range(rounds)]
    rng.shuffle(first)
    return [names[one ^ later] for one in first for later in (0, 1)]


def within(t: float, freedom: int) -> float:
    """How much of Student's distribution is between -t and t: its finite sum."""
    angle, odd = math.atan(t / math.sqrt(freedom)), freedom % 2
    sine, cosine = math.sin(angle), math.cos(angle)
    term = (cosine if odd else 1.0) * (freedom > 1)
    total = term
    for n in range(1 + odd, freedom - 1, 2):
        term *= cosine ** 2 * n / (n + 1)
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


@cache
def student(freedom: int, level: float = 0.95) -> float:
    """So many standard errors to both sides hold the mean with probability @level."""
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        if within(math.tan(middle) * math.sqrt(freedom), freedom) < level:
            low = middle
        else:
            high = middle
    return math.tan(low) * math.sqrt(freedom)


@dataclass(frozen=True)
class Ratio:
    """Over the baseline, with its interval."""

    value: float
    low: float
    high: float

    @property
    def neutral(self) -> bool:
        return self.low <= 1 <= self.high

    @property
    def inverse(self) -> Ratio:
        return Ratio(1 / self.value, 1 / self.high, 1 / self.low)

    def __str__(self) -> str:
        """A tilde where the interval contains 1, as in the models' tables."""
        return "~" if self.neutral else f"{self.value:.2f}"

    def spread(self, form: str) -> str:
        return f"{self.value:{form}} ({self.low:{form}} to {self.high:{form}})"


def half(samples: Sequence[float], level: float = 0.95) -> float:
    """Half the width of the interval of the mean."""
    return (student(len(samples) - 1, level) * statistics.stdev(samples)
            / math.sqrt(len(samples)))


def paired(new: Sequence[float], base: Sequence[float], level: float = 0.95) -> Ratio:
    """Geometric mean of the ratios of pairs that had the rest in common."""
    logs = [math.log(a / b) for a, b in zip(new, base)]
    middle, width = statistics.fmean(logs), half(logs, level)
    return Ratio(math.exp(middle), math.exp(middle - width), math.exp(middle + width))


def verdict(ratio: Ratio, less: bool = False) -> str:
    """@less: is better. An interval that holds both 1 and more than a change decides nothing."""
    if less:
        ratio = ratio.inverse
    if ratio.low > 1:
        return BETTER if ratio.value > 1 + NEAR else SAME
    if ratio.high < 1:
        return WORSE if ratio.value < 1 - NEAR else SAME
    return SAME if ratio.low >= 1 - NEAR and ratio.high <= 1 + NEAR else UNKNOWN


def figures(base: float, new: float, ratio: Ratio | None, says: str) -> str:
    """A line of a report behind what it is of."""
    if not base:
        return says
    text = f"{base:9.4g} {new:9.4g}"
    if ratio is None:
        return f"{text}  {says}"
    high = f"{ratio.high:.3f}"[:5].rstrip(".")      # of two pairs it may be thousands
    return f"{text} {ratio.value:6.3f} {ratio.low:6.3f} to {high:5}  {says}".rstrip()
