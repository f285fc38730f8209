# SPDX-License-Identifier: GPL-2.0
"""against_best.py and cost.py on figures worked out by hand, and what generate_traces.py writes."""
from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import against_best
import cost
import generate_traces
import pytest
from test_replay import PROGRAM, run

HERE = Path(__file__).resolve().parent.parent


@pytest.mark.skipif(not PROGRAM.exists(), reason="governor-replay is not built")
def test_generated_traces_are_well_formed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate_traces, "LOADS", {name: (300, load) for name, (_, load) in generate_traces.LOADS.items()})
    monkeypatch.setattr(generate_traces, "PERIODS_DRAWN", 300)
    for directory, seed in (("a", 1), ("b", 1), ("c", 2)):
        monkeypatch.setattr(sys, "argv", ["generate_traces.py", str(tmp_path / directory), "--seed", str(seed)])
        generate_traces.main()
    traces = sorted((tmp_path / "a").iterdir())
    assert len(traces) == len(generate_traces.LOADS) + generate_traces.DRAWN
    done = run("--json", "--states", "skx", "--governor", "oracle", *traces)
    assert done.returncode == 0, done.stderr
    assert all(json.loads(line)["governors"]["oracle"]["decisions"] == 300 for line in done.stdout.splitlines())
    for trace in traces:
        assert trace.read_bytes() == (tmp_path / "b" / trace.name).read_bytes()
        assert trace.read_bytes() != (tmp_path / "c" / trace.name).read_bytes()


def test_modes_are_few_lengths_and_a_timer_far_away(tmp_path: Path) -> None:
    """But for those that the timer ends."""
    traces = [list(csv.DictReader(path.read_text().splitlines()[1:]))
              for path in generate_traces.write(tmp_path, 3, number_modes=30)]
    assert len(traces) == 30 and {len(t) for t in traces} == {generate_traces.PERIODS_MODES}
    for trace in traces:
        assert all(int(row["sleep_ns"]) >= 1e8 for row in trace if row["src"] != "T")
        lengths = sorted(int(row["wake_ns"]) for row in trace)
        assert sum(b > 1.2 * a for a, b in zip(lengths, lengths[1:], strict=False)) <= 2
    assert 0 < sum(any(row["src"] == "T" for row in t) for t in traces) < 15


def of(adequate: int, energy: float, stops: int, latency_us: float = 1, wait_us: float = 0) -> dict:
    return {"decisions": 100, "adequate": adequate, "energy": energy, "tick_stops": stops,
            "periods": 50, "wake_latency_ns": 50 * 1000 * latency_us, "waits": 10, "wait_latency_ns": 10 * 1000 * wait_us}


def cell() -> against_best.Cell:
    """menu is the best in the mean; on `b` the other teo is."""
    runs = {"a": {"least-energy": of(100, 10, 0, 2), "teo": of(90, 11, 130, 3, 8),
                  "base-menu": of(80, 12, 100, wait_us=4), "base-teo": of(85, 18, 0, wait_us=2)},
            "b": {"least-energy": of(100, 20, 0, 6), "teo": of(60, 26, 50, 6),
                  "base-menu": of(50, 28, 40), "base-teo": of(55, 25, 0)}}
    return against_best.judge(runs, "teo", ["base-menu", "base-teo"], "base-menu", 1e-4,
                       table="t", hz=250, share="full", set="recorded")


def test_cell() -> None:
    c = cell()
    # Energies 1.1 and 1.3, menu's 1.2 and 1.4: half of 0.3 minus a third of it.
    assert (c.energy, c.best, c.opponent) == (pytest.approx(1.2), pytest.approx(1.3), "base-menu")
    assert c.energy_closed == pytest.approx(100 / 3)
    # Adequate 75; base teo has 70, the best of others: a sixth of 30.
    assert (c.adequate_best, c.adequate_closed) == (70, pytest.approx(100 / 6))
    assert (c.stops, c.menu_stops) == (180, 140)
    assert c.latency_more == pytest.approx(12.5)
    assert (c.worst.name, c.worst.opponent, c.worst.worse) == ("b", "base-teo", pytest.approx(4))
    # 10 wake-ups of 4 us at 1e-4 for a ns, and then of 2, 0 and 0 in the other trace.
    assert (c.wait, c.wait_best, c.dominated) == (4, 1, [])
    assert (c.worst_cost.name, c.worst_cost.cost, c.worst_cost.menu_cost) == ("a", 19, 16)
    assert [t.stops_more() for t in c.traces] == [False, False]
    c.traces[0].stops = 131
    assert c.traces[0].stops_more()


def test_losers_are_named() -> None:
    c = cell()
    c.traces[0].stops = 200
    _, *losers = against_best.tables([c], 3, 18)["losers"]
    assert losers == [["recorded", "b", "energy %", "+4.0", "", "base-teo", "t 250 full", "1"],
                      ["recorded", "a", "cost %", "+18.8", "", "base-menu", "t 250 full", "1"],
                      ["recorded", "a", "tick stops", "200", "100", "base-menu", "t 250 full", "1"]]
    assert against_best.tables([cell()], 5, 19)["losers"] == [against_best.LOSERS]


@pytest.mark.parametrize("other, wins", [((1.1, 4), True), ((1.2, 3), True), ((1.2, 4), False),
                                         ((1.1, 5), False), ((1.3, 3), False)])
def test_who_dominates(other: tuple[float, float], wins: bool) -> None:
    """By no more energy and no longer waiting, and less of one."""
    assert against_best.dominates(other, (1.2, 4)) is wins


def test_dominated_cell() -> None:
    runs = {"a": {"least-energy": of(100, 10, 0), "teo": of(90, 12, 0, wait_us=4),
                  "base-menu": of(90, 11, 0, wait_us=3), "base-teo": of(90, 11, 0, wait_us=5)}}
    c = against_best.judge(runs, "teo", ["base-menu", "base-teo"], "base-menu", 4, table="t", hz=250, share="full",
                           set="recorded")
    head, line = against_best.tables([c], 5, 2)["cells"]
    row = dict(zip(head, line, strict=True))
    assert row["dominated by"] == "base-menu" and row["us waited % over least"] == "+33.3"


def test_row_of_a_cell() -> None:
    """Two sets of one kind: the median, and its ends."""
    other = cell()
    other.energy_closed, other.best = 50, 1.5
    head, line = against_best.tables([cell(), other], 5, 2)["cells"]
    row = dict(zip(head, line, strict=True))
    assert (row["traces"], row["states"], row["hz"], row["latency"]) == ("recorded", "t", "250", "full")
    assert (row["energy closed %"], row["energy closed least"], row["energy closed most"]) == ("42", "33", "50")
    assert (row["energy best"], row["energy"], row["worst trace"]) == ("1.400", "1.200", "b")
    assert (row["adequate best %"], row["adequate %"], row["adequate closed %"]) == ("70.0", "75.0", "17")
    assert (row["worst energy %"], row["tick stops % of menu"], row["exit latency % over bound"]) == (
        "+4.0", "129", "+12.5")


@pytest.mark.skipif(not PROGRAM.exists(), reason="governor-replay is not built")
def test_cells_replays_in_parallel(tmp_path: Path) -> None:
    """The same as one call of the program, and wrong usage is said."""
    traces = generate_traces.write(tmp_path / "in", 5, ["periodic_73", "bursts_8", "phases"])
    done = subprocess.run([HERE / "against_best.py", "--program", PROGRAM, "--traces", tmp_path / "in", "--seeds",
                           "--states", "skx", "--hz", "1000", "--exit-latency", "half", "--against", "base-menu",
                           "--quiet", "--json", tmp_path / "out", "--csv", tmp_path, "--", "--overhead-ns", "3000"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    got, = json.loads((tmp_path / "out").read_text())
    assert (tmp_path / "cells.csv").read_text().splitlines()[1].startswith("recorded,skx,1000,half,")
    assert (tmp_path / "losers.csv").read_text().startswith("traces,trace,measure,")
    lines = run("--json", "--states", "skx", "--hz", "1000", "--exit-latency", "half", "--overhead-ns", "3000",
                *traces).stdout.splitlines()
    energies = {run_["trace"]: run_["governors"]["teo"]["energy"] / run_["governors"]["least-energy"]["energy"]
                for run_ in map(json.loads, lines)}
    assert {t["name"]: t["energy"] for t in got["traces"]} == pytest.approx(energies)
    wrong = subprocess.run([HERE / "against_best.py", "--program", PROGRAM, "--against", "nobody"],
                           capture_output=True, text=True)
    assert wrong.returncode == 1 and "there is no governor nobody, must be one of teo, base-teo" in wrong.stderr


def test_cost_counts_own_code_and_data() -> None:
    """select at 0x100..0x200, a service at 0x500, the engine at 0x800."""
    code = cost.Code([0x100], [0x200], {0x100: "select"})
    engine = cost.Code([0x800], [0x900], {})
    trace = ["I  0800,4", " S 7000,8", "I  0100,4", " L 4000,8", " L 4008,8", "I  0500,4", " L 6000,8",
             "I  0140,4", " S 403c,8", " M 1ffeff0000,8", "I  0804,4", "I  0100,4", "I  0800,4"]
    select = cost.count(trace, code, engine)["select"]
    assert (select.calls, select.instructions, select.code_lines, select.data_lines) == (2, 3, 3, 2)


@pytest.mark.skipif(not PROGRAM.exists(), reason="governor-replay is not built")
def test_cost_finds_each_governor() -> None:
    """Each its own, though two of them are called teo."""
    codes = [cost.find_code(PROGRAM, name) for name in ("teo", "base-teo", "base-menu")]
    assert all(sorted(code.entries.values()) == ["reflect", "select"] for code in codes)
    assert len({address for code in codes for address in code.entries}) == 6
    with pytest.raises(SystemExit, match="has no governor next-teo"):
        cost.find_code(PROGRAM, "next-teo")
