# SPDX-License-Identifier: GPL-2.0
"""cpuwhy explain names what is planted in a guest, from what somebody would attach."""

from __future__ import annotations

import pytest
from cpuwhy import explain, texts
from cpuwhy.case import Case
from guests import Guests, each
from scenarios import EXPLAINED, PLANTED, REGISTERS
from virtual_silicon.guest.boot import Result


def explained(*parts: str) -> explain.Explanation:
    return explain.explain(Case(texts.read_texts(
        [(f"part{number}", text) for number, text in enumerate(parts)])))


def attached(result: Result) -> explain.Explanation:
    return explained(*(result.text(step) for step in ("attached", "registers", "busy", "dmesg")))


#: The base's kernel itself is wrong there: it takes the fourth group of cores for four cores.
BASE_IS_WRONG = {"sapphire-rapids": "is 1740/1024 of base, the turbo registers give 1536/1945"}


@pytest.mark.parametrize("name", each(EXPLAINED, "explain-"))
def test_nothing_on_a_healthy_machine(name: str, guests: Guests) -> None:
    what = attached(guests.get(f"explain-{name}"))
    known = [BASE_IS_WRONG[name]] if name in BASE_IS_WRONG else []
    assert [found.says for found in what.limiters] == known and not what.earlier, what
    assert any(note.kind == "clock" and "no loss" in note.says for note in what.notes)


@pytest.fixture(params=each(["planted"], "explain-"))
def planted(request: pytest.FixtureRequest, guests: Guests) -> Result:
    return guests.get(f"explain-{request.param}")


@pytest.mark.parametrize("name", ["healthy", *PLANTED, "deep"])
def test_what_is_set_is_named(name: str, planted: Result) -> None:
    what = explained(planted.text(name))
    kind = {"healthy": "", "deep": "idle-too-deep"}.get(name) if name not in PLANTED \
        else PLANTED[name][2]
    assert [found.kind for found in what.limiters] == [kind] * bool(kind), what.limiters
    if name == "states":
        assert "was it written by number?" in what.limiters[0].says


@pytest.mark.parametrize("name", each(REGISTERS, "explain-"))
def test_what_a_register_shows_is_named_first(name: str, guests: Guests) -> None:
    what = attached(guests.get(f"explain-{name}"))
    kind = REGISTERS[name][1]
    assert [found.kind for found in what.limiters][:1] == [kind] * bool(kind), what.limiters
    if not kind:
        assert "not in the files" in what.verdict
    if "limit" in REGISTERS[name][0]:
        assert any(note.kind == "clock" and note.when == "now" for note in what.notes), what.notes
