# SPDX-License-Identifier: GPL-2.0
"""Boots a kernel on a virtual machine, watches over it and leaves nothing behind."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import cli
from ..errors import GuestError, UsageError
from ..machine import faults, qapi, ssdt, vendor
from ..machine.machine import Machine
from .job import Answer, Section

#: Firmware of the packages seabios and qemu-system-data.
FIRMWARE_OPTIONS = ["-L", "/usr/share/seabios", "-L", "/usr/share/qemu"]

MEMORY_MIB = 768
POLL_S = 0.1
TAIL_LINES = 15
MODES = ("free", "deterministic")
#: Invariance needs passive mode: schedutil then asks for each frequency.
KERNEL_ARGS = "intel_pstate=passive cpufreq.default_governor=schedutil"

_PANIC = re.compile(r"Kernel panic - not syncing: (.*)")
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Limits:
    """Host seconds after which a guest counts as hung."""

    boot: float = 60	# until init has run
    silence: float = 90	# without a line on either port
    overall: float = 600


@dataclass
class Config:
    """One boot.  `qemu_plain` is a stock emulator, without the model."""

    machine: Machine
    cpus: int
    kernel: Path
    qemu: Path
    initramfs: Path
    out: Path
    job: bytes = b""
    mode: str = "free"
    rtc: str = "vm"		# "host": goes on while a deterministic guest is suspended
    append: str = ""
    trace: bool = True
    compact: bool = False	# compressed, as trace.gz
    qemu_plain: bool = False
    faults: Path | None = None	# what is to break, and when
    qmp: Path | None = None	# control socket, see qmp.py
    disk: Path | None = None	# with a boot loader, in place of the kernel; is written to
    firmware: tuple[Path, Path] | None = None	# of UEFI: code, and variables, which it writes
    limits: Limits = Limits()


@dataclass
class Result:
    """What is left of a guest that ended by itself."""

    status: int
    answer: Answer
    seconds: float
    boot_seconds: float
    console: str
    report: dict[str, Any]
    trace: Path | None

    def text(self, section: str) -> str:
        """Output of a step; an error if the guest never ended it."""
        if section not in self.answer.sections:
            raise GuestError(f"the guest has not answered step {section!r}")
        return self.answer.sections[section].text

    def step_status(self, section: str) -> int | None:
        return self.answer.sections[section].status


def _escape(value: str) -> str:
    """QEMU separates options by commas."""
    return value.replace(",", ",,")


def _cpu_option(m: Machine) -> str:
    by = vendor.encoding(m)
    return ",".join([
        "max", f"vendor={m.vendor}", f"family={m.family}", f"model={m.model}",
        f"stepping={m.stepping}", f"model-id={_escape(m.title)}",
        f"level={by.max_level(m)}", f"xlevel={by.max_extended_level(m):#x}",
        f"ucode-rev={m.microcode << 32:#x}",
        "-hypervisor", "-la57", "-svm", "-3dnow", "-3dnowext", "-sse4a", "-mmxext",
    ])


def _accel_options(mode: str, rtc: str) -> list[str]:
    if mode == "free":
        return ["-accel", "tcg,thread=multi"]
    if mode == "deterministic":
        return ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off",
                "-rtc", f"base=2026-01-01T00:00:00,clock={rtc}", "-seed", "1"]
    raise UsageError(f"unknown time mode {mode!r}; there are: {', '.join(MODES)}")


def _trace_file(c: Config) -> Path:
    return c.out / ("trace.gz" if c.compact else "trace.txt")


def _model_options(c: Config) -> list[str]:
    if c.qemu_plain:
        return []
    files = {"report": c.out / "model.json"}
    if c.trace:
        files["trace"] = _trace_file(c)
    return ["-object", qapi.option(
        c.machine, c.cpus, faults.read(c.faults) if c.faults else (), time=c.mode,
        **{name: str(path) for name, path in files.items()})]


def kernel_command_line(c: Config) -> str:
    # Jobs write marks: without allow_writes each boot would warn of it.  The
    # clock watchdog compares two clocks of one source; all it can find is that
    # the host did something else between two reads.
    words = ["console=ttyS0", "panic=-1", "msr.allow_writes=on", "tsc=reliable"]
    return " ".join(words + c.append.split())


def cpu_options(m: Machine, cpus: int, mode: str, rtc: str = "vm") -> list[str]:
    """The CPUs and their time, and the firmware that starts them."""
    sockets, threads = m.sockets(cpus), m.threads
    return [
        *FIRMWARE_OPTIONS, *_accel_options(mode, rtc), "-cpu", _cpu_option(m),
        "-smp", f"{cpus},sockets={sockets},cores={cpus // sockets // threads},"
        f"threads={threads}"]


def _boot_options(c: Config) -> list[str]:
    if c.disk:
        return ["-drive", f"file={_escape(str(c.disk))},if=virtio,format=raw"]
    return ["-kernel", str(c.kernel), "-initrd", str(c.out / "initrd"),
            "-append", kernel_command_line(c)]


def _firmware_options(c: Config) -> list[str]:
    if not c.firmware:
        return []
    code, variables = c.firmware
    # With Secure Boot only the firmware itself writes its variables.
    secure = ["-global", "driver=cfi.pflash01,property=secure,value=on"]
    return ["-drive", f"file={_escape(str(code))},format=raw,if=pflash,readonly=on",
            "-drive", f"file={_escape(str(variables))},format=raw,if=pflash",
            *secure * ("secboot" in code.name)]


def machine_options(c: Config) -> list[str]:
    """Everything but where the serial ports go."""
    return [
        str(c.qemu), *cpu_options(c.machine, c.cpus, c.mode, c.rtc), *_model_options(c),
        "-M", "q35,smm=on" if c.firmware else "q35",
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-m", str(MEMORY_MIB),
        "-acpitable", f"file={_escape(str(c.out / 'ssdt.aml'))}",
        *_boot_options(c), *_firmware_options(c),
        *(["-qmp", f"unix:{_escape(str(c.qmp))},server=on,wait=off"] if c.qmp else []),
    ]


def prepare(c: Config) -> None:
    """Writes what the emulator reads: ACPI table, archives."""
    c.machine.check_cpus(c.cpus)
    c.out.mkdir(parents=True, exist_ok=True)
    for name in ("console.log", "results.log", "model.json", "trace.txt", "trace.gz"):
        (c.out / name).unlink(missing_ok=True)
    ssdt.compile_table(ssdt.source(c.machine, c.cpus), c.out / "ssdt.aml")
    if not c.disk:
        (c.out / "initrd").write_bytes(c.initramfs.read_bytes() + c.job)


def _die_with_parent() -> None:
    """In the child: be killed when this program is, however it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def start(command: list[str], **where: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, preexec_fn=_die_with_parent, **where)


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass	# nobody left


def stop(process: subprocess.Popen[bytes], grace: float = 5) -> None:
    """Ends the process group: asked first, so that the model can report."""
    if process.poll() is None:
        _signal_group(process, signal.SIGTERM)
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            pass
    _signal_group(process, signal.SIGKILL)	# and what it may have started
    process.wait()


class Follower:
    """Reads what was added to a file since the last time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> str:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return ""
        self._offset += len(data)
        return data.decode("utf-8", "replace")


def tail(text: str, lines: int = TAIL_LINES) -> list[str]:
    """The last lines that say something, without terminal escapes."""
    plain = re.sub(r"\x1b(\[[0-9;?=]*[A-Za-z]|c)", "", text)
    kept = [line.rstrip() for line in plain.splitlines() if line.strip()]
    return kept[-lines:]


class Watch:
    """Follows one running guest until it ends, or throws GuestError."""

    def __init__(self, c: Config, process: subprocess.Popen[bytes],
                 on_section: Callable[[Section], None] | None) -> None:
        self.process = process
        self.answer = Answer()
        self.console = ""
        self.boot_seconds = 0.0
        self._limits = c.limits
        self._on_section = on_section
        self._console_file = Follower(c.out / "console.log")
        self._results_file = Follower(c.out / "results.log")
        self._emulator_log = c.out / "qemu.log"
        self._begin = self._heard = time.monotonic()

    def follow(self) -> int:
        """Exit status of the guest's job."""
        while True:
            ended = self.process.poll() is not None	# before the last read
            self._read()
            if self.answer.exit is not None:
                return self.answer.exit
            self._check_console()
            if ended:
                self._fail_ended()
            if cli.interrupted.is_set():
                self._fail("interrupted")
            self._check_time()
            time.sleep(POLL_S)

    def seconds(self) -> float:
        return time.monotonic() - self._begin

    def _read(self) -> None:
        console, results = self._console_file.read(), self._results_file.read()
        if console or results:
            self._heard = time.monotonic()
        self.console += console
        for section in self.answer.feed(results):
            if self._on_section:
                self._on_section(section)
        if self.answer.ready is not None and not self.boot_seconds:
            self.boot_seconds = self.seconds()

    def _fail(self, reason: str) -> None:
        raise GuestError(reason, "\n".join(tail(self.console)))

    def _check_console(self) -> None:
        if match := _PANIC.search(self.console):
            # What follows the message (registers, call trace) belongs to it.
            time.sleep(0.5)
            self._read()
            self._fail(f"the guest's kernel panicked: {match[1].strip()}")

    def _fail_ended(self) -> None:
        code = self.process.returncode
        said = tail(self._emulator_log.read_text(errors="replace"), 1) \
            if self._emulator_log.exists() else []
        how = f"signal {-code}" if code < 0 else f"status {code}"
        self._fail(f"the emulator ended ({how}) before the guest was done"
                   + (f": {said[0]}" if said else ""))

    def _check_time(self) -> None:
        now, limits = time.monotonic(), self._limits
        if self.answer.ready is None and now - self._begin > limits.boot:
            self._fail(f"the guest has not booted within {limits.boot:g} s")
        if now - self._heard > limits.silence:
            self._fail(f"the guest hangs: not a line for {limits.silence:g} s")
        if now - self._begin > limits.overall:
            self._fail(f"the guest was not done within {limits.overall:g} s")


def run(c: Config, on_section: Callable[[Section], None] | None = None) -> Result:
    """Boots, runs the job, returns when the guest is off.

    GuestError if the kernel panics or hangs or the emulator dies; whatever
    happens, the emulator is gone afterwards.
    """
    prepare(c)
    command = machine_options(c) + [
        "-serial", f"file:{c.out / 'console.log'}",
        "-serial", f"file:{c.out / 'results.log'}"]
    (c.out / "command").write_text("\n".join(command) + "\n", encoding="utf-8")
    with (c.out / "qemu.log").open("wb") as log:
        process = start(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                        start_new_session=True)
    try:
        watch = Watch(c, process, on_section)
        status = watch.follow()
        _wait_off(process)
    finally:
        stop(process)
        (c.out / "initrd").unlink(missing_ok=True)	# large, and made anew for each boot
    return Result(status, watch.answer, watch.seconds(), watch.boot_seconds,
                  watch.console, _read_report(c.out / "model.json"),
                  _trace_file(c) if c.trace and not c.qemu_plain else None)


def kept(out: Path, key: str) -> Result | None:
    """What the guest of an earlier run answered, if whoever ran it left this in the file
    "key": then it was the same start."""
    answer, path, log = Answer(), out / "key", out / "results.log"
    if not path.is_file() or path.read_text(encoding="ascii") != key or not log.is_file():
        return None
    answer.feed(log.read_text(encoding="utf-8", errors="replace"))
    # A whole log ends with the job's status
    return None if answer.exit is None else Result(0, answer, 0, 0, "", {}, None)


def _wait_off(process: subprocess.Popen[bytes], limit: float = 15) -> None:
    """The job is done; power-off should follow.  If not, stop() sees to it."""
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        pass


def _read_report(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise GuestError(f"the model's report {path} is damaged: {error}") from error


def _ready(log: Path, process: subprocess.Popen[bytes]) -> bool:
    """Once init has opened the console, which empties its port; not if the emulator ends."""
    while process.poll() is None:
        if log.exists() and "vs:ready" in log.read_text(errors="replace"):
            return True
        time.sleep(POLL_S)
    return False


def _feed(process: subprocess.Popen[bytes], log: Path) -> None:
    """What is typed, or piped and then ctrl-D, goes to the guest's console."""
    assert process.stdin
    try:
        if _ready(log, process):
            while data := os.read(0, 4096):
                process.stdin.write(data)
                process.stdin.flush()
            process.stdin.write(b"\n")
            # One that comes while a command runs is none for the shell.
            while process.poll() is None:
                process.stdin.write(b"\x04")
                process.stdin.flush()
                time.sleep(0.5)
    except OSError:
        pass	# the guest is off


@contextlib.contextmanager
def _raw() -> Iterator[None]:
    """A terminal gives each key to the guest, ctrl-C too."""
    if not os.isatty(0):
        yield
        return
    before = termios.tcgetattr(0)
    tty.setraw(0, termios.TCSANOW)	# what was typed before stays
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def interactive(c: Config) -> int:
    """The guest's console on this terminal; the job's exit status, or the emulator's."""
    prepare(c)
    results = c.out / "results.log"
    command = machine_options(c) + ["-chardev", "stdio,id=console,signal=off",
                                    "-serial", "chardev:console", "-serial", f"file:{results}"]
    process = start(command, stdin=subprocess.PIPE)
    try:
        with _raw():
            threading.Thread(target=_feed, args=(process, results), daemon=True).start()
            code = process.wait()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        (c.out / "initrd").unlink()
    answer = Answer()
    answer.feed(results.read_text(errors="replace") if results.exists() else "")
    return code if answer.exit is None else answer.exit
