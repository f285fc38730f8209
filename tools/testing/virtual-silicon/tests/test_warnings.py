# SPDX-License-Identifier: GPL-2.0
"""Guests in which every step succeeds and of which the kernel has nothing to complain."""

from __future__ import annotations

import pytest
from guests import each
from scenarios import FAMILY_MACHINES, IDLE_STATES, MIXED, STOCK_MACHINES
from virtual_silicon.guest.boot import Result
from virtual_silicon.readers import sysfs

TOOLS = [*(f"stock-{name}" for name in STOCK_MACHINES),
         *(f"family-{name}" for name in FAMILY_MACHINES)]
STEPS = [*TOOLS, "amd", "hwp-active", "hwp-passive", "knobs", "two-kinds-amd", "two-kinds-intel",
         *MIXED]
#: Steps of these may fail, or are looked at elsewhere.
OTHERS = ["amd-patched", "amd-pstate", "amd-pstate-active", "smt", "two-packages",
          "invariance-control", "invariance-two-kinds", "invariance-intel-drivers", "utilisation",
          "schedutil", "c02", "poll-state", "poll-loop",
          *(f"acpi-{name}" for name in STOCK_MACHINES), *(f"idle-{name}" for name in IDLE_STATES),
          *(f"patched-{name}" for name in (*STOCK_MACHINES, *FAMILY_MACHINES))]


@pytest.mark.parametrize("name", each(STEPS))
def test_every_step_ran(name: str, result: Result) -> None:
    failed = [s.name for s in result.answer.sections.values() if s.status]
    assert not failed and result.status == 0, name


@pytest.mark.parametrize("name", each(STEPS + OTHERS))
def test_kernel_has_nothing_to_complain_of(name: str, result: Result) -> None:
    assert sysfs.warnings(result.text("dmesg")) == [], name
    if name in TOOLS:	# until it was switched off
        assert sysfs.warnings(result.console) == []
