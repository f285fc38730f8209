# SPDX-License-Identifier: GPL-2.0
"""Runs guests, several at once, and keeps what they answered."""

from __future__ import annotations

import hashlib
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..errors import Fail, GuestError
from ..machine import faults, qapi, ssdt
from ..machine.machine import Machine
from ..progress import Step, clock
from . import boot, claim
from .job import Job, Section

#: Beyond what the longest takes on a loaded host.
_LIMITS = boot.Limits(boot=900, silence=7200, overall=14400)


@dataclass(frozen=True)
class Guest:
    """One start. @name: of the directory for what it leaves; @compact: its trace is
    compressed; @cost: how long it takes, beside the others, for an estimate."""

    name: str
    machine: Machine
    cpus: int
    kernel: Path
    job: Job
    append: str = ""
    faults: str = ""	# as in a file of faults
    trace: bool = False
    cost: float = 1
    mode: str = "deterministic"
    compact: bool = True
    limits: boot.Limits = _LIMITS


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Guests:
    """@archive: what they have in common; @keep: what they answered, for the next time."""

    def __init__(self, out: Path, archive: Path, qemu: Path, jobs: int = 1,
                 keep: bool = True) -> None:
        self.out, self._archive, self._qemu = out, archive, qemu
        self._jobs, self._keep = jobs, keep
        self._digests: dict[Path, str] = {}

    def digest(self, path: Path) -> str:
        """As it was when it was first asked for."""
        if path not in self._digests:
            self._digests[path] = _digest(path)
        return self._digests[path]

    def config(self, guest: Guest) -> boot.Config:
        out = self.out / guest.name
        return boot.Config(
            machine=guest.machine, cpus=guest.machine.check_cpus(guest.cpus),
            kernel=guest.kernel, qemu=self._qemu, initramfs=self._archive, out=out,
            job=guest.job.archive(), mode=guest.mode, append=guest.append, trace=guest.trace,
            compact=guest.compact, faults=out / "faults" if guest.faults else None,
            limits=guest.limits)

    def key(self, guest: Guest, programs: str = "") -> str:
        """Of everything that determines what the guest will answer. @programs: what to take for
        the digest of what guests have in common."""
        c = self.config(guest)
        parts = (*(self.digest(path) for path in (c.kernel, c.qemu)),
                 programs or self.digest(c.initramfs),
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
        if not self._keep:
            return None
        out = self.out / guest.name
        found = boot.kept(out, self.key(guest))
        if found and guest.trace:
            found.trace = out / "trace.gz"
        return found

    def prepared(self, guest: Guest) -> boot.Config:
        """With the file of its faults."""
        c = self.config(guest)
        c.out.mkdir(parents=True, exist_ok=True)
        if c.faults:
            c.faults.write_text(guest.faults + "\n", encoding="ascii")
        return c

    def answer(self, guest: Guest, on_section: Callable[[Section], None] | None = None,
               ) -> boot.Result:
        """What was kept, else of a boot."""
        if found := self.kept(guest):
            return found
        c = self.prepared(guest)
        (c.out / "key").unlink(missing_ok=True)
        key = self.key(guest)
        result = boot.run(c, on_section)
        if any(_digest(path) != self.digest(path) for path in (c.kernel, c.qemu, c.initramfs)):
            raise GuestError("kernel, emulator or guest were built anew meanwhile")
        (c.out / "key").write_text(key, encoding="ascii")
        return result

    def outcomes(self, todo: Sequence[Guest], kept_only: bool = False,
                 on_section: Callable[[Guest, Section], None] | None = None,
                 ) -> list[boot.Result | Fail | None]:
        """In the order of @todo, in which those that are not kept are started."""
        found: list[boot.Result | Fail | None] = [self.kept(guest) for guest in todo]
        start = [n for n, answer in enumerate(found) if not answer]
        if not start or kept_only:
            return found
        claim.claim(self.out)
        kept = f", {len(todo) - len(start)} kept" * (len(start) < len(todo))
        lock, ended, cost = threading.Lock(), 0, 0.0
        whole = sum(todo[n].cost for n in start)
        with Step(f"guests: {len(start)} to boot{kept}", sys.stderr) as step:
            def one(n: int) -> None:
                nonlocal ended, cost
                each = partial(on_section, todo[n]) if on_section else None
                try:
                    found[n] = self.answer(todo[n], each)
                except Fail as error:
                    found[n] = error
                with lock:
                    ended, cost = ended + 1, cost + todo[n].cost
                    left = (time.monotonic() - step.start) / cost * (whole - cost)
                    step.update(f"{ended} ended, about {clock(left)} left")
            with ThreadPoolExecutor(self._jobs) as pool:
                list(pool.map(one, start))
        return found

    def answers(self, todo: Sequence[Guest],
                on_section: Callable[[Guest, Section], None] | None = None) -> list[boot.Result]:
        """If guests fail, the error names them, once the others have ended."""
        found = self.outcomes(todo, on_section=on_section)
        failed = [f"{guest.name}: {answer} ({self.out / guest.name}/console.log)"
                  for guest, answer in zip(todo, found) if isinstance(answer, Fail)]
        if failed:
            raise GuestError(f"{len(failed)} of {len(todo)} guests failed"
                             + "; what the others answered is kept for the next time" * self._keep,
                             "\n".join(failed))
        return [answer for answer in found if isinstance(answer, boot.Result)]
