# SPDX-License-Identifier: GPL-2.0
"""Do the conclusions hold if the model's assumptions are others?

Each conclusion that the documents publish is measured in a short form, with the base
kernel and ours, on the machine as it is and with one assumption changed at a time.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass
from pathlib import Path

from ... import cli, paths
from ...errors import GuestError
from ...guest import boot, initramfs, options
from ...guest.job import Job
from ...guest.pool import Guest, Guests
from ...machine.machine import Machine, load
from ...text import write_csv
from .variants import ASSUMPTIONS

KERNELS = ("base", "patched")


@dataclass(frozen=True)
class Measure:
    """A number, less is better: the shell text prints one or more, the median counts."""

    what: str
    unit: str
    shell: str


_IDLE = "$CPU/cpuidle/current_governor"
_FREQ = "$CPU/cpu[0-9]*/cpufreq/scaling_governor"


def _rise(mode: str, rounds: int) -> str:
    return (f"put schedutil {_FREQ}; vs-rise -c 1 -m {mode} -r $TOP -n {rounds} -k 12 -b 60 "
            "-w 59000 | cut -d' ' -f2")


def _wakes(governor: str) -> str:
    """Of a thread on a CPU that has been idle for 100 to 900 us, by a signal."""
    return (f"put {governor} {_IDLE} && put performance {_FREQ} && "
            "vs-wake -m signal -c 1 -k 0 -n 400 -w 100 -x 900")


def _alone(state: str) -> str:
    """A CPU at rest stays in what it entered before: all are woken."""
    return (f"only {state}; put performance {_FREQ}; "
            "vs-load -c all -t 0.002 >/dev/null; ")


MEASURES: dict[str, Measure] = {
    "busy": Measure("a light task becomes busy: highest clock asked for", "ms",
                    _rise("step", 3)),
    "new": Measure("a new task is busy: highest clock asked for", "ms", _rise("new", 5)),
    "changes": Measure(
        "changes of clock in 1 s of a thread's random bursts", "",
        f"put schedutil {_FREQ}; t=/sys/kernel/tracing; "
        "echo 1 >$t/events/power/cpu_frequency/enable; taskset 2 sh -c '"
        "for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo >$1/trace; "
        "read begin _ </proc/uptime; for n in 3 41 12 27 6 55 18 33 9 48 22 15; do "
        "i=$((37 * n)); while [ $i -gt 0 ]; do i=$((i - 1)); done; sleep 0.05; done; "
        "read end _ </proc/uptime; echo $begin $end >>/tmp/bursts; "
        "grep -c cpu_frequency: $1/trace; done' - $t; "
        "echo 0 >$t/events/power/cpu_frequency/enable"),
    "menu": Measure("wake-up after 0.1 to 0.9 ms under menu", "ns", _wakes("menu")),
    "teo": Measure("the same under teo", "ns", _wakes("teo")),
    "poll latency": Measure("wake-up from POLL", "ns", _alone("POLL")
                            + "vs-wake -m timer -i -c 1 -n 300 -w 50 -x 500"),
    "c1 latency": Measure("wake-up from C1", "ns", _alone("C1")
                          + "vs-wake -m timer -i -c 1 -n 300 -w 50 -x 500"),
    "c02 latency": Measure("wake-up from C0.2", "ns", _alone("C0.2")
                           + "vs-wake -m timer -i -c 1 -n 300 -w 50 -x 500"),
    "poll power": Measure("package, all CPUs in POLL", "uJ", _alone("POLL")
                          + "vs-load -c none -t 0.1 -m 10 | sed -n 's/energy intel-rapl:0 //p'"),
    "c02 power": Measure("package, all CPUs in C0.2", "uJ", _alone("C0.2")
                         + "vs-load -c none -t 0.1 -m 10 | sed -n 's/energy intel-rapl:0 //p'"),
}

Values = dict[tuple[str, str], float]		# kernel, measure


@dataclass(frozen=True)
class Conclusion:
    """What a document says, in which, and when it holds."""

    text: str
    where: str
    ratio: tuple[tuple[str, str], tuple[str, str]]	# measured over
    most: float

    def value(self, values: Values) -> float | None:
        over, under = (values.get(key) for key in self.ratio)
        return over / under if over is not None and under else None


CONCLUSIONS = [
    Conclusion("a task that becomes CPU-bound gets the highest clock within a few ticks, "
               "in less than a quarter of the base's time", "README, schedutil-sim",
               (("patched", "busy"), ("base", "busy")), 0.25),
    Conclusion("so does a new task, in less than half", "schedutil-sim",
               (("patched", "new"), ("base", "new")), 0.5),
    Conclusion("bursts make no more changes of clock than with the base, beyond 10 %",
               "evidence", (("patched", "changes"), ("base", "changes")), 1.1),
    Conclusion("threads woken now and then run sooner under teo than under menu: less "
               "than half", "evidence", (("patched", "teo"), ("patched", "menu")), 0.5),
    Conclusion("our teo is no slower there than the base's, beyond 5 %", "evidence",
               (("patched", "teo"), ("base", "teo")), 1.05),
    Conclusion("C0.2 draws less than POLL", "README, intel_idle.rst",
               (("patched", "c02 power"), ("patched", "poll power")), 0.95),
    Conclusion("C0.2 wakes up sooner than C1", "README, intel_idle.rst",
               (("patched", "c02 latency"), ("patched", "c1 latency")), 0.95),
]


def measured(kernel: str) -> list[str]:
    """What the conclusions need of a kernel."""
    return [name for name in MEASURES if any((kernel, name) in c.ratio for c in CONCLUSIONS)]


def job(m: Machine, kernel: str) -> Job:
    out = Job()
    out.step("settle", "sleep 1")
    for name in measured(kernel):
        out.step(name.replace(" ", "-"), f"TOP={m.max_ratio}; put 0 "
                 f"$CPU/cpu[0-9]*/cpuidle/state*/disable; {MEASURES[name].shell}")
    return out


def value(text: str) -> float:
    """Median of the numbers; nan lines (it never came) count as endless."""
    numbers = [float("inf") if word == "nan" else float(word) for word in text.split()]
    if not numbers:
        raise GuestError("the guest measured nothing")
    return statistics.median(numbers)


NOTE = ("Ratios: what the documents conclude, in a short form, with the base kernel and ours on 4 "
        "CPUs of sapphire-rapids, and with one assumption of the model changed at a time. As it "
        "is: a quantum of 10 us, changes of the clock as measured, exit latencies drawn from their "
        "distribution. Not among them: the error of utilisation (studies/invariance), and the "
        "replay, which uses no machine of this model.")

Results = dict[str, Values]			# by variant


def write(results: Results, directory: Path) -> None:
    """The ratio of each conclusion under each variant, and what the ratios are made of."""
    names = list(results)
    write_csv(directory / "sensitivity.csv", ("conclusion", "in", "holds up to", *names), [
        [c.text, c.where, f"{c.most:g}", *(_number(c.value(results[n]), ".2f") for n in names)]
        for c in CONCLUSIONS], NOTE)
    keys = dict.fromkeys(key for values in results.values() for key in values)
    write_csv(directory / "sensitivity-measured.csv", ("kernel", "measure", "unit", *names), [
        [kernel, MEASURES[name].what, MEASURES[name].unit,
         *(_number(values.get((kernel, name)), ".4g") for values in results.values())]
        for kernel, name in keys])


def _number(number: float | None, form: str) -> str:
    return "-" if number is None else format(number, form)


def fallen(results: Results) -> list[Conclusion]:
    """Conclusions that do not hold under every variant that was measured."""
    return [c for c in CONCLUSIONS if any(
        (ratio := c.value(values)) is not None and ratio > c.most
        for values in results.values())]


def add(sub: cli.Commands) -> None:
    one = sub.add_parser("sensitivity", help="do conclusions hold if assumptions of the "
                         "model are others? A table")
    one.add_argument("--machine", default=cli.DEFAULT_MACHINE)
    one.add_argument("--variants", nargs="+", choices=list(ASSUMPTIONS), default=list(ASSUMPTIONS),
                     metavar="VARIANT", help="one or more of: " + ", ".join(ASSUMPTIONS))
    options.pool_options(one)
    one.add_argument("-o", "--output", type=Path, default=paths.BUILD / "sensitivity",
                     help="directory for the tables")
    one.add_argument("--work", type=Path, default=paths.BUILD / "sensitivity",
                     help="what guests answered")
    one.set_defaults(run=command)


def command(args: argparse.Namespace) -> int:
    """1 if a conclusion does not hold under some variant."""
    m, work = load(args.machine), args.work.resolve()
    todo = [(variant, kernel) for variant in args.variants for kernel in KERNELS]
    answers = Guests(work, initramfs.ensure(work / "guest"), paths.qemu(args.qemu),
                     args.jobs).answers([
        Guest(f"{variant.replace(' ', '-')}-{kernel}", changed, 4, paths.kernel(kernel),
              job(changed, kernel), boot.KERNEL_ARGS)
        for variant, kernel in todo for changed in (ASSUMPTIONS[variant](m),)])
    results: Results = {variant: {} for variant in args.variants}
    for (variant, kernel), answer in zip(todo, answers):
        results[variant] |= {(kernel, name): value(answer.text(name.replace(" ", "-")))
                             for name in measured(kernel)}
    write(results, args.output)
    print(args.output / "sensitivity.csv")
    broken = fallen(results)
    for conclusion in broken:
        print(f"does not hold: {conclusion.text}")
    return 1 if broken else 0
