# SPDX-License-Identifier: GPL-2.0
"""What firmware and counters may say and drivers may do: the base survives it, and so do we."""

from __future__ import annotations

import re

import pytest
from guests import events
from scenarios import CRAWL, SHARING_MARK, SHARING_TASKS, WRITES_CPB
from test_invariance import state
from virtual_silicon.guest.boot import Result
from virtual_silicon.machine import machine
from virtual_silicon.readers import sysfs
from virtual_silicon.studies.invariance import utilisation as util

ASYMMETRIC = "SD_ASYM_CPUCAPACITY"


def flags(text: str) -> set[str]:
    """Of all scheduling domains."""
    return set(" ".join(sysfs.pairs(text).values()).split())


@pytest.mark.boots("invariance-crawl")
def test_aperf_that_crawls_does_not_stop_the_clock_of_pelt(result: Result) -> None:
    """APERF at 1/2500 of MPERF is 0 in 1/1024: then no time would pass for the task."""
    scales = util.fault_scales(result, util.events(result))
    during = [s for t, s in scales if CRAWL[0] + 0.1 < t < CRAWL[1] - 0.02]
    assert len(during) > 100
    # A burst that begins before the sample that counts may take some of the scale before
    assert sum(s < 1000 for s in during) <= 4


@pytest.mark.boots("invariance-highest-0")
def test_highest_performance_of_0(result: Result) -> None:
    """HWP_CAPABILITIES of one core: no division by it where time is scaled."""
    assert sysfs.warnings(result.text("dmesg")) == []
    assert "divide error" not in result.text("dmesg")
    work = [line.split() for line in result.text("load").splitlines() if line[:1].isdigit()]
    assert len(work) == 4 and all(float(words[1]) > 0 for words in work)


@pytest.mark.boots("invariance-nominal-by-one")
def test_firmware_that_rounds_makes_no_core_smaller(result: Result) -> None:
    assert result.text("nominal").split() == ["137", "137", "138", "138"]
    assert ASYMMETRIC not in flags(result.text("domains"))


@pytest.mark.boots("invariance-cpb")
def test_acpi_cpufreqs_own_switch(result: Result) -> None:
    """0 and 1 by `cpb` of all policies."""
    m = machine.load("epyc-7742")
    middle = (m.turbo.ratios[0] * 1024 // m.base_ratio + 1024) // 2
    found = [[int(n) for n in line.split()] for line in result.text("cpb").splitlines() if line]
    assert [on for on, *_ in found] == [int(on) for on in WRITES_CPB]
    for on, *ratios in found:
        assert ratios == pytest.approx([middle if on else 1024] * 2, abs=8)


@pytest.mark.boots("invariance-dense-offline")
def test_dense_core_that_is_offline_at_boot(result: Result) -> None:
    """It has the others' freq_max once it is online, and their capacity."""
    assert state(result.text("online")).of("freq_max") == pytest.approx([1296] * 6, abs=8)
    assert ASYMMETRIC not in flags(result.text("domains"))


@pytest.mark.boots("invariance-dense-boost")
@pytest.mark.parametrize("step", ("on", "off", "on-again"))
def test_boost_leaves_capacities_alone(result: Result, step: str) -> None:
    """Fast and dense cores: what tasks remember of capacities stays right."""
    now = flags(result.text(step))
    assert "SD_ASYM_PACKING" in now and ASYMMETRIC not in now


def shared_ns(result: Result, threads: int) -> tuple[int, int]:
    """For how long two threads of a core were both awake while a whole core rested, and
    for how long two threads or more were awake; between the marks of the load."""
    seen = events(result)
    begin, end = (seen.mark(SHARING_MARK + n).time_ns for n in (0, 1))
    changes = sorted((t, cpu, name is None) for cpu, states in seen.idle.items()
                     for t, name in states)
    awake = {cpu: True for cpu in seen.idle}
    last, shared, several = begin, 0, 0
    for t, cpu, now in [*changes, (end, -1, False)]:
        if begin < t <= end:
            cores: dict[int, int] = {}
            for of, active in awake.items():
                cores[of // threads] = cores.get(of // threads, 0) + active
            several += (t - last) * (sum(cores.values()) > 1)
            shared += (t - last) * (max(cores.values()) > 1 and 0 in cores.values())
            last = t
        awake[cpu] = now
    return shared, several


@pytest.mark.boots("sharing")
def test_woken_tasks_find_idle_cores(result: Result) -> None:
    """Fast and dense cores with two threads: as many tasks as cores, that work and sleep. With
    capacities of their own tasks shared a core while a whole one rested for 0.79 of the time.
    Where tasks begin makes it 0.01 to 0.2, in the base's kernel as well."""
    shared, several = shared_ns(result, 2)
    assert re.search(r"successful run completed", result.text("load"))
    assert shared / several < 0.4, SHARING_TASKS
