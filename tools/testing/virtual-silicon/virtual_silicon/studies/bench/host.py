# SPDX-License-Identifier: GPL-2.0
"""The same loads on the machine at hand. Every knob is put back, however it ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from types import FrameType

from ...errors import GuestError, UsageError
from ...guest import boot
from ...loads import HERE as SCRIPTS
from .cells import SEEDS, Boot, Cell, Machine, Setting
from .loads import LOADS, PACKAGES, WORK, Load, numbers
from .runner import Failure, Result, Results, result
from .tables import Table

#: Programs of PostgreSQL, and the user that Debian's package makes.
_POSTGRES = next(file.removesuffix("pgbench") for files in PACKAGES.values()
                 for file in files if file.endswith("/pgbench"))
_OWNER = "postgres"
#: What compiled() makes of disk.c.
DISK = "disk.so"
#: Beside the loads' own.
_SHELL = "busybox"
_HERE = Boot("host")
#: What can be compared without another boot, if the machine has it.
CANDIDATES = (
    Setting("base", _HERE), Setting("performance", _HERE, "performance"),
    Setting("teo", _HERE, idle="teo"),
    *(Setting(word, _HERE, freq_max=word)
      for word in ("1c", "4c", "8c", "boost", "midpoint", "nominal")),
    Setting("i_pstate", _HERE, "powersave", status="active"))
#: What the loads write, and first remove
_SCRATCH = ("tmp/output", *dict.fromkeys(f"tmp/{name}" for load in LOADS.values()
                                         for name in load.scratch))
#: More than a load takes. A counter that wraps meanwhile makes nearly 2^64 uJ.
_WRAPPED_J = 1e12
#: Until a server listens.
_LISTENING_S = 0.5
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Knobs:
    """Files below @root, which is / but in tests."""

    def __init__(self, root: Path) -> None:
        self.root, self.cpu = root, root / "sys/devices/system/cpu"
        self.status = self.cpu / "intel_pstate/status"
        self.idle = self.cpu / "cpuidle/current_governor"
        self.freq_max = root / "sys/module/aperfmperf/parameters/freq_max"

    def governors(self) -> list[Path]:
        return sorted(self.cpu.glob("cpufreq/policy*/scaling_governor"))

    def saved(self) -> dict[Path, str]:
        """All that can be written, in the order in which it is put back: the driver before
        its governors, these before the tunables and limits that a change resets."""
        files = [file for name in ("intel_pstate", "cpufreq", "cpuidle")
                 for file in sorted((self.cpu / name).rglob("*"))
                 if file.is_file() and file.stat().st_mode & 0o600 == 0o600]
        files += [self.freq_max] * self.freq_max.exists()
        first = [self.status, *self.governors()]
        files.sort(key=lambda file: first.index(file) if file in first else len(first))
        found = {}
        for file in files:
            with suppress(OSError):
                found[file] = file.read_text().strip()
        # scaling_setspeed, but for the governor userspace
        return {file: value for file, value in found.items() if value != "<unsupported>"}

    def lacks(self, setting: Setting) -> str:
        """Why a setting cannot be had; nothing if it can."""
        governors = self.governors()
        offered = governors[0].with_name("scaling_available_governors").read_text().split()
        if setting.status == "-" and setting.governor not in offered:
            return f"governor {setting.governor} (there are: {' '.join(offered)})"
        idle = self.idle.with_name("available_governors")
        if setting.idle not in (idle.read_text().split() if idle.exists() else ()):
            return f"idle governor {setting.idle}"
        if setting.status != "-" and not self.status.exists():
            return "intel_pstate"
        if setting.freq_max == "-":
            return ""
        if not self.freq_max.exists():
            return "aperfmperf.freq_max: not a kernel of this series"
        intel = "GenuineIntel" in (self.root / "proc/cpuinfo").read_text()
        return "" if intel or setting.freq_max[-1] != "c" else f"freq_max {setting.freq_max}"

    def apply(self, setting: Setting) -> None:
        if setting.status != "-":
            _put(self.status, setting.status)
        for file in self.governors():
            _put(file, setting.governor)
        _put(self.idle, setting.idle)
        if setting.freq_max != "-":
            _put(self.freq_max, setting.freq_max)


def _put(file: Path, value: str) -> None:
    try:
        file.write_text(value)
    except OSError as error:
        raise OSError(f"{file}: {value}: {error.strerror}") from None


def put_back(saved: Mapping[Path, str]) -> list[str]:
    """Those that could not be, which does not keep the others from it."""
    failed = []
    for file, value in saved.items():
        try:
            if file.read_text().strip() != value:
                _put(file, value)
        except OSError as error:
            failed.append(str(error))
    return failed


def _ignore() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _stop(number: int, frame: FrameType | None) -> None:
    """The only one: a second signal must not stop what puts back."""
    _ignore()
    raise SystemExit(128 + number)


@contextmanager
def restored(knobs: Knobs, lost: list[str]) -> Iterator[dict[Path, str]]:
    """Gives what is put back at the end; @lost is what could not be. Signals that are
    ignored, as by nohup, stay so."""
    saved = knobs.saved()
    before = {number: signal.signal(number, _stop) for number in _SIGNALS
              if signal.getsignal(number) != signal.SIG_IGN}
    try:
        try:
            yield saved
        finally:
            _ignore()	# a signal before this ends in the next line
    finally:
        lost += put_back(saved)
        for number, handler in before.items():
            signal.signal(number, handler)


def check(knobs: Knobs) -> None:
    """Refuse before anything is changed."""
    if os.geteuid():
        raise UsageError("this needs root: it writes to sysfs and reads MSRs")
    if not knobs.governors():
        raise UsageError("no cpufreq policy: this machine has no driver for its clock")
    if not list(knobs.root.glob("sys/class/powercap/intel-rapl:?/energy_uj")):
        raise UsageError("no RAPL package zone in /sys/class/powercap (modprobe intel_rapl_msr)")
    if not list(knobs.root.glob("dev/cpu/*/msr")):
        raise UsageError("no /dev/cpu/*/msr (modprobe msr)")
    if there := [str(path) for name in _SCRATCH if os.path.lexists(path := knobs.root / name)]:
        raise UsageError(f"the loads would overwrite {', '.join(there)}: move it away")
    missing = {name for name in dict.fromkeys(p for load in LOADS.values() for p in load.programs)
               if not all((knobs.root / file.lstrip("/")).exists()
                          for file in PACKAGES[name])}
    if not shutil.which(_SHELL):
        missing.add("busybox-static")
    if missing:
        raise UsageError("programs are missing; run: apt-get install "
                         + " ".join(sorted(missing)))


def _machine(knobs: Knobs, name: str) -> tuple[Machine, list[str]]:
    """With the settings that it can have, and why others are left out."""
    lacks = {setting: knobs.lacks(setting) for setting in CANDIDATES}
    have = tuple(s for s, why in lacks.items() if not why)
    if CANDIDATES[0] not in have:
        why = lacks[CANDIDATES[0]]
        hint = f"; write passive to {knobs.status}" * (
            why.startswith("governor") and knobs.status.exists())
        raise UsageError(f"the baseline cannot be had: no {why}{hint}")
    return (Machine(name, os.cpu_count() or 1, have),
            [f"{setting.name}: no {why}" for setting, why in lacks.items() if why])


def tsc_khz(msr: Path = Path("/dev/cpu/0/msr")) -> int:
    """Of the TSC, at whose rate MPERF counts."""
    try:
        with msr.open("rb", buffering=0) as file:
            def read() -> tuple[int, int]:
                return (time.monotonic_ns(),
                        int.from_bytes(os.pread(file.fileno(), 8, 0x10), "little"))
            begin, first = read()
            time.sleep(0.1)
            end, last = read()
    except OSError as error:
        raise UsageError(f"{msr}: {error.strerror}") from None
    return round((last - first) * 1_000_000 / (end - begin))


def load(tools: Path, khz: int, cell: Cell) -> Result | Failure:
    """One load by the guest's script, with the stopwatch and the disk's waits that are in
    @tools. Writes of the registers that ask for a clock are not counted here."""
    path = f"{tools}:{os.environ['PATH']}"
    process = subprocess.Popen(
        ["busybox", "sh", "-c", 'rm -f /tmp/output; . ./programs.sh; load "$@"; code=$?; '
         'value "$1"; [ $code = 0 ] || tail -n 5 /tmp/output >&2 2>/dev/null; exit $code',
         "load", cell.load.name, str(cell.parameter), str(cell.seed)],
        cwd=SCRIPTS, env=os.environ | {"PATH": path, "SCRIPTS": str(SCRIPTS), "WORK": str(WORK),
                                       "DISK": f"LD_PRELOAD={tools / DISK}"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        start_new_session=True)
    try:
        out, said = process.communicate()
    finally:
        _end(process.pid)
        process.wait()
    found = result(cell, [str(process.returncode), "0", *out.split()], khz,
                   " | ".join(said.strip().splitlines()), "")
    if isinstance(found, Failure):
        return found
    return load(tools, khz, cell) if found.joules > _WRAPPED_J else replace(found, updates=None)


def _end(session: int) -> None:
    """Kills what is left of it. The stopwatch gives its command a process group."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(ProcessLookupError):
            if os.getsid(int(entry.name)) == session:
                os.kill(int(entry.name), signal.SIGKILL)


@contextmanager
def _database(tools: Path) -> Iterator[None]:
    """As programs.sh has it: in memory, with the disk's waits, of a user who is not root."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        data, log = f"{directory}/data", Path(directory) / "log"
        disk = shutil.copy(tools / DISK, directory)	# where the user may read
        shutil.chown(directory, _OWNER)

        def run(program: str, *words: str, **env: str) -> None:
            try:
                with log.open("ab") as out:
                    subprocess.run([f"{_POSTGRES}{program}", *words], user=_OWNER, check=True,
                                   stdout=out, stderr=out, cwd=directory, env=os.environ | env)
            except subprocess.CalledProcessError:
                said = log.read_text(errors="replace").strip().splitlines()
                raise GuestError(f"{program} failed: {said[-1] if said else ''}") from None
        run("initdb", "-N", "-A", "trust", "-T", "simple", "-E", "SQL_ASCII", "--locale=C",
            "-U", "postgres", data)
        run("pg_ctl", "-D", data, "-w", "start", "-l", f"{directory}/server", "-o",
            "-k /tmp -c listen_addresses= -c shared_buffers=32MB -c autovacuum=off",
            LD_PRELOAD=disk)
        try:
            run("pgbench", "-h", "/tmp", "-U", "postgres", "-q", "-i", "postgres")
            yield
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "stop")


@contextmanager
def servers() -> Iterator[None]:
    """What tbench and iperf3 talk to. They end with the block, and with what they started."""
    running: list[subprocess.Popen[bytes]] = []
    try:
        for command in (["tbench_srv"], ["iperf3", "-s"]):
            running.append(boot.start(command, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, start_new_session=True))
        time.sleep(_LISTENING_S)
        yield
    finally:
        for server in running:
            boot.stop(server)


@contextmanager
def surroundings(tools: Path) -> Iterator[None]:
    """Servers, and nothing in /tmp afterwards."""
    try:
        with _database(tools), servers():
            yield
    finally:
        subprocess.run(["rm", "-rf", *(f"/{name}" for name in _SCRATCH)], check=False)


def parameters(load_: Load, cpus: int) -> Sequence[int]:
    """As in guests, but for what is too small for a machine."""
    return numbers(load_.sizes if load_.host is None else load_.host, cpus)


def table(machine: Machine) -> Table:
    return Table("host", f"{machine.name}, over its own schedutil and menu", (machine,), "base",
                 tuple(s.name for s in machine.settings[1:]),
                 tuple(name for name, load_ in LOADS.items() if parameters(load_, 1)))


def run(knobs: Knobs, name: str, measure: Callable[[Cell], Result | Failure],
        tell: Callable[[str], None], around: AbstractContextManager[None],
        ) -> tuple[Machine, Results, list[str]]:
    """And what could not be put back. @around: what the loads need. Settings take turns, so
    that what changes over hours, like the temperature, changes all of them."""
    machine, without = _machine(knobs, name)
    for line in without:
        tell(f"left out: {line}")
    cells = [Cell(machine, setting, load_, parameter, seed)
             for seed in range(1, SEEDS + 1) for setting in machine.settings
             for load_ in LOADS.values()
             for parameter in parameters(load_, machine.cpus)]
    results: Results = {}
    lost: list[str] = []
    try:
        with restored(knobs, lost) as saved, around:
            for (seed, setting), some in groupby(cells, lambda cell: (cell.seed, cell.setting)):
                tell(f"{seed} of {SEEDS}, {setting.name} ...")
                put_back(saved)
                refused = ""
                try:
                    knobs.apply(setting)
                except OSError as error:
                    refused = str(error)
                results |= {cell: Failure(refused, "") if refused else measure(cell)
                            for cell in some}
    finally:
        for line in lost:
            tell(f"not put back: {line}")
    return machine, results, lost
