# SPDX-License-Identifier: GPL-2.0
"""What people attach to a report, read into one Material.

read() takes files, folders, archives and compressed ones, however they were copied: quoted
in a mail, indented, with line numbers, colours, or other ends of lines.  dialects.py knows
the formats.  Nothing is judged here: what is not in the files is absent, and what two files
say differently of the same thing is a conflict.
"""
from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from glob import iglob
from importlib import import_module
from itertools import chain, islice
from quopri import decodestring
from typing import IO, Any, NamedTuple


class Where(NamedTuple):
    """A line, as it is shown: without quote marks, colours and the name of the host."""
    file: str
    line: int           # from 1 on; 0: the file as a whole
    text: str
    kind: str = ""      # of the line: turbostat, lscpu, ...

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class Fact(NamedTuple):
    value: Any
    where: Where


class Register(NamedTuple):
    cpu: int | None  # None: not told of which
    value: int
    where: Where


class Part(NamedTuple):
    """Lines of one kind in one file; @kind: turbostat, lscpu, sysfs, ..."""
    file: str
    kind: str
    first: int
    lines: int


class Conflict(NamedTuple):
    """Two values of what a machine has one of."""
    what: str
    first: Fact
    second: Fact


class Logical(NamedTuple):
    """A logical CPU's place; @small: on an E-core, None if not told."""
    package: int
    core: int
    small: bool | None


@dataclass
class Table:
    """Of turbostat: column to text; a cell that is not printed is absent."""
    columns: list[str]
    rows: list[tuple[dict[str, str], Where]] = field(default_factory=list)


#: Of these a machine has one.
UNIQUE = ("vendor", "family", "model", "stepping", "name", "base ratio", "sockets", "cores")


@dataclass
class Material:
    """What all files together say; of several values the first counts."""
    recognised: list[Part] = field(default_factory=list)
    #: (file, why it says nothing)
    unknown: list[tuple[str, str]] = field(default_factory=list)
    registers: dict[int, list[Register]] = field(default_factory=dict)
    #: (name of the register, line): cut off, so not among the registers
    cut: list[tuple[str, Where]] = field(default_factory=list)
    #: CPUID: (leaf, sub-leaf) to (eax, ebx, ecx, edx) of the first CPU
    leaves: dict[tuple[int, int], Fact] = field(default_factory=dict)
    #: Path below /sys, or "proc/cmdline" and the like, to the content
    sysfs: dict[str, Fact] = field(default_factory=dict)
    #: vendor, family, model, stepping, name, microcode, flags (a set), hypervisor, cpus,
    #: sockets, cores (of a socket), threads (of a core), hybrid, hwp, tdp_w, tsc_mhz
    cpu: dict[str, Fact] = field(default_factory=dict)
    logical: dict[int, Logical] = field(default_factory=dict)
    bus_khz: Fact | None = None
    tables: list[Table] = field(default_factory=list)
    #: Lines that a tool has decoded, by kind: "turbostat", "cpupower", ...
    said: dict[str, list[Where]] = field(default_factory=dict)
    #: The kernel's log
    log: list[Where] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    end: Where | None = None         # the last line

    def register(self, address: int, cpu: int | None = None) -> Register | None:
        """The first that was read, of @cpu if given."""
        return next((found for found in self.registers.get(address, ())
                     if cpu is None or found.cpu == cpu), None)

    def value(self, address: int, default: int = 0) -> int:
        found = self.register(address)
        return default if found is None else found.value

    def leaf(self, leaf: int, register: int, sub: int = 0) -> int:
        """0 if nobody has read it."""
        found = self.leaves.get((leaf, sub))
        return found.value[register] if found else 0

    def known(self, name: str, default: Any = None) -> Any:
        """Of the CPU."""
        return self.cpu[name].value if name in self.cpu else default

    def file(self, path: str) -> str:
        """Of sysfs; nothing if it is not in the files."""
        return self.sysfs[path].value if path in self.sysfs else ""

    def per_cpu(self, name: str) -> dict[int, Fact]:
        """Files such as "cpufreq/scaling_governor", by CPU."""
        found = {}
        for path, fact in self.sysfs.items():
            match = re.match(r"devices/system/cpu/cpu(\d+)/(.*)", path)
            if match and match[2] == name:
                found[int(match[1])] = fact
        return dict(sorted(found.items()))

    def put(self, name: str, value: Any, where: Where) -> None:
        """Of the CPU: the first counts, another is a conflict."""
        self._unique(name, Fact(value, where), self.cpu)

    def _unique(self, name: str, fact: Fact, table: dict[str, Fact]) -> None:
        first = table.setdefault(name, fact)
        same = first.value == fact.value or name == "name" and (
            first.value.split() == fact.value.split())
        if name in UNIQUE and not same and not any(
                known.what == name for known in self.conflicts):
            self.conflicts.append(Conflict(name, first, fact))

    def put_register(self, address: int, register: Register) -> None:
        known = self.registers.setdefault(address, [])
        if len(known) < MOST_CPUS and register not in known:
            known.append(register)

    def put_file(self, path: str, value: str, where: Where) -> None:
        if len(self.sysfs) < MOST_FILES and len(path) < 300:
            self.sysfs.setdefault(path, Fact(value, where))


MOST_CPUS, MOST_FILES, MOST_LINES = 4096, 60_000, 20_000
#: Bytes: of a text, of a file in a tree, of all that an archive holds, of a line.
MOST_TEXT, MOST_FILE, MOST_ARCHIVE, LONGEST = 32 << 20, 8 << 20, 2 << 30, 8192
#: Lines of all texts together: some 2 s.
MOST_READ = 300_000
#: So much of a line is of interest: a register of 512 CPUs.
LINE = 8000
#: A text in whose first lines nothing is known is left.
PATIENCE = 20_000

ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
QUOTE = re.compile(r"(?:\s|>(?!=)|&gt;|\|(?=\s))+")
MARKS = re.compile(r"\[/?(?:color|b|i|u|code|quote|size|font|spoiler|noparse)(?:=[^\]]*)?\]", re.I)
#: Of a mail's quoted-printable text; "a=3" is not.
ENCODED = re.compile(r"=(?:3D|C2=A0|20$|\r?$)")
NUMBERED = re.compile(r"\s*(\d{1,6})[.:|)]?(?:\s|$)")


def clean(line: str) -> str:
    """Without quote marks, colours, a forum's marks, blanks around it."""
    if "\x1b" in line:
        line = ANSI.sub("", line)
    if "[" in line:
        line = MARKS.sub("", line)
    line = line[:LINE].strip("\0\ufeff \t\r\n\x0b\x0c\xa0")
    if line[:1] in ">&|" and (match := QUOTE.match(line)):
        line = line[match.end():]
    return line


#: Names of people and hosts, addresses, identifiers; what would move a terminal's cursor.
PRIVATE = re.compile(
    r"(?<=\bhome/)[^/\s]+|(?<=\bUsers/)[^/\s]+|[\w.-]+@(?:[a-z]|\d+\.\d+\.\d+)[\w.-]*"
    r"|\b(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b|\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b",
    re.I)
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: str) -> str:
    """Without what is nobody's business."""
    return CONTROL.sub(" ", PRIVATE.sub("...", text))


def _numbered(lines: Sequence[str]) -> bool:
    """Does each line begin with its number, as forums and `cat -n` print them?"""
    if len(lines) < 3:
        return False
    found = [NUMBERED.match(line) for line in lines]
    if not found[0]:
        return False
    first = int(found[0][1])
    right = sum(1 for at, match in enumerate(found) if match and int(match[1]) == first + at)
    return right > 0.9 * len(lines)


def _decoded(pairs: Iterable[tuple[str, bool]]) -> Iterator[tuple[str, bool]]:
    """Of a mail's quoted-printable lines; those that end with = go on in the next."""
    before = ""
    for line, whole in pairs:
        if line.rstrip("\r\n").endswith("=") and len(before) < LONGEST:
            before += line.rstrip("\r\n")[:-1]
            # Each has a number, as the file has them
            yield "\n", True
            continue
        text = decodestring((before + line).encode()).decode("utf-8", "replace")
        before = ""
        yield text, whole
    if before:
        yield before, False


def _decoder(head: bytes) -> str:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if head[1::2].count(0) > 0.4 * len(head[1::2]) > 0:
        return "utf-16-le"
    if head[::2].count(0) > 0.4 * len(head[::2]) > 0:
        return "utf-16-be"
    return "utf-8"


def lines(stream: IO[bytes], head: bytes) -> Iterator[tuple[str, bool]]:
    """(a line, does it end with a newline); as the stream has them."""
    coding = _decoder(head)
    if coding == "utf-8":
        raws: Iterable[bytes] = iter(lambda: stream.readline(LONGEST), b"")
        pairs = ((raw.decode("utf-8", "replace"), raw[-1:] in b"\n\r") for raw in raws)
    else:
        text = codecs.getreader(coding)(stream, "replace")      # of a tar, not seekable
        pairs = ((line, line[-1:] == "\n") for line in iter(lambda: text.readline(LONGEST), ""))
    for line, whole in pairs:
        if "\r" in line[:-2]:   # old Macs' ends, and progress that overwrites itself
            *before, line = line.rstrip("\r\n").split("\r")
            yield from ((part, True) for part in before)
        yield line, whole


#: Files of a machine that say something, below /sys or as proc/...
WANTED = re.compile(
    r"devices/system/cpu/(?:online|offline|possible|present|isolated|nohz_full"
    r"|(?:smt|cpuidle|intel_pstate|amd_pstate|cpufreq)/[^/]+|cpufreq/policy\d+/.+"
    r"|cpu\d+/(?:online|cpu_capacity|(?:cpufreq|topology|acpi_cppc|thermal_throttle)/.+"
    r"|cpuidle/state\d+/[^/]+|microcode/version"
    r"|power/(?:energy_perf_bias|pm_qos_resume_latency_us)))$"
    r"|devices/system/cpu/intel_uncore_frequency/[^/]+/(?:initial_)?(?:max|min)_freq_khz$"
    r"|devices/(?:cpu_core|cpu_atom|cpu_lowpower)/cpus$"
    r"|devices/system/clocksource/clocksource0/\w+$"
    r"|class/(?:powercap|thermal|power_supply)/[^/]+/(?:name|enabled|type|mode|policy|temp"
    r"|online|status|cur_state|max_state|constraint_\d_\w+|energy_uj|max_energy_range_uj)$"
    r"|fs/cgroup/(?:.+/)?(?:cpu\.(?:stat|max|cfs_(?:quota|period)_us)|cpuacct\.usage)$"
    r"|class/dmi/id/(?:sys_vendor|product_name|bios_version|bios_date)$"
    r"|firmware/acpi/platform_profile(?:_choices)?$|hypervisor/type$"
    r"|module/(?:intel_idle|processor|cpuidle\w*|aperfmperf|intel_pstate|amd_pstate|workqueue)"
    r"/parameters/\w+$|kernel/debug/(?:x86|pmc_core|sched)/\w+$"
    r"|proc/(?:cmdline|uptime|loadavg|version|sys/kernel/(?:sched_\w+|nmi_watchdog|watchdog"
    r"|timer_migration|numa_balancing))$")
#: The same as patterns, for a machine or a whole copy of one.
GLOBS = tuple(f"{top}/{name}" for top, names in (
    ("sys/devices/system/cpu", ("*", "*/*", "*/*/*", "*/cpuidle/state*/*")),
    ("sys", ("devices/cpu_*/cpus", "devices/system/clocksource/clocksource0/*",
             "class/powercap/*/*", "class/thermal/*/*", "class/power_supply/*/*",
             "class/dmi/id/*", "firmware/acpi/*", "hypervisor/type", "module/*/parameters/*",
             "kernel/debug/x86/*", "kernel/debug/pmc_core/*", "kernel/debug/sched/*")),
    ("proc", ("*", "sys/kernel/*"))) for name in names)
#: Of an sosreport, supportconfig or hw-probe.
REPORT = re.compile(r"(?:^|/)(?:sos_commands|sos_reports|sos_logs|sosreport-[^/]*)(?:/|$)")
OF_REPORT = re.compile(
    r"sos_commands/(?:processor|kernel|hardware|cpu|boot|power|virt)/[^/]+$"
    r"|(?:^|/)var/log/(?:dmesg|boot\.msg)$|^[^/]*/?dmesg[^/]*$")
ROOT_OF_REPORT = re.compile(r"^\.?/?sosreport-[^/]*/")
#: A line of ftrace or of perf script
TRACE = re.compile(r" \[\d{3}\] .*?\d[.:]\d+: +(?:\w+:)?"
                   r"(?:sched|cpu|irq|hrtimer|timer|policy)_\w+:")
BINARY = ((b"PERFILE2", "perf.data: a trace, for cpuwhy idle and freq"),
          (b"\x17\x08\x44tracing", "trace.dat: a trace, for cpuwhy idle and freq"),
          (b"\x7fELF", "a program"), (b"%PDF", "a PDF"), (b"\x89PNG", "a picture: give the text"),
          (b"\xff\xd8\xff", "a picture: give the text"))
SHORT = {"cpu.": "fs/cgroup", "cpu": "devices/system/cpu", "policy": "devices/system/cpu/cpufreq",
         "state": "devices/system/cpu/cpu0/cpuidle", "intel_pstate": "devices/system/cpu",
         "amd_pstate": "devices/system/cpu", "cpuidle": "devices/system/cpu",
         "cpufreq": "devices/system/cpu/cpu0", "smt": "devices/system/cpu",
         "intel-rapl": "class/powercap", "thermal_zone": "class/thermal",
         "cooling_device": "class/thermal", "scaling_": "devices/system/cpu/cpu0/cpufreq",
         "cpuinfo_": "devices/system/cpu/cpu0/cpufreq",
         "energy_performance_": "devices/system/cpu/cpu0/cpufreq"}
IN_PROC = re.compile(r"(?:^|/)(proc/(?:[a-z]+$|sys/).*)")
IN_SYS = re.compile(r"(?:^|/)(?:sys/)?((?:devices/(?:system|cpu_\w+|virtual)|class|firmware"
                    r"|hypervisor|module|kernel/debug|fs/cgroup)/.*)")
SHORTENED = re.compile("(" + "|".join(map(re.escape, SHORT)) + r")[\w:.-]*(?:/|$)")


def sysfs_path(path: str, shortened: bool = False) -> str:
    """Below /sys, or proc/..., if such a file says something; else "". @shortened: also
    as it is called from within a directory."""
    if match := IN_PROC.search(path) or IN_SYS.search(path):
        name = match[1]
    elif shortened and (short := SHORTENED.match(path)):
        name = f"{SHORT[short[1]]}/{path}"
    else:
        return ""
    name = re.sub(r"^devices/virtual/(powercap|thermal|dmi)/", r"class/\1/", name)
    name = re.sub(r"^class/powercap/(?:[^/]+/)*(?=intel-rapl[^/]*/[^/]*$)", "class/powercap/", name)
    return name if WANTED.match(name) else ""


class _Files:
    """Opens what is named, and gives texts to the reader of lines."""

    def __init__(self, material: Material, reader: Any) -> None:
        self.material, self.reader, self.top = material, reader, "/"
        self.left = MOST_READ

    def skip(self, name: str, reason: str) -> None:
        if len(self.material.unknown) < 200:
            self.material.unknown.append((name, reason))

    def any(self, name: str) -> None:
        if name == "-":
            self.stream("standard input", sys.stdin.buffer)
        elif os.path.isdir(name):
            self.folder(name)
        else:
            try:
                with open(name, "rb") as file:
                    self.stream(name, file)
            except OSError as error:
                self.skip(name, error.strerror or str(error))

    # --- trees ---

    def folder(self, top: str) -> None:
        self.top = os.path.realpath(top)
        live = self.top == "/"
        for pattern in GLOBS:
            for path in sorted(iglob(os.path.join(top, pattern))):
                self.member(os.path.relpath(path, top), path, True)
        self.groups(top)
        if live:
            return
        budget = MOST_FILES
        for where, folders, files in os.walk(top):
            folders.sort()
            for file in sorted(files):
                path = os.path.join(where, file)
                name = os.path.relpath(path, top)
                budget -= 1
                if not budget:
                    return self.skip(top, f"has over {MOST_FILES} files: the others are left out")
                if not re.match(r"(?:sys|proc)/", name):
                    self.member(name, path, REPORT.search(path) is not None)
        return None

    def groups(self, top: str) -> None:
        """Of cgroups of any depth."""
        self.top = os.path.realpath(top)
        walk = os.walk(os.path.join(top, "sys/fs/cgroup"))
        for where, folders, files in islice(walk, MOST_FILES):
            folders.sort()
            for path in (os.path.join(where, file) for file in files if file.startswith("cpu")):
                self.member(os.path.relpath(path, top), path, True)

    def member(self, name: str, path: str, only_known: bool) -> None:
        """A file of a folder. A link that leads out of a copy is a file of this machine."""
        if not self.wanted(name, only_known):
            return
        try:
            real = os.path.realpath(path)
            if not os.path.isfile(real) or os.path.commonpath((self.top, real)) != self.top:
                return
            with open(path, "rb") as file:
                self.inside(name, file)
        except OSError:
            return

    @staticmethod
    def wanted(name: str, only_known: bool) -> bool:
        return bool(sysfs_path(name)) or name.endswith("proc/cpuinfo") or (
            bool(OF_REPORT.search(name)) if only_known
            else not re.search(r"(?:^|/)(?:sys|proc)/", name))

    def inside(self, name: str, stream: IO[bytes], depth: int = 0) -> None:
        """A file of a tree: one of sysfs is what its path says, others are texts."""
        name = CONTROL.sub("?", ROOT_OF_REPORT.sub("", name))
        if path := sysfs_path(name):
            text = stream.read(1 << 16).decode("utf-8", "replace").strip("\0\n ")
            self.reader.tree_file(name, path, text)
        else:
            self.stream(name, stream, depth)

    def tar(self, name: str, stream: IO[bytes], depth: int) -> None:
        known = False
        with tarfile.open(fileobj=stream, mode="r|") as tar:
            for entry in tar:
                tar.members = []        # type: ignore[attr-defined] # else they pile up
                known = known or REPORT.search(entry.name) is not None
                if not entry.isfile() or not self.wanted(entry.name, known):
                    continue
                if tar.offset > MOST_ARCHIVE:
                    self.skip(name, "is too large: the rest is left out")
                    break
                if entry.size > MOST_FILE and not OF_REPORT.search(entry.name):
                    self.skip(entry.name, f"has {entry.size >> 20} MB")
                elif file := tar.extractfile(entry):
                    self.inside(entry.name, file, depth + 1)

    def zip(self, name: str, stream: IO[bytes]) -> None:
        with zipfile.ZipFile(stream) as archive:
            for entry in archive.infolist():
                if not entry.is_dir() and self.wanted(entry.filename, False):
                    with archive.open(entry) as file:
                        self.inside(entry.filename, file, 1)

    # --- one file ---

    def stream(self, name: str, stream: IO[bytes], depth: int = 0) -> None:
        """What it is by its first bytes."""
        raw: Any = stream
        file = raw if hasattr(raw, "peek") else io.BufferedReader(raw, 1 << 16)
        try:
            self.by_magic(name, file, file.peek(1024)[:1024], depth)
        except (OSError, EOFError, lzma.LZMAError, zlib.error, tarfile.TarError, RuntimeError,
                zipfile.BadZipFile, ValueError) as error:
            self.skip(name, f"is damaged or cut off: {error}")

    def by_magic(self, name: str, file: IO[bytes], head: bytes, depth: int) -> None:
        if not head:
            return self.skip(name, "is empty")
        packed: IO[bytes] | None = None
        if head.startswith(b"\x1f\x8b"):
            packed = gzip.GzipFile(fileobj=file)        # type: ignore[assignment]
        elif head.startswith(b"\xfd7zXZ\0"):
            packed = lzma.LZMAFile(file)
        elif head.startswith(b"BZh"):
            packed = bz2.BZ2File(file)
        elif head.startswith(b"\x28\xb5\x2f\xfd"):
            packed = _zstd(file)
            if packed is None:
                return self.skip(name, "is compressed by zstd: unpack it first (zstd -d)")
        tar = head[257:262] == b"ustar"
        if depth > 3 and (tar or packed is not None):
            return self.skip(name, "is packed too often: unpack it first")
        if packed is not None:
            return self.stream(name, packed, depth + 1)
        if tar:
            return self.tar(name, file, depth)
        if head.startswith(b"PK\3\4"):
            if depth or not file.seekable():
                return self.skip(name, "is a zip file within another: unpack it first")
            return self.zip(name, file)
        for magic, what in BINARY:
            if head.startswith(magic):
                return self.skip(name, f"is {what}")
        if _decoder(head) == "utf-8" and head.count(0) > len(head) // 50:
            return self.skip(name, "is binary")
        return self.text(name, file, head)

    def text(self, name: str, file: IO[bytes], head: bytes) -> None:
        pairs = lines(file, head)
        first = list(islice(pairs, 60))
        numbers = _numbered([line for line, _ in first])
        pairs = chain(first, pairs)
        if sum(1 for line, _ in first if ENCODED.search(line)) >= 3:
            pairs = _decoded(pairs)
        reader, size, known, idle = self.reader, 0, 0, 0
        reader.begin(name)
        for number, (line, whole) in enumerate(pairs, 1):
            size += len(line)
            self.left -= 1
            if numbers:
                line = NUMBERED.sub("", line, 1)
            was, known = known, reader.line(number, clean(line), whole and len(line) <= LINE)
            idle = 0 if known > was else idle + 1
            if size > MOST_TEXT or idle > PATIENCE or self.left < 0:
                self.skip(name, f"read up to line {number}; the rest is left out")
                break
        reader.end()
        if not reader.known:
            self.skip(name, "a trace, for cpuwhy idle and freq"
                      if any(TRACE.search(line) for line, _ in first) else
                      "no line of a kind that is known here")


def _zstd(file: IO[bytes]) -> IO[bytes] | None:
    """From Python 3.14 on."""
    try:
        opened: IO[bytes] = import_module("compression.zstd").ZstdFile(file)
    except ImportError:
        return None
    return opened


def read(names: Sequence[str]) -> Material:
    """Files, folders and archives of one machine; "-" is standard input, "/" this machine.
    Nothing that is wrong with a file is an error: it is in `unknown`."""
    from . import dialects
    material = Material()
    reader = dialects.Reader(material)
    files = _Files(material, reader)
    for name in names:
        files.any(name)
    reader.finish()
    return material


def read_groups(root: os.PathLike[str]) -> Material:
    """Only the cgroups of read([root])."""
    from . import dialects
    material = Material()
    _Files(material, dialects.Reader(material)).groups(os.fspath(root))
    return material


def read_texts(files: Iterable[tuple[str, str]]) -> Material:
    """The same of (name, text) in memory."""
    from . import dialects
    material = Material()
    reader = dialects.Reader(material)
    for name, text in files:
        _Files(material, reader).stream(name, io.BytesIO(text.encode()))
    reader.finish()
    return material


def read_text(text: str, name: str = "text") -> Material:
    return read_texts([(name, text)])
