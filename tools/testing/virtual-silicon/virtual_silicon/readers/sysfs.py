# SPDX-License-Identifier: GPL-2.0
"""Readers of what the guest's shell functions dump (guest/guest.sh)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cpuwhy import turbo

from ..machine import intel
from ..machine.machine import Machine


def pairs(text: str) -> dict[str, str]:
    """"path:value" lines; a file of several lines keeps its first."""
    out: dict[str, str] = {}
    for line in text.splitlines():
        path, colon, value = line.partition(":")
        if colon and path.startswith("/"):
            out.setdefault(path, value)
    return out


def energy(text: str) -> dict[str, float]:
    """Joules by kind of zone ("package", "dram", "core"), as vs-load read them.

    Zones are named by number: intel-rapl:0 is a package, intel-rapl:0:1 one of
    its parts; "name ZONE NAME" lines say what the parts are.
    """
    names = {zone: name.split("-")[0] for zone, name in
             re.findall(r"^\S*/(intel-rapl[:\d]+)/name:(\S+)$", text, re.MULTILINE)}
    out: dict[str, float] = {}
    for zone, used in re.findall(r"^energy (\S+) (\d+)$", text, re.MULTILINE):
        kind = names.get(zone, zone)
        out[kind] = out.get(kind, 0.0) + int(used) / 1e6
    return out


@dataclass
class StateUse:
    """One idle state on one CPU, from cpuidle's sysfs."""

    name: str
    usage: int
    time_us: int
    latency_us: int
    residency_us: int
    disabled: bool


_STATE = re.compile(r".*/cpu(\d+)/cpuidle/state(\d+)/(\w+)$")


def idle_states(text: str) -> dict[int, list[StateUse]]:
    raw: dict[int, dict[int, dict[str, str]]] = {}
    for path, value in pairs(text).items():
        if match := _STATE.match(path):
            raw.setdefault(int(match[1]), {}).setdefault(
                int(match[2]), {})[match[3]] = value
    return {cpu: [StateUse(s["name"], int(s["usage"]), int(s["time"]),
                           int(s["latency"]), int(s["residency"]),
                           s.get("disable", "0") != "0")
                  for _, s in sorted(states.items())]
            for cpu, states in raw.items()}


def idle_used(before: str, after: str) -> dict[str, tuple[int, float]]:
    """Entries and seconds by state over all CPUs between two dumps."""
    old, new = idle_states(before), idle_states(after)
    out: dict[str, tuple[int, float]] = {}
    for cpu, states in new.items():
        for was, now in zip(old[cpu], states):
            usage, seconds = out.get(now.name, (0, 0.0))
            out[now.name] = (usage + now.usage - was.usage,
                             seconds + (now.time_us - was.time_us) / 1e6)
    return out


def msr_values(text: str) -> dict[int, int | None]:
    """Registers by number; None for those that raised #GP."""
    out: dict[int, int | None] = {}
    for line in text.splitlines():
        number, _, value = line.partition(" ")
        if number.startswith("0x"):
            out[int(number, 16)] = None if value == "fault" else int(value, 16)
    return out


def msr_rises(before: str, after: str) -> dict[int, int]:
    """By how much registers rose between two readings."""
    first, last = msr_values(before), msr_values(after)
    return {msr: new - old for msr, old in first.items()
            if old is not None and (new := last.get(msr)) is not None}


@dataclass
class Work:
    """What vs-load says of one CPU."""

    cpu: int
    units: int
    seconds: float
    rate: float


def work(text: str) -> list[Work]:
    out = []
    for line in text.splitlines():
        if match := re.fullmatch(r"(\d+) (\d+) (\d+\.\d+) (\d+\.\d+)", line):
            out.append(Work(int(match[1]), int(match[2]), float(match[3]),
                            float(match[4])))
    return out


_RATIO = re.compile(r"ratio of average max frequency by base frequency \(times 1024\): (\d+)")


def invariance_ratio(dmesg: str) -> int | None:
    """The ratio the kernel reports when it turns frequency invariance on."""
    match = _RATIO.search(dmesg)
    return int(match[1]) if match else None


def turbo_ratio(m: Machine, msrs: dict[int, int | None], active: int = 4) -> int | None:
    """1024 * turbo with `active` cores / base, worked out from the registers; with more
    than there are that of all."""
    known = {msr: value for msr, value in msrs.items() if value is not None}
    if not {intel.PLATFORM_INFO, turbo.TURBO_RATIO_LIMIT} <= set(known):
        return None
    base = known[intel.PLATFORM_INFO] >> 8 & 0xFF
    table = turbo.decode(m.turbo.layout, known)
    ratio = next((ratio for cores, ratio in table if cores >= active), table[-1][1])
    return 1024 * ratio // base


_WARNINGS = re.compile(
    r"unchecked MSR|Call Trace|WARNING:|BUG:|\bOops|TSC unstable|wobbly|"
    r"general protection|soft lockup|rcu.*stall|scheduling while atomic|"
    r"Firmware Bug|clocksource.*(unstable|wd-)|APIC calibration",
    re.IGNORECASE)


#: What a distribution's kernel says of old microcode and missing mitigations.
_MITIGATION = re.compile(r"\] (RETBleed|Speculative Return Stack Overflow|Spectre V2 ?): ")


def warnings(dmesg: str) -> list[str]:
    """Kernel messages that say something is wrong with the machine."""
    return [line for line in dmesg.splitlines()
            if _WARNINGS.search(line) and not _MITIGATION.search(line)]
