# SPDX-License-Identifier: GPL-2.0
"""The series' turbostat in a guest: its new columns beside sysfs and the model."""
from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cpuwhy import states
from cpuwhy.tests import scripted_guest
from virtual_silicon import paths
from virtual_silicon.errors import MissingError
from virtual_silicon.guest import boot, initramfs
from virtual_silicon.guest.job import Job
from virtual_silicon.machine import machine
from virtual_silicon.readers import trace, turbostat

SOURCE = paths.BUILD / "linux/tools/power/x86/turbostat"
EVENTS = Path(__file__).with_name("core_events.c")
CPUS = 2
#: What 7.3 reads without asking whether it is there
FAULTS = "* msr msr=0x64d value=0\n"
#: Half the clock of the TSC, so that clocks and time are not the same.
KHZ = 1_000_000
BEGIN, END = 100, 101
#: Timers with all states; C0.2 by a limit of latency where C1E and C6 would do; interrupts
#: that nobody foresees, of which C6 or POLL is wrong.
LOAD = f"""#!/bin/busybox sh
. /usr/lib/vs/guest.sh
states() {{ for s in 0 1 2 3 4; do put $1 $CPU/cpu*/cpuidle/state$s/disable; shift; done; }}
{scripted_guest.COUNTERS.format('before')}
vs-msr 0 {scripted_guest.MARK}={BEGIN}
vs-wake -m timer -c 1 -n 200 -w 20 -x 3000 >/dev/null
states 0 0 1 0 0
put 1 $CPU/cpu1/power/pm_qos_resume_latency_us
cyclictest -q --default-system -t 1 -a 1 -i 100 -l 4000 >/dev/null
put 0 $CPU/cpu1/power/pm_qos_resume_latency_us
states 0 1 1 1 0
vs-wake -m device -c 1 -n 400 -w 100 -x 1900 >/dev/null
states 0 0 0 0 0
vs-msr 0 {scripted_guest.MARK}={END}
{scripted_guest.COUNTERS.format('after')}
"""


def compiled(out: Path) -> dict[str, bytes]:
    """turbostat by its own Makefile, and the library that stands for the events."""
    out.mkdir(parents=True, exist_ok=True)
    library = out / "core_events.so"
    for command in (["make", "-sB", "-C", SOURCE, f"O={out}", "CFLAGS=-Werror"],
                    ["gcc", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC",
                     f"-DKHZ={KHZ}ULL", EVENTS, "-o", library, "-ldl"]):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, done.stderr
    return {"turbostat": (out / "turbostat").read_bytes(), "core_events.so": library.read_bytes(),
            "load": LOAD.encode()}


@pytest.fixture(scope="module")
def guest() -> boot.Result:
    if not SOURCE.is_dir():
        pytest.skip("no build/linux")
    out = paths.BUILD / "test/turbostat"
    # 7.3 shows events of the cache, which there are none of, and no counts of idle states.
    newer = "bic_group_cache" in (SOURCE / "turbostat.c").read_text()
    alone = "--hide IPC" + ",cache --enable cpuidle" * newer
    try:
        kernel, qemu = paths.kernel("patched"), paths.qemu()
    except MissingError as missing:
        pytest.skip(str(missing))
    job = Job(files=compiled(out))
    job.step("setup", "chmod +x /job/turbostat /job/load; put teo $CPU/cpuidle/current_governor; "
             f"put {KHZ} $CPU/cpu*/cpufreq/scaling_max_freq; sleep 0.1")
    job.step("list", "/job/turbostat -l -q")
    job.step("show", "/job/turbostat -q --show C1+,C0.2- sleep 0.1 2>&1")
    job.step("hide", "/job/turbostat -q -l --hide C1+")
    job.step("sysfs", "/job/turbostat -q -l --show sysfs")
    job.step("events", "LD_PRELOAD=/job/core_events.so /job/turbostat -l -q; "
             "LD_PRELOAD=/job/core_events.so /job/turbostat -l -q --no-perf")
    job.step("load", f"LD_PRELOAD=/job/core_events.so /job/turbostat {alone} -q -o /tmp/t "
             "/job/load || return 1; cat /tmp/t")
    for name in ("before", "after"):
        job.step(name, f"cat /tmp/{name}")
    (out / "faults").write_text(FAULTS)
    config = boot.Config(machine=machine.load("sapphire-rapids"), cpus=CPUS, kernel=kernel,
                         qemu=qemu, initramfs=initramfs.ensure(out / "guest"), out=out,
                         job=job.archive(), mode="deterministic", faults=out / "faults",
                         append="intel_pstate=passive cpufreq.default_governor=performance",
                         limits=boot.Limits(boot=120, silence=200, overall=400))
    return boot.run(config)


STATES = ["POLL", "C0.2", "C1", "C1E", "C6"]
SHARES = [f"{name}%" for name in STATES]


def columns(guest: boot.Result, step: str) -> list[str]:
    return [name for line in guest.text(step).splitlines() for name in line.split(",")]


def test_columns(guest: boot.Result) -> None:
    """In the order of the states; none that is always zero."""
    listed = columns(guest, "list")
    first = listed.index("POLL")
    ours = [*STATES, *(f"{name}-" for name in STATES[1:]), *(f"{name}+" for name in STATES[:-1])]
    if "POLL-" in listed:		# 7.3 has them itself, in its own order and one more
        first = listed.index("POLL-")
        ours = [f"{name}{which}" for name in STATES for which in ("-", "", "+")]
        ours.remove("POLL+")
    assert listed[first:first + len(ours) + 5] == ours + SHARES
    assert columns(guest, "sysfs") == ["Busy%"] * ("POLL-" in listed) + ours + SHARES


def test_show_and_hide(guest: boot.Result) -> None:
    head = guest.text("show").splitlines()[1].split()
    assert head == ["C0.2-", "C1+"]
    assert set(columns(guest, "list")) - set(columns(guest, "hide")) == {"C1+"}


def test_no_events_no_columns(guest: boot.Result) -> None:
    """The guest has no performance counters."""
    listed = columns(guest, "list")
    assert "Busy%" in listed and not [name for name in listed if name.startswith("CPU%c0")]
    assert [name for name in columns(guest, "events") if name.startswith("CPU%c0")] == [
        "CPU%c01", "CPU%c02"]


@pytest.fixture(scope="module")
def table(guest: boot.Result) -> turbostat.Table:
    return turbostat.table(guest.text("load"))


@pytest.fixture(scope="module")
def counted(guest: boot.Result,
            tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[states.State]]:
    root = tmp_path_factory.mktemp("files")
    return states.difference(*(states.read_sysfs(
        scripted_guest.tree(root / name, guest.text(name))) for name in ("before", "after")))


#: Idle times of turbostat's own reads, and of starting the load.
OUTSIDE = 8


def test_counts_are_those_of_sysfs(table: turbostat.Table,
                                   counted: dict[int, list[states.State]]) -> None:
    compared = 0
    for cpu, rows in counted.items():
        for index, state in enumerate(rows):
            for suffix, count in (("", state.usage), ("-", state.above), ("+", state.below)):
                shown = table.cpus[cpu].get(state.name + suffix)
                if shown is None and (suffix, index) == ("+", 0) and "POLL-" in table.cpus[cpu]:
                    continue		# 7.3 has no POLL+
                if shown is None:
                    assert count == 0 and (suffix, index) in (("-", 0), ("+", len(rows) - 1))
                    continue
                assert count <= shown <= count + OUTSIDE, (cpu, state.name, suffix)
                compared += count > 4 * OUTSIDE
    # Mistakes of both kinds happened.
    above, below = ({s.name: getattr(s, which) for s in counted[1]} for which in ("above", "below"))
    assert compared >= 6 and above["C6"] > 50 and below["C0.2"] > 1000, (above, below)


def test_summary_is_the_sum(table: turbostat.Table) -> None:
    for name in ("C0.2-", "C0.2+", "C1+", "C6-"):
        assert table.summary[name] == sum(row[name] for row in table.cpus.values())


def test_c02_is_the_models(guest: boot.Result, table: turbostat.Table) -> None:
    """The share of C0.2 by the events' clocks, by sysfs, and as the model counts it."""
    assert guest.trace
    events = trace.read(guest.trace)
    first, last = events.mark(BEGIN), events.mark(END)
    for cpu, row in table.cpus.items():
        ns = last.cpus[cpu].states["C0.2"][1] - first.cpus[cpu].states["C0.2"][1]
        share = 100 * ns / 1e9 / table.seconds
        assert row["C0.2%"] == pytest.approx(share, rel=0.05, abs=0.3)
        assert row["CPU%c02"] == pytest.approx(row["C0.2%"], rel=0.02, abs=0.05)
        assert row["CPU%c01"] == pytest.approx(row["CPU%c02"] / 4, abs=0.02)
    assert table.cpus[1]["CPU%c02"] > 5
