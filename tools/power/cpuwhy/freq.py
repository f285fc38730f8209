# SPDX-License-Identifier: GPL-2.0
"""Clocks over time, and the episodes in which a task waited for its clock.

Requests are the events cpu_frequency, or policy_frequency in its place, pstate_sample and
amd_pstate_perf and the writes of the registers behind them; the clock is what the kernel's own
reads of APERF and MPERF, or the sample events, say. Reasons are inferred from the requests' times.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from .errors import Fail
from .events import Facts, Handler, Reader, Source, switch, task
from .states import Machine

#: A request higher by this much than at first is one that was waited for.
RISE = 1.1
#: A clock this near to the request is the request's.
REACHED = 0.95
#: Clocks over less than this are those of the reads themselves.
SHORTEST = 100_000              # ns
#: No CPU has such a clock: a counter stood still for a part of the time.
SENSELESS = 7_000_000           # kHz
#: A governor's rate limit shorter than the tick is not what is waited for.
TICK = 4_000_000                # ns, if it is not known
#: A clock this near to a turbo bin's is the bin's.
BIN = 0.015
#: Two tasks take turns if they do so this often without a longer pause, and each only works
#: or waits for a CPU, nothing else, for this share of the time.
TURNS, PAUSE, WORKING = 20, 10_000_000, 0.8
#: So many tasks are remembered, before those that were woken longer ago are forgotten.
MOST_TASKS, LONG_AGO = 50_000, 1_000_000_000
#: Without a tick, a request that does not come for so long is none.
STUCK = 20_000_000              # ns
#: In the place of a CPU
ALL = -1
#: Bins of a timeline; when they are full two become one.
BINS = 512
FIRST_BIN = 1 << 20             # ns

PERF_CTL, HWP_REQUEST, MPERF, APERF = 0x199, 0x774, 0xE7, 0xE8
FREQUENCY = re.compile(r"state=(\d+) cpu_id=(\d+)(?: policy_cpus=([0-9a-f,]{1,2304})\b)?")
LIMITS = re.compile(r"min=(\d+) max=(\d+) cpu_id=(\d+)")
MSR = re.compile(r"([0-9a-f]+), value ([0-9a-f]+)")
SAMPLE = re.compile(r"\bfreq=(\d+)")
TO = re.compile(r"\bto=(\d+)")
BASE = re.compile(r"\bmperf=(\d+) aperf=([1-9]\d*) .*freq=(\d+)")


class Timeline:
    """The mean of a value over time, in as many bins as memory is meant for it."""

    def __init__(self) -> None:
        self.begin, self.width = -1, FIRST_BIN
        self.sums: list[float] = []
        self.times: list[int] = []

    def add(self, start: int, end: int, value: float) -> None:
        """The value from @start to @end."""
        if self.begin < 0:
            self.begin = start
        start, end = max(start - self.begin, 0), end - self.begin
        while end >= self.width * BINS:
            self._halve()
        while start < end:
            index = start // self.width
            until = min(end, (index + 1) * self.width)
            if index >= len(self.sums):
                more = index + 1 - len(self.sums)
                self.sums += [0.0] * more
                self.times += [0] * more
            self.sums[index] += value * (until - start)
            self.times[index] += until - start
            start = until

    def _halve(self) -> None:
        self.width *= 2
        if len(self.sums) % 2:
            self.sums.append(0.0)
            self.times.append(0)
        self.sums = [a + b for a, b in zip(self.sums[::2], self.sums[1::2])]
        self.times = [a + b for a, b in zip(self.times[::2], self.times[1::2])]

    def points(self) -> list[tuple[int, float]]:
        """(ns since the epoch of the trace, mean) of the bins that have one."""
        return [(self.begin + index * self.width, total / time)
                for index, (total, time) in enumerate(zip(self.sums, self.times)) if time]

    def mean(self) -> float:
        return sum(self.sums) / sum(self.times) if any(self.times) else 0.0


@dataclass
class Episode:
    """A CPU was busy and got its highest request late."""
    cpu: int
    task: str
    start: int                  # ns; of the busy time, or when its lowest request was sent
    waited: int                 # until the highest request was sent
    first: int                  # until the first higher one was
    steps: int
    low: float                  # lowest request, kHz
    high: float
    limit: float = 0.0          # of the policy, kHz, if it is below the highest clock
    held: int = 0               # ns, the governor's rate limit if the steps keep to it
    invariance: str = ""        # what is wrong with the CPU's frequency scale
    bins: list[tuple[int, int]] = field(default_factory=list)   # turbo: active cores, kHz
    no_tick: bool = False       # nothing asked again
    quota: str = ""             # what was throttled
    turns: int = 0              # with the other task, if two take turns
    reached: int = -1           # ns from the request to the clock; -1 not seen
    got: float = 0.0            # the highest clock seen after the request, kHz

    def why(self) -> str:
        if self.quota:
            return self.quota
        if self.no_tick:
            return "no tick (nohz_full), and nothing asked again while it ran"
        if self.turns:
            return (f"take turns, {self.turns:,} of them: each one's CPU looks idle while the"
                    " other works, a conversation")
        late = f"after {self.first / 1e6:.1f} ms"
        parts = [f"asked in {self.steps} steps, first {late}" if self.steps > 1
                 else f"asked only {late}"]
        if self.held:
            parts.append(f"held by rate_limit_us, {self.held / 1e6:.3g} ms")
        if self.invariance:
            parts.append(self.invariance)
        if self.limit and self.high >= self.limit * 0.999:
            parts.append(f"up to the policy's limit of {self.limit / 1000:.0f} MHz")
        if self.reached >= 0:
            parts.append(f"clock there within {self.reached / 1e6:.1f} ms of the request")
        elif self.got:
            parts.append(f"clock got to {self.got / 1000:.0f} MHz only: {self._limited()}")
        return "; ".join(parts)

    def _limited(self) -> str:
        if not self.bins:
            return "turbo bin or power limit"
        for cores, khz in self.bins:
            if abs(self.got - khz) <= BIN * khz:
                return f"turbo bin of up to {cores} active cores"
        return "no turbo bin, so power, temperature or the hardware's own choice"


@dataclass
class Turns:
    """Two tasks that wake each other, as long as they do."""
    cpu: int                    # of one of them
    start: int
    last: int
    count: int = 0
    worked: int = 0             # ns
    asked: float = 0.0          # kHz times ns
    names: set[str] = field(default_factory=set)


@dataclass
class Cpu:
    """One CPU at a point of the trace; clocks in kHz."""
    number: int
    request: float = 0.0
    since: int = -1                     # of the request
    limit: float = 0.0
    requests: int = 0
    task: str = ""                      # that runs; nothing while idle
    asked: Timeline = field(default_factory=Timeline)
    clock: Timeline = field(default_factory=Timeline)
    busy: Timeline = field(default_factory=Timeline)
    changed: int = -1                   # when busy began or ended
    start: int = -1                     # of the climb: busy, or sent its lowest request
    low: float = 0.0                    # where it began; 0 not known
    high: float = 0.0
    raises: list[int] = field(default_factory=list)     # when each higher request was sent
    reached: int = -1
    got: float = 0.0
    ran: dict[str, int] = field(default_factory=dict)       # what stood before each reading
    bad: int = 0                        # readings of the counters that make no sense
    aperf: int | None = None
    counters: tuple[int, int, int] | None = None        # time, aperf, mperf

    def climb(self, start: int, low: float) -> None:
        """From here on higher requests are counted."""
        self.start, self.low, self.high, self.raises = start, low, low, []
        self.reached, self.got, self.ran = -1, 0.0, {}

    def who(self) -> str:
        """The task that ran at most readings of the counters, as ticks make them."""
        names: dict[str, int] = {}
        for head, count in self.ran.items():
            comm, tid = task(head)
            if tid > 0:
                names[comm] = names.get(comm, 0) + count
        return max(names, key=lambda name: names[name], default=self.task)


class Analysis:
    """Handlers that follow each CPU."""

    def __init__(self, base_khz: float, threshold: int, machine: Machine | None = None):
        self.base_khz, self.threshold = base_khz, threshold
        self.policies = machine.policies if machine else {}
        self.tick = 1_000_000_000 // machine.hz if machine and machine.hz else TICK
        self.machine = machine or Machine()
        self.top = 0.0                  # the highest clock that was ever allowed or asked for
        self.cpus: dict[int, Cpu] = {}
        self.episodes: list[Episode] = []
        self.tids: dict[str, str] = {}      # by what stands before the CPU
        self.woken: dict[str, tuple[int, str, int]] = {}    # task: when, by whom, there
        self.turns: dict[tuple[str, str], Turns] = {}
        self.stuck: list[Episode] = []          # conversations, and waits without a tick

    def handlers(self) -> dict[str, Handler]:
        return {"cpu_frequency": self._frequency, "policy_frequency": self._frequency,
                "cpu_frequency_limits": self._limits, "pstate_sample": self._sample,
                "amd_pstate_perf": self._sample, "write_msr": self._write,
                "read_msr": self._read, "sched_switch": self._switch,
                "sched_waking": self._waking}

    def cpu(self, number: int) -> Cpu:
        if number not in self.cpus:
            policy = self.policies.get(number)
            self.cpus[number] = Cpu(number, limit=policy.limit if policy else 0.0)
            self.top = max(self.top, policy.highest if policy else 0.0)
        return self.cpus[number]

    def _frequency(self, now: int, number: int, head: str, text: str) -> None:
        if match := FREQUENCY.search(text):
            cpus = int((match[3] or "0").replace(",", ""), 16) or 1 << int(match[2])
            for cpu in range(cpus.bit_length()):
                if cpus >> cpu & 1:
                    self._ask(now, self.cpu(cpu), float(match[1]))

    def _write(self, now: int, number: int, head: str, text: str) -> None:
        match = MSR.search(text)
        if not match or not self.base_khz:
            return
        register, value = int(match[1], 16), int(match[2], 16)
        if register == PERF_CTL:
            ratio = value >> 8 & 0xFF
        elif register == HWP_REQUEST:
            ratio = value >> 16 & 0xFF or value >> 8 & 0xFF
        else:
            return
        # Where cpu_frequency tells the same, it does so within the same call.
        cpu = self.cpu(number)
        if ratio and abs(ratio * 100_000 - cpu.request) > 100_000:
            self._ask(now, cpu, ratio * 100_000.0)

    def _ask(self, now: int, cpu: Cpu, khz: float) -> None:
        if cpu.since >= 0:
            cpu.asked.add(cpu.since, now, cpu.request)
        cpu.requests += 1
        self.top = max(self.top, khz)
        cpu.request, cpu.since = khz, now
        if not cpu.task:
            return
        if not cpu.low:
            cpu.climb(cpu.start, khz)
        elif khz < cpu.low:
            self._close(now, cpu)
            cpu.climb(now, khz)
        elif khz > cpu.high and khz >= cpu.low * RISE:
            cpu.high = khz
            cpu.raises.append(now)
            cpu.reached, cpu.got = -1, 0.0

    def _waking(self, now: int, number: int, head: str, text: str) -> None:
        """Who wakes a task on another CPU that woke it has ended a turn. A great share of
        all events are these."""
        tid = self.tids.get(head)
        if tid is None:
            if len(self.tids) > MOST_TASKS:
                self.tids.clear()
            tid = self.tids[head] = str(task(head)[1])
        at = text.find(" pid=") + 5
        other = text[at:text.find(" ", at)]
        begun = self.woken.get(tid)
        if begun and begun[1] == other and begun[2] != number and tid != "0":
            self._turn(now, number, tid, other, begun[0], head)
        self.woken[other] = now, tid, number
        if len(self.woken) > MOST_TASKS:
            self.woken = {tid: woken for tid, woken in self.woken.items()
                          if woken[0] > now - LONG_AGO}

    def _turn(self, now: int, number: int, tid: str, other: str, begin: int, head: str) -> None:
        pair = (tid, other) if tid < other else (other, tid)
        turns = self.turns.get(pair)
        if turns is None or begin - turns.last > PAUSE:
            if turns is not None:
                self._settle(turns)
            if len(self.turns) > MOST_TASKS:
                self._forget(now)
            turns = self.turns[pair] = Turns(number, begin, begin)
        turns.last = now
        turns.count += 1
        turns.worked += now - begin
        turns.asked += self.cpu(number).request * (now - begin)
        if turns.count < TURNS:
            turns.names.add(task(head)[0])

    def _forget(self, now: int) -> None:
        for pair in [p for p, turns in self.turns.items() if now - turns.last > PAUSE]:
            self._settle(self.turns.pop(pair))

    def _settle(self, turns: Turns) -> None:
        """Two have ceased to take turns; whether they had a low clock shows at the end."""
        took = turns.last - turns.start
        if turns.count >= TURNS and took >= self.threshold and turns.worked >= WORKING * took:
            self.stuck.append(Episode(
                turns.cpu, " and ".join(sorted(turns.names)), turns.start, took, 0, 0,
                turns.asked / turns.worked, 0.0, turns=turns.count))

    def _limits(self, now: int, number: int, head: str, text: str) -> None:
        if match := LIMITS.search(text):
            self.cpu(int(match[3])).limit = float(match[2])
            self.top = max(self.top, float(match[2]))

    def _sample(self, now: int, number: int, head: str, text: str) -> None:
        cpu = self.cpu(number)
        if not self.base_khz and (match := BASE.search(text)):
            self.base_khz = float(match[3]) * int(match[1]) / int(match[2])
        if match := SAMPLE.search(text):
            khz = float(match[1])
            # amd_pstate_perf tells it in MHz.
            self._clocked(now, cpu, khz * 1000 if khz < 20_000 else khz, cpu.changed)
        if (match := TO.search(text)) and int(match[1]):
            khz = int(match[1]) * 100_000.0
            if khz != cpu.request:
                self._ask(now, cpu, khz)

    def _read(self, now: int, number: int, head: str, text: str) -> None:
        """APERF is read first, then MPERF."""
        match = MSR.search(text)
        if not match:
            return
        register, value = int(match[1], 16), int(match[2], 16)
        cpu = self.cpu(number)
        if register == APERF:
            cpu.aperf = value
        elif register == MPERF and cpu.aperf is not None:
            cpu.ran[head] = cpu.ran.get(head, 0) + 1
            if cpu.counters and now - cpu.counters[0] < SHORTEST:
                return
            before, cpu.counters = cpu.counters, (now, cpu.aperf, value)
            cpu.aperf = None
            if before and value > before[2] and cpu.counters[1] > before[1] and self.base_khz:
                khz = self.base_khz * (cpu.counters[1] - before[1]) / (value - before[2])
                self._clocked(now, cpu, khz, before[0])

    def _clocked(self, now: int, cpu: Cpu, khz: float, since: int) -> None:
        """The mean clock from @since to @now."""
        if khz > SENSELESS:
            cpu.bad += 1
            return
        if 0 <= since < now:
            cpu.clock.add(since, now, khz)
        if cpu.raises and since >= cpu.raises[-1]:
            cpu.got = max(cpu.got, khz)
            if cpu.reached < 0 and khz >= REACHED * cpu.request:
                cpu.reached = since - cpu.raises[-1]

    def _switch(self, now: int, number: int, head: str, text: str) -> None:
        switched = switch(text)
        if not switched:
            return
        previous, comm, tid = switched
        cpu = self.cpu(number)
        if tid == "0":
            self._idle(now, cpu)
        elif previous == "0" or not cpu.task:
            if cpu.changed >= 0:
                cpu.busy.add(cpu.changed, now, 0.0)
            cpu.changed, cpu.task = now, comm
            cpu.climb(now, cpu.request)

    def _idle(self, now: int, cpu: Cpu) -> None:
        if cpu.changed >= 0:
            cpu.busy.add(cpu.changed, now, 100.0 if cpu.task else 0.0)
        cpu.changed = now
        self._close(now, cpu)
        cpu.task = ""

    def _close(self, now: int, cpu: Cpu) -> None:
        """The climb is over: was its highest request late?"""
        if not cpu.task:
            return
        if not cpu.raises:
            if cpu.number in self.machine.no_tick and now - cpu.start >= STUCK:
                self.stuck.append(Episode(cpu.number, cpu.who(), cpu.start, now - cpu.start, 0, 0,
                                          cpu.low, 0.0, no_tick=True))
            return
        waited = cpu.raises[-1] - cpu.start
        if waited >= self.threshold:
            self.episodes.append(Episode(
                cpu.number, cpu.who(), cpu.start, waited, cpu.raises[0] - cpu.start,
                len(cpu.raises), cpu.low, cpu.high,
                cpu.limit if cpu.limit < self.top else 0.0,
                self._held(cpu), invariance=self._invariance(cpu), bins=self.machine.turbo,
                reached=cpu.reached, got=cpu.got))

    def _invariance(self, cpu: Cpu) -> str:
        """What is wrong with the scale by which utilisation is measured."""
        if self.machine.invariance:
            return f"frequency invariance is {self.machine.invariance}"
        if skipped := self.machine.skipped.get(cpu.number):
            return f"{skipped} samples of its counters were bad"
        return ""

    def lost(self, number: int, count: int) -> None:
        """Events of a CPU are missing here: what it does is not known before its next task,
        nor which tasks took turns."""
        cpu = self.cpu(number)
        cpu.task, cpu.changed, cpu.counters, cpu.aperf = "", -1, None, None
        self.woken.clear()

    def _held(self, cpu: Cpu) -> int:
        """The rate limit, if each request waited for it and, unlike where utilisation is
        what is waited for, not much longer. The governor compares the times of its calls,
        from which requests are some microseconds away."""
        policy = self.policies.get(cpu.number)
        limit = policy.rate_limit * 1000 if policy else 0
        gaps = [after - before for before, after in zip(cpu.raises, cpu.raises[1:])]
        kept = gaps and all(limit - 50_000 <= gap <= limit + 2 * self.tick for gap in gaps)
        return limit if kept and limit > self.tick else 0

    def finish(self, now: int, first: int) -> None:
        for cpu in self.cpus.values():
            if cpu.since >= 0:
                cpu.asked.add(cpu.since, now, cpu.request)
            self._idle(now, cpu)
        for turns in self.turns.values():
            self._settle(turns)
        for stuck in self.stuck:
            high = min(self.top, self.cpu(stuck.cpu).limit or self.top)
            if 0 < stuck.low * RISE <= high:
                self.episodes.append(replace(stuck, high=high))
        self._throttled(first)

    def _throttled(self, first: int) -> None:
        """Groups, beside the mean clock of all CPUs: on which they ran is not recorded."""
        times = [(sum(line.sums), sum(line.times))
                 for line in (cpu.clock for cpu in self.cpus.values())]
        clock = sum(total for total, _ in times) / max(1, sum(time for _, time in times))
        for limit in self.machine.limits:
            share = min(1.0, clock / self.top) if self.top else 0.0
            self.episodes.append(Episode(
                ALL, limit.name, first, limit.waited * 1000, 0, 0, clock, self.top,
                quota=replace(limit, clock=share).says()))


@dataclass
class Result:
    """What `freq` found in one trace."""
    label: str
    facts: Facts
    cpus: dict[int, Cpu]
    episodes: list[Episode]
    notes: list[str]


def missing(seen: dict[str, int], base_khz: float) -> list[str]:
    notes = []
    if not seen.get("read_msr") and not seen.get("pstate_sample") \
            and not seen.get("amd_pstate_perf"):
        notes.append("no reads of APERF and MPERF (msr:read_msr): the clock itself is unknown")
    elif not base_khz:
        notes.append("the base frequency is not known (--base-mhz): the clock itself is unknown")
    if "sched_switch" not in seen:
        notes.append("no sched_switch: who waited is unknown, so no episodes")
    if "sched_waking" not in seen:
        notes.append("no sched_waking: tasks that take turns are not found")
    return notes


def analyse(source: Source, machine: Machine | None, label: str, base_khz: float,
            threshold: int, progress: Callable[[int, Facts], None]) -> Result:
    base = base_khz or (machine.base_khz if machine else 0)
    work = Analysis(base, threshold, machine)
    facts = Reader(source, work.handlers(), work.lost, progress=progress).run()
    if not any(facts.seen.get(name) for name in (
            "cpu_frequency", "policy_frequency", "pstate_sample", "write_msr", "amd_pstate_perf")):
        raise Fail(f"{facts.name}: has no frequency requests (power:cpu_frequency or"
                   " policy_frequency, power:pstate_sample, amd_cpu:amd_pstate_perf or"
                   " msr:write_msr);"
                   " `cpuwhy record --for freq` records them, or nothing was asked")
    work.finish(facts.last, facts.first)
    for number, count in (machine.lost if machine else {}).items():
        facts.lost[number] = max(facts.lost.get(number, 0), count)
    notes = missing(facts.seen, work.base_khz)
    notes += [f"CPU {number}: {cpu.bad} clocks make no sense and were left out"
              for number, cpu in sorted(work.cpus.items()) if cpu.bad]
    work.episodes.sort(key=lambda episode: -episode.waited)
    return Result(label, facts, dict(sorted(work.cpus.items())), work.episodes, notes)

