# SPDX-License-Identifier: GPL-2.0
"""guest.py's tables, of what guests would say."""
from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import guest
import pytest
from virtual_silicon.errors import GuestError
from virtual_silicon.guest.pool import Guest


def table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, what: str, say: str,
          *options: str) -> list[list[str]]:
    """@say: what each guest says, with the name of the guest as {name}."""
    def said(_: object, guests: Iterable[Guest]) -> list[str]:
        return [say.replace("{name}", g.name) for g in guests]

    monkeypatch.setattr(guest, "said", said)
    monkeypatch.setattr(guest.options, "built", lambda *_: (tmp_path, {}))
    monkeypatch.setattr(sys, "argv", ["guest.py", what, "--out", str(tmp_path), *options])
    assert guest.main() == 0
    lines = (tmp_path / f"{what}.csv").read_text().splitlines()
    return [line.split(",") for line in lines if not line.startswith("#")][1:]


def test_steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    say = "\n".join(f"{mode.replace(' ', '_')} 0 {ms} 50"
                    for mode in guest.MODES for ms in (7, 3, 4))
    rows = table(monkeypatch, tmp_path, "steps", say, "--hz", "250", "1000",
                 "--columns", "base", "ours", "hint")
    assert ["250", "behind 300", "hint", "4.0", "3.0", "7.0", ""] in rows
    assert ["1000", "light", "ours", "4.0", "3.0", "7.0", "50.0"] in rows
    assert {row[2] for row in rows if row[0] == "1000"} == {"base", "ours"}


def test_energy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    say = "\n".join(f"{load.replace(' ', '_')} 1000 {mj}"
                    for load in (*guest.MIX, *guest.TIMED) for mj in (2000, 5000, 3000))
    rows = table(monkeypatch, tmp_path, "energy", say, "--columns", "ours", "--idle", "all", "C1")
    assert ["C1", "250", "burst 2", "ours", "1.0", "3.0", "2.0", "5.0"] in rows
    assert ["all", "250", "sum", "ours", "10.0", "30.0", "", ""] in rows


def test_changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = table(monkeypatch, tmp_path, "changes", "churn 9 2 0 0 10\nchurn 8 2 0 0 30",
                 "--load", "churn", "--columns", "base", "hint")
    assert rows == [["churn", "base", "10.0", "5.0", "15.0", "8.5", "8", "9"]]


def test_calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = table(monkeypatch, tmp_path, "calls", "churn 9 2 1000 50 10", "--load", "churn")
    assert rows == [["churn", clamp, "500", "25", "95.0"] for clamp in ("-", "300")]
    with pytest.raises(GuestError, match="churn: the profiler counted no call"):
        table(monkeypatch, tmp_path, "calls", "churn 9 2 0 0 10", "--load", "churn")


def test_a_warning_of_the_kernel_is_no_result(monkeypatch: pytest.MonkeyPatch,
                                              tmp_path: Path) -> None:
    with pytest.raises(GuestError, match="not a result: 'WARNING: CPU: 1"):
        table(monkeypatch, tmp_path, "changes", "churn 9 2 0 0 10\nWARNING: CPU: 1",
              "--load", "churn")
