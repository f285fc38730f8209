# SPDX-License-Identifier: GPL-2.0
"""Suspend to RAM (S3), which starts APERF and MPERF anew, as the patched kernel takes it.

An alarm of the CMOS clock wakes the machine. Without "start APERF/MPERF sampling anew on
resume" the first sample of the boot CPU goes back by all that it had counted.
"""

from __future__ import annotations

import re

import pytest
from scenarios import SUSPEND_KHZ
from test_invariance import state
from virtual_silicon.guest.boot import Result
from virtual_silicon.readers import sysfs

pytestmark = pytest.mark.boots("suspend")


def counters(text: str) -> list[dict[int, int | None]]:
    return [sysfs.msr_values(part) for part in re.split(r"^cpu \d+$", text, flags=re.M)[1:]]


def test_it_was_a_suspend_to_ram(result: Result) -> None:
    assert result.step_status("suspend") == 0
    assert "[deep]" in result.text("before")
    dmesg = result.text("dmesg")
    assert "ACPI: PM: Preparing to enter system sleep state S3" in dmesg
    assert "ACPI: PM: Waking up from system sleep state S3" in dmesg


def test_counters_began_anew(result: Result) -> None:
    """0xE7 and 0xE8: half a second of work is 10^9 cycles. They never go back but by this."""
    before, after = (counters(result.text(step)) for step in ("before", "suspend"))
    for was, now in zip(before, after, strict=True):
        for msr in (0xE7, 0xE8):
            assert 0 < (now[msr] or 0) < (was[msr] or 0)


def test_no_sample_was_bad(result: Result) -> None:
    """Of either CPU: that which goes down and up again, and the one that does not."""
    for step in ("before", "suspend", *(f"after-{khz}" for khz in SUSPEND_KHZ)):
        assert state(result.text(step)).of("skipped") == [0, 0], step
    dmesg = result.text("dmesg")
    assert "are unusable" not in dmesg and sysfs.warnings(dmesg) == []


def test_invariance_goes_on(result: Result) -> None:
    """The scale is the clock over the highest one, at each clock."""
    for khz in SUSPEND_KHZ:
        after = state(result.text(f"after-{khz}"))
        assert after.word == "4c" and set(after.of("freq_max")) == {1945}
        assert after.of("scale") == pytest.approx([1024 * khz / SUSPEND_KHZ[-1]] * 2, rel=0.03)
