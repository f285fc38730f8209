# SPDX-License-Identifier: GPL-2.0
"""Groups of tasks with a CPU limit: how often they were throttled, and the clock beside it.

A quota (cpu.max, cpu.cfs_quota_us in version 1 of cgroups) is time, not work: at half the
clock the same work takes twice its share of it.
"""
from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean

from . import texts
from .case import SHARE, Case, Finding, Findings, cell

FILE = re.compile(r"fs/cgroup(?:/(?:cpu(?:,cpuacct)?|cpuacct(?:,cpu)?|unified)(?=/))?(/.*?)?/"
                  r"(cpu\.(?:stat|max|cfs_(?:quota|period)_us)|cpuacct\.usage)")
#: Of the names that container runtimes make, as they print them themselves.
IDENTIFIER = re.compile(r"([0-9a-f]{8})[-_](?:[0-9a-f]{4}[-_]){3}[0-9a-f]{12}"
                        r"|([0-9a-f]{12})[0-9a-f]{20,}")
#: A group that was throttled in a smaller share of its periods was so once, as at its start.
OFTEN = 0.05
#: From this share of the highest clock on, the clock is no reason.
NEAR = 0.9
#: In so many of its periods a group wants more than can be seen.
ALWAYS = 0.9
#: How long to watch, how often to look, and at how many groups; so many are listed.
SECONDS, LOOKS, WATCHED, LISTED = 1.0, 20, 8, 6


@dataclass(frozen=True)
class Limit:
    """A group's, and what it did in the periods in which it ran, all times in us."""
    name: str
    path: str = ""              # of its directory below /sys
    periods: int = 0
    throttled: int = 0          # of these periods
    waited: int = 0
    used: int = 0               # 0: not known, as of the quota
    quota: int = 0              # of a period
    file: str = "cpu.max"       # that has the quota
    clock: float = 0.0          # of its CPUs, as a share of the highest; 0: not known

    def since(self, before: Limit) -> Limit:
        return replace(self, **{name: max(0, getattr(self, name) - getattr(before, name))
                                for name in ("periods", "throttled", "waited", "used")})

    @cached_property
    def slow(self) -> bool:
        return 0 < self.clock < NEAR

    def says(self, whose: str = "busy") -> str:
        of = f" of its {self.quota / 1000:.3g} ms" if self.quota else ""
        each = self.used / max(self.periods, 1) / 1000
        text = (f"throttled by {self.file} of {self.name}: {self.throttled:,} of {self.periods:,}"
                " periods")
        if self.slow:
            text += f"; {whose} CPUs ran at {self.clock:.2f} of the highest clock"
        if each and self.slow:
            more = " or more" if self.throttled >= ALWAYS * self.periods else ""
            return (f"{text}: at the highest it would need about {each * self.clock:.3g}{more}{of}"
                    f" a period, instead of {each:.3g}")
        if each or self.quota:
            text += (f"; it used {each:.3g}{of} a period" if each else
                     f"; it may use {self.quota / 1000:.3g} ms a period")
        return text + (" at the highest clock" if self.clock >= NEAR else
                       ", which a low clock uses up sooner")


def limits(files: Iterable[tuple[str, str]]) -> dict[str, Limit]:
    """Of paths below /sys and their contents: groups with a limit that ran, by name."""
    groups: dict[str, dict[str, str]] = {}
    paths: dict[str, str] = {}
    for path, text in files:
        if match := FILE.fullmatch(path):
            groups.setdefault(match[1] or "/", {}).setdefault(match[2], text)
            if match[2] == "cpu.stat":
                paths.setdefault(match[1] or "/", path.rpartition("/")[0])
    found = {}
    for name, group in groups.items():
        stat = {key: int(value) for key, value in
                re.findall(r"^(\w+) (\d{1,19})$", group.get("cpu.stat", ""), re.M)}
        quota = group.get("cpu.max", group.get("cpu.cfs_quota_us", "")).split()[:1]
        if not stat.get("nr_periods") or quota and not re.fullmatch(r"\d{1,19}", quota[0]):
            continue            # "max" and -1: a limit that is no more
        usage = re.match(r"\d{1,19}", group.get("cpuacct.usage", ""))
        found[name] = Limit(
            IDENTIFIER.sub(r"\1\2", name), paths[name], stat["nr_periods"],
            stat.get("nr_throttled", 0),
            stat.get("throttled_usec", stat.get("throttled_time", 0) // 1000),
            stat.get("usage_usec", int(usage[0]) // 1000 if usage else 0),
            int(quota[0]) if quota else 0, "cpu.max" if "cpu.cfs_quota_us" not in group
            else "cpu.cfs_quota_us")
    return found


def read(root: Path = Path("/")) -> dict[str, Limit]:
    """Of the machine as it is now."""
    return limits((path, str(fact.value)) for path, fact in texts.read_groups(root).sysfs.items())


def growth(before: dict[str, Limit], after: dict[str, Limit]) -> dict[str, Limit]:
    """Of groups that were throttled meanwhile."""
    grown = {name: limit.since(before.get(name, Limit(name))) for name, limit in after.items()}
    return {name: limit for name, limit in grown.items() if limit.throttled}


# --- the clock -------------------------------------------------------------------

def _clocks(root: Path, path: str) -> Iterator[float]:
    """Of the CPUs on which tasks of a group are to run now, as shares of the highest."""
    for listed in (root / "sys" / path).glob("**/cgroup.procs"):
        for pid in listed.read_text().split():
            for task in (root / "proc" / pid / "task").glob("[0-9]*/stat"):
                with suppress(OSError, ValueError, ZeroDivisionError, IndexError):
                    fields = task.read_text(errors="replace").rpartition(")")[2].split()
                    cpu = root / f"sys/devices/system/cpu/cpu{fields[36]}/cpufreq"
                    if fields[0] == "R":
                        now, highest = (int((cpu / f"{name}_freq").read_text())
                                        for name in ("scaling_cur", "cpuinfo_max"))
                        yield min(1.0, now / highest)


def watch(root: Path, seconds: float = SECONDS) -> dict[str, Limit]:
    """Groups that are throttled in the next @seconds. To look costs time, so the clock is
    that of the groups that were throttled longest before."""
    before = read(root)
    worst = sorted(before, key=lambda name: -before[name].waited)[:WATCHED]
    clocks: dict[str, list[float]] = {name: [] for name in worst}
    if any(limit.throttled for limit in before.values()):
        for _ in range(LOOKS):
            time.sleep(seconds / LOOKS)
            for name, shares in clocks.items():
                with suppress(OSError):
                    shares += _clocks(root, before[name].path)
    return {name: replace(limit, clock=fmean(clocks[name]) if clocks.get(name) else 0.0)
            for name, limit in growth(before, read(root)).items()}


def _clock(case: Case) -> float:
    """Of turbostat's rows: the mean of the time in which CPUs were busy."""
    rows = [row for row, _ in case.rows]
    rows = [row for row in rows if row.get("CPU", "").isdigit()] or rows
    busy = [(cell(row, *SHARE), cell(row, "Bzy_MHz") or 1000 * cell(row, "GHz")) for row in rows]
    highest = max([khz / 1000 for khz in case.numbers("cpufreq/cpuinfo_max_freq").values()]
                  + [mhz for _, mhz in case.bins], default=0.0)
    time_ = sum(share for share, mhz in busy if mhz)
    return min(1.0, sum(share * mhz for share, mhz in busy) / time_ / highest
               ) if time_ and highest else 0.0


# --- the rule --------------------------------------------------------------------

def cpu_limit(case: Case) -> Findings:
    """Those that were throttled while doctor looked (case.watched) come first."""
    clock = _clock(case)
    known = limits((path, str(fact.value)) for path, fact in case.material.sysfs.items())
    found = [(name in case.watched, case.watched.get(name, replace(limit, clock=clock)))
             for name, limit in known.items() if limit.throttled]
    found.sort(key=lambda item: (not item[0], -item[1].throttled / item[1].periods))
    offered = " ".join(case.per_cpu("cpufreq/scaling_available_governors").values()).split()
    raising = "raise the limit, or allow bursts (cpu.max.burst)"
    for now, limit in found[:LISTED]:
        faster = limit.slow and "performance" in offered
        often = limit.throttled >= OFTEN * limit.periods
        yield Finding("CPU limit", limit.says("its" if now else "busy"), "slow",
                      f"cpupower frequency-set -g performance   # or {raising}" if faster
                      else raising, "now" if now else "seen" if often else "was",
                      case.where(f"{limit.path}/cpu.stat", f"{limit.path}/{limit.file}"))
    if (more := len(found) - LISTED) > 0:
        yield Finding("CPU limit", f"{more} more groups were throttled", "note")
