# SPDX-License-Identifier: GPL-2.0
"""`cpuwhy compare` in a guest, where it is known what a setting gains: several comparisons in a
boot, each with an order of its own.

COMPARISONS=20 makes that many of each kind; a test has fewer.
"""
from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path

import pytest
from virtual_silicon import paths
from virtual_silicon.errors import MissingError
from virtual_silicon.guest import boot, initramfs, python
from virtual_silicon.guest.job import Job
from virtual_silicon.loads import RECIPE
from virtual_silicon.machine import machine

POWER = Path(__file__).resolve().parents[2]
TIMES = int(os.environ.get("COMPARISONS", 3))
CPUS = 8
GOVERNOR = "echo {} | tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
DEEP = "echo {} | tee /sys/devices/system/cpu/cpu*/cpuidle/state3/disable"
#: Settings, load, and what is right: of n threads that hand work on, without C6 many times as
#: many hops; of a thread that spins, nothing; with the lowest clock it loses.
KINDS = {
    "gain": (DEEP.format(0), DEEP.format(1),
             "handovers -c $(cat /tmp/steps) -n 16 -w 20 -s 0.1 -S 1", "number", "better"),
    "null": (DEEP.format(0), DEEP.format(1), "", "power", "same"),
    "loss": (GOVERNOR.format("performance"), GOVERNOR.format("powersave"),
             "handovers -c $(cat /tmp/steps) -n 2 -w 20 -s 0.1 -S 1", "number", "worse"),
}
#: Of each comparison a line of JSON: its report.
DRIVER = """\
import json, sys
from cpuwhy import compare
a, b, load, times = sys.argv[1:]
words = dict(argv=("sh", "-c", load), number=r"^([0-9.]+)") if load else {}
for _ in range(int(times)):
    plan = compare.Plan(a, b, 8, 0.1 if load else 0.3, 0.15, **words)
    print(json.dumps(compare.run(plan, lambda said: None)), flush=True)
"""


def guest(out: Path, kinds: dict[str, tuple[str, str, str, str, str]]) -> boot.Result:
    if sys.version_info[:2] != (3, 11) or not python.PYTHON.exists():
        pytest.skip("needs Debian's python3.11, to compile for it")
    try:
        kernel, qemu = paths.kernel("base"), paths.qemu()
    except MissingError as missing:
        pytest.skip(str(missing))
    job = Job(files={f"cpuwhy/{path.name}": path.read_bytes()
                     for path in (POWER / "cpuwhy").glob("*.py")} | {"driver.py": DRIVER.encode()})
    job.step("prepare", GOVERNOR.format("performance") + "; handovers >/tmp/steps; "
             + GOVERNOR.format("schedutil"))
    for name, (a, b, load, *_) in kinds.items():
        busy = "vs-load -c 1 -t 100000 >/dev/null & spin=$!; " if not load else "spin=; "
        job.step(name, f"{busy}/usr/bin/python3 -S /job/driver.py '{a}' '{b}' '{load}' {TIMES};"
                 " status=$?; [ -z \"$spin\" ] || kill $spin; return $status")
    items = [item for item in RECIPE if item.target.endswith("/handovers")] + python.items(out)
    config = boot.Config(
        machine=machine.load("sapphire-rapids"), cpus=CPUS, kernel=kernel, qemu=qemu,
        initramfs=initramfs.ensure(out / "guest", None, items), out=out, job=job.archive(),
        mode="deterministic", trace=False, append="intel_pstate=passive"
        " cpufreq.default_governor=schedutil",
        limits=boot.Limits(boot=200, silence=3000, overall=3000))
    return boot.run(config)


@pytest.mark.parametrize("kind", KINDS)
def test_verdicts_are_right(kind: str) -> None:
    """Each time, of the measure whose gain is known; and of nothing a false "better"."""
    out = paths.BUILD / "test/cpuwhy-compare" / kind
    result = guest(out, {kind: KINDS[kind]})
    text = result.text(kind)
    (out / "reports").write_text(text)
    assert result.step_status(kind) == 0, text
    reports = [json.loads(line) for line in text.splitlines() if line.startswith('"')]
    measure, right = KINDS[kind][3:]
    rows = [row for report in reports for row in report.splitlines()]
    said = Counter(row.split("  ")[-1].strip() for row in rows if row.startswith(measure))
    overall = Counter(row[24:].strip() for row in rows if row.startswith("verdict"))
    print(f"{kind}: {dict(said)}, overall {dict(overall)}\n{reports[-1]}")
    assert said == {right: TIMES}
    if right != "better":
        assert not overall["better"]
