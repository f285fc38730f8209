# SPDX-License-Identifier: GPL-2.0
"""From events to idle times: how long, in which state, was that right, what ended them."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from . import topology, wake
from .errors import Fail
from .events import Facts, Handler, Reader, Source, switch
from .states import Costs, Machine, State, verdict
from .wake import Cause, Wake

if TYPE_CHECKING:
    from typing import Self  # not before Python 3.11

EXIT = (4294967295, -1)
#: States that are entered with interrupts off handle the interrupt after the exit.
#: What comes later than this has nothing to do with it.
HANDLED_AFTER = 50_000
#: How a state is called where there is no table.
UNNAMED = "state{}"


class Sums:
    """Numbers and histograms that add up."""

    def add(self, other: Self) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass
class StateUse(Sums):
    """All idle times of one CPU in one state."""
    usage: int = 0
    time: int = 0
    deep: int = 0
    shallow: int = 0
    deep_miss: Counter[int] = field(default_factory=Counter)        # by log2 of us
    shallow_miss: Counter[int] = field(default_factory=Counter)
    lengths: Counter[int] = field(default_factory=Counter)          # by log2 of us
    lost_energy: float = 0.0


@dataclass
class Wakeups(Sums):
    """Those of one cause, and what they cost."""
    count: int = 0
    deep: int = 0
    shallow: int = 0
    lost: float = 0.0           # by wrong states, ns of polling's power
    wakes: float = 0.0          # by coming up from the states, likewise
    latency: int = 0            # exit latency that the right states would not have had, ns

    @property
    def cost(self) -> float:
        return self.lost + self.wakes


@dataclass
class Waits(Sums):
    """Of a task, for CPUs in one idle state to wake: from the call that wakes it on."""
    count: int = 0
    time: int = 0               # ns
    most: int = 0

    def add(self, other: Self) -> None:
        most = max(self.most, other.most)
        super().add(other)
        self.most = most


@dataclass
class Result:
    """What `idle` found in one trace."""
    label: str
    facts: Facts
    machine: Machine | None
    uses: dict[int, dict[int, StateUse]]
    by_cpu: dict[int, dict[Cause, Wakeups]]
    waits: dict[int, dict[tuple[str, int], Waits]]      # per CPU, by task and state
    span: dict[int, int]                    # per CPU, ns
    broken: int                             # idle times cut by lost events
    by_events: bool                         # verdicts are the kernel's own
    notes: list[str] = field(default_factory=list)

    def states(self, cpu: int) -> Sequence[State]:
        table = self.machine.states if self.machine else {}
        return table.get(cpu) or table.get(-1) or ()

    def name(self, cpu: int, state: int) -> str:
        states = self.states(cpu)
        return states[state].name if state < len(states) else UNNAMED.format(state)

    def by_cause(self, only: int | None = None) -> dict[Cause, Wakeups]:
        """What each cause costs, on all CPUs or one."""
        found: dict[Cause, Wakeups] = {}
        for cpu, by_cause in self.by_cpu.items():
            if only is None or cpu == only:
                for cause, wakeups in by_cause.items():
                    found.setdefault(cause, Wakeups()).add(wakeups)
        return found

    def waited(self, only: int | None = None) -> dict[tuple[str, str], Waits]:
        """By task and the name of the state, on all CPUs or one; all tasks' by ""."""
        found: dict[tuple[str, str], Waits] = {}
        for cpu, waits in self.waits.items():
            for (task, state), one in waits.items():
                if only is None or cpu == only:
                    for who in ("", task):
                        found.setdefault((who, self.name(cpu, state)), Waits()).add(one)
        return found

    def total(self) -> dict[str, StateUse]:
        """Of all CPUs, by the states' names."""
        found: dict[str, StateUse] = {}
        for cpu, uses in sorted(self.uses.items()):
            for state, use in sorted(uses.items()):
                found.setdefault(self.name(cpu, state), StateUse()).add(use)
        return found


class Cpu:
    """One CPU at a point of the trace."""
    __slots__ = ("begin", "end", "state", "wake", "verdict", "first", "last", "uses", "by_cause",
                 "waits", "states", "costs")

    def __init__(self, states: Sequence[State]):
        self.begin = self.end = -1          # of the idle time at hand; -1: is not in one
        self.state = 0
        self.wake = Wake()
        self.verdict = 0
        self.first = self.last = -1
        self.uses: dict[int, StateUse] = {}
        self.by_cause: dict[Cause, Wakeups] = {}
        self.waits: dict[tuple[str, int], Waits] = {}
        self.states = states
        self.costs = Costs(states) if states else None


def bucket(ns: int) -> int:
    """log2 of us; 0 is below 1 us, 1 from 1 to below 2, 2 from 2 to below 4."""
    return (ns // 1000).bit_length()


class Analysis:
    """Handlers for the events, which add everything up."""

    def __init__(self, machine: Machine | None, by_events: bool):
        self.machine = machine
        self.by_events = by_events
        self.by_table = False
        self.cpus: dict[int, Cpu] = {}
        self.causes = wake.Causes()
        self.broken = 0

    def handlers(self) -> dict[str, Handler]:
        causes = self.causes

        def hrtimer_start(now: int, cpu: int, head: str, text: str) -> None:
            causes.arm(head, text, wake.HRTIMER_START)

        def timer_start(now: int, cpu: int, head: str, text: str) -> None:
            causes.arm(head, text, wake.TIMER_START)

        def cancel(now: int, cpu: int, head: str, text: str) -> None:
            causes.cancel(text)

        def waking(now: int, cpu: int, head: str, text: str) -> None:
            causes.waking(now, cpu, head, text)

        def send_cpu(now: int, cpu: int, head: str, text: str) -> None:
            causes.send(now, cpu, head, [int(text.lstrip()[4:].split(None, 1)[0])], text)

        def send_mask(now: int, cpu: int, head: str, text: str) -> None:
            if match := wake.CPU_LIST.search(text):
                causes.send(now, cpu, head, topology.cpus(match[1]), text)

        found: dict[str, Handler] = {
            "cpu_idle": self._idle, "cpu_idle_miss": self._miss, "sched_switch": self._switch,
            "hrtimer_start": hrtimer_start, "timer_start": timer_start,
            "hrtimer_cancel": cancel, "timer_cancel": cancel,
            "hrtimer_expire_entry": self._hrtimer_expires,
            "timer_expire_entry": self._timer_expires,
            "irq_handler_entry": self._device, "sched_waking": waking,
            "sched_wakeup": causes.wakeup,
            "ipi_send_cpu": send_cpu, "ipi_send_cpumask": send_mask}
        for event, name in wake.VECTORS.items():
            found[event] = self._vector(name)
        return found

    def cpu(self, number: int) -> Cpu:
        cpu = self.cpus.get(number)
        if cpu is None:
            states: Sequence[State] = ()
            if self.machine:
                states = self.machine.states.get(number) or self.machine.states.get(-1) or ()
            cpu = self.cpus[number] = Cpu(states)
        return cpu

    def _vector(self, name: str) -> Handler:
        def entry(now: int, number: int, head: str, text: str) -> None:
            cpu = self.cpus.get(number)
            if cpu is not None and cpu.begin >= 0 and not cpu.wake.first and (
                    cpu.end < 0 or now - cpu.end < HANDLED_AFTER):
                cpu.wake.first = name
        return entry

    def context(self, now: int, number: int, flags: str) -> None:
        """ftrace's flags of an event: is it of an interrupt or of what followed one?"""
        cpu = self.cpus.get(number)
        if cpu is not None and cpu.begin >= 0 and (
                cpu.end < 0 or now - cpu.end < HANDLED_AFTER) and cpu.wake.context != "softirq":
            kind = flags[2:3]
            cpu.wake.context = ("softirq" if kind in "sH" else "interrupt" if kind in "hzZ"
                                else cpu.wake.context) if kind else cpu.wake.context

    def _device(self, now: int, number: int, head: str, text: str) -> None:
        cpu = self.cpus.get(number)
        if cpu is not None and cpu.begin >= 0 and not cpu.wake.device and (
                cpu.end < 0 or now - cpu.end < HANDLED_AFTER):
            match = wake.IRQ.search(text)
            cpu.wake.device = match[2] if match else text.strip()
            cpu.wake.first = cpu.wake.first or cpu.wake.device

    def _hrtimer_expires(self, now: int, number: int, head: str, text: str) -> None:
        timer = self.causes.expire(text)
        cpu = self.cpus.get(number)
        if cpu is None or cpu.begin < 0:
            return
        if timer.function in wake.TICK:
            cpu.wake.tick = True
        elif cpu.wake.hrtimer is None:
            cpu.wake.hrtimer = timer

    def _timer_expires(self, now: int, number: int, head: str, text: str) -> None:
        timer = self.causes.expire(text)
        cpu = self.cpus.get(number)
        if cpu is not None and cpu.begin >= 0 and cpu.wake.wheel is None:
            cpu.wake.wheel = timer

    def _idle(self, now: int, number: int, head: str, text: str) -> None:
        cpu = self.cpu(number)
        if cpu.first < 0:
            cpu.first = now
        cpu.last = now
        text = text.lstrip()
        state = int(text[6:].split(None, 1)[0])
        if state in EXIT:
            if cpu.begin >= 0 and cpu.end < 0:
                cpu.end = now
            return
        if cpu.begin >= 0 and cpu.end >= 0:
            self._settle(cpu, number, "", None)
        elif cpu.begin >= 0:
            self.broken += 1
        cpu.begin, cpu.end, cpu.state, cpu.wake, cpu.verdict = now, -1, state, Wake(), 0

    def _miss(self, now: int, number: int, head: str, text: str) -> None:
        # "cpu_id=0 state=1 type=above"; printed as "below" or "above"
        self.by_events = True
        cpu = self.cpus.get(number)
        if cpu is not None and cpu.begin >= 0:
            cpu.verdict = 1 if "below" in text else -1

    def _switch(self, now: int, number: int, head: str, text: str) -> None:
        # From one task to another, as most are.
        if " prev_pid=0 " not in text and not text.lstrip().startswith("swapper"):
            return
        cpu = self.cpus.get(number)
        switched = switch(text)
        if not switched or switched[0] != "0" or cpu is None or cpu.begin < 0:
            return
        _, comm, tid = switched
        waker = self.causes.ran(tid)
        if cpu.end >= 0:
            self._settle(cpu, number, comm, waker)
        else:
            self.broken += 1
        cpu.begin = -1

    def _settle(self, cpu: Cpu, number: int, task: str, waker: wake.Waker | None) -> None:
        """An idle time is over and what ended it is known."""
        duration, states = cpu.end - cpu.begin, cpu.states
        use = cpu.uses.get(cpu.state)
        if use is None:
            use = cpu.uses[cpu.state] = StateUse()
        use.usage += 1
        use.time += duration
        use.lengths[bucket(duration)] += 1
        if waker and cpu.begin <= waker.time <= cpu.end:
            waited = cpu.end - waker.time
            cpu.waits.setdefault((task, cpu.state), Waits()).add(Waits(1, waited, waited))
        cause = self.causes.cause(cpu.wake, number, cpu.begin, cpu.end, task, waker)
        wakeups = cpu.by_cause.get(cause)
        if wakeups is None:
            wakeups = cpu.by_cause[cause] = Wakeups()
        wakeups.count += 1
        judged, miss = cpu.verdict, -1
        if cpu.costs and cpu.state < len(states):
            ours, miss = verdict(states, cpu.state, duration)
            if self.by_table or not self.by_events:
                judged = ours
            elif ours != judged:
                # The kernel's clock and the events' are some 100 ns apart.
                miss = 0
            lost, latency = cpu.costs.wrong(cpu.state, duration)
            use.lost_energy += lost
            wakeups.lost += lost
            wakeups.latency += latency
            wakeups.wakes += states[cpu.state].latency
        if judged < 0:
            use.deep += 1
            wakeups.deep += 1
            _count(use.deep_miss, miss)
        elif judged > 0:
            use.shallow += 1
            wakeups.shallow += 1
            _count(use.shallow_miss, miss)

    def lost(self, number: int, count: int) -> None:
        """Events of a CPU are missing here: its present idle time is of no use."""
        cpu = self.cpus.get(number)
        if cpu is not None and cpu.begin >= 0:
            self.broken += 1
            cpu.begin = -1

    def finish(self, interrupts: bool) -> None:
        """@interrupts: are those that end idle times among the recorded events?"""
        for number, cpu in self.cpus.items():
            if cpu.begin >= 0 and cpu.end >= 0:
                self._settle(cpu, number, "", None)
            cpu.begin = -1
        if not interrupts or len(self.cpus) < 2:
            for cpu in self.cpus.values():
                before, cpu.by_cause = cpu.by_cause, {}
                for cause, wakeups in before.items():
                    if not (interrupts and cause.who):
                        cause = wake.Causes.without_interrupts(cause)
                    cpu.by_cause.setdefault(cause, Wakeups()).add(wakeups)


def _count(histogram: Counter[int], miss: int) -> None:
    if miss >= 0:
        histogram[bucket(miss)] += 1


def missing(seen: Mapping[str, int], arch: str) -> list[str]:
    """What the result cannot say for want of events."""
    notes = []
    if arch and arch not in ("x86_64", "i686", "i386"):
        notes.append(f"recorded on {arch}, which has no irq_vectors events: wake-ups by its timer"
                     " and its IPIs are told by what they led to, or unknown")
    elif not any(name in seen for name in wake.VECTORS):
        notes.append("no irq_vectors events: timer interrupts and IPIs are told by what they"
                     " led to, and whether there was none is unknown")
    if "sched_switch" not in seen:
        notes.append("no sched_switch: which task ran after a wake-up is unknown")
    if "hrtimer_expire_entry" not in seen:
        notes.append("no hrtimer_expire_entry: which timer expired is unknown")
    elif "hrtimer_start" not in seen:
        notes.append("no hrtimer_start: who armed a timer is unknown")
    if "sched_waking" not in seen and "ipi_send_cpu" not in seen:
        notes.append("neither sched_waking nor ipi_send_cpu: who sent an IPI is unknown")
    if "sched_switch" not in seen or "sched_waking" not in seen:
        notes.append("who waited for idle states is unknown without sched_waking and sched_switch")
    return notes


def analyse(source: Source, machine: Machine | None, label: str,
            progress: Callable[[int, Facts], None] = lambda now, facts: None,
            by_table: bool = False) -> Result:
    """Read a trace to its end. Whether a state was right is what the kernel said in
    cpu_idle_miss, or else, or if @by_table, follows from the table of states."""
    work = Analysis(machine, _has_miss(source, machine))
    work.by_table = by_table
    reader = Reader(source, work.handlers(), work.lost, work.causes.frame, progress, work.context)
    facts = reader.run()
    work.finish(any(name in facts.seen or f"irq_vectors:{name}," in source.header or
                    machine and f"irq_vectors:{name}" in machine.events
                    for name in wake.VECTORS))
    if not facts.seen.get("cpu_idle"):
        if " = power:cpu_idle," in source.header or (machine and machine.events):
            raise Fail(f"{facts.name}: no CPU was idle while it was recorded")
        raise Fail(f"{facts.name}: has no power:cpu_idle events, which `idle` needs;"
                   " `cpuwhy record` records all that it needs")
    for number, count in (machine.lost if machine else {}).items():
        facts.lost[number] = max(facts.lost.get(number, 0), count)
    notes = missing(facts.seen, facts.arch)
    if not machine or not machine.states:
        notes.append("no table of idle states beside it (--states FILE): "
                     + ("too deep and too shallow are the kernel's verdicts, without size or cost"
                        if facts.seen.get("cpu_idle_miss") else
                        "which state was wrong is unknown"))
    if facts.plain_ns and not (machine and machine.clock):
        notes.append("the times have no unit and were taken for ns; record with -C mono")
    if facts.other_buffers:
        notes.append(f"{facts.other_buffers} events of other buffers were left out")
    if facts.bad_lines:
        notes.append(f"{facts.bad_lines} lines are not events and were left out")
    uses = {number: cpu.uses for number, cpu in sorted(work.cpus.items())}
    by_cause = {number: cpu.by_cause for number, cpu in sorted(work.cpus.items())}
    waits = {number: cpu.waits for number, cpu in sorted(work.cpus.items())}
    span = {number: facts.last - facts.first for number in uses}
    return Result(label, facts, machine, uses, by_cause, waits, span, work.broken,
                  work.by_events and not work.by_table, notes)


def _has_miss(source: Source, machine: Machine | None) -> bool:
    """Was cpu_idle_miss recorded? There may be none in the trace for want of misses."""
    recorded = machine.events if machine else []
    return " = power:cpu_idle_miss" in source.header or "power:cpu_idle_miss" in recorded


@dataclass
class Agreement:
    """A counter of the trace beside that of sysfs."""
    cpu: int
    state: str
    counter: str
    trace: int
    sysfs: int

    @property
    def off(self) -> float:
        return abs(self.trace - self.sysfs) / max(self.sysfs, 1)


def against_sysfs(result: Result) -> list[Agreement]:
    """usage, time, above and below of each state that was used."""
    found = []
    for cpu, states in (result.machine.states if result.machine else {}).items():
        for index, state in enumerate(states):
            if cpu < 0 or not (state.usage or result.uses.get(cpu, {}).get(index)):
                continue
            use = result.uses.get(cpu, {}).get(index, StateUse())
            for counter, trace, sysfs in (("usage", use.usage, state.usage),
                                          ("time", use.time, state.time),
                                          ("above", use.deep, state.above),
                                          ("below", use.shallow, state.below)):
                found.append(Agreement(cpu, state.name, counter, trace, sysfs))
    return found
