# SPDX-License-Identifier: GPL-2.0
"""TREE=: the governors of another tree join, and what is wrong with it is said."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from test_replay import PROGRAM, period, write

HERE = Path(__file__).resolve().parent.parent
BASE = PROGRAM.parent / "base"
pytestmark = pytest.mark.skipif(not BASE.exists(), reason=f"{BASE} is not there (make replay)")


def build(out: Path, *words: str) -> subprocess.CompletedProcess:
    """Beside a copy of what is built, so that little is compiled."""
    if not out.exists():
        shutil.copytree(PROGRAM.parent, out, ignore=shutil.ignore_patterns("base", "trees*"))
    return subprocess.run(["make", "-s", "-C", HERE, f"OUT={out}", f"KSRC={BASE}", "TREE=" + " ".join(words)],
                          capture_output=True, text=True, env={**os.environ, "CFLAGS": "-O0"})


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree whose teo always polls, as one that nobody takes for the base's."""
    target = tmp_path / "linux" / "drivers/cpuidle/governors"
    shutil.copytree(BASE / "drivers/cpuidle/governors", target)
    text = (target / "teo.c").read_text()
    start = text.index("{", text.index("static int teo_select(")) + 1
    (target / "teo.c").write_text(text[:start] + "\n\t*stop_tick = false;\n\treturn 0;\n" + text[start:])
    (target / "haltpoll.c").unlink()
    return tmp_path / "linux"


def test_other_trees_join(tmp_path: Path, tree: Path) -> None:
    done = build(tmp_path / "out", f"next={tree}", f"7.0={BASE}")
    assert done.returncode == 0, done.stderr
    trace = write(tmp_path / "t.csv", [period(n * 9_000_000, 3_000_000, 5_000_000) for n in range(50)])
    out = subprocess.run([tmp_path / "out/governor-replay", "--json", "--states", "skx", trace],
                         capture_output=True, text=True, check=True).stdout
    got = json.loads(out)["governors"]
    assert {"next-teo", "next-menu", "next-ladder", "7.0-teo", "7.0-haltpoll"} < set(got)
    assert "next-haltpoll" not in got
    # Each has its own state: what one learns is not what another does.
    assert got["7.0-teo"] == got["base-teo"]
    assert got["7.0-menu"] == got["next-menu"] == got["base-menu"]
    assert got["next-teo"]["exit_latency_ns"] == 0
    # Without TREE they are gone.
    assert build(tmp_path / "out").returncode == 0
    done = subprocess.run([tmp_path / "out/governor-replay", "--governor", "next-teo", trace],
                          capture_output=True, text=True)
    assert done.returncode == 1 and "base-haltpoll, least-energy" in done.stderr


def test_wrong_trees(tmp_path: Path, tree: Path) -> None:
    wrong = {"/nonexistent": "must be a kernel tree", f"base={tree}": "and not 'base'",
             f"A/b={tree}": "must be small letters", f"a={tree} a={tree}": "two trees of one name"}
    for word, reason in wrong.items():
        done = build(tmp_path / "out", *word.split())
        assert done.returncode and reason in done.stderr, word
    (tree / "drivers/cpuidle/governors/menu.c").write_text("int x = nothing_of_that_name;\n")
    done = build(tmp_path / "out", str(tree))
    assert done.returncode and "menu.c cannot be compiled here" in done.stderr
