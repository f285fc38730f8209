# SPDX-License-Identifier: GPL-2.0
"""Idle times of scripted traces: verdicts, misses, causes and costs are known."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cpuwhy import idle, states
from cpuwhy.errors import Fail
from cpuwhy.events import Source
from cpuwhy.tests.scripted import Script
from cpuwhy.wake import Cause


def analyse(script: Script, table: Path | None, tmp_path: Path, **more: Any) -> idle.Result:
    path = tmp_path / "trace"
    path.write_text(script.text())
    machine = states.load(table) if table else None
    return idle.analyse(Source(path), machine, "trace", **more)


STATES = [states.State("POLL", 0, 0), states.State("C1", 2000, 2000, power=0.5),
          states.State("C6", 133000, 600000, power=0.1)]

# State, duration in ns: verdict and miss as cpuidle_enter_state() has them.
VERDICTS = [
    (0, 1999, (0, 0)), (0, 2000, (1, 0)), (0, 5000, (1, 3000)),
    (1, 1999, (-1, 1)), (1, 2000, (0, 0)), (1, 601999, (0, 0)), (1, 602000, (1, 0)),
    (1, 1602000, (1, 1000000)),
    (2, 599999, (-1, 1)), (2, 600000, (0, 0)), (2, 10**9, (0, 0)),
]


@pytest.mark.parametrize("entered, duration, expected", VERDICTS)
def test_verdict(entered: int, duration: int, expected: tuple[int, int]) -> None:
    assert states.verdict(STATES, entered, duration) == expected


def test_a_disabled_state_is_no_alternative() -> None:
    c1_off = [STATES[0], states.State("C1", 2000, 2000, disabled=True), STATES[2]]
    assert states.verdict(c1_off, 0, 5000) == (0, 0)
    only_c6 = [states.State(s.name, s.latency, s.residency, s.name != "C6") for s in STATES]
    assert states.verdict(only_c6, 2, 10) == (0, 0)


@pytest.mark.parametrize("index", [1, 2])
def test_target_residency_is_where_both_states_cost_the_same(index: int) -> None:
    costs = states.Costs(STATES)
    at = STATES[index].residency
    assert costs.energy(index, at) == pytest.approx(costs.energy(index - 1, at))
    # Half of it too deep: the difference of powers for the other half.
    lost, latency = costs.wrong(2, 300000)
    assert lost == pytest.approx(0.4 * 300000) and latency == 131000
    assert costs.wrong(2, 700000) == (0, 0)


def test_verdicts_and_misses(script: Script, table: Path, tmp_path: Path) -> None:
    """C6 for 90 us: 510 us short. C1 for 1602 us: 1000 us too long. C1 for 100 us: right."""
    for begin, state, length in ((0, 2, 90), (1000, 1, 1602), (5000, 1, 100)):
        script.idle(begin, state)
        script.idle(begin + length, -1)
    result = analyse(script, table, tmp_path)
    c1, c6 = result.uses[0][1], result.uses[0][2]
    assert (c6.usage, c6.deep, c6.shallow, c6.time) == (1, 1, 0, 90_000)
    assert (c1.usage, c1.deep, c1.shallow, c1.time) == (2, 0, 1, 1_702_000)
    assert c6.deep_miss == {9: 1}           # 256 to 511 us
    assert c1.shallow_miss == {10: 1}       # 512 to 1023 us
    assert c6.lost_energy == pytest.approx(0.4 * 510_000)
    assert not result.by_events


def test_the_kernels_verdict_counts_if_there_is_one(script: Script, table: Path,
                                                    tmp_path: Path) -> None:
    """Its clock is read inside of the events: 599.9 us there, 600.1 here."""
    script.idle(0, 2)
    script.idle(600.1, -1)
    script.add(600.5, 0, "swapper", 0, "power:cpu_idle_miss", "cpu_id=0 state=2 type=above")
    script.idle(1000, 2)
    script.idle(1599.5, -1)
    result = analyse(script, table, tmp_path)
    assert result.by_events
    assert (result.uses[0][2].deep, result.uses[0][2].shallow) == (1, 0)
    by_table = analyse(script, table, tmp_path, by_table=True)
    assert by_table.uses[0][2].deep == 1 and not by_table.by_events


def wakes(script: Script, table: Path, tmp_path: Path) -> dict[Cause, int]:
    result = analyse(script, table, tmp_path)
    return {cause: wakeups.count for cause, wakeups in result.by_cause().items()}


def test_hrtimer_with_its_task_and_call_site(table: Path, tmp_path: Path) -> None:
    script = Script()
    script.add(0, 1, "my daemon", 70, "timer:hrtimer_start",
               "hrtimer=0xffff1 function=hrtimer_wakeup expires=9 softexpires=9 mode=0x1")
    script.lines += ["\tffffffff8141e889 enqueue_hrtimer",
                     "\tffffffff8141ef13 hrtimer_start_range_ns",
                     "\tffffffff8141fad4 hrtimer_nanosleep", ""]
    script.idle(10, 1)
    script.add(110, 0, "swapper", 0, "irq_vectors:local_timer_entry", "vector=236")
    script.add(111, 0, "swapper", 0, "timer:hrtimer_expire_entry",
               "hrtimer=0xffff1 function=hrtimer_wakeup now=9")
    script.idle(112, -1)
    script.task(115, 0, 70, "my daemon")
    assert wakes(script, table, tmp_path) == {
        Cause("timer", "hrtimer_wakeup", "my daemon", "hrtimer_nanosleep"): 1}


def test_interrupt_handled_after_the_exit(script: Script, table: Path, tmp_path: Path) -> None:
    """MWAIT is entered with interrupts off; one long after the exit is another matter."""
    for begin, delay in ((0, 3), (1000, 60)):
        script.idle(begin, 1)
        script.idle(begin + 100, -1)
        script.add(begin + 100 + delay, 0, "swapper", 0, "irq:irq_handler_entry",
                   "irq=42 name=virtio3-tx")
    assert wakes(script, table, tmp_path) == {Cause("device", "virtio3-tx"): 1,
                                              Cause("unknown", "no interrupt seen"): 1}


def test_the_tick_counts_only_if_nothing_else_expired(script: Script, table: Path,
                                                      tmp_path: Path) -> None:
    def timer(us: float, address: str, function: str, kind: str = "hrtimer") -> None:
        script.add(us, 0, "swapper", 0, f"timer:{kind}_expire_entry",
                   f"{kind}=0x{address} function={function} now=9")
    for begin, others in ((0, ()), (1000, ("hrtimer",)), (2000, ("timer",))):
        script.idle(begin, 1)
        script.add(begin + 100, 0, "swapper", 0, "irq_vectors:local_timer_entry", "vector=236")
        timer(begin + 101, "a", "tick_nohz_handler")
        for kind in others:
            timer(begin + 102, "b", f"my_{kind}", kind)
        script.idle(begin + 110, -1)
    assert wakes(script, table, tmp_path) == {
        Cause("tick", "tick"): 1, Cause("timer", "my_hrtimer"): 1, Cause("timer", "my_timer"): 1}


def test_ipi_with_sender_and_task(script: Script, table: Path, tmp_path: Path) -> None:
    script.idle(0, 1, cpu=3)
    script.add(50, 1, "server", 7, "sched:sched_waking",
               "comm=worker pid=81 prio=120 target_cpu=000")
    script.add(51, 1, "server", 7, "ipi:ipi_send_cpu",
               "cpu=3 callsite=ttwu_queue_wakelist+0xd callback=0x0")
    script.add(60, 3, "swapper", 0, "irq_vectors:call_function_single_entry", "vector=251")
    script.idle(61, -1, cpu=3)
    script.task(63, 3, 81, "worker")
    # The same task again, without an interrupt: need_resched was watched.
    script.idle(100, 1, cpu=3)
    script.add(150, 2, "client", 9, "sched:sched_waking",
               "comm=worker pid=81 prio=120 target_cpu=003")
    script.idle(151, -1, cpu=3)
    script.task(153, 3, 81, "worker")
    assert wakes(script, table, tmp_path) == {
        Cause("IPI", "function call", "server", "ttwu_queue_wakelist", "worker"): 1,
        Cause("store", "need_resched", "client", "", "worker"): 1}


def test_who_waited_for_idle_states(table: Path, tmp_path: Path) -> None:
    """From the call until the CPU is awake; not who was woken before, by a timer or on a CPU
    that was awake."""
    script = Script()
    for begin, length, state in ((0, 200, 2), (1000, 260, 2), (2000, 102, 1)):
        script.idle(begin, state, cpu=3)
        script.add(begin + 100, 1, "server", 7, "sched:sched_waking",
                   "comm=worker pid=81 prio=120 target_cpu=003")
        script.idle(begin + length, -1, cpu=3)
        script.task(begin + length + 3, 3, 81, "worker")
    script.idle(3000, 2, cpu=3)
    script.add(3090, 3, "swapper", 0, "irq_vectors:local_timer_entry", "vector=236")
    script.idle(3100, -1, cpu=3)
    script.add(3101, 3, "swapper", 0, "sched:sched_waking",
               "comm=sleeper pid=82 prio=120 target_cpu=003")
    script.task(3103, 3, 82, "sleeper")
    script.add(4000, 1, "server", 7, "sched:sched_waking",
               "comm=moved pid=83 prio=120 target_cpu=001")
    script.idle(4010, 2, cpu=3)
    script.idle(4100, -1, cpu=3)
    script.task(4103, 3, 83, "moved")
    result = analyse(script, table, tmp_path)
    c6, c1 = idle.Waits(2, 260_000, 160_000), idle.Waits(1, 2000, 2000)
    assert result.waited() == {("worker", "C6"): c6, ("worker", "C1"): c1, ("", "C6"): c6,
                               ("", "C1"): c1}
    assert result.waited(0) == {}


def test_an_old_waker_does_not_count(script: Script, table: Path, tmp_path: Path) -> None:
    """Woken and moved here later, by nobody in the trace. Interrupts were recorded, and there
    is another CPU that could store."""
    script.idle(-9, 1, cpu=1)
    script.add(-5, 1, "swapper", 0, "irq_vectors:reschedule_entry", "vector=253")
    script.add(0, 1, "server", 7, "sched:sched_waking",
               "comm=worker pid=81 prio=120 target_cpu=001")
    script.idle(10, 1, cpu=3)
    script.idle(61, -1, cpu=3)
    script.task(63, 3, 81, "worker")
    assert wakes(script, table, tmp_path) == {
        Cause("store", "need_resched", "", "", "worker"): 1}


def test_no_store_where_interrupts_were_not_recorded(script: Script, table: Path,
                                                     tmp_path: Path) -> None:
    """Another CPU woke the task, by an IPI or by a store; or nobody knows."""
    for begin, waker in ((0, 1), (1000, None)):
        script.idle(begin, 1, cpu=3)
        if waker is not None:
            script.add(begin + 50, waker, "client", 9, "sched:sched_waking",
                       "comm=worker pid=81 prio=120 target_cpu=003")
        script.idle(begin + 60, -1, cpu=3)
        script.task(begin + 63, 3, 81, "worker")
    assert wakes(script, table, tmp_path) == {
        Cause("other", "IPI or store", "client", "", "worker"): 1,
        Cause("unknown", "no interrupt events", "", "", "worker"): 1}


def test_timers_tell_where_interrupts_were_not_recorded(script: Script, table: Path,
                                                        tmp_path: Path) -> None:
    script.idle(0, 1)
    script.add(50, 0, "swapper", 0, "timer:hrtimer_expire_entry",
               "hrtimer=0x1 function=hrtimer_wakeup now=9")
    script.idle(60, -1)
    script.task(63, 0, 81, "worker")
    assert wakes(script, table, tmp_path) == {Cause("timer", "hrtimer_wakeup", woke="worker"): 1}


def test_one_cpu_has_nobody_who_stores(script: Script, table: Path, tmp_path: Path) -> None:
    """Woken on the CPU itself, by an interrupt that has no event of its own."""
    script.idle(0, 1)
    script.add(5, 0, "swapper", 0, "irq_vectors:local_timer_entry", "vector=236")
    script.idle(6, -1)
    for begin, woken in ((100, True), (200, False)):
        script.idle(begin, 1)
        if woken:
            script.add(begin + 50, 0, "swapper", 0, "sched:sched_waking",
                       "comm=worker pid=81 prio=120 target_cpu=000")
        script.idle(begin + 60, -1)
        script.task(begin + 63, 0, 81, "worker")
    assert wakes(script, table, tmp_path) == {
        Cause("timer", "nothing due"): 1, Cause("unknown", "interrupt", woke="worker"): 1,
        Cause("unknown", "no interrupt events", woke="worker"): 1}


@pytest.mark.parametrize("flags, name", [("dNs5.", "softirq"), ("dNh4", "interrupt"),
                                         ("dNH2.", "softirq"), ("dN.2.", "no interrupt events")])
def test_flags_of_ftrace(flags: str, name: str, table: Path, tmp_path: Path) -> None:
    """A guest of one CPU, whose text has sched_wakeup but no interrupts."""
    path = tmp_path / "trace"
    path.write_text(
        "          <idle>-0       [000] d..1.    77.102839: cpu_idle: state=1 cpu_id=0\n"
        f"          <idle>-0       [000] {flags}    77.142849: sched_wakeup: comm=kworker/0:5"
        " pid=164 prio=120 target_cpu=000\n"
        "          <idle>-0       [000] .N.1.    77.142854: cpu_idle: state=4294967295 cpu_id=0\n"
        "          <idle>-0       [000] d..2.    77.142860: sched_switch: prev_comm=swapper/0"
        " prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=kworker/0:5 next_pid=164"
        " next_prio=120\n")
    result = idle.analyse(Source(path), states.load(table), "trace")
    assert list(result.by_cause()) == [Cause("unknown", name, woke="kworker/0:5")]


def test_sched_wakeup_tells_who_on_another_cpu(table: Path, tmp_path: Path) -> None:
    script = Script()
    script.idle(0, 1, cpu=3)
    script.add(50, 1, "client", 9, "sched:sched_wakeup", "comm=worker pid=81 prio=120"
               " target_cpu=003")
    script.idle(60, -1, cpu=3)
    script.task(63, 3, 81, "worker")
    assert wakes(script, table, tmp_path) == {
        Cause("other", "IPI or store", "client", "", "worker"): 1}


def test_an_old_ipi_does_not_count(script: Script, table: Path, tmp_path: Path) -> None:
    script.add(0, 1, "server", 7, "ipi:ipi_send_cpu", "cpu=3 callsite=x+0x1 callback=0x0")
    script.idle(10, 1, cpu=3)
    script.add(60, 3, "swapper", 0, "irq_vectors:reschedule_entry", "vector=253")
    script.idle(61, -1, cpu=3)
    assert wakes(script, table, tmp_path) == {Cause("IPI", "reschedule"): 1}


def test_lost_events_cut_the_idle_time(script: Script, table: Path, tmp_path: Path) -> None:
    """Exit and entry were lost: one idle time of 2 ms is not what there was."""
    script.idle(0, 2)
    script.lines.append("CPU:0 [12 EVENTS DROPPED]")
    script.idle(2000, -1)
    script.idle(3000, 2)
    script.idle(3700, -1)
    result = analyse(script, table, tmp_path)
    assert result.facts.lost == {0: 12} and result.broken == 1
    assert result.uses[0][2].usage == 1 and result.uses[0][2].time == 700_000


def test_an_idle_time_in_progress_at_the_end_is_none(script: Script, table: Path,
                                                     tmp_path: Path) -> None:
    script.idle(0, 1)
    script.idle(100, -1)
    script.idle(200, 1)
    assert analyse(script, table, tmp_path).uses[0][1].usage == 1


def test_no_idle_events(script: Script, table: Path, tmp_path: Path) -> None:
    script.task(0, 0, 5, "x")
    with pytest.raises(Fail, match="has no power:cpu_idle events"):
        analyse(script, table, tmp_path)


def test_without_a_table_only_the_kernel_can_tell(script: Script, tmp_path: Path) -> None:
    script.idle(0, 2)
    script.idle(90, -1)
    script.add(91, 0, "swapper", 0, "power:cpu_idle_miss", "cpu_id=0 state=2 type=above")
    result = analyse(script, None, tmp_path)
    assert result.uses[0][2].deep == 1 and result.name(0, 2) == "state2"
    assert any("without size or cost" in note for note in result.notes)


def test_another_architecture_gets_a_note(script: Script, table: Path, tmp_path: Path) -> None:
    script.lines.insert(0, "# arch : aarch64")
    script.idle(0, 1)
    script.idle(90, -1)
    notes = analyse(script, table, tmp_path).notes
    assert [n for n in notes if "aarch64" in n and "irq_vectors" in n]


def test_agreement_with_sysfs(script: Script, table: Path, tmp_path: Path) -> None:
    script.idle(0, 1)
    script.idle(100, -1)
    path = tmp_path / "trace"
    path.write_text(script.text())
    machine = states.load(table)
    c1 = machine.states.pop(-1)[1]
    c1.usage, c1.time, c1.above, c1.below = 1, 99_500, 0, 1
    machine.states[0] = [c1, c1]
    result = idle.analyse(Source(path), machine, "trace")
    compared = {(a.counter, a.trace, a.sysfs) for a in idle.against_sysfs(result)
                if a.trace or a.counter != "usage"}
    assert {("usage", 1, 1), ("time", 100_000, 99_500), ("below", 0, 1)} <= compared
