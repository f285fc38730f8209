# SPDX-License-Identifier: GPL-2.0
"""Clocks of scripted traces: means, and episodes, are known."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from cpuwhy import freq
from cpuwhy.errors import Fail
from cpuwhy.events import Source
from cpuwhy.tests.scripted import Script
from cpuwhy.tests.test_cli import run

BASE = 2_000_000        # kHz


def busy(script: Script, ms: float, tid: int, comm: str = "worker") -> None:
    """From idle to a task, or with 0 back."""
    if tid:
        script.task(ms * 1000, 0, tid, comm)
    else:
        script.add(ms * 1000, 0, comm, 7, "sched:sched_switch",
                   f"prev_comm={comm} prev_pid=7 prev_prio=120 prev_state=S ==>"
                   " next_comm=swapper/0 next_pid=0 next_prio=120")


def ask(script: Script, ms: float, mhz: int) -> None:
    script.add(ms * 1000, 0, "worker", 7, "power:cpu_frequency", f"state={mhz * 1000} cpu_id=0")


class Counters:
    """APERF and MPERF as the tick reads them; @mhz since the last time."""

    def __init__(self, script: Script, ms: float):
        self.script, self.ms, self.aperf, self.mperf = script, ms, 1000, 1000
        self.read(ms, 0)

    def read(self, ms: float, mhz: float) -> None:
        self.aperf += round((ms - self.ms) * 1000 * mhz)
        self.mperf += round((ms - self.ms) * BASE)
        self.ms = ms
        for offset, (msr, value) in enumerate((("e8", self.aperf), ("e7", self.mperf))):
            self.script.add(ms * 1000 + offset * 0.1, 0, "worker", 7, "msr:read_msr",
                            f"{msr}, value {value:x}")


def analyse(script: Script, tmp_path: Path, threshold_ms: float = 1) -> freq.Result:
    path = tmp_path / "trace"
    path.write_text(script.text())
    return freq.analyse(Source(path), None, "trace", BASE, round(threshold_ms * 1e6),
                        lambda now, facts: None)


def late(script: Script, got: float = 3000) -> None:
    """800 MHz; a task runs from 10 ms on; 1600 are asked for after 4 ms, 3000 after 10."""
    ask(script, 0, 800)
    script.add(1, 0, "x", 1, "power:cpu_frequency_limits", "min=800000 max=3000000 cpu_id=0")
    busy(script, 10, 7)
    counters = Counters(script, 10)
    ask(script, 14, 1600)
    counters.read(18, 1200)
    ask(script, 20, 3000)
    counters.read(22, 2000)
    counters.read(26, got)
    busy(script, 30, 0)


def test_a_task_that_waits(script: Script, tmp_path: Path) -> None:
    late(script)
    result = analyse(script, tmp_path)
    episode, = result.episodes
    assert (episode.task, episode.waited, episode.first, episode.steps) == (
        "worker", 10_000_000, 4_000_000, 2)
    assert (episode.low, episode.high, episode.limit) == (800_000, 3_000_000, 3_000_000)
    assert episode.reached == pytest.approx(2_000_000, abs=1000)
    assert "asked in 2 steps, first after 4.0 ms; up to the policy's limit" in episode.why()
    cpu = result.cpus[0]
    # 20 ms of 30 at 100 %; 14 ms of 800, 6 of 1600, 10 of 3000 MHz.
    assert cpu.busy.mean() == pytest.approx(100)
    assert cpu.asked.mean() == pytest.approx((14 * 800 + 6 * 1600 + 10 * 3000) / 30 * 1000)
    assert cpu.clock.mean() == pytest.approx((8 * 1200 + 4 * 2000 + 4 * 3000) / 16 * 1000,
                                             rel=1e-3)


def test_a_clock_that_does_not_come(script: Script, tmp_path: Path) -> None:
    late(script, got=2500)
    episode, = analyse(script, tmp_path).episodes
    assert episode.reached == -1 and "clock got to 2500 MHz only" in episode.why()


def test_short_waits_and_small_rises_are_none(script: Script, tmp_path: Path) -> None:
    late(script)
    assert not analyse(script, tmp_path, threshold_ms=10.1).episodes
    small = Script(script.form)
    ask(small, 0, 1000)
    busy(small, 10, 7)
    ask(small, 20, 1099)
    busy(small, 30, 0)
    assert not analyse(small, tmp_path).episodes
    ask(small, 31, 1000)
    busy(small, 40, 7)
    ask(small, 50, 1100)
    busy(small, 60, 0)
    assert len(analyse(small, tmp_path).episodes) == 1


def test_register_writes_are_requests(script: Script, tmp_path: Path) -> None:
    """0x199 for 2600 MHz, 0x774 with a desired ratio of 0x1c, then one with a maximum."""
    for ms, text in ((0, "199, value 1a00"), (10, "774, value 1c2208"), (20, "774, value 2208"),
                     (30, "199, value 2200")):
        script.add(ms * 1000, 0, "x", 1, "msr:write_msr", text)
    script.add(40_000, 0, "x", 1, "power:cpu_idle", "state=1 cpu_id=0")
    cpu = analyse(script, tmp_path).cpus[0]
    assert cpu.requests == 3
    assert cpu.asked.mean() == pytest.approx((2600 + 2800 + 3400 * 2) / 4 * 1000)


def test_timeline_keeps_its_mean_when_it_halves() -> None:
    line = freq.Timeline()
    for second in range(20):
        line.add(second * 10**9, (second + 1) * 10**9, second)
    assert line.mean() == pytest.approx(9.5) and len(line.sums) <= freq.BINS
    assert line.points()[-1][1] == pytest.approx(19)


def test_no_requests(script: Script, tmp_path: Path) -> None:
    busy(script, 10, 7)
    with pytest.raises(Fail, match="has no frequency requests"):
        analyse(script, tmp_path)


def test_what_the_program_prints(tmp_path: Path) -> None:
    script = Script()
    late(script)
    path = tmp_path / "trace"
    path.write_text(script.text())
    done = run("freq", path, "--base-mhz", 2000, "--plot", tmp_path / "picture.svg")
    assert done.returncode == 0 and max(map(len, done.stdout.splitlines())) <= 80
    assert "worker" in done.stdout and "have no events in 6.12" in done.stdout
    assert (tmp_path / "picture.svg").stat().st_size > 1000
    data, = json.loads(run("freq", path, "--json").stdout)
    assert data["episodes"][0]["waited"] == 10_000_000
