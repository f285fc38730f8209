# SPDX-License-Identifier: GPL-2.0
"""When an idle state pays, by the model and by the driver."""

from __future__ import annotations

import pytest
from guests import Guests
from scenarios import SIGN_KHZ, SIGN_STATES, sign_mark
from virtual_silicon.machine import break_even, machine
from virtual_silicon.readers import trace


def test_break_even_is_where_both_states_cost_the_same() -> None:
    """Energy of a rest, added up for each state in the naive way."""
    m = machine.load("epyc-7502")
    c1, c2 = m.idle
    row, = break_even.break_evens(m)
    up_w = m.share_w(m.base_ratio, m.power.pause_permille)

    def joules(state: machine.IdleState, rest_us: float) -> float:
        out = break_even.exit_us(m, state, m.base_ratio)
        return (rest_us - out) * m.idle_w(state, m.base_ratio) + out * up_w
    assert joules(c2, row.alone_us) == pytest.approx(joules(c1, row.alone_us))
    assert joules(c2, 0.5 * row.alone_us) > joules(c1, 0.5 * row.alone_us)
    assert joules(c2, 2 * row.alone_us) < joules(c1, 2 * row.alone_us)


def test_whole_package_pays_sooner() -> None:
    for name in machine.names():
        for row in break_even.break_evens(machine.load(name)):
            assert row.package_us <= row.alone_us, row


#: Zen servers wake up sooner than their driver says; of the others the powers are assumed.
APART = {
    **dict.fromkeys(["epyc-7402p", "epyc-7502", "epyc-7551p", "epyc-7742", "epyc-7763"], "C2"),
    "core-i7-6500u": "C8", "core-i7-7500u": "C8 C9", "e3-1240-v5": "C3 C7s",
    "core-3-n355": "C6"}


def test_table_names_the_states_that_are_apart_from_the_driver() -> None:
    machines = [machine.load(name) for name in machine.names()]
    rows = break_even.table(machines)
    assert len(rows) == sum(len(m.idle) - 1 for m in machines)
    assert {(name, state) for name, state, *_, word in rows if word == "apart"} == {
        (name, state) for name, states in APART.items() for state in states.split()}


@pytest.mark.boots("signs")
@pytest.mark.parametrize("khz", SIGN_KHZ)
def test_power_falls_from_busy_to_the_deepest_state_in_a_guest(guests: Guests,
                                                               khz: int) -> None:
    """Energy that the model counted between marks; at the lowest clock C1E is C1."""
    result = guests.get("signs")
    assert result.trace is not None
    events = trace.read(result.trace)
    watts = {}
    for state in SIGN_STATES:
        window = trace.window(events, sign_mark(khz, state), sign_mark(khz, state) + 1)
        watts[state] = window.package_j / window.seconds
        if state.startswith("C"):
            assert all(cpu.states[state] > 0.8 for cpu in window.cpus.values()), state
    for upper, lower in zip(SIGN_STATES, SIGN_STATES[1:]):
        same = lower == "C1E" and khz == SIGN_KHZ[0]
        assert watts[lower] < watts[upper] * (1.01 if same else 1), watts
