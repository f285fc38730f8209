# SPDX-License-Identifier: GPL-2.0
"""Means, intervals and ranks; numbers in, numbers out."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

#: Quantiles of Student's t for 95 %, two-sided, by degrees of freedom.
_T95 = (0, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18,
        2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09, 2.09)


def welch(a: Sequence[float], b: Sequence[float]) -> float:
    """Half the width of the 95 % interval of the difference of the means."""
    va, vb = (statistics.variance(x) / len(x) for x in (a, b))
    if not va + vb:
        return 0
    freedom = (va + vb) ** 2 / (va ** 2 / (len(a) - 1) + vb ** 2 / (len(b) - 1))
    t = _T95[int(freedom)] if freedom < len(_T95) else 1.96
    return t * math.sqrt(va + vb)


@dataclass(frozen=True)
class Ratio:
    """Over the baseline, with its 95 % interval."""

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


def ratio(new: Sequence[Sequence[float]], base: Sequence[Sequence[float]]) -> Ratio:
    """Of geometric means over all parameters (rows) of the samples (columns)."""
    logs = [[statistics.fmean(map(math.log, column)) for column in zip(*rows, strict=True)]
            for rows in (new, base)]
    middle = statistics.fmean(logs[0]) - statistics.fmean(logs[1])
    half = welch(*logs)
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def paired(new: Sequence[float], base: Sequence[float]) -> Ratio:
    """Geometric mean of samples that have their seed in common."""
    logs = [math.log(a / b) for a, b in zip(new, base, strict=True)]
    middle, width = statistics.fmean(logs), half(logs)
    return Ratio(math.exp(middle), math.exp(middle - width), math.exp(middle + width))


def half(samples: Sequence[float]) -> float:
    """Half the width of the 95 % interval of the mean."""
    return _T95[len(samples) - 1] * statistics.stdev(samples) / math.sqrt(len(samples))


def relative_error(samples: Sequence[float]) -> float:
    """Half the 95 % interval of the mean, over the mean."""
    return half(samples) / statistics.fmean(samples)


def ranks(values: Sequence[float]) -> list[float]:
    """From 1; equal ones share the mean of theirs."""
    ordered = sorted(values)
    return [ordered.index(v) + (ordered.count(v) + 1) / 2 for v in values]


def spearman(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Rank correlation; None of fewer than three or of all alike."""
    if len(a) < 3 or len(set(a)) == 1 or len(set(b)) == 1:
        return None
    return statistics.correlation(ranks(a), ranks(b))
