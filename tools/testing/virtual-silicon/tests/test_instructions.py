# SPDX-License-Identifier: GPL-2.0
"""WAITPKG as the SDM has it; each case is a line of guest/src/vs-waitpkg.c."""

from __future__ import annotations

import re

import pytest
from virtual_silicon.guest.boot import Result

PRESENT = 16
ABSENT = 2


def _verdict(result: Result, number: int) -> str:
    text = result.text("waitpkg")
    found = re.search(rf"^((not )?ok) {number} (.*)$", text, re.MULTILINE)
    assert found, f"no result {number} in:\n{text}"
    return f"{found[1]}: {found[3]}"


@pytest.mark.boots("waitpkg")
@pytest.mark.parametrize("number", range(1, PRESENT + 1))
def test_with_waitpkg(result: Result, number: int) -> None:
    assert _verdict(result, number).startswith("ok: ")


@pytest.mark.boots("no-waitpkg")
@pytest.mark.parametrize("number", range(1, ABSENT + 1))
def test_without_waitpkg(result: Result, number: int) -> None:
    assert _verdict(result, number).startswith("ok: ")


@pytest.mark.boots("waitpkg")
def test_nothing_is_left_out(result: Result) -> None:
    assert f"1..{PRESENT}" in result.text("waitpkg").splitlines()
