# SPDX-License-Identifier: GPL-2.0
"""Rules on what limits the clock in hardware: power, heat, PROCHOT, cTDP, requests of HWP.

Bits of registers: SDM volume 4; AMD's PPR. A status bit says now, a log bit that it was so
since somebody cleared the bit.
"""
from __future__ import annotations

import re
from dataclasses import dataclass

from .case import BUSY, CPUS, LINES, Case, Finding, Findings, Group, bits, cell, duration, whom
from .settings import percent_limits, policy_limits
from .texts import Register, Where


def ctdp(case: Case) -> Findings:
    nominal = bits(case.material.value(0x648), 7, 0) or case.base_ratio
    unit = bits(case.material.value(0x606), 3, 0)
    found: dict[int, Group] = {}
    for read in case.reads(0x64B):
        found.setdefault(read.value & 3, Group()).add(read.cpu, read.where)
    active = case.material.register(0x64C)
    ratio = bits(active.value, 7, 0) if active else 0
    for level, group in found.items():
        of_level = case.material.register({1: 0x649, 2: 0x64A}.get(level, 0))
        base = bits(of_level.value, 23, 16) if of_level else 0
        if not base and ratio:
            base = ratio + 1
        if level not in (1, 2) or not base or not nominal or base >= nominal:
            continue
        watts = bits(of_level.value, 14, 0) / 2**unit if of_level and case.reads(0x606) else 0
        control = case.material.value(0x64B)
        lines = [*group.lines[:1], *(r.where for r in (of_level, active) if r)]
        yield Finding("cTDP", f"level {level} is chosen: base clock {base * case.bus:.0f} MHz"
                      f" instead of {nominal * case.bus:.0f}"
                      + (f", {watts:g} W" if watts else "")
                      + ("; locked until a reset" if control >> 31 & 1 else ""), "slow",
                      "" if control >> 31 & 1 else
                      f"wrmsr -a 0x64b {control & ~3:#x}   # or the firmware's menu", "now",
                      tuple(lines), base * case.bus)
        return
    if active and nominal and 0 < ratio < nominal - 1:
        yield Finding("cTDP", f"clocks above {ratio * case.bus:.0f} MHz count as turbo, the part's"
                      f" base clock is {nominal * case.bus:.0f}", "slow",
                      "" if active.value >> 31 & 1 else f"wrmsr -a 0x64c {nominal - 1:#x}",
                      lines=(active.where,))


@dataclass(frozen=True)
class Signal:
    """A reason that a register has: @now its status bit, @was its log bit."""
    key: str
    now: bool
    was: bool
    cpu: int | None
    line: Where
    register: int


#: Bits of registers 0x64f and 0x690; the log bit is 16 higher. The turbo table at work
#: (bits 12 and 13 of client parts) is no fault.
REASONS = {0: "prochot", 1: "thermal", 6: "regulator", 8: "current", 10: "PL1", 11: "PL2"}
HASWELL = {**REASONS, 4: "graphics", 9: "core power"}
SKYLAKE = {**REASONS, 4: "residency", 5: "average heat", 7: "regulator"}
#: Haswell's and Broadwell's servers; their bit 10 is the turbo table.
SERVERS, OF_SERVERS = {0x3F, 0x4F, 0x56}, {0: "prochot", 1: "thermal", 2: "budget",
                                          3: "platform", 6: "regulator", 8: "current"}
GOLDMONT, OF_GOLDMONT = {0x5C, 0x5F, 0x7A}, {0: "prochot", 1: "thermal", 2: "PL1", 3: "PL2",
                                             9: "core power", 10: "regulator", 12: "current"}
#: Two bits that all have, where the others are not documented.
UNSURE, OF_UNSURE = ({0x55, 0x6A, 0x6C, 0x8F, 0xAD, 0xAE, 0xAF, 0xB6, 0xCF, 0xDD, 0x57, 0x85},
                     {0: "prochot", 1: "thermal"})
ATOMS = {0x37, 0x4A, 0x4C, 0x4D, 0x5A, 0x5D, 0x75}
REASONS_OF: tuple[tuple[set[int], dict[int, str]], ...] = (
    (SERVERS, OF_SERVERS), (GOLDMONT, OF_GOLDMONT), (UNSURE, OF_UNSURE), (ATOMS, {}))


def reasons(model: int, register: int) -> dict[int, str]:
    usual = HASWELL if register == 0x690 else SKYLAKE
    return next((bits for models, bits in REASONS_OF if model in models), usual)


OF_THERMAL = {0: "thermal", 2: "prochot", 4: "critical", 10: "power", 12: "current", 14: "cross"}


def signals(case: Case) -> list[Signal]:
    found = []
    for address in (0x64F, 0x690):
        for read in case.reads(address):
            found += [Signal(key, bool(read.value >> bit & 1), bool(read.value >> bit + 16 & 1),
                             read.cpu, read.where, address)
                      for bit, key in reasons(case.model, address).items()]
    for address in (0x19C, 0x1B1):
        for read in case.reads(address):
            found += [Signal(key, bool(read.value >> bit & 1), bool(read.value >> bit + 1 & 1),
                             read.cpu, read.where, address) for bit, key in OF_THERMAL.items()]
    return [signal for signal in found if signal.now or signal.was]


def _which(found: list[Signal]) -> tuple[str, tuple[Where, ...]]:
    """(on which CPUs, the lines), each register once."""
    cpus = sorted({s.cpu for s in found if s.cpu is not None and s.register == 0x19C})
    return f" on {whom(cpus)}" if cpus else "", tuple(dict.fromkeys(s.line for s in found))[:LINES]


def _temperature(case: Case) -> float | None:
    """Degrees below the limit, of the hottest CPU."""
    found = [bits(read.value, 22, 16) for address in (0x19C, 0x1B1)
             for read in case.reads(address) if read.value >> 31 & 1 or address == 0x1B1]
    return min(found) if found else None


def _celsius(case: Case) -> str:
    below, target = _temperature(case), case.material.register(0x1A2)
    if below is None:
        return ""
    if target and (limit := bits(target.value, 23, 16)):
        return f" at {limit - below:.0f} C (limit {limit})"
    return f" at {below:.0f} degrees below the limit"


def _history(found: list[Signal], about: str, says: str) -> Findings:
    logged = [s for s in found if s.was]
    if logged and not any(s.now for s in found):
        _, lines = _which(logged)
        yield Finding(about, f"{says}, but not now (log bits)", "slow", when="was", lines=lines)


#: Degrees: from here to the limit the clock is about to fall.
NEAR = 10


def prochot(case: Case) -> Findings:
    found = [s for s in signals(case) if s.key == "prochot"]
    now = [s for s in found if s.now]
    yield from _history(found, "PROCHOT", "the signal was raised")
    if not now:
        return
    hot = any(s.now for s in signals(case) if s.key in ("thermal", "critical"))
    below = _temperature(case)
    outside = not hot and (below is None or below > 5)
    control = case.material.register(0x1FC)
    whom, lines = _which(now)
    says = (f"another chip holds the clock at its lowest{whom}"
            f"{_celsius(case)}: charger, battery, voltage regulator or a sensor of the board"
            if outside else f"the CPU is too hot{_celsius(case)}{whom}")
    remedy = ""
    if outside and control and control.value & 1:
        remedy = (f"wrmsr -a 0x1fc {control.value & ~1:#x}   # ignores the signal; look at charger"
                  " and battery first")
        lines = (*lines[:LINES - 1], control.where)
    yield Finding("PROCHOT", says, "slow", remedy or "" if outside else "check fans and cooling",
                  "now", lines)


def heat(case: Case) -> Findings:
    found = [s for s in signals(case) if s.key in ("thermal", "critical", "average heat")]
    now = [s for s in found if s.now]
    yield from _history(found, "heat", "the CPU was too hot and was slowed down")
    if now and not any(s.now and s.key == "prochot" for s in signals(case)):
        whom, lines = _which(now)
        yield Finding("heat", f"the CPU is too hot{_celsius(case)}{whom} and is slowed down",
                      "slow", "check fans and cooling", "now", lines)
    target = case.material.register(0x1A2)
    limit = bits(target.value, 23, 16) if target else 0
    hottest = max(((cell(row, "PkgTmp", "CoreTmp"), line) for row, line in case.rows),
                  default=(0.0, None), key=lambda item: item[0])
    if hottest[1] and limit and hottest[0] >= limit - NEAR and not now and any(
            s.was for s in found):
        yield Finding("heat", f"it got to {hottest[0]:.0f} C of {limit}, and the log bit says that"
                      " the CPU was slowed down", "slow", "check fans and cooling", "seen",
                      (hottest[1], next(s.line for s in found if s.was)))
    offset = bits(target.value, 29, 24) if target else 0
    if target and offset >= 10 and limit > offset:
        yield Finding("heat", f"the CPU slows down at {limit - offset} C, {offset} below the"
                      " part's limit", "slow", "" if target.value >> 31 & 1 else
                      f"wrmsr -a 0x1a2 {target.value & ~(0x3F << 24):#x}", lines=(target.where,))


def electrical(case: Case) -> Findings:
    titles = {"regulator": "the voltage regulator is too hot or at its current limit",
              "current": "the electrical limit (current) is reached",
              "core power": "the cores' own power limit is reached",
              "budget": "the power budget of the package is used up",
              "platform": "the platform limits the clock",
              "graphics": "graphics takes the power of the cores",
              "residency": "firmware limits how long cores may run (duty cycle)"}
    for key, title in titles.items():
        found = [s for s in signals(case) if s.key == key]
        yield from _history(found, "current", title)
        if now := [s for s in found if s.now]:
            whom, lines = _which(now)
            yield Finding("current", f"{title}{whom}", "slow", "", "now", lines)


@dataclass(frozen=True)
class Power:
    """A limit of a package's power."""
    which: str              # PL1, PL2
    watts: float
    lines: tuple[Where, ...]
    command: str            # that takes a number of uW or ""
    locked: bool = False


def power_limits(case: Case) -> list[Power]:
    found = []
    units = case.material.register(0x606)
    # Silvermont's unit is another.
    for read in case.reads(0x610)[:1] if units and case.model not in ATOMS else ():
        assert units
        unit = 1 / 2 ** bits(units.value, 3, 0)
        for which, low in (("PL1", 0), ("PL2", 32)):
            half = read.value >> low
            if half >> 15 & 1 and half & 0x7FFF:
                found.append(Power(which, (half & 0x7FFF) * unit, (read.where,), "",
                                   bool(read.value >> 63)))
    locked = any(limit.locked for limit in found)
    for path in case.material.sysfs:
        match = re.search(r"(intel-rapl(?:-mmio)?:\d+)/constraint_(\d)_power_limit_uw$", path)
        uw = case.number(path)
        if match and uw:
            name = case.text(path.replace("power_limit_uw", "name")) or match[2]
            which = {"long_term": "PL1", "short_term": "PL2", "0": "PL1", "1": "PL2"}.get(name, "")
            on = case.text(re.sub(r"constraint_\d_power_limit_uw", "enabled", path))
            if which and on != "0":
                via = "mmio" in match[1]
                found.append(Power(which, uw / 1e6, case.where(path),
                                   "" if locked and not via else f"/sys/{path}", locked))
    return found


def rated(case: Case) -> tuple[float, tuple[Where, ...]]:
    """(W of TDP, its line); 0 if nothing says it."""
    info, units = case.material.register(0x614), case.material.register(0x606)
    if info and units and case.model not in ATOMS:      # theirs is in another unit
        if watts := bits(info.value, 14, 0) / 2 ** bits(units.value, 3, 0):
            return watts, (info.where,)
    for path in case.material.sysfs:
        if re.search(r"intel-rapl:\d+/constraint_0_max_power_uw$", path) and case.number(path):
            return (case.number(path) or 0) / 1e6, case.where(path)
    return 0.0, ()


def power(case: Case) -> Findings:
    limits, (tdp, _), drawn = power_limits(case), rated(case), case.watts
    for which in ("PL1", "PL2"):
        of = [limit for limit in limits if limit.which == which]
        lowest = min(of, key=lambda limit: limit.watts) if of else None
        found = [s for s in signals(case) if s.key == which
                 or (which == "PL1" and s.key == "power")]
        now = [s for s in found if s.now]
        size = f" is {lowest.watts:.3g} W" if lowest else ""
        locked = "; locked until a reset" if lowest and lowest.locked else ""
        # A package that draws what it may, with a clock below its bin, is at the limit.
        at_limit = (lowest and drawn and which == "PL1" and case.losses
                    and 0.95 * lowest.watts <= drawn[0] <= 1.05 * lowest.watts)
        remedy = next((f"echo {round(tdp * 1e6)} > {limit.command}" for limit in of
                       if limit.command and limit is lowest and limit.watts < 0.95 * tdp), "")
        lines = lowest.lines if lowest else ()
        if now or at_limit:
            _, why = _which(now)
            drawn_line = (drawn[1],) if drawn else ()
            drawing = f": {drawn[0]:.3g} W drawn" if drawn else ""
            if lowest and drawn and drawn[0] < 0.8 * lowest.watts:
                drawing += (", less than that, so another limit acts too (cTDP, firmware, the copy"
                            " in MMIO)")
            # The status of heat and power does not tell which of the limits it is.
            name = f"limit {which}" if at_limit or any(s.key == which for s in now) else \
                f"a power limit holds the clock now; {which}"
            holds = f"{' and' * bool(size)} holds the clock now" if name.startswith("limit") else ""
            yield Finding("power", f"{name}{size}{holds}{drawing}{locked}", "slow", remedy, "now",
                          tuple(dict.fromkeys((*why[:2], *lines[:1], *drawn_line))))
            continue
        yield from _history(found, "power", f"limit {which} held the clock")
        if lowest and which == "PL1" and lowest.watts < 0.9 * tdp:
            yield Finding("power", f"limit PL1{size}, the part is made for {tdp:.3g}{locked}",
                          "slow", remedy, lines=lines)


def duty(case: Case) -> Findings:
    found: dict[int, Group] = {}
    for read in case.reads(0x19A):
        if read.value >> 4 & 1 and read.value & 0xF:
            found.setdefault(read.value & 0xF, Group()).add(read.cpu, read.where)
    for share, group in found.items():
        yield Finding("duty", f"clock modulation lets {whom(group.cpus)} run {share} of 16 of the"
                      " time", "slow", "wrmsr -a 0x19a 0", "now", tuple(group.lines))


def p_state_limit(case: Case) -> Findings:
    """AMD, families without CPPC."""
    found: dict[int, Group] = {}
    for read in case.reads(0xC0010061) if case.vendor == "AuthenticAMD" else ():
        if read.value & 7:
            found.setdefault(read.value & 7, Group()).add(read.cpu, read.where)
    for state, group in found.items():
        yield Finding("limits", f"hardware or firmware allows no more than P{state} on"
                      f" {whom(group.cpus)}", "slow", "", "now", tuple(group.lines))


def cooling(case: Case) -> Findings:
    for path in case.material.sysfs:
        match = re.fullmatch(r"(.*/cooling_device\d+)/type", path)
        kind = case.text(path) if match else ""
        now = case.number(f"{match[1]}/cur_state") if match else None
        if match and now and now > 0 and kind in ("Processor", "intel_powerclamp") or \
                (match and now and now > 0 and kind.startswith(("cpufreq-", "processor"))):
            yield Finding("heat", f"the kernel's thermal control slows CPUs down ({kind}, step"
                          f" {now} of {case.text(match[1] + '/max_state') or '?'})", "slow",
                          "check fans and cooling", "now", case.where(f"{match[1]}/cur_state"))


def throttled(case: Case) -> Findings:
    """How often and how long; history, with its size."""
    for kind in ("core", "package"):
        counts = {cpu: n for cpu, n in case.numbers(
            f"thermal_throttle/{kind}_throttle_count").items() if n}
        if not counts:
            continue
        times = case.numbers(f"thermal_throttle/{kind}_throttle_total_time_ms")
        longest = case.numbers(f"thermal_throttle/{kind}_throttle_max_time_ms")
        worst = max(counts, key=lambda cpu: (times.get(cpu, 0), counts[cpu]))
        name = f"thermal_throttle/{kind}_throttle_"
        lines = [case.line(f"{name}count", worst)]
        words = case.text("proc/uptime").split()
        up = float(words[0]) if words and re.fullmatch(r"[\d.]+", words[0]) else 0.0
        small = False
        size = "; for how long is not in the files" if not case.live else \
            "; this kernel does not say for how long"
        if worst in times:
            lines.append(case.line(f"{name}total_time_ms", worst))
            small = times[worst] < (up if up else 1000)       # 1 ms of each second
            size = f", {duration(times[worst])} in all" + (
                f" since boot, {up / 3600:.3g} h ago" if up else "") + (
                f", the longest {duration(longest[worst])}" if worst in longest else "")
        yield Finding("limits", f"{whom(counts) if kind == 'core' else 'the package'} got too hot"
                      f" and was slowed down {max(counts.values())} times{size}", "slow",
                      "" if small else "check fans and cooling", "was" if small else "seen",
                      tuple(lines))
    if not case.has(rf"{CPUS}/cpu\d+/thermal_throttle/"):
        events = case.said(r"CPU(\d+): (Core|Package) temperature.* above threshold.*"
                           r"throttled \(total events = (\d+)\)")
        if events:
            match, line = max(events, key=lambda item: int(item[0][3]))
            yield Finding("limits", f"the {match[2].lower()} of CPU {match[1]} got too hot and was"
                          f" slowed down {match[3]} times; for how long is not in the log", "slow",
                          "check fans and cooling", "seen", (line,))


def hwp(case: Case) -> Findings:
    """What the driver has asked of HWP (Intel) or CPPC (AMD)."""
    if case.reads(0x770) and not case.material.value(0x770) & 1:
        return
    amd = case.vendor == "AuthenticAMD"
    title, caps_at, ask_at = (("CPPC", 0xC00102B0, 0xC00102B3) if amd else
                              ("HWP", 0x771, 0x774))
    limited = any(f.about == "limits" for rule in (policy_limits, percent_limits)
                  for f in rule(case))
    found: dict[tuple[str, str, str, float], Group] = {}
    highest_khz = max(case.numbers("cpufreq/cpuinfo_max_freq").values(), default=0)
    performance = "performance" in case.groups("cpufreq/scaling_governor")
    for read in case.reads(ask_at):
        caps = case.material.register(caps_at, read.cpu)
        if not caps:
            continue
        value = read.value
        if not amd and value >> 42 & 1 and case.reads(0x772):
            value = case.material.value(0x772)
        if amd:
            high, good, low = (bits(caps.value, 31, 24), bits(caps.value, 23, 16),
                               bits(caps.value, 7, 0))
            most, least = bits(value, 7, 0), bits(value, 15, 8)
        else:
            high, good, low = (bits(caps.value, 7, 0), bits(caps.value, 15, 8),
                               bits(caps.value, 31, 24))
            most, least = bits(value, 15, 8), bits(value, 7, 0)
        wanted, epp = bits(value, 23, 16), bits(value, 31, 24)
        mhz = (highest_khz / 1000 * most / high) if high and highest_khz else (
            most * case.bus if not amd and not case.reads(0x650)
            and not case.material.known("hybrid") else 0.0)

        def say(kind: str, says: str, effect: str, clock: float = 0.0,
                read: Register = read) -> None:
            found.setdefault((kind, says, effect, clock), Group()).add(read.cpu, read.where)

        allowed = good if case.turbo_off else high
        if 0 < most < allowed and not limited:
            say("hwp-max", f"{title} may go to {most} of {high}", "slow", mhz)
        if wanted and case.driver in ("intel_pstate", "amd-pstate-epp"):
            say("hwp-desired", f"{title}'s desired performance is fixed at {wanted} of {high}",
                "slow")
        if least > low and least >= 0.4 * high and not performance and not limited:
            say("hwp-min", f"{title} may not go below {least} of {high} (lowest {low})", "hot")
        if epp == 0xFF and not case.per_cpu("cpufreq/energy_performance_preference"):
            say("epp", "energy preference 255 (power): the clock rises late", "slow")
    for (kind, says, effect, clock), group in found.items():
        yield Finding(title, says + (f" on {whom(group.cpus)}" if group.cpus else ""), effect,
                      lines=tuple(group.lines), mhz=clock, kind=kind)


def bias(case: Case) -> Findings:
    """Energy bias, as a register."""
    found: dict[int, Group] = {}
    for read in case.reads(0x1B0):
        if read.value & 0xF >= 13:
            found.setdefault(read.value & 0xF, Group()).add(read.cpu, read.where)
    if case.per_cpu("power/energy_perf_bias"):
        return
    for value, group in found.items():
        yield Finding("EPB", f"{value} of 15 on {whom(group.cpus)}: energy before speed", "slow",
                      "x86_energy_perf_policy normal", lines=tuple(group.lines))


def below(case: Case) -> Findings:
    if case.below:
        cpu, (khz, least) = min(case.below.items(), key=lambda item: item[1])
        yield Finding("clock", f"CPU {cpu} had {khz // 1000} MHz, below the {least // 1000} that"
                      " its driver asks for at least: that is hardware or firmware (heat, PROCHOT,"
                      " clock modulation, idling), no setting", "note",
                      lines=(case.line("cpufreq/scaling_cur_freq", cpu),))


def lost_clock(case: Case) -> Findings:
    """Is there a loss at all? A clock equal to the bin of the active cores is none."""
    rows = case.busy
    if not rows:
        if case.rows:
            yield Finding("clock", f"no CPU was busy for {BUSY:.0f} % of the time: the clock of"
                          " busy CPUs is not in the files", "note")
        return
    if not case.losses:
        row = min(rows, key=lambda r: r.mhz)
        mhz, what = case.expected(row)
        if mhz:
            yield Finding("clock", f"CPU {row.cpu} had {row.mhz:.0f} MHz while it was busy for"
                          f" {row.share:.0f} % of the time; {what} is {mhz:.0f}: no loss", "note",
                          lines=(row.line,))
        return
    row, mhz, what = min(case.losses, key=lambda item: item[0].mhz / item[1])
    yield Finding("clock", f"CPU {row.cpu} had {row.mhz:.0f} MHz while it was busy for"
                  f" {row.share:.0f} % of the time; {what} is {mhz:.0f}", "note", "", "now",
                  (row.line,))
