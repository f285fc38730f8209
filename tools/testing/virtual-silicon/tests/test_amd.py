# SPDX-License-Identifier: GPL-2.0
"""An AMD part: P-states by number, boost, energy, and the ratio from ACPI."""

from __future__ import annotations

import pytest
from guests import Guests, each, window
from virtual_silicon.guest.boot import Result
from virtual_silicon.readers import sysfs, turbostat

#: CPPC: 255 at 3.4 GHz, 168 at 2.25 GHz; both kernels take the mean of that
#: ratio and 1 (there is no telling how many cores reach the highest).
RATIO = (255 * 1024 // 168 + 1024) // 2
BOOST_OFF = 1 << 25		# PPR, MSRC001_0015 CpbDis

pytestmark = pytest.mark.boots("amd")


def mhz(result: Result, mark: int) -> float:
    return window(result, mark).cpus[1].mhz


def test_driver_and_frequencies(result: Result) -> None:
    freq = sysfs.pairs(result.text("cpufreq"))
    base = "/sys/devices/system/cpu/cpu1/cpufreq/"
    assert freq[base + "scaling_driver"] == "acpi-cpufreq"
    assert freq[base + "scaling_available_frequencies"].split() == \
        ["2250000", "2000000", "1500000"]
    # from CPPC: 2250 MHz * 255 / 168
    assert int(freq[base + "cpuinfo_max_freq"]) == pytest.approx(3_400_000, rel=0.005)


def test_feature_flags(result: Result) -> None:
    flags = set(result.text("cpuinfo").split())
    assert {"hw_pstate", "cpb", "aperfmperf", "nonstop_tsc", "rapl"} <= flags


def test_registers(result: Result) -> None:
    seen = sysfs.msr_values(result.text("registers"))
    assert seen[0xC0010015] == 1 << 24		# TscFreqSel
    assert seen[0xC0010061] == 2 << 4		# lowest P-state, none held back
    assert seen[0xC00000E7] is not None
    assert seen[0x1AD] is None and seen[0xCE] is None
    assert result.text("constant") == "0xc0010064 fault"


@pytest.mark.parametrize("mark,expected", [(30, 1500), (32, 3400), (36, 3400)])
def test_requests_take_effect(result: Result, mark: int, expected: float) -> None:
    assert mhz(result, mark) == pytest.approx(expected, rel=0.01)


def test_boost_off_means_base(result: Result) -> None:
    seen = sysfs.msr_values(result.text("no-boost"))[0xC0010015]
    assert seen is not None and seen & BOOST_OFF
    assert mhz(result, 34) == pytest.approx(2250, rel=0.01)
    slow, fast = (sysfs.work(result.text(step))[0].rate
                  for step in ("no-boost", "boost"))
    assert fast / slow == pytest.approx(3400 / 2250, rel=0.02)


def test_turbostat_reads_clock_and_energy(result: Result) -> None:
    """Energy of the package, and of each core by its own register."""
    seen = window(result, 32)
    table = turbostat.table(result.text("fast"))
    assert table.cpus[1]["Bzy_MHz"] == pytest.approx(3400, rel=0.01)
    assert table.summary["Pkg_J"] / table.seconds == \
        pytest.approx(seen.package_j / seen.seconds, rel=0.02)
    assert table.summary["Cor_J"] / table.seconds == \
        pytest.approx(seen.cores_j / seen.seconds, rel=0.05)
    assert table.cpus[1]["Cor_J"] > 5 * table.cpus[0]["Cor_J"]


def test_base_kernel_ratio(result: Result) -> None:
    assert sysfs.invariance_ratio(result.text("dmesg")) == RATIO == 1289


@pytest.mark.boots("amd-patched")
def test_patched_kernel_ratio(result: Result) -> None:
    assert sysfs.invariance_ratio(result.text("dmesg")) == RATIO


@pytest.fixture(params=each(("amd-pstate", "amd-pstate-active")))
def by_register(request: pytest.FixtureRequest, guests: Guests) -> Result:
    return guests.get(request.param)


def test_cppc_drivers_bind(by_register: Result) -> None:
    freq = sysfs.pairs(by_register.text("cpufreq"))
    base = "/sys/devices/system/cpu/cpu1/cpufreq/"
    assert freq[base + "scaling_driver"].startswith("amd-pstate")
    assert freq[base + "amd_pstate_highest_perf"] == "255"
    assert int(freq[base + "amd_pstate_lowest_nonlinear_freq"]) == \
        pytest.approx(1_500_000, rel=0.001)
    assert int(freq[base + "amd_pstate_max_freq"]) == pytest.approx(3_500_000, rel=0.005)


def test_cppc_registers(by_register: Result) -> None:
    """Highest 255, nominal 178, nonlinear 109, lowest 29; enabled on all CPUs."""
    seen = sysfs.msr_values(by_register.text("slow"))
    assert seen[0xC00102B0] == 255 << 24 | 178 << 16 | 109 << 8 | 29
    assert seen[0xC00102B1] == 1


@pytest.mark.boots("amd-pstate")
def test_cppc_requests_take_effect(result: Result) -> None:
    """Passive: desired performance, 23:16, is the governor's. The least that it may ask for
    is the lowest, on 7.3 the lowest that is efficient."""
    least = int(sysfs.pairs(result.text("cpufreq"))[
        "/sys/devices/system/cpu/cpu1/cpufreq/scaling_min_freq"])
    slow = (29, 30, 400) if least < 1_000_000 else (110, 30, 1510)
    for step, perf, mark, expected in (("slow", *slow), ("fast", 255, 32, 3500)):
        request = sysfs.msr_values(result.text(step))[0xC00102B3]
        assert request is not None and request >> 16 & 0xFF == perf
        assert mhz(result, mark) == pytest.approx(expected, rel=0.01)


@pytest.mark.boots("amd-pstate-active")
def test_cppc_leaves_the_choice_to_the_hardware(result: Result) -> None:
    """Active: no desired performance; a full load runs high, however it is asked."""
    for step, mark in (("slow", 30), ("fast", 32)):
        request = sysfs.msr_values(result.text(step))[0xC00102B3]
        assert request is not None and request >> 16 & 0xFF == 0
        assert mhz(result, mark) > 3000
