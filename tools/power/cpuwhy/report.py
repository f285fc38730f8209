# SPDX-License-Identifier: GPL-2.0
"""Findings for a terminal, and as data: by the standard library alone."""
from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable
from typing import Any

from .case import Finding
from .explain import Explanation
from .texts import Where, shown

COLOURS = {"slow": 34, "hot": 31, "awake": 33, "note": 2}
#: Where the text of a finding begins.
INDENT = 6
#: Characters of a line that shows something
LONGEST = 160
#: Of the kernel's command line only this is shown: names of disks and hosts stand there, too.
COMMAND_LINE = re.compile(r"(?:.*?\b(?:command line|cmdline)\b)?[:= ]*", re.I)
PARAMETER = re.compile(
    r"(?:intel_|amd_|acpi|processor|idle|cpu|nohz|highres|isolcpus|irqaffinity|rcu_|mitigations|"
    r"tsc|clocksource|hpet|nosmt|maxcpus|nr_cpus|threadirqs|preempt|skew_tick|pcie_aspm|max_cstate)"
    r"[\w.]*(?:=[\w,.:-]*)?")


def said(line: Where) -> str:
    """What a line says, as it may be shown."""
    text = " ".join(line.text.split())
    if re.search(r"\bBOOT_IMAGE=|\b(?:command line|cmdline)\b", f"{line.file} {text}", re.I):
        head = COMMAND_LINE.match(text)
        words = text[head.end() if head else 0:].split()
        kept = [word for word in words if PARAMETER.fullmatch(word)]
        text = (head[0] if head else "") + " ".join(["..."] * (len(kept) < len(words)) + kept)
    return shown(text)


def _width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 80


def _coloured(text: str, code: int) -> str:
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{code}m{text}\x1b[0m"


def wrapped(text: str, indent: int = 0, hang: int = 0) -> None:
    """A word that is wider than the terminal, such as a path, stays whole."""
    print("\n".join(textwrap.wrap(shown(text), _width(), initial_indent=" " * indent,
                                  subsequent_indent=" " * hang, break_long_words=False,
                                  break_on_hyphens=False)))


def _line(line: Where, alone: bool) -> None:
    """Where it stands and what stands there; @alone: there is one file, so it needs no name."""
    place = f"line {line.line}" if alone and line.line else shown(str(line))
    text = textwrap.shorten(said(line), LONGEST)
    for part in textwrap.wrap(f"{place}: {text}", max(_width() - INDENT, 30),
                              subsequent_indent="  ", break_on_hyphens=False):
        print(" " * INDENT + _coloured(part, 2))


def finding(found: Finding, lines: bool, alone: bool = False) -> None:
    first, *more = textwrap.wrap(shown(f"{found.about}: {found.says}"), max(_width() - INDENT, 30),
                                 break_on_hyphens=False)
    says = first[len(found.about):] if first.startswith(found.about) else first
    title = found.about if first.startswith(found.about) else ""
    print(f"{_coloured(f'{found.effect:5}', COLOURS[found.effect])} {_coloured(title, 1)}{says}")
    for line in more:
        print(" " * INDENT + line)
    for where in found.lines if lines else ():
        _line(where, alone)
    if found.remedy:        # commands are to be copied, so they are not broken
        print(f"{' ' * INDENT}{_coloured(found.remedy, 2)}")


def _notes(found: Iterable[Finding], lines: bool, alone: bool = False) -> None:
    for note in found:
        wrapped(f"{note.about}: {note.says}", 0, 2)
        for where in note.lines if lines else ():
            _line(where, alone)


def _line_data(line: Where) -> dict[str, Any]:
    return {"file": shown(line.file), "line": line.line, "text": said(line)}


def as_data(found: Finding) -> dict[str, Any]:
    data: dict[str, Any] = {"kind": found.kind, "about": found.about, "says": shown(found.says),
                            "effect": found.effect, "when": found.when, "remedy": found.remedy,
                            "lines": [_line_data(line) for line in found.lines]}
    if found.mhz:
        data["mhz"] = round(found.mhz, 1)
    return data


def doctor(found: list[Finding], unseen: list[str], data: bool) -> None:
    wrong = [finding for finding in found if finding.effect != "note"]
    notes = [finding for finding in found if finding.effect == "note"]
    if data:
        print(json.dumps({"findings": list(map(as_data, wrong)),
                          "notes": list(map(as_data, notes)), "not_looked_at": unseen}, indent=1))
        return
    for one in wrong:
        finding(one, False)
    if not wrong:
        wrapped("nothing is set up badly, as far as sysfs, proc and the kernel's log tell")
    _notes(notes, False)
    if unseen:
        wrapped("could not be looked at: " + ", ".join(unseen), 0, 2)


def explain(what: Explanation, data: bool) -> None:
    if data:
        print(json.dumps({
            "machine": shown(what.machine), "read": list(map(shown, what.read)),
            "not_read": list(map(shown, what.unread)),
            "doubts": list(map(shown, what.doubts)), "limiters": list(map(as_data, what.limiters)),
            "earlier": list(map(as_data, what.earlier)),
            "verdict": "" if what.limiters else what.verdict,
            "notes": list(map(as_data, what.notes)),
            "missing": [{"what": name, "command": command} for name, command in what.missing]},
            indent=1))
        return
    for text in [what.machine] * bool(what.machine) + what.read:
        wrapped(text, 0, 2)
    for text in what.unread:
        wrapped(f"not read: {text}", 0, 2)
    for text in what.doubts:
        wrapped(f"doubtful: {text}", 0, 2)
    print()
    alone = len({line.file for one in what.limiters + what.earlier + what.notes
                 for line in one.lines}) == 1
    # Is there a loss; then what causes it; then what is often mistaken for a cause.
    clock = [note for note in what.notes if note.about == "clock"]
    _notes(clock, True, alone)
    if clock:
        print()
    for one in what.limiters:
        finding(one, True, alone)
    if not what.limiters:
        wrapped(what.verdict)
    if others := [note for note in what.notes if note.about != "clock"]:
        print()
        _notes(others, True, alone)
    if what.earlier:
        print()
        wrapped("Earlier, not now:")
        for one in what.earlier:
            finding(one, True, alone)
    if what.missing:
        print()
        wrapped("To be sure, this is missing:" if what.limiters else "This is missing:")
        for name, command in what.missing:
            wrapped(name, 2, 4)
            print(f"      {_coloured(command, 2)}")
