#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Hostile texts, folders and archives for everything that reads what people attach.

Each case is made of a seed, and runs in a process of its own under limits. It fails if
the reader dies, takes over 5 s or 100 MB, prints a traceback or more than a line with
status 2, or if explain or doctor print what was planted: a serial number, a MAC, a UUID,
names of a host and of a user.

In the top directory:
PYTHONPATH=tools:tools/power:tools/testing/virtual-silicon \\
    python3 -m cpuwhy.tests.fuzz_texts [--seconds N] [--seed N] [--samples DIR]
"""
from __future__ import annotations

import argparse
import bz2
import gzip
import io
import lzma
import os
import random
import re
import resource
import shutil
import signal
import sys
import tarfile
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parent / "data"
SECONDS, MEGABYTES = 5, 100
FRESH = 25     # MB of a process that has read its modules, and of pytest more
SECRETS = ("QX7SERIAL41", "de:ad:be:ef:00:42", "planthost", "plantuser",
           "0dd5ea70-0bad-4c0f-8a5e-5ec4e7000001")
SERIAL, MAC, HOST, USER, UUID = SECRETS
#: Lines that people attach without a thought.
PLANTED = (
    f"{USER}@{HOST}:~$ sudo turbostat",
    f"Mar  7 21:45:36 {HOST} kernel: [75145.414575] mce: CPU5: Package temperature above threshold,"
    " cpu clock throttled (total events = 678246)",
    f"[    0.000000] Linux version 6.1.0 ({USER}@{HOST}) (gcc 12.2) #1 SMP",
    f"[    0.000000] DMI: Maker Thing {SERIAL}/Board, BIOS 1.0 01/02/2024",
    f"[    0.000000] Command line: BOOT_IMAGE=/vmlinuz root=UUID={UUID} intel_idle.max_cstate=1"
    f" ip=:::::{HOST} ifname=eth0:{MAC}",
    f"[    2.000000] e1000e 0000:00:19.0 eth0: (PCI Express:2.5GT/s:Width x1) {MAC}",
    f"Linux {HOST} 6.1.0-18-amd64 #1 SMP PREEMPT_DYNAMIC x86_64 GNU/Linux",
    f"/home/{USER}/logs/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq:800000",
    f"/sys/class/dmi/id/product_serial:{SERIAL}", f"/sys/class/dmi/id/product_uuid:{UUID}",
    f"/sys/class/net/eth0/address:{MAC}", f"Serial Number: {SERIAL}", f"hostname: {HOST}",
    f"/proc/cmdline:root=UUID={UUID} intel_pstate=disable user={USER}",
)
#: What int() or a length is not ready for.
TOKENS = ("9" * 5000, "-1", "0x" + "f" * 400, "1e999", "nan", "²", "٣", "𝟗", "0", "4294967296",
          "18446744073709551616", "-0.0", "\x00", "\udcff", "\ufeff", "\u2028", "\x1b[31m", "%s",
          "{}", "[bold]", "[/]", "../../../etc/passwd", "=", ":", "> " * 500, "[" * 3000, "")
COMMANDS = ("read", "explain", "explain --json", "doctor", "doctor --json", "idle", "freq",
            "convert")


@dataclass
class Case:
    seed: int
    command: str
    paths: list[str]
    secret: bool        # must not show what was planted


def samples(directory: Path | None) -> list[bytes]:
    found = [path.read_bytes() for path in sorted((DATA / "reports").glob("*.txt"))]
    for name in ("guest.xz", "freq.xz"):
        with lzma.open(DATA / name) as file:
            found.append(file.read(40_000))
    tree = DATA / "badly-set-up"
    found.append(b"".join(f"/{path.relative_to(tree)}:".encode() + path.read_bytes()
                          for path in sorted(tree.rglob("*")) if path.is_file()))
    if directory:
        found += [path.read_bytes()[:200_000] for path in sorted(directory.rglob("*"))
                  if path.is_file()]
    return found


# --- texts -----------------------------------------------------------------------------

def _cut(r: random.Random, data: bytearray, known: list[bytes]) -> None:
    del data[r.randrange(len(data) + 1):]


def _splice(r: random.Random, data: bytearray, known: list[bytes]) -> None:
    other = r.choice(known)
    at, start = r.randrange(len(data) + 1), r.randrange(len(other) + 1)
    data[at:at] = other[start:start + r.randrange(5000)]


def _flip(r: random.Random, data: bytearray, known: list[bytes]) -> None:
    for _ in range(r.randrange(1, 40) if data else 0):
        data[r.randrange(len(data))] ^= 1 << r.randrange(8)


def _words(r: random.Random, data: bytearray, known: list[bytes]) -> None:
    """Numbers, or what stands between signs, become something else."""
    words = data.decode("latin-1").split(" ")
    for _ in range(r.randrange(1, 6)):
        words[r.randrange(len(words))] = r.choice(TOKENS).encode(
            "utf-8", "surrogatepass").decode("latin-1")
    data[:] = " ".join(words).encode("latin-1")


def _digits(r: random.Random, data: bytearray, known: list[bytes]) -> None:
    text = data.decode("latin-1")
    places = [at for at, char in enumerate(text) if char.isascii() and char.isdigit()]
    for at in sorted(r.sample(places, min(len(places), r.randrange(1, 8))), reverse=True):
        text = (text[:at] + r.choice(TOKENS[:12]).encode("utf-8").decode("latin-1")
                + text[at + 1:])
    data[:] = text.encode("latin-1")


def _lines(r: random.Random, data: bytearray, known: list[bytes]) -> None:
    lines = bytes(data).split(b"\n")
    at = r.randrange(len(lines))
    {0: lambda: lines.insert(at, b"".join(lines[:50]) * 20), 1: lambda: r.shuffle(lines),
     2: lambda: lines.__delitem__(slice(at, at + r.randrange(30))),
     3: lambda: lines.extend(lines[at:at + 20] * 40),
     4: lambda: lines.insert(at, b"x" * r.randrange(1 << 20)),
     5: lambda: lines.insert(at, b"\x00" * r.randrange(1 << 16))}[r.randrange(6)]()
    data[:] = r.choice((b"\n", b"\n", b"\r\n", b"\r", b"\n> > ", b"\n\t|  ")).join(lines)


def _plant(r: random.Random, data: bytearray) -> None:
    for line in r.sample(PLANTED, r.randrange(1, 6)):
        at = data.find(b"\n", r.randrange(len(data) + 1))
        data[at + 1:at + 1] = line.encode() + b"\n"


def _coding(r: random.Random, data: bytearray, known: list[bytes]) -> None:
    data[:] = bytes(data).decode("utf-8", "replace").encode(
        r.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig")), "replace")


MUTATIONS: tuple[Callable[[random.Random, bytearray, list[bytes]], None], ...] = (
    _cut, _splice, _flip, _words, _words, _digits, _digits, _lines, _coding)


def text(r: random.Random, known: list[bytes], path: str = "") -> bytes:
    """Of a file of sysfs @path: a driver's name, say, does not name a person."""
    data = bytearray(r.choice(known))
    for _ in range(r.randrange(5)):
        r.choice(MUTATIONS)(r, data, known)
    del data[4 << 20:]
    if not path.startswith("sys/") or path.endswith("serial"):
        _plant(r, data)     # last, so that it stays what it is
    return bytes(data)


# --- files -----------------------------------------------------------------------------

def packed(r: random.Random, data: bytes) -> bytes:
    packers: tuple[Callable[[bytes], bytes], ...] = (gzip.compress, bz2.compress, lzma.compress)
    made = r.choice(packers)(data)
    if r.random() < 0.3:
        made = made[:r.randrange(len(made) + 1)]
    if r.random() < 0.3:
        broken = bytearray(made)
        _flip(r, broken, [])
        made = bytes(broken)
    return made


def bomb(r: random.Random) -> bytes:
    """Two hundred megabytes of lines in little."""
    out = io.BytesIO()
    line = r.choice((b"\0", b"cpu0: MSR_PLATFORM_INFO: 0x80838f3012300\n", b"a: b\n", b"x",
                     b"> ", b"[    1.0] mce: CPU0: Core temperature above threshold\n"))
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as file:
        block = line * ((1 << 20) // len(line))
        for _ in range(200):
            file.write(block)
    return out.getvalue()


NAMES = ("sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq", "proc/cpuinfo", "proc/cmdline",
         "sys/devices/system/cpu/cpu٣/cpufreq/scaling_driver", "dmesg",
         "sys/devices/system/cpu/cpu99999999999999999999/topology/core_id",
         "sys/devices/system/cpu/cpu0/cpuidle/state0/disable", "sys/class/dmi/id/product_serial",
         "sys/devices/system/cpu/intel_pstate/max_perf_pct", "../../../../tmp/out", "/etc/out",
         f"sosreport-{HOST}-2024/sos_commands/kernel/dmesg", f"home/{USER}/turbostat.txt",
         f"sosreport-{HOST}-2024/sos_commands/processor/lscpu", "a/" * 60 + "b", "x\udcff\n.txt")


def archive(r: random.Random, known: list[bytes]) -> bytes:
    out = io.BytesIO()
    if r.random() < 0.2:
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as zipped:
            for name in r.sample(NAMES, r.randrange(1, 6)):
                zipped.writestr(name.encode("utf-8", "replace").decode(), text(r, known, name))
        return out.getvalue()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in r.sample(NAMES, r.randrange(1, 9)):
            info = tarfile.TarInfo(name)
            info.type = r.choice((tarfile.REGTYPE,) * 6 + (
                tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE,
                tarfile.DIRTYPE, tarfile.GNUTYPE_SPARSE))
            info.linkname = r.choice((name, "/etc/passwd", "../" * 30, "/dev/zero", "nothing"))
            data = text(r, known, name) if info.isreg() else b""
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    data = bytearray(out.getvalue())
    if r.random() < 0.4:
        _cut(r, data, known)
    return packed(r, bytes(data)) if r.random() < 0.5 else bytes(data)


def folder(r: random.Random, known: list[bytes], top: Path) -> None:
    for name in r.sample(NAMES, r.randrange(1, 10)):
        path = top / name.replace("../", "").lstrip("/")
        with_it = r.randrange(12)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if with_it == 0:
                path.symlink_to(path.name)
            elif with_it == 1:
                path.symlink_to(r.choice(("/dev/zero", "/dev/random", "..", "/", "/proc/kmsg")))
            elif with_it == 2:
                os.mkfifo(path)
            elif with_it == 3:
                with path.open("wb") as file:
                    file.truncate(1 << r.randrange(20, 42))
            elif with_it == 4:
                path.mkdir()
            else:
                path.write_bytes(text(r, known, name))
                if with_it == 5:
                    path.chmod(0)
        except OSError:
            continue


def make(seed: int, known: list[bytes], top: Path,
         commands: Sequence[str] = COMMANDS) -> Case:
    r = random.Random(seed)
    command = r.choice(commands)
    if command.startswith("doctor"):
        folder(r, known, top)
        (top / "sys/devices/system/cpu").mkdir(parents=True, exist_ok=True)
        return Case(seed, command, [f"--root={top}"], True)
    paths = []
    for number in range(r.choice((1, 1, 1, 2, 3))):
        path = top / f"input{number}"
        kind = r.randrange(100)
        if kind < 60:
            path.write_bytes(text(r, known))
        elif kind < 75:
            path.write_bytes(packed(r, text(r, known)))
        elif kind < 88:
            path.write_bytes(archive(r, known))
        elif kind < 97:
            path.mkdir()
            folder(r, known, path)
        elif kind < 99:
            path.write_bytes(bomb(r))
        else:
            with path.open("wb") as file:
                file.truncate(1 << 40)
        paths.append(str(path))
    return Case(seed, command, paths, command.startswith("explain"))


# --- running ---------------------------------------------------------------------------

def _main(case: Case) -> int:
    command, *options = case.command.split()
    if command == "convert":
        from virtual_silicon.__main__ import main
        sys.argv = ["virtual-silicon", command, *case.paths]
        return main()
    from cpuwhy import cli, texts
    if command == "read":
        texts.read(case.paths)
        return 0
    return cli.main([command, *options, *case.paths])


def _child(case: Case, output: Path) -> None:
    """Never returns."""
    status = 99
    try:
        # Of the CPU's time, as others use the machine, too; and what waits has to end.
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(6 * SECONDS)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.stdout = open(1, "w", closefd=False)
        sys.stderr = open(2, "w", errors="backslashreplace", closefd=False)
        try:
            status = _main(case)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:       # the parent sees it in the output
        import traceback
        traceback.print_exc(file=sys.stderr)
        sys.stderr.flush()
    finally:
        os._exit(status)


def _megabytes() -> int:
    """Of this process, which its children begin with."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() >> 20


def run(case: Case, output: Path) -> str:
    """What was wrong; nothing if all is well."""
    sys.stdout.flush()
    most = MEGABYTES + max(0, _megabytes() - FRESH)
    pid = os.fork()
    if not pid:
        _child(case, output)
    _, status, usage = os.wait4(pid, 0)
    said = output.read_text(errors="replace")
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return {"SIGALRM": "hangs", "SIGXCPU": f"took over {SECONDS} s",
                "SIGKILL": f"took over {SECONDS} s"}.get(name, f"died of {name}")
    if "Traceback" in said:
        return said.strip().splitlines()[-1]
    code = os.WEXITSTATUS(status)
    if code not in (0, 1, 2):
        return f"exit status {code}"
    if code == 2 and said.count("\n") != 1:
        return f"status 2 with {said.count(chr(10))} lines"
    if usage.ru_maxrss > most << 10:
        return f"took {usage.ru_maxrss >> 10} MB"
    if case.secret:
        if re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", said):
            return "shows control characters"
        shown = [secret for secret in SECRETS if secret in said]
        if shown:
            return f"shows {', '.join(shown)}"
    return ""


def fuzz(first: int, seconds: float, known: list[bytes], count: int = 0,
         commands: Sequence[str] = COMMANDS) -> dict[int, str]:
    """Seeds from @first on, for a time or a count, and what was wrong with them."""
    import cpuwhy.cli
    import cpuwhy.show  # noqa: F401  so that each child has it
    import virtual_silicon.__main__
    virtual_silicon.__main__.parser()
    wrong: dict[int, str] = {}
    done: Counter[str] = Counter()
    end, seed = time.monotonic() + seconds, first
    while (seed < first + count) if count else time.monotonic() < end:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as directory:
            top = Path(directory, "in")
            top.mkdir()
            case = make(seed, known, top, commands)
            done[case.command] += 1
            said = run(case, Path(directory, "said"))
            if said:
                wrong[seed] = f"{case.command}: {said}"
            for path in top.rglob("*"):
                if path.is_file() and not path.is_symlink():
                    path.chmod(0o600)
            shutil.rmtree(top, ignore_errors=True)
        seed += 1
    print(f"{seed - first} cases: " + ", ".join(f"{name} {n}" for name, n in done.items()))
    return wrong


def main() -> int:
    top = argparse.ArgumentParser(description=__doc__,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--seconds", type=float, default=60)
    top.add_argument("--seed", type=int, default=0, help="the first one")
    top.add_argument("--count", type=int, default=0, help="of seeds, instead of a time")
    top.add_argument("--samples", type=Path, help="more inputs")
    top.add_argument("--only", dest="commands", nargs="+", choices=COMMANDS, default=COMMANDS)
    top.add_argument("--keep", type=Path, metavar="DIR", help="only write the input of the seed")
    args = top.parse_args()
    known = samples(args.samples)
    if args.keep:
        args.keep.mkdir(parents=True)
        print(make(args.seed, known, args.keep, args.commands))
        return 0
    wrong = fuzz(args.seed, args.seconds, known, args.count, args.commands)
    for seed, what in wrong.items():
        print(f"seed {seed}: {what}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
