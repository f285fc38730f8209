# SPDX-License-Identifier: GPL-2.0
"""make live-test: what make live made, on Debian's unmodified kernel in virtual silicon."""
from __future__ import annotations

import re
import statistics
from pathlib import Path

from virtual_silicon import loads
from virtual_silicon.errors import Fail
from virtual_silicon.guest import distribution, initramfs
from virtual_silicon.guest.boot import Result
from virtual_silicon.guest.job import Job
from virtual_silicon.guest.pool import Guest, Guests
from virtual_silicon.machine import machine
from virtual_silicon.progress import say

from .. import paths, proc
from ..fetch import aptget
from ..patchqueue import live as parts
from .testrun import Count

TOOL = parts.GLUE / "x86-dvfs-live"
SELFTESTS = paths.TOP / "tools/testing/selftests"
PROGRAMS = (SELFTESTS / "sched_handovers/handovers.c", SELFTESTS / "sched_pairs/conversations.c",
            Path(loads.__file__).with_name("messages.c"))
COMMON = """export X86_DVFS_LIVE_DIR=/job/live; live=/job/x86-dvfs-live
governors() { put $1 $CPU/cpufreq/policy*/scaling_governor; }
# What no switch may leave in the log
clean() { ! dmesg | grep -E 'WARNING|BUG:|Oops|stall|lockup|hung_task'; }
"""
#: Handovers measures what it does in a us at the highest clock.
CALIBRATE = "governors performance; handovers >/tmp/steps; governors schedutil; sleep 0.5"
#: Each prints its name and numbers, of which the first counts.
ROWS = """steps=$(cat /tmp/steps)
echo "hop:n=16 $(handovers -c $steps -s 0.15 -n 16)"
echo "hop:w=60 $(handovers -c $steps -s 0.15 -n 16 -w 60)"
echo "turns:pipe $(conversations pipe 0.3)"
echo "messages:3 $(messages 3 0.4)"
echo "rise:step $(vs-rise -c 1 -m step -f -r 38 -n 1 -k 12 -b 300 -w 59000)"
"""
#: A hundred times on and off while tasks come and go, CPUs leave and governors change; of ten
#: calls one is killed.
SWITCH = """governors schedutil
( while :; do hackbench -g 1 -l 20 >/dev/null; sleep 1; done ) & load=$!
( while :; do for cpu in 2 3; do put 0 $CPU/cpu$cpu/online; sleep 2; put 1 $CPU/cpu$cpu/online
	governors performance; sleep 1; governors schedutil; done; done ) 2>/dev/null & churn=$!
now() { cut -d' ' -f1 /proc/uptime; }
for round in $(seq 0 99); do for do in on off; do
	set -- $(echo $PARTS | tr ' ' '\\n' | sed -n "$((round % 4 + 1))p")
	if [ $((round % 10)) = 9 ]; then
		$live $do $1 >/dev/null 2>&1 & sleep 0.$((round / 10)); kill -9 $! 2>/dev/null
	fi
	from=$(now); $live $do $1 >/dev/null || echo "failed: round $round, $do $1"
	[ $((round % 10)) = 9 ] || echo "took $do $from $(now)"
done; done
kill $load $churn; $live status; clean
"""


def packages(release: str) -> Path:
    """Debian's image, with its modules beside it."""
    out = paths.BUILD / "kernels"
    out.mkdir(parents=True, exist_ok=True)
    found = []
    for kind in ("modules", "binary"):
        name = f"linux-{kind}-{release}"
        if not (there := list(out.glob(f"{name}_*.deb"))):
            there = [aptget.download(aptget.offers(name, aptget.backports())[0], out)]
        found.append(there[0])
    return found[-1]


def guest(release: str, steps: dict[str, str], cpus: int, mode: str) -> Guest:
    kernel = distribution.unpack(packages(release), paths.BUILD / "kernels")
    job = Job(files={**kernel.files(), "x86-dvfs-live": TOOL.read_bytes(),
                     **{f"live/{release}/{file.name}": file.read_bytes()
                        for file in (paths.BUILD / "live/modules" / release).iterdir()}})
    for step, shell in steps.items():
        job.step(step, f'PARTS="{" ".join(parts.PARTS)}"\n{COMMON}{shell}')
    return Guest(release, machine.load("sapphire-rapids"), cpus, kernel.image, job,
                 append="intel_pstate=passive", mode=mode)


def answers(name: str, steps: dict[str, str], cpus: int, mode: str) -> dict[str, Result]:
    """Of each release there are modules for."""
    releases = sorted(path.name for path in (paths.BUILD / "live/modules").glob("*"))
    if not releases:
        raise Fail("there are no modules: make live BASE=7.3")
    out = paths.BUILD / "live-test" / name
    items = [initramfs.Item("compile", str(file), f"usr/bin/{file.stem}") for file in PROGRAMS]
    items.append(initramfs.Item("package", "/usr/bin/flock", "usr/bin/flock", "util-linux"))
    archive = initramfs.ensure(out / "guest", None, items)
    todo = [guest(release, steps, cpus, mode) for release in releases]
    pool = Guests(out, archive, paths.QEMU_BINARY, proc.jobs())
    return dict(zip(releases, pool.answers(todo)))


def switches() -> Count:
    """Each comes to its end, and the log is clean."""
    count = Count()
    for release, answer in answers("switch", {"switch": SWITCH}, 4, "deterministic").items():
        said = answer.text("switch")
        for do in ("on", "off"):
            took = sorted(float(to) - float(at) for at, to in
                          re.findall(rf"^took {do} (\S+) (\S+)$", said, re.M))
            if took:
                say(f"live: {release}: {len(took)} times {do}: median"
                    f" {statistics.median(took):.2f} s, longest {took[-1]:.2f} s")
        bad = re.findall(r"^(?!took|\w+: off$|taint: ).+", said, re.M)
        bad += [] if said.count("took") == 180 else [f"{said.count('took')} of 180 switches"]
        count += Count(int(not bad), 0, [f"{release}: {line}" for line in bad])
    return count


def figures() -> Count:
    """Rows of the stock kernel, with all parts on, and off again: threads that hand work on gain
    what they gain on the series' own kernel, and nothing is left afterwards."""
    steps = {"calibrate": CALIBRATE, "stock": ROWS, "switch-on": "$live on", "on": ROWS,
             "switch-off": "$live off; [ $(cat $CPU/cpuidle/current_governor) = menu ] && clean",
             "off": ROWS}
    count = Count()
    for release, answer in answers("figures", steps, 8, "deterministic").items():
        rows = {step: {line.split()[0]: float(line.split()[1])
                       for line in answer.text(step).splitlines() if line.strip()}
                for step in ("stock", "on", "off")}
        for name, stock in rows["stock"].items():
            say(f"live: {release}: {name}: {stock:g}, on {rows['on'][name]:g},"
                f" off {rows['off'][name]:g}")
        bad = [f"{name} with all parts on" for name in ("hop:n=16", "hop:w=60")
               if rows["on"][name] < 5 * rows["stock"][name]]
        bad += [f"{name} off again" for name in ("hop:n=16", "hop:w=60", "messages:3")
                if abs(rows["off"][name] / rows["stock"][name] - 1) > 0.1]
        bad += [f"step {name}" for name, section in answer.answer.sections.items()
                if section.status]
        count += Count(int(not bad), 0, [f"{release}: {line}" for line in bad])
    return count
