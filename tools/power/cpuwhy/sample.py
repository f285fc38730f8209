# SPDX-License-Identifier: GPL-2.0
"""What a machine does in a while: energy, clock, waits, wake-ups; and whether it was held down.

Of what is read below a root, tests have their own.
"""
from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from . import events, measure, record
from .errors import Fail

TSC = 0x10
#: Of all CPUs, kB; and the least of one.
BUFFERS_KB, LEAST_KB = 2048, 16
#: A state that takes longer to leave is deep: as the series' choice of CPU has it.
DEEP_US = 20
#: Energy counters of small ranges start anew after minutes.
POLL_S = 5.0
#: What holds clock or power, below sys; none of them may change while it is measured.
LIMITS = ("devices/system/cpu/online", "devices/system/cpu/intel_pstate/no_turbo",
          "devices/system/cpu/cpufreq/boost", "devices/system/cpu/cpufreq/policy*/bios_limit",
          "devices/system/cpu/cpufreq/policy*/scaling_m??_freq",
          "class/powercap/intel-rapl*/constraint_*_power_limit_uw",
          "class/power_supply/*/online", "firmware/acpi/platform_profile")


def celsius(root: Path = Path("/")) -> float | None:
    """The hottest sensor of the CPUs."""
    found = []
    for chip in root.glob("sys/class/hwmon/hwmon*"):
        with suppress(OSError, ValueError):
            if (chip / "name").read_text().strip() in ("coretemp", "k10temp"):
                found += [int(path.read_text()) / 1000 for path in chip.glob("temp*_input")]
    return max(found, default=None)


def throttled(root: Path = Path("/")) -> int:
    return sum(int(path.read_text()) for path in root.glob(
        "sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count"))


def limits(root: Path = Path("/")) -> dict[str, str]:
    found = {}
    for pattern in LIMITS:
        for path in root.glob(f"sys/{pattern}"):
            with suppress(OSError):
                found[str(path)] = path.read_text().strip()
    return found


# --- wake-ups, of the kernel's trace --------------------------------------------

@dataclass
class Wakes:
    """Tasks that were woken for an idle CPU: us until they ran, and how many of these CPUs came
    from a deep state."""
    us: list[float] = field(default_factory=list)
    deep: int = 0


def wakes(text: str, deep: set[tuple[int, int]], lost: set[int]) -> Wakes:
    """Of tracefs' text with cpu_idle, sched_waking and sched_switch. @deep: CPUs and their deep
    states; @lost: CPUs whose buffer was full: nothing after the first of these ends counts."""
    rows = [(round(float(m["time"]) * 1e6), int(m["cpu"]), m["event"], m["text"])
            for m in map(events.LINE.match, text.splitlines()) if m]
    end = min((max(us for us, cpu, *_ in rows if cpu == one) for one in lost
               if any(cpu == one for _, cpu, *_ in rows)), default=None)
    found, woken = Wakes(), {}
    rests: dict[int, tuple[int, int]] = {}              # CPU: its last state, and since when
    for us, cpu, name, said in rows:
        if end is not None and us > end:
            break
        if name == "cpu_idle":
            number = re.search(r"state=(\d+) cpu_id=(\d+)", said)
            if number and int(number[1]) != measure.LEFT:
                rests[int(number[2])] = int(number[1]), us
        elif name == "sched_waking":
            if number := re.search(r" pid=(\d+) ", said):
                woken[number[1]] = us
        elif name == "sched_switch" and (tasks := events.switch(said)) and tasks[0] == "0":
            if (since := woken.pop(tasks[2], None)) is not None:
                state, began = rests.get(cpu, (-1, us))
                found.us.append(us - since)
                found.deep += (cpu, state) in deep and began <= since
    return found


def deep_states(root: Path = Path("/")) -> set[tuple[int, int]]:
    found = set()
    for path in root.glob("sys/devices/system/cpu/cpu[0-9]*/cpuidle/state[0-9]*/latency"):
        with suppress(OSError, ValueError):
            if int(path.read_text()) > DEEP_US:
                found.add((int(path.parts[-4][3:]), int(path.parts[-2][5:])))
    return found


@contextmanager
def traced(seconds: float, at_once: bool) -> Iterator[Wakes]:
    """What so much of the trace says is there at the end: from the beginning of the block or,
    if not @at_once, after it, as far as it fits into small buffers."""
    found = Wakes()
    if not seconds:
        yield found
        return
    instance = record.Instance(["power:cpu_idle", "sched:sched_waking", "sched:sched_switch"],
                               max(LEAST_KB, BUFFERS_KB // len(list(measure.CPUS.glob("cpu[0-9]*")))
                                   ), False)
    timer = threading.Timer(seconds, lambda: instance.set("tracing_on", "0"))
    try:
        if at_once:
            instance.set("tracing_on", "1")
            timer.start()
        yield found
        if not at_once:
            instance.set("tracing_on", "1")
            time.sleep(seconds)
        instance.set("tracing_on", "0")
        of = wakes((instance.root / "trace").read_text(errors="replace"), deep_states(),
                   set(instance.lost()))
        found.us, found.deep = of.us, of.deep
    finally:
        timer.cancel()
        if at_once:
            timer.join()
        instance.close()


def usable_trace() -> bool:
    try:
        with traced(0.001, False):
            return True
    except (Fail, OSError):
        return False


# --- counters -------------------------------------------------------------------

@dataclass(frozen=True)
class Counters:
    """At one time. None: this machine has none."""
    ns: int
    joules: float
    clock: tuple[int, int, int] | None  # of all CPUs APERF and MPERF, TSC of one
    waits: tuple[int, int] | None       # ns that tasks waited for a CPU, and how often
    switches: int
    asleep_s: float                     # of the machine, since boot
    throttled: int
    limits: dict[str, str]


class Reader:
    """@zones: energy counters."""

    def __init__(self, root: Path = Path("/"), zones: list[Path] | None = None,
                 msr: Callable[[int, int], int | None] = measure.read_msr) -> None:
        self.root, self.msr = root, msr
        self.zones = measure.packages() if zones is None else zones
        self._ranges = [self._number(zone / "max_energy_range_uj") + 1 for zone in self.zones]
        self._last = self._energy()
        self._joules = 0.0

    @staticmethod
    def _number(path: Path) -> int:
        return int(path.read_text())

    def _energy(self) -> list[int]:
        return [self._number(zone / "energy_uj") for zone in self.zones]

    def joules(self) -> float:
        """So far; to be asked before a counter can have started anew twice."""
        now = self._energy()
        self._joules += sum((b - a) % most for a, b, most in
                            zip(self._last, now, self._ranges)) / 1e6
        self._last = now
        return self._joules

    def _clock(self) -> tuple[int, int, int] | None:
        cpus = sorted(int(path.name) for path in (self.root / "dev/cpu").glob("[0-9]*"))
        read = [(self.msr(cpu, measure.APERF), self.msr(cpu, measure.MPERF)) for cpu in cpus]
        there = [(a, m) for a, m in read if a is not None and m is not None]
        tsc = self.msr(cpus[0], TSC) if cpus else None
        if not there or tsc is None:
            return None
        return sum(a for a, _ in there), sum(m for _, m in there), tsc

    def _waits(self) -> tuple[int, int] | None:
        try:
            text = (self.root / "proc/schedstat").read_text()
        except OSError:
            return None
        rows = [line.split() for line in text.splitlines() if re.match(r"cpu\d", line)]
        return (sum(int(row[8]) for row in rows), sum(int(row[9]) for row in rows))

    def read(self) -> Counters:
        stat = (self.root / "proc/stat").read_text()
        return Counters(
            time.monotonic_ns(), self.joules(), self._clock(), self._waits(),
            int(re.search(r"^ctxt (\d+)", stat, re.M)[1]),  # type: ignore[index]
            time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC),
            throttled(self.root), limits(self.root))


def values(begin: Counters, end: Counters) -> dict[str, float]:
    """Between two times: by the names that compare has."""
    seconds = (end.ns - begin.ns) / 1e9
    found = {"power": (end.joules - begin.joules) / seconds,
             "switches": (end.switches - begin.switches) / seconds}
    if begin.clock and end.clock:
        aperf, mperf, tsc = (b - a for a, b in zip(begin.clock, end.clock))
        if mperf > 0:
            found["clock"] = aperf / mperf * tsc / seconds / 1e6
    if begin.waits and end.waits and end.waits[1] > begin.waits[1]:
        found["run delay"] = ((end.waits[0] - begin.waits[0])
                              / (end.waits[1] - begin.waits[1]) / 1000)
    return found


def disturbed(begin: Counters, end: Counters, usual: dict[str, str] | None) -> str:
    """Why what was measured between two times cannot be compared; @usual: the limits that the
    setting had before."""
    if end.asleep_s - begin.asleep_s > 0.1:
        return "the machine was suspended"
    if end.throttled != begin.throttled:
        return "the CPU throttled"
    if begin.limits != end.limits or usual not in (None, end.limits):
        return "a limit of clock or power, the power supply or the CPUs online changed"
    return ""
