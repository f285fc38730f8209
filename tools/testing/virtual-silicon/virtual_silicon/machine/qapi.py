# SPDX-License-Identifier: GPL-2.0
"""What the emulator gets: a machine and faults by the types of qapi/virtual-silicon.json.

Everything is worked out here, so that the emulator needs no knowledge of
processor models.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from . import amd, intel, vendor
from .machine import CoreClass, IdleState, Machine, at_median
from .schema import Quantile

#: A value of a QAPI struct type.
Struct = dict[str, Any]

#: CPUID 1AH: E-cores, whose residency counters hold deeper states as well, by
#: what the base's turbostat takes from them.
ATOM = 0x20


def struct(**members: object) -> Struct:
    """Members with the names that QAPI gives them; None leaves one out."""
    return {name.replace("_", "-"): value for name, value in members.items()
            if value is not None}


def _us_to_ns(us: float) -> int:
    return round(us * 1000)


def _uw(watts: float) -> int:
    return round(watts * 1e6)


def _clock(m: Machine) -> Struct:
    return struct(
        tsc_khz=m.tsc_khz, bus_khz=m.bus_khz, min_ratio=m.min_ratio,
        base_ratio=m.base_ratio, max_ratio=m.max_ratio,
        counter_unit=m.features.counter_unit,
        domain_cpus=m.domain_cpus if m.coordination == "any" else 1)


def _transition(m: Machine) -> Struct | None:
    times = {f"{key.removesuffix('_us')}_ns": _us_to_ns(value)
             for key, value in vars(m.transition).items()
             if key.endswith("_us") and key != "told_us"}
    if not any(times.values()):
        return None
    return struct(per_core=m.transition.scope == "core",
                  long_above_ratio=m.transition.long_above_ratio,
                  return_above_ratio=m.transition.return_above_ratio, **times)


def _hwp(m: Machine) -> Struct | None:
    if not m.hwp.present:
        return None
    return struct(epp=m.hwp.epp, unit_khz=m.hwp.unit_khz or m.bus_khz,
                  efficient_ratio=m.hwp.efficient_ratio)


def _cppc_nominal(m: Machine) -> int | None:
    return m.cppc(m.base_ratio) if m.features.cppc_msrs else None


def _exit(m: Machine, quantiles: list[Quantile]) -> list[Struct]:
    """The distribution, or one of its points where the machine asks for that."""
    if m.time.latency == "worst":
        quantiles = quantiles[-1:]
    elif m.time.latency == "median":
        quantiles = [at_median(quantiles)]
    return [struct(ppm=ppm, ns=_us_to_ns(us), timer_ns=_us_to_ns(timer))
            for ppm, us, timer in quantiles]


def _idle(m: Machine, state: IdleState) -> Struct:
    return struct(
        name=state.name, hints=list(state.hints), port=state.port or None,
        rest=struct(exit=_exit(m, state.quantiles), exit_cycles=state.wake_cycles,
                    entry_ns=_us_to_ns(state.entry_us), entry_cycles=0,
                    power_uw=[_uw(m.idle_w(state, ratio)) for ratio in m.ratios]),
        active=state.active, residency_msr=state.residency_msr or None)


def _umwait_rest(m: Machine, entry: int, leave: int, permille: int) -> Struct:
    return struct(exit=_exit(m, [(0, 0.0, 0.0)]), exit_cycles=leave, entry_ns=0,
                  entry_cycles=entry,
                  power_uw=[_uw(m.share_w(ratio, permille)) for ratio in m.ratios])


def _umwait(m: Machine) -> Struct | None:
    if not m.features.waitpkg:
        return None
    u = m.umwait
    return struct(
        c01=_umwait_rest(m, u.c01_entry_cycles, u.c01_exit_cycles, u.c01_permille),
        c02=_umwait_rest(m, u.c02_entry_cycles, u.c02_exit_cycles, u.c02_permille))


def _power(m: Machine) -> Struct:
    domains = m.power.rapl
    shift, unit_uj = m.power.energy_unit_shift, m.power.energy_unit_uj
    is_amd = m.vendor == "AuthenticAMD"
    package = amd.PACKAGE_ENERGY if is_amd else intel.PKG_ENERGY_STATUS
    cores = "core_msr" if is_amd else "cores_msr"
    register = amd.CORE_ENERGY if is_amd else intel.PP0_ENERGY_STATUS
    return struct(
        active_uw=[_uw(m.active_w(ratio)) for ratio in m.ratios],
        pause_uw=[_uw(m.share_w(ratio, m.power.pause_permille)) for ratio in m.ratios],
        sibling_permille=m.power.sibling_permille,
        uncore_uw=[_uw(m.uncore_w(ratio)) for ratio in m.ratios],
        dram_uw=_uw(m.power.dram_w),
        energy_unit_shift=shift, energy_unit_uj=unit_uj or None,
        # Where the part has no unit of its own for DRAM, it is the common one.
        dram_unit_nj=m.power.dram_unit_nj or 1000 * unit_uj or round(1e9 / 2**shift),
        package_msr=package if "package" in domains else None,
        dram_msr=intel.DRAM_ENERGY_STATUS if "dram" in domains else None,
        **{cores: register if "cores" in domains else None})


def _thermal(m: Machine) -> Struct | None:
    if not m.limits.thermal_resistance:
        return None
    return struct(resistance_mk_per_w=round(m.limits.thermal_resistance * 1000),
                  tau_ns=round(m.limits.thermal_tau_s * 1e9),
                  ambient_mc=round(m.limits.ambient_c * 1000),
                  tjmax_mc=m.features.tj_max * 1000)


def _leaves(leaves: dict[intel.LeafKey, intel.Leaf]) -> list[Struct]:
    return [struct(leaf=leaf, sub=sub, eax=eax, ebx=ebx, ecx=ecx, edx=edx)
            for (leaf, sub), (eax, ebx, ecx, edx) in leaves.items()]


def _cpuid(m: Machine) -> list[Struct]:
    return _leaves(vendor.encoding(m).cpuid(m))


def _msrs(m: Machine) -> list[Struct]:
    """By number; those that can be written have the mask of the bits that can."""
    by = vendor.encoding(m)
    constant = {msr: (value, None) for msr, value in by.msrs(m).items()}
    return [struct(msr=msr, value=value, mask=mask)
            for msr, (value, mask) in sorted((constant | by.msrs_rw(m)).items())]


def _class(m: Machine, kind: CoreClass, cpus: list[int]) -> Struct:
    """What differs: the registers and leaves of the one that the part's have not."""
    own = m.of_class(kind)
    return struct(
        cpus=cpus, base_ratio=own.base_ratio, max_ratio=kind.max_ratio,
        power_permille=kind.power_permille, work_permille=kind.work_permille,
        residency_deeper=kind.core_type == ATOM,
        hwp=_hwp(own), cppc_nominal=_cppc_nominal(own),
        msrs=[msr for msr in _msrs(own) if msr not in _msrs(m)],
        cpuid=[leaf for leaf in _cpuid(own) if leaf not in _cpuid(m)])


def machine(m: Machine, cpus: int | None = None) -> Struct:
    """VirtualSiliconMachine of a guest with so many CPUs: which of them are of which
    kind depends on it."""
    by = vendor.encoding(m)
    whole = m.packages * m.cores * m.threads
    return struct(
        clock=_clock(m),
        turbo=[struct(cores=cores, ratio=ratio)
               for cores, ratio in zip(m.turbo.cores, m.turbo.ratios)],
        transition=_transition(m), hwp=_hwp(m),
        pstates=struct(ratios=list(m.pstate_ratios), cppc_nominal=_cppc_nominal(m))
        if m.pstate_ratios else None,
        idle=[_idle(m, state) for state in m.idle],
        package=[struct(name=level.name, core_state=level.core_state,
                        uncore_uw=_uw(m.package_w(level)),
                        exit_ns=_us_to_ns(level.exit_us),
                        residency_msr=level.residency_msr or None) for level in m.package],
        packages_together=m.packages_together, umwait=_umwait(m), power=_power(m),
        power_limit=m.limits.power_tau_s > 0,
        thermal=_thermal(m),
        speed=struct(**{key: of for key, of in vars(m.time).items() if key != "latency"}),
        cpuid=_cpuid(m), cpuid_set=_leaves(by.cpuid_set(m)),
        cpuid_clear=_leaves(by.cpuid_clear(m)), msrs=_msrs(m),
        classes=[_class(m, kind, numbers) for kind, numbers in
                 m.class_cpus(whole if cpus is None else cpus)])


def option(m: Machine, cpus: int, faults: Sequence[Struct] = (),
           **properties: str) -> str:
    """The argument of -object; the same machine always gives the same bytes."""
    return json.dumps({"qom-type": "virtual-silicon", "id": "vs0", **properties,
                       "faults": list(faults), "machine": machine(m, cpus)})
