# SPDX-License-Identifier: GPL-2.0
"""What `cpuwhy probe` measures. Times are the kernel's trace events, not Python's.

A wake-up: from sched_waking on another CPU, or from the time for which a timer was set,
until cpu_idle says that the state was left; the kernel's own part of that, some 0.3 us, is
in it. A change of clock: from the
write of the register until the ratio of APERF and MPERF, which a busy loop reads all the
time, is that of the new clock.
"""
from __future__ import annotations

import itertools
import os
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType

from . import form, record
from .errors import Fail
from .guard import Guard

CPUS = Path("/sys/devices/system/cpu")
APERF, MPERF = 0xE8, 0xE7
LEFT = 0xFFFFFFFF
INSTANCE = "instance"
#: Of registers, by module.
UNLOAD: dict[str, Callable[[], object]] = {
    name: partial(subprocess.run, ["modprobe", "-r", name], capture_output=True)
    for name in ("msr", "cpuid")}


def read_msr(cpu: int, register: int) -> int | None:
    """None if the register is not there or may not be read."""
    try:
        fd = os.open(f"/dev/cpu/{cpu}/msr", os.O_RDONLY)
    except OSError:
        return None
    try:
        return struct.unpack("<Q", os.pread(fd, 8, register))[0]
    except (OSError, struct.error):
        return None
    finally:
        os.close(fd)


def load(guard: Guard) -> None:
    """Modules that are not there; @guard has UNLOAD for the end."""
    for name in UNLOAD:
        if not Path(f"/dev/cpu/0/{name}").exists() and shutil.which("modprobe"):
            guard.later(name)
            subprocess.run(["modprobe", "-q", name], capture_output=True)


def quantiles(values: list[float]) -> list[float]:
    ordered = sorted(values)
    last = len(ordered) - 1
    return [ordered[round(last * share / 100)] for share in form.QUANTILES]


# --- processes -----------------------------------------------------------------

@dataclass
class Child:
    """A process of ours on one CPU, which ends when the pipe to it is closed."""
    pid: int
    to: int         # write end
    back: int       # read end

    def ask(self) -> bytes:
        """One byte there, one back."""
        os.write(self.to, b"x")
        return os.read(self.back, 1)


@contextmanager
def child(cpu: int, work: Callable[[int, int], object]) -> Iterator[Child]:
    """@work gets the pipes from and to its parent, and runs until an exception."""
    there, back = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            os.close(there[1])
            os.close(back[0])
            os.sched_setaffinity(0, {cpu})
            work(there[0], back[1])
        finally:
            os._exit(0)
    os.close(there[0])
    os.close(back[1])
    try:
        yield Child(pid, there[1], back[0])
    finally:
        os.close(there[1])
        os.close(back[0])
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@contextmanager
def on(cpu: int) -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _waits(source: int, target: int) -> None:
    while os.read(source, 1):
        pass


def _sleeps(source: int, target: int) -> None:
    """Sleeps for so many us as it is told, and says when it has."""
    while len(said := os.read(source, 4)) == 4:
        time.sleep(struct.unpack("<I", said)[0] / 1e6)
        os.write(target, b"x")


def _spins(source: int, target: int) -> None:
    """Until its parent has ended."""
    while not select.select([source], [], [], 0)[0]:
        spin(2_000_000)


def spin(ns: int) -> None:
    end = time.monotonic_ns() + ns
    while time.monotonic_ns() < end:
        pass


# --- traces --------------------------------------------------------------------

_EVENT = re.compile(r".*?\[(\d+)\]\s+\S+\s+(\d+): (\w+): (.*)")


@dataclass
class Event:
    ns: float       # CLOCK_MONOTONIC
    cpu: int
    name: str
    fields: str

    def number(self, name: str) -> int:
        found = re.search(rf"\b{name}=(\d+)", self.fields)
        return int(found[1]) if found else 0


class Tracing:
    """A private instance of tracefs. Text has only us with other clocks than the TSC, which
    two writes to trace_marker lay beside CLOCK_MONOTONIC."""

    def __init__(self, guard: Guard, filters: dict[str, str]) -> None:
        guard.later(INSTANCE)
        self._instance = record.Instance([], 2048, False)
        try:
            self._instance.set("trace_clock", "x86-tsc")
            for event, text in filters.items():
                directory = f"events/{event.replace(':', '/')}"
                self._instance.set(f"{directory}/filter", text)
                self._instance.set(f"{directory}/enable", "1")
        except OSError as error:
            self._instance.close()
            raise Fail(f"{error.filename}: {error.strerror}") from None
        self._marks: list[float] = []
        self.events: list[Event] = []

    def _mark(self) -> None:
        """The write that took least of some."""
        end, marks = len(self._marks), []
        fd = os.open(self._instance.root / "trace_marker", os.O_WRONLY)
        try:
            for number in range(16):
                text = b"mark %d %d" % (end, number)
                before = time.monotonic_ns()
                os.write(fd, text)
                after = time.monotonic_ns()
                marks.append((after - before, (before + after) / 2, number))
            _, at, number = min(marks)
            os.write(fd, b"best %d %d" % (end, number))
        finally:
            os.close(fd)
        self._marks.append(at)

    def __enter__(self) -> Tracing:
        self._instance.set("tracing_on", "1")
        self._mark()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        try:
            if kind is None:
                self._mark()
                self._instance.set("tracing_on", "0")
                self._read((self._instance.root / "trace").read_text(errors="replace"))
        finally:
            self._instance.close()

    def _read(self, text: str) -> None:
        found = [Event(int(m[2]), int(m[1]), m[3], m[4])
                 for m in map(_EVENT.match, text.splitlines()) if m]
        ticks = []
        for number in range(2):
            best = next(e for e in found if e.fields.startswith(f"best {number} "))
            ticks.append(next(e.ns for e in found
                              if e.fields == best.fields.replace("best", "mark")))
        rate = (self._marks[1] - self._marks[0]) / (ticks[1] - ticks[0])
        for event in found:
            event.ns = self._marks[0] + (event.ns - ticks[0]) * rate
        # Timers that expire say the time, which was read just before the event.
        late = min((event.ns - event.number("now") for event in found
                    if event.name == "hrtimer_expire_entry"), default=0.0)
        for event in found:
            event.ns -= late
        self.events = found


def can_trace() -> bool:
    """A kernel that is locked down has the directory, but lets nobody use it."""
    try:
        record.Instance(["power:cpu_idle", "sched:sched_waking"], 64, False).close()
    except (Fail, OSError):
        return False
    return True


def undo_tracing(pid: int) -> None:
    """What is left of the instance of a program that was killed."""
    root = record.TRACEFS / "instances" / f"cpuwhy-{pid}"
    if root.is_dir():
        (root / "tracing_on").write_text("0")
        root.rmdir()


# --- settings ------------------------------------------------------------------

@dataclass
class State:
    """An idle state of the CPU that is measured."""
    index: int
    name: str
    exit_us: int
    residency_us: int
    disabled: bool


@dataclass
class Pair:
    """@cpu is woken and asked for clocks; @other, of another core, does that."""
    cpu: int
    other: int
    states: list[State] = field(default_factory=list)
    siblings: list[int] = field(default_factory=list)   # threads of @cpu's core, itself too


def only(guard: Guard, cpu: int, states: list[State], wanted: Callable[[State], bool]) -> None:
    """Of those that were enabled."""
    for state in states:
        if not state.disabled:
            guard.set(CPUS / f"cpu{cpu}/cpuidle/state{state.index}/disable",
                      str(int(not wanted(state))))


def back(guard: Guard, cpu: int, states: list[State]) -> None:
    for state in states:
        guard.back(CPUS / f"cpu{cpu}/cpuidle/state{state.index}/disable")


@contextmanager
def highest_clock(guard: Guard, cpu: int) -> Iterator[None]:
    """The lowest clock allowed is the highest that there is."""
    path = CPUS / f"cpu{cpu}/cpufreq/scaling_min_freq"
    if path.is_file():
        guard.set(path, path.with_name("cpuinfo_max_freq").read_text().strip())
    try:
        yield
    finally:
        guard.back(path)


# --- wake-ups ------------------------------------------------------------------

def _left(events: list[Event], cpu: int, state: int) -> Iterator[tuple[float, float]]:
    """Begin and end of each rest in @state."""
    begin = None
    for event in events:
        if event.name != "cpu_idle" or event.number("cpu_id") != cpu:
            continue
        if event.number("state") == LEFT:
            if begin is not None:
                yield begin, event.ns
            begin = None
        else:
            begin = event.ns if event.number("state") == state else None


def by_waker(events: list[Event], cpu: int, state: int, pid: int) -> list[float]:
    """us from each wake-up by another CPU during a rest until its end."""
    wakes = [event.ns for event in events
             if event.name == "sched_waking" and event.number("pid") == pid]
    out = []
    for begin, end in _left(events, cpu, state):
        while wakes and wakes[0] < begin:
            wakes.pop(0)
        if wakes and wakes[0] < end:
            out.append((end - wakes[0]) / 1000)
    return out


def by_timer(events: list[Event], cpu: int, state: int) -> list[float]:
    """us from the time for which the last timer before a rest was set until the rest's end."""
    timers = [event for event in events if event.name == "hrtimer_start" and event.cpu == cpu]
    out = []
    for begin, end in _left(events, cpu, state):
        before = [event for event in timers if event.ns <= begin]
        if before and begin < (due := before[-1].number("expires")) <= end:
            out.append((end - due) / 1000)
    return out


def wakeups(guard: Guard, pair: Pair, state: State, samples: int) -> tuple[list[float],
                                                                           list[float]]:
    """By the other CPU, and by its own timer: us each, nothing taken off."""
    for cpu in pair.siblings or [pair.cpu]:     # a core rests as its threads together
        only(guard, cpu, pair.states, lambda s: s.index == state.index)
    shortest = max(500, 2 * state.residency_us)

    def rest() -> float:
        return shortest + random.random() * shortest

    with child(pair.cpu, _waits) as waits, on(pair.other):
        with Tracing(guard, {"power:cpu_idle": f"cpu_id == {pair.cpu}",
                             "sched:sched_waking": f"pid == {waits.pid}"}) as traced:
            for _ in range(samples):
                time.sleep(rest() / 1e6)
                os.write(waits.to, b"x")
        woken = by_waker(traced.events, pair.cpu, state.index, waits.pid)
    with child(pair.cpu, _sleeps) as sleeps, on(pair.other):
        with Tracing(guard, {"power:cpu_idle": f"cpu_id == {pair.cpu}",
                             "timer:hrtimer_start": f"common_pid == {sleeps.pid}",
                             "timer:hrtimer_expire_entry": "now > 0"}) as traced:
            for _ in range(samples):
                os.write(sleeps.to, struct.pack("<I", round(rest())))
                os.read(sleeps.back, 1)
        return woken, by_timer(traced.events, pair.cpu, state.index)


def all_wakeups(guard: Guard, pair: Pair, samples: int,
                tell: Callable[[str], None]) -> dict[int, tuple[list[float], list[float]]]:
    """Of each enabled state, by its index; at the highest clock."""
    found = {}
    with highest_clock(guard, pair.cpu):
        for state in pair.states:
            if not state.disabled:
                tell(f"wake-ups from {state.name}")
                found[state.index] = wakeups(guard, pair, state, samples)
    for cpu in pair.siblings or [pair.cpu]:
        back(guard, cpu, pair.states)
    return found


# --- clocks --------------------------------------------------------------------

@dataclass
class Samples:
    ns: list[int]
    aperf: list[int]
    mperf: list[int]

    def ratio(self, first: int, last: int) -> float:
        return ((self.aperf[last] - self.aperf[first])
                / max(1, self.mperf[last] - self.mperf[first]))


def counters(cpu: int, seconds: float) -> Samples:
    """As often as Python can, on that CPU itself."""
    found = Samples([], [], [])
    fd = os.open(f"/dev/cpu/{cpu}/msr", os.O_RDONLY)
    try:
        end = time.monotonic_ns() + seconds * 1e9
        while not found.ns or found.ns[-1] < end:
            mperf, aperf = os.pread(fd, 8, MPERF), os.pread(fd, 8, APERF)
            found.ns.append(time.monotonic_ns())
            found.aperf.append(struct.unpack("<Q", aperf)[0])
            found.mperf.append(struct.unpack("<Q", mperf)[0])
    finally:
        os.close(fd)
    return found


#: Samples on both sides of a change by which its time is computed.
AROUND = 8


def delay(samples: Samples, asked: float) -> tuple[float, float, float] | None:
    """us from @asked until the new clock, and the clocks before and after, over the base.
    The time is that at which cycles of the one clock and then of the other make those that
    were counted around it."""
    n = len(samples.ns)
    first = next((i for i, ns in enumerate(samples.ns) if ns >= asked), n)
    if first < AROUND or n - first < 4 * AROUND:
        return None
    before, after = samples.ratio(0, first - 1), samples.ratio(n - (n - first) // 4, n - 1)
    if abs(after - before) < 0.05 * before:
        return None
    mid = (before + after) / 2
    steps = [(samples.ratio(i, i + 1) > mid) == (after > before) for i in range(n - 1)]
    at = next((i for i in range(first - 1, n - 2) if steps[i] and steps[i + 1]), None)
    if at is None:
        return None
    low, high = max(0, at - AROUND), min(n - 1, at + AROUND)
    mperf, aperf = (values[high] - values[low] for values in (samples.mperf, samples.aperf))
    share = (after - aperf / mperf) / (after - before)
    ns = samples.ns[low] + share * (samples.ns[high] - samples.ns[low])
    return (ns - asked) / 1000, before, after


@dataclass
class Change:
    """@ratio: over the base clock; @asked: see form.py."""
    up: bool
    asked: str
    before: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)
    us: list[float] = field(default_factory=list)


#: Of a change, and of what is read before it.
WINDOW_S, BEFORE_S = 0.016, 0.002
GOLDEN = 0.618034	# multiples of it divide an interval evenly


def changes(guard: Guard, pair: Pair, samples: int) -> list[Change]:
    """From the lowest to the highest clock and back: a busy CPU, whose highest allowed clock
    another one sets."""
    limits = CPUS / f"cpu{pair.cpu}/cpufreq"
    low, high = ((limits / f"cpuinfo_{which}_freq").read_text().strip()
                 for which in ("min", "max"))
    ceiling = limits / "scaling_max_freq"
    high = min(high, ceiling.read_text().strip(), key=int)
    filters = {"power:cpu_frequency": f"cpu_id == {pair.cpu}"}
    if record.available("msr:write_msr"):
        filters["msr:write_msr"] = record.msr_filter(record.WRITTEN)

    def sets(source: int, target: int) -> None:
        for number in itertools.count():
            if not (said := os.read(source, 1)):
                break
            # Phases of an unknown period, evenly: chance may leave out a quarter of it
            time.sleep(BEFORE_S + number * GOLDEN % 1 * 0.003)
            ceiling.write_text(low if said == b"d" else high)

    found = {True: Change(True, "event"), False: Change(False, "event")}
    guard.set(ceiling, low)
    with (highest_clock(guard, pair.cpu), on(pair.cpu),
          child(pair.other, sets) as setter):
        spin(10_000_000)
        for number in range(2 * samples):
            up = number % 2 == 0
            with Tracing(guard, filters) as traced:
                os.write(setter.to, b"u" if up else b"d")
                seen = counters(pair.cpu, WINDOW_S)
            asked = [e for e in traced.events if e.cpu == pair.cpu or e.name == "cpu_frequency"]
            written = [e for e in asked if e.name == "write_msr"]
            if not asked:
                continue
            event = (written or asked)[0]
            change = found[up]
            change.asked = "register" if written else "event"
            if one := delay(seen, event.ns):
                for values, value in zip((change.us, change.before, change.after), one):
                    values.append(value)
    guard.back(ceiling)
    return [change for change in found.values() if change.us]


def busy_clock(guard: Guard, cpus: list[int], seconds: float) -> float | None:
    """The first CPU's clock over the base while all are busy."""
    def now() -> tuple[int | None, float | None]:
        """APERF, and MPERF in the middle between reads before and after. Of some tries that of
        which these were nearest to each other."""
        tries = []
        for _ in range(8):
            before, aperf, after = (read_msr(cpus[0], msr) for msr in (MPERF, APERF, MPERF))
            if before is None or after is None:
                return None, None
            tries.append((after - before, (aperf, (before + after) / 2)))
        return min(tries)[1]

    with ExitStack() as stack:
        for cpu in cpus:
            stack.enter_context(highest_clock(guard, cpu))
        stack.enter_context(_spinning(cpus))
        time.sleep(seconds)
        first = now()
        time.sleep(seconds)
        last = now()
    if None in first or None in last or last[1] == first[1]:
        return None
    return (last[0] - first[0]) / (last[1] - first[1])  # type: ignore[operator]


@contextmanager
def _spinning(cpus: list[int]) -> Iterator[None]:
    if not cpus:
        yield
        return
    with child(cpus[0], _spins), _spinning(cpus[1:]):
        yield


# --- power ---------------------------------------------------------------------

POWERCAP = Path("/sys/class/powercap")


def packages() -> list[Path]:
    """Energy counters of packages; AMD's have the same names."""
    found = []
    for zone in sorted(POWERCAP.glob("intel-rapl:*")):
        with suppress(OSError):
            if (zone / "name").read_text().startswith("package"):
                (zone / "energy_uj").read_text()
                found.append(zone)
    return found


def watts(zones: list[Path], seconds: float) -> float:
    """The counter may start anew once."""
    def read() -> list[int]:
        return [int((zone / "energy_uj").read_text()) for zone in zones]

    ranges = [int((zone / "max_energy_range_uj").read_text()) for zone in zones]
    begin, first = time.monotonic(), read()
    time.sleep(seconds)
    last, took = read(), time.monotonic() - begin
    return sum((b - a) % (most + 1) for a, b, most in zip(first, last, ranges)) / 1e6 / took


def power(pair: Pair, zones: list[Path], seconds: float) -> list[float]:
    """Idle, with one busy core, with two."""
    found = []
    for busy in range(3):
        with _spinning([pair.cpu, pair.other][:busy]):
            time.sleep(0.2)
            found.append(watts(zones, seconds / (1 + busy)))
    return found


# --- hand-overs ----------------------------------------------------------------

def handover(pair: Pair, work_us: int, turns: int) -> float:
    """us of one, without the work: two processes on two CPUs work and wake each other."""
    def answers(source: int, target: int) -> None:
        while os.read(source, 1):
            spin(work_us * 1000)
            os.write(target, b"x")

    took = []
    with on(pair.other), child(pair.cpu, answers) as partner:
        for _ in range(turns):
            begin = time.monotonic_ns()
            partner.ask()
            took.append(time.monotonic_ns() - begin)
            spin(work_us * 1000)
    return (sorted(took)[turns // 2] / 1000 - work_us) / 2


#: Work between two hand-overs, us.
WORK_US = (0, 200)


def handovers(guard: Guard, pair: Pair, turns: int) -> Iterator[tuple[int, str, float]]:
    """Work, which states, us."""
    for states in ("all", "shallow"):
        for cpu in (pair.cpu, pair.other) if states == "shallow" else ():
            only(guard, cpu, pair.states, lambda s: s.index < 2)
        for work_us in WORK_US:
            yield work_us, states, handover(pair, work_us, turns)
    for cpu in (pair.cpu, pair.other):
        back(guard, cpu, pair.states)
