# SPDX-License-Identifier: GPL-2.0
"""P-states chosen by hardware, power and thermal limits, package idle states."""

from __future__ import annotations

import statistics

import pytest
from guests import Guests, each, window
from scenarios import BIAS_MARKS, POWER_LIMIT_W, PREFERENCE_MARKS, ROUND_TRIPS
from virtual_silicon.guest.boot import Result
from virtual_silicon.machine import intel, machine
from virtual_silicon.readers import sysfs, trace, turbostat

MACHINE = "sapphire-rapids-hwp"


@pytest.fixture(params=each(("hwp-active", "hwp-passive")))
def either(request: pytest.FixtureRequest, guests: Guests) -> Result:
    return guests.get(request.param)


def cpufreq(result: Result, key: str) -> str:
    return sysfs.pairs(result.text("cpufreq"))[
        f"/sys/devices/system/cpu/cpu1/cpufreq/{key}"]


def test_capabilities_and_enable(either: Result) -> None:
    """SDM vol. 3, 15.4.3: highest 7:0, guaranteed 15:8, efficient 23:16, lowest 31:24."""
    seen = sysfs.msr_values(either.text("registers"))
    assert seen[0x770] == 1
    assert seen[0x771] == 38 | 20 << 8 | 8 << 16 | 8 << 24


def test_feature_bits() -> None:
    """SDM vol. 2, CPUID 6.EAX: HWP 7, its energy preference 10."""
    with_hwp = intel.leaf_6(machine.load(MACHINE))[0]
    without = intel.leaf_6(machine.load("sapphire-rapids"))[0]
    assert with_hwp ^ without == 1 << 7 | 1 << 10


@pytest.mark.boots("hwp-active")
def test_driver_uses_what_the_hardware_offers(result: Result) -> None:
    assert cpufreq(result, "scaling_driver") == "intel_pstate"
    assert "balance_performance" in \
        cpufreq(result, "energy_performance_available_preferences")
    assert {"hwp", "hwp_epp"} <= set(result.text("cpuinfo").split())


@pytest.mark.boots("hwp-active")
def test_capabilities_cannot_be_written(result: Result) -> None:
    assert result.text("constant") == "0x771 fault"


@pytest.mark.boots("hwp-active")
@pytest.mark.parametrize("preference", PREFERENCE_MARKS)
def test_preference_reaches_the_register(result: Result, preference: int) -> None:
    """Bits 31:24; desired performance, 23:16, is 0: the hardware chooses."""
    seen = sysfs.msr_values(result.text(f"preference-{preference}"))[0x774]
    assert seen is not None and seen >> 16 & 0xFFFF == preference << 8


@pytest.mark.boots("hwp-active")
def test_saving_energy_lowers_the_clock_under_the_same_work(result: Result) -> None:
    seen = [window(result, mark).cpus[1] for mark in PREFERENCE_MARKS.values()]
    clocks = [cpu.mhz for cpu in seen]
    assert clocks[0] > 1.2 * clocks[1] and clocks[1] > 1.15 * clocks[2]
    assert [cpu.busy for cpu in seen] == sorted(cpu.busy for cpu in seen)
    units = [sysfs.work(result.text(f"preference-{p}"))[1].units
             for p in PREFERENCE_MARKS]
    assert len(set(units)) == 1		# all of it was done at each


@pytest.mark.boots("hwp-active")
def test_rule_of_the_hardware(result: Result) -> None:
    """As stated: busy for 50 % of the time at preference 0, 95 % at 255."""
    share = {p: window(result, mark).cpus[1].busy for p, mark in PREFERENCE_MARKS.items()}
    assert share[0] == pytest.approx(0.50, abs=0.1)
    assert share[128] == pytest.approx(0.73, abs=0.1)
    assert share[255] == pytest.approx(0.95, abs=0.1)


@pytest.mark.boots("hwp-active")
def test_no_turbo_limits_the_hardware_too(result: Result) -> None:
    assert window(result, 30).cpus[1].mhz > 3000
    assert 1600 < window(result, 32).cpus[1].mhz <= 2000.1


@pytest.mark.boots("hwp-passive")
def test_governors_set_the_clock(result: Result) -> None:
    assert cpufreq(result, "scaling_driver") == "intel_cpufreq"
    assert window(result, 40).cpus[1].mhz == pytest.approx(800, rel=0.01)
    assert window(result, 42).cpus[1].mhz == pytest.approx(3800, rel=0.01)


@pytest.mark.boots("hwp-passive")
def test_package_state_is_what_turbostat_reads_and_energy_shows(result: Result) -> None:
    """Energy beyond the cores' tells how long the package slept."""
    seen, table = window(result, 44), turbostat.table(result.text("asleep"))
    m = machine.load(MACHINE)
    ratio = round(max(cpu.mhz for cpu in seen.cpus.values()) / 100)
    asleep_w, awake_w = m.package_w(m.package[0]), m.uncore_w(ratio)
    awake = ((seen.package_j - seen.cores_j) / seen.seconds - asleep_w) / (awake_w - asleep_w)
    asleep_s = (1 - awake) * seen.seconds
    assert asleep_s > 0.9 * seen.seconds
    # turbostat's window is some ms longer, and no CPU sleeps in all of them
    around = table.seconds - seen.seconds
    read_s = table.summary["Pkg%pc6"] / 100 * table.seconds
    assert -0.001 <= read_s - asleep_s <= around + 0.001
    assert table.summary["Pkg%pc2"] == 0


@pytest.mark.boots("hwp-passive")
def test_power_settles_at_the_limit(result: Result) -> None:
    limited, free = window(result, 46), window(result, 48)
    assert result.text("limit").splitlines()[0] == f"{POWER_LIMIT_W}000000"
    assert free.package_j / free.seconds > 1.1 * POWER_LIMIT_W
    assert limited.package_j / limited.seconds == pytest.approx(POWER_LIMIT_W, rel=0.05)
    for cpu in limited.cpus.values():
        assert cpu.busy > 0.95 and 2000 < cpu.mhz < 3300


@pytest.mark.boots("hwp-passive")
def test_clock_returns_when_the_limit_is_lifted(result: Result) -> None:
    for cpu in window(result, 48).cpus.values():
        assert cpu.mhz == pytest.approx(3800, rel=0.01)


@pytest.mark.boots("hwp-passive")
def test_temperature_rises_under_load(result: Result) -> None:
    """SDM vol. 3, 15.8.5: degrees below the limit in bits 22:16."""
    below = {}
    for step in ("cool", "warm"):
        value = sysfs.msr_values(result.text(step))[0x1B1]
        assert value is not None and value & 1 << 31
        below[step] = value >> 16 & 0x7F
    assert 40 < below["warm"] < below["cool"] <= 98 - 35


KNOBS = pytest.mark.boots("knobs")


@KNOBS
@pytest.mark.parametrize("bias,share", [(0, 0.50), (8, 0.74), (15, 0.95)])
def test_bias_stands_in_for_the_preference(result: Result, bias: int, share: float) -> None:
    """SDM vol. 3, 15.4.4: with CPUID.6.EAX[10] clear, 0x1B0 is the hardware's guide."""
    assert sysfs.msr_values(result.text(f"bias-{bias}"))[0x1B0] == bias
    assert window(result, BIAS_MARKS[bias]).cpus[1].busy == pytest.approx(share, abs=0.1)


@KNOBS
def test_pause_takes_its_cycles(result: Result) -> None:
    """800 cycles in the machine file; next to them a PAUSE and its loop, 3 of 8 each.

    Some 4 % are lost: a PAUSE in which a stretch of virtual time ends is cut short."""
    units = sysfs.work(result.text("pause"))[1]
    seen = window(result, 30).cpus[1]
    assert seen.mhz * 1e6 / (units.rate * 1000) == pytest.approx(824, rel=0.05)


@KNOBS
def test_reserved_bits_fault(result: Result) -> None:
    """SDM vol. 4: bit 30 of 0x1A0 and bit 33 of 0x199 mean nothing."""
    lines = result.text("reserved").splitlines()
    assert lines[:2] == ["0x1a0 fault", "0x199 fault"]
    assert lines[2] == "0x1a0 0x850089"


@KNOBS
def test_turbo_off_by_its_bit_hides_the_feature(result: Result) -> None:
    """SDM vol. 3, 15.3.2.1: CPUID.6.EAX[1] is 0 while bit 38 of 0x1A0 is set."""
    assert ", TURBO," in result.text("turbo-on")
    assert ", No-TURBO," in result.text("turbo-off")
    assert 1800 < window(result, 32).cpus[1].mhz <= 2000.1


@KNOBS
def test_calls_take_their_time_from_cpu_to_cpu(result: Result) -> None:
    """100 us for a store in the machine file, not the 300 of an interrupt, and what the
    kernel and dd do per byte: from one CPU's wake-up by the other's store to the way
    back.  A tick may end a rest earlier."""
    assert result.trace
    wakes = sorted((ns, cpu) for cpu, events in trace.read(result.trace).wakes.items()
                   for ns, reason, _ in events if reason == "store")
    hops = [b[0] - a[0] for a, b in zip(wakes, wakes[1:]) if a[1] != b[1]]
    hops = hops[-2 * ROUND_TRIPS:]
    assert len(hops) > ROUND_TRIPS
    assert 100_000 < statistics.median(hops) < 130_000
