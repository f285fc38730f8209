# SPDX-License-Identifier: GPL-2.0
"""A private tracefs instance with the events that tell why CPUs are idle."""
from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

from ringbuffer import Format

TRACEFS = Path("/sys/kernel/tracing")

# Event, and which of its numbers are wanted.
EVENTS = {
    "power/cpu_idle": ("state", "cpu_id"),
    "timer/tick_stop": ("success",),
    "timer/hrtimer_start": ("hrtimer", "function", "expires"),
    "timer/hrtimer_cancel": ("hrtimer",),
    "timer/hrtimer_expire_entry": ("hrtimer",),
    "irq/irq_handler_entry": ("irq",),
    "irq_vectors/local_timer_entry": (),
    "irq_vectors/reschedule_entry": (),
    "irq_vectors/call_function_entry": (),
    "irq_vectors/call_function_single_entry": (),
    "irq_vectors/irq_work_entry": (),
    "sched/sched_switch": ("prev_pid", "next_pid"),
}


class Lost(Exception):
    """Events were lost, so the recording is worth nothing."""


class Recording:
    """Records on construction's instance; use as a context manager."""

    def __init__(self, buffer_kb: int):
        if not (TRACEFS / "instances").is_dir():
            raise OSError("tracefs is not mounted, must be on /sys/kernel/tracing"
                          " (mount -t tracefs nodev /sys/kernel/tracing)")
        self.root = TRACEFS / "instances" / f"cpuidle-trace-{os.getpid()}"
        self.root.mkdir()
        try:
            self._set("tracing_on", "0")
            self._set("trace_clock", "mono")
            # Rather miss the end than have a hole somewhere.
            self._set("options/overwrite", "0")
            self._set("buffer_size_kb", str(buffer_kb))
            for event in EVENTS:
                if (self.root / "events" / event).is_dir():
                    self._set(f"events/{event}/enable", "1")
                elif not event.startswith("irq_vectors/"):
                    raise OSError(f"this kernel has no event {event}, which is needed")
        except OSError:
            self.close()
            raise

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _set(self, name: str, value: str) -> None:
        (self.root / name).write_text(value)

    def close(self) -> None:
        (self.root / "tracing_on").write_text("0")
        self.root.rmdir()

    def run(self, command: list[str], seconds: float) -> None:
        """Record for some time, or while a command runs if that is shorter."""
        child = subprocess.Popen(command) if command else None
        try:
            self._set("tracing_on", "1")
            if child:
                child.wait(seconds)
            else:
                time.sleep(seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self._set("tracing_on", "0")
            if child and child.poll() is None:
                child.terminate()
                child.wait()

    def formats(self) -> dict[int, Format]:
        found = [Format(event.split("/")[1], (self.root / "events" / event / "format").read_text(),
                        wanted)
                 for event, wanted in EVENTS.items() if (self.root / "events" / event).is_dir()]
        return {f.id: f for f in found}

    def page_size(self) -> int:
        text = (self.root / "events" / "header_page").read_text()
        for line in text.splitlines():
            if " data;" in line:
                return (int(line.split("offset:")[1].split(";")[0])
                        + int(line.split("size:")[1].split(";")[0]))
        raise OSError("events/header_page does not tell the page size")

    def lost(self) -> dict[int, int]:
        """Lost events per CPU."""
        found = {}
        for stats in self.root.glob("per_cpu/cpu*/stats"):
            numbers = dict(line.split(": ")[:2] for line in stats.read_text().splitlines() if ": " in line)
            count = sum(int(numbers[k]) for k in ("overrun", "commit overrun", "dropped events"))
            if count:
                found[int(stats.parent.name[3:])] = count
        return found

    def save(self, directory: Path) -> list[tuple[int, Path]]:
        """Copy the raw buffers out; [(cpu, file)]."""
        files = []
        for raw in sorted(self.root.glob("per_cpu/cpu*/trace_pipe_raw")):
            target = directory / raw.parent.name
            fd = os.open(raw, os.O_RDONLY | os.O_NONBLOCK)
            with os.fdopen(fd, "rb", buffering=0) as source, target.open("wb") as out:
                try:
                    while chunk := source.read(1 << 16):
                        out.write(chunk)
                except BlockingIOError:
                    pass
            files.append((int(raw.parent.name[3:]), target))
        return files


def compress(path: Path) -> Path:
    """xz a file if there is an xz; the file's name afterwards."""
    if not shutil.which("xz"):
        return path
    subprocess.run(["xz", "-f", str(path)], check=True)
    return path.with_name(path.name + ".xz")
