# SPDX-License-Identifier: GPL-2.0
"""The study of hand-overs: what it reads, and which cells it says are lost."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from virtual_silicon.errors import GuestError, UsageError
from virtual_silicon.guest import options
from virtual_silicon.studies.handovers import handovers, picture

PART = handovers.Part("some", "sapphire-rapids", 8, 250, ("menu",), ("n=4", "n=8"))


def samples(**columns: tuple[float, float]) -> handovers.Samples:
    """Of load n=4: rate and watts of each column."""
    return {("menu", "n=4", name): [handovers.Sample(rate, 3, 9, 20, watts)]
            for name, (rate, watts) in columns.items()}


def test_plan_has_machines_and_loads_that_exist() -> None:
    assert {part.machine for part in handovers.plan().values()} >= {"sapphire-rapids", "epyc-7763"}


@pytest.mark.parametrize("row, said", [
    ("loads = ['n=4,']", "'n=4,' is no load"), ("loads = ['vi:1']", "'vi:1' is no load"),
    ("loads = []\ncolumns = ['best']", "no column best; there are: base, "),
    ("load = []", "unexpected keyword argument 'load'")])
def test_plan_that_is_wrong(row: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(f"[part.x]\nmachine = 'a'\ncpus = 1\nhz = 250\nidle = []\n{row}\n")
    with pytest.raises(UsageError, match=f"plan.toml: part x: .*{said}"):
        handovers.plan(path)


def test_another_teo_has_a_kernel_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options.paths, "kernel", Path)
    args = argparse.Namespace(base="base", patched="patched", stock=None)
    images = {options.built(args, kernel, hz)[0].parent.name + f" of {hz}" for hz in (250, 1000)
              for kernel in ("patched", "7.3-teo")}
    assert images == {" of 250", "7.3-teo-250 of 250", "patched-1000 of 1000",
                      "7.3-teo-1000 of 1000"}


def test_parse() -> None:
    (load, sample), = handovers.parse("n=4,w=60 2 4000 150.5 190 300.0 36\n")
    assert load == "n=4,w=60" and (sample.rate, sample.longest) == (4000, 300)
    assert sample.energy == 9
    for line in ("n=4 1 4000 150.5 190 300.0", "tbench:1 1 connect: no server", "n=4 1"):
        with pytest.raises(GuestError, match="not a result"):
            handovers.parse(line)


@pytest.mark.parametrize("rate, watts, why", [
    (90, 9, ""), (89, 8, "0.89 of shallow's rate"), (95, 9.6, "1.01 of its energy"),
    (59.8, 6, "0.60 of shallow's rate"),
    (50, 4, "0.50 of shallow's rate, 0.83 of the base's rate"), (110, 11, "")])
def test_cells_that_are_lost(rate: float, watts: float, why: str) -> None:
    found = handovers.missed(PART, samples(ours=(rate, watts), shallow=(100, 10), base=(60, 9)))
    assert [row[-1] for row in found] == [why] * bool(why)


def test_power_that_cannot_be_read() -> None:
    of = samples(ours=(95, 0), shallow=(100, 0), base=(60, 0))
    assert handovers.table(PART, of)[1][-4:] == ["0", "0.95", "", "1.58"]
    assert not handovers.missed(PART, of)


def test_table_is_of_medians() -> None:
    of = samples(ours=(50, 5), shallow=(100, 10))
    of["menu", "n=4", "ours"] += [handovers.Sample(rate, 4, 9, 20, 5) for rate in (40, 90)]
    row, other = handovers.table(PART, of)
    assert row == ["menu", "n=4", "ours", "50", "40", "90", "4.0", "9.0", "20.0", "100", "0.50",
                   "1.00", ""]
    assert other[2:4] == ["shallow", "100"]


def test_picture(tmp_path: Path) -> None:
    """Over the base's, of each load; and a table of something else."""
    file = tmp_path / "whose.csv"
    file.write_text("# a note\nload,setting,rate,mJ each\n" + "".join(
        f'"w=60,p=500",{column},{rate},{energy}\n'
        for column, rate, energy in (("base", 100, 8), *((c, 300, 2) for c in picture.SHOWN))))
    assert picture.read(file)["w=60,p=500"]["ours"] == {"rate": 3, "mJ each": 0.25}
    picture.draw({"A": file, "B": file}, tmp_path / "out.png")
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    file.write_text("load,rate\nn=16,fast\n")
    with pytest.raises(UsageError, match="whose.csv: not a table of handovers.py"):
        picture.read(file)
