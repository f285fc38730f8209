# SPDX-License-Identifier: GPL-2.0
"""Register layouts against values seen on hardware and against the SDM.

Where a value is marked "seen", it is a register of a real machine as printed in
the example of turbostat's manual page (a 4-core Kaby Lake, 3.1 GHz base).
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from cpuwhy import turbo
from virtual_silicon.machine import amd, intel, machine, qapi
from virtual_silicon.machine.machine import Machine, Turbo

INTEL = [name for name in machine.names()
         if machine.load(name).vendor == "GenuineIntel"]


load = machine.load


def kaby_lake() -> Machine:
    """The machine of the manual page, as far as it says."""
    other = load("e3-1240-v5")
    turbo = Turbo(layout="bytes", cores=(1, 2, 3, 4), ratios=(42, 41, 40, 39))
    return replace(other, base_ratio=31, min_ratio=8, turbo=turbo,
                   power=replace(other.power, tdp_w=45))


def little(*values: int) -> int:
    """A register by its bytes, the lowest first."""
    return int.from_bytes(bytes(values), "little")


@pytest.mark.parametrize("register,value", [
    (0x1AD, 0x2728292A), (0x606, 0x000A0E03), (0x614, 0x168), (0x1A2, 0x00640000),
    *zip(range(0x648, 0x64D), (0x1F, 0, 0, 0x80000000, 0))])	# configurable TDP
def test_register_as_seen(register: int, value: int) -> None:
    assert intel.msrs(kaby_lake())[register] == value


#: By machine and register; None: there is no such register.
REGISTERS: list[tuple[str, int, int | None]] = [
    # Skylake-SP layout: ratios in 0x1AD, core counts in 0x1AE, first group lowest
    ("sapphire-rapids", 0x1AD, little(38, 38, 36, 34, 32, 31, 30, 30)),
    ("sapphire-rapids", 0x1AE, little(2, 4, 8, 12, 16, 24, 32, 56)),
    ("sapphire-rapids", 0x1AF, None),
    # below 2 the kernel's idle table takes C6 for core C6 only
    ("sapphire-rapids", 0xE2, 0x8002),
    # a byte per core: twenty, twelve and four
    ("e5-2698-v4", 0x1AD, 0x1D1E1F2021222424), ("e5-2698-v4", 0x1AE, little(28, *[27] * 7)),
    ("e5-2698-v4", 0x1AF, little(*[27] * 4)),
    ("e5-2670-v3", 0x1AD, 0x1A1A1A1B1C1D1F1F), ("e5-2670-v3", 0x1AE, 0x1A1A1A1A),
    ("e5-2670-v3", 0x1AF, 0),
    ("e3-1240-v5", 0x1AD, 0x25262727), ("e3-1240-v5", 0x1AE, 0),
    # 2 cores at 16, then 31 more one less, 31 more and 4 more at the same
    ("xeon-phi-7250", 0x1AD, little(2 << 1, 16, 1 << 5 | 31, 31, 4)),
    ("xeon-phi-7250", 0x1AE, None),
    ("celeron-j1900", 0x66A, 24 << 16 | 16 << 8 | 16), ("celeron-j1900", 0x66C, 0x1D1D1D1D),
    ("celeron-j1900", 0xCD, 0), ("celeron-j1900", 0x1AD, None),
    # groups of few cores; those not in use are zero
    ("pentium-n4200", 0x1AD, 0x17181819), ("pentium-n4200", 0x1AE, 0x04030201),
]


@pytest.mark.parametrize("name,register,value", REGISTERS)
def test_register(name: str, register: int, value: int | None) -> None:
    assert intel.msrs(load(name)).get(register) == value


def test_platform_info_fields_as_seen() -> None:
    """Base, efficiency and lowest ratio; the other bits are features."""
    mask = 0xFF << 8 | 0xFF << 40 | 0xFF << 48
    seen = 0x0008_0838_F101_1F00
    assert intel.msrs(kaby_lake())[0xCE] == seen & mask


def test_power_limit_fields_as_seen() -> None:
    """45 W TDP: limit 1 of 65 W was set there; ours is TDP, same fields.

    Seen: 0x42820800218208 = 65 W enabled, 28 s... the time field of limit 1 is
    bits 23:17 = 0x10, 2^16 * (1 + 0/4) / 1024 = 64 s.
    """
    seen_window = 0x0042_8208_0021_8208 >> 17 & 0x7F
    assert intel.rapl_time_window(64) == seen_window
    limit = intel.msrs(kaby_lake())[0x610]
    assert limit & 0x7FFF == 45 * 8
    assert limit >> 15 & 1 and limit >> 47 & 1 and limit >> 63 & 1
    assert (limit >> 32) & 0x7FFF == 54 * 8


@pytest.mark.parametrize("seconds,register", [
    (1 / 1024, 0b00_00000), (1, 0b00_01010), (1.25, 0b01_01010), (1.5, 0b10_01010),
    (1.75, 0b11_01010), (28, 0b11_01110)])
def test_time_window(seconds: float, register: int) -> None:
    """SDM: 2^Y * (1 + Z/4) units of 1/1024 s, Z above Y; 28 s = 1.75 * 2^4 s."""
    assert intel.rapl_time_window(seconds) == register


@pytest.mark.parametrize("name,edx", [
    ("sapphire-rapids", 0x2020), ("e5-2698-v4", 0x2120), ("e5-2670-v3", 0x2120),
    ("e3-1240-v5", 0x142120)])
def test_mwait_substates(name: str, edx: int) -> None:
    assert intel.leaf_5(load(name)) == (64, 64, 3, edx)


@pytest.mark.parametrize("name,mhz", [
    ("sapphire-rapids", 2000), ("e5-2698-v4", 2200), ("e5-2670-v3", 2300),
    ("e3-1240-v5", 3500)])
def test_tsc_leaf(name: str, mhz: int) -> None:
    eax, ebx, ecx, _ = intel.leaf_15(load(name))
    assert ecx == 10**9 and ecx * ebx // eax == mhz * 10**6 and ecx * ebx % eax == 0


def test_frequency_leaf() -> None:
    assert intel.leaf_16(load("e5-2698-v4")) == (2200, 3600, 100, 0)


def test_feature_bits() -> None:
    """SDM vol. 2: 6.EAX turbo 1, ARAT 2, HWP 7; 6.ECX APERF/MPERF 0, EPB 3."""
    eax, _, ecx, _ = intel.leaf_6(load("e3-1240-v5"))
    assert eax & 1 << 7 == 0
    assert (eax, ecx) == (0b110, 0b1001)
    bits = intel.cpuid_set(load("sapphire-rapids"))
    assert bits[1, None][2] == 1 << 3 | 1 << 7		# MONITOR, EST
    assert bits[0x80000007, None][3] == 1 << 8		# invariant TSC
    assert bits[7, 0][2] == 1 << 5			# WAITPKG


@pytest.mark.parametrize("name", ["e5-2698-v4", "e5-2670-v3", "e3-1240-v5"])
def test_waitpkg_only_where_the_part_has_it(name: str) -> None:
    assert (7, 0) not in intel.cpuid_set(load(name))
    assert intel.cpuid_clear(load(name))[7, 0][2] == 1 << 5


def test_no_register_is_both_constant_and_writable() -> None:
    for name in INTEL:
        m = load(name)
        own = {state.residency_msr for state in m.idle} | {0x611, 0x619, 0x639}
        assert not set(intel.msrs(m)) & set(intel.msrs_rw(m))
        assert not set(intel.msrs(m)) & own


def test_energy_unit_of_silvermont() -> None:
    """2^5 uJ, which the emulator counts in."""
    assert intel.msrs(load("celeron-j1900"))[0x606] >> 8 & 0x1F == 5
    assert qapi.machine(load("celeron-j1900"))["power"]["energy-unit-uj"] == 1 << 5


def test_amd_pstates() -> None:
    """PPR: 200 MHz * FID / DID, 9.0 and 8.0 for 90 and 80 eighths; VID 7 bits on."""
    msrs = amd.msrs(load("epyc-7742"))
    for number, mhz in enumerate((2250, 2000, 1500)):
        value = msrs[0xC0010064 + number]
        assert value >> 63 == 1
        assert 200 * (value & 0xFF) / (value >> 8 & 0x3F) == mhz
    assert msrs[0xC0010067] == msrs[0xC001006B] == 0
    volts = [1.55 - 0.00625 * (msrs[0xC0010064 + n] >> 14 & 0xFF) for n in range(3)]
    assert volts == sorted(volts, reverse=True) and 0.7 < volts[2] < volts[0] < 1.3


def test_value_too_wide_for_its_field() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        intel.field(256, 8)


@pytest.mark.parametrize("name", INTEL)
def test_turbo_decodes_to_what_was_encoded(name: str) -> None:
    m = load(name)
    registers = intel.msrs(m)
    if m.turbo.registers:
        numbers = turbo.registers(m.turbo.layout)
        assert [registers[number] for number in numbers[:len(m.turbo.registers)]] == \
            list(m.turbo.registers)
        return
    decoded = dict(turbo.decode(m.turbo.layout, registers))
    assert all(m.turbo.limit(cores) == ratio for cores, ratio in decoded.items())
    assert max(decoded) == m.cores


@pytest.mark.parametrize("name", machine.names())
def test_emulator_gets_one_power_per_ratio(name: str) -> None:
    m = load(name)
    powers = qapi.machine(m)["power"]["active-uw"]
    assert len(powers) == m.max_ratio - m.min_ratio + 1
    assert qapi.option(m, 2) == qapi.option(machine.load(name), 2)


def test_emulator_units() -> None:
    given = qapi.machine(load("sapphire-rapids"))
    c1, _, c6 = given["idle"]
    assert c6["rest"]["exit"][-1] == {
        "ppm": 999_900, "ns": 190_000, "timer-ns": 125_000}
    assert c6["residency-msr"] == 0x3FD
    assert c1["active"] is True
    assert given["power"]["uncore-uw"][-1] == 110_000_000
    assert given["power"]["dram-unit-nj"] == 61035
    assert qapi.machine(load("e5-2698-v4"))["power"]["dram-unit-nj"] == 15300
    assert "cores-msr" not in given["power"]
    assert given["transition"] == {
        "per-core": True, "long-above-ratio": 18, "period-ns": 1_160_000,
        "long-period-ns": 1_625_000, "long-after-ns": 2_000_000, "up-ns": 20_000,
        "down-ns": 20_000, "halt-ns": 0, "return-within-ns": 0, "return-above-ratio": 0,
        "return-up-ns": 0, "return-down-ns": 0}
