# SPDX-License-Identifier: GPL-2.0
"""Instructions that a tick's sample takes, counted one by one in the guest's kernel.

A debugger's connection to the emulator stops a guest of one CPU at sched_tick() and steps
to its return. What is executed in arch_scale_freq_tick() and in update_rq_clock() counts,
with all that they call, reads of registers and of the time stamp counter, and branches
that static keys have patched: the base samples in the first, the series in the second. In
free time, because virtual time that follows instructions runs away while the guest is
stopped. So does free time, a little: samples are older than a tick, and those of the series
are then compared with the time that they took, which they are not at ordinary ticks.
"""
from __future__ import annotations

import argparse
import re
import socket
import statistics
import sys
from collections import Counter
from pathlib import Path

from ... import paths
from ...errors import GuestError
from ...guest import boot, initramfs, qmp
from ...guest.job import Job, Section
from ...machine import machine

LOADS = {"busy": "vs-load -c 0 -t 60", "a third": "vs-load -c 0 -d 30 -p 3000 -t 60",
         "hackbench": "while :; do hackbench -g 1 -l 1000; done"}
#: By their bytes, after an optional prefix for registers of 64 bits.
KINDS = {"RDMSR": rb"\x0f\x32", "RDTSC": rb"\x0f\x31",
         "DIV": rb"[\x40-\x4f]?\xf7[\x30-\x3f\x70-\x7f\xb0-\xbf\xf0-\xff]"}
RSP, RIP = 7, 16
TICK, COUNTED = "sched_tick", ("arch_scale_freq_tick", "update_rq_clock")


class Debugger:
    """What is needed of GDB's remote protocol."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(60)
        self._socket.connect(str(path))
        self._buffer = b""
        self.send("qSupported")
        while "PacketSize" not in self.answer():	# that the guest has stopped comes first
            pass

    def send(self, text: str) -> None:
        data = text.encode()
        self._socket.sendall(b"$%s#%02x" % (data, sum(data) % 256))

    def answer(self) -> str:
        while not (found := re.search(rb"\$([^#]*)#..", self._buffer, re.DOTALL)):
            more = self._socket.recv(65536)
            if not more:
                raise GuestError("the emulator has closed the debugger's connection")
            self._buffer += more
        self._buffer = self._buffer[found.end():]
        self._socket.sendall(b"+")
        return found[1].decode("ascii")

    def ask(self, text: str) -> str:
        self.send(text)
        return self.answer()

    def register(self, number: int) -> int:
        at = 16 * number
        return int.from_bytes(bytes.fromhex(self.ask("g")[at:at + 16]), "little")

    def memory(self, address: int, size: int) -> bytes:
        return bytes.fromhex(self.ask(f"m{address:x},{size:x}"))

    def caller(self) -> int:
        """Where a function that has just been called will return to."""
        return int.from_bytes(self.memory(self.register(RSP), 8), "little")

    def one_call(self, counted: dict[int, str]) -> Counter[str]:
        """From the first instruction of a function, where the guest stands, to its return:
        what is executed in those functions of which the addresses are given."""
        count: Counter[str] = Counter()
        end, back, name = self.caller(), 0, ""
        while (at := self.register(RIP)) != end:
            if at == back:
                back = 0
            if not back and at in counted:
                back, name = self.caller(), counted[at]
            if back:
                code = self.memory(at, 4)
                count.update(["instructions", name])
                count.update(k for k, pattern in KINDS.items() if re.match(pattern, code))
            self.ask("s")
        return count


def calls(options: argparse.Namespace, kernel: str, load: str) -> list[Counter[str]]:
    """The first ones after the load has run for a while."""
    out = options.out / f"tick-{Path(kernel).name}-{load.replace(' ', '-')}"
    out.mkdir(parents=True, exist_ok=True)
    found: list[Counter[str]] = []
    monitor = Path(f"/tmp/vs-tick-{id(found):x}.qmp")
    stub = monitor.with_suffix(".gdb")

    def on_section(section: Section) -> None:
        if section.name != "symbol":
            return
        found_at = {name: int(address, 16) for address, _, name in
                    (line.split()[:3] for line in section.text.splitlines())}
        if missing := {*COUNTED, TICK} - found_at.keys():
            raise GuestError(f"not among the kernel's symbols: {', '.join(missing)}")
        with qmp.Monitor(monitor) as m:
            m.execute("human-monitor-command",
                      **{"command-line": f"gdbserver unix:{stub},server=on,wait=off"})
        debugger = Debugger(stub)
        debugger.ask(f"Z0,{found_at[TICK]:x},1")
        for _ in range(options.calls):
            debugger.ask("c")
            found.append(debugger.one_call({found_at[name]: name for name in COUNTED}))
        debugger.ask(f"z0,{found_at[TICK]:x},1")
        debugger.send("D")

    job = Job()
    job.step("symbol", f"({LOADS[load]}) >/dev/null & sleep 0.3; "
             f"grep -E ' ({'|'.join((TICK, *COUNTED))})$' /proc/kallsyms")
    job.step("rest", "sleep 20")	# the debugger is done by then, on a busy host too
    boot.run(boot.Config(
        machine=machine.load(options.machine), cpus=1, kernel=paths.kernel(kernel),
        qemu=paths.qemu(None), initramfs=initramfs.ensure(options.out, None), out=out,
        job=job.archive(), trace=False, qmp=monitor, limits=boot.Limits(boot=300),
        append="intel_pstate=passive cpufreq.default_governor=performance"), on_section)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", nargs="+", default=["base", "patched"],
                        help="base, patched, or a bzImage")
    parser.add_argument("--load", nargs="+", choices=LOADS, default=list(LOADS))
    parser.add_argument("--machine", default="sapphire-rapids")
    parser.add_argument("--calls", type=int, default=100, help="ticks of each kernel and load")
    parser.add_argument("--out", type=Path, default=paths.BUILD / "studies")
    options = parser.parse_args()
    for load in options.load:
        base = 0.0
        for kernel in options.kernel:
            found = calls(options, kernel, load)
            # A tick soon after another sample takes none, an idle one none in the series
            sampled = [c for c in found if c["RDMSR"]]
            mean = {kind: statistics.mean(c[kind] for c in sampled)
                    for kind in ("instructions", *COUNTED, *KINDS)}
            base = base or mean["instructions"]
            span = sorted(c["instructions"] for c in sampled)
            print(f"{load:10} {Path(kernel).name:8} {len(sampled)} of {len(found)} ticks sample: "
                  f"{mean['instructions']:6.1f} instructions ({span[0]} to {span[-1]}, median "
                  f"{statistics.median(span):g}); "
                  + ", ".join(f"{mean[kind]:.2f} {kind}" for kind in (*COUNTED, *KINDS))
                  + f"; {mean['instructions'] - base:+.1f} to the first", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
