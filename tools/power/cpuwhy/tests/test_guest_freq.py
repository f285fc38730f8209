# SPDX-License-Identifier: GPL-2.0
"""Against known truth: bursts of a task in a guest, and the clocks as the model had them."""
from __future__ import annotations

from dataclasses import dataclass

import pytest
from cpuwhy import freq, states
from cpuwhy.events import Source
from cpuwhy.record import sidecar
from cpuwhy.tests import scripted_guest as scripted
from virtual_silicon import paths
from virtual_silicon.errors import MissingError
from virtual_silicon.readers.trace import Trace

#: 3600 MHz for one or two active cores of this part, 3300 for four.
PART, TOP, FOUR = "e5-2698-v4", 3_600_000, 3_300_000
LIMIT, HELD_US = 2_000_000, 40_000
BURST_NS = 200_000_000
PLAIN, HELD, LIMITED, CROWDED = range(0, 3), range(3, 6), range(6, 8), range(8, 10)
BURST = f"sleep 0.3; vs-load -c 1 -t {BURST_NS / 1e9} >/dev/null; "
LOAD = f"""
        {BURST * len(PLAIN)}
        put {HELD_US} $CPU/cpufreq/schedutil/rate_limit_us
        {BURST * len(HELD)}
        put 500 $CPU/cpufreq/schedutil/rate_limit_us
        put {LIMIT} $CPU/cpu1/cpufreq/scaling_max_freq
        {BURST * len(LIMITED)}
        put {TOP} $CPU/cpu1/cpufreq/scaling_max_freq
        vs-load -c 0,2,3 -t 1.2 >/dev/null &
        {BURST * len(CROWDED)}
        wait"""


@dataclass
class Burst:
    """A busy time of CPU 1 as the model has it."""
    start: int
    clocks: list[tuple[int, int]]       # (ns, kHz); the first is what it began with

    @property
    def waited(self) -> int:
        """From the beginning, or the fall to the lowest clock, to the highest after it."""
        low = min(khz for _, khz in self.clocks)
        begin = next(i for i, (_, khz) in enumerate(self.clocks) if khz == low)
        high = max(khz for _, khz in self.clocks[begin:])
        reached = next(ns for ns, khz in self.clocks[begin:] if khz == high)
        return reached - max(self.start, self.clocks[begin][0])

    @property
    def highest(self) -> int:
        return self.clocks[-1][1]


def bursts(trace: Trace) -> list[Burst]:
    found, begin = [], 0
    for at, state in trace.idle[1]:
        if state is None:
            begin = at
        elif at - begin > 0.9 * BURST_NS and begin > trace.mark(scripted.BEGIN).time_ns:
            before = [khz for ns, khz in trace.khz[1] if ns <= begin][-1]
            found.append(Burst(begin, [(begin, before), *(
                (ns, khz) for ns, khz in trace.khz[1] if begin < ns < at)]))
    return found


@pytest.fixture(scope="module")
def pairs() -> list[tuple[Burst, freq.Episode]]:
    """Each burst with its episode."""
    try:
        kernel, qemu = paths.kernel("base"), paths.qemu()
    except MissingError as missing:
        pytest.skip(str(missing))
    recorded = scripted.run(
        paths.BUILD / "test/cpuwhy-freq", kernel, qemu, LOAD,
        append="intel_pstate=passive cpufreq.default_governor=schedutil", kind="freq", part=PART,
        rate_limit=HELD_US)
    result = freq.analyse(Source(recorded.path), states.load(sidecar(recorded.path)), "guest",
                          0, 1_000_000, lambda now, facts: None)
    model = bursts(recorded.model)
    episodes = sorted((e for e in result.episodes if e.cpu == 1), key=lambda e: e.start)
    assert len(model) == len(PLAIN) + len(HELD) + len(LIMITED) + len(CROWDED)
    assert len(episodes) == len(model)
    return list(zip(model, episodes))


Pairs = list[tuple[Burst, freq.Episode]]


def test_who_and_how_long(pairs: Pairs) -> None:
    """The kernel's times are those of the model's clock; where the bin is the limit the
    clock is there before the last request."""
    for number, (burst, episode) in enumerate(pairs):
        assert episode.task == "vs-load", number
        if number not in CROWDED:
            assert episode.waited == pytest.approx(burst.waited, abs=1_000_000), number
            assert episode.high == burst.highest, number
        else:
            assert episode.waited >= burst.waited


def test_why(pairs: Pairs) -> None:
    """Each burst's reason, and no other's."""
    for number, (burst, episode) in enumerate(pairs):
        why = episode.why()
        assert (episode.held == HELD_US * 1000) == (number in HELD), (number, why)
        assert ("policy's limit of 2000 MHz" in why) == (number in LIMITED), (number, why)
        assert ("clock got to 3300 MHz only" in why) == (number in CROWDED), (number, why)
        assert (episode.reached >= 0) == (number not in CROWDED), (number, why)
        assert burst.highest == (LIMIT if number in LIMITED else
                                 FOUR if number in CROWDED else TOP), number


#: CPU 1 has bursts, after some work by which its lowest request is known; of CPU 2 MPERF counts
#: five times too slowly; of CPU 3 every read of it gives the same. Then tasks take turns, and
#: others that only look like it do not.
FAULTS = "2 rate counter=mperf permille=200 at=1s\n3 freeze counter=mperf at=3s\n"
QUICK, SLOW = range(0, 2), range(2, 4)
OURS = f"""
        S=$CPU/cpufreq/schedutil; pairs 0; put 0 $S/rate_limit_us
        taskset 2 seq 20000 >/dev/null
        {BURST * len(QUICK)}
        put {HELD_US} $S/rate_limit_us
        {BURST * len(SLOW)}
        put 500 $S/rate_limit_us
        {BURST}
        for i in 2 3 3; do sleep 0.3; vs-load -c $i -t 0.2 >/dev/null; done
        for load in legs1 parallel producer; do
                sleep 0.3; /selftests/sched_pairs/conversations $load 1
        done >&2
        pairs 1; sleep 0.3; /selftests/sched_pairs/conversations legs1 1 >&2"""


def ours(name: str, append: str, load: str, faults: str = "") -> tuple[scripted.Recorded,
                                                                       freq.Result]:
    try:
        kernel, qemu = paths.kernel("patched"), paths.qemu()
    except MissingError as missing:
        pytest.skip(str(missing))
    if not paths.selftests():
        pytest.skip("the selftests are not built")
    recorded = scripted.run(
        paths.BUILD / f"test/cpuwhy-freq-{name}", kernel, qemu, load, kind="freq", part=PART,
        append=f"intel_pstate=passive cpufreq.default_governor=schedutil {append}",
        rate_limit=HELD_US, faults=faults)
    return recorded, freq.analyse(Source(recorded.path), states.load(sidecar(recorded.path)),
                                  "guest", 0, 1_000_000, lambda now, facts: None)


@pytest.fixture(scope="module")
def faulty() -> tuple[scripted.Recorded, freq.Result]:
    return ours("ours", "", OURS, FAULTS)


def single(result: freq.Result, cpu: int) -> list[freq.Episode]:
    return sorted((e for e in result.episodes if e.cpu == cpu and not e.turns
                   and e.task == "vs-load"), key=lambda e: e.start)


def test_waits(faulty: tuple[scripted.Recorded, freq.Result]) -> None:
    """Each burst waits for as long as the model says, the last no longer than saturation."""
    recorded, result = faulty
    episodes, model = single(result, 1), bursts(recorded.model)
    assert len(episodes) == len(model) == len(QUICK) + len(SLOW) + 1
    for number, (burst, episode) in enumerate(zip(model, episodes)):
        assert episode.waited == pytest.approx(burst.waited, abs=1_000_000), number
    assert episodes[-1].waited < 20_000_000


def test_quarantined(faulty: tuple[scripted.Recorded, freq.Result]) -> None:
    """The CPU whose counter stands still, and no other. Clocks of the one whose counter is slow
    make no sense in every reading; of the other, only if one reading is half before the fault."""
    recorded, result = faulty
    assert set(states.load(sidecar(recorded.path)).skipped) == {3}
    episode = single(result, 3)[-1]
    assert "samples of its counters were bad" in episode.why()
    assert not any("were bad" in e.why() for e in result.episodes if e.cpu != 3)
    assert any(note.startswith("CPU 2: ") and "make no sense" in note for note in result.notes)
    assert all(khz < 2 * TOP for cpu in (2, 3) for _, khz in result.cpus[cpu].clock.points())


def test_tasks_that_take_turns(faulty: tuple[scripted.Recorded, freq.Result]) -> None:
    """legs1 has two, 1 ms each, for a second. It is found once: with pairs its clock is
    the highest; the tasks of the other loads work at once or rest. At the start of parallel
    two may share a CPU for a while, and then they do take turns (30 ms on Linux 7.3)."""
    talk, *others = sorted((e for e in faulty[1].episodes if e.turns), key=lambda e: -e.waited)
    assert sum(e.waited for e in others) < 0.05 * talk.waited
    assert not others or paths.BUILD.name != "build"	# build/7.3
    assert "conversations and conversations" in talk.task or talk.task == "conversations"
    assert talk.waited == pytest.approx(1e9, rel=0.1)
    assert talk.turns == pytest.approx(talk.waited / 1e6 * talk.low / TOP, rel=0.3)
    assert talk.low < 0.9 * TOP and talk.high == TOP


def test_invariance_off() -> None:
    """Utilisation is measured against the present clock, so that it takes steps."""
    _, result = ours("off", "aperfmperf.freq_max=off", f"{BURST}")
    episode, = single(result, 1)
    assert "frequency invariance is off" in episode.why(), episode.why()
