# SPDX-License-Identifier: GPL-2.0
"""What the emulator and the lines of a fault file accept, and how they refuse."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from virtual_silicon import paths
from virtual_silicon.errors import UsageError
from virtual_silicon.guest import boot, qmp
from virtual_silicon.machine import faults, machine, qapi

#: A line, and what must be said of it.
BAD_LINES = [
    ("1", "needs CPU KIND"), ("1 melt", "unknown kind 'melt'; there are: freeze"),
    ("x freeze counter=both", "'x' is no CPU"),
    ("999 freeze counter=both", "a number below 256"),
    ("1 freeze", "needs counter=aperf|mperf|both"),
    ("1 freeze counter=tsc", "'counter=tsc': counter must be aperf|mperf|both"),
    ("1 freeze counter=both at=2", "'at=2': at must be a time with ns, us, ms or s"),
    ("1 freeze counter=both for=0ms", "'for=0ms': for must be a time above 0"),
    ("1 rate counter=both", "rate needs permille="),
    ("1 rate counter=both permille=-1", "permille must be 0 to"),
    ("1 add counter=both", "needs cycles=[-]N"),
    ("1 add counter=both cycles=9 reads=1", "add takes counter, cycles, at, for"),
    ("* gp", "needs msr="), ("* gp msr=0x10q", "'msr=0x10q': msr must be"),
    ("* gp msr=0x10 reads=0", "reads must be 1 or more"),
    ("* msr msr=0x10", "msr needs value="),
    ("* cpuid leaf=6 sub=0 reg=ecx", "needs clear="),
    ("* limit", "needs ratio=1 to 255"),
    ("* limit ratio=20 reads=5", "'reads=5': limit takes ratio, at, for"),
    ("1 wake every=10ns", "'every=10ns': every must be a time of 1us or more"),
]


@pytest.mark.parametrize("line,reason", BAD_LINES, ids=[line for line, _ in BAD_LINES])
def test_bad_fault_line(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "faults"
    path.write_text(f"# a comment\n\n1 freeze counter=both\n{line}\n")
    with pytest.raises(UsageError) as error:
        faults.read(path)
    assert str(error.value).startswith(f"{path}:4: fault {line!r}: ")
    assert reason in str(error.value)


def test_missing_fault_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="fault file .*none: No such file"):
        faults.read(tmp_path / "none")


#: A line, and the fault that it is.
LINES: list[tuple[str, dict[str, Any]]] = [
    ("2 rate counter=aperf permille=500 at=3us for=1s reads=0x10",
     {"kind": "rate", "cpu": 2, "counter": "aperf", "permille": 500,
      "at-ns": 3000, "duration-ns": 10**9, "reads": 16}),
    ("* add counter=both cycles=-5", {"kind": "add", "counter": "both", "cycles": -5}),
    ("0 zero counter=mperf", {"kind": "zero", "cpu": 0, "counter": "mperf"}),
    *((f"* cpuid leaf=6 sub=0 reg={reg} clear=8",
       {"kind": "cpuid", "leaf": 6, "sub": 0, "reg": reg, "clear": 8})
      for reg in ("eax", "ebx", "ecx", "edx")),
    ("1 wake every=1ms at=0ns", {"kind": "wake", "cpu": 1, "every-ns": 10**6, "at-ns": 0}),
]


@pytest.mark.parametrize("line,fault", LINES, ids=[line for line, _ in LINES])
def test_fault_line_becomes_a_fault(line: str, fault: dict[str, Any]) -> None:
    assert faults.parse(line) == fault


def start(qemu: Path, option: dict[str, Any], board: str = "none",
          words: Sequence[str] = ()) -> str:
    """Last line of an emulator that ends by itself, because of what it was given."""
    done = subprocess.run(
        [qemu, *boot.FIRMWARE_OPTIONS, "-M", board, "-nodefaults", "-display", "none",
         "-object", json.dumps(option), *words],
        stderr=subprocess.PIPE, text=True, timeout=30)
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]


def _drop(*path: str) -> Callable[[Any], None]:
    def change(option: Any) -> None:
        for name in path[:-1]:
            option = option[name]
        del option[path[-1]]
    return change


def _set(value: Any, *path: str) -> Callable[[Any], None]:
    def change(option: Any) -> None:
        for name in path[:-1]:
            option = option[name]
        option[path[-1]] = value
    return change


#: Not through machine.py, which would refuse them first.
BAD_OPTIONS = [
    (_drop("machine"), "'machine' is missing"),
    (_drop("machine", "clock", "bus-khz"), "'machine.clock.bus-khz' is missing"),
    (_set(300, "machine", "clock", "max-ratio"), "'max-ratio' expects uint8_t"),
    (_set(1, "machine", "clock", "mhz"), "'machine.clock.mhz' is unexpected"),
    (_set(0, "machine", "clock", "bus-khz"), "bus-khz, counter-unit"),
    (_set(200, "machine", "clock", "min-ratio"), "0 < min-ratio <= base-ratio"),
    (_set([], "machine", "turbo"), "machine.turbo: needs 1 to 16 entries, not 0"),
    (_set([], "machine", "idle"), "machine.idle: needs 1 to 12 entries, not 0"),
    (_set([1, 2], "machine", "power", "active-uw"), "one for each ratio, not 2"),
    (_set(32, "machine", "power", "energy-unit-shift"), "must be at most 31"),
    (_set(0, "machine", "speed", "smt-permille"), "smt-permille 1 to 1000"),
    (_set([{"name": "PC6", "core-state": "C7", "uncore-uw": 1, "exit-ns": 0}],
          "machine", "package"), "core-state 'C7' is no idle state"),
    (_set("fast", "time"), "'time' does not accept value 'fast'"),
    (_set([{"kind": "rate", "counter": "both"}], "faults"), "permille' is missing"),
]


@pytest.mark.parametrize("change,reason", BAD_OPTIONS, ids=[why for _, why in BAD_OPTIONS])
def test_emulator_refuses(request: pytest.FixtureRequest, change: Callable[[Any], None],
                          reason: str) -> None:
    option = json.loads(qapi.option(machine.load("sapphire-rapids"), 1))
    change(option)
    assert reason in start(paths.qemu(request.config.getoption("qemu")), option)


#: Further options, and why the model does not go with them.
BAD_MACHINES = [
    (["-smp", "1,maxcpus=2"], "CPUs cannot be added later: -smp maxcpus=2 must be 1"),
    (["-icount", "shift=0,sleep=off"], "-icount needs time=deterministic"),
    (["-accel", "qtest"], "needs -accel tcg"),
    (["-only-migratable"], "virtual-silicon cannot be migrated"),
]


@pytest.mark.parametrize("words,reason", BAD_MACHINES, ids=[why for _, why in BAD_MACHINES])
def test_emulator_refuses_machine(request: pytest.FixtureRequest, words: list[str],
                                  reason: str) -> None:
    option = json.loads(qapi.option(machine.load("sapphire-rapids"), 1))
    qemu = paths.qemu(request.config.getoption("qemu"))
    assert reason in start(qemu, option, "q35", words)


def test_running_object_does_not_change(request: pytest.FixtureRequest,
                                        tmp_path: Path) -> None:
    """Nor does it migrate, which would leave its state behind."""
    m, socket = machine.load("sapphire-rapids"), tmp_path / "qmp"
    with subprocess.Popen(
            [paths.qemu(request.config.getoption("qemu")), *boot.cpu_options(m, 1, "free"),
             "-object", qapi.option(m, 1), "-M", "q35", "-nodefaults", "-display", "none",
             "-S", "-qmp", f"unix:{socket},server=on"], stderr=subprocess.PIPE):
        while not socket.exists():
            time.sleep(0.05)
        with qmp.Monitor(socket) as monitor:
            with pytest.raises(UsageError, match="only be set when the object is made"):
                monitor.execute("qom-set", path=qmp.MODEL, property="trace", value="x")
            with pytest.raises(UsageError, match="virtual-silicon cannot be migrated"):
                monitor.execute("migrate", uri="exec:cat >/dev/null")
            monitor.execute("quit")
