# SPDX-License-Identifier: GPL-2.0
"""Two settings by turns under whatever load runs, in one boot: what the second one changes.

Blocks come in pairs, one of each setting. A figure is the mean of the pairs' ratios, so that what
changes slowly falls out; its interval is Student's. Several measures are judged, each at the
level that gives the whole report 95 % (Bonferroni): if the settings do the same, at most one report
in 40 says "better" of anything.
"""
from __future__ import annotations

import fcntl
import math
import os
import random
import re
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from . import doctor, form, judge, measure, probe, sample
from .errors import Fail
from .guard import Guard

Tell = Callable[[str], None]
LOCK = Path("/run/cpuwhy-compare.lock")
LIVE = "x86-dvfs-live"
LEAST_BLOCKS, LEAST_PAIRS = 8, 3
#: Of one call of a setting, and of a command that was told to end.
SETTING_S, END_S = 120, 5
#: Of a block, for the trace that follows it; at most.
TRACE_SHARE, TRACE_S = 0.1, 1.0
#: From the other blocks of a setting.
DEGREES = 10
NUMBER = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
LEVEL = 0.95
#: In place of a verdict, of what is not judged.
OPEN = "-"
UNITS = {"time": "s", "number": "", "energy": "J", "power": "W", "wake-up": "us",
         "run delay": "us", "clock": "MHz", "switches": "1/s"}
#: In which a setting can be better.
JUDGED = ("time", "number", "energy", "power", "wake-up", "run delay")
WHY = {"clock": "no /dev/cpu/*/msr (modprobe msr)", "run delay": "no /proc/schedstat",
       "wake-up": form.WHY["tracing"]}

#: What of a setting may be shown. Others have names and places in them.
TOOLS = (LIVE, "cpupower", "echo", "sysctl", "tuned-adm", "powerprofilesctl", "wrmsr",
         "x86_energy_perf_policy")
WORD = re.compile(
    "|".join((r"-[a-zA-Z]|--(?:all|cpu|epb|epp|governor|perf-bias|turbo|min|max)", r"0x[0-9a-f]+",
              r"\d+(?:\.\d+)?(?:[kMG]Hz)?", r"[YNn]", "on|off|set|profile",
              "frequency-set|idle-set|choice|teo|freq|schedutil|chains|pairs",
              "balanced|power-saver|throughput-performance", r"[>|;]|&&", "tee",
              r"(?:NO_)?(?:SIS_\w+|CHAINS|PAIRS)",
              r"/(?:sys/(?:devices/system/cpu|module|class/powercap|kernel/debug)|proc/sys/kernel)"
              r"/[\w/.*:?\[\]-]+", *form.GOVERNORS, *form.EPP)))


@dataclass(frozen=True)
class Plan:
    """@a and @b: shell; @number: a pattern of what the command prints, or nothing."""
    a: str
    b: str
    blocks: int = 16
    seconds: float = 20
    warm_up: float = 3
    argv: tuple[str, ...] = ()
    number: str = ""
    less: bool = False      # is better, of the number

    def judged(self, name: str) -> bool:
        """Power says nothing where the work is not the same: of a command, its energy."""
        return name in JUDGED and not (name == "power" and self.argv)

    def worse_if_more(self, name: str) -> bool:
        return name != "number" or self.less


@dataclass
class Block:
    number: int
    setting: str
    values: dict[str, float]
    celsius: float | None = None
    why: str = ""           # it cannot be compared
    woken: tuple[int, int] = (0, 0)     # wake-ups of idle CPUs, and from a deep state


# --- what was found -------------------------------------------------------------

@dataclass(frozen=True)
class Line:
    name: str
    a: float
    b: float
    ratio: judge.Ratio | None
    verdict: str

    def __str__(self) -> str:
        what = f"{self.name}, {UNITS[self.name]}".removesuffix(", ")
        return f"{what:24} {judge.figures(self.a, self.b, self.ratio, self.verdict)}"


def heat(blocks: Sequence[Block]) -> None:
    """Says of blocks that were much hotter or colder than the others of their setting."""
    for setting in "AB":
        of = [block for block in blocks if block.setting == setting and block.celsius is not None]
        if of:
            usual = statistics.median(block.celsius or 0 for block in of)
            for block in of:
                away = (block.celsius or 0) - usual
                if abs(away) > DEGREES and not block.why:
                    block.why = (f"{abs(away):.0f} degrees {'hotter' if away > 0 else 'colder'} "
                                 f"than with {setting} otherwise")


def pairs(blocks: Sequence[Block]) -> list[tuple[Block, Block]]:
    """A and B of those that can be compared."""
    found = []
    for one, other in zip(blocks[::2], blocks[1::2]):
        if not one.why and not other.why:
            found.append((one, other) if one.setting == "A" else (other, one))
    return found


def line(plan: Plan, name: str, of: Sequence[tuple[Block, Block]], level: float) -> Line:
    both = [(a.values[name], b.values[name]) for a, b in of
            if a.values.get(name, 0) > 0 and b.values.get(name, 0) > 0]
    if len(both) < LEAST_PAIRS:
        return Line(name, 0, 0, None, "too few blocks")
    a, b = ([pair[n] for pair in both] for n in (0, 1))
    found = judge.paired(b, a, level)
    says = judge.verdict(found, plan.worse_if_more(name)) if plan.judged(name) else OPEN
    return Line(name, statistics.geometric_mean(a), statistics.geometric_mean(b), found, says)


def level_of(judged: int) -> float:
    return 1 - (1 - LEVEL) / max(1, judged)


def lines(plan: Plan, blocks: Sequence[Block]) -> list[Line]:
    there = {name for block in blocks for name in block.values}
    names = [name for name in UNITS if name in there]
    level = level_of(sum(map(plan.judged, names)))
    return [line(plan, name, pairs(blocks), level) for name in names]


def headline(found: Sequence[Line]) -> str:
    """Of the whole: "better" only if nothing is worse."""
    said = {one.verdict for one in found} - {OPEN}
    both = [word for word in (judge.BETTER, judge.WORSE) if word in said]
    if both:
        return " and ".join(both)
    return judge.SAME if said == {judge.SAME} else judge.UNKNOWN


def shown(setting: str) -> str:
    """Its words, if they are known and say nothing of who and where."""
    words = setting.replace(";", " ; ").split()
    if words and words[0] in TOOLS and all(map(WORD.fullmatch, words[1:])):
        return " ".join(words)
    return "a command that is not shown"


def text(plan: Plan, blocks: Sequence[Block], machine: str) -> str:
    """The report. Names, places and the command are not in it."""
    heat(blocks)
    found = lines(plan, blocks)
    level = level_of(sum(plan.judged(one.name) for one in found))
    what = "a command" if plan.argv else "what ran meanwhile"
    out = ["# cpuwhy compare: B over A", f"# A: {shown(plan.a)}", f"# B: {shown(plan.b)}",
           f"# {machine}",
           f"# {len(blocks)} blocks of {plan.seconds:g} s of {what}, each after {plan.warm_up:g} s"
           " of warm-up, in the order " + "".join(block.setting for block in blocks)]
    out += [f"# block {block.number} ({block.setting}) and the other of its pair are left out: "
            f"{block.why}" for block in blocks if block.why]
    out += [f"# no {name}: {why}" for name, why in WHY.items()
            if name not in {one.name for one in found}]
    out.append(f"# {'measure':22} {'A':>9} {'B':>9}  ratio {100 * level:.3g} % interval")
    out += map(str, found)
    out.append(f"{'verdict':24} {headline(found)}")
    for setting in "AB":
        of = [block.woken for block in blocks if block.setting == setting]
        if woken := sum(count for count, _ in of):
            out.append(f"# {setting}: {100 * sum(deep for _, deep in of) / woken:.0f} % of the "
                       f"wake-ups of idle CPUs are from states of over {sample.DEEP_US} us")
    if peaks := [block.celsius for block in blocks if block.celsius is not None]:
        out.append(f"# at most {max(peaks):.0f} degrees C")
    names = [one.name for one in found]
    out.append("# block setting " + ", ".join(names))
    out += [f"# {block.number:2} {block.setting} "
            + " ".join(f"{block.values[name]:.5g}" if name in block.values else "-"
                       for name in names) for block in blocks]
    return "\n".join(out) + "\n"


# --- what is done ---------------------------------------------------------------

def check(plan: Plan) -> None:
    """Options that cannot be."""
    if plan.blocks < LEAST_BLOCKS or plan.blocks % 2:
        raise Fail(f"--blocks {plan.blocks}: must be even and at least {LEAST_BLOCKS}, half of"
                   " them for each setting")
    if (plan.number or plan.less) and not plan.argv:
        raise Fail("--number and --less are of what a command prints: give it after --")
    if plan.less and not plan.number:
        raise Fail("--less is of a number that the command prints: give --number; of time less is"
                   " always better")
    try:
        re.compile(plan.number)
    except re.error as error:
        raise Fail(f"--number {plan.number}: is no regular expression: {error}") from None


def refuse(system: doctor.System, uid: int, zones: Sequence[Path]) -> None:
    """Where nothing can be compared."""
    if probe.container(system):
        raise Fail("compare cannot measure in a container, which has neither the CPU's registers"
                   " nor its settings: run it on the host")
    if uid:
        raise Fail("compare needs root, for the settings and the counters: sudo cpuwhy compare")
    if not zones:
        raise Fail("this machine has no counter of energy that can be read (packages of"
                   " /sys/class/powercap; modprobe intel_rapl_msr), so nothing can be compared")


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Two at once would change each other's settings. The process that puts settings back holds
    it too, until it has done so."""
    with open(path, "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Fail("another cpuwhy compare is at work, or puts its setting back: wait until it"
                       " has ended") from None
        yield


def said(file: object) -> str:
    """The last line of what a command wrote there."""
    file.seek(0)                            # type: ignore[attr-defined]
    rows = file.read().decode(errors="replace").split("\n")  # type: ignore[attr-defined]
    last = next((row.strip() for row in reversed(rows) if row.strip()), "")
    return f": {last[:160]}" * bool(last)


def set_up(name: str, command: str) -> None:
    with tempfile.TemporaryFile() as errors:
        try:
            done = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=errors, timeout=SETTING_S)
        except subprocess.TimeoutExpired:
            raise Fail(f"--{name} has not ended after {SETTING_S} s; it must set something up and"
                       " end") from None
        if done.returncode:
            raise Fail(f"--{name} ended with status {done.returncode}{said(errors)}")


def put_back(command: str) -> None:
    """In the process of Guard."""
    try:
        set_up("a", command)
    except Fail as fail:
        raise OSError(str(fail)) from None


def result(plan: Plan, out: str, seconds: float) -> float:
    """Of a run of the command."""
    if not plan.number:
        return seconds
    found = list(re.finditer(plan.number, out))
    if not found:
        raise Fail("the command printed nothing that --number "
                   + ("finds" if plan.number != NUMBER else "could be: no number"))
    word = found[-1][1] if found[-1].re.groups else found[-1][0]
    try:
        value = float(word)
    except (TypeError, ValueError):
        raise Fail(f"--number found {str(word)[:40]!r}, which is no number") from None
    if not (value > 0 and math.isfinite(value)):
        raise Fail(f"--number found {value:g}; ratios need numbers above 0")
    return value


def run_command(plan: Plan, meanwhile: Callable[[], object]) -> float:
    """Its time or number. It ends with us, whatever ends us."""
    with tempfile.TemporaryFile() as errors:
        begin = time.monotonic()
        try:
            process = subprocess.Popen(plan.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=errors, start_new_session=True)
        except OSError as error:
            raise Fail(f"{plan.argv[0]}: {error.strerror}") from None
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    out, _ = process.communicate(timeout=sample.POLL_S)
                    break
                meanwhile()
            seconds = time.monotonic() - begin
        except BaseException:
            with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(END_S)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
        if process.returncode:
            raise Fail(f"the command ended with status {process.returncode}{said(errors)}")
        return result(plan, out.decode(errors="replace"), seconds)


@dataclass
class Comparison:
    """What goes on; @tell: where it says so; @trace: whether there is one."""
    plan: Plan
    tell: Tell
    reader: sample.Reader
    trace: bool
    usual: dict[str, dict[str, str]] = field(default_factory=dict)      # limits, by setting
    done: list[Block] = field(default_factory=list)

    def _load(self) -> list[float]:
        """What the block is of: at least once, and until its time is over."""
        end = time.monotonic() + self.plan.seconds
        results: list[float] = []
        while self.plan.argv and (not results or time.monotonic() < end):
            results.append(run_command(self.plan, self.reader.joules))
        while (left := end - time.monotonic()) > 0 and not self.plan.argv:
            time.sleep(min(left, sample.POLL_S))
            self.reader.joules()
        return results

    def _measured(self) -> tuple[sample.Counters, sample.Counters, list[float], sample.Wakes]:
        """A command is traced while it begins, and what runs anyway after its block."""
        window = min(TRACE_S, TRACE_SHARE * self.plan.seconds)
        with sample.traced(window if self.trace else 0, bool(self.plan.argv)) as trace:
            begin = self.reader.read()
            results = self._load()
            end = self.reader.read()
        return begin, end, results, trace

    def block(self, number: int, setting: str) -> Block:
        plan = self.plan
        set_up(setting.lower(), plan.a if setting == "A" else plan.b)
        time.sleep(plan.warm_up)
        begin, end, results, trace = self._measured()
        values, degrees = sample.values(begin, end), sample.celsius()
        if results:
            mean = statistics.geometric_mean(results)
            values["number" if plan.number else "time"] = mean
            rate = plan.number and not plan.less        # energy is of a unit of it, or of a run
            values["energy"] = (values["power"] / mean if rate
                                else (end.joules - begin.joules) / len(results))
        if trace.us:
            values["wake-up"] = statistics.fmean(trace.us)
        why = sample.disturbed(begin, end, self.usual.get(setting))
        self.usual.setdefault(setting, end.limits)
        return Block(number, setting, values, degrees, why, (len(trace.us), trace.deep))

    def run(self, rng: random.Random) -> list[Block]:
        plan, began = self.plan, time.monotonic()
        order = judge.order(rng, plan.blocks // 2, "AB")
        for number, setting in enumerate(order, 1):
            took = (time.monotonic() - began) / (number - 1) if number > 1 else (
                plan.seconds + plan.warm_up)
            left = took * (plan.blocks - number + 1)
            self.tell(f"block {number} of {plan.blocks}, {setting}, about "
                      + (f"{left / 60:.0f} min left" if left > 90 else f"{left:.0f} s left"))
            self.done.append(self.block(number, setting))
            if why := self.done[-1].why:
                self.tell(f"block {number} cannot be compared: {why}")
        return self.done


def defaults(a: str | None, b: str | None, live: bool) -> tuple[str, str]:
    if a and b:
        return a, b
    if a is not None or b is not None or not live:
        raise Fail("give both settings: --a 'COMMAND' --b 'COMMAND'; without, they are"
                   f" {LIVE} off and on" + ", which is not installed" * (not live))
    return f"{LIVE} off", f"{LIVE} on"


@contextmanager
def stopped() -> Iterator[None]:
    """Signals that end programs end the block first; those that are ignored stay so."""
    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)
              if signal.getsignal(number) != signal.SIG_IGN}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run(plan: Plan, tell: Tell) -> str:
    """The report."""
    check(plan)
    system = doctor.System(Path("/"))
    refuse(system, os.geteuid(), measure.packages())
    machine = next(form.sentences({"cpu": probe.cpu(system), "kernel": probe.kernel(system)}))
    pid = os.getpid()
    guard = Guard({"a": lambda: put_back(plan.a), **measure.UNLOAD,
                   measure.INSTANCE: lambda: measure.undo_tracing(pid)},
                  "--a could not be put back, it failed: the machine may have either setting")
    with alone(LOCK), stopped():
        try:
            with guard:
                guard.later("a")
                guard.later(measure.INSTANCE)
                tell("tries both settings")
                set_up("b", plan.b)
                set_up("a", plan.a)
                measure.load(guard)
                comparison = Comparison(plan, tell, sample.Reader(), sample.usable_trace())
                if plan.argv:
                    tell("runs the command once, which does not count")
                    run_command(plan, lambda: None)
                blocks = comparison.run(random.SystemRandom())
        finally:
            if not guard.failed:
                tell("the setting is --a now, and stays so")
    return text(plan, blocks, machine)
