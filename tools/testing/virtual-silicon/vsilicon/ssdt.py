# SPDX-License-Identifier: GPL-2.0
"""ACPI table with the P-states, for acpi-cpufreq and for _PPC limits.

One object set per CPU that is there: the kernel rejects the table if it names
one too many.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from .errors import GuestError, MissingError
from .machine import Machine

TRANSITION_US = 10	# assumed; the model itself switches at once
COORDINATION_HW_ALL = 0xFE


def pstates(m: Machine) -> list[tuple[int, int, int]]:
    """(MHz, mW, control word), fastest first; AMD parts have numbers there."""
    if m.pstate_ratios:
        return [(int(m.mhz(ratio)), round(m.active_w(ratio) * 1000), number)
                for number, ratio in enumerate(m.pstate_ratios)]
    return [(mhz, mw, ratio << 8) for mhz, mw, ratio in ratio_states(m)]


def ratio_states(m: Machine) -> list[tuple[int, int, int]]:
    """(MHz, mW, ratio), fastest first.

    Firmware lists turbo as base + 1 MHz with the highest ratio in the control
    word; then each ratio from base down.
    """
    base = int(m.mhz(m.base_ratio))
    turbo = [(base + 1, m.max_ratio)] if m.max_ratio > m.base_ratio else []
    plain = [(int(m.mhz(ratio)), ratio)
             for ratio in range(m.base_ratio, m.min_ratio - 1, -1)]
    return [(mhz, round(m.active_w(ratio) * 1000), ratio)
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


def _cpu_objects(cpu: int, more: str) -> str:
    domain = _package([5, 0, cpu, COORDINATION_HW_ALL, 1])
    return f"""
    Scope ({_processor(cpu)})
    {{
        Method (_PCT, 0, NotSerialized) {{ Return (\\VPCT) }}
        Method (_PSS, 0, NotSerialized) {{ Return (\\VPSS) }}
        Name (_PPC, 0)
        Name (_PSD, Package () {{ {domain} }}){more}
    }}"""


def source(m: Machine, cpus: int) -> str:
    """ASL of the table."""
    states = ",\n        ".join(
        _package([mhz, mw, TRANSITION_US, TRANSITION_US,
                  f"0x{word:04X}", f"0x{word:04X}"])
        for mhz, mw, word in pstates(m))
    externals = "\n    ".join(f"External ({_processor(cpu)}, ProcessorObj)"
                              for cpu in range(cpus))
    more = _cpc(m) if m.pstate_ratios else ""
    scopes = "".join(_cpu_objects(cpu, more) for cpu in range(cpus))
    count = len(pstates(m))
    return f"""DefinitionBlock ("", "SSDT", 2, "VSILIC", "PSTATES", 1)
{{
    {externals}
    Name (\\VPCT, Package ()
    {{
        ResourceTemplate () {{ Register (FFixedHW, 0, 0, 0) }},
        ResourceTemplate () {{ Register (FFixedHW, 0, 0, 0) }}
    }})
    Name (\\VPSS, Package ({count})
    {{
        {states}
    }}){scopes}
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
        raise GuestError("iasl does not accept the P-state table", last)
