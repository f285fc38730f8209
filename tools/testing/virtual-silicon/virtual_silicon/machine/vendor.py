# SPDX-License-Identifier: GPL-2.0
"""Which module knows the registers and CPUID leaves of a machine."""

from __future__ import annotations

from types import ModuleType

from . import amd, intel
from .machine import Machine


def encoding(m: Machine) -> ModuleType:
    return {"GenuineIntel": intel, "AuthenticAMD": amd}[m.vendor]
