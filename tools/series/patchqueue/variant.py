# SPDX-License-Identifier: GPL-2.0
"""What differs on a newer kernel: patches/7.3/series, and a diff for each commit in it.

	# comment
	0001-first.patch: what the kernel calls otherwise
	0002-second.patch left out: the kernel has it

All other commits are as for the default base. patches/7.3/0001-first.patch is a diff of this
repository: of patches/0001-first.patch and of whole files of the same commit. Of hunks it has
the line numbers only where the lines differ. So what is said once is changed once, and a change
that the newer kernel cannot take over as it is does not apply.
"""
from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from virtual_silicon.errors import Fail

from .. import git, proc
from .manifest import Entry, Series

_LINE = re.compile(r"(\d{4}-[^/\s]+\.patch)( left out)?: (\S.*)")
#: A reason that refresh writes for someone to replace.
OPEN = "?"


@dataclass(frozen=True)
class Difference:
    left_out: bool
    reason: str


@dataclass(frozen=True)
class Variant:
    """What differs, by the name of the patch; `head` are the comments above."""
    directory: Path
    head: list[str]
    rows: dict[str, Difference]

    def diff(self, patch: str) -> Path:
        return self.directory / patch


def load(directory: Path, common: Series) -> Variant:
    """No file: nothing differs."""
    file = directory / "series"
    lines = file.read_text().splitlines() if file.exists() else []
    rows: dict[str, Difference] = {}
    known = [entry.patch for entry in common.entries]
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if not found:
            raise Fail(f"{file}:{number}: '0001-name.patch: reason' or '0001-name.patch left out:"
                       " reason' is expected")
        if found[1] not in known:
            raise Fail(f"{file}:{number}: {common.file} has no {found[1]}")
        if found[1] in rows:
            raise Fail(f"{file}:{number}: {found[1]} is named twice")
        rows[found[1]] = Difference(bool(found[2]), found[3])
        if not found[2] and not (directory / found[1]).is_file():
            raise Fail(f"{file}:{number}: {directory / found[1]} does not exist")
    for diff in sorted(directory.glob("*.patch")):
        if diff.name not in rows or rows[diff.name].left_out:
            raise Fail(f"{diff}: {file} does not name it")
    return Variant(directory, [line for line in lines if line.startswith("#")], rows)


def dump(variant: Variant) -> bytes:
    rows = [f"{patch}{' left out' * row.left_out}: {row.reason}"
            for patch, row in sorted(variant.rows.items())]
    return "\n".join([*variant.head, "", *rows, ""]).encode()


def applied(common: Series, variant: Variant) -> Series:
    """The series for the newer kernel."""
    changed: dict[Path, bytes] = {}
    broken: dict[str, str] = {}
    entries = []
    for entry in common.entries:
        row = variant.rows.get(entry.patch)
        if row and row.left_out:
            continue
        entries.append(entry)
        if row:
            try:
                changed |= _patched(common, entry, variant.diff(entry.patch))
            except Fail as failure:
                broken[entry.patch] = str(failure)
    return replace(common, entries=entries, changed=changed, broken=broken)


def _names(common: Series, entry: Entry) -> dict[str, Path]:
    """The files of a commit, as diffs call them."""
    return {f"patches/{entry.patch}": common.patch_dir / entry.patch,
            **{file.path: common.files_root / file.path for file in entry.files}}


def _patched(common: Series, entry: Entry, diff: Path) -> dict[Path, bytes]:
    with tempfile.TemporaryDirectory() as tmp:
        names = _names(common, entry)
        for name, source in names.items():
            target = Path(tmp, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_seen(common, source, source.read_bytes()))
        # One line of context: what stands around is another's to change.
        done = git.call("apply", "--whitespace=nowarn", "-C1", "-", repo=Path(tmp),
                        stdin=diff.read_bytes(), check=False,
                        env={"GIT_CEILING_DIRECTORIES": str(Path(tmp).parent)})
        if done.returncode:
            said = done.stderr.decode(errors="replace")
            places = re.findall(r"^error: patch failed: (.+)$", said, re.M) or said.split("\n")[:1]
            raise Fail(f"{diff.parent.name}/{diff.name} is not made from what there is now:"
                       f" {', '.join(places)}")
        new = {path: Path(tmp, name).read_bytes() for name, path in names.items()}
    patch = common.patch_dir / entry.patch
    new[patch] = numbered(_text(patch.read_bytes()), _text(new[patch])).encode(
        errors="surrogateescape")
    return {path: text for path, text in new.items() if text != path.read_bytes()}


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


def _seen(common: Series, path: Path, data: bytes) -> bytes:
    """The content of a file as diffs see it."""
    return plain(_text(data)).encode(errors="surrogateescape") \
        if path.parent == common.patch_dir else data


def difference(common: Series, entry: Entry, new: dict[Path, bytes]) -> bytes:
    """What makes @new of the files of a commit, b'' if nothing does; the mail as by alike()."""
    with tempfile.TemporaryDirectory() as tmp:
        for name, source in _names(common, entry).items():
            old = _seen(common, source, source.read_bytes())
            for side, text in (("a", old), ("b", new.get(source, old))):
                target = Path(tmp, side, name)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(text)
        done = proc.capture(["git", "diff", "--no-index", "--no-prefix", "--no-color", "a", "b"],
                            cwd=Path(tmp), check=False, env=git.environment())
        if done.returncode > 1:
            raise Fail("git diff failed", done.stderr.decode(errors="replace"))
    return re.sub(rb"^index .*\n", b"", done.stdout, flags=re.M)


_HEAD = re.compile(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@.*$", re.M)
_PLAIN = "@@ @@"


def plain(text: str) -> str:
    """A mail without the line numbers of its hunks, which change with every other edit."""
    return _HEAD.sub(_PLAIN, text)


def alike(was: str, now: str, exact: bool = False) -> str:
    """The diff @now without the line numbers of hunks that the diff @was has; the others
    keep where they begin. With @exact all do."""
    before = {(file, body) for file, _, body in _hunks(was)}
    out, last = [], ""
    for file, head, body in _hunks(now):
        out.append(file * (file != last))
        last = file
        known = (file, body) in before and not exact
        out.append(_PLAIN if known else _HEAD.sub(r"@@ -\1 +\2 @@", head))
        out.append(body)
    return "".join(out)


def numbered(was: str, text: str) -> str:
    """The reverse: the mail @text with the line numbers of @was, and counts."""
    before = {(file, body): head for file, head, body in _hunks(was)}
    start = text.find("diff --git ")
    out, last = [text[:start]], ""
    for file, head, body in _hunks(text):
        out.append(file * (file != last))
        last = file
        if head == _PLAIN:
            head = before[file, body]
        elif found := re.fullmatch(r"@@ -(\d+) \+(\d+) @@", head):
            old, new = (sum(line[:1] in (" ", side) for line in body.splitlines())
                        for side in "-+")
            head = f"@@ -{found[1]},{old} +{found[2]},{new} @@"
        out += [head, body]
    return "".join(out) if start >= 0 else text


def _hunks(text: str) -> list[tuple[str, str, str]]:
    """Head of the file, head of the hunk, its lines; of a file without hunks the first alone."""
    found = []
    for section in re.split(r"^(?=diff --git )", text, flags=re.M)[1:]:
        file, *hunks = re.split(r"^(?=@@ )", section, flags=re.M)
        found += [(file, *_split(hunk)) for hunk in hunks] or [(file, "", "")]
    return found


def _split(hunk: str) -> tuple[str, str]:
    head, _, body = hunk.partition("\n")
    return head, "\n" + body
