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
from itertools import product
from pathlib import Path
from types import FrameType

from ..errors import GuestError, UsageError
from ..guest import boot
from ..loads import HERE as SCRIPTS
from ..loads import packages
from . import plan, store
from .plan import Cell, Column
from .store import Sample

#: Files of each package.
PACKAGES = packages()
LOADS = plan.on_hosts()
SEEDS = 3
#: Programs of PostgreSQL, and the user that Debian's package makes.
_POSTGRES = next(file.removesuffix("pgbench") for files in PACKAGES.values()
                 for file in files if file.endswith("/pgbench"))
_OWNER = "postgres"
#: What compiled() makes of disk.c.
DISK = "disk.so"
#: Beside the loads' own.
_SHELL = "busybox"
#: What can be compared without another boot, if the machine has it.
CANDIDATES = (
    Column("base", "host", idle="menu"), Column("performance", "host", governor="performance",
                                                idle="menu"),
    Column("teo", "host", idle="teo"),
    *(Column(word, "host", idle="menu", set=(f"freq_max={word}",))
      for word in ("1c", "4c", "8c", "boost", "midpoint", "nominal")),
    Column("i_pstate", "host", governor="powersave", idle="menu", set=("status=active",)))
#: What the loads write, and first remove
_SCRATCH = ("tmp/output", *dict.fromkeys(f"tmp/{name}" for load in LOADS.values()
                                         for name in load.scratch))
#: More than a machine takes. A counter that wraps meanwhile makes nearly 2^64 uJ.
_WRAPPED_W = 1e9
#: Beside what a load prints.
MEASURES = ("result", "W", "mJ", "MHz")
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

    def lacks(self, column: Column) -> str:
        """Why a column cannot be had; nothing if it can."""
        settings = dict(word.split("=") for word in column.set)
        governors = self.governors()
        offered = governors[0].with_name("scaling_available_governors").read_text().split()
        if "status" not in settings and column.governor not in offered:
            return f"governor {column.governor} (there are: {' '.join(offered)})"
        idle = self.idle.with_name("available_governors")
        if column.idle not in (idle.read_text().split() if idle.exists() else ()):
            return f"idle governor {column.idle}"
        if "status" in settings and not self.status.exists():
            return "intel_pstate"
        if not (freq_max := settings.get("freq_max")):
            return ""
        if not self.freq_max.exists():
            return "aperfmperf.freq_max: not a kernel of this series"
        intel = "GenuineIntel" in (self.root / "proc/cpuinfo").read_text()
        return "" if intel or freq_max[-1] != "c" else f"freq_max {freq_max}"

    def apply(self, column: Column) -> None:
        settings = dict(word.split("=") for word in column.set)
        if "status" in settings:
            _put(self.status, settings["status"])
        for file in self.governors():
            _put(file, column.governor)
        _put(self.idle, column.idle)
        if "freq_max" in settings:
            _put(self.freq_max, settings["freq_max"])


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


def columns(knobs: Knobs) -> tuple[list[Column], list[str]]:
    """Those that it can have, and why others are left out."""
    lacks = {column: knobs.lacks(column) for column in CANDIDATES}
    if why := lacks[CANDIDATES[0]]:
        hint = f"; write passive to {knobs.status}" * (
            why.startswith("governor") and knobs.status.exists())
        raise UsageError(f"the baseline cannot be had: no {why}{hint}")
    return ([column for column, why in lacks.items() if not why],
            [f"{column.name}: no {why}" for column, why in lacks.items() if why])


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


def load(tools: Path, khz: int, cell: Cell) -> Sample:
    """One load by the guest's shell, with the stopwatch and the disk's waits that are in
    @tools. What needs a trace or counters of a guest is not measured. ValueError: it failed."""
    path = f"{tools}:{os.environ['PATH']}"
    process = subprocess.Popen(
        ["busybox", "sh", "-c", 'rm -f /tmp/output; . ./programs.sh; eval "$RUN"; code=$?; '
         '[ "$PRINTS" = 0 ] || tail -n 1 $OUTPUT; '
         '[ $code = 0 ] || tail -n 5 $OUTPUT >&2 2>/dev/null; exit $code'],
        cwd=SCRIPTS, env=os.environ | {
            "PATH": path, "SCRIPTS": str(SCRIPTS), "DISK": f"LD_PRELOAD={tools / DISK}",
            "RUN": cell.load.run, "N": cell.parameter, "SEED": str(cell.seed),
            "PRINTS": str(len(cell.load.prints))},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        start_new_session=True)
    try:
        out, said = process.communicate()
    finally:
        _end(process.pid)
        process.wait()
    words = out.split()
    try:
        found = store.parse(cell, [str(process.returncode), *words[:5], *"00000", *words[5:]], khz)
    except ValueError as error:
        said = " | ".join(said.strip().splitlines())
        raise ValueError(f"{error}" + f": {said}" * bool(said)) from None
    if found.of["W"] > _WRAPPED_W:
        return load(tools, khz, cell)
    return Sample(cell, {name: found.of[name] for name in (*MEASURES, *cell.load.prints)})


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


def cells(column: Column, cpus: int, seed: int, names: Sequence[str] = tuple(LOADS)
          ) -> list[Cell]:
    """A pass over loads."""
    return [Cell("host", "this", cpus, column, LOADS[name], parameter, seed) for name in names
            for parameter in dict.fromkeys(plan.number(word, cpus) for word in LOADS[name].host)]


def part(of: Sequence[Column]) -> plan.Part:
    """For a table: its own schedutil and menu are what all is over."""
    return plan.Part("host", "", ("this",), 1, tuple(c.name for c in of), tuple(LOADS),
                     judged=(), seeds=SEEDS)


def run(knobs: Knobs, measure: Callable[[Cell], Sample], tell: Callable[[str], None],
        around: AbstractContextManager[None]) -> tuple[list[Column], store.Measured, list[str]]:
    """And what could not be put back. @around: what the loads need. Columns take turns, so
    that what changes over hours, like the temperature, changes all of them."""
    of, without = columns(knobs)
    for line in without:
        tell(f"left out: {line}")
    found = store.Measured()
    lost: list[str] = []
    try:
        with restored(knobs, lost) as saved, around:
            for seed, column in product(range(1, SEEDS + 1), of):
                tell(f"{seed} of {SEEDS}, {column.name} ...")
                put_back(saved)
                refused = ""
                try:
                    knobs.apply(column)
                except OSError as error:
                    refused = str(error)
                for cell in cells(column, os.cpu_count() or 1, seed):
                    try:
                        if refused:
                            raise ValueError(refused)
                        found.samples.append(measure(cell))
                    except ValueError as error:
                        found.failed.append(f"{cell}: {error}")
    finally:
        for line in lost:
            tell(f"not put back: {line}")
    return of, found, lost
