# SPDX-License-Identifier: GPL-2.0
"""Rules on idle: driver, states that are off, too deep or too shallow, package states."""
from __future__ import annotations

import re

from .case import CPUS, GRUB, LINES, SHARE, Case, Finding, Findings, Group, cell, whom, write
from .texts import Where

#: Kernel parameters that keep CPUs awake; in a virtual machine only the first three.
KEEP_AWAKE = (r"idle=poll", r"nohz=off", r"highres=off", r"idle=halt", r"cpuidle\.off=1",
              r"intel_idle\.max_cstate=[0-5]", r"processor\.max_cstate=[0-5]",
              r"intel_idle\.states_off=[1-9]\d*", r"idle=nomwait")


def idle_driver(case: Case) -> Findings:
    directory = f"{CPUS}/cpuidle"
    name = case.text(f"{directory}/current_driver")
    # A virtual machine's HLT gives the CPU to the host; that is as it should be.
    if (name == "none" or (case.live and not name)) and not case.virtual:
        yield Finding("idle", "no cpuidle driver: CPUs only halt", "hot",
                      "modprobe intel_idle; check that firmware gives C-states",
                      lines=case.where(f"{directory}/current_driver"), kind="idle-missing")
    for parameter in case.parameters:
        if any(re.fullmatch(pattern, parameter)
               for pattern in KEEP_AWAKE[:3 if case.virtual else None]):
            yield Finding("idle", f"the kernel was started with {parameter}", "hot",
                          f"sed -i 's/{parameter}//' {GRUB} && update-grub && reboot",
                          lines=case.where("proc/cmdline"), kind="idle-missing")
    governor = case.text(f"{directory}/current_governor") or case.text(
        f"{directory}/current_governor_ro")
    if governor == "ladder" and name != "none" and "nohz=off" not in case.parameters:
        offered = case.text(f"{directory}/available_governors").split()
        yield Finding("idle", "governor ladder, which is made for a tick that never stops", "hot",
                      f"echo menu > /sys/{directory}/current_governor"
                      if not offered or "menu" in offered else "",
                      lines=case.where(f"{directory}/current_governor",
                                       f"{directory}/current_governor_ro")[:1])


def shallow_only(case: Case) -> Findings:
    """cpupower lists all that there are."""
    for line in case.material.said.get("cpupower", ()):
        match = re.match(r"Available idle states: (.*)", line.text)
        if match and not case.virtual and not re.search(
                r"\bC(?:[3-9]|10|2)", match[1]):
            yield Finding("idle", f"there are no states but {match[1]}: firmware hides the deeper"
                          " ones, or a kernel parameter", "hot",
                          "grep -o 'max_cstate=[^ ]*' /proc/cmdline", lines=(line,),
                          kind="idle-missing")
            return


def off_by_default(case: Case) -> Findings:
    """By driver or firmware. Of C1 and C1E parts offer one, so either may be off; servers
    often are without C3, which is no fault while a deeper state is on."""
    found: dict[tuple[str, bool], Group] = {}
    deepest: dict[int, int] = {}
    for (state, cpu), files in case.states.items():
        if files.get("default_status") == "enabled" or files.get("disable") == "0":
            deepest[cpu] = int(state[5:])
    for (state, cpu), files in case.states.items():
        title = files.get("name", state)
        if (files.get("default_status") == "disabled" and files.get("disable") != "0"
                and not re.match(r"POLL|C1(?!\d)", title)):
            found.setdefault((title, deepest.get(cpu, 0) > int(state[5:])), Group()).add(
                cpu, case.line(f"cpuidle/{state}/default_status", cpu))
    for (title, deeper), group in found.items():
        yield Finding("idle", f"{title} is off by default on {whom(group.cpus)}: firmware's table"
                      " (_CST) does not have it, or intel_idle.states_off"
                      + ("; a deeper state is on" if deeper else ""),
                      "note" if deeper else "hot", f"echo 0 | tee {_by_name(title)}",
                      lines=tuple(group.lines))


def _by_name(state: str) -> str:
    """Its switches, whatever its number is."""
    return f"$(grep -lx {state} /sys/{CPUS}/cpu*/cpuidle/state*/name | sed 's/name$/disable/')"


def disabled(case: Case) -> Findings:
    found: dict[tuple[int, str], Group] = {}
    on: dict[int, list[tuple[int, str]]] = {}
    states = case.states
    for (state, cpu), files in states.items():
        title, number = files.get("name", state), int(state[5:])
        if files.get("disable") == "1" and files.get("default_status") != "disabled":
            found.setdefault((number, title), Group()).add(
                cpu, case.line(f"cpuidle/{state}/disable", cpu))
        elif files.get("disable") == "0" or files.get("default_status") == "enabled":
            on.setdefault(cpu, []).append((number, title))
    for (number, title), group in sorted(found.items(), key=lambda item: item[0]):
        if title == "POLL":
            continue
        deeper = [name for at, name in on.get(group.cpus[0], ()) if at > number]
        # States are disabled from the deepest up, unless a script went by numbers.
        by_number = (f" while {deeper[-1]} is not: was it written by number?" if deeper else "")
        yield Finding("idle", f"{title} is disabled on {whom(group.cpus)}{by_number}", "hot",
                      f"echo 0 | tee {_by_name(title)}" if by_number
                      else write("0", f"cpu*/cpuidle/state{number}/disable"),
                      lines=tuple(group.lines))


def resume_latency(case: Case) -> Findings:
    name = "power/pm_qos_resume_latency_us"
    for value, group in case.groups(name).items():
        if value != "0":
            yield Finding("PM QoS", f"{whom(group.cpus)} may take "
                          + ("no latency" if value == "n/a" else f"{value} us")
                          + " to wake up", "hot", write("0", f"cpu*/{name}"),
                          lines=tuple(group.lines))


def latency_limit(case: Case) -> Findings:
    """As turbostat prints it."""
    deepest = max((int(files["latency"]) for files in case.states.values()
                   if files.get("latency", "").isdigit()), default=0)
    for line in case.material.said.get("turbostat", ()):
        match = re.search(r"/dev/cpu_dma_latency: (\d+) usec", line.text)
        if match and int(match[1]) < (deepest or 1000):
            yield Finding("PM QoS", f"a program allows no more than {match[1]} us to wake up"
                          " (/dev/cpu_dma_latency)", "hot", "cpuwhy doctor   # says which one",
                          lines=(line,))


#: Entries of a state, and per cent of them, from which on a counter is worth a line.
ENTRIES, TOO_DEEP, TOO_SHALLOW = 1000, 30, 50
#: At rest, most entries of deep states are too deep: so on 36 of 46 servers and laptops of
#: pepc's test data, on all but one of which the exits take less than 2.5 % of the idle time.
COST = 3.0
#: ... and too shallow ones, if the state has so many per cent of it.
REST = 5.0


def idle_counters(case: Case) -> Findings:
    """Too deep or too shallow, as the kernel counts it."""
    total: dict[str, dict[str, int]] = {}
    example: dict[str, tuple[int, str, int]] = {}   # the CPU with most entries
    for (state, cpu), files in case.states.items():
        if not {"name", "usage", "above", "below"} <= set(files):
            continue
        sums = total.setdefault(files["name"], dict.fromkeys(
            ("usage", "above", "below", "time", "latency"), 0))
        for key in ("usage", "above", "below", "time"):
            sums[key] += int(files[key]) if files.get(key, "").isdigit() else 0
        if files.get("latency", "").isdigit():
            sums["latency"] = int(files["latency"])
        usage = int(files["usage"]) if files["usage"].isdigit() else 0
        example[files["name"]] = max(example.get(files["name"], (-1, "", 0)),
                                     (usage, state, cpu), key=lambda item: item[0])
    whole = sum(sums["time"] for sums in total.values()) or 1e-9
    usual: list[str] = []
    lines: list[Where] = []
    for name, sums in total.items():
        _, state, cpu = example[name]
        if sums["usage"] < ENTRIES or name == "POLL":
            continue
        deep, shallow = (100 * sums[key] / sums["usage"] for key in ("above", "below"))
        cost = 100 * sums["above"] * sums["latency"] / whole
        shown = tuple(case.line(f"cpuidle/{state}/{key}", cpu) for key in ("above", "usage"))
        if deep >= TOO_DEEP and COST <= cost <= 100:
            yield Finding("idle", f"{name} was too deep in {deep:.0f} % of {sums['usage']:,}"
                          f" entries; leaving it takes up to {sums['latency']} us each time,"
                          f" {cost:.1f} % of the idle time", "slow", "cpuwhy idle --record 10",
                          "seen", shown, kind="idle-too-deep")
        elif deep >= TOO_DEEP:
            usual.append(f"{name} in {deep:.0f} %")
            lines += shown[:1]
        if shallow >= TOO_SHALLOW and 100 * sums["time"] >= REST * whole:
            yield Finding("idle", f"{name} was too shallow in {shallow:.0f} % of"
                          f" {sums['usage']:,} entries, and has"
                          f" {100 * sums['time'] / whole:.0f} % of the idle time", "hot",
                          "cpuwhy idle --record 10", "seen",
                          (case.line(f"cpuidle/{state}/below", cpu), shown[1]),
                          kind="idle-too-shallow")
    if usual:
        yield Finding("idle", f"too deep by the kernel's count: {', '.join(usual)} of the entries;"
                      " usual at rest, and the exits take less than"
                      f" {COST:.0f} % of the idle time" if whole > 1 else
                      f"too deep by the kernel's count: {', '.join(usual)} of the entries", "note",
                      lines=tuple(lines[:LINES]), kind="idle-too-deep")


def idle_columns(case: Case) -> Findings:
    """The same counters as columns of turbostat: C6, C6- and C6+."""
    found: dict[tuple[str, str], tuple[float, float, Where]] = {}
    for row, line in case.rows:
        for name in row if not row.get("CPU", "-").isdigit() else ():
            match = re.fullmatch(r"(C\w+)([-+])", name)
            if match and match[1] in row:
                wrong, all_, first = found.get((match[1], match[2]), (0.0, 0.0, line))
                found[match[1], match[2]] = (wrong + cell(row, name), all_ + cell(row, match[1]),
                                             first)
    said = [f"{name} too {'deep' if sign == '-' else 'shallow'} in {100 * wrong / all_:.0f} %"
            for (name, sign), (wrong, all_, _) in found.items() if all_ >= ENTRIES
            and 100 * wrong >= (TOO_DEEP if sign == "-" else TOO_SHALLOW) * all_]
    if said:
        yield Finding("idle", f"{', '.join(said)} of the entries", "note",
                      lines=(next(iter(found.values()))[2],), kind="idle-too-deep")


#: Per cent of the time that the kernel asks for a deep state, from which on the hardware's
#: own count is compared: it should have a fifth of it.
ASKED, GIVEN = 20, 0.2


def demoted(case: Case) -> Findings:
    """The kernel asks for a deep state, and the core does not enter it."""
    for row, line in case.rows[::-1]:
        asked = sum(cell(row, name) for name in row if re.fullmatch(r"C(6|7|8|9|10)\w*%", name))
        if (row.get("CPU", "-").isdigit() or asked < ASKED or case.virtual
                or cell(row, *SHARE) > 20 or not any(name in row for name in CORE_DEEP)):
            continue
        given = sum(cell(row, name) for name in CORE_DEEP)
        if given < GIVEN * asked:
            yield Finding("idle", f"the kernel asks for C6 and deeper {asked:.0f} % of the time,"
                          f" cores are there {given:.1f} %: demotion by the hardware, firmware"
                          " (C-states), or a busy sibling", "hot",
                          "rdmsr -a 0xe2      # bits 25 and 26: demotion", "now", (line,))
        return


PACKAGE = re.compile(r"Pkg%pc(\d+)|%pc(\d+)")
CORE_DEEP = ("CPU%c6", "CPU%c7", "%c6", "%c7")
#: Residencies of package states since boot
PACKAGE_COUNTERS = (0x60D, 0x3F8, 0x3F9, 0x3FA, 0x630, 0x631, 0x632)


def package_states(case: Case) -> Findings:
    """Idle, but the package never is; and what is in the way."""
    read = [r for address in PACKAGE_COUNTERS for r in case.reads(address)]
    limit = case.material.register(0xE2)
    named = re.search(r"pkg-cstate-limit=\d+:? \(?(\w+)", limit.where.text) if limit else None
    blocked = (f"; firmware allows none (package limit {named[1] if named else 0})"
               if limit and (named[1] in ("pc0", "pc1") if named else not limit.value & 7) else "")
    off = next(iter(disabled(case)), None)
    if not blocked and off:
        blocked = f"; {off.says}"
    if case.virtual:
        return
    # One CPU that is busy keeps its package awake
    rows = [(row, line) for table in case.material.tables
            if all(cell(row, *SHARE) < 50 for row, _ in table.rows) for row, line in table.rows
            if any(PACKAGE.fullmatch(name) for name in row)
            and 0 < (cell(row, *SHARE) or 100) < 10]
    for row, line in rows[-1:]:
        shares = {name: cell(row, name) for name in row if PACKAGE.fullmatch(name)}
        cores = sum(cell(row, name) for name in CORE_DEEP)
        if max(shares.values()) >= 1:
            continue
        if not blocked:
            blocked = ("; a device keeps it awake, or firmware: not in the files"
                       if cores >= 50 else
                       f"; cores are in C6 and deeper for {cores:.0f} % only" if any(
                           name in row for name in CORE_DEEP) else "")
        yield Finding("idle", "the package reaches none of its idle states"
                      f" ({', '.join(shares)}) while CPUs are busy for"
                      f" {cell(row, 'Busy%', '%c0'):.1f} %{blocked}", "hot",
                      "cat /sys/kernel/debug/pmc_core/ltr_show" if "device" in blocked else "",
                      "now", (line, *([limit.where] if limit else [])))
        return
    if read and not rows and not any(r.value for r in read) and _rests(case):
        yield Finding("idle", "the package has reached none of its idle states since boot"
                      + (blocked or "; a device keeps it awake, or firmware"), "hot",
                      "" if blocked else "cat /sys/kernel/debug/pmc_core/ltr_show", "seen",
                      (read[0].where, *([limit.where] if limit else [])))


def _rests(case: Case) -> bool:
    """Have CPUs been idle for half of the time since boot, and that for an hour?"""
    words = case.text("proc/uptime").split()
    cpus = len({cpu for _, cpu in case.states}) or 1
    try:
        up, idle = float(words[0]), float(words[1])
    except (IndexError, ValueError):
        return False
    return up > 3600 and idle > 0.5 * up * cpus
