# SPDX-License-Identifier: GPL-2.0
"""Public reports: explain names what limits the clock or the sleep, and accuses nothing else.

data/reports/reports.toml says what is right about each, and where it is from.
"""
from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from cpuwhy import explain

REPORTS = Path(__file__).parent / "data/reports"
SAID: dict[str, dict[str, Any]] = tomllib.loads((REPORTS / "reports.toml").read_text())


def answer(name: str) -> tuple[set[str], list[str]]:
    """(kinds of texts that were recognised, kinds of limiters, most likely first)"""
    case = explain.of_files([str(REPORTS / f"{name}.txt")])
    return ({part.kind for part in case.material.recognised},
            [found.kind for found in explain.explain(case).limiters])


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.xfail(reason=said["open"], strict=True))
    if "open" in said else name for name, said in SAID.items()])
def test_the_right_limiter_comes_first(name: str) -> None:
    said = SAID[name]
    texts, limiters = answer(name)
    assert texts >= set(said["texts"]), "not recognised"
    assert (limiters or ["none"])[0] in said["answer"], said["why"]
    assert not set(limiters) & set(said.get("never", ())), said["why"]


def test_each_text_has_an_answer() -> None:
    assert {path.stem for path in REPORTS.glob("*.txt")} == set(SAID)
