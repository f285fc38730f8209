# SPDX-License-Identifier: GPL-2.0
"""Machines with one assumption of the model changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..machine.machine import Machine
from ..machine.schema import Transition

Change = Callable[[Machine], Machine]


def _time(**changes: Any) -> Change:
    return lambda m: replace(m, time=replace(m.time, **changes))


def _scaled(part: str, name: str, by: float) -> Change:
    """@part: of the machine, which may be several; whole numbers stay whole."""
    def one(owner: Any) -> Any:
        value = getattr(owner, name)
        return replace(owner, **{name: round(value * by) if isinstance(value, int) else value * by})

    def change(m: Machine) -> Machine:
        found: Any = getattr(m, part)
        return replace(m, **{part: tuple(map(one, found)) if isinstance(found, tuple)
                             else one(found)})
    return change


#: What conclusions are tried under.
ASSUMPTIONS: dict[str, Change] = {
    "kernel cycles x 0.5": _scaled("time", "kernel_cycles_per_1000_insns", 0.5),
    "kernel cycles x 2": _scaled("time", "kernel_cycles_per_1000_insns", 2),
    "quantum 10 us": _time(quantum_ns=10_000),
    "changes of clock at once": lambda m: replace(
        m, transition=Transition(told_us=m.transition.told_us)),
    "median exits": _time(latency="median"),
    "worst exits": _time(latency="worst"),
}

#: What published tables are tried under: coefficients a quarter less and more.
COEFFICIENTS: dict[str, Change] = {
    f"{name} x {by}": _scaled(part, name, by)
    for part, names in (
        ("power", ("capacitance_nf", "leakage_w", "uncore_w", "v_min", "v_max")),
        ("idle", ("dynamic_permille", "power_mw", "entry_us")),
        ("time", ("kernel_cycles_per_1000_insns", "user_cycles_per_1000_insns")))
    for name in names for by in (0.75, 1.25)}


#: HWP's rule is the model's, not Intel's; its efficient clock is assumed to be the lowest.
ALL = ASSUMPTIONS | COEFFICIENTS | {"HWP": lambda m: replace(
    m, hwp=replace(m.hwp, present=True, efficient_ratio=m.min_ratio))}


def changed(m: Machine, variant: str) -> Machine:
    """By name; "": as it is."""
    return ALL[variant](m) if variant else m
