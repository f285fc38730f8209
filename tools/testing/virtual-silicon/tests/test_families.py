# SPDX-License-Identifier: GPL-2.0
"""Stock tools and both kernels on the four stock machines, and on a part for each other layout of
the turbo table."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from guests import Guests, each, window
from scenarios import FAMILY_MACHINES, MARKS, STOCK_MACHINES
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

    @property
    def four(self) -> float:
        """With four active cores."""
        return next(mhz for cores, mhz in self.turbo.items() if cores >= 4)


PARTS = {
    # the base kernel takes the fourth group (12 cores) for four cores, ours all
    "sapphire-rapids": Published(
        800, 2000, {2: 3800, 4: 3800, 8: 3600, 12: 3400, 16: 3200, 24: 3100, 32: 3000,
                    56: 3000}, 3400 * 1024 // 2000, 3000 * 1024 // 2000),
    # as many cores as turbostat prints
    "e5-2698-v4": Published(
        1200, 2200, {1: 3600, 2: 3600, 3: 3400, 4: 3300, 5: 3200, 6: 3100, 7: 3000, 8: 2900},
        3300 * 1024 // 2200, 3300 * 1024 // 2200),
    "e5-2670-v3": Published(
        1200, 2300, {1: 3100, 2: 3100, 3: 2900, 4: 2800, 5: 2700} | dict.fromkeys(
            range(6, 13), 2600), 2800 * 1024 // 2300, 2800 * 1024 // 2300),
    "e3-1240-v5": Published(
        800, 3500, {1: 3900, 2: 3900, 3: 3800, 4: 3700},
        3700 * 1024 // 3500, 3700 * 1024 // 3500),
    # four cores, in both
    "platinum-8180": Published(
        1000, 2500, {2: 3800, 4: 3600, 8: 3500, 12: 3500, 16: 3500, 20: 3400,
                     24: 3300, 28: 3200}, 3600 * 1024 // 2500, 3600 * 1024 // 2500),
    # the base kernel takes the fourth group (16 cores) for four cores, ours all
    "platinum-8380": Published(
        800, 2300, {2: 3400, 4: 3400, 8: 3400, 16: 3300, 20: 3200, 24: 3200,
                    32: 3100, 40: 3000}, 3300 * 1024 // 2300, 3000 * 1024 // 2300),
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

    @property
    def last(self) -> int:
        """The CPU that is busy alone."""
        return STOCK_MACHINES.get(self.name, 2) - 1

    def window(self, mark: int) -> trace.Window:
        return window(self.result, mark)


@pytest.fixture(params=each(STOCK_MACHINES, "stock-") + each(FAMILY_MACHINES, "family-"))
def family(request: pytest.FixtureRequest, guests: Guests) -> Family:
    name = request.param
    return Family(name, guests.get(f"{'stock' if name in STOCK_MACHINES else 'family'}-{name}"),
                  PARTS[name])


def test_turbostat_reads_base_and_lowest_clock(family: Family) -> None:
    header = turbostat.header(family.result.text("header"))
    assert header.low == pytest.approx(family.published.low, abs=0.1)
    assert header.base == pytest.approx(family.published.base, abs=0.1)


def test_turbostat_reads_turbo_table(family: Family) -> None:
    header = turbostat.header(family.result.text("header"))
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
    row = turbostat.table(family.result.text("one")).cpus[family.last]
    seen = family.window(MARKS["one"]).cpus[family.last]
    top = max(family.published.turbo.values())
    assert row["Bzy_MHz"] == pytest.approx(top, rel=0.01)
    assert seen.mhz == pytest.approx(top, rel=0.01)
    assert seen.busy > (0.98 if family.name in STOCK_MACHINES else 0.85)


def test_no_turbo_means_base(family: Family) -> None:
    assert family.window(MARKS["no_turbo"]).cpus[family.last].mhz == \
        pytest.approx(family.published.base, rel=0.01)


@pytest.mark.parametrize("name", each(PARTS, "patched-"))
def test_patched_kernel_ratio(name: str, result: Result) -> None:
    assert sysfs.invariance_ratio(result.text("dmesg")) == PARTS[name].patched_ratio


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
