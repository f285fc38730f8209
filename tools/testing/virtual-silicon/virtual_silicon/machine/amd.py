# SPDX-License-Identifier: GPL-2.0
"""Registers and CPUID leaves of AMD parts, where they are not as in encode.py.

Numbers and fields: APM volume 3 (CPUID), volume 2 (MSRs), and the PPR for
family 17h models 30h-3Fh.
"""

from __future__ import annotations

from . import intel
from .intel import Leaf, LeafKey, field
from .machine import Machine

PSTATE_DEF = 0xC0010064		# of P0; those of the others follow
CPPC_CAP1, CPPC_CAP2 = 0xC00102B0, 0xC00102B2
RAPL_UNIT = 0xC0010299
CORE_ENERGY = 0xC001029A
PACKAGE_ENERGY = 0xC001029B
TOPOLOGY = 0x80000026		# CPUID

#: Core clock is 200 MHz * FID / DID with the divider in eighths.
PLL_KHZ, DIVIDER = 200_000, 8

#: The first family whose P-states have no divider, and its step.
ZEN5, FID_KHZ = 0x1A, 5_000


def pstate_def(m: Machine, ratio: int) -> int:
    """FID 7:0, DID 13:8, VID 21:14 (1.55 V less 6.25 mV each), enable 63.  From Zen 5
    on FID 11:0 in steps of 5 MHz, and no DID."""
    if m.family >= ZEN5:
        return field(ratio * m.bus_khz // FID_KHZ, 0, 12) | 1 << 63
    fid = ratio * m.bus_khz * DIVIDER // PLL_KHZ
    vid = round((1.55 - m.voltage(ratio)) / 0.00625)
    return field(fid, 0) | field(DIVIDER, 8, 6) | field(vid, 14) | 1 << 63


def cppc_cap1(m: Machine) -> int:
    """Lowest 7:0, lowest nonlinear 15:8 (the last P-state), nominal 23:16, highest
    31:24."""
    return intel.pack_bytes(m.cppc(ratio) for ratio in (
        m.min_ratio, m.pstate_ratios[-1], m.base_ratio, m.max_ratio))


def msrs(m: Machine) -> dict[int, int]:
    """Read-only registers.  P-states beyond those in use are not enabled."""
    out = {PSTATE_DEF + i: pstate_def(m, ratio)
           for i, ratio in enumerate(m.pstate_ratios)}
    out |= {PSTATE_DEF + i: 0 for i in range(len(m.pstate_ratios), 8)}
    out[RAPL_UNIT] = intel.rapl_unit(m)
    if m.features.cppc_msrs:
        out |= {CPPC_CAP1: cppc_cap1(m), CPPC_CAP2: 0}
    return out | {msr: 0 for msr in m.features.zero_msrs}


def msrs_rw(m: Machine) -> dict[int, tuple[int, int]]:
    """What the kernel's setup touches: SYSCFG (fixed MTRRs, 20:18), NB_CFG
    (register access to configuration space, 46)."""
    return {0xC0010010: (0, 0b111 << 18), 0xC001001F: (0, 1 << 46)}


def max_level(_: Machine) -> int:
    return 0x10


def max_extended_level(m: Machine) -> int:
    return TOPOLOGY if m.classes else intel.MAX_EXTENDED_LEVEL


def cpuid(m: Machine) -> dict[LeafKey, Leaf]:
    """Leaf 6: always-running APIC timer, APERF and MPERF.  Leaf 0x80000026: EAX, kinds
    of cores differ (30); EBX, this one's (31:28).  The emulator adds the levels."""
    out: dict[LeafKey, Leaf] = {(0x5, None): intel.leaf_5(m),
                                (0x6, None): (1 << 2, 0, 1 << 0, 0)}
    if m.classes:
        out[TOPOLOGY, None] = (1 << 30, field(m.features.core_type, 28, 4), 0, 0)
    return out


def cpuid_set(m: Machine) -> dict[LeafKey, Leaf]:
    """0x80000007 EDX: P-states (7), invariant TSC (8), boost (9), read-only
    effective frequency (10), energy (14); 0x80000008 EBX: CPPC by MSR (27)."""
    monitor = 1 << 3
    power = 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 14
    out: dict[LeafKey, Leaf] = {(0x1, None): (0, 0, monitor, 0),
                                (0x80000007, None): (0, 0, 0, power)}
    if m.features.cppc_msrs:
        out[0x80000008, None] = (0, 1 << 27, 0, 0)
    return out


def cpuid_clear(m: Machine) -> dict[LeafKey, Leaf]:
    return intel.cpuid_clear(m)
