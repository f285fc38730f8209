# SPDX-License-Identifier: GPL-2.0
"""The same start twice, with the host busy the second time; the compact trace."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest
from guests import Guests
from virtual_silicon.guest import boot
from virtual_silicon.readers import trace


@pytest.mark.boots("repeat-1")
def test_loaded_host_and_compact_trace(guests: Guests) -> None:
    """Console, answers, counters and events are those of the shared scenario."""
    first = guests.get("repeat-1")
    assert first.trace
    c = guests.config("repeat-1")
    c = dataclasses.replace(c, out=c.out / "again", compact=True)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    try:
        again = boot.run(c)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    for name in ("console.log", "results.log", "model.json"):
        assert (c.out / name).read_bytes() == (first.trace.parent / name).read_bytes()
    assert again.trace == c.out / "trace.gz"
    assert trace.read(again.trace) == trace.read(first.trace)
    assert again.trace.stat().st_size < 0.35 * first.trace.stat().st_size
