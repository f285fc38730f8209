# SPDX-License-Identifier: GPL-2.0
"""A queue that was rebased: by its user, by make tree onto another base, or both."""
from __future__ import annotations

import pytest
from virtual_silicon.errors import Fail

from .. import git
from ..patchqueue import mails, names, refresh, releases
from ..patchqueue import tree as trees
from .conftest import NUMBERS, Place

#: Patch and the line of kernel/numbers.c that it changes, in two parts
QUEUE = {"0001-kernel-first.patch": 4, "0100-kernel-a.patch": 11, "0101-kernel-b.patch": 18,
         "0102-kernel-c.patch": 25, "0103-kernel-d.patch": 32}
NEW = "kernel/added.c"


def patch(subject: str, line: int) -> str:
    context = [f" line {n}\n" for n in range(line - 3, line + 4)]
    context[3:4] = [f"-line {line}\n", f"+line {line} of {subject}\n"]
    return (f"From: A Writer <writer@example.org>\nSubject: kernel: {subject}\n\nWhy.\n---\n\n"
            "diff --git a/kernel/numbers.c b/kernel/numbers.c\n--- a/kernel/numbers.c\n"
            f"+++ b/kernel/numbers.c\n@@ -{line - 3},7 +{line - 3},7 @@\n" + "".join(context))


@pytest.fixture
def queue(place: Place) -> Place:
    for file in (place.top / "patches").iterdir():
        file.unlink()
    for name, line in QUEUE.items():
        (place.top / "patches" / name).write_text(patch(name[12:-6], line))
    (place.top / "patches/series").write_text("".join(f"{name}\n" for name in QUEUE))
    (place.top / "patches/cover-letter").write_text(
        "All\n\nOf it.\n\n[0001] One\n\n1.\n\n[0100] Two\n\n2.\n")
    place.make()
    return place


def rebase(place: Place, *todo: str) -> None:
    """git rebase -i with `todo`: words and the end of a subject, or "new"."""
    head = git.run("log", "--format=%H %s", "series/base..", repo=place.tree.path).splitlines()
    commits = {line.rsplit(" ")[-1]: line.split()[0] for line in head}
    add = f"exec echo new >{NEW} && git add {NEW} && git commit -q -m 'kernel: add a file'"
    lines = [add if word == "new" else f"{word.split()[0]} {commits[word.split()[1]]}"
             for word in todo]
    file = place.top.with_name("todo")
    file.write_text("".join(f"{line}\n" for line in lines))
    git.run("rebase", "--quiet", "-i", trees.BASE, repo=place.tree.path, env={
        "GIT_SEQUENCE_EDITOR": f"cp {file}", "GIT_EDITOR": "printf 'kernel: reworded\\n' >"})


def refreshed(place: Place) -> list[str]:
    """The names after make refresh, of which all that may follow must work."""
    content = git.run("rev-parse", "HEAD^{tree}", repo=place.tree.path)
    refresh.refresh(place.tree, place.series())
    place.make()
    assert git.run("rev-parse", "HEAD^{tree}", repo=place.tree.path) == content
    mails.write(place.tree, place.top / "patches", place.top.with_name("mails"))
    assert releases.check(place.series(), [place.base()]) == [("6.12.99", "")]
    found = [entry.patch for entry in place.series().entries]
    assert found == sorted(p.name for p in (place.top / "patches").glob("*.patch"))
    return found


def test_reworded_first_of_a_part_keeps_its_number(queue):
    rebase(queue, "pick first", "reword a", "pick b", "pick c", "pick d")
    names_ = list(QUEUE)
    assert refreshed(queue) == [names_[0], "0100-kernel-reworded.patch", *names_[2:]]


def test_reword_move_drop_and_add_at_once(queue):
    rebase(queue, "pick first", "reword a", "pick d", "pick b", "new")
    assert refreshed(queue) == ["0001-kernel-first.patch", "0100-kernel-reworded.patch",
                                "0103-kernel-d.patch", "0104-kernel-b.patch",
                                "0105-kernel-add-a-file.patch"]
    assert queue.series().entries[-1].files[0].path == NEW
    assert (queue.top / NEW).read_text() == "new\n"


def test_new_commit_takes_a_free_number_between(queue):
    rebase(queue, "pick first", "pick a", "new", "drop b", "pick c", "pick d")
    assert refreshed(queue)[2:] == ["0101-kernel-add-a-file.patch", *list(QUEUE)[3:]]


def test_dropped_first_of_a_part(queue):
    """The part of the cover letter begins with what is left of it."""
    rebase(queue, "pick first", "drop a", "pick b", "pick c", "pick d")
    assert [name[:4] for name in refreshed(queue)] == ["0001", "0101", "0102", "0103"]
    letter = (queue.top.with_name("mails") / "0100/0000-cover-letter.txt").read_text()
    assert "[PATCH 0/3] Two" in letter


def test_squashed_commits_are_the_first_of_them(queue):
    rebase(queue, "pick first", "pick a", "fixup b", "pick c", "pick d")
    names_ = list(QUEUE)
    assert refreshed(queue) == [*names_[:2], *names_[3:]]


@pytest.mark.parametrize("message", ["kernel: reworded", "kernel: d"])
def test_commit_without_a_note_is_known_by_what_it_does(queue, message):
    """As after git cherry-pick, which copies no note."""
    git.run("update-ref", "-d", f"refs/notes/{trees.NOTES}", repo=queue.tree.path)
    if message.endswith(" d"):
        file = queue.tree.path / "kernel/numbers.c"
        file.write_text(file.read_text().replace("line 32", "number 32"))
    queue.commit(message, "--amend", "--no-edit")
    assert [name[:4] for name in refreshed(queue)] == [name[:4] for name in QUEUE]


@pytest.mark.parametrize("before, parts, now", [
    ([1, 2, None], [], [1, 2, 3]),
    ([1, None, 5], [], [1, 2, 5]),
    ([None, 200, 201], [1, 200], [200, 201, 202]),
    ([1, None, 200], [1, 200], [1, 2, 200]),
    ([1, 200, None, 201, 203], [1, 200], [1, 200, 201, 202, 203]),
    ([1, 201, None, 202, 203], [1, 200], [1, 200, 201, 202, 203]),
    ([1, 202, 200, 201], [1, 200], [1, 200, 201, 202]),
    ([1, 201, 200], [1, 200], [1, 201, 202]),
    ([200, 1, 2], [1, 200], [1, 2, 3]),
    ([None, None], [], [1, 2]),
    ([], [1], []),
])
def test_numbers(before, parts, now):
    assert names.numbered(before, parts) == now


def test_full_part_is_told():
    with pytest.raises(Fail, match="0001 to 0002 has no free number"):
        names.numbered([1, None, 2], [1, 3])


def base_with(place: Place, line: int, text: str) -> None:
    """The next point release changes a line."""
    (place.source / "kernel/numbers.c").write_text(
        NUMBERS.replace(f"line {line}\n", f"{text}\n"))


def test_base_that_conflicts_is_merged_as_far_as_it_goes(queue):
    base_with(queue, 18, "line eighteen")
    with pytest.raises(Fail, match=r"stopped at 0101-kernel-b.patch \(kernel: b\):"
                                   r" conflicts in kernel/numbers.c:18: resolve"):
        queue.make()
    with pytest.raises(Fail, match="stopped at 0101"):      # and not lost by a second call
        queue.make()
    with pytest.raises(Fail, match="stopped at 0101"):
        refresh.refresh(queue.tree, queue.series())
    file = queue.tree.path / "kernel/numbers.c"
    head, _, rest = file.read_text().partition("<<<<<<< ")
    file.write_text(head + "line eighteen of b" + rest[rest.index("\n", rest.index(">>>>>>>")):])
    git.run("add", "--all", repo=queue.tree.path)
    git.run("rebase", "--continue", repo=queue.tree.path, env={"GIT_EDITOR": "true"})
    queue.make()                    # not taken back yet, and not to be overwritten
    assert "line eighteen of b" in file.read_text()
    before = queue.files()
    assert refreshed(queue) == list(QUEUE)
    assert [n for n, text in queue.files().items() if text != before[n]] == \
        ["patches/0101-kernel-b.patch"]


def test_base_that_merges_is_looked_at(queue):
    """Line 28 is context of the change of line 25: no patch applies, but git can merge."""
    base_with(queue, 28, "line twenty-eight")
    with pytest.raises(Fail, match="merged with the base without a conflict: .* make refresh"):
        queue.make()
    assert refreshed(queue) == list(QUEUE)
    assert " line twenty-eight\n" in (queue.top / "patches/0102-kernel-c.patch").read_text()


def test_rebase_that_is_given_up(queue):
    tip = queue.tree.ref(trees.TIP)
    base_with(queue, 18, "line eighteen")
    with pytest.raises(Fail, match="stopped at"):
        queue.make()
    git.run("rebase", "--abort", repo=queue.tree.path)
    assert queue.tree.ref("HEAD") == tip
    refresh.refresh(queue.tree, queue.series())
    with pytest.raises(Fail, match="stopped at"):
        queue.make()


def test_rebase_that_waits_for_its_user(queue):
    with pytest.raises(Fail):
        git.run("rebase", "--exec", "false", "series/base", repo=queue.tree.path)
    for call in (queue.make, lambda: refresh.refresh(queue.tree, queue.series())):
        with pytest.raises(Fail, match="being rebased and has stopped: go on, git -C .* --cont"):
            call()


def test_file_that_ours_replaces_is_merged(place):
    place.make()
    (place.source / "lib/old.c").write_text("int replaced;\nint fix;\n")
    with pytest.raises(Fail, match=r"stopped at 0002-lib.patch .*lib/old.c:1"):
        place.make()
    (place.tree.path / "lib/old.c").write_text("int ours;\nint fix;\n")
    git.run("add", "--all", repo=place.tree.path)
    git.run("rebase", "--continue", repo=place.tree.path, env={"GIT_EDITOR": "true"})
    refreshed(place)
    assert (place.top / "lib/old.c").read_text() == "int ours;\nint fix;\n"
    assert "replaces edeb834d7f96 acd68d9e3eaa" in (place.top / "patches/series").read_text()


def test_base_of_the_users_own(queue):
    """Refused until one says that it is meant."""
    base_with(queue, 40, "line forty")
    repo, path = queue.base().repo(), queue.tree.path
    git.run("fetch", "--quiet", repo, "base", repo=path)
    git.run("rebase", "--quiet", "--onto", "FETCH_HEAD", trees.BASE, repo=path)
    with pytest.raises(Fail, match="do not stand on refs/series/base; .* update-ref"):
        refresh.refresh(queue.tree, queue.series())
    git.run("update-ref", trees.ONTO, "FETCH_HEAD", repo=path)
    assert refreshed(queue) == list(QUEUE)


def test_file_of_the_repository_is_not_overwritten(queue):
    (queue.top / NEW).parent.mkdir()
    (queue.top / NEW).write_text("something else\n")
    rebase(queue, *(f"pick {word}" for word in ("first", "a", "b", "c", "d")), "new")
    with pytest.raises(Fail, match=f"{NEW} of a commit .* is a file of this repository"):
        refresh.refresh(queue.tree, queue.series())
    assert (queue.top / NEW).read_text() == "something else\n"
