# SPDX-License-Identifier: GPL-2.0
"""Traces for cpuidle-replay: what a governor would have been told."""
from __future__ import annotations

import lzma
from pathlib import Path

import pytest
from cpuwhy import replay
from cpuwhy.errors import Fail
from cpuwhy.events import Source
from cpuwhy.states import Machine
from cpuwhy.tests.scripted import Script

HZ = 250
TICK = 4000                     # us


def convert(script: Script, tmp_path: Path, machine: Machine | None) -> list[list[str]]:
    path = tmp_path / "trace"
    path.write_text(script.text())
    writer = replay.convert(Source(path), machine, str(tmp_path / "out"), 0, lambda now, f: None)
    with lzma.open(writer.path(0), "rt") as lines:
        header, columns, *rows = lines.read().splitlines()
    assert f"hz={HZ}; tick_ns={TICK * 1000}" in header and columns == replay.COLUMNS
    return [row.split(",") for row in rows]


def mono() -> Machine:
    return Machine(hz=HZ, clock="mono", governor="ladder", workload="a; b")


def timer(script: Script, us: float, address: str, function: str, expires_us: float) -> None:
    script.add(us, 0, "task", 5, "timer:hrtimer_start",
               f"hrtimer=0x{address} function={function} expires="
               f"{script.start + round(expires_us * 1000)} softexpires=0")


def test_periods(script: Script, tmp_path: Path) -> None:
    """The tick is due at 4 ms, a task's timer at 9 ms, the wheel's next at 20 ms."""
    timer(script, 0, "a", "tick_nohz_handler", TICK)
    timer(script, 10, "b", "hrtimer_wakeup", 9000)
    # Tick retained; a device ends it.
    script.idle(100, 1)
    script.add(300, 0, "swapper", 0, "irq:irq_handler_entry", "irq=42 name=nic")
    script.idle(301, -1)
    # Back in idle at once, the tick is stopped now; a task is to run.
    script.add(310, 0, "swapper", 0, "timer:tick_stop", "success=1 dependency=NONE")
    timer(script, 311, "a", "tick_nohz_handler", 20000)
    script.idle(320, 1)
    script.add(820, 0, "swapper", 0, "irq_vectors:reschedule_entry", "vector=253")
    script.idle(821, -1)
    script.task(825, 0, 5, "task")
    # The task's timer ends this one.
    script.add(1000, 0, "task", 5, "timer:hrtimer_cancel", "hrtimer=0xb")
    timer(script, 1001, "b", "hrtimer_wakeup", 3000)
    script.idle(1100, 1)
    script.add(3005, 0, "swapper", 0, "irq_vectors:local_timer_entry", "vector=236")
    script.add(3006, 0, "swapper", 0, "timer:hrtimer_expire_entry",
               "hrtimer=0xb function=hrtimer_wakeup now=1")
    script.idle(3007, -1)
    script.task(3010, 0, 5, "task")
    rows = convert(script, tmp_path, mono())
    #     cpu  entry      duration   wake       sleep      delta     next src irq  flags state
    assert rows == [
        ["0", "100000", "201000", "200000", "3900000", "3900000", "k", "D", "42", "0", "1"],
        ["0", "320000", "501000", "500000", "8680000", "3680000", "h", "R", "0", "22", "1"],
        ["0", "1100000", "1907000", "1905000", "1900000", "1900000", "h", "T", "0", "36", "1"]]


def refuse(script: Script, tmp_path: Path, machine: Machine | None, reason: str) -> None:
    with pytest.raises(Fail, match=reason):
        convert(script, tmp_path, machine)
    assert not list(tmp_path.glob("out*"))


def test_lost_events_make_it_worthless(script: Script, tmp_path: Path) -> None:
    timer(script, 0, "a", "tick_nohz_handler", TICK)
    script.idle(100, 1)
    script.idle(200, -1)
    script.task(201, 0, 5, "task")
    assert len(convert(script, tmp_path, mono())) == 1
    (tmp_path / "out.cpu0.csv.xz").unlink()
    script.lines.append("CPU:0 [7 EVENTS DROPPED]")
    refuse(script, tmp_path, mono(), "7 events were lost")


def test_the_clock_has_to_be_that_of_the_timers(script: Script, tmp_path: Path) -> None:
    script.idle(100, 1)
    refuse(script, tmp_path, Machine(hz=HZ, clock="local"), "monotonic clock")


def test_hz_has_to_be_known(script: Script, tmp_path: Path) -> None:
    script.idle(100, 1)
    refuse(script, tmp_path, None, "--hz")


def test_events_that_are_needed(script: Script, tmp_path: Path) -> None:
    script.idle(100, 1)
    refuse(script, tmp_path, mono(), "has no hrtimer_start events")
