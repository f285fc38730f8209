# SPDX-License-Identifier: GPL-2.0
"""Parts made from dumps: the base kernel and turbostat see what was read on them."""

from __future__ import annotations

import pytest
from guests import each
from parts import PARTS, idle_table
from scenarios import PART_MACHINES
from virtual_silicon.guest.boot import Result
from virtual_silicon.readers import sysfs, turbostat


@pytest.mark.parametrize("name", each(PART_MACHINES, "part-"))
def test_guest_sees_what_was_read_on_the_part(name: str, result: Result) -> None:
    part, dmesg = PARTS[name], result.text("dmesg")
    assert sysfs.invariance_ratio(dmesg) == part.ratio
    assert sysfs.msr_values(result.text("registers")) == part.registers
    assert idle_table(result) == part.idle
    assert not sysfs.warnings(dmesg)
    # turbostat of Debian 12 does not know all models, and of AMD no table; it shows groups
    # without cores too, and not all registers were read on all parts
    header = result.text("header")
    table = turbostat.header(header).turbo if "base frequency" in header else {}
    for cores, mhz in table.items():
        assert mhz == pytest.approx(part.turbo.get(cores, mhz), abs=0.5), cores
