# SPDX-License-Identifier: GPL-2.0
"""From events to idle periods.

What a governor would have been told cannot be recorded, but follows from the
set of armed timers: the earliest is the next timer event. When the tick is
stopped the kernel re-arms the tick's own timer for what the timer wheel has
next, which is the only view of the wheel that there is.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ringbuffer import Event

IDLE_EXIT = 0xFFFFFFFF
COLUMNS = "cpu,entry_ns,dur_ns,wake_ns,sleep_ns,delta_ns,next,src,irq,flags,state"
SOURCES = {"local_timer_entry": "T", "reschedule_entry": "R", "call_function_entry": "C",
           "call_function_single_entry": "C", "irq_work_entry": "W", "irq_handler_entry": "D"}
FLAG_STOPPED, FLAG_STOPS, FLAG_TASK, FLAG_MORE, FLAG_CONTINUES, FLAG_EXPIRED = 1, 2, 4, 8, 16, 32

# Where idle states are entered with interrupts off, the interrupt that ended the
# rest is only handled after the exit.
HANDLED_AFTER_NS = 50_000


@dataclass
class Period:
    entry: int
    sleep: int
    delta: int
    next: str
    flags: int
    state: int
    end: int = 0
    wake: int = -1
    source: str = ""
    irq: int = 0

    def row(self, cpu: int, t0: int) -> str:
        return ",".join(map(str, (cpu, self.entry - t0, self.end - self.entry, self.wake, self.sleep,
                                  self.delta, self.next, self.source or "N", self.irq, self.flags,
                                  self.state)))


@dataclass
class Cpu:
    """What is known about a CPU at a point of the recording."""
    timers: dict[int, int] = field(default_factory=dict)
    tick: int | None = None             # when the tick's timer expires
    tick_before: int | None = None      # and before it was stopped
    stopped: bool = False
    stops: bool = False                 # in this period
    continues: bool = False
    period: Period | None = None        # being in it, or not yet written
    done: bool = False


class Reconstruction:
    """Feed it all events in time order; it yields (cpu, period)."""

    def __init__(self, tick_functions: set[int], realtime_offset: int):
        self.tick_functions = tick_functions
        self.realtime_offset = realtime_offset
        self.cpus: dict[int, Cpu] = {}
        self.owner: dict[int, int] = {}         # hrtimer: CPU
        self.tick_timers: set[int] = set()
        self.tick_expiries: set[int] = set()

    def feed(self, events: Iterable[Event]) -> Iterator[tuple[int, Period]]:
        for event in events:
            cpu = self.cpus.setdefault(event.cpu, Cpu())
            if event.name == "cpu_idle":
                yield from self._idle(event, cpu)
            elif event.name == "sched_switch":
                yield from self._switch(event, cpu)
            elif event.name == "tick_stop":
                if event.fields["success"]:
                    cpu.stopped = cpu.stops = True
                    cpu.tick_before = cpu.tick
            elif event.name.startswith("hrtimer_"):
                self._timer(event, cpu)
            elif event.name in SOURCES:
                self._interrupt(event, cpu)

    def _forget(self, timer: int) -> None:
        owner = self.owner.pop(timer, None)
        if owner is None:
            return
        if timer in self.tick_timers:
            self.cpus[owner].tick = None
        else:
            self.cpus[owner].timers.pop(timer, None)

    def _timer(self, event: Event, cpu: Cpu) -> None:
        timer = event.fields["hrtimer"]
        self._forget(timer)
        if event.name == "hrtimer_start":
            expires = event.fields["expires"]
            if expires > self.realtime_offset // 2 > event.time:
                expires -= self.realtime_offset
            self.owner[timer] = event.cpu
            if event.fields["function"] in self.tick_functions:
                self.tick_timers.add(timer)
                self.tick_expiries.add(expires)
                cpu.tick = expires
            else:
                cpu.timers[timer] = expires
        elif event.name == "hrtimer_expire_entry" and cpu.period and cpu.period.source == "T":
            cpu.period.flags |= FLAG_EXPIRED

    def _interrupt(self, event: Event, cpu: Cpu) -> None:
        period = cpu.period
        if period is None or (cpu.done and event.time - period.end > HANDLED_AFTER_NS):
            return
        if period.source:
            if not cpu.done:
                period.flags |= FLAG_MORE
            return
        period.source = SOURCES[event.name]
        period.irq = event.fields.get("irq", 0)
        period.wake = (period.end if cpu.done else event.time) - period.entry

    def _next_event(self, now: int, cpu: Cpu) -> tuple[int, int, str]:
        """sleep_ns, delta_ns, next as of idle entry."""
        hrtimer = min(cpu.timers.values(), default=None)
        wheel = cpu.tick if cpu.stopped else None
        if cpu.stopped:
            candidates = [(t, n) for t, n in ((hrtimer, "h"), (wheel, "w")) if t is not None]
            tick = cpu.tick_before if cpu.stops else None
        else:
            candidates = [(t, n) for t, n in ((hrtimer, "h"), (cpu.tick, "k")) if t is not None]
            tick = None
        if not candidates:
            return -1, -1 if tick is None else max(tick - now, 0), "-"
        when, name = min(candidates)
        delta = when if tick is None else min(when, tick)
        return max(when - now, 0), max(delta - now, 0), name

    def _idle(self, event: Event, cpu: Cpu) -> Iterator[tuple[int, Period]]:
        if event.fields["state"] == IDLE_EXIT:
            if cpu.period and not cpu.done:
                cpu.period.end, cpu.done = event.time, True
            return
        if cpu.period and cpu.done:
            # Back in idle, and nothing ran.
            yield event.cpu, cpu.period
            cpu.continues = True
        flags = FLAG_CONTINUES if cpu.continues else 0
        flags |= FLAG_STOPS if cpu.stops else FLAG_STOPPED if cpu.stopped else 0
        cpu.period = Period(event.time, *self._next_event(event.time, cpu), flags,
                            event.fields["state"])
        cpu.stops, cpu.done = False, False

    def _switch(self, event: Event, cpu: Cpu) -> Iterator[tuple[int, Period]]:
        if event.fields["prev_pid"] != 0:
            return
        if cpu.period and cpu.done:
            cpu.period.flags |= FLAG_TASK
            cpu.period.source = cpu.period.source or "P"
            yield event.cpu, cpu.period
        cpu.period = None
        cpu.stopped = cpu.stops = cpu.continues = False


def tick_origin(expiries: set[int], tick_ns: int, first: int) -> int:
    """A point before @first from which on ticks fall due at multiples."""
    phases: dict[int, int] = {}
    for expiry in expiries:
        phases[expiry % tick_ns] = phases.get(expiry % tick_ns, 0) + 1
    phase = max(phases, key=phases.__getitem__) if phases else 0
    return first - (first - phase) % tick_ns
