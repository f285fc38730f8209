# SPDX-License-Identifier: GPL-2.0
"""What is booted for the tests, and what each guest is made to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from parts import PARTS
from virtual_silicon.guest.job import Job
from virtual_silicon.machine import intel
from virtual_silicon.machine.machine import Machine
from virtual_silicon.studies.invariance import utilisation
from virtual_silicon.studies.validation import reproduce, validate

#: Name and shell text of each thing that a guest does, one after the other.
Steps = Iterator[tuple[str, str]]
PASSIVE = "intel_pstate=passive cpufreq.default_governor=performance"
#: freq_max is turbo with four cores, 3.8 GHz here, instead of 3.0 with all: few clocks are
#: above it, where utilisation is cut off.
FOUR = PASSIVE + " aperfmperf.freq_max=4c"


@dataclass(frozen=True)
class Scenario:
    """What is done by a guest of a machine with a kernel, "base" or "patched"."""

    steps: Callable[[Machine, int], Steps]
    machine: str = "sapphire-rapids"
    kernel: str = "base"
    cpus: int = 2
    append: str = PASSIVE
    faults: str = ""		# lines of a fault file
    mode: str = "deterministic"
    rtc: str = "vm"
    time: dict[str, int] = field(default_factory=dict)	# in place of the machine's

    def job(self, m: Machine) -> bytes:
        """Last comes what the kernel said."""
        steps = dict(self.steps(m, self.cpus)) | {"dmesg": "dmesg"}
        return Job(list(steps.items())).archive()


_patched = partial(Scenario, kernel="patched")


def _own(name: str) -> str:
    """A machine of the tests."""
    return str(Path(__file__).with_name(name))


#: The register whose writes are marks in the trace.
MARK = "0x400000f0"

#: Marks: each load has a number, and makes this mark and the next.
MARKS = {"idle": 10, "one": 12, "all": 14, "light": 16, "no_turbo": 18}
RESIDENCY_MARK = 20

_FREQ = "$CPU/cpu[0-9]*/cpufreq"
SETTLE = "sleep 0.01"		# until a request has had its slot
HEADER = ("header", "turbostat --hide IPC -o /run/h true; cat /run/h")


def _governor(name: str, then: str) -> str:
    return f"put {name} {_FREQ}/scaling_governor; {SETTLE}; {then}"


def _clock(khz: int, then: str) -> str:
    return (f"put userspace {_FREQ}/scaling_governor; put {khz} {_FREQ}/scaling_setspeed; "
            + then)


def _load(options: str, mark: int) -> str:
    return (f"turbostat -q -J --hide IPC -o /run/t vs-load {options} -m {mark} "
            "|| return 1; echo --turbostat--; cat /run/t")


def stock_tools(m: Machine, cpus: int) -> Steps:
    """Stock tools look at the machine, at rest and under load.

    CPUs other than 0 are used, which has the housekeeping.
    """
    yield HEADER
    yield "frequency-info", "cpupower frequency-info"
    yield "idle-info", "cpupower idle-info"
    yield ("registers", "vs-msr 1 0xce 0x198 0x199 0x1ad 0x1ae 0x606 0x614 0x66a "
           "0x4e; vs-msr 1 0xce=0; true")
    yield "zones", "dump_zones"
    yield "cpuidle", "dump_cpuidle"
    yield "cpufreq", "dump_cpufreq"
    yield "idle", _load("-c none -t 1.5", MARKS["idle"])
    yield "one", _load(f"-c {cpus - 1} -t 0.4", MARKS["one"])
    yield "all", _load("-c all -t 0.25", MARKS["all"])
    yield "light", _load("-c all -t 0.4 -d 20 -p 20000", MARKS["light"])
    # The CPU rests between one read and the next: the TSC's come first and last.
    counters = " ".join(hex(s.residency_msr) for s in m.idle if s.residency_msr)
    yield ("residency", f"vs-msr 1 0x10 {counters}; echo --; vs-load -c 1 -t 0.5 -d 40 "
           f"-p 1500 -m {RESIDENCY_MARK}; vs-msr 1 {counters} 0x10")
    yield ("no_turbo", "put 1 $CPU/intel_pstate/no_turbo; "
           + _load(f"-c {cpus - 1} -t 0.3", MARKS["no_turbo"]))


#: Requests for the proportionality test, by CPU frequency in kHz.
SPEEDS_KHZ = (800_000, 1_100_000, 1_500_000, 2_000_000, 2_900_000, 3_800_000)


def speed(m: Machine, cpus: int) -> Steps:
    """The same work on one CPU at several requested frequencies."""
    yield "settle", "sleep 2"	# what is left of booting takes time of the first
    for khz in SPEEDS_KHZ:
        yield f"speed-{khz}", _clock(khz, f"{SETTLE}; vs-load -c 1 -t 0.2")


def turbo(m: Machine, cpus: int) -> Steps:
    """One CPU more busy each time."""
    for busy in range(1, cpus + 1):
        yield (f"turbo-{busy}", f"vs-load -c {cpus - busy}-{cpus - 1} -t 0.15 "
               f"-m {100 + 2 * busy}")


def acpi(m: Machine, cpus: int) -> Steps:
    """acpi-cpufreq instead of intel_pstate: our ACPI table is all it has."""
    yield "cpufreq", "dump_cpufreq"
    yield "slow", _governor("powersave", "vs-load -c 1 -t 0.1 -m 30")
    yield "fast", _governor("performance", "vs-load -c 1 -t 0.1 -m 32")
    yield "no-boost", f"put 0 $CPU/cpufreq/boost; {SETTLE}; vs-load -c 1 -t 0.1 -m 34"


AMD_REGISTERS = ("0xc0010015 0xc0010061 0xc0010062 0xc0010063 0xc0010064 0xc0010065 "
                 "0xc0010066 0xc0010067 0xc0010299 0xc00000e7 0x1ad 0xce")


def amd(m: Machine, cpus: int) -> Steps:
    """acpi-cpufreq on P-states by number; energy by turbostat."""
    yield "registers", f"vs-msr 1 {AMD_REGISTERS}; true"
    yield "constant", "vs-msr 1 0xc0010064=0; true"
    yield "cpuinfo", "grep -m1 ^flags /proc/cpuinfo"
    yield "cpufreq", "dump_cpufreq"
    yield "slow", _governor("powersave", "vs-load -c 1 -t 0.1 -m 30")
    yield "fast", _governor("performance", _load("-c 1 -t 0.2", 32))
    yield ("no-boost", "put 0 $CPU/cpufreq/boost; vs-msr 1 0xc0010015; "
           f"{SETTLE}; vs-load -c 1 -t 0.1 -m 34")
    yield "boost", f"put 1 $CPU/cpufreq/boost; {SETTLE}; vs-load -c 1 -t 0.1 -m 36"


CPPC_REGISTERS = "0xc00102b0 0xc00102b1 0xc00102b3"


def amd_pstate(m: Machine, cpus: int) -> Steps:
    """amd-pstate by the CPPC registers; the governor decides."""
    yield "cpufreq", "dump_cpufreq"
    for name, governor, mark in (("slow", "powersave", 30), ("fast", "performance", 32)):
        yield (name, f"put {governor} {_FREQ}/scaling_governor; vs-load -c 1 -t 0.05; "
               f"vs-msr 1 {CPPC_REGISTERS}; vs-load -c 1 -t 0.1 -m {mark}")


def repeat(m: Machine, cpus: int) -> Steps:
    """Some of everything, to be the same twice."""
    yield ("work", "vs-load -c all -t 0.1 -d 50 -m 50; hackbench -g 1 -l 20; "
           "cyclictest -q -t 2 -a -i 2000 -l 20")


def topology(m: Machine, cpus: int) -> Steps:
    yield "packages", "dump $CPU/cpu[0-9]*/topology/physical_package_id"
    yield "zones", "dump_zones"
    yield "load", f"vs-load -c 0-{cpus // 2 - 1} -t 0.1 -m 60"


#: Seconds of virtual time for counters that must not drift.
HOUR_S = 3600
HOUR_MARK = 80


def hour(m: Machine, cpus: int) -> Steps:
    """An hour, nearly idle, at the base clock."""
    yield "clock", _clock(m.base_ratio * m.bus_khz, "sleep 0.1; dump_zones")
    yield ("hour", f"cut -d' ' -f1 /proc/uptime; vs-load -c none -t {HOUR_S} "
           f"-m {HOUR_MARK}; cut -d' ' -f1 /proc/uptime")


#: Marks of loads on chosen CPUs.
KIND_MARKS = {"first": 30, "last": 32, "all": 34}


def kinds(m: Machine, cpus: int) -> Steps:
    """Cores of two kinds: each alone, then all together."""
    yield "cpufreq", "dump_cpufreq"
    yield "cpuidle", "dump_cpuidle"
    yield ("registers", "".join(f"echo cpu {cpu}; vs-msr {cpu} 0xce 0x771 0xc00102b0; "
                                for cpu in (0, cpus - 1)) + "true")
    yield "cpuinfo", "grep -m1 ^flags /proc/cpuinfo"
    yield HEADER
    yield "fast", f"put performance {_FREQ}/scaling_governor"
    yield "rest", _load("-c none -t 0.3", 36)
    yield "idle", "dump_cpuidle"
    for name, which in (("first", "0"), ("last", str(cpus - 1)), ("all", "all")):
        yield f"load-{name}", f"vs-load -c {which} -t 0.1 -m {KIND_MARKS[name]}"


#: Marks: the first of two threads of a core, both, one of each of two cores.
SMT_MARKS = {"one": 40, "siblings": 42, "cores": 44}


def smt(m: Machine, cpus: int) -> Steps:
    """Two threads per core: CPUs 2 and 3 are siblings, 4 is on another core."""
    yield "topology", "dump $CPU/cpu[0-9]*/topology/thread_siblings_list"
    for name, which in (("one", "2"), ("siblings", "2-3"), ("cores", "2,4")):
        yield name, _load(f"-c {which} -t 0.2", SMT_MARKS[name])
    # In a shallow state the sibling's request counts as well: C6 alone, until it runs.
    yield ("requests", _clock(800_000, "put 2000000 $CPU/cpu3/cpufreq/scaling_setspeed; ")
           + "put 1 $CPU/cpu3/cpuidle/state[012]/disable; vs-load -c 2 -t 0.1 -m 46; "
           + "put 0 $CPU/cpu3/cpuidle/state[012]/disable; vs-load -c 2-3 -t 0.1 -m 48")


def messages(m: Machine, cpus: int) -> Steps:
    """Nothing but a boot and what the kernel said of it."""
    yield "registers", "vs-msr 0 0xce 0x1ad 0x1ae 0x1af; true"
    yield "cpufreq", "dump_cpufreq"
    yield from invariance_at_boot(m, cpus)
    yield HEADER


def invariance_at_boot(m: Machine, cpus: int) -> Steps:
    """What frequency invariance makes of the registers that there are."""
    yield "invariance", _SHOW


def family(m: Machine, cpus: int) -> Steps:
    """What stock tools and the kernel make of a part's registers."""
    yield HEADER
    yield "cpufreq", "dump_cpufreq"
    yield "cpuidle", "dump_cpuidle"
    yield "idle", "vs-load -c none -t 0.3"
    yield "one", _load("-c 1 -t 0.2", MARKS["one"])
    yield ("no_turbo", "put 1 $CPU/intel_pstate/no_turbo; vs-load -c 1 -t 0.1 "
           f"-m {MARKS['no_turbo']}")


def part(m: Machine, cpus: int) -> Steps:
    yield HEADER
    registers = " ".join(map(hex, PARTS[m.name].registers))
    yield "registers", f"vs-msr 0 {registers}" if registers else ":"
    yield "cpuidle", "dump_cpuidle"


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


def faulty(m: Machine, cpus: int) -> Steps:
    """Counters of the busy CPUs 1-3 around each second's faults.

    The TSC (register 0x10) is virtual time, so that samples can be told apart
    by where in a fault's window they fall.
    """
    registers = "0x10 0xe7 0xe8 0x1b0 0x19c"
    yield "before", "dmesg"
    for second in (2, 3, 4):
        begin = int(m.tsc_khz * 1000 * (second - 0.06))
        look = "; ".join(f"echo cpu {cpu}; vs-msr {cpu} {registers}" for cpu in (1, 2, 3))
        busy = "2-3" if second == 4 else "1-3"	# CPU 1 is to be woken
        yield (f"second-{second}",
               f"until [ $(($(vs-msr 0 0x10 | cut -d' ' -f2))) -gt {begin} ]; "
               f"do sleep 0.01; done; vs-load -c {busy} -t 0.3 -m {100 + 10 * second} & "
               f"for i in $(seq {FAULT_SAMPLES}); do {look}; sleep 0.01; done; wait; true")


def look(m: Machine, cpus: int) -> Steps:
    """What a broken machine looks like after boot, and that it works."""
    yield "registers", "vs-msr 1 0xe7 0xe8 0x1ad 0x1ae 0x611 0x1b0; true"
    yield "zones", "dump_zones"
    yield "cpuinfo", "grep -m1 ^flags /proc/cpuinfo"
    yield "load", "vs-load -c all -t 0.05"


#: Marks by energy preference; work per period is fixed, so that a slower clock
#: means a busier CPU.
PREFERENCE_MARKS = {0: 20, 128: 22, 255: 24}
PREFERENCE = "$CPU/cpu[0-9]*/cpufreq/energy_performance_preference"
HWP_REGISTERS = "0x770 0x771 0x774 0x777 0x198"


def hwp_active(m: Machine, cpus: int) -> Steps:
    """intel_pstate leaves the clock to the hardware."""
    yield "registers", f"vs-msr 1 {HWP_REGISTERS}"
    yield "constant", "vs-msr 1 0x771=0; true"
    yield "cpuinfo", "grep -m1 ^flags /proc/cpuinfo"
    yield "cpufreq", "dump_cpufreq"
    yield "governor", f"put powersave {_FREQ}/scaling_governor"
    for preference, mark in PREFERENCE_MARKS.items():
        yield (f"preference-{preference}",
               f"put {preference} {PREFERENCE}; vs-msr 1 0x774; "
               f"vs-load -c 1 -t 0.1 -w 2 -p 5000; "
               f"vs-load -c 1 -t 0.25 -w 2 -p 5000 -m {mark}")
    yield "full", "vs-load -c 1 -t 0.05; vs-load -c 1 -t 0.1 -m 30"
    yield "no_turbo", "put 1 $CPU/intel_pstate/no_turbo; vs-load -c 1 -t 0.1 -m 32"


#: Marks by energy-performance bias.
BIAS_MARKS = {0: 20, 8: 22, 15: 24}
#: A byte goes from CPU to CPU and back so many times.
ROUND_TRIPS = 200
_BIAS = "$CPU/cpu[0-9]*/power/energy_perf_bias"
_SHALLOW = "$CPU/cpu[0-9]*/cpuidle/state[23]/disable"


def knobs(m: Machine, cpus: int) -> Steps:
    """Bias, PAUSE, the way from CPU to CPU, and bits that are not to be written."""
    # the stock driver leaves HWP alone that has no preference field
    yield "enable", "vs-msr 0 0x770=1; vs-msr 1 0x770 0x774"
    for bias, mark in BIAS_MARKS.items():
        yield (f"bias-{bias}", f"put {bias} {_BIAS}; vs-msr 1 0x1b0; "
               "vs-load -c 1 -t 0.1 -w 2 -p 5000; "
               f"vs-load -c 1 -t 0.2 -w 2 -p 5000 -m {mark}")
    yield "pause", f"put 0 {_BIAS}; vs-load -c 1 -t 0.05; vs-load -c 1 -t 0.1 -P -m 30"
    yield ("reserved", "vs-msr 1 0x1a0=0x40050009; vs-msr 1 0x199=0x200001400; "
           "vs-msr 1 0x1a0=0x850089; vs-msr 1 0x1a0; true")
    yield "turbo-on", "turbostat true 2>&1 | grep CPUID.6"
    yield ("turbo-off", "for cpu in 0 1; do vs-msr $cpu 0x1a0=0x4000850089; done; "
           "turbostat true 2>&1 | grep CPUID.6; vs-load -c 1 -t 0.05; "
           "vs-load -c 1 -t 0.1 -m 32")
    yield ("ping", f"put 1 {_SHALLOW}; mkfifo /tmp/a /tmp/b; exec 5<>/tmp/a 6<>/tmp/b; "
           f"turbostat -q --show CPU sh -c '"
           f"taskset 1 dd bs=1 count={ROUND_TRIPS} <&5 >&6 & printf x >&5; "
           f"taskset 2 dd bs=1 count={ROUND_TRIPS} <&6 >&5; wait' 2>&1")


#: intel_idle's states by machine and options: name, and whether it is off at boot.
IDLE_STATES: dict[str, tuple[str, str, str]] = {
    "default": ("sapphire-rapids", "", "POLL C0.2 C1 C1E C6"),
    "states-off": ("sapphire-rapids", "intel_idle.states_off=2", "POLL -C0.2 C1 C1E C6"),
    "states-off-c6": ("sapphire-rapids", "intel_idle.states_off=8", "POLL C1 C1E -C6"),
    "states-off-c1-c1e": ("sapphire-rapids", "intel_idle.states_off=6", "POLL -C1 -C1E C6"),
    "c02-on-states-off": ("sapphire-rapids", "intel_idle.c02=on intel_idle.states_off=8",
                          "POLL C0.2 C1 -C1E C6"),
    "c02-off": ("sapphire-rapids", "intel_idle.c02=off", "POLL C1 C1E C6"),
    "c02-off-states-off": ("sapphire-rapids", "intel_idle.c02=off intel_idle.states_off=8",
                           "POLL C1 C1E -C6"),
    "nonsense": ("sapphire-rapids", "intel_idle.c02=maybe intel_idle.ibrs_off=1",
                 "POLL C0.2 C1 C1E C6"),
    "max-cstate-0": ("sapphire-rapids", "intel_idle.max_cstate=0", ""),
    "max-cstate-1": ("sapphire-rapids", "intel_idle.max_cstate=1", "POLL C0.2 C1"),
    "max-cstate-2": ("sapphire-rapids", "intel_idle.max_cstate=2", "POLL C0.2 C1 C1E"),
    "no-waitpkg": ("sapphire-rapids", "clearcpuid=waitpkg", "POLL C1 C1E C6"),
    # Of what _CST does not list, C1E is always on, and C0.2 is none of its business.
    "short-cst": (_own("short-cst.toml"), "",
                  "POLL C0.2 C1 C1E -C6"),
    "use-acpi": (_own("short-cst.toml"), "intel_idle.use_acpi=1",
                 "POLL C0.2 C1 C1E -C6"),
    "no-acpi": (_own("short-cst.toml"), "intel_idle.no_acpi=1",
                "POLL C0.2 C1 C1E C6"),
    "unknown": (_own("unknown-waitpkg.toml"), "umwait.idle_poll=c02",
                "POLL C1_ACPI C2_ACPI"),
    "monitor-bug": (_own("monitor-bug.toml"), "umwait.idle_poll=c02",
                    "POLL C1_ACPI C2_ACPI"),
    "amd": ("epyc-7742", "", ""),
}


def idle_states(m: Machine, cpus: int) -> Steps:
    """What there is at boot; then our kselftest."""
    yield "cpuidle", "dump_cpuidle"
    yield "idle-poll", "cat /sys/module/umwait/parameters/idle_poll"
    yield "kselftest", "/selftests/intel_idle/states.sh"


def default_idle_states(m: Machine, cpus: int) -> Steps:
    """By default the kselftest is run with all others (make test)."""
    yield "cpuidle", "dump_cpuidle"
    yield ("governors", "cd $CPU/cpuidle; cat current_governor available_governors; "
           "put menu current_governor; cat current_governor")


#: Loads for C0.2 alone, with the mark that each begins with.
C02_LOADS: dict[str, tuple[int, str]] = {
    "hackbench": (20, "for i in $(seq 30); do hackbench -g 1 -f 1 -l 1000; done"),
    "cyclictest": (22, "cyclictest -q --default-system -t 1 -a 1 -i 100 -l 3000"),
    "rest": (24, "sleep 0.4"),
    "c01": (26, "sleep 0.2"),
}
C02_KHZ = 1_500_000
C02_WAKEUPS = ("timer", "device", "signal")
C02_INTERRUPTS = (0, 1)		# the only state while their time is taken; C0.2 stays so


def c02(m: Machine, cpus: int) -> Steps:
    """C0.2 is the only idle state: counters of the kernel's beside the model's."""
    yield ("only", "put 1 $CPU/cpu*/cpuidle/state[0234]/disable; "
           "put teo $CPU/cpuidle/current_governor; sleep 0.05")
    # Nothing but the shell's own reads between the counters and the marks
    used = ("for f in $CPU/cpu*/cpuidle/state1/usage $CPU/cpu*/cpuidle/state1/time; "
            "do read n <$f; w=\"$w $n\"; done")
    for load, (mark, command) in C02_LOADS.items():
        if load == "c01":
            yield "c01-on", "put 0 $CPU/umwait_control/enable_c02"
        yield (load, f"w=; {used}; vs-msr 0 0x400000f0={mark}; {command}; "
               f"vs-msr 0 0x400000f0={mark + 1}; {used}; echo used $w")
    yield "c01-off", "put 1 $CPU/umwait_control/enable_c02"
    # POLL is state 0, C0.2 state 1
    for state in C02_INTERRUPTS:
        yield (f"interrupts-{state}", f"put 0 $CPU/cpu*/cpuidle/state{state}/disable; "
               f"put 1 $CPU/cpu*/cpuidle/state{1 - state}/disable; "
               "vs-wake -m timer -i -c 1 -n 60 -w 50 -x 300")
    # Nothing but wake-ups ends the rest early.
    yield "no-limit", "put 0 $CPU/umwait_control/max_time"
    for mode in C02_WAKEUPS:
        yield f"wake-{mode}", f"vs-wake -m {mode} -c 1 -k 0 -n 1000 -w 5 -x 150"
    yield "resting", _clock(C02_KHZ, "sleep 0.02; vs-msr 1 0xe7 0xe8; echo --; "
                            "vs-load -c 1 -t 0.2 -d 20 -p 4000 -m 30; vs-msr 1 0xe7 0xe8")


#: What polling loops are told to do, with the mark that a while of it begins with.
IDLE_POLL: dict[str, int] = {"c02": 10, "off": 14}


def idle_poll(m: Machine, cpus: int) -> Steps:
    """Polling loops: the POLL state's if cpuidle is in use, else that of idle=poll."""
    yield ("poll", "exec 4>/dev/cpu_dma_latency; printf '\\0\\0\\0\\0' >&4; sleep 0.02; "
           + "; ".join(f"put {what} /sys/module/umwait/parameters/idle_poll; "
                       f"vs-msr 0 0x400000f0={mark}; sleep 0.1; vs-msr 0 0x400000f0={mark + 1}"
                       for what, mark in IDLE_POLL.items()))


#: Clocks in kHz and idle states, shallow first, that each have a mark of their own.
SIGN_KHZ = (800_000, 2_000_000)
SIGN_STATES = ("busy", "POLL", "C0.1", "C0.2", "C1", "C1E", "C6")


def sign_mark(khz: int, state: str) -> int:
    return 100 + 2 * (SIGN_KHZ.index(khz) * len(SIGN_STATES) + SIGN_STATES.index(state))


def signs(m: Machine, cpus: int) -> Steps:
    """All CPUs busy, then in one idle state after the other, at two clocks."""
    for khz in SIGN_KHZ:
        yield f"clock-{khz}", _clock(
            khz, f"sleep 0.02; vs-load -c all -t 0.05 -m {sign_mark(khz, 'busy')}")
        for state in SIGN_STATES[1:]:
            mark, name = sign_mark(khz, state), state.replace("C0.1", "C0.2")
            yield (f"{state}-{khz}", f"put {int(state != 'C0.1')} "
                   "$CPU/umwait_control/enable_c02; for d in $CPU/cpu*/cpuidle/state*; do "
                   f'read n <$d/name; [ "$n" = {name} ]; echo $? >$d/disable; done; '
                   f"vs-load -c all -t 0.002 >/dev/null; vs-load -c none -t 0.1 -m {mark}")


#: Limit of the package's power: above the cores at rest, below all at turbo.
POWER_LIMIT_W = 122
_LIMIT_FILE = "/sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw"


def hwp_passive(m: Machine, cpus: int) -> Steps:
    """The kernel's governor decides, through the same registers; then limits."""
    yield "registers", f"vs-msr 1 {HWP_REGISTERS}; true"
    yield "cpufreq", "dump_cpufreq"
    yield "slow", _governor("powersave", "vs-load -c 1 -t 0.1 -m 40")
    yield "fast", _governor("performance", "vs-load -c 1 -t 0.1 -m 42")
    yield "asleep", _load("-c none -t 0.5", 44)
    yield "cool", "vs-msr 0 0x1b1"
    yield ("limit", f"put {POWER_LIMIT_W}000000 {_LIMIT_FILE}; cat {_LIMIT_FILE}; "
           "vs-load -c all -t 0.15; vs-load -c all -t 0.25 -m 46")
    yield "warm", "vs-msr 0 0x1b1"
    yield ("lifted", f"put 350000000 {_LIMIT_FILE}; vs-load -c all -t 0.1; "
           "vs-load -c all -t 0.05 -m 48")


#: The parameter, and what debugfs says of each CPU. The base has neither.
FREQ_MAX = "/sys/module/aperfmperf/parameters/freq_max"
INVARIANCE = "/sys/kernel/debug/x86/freq_invariance"
_SHOW = f"grep -s '' {FREQ_MAX} {INVARIANCE} || true"
#: freq_max of all CPUs in a line, once a change of limits is in force
_EACH = f"$(sleep 0.02; sed -n 's/^cpu .* freq_max \\([0-9]*\\) .*/\\1/p' {INVARIANCE})"

#: What the parameter is set to, and what must not be possible.
WORDS = ("nominal", "1c", "3c", "4c", "8c", "12c", "255c", "midpoint", "boost")
BAD_WORDS = ("", "off", "0c", "256c", "c", "4", "base", "all", "4cc", "Boost", "nonsense")
TOGGLES = 20


def _try(value: str, path: str) -> str:
    """Writes a value, says whether that was possible, and what is there then."""
    return (f"if echo '{value}' 2>/dev/null >{path}; then echo '{value}:taken'; "
            f"else echo '{value}:refused'; fi; {_SHOW}; ")


def invariance_control(m: Machine, cpus: int) -> Steps:
    """Each word, and no_turbo."""
    yield "boot", _SHOW
    for word in WORDS:
        yield f"word-{word}", _try(word, FREQ_MAX)
    yield "reset", f"put 3c {FREQ_MAX}"
    for i, word in enumerate(BAD_WORDS):
        yield f"bad-{i}", _try(word, FREQ_MAX)
    yield "load", f"vs-load -c 1 -t 0.1; {_SHOW}"
    yield ("no_turbo", f"for i in $(seq {TOGGLES}); do for off in 1 0; do "
           f"put $off $CPU/intel_pstate/no_turbo; echo $off {_EACH}; done; done")
    yield "limit", f"put 1c {FREQ_MAX}; {_SHOW}; dump {_FREQ}/cpuinfo_max_freq"


def invariance_boost(m: Machine, cpus: int) -> Steps:
    """The divisor follows AMD's boost, through either driver."""
    yield "boot", _SHOW + "; dump_cpufreq"
    for word in ("boost", "nominal", "4c", "midpoint"):
        yield f"word-{word}", _try(word, FREQ_MAX)
    switch = "$CPU/cpufreq/boost"
    yield ("boost", f"for i in $(seq {TOGGLES}); do for on in 0 1; do "
           f"put $on {switch} || return 1; "
           f"echo $on {_EACH} "
           "/ $(cat $CPU/cpu[0-9]*/cpufreq/cpuinfo_max_freq); done; done")
    # Of one policy after the other; then of all, by the common file
    local = "$CPU/cpufreq/policy%d/boost"
    yield ("local-boost", "".join(
      f"put {on} {file} || return 1; echo {_EACH}; "
      for on, file in ((0, local % 0), (0, local % 1), (1, local % 1), (0, "$CPU/cpu1/online"),
                       (1, "$CPU/cpu1/online"), (0, switch), (1, switch))))


#: Written at all files of the series by so many threads (guest/src/vs-hostile.c).
HOSTILE_WRITES = 20_000
HOSTILE_THREADS = 4


def hostile(m: Machine, cpus: int) -> Steps:
    """What is no value is refused, and the kernel says nothing to any of it."""
    yield "boot", "dmesg -c"
    yield "user", "vs-hostile -u"
    yield "writes", f"vs-hostile {HOSTILE_WRITES} {HOSTILE_THREADS}"


#: On the kernel's command line, by parameter; None: no value at all. All in one boot, as
#: the kernel looks at each.
HOSTILE_PARAMETERS: dict[str, tuple[str | None, ...]] = {
    "intel_idle.c02": ("", "maybe", "ON", "c02", "-1", "auto,on", "offf", "%s%n", "o" * 200, None),
    "intel_idle.states_off": ("", "-1", "0x", "2x", "4294967296", "none", "9" * 100, None),
    "umwait.idle_poll": ("", "c01", "C02", "1", "offf", "c02 off", None),
    "cpuidle.governor": ("t" * 16, "teo" * 30),
    "aperfmperf.freq_max": ("", "0c", "256c", "OFF", "4c,1c", "4c 1c", "%s%n", "4" * 300, None),
}
PARAMETERS = "/sys/module/*/parameters"


def parameters(m: Machine, cpus: int) -> Steps:
    yield ("parameters", f"{_SHOW}; dump {PARAMETERS}/* $CPU/cpuidle/current_governor "
           "$CPU/cpu0/cpuidle/state*/disable")


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


def invariance_faults(m: Machine, cpus: int) -> Steps:
    """CPUs 1-3 are busy around each second's faults; CPU 0 reads their state."""
    look = ("echo look $(($(vs-msr 0 0x10 | cut -d' ' -f2))); "
            + _SHOW)
    for second in FAULT_SECONDS:
        begin = int(m.tsc_khz * 1000 * (second - 0.1))
        yield (f"second-{second}",
               f"until [ $(($(vs-msr 0 0x10 | cut -d' ' -f2))) -gt {begin} ]; "
               f"do sleep 0.01; done; vs-load -c 1-3 -t 0.7 & "
               f"for i in $(seq {FAULT_LOOKS}); do {look}; sleep 0.01; done; wait; {look}")
    yield "invariance", _SHOW


#: Clocks of both CPUs after a suspend; the highest is 3.8 GHz.
SUSPEND_KHZ = (1_900_000, 2_800_000, 3_800_000)


def suspend(m: Machine, cpus: int) -> Steps:
    """Suspend to RAM until the clock's alarm: firmware starts the CPUs anew."""
    counters = "; ".join(f"echo cpu {cpu}; vs-msr {cpu} 0xe7 0xe8" for cpu in range(cpus))
    alarm = "/sys/class/rtc/rtc0/wakealarm"
    yield "before", f"vs-load -c all -t 0.5; cat /sys/power/mem_sleep; {counters}; {_SHOW}"
    yield ("suspend", f"put 0 {alarm}; put +5 {alarm}; put mem /sys/power/state; {counters}; "
           f"{_SHOW}")
    for khz in SUSPEND_KHZ:
        yield (f"after-{khz}", f"put {khz} {_FREQ}/scaling_max_freq; {SETTLE}; "
               f"vs-load -c all -t 0.2; {_SHOW}")


#: Mixed parts: a CPU of either kind, beside CPU 0 of the first.
MIXED = {"invariance-hybrid": (1, 3), "invariance-mixed-amd": (1, 3)}
#: Clocks of a task that moves between them, kHz; 0: as high as each goes.
MOVING_KHZ = (2_000_000, 0)
MOVES = 3
#: 1 ms at 3.8 GHz, some 1 ms and 2 ms at the highest clocks.
MOVING_UNITS = 118


def _looks(show: str) -> str:
    """A shell function that shows what is so soon, below a line of words."""
    return f'look() {{ echo "look $*"; sleep 0.02; {show}; }}; '


def _moving(first: int, second: int) -> str:
    """Fixed work every 10 ms that moves from CPU to CPU every 250 ms."""
    masks = [1 << (first, second)[(i + 1) % 2] for i in range(MOVES)]
    return (f"vs-util -c {first} -w {MOVING_UNITS} -n 150 >/tmp/util & sleep 0.6; "
            "task=$(ls /proc/$!/task | sort -n | tail -n 1); "
            + "; ".join(f"taskset -p {mask:x} $task >/dev/null; "
                        "echo moved $(cut -d' ' -f1 /proc/uptime); sleep 0.25"
                        for mask in masks)
            + "; wait; cat /tmp/util")


_RATIOS = (f"{_SHOW}; dump $CPU/cpu[0-9]*/cpufreq/cpuinfo_max_freq $CPU/cpufreq/boost "
           "$CPU/amd_pstate/status $CPU/intel_pstate/status $CPU/intel_pstate/no_turbo")


#: Of each period of the work that schedutil chooses a clock for, what it takes at the CPU's
#: highest clock. The rest is longer than a tick, or schedutil holds the clock.
GOVERNED_SHARE, GOVERNED_MS = 0.6, 20


def _governed(cpu: int, khz: int, work_permille: int) -> str:
    share = GOVERNED_SHARE * khz / 3_800_000 * work_permille / 1000
    units = int(MOVING_UNITS * GOVERNED_MS * share)
    return (f"put schedutil {_FREQ}/scaling_governor; vs-util -c {cpu} -w {units} "
            f"-p {GOVERNED_MS * 1000} -n 130")


def mixed(m: Machine, cpus: int, on: tuple[int, int], boost: bool = False) -> Steps:
    """CPUs of two kinds: what freq_max is, a task that moves between the two named, and
    one that stays. On AMD parts also all modes of the driver."""
    kind = m.classes[0]
    yield "ratios", _RATIOS
    for khz in MOVING_KHZ:
        yield f"clock-{khz}", (_clock(khz, SETTLE) if khz else
                               f"put performance {_FREQ}/scaling_governor; {SETTLE}")
        yield f"ratios-{khz}", _RATIOS
        yield f"moving-{khz}", _moving(*on)
    yield "governed-0", _governed(on[0], m.max_ratio * m.bus_khz, 1000)
    yield "governed-1", _governed(on[1], kind.max_ratio * m.bus_khz, kind.work_permille)
    yield ("domains", "put Y /sys/kernel/debug/sched/verbose; "
           "cat /proc/sys/kernel/sched_itmt_enabled; "
           "dump /sys/kernel/debug/sched/domains/cpu[0-9]*/domain*/flags")
    if boost:
        yield "drivers", amd_drivers()


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


def intel_drivers(m: Machine, cpus: int) -> Steps:
    """Turbo off in firmware, then on; intel_pstate's modes with no_turbo off and on."""
    no_turbo = "$CPU/intel_pstate/no_turbo"
    yield ("firmware", _looks(_RATIOS) + f"look off; put 0 {no_turbo}; look refused; "
           f"until [ $(cut -d. -f1 /proc/uptime) -gt {FIRMWARE_S} ]; do sleep 0.1; done; "
           f"put 0 {no_turbo}; look on")
    yield ("later", _looks(_RATIOS) + "".join(
      "".join(f"vs-msr {cpu} 0x1a0={value} >/dev/null; " for cpu in range(cpus))
      + f"put 0 {no_turbo}; look {word}; "
      for word, value in (("off", "0x4000850089"), ("on", "0x850089"))))
    yield ("modes", _looks(_RATIOS) + "".join(
      f"put {mode} $CPU/intel_pstate/status; look {mode} new; for off in 0 1 0 1; do "
      f"put $off {no_turbo}; look {mode} $off; done; " for mode in INTEL_MODES))


#: What each tunable of schedutil refuses.
SCHEDUTIL_REFUSED = {"rate_limit_us": "-1 x 4294967296"}


def schedutil(m: Machine, cpus: int) -> Steps:
    """The governor's tunables, and a task that becomes CPU-bound."""
    files = "$CPU/cpufreq/schedutil"
    yield "defaults", f"dump {files}/*"
    for name, values in SCHEDUTIL_REFUSED.items():
        yield (f"refused-{name}", f"before=$(cat {files}/{name}); for v in {values}; do "
               f"echo $v 2>/dev/null >{files}/{name} && echo took $v; done; "
               f'[ "$(cat {files}/{name})" = "$before" ] || echo changed')
    # 5 % of 10 ms, then busy
    yield "steps", "vs-rise -c 1 -m step -r 38 -n 5 -k 12 -w 59000"


#: Cycles of 1000 instructions in the kernel and in user space.
RATES = ((1000, 8000), (2000, 8000), (1000, 4000), (2000, 4000))
CALLS_MARK, CALLS_TIMES = 70, 10


def rates(m: Machine, cpus: int) -> Steps:
    """System calls on one CPU for less than a tick, several times, then work in user space."""
    yield "settle", "sleep 2"
    for mark in range(CALLS_MARK, CALLS_MARK + 2 * CALLS_TIMES, 2):
        yield (f"calls-{mark}", f"vs-msr 1 {MARK}={mark}; "
               "taskset 2 dd if=/dev/zero of=/dev/null bs=1 count=3000; "
               f"vs-msr 1 {MARK}={mark + 1}")
    yield "user", "vs-load -c 1 -t 0.2"


#: Who wakes whom.
PAIRS = ((0, 1), (1, 0), (0, 3), (3, 0), (2, 1), (1, 2))


def wakes(m: Machine, cpus: int) -> Steps:
    yield "settle", "sleep 1"
    for caller, callee in PAIRS:
        yield (f"wake-{caller}-{callee}",
               f"vs-wake -m signal -k {caller} -c {callee} -n 300")


#: Writes 0x199 on CPUs 1 and 2 in turn, each after a mark of its own, so many times.
SWITCHES = 40
SWITCH_MARK = 1000


def switches(m: Machine, cpus: int) -> Steps:
    """Two clocks by turns on two CPUs that execute all the while; then turbo limits."""
    low, high = m.min_ratio + 2, m.base_ratio - 1
    yield ("switches", "vs-load -c 1-2 -t 2 & sleep 0.3; "
           f"i=0; while [ $i -lt {2 * SWITCHES} ]; do "
           f"r=$((i / 2 % 2 ? {low} : {high})); "
           f"vs-msr $((1 + i % 2)) {MARK}=$(({SWITCH_MARK} + i)) 0x199=$((r << 8)); "
           "usleep $((i * 173 % 1000 + 2500)); i=$((i + 1)); done; "
           f"vs-msr 0 {MARK}={SWITCH_MARK - 1}; wait")
    yield ("turbo", "for c in 0 1 2 3; do "
           f"vs-msr $c 0x199=$(({m.max_ratio} << 8)); done; "
           "for c in 3 2-3 1-3 all; do vs-load -c $c -t 0.02; done")


def returns(m: Machine, cpus: int) -> Steps:
    """Back at once to the clock that was before, and after a while."""
    yield "userspace", f"put userspace {_FREQ}/scaling_governor"
    for name, wait in (("soon", "-w 0 -x 5"), ("late", "-w 200 -x 3000")):
        for way, ends in (("up", "-f 2000000 -t 2250000"), ("down", "-f 2250000 -t 2000000")):
            yield f"{way}-{name}", f"vs-switch -c 1 -n 40 {wait} {ends}"


#: Windows of power limit 1 that register 0x610 can show, in s, by their marks.
WINDOWS_S = {0.0625: 50, 0.25: 52}
LOW_W, WINDOW_W = 105, 122


def limit_value(watts: float, window_s: float, clamp: bool, watts_2: float = 0) -> int:
    """0x610 with limit 1, and limit 2 if it is given."""
    one = (intel.rapl_power(watts) | 1 << 15 | clamp << 16
           | intel.rapl_time_window(window_s) << 17)
    two = (intel.rapl_power(watts_2) | 1 << 15 | 1 << 16
           | intel.rapl_time_window(0.0078125) << 17) if watts_2 else 0
    return one | two << 32


def limits(m: Machine, cpus: int) -> Steps:
    """What the fields of 0x610 say: limit 2, clamping, the time window."""
    yield "hwp", "vs-msr 1 0x772 0x773; true"
    yield "register", "vs-msr 0 0x610"
    free = f"0x610={limit_value(350, 0.25, True):#x}"
    yield ("free", f"vs-msr 0 {free}; sleep 0.2; vs-load -c none -t 0.2 -m 40; "
           "vs-load -c all -t 0.1; vs-load -c all -t 0.1 -m 42; sleep 0.5")
    for name, value, mark in (("second", limit_value(350, 0.0625, True, WINDOW_W), 44),
                              ("not-clamped", limit_value(LOW_W, 0.0078125, False), 46),
                              ("clamped", limit_value(LOW_W, 0.0078125, True), 48)):
        yield (name, f"vs-msr 0 0x610={value:#x}; vs-load -c all -t 0.15; "
               f"vs-load -c all -t 0.1 -m {mark}; vs-msr 0 {free}; sleep 0.1")
    for window_s, mark in WINDOWS_S.items():
        yield (f"window-{mark}", f"vs-msr 0 0x610={limit_value(WINDOW_W, window_s, True):#x}"
               f"; sleep 2; vs-load -c all -t 0.8 -m {mark}; vs-msr 0 {free}; sleep 0.5")


def utilisation_fixed(m: Machine, cpus: int) -> Steps:
    """Periodic work at each P-state, and at the lowest without and with turbo."""
    yield utilisation.TAKE_OVER
    yield utilisation.fixed_step("clocks", 1, utilisation.clocks(m))
    for name, mark, off in (("no-turbo", 2, 1), ("turbo", 3, 0)):
        yield f"{name}-switch", f"put {off} $CPU/intel_pstate/no_turbo"
        yield utilisation.fixed_step(name, mark, utilisation.clocks(m)[:1])


def utilisation_bytes(m: Machine, cpus: int) -> Steps:
    yield utilisation.TAKE_OVER
    yield utilisation.fixed_step("clocks", 1, [2_200_000, 2_900_000])


#: Of the AMD part with fast and dense cores: one clock for both, and the lists of marks.
KINDS_KHZ = 2_000_000
KINDS_MARKS = {("boost", 0): 1, ("boost", 3): 2, ("no-boost", 0): 3, ("no-boost", 3): 4}


def utilisation_kinds(m: Machine, cpus: int) -> Steps:
    """The same work on a fast core and on a dense one, with boost and without."""
    yield utilisation.TAKE_OVER
    for (boost, cpu), mark in KINDS_MARKS.items():
        yield (f"{boost}-{cpu}-switch", f"put {int(boost == 'boost')} $CPU/cpufreq/boost; "
               f"put userspace {_FREQ}/scaling_governor")
        yield utilisation.fixed_step(f"{boost}-{cpu}", mark, [KINDS_KHZ], cpu)


#: A CPU asks for its highest clock and gets 1.2 GHz.
LIMITED_RATIO = 12


#: Of kselftests, those that say that there is nothing to test, and how they end.
OFF_SELFTESTS = {"bad_samples": 4, "ratio": 4, "messages.sh": 0}


def utilisation_off(m: Machine, cpus: int) -> Steps:
    """Without invariance: what the frequency of a busy CPU is said to be."""
    frequency = f"cat $CPU/cpu{utilisation.CPU}/cpufreq/scaling_cur_freq"
    yield ("load", f"vs-load -c {utilisation.CPU} -t 1.5 & "
           f"for i in $(seq 10); do sleep 0.1; {frequency}; done; wait")
    for test in OFF_SELFTESTS:
        yield test, f"/selftests/freq_invariance/{test}"


def utilisation_faults(m: Machine, cpus: int) -> Steps:
    yield utilisation.TAKE_OVER
    yield utilisation.FAULTS_STEP


STOCK_MACHINES = {"sapphire-rapids": 4, "e5-2698-v4": 4, "e5-2670-v3": 4,
                    "e3-1240-v5": 4}

#: One part for each way that a turbo table is laid out or read.
FAMILY_MACHINES = ("platinum-8180", "platinum-8380", "pentium-n4200", "celeron-j1900",
                   "xeon-phi-7250", "atom-p5962b")

#: A few of those made from dumps, of which data/parts.csv knows everything.
PART_MACHINES = ("platinum-8592", "xeon-6980p", "xeon-6746e", "core-i7-1260p",
                 "ultra-9-285h", "epyc-9555")

#: Of a part with a measured distribution: interrupts of a device and of the timer, and
#: a switch from base to the lowest clock.
EXPERIMENTS = (reproduce.wake("device", "C6", 2_700_000, 200),
           reproduce.wake("timer", "C6", 2_700_000, 200),
           reproduce.switch(2_700_000, 1_200_000, samples=60))


def validated(m: Machine, cpus: int) -> Steps:
    yield from validate.job(EXPERIMENTS).steps


#: On CPU 1 APERF counts a thousandth while the clock is 800 MHz, in s: from, to.
CRAWL = (3.0, 4.0)
CRAWL_FAULT = f"{utilisation.CPU} rate counter=aperf permille=1 at={CRAWL[0]:.0f}s for=1s\n"


def crawl(m: Machine, cpus: int) -> Steps:
    """Some work in each 5 ms at a low clock."""
    yield utilisation.TAKE_OVER
    yield ("faults", f"vs-util -c {utilisation.CPU} -w {utilisation.UNITS_PER_MS // 4} -p 5000 "
           f"-n 800 -m 1 -f {utilisation.FAULT_KHZ} -l 9999")


_DOMAINS = "put Y /sys/kernel/debug/sched/verbose; dump /sys/kernel/debug/sched/domains/*/*/flags"


def highest_0(m: Machine, cpus: int) -> Steps:
    yield "load", "vs-load -c all -t 0.3"


def nominal_by_one(m: Machine, cpus: int) -> Steps:
    """Domains are built before firmware's figures are read, and again when a CPU goes."""
    yield "nominal", "cat $CPU/cpu[0-9]*/acpi_cppc/nominal_perf"
    yield "domains", f"put 0 $CPU/cpu1/online; put 1 $CPU/cpu1/online; sleep 0.5; {_DOMAINS}"


#: What cpuwhy explain is given: what somebody would attach.
_ATTACHED = ("cat /proc/cpuinfo; grep -s '' /proc/uptime /proc/cmdline $CPU/cpu[0-9]*/cpufreq/*"
             " $CPU/cpu[0-9]*/power/*_us $CPU/cpu[0-9]*/power/energy* $CPU/cpuidle/*"
             " $CPU/cpu[0-9]*/cpuidle/state[0-9]*/[a-z]* $CPU/intel_pstate/* $CPU/cpufreq/boost"
             " /sys/class/powercap/*/*_uw /sys/class/powercap/*/*name; true")
_REGISTERS = ("vs-msr 1 0xce 0x1ad 0x1ae 0x19a 0x19c 0x1a0 0x1a2 0x1b1 0x1fc 0x606 0x610 0x614"
              " 0x648 0x649 0x64a 0x64b 0x64c 0x64f 0x690 0x770 0x771 0x774; true")
_BUSY = "turbostat --hide IPC -o /run/t vs-load -c all -t 0.3 >/dev/null; cat /run/t"


def explained(m: Machine, cpus: int) -> Steps:
    """As it is."""
    yield "attached", _ATTACHED
    yield "registers", _REGISTERS
    yield "busy", _BUSY


def _planted(files: str, value: str) -> str:
    """What is attached with this value, which then is as before."""
    first = f"$(echo {files} | cut -d' ' -f1)"
    return (f"was=$(cat {first}); put {value} {files}; sleep 0.05; {_ATTACHED}; {_BUSY}; "
            f"put $was {files}")


#: Machines that are as they should be: of several families.
EXPLAINED = ("e3-1240-v5", "sapphire-rapids", "core-i9-12900k", "epyc-7742", "pentium-n4200",
             "e5-2698-v4")

#: Where a limiter is planted: files, value, the kind that explain says.
PLANTED = {
    "max": (f"{_FREQ}/scaling_max_freq", "1200000", "policy-max"),
    "min": (f"{_FREQ}/scaling_min_freq", "3000000", "policy-min"),
    "max-percent": ("$CPU/intel_pstate/max_perf_pct", "50", "max-perf-pct"),
    "min-percent": ("$CPU/intel_pstate/min_perf_pct", "70", "min-perf-pct"),
    "turbo": ("$CPU/intel_pstate/no_turbo", "1", "turbo-off"),
    "governor": (f"{_FREQ}/scaling_governor", "powersave", "governor"),
    "states": ("$CPU/cpu[0-9]*/cpuidle/state3/disable", "1", "idle-disabled"),
    "latency": ("$CPU/cpu[0-9]*/power/pm_qos_resume_latency_us", "10", "latency-limit"),
}


def planted(m: Machine, cpus: int) -> Steps:
    yield "healthy", f"{_ATTACHED}; {_BUSY}"
    for name, (files, value, _) in PLANTED.items():
        yield name, _planted(files, value)
    # Only polling and the deepest state are left for rests that are too short for it; with no
    # timer near, menu polls for none.
    between = "for s in $(seq $(($(ls -d $CPU/cpu1/cpuidle/state[0-9]* | wc -l) - 2)))"
    disable = f"{between}; do put {{}} $CPU/cpu1/cpuidle/state$s/disable; done"
    yield ("deep", f"put menu $CPU/cpuidle/current_governor; {disable.format(1)}; vs-wake -m signal"
           f" -c 1 -k 0 -n 12000 -w 20 -x 100 >/dev/null; {disable.format(0)}; {_ATTACHED}")


#: A lower clock whose cause the thermal status does not show, as the emulator has it.
_SLOW = ("* limit ratio={}\n* msr msr=0x19c value=0x80320000\n"
         "* msr msr=0x1b1 value=0x320000\n")
#: Faults that a register or the clock itself shows, and the kind that explain says first.
REGISTERS = {
    "limit": ("* limit ratio=12\n", "thermal"),
    "power": (_SLOW.format(12) + "* msr msr=0x64f value=0x04000400\n", "power-limit"),
    "prochot": ("* limit ratio=8\n* msr msr=0x19c value=0x88280004\n"
                "* msr msr=0x1b1 value=0x320000\n* msr msr=0x1fc value=0x4005d\n", "prochot"),
    "ctdp": (_SLOW.format(20) + "* msr msr=0x64b value=1\n* msr msr=0x649 value=0x140118\n",
             "ctdp"),
    "duty": ("* msr msr=0x19a value=0x14\n", "clock-modulation"),
    "firmware": ("* msr msr=0x1a0 value=0x4000850089\n", "turbo-off"),
    "unknown": (_SLOW.format(12), ""),
}


#: What acpi-cpufreq's own switch is set to.
WRITES_CPB = "0101"


def cpb(m: Machine, cpus: int) -> Steps:
    yield ("cpb", "".join(f"put {on} $CPU/cpufreq/policy*/cpb || return 1; "
                          f"echo {on} {_EACH}; "
                          for on in WRITES_CPB))


def dense_offline(m: Machine, cpus: int) -> Steps:
    """Only fast cores at boot (maxcpus=); then all."""
    yield "online", f"for i in $(seq 2 {cpus - 1}); do put 1 $CPU/cpu$i/online; done; {_SHOW}"
    yield "domains", f"sleep 0.5; {_DOMAINS}"


def dense_boost(m: Machine, cpus: int) -> Steps:
    for name, on in (("on", 1), ("off", 0), ("on-again", 1)):
        yield name, f"put {on} $CPU/cpufreq/boost; sleep 0.5; {_DOMAINS}"


#: So many tasks that are free to run anywhere, half of the time each.
SHARING_TASKS, SHARING_MARK = 5, 30


def sharing(m: Machine, cpus: int) -> Steps:
    """CPU 0 has what the system does; no task of the load may run there or beside it."""
    tasks = cpus // m.threads - 1
    yield ("load", f"sleep 1; vs-msr 0 {MARK}={SHARING_MARK}; "
           f"taskset {(1 << cpus) - 4:x} stress-ng --cpu {tasks} --cpu-method int64 "
           "--cpu-load 50 --cpu-load-slice 5 -t 1 2>&1; "
           f"vs-msr 0 {MARK}={SHARING_MARK + 1}")


SCENARIOS: dict[str, Scenario] = {
    "repeat-1": Scenario(repeat, cpus=4),
    "repeat-2": Scenario(repeat, cpus=4),
    "speed": Scenario(speed),
    "memory": Scenario(speed, _own("memory-bound.toml")),
    "turbo-bytes": Scenario(turbo, "e5-2698-v4", cpus=8),
    "turbo-groups": Scenario(turbo, cpus=6),
    "two-packages": Scenario(topology, "e5-2670-v3", cpus=16),
    "faults": Scenario(faulty, cpus=4, faults=RUNTIME_FAULTS),
    "lost-turbo": Scenario(look, faults=LOST_TURBO),
    "zero-counters": Scenario(look, faults=ZERO_COUNTERS),
    "knobs": Scenario(knobs, _own("knobs.toml"), append="intel_pstate=disable"),
    "hwp-active": Scenario(hwp_active, "sapphire-rapids-hwp", append="intel_pstate=active"),
    "hwp-passive": Scenario(hwp_passive, "sapphire-rapids-hwp", cpus=4),
    "amd": Scenario(amd, "epyc-7742", append=""),
    "amd-pstate": Scenario(amd_pstate, "epyc-7763", append="amd_pstate=passive"),
    "amd-pstate-active": Scenario(amd_pstate, "epyc-7763", append="amd_pstate=active"),
    "two-kinds-amd": Scenario(kinds, "ryzen-5-7545u", cpus=4, append="amd_pstate=passive"),
    "two-kinds-intel": Scenario(kinds, "core-i9-12900k", cpus=4),
    "hour": Scenario(hour, cpus=1),
    "smt": Scenario(smt, "sapphire-rapids-smt", cpus=6),
    "invariance-control": _patched(
        invariance_control, "e5-2698-v4", cpus=8, append=PASSIVE + " aperfmperf.freq_max=nonsense"),
    "invariance-faults": _patched(invariance_faults, cpus=4, faults=COUNTER_FAULTS),
    "invariance-faults-base": Scenario(invariance_faults, cpus=4, faults=COUNTER_FAULTS),
    "invariance-acpi": _patched(invariance_boost, "epyc-7742", append=""),
    "invariance-amd-pstate": _patched(
        invariance_boost, "epyc-7763", append="amd_pstate=passive aperfmperf.freq_max=boost"),
    "invariance-two-kinds": _patched(
        messages, "ryzen-5-7545u", cpus=4, append="amd_pstate=passive"),
    "invariance-zen5": _patched(messages, "ryzen-ai-9-465", cpus=6, append="amd_pstate=passive"),
    "amd-patched": _patched(messages, "epyc-7742", append=""),
    "utilisation": _patched(utilisation_fixed, append=FOUR),
    "utilisation-bytes": _patched(utilisation_bytes, "e5-2698-v4"),
    "utilisation-faults": _patched(
        utilisation_faults, append=FOUR, faults=utilisation.FAULT_LINES),
    "utilisation-kinds": _patched(
        utilisation_kinds, "ryzen-5-7545u", cpus=4, append="amd_pstate=passive"),
    "utilisation-off": _patched(
        utilisation_off, append=PASSIVE + " aperfmperf.freq_max=off",
        faults=f"{utilisation.CPU} limit ratio={LIMITED_RATIO} at=0s\n"),
    # Time that follows instructions stands still while the machine sleeps
    "suspend": _patched(suspend, append=FOUR, rtc="host"),
    "invariance-hybrid": _patched(
        partial(mixed, on=MIXED["invariance-hybrid"]), "core-i9-12900k", cpus=4),
    "invariance-mixed-amd": _patched(
        partial(mixed, on=MIXED["invariance-mixed-amd"], boost=True), "ryzen-5-7545u",
        cpus=6,
        append="amd_pstate=passive cpufreq.default_governor=performance"),
    "invariance-intel-drivers": _patched(
        intel_drivers, "sapphire-rapids-hwp", append="intel_pstate=active",
        faults=NO_TURBO_BY_FIRMWARE),
    "invariance-crawl": _patched(crawl, append=FOUR, faults=CRAWL_FAULT),
    "invariance-highest-0": _patched(
        highest_0, "core-i9-12900k", cpus=4, faults="3 msr msr=0x771 value=0x1101500\n"),
    # Not mixed: CPUID tells no kinds
    "invariance-nominal-by-one": _patched(
        nominal_by_one, _own("nominal-by-one.toml"), cpus=4, append="amd_pstate=passive",
        faults="* cpuid leaf=0x80000026 sub=0 reg=eax clear=0x40000000\n"),
    "invariance-cpb": _patched(cpb, "epyc-7742", append=""),
    "invariance-dense-offline": _patched(
        dense_offline, "ryzen-5-7545u", cpus=6, append="amd_pstate=passive maxcpus=2"),
    "invariance-dense-boost": _patched(
        dense_boost, "ryzen-5-7545u", cpus=6, append="amd_pstate=passive"),
    "sharing": _patched(
        sharing, "ryzen-ai-9-465", cpus=12,
        append="amd_pstate=passive cpufreq.default_governor=performance"),
    "free": Scenario(stock_tools, mode="free"),
}
for _kernel, _user in RATES:
    SCENARIOS[f"rates-{_kernel}-{_user}"] = Scenario(
        rates, time={"kernel_cycles_per_1000_insns": _kernel, "user_cycles_per_1000_insns": _user})
for _quantum in (1_000, 10_000):
    SCENARIOS[f"wakes-{_quantum}"] = Scenario(
        wakes, cpus=4, append=PASSIVE + " intel_idle.max_cstate=1", time={"quantum_ns": _quantum})
for _name in ("platinum-8180", "sapphire-rapids"):
    SCENARIOS[f"switches-{_name}"] = Scenario(
        switches, _name, cpus=4, append="intel_pstate=disable cpufreq.off=1")
SCENARIOS["validated"] = _patched(validated, "e5-2697-v2", append="intel_pstate=passive")
SCENARIOS["returns"] = Scenario(returns, "epyc-7742", append="")
SCENARIOS["limits"] = Scenario(limits, "sapphire-rapids-hwp", cpus=4)
SCENARIOS["schedutil"] = _patched(schedutil, cpus=4, append="intel_pstate=passive")
SCENARIOS["c02"] = _patched(c02)
SCENARIOS["signs"] = _patched(signs)
SCENARIOS["poll-state"] = _patched(idle_poll, append="")
SCENARIOS["poll-loop"] = _patched(idle_poll, append="idle=poll umwait.idle_poll=c02")
SCENARIOS["hostile"] = _patched(hostile, cpus=4, append="intel_pstate=passive")
SCENARIOS["parameters"] = _patched(
    parameters, cpus=1,
    append=" ".join(name if value is None else f'{name}="{value}"'
                    for name, values in HOSTILE_PARAMETERS.items() for value in values))
for _msr in GP_AT_BOOT:
    SCENARIOS[f"gp-{_msr:#x}"] = _patched(
        invariance_at_boot, cpus=1, append="intel_pstate=disable", faults=f"* gp msr={_msr:#x}\n")
for _name, (_machine, _append, _) in IDLE_STATES.items():
    SCENARIOS[f"idle-{_name}"] = _patched(
        default_idle_states if _name == "default" else idle_states,
        _machine, cpus=1, append=_append)
for _name, _cpus in STOCK_MACHINES.items():
    SCENARIOS[f"stock-{_name}"] = Scenario(stock_tools, _name, cpus=_cpus)
    SCENARIOS[f"acpi-{_name}"] = Scenario(acpi, _name, append="intel_pstate=disable")
for _name in FAMILY_MACHINES:
    SCENARIOS[f"family-{_name}"] = Scenario(family, _name)
for _name in (*STOCK_MACHINES, *FAMILY_MACHINES):
    SCENARIOS[f"patched-{_name}"] = _patched(messages, _name, append="intel_pstate=passive")
for _name in PART_MACHINES:
    SCENARIOS[f"part-{_name}"] = Scenario(
        part, _name, append=PASSIVE + " amd_pstate=passive")
for _name in EXPLAINED:
    SCENARIOS[f"explain-{_name}"] = Scenario(explained, _name, append="")
SCENARIOS["explain-planted"] = Scenario(planted, "e3-1240-v5", append="intel_pstate=passive")
for _name, (_faults, _) in REGISTERS.items():
    SCENARIOS[f"explain-{_name}"] = Scenario(
        explained, "e3-1240-v5", append="intel_pstate=passive", faults=_faults)
