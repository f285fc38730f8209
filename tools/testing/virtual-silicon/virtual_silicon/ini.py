# SPDX-License-Identifier: GPL-2.0
"""The emulator's form of a machine: a key file without defaults.

Everything is worked out here, so that the emulator needs no knowledge of
processor models.
"""

from __future__ import annotations

from . import amd, encode, vendor
from .machine import CoreClass, IdleState, Machine

#: CPUID 1AH: E-cores, whose residency counters hold deeper states as well, by
#: what the base's turbostat takes from them.
ATOM = 0x20


def _us_to_ns(us: float) -> int:
    return round(us * 1000)


def _mw_to_uw(mw: float) -> int:
    return round(mw * 1000)


def _join(values: object) -> str:
    return "".join(f"{value};" for value in values)  # GKeyFile's list form


def _leaves(leaves: dict[encode.LeafKey, encode.Leaf]) -> dict[str, str]:
    return {f"{leaf:#x}.{'*' if sub is None else sub}":
            ";".join(f"{word:#x}" for word in words)
            for (leaf, sub), words in leaves.items()}


def _idle_section(state: IdleState) -> dict[str, object]:
    return {
        "hints": _join(f"{hint:#04x}" for hint in state.hints),
        "port": hex(state.port) if state.port else 0,
        "exit_ns": _us_to_ns(state.exit_us),
        "entry_ns": _us_to_ns(state.entry_us),
        "power_uw": _mw_to_uw(state.power_mw),
        "active": int(state.active),
        "residency_msr": hex(state.residency_msr) if state.residency_msr else 0,
    }


def _power_section(m: Machine) -> dict[str, object]:
    domains = m.power.rapl
    shift = m.power.energy_unit_shift
    is_amd = m.vendor == "AuthenticAMD"
    package = amd.PACKAGE_ENERGY if is_amd else encode.PKG_ENERGY_STATUS
    cores = 0 if is_amd else encode.PP0_ENERGY_STATUS
    return {
        "active_uw": _join(round(m.active_w(ratio) * 1e6) for ratio in m.ratios),
        "uncore_uw": round(m.power.uncore_w * 1e6),
        "dram_uw": round(m.power.dram_w * 1e6),
        "energy_unit_shift": shift,
        "energy_unit_uj": m.power.energy_unit_uj,
        # Where the part has no unit of its own for DRAM, it is the common one.
        "dram_unit_nj": (m.power.dram_unit_nj or 1000 * m.power.energy_unit_uj
                         or round(1e9 / 2**shift)),
        "pkg_msr": hex(package) if "package" in domains else 0,
        "cores_msr": hex(cores) if "cores" in domains and cores else 0,
        "core_msr": hex(amd.CORE_ENERGY) if "cores" in domains and is_amd else 0,
        "dram_msr": hex(encode.DRAM_ENERGY_STATUS) if "dram" in domains else 0,
    }


def _limits_section(m: Machine) -> dict[str, object]:
    return {
        "power_tau_ns": round(m.limits.power_tau_s * 1e9),
        "rth_mk_per_w": round(m.limits.thermal_resistance * 1000),
        "thermal_tau_ns": round(m.limits.thermal_tau_s * 1e9),
        "ambient_mc": round(m.limits.ambient_c * 1000),
        "tjmax_mc": m.features.tj_max * 1000,
    }


def _registers(m: Machine) -> dict[str, dict[str, object]]:
    """CPUID leaves and model-specific registers, by vendor."""
    by = vendor.encoding(m)
    return {
        "cpuid": dict(_leaves(by.cpuid(m))),
        "cpuid-set": dict(_leaves(by.cpuid_set(m))),
        "cpuid-clear": dict(_leaves(by.cpuid_clear(m))),
        "msr": {f"{msr:#x}": f"{value:#x}"
                for msr, value in sorted(by.msrs(m).items())},
        "msr-rw": {f"{msr:#x}": f"{value:#x};{mask:#x}"
                   for msr, (value, mask) in sorted(by.msrs_rw(m).items())},
    }


def _control_section(m: Machine) -> dict[str, object]:
    out: dict[str, object] = {
        "transition_ns": _us_to_ns(m.transition_us),
        "domain_cpus": m.domain_cpus if m.coordination == "any" else 0,
        "hwp": int(m.hwp.present),
        "hwp_epp": int(m.hwp.epp),
        "hwp_unit_khz": m.hwp.unit_khz or m.bus_khz,
        "efficient_ratio": m.hwp.efficient_ratio}
    if m.pstate_ratios:
        out["pstate_ratios"] = _join(m.pstate_ratios)
        out["cppc_nominal"] = (m.cppc(m.base_ratio) if m.features.cppc_msrs else 0)
    return out


def _class_sections(m: Machine, kind: CoreClass,
                    cpus: list[int]) -> dict[str, dict[str, object]]:
    """What differs: the registers and leaves of the one that the part's have not."""
    own = m.of_class(kind)
    control = _control_section(own)
    name = f"class.{kind.name}"
    out: dict[str, dict[str, object]] = {name: {
        "cpus": _join(cpus), "base_ratio": own.base_ratio, "max_ratio": kind.max_ratio,
        "power_permille": kind.power_permille,
        "residency_deeper": int(kind.core_type == ATOM),
        **{key: control[key] for key in ("efficient_ratio", "hwp_unit_khz",
                                         "cppc_nominal") if key in control}}}
    parts, owns = _registers(m), _registers(own)
    for group in ("msr", "cpuid"):
        out[f"{name}.{group}"] = {key: value for key, value in owns[group].items()
                                  if parts[group].get(key) != value}
    return out


def sections(m: Machine, cpus: int | None = None) -> dict[str, dict[str, object]]:
    """Of a guest with so many CPUs: which are of which kind depends on it."""
    out: dict[str, dict[str, object]] = {
        "clock": {"tsc_khz": m.tsc_khz, "bus_khz": m.bus_khz,
                  "min_ratio": m.min_ratio, "base_ratio": m.base_ratio,
                  "max_ratio": m.max_ratio,
                  "counter_unit": m.features.counter_unit},
        "turbo": {"cores": _join(m.turbo.cores), "ratios": _join(m.turbo.ratios)},
        **_registers(m),
        "idle": {"states": _join(state.name for state in m.idle)},
    }
    for state in m.idle:
        out[f"idle.{state.name}"] = _idle_section(state)
    out["umwait"] = {
        "present": int(m.features.waitpkg),
        "c01_exit_ns": m.umwait.c01_exit_ns,
        "c02_exit_ns": m.umwait.c02_exit_ns,
        "c01_power_uw": _mw_to_uw(m.umwait.c01_power_mw),
        "c02_power_uw": _mw_to_uw(m.umwait.c02_power_mw),
    }
    out["power"] = _power_section(m)
    out["package"] = {"states": _join(state.name for state in m.package)}
    for level in m.package:
        out[f"package.{level.name}"] = {
            "core_state": level.core_state,
            "uncore_uw": round(level.uncore_w * 1e6),
            "residency_msr": hex(level.residency_msr),
        }
    out["control"] = _control_section(m)
    out["limits"] = _limits_section(m)
    out["time"] = dict(m.time)
    whole = m.packages * m.cores * m.threads
    for kind, numbers in m.class_cpus(whole if cpus is None else cpus):
        out |= _class_sections(m, kind, numbers)
    return out


def render(m: Machine, cpus: int | None = None) -> str:
    """The whole file; the same machine always gives the same bytes."""
    lines = [f"# made from {m.path.name}; edit that instead"]
    for name, keys in sections(m, cpus).items():
        lines += ["", f"[{name}]"]
        lines += [f"{key}={value}" for key, value in keys.items()]
    return "\n".join(lines) + "\n"
