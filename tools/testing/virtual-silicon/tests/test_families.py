# SPDX-License-Identifier: GPL-2.0
"""One part for each layout of the turbo table: stock tools and both kernels."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from guests import Guests, window
from scenarios import FAMILY_MACHINES, MARKS
from virtual_silicon.guest.boot import Result
from virtual_silicon.machine import machine
from virtual_silicon.readers import sysfs, trace, turbostat


@dataclass(frozen=True)
class Published:
    """MHz as published or assumed in the machine files, written down once more.

    `base_ratio` and `patched_ratio` are 1024 * maximum / base, the maximum as
    the base kernel and as the series take it.
    """

    low: float
    base: float
    turbo: dict[int, float]
    base_ratio: int
    patched_ratio: int
    driver: str = "intel_cpufreq"


PARTS = {
    # four cores, in both
    "platinum-8180": Published(
        1000, 2500, {2: 3800, 4: 3600, 8: 3500, 12: 3500, 16: 3500, 20: 3400,
                     24: 3300, 28: 3200}, 3600 * 1024 // 2500, 3600 * 1024 // 2500),
    # the base kernel takes the fourth group (16 cores) for four cores
    "platinum-8380": Published(
        800, 2300, {2: 3400, 4: 3400, 8: 3400, 16: 3300, 20: 3200, 24: 3200,
                    32: 3100, 40: 3000}, 3300 * 1024 // 2300, 3400 * 1024 // 2300),
    # one core, in both
    "pentium-n4200": Published(
        800, 1100, {1: 2500, 2: 2400, 3: 2400, 4: 2300},
        2500 * 1024 // 1100, 2500 * 1024 // 1100),
    "celeron-j1900": Published(
        16 * 83.3, 24 * 83.3, dict.fromkeys((1, 2, 3, 4), 29 * 83.3),
        29 * 1024 // 24, 29 * 1024 // 24),
    # the second highest, in both; turbostat leaves equal groups out
    "xeon-phi-7250": Published(
        1000, 1400, {2: 1600, 33: 1500}, 1500 * 1024 // 1400, 1500 * 1024 // 1400),
    "atom-p5962b": Published(
        800, 2200, dict.fromkeys((4, 8, 12, 16, 20, 24), 2200), 1024, 1024,
        "acpi-cpufreq"),	# intel_pstate wants HWP on this one
}


@dataclass
class Family:
    name: str
    result: Result
    published: Published

    def window(self, mark: int) -> trace.Window:
        return window(self.result, mark)


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.boots(f"family-{name}"))
                        for name in FAMILY_MACHINES])
def family(request: pytest.FixtureRequest, guests: Guests) -> Family:
    name = request.param
    return Family(name, guests.get(f"family-{name}"), PARTS[name])


def test_every_step_ran_without_complaint(family: Family) -> None:
    assert family.result.status == 0
    assert sysfs.warnings(family.result.text("dmesg")) == []
    assert sysfs.warnings(family.result.console) == []


def test_turbostat_reads_the_clocks(family: Family) -> None:
    header = turbostat.header(family.result.text("header"))
    assert header.low == pytest.approx(family.published.low, abs=0.1)
    assert header.base == pytest.approx(family.published.base, abs=0.1)
    assert header.turbo == pytest.approx(family.published.turbo, abs=0.1)


def test_base_kernel_ratio(family: Family) -> None:
    ratio = sysfs.invariance_ratio(family.result.text("dmesg"))
    assert ratio == family.published.base_ratio


def test_drivers_take_the_part_for_what_it_is(family: Family) -> None:
    """The cpufreq driver has the limits, intel_idle the states and latencies."""
    freq = sysfs.pairs(family.result.text("cpufreq"))
    base = "/sys/devices/system/cpu/cpu1/cpufreq/"
    assert freq[base + "scaling_driver"] == family.published.driver
    assert int(freq[base + "cpuinfo_max_freq"]) == \
        pytest.approx(max(family.published.turbo.values()) * 1000, rel=0.001)
    states = sysfs.idle_states(family.result.text("cpuidle"))[1]
    assert [(s.name, s.latency_us, s.residency_us) for s in states[1:]] == \
        [(s.name, s.exit_us, s.residency_us) for s in machine.load(family.name).idle]


def test_one_busy_cpu_runs_at_turbo(family: Family) -> None:
    """By turbostat and by the model; deep states of small parts wake late."""
    window = family.window(MARKS["one"])
    row = turbostat.table(family.result.text("one")).cpus[1]
    top = max(family.published.turbo.values())
    assert row["Bzy_MHz"] == pytest.approx(top, rel=0.01)
    assert window.cpus[1].mhz == pytest.approx(top, rel=0.01)
    assert window.cpus[1].busy > 0.85


def test_no_turbo_means_base(family: Family) -> None:
    assert family.window(MARKS["no_turbo"]).cpus[1].mhz == \
        pytest.approx(family.published.base, rel=0.01)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.boots(
    f"patched-{name}")) for name in FAMILY_MACHINES])
def test_patched_kernel_ratio(name: str, result: Result) -> None:
    dmesg = result.text("dmesg")
    assert sysfs.invariance_ratio(dmesg) == PARTS[name].patched_ratio
    assert sysfs.warnings(dmesg) == []


@pytest.mark.boots("family-xeon-phi-7250")
def test_counters_of_a_thousand_cycles(result: Result) -> None:
    """turbostat multiplies what KNL counts; the ratio is as good as ever."""
    row = turbostat.table(result.text("one")).cpus[1]
    assert 85 < row["Busy%"] <= 100.1
    assert row["Bzy_MHz"] == pytest.approx(1600, rel=0.01)


@pytest.mark.boots("family-celeron-j1900")
def test_energy_in_units_of_microjoules(result: Result) -> None:
    """Silvermont's own unit, 2^5 uJ, as turbostat and the kernel read it."""
    seen = window(result, MARKS["one"])
    table = turbostat.table(result.text("one"))
    assert table.summary["Pkg_J"] / table.seconds == \
        pytest.approx(seen.package_j / seen.seconds, rel=0.02)
