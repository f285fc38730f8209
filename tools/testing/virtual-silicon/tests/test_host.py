# SPDX-License-Identifier: GPL-2.0
"""The same loads on the machine at hand: what is put back, whatever happens."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from virtual_silicon.errors import GuestError, UsageError
from virtual_silicon.guest import initramfs
from virtual_silicon.lab import host, plan, store
from virtual_silicon.loads import HERE as SCRIPTS


@pytest.fixture
def knobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> host.Knobs:
    """Files as sysfs has them, of a machine with two policies; teo is not offered. Another
    driver or governor begins with values of its own."""
    cpu = tmp_path / "sys/devices/system/cpu"
    of_policy = {
        "scaling_governor": "schedutil", "scaling_max_freq": "2000000",
        "scaling_setspeed": "<unsupported>",
        "scaling_available_governors": "powersave performance schedutil"}
    for name, text in {
            "intel_pstate/status": "passive", "intel_pstate/no_turbo": "1",
            "cpuidle/current_governor": "ladder", "cpuidle/available_governors": "ladder menu",
            "cpufreq/schedutil/rate_limit_us": "77",
            **{f"cpufreq/policy{n}/{file}": text
               for n in (0, 1) for file, text in of_policy.items()}}.items():
        (cpu / name).parent.mkdir(parents=True, exist_ok=True)
        (cpu / name).write_text(text + "\n")
        if "available" in name:
            (cpu / name).chmod(0o444)
    made, put = host.Knobs(tmp_path), host._put
    for file, text in ((made.freq_max, "3c\n"), (tmp_path / "proc/cpuinfo", "GenuineIntel\n")):
        file.parent.mkdir(parents=True)
        file.write_text(text)

    def kernel(file: Path, value: str) -> None:
        put(file, value)
        if file == made.status:
            put(cpu / "intel_pstate/no_turbo", "0")
            for governor in made.governors():
                put(governor, "powersave")
                put(governor.with_name("scaling_max_freq"), "3000000")
        if not any(f.read_text().strip() == "schedutil" for f in made.governors()):
            put(cpu / "cpufreq/schedutil/rate_limit_us", "1000")
    monkeypatch.setattr(host, "_put", kernel)
    return made


def contents(knobs: host.Knobs) -> dict[str, str]:
    return {str(f): f.read_text().strip() for f in knobs.root.rglob("*") if f.is_file()}


@pytest.fixture
def unhandled() -> Iterator[None]:
    """Signals fail a test where they would end a process."""
    def fail(number: int, frame: object) -> None:
        raise AssertionError(f"signal {number} is not handled")
    old = {number: signal.signal(number, fail)
           for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in old.items():
        assert signal.signal(number, handler) == fail


def test_servers_end_with_what_they_started(tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    """A child of the one, and a daemon of the other if it were asked for one."""
    log = tmp_path / "pids"
    for name in ("tbench_srv", "iperf3"):
        program = tmp_path / name
        program.write_text(f'''#!/bin/sh
case $* in
*-D*)	setsid sleep 300 & ;;
*)	sleep 300 & ;;
esac
echo $$ $! >>{log}
case $* in *-D*) exit; esac
wait
''')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with host.servers():
        pids = log.read_text().split()
        assert len(pids) == 4 and all(Path(f"/proc/{pid}").exists() for pid in pids)
    # What is killed runs until it is scheduled.
    end = time.monotonic() + 5
    while (left := [pid for pid in pids if running(pid)]) and time.monotonic() < end:
        time.sleep(0.01)
    for pid in left:
        os.kill(int(pid), signal.SIGKILL)
    assert not left


def running(pid: str) -> bool:
    """But for what is dead and has no parent that asks."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.usefixtures("unhandled")
@pytest.mark.parametrize("ends", [None, KeyboardInterrupt, RuntimeError, signal.SIGINT,
                                  signal.SIGTERM, signal.SIGHUP])
def test_host_is_as_before(knobs: host.Knobs, ends: Any) -> None:
    """However it ends, in the midst of the last setting."""
    before, seen = contents(knobs), []
    told: list[str] = []
    servers: list[str] = []

    @contextmanager
    def around() -> Iterator[None]:
        servers.append("begin")
        try:
            yield
        finally:
            servers.append(knobs.status.read_text().strip())	# not put back yet

    def measure(cell: plan.Cell) -> store.Sample:
        seen.append((cell.seed, cell.column.name, *(f.read_text().strip() for f in (
            *knobs.governors(), knobs.idle, knobs.freq_max, knobs.status))))
        if cell.column.name == "i_pstate":
            if isinstance(ends, signal.Signals):
                signal.raise_signal(ends)
            elif isinstance(ends, type):
                raise ends
        return store.Sample(cell, {})
    if ends is None:
        assert host.run(knobs, measure, told.append, around())[2] == []
    else:
        kind, said = (SystemExit, 128 + ends) if isinstance(ends, signal.Signals) else (ends, "")
        with pytest.raises(kind, match=f"^{said}$"):
            host.run(knobs, measure, told.append, around())
        assert seen[-1][:2] == (1, "i_pstate")
    assert contents(knobs) == before and servers == ["begin", "active"]
    assert seen[0] == (1, "base", "schedutil", "schedutil", "menu", "3c", "passive")
    assert "left out: teo: no idle governor teo" in told
    if ends is None:
        assert (2, "8c", "schedutil", "schedutil", "menu", "8c", "passive") in seen
        # Nothing is left of the setting before
        assert seen[-1] == (3, "i_pstate", "powersave", "powersave", "menu", "3c", "active")


def test_second_signal_does_not_stop_putting_back(knobs: host.Knobs,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does one that comes before signals are ignored; ignored ones stay so."""
    before, put_back, ignore = contents(knobs), host.put_back, host._ignore
    ended = False

    def hit(then: Callable[..., object]) -> Callable[..., object]:
        def both(*args: object) -> object:
            if ended:
                signal.raise_signal(signal.SIGTERM)
            return then(*args)
        return both

    def hit_first() -> None:
        monkeypatch.setattr(host, "_ignore", ignore)
        signal.raise_signal(signal.SIGTERM)
    monkeypatch.setattr(host, "put_back", hit(put_back))
    old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        for early in (False, True):
            ended = False
            if early:
                monkeypatch.setattr(host, "_ignore", hit_first)
            with pytest.raises(SystemExit if early else RuntimeError), \
                    host.restored(knobs, []):
                signal.raise_signal(signal.SIGHUP)
                knobs.idle.write_text("menu")
                ended = True
                raise RuntimeError
            assert contents(knobs) == before
    finally:
        assert signal.signal(signal.SIGHUP, old) == signal.SIG_IGN


def test_settings_that_are_refused(knobs: host.Knobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail with the file and the reason; what cannot be put back keeps nothing else from it."""
    before, put = contents(knobs), host._put

    def refuse(file: Path, value: str) -> None:
        if value in ("8c", "77"):
            raise OSError(f"{file}: {value}: Device or resource busy")
        put(file, value)
    monkeypatch.setattr(host, "_put", refuse)

    told: list[str] = []
    _, found, lost = host.run(knobs, lambda cell: store.Sample(cell, {}), told.append,
                              nullcontext())
    assert found.failed and all("/8c, seed" in text
                                and "freq_max: 8c: Device or resource busy" in text
                                for text in found.failed)
    assert "8c" not in {sample.cell.column.name for sample in found.samples}
    assert len(lost) == 1 and "rate_limit_us: 77: Device or resource busy" in lost[0]
    assert f"not put back: {lost[0]}" in told
    after = contents(knobs)
    assert [f for f in before if after[f] != before[f]] == [
        str(knobs.cpu / "cpufreq/schedutil/rate_limit_us")]


def test_cores_in_turbo_are_of_intel(knobs: host.Knobs) -> None:
    of = {column.name: column for column in host.CANDIDATES}
    assert knobs.lacks(of["8c"]) == ""
    (knobs.root / "proc/cpuinfo").write_text("AuthenticAMD\n")
    assert knobs.lacks(of["8c"]) == "freq_max 8c"
    assert knobs.lacks(of["boost"]) == ""


@pytest.mark.parametrize("call", ["fsync", "fdatasync"])
def test_disk_waits_for_a_rotation(call: str, tmp_path: Path) -> None:
    """Signals neither shorten it nor make the call fail: PostgreSQL stops if one does."""
    disk = initramfs.compiled(SCRIPTS / "disk.c", tmp_path, shared=True)
    program = f"""import os, signal, time
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
begin = time.monotonic()
os.{call}(1)
took = time.monotonic() - begin
signal.setitimer(signal.ITIMER_REAL, 0)
print(took)"""
    said = subprocess.run([sys.executable, "-c", program], env=os.environ | {"LD_PRELOAD": disk},
                          capture_output=True, text=True, check=True).stdout
    assert float(said) >= 60 / 7200


def test_host_without_schedutil(knobs: host.Knobs) -> None:
    for governor in knobs.governors():
        file = governor.with_name("scaling_available_governors")
        file.chmod(0o644)
        file.write_text("performance powersave\n")
    with pytest.raises(UsageError, match="no governor schedutil .*; write passive to .*/status"):
        host.run(knobs, lambda cell: store.Sample(cell, {}), print, nullcontext())
    knobs.status.unlink()
    with pytest.raises(UsageError, match=r"no governor schedutil \(.*\)$"):
        host.run(knobs, lambda cell: store.Sample(cell, {}), print, nullcontext())


def stopwatch(where: Path, script: str) -> Path:
    (where / "stopwatch").write_text("#!/bin/sh\n" + script)
    (where / "stopwatch").chmod(0o755)
    return where


def a_cell(load: str = "hackbench", parameter: str = "2") -> plan.Cell:
    return plan.Cell("host", "this", 4, host.CANDIDATES[0], host.LOADS[load], parameter, 1)


own_output = pytest.mark.skipif(os.path.lexists("/tmp/output"), reason="/tmp/output is somebody's")


@own_output
def test_load_on_the_host(tmp_path: Path) -> None:
    """An energy counter that wrapped is measured again."""
    tools = stopwatch(tmp_path, f"""[ "$*" = "hackbench -g 2 -l 160" ] || exit 9
        if [ -e {tmp_path}/again ]; then echo 0.5 20 0 200 100
        else >{tmp_path}/again; echo 0.5 18446744073700 0 200 100; fi""")
    assert host.load(tools, 1000, a_cell()).of == {
        "result": 0.5, "W": 40, "mJ": 20_000, "MHz": 2}
    with pytest.raises(ValueError, match="^status 125: no counter$"):
        host.load(stopwatch(tmp_path, "echo no counter >&2; exit 125"), 1000, a_cell())
    failing = stopwatch(tmp_path, """seq 9 >/tmp/output
        echo 0.5 20 0 200 100; exit 3""")
    with pytest.raises(ValueError, match=r"^status 3: 5 \| 6 \| 7 \| 8 \| 9$"):
        host.load(failing, 1000, a_cell())
    Path("/tmp/output").unlink()


@own_output
def test_what_a_load_prints_on_the_host(tmp_path: Path) -> None:
    """Is its result; one that prints nothing has none."""
    for output, said in (("T: 0 Avg:  3\nT: 1 Avg:  4", 3.5), ("", None)):
        tools = stopwatch(tmp_path, f"""printf '%s\\n' '{output}' >/tmp/output
            echo 0.5 20 0 200 100""")
        if said:
            found = host.load(tools, 1000, a_cell("cyclictest", "1000"))
            assert (found.of["result"], found.of["mJ"]) == (said, 20_000)
        else:
            with pytest.raises(ValueError):
                host.load(tools, 1000, a_cell("cyclictest", "1000"))
        Path("/tmp/output").unlink()


def test_passes_on_the_host() -> None:
    """Each load with its parameters, which are shares of the CPUs; every load has a table."""
    found = [cell.key[2] for cell in host.cells(host.CANDIDATES[0], 8, 1)]
    assert {"tbench:1", "tbench:4", "kernbench:2", "kernbench:8", "pipe:2000"} <= set(found)
    assert len(found) == len(set(found)) and "c02hack:1" not in found
    of = host.cells(host.CANDIDATES[0], 2, 1, ["tbench"])
    assert [cell.key[2] for cell in of] == ["tbench:1"]
    assert host.part(host.CANDIDATES).over == ("base",)


def test_tsc_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """The register is number 0x10; its file has bytes of it at that offset."""
    now = 0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += round(seconds * 1e9)
    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "monotonic_ns", lambda: now)
    monkeypatch.setattr(os, "pread", lambda file, size, offset: (
        (7 << 40) + now * 35 // 10 if offset == 0x10 else 0).to_bytes(size, "little"))
    assert host.tsc_khz(Path("/dev/null")) == 3_500_000
    with pytest.raises(UsageError, match="^/dev/absent: No such file"):
        host.tsc_khz(Path("/dev/absent"))


def test_database_on_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with the loads, however they end, and nothing of it is left."""
    monkeypatch.setattr(host, "_POSTGRES", f"{tmp_path}/")
    monkeypatch.setattr(host, "_OWNER", pwd.getpwuid(os.geteuid()).pw_name)
    for name in ("initdb", "pg_ctl", "pgbench"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} $PWD $* >>{tmp_path}/calls\n"
                                     f'[ $1 != -D ] || echo "$LD_PRELOAD" >>{tmp_path}/preload\n')
        (tmp_path / name).chmod(0o755)
    initramfs.compiled(SCRIPTS / "disk.c", tmp_path, shared=True)
    with pytest.raises(SystemExit), host._database(tmp_path):
        raise SystemExit
    calls = [line.split() for line in (tmp_path / "calls").read_text().splitlines()]
    assert [(c[0], c[-1]) for c in calls] == [
        ("initdb", f"{calls[0][1]}/data"), ("pg_ctl", "autovacuum=off"),
        ("pgbench", "postgres"), ("pg_ctl", "stop")]
    assert not Path(calls[0][1]).exists()
    # The server writes, and waits for its disk: begun, not ended, with its waits
    assert "-F" not in calls[1]
    assert (tmp_path / "preload").read_text().split("\n")[:2] == [f"{calls[0][1]}/disk.so", ""]
    (tmp_path / "pg_ctl").write_text("#!/bin/sh\necho it is there already; exit 1")
    with pytest.raises(GuestError, match="^pg_ctl failed: it is there already$"), \
            host._database(tmp_path):
        raise AssertionError


@own_output
def test_disk_on_the_host(tmp_path: Path) -> None:
    """What runs there waits as in guests: one rotation for each write that is to last."""
    tools = stopwatch(tmp_path, f"""shift 2; echo "$@" >{tmp_path}/called
        echo 0.5 20 0 200 100""")
    initramfs.compiled(SCRIPTS / "disk.c", tools, shared=True)
    host.load(tools, 1000, a_cell("dbench", "1"))
    for name in ("output", "dbench.txt"):
        Path("/tmp", name).unlink(missing_ok=True)
    env, disk, program, *_ = (tmp_path / "called").read_text().split()
    assert (env, program) == ("env", "dbench")
    begin = time.monotonic()
    subprocess.run([env, disk, sys.executable, "-c", "import os; [os.fdatasync(2)"
                    " for _ in range(30)]"], check=True)
    assert time.monotonic() - begin > 30 * 60 / 7200


@own_output
def test_interrupted_load_ends(tmp_path: Path) -> None:
    """With what the stopwatch started, which is in a process group of its own."""
    tools = stopwatch(tmp_path, f"""perl -e 'setpgrp(0, 0); open(F, ">{tmp_path}/pid");
        print F $$; close(F); sleep 60' & wait""")

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt
    old = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            host.load(tools, 1000, a_cell())
    finally:
        signal.signal(signal.SIGALRM, old)
    name = Path("/proc") / (tmp_path / "pid").read_text() / "cmdline"
    end = time.monotonic() + 5
    while name.exists() and name.read_bytes():	# empty, of one that has ended
        assert time.monotonic() < end


@pytest.mark.parametrize("without, reason", [
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "no cpufreq policy"),
    ("sys/class/powercap/intel-rapl:0/energy_uj", "RAPL"), ("dev/cpu/0/msr", "modprobe msr"),
    ("tmp/git", "would overwrite .*/tmp/git"),
    ("usr/bin/gcc-12", "apt-get install gcc-12$")])
def test_host_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: str,
                      reason: str) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    for name in ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
                 "sys/class/powercap/intel-rapl:0/energy_uj", "dev/cpu/0/msr",
                 *(file.lstrip("/") for files in host.PACKAGES.values() for file in files)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    host.check(host.Knobs(tmp_path))
    if without == "tmp/git":
        (tmp_path / without).mkdir(parents=True)
    else:
        (tmp_path / without).unlink()
    with pytest.raises(UsageError, match=reason):
        host.check(host.Knobs(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UsageError, match="needs root"):
        host.check(host.Knobs(tmp_path))
