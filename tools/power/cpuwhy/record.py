# SPDX-License-Identifier: GPL-2.0
"""Recording: a private tracefs instance saved by trace-cmd, or perf.

An instance has no reader while it records, so that the recorder wakes no CPU; where
there is no trace-cmd, perf records, and wakes when a buffer is half full.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import doctor, quota, states
from .errors import Fail

TRACEFS = Path("/sys/kernel/tracing")

#: What `idle` and `replay` read. Those in OPTIONAL are not in every kernel or on every
#: architecture; without them the result says less.
IDLE = ("power:cpu_idle", "timer:tick_stop", "timer:hrtimer_start", "timer:hrtimer_cancel",
        "timer:hrtimer_expire_entry", "timer:timer_start", "timer:timer_expire_entry",
        "irq:irq_handler_entry", "sched:sched_switch", "sched:sched_waking")
OPTIONAL = ("power:cpu_idle_miss", "ipi:ipi_send_cpu", "ipi:ipi_send_cpumask",
            "sched:sched_wake_idle_without_ipi",
            "irq_vectors:local_timer_entry", "irq_vectors:reschedule_entry",
            "irq_vectors:call_function_entry", "irq_vectors:call_function_single_entry",
            "irq_vectors:irq_work_entry", "irq_vectors:thermal_apic_entry",
            "irq_vectors:x86_platform_ipi_entry", "irq_vectors:error_apic_entry",
            "irq_vectors:spurious_apic_entry")
FREQ = ("power:cpu_frequency", "sched:sched_switch", "sched:sched_waking")
FREQ_OPTIONAL = ("power:cpu_frequency_limits", "power:pstate_sample", "amd_cpu:amd_pstate_perf",
                 "msr:write_msr", "msr:read_msr")
#: IA32_PERF_CTL, IA32_HWP_REQUEST, MSR_AMD_PERF_CTL, MSR_AMD_CPPC_REQ; MPERF and APERF,
#: which are read by turn, MPERF last.
WRITTEN = (0x199, 0x774, 0xC0010062, 0xC00102B3)
COUNTERS = (0xE7, 0xE8)


def available(event: str) -> bool:
    return (TRACEFS / "events" / event.replace(":", "/")).is_dir()


def msr_filter(registers: tuple[int, ...]) -> str:
    return " || ".join(f"msr == {register:#x}" for register in registers)


FILTERS = {"msr:write_msr": msr_filter(WRITTEN), "msr:read_msr": msr_filter(COUNTERS),
           "sched:sched_switch": "prev_pid == 0 || next_pid == 0"}


def events_for(kind: str) -> list[str]:
    needed, optional = (FREQ, FREQ_OPTIONAL) if kind == "freq" else (IDLE, OPTIONAL)
    # One takes the other's place in kernels to come
    needed = tuple("power:policy_frequency" if event == "power:cpu_frequency" and not
                   available(event) and available("power:policy_frequency") else event
                   for event in needed)
    missing = [event for event in needed if not available(event)]
    if missing:
        raise Fail(f"this kernel has no event {missing[0]}, which is needed")
    return list(needed) + [event for event in optional if available(event)]


class Instance:
    """A tracefs instance of our own; other tracing goes on undisturbed."""

    def __init__(self, events: list[str], buffer_kb: int, stacks: bool):
        self.name = f"cpuwhy-{os.getpid()}"
        self.root = TRACEFS / "instances" / self.name
        try:
            self.root.mkdir()
        except PermissionError:
            raise Fail("recording needs root") from None
        try:
            self.set("tracing_on", "0")
            self.set("trace_clock", "mono")
            # Rather miss the end than have a hole somewhere.
            self.set("options/overwrite", "0")
            self.set("buffer_size_kb", str(buffer_kb))
            for event in events:
                directory = f"events/{event.replace(':', '/')}"
                if event in FILTERS:
                    self.set(f"{directory}/filter", FILTERS[event])
                if stacks and event in ("timer:hrtimer_start", "timer:timer_start"):
                    self.set(f"{directory}/trigger", "stacktrace")
                self.set(f"{directory}/enable", "1")
        except OSError as error:
            self.close()
            raise Fail(f"{error.filename}: {error.strerror}") from None

    def set(self, name: str, value: str) -> None:
        (self.root / name).write_text(value)

    def lost(self) -> dict[int, int]:
        found = {}
        for stats in self.root.glob("per_cpu/cpu*/stats"):
            numbers = dict(line.split(": ")[:2] for line in stats.read_text().splitlines()
                           if ": " in line)
            count = sum(int(numbers[key]) for key in ("overrun", "commit overrun",
                                                      "dropped events"))
            if count:
                found[int(stats.parent.name[3:])] = count
        return found

    def save(self, path: Path) -> None:
        # To read a compressed file takes as much memory as its contents; trace-cmd before
        # 3.0 compresses nothing and does not know the option.
        command = ["trace-cmd", "extract", "-B", self.name, "-o", str(path)]
        for option in (("--compression", "none"), ()):
            done = subprocess.run(command + list(option), capture_output=True, text=True)
            if not done.returncode:
                break
        if not path.is_file() or not path.stat().st_size:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise Fail(f"trace-cmd extract failed: {said[-1] if said else done.returncode}")

    def close(self) -> None:
        # trace-cmd removes the instance when it has read it.
        if self.root.is_dir():
            self.set("tracing_on", "0")
            self.root.rmdir()


@contextmanager
def _command(argv: list[str]) -> Iterator[subprocess.Popen[bytes] | None]:
    if not argv:
        yield None
        return
    try:
        child = subprocess.Popen(argv)
    except OSError as error:
        raise Fail(f"{argv[0]}: {error.strerror}") from None
    try:
        yield child
    finally:
        if child.poll() is None:
            child.terminate()
            child.wait()


def wake_all() -> None:
    """End each CPU's idle time. sysfs counts an idle time when it ends, the trace from
    where it began: long ones across the ends of the recording would not agree."""
    allowed = os.sched_getaffinity(0)
    for cpu in allowed:
        os.sched_setaffinity(0, {cpu})
    os.sched_setaffinity(0, allowed)


def _wait(child: subprocess.Popen[bytes] | None, seconds: float) -> None:
    if child is None:
        time.sleep(seconds)
        return
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        pass


def _by_tracefs(path: Path, events: list[str], seconds: float, argv: list[str], buffer_mb: int,
                stacks: bool, machine: states.Machine) -> None:
    instance = Instance(events, buffer_mb << 10, stacks)
    try:
        with _command(argv) as child:
            instance.set("tracing_on", "1")
            begin = time.monotonic()
            wake_all()
            before = states.read_sysfs()
            try:
                _wait(child, seconds)
                wake_all()
            finally:
                after = states.read_sysfs()
                instance.set("tracing_on", "0")
            machine.seconds = time.monotonic() - begin
        machine.states = states.difference(before, after)
        machine.lost = instance.lost()
        instance.save(path)
    finally:
        instance.close()


def _by_perf(path: Path, events: list[str], seconds: float, argv: list[str], buffer_mb: int,
             stacks: bool, machine: states.Machine) -> None:
    command = ["perf", "record", "-q", "-a", "-k", "CLOCK_MONOTONIC", "-m", f"{buffer_mb}M",
               "-o", str(path)]
    for event in events:
        chain = stacks and event in ("timer:hrtimer_start", "timer:timer_start")
        command += ["-e", event + "/call-graph=fp,max-stack=16/" * chain]
        if event in FILTERS:
            command += ["--filter", FILTERS[event]]
    before = states.read_sysfs()
    begin = time.monotonic()
    done = subprocess.run([*command, "--", *(["timeout", str(seconds), *argv] if argv
                                             else ["sleep", str(seconds)])],
                          stderr=subprocess.PIPE, text=True)
    machine.seconds = time.monotonic() - begin
    machine.states = states.difference(before, states.read_sysfs())
    if not path.is_file() or not path.stat().st_size:
        said = done.stderr.strip().splitlines()
        raise Fail(f"perf record failed: {said[-1] if said else done.returncode}")


def record(path: Path, kind: str, seconds: float, argv: list[str], buffer_mb: int = 64,
           stacks: bool = False, tool: str = "") -> states.Machine:
    """Record @seconds, or as long as a command runs if that is shorter; a table of the
    idle states goes into a file beside @path."""
    if os.geteuid():
        raise Fail("recording needs root")
    tool = tool or ("trace-cmd" if shutil.which("trace-cmd") else "perf")
    if not shutil.which(tool):
        raise Fail(f"recording needs {tool} (Debian packages: trace-cmd, linux-perf)")
    if not (TRACEFS / "events").is_dir():
        raise Fail(f"tracefs is not mounted, must be on {TRACEFS}:"
                   f" mount -t tracefs nodev {TRACEFS}")
    machine = states.this_machine()
    machine.clock, machine.with_tool = "mono", tool
    machine.workload = " ".join(argv) or "whatever ran"
    machine.events = events_for(kind)
    by = _by_tracefs if tool == "trace-cmd" else _by_perf
    before, limits = states.read_skipped(), quota.read()
    by(path, machine.events, seconds, argv, buffer_mb, stacks, machine)
    machine.skipped = states.growth(before, states.read_skipped())
    machine.limits = list(quota.growth(limits, quota.read()).values())
    machine.turbo = states.read_turbo()
    machine.invariance = doctor.why_off(doctor.System(Path("/")))
    machine.write(sidecar(path))
    for cpu, count in sorted(machine.lost.items()):
        print(f"cpuwhy: CPU {cpu}: the buffer was full, {count} events at the end are missing;"
              " a larger --buffer-mb or fewer seconds have room for all", file=sys.stderr)
    return machine


def sidecar(path: Path) -> Path:
    return path.with_name(path.name + ".json")
