# SPDX-License-Identifier: GPL-2.0
"""What users and the command line can say to the series' parts of the kernel, and must not."""

from __future__ import annotations

import re

import pytest
from scenarios import FREQ_MAX, HOSTILE_PARAMETERS, HOSTILE_WRITES
from virtual_silicon.guest.boot import Result
from virtual_silicon.readers import sysfs

CPU = "/sys/devices/system/cpu"

#: What the base says of a CPU that goes off and on and of idle governors
_USUAL = re.compile(r"smpboot: (CPU \d+ is now offline|Booting Node \d+ Processor \d+ APIC )|"
                    r"cpuidle: using governor ")

#: By the last words of the path. Everybody reads, root alone writes.
MODES = {"freq_max": "644", "rate_limit_us": "644",
         "idle_poll": "644", "current_governor": "644", "c02": "444"}


class TestWrites:
    pytestmark = pytest.mark.boots("hostile")

    def test_values_are_taken_or_refused_as_documented(self, result: Result) -> None:
        said = result.text("writes")
        assert result.step_status("writes") == 0, said
        count = {name: int(n) for name, n in re.findall(r"([a-z]+) (\d+)", said)}
        assert count["writes"] >= 0.99 * HOSTILE_WRITES
        assert min(count["taken"], count["refused"], count["reads"]) > HOSTILE_WRITES / 20
        # Files came and went
        assert count["gone"] > 10 and count["switches"] > 10

    def test_kernel_is_silent(self, result: Result) -> None:
        assert [line for line in result.text("dmesg").splitlines()
                if line and not _USUAL.search(line)] == []

    def test_users_change_nothing(self, result: Result) -> None:
        lines = [line.split() for line in result.text("user").splitlines()]
        assert lines[0][0] == "hidden"
        assert {path.rpartition("/")[2] for _, _, path, _, _ in lines[1:]} == set(MODES), \
            "what vs-hostile.c finds, and MODES; HARDENING.md has them, too"
        for mode, uid, path, read, write in lines[1:]:
            assert (mode, uid, read, write) == \
                (MODES[path.rpartition("/")[2]], "0", "read", "-"), path


@pytest.mark.boots("parameters")
def test_parameters_are_refused_by_a_line_each(result: Result) -> None:
    seen, dmesg = sysfs.pairs(result.text("parameters")), result.text("dmesg")
    for name, values in HOSTILE_PARAMETERS.items():
        for value in values:
            what = "too large" if name == "cpuidle.governor" else "invalid"
            line = f": `{value or ''}' {what} for parameter `{name}'"
            assert dmesg.count(line) == [v or "" for v in values].count(value or ""), line
    assert seen["/sys/module/intel_idle/parameters/c02"] == "auto"
    assert seen["/sys/module/intel_idle/parameters/states_off"] == "0"
    assert seen["/sys/module/umwait/parameters/idle_poll"] == "off"
    assert seen[FREQ_MAX] == "255c"
    assert seen[f"{CPU}/cpuidle/current_governor"] == "teo"
    assert {v for path, v in seen.items() if path.endswith("/disable")} == {"0"}
    assert sysfs.warnings(dmesg) == []
