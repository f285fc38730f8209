# SPDX-License-Identifier: GPL-2.0
"""From a recording to idle periods for cpuidle-replay, one file per CPU.

What a governor would have been told cannot be recorded, but follows from the set of
armed timers: the earliest is the next timer event. When the tick is stopped the kernel
re-arms the tick's own timer for what the timer wheel has next, which is the only view
of the wheel that there is.
"""
from __future__ import annotations

import contextlib
import lzma
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from . import wake
from .errors import Fail
from .events import Facts, Handler, Reader, Source, switch
from .idle import EXIT, HANDLED_AFTER
from .states import Machine

COLUMNS = "cpu,entry_ns,dur_ns,wake_ns,sleep_ns,delta_ns,next,src,irq,flags,state"
SOURCES = {"local_timer_entry": "T", "reschedule_entry": "R", "call_function_entry": "C",
           "call_function_single_entry": "C", "irq_work_entry": "W"}
FLAG_STOPPED, FLAG_STOPS, FLAG_TASK, FLAG_MORE, FLAG_CONTINUES, FLAG_EXPIRED = 1, 2, 4, 8, 16, 32
#: Periods that are kept until a few ticks have told where they fall due.
LEARN = 4096
#: Governors that always let the tick be stopped.
STOPPING = ("haltpoll", "ladder")


@dataclass
class Period:
    """One idle time, as the replay wants it; times in ns."""
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
        return ",".join(map(str, (cpu, self.entry - t0, self.end - self.entry, self.wake,
                                  self.sleep, self.delta, self.next, self.source or "N",
                                  self.irq, self.flags, self.state)))


@dataclass
class Cpu:
    """What is known about a CPU at a point of the recording."""
    timers: dict[str, int] = field(default_factory=dict)
    tick: int | None = None             # when the tick's timer expires
    tick_before: int | None = None      # and before it was stopped
    stopped: bool = False
    stops: bool = False                 # in this period
    continues: bool = False
    period: Period | None = None        # being in it, or not yet written
    done: bool = False


class Reconstruction:
    """Handlers that make periods and hand each to @give when it is over."""

    def __init__(self, realtime_offset: int, give: Callable[[int, Period], None]):
        self.realtime_offset = realtime_offset
        self.give = give
        self.cpus: dict[int, Cpu] = {}
        self.owner: dict[str, int] = {}         # hrtimer: CPU
        self.tick_timers: set[str] = set()
        self.tick_phases: dict[int, int] = {}
        self.tick_ns = 1
        self.learning = True

    def handlers(self) -> dict[str, Handler]:
        found: dict[str, Handler] = {
            "cpu_idle": self._idle, "sched_switch": self._switch, "tick_stop": self._tick_stop,
            "hrtimer_start": self._start, "hrtimer_cancel": self._cancel,
            "hrtimer_expire_entry": self._expire, "irq_handler_entry": self._device}
        for event, source in SOURCES.items():
            found[event] = self._vector(source)
        return found

    def _cpu(self, number: int) -> Cpu:
        cpu = self.cpus.get(number)
        if cpu is None:
            cpu = self.cpus[number] = Cpu()
        return cpu

    def _tick_stop(self, now: int, number: int, head: str, text: str) -> None:
        if text.lstrip().startswith("success=0") or "success=no" in text:
            return
        cpu = self._cpu(number)
        cpu.stopped = cpu.stops = True
        cpu.tick_before = cpu.tick

    def _forget(self, timer: str) -> None:
        owner = self.owner.pop(timer, None)
        if owner is None:
            return
        if timer in self.tick_timers:
            self.cpus[owner].tick = None
        else:
            self.cpus[owner].timers.pop(timer, None)

    def _start(self, now: int, number: int, head: str, text: str) -> None:
        words = dict(word.split("=", 1) for word in text.split() if "=" in word)
        timer, expires = words["hrtimer"], int(words["expires"])
        self._forget(timer)
        if expires > self.realtime_offset // 2 > now:
            expires -= self.realtime_offset
        cpu = self._cpu(number)
        self.owner[timer] = number
        if wake.plain(words["function"]) in wake.TICK:
            self.tick_timers.add(timer)
            if self.learning:
                phase = expires % self.tick_ns
                self.tick_phases[phase] = self.tick_phases.get(phase, 0) + 1
            cpu.tick = expires
        else:
            cpu.timers[timer] = expires

    def _cancel(self, now: int, number: int, head: str, text: str) -> None:
        self._forget(text[text.index("=") + 1:].split(None, 1)[0])

    def _expire(self, now: int, number: int, head: str, text: str) -> None:
        self._forget(text[text.index("=") + 1:].split(None, 1)[0])
        cpu = self._cpu(number)
        if cpu.period and cpu.period.source == "T":
            cpu.period.flags |= FLAG_EXPIRED

    def _vector(self, source: str) -> Handler:
        def entry(now: int, number: int, head: str, text: str) -> None:
            self._interrupt(now, number, source, 0)
        return entry

    def _device(self, now: int, number: int, head: str, text: str) -> None:
        match = wake.IRQ.search(text)
        self._interrupt(now, number, "D", int(match[1]) if match else 0)

    def _interrupt(self, now: int, number: int, source: str, irq: int) -> None:
        cpu = self._cpu(number)
        period = cpu.period
        if period is None or (cpu.done and now - period.end > HANDLED_AFTER):
            return
        if period.source:
            if not cpu.done:
                period.flags |= FLAG_MORE
            return
        period.source, period.irq = source, irq
        period.wake = (period.end if cpu.done else now) - period.entry

    def _next_event(self, now: int, cpu: Cpu) -> tuple[int, int, str]:
        """sleep_ns, delta_ns, next as of idle entry."""
        hrtimer = min(cpu.timers.values(), default=None)
        second = (cpu.tick, "w" if cpu.stopped else "k")
        tick = cpu.tick_before if cpu.stopped and cpu.stops else None
        candidates = [(t, n) for t, n in ((hrtimer, "h"), second) if t is not None]
        if not candidates:
            return -1, -1 if tick is None else max(tick - now, 0), "-"
        when, name = min(candidates)
        delta = when if tick is None else min(when, tick)
        return max(when - now, 0), max(delta - now, 0), name

    def _idle(self, now: int, number: int, head: str, text: str) -> None:
        cpu = self._cpu(number)
        state = int(text.lstrip()[6:].split(None, 1)[0])
        if state in EXIT:
            if cpu.period and not cpu.done:
                cpu.period.end, cpu.done = now, True
            return
        if cpu.period and cpu.done:
            # Back in idle, and nothing ran.
            self.give(number, cpu.period)
            cpu.continues = True
        flags = FLAG_CONTINUES if cpu.continues else 0
        flags |= FLAG_STOPS if cpu.stops else FLAG_STOPPED if cpu.stopped else 0
        cpu.period = Period(now, *self._next_event(now, cpu), flags, state)
        cpu.stops, cpu.done = False, False

    def _switch(self, now: int, number: int, head: str, text: str) -> None:
        switched = switch(text)
        if not switched or switched[0] != "0":
            return
        cpu = self._cpu(number)
        if cpu.period and cpu.done:
            cpu.period.flags |= FLAG_TASK
            cpu.period.source = cpu.period.source or "P"
            self.give(number, cpu.period)
        cpu.period = None
        cpu.stopped = cpu.stops = cpu.continues = False


class Writer:
    """NAME.cpuN.csv.xz, written as the periods come."""

    def __init__(self, name: str, workload: str, hz: int, work: Reconstruction):
        self.name, self.workload, self.hz, self.work = name, workload, hz, work
        self.waiting: list[tuple[int, Period]] = []
        self.t0: int | None = None
        self.files: dict[int, IO[str]] = {}
        self.rows: dict[int, int] = {}
        self.stack = contextlib.ExitStack()

    def give(self, number: int, period: Period) -> None:
        if self.t0 is not None:
            self._write(number, period)
            return
        self.waiting.append((number, period))
        if len(self.waiting) >= LEARN:
            self.flush()

    def flush(self) -> None:
        """Ticks have been seen: fix their origin and write what has waited."""
        if self.t0 is None and self.waiting:
            phases = self.work.tick_phases
            phase = max(phases, key=phases.__getitem__) if phases else 0
            first = min(period.entry for _, period in self.waiting)
            self.t0 = first - (first - phase) % self.work.tick_ns
        self.work.learning = False
        for number, period in self.waiting:
            self._write(number, period)
        self.waiting = []

    def _write(self, number: int, period: Period) -> None:
        out = self.files.get(number)
        if out is None:
            out = self.files[number] = self.stack.enter_context(
                lzma.open(self.path(number), "wt"))
            print(f"# idle periods v1; workload={self.workload}; hz={self.hz};"
                  f" tick_ns={self.work.tick_ns}; t0_mono_ns={self.t0}; all times in ns; wake_ns,"
                  " dur_ns, sleep_ns, delta_ns are relative to entry_ns, -1 = none", file=out)
            print(COLUMNS, file=out)
        assert self.t0 is not None
        print(period.row(number, self.t0), file=out)
        self.rows[number] = self.rows.get(number, 0) + 1

    def path(self, number: int) -> Path:
        return Path(f"{self.name}.cpu{number}.csv.xz")

    def remove(self) -> None:
        self.stack.close()
        for number in self.files:
            self.path(number).unlink(missing_ok=True)


def convert(source: Source, machine: Machine | None, name: str, hz: int,
            progress: Callable[[int, Facts], None]) -> Writer:
    """Write the files; nothing remains of them if the trace turns out to be unfit."""
    hz = hz or (machine.hz if machine else 0)
    if not hz:
        raise Fail("CONFIG_HZ of the recording is not known, must be given with --hz")
    if not (machine and machine.clock == "mono") and "clockid = 1," not in source.header:
        raise Fail(f"{source.path}: not recorded with the monotonic clock, in which timers expire;"
                   " `cpuwhy record` and `perf record -k mono` do")
    work = Reconstruction(machine.realtime_offset if machine else 0, lambda cpu, period: None)
    work.tick_ns = 1_000_000_000 // hz
    writer = Writer(name, (machine.workload if machine else "unknown").replace(";", ","), hz, work)
    work.give = writer.give
    try:
        facts = Reader(source, work.handlers(), progress=progress).run()
        lost = dict(facts.lost)
        lost.update(machine.lost if machine else {})
        needed = [event for event in ("cpu_idle", "hrtimer_start", "sched_switch")
                  if event not in facts.seen]
        if needed:
            raise Fail(f"{source.path}: has no {needed[0]} events, which `replay` needs;"
                       " `cpuwhy record` records all that it needs")
        if lost:
            raise Fail(f"{source.path}: {sum(lost.values())} events were lost, and a replay needs"
                       " them all: record with a larger --buffer-mb or for fewer seconds")
        writer.flush()
    except BaseException:
        writer.remove()
        raise
    writer.stack.close()
    return writer
