# SPDX-License-Identifier: GPL-2.0
"""Guests that tests share: each scenario is booted once, two at a time."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import scenarios
from virtual_silicon import paths
from virtual_silicon.guest import boot, initramfs
from virtual_silicon.machine import machine


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

    def want(self, name: str) -> Future[boot.Result]:
        if name not in self._futures:
            self._futures[name] = self._pool.submit(self._boot, name)
        return self._futures[name]

    def get(self, name: str) -> boot.Result:
        return self.want(name).result()

    def config(self, name: str, job: bytes | None = None) -> boot.Config:
        """The boot of a scenario, with another job if one is given."""
        s = scenarios.SCENARIOS[name]
        m = machine.load(s.machine)
        m = m.copy(update={"time": m.time.copy(update=s.time)})
        with self._lock:	# the archive is written once
            archive = initramfs.ensure(self._out / "guest", paths.selftests())
        out = self._out / name
        return boot.Config(
            machine=m, cpus=s.cpus, kernel=paths.kernel(self._kernels[s.kernel]),
            qemu=paths.qemu(self._qemu), initramfs=archive, out=out,
            job=s.job(m, s.cpus) if job is None else job, mode=s.mode, append=s.append,
            faults=self._faults(out, s.faults),
            limits=boot.Limits(boot=120, silence=120, overall=300))

    @staticmethod
    def _faults(out: Path, lines: str) -> Path | None:
        if not lines:
            return None
        out.mkdir(parents=True, exist_ok=True)
        path = out / "faults"
        path.write_text(lines, encoding="ascii")
        return path

    def _boot(self, name: str) -> boot.Result:
        return boot.run(self.config(name))

    def close(self) -> None:
        """Boots that nobody waits for any more are not begun."""
        self._pool.shutdown(cancel_futures=True)
