# SPDX-License-Identifier: GPL-2.0
"""What the guest is to do, and what it answers (guest/guest.sh is the other end)."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

from .initramfs import job as job_archive


@dataclass
class Section:
    """Output and exit status of one step."""

    name: str
    lines: list[str] = field(default_factory=list)
    status: int | None = None	# None until it has ended

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@dataclass
class Job:
    """Steps run one after the other; each becomes a section of the answer."""

    steps: list[tuple[str, str]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)

    def step(self, name: str, shell: str) -> None:
        if not name or any(c.isspace() for c in name):
            raise ValueError(f"step name {name!r}")
        self.steps.append((name, shell))

    def script(self) -> bytes:
        """The job's status is that of the last step that failed, else 0."""
        lines = ["#!/bin/busybox sh", ". /usr/lib/vs/guest.sh", "job_status=0"]
        for name, shell in self.steps:
            lines += [f"do_step() {{ {shell}\n}}",
                      f"step {shlex.quote(name)} do_step || job_status=$?"]
        return ("\n".join(lines) + "\nexit $job_status\n").encode()

    def archive(self) -> bytes:
        return job_archive({"run": self.script(), **self.files})


class Answer:
    """Parser of what arrives at the second serial port, fed piece by piece."""

    def __init__(self) -> None:
        self.sections: dict[str, Section] = {}
        self.ready: float | None = None	# guest's uptime when init was done
        self.exit: int | None = None
        self._partial = ""
        self._open: Section | None = None

    def feed(self, text: str) -> list[Section]:
        """Sections that ended with this piece."""
        *lines, self._partial = (self._partial + text).split("\n")
        return [section for line in lines if (section := self._line(line.rstrip("\r")))]

    def _line(self, line: str) -> Section | None:
        if self._open is not None:
            return self._inside(self._open, line)
        word, _, rest = line.partition(" ")
        if word == "vs:begin":
            self._open = self.sections[rest] = Section(rest)
        elif word == "vs:ready":
            self.ready = float(rest)
        elif word == "vs:exit":
            self.exit = int(rest)
        return None

    def _inside(self, section: Section, line: str) -> Section | None:
        if not line.startswith(f"vs:end {section.name} "):
            section.lines.append(line)
            return None
        section.status = int(line.rsplit(" ", 1)[1])
        while section.lines and not section.lines[-1]:
            section.lines.pop()
        self._open = None
        return section
