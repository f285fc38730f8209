# SPDX-License-Identifier: GPL-2.0
"""What counts as a line of code, and which files do."""
from __future__ import annotations

from pathlib import Path

import pytest

from .. import git
from ..check import code


@pytest.mark.parametrize("text,count", [
    ("", 0), ("\n\t\n", 0), ("int a;\n", 1), ("int a; /* why */\n", 1), ("/* a\n * b\n */\n", 0),
    ("int a; /* b\n c */ int d;\n", 1), ("// no\nint a;\n", 1), ('char *a = "/* no";\nint b;\n', 2),
    ("char a = '\"'; /* \" */\nint b;\n", 2), ("#ifdef A\n#endif\n", 2), ("int a;\r\n\f\n", 1),
])
def test_lines(text: str, count: int) -> None:
    assert code.lines(text) == count


def test_table(tmp_path: Path) -> None:
    def commit(subject: str, **files: str) -> None:
        for name, text in files.items():
            file = tmp_path / name.replace("__", "/").replace("_DOT_", ".")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        git.run("add", "-A", repo=tmp_path)
        git.run("commit", "-q", "-m", subject, repo=tmp_path)

    git.run("init", "-q", repo=tmp_path)
    commit("base", kernel__a_DOT_c="int a;\nint b;\n")
    commit("one", kernel__a_DOT_c="int a;\n/* c */\n", kernel__a_kunit_DOT_c="int t;\n",
           kernel__Makefile="obj-y\n", tools__b_DOT_c="int b;\n")
    commit("two", include__c_DOT_h="int c;\n\nint d;\n", kernel__a_DOT_c="int a;\nint e;\n")
    assert code.table(tmp_path, "HEAD~2") == [
        "   -1  one", "    3  two", "", "    2  include/c.h", "", "    2  in all"]
