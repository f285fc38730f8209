# SPDX-License-Identifier: GPL-2.0
"""docs/evidence.md: each figure of its tables is that of results/."""
from __future__ import annotations

import csv
from statistics import mean

from .. import paths
from .test_documents import cells, table

PAGE = paths.TOP / "docs/evidence.md"
DRIVERS = paths.TOP / "tools/testing/virtual-silicon/data/drivers.csv"


#: Loads of whose() that the page has of other machines, too
SOME = ("n=16", "tbench:1", "pgbench-ro:4", "gitsource:4")


def value(name: str, column: str, **where: str) -> str:
    """Of the one row that has these values."""
    row, = (r for r in table(name) if all(r[key] == of for key, of in where.items()))
    return row[column]


def demo_row(name: str, said: str) -> dict[str, str]:
    return next(row for row in table(name) if row["what"].startswith(said))


def gains() -> list[list[str]]:
    def hop(setting: str, column: str, load: str = "n=16") -> str:
        return value("handovers/centre.csv", column, load=load, setting=setting)

    def client(setting: str) -> str:
        return value("conversations/sapphire-rapids.csv", "of performance", load="tbench-1",
                     setting=setting)

    def messages(setting: str) -> str:
        return value("idle/loads.csv", "result", load="messages, p50", setting=setting,
                     **{"frequency governor": "performance"})

    def demo(what: str, said: str) -> list[str]:
        ours, stock = (demo_row(name, said) for name in ("demo.csv", "demo-stock-7.3.csv"))
        assert ours["patched"] == stock["patched"]
        return [what, ours["base"], stock["base"], "-", ours["patched"], "demo.csv"]
    full = ("handovers/centre.csv", "hops a second, pool of 16 threads")
    four = ("base", "stock", "ours-menu", "ours")
    return [
        demo("ms until a light task that becomes busy has the highest clock", "a light task"),
        demo("thousand round trips a second through a pipe of two CPUs", "round trips"),
        demo("J of 5 s with a little work each 100 ms", "energy of 5 s"),
        [full[1], *(hop(s, "rate") for s in four), full[0]],
        ["mJ for each of these", *(hop(s, "mJ each") for s in four), full[0]],
        ["with pauses of 500 us", *(hop(s, "rate", "p=500") for s in four), full[0]],
        ["one client of tbench, of its rate at the highest clock", client("base"),
         client("stock"), "-", client("with"), "conversations/sapphire-rapids.csv"],
        ["us until a message is answered, median", messages("base menu"),
         messages("stock menu"), messages("menu"), messages("teo"), "idle/loads.csv"],
    ]


def over_base(name: str, columns: tuple[str, ...]) -> dict[str, list[str]]:
    """Rate and energy over the base's, by load."""
    loads: dict[str, dict[str, dict[str, str]]] = {}
    for row in table(name):
        loads.setdefault(row["load"], {})[row["setting"]] = row

    def cell(rows: dict[str, dict[str, str]], column: str) -> str:
        rate, energy = (float(rows[column][of]) / float(rows["base"][of])
                        for of in ("rate", "mJ each"))
        return f"{rate:.2f}, J {energy:.2f}"
    return {load: [cell(rows, column) for column in columns] for load, rows in loads.items()}


def whose() -> list[list[str]]:
    """Stock 7.3, the series, and that without one of its parts."""
    return [[f"{machine}`{load}`", *row]
            for name, machine in (("whose-gain", ""), ("whose-gain-epyc", "EPYC 7763, "),
                                  ("whose-gain-e5", "E5-2698 v4, "))
            for load, row in over_base(f"whose-gain/{name}.csv", (
                "stock", "ours", "no-chains", "no-choice", "ours-menu", "base-schedutil")).items()
            if not machine or load in SOME]


def newest() -> list[list[str]]:
    def demo(what: str, said: str) -> list[str]:
        stock, new, ours = (demo_row(name, said) for name in (
            "demo-stock-7.3.csv", "demo-7.3.csv", "demo.csv"))
        return [what, stock["base"], new["base"], new["patched"], ours["patched"]]

    def hops(what: str, load: str) -> list[str]:
        return [what, *(value(name, "rate", load=load, setting=setting) for name, setting in (
            ("handovers/centre.csv", "stock"), ("handovers-7.3.csv", "base"),
            ("handovers-7.3.csv", "ours"), ("handovers/centre.csv", "ours")))]
    return [
        demo("clock that counts as highest, 1562 by the registers", "clock that counts"),
        demo("ms until a light task has it", "a light task"),
        demo("changes of clock in 1 s of a thread's random bursts", "changes of clock"),
        demo("ms for twelve of these, with pauses of 50 ms", "twelve of these"),
        demo("thousand round trips a second", "round trips"),
        demo("J of a little work", "energy of 5 s"),
        demo("wake-ups of each idle CPU in 1 s", "wake-ups of each"),
        demo("scaled after counters read 0 in a tick", "counters read 0"),
        hops("hops a second, pool of 16", "n=16"),
        hops("60 us of work a hop", "w=60"),
        hops("20 us, and pauses of 500 us", "p=500"),
    ]


def hwp() -> list[list[str]]:
    def hop(setting: str) -> str:
        return value("handovers/centre.csv", "rate", load="n=16", setting=setting)

    def better(load: str) -> str:
        row = {key: value("idle/loads.csv", key, load=load, setting="teo",
                          **{"frequency governor": "performance"}) for key in ("better %", "±")}
        return f"{row['better %']} ± {row['±']} %"

    def polling(what: str, case: str, column: str = "mean") -> str:
        return value("idle/c02.csv", column, case=f"no limit, {case}", measure=what)

    def passive(setting: str, measure: str) -> str:
        return value("bench/summary.csv", "value", table="defaults", machine="e3-1240-v5",
                     load="geometric mean", setting=setting, measure=measure)
    return [
        ["choice of CPU", f"{hop('performance')} hops a second become {hop('menu-performance')}"],
        ["teo", f"paced TCP {better('TCP, paced round trip')}, requests "
         f"{better('fio-like, requests')}, pipe {better('pipe, round trips')}"],
        ["C0.2", "nothing with all states on: a thread that polls each us draws "
         f"{polling('1 us polling, W', 'ours')} ± {polling('1 us polling, W', 'ours', '±')} W, "
         f"{polling('1 us polling, W', 'ours without C0.2')} without C0.2"],
        ["passive mode in place of HWP", f"performance {passive('i_pstate', 'performance')} of "
         f"the base's schedutil with HWP, {passive('ours', 'performance')} with ours; per watt "
         f"{passive('i_pstate', 'per_watt')} and {passive('ours', 'per_watt')}"],
    ]


def overall() -> list[list[str]]:
    """With menu and as installed over the base, as installed over stock 7.3."""
    def of(machine: str, measure: str, table: str, setting: str) -> str:
        return value("bench/summary.csv", "value", table=table, machine=machine,
                     load="geometric mean", setting=setting, measure=measure)
    return [[f"`{name}`", *(of(name, measure, *column) for measure in ("performance", "per_watt")
                            for column in (("defaults", "ours-menu"), ("defaults", "ours"),
                                           ("newest", "ours")))]
            for name in ("e3-1240-v5", "e5-2698-v4", "e5-2670-v3", "epyc-7742")]


def test_what_it_gives() -> None:
    assert [row[:6] for row in cells(PAGE, ".csv |")] == gains()


def test_whose_gain() -> None:
    rows = whose()
    assert [row for row in cells(PAGE, ", J ") if len(row) == 7] == rows


def test_gains_of_programs() -> None:
    rows = over_base("whose-gain-programs.csv", ("stock", "ours", "no-chains", "no-choice"))
    assert [row for row in cells(PAGE, "`") if len(row) == 5] == [
        [f"`{load}`", *row] for load, row in rows.items()]


def test_newest_kernel() -> None:
    rows = newest()
    assert [row for row in cells(PAGE, "") if row[0] in {r[0] for r in rows}] == rows


def test_hardware_that_chooses_its_clock() -> None:
    shown = {row[0]: row[2] for row in cells(PAGE, "") if len(row) == 3 and row[1] in
             ("yes", "no", "-")}
    assert {name: shown.get(name) for name, _ in hwp()} == dict(hwp())


def test_geometric_means() -> None:
    assert [row for row in cells(PAGE, "`e") if len(row) == 7] == overall()


def test_drivers() -> None:
    with DRIVERS.open(encoding="utf-8") as file:
        drivers = [row["driver"] for row in csv.DictReader(file)]
    active = sum(name in ("intel_pstate", "amd-pstate-epp") for name in drivers)
    assert f"{active} of {len(drivers)} machines" in PAGE.read_text("utf-8")


def test_replay() -> None:
    rows = [r for r in table("replay/cells.csv")
            if (r["traces"], r["latency"]) == ("recorded", "full")]
    closed = mean(float(r["energy closed %"]) for r in rows)
    assert f"closes {closed:.0f} % of the distance" in " ".join(PAGE.read_text("utf-8").split())


def test_validation() -> None:
    rows = [r for r in table("validation.csv") if r["number"] == "predicted"]
    watts = [r for r in rows if r["unit"] == "W"]
    near = [sum(abs(float(r["error"].rstrip("%"))) <= 25 for r in some) for some in (rows, watts)]
    assert (f"Of {len(rows)} published values that the model predicts {near[0]} are within a "
            f"quarter, of {len(watts)} powers {near[1]} ") in " ".join(
        PAGE.read_text("utf-8").split())
