# SPDX-License-Identifier: GPL-2.0
"""From a dump to a machine file: every machine here there and back."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest
from cpuwhy import texts
from parts import PARTS
from virtual_silicon import paths
from virtual_silicon.errors import UsageError
from virtual_silicon.guest.boot import Result
from virtual_silicon.machine import amd, convert, intel, machine
from virtual_silicon.machine.machine import Machine

#: Those that are one kind of core and not another machine's variant in a thing
#: that no register tells (limits, package states, bias).
PLAIN = [name for name in machine.names() if not machine.load(name).classes]


def _signature(m: Machine) -> int:
    family = min(m.family, 15)
    return ((m.family - family) << 20 | (m.model >> 4) << 16 | family << 8
            | (m.model & 0xF) << 4 | m.stepping)


def _cpuid(m: Machine) -> str:
    by = amd if m.vendor == "AuthenticAMD" else intel
    ebx, edx, ecx = struct.unpack("<III", m.vendor.encode())
    leaves = {(0, 0): (0, ebx, ecx, edx), (1, 0): (_signature(m), 0, 0, 0)}
    for source in (by.cpuid_set(m), by.cpuid(m)):
        for (leaf, sub), words in source.items():
            leaves.setdefault((leaf, sub or 0), words)
    return "".join(f"   {leaf:#010x} {sub:#04x}: eax={a:#010x} ebx={b:#010x} ecx={c:#010x} "
                   f"edx={d:#010x}\n" for (leaf, sub), (a, b, c, d) in leaves.items())


def dumped(m: Machine) -> str:
    """What the documented commands would print on this machine."""
    by = amd if m.vendor == "AuthenticAMD" else intel
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
    return read_back([("dump", text)])


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
    assert intel.mwait_edx(back) == intel.mwait_edx(m)


@pytest.mark.parametrize("name", [name for name in PLAIN
                                  if machine.load(name).vendor == "GenuineIntel"])
def test_registers_are_those_of_the_dump(name: str) -> None:
    """The base clock, the turbo table, units and TDP: the guest reads the same."""
    m = machine.load(name)
    before, after = intel.msrs(m), intel.msrs(convert_text(dumped(m)))
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
    text = convert.machine_file(texts.read_text(dumped(machine.load("e3-1240-v5")), "dump"))
    assert all("\t# " in line for line in text.splitlines() if " = " in line)
    assert "assumed" in text


def test_what_follows_is_left_out() -> None:
    """What the schema puts in by itself, for a part that has all of it."""
    text = convert.machine_file(texts.read_text(dumped(machine.load("sapphire-rapids-hwp"))))
    written = {line.split(" = ")[0] for line in text.splitlines() if " = " in line}
    assert {"waitpkg", "efficient_ratio", "exit_us", "tdp_w", "registers"} <= written
    assert not written & {"uncore_w", "leakage_w", "entry_us", "residency_msr", "active",
                          "voltage", "dynamic_permille", "layout", "present", "c01_exit_cycles"}


@pytest.mark.boots("stock-sapphire-rapids")
def test_what_stock_tools_print_in_a_guest(result: Result) -> None:
    """turbostat's header, registers and cpuidle of the emulated part."""
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
        convert.machine_file(texts.read_text(text, "dump"))
    assert reason in str(error.value)


def aida(m: Machine) -> str:
    """As AIDA64 writes it, with two CPUs of one core each."""
    big = {0x1A: (0x40000001, 0, 0, 0), 1: (_signature(m), 0, 0, 0)}
    ebx, edx, ecx = struct.unpack("<III", m.vendor.encode())
    leaves = {0: (0, ebx, ecx, edx)} | big
    registers = intel.msrs(m) | {0x650: 0x2727}
    text = f"------[ CPU Info ]------\n\nCPU TDP                    : {m.power.tdp_w:g} W\n"
    for cpu in range(2):
        text += (f"------[ CPUID Registers / Logical CPU #{cpu} ]------\n\n"
                 f"allcpu: Package 0 / Core {cpu} / Thread 0: Valid\n")
        small = {0x1A: (0x20000001, 0, 0, 0)} if cpu and m.classes else {}
        for leaf, words in (leaves | small).items():
            text += f"CPUID {leaf:08X}: " + "-".join(f"{word:08X}" for word in words) + "\n"
    for cpu in range(2):
        text += f"------[ MSR Registers / Logical CPU #{cpu} ]------\n\n"
        for number, value in registers.items():
            digits = f"{value:016X}"
            text += (f"MSR {number:08X}: " + "-".join(
                digits[i:i + 4] for i in range(0, 16, 4)) + " [S200]\n")
        text += "MSR 00000300: < FAILED >\n"
    return text


def pepc(m: Machine) -> list[tuple[str, str]]:
    """msr.txt, /proc/cpuinfo and sysfs as in intel/pepc's data, with two CPUs."""
    registers = "# MSR data\n" + "".join(
        f"{number:x}:0|{value:x} 1|{value:x}\n" for number, value in intel.msrs(m).items())
    cpus = "".join(
        f"processor\t: {cpu}\nvendor_id\t: {m.vendor}\ncpu family\t: {m.family}\n"
        f"model\t\t: {m.model}\nmodel name\t: {m.title}\nstepping\t: {m.stepping}\n"
        f"microcode\t: {m.microcode:#x}\nphysical id\t: 0\ncore id\t\t: {cpu}\n\n"
        for cpu in range(2))
    base = "rw|/sys/devices/system/cpu/cpu0/cpuidle/state"
    idle = "".join(
        f"{base}{n}/name|{s.name}\n{base}{n}/desc|MWAIT {s.hints[0]:#04x}\n"
        f"{base}{n}/latency|{s.exit_us:g}\n{base}{n}/residency|{s.residency_us:g}\n"
        for n, s in enumerate(m.idle, 1))
    return [("msr.txt", registers), ("cpuinfo", cpus), ("sys", idle)]


def read_back(files: list[tuple[str, str]]) -> Machine:
    material = texts.read_texts(files)
    return machine.parse(convert.machine_file(material), Path("converted.toml"))


def test_aida64() -> None:
    m = machine.load("e3-1240-v5")
    back = read_back([("dump.txt", aida(m))])
    assert (back.model, back.cores, back.threads, back.power.tdp_w) == (m.model, 2, 1, 80)
    assert [back.turbo.limit(n) for n in (1, 2)] == [m.turbo.limit(n) for n in (1, 2)]
    assert back.idle == m.idle	# not in such a dump: those of the model


def test_kinds_of_cores_by_aida64() -> None:
    back = read_back([("dump.txt", aida(machine.load("core-i9-12900k")))])
    assert back.cores == 2
    assert [(kind.cores, kind.max_ratio, kind.core_type) for kind in back.classes] == \
        [(1, 0x27, 0x20)]


def test_pepc() -> None:
    m = machine.load("e3-1240-v5")
    back = read_back(pepc(m))
    assert (back.model, back.microcode, back.cores) == (m.model, m.microcode, 2)
    assert [(s.name, s.exit_us, s.residency_us) for s in back.idle] == \
        [(s.name, s.exit_us, s.residency_us) for s in m.idle]


def line_of(text: str, start: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if line.startswith(start))


#: a dump that ends before this (and so much of it), the line to be named, the reason
CUT = [
    ("MSR 000001AD: ", 10, "MSR 000001AD", "the line of a register is cut off"),
    ("CPUID 0000001A: ", 22, "CPUID 0000001A", "the line of a CPUID leaf is cut off"),
    ("------[ MSR Registers / Logical CPU #1", 0, "MSR 00000300",
     "the dump of 2 CPUs, with registers of 1, is cut off"),
    ("------[ MSR Registers / Logical CPU #0", 0, "CPUID 00000001",
     "lacks register 0xce"),
]


@pytest.mark.parametrize("start,more,at,reason", CUT, ids=[reason for *_, reason in CUT])
def test_dump_that_is_cut_off(start: str, more: int, at: str, reason: str) -> None:
    whole = aida(machine.load("e3-1240-v5"))
    text = whole[:whole.index(start) + len(start) * bool(more) + more]
    last = max(n for n, line in enumerate(text.splitlines(), 1) if line)
    assert text.splitlines()[last - 1].startswith(at)
    with pytest.raises(UsageError) as error:
        read_back([("dump.txt", text)])
    assert str(error.value).startswith(f"dump.txt:{last}: ") and reason in str(error.value)


def test_list_of_registers_that_is_cut_off() -> None:
    """In the middle of a value, which is as good a value as the whole."""
    (name, registers), *others = pepc(machine.load("e3-1240-v5"))
    last = len(registers.splitlines())
    with pytest.raises(UsageError, match=f"msr.txt:{last}: the line of a register is cut off"):
        read_back([(name, registers[:-2]), *others])


#: register, its wrong value, and the reason; the part has base 20 and 2 to 56 cores
CONTRADICTIONS = [
    (0x1AD, 0x1E1E1E1F20221326, "ratio 19 with 4 cores is below the base ratio 20"),
    (0x1AD, 0x1E1E1F2022242726, "ratio 39 with 4 cores, but 38 with 2: ratios must not rise"),
    (0x1AE, 0x382018100C020402, "2 cores after 4: counts must not fall"),
    (0x1AD, 0, "the turbo registers are empty"),
    (0xCE, 0x21 << 40 | 20 << 8, "the lowest ratio, 33, is not within 1 and the base ratio, 20"),
    (0xCE, 8 << 40, "the lowest ratio, 8, is not within 1 and the base ratio, 0"),
]


@pytest.mark.parametrize("register,value,reason", CONTRADICTIONS)
def test_registers_that_contradict_each_other(register: int, value: int, reason: str,
                                              tmp_path: Path) -> None:
    lines = [f"{register:#x} {value:#x}" if line.startswith(f"{register:#x} ") else line
             for line in dumped(machine.load("sapphire-rapids")).splitlines()]
    text = "\n".join(lines) + "\n"
    with pytest.raises(UsageError) as error:
        convert_text(text)
    table = 0x1AD if register == 0x1AE else register	# the first of those that disagree
    assert str(error.value) == f"dump:{line_of(text, f'{table:#x} ')}: " + (
        f"turbo: {reason}" if register != 0xCE and value else reason)

    source, target = tmp_path / "dump", tmp_path / "made.toml"
    source.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "virtual_silicon", "convert", source, "-o", target],
        cwd=paths.SILICON, capture_output=True, text=True)
    assert (done.returncode, target.exists()) == (2, False)
    assert reason in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("eax", [0x000106F0, 0x00600F12])
def test_unknown_part(eax: int) -> None:
    """An Intel model that nobody knows; an AMD family before Zen."""
    m = machine.load("e3-1240-v5" if eax & 0xF00 == 0x600 else "epyc-7742")
    text = dumped(m).replace(f"eax={_signature(m):#010x}", f"eax={eax:#010x}")
    at = line_of(text, "   0x00000001")
    with pytest.raises(UsageError, match=f"dump:{at}: {m.vendor} family .* is unknown; known "):
        convert_text(text)


@pytest.mark.parametrize("name", [name for name, part in PARTS.items()
                                  if part.registers])
def test_guest_reads_the_registers_of_the_part(name: str) -> None:
    """As recorded, not as encoded from what was decoded from them."""
    registers = intel.msrs(machine.load(name))
    for number, value in PARTS[name].registers.items():
        assert registers[number] == value, hex(number)
