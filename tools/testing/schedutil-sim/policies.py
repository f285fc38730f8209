#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Shared policies: the random life of guest-policies.sh in guests, for each size of a policy and
each way to set its frequency. In deterministic time: equal arguments, equal numbers.
"""
from __future__ import annotations

import argparse
import sys
from pathlib import Path

from virtual_silicon import cli, paths
from virtual_silicon.guest import options
from virtual_silicon.guest.job import Job
from virtual_silicon.guest.pool import Guest
from virtual_silicon.machine import machine

HERE = Path(__file__).resolve().parent
ACPI = "intel_pstate=disable cpufreq.default_governor=schedutil"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    options.where(parser, "policies")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=cli.count, default=600, help="virtual, of each guest")
    parser.add_argument("--cpus", type=cli.count, nargs="+", default=[2, 4, 8])
    parser.add_argument("--coordination", nargs="+", choices=["any", "all"],
                        default=["any", "all"])
    args = parser.parse_args()
    script = f"SEED={args.seed} LENGTH={args.seconds} HZ=250\n" + \
        (HERE / "guest-policies.sh").read_text()
    todo = [Guest(f"{how}-{cpus}", machine.load(str(HERE / f"shared-{how}.toml")), cpus,
                  paths.kernel("patched"), Job([("script", script)]), ACPI)
            for how in args.coordination for cpus in args.cpus]
    lost = 0
    for guest, answer in zip(todo, options.answers(args, todo)):
        text = answer.text("script")
        print(f"{guest.name} CPUs:\n{text}", flush=True)
        lost += not text.endswith("complaints 0 stayed 0 lost 0")
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(cli.ended("policies.py", main))
