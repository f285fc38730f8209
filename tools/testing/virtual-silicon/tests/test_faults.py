# SPDX-License-Identifier: GPL-2.0
"""Faults on command: what the guest sees of them, or why they are refused.

The marks of the trace have the true counters whatever the registers show, so
that a fault is in what the guest reads, and only there.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from guests import Guests, events, window
from virtual_silicon.errors import UsageError
from virtual_silicon.guest import boot, qmp
from virtual_silicon.guest.boot import Result
from virtual_silicon.guest.job import Job, Section
from virtual_silicon.readers import sysfs

BASE_KHZ = 2_000_000
MS = 1_000_000

pytestmark = pytest.mark.boots("faults")


@dataclass
class Sample:
    """Registers of one CPU, read one after the other; None raised #GP."""

    time_ns: int
    mperf: int
    aperf: int
    bias: int | None
    thermal: int | None


def samples(result: Result, second: int, cpu: int) -> list[Sample]:
    out = []
    for block in result.text(f"second-{second}").split("cpu ")[1:]:
        number, _, registers = block.partition("\n")
        if int(number) == cpu:
            seen = sysfs.msr_values(registers)
            tsc, mperf, aperf, bias = (seen[n] for n in (0x10, 0xE7, 0xE8, 0x1B0))
            assert tsc is not None and mperf is not None and aperf is not None
            out.append(Sample(tsc * 1_000_000 // BASE_KHZ, mperf, aperf, bias,
                              seen[0x19C]))
    return out


def during(all_samples: list[Sample], second: int, begin_ms: float = 0,
           end_ms: float = 100) -> list[Sample]:
    """Those read between so many ms after the second."""
    begin = second * 1000 * MS
    out = [s for s in all_samples
           if begin + begin_ms * MS < s.time_ns < begin + end_ms * MS - MS]
    assert len(out) > 1
    return out


def before(all_samples: list[Sample], second: int) -> list[Sample]:
    return during(all_samples, second, -40, 0)	# the load is sure to run


def after(all_samples: list[Sample], second: int) -> list[Sample]:
    return during(all_samples, second, 101, 200)


def khz(seen: list[Sample], counter: str) -> float:
    """Rate of a counter over some samples, in kHz."""
    first, last = seen[0], seen[-1]
    return ((getattr(last, counter) - getattr(first, counter)) * 1e6
            / (last.time_ns - first.time_ns))


def test_frozen_counters_stand_still_and_go_on(result: Result) -> None:
    seen = samples(result, 2, 1)
    frozen = during(seen, 2)
    assert {(s.mperf, s.aperf) for s in frozen} == {(frozen[0].mperf, frozen[0].aperf)}
    assert frozen[0].mperf > seen[0].mperf
    assert khz(before(seen, 2), "mperf") == pytest.approx(BASE_KHZ, rel=0.05)
    assert khz(after(seen, 2), "mperf") == pytest.approx(BASE_KHZ, rel=0.05)
    # where it stood, and not where it would have been
    assert after(seen, 2)[0].mperf - frozen[0].mperf < 40 * MS


def test_zeroed_counters_are_zero_and_count_from_there(result: Result) -> None:
    seen = samples(result, 2, 2)
    assert {(s.mperf, s.aperf) for s in during(seen, 2)} == {(0, 0)}
    first = after(seen, 2)[0]
    assert 0 < first.mperf < first.aperf < 150 * MS


def test_counters_set_back(result: Result) -> None:
    seen = samples(result, 2, 3)
    last, first = before(seen, 2)[-1], during(seen, 2)[0]
    ns = first.time_ns - last.time_ns
    for counter in ("mperf", "aperf"):
        ran = khz(before(seen, 2), counter) * ns / 1e6
        assert getattr(first, counter) - getattr(last, counter) == \
            pytest.approx(ran - 100_000_000, abs=10_000_000)
    assert khz(during(seen, 2), "mperf") == pytest.approx(BASE_KHZ, rel=0.05)


def test_counter_jumps_ahead(result: Result) -> None:
    seen = samples(result, 3, 3)
    last, first = before(seen, 3)[-1], during(seen, 3)[0]
    assert 3_000_000_000 < first.aperf - last.aperf < 3_200_000_000
    assert 0 < first.mperf - last.mperf < 200_000_000


def test_counter_at_half_its_rate(result: Result) -> None:
    seen = samples(result, 3, 1)
    whole = khz(after(seen, 3), "aperf")	# the load has just begun before
    assert khz(during(seen, 3), "aperf") == pytest.approx(whole / 2, rel=0.05)
    assert khz(during(seen, 3), "mperf") == pytest.approx(BASE_KHZ, rel=0.05)
    assert whole == pytest.approx(3_800_000, rel=0.05)


def test_register_faults_for_a_time(result: Result) -> None:
    seen = samples(result, 3, 2)
    assert {s.bias for s in before(seen, 3) + after(seen, 3)} == {6}
    assert {s.bias for s in during(seen, 3)} == {None}
    assert {s.bias for s in samples(result, 3, 1)} == {6}	# another CPU


def test_freeze_for_a_number_of_reads(result: Result) -> None:
    """Three reads of either counter; the kernel's ticks read them too."""
    seen = samples(result, 4, 3)
    assert khz(during(seen, 4, 20, 100), "mperf") == pytest.approx(BASE_KHZ, rel=0.05)
    lost = (during(seen, 4, 20, 100)[0].time_ns - before(seen, 4)[-1].time_ns) \
        * BASE_KHZ / 1e6 - (during(seen, 4, 20, 100)[0].mperf - before(seen, 4)[-1].mperf)
    assert 0 < lost < 20 * MS


def test_marks_have_the_true_counters(result: Result) -> None:
    """Frozen, zeroed or set back for the guest; busy all the time in fact."""
    t, seen = events(result), window(result, 120)
    a, b = t.mark(120), t.mark(121)
    for cpu in (1, 2, 3):
        ticks = (b.time_ns - a.time_ns) * BASE_KHZ / 1e6 * seen.cpus[cpu].busy
        assert seen.cpus[cpu].busy > 0.9
        assert b.cpus[cpu].mperf - a.cpus[cpu].mperf == pytest.approx(ticks, rel=0.001)


def test_spurious_wakes(result: Result) -> None:
    t = events(result)
    woken = [ns for ns, reason, _ in t.wakes[1]
             if reason == "other" and ns >= 4000 * MS]
    # one each ms, but for those that find the CPU reading registers
    assert 50 <= len(woken) <= 100
    assert max(woken) <= 4101 * MS


def test_thermal_limit_lowers_the_clock(result: Result) -> None:
    clock = [(ns, khz) for ns, khz in events(result).khz[2]
             if 3900 * MS < ns < 4200 * MS]
    slow = [(ns, khz) for ns, khz in clock if khz == 1_200_000]
    # in the next slot of the machine file, and then the change itself
    assert len(slow) == 1 and 4000 * MS <= slow[0][0] < 4002 * MS
    back = next((ns, khz) for ns, khz in clock if ns > slow[0][0])
    assert 4100 * MS <= back[0] < 4102 * MS and back[1] >= 3_400_000


def test_thermal_event_shows_in_its_register(result: Result) -> None:
    """SDM vol. 3, 15.8.2.2: bit 0 of IA32_THERM_STATUS."""
    seen = samples(result, 4, 2)
    assert {s.thermal & 1 for s in during(seen, 4) if s.thermal is not None} == {1}
    assert {s.thermal & 1 for s in after(seen, 4) if s.thermal is not None} == {0}


def test_base_kernel_gives_invariance_up(result: Result) -> None:
    """It does when a tick finds MPERF where the last one did."""
    assert sysfs.invariance_ratio(result.text("before")) == 1740
    assert sysfs.warnings(result.text("before")) == []
    assert any("invariance went wobbly" in line
               for line in sysfs.warnings(result.text("dmesg")))


#: What the emulator says to whoever does not go through faults.py.
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"kind": "melt"}, "does not accept value 'melt'"),
    ({"kind": "rate", "counter": "aperf"}, "'permille' is missing"),
    ({"kind": "msr", "msr": 0x1B0}, "'value' is missing"),
    ({"kind": "limit", "ratio": 20, "reads": 5}, "'reads' is unexpected"),
    ({"kind": "limit", "ratio": 0}, "ratio must be above 0"),
    ({"kind": "gp", "msr": 0x1B0, "reads": 0}, "reads must be above 0"),
    ({"kind": "gp", "msr": 0x1B0, "cpu": 200}, "cpu must be one of the machine's"),
    ({"kind": "wake", "every-ns": 10}, "every-ns must be 1000 or more"),
    ({"kind": "wake", "duration-ns": 0}, "duration-ns must be above 0"),
]


@pytest.mark.boots("lost-turbo")
def test_faults_and_counters_while_it_runs(guests: Guests, tmp_path: Path) -> None:
    """By the control socket: a register faults from then on; counters are JSON."""
    job = Job()
    job.step("before", "vs-msr 1 0x1b0")
    job.step("until", "while vs-msr 1 0x1b0 >/dev/null; do sleep 0.05; done")
    c = guests.config("lost-turbo", job.archive())
    c = dataclasses.replace(c, out=tmp_path, faults=None, mode="free",
                            qmp=tmp_path / "qmp")
    seen: list[dict] = []

    def inject(section: Section) -> None:
        if section.name == "before":
            with qmp.Monitor(tmp_path / "qmp") as monitor:
                seen.append(monitor.counters())
                for fault, reason in WRONG:
                    with pytest.raises(UsageError, match=reason):
                        monitor.execute("virtual-silicon-fault", **fault)
                monitor.fault("1 gp msr=0x1b0")
    result = boot.run(c, inject)
    assert result.text("before") == "0x1b0 0x6" and result.status == 0
    assert 0 < seen[0]["time_ns"] < result.report["time_ns"]
    assert len(seen[0]["cpus"]) == c.cpus


@pytest.mark.boots("lost-turbo")
def test_lost_turbo_table(result: Result) -> None:
    """The registers read zero, and the base kernel has no invariance."""
    seen = sysfs.msr_values(result.text("registers"))
    assert seen[0x1AD] == seen[0x1AE] == 0
    assert sysfs.invariance_ratio(result.text("dmesg")) is None


@pytest.mark.boots("lost-turbo")
def test_register_faults_from_the_start(result: Result) -> None:
    """Without the energy counter the kernel makes no zone."""
    assert sysfs.msr_values(result.text("registers"))[0x611] is None
    assert result.text("zones") == ""


@pytest.mark.boots("lost-turbo")
def test_missing_cpuid_bit(result: Result) -> None:
    """6.ECX[3], the energy performance bias; its neighbour is still there."""
    flags = result.text("cpuinfo").split()
    assert "epb" not in flags and "aperfmperf" in flags


@pytest.mark.boots("zero-counters")
def test_counters_that_are_only_advertised(result: Result) -> None:
    seen = sysfs.msr_values(result.text("registers"))
    assert seen[0xE7] == seen[0xE8] == 0
    assert "aperfmperf" in result.text("cpuinfo").split()
    assert any("wobbly" in line for line in sysfs.warnings(result.text("dmesg")))
    assert len(sysfs.work(result.text("load"))) == 2
