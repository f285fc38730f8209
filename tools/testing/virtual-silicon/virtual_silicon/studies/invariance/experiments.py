# SPDX-License-Identifier: GPL-2.0
"""Experiments with frequency invariance; README.md says what each one shows. Those that can
fail do so by their status."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from ... import cli, paths
from ...guest import options
from ...guest.boot import Result
from ...guest.job import Job
from ...guest.pool import Guest
from ...machine import machine
from ...machine.machine import Machine
from ...readers import sysfs
from ...text import publish
from . import utilisation as util


def run(args: argparse.Namespace, name: str, m: Machine, cpus: int, job: Job) -> Result:
    return options.answers(args, [Guest(
        f"{name}-{Path(args.kernel).name}", m, cpus, paths.kernel(args.kernel), job,
        "intel_pstate=passive cpufreq.default_governor=performance", trace=True)],
        selftests=paths.selftests())[0]


def changing(args: argparse.Namespace) -> bool:
    """The clock jumps between lowest and highest every few milliseconds."""
    m = machine.load("sapphire-rapids")
    cells = util.changing_cells()
    job = Job([util.TAKE_OVER, *util.changing_steps(m, cells, args.length)])
    result = run(args, "changing", m, 2, job)
    rows, seen = [], util.events(result)
    for mark, every, work in cells:
        e = util.changing(result, seen, mark, util.freq_max_khz(m))
        rows.append([work.name, args.kernel, str(every), f"{e.mean:+.1f}"])
        print(f"every {every:3d} ms, {work.name:14} util {e.kernel:6.1f} expected "
              f"{e.expected:6.1f}  mean {e.mean:+6.2f} %  mean of |error| {e.mean_abs:5.2f} %  "
              f"worst {e.worst:+7.2f} %  of {e.bursts}")
    publish(args.out / f"changing-{Path(args.kernel).name}.csv",
            ("task", "kernel", "change every ms", "error %"), rows)
    return True


def hotplug(args: argparse.Namespace) -> bool:
    """s2idle, and a CPU offline and online, many times; then all is well."""
    m, job = machine.load("sapphire-rapids"), Job()
    show = "dump $CPU/freq_invariance/enabled $CPU/cpu[0-9]*/freq_invariance/*"
    job.step("hotplug", f"for i in $(seq {args.count * 9 // 10}); do for on in 0 1; do "
             "put $on $CPU/cpu1/online || echo failed; done; done")
    # All of it but the idle loop at its end: nothing in the machine would end that
    job.step("s2idle", "echo 0 >/sys/module/suspend/parameters/pm_test_delay; "
             "put platform /sys/power/pm_test; "
             f"for i in $(seq {args.count - args.count * 9 // 10}); do "
             "echo freeze >/sys/power/state || echo failed; done")
    job.step("after", f"vs-load -c all -t 0.2; {show}")
    job.step("dmesg", "dmesg | grep -v 'smpboot\\|PM: suspend debug'")
    result = run(args, "hotplug", m, 4, job)
    failed = sum(result.text(s).count("failed") for s in ("hotplug", "s2idle"))
    warnings = sysfs.warnings(result.text("dmesg"))
    print(result.text("after"))
    print(f"{args.count} rounds, {failed} failed, {len(warnings)} warnings")
    return not failed and not warnings


#: Bursts of 0.2 ms and more, one after the other without a pause, and many switches.
SAMPLED = {"0.2 ms each ms": "vs-load -c 1 -d 20 -p 1000 -t 1",
           "0.2 ms each 0.4 ms": "vs-load -c 1 -d 50 -p 400 -t 1",
           "2 ms each 10 ms": "vs-load -c 1 -d 20 -p 10000 -t 1",
           "busy": "vs-load -c 1 -t 1",
           "hackbench": "taskset 2 timeout 1 hackbench -g 1 -l 1000000"}


def samples(args: argparse.Namespace) -> bool:
    """How many samples a CPU takes in a second: reads of MPERF, by the kernel's trace."""
    m, job = machine.load("sapphire-rapids"), Job()
    trace = "/sys/kernel/tracing"
    for i, load in enumerate(SAMPLED.values()):
        job.step(f"samples-{i}", f"echo 'msr == 0xe7' >{trace}/events/msr/read_msr/filter; "
                 f"echo 1 >{trace}/events/msr/read_msr/enable; echo 100000 >{trace}/"
                 f"buffer_size_kb; echo >{trace}/trace; {load} >/dev/null 2>&1; "
                 f"grep -E '^(entries|overrun)' {trace}/per_cpu/cpu1/stats; "
                 f"echo 0 >{trace}/events/msr/read_msr/enable")
    result = run(args, "samples", m, 2, job)
    for i, load in enumerate(SAMPLED):
        text = result.text(f"samples-{i}")
        entries, overrun = (int(n) for n in re.findall(r": (\d+)$", text, re.MULTILINE))
        assert not overrun
        print(f"{load:20} {entries:5d} samples in a second")
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    experiments = {f.__name__: f for f in (changing, hotplug, samples)}
    parser.add_argument("experiment", choices=experiments)
    parser.add_argument("--kernel", default="patched", help="base, patched or an image")
    options.where(parser, "studies")
    parser.add_argument("--length", type=int, default=10_000,
                        help="virtual ms of each case of changing")
    parser.add_argument("--count", type=int, default=1000, help="rounds of hotplug")
    args = parser.parse_args()
    return int(not experiments[args.experiment](args))


if __name__ == "__main__":
    sys.exit(cli.ended("invariance", main))
