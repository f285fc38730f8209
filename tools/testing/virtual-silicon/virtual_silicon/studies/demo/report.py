# SPDX-License-Identifier: GPL-2.0
"""What a demonstration found: as data (report.json) and as tables.

Every value comes from the guest's answer or from the model's trace; nothing
here knows what it ought to be.
"""

from __future__ import annotations

import re
from typing import Any

from ...guest.boot import Config, Result
from ...readers import sysfs, trace, turbostat
from . import demo

Data = dict[str, Any]


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _round(value: float | None, digits: int = 1) -> float | None:
    return None if value is None else round(value, digits)


def _busy_mhz(pairs: list[tuple[float, float]]) -> float | None:
    """Mean frequency over CPUs from (busy share, MHz), weighted by busy time."""
    total = sum(busy for busy, _ in pairs)
    return sum(busy * mhz for busy, mhz in pairs) / total if total else None


def _idle_columns(rows: list[dict[str, float]]) -> Data:
    """Entries and share of time by cpuidle state, as turbostat has them."""
    names = [column[:-1] for column in rows[0]
             if column.endswith("%") and column[:-1] in rows[0]]
    return {name: {"entries": round(sum(row[name] for row in rows)),
                   "pct": _round(_mean([row[name + "%"] for row in rows]), 2)}
            for name in names}


def guest_view(text: str, zones: str = "") -> Data:
    """A phase as turbostat, vs-load and powercap saw it."""
    load, _, table_text = text.partition(demo.SPLIT)
    rows = list(turbostat.table(table_text).cpus.values())
    energy = sysfs.energy(zones + "\n" + load)
    return {
        "busy_pct": _round(_mean([row["Busy%"] for row in rows]), 2),
        "mhz": _round(_busy_mhz([(row["Busy%"], row["Bzy_MHz"]) for row in rows])),
        "package_j": _round(energy.get("package"), 3),
        "states": _idle_columns(rows),
    }


def model_view(t: trace.Trace, mark: int) -> Data:
    """The same phase as the model counted it."""
    w = trace.window(t, mark, mark + 1)
    cpus = list(w.cpus.values())
    states = {name: {"entries": sum(cpu.entries[name] for cpu in cpus),
                     "pct": round(100 * sum(cpu.states[name] for cpu in cpus)
                                  / len(cpus), 2)}
              for name in cpus[0].states}
    return {
        "busy_pct": _round(_mean([100 * cpu.busy for cpu in cpus]), 2),
        "mhz": _round(_busy_mhz([(cpu.busy, cpu.mhz) for cpu in cpus])),
        "package_j": round(w.package_j, 3),
        "states": states,
    }


def _idle_view(result: Result, name: str) -> Data:
    used = sysfs.idle_used(result.text(f"idle-before-{name}"), result.text(f"idle-after-{name}"))
    return {state: {"seconds": round(seconds, 3)} for state, (_, seconds) in used.items()}


def _first(pairs: dict[str, str], ending: str) -> str | None:
    return next((value for path, value in pairs.items() if path.endswith(ending)), None)


def _invariance(c: Config, result: Result) -> Data:
    """The kernel's ratio beside the one worked out from the registers."""
    msrs = sysfs.msr_values(result.text("registers"))
    reported = sysfs.invariance_ratio(result.text("dmesg"))
    return {
        "enabled": reported is not None,
        "ratio_dmesg": reported,
        "ratio_registers_4_cores": sysfs.turbo_ratio(c.machine, msrs, 4),
        "ratio_registers_1_core": sysfs.turbo_ratio(c.machine, msrs, 1),
    }


def _kernel(result: Result) -> Data:
    lines = result.text("kernel").splitlines()
    title = re.sub(r"^model name\s*:\s*", "", lines[1]) if len(lines) > 1 else None
    return {"release": lines[0] if lines else None, "processor": title,
            "cpus_online": int(lines[2]) if len(lines) > 2 else None}


def build(c: Config, plan: demo.Plan, result: Result) -> Data:
    """All of it.  The order is that of the tables."""
    assert result.trace is not None
    t = trace.read(result.trace)
    freq = sysfs.pairs(result.text("cpufreq"))
    idle = sysfs.pairs(result.text("cpuidle"))
    kernel = _kernel(result)
    phases = {}
    for phase in plan.phases:
        phases[phase.name] = {
            "load": phase.title, "knob": phase.knob, "against": phase.against,
            "status": result.step_status(phase.name),
            "guest": guest_view(result.text(phase.name), result.text("zones")),
            "model": model_view(t, plan.mark(phase.name)),
            "idle": _idle_view(result, phase.name),
        }
    return {
        "machine": {"name": c.machine.name, "processor": kernel["processor"],
                    "packages": c.machine.sockets(c.cpus)},
        "cpus": kernel["cpus_online"],
        "kernel": kernel["release"],
        "time": c.mode,
        "cycles_per_insn": {
            "kernel": c.machine.time.kernel_cycles_per_1000_insns / 1000,
            "user": c.machine.time.user_cycles_per_1000_insns / 1000,
        } if c.mode == "deterministic" else None,
        "boot_seconds": round(result.boot_seconds, 2),
        "invariance": _invariance(c, result),
        "cpufreq": {"driver": _first(freq, "cpu0/cpufreq/scaling_driver"),
                    "governor": _first(freq, "cpu0/cpufreq/scaling_governor"),
                    "min_khz": int(_first(freq, "cpu0/cpufreq/cpuinfo_min_freq") or 0),
                    "max_khz": int(_first(freq, "cpu0/cpufreq/cpuinfo_max_freq") or 0)},
        "cpuidle": {"driver": _first(idle, "current_driver"),
                    "governor": (_first(idle, "current_governor")
                                 or _first(idle, "current_governor_ro")),
                    "states": [vars(s) for s in
                               sysfs.idle_states(result.text("idle-after-idle"))[0]]},
        "phases": phases,
        "model_total": result.report,
        "warnings": sysfs.warnings(result.text("dmesg")),
    }


# --- tables -----------------------------------------------------------------

Row = list[str]


def _text(value: Any, unit: str = "", digits: int | None = None) -> str:
    if value is None:
        return "-"
    if digits is not None:
        value = f"{value:.{digits}f}"
    return f"{value} {unit}".rstrip()


def _overview(d: Data) -> list[Row]:
    inv, freq, idle = d["invariance"], d["cpufreq"], d["cpuidle"]
    cycles = d["cycles_per_insn"]
    invariance = "off (no message from the kernel)"
    if inv["enabled"]:
        invariance = f"on, ratio {inv['ratio_dmesg']}/1024"
    return [
        ["machine", f"{d['machine']['name']}: {d['machine']['processor']}"],
        ["CPUs", f"{d['cpus']} in {d['machine']['packages']} package(s)"],
        ["kernel", f"{d['kernel']}, init after {d['boot_seconds']} s, {d['time']} time"],
        ["cycles per instruction", "as the host has it" if not cycles else
         f"{cycles['kernel']:g} in the kernel, {cycles['user']:g} in user space"],
        ["frequency invariance", invariance],
        ["  from the registers", f"{_text(inv['ratio_registers_4_cores'])} for 4 active "
         f"cores, {_text(inv['ratio_registers_1_core'])} for 1"],
        ["cpufreq", f"{freq['driver']}, {freq['governor']}, "
         f"{freq['min_khz'] // 1000}-{freq['max_khz'] // 1000} MHz"],
        ["cpuidle", f"{idle['driver']}, {idle['governor']}"],
        ["kernel warnings", _text(len(d["warnings"]) or "none")],
    ]


def _deepest(phase: Data) -> str:
    """The idle state with most time, by the guest's own count."""
    used = [(v["seconds"], name) for name, v in phase["idle"].items() if v["seconds"]]
    return max(used)[1] if used else "-"


#: Columns named "model" hold what the model counted over the same stretch.
LOAD_HEAD = ["load", "busy %", "model", "MHz", "model", "energy J", "model"]


def _load_rows(d: Data) -> list[Row]:
    rows = []
    for phase in d["phases"].values():
        guest, model = phase["guest"], phase["model"]
        if not phase["knob"]:
            rows.append([phase["load"],
                         _text(guest["busy_pct"], "", 1), _text(model["busy_pct"], "", 1),
                         _text(guest["mhz"], "", 0), _text(model["mhz"], "", 0),
                         _text(guest["package_j"], "", 2),
                         _text(model["package_j"], "", 2)])
    return rows


KNOB_HEAD = ["knob", "load", "MHz", "then", "energy J", "then", "rests in", "then"]


def _knob_rows(d: Data) -> list[Row]:
    """The same load without the knob and with it, as the guest saw both."""
    rows = []
    for phase in d["phases"].values():
        if phase["knob"]:
            before = d["phases"][phase["against"]]
            rows.append([phase["knob"], phase["against"],
                         _text(before["guest"]["mhz"], "", 0),
                         _text(phase["guest"]["mhz"], "", 0),
                         _text(before["guest"]["package_j"], "", 1),
                         _text(phase["guest"]["package_j"], "", 1),
                         _deepest(before), _deepest(phase)])
    return rows


IDLE_HEAD = ["state", "latency us", "residency us", "entries", "model", "% of time",
             "model"]


def _idle_rows(d: Data, name: str) -> list[Row]:
    guest, model = (d["phases"][name][view]["states"] for view in ("guest", "model"))
    rows = []
    for state in d["cpuidle"]["states"]:
        seen = guest.get(state["name"], {})
        counted = model.get(state["name"], {})	# POLL is no state to the model
        rows.append([state["name"], str(state["latency_us"]), str(state["residency_us"]),
                     _text(seen.get("entries")), _text(counted.get("entries")),
                     _text(seen.get("pct"), "", 2), _text(counted.get("pct"), "", 2)])
    return rows


def tables(d: Data) -> list[tuple[str, Row, list[Row]]]:
    """(title, head, rows); all fit into 80 columns."""
    return [
        ("Machine", ["", ""], _overview(d)),
        ("Frequency and energy under load", LOAD_HEAD, _load_rows(d)),
        ("Idle states, all CPUs together: idle", IDLE_HEAD, _idle_rows(d, "idle")),
        (f"Idle states, all CPUs together: {d['phases']['light']['load']}", IDLE_HEAD,
         _idle_rows(d, "light")),
        ("Knobs: the same load before and then", KNOB_HEAD, _knob_rows(d)),
    ]
