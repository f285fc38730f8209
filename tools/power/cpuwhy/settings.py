# SPDX-License-Identifier: GPL-2.0
"""Rules on what is set up: driver, governor, limits, frequency invariance, clock source."""
from __future__ import annotations

import csv
import pkgutil
import re
from contextlib import suppress
from pathlib import Path

from . import topology, turbo
from .case import (
    CPUS,
    GRUB,
    LINES,
    Case,
    Finding,
    Findings,
    Group,
    bits,
    boot_with,
    cpu_list,
    whom,
    write,
)

#: The project's table of real parts, if it is not beside this file, as in an installation.
PARTS = Path(__file__).resolve().parents[2] / "testing/virtual-silicon/data/turbo.csv"
#: From here on the ratio's rounding is no explanation.
RATIO_OFF = 0.01


#: us; who waits for a message waits this long for an idle state too, at most.
SHALLOW = 20
#: Drivers with governors of their own: powersave is not the lowest clock there.
OWN = {"intel_pstate", "amd-pstate-epp", "amd_pstate_epp"}


def driver(case: Case) -> Findings:
    drivers = case.groups("cpufreq/scaling_driver")
    off = [word for word in case.parameters if word in ("intel_pstate=disable",
                                                        "amd_pstate=disable")]
    said = drivers.get("none")
    if (said or (not drivers and case.live)) and not case.virtual:
        yield Finding("driver", "no cpufreq driver: firmware alone chooses the clock", "slow",
                      "modprobe acpi-cpufreq", lines=tuple(said.lines) if said else (),
                      kind="no-driver")
    acpi = drivers.get("acpi-cpufreq")
    for flag, title, parameter in (("hwp", "HWP", "intel_pstate=active"),
                                   ("cppc", "CPPC", "amd_pstate=active")):
        if acpi and flag in case.flags:
            yield Finding("driver", f"acpi-cpufreq, though the CPU has {title}"
                          + (f" (the kernel was started with {off[0]})" if off else ""), "slow",
                          f"sed -i 's/{off[0]}/{parameter}/' {GRUB} && update-grub && reboot"
                          if off else boot_with(parameter),
                          lines=tuple(acpi.lines) + case.where("proc/cmdline") * bool(off))


def _governors(case: Case, cpus: list[int]) -> str:
    """The command for a governor that follows the load, of those that the machine offers."""
    cpu = cpus[0] if cpus else 0
    offered = case.per_cpu("cpufreq/scaling_available_governors").get(cpu, "").split()
    own = case.per_cpu("cpufreq/scaling_driver").get(cpu, case.driver) in OWN
    for name in ("powersave",) if own else ("schedutil", "ondemand", "conservative"):
        if name in offered or own:
            return f"cpupower frequency-set -g {name}"
    return ""


def governor(case: Case) -> Findings:
    drivers = case.per_cpu("cpufreq/scaling_driver")
    governors = {name: group for name, group in case.groups("cpufreq/scaling_governor").items()
                 if re.fullmatch(r"[\w-]+", name)}
    for name, group in governors.items():
        # Whose governor it is decides what its name means.
        own = drivers.get(group.cpus[0], case.driver)
        known = bool(own) and own not in OWN
        lines = tuple(group.lines)
        remedy = _governors(case, group.cpus)
        if name == "powersave" and known:
            low = case.numbers("cpufreq/scaling_min_freq").get(group.cpus[0], 0)
            yield Finding("governor", f"powersave on {whom(group.cpus)}: always the lowest clock"
                          f" under {own}", "slow", remedy, lines=lines, mhz=low / 1000)
        elif name == "userspace":
            yield Finding("governor", f"userspace on {whom(group.cpus)}: the clock stays where a"
                          " program put it", "slow", remedy, lines=lines)
        elif name == "performance" and known:
            yield Finding("governor", f"performance on {whom(group.cpus)}: always the highest"
                          " clock", "hot", remedy, lines=lines)
    if len(governors) > 1:
        yield Finding("governor", "CPUs differ: " + ", ".join(
            f"{name} on {cpu_list(group.cpus)}" for name, group in governors.items()), "slow",
            _governors(case, []), lines=tuple(g.lines[0] for g in governors.values()))


def governor_name(case: Case) -> Findings:
    """What the name means, where it is often misunderstood."""
    group = case.groups("cpufreq/scaling_governor").get("powersave")
    if group and (own := case.per_cpu("cpufreq/scaling_driver").get(
            group.cpus[0], case.driver)) in OWN:
        yield Finding("governor", f"powersave of {own} follows the load; it is not the lowest"
                      " clock", "note", lines=tuple(group.lines[:1]))


def battery(case: Case) -> Findings:
    for path, fact in case.material.sysfs.items():
        match = re.fullmatch(r"(class/power_supply/[^/]+)/type", path)
        if match and fact.value == "Mains" and case.text(f"{match[1]}/online") == "0":
            yield Finding("power", "it runs on battery", "note",
                          lines=case.where(f"{match[1]}/online"))
            return


def guest(case: Case) -> Findings:
    if case.virtual and not case.per_cpu("cpufreq/scaling_driver"):
        yield Finding("clock", "a virtual machine: without cpufreq its clocks are the host's",
                      "note")


def preference(case: Case) -> Findings:
    name = "cpufreq/energy_performance_preference"
    for value, group in case.groups(name).items():
        offered = case.per_cpu("cpufreq/energy_performance_available_preferences").get(
            group.cpus[0], "balance_performance").split()
        remedy = (write("balance_performance", f"cpu*/{name}")
                  if "balance_performance" in offered else "")
        if value in ("power", "255"):
            yield Finding("EPP", f"{value} on {whom(group.cpus)}: the clock rises late", "slow",
                          remedy, lines=tuple(group.lines))
        elif value in ("performance", "0"):
            yield Finding("EPP", f"performance on {whom(group.cpus)}: the clock hardly falls",
                          "hot", remedy, lines=tuple(group.lines))
    for value, group in case.groups("power/energy_perf_bias").items():
        if value.isdigit() and int(value) >= 13:
            yield Finding("EPB", f"{value} of 15 on {whom(group.cpus)}: energy before speed",
                          "slow", write("6", "cpu*/power/energy_perf_bias"),
                          lines=tuple(group.lines))
    profile = "firmware/acpi/platform_profile"
    offered = case.text(f"{profile}_choices").split()
    if (chosen := case.text(profile)) in ("low-power", "quiet", "cool"):
        yield Finding("EPP", f"the platform's profile is {chosen}", "slow",
                      f"echo balanced > /sys/{profile}" if not offered or "balanced" in offered
                      else "", lines=case.where(profile))


def balance_power(case: Case) -> Findings:
    """The usual preference on battery: a reason only for who asks."""
    group = case.groups("cpufreq/energy_performance_preference").get("balance_power")
    if group:
        yield Finding("EPP", f"balance_power on {whom(group.cpus)}: energy before speed", "slow",
                      write("balance_performance",
                             "cpu*/cpufreq/energy_performance_preference"),
                      lines=tuple(group.lines))


def _highest(case: Case) -> dict[int, int]:
    """kHz that a policy may ask for at most. acpi-cpufreq's table ends below the boost, which
    comes with its first entry; without the table, firmware's limit may be that entry."""
    found = case.numbers("cpufreq/cpuinfo_max_freq")
    tables = case.per_cpu("cpufreq/scaling_available_frequencies")
    firmware = case.numbers("cpufreq/bios_limit")
    for cpu, name in case.per_cpu("cpufreq/scaling_driver").items():
        if name == "acpi-cpufreq" and cpu in found:
            steps = [int(step) for step in tables.get(cpu, "").split() if step.isdigit()]
            found[cpu] = max(steps, default=firmware.get(cpu, found[cpu]))
    return found


def policy_limits(case: Case) -> Findings:
    for kind, effect in (("max", "slow"), ("min", "hot")):
        name = f"cpufreq/scaling_{kind}_freq"
        can = _highest(case) if kind == "max" else case.numbers("cpufreq/cpuinfo_min_freq")
        base = case.numbers("cpufreq/base_frequency")
        found: dict[tuple[int, int], Group] = {}
        for cpu, khz in case.numbers(name).items():
            limit = can.get(cpu, 0)
            if kind == "min" and case.below and len(case.below) == len(
                    case.numbers("cpufreq/scaling_cur_freq")):
                continue        # no CPU keeps to it
            if kind == "max" and case.turbo_off and khz >= base.get(cpu, limit):
                continue        # the switch is named by itself
            percent = case.number(f"{CPUS}/intel_pstate/{kind}_perf_pct")
            highest = case.numbers("cpufreq/cpuinfo_max_freq").get(cpu, 0)
            if percent is not None and abs(100 * khz - percent * highest) <= 2 * highest:
                continue        # so is the per cent, which the driver turns into this
            if limit and (khz < 0.99 * limit if kind == "max" else khz > 1.01 * limit):
                found.setdefault((khz, limit), Group()).add(cpu, case.line(name, cpu))
        for (khz, limit), group in found.items():
            yield Finding("limits", f"scaling_{kind}_freq is {khz // 1000} MHz on"
                          f" {whom(group.cpus)}, the hardware's is {limit // 1000}", effect,
                          write(str(limit), f"cpu*/{name}" if len(found) == 1 else
                                 f"cpu{group.cpus[0]}/{name}" if len(group.cpus) == 1 else
                                 f"cpu{{{','.join(map(str, group.cpus))}}}/{name}"),
                          lines=tuple(group.lines), mhz=khz / 1000 * (kind == "max"),
                          kind=f"policy-{kind}")
    firmware: dict[tuple[int, int], Group] = {}
    can = _highest(case)
    for cpu, khz in case.numbers("cpufreq/bios_limit").items():
        if can.get(cpu, 0) * 0.99 > khz > 0 and not case.turbo_off:
            firmware.setdefault((khz, can[cpu]), Group()).add(
                cpu, case.line("cpufreq/bios_limit", cpu))
    for (khz, limit), group in firmware.items():
        yield Finding("limits", f"firmware (_PPC) allows {khz // 1000} of {limit // 1000} MHz on"
                      f" {whom(group.cpus)}", "slow",
                      "echo 1 > /sys/module/processor/parameters/ignore_ppc",
                      "now", tuple(group.lines), khz / 1000, "firmware-max")


def percent_limits(case: Case) -> Findings:
    top, low = (f"{CPUS}/intel_pstate/{kind}_perf_pct" for kind in ("max", "min"))
    highest = case.numbers("cpufreq/cpuinfo_max_freq")
    percent = case.number(top)
    if percent is not None and percent < 100:
        yield Finding("limits", f"intel_pstate allows {percent} % of the highest clock", "slow",
                      f"echo 100 > /sys/{top}", lines=case.where(top),
                      mhz=max(highest.values(), default=0) / 1000 * percent / 100,
                      kind="max-perf-pct")
    percent = case.number(low)
    can = [(round(100 * khz / highest[cpu]), khz // 1000, highest[cpu] // 1000)
           for cpu, khz in case.numbers("cpufreq/cpuinfo_min_freq").items() if highest.get(cpu)]
    if percent is not None and can and percent > max(can)[0] + 2:
        share, khz, most = max(can)
        yield Finding("limits", f"intel_pstate allows no less than {percent} % of the highest"
                      f" clock (hardware: {khz} of {most} MHz = {share} %)", "hot",
                      f"echo {share} > /sys/{low}", lines=case.where(low), kind="min-perf-pct")


def boost(case: Case) -> Findings:
    switches = ((f"{CPUS}/intel_pstate/no_turbo", "1", "0", "turbo is switched off"),
                (f"{CPUS}/cpufreq/boost", "0", "1", "boost is switched off"))
    by_firmware = [read.where for read in case.reads(0x1A0) if read.value >> 38 & 1]
    by_firmware += [line for _, line in case.said(r"intel_pstate: Turbo disabled by BIOS")]
    has = "ida" in case.flags or "cpb" in case.flags or any(
        mhz > case.base_ratio * case.bus for _, mhz in case.bins)
    mhz = case.base_ratio * case.bus
    for path, bad, good, says in switches:
        if case.text(path) != bad:
            continue
        # A part without turbo says the same; so does firmware that hides it.
        if path.endswith("no_turbo") and (by_firmware or (case.flags and not has)):
            if by_firmware and (has or not case.flags):
                break
            continue
        yield Finding("limits", says, "slow", f"echo {good} > /sys/{path}",
                      lines=case.where(path), mhz=mhz)
        return
    if not by_firmware:
        yield from _i7z(case)
    if by_firmware and (has or case.bins or not case.flags):
        yield Finding("limits", "turbo is switched off by firmware or a program (bit 38 of"
                      " register 0x1a0)", "slow",
                      f"wrmsr -a 0x1a0 {case.material.value(0x1A0) & ~(1 << 38):#x}"
                      if case.reads(0x1A0) else "",
                      lines=tuple(by_firmware[:LINES]) + case.where(switches[0][0]), mhz=mhz)
    off = [read.where for read in case.reads(0xC0010015)
           if read.value >> 25 & 1 and case.vendor == "AuthenticAMD"]
    if off:
        yield Finding("limits", "boost is switched off (bit 25 of register 0xc0010015)", "slow",
                      f"wrmsr -a 0xc0010015 {case.material.value(0xC0010015) & ~(1 << 25):#x}",
                      lines=tuple(off[:LINES]))
    cpus = [cpu for cpu, value in case.per_cpu("cpufreq/boost").items() if value == "0"]
    if cpus:
        yield Finding("limits", f"boost is switched off on {whom(cpus)}", "slow",
                      write("1", "cpu*/cpufreq/boost"),
                      lines=(case.line("cpufreq/boost", cpus[0]),))


def _i7z(case: Case) -> Findings:
    """It says the same of parts without turbo, whose multipliers are equal."""
    said = case.material.said.get("i7z", ())
    off = next((line for line in said if "TURBO DISABLED" in line.text), None)
    base, most = (next((int(match[1]) for line in said
                        if (match := re.search(pattern, line.text))), 0)
                  for pattern in (r"CPU Multiplier (\d+)x", r"TURBO Multiplier.* is +(\d+)x"))
    if off and most > base:
        yield Finding("limits", "turbo is switched off, by firmware or a program", "slow",
                      lines=(off,), mhz=base * case.bus)


def clamp(case: Case) -> Findings:
    path = "proc/sys/kernel/sched_util_clamp_max"
    value = case.number(path)
    if value is not None and value < 1024:
        yield Finding("limits", f"utilisation is clamped to {value} of 1024", "slow",
                      "sysctl kernel.sched_util_clamp_max=1024", lines=case.where(path))


def no_tick(case: Case) -> Findings:
    """CPUs of nohz_full, and what acts there. What kernel a copy is of is not always known."""
    path, idle = f"{CPUS}/nohz_full", f"{CPUS}/cpuidle/current_governor"
    cpus = sorted(topology.cpus(case.text(path)))
    series = bool(case.text(FREQ_MAX) or case.said("freq_invariance: "))
    fault = "slow" if case.live else "note"
    lines, has = case.where(path), f"nohz_full has no tick on {whom(cpus)}"
    governors = [name for cpu, name in case.per_cpu("cpufreq/scaling_governor").items()
                 if cpu in cpus]
    if "schedutil" in governors:
        yield Finding("clock", f"{has}: schedutil asks for the highest while one task runs there",
                      "note", lines=lines) if series else Finding(
            "clock", f"{has}: this kernel's schedutil asks once when a task wakes up, and a task"
            " that runs alone keeps that clock", fault,
            f"cpupower -c {cpu_list(cpus)} frequency-set -g performance", lines=lines)
    governor = case.text(idle) or case.text(f"{idle}_ro")
    deep = {files["name"] for (_, cpu), files in case.states.items() if cpu in cpus
            and files.get("disable") == "0" and int(files.get("latency", "0")) > SHALLOW
            and "name" in files}
    if deep and governor == "teo" and series:
        yield Finding("idle", f"{has}: teo lets it tick there while a stay may be too long for its"
                      " idle state", "note", lines=lines)
    elif deep and governor in ("menu", "teo"):
        remedy = (f"echo teo > /sys/{idle}" if series else
                  f"cpupower -c {cpu_list(cpus)} idle-set -D {SHALLOW}")
        yield Finding("idle", f"{has}: {governor} goes by the next timer there, and messages are"
                      f" waited for in {' and '.join(sorted(deep))}", fault, remedy, lines=lines)


def uncore(case: Case) -> Findings:
    for path in case.material.sysfs:
        match = re.fullmatch(rf"({CPUS}/intel_uncore_frequency/[\w-]+)/max_freq_khz", path)
        now, can = case.number(path), case.number(f"{match[1]}/initial_max_freq_khz") \
            if match else None
        if match and now and can and now < 0.99 * can:
            yield Finding("limits", f"the uncore (mesh, last cache) may have {now // 1000} MHz of"
                          f" {can // 1000}", "slow", f"echo {can} > /sys/{path}",
                          lines=case.where(path))


# --- invariance, clock source ---------------------------------------------------

RATIO_LINE = re.compile(r"Estimated ratio of average max frequency by base frequency"
                        r" \(times 1024\): (\d+)")
FREQ_MAX = "module/aperfmperf/parameters/freq_max"
INVARIANCE = "kernel/debug/x86/freq_invariance"


def invariance(case: Case) -> Findings:
    if bad := case.said(r"CPU (\d+): APERF and MPERF (?:are unusable|make no sense)"):
        cpus = {int(match[1]) for match, _ in bad}
        yield Finding("invariance", f"counters of {whom(cpus)} made no sense, their clock counted"
                      " as the highest meanwhile", "slow",
                      "grep cpu /sys/kernel/debug/x86/freq_invariance", "seen", (bad[0][1],))
    if case.flags and "aperfmperf" not in case.flags:
        group = case.groups("cpufreq/scaling_governor").get("schedutil")
        if group:
            offered = case.per_cpu("cpufreq/scaling_available_governors").get(group.cpus[0], "")
            yield Finding("invariance", "off: the CPU has no APERF and MPERF, schedutil does not"
                          " know the clock", "slow", "cpupower frequency-set -g ondemand"
                          if "ondemand" in offered.split() else "", lines=tuple(group.lines[:1]))
        return
    wobbly, said = case.said("went wobbly"), case.said(r"freq_invariance: (off.*)")
    ratio = case.said(RATIO_LINE.pattern)
    if wobbly:
        yield Finding("invariance", "off since a bad sample of APERF and MPERF", "slow", "reboot",
                      lines=(wobbly[0][1],))
    elif case.text(FREQ_MAX) == "off" or (said and not case.text(FREQ_MAX)):
        yield Finding("invariance", said[-1][0][1] if said else "off", "slow",
                      "dmesg | grep freq_invariance",
                      lines=case.where(FREQ_MAX) + tuple(line for _, line in said[-1:]))
    elif (case.intel and case.flags and not (ratio or case.virtual or case.text(FREQ_MAX))
          and _says_ratio(case)):
        yield Finding("invariance", "off: the kernel found no turbo table of this model"
                      f" ({case.name or 'unknown'})", "slow", "use a kernel that knows the model",
                      lines=(case.said("Linux version")[0][1],))


def _says_ratio(case: Case) -> bool:
    """Would the kernel have said the ratio in this log? Since 5.11, while it starts CPUs."""
    version = case.said(r"Linux version (\d+)\.(\d+)")
    return bool(version and (int(version[0][0][1]), int(version[0][0][2])) >= (5, 11)
                and case.said(r"smp: Brought up|smpboot: CPU0:"))


def parts() -> list[dict[str, str]]:
    text = None
    with suppress(OSError):
        text = pkgutil.get_data(__package__ or "cpuwhy", "turbo.csv")       # in cpuwhy.pyz too
    with suppress(OSError):
        text = text or PARTS.read_bytes()
    return list(csv.DictReader(text.decode().splitlines())) if text else []


def _registers(part: dict[str, str]) -> dict[int, int]:
    return {int(key[4:], 16): int(part[key], 16)
            for key in ("msr_0xce", "msr_0x1ad", "msr_0x1ae", "msr_0x1af") if part[key]}


def _own_ratio(case: Case, patched: bool) -> tuple[set[int], str]:
    """What the machine's own registers give."""
    values = {address: case.material.value(address)
              for address in (0x1AD, 0x1AE, 0x1AF, 0x66C) if case.reads(address)}
    base = bits(case.material.value(0xCE), 15, 8)
    right = turbo.freq_max(case.model, values, base, patched) if case.model and base else None
    return ({right}, "the turbo registers give") if right else (set(), "")


def _of_parts(case: Case, patched: bool) -> tuple[set[int], str]:
    """What parts of this name with the same base and highest clock have; others of the name
    may have another level of cTDP, other firmware, or be overclocked."""
    highest = max(case.numbers("cpufreq/cpuinfo_max_freq").values(), default=0) / 1000
    named = re.search(r"@ ([\d.]+)GHz", case.name)
    base = (max(case.numbers("cpufreq/base_frequency").values(), default=0) / 1000
            or (float(named[1]) * 1000 if named else 0))
    same: set[int] = set()
    logged: set[int] = set()
    for row in parts():
        if " ".join(row["cpu_name"].split()) != case.name:
            continue
        logged |= {int(value) for value in re.findall(r"\d+", row["logged"] or "")}
        values, model = _registers(row), int(row["model"], 16)
        bins = [ratio for _, ratio in turbo.decode(turbo.layout(model) or "bytes", values)]
        ratio = bits(values.get(0xCE, 0), 15, 8)
        if bins and ratio and _near(ratio * case.bus, base) and _near(max(bins) * case.bus,
                                                                      highest):
            all_cores = patched and model in turbo.ALL_CORES
            value = (turbo.freq_max(model, values, ratio) if all_cores
                     else int(row["expected"]) if row["expected"].isdigit() else None)
            same |= {value} if value else set()
    return (same | logged, "real parts of this name and these clocks have") if same else (set(), "")


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= 0.015 * other


def freq_max(case: Case) -> Findings:
    """Judged only against this machine's registers, or against parts with the same ratios."""
    ratio, lines = None, case.where(INVARIANCE)
    if of_cpus := re.search(r"^cpu \d+ .*freq_max (\d+)", case.text(INVARIANCE), re.M):
        ratio = int(of_cpus[1])
    elif said := case.said(RATIO_LINE.pattern):
        ratio, lines = int(said[0][0][1]), (said[0][1],)
    if not ratio or case.turbo_off or case.virtual:
        return
    patched = bool(case.text(FREQ_MAX))
    known, what = _own_ratio(case, patched)
    # Of a text, the kernel may be any.
    either = patched or case.live
    if known and not either:
        known |= _own_ratio(case, True)[0]
    if not known and case.name:
        known, what = _of_parts(case, patched)
        known |= _of_parts(case, True)[0] if known and not either else set()
    if known and all(abs(ratio - value) > RATIO_OFF * value for value in known):
        all_cores = case.model in turbo.ALL_CORES
        yield Finding("freq_max", f"is {ratio}/1024 of base, {what}"
                      f" {'/'.join(map(str, sorted(known)))}",
                      "slow" if ratio > max(known) else "hot",
                      f"echo {'255c' if all_cores else '4c'} > /sys/{FREQ_MAX}" if patched
                      else "update the microcode or the kernel", lines=lines)


def clock_source(case: Case) -> Findings:
    source = "devices/system/clocksource/clocksource0"
    current = case.text(f"{source}/current_clocksource")
    if current in ("hpet", "acpi_pm", "jiffies"):
        said = case.said(r"Marking (?:TSC unstable|clocksource 'tsc' as unstable) (.*)")
        why = f" ({said[-1][0][1].strip()})" if said else ""
        offered = case.text(f"{source}/available_clocksource").split()
        yield Finding("clock", f"clocksource {current}: each reading takes about a us{why}",
                      "slow", f"echo tsc > /sys/{source}/current_clocksource"
                      if "tsc" in offered else "update the firmware" if offered or said else "",
                      lines=case.where(f"{source}/current_clocksource")
                      + tuple(line for _, line in said[-1:]))
