# SPDX-License-Identifier: GPL-2.0
"""What guests answered is kept, and those that fail are named."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest
from virtual_silicon import progress
from virtual_silicon.errors import GuestError
from virtual_silicon.guest import boot
from virtual_silicon.guest import pool as module
from virtual_silicon.guest.job import Job
from virtual_silicon.guest.pool import Guest, Guests
from virtual_silicon.machine import machine

ANSWER = "vs:begin step\n{}\nvs:end step 0\nvs:exit 0\n"


def guest(tmp_path: Path, name: str = "guest", **change: object) -> Guest:
    job = Job()
    job.step("step", "true")
    return dataclasses.replace(Guest(name, machine.load("sapphire-rapids"), 2,
                                     tmp_path / "kernel", job), **change)


@pytest.fixture
def guests(tmp_path: Path) -> Guests:
    for name in ("kernel", "archive", "qemu"):
        (tmp_path / name).write_bytes(b"")
    return Guests(tmp_path, tmp_path / "archive", tmp_path / "qemu")


def test_those_that_fail_are_named_and_started_again(
        guests: Guests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    booted: list[str] = []

    def run(c: boot.Config, on_section: object) -> boot.Result:
        booted.append(c.out.name)
        if booted.count("b") == 1 and c.out.name == "b":
            raise GuestError("it panicked")
        (c.out / "results.log").write_text(ANSWER.format(c.out.name))
        result = boot.Result(0, boot.Answer(), 9, 1, "", {}, None)
        result.answer.feed(ANSWER.format(c.out.name))
        return result
    # Not in the module itself: other guests are booted meanwhile
    monkeypatch.setattr(module, "boot", SimpleNamespace(**vars(boot) | {"run": run}))
    todo = [guest(tmp_path, name) for name in "abc"]
    with pytest.raises(GuestError, match="^1 of 3 guests failed") as error:
        guests.answers(todo)
    assert error.value.details == f"b: it panicked ({tmp_path}/b/console.log)"
    assert [r.text("step") for r in guests.answers(todo)] == ["a", "b", "c"]
    assert booted == ["a", "b", "c", "b"]
    said = capsys.readouterr()
    assert not said.out and "guests: 1 to boot, 2 kept" in said.err
    Guests(tmp_path, tmp_path / "archive", tmp_path / "qemu", keep=False).answers(todo)
    assert booted[4:] == ["a", "b", "c"]


def test_estimate_is_of_what_is_left(guests: Guests, tmp_path: Path,
                                     monkeypatch: pytest.MonkeyPatch,
                                     capsys: pytest.CaptureFixture[str]) -> None:
    """The kept take no time, and not all others take the same."""
    seconds = 0.0

    def answer(g: Guest, on_section: object) -> boot.Result:
        nonlocal seconds
        seconds += 60 * g.cost
        raise GuestError("it panicked")
    monkeypatch.setattr(guests, "answer", answer)
    monkeypatch.setattr(guests, "kept", lambda g: boot.Result(
        0, boot.Answer(), 0, 1, "", {}, None) if g.name == "kept" else None)
    for timed in (module, progress):
        monkeypatch.setattr(timed, "time", SimpleNamespace(monotonic=lambda: seconds))
    todo = [guest(tmp_path, "long", cost=6), guest(tmp_path, "middle", cost=3),
            guest(tmp_path, "short"), guest(tmp_path, "kept", cost=100)]
    guests.outcomes(todo)
    assert capsys.readouterr().err.splitlines() == [
        "guests: 3 to boot, 1 kept ...",
        *(f"  guests: 3 to boot, 1 kept, {done} ended, about {left} left, {after}" for
          done, left, after in ((1, "4:00", "6:00"), (2, "1:00", "9:00"), (3, "0:00", "10:00"))),
        "guests: 3 to boot, 1 kept, 3 ended, about 0:00 left, 10:00"]


def test_key_covers_files_faults_and_trace(guests: Guests, tmp_path: Path) -> None:
    """What a guest of the lab has is in test_lab.py."""
    others = [guest(tmp_path), guest(tmp_path, trace=True), *(
        guest(tmp_path, faults=lines) for lines in (
            "0 msr msr=0x1ad value=0", "0 msr msr=0x1ad value=0\n0 msr msr=0x1ae value=0"))]
    for data in (b"1", b"2"):
        others.append(guest(tmp_path))
        others[-1].job.files["file"] = data
    assert len({guests.key(other) for other in others}) == len(others)


def test_kept_trace(guests: Guests, tmp_path: Path) -> None:
    g = guest(tmp_path, trace=True)
    c = guests.config(g)
    c.out.mkdir()
    (c.out / "key").write_text(guests.key(g))
    (c.out / "results.log").write_text(ANSWER)
    kept = guests.kept(g)
    assert kept and kept.trace == c.out / "trace.gz"
    assert guests.kept(guest(tmp_path)) is None
