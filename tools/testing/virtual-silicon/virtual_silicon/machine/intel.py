# SPDX-License-Identifier: GPL-2.0
"""Registers and CPUID leaves of a machine, as firmware and processor show them.

Register names and fields are those of the SDM, volume 4; CPUID leaves those of
volume 2.  Only what the stock kernel or stock tools read for these models is
here: what is missing raises #GP in the guest, as on hardware.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from cpuwhy.turbo import (
    ATOM_TURBO_RATIOS,
    TURBO_RATIO_LIMIT,
    TURBO_RATIO_LIMIT1,
    TURBO_RATIO_LIMIT2,
)
from cpuwhy.turbo import registers as turbo_msrs

from .machine import Machine, Turbo

# MSR numbers used in more than one place
PLATFORM_INFO = 0xCE
RAPL_POWER_UNIT = 0x606
ATOM_RATIOS = 0x66A
PKG_POWER_LIMIT = 0x610
PKG_ENERGY_STATUS = 0x611
DRAM_ENERGY_STATUS = 0x619
PP0_ENERGY_STATUS = 0x639

#: RAPL units: power 1/2^3 W, time 1/2^10 s; energy comes from the machine.
POWER_SHIFT, TIME_SHIFT = 3, 10

#: The kernel takes the crystal of leaf 0x15 for the LAPIC timer's clock, and
#: the emulated LAPIC counts at 1 GHz, whatever the real part has.
CRYSTAL_HZ = 1_000_000_000

MAX_CPUID_LEVEL = 0x16
HYBRID_CPUID_LEVEL = 0x1A
MAX_EXTENDED_LEVEL = 0x80000008
LOCK = 1 << 31


def field(value: int, shift: int, width: int = 8) -> int:
    """`value` at its place in a register; ValueError if it does not fit."""
    if not 0 <= value < 1 << width:
        raise ValueError(f"{value:#x} does not fit into {width} bits")
    return value << shift


def pack_bytes(values: Iterable[int]) -> int:
    """Eight bytes of a register, the first in bits 7:0."""
    return sum(field(value, 8 * i) for i, value in enumerate(values))


def platform_info(m: Machine) -> int:
    """0xCE: base ratio 15:8, most efficient 47:40, lowest operating 55:48.

    One for the package, whatever kind of core reads it (SDM vol. 4: scope).
    The turbo and TDP limits are not programmable (bits 28, 29 clear) and there
    are no configurable TDP levels (34:33 clear).
    """
    return (field((m.part or m).base_ratio, 8) | field(m.min_ratio, 40)
            | field(m.min_ratio, 48))


def turbo_bytes(turbo: Turbo) -> dict[int, int]:
    """One byte per number of active cores: 1-8 in 0x1AD, 9-16 in 0x1AE, ...

    Bytes for more cores than the part has are zero.
    """
    total = turbo.cores[-1]
    out = {}
    for first, msr in enumerate((TURBO_RATIO_LIMIT, TURBO_RATIO_LIMIT1,
                                 TURBO_RATIO_LIMIT2)):
        counts = range(8 * first + 1, 8 * first + 9)
        out[msr] = pack_bytes(turbo.limit(n) if n <= total else 0 for n in counts)
    return out


def turbo_groups(turbo: Turbo) -> dict[int, int]:
    """Ratios of eight groups in 0x1AD, their largest core counts in 0x1AE."""
    return {TURBO_RATIO_LIMIT: pack_bytes(turbo.ratios),
            TURBO_RATIO_LIMIT1: pack_bytes(turbo.cores)}


def turbo_deltas(turbo: Turbo) -> dict[int, int]:
    """Xeon Phi: cores 7:1 and ratio 15:8 of the first group; then a byte for each,
    more cores in its bits 4:0, less ratio in 7:5."""
    value = field(turbo.cores[0], 1, 7) | field(turbo.ratios[0], 8)
    steps = zip(turbo.cores, turbo.cores[1:], turbo.ratios, turbo.ratios[1:])
    for i, (cores, more, ratio, less) in enumerate(steps, 2):
        value |= field(more - cores, 8 * i, 5) | field(ratio - less, 8 * i + 5, 3)
    return {TURBO_RATIO_LIMIT: value}


def turbo_atom(turbo: Turbo) -> dict[int, int]:
    """Silvermont and Airmont: four ratios of 6 bits, for 1 to 4 active cores."""
    return {ATOM_TURBO_RATIOS: sum(field(turbo.limit(n + 1), 8 * n, 6)
                                   for n in range(turbo.cores[-1]))}


TURBO_ENCODERS = {"bytes": turbo_bytes, "groups": turbo_groups,
                  "deltas": turbo_deltas, "atom": turbo_atom}


def turbo_registers(turbo: Turbo) -> dict[int, int]:
    """As read on the part where that is known; those not read are 0."""
    if not turbo.registers:
        return TURBO_ENCODERS[turbo.layout](turbo)
    numbers = turbo_msrs(turbo.layout)
    return dict.fromkeys(numbers, 0) | dict(zip(numbers, turbo.registers))


def rapl_unit(m: Machine) -> int:
    """0x606: power 3:0, energy 12:8, time 19:16, each as 1/2^n.

    Silvermont's energy is 2^n uJ instead.
    """
    energy = m.power.energy_unit_shift
    if m.power.energy_unit_uj:
        energy = round(math.log2(m.power.energy_unit_uj))
    return (field(POWER_SHIFT, 0, 4) | field(energy, 8, 5)
            | field(TIME_SHIFT, 16, 4))


def rapl_power(watts: float) -> int:
    return field(round(watts * 2**POWER_SHIFT), 0, 15)


def rapl_time_window(seconds: float) -> int:
    """2^Y * (1 + Z/4) time units, Y in bits 4:0 and Z in 6:5; rounded down."""
    units = seconds * 2**TIME_SHIFT
    exponent = math.floor(math.log2(units))
    fraction = math.floor((units / 2**exponent - 1) * 4)
    return field(exponent, 0, 5) | field(fraction, 5, 2)


def power_limit(m: Machine) -> int:
    """0x610: limit 1 at TDP over power_tau_s, or 1 s; limit 2 at 1.2 TDP over 7.8 ms.

    Locked where the model does not enforce them: a write that is accepted and
    ignored would mislead.
    """
    enable, clamp = 1 << 15, 1 << 16
    lock = 0 if m.limits.power_tau_s else 1 << 63
    limit1 = (rapl_power(m.power.tdp_w) | enable | clamp
              | rapl_time_window(m.limits.power_tau_s or 1.0) << 17)
    limit2 = (rapl_power(m.power.tdp_w * 1.2) | enable | clamp
              | rapl_time_window(0.0078125) << 17)
    return limit1 | limit2 << 32 | lock


def pkg_cst_config(m: Machine) -> int:
    """0xE2: package limit 3:0, locked by firmware (bit 15), no demotion."""
    return field(m.features.pkg_cstate_limit, 0, 4) | 1 << 15


def msrs(m: Machine) -> dict[int, int]:
    """Read-only registers with a constant value.  Writing raises #GP."""
    out = {
        0x17: 0,					# PLATFORM_ID
        0x34: 0,					# SMI_COUNT
        0x3A: 1,					# FEATURE_CONTROL: locked, no VMX
        PLATFORM_INFO: platform_info(m),
        0xE2: pkg_cst_config(m),
        0x19C: LOCK | field(m.features.tj_max // 2, 16, 7),	# THERM_STATUS
        0x1A2: field(m.features.tj_max, 16),		# TEMPERATURE_TARGET
        0x1AA: 0,					# MISC_PWR_MGMT: no OOB control
        0x1B1: field(m.features.tj_max // 2, 16, 7),	# PACKAGE_THERM_STATUS
        0x601: 0,					# VR_CURRENT_CONFIG
        0x60A: 0, 0x60B: 0, 0x60C: 0,			# PKGC3/6/7_IRTL
        0x64F: 0, 0x690: 0, 0x6B1: 0,			# PERF_LIMIT_REASONS
    }
    out.update(turbo_registers((m.part or m).turbo))
    if m.power.rapl:
        out |= {RAPL_POWER_UNIT: rapl_unit(m),
                0x613: 0,				# PKG_PERF_STATUS: never throttled
                0x614: rapl_power(m.power.tdp_w)}	# PKG_POWER_INFO
        if not m.limits.power_tau_s:
            out[PKG_POWER_LIMIT] = power_limit(m)
    out.update(config_tdp(m))
    out.update(package_residency(m))
    out.update(rapl_domains(m))
    out.update((msr, 0) for msr in m.features.zero_msrs)
    if m.features.client_msrs:
        out.update(client(m))
    if m.turbo.layout == "atom":
        out.update(atom(m))
    if m.classes and m.features.core_type:
        # SECONDARY_TURBO_RATIO_LIMIT: of E-cores, as many as are in use
        out[0x650] = pack_bytes([m.classes[0].max_ratio] * min(8, m.classes[0].cores))
    return out


#: MSR_FSB_FREQ of Silvermont, by the bus clock in MHz.
ATOM_BUS = {83: 0, 100: 1, 133: 2, 117: 3, 80: 4}


def atom(m: Machine) -> dict[int, int]:
    """Silvermont: ratios (lowest 5:0, low mode 13:8, base 21:16), VIDs, bus."""
    vid = field(0x30, 8, 7) | field(0x50, 16, 7)	# assumed: nothing here uses them
    return {0xCD: ATOM_BUS[round(m.bus_khz / 1000)],
            ATOM_RATIOS: (field(m.min_ratio, 0, 6) | field(m.min_ratio, 8, 6)
                          | field(m.base_ratio, 16, 6)),
            0x66B: vid, 0x66D: 0x50,
            0x664: 0}				# MC6_RESIDENCY: modules are not modelled


def config_tdp(m: Machine) -> dict[int, int]:
    """0x648-0x64C: one TDP level, the nominal one; control locked."""
    return {0x648: field((m.part or m).base_ratio, 0), 0x649: 0, 0x64A: 0,
            0x64B: LOCK, 0x64C: 0}


def package_residency(m: Machine) -> dict[int, int]:
    """Package C2, C3, C6, C7 counters: zero unless the model counts them."""
    own = ({state.residency_msr for state in m.idle}
           | {state.residency_msr for state in m.package})
    return {msr: 0 for msr in (0x60D, 0x3F8, 0x3F9, 0x3FA) if msr not in own}


def rapl_domains(m: Machine) -> dict[int, int]:
    """What stands beside the energy counters of the domains the part has."""
    out: dict[int, int] = {}
    if "dram" in m.power.rapl:
        # DRAM_POWER_LIMIT (locked), DRAM_PERF_STATUS, DRAM_POWER_INFO
        out |= {0x618: LOCK, 0x61B: 0, 0x61C: 0}
    if "cores" in m.power.rapl:
        # PP0_POWER_LIMIT (locked), PP0_POLICY
        out |= {0x638: LOCK, 0x63A: 0}
    return out


def client(m: Machine) -> dict[int, int]:
    """Client parts: package C8-C10, graphics plane (fused off), C0 counters."""
    zero = [0x630, 0x631, 0x632,	# PKG_C8/C9/C10_RESIDENCY
            0x633, 0x634, 0x635,	# PKGC8/9/10_IRTL
            0x641, 0x642,		# PP1_ENERGY_STATUS, PP1_POLICY
            0x658, 0x659, 0x65A, 0x65B,	# weighted, any-core, graphics, both C0
            0x6B0]			# GFX_PERF_LIMIT_REASONS
    return {msr: 0 for msr in zero} | {0x640: LOCK}


def msrs_rw(m: Machine) -> dict[int, tuple[int, int]]:
    """Registers that store what is written: (initial value, writable bits)."""
    c1e_promotion = 1 << 1
    out = {
        0x1A4: (0, 0xF),				# MISC_FEATURE_CONTROL
        0x1B0: (6, 0xF),				# ENERGY_PERF_BIAS: normal
        # POWER_CTL: PROCHOT, C1E promotion, energy-efficient turbo,
        # race to halt, C-state prewake
        0x1FC: (c1e_promotion, 1 | c1e_promotion | 1 << 19 | 1 << 20 | 1 << 30),
    }
    if m.turbo.layout == "atom":
        out |= {0x668: (0, 0xFFFFFFFF), 0x669: (0, 0xFFFFFFFF)}	# C6 demotion
    if m.limits.power_tau_s:
        # both limits, their enable, clamp and time fields
        out[PKG_POWER_LIMIT] = (power_limit(m), 0x00FF_FFFF_00FF_FFFF)
    return out


Leaf = tuple[int, int, int, int]

#: (leaf, sub-leaf); None for leaves without sub-leaves, where ECX is ignored
#: on input: programs leave anything in it.
LeafKey = tuple[int, int | None]


def mwait_edx(m: Machine) -> int:
    """Leaf 5 EDX: number of sub-states per C-state, four bits each.

    Hint bits 7:4 plus one is the field, 3:0 the sub-state.
    """
    counts: dict[int, int] = {}
    for hint in (hint for state in m.idle for hint in state.hints):
        major = ((hint >> 4) + 1) & 0xF
        counts[major] = max(counts.get(major, 0), (hint & 0xF) + 1)
    return sum(field(count, 4 * major, 4) for major, count in counts.items())


def leaf_5(m: Machine) -> Leaf:
    """MONITOR lines of 64 bytes; ECX: extensions, and interrupts as break events."""
    return 64, 64, 0b11, mwait_edx(m)


def leaf_6(m: Machine) -> Leaf:
    """EAX: turbo (1), always-running APIC timer (2), HWP (7) and its energy
    preference (10); ECX: APERF/MPERF, EPB (3)."""
    hwp = 1 << 7 | (1 << 10 if m.hwp.epp else 0) if m.hwp.present else 0
    return 1 << 1 | 1 << 2 | hwp, 0, 1 << 0 | 1 << 3, 0


def leaf_15(m: Machine) -> Leaf:
    """TSC = crystal * EBX / EAX, the nearest for which the kernel's product of EBX and the
    crystal's kHz fits into 32 bits: within 2 ppm of a bus clock of 133.333 MHz."""
    tsc_hz = m.tsc_khz * 1000
    most = 2**32 // (CRYSTAL_HZ // 1000)
    ratio = Fraction(tsc_hz, CRYSTAL_HZ).limit_denominator(most * CRYSTAL_HZ // tsc_hz)
    return ratio.denominator, ratio.numerator, CRYSTAL_HZ, 0


def leaf_16(m: Machine) -> Leaf:
    """Base, maximum and bus frequency in MHz."""
    return (round(m.mhz(m.base_ratio)), round(m.mhz(m.max_ratio)),
            round(m.bus_khz / 1000), 0)


def cpuid(m: Machine) -> dict[LeafKey, Leaf]:
    """Leaves replaced as a whole."""
    out: dict[LeafKey, Leaf] = {
        (0x5, None): leaf_5(m), (0x6, None): leaf_6(m),
        (0x15, None): leaf_15(m), (0x16, None): leaf_16(m)}
    if m.features.core_type:
        # kind of core 31:24, its model 23:0 (assumed: 1)
        out[0x1A, None] = (field(m.features.core_type, 24) | 1, 0, 0, 0)
    return out


def max_level(m: Machine) -> int:
    """Highest basic leaf."""
    return HYBRID_CPUID_LEVEL if m.features.core_type else MAX_CPUID_LEVEL


def max_extended_level(_: Machine) -> int:
    return MAX_EXTENDED_LEVEL


def cpuid_set(m: Machine) -> dict[LeafKey, Leaf]:
    """Bits added to what the emulator says."""
    monitor, est = 1 << 3, 1 << 7
    out: dict[LeafKey, Leaf] = {
        (0x1, None): (0, 0, monitor | est, 0),
        (0x80000007, None): (0, 0, 0, 1 << 8),	# invariant TSC
    }
    if m.features.l2_cores > 1:
        out[0x4, 2] = (field(m.features.l2_cores * m.threads - 1, 14), 0, 0, 0)
    waitpkg = 1 << 5 if m.features.waitpkg else 0
    hybrid = 1 << 15 if m.features.core_type else 0
    if waitpkg or hybrid:
        out[0x7, 0] = (0, 0, waitpkg, hybrid)
    return out


def cpuid_clear(m: Machine) -> dict[LeafKey, Leaf]:
    """Bits removed, each because the registers behind it are not there.

    Leaf 1 ECX: VMX, TM2, PDCM, hypervisor; EDX: debug store, thermal control
    (ACPI, TM).  Leaf 0x80000001 ECX: SVM.
    """
    out: dict[LeafKey, Leaf] = {
        (0x1, None): (0, 0, 1 << 5 | 1 << 8 | 1 << 15 | 1 << 31,
                   1 << 21 | 1 << 22 | 1 << 29),
        (0x80000001, None): (0, 0, 1 << 2, 0),
    }
    if not m.features.waitpkg:
        out[0x7, 0] = (0, 0, 1 << 5, 0)
    return out
