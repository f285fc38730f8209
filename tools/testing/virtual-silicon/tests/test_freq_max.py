# SPDX-License-Identifier: GPL-2.0
"""freq_max of real parts: the base's, ours, what registers say, and results/freq-max.csv."""

from __future__ import annotations

import io
import re

import pytest
from cpuwhy import turbo
from virtual_silicon import paths
from virtual_silicon.studies.freq_max import parts as freq_max

DIAMOND_RAPIDS = turbo.number(19, 1)


@pytest.fixture(scope="module")
def rows() -> list[freq_max.Row]:
    return freq_max.rows()


def test_decoders_know_the_model_of_each_part(rows) -> None:
    """Not by chance: a model that a decoder does not have is read as bytes."""
    ratio = paths.ROOT / "tools/testing/selftests/freq_invariance/ratio.c"
    others = {int(model, 16): layout.lower() for model, layout
              in re.findall(r"\{ (0x\w+), ([A-Z]+), ", ratio.read_text(encoding="utf-8"))}
    assert len(others) > 20
    for model in {r.model for r in rows} | others.keys():
        layout = turbo.layout(model)
        assert layout, f"cpuwhy/turbo.py: LAYOUTS has no model {model:#x}"
        assert others.get(model, "bytes") == layout, \
            f"{ratio.name} and cpuwhy/turbo.py: not the same layout of model {model:#x}"


def test_ours_is_what_the_registers_say(rows) -> None:
    """By a decoder that has nothing in common with the kernel's."""
    complete = [r for r in rows if r.right() is not None]
    assert {r.name: (r.ours, r.right()) for r in complete if r.ours != r.right()} == {}, \
        "turbo_table.h and cpuwhy/turbo.py"
    assert len(complete) > 150


def test_servers_since_ice_lake_count_on_all_cores(rows) -> None:
    """On the part of the demo 2.9 of up to 3.9 GHz; on a server before them that with four."""
    ours = {freq_max.short(r.name): (r.right(patched=False), r.ours) for r in rows}
    assert ours["Xeon Platinum 8592+"] == (2101, 29 * 1024 // 19)
    assert ours["Xeon Platinum 8568Y+"] == (1780, 31 * 1024 // 23)
    assert {r.model for r in rows} & turbo.ALL_CORES == turbo.ALL_CORES - {DIAMOND_RAPIDS}
    for r in rows:
        four = r.right(patched=False)
        if four:
            assert r.ours <= four if r.model in turbo.ALL_CORES else r.ours == four, r.name


def test_models_that_are_not_known() -> None:
    """Groups by numbers of cores that rise; one group alone is read as bytes."""
    unknown = [r for r in freq_max.rows(as_model="fe") if r.right(patched=False) is not None
               and turbo.layout(r.model) in ("groups", "bytes")
               and r.model not in turbo.ONE_CORE]
    assert sum(turbo.layout(r.model) == "groups" for r in unknown) > 30
    assert {r.name: r.ours for r in unknown if r.ours != r.right(patched=False)} \
        == {"Intel Atom(R) P5362 processor": 2094}


def test_a_family_beyond_6() -> None:
    """No part was read yet: others' registers as its own."""
    read = [(r.name, r.ours, turbo.freq_max(DIAMOND_RAPIDS, r.registers, r.base_ratio))
            for r in freq_max.rows(as_model=f"{DIAMOND_RAPIDS:x}")
            if turbo.layout(r.model) == "groups"]
    assert [row for row in read if row[2] is not None and row[1] != row[2]] == []
    assert sum(row[2] is not None for row in read) > 30


def test_base_is_what_kernels_logged(rows) -> None:
    """What is compiled here is the rule that machines booted with. Other values come of
    turbo that was off, and of machines with another table and the same name."""
    logged = [(r, n) for r in rows for n in r.logged]
    same = [(r, n) for r, n in logged if r.base == n]
    assert (len(same), len(logged)) == (25, 36)


def test_results_have_the_table(rows) -> None:
    text = io.StringIO()
    freq_max.write(rows, text)
    assert len(text.getvalue().splitlines()) > 15
    assert (paths.ROOT / "results/freq-max.csv").read_text(encoding="utf-8").endswith(
        text.getvalue()), "the head of results/freq-max.csv has its command"
