# SPDX-License-Identifier: GPL-2.0
"""The command line."""
from __future__ import annotations

import argparse
import io
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from . import (
    VERSION,
    compare,
    doctor,
    explain,
    form,
    freq,
    idle,
    man,
    probe,
    record,
    replay,
    states,
    texts,
)
from .errors import Fail
from .events import Source

DESCRIPTION = """\
Says why CPUs slept, woke and clocked as they did. It reads what perf or trace-cmd
recorded, or records by itself, on any kernel from 5.15 on as far as its tracepoints go.
"""
EPILOG = """\
Why is my machine ...
  slow:   cpuwhy explain; cpuwhy doctor; cpuwhy freq --record 10
  hot:    cpuwhy doctor; cpuwhy idle --record 10
  awake:  cpuwhy idle --record 10 --wakers 20
  what it is, in a file for others: cpuwhy probe
Is this setting better than that one, under my load: cpuwhy compare
Why is the machine of this report ...
  all of it: cpuwhy explain what-they-attached.txt another.log

Exit status: 0 all went well (doctor: found nothing), 1 doctor found
something, 2 wrong input or options.
"""


Commands = argparse._SubParsersAction  # its type has no public name


def _seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 < (value := float(text)) <= 86400:
            return value
    raise argparse.ArgumentTypeError(f"{text}: must be above 0 and at most 86400 seconds")


def _plot(text: str) -> Path:
    path = Path(text)
    if path.suffix not in (".png", ".svg", ".html"):
        raise argparse.ArgumentTypeError(f"{text}: must end in .png, .svg or .html")
    return path


def _recording(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("recording (as root)")
    group.add_argument("--buffer-mb", type=int, default=64, metavar="MB",
                       help="buffer per CPU (default: 64)")
    group.add_argument("--stacks", action="store_true",
                       help="record who called when a timer was armed; costs some us each time")
    group.add_argument("--with", dest="tool", choices=("trace-cmd", "perf"), default="",
                       help="what records (default: trace-cmd, which wakes no CPU while it"
                       " records, else perf)")


def _live(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE",
                        help="perf.data, trace.dat, or text of `perf script --ns` or"
                        " `trace-cmd report -t`, also through xz, gzip or bzip2; - is standard"
                        " input")
    parser.add_argument("--record", type=_seconds, metavar="SECONDS",
                        help="record now instead of reading files")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE",
                        help="keep what --record recorded")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--plot", type=_plot, metavar="FILE.png|svg|html",
                        help="write a picture")


def _add_idle(commands: Commands) -> None:
    sub = commands.add_parser(
        "idle", help="which idle states were wrong, by how much, and who woke the CPUs",
        description="How often each idle state was too deep, adequate or too shallow, by how"
        " much, and who woke the CPUs, ordered by what the wake-ups cost. Several files stand"
        " side by side.")
    _live(sub)
    sub.add_argument("--states", type=Path, metavar="FILE",
                     help="table of idle states, if there is none beside the trace: FILE.json of"
                     " `cpuwhy record`, or lines of name, exit latency and target residency in"
                     " ns; \"live\" takes this machine's")
    sub.add_argument("--by-table", action="store_true",
                     help="judge by the table even if the trace has the kernel's own verdicts")
    sub.add_argument("--cpu", type=int, metavar="N", help="only this CPU")
    sub.add_argument("--per-cpu", action="store_true", help="a row for each CPU and state")
    sub.add_argument("--wakers", type=int, default=10, metavar="N",
                     help="how many causes of wake-ups to list (default: 10; 0: all)")
    _recording(sub)
    sub.set_defaults(run=_idle)


def _add_freq(commands: Commands) -> None:
    sub = commands.add_parser(
        "freq", help="what was asked of the clocks, what came, and who waited for it",
        description="Requests and clocks of each CPU over time, and the episodes in which a task"
        " ran and its CPU got a higher request late: how long, who, and why. The"
        " governor's reasons are inferred from the times of the requests.")
    _live(sub)
    sub.add_argument("--base-mhz", type=float, default=0.0, metavar="MHZ",
                     help="base frequency, at which MPERF counts, if it is not recorded")
    sub.add_argument("--threshold", type=float, default=1.0, metavar="MS",
                     help="shortest wait that is an episode (default: 1 ms)")
    sub.add_argument("--episodes", type=int, default=10, metavar="N",
                     help="how many to list (default: 10; 0: all)")
    _recording(sub)
    sub.set_defaults(run=_freq)


def _add_record(commands: Commands) -> None:
    sub = commands.add_parser(
        "record", help="record for `idle`, `freq` and `replay`",
        description="Record, as `idle --record` does, into a file; FILE.json beside it gets the"
        " idle states and their counters.")
    sub.add_argument("output", type=Path, metavar="FILE", help="where to write")
    sub.add_argument("seconds", type=_seconds, metavar="SECONDS", help="how long, at most 86400")
    command = sub.add_argument("argv", nargs=argparse.REMAINDER, metavar="COMMAND",
                               help="run this while recording, and end with it")
    command.required = False        # errors say so of it
    sub.add_argument("--for", dest="kind", choices=("idle", "freq"), default="idle",
                     help="which events (default: idle)")
    _recording(sub)
    sub.set_defaults(run=_record)


def _add_replay(commands: Commands) -> None:
    sub = commands.add_parser(
        "replay", help="make idle traces for cpuidle-replay of a recording",
        description="Write when each CPU was idle, when its next timer was due and what woke it"
        " to NAME.cpuN.csv.xz, for tools/testing/cpuidle-replay. The timer wheel shows only when"
        " the tick is stopped, so record under a governor that always lets it be stopped: ladder"
        " or haltpoll. Under others, periods in which the tick went on are marked k and end at"
        " the tick at the latest, in the replay too.")
    sub.add_argument("file", type=Path, metavar="FILE", help="what `cpuwhy record` recorded")
    sub.add_argument("name", metavar="NAME", help="beginning of the files' names")
    sub.add_argument("--hz", type=int, default=0, help="CONFIG_HZ, if it is not recorded")
    sub.set_defaults(run=_replay)


def _add_explain(commands: Commands) -> None:
    sub = commands.add_parser(
        "explain", help="what holds the clock down or keeps CPUs awake, from any text or live",
        description="What holds the clock down or keeps CPUs awake, most likely first, each with"
        " the line that shows it and the command that changes it. Reads what people attach to"
        " reports: turbostat, lscpu, cpupower, rdmsr, `grep . /sys/...`, dmesg, whole or cut,"
        " quoted, in any language, a folder, an archive, a sosreport; without FILE, this machine"
        " (registers as root). Says what it did not recognise and what is missing to be sure, and"
        " changes nothing.")
    sub.add_argument("files", nargs="*", metavar="FILE",
                     help="a text, folder or archive of one machine; - is standard input")
    sub.add_argument("--json", action="store_true", help="print JSON")
    sub.set_defaults(run=_explain)


def _add_doctor(commands: Commands) -> None:
    sub = commands.add_parser(
        "doctor", help="what is set up badly, with the command that changes it",
        description="What is set up badly on this machine, a line each with what it does (slow,"
        " hot, awake) and the command that changes it, if the machine has one; at the end, what"
        " could not be looked at. Reads sysfs, proc and the kernel's log only, watches groups that"
        " a CPU limit has throttled for a second, and changes nothing. Exit status 1 if there is"
        " something.")
    sub.add_argument("--root", type=Path, default=Path("/"), metavar="DIR",
                     help="a copy of another machine's sys and proc, a sosreport's too")
    sub.add_argument("--log", type=Path, metavar="FILE",
                     help="the kernel's log, if it is not in DIR")
    sub.add_argument("--json", action="store_true", help="print JSON")
    sub.set_defaults(run=_doctor)


def _add_probe(commands: Commands) -> None:
    sub = commands.add_parser(
        "probe", help="what this machine is and what its clocks and idle states cost, as a text",
        description="Reads model, turbo registers and idle states, and measures wake-ups, changes"
        " of clock, power and hand-overs: on any kernel, as root. Settings that it changes"
        " meanwhile (limits of the clock and enabled idle states of two CPUs) are put back"
        " whatever happens. The result is shown; it has no names, addresses or serial numbers,"
        " and is sent nowhere.")
    sub.add_argument("--seconds", type=_seconds, default=60, metavar="N",
                     help="about how long to measure (default: 60)")
    sub.add_argument("-o", "--output", type=Path, metavar="FILE",
                     help="ask on the terminal, once the text is shown, whether to write it here")
    sub.add_argument("--fields", action="store_true",
                     help="list all that the text may say, and measure nothing")
    sub.set_defaults(run=_probe)


def _add_compare(commands: Commands) -> None:
    sub = commands.add_parser(
        "compare", help="two settings by turns under your load: which is better, and at what",
        description="Sets A and B up by turns, in pairs of blocks in random order, and prints what"
        " B is over A: power or energy, how long tasks waited, clock, switches between tasks, and"
        " the time or a number of COMMAND; each with its interval, and better, worse, same or"
        " cannot tell. Blocks in which the CPU throttled or a limit changed are left out. However"
        " it ends, A is set up again, and stays so; what was set up before A is not known. The"
        " text goes to standard output; in it are no names of hosts, no paths but of settings and"
        " not the COMMAND. As root.")
    sub.add_argument("--a", metavar="SHELL", help="what sets A up; without --a and --b they are"
                     " x86-dvfs-live off and on, if that is installed")
    sub.add_argument("--b", metavar="SHELL", help="what sets B up")
    sub.add_argument("--blocks", type=int, default=compare.Plan.blocks, metavar="N",
                     help=f"of both together: even, at least {compare.LEAST_BLOCKS}"
                     f" (default: {compare.Plan.blocks})")
    sub.add_argument("--seconds", type=_seconds, default=compare.Plan.seconds, metavar="S",
                     help="of a block: COMMAND runs at least once, and again until they are over"
                     f" (default: {compare.Plan.seconds})")
    sub.add_argument("--warm-up", type=_seconds, default=compare.Plan.warm_up, metavar="S",
                     help="after a setting was set up, before its block (default:"
                     f" {compare.Plan.warm_up})")
    sub.add_argument("--number", nargs="?", const=compare.NUMBER, default="", metavar="REGEX",
                     help="judge the last number that COMMAND prints, or the last that REGEX (its"
                     " first group, if it has any) finds, instead of its time")
    sub.add_argument("--less", action="store_true", help="less of this number is better")
    sub.add_argument("argv", nargs="*", metavar="COMMAND", help="after --: the load; without, it"
                     " is whatever runs")
    sub.set_defaults(run=_compare)


def _add_man(commands: Commands) -> None:
    sub = commands.add_parser("man", help="print the manual page",
                              description="Print the manual page, for man -l or to install.")
    sub.set_defaults(run=_man)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="cpuwhy", description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--version", action="version", version=f"cpuwhy {VERSION}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (_add_explain, _add_doctor, _add_idle, _add_freq, _add_record, _add_replay,
                _add_probe, _add_compare, _add_man):
        add(commands)
    return top


def subcommands(top: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    return next(dict(action.choices) for action in top._actions
                if isinstance(action, argparse._SubParsersAction))


def options(top: argparse.ArgumentParser) -> list[str]:
    """All long options of all commands."""
    return [option for sub in subcommands(top).values() for action in sub._actions
            for option in action.option_strings if option.startswith("--")]


def _machine(path: Path, table: Path | None) -> states.Machine | None:
    if table is not None:
        return (states.Machine(states=states.read_sysfs()) if str(table) == "live"
                else states.load(table))
    beside = record.sidecar(path)
    return states.load(beside) if beside.is_file() else None


def _files(args: argparse.Namespace, kind: str, directory: Path) -> list[Path]:
    """The files to read, recorded now if that was asked for."""
    if args.record is None:
        if not args.files:
            raise Fail("nothing to read: give FILE or --record SECONDS")
        return list(args.files)
    if args.files:
        raise Fail("either FILE or --record SECONDS, not both")
    if kind == "freq" and not Path("/sys/devices/system/cpu/cpu0/cpufreq").is_dir():
        raise Fail("this machine has no cpufreq driver, so nothing requests frequencies")
    path = args.output or directory / "trace"
    record.record(path, kind, args.record, [], args.buffer_mb, args.stacks, args.tool)
    return [path]


def _idle(args: argparse.Namespace) -> int:
    from . import show
    with tempfile.TemporaryDirectory(prefix="cpuwhy-") as directory:
        results = []
        for path in _files(args, "idle", Path(directory)):
            machine = _machine(path, args.states)
            with show.progress(str(path)) as tick:
                results.append(idle.analyse(Source(path), machine, _label(path, args),
                                            tick, args.by_table))
    if args.plot:
        from . import plot
        plot.idle(results, args.plot)
    show.idle(results, args)
    return 0


def _label(path: Path, args: argparse.Namespace) -> str:
    return "now" if args.record is not None else path.name


def _freq(args: argparse.Namespace) -> int:
    from . import show
    with tempfile.TemporaryDirectory(prefix="cpuwhy-") as directory:
        results = []
        for path in _files(args, "freq", Path(directory)):
            with show.progress(str(path)) as tick:
                results.append(freq.analyse(
                    Source(path), _machine(path, None), _label(path, args),
                    args.base_mhz * 1000, round(args.threshold * 1e6), tick))
    if args.plot:
        from . import plot
        plot.freq(results, args.plot)
    show.freq(results, args)
    return 0


def _record(args: argparse.Namespace) -> int:
    argv = args.argv[1:] if args.argv[:1] == ["--"] else args.argv
    machine = record.record(args.output, args.kind, args.seconds, argv, args.buffer_mb,
                            args.stacks, args.tool)
    size = args.output.stat().st_size
    print(f"{args.output}: {machine.seconds:.1f} s, {size / 1e6:.1f} MB, by {machine.with_tool};"
          f" idle states in {record.sidecar(args.output)}")
    return 0


def _replay(args: argparse.Namespace) -> int:
    from . import show
    source = Source(args.file)
    machine = _machine(args.file, None)
    if machine and machine.governor not in replay.STOPPING:
        print(f"cpuwhy: note: {machine.governor or 'no governor'} retains the tick at times, and"
              " then the timer wheel's part of sleep_ns is unknown; ladder never does",
              file=sys.stderr)
    with show.progress(str(args.file)) as tick:
        writer = replay.convert(source, machine, args.name, args.hz, tick)
    for cpu, rows in sorted(writer.rows.items()):
        print(f"{writer.path(cpu)}: {rows} idle periods, no events lost")
    return 0


def _doctor(args: argparse.Namespace) -> int:
    from . import report
    if not (args.root / "sys/devices/system/cpu").is_dir():
        raise Fail(f"{args.root}: has no sys/devices/system/cpu")
    system = doctor.System(args.root, args.log and args.log.read_text(errors="replace"))
    findings = doctor.examine(system)
    report.doctor(findings, doctor.unseen(system), args.json)
    return int(any(finding.effect != "note" for finding in findings))


def _explain(args: argparse.Namespace) -> int:
    from . import report
    case = explain.of_files(args.files) if args.files else explain.live()
    if args.files and not case.material.recognised:
        said = [f"{name}: {reason}" for name, reason in case.material.unknown] or [
            f"{args.files[0]}: nothing that is known here"]
        raise Fail(texts.shown(f"{said[0]}; give the text of turbostat, lscpu, cpupower, rdmsr,"
                               " dmesg or grep . /sys/devices/system/cpu/cpu*/cpufreq/*"))
    report.explain(explain.explain(case), args.json)
    return 0


def _probe(args: argparse.Namespace) -> int:
    if args.fields:
        print("\n".join(f"{name:20} {about}" for name, about in form.fields()))
        return 0
    if args.output and not sys.stdin.isatty():
        raise Fail("-o asks on a terminal before it writes; there is none: leave it out, the text"
                   " goes to standard output")
    text = probe.run(args.seconds, lambda said: print(f"cpuwhy: {said}", file=sys.stderr,
                                                      flush=True))
    print(text, end="", flush=True)
    if args.output:
        try:
            answer = input(f"Write this to {args.output}? [y/N] ")
        except EOFError:
            answer = ""
        if answer.strip().lower() == "y":
            args.output.write_text(text)
    return 0


def _compare(args: argparse.Namespace) -> int:
    a, b = compare.defaults(args.a, args.b, bool(shutil.which(compare.LIVE)))
    plan = compare.Plan(a, b, args.blocks, args.seconds, args.warm_up, tuple(args.argv),
                        args.number, args.less)
    print(compare.run(plan, lambda said: print(f"cpuwhy: {said}", file=sys.stderr, flush=True)),
          end="", flush=True)
    return 0


def _man(args: argparse.Namespace) -> int:
    top = parser()
    print(man.page(top, subcommands(top)), end="")
    return 0


def main(argv: list[str] | None = None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):    # a name that is no text, a terminal of ASCII
            stream.reconfigure(errors="backslashreplace")
    args = parser().parse_args(argv)
    try:
        return int(args.run(args))
    except Fail as fail:
        print(f"cpuwhy: {fail}", file=sys.stderr)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        where = f"{error.filename}: " if error.filename else ""
        print(f"cpuwhy: {where}{error.strerror or error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("cpuwhy: interrupted", file=sys.stderr)
    return 2
