# SPDX-License-Identifier: GPL-2.0
"""What is known of a machine, for the rules: settings.py, hardware.py, sleep.py.

A Case is a Material (texts.py) with what several rules ask of it. What is not in it is
unknown, unless it is @live: on the machine itself an absent file is an absent feature.
"""
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from . import turbo
from .texts import Fact, Material, Register, Where

if TYPE_CHECKING:
    from . import quota

CPUS = "devices/system/cpu"
GRUB = "/etc/default/grub"
#: Per cent: a CPU that is busy so long shows the clock that it gets, ...
BUSY = 80.0
#: The columns of all versions that say how long
SHARE = ("Busy%", "%Busy", "%c0")
#: ... and so much less than its bin is a loss.
LOSS = 0.07
#: Lines that show a finding: no more than these are kept.
LINES = 4


@dataclass(frozen=True)
class Finding:
    """What is wrong, what it does to the machine, and the command that changes it."""
    about: str
    says: str
    effect: str             # slow, hot, awake; note: it is no fault
    remedy: str = ""
    #: now: limits at this moment; set: a setting; seen: counted since boot; was: history
    when: str = "set"
    lines: tuple[Where, ...] = ()
    mhz: float = 0.0        # the highest clock that it leaves; 0 if it is not known
    kind: str = ""          # for programs; its rule's, if it is not given


def cpu_list(cpus: Iterable[int]) -> str:
    """0-3,7 of [0, 1, 2, 3, 7]."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and cpu == parts[-1][-1] + 1:
            parts[-1].append(cpu)
        else:
            parts.append([cpu])
    return ",".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)


def whom(cpus: Iterable[int]) -> str:
    listed = list(cpus)
    return f"CPU{'s' * (len(listed) > 1)} {cpu_list(listed)}" if listed else "a CPU"


def bits(value: int, high: int, low: int) -> int:
    return value >> low & ((1 << (high - low + 1)) - 1)


def write(value: str, name: str) -> str:
    return (f"echo {value} | tee /sys/{CPUS}/{name}" if "*" in name
            else f"echo {value} > /sys/{CPUS}/{name}")


def boot_with(parameter: str) -> str:
    return (f"sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{parameter} /' {GRUB} && update-grub"
            " && reboot")


def duration(ms: float) -> str:
    return f"{ms / 1000:.3g} s" if ms >= 100 else f"{ms:.0f} ms"


@dataclass
class Group:
    """CPUs with the same value, and the lines that say so."""
    cpus: list[int] = field(default_factory=list)
    lines: list[Where] = field(default_factory=list)

    def add(self, cpu: int | None, line: Where) -> None:
        if cpu is not None:
            self.cpus.append(cpu)
        if len(self.lines) < LINES:
            self.lines.append(line)


@dataclass(frozen=True)
class Busy:
    """A row of turbostat's of a CPU that was busy."""
    cpu: str
    share: float
    mhz: float
    tsc: float
    line: Where


class Case:
    """What is known of a machine, and what several rules ask for."""

    def __init__(self, material: Material, live: bool = False):
        self.material = material
        self.live = live
        self.watched: dict[str, quota.Limit] = {}    # what was throttled while one looked

    def text(self, path: str) -> str:
        return self.material.file(path).strip()

    def number(self, path: str) -> int | None:
        text = self.text(path)
        return int(text) if re.fullmatch(r"-?\d{1,20}", text) else None

    def where(self, *paths: str) -> tuple[Where, ...]:
        return tuple(self.material.sysfs[path].where for path in paths
                     if path in self.material.sysfs)

    @cached_property
    def _by_cpu(self) -> dict[str, dict[int, Fact]]:
        found: dict[str, dict[int, Fact]] = {}
        for path, fact in self.material.sysfs.items():
            match = re.match(rf"{CPUS}/cpu(\d+)/(.*)", path)
            if match and str(fact.value).strip():
                found.setdefault(match[2], {})[int(match[1])] = fact
        return found

    def per_cpu(self, name: str) -> dict[int, str]:
        found = self._by_cpu.get(name, {})
        return {cpu: str(found[cpu].value).strip() for cpu in sorted(found)}

    def numbers(self, name: str) -> dict[int, int]:
        return {cpu: int(value) for cpu, value in self.per_cpu(name).items()
                if re.fullmatch(r"\d{1,20}", value)}

    def line(self, name: str, cpu: int) -> Where:
        return self._by_cpu[name][cpu].where

    def groups(self, name: str) -> dict[str, Group]:
        found: dict[str, Group] = {}
        for cpu, value in self.per_cpu(name).items():
            found.setdefault(value, Group()).add(cpu, self.line(name, cpu))
        return found

    @cached_property
    def states(self) -> dict[tuple[str, int], dict[str, str]]:
        """By directory ("state2") and CPU: the files there."""
        found: dict[tuple[str, int], dict[str, str]] = {}
        for name, by_cpu in self._by_cpu.items():
            match = re.fullmatch(r"cpuidle/(state\d+)/(\w+)", name)
            if match:
                for cpu, fact in by_cpu.items():
                    found.setdefault((match[1], cpu), {})[match[2]] = str(fact.value).strip()
        return dict(sorted(found.items(), key=lambda item: (int(item[0][0][5:]), item[0][1])))

    def has(self, pattern: str) -> bool:
        return any(re.match(pattern, path) for path in self.material.sysfs)

    @cached_property
    def flags(self) -> set[str]:
        return set(self.material.known("flags") or ())

    @cached_property
    def virtual(self) -> bool:
        return ("hypervisor" in self.flags or bool(self.material.known("hypervisor"))
                or any("Hypervisor detected:" in line.text for line in self.material.log))

    @property
    def vendor(self) -> str:
        return str(self.material.known("vendor", ""))

    @property
    def intel(self) -> bool:
        return self.vendor == "GenuineIntel"

    @property
    def model(self) -> int:
        """turbo.number() of an Intel CPU; 0 of others."""
        family = self.material.known("family")
        if self.vendor == "AuthenticAMD":
            return 0
        return turbo.number(int(family or 6), int(self.material.known("model") or 0))

    @property
    def name(self) -> str:
        return " ".join(str(self.material.known("name", "")).split())

    @cached_property
    def parameters(self) -> list[str]:
        return self.text("proc/cmdline").split()

    @cached_property
    def driver(self) -> str:
        """Of cpufreq; of the first CPU that tells."""
        return next(iter(self.per_cpu("cpufreq/scaling_driver").values()), "")

    def said(self, pattern: str) -> list[tuple[re.Match[str], Where]]:
        """Lines of the kernel's log."""
        return [(match, line) for line in self.material.log
                if (match := re.search(pattern, line.text))]

    def reads(self, address: int) -> list[Register]:
        return self.material.registers.get(address, [])

    @cached_property
    def bus(self) -> float:
        """MHz of a ratio's unit."""
        if self.material.bus_khz:
            return float(self.material.bus_khz.value) / 1000
        return 400 / 3 if self.model in (0x1A, 0x1E, 0x1F, 0x2E, 0x25, 0x2C, 0x2F) else 100.0

    @cached_property
    def base_ratio(self) -> int:
        """Of the part, whatever cTDP says; 0 if it is not known."""
        return (bits(self.material.value(0xCE), 15, 8)
                or bits(self.material.value(0x648), 7, 0)) if self.vendor != "AuthenticAMD" else 0

    @cached_property
    def bins(self) -> list[tuple[int, float]]:
        """(active cores up to, MHz); nothing if the registers are not known."""
        values = {address: self.material.value(address)
                  for address in (0x1AD, 0x1AE, 0x1AF, 0x66C) if self.reads(address)}
        layout = turbo.layout(self.model)
        if not layout or not values or (layout == "groups" and 0x1AE not in values):
            return []
        return [(cores, ratio * self.bus) for cores, ratio in turbo.decode(layout, values)]

    @cached_property
    def turbo_off(self) -> tuple[Where, ...]:
        """The lines that say so."""
        found = [read.where for read in self.reads(0x1A0) if read.value >> 38 & 1]
        found += [read.where for read in self.reads(0xC0010015)
                  if read.value >> 25 & 1 and self.vendor == "AuthenticAMD"]
        for path, bad in ((f"{CPUS}/intel_pstate/no_turbo", "1"), (f"{CPUS}/cpufreq/boost", "0")):
            if self.text(path) == bad:
                found += self.where(path)
        found += [self.line("cpufreq/boost", cpu)
                  for cpu, value in self.per_cpu("cpufreq/boost").items() if value == "0"]
        return tuple(found[:LINES])

    @cached_property
    def rows(self) -> list[tuple[dict[str, str], Where]]:
        return [row for table in self.material.tables for row in table.rows]

    @cached_property
    def busy(self) -> list[Busy]:
        """Rows of CPUs that were busy; those of the machine as a whole if there are no others."""
        found: list[Busy] = []
        for row, line in self.rows:
            share = cell(row, *SHARE)
            mhz = cell(row, "Bzy_MHz") or 1000 * cell(row, "GHz")
            if share >= BUSY and mhz:
                found.append(Busy(row.get("CPU", "-"), share, mhz,
                                  cell(row, "TSC_MHz") or 1000 * cell(row, "TSC"), line))
        return [row for row in found if row.cpu.isdigit()] or found

    @cached_property
    def active(self) -> int:
        """Cores that were busy at least a fifth of the time; 0 without such rows."""
        return len({(row.get("Package", row.get("pk", "")), row.get("Core", row.get(
            "cor", row.get("cr", row["CPU"])))) for row, _ in self.rows
            if row.get("CPU", "").isdigit() and cell(row, *SHARE) >= 20})

    @property
    def hybrid(self) -> bool:
        return bool(self.material.known("hybrid")) or bool(self.reads(0x650))

    def expected(self, row: Busy) -> tuple[float, str]:
        """(MHz that a busy CPU should have, what says so); 0 if nothing does."""
        base = self.base_ratio * self.bus
        if self.turbo_off and base:
            return base, "the base clock"
        if self.bins and self.active and not self.hybrid:
            ratio = next((mhz for cores, mhz in self.bins if cores >= self.active),
                         self.bins[-1][1])
            return ratio, (f"the highest with {self.active} active"
                           f" core{'s' * (self.active > 1)}")
        return (base or row.tsc), "the base clock"

    @cached_property
    def losses(self) -> list[tuple[Busy, float, str]]:
        """Busy CPUs whose clock is below what it should be."""
        rows = self.busy
        if self.hybrid and rows:        # which of them are of E-cores is not known
            rows = [max(rows, key=lambda row: row.mhz)]
        found = [(row, *self.expected(row)) for row in rows]
        return [(row, mhz, what) for row, mhz, what in found if row.mhz < (1 - LOSS) * mhz]

    @cached_property
    def below(self) -> dict[int, tuple[int, int]]:
        """CPUs slower than their driver can make them: (kHz, the least that it allows). Who
        does that is not the driver: hardware that idles or throttles, or firmware."""
        least = self.numbers("cpufreq/scaling_min_freq") or self.numbers("cpufreq/cpuinfo_min_freq")
        floor = min(least.values(), default=0)
        return {cpu: (khz, least.get(cpu, floor))
                for cpu, khz in self.numbers("cpufreq/scaling_cur_freq").items()
                if 0 < khz < 0.9 * least.get(cpu, floor)}

    @property
    def watts(self) -> tuple[float, Where] | None:
        """Of the packages, the most while a CPU was busy."""
        found = [(cell(row, "PkgWatt"), line) for row, line in self.rows
                 if cell(row, "PkgWatt") and (not self.busy or cell(row, *SHARE) > 50)]
        return max(found, key=lambda item: item[0]) if found else None


def cell(row: dict[str, str], *names: str) -> float:
    """Of a table: what is no number, or none that a machine has, is nothing."""
    for name in names:
        try:
            value = float(row[name])
        except (KeyError, ValueError):
            continue
        return value if 0 <= value < 1e9 else 0.0
    return 0.0


Findings = Iterator[Finding]
