# SPDX-License-Identifier: GPL-2.0
"""A series on a newer kernel: what differs is kept beside the patches, and nothing else."""
from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from virtual_silicon.errors import Fail

from .. import git, paths
from ..check import testrun
from ..fetch import aptget, base
from ..patchqueue import fixes, mails, manifest, port, port_table, refresh, releases, variant
from ..patchqueue import tree as trees
from .conftest import MAKEFILE, NUMBERS, OLD, Place, write

DIFF = "patches/7.3/0001-kernel.patch"


@dataclasses.dataclass
class Newer(Place):
    """The same repository; its base and its tree are those of 7.3."""
    default: Path = Path()

    def base(self) -> base.Base:
        return dataclasses.replace(base.from_path(self.source), version="7.3")

    def make(self) -> str:
        port.make(self.tree, self.base().repo(), self.series(), "7.3",
                  lambda: base.from_path(self.default).repo())
        return git.run("rev-parse", "HEAD", repo=self.tree.path)

    def refresh(self) -> None:
        port.take_back(self.tree, self.series(), "7.3")

    def resolve(self, name: str, text: str) -> None:
        (self.tree.path / name).write_text(text)
        git.run("add", "--all", repo=self.tree.path)
        git.run("am", "--continue", repo=self.tree.path)

    def of_version(self) -> manifest.Series:
        return port.of_version(self.series(), "7.3")


@pytest.fixture
def newer(place: Place, tmp_path: Path) -> Newer:
    """Line 30 has another name there, and all are one line further down."""
    source = tmp_path / "source-7.3"
    numbers = "line 0\n" + NUMBERS.replace("line 30\n", "LINE 30\n")
    write(source, Makefile=MAKEFILE.replace("6", "7", 1).replace("12", "3"),
          kernel__numbers_dot_c=numbers, lib__old_dot_c=OLD)
    return Newer(place.top, source, trees.Tree("linux", tmp_path / "build/7.3/linux", 1),
                 place.source)


@pytest.fixture
def ported(newer: Newer) -> Newer:
    with pytest.raises(Fail, match=r"stopped at 'kernel: change two lines': conflicts in"
                                   r" kernel/numbers.c:31: resolve"):
        newer.make()
    text = (newer.source / "kernel/numbers.c").read_text()
    newer.resolve("kernel/numbers.c", text.replace("line 5", "line five").replace("LINE 30",
                                                                                  "line thirty"))
    newer.refresh()
    file = newer.top / "patches/7.3/series"
    file.write_text(file.read_text().replace(": ?", ": LINE 30"))
    return newer


def test_port_keeps_what_differs_and_no_more(ported: Newer) -> None:
    assert (ported.top / "patches/7.3/series").read_text().split() == [
        "0001-kernel.patch:", "LINE", "30"]
    said = (ported.top / DIFF).read_text()
    assert "--- a/patches/0001-kernel.patch" in said
    assert "\n--line 30\n+-LINE 30\n" in said
    assert "line thirty" not in said.replace(" +line thirty", "")
    for file in ("lib/new.c", "lib/old.c", "kernel: change"):
        assert file not in said


def test_round_trip_changes_nothing(ported: Newer, capsys: pytest.CaptureFixture[str]) -> None:
    before = ported.files()
    head = ported.make()
    ported.refresh()
    assert ported.files() == before and "no difference" in capsys.readouterr().out
    assert ported.make() == head
    assert releases.check(ported.of_version(), [ported.base()]) == [("7.3.99", "")]


def test_default_base_is_left_alone(place: Place, ported: Newer) -> None:
    place.make()
    assert "line thirty\n" in (place.tree.path / "kernel/numbers.c").read_text()
    assert releases.check(place.series(), [place.base()]) == [("6.12.99", "")]


def test_change_for_both_is_made_once(place: Place, ported: Newer) -> None:
    """Message, whole file and what the patches have in common: the newer kernel has it, too."""
    place.make()
    for name, old, new in (("kernel/numbers.c", "line five", "line 5a"),
                           ("lib/new.c", "added", "amended")):
        file = place.tree.path / name
        file.write_text(file.read_text().replace(old, new))
        git.run("add", name, repo=place.tree.path)
        git.run("commit", "--quiet", "--fixup", ":/change two" if name[0] == "k" else ":/add a",
                repo=place.tree.path)
    git.run("rebase", "--quiet", "-i", "--autosquash", trees.BASE, repo=place.tree.path,
            env={"GIT_SEQUENCE_EDITOR": "true"})
    refresh.refresh(place.tree, place.series())
    ported.make()
    assert "line 5a\n" in (ported.tree.path / "kernel/numbers.c").read_text()
    assert (ported.tree.path / "lib/new.c").read_text() == "int amended;\n"


def test_reworded_commit_keeps_what_differs(place: Place, ported: Newer) -> None:
    place.make()
    git.run("checkout", "--quiet", "HEAD~1", repo=place.tree.path)
    place.commit("kernel: another subject", "--amend")
    git.run("rebase", "--quiet", "--onto", "HEAD", f"{trees.BRANCH}~1", trees.BRANCH,
            repo=place.tree.path)
    refresh.refresh(place.tree, place.series())
    ported.make()
    said = git.run("log", "--format=%s", repo=ported.tree.path)
    assert "kernel: another subject" in said
    assert (ported.top / "patches/7.3/0001-kernel-another-subject.patch").exists()


def test_change_that_does_not_go_with_what_differs_is_merged(ported: Newer) -> None:
    patch = ported.top / "patches/0001-kernel.patch"
    patch.write_text(patch.read_text().replace("-line 30\n+line thirty", "-line 30\n+line XXX"))
    with pytest.raises(Fail, match="stopped at 'kernel: change two lines': conflicts in"):
        ported.make()
    text = (ported.source / "kernel/numbers.c").read_text()
    ported.resolve("kernel/numbers.c", text.replace("line 5", "line five").replace("LINE 30",
                                                                                   "line XXX"))
    ported.refresh()
    assert "+line XXX" in ported.of_version().content(patch).decode()
    ported.make()


def test_merge_that_is_given_up_loses_nothing(newer: Newer) -> None:
    for _ in range(2):
        with pytest.raises(Fail, match="stopped at 'kernel: change two lines'"):
            newer.make()
        git.run("am", "--abort", repo=newer.tree.path)
    before = newer.files()
    with pytest.raises(Fail, match="does not apply|make tree BASE=7.3 first"):
        newer.refresh()
    assert newer.files() == before


def test_commit_that_the_newer_kernel_has(ported: Newer) -> None:
    git.run("reset", "--quiet", "--hard", "HEAD~1", repo=ported.tree.path)
    ported.refresh()
    assert "0002-lib.patch left out: ?" in (ported.top / "patches/7.3/series").read_text()
    assert (ported.top / "lib/new.c").exists()
    assert [e.patch for e in ported.of_version().entries] == ["0001-kernel.patch"]


def test_whole_file_that_differs(ported: Newer) -> None:
    (ported.tree.path / "lib/new.c").write_text("int added_otherwise;\n")
    ported.commit("lib: add a file and replace another\n\nTwo whole files.", "--amend")
    ported.refresh()
    assert (ported.top / "lib/new.c").read_text() == "int added;\n"
    assert "+int added_otherwise;" in (ported.top / "patches/7.3/0002-lib.patch").read_text()
    ported.make()


def test_mails_are_those_of_the_newer_kernel(ported: Newer, tmp_path: Path) -> None:
    written = mails.write(ported.tree, ported.top / "patches", tmp_path / "mails")
    assert "-LINE 30" in written[0].read_text()


def test_next_version_begins_with_the_nearest(ported: Newer) -> None:
    assert port.nearest(ported.top / "patches", "7.4").name == "7.3"
    assert port.nearest(ported.top / "patches", "7.10").name == "7.3"
    assert port.nearest(ported.top / "patches", "7.2").name == "7.2"


@pytest.mark.parametrize("line, reason", [
    ("0001-kernel.patch", ":1: '0001-name.patch: reason'"),
    ("0001-kernel.patch:", ":1: '0001-name.patch: reason'"),
    ("0009-none.patch: why", ":1: .* has no 0009-none.patch"),
    ("0001-kernel.patch: a\n0001-kernel.patch: b", ":2: .* is named twice"),
    ("0002-lib.patch: why", ":1: .*7.3/0002-lib.patch does not exist"),
    ("", "0001-kernel.patch: .*series does not name it"),
])
def test_errors_name_the_line(ported: Newer, line: str, reason: str) -> None:
    (ported.top / "patches/7.3/series").write_text(line + "\n")
    with pytest.raises(Fail, match=reason):
        ported.of_version()


def table(place: Newer) -> list[port_table.Row]:
    said: list[str] = []
    rows = port_table.table(place.base().repo(), base.from_path(place.default).repo(),
                            place.of_version(), place.series(), said.append)
    assert said == [str(row) for row in rows]
    return rows


def test_table_tells_what_conflicts_and_what_is_gone(newer: Newer) -> None:
    write(newer.default, include__helper_dot_h="void old_helper(void); /* for lib */\n")
    (newer.top / "lib/new.c").write_text("void f(void) { old_helper(); }\n")
    first, second = table(newer)
    assert (first.result, first.where) == ("conflict", "kernel/numbers.c: 1")
    assert (second.result, second.where, second.gone) == ("applies", "", "old_helper")


def test_table_of_a_kernel_that_is_ported(ported: Newer) -> None:
    assert [row.result for row in table(ported)] == ["differs", "applies"]
    git.run("reset", "--quiet", "--hard", "HEAD~1", repo=ported.tree.path)
    ported.refresh()
    assert [row.result for row in table(ported)] == ["differs", "left out"]


FIX = """\
From: A Writer <writer@example.org>
Subject: lib: fix the old file

---

diff --git a/lib/old.c b/lib/old.c
--- a/lib/old.c
+++ b/lib/old.c
@@ -1 +1 @@
-int replaced;
+int fixed;
"""


@pytest.fixture
def fixed(ported: Newer) -> Newer:
    write(ported.top / "patches/7.3/fixes", series="0001-kernel.patch\n0002-lib-fix.patch\n")
    (ported.top / "patches/7.3/fixes/0002-lib-fix.patch").write_text(FIX)
    ported.make()
    return ported


def write_fixes(place: Newer) -> list[Path]:
    return fixes.write(place.tree, place.top / "patches/7.3/fixes", place.of_version(),
                       place.top.with_name("mails"))


def test_fixes_are_mails_of_their_own(fixed: Newer) -> None:
    first, second = write_fixes(fixed)
    assert "-LINE 30" in first.read_text() and "+int fixed;" in second.read_text()
    other = fixed.top.with_name("other")
    git.run("clone", "--quiet", fixed.tree.path, other)
    git.run("checkout", "--quiet", "origin/series~2", repo=other)
    git.run("am", "--quiet", first, second, repo=other)


def test_fix_that_needs_another_is_refused(fixed: Newer) -> None:
    file = fixed.top / "patches/7.3/fixes/0003-lib-more.patch"
    file.write_text(FIX.replace("int fixed", "int more").replace("int replaced", "int fixed"))
    write(file.parent, series="0002-lib-fix.patch\n0003-lib-more.patch\n")
    with pytest.raises(Fail, match="does not apply alone: 0003-lib-more.patch"):
        write_fixes(fixed)


@pytest.mark.parametrize("name", ["0002-lib.patch", "0009-none.patch"])
def test_fix_is_a_patch_without_whole_files(fixed: Newer, name: str) -> None:
    write(fixed.top / "patches/7.3/fixes", series=f"{name}\n")
    with pytest.raises(Fail, match=f"{name} is neither in .* nor a patch of the series without"):
        write_fixes(fixed)


def test_own_fixes_are_short() -> None:
    """Of this repository's: fewer than 300 lines of diff, signed off."""
    common = manifest.load(paths.PATCHES, paths.TOP)
    for file in paths.PATCHES.glob("*/fixes/series"):
        found = fixes.load(file.parent, port.of_version(common, file.parent.parent.name))
        for letter in map(found.letter, found.entries):
            assert letter.diff.count("\n") < 300, letter.subject
            assert "Signed-off-by: " in letter.body


def test_reasons_are_given() -> None:
    """Of this repository's own series."""
    common = manifest.load(paths.PATCHES, paths.TOP)
    for directory in paths.PATCHES.glob("*/"):
        found = variant.load(directory, common)
        assert found.rows and all(row.reason != variant.OPEN for row in found.rows.values())
        assert not variant.applied(common, found).broken


def test_newer_kernel_that_is_not_on_offer_is_told(
        ported: Newer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(base, "on_offer", lambda version: [])
    monkeypatch.setattr(aptget, "versions", lambda package: ["7.2", "6.12"])
    assert testrun.newer_releases(ported.series(), "7.3").skipped == 1
    assert "linux-source-7.3 is not on offer; there are 7.2, 6.12" in capsys.readouterr().out


def test_newer_kernel_that_the_series_does_not_fit_fails(
        ported: Newer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "on_offer", lambda version: [ported.base()])
    assert testrun.newer_releases(ported.series(), "7.3").passed == 1
    patch = ported.top / "patches/0001-kernel.patch"
    patch.write_text(patch.read_text().replace("-line 30\n+line thirty", "-line 30\n+line XXX"))
    count = testrun.newer_releases(ported.series(), "7.3")
    assert not count.passed and "7.3/0001-kernel.patch is not made from" in count.failures[0]
