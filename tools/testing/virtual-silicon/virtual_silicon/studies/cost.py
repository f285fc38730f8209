# SPDX-License-Identifier: GPL-2.0
"""What a search of select_shallow_cpu() costs, as the compiler made it.

	make kernel
	python3 -m virtual_silicon.studies.cost build/linux/.obj/vmlinux

Runs the function in an emulator (Debian's python3-unicorn), for a waker on CPU 0. All CPUs
idle and share an LLC; the last one is the first choice. Prints instructions until it returns,
and lines of run queues that it reads, the first choice's included. Fails if it returns another
CPU than it should. The build's directory has to be there: its headers say where members are.
"""

from __future__ import annotations

import argparse
import importlib
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

from .. import cli, paths
from ..errors import Fail, MissingError

CPUS = (8, 64, 256)
THREADS = {1: "cores of one thread", 2: "cores of two threads"}	# CPUs 0 and 4 of 8, and so on
SHALLOW_SCAN, SOON_US, DEEP_US = 16, 2, 290
HEAP, HEAP_SIZE, PAGE, LINE = 0xffff888000000000, 256 << 20, 4096, 64
MEMBERS = {"idle_state": "rq", "idle_stamp": "rq", "exit_latency": "cpuidle_state",
           "span": "sched_domain", "cpus_ptr": "task_struct", "cpu_number": "pcpu_hot",
           "current_task": "pcpu_hot", "clock_idle": "rq"}
OFFSETS = """\
#include <linux/cpuidle.h>
#include "sched.h"
#include <linux/kbuild.h>
_Static_assert(IS_ENABLED(CONFIG_CPUMASK_OFFSTACK), "masks have to be behind pointers");
void offsets(void) { DEFINE(nr_cpus, NR_CPUS); DEFINE(rq_size, sizeof(struct rq));
""" + "\n".join(f"OFFSET({name}, {of}, {name});" for name, of in MEMBERS.items()) + "}\n"


class Kernel:
    """Image and addresses of a vmlinux, and offsets in the structures it was built with."""

    def __init__(self, vmlinux: Path) -> None:
        elf = paths.need(vmlinux, "make kernel leaves build/linux/.obj/vmlinux").read_bytes()
        heads, size, count = struct.unpack_from("<32xQ14xHH", elf)
        parts = [struct.unpack_from("<8xQQ8xQ", elf, heads + i * size) for i in range(count)]
        #: By address, but not of the per-CPU variables, which are at 0
        self.image = {to: elf[begin:begin + length] for begin, to, length in parts if to}
        names = subprocess.run(["nm", vmlinux], capture_output=True, text=True, check=True).stdout
        self.at = {m[2]: int(m[1], 16) for m in re.finditer(r"^(\w+) \w (\S+)$", names, re.M)}
        if "select_shallow_cpu" not in self.at:
            raise MissingError(f"{vmlinux} has no select_shallow_cpu()")
        known = paths.need(vmlinux.parent / "kernel/sched/.fair.o.cmd", "the build leaves it")
        command = known.read_text().partition(" := ")[2].partition(" -c -o ")[0]
        command = re.sub(r"-Wp,-MMD,\S+", "", command) + " -w -S -o - -x c -"
        done = subprocess.run(command, shell=True, cwd=vmlinux.parent, input=OFFSETS,
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise Fail("the compiler does not say the offsets in structures", done.stderr)
        self.offset = {m[1]: int(m[2]) for m in re.finditer(r"->(\w+) \$(\d+)", done.stdout)}


class Machine:
    """CPUs of one LLC, all idle: what is not set is zero, as are both rq->curr and rq->idle."""

    def __init__(self, unicorn: Any, kernel: Kernel, cpus: int, cores: int) -> None:
        self.unicorn, self.at, self.offset, self.free = unicorn, kernel.at, kernel.offset, HEAP
        self.emulator = unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64)
        self.emulator.mem_map(HEAP, HEAP_SIZE)
        self.emulator.mem_map(self.at["_text"], self.at["_end"] - self.at["_text"])
        for address, content in kernel.image.items():
            self.emulator.mem_write(address, content)
        self.put(self.at["nr_cpu_ids"], cpus, 4)
        self.task, domain, everyone = self.take(), self.take(), (1 << cpus) - 1
        self.put(self.task + self.offset["cpus_ptr"], self.take(mask=everyone))
        self.put(domain + self.offset["span"], everyone, 32)
        self.areas = [self.take(self.at["__per_cpu_end"]) for _ in range(cpus)]
        for cpu, area in enumerate(self.areas):
            self.put(self.at["__per_cpu_offset"] + 8 * cpu, area)
            self.put(area + self.at["pcpu_hot"] + self.offset["cpu_number"], cpu, 4)
            self.put(area + self.at["pcpu_hot"] + self.offset["current_task"], self.task)
            self.put(area + self.at["this_cpu_off"], area)
            self.put(area + self.at["sd_llc"], domain)
            siblings = sum(1 << thread for thread in range(cpu % cores, cpus, cores))
            self.put(area + self.at["cpu_sibling_map"], self.take(mask=siblings))
            self.put(area + self.at["select_rq_mask"], self.take())

    def take(self, size: int = PAGE, mask: int = 0) -> int:
        taken, self.free = self.free, self.free + -(-size // PAGE) * PAGE
        self.put(taken, mask, 32)
        return taken

    def put(self, address: int, value: int, size: int = 8) -> None:
        self.emulator.mem_write(address, value.to_bytes(size, "little"))

    def search(self, exit_us: int, idled: int) -> tuple[int, int, int]:
        """CPU chosen, instructions, lines. CPU 0 has @exit_us, the first choice idled at @idled;
        else each CPU is in a deep state, and idled later than the one before. The waker runs,
        and began when all had gone idle."""
        ran, read, first, stack = [], set(), len(self.areas) - 1, self.take() + PAGE - 8
        self.put(stack, end := self.take())
        engine, x86 = self.emulator, self.unicorn.x86_const
        engine.hook_add(self.unicorn.UC_HOOK_CODE, lambda *step: ran.append(step[1]))
        self.put(self.areas[0] + self.at["runqueues"] + self.offset["clock_idle"], first + 1)
        for cpu, area in enumerate(self.areas):
            queue, state = area + self.at["runqueues"], self.take()
            self.put(state + self.offset["exit_latency"], DEEP_US if cpu else exit_us, 4)
            self.put(queue + self.offset["idle_state"], state)
            self.put(queue + self.offset["idle_stamp"], idled if cpu == first else 1 + cpu)
            engine.hook_add(self.unicorn.UC_HOOK_MEM_READ, lambda *at: read.add(at[2] // LINE),
                            begin=queue, end=queue + self.offset["rq_size"] - 1)
        values = {"RDI": self.task, "RSI": first, "RSP": stack, "GS_BASE": self.areas[0]}
        for name, value in values.items():
            engine.reg_write(getattr(x86, f"UC_X86_REG_{name}"), value)
        engine.emu_start(self.at["select_shallow_cpu"], end)
        return engine.reg_read(x86.UC_X86_REG_EAX), len(ran), len(read)


def column(unicorn: Any, kernel: Kernel, cpus: int, cores: int) -> dict[str, str]:
    """Cells of the table. Fails if another CPU is chosen than should be."""
    cells = {}
    for name, expected, exit_us, idled in (
            ("the first one wakes soon", 0, SOON_US, 0),
            ("all deep, the first choice last", cpus - 1, DEEP_US, cpus),
            ("all deep, each one later", min(cores, SHALLOW_SCAN, cpus - 1) - 1, DEEP_US, 0)):
        chosen, ran, read = Machine(unicorn, kernel, cpus, cores).search(exit_us, idled)
        if chosen != expected:
            raise Fail(f"{name}: CPU {chosen} of {cpus} is chosen, not {expected}")
        cells[name] = f"{ran:6}{read:5}"
    return cells


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("vmlinux", type=Path, metavar="VMLINUX")
    kernel = Kernel(parser.parse_args().vmlinux)
    try:
        unicorn = importlib.import_module("unicorn")
    except ImportError as error:
        raise MissingError("unicorn is not installed: apt-get install python3-unicorn") from error
    print(f"Instructions, and lines of run queues, with NR_CPUS={kernel.offset['nr_cpus']}:\n")
    print(" " * 35 + "  ".join(f"{f'{cpus} CPUs':>11}" for cpus in CPUS))
    for threads, cores in THREADS.items():
        print(f"  {cores}")
        columns = [column(unicorn, kernel, cpus, cpus // threads) for cpus in CPUS]
        for name in columns[0]:
            print(f"    {name:<31}" + "  ".join(cells[name] for cells in columns))
    return 0


if __name__ == "__main__":
    sys.exit(cli.ended("cost", main))
