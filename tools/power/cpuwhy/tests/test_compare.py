# SPDX-License-Identifier: GPL-2.0
"""Verdicts against planted truth, blocks that are left out, and that A is put back."""
from __future__ import annotations

import math
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from cpuwhy import compare, doctor, judge, measure, sample
from cpuwhy.errors import Fail
from cpuwhy.tests.test_probe import SECRETS, machine

POWER = Path(__file__).resolve().parents[2]
README = POWER / "cpuwhy/README.md"
PLAN = compare.Plan("true", "true")
NAMES = ("power", "wake-up", "run delay")
Blocks = list[compare.Block]


# --- verdicts -------------------------------------------------------------------

def test_order_is_random_and_balanced() -> None:
    """Each pair has both, and each setting is first in half of the pairs."""
    for rounds in (4, 5, 8):
        orders = {tuple(judge.order(random.Random(seed), rounds, "AB")) for seed in range(400)}
        assert len(orders) == math.comb(rounds, rounds // 2) * (1 + rounds % 2)
        for order in orders:
            assert all(set(order[n:n + 2]) == {"A", "B"} for n in range(0, 2 * rounds, 2))
            assert sum(one == "A" for one in order[::2]) in (rounds // 2, (rounds + 1) // 2)


@pytest.mark.parametrize(("freedom", "level", "t"), [
    (1, 0.95, 12.706), (2, 0.95, 4.303), (3, 0.95, 3.182), (7, 0.95, 2.365), (7, 0.99, 3.499),
    (3, 0.99, 5.841), (8, 0.98, 2.896), (30, 0.95, 2.042), (100, 0.95, 1.984)])
def test_students_table(freedom: int, level: float, t: float) -> None:
    assert judge.student(freedom, level) == pytest.approx(t, abs=6e-4)


def noise(shape: str, rng: random.Random, count: int) -> list[float]:
    """Of the load, as logarithms: the settings have no part in it."""
    white = [rng.gauss(0, 0.05) for _ in range(count)]
    if shape == "drift":
        return [x + 0.4 * n / count for n, x in enumerate(white)]
    if shape == "warming":
        return [x - 0.4 * math.exp(-n / 2) for n, x in enumerate(white)]
    if shape == "step":
        at = rng.randrange(count)
        return [x + 0.5 * (n >= at) for n, x in enumerate(white)]
    if shape == "outliers":
        return [x + rng.choice((-1, 1)) * (rng.random() < 0.1) for x in white]
    if shape == "autocorrelation":
        out = [rng.gauss(0, 0.15)]
        for _ in range(count - 1):
            out.append(0.95 * out[-1] + rng.gauss(0, 0.05))
        return out
    if shape == "cycle":
        phase = rng.randrange(4)
        return [x / 10 + 0.1 * ((n + phase) // 2 % 2) for n, x in enumerate(white)]
    return white


SHAPES = ("white", "drift", "warming", "step", "outliers", "autocorrelation", "cycle")


def blocks(rng: random.Random, shape: str = "white", count: int = 16, quiet: float = 1,
           **gain: float) -> Blocks:
    """@gain: of a measure, what B is over A."""
    of = {name: noise(shape, rng, count) for name in NAMES}
    return [compare.Block(n + 1, setting, {
        name: 10 * math.exp(quiet * of[name][n]) * gain.get(name.replace("-", "_"), 1) ** (
            setting == "B") for name in NAMES})
        for n, setting in enumerate(judge.order(rng, count // 2, "AB"))]


def said(of: Blocks, plan: compare.Plan = PLAN) -> str:
    return compare.headline(compare.lines(plan, of))


@pytest.mark.parametrize("shape", SHAPES)
def test_no_difference_is_no_better(shape: str) -> None:
    """At most one report in 40 says so of anything, within three standard errors."""
    count = 600
    words = Counter(said(blocks(random.Random(f"{shape}{n}"), shape)) for n in range(count))
    most = count / 40 + 3 * math.sqrt(count / 40 * 39 / 40)
    assert words["better"] + words["better and worse"] <= most, words
    assert words["worse"] + words["better and worse"] <= most, words


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("gain", "word"), [(0.75, "better"), (1.35, "worse")])
def test_a_difference_is_found(shape: str, gain: float, word: str) -> None:
    """Of less than half of what the load's own steps and drifts are; of outliers twice as far,
    it may be that nothing can be told. Never the contrary."""
    count = 100
    words = Counter(said(blocks(random.Random(f"{shape}{n}"), shape, power=gain))
                    for n in range(count))
    contrary = {"better": "worse", "worse": "better"}[word]
    assert words[contrary] <= count / 40
    if shape not in ("outliers", "step"):
        assert words[word] >= 0.9 * count, words


def test_small_differences_are_the_same() -> None:
    """Less than 3 % is no change, though its interval is far from 1."""
    for gain in (1, 1.02, 0.98):
        assert {said(blocks(random.Random(n), quiet=0.02, power=gain)) for n in range(50)} == {
            "same"}


def test_a_wide_interval_tells_nothing() -> None:
    words = {said(blocks(random.Random(n), quiet=10)) for n in range(20)}
    assert words <= {"cannot tell", "better", "worse"} and "cannot tell" in words


def test_better_in_one_and_worse_in_another() -> None:
    of = blocks(random.Random(1), quiet=0.1, power=1.4, wake_up=0.1)
    assert [(one.name, one.verdict) for one in compare.lines(PLAN, of)] == [
        ("power", "worse"), ("wake-up", "better"), ("run delay", "same")]
    assert said(of) == "better and worse"
    assert said(blocks(random.Random(1), quiet=0.1, power=0.7, wake_up=0.7)) == "better"


@pytest.mark.parametrize(("number", "less", "gain", "word"), [
    (".", False, 1.2, "better"), (".", True, 1.2, "worse"), ("", False, 1.2, "worse")])
def test_more_of_a_number_is_better_and_of_time_worse(number: str, less: bool, gain: float,
                                                      word: str) -> None:
    """Of a command's power nothing is said: its work is not the same, its energy is judged."""
    plan = compare.Plan("true", "true", argv=("x",), number=number, less=less)
    name = "number" if number else "time"
    of = blocks(random.Random(1), quiet=0.1, power=2)
    for block in of:
        block.values[name] = block.values["wake-up"] * (gain if block.setting == "B" else 1)
    found = {one.name: one.verdict for one in compare.lines(plan, of)}
    assert found == {name: word, "power": "-", "wake-up": "same", "run delay": "same"}


# --- what cannot be compared ----------------------------------------------------

def test_a_pair_is_left_out_and_said() -> None:
    """A block that throttled drew half; with it nothing could be told."""
    of = blocks(random.Random(1), quiet=0.1)
    of[4].values["power"] /= 2
    assert said(of) == "cannot tell"
    of[4].why = "the CPU throttled"
    assert said(of) == "same"
    assert (f"# block 5 ({of[4].setting}) and the other of its pair are left out: the CPU"
            " throttled\n") in compare.text(PLAN, of, "A CPU.")
    for block in of[:12:2]:
        block.why = "the CPU throttled"
    assert {one.verdict for one in compare.lines(PLAN, of)} == {"too few blocks"}
    assert said(of) == "cannot tell"


def test_a_block_on_a_hot_machine_is_left_out() -> None:
    """A setting may be hotter than the other, not than itself."""
    of = blocks(random.Random(1))
    for block in of:
        block.celsius = 50 + 20 * (block.setting == "B")
    of[7].celsius = (of[7].celsius or 0) + 15
    compare.heat(of)
    assert [block.number for block in of if block.why] == [8]
    assert of[7].why == f"15 degrees hotter than with {of[7].setting} otherwise"


def counters(**of: object) -> sample.Counters:
    usual: dict[str, object] = {"ns": 0, "joules": 0.0, "clock": None, "waits": None,
                                "switches": 0, "asleep_s": 0.0, "throttled": 3,
                                "limits": {"x": "1"}}
    return sample.Counters(**(usual | of))  # type: ignore[arg-type]


@pytest.mark.parametrize(("end", "usual", "why"), [
    ({}, None, ""), ({}, {"x": "1"}, ""), ({"throttled": 4}, None, "throttled"),
    ({"limits": {"x": "2"}}, None, "limit"), ({}, {"x": "2"}, "limit"),
    ({"asleep_s": 5.0}, None, "suspended")])
def test_why_a_block_is_left_out(end: dict[str, object], usual: dict[str, str] | None,
                                 why: str) -> None:
    found = sample.disturbed(counters(), counters(**end), usual)
    assert why in found and bool(why) == bool(found)


# --- what is read ---------------------------------------------------------------

def put(root: Path, name: str, text: object) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")
    return path


def test_counters(tmp_path: Path) -> None:
    """An energy counter that starts anew; a CPU without registers; schedstat's ninth and tenth
    words."""
    zone = put(tmp_path, "rapl/max_energy_range_uj", 999_999).parent
    put(tmp_path, "rapl/energy_uj", 900_000)
    registers = {measure.APERF: 100, measure.MPERF: 100, sample.TSC: 0}
    for cpu in range(3):
        (tmp_path / f"dev/cpu/{cpu}").mkdir(parents=True)

    def state(switches: int, ns: int, count: int) -> sample.Counters:
        put(tmp_path, "proc/stat", f"cpu 1 2 3\nctxt {switches}\nbtime 5")
        put(tmp_path, "proc/schedstat", "version 17\ntimestamp 1\n" + "".join(
            f"cpu{n} 9 9 9 9 9 9 9 {ns} {count}\ndomain0 MC 3 9 9 9\n" for n in range(2)))
        return reader.read()

    reader = sample.Reader(tmp_path, [zone], lambda cpu, n: None if cpu == 2 else registers[n])
    begin = state(100, 0, 0)
    put(tmp_path, "rapl/energy_uj", 100_000)
    reader.joules()
    put(tmp_path, "rapl/energy_uj", 300_000)
    registers.update({measure.APERF: 700, measure.MPERF: 400, sample.TSC: 2_000_000_000})
    end = state(400, 5_000_000, 1000)
    one_second = replace(end, ns=begin.ns + 1_000_000_000)
    assert sample.values(begin, one_second) == pytest.approx(
        {"power": 0.4, "switches": 300, "clock": 4000, "run delay": 5})


TRACE = """\
# tracer: nop
          <idle>-0       [001] d..1.   10.000000: cpu_idle: state=2 cpu_id=1
          <idle>-0       [002] d..1.   10.000000: cpu_idle: state=1 cpu_id=2
            a [9]-7      [000] d..2.   10.000100: sched_waking: comm=b-9 pid=8 prio=120 target_cpu=001
            a [9]-7      [000] d..2.   10.000200: sched_waking: comm=c pid=9 prio=120 target_cpu=002
          <idle>-0       [002] d..1.   10.000203: cpu_idle: state=4294967295 cpu_id=2
          <idle>-0       [002] d..2.   10.000205: sched_switch: prev_comm=swapper/2 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=c next_pid=9 next_prio=120
          <idle>-0       [001] d..1.   10.000230: cpu_idle: state=4294967295 cpu_id=1
          <idle>-0       [001] d..2.   10.000240: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b-9 next_pid=8 next_prio=120
            c-9          [002] d..2.   10.000300: sched_switch: prev_comm=c prev_pid=9 prev_prio=120 prev_state=S ==> next_comm=swapper/2 next_pid=0 next_prio=120
            b-9-8        [001] d..2.   10.000400: sched_waking: comm=c pid=9 prio=120 target_cpu=002
          <idle>-0       [002] d..1.   10.000405: cpu_idle: state=2 cpu_id=2
          <idle>-0       [002] d..2.   10.000409: sched_switch: prev_comm=swapper/2 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=c next_pid=9 next_prio=120
"""  # noqa: E501


def test_waits_of_the_trace() -> None:
    """From the call until the task runs; a state that was entered after it does not count as
    what the CPU came from."""
    found = sample.wakes(TRACE, {(1, 2), (2, 2)}, set())
    assert found == sample.Wakes([5, 140, 9], 1)


def test_a_full_buffer_ends_the_trace() -> None:
    """On all CPUs: what another one still says has lost its partner."""
    assert sample.wakes(TRACE, set(), {0}) == sample.Wakes([], 0)
    assert sample.wakes(TRACE, set(), {1}).us == [5, 140]


# --- the report -----------------------------------------------------------------

@pytest.mark.parametrize(("setting", "shown"), [
    ("cpupower frequency-set -g performance", True), ("x86-dvfs-live on choice", True),
    ("echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo", True),
    ("echo NO_SIS_SHALLOW >/sys/kernel/debug/sched/features", False),
    ("echo NO_SIS_SHALLOW > /sys/kernel/debug/sched/features", True),
    ("ssh erikas-laptop reboot", False), ("/home/erika/slow.sh", False),
    ("echo erika > /sys/module/aperfmperf/parameters/freq_max", False),
    ("cpupower -c 0 frequency-set -g $ERIKA", False)])
def test_of_settings_only_known_words_are_shown(setting: str, shown: bool) -> None:
    assert (compare.shown(setting) == setting) == shown
    assert shown or "erika" not in compare.shown(setting)


def test_the_document_lists_every_line_of_a_report() -> None:
    """And a report has no others, whatever the settings and the command say."""
    planted = " ".join(SECRETS)
    plan = compare.Plan(f"echo {planted}", "cpupower frequency-set -g schedutil", argv=SECRETS)
    of = blocks(random.Random(1), quiet=0.1)
    for block in of:
        block.values |= {"time": 1.0, "energy": 2.0, "clock": 3.0, "switches": 4.0}
        block.celsius, block.woken = 50.0, (10, 5)
    of[3].why = "the CPU throttled"
    text = compare.text(plan, of, "INTEL(R) XEON(R) PLATINUM 8592+, Linux 6.12.117.")
    for block in of:
        del block.values["wake-up"]
    of[5].why = of[7].why = of[9].why = of[11].why = of[13].why = "the machine was suspended"
    text += compare.text(PLAN, of, "A CPU, Linux 6.12.")
    assert not set(SECRETS) & set(re.split(r"[\s,:]+", text))
    rows = re.findall(r"^\| `([^`]+)` \|", README.read_text().partition("lines of a report")[2],
                      re.M)
    forms = {row: re.sub(r"[A-Z]{2,}", ".+", re.escape(row)) for row in rows}
    met = {line: [row for row, form in forms.items() if re.fullmatch(form, " ".join(line.split()))]
           for line in text.splitlines()}
    assert [line for line, found in met.items() if not found] == []
    assert set(rows) == {row for found in met.values() for row in found}
    assert max(map(len, text.splitlines())) <= 120


# --- errors, before any work ----------------------------------------------------

@pytest.mark.parametrize(("changes", "said"), [
    ({"blocks": 6}, "--blocks 6: must be even and at least 8"),
    ({"blocks": 9}, "--blocks 9: must be even"),
    ({"number": "x"}, "--number and --less are of what a command prints"),
    ({"argv": ("x",), "less": True}, "--less is of a number"),
    ({"argv": ("x",), "number": "("}, "no regular expression")])
def test_options_that_cannot_be(changes: dict[str, object], said: str) -> None:
    with pytest.raises(Fail, match=re.escape(said)):
        compare.check(compare.Plan("true", "true", **changes))  # type: ignore[arg-type]
    compare.check(compare.Plan("true", "true", 8))


def test_where_nothing_can_be_compared(tmp_path: Path) -> None:
    system, zone = machine(tmp_path), [tmp_path]
    compare.refuse(system, 0, zone)
    with pytest.raises(Fail, match="needs root"):
        compare.refuse(system, 1000, zone)
    with pytest.raises(Fail, match="no counter of energy"):
        compare.refuse(system, 0, [])
    put(tmp_path, "run/systemd/container", "lxc")
    with pytest.raises(Fail, match="in a container"):
        compare.refuse(doctor.System(tmp_path), 0, zone)


def test_default_settings() -> None:
    assert compare.defaults(None, None, True) == ("x86-dvfs-live off", "x86-dvfs-live on")
    assert compare.defaults("x", "y", True) == ("x", "y")
    for a, b, live in ((None, None, False), ("x", None, True), (None, "y", True), ("", "y", True)):
        with pytest.raises(Fail, match="^give both settings"):
            compare.defaults(a, b, live)


@pytest.mark.parametrize(("number", "out", "value"), [
    (compare.NUMBER, "tps = 12.5\nlatency 3e-2 ms", 0.03), (r"tps = (\S+)", "tps = 12.5", 12.5),
    (r"\d+ hops", "7 hops", "no number"), ("x", "y", "finds"), (compare.NUMBER, "", "could be"),
    (compare.NUMBER, "0", "above 0"), (r"(a)|b", "b", "no number"), ("", "9", 2.5)])
def test_the_number(number: str, out: str, value: float | str) -> None:
    plan = compare.Plan("true", "true", argv=("x",), number=number)
    if isinstance(value, str):
        with pytest.raises(Fail, match=value):
            compare.result(plan, out, 2.5)
    else:
        assert compare.result(plan, out, 2.5) == value


# --- the program ----------------------------------------------------------------

#: A machine that draws 1 W.
HERE = """
import signal, sys, time
from pathlib import Path
from cpuwhy import cli, compare, measure, sample
root = Path({root!r})
signal.signal(signal.SIGINT, signal.default_int_handler)    # ignored in the background
compare.LOCK, compare.refuse = root / "lock", lambda *_: None
measure.UNLOAD.clear()
measure.packages = lambda: [root]
sample.usable_trace = lambda: False
sample.Reader._energy = lambda self: [int(time.monotonic() * 1e6)]
sys.exit(cli.main(["compare", *sys.argv[1:]]))
"""


class Here:
    """A program that thinks that it may measure, and its knob."""

    def __init__(self, root: Path) -> None:
        self.root, self.knob = root, root / "knob"
        self.knob.write_text("before\n")
        put(root, "max_energy_range_uj", 10**12)

    def words(self, *more: str) -> list[str]:
        return [sys.executable, "-c", HERE.format(root=str(self.root)),
                "--a", f"echo a >{self.knob}", "--b", f"echo b >{self.knob}", "--blocks", "8",
                "--seconds", "0.05", "--warm-up", "0.01", *more]

    def run(self, *more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.words(*more), capture_output=True, text=True,
                              env=os.environ | {"PYTHONPATH": str(POWER)})


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path)


def test_a_comparison(here: Here) -> None:
    """From its options to the report; A is what stays."""
    done = here.run("--number", r"(\d+) hops", "--", "sh", "-c",
                    f"grep -q b {here.knob} && echo 200 hops || echo 100 hops")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^number +100 +200 +2\.000 +2\.000 to 2\.000  better$", done.stdout, re.M)
    assert "block 8 of 8" in done.stderr and here.knob.read_text() == "a\n"
    assert done.stderr.splitlines()[-1] == "cpuwhy: the setting is --a now, and stays so"
    assert str(here.root) not in done.stdout


@pytest.mark.parametrize(("more", "said"), [
    (["--b", "echo no such knob >&2; exit 3"], "--b ended with status 3: no such knob"),
    (["--", "sh", "-c", "echo lost >&2; exit 4"], "the command ended with status 4: lost"),
    (["--", "/nonexistent/x"], "/nonexistent/x: No such file or directory"),
    (["--number", "hops", "--", "echo", "7"], "the command printed nothing that --number finds")])
def test_what_fails_ends_it_before_a_block(more: list[str], said: str, here: Here) -> None:
    done = here.run(*more)
    errors = [row for row in done.stderr.splitlines() if said in row]
    assert done.returncode == 2 and len(errors) == 1 and not done.stdout
    assert "Traceback" not in done.stderr and "block 1" not in done.stderr
    assert here.knob.read_text() == "a\n"


def test_a_setting_that_cannot_be_put_back_is_said(here: Here) -> None:
    """It worked twice, and not at the end."""
    count = f"echo x >>{here.root}/count; [ $(wc -l <{here.root}/count) -lt 6 ]"
    done = here.run("--a", count)
    assert done.returncode == 2 and "may have either setting" in done.stderr
    assert "stays so" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP,
                                    signal.SIGKILL])
def test_a_is_put_back_whatever_ends_it(number: int, here: Here) -> None:
    """And the command ends with it, unless that was killed together with nothing else."""
    alive = here.root / "alive"
    command = f"while [ -e {here.root}/go ]; do touch {alive}; sleep 0.05; done"
    with subprocess.Popen(
            here.words("--a", f"[ -e {here.knob}2 ] && touch {here.root}/go; echo >{here.knob}2;"
                       f" echo a >{here.knob}", "--", "sh", "-c", command),
            stderr=subprocess.PIPE, text=True, start_new_session=True,
            env=os.environ | {"PYTHONPATH": str(POWER)}) as victim:
        end = time.monotonic() + 20
        while not alive.exists() and time.monotonic() < end:
            time.sleep(0.05)
        here.knob.write_text("whatever\n")
        assert "another cpuwhy compare" in here.run().stderr
        victim.send_signal(number)
        try:
            errors = victim.communicate(timeout=20)[1]
        finally:
            victim.kill()
            if number == signal.SIGKILL or victim.poll() is None:
                (here.root / "go").unlink(missing_ok=True)      # ends the command
        assert victim.returncode
    for _ in range(100):
        if here.knob.read_text() == "a\n":
            break
        time.sleep(0.05)
    assert here.knob.read_text() == "a\n" and "Traceback" not in errors
    if number != signal.SIGKILL:
        assert "the setting is --a now" in errors
        alive.unlink()
        time.sleep(0.2)
        outlived = alive.exists()
        (here.root / "go").unlink()     # ends the command in any case
        assert not outlived
