# SPDX-License-Identifier: GPL-2.0
"""Picture of a trace: frequency per CPU while it runs, and idle states below."""

from __future__ import annotations

import bisect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MissingError, UsageError
from .trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes  # loaded when a picture is drawn only

Segment = tuple[float, float, str | None]	# from s, to s, state (None: running)


def segments(trace: Trace, cpu: int, begin_ns: int, end_ns: int) -> list[Segment]:
    """The CPU's life between two times as rests and runs, in s from `begin_ns`."""
    out: list[Segment] = []
    at, state = begin_ns, None
    for time_ns, entered in trace.idle.get(cpu, []):
        if time_ns > end_ns:
            break
        if time_ns > at:
            out.append(((at - begin_ns) / 1e9, (time_ns - begin_ns) / 1e9, state))
            at = time_ns
        state = entered
    if end_ns > at:
        out.append(((at - begin_ns) / 1e9, (end_ns - begin_ns) / 1e9, state))
    return out


def bins(trace: Trace, cpu: int, begin_ns: int, end_ns: int,
         count: int) -> list[tuple[float, float, float]]:
    """Per bin of time: (middle in s, share busy, mean MHz while busy)."""
    width = (end_ns - begin_ns) / 1e9 / count
    busy = [0.0] * count
    cycles = [0.0] * count
    khz = trace.khz.get(cpu, [])
    for start, stop, state in segments(trace, cpu, begin_ns, end_ns):
        if state is None:
            _spread(busy, cycles, khz, (start, stop), width, begin_ns)
    return [((i + 0.5) * width, busy[i] / width,
             cycles[i] / busy[i] / 1000 if busy[i] else 0.0) for i in range(count)]


def _spread(busy: list[float], cycles: list[float], khz: list[tuple[int, int]],
            run: tuple[float, float], width: float, begin_ns: int) -> None:
    """Adds one run to the bins it covers, piece by piece of equal frequency."""
    edges = [run[0]] + [(t - begin_ns) / 1e9 for t, _ in khz
                        if run[0] < (t - begin_ns) / 1e9 < run[1]] + [run[1]]
    for a, b in zip(edges, edges[1:]):
        clock = _khz_at(khz, begin_ns + (a + b) / 2 * 1e9)
        i = min(int(a / width), len(busy) - 1)
        while a < b and i < len(busy):
            piece = min(b, (i + 1) * width) - a
            busy[i] += piece
            cycles[i] += piece * clock
            a += piece
            i += 1


def _khz_at(khz: list[tuple[int, int]], time_ns: float) -> int:
    """Of the last change at or before a time."""
    at = bisect.bisect_right(khz, time_ns, key=lambda change: change[0])
    return khz[at - 1][1] if at else 0


def load_pyplot() -> Any:
    """matplotlib for files; loaded when a picture is drawn only."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingError("matplotlib is not installed: apt-get install python3-matplotlib, "
                           "or pip install matplotlib") from error
    pyplot.switch_backend("Agg")
    return pyplot


def draw(trace: Trace, target: Path, begin_s: float = 0, end_s: float | None = None,
         title: str = "") -> None:
    """Writes a PNG."""
    begin_ns = int(begin_s * 1e9)
    end_ns = trace.end_ns if end_s is None else int(end_s * 1e9)
    if not trace.khz:
        raise UsageError("the trace has no frequencies to draw")
    if end_ns <= begin_ns:
        raise UsageError(f"nothing to draw between {begin_s:g} s and "
                         f"{end_ns / 1e9:g} s; the trace ends at "
                         f"{trace.end_ns / 1e9:g} s")
    pyplot = load_pyplot()
    cpus = sorted(trace.khz)
    figure, axes = pyplot.subplots(2, 1, figsize=(9, 5), sharex=True, dpi=100)
    _draw_frequency(axes[0], trace, cpus, begin_ns, end_ns)
    _draw_idle(axes[1], trace, cpus, begin_ns, end_ns)
    axes[0].set_title(title or "Frequency while running, idle states")
    figure.tight_layout()
    figure.savefig(target)
    pyplot.close(figure)


BINS = 500
#: Below this share of a bin the CPU is drawn as not running: single wake-ups
#: at the lowest clock would hide the rest.
WORTH_DRAWING = 0.25
#: Idle states from shallow to deep.
SHADES = ("#fdd49e", "#c7e9c0", "#a1d99b", "#9ecae1", "#6baed6", "#3182bd", "#08519c")


def _draw_frequency(axis: Axes, trace: Trace, cpus: list[int],
                    begin_ns: int, end_ns: int) -> None:
    """A line per CPU, broken where it hardly runs."""
    offset = begin_ns / 1e9
    for cpu in cpus:
        points = bins(trace, cpu, begin_ns, end_ns, BINS)
        axis.plot([offset + t for t, _, _ in points],
                  [mhz if busy > WORTH_DRAWING else float("nan")
                   for _, busy, mhz in points],
                  drawstyle="steps-mid", linewidth=1.3, alpha=0.8, label=f"CPU {cpu}")
    axis.set_ylabel("MHz")
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.3)
    if len(cpus) <= 8:
        axis.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))


def depth(name: str) -> tuple[int, str]:
    """Sort key of state names: C1, C1E, C3, C10."""
    number = "".join(c for c in name[1:3] if c.isdigit())
    return int(number or 0), name


def _draw_idle(axis: Axes, trace: Trace, cpus: list[int],
               begin_ns: int, end_ns: int) -> None:
    """A band per CPU; colour says where it was."""
    offset = begin_ns / 1e9
    names = sorted({state for events in trace.idle.values()
                    for _, state in events if state and state != "off"}, key=depth)
    step = (len(SHADES) - 1) / max(1, len(names) - 1)
    colours = {name: SHADES[round(i * step)] for i, name in enumerate(names)}
    for cpu in cpus:
        by_state: dict[str, list[tuple[float, float]]] = {}
        for start, stop, state in segments(trace, cpu, begin_ns, end_ns):
            by_state.setdefault(state or "running", []).append(
                (offset + start, stop - start))
        for state, spans in by_state.items():
            if state != "off":
                axis.broken_barh(spans, (cpu - 0.4, 0.8), rasterized=True,
                                 facecolors=colours.get(state, RUNNING))
    for label, colour in [("running", RUNNING), *colours.items()]:
        axis.broken_barh([], (0, 0), facecolors=colour, label=label)
    axis.set_yticks(cpus if len(cpus) <= 16 else [])
    axis.set_ylabel("CPU")
    axis.set_xlabel("s")
    axis.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))


RUNNING = "#252525"
