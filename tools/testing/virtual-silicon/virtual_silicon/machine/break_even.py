# SPDX-License-Identifier: GPL-2.0
"""From which time of rest each idle state pays, by the model's own figures."""

from __future__ import annotations

from dataclasses import dataclass

from .machine import Machine, at_median
from .schema import IdleState

#: Two times are of the same order of size if neither is more than this many of the other.
ORDER = 10**0.5


@dataclass(frozen=True)
class BreakEven:
    """A state of a machine at its base clock, against the one before it.

    `alone_us`: only this core rests; `package_us`: all do, and this one ends it.
    """

    machine: str
    state: str
    against: str
    exit_us: float			# median
    alone_us: float
    package_us: float
    residency_us: float			# what driver or firmware says

    @property
    def agrees(self) -> bool:
        """What the driver says lies between both, or is of the order of one."""
        low, high = sorted((self.alone_us, self.package_us))
        return low / ORDER <= self.residency_us <= high * ORDER


def exit_us(m: Machine, state: IdleState, ratio: int) -> float:
    """Median, of wake-ups that the core does not foresee."""
    return at_median(state.quantiles)[1] + state.wake_cycles / m.mhz(ratio)


def uncore_w(m: Machine, state: IdleState, ratio: int) -> float:
    """Of a package all of whose cores rest in `state`."""
    order = [s.name for s in m.idle]
    watts = m.uncore_w(ratio)
    for package in m.package:
        if order.index(state.name) >= order.index(package.core_state):
            watts = m.package_w(package)
    return watts


def _pays_us(m: Machine, states: tuple[IdleState, IdleState], ratio: int,
             whole: bool) -> float:
    """Rest of T us costs P (T - exit) and, while the core comes up, what PAUSE draws: T
    where that is the same for both states."""
    rest, extra = [], []
    for state in states:
        core = m.idle_w(state, ratio)
        up = m.share_w(ratio, m.power.pause_permille) - core
        asleep = uncore_w(m, state, ratio)
        rest.append(core * m.cores + asleep if whole else core)
        extra.append((up + (m.uncore_w(ratio) - asleep if whole else 0))
                     * exit_us(m, state, ratio))
    saved = rest[0] - rest[1]
    return max(extra[1] - extra[0], 0.0) / saved if saved > 0 else float("inf")


def break_evens(m: Machine) -> list[BreakEven]:
    return [BreakEven(m.name, lower.name, upper.name, exit_us(m, lower, m.base_ratio),
                      _pays_us(m, (upper, lower), m.base_ratio, False),
                      _pays_us(m, (upper, lower), m.base_ratio, True), lower.residency_us)
            for upper, lower in zip(m.idle, m.idle[1:])]


HEAD = ("machine", "state", "against", "exit us", "a core alone us", "whole package us",
        "driver us", "")


def table(machines: list[Machine]) -> list[list[str]]:
    """The last column says where the model and the driver are far apart."""
    return [[row.machine, row.state, row.against, f"{row.exit_us:.1f}", f"{row.alone_us:.0f}",
             f"{row.package_us:.0f}", f"{row.residency_us:g}", "" if row.agrees else "apart"]
            for m in machines for row in break_evens(m)]
