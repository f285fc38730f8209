# SPDX-License-Identifier: GPL-2.0
"""When an idle state pays, by the model and by the driver."""

from __future__ import annotations

import pytest

from virtual_silicon import energy, machine


def test_break_even_is_where_both_states_cost_the_same() -> None:
    """Energy of a rest, added up for each state in the naive way."""
    m = machine.load("epyc-7502")
    c1, c2 = m.idle
    row, = energy.break_evens(m)
    up_w = m.share_w(m.base_ratio, m.power.pause_permille)

    def joules(state: machine.IdleState, rest_us: float) -> float:
        out = energy.exit_us(m, state, m.base_ratio)
        return (rest_us - out) * m.idle_w(state, m.base_ratio) + out * up_w
    assert joules(c2, row.alone_us) == pytest.approx(joules(c1, row.alone_us))
    assert joules(c2, 0.5 * row.alone_us) > joules(c1, 0.5 * row.alone_us)
    assert joules(c2, 2 * row.alone_us) < joules(c1, 2 * row.alone_us)


def test_whole_package_pays_sooner() -> None:
    for name in machine.names():
        for row in energy.break_evens(machine.load(name)):
            assert row.package_us <= row.alone_us, row


def test_most_states_agree_with_the_driver_and_the_table_names_the_others() -> None:
    machines = [machine.load(name) for name in machine.names()]
    rows = [row for m in machines for row in energy.break_evens(m)]
    apart = [row for row in rows if not row.agrees]
    assert len(apart) < 0.25 * len(rows)
    assert energy.table(machines).count("| apart |") == len(apart)
