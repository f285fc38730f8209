# SPDX-License-Identifier: GPL-2.0
"""Results for a terminal of 80 columns, and as JSON."""
from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from . import freq as freq_
from .events import Facts
from .idle import Result, StateUse, Waits, Wakeups, against_sysfs
from .wake import Cause

#: Beyond this, trace and sysfs do not agree.
TOLERANCE = 0.01
BARS = " ▁▂▃▄▅▆▇█"


def console() -> Console:
    """Colour on a terminal only; 80 columns where there is none."""
    width = None if sys.stdout.isatty() else 80
    return Console(width=width, highlight=False, soft_wrap=False)


@contextmanager
def progress(name: str) -> Iterator[Callable[[int, Facts], None]]:
    """A bar for long reads, where somebody watches."""
    if not sys.stderr.isatty():
        yield lambda now, facts: None
        return
    bar = Progress(TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(),
                   TextColumn("{task.fields[events]:,} events"),
                   console=Console(stderr=True), transient=True)
    with bar:
        task = bar.add_task(name, total=None, events=0)
        seen = 0

        def tick(now: int, facts: Facts) -> None:
            nonlocal seen
            seen += 0x10000
            total = facts.end - facts.first if facts.end else None
            bar.update(task, total=total, completed=now - facts.first if facts.first else 0,
                       events=seen)
        yield tick


def table(*columns: str, left: int = 1) -> Table:
    """The first @left columns are text, the others numbers."""
    made = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for index, name in enumerate(columns):
        made.add_column(name, justify="left" if index < left else "right",
                        overflow="fold", no_wrap=index >= left)
    return made


def share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"


def time(ns: float) -> str:
    """Three digits or so, with a unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= size:
            return f"{ns / size:.3g} {unit}" if abs(ns) < 100 * size else f"{ns / size:.0f} {unit}"
    return f"{ns:.0f} ns"


def histogram(buckets: dict[int, int]) -> str:
    """One character for each power of two from below 1 us to 16 s."""
    most = max(buckets.values(), default=0)
    if not most:
        return ""
    return "".join(BARS[-(-8 * buckets.get(i, 0) // most)] for i in range(max(buckets) + 1))


def bound(bucket: int) -> str:
    """The lower end of a bucket."""
    return "0" if not bucket else time(1000 << (bucket - 1))


def lost(facts: Facts, out: Console) -> None:
    for cpu, count in sorted(facts.lost.items()):
        out.print(f"[yellow]CPU {cpu} lost {count} event{'s' * (count != 1)}:"
                  " its counts are too low[/]")


def idle(results: list[Result], args: argparse.Namespace) -> None:
    if args.json:
        print(json.dumps([as_json(result) for result in results], indent=1))
        return
    out = console()
    for result in results:
        _one(result, args, out)
    if len(results) > 1:
        _side_by_side(results, out)


def _one(result: Result, args: argparse.Namespace, out: Console) -> None:
    facts, machine = result.facts, result.machine
    span = max(result.span.values(), default=0)
    about = [f"{len(result.uses)} CPUs", time(span), f"{facts.events:,} events"]
    if machine and machine.governor:
        about.append(f"{machine.driver}, {machine.governor}")
    out.print(f"[bold]{escape(result.label)}[/]: {escape(', '.join(about))}")
    lost(facts, out)
    if result.broken:
        out.print(f"{result.broken} idle times were cut by the trace's gaps and are not counted")
    _states(result, args, out)
    _misses(result, out)
    _wakers(result, args.cpu, args.wakers, out)
    _waited(result, args.cpu, args.wakers, out)
    _agreement(result, out)
    for note in result.notes:
        out.print(f"[dim]note: {escape(note)}[/]")
    out.print()


def _rows(result: Result, args: argparse.Namespace) -> Iterable[tuple[str, str, StateUse, int]]:
    """(CPU, state, its idle times, length of the trace)"""
    if not args.per_cpu and args.cpu is None:
        span = sum(result.span.values())
        for name, use in result.total().items():
            yield "all", name, use, span
        return
    for cpu, uses in result.uses.items():
        if args.cpu is None or cpu == args.cpu:
            for state, use in sorted(uses.items()):
                yield str(cpu), result.name(cpu, state), use, result.span[cpu]


def _states(result: Result, args: argparse.Namespace, out: Console) -> None:
    judged = result.by_events or any(result.states(cpu) for cpu in result.uses)
    made = table("CPU", "state", "entered", "time %", "too deep %", "adequate %",
                 "too shallow %", "energy lost", left=2)
    for cpu, name, use, span in _rows(result, args):
        good = use.usage - use.deep - use.shallow
        numbers = [share(n, use.usage) if judged else "-"
                   for n in (use.deep, good, use.shallow)]
        made.add_row(cpu, escape(name), f"{use.usage:,}", share(use.time, span), *numbers,
                     time(use.lost_energy) if any(result.states(c) for c in result.uses)
                     else "-")
    out.print(made)


def _misses(result: Result, out: Console) -> None:
    made = table("missed by", "", "median", "from", "histogram, log2 from below 1 us", left=1)
    made.columns[1].justify = made.columns[4].justify = "left"
    rows = 0
    for name, use in result.total().items():
        for word, buckets in (("too deep", use.deep_miss),
                              ("too shallow", use.shallow_miss)):
            if buckets:
                made.add_row(escape(name), word, bound(_median(buckets)), bound(min(buckets)),
                             histogram(buckets))
                rows += 1
    if rows:
        out.print()
        out.print(made)


def _median(buckets: dict[int, int]) -> int:
    left = sum(buckets.values()) / 2
    for index in sorted(buckets):
        left -= buckets[index]
        if left <= 0:
            return index
    return 0


def by_cost(by_cause: dict[Cause, Wakeups]) -> list[tuple[Cause, Wakeups]]:
    return sorted(by_cause.items(), key=lambda item: (-item[1].cost, -item[1].count, item[0]))


def _wakers(result: Result, cpu: int | None, most: int, out: Console) -> None:
    ranked = by_cost(result.by_cause(cpu))
    shown = ranked[:most] if most else ranked
    total = sum(wakeups.cost for _, wakeups in ranked)
    whom = "this machine" if cpu is None else f"CPU {cpu}"
    made = table(f"who wakes {whom}", "wakes", "deep %", "shallow %", "cost", "%", "late",
                 left=1)
    for cause, wakeups in shown:
        made.add_row(escape(str(cause)), f"{wakeups.count:,}", share(wakeups.deep, wakeups.count),
                     share(wakeups.shallow, wakeups.count), time(wakeups.cost),
                     share(wakeups.cost, total), time(wakeups.latency))
    out.print()
    out.print(made)
    if len(shown) < len(ranked):
        rest = ranked[len(shown):]
        out.print(f"and {len(rest)} more causes, {sum(b.count for _, b in rest):,} wake-ups,"
                  f" {share(sum(b.cost for _, b in rest), total)} % of the cost (--wakers 0)")


def by_time(waited: dict[tuple[str, str], Waits]) -> list[tuple[tuple[str, str], Waits]]:
    return sorted(waited.items(), key=lambda item: (-item[1].time, item[0]))


def _waited(result: Result, cpu: int | None, most: int, out: Console) -> None:
    ranked = by_time(result.waited(cpu))
    tasks = [row for row in ranked if row[0][0]]
    if not tasks:
        return
    made = table("waited for idle states", "state", "wake-ups", "waited", "mean", "longest",
                 left=2)
    shown = tasks[:most] if most else tasks
    for (task, state), waits in [row for row in ranked if not row[0][0]] + shown:
        made.add_row(escape(task) or "all tasks", escape(state), f"{waits.count:,}",
                     time(waits.time), time(waits.time / waits.count), time(waits.most))
    out.print()
    out.print(made)
    if len(shown) < len(tasks):
        rest = [waits for _, waits in tasks[len(shown):]]
        out.print(f"and {len(rest)} more, {time(sum(w.time for w in rest))} (--wakers 0)")


def _agreement(result: Result, out: Console) -> None:
    compared = against_sysfs(result)
    # perf takes seconds to begin, after the counters were read.
    if not compared or (result.machine and result.machine.with_tool == "perf"):
        return
    # Counts of a few differ by one where the counters were read around the recording.
    off = [a for a in compared if a.off > TOLERANCE and abs(a.trace - a.sysfs) > 2
           and not (a.counter == "time" and abs(a.trace - a.sysfs) < 2_000_000)]
    out.print()
    if not off:
        out.print("sysfs: usage, time, above and below agree within 1 %")
    for a in off:
        trace, sysfs = ((time(a.trace), time(a.sysfs)) if a.counter == "time"
                        else (f"{a.trace:,}", f"{a.sysfs:,}"))
        out.print(f"[yellow]sysfs: CPU {a.cpu} {escape(a.state)} {a.counter} is {sysfs},"
                  f" the trace has {trace}[/]")


def freq(results: list[freq_.Result], args: argparse.Namespace) -> None:
    if args.json:
        print(json.dumps([_freq_json(result) for result in results], indent=1))
        return
    out = console()
    for result in results:
        facts = result.facts
        out.print(f"[bold]{escape(result.label)}[/]: {len(result.cpus)} CPUs,"
                  f" {time(facts.last - facts.first)}, {facts.events:,} events")
        lost(facts, out)
        _timelines(result, out)
        _episodes(result, args.episodes, out)
        for note in result.notes:
            out.print(f"[dim]note: {escape(note)}[/]")
        out.print()


def _spark(line: freq_.Timeline, begin: int, end: int, top: float, width: int = 44) -> str:
    """The means over @width equal stretches of time, by the height of a bar."""
    sums, times = [0.0] * width, [0] * width
    for at, value in line.points():
        index = min(max((at - begin) * width // max(end - begin, 1), 0), width - 1)
        sums[index] += value
        times[index] += 1
    return "".join(BARS[max(1, min(8, round(8 * total / count / top)))] if count and top else " "
                   for total, count in zip(sums, times))


def _timelines(result: freq_.Result, out: Console) -> None:
    begin, end = result.facts.first, result.facts.last
    top = max((value for cpu in result.cpus.values() for line in (cpu.asked, cpu.clock)
               for _, value in line.points()), default=0.0)
    made = table("CPU", "", "mean", f"over {time(end - begin)}, full height {top / 1000:.0f} MHz",
                 left=2)
    made.columns[3].justify = "left"
    for number, cpu in result.cpus.items():
        for word, line, height, unit in (("busy", cpu.busy, 100.0, " %"),
                                         ("asked", cpu.asked, top, ""),
                                         ("clock", cpu.clock, top, "")):
            if line.points():
                mean = line.mean() if unit else line.mean() / 1000
                made.add_row(str(number), word, f"{mean:.0f}{unit}",
                             _spark(line, begin, end, height))
    out.print(made)


def _episodes(result: freq_.Result, most: int, out: Console) -> None:
    out.print()
    if not result.episodes:
        out.print("no task waited for its frequency")
        return
    out.print(f"[bold]{'waited for its frequency':38} CPU       at   waited            MHz[/]")
    for episode in result.episodes[:most or None]:
        out.print(f"{escape(episode.task):38}"
                  f" {'all' if episode.cpu == freq_.ALL else episode.cpu:>3}"
                  f" {time(episode.start - result.facts.first):>8} {time(episode.waited):>8}"
                  f" {episode.low / 1000:6.0f} to {episode.high / 1000:.0f}")
        for line in textwrap.wrap(episode.why(), out.width - 2):
            out.print(f"  [dim]{escape(line)}[/]")
    rest = len(result.episodes) - (most or len(result.episodes))
    if rest > 0:
        out.print(f"and {rest} more (--episodes 0)")


def _freq_json(result: freq_.Result) -> dict[str, Any]:
    facts = result.facts
    return {"trace": result.label, "events": facts.events, "seconds": (facts.last - facts.first)
            / 1e9, "lost_events": {str(cpu): count for cpu, count in facts.lost.items()},
            "cpus": [{"cpu": number, "requests": cpu.requests,
                      "busy_percent": cpu.busy.points(), "asked_khz": cpu.asked.points(),
                      "clock_khz": cpu.clock.points()} for number, cpu in result.cpus.items()],
            "episodes": [{**asdict(episode), "why": episode.why()}
                         for episode in result.episodes],
            "notes": result.notes}


def _side_by_side(results: list[Result], out: Console) -> None:
    made = table("state", *(escape(r.label) for r in results))
    names = list(dict.fromkeys(name for r in results for name in r.total()))
    totals = [r.total() for r in results]
    for name in names:
        for word, number in (
                ("entered/s", lambda t, r: f"{t.usage / _seconds(r):.1f}"),
                ("time %", lambda t, r: share(t.time, sum(r.span.values()))),
                ("too deep %", lambda t, r: share(t.deep, t.usage)),
                ("too shallow %", lambda t, r: share(t.shallow, t.usage)),
                ("energy lost/s", lambda t, r: time(t.lost_energy / _seconds(r)))):
            made.add_row(f"{escape(name)} {word}",
                         *(number(total[name], r) if name in total else "-"
                           for total, r in zip(totals, results)))
    for state in dict.fromkeys(state for r in results for _, state in r.waited()):
        made.add_row(f"waited for {escape(state)}/s",
                     *(time(r.waited().get(("", state), Waits()).time / _seconds(r))
                       for r in results))
    out.print("[bold]side by side[/]")
    out.print(made)


def _seconds(result: Result) -> float:
    return max(max(result.span.values(), default=0) / 1e9, 1e-9)


def as_json(result: Result) -> dict[str, Any]:
    facts, machine = result.facts, result.machine
    return {
        "trace": result.label, "arch": facts.arch, "events": facts.events,
        "seconds": max(result.span.values(), default=0) / 1e9,
        "governor": machine.governor if machine else None,
        "driver": machine.driver if machine else None,
        "lost_events": {str(cpu): count for cpu, count in facts.lost.items()},
        "idle_times_cut": result.broken,
        "verdicts": "kernel" if result.by_events else "table",
        "states": [
            {"cpu": cpu, "state": result.name(cpu, index), "index": index, "entered": t.usage,
             "time_ns": t.time, "too_deep": t.deep, "too_shallow": t.shallow,
             "adequate": t.usage - t.deep - t.shallow, "energy_lost_ns": round(t.lost_energy),
             "too_deep_by_log2_us": t.deep_miss, "too_shallow_by_log2_us": t.shallow_miss,
             "length_log2_us": t.lengths}
            for cpu, uses in result.uses.items() for index, t in sorted(uses.items())],
        "wakers": [
            {"cpu": cpu, "kind": cause.kind, "name": cause.name, "by": cause.who, "in": cause.site,
             "woke": cause.woke, "count": wakeups.count, "too_deep": wakeups.deep,
             "too_shallow": wakeups.shallow, "cost_ns": round(wakeups.cost),
             "energy_lost_ns": round(wakeups.lost), "latency_ns": wakeups.latency}
            for cpu, by_cause in result.by_cpu.items() for cause, wakeups in by_cost(by_cause)],
        "waited": [
            {"cpu": cpu, "task": task, "state": result.name(cpu, state), "wake_ups": waits.count,
             "time_ns": waits.time, "longest_ns": waits.most}
            for cpu, by_task in result.waits.items()
            for (task, state), waits in sorted(by_task.items(), key=lambda i: -i[1].time)],
        "sysfs": [{"cpu": a.cpu, "state": a.state, "counter": a.counter, "trace": a.trace,
                   "sysfs": a.sysfs} for a in against_sysfs(result)],
        "notes": result.notes,
    }
