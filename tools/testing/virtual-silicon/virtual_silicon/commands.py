# SPDX-License-Identifier: GPL-2.0
"""The commands behind `python3 -m virtual_silicon`, one function each."""

from __future__ import annotations

import argparse
import csv
import json
import platform
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from . import paths, progress, text
from .errors import MissingError, UsageError
from .guest import boot, distribution, initramfs, qmp, repeat
from .guest.job import Job, Section
from .guest.pool import Guest, Guests
from .machine import break_even, convert, dump, machine, qapi, ssdt
from .readers import plot, trace
from .studies import installed, stock_tools
from .studies.bench import cells, host, loads, runner, tables
from .studies.bench import report as bench_report
from .studies.demo import compare, demo, report
from .studies.sensitivity import conclusions
from .studies.validation import measurements, validate

DEFAULT_MACHINE = "sapphire-rapids"
COMPARED_MACHINE = "platinum-8592"
BENCHED, EXTENTS = [m.name for m in cells.MACHINES], loads.EXTENTS


def check(args: argparse.Namespace) -> int:
    """Each file is read; the first that is wrong ends it."""
    asked = args.machines + ([args.machine] if args.machine else [])
    for name in asked or ([DEFAULT_MACHINE] if args.cpus is not None
                          else machine.names()):
        m = machine.load(name)
        if args.cpus is not None:
            m.check_cpus(args.cpus)
        print(f"{m.name}: {m.title}, {m.packages} x {m.cores} cores, "
              f"{m.mhz(m.min_ratio):g}-{m.mhz(m.base_ratio):g}-"
              f"{m.mhz(m.max_ratio):g} MHz, "
              + " ".join(state.name for state in m.idle))
    return 0


def _write(text: str, target: str | None) -> None:
    if target:
        Path(target).write_text(text, encoding="ascii")
    else:
        sys.stdout.write(text)


def energy_command(args: argparse.Namespace) -> int:
    text.show("From which time of rest a state pays", break_even.HEAD, break_even.table(
        [machine.load(name) for name in args.machines or machine.names()]))
    return 0


def json_command(args: argparse.Namespace) -> int:
    m = machine.load(args.machine)
    cpus = None if args.cpus is None else m.check_cpus(args.cpus)
    _write(json.dumps(qapi.machine(m, cpus), indent=1) + "\n", args.output)
    return 0


def convert_command(args: argparse.Namespace) -> int:
    """A file is read back, so that what is written is accepted by all commands."""
    texts = []
    for name in args.dumps:
        try:
            texts.append((name, sys.stdin.read() if name == "-" else
                          Path(name).read_text(encoding="utf-8", errors="replace")))
        except OSError as error:
            raise UsageError(f"{name}: {error.strerror}") from error
    read = dump.read(texts)
    if args.part:
        made = convert.part(read, args.part)
    else:
        made = convert.machine_file(read)
        machine.parse(made, Path(args.output or "converted.toml"))
    if args.output:
        Path(args.output).write_text(made, encoding="utf-8")
    else:
        sys.stdout.write(made)
    return 0


def ssdt_command(args: argparse.Namespace) -> int:
    """ASL to look at, or the compiled table."""
    m = machine.load(args.machine)
    asl = ssdt.source(m, m.check_cpus(args.cpus))
    if args.output and args.output.endswith(".aml"):
        ssdt.compile_table(asl, Path(args.output))
    else:
        _write(asl, args.output)
    return 0


def packages(args: argparse.Namespace) -> int:
    print("\n".join(initramfs.packages(initramfs.read_recipe())))
    return 0


def _config(args: argparse.Namespace, job: bytes, append: str) -> boot.Config:
    m = machine.load(args.machine)
    cpus = m.check_cpus(min(4, m.cores) if args.cpus is None else args.cpus)
    out = Path(args.out)
    kernel = args.kernel
    if kernel.endswith(".deb"):
        unpacked = distribution.unpack(Path(kernel), out.parent / "kernels")
        kernel, job = str(unpacked.image), job + initramfs.job(unpacked.files())
    return boot.Config(
        machine=m, cpus=cpus, kernel=paths.kernel(kernel),
        qemu=paths.qemu(args.qemu),
        initramfs=initramfs.ensure(out.parent / "guest", paths.selftests()),
        out=out, job=job, mode=args.time, append=f"{append} {args.append}".strip(),
        faults=Path(args.faults) if args.faults else None, compact=args.compact,
        qmp=Path(args.qmp).resolve() if args.qmp else None,
        # CPUs start one by one, and the host has fewer than the guest.
        limits=boot.Limits(boot=60 + 3 * cpus))


def run(args: argparse.Namespace) -> int:
    return _run_command(args) if args.cmd is not None else _run_demo(args)


def _run_command(args: argparse.Namespace) -> int:
    """One shell command in the guest: its output here, its status ours."""
    job = Job()
    job.step("command", f"sh -c {shlex.quote(args.cmd)}")
    c = _config(args, job.archive(), demo.KERNEL_ARGS)
    c.limits = boot.Limits(min(c.limits.boot, args.limit), args.limit, args.limit)
    result = boot.run(c)
    if text := result.text("command"):
        print(text)
    return result.status


def _progress(plan: demo.Plan, tell: Callable[[str], None], section: Section) -> None:
    """A line as each phase ends: what the guest saw."""
    phase = next((p for p in plan.phases if p.name == section.name), None)
    if phase is None:
        return
    if section.status:
        tell(f"{phase.title}: failed, {' '.join(section.lines[-1:])}")
        return
    seen = report.guest_view(section.text)
    what = f"{phase.title}, {phase.knob}" if phase.knob else phase.title
    tell(f"{what:<40} {seen['busy_pct']:6.1f} % busy at {seen['mhz'] or 0:6.0f} MHz")


def _demo_limits(c: boot.Config, plan: demo.Plan) -> boot.Limits:
    """Host seconds: in deterministic time every busy CPU runs after the other."""
    phase = plan.seconds * (1 + 8 * c.cpus if c.mode == "deterministic" else 1)
    return boot.Limits(c.limits.boot, 60 + 2 * phase,
                       120 + c.limits.boot + 3 * phase * len(plan.phases))


def _run_demo(args: argparse.Namespace) -> int:
    c = _config(args, b"", demo.KERNEL_ARGS)
    seconds = args.seconds or demo.SECONDS[args.time]
    plan = demo.plan(c.machine, c.cpus, seconds)
    c.job = demo.job(c.machine, plan).archive()
    c.limits = _demo_limits(c, plan)
    print(f"Booting {args.kernel} kernel on {c.machine.name}, {c.cpus} CPUs: "
          f"{len(plan.phases)} phases of {seconds:g} s", flush=True)
    result = boot.run(c, partial(_progress, plan, progress.stopwatch()))
    data = report.build(c, plan, result)
    (c.out / "report.json").write_text(json.dumps(data, indent=1) + "\n",
                                       encoding="utf-8")
    print()
    for title, head, rows in report.tables(data):
        text.show(title, head, rows)
    for line in data["warnings"]:
        print(f"kernel: {line}")
    print(f"The same as data: {c.out / 'report.json'}; events: {result.trace}")
    return result.status


def compare_command(args: argparse.Namespace) -> int:
    """Both kernels at once, each in its guest; a table, the same as data, a picture."""
    m, qemu, out = machine.load(args.machine), paths.qemu(args.qemu), Path(args.out)
    if m.vendor != "GenuineIntel":
        raise UsageError(f"{m.name}: compare reads registers that only Intel's CPUs have")
    images = {kernel: paths.kernel(kernel) for kernel in compare.KERNELS}
    if not (selftests := paths.selftests()):
        raise MissingError("the selftests are not built (make demo builds them)")
    archive = initramfs.ensure(out.parent / "guest", selftests)
    print(f"Booting both kernels on {m.name}, 4 CPUs, in deterministic time", flush=True)
    tell = progress.stopwatch()
    guests = [Guest(kernel, m, m.check_cpus(4), image, compare.job(m, kernel), demo.KERNEL_ARGS,
                    compare.FAULTS, trace=True, limits=boot.Limits(300, 300, 900))
              for kernel, image in images.items()]
    results = dict(zip(images, Guests(out, archive, qemu, len(images), keep=False).answers(
        guests, lambda guest, section: tell(f"{guest.name:8} {section.name}"))))
    rows = compare.table(m, results)
    print(f"\n{compare.text(m, rows)}\n")
    with (out / "compare.csv").open("w", encoding="ascii") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [("what", *compare.KERNELS, "verdict", "believe"), *rows])
    compare.draw(results, out / "compare.png")
    print(f"The same as data: {out / 'compare.csv'}; picture: {out / 'compare.png'}")
    return 0


def shell(args: argparse.Namespace) -> int:
    """An interactive root shell; the kernel's messages only if they matter."""
    command = f"sh -lc {shlex.quote(args.cmd)}" if args.cmd else "sh -l"
    script = ("#!/bin/busybox sh\n"
              "cat /etc/motd >/dev/console\n"
              f"exec setsid -c {command} </dev/console >/dev/console 2>&1\n")
    c = _config(args, initramfs.job({"run": script.encode()}),
                f"{demo.KERNEL_ARGS} quiet loglevel=4")
    return boot.interactive(c)


def repeat_command(args: argparse.Namespace) -> int:
    """0 if all runs left the same bytes and the guest's command did not fail."""
    job = Job()
    job.step("command", f"sh -c {shlex.quote(args.cmd or repeat.COMMAND)}")
    args.time = "deterministic"
    c = _config(args, job.archive(), demo.KERNEL_ARGS)
    c.limits = boot.Limits(args.limit, args.limit, args.limit)
    done = []
    time = c.machine.time
    print(f"{c.cpus} CPUs of {c.machine.name}, {args.kernel} kernel; cycles per instruction: "
          f"{time.kernel_cycles_per_1000_insns / 1000:g} in the kernel, "
          f"{time.user_cycles_per_1000_insns / 1000:g} in user space")
    for run in repeat.runs(c, args.runs, args.load):
        done.append(run)
        speed = run.instructions / run.cpu_seconds / 1e6
        print(f"  {run.seconds:6.1f} s of the host ({run.cpu_seconds:.1f} s of its "
              f"CPUs), {run.virtual:8.3f} s virtual, {speed:.0f} million instructions "
              "or more per CPU second"
              + (", loaded host" if run.loaded else ""), flush=True)
    for name, digest in done[0].digests.items():
        print(f"  {name}: " + ("differs" if name in repeat.differing(done)
                               else f"{digest} in all {len(done)}"))
    return 1 if repeat.differing(done) or any(run.status for run in done) else 0


def _witness_kernels(names: list[str], where: Path) -> Iterator[stock_tools.Image]:
    for name in names:
        if name in ("base", "patched"):
            yield name, paths.kernel(name), None
            continue
        package = Path(name) if name.endswith(".deb") else distribution.fetch(name, where)
        unpacked = distribution.unpack(package, where)
        yield unpacked.release, unpacked.image, unpacked


def witness_command(args: argparse.Namespace) -> int:
    """The table; 1 if any machine has a warning, or something that does not agree."""
    args.machine = args.machines[0] if args.machines else DEFAULT_MACHINE
    args.kernel = "base"
    c = _config(args, b"", "")
    c.limits = boot.Limits(300, 300, 900)
    if args.parts:
        head, rows = stock_tools.PARTS_HEAD, stock_tools.parts_rows(args.machines, c)
    else:
        kernels = list(_witness_kernels(args.kernels, c.out.parent / "kernels"))
        head, rows = stock_tools.HEAD, stock_tools.rows(
            [machine.load(name) for name in args.machines or machine.names()], kernels, c,
            c.cpus)
    table = []
    for row in rows:
        table.append(row)
        print(" | ".join(row.cells), flush=True)
    if args.output:
        text.write_csv(Path(args.output), head, [row.cells for row in table])
    return 1 if any(row.wrong for row in table) else 0


def validate_command(args: argparse.Namespace) -> int:
    """1 if the goal is not met."""
    rows = [row for row in measurements.read(args.measurements)
            if re.search(args.rows, f"{row.cpu} {row.kind} {row.quantity}")]
    if not rows:
        raise UsageError(f"{args.measurements}: no row matches {args.rows!r}")
    kernel, work = paths.kernel(args.kernel), args.work.resolve()
    guests = Guests(work, initramfs.ensure(work / "guest"), paths.qemu(args.qemu), args.jobs)
    verdicts = validate.judge(rows, lambda todo: guests.outcomes([
        Guest(mirror.name, mirror.build(), mirror.cpus, kernel, job, mirror.append)
        for mirror, job in todo]))
    validate.write(verdicts, args.output)
    print(validate.summary(verdicts))
    print(args.output / "validation.csv")
    return 0 if validate.met(verdicts) else 1


def sensitivity_command(args: argparse.Namespace) -> int:
    """1 if a conclusion does not hold under some variant."""
    m, work = machine.load(args.machine), args.work.resolve()
    todo = [(variant, kernel) for variant in args.variants for kernel in conclusions.KERNELS]
    answers = Guests(work, initramfs.ensure(work / "guest"), paths.qemu(args.qemu),
                     args.jobs).answers([
        Guest(f"{variant.replace(' ', '-')}-{kernel}", changed, 4, paths.kernel(kernel),
              conclusions.job(changed, kernel), demo.KERNEL_ARGS)
        for variant, kernel in todo for changed in (conclusions.VARIANTS[variant](m),)])
    results: conclusions.Results = {variant: {} for variant in args.variants}
    for (variant, kernel), answer in zip(todo, answers):
        results[variant] |= {(kernel, name): conclusions.value(answer.text(name.replace(" ", "-")))
                             for name in conclusions.measured(kernel)}
    conclusions.write(results, args.output)
    print(args.output / "sensitivity.csv")
    fallen = conclusions.fallen(results)
    for conclusion in fallen:
        print(f"does not hold: {conclusion.text}")
    return 1 if fallen else 0


def bench_command(args: argparse.Namespace) -> int:
    """1 if a cell failed."""
    out = args.output.resolve()
    bench = runner.Bench(out, runner.images(), paths.qemu(args.qemu), args.jobs)
    machines = [m for m in cells.MACHINES if m.name in args.machines]
    todo = cells.all_cells(args.extent, machines)
    results = bench.run(todo, args.kept)
    about = bench_report.made_from(bench.digests, "make bench" + (
        f" BENCH={args.extent}" if args.extent != "short" else ""))
    if absent := len(todo) - len(results):
        about["cells not measured, which have -"] = absent
        print(f"{absent} cells have not been measured; - stands for them")
    print(bench_report.write(out, results, about,
                             ends=bench_report.verdicts(tables.Measured(results))))
    return int(any(isinstance(result, runner.Failure) for result in results.values()))


def host_command(args: argparse.Namespace) -> int:
    """1 if a cell failed or a setting could not be put back."""
    knobs = host.Knobs(Path("/"))
    host.check(knobs)
    out = args.output.resolve()
    initramfs.compiled(loads.HERE / "stopwatch.c", out)
    machine_, results, lost = host.run(
        knobs, platform.node(), partial(host.load, out, host.tsc_khz()), print,
        host.surroundings())
    about = bench_report.made_from({"kernel": platform.release()}, "run-on-host")
    print(bench_report.write(out, results, about, [host.table(machine_)], host=machine_.name))
    return int(bool(lost) or any(isinstance(r, runner.Failure) for r in results.values()))


def installed_command(args: argparse.Namespace) -> int:
    """1 if a boot is not as it should be."""
    packages, out = [Path(name).resolve() for name in args.packages], Path(args.out).resolve()
    installed.check(packages)
    out.mkdir(parents=True, exist_ok=True)
    m, log, say = machine.load(args.machine), out / "log", progress.stopwatch()
    installed.system(out / "root", log)
    say("a Debian 12")
    installed.image(out / "root", packages, out / "disk.img", log)
    say("a disk with it")
    wrong, old = False, ""
    for stage, result in installed.boots(m, paths.qemu(args.qemu), out / "disk.img", out):
        old = old or result.text("kernel")
        found = installed.problems(stage, result, old)
        say(f"{stage}: {result.text('kernel')}: " + ("; ".join(found) or "as it should be"))
        wrong |= bool(found)
    return int(wrong)


def fault_command(args: argparse.Namespace) -> int:
    with qmp.Monitor(Path(args.socket)) as monitor:
        for line in args.lines:
            monitor.fault(line)
    return 0


def counters_command(args: argparse.Namespace) -> int:
    with qmp.Monitor(Path(args.socket)) as monitor:
        print(json.dumps(monitor.counters(), indent=1))
    return 0


def trace_command(args: argparse.Namespace) -> int:
    """Per CPU: how often what was entered, and the counters at the marks."""
    t = trace.read(Path(args.trace))
    print(f"{t.end_ns / 1e9:.3f} s, {len(t.marks)} marks")
    for cpu in sorted(t.khz):
        entered: dict[str, int] = {}
        for _, state in t.idle.get(cpu, []):
            if state:
                entered[state] = entered.get(state, 0) + 1
        print(f"CPU {cpu}: {len(t.khz[cpu])} frequency changes, entered "
              + (", ".join(f"{name} {count}" for name, count in sorted(entered.items()))
                 or "nothing"))
    for first, last in zip(t.marks[::2], t.marks[1::2]):
        w = trace.window(t, first.value, last.value)
        print(f"marks {first.value}-{last.value}: {w.seconds:.3f} s, "
              f"{w.package_j:.3f} J")
        for cpu, seen in w.cpus.items():
            print(f"  CPU {cpu}: busy {100 * seen.busy:6.2f} % at {seen.mhz:7.1f} MHz")
    return 0


def plot_command(args: argparse.Namespace) -> int:
    plot.draw(trace.read(Path(args.trace)), Path(args.output), args.begin, args.end,
              args.title)
    print(args.output)
    return 0
