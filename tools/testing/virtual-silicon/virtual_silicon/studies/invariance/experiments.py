# SPDX-License-Identifier: GPL-2.0
"""Experiments with frequency invariance; README.md says what each one shows. Those that can
fail do so by their status."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from ... import cli, paths
from ...errors import GuestError
from ...guest import options
from ...guest.boot import Result
from ...guest.job import Job
from ...guest.pool import Guest
from ...machine import machine
from ...machine.machine import Machine
from ...readers import sysfs
from ...text import publish
from . import utilisation as util


def run(args: argparse.Namespace, kernels: Iterable[str], name: str, m: Machine, cpus: int,
        job: Job) -> list[Result]:
    return options.answers(args, [Guest(
        f"{name}-{Path(kernel).name}", m, cpus, paths.kernel(kernel), job,
        "intel_pstate=passive cpufreq.default_governor=performance aperfmperf.freq_max=4c",
        trace=True) for kernel in kernels],
        selftests=paths.selftests())


def changing(args: argparse.Namespace) -> bool:
    """The clock jumps between lowest and highest every few milliseconds, with the base, too."""
    m = machine.load("sapphire-rapids")
    cells = util.changing_cells()
    job = Job([util.TAKE_OVER, *util.changing_steps(m, cells, args.length), ("dmesg", "dmesg")])
    kernels, rows = tuple(dict.fromkeys(("base", args.kernel))), []
    for kernel, result in zip(kernels, run(args, kernels, "changing", m, 2, job)):
        seen = util.events(result)
        ratio = sysfs.invariance_ratio(result.text("dmesg"))
        if not ratio:
            raise GuestError(f"{kernel}: frequency invariance is off")
        for mark, every, work in cells:
            e = util.changing(result, seen, mark, ratio / 1024 * m.tsc_khz)
            rows.append([work.name, Path(kernel).name, str(every), f"{e.mean:+.1f}",
                         f"{e.mean_abs:.1f}"])
            print(f"{kernel}, every {every:3d} ms, {work.name:14} util {e.kernel:6.1f} expected "
                  f"{e.expected:6.1f}  mean {e.mean:+6.2f} %  mean of |error| {e.mean_abs:5.2f} %"
                  f"  worst {e.worst:+7.2f} %  of {e.bursts}")
    publish(args.out / "changing.csv", ("task", "kernel", "change every ms", "error %",
                                        "of |error| %"), rows,
            "Error of utilisation while the clock jumps between lowest and highest: means. Each "
            "kernel is compared with the freq_max that it has.")
    return True


def hotplug(args: argparse.Namespace) -> bool:
    """s2idle, and a CPU offline and online, many times; then all is well."""
    m, job = machine.load("sapphire-rapids"), Job()
    show = ("grep '' /sys/module/aperfmperf/parameters/freq_max "
            "/sys/kernel/debug/x86/freq_invariance")
    job.step("hotplug", f"for i in $(seq {args.count * 9 // 10}); do for on in 0 1; do "
             "put $on $CPU/cpu1/online || echo failed; done; done")
    # All of it but the idle loop at its end: nothing in the machine would end that
    job.step("s2idle", "echo 0 >/sys/module/suspend/parameters/pm_test_delay; "
             "put platform /sys/power/pm_test; "
             f"for i in $(seq {args.count - args.count * 9 // 10}); do "
             "echo freeze >/sys/power/state || echo failed; done")
    job.step("after", f"vs-load -c all -t 0.2; {show}")
    job.step("dmesg", "dmesg | grep -v 'smpboot\\|PM: suspend debug'")
    [result] = run(args, [args.kernel], "hotplug", m, 4, job)
    failed = sum(result.text(s).count("failed") for s in ("hotplug", "s2idle"))
    warnings = sysfs.warnings(result.text("dmesg"))
    print(result.text("after"))
    print(f"{args.count} rounds, {failed} failed, {len(warnings)} warnings")
    return not failed and not warnings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    experiments = {f.__name__: f for f in (changing, hotplug)}
    parser.add_argument("experiment", choices=experiments)
    parser.add_argument("--kernel", default="patched", help="base, patched or an image")
    options.where(parser, "studies")
    parser.add_argument("--length", type=cli.count, default=10_000,
                        help="virtual ms of each case of changing")
    parser.add_argument("--count", type=cli.count, default=1000, help="rounds of hotplug")
    args = parser.parse_args()
    return int(not experiments[args.experiment](args))


if __name__ == "__main__":
    sys.exit(cli.ended("invariance", main))
