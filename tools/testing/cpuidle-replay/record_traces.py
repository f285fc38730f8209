#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Record traces of loads of many threads in guests, for replay.

Each load runs in a guest of its own with eight CPUs, in deterministic time, on the base
kernel under performance. Its CPUs always rest in C1 and let the tick be stopped (ladder).
The CPU with the median number of idle times is kept. traces/README.md says what the loads
are; those in HELD_OUT are for judging alone.
"""
from __future__ import annotations

import argparse
import itertools
import lzma
import sys
from pathlib import Path

from cpuwhy import replay, states
from cpuwhy.events import Source
from cpuwhy.record import sidecar
from cpuwhy.tests import scripted_guest
from virtual_silicon import loads, paths

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[2]
APPEND = ("intel_pstate=passive cpufreq.default_governor=performance intel_idle.max_cstate=1 "
          "cpuidle.governor=ladder")
#: Periods of a file, as many as the other traces have at most
MOST = 40_000


CPUS = 8
#: Off the CPU of the recorder; ho: handovers, so many steps of work in a us
HO = "taskset -p ff $$ >/dev/null; ho() { handovers -c $steps \"$@\"; }; steps=$(handovers); "

TUNING = {
    "handover_ring": "ho -n 16 -o ring -w 20 -s 1.5",
    "handover_pool_60us": "ho -n 16 -w 60 -s 0.8",
    "handover_rests": "ho -n 16 -w 20 -p 500 -s 0.8",
    "dispatcher_tcp": "ho -n 9 -o workers -m tcp -w 100 -s 0.6",
    "changes": "for i in 1 2; do ho -n 8 -w 40 -s 0.4; cyclictest -q --default-system -t 8 -a -i 700 -l 700;"
               " ho -n 9 -o burst -w 300 -p 3000 -s 0.4; messages 6 0.4; done",
    "bursts_after_60s": "for i in 1 2 3; do sleep 60; ho -n 9 -o burst -w 200 -p 1500 -s 0.3; done",
}
HELD_OUT = {
    "handover_four": "ho -n 32 -k 4 -w 200 -s 0.5",
    "handover_epoll_rests": "ho -n 12 -m epoll -w 35 -p 1200 -s 1",
    "dispatcher_three": "ho -n 12 -o workers -k 3 -m pipe -w 50 -p 300 -s 0.6",
    "changes_more": "messages 10 0.5; ho -n 6 -o ring -m unix -w 150 -p 800 -s 0.4; sleep 1;"
                    " hackbench -g 1 -f 2 -l 100 >/dev/null;"
                    " cyclictest -q --default-system -t 4 -i 1500 -l 300; messages 3 0.5",
    "messages_after_90s": "for i in 1 2 3; do sleep 90; messages 7 0.5; done",
}
LOADS = TUNING | HELD_OUT


def shorten(path: Path, target: Path) -> int:
    """The first periods alone; returns how many."""
    with lzma.open(path, "rt") as whole, lzma.open(target, "wt", preset=9) as out:
        lines = list(itertools.islice(whole, MOST + 2))
        out.writelines(lines)
    return len(lines) - 2


def record(name: str, args: argparse.Namespace) -> None:
    load, work = LOADS[name], args.out / "guests" / name
    got = scripted_guest.run(work, paths.kernel("base"), paths.qemu(), HO + load, CPUS, APPEND,
                             part=args.machine, recipe=loads.HERE / "recipe.txt", overall=3000)
    about = states.load(sidecar(got.path))
    assert about
    about.workload = load
    writer = replay.convert(Source(got.path), about, str(work / name), 0, lambda n, facts: None)
    keep = sorted(writer.rows, key=lambda cpu: writer.rows[cpu])[len(writer.rows) // 2]
    rows = shorten(writer.path(keep), args.out / f"{name}.csv.xz")
    print(f"{name}: {rows} idle times of CPU {keep}; of each CPU:",
          *(writer.rows[cpu] for cpu in sorted(writer.rows)), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="directory for the traces")
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *LOADS],
                        help=f"of {', '.join(LOADS)}; all by default")
    parser.add_argument("--machine", default=str(HERE / "sapphire-rapids-fine.toml"))
    args = parser.parse_args()
    for name in args.names or LOADS:
        record(name, args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
