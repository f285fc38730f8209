# SPDX-License-Identifier: GPL-2.0
"""The compiler's wrapper: which headers a source gets, and what is said if one is missing."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from units import CC

SOURCE = """#include <linux/list.h>
#include <linux/cpuidle.h>
#include "own.h"
int main(void) { return min(A, B) != 1 || ERANGE != 34; }
"""


def cc(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, CC, *words], capture_output=True, text=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "main.c").write_text(SOURCE)
    (tmp_path / "own.h").write_text('#include "other.h"\n#include <linux/errno.h>\n')
    (tmp_path / "other.h").write_text('#pragma once\n#include "own.h"\n#define B 2\n')
    (tmp_path / "include/linux").mkdir(parents=True)
    (tmp_path / "include/linux/cpuidle.h").write_text("#include <linux/hrtimer.h>\n#define A 1\n")
    return tmp_path


def test_headers(tree: Path) -> None:
    """Own ones, even in a circle; the tree's; libc's; empty ones."""
    done = cc("--tree", tree, "gcc", "-o", tree / "main", tree / "main.c")
    assert done.returncode == 0, done.stderr
    assert subprocess.run([tree / "main"]).returncode == 0


@pytest.mark.parametrize("words,said", [
    (["gcc", "-c", "main.c"], "linux/cpuidle.h must be in one of the trees"),
    (["--tree", ".", "ggc", "main.c"], "ggc is not installed"),
    (["--tree", ".", "gcc", "none.c"], "none.c: No such file"),
    (["--tree", "."], "it needs a compiler")])
def test_what_is_missing(tree: Path, monkeypatch: pytest.MonkeyPatch, words: list[str],
                         said: str) -> None:
    monkeypatch.chdir(tree)
    done = cc(*words)
    assert done.returncode and said in done.stderr
