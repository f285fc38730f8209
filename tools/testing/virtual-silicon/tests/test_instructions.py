# SPDX-License-Identifier: GPL-2.0
"""WAITPKG in a program under a kernel; each case is a line of guest/src/vs-waitpkg.c."""

from __future__ import annotations

import re

import pytest
from virtual_silicon.guest.boot import Result

CASES = 5


@pytest.mark.boots("waitpkg")
@pytest.mark.parametrize("number", range(1, CASES + 1))
def test_with_waitpkg(result: Result, number: int) -> None:
    text = result.text("waitpkg")
    assert re.search(rf"^ok {number} ", text, re.MULTILINE) and f"1..{CASES}" in text, text
