# SPDX-License-Identifier: GPL-2.0
"""From a dump to a machine file: every machine here there and back."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from guests import Guests
from virtual_silicon import amd, convert, dump, encode, machine
from virtual_silicon.errors import UsageError
from virtual_silicon.machine import Machine

#: Those that are one kind of core and not another machine's variant in a thing
#: that no register tells (limits, package states, bias).
PLAIN = [name for name in machine.names() if not machine.load(name).classes]


def _signature(m: Machine) -> int:
    family = min(m.family, 15)
    return ((m.family - family) << 20 | (m.model >> 4) << 16 | family << 8
            | (m.model & 0xF) << 4 | m.stepping)


def _cpuid(m: Machine) -> str:
    by = amd if m.vendor == "AuthenticAMD" else encode
    ebx, edx, ecx = struct.unpack("<III", m.vendor.encode())
    leaves = {(0, 0): (0, ebx, ecx, edx), (1, 0): (_signature(m), 0, 0, 0)}
    for source in (by.cpuid_set(m), by.cpuid(m)):
        for (leaf, sub), words in source.items():
            leaves.setdefault((leaf, sub or 0), words)
    return "".join(f"   {leaf:#010x} {sub:#04x}: eax={a:#010x} ebx={b:#010x} ecx={c:#010x} "
                   f"edx={d:#010x}\n" for (leaf, sub), (a, b, c, d) in leaves.items())


def dumped(m: Machine) -> str:
    """What the documented commands would print on this machine."""
    by = amd if m.vendor == "AuthenticAMD" else encode
    registers = by.msrs(m) | {msr: value for msr, (value, _) in by.msrs_rw(m).items()}
    if m.hwp.present:
        registers[0x771] = m.max_ratio | m.base_ratio << 8 | m.hwp.efficient_ratio << 16
    text = _cpuid(m) + "".join(f"{msr:#x} {value:#x}\n" for msr, value in registers.items())
    text += (f"Model name:          {m.title}\nThread(s) per core:  {m.threads}\n"
             f"Core(s) per socket:  {m.cores}\nSocket(s):           {m.packages}\n")
    for number, state in enumerate(m.idle, 1):
        base = f"/sys/devices/system/cpu/cpu0/cpuidle/state{number}/"
        desc = (f"ACPI IOPORT {state.port:#x}" if state.port
                else f"MWAIT {state.hints[0]:#04x}")
        text += (f"{base}name:{state.name}\n{base}desc:{desc}\n"
                 f"{base}latency:{state.exit_us:g}\n{base}residency:{state.residency_us:g}\n")
    return text


def convert_text(text: str) -> Machine:
    return machine.parse(convert.machine_file(dump.read([("dump", text)])), Path("converted.toml"))


@pytest.mark.parametrize("name", PLAIN)
def test_there_and_back(name: str) -> None:
    m = machine.load(name)
    back = convert_text(dumped(m))
    for key in ("title", "vendor", "family", "model", "stepping", "packages", "cores",
                "threads", "bus_khz", "base_ratio"):
        assert getattr(back, key) == getattr(m, key), key
    assert back.turbo.layout == m.turbo.layout
    assert back.features.waitpkg == m.features.waitpkg
    assert back.hwp.present == m.hwp.present
    assert [(s.name, s.port, s.exit_us, s.residency_us) for s in back.idle] == \
        [(s.name, s.port, s.exit_us, s.residency_us) for s in m.idle]
    assert encode.mwait_edx(back) == encode.mwait_edx(m)


@pytest.mark.parametrize("name", [name for name in PLAIN
                                  if machine.load(name).vendor == "GenuineIntel"])
def test_registers_are_those_of_the_dump(name: str) -> None:
    """The base clock, the turbo table, units and TDP: the guest reads the same."""
    m = machine.load(name)
    before, after = encode.msrs(m), encode.msrs(convert_text(dumped(m)))
    for msr in (0xCE, 0xE2, 0x1A2, 0x1AD, 0x1AE, 0x1AF, 0x66A, 0x66C, 0x606, 0x614):
        assert after.get(msr) == before.get(msr), hex(msr)
    back = convert_text(dumped(m))
    assert [back.turbo.limit(n) for n in range(1, m.cores + 1)] == \
        [m.turbo.limit(n) for n in range(1, m.cores + 1)]


def test_amd_there_and_back() -> None:
    """P-states by register; the highest clock from CPPC, to its last digit."""
    m = machine.load("epyc-7763")
    back = convert_text(dumped(m))
    assert tuple(back.pstate_ratios) == tuple(m.pstate_ratios)
    assert back.max_ratio == pytest.approx(m.max_ratio, abs=1)
    assert back.min_ratio == pytest.approx(m.min_ratio, abs=1)
    assert amd.msrs(back)[amd.CPPC_CAP1] >> 24 == 255


def test_every_line_says_where_it_is_from() -> None:
    text = convert.machine_file(dump.read([("dump", dumped(machine.load("e3-1240-v5")))]))
    assert all("\t# " in line for line in text.splitlines() if " = " in line)
    assert "uncore_w" in text and "assumed" in text


@pytest.mark.boots("witness-sapphire-rapids")
def test_what_stock_tools_print_in_a_guest(guests: Guests) -> None:
    """turbostat's header, registers and cpuidle of the emulated part."""
    result = guests.get("witness-sapphire-rapids")
    m = machine.load("sapphire-rapids")
    back = convert_text("\n".join(
        result.text(step) for step in ("header", "registers", "cpuidle")) +
        f"\nSocket(s): 1\nCore(s) per socket: {m.cores}\nModel name: {m.title}\n")
    assert (back.vendor, back.family, back.model, back.stepping, back.microcode) == \
        (m.vendor, m.family, m.model, m.stepping, m.microcode)
    assert (back.base_ratio, back.min_ratio) == (m.base_ratio, m.min_ratio)
    assert [back.turbo.limit(n) for n in range(1, 57)] == \
        [m.turbo.limit(n) for n in range(1, 57)]
    assert [(s.name, s.hints[0], s.exit_us, s.residency_us) for s in back.idle] == \
        [(s.name, s.hints[0], s.exit_us, s.residency_us) for s in m.idle]
    assert back.power.tdp_w == m.power.tdp_w


#: lines to leave out, and what must be said of it
LACKING = [
    ("0xce ", "lacks register 0xce"), ("0x1ad ", "lacks register 0x1ad"),
    ("Core(s)", "lacks the number of cores"), ("Socket(s)", "lacks the number of cores"),
    ("   0x0000000", "lacks vendor and model"),
]


@pytest.mark.parametrize("start,reason", LACKING)
def test_what_is_lacking_is_named(start: str, reason: str) -> None:
    lines = dumped(machine.load("sapphire-rapids")).splitlines()
    text = "\n".join(line for line in lines if not line.startswith(start)) + "\n"
    with pytest.raises(UsageError) as error:
        convert.machine_file(dump.read([("dump", text)]))
    assert reason in str(error.value)
