# SPDX-License-Identifier: GPL-2.0
"""A machine file from what `cpuwhy probe` has measured on a machine (form.py).

As convert.py from a dump, but for what was measured: wake-ups, changes of clock and powers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cpuwhy import form, texts, topology

from ..errors import UsageError, unread
from . import convert, machine

_STATE = "/sys/devices/system/cpu/cpu0/cpuidle/state"
#: Of what a busy core draws at the highest clock: assumed, as of every part.
LEAKAGE = 0.12
_ACPI = "/sys/devices/system/cpu/cpu0/acpi_cppc/"


def read(path: Path) -> form.Data:
    try:
        return form.check(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {unread(error)}") from error
    except ValueError as error:
        raise UsageError(f"{path}: is not what cpuwhy probe writes: {error}") from error


def _lines(data: form.Data) -> list[str]:
    """What a dump of the same machine would say (texts.py)."""
    cpu, clock = data["cpu"], data.get("clock", {})
    words = [("vendor_id", cpu["vendor"]), ("cpu family", cpu.get("family")),
             ("model", cpu.get("model")), ("model name", cpu.get("name")),
             ("stepping", cpu.get("stepping")), ("microcode", cpu.get("microcode"))]
    out = [f"{word} : {value}" for word, value in words if value is not None]
    out += [f"{number} {value:#x}" for number, value in data.get("registers", {}).items()]
    flags = set(cpu.get("flags", ()))
    out += [f"   {leaf:#010x} 0x00: eax={eax:#x} ebx=0x0 ecx={ecx:#x} edx={edx:#x}"
            for leaf, eax, ecx, edx in (
                (5, 0, 0, cpu.get("mwait_edx", 0)),
                (6, ("hwp" in flags) << 7 | ("hwp_epp" in flags) << 10, 0, 0),
                (7, 0, ("waitpkg" in flags) << 5, 0))]
    for number, state in enumerate(data.get("state", ())):
        out += [f"{_STATE}{number}/{name}:{value}" for name, value in (
            ("name", state["name"]), ("desc", state["enter"]), ("latency", state["exit_us"]),
            ("residency", state["residency_us"]))]
    if cppc := clock.get("cppc"):
        out += [f"{_ACPI}{name}_perf:{value}" for name, value in zip(
            ("highest", "nominal", "lowest_nonlinear", "lowest"), cppc)]
        out.append(f"{_ACPI}nominal_freq:{clock.get('base_mhz', 0):.0f}")
    return out


def _dump(data: form.Data, name: str) -> texts.Material:
    found = texts.read_text("".join(f"{line}\n" for line in _lines(data)), name)
    # Of a text that nobody has seen, lines say nothing
    here = found.end = texts.Where(name, 0, "")
    found.cpu = {key: fact._replace(where=here) for key, fact in found.cpu.items()}
    found.registers = {address: [one._replace(where=here) for one in read]
                       for address, read in found.registers.items()}
    cpu = data["cpu"]
    small, big = cpu.get("e_cores", 0), cpu.get("cores", 1) - cpu.get("e_cores", 0)
    places = [texts.Logical(package, core, core >= big) for package in range(cpu.get("packages", 1))
              for core in range(big + small)
              for _ in range(1 if core >= big else cpu.get("threads", 1))]
    found.logical = dict(enumerate(places))
    return found


def _rising(values: list[float]) -> list[float]:
    return [max(values[:n + 1]) for n in range(len(values))]


def _wake(state: form.Data) -> convert.Table:
    """Quantiles of an idle state's wake-ups. The model wants timers no later than others."""
    if "wake_us" not in state:
        return []
    woken = _rising([max(0.01, float(value)) for value in state["wake_us"]])
    out: convert.Table = [
        ("wake_ppm", [10_000 * share for share in form.QUANTILES], "quantiles"),
        ("wake_us", woken, f"measured, {state['samples']} wake-ups")]
    if "timer_us" in state:
        timed = _rising([min(float(a), b) for a, b in zip(state["timer_us"], woken)])
        out.append(("timer_us", timed, f"measured, {state['timer_samples']} timers"))
    return out


def _transition(changes: list[form.Data]) -> convert.Table:
    """Delays are even between the change itself and that after a whole period."""
    out: convert.Table = []
    spans = []
    for change in changes:
        least, _, most = change["us"]
        up, n = change["to_mhz"] > change["from_mhz"], max(2, change["samples"])
        gap = (most - least) / (n - 1)		# of even draws, also beyond the ends
        spans.append((n + 1) * gap)
        out.append(("up_us" if up else "down_us", round(max(0.0, least - gap), 1),
                    f"measured: by the least of {n} changes"))
    if spans:
        out.insert(0, ("period_us", round(sum(spans) / len(spans), 1),
                       "measured: by the least and the most"))
    return out


def _powers(data: form.Data, name: str) -> tuple[convert.Table, convert.Table]:
    """[power] and [[package]]. What the second busy core adds is a core's; what the first
    adds beyond that is the uncore's, which sleeps while the machine is idle."""
    power = data.get("power", {})
    if len(power) < len(form.TABLES["power"]):
        return [], []
    m = machine.parse(text(data, name, powers=False), Path("adopted.toml"))
    asleep, deepest = min((m.idle_w(state, m.min_ratio), state.name) for state in m.idle)
    idle, one, two = (power[key] for key in form.TABLES["power"])
    resting = max(0.0, idle / m.packages - m.cores * asleep)
    core = two - one + asleep
    awake = max(resting, one - core - (m.packages - 1) * resting
                - (m.packages * m.cores - 1) * asleep)
    if core <= 0:
        return [], []
    leakage = LEAKAGE * core
    nf = m.power.capacitance_nf * (core - leakage) / m.dynamic_w(m.max_ratio)
    out: convert.Table = [
        ("uncore_w", round(awake, 3), "measured: one busy core, less that core"),
        ("leakage_w", float(f"{leakage:.3g}"), "assumed: 12 % of a busy core"),
        ("capacitance_nf", float(f"{nf:.4g}"), "measured: what the second busy core adds")]
    if resting > 0.9 * awake:
        return out, []
    return out, [("name", "PC", "measured: the uncore draws less while all is idle"),
                 ("core_state", deepest, "assumed"),
                 ("uncore_permille", round(1000 * resting / awake), "measured")]


def _busy_turbo(data: form.Data) -> convert.Table:
    """AMD has no register with a turbo table: the clocks of busy cores."""
    rows, cores = data.get("busy", []), data["cpu"].get("cores", 1)
    if data["cpu"]["vendor"] != "AuthenticAMD" or not rows:
        return []
    steps: list[list[int]] = []
    for row in rows:
        ratio = round(row["mhz"] / convert.STEP_MHZ)
        if steps and ratio >= steps[-1][1]:
            steps[-1][0] = row["cpus"]
        else:
            steps.append([row["cpus"], ratio])
    steps[-1][0] = cores
    return [("cores", [n for n, _ in steps], "measured: busy cores; more than those: assumed"),
            ("ratios", [ratio for _, ratio in steps], "measured")]


def text(data: form.Data, name: str, powers: bool = True) -> str:
    """The machine file; UsageError says what the probe lacks."""
    if data["cpu"].get("virtual"):
        raise UsageError(f"{name}: is of a virtual machine, whose clocks and idle states are not"
                         " its own")
    states: dict[str, convert.Table] = {
        topology.state_name(state["name"], state["enter"]): _wake(state)
        for state in data.get("state", ())}
    measured: dict[str, Any] = {"transition": _transition(data.get("change", [])),
                                "turbo": _busy_turbo(data), "idle": states}
    if powers:
        measured["power"], measured["package"] = _powers(data, name)
    return convert.machine_file(_dump(data, name), measured, f"{name}, by cpuwhy probe")
