# SPDX-License-Identifier: GPL-2.0
"""ACPI table with the P-states, for acpi-cpufreq and for _PPC limits.

A machine can ask for a list of idle states (_CST) too.

One object set per CPU that is there: the kernel rejects the table if it names
one too many.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from ..errors import GuestError, MissingError
from .machine import Machine

#: ACPI 8.4.5.5: who sets the P-state of a domain.
COORDINATION = {"all": 0xFC, "any": 0xFD, "hw": 0xFE}


def pstates(m: Machine) -> list[tuple[int, int, int]]:
    """(MHz, mW, control word), fastest first; AMD parts have numbers there."""
    if m.pstate_ratios:
        return [(int(m.mhz(ratio)), _mw(m, ratio), number)
                for number, ratio in enumerate(m.pstate_ratios)]
    return [(mhz, mw, ratio << 8) for mhz, mw, ratio in ratio_states(m)]


def _mw(m: Machine, ratio: int) -> int:
    """The voltage is the part's, for all kinds of cores."""
    return round((m.part or m).active_w(ratio) * 1000)


def ratio_states(m: Machine) -> list[tuple[int, int, int]]:
    """(MHz, mW, ratio), fastest first.

    Firmware lists turbo as base + 1 MHz with the highest ratio in the control
    word; then each ratio from base down.
    """
    base = int(m.mhz(m.base_ratio))
    turbo = [(base + 1, m.max_ratio)] if m.max_ratio > m.base_ratio else []
    plain = [(int(m.mhz(ratio)), ratio)
             for ratio in range(m.base_ratio, m.min_ratio - 1, -1)]
    return [(mhz, _mw(m, ratio), ratio)
            for mhz, ratio in turbo + plain]


def _package(values: list[object]) -> str:
    return "Package () { " + ", ".join(str(value) for value in values) + " }"


def _processor(cpu: int) -> str:
    """Path of a CPU as the q35 machine's firmware names it."""
    return f"\\_SB.CPUS.C{cpu:03X}"


def _register(msr: int) -> str:
    return f"ResourceTemplate () {{ Register (FFixedHW, 64, 0, 0x{msr:08X}, 4) }}"


def _cpc(m: Machine) -> str:
    """Revision 3: capabilities as numbers, counters by register (ACPI 8.4.6.1).

    Highest, nominal, lowest nonlinear and lowest performance; the kernel wants
    to see a place for the desired one even where no driver writes it.
    """
    none = "ResourceTemplate () { Register (SystemMemory, 0, 0, 0, 0) }"
    perf = [m.cppc(ratio) for ratio in
            (m.max_ratio, m.base_ratio, m.pstate_ratios[-1], m.min_ratio)]
    values: list[object] = [23, 3, *perf, none, _register(0xC00102B3)]
    values += [none] * 5 + [_register(0xE7), _register(0xE8)] + [none] * 6
    values += [int(m.mhz(m.min_ratio)), int(m.mhz(m.base_ratio))]
    return "\n        Name (_CPC, " + _package(values) + ")"


#: ACPI 8.4.1.1, and what AMD parts say: HLT or MWAIT for C1, a port for the others.
_FIXED = "ResourceTemplate () { Register (FFixedHW, 2, 2, 0) }"


def _cst(m: Machine) -> str:
    """Idle states for the ACPI driver, where some are entered by port or listed."""
    if m.features.cst_hints:
        return _cst_by_hint(m)
    if not any(state.port for state in m.idle):
        return ""
    entries = []
    for number, state in enumerate(m.idle, 1):
        place = (f"ResourceTemplate () {{ Register (SystemIO, 8, 0, 0x{state.port:X}) }}"
                 if state.port else _FIXED)
        entries.append(_package([place, min(number, 3), round(state.exit_us),
                                 round(m.idle_w(state, m.base_ratio) * 1000)]))
    return "\n        Name (_CST, " + _package([len(entries), *entries]) + ")"


def _cst_entry(m: Machine, number: int, hint: int) -> str:
    """Entered by MWAIT (class 2 of vendor 1); type, latency and power (ACPI 8.4.1.1)."""
    state = next((s for s in m.idle if hint in s.hints), m.idle[0])
    register = f"ResourceTemplate () {{ Register (FFixedHW, 1, 2, 0x{hint:02X}, 1) }}"
    return _package([register, min(number, 3), max(1, round(state.exit_us)),
                     round(m.idle_w(state, m.base_ratio) * 1000)])


def _cst_by_hint(m: Machine) -> str:
    hints = m.features.cst_hints
    entries = [_cst_entry(m, number, hint) for number, hint in enumerate(hints, 1)]
    return "\n        Name (_CST, " + _package([len(hints), *entries]) + ")"


def _domain(m: Machine, cpu: int, cpus: int) -> str:
    """_PSD: the domain's number, who sets its P-state, and how many CPUs it has."""
    number = cpu // m.domain_cpus
    size = min(m.domain_cpus, cpus - number * m.domain_cpus)
    return _package([5, 0, number, COORDINATION[m.coordination], size])


def _cpu_objects(cpu: int, states: str, domain: str, more: str) -> str:
    return f"""
    Scope ({_processor(cpu)})
    {{
        Method (_PCT, 0, NotSerialized) {{ Return (\\VPCT) }}
        Method (_PSS, 0, NotSerialized) {{ Return (\\{states}) }}
        Name (_PPC, 0)
        Name (_PSD, Package () {{ {domain} }}){more}
    }}"""


def _pss(name: str, m: Machine) -> str:
    """The P-states of one kind of core."""
    told_us = m.transition.told_us
    states = ",\n        ".join(
        _package([mhz, mw, told_us, told_us,
                  f"0x{word:04X}", f"0x{word:04X}"])
        for mhz, mw, word in pstates(m))
    return f"""    Name (\\{name}, Package ({len(pstates(m))})
    {{
        {states}
    }})
"""


def source(m: Machine, cpus: int) -> str:
    """ASL of the table."""
    kinds = [(m, list(range(cpus)))] + [(m.of_class(kind), numbers)
                                        for kind, numbers in m.class_cpus(cpus)]
    kind_of = {cpu: index for index, (_, numbers) in enumerate(kinds)
               for cpu in numbers}
    externals = "\n    ".join(f"External ({_processor(cpu)}, ProcessorObj)"
                              for cpu in range(cpus))
    more = [(_cpc(kind) if m.pstate_ratios else "") + _cst(m) for kind, _ in kinds]
    scopes = "".join(_cpu_objects(cpu, f"VPS{kind_of[cpu]}", _domain(m, cpu, cpus),
                                  more[kind_of[cpu]])
                     for cpu in range(cpus))
    tables = "".join(_pss(f"VPS{index}", kind) for index, (kind, _) in enumerate(kinds))
    return f"""DefinitionBlock ("", "SSDT", 2, "VSILIC", "PSTATES", 1)
{{
    {externals}
    Name (\\VPCT, Package ()
    {{
        ResourceTemplate () {{ Register (FFixedHW, 0, 0, 0) }},
        ResourceTemplate () {{ Register (FFixedHW, 0, 0, 0) }}
    }})
{tables}{scopes}
}}
"""


def compile_table(asl: str, target: Path) -> None:
    """ASL to the binary table at `target`."""
    iasl = shutil.which("iasl")
    if not iasl:
        raise MissingError("iasl is not installed (package acpica-tools)")
    with tempfile.TemporaryDirectory() as scratch:
        text = Path(scratch, "ssdt.asl")
        text.write_text(asl, encoding="ascii")
        result = subprocess.run([iasl, "-p", str(target.with_suffix("")), str(text)],
                                capture_output=True, text=True, check=False)
    if result.returncode or not target.exists():
        last = [line for line in result.stdout.splitlines() if line.strip()][-5:]
        raise GuestError("iasl does not accept the P-state table", "\n".join(last))
