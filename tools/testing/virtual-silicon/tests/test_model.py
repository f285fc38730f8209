# SPDX-License-Identifier: GPL-2.0
"""What the emulated CPU does, measured from inside."""

from __future__ import annotations

import pytest
from guests import Guests, each, events, window
from scenarios import HOUR_MARK, HOUR_S, SCENARIOS, SPEEDS_KHZ, STOCK_MACHINES
from virtual_silicon.guest.boot import Result
from virtual_silicon.machine import machine, ssdt
from virtual_silicon.readers import sysfs, trace


@pytest.mark.boots("repeat-1", "repeat-2")
def test_deterministic_means_identical(guests: Guests) -> None:
    first, second = guests.get("repeat-1"), guests.get("repeat-2")
    assert first.trace and second.trace
    assert first.trace.read_bytes() == second.trace.read_bytes()
    assert first.text("work") == second.text("work")
    assert first.report == second.report


def _line(guests: Guests) -> tuple[float, float]:
    """Work per s and kHz, and the kHz that the kernel's ticks take: the line
    through the lowest and the highest speed."""
    result = guests.get("speed")
    low, high = (sysfs.work(result.text(f"speed-{khz}"))[0].rate
                 for khz in (SPEEDS_KHZ[0], SPEEDS_KHZ[-1]))
    slope = (high - low) / (SPEEDS_KHZ[-1] - SPEEDS_KHZ[0])
    return slope, SPEEDS_KHZ[0] - low / slope


@pytest.mark.boots("speed")
@pytest.mark.parametrize("khz", SPEEDS_KHZ[1:-1])
def test_speed_follows_frequency(guests: Guests, khz: int) -> None:
    """In proportion, but for the cycles that ticks take in each second."""
    slope, ticks = _line(guests)
    rate = sysfs.work(guests.get("speed").text(f"speed-{khz}"))[0].rate
    assert rate == pytest.approx(slope * (khz - ticks), rel=0.005)


@pytest.mark.boots("speed")
def test_ticks_take_little_of_the_lowest_speed(guests: Guests) -> None:
    assert 0 <= _line(guests)[1] < 0.02 * SPEEDS_KHZ[0]


@pytest.mark.boots("memory")
@pytest.mark.parametrize("khz", [khz for khz in SPEEDS_KHZ if khz != 2_000_000])
def test_memory_does_not_get_faster(result: Result, khz: int) -> None:
    """Half of the time at 2 GHz is memory's: 1 / (0.5 + 0.5 * 2 GHz / f)."""
    at_base = sysfs.work(result.text("speed-2000000"))[0].rate
    rate = sysfs.work(result.text(f"speed-{khz}"))[0].rate
    assert rate / at_base == pytest.approx(1 / (0.5 + 0.5 * 2_000_000 / khz), rel=0.02)


@pytest.mark.boots("turbo-bytes")
@pytest.mark.parametrize("busy,mhz", list(enumerate(
    (3600, 3600, 3400, 3300, 3200, 3100, 3000, 2900), 1)))
def test_turbo_falls_with_busy_cores(guests: Guests, busy: int, mhz: int) -> None:
    """Machine table of the 2019 invariance series, E5-2698 v4."""
    _check_turbo(guests, "turbo-bytes", busy, mhz)


@pytest.mark.boots("turbo-groups")
@pytest.mark.parametrize("busy,mhz", list(enumerate((3800, 3800, 3800, 3800, 3600, 3600), 1)))
def test_turbo_falls_with_groups(guests: Guests, busy: int, mhz: int) -> None:
    _check_turbo(guests, "turbo-groups", busy, mhz)


def _check_turbo(guests: Guests, name: str, busy: int, mhz: int) -> None:
    """By the model's count, and by the work done against one CPU's."""
    result = guests.get(name)
    seen = window(result, 100 + 2 * busy)
    cpus = SCENARIOS[name].cpus
    alone = sysfs.work(result.text("turbo-1"))[0].rate
    alone_mhz = max(cpu.mhz for cpu in window(result, 102).cpus.values() if cpu.busy > 0.9)
    work = sysfs.work(result.text(f"turbo-{busy}"))
    assert [w.cpu for w in work] == list(range(cpus - busy, cpus))
    for w in work:
        assert seen.cpus[w.cpu].mhz == pytest.approx(mhz, rel=0.01)
        assert w.rate / alone == pytest.approx(mhz / alone_mhz, rel=0.02)


@pytest.mark.boots("two-packages")
def test_packages_are_seen_and_counted_apart(result: Result) -> None:
    ids = sysfs.pairs(result.text("packages")).values()
    assert sorted(ids) == ["0"] * 8 + ["1"] * 8
    assert "name:package-1" in result.text("zones")
    t = events(result)
    a, b = t.mark(60).energy_uj, t.mark(61).energy_uj
    loaded, resting = (b[p][1] - a[p][1] for p in (0, 1))
    assert loaded > 3 * resting


@pytest.fixture(params=each(STOCK_MACHINES, "acpi-"))
def acpi_name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_acpi_driver_binds_and_has_all_frequencies(acpi_name: str, result: Result) -> None:
    freq = sysfs.pairs(result.text("cpufreq"))
    m = machine.load(acpi_name)
    for cpu in range(SCENARIOS[f"acpi-{acpi_name}"].cpus):
        base = f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/"
        assert freq[base + "scaling_driver"] == "acpi-cpufreq"
        listed = [int(khz) for khz in
                  freq[base + "scaling_available_frequencies"].split()]
        assert listed == [mhz * 1000 for mhz, _, _ in ssdt.pstates(m)]


def test_acpi_requests_take_effect(acpi_name: str, result: Result) -> None:
    m = machine.load(acpi_name)
    for mark, ratio in ((30, m.min_ratio), (32, m.max_ratio), (34, m.base_ratio)):
        assert window(result, mark).cpus[1].mhz == pytest.approx(m.mhz(ratio), rel=0.01)


@pytest.mark.boots("free")
def test_free_running_energy_and_clock(result: Result) -> None:
    """The host may stop a CPU between a mark and the guest's own look, so that
    energies of the same stretch are compared in deterministic time only."""
    seen = window(result, 12)
    used = sysfs.energy(result.text("zones") + "\n" + result.text("one"))
    assert used["package"] > 0 and seen.package_j > 0
    assert seen.cpus[1].mhz == pytest.approx(3800, rel=0.01)


@pytest.mark.boots("free")
def test_model_report_agrees_with_trace(result: Result) -> None:
    last = events(result).marks[-1]
    total = sum(p["energy_uj"] for p in result.report["packages"])
    assert total >= sum(energy[0] for energy in last.energy_uj.values())
    assert len(result.report["cpus"]) == SCENARIOS["free"].cpus


@pytest.fixture
def hour(result: Result) -> tuple[trace.Mark, trace.Mark]:
    assert result.status == 0
    t = events(result)
    return t.mark(HOUR_MARK), t.mark(HOUR_MARK + 1)


@pytest.mark.boots("hour")
def test_counters_do_not_drift_in_an_hour(hour: tuple[trace.Mark, trace.Mark]) -> None:
    """TSC is virtual time, MPERF the TSC's rate while busy, and at the base clock
    APERF is MPERF: to the last count."""
    a, b = hour
    khz = machine.load("sapphire-rapids").tsc_khz
    ns = b.time_ns - a.time_ns
    assert ns > HOUR_S * 1e9
    tsc, mperf, aperf, busy_ns = (
        getattr(b.cpus[0], name) - getattr(a.cpus[0], name)
        for name in ("tsc", "mperf", "aperf", "busy_ns"))
    assert abs(tsc - ns * khz // 1_000_000) <= 1
    assert abs(mperf - busy_ns * khz // 1_000_000) <= 1
    assert abs(aperf - mperf) <= 1 and mperf > 0


@pytest.mark.boots("hour")
def test_energy_is_the_integral_of_power(hour: tuple[trace.Mark, trace.Mark]) -> None:
    """Time in each state times its power, and all other time running: to 1e-6."""
    a, b = hour
    m = machine.load("sapphire-rapids")
    ns = b.time_ns - a.time_ns
    states = {name: b.cpus[0].states[name][1] - a.cpus[0].states[name][1]
              for name in b.cpus[0].states}
    power_w = {state.name: m.idle_w(state, m.base_ratio) for state in m.idle}
    expected_j = sum(states[name] / 1e9 * watts for name, watts in power_w.items())
    paused = (b.cpus[0].pause_cycles - a.cpus[0].pause_cycles) / (m.tsc_khz * 1e3)
    paused += (b.cpus[0].exit_ns - a.cpus[0].exit_ns) / 1e9
    expected_j += (ns - sum(states.values())) / 1e9 * m.active_w(m.base_ratio)
    expected_j -= paused * (m.active_w(m.base_ratio)
                          - m.share_w(m.base_ratio, m.power.pause_permille))
    package_j, cores_j, dram_j = ((b.energy_uj[0][i] - a.energy_uj[0][i]) / 1e6
                                  for i in range(3))
    assert cores_j == pytest.approx(expected_j, rel=1e-6)
    uncore = ns / 1e9 * m.power.uncore_w
    for level in m.package:	# one core: the package is as deep as it
        deep = [s.name for s in m.idle].index(level.core_state)
        uncore -= sum(states[s.name] for s in m.idle[deep:]) / 1e9 * (
            m.power.uncore_w - m.package_w(level))
    assert package_j == pytest.approx(cores_j + uncore, rel=1e-6)
    assert dram_j == pytest.approx(ns / 1e9 * m.power.dram_w, rel=1e-6)


@pytest.mark.boots("hour")
def test_guest_saw_the_hour(result: Result, hour: tuple[trace.Mark, trace.Mark]) -> None:
    """Its clock, and the energy counter that it read; that one may wrap around."""
    lines = result.text("hour").splitlines()
    assert float(lines[-1]) - float(lines[0]) == pytest.approx(
        (hour[1].time_ns - hour[0].time_ns) / 1e9, abs=0.1)
    zones = result.text("clock")
    used = sysfs.energy(zones + "\n" + result.text("hour"))
    package_j = (hour[1].energy_uj[0][0] - hour[0].energy_uj[0][0]) / 1e6
    wrap_j = 2**32 / 2**machine.load("sapphire-rapids").power.energy_unit_shift
    assert used["package"] == pytest.approx(package_j % wrap_j, abs=1)
