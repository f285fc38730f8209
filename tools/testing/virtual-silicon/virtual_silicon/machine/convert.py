# SPDX-License-Identifier: GPL-2.0
"""A machine file from what is attached to a report of a real machine (texts.py).

What cannot be read, powers above all, is assumed, and said so in the file; what is
assumed of every part, or follows, is left out of it (schema.py).  A dump without idle
states gives a machine like one of the same model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cpuwhy import topology, turbo
from cpuwhy.texts import Material, Where

from ..errors import UsageError
from . import intel, machine
from .schema import BY_NAME

#: Models with registers for graphics and package C8 to C10.
CLIENT_MODELS = {0x4E, 0x5C, 0x5E, 0x7A, 0x8E, 0x97, 0x9A, 0x9E, 0xA5, 0xA6}

#: Families of AMD's whose P-states are read as here: Zen.
AMD_FAMILIES = (0x17, 0x19, 0x1A)

#: Models whose bus clock is a third of 400 MHz, and which have no RAPL: before Sandy Bridge.
NEHALEM = {0x1A, 0x1E, 0x1F, 0x2E, 0x25, 0x2C, 0x2F}

Table = list[tuple[str, Any, str]]	# key, value, where it is from


def fail(d: Material, where: Where | None, reason: str) -> UsageError:
    return UsageError(f"{where or d.end or 'the dump'}: {reason}")


def check(d: Material) -> None:
    """UsageError for what a reader of the text would not take for one whole machine's."""
    for what, where in d.cut:
        at_end = d.end and (where.file, where.line) == (d.end.file, d.end.line)
        whole = "; if it is whole, end it with a newline" if at_end else ""
        raise fail(d, where, f"{what} is cut off{whole}")
    for what, one, other in d.conflicts:
        raise fail(d, other.where, f"{what} {other.value}, but {one.value} at {one.where}: these "
                   "are two machines")


def _msr(d: Material, number: int) -> int:
    found = d.register(number)
    if found is None:
        raise fail(d, None, f"the dump ends and lacks register {number:#x}")
    return found.value


def _place(d: Material, number: int) -> Where | None:
    found = d.register(number)
    return found.where if found else None


def _signature(d: Material) -> tuple[int, int, int]:
    """Family, model and stepping."""
    family, model = d.known("family"), d.known("model")
    if not d.known("vendor") or family is None or model is None:
        raise fail(d, None, "the dump lacks vendor and model: turbostat's CPUID lines, "
                   "cpuid -1 -r, lscpu, /proc/cpuinfo or AIDA64's CPUID")
    return family, model, d.known("stepping", 0)


def _topology(d: Material) -> topology.Topology:
    try:
        found = topology.topology(d)
    except ValueError as error:
        raise fail(d, None, f"the dump {error}" if str(error).startswith("lacks") else
                   str(error)) from error
    if d.leaf(0x80000026, 0) >> 30 & 1 and not found.small:
        raise fail(d, d.leaves[0x80000026, 0].where, "cores of two kinds (CPUID 0x80000026), and "
                   "nothing says which; write the file by hand, as zen-client.toml")
    return found


def _from(d: Material, *names: str) -> str:
    """Which tool said it."""
    kinds = [d.cpu[name].where.kind for name in names if name in d.cpu]
    return {"cpuid": "CPUID", "aida64": "AIDA64", "cpuinfo": "/proc/cpuinfo", "dmesg":
            "the kernel's log"}.get(kinds[0], kinds[0] or "the dump") if kinds else "assumed"


def _layout(d: Material) -> str:
    """Of the turbo table; UsageError if the part is not known."""
    family, model, _ = _signature(d)
    vendor = d.known("vendor")
    if vendor == "AuthenticAMD" and family in AMD_FAMILIES:
        return "none"
    layout = turbo.layout(turbo.number(family, model)) if vendor == "GenuineIntel" else None
    if layout is None:
        raise fail(d, d.cpu["model"].where,
                   f"{vendor} family {family:#x} model {model:#x} is unknown; known are Intel's "
                   "Core, Xeon and Atom since Nehalem, without Nehalem-EX, Westmere-EX and "
                   "Lakefield, and AMD's Zen")
    return layout


def _machine(d: Material) -> Table:
    family, model, stepping = _signature(d)
    packages, cores, small, threads, source = _topology(d)
    vendor, name = d.known("vendor"), d.known("name")
    loaded = d.value(0x8B)	# Intel: 63:32, AMD: 31:0
    microcode = d.known("microcode") or loaded >> 32 or loaded
    by = _from(d, "model")
    out: Table = [("title", name or f"{vendor} {family}/{model}",
                   _from(d, "name") if name else f"assumed: by {by}"),
                  ("vendor", vendor, _from(d, "vendor")), ("family", family, by),
                  ("model", model, by),
                  ("stepping", stepping, _from(d, "stepping")),
                  ("microcode", _Hex(microcode or 1), "assumed" if not microcode else
                   _from(d, "microcode") if d.known("microcode") else "MSR 0x8b"),
                  ("packages", packages, source), ("cores", cores, source)]
    if threads > 1 and not small:
        out.append(("threads", threads, source))
    return out


#: kHz by MSR_FSB_FREQ of Silvermont; such that the TSC has whole MHz.
_ATOM_KHZ = {0: 83_375, 1: 100_000, 2: 133_375, 3: 116_625, 4: 80_000}

#: Of AMD's ratios.
STEP_MHZ = 25


def _amd_states(d: Material) -> list[int]:
    """P-states in steps of 25 MHz: PPR, MSRC001_0064 and on.  Nominal and lowest
    nonlinear performance where only CPPC is known."""
    out = []
    for msr in range(0xC0010064, 0xC001006C):
        value = d.value(msr)
        if value >> 63 and _signature(d)[0] < 0x1A:
            out.append(8 * (value & 0xFF) // max(1, value >> 8 & 0x3F))
        elif value >> 63:
            out.append((value & 0xFFF) * 5 // STEP_MHZ)
    if not out:
        _, nominal, nonlinear, _ = _cppc(d)
        mhz = d.file(_CPPC + "nominal_freq") or "0"
        if not (mhz.isdigit() and int(mhz) and nominal):
            raise fail(d, None, "the dump ends and lacks the P-states: registers 0xc0010064 "
                         "and on, or acpi_cppc's files")
        base = int(mhz) // STEP_MHZ
        out = [base, base * nonlinear // nominal]
    if out != sorted(set(out), reverse=True):
        raise fail(d, _place(d, 0xC0010064),
                   f"P-states do not fall: {[STEP_MHZ * n for n in out]} MHz")
    return out


_CPPC = "devices/system/cpu/cpu0/acpi_cppc/"


def _cppc(d: Material) -> tuple[int, ...]:
    """Highest, nominal, nonlinear, lowest; all 0 where none is known."""
    if value := d.value(0xC00102B0):
        return tuple(value >> shift & 0xFF for shift in (24, 16, 8, 0))
    values = [d.file(f"{_CPPC}{name}_perf") for name in
              ("highest", "nominal", "lowest_nonlinear", "lowest")]
    return tuple(int(value) if value.isdigit() else 0 for value in values)


def _bus(d: Material) -> Table:
    """Not 100 MHz, which is the default."""
    if d.bus_khz and d.bus_khz.value != 100_000:
        return [("bus_khz", d.bus_khz.value, f"{d.bus_khz.where.kind}: {d.bus_khz.where.text}")]
    if not d.bus_khz and _signature(d)[1] in NEHALEM:
        return [("bus_khz", 133_333, "assumed: as of all Nehalem and Westmere")]
    return []


def _frequency(d: Material) -> Table:
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
        base, low = _msr(d, register) >> 16 & 0x3F, _msr(d, register) >> 8 & 0x3F
        bus = _ATOM_KHZ.get(_msr(d, 0xCD) & 0xF) if d.register(0xCD) or not d.bus_khz else None
        out = [("bus_khz", bus, "MSR 0xcd")] if bus else _bus(d)
    else:
        register, source = intel.PLATFORM_INFO, "MSR 0xce"
        base, low = _msr(d, register) >> 8 & 0xFF, _msr(d, register) >> 40 & 0xFF
        out = _bus(d)
    if not 0 < low <= base:
        raise fail(d, _place(d, register), f"the lowest ratio, {low}, is not within 1 and the base "
                     f"ratio, {base}")
    if layout != "none":	# AMD's is the first P-state
        out.append(("base_ratio", base, source))
    return [*out, ("min_ratio", low, source)]


def _base(d: Material) -> int:
    return next(value[0] if key == "pstate_ratios" else value for key, value, _ in _frequency(d)
                if key in ("pstate_ratios", "base_ratio"))


def _as_decoded(d: Material, ratios: set[int]) -> None:
    """turbostat prints a register and what it says: a part of one says something else."""
    limits = d.value(0x650)
    ratios = ratios | {limits >> shift & 0xFF for shift in range(0, 64, 8)}
    for where in d.said.get("turbostat", ()):
        match = re.match(r"(\d+) \* [\d.]+ = [\d.]+ MHz (?:max turbo|base freq)", where.text)
        if match and int(match[1]) not in ratios:
            raise fail(d, where, f"ratio {match[1]} is in none of the registers: one of them is "
                       "cut off, or of another machine")


def _turbo(d: Material) -> Table:
    layout, base = _layout(d), _base(d)
    if layout == "none":
        highest, nominal, *_ = _cppc(d)
        top = round(base * highest / nominal) if nominal else base
        source = "CPPC" if nominal else "assumed: no boost"
        return [("ratios", [top], source)]
    numbers = turbo.registers(layout)
    if layout == "bytes" and _signature(d)[1] not in turbo.LONG:
        numbers = numbers[:1]
    values = {number: _msr(d, number) for number in numbers
              if number in d.registers or number != turbo.TURBO_RATIO_LIMIT2}
    pairs = turbo.decode(layout, values)
    _as_decoded(d, {ratio for _, ratio in pairs} | {base})
    try:
        turbo.steps(pairs, _topology(d).cores, base)
    except ValueError as error:
        raise fail(d, _place(d, next(iter(values))), str(error)) from error
    return [("registers", [_Hex(value) for value in values.values()],
             "MSR " + ", ".join(f"{number:#x}" for number in values))]


def _class(d: Material) -> Table:
    """E-cores: how many, and their highest ratio."""
    top = _topology(d)
    if not top.small:
        return []
    return [("name", "E", "CPUID 1AH"), ("cores", top.small, top.source),
            ("max_ratio", _msr(d, 0x650) & 0xFF, "MSR 0x650")]


def _features(d: Material) -> Table:
    is_intel, (_, model, _) = d.known("vendor") == "GenuineIntel", _signature(d)
    out: Table = []
    if _topology(d).small:
        out.append(("core_type", 0x40, "CPUID 1AH"))
    if is_intel and d.value(0x1A2) >> 16 & 0x7F:
        out.append(("tj_max", d.value(0x1A2) >> 16 & 0x7F, "MSR 0x1a2"))
    if is_intel and 0xE2 in d.registers:
        out.append(("pkg_cstate_limit", d.value(0xE2) & 0xF, "MSR 0xe2"))
    if is_intel and (d.leaf(7, 2) >> 5 & 1 or "waitpkg" in d.known("flags", ())):
        out.append(("waitpkg", True, "CPUID 7"))
    if not is_intel and (d.leaf(0x80000008, 1) >> 27 & 1 or _cppc(d)[0]):
        out += [("cppc_msrs", True, "CPUID 0x80000008" if d.leaf(0x80000008, 1) >> 27 & 1 else
                 "CPPC"),
                ("cppc_highest", _cppc(d)[0] or 255, "CPPC" if _cppc(d)[0] else "assumed")]
    if is_intel and model in CLIENT_MODELS:
        out.append(("client_msrs", True, "model"))
    if is_intel and model in turbo.LAYOUTS["deltas"]:
        out.append(("counter_unit", 1024, "model"))
    return out


def _states(d: Material) -> list[tuple[str, str, int, int]]:
    """Name, description, exit latency and target residency of each on CPU 0."""
    out = []
    place = "devices/system/cpu/cpu0/cpuidle/state"
    numbers = sorted({int(match[1]) for path in d.sysfs
                      if (match := re.match(place + r"(\d+)/desc$", path))})
    # turbostat names the states and says no times of them
    if not any(d.file(f"{place}{number}/latency") for number in numbers):
        return []
    for number in numbers:
        state = f"{place}{number}/"
        desc, name = d.file(state + "desc"), d.file(state + "name")
        try:
            if not name:
                raise ValueError
            out.append((topology.state_name(name, desc, _layout(d) == "atom"), desc,
                        int(d.file(state + "latency")), int(d.file(state + "residency"))))
        except ValueError as error:
            raise fail(d, d.sysfs[state + "desc"].where, f"/sys/{state} needs name, desc, latency "
                       "and residency") from error
    return out


def _hints(d: Material, hint: int) -> list[int]:
    """With the sub-states above it that CPUID 5 counts and no other state has."""
    taken = {topology.mwait_hint(desc) for _, desc, _, _ in _states(d)}
    count = d.leaf(5, 3) >> 4 * ((hint >> 4) + 1) & 0xF
    out = [hint]
    while (out[-1] & 0xF) + 1 < count and out[-1] + 1 not in taken:
        out.append(out[-1] + 1)
    return out


def _idle(d: Material) -> list[Table]:
    out: list[Table] = []
    source = "cpuidle, CPUID 5" if (5, 0) in d.leaves else "cpuidle"
    for name, desc, latency, residency in _states(d):
        hint = topology.mwait_hint(desc)
        port = re.search(r"IOPORT (0x[0-9a-fA-F]+)", desc)
        if hint is None and not port:
            continue	# POLL, HLT
        if any(name == state[0][1] for state in out):	# two of one depth
            name += "S"
        state: Table = [("name", name, "cpuidle")]
        if port:
            state.append(("port", int(port[1], 16), "cpuidle"))
        if hint is not None:
            state.append(("hints", _hints(d, hint), source))
        state += [("exit_us", latency, "cpuidle"), ("residency_us", residency, "cpuidle")]
        if name not in BY_NAME:
            state.append(("power_mw", max(10.0, round(1000 / 3**len(out), 1)), "assumed"))
        out.append(state)
    return out


def _tdp(d: Material) -> tuple[float, str]:
    if 0x606 in d.registers and d.value(0x614) & 0x7FFF:
        unit = d.value(0x606) & 0xF
        return (d.value(0x614) & 0x7FFF) / 2**unit, "MSR 0x614"
    if watts := d.known("tdp_w"):
        return float(watts), _from(d, "tdp_w")
    return 5.0 * _topology(d).cores, "assumed"


def _rapl(d: Material) -> Table:
    """Domains by their registers, and the unit of energy; none before Sandy Bridge."""
    is_amd, atom = d.known("vendor") == "AuthenticAMD", _layout(d) == "atom"
    if not is_amd and _signature(d)[1] in NEHALEM:
        return []
    cores, dram = 0x638 in d.registers, 0x618 in d.registers
    domains = ["package"] + ["cores"] * (cores or is_amd or atom) + ["dram"] * dram
    source = ", ".join(["assumed: package" + ", cores" * (not cores and (is_amd or atom)),
                        *["MSR 0x638"] * cores, *["MSR 0x618"] * dram])
    number = 0xC0010299 if is_amd else 0x606
    unit = d.value(number) >> 8 & 0x1F if d.value(number) else 0
    # 1/2^16 J: the PPRs of family 17h and on; 1/2^14: SDM vol. 4; 32 uJ: of Silvermont
    value = unit or (16 if is_amd else 5 if atom else 14)
    said = f"MSR {number:#x}" if unit else "assumed"
    return [("rapl", domains, source), ("energy_unit_uj", 2**value, said) if atom else
            ("energy_unit_shift", value, said)]


def _power(d: Material, part: bool = False) -> Table:
    """Voltages as of the other machine files, roughly."""
    tdp, source = _tdp(d)
    out: Table = [("tdp_w", round(tdp, 3), source)]
    if part:
        return out
    return [*out, ("dram_w", 3.0, "assumed"), ("v_min", 0.7, "assumed"),
            ("v_max", 1.1, "assumed"), *_rapl(d)]


def _hwp(d: Material) -> Table:
    has = d.known("hwp") or "hwp" in d.known("flags", ())
    if not has or 0x771 not in d.registers or _topology(d).small:
        return []
    return [("efficient_ratio", max(min(_base(d), d.value(0x771) >> 16 & 0xFF), 1),
             "MSR 0x771")]


def _like(d: Material) -> machine.Machine:
    """A machine of the same model, with as many kinds of cores if there is one."""
    same = [m for m in map(machine.load, machine.names())
            if (m.vendor, m.family, m.model) == (d.known("vendor"), *_signature(d)[:2])]
    small = bool(_topology(d).small)
    for m in sorted(same, key=lambda m: bool(m.classes) != small):
        return m
    raise fail(d, None, "the dump ends and has no idle states (cpuidle's name, desc, latency, "
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


def machine_file(d: Material, measured: Mapping[str, Any] | None = None,
                 source: str = "a dump of a real machine") -> str:
    """The text of a machine file; UsageError names what the dump lacks, and where.
    @measured: of tables what is known better, of "idle" by the state's name."""
    check(d)
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
        like = _like(d)
        parts[0][1].insert(0, ("like", like.name, "the same model: idle states, voltages"))
        if like.classes and not _topology(d).small:
            parts.append(("[class]", [(kind.name, False, "has none") for kind in like.classes]))
            parts[3][1].append(("core_type", 0, "of one kind"))
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


def part(d: Material, name: str) -> str:
    """The same as a part of a family's file: what differs from part to part."""
    check(d)
    tables = {"machine": _machine(d), "frequency": _frequency(d), "turbo": _turbo(d),
              "features": _features(d), "hwp": _hwp(d), "power": _power(d, part=True)}
    lines = [f"[part.{name}]"]
    lines += [f"{table}.{key} = {_toml(value)}" for table, keys in tables.items()
              for key, value, _ in keys if (table, key) not in FAMILY]
    if small := _class(d):
        lines += [f"[[part.{name}.class]]",
                  *(f"{key} = {_toml(value)}" for key, value, _ in small)]
    return "\n".join(lines) + "\n"
