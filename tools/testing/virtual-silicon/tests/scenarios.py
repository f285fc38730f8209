# SPDX-License-Identifier: GPL-2.0
"""What is booted for the tests, and what each guest is made to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from virtual_silicon.guest.job import Job
from virtual_silicon.machine import intel
from virtual_silicon.machine.machine import Machine
from virtual_silicon.studies import stock_tools as parts
from virtual_silicon.studies.invariance import utilisation
from virtual_silicon.studies.validation import reproduce, validate


@dataclass(frozen=True)
class Scenario:
    """A machine, a kernel, a time mode and a job."""

    machine: str
    kernel: str			# "base" or "patched"
    mode: str
    cpus: int
    job: Callable[[Machine, int], bytes]
    append: str = ""
    faults: str = ""		# lines of a fault file
    time: dict[str, int] = field(default_factory=dict)	# in place of the machine's


PASSIVE = "intel_pstate=passive cpufreq.default_governor=performance"

#: The register whose writes are marks in the trace.
MARK = "0x400000f0"

#: Marks: each load has a number, and makes this mark and the next.
MARKS = {"idle": 10, "one": 12, "all": 14, "light": 16, "no_turbo": 18}
RESIDENCY_MARK = 20

_FREQ = "$CPU/cpu[0-9]*/cpufreq"
SETTLE = "sleep 0.01"		# until a request has had its slot


def _load(options: str, mark: int) -> str:
    return (f"turbostat -q -J --hide IPC -o /run/t vs-load {options} -m {mark} "
            "|| return 1; echo --turbostat--; cat /run/t")


def witness(m: Machine, cpus: int) -> bytes:
    """Stock tools look at the machine, at rest and under load.

    CPUs other than 0 are used, which has the housekeeping.
    """
    job = Job()
    job.step("header", "turbostat --hide IPC -o /run/h true; cat /run/h")
    job.step("frequency-info", "cpupower frequency-info")
    job.step("idle-info", "cpupower idle-info")
    job.step("registers", "vs-msr 1 0xce 0x198 0x199 0x1ad 0x1ae 0x606 0x614 0x66a "
             "0x4e; vs-msr 1 0xce=0; true")
    job.step("zones", "dump_zones")
    job.step("cpuidle", "dump_cpuidle")
    job.step("cpufreq", "dump_cpufreq")
    job.step("idle", _load("-c none -t 1.5", MARKS["idle"]))
    job.step("one", _load(f"-c {cpus - 1} -t 0.4", MARKS["one"]))
    job.step("all", _load("-c all -t 0.25", MARKS["all"]))
    job.step("light", _load("-c all -t 0.4 -d 20 -p 20000", MARKS["light"]))
    # The CPU rests between one read and the next: the TSC's come first and last.
    counters = " ".join(hex(s.residency_msr) for s in m.idle if s.residency_msr)
    job.step("residency", f"vs-msr 1 0x10 {counters}; echo --; vs-load -c 1 -t 0.5 -d 40 "
             f"-p 1500 -m {RESIDENCY_MARK}; vs-msr 1 {counters} 0x10")
    job.step("no_turbo", "put 1 $CPU/intel_pstate/no_turbo; "
             + _load(f"-c {cpus - 1} -t 0.3", MARKS["no_turbo"]))
    job.step("dmesg", "dmesg")
    return job.archive()


#: Requests for the proportionality test, by CPU frequency in kHz.
SPEEDS_KHZ = (800_000, 1_100_000, 1_500_000, 2_000_000, 2_900_000, 3_800_000)


def speed(m: Machine, cpus: int) -> bytes:
    """The same work on one CPU at several requested frequencies."""
    job = Job()
    job.step("settle", "sleep 2")	# what is left of booting takes time of the first
    for khz in SPEEDS_KHZ:
        job.step(f"speed-{khz}", f"put userspace {_FREQ}/scaling_governor; "
                 f"put {khz} {_FREQ}/scaling_setspeed; {SETTLE}; vs-load -c 1 -t 0.2")
    job.step("dmesg", "dmesg")
    return job.archive()


def turbo(m: Machine, cpus: int) -> bytes:
    """One CPU more busy each time."""
    job = Job()
    for busy in range(1, cpus + 1):
        job.step(f"turbo-{busy}", f"vs-load -c {cpus - busy}-{cpus - 1} -t 0.15 "
                 f"-m {100 + 2 * busy}")
    job.step("dmesg", "dmesg")
    return job.archive()


def acpi(m: Machine, cpus: int) -> bytes:
    """acpi-cpufreq instead of intel_pstate: our ACPI table is all it has."""
    job = Job()
    job.step("cpufreq", "dump_cpufreq")
    job.step("slow", f"put powersave {_FREQ}/scaling_governor; {SETTLE}; "
             "vs-load -c 1 -t 0.1 -m 30")
    job.step("fast", f"put performance {_FREQ}/scaling_governor; {SETTLE}; "
             "vs-load -c 1 -t 0.1 -m 32")
    job.step("no-boost", f"put 0 $CPU/cpufreq/boost; {SETTLE}; vs-load -c 1 -t 0.1 -m 34")
    job.step("dmesg", "dmesg")
    return job.archive()


AMD_REGISTERS = ("0xc0010015 0xc0010061 0xc0010062 0xc0010063 0xc0010064 0xc0010065 "
                 "0xc0010066 0xc0010067 0xc0010299 0xc00000e7 0x1ad 0xce")


def amd(m: Machine, cpus: int) -> bytes:
    """acpi-cpufreq on P-states by number; energy by turbostat."""
    job = Job()
    job.step("registers", f"vs-msr 1 {AMD_REGISTERS}; true")
    job.step("constant", "vs-msr 1 0xc0010064=0; true")
    job.step("cpuinfo", "grep -m1 ^flags /proc/cpuinfo")
    job.step("cpufreq", "dump_cpufreq")
    job.step("slow", f"put powersave {_FREQ}/scaling_governor; {SETTLE}; "
             "vs-load -c 1 -t 0.1 -m 30")
    job.step("fast", f"put performance {_FREQ}/scaling_governor; {SETTLE}; "
             + _load("-c 1 -t 0.2", 32))
    job.step("no-boost", "put 0 $CPU/cpufreq/boost; vs-msr 1 0xc0010015; "
             f"{SETTLE}; vs-load -c 1 -t 0.1 -m 34")
    job.step("boost", f"put 1 $CPU/cpufreq/boost; {SETTLE}; vs-load -c 1 -t 0.1 -m 36")
    job.step("dmesg", "dmesg")
    return job.archive()


CPPC_REGISTERS = "0xc00102b0 0xc00102b1 0xc00102b3"


def amd_pstate(m: Machine, cpus: int) -> bytes:
    """amd-pstate by the CPPC registers; the governor decides."""
    job = Job()
    job.step("cpufreq", "dump_cpufreq")
    job.step("slow", f"put powersave {_FREQ}/scaling_governor; "
             f"vs-load -c 1 -t 0.05; vs-msr 1 {CPPC_REGISTERS}; vs-load -c 1 -t 0.1 -m 30")
    job.step("fast", f"put performance {_FREQ}/scaling_governor; "
             f"vs-load -c 1 -t 0.05; vs-msr 1 {CPPC_REGISTERS}; vs-load -c 1 -t 0.1 -m 32")
    job.step("dmesg", "dmesg")
    return job.archive()


def repeat(m: Machine, cpus: int) -> bytes:
    """Some of everything, to be the same twice."""
    job = Job()
    job.step("work", "vs-load -c all -t 0.1 -d 50 -m 50; hackbench -g 1 -l 20; "
             "cyclictest -q -t 2 -a -i 2000 -l 20")
    return job.archive()


def topology(m: Machine, cpus: int) -> bytes:
    job = Job()
    job.step("packages", "dump $CPU/cpu[0-9]*/topology/physical_package_id")
    job.step("zones", "dump_zones")
    job.step("load", f"vs-load -c 0-{cpus // 2 - 1} -t 0.1 -m 60")
    job.step("dmesg", "dmesg")
    return job.archive()


#: Seconds of virtual time for counters that must not drift.
HOUR_S = 3600
HOUR_MARK = 80


def hour(m: Machine, cpus: int) -> bytes:
    """An hour, nearly idle, at the base clock."""
    job = Job()
    job.step("clock", f"put userspace {_FREQ}/scaling_governor; "
             f"put {m.base_ratio * m.bus_khz} {_FREQ}/scaling_setspeed; sleep 0.1; "
             "dump_zones")
    job.step("hour", f"cut -d' ' -f1 /proc/uptime; vs-load -c none -t {HOUR_S} "
             f"-m {HOUR_MARK}; cut -d' ' -f1 /proc/uptime")
    return job.archive()


#: Marks of loads on chosen CPUs.
KIND_MARKS = {"first": 30, "last": 32, "all": 34}


def kinds(m: Machine, cpus: int) -> bytes:
    """Cores of two kinds: each alone, then all together."""
    job = Job()
    job.step("cpufreq", "dump_cpufreq")
    job.step("cpuidle", "dump_cpuidle")
    job.step("registers", "".join(f"echo cpu {cpu}; vs-msr {cpu} 0xce 0x771 0xc00102b0; "
                                  for cpu in (0, cpus - 1)) + "true")
    job.step("cpuinfo", "grep -m1 ^flags /proc/cpuinfo")
    job.step("header", "turbostat --hide IPC -o /run/h true; cat /run/h")
    job.step("fast", f"put performance {_FREQ}/scaling_governor")
    job.step("rest", _load("-c none -t 0.3", 36))
    job.step("idle", "dump_cpuidle")
    for name, which in (("first", "0"), ("last", str(cpus - 1)), ("all", "all")):
        job.step(f"load-{name}", f"vs-load -c {which} -t 0.1 -m {KIND_MARKS[name]}")
    job.step("dmesg", "dmesg")
    return job.archive()


#: Marks: the first of two threads of a core, both, one of each of two cores.
SMT_MARKS = {"one": 40, "siblings": 42, "cores": 44}


def smt(m: Machine, cpus: int) -> bytes:
    """Two threads per core: CPUs 2 and 3 are siblings, 4 is on another core."""
    job = Job()
    job.step("topology", "dump $CPU/cpu[0-9]*/topology/thread_siblings_list")
    for name, which in (("one", "2"), ("siblings", "2-3"), ("cores", "2,4")):
        job.step(name, _load(f"-c {which} -t 0.2", SMT_MARKS[name]))
    job.step("requests", f"put userspace {_FREQ}/scaling_governor; put 800000 "
             f"{_FREQ}/scaling_setspeed; put 2000000 $CPU/cpu3/cpufreq/scaling_setspeed; "
             "vs-load -c 2 -t 0.1 -m 46; vs-load -c 2-3 -t 0.1 -m 48")
    job.step("dmesg", "dmesg")
    return job.archive()


def messages(m: Machine, cpus: int) -> bytes:
    """Nothing but a boot and what the kernel said of it."""
    job = Job()
    job.step("registers", "vs-msr 0 0xce 0x1ad 0x1ae 0x1af; true")
    job.step("cpufreq", "dump_cpufreq")
    job.step("invariance", f"dump {INVARIANCE}/* $CPU/cpu[0-9]*/freq_invariance/*")
    job.step("turbo-table", f"cat {INVARIANCE}/turbo_table || true")
    job.step("header", "turbostat --hide IPC -o /run/h true; cat /run/h")
    job.step("dmesg", "dmesg")
    return job.archive()


def invariance_at_boot(m: Machine, cpus: int) -> bytes:
    """What frequency invariance makes of the registers that there are."""
    job = Job()
    job.step("invariance", f"dump {INVARIANCE}/* $CPU/cpu[0-9]*/freq_invariance/*")
    job.step("dmesg", "dmesg")
    return job.archive()


def family(m: Machine, cpus: int) -> bytes:
    """What stock tools and the kernel make of a part's registers."""
    job = Job()
    job.step("header", "turbostat --hide IPC -o /run/h true; cat /run/h")
    job.step("cpufreq", "dump_cpufreq")
    job.step("cpuidle", "dump_cpuidle")
    job.step("idle", "vs-load -c none -t 0.3")
    job.step("one", _load("-c 1 -t 0.2", MARKS["one"]))
    job.step("no_turbo", "put 1 $CPU/intel_pstate/no_turbo; vs-load -c 1 -t 0.1 "
             f"-m {MARKS['no_turbo']}")
    job.step("dmesg", "dmesg")
    return job.archive()


def part(m: Machine, cpus: int) -> bytes:
    return parts.parts_job(parts.parts()[m.name].registers).archive()


def waitpkg(m: Machine, cpus: int) -> bytes:
    """UMONITOR, UMWAIT and TPAUSE, or that they are not there."""
    job = Job()
    job.step("waitpkg", "vs-waitpkg" if m.features.waitpkg else "vs-waitpkg --absent")
    return job.archive()


#: Faults by the second of virtual time at which they begin; the guest has
#: booted within the first.  Each CPU has its own, CPU 0 looks on.
RUNTIME_FAULTS = """\
# at 2 s
1 freeze counter=both at=2s for=100ms
2 zero counter=both at=2s for=100ms
3 add counter=both cycles=-100000000 at=2s
# at 3 s
1 rate counter=aperf permille=500 at=3s for=100ms
2 gp msr=0x1b0 at=3s for=100ms
3 add counter=aperf cycles=3000000000 at=3s
# at 4 s
1 wake at=4s every=1ms for=100ms
2 limit ratio=12 at=4s for=100ms
3 freeze counter=both at=4s reads=3
"""
FAULT_SAMPLES = 18

#: Broken from the start.
LOST_TURBO = """\
* msr msr=0x1ad value=0
* msr msr=0x1ae value=0
* gp msr=0x611
* cpuid leaf=6 sub=0 reg=ecx clear=0x8
"""

#: Registers of frequency invariance that may raise #GP from the start.
GP_AT_BOOT = (0xCE, 0x1AD, 0x1AE, 0xE7, 0xE8)

#: A hypervisor that advertises APERF and MPERF and fills them with zeros.
ZERO_COUNTERS = """\
* msr msr=0xe7 value=0
* msr msr=0xe8 value=0
"""


def faulty(m: Machine, cpus: int) -> bytes:
    """Counters of the busy CPUs 1-3 around each second's faults.

    The TSC (register 0x10) is virtual time, so that samples can be told apart
    by where in a fault's window they fall.
    """
    job = Job()
    registers = "0x10 0xe7 0xe8 0x1b0 0x19c"
    job.step("before", "dmesg")
    for second in (2, 3, 4):
        begin = int(m.tsc_khz * 1000 * (second - 0.06))
        look = "; ".join(f"echo cpu {cpu}; vs-msr {cpu} {registers}" for cpu in (1, 2, 3))
        busy = "2-3" if second == 4 else "1-3"	# CPU 1 is to be woken
        job.step(f"second-{second}",
                 f"until [ $(($(vs-msr 0 0x10 | cut -d' ' -f2))) -gt {begin} ]; "
                 f"do sleep 0.01; done; vs-load -c {busy} -t 0.3 -m {100 + 10 * second} & "
                 f"for i in $(seq {FAULT_SAMPLES}); do {look}; sleep 0.01; done; wait; true")
    job.step("dmesg", "dmesg")
    return job.archive()


def look(m: Machine, cpus: int) -> bytes:
    """What a broken machine looks like after boot, and that it works."""
    job = Job()
    job.step("registers", "vs-msr 1 0xe7 0xe8 0x1ad 0x1ae 0x611 0x1b0; true")
    job.step("zones", "dump_zones")
    job.step("cpuinfo", "grep -m1 ^flags /proc/cpuinfo")
    job.step("load", "vs-load -c all -t 0.05")
    job.step("dmesg", "dmesg")
    return job.archive()


#: Marks by energy preference; work per period is fixed, so that a slower clock
#: means a busier CPU.
PREFERENCE_MARKS = {0: 20, 128: 22, 255: 24}
PREFERENCE = "$CPU/cpu[0-9]*/cpufreq/energy_performance_preference"
HWP_REGISTERS = "0x770 0x771 0x774 0x777 0x198"


def hwp_active(m: Machine, cpus: int) -> bytes:
    """intel_pstate leaves the clock to the hardware."""
    job = Job()
    job.step("registers", f"vs-msr 1 {HWP_REGISTERS}")
    job.step("constant", "vs-msr 1 0x771=0; true")
    job.step("cpuinfo", "grep -m1 ^flags /proc/cpuinfo")
    job.step("cpufreq", "dump_cpufreq")
    job.step("governor", f"put powersave {_FREQ}/scaling_governor")
    for preference, mark in PREFERENCE_MARKS.items():
        job.step(f"preference-{preference}",
                 f"put {preference} {PREFERENCE}; vs-msr 1 0x774; "
                 f"vs-load -c 1 -t 0.1 -w 2 -p 5000; "
                 f"vs-load -c 1 -t 0.25 -w 2 -p 5000 -m {mark}")
    job.step("full", "vs-load -c 1 -t 0.05; vs-load -c 1 -t 0.1 -m 30")
    job.step("no_turbo", "put 1 $CPU/intel_pstate/no_turbo; vs-load -c 1 -t 0.1 -m 32")
    job.step("dmesg", "dmesg")
    return job.archive()


#: Marks by energy-performance bias.
BIAS_MARKS = {0: 20, 8: 22, 15: 24}
#: A byte goes from CPU to CPU and back so many times.
ROUND_TRIPS = 200
_BIAS = "$CPU/cpu[0-9]*/power/energy_perf_bias"
_SHALLOW = "$CPU/cpu[0-9]*/cpuidle/state[23]/disable"


def knobs(m: Machine, cpus: int) -> bytes:
    """Bias, PAUSE, the way from CPU to CPU, and bits that are not to be written."""
    job = Job()
    # the stock driver leaves HWP alone that has no preference field
    job.step("enable", "vs-msr 0 0x770=1; vs-msr 1 0x770 0x774")
    for bias, mark in BIAS_MARKS.items():
        job.step(f"bias-{bias}", f"put {bias} {_BIAS}; vs-msr 1 0x1b0; "
                 "vs-load -c 1 -t 0.1 -w 2 -p 5000; "
                 f"vs-load -c 1 -t 0.2 -w 2 -p 5000 -m {mark}")
    job.step("pause", f"put 0 {_BIAS}; vs-load -c 1 -t 0.05; vs-load -c 1 -t 0.1 -P -m 30")
    job.step("reserved", "vs-msr 1 0x1a0=0x40050009; vs-msr 1 0x199=0x200001400; "
             "vs-msr 1 0x1a0=0x850089; vs-msr 1 0x1a0; true")
    job.step("turbo-on", "turbostat true 2>&1 | grep CPUID.6")
    job.step("turbo-off", "for cpu in 0 1; do vs-msr $cpu 0x1a0=0x4000850089; done; "
             "turbostat true 2>&1 | grep CPUID.6; vs-load -c 1 -t 0.05; "
             "vs-load -c 1 -t 0.1 -m 32")
    job.step("ping", f"put 1 {_SHALLOW}; mkfifo /tmp/a /tmp/b; exec 5<>/tmp/a 6<>/tmp/b; "
             f"turbostat -q --show CPU sh -c '"
             f"taskset 1 dd bs=1 count={ROUND_TRIPS} <&5 >&6 & printf x >&5; "
             f"taskset 2 dd bs=1 count={ROUND_TRIPS} <&6 >&5; wait' 2>&1")
    job.step("dmesg", "dmesg")
    return job.archive()


#: intel_idle's states by machine and options: name, and whether it is off at boot.
IDLE_STATES: dict[str, tuple[str, str, str]] = {
    "default": ("sapphire-rapids", "", "POLL C0.2 C1 C1E C6"),
    "states-off": ("sapphire-rapids", "intel_idle.states_off=2", "POLL -C0.2 C1 C1E C6"),
    "c02-off": ("sapphire-rapids", "intel_idle.c02=off", "POLL C1 C1E C6"),
    "c02-off-states-off": ("sapphire-rapids", "intel_idle.c02=off intel_idle.states_off=8",
                           "POLL C1 C1E -C6"),
    "c01": ("sapphire-rapids", "intel_idle.c02=c01", "POLL C0.1 C1 C1E C6"),
    "nonsense": ("sapphire-rapids", "intel_idle.c02=maybe intel_idle.ibrs_off=1",
                 "POLL C0.2 C1 C1E C6"),
    "max-cstate-0": ("sapphire-rapids", "intel_idle.max_cstate=0", ""),
    "max-cstate-1": ("sapphire-rapids", "intel_idle.max_cstate=1", "POLL C0.2 C1"),
    "max-cstate-2": ("sapphire-rapids", "intel_idle.max_cstate=2", "POLL C0.2 C1 C1E"),
    "no-waitpkg": ("sapphire-rapids", "clearcpuid=waitpkg", "POLL C1 C1E C6"),
    # Of what _CST does not list, C1E is always on, and C0.2 is none of its business.
    "short-cst": (str(Path(__file__).with_name("short-cst.toml")), "",
                  "POLL C0.2 C1 C1E -C6"),
    "use-acpi": (str(Path(__file__).with_name("short-cst.toml")), "intel_idle.use_acpi=1",
                 "POLL C0.2 C1 C1E -C6"),
    "no-acpi": (str(Path(__file__).with_name("short-cst.toml")), "intel_idle.no_acpi=1",
                "POLL C0.2 C1 C1E C6"),
    "unknown": (str(Path(__file__).with_name("unknown-waitpkg.toml")), "",
                "POLL C1_ACPI C2_ACPI"),
    "amd": ("epyc-7742", "", ""),
}


def idle_states(m: Machine, cpus: int) -> bytes:
    """What there is at boot; then our kselftest."""
    job = Job()
    job.step("cpuidle", "dump_cpuidle")
    job.step("kselftest", "/selftests/intel_idle/states.sh")
    job.step("dmesg", "dmesg")
    return job.archive()


def idle_governor(m: Machine, cpus: int) -> bytes:
    """KUnit at boot, then our kselftest."""
    job = Job()
    job.step("governors", "cd $CPU/cpuidle; cat current_governor available_governors; "
             "put teo current_governor; cat current_governor")
    job.step("kselftest", "/selftests/cpuidle_teo/wakeups")
    job.step("dmesg", "dmesg")
    return job.archive()


#: Loads for C0.2 alone, with the mark that each begins with.
C02_LOADS: dict[str, tuple[int, str]] = {
    "hackbench": (20, "for i in $(seq 30); do hackbench -g 1 -f 1 -l 1000; done"),
    "cyclictest": (22, "cyclictest -q --default-system -t 1 -a 1 -i 100 -l 3000"),
    "rest": (24, "sleep 0.4"),
    "c01": (26, "sleep 0.2"),
}
C02_KHZ = 1_500_000
C02_INTERRUPTS = (0, 1)		# the only state while their time is taken; C0.2 stays so


def c02(m: Machine, cpus: int) -> bytes:
    """C0.2 is the only idle state: counters of the kernel's beside the model's."""
    job = Job()
    job.step("only", "put 1 $CPU/cpu*/cpuidle/state[0234]/disable; "
             "put teo $CPU/cpuidle/current_governor; sleep 0.05")
    # Nothing but the shell's own reads between the counters and the marks
    used = ("for f in $CPU/cpu*/cpuidle/state1/usage $CPU/cpu*/cpuidle/state1/time; "
            "do read n <$f; w=\"$w $n\"; done")
    for load, (mark, command) in C02_LOADS.items():
        if load == "c01":
            job.step("c01-on", "put 0 $CPU/umwait_control/enable_c02")
        job.step(load, f"w=; {used}; vs-msr 0 0x400000f0={mark}; {command}; "
                 f"vs-msr 0 0x400000f0={mark + 1}; {used}; echo used $w")
    job.step("c01-off", "put 1 $CPU/umwait_control/enable_c02")
    # POLL is state 0, C0.2 state 1
    for state in C02_INTERRUPTS:
        job.step(f"interrupts-{state}", f"put 0 $CPU/cpu*/cpuidle/state{state}/disable; "
                 f"put 1 $CPU/cpu*/cpuidle/state{1 - state}/disable; "
                 "vs-wake -m timer -i -c 1 -n 60 -w 50 -x 300")
    job.step("wakeups", "cd /sys/kernel/debug/wakeup_test; "
             "put 0 $CPU/umwait_control/max_time; "
             "(sleep 0.02; put 0 $CPU/cpu1/online; sleep 0.02; put 1 $CPU/cpu1/online) & "
             "echo 20000 >run; wait; cat result")
    job.step("resting", f"put userspace {_FREQ}/scaling_governor; "
             f"put {C02_KHZ} {_FREQ}/scaling_setspeed; sleep 0.02; vs-msr 1 0xe7 0xe8; "
             "echo --; vs-load -c 1 -t 0.2 -d 20 -p 4000 -m 30; vs-msr 1 0xe7 0xe8")
    job.step("dmesg", "dmesg")
    return job.archive()


#: What polling loops are told to do, with the mark that a while of it begins with.
IDLE_POLL: dict[str, int] = {"c02": 10, "c01": 12, "off": 14}


def idle_poll(m: Machine, cpus: int) -> bytes:
    """Polling loops: the POLL state's if cpuidle is in use, else that of idle=poll."""
    job = Job()
    job.step("poll", "exec 4>/dev/cpu_dma_latency; printf '\\0\\0\\0\\0' >&4; sleep 0.02; "
             + "; ".join(f"put {what} /sys/module/umwait/parameters/idle_poll; "
                         f"vs-msr 0 0x400000f0={mark}; sleep 0.1; vs-msr 0 0x400000f0={mark + 1}"
                         for what, mark in IDLE_POLL.items()))
    job.step("dmesg", "dmesg")
    return job.archive()


#: Clocks in kHz and idle states, shallow first, that each have a mark of their own.
SIGN_KHZ = (800_000, 2_000_000)
SIGN_STATES = ("busy", "POLL", "C0.1", "C0.2", "C1", "C1E", "C6")


def sign_mark(khz: int, state: str) -> int:
    return 100 + 2 * (SIGN_KHZ.index(khz) * len(SIGN_STATES) + SIGN_STATES.index(state))


def signs(m: Machine, cpus: int) -> bytes:
    """All CPUs busy, then in one idle state after the other, at two clocks."""
    job = Job()
    for khz in SIGN_KHZ:
        job.step(f"clock-{khz}", f"put userspace {_FREQ}/scaling_governor; "
                 f"put {khz} {_FREQ}/scaling_setspeed; sleep 0.02; "
                 f"vs-load -c all -t 0.05 -m {sign_mark(khz, 'busy')}")
        for state in SIGN_STATES[1:]:
            mark, name = sign_mark(khz, state), state.replace("C0.1", "C0.2")
            job.step(f"{state}-{khz}", f"put {int(state != 'C0.1')} "
                     "$CPU/umwait_control/enable_c02; for d in $CPU/cpu*/cpuidle/state*; do "
                     f'read n <$d/name; [ "$n" = {name} ]; echo $? >$d/disable; done; '
                     f"vs-load -c all -t 0.002 >/dev/null; vs-load -c none -t 0.1 -m {mark}")
    job.step("dmesg", "dmesg")
    return job.archive()


#: Limit of the package's power: above the cores at rest, below all at turbo.
POWER_LIMIT_W = 125
_LIMIT_FILE = "/sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw"


def hwp_passive(m: Machine, cpus: int) -> bytes:
    """The kernel's governor decides, through the same registers; then limits."""
    job = Job()
    job.step("registers", f"vs-msr 1 {HWP_REGISTERS}; true")
    job.step("cpufreq", "dump_cpufreq")
    job.step("slow", f"put powersave {_FREQ}/scaling_governor; {SETTLE}; "
             "vs-load -c 1 -t 0.1 -m 40")
    job.step("fast", f"put performance {_FREQ}/scaling_governor; {SETTLE}; "
             "vs-load -c 1 -t 0.1 -m 42")
    job.step("asleep", _load("-c none -t 0.5", 44))
    job.step("cool", "vs-msr 0 0x1b1")
    job.step("limit", f"put {POWER_LIMIT_W}000000 {_LIMIT_FILE}; cat {_LIMIT_FILE}; "
             "vs-load -c all -t 0.15; vs-load -c all -t 0.25 -m 46")
    job.step("warm", "vs-msr 0 0x1b1")
    job.step("lifted", f"put 350000000 {_LIMIT_FILE}; vs-load -c all -t 0.1; "
             "vs-load -c all -t 0.05 -m 48")
    job.step("dmesg", "dmesg")
    return job.archive()


INVARIANCE = "$CPU/freq_invariance"
_SHOW = f"dump {INVARIANCE}/[a-p]* $CPU/cpu[0-9]*/freq_invariance/*"

#: What policy is set to, and what must not be possible.
POLICIES = ("base", "1c", "3c", "4c", "8c", "12c", "all")
BAD_POLICIES = ("", "0c", "04c", "c", "4", "boost", "4cc", "active", "nonsense")
TOGGLES = 20


def _try(value: str, path: str) -> str:
    """Writes a value, says whether that was possible, and what is there then."""
    return (f"if echo '{value}' 2>/dev/null >{path}; then echo '{value}:taken'; "
            f"else echo '{value}:refused'; fi; {_SHOW}; ")


def invariance_control(m: Machine, cpus: int) -> bytes:
    """Policies and no_turbo."""
    job = Job()
    job.step("boot", _SHOW)
    for word in POLICIES:
        job.step(f"policy-{word}", _try(word, f"{INVARIANCE}/policy"))
    job.step("reset", f"put 3c {INVARIANCE}/policy")
    for i, word in enumerate(BAD_POLICIES):
        job.step(f"bad-{i}", _try(word, f"{INVARIANCE}/policy"))
    job.step("load", f"vs-load -c 1 -t 0.1; {_SHOW}")
    job.step("no_turbo", f"for i in $(seq {TOGGLES}); do for off in 1 0; do "
             "put $off $CPU/intel_pstate/no_turbo; echo $off $(cat "
             "$CPU/cpu[0-9]*/freq_invariance/max_ratio); done; done")
    job.step("limit", f"put 1c {INVARIANCE}/policy; dump $CPU/cpu[0-9]*/freq_invariance/max_ratio "
             "$CPU/cpu[0-9]*/cpufreq/cpuinfo_max_freq")
    job.step("dmesg", "dmesg")
    return job.archive()


def invariance_boost(m: Machine, cpus: int) -> bytes:
    """The divisor follows AMD's boost, through either driver."""
    job = Job()
    job.step("boot", _SHOW + "; dump_cpufreq")
    for word in ("boost", "nominal", "4c", "midpoint"):
        job.step(f"policy-{word}", _try(word, f"{INVARIANCE}/policy"))
    switch = "$CPU/cpufreq/boost"
    job.step("boost", f"for i in $(seq {TOGGLES}); do for on in 0 1; do "
             f"put $on {switch} || return 1; "
             "echo $on $(cat $CPU/cpu[0-9]*/freq_invariance/max_ratio) "
             "/ $(cat $CPU/cpu[0-9]*/cpufreq/cpuinfo_max_freq); done; done")
    # Of one policy after the other; then of all, by the common file
    local = "$CPU/cpufreq/policy%d/boost"
    job.step("local-boost", "".join(
        f"put {on} {file} || return 1; echo $(cat $CPU/cpu[0-9]*/freq_invariance/max_ratio); "
        for on, file in ((0, local % 0), (0, local % 1), (1, local % 1), (0, switch),
                         (1, switch))))
    job.step("dmesg", "dmesg")
    return job.archive()


#: Written at all files of the series by so many threads (guest/src/vs-hostile.c).
HOSTILE_WRITES = 20_000
HOSTILE_THREADS = 4


def hostile(m: Machine, cpus: int) -> bytes:
    """What is no value is refused, and the kernel says nothing to any of it."""
    job = Job()
    job.step("boot", "dmesg -c")
    job.step("user", "vs-hostile -u")
    job.step("writes", f"vs-hostile {HOSTILE_WRITES} {HOSTILE_THREADS}")
    job.step("dmesg", "dmesg")
    return job.archive()


#: On the kernel's command line, by parameter; None: no value at all. All in one boot, as
#: the kernel looks at each.
HOSTILE_PARAMETERS: dict[str, tuple[str | None, ...]] = {
    "intel_idle.c02": ("", "maybe", "ON", "c02", "-1", "auto,on", "offf", "%s%n", "o" * 200, None),
    "intel_idle.states_off": ("", "-1", "0x", "2x", "4294967296", "none", "9" * 100, None),
    "umwait.idle_poll": ("", "c03", "C01", "1", "offf", "c02 off", None),
    "cpuidle.governor": ("t" * 16, "teo" * 30),
}
#: freq_invariance= is read once, so that each takes a boot.
HOSTILE_POLICIES = ("", "0c", "10000c", "OFF", "4c,1c", "4c 1c", "%s%n", "4" * 300)
PARAMETERS = "/sys/module/*/parameters"


def parameters(m: Machine, cpus: int) -> bytes:
    job = Job()
    job.step("parameters", f"dump {PARAMETERS}/* {INVARIANCE}/* $CPU/cpuidle/current_governor "
             "$CPU/cpu0/cpuidle/state*/disable")
    job.step("dmesg", "dmesg")
    return job.archive()


#: Counters broken on one CPU each, CPU 0 looks on; times as in RUNTIME_FAULTS.
#: Those of the third second are over in a moment, the others last 100 ms.
COUNTER_FAULTS = """\
# at 2 s
1 freeze counter=mperf at=2s for=100ms
2 freeze counter=both at=2s for=100ms
3 freeze counter=aperf at=2s for=100ms
# at 3 s
1 zero counter=both at=3s reads=2
2 add counter=both cycles=-100000000 at=3s
3 add counter=aperf cycles=4611686018427387904 at=3s
# at 4 s
1 gp msr=0xe7 at=4s for=100ms
2 gp msr=0xe8 at=4s for=100ms
"""
FAULT_SECONDS = (2, 3, 4)
FAULT_LOOKS = 30


def invariance_faults(m: Machine, cpus: int) -> bytes:
    """CPUs 1-3 are busy around each second's faults; CPU 0 reads their state."""
    job = Job()
    look = ("echo look $(($(vs-msr 0 0x10 | cut -d' ' -f2))); "
            "dump $CPU/cpu[123]/freq_invariance/*")
    for second in FAULT_SECONDS:
        begin = int(m.tsc_khz * 1000 * (second - 0.1))
        job.step(f"second-{second}",
                 f"until [ $(($(vs-msr 0 0x10 | cut -d' ' -f2))) -gt {begin} ]; "
                 f"do sleep 0.01; done; vs-load -c 1-3 -t 0.7 & "
                 f"for i in $(seq {FAULT_LOOKS}); do {look}; sleep 0.01; done; wait; {look}")
    job.step("invariance", _SHOW)
    job.step("dmesg", "dmesg")
    return job.archive()


def suspend(m: Machine, cpus: int) -> bytes:
    """Suspend to RAM until the clock's alarm: firmware starts the CPUs anew."""
    job = Job()
    counters = "; ".join(f"echo cpu {cpu}; vs-msr {cpu} 0xe7 0xe8" for cpu in range(cpus))
    alarm = "/sys/class/rtc/rtc0/wakealarm"
    job.step("before", f"vs-load -c all -t 0.5; cat /sys/power/mem_sleep; {counters}; {_SHOW}")
    job.step("suspend", f"put 0 {alarm}; put +2 {alarm}; put mem /sys/power/state; {counters}; "
             f"{_SHOW}")
    job.step("after", f"vs-load -c all -t 0.2; {_SHOW}; cat $CPU/cpu*/cpufreq/scaling_cur_freq")
    job.step("dmesg", "dmesg")
    return job.archive()


#: Mixed parts: a CPU of either kind, beside CPU 0 of the first.
MIXED = {"invariance-hybrid": (1, 3), "invariance-hybrid-smt": (2, 4),
         "invariance-mixed-amd": (1, 3)}
#: Clocks of a task that moves between them, kHz; 0: as high as each goes.
MOVING_KHZ = (2_000_000, 0)
MOVES = 3
#: 1 ms at 3.8 GHz, some 1 ms and 2 ms at the highest clocks.
MOVING_UNITS = 118


def _looks(files: str) -> str:
    """A shell function that shows files as of now, below a line of words."""
    return f'look() {{ echo "look $*"; dump {files}; }}; '


def _moving(first: int, second: int) -> str:
    """Fixed work every 10 ms that moves from CPU to CPU every 250 ms."""
    masks = [1 << (first, second)[(i + 1) % 2] for i in range(MOVES)]
    return (f"vs-util -c {first} -w {MOVING_UNITS} -n 150 >/tmp/util & sleep 0.6; "
            "task=$(ls /proc/$!/task | sort -n | tail -n 1); "
            + "; ".join(f"taskset -p {mask:x} $task >/dev/null; "
                        "echo moved $(cut -d' ' -f1 /proc/uptime); sleep 0.25"
                        for mask in masks)
            + "; wait; cat /tmp/util")


_RATIOS = ("$CPU/freq_invariance/[ep]* $CPU/cpu[0-9]*/freq_invariance/max_ratio "
           "$CPU/cpu[0-9]*/cpufreq/cpuinfo_max_freq $CPU/cpufreq/boost "
           "$CPU/amd_pstate/status $CPU/intel_pstate/status $CPU/intel_pstate/no_turbo")


#: Of each period of the work that schedutil chooses a clock for, what it takes at the CPU's
#: highest clock.
GOVERNED_SHARE = 0.6


def _governed(cpu: int, khz: int, work_permille: int) -> str:
    units = int(MOVING_UNITS * 10 * GOVERNED_SHARE * khz / 3_800_000 * work_permille / 1000)
    return (f"put schedutil {_FREQ}/scaling_governor; vs-util -c {cpu} -w {units} -n 130")


def mixed(m: Machine, cpus: int, on: tuple[int, int], boost: bool = False) -> bytes:
    """CPUs of two kinds: what freq_max is, a task that moves between the two named, and
    one that stays. On AMD parts also all modes of the driver."""
    job, kind = Job(), m.classes[0]
    if m.threads > 1:
        small = [cpu for _, cores in m.class_cpus(cpus) for cpu in cores[1::2]]
        job.step("siblings", "put 0 " + " ".join(f"$CPU/cpu{cpu}/online" for cpu in small))
    job.step("ratios", f"dump {_RATIOS}")
    for khz in MOVING_KHZ:
        job.step(f"clock-{khz}", f"put userspace {_FREQ}/scaling_governor; "
                 f"put {khz} {_FREQ}/scaling_setspeed; {SETTLE}" if khz else
                 f"put performance {_FREQ}/scaling_governor; {SETTLE}")
        job.step(f"ratios-{khz}", f"dump {_RATIOS}")
        job.step(f"moving-{khz}", _moving(*on))
    job.step("governed-0", _governed(on[0], m.max_ratio * m.bus_khz, 1000))
    job.step("governed-1", _governed(on[1], kind.max_ratio * m.bus_khz, kind.work_permille))
    job.step("domains", "put Y /sys/kernel/debug/sched/verbose; "
             "cat /proc/sys/kernel/sched_itmt_enabled; "
             "dump /sys/kernel/debug/sched/domains/cpu[0-9]*/domain*/flags")
    if boost:
        job.step("policy", "put midpoint $CPU/freq_invariance/policy")
        job.step("drivers", amd_drivers())
    job.step("dmesg", "dmesg")
    return job.archive()


#: Modes of a cpufreq driver, one after the other.
AMD_MODES = ("active", "guided", "passive")
INTEL_MODES = ("passive", "active", "passive")


def amd_drivers() -> str:
    """Each of amd-pstate's modes, and boost in it; the next mode comes while boost is off."""
    return _looks(_RATIOS) + "".join(
        f"put {mode} $CPU/amd_pstate/status; look {mode} new; for on in 1 0 1 0; do "
        f"put $on $CPU/cpufreq/boost; look {mode} $on; done; " for mode in AMD_MODES)


#: Bit 38 of 0x1A0 as firmware leaves it, until so many s after the start.
FIRMWARE_S = 3
NO_TURBO_BY_FIRMWARE = f"* msr msr=0x1a0 value=0x4000850089 for={FIRMWARE_S}s\n"


def intel_drivers(m: Machine, cpus: int) -> bytes:
    """Turbo off in firmware, then on; intel_pstate's modes with no_turbo off and on."""
    job, no_turbo = Job(), "$CPU/intel_pstate/no_turbo"
    job.step("firmware", _looks(_RATIOS) + f"look off; put 0 {no_turbo}; look refused; "
             f"until [ $(cut -d. -f1 /proc/uptime) -gt {FIRMWARE_S} ]; do sleep 0.1; done; "
             f"put 0 {no_turbo}; look on")
    job.step("later", _looks(_RATIOS) + "".join(
        "".join(f"vs-msr {cpu} 0x1a0={value} >/dev/null; " for cpu in range(cpus))
        + f"put 0 {no_turbo}; look {word}; "
        for word, value in (("off", "0x4000850089"), ("on", "0x850089"))))
    job.step("modes", _looks(_RATIOS) + "".join(
        f"put {mode} $CPU/intel_pstate/status; look {mode} new; for off in 0 1 0 1; do "
        f"put $off {no_turbo}; look {mode} $off; done; " for mode in INTEL_MODES))
    job.step("dmesg", "dmesg")
    return job.archive()


#: What each tunable of schedutil refuses.
SCHEDUTIL_REFUSED = {"rate_limit_us": "-1 x 4294967296", "saturation_us": "-1 x 100001"}


def schedutil(m: Machine, cpus: int) -> bytes:
    """The governor's tunables and units, and a task that becomes CPU-bound."""
    job = Job()
    files = "$CPU/cpufreq/schedutil"
    job.step("defaults", f"dump {files}/*")
    for name, values in SCHEDUTIL_REFUSED.items():
        job.step(f"refused-{name}", f"before=$(cat {files}/{name}); for v in {values}; do "
                 f"echo $v 2>/dev/null >{files}/{name} && echo took $v; done; "
                 f'[ "$(cat {files}/{name})" = "$before" ] || echo changed')
    # 5 % of 10 ms, then busy
    job.step("steps", "vs-rise -c 1 -m step -r 38 -n 5 -k 12 -w 59000")
    job.step("kselftest", "/selftests/schedutil/tunables.sh")
    job.step("chains", "/selftests/sched_chains/chains.sh")
    job.step("dmesg", "dmesg")
    return job.archive()


#: Cycles of 1000 instructions in the kernel and in user space.
RATES = ((1000, 8000), (2000, 8000), (1000, 4000), (2000, 4000))
CALLS_MARK, CALLS_TIMES = 70, 5


def rates(m: Machine, cpus: int) -> bytes:
    """System calls on one CPU, several times, then work in user space."""
    job = Job()
    job.step("settle", "sleep 2")
    for mark in range(CALLS_MARK, CALLS_MARK + 2 * CALLS_TIMES, 2):
        job.step(f"calls-{mark}", f"vs-msr 1 {MARK}={mark}; "
                 "taskset 2 dd if=/dev/zero of=/dev/null bs=1 count=20000; "
                 f"vs-msr 1 {MARK}={mark + 1}")
    job.step("user", "vs-load -c 1 -t 0.2")
    return job.archive()


#: Who wakes whom.
PAIRS = ((0, 1), (1, 0), (0, 3), (3, 0), (2, 1), (1, 2))


def wakes(m: Machine, cpus: int) -> bytes:
    job = Job()
    job.step("settle", "sleep 1")
    for caller, callee in PAIRS:
        job.step(f"wake-{caller}-{callee}",
                 f"vs-wake -m signal -k {caller} -c {callee} -n 300")
    return job.archive()


#: Writes 0x199 on CPUs 1 and 2 in turn, each after a mark of its own, so many times.
SWITCHES = 40
SWITCH_MARK = 1000


def switches(m: Machine, cpus: int) -> bytes:
    """Two clocks by turns on two CPUs that execute all the while; then turbo limits."""
    job = Job()
    low, high = m.min_ratio + 2, m.base_ratio - 1
    job.step("switches", "vs-load -c 1-2 -t 2 & sleep 0.3; "
             f"i=0; while [ $i -lt {2 * SWITCHES} ]; do "
             f"r=$((i / 2 % 2 ? {low} : {high})); "
             f"vs-msr $((1 + i % 2)) {MARK}=$(({SWITCH_MARK} + i)) 0x199=$((r << 8)); "
             "usleep $((i * 173 % 1000 + 2500)); i=$((i + 1)); done; "
             f"vs-msr 0 {MARK}={SWITCH_MARK - 1}; wait")
    job.step("turbo", "for c in 0 1 2 3; do "
             f"vs-msr $c 0x199=$(({m.max_ratio} << 8)); done; "
             "for c in 3 2-3 1-3 all; do vs-load -c $c -t 0.02; done")
    return job.archive()


def returns(m: Machine, cpus: int) -> bytes:
    """Back at once to the clock that was before, and after a while."""
    job = Job()
    job.step("userspace", f"put userspace {_FREQ}/scaling_governor")
    for name, wait in (("soon", "-w 0 -x 5"), ("late", "-w 200 -x 3000")):
        for way, ends in (("up", "-f 2000000 -t 2250000"), ("down", "-f 2250000 -t 2000000")):
            job.step(f"{way}-{name}", f"vs-switch -c 1 -n 40 {wait} {ends}")
    return job.archive()


#: Windows of power limit 1 that register 0x610 can show, in s, by their marks.
WINDOWS_S = {0.0625: 50, 0.25: 52}
LOW_W, WINDOW_W = 97, 112


def limit_value(watts: float, window_s: float, clamp: bool, watts_2: float = 0) -> int:
    """0x610 with limit 1, and limit 2 if it is given."""
    one = (intel.rapl_power(watts) | 1 << 15 | clamp << 16
           | intel.rapl_time_window(window_s) << 17)
    two = (intel.rapl_power(watts_2) | 1 << 15 | 1 << 16
           | intel.rapl_time_window(0.0078125) << 17) if watts_2 else 0
    return one | two << 32


def limits(m: Machine, cpus: int) -> bytes:
    """What the fields of 0x610 say: limit 2, clamping, the time window."""
    job = Job()
    job.step("hwp", "vs-msr 1 0x772 0x773; true")
    job.step("register", "vs-msr 0 0x610")
    free = f"0x610={limit_value(350, 0.25, True):#x}"

    def loaded(name: str, value: int, mark: int) -> None:
        job.step(name, f"vs-msr 0 0x610={value:#x}; vs-load -c all -t 0.15; "
                 f"vs-load -c all -t 0.1 -m {mark}; vs-msr 0 {free}; sleep 0.1")

    job.step("free", f"vs-msr 0 {free}; sleep 0.2; vs-load -c none -t 0.2 -m 40; "
             "vs-load -c all -t 0.1; vs-load -c all -t 0.1 -m 42; sleep 0.5")
    loaded("second", limit_value(350, 0.0625, True, WINDOW_W), 44)
    loaded("not-clamped", limit_value(LOW_W, 0.0078125, False), 46)
    loaded("clamped", limit_value(LOW_W, 0.0078125, True), 48)
    for window_s, mark in WINDOWS_S.items():
        job.step(f"window-{mark}", f"vs-msr 0 0x610={limit_value(WINDOW_W, window_s, True):#x}"
                 f"; sleep 2; vs-load -c all -t 0.8 -m {mark}; vs-msr 0 {free}; sleep 0.5")
    return job.archive()


def utilisation_fixed(m: Machine, cpus: int) -> bytes:
    """Periodic work at each P-state, and at the lowest without and with turbo."""
    job = Job()
    utilisation.take_over(job)
    utilisation.fixed_step(job, "clocks", 1, utilisation.clocks(m))
    for name, mark, off in (("no-turbo", 2, 1), ("turbo", 3, 0)):
        job.step(f"{name}-switch", f"put {off} $CPU/intel_pstate/no_turbo")
        utilisation.fixed_step(job, name, mark, utilisation.clocks(m)[:1])
    job.step("dmesg", "dmesg")
    return job.archive()


def utilisation_bytes(m: Machine, cpus: int) -> bytes:
    job = Job()
    utilisation.take_over(job)
    utilisation.fixed_step(job, "clocks", 1, [2_200_000, 2_900_000])
    job.step("dmesg", "dmesg")
    return job.archive()


def utilisation_changing(m: Machine, cpus: int) -> bytes:
    job = Job()
    utilisation.take_over(job)
    utilisation.changing_steps(job, m, utilisation.changing_cells())
    return job.archive()


#: Of the AMD part with fast and dense cores: one clock for both, and the lists of marks.
KINDS_KHZ = 2_000_000
KINDS_MARKS = {("boost", 0): 1, ("boost", 3): 2, ("no-boost", 0): 3, ("no-boost", 3): 4}


def utilisation_kinds(m: Machine, cpus: int) -> bytes:
    """The same work on a fast core and on a dense one, with boost and without."""
    job = Job()
    utilisation.take_over(job)
    for (boost, cpu), mark in KINDS_MARKS.items():
        job.step(f"{boost}-{cpu}-switch", f"put {int(boost == 'boost')} $CPU/cpufreq/boost; "
                 f"put userspace {_FREQ}/scaling_governor")
        utilisation.fixed_step(job, f"{boost}-{cpu}", mark, [KINDS_KHZ], cpu)
    job.step("dmesg", "dmesg")
    return job.archive()


#: A CPU asks for its highest clock and gets 1.2 GHz.
LIMITED_RATIO = 12


def utilisation_off(m: Machine, cpus: int) -> bytes:
    """Without invariance: what the frequency of a busy CPU is said to be."""
    job = Job()
    frequency = f"cat $CPU/cpu{utilisation.CPU}/cpufreq/scaling_cur_freq"
    job.step("load", f"vs-load -c {utilisation.CPU} -t 1.5 & "
             f"for i in $(seq 10); do sleep 0.1; {frequency}; done; wait")
    job.step("dmesg", "dmesg")
    return job.archive()


def utilisation_faults(m: Machine, cpus: int) -> bytes:
    job = Job()
    utilisation.take_over(job)
    utilisation.faults_step(job)
    return job.archive()


WITNESS_MACHINES = {"sapphire-rapids": 4, "e5-2698-v4": 4, "e5-2670-v3": 4,
                    "e3-1240-v5": 4}

#: One part for each way that a turbo table is laid out or read.
FAMILY_MACHINES = ("platinum-8180", "platinum-8380", "pentium-n4200", "celeron-j1900",
                   "xeon-phi-7250", "atom-p5962b")

#: A few of those made from dumps; "witness --parts" asks them all.
PART_MACHINES = ("platinum-8592", "xeon-6980p", "xeon-6746e", "core-i7-1260p",
                 "ultra-9-285h", "epyc-9555")

#: Of a part with a measured distribution: interrupts of a device and of the timer, and
#: a switch from base to the lowest clock.
MIRRORS = (reproduce.wake("device", "C6", 2_700_000, 200),
           reproduce.wake("timer", "C6", 2_700_000, 200),
           reproduce.switch(2_700_000, 1_200_000, samples=60))


def mirrored(m: Machine, cpus: int) -> bytes:
    return validate.job(MIRRORS).archive()


SCENARIOS: dict[str, Scenario] = {
    "repeat-1": Scenario("sapphire-rapids", "base", "deterministic", 4, repeat, PASSIVE),
    "repeat-2": Scenario("sapphire-rapids", "base", "deterministic", 4, repeat, PASSIVE),
    "speed": Scenario("sapphire-rapids", "base", "deterministic", 2, speed, PASSIVE),
    "memory": Scenario(str(Path(__file__).with_name("memory-bound.toml")), "base",
                       "deterministic", 2, speed, PASSIVE),
    "turbo-bytes": Scenario("e5-2698-v4", "base", "deterministic", 8, turbo, PASSIVE),
    "turbo-groups": Scenario("sapphire-rapids", "base", "deterministic", 6, turbo, PASSIVE),
    "two-packages": Scenario("e5-2670-v3", "base", "deterministic", 16, topology, PASSIVE),
    "waitpkg": Scenario("sapphire-rapids", "base", "deterministic", 2, waitpkg),
    "no-waitpkg": Scenario("e5-2698-v4", "base", "deterministic", 2, waitpkg),
    "faults": Scenario("sapphire-rapids", "base", "deterministic", 4, faulty, PASSIVE,
                       RUNTIME_FAULTS),
    "lost-turbo": Scenario("sapphire-rapids", "base", "deterministic", 2, look, PASSIVE,
                           LOST_TURBO),
    "zero-counters": Scenario("sapphire-rapids", "base", "deterministic", 2, look,
                              PASSIVE, ZERO_COUNTERS),
    "knobs": Scenario(str(Path(__file__).with_name("knobs.toml")), "base",
                      "deterministic", 2, knobs, "intel_pstate=disable"),
    "hwp-active": Scenario("sapphire-rapids-hwp", "base", "deterministic", 2, hwp_active,
                           "intel_pstate=active"),
    "hwp-passive": Scenario("sapphire-rapids-hwp", "base", "deterministic", 4,
                            hwp_passive, PASSIVE),
    "amd": Scenario("epyc-7742", "base", "deterministic", 2, amd),
    "amd-pstate": Scenario("epyc-7763", "base", "deterministic", 2, amd_pstate,
                           "amd_pstate=passive"),
    "amd-pstate-active": Scenario("epyc-7763", "base", "deterministic", 2, amd_pstate,
                                  "amd_pstate=active"),
    "two-kinds-amd": Scenario("ryzen-5-7545u", "base", "deterministic", 4, kinds,
                              "amd_pstate=passive"),
    "two-kinds-intel": Scenario("core-i9-12900k", "base", "deterministic", 4, kinds,
                                PASSIVE),
    "hour": Scenario("sapphire-rapids", "base", "deterministic", 1, hour, PASSIVE),
    "smt": Scenario("sapphire-rapids-smt", "base", "deterministic", 6, smt, PASSIVE),
    "invariance-control": Scenario("e5-2698-v4", "patched", "deterministic", 8,
                                   invariance_control, PASSIVE + " freq_invariance=nonsense"),
    "invariance-faults": Scenario("sapphire-rapids", "patched", "deterministic", 4,
                                  invariance_faults, PASSIVE, COUNTER_FAULTS),
    "invariance-faults-base": Scenario("sapphire-rapids", "base", "deterministic", 4,
                                       invariance_faults, PASSIVE, COUNTER_FAULTS),
    "invariance-acpi": Scenario("epyc-7742", "patched", "deterministic", 2, invariance_boost),
    "invariance-amd-pstate": Scenario("epyc-7763", "patched", "deterministic", 2,
                                      invariance_boost,
                                      "amd_pstate=passive freq_invariance=boost"),
    "invariance-two-kinds": Scenario("ryzen-5-7545u", "patched", "deterministic", 4,
                                     messages, "amd_pstate=passive"),
    "amd-patched": Scenario("epyc-7742", "patched", "deterministic", 2, messages),
    "utilisation": Scenario("sapphire-rapids", "patched", "deterministic", 2,
                            utilisation_fixed, PASSIVE),
    "utilisation-bytes": Scenario("e5-2698-v4", "patched", "deterministic", 2,
                                  utilisation_bytes, PASSIVE),
    "utilisation-changing": Scenario("sapphire-rapids", "patched", "deterministic", 2,
                                     utilisation_changing, PASSIVE),
    "utilisation-faults": Scenario("sapphire-rapids", "patched", "deterministic", 2,
                                   utilisation_faults, PASSIVE, utilisation.FAULT_LINES),
    "utilisation-kinds": Scenario("ryzen-5-7545u", "patched", "deterministic", 4,
                                  utilisation_kinds, "amd_pstate=passive"),
    "utilisation-off": Scenario("sapphire-rapids", "patched", "deterministic", 2,
                                utilisation_off, PASSIVE + " freq_invariance=off",
                                f"{utilisation.CPU} limit ratio={LIMITED_RATIO} at=0s\n"),
    # Virtual time stands still while the machine sleeps, where it follows instructions
    "suspend": Scenario("sapphire-rapids", "patched", "free", 2, suspend, PASSIVE),
    "invariance-hybrid": Scenario("core-i9-12900k", "patched", "deterministic", 4,
                                  partial(mixed, on=MIXED["invariance-hybrid"]), PASSIVE),
    "invariance-hybrid-smt": Scenario(str(Path(__file__).with_name("hybrid-smt.toml")),
                                      "patched", "deterministic", 8,
                                      partial(mixed, on=MIXED["invariance-hybrid-smt"]),
                                      PASSIVE),
    "invariance-mixed-amd": Scenario("ryzen-5-7545u", "patched", "deterministic", 6,
                                     partial(mixed, on=MIXED["invariance-mixed-amd"],
                                             boost=True),
                                     "amd_pstate=passive "
                                     "cpufreq.default_governor=performance"),
    "invariance-intel-drivers": Scenario("sapphire-rapids-hwp", "patched", "deterministic",
                                         2, intel_drivers, "intel_pstate=active",
                                         NO_TURBO_BY_FIRMWARE),
    "free": Scenario("sapphire-rapids", "base", "free", 2, witness, PASSIVE),
}
for _kernel, _user in RATES:
    SCENARIOS[f"rates-{_kernel}-{_user}"] = Scenario(
        "sapphire-rapids", "base", "deterministic", 2, rates, PASSIVE,
        time={"kernel_cycles_per_1000_insns": _kernel, "user_cycles_per_1000_insns": _user})
for _quantum in (1_000, 10_000):
    SCENARIOS[f"wakes-{_quantum}"] = Scenario(
        "sapphire-rapids", "base", "deterministic", 4, wakes,
        PASSIVE + " intel_idle.max_cstate=1", time={"quantum_ns": _quantum})
for _name in ("platinum-8180", "sapphire-rapids"):
    SCENARIOS[f"switches-{_name}"] = Scenario(
        _name, "base", "deterministic", 4, switches, "intel_pstate=disable cpufreq.off=1")
SCENARIOS["mirrored"] = Scenario("e5-2697-v2", "patched", "deterministic", 2, mirrored,
                                 "intel_pstate=passive")
SCENARIOS["returns"] = Scenario("epyc-7742", "base", "deterministic", 2, returns)
SCENARIOS["limits"] = Scenario("sapphire-rapids-hwp", "base", "deterministic", 4, limits,
                               PASSIVE)
SCENARIOS["teo"] = Scenario("platinum-8180", "patched", "deterministic", 2, idle_governor,
                            f"{PASSIVE} kunit.enable=1 kunit.filter_glob=cpuidle*")
SCENARIOS["schedutil"] = Scenario("sapphire-rapids", "patched", "deterministic", 4,
                                  schedutil, "intel_pstate=passive kunit.enable=1 "
                                  "kunit.filter_glob=schedutil*")
SCENARIOS["c02"] = Scenario("sapphire-rapids", "patched", "deterministic", 2, c02, PASSIVE)
SCENARIOS["signs"] = Scenario("sapphire-rapids", "patched", "deterministic", 2, signs, PASSIVE)
SCENARIOS["poll-state"] = Scenario("sapphire-rapids", "patched", "deterministic", 2, idle_poll)
SCENARIOS["poll-loop"] = Scenario("sapphire-rapids", "patched", "deterministic", 2, idle_poll,
                                  "idle=poll umwait.idle_poll=c02")
SCENARIOS["hostile"] = Scenario("sapphire-rapids", "patched", "deterministic", 4, hostile,
                                "intel_pstate=passive")
SCENARIOS["parameters"] = Scenario(
    "sapphire-rapids", "patched", "deterministic", 1, parameters,
    " ".join(name if value is None else f'{name}="{value}"'
             for name, values in HOSTILE_PARAMETERS.items() for value in values))
for _index, _word in enumerate(HOSTILE_POLICIES):
    SCENARIOS[f"policy-{_index}"] = Scenario(
        "sapphire-rapids", "patched", "deterministic", 1, parameters,
        f'freq_invariance="{_word}"')
for _msr in GP_AT_BOOT:
    SCENARIOS[f"gp-{_msr:#x}"] = Scenario(
        "sapphire-rapids", "patched", "deterministic", 1, invariance_at_boot,
        "intel_pstate=disable", f"* gp msr={_msr:#x}\n")
for _name, (_machine, _append, _) in IDLE_STATES.items():
    SCENARIOS[f"idle-{_name}"] = Scenario(_machine, "patched", "deterministic", 1,
                                          idle_states, _append)
for _name, _cpus in WITNESS_MACHINES.items():
    SCENARIOS[f"witness-{_name}"] = Scenario(_name, "base", "deterministic", _cpus,
                                             witness, PASSIVE)
    SCENARIOS[f"acpi-{_name}"] = Scenario(_name, "base", "deterministic", 2, acpi,
                                          "intel_pstate=disable")
    SCENARIOS[f"patched-{_name}"] = Scenario(_name, "patched", "deterministic", 2,
                                             messages, "intel_pstate=passive")
for _name in FAMILY_MACHINES:
    SCENARIOS[f"family-{_name}"] = Scenario(_name, "base", "deterministic", 2, family,
                                            PASSIVE)
    SCENARIOS[f"patched-{_name}"] = Scenario(_name, "patched", "deterministic", 2,
                                             messages, "intel_pstate=passive")
for _name in PART_MACHINES:
    SCENARIOS[f"part-{_name}"] = Scenario(_name, "base", "deterministic", 2, part,
                                          parts.APPEND)
