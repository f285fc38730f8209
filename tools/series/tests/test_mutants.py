# SPDX-License-Identifier: GPL-2.0
"""The mistakes can be made, and what is said where one cannot."""
from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from virtual_silicon.errors import Fail

from series import paths
from series.check import mutants

HEAD = 'tree = "."\npaths = ["f"]\n[tests]\nt = "true"\n[[mutants]]\ntest = "t"\nfiles = ["f"]\n'


@pytest.mark.skipif(not paths.LINUX.is_dir(), reason="no build/linux (make tree)")
@pytest.mark.parametrize("name", [file.stem for file in sorted(mutants.ROOT.glob("*.toml"))])
def test_each_mistake_can_be_made(name: str) -> None:
    """A change of what a row replaces is seen here, not only by make mutants."""
    subsystem = mutants.Subsystem(mutants.ROOT / f"{name}.toml")
    for mutant in subsystem.mutants:
        mutants.mutated(mutant, subsystem.tree)
        for path in mutant.files:
            assert any(Path(path).is_relative_to(copied) for copied in subsystem.paths), path


def mutant(directory: Path, text: str, rows: str) -> mutants.Mutant:
    (directory / "f").write_text(text)
    (directory / "m.toml").write_text(HEAD + f"rows = [{rows}]\n")
    return mutants.Subsystem(directory / "m.toml").mutants[0]


@pytest.mark.parametrize("text,times", [("b", 0), ("a a", 2)])
def test_text_that_does_not_stand_there_once(tmp_path: Path, text: str, times: int) -> None:
    wrong = mutant(tmp_path, text, '["why", "[-a-]{+b+}"]')
    with pytest.raises(LookupError, match=re.escape(f"f must have this once, and has it {times}")):
        mutants.mutated(wrong, tmp_path)


def test_several_edits(tmp_path: Path) -> None:
    wrong = mutant(tmp_path, "a b", '["why", "[-a-]{+b+}", "b[- b-]{+{-1]+}"]')
    assert mutants.mutated(wrong, tmp_path) == {tmp_path / "f": "b{-1]"}


@pytest.mark.parametrize("rows,said", [
    ('["why", "a", "b"]', "each with"), ('["why", "[-a-]"]\n]\n[[mutants]\nrows = [', "m.toml"),
    ('["why", "[-a-]"]]\n[[mutants]]\nfiles = []\nrows = [["w", "[-a-]"]', "has no test")])
def test_file_that_makes_no_sense(tmp_path: Path, rows: str, said: str) -> None:
    with pytest.raises(Fail, match=said):
        mutant(tmp_path, "a", rows)


@pytest.mark.parametrize("command,verdict", [
    ("false", ""), ("true", "passes with it"), ("sh -c 'exit 2'", "could not run"),
    ("sh -c 'echo x.c:1:2: error: no; exit 1'", "could not run"),
    ("sh -c 'echo ERROR x; exit 1'", "could not run"),
    ("sh -c 'echo FAILED y; echo ERROR x; exit 1'", "")])
def test_verdict(tmp_path: Path, command: str, verdict: str) -> None:
    wrong = mutant(tmp_path, "a", '["why", "[-a-]{+b+}"]')
    subsystem = mutants.Subsystem(tmp_path / "m.toml")
    subsystem.tests["t"] = shlex.split(command)
    said = mutants.judge(subsystem, wrong, tmp_path)
    assert verdict in said and bool(verdict) == bool(said)
    assert (tmp_path / "f").read_text() == "a"
