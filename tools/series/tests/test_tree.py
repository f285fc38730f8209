# SPDX-License-Identifier: GPL-2.0
"""make tree: commits, strictness, nothing lost, nothing half-made."""
from __future__ import annotations

import os

import pytest
from virtual_silicon.errors import Fail

from .. import git
from ..patchqueue import tree as trees
from .conftest import NUMBERS, PATCH


def log(place, what: str) -> list[str]:
    return git.run("log", "--reverse", f"--format={what}", repo=place.tree.path).splitlines()


def test_base_and_one_commit_per_patch(place):
    place.make()
    assert log(place, "%s")[1:] == ["kernel: change two lines",
                                    "lib: add a file and replace another"]
    assert log(place, "%an <%ae>")[1:] == ["A Writer <writer@example.org>",
                                           "B Writer <b@example.org>"]
    assert log(place, "%aI")[2] == "2026-01-05T10:00:00+01:00"
    assert (place.tree.path / "lib/old.c").read_text() == "int ours;\n"
    assert (place.tree.path / "link").is_symlink()
    assert trees.edits(place.tree) == ""


def test_same_inputs_same_commit(place, tmp_path):
    first = place.make()
    other = trees.Tree("linux", tmp_path / "other/linux", 1)
    assert trees.make(other, place.base().repo(), place.series()) == first


def test_second_call_touches_nothing(place):
    place.make()
    before = {p: p.stat().st_mtime_ns for p in place.tree.path.rglob("*.c")}
    place.make()
    assert {p: p.stat().st_mtime_ns for p in before} == before


def test_change_touches_only_its_files(place):
    place.make()
    os.utime(place.tree.path / "kernel/numbers.c", (1, 1))
    (place.top / "lib/new.c").write_text("int changed;\n")
    place.make()
    assert (place.tree.path / "lib/new.c").read_text() == "int changed;\n"
    assert (place.tree.path / "kernel/numbers.c").stat().st_mtime == 1


def test_offset_is_taken(place):
    """A point release that moved the lines is no reason to refuse."""
    (place.source / "kernel/numbers.c").write_text("new first line\n" + NUMBERS)
    place.make()
    assert "line thirty\n" in (place.tree.path / "kernel/numbers.c").read_text()


def test_fuzz_is_refused_and_leaves_no_tree(place):
    """One context line differs: patch(1) would take it with fuzz 1."""
    (place.source / "kernel/numbers.c").write_text(NUMBERS.replace("line 33\n", "line 33!\n"))
    with pytest.raises(Fail) as error:
        place.make()
    said = str(error.value)
    assert "0001-kernel.patch does not apply" in said
    assert "kernel/numbers.c:27" in said
    assert not place.tree.path.exists()
    assert list(place.tree.path.parent.iterdir()) == []


def test_failing_patch_leaves_the_old_tree(place):
    tip = place.make()
    (place.top / "patches/0001-kernel.patch").write_text(PATCH.replace(" line 4\n", " line four\n"))
    with pytest.raises(Fail, match="kernel/numbers.c:2"):
        place.make()
    assert place.tree.ref("HEAD") == tip and trees.edits(place.tree) == ""


def test_patch_of_an_absent_file(place):
    (place.source / "kernel/numbers.c").rename(place.source / "kernel/other.c")
    with pytest.raises(Fail, match="0001-kernel.patch does not apply: kernel/numbers.c: "):
        place.make()


def test_unknown_version_of_a_replaced_file(place):
    (place.source / "lib/old.c").write_text("int replaced;\nint fix;\n")
    with pytest.raises(Fail, match="lib/old.c has changed in this base: .* add acd68d9e3eaa to"):
        place.make()
    assert not place.tree.path.exists()


def test_replaces_needs_something_to_replace(place):
    (place.source / "lib/old.c").unlink()
    with pytest.raises(Fail, match="said to replace a base file"):
        place.make()


def test_whole_file_over_a_base_file_must_say_so(place):
    manifest = place.top / "patches/series"
    manifest.write_text(manifest.read_text().replace(" replaces edeb834d7f96", ""))
    with pytest.raises(Fail, match="the base has lib/old.c already"):
        place.make()


def test_uncommitted_edit_is_not_overwritten(place):
    place.make()
    (place.tree.path / "kernel/numbers.c").write_text("mine\n")
    place.make()                                # nothing to do: nothing lost
    (place.top / "lib/new.c").write_text("int changed;\n")
    with pytest.raises(Fail, match=r"uncommitted changes \(kernel/numbers.c\)"):
        place.make()
    assert (place.tree.path / "kernel/numbers.c").read_text() == "mine\n"


@pytest.mark.parametrize("options", [[], ["--amend"]])
def test_commit_is_not_dropped(place, options):
    place.make()
    (place.tree.path / "lib/new.c").write_text("int mine;\n")
    place.commit("mine", *options)
    (place.top / "lib/new.c").write_text("int changed;\n")
    with pytest.raises(Fail, match="1 commit that the repository lacks"):
        place.make()


def test_interrupted_move_is_finished(place):
    place.make()
    (place.top / "lib/new.c").write_text("int changed;\n")
    base, tip = place.tree.ref(trees.BASE), trees.tip_of(
        place.tree, place.tree.ref(trees.BASE), place.series())
    (place.tree.git_dir / "x86-dvfs.moving").write_text(f"{base} {tip}\n")
    (place.tree.git_dir / "index.lock").touch()
    (place.tree.path / "lib/new.c").write_text("half wri")
    assert place.make() == tip
    assert (place.tree.path / "lib/new.c").read_text() == "int changed;\n"


def test_other_base_moves_the_tree(place):
    place.make()
    (place.source / "README").write_text("next point release\n")
    place.make()
    assert (place.tree.path / "README").read_text() == "next point release\n"
    assert len(log(place, "%h")) == 3


def test_foreign_directory_is_left_alone(place):
    place.tree.path.mkdir(parents=True)
    (place.tree.path / "thesis.tex").touch()
    with pytest.raises(Fail, match="not a tree of ours"):
        place.make()
    assert (place.tree.path / "thesis.tex").exists()


def test_mail_without_author(place):
    (place.top / "patches/0002-lib.patch").write_text("Subject: lib: no author\n\n---\n")
    with pytest.raises(Fail, match="0002-lib.patch: the mail has no 'From:"):
        place.make()


def test_repository_of_another_user(tmp_path):
    """As in a container, whose root sees the repository of a user."""
    git.run("init", "--quiet", tmp_path)
    other = {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
    assert git.run("ls-files", repo=tmp_path, env=other) == ""
