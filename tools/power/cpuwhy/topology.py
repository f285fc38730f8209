# SPDX-License-Identifier: GPL-2.0
"""Packages, cores, E-cores and threads, from whatever tells of them; and names of idle
states that firmware has numbered."""
from __future__ import annotations

import re
from typing import NamedTuple

from .texts import Material

#: Client models of family 6 since Alder Lake, and Lakefield: with E-cores beside P-cores, in
#: most parts. (0xbe has E-cores alone.)
HYBRID = {0x8A, 0x97, 0x9A, 0xB7, 0xBA, 0xBF, 0xAA, 0xAC, 0xB5, 0xC5, 0xC6, 0xBD, 0xCC, 0xD5}


class Topology(NamedTuple):
    packages: int
    cores: int          # of a package
    small: int          # E-cores among them
    threads: int        # of a P-core
    source: str


def cpus(text: str) -> set[int]:
    """Of "0-3,8"."""
    found: set[int] = set()
    for part in text.replace(" ", ",").split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit() and int(last or first) < 1 << 16:
            found.update(range(int(first), int(last or first) + 1))
    return found


def hybrid(m: Material) -> bool | None:
    """Has it two kinds of cores, by what the files say; None if they say nothing."""
    atom = m.file("devices/cpu_atom/cpus")
    if atom or any(place.small for place in m.logical.values()):
        return bool(m.file("devices/cpu_core/cpus")) or not atom or None
    if m.logical and all(place.small is False for place in m.logical.values()):
        return False
    if m.known("model") in HYBRID and m.value(0x650) or m.leaf(0x80000026, 0) >> 30 & 1:
        return True
    told: bool | None = m.known("hybrid")
    return told


def _small(m: Material) -> set[int]:
    """CPUs of E-cores, where each CPU's kind is told."""
    if atom := m.file("devices/cpu_atom/cpus"):
        return cpus(atom)
    if core := m.file("devices/cpu_core/cpus"):
        return set(m.logical) - cpus(core) if m.logical else set()
    found = {cpu for cpu, place in m.logical.items() if place.small}
    limit = m.value(0x650) & 0xFF if m.known("model") in HYBRID else 0
    if not found and limit:
        # E-cores have no higher clock than this; CPPC counts P-cores' clocks in smaller steps
        for name, unit in (("cpufreq/cpuinfo_max_freq", 100_000), ("acpi_cppc/highest_perf", 1)):
            tops = {cpu: int(fact.value) for cpu, fact in m.per_cpu(name).items()
                    if fact.value.isdigit()}
            found = {cpu for cpu, top in tops.items() if top <= limit * unit}
            if tops and len(found) < len(tops):
                break
            found = set()
    return found


def topology(m: Material) -> Topology:
    """ValueError says what is not told."""
    small = _small(m)
    logical = m.logical
    core, atom = (cpus(m.file(f"devices/cpu_{kind}/cpus")) for kind in ("core", "atom"))
    packages, cores = m.known("sockets"), m.known("cores")
    threads, total = m.known("threads", 1), m.known("cpus", len(logical))
    if small and logical and small & set(logical):
        return _each(m, small)
    if packages and cores:
        told = len({(place.package, place.core) for place in logical.values()})
        if told > packages * cores:
            raise ValueError(f"{told} cores have a place, but lscpu tells of {packages * cores}: "
                             "these are two machines")
        if small and packages == 1 and len(small) < cores:
            # E-cores have one thread each
            big = (len(core) or total - len(small)) // (cores - len(small))
            return Topology(1, cores, len(small), max(1, big), "lscpu, " + (
                "/sys/devices/cpu_atom" if atom else "clocks of the CPUs"))
        if _split(m):
            big = (total - packages * cores) // (packages * max(1, threads - 1))
            if not total or threads < 2 or total == packages * cores:
                raise ValueError("two kinds of cores, and nothing says which are E-cores: give "
                                 "also grep . /sys/devices/cpu_core/cpus "
                                 "/sys/devices/cpu_atom/cpus")
            return Topology(packages, cores, cores - big, threads, "lscpu: CPUs beyond cores")
        return Topology(packages, cores, 0, threads, "lscpu")
    if not logical:
        raise ValueError("lacks the number of cores: lscpu's lines 'Socket(s)' and 'Core(s) per "
                         "socket', /proc/cpuinfo, turbostat's topology or table, or AIDA64's "
                         "'allcpu'")
    return _each(m, small)


def _split(m: Material) -> bool:
    """Have lscpu's one number of cores and threads two kinds of cores behind it?"""
    told = hybrid(m)
    packages, cores, threads = m.known("sockets"), m.known("cores"), m.known("threads", 1)
    whole = m.known("cpus") == packages * cores * threads
    if told is not None:
        return told and not (whole and threads > 1)     # E-cores are switched off
    if m.known("vendor") != "GenuineIntel" or m.known("model") not in HYBRID:
        return False
    return not (whole and threads > 1)


def _each(m: Material, small: set[int]) -> Topology:
    logical = m.logical
    packages = len({place.package for place in logical.values()})
    by_core: dict[tuple[int, int], list[int]] = {}
    for cpu, place in logical.items():
        by_core.setdefault((place.package, place.core), []).append(cpu)
    few = sum(1 for found in by_core.values() if small.intersection(found))
    if few == len(by_core):     # all are: of one kind
        few = 0
    if len(by_core) % packages or few % packages or max(logical) + 1 != len(logical):
        raise ValueError(f"{len(by_core)} cores in {packages} packages: these are not all CPUs")
    counts = [len(found) for found in by_core.values() if not (few and
                                                              small.intersection(found))]
    threads = max(counts, default=1)
    if not few and _of_two_kinds(m):
        if set(counts) != {1, 2}:
            raise ValueError("two kinds of cores, and nothing says which are E-cores: give also "
                             "grep . /sys/devices/cpu_core/cpus /sys/devices/cpu_atom/cpus")
        few = counts.count(1)
    return Topology(packages, len(by_core) // packages, few // packages, threads,
                    "the places of all CPUs")


def _of_two_kinds(m: Material) -> bool:
    told = hybrid(m)
    threads: dict[tuple[int, int], int] = {}
    for place in m.logical.values():
        key = (place.package, place.core)
        threads[key] = threads.get(key, 0) + 1
    every = set(threads.values())
    if told is None:
        told = (m.known("vendor") == "GenuineIntel" and m.known("model") in HYBRID)
    return told and every != {2}


#: Intel's states by bits 7:4 of MWAIT's hint, and of Silvermont's by the whole.
DEPTH = {0: "C1", 1: "C3", 2: "C6", 3: "C7", 4: "C8", 5: "C9", 6: "C10"}
SILVERMONT = {0x51: "C6", 0x52: "C6", 0x58: "C6", 0x60: "C7", 0x64: "C7"}


def mwait_hint(desc: str) -> int | None:
    match = re.search(r"MWAIT (0x[0-9a-fA-F]+)", desc)
    return int(match[1], 16) if match else None


def state_name(name: str, desc: str, atom: bool = False) -> str:
    """Of an idle state; one that firmware has numbered (C3_ACPI) by what it enters. @atom:
    on Silvermont and Airmont."""
    hint = mwait_hint(desc)
    plain = re.sub(r"\W|_?ACPI$", "", name)
    if not name.endswith("ACPI") and not re.search(r"\bACPI\b", desc) or hint is None:
        return plain
    if hint == 1:
        return "C1E"
    return (SILVERMONT if atom and hint else DEPTH).get(hint if atom and hint else hint >> 4, plain)
