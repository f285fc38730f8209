# SPDX-License-Identifier: GPL-2.0
"""What counts as a remark of a compiler, and which of checkpatch's may stay."""
from __future__ import annotations

from pathlib import Path

import pytest
from virtual_silicon.errors import Fail

from .. import git
from ..check import static
from ..patchqueue.tree import BASE, TIP, Tree

LOG = """\
  CC      kernel/sched/pairs.o
  CHECK   ../kernel/sched/pairs.c
../kernel/sched/pairs.c:12:5: warning: symbol 'a' was not declared. Should it be static?
../kernel/sched/pairs.c:13: warning: Function parameter or struct member 'b' not described in 'c'
../kernel/sched/pairs.c:14:9:   expected int *
In file included from ../kernel/sched/build_utility.c:12:
./include/linux/idle_poll.h:9:2: error: redefinition of 'd'
"""


def test_remarks() -> None:
    found = static.remarks(LOG)
    assert found == {
        "kernel/sched/pairs.c: warning: symbol 'a' was not declared. Should it be static?",
        "kernel/sched/pairs.c: warning: Function parameter or struct member 'b' not described in"
        " 'c'",
        "include/linux/idle_poll.h: error: redefinition of 'd'"}
    assert static.remarks(LOG.replace(":12:5", ":99:1")) == found


def test_each_exception_has_a_reason() -> None:
    assert not any(static.allowed(static.FILE.read_text(), ()).values())
    for text, said in (('[[allowed]]\nremark = "X"\n', "no reason is given for 'X'"),
                       ('[[allowed]]\nremark = "X"\nreason = " "\n', "no reason is given for 'X'"),
                       (2 * '[[allowed]]\nremark = "X"\nreason = "as there"\n', "twice: 'X'")):
        with pytest.raises(Fail, match=said):
            static.allowed(text, ())


def test_exception_for_one_commit() -> None:
    text = '[[allowed]]\nremark = "X"\nreason = "as there"\ncommit = "A"\n'
    assert (static.allowed(text, ["A", "B"]), static.allowed(text, ["B"])) == ({"X": False}, {})


def test_checkpatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of commits A and B, of which its script says X and Y; X and Z may stay."""
    script, rules = tmp_path / "scripts/checkpatch.pl", tmp_path / "rules.toml"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n! grep -q 'Subject.*B$' || echo '-:7: CHECK: Y'\n"
                      "echo '-:3: WARNING: X'\n")
    script.chmod(0o755)
    rules.write_text("".join(f'[[allowed]]\nremark = "{remark}"\nreason = "as there"\n'
                             for remark in ("WARNING: X", "CHECK: Z")))
    monkeypatch.setattr(static, "FILE", rules)
    git.run("init", "-q", repo=tmp_path)
    for subject, ref in (("base", BASE), ("A", TIP), ("B", TIP)):
        (tmp_path / subject).touch()
        git.run("add", "--all", repo=tmp_path)
        git.run("-c", "user.name=A", "-c", "user.email=a@a.invalid", "commit", "-q", "-m", subject,
                repo=tmp_path)
        git.run("update-ref", ref, "HEAD", repo=tmp_path)
    count = static.checkpatch(Tree("test", tmp_path, 0))
    assert (count.passed, count.failures) == (1, ["B: CHECK: Y", "exception for CHECK: Z"])
