# SPDX-License-Identifier: GPL-2.0
"""Guests that tests share: each scenario is booted once, some at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import pytest
import scenarios
from virtual_silicon import paths
from virtual_silicon.guest import boot, initramfs, pool
from virtual_silicon.guest.job import Job
from virtual_silicon.machine import machine
from virtual_silicon.readers import trace
from virtual_silicon.studies.invariance.utilisation import events


def window(result: boot.Result, mark: int) -> trace.Window:
    """From a mark to the next."""
    return trace.window(events(result), mark, mark + 1)


def each(names: Iterable[str], prefix: str = "") -> list:
    """A case for each name, marked with the guest that it boots."""
    return [pytest.param(name, marks=pytest.mark.boots(prefix + name)) for name in names]


class Guests:
    """Boots in the background; get() waits for the result."""

    def __init__(self, qemu: str | None, base: str, patched: str, out: Path,
                 jobs: int) -> None:
        self._qemu = qemu
        self._kernels = {"base": base, "patched": patched}
        self._out = out
        self._pool = ThreadPoolExecutor(jobs)
        self._futures: dict[str, Future[boot.Result]] = {}
        self._lock = threading.Lock()

    @cached_property
    def _guests(self) -> pool.Guests:
        return pool.Guests(self._out, initramfs.ensure(self._out / "guest", paths.selftests()),
                           paths.qemu(self._qemu))

    def want(self, name: str) -> Future[boot.Result]:
        if name not in self._futures:
            self._futures[name] = self._pool.submit(lambda: boot.run(self.config(name)))
        return self._futures[name]

    def get(self, name: str) -> boot.Result:
        return self.want(name).result()

    def config(self, name: str, job: bytes | None = None) -> boot.Config:
        """The boot of a scenario, with another job if one is given."""
        s = scenarios.SCENARIOS[name]
        m = machine.load(s.machine)
        m = replace(m, time=replace(m.time, **s.time))
        with self._lock:	# the archive is written once
            guests = self._guests
        c = guests.prepared(pool.Guest(
            name, m, s.cpus, paths.kernel(self._kernels[s.kernel]), Job(), s.append,
            s.faults.rstrip("\n"), trace=True, mode=s.mode, compact=False,
            limits=boot.Limits(boot=120, silence=120, overall=300)))
        return replace(c, rtc=s.rtc, job=s.job(m) if job is None else job)

    def close(self) -> None:
        """Boots that nobody waits for any more are not begun."""
        self._pool.shutdown(cancel_futures=True)
