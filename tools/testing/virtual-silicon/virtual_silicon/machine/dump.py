# SPDX-License-Identifier: GPL-2.0
"""Dumps of real machines: what their lines say, and on which line.

These lines count, in any order and from several files; others are passed over:

    cpu0: MSR_TURBO_RATIO_LIMIT: 0x2727...      turbostat's header
    CPUID(0): GenuineIntel ...                  the same
    CPUID(1): family:model:stepping 0x6:8f:8 ... microcode 0x2b000590
    0x1ad 0x2727...                             registers by number
    1ad:0|2727... 1|2727...                     registers of each CPU (pepc)
    0x00000006 0x00: eax=0x.. ebx=0x.. ...      cpuid -1 -r
    /sys/.../cpu0/cpuidle/state1/latency:2      grep . on files of sysfs
    ro|/sys/.../cpu0/cpuidle/state1/latency|2   the same (pepc)
    model name : ...                            /proc/cpuinfo
    Model name: ..., Socket(s): 1, Core(s) per socket: 4, Thread(s) per core: 2
                                                lscpu
    MSR 000001AD: 2727-2727-2727-2727           AIDA64, with its sections
    CPUID 00000006: ...-...-...-...             the same
    allcpu: Package 0 / Core 0 / Thread 0: Valid, Intel Core
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from ..errors import UsageError

Key = TypeVar("Key")
Value = TypeVar("Value")

#: turbostat's names of the registers that a machine file is made from.
NAMES = {
    "MSR_PLATFORM_INFO": 0xCE, "MSR_PKG_CST_CONFIG_CONTROL": 0xE2,
    "MSR_IA32_TEMPERATURE_TARGET": 0x1A2, "MSR_TURBO_RATIO_LIMIT": 0x1AD,
    "MSR_TURBO_RATIO_LIMIT1": 0x1AE, "MSR_TURBO_RATIO_LIMIT2": 0x1AF,
    "MSR_RAPL_POWER_UNIT": 0x606, "MSR_PKG_POWER_INFO": 0x614,
    "MSR_HWP_CAPABILITIES": 0x771, "MSR_DRAM_POWER_LIMIT": 0x618,
    "MSR_PP0_POWER_LIMIT": 0x638, "MSR_SECONDARY_TURBO_RATIO_LIMIT": 0x650,
}


@dataclass
class Dump:
    """Values of the first CPU, and the place ("file:line") of each by its key."""

    end: str = ""			# the last line read, or its file
    msrs: dict[int, int] = field(default_factory=dict)
    cpuid: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)		# lscpu, cpuinfo, AIDA64
    files: dict[str, str] = field(default_factory=dict)		# of sysfs
    #: (package, core) of each CPU, and whether it is an E-core's
    cpus: list[tuple[int, int, bool]] = field(default_factory=list)
    places: dict[object, str] = field(default_factory=dict)

    def fail(self, key: object, reason: str) -> UsageError:
        return UsageError(f"{self.places.get(key, self.end)}: {reason}")

    def msr(self, number: int) -> int:
        if number not in self.msrs:
            raise self.fail(number, f"the dump ends and lacks register {number:#x}")
        return self.msrs[number]

    def leaf(self, leaf: int, register: int, sub: int = 0) -> int:
        """0 if nobody has read it."""
        return self.cpuid.get((leaf, sub), (0, 0, 0, 0))[register]

    def number(self, *words: str) -> int | None:
        """The first of these words that is there and a number."""
        for word in words:
            if match := re.match(r"0[xX][0-9a-fA-F]+|\d+", self.words.get(word, "")):
                return int(match[0], 0)
        return None

    @property
    def vendor(self) -> str:
        if (0, 0) in self.cpuid:
            _, ebx, ecx, edx = self.cpuid[0, 0]
            return struct.pack("<III", ebx, edx, ecx).decode("ascii", "replace")
        return self.words.get("vendor_id", "")

    @property
    def name(self) -> str:
        """The brand string."""
        words = [word for leaf in (0x80000002, 0x80000003, 0x80000004)
                 for word in self.cpuid.get((leaf, 0), ())]
        brand = struct.pack(f"<{len(words)}I", *words).decode("ascii", "replace")
        return (brand.strip("\0 ") or self.words.get("model name")
                or self.words.get("Model name") or "")

    @property
    def signature(self) -> tuple[int, int, int]:
        """Family, model and stepping."""
        if eax := self.leaf(1, 0):
            family, model = eax >> 8 & 0xF, eax >> 4 & 0xF
            if family in (6, 15):
                model |= eax >> 12 & 0xF0
            return (family + (eax >> 20 & 0xFF if family == 15 else 0), model, eax & 0xF)
        numbers = [self.number(word) for word in ("cpu family", "model", "stepping")]
        if not self.vendor or None in numbers:
            raise self.fail("", "the dump lacks vendor and model: turbostat's CPUID lines, "
                            "cpuid -1 -r, /proc/cpuinfo or AIDA64's CPUID")
        return (numbers[0] or 0, numbers[1] or 0, numbers[2] or 0)

    def topology(self) -> tuple[int, int, int, int]:
        """Packages; of each its cores, how many of them are E-cores; threads."""
        packages, cores, threads = (self.number("Socket(s)"),
                                    self.number("Core(s) per socket"),
                                    self.number("Thread(s) per core"))
        if packages and cores:
            return packages, cores, 0, threads or 1
        if not self.cpus:
            raise self.fail("", "the dump lacks the number of cores: lscpu's lines "
                            "'Socket(s)' and 'Core(s) per socket', /proc/cpuinfo, or "
                            "AIDA64's 'allcpu'")
        packages = len({package for package, _, _ in self.cpus})
        all_cores = {(package, core): small for package, core, small in self.cpus}
        small = sum(all_cores.values()) % len(all_cores)	# all are: of one kind
        if len(all_cores) % packages:
            raise self.fail("allcpu", f"{len(all_cores)} cores in {packages} packages: "
                            "these are not all CPUs")
        big = len(self.cpus) - small
        return (packages, len(all_cores) // packages, small // packages,
                max(1, big // max(1, len(all_cores) - small)))


class _Reader:
    """Feeds lines to a dump; knows in which section of AIDA64's it is."""

    def __init__(self, dump: Dump) -> None:
        self.dump = dump
        self.section, self.cpu = "", 0
        self.msr_sections: set[int] = set()
        self.aida_cpus = 0
        self.whole = True		# the line ends with a newline
        self.package = 0
        self.rules: list[tuple[re.Pattern[str], Callable[[re.Match[str]], None]]] = [
            (re.compile(pattern), rule) for pattern, rule in (
                (r"cpu0: (MSR_\w+): (0x[0-9a-fA-F]+)", self._named),
                (r"(0x[0-9a-fA-F]{1,8}) (0x[0-9a-fA-F]{1,16})\s*$", self._numbered),
                (r"([0-9a-f]{1,8}):((?:\d+\|[0-9a-f]*\s*)+)$", self._each_cpu),
                (r"\s*(0x[0-9a-fA-F]{8}) (0x[0-9a-fA-F]{2}): eax=(\w+) ebx=(\w+) "
                 r"ecx=(\w+) edx=(\w+)", self._cpuid),
                (r"CPUID\(0\): (\w+)", self._vendor),
                (r"CPUID\(1\): family:model:stepping \S+ \((\d+):(\d+):(\d+)\)"
                 r"(?: microcode (0x[0-9a-fA-F]+))?", self._signature),
                (r"r[ow]\|(/sys/[^|]+)\|(.*)", self._file),
                (r"(/sys/[^:]+):(.*)", self._file),
                (r"------\[ (\w+) Registers / Logical CPU #(\d+) \]", self._section),
                (r"------\[ ()", self._section),
                (r"MSR ([0-9A-F]*)(.*)", self._aida_msr),
                (r"CPUID ([0-9A-F]{8})(.*)", self._aida_cpuid),
                (r"allcpu: Package (\d+) / Core (\d+) / Thread \d+: Valid(.*)",
                 self._aida_cpu),
                (r"([\w() /]*\w\)?)\s*:\s+(\S.*)", self._word))]

    def line(self, text: str, place: str) -> None:
        self.dump.end, self.whole = place, text.endswith("\n")
        for pattern, rule in self.rules:
            if match := pattern.match(text):
                rule(match)
                return

    def _put(self, table: dict[Key, Value], key: Key, value: Value) -> None:
        """The first of several counts."""
        if key not in table:
            table[key] = value
            self.dump.places[key] = self.dump.end

    def _cut(self, what: str) -> UsageError:
        return self.dump.fail(None, f"{what} is cut off")

    def _msr(self, number: int, value: int) -> None:
        self._put(self.dump.msrs, number, value)

    def _named(self, match: re.Match[str]) -> None:
        if match[1] in NAMES:
            self._msr(NAMES[match[1]], int(match[2], 16))

    def _numbered(self, match: re.Match[str]) -> None:
        self._msr(int(match[1], 16), int(match[2], 16))

    def _each_cpu(self, match: re.Match[str]) -> None:
        values = [word.split("|")[1] for word in match[2].split()]
        if "" in values or not self.whole:
            raise self._cut("the line of a register")
        self._msr(int(match[1], 16), int(values[0], 16))

    def _cpuid(self, match: re.Match[str]) -> None:
        leaf, sub, *registers = (int(word, 16) for word in match.groups())
        self._put(self.dump.cpuid, (leaf, sub), tuple(registers))

    def _vendor(self, match: re.Match[str]) -> None:
        self._put(self.dump.words, "vendor_id", match[1])

    def _signature(self, match: re.Match[str]) -> None:
        for word, value in zip(("cpu family", "model", "stepping", "microcode"),
                               match.groups()):
            if value:
                self._put(self.dump.words, word, value)

    def _file(self, match: re.Match[str]) -> None:
        self._put(self.dump.files, match[1], match[2])

    def _section(self, match: re.Match[str]) -> None:
        self.section = match[1]
        if self.section:
            self.cpu = int(match[2])
        if self.section == "MSR":
            self.msr_sections.add(self.cpu)

    def _aida_msr(self, match: re.Match[str]) -> None:
        value = re.match(r": (?:([0-9A-F]{4}(?:-[0-9A-F]{4}){3})|< FAILED >)", match[2])
        if not value or len(match[1]) != 8:
            raise self._cut("the line of a register")
        if value[1] and self.cpu == 0:
            self._msr(int(match[1], 16), int(value[1].replace("-", ""), 16))

    def _aida_cpuid(self, match: re.Match[str]) -> None:
        value = re.match(r": ([0-9A-F]{8}(?:-[0-9A-F]{8}){3})(?: \[SL (\d\d)\])?", match[2])
        if not value:
            raise self._cut("the line of a CPUID leaf")
        if int(match[1], 16) == 0x1A and int(value[1][:2], 16) == 0x20:
            self.dump.cpus[-1] = (*self.dump.cpus[-1][:2], True)
        if self.cpu == 0:
            key = (int(match[1], 16), int(value[2] or "0"))
            self._put(self.dump.cpuid, key,
                      tuple(int(word, 16) for word in value[1].split("-")))

    def _aida_cpu(self, match: re.Match[str]) -> None:
        self.dump.places.setdefault("allcpu", self.dump.end)
        self.aida_cpus += 1
        self.dump.cpus.append((int(match[1]), int(match[2]), "Atom" in match[3]))

    def _word(self, match: re.Match[str]) -> None:
        key = match[1].strip()
        if key == "physical id":
            self.package = int(match[2])
        if key == "core id":
            self.dump.places.setdefault("allcpu", self.dump.end)
            self.dump.cpus.append((self.package, int(match[2]), False))
        self._put(self.dump.words, key, match[2].strip())

    def finish(self) -> None:
        if self.aida_cpus and self.msr_sections and len(self.msr_sections) < self.aida_cpus:
            raise self._cut(f"the dump of {self.aida_cpus} CPUs, with registers of "
                            f"{len(self.msr_sections)},")
        if small := self.dump.files.get("/sys/devices/cpu_atom/cpus"):
            numbers = {cpu for part in small.split(",") for first, _, last in
                       [part.partition("-")] for cpu in range(int(first),
                                                              int(last or first) + 1)}
            self.dump.cpus = [(package, core, cpu in numbers) for cpu, (package, core, _)
                              in enumerate(self.dump.cpus)]


def read(texts: list[tuple[str, str]]) -> Dump:
    """From (name of the file, its text); UsageError names the line that is wrong."""
    dump = Dump()
    reader = _Reader(dump)
    for name, text in texts:
        dump.end = name
        for number, line in enumerate(text.splitlines(keepends=True), 1):
            reader.line(line, f"{name}:{number}")
    reader.finish()
    return dump
