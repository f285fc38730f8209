# SPDX-License-Identifier: GPL-2.0
"""Parts made from dumps: the base kernel and turbostat see what was read on them."""

from __future__ import annotations

import pytest
from guests import each
from scenarios import PART_MACHINES
from virtual_silicon.guest.boot import Result
from virtual_silicon.guest.job import Answer
from virtual_silicon.studies import stock_tools


@pytest.mark.parametrize("name", each(PART_MACHINES, "part-"))
def test_guest_sees_what_was_read_on_the_part(name: str, result: Result) -> None:
    row = stock_tools.parts_row(stock_tools.parts()[name], result)
    assert not row.wrong, row.cells
    # none of these has less to be compared with
    assert row.cells[1] == row.cells[2] and row.cells[5] == "the same"


STATES = [("POLL", 0, 0), ("C1", 1, 1), ("C1E", 2, 4), ("C6", 290, 800)]
SEEN = {
    "header": "8 * 100.0 = 800.0 MHz max efficiency frequency\n"
              "19 * 100.0 = 1900.0 MHz base frequency\n"
              "29 * 100.0 = 2900.0 MHz max turbo 64 active cores\n"
              "39 * 100.0 = 3900.0 MHz max turbo 32 active cores\n",
    "registers": "0x1ad 0x1d1d1e1e1f212327\n0x1ae 0x403e3a36322e2820\n",
    "cpuidle": "".join(
        f"/sys/devices/system/cpu/cpu0/cpuidle/state{n}/{key}:{value}\n"
        for n, (name, latency, residency) in enumerate(STATES)
        for key, value in (("name", name), ("latency", latency), ("residency", residency),
                           ("usage", 0), ("time", 0))),
    "dmesg": "Estimated ratio of average max frequency by base frequency "
             "(times 1024): 1670\n",
}

#: a step of the guest, what it says and is made to say, and the remark
DIFFERENT = [
    ("dmesg", "1670", "2101", "ratio differ"),
    ("registers", "1f212327", "1f212328", "turbo table differ"),
    ("header", "3900.0 MHz max", "3800.0 MHz max", "turbo table differ"),
    ("cpuidle", "latency:290", "latency:190", "idle states differ"),
    ("cpuidle", "name:C1E", "name:C2", "idle states differ"),
    ("dmesg", "Estimated", "BUG: x\nEstimated", "BUG: x"),
]


def row(seen: dict[str, str]) -> stock_tools.Row:
    answer = Answer()
    for name, text in seen.items():
        answer.feed(f"vs:begin {name}\n{text}vs:end {name} 0\n")
    return stock_tools.parts_row(stock_tools.parts()["platinum-8592"],
                             Result(0, answer, 1, 1, "", {}, None))


def test_what_agrees_is_not_wrong() -> None:
    seen = row(SEEN)
    assert (seen.wrong, seen.cells[-1]) == (False, "none")
    assert seen.cells[3] == "registers; 2 of 2 steps of turbostat"


@pytest.mark.parametrize("step,old,new,remark", DIFFERENT)
def test_what_differs_is_told(step: str, old: str, new: str, remark: str) -> None:
    assert old in SEEN[step]
    seen = row(SEEN | {step: SEEN[step].replace(old, new)})
    assert (seen.wrong, seen.cells[-1]) == (True, remark)
