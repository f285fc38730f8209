# SPDX-License-Identifier: GPL-2.0
"""Pictures: PNG, SVG, or a page with the SVG in it."""
from __future__ import annotations

import html
import io
from pathlib import Path
from typing import Any

from matplotlib import pyplot

from . import freq as freq_
from .idle import Result

pyplot.switch_backend("Agg")	# for files


def write(figure: Any, path: Path, title: str) -> None:
    figure.tight_layout()
    if path.suffix == ".html":
        svg = io.StringIO()
        figure.savefig(svg, format="svg")
        body = svg.getvalue()
        path.write_text(f"<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>{html.escape(title)}"
                        f"</title>\n{body[body.index('<svg'):]}\n")
    else:
        figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _edge(bucket: int) -> float:
    """Lower end of a bucket in us; what is below 1 us is drawn from 0.5 us."""
    return 0.5 if not bucket else float(1 << (bucket - 1))


def idle(results: list[Result], path: Path) -> None:
    """Per trace: how long the idle times of each state were, and what was missed."""
    figure, axes = pyplot.subplots(2, len(results), squeeze=False,
                                   figsize=(max(6.4, 4.2 * len(results)), 6.4))
    for column, result in enumerate(results):
        lengths, misses = axes[0][column], axes[1][column]
        colours: dict[str, str] = {}
        bottom: dict[int, int] = {}
        for number, (name, use) in enumerate(result.total().items()):
            colour = colours[name] = f"C{number}"
            for bucket, count in use.lengths.items():
                low = bottom.get(bucket, 0)
                lengths.bar(_edge(bucket), count, width=_edge(bucket + 1) - _edge(bucket),
                            bottom=low, align="edge", color=colour)
                bottom[bucket] = low + count
            lengths.bar([1], [0], color=colour, label=name)
            for sign, buckets in ((-1, use.deep_miss), (1, use.shallow_miss)):
                for bucket, count in buckets.items():
                    misses.bar(_edge(bucket), sign * count, align="edge", color=colour,
                               width=_edge(bucket + 1) - _edge(bucket), alpha=0.7)
        cpu = min(result.uses, default=0)
        for state in result.states(cpu):
            if state.residency and not state.disabled and state.name in colours:
                lengths.axvline(state.residency / 1000, color=colours[state.name], linestyle=":")
        for axis in (lengths, misses):
            axis.set_xscale("log")
            axis.set_ylabel("idle times")
        lengths.set_title(result.label)
        lengths.set_xlabel("idle time, us (dotted: target residency)")
        lengths.legend(fontsize="small")
        misses.axhline(0, color="black", linewidth=0.6)
        misses.set_xlabel("missed by, us (up: too shallow, down: too deep)")
    write(figure, path, "Idle states")


def freq(results: list[freq_.Result], path: Path) -> None:
    """Per CPU: what was asked and what came, busy times in grey."""
    rows = [(result, cpu) for result in results for cpu in result.cpus.values()
            if cpu.asked.points() or cpu.clock.points()]
    figure, axes = pyplot.subplots(max(len(rows), 1), 1, squeeze=False, sharex=True,
                                   figsize=(8, 1.2 + 1.4 * max(len(rows), 1)))
    for axis, (result, cpu) in zip(axes[:, 0], rows):
        begin = result.facts.first
        for line, style, name in ((cpu.asked, "-", "asked"), (cpu.clock, "--", "clock")):
            points = line.points()
            if points:
                axis.step([(at - begin) / 1e9 for at, _ in points],
                          [khz / 1e6 for _, khz in points], style, where="post", label=name)
        busy = axis.twinx()
        busy.set_ylim(0, 100)
        busy.set_yticks([])
        points = cpu.busy.points()
        busy.fill_between([(at - begin) / 1e9 for at, _ in points], [v for _, v in points],
                          step="post", color="grey", alpha=0.2)
        axis.set_ylim(bottom=0)
        axis.set_ylabel(f"CPU {cpu.number}, GHz")
        for episode in result.episodes:
            if episode.cpu == cpu.number:
                axis.axvspan((episode.start - begin) / 1e9,
                             (episode.start + episode.waited - begin) / 1e9, color="red",
                             alpha=0.2)
    axes[0][0].legend(fontsize="small", loc="upper right")
    axes[-1][0].set_xlabel("s (grey: busy; red: a task waited for its frequency)")
    write(figure, path, "Frequency")
