# SPDX-License-Identifier: GPL-2.0
"""What is set up badly, a line each with the command that changes it.

Asks the rules of the set-up (rules.py) of a running machine or a copy of its files, and
looks for programs that keep it awake. Only sysfs, proc and the kernel's log are read.
"""
from __future__ import annotations

import os
import re
import stat
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from . import case, quota, rules, settings, texts
from .case import Case, Finding

CPUS = f"sys/{case.CPUS}"
FREQ_MAX = f"sys/{settings.FREQ_MAX}"
RATIO_LINE = settings.RATIO_LINE
#: A program that on the average sleeps and is woken this often is listed ...
NOISY = 50.0
#: ... if the machine is idle for so long, and the program too.
IDLE = 0.5
#: Of /proc/PID/stat's flags
KTHREAD = 0x00200000


class System:
    """Files of a machine below a root, and what several checks ask for."""

    def __init__(self, root: Path, log: str | None = None, live: bool | None = None):
        """@live: what is absent is absent on the machine; of a copy, it is unknown."""
        self.root = root
        self._log = log
        self.live = root == Path("/") if live is None else live

    def text(self, name: str) -> str:
        """A file's content without its last newline; nothing if it cannot be read."""
        try:
            return (self.root / name).read_text(errors="replace").strip()
        except OSError:
            return ""

    def number(self, name: str) -> int | None:
        text = self.text(name)
        return int(text) if re.fullmatch(r"-?\d+", text) else None

    def per_cpu(self, name: str) -> dict[int, str]:
        """A file of each CPU that has it; @name may have wildcards."""
        found = {}
        for path in (self.root / CPUS).glob(f"cpu[0-9]*/{name}"):
            cpu = int(path.relative_to(self.root / CPUS).parts[0][3:])
            if text := self.text(str(path.relative_to(self.root))):
                found[cpu] = text
        return dict(sorted(found.items()))

    @cached_property
    def cpuinfo(self) -> dict[str, str]:
        """Of the first CPU."""
        first = self.text("proc/cpuinfo").split("\n\n")[0]
        pairs = (line.partition(":") for line in first.splitlines())
        return {name.strip(): value.strip() for name, _, value in pairs}

    @cached_property
    def flags(self) -> set[str]:
        return set(self.cpuinfo.get("flags", "").split())

    @cached_property
    def parameters(self) -> list[str]:
        return self.text("proc/cmdline").split()

    @cached_property
    def log(self) -> str:
        if self._log is not None:
            return self._log
        if self.root != Path("/"):
            return self.text("dmesg")
        with suppress(FileNotFoundError):
            return subprocess.run(["dmesg"], capture_output=True, text=True,
                                  errors="replace").stdout
        return ""

    @cached_property
    def case(self) -> Case:
        """For the rules; a copy's log is where sos, hw-probe or supportconfig put it."""
        material = texts.read([str(self.root)])
        if self.live or self._log is not None:
            material.log.extend(texts.read_text(self.log, "dmesg").log)
        return Case(material, self.live)

    def processes(self) -> Iterator[tuple[int, Path]]:
        for path in sorted((self.root / "proc").glob("[0-9]*")):
            if path.name.isdigit():
                yield int(path.name), path


def _name_of(system: System, process: Path) -> str:
    name = system.text(str((process / "comm").relative_to(system.root)))
    return f"{name or '?'} (PID {process.name})"


def latency_holders(system: System) -> Iterator[Finding]:
    """Who has /dev/cpu_dma_latency open. The value asked for cannot be seen, but the
    smallest of all can."""
    limit = ""
    device = system.root / "dev/cpu_dma_latency"
    try:
        if stat.S_ISCHR(device.stat().st_mode) or system.root != Path("/"):
            value, = struct.unpack("=i", device.read_bytes()[:4])
            limit = f"; the limit is {value} us"
    except (OSError, struct.error):
        pass
    for pid, process in system.processes():
        try:
            held = any(os.readlink(fd) == "/dev/cpu_dma_latency"
                       for fd in (process / "fd").iterdir())
        except OSError:
            continue
        if held:
            yield Finding("PM QoS", f"{_name_of(system, process)} holds /dev/cpu_dma_latency"
                          f"{limit}", "hot", f"kill {pid}", kind="latency-limit")


def tick(system: System) -> Iterator[Finding]:
    """Of the times that a CPU wanted to be idle, how often the tick was stopped."""
    text = system.text("proc/timer_list")
    bad = []
    for part in re.split(r"^cpu: ", text, flags=re.M)[1:]:
        calls = re.search(r"\.idle_calls\s*: (\d+)", part)
        sleeps = re.search(r"\.idle_sleeps\s*: (\d+)", part)
        if calls and sleeps and int(calls[1]) >= 1000 and int(sleeps[1]) * 100 < int(calls[1]):
            bad.append((int(part.split()[0]), int(calls[1]), int(sleeps[1])))
    if bad and "nohz=off" not in system.parameters:
        calls_, sleeps_ = sum(b[1] for b in bad), sum(b[2] for b in bad)
        yield Finding("tick", f"stopped in {sleeps_} of {calls_} idle times on"
                      f" {case.whom([b[0] for b in bad])}", "awake",
                      "cpuwhy idle --record 10 says what is in the way", kind="tick")
    if system.text("proc/sys/kernel/timer_migration") == "0":
        yield Finding("tick", "timers stay on idle CPUs", "awake",
                      "sysctl kernel.timer_migration=1", kind="tick")


def idle_share(system: System) -> float:
    """Of all CPUs since boot; 0 if it is not known."""
    words = system.text("proc/uptime").split()
    cpus = len(list((system.root / CPUS).glob("cpu[0-9]*")))
    with suppress(IndexError, ValueError, ZeroDivisionError):
        return float(words[1]) / float(words[0]) / cpus
    return 0.0


def noisy(system: System) -> Iterator[Finding]:
    """Programs that sleep and are woken often, on the average since they began, on a machine
    that is idle otherwise. The kernel's threads work for others."""
    if idle_share(system) < IDLE:
        return
    uptime, hz = float(system.text("proc/uptime").split()[0]), os.sysconf("SC_CLK_TCK")
    found = []
    for _, process in system.processes():
        rate = busy = 0.0
        for thread in (process / "task").glob("[0-9]*"):
            name = str(thread.relative_to(system.root))
            slept = re.search(r"^voluntary_ctxt_switches:\s*(\d+)",
                              system.text(f"{name}/status"), re.M)
            fields = system.text(f"{name}/stat").rpartition(")")[2].split()
            if not slept or len(fields) < 20 or int(fields[6]) & KTHREAD:
                continue
            age = uptime - int(fields[19]) / hz
            if age > 10:
                rate += int(slept[1]) / age
                busy += (int(fields[11]) + int(fields[12])) / hz / age
        if rate >= NOISY and busy < 1 - IDLE:
            found.append((rate, process))
    for rate, process in sorted(found, reverse=True, key=lambda item: item[0]):
        yield Finding("wake-ups", f"{_name_of(system, process)} went to sleep and was woken"
                      f" {rate:.0f} times a second, on the average since it began", "awake",
                      "cpuwhy idle --record 10 --wakers 20", kind="wake-ups")


CHECKS: tuple[Callable[[System], Iterator[Finding]], ...] = (latency_holders, tick, noisy)

#: What the rules and checks read: how it is called, and a pattern of the Case's paths.
SOURCES = (
    ("cpuN/cpufreq", rf"{case.CPUS}/cpu(\d+/cpufreq|freq/policy\d+)/scaling_(driver|gov|m)"),
    ("cpuN/cpuidle", rf"{case.CPUS}/cpu\d+/cpuidle/"),
    ("cpuN/thermal_throttle", rf"{case.CPUS}/cpu\d+/thermal_throttle/"),
    ("clocksource0", r"devices/system/clocksource/"), ("proc/cmdline", r"proc/cmdline"))


def unseen(system: System) -> list[str]:
    """What could not be looked at. On a running machine an absent feature is no gap."""
    case = system.case
    found = [] if system.live else [name for name, path in SOURCES if not case.has(path)]
    if not case.flags:
        found.append("proc/cpuinfo")
    if not case.material.log:
        found.append("dmesg")
    if not system.text("proc/timer_list"):
        found.append("proc/timer_list")
    if not system.live and next(system.processes(), None) is None:
        found.append("programs")
    return found


def examine(system: System) -> list[Finding]:
    """What is wrong, and notes of what is not. A group that was ever throttled is watched."""
    if system.live:
        system.case.watched = quota.watch(system.root)
    found = rules.ask(system.case, setup=True)
    found += [finding for check in CHECKS for finding in check(system)]
    return [finding for finding in found if finding.when != "was"]


def why_off(system: System) -> str:
    """"off" and why, if frequency invariance is; nothing if it is on."""
    return next((found.says for found in settings.invariance(system.case)
                 if found.says.startswith("off")), "")
