#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Experiments with frequency invariance; README.md says what each one shows."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import pelt  # noqa: E402
from virtual_silicon import boot, guestdata, initramfs, machine, paths, trace  # noqa: E402
from virtual_silicon.boot import Result  # noqa: E402
from virtual_silicon.job import Job  # noqa: E402
from virtual_silicon.machine import Machine  # noqa: E402

PASSIVE = "intel_pstate=passive cpufreq.default_governor=performance"
FREQ = "$CPU/cpu[0-9]*/cpufreq"
INVARIANCE = "$CPU/freq_invariance"


def run(args: argparse.Namespace, name: str, m: Machine, cpus: int, job: Job,
        append: str = PASSIVE, faults: str = "") -> Result:
    out = Path(args.out) / name
    out.mkdir(parents=True, exist_ok=True)
    path = None
    if faults:
        path = out / "faults"
        path.write_text(faults, encoding="ascii")
    return boot.run(boot.Config(
        machine=m, cpus=cpus, kernel=paths.kernel(args.kernel), qemu=paths.qemu(None),
        initramfs=initramfs.ensure(Path(args.out) / "guest", paths.selftests()), out=out,
        job=job.archive(), mode="deterministic", append=append, faults=path,
        limits=boot.Limits(boot=900, silence=1800, overall=7200)))


def freq_max_khz(m: Machine, cores: int = 4) -> float:
    """The 4C turbo, as the kernel rounds it."""
    ratio = next((r for c, r in zip(m.turbo.cores, m.turbo.ratios) if c >= cores),
                 m.turbo.ratios[-1])
    return (ratio * 1024 // m.base_ratio) / 1024 * m.tsc_khz


def bursts_of(result: Result, step: str, mark: int) -> tuple[list[pelt.Burst], trace.Trace]:
    assert result.trace
    events = trace.read(result.trace)
    bursts = pelt.parse(result.text(step), events.mark(mark).time_ns)
    if any(b.util < 0 for b in bursts):
        sys.exit("no /proc/PID/sched: the kernel needs CONFIG_SCHED_DEBUG, see README.md")
    return bursts, events


def fixed(args: argparse.Namespace) -> dict:
    """The same periodic work at each P-state, with invariance and without."""
    m = machine.load("sapphire-rapids")
    low, high = m.min_ratio, max(m.turbo.ratios)
    clocks = [r * m.bus_khz for r in range(low, high + 1, args.step)]
    job, modes = Job(), (1, 0) if args.kernel != "base" else (1,)
    for mode in modes:
        if args.kernel != "base":
            job.step(f"enabled-{mode}", f"put {mode} {INVARIANCE}/enabled")
        for i, khz in enumerate(clocks):
            job.step(f"{mode}-{khz}", f"put userspace {FREQ}/scaling_governor; "
                     f"put {khz} {FREQ}/scaling_setspeed; "
                     f"vs-util -c 1 -w {args.units} -n {args.periods} -m {1000 * mode + i}")
    result = run(args, f"fixed-{Path(args.kernel).name}", m, 2, job)
    rows = []
    for mode in modes:
        for i, khz in enumerate(clocks):
            bursts, events = bursts_of(result, f"{mode}-{khz}", 1000 * mode + i)
            clock = pelt.Clock(events.khz[1], freq_max_khz(m))
            e = pelt.compare(bursts, clock)
            rows.append({"enabled": mode, "khz": khz, **e.__dict__})
            print(f"enabled {mode}  {khz / 1000:6.0f} MHz  util {e.kernel:7.1f}  expected "
                  f"{e.expected:6.1f}  mean {e.mean:+7.2f} %  worst {e.worst:+7.2f} %")
    return {"rows": rows}


def changing(args: argparse.Namespace) -> dict:
    """The clock jumps between lowest and highest every few milliseconds."""
    m = machine.load("sapphire-rapids")
    clocks = f"{m.min_ratio * m.bus_khz},{max(m.turbo.ratios) * m.bus_khz}"
    job, spans = Job(), [(2, 5), (2, 20), (2, 101), (20, 101)]
    job.step("governor", f"put userspace {FREQ}/scaling_governor")
    cases = [(least, most, period) for least, most in spans for period in (7000, 10000)]
    for i, (least, most, period) in enumerate(cases):
        units = args.units * period // 10000
        job.step(f"change-{i}", f"vs-util -c 1 -w {units} -p {period} -n "
                 f"{args.periods * 10000 // period * 3} -m {i} -f {clocks} -l {least} -h {most}")
        if args.kernel != "base":
            job.step(f"samples-{i}", "dump $CPU/cpu1/freq_invariance/samples; cat /proc/uptime")
    result = run(args, f"changing-{Path(args.kernel).name}", m, 2, job)
    rows = []
    for i, (least, most, period) in enumerate(cases):
        bursts, events = bursts_of(result, f"change-{i}", i)
        e = pelt.compare(bursts, pelt.Clock(events.khz[1], freq_max_khz(m)))
        rows.append({"least_ms": least, "most_ms": most, "period_us": period, **e.__dict__})
        print(f"every {least:2d} to {most:3d} ms, period {period / 1000:4.0f} ms: util "
              f"{e.kernel:6.1f} expected {e.expected:6.1f}  mean {e.mean:+6.2f} %  "
              f"mean of |error| {e.mean_abs:5.2f} %  worst {e.worst:+7.2f} %")
    mean = sum(abs(r["mean"]) for r in rows) / len(rows)
    spread = sum(r["mean_abs"] for r in rows) / len(rows)
    print(f"over all: |mean error| {mean:.2f} %, mean of |error| {spread:.2f} %")
    return {"rows": rows, "abs_of_mean": mean, "mean_of_abs": spread}


def saturation(args: argparse.Namespace) -> dict:
    """One to eight CPUs busy for 95 % of the time, by policy."""
    m = machine.load("e5-2698-v4")
    policies = args.policies.split(",") if args.kernel != "base" else ("4c",)
    job, counts = Job(), (1, 2, 4, 6, 8)
    for p, policy in enumerate(policies):
        if args.kernel != "base":
            job.step(f"policy-{policy}", f"put {policy} {INVARIANCE}/policy")
        for busy in counts:
            # In the second package; the first one has the watcher
            others = f"vs-load -c 9-{7 + busy} -d 95 -p 20000 -t 0.75 & " if busy > 1 else ""
            job.step(f"{policy}-{busy}", others
                     + f"vs-util -c 8 -t 95 -p 20000 -n 32 -m {100 * p + busy}; wait; "
                     "dump $CPU/cpu8/freq_invariance/*")
    result = run(args, f"saturation-{Path(args.kernel).name}", m, 16, job)
    rows = []
    for p, policy in enumerate(policies):
        for busy in counts:
            bursts, events = bursts_of(result, f"{policy}-{busy}", 100 * p + busy)
            late = bursts[len(bursts) // 2:]
            util = sum(b.util for b in late) / len(late)
            rows.append({"policy": policy, "busy": busy, "util": util})
    print("busy   " + "".join(f"{busy:7d}" for busy in counts))
    for policy in policies:
        utils = [r["util"] for r in rows if r["policy"] == policy]
        print(f"{policy:7s}" + "".join(f"{u:7.0f}" for u in utils)
              + f"   off by {100 * (min(utils) / utils[0] - 1):+.1f} % at most")
    return {"rows": rows}


def toggles(args: argparse.Namespace) -> dict:
    """no_turbo or boost switched under load: freq_max follows every time."""
    rows = []
    for name, append, switch, off in (
            ("e5-2698-v4", PASSIVE, "$CPU/intel_pstate/no_turbo", 1),
            ("epyc-7742", "", "$CPU/cpufreq/boost", 0),
            ("epyc-7763", "amd_pstate=passive", "$CPU/cpufreq/boost", 0)):
        m, job = machine.load(name), Job()
        ratio = "$CPU/cpu[0-9]*/freq_invariance/max_ratio"
        job.step("toggle", "vs-load -c all -d 50 -t 600 & load=$!; sleep 0.1; "
                 f"on=$(cat {ratio}); wrong=0; for i in $(seq {args.count // 2}); do "
                 f"put {off} {switch}; [ \"$(cat {ratio} | sort -u)\" = 1024 ] || "
                 "wrong=$((wrong + 1)); "
                 f"put {1 - off} {switch}; [ \"$(cat {ratio})\" = \"$on\" ] || "
                 "wrong=$((wrong + 1)); "
                 "done; kill $load; echo on $on; echo wrong $wrong")
        job.step("dmesg", "dmesg")
        result = run(args, f"toggles-{name}", m, 2, job, append)
        text = result.text("toggle")
        warnings = guestdata.warnings(result.text("dmesg"))
        wrong = int(re.search(r"^wrong (\d+)$", text, re.MULTILINE)[1])	# type: ignore[index]
        rows.append({"machine": name, "toggles": args.count, "wrong": wrong,
                     "warnings": warnings})
        print(f"{name}: {args.count} toggles, {wrong} not followed, "
              f"{len(warnings)} warnings; {text.splitlines()[0]}")
    return {"rows": rows}


def hotplug(args: argparse.Namespace) -> dict:
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
    result = run(args, f"hotplug-{Path(args.kernel).name}", m, 4, job)
    failed = sum(result.text(s).count("failed") for s in ("hotplug", "s2idle"))
    warnings = guestdata.warnings(result.text("dmesg"))
    print(result.text("after"))
    print(f"{args.count} rounds, {failed} failed, {len(warnings)} warnings")
    return {"failed": failed, "warnings": warnings}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    experiments = {f.__name__: f for f in (fixed, changing, saturation, toggles, hotplug)}
    parser.add_argument("experiment", choices=experiments)
    parser.add_argument("--kernel", default="patched", help="base, patched or an image")
    parser.add_argument("--out", default=str(paths.BUILD / "experiments"))
    parser.add_argument("--units", type=int, default=118,
                        help="work per 10 ms (118: 1 ms at 3.8 GHz)")
    parser.add_argument("--periods", type=int, default=100)
    parser.add_argument("--step", type=int, default=1, help="in P-states")
    parser.add_argument("--policies", default="4c,active")
    parser.add_argument("--count", type=int, default=1000, help="toggles or rounds")
    args = parser.parse_args()
    data = experiments[args.experiment](args)
    name = Path(args.kernel).name
    (Path(args.out) / f"{args.experiment}-{name}.json").write_text(json.dumps(data, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
