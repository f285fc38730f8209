# SPDX-License-Identifier: GPL-2.0
"""How each kind of published measurement is repeated in a guest.

EXPERIMENTS maps rows, by kind and quantity, to what the guest has to do and how the value
comes from what it answers; or to the reason why there is nothing to repeat.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ...errors import GuestError
from ...machine import machine
from ...machine.machine import Machine
from .measurements import Row, statistic

#: What all steps use.  `rest_in STATE [CPU]` wakes CPUs that sleep in another state.
PRELUDE = """\
fresh() {
	put 0 $CPU/cpu[0-9]*/cpuidle/state*/disable
	[ ! -e $CPU/cpufreq/boost ] || put 1 $CPU/cpufreq/boost
}
rest_in() {
	only "$@" && vs-load -c ${2:-all} -t 0.002 >/dev/null
}
clock() {
	[ ! -e $CPU/cpufreq/boost ] || put 0 $CPU/cpufreq/boost
	put userspace $CPU/cpu[0-9]*/cpufreq/scaling_governor &&
	put $1 $CPU/cpu${2:-[0-9]*}/cpufreq/scaling_setspeed && sleep 0.05
}
watts() {
	dump_zones
	echo took $1
	shift
	vs-load -m 10 "$@"
}
"""

#: Machines for rows that name a family and no part.
PREFERRED = {(6, 0x6A): "platinum-8380", (6, 0x55): "platinum-8180",
             (6, 0x3F): "e5-2670-v3", (6, 0x8F): "sapphire-rapids",
             (0x17, 0x31): "epyc-7502"}

Samples = list[float]


@dataclass(frozen=True)
class Guest:
    """A boot that rows share; `cores` and `threads` differ from the part's if not 0.  Its
    code is usual, or `heaviest`: what the TDP is made for, with its traffic."""

    machine: str
    cpus: int
    cores: int = 0
    threads: int = 0
    append: str = "intel_pstate=passive"
    heaviest: bool = False

    @property
    def name(self) -> str:
        return "-".join(str(word) for word in (
            self.machine, self.cpus, self.cores, self.threads, self.append[-20:],
            "heaviest" * self.heaviest) if word)

    def build(self) -> Machine:
        m = machine.load(self.machine)
        changes: dict[str, Any] = {}
        if self.heaviest:
            changes["power"] = replace(m.power, activity=1.0, traffic_w=0.0,
                                       uncore_w=m.power.uncore_w + m.power.traffic_w)
        if self.threads:
            changes["threads"] = self.threads
        if self.cores and self.cores != m.cores:
            kept = [(n, r) for n, r in zip(m.turbo.cores, m.turbo.ratios) if n < self.cores]
            kept.append((self.cores, m.turbo.limit(self.cores)))
            changes["cores"] = self.cores
            changes["packages"] = max(m.packages, -(-self.cpus // (self.cores * (
                self.threads or m.threads))))
            changes["turbo"] = replace(m.turbo, cores=tuple(n for n, _ in kept),
                                       ratios=tuple(r for _, r in kept))
        return replace(m, **changes)


@dataclass(frozen=True)
class Experiment:
    """`steps` are run in the guest, in this order; `value` makes the row's numbers of
    their outputs."""

    guest: Guest
    steps: tuple[str, ...]
    value: Callable[[list[str]], Sequence[float | None]]
    how: str


Handler = Callable[[Row, re.Match[str], str], Experiment | str]


def _samples(text: str, unit: float) -> Samples:
    out = [int(word) / unit for word in text.split()]
    if not out:
        raise GuestError("the guest measured nothing")
    return out


def _count(row: Row, default: int = 2000, most: int = 10000) -> int:
    """Samples that the publication had, as far as they are affordable."""
    match = re.search(r"(\d+) (?:valid )?samples", f"{row.conditions} {row.method}")
    return min(int(match[1]), most) if match else default


def _khz(ghz: str) -> int:
    return round(float(ghz) * 1e6)


# --- frequency -----------------------------------------------------------------

SWITCHES = 1000


def _quiet(name: str, cpus: int = 4) -> Guest:
    m = machine.load(name)
    return Guest(name, min(cpus, m.cores * m.threads))


def switch(low: int, high: int, wait_us: tuple[int, int] = (0, 10_000),
            samples: int = SWITCHES) -> str:
    return (f"rest_in C1 && clock {low} && vs-switch -c 1 -f {low} -t {high} -n {samples} "
            f"-w {wait_us[0]} -x {wait_us[1]}")


def _ends(m: Machine) -> tuple[int, int]:
    """Lowest clock and base, in kHz."""
    return m.min_ratio * m.bus_khz, m.base_ratio * m.bus_khz


def _switched(name: str, step: str, how: str,
              value: Callable[[Samples], Sequence[float]]) -> Experiment:
    return Experiment(_quiet(name), (step,), lambda out: value(_samples(out[0], 1000)), how)


def delay(row: Row, match: re.Match[str], name: str) -> Experiment:
    """Of a switch between two clocks: a statistic, or both ends."""
    step = switch(_khz(match["a"]), _khz(match["b"]))
    how = "clock switched after a random wait of up to 10 ms, work timed"
    if stat := match["stat"]:
        return _switched(name, step, how, lambda s: [statistic(stat, s)])
    return _switched(name, step, how, lambda s: [min(s), max(s)])


def shortest(row: Row, match: re.Match[str], name: str) -> Experiment:
    return _switched(name, switch(_khz(match["a"]), _khz(match["b"])),
                     "the same, the shortest", lambda s: [min(s)])


def slots(row: Row, match: re.Match[str], name: str) -> Experiment:
    """Delays are uniform over a period: 98 % of it lie between two percentiles."""
    low, high = _ends(machine.load(name))
    return _switched(
        name, switch(high, low), "spread of the delays of a switch",
        lambda s: [(statistic("p99", s) - statistic("p1", s)) / 0.98])


def transition(row: Row, match: re.Match[str], name: str) -> Experiment:
    """The delay that is left when a slot comes at once."""
    low, high = _ends(machine.load(name))
    step = switch(low, high, (5000, 10_000)) if match["to"] == "up" else \
        switch(high, low, (5000, 10_000))
    return _switched(name, step, "shortest delay, switched after 5 ms or more",
                     lambda s: [min(s)])


def _pairs(m: Machine) -> list[tuple[int, int]]:
    low, high = _ends(m)
    middle = (low + high) // 2 // m.bus_khz * m.bus_khz
    return [(low, high), (high, low), (low, middle), (middle, high)]


def soon_after(row: Row, match: re.Match[str], name: str) -> Experiment:
    m = machine.load("platinum-8180" if "Skylake-SP" in row.quantity else name)
    steps = tuple(switch(a, b, (0, 1000), 200) for a, b in _pairs(m))
    return Experiment(_quiet(m.name), steps, lambda out: [statistic("median", [
        x for text in out for x in _samples(text, 1000)])],
        "clock switched up to 1 ms after the last switch, 4 pairs")


def worst_switch(row: Row, match: re.Match[str], name: str) -> Experiment:
    steps = tuple(switch(a, b, samples=300) for a, b in _pairs(machine.load(name)))
    return Experiment(_quiet(name), steps, lambda out: [end([statistic(
        "p95", _samples(text, 1000)) for text in out]) for end in (min, max)],
        "95th percentile of 4 pairs, least and most")


def _busy_mhz(text: str) -> dict[int, float]:
    """Of the CPUs that were busy; turbostat's columns are CPU, Busy% and Bzy_MHz."""
    out = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[0].isdigit() and float(words[1]) > 50:
            out[int(words[0])] = float(words[2])
    if not out:
        raise GuestError("no CPU was busy")
    return out


def _turbostat(load: str) -> str:
    return f"turbostat -q --show CPU,Busy%,Bzy_MHz -o /run/t vs-load {load}; cat /run/t"


def domains(row: Row, match: re.Match[str], name: str) -> Experiment:
    """0 cores that run at another clock than theirs."""
    low, high = _ends(machine.load(name))
    step = f"clock {high} && clock {low} 1 && {_turbostat('-c 1,2 -t 0.2')}"

    def value(out: list[str]) -> list[float]:
        mhz = _busy_mhz(out[0])
        return [float(abs(mhz[1] - low / 1000) > 20) + float(abs(mhz[2] - high / 1000) > 20)]
    return Experiment(_quiet(name), (step,), value, "two busy cores asked for different clocks")


def sibling(row: Row, match: re.Match[str], name: str) -> Experiment:
    low, high = _ends(machine.load(name))
    step = f"clock {low} && clock {high} 3 && {_turbostat('-c 2 -t 0.2')}"
    return Experiment(Guest(name, 8, threads=2), (step,),
                      lambda out: [_busy_mhz(out[0])[2] / 1000],
                      "a busy thread, its idle sibling set higher")


def turbo(row: Row, match: re.Match[str], name: str) -> Experiment | str:
    """Highest clock with so many cores busy; the numbers are in the quantity."""
    active = [int(n) for n in re.findall(r"(?:\d+\.\.)?(\d+)(?= (?:/|active))", row.quantity)]
    if len(active) != len(row.bands):
        return "numbers of active cores not understood"
    m = machine.load(name)
    cpus = max(active) * m.threads
    steps = tuple("put performance $CPU/cpu[0-9]*/cpufreq/scaling_governor; " + _turbostat(
        f"-c {','.join(str(i * m.threads) for i in range(n))} -t 0.2") for n in active)
    return Experiment(Guest(name, cpus), steps,
                      lambda out: [max(_busy_mhz(text).values()) / 1000 for text in out],
                      "so many busy cores, performance governor")


def scalar_turbo(row: Row, match: re.Match[str], name: str) -> Experiment:
    """Of licences the guest has the first only."""
    step = "put performance $CPU/cpu[0-9]*/cpufreq/scaling_governor; " + \
        _turbostat("-c 1 -t 0.2")
    rest: list[float | None] = [None] * (len(row.bands) - 1)
    return Experiment(_quiet(name), (step,),
                      lambda out: [max(_busy_mhz(out[0]).values()) / 1000, *rest],
                      "one busy core, scalar work only: the emulator has no AVX-512")


# --- wake-ups ------------------------------------------------------------------

def wake(mode: str, state: str, khz: int, samples: int, more: str = "") -> str:
    return (f"rest_in {state} && clock {khz} && vs-wake -m {mode} -c 1 -n {samples} {more}")


def _woken(guest: Guest, step: str, stat: str, how: str, add: float = 0) -> Experiment:
    return Experiment(guest, (step,),
                      lambda out: [statistic(stat, [x + add for x in _samples(out[0], 1000)])], how)


def signalled(row: Row, match: re.Match[str], name: str) -> Experiment:
    """pthread_cond_signal() from another CPU of the package."""
    m = machine.load(name)
    clocks = re.findall(r"(\d+(?:\.\d+)?)(?= and .* GHz| GHz)", row.conditions)
    khz = [_khz(clock) for clock in clocks] or list(_ends(m))
    if "remote" in row.conditions:
        return _woken(
            Guest(name, 8, cores=4),
            wake("signal", match["state"], khz[0], _count(row, 200), "-k 5"),
            match["stat"] or "median", "signal from the other package")
    steps = tuple(wake("signal", match["state"], f, _count(row, 200)) for f in khz)
    stat = match["stat"] or "median"

    def value(out: list[str]) -> list[float]:
        each = [statistic(stat, _samples(text, 1000)) for text in out]
        if len(row.bands) == 1 and row.bands[0].low < row.bands[0].high:
            return [min(each), max(each)] if len(each) > 1 else each
        return [sum(each) / len(each)]
    return Experiment(_quiet(name), steps, value, f"{stat} of signals from a CPU of the package")


def below(row: Row, match: re.Match[str], name: str) -> Experiment:
    _, base = _ends(machine.load(name))
    return _woken(_quiet(name), wake("signal", match["state"], base, 1000), "p95",
                  "95th percentile of signals from a CPU of the package")


def remote(row: Row, match: re.Match[str], name: str) -> Experiment:
    """Median with the caller on the other package, less that with it on the same."""
    m = machine.load(name)
    state = m.idle[-1].name if "idle" in row.quantity else "C1"
    guest = Guest(name, 8, cores=4)
    step = wake("signal", state, _ends(m)[1], 500, "-k {}")
    return Experiment(guest, (step.format(0), step.format(5)), lambda out: [
        statistic("median", _samples(out[1], 1000)) - statistic("median", _samples(out[0], 1000))],
        f"from {state}, caller on the other package, less caller on the same")


def exit_by_device(row: Row, match: re.Match[str], name: str) -> Experiment:
    """The HPET stands for the network card of the method; all other CPUs rest as deep."""
    _, base = _ends(machine.load(name))
    step = wake("device", match["state"], base, _count(row, 10000))
    how = "interrupt of another device, all CPUs idle"
    if "package C6 off" in row.quantity:
        step = step.replace(" && clock", " && rest_in C1 0 && clock", 1)
        how = "interrupt of another device, one more CPU in C1"
    return _woken(_quiet(name), step, match["stat"], how)


def wult(row: Row, match: re.Match[str], name: str) -> Experiment | str:
    m = machine.load(name)
    low, base = _ends(m)
    khz = low if re.search(r"LFM|min", row.conditions) else base
    timer = "tdt" in row.conditions or "timer" in row.conditions
    link = ASPM_LINK_US if "ASPM on" in row.conditions else 0.0
    step = wake("timer" if timer else "device", match["state"], khz, _count(row))
    return _woken(_quiet(name), step, match["stat"],
                  "its own timer" if timer else "interrupt of another device"
                  + (f", whose link sleeps: {link} us" if link else ""), link)


#: What a sleeping link adds to the interrupt of the network card: the difference of two
#: published medians.  The HPET has no such link.
ASPM_LINK_US = 8.76


#: For C0.2 and POLL: from the timer's time to the first line of its handler.
def _interrupts(state: str, khz: int) -> str:
    return wake("timer", state, khz, 2000, "-i -w 50 -x 500")


def c02_latency(row: Row, match: re.Match[str], name: str) -> Experiment:
    khz = 800_000 if "800 MHz" in row.conditions else 2_000_000

    def value(out: list[str]) -> list[float]:
        poll, c02 = (_samples(text, 1000) for text in out)
        return [100 * (statistic(stat, c02) / statistic(stat, poll) - 1)
                for stat in ("median", "p99")]
    return Experiment(_quiet(name), (_interrupts("POLL", khz), _interrupts("C0.2", khz)), value,
                      "interrupt of its own timer, C0.2 and POLL the only states")


def c02_range(row: Row, match: re.Match[str], name: str) -> Experiment:
    steps = tuple(_interrupts(state, khz) for state in ("POLL", "C0.2")
                  for khz in (2_000_000, 800_000))
    return Experiment(_quiet(name), steps, lambda out: [
        end(statistic("median", _samples(text, 1000)) for text in out) for end in (min, max)],
        "least and greatest median of the two rows above")


def cyclictest(row: Row, match: re.Match[str], name: str) -> Experiment:
    _, base = _ends(machine.load(name))
    step = (f"rest_in C1 && clock {base} && cyclictest --laptop -q -t 1 -a 1 -i 100 "
            "-l 20000 -N -p 80")

    def value(out: list[str]) -> list[float | None]:
        found = re.search(r"Avg:\s*(\d+)", out[0])
        if not found:
            raise GuestError("cyclictest said nothing")
        return [None, float(found[1])]
    return Experiment(_quiet(name), (step,), value,
                      "cyclictest; C1 is entered with interrupts on")


# --- power ---------------------------------------------------------------------

def joules(text: str, kind: str = "package") -> float:
    """Of all zones of a kind, from their names and what vs-load says of energy."""
    names = dict(re.findall(r"/(intel-rapl:[\d:]+)/name:(\w+)", text))
    energy = [float(uj) for zone, uj in re.findall(r"^energy (\S+) (\d+)$", text, re.M)
              if names.get(zone) == kind]
    if not energy:
        raise GuestError(f"no energy of {kind}")
    return sum(energy) / 1e6


def _watts(text: str, kind: str = "package") -> float:
    took = re.search(r"^took (\S+)$", text, re.M)
    if not took:
        raise GuestError(f"no energy of {kind}")
    return joules(text, kind) / float(took[1])


def _power(before: str, load: str = "-c none", seconds: float = 1) -> str:
    return f"{before} && watts {seconds:g} {load} -t {seconds:g}"


#: Of steps that rise() fills in: all cores in the deepest state, or in that of the row.
REST = "rest_in {rest} && clock {khz}"


#: Two packages of 8 cores: cores in C2 draw next to nothing, so that the others do not
#: matter for differences.
def _two(name: str, threads: int) -> Guest:
    cores = 8
    return Guest(name, 2 * cores * threads, cores, threads)


AC = "difference of RAPL over both packages; losses of the power supply are not added"


def rise(before: str, after: str, share: int = 1, threads: int = 1) -> Handler:
    """Of power from one step to the next, for each of @share cores or threads."""
    def handler(row: Row, match: re.Match[str], name: str) -> Experiment:
        m = machine.load(name)
        clock = re.search(r"([\d.]+) GHz", f"{row.quantity} {row.conditions}")
        words = {"rest": m.idle[-1].name, "khz": _khz(clock[1]) if clock else _ends(m)[1],
                 **match.groupdict()}
        return Experiment(
            _two(name, threads), (before.format(**words), after.format(**words)),
            lambda out: [(_watts(out[1]) - _watts(out[0])) / share], AC)
    return handler


def firestarter(row: Row, match: re.Match[str], name: str) -> Experiment:
    """The clock that the current limit left is set."""
    m = machine.load(name)
    return Experiment(Guest(name, m.cores * m.threads, heaviest=True),
                      (_power("clock 2000000", "-c all", 0.05),),
                      lambda out: [_watts(out[0])],
                      "all cores busy at the clock that the current limit left, 2.0 GHz")


def rapl(row: Row, match: re.Match[str], name: str) -> Experiment:
    """Of the packages or of all cores, in an idle state or under a load."""
    m = machine.load(name)
    packages = 2 if "both" in row.quantity else m.packages
    threads = m.threads if "all threads" in row.quantity else 1
    clock = re.match(r"([\d.]+) GHz", row.conditions)
    before = f"clock {_khz(clock[1])}" if clock else \
        "put performance $CPU/cpu[0-9]*/cpufreq/scaling_governor"
    state, seconds = match["state"], 0.02
    if state:
        before, seconds = f"rest_in {state} && {before}", 1.0
    zone, count = "package", 1
    if "all cores," in row.quantity:
        zone, count = "core", m.cores	# AMD's register has one core of each package
    return Experiment(
        Guest(name, min(machine.MAX_CPUS, packages * m.cores * threads), threads=threads),
        (_power(before, "-c none" if state else "-c all", seconds),),
        lambda out: [count * _watts(out[0], zone)],
        f"all CPUs in {state}, RAPL" if state else "all CPUs busy, RAPL")


def c02_power(row: Row, match: re.Match[str], name: str) -> Experiment:
    m = machine.load(name)
    khz = 800_000 if "800 MHz" in row.conditions else 2_000_000
    steps = tuple(_power(f"rest_in {state} && clock {khz}", seconds=0.05)
                  for state in ("POLL", "C0.2"))
    return Experiment(Guest(name, m.cores), steps, lambda out: [
        None, 100 * (_watts(out[1]) / _watts(out[0]) - 1)],
        "RAPL of one package, all CPUs idle; the rest of the system has no model")


def idle_power(row: Row, match: re.Match[str], name: str) -> Experiment:
    m = machine.load(name)
    zone = "core" if row.quantity.startswith("core") else "package"
    packages = 1 if "one socket" in row.cpu else m.packages
    # Cores that rest draw next to nothing: fewer, but all packages.
    cores = min(m.cores, machine.MAX_CPUS // packages)
    state = "rest_in C1E" if "no C6" in row.conditions else \
        "rest_in C1" if "C1% 99" in row.conditions else "true"
    step = "sleep 1; " + _power(state, seconds=5)
    guest = Guest(name, packages * cores, cores if packages > 1 and cores < m.cores else 0,
                  threads=1, append="")
    return Experiment(guest, (step,),
                      lambda out: [_watts(out[0], zone)], "idle for 5 s, RAPL")


def idle_mhz(row: Row, match: re.Match[str], name: str) -> Experiment:
    m = machine.load(name)
    append = "cpufreq.default_governor=schedutil" if "schedutil" in row.conditions else ""
    step = "sleep 1; turbostat -q -S --show Bzy_MHz -o /run/t sleep 5; cat /run/t"
    cpus = min(machine.MAX_CPUS, m.packages * m.cores)
    return Experiment(Guest(name, cpus, threads=1, append=append), (step,),
                      lambda out: [float(out[0].split()[-1])], "idle for 5 s, turbostat")


# --- which row is which ----------------------------------------------------------

STAT = r"(?:, (?P<stat>\S.*))?$"

UNCORE = "the clock of the uncore is not modelled"
SYSTEM = "power of a whole system, of which CPU and its limits are a part"
WALL = "at the wall; RAPL counts 36.5 W of it: rows of roco2"
LICENCE = "no clocks for wide instructions are modelled: the emulator has no AVX-512"

#: Kind, quantity, and what repeats it or why nothing does; the first that fits counts.
EXPERIMENTS: list[tuple[str, str, Handler | str]] = [
    ("dvfs|power", r".*uncore", UNCORE),
    ("power", r"update period of the RAPL", "the model's counters are current whenever read"),
    ("dvfs", r"delay of a switch (?P<a>[\d.]+) -> (?P<b>[\d.]+) GHz" + STAT, delay),
    ("dvfs", r"shortest (?P<a>[\d.]+) -> (?P<b>[\d.]+) GHz delay seen", shortest),
    ("dvfs", r"period of the frequency update slots", slots),
    ("dvfs", r"time of the transition itself(?:, (?P<to>up|down))?", transition),
    ("dvfs", r"core frequency switch.*, median", soon_after),
    ("dvfs", r"core frequency switch, worst case", worst_switch),
    ("dvfs", r"extra slots seen", "the pattern is put in, but no experiment isolates it"),
    ("dvfs", r"shared core frequency domains", domains),
    ("dvfs", r"sibling thread idle", sibling),
    ("turbo", r"core frequency under FIRESTARTER", "limits of the current are not modelled"),
    ("turbo|avx", r"turbo for ", turbo),
    ("avx", r"1-thread turbo scalar|single-core scalar", scalar_turbo),
    ("avx", r"", LICENCE),
    ("vf", r"", "voltages are put in; the guest has no register that shows them"),
    ("cstate latency", r"interrupt latency C0\.2 against POLL", c02_latency),
    ("cstate latency", r"range of POLL and C0\.2", c02_range),
    ("cstate latency", r"mean cyclictest latency", cyclictest),
    ("cstate latency", r"added when (?:the caller|caller|the remote)", remote),
    ("cstate latency", r"C6 exit latency in the firmware", "not a measurement"),
    ("cstate latency", r"(?:core )?(?P<state>C\d\w*) exit(?: with package C6 off)?, (?P<stat>.*)",
     exit_by_device),
    ("cstate latency", r"(?P<state>C\d\w*) wake latency, (?P<stat>.*)", wult),
    ("cstate latency", r"wake-up from (?P<state>C\d\w*), local or active remote", below),
    ("cstate latency", r"wake-up from (?P<state>C\d\w*)" + STAT, signalled),
    ("cstate power", r"AC power / RAPL package, C0\.2 against POLL", c02_power),
    ("cstate power", r"increase when the first core", WALL),
    ("cstate power", r"increase for each further core in (?P<state>C\w+) instead of (?P<rest>C\w+)",
     rise(_power(f"{REST} && rest_in {{state}} 1"), _power(REST + "".join(
         f" && rest_in {{state}} {cpu}" for cpu in range(1, 6))), 4)),
    ("cstate power", r"increase for each further active core",
     rise(_power(REST, "-P -c 1", 0.2), _power(REST, "-P -c 1-5", 0.2), 4)),
    ("cstate power", r"increase for the second thread",
     rise(_power(REST, "-P -c 2,4,6,8", 0.2), _power(REST, "-P -c 2-9", 0.2), 4, threads=2)),
    ("power", r"RAPL of (?:both packages|the package|all cores), (?:all threads "
     r"(?P<state>\S+)|usual code on all (?:cores|threads))$", rapl),
    ("power", r"RAPL package under FIRESTARTER", firestarter),
    ("power|cstate power", r"system AC power", SYSTEM),
    ("idle power", r"(?:package|core) power", idle_power),
    ("idle", r"Bzy_MHz", idle_mhz),
]


@cache
def _parts() -> list[tuple[str, str, tuple[int, int], set[str]]]:
    """Name, title's words, family and model, and idle states of each machine."""
    all_of_them = map(machine.load, machine.names())
    return [(m.name, _words(m.title), (m.family, m.model), {state.name for state in m.idle})
            for m in all_of_them]


def _words(text: str) -> str:
    return re.sub(r"^\d+th Gen |\((?:R|TM|tm)\)| CPU\b| \(.*\)|,.*| @.*| [Pp]rocessor"
                  r"| \d+-Core", "", text).lower()


def machine_of(row: Row, state: str = "") -> tuple[str | None, bool]:
    """The machine of the row's part, and True; else one of the same family and model. @state:
    one that has it, if there is any: of a part whose states were recorded, not all may be on."""
    if "Skylake-SP" in row.cpu:
        return PREFERRED[6, 0x55], False
    if "one socket" in row.cpu:
        return {0x31: "epyc-7742", 0x1: "epyc-7763"}[row.model or 0], False
    wanted = _words(row.cpu)
    ours = [part for part in _parts() if part[1] == wanted or part[2] == (row.family, row.model)]
    ours = [part for part in ours if state in part[3]] or ours
    same = [part[0] for part in ours]
    for name, words, *_ in ours:
        if words == wanted:
            return name, True
    preferred = PREFERRED.get((row.family or 0, row.model or 0))
    return preferred if preferred in same else same[0] if same else None, False


#: Of these another part of the same model has other values.
OF_THE_PART = {turbo, scalar_turbo, idle_power, idle_mhz, firestarter, rapl}


def experiment(row: Row) -> Experiment | str:
    """How the row is repeated, or why it is not."""
    if machine_of(row)[0] is None:
        return "no machine file of this family and model"
    for kind, quantity, handler in EXPERIMENTS:
        match = re.match(quantity, row.quantity)
        if not match or not re.fullmatch(kind, row.kind):
            continue
        if isinstance(handler, str):
            return handler
        name, exact = machine_of(row, match.groupdict().get("state") or "")
        assert name
        if handler in OF_THE_PART and not exact and "one socket" not in row.cpu:
            return "no machine file of this part"
        return handler(row, match, name)
    return "no experiment for this quantity"


#: Why predictions are off, where that is known: kind, quantity, reason.
OFF: list[tuple[str, str, str]] = [
    ("dvfs", r"shortest|delay of a switch .*, min", "the guest's loop that sees it takes 4 us"),
    ("dvfs", r"core frequency switch on Skylake-SP", "a wait that is uniform over a slot of "
     "500 us has half of it as median; the published one is a whole slot"),
    ("cstate power", r"increase for (?:each further active|the second)",
     "PAUSE takes 8 more cycles in user space here, at full power"),
    ("cstate latency", r"C\d wake latency, (?:p|max|std).*tdt", "a timer that fires soon after the "
     "CPU went to rest is not foreseen here: the model's entry of 20 us is assumed"),
    ("cstate latency", r"C\d wake latency, std", "from the least to the median the "
     "distribution is linear here, and so too wide"),
    ("cstate latency", r"C\d wake latency, min", "samples of a CPU that was hardly at rest"),
    ("idle power", r"core power", "the share of single cores in idle is assumed"),
    ("idle", r"Bzy_MHz", "an idle guest has not the services whose wake-ups were "
     "averaged"),
]


def why_off(row: Row) -> str:
    what = f"{row.quantity} ({row.conditions})"
    for kind, quantity, reason in OFF:
        if re.fullmatch(kind, row.kind) and re.match(quantity, what):
            return reason
    return ""
