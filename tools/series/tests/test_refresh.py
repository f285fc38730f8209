# SPDX-License-Identifier: GPL-2.0
"""make refresh and make series: from the tree back, and out by mail."""
from __future__ import annotations

import pytest
from virtual_silicon.errors import Fail

from .. import git
from ..patchqueue import mails, refresh
from ..patchqueue import tree as trees
from .conftest import NUMBERS


def take_back(place) -> None:
    refresh.refresh(place.tree, place.series())


def edit(place, name: str, old: str, new: str) -> None:
    path = place.tree.path / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_round_trip_on_another_release_changes_nothing(place):
    (place.source / "kernel/numbers.c").write_text("a line more\n" + NUMBERS)
    place.make()
    before = place.files()
    take_back(place)
    assert place.files() == before


def test_amended_whole_file_goes_to_its_place_only(place):
    place.make()
    before = place.files()
    edit(place, "lib/new.c", "added", "amended")
    place.commit("lib: add a file and replace another\n\nTwo whole files.", "--amend")
    take_back(place)
    after = place.files()
    assert {n for n in after if after[n] != before.get(n)} == {"lib/new.c"}
    assert after["lib/new.c"] == b"int amended;\n"
    assert trees.edits(place.tree) == ""


def test_new_commit_becomes_a_patch_and_survives_the_next_tree(place):
    place.make()
    edit(place, "kernel/numbers.c", "line 20\n", "line twenty\n")
    (place.tree.path / "lib/third.c").write_text("int third;\n")
    place.commit("kernel: change one more\n\nFor a reason.")
    head = git.run("rev-parse", "HEAD^{tree}", repo=place.tree.path)
    take_back(place)
    assert (place.top / "patches/0003-kernel-change-one-more.patch").exists()
    assert (place.top / "lib/third.c").read_text() == "int third;\n"
    assert "# two files\n" in (place.top / "patches/series").read_text()
    tip = place.make()
    assert git.run("rev-parse", f"{tip}^{{tree}}", repo=place.tree.path) == head
    before = place.files()
    take_back(place)
    assert place.files() == before


def test_new_words_of_a_message_are_taken_back(place):
    """Subject and diff stay."""
    place.make()
    place.commit("lib: add a file and replace another\n\nBetter words.", "--amend")
    take_back(place)
    assert "\n\nBetter words.\n---\n" in (place.top / "patches/0002-lib.patch").read_text()


def test_program_stays_one(place):
    place.make()
    program = place.tree.path / "lib/run.sh"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    place.commit("lib: add a program")
    take_back(place)
    assert (place.top / "lib/run.sh").stat().st_mode & 0o777 == 0o755


def test_edit_of_a_replaced_file_stays_whole(place):
    place.make()
    edit(place, "lib/old.c", "ours", "ours_too")
    place.commit("more of it", "--amend")
    take_back(place)
    assert (place.top / "lib/old.c").read_text() == "int ours_too;\n"
    assert "lib/old.c" not in (place.top / "patches/0002-more-of-it.patch").read_text()
    assert not (place.top / "patches/0002-lib.patch").exists()


def test_later_commit_on_a_whole_file_is_folded(place, capsys):
    place.make()
    edit(place, "lib/new.c", "added", "later")
    place.commit("lib: touch it again")
    take_back(place)
    assert "folded" in capsys.readouterr().out
    assert (place.top / "lib/new.c").read_text() == "int later;\n"
    assert [e.patch for e in place.series().entries] == ["0001-kernel.patch", "0002-lib.patch"]


def test_dropped_commit_takes_its_files_along(place):
    place.make()
    git.run("reset", "--quiet", "--hard", "HEAD~1", repo=place.tree.path)
    take_back(place)
    assert [e.patch for e in place.series().entries] == ["0001-kernel.patch"]
    assert not (place.top / "patches/0002-lib.patch").exists()
    assert not (place.top / "lib/new.c").exists()


def test_patch_of_the_users_making_is_left_as_written(place):
    """Blob names, a summary and a signature are no difference."""
    patch = place.top / "patches/0001-kernel.patch"
    text = patch.read_text().replace("---\n\ndiff", "---\n kernel/numbers.c | 4 ++--\n\ndiff")
    text = text.replace("numbers.c\n--- a/", "numbers.c\nindex 1234567..89abcde 100644\n--- a/")
    patch.write_text(text + "-- \n2.39.5\n")
    place.make()
    before = place.files()
    take_back(place)
    assert place.files() == before


def test_uncommitted_changes_are_refused(place):
    place.make()
    edit(place, "lib/new.c", "added", "mine")
    with pytest.raises(Fail, match=r"uncommitted changes \(lib/new.c\): commit"):
        take_back(place)


def test_changes_of_the_repository_are_not_undone(place):
    place.make()
    (place.top / "lib/new.c").write_text("int newer;\n")
    with pytest.raises(Fail, match="series has changed since"):
        take_back(place)
    assert (place.top / "lib/new.c").read_text() == "int newer;\n"


def test_merge_is_refused(place):
    place.make()
    git.run("checkout", "--quiet", "-b", "side", "HEAD~1", repo=place.tree.path)
    (place.tree.path / "side.c").touch()
    place.commit("side")
    git.run("checkout", "--quiet", trees.BRANCH, repo=place.tree.path)
    git.run("merge", "--quiet", "--no-ff", "-m", "merge", "side", repo=place.tree.path)
    with pytest.raises(Fail, match="is a merge"):
        take_back(place)


def taken_by_git_am(place, mails):
    """A clone that has them on the base."""
    other = place.top.with_name("other")
    git.run("clone", "--quiet", place.tree.path, other)
    git.run("checkout", "--quiet", "origin/series~2", repo=other)
    git.run("am", "--quiet", *mails, repo=other)
    return other


def test_mails_are_taken_by_git_am(place, tmp_path):
    place.make()
    (place.top / "patches/cover-letter").write_text("Title of all\n\nWhat it is for.\n")
    written = mails.write(place.tree, place.top / "patches", tmp_path / "mails")
    assert [m.name for m in written] == ["0001-kernel-change-two-lines.patch",
                                         "0002-lib-add-a-file-and-replace-another.patch"]
    cover = (tmp_path / "mails/0000-cover-letter.txt").read_text()
    assert "[PATCH 0/2] Title of all" in cover and "What it is for." in cover
    other = taken_by_git_am(place, written)
    assert git.run("diff", "origin/series", "HEAD", repo=other) == ""


def test_parts_apply_to_the_base_alone(place, tmp_path):
    place.make()
    (place.top / "patches/cover-letter").write_text(
        "Title\n\nOf all.\n\n[0001] The first\n\nOne.\n\n"
        "[0002] The second\n\nTwo.\n\n[]\n\nThe end.\n")
    mails.write(place.tree, place.top / "patches", tmp_path / "mails")
    whole = (tmp_path / "mails/0000-cover-letter.txt").read_text()
    assert "1 to 1, The first." in whole and "2 to 2, The second." in whole
    second = tmp_path / "mails/0002"
    letter = (second / "0000-cover-letter.txt").read_text()
    assert "[PATCH 0/1] The second" in letter and "Two." in letter and "The end." in letter
    assert "One." not in letter
    other = taken_by_git_am(place, sorted(second.glob("*.patch")))
    assert (git.run("show", "--stat", "--format=%an %s", "HEAD", repo=other)
            == git.run("show", "--stat", "--format=%an %s", "origin/series", repo=other))


def test_part_that_needs_another_is_refused(place, tmp_path):
    place.make()
    (place.tree.path / "kernel/numbers.c").write_text("nothing of it\n")
    place.commit("kernel: on top")
    take_back(place)
    place.make()
    last = sorted(p.name for p in (place.top / "patches").glob("*.patch"))[-1]
    (place.top / "patches/cover-letter").write_text(f"T\n\n[{last[:4]}] The last\n\nIt.\n")
    with pytest.raises(Fail, match="does not apply alone: kernel: on top"):
        mails.write(place.tree, place.top / "patches", tmp_path / "mails")


def test_part_names_a_patch(place, tmp_path):
    place.make()
    (place.top / "patches/cover-letter").write_text("Title\n\n[0009] None\n\nNo.\n")
    with pytest.raises(Fail, match=r"\[0009\]: the part has no patch"):
        mails.write(place.tree, place.top / "patches", tmp_path / "mails")


def test_empty_series_has_no_mails(place, tmp_path):
    (place.top / "patches/series").write_text("# nothing\n")
    place.make()
    with pytest.raises(Fail, match="is empty"):
        mails.write(place.tree, place.top / "patches", tmp_path / "mails")
