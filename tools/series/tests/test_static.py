# SPDX-License-Identifier: GPL-2.0
"""What counts as a remark of a compiler, and which of checkpatch's may stay."""
from __future__ import annotations

import tomllib

from ..check import static

LOG = """\
  CC      kernel/sched/chain.o
  CHECK   ../kernel/sched/chain.c
../kernel/sched/chain.c:12:5: warning: symbol 'a' was not declared. Should it be static?
../kernel/sched/chain.c:13: warning: Function parameter or struct member 'b' not described in 'c'
../kernel/sched/chain.c:14:9:   expected int *
In file included from ../kernel/sched/build_utility.c:12:
./include/linux/idle_poll.h:9:2: error: redefinition of 'd'
"""


def test_remarks() -> None:
    found = static.remarks(LOG)
    assert found == {
        "kernel/sched/chain.c: warning: symbol 'a' was not declared. Should it be static?",
        "kernel/sched/chain.c: warning: Function parameter or struct member 'b' not described in"
        " 'c'",
        "include/linux/idle_poll.h: error: redefinition of 'd'"}
    assert static.remarks(LOG.replace(":12:5", ":99:1")) == found


def test_each_exception_has_a_reason() -> None:
    rows = tomllib.loads(static.FILE.read_text())["allowed"]
    assert all(len(row["reason"]) > 5 for row in rows)
    assert len({row["remark"] for row in rows}) == len(rows)
