# SPDX-License-Identifier: GPL-2.0
"""The package's place, and what the tests share."""
from __future__ import annotations

from pathlib import Path

import pytest
from cpuwhy.tests.scripted import TABLE, Script


@pytest.fixture(params=["perf", "trace-cmd"])
def script(request: pytest.FixtureRequest) -> Script:
    return Script(request.param)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "states"
    path.write_text(TABLE)
    return path
