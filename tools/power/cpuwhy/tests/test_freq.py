# SPDX-License-Identifier: GPL-2.0
"""Clocks of scripted traces: means, and episodes, are known."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from cpuwhy import freq
from cpuwhy.errors import Fail
from cpuwhy.events import Source
from cpuwhy.states import Machine, Policy
from cpuwhy.tests.scripted import Script
from cpuwhy.tests.test_cli import run

BASE = 2_000_000        # kHz


def busy(script: Script, ms: float, tid: int, comm: str = "worker") -> None:
    """From idle to a task, or with 0 back."""
    if tid:
        script.task(ms * 1000, 0, tid, comm)
    else:
        script.switch(ms * 1000, 0, (comm, 7), ("swapper/0", 0))


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


def analyse(script: Script, tmp_path: Path, threshold_ms: float = 1,
            machine: Machine | None = None, base: int = BASE) -> freq.Result:
    path = tmp_path / "trace"
    path.write_text(script.text())
    return freq.analyse(Source(path), machine, "trace", base, round(threshold_ms * 1e6),
                        lambda now, facts: None)


def late(script: Script, got: float = 3000) -> None:
    """800 MHz; a task runs from 10 ms on; 1600 are asked for after 4 ms, 3000 after 10."""
    ask(script, 0, 800)
    for at, top in ((1, 3600000), (2, 3000000)):
        script.add(at, 0, "x", 1, "power:cpu_frequency_limits",
                   f"min=800000 max={top} cpu_id=0")
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
    assert episode.why().startswith("asked in 2 steps, first after 4.0 ms; up to the policy's"
                                    " limit of 3000 MHz; clock there")
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


def climb(script: Script, begin: float, requests: list[tuple[float, int]]) -> None:
    """A busy time from @begin, with requests at ms after it."""
    busy(script, begin, 7)
    for after, mhz in requests:
        ask(script, begin + after, mhz)
    busy(script, begin + 200, 0)


def test_a_clock_that_was_lowered_first(script: Script, tmp_path: Path) -> None:
    """schedutil asks for less when the task begins, and then climbs: waiting begins there."""
    ask(script, 0, 3000)
    climb(script, 10, [(4, 1000), (24, 2000), (44, 3000), (60, 2900), (180, 3000)])
    episode, = analyse(script, tmp_path).episodes
    assert (episode.low, episode.high, episode.steps) == (1_000_000, 3_000_000, 2)
    assert (episode.first, episode.waited) == (20_000_000, 40_000_000)


@pytest.mark.parametrize("mask, cpus", [("04", {2}), ("0c", {2, 3}), ("1,00000004", {2, 32})])
def test_policy_frequency(mask: str, cpus: set[int], tmp_path: Path) -> None:
    """One event for all CPUs of a policy, in the place of cpu_frequency."""
    path = tmp_path / "trace"
    path.write_text("".join(
        f"          cat-5235  [002] ..s.  1177.6{n}1723: policy_frequency: state={khz}"
        f" cpu_id=2 policy_cpus={mask}\n" for n, khz in ((8, 2900000), (9, 1200000))))
    result = freq.analyse(Source(path), None, "trace", 0, 10**9, lambda now, facts: None)
    assert {number: (cpu.requests, cpu.request) for number, cpu in result.cpus.items()} == \
        dict.fromkeys(cpus, (2, 1_200_000.0))


def test_the_first_request_of_all(script: Script, tmp_path: Path) -> None:
    """What had been asked for before the recording is not known."""
    climb(script, 10, [(4, 1000), (24, 3000)])
    episode, = analyse(script, tmp_path).episodes
    assert (episode.low, episode.waited) == (1_000_000, 24_000_000)


@pytest.mark.parametrize("gaps, held", [((33, 32), True), ((33, 29.99), True), ((33, 29.9), False),
                                        ((33, 4), False), ((33, 60), False), ((33,), False)])
def test_held_by_the_rate_limit(gaps: tuple[float, ...], held: bool, script: Script,
                                tmp_path: Path) -> None:
    """Steps as far apart as the governor's limit: neither nearer nor much further."""
    ask(script, 0, 1000)
    at, requests = 4.0, [(4.0, 1500)]
    for step, gap in enumerate(gaps, 1):
        at += gap
        requests.append((at, 1500 + 500 * step))
    climb(script, 10, requests[:len(gaps)] if len(gaps) == 1 else requests)
    machine = Machine(hz=250, policies={0: Policy("schedutil", 3600000, 3600000, 30_000)})
    episode, = analyse(script, tmp_path, machine=machine).episodes
    assert episode.held == (30_000_000 if held else 0)
    assert ("held by rate_limit_us, 30 ms" in episode.why()) == held


@pytest.mark.parametrize("machine, said, unsaid", [
    (Machine(invariance="off: no turbo table"), "invariance is off: no turbo table", "bad"),
    (Machine(skipped={0: 9}), "9 samples of its counters were bad;", "invariance"),
    (Machine(skipped={1: 9}), "", "bad")])
def test_invariance(machine: Machine, said: str, unsaid: str, script: Script,
                    tmp_path: Path) -> None:
    """Off, or quarantined: bad counters."""
    ask(script, 0, 1000)
    busy(script, 10, 7)
    ask(script, 30.001, 2000)
    counters = Counters(script, 31)
    counters.read(35, 2000)
    busy(script, 60, 0)
    episode, = analyse(script, tmp_path, machine=machine).episodes
    assert said in episode.why() and unsaid not in episode.why(), episode.why()


@pytest.mark.parametrize("got, said", [
    (2500, "turbo bin of up to 4 active cores"), (2466, "turbo bin of up to 4 active cores"),
    (2400, "no turbo bin, so power, temperature or the hardware's own choice")])
def test_turbo_bins(got: int, said: str, script: Script, tmp_path: Path) -> None:
    late(script, got=got)
    machine = Machine(turbo=[(2, 3_000_000), (4, 2_500_000)])
    episode, = analyse(script, tmp_path, machine=machine).episodes
    assert said in episode.why()


def take_turns(script: Script, begin: float, turns: int, rest: float = 0,
               cpus: tuple[int, int] = (0, 1), pause: float = 0) -> float:
    """A client on one CPU and its server on the other work for 0.5 ms each."""
    ms = begin
    names, tids = ("client", "server"), (7, 8)
    for turn in range(turns):
        me, other = turn % 2, 1 - turn % 2
        script.task(ms * 1000, cpus[me], tids[me], names[me])
        ms += 0.5
        script.add(ms * 1000, cpus[me], names[me], tids[me], "sched:sched_waking",
                   f"comm={names[other]} pid={tids[other]} prio=120 target_cpu=001")
        script.switch((ms + 0.001) * 1000, cpus[me], (names[me], tids[me]),
                      (f"swapper/{cpus[me]}", 0))
        ms += 0.002
        if rest and turn % 4 == 1:
            # After every second answer the client thinks until a timer wakes it.
            script.add((ms + rest) * 1000, 0, "swapper", 0, "sched:sched_waking",
                       "comm=client pid=7 prio=120 target_cpu=000")
            ms += rest + 0.001
        if pause and turn == turns // 2:
            ms += pause
            script.add(ms * 1000, 0, "swapper", 0, "sched:sched_waking",
                       f"comm={names[other]} pid={tids[other]} prio=120 target_cpu=000")
    return ms


@pytest.mark.parametrize("turns, more, asked, found", [
    (100, {}, 1000, [100]), (100, {}, 2800, []), (10, {}, 1000, []),
    (100, {"rest": 1}, 1000, []), (100, {"cpus": (0, 0)}, 1000, []),
    (101, {"pause": 20}, 1000, [51, 50])])
def test_tasks_that_take_turns(turns: int, more: dict, asked: int, found: list[int],
                               script: Script, tmp_path: Path) -> None:
    for cpu in (0, 1):
        script.add(0, 0, "x", 1, "power:cpu_frequency", f"state={asked * 1000} cpu_id={cpu}")
    take_turns(script, 1, turns, **more)
    machine = Machine(policies={n: Policy("schedutil", 3000000, 3000000) for n in (0, 1)})
    result = analyse(script, tmp_path, machine=machine)
    # The first turn was not begun by the other one.
    assert [e.turns for e in sorted(result.episodes, key=lambda e: e.start)] == \
        [count - 1 for count in found]
    if len(found) == 1:
        episode, = result.episodes
        assert episode.task == "client and server" and "a conversation" in episode.why()
        assert (episode.low, episode.high) == (pytest.approx(asked * 1000), 3_000_000)
        assert episode.waited == pytest.approx(turns * 502_000, rel=0.03)


def test_limit_that_was_set_before(script: Script, tmp_path: Path) -> None:
    """A policy below its hardware's highest clock, by the recording's settings."""
    ask(script, 0, 1000)
    climb(script, 10, [(4, 2000)])
    for limit, highest, said in ((2_000_000, 3_600_000, True), (3_600_000, 3_600_000, False),
                                 (2_000_000, 2_000_000, False)):
        machine = Machine(policies={0: Policy("schedutil", limit, highest)})
        episode, = analyse(script, tmp_path, machine=machine).episodes
        assert ("up to the policy's limit" in episode.why()) == said


def test_reads_in_quick_succession_are_no_clock(script: Script, tmp_path: Path) -> None:
    """The governor reads the counters just after the tick did: 4 us are not measured."""
    ask(script, 0, 800)
    busy(script, 10, 7)
    counters = Counters(script, 10)
    ask(script, 12, 2000)
    counters.read(14, 1000)
    counters.read(14.004, 6000)
    counters.read(18, 2000)
    busy(script, 30, 0)
    episode, = analyse(script, tmp_path).episodes
    assert episode.got == pytest.approx(2_000_000, rel=0.01)


def test_who_ran_most(script: Script, tmp_path: Path) -> None:
    """Only what ran first is in the switches that are recorded; each reading of the counters
    has the task that runs."""
    ask(script, 0, 800)
    busy(script, 10, 9, "kworker/0:1")
    counters = Counters(script, 10)
    for ms in (14, 18, 22):
        counters.read(ms, 800)
    ask(script, 22.01, 2000)
    script.switch(30_000, 0, ("worker", 7), ("swapper/0", 0))
    episode, = analyse(script, tmp_path).episodes
    assert episode.task == "worker"


def test_a_counter_that_stands_still(script: Script, tmp_path: Path) -> None:
    ask(script, 0, 800)
    busy(script, 10, 7)
    counters = Counters(script, 10)
    counters.read(14, 1000)
    counters.read(18, 8_000)
    result = analyse(script, tmp_path)
    assert [khz for _, khz in result.cpus[0].clock.points()] == [pytest.approx(1e6, rel=1e-3)] * 4
    assert "CPU 0: 1 clocks make no sense and were left out" in result.notes


def test_base_frequency_from_a_sample(script: Script, tmp_path: Path) -> None:
    """pstate_sample has both counters and the clock that follows from them."""
    ask(script, 0, 800)
    script.add(1, 0, "x", 1, "power:pstate_sample", "core_busy=90 scaled=0 from=13 to=0"
               " mperf=8800000 aperf=5200000 tsc=8800000 freq=1300000 io_boost=0")
    counters = Counters(script, 10)
    counters.read(14, 1000)
    result = analyse(script, tmp_path, base=0)
    assert not any("base frequency" in note for note in result.notes)
    # Counters has 2000 MHz for the base, the sample 2200.
    assert result.cpus[0].clock.points()[-1][1] == pytest.approx(1_100_000, rel=1e-3)


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


def test_lost_events_end_what_is_known(script: Script, tmp_path: Path) -> None:
    """The CPU may have been idle meanwhile, so nobody is known to have waited."""
    ask(script, 0, 800)
    busy(script, 10, 7)
    script.lines.append("CPU:0 [12 EVENTS DROPPED]")
    ask(script, 20, 2000)
    busy(script, 30, 0)
    result = analyse(script, tmp_path)
    assert result.facts.lost == {0: 12} and not result.episodes
    assert not result.cpus[0].busy.points()


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
    assert "worker" in done.stdout
    assert (tmp_path / "picture.svg").stat().st_size > 1000
    data, = json.loads(run("freq", path, "--json").stdout)
    assert data["episodes"][0]["waited"] == 10_000_000
