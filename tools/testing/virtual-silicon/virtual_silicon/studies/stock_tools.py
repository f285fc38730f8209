# SPDX-License-Identifier: GPL-2.0
"""What a stock kernel and stock tools say of each machine: a table.

Each machine is booted with each kernel in deterministic time; turbostat, cpupower,
stress-ng and rt-tests run, and what they print stands next to the machine file.

The machines made from dumps are asked less, and compared with what was read on the
part itself (data/parts.csv).
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cpuwhy import turbo

from .. import cli, paths
from ..errors import GuestError, UsageError
from ..guest import boot, distribution, options
from ..guest.distribution import Kernel
from ..guest.job import Job
from ..machine.machine import Machine, load, names
from ..readers import sysfs, turbostat
from ..text import write_csv

#: All drivers in their mode for governors, and the governor that asks for most.
APPEND = ("intel_pstate=passive amd_pstate=passive "
          "cpufreq.default_governor=performance")

#: Name, image, and what else a distribution's kernel needs.
Image = tuple[str, Path, Kernel | None]

HEAD = ["machine", "kernel", "driver", "base MHz", "one CPU MHz", "one CPU in file",
        "all MHz", "all in file", "idle states", "energy", "warnings"]


def job(kernel: Kernel | None) -> Job:
    job = Job()
    if kernel:
        job.files |= kernel.files()
    job.step("kernel", "uname -r")
    job.step("header", "turbostat --hide IPC -o /run/h true 2>&1; cat /run/h")
    job.step("frequency-info", "cpupower frequency-info")
    job.step("idle-info", "cpupower idle-info")
    job.step("zones", "dump_zones")
    job.step("governor", "for f in $CPU/cpu[0-9]*/cpufreq/scaling_governor; do "
             "echo performance >$f; done; sleep 0.1")
    for name, cpus in (("one", "0"), ("all", "all")):
        job.step(name, f"turbostat -q --hide IPC -o /run/t vs-load -c {cpus} -t 0.15 "
                 "2>&1; cat /run/t")
    job.step("stress-ng", "stress-ng --cpu-online 1 --cpu-online-ops 20 -q 2>&1; "
             "stress-ng --cpu 2 --cpu-method int64 --cpu-ops 20 -q")
    job.step("rt-tests", "cyclictest -q -t 2 -a -i 2000 -l 20; hackbench -g 1 -l 20")
    job.step("dmesg", "dmesg")
    return job


@dataclass
class Row:
    machine: str
    cells: list[str]
    wrong: bool


def _match(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[1] if found else "-"


def _mhz(result: boot.Result, step: str, cpus: list[int]) -> str:
    """Of each kind of core once, "3800" or "4900/3500"."""
    try:
        table = turbostat.table(result.text(step))
    except GuestError:
        return "-"
    return "/".join(f"{table.cpus[cpu]['Bzy_MHz']:.0f}" for cpu in cpus
                    if cpu in table.cpus)


def _file_mhz(m: Machine, active: int, tops: list[int]) -> str:
    return "/".join(f"{m.mhz(min(top, m.turbo.limit(active))):.0f}" for top in tops)


def row(m: Machine, cpus: int, kernel: str, result: boot.Result) -> Row:
    kinds = [(kind, numbers[0]) for kind, numbers in m.class_cpus(cpus) if numbers]
    header, info = result.text("header"), result.text("frequency-info")
    base = _match(r"= ([\d.]+) MHz base frequency", header)
    idle = _match(r"Available idle states: (?:POLL )?(.*)", result.text("idle-info"))
    failed = [s.name for s in result.answer.sections.values()
              if s.status and s.name not in ("header",)]
    complaints = [line.split("] ", 1)[-1] for line in
                  sysfs.warnings(result.text("dmesg"))[:1]]
    complaints += [f"{name} failed" for name in failed]
    return Row(m.name, [
        m.name, kernel, _match(r"driver: (\S+)", info), base.removesuffix(".0"),
        _mhz(result, "one", [0]), _file_mhz(m, 1, [m.max_ratio]),
        _mhz(result, "all", [0, *(first for _, first in kinds)]),
        _file_mhz(m, -(-cpus // m.threads), [m.max_ratio, *(kind.max_ratio for kind, _ in kinds)]),
        idle, "yes" if "package" in result.text("zones") else "no",
        "; ".join(complaints) or "none"], bool(complaints))


def rows(machines: list[Machine], kernels: list[Image],
         config: boot.Config, cpus: int) -> Iterator[Row]:
    """`config` says the rest; a guest that fails is a row too."""
    for m in machines:
        count = min(cpus, m.cores)
        for name, image, kernel in kernels:
            c = dataclasses.replace(
                config, machine=m, cpus=count, kernel=image, mode="deterministic",
                append=APPEND, job=job(kernel).archive(),
                out=config.out / f"{m.name}-{name}")
            try:
                yield row(m, count, name, boot.run(c))
            except GuestError as error:
                yield Row(m.name, [m.name, name] + ["-"] * 8 + [str(error)], True)


PARTS = paths.SILICON / "data/parts.csv"

PARTS_HEAD = ["machine", "ratio in the guest", "ratio of the part", "turbo table",
              "idle states in the guest (exit/residency, us)", "idle states of the part", "remarks"]

#: Where guest and part need not agree, and why.
EXPECTED = {
    "granite-rapids-d": "idle states: the base has no table of this model and takes "
                        "three times the latency that firmware tells",
}

State = tuple[str, int, int]		# name, exit latency and target residency in us


@dataclass(frozen=True)
class Part:
    """What was read on a machine; 0 and empty: not known."""

    machine: str
    ratio: int				# freq_max over base as the base kernel logs it
    registers: dict[int, int]		# of the turbo table
    turbo: dict[int, float]		# MHz by active cores
    idle: list[State]


def _part(line: dict[str, str]) -> Part:
    m = load(line["machine"])
    values = [int(line[key], 16) for key in ("msr_turbo", "msr_counts") if line[key]]
    registers = dict(zip(turbo.registers(m.turbo.layout)[:len(m.turbo.registers)], values))
    pairs = turbo.decode(m.turbo.layout, registers)
    idle = [(name, int(latency), int(residency)) for name, latency, residency in
            (state.split(":") for state in line["idle"].split())]
    return Part(m.name, int(line["ratio_x1024"] or 0), registers,
                {cores: m.mhz(ratio) for cores, ratio in pairs}, idle)


def parts() -> dict[str, Part]:
    with PARTS.open(encoding="utf-8", newline="") as file:
        return {line["machine"]: _part(line) for line in csv.DictReader(file)}


def parts_job(registers: Iterable[int]) -> Job:
    job = Job()
    job.step("header", "turbostat --hide IPC -o /run/h true 2>&1; cat /run/h")
    job.step("registers", f"vs-msr 0 {' '.join(map(hex, registers))}" if registers else ":")
    job.step("cpuidle", "dump_cpuidle")
    job.step("dmesg", "dmesg")
    return job


def idle_table(result: boot.Result) -> list[State]:
    states = sysfs.idle_states(result.text("cpuidle")).get(0, [])
    return [(s.name, s.latency_us, s.residency_us) for s in states if s.name != "POLL"]


def _turbo_cell(part: Part, result: boot.Result) -> tuple[str, bool]:
    """Whether the guest reads the part's registers, and turbostat its table of them."""
    if not part.registers:
        return "-", True
    if sysfs.msr_values(result.text("registers")) != part.registers:
        return "other registers", False
    try:
        seen = turbostat.header(result.text("header")).turbo
    except GuestError:
        seen = {}
    # turbostat shows a group without cores too; not all registers were read on all parts
    seen = {cores: mhz for cores, mhz in seen.items() if cores in part.turbo}
    wrong = [cores for cores, mhz in seen.items() if abs(part.turbo[cores] - mhz) > 0.5]
    if not seen:
        return "registers; turbostat knows no table", True
    return f"registers; {len(seen) - len(wrong)} of {len(seen)} steps of turbostat", not wrong


def _states(table: list[State]) -> str:
    return ", ".join(f"{name} {latency}/{residency}" for name, latency, residency in table)


def parts_row(part: Part, result: boot.Result) -> Row:
    """The last cell: what does not agree, or "none"."""
    ratio = sysfs.invariance_ratio(result.text("dmesg"))
    cell, turbo_right = _turbo_cell(part, result)
    table = idle_table(result)
    wrong = [what for what, right in (
        ("ratio", not part.ratio or ratio == part.ratio), ("turbo table", turbo_right),
        ("idle states", not part.idle or table == part.idle)) if not right]
    warnings = sysfs.warnings(result.text("dmesg"))
    why = EXPECTED.get(part.machine, "")
    bad = [f"{what} differ" for what in wrong if not why.startswith(what)]
    bad += [line.split("] ", 1)[-1] for line in warnings[:1]]
    return Row(part.machine, [
        part.machine, str(ratio or "-"), str(part.ratio or "-"), cell, _states(table),
        ("the same" if table == part.idle else _states(part.idle)) if part.idle else "-",
        "; ".join(bad) or why or "none"], bool(bad))


def parts_rows(names: list[str], config: boot.Config) -> Iterator[Row]:
    """With the base kernel; `config` says the rest."""
    known = parts()
    for name in names or known:
        if name not in known:
            raise UsageError(f"{name} is not from a dump; there are: {', '.join(known)}")
        m = load(name)
        cpus = min(m.threads * 2, m.cores * m.threads)
        c = dataclasses.replace(config, machine=m, cpus=cpus, mode="deterministic",
                                append=APPEND, job=parts_job(known[name].registers).archive(),
                                out=config.out / name)
        try:
            yield parts_row(known[name], boot.run(c))
        except GuestError as error:
            yield Row(name, [name] + ["-"] * (len(PARTS_HEAD) - 2) + [str(error)], True)


def add(sub: cli.Commands) -> None:
    one = sub.add_parser("stock-tools", help="a table of what stock kernels and tools say of "
                         "each machine")
    options.boot_options(one)
    one.add_argument("machines", nargs="*", help="default: those not made from dumps, "
                     "and with --parts those that are")
    one.add_argument("--parts", action="store_true", help="compare those made from dumps "
                     "with what was read on the parts, under the base kernel")
    one.add_argument("--kernels", nargs="+", default=["base"],
                     help="base, patched, a .deb, or the name of a package that apt "
                     "downloads")
    one.add_argument("--output", help="the table as CSV")
    one.set_defaults(run=command)


def _kernels(names: list[str], where: Path) -> Iterator[Image]:
    for name in names:
        if name in ("base", "patched"):
            yield name, paths.kernel(name), None
            continue
        package = Path(name) if name.endswith(".deb") else distribution.fetch(name, where)
        unpacked = distribution.unpack(package, where)
        yield unpacked.release, unpacked.image, unpacked


def command(args: argparse.Namespace) -> int:
    """The table; 1 if any machine has a warning, or something that does not agree."""
    args.machine = args.machines[0] if args.machines else cli.DEFAULT_MACHINE
    args.kernel = "base"
    c = options.config(args, b"", "")
    c.limits = boot.Limits(300, 300, 900)
    if args.parts:
        head, found = PARTS_HEAD, parts_rows(args.machines, c)
        note = ("The base kernel in a guest, two cores, stock turbostat; \"of the part\" is what "
                "data/parts.csv has of the real one.")
    else:
        kernels = list(_kernels(args.kernels, c.out.parent / "kernels"))
        known = parts()
        machines = args.machines or [name for name in names() if name not in known]
        head, found = HEAD, rows([load(name) for name in machines], kernels, c, c.cpus)
        note = ("Stock turbostat, cpupower and stress-ng; \"in file\" is what the machine file "
                "says.")
    table = []
    for row in found:
        table.append(row)
        print(" | ".join(row.cells), flush=True)
    if args.output:
        write_csv(Path(args.output), head, [row.cells for row in table], note)
    return 1 if any(row.wrong for row in table) else 0
