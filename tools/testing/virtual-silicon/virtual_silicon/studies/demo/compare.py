# SPDX-License-Identifier: GPL-2.0
"""The base kernel and the patched one side by side: same machine, same loads.

Each row is measured in both guests by a program that knows nothing of the kernel's
patches; `believe` says what the number is read from. The picture shows the clock of one
CPU in both, from the model's trace.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cpuwhy import turbo

from ...errors import GuestError
from ...guest.boot import Result
from ...guest.job import Job
from ...machine.machine import Machine
from ...readers import plot, sysfs, trace

KERNELS = ("base", "patched")

#: The picture shows CPU 1 for so long before this mark.
END = 100
SHOWN_NS = 400_000_000

#: Time of the guest's clock from which on CPU 1 reads 0 from both counters, in one tick.
FAULT_S = 40
FAULTS = f"1 zero counter=both at={FAULT_S}s reads=2"


@dataclass(frozen=True)
class Row:
    """A number of both kernels; @shell prints one or more, and their median counts."""

    what: str
    unit: str
    shell: str
    believe: str
    more: bool = False		# more is better
    digits: int = 1


_IDLE = "$CPU/cpuidle/current_governor"
_FREQ = "$CPU/cpu[0-9]*/cpufreq/scaling_governor"
_ENTRIES = "cat $CPU/cpu*/cpuidle/state*/usage | awk '{n += $1} END {print n}'"
_JOULES = "sed -n 's/energy intel-rapl:[0-9]* //p' | awk '{n += $1} END {print n / 1e6}'"

#: Ours of the idle governors is chosen where it is better than the default.
GOVERNOR = {"base": "menu", "patched": "teo"}


_BUSY = (f"put schedutil {_FREQ}; vs-rise -c 1 -m step -r $TOP -n 3 -k 12 -b 60 -w 59000 | "
         "cut -d' ' -f2")
_BURSTS = (
    f"put schedutil {_FREQ}; t=/sys/kernel/tracing; "
    "echo 1 >$t/events/power/cpu_frequency/enable; taskset 2 sh -c '"
    "for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo >$1/trace; "
    "read begin _ </proc/uptime; for n in 3 41 12 27 6 55 18 33 9 48 22 15; do "
    "i=$((37 * n)); while [ $i -gt 0 ]; do i=$((i - 1)); done; sleep 0.05; done; "
    "read end _ </proc/uptime; echo $begin $end >>/tmp/bursts; "
    "grep -c cpu_frequency: $1/trace; done' - $t; "
    "echo 0 >$t/events/power/cpu_frequency/enable")


def rows(kernel: str) -> dict[str, Row]:
    idle = GOVERNOR[kernel]
    return {
        "busy": Row("a light task becomes busy: until the highest clock", "ms", _BUSY,
                    "the task polls the register that asks for a clock; the picture"),
        "changes": Row("changes of clock in 1 s of a thread's random bursts", "", _BURSTS,
                       "cpufreq's trace events", digits=0),
        "bursts": Row("twelve of these bursts, with pauses of 50 ms", "ms",
                      "awk '{print 1000 * ($2 - $1)}' /tmp/bursts", "the guest's clock", digits=0),
        "woken": Row("a thread is woken now and then: until its CPU runs", "us",
                     f"put {idle} {_IDLE} && put performance {_FREQ} && vs-wake -m signal -c 1 "
                     "-k 0 -n 400 -w 100 -x 900 | awk '{print $1 / 1000}'",
                     "time stamps of the trace events sched_waking and cpu_idle", digits=2),
        "light": Row("energy of 5 s with a little work each 100 ms", "J",
                     f"put {idle} {_IDLE}; put schedutil {_FREQ}; sleep 1; "
                     f"vs-load -w 1 -p 100000 -t 5 -m 200 | {_JOULES}", "RAPL's counters"),
        "talk": Row("round trips through a pipe of two CPUs, thousands in 1 s", "",
                    "/selftests/sched_pairs/conversations pipe 1 | awk '{print $1 / 1000}'",
                    "the program's own count", more=True),
        "idle": Row("wake-ups of each idle CPU in 1 s", "",
                    f"put {idle} {_IDLE}; sleep 1; a=$({_ENTRIES}); sleep 10; b=$({_ENTRIES}); "
                    "awk -v n=$((b - a)) -v c=$(nproc) 'BEGIN {print n / c / 10}'",
                    "the counts of entries into idle states"),
    }


def job(m: Machine, kernel: str, modules: Mapping[str, bytes]) -> Job:
    out = Job(files=dict(modules))
    out.step("registers", "vs-msr 0 0xce 0x1ad 0x1ae")
    out.step("settle", f"put schedutil {_FREQ}; sleep 1")
    out.step("picture", f"vs-rise -c 1 -m step -r {m.max_ratio} -k 12 -b 200 -w 59000 && "
             f"vs-load -c none -t 0.001 -m {END}")
    for name, row in rows(kernel).items():
        out.step(name, f"TOP={m.max_ratio}; {row.shell}")
    out.step("fault", f"while [ $(cut -d. -f1 /proc/uptime) -le {FAULT_S} ]; do sleep 0.5; done; "
             "vs-load -t 0.1")
    out.step("dmesg", "dmesg")
    return out


def _verdict(row: Row, base: Sequence[float], ours: Sequence[float]) -> str:
    """Medians within 3 %, or to the digits shown, are the same, and so are those of several
    numbers the middle halves of which overlap."""
    low, high = sorted((base, ours), key=statistics.median)
    near, far = statistics.median(low), statistics.median(high)
    if far <= 1.03 * near or round(far - near, row.digits) == 0 or (
            len(low) > 1 and statistics.quantiles(low)[2] >= statistics.quantiles(high)[0]):
        return "same"
    return "better" if (high is ours) == row.more else "worse"


def _numbers(results: dict[str, Result], name: str) -> list[list[float]]:
    both = []
    for kernel in KERNELS:
        words = results[kernel].text(name).split()
        try:
            both.append([float(word) for word in words])
            statistics.median(both[-1])
        except ValueError as error:
            raise GuestError(f"{kernel} kernel, {name}: no numbers: {' '.join(words)[:60]!r}"
                             ) from error
    return both


def _ratios(m: Machine, results: dict[str, Result]) -> list[str]:
    said = [sysfs.invariance_ratio(results[kernel].text("dmesg")) for kernel in KERNELS]
    model = turbo.number(m.family, m.model)
    cores, said_of = (m.cores, "all") if model in turbo.ALL_CORES else (4, "4")
    true = sysfs.turbo_ratio(m, sysfs.msr_values(results["base"].text("registers")), cores)
    off = [abs((value or 0) - (true or 0)) for value in said]
    verdict = "same" if off[0] == off[1] else "better" if off[1] < off[0] else "worse"
    return [f"clock taken for the highest, by the registers {true or 'not known'}",
            *(str(value or "off") for value in said), verdict,
            f"the turbo registers, read beside the kernel, say {true} for {said_of} cores"]


def _fault(results: dict[str, Result]) -> list[str]:
    lost = ["wobbly" in results[kernel].text("dmesg") for kernel in KERNELS]
    verdict = "same" if lost[0] == lost[1] else "worse" if lost[1] else "better"
    return ["counters read 0 in a tick: is utilisation still scaled?",
            *("no" if gone else "yes" for gone in lost), verdict,
            "what the kernel says; the fault is the virtual CPU's"]


def table(m: Machine, results: dict[str, Result]) -> list[list[str]]:
    """What, base, patched, whether that is better, and what it is read from."""
    out = [_ratios(m, results)]
    for name, row in rows("patched").items():
        base, ours = _numbers(results, name)
        out.append([f"{row.what}{', ' * bool(row.unit)}{row.unit}",
                    *(f"{statistics.median(values):.{row.digits}f}" for values in (base, ours)),
                    _verdict(row, base, ours), row.believe])
    return [*out, _fault(results)]


def text(m: Machine, table_: list[list[str]]) -> str:
    """Two lines a row, 80 columns."""
    governors = " and ".join(GOVERNOR[kernel] for kernel in KERNELS)
    lines = [f"{m.title}, 4 CPUs", f"schedutil on both, idle governors {governors}",
             f"{'':55}{'base':>8}{'patched':>9}"]
    for what, base, ours, verdict, believe in table_:
        lines += [f"{what:55}{base:>8}{ours:>9} {verdict}", f"    by {believe}"]
    return "\n".join(lines)


def draw(results: dict[str, Result], target: Path) -> None:
    """CPU 1's clock while its task has little to do, and then always."""
    pyplot = plot.load_pyplot()
    figure, axis = pyplot.subplots(figsize=(8, 3), dpi=100)
    for kernel in KERNELS:
        path = results[kernel].trace
        assert path is not None
        events = trace.read(path)
        end = events.mark(END).time_ns
        points = plot.bins(events, 1, end - SHOWN_NS, end, 400)
        axis.plot([1000 * at for at, _, _ in points],
                  [mhz if busy > 0 else float("nan") for _, busy, mhz in points],
                  drawstyle="steps-mid", label=kernel)
    axis.set_xlabel("ms; some work each 10 ms, and then always busy")
    axis.set_ylabel("MHz while busy")
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.3)
    axis.legend()
    figure.tight_layout()
    figure.savefig(target)
    pyplot.close(figure)
