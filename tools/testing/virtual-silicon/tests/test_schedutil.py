# SPDX-License-Identifier: GPL-2.0
"""schedutil's tunables and what it does under load, in the patched kernel."""

from __future__ import annotations

import re

import pytest
from guests import Guests
from scenarios import SCHEDUTIL_REFUSED
from virtual_silicon import guestdata

pytestmark = pytest.mark.boots("schedutil")


def values(text: str) -> dict[str, int]:
    """{last part of the file's name: value}"""
    return {name.rsplit("/", 1)[1]: int(value)
            for name, _, value in (line.partition(":") for line in text.split())}


def counts(text: str) -> dict[str, int]:
    """Counters summed over the policies."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, value = line.partition(":")[2].split()
        found[name] = found.get(name, 0) + int(value)
    return found


def test_defaults(guests: Guests) -> None:
    found = values(guests.get("schedutil").text("defaults"))
    assert found.pop("cost_ns") > 0		# measured since the boot
    assert found == {"rate_limit_us": 500, "cost_permille": 10, "urgent_up": 128,
                     "urgent_down": 0, "saturation_us": 8000}


@pytest.mark.parametrize("name", SCHEDUTIL_REFUSED)
def test_values_out_of_range_change_nothing(guests: Guests, name: str) -> None:
    assert guests.get("schedutil").text(f"refused-{name}") == ""


def test_rate_limit_written_by_hand_until_the_cost_decides_again(guests: Guests) -> None:
    assert guests.get("schedutil").text("fixed").split() == ["700", "0", "500"]


def test_nothing_is_counted_unless_asked_for(guests: Guests) -> None:
    assert not any(counts(guests.get("schedutil").text("off")).values())


def test_most_calls_return_early(guests: Guests) -> None:
    found = counts(guests.get("schedutil").text("hackbench"))
    assert found["calls"] > 200
    assert found["computed"] <= found["calls"] / 10
    assert found["sent"] == found["at_once"] + found["at_end"] <= found["computed"]


@pytest.mark.parametrize("suite", ["schedutil_holdoff", "schedutil_saturation"])
def test_kunit(guests: Guests, suite: str) -> None:
    text = guests.get("schedutil").text("dmesg")
    passed = re.search(rf"\] # {suite}: pass:(\d+) fail:0 skip:0 total:(\d+)$", text, re.M)
    assert passed, text
    assert passed[1] == passed[2] != "0"


def test_random_streams(guests: Guests) -> None:
    """Of a million none may break a rule; the changes are told beside the base's."""
    text = guests.get("schedutil").text("dmesg")
    found = re.search(r"(\d+) streams: (\d+) changes, (\d+) without a limit", text)
    assert found and int(found[1]) >= 1000000
    assert int(found[2]) < int(found[3])


def test_kselftest(guests: Guests) -> None:
    result = guests.get("schedutil")
    text = result.text("kselftest")
    assert result.step_status("kselftest") == 0, text
    assert "not ok" not in text and "ok 12 " in text and "SKIP" not in text


def test_kernel_has_nothing_to_complain_of(guests: Guests) -> None:
    assert guestdata.warnings(guests.get("schedutil").text("dmesg")) == []
