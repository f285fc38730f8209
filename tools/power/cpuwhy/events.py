# SPDX-License-Identifier: GPL-2.0
"""Trace events as a stream, in time order.

perf.data is read by `perf script`, trace.dat by `trace-cmd report`; text that one of
them has printed is read as it is. Nothing is kept, so that memory does not grow with
the length of a trace.
"""
from __future__ import annotations

import bz2
import gzip
import lzma
import re
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

from .errors import Fail

#: (time in ns, CPU, what stands before the CPU, name, the event's own text)
Event = tuple[int, int, str, str, str]
#: The same without the name
Handler = Callable[[int, int, str, str], None]

#: Characters of a line; what has more is no trace, and may have no end.
LONGEST = 1 << 14
#: Lines without an event from which on a text is no trace.
PATIENCE = 20_000
PACKAGES = {"perf": "linux-perf", "trace-cmd": "trace-cmd"}
#: Packed files and who opens them; None: no module of Python's before 3.14.
PACKED: dict[bytes, tuple[str, Callable[..., Any] | None]] = {
    b"\xfd7zXZ": ("xz", lzma.open), b"\x1f\x8b": ("gzip", gzip.open), b"BZh": ("bzip2", bz2.open),
    b"\x28\xb5\x2f\xfd": ("zstd", None), b"\x04\x22\x4d\x18": ("lz4", None)}
#: A packed perf.data or trace.dat is unpacked to a file, for its reader.
MOST_UNPACKED = 4 << 30
PERF_MAGIC, PERF_MAGIC_1 = b"PERFILE2", b"PERFFILE"
TRACE_CMD_MAGIC = b"\x17\x08\x44tracing"

# "comm 123 [001] 12.345678901: group:event: text" of perf and
# "instance: comm-123 [001] 12.345678901: event: text" of trace-cmd and tracefs,
# which may have flags after the CPU.
LINE = re.compile(r"^(?P<head>.*?)\[(?P<cpu>\d+)\]\s+(?P<flags>[^\s\d]\S*\s+|\d[^\s.]*\s+)?"
                  r"(?P<time>\d+(?:\.\d+)?):\s+(?:[\w-]+:)?(?P<event>\w+): ?(?P<text>.*)$")
PERF_TASK = re.compile(r"^\s*(?P<comm>.*?)\s+(?P<tid>-?\d+)\s*$")
TRACE_TASK = re.compile(r"^(?:\S+:\s+)?\s*(?P<comm>.*?)-(?P<tid>\d+)\s*(?:\([^)]*\)\s*)?$")
BUFFER = re.compile(r"^\S+:\s")
LOST_TRACE_CMD = re.compile(r"^CPU:\s*(\d+) \[(?:(\d+) )?(?:LOST )?EVENTS? (?:DROPPED|LOST)\]")
LOST_PERF = re.compile(r"\[(\d+)\].*PERF_RECORD_LOST\w* lost (\d+)")
LOST_TRACEFS = re.compile(r"^CPU:\s*(\d+) \[LOST (?:(\d+) )?EVENTS\]")
FRAME = re.compile(r"^(?:=>\s*|\s+(?:[0-9a-f]+\s+)?)([A-Za-z_][\w.]*)(?:\+0x[0-9a-f]+)?")
ARCH = re.compile(r"^# arch\s*:\s*(\S+)")
SAMPLE_TIME = re.compile(r"^# time of (first|last) sample : (\d+)\.(\d+)")


@dataclass
class Facts:
    """What a trace says of itself."""
    name: str
    arch: str = ""
    events: int = 0
    lost: dict[int, int] = field(default_factory=dict)      # per CPU, 1 if not told how many
    seen: dict[str, int] = field(default_factory=dict)
    first: int = 0
    last: int = 0
    end: int = 0            # what the header says
    bad_lines: int = 0
    plain_ns: bool = False
    other_buffers: int = 0


def task(head: str) -> tuple[str, int]:
    """Name and number of the task that was running when the event was."""
    match = PERF_TASK.match(head) or TRACE_TASK.match(head)
    if not match:
        return head.strip(), -1
    tid = int(match["tid"])
    return ("<idle>" if tid == 0 else match["comm"]), tid


def switch(text: str) -> tuple[str, str, str] | None:
    """Of sched_switch: the number of the task before, name and number of the next, in the
    kernel's own words or in those of trace-cmd's plugin ("comm:1 [120] S ==> comm:2 [120]")."""
    before, _, after = text.partition(" ==> ")
    try:
        if after.startswith("next_comm="):
            comm, _, rest = after[10:].rpartition(" next_pid=")
            previous = before[before.rindex(" prev_pid=") + 10:]
            return previous.split(None, 1)[0], comm, rest.split(None, 1)[0]
        comm, _, tid = after[:after.rindex(" [")].rpartition(":")
        return before[:before.rindex(" [")].rpartition(":")[2], comm, tid
    except (ValueError, IndexError):
        return None


@dataclass
class Source:
    """A trace that can be read once from start to end."""
    path: Path
    header: str = ""

    def __post_init__(self) -> None:
        if str(self.path) != "-" and not self.path.is_file():
            raise Fail(f"{self.path}: " + ("no file with a trace in it" if self.path.exists()
                                           else "no such file"))
        self.file = self.path           # what is read: the same, or what was packed in it
        self.packing = ""
        self.opener: Callable[..., IO[bytes]] | None = None
        self.kind = self._kind()
        if self.kind == "perf":
            self.header = self._ask("perf", "script", "-i", str(self.file), "--header-only")

    def _ask(self, *command: str) -> str:
        try:
            return subprocess.run(command, capture_output=True, text=True,
                                  errors="replace").stdout
        except FileNotFoundError:
            raise Fail(f"{self.path}: needs {command[0]} to be read (Debian:"
                       f" {PACKAGES[command[0]]})") from None

    def _kind(self) -> str:
        if str(self.path) == "-":
            return "text"
        with self.path.open("rb") as f:
            start = f.read(16)
        for magic, (self.packing, self.opener) in PACKED.items():
            if start.startswith(magic):
                start = self._unpacked()
                break
        else:
            self.packing, self.opener = "", None
        if not start:
            raise Fail(f"{self.path}: is empty")
        if start.startswith((PERF_MAGIC, PERF_MAGIC_1)):
            return "perf"
        if start.startswith(PERF_MAGIC[::-1]):
            raise Fail(f"{self.path}: perf.data of a machine of the other byte order;"
                       " read it there and give the text of `perf script --ns`")
        if start.startswith(TRACE_CMD_MAGIC):
            return "trace-cmd"
        if b"\0" in start:
            raise Fail(f"{self.path}: neither perf.data nor trace.dat nor text of"
                       " `perf script` or `trace-cmd report`")
        return "text"

    def _unpacked(self) -> bytes:
        """How the packed file begins; one that is not text is unpacked beside others' eyes."""
        if self.opener is None:
            raise Fail(f"{self.path}: is compressed by {self.packing}: unpack it first")
        try:
            with self.opener(self.path, "rb") as packed:
                start = packed.read(16)
                if start.startswith((PERF_MAGIC, PERF_MAGIC_1, TRACE_CMD_MAGIC)):
                    # Removed with this object
                    self.copy = tempfile.NamedTemporaryFile(prefix="cpuwhy-")
                    self.file = Path(self.copy.name)
                    self.copy.write(start)
                    size = 0
                    while block := packed.read(1 << 20):
                        size += self.copy.write(block)
                        if size > MOST_UNPACKED:
                            raise Fail(f"{self.path}: unpack it first: it has more than"
                                       f" {MOST_UNPACKED >> 30} GB")
                    self.copy.flush()
        except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
            raise Fail(f"{self.path}: cut off or damaged ({error})") from error
        return start

    @property
    def is_text(self) -> bool:
        return self.kind == "text"

    def command(self) -> list[str]:
        if self.kind == "perf":
            # Without call chains perf would put the address of the event into its line.
            fields = "comm,tid,cpu,time,event,trace" + ",ip,sym" * ("CALLCHAIN" in self.header)
            return ["perf", "script", "-i", str(self.file), "--ns", "--show-lost-events",
                    "-F", fields]
        # The plugins' forms take a fifth less time than the events' own.
        return ["trace-cmd", "report", "-i", str(self.file), "-t", "-n", "sched_waking"]

    @contextmanager
    def lines(self) -> Iterator[IO[str]]:
        if self.kind in ("perf", "trace-cmd"):
            with self._piped() as lines:
                yield lines
        elif str(self.path) == "-":
            with open(0, errors="replace", closefd=False) as f:
                yield f
        else:
            opener: Callable[..., Any] = self.opener or open
            try:
                with opener(self.path, "rt", errors="replace") as f:
                    yield f
            except (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error) as error:
                raise Fail(f"{self.path}: cut off or damaged ({error})") from error

    @contextmanager
    def _piped(self) -> Iterator[IO[str]]:
        command = self.command()
        with tempfile.TemporaryFile("w+") as said:
            try:
                child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True,
                                         errors="replace", bufsize=1 << 20)
            except FileNotFoundError:
                raise Fail(f"{self.path}: needs {command[0]} to be read (Debian:"
                           f" {PACKAGES[command[0]]})") from None
            assert child.stdout
            try:
                with child.stdout:
                    yield child.stdout
            except BaseException:
                child.kill()
                child.wait()
                raise
            status = child.wait()
            said.seek(0)
            self._judge(command[0], status, said.read())

    def _judge(self, reader: str, status: int, said: str) -> None:
        """The readers end with 0 for many a file that they could not read."""
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        for line in lines:
            low = line.lower()
            if "incompatible file format" in low and self._newer():
                raise Fail(f"{self.path}: made by a newer {reader} than the one here: give the"
                           f" text of `{reader} script --ns` from there")
            if ("incompatible file format" in low or "data size field is 0" in low
                    or "failed to process" in low or "truncated" in low or "corrupt" in low):
                raise Fail(f"{self.path}: cut off or damaged; {reader} says: {line}")
        if status:
            # perf says of any file which fields its events do not have.
            lines = [line for line in lines if not line.endswith("Ignoring.")]
            last = lines[-1] if lines else f"exit status {status}, so it is cut off or damaged"
            raise Fail(f"{self.path}: {reader} cannot read it: {last}")

    def _newer(self) -> bool:
        """Is it only that this perf does not know the events' form?"""
        done = subprocess.run(["perf", "script", "-v", "-i", str(self.file), "--header-only"],
                              capture_output=True, text=True, errors="replace")
        return "more recent and unsupported" in done.stderr + done.stdout

    def lost_at_end(self) -> dict[int, int]:
        """Events that a full buffer kept out, which leave no mark among the others."""
        if self.kind != "trace-cmd":
            return {}
        said = self._ask("trace-cmd", "report", "-i", str(self.file), "--stat")
        lost: dict[int, int] = {}
        cpu = 0
        for line in said.splitlines():
            name, _, value = line.partition(":")
            if name == "CPU" and value.strip().isdigit():
                cpu = int(value)
            elif name in ("overrun", "commit overrun", "dropped events") and int(value):
                lost[cpu] = lost.get(cpu, 0) + int(value)
        return lost

    def uname_machine(self) -> str:
        if self.kind != "trace-cmd":
            return ""
        said = self._ask("trace-cmd", "report", "-i", str(self.file), "--uname")
        words = [line.split() for line in said.splitlines() if line.startswith("Linux ")]
        return words[-1][-1] if words else ""


class Reader:
    """Reads a source to its end and gives each event to the handler of its name."""

    def __init__(self, source: Source, handlers: Mapping[str, Handler],
                 lost: Callable[[int, int], None] = lambda cpu, count: None,
                 frame: Callable[[str], None] = lambda symbol: None,
                 progress: Callable[[int, Facts], None] = lambda now, facts: None,
                 context: Callable[[int, int, str], None] = lambda now, cpu, flags: None):
        self.source, self.handlers = source, handlers
        self._lost, self._frame, self._progress, self._context = lost, frame, progress, context
        self.started = False        # there was an event
        self.facts = Facts(str(source.path), arch=source.uname_machine())
        for line in source.header.splitlines():
            self._header(line)

    def run(self) -> Facts:
        facts = self.facts
        with self.source.lines() as lines:
            self._read(lines)
        for cpu, count in self.source.lost_at_end().items():
            facts.lost[cpu] = facts.lost.get(cpu, 0) + count
        if not facts.events:
            raise Fail(f"{facts.name}: {self._why_nothing()}")
        return facts

    def _why_nothing(self) -> str:
        if self.source.kind in PACKAGES:
            return f"{self.source.kind} finds no events in it; cut off, or nothing was recorded"
        return ("no events in it, must be perf.data, trace.dat or the text of"
                " `perf script --ns` or `trace-cmd report -t`")

    def _read(self, lines: IO[str]) -> None:
        handlers = self.handlers
        counts: dict[str, list[int]] = {}
        plain: dict[str, tuple[str, list[int], Handler | None]] = {}
        number = now = first = latest = 0
        for now, cpu, head, name, text in self._events(lines):
            known = plain.get(name)
            if known is None:
                short = name.strip().rpartition(":")[2]
                known = plain[name] = (short, counts.setdefault(short, [0]), handlers.get(short))
            known[1][0] += 1
            number += 1
            if known[2] is not None:
                try:
                    known[2](now, cpu, head, text)
                except (ValueError, IndexError):    # cut off, or no number where one stands
                    self.facts.bad_lines += 1
            if not first:
                first = latest = now
                self.started = True
            if now < latest and self.source.is_text:
                raise Fail(f"{self.facts.name}: the times go back from {latest / 1e9:.6f} to"
                           f" {now / 1e9:.6f} s: not in the order of time, or two traces in one"
                           " file; sort it first, or give one")
            if now > latest:
                latest = now
            if not number & 0xffff:
                self._progress(now, self.facts)
        facts = self.facts
        facts.events, facts.first, facts.last = number, first, latest
        facts.seen = {name: count[0] for name, count in counts.items()}

    def _events(self, lines: IO[str]) -> Iterator[Event]:
        # Most of the time is spent here: one line of usual form costs a split, three
        # slices and a look-up. Whatever is unusual goes through a regular expression.
        # trace.dat may have several buffers, and even another clock in each: the first
        # event's is read.
        several, buffer = self.source.kind == "trace-cmd", None
        for line in iter(partial(lines.readline, LONGEST), ""):
            at = line.find("] ")
            try:
                if line[at - 4] != "[":
                    raise ValueError
                stamp, name, text = line[at + 2:].split(": ", 2)
                if stamp[-10:-9] == ".":
                    now = int(stamp[:-10] + stamp[-9:])
                else:
                    now = int(stamp)        # some traces have plain ns; 1.234567 is no int
                    self.facts.plain_ns = True
                event = now, int(line[at - 3:at]), line[:at - 4], name, text
            except (ValueError, IndexError):
                unusual = self._unusual(line)
                if unusual is None:
                    continue
                event = unusual
            if several:
                if buffer is None:
                    match = BUFFER.match(event[2])
                    buffer = match[0] if match else " "
                if not event[2].startswith(buffer):
                    self.facts.other_buffers += 1
                    continue
            yield event

    def _unusual(self, line: str) -> Event | None:
        if line.startswith("#"):
            self._header(line)
            return None
        if self._is_loss(line):
            return None
        match = LINE.match(line)
        if match:
            seconds, dot, fraction = match["time"].partition(".")
            now = int(seconds + fraction.ljust(9, "0")[:9] * bool(dot))
            if match["flags"]:
                self._context(now, int(match["cpu"]), match["flags"])
            return now, int(match["cpu"]), match["head"], match["event"], match["text"]
        if line[:1] in "\t =" and (frame := FRAME.match(line)):
            self._frame(frame[1])
        elif line.strip() and not line.startswith("cpus="):
            self.facts.bad_lines += 1
            if self.facts.bad_lines == PATIENCE and not self.started:
                raise Fail(f"{self.facts.name}: {self._why_nothing()}")
        return None

    def _is_loss(self, line: str) -> bool:
        match = LOST_TRACE_CMD.match(line) or LOST_TRACEFS.match(line) or LOST_PERF.search(line)
        if not match:
            return False
        cpu, count = int(match[1]), int(match[2] or 1)
        self.facts.lost[cpu] = self.facts.lost.get(cpu, 0) + count
        self._lost(cpu, count)
        return True

    def _header(self, line: str) -> None:
        if match := ARCH.match(line):
            self.facts.arch = match[1]
        elif (match := SAMPLE_TIME.match(line)):
            value = int(match[2]) * 1_000_000_000 + int(match[3].ljust(9, "0"))
            if match[1] == "first":
                self.facts.first = value
            else:
                self.facts.end = value
