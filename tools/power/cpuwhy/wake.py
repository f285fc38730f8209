# SPDX-License-Identifier: GPL-2.0
"""What ended an idle time: timer, device, another CPU; and who is behind it."""
from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from . import events

#: Handlers of the tick; the kernel renamed it in 6.9.
TICK = {"tick_nohz_handler", "tick_sched_timer", "tick_sched_handle"}
#: Interrupt entries and what to call them.
VECTORS = {"local_timer_entry": "timer", "reschedule_entry": "reschedule",
           "call_function_entry": "function call",
           "call_function_single_entry": "function call",
           "irq_work_entry": "irq work", "thermal_apic_entry": "thermal",
           "x86_platform_ipi_entry": "platform IPI", "error_apic_entry": "APIC error",
           "spurious_apic_entry": "spurious"}
IPIS = {"reschedule", "function call"}
#: Frames between the one who wants a timer and the event that tells of it.
MACHINERY = re.compile(r"^(trace_event_|ftrace_|__traceiter_|perf_trace_|event_triggers|"
                       r"(__)?(hr)?timer_(start|reduce|mod)|enqueue_hrtimer|hrtimer_start|"
                       r"hrtimer_(sleeper_start|reprogram)|__hrtimer_start|__mod_timer|mod_timer|"
                       r"add_timer|schedule_(hr)?timeout|__?internal_add_timer|do_nanosleep|"
                       r"enqueue_timer|debug_|start_hrtimer|calc_wheel|queue_delayed_work)")

HRTIMER_START = re.compile(r"hrtimer=(\S+) function=(\S+)")
TIMER_START = re.compile(r"timer=(\S+) function=(\S+)")
FUNCTION = re.compile(r"function=(\S+)")
IRQ = re.compile(r"irq=(\d+) name=(\S+)")
CPU_LIST = re.compile(r"cpumask=([\d,-]+)")
CALLSITE = re.compile(r"callsite=([^\s+]+)")
#: So many tasks are remembered, before those that were woken longer ago are forgotten.
MOST_WAKERS, LONGEST_WAY = 100_000, 1_000_000_000


class Cause(NamedTuple):
    """Why a CPU woke; two wake-ups with an equal one are counted together."""
    kind: str           # tick, timer, device, IPI, store, other, unknown
    name: str           # function, interrupt, kind of IPI
    who: str = ""       # task that armed the timer or sent the IPI
    site: str = ""      # function that armed it or sent it
    woke: str = ""      # task that ran next, if the IPI was for one

    def __str__(self) -> str:
        text = f"{self.kind} {self.name}" if self.kind not in (self.name, "unknown") else self.name
        if self.who:
            text += f" by {self.who}"
        if self.site:
            text += f" in {self.site}"
        if self.woke:
            text += f" for {self.woke}"
        return text


@dataclass
class Timer:
    function: str
    who: str
    site: str = ""


@dataclass
class Wake:
    """What was seen of one wake-up, in the order in which it came."""
    first: str = ""                     # name of the first interrupt, of VECTORS or a device's
    device: str = ""                    # the first device's interrupt, first of all or not
    hrtimer: Timer | None = None        # first that expired and was not the tick
    wheel: Timer | None = None
    tick: bool = False
    context: str = ""                   # by ftrace's flags: "interrupt" or "softirq"


@dataclass
class Sent:
    time: int
    who: str
    site: str
    cpu: int


class Waker(NamedTuple):
    time: int
    cpu: int
    who: str


def plain(function: str) -> str:
    """trace-cmd's plugins add the offset."""
    return function.removesuffix("/0x0")


@dataclass
class Causes:
    """Armed timers, IPIs on their way and woken tasks, of the whole machine."""
    timers: dict[str, Timer] = field(default_factory=dict)
    sent: dict[int, Sent] = field(default_factory=dict)
    #: (ns, CPU, who) by the task that was woken
    wakers: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    last_armed: Timer | None = None
    has_waking: bool = False            # sched_waking is among the events

    def arm(self, head: str, text: str, pattern: re.Pattern[str]) -> None:
        if match := pattern.search(text):
            timer = Timer(plain(match[2]), events.task(head)[0])
            self.timers[match[1]] = self.last_armed = timer

    def frame(self, symbol: str) -> None:
        timer = self.last_armed
        if timer is not None and not timer.site and not MACHINERY.match(symbol):
            timer.site = symbol

    def cancel(self, text: str) -> None:
        self.timers.pop(text[text.index("=") + 1:].split(None, 1)[0], None)

    def expire(self, text: str) -> Timer:
        address = text[text.index("=") + 1:].split(None, 1)[0]
        timer = self.timers.pop(address, None)
        if timer is None:
            match = FUNCTION.search(text)
            # Armed before the recording began.
            timer = Timer(plain(match[1]) if match else "?", "")
        return timer

    def send(self, now: int, cpu: int, head: str, targets: Iterable[int], text: str) -> None:
        site = CALLSITE.search(text)
        who = events.task(head)[0]
        for target in targets:
            if target != cpu:
                self.sent[target] = Sent(now, who, site[1] if site else "", cpu)

    def waking(self, now: int, cpu: int, head: str, text: str) -> None:
        # Most tasks run on CPUs that were busy, and nobody asks.
        self.has_waking = True
        self._woken(now, cpu, head, text)

    def wakeup(self, now: int, cpu: int, head: str, text: str) -> None:
        """Where the task is put into a queue: by its waker, or by its own CPU for a waker
        that is not told, so that this says nothing."""
        if not self.has_waking and f"target_cpu={cpu:03}" not in text:
            self._woken(now, cpu, head, text)

    def _woken(self, now: int, cpu: int, head: str, text: str) -> None:
        at = text.rfind(" pid=") + 5
        self.wakers[text[at:text.find(" ", at)]] = now, cpu, head
        if len(self.wakers) > MOST_WAKERS:
            self.wakers = {tid: woken for tid, woken in self.wakers.items()
                           if woken[0] > now - LONGEST_WAY}

    def ran(self, tid: str) -> Waker | None:
        """Who woke a task that now runs."""
        woken = self.wakers.pop(tid, None)
        return Waker(woken[0], woken[1], events.task(woken[2])[0]) if woken else None

    def cause(self, wake: Wake, cpu: int, since: int, until: int, task: str,
              by: Waker | None) -> Cause:
        """What ended an idle time, and @task, which ran after it, if one did; @by woke it.

        A tick that coincides with something else, which is likely where coming out of the
        state takes long, is not the cause: the other would have woken the CPU as well.
        """
        if by is not None and by.time < since:
            by = None                   # ran meanwhile, and now was moved here
        waker = by.who if by else ""
        called = by is not None and by.cpu != cpu and by.time <= until
        expired = wake.hrtimer or wake.wheel
        # Without the interrupt's own event by what it led to
        timed = wake.first == "timer" or not wake.first and (expired or wake.tick)
        only_tick = timed and not expired
        if wake.device and (only_tick or wake.first == wake.device):
            return Cause("device", wake.device, woke=task)
        if timed and not (only_tick and wake.tick and called):
            return self._timer(wake, task)
        sent = self.sent.pop(cpu, None)
        if sent is not None and sent.time < since:
            sent = None
        who = waker or (sent.who if sent else "")
        site = sent.site if sent else ""
        if wake.first in IPIS:
            return Cause("IPI", wake.first, who, site, task)
        if wake.first and not called:
            return Cause("other", wake.first, woke=task)
        if not called and wake.context:
            return Cause("unknown", wake.context, woke=task)
        if task and by is not None and not called:
            # Woken on this very CPU, which rested: by an interrupt that is not in the trace
            return Cause("unknown", "interrupt", woke=task)
        if task:
            # The CPU watched need_resched, and whoever woke the task set it. That there was
            # no interrupt is known at the end: without_interrupts().
            return Cause("store", "need_resched", who, site, task)
        return Cause("unknown", "no interrupt seen")

    @staticmethod
    def without_interrupts(cause: Cause) -> Cause:
        """In a trace without such events, or of one CPU: nobody can tell, or nobody else is
        there who could store."""
        if cause.kind != "store":
            return cause
        if cause.who:
            return cause._replace(kind="other", name="IPI or store")
        return cause._replace(kind="unknown", name="no interrupt events")

    @staticmethod
    def _timer(wake: Wake, task: str) -> Cause:
        timer = wake.hrtimer or wake.wheel
        if timer is not None:
            return Cause("timer", timer.function, timer.who, timer.site,
                         "" if task == timer.who else task)
        if wake.tick:
            return Cause("tick", "tick", woke=task)
        return Cause("timer", "nothing due", woke=task)
