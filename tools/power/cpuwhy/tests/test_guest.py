# SPDX-License-Identifier: GPL-2.0
"""Against known truth: a guest whose wake-ups are scripted, sysfs, and the model's trace."""
from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from cpuwhy import idle, states
from cpuwhy.errors import Fail
from cpuwhy.events import Source
from cpuwhy.record import sidecar
from cpuwhy.tests import scripted_guest as scripted
from virtual_silicon import paths
from virtual_silicon.errors import MissingError


def guest(out: str, part: str, load: str) -> scripted.Recorded:
    try:
        kernel, qemu = paths.kernel("base"), paths.qemu()
    except MissingError as missing:
        pytest.skip(str(missing))
    return scripted.run(paths.BUILD / "test" / out, kernel, qemu, load, part=part)


@pytest.fixture(scope="module")
def recorded() -> scripted.Recorded:
    return guest("cpuwhy", "sapphire-rapids", scripted.LOAD)


@pytest.fixture(scope="module")
def result(recorded: scripted.Recorded) -> idle.Result:
    machine = states.load(sidecar(recorded.path))
    return idle.analyse(Source(recorded.path), machine, "guest")


def wakes(result: idle.Result, cpu: int, **wanted: str) -> int:
    return sum(wakeups.count for cause, wakeups in result.by_cause(cpu).items()
               if all(getattr(cause, key) == value for key, value in wanted.items()))


def test_wakeups_are_the_scripts(result: idle.Result) -> None:
    """vs-wake sleeps once more while its thread starts, if nothing else wakes the CPU then;
    its caller sleeps once more at the end, and its exit wakes the thread."""
    timer = {"kind": "timer", "name": "hrtimer_wakeup", "who": "vs-wake"}
    assert wakes(result, scripted.CPU, **timer) - scripted.TIMERS in (0, 1)
    assert wakes(result, scripted.CALLER, **timer) == scripted.SIGNALS + 1
    # Another timer may come in the microseconds before the device does, or while the thread
    # starts: it wakes the CPU for vs-wake.
    timers = (wakes(result, scripted.CPU, kind="timer", woke="vs-wake")
              - wakes(result, scripted.CPU, **timer, woke="vs-wake"))
    devices = wakes(result, scripted.CPU, kind="device", name="hpet2")
    assert timers <= 1 and devices <= scripted.DEVICES <= devices + timers
    assert wakes(result, scripted.CPU, kind="store", who="vs-wake",
                 woke="vs-wake") == scripted.SIGNALS + 1


@pytest.mark.parametrize("part", [0.3, 0.9, 0.99])
def test_cut_off(part: float, recorded: scripted.Recorded, tmp_path: Path) -> None:
    """The same file without its end: one line that says so."""
    cut = tmp_path / "cut.dat"
    cut.write_bytes(recorded.path.read_bytes()[:round(recorded.path.stat().st_size * part)])
    with pytest.raises(Fail, match="cut off") as fail:
        idle.analyse(Source(cut), None, "cut")
    assert "\n" not in str(fail.value)


def test_idle_times_are_the_models(result: idle.Result, recorded: scripted.Recorded) -> None:
    """As many entries of each state on each CPU between the marks, which are just outside
    of the recording; its begin or its end may leave one out. The kernel's view of the time includes
    coming out of the state."""
    begin, end = (recorded.model.mark(n).time_ns for n in (scripted.BEGIN, scripted.END))
    for cpu, uses in result.uses.items():
        found: list[tuple[str, int]] = []
        entry = None
        for at, state in recorded.model.idle[cpu]:
            if state is not None:
                entry = (at, state)
            elif entry and entry[0] >= begin and at <= end:
                found.append((entry[1], at - entry[0]))
        # The model does not know which loop the kernel polls in.
        ours = {result.name(cpu, index): use for index, use in uses.items()
                if result.name(cpu, index) != "POLL"}
        assert len(found) > 100
        more = len(found) - sum(use.usage for use in ours.values())
        assert more in (0, 1)
        assert any(agree(one, ours, result.span[cpu]) for one in (
            [found[1:], found[:-1]] if more else [found])), (cpu, found, ours)


def agree(found: list[tuple[str, int]], ours: dict[str, idle.StateUse], span: int) -> bool:
    rested: Counter[str] = Counter()
    for state, ns in found:
        rested[state] += ns
    # Or 1 % of the recording, whose ends are not quite those of the marks.
    return ({name: use.usage for name, use in ours.items()} == Counter(s for s, _ in found)
            and all(rested[name] == pytest.approx(use.time, rel=0.01, abs=span / 100)
                    for name, use in ours.items()))


def test_sysfs_agrees(result: idle.Result) -> None:
    """Each count within 1 %, or two at the ends of the recording. Times are compared with
    the model's instead: sysfs has idle times whole that began before the recording or end
    after it, and these CPUs are idle for seconds then."""
    compared = [a for a in idle.against_sysfs(result) if a.counter != "time"]
    assert len({a.cpu for a in compared}) == 4
    for a in compared:
        assert abs(a.trace - a.sysfs) <= max(0.01 * a.sysfs, 2), a


#: Every CPU wakes some 3000 times.
BUSY = "for c in 0 1 2 3; do vs-wake -m timer -c $c -n 3000 -w 20 -x 3000 & done >/dev/null; wait"
#: Idle times while the counters are read.
END_COUNT, END_NS = 12, 5_000_000
#: Of each rest, at the lowest clock.
EVENTS_NS = 1_000


@pytest.mark.parametrize("part", ["sapphire-rapids", "e5-2698-v4", "epyc-7763"])
def test_sysfs_agrees_on_machines(part: str) -> None:
    """Counts of thousands and times, within 1 %, whatever the idle states. The kernel's own
    time begins after the trace event and ends before the other, so that each rest is longer
    by the trace."""
    recorded = guest(f"cpuwhy-{part}", part, scripted.between_snapshots(BUSY))
    machine = states.load(sidecar(recorded.path))
    compared = idle.against_sysfs(idle.analyse(Source(recorded.path), machine, part))
    rests = {(a.cpu, a.state): a.sysfs for a in compared if a.counter == "usage"}
    for a in compared:
        if a.counter == "time":
            longer = rests[a.cpu, a.state] * EVENTS_NS
            assert abs(a.trace - a.sysfs) <= max(0.01 * a.sysfs + longer, END_NS), a
        else:
            assert abs(a.trace - a.sysfs) <= max(0.01 * a.sysfs, END_COUNT), a
    assert sum(a.sysfs for a in compared if a.counter == "usage") > 10_000


def test_the_table_gives_the_kernels_verdicts(result: idle.Result,
                                              recorded: scripted.Recorded) -> None:
    """The kernel's clock is read between the events, so a few near the limit may differ."""
    machine = states.load(sidecar(recorded.path))
    ours = idle.analyse(Source(recorded.path), machine, "guest", by_table=True).total()
    for name, use in result.total().items():
        assert use.deep == pytest.approx(ours[name].deep, abs=2)
        assert use.shallow == pytest.approx(ours[name].shallow, abs=2)
