#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""kselftest cpuidle_teo under kernels with several HZ: a table of what it counted.

Each kernel is booted with C0.2 and without, so that there are tables of two to five
idle states. Kernels are given as HZ=BASE,PATCHED, where both are images and BASE is one
with the base's teo; README.md says how to make them.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

from virtual_silicon import boot, initramfs, machine, paths  # noqa: E402
from virtual_silicon.errors import GuestError, MissingError  # noqa: E402
from virtual_silicon.job import Job  # noqa: E402

#: "with C0.2" only has the idle part that the other lacks in it: five states.
TABLES = {"": "intel_idle.c02=off", "C0.2": ""}

_ROW = re.compile(r"^# (menu|teo) +(.*?) +([\d.]+) wake-ups/s, deepest +([\d.]+) %, "
                  r"too deep +([\d.]+)/s, state 1 too shallow +([\d.]+) %", re.M)

Row = dict[str, float]
Rows = dict[tuple[int, str, str], dict[str, Row]]	# HZ, table, load; by governor


def run(args: argparse.Namespace, hz: int, which: str, kernel: Path, table: str) -> str:
    job = Job()
    job.step("wakeups", "/selftests/cpuidle_teo/wakeups")
    result = boot.run(boot.Config(
        machine=machine.load(args.machine), cpus=2, kernel=kernel, qemu=paths.qemu(None),
        initramfs=initramfs.ensure(Path(args.out) / "guest-wakeups", paths.selftests()),
        out=Path(args.out) / f"wakeups-{hz}-{which}{table}", job=job.archive(),
        mode="deterministic", trace=False,
        append="intel_pstate=passive cpufreq.default_governor=performance " + TABLES[table],
        limits=boot.Limits(boot=300, silence=900, overall=3600)))
    return result.text("wakeups")


def parse(text: str) -> dict[str, dict[str, Row]]:
    """By governor and load."""
    rows: dict[str, dict[str, Row]] = defaultdict(dict)
    for governor, load, *numbers in _ROW.findall(text):
        rows[governor][load] = dict(zip(("wakeups", "deepest", "above", "shallow1"),
                                        map(float, numbers)))
    if not rows:
        raise GuestError("the kselftest said nothing", text.splitlines()[-10:])
    return rows


def measure(args: argparse.Namespace) -> Rows:
    rows: Rows = defaultdict(dict)
    for kernel in args.kernel:
        hz, images = kernel.split("=")
        base, patched = images.split(",")
        for table in TABLES:
            ours = parse(run(args, int(hz), "patched", paths.kernel(patched), table))
            # The base has no C0.2
            bases = parse(run(args, int(hz), "base", paths.kernel(base), table)) \
                if not table or base != "base" else {}
            for name, found in (("menu", ours["menu"]), ("teo", ours["teo"]),
                                ("base teo", bases.get("teo", {}))):
                for load, row in found.items():
                    rows[int(hz), table, load][name] = row
            print(f"HZ {hz} {table} done", file=sys.stderr)
    return rows


def cells(load: str, row: Row | None) -> str:
    if row is None:
        return "-"
    if load.startswith("idle"):
        return f"{row['wakeups']:.1f}, {row['deepest']:.2f} %"
    if "remote" in load:
        return f"{row['above']:.1f}"
    return f"{row['shallow1']:.1f} %"


def report(rows: Rows) -> str:
    """Idle: wake-ups per second, share of time in the deepest state; remote: too
    deep per second; else how often state 1 was too shallow."""
    lines = ["| HZ | load | menu | base teo | teo |", "|---|---|---|---|---|"]
    for (hz, table, load), found in sorted(rows.items(), key=lambda r: r[0][0]):
        if table and not load.startswith("idle"):
            continue
        title = f"{load}{' with ' + table if table else ''}"
        lines.append(f"| {hz} | {title} | " + " | ".join(
            cells(load, found.get(name)) for name in ("menu", "base teo", "teo")) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", default="sapphire-rapids")
    parser.add_argument("--out", default=str(paths.BUILD / "idle"))
    parser.add_argument("kernel", nargs="*", default=["250=base,patched"],
                        help="HZ=BASE,PATCHED (default 250=base,patched)")
    args = parser.parse_args()
    try:
        rows = measure(args)
    except (GuestError, MissingError) as error:
        print(f"wakeups: {error}", file=sys.stderr)
        return 1
    print(report(rows))
    (Path(args.out) / "wakeups.json").write_text(json.dumps(
        [{"hz": hz, "table": table, "load": load, **found}
         for (hz, table, load), found in rows.items()], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
