# SPDX-License-Identifier: GPL-2.0
"""A machine file from a dump of a real machine (dump.py).

What cannot be read, powers above all, is assumed, and said so in the file; what is
assumed of every part, or follows, is left out of it (schema.py).  A dump without idle
states gives a machine like one of the same model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from . import intel, machine, turbo
from .dump import Dump
from .schema import BY_NAME

#: Models with registers for graphics and package C8 to C10.
CLIENT_MODELS = {0x4E, 0x5C, 0x5E, 0x7A, 0x8E, 0x97, 0x9A, 0x9E, 0xA5, 0xA6}

#: Families of AMD's whose P-states are read as here: Zen.
AMD_FAMILIES = (0x17, 0x19, 0x1A)

Table = list[tuple[str, Any, str]]	# key, value, where it is from


def _layout(d: Dump) -> str:
    """Of the turbo table; UsageError if the part is not known."""
    family, model, _ = d.signature
    if d.vendor == "AuthenticAMD" and family in AMD_FAMILIES:
        return "none"
    layout = turbo.layout(model) if d.vendor == "GenuineIntel" and family == 6 else None
    if layout is None:
        raise d.fail((1, 0) if (1, 0) in d.places else "model",
                     f"{d.vendor} family {family:#x} model {model:#x} is unknown; known "
                     "are Intel's Core, Xeon and Atom since Nehalem and AMD's Zen")
    return layout


def _machine(d: Dump) -> Table:
    family, model, stepping = d.signature
    packages, cores, small, threads = d.topology()
    loaded = d.msrs.get(0x8B, 0)	# Intel: 63:32, AMD: 31:0
    microcode = d.number("microcode") or loaded >> 32 or loaded
    out: Table = [("title", d.name or f"{d.vendor} {family}/{model}", "CPUID 0x80000002 and on"),
                  ("vendor", d.vendor, "CPUID 0"), ("family", family, "CPUID 1"),
                  ("model", model, "CPUID 1"), ("stepping", stepping, "CPUID 1"),
                  ("microcode", _Hex(microcode or 1), "the dump" if microcode else "assumed"),
                  ("packages", packages, "the CPUs"), ("cores", cores, "the CPUs")]
    if threads > 1 and not small:
        out.append(("threads", threads, "the CPUs"))
    return out


#: kHz by MSR_FSB_FREQ of Silvermont; such that the TSC has whole MHz.
_ATOM_KHZ = {0: 83_375, 1: 100_000, 2: 133_375, 3: 116_625, 4: 80_000}

#: Of AMD's ratios.
STEP_MHZ = 25


def _amd_states(d: Dump) -> list[int]:
    """P-states in steps of 25 MHz: PPR, MSRC001_0064 and on.  Nominal and lowest
    nonlinear performance where only CPPC is known."""
    out = []
    for msr in range(0xC0010064, 0xC001006C):
        value = d.msrs.get(msr, 0)
        if value >> 63 and d.signature[0] < 0x1A:
            out.append(8 * (value & 0xFF) // max(1, value >> 8 & 0x3F))
        elif value >> 63:
            out.append((value & 0xFFF) * 5 // STEP_MHZ)
    if not out:
        _, nominal, nonlinear, _ = _cppc(d)
        mhz = d.files.get(_CPPC + "nominal_freq", "0")
        if not (mhz.isdigit() and int(mhz) and nominal):
            raise d.fail("", "the dump ends and lacks the P-states: registers 0xc0010064 "
                         "and on, or acpi_cppc's files")
        base = int(mhz) // STEP_MHZ
        out = [base, base * nonlinear // nominal]
    if out != sorted(set(out), reverse=True):
        raise d.fail(0xC0010064, f"P-states do not fall: {[STEP_MHZ * n for n in out]} MHz")
    return out


_CPPC = "/sys/devices/system/cpu/cpu0/acpi_cppc/"


def _cppc(d: Dump) -> tuple[int, ...]:
    """Highest, nominal, nonlinear, lowest; all 0 where none is known."""
    if value := d.msrs.get(0xC00102B0, 0):
        return tuple(value >> shift & 0xFF for shift in (24, 16, 8, 0))
    return tuple(int(d.files.get(f"{_CPPC}{name}_perf", "0")) for name in
                 ("highest", "nominal", "lowest_nonlinear", "lowest"))


def _frequency(d: Dump) -> Table:
    layout = _layout(d)
    if layout == "none":
        states, (_, nominal, _, lowest) = _amd_states(d), _cppc(d)
        base, low = states[0], (round(states[0] * lowest / nominal) if nominal
                                else states[-1])
        out: Table = [("bus_khz", STEP_MHZ * 1000, "PPR: steps of the clock"),
                      ("pstate_ratios", states, "MSRC001_0064 and on, or CPPC")]
        register, source = 0xC0010064, "CPPC, or the last P-state"
    elif layout == "atom":
        register, source = intel.ATOM_RATIOS, "MSR 0x66a"
        base, low = d.msr(register) >> 16 & 0x3F, d.msr(register) >> 8 & 0x3F
        out = [("bus_khz", _ATOM_KHZ[d.msr(0xCD) & 7], "MSR 0xcd")]
    else:
        register, source = intel.PLATFORM_INFO, "MSR 0xce"
        base, low = d.msr(register) >> 8 & 0xFF, d.msr(register) >> 40 & 0xFF
        out = []
    if not 0 < low <= base:
        raise d.fail(register, f"the lowest ratio, {low}, is not within 1 and the base "
                     f"ratio, {base}")
    if layout != "none":	# AMD's is the first P-state
        out.append(("base_ratio", base, source))
    return [*out, ("min_ratio", low, source)]


def _base(d: Dump) -> int:
    return next(value[0] if key == "pstate_ratios" else value for key, value, _ in _frequency(d)
                if key in ("pstate_ratios", "base_ratio"))


def _turbo(d: Dump) -> Table:
    layout, base = _layout(d), _base(d)
    if layout == "none":
        highest, nominal, *_ = _cppc(d)
        top = round(base * highest / nominal) if nominal else base
        source = "CPPC" if nominal else "assumed: no boost"
        return [("ratios", [top], source)]
    numbers = turbo.registers(layout)
    if layout == "bytes" and d.signature[1] not in turbo.LONG:
        numbers = numbers[:1]
    values = {number: d.msr(number) for number in numbers
              if number in d.msrs or number != turbo.TURBO_RATIO_LIMIT2}
    try:
        turbo.steps(turbo.decode(layout, values), d.topology()[1], base)
    except ValueError as error:
        raise d.fail(next(iter(values)), str(error)) from error
    return [("registers", [_Hex(value) for value in values.values()],
             "MSR " + ", ".join(f"{number:#x}" for number in values))]


def _class(d: Dump) -> Table:
    """E-cores: as many as AIDA64 or sysfs tell, and their highest ratio."""
    small = d.topology()[2]
    if not small:
        return []
    limits = d.msr(0x650)
    return [("name", "E", "CPUID 1AH"), ("cores", small, "the CPUs"),
            ("max_ratio", limits & 0xFF, "MSR 0x650")]


def _features(d: Dump) -> Table:
    is_intel, (_, model, _) = d.vendor == "GenuineIntel", d.signature
    out: Table = []
    if d.topology()[2]:
        out.append(("core_type", 0x40, "CPUID 1AH"))
    if is_intel and d.msrs.get(0x1A2, 0) >> 16 & 0x7F:
        out.append(("tj_max", d.msr(0x1A2) >> 16 & 0x7F, "MSR 0x1a2"))
    if is_intel and 0xE2 in d.msrs:
        out.append(("pkg_cstate_limit", d.msr(0xE2) & 0xF, "MSR 0xe2"))
    if is_intel and d.leaf(7, 2) >> 5 & 1:
        out.append(("waitpkg", True, "CPUID 7"))
    if not is_intel and (d.leaf(0x80000008, 1) >> 27 & 1 or _cppc(d)[0]):
        out += [("cppc_msrs", True, "CPUID 0x80000008"),
                ("cppc_highest", _cppc(d)[0] or 255, "CPPC")]
    if is_intel and model in CLIENT_MODELS:
        out.append(("client_msrs", True, "model"))
    if is_intel and model in turbo.LAYOUTS["deltas"]:
        out.append(("counter_unit", 1024, "model"))
    return out


def _hint(desc: str) -> int | None:
    match = re.search(r"MWAIT (0x[0-9a-fA-F]+)", desc)
    return int(match[1], 16) if match else None


def _states(d: Dump) -> list[tuple[str, str, int, int]]:
    """Name, description, exit latency and target residency of each on CPU 0."""
    out = []
    place = "/sys/devices/system/cpu/cpu0/cpuidle/state"
    for path in sorted(path for path in d.files if path.startswith(place)
                       and path.endswith("/desc")):
        state = path.removesuffix("desc")
        try:
            out.append((d.files[state + "name"], d.files[path],
                        int(d.files[state + "latency"]), int(d.files[state + "residency"])))
        except (KeyError, ValueError) as error:
            raise d.fail(path, f"{state} needs name, desc, latency and "
                         "residency") from error
    return out


def _hints(d: Dump, hint: int) -> list[int]:
    """With the sub-states above it that CPUID 5 counts and no other state has."""
    taken = {_hint(desc) for _, desc, _, _ in _states(d)}
    count = d.leaf(5, 3) >> 4 * ((hint >> 4) + 1) & 0xF
    out = [hint]
    while (out[-1] & 0xF) + 1 < count and out[-1] + 1 not in taken:
        out.append(out[-1] + 1)
    return out


def state_name(name: str) -> str:
    """As machine files have it."""
    return re.sub(r"\W|_ACPI", "", name)


def _idle(d: Dump) -> list[Table]:
    out: list[Table] = []
    for name, desc, latency, residency in _states(d):
        hint = _hint(desc)
        port = re.search(r"IOPORT (0x[0-9a-fA-F]+)", desc)
        if hint is None and not port:
            continue	# POLL, HLT
        name = state_name(name)
        state: Table = [("name", name, "cpuidle")]
        if port:
            state.append(("port", int(port[1], 16), "cpuidle"))
        if hint is not None:
            state.append(("hints", _hints(d, hint), "cpuidle, CPUID 5"))
        state += [("exit_us", latency, "cpuidle"), ("residency_us", residency, "cpuidle")]
        if name not in BY_NAME:
            state.append(("power_mw", max(10.0, 1000 / 3**len(out)), "assumed"))
        out.append(state)
    return out


def _tdp(d: Dump) -> tuple[float, str]:
    if 0x606 in d.msrs and d.msrs.get(0x614, 0) & 0x7FFF:
        unit = d.msr(0x606) & 0xF
        return (d.msr(0x614) & 0x7FFF) / 2**unit, "MSR 0x614"
    if watts := d.number("CPU TDP", "CPU Thermal Design Power"):
        return float(watts), "AIDA64"
    return 5.0 * d.topology()[1], "assumed"


def _power(d: Dump, part: bool = False) -> Table:
    """Voltages as of the other machine files, roughly."""
    tdp, source = _tdp(d)
    out: Table = [("tdp_w", round(tdp, 3), source)]
    if part:
        return out
    domains = ["package"]
    if 0x638 in d.msrs or d.vendor == "AuthenticAMD" or _layout(d) == "atom":
        domains.append("cores")
    if 0x618 in d.msrs:
        domains.append("dram")
    unit = d.msrs.get(0x606, d.msrs.get(0xC0010299, 14 << 8)) >> 8 & 0x1F
    out += [("dram_w", 3.0, "assumed"), ("v_min", 0.7, "assumed"),
            ("v_max", 1.1, "assumed"), ("rapl", domains, "by registers")]
    return out + [("energy_unit_uj", 2**unit, "MSR 0x606") if _layout(d) == "atom" else
                  ("energy_unit_shift", unit, "MSR 0x606 or MSRC001_0299")]


def _hwp(d: Dump) -> Table:
    if not d.leaf(6, 0) >> 7 & 1 or 0x771 not in d.msrs or d.topology()[2]:
        return []
    return [("efficient_ratio", max(min(_base(d), d.msr(0x771) >> 16 & 0xFF), 1),
             "MSR 0x771")]


def _like(d: Dump) -> str:
    """A machine of the same model."""
    for name in machine.names():
        m = machine.load(name)
        if (m.vendor, m.family, m.model) == (d.vendor, *d.signature[:2]):
            return name
    raise d.fail("", "the dump ends and has no idle states (cpuidle's name, desc, latency, "
                 "residency), and no machine here is of its model to take them from")


class _Hex(int):
    """Shown as such."""

    def __repr__(self) -> str:
        return hex(self)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return repr(value)


def _show(header: str, table: Table) -> str:
    lines = [header] + [f"{key} = {_toml(value)}\t# {source}"
                        for key, value, source in table]
    return "\n".join(lines) + "\n"


def _in_place(table: Table, measured: Table) -> Table:
    """What was measured counts; a turbo table has either registers or steps."""
    known = {key for key, _, _ in measured}
    return [line for line in table if line[0] not in known] + measured


def machine_file(d: Dump, measured: Mapping[str, Any] | None = None,
                 source: str = "a dump of a real machine") -> str:
    """The text of a machine file; UsageError names what the dump lacks, and where.
    @measured: of tables what is known better, of "idle" by the state's name."""
    better = measured or {}
    parts = [("[machine]", _machine(d)), ("[frequency]", _frequency(d)),
             ("[turbo]", _in_place(_turbo(d), better.get("turbo", []))),
             ("[features]", _features(d)),
             ("[transition]", _in_place([(key, value, "assumed") for key, value in (
                 ("period_us", 500), ("up_us", 20), ("down_us", 20))],
                 better.get("transition", []))),
             ("[[class]]", _class(d)), ("[hwp]", _hwp(d))]
    idle = _idle(d)
    if not idle:
        name = _like(d)
        parts[0][1].insert(0, ("like", name, "the same model: idle states, voltages"))
    for state in idle:
        parts.append(("[[idle]]", _in_place(state, better.get("idle", {}).get(state[0][1], []))))
    parts.append(("[[package]]", better.get("package", [])))
    parts.append(("[power]", _in_place(_power(d, part=not idle), better.get("power", []))))
    return ("# SPDX-License-Identifier: GPL-2.0\n"
            f"# Made from {source}; each line says where it is from.\n\n"
            + "\n".join(_show(header, table) for header, table in parts if table))


#: What a family says for all its parts.
FAMILY = {("machine", "vendor"), ("machine", "family"),
          ("features", "client_msrs"), ("features", "counter_unit"),
          ("features", "pkg_cstate_limit"), ("features", "waitpkg"),
          ("features", "core_type")}


def part(d: Dump, name: str) -> str:
    """The same as a part of a family's file: what differs from part to part."""
    tables = {"machine": _machine(d), "frequency": _frequency(d), "turbo": _turbo(d),
              "features": _features(d), "hwp": _hwp(d), "power": _power(d, part=True)}
    lines = [f"[part.{name}]"]
    lines += [f"{table}.{key} = {_toml(value)}" for table, keys in tables.items()
              for key, value, _ in keys if (table, key) not in FAMILY]
    if small := _class(d):
        lines += [f"[[part.{name}.class]]",
                  *(f"{key} = {_toml(value)}" for key, value, _ in small)]
    return "\n".join(lines) + "\n"
