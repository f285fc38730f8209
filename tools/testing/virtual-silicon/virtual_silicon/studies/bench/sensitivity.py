# SPDX-License-Identifier: GPL-2.0
"""The model's assumed coefficients, a quarter less and more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...machine.machine import Machine

BY = (0.75, 1.25)


def _power(name: str, by: float) -> Callable[[Machine], Machine]:
    return lambda m: replace(m, power=replace(m.power, **{name: getattr(m.power, name) * by}))


def _cycles(name: str, by: float) -> Callable[[Machine], Machine]:
    return lambda m: replace(
        m, time=replace(m.time, **{name: round(getattr(m.time, name) * by)}))


def _idle(name: str, by: float) -> Callable[[Machine], Machine]:
    def scaled(value: float) -> float | int:
        return round(value * by) if isinstance(value, int) else value * by
    return lambda m: replace(m, idle=tuple(
        replace(state, **{name: scaled(getattr(state, name))}) for state in m.idle))


_ASSUMED: dict[str, Callable[[str, float], Callable[[Machine], Machine]]] = {
    "capacitance_nf": _power, "leakage_w": _power, "uncore_w": _power, "v_min": _power,
    "v_max": _power,
    "dynamic_permille": _idle, "power_mw": _idle, "entry_us": _idle,
    "kernel_cycles_per_1000_insns": _cycles, "user_cycles_per_1000_insns": _cycles,
}

#: By the name that the machine gets more: "" is the machine's file, and the next one the
#: same among the guests with other assumptions, which run fewer loads.
VARIANTS: dict[str, Callable[[Machine], Machine]] = {"": lambda m: m, ", as it is": lambda m: m} | {
    f", {name} x {by}": make(name, by) for name, make in _ASSUMED.items() for by in BY}
