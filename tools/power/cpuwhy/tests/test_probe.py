# SPDX-License-Identifier: GPL-2.0
"""What probe says of a machine, and of nobody who owns it; that it puts all back."""
from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from cpuwhy import cli, doctor, form, man, measure, probe
from cpuwhy.errors import Fail
from cpuwhy.guard import Guard

CPU = "sys/devices/system/cpu"
NAME = "Intel(R) Xeon(R) Platinum 8592+"
#: What must not come out, wherever it is planted.
SECRETS = ("5CD1234XYZ", "52:54:00:12:34:56", "erikas-laptop", "erika", "192.0.2.77",
           "4C4C4544-0042-3510", "WD-WCC4E1234567")
#: Of a platinum-8592 with the base's mistake: it reads 1670.
REGISTERS = {0xCE: 0x8080000001300, 0x1AD: 0x1D1D1E1E1F212327, 0x1AE: 0x403E3A36322E2820,
             0x4F: 0x1234567890ABCDEF}
LOG = ("Linux version 6.1.0 (erika@erikas-laptop)\nDMI: Dell 5CD1234XYZ\n"
       "e1000e 52:54:00:12:34:56\nEstimated ratio of average max frequency by base frequency"
       " (times 1024): 1670\n")
STATES = [("POLL", "CPUIDLE CORE POLL IDLE", 0, 0), ("C1", "MWAIT 0x00", 1, 1),
          ("C6", "MWAIT 0x20", 290, 800)]
FILES = {
    "dmesg": LOG, "proc/sys/kernel/osrelease": "6.1.176-erikas-laptop",
    "proc/sys/kernel/hostname": "erikas-laptop",
    "proc/cmdline": "root=UUID=4C4C4544-0042-3510 ip=192.0.2.77 intel_pstate=passive nosmt"
                    " mitigations=erika@ hostname=erikas-laptop",
    "proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 207\n"
                    f"model name\t: {NAME}\nstepping\t: 2\nmicrocode\t: 0x21000283\n"
                    "flags\t\t: fpu aperfmperf waitpkg\nserial\t: 5CD1234XYZ\n",
    "sys/class/dmi/id/product_serial": "5CD1234XYZ", "sys/class/dmi/id/product_uuid":
        "4C4C4544-0042-3510", "sys/class/net/eth0/address": "52:54:00:12:34:56",
    "sys/block/sda/device/serial": "WD-WCC4E1234567",
    f"{CPU}/cpuidle/current_driver": "intel_idle", f"{CPU}/cpuidle/current_governor": "menu",
    f"{CPU}/intel_pstate/status": "passive",
    **{f"{CPU}/cpu{n}/{name}": value for n in range(4) for name, value in {
        "topology/physical_package_id": "0", "topology/core_id": str(n),
        "cpufreq/scaling_driver": "intel_cpufreq", "cpufreq/scaling_governor": "schedutil",
        "cpufreq/cpuinfo_min_freq": "800000", "cpufreq/cpuinfo_max_freq": "3900000",
        "cpufreq/scaling_max_freq": "3900000",
        **{f"cpuidle/state{k}/{key}": str(text) for k, row in enumerate(STATES)
           for key, text in zip(("name", "desc", "latency", "residency", "disable"),
                                (*row, 0))}}.items()},
}


def machine(root: Path, **changes: str) -> doctor.System:
    """@changes: by name, with __ for /."""
    for name, text in (FILES | {key.replace("__", "/"): v for key, v in changes.items()}).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return doctor.System(root)


def read(system: doctor.System) -> form.Data:
    return probe.read(system, 1, lambda _, register: REGISTERS.get(register))


def test_what_is_read(tmp_path: Path) -> None:
    """The decoder is the project's; the kernel's mistake is said in one sentence."""
    data = read(machine(tmp_path))
    assert not list(form.problems(data))
    text = form.render(data)
    assert form.check(text) == data
    assert f"# {NAME}, Linux 6.1.176." in text
    assert "# Your kernel takes 3.1 GHz for your highest clock; it is 3.9." in text
    assert data["clock"]["freq_max"] == 2101 and data["kernel"]["freq_max"] == 1670
    assert data["clock"]["turbo_cores"][:2] == [32, 40]
    assert data["clock"]["turbo_mhz"][:2] == [3900, 3500]
    assert [(s["name"], s["enter"], s["exit_us"], s["residency_us"]) for s in data["state"]] == [
        ("POLL", "POLL", 0, 0), ("C1", "MWAIT 0x00", 1, 1), ("C6", "MWAIT 0x20", 290, 800)]
    assert data["cpu"] | {"cores": 4, "threads": 1, "packages": 1} == data["cpu"]
    assert "missing" not in data


@pytest.mark.parametrize("changes, patched, said", [
    ({}, False, 1670), ({"sys__module__aperfmperf__parameters__freq_max": "255c", "dmesg":
                         "freq_invariance: Estimated ratio of average max frequency by"
                         " base frequency (times 1024): 1562"}, True, 1562)])
def test_kernels_of_both_kinds(changes: dict[str, str], patched: bool, said: int,
                               tmp_path: Path) -> None:
    data = read(machine(tmp_path, **changes))
    assert (data["kernel"]["patched"], data["kernel"]["freq_max"]) == (patched, said)
    assert ("that is right, with several cores busy: one alone reaches 3.9." in form.render(data)
            ) == patched


def test_others_that_work_are_said(tmp_path: Path) -> None:
    """Two CPUs for 10 s, of which 1 s of the program itself; idle time is none."""
    stat = "cpu  {} 0 0 500 {} 0 0 {} 0 0\ncpu0 1 2 3\n"
    began = probe.occupied(stat.format(100, 7, 0), (0.5, 0, 0, 0))
    ended = probe.occupied(stat.format(1900, 9, 200), (1, 0.2, 0.2, 0.1))
    assert ended - began == pytest.approx(19)
    data = read(machine(tmp_path)) | {"others": 1.9}
    assert "# Others kept 1.9 CPUs busy meanwhile: " in form.render(data)
    assert form.check(form.render(data)) == data
    assert "Others" not in form.render(data | {"others": 0.09})


def test_the_state_of_the_series_is_in_it(tmp_path: Path) -> None:
    name, desc = (f"{CPU}/cpu1/cpuidle/state1/{key}".replace("/", "__") for key in ("name", "desc"))
    data = read(machine(tmp_path, **{name: "C0.2", desc: "UMWAIT C0.2"}))
    assert "missing" not in data and data["state"][1]["enter"] == "UMWAIT"
    assert 'name = "C0.2"' in form.render(data) and form.check(form.render(data)) == data


def test_a_state_that_is_left_out_is_said(tmp_path: Path) -> None:
    data = read(machine(tmp_path, **{
        f"{CPU}/cpu1/cpuidle/state1/name".replace("/", "__"): "haltpoll idle"}))
    assert data["missing"] == ["state"] and len(data["state"]) == 2
    handovers = [{"work_us": 0, "states": states, "us": 11.8} for states in ("all", "shallow")]
    text = form.render(data | {"handover": handovers})
    assert "# Not measured: an idle state with a name" in text and "without deep" not in text


def test_nobody_is_in_it(tmp_path: Path) -> None:
    """Serial numbers, addresses and names that stand in what is read."""
    system = machine(tmp_path)
    text = form.render(read(system))
    planted = system.log + "".join(FILES.values())
    for secret in SECRETS:
        assert secret in planted and secret not in text
    assert "0x4f" not in text and "1234567890abcdef" not in text
    assert 'parameters = ["intel_pstate=passive", "nosmt"]' in text
    assert 'release = "6.1.176"' in text
    assert len(text) < form.MOST_BYTES / 10


def test_a_strange_name_is_left_out(tmp_path: Path) -> None:
    """A virtual machine's owner may have given it any."""
    info = FILES["proc/cpuinfo"].replace(NAME, "erikas-laptop")
    text = form.render(read(machine(tmp_path, proc__cpuinfo=info)))
    assert "erika" not in text and "# A CPU, Linux" in text


@pytest.mark.parametrize("old, new, said", [
    ("model = 207", "model = 207\nhost = \"erikas-laptop\"", "unknown key 'cpu.host'"),
    ('name = "C6"', 'name = "erika"', "state.name cannot be 'erika'"),
    ("0xce =", "0x4f =", "unknown key 'registers.0x4f'"),
    ("# A", "# erika: a", "changed by hand: '# erika"),
    ("\n[kernel]", "\n# erikas-laptop\n[kernel]", "changed by hand: '# erikas"),
    ("release = \"6.1.176\"", "release = \"6.1.176-erika\"", "kernel.release cannot be"),
    ("vendor = \"GenuineIntel\"", "vendor = \"erika\"", "cpu.vendor cannot be 'erika'"),
    ("form = 1", "form = 2", "form is 2, allowed is 0 to 1"),
    ("[kernel]", "[owner]\nname = \"erika\"\n\n[kernel]", "unknown table 'owner'"),
    ("model = 207", "model = \"207\"", "cpu.model must be int"),
    ("\n[idle]", "\n\n[idle]", "changed by hand: ''"),
    ("base_mhz = 1900", "base_mhz = -1", "clock.base_mhz is -1, allowed is 0 to 100000")])
def test_check_refuses(old: str, new: str, said: str, tmp_path: Path) -> None:
    """Keys, words and comments that are not of the form."""
    text = form.render(read(machine(tmp_path))).replace(f"# {NAME},", "# A CPU,")
    text = re.sub(r'^name = "Intel.*\n', "", text, flags=re.M)
    form.check(text)
    assert old in text
    with pytest.raises(ValueError) as error:
        form.check(text.replace(old, new, 1))
    assert said in str(error.value) and "\n" not in str(error.value)


def test_every_field_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing else: by --fields, without root, and in the manual page."""
    fields = {f"{table}.{key}" if table else key for table, keys in form.TABLES.items()
              for key in keys if table != "registers"} | {"registers"}
    assert cli.main(["probe", "--fields"]) == 0
    listed = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert {name for name, _ in listed} == fields and len(listed) == len(fields)
    assert all(f"{number:#x}" in about for name, about in listed if name == "registers"
               for number in (*form.INTEL, *form.AMD))
    top = cli.parser()
    page = man.page(top, cli.subcommands(top)).replace("\\-", "-").replace("\\&", "")
    assert all(f"\\fB{name}\\fR\n{about}" in page for name, about in listed)


@pytest.mark.parametrize("name, uid, said", [
    ("run/systemd/container", 0, "in a container"), (".dockerenv", 0, "in a container"),
    ("run/.containerenv", 0, "in a container"), ("nothing", 1000, "needs root")])
def test_where_nothing_can_be_measured(name: str, uid: int, said: str, tmp_path: Path) -> None:
    system = machine(tmp_path, **{name: "docker"})
    with pytest.raises(Fail, match=said) as fail:
        probe.refuse(system, uid)
    assert "\n" not in str(fail.value)


def test_on_the_host_as_root(tmp_path: Path) -> None:
    probe.refuse(machine(tmp_path), 0)


@pytest.mark.parametrize("changes, registers, said", [
    ({}, {}, "registers"),
    ({"proc__cpuinfo": FILES["proc/cpuinfo"].replace("fpu", "hypervisor")}, {}, "virtual"),
    ({"dmesg": "none"}, REGISTERS, "log"),
    ({"proc__cpuinfo": FILES["proc/cpuinfo"].replace("207", "1")}, REGISTERS, "turbo")])
def test_what_is_missing_is_one_line(changes: dict[str, str], registers: dict[int, int], said: str,
                                     tmp_path: Path) -> None:
    """A virtual machine without registers, boot messages that are gone, an unknown model."""
    data = probe.read(machine(tmp_path, **changes), 1, lambda _, n: registers.get(n))
    assert said in data["missing"]
    text = form.render(data)
    assert f"# Not measured: {form.WHY[said]}.\n" in text
    form.check(text)


def test_two_cores_of_one_kind(tmp_path: Path) -> None:
    """Not CPU 0 if there is another, not its thread, no E-core."""
    system = machine(tmp_path, **{
        f"{CPU}/cpu1/topology/core_id".replace("/", "__"): "0",
        "sys__devices__cpu_atom__cpus": "3"})
    two = probe.pair(system)
    assert two and (two.cpu, two.other) == (2, 0)


# --- what is put back -----------------------------------------------------------

def test_guard_puts_back(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("1\n")
    two.write_text("2\n")
    with pytest.raises(ZeroDivisionError), Guard() as guard:
        guard.set(one, "5")
        guard.set(one, "6")
        guard.set(two, "7")
        guard.set(two, "8")
        guard.back(two)
        assert (one.read_text(), two.read_text()) == ("6", "2")
        _ = 1 / 0
    assert (one.read_text(), two.read_text()) == ("1", "2")


VICTIM = """
import sys, time
from pathlib import Path
from cpuwhy import measure
from cpuwhy.guard import Guard
file, done = map(Path, sys.argv[1:])
with Guard({"undo": lambda: done.write_text("undone")}) as guard:
    guard.later("undo")
    guard.set(file, "changed")
    with measure.child(0, measure._spins):
        print("ready", flush=True)
        time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT,
                                    signal.SIGHUP])
def test_guard_survives(number: signal.Signals, tmp_path: Path) -> None:
    """Whatever ends the program, and its whole group of processes as a terminal does."""
    file, undone = tmp_path / "file", tmp_path / "undone"
    file.write_text("original")
    power = Path(probe.__file__).parents[1]
    with subprocess.Popen([sys.executable, "-c", VICTIM, file, undone], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, start_new_session=True,
                          env=os.environ | {"PYTHONPATH": str(power)}) as victim:
        assert victim.stdout and victim.stdout.readline() == b"ready\n"
        assert file.read_text() == "changed"
        if number == signal.SIGKILL:
            victim.kill()
        else:
            os.killpg(victim.pid, number)
        victim.wait()
    for _ in range(100):
        if undone.exists() and file.read_text() == "original":
            return
        time.sleep(0.1)
    raise AssertionError(file.read_text())


# --- what is computed -----------------------------------------------------------

def event(ns: float, name: str, fields: str, cpu: int = 2) -> measure.Event:
    return measure.Event(ns, cpu, name, fields)


def idle(ns: float, state: int, cpu: int = 2) -> measure.Event:
    return event(ns, "cpu_idle", f"state={state} cpu_id={cpu}", cpu)


LEFT = measure.LEFT


def test_wakeups_by_another_cpu() -> None:
    """Only those during a rest in the state; another task's does not count."""
    wake = "comm=python3 pid=7 prio=120 target_cpu=002"
    events = [idle(0, 2), event(1000, "sched_waking", wake, 0), idle(131_000, LEFT),
              idle(200_000, 1), event(201_000, "sched_waking", wake, 0), idle(202_000, LEFT),
              event(203_000, "sched_waking", wake, 0), idle(300_000, 2), idle(400_000, LEFT),
              idle(500_000, 2), event(501_000, "sched_waking", wake.replace("=7", "=8"), 0),
              idle(600_000, LEFT)]
    assert measure.by_waker(events, 2, 2, 7) == [130]


def test_wakeups_by_a_timer() -> None:
    """From the time that was set; rests that end before it were ended by something else."""
    def timer(ns: float, due: int) -> measure.Event:
        return event(ns, "hrtimer_start", f"hrtimer=0 function=f expires={due} softexpires=1")

    events = [timer(100, 5_000_000), idle(200, 2), idle(4_000_000, LEFT), idle(4_100_000, 2),
              idle(5_060_000, LEFT), timer(6_000_000, 9_000_000), idle(6_000_100, 2),
              idle(9_040_000, LEFT)]
    assert measure.by_timer(events, 2, 2) == [60, 40]


@pytest.mark.parametrize("before, after", [(0.5, 2.0), (2.0, 0.5)])
def test_time_of_a_change(before: float, after: float) -> None:
    """To a fraction of the time between two samples."""
    asked, change, step = 1_000_000, 1_616_000, 7_000
    seen = measure.Samples([], [], [])
    for ns in range(0, 5_000_000, step):
        seen.ns.append(ns)
        seen.mperf.append(2 * ns)
        seen.aperf.append(round(2 * (before * min(ns, change) + after * max(0, ns - change))))
    found = measure.delay(seen, asked)
    assert found == pytest.approx((616, before, after), rel=1e-3)


def test_no_change_is_none() -> None:
    seen = measure.Samples([*range(0, 10**6, 1000)], [*range(0, 10**6, 1000)],
                           [*range(0, 10**6, 1000)])
    assert measure.delay(seen, 500_000) is None


TRACE = """\
# tracer: nop
          python3-1 [000] .....  1000: tracing_mark_write: mark 0 0
          python3-1 [000] .....  1100: tracing_mark_write: mark 0 1
          python3-1 [000] .....  1200: tracing_mark_write: best 0 1
           <idle>-0 [002] d..1.  1600: cpu_idle: state=4294967295 cpu_id=2
           a [001] b-9 [001] d..1. 1650: hrtimer_expire_entry: hrtimer=0 function=f now=2095
          python3-1 [000] .....  2100: tracing_mark_write: mark 1 0
          python3-1 [000] .....  2200: tracing_mark_write: best 1 0
"""


def test_times_are_the_kernels_clock() -> None:
    """Ticks of the TSC by two marks, two ns each here, and less what the event of a timer
    that expires comes after the time that it says: 5 ns."""
    traced = measure.Tracing.__new__(measure.Tracing)
    traced._marks = [1000, 3000]
    traced._read(TRACE)
    assert [(e.ns, e.cpu) for e in traced.events if e.name == "cpu_idle"] == [(1995, 2)]


def test_busy_clock_reads_both_counters_at_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counters are read one after the other, by a CPU that something may interrupt: a read
    takes 30 us at first and 1 us at last, and some 300 us."""
    chance = random.Random(5)
    at, takes = 0.0, 1

    def read(_cpu: int, register: int) -> int:
        nonlocal at
        at += 300 if chance.random() < 0.1 else takes
        return round(at * (2600 if register == measure.APERF else 2000))

    def sleep(seconds: float) -> None:
        nonlocal at, takes
        at += 1e6 * seconds
        takes = 31 - takes

    monkeypatch.setattr(measure, "read_msr", read)
    monkeypatch.setattr(measure.time, "sleep", sleep)
    monkeypatch.setattr(measure, "highest_clock", lambda *_: nullcontext())
    monkeypatch.setattr(measure, "_spinning", lambda _: nullcontext())
    for _ in range(50):
        assert measure.busy_clock(Guard(), [0, 1], 0.05) == pytest.approx(1.3, rel=1e-4)
    monkeypatch.setattr(measure, "read_msr", lambda *_: None)
    assert measure.busy_clock(Guard(), [0], 0.05) is None
