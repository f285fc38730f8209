# SPDX-License-Identifier: GPL-2.0
"""A machine file from what was read on a real machine.

The input is text in which these lines count, in any order; others are passed over:

    cpu0: MSR_TURBO_RATIO_LIMIT: 0x2727...      turbostat's header
    CPUID(0): GenuineIntel ...                  the same
    CPUID(1): family:model:stepping 0x6:8f:8 ... microcode 0x2b000590
    0x1ad 0x2727...                             registers by number
    0x00000006 0x00: eax=0x.. ebx=0x.. ...      cpuid -1 -r
    /sys/.../cpu0/cpuidle/state1/latency:2      grep . on cpuidle's files
    Model name: ..., Socket(s): 1, Core(s) per socket: 4, Thread(s) per core: 2
                                                lscpu

What cannot be read, powers and entry latencies above all, is assumed, and said so
in the file.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from . import encode, guestdata
from .errors import UsageError

#: turbostat's names of the registers that a machine file is made from.
NAMES = {
    "MSR_PLATFORM_INFO": 0xCE, "MSR_PKG_CST_CONFIG_CONTROL": 0xE2,
    "MSR_IA32_TEMPERATURE_TARGET": 0x1A2, "MSR_TURBO_RATIO_LIMIT": 0x1AD,
    "MSR_TURBO_RATIO_LIMIT1": 0x1AE, "MSR_TURBO_RATIO_LIMIT2": 0x1AF,
    "MSR_RAPL_POWER_UNIT": 0x606, "MSR_PKG_POWER_INFO": 0x614,
    "MSR_HWP_CAPABILITIES": 0x771, "MSR_DRAM_POWER_LIMIT": 0x618,
    "MSR_PP0_POWER_LIMIT": 0x638, "MSR_SECONDARY_TURBO_RATIO_LIMIT": 0x650,
}

#: Models (family 6) by the layout of the turbo table, where it is not a byte per
#: core; as the kernel's aperfmperf.c and turbostat tell them apart.
GROUP_MODELS = {85, 92, 95, 106, 108, 122, 134, 143, 173, 174, 207}
DELTA_MODELS = {87, 133}
ATOM_MODELS = {55, 74, 76, 77, 90, 93}
#: Those with registers for graphics and package C8 to C10.
CLIENT_MODELS = {78, 92, 94, 122, 142, 151, 154, 158, 165, 166}

#: Residency register by the digit of the state's name.
RESIDENCY = {"3": 0x3FC, "6": 0x3FD, "7": 0x3FE, "8": 0x3FE, "9": 0x3FE}


@dataclass
class Dump:
    """What the lines said."""

    msrs: dict[int, int] = field(default_factory=dict)
    cpuid: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)		# of lscpu
    idle: list[tuple[str, str, int, int]] = field(default_factory=list)
    vendor: str = ""
    signature: tuple[int, int, int] | None = None
    microcode: int = 1

    def msr(self, number: int) -> int:
        if number not in self.msrs:
            raise UsageError(f"the dump lacks register {number:#x}")
        return self.msrs[number]

    def leaf(self, leaf: int, register: int, sub: int = 0) -> int:
        """0 if nobody has read it."""
        return self.cpuid.get((leaf, sub), (0, 0, 0, 0))[register]

    def count(self, what: str) -> int:
        if not self.words.get(what, "").isdigit():
            raise UsageError(f"the dump lacks lscpu's line {what!r}")
        return int(self.words[what])


_NAMED = re.compile(r"cpu\d+: (MSR_\w+): (0x[0-9a-fA-F]+)")
_NUMBERED = re.compile(r"(0x[0-9a-fA-F]{1,8}) (0x[0-9a-fA-F]{1,16})$")
_CPUID = re.compile(r"\s*(0x[0-9a-fA-F]{8}) (0x[0-9a-fA-F]{2}): eax=(\w+) ebx=(\w+) "
                    r"ecx=(\w+) edx=(\w+)")
_VENDOR = re.compile(r"CPUID\(0\): (\w+)")
_SIGNATURE = re.compile(r"CPUID\(1\): family:model:stepping \S+ \((\d+):(\d+):(\d+)\)"
                        r"(?: microcode (0x[0-9a-fA-F]+))?")
_LSCPU = re.compile(r"(Model name|Socket\(s\)|Core\(s\) per socket|"
                    r"Thread\(s\) per core):\s+(\S.*)")


def _line(dump: Dump, line: str) -> None:
    if match := _NAMED.match(line):
        if match[1] in NAMES:
            dump.msrs.setdefault(NAMES[match[1]], int(match[2], 16))
    elif match := _CPUID.match(line):
        leaf, sub, *registers = (int(word, 16) for word in match.groups())
        dump.cpuid.setdefault((leaf, sub), tuple(registers))
    elif match := _NUMBERED.match(line):
        dump.msrs.setdefault(int(match[1], 16), int(match[2], 16))
    elif match := _VENDOR.match(line):
        dump.vendor = match[1]
    elif match := _SIGNATURE.match(line):
        dump.signature = (int(match[1]), int(match[2]), int(match[3]))
        dump.microcode = int(match[4] or "1", 16)
    elif match := _LSCPU.match(line):
        dump.words.setdefault(match[1], match[2].strip())


def _finish(dump: Dump) -> None:
    """Vendor and signature from CPUID where turbostat has not named them."""
    if (0, 0) in dump.cpuid and not dump.vendor:
        _, ebx, ecx, edx = dump.cpuid[0, 0]
        dump.vendor = struct.pack("<III", ebx, edx, ecx).decode("ascii", "replace")
    if (1, 0) in dump.cpuid and not dump.signature:
        eax = dump.leaf(1, 0)
        family, model = eax >> 8 & 0xF, eax >> 4 & 0xF
        if family in (6, 15):
            model |= eax >> 12 & 0xF0
        dump.signature = (family + (eax >> 20 & 0xFF if family == 15 else 0), model,
                          eax & 0xF)
    if not dump.vendor or not dump.signature:
        raise UsageError("the dump lacks vendor and model: turbostat's CPUID lines, or "
                         "cpuid -1 -r")


def parse(text: str) -> Dump:
    """UsageError if it does not even say what processor it is."""
    dump = Dump()
    for line in text.splitlines():
        _line(dump, line)
    files = guestdata.pairs(text)
    first = re.compile(r"(.*/cpu0/cpuidle/state\d+)/desc$")
    for path in sorted(files):
        if match := first.match(path):
            state = match[1]
            try:
                dump.idle.append((files[f"{state}/name"], files[path],
                                  int(files[f"{state}/latency"]),
                                  int(files[f"{state}/residency"])))
            except (KeyError, ValueError) as error:
                raise UsageError(f"{state}: needs name, desc, latency and "
                                 "residency") from error
    _finish(dump)
    return dump


# --- the file -----------------------------------------------------------------

Table = list[tuple[str, Any, str]]	# key, value, where it is from


def _values(table: Table) -> dict[str, Any]:
    return {key: value for key, value, _ in table}


def _machine(d: Dump) -> Table:
    assert d.signature
    family, model, stepping = d.signature
    threads = d.words.get("Thread(s) per core", "1")
    out: Table = [
        ("title", d.words.get("Model name", f"{d.vendor} {family}/{model}"), "lscpu"),
        ("vendor", d.vendor, "CPUID 0"), ("family", family, "CPUID 1"),
        ("model", model, "CPUID 1"), ("stepping", stepping, "CPUID 1"),
        ("microcode", d.microcode, "turbostat" if d.microcode > 1 else "assumed"),
        ("packages", d.count("Socket(s)"), "lscpu"),
        ("cores", d.count("Core(s) per socket"), "lscpu")]
    return out + ([("threads", int(threads), "lscpu")] if threads != "1" else [])


def layout(d: Dump) -> str:
    assert d.signature
    if d.vendor == "AuthenticAMD":
        return "none"
    return ("groups" if d.signature[1] in GROUP_MODELS else
            "deltas" if d.signature[1] in DELTA_MODELS else
            "atom" if d.signature[1] in ATOM_MODELS else "bytes")


#: kHz by MSR_FSB_FREQ of Silvermont; such that the TSC has whole MHz.
_ATOM_KHZ = {0: 83_375, 1: 100_000, 2: 133_375, 3: 116_625, 4: 80_000}


def _amd_states(d: Dump) -> list[int]:
    """P-states in steps of 25 MHz: PPR, MSRC001_0064 and on."""
    out = []
    for msr in range(0xC0010064, 0xC001006C):
        value = d.msrs.get(msr, 0)
        if value >> 63:
            out.append(8 * (value & 0xFF) // (value >> 8 & 0x3F))
    if not out:
        raise UsageError("the dump lacks the P-states, registers 0xc0010064 and on")
    return out


def _cppc(d: Dump) -> tuple[int, ...]:
    """Highest, nominal, nonlinear, lowest; all 0 without the register."""
    value = d.msrs.get(0xC00102B0, 0)
    return tuple(value >> shift & 0xFF for shift in (24, 16, 8, 0))


def _frequency(d: Dump) -> Table:
    if layout(d) == "none":
        states, (_, nominal, _, lowest) = _amd_states(d), _cppc(d)
        low = round(states[0] * lowest / nominal) if nominal else states[-1]
        return [("bus_khz", 25_000, "PPR: steps of the clock"),
                ("base_ratio", states[0], "MSRC001_0064"),
                ("min_ratio", low, "CPPC" if nominal else "the last P-state"),
                ("pstate_ratios", states, "MSRC001_0064 and on")]
    if layout(d) == "atom":
        ratios = d.msr(encode.ATOM_RATIOS)
        return [("bus_khz", _ATOM_KHZ[d.msr(0xCD) & 7], "MSR 0xcd"),
                ("base_ratio", ratios >> 16 & 0x3F, "MSR 0x66a"),
                ("min_ratio", ratios & 0x3F, "MSR 0x66a")]
    info = d.msr(encode.PLATFORM_INFO)
    return [("base_ratio", info >> 8 & 0xFF, "MSR 0xce"),
            ("min_ratio", info >> 40 & 0xFF, "MSR 0xce")]


def _steps(pairs: Iterable[tuple[int, int]], cores: int,
           base: int) -> list[tuple[int, int]]:
    """Up to the part's cores, equal neighbours as one; no step below base."""
    out: list[tuple[int, int]] = []
    for count, ratio in pairs:
        out.append((min(count, cores), max(ratio, base)))
        if count >= cores:
            break
    if out[-1][0] < cores:
        out.append((cores, out[-1][1]))
    return out


def _turbo(d: Dump) -> Table:
    kind, cores = layout(d), d.count("Core(s) per socket")
    base = _values(_frequency(d))["base_ratio"]
    if kind == "none":
        highest, nominal, *_ = _cppc(d)
        top = round(base * highest / nominal) if nominal else base
        pairs, source = [(cores, top)], "CPPC; the same with all cores assumed"
    else:
        needs = encode.ATOM_TURBO_RATIOS if kind == "atom" else encode.TURBO_RATIO_LIMIT
        d.msr(needs)
        if kind == "groups":
            d.msr(encode.TURBO_RATIO_LIMIT1)
        decoded = encode.decode_turbo(kind, d.msrs)
        pairs, source = _steps(decoded, cores, base), f"MSR {needs:#x}"
    return [("layout", kind, "model" if kind != "none" else "vendor"),
            ("cores", [count for count, _ in pairs], source),
            ("ratios", [ratio for _, ratio in pairs], source)]


def _features(d: Dump) -> Table:
    assert d.signature
    out: Table = []
    if 0x1A2 in d.msrs:
        out.append(("tj_max", d.msr(0x1A2) >> 16 & 0xFF, "MSR 0x1a2"))
    if 0xE2 in d.msrs:
        out.append(("pkg_cstate_limit", d.msr(0xE2) & 0xF, "MSR 0xe2"))
    if d.leaf(7, 2) >> 5 & 1:
        out.append(("waitpkg", True, "CPUID 7"))
    if d.leaf(0x80000008, 1) >> 27 & 1 or 0xC00102B0 in d.msrs:
        out += [("cppc_msrs", True, "CPUID 0x80000008"),
                ("cppc_highest", _cppc(d)[0], "MSRC001_02B0")]
    if d.vendor == "GenuineIntel" and d.signature[1] in CLIENT_MODELS:
        out.append(("client_msrs", True, "model"))
    if d.signature[1] in DELTA_MODELS and d.vendor == "GenuineIntel":
        out.append(("counter_unit", 1024, "model"))
    return out


def _hint(desc: str) -> int | None:
    match = re.search(r"MWAIT (0x[0-9a-fA-F]+)", desc)
    return int(match[1], 16) if match else None


def _hints(d: Dump, hint: int) -> list[int]:
    """With the sub-states above it that CPUID 5 counts and no other state has."""
    taken = {_hint(desc) for _, desc, _, _ in d.idle}
    count = d.leaf(5, 3) >> 4 * ((hint >> 4) + 1) & 0xF
    out = [hint]
    while (out[-1] & 0xF) + 1 < count and out[-1] + 1 not in taken:
        out.append(out[-1] + 1)
    return out


def _idle(d: Dump) -> list[Table]:
    out: list[Table] = []
    for name, desc, latency, residency in d.idle:
        hint = _hint(desc)
        port = re.search(r"IOPORT (0x[0-9a-fA-F]+)", desc)
        if hint is None and not port:
            continue	# POLL, HLT
        shallow = name in ("C1", "C1E", "C1_ACPI")
        state: Table = [("name", re.sub(r"\W|_ACPI", "", name), "cpuidle"),
                        ("hints", _hints(d, hint), "cpuidle, CPUID 5")
                        if hint is not None else
                        ("port", int(port[1], 16), "cpuidle"),	# type: ignore[index]
                        ("exit_us", latency, "cpuidle"),
                        ("entry_us", latency / 4, "assumed"),
                        ("residency_us", residency, "cpuidle")]
        if register := RESIDENCY.get(name[1:2]):
            if d.vendor == "GenuineIntel":
                state.append(("residency_msr", register, "by name"))
        if shallow:
            state.append(("active", True, "by name"))
        if shallow:
            state += [("voltage", "lowest" if name == "C1E" else "core", "by name"),
                      ("dynamic_permille", 50, "assumed")]
        else:
            state.append(("power_mw", max(10.0, 1000 / 3**len(out)), "assumed"))
        out.append(state)
    if not out:
        raise UsageError("the dump has no idle states (cpuidle's name, desc, latency, "
                         "residency)")
    return out


def _tdp(d: Dump) -> tuple[float, str]:
    if 0x606 in d.msrs and d.msrs.get(0x614, 0) & 0x7FFF:
        unit = d.msr(0x606) & 0xF
        return (d.msr(0x614) & 0x7FFF) / 2**unit, "MSR 0x614"
    return 15.0 * d.count("Core(s) per socket"), "assumed"


def _power(d: Dump) -> Table:
    """Voltages, uncore and leakage as of the other machine files, roughly."""
    tdp, source = _tdp(d)
    cores, freq = d.count("Core(s) per socket"), _values(_frequency(d))
    top = _values(_turbo(d))["ratios"][0]
    v_min, v_max, uncore = 0.7, 1.1, tdp * 0.25
    span = top - freq["min_ratio"]
    volts = v_min + (v_max - v_min) * ((freq["base_ratio"] - freq["min_ratio"]) / span
                                       if span else 1)
    leakage = 0.05 * (tdp - uncore) / cores
    hertz = freq["base_ratio"] * freq.get("bus_khz", 100_000) * 1e3
    left = (tdp - uncore) / cores - leakage * (volts / v_max)**3
    domains = ["package"]
    if 0x638 in d.msrs or d.vendor == "AuthenticAMD" or layout(d) == "atom":
        domains.append("cores")
    if 0x618 in d.msrs:
        domains.append("dram")
    unit = d.msrs.get(0x606, d.msrs.get(0xC0010299, 14 << 8)) >> 8 & 0x1F
    out: Table = [("tdp_w", round(tdp, 3), source),
                  ("uncore_w", round(uncore, 3), "assumed"),
                  ("dram_w", 3.0, "assumed"), ("v_min", v_min, "assumed"),
                  ("v_max", v_max, "assumed"),
                  ("leakage_w", round(leakage, 3), "assumed"),
                  ("capacitance_nf", round(left / (volts**2 * hertz) * 1e9, 4),
                   "such that all cores at base draw the TDP"),
                  ("rapl", domains, "by registers")]
    return out + [("energy_unit_uj", 2**unit, "MSR 0x606") if layout(d) == "atom" else
                  ("energy_unit_shift", unit, "MSR 0x606 or MSRC001_0299")]


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


def machine_file(d: Dump) -> str:
    """The text of a machine file; UsageError names what the dump lacks."""
    parts = [("[machine]", _machine(d)), ("[frequency]", _frequency(d)),
             ("[turbo]", _turbo(d)), ("[features]", _features(d))]
    parts += [("[[idle]]", state) for state in _idle(d)]
    if d.leaf(6, 0) >> 7 & 1 and 0x771 in d.msrs:
        base = _values(_frequency(d))["base_ratio"]
        parts.append(("[hwp]", [
            ("present", True, "CPUID 6"),
            ("efficient_ratio", min(base, d.msr(0x771) >> 16 & 0xFF), "MSR 0x771")]))
    if d.leaf(7, 2) >> 5 & 1:
        parts.append(("[umwait]", [(key, value, "assumed") for key, value in (
            ("c01_entry_cycles", 30), ("c02_entry_cycles", 60), ("c01_exit_cycles", 60),
            ("c02_exit_cycles", 180), ("c01_permille", 450), ("c02_permille", 330))]))
    parts.append(("[power]", _power(d)))
    return ("# SPDX-License-Identifier: GPL-2.0\n"
            "# Made from a dump of a real machine; each line says where it is from.\n\n"
            + "\n".join(_show(header, table) for header, table in parts if table))
