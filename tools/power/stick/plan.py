# SPDX-License-Identifier: GPL-2.0
"""Which kernel is measured when. A run is one boot of one kernel."""
from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from cpuwhy import judge
from virtual_silicon.errors import Fail

from . import medium

KERNELS = ("base", "patched")
#: Of the lab; PostgreSQL would be a third of the image.
LOADS = ("tbench", "netudp", "nettcp", "dbench", "hackbench", "kernbench", "gitsource", "pipe",
         "cyclictest")
#: How often a run may be begun: once, and again after it took the machine down.
TRIES = 2
#: Of a run, beside its loads: the kernel's start, rests, a last pass. Assumed.
START_S = 30


@dataclass(frozen=True)
class Plan:
    """@rounds: runs of each kernel; @seconds: of loads in a run; @probe: of cpuwhy; @idle:
    governor of the patched kernel; the base has menu."""

    seed: int
    rounds: int = 5
    seconds: float = 150
    probe: float = 60
    loads: tuple[str, ...] = LOADS
    idle: str = "teo"

    def order(self) -> list[str]:
        return judge.order(random.Random(self.seed), self.rounds, KERNELS)

    def left(self, number: int) -> float:
        """Seconds from the beginning of a run to the end of all."""
        return (2 * self.rounds - number + 1) * (self.seconds + START_S)

    def text(self) -> str:
        return json.dumps(asdict(self)) + "\n"


def parse(text: str) -> Plan:
    row = json.loads(text)
    return Plan(**row | {"loads": tuple(row["loads"])})


def wanted(words: Mapping[str, str], seed: int) -> Plan:
    """As the kernel's command line says: stick.rounds=2 stick.loads=pipe,hackbench."""
    plan = Plan(seed)
    loads = tuple(words["stick.loads"].split(",")) if "stick.loads" in words else plan.loads
    if unknown := [name for name in loads if name not in LOADS]:
        raise Fail(f"stick.loads={','.join(unknown)}: there are {','.join(LOADS)}")
    return Plan(int(words.get("stick.seed", seed)), int(words.get("stick.rounds", plan.rounds)),
                float(words.get("stick.seconds", plan.seconds)),
                float(words.get("stick.probe", plan.probe)), loads,
                words.get("stick.idle", plan.idle))


class Store:
    """A comparison: a directory of files, each written once."""

    def __init__(self, root: Path, name: str) -> None:
        self.root = root / name

    def run(self, number: int) -> Path:
        return self.root / f"run-{number:02}.txt"

    def begun(self, number: int, attempt: int) -> Path:
        return self.root / f"run-{number:02}.{attempt}"

    def plan(self) -> Plan | None:
        text = medium.read(self.root / "plan.txt")
        return parse(text) if text else None

    def begin(self, number: int) -> None:
        attempt = next(n for n in range(1, TRIES + 1)
                       if medium.read(self.begun(number, n)) is None)
        medium.write(self.begun(number, attempt), f"run {number}, {attempt}\n")

    def next(self, plan: Plan) -> int | None:
        """The first run that is not there, but for those that were begun too often."""
        for number in range(1, len(plan.order()) + 1):
            if medium.read(self.run(number)) is None and any(
                    medium.read(self.begun(number, n)) is None for n in range(1, TRIES + 1)):
                return number
        return None


def current(root: Path) -> str | None:
    """The comparison that is not finished."""
    names = sorted(path.name for path in root.glob("compare-*")
                   if re.fullmatch(r"compare-\d\d", path.name))
    unfinished = [name for name in names if medium.read(root / name / "report.txt") is None
                  and Store(root, name).plan()]
    return unfinished[-1] if unfinished else None


def fresh(root: Path) -> str:
    numbers = [int(path.name[8:]) for path in root.glob("compare-[0-9][0-9]")]
    return f"compare-{max(numbers, default=0) + 1:02}"
