# SPDX-License-Identifier: GPL-2.0
"""WAITPKG as the SDM has it; each case is a line of guest/src/vs-waitpkg.c."""

from __future__ import annotations

import re

import pytest
from guests import Guests

PRESENT = 16
ABSENT = 2


def _verdict(guests: Guests, scenario: str, number: int) -> str:
    text = guests.get(scenario).text("waitpkg")
    found = re.search(rf"^((not )?ok) {number} (.*)$", text, re.MULTILINE)
    assert found, f"no result {number} in:\n{text}"
    return f"{found[1]}: {found[3]}"


@pytest.mark.boots("waitpkg")
@pytest.mark.parametrize("number", range(1, PRESENT + 1))
def test_with_waitpkg(guests: Guests, number: int) -> None:
    assert _verdict(guests, "waitpkg", number).startswith("ok: ")


@pytest.mark.boots("no-waitpkg")
@pytest.mark.parametrize("number", range(1, ABSENT + 1))
def test_without_waitpkg(guests: Guests, number: int) -> None:
    assert _verdict(guests, "no-waitpkg", number).startswith("ok: ")


@pytest.mark.boots("waitpkg")
def test_nothing_is_left_out(guests: Guests) -> None:
    assert f"1..{PRESENT}" in guests.get("waitpkg").text("waitpkg").splitlines()
