# SPDX-License-Identifier: GPL-2.0
"""Patches as mails: read by git's own parser, written in one stable form.

The diff is kept without blob names and without a summary: both would change
with the base's point release, or repeat what the diff says.
"""
from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path

from virtual_silicon.errors import Fail

from .. import git


@dataclass(frozen=True)
class Mail:
    author: str          # Name <address>
    date: str            # RFC 2822, empty: that of the base
    subject: str
    body: str
    diff: str

    @property
    def message(self) -> str:
        return self.subject + ("\n\n" + self.body if self.body else "") + "\n"


def read(path: Path) -> Mail:
    return parse(path.read_bytes(), path)


def parse(text: bytes, path: Path) -> Mail:
    """The mail that is or would be in @path."""
    with tempfile.TemporaryDirectory() as tmp:
        msg, diff = Path(tmp, "msg"), Path(tmp, "diff")
        info = git.run("mailinfo", "-b", msg, diff, stdin=_with_blank_end(text))
        head = dict(re.findall(r"^(\w+): (.*)$", info, re.M))
        body = msg.read_text(errors="surrogateescape").strip("\n")
        patch = diff.read_text(errors="surrogateescape")
    for needed, where in (("Subject", "Subject:"), ("Email", "From: Name <address>")):
        if not head.get(needed):
            raise Fail(f"{path}: the mail has no '{where}' line")
    start = patch.find("diff --git ")
    return Mail(f"{head.get('Author', '')} <{head['Email']}>", head.get("Date", ""),
                head["Subject"], body, patch[start:] if start >= 0 else "")


def _with_blank_end(mail: bytes) -> bytes:
    """git wants an empty line after the headers, even if no body follows."""
    return mail if b"\n\n" in mail else mail.rstrip(b"\n") + b"\n\n"


def write(mail: Mail) -> str:
    date = f"Date: {mail.date}\n" if mail.date else ""
    body = mail.body + "\n" if mail.body else ""
    diff = "\n" + strip_blob_names(mail.diff) if mail.diff else ""
    return f"From: {mail.author}\n{date}Subject: {mail.subject}\n\n{body}---\n{diff}"


def strip_blob_names(diff: str) -> str:
    return re.sub(r"^index [0-9a-f]+\.\.[0-9a-f]+(?: \d+)?\n", "", diff, flags=re.M)


def same(a: Mail, b: Mail) -> bool:
    """Equal but for what depends on the point release: line numbers, blob
    names and the text that git repeats after a hunk's line numbers."""
    def core(mail: Mail) -> tuple[str, ...]:
        diff = re.sub(r"^@@ .*$", "@@", strip_blob_names(mail.diff), flags=re.M)
        # format-patch closes a mail with "-- " and git's version
        diff = re.sub(r"\n-- \n.*\Z", "\n", diff, flags=re.S)
        date = mail.date and parsedate_to_datetime(mail.date).isoformat()
        return (mail.author, date, mail.subject, mail.body.strip(), diff.strip("\n"))
    return core(a) == core(b)


def touched(diff: str) -> list[str]:
    """Paths a diff speaks of, on either side."""
    return [path for pair in re.findall(r"^diff --git a/(\S+) b/(\S+)", diff, re.M)
            for path in pair]
