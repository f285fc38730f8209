# SPDX-License-Identifier: GPL-2.0
"""Means, intervals and ranks; numbers in, numbers out."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from cpuwhy.judge import Ratio, student


def welch(a: Sequence[float], b: Sequence[float]) -> float:
    """Half the width of the 95 % interval of the difference of the means."""
    va, vb = (statistics.variance(x) / len(x) for x in (a, b))
    if not va + vb:
        return 0
    freedom = (va + vb) ** 2 / (va ** 2 / (len(a) - 1) + vb ** 2 / (len(b) - 1))
    return student(max(1, int(freedom))) * math.sqrt(va + vb)


def ratio(new: Sequence[Sequence[float]], base: Sequence[Sequence[float]]) -> Ratio:
    """Of geometric means over all parameters (rows) of the samples (columns)."""
    logs = [[statistics.fmean(map(math.log, column)) for column in zip(*rows, strict=True)]
            for rows in (new, base)]
    middle = statistics.fmean(logs[0]) - statistics.fmean(logs[1])
    half = welch(*logs)
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def ranks(values: Sequence[float]) -> list[float]:
    """From 1; equal ones share the mean of theirs."""
    ordered = sorted(values)
    return [ordered.index(v) + (ordered.count(v) + 1) / 2 for v in values]


def spearman(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Rank correlation; None of fewer than three or of all alike."""
    if len(a) < 3 or len(set(a)) == 1 or len(set(b)) == 1:
        return None
    return statistics.correlation(ranks(a), ranks(b))
