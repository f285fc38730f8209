# SPDX-License-Identifier: GPL-2.0
"""guest.py's tables, of what guests would say, and which guests it asks."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import guest
import pytest
from virtual_silicon.errors import GuestError
from virtual_silicon.guest.pool import Guest

Say = Callable[[Guest], str]


def table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, what: str, say: Say,
          *words: str) -> list[list[str]]:
    def said(_: object, guests: Iterable[Guest]) -> list[str]:
        return [say(g) for g in guests]

    monkeypatch.setattr(guest, "said", said)
    monkeypatch.setattr(guest.options, "built",
                        lambda args, kernel, hz: (Path(f"{kernel}-{hz}"), {}))
    monkeypatch.setattr(sys, "argv", ["guest.py", what, "--out", str(tmp_path), *words])
    assert guest.main() == 0
    lines = (tmp_path / f"{what}.csv").read_text().splitlines()
    return [line.split(",") for line in lines if not line.startswith("#")][1:]


def script(g: Guest) -> str:
    return g.job.steps[0][1]


def number(g: Guest) -> int:
    """Another of each kernel, governor and hint."""
    kernels = ["base-250", "base-1000", "stock-250", "base-schedutil-250", "patched-250",
               "patched-1000", "patched-profile-250"]
    return (10 * kernels.index(g.kernel.name) + 100 * g.append.endswith("=performance")
            + 200 * ("$(uclampset -m 1024 " in script(g) or "\nuclampset -m 1024 " in script(g)))


def test_steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def say(g: Guest) -> str:
        assert script(g).count("-n 3 ") == len(guest.MODES) and "HINT" not in script(g)
        return "\n".join(f"{mode.replace(' ', '_')} 0 {number(g) + ms} 50"
                         for mode in guest.MODES for ms in (7, 3, 4))
    rows = table(monkeypatch, tmp_path, "steps", say, "--repeat", "3", "--hz", "250", "1000",
                 "--columns", *guest.COLUMNS)
    light = {(hz, column): float(ms) - 4 for hz, mode, column, ms, *_ in rows if mode == "light"}
    assert light == {("250", "base"): 0, ("250", "stock"): 20, ("250", "base-schedutil"): 30,
                     ("250", "ours"): 40, ("250", "performance"): 100, ("250", "hint"): 200,
                     ("1000", "base"): 10, ("1000", "ours"): 50}
    assert ["250", "behind 300", "base", "4.0", "3.0", "7.0", ""] in rows
    assert ["250", "light", "base", "4.0", "3.0", "7.0", "50.0"] in rows


def test_energy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def say(g: Guest) -> str:
        assert script(g).count("guest-load every ") == 3 * len(guest.MIX)
        assert script(g).count("guest-load timed ") == 3 * len(guest.TIMED)
        alone = 5000 * ("[ $(cat $state/name) = C1 ]" in script(g))
        return "\n".join(f"{load.replace(' ', '_')} 1000 {1000 * number(g) + alone + mj}"
                         for load in (*guest.MIX, *guest.TIMED) for mj in (2000, 5000, 3000))
    rows = table(monkeypatch, tmp_path, "energy", say, "--repeat", "3", "--columns", "ours", "hint",
                 "--idle", "all", "C1")
    assert ["C1", "250", "burst 2", "ours", "1.0", "48.0", "47.0", "50.0"] in rows
    assert ["all", "250", "burst 2", "hint", "1.0", "203.0", "202.0", "205.0"] in rows
    assert ["all", "250", "sum", "ours", "10.0", "430.0", "", ""] in rows


def test_changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = table(monkeypatch, tmp_path, "changes",
                 lambda g: f"churn 9 2 0 0 {10 + number(g)}\nchurn 8 2 0 0 {30 + number(g)}",
                 "--repeat", "2", "--load", "churn", "--columns", "performance", "ours", "hint")
    assert rows == [["churn", "performance", "60.0", "55.0", "65.0", "8.5", "8", "9"],
                    ["churn", "ours", "30.0", "25.0", "35.0", "8.5", "8", "9"]]


def test_calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def say(g: Guest) -> str:
        assert number(g) == 60
        return f"churn 9 2 1000 {100 if 'CLAMPED=300' in script(g) else 50} 10"
    words = "--repeat", "1", "--load", "churn"
    rows = table(monkeypatch, tmp_path, "calls", say, *words)
    assert rows == [["churn", "-", "500", "25", "95.0"], ["churn", "300", "500", "50", "90.0"]]
    with pytest.raises(GuestError, match="churn: the profiler counted no call"):
        table(monkeypatch, tmp_path, "calls", lambda g: "churn 9 2 0 0 10", *words)


@pytest.mark.parametrize("said, why", [
    ("churn 9 2 0 0 10\nWARNING: CPU: 1", "not a result: 'WARNING: CPU: 1"),
    ("churn 9 2 0 0 10\nchurn 9 2 0 0 nan", "not a result: 'churn 9 2 0 0 nan"),
    ("churn 9 2 0 0 10", "churn: 1 results instead of 2")])
def test_what_is_no_result(said: str, why: str, monkeypatch: pytest.MonkeyPatch,
                           tmp_path: Path) -> None:
    with pytest.raises(GuestError, match=why):
        table(monkeypatch, tmp_path, "changes", lambda g: said, "--repeat", "2", "--load", "churn",
              "--columns", "base")


@pytest.mark.parametrize("words, why", [
    ("changes --columns hint", "--columns: none of these has a row in the table of changes"),
    ("steps --hz 1000 --columns hint", "none of these has a row in the table of steps"),
    ("steps --columns base base", "--columns: the same twice"),
    ("steps --hz 100", "invalid choice: 100"), ("energy --idle C9", "invalid choice: 'C9'"),
    ("steps --repeat 0", "0 is not above 0"), ("policies --seconds -1", "-1 is not above 0")])
def test_wrong_words(words: str, why: str, monkeypatch: pytest.MonkeyPatch,
                     capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["guest.py", *words.split()])
    with pytest.raises(SystemExit, match="2"):
        guest.main()
    assert why in capsys.readouterr().err
