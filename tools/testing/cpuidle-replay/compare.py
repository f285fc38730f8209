#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""How much of the distance to the bound does a governor close?

Reads what `governor-replay --json` printed, and for each state table compares
one governor with the better of the others: the share of adequate choices
against 100 %, energy against the least, exit latency per wake-up. Each
trace weighs the same. The traces, in the order of their names, fall into two
halves in turns, so that what was tuned on one can be checked on the other.
Below come the traces on which the governor is worse by more than a margin.
"""
from __future__ import annotations

import argparse
import json
import sys
from statistics import mean
from typing import NamedTuple


class Figures(NamedTuple):
    adequate: float     # percent
    energy: float       # least = 1
    latency: float      # us per wake-up


Trace = dict[str, Figures]      # by governor


def figures(result: dict, least: dict) -> Figures:
    return Figures(100 * result["adequate"] / result["decisions"], result["energy"] / least["energy"],
                   result["wake_latency_ns"] / result["periods"] / 1000)


def read(lines: list[str]) -> dict[str, dict[str, Trace]]:
    """By state table and trace."""
    tables: dict[str, dict[str, Trace]] = {}
    for line in lines:
        run = json.loads(line)
        least = run["governors"]["least-energy"]
        tables.setdefault(run["states"], {})[run["trace"]] = {
            name: figures(result, least) for name, result in run["governors"].items()}
    return tables


def best(candidates: list[Figures]) -> Figures:
    return Figures(max(c.adequate for c in candidates), min(c.energy for c in candidates),
                   min(c.latency for c in candidates))


def means(traces: list[Trace], governor: str) -> Figures:
    return Figures._make(map(mean, zip(*(t[governor] for t in traces))))


def closed(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0.0


def print_summary(title: str, traces: list[Trace], governor: str, others: list[str]) -> None:
    ours, ref = means(traces, governor), best([means(traces, o) for o in others])
    print(f"{title:16} {ref.adequate:5.1f} {ours.adequate:5.1f} "
          f"{closed(ours.adequate - ref.adequate, 100 - ref.adequate):5.0f} %   "
          f"{ref.energy:.3f} {ours.energy:.3f} "
          f"{closed(ref.energy - ours.energy, ref.energy - 1):5.0f} %   "
          f"{ref.latency:6.2f} {ours.latency:6.2f} "
          f"{closed(ours.latency - ref.latency, ref.latency):+6.1f} %")


def worse(trace: Trace, governor: str, others: list[str], margin: float) -> list[str]:
    ours, ref = trace[governor], best([trace[o] for o in others])
    found = {"adequate": ref.adequate - ours.adequate,
             "energy": closed(ours.energy - ref.energy, ref.energy),
             "latency": closed(ours.latency - ref.latency, ref.latency)}
    return [f"{name} {by:.1f}" for name, by in found.items() if by > margin]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("json", nargs="?", type=argparse.FileType(), default=sys.stdin)
    parser.add_argument("--governor", default="teo")
    parser.add_argument("--against", nargs="+", default=["base-menu", "base-teo"])
    parser.add_argument("--margin", type=float, default=2, help="percent (default: 2)")
    args = parser.parse_args()

    print(f"{'':16} {'adequate %':>18}     {'energy':>18}     {'exit latency us':>20}")
    print(f"{'':16} {'better -> ' + args.governor + ', of the distance closed':>44}")
    for table, traces in read(args.json.readlines()).items():
        ordered = [traces[name] for name in sorted(traces)]
        for title, part in (("all", ordered), ("tuning", ordered[::2]), ("checking", ordered[1::2])):
            if part:
                print_summary(f"{table} {title}", part, args.governor, args.against)
        for name in sorted(traces):
            if found := worse(traces[name], args.governor, args.against, args.margin):
                print(f"    {name}: worse in {', '.join(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
