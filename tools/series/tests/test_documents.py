# SPDX-License-Identifier: GPL-2.0
"""What documents say: numbers and tables beside the samples that they are from, and links."""
from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from virtual_silicon.lab import claims, pages, plan, results

from .. import paths, targets

README = paths.TOP / "README.md"
CLAIMS = claims.load()
#: Numbers that nobody measured: versions, clocks and rules of the model, what a claim was once.
GIVEN = {
    "README.md": {"6.12", "7.3", "4.5", "1.1"},
    "docs/evidence.md": {"6.12", "7.3", "7.3.4", "6.17", "7.0", "3", "95", "0.4", "2.9", "3.0",
                         "3.1", "3.4", "3.9"}}


def test_readme_is_short() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= 110


def test_claims() -> None:
    """lab claims --set writes what has changed."""
    assert claims.check(claims.SAMPLES).problems() == []


@pytest.mark.parametrize("name", GIVEN)
def test_each_number_of_a_sentence_is_a_claim(name: str) -> None:
    text = (paths.TOP / name).read_text("utf-8")
    assert set(claims.unclaimed(name, CLAIMS, text)) <= GIVEN[name]


@pytest.fixture(scope="module")
def now() -> claims.Check:
    return claims.check(claims.SAMPLES)


@pytest.mark.parametrize("name", sorted({claim.file for claim in CLAIMS}))
def test_a_wrong_number_is_found(name: str, now: claims.Check, tmp_path: Path) -> None:
    """In each document, and a sentence that is gone."""
    mine = [claim for claim in CLAIMS if claim.file == name]
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(paths.TOP / name, tmp_path / name)
    found = [one for one in claims.Check(mine, now.of, now.tables, tmp_path)
             if isinstance(one, claims.Found)]
    if not (known := [one for one in found if one.now]):
        pytest.skip("not measured yet")
    one, text = known[0], (tmp_path / name).read_text("utf-8")
    for wrong, said in (("9999", "OUTSIDE: 9999"), ("few", "says 0 times")):
        (tmp_path / name).write_text(text[:one.where.start] + wrong + text[one.where.stop:])
        problems = claims.Check(mine, now.of, now.tables, tmp_path).problems()
        assert any(said in problem for problem in problems), problems


def test_tables_are_those_of_results() -> None:
    """lab pages writes them."""
    assert pages.fill(pages.documents(), write=False) == []


def test_a_wrong_table_is_found(tmp_path: Path) -> None:
    text = README.read_text("utf-8")
    assert "| 4.8 |" in text
    (tmp_path / "README.md").write_text(text.replace("| 4.8 |", "| 7.8 |"))
    assert pages.fill([tmp_path / "README.md"], write=False) == [tmp_path / "README.md"]


def test_marks_are_of_the_plan() -> None:
    """Before there are samples, too."""
    whole = plan.read()
    marks = [mark for document in pages.documents()
             for mark in re.findall(r"^<!-- (?:lab|csv): .*? -->\n", document.read_text("utf-8"),
                                    re.M)]
    assert len(marks) > 10
    for mark in marks:
        pages.made(mark, whole, [])


@pytest.mark.parametrize("file", sorted(results.DIR.rglob("*.csv")),
                         ids=lambda p: str(p.relative_to(results.DIR)))
def test_a_table_that_is_not_of_the_lab_says_how_it_is_made(file: Path) -> None:
    head, *_ = file.read_text("utf-8").splitlines()
    if file.name not in (*results.SAMPLES.values(), "losers.csv") or file.parent != results.DIR:
        assert head.startswith(("# command: ", "# command of v2: ")), head
        if head.startswith("# command: "):
            assert set(re.findall(r"\bmake ([a-z-]+)", head)) <= targets.TARGETS.keys()


def tracked(pattern: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z", pattern], cwd=paths.TOP, check=True,
                            capture_output=True, text=True).stdout
    return [paths.TOP / name for name in listed.split("\0") if name]


@pytest.mark.parametrize("document", tracked("*.md"), ids=lambda p: str(p.relative_to(paths.TOP)))
def test_links_lead_somewhere(document: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", document.read_text("utf-8")):
        name, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", name):
            continue
        target = (document.parent / name).resolve() if name else document
        assert target.exists(), link
        if anchor:
            heads = re.findall(r"^#+ (.*)$", target.read_text("utf-8"), re.M)
            assert anchor in [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-")
                              for h in heads], link
