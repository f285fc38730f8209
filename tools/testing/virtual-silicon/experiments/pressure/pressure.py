#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Does the scheduler gain if it is told what capacity turbo leaves with so many active
cores? README.md of the directory above says what came out."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1])]

from virtual_silicon import boot, cli, guestdata, initramfs, machine, paths, trace  # noqa: E402
from virtual_silicon.guests import Guest, Guests  # noqa: E402
from virtual_silicon.job import Job  # noqa: E402

HOGS = "any:0:0"
PINNED = " ".join(f"{cpu}:0:0" for cpu in range(4))
#: Tasks beside each other; CPUs 0-3 are the first package, 4-7 the second.
MIXES = {
    "a full package, 3 free": f"{PINNED} {HOGS} {HOGS} {HOGS}",
    "12 on 8 CPUs": f"{PINNED} 4:0:0 5:0:0 " + " ".join([HOGS] * 6),
    "9 on 4 + 2 CPUs": " ".join([HOGS] * 9),
    "periodic beside a full package": f"{PINNED} " + " ".join(["any:47:8000"] * 6),
}
OFFLINE = "9 on 4 + 2 CPUs"


def pressure(kernel: str) -> bool:
    """Has the kernel the switch?"""
    return "base" not in Path(kernel).name


def work(program: bytes, kernel: str, repeats: int, ms: int,
         mixes: list[str]) -> tuple[Job, list[tuple[int, int, str]]]:
    """Pressure off and on by turns, so that what drifts is in both."""
    job = Job()
    rows: list[tuple[int, int, str]] = []
    job.step("install", "cp /job/vs-mix /tmp; chmod 755 /tmp/vs-mix")
    job.files["vs-mix"] = program
    for name in mixes:
        mix = MIXES[name]
        cpus = "$CPU/cpu6/online $CPU/cpu7/online"
        job.step(f"cpus-{len(rows)}", f"put {int(name != OFFLINE)} {cpus}; true")
        for repeat in range(repeats):
            for on in (0, 1) if pressure(kernel) else (0,):
                mark = 100 + 2 * len(rows)
                switch = (f"put {on} /sys/module/kernel/parameters/freq_pressure; "
                          if pressure(kernel) else "")
                job.step(f"mix-{mark}", f"{switch}sleep 0.0{3 + repeat}; "
                         f"/tmp/vs-mix -t {ms} -m {mark} {'-d' if repeat == 0 else ''} {mix}")
                rows.append((mark, on, name))
    job.step("dmesg", "dmesg")
    return job, rows


def figures(result: boot.Result, mark: int) -> dict[str, float]:
    assert result.trace
    seen = trace.window(trace.read(result.trace), mark, mark + 1)
    lines = [line.split() for line in result.text(f"mix-{mark}").splitlines() if line]
    out = {words[0]: float(words[1]) for words in lines if words[0] == "admitted"}
    tasks = [[float(x) for x in words] for words in lines if len(words) == 6]
    free = [t for t in tasks if t[0] < 0]
    done = sum(t[1] for t in tasks)
    joules = seen.package_j
    periods = sum(t[2] for t in free)
    return out | {
        "units/s": done / seen.seconds, "units/J": done / joules,
        "least/mean of free": min(t[1] for t in free) / statistics.mean(t[1] for t in free),
        "late %": 100 * sum(t[3] for t in free) / periods,
        "response us": sum(t[4] * t[2] for t in free) / periods,
        "moves": sum(t[5] for t in free)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernel", default="patched")
    parser.add_argument("--qemu")
    parser.add_argument("--policy", default="1c")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--ms", type=int, default=300)
    parser.add_argument("--mix", type=int, help="only this one, by its number from 0")
    parser.add_argument("--out", type=Path, default=paths.BUILD / "experiments")
    args = parser.parse_args()
    mixes = list(MIXES) if args.mix is None else [list(MIXES)[args.mix]]
    program = args.out / "vs-mix"
    program.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-O2", "-static", "-o", program, HERE / "vs-mix.c", "-lpthread"],
                   check=True)
    job, rows = work(program.read_bytes(), args.kernel, args.repeats, args.ms, mixes)
    append = "intel_pstate=passive cpufreq.default_governor=schedutil"
    guests = Guests(args.out, initramfs.ensure(args.out / "guest"), paths.qemu(args.qemu))
    [result] = guests.answers([Guest(
        f"pressure-{Path(args.kernel).name}", machine.load(str(HERE / "two-steep.toml")), 8,
        paths.kernel(args.kernel), job,
        append + f" freq_invariance={args.policy}" * pressure(args.kernel), trace=True)], 1)
    print(guestdata.warnings(result.text("dmesg")))
    for name in mixes:
        for on in (0, 1):
            seen = [figures(result, mark) for mark, o, n in rows if (o, n) == (on, name)]
            if not seen:
                continue
            print(f"{name}, pressure {('off', 'on')[on]}")
            for key in seen[-1]:
                values = sorted(f[key] for f in seen if key in f)
                print(f"  {key:20s} {statistics.median(values):10.2f}  "
                      f"{values[0]:10.2f} to {values[-1]:10.2f}")
            for f in seen:
                if "admitted" in f:
                    print(f"  admitted reservations {f['admitted']:.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(cli.ended("pressure", main))
