# SPDX-License-Identifier: GPL-2.0
"""Runs guests in deterministic time, several at once, and keeps what they answered."""

from __future__ import annotations

import hashlib
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from ..errors import GuestError
from ..machine import faults, qapi, ssdt
from ..machine.machine import Machine
from . import boot
from .job import Job

#: Beyond what the longest takes on a loaded host.
_LIMITS = boot.Limits(boot=900, silence=7200, overall=14400)


@dataclass(frozen=True)
class Guest:
    """One start. @name: of the directory for what it leaves; @cost: how long it takes,
    beside the others, for an estimate."""

    name: str
    machine: Machine
    cpus: int
    kernel: Path
    job: Job
    append: str = ""
    faults: str = ""	# as in a file of faults
    trace: bool = False
    cost: float = 1


#: How many of all have ended, the last one of them, whether it was started, and the cost of
#: those that have not ended.
Tell = Callable[[int, int, Guest, bool, float], None]


class Bar:
    """A bar on a terminal, a line per guest elsewhere."""

    WIDTH = 30

    def __init__(self, stream: TextIO | None) -> None:
        self._begin, self._cost, self._stream = time.monotonic(), 0.0, stream

    def __call__(self, number: int, total: int, guest: Guest, measured: bool,
                 left: float) -> None:
        seconds = time.monotonic() - self._begin
        self._cost += measured * guest.cost
        if not self._stream:
            return
        text = f"{number} of {total} guests, {seconds / 60:.0f} min"
        if self._cost and left:
            text += f", about {seconds / self._cost * left / 60:.0f} more"
        if self._stream.isatty():
            full = self.WIDTH * number // total
            print(f"\r[{'#' * full}{'.' * (self.WIDTH - full)}] {text}  ",
                  end="\n" if number == total else "", file=self._stream, flush=True)
        else:
            print(f"  {text}: {guest.name}{'' if measured else ' (kept)'}",
                  file=self._stream, flush=True)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Guests:
    """@archive: what they have in common."""

    def __init__(self, out: Path, archive: Path, qemu: Path) -> None:
        self.out, self._archive, self._qemu = out, archive, qemu
        self._digests: dict[Path, str] = {}

    def digest(self, path: Path) -> str:
        """As it was when it was first asked for."""
        if path not in self._digests:
            self._digests[path] = _digest(path)
        return self._digests[path]

    def config(self, guest: Guest) -> boot.Config:
        out = self.out / guest.name
        return boot.Config(
            machine=guest.machine, cpus=guest.cpus, kernel=guest.kernel, qemu=self._qemu,
            initramfs=self._archive, out=out, job=guest.job.archive(), mode="deterministic",
            append=guest.append, trace=guest.trace, compact=True,
            faults=out / "faults" if guest.faults else None, limits=_LIMITS)

    def key(self, guest: Guest) -> str:
        """Of everything that determines what the guest will answer."""
        c = self.config(guest)
        parts = (*(self.digest(path) for path in (c.kernel, c.qemu, c.initramfs)),
                 boot.kernel_command_line(c), qapi.option(
                     c.machine, c.cpus, [faults.parse(line) for line in
                                         guest.faults.splitlines()], time=c.mode),
                 ssdt.source(c.machine, c.cpus), str(boot.cpu_options(c.machine, c.cpus, c.mode)),
                 guest.job.script().decode(), *["trace"] * guest.trace,
                 *(f"{name} {hashlib.sha256(data).hexdigest()}"
                   for name, data in guest.job.files.items()))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def kept(self, guest: Guest) -> boot.Result | None:
        """What the same start answered before."""
        out = self.out / guest.name
        found = boot.kept(out, self.key(guest))
        if found and guest.trace:
            found.trace = out / "trace.gz"
        return found

    def answer(self, guest: Guest) -> boot.Result:
        """What was kept, else of a boot."""
        if found := self.kept(guest):
            return found
        c, key = self.config(guest), self.key(guest)
        c.out.mkdir(parents=True, exist_ok=True)
        (c.out / "key").unlink(missing_ok=True)
        if c.faults:
            c.faults.write_text(guest.faults + "\n", encoding="ascii")
        result = boot.run(c)
        if any(_digest(path) != self.digest(path) for path in (c.kernel, c.qemu, c.initramfs)):
            raise GuestError("kernel, emulator or guest were built anew meanwhile")
        (c.out / "key").write_text(key, encoding="ascii")
        return result

    def outcomes(self, todo: Sequence[Guest], jobs: int, tell: Tell,
                 kept_only: bool = False) -> list[boot.Result | GuestError | None]:
        """In the order of @todo, in which those that are not kept are started."""
        found: list[boot.Result | GuestError | None] = [self.kept(guest) for guest in todo]
        start = [n for n, answer in enumerate(found) if not (answer or kept_only)]
        lock, number, left = threading.Lock(), 0, sum(todo[n].cost for n in start)

        def one(n: int) -> None:
            try:
                found[n] = self.answer(todo[n])
            except GuestError as error:
                found[n] = error
            with lock:
                ended(n)

        def ended(n: int) -> None:
            nonlocal number, left
            number, left = number + 1, left - todo[n].cost * (n in start)
            tell(number, len(todo), todo[n], n in start, left)
        for n in range(len(todo)):
            if n not in start:
                ended(n)
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(one, start))
        return found

    def answers(self, todo: Sequence[Guest], jobs: int) -> list[boot.Result]:
        """If guests fail, the error names them, once the others have ended."""
        found = self.outcomes(todo, jobs, Bar(sys.stderr))
        failed = [f"{guest.name}: {answer} ({self.out / guest.name}/console.log)"
                  for guest, answer in zip(todo, found) if isinstance(answer, GuestError)]
        if failed:
            raise GuestError(f"{len(failed)} of {len(todo)} guests failed; what the others "
                             "answered is kept for the next time", failed)
        return [answer for answer in found if isinstance(answer, boot.Result)]
