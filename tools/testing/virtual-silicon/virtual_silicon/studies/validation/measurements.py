# SPDX-License-Identifier: GPL-2.0
"""Published measurements: rows of a CSV file, their values, and how far off a model is.

A value is one number, a range (`390..1390`), a bound (`<190`), or several of these with
` / ` between them.  What stands in brackets behind a number explains it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ... import paths
from ...errors import UsageError, unread

DATA = paths.SILICON / "data/measurements.csv"
COLUMNS = ("cpu_name", "family_hex", "model_hex", "kind", "quantity", "conditions", "value",
           "unit", "method", "source")

_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_PART = re.compile(rf"(?P<bound><=?)?(?P<low>{_NUMBER})(?:\.\.(?P<high>{_NUMBER}))?"
                   r"(?: instead of .*| \(.*\))?$")


@dataclass(frozen=True)
class Band:
    """Part of a value; one number has two equal ends."""

    low: float
    high: float

    def error(self, value: float) -> float:
        """Relative, to the nearer end; 0 within."""
        if self.low <= value <= self.high:
            return 0.0
        end = self.low if value < self.low else self.high
        return (value - end) / abs(end) if end else float("inf")


@dataclass(frozen=True)
class Row:
    """One measurement; `put_in` names the coefficients that were taken from it."""

    cpu: str
    family: int | None
    model: int | None
    kind: str
    quantity: str
    conditions: str
    text: str
    unit: str
    method: str
    source: str
    put_in: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.cpu, self.quantity, self.conditions

    @property
    def bands(self) -> list[Band]:
        """Empty if the value is no number; none of something is 0."""
        if self.text == "none":
            return [Band(0, 0)]
        matches = [_PART.match(part) for part in self.text.split(" / ")]
        if not all(matches):
            return []
        return [_band(match) for match in matches if match]

    def error(self, model: Sequence[float | None]) -> float | None:
        """The worst part's.  A model that gives two numbers for one range gives its ends;
        parts for which it gives None are not compared."""
        bands = self.bands
        if len(bands) == 1 and len(model) == 2:
            bands = [Band(end, end) for end in (bands[0].low, bands[0].high)]
        if len(bands) != len(model):
            return None
        errors = [band.error(value) for band, value in zip(bands, model) if value is not None]
        return max(errors, key=abs) if errors else None


def _band(match: re.Match[str]) -> Band:
    low = float(match["low"])
    if match["bound"]:
        return Band(0.0, low)
    return Band(low, float(match["high"] or low))


def _hex(text: str) -> int | None:
    return int(text, 16) if text else None


def read(path: Path) -> list[Row]:
    """The rows of a file; UsageError with file, line and reason."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            table = csv.DictReader(file)
            lacking = set(COLUMNS) - set(table.fieldnames or ())
            if lacking:
                raise UsageError(f"{path}:1: no column {', '.join(sorted(lacking))}")
            return [_row(path, table.line_num, row) for row in table]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {unread(error)}") from error
    except csv.Error as error:
        raise UsageError(f"{path}: {error}") from error


def _row(path: Path, line: int, row: dict[str, str]) -> Row:
    if None in row or None in row.values():
        raise UsageError(f"{path}:{line}: not as many fields as columns")
    try:
        family, model = _hex(row["family_hex"]), _hex(row["model_hex"])
    except ValueError as error:
        raise UsageError(f"{path}:{line}: family or model: {error}") from error
    return Row(row["cpu_name"], family, model, row["kind"], row["quantity"],
               row["conditions"], row["value"], row["unit"], row["method"], row["source"],
               row.get("put_in", ""))


def quantile(ordered: Sequence[float], share: float) -> float:
    """Of ascending samples, linear between neighbours."""
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


_PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?)$|(\d+(?:\.\d+)?)th percentile$")


def statistic(name: str, samples: Sequence[float]) -> float:
    """`min`, `mean`, `p99.9`, `95th percentile` and the like."""
    if not samples:
        raise UsageError(f"no samples for {name}")
    ordered = sorted(samples)
    mean = sum(ordered) / len(ordered)
    if match := _PERCENTILE.match(name):
        return quantile(ordered, float(match[1] or match[2]) / 100)
    match name:
        case "min":
            return ordered[0]
        case "max":
            return ordered[-1]
        case "mean":
            return mean
        case "median":
            return quantile(ordered, 0.5)
        case "std":
            return (sum((x - mean) ** 2 for x in ordered) / len(ordered)) ** 0.5
    raise UsageError(f"unknown statistic {name!r}")
