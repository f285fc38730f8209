# SPDX-License-Identifier: GPL-2.0
"""Idle states: what the driver says of them, and what a wrong one costs.

A recording's table lies beside it, in NAME.json; it is read from sysfs before and
after, with the counters.
"""
from __future__ import annotations

import json
import os
import platform
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .errors import Fail
from .quota import Limit
from .topology import cpus, state_name

#: Share of polling's power that a state draws, where nothing better is known: those
#: that cpuidle-replay uses. Only their order and rough size matter for the ranking.
POWERS = {"POLL": 1.0, "C0": 0.8, "C1E": 0.35, "C1": 0.45, "C2": 0.25, "C3": 0.15, "C4": 0.1,
          "C6": 0.05, "C7": 0.04, "C8": 0.03, "C9": 0.02, "C10": 0.01, "HLT": 0.45}


@dataclass
class State:
    """One idle state of a CPU; times in ns."""
    name: str
    latency: int
    residency: int
    disabled: bool = False
    power: float = 1.0
    usage: int = 0
    above: int = 0
    below: int = 0
    time: int = 0


@dataclass
class Policy:
    """cpufreq's settings for a CPU, in kHz and us; 0 if there is none."""
    governor: str = ""
    limit: int = 0
    highest: int = 0
    rate_limit: int = 0


@dataclass
class Machine:
    """What a recording cannot say of the machine that made it."""
    release: str = ""
    arch: str = ""
    driver: str = ""
    governor: str = ""
    hz: int = 0
    base_khz: float = 0.0
    clock: str = ""
    realtime_offset: int = 0
    workload: str = ""
    seconds: float = 0.0
    with_tool: str = ""
    events: list[str] = field(default_factory=list)
    lost: dict[int, int] = field(default_factory=dict)
    states: dict[int, list[State]] = field(default_factory=dict)
    policies: dict[int, Policy] = field(default_factory=dict)
    invariance: str = ""                # "off" and why; nothing if it is on or unknown
    skipped: dict[int, int] = field(default_factory=dict)   # bad samples of the counters
    turbo: list[tuple[int, int]] = field(default_factory=list)  # active cores, kHz
    no_tick: list[int] = field(default_factory=list)            # CPUs of nohz_full
    limits: list[Limit] = field(default_factory=list)           # groups that were throttled

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


def power(name: str) -> float:
    """By the state's family: C6S, C6N and C6 are one."""
    upper = name.upper()
    for known in sorted(POWERS, key=len, reverse=True):
        if re.match(rf"{known}(?!\d)", upper):
            return POWERS[known]
    return 0.45


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _number(path: Path) -> int:
    text = _text(path)
    return int(text) if text.isdigit() else 0


def read_sysfs(root: Path = Path("/")) -> dict[int, list[State]]:
    """The idle states of each CPU, with their counters as of now."""
    found: dict[int, list[State]] = {}
    for cpu in sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*"),
                      key=lambda path: int(path.name[3:])):
        directories = sorted((cpu / "cpuidle").glob("state[0-9]*"),
                             key=lambda path: int(path.name[5:]))
        states = [_state(directory) for directory in directories]
        if states:
            found[int(cpu.name[3:])] = states
    return found


def _state(directory: Path) -> State:
    name = _text(directory / "name")
    return State(name, _number(directory / "latency") * 1000,
                 _number(directory / "residency") * 1000, _text(directory / "disable") == "1",
                 power(state_name(name, _text(directory / "desc"))),
                 _number(directory / "usage"), _number(directory / "above"),
                 _number(directory / "below"), _number(directory / "time") * 1000)


def read_policies(root: Path = Path("/")) -> dict[int, Policy]:
    """The governor's rate limit is one for all, or each policy has its own."""
    found = {}
    cpus = root / "sys/devices/system/cpu"
    for policy in sorted(cpus.glob("cpu[0-9]*/cpufreq")):
        governor = _text(policy / "scaling_governor")
        tunable = f"{governor}/rate_limit_us"
        found[int(policy.parent.name[3:])] = Policy(
            governor, _number(policy / "scaling_max_freq"), _number(policy / "cpuinfo_max_freq"),
            _number(policy / tunable) or _number(cpus / "cpufreq" / tunable))
    return found


def _invariance(root: Path) -> list[list[str]]:
    return [line.split() for line in
            _text(root / "sys/kernel/debug/x86/freq_invariance").splitlines()]


def read_skipped(root: Path = Path("/")) -> dict[int, int]:
    """Samples of APERF and MPERF since boot that made no sense, of each CPU."""
    return {int(words[1]): int(words[words.index("skipped") + 1])
            for words in _invariance(root) if words[0] == "cpu"}


def growth(before: dict[int, int], after: dict[int, int]) -> dict[int, int]:
    """What has risen, and by how much."""
    return {cpu: count - before.get(cpu, 0) for cpu, count in after.items()
            if count > before.get(cpu, 0)}


def read_turbo(root: Path = Path("/")) -> list[tuple[int, int]]:
    """The kernel's decoded turbo table, if it has one: active cores up to, kHz."""
    return [(int(words[1]), int(words[2]) * 1000)
            for words in _invariance(root) if words[0] == "turbo"]


def difference(before: dict[int, list[State]],
               after: dict[int, list[State]]) -> dict[int, list[State]]:
    """The counters' growth; everything else as it was at the end."""
    found = {}
    for cpu, states in after.items():
        earlier = before.get(cpu, [State("", 0, 0) for _ in states])
        found[cpu] = [State(new.name, new.latency, new.residency, new.disabled, new.power,
                            new.usage - old.usage, new.above - old.above,
                            new.below - old.below, new.time - old.time)
                      for old, new in zip(earlier, states)]
    return found


def config_hz(root: Path = Path("/")) -> int:
    """CONFIG_HZ of the running kernel; 0 if it is not to be found."""
    import gzip
    for path in (root / "proc/config.gz", root / f"boot/config-{platform.release()}"):
        if path.exists():
            with gzip.open(path, "rt") if path.suffix == ".gz" else open(path) as config:
                for line in config:
                    if line.startswith("CONFIG_HZ="):
                        return int(line.split("=")[1])
    return 0


def base_khz(root: Path = Path("/")) -> float:
    """The frequency at which MPERF counts: that of the time stamp counter."""
    found = _number(root / "sys/devices/system/cpu/cpu0/cpufreq/base_frequency")
    if found:
        return float(found)
    for line in _text(root / "proc/cpuinfo").splitlines():
        if line.startswith("model name") and (match := re.search(r"@ ([\d.]+)GHz", line)):
            return float(match[1]) * 1e6
    return 0.0


def this_machine() -> Machine:
    cpuidle = Path("/sys/devices/system/cpu/cpuidle")
    return Machine(platform.release(), os.uname().machine, _text(cpuidle / "current_driver"),
                   _text(cpuidle / "current_governor_ro") or _text(cpuidle / "current_governor"),
                   config_hz(), base_khz(), realtime_offset=time.time_ns() - time.monotonic_ns(),
                   policies=read_policies(), no_tick=sorted(cpus(_text(
                       Path("/sys/devices/system/cpu/nohz_full")))))


def load(path: Path) -> Machine:
    """NAME.json, or a table of states as text: name, exit latency, target residency in ns."""
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        raise Fail(f"{path}: is not text") from None
    if not text.lstrip().startswith("{"):
        return Machine(states={-1: table(path, text)})
    try:
        data = json.loads(text)
        states = {int(cpu): [State(**state) for state in rows]
                  for cpu, rows in data.pop("states").items()}
        lost = {int(cpu): count for cpu, count in data.pop("lost", {}).items()}
        policies = {int(cpu): Policy(**row) for cpu, row in data.pop("policies", {}).items()}
        skipped = {int(cpu): count for cpu, count in data.pop("skipped", {}).items()}
        turbo = [(int(cores), int(khz)) for cores, khz in data.pop("turbo", [])]
        limits = [Limit(**row) for row in data.pop("limits", [])]
        return Machine(**data, states=states, lost=lost, policies=policies, skipped=skipped,
                       turbo=turbo, limits=limits)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Fail(f"{path}: not a table that `cpuwhy record` writes ({error})") from None


def table(path: Path, text: str) -> list[State]:
    """The form of cpuidle-replay's state tables."""
    states: list[State] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        try:
            name, latency, residency = words[0], int(words[1]), int(words[2])
        except (IndexError, ValueError):
            raise Fail(f"{path}:{number}: must be NAME EXIT_LATENCY TARGET_RESIDENCY"
                       " in ns") from None
        state = State(name, latency, residency, "disabled" in words[3:], power(name))
        for word in words[3:]:
            if word.startswith("power="):
                state.power = float(word[6:])
        states.append(state)
    if not states:
        raise Fail(f"{path}: no idle states in it")
    return states


def verdict(states: Sequence[State], entered: int, duration: int) -> tuple[int, int]:
    """(-1 too deep, 0 adequate, 1 too shallow; miss in ns) by the rule that
    cpuidle_enter_state() counts `above` and `below` by."""
    state = states[entered]
    if duration < state.residency:
        if any(not s.disabled for s in states[:entered]):
            return -1, state.residency - duration
        return 0, 0
    deeper = next((s for s in states[entered + 1:] if not s.disabled), None)
    if deeper and duration > state.latency and duration - state.latency >= deeper.residency:
        return 1, duration - state.latency - deeper.residency
    return 0, 0


class Costs:
    """What an idle time in a state costs beyond the best state for it.

    Residencies are break-even points: at the target residency of state i both i and
    the next shallower enabled state have cost the same. So the cost of entering i is
    that of the shallower plus the difference of powers times the residency of i, and
    no measured energy is needed but the powers' ratios. Unit: ns of polling's power.
    """

    def __init__(self, states: Sequence[State]):
        self.states = list(states)
        self.usable = [i for i, state in enumerate(states) if not state.disabled]
        self.fixed = [0.0] * len(states)
        shallower: State | None = None
        for i, state in enumerate(states):
            if shallower is not None:
                before = self.fixed[states.index(shallower)]
                self.fixed[i] = before + max(shallower.power - state.power, 0.0) * state.residency
            if not state.disabled:
                shallower = state

    def energy(self, index: int, duration: int) -> float:
        return self.fixed[index] + self.states[index].power * duration

    def wrong(self, entered: int, duration: int) -> tuple[float, int]:
        """(energy lost, exit latency that the best state would not have had)."""
        best = min(self.usable or [entered], key=lambda i: self.energy(i, duration))
        lost = max(self.energy(entered, duration) - self.energy(best, duration), 0.0)
        return lost, max(self.states[entered].latency - self.states[best].latency, 0)
