# SPDX-License-Identifier: GPL-2.0
"""The idle governor in the patched kernel: KUnit, and our kselftest."""

from __future__ import annotations

import re

import pytest
from guests import Guests
from virtual_silicon.guest import boot
from virtual_silicon.readers import sysfs


@pytest.fixture
def teo(guests: Guests) -> boot.Result:
    return guests.get("teo")


@pytest.mark.boots("teo")
def test_can_be_selected(teo: boot.Result) -> None:
    default, available, now = teo.text("governors").splitlines()
    assert {"menu", "teo"} <= set(available.split())
    assert default == "menu" and now == "teo"


@pytest.mark.boots("teo")
def test_kunit(teo: boot.Result) -> None:
    lines = teo.text("dmesg").splitlines()
    start = next(n for n, line in enumerate(lines) if "# Subtest: cpuidle-teo" in line)
    end = next(n for n in range(start, len(lines)) if re.search(r"ok \d+ cpuidle-teo", lines[n]))
    suite = lines[start:end + 1]
    assert not any("not ok" in line for line in suite), "\n".join(suite)
    assert sum(bool(re.search(r" ok \d+ test_", line)) for line in suite) >= 10


@pytest.mark.boots("teo")
def test_kselftest(teo: boot.Result) -> None:
    text = teo.text("kselftest")
    assert teo.step_status("kselftest") == 0, text
    assert "not ok" not in text
    passed = [line for line in re.findall(r"^ok \d+ .*", text, re.M) if "# SKIP" not in line]
    assert len(passed) >= 9, text


@pytest.mark.boots("teo")
def test_kernel_has_nothing_to_complain_of(teo: boot.Result) -> None:
    assert sysfs.warnings(teo.text("dmesg")) == []
