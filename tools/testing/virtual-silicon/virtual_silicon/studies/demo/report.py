# SPDX-License-Identifier: GPL-2.0
"""What a demonstration found, as tables.

Every value comes from the guest's answer or from the model's trace; nothing
here knows what it ought to be.
"""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass

from ...guest.boot import Config, Result
from ...readers import sysfs, trace, turbostat
from . import demo

Rows = list[list[str]]


@dataclass(frozen=True)
class View:
    """A phase as the guest or the model saw it; of an idle state, entries and % of the time."""

    busy: float			# %
    mhz: float | None		# of busy CPUs
    joules: float | None	# of the packages
    states: dict[str, tuple[float, float]]


def _busy_mhz(pairs: list[tuple[float, float]]) -> float | None:
    """Mean frequency over CPUs from (busy share, MHz), weighted by busy time."""
    total = sum(busy for busy, _ in pairs)
    return sum(busy * mhz for busy, mhz in pairs) / total if total else None


def guest_view(text: str, zones: str = "") -> View:
    """By turbostat, vs-load and powercap."""
    load, _, table_text = text.partition(demo.SPLIT)
    rows = list(turbostat.table(table_text).cpus.values())
    names = [column[:-1] for column in rows[0]
             if column.endswith("%") and column[:-1] in rows[0]]
    return View(statistics.fmean(row["Busy%"] for row in rows),
                _busy_mhz([(row["Busy%"], row["Bzy_MHz"]) for row in rows]),
                sysfs.energy(zones + "\n" + load).get("package"),
                {name: (sum(row[name] for row in rows),
                        statistics.fmean(row[name + "%"] for row in rows)) for name in names})


def model_view(t: trace.Trace, mark: int) -> View:
    w = trace.window(t, mark, mark + 1)
    cpus = list(w.cpus.values())
    return View(100 * statistics.fmean(cpu.busy for cpu in cpus),
                _busy_mhz([(cpu.busy, cpu.mhz) for cpu in cpus]), w.package_j,
                {name: (sum(cpu.entries[name] for cpu in cpus),
                        100 * statistics.fmean(cpu.states[name] for cpu in cpus))
                 for name in cpus[0].states})


def _text(value: float | None, digits: int = 0) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _invariance(c: Config, result: Result) -> Rows:
    """The kernel's ratio, and below it the one worked out from the registers."""
    msrs = sysfs.msr_values(result.text("registers"))
    said = sysfs.invariance_ratio(result.text("dmesg"))
    four, one, every = (_text(sysfs.turbo_ratio(c.machine, msrs, active))
                        for active in (4, 1, c.machine.cores))
    return [["frequency invariance", "off (no message from the kernel)" if said is None
             else f"on, ratio {said}/1024"],
            ["  from the registers", f"{four} for 4 active cores, {one} for 1, {every} for all"]]


def _overview(c: Config, result: Result) -> Rows:
    release, model, cpus = result.text("kernel").splitlines()
    freq, idle = ({path.rpartition("/")[2]: value for path, value in
                   sysfs.pairs(result.text(name)).items()
                   if name == "cpuidle" or "/cpu0/" in path} for name in ("cpufreq", "cpuidle"))
    low, high = (int(freq.get(f"cpuinfo_{end}_freq", 0)) // 1000 for end in ("min", "max"))
    time = c.machine.time
    return [
        ["machine", f"{c.machine.name}: " + re.sub(r"^model name\s*:\s*", "", model)],
        ["CPUs", f"{cpus} in {c.machine.sockets(c.cpus)} package(s)"],
        ["kernel", f"{release}, init after {result.boot_seconds:.2f} s, {c.mode} time"],
        ["cycles per instruction", "as the host has it" if c.mode != "deterministic" else
         f"{time.kernel_cycles_per_1000_insns / 1000:g} in the kernel, "
         f"{time.user_cycles_per_1000_insns / 1000:g} in user space"],
        *_invariance(c, result),
        ["cpufreq", f"{freq.get('scaling_driver')}, {freq.get('scaling_governor')}, "
         f"{low}-{high} MHz"],
        ["cpuidle", f"{idle.get('current_driver')}, "
         f"{idle.get('current_governor') or idle.get('current_governor_ro')}"],
        ["kernel warnings", str(len(sysfs.warnings(result.text("dmesg"))) or "none")],
    ]


def _deepest(result: Result, name: str) -> str:
    """The idle state with most time, by the guest's own count."""
    used = sysfs.idle_used(result.text(f"idle-before-{name}"), result.text(f"idle-after-{name}"))
    return max(((seconds, state) for state, (_, seconds) in used.items() if seconds),
               default=(0, "-"))[1]


#: Columns named "model" hold what the model counted over the same stretch.
LOAD_HEAD = ["load", "busy %", "model", "MHz", "model", "J", "model", "rests in"]
IDLE_HEAD = ["state", "latency us", "residency us", "entries", "model", "% of time",
             "model"]


def _idle_rows(result: Result, guest: View, model: View) -> Rows:
    rows = []
    for state in sysfs.idle_states(result.text("idle-after-idle"))[0]:
        views = [view.states.get(state.name, (None, None)) for view in (guest, model)]
        rows.append([state.name, str(state.latency_us), str(state.residency_us),
                     *(_text(entries) for entries, _ in views),	# POLL is no state to the model
                     *(_text(share, 2) for _, share in views)])
    return rows


def tables(c: Config, plan: demo.Plan,
           result: Result) -> list[tuple[str, list[str], Rows]]:
    """(title, head, rows); all fit into 80 columns."""
    assert result.trace is not None
    t, zones = trace.read(result.trace), result.text("zones")
    views = {p.name: (guest_view(result.text(p.name), zones), model_view(t, plan.mark(p.name)))
             for p in plan.phases}

    def rows(knobs: bool) -> Rows:
        return [[f"{p.against}: {p.knob}" if p.knob else f"{p.name}: {p.title}",
                 *(_text(v.busy, 1) for v in views[p.name]), *(_text(v.mhz) for v in views[p.name]),
                 *(_text(v.joules, 2) for v in views[p.name]), _deepest(result, p.name)]
                for p in plan.phases if bool(p.knob) == knobs]
    return [
        ("Machine", ["", ""], _overview(c, result)),
        ("Frequency and energy under load", LOAD_HEAD, rows(False)),
        *((f"Idle states, all CPUs together: {name}", IDLE_HEAD, _idle_rows(result, *views[name]))
          for name in ("idle", "light")),
        ("Knobs: the same loads with one turned", LOAD_HEAD, rows(True)),
    ]
