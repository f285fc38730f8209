# SPDX-License-Identifier: GPL-2.0
"""The published tables: statistics, what a cell's key covers, what is kept, what failed."""

from __future__ import annotations

import argparse
import csv
import dataclasses
import math
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from virtual_silicon import paths, stats
from virtual_silicon.errors import GuestError, UsageError
from virtual_silicon.guest import boot, initramfs, pool
from virtual_silicon.lab.variants import COEFFICIENTS
from virtual_silicon.loads import HERE as SCRIPTS
from virtual_silicon.machine import machine
from virtual_silicon.studies.bench import cells, commands, host, loads, report, runner, tables


def test_welch_by_hand() -> None:
    """Means 2 and 6, variances 1 and 4, three samples each: t of 2.94 degrees of freedom."""
    assert stats.welch([1, 2, 3], [4, 6, 8]) == pytest.approx(4.30 * math.sqrt(1 / 3 + 4 / 3))
    assert stats.welch([1, 1], [2, 2]) == 0


def test_ratio_is_of_geometric_means_over_parameters() -> None:
    """4 and 1/2 times the baseline's make the root of 2; arithmetic means would make 2.25,
    and sums 0.67."""
    found = stats.ratio([[4.0, 4.0], [50.0, 50.0]], [[1.0, 1.0], [100.0, 100.0]])
    assert found.value == pytest.approx(math.sqrt(2))
    assert (found.low, found.high) == pytest.approx((found.value, found.value))


def test_tilde_only_where_the_interval_has_1() -> None:
    base = [[100.0, 101, 99, 100, 100]]
    assert str(stats.ratio([[101.0, 99, 102, 98, 100]], base)) == "~"
    assert str(stats.ratio([[110.0, 111, 109, 110, 110]], base)) == "1.10"
    # Far from 1, but as far apart from each other
    assert str(stats.ratio([[50.0, 200, 150, 60, 190]], base)) == "~"


def test_spearman() -> None:
    """IQ and hours of television of the usual example: -29/165."""
    iq = [106, 100, 86, 101, 99, 103, 97, 113, 112, 110]
    hours = [7, 27, 2, 50, 28, 29, 20, 12, 6, 17]
    assert stats.spearman(iq, hours) == pytest.approx(-29 / 165)
    assert stats.ranks([3, 1, 3]) == [2.5, 1, 2.5]
    assert stats.spearman([1, 2, 3], [5, 5, 5]) is None


def test_tables_name_what_there_is() -> None:
    for table in tables.TABLES:
        names = {c for m in table.machines for c in (s.name for s in m.settings)}
        assert table.baseline in names and table.loads and set(table.loads) <= set(loads.LOADS)
        assert set(table.columns) <= names, table.name


@pytest.mark.parametrize("field", ["title", "unit", "sizes", "programs", "scratch"])
def test_load_without_a_field(tmp_path: Path, field: str) -> None:
    """Is named before anything is measured; so are fields and packages that are not known."""
    file, text = tmp_path / "loads.toml", loads.FILE.read_text()
    head, found, rest = text.partition("[load.hackbench]")
    file.write_text(head + found + re.sub(f"(?m)^{field} = .*", "", rest, count=1))
    with pytest.raises(UsageError, match=f"^loads.toml: load hackbench lacks {field}$"):
        loads.read(file)
    file.write_text(f"{head}{found}\n{field}s = 1\n{rest}")
    with pytest.raises(UsageError, match=f"load hackbench has an unknown {field}s; there are: "):
        loads.read(file)
    file.write_text(text.replace('programs = ["git"]', 'programs = ["git", "hg"]'))
    with pytest.raises(UsageError, match="load gitsource needs hg, which recipe.txt does not have"):
        loads.read(file)


def test_shell_has_every_load() -> None:
    """And a value of those that print one."""
    functions = dict(re.findall(r"^(\w+)\(\)\n\{\n(.*?)^\}", (SCRIPTS / "programs.sh").read_text(),
                                re.M | re.S))
    names = {name: set(re.findall(r"^\t([\w-]+)\)", functions[name], re.M))
             for name in ("load", "value")}
    assert names["load"] == set(loads.LOADS), "load() in programs.sh and loads.toml"
    assert names["value"] == {load.name for load in loads.LOADS.values() if load.prints}, \
        "value() in programs.sh and unit = \"us\" in loads.toml"


def test_numbers_of_a_load() -> None:
    assert loads.numbers((1, "n/2", "2n"), 8) == [1, 4, 16]
    assert loads.numbers((2, "n/4", "n"), 2) == [1, 2]
    with pytest.raises(UsageError, match="'n-1' is neither a number nor like"):
        loads.numbers(("n-1",), 4)


def test_cells_share_guests() -> None:
    """Each cell in one guest, and a guest has one kernel, machine and command line."""
    every = cells.all_cells("results") + cells.all_cells("assumptions")
    of = cells.starts(every)
    assert len(set(every)) == len(every)
    assert sorted(map(id, every)) == sorted(id(c) for start in of for c in start.cells)
    assert all(c.setting.boot == s.boot and c.machine == s.machine for s in of for c in s.cells)
    assert len({s.name for s in of}) == len(of) < len(every) / 5


def test_other_assumptions_of_a_machine_that_has_none(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No empty table in place of a full one."""
    monkeypatch.setattr(commands.runner, "images", lambda *_: ({"base": tmp_path}, {}))
    monkeypatch.setattr(commands.runner, "Bench", lambda *_: None)
    monkeypatch.setattr(commands.paths, "qemu", lambda _: tmp_path)
    args = argparse.Namespace(output=tmp_path, stock=None, qemu=None, jobs=1, kept=False,
                              extent="assumptions", machines=["e5-2670-v3"])
    with pytest.raises(UsageError, match="has no cells of e5-2670-v3; it has of: e5-2698-v4$"):
        commands.bench(args)


def test_table_of_other_assumptions() -> None:
    """A row for each, and in it the ratios of both loads; a failed cell is not left out."""
    results = fake_results({"4c": 0.5}, "assumptions")
    bad = next(c for c in results if c.machine.variant == "leakage_w x 0.75")
    results[bad] = runner.Failure("it broke", "")
    head, *rows = tables.sensitivity(tables.Measured(results)).rows
    assert [row[0] for row in rows] == list(COEFFICIENTS)
    good = next(row for row in rows if row[0] == "leakage_w x 1.25")
    assert dict(zip(head, good))["gitsource-40, performance"].startswith("0.50 (")
    assert dict(zip(head, good))["tbench-4, performance"].startswith("2.00 (")
    assert "failed" in next(row for row in rows if row[0] == "leakage_w x 0.75")


def test_a_longer_run_keeps_what_a_shorter_one_measured() -> None:
    """Guests under the same names do the same; --machines holds for assumptions too."""
    short, results, others = ({s.name: s.job().script() for s in cells.starts(cells.all_cells(e))}
                              for e in loads.EXTENTS)
    assert short.items() < results.items() and not results.keys() & others.keys()
    assert len(others) == 4 * len(COEFFICIENTS)
    assert not cells.all_cells("assumptions", [cells.HASWELL])


def test_published() -> None:
    found = {(p.source, p.machine, p.measure, p.load, p.column): p.value
             for p in tables.published(loads.HERE / "published.csv")}
    assert found["invariance-2019", "e5-2698-v4", "performance", "gitsource", "4c"] == 0.49
    assert found["invariance-2019", "e3-1240-v5", "per_watt", "tbench", "i_pstate"] == 1.17
    assert found["invariance-2019", "e5-2670-v3", "performance", "tbench", "12c"] == 1.25
    assert found["invariance-2019", "e5-2698-v4", "performance", "netudp", "1c"] == 1	# a tilde
    assert found["epyc-2020", "epyc-7742", "watts", "tbench", "performance"] == \
        pytest.approx(281.83 / 227.25)
    machines = {m.name: m for m in cells.MACHINES}
    assert all(key[4] in {s.name for s in machines[key[1]].settings} for key in found)


def fake_results(change: dict[str, float] | None = None,
                 extent: str = "results") -> runner.Results:
    """Every setting alike but for what @change multiplies a setting's time and power by."""
    out: runner.Results = {}
    for cell in cells.all_cells(extent):
        by = (change or {}).get(cell.setting.name, 1) * (1 + 0.001 * cell.seed)
        out[cell] = runner.Result(seconds=by, joules=10, amount=100 if cell.load.rate else 1,
                                  mhz=1000, updates=5, value=by if cell.load.prints else None)
    return out


def test_directions() -> None:
    """Half the time for the same energy: of loads that end 0.5, of rates 2, 2 per watt."""
    measured = tables.Measured(fake_results({"4c": 0.5}))
    table = tables.TABLES[0]
    rows = {measure: {r[0]: dict(zip(g.rows[0], r)) for r in g.rows} for measure in tables.RATIOS
            for g in [tables.summary(table, cells.BROADWELL, measure, measured)]}
    assert rows["performance"]["gitsource*"]["4c"] == "0.50"
    assert rows["performance"]["tbench"]["4c"] == "2.00"
    assert rows["performance"]["tbench"]["1c"] == "~"
    assert rows["performance"]["geometric mean, higher is better"]["4c"] == "2.000"
    assert rows["per_watt"]["gitsource"]["4c"] == "~"
    head, watts, *_ = tables.summary(table, cells.BROADWELL, "watts", measured).rows
    found = dict(zip(head[1:], map(float, watts[1:])))
    assert found["4c"] == pytest.approx(2 * found["non-inv"], rel=0.02)


def test_guest_is_the_published_machine_under_its_load(bench: runner.Bench) -> None:
    """Uncore of all packages, and cycles of the load's user code; nothing else."""
    m = machine.load("e5-2698-v4")
    start = next(s for s in cells.starts(cells.all_cells("short", [cells.BROADWELL]))
                 if s.batch == "kernbench")
    found = bench.guest(start).machine
    assert start.machine.packages == m.packages == 2
    assert found.power.uncore_w == 2 * m.power.uncore_w
    assert (found.time.user_cycles_per_1000_insns, found.time.memory_permille) == (1000, 94)
    assert dataclasses.replace(found, power=m.power, time=m.time) == m


def test_loads_that_share_guests_share_their_cycles(tmp_path: Path) -> None:
    text = loads.FILE.read_text().replace("cycles = 1200", "cycles = 1300", 1)
    (tmp_path / "loads.toml").write_text(text.replace('batch = "tbench"', 'batch = "pgbench"'))
    with pytest.raises(UsageError, match="loads tbench and pgbench-ro share guests, but not"):
        loads.read(tmp_path / "loads.toml")


def test_losers_are_named() -> None:
    """Over the base all of our columns, over 7.3 the one that is installed."""
    slow, fast = (tables.losers(tables.Measured(fake_results({"ours-menu": by}))).rows
                  for by in (1.1, 0.5))
    named = [row[:4] for row in slow]
    assert ["e3-1240-v5, gitsource-40", "ours-menu", "base", "performance"] in named
    assert not any(row[1] == "ours" for row in named)
    assert len(fast) == 1
    named = [row[:4] for row in tables.losers(tables.Measured(fake_results({"stock": 0.9}))).rows]
    assert ["e3-1240-v5, gitsource-40", "ours", "stock", "performance"] in named
    assert {(row[1], row[2]) for row in named[1:]} == {("ours", "stock")}


def test_agreement_counts_directions() -> None:
    cell = tables.Published("s", 1, "m", "performance", "tbench", "b", "c", 1.2)
    less, neutral = (dataclasses.replace(cell, value=v) for v in (0.8, 1.02))
    found = tables.Agreement("t", [(cell, 1.1), (less, 1.1), (neutral, 0.5)], [cell])
    assert found.row() == ["t", "1 of 2", "0.00", "3", "1"]
    assert [row[3:] for row in tables.apart([found]).rows[1:]] == [["0.80", "1.10"]]


def test_what_has_no_counterpart() -> None:
    """A load or machine that is not measured, and a ratio of nothing."""
    results = fake_results()
    for cell, result in results.items():
        if cell.setting.name == "performance":
            results[cell] = dataclasses.replace(result, updates=0)
    good = tables.Published("s", 1, "e3-1240-v5", "updates", "pipe", "base", "4c", 0.5)
    others = [dataclasses.replace(good, **change) for change in (
        {"machine": "m"}, {"load": "ebizzy"}, {"column": "performance"})]
    found = tables.agreements(tables.Measured(results), [good, *others])
    assert [p for a in found for p, _ in a.pairs] == [good]
    assert sorted(map(repr, (p for a in found for p in a.without))) == sorted(map(repr, others))


def rows_of(file: Path) -> list[dict[str, str]]:
    lines = file.read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def test_failed_cells_are_shown(tmp_path: Path) -> None:
    results = fake_results()
    bad = next(c for c in results if c.machine == cells.BROADWELL and c.load.name == "tbench"
               and c.setting.name == "1c")
    results[bad] = runner.Failure("status 1: it broke", "/the/log")
    said = report.write(tmp_path, results, {}, ends=report.verdicts(tables.Measured(results)))
    table = tables.summary(tables.TABLES[0], cells.BROADWELL, "performance",
                           tables.Measured(results))
    assert table.rows[1][table.rows[0].index("1c")] == "failed"
    assert "it broke" in said and "/the/log" in said and ", 1 failed;" in said
    assert [r["value"] for r in rows_of(tmp_path / "tables/summary.csv") if
            (r["table"], r["machine"], r["load"], r["setting"]) ==
            ("invariance", "e5-2698-v4", "tbench", "1c")] == ["failed"] * 4
    shown = rows_of(tmp_path / "tables/cells.csv")
    assert {r["MHz"] for r in shown} == {"1000"}
    assert len(shown) == len({dataclasses.replace(c, seed=0) for c in results}) - 1
    assert len(rows_of(tmp_path / "tables/agreement.csv")) > 5


def a_start(setting: str = "4c", load: str = "gitsource") -> cells.Start:
    return next(s for s in cells.starts(c for c in cells.all_cells("results", [cells.SKYLAKE])
                                        if c.setting.name == setting and c.load.name == load))


def good_answer(start: cells.Start) -> str:
    """As a guest says it; the counters are made up."""
    lines = ["vs:ready 1", "vs:begin 4c"]
    lines += [f"cell {c.load.name} {c.parameter} {c.seed} 0 7 0.5 20 0 200 100 "
              for c in start.cells]
    return "\n".join([*lines, "vs:end 4c 0", "vs:exit 0", ""])


def test_cells_that_were_not_measured() -> None:
    """Are no failures, and no mean is of the others alone."""
    results = {c: r for c, r in fake_results().items()
               if (c.setting.name, c.load.name) != ("1c", "tbench")}
    grid = tables.summary(tables.TABLES[0], cells.BROADWELL, "performance",
                          tables.Measured(results))
    at = grid.rows[0].index("1c")
    assert (grid.rows[1][at], grid.rows[2][at], grid.rows[-1][at]) == ("-", "~", "-")
    assert len(tables.failures(results).rows) == 1


def test_parse() -> None:
    start = a_start()
    text = good_answer(start).replace(" 2 0 7 ", " 2 2 7 ").replace(
        "cell gitsource 40 3", "no such line")
    found = {c.seed: r for c, r in runner.parse(start, "4c", text, 2_000_000, "log").items()}
    good = runner.Result(0.5, 20, 1, 4000, 7)
    assert found[1] == good and good.per_watt == pytest.approx(1 / 20)
    assert isinstance(found[2], runner.Failure) and "status 2" in found[2].reason
    assert isinstance(found[3], runner.Failure) and found[3].log == "log"


@pytest.mark.parametrize("load, words, reason", [
    ("gitsource", "", "did not come to it"),
    ("gitsource", "1 0 0.5 20 0 200 100", "status 1: said"),
    ("gitsource", "125 0 ended too early", "numbers are missing: 125 0 ended"),
    ("gitsource", "0 7 0 20 0 200 100", "is 0"), ("gitsource", "0 7 0.5 0 0 200 100", "is 0"),
    ("gitsource", "0 7 0.5 20 0 200 0", "division by zero"),
    ("gitsource", "0 7 0.5 20 0 200 100 1 2", "0 7 0.5"),
    ("netudp", "0 7 0.5 20 0 200 100", "is 0"), ("cyclictest", "0 7 0.5 20 0 200 100", "is 0"),
    ("cyclictest", "0 7 0.5 20 0 200 100 0", "is 0")])
def test_what_is_no_result(load: str, words: str, reason: str) -> None:
    """Later it would be divided by, or its logarithm taken."""
    cell = next(c for c in cells.all_cells("short", [cells.SKYLAKE]) if c.load.name == load)
    said = "said" if "status" in reason else ""
    found = runner.result(cell, words.split(), 1, said, "log")
    assert isinstance(found, runner.Failure) and reason in found.reason and found.log == "log"


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> runner.Bench:
    archive = tmp_path / "archive"
    archive.write_bytes(b"archive")
    # Not in the module itself: other guests are booted meanwhile
    monkeypatch.setattr(runner, "initramfs", SimpleNamespace(ensure=lambda *_, **__: archive))
    for name in ("base", "patched", "qemu"):
        (tmp_path / name).write_bytes(name.encode())
    return make(tmp_path)


def make(where: Path) -> runner.Bench:
    return runner.Bench(where / "out", {k: where / k for k in ("base", "patched")}, where / "qemu")


def test_only_stock_gets_modules(bench: runner.Bench, tmp_path: Path) -> None:
    bench = runner.Bench(tmp_path / "out", {"stock": tmp_path / "base"}, tmp_path / "qemu",
                         modules={"modules/00-msr.ko": b"msr"})
    assert bench.guest(a_start("stock")).job.files == {"modules/00-msr.ko": b"msr"}
    bench = runner.Bench(tmp_path / "out", {"base": tmp_path / "base"}, tmp_path / "qemu",
                         modules={"modules/00-msr.ko": b"msr"})
    assert bench.guest(a_start("base")).job.files == {}


def key_of(bench: runner.Bench, start: cells.Start) -> str:
    return bench.key(bench.guest(start))


def test_key_covers_what_decides(bench: runner.Bench, tmp_path: Path) -> None:
    start = a_start()
    key = key_of(bench, start)
    assert key_of(make(tmp_path), start) == key

    def booted(**change: str) -> cells.Start:
        other = dataclasses.replace(start.boot, **change)
        return dataclasses.replace(start, boot=other, machine=dataclasses.replace(
            start.machine, settings=(cells.Setting("4c", other),)))
    others = [
        dataclasses.replace(start, machine=dataclasses.replace(
            start.machine, variant="leakage_w x 0.75")),
        dataclasses.replace(start, machine=dataclasses.replace(start.machine, cpus=2)),
        booted(append="nosmt"), booted(kernel="base"), booted(faults=cells.NOT_INVARIANT),
        dataclasses.replace(start, cells=start.cells[1:]),
        a_start("3c"), a_start(load="hackbench")]
    keys = [key_of(bench, other) for other in others]
    for name in ("patched", "qemu", "archive"):
        (tmp_path / name).write_bytes(b"other")
        keys.append(key_of(make(tmp_path), start))
    assert len({key, *keys}) == 1 + len(keys)
    (tmp_path / "base").write_bytes(b"other")	# not the kernel of this guest
    assert key_of(make(tmp_path), start) == keys[-1]


def test_what_is_measured_is_kept(bench: runner.Bench, tmp_path: Path,
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it would be another; a guest that fails is started again."""
    booted: list[boot.Config] = []
    start = a_start()
    assert bench.run(start.cells, kept_only=True) == {} and not booted

    def fail(c: boot.Config, on_section: object) -> boot.Result:
        booted.append(c)
        (c.out / "results.log").write_text(good_answer(start))
        raise GuestError("it panicked")

    def answer(c: boot.Config, on_section: object) -> boot.Result:
        booted.append(c)
        (c.out / "results.log").write_text(good_answer(start))
        result = boot.Result(0, boot.Answer(), 9, 1, "", {}, None)
        result.answer.feed(good_answer(start))
        return result
    monkeypatch.setattr(pool, "boot", SimpleNamespace(**vars(boot) | {"run": fail}))
    results = bench.run(start.cells)
    assert {r.reason for r in results.values() if isinstance(r, runner.Failure)} == {"it panicked"}
    monkeypatch.setattr(pool, "boot", SimpleNamespace(**vars(boot) | {"run": answer}))
    first, again = bench.run(start.cells), bench.run(start.cells)
    assert first == again and len(booted) == 2
    assert all(isinstance(r, runner.Result) for r in first.values())
    (tmp_path / "patched").write_bytes(b"other")
    later = make(tmp_path)
    (tmp_path / "patched").write_bytes(b"replaced while it runs")
    results = later.run(start.cells)
    assert len(booted) == 3
    assert all(isinstance(r, runner.Failure) and "anew" in r.reason for r in results.values())
    later.run(start.cells)
    assert len(booted) == 4


def test_half_an_answer_is_not_kept(bench: runner.Bench) -> None:
    """As a power cut may leave it."""
    start = a_start()
    out = bench.config(bench.guest(start)).out
    out.mkdir(parents=True)
    (out / "key").write_text(key_of(bench, start))
    for text, kept in ((good_answer(start), True), (good_answer(start)[:-30], False)):
        (out / "results.log").write_text(text)
        assert bool(bench.run(start.cells, kept_only=True)) == kept
    (out / "results.log").unlink()
    assert bench.run(start.cells, kept_only=True) == {}


@pytest.mark.parametrize("load", ["gitsource", "dbench", "pgbench-rw"])
def test_two_runs_of_a_cell_are_identical(request: pytest.FixtureRequest, tmp_path: Path,
                                          monkeypatch: pytest.MonkeyPatch, load: str) -> None:
    """And without the turbo table the base is not invariant. Short ones do."""
    monkeypatch.setattr(cells, "WORK", 1)
    kernels = {"base": paths.kernel(request.config.getoption("--base-kernel"))}
    qemu = paths.qemu(request.config.getoption("--qemu"))
    start = a_start("non-inv", load)
    start = dataclasses.replace(start, cells=tuple(
        dataclasses.replace(c, parameter=min(c.parameter, 12)) for c in start.cells if c.seed == 1))
    answers = []
    for number in (1, 2):
        run = runner.Bench(tmp_path / str(number), kernels, qemu)
        results = run.run(start.cells)
        assert all(isinstance(r, runner.Result) for r in results.values()), results
        out = tmp_path / str(number) / start.name
        answers.append([(out / name).read_bytes() for name in (
            "results.log", "console.log", "model.json")])
    assert answers[0] == answers[1]
    assert b"Estimated ratio" not in answers[0][1] and b"intel_cpufreq" in answers[0][0]


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

    def measure(cell: cells.Cell) -> runner.Result:
        seen.append((cell.seed, cell.setting.name, *(f.read_text().strip() for f in (
            *knobs.governors(), knobs.idle, knobs.freq_max, knobs.status))))
        if cell.setting.name == "i_pstate":
            if isinstance(ends, signal.Signals):
                signal.raise_signal(ends)
            elif isinstance(ends, type):
                raise ends
        return runner.Result(1, 1, 1, 1, 1)
    if ends is None:
        assert host.run(knobs, "m", measure, told.append, around())[2] == []
    else:
        kind, said = (SystemExit, 128 + ends) if isinstance(ends, signal.Signals) else (ends, "")
        with pytest.raises(kind, match=f"^{said}$"):
            host.run(knobs, "m", measure, told.append, around())
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
    _, results, lost = host.run(knobs, "m", lambda cell: runner.Result(1, 1, 1, 1, 1),
                                told.append, nullcontext())
    bad = {c.setting.name: r.reason for c, r in results.items() if isinstance(r, runner.Failure)}
    assert list(bad) == ["8c"] and "freq_max: 8c: Device or resource busy" in bad["8c"]
    assert len(lost) == 1 and "rate_limit_us: 77: Device or resource busy" in lost[0]
    assert f"not put back: {lost[0]}" in told
    after = contents(knobs)
    assert [f for f in before if after[f] != before[f]] == [
        str(knobs.cpu / "cpufreq/schedutil/rate_limit_us")]


def test_cores_in_turbo_are_of_intel(knobs: host.Knobs) -> None:
    assert knobs.lacks(cells.Setting("8c", host._HERE, freq_max="8c")) == ""
    (knobs.root / "proc/cpuinfo").write_text("AuthenticAMD\n")
    assert knobs.lacks(cells.Setting("8c", host._HERE, freq_max="8c")) == "freq_max 8c"
    assert knobs.lacks(cells.Setting("boost", host._HERE, freq_max="boost")) == ""


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
        host.run(knobs, "m", lambda cell: runner.Failure("", ""), print, nullcontext())
    knobs.status.unlink()
    with pytest.raises(UsageError, match=r"no governor schedutil \(.*\)$"):
        host.run(knobs, "m", lambda cell: runner.Failure("", ""), print, nullcontext())


def stopwatch(where: Path, script: str) -> Path:
    (where / "stopwatch").write_text("#!/bin/sh\n" + script)
    (where / "stopwatch").chmod(0o755)
    return where


def a_cell() -> cells.Cell:
    return cells.Cell(cells.SKYLAKE, cells.SKYLAKE.settings[0], loads.LOADS["hackbench"], 2, 1)


own_output = pytest.mark.skipif(os.path.lexists("/tmp/output"), reason="/tmp/output is somebody's")


@own_output
def test_load_on_the_host(tmp_path: Path) -> None:
    """An energy counter that wrapped is measured again."""
    tools = stopwatch(tmp_path, f"""[ "$*" = "hackbench -g 2 -l 160" ] || exit 9
        if [ -e {tmp_path}/again ]; then echo 0.5 20 0 200 100
        else >{tmp_path}/again; echo 0.5 18446744073700 0 200 100; fi""")
    assert host.load(tools, 1000, a_cell()) == runner.Result(0.5, 20, 1, 2, None)
    failed = host.load(stopwatch(tmp_path, "echo no counter >&2; exit 125"), 1000, a_cell())
    assert isinstance(failed, runner.Failure) and failed.reason == "no counter: 125 0"
    failed = host.load(stopwatch(tmp_path, """seq 9 >/tmp/output
        echo 0.5 20 0 200 100; exit 3"""), 1000, a_cell())
    Path("/tmp/output").unlink()
    assert isinstance(failed, runner.Failure) and failed.reason == "status 3: 5 | 6 | 7 | 8 | 9"


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
    cell = dataclasses.replace(a_cell(), load=loads.LOADS["dbench"], parameter=1)
    found = host.load(tools, 1000, cell)
    for name in ("output", "dbench.txt"):
        Path("/tmp", name).unlink(missing_ok=True)
    assert isinstance(found, runner.Result), found
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
                 *(file.lstrip("/") for files in loads.PACKAGES.values() for file in files)):
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
