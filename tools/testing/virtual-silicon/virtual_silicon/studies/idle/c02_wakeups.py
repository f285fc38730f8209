# SPDX-License-Identifier: GPL-2.0
"""Does a CPU in C0.2 get every wake-up in time? Runs wakeup_test in guests until C0.2 was
entered so often, and tells each slow wake-up. What its CPU was doing is in the trace in the
guest's results.log.

C0.2 is the only idle state (--state: another), and nothing but wake-ups ends it early:
the limit of user space is off.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict

from ... import cli, paths
from ...guest import boot, options
from ...guest.job import Job
from ...guest.pool import Guest
from ...machine import machine
from ...text import plain

#: What the trace of a slow one is made of.
EVENTS = ("power/cpu_idle irq/softirq_entry irq/softirq_exit irq/irq_handler_entry "
          "irq/irq_handler_exit irq_vectors sched/sched_switch")


def guest(args: argparse.Namespace, number: int) -> Guest:
    t, test = "/sys/kernel/tracing", "/sys/kernel/debug/wakeup_test"
    j = Job()
    j.step("only", f"for d in $CPU/cpu*/cpuidle/state*; do read -r n <$d/name; "
           f"[ $n = {args.state} ]; echo $? >$d/disable; done; "
           "put 0 $CPU/umwait_control/max_time; put teo $CPU/cpuidle/current_governor; "
           f"cd {t}; echo mono >trace_clock; echo 128 >buffer_size_kb; "
           f"for e in {EVENTS}; do echo 1 >events/$e/enable; done; echo 1 >tracing_on")
    j.step("run", f"s=$(grep -lx {args.state} $CPU/cpu*/cpuidle/state*/name | "
           "sed 's/name$/usage/'); cat $s | awk '{ n += $1 } END { print n }'; "
           f"echo {1 + 1000 * number} >{test}/seed; echo {args.wakeups} >{test}/run; "
           "cat $s | awk '{ n += $1 } END { print n }'")
    j.step("result", f"cat {test}/result")
    j.step("slow", f"cat {test}/slow")
    j.step("trace", f"[ $(wc -l <{test}/slow) = 1 ] || cat {t}/trace")
    j.step("dmesg", "dmesg")
    return Guest(f"wakeups-c02-{number}", machine.load(args.machine),
                 args.cpus[number % len(args.cpus)], paths.kernel(args.kernel), j,
                 "intel_pstate=passive cpufreq.default_governor=performance")


def parse(cpus: int, result: boot.Result) -> dict:
    before, after = (int(word) for word in result.text("run").split())
    rows = [line.split() for line in result.text("result").splitlines()[1:]]
    slow = [line.split() for line in result.text("slow").splitlines()[1:]]
    return {"cpus": cpus, "entries": after - before, "wakeups": sum(int(r[1]) for r in rows),
            "late": sum(int(r[2]) for r in rows), "busy": sum(int(r[3]) for r in rows),
            "longest_us": max(int(r[5]) for r in rows) / 1e3,
            "slow": [f"{what}: {kind} to CPU {cpu}, {(int(arrived) - int(sent)) / 1e3:.1f} us, "
                     f"of which {int(rested) / 1e3:.1f} us at rest"
                     for what, kind, cpu, sent, arrived, rested in slow]}


def sums(runs: list[dict]) -> str:
    by_cpus: dict[int, Counter[str]] = defaultdict(Counter)
    longest: dict[int, float] = defaultdict(float)
    for r in runs:
        by_cpus[r["cpus"]].update({k: r[k] for k in ("entries", "wakeups", "late", "busy")})
        longest[r["cpus"]] = max(longest[r["cpus"]], r["longest_us"])
    return plain("", ("CPUs", "entries", "wake-ups", "late", "busy", "longest us"), [
        [str(cpus), *(str(n[key]) for key in ("entries", "wakeups", "late", "busy")),
         f"{longest[cpus]:.1f}"] for cpus, n in sorted(by_cpus.items())])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=10_000_000)
    parser.add_argument("--wakeups", type=int, default=1_000_000, help="in each guest")
    parser.add_argument("--state", default="C0.2", help="the only idle state")
    parser.add_argument("--cpus", type=int, nargs="+", default=[2, 4], help="by turns")
    parser.add_argument("--first", type=int, default=0, help="number of the first guest")
    parser.add_argument("--machine", default="sapphire-rapids")
    parser.add_argument("--kernel", default="patched")
    options.where(parser, "idle")
    args = parser.parse_args()
    runs: list[dict] = []
    while sum(r["entries"] for r in runs) < args.entries:
        todo = [guest(args, args.first + len(runs) + i) for i in range(args.jobs)]
        for g, answer in zip(todo, options.answers(args, todo)):
            runs.append(parse(g.cpus, answer))
            print("\n".join([json.dumps({k: v for k, v in runs[-1].items() if k != "slow"}),
                             *runs[-1]["slow"]]), file=sys.stderr, flush=True)
        (args.out / "c02-wakeups.json").write_text(json.dumps(runs, indent=1) + "\n")
    print(sums(runs))
    return int(any(r["late"] for r in runs))


if __name__ == "__main__":
    sys.exit(cli.ended("c02-wakeups", main))
