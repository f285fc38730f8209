# SPDX-License-Identifier: GPL-2.0
"""The same start twice, with the host busy the second time; the compact trace."""

from __future__ import annotations

import dataclasses

import pytest
from guests import Guests
from virtual_silicon.guest import repeat
from virtual_silicon.guest.boot import Config
from virtual_silicon.readers import trace


def test_what_differs_is_named() -> None:
    def run(text: str) -> repeat.Run:
        return repeat.Run({"a": "1", "b": text}, 1.0, 1.0, 1.0, 1, False, 0)
    assert repeat.differing([run("1"), run("1")]) == []
    assert repeat.differing([run("1"), run("2"), run("1")]) == ["b"]


def _config(guests: Guests, **more: object) -> Config:
    c = guests.config("repeat-1")
    return dataclasses.replace(c, out=c.out / "again", **more)


@pytest.mark.boots("repeat-1")
def test_loaded_host_and_compact_trace(guests: Guests) -> None:
    """Console, answers, counters and events are those of the shared scenario."""
    first = guests.get("repeat-1")
    assert first.trace
    c = _config(guests, compact=True)
    run = repeat.once(c, load=3)
    again = c.out
    for name in ("console.log", "results.log", "model.json"):
        assert (again / name).read_bytes() == (first.trace.parent / name).read_bytes()
    packed = again / "trace.gz"
    assert trace.read(packed) == trace.read(first.trace)
    assert packed.stat().st_size < 0.35 * first.trace.stat().st_size
    assert run.instructions > 100e6 and run.loaded
