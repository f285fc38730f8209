# SPDX-License-Identifier: GPL-2.0
"""Cores of two kinds, and cores with two threads, as the stock kernel sees them."""

from __future__ import annotations

import pytest
from guests import Guests, each, window
from scenarios import KIND_MARKS, SMT_MARKS
from virtual_silicon.guest.boot import Result
from virtual_silicon.machine import machine, ssdt
from virtual_silicon.readers import sysfs, turbostat

AMD, INTEL = "two-kinds-amd", "two-kinds-intel"

#: Of a guest with four CPUs, as published or assumed in the machine files.
CPUS = {AMD: [4900, 3500, 3500, 3500], INTEL: [5200, 5200, 3900, 3900]}


@pytest.fixture(params=each(CPUS))
def either(request: pytest.FixtureRequest, guests: Guests) -> tuple[str, Result]:
    return request.param, guests.get(request.param)


def registers(result: Result, cpu: int) -> dict[int, int | None]:
    text = result.text("registers").split(f"cpu {cpu}\n")[1].split("cpu ")[0]
    return sysfs.msr_values(text)


@pytest.mark.parametrize("load", KIND_MARKS)
def test_each_kind_runs_at_its_own_highest_clock(either: tuple[str, Result],
                                                 load: str) -> None:
    """With all busy the first kind is held back by the turbo limit."""
    name, result = either
    m, highest = machine.load("ryzen-5-7545u" if name == AMD else "core-i9-12900k"), CPUS[name]
    limit = m.mhz(m.turbo.limit(len(highest) if load == "all" else 1))
    busy = {"first": [0], "last": [3], "all": [0, 1, 2, 3]}[load]
    seen = window(result, KIND_MARKS[load])
    for cpu in busy:
        assert seen.cpus[cpu].mhz == pytest.approx(min(highest[cpu], limit), rel=0.01)


def test_work_follows_the_clock_of_the_kind(either: tuple[str, Result]) -> None:
    """And what it does per cycle: E-cores of Alder Lake 787 for 1000 of the P-cores'."""
    name, result = either
    first, last = (sysfs.work(result.text(f"load-{which}"))[0].rate
                   for which in ("first", "last"))
    clocks = CPUS[name][0] / CPUS[name][3]
    assert first / last == pytest.approx(clocks / (0.787 if name == INTEL else 1), rel=0.02)


def test_dense_cores_draw_less(either: tuple[str, Result]) -> None:
    _, result = either
    first, last = (window(result, KIND_MARKS[which]) for which in ("first", "last"))
    assert last.cores_j / last.seconds < 0.7 * first.cores_j / first.seconds


@pytest.mark.boots(INTEL)
def test_hybrid_part_as_the_kernel_sees_it(result: Result) -> None:
    """SDM vol. 2, CPUID 7.EDX[15] and 1AH; P-cores count performance in 78.741 MHz."""
    assert "hybrid_cpu" in result.text("cpuinfo").split() or \
        "Hybrid" in result.text("header")
    freq = sysfs.pairs(result.text("cpufreq"))
    seen = [(int(freq[f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/{key}"]))
            for key in ("cpuinfo_max_freq", "base_frequency") for cpu in range(4)]
    assert seen == [5_200_000, 5_200_000, 3_900_000, 3_900_000,
                    3_200_000, 3_200_000, 2_400_000, 2_400_000]


@pytest.mark.boots(INTEL)
def test_capabilities_of_both_kinds(result: Result) -> None:
    """Highest 7:0, guaranteed 15:8: rounded up to levels, so that none is lost."""
    big, small = (registers(result, cpu)[0x771] for cpu in (0, 3))
    assert big is not None and small is not None
    assert [big & 0xFF, big >> 8 & 0xFF] == [67, 41]	# 5200, 3200 / 78.741
    assert [small & 0xFF, small >> 8 & 0xFF] == [39, 24]
    # of the package: turbostat takes the clock of its busy share from any CPU's
    assert {registers(result, cpu)[0xCE] for cpu in (0, 3)} == \
        {32 << 8 | 8 << 40 | 8 << 48}


@pytest.mark.boots(INTEL)
def test_turbostat_reads_both_turbo_tables(result: Result) -> None:
    text = result.text("header")
    assert "MSR_TURBO_RATIO_LIMIT: 0x3131323233333434" in text
    assert "RATIO_LIMIT: 0x2727272727272727" in text


@pytest.mark.boots(INTEL)
def test_residencies_of_both_kinds(result: Result) -> None:
    """turbostat takes C7 from what the C6 counter of an E-core holds."""
    table = turbostat.table(result.text("rest"))
    for row in table.cpus.values():
        assert turbostat.residency_sum(row) == pytest.approx(100, abs=1)
        assert all(0 <= row[column] <= 100 for column in ("CPU%c1", "CPU%c6", "CPU%c7"))
        assert row["CPU%c7"] > 80


@pytest.mark.boots(AMD)
def test_dense_cores_have_a_lower_highest_performance(result: Result) -> None:
    """One scale for both: 196 at 4.9 GHz, 140 at 3.5 GHz, nominal 128 at 3.2 GHz."""
    for cpu, highest in ((0, 196), (3, 140)):
        caps = registers(result, cpu)[0xC00102B0]
        assert caps is not None
        assert [caps >> 24, caps >> 16 & 0xFF] == [highest, 128]


@pytest.mark.boots(AMD)
def test_acpi_table_says_the_same_as_the_registers() -> None:
    asl = ssdt.source(machine.load("ryzen-5-7545u"), 4)
    objects = asl.split("Scope (")[1:]
    assert ["Package () { 23, 3, 196, 128" in text for text in objects] == \
        [True, False, False, False]
    assert sum("Package () { 23, 3, 140, 128" in text for text in objects) == 3


@pytest.mark.boots(AMD)
def test_idle_states_by_port(result: Result) -> None:
    """The ACPI driver has them from _CST; nearly all of an idle time is in C3."""
    before, after = result.text("cpuidle"), result.text("idle")
    states = sysfs.idle_states(after)[1]
    assert [(s.name, s.latency_us) for s in states[1:]] == \
        [("C1", 1), ("C2", 18), ("C3", 350)]
    used = sysfs.idle_used(before, after)
    assert used["C3"][1] > 0.9 * 4 * 0.3


@pytest.mark.boots(AMD)
def test_port_states_are_the_models(result: Result) -> None:
    """What the trace says of the same states while one CPU works."""
    seen = window(result, KIND_MARKS["last"])
    for cpu in (1, 2):
        assert seen.cpus[cpu].states["C3"] > 0.9


SMT = pytest.mark.boots("smt")


@SMT
def test_siblings(result: Result) -> None:
    lists = sysfs.pairs(result.text("topology"))
    assert sorted(lists.values()) == sorted(["0-1", "2-3", "4-5"] * 2)


@SMT
def test_siblings_share_the_core(result: Result) -> None:
    """Each at 65 % of a core, smt_permille in the machine file; two cores do not."""
    alone = sysfs.work(result.text("one").partition("--turbostat--")[0])[0].rate
    for w in sysfs.work(result.text("siblings").partition("--turbostat--")[0]):
        assert w.rate / alone == pytest.approx(0.65, rel=0.03)
    for w in sysfs.work(result.text("cores").partition("--turbostat--")[0]):
        assert w.rate / alone == pytest.approx(1, rel=0.02)


@SMT
def test_turbo_counts_cores_and_energy_too(result: Result) -> None:
    """Two threads of one core: one active core, and its power by 15 % more."""
    one, siblings, cores = (window(result, mark) for mark in SMT_MARKS.values())
    watts = [w.cores_j / w.seconds for w in (one, siblings, cores)]
    clocks = [one.cpus[2].mhz, siblings.cpus[2].mhz, cores.cpus[2].mhz]
    assert clocks == pytest.approx([3800] * 3, rel=0.01)
    assert 1.1 * watts[0] < watts[1] < 1.2 * watts[0]
    assert watts[2] > 1.7 * watts[0]


@SMT
def test_residency_is_the_cores(result: Result) -> None:
    """A sibling that rests in C6 beside a busy one is not in core C6."""
    table = turbostat.table(result.text("one"))
    assert table.cpus[2]["Busy%"] > 90
    assert table.cpus[2]["CPU%c6"] < 100 - table.cpus[2]["Busy%"]
    assert table.cpus[3]["C6%"] > 90 and table.cpus[3]["CPU%c1"] > 90
    assert table.cpus[4]["CPU%c6"] > 90


@SMT
def test_the_higher_request_of_active_threads_counts(result: Result) -> None:
    """CPU 2 wants 800 MHz and its sibling 2 GHz: that counts while it runs."""
    assert window(result, 46).cpus[2].mhz == pytest.approx(800, rel=0.03)
    both = window(result, 48)
    assert both.cpus[2].mhz == pytest.approx(2000, rel=0.03)
    assert both.cpus[3].mhz == pytest.approx(2000, rel=0.03)
