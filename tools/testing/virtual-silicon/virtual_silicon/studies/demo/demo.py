# SPDX-License-Identifier: GPL-2.0
"""The guided demonstration: what the guest is made to do, phase by phase.

Each phase runs a load under turbostat, between two marks in the model's trace,
so that the guest's view and the model's can be put side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...guest.job import Job
from ...machine.machine import Machine

#: Every phase makes two marks, PHASE_MARK + 2 * its number and the next.
PHASE_MARK = 1000
SPLIT = "--turbostat--"

#: Seconds per phase by time mode: a busy second costs several of the host's in
#: deterministic time.
SECONDS = {"free": 4.0, "deterministic": 1.0}

_FREQ = "$CPU/cpu[0-9]*/cpufreq"


@dataclass(frozen=True)
class Phase:
    """One load, with a knob turned around it; `cpus` is vs-load's list."""

    name: str
    title: str
    cpus: str
    duty: int = 100
    knob: str = ""		# what is written, in words
    turn: str = "true"		# shell
    restore: str = "true"
    against: str = ""		# phase to compare with


@dataclass(frozen=True)
class Plan:
    """All phases of a demonstration on a machine with so many CPUs."""

    cpus: int
    seconds: float
    phases: list[Phase] = field(default_factory=list)

    def mark(self, name: str) -> int:
        names = [phase.name for phase in self.phases]
        return PHASE_MARK + 2 * names.index(name)


def loads(cpus: int) -> list[Phase]:
    half = max(1, cpus // 2)
    everyone = f"0-{cpus - 1}"
    return [
        Phase("idle", "idle", "none"),
        Phase("light", "20 % on each CPU", everyone, duty=20),
        Phase("half", f"{half} of {cpus} CPUs", f"0-{half - 1}"),
        Phase("full", f"all {cpus} CPUs", everyone),
    ]


def knobs(m: Machine, cpus: int) -> list[Phase]:
    everyone = f"0-{cpus - 1}"
    cap_khz = (m.min_ratio + m.base_ratio) // 2 * m.bus_khz
    no_turbo = "$CPU/intel_pstate/no_turbo"
    # The kernel's states may be more than the machine's.
    deepest = ("$(for _i in $CPU/cpu[0-9]*/cpuidle; do ls -d $_i/state?/disable | tail -n 1; "
               "done)")
    return [
        Phase("no_turbo", "all CPUs", everyone, against="full",
              knob="no_turbo 1",
              turn=f"put 1 {no_turbo}", restore=f"put 0 {no_turbo}"),
        Phase("max_freq", "all CPUs", everyone, against="full",
              knob=f"at most {cap_khz // 1000} MHz",
              turn=f"put {cap_khz} {_FREQ}/scaling_max_freq",
              restore=f"put {m.max_ratio * m.bus_khz} {_FREQ}/scaling_max_freq"),
        Phase("governor", "20 % on each CPU", everyone, duty=20,
              against="light", knob="performance",
              turn=f"put performance {_FREQ}/scaling_governor",
              restore=f"put schedutil {_FREQ}/scaling_governor"),
        Phase("no_deepest", "idle", "none", against="idle",
              knob=f"{m.idle[-1].name} disabled",
              turn=f"put 1 {deepest}", restore=f"put 0 {deepest}"),
    ]


def plan(m: Machine, cpus: int, seconds: float) -> Plan:
    return Plan(cpus, seconds, loads(cpus) + knobs(m, cpus))


def _phase_shell(phase: Phase, mark: int, seconds: float) -> str:
    load = (f"vs-load -c {phase.cpus} -t {seconds:g} -d {phase.duty} -m {mark}")
    return (f"{phase.turn} || return 1; turbostat -q -J --hide IPC -o /run/turbostat {load}; "
            f"_s=$?; {phase.restore}; echo {SPLIT}; cat /run/turbostat; return $_s")


def job(m: Machine, p: Plan) -> Job:
    out = Job()
    out.step("kernel", "uname -r; grep -m1 'model name' /proc/cpuinfo; nproc")
    out.step("zones", "dump_zones")
    out.step("registers", "vs-msr 0 0xce 0x1a0 0x1ad 0x1ae 0x1af; true")
    out.step("cpufreq", "dump_cpufreq")
    for phase in p.phases:
        out.step(f"idle-before-{phase.name}", "dump_cpuidle")
        out.step(phase.name, _phase_shell(phase, p.mark(phase.name), p.seconds))
        out.step(f"idle-after-{phase.name}", "dump_cpuidle")
    out.step("cpuidle", "dump $CPU/cpuidle/current_*")
    out.step("dmesg", "dmesg")
    return out
