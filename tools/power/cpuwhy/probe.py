# SPDX-License-Identifier: GPL-2.0
"""What a machine says of its clocks and idle states, and what they cost: one text.

What is read is below a root that tests can choose; what is measured is in measure.py, what
may be said in form.py.
"""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from . import doctor, form, measure, turbo
from .errors import Fail
from .form import Data
from .guard import Guard

Tell = Callable[[str], None]


def _one_of(key: form.Key, value: str) -> str:
    """The value, or "other" where the form has no such."""
    return value if re.fullmatch(key.pattern, value) else "other"


def _ints(pairs: dict[str, int | None]) -> Data:
    return {name: value for name, value in pairs.items() if value is not None}


def topology(system: doctor.System) -> dict[tuple[int, int], list[int]]:
    """CPUs of each core, by package and core."""
    packages = system.per_cpu("topology/physical_package_id")
    found: dict[tuple[int, int], list[int]] = {}
    for cpu, core in system.per_cpu("topology/core_id").items():
        found.setdefault((int(packages.get(cpu, "0")), int(core)), []).append(cpu)
    return found


def _small(system: doctor.System) -> set[int]:
    """CPUs that are E-cores."""
    text = system.text("sys/devices/cpu_atom/cpus")
    return {cpu for part in text.split(",") if part for first, _, last in [part.partition("-")]
            for cpu in range(int(first), int(last or first) + 1)}


def pair(system: doctor.System) -> measure.Pair | None:
    """Two cores of one package and kind, if possible neither of them CPU 0's."""
    small = _small(system)
    cores = [(package, cpus[0]) for (package, _), cpus in sorted(topology(system).items())
             if cpus[0] not in small]
    first = [cpu for package, cpu in cores if package == cores[0][0]]
    if len(first) < 2:
        return None
    return measure.Pair(first[1], first[2 % len(first)], _states(system, first[1]),
                        next(cpus for cpus in topology(system).values() if first[1] in cpus))


def _states(system: doctor.System, cpu: int) -> list[measure.State]:
    found = []
    for path in sorted((system.root / doctor.CPUS / f"cpu{cpu}/cpuidle").glob("state[0-9]*"),
                       key=lambda path: int(path.name[5:])):
        def text(name: str, path: Path = path) -> str:
            return system.text(str(path.relative_to(system.root) / name))
        found.append(measure.State(int(path.name[5:]), text("name"), int(text("latency") or 0),
                                   int(text("residency") or 0), text("disable") == "1"))
    return found


# --- what is read ---------------------------------------------------------------

def cpu(system: doctor.System) -> Data:
    info, cores = system.cpuinfo, topology(system)
    packages = {package for package, _ in cores} or {0}
    name = " ".join(info.get("model name", "").split())
    found: Data = {"vendor": _one_of(form.TABLES["cpu"]["vendor"], info.get("vendor_id", ""))}
    if re.fullmatch(form.TABLES["cpu"]["name"].pattern, name):
        found["name"] = name
    for key, word in (("family", "cpu family"), ("model", "model"), ("stepping", "stepping"),
                      ("microcode", "microcode")):
        if re.fullmatch(r"0x[0-9a-f]+|\d+", text := info.get(word, "")):
            found[key] = int(text, 0)
    small = _small(system)
    found |= {"virtual": "hypervisor" in system.flags, "packages": len(packages),
              "cores": len(cores) // len(packages) or 1,
              "threads": max(map(len, cores.values()), default=1)}
    if small:
        found["e_cores"] = sum(cpus[0] in small for cpus in cores.values()) // len(packages)
    if (edx := mwait_edx()) is not None and system.root == Path("/"):
        found["mwait_edx"] = edx
    if flags := sorted(system.flags & set(form.FLAGS)):
        found["flags"] = flags
    return found


def mwait_edx() -> int | None:
    """CPUID 5, of a CPU with MONITOR."""
    try:
        with open("/dev/cpu/0/cpuid", "rb") as file:
            return int.from_bytes(os.pread(file.fileno(), 16, 5)[12:], "little")
    except OSError:
        return None


def log(system: doctor.System) -> str:
    """The kernel's, from its buffer, or as it was kept."""
    text = system.log
    if doctor.RATIO_LINE.search(text) or system.root != Path("/"):
        return text
    kept = system.text("var/log/dmesg")
    if shutil.which("journalctl"):
        kept += subprocess.run(["journalctl", "-k", "-b", "-q", "-o", "cat"], text=True,
                               capture_output=True, errors="replace").stdout
    return kept


def kernel(system: doctor.System) -> Data:
    found: Data = {"patched": bool(system.text(doctor.FREQ_MAX))}
    if release := re.match(r"\d{1,2}\.\d{1,3}(\.\d{1,3})?",
                           system.text("proc/sys/kernel/osrelease")):
        found = {"release": release[0], **found}
    if said := doctor.RATIO_LINE.findall(log(system)):
        found["freq_max"] = int(said[-1])
    if words := [word for word in system.parameters if re.fullmatch(form.PARAMETER, word)]:
        found["parameters"] = words[:64]
    return found


def registers(system: doctor.System, cpu_: int,
              read: Callable[[int, int], int | None]) -> dict[int, int]:
    vendor = system.cpuinfo.get("vendor_id")
    numbers = {"GenuineIntel": form.INTEL, "AuthenticAMD": form.AMD}.get(vendor or "", ())
    return {number: value for number in numbers if (value := read(cpu_, number)) is not None}


def _mhz(system: doctor.System, cpu_: int, name: str) -> float | None:
    khz = system.number(f"{doctor.CPUS}/cpu{cpu_}/cpufreq/{name}")
    return khz / 1000 if khz else None


def _cppc(system: doctor.System, cpu_: int, values: dict[int, int]) -> list[int]:
    if value := values.get(0xC00102B0):
        return [value >> shift & 0xFF for shift in (24, 16, 8, 0)]
    found = [system.number(f"{doctor.CPUS}/cpu{cpu_}/acpi_cppc/{name}_perf")
             for name in ("highest", "nominal", "lowest_nonlinear", "lowest")]
    return [value for value in found if value] if all(found) else []


def _base_mhz(system: doctor.System, cpu_: int, values: dict[int, int]) -> float | None:
    if 0xCE in values and values[0xCE] >> 8 & 0xFF:
        return (values[0xCE] >> 8 & 0xFF) * 100.0
    state = values.get(0xC0010064, 0)
    if state >> 63 and int(system.cpuinfo.get("cpu family", "0")) < 0x1A:
        return 200.0 * (state & 0xFF) / max(1, state >> 8 & 0x3F)
    if state >> 63:
        return 5.0 * (state & 0xFFF)
    nominal = system.number(f"{doctor.CPUS}/cpu{cpu_}/acpi_cppc/nominal_freq")
    return nominal or _mhz(system, cpu_, "base_frequency")


def _turbo(system: doctor.System, values: dict[int, int]) -> Data:
    """By the project's decoder."""
    info = system.cpuinfo
    if info.get("vendor_id") != "GenuineIntel":
        return {}
    model = turbo.number(int(info.get("cpu family", "6")), int(info.get("model", "0")))
    base = values.get(0xCE, 0) >> 8 & 0xFF
    layout = turbo.layout(model)
    if not layout or not base or turbo.TURBO_RATIO_LIMIT not in values:
        return {}
    if layout == "bytes" and model not in turbo.LONG:
        values = {number: value for number, value in values.items()
                  if number not in (turbo.TURBO_RATIO_LIMIT1, turbo.TURBO_RATIO_LIMIT2)}
    steps = turbo.decode(layout, values)
    found: Data = {"turbo_cores": [cores for cores, _ in steps],
                   "turbo_mhz": [ratio * 100.0 for _, ratio in steps]} if steps else {}
    patched = bool(system.text(doctor.FREQ_MAX))
    return found | _ints({"freq_max": turbo.freq_max(model, values, base, patched)})


def clock(system: doctor.System, cpu_: int, values: dict[int, int]) -> Data:
    table = form.TABLES["clock"]
    files = f"{doctor.CPUS}/cpu{cpu_}/cpufreq"
    found: Data = {name: value for name, value in (
        ("base_mhz", _base_mhz(system, cpu_, values)),
        ("low_mhz", _mhz(system, cpu_, "cpuinfo_min_freq")),
        ("high_mhz", _mhz(system, cpu_, "cpuinfo_max_freq"))) if value}
    found |= _turbo(system, values)
    if cppc := _cppc(system, cpu_, values):
        found["cppc"] = cppc
    for key, name in (("driver", f"{files}/scaling_driver"),
                      ("governor", f"{files}/scaling_governor")):
        found[key] = _one_of(table[key], system.text(name) or "none")
    for key, name in (("status", f"{doctor.CPUS}/intel_pstate/status"),
                      ("status", f"{doctor.CPUS}/amd_pstate/status"),
                      ("epp", f"{files}/energy_performance_preference")):
        text = system.text(name)
        if text and re.fullmatch(table[key].pattern, text):
            found[key] = text
    found |= _ints({"epb": system.number(f"{doctor.CPUS}/cpu{cpu_}/power/energy_perf_bias")})
    if limit := _mhz(system, cpu_, "scaling_max_freq"):
        found["limit_mhz"] = limit
    for name, on in (("intel_pstate/no_turbo", "0"), ("cpufreq/boost", "1")):
        if text := system.text(f"{doctor.CPUS}/{name}"):
            found["boost"] = text == on
    return found


def _enter(desc: str) -> str:
    """How a state is entered, by the driver's description."""
    if found := re.search(r"MWAIT 0x([0-9A-Fa-f]{1,2})", desc):
        return f"MWAIT 0x{int(found[1], 16):02x}"
    if found := re.search(r"IOPORT 0x([0-9A-Fa-f]{1,4})", desc):
        return f"IOPORT 0x{int(found[1], 16):x}"
    if "POLL" in desc:
        return "POLL"
    return "HLT" if "HLT" in desc else "UMWAIT" if "UMWAIT" in desc else "other"


def states(system: doctor.System, cpu_: int) -> list[Data]:
    out = []
    for state in _states(system, cpu_):
        if re.fullmatch(form.TABLES["state"]["name"].pattern, state.name):
            desc = system.text(f"{doctor.CPUS}/cpu{cpu_}/cpuidle/state{state.index}/desc")
            out.append({"name": state.name, "enter": _enter(desc), "exit_us": state.exit_us,
                        "residency_us": state.residency_us, "disabled": state.disabled})
    return out


def read(system: doctor.System, cpu_: int, msr: Callable[[int, int], int | None]) -> Data:
    """Nothing is measured or changed."""
    values, missing = registers(system, cpu_, msr), []
    found: Data = {"form": form.FORM, "cpu": cpu(system), "kernel": kernel(system)}
    if values:
        found["registers"] = {f"{number:#x}": value for number, value in values.items()}
    found["clock"] = clock(system, cpu_, values)
    idle, table = f"{doctor.CPUS}/cpuidle", form.TABLES["idle"]
    found["idle"] = {
        "driver": _one_of(table["driver"], system.text(f"{idle}/current_driver") or "none"),
        "governor": _one_of(table["governor"], system.text(f"{idle}/current_governor")
                            or system.text(f"{idle}/current_governor_ro") or "none")}
    if rows := states(system, cpu_):
        found["state"] = rows
    missing += ["virtual"] * found["cpu"]["virtual"] + ["registers"] * (not values)
    missing += ["turbo"] * (bool(values) and found["cpu"]["vendor"] == "GenuineIntel"
                            and "freq_max" not in found["clock"])
    missing += ["cpufreq"] * (found["clock"]["driver"] == "none")
    missing += ["idle"] * (not rows) + ["state"] * (0 < len(rows) < len(_states(system, cpu_)))
    missing += ["log"] * ("freq_max" not in found["kernel"])
    if missing:
        found["missing"] = missing
    return found


# --- what is measured -----------------------------------------------------------

def _wake(data: Data, found: dict[int, tuple[list[float], list[float]]],
          states_: list[measure.State]) -> None:
    """Quantiles; polling has nothing to wake from, and shows what the rest of the way takes."""
    def rounded(values: list[float]) -> list[float]:
        return [round(max(0.0, value), 2) for value in measure.quantiles(values)]

    by_name = {row["name"]: row for row in data["state"]}
    for state in states_:
        woken, timed = found.get(state.index, ([], []))
        if state.name == "POLL" and woken:
            data["idle"]["poll_us"] = rounded(woken)[2]
        elif row := by_name.get(state.name):
            if woken:
                row |= {"samples": len(woken), "wake_us": rounded(woken)}
            if timed:
                row |= {"timer_samples": len(timed), "timer_us": rounded(timed)}


def _change(base: float, change: measure.Change) -> Data:
    def middle(values: list[float]) -> float:
        return sorted(values)[len(values) // 2]

    return {"from_mhz": round(base * middle(change.before), 1),
            "to_mhz": round(base * middle(change.after), 1), "asked": change.asked,
            "samples": len(change.us),
            "us": [round(max(0.0, value), 1) for value in
                   (min(change.us), middle(change.us), max(change.us))]}


def busy(guard: Guard, data: Data, cores: list[int], seconds: float) -> None:
    """Clocks with 1, 2, 4 ... busy cores."""
    count, rows = 1, []
    base = data["clock"].get("base_mhz", 0.0)
    while count <= len(cores):
        if (ratio := measure.busy_clock(guard, cores[:count], seconds)) is None:
            break
        rows.append({"cpus": count, "mhz": round(base * ratio, 1)})
        count *= 2
    if rows and base:
        data["busy"] = rows


def measured(data: Data, system: doctor.System, guard: Guard, two: measure.Pair | None,
             seconds: float, tell: Tell) -> None:
    """Adds to @data; about so many seconds."""
    missing = data.setdefault("missing", [])
    base = data["clock"].get("base_mhz")
    counters = measure.read_msr(two.cpu if two else 0, measure.APERF) is not None and base
    traced = measure.can_trace()
    missing += ["alone"] * (two is None) + ["counters"] * (not counters)
    missing += ["tracing"] * (not traced)
    if two and zones_of(missing):
        tell("power")
        data["power"] = {name: round(watts, 2) for name, watts in zip(
            form.TABLES["power"], measure.power(two, measure.packages(), seconds / 6))}
    if two and two.states and traced:
        _wake(data, measure.all_wakeups(guard, two, max(120, round(3 * seconds)), tell),
              two.states)
    if two and counters and traced and data["clock"]["driver"] != "none":
        tell("changes of clock")
        if rows := [_change(float(base), change) for change in
                    measure.changes(guard, two, max(30, round(seconds)))]:
            data["change"] = rows
    if two and counters:
        tell("clocks of busy cores")
        cores = [two.cpu, two.other, *(cpus[0] for cpus in topology(system).values()
                                       if not {two.cpu, two.other} & set(cpus))]
        busy(guard, data, cores, min(0.3, max(0.05, seconds / 100)))
    if two and two.states:
        tell("hand-overs")
        data["handover"] = [{"work_us": work, "states": states_, "us": round(us, 2)}
                            for work, states_, us in measure.handovers(
                                guard, two, max(100, round(20 * seconds)))]
    if not missing:
        del data["missing"]


def occupied(stat: str, own: Iterable[float]) -> float:
    """CPU seconds since boot in which others ran, or a hypervisor ran none of us: by /proc/stat
    and os.times(). Children count once they were waited for."""
    fields = [int(word) for word in stat.partition("\n")[0].split()[1:9]]
    return (sum(fields) - sum(fields[3:5])) / os.sysconf("SC_CLK_TCK") - sum(own)


def zones_of(missing: list[str]) -> bool:
    if measure.packages():
        return True
    missing.append("energy")
    return False


def container(system: doctor.System) -> bool:
    """systemd, docker and podman say so; others cannot write to sysfs."""
    return (system.text("run/systemd/container") != ""
            or any((system.root / name).exists() for name in (".dockerenv", "run/.containerenv"))
            or b"container=" in _environment(system))


def _environment(system: doctor.System) -> bytes:
    try:
        return (system.root / "proc/1/environ").read_bytes()
    except OSError:
        return b""


def refuse(system: doctor.System, uid: int) -> None:
    """Where nothing can be measured."""
    if container(system):
        raise Fail("probe cannot measure in a container, which has neither the registers nor the"
                   " idle states: run it on the host")
    if uid:
        raise Fail("probe needs root, for the registers and to try idle states one by one: sudo"
                   " cpuwhy probe")


def run(seconds: float, tell: Tell) -> str:
    """The text of the file."""
    system = doctor.System(Path("/"))
    refuse(system, os.geteuid())
    pid = os.getpid()
    with Guard({**measure.UNLOAD, measure.INSTANCE: lambda: measure.undo_tracing(pid)}) as guard:
        measure.load(guard)
        two = pair(system)
        data = read(system, two.cpu if two else 0, measure.read_msr)
        for reason in data.get("missing", ()):
            tell(f"note: {form.WHY[reason]}")
        began, before = time.monotonic(), occupied(system.text("proc/stat"), os.times()[:4])
        measured(data, system, guard, two, seconds, tell)
        others = occupied(system.text("proc/stat"), os.times()[:4]) - before
        data["others"] = round(max(0.0, others) / (time.monotonic() - began), 2)
    for problem in form.problems(data):
        raise Fail(f"the result is not of its form, which is a fault of cpuwhy: {problem}")
    return form.render(data)
