# SPDX-License-Identifier: GPL-2.0
"""Which tables are older than what they describe, and how they are made anew."""
from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from virtual_silicon.errors import Fail

from ..check import figures

TEXT = """\
# a comment that stays
[inputs]
code = ["code", "more"]
data = ["data"]

[[figure]]
document = "a.md"
command = "{first}"
of = ["code"]

[[figure]]
document = "b.md"
command = "echo b >b.md"
of = ["data"]
"""


def commit(top: Path, **files: str) -> None:
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    subprocess.run(["git", "add", "-A"], cwd=top, check=True)
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
                   cwd=top, check=True)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    commit(tmp_path, code="1", more="1", data="1", other="1")
    return tmp_path


def listed(top: Path, file: Path) -> list[str]:
    return [f.document for f in figures.stale(figures.load(file), top)]


def test_stale_until_made(top: Path) -> None:
    file = top / "figures.toml"
    file.write_text(TEXT.format(first="echo a >a.md"))
    assert listed(top, file) == ["a.md", "b.md"]
    assert figures.make(top, file) == 0 and (top / "a.md").read_text() == "a\n"
    assert listed(top, file) == []
    commit(top, other="2")
    assert listed(top, file) == []
    commit(top, more="2")
    assert listed(top, file) == ["a.md"]
    before = file.read_text()
    figures.make(top, file)
    assert listed(top, file) == [] and before.count("made_from") == 2
    # But for the version nothing of the file has changed.
    lines = [(a, b) for a, b in zip(before.splitlines(), file.read_text().splitlines(),
                                    strict=True) if a != b]
    assert len(lines) == 1 and lines[0][1].startswith("made_from = ")


def test_words_of_a_patch_make_nothing_older(top: Path) -> None:
    def version(message: str, code: str) -> str:
        commit(top, **{"a.patch": f"Subject: {message}\n---\n\n{code}\n"})
        return figures.version(["a.patch", "data"], top)

    assert version("x", "+1") == version("y", "+1") != version("y", "+2")
    assert version("x", "") == version("y", "")     # new files alone
    code = "diff --git a/a.c b/a.c\n@@ -{} +1 @@ f()\n+/*\n+ * {}\n+ */\n+\t*a = 1;\n"
    text = "diff --git a/Documentation/a.rst b/Documentation/a.rst\n+{}\n"
    first = version("x", code.format(1, "b") + text.format("c"))
    assert first == version("x", text.format("d") + code.format(2, "e"))
    assert first != version("x", code.format(1, "b").replace("*a", "*c") + text.format("c"))
    assert first != version("x", code.format(1, "b").replace("a.c", "c.c") + text.format("c"))


def test_comments_of_a_machine_make_nothing_older(top: Path) -> None:
    def version(text: str) -> str:
        commit(top, **{"machines/a.toml": f"{text}\n"})
        return figures.version(["machines"], top)

    assert version("a = 1\t# x") == version("# y\na = 1") != version("a = 2\t# x")


def test_comments_and_unit_tests_make_nothing_older(top: Path) -> None:
    def version(code: str, test: str = "") -> str:
        commit(top, **{"lib/a.c": f"{code}\n", "lib/a_kunit.c": f"int {test}c;\n"})
        return figures.version(["lib"], top)

    before = version("int a;")
    assert before == version("/*\n * \"x\n */\nint a; // y", "z")
    assert before != version("int b;")
    assert version('f("/* x */");') != version('f("/* y */");')
    assert version("f('\"'); /* x */") == version("f('\"'); /* y */")


def test_patches_of_a_newer_base_count_where_they_are_named(top: Path) -> None:
    def versions(there: str) -> list[str]:
        commit(top, **{"patches/0001-x.patch": "x\n", "patches/7.3/0001-x.patch": f"{there}\n"})
        return [figures.version(inputs, top) for inputs in (["patches"],
                                                            ["patches", "patches/7.3"])]

    before, after = versions("a"), versions("b")
    assert before[0] == after[0] and before[1] != after[1]


def test_tables_have_command_and_version(top: Path) -> None:
    """Once, however often they are made; other files of the directory stay as they are."""
    file = top / "figures.toml"
    file.write_text(TEXT.format(first="mkdir -p a.md; echo x >>a.md/x.csv; echo y >a.md/y"))
    for more in "23":
        assert figures.make(top, file) == 0
        head, version, *rest = (top / "a.md/x.csv").read_text().splitlines()
        commit(top, more=more)
    assert head == "# command: mkdir -p a.md; echo x >>a.md/x.csv; echo y >a.md/y"
    made_from = figures.load(file)[0].made_from
    assert version.startswith("# version: ") and version.endswith(f", inputs {made_from}")
    assert rest == ["x", "x"] and (top / "a.md/y").read_text() == "y\n"


def test_what_failed_stays_stale(top: Path) -> None:
    file = top / "figures.toml"
    file.write_text(TEXT.format(first="echo half >a.md; exit 3"))
    assert figures.make(top, file) == 1
    assert listed(top, file) == ["a.md"]


def test_wrong_lists_are_refused(top: Path) -> None:
    file = top / "figures.toml"
    file.write_text(TEXT.replace('of = ["data"]', 'of = ["dat"]'))
    with pytest.raises(Fail, match="no input dat; there are: code, data"):
        figures.load(file)
    file.write_text(TEXT.replace('["data"]\n\n', '["gone"]\n\n'))
    with pytest.raises(Fail, match="gone is not in the repository"):
        listed(top, file)


def test_the_list_of_this_repository() -> None:
    found = figures.load()
    assert all(figures.version(f.inputs) and f.made_from for f in found)
    assert all((figures.paths.TOP / f.document).exists() for f in found)
