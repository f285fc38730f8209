# SPDX-License-Identifier: GPL-2.0
"""The governor of the base and ours: judged by the oracle of fuzz.c, and in the model.

KERNEL_TREE names a directory with another tree than build/linux for ours.
"""
from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import compare
import pytest
import simulator

TREES = {"base": simulator.base_of(),
         "ours": simulator.Tree(Path(os.environ.get("KERNEL_TREE", simulator.LINUX)))}
STREAMS = 400
#: Rules that no stream of these kinds can break.
IMPOSSIBLE: dict[str, set[str]] = {
    "driver=fast": {"floor"}, "driver=slow": {"floor", "useless"}, "driver=perf": set(),
    "cpus=3": {"floor"}}

pytestmark = pytest.mark.skipif(not simulator.LINUX.is_dir(), reason="no build/linux (make tree)")


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("schedutil-sim")
    for name, tree in TREES.items():
        for program in ("sim", "fuzz"):
            simulator.build(program, tree, out / name)
    return {name: out / name for name in TREES}


def run(program: Path, *words: str) -> str:
    done = subprocess.run([program, *words], capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
    return done.stdout


def judged(said: str) -> dict[str, int]:
    """How often each rule was looked at."""
    return {name: int(count) for name, count in re.findall(r"(\w+) (\d+)", said)}


@pytest.mark.parametrize("driver", ["driver=fast", "driver=slow", "driver=perf", "cpus=3"])
@pytest.mark.parametrize("inputs", ["fair", "rt", "dl", "irq", "uclamp", "scx", "io", "bare",
                                    "pairs", "quota", "mix"])
@pytest.mark.parametrize("who", ["base", "ours"])
def test_oracle(programs: dict[str, Path], who: str, inputs: str, driver: str) -> None:
    """Nothing late, nothing lost, nothing that was not asked for."""
    count = judged(run(programs[who] / "fuzz", f"contract={who}", f"inputs={inputs}", driver,
                       f"streams={STREAMS}"))
    assert count["calls"] > 100 * STREAMS
    if inputs == "mix":
        silent = {rule for rule, times in count.items() if times < 10}
        assert silent <= IMPOSSIBLE[driver]


@pytest.mark.parametrize("driver", ["driver=fast", "driver=perf", "cpus=3"])
@pytest.mark.parametrize("window", [0, 5000, 20000])
def test_nothing_is_lost_in_long_windows(programs: dict[str, Path], window: int,
                                         driver: str) -> None:
    """No memory of requests that had to wait is needed."""
    run(programs["ours"] / "fuzz", "contract=ours", driver, f"rate_limit_us={window}",
        f"streams={2 * STREAMS}")


@pytest.mark.parametrize("stream, inputs, driver, window", [
    (792, "irq", "driver=fast", None),          # refused, and needed after saturation
    (10401, "bare", "driver=fast", None),       # cut by a limit
    (8566, "mix", "driver=perf", 5000),         # requested again, for a clamp
    (8588, "irq", "driver=fast", 20000),        # needed with the time of interrupts alone
])
def test_case_of_streams_that_failed(programs: dict[str, Path], stream: int, inputs: str,
                                     driver: str, window: int | None) -> None:
    run(programs["ours"] / "fuzz", "contract=ours", f"inputs={inputs}", driver, f"first={stream}",
        "streams=1", *(() if window is None else (f"rate_limit_us={window}",)))


def test_boost_for_io_is_that_of_the_base(programs: dict[str, Path]) -> None:
    base, ours = (run(programs[who] / "fuzz", "io=100000").split() for who in TREES)
    assert len(base) == 100000 and len(set(base)) > 5
    assert [n for n, both in enumerate(zip(base, ours)) if both[0] != both[1]] == []


def rises(program: Path, *mode: str, hz: int) -> list[float]:
    took = [float(ms) for ms in run(program, "rise", *mode, f"hz={hz}").split()]
    assert len(took) == 50
    return took


@pytest.mark.parametrize("hz, median, most", [(250, 8, 12), (1000, 6, 10.5)])
@pytest.mark.parametrize("mode", ["step", "new", *(f"behind {rest}" for rest in
                                                   (20, 100, 300, 600, 1500))])
def test_unusual_task_gets_the_highest_frequency(programs: dict[str, Path], mode: str, hz: int,
                                                 median: float, most: float) -> None:
    """Whatever ran on the CPU before."""
    base, ours = (rises(programs[who] / "sim", *mode.split(), hz=hz) for who in TREES)
    assert statistics.median(base) > 40
    assert statistics.median(ours) <= median and max(ours) <= most


@pytest.mark.parametrize("hz", [250, 1000])
def test_usual_task_is_left_to_its_estimate(programs: dict[str, Path], hz: int) -> None:
    """It was busy for 60 %. In no phase of the tick is it later than with the base."""
    base, ours = (rises(programs[who] / "sim", "return", hz=hz) for who in TREES)
    assert [pair for pair in zip(base, ours) if pair[1] > pair[0]] == []


Text = str | re.Pattern[str]


class Broken(simulator.Tree):
    """Ours with a mistake in the governor."""

    def __init__(self, right: Text, wrong: str) -> None:
        super().__init__(TREES["ours"].path)
        self.right, self.wrong = right, wrong

    def read(self, name: str) -> str:
        text = super().read(name)
        if name != simulator.GOVERNOR:
            return text
        right = re.compile(re.escape(self.right)) if isinstance(self.right, str) else self.right
        text, found = right.subn(lambda m: m.expand(self.wrong) if right.groups else self.wrong,
                                 text)
        assert found == 1, self.right
        return text


#: What cases.c plays: what the driver knows in the end (MHz or units, least performance),
#: the most requests and computed calls that there may be, and the mistake it is for.
NO_UNIT = ("if (!unit || h->unit != unit) {", "if (!unit) {")
NOT_TOLD = ("\t    (perf && !sugov_told(", "\t    (false && !sugov_told(")
#: What the frequency path must not believe; the second form is that of 7.3.
FREQUENCY = re.compile(r"sg_policy->(need_freq_update = true|next_freq = 0;\n"
                       r"\tsg_policy->cached_raw_freq = 0);(?=\n\tsg_policy->last)")
CLAMPS = ("util >= h->end || flags ||", "util >= h->end || uclamp_is_used() || flags ||")
CASES: dict[str, tuple[int, int, int, int, tuple[Text, str]]] = {
    "invariance-on": (2800, 0, 9, 270, ("if (!unit || h->unit != unit) {",
                                        "if (h->unit && scx_enabled()) {")),
    "invariance-off": (3800000, 0, 20, 500, (FREQUENCY, "")),
    "capacity-falls": (3400, 0, 2, 10, NO_UNIT),
    "clamp-rises": (640, 600, 3, 10, NOT_TOLD),
    "deadline-ends": (640, 0, 3, 10, NOT_TOLD),
    "rate-limit": (1000, 0, 3, 10, (
        "return delta_ns >= READ_ONCE(sg_policy->freq_update_delay_ns);", "return true;")),
    "clamp-elsewhere": (2400, 0, 0, 50, CLAMPS),
    "capped-hog": (1200, 0, 1, 50, CLAMPS),
    "freed-hog": (3800, 0, 2, 50, ("uclamp_rq_get(rq, UCLAMP_MAX);", "300;")),
    "real-time": (3800, 0, 1, 50, ("\t\tleast = SCHED_CAPACITY_SCALE;", "\t\tleast = 0;")),
    "short-idles-that-begin": (3300, 0, 5, 300, ("most = TICK_NSEC;", "most = 0;")),
    "short-idles-that-last": (800, 0, 5, 300, ("time - sg_cpu->needed > SUGOV_HOLD", "false")),
    "short-idles-with-ticks": (3300, 0, 5, 300, ("!kept && time - sg_cpu->needed",
                                                "time - sg_cpu->needed")),
    "estimates-end": (800, 0, 5, 300, ("sched_feat(UTIL_EST) ? READ_ONCE(avg->util_est) : 0",
                                       "READ_ONCE(avg->util_est)")),
    "deadline-beside-interrupts": (1600, 0, 5, 300, (" && sg_cpu->bw_min < h->end", "")),
    "long-idle": (800, 0, 5, 50, ("(4 * LOAD_AVG_PERIOD", "(8 * LOAD_AVG_PERIOD")),
    "kept-tick": (3300, 0, 5, 300, ("if (kept)", "if (false)")),
    "idle-call-and-wake-up": (800, 0, 1, 10, ("if (!idle)\n\t\tsg_cpu->saved", "sg_cpu->saved")),
    "idle-calls": (2300, 0, 1, 10, ("most = LOAD_AVG_PERIOD * NSEC_PER_MSEC", "most = TICK_NSEC")),
    "idle-calls-that-need": (2300, 0, 1, 10, ("most = LOAD_AVG_PERIOD * NSEC_PER_MSEC",
                                             "most = S64_MAX")),
    "idle-call-at-once": (1900, 0, 1, 10, ("idle_stamp + TICK_NSEC)", "idle_stamp)")),
    "idle-without-invariance": (800, 0, 2, 15, ("if (!*hold || sg_cpu", "if (true || sg_cpu")),
    "second-call": (3300, 0, 0, 10, (" && (rq->idle_stamp || !rq->nr_running)", "")),
    "once-saturated": (800, 0, 5, 300, ("\t\tutil = max(min, max);\n",
                                       "\t\tsg_cpu->util = util = max(min, max);\n")),
    "middle-then-saturated": (2400, 0, 5, 300, ("(perf || h->end)", "perf")),
    "slower-and-saturated": (2100, 0, 6, 300, ("(perf || h->end)", "true")),
    "no-estimates": (1400, 0, 2, 100, ("!sched_feat(UTIL_EST) || ", "")),
    "needed-after-saturation": (3100, 0, 4, 4, (
        " ||\n\t    (h->end && sg_cpu->util + HOLDOFF_NOISE(h->unit) >= held))", ")")),
    "needed-while-saturated": (2800, 0, 3, 3, ("return sg_cpu->needed && h->end &&",
                                               "return false &&")),
    "needed-in-window": (2800, 0, 1, 1, (
        re.compile(r"(\t/\* From now on it holds.*?sg_cpu->needed = time;\n)(.*?return false;\n)",
                   re.S), r"\2\1")),
    "needed-under-limit": (2000, 0, 1, 8, ("min(util, cut), util", "util, util")),
    "shared-sleeps": (2900, 0, 2, 300, ("sg_cpu->cpu != sg_policy->most",
                                        "sg_cpu->util < h->lo")),
    "no-tick": (3800, 0, 1, 1, (" && sched_can_stop_tick(rq)", " && false")),
    "no-tick-for-one": (800, 0, 2, 2, (" && sched_can_stop_tick(rq)", "")),
    "no-tick-while-idle": (1000, 0, 2, 20, ("sg_cpu->saturated == sugov_idled(rq) &&",
                                            "sg_cpu->saturated &&")),
}


def fits(said: str, case: str) -> bool:
    level, told, requests, computed = map(int, said.split())
    most_requests, most_computed = CASES[case][2:4]
    return ((level, told) == CASES[case][:2] and requests <= most_requests
            and computed <= most_computed)


@pytest.mark.parametrize("case", CASES)
def test_case(case: str, tmp_path: Path) -> None:
    """What schedutil was wrong in once, by name."""
    said = {name: run(simulator.build("cases", tree, tmp_path / name), case)
            for name, tree in TREES.items()}
    # The base has the mistake of invariance-off, but its invariance never comes on again.
    # It asks whether the tick stopped, and keeps what it once had if capacity changes.
    if case not in ("invariance-off", "short-idles-that-begin", "long-idle", "idle-calls",
                    "idle-calls-that-need", "idle-call-at-once", "idle-without-invariance",
                    "second-call", "slower-and-saturated", "needed-after-saturation",
                    "needed-while-saturated", "needed-in-window", "needed-under-limit",
                    "no-tick"):
        assert said["base"].split()[:2] == said["ours"].split()[:2]
    assert fits(said["ours"], case), said


@pytest.mark.parametrize("case", CASES)
def test_mistake_of_case(case: str, tmp_path: Path) -> None:
    assert not fits(run(simulator.build("cases", Broken(*CASES[case][4]), tmp_path), case), case)


def run_of(program: Path, load: str, *words: str) -> tuple[float, int]:
    """J once the load is known, and changes."""
    said = run(program, "run", load, *words).split()
    return float(said[2]), int(said[6])


#: Of one that begins with nothing known of it the first rises are in the sum.
KNOWN = ("10%", "30%", "60%", "burst-2", "burst-10", "burst-50", "burst-200", "random",
         "timed-20", "timed-50", "timed-100", "fixed-20", "fixed-50", "fixed-100", "quota-50")


@pytest.mark.parametrize("idle", [1, 2, 6])
@pytest.mark.parametrize("load", KNOWN)
def test_known_loads_cost_what_they_cost(programs: dict[str, Path], load: str, idle: int) -> None:
    base, ours = (run_of(programs[who] / "sim", load, f"idle={idle}")[0] for who in TREES)
    assert ours <= 1.01 * base


@pytest.mark.parametrize("most, rest", [(1500, 200), (3000, 200), (3000, 1000), (8000, 200)])
def test_known_level_of_new_processes(programs: dict[str, Path], most: int, rest: int) -> None:
    """They begin with half of the capacity; some run for long enough to saturate the CPU."""
    base, ours = (float(run(programs[who] / "sim", "processes", str(most), str(rest)).split()[0])
                  for who in TREES)
    assert ours <= 1.02 * base


@pytest.mark.parametrize("hz", [250, 1000])
def test_falls_no_sooner_than_the_base(programs: dict[str, Path], hz: int) -> None:
    base, ours = (rises(programs[who] / "sim", "fall", hz=hz) for who in TREES)
    assert [pair for pair in zip(ours, base) if pair[0] < pair[1]] == []


@pytest.mark.parametrize("driver", ["slow=0", "perf=1"])
@pytest.mark.parametrize("noise", [2, 8])
def test_noise_does_not_change_the_frequency(programs: dict[str, Path], noise: int,
                                             driver: str) -> None:
    base, ours = (int(run(programs[who] / "sim", "run", "30%", "any=1", f"noise={noise}", driver
                          ).split()[6]) for who in TREES)
    assert base > 500 and ours <= base / 5


@pytest.mark.parametrize("bursts, share", [("random", 0.65), ("timed-20", 1), ("timed-50", 0.7),
                                           ("timed-100", 0.6)])
@pytest.mark.parametrize("hz", [250, 1000])
def test_changes_of_bursts(programs: dict[str, Path], bursts: str, share: float, hz: int) -> None:
    base, ours = (run_of(programs[who] / "sim", bursts, f"hz={hz}")[1] for who in TREES)
    assert ours <= share * base


def test_words_that_fuzz_does_not_know(programs: dict[str, Path]) -> None:
    done = subprocess.run([programs["ours"] / "fuzz", "steps=x"], capture_output=True, text=True)
    assert done.returncode == 2 and "steps=x: unknown" in done.stderr


def test_tables_that_are_made_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    for name in ("build", "rises", "mix", "noise", "cost", "plot"):
        monkeypatch.setattr(compare, name, lambda *_, name=name: made.append(name))
    monkeypatch.setattr(sys, "argv", ["compare.py"])
    assert compare.main() == 0 and made == ["build", "rises", "mix", "noise"]
    monkeypatch.setattr(sys, "argv", ["compare.py", "none"])
    with pytest.raises(SystemExit):
        compare.main()
