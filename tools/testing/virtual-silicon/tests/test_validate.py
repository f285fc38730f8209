# SPDX-License-Identifier: GPL-2.0
"""Rows of measurements: their values, their experiments, and what is counted how."""

from __future__ import annotations

import csv
import re
import statistics
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from virtual_silicon.errors import GuestError, UsageError
from virtual_silicon.guest import boot
from virtual_silicon.guest.boot import Result
from virtual_silicon.guest.job import Answer, Job, Section
from virtual_silicon.machine import machine, schema
from virtual_silicon.studies.validation import measurements, reproduce, validate
from virtual_silicon.studies.validation.measurements import Band, Row
from virtual_silicon.studies.validation.reproduce import Guest

ROWS = measurements.read(measurements.DATA)


def row(text: str, **other: str) -> Row:
    return Row("Part", 6, 0x8F, "dvfs", "what", "", text, "us", "", "", **other)


@pytest.mark.parametrize(("text", "bands"), [
    ("12.5", [(12.5, 12.5)]),
    ("390..1390", [(390, 1390)]),
    ("-13 / -19", [(-13, -13), (-19, -19)]),
    ("+22 / +11", [(22, 22), (11, 11)]),
    ("<190", [(0, 190)]),
    ("500 / <1000", [(500, 500), (0, 1000)]),
    ("2.5 instead of 1.5", [(2.5, 2.5)]),
    ("1.34 (1.27..1.59)", [(1.34, 1.34)]),
    ("650 (never less, sometimes longer)", [(650, 650)]),
    ("1.5..1.6 / 3.0..3.2", [(1.5, 1.6), (3.0, 3.2)]),
    ("none", [(0, 0)]),
    ("more", []),
])
def test_values(text: str, bands: list[tuple[float, float]]) -> None:
    assert row(text).bands == [Band(*band) for band in bands]


@pytest.mark.parametrize(("text", "model", "error"), [
    ("100", [125.0], 0.25),
    ("100", [70.0], -0.30),
    ("-19", [-9.5], 0.5),			# too small a saving
    ("<190", [150.0], 0.0),
    ("<190", [285.0], 0.5),
    ("20..25", [22.0], 0.0),
    ("20..25", [30.0], 0.2),
    ("390..1390", [390.0, 695.0], -0.5),	# ends with ends, not within
    ("10 / 20", [11.0, 10.0], -0.5),		# the worst
    ("10 / 20", [None, 22.0], 0.1),
    ("none", [0.0], 0.0),
    ("10 / 20", [10.0], None),
    ("more", [1.0], None),
])
def test_errors(text: str, model: list[float | None], error: float | None) -> None:
    assert row(text).error(model) == (None if error is None else pytest.approx(error))


def test_nothing_is_not_something() -> None:
    assert row("none").error([1.0]) == float("inf")


def test_statistics() -> None:
    """Against the library's, on samples whose percentiles lie between two of them."""
    samples = [float(x * x % 101) for x in range(1, 38)]
    percentiles = statistics.quantiles(samples, n=100, method="inclusive")
    for name, value in [("min", min(samples)), ("max", max(samples)),
                        ("mean", statistics.fmean(samples)),
                        ("median", statistics.median(samples)),
                        ("std", statistics.pstdev(samples)), ("p5", percentiles[4]),
                        ("95th percentile", percentiles[94])]:
        assert measurements.statistic(name, samples) == pytest.approx(value), name
    with pytest.raises(UsageError, match="unknown statistic 'mode'"):
        measurements.statistic("mode", samples)


HEAD = ",".join(measurements.COLUMNS)


@pytest.mark.parametrize(("text", "reason"), [
    ("cpu_name,value\nx,1\n", ":1: no column"),
    (f"{HEAD}\na,0x6,0x8f,dvfs,q,c,1,us,m\n", ":2: not as many fields"),
    (f"{HEAD}\na,six,0x8f,dvfs,q,c,1,us,m,s\n", ":2: family or model"),
])
def test_bad_files(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=reason):
        measurements.read(path)


@pytest.mark.parametrize("one", ROWS, ids=lambda r: f"{r.cpu}: {r.quantity}, {r.conditions}")
def test_each_row_is_understood(one: Row) -> None:
    """It has a value, and an experiment or a reason."""
    assert one.bands
    found = reproduce.experiment(one)
    assert found
    if not isinstance(found, str):
        found.guest.build().check_cpus(found.guest.cpus)


def _numbers(table: object) -> set[float]:
    """Of a machine, in the units of its file, and as thousands or thousandths of them."""
    if isinstance(table, dict):
        return set().union(*map(_numbers, table.values()))
    if isinstance(table, list | tuple):
        return set().union(*map(_numbers, table))
    if isinstance(table, int | float) and not isinstance(table, bool):
        return {float(f"{abs(table) * by:.6g}") for by in (0.001, 1, 1000)}
    return set()


def _telling(value: float) -> bool:
    """With three digits that are not round, so that it is hardly there by chance."""
    return len(f"{abs(value):.6g}".replace(".", "").strip("0")) >= 3


def put_in_unsaid(one: Row) -> list[float]:
    """Telling numbers of the row that its machine's file has, although it is said to be
    predicted."""
    name, _ = reproduce.machine_of(one)
    if one.put_in or name is None:
        return []
    have = _numbers(asdict(machine.load(name)))
    ends = {end for band in one.bands for end in (band.low, band.high)}
    return [end for end in ends if _telling(end) and abs(end) in have]


def test_what_was_put_in_is_said() -> None:
    assert not {one.key: found for one in ROWS if (found := put_in_unsaid(one))}


def test_what_was_put_in_and_not_said_is_found() -> None:
    base = machine.load("sapphire-rapids").power.capacitance_nf
    assert put_in_unsaid(replace(row(f"{base}"))) == [base]
    assert not put_in_unsaid(replace(row(f"{base}"), put_in="power.capacitance_nf"))


#: Whose numbers are not of one machine.
MODULES = {"reproduce": reproduce, "schema": schema}


def _coefficient(words: str) -> Any:
    """Of `MACHINE TABLE.KEY`, `MACHINE idle.STATE.KEY`, or `MODULE NAME`."""
    name, _, key = words.partition(" ")
    value: Any = MODULES.get(name) or machine.load(name)
    for part in key.split("."):
        value = next(state for state in value if state.name == part) \
            if isinstance(value, tuple) else getattr(value, part)
    return value


def test_coefficients_exist() -> None:
    for one in ROWS:
        for words in filter(None, one.put_in.split(", ")):
            assert _coefficient(words), words


def _guest(outputs: dict[str, str], status: int = 0) -> validate.Boots:
    """Answers steps whose text contains the key."""
    def start(todo: Sequence[tuple[Guest, Job]]) -> list[boot.Result]:
        return [one(job) for _, job in todo]

    def one(job: Job) -> boot.Result:
        answer = Answer()
        script = job.script().decode()
        for number, step in re.findall(r"do_step\(\) \{ fresh; (.*)\n\}\nstep step-(\d+)",
                                       script):
            text = next(t for key, t in outputs.items() if key in number)
            answer.sections[f"step-{step}"] = Section(f"step-{step}", text.split("\n"), status)
        return boot.Result(0, answer, 0, 0, "", {}, None)
    return start


SWITCH = next(r for r in ROWS if r.quantity == "core frequency switch, median")


def test_prediction_and_coefficient_are_told_apart() -> None:
    """Also for a row of another file that repeats one of ours in other words: who put a number
    in predicts no second measurement of it. Another number of the same samples, and the same on
    another part, are predictions."""
    start = _guest({"vs-switch": "500000\n600000\n700000"})
    stranger = replace(SWITCH, put_in="", conditions="elsewhere")
    part = replace(stranger, quantity="core frequency switch on Skylake-SP, median")
    worst = replace(stranger, quantity="core frequency switch, worst case", text="690")
    verdicts = validate.judge([replace(SWITCH, put_in=""), stranger, part, worst], start)
    assert [v.number for v in verdicts] == [
        validate.PUT_IN, validate.PUT_IN, validate.PREDICTED, validate.PREDICTED]
    assert [v.put_in for v in verdicts] == 2 * [SWITCH.put_in] + ["", ""]


@pytest.mark.parametrize(("cpu", "family", "model", "text"), [
    ("AMD EPYC 7543", 0x19, 0x01, "117"), ("Intel Core i7-1260P", 6, 0x9A, "1.3"),
    ("AMD EPYC 9354", 0x19, 0x11, "190")])
def test_idle_powers_that_were_put_in(cpu: str, family: int, model: int, text: str) -> None:
    """Measured by somebody else."""
    zone = "/sys/class/powercap/intel-rapl:0/name:package-0\nenergy intel-rapl:0 5000000\ntook 5"
    stranger = Row(cpu, family, model, "idle power", "package power idle", "", text, "W", "", "")
    verdict, = validate.judge([stranger], _guest({"watts": zone}))
    assert verdict.number == validate.PUT_IN and "uncore" in verdict.put_in
    core, = validate.judge([replace(stranger, quantity="core power, idle")], _guest({
        "watts": zone.replace("package-0", "core")}))
    assert core.number == validate.PREDICTED


def power(cpu: str, model: int, quantity: str, conditions: str = "") -> reproduce.Experiment:
    found = reproduce.experiment(Row(cpu, 6, model, "cstate power", quantity, conditions, "1", "W",
                                     "", ""))
    assert isinstance(found, reproduce.Experiment)
    return found


@pytest.mark.parametrize(("cpu", "model", "state", "khz"), [
    ("Intel Xeon Platinum 8480+", 0x8F, "C6", 2_000_000),
    ("Intel Atom P5962B", 0x86, "C6", 2_200_000), ("Intel Xeon E3-1240 v5", 0x5E, "C8", 3_500_000)])
def test_powers_of_active_cores(cpu: str, model: int, state: str, khz: int) -> None:
    """Of any part: the others rest in its deepest state, at its own clock or the row's. Each CPU
    is a core."""
    found = power(cpu, model, "increase for each further active core")
    assert [step.startswith(f"rest_in {state} && clock {khz} && ") for step in found.steps] == [
        True, True]
    assert found.guest.build().threads == 1
    m = found.guest.build()
    m.check_cpus(found.guest.cpus)
    assert state in [one.name for one in m.idle]
    assert "clock 1500000 " in power(cpu, model, "increase for the second thread of an active core",
                                     "1.5 GHz").steps[0]


def test_the_state_of_a_row_is_there() -> None:
    """Of Snow Ridge's parts the first has no C6; of its own power that is no matter."""
    def row_of(cpu: str, kind: str, quantity: str) -> reproduce.Experiment | str:
        return reproduce.experiment(Row(cpu, 6, 0x86, kind, quantity, "", "1", "us", "", ""))
    for cpu in ("Intel Snow Ridge", "Intel Atom P5362"):
        for quantity in ("C6 exit, median", "C6 wake latency, p99", "wake-up from C6, median"):
            found = row_of(cpu, "cstate latency", quantity)
            assert not isinstance(found, str) and found.guest.machine == "atom-p5962b"
    found = row_of("Intel Atom P5362", "idle power", "package power idle")
    assert not isinstance(found, str) and found.guest.machine == "atom-p5362"


def test_failures_are_no_predictions() -> None:
    for start in (_guest({"vs-switch": "no idle state C1"}, status=1),
                  _guest({"vs-switch": ""}), _guest({"vs-switch": "text"})):
        verdict, = validate.judge([SWITCH], start)
        assert verdict.number == validate.NOT_REPEATED
        assert verdict.how.startswith("failed")

    verdict, = validate.judge([SWITCH], lambda todo: [GuestError("the emulator ended")])
    assert verdict.how == "failed: the emulator ended"


def test_goal_and_files(tmp_path: Path) -> None:
    other = replace(SWITCH, conditions="elsewhere")
    good = validate.Verdict(other, validate.PREDICTED, "m", "e", (600.0,), 0.0)
    bad = replace(good, model=(900.0,), error=0.5)
    fitted = replace(good, number=validate.PUT_IN)
    assert validate.met([good] * 4 + [bad])
    assert not validate.met([good] * 3 + [bad])
    assert not validate.met([good] * 3 + [bad] + [fitted] * 10)
    validate.write([good, bad, fitted], tmp_path)
    assert validate.summary([good, bad, fitted]) == (
        "3 rows: 2 predicted, 1 of them (50 %) within 25%; 1 put in; 0 not repeated")
    lines = (tmp_path / "validation.csv").read_text(encoding="utf-8").splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert [(r["number"], r["error"]) for r in rows] == [
        ("predicted", "+0.0%"), ("predicted", "+50.0%"), ("put in", "+0.0%")]
    assert (tmp_path / "validation.png").stat().st_size > 5000


@pytest.mark.boots("validated")
def test_experiments_see_what_was_put_in(result: Result) -> None:
    """Median exits by device and by timer, and slot and change of a switch, as in the
    machine's file, but for the kernel's and the program's own time."""
    device, timer, switch = ([float(word) / 1000 for word in result.text(step).split()]
                             for step in ("step-0", "step-1", "step-2"))
    m = machine.load("e5-2697-v2")
    c6, change = m.idle[-1], m.transition
    assert len(device) > 150 and len(timer) > 150 and len(switch) == 60
    assert statistics.median(device) == pytest.approx(c6.wake_us[1], rel=0.1)
    assert statistics.median(timer) == pytest.approx(c6.timer_us[1], rel=0.25)
    assert min(switch) >= change.down_us
    assert max(switch) <= change.down_us + change.halt_us + change.period_us + 60
    assert max(switch) - min(switch) > change.period_us * 0.8
