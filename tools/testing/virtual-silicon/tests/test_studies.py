# SPDX-License-Identifier: GPL-2.0
"""Tables of the studies from made-up answers, and how tables are written."""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path

import pytest
from virtual_silicon import text
from virtual_silicon.errors import GuestError, MissingError
from virtual_silicon.guest import options
from virtual_silicon.guest.job import Job
from virtual_silicon.studies.conversations import conversations
from virtual_silicon.studies.idle import c02, loads, rest, wakeups
from virtual_silicon.studies.scaling import scaling


def test_csv_has_remarks_above_it(tmp_path: Path) -> None:
    text.write_csv(tmp_path / "new/t.csv", ("a", "b"), [["1,5", "x"]], "word " * 30)
    lines = (tmp_path / "new/t.csv").read_text().splitlines()
    assert [line.startswith("# word") for line in lines] == [True, True, False, False]
    assert max(map(len, lines)) <= 100
    assert list(csv.reader(lines[2:])) == [["a", "b"], ["1,5", "x"]]


def sample(column: str, load: str, result: float, joules: float) -> conversations.Sample:
    return conversations.Sample(column, load, result, 1200.0, joules, 2.0, 7.0)


def test_conversations() -> None:
    """Energy is per unit of the result, and of times less is better."""
    rows = conversations.table([
        *(sample("base", "pipe", n, 40) for n in (100, 50, 60)),
        *(sample("performance", "pipe", n, 50) for n in (120, 120, 121)),
        sample("base", "shell", 2, 30), sample("performance", "shell", 1, 20)])
    named = [dict(zip(conversations.HEAD, row, strict=True)) for row in rows]
    assert [(r["load"], r["setting"]) for r in named] == [
        ("pipe", "base"), ("pipe", "performance"), ("shell", "base"), ("shell", "performance")]
    pipe, top, shell, _ = named
    assert [pipe[f"result{end}"] for end in ("", " least", " most")] == ["60", "50", "100"]
    # 40 J for 2 * 60 units, beside 50 J for 2 * 120
    assert (pipe["of performance"], pipe["energy of performance"]) == ("0.50", "1.60")
    assert (top["of performance"], top["energy of performance"]) == ("", "")
    assert (shell["of performance"], shell["energy of performance"]) == ("0.50", "1.50")


def test_idle_loads() -> None:
    results: loads.Results = defaultdict(loads.Samples)
    for idle, values in (("menu", (10.0, 12.0)), ("teo", (5.0, 6.0))):
        results["schedutil", "patched", idle, "messages"] = loads.Samples(
            [(v, 20 * v) for v in values], [3.0, 5.0], [1.0, 1.0], [70.0, 70.5])
    def rows_of() -> list[dict[str, str]]:
        return [dict(zip(loads.HEAD, row, strict=True))
                for row in loads.table(results, "schedutil", "messages")]
    rows = rows_of()
    assert [[r[c] for c in ("load", "setting", "result", "better %", "above/s", "W")]
            for r in rows] == [["messages, p50", "menu", "11", "", "4", "70.25"],
                               ["messages, p50", "teo", "5.5", "+50.0", "4", "70.25"],
                               ["messages, p99", "menu", "220", "", "", ""],
                               ["messages, p99", "teo", "110", "+50.0", "", ""]]
    assert float(rows[1]["±"]) > 0
    # Another teo in our kernel stands beside our menu.
    results["schedutil", "other", "teo", "messages"] = loads.Samples(
        [(8.8, 2.0)], [0.0], [0.0], [70.0])
    assert [(r["setting"], r["better %"]) for r in rows_of()[:3]] == [
        ("menu", ""), ("7.3 teo", "+20.0"), ("teo", "+50.0")]
    # Another kernel's menu stands beside no other.
    results["schedutil", "stock", "menu", "messages"] = loads.Samples(
        [(22.0, 2.0)], [0.0], [0.0], [70.0])
    assert [(r["setting"], r["better %"]) for r in rows_of()[:2]] == [
        ("stock menu", ""), ("menu", "")]


def test_stock_kernel_has_menu_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def guest(_: object, __: str, kernel: str, job: Job, ___: bool) -> str:
        asked.append((kernel, job.steps[0][1]))
        return ""

    monkeypatch.setattr(options, "guest", guest)
    monkeypatch.setattr(options, "answers", lambda *_: ())
    args = argparse.Namespace(first=0, boots=1, kernels=["base"], other=None, stock=Path("x.deb"),
                              idle=["menu", "teo"], loads=["ticks", "rest"], rounds=1, trace=False,
                              frequency=["schedutil"])
    assert not loads.measure(args)
    (base, usual), (stock, shell) = asked
    assert (base, stock) == ("base", "stock")
    assert "LOADS='ticks rest'" in usual and " 'menu teo' " in usual
    assert "LOADS='ticks'" in shell and " 'menu' " in shell


def test_stock_kernel_brings_its_modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(options, "packaged", lambda *_: (tmp_path, {"modules/00-msr.ko": b"m"}))
    args = argparse.Namespace(machine="e3-1240-v5", cpus=2, append="", out=tmp_path,
                              stock=Path("x.deb"))
    job = Job()
    assert options.guest(args, "one", "stock", job).kernel == tmp_path
    assert job.files == {"modules/00-msr.ko": b"m"}
    args.stock = None
    with pytest.raises(MissingError, match="stock needs --stock"):
        options.guest(args, "one", "stock", job)


def test_idle_loads_that_fail() -> None:
    for line, said in (("schedutil teo rest event syntax error: 33 6 0.1 9.6", "not a result"),
                       ("schedutil teo pipe-rr 33 6 0.1 9.6", "said nothing")):
        with pytest.raises(GuestError, match=said):
            loads.parse("base", f"vs:ready 0.75\n{line}", defaultdict(loads.Samples))


def test_idle_wakeups() -> None:
    row = {"wakeups": 2.04, "deepest": 99.5, "above": 1.26, "shallow1": 0.4}
    assert wakeups.report({(250, "", "idle"): {"menu": row, "teo": row},
                           (100, "C0.2", "401 Hz, remote"): {"menu": row},
                           (100, "", "401 Hz, remote"): {"menu": row}}) == [
        ["100", "401 Hz, remote", "1.3", "-", "-"],
        ["250", "idle", "2.0, 99.50 %", "-", "2.0, 99.50 %"]]


def test_c02() -> None:
    found = c02.table({"C1 only": {"idle, W": [100.0, 102.0, 104.0], "hand-over, W": [5000.4]}})
    (case, measure, mean, half), other = found
    assert (case, measure, mean) == ("C1 only", "idle, W", "102") and 4.9 < float(half) < 5.1
    assert other == ["C1 only", "hand-over, W", "5000", ""]


def test_rest() -> None:
    """Of all packages, and of nothing else."""
    zones = "".join(f"/sys/class/powercap/{zone}/name:{name}\n" for zone, name in (
        ("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "core"), ("intel-rapl:1", "package-1")))
    said = f"{zones}took 3\nenergy intel-rapl:0 6000000\nenergy intel-rapl:0:0 5000000\n"
    assert rest.watts(f"{said}energy intel-rapl:1 3000000\n") == 3
    with pytest.raises(GuestError):
        rest.watts(said.replace("package", "psys"))


def test_scaling() -> None:
    rows = [scaling.Row("hook", "ours", "one policy", 4, 10, 0.5, 0.25),
            scaling.Row("/proc/cpuinfo", "base", "own policies", 4, 2.0, 1500.0, 1500.0),
            scaling.Row("/proc/cpuinfo", "base", "one policy", 4, 2.0, 1.0, 1.0)]
    assert scaling.paths_table(rows) == [["hook, one policy", "ours", "4", "500", "250"]]
    assert scaling.files_table(rows) == [["/proc/cpuinfo", "base", "4", "1.5", "2.00"]]
