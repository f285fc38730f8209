# SPDX-License-Identifier: GPL-2.0
"""Why is it slow, hot or awake? From what people attach to a report, or of this machine.

texts.py reads; rules.py judges; here is what is asked, in which order it is answered, and
what is missing to be sure.
"""
from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from . import hardware, quota, rules, sleep, texts
from .case import CPUS, Case, Finding
from .doctor import System
from .errors import Fail
from .texts import Conflict, Material, Register, Where

#: Registers to read: of all CPUs, and of one in a package.
OF_CPUS = (0x19A, 0x19C, 0x1B0, 0x771, 0x774)
OF_PACKAGES = (0xCE, 0xE2, 0x1A0, 0x1A2, 0x1AD, 0x1AE, 0x1AF, 0x1B1, 0x1FC, 0x606, 0x610, 0x614,
               0x648, 0x649, 0x64A, 0x64B, 0x64C, 0x64F, 0x650, 0x66C, 0x690, 0x770, 0x772,
               *sleep.PACKAGE_COUNTERS)
OF_AMD = (0xC0010015, 0xC0010061, 0xC00102B0, 0xC00102B3)
#: Files of a tree are counted, not listed, from so many on.
LISTED = 6
#: What two machines differ in.
IDENTITY = ("vendor", "family", "model", "base ratio")
ORDER = {"now": 0, "set": 1, "seen": 2}


@dataclass
class Explanation:
    """@limiters: most likely first; @earlier: history that the log bits and counters keep."""
    machine: str = ""
    read: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    limiters: list[Finding] = field(default_factory=list)
    earlier: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)
    verdict: str = ""


def read_register(root: Path, cpu: int, address: int) -> int | None:
    """None if it is not there or may not be read."""
    with suppress(OSError, struct.error):
        fd = os.open(root / f"dev/cpu/{cpu}/msr", os.O_RDONLY)
        try:
            value: int = struct.unpack("<Q", os.pread(fd, 8, address))[0]
            return value
        finally:
            os.close(fd)
    return None


def live(root: Path = Path("/"), log: str | None = None) -> Case:
    """This machine: sysfs, proc, the kernel's log, and registers if they can be read."""
    case = System(root, log, live=True).case
    case.watched = quota.watch(root)
    cpus = sorted(int(path.name) for path in (root / "dev/cpu").glob("[0-9]*")
                  if path.name.isdigit())
    package = case.numbers("topology/physical_package_id")
    first = {package.get(cpu, 0): cpu for cpu in reversed(cpus)}.values()
    for cpu in cpus:
        each, once = ((OF_AMD, ()) if case.vendor == "AuthenticAMD" else
                      (OF_CPUS, OF_PACKAGES) if case.intel else ((), ()))
        for address in (*each, *(once if cpu in first else ())):
            value = read_register(root, cpu, address)
            if value is not None:
                case.material.put_register(address, Register(cpu, value, Where(
                    f"/dev/cpu/{cpu}/msr", 0, f"register {address:#x} is {value:#x}")))
    return case


def of_files(names: Sequence[str]) -> Case:
    for name in names:
        if name != "-" and not os.path.exists(name):
            raise Fail(f"{name}: no such file or directory")
    return Case(texts.read(names))


# --- what was read -------------------------------------------------------------

def _machine(material: Material) -> str:
    name = str(material.known("name") or "")
    family, model = material.known("family"), material.known("model")
    if isinstance(family, int) and isinstance(model, int):
        name = f"{name or material.known('vendor') or 'a CPU'}, family {family}, model {model:#x}"
    return name


def _read(material: Material, whole: bool) -> Iterator[str]:
    """What was recognised: file and kinds, or kinds and how many files."""
    if whole:
        yield (f"read: {len(material.sysfs)} files of sysfs and proc, {len(material.log)} lines of"
               f" the kernel's log, {len(material.registers)} registers")
        return
    by_file: dict[str, list[str]] = {}
    single = [part.file for part in material.recognised if part.kind == "sysfs" and part.lines < 2]
    for part in material.recognised:
        if not part.first:
            yield (f"{part.lines} file{'s' * (part.lines != 1)} of"
                   f" {'proc' if part.kind == 'proc' else 'sysfs'}")
        elif part.file not in single or len(single) <= LISTED:
            by_file.setdefault(part.file, []).append(
                f"{part.kind} ({part.lines} line{'s' * (part.lines != 1)} from {part.first} on)")
    if len(single) > LISTED:
        yield f"{len(single)} files with a line of sysfs"
    for name, kinds in by_file.items():
        yield f"{name}: {', '.join(kinds)}"


def _unread(material: Material) -> Iterator[str]:
    for name, reason in material.unknown[:LISTED]:
        yield f"{name}: {reason}"
    if (more := len(material.unknown) - LISTED) > 0:
        yield f"and {more} more files"


def _doubts(material: Material) -> Iterator[str]:
    for name, where in material.cut[:LISTED]:
        yield f"{where}: {name} is cut off and left out"
    for conflict in material.conflicts:
        yield f"{_different(conflict)}: the first counts"


def _different(conflict: Conflict) -> str:
    first, second = conflict.first, conflict.second
    return (f"{conflict.what} is {first.value} in {first.where} and {second.value} in"
            f" {second.where}")


# --- what is missing -----------------------------------------------------------

FILES = (("cpufreq's settings", r"(cpu\d+/cpufreq|cpufreq/policy\d+)/scaling_(max|gov)",
          "cpu*/cpufreq/*"),
         ("idle states and their counters", r"cpu\d+/cpuidle/state\d+/(usage|disable)",
          "cpu*/cpuidle/state*/*"),
         ("how long it was too hot", r"cpu\d+/thermal_throttle/", "cpu*/thermal_throttle/*"))
#: (one of these registers must be known, what they say)
WANTED = (((0x64F, 0x690), "why the clock is low"), ((0x19C, 0x1B1), "heat and PROCHOT"),
          ((0x610,), "power limits"))


def missing(case: Case) -> Iterator[tuple[str, str]]:
    """(what, the command that prints it)"""
    if not case.live:
        if not case.rows:
            yield "clocks while it is slow", "turbostat -i 5 -n 2      # as root"
        files = [(what, names) for what, path, names in FILES
                 if not case.has(f"{CPUS}/{path}")]
        if files:
            yield (", ".join(what for what, _ in files),
                   f"cd /sys/{CPUS}; grep . " + " ".join(names for _, names in files))
        if not case.material.log:
            yield "the kernel's log", "dmesg"
    if not case.intel or case.virtual:
        return
    wanted = [(addresses, what) for addresses, what in WANTED
              if not any(case.reads(address) for address in addresses)]
    if not case.reads(0x1FC) and any(found.about == "PROCHOT" and found.when == "now"
                                     for found in hardware.prochot(case)):
        wanted.append(((0x1FC,), "is PROCHOT from outside obeyed"))
    if not wanted:
        return
    haswell = case.model in (0x3C, 0x45, 0x46, 0x3D, 0x47, *hardware.SERVERS)
    numbers = " ".join(f"{0x690 if haswell and addresses[0] == 0x64F else addresses[0]:#x}"
                       for addresses, _ in wanted)
    yield ("registers: " + ", ".join(what for _, what in wanted),
           "modprobe msr; cpuwhy explain      # as root" if case.live else
           f"modprobe msr; for r in {numbers}; do rdmsr -a $r; done      # as root")


# --- all together --------------------------------------------------------------

def _rank(case: Case, found: Finding) -> tuple[bool, int, bool, bool]:
    """A limit that equals the measured clock comes first, then what a status bit says. Of what
    makes it hot, idle states do more than clocks: a machine at rest has none."""
    clocks = [row.mhz for row in case.busy]
    binds = bool(found.mhz and clocks and abs(min(clocks) - found.mhz) <= 0.03 * found.mhz)
    return (not binds, ORDER[found.when], found.effect != "slow",
            found.effect == "hot" and found.about != "idle")


def explain(case: Case) -> Explanation:
    material = case.material
    for conflict in material.conflicts:
        # Two values in one line are of two CPUs.
        if conflict.what in IDENTITY and conflict.first.where != conflict.second.where:
            raise Fail("these are files of two machines, explain them one by one:"
                       f" {texts.shown(_different(conflict))}")
    found = rules.ask(case)
    notes = [one for one in found if one.effect == "note"]
    limiters = sorted((one for one in found if one.effect != "note" and one.when != "was"),
                      key=lambda one: _rank(case, one))
    verdict = ("What holds the clock down is not in the files." if case.losses or case.below else
               "Nothing that was read limits the clock or keeps CPUs awake.")
    return Explanation(
        _machine(material), list(_read(material, case.live)), list(_unread(material)),
        list(_doubts(material)), limiters, [one for one in found if one.when == "was"], notes,
        list(missing(case)), verdict)
