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
                                    "mix"])
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


def test_boost_for_io_is_that_of_the_base(programs: dict[str, Path]) -> None:
    base, ours = (run(programs[who] / "fuzz", "io=100000").split() for who in TREES)
    assert len(base) == 100000 and len(set(base)) > 5
    assert [n for n, both in enumerate(zip(base, ours)) if both[0] != both[1]] == []


def rises(program: Path, mode: str, hz: int, *words: str) -> list[float]:
    took = [float(ms) for ms in run(program, "rise", mode, f"hz={hz}", *words).split()]
    assert len(took) == 50
    return took


@pytest.mark.parametrize("mode, hz, limit", [("step", 250, 16), ("step", 1000, 6.5),
                                             ("new", 250, 16), ("new", 1000, 6.5)])
def test_saturated_cpu_gets_the_highest_frequency(programs: dict[str, Path], mode: str, hz: int,
                                                  limit: float) -> None:
    base, ours = (rises(programs[who] / "sim", mode, hz) for who in TREES)
    assert statistics.median(base) > 40
    assert max(ours) <= limit


@pytest.mark.parametrize("hz", [250, 1000])
@pytest.mark.parametrize("mode", ["step", "new", "return"])
def test_nothing_later_without_saturation(programs: dict[str, Path], mode: str, hz: int) -> None:
    base = rises(programs["base"] / "sim", mode, hz)
    off = rises(programs["ours"] / "sim", mode, hz, "saturation_us=0")
    assert [pair for pair in zip(off, base) if pair[0] > pair[1]] == []


@pytest.mark.parametrize("hz", [250, 1000])
def test_falls_no_sooner_than_the_base(programs: dict[str, Path], hz: int) -> None:
    base, ours = (rises(programs[who] / "sim", "fall", hz) for who in TREES)
    assert [pair for pair in zip(ours, base) if pair[0] < pair[1]] == []


@pytest.mark.parametrize("driver", ["slow=0", "perf=1"])
@pytest.mark.parametrize("noise", [2, 8])
def test_noise_does_not_change_the_frequency(programs: dict[str, Path], noise: int,
                                             driver: str) -> None:
    base, ours = (int(run(programs[who] / "sim", "run", "30%", "any=1", f"noise={noise}", driver
                          ).split()[6]) for who in TREES)
    assert base > 500 and ours <= base / 5


@pytest.mark.parametrize("bursts, hz, share", [("timed-20", 250, 2.4), ("timed-20", 1000, 3.1),
                                               ("timed-100", 250, 0.32), ("timed-100", 1000, 0.29)])
def test_changes_of_random_bursts(programs: dict[str, Path], bursts: str, hz: int,
                                  share: float) -> None:
    """Of short bursts the model's base changes a tenth of what it does in a guest; what ours
    changes more is saturation's, up in each burst that lasts and down after it."""
    def changes(who: str, *words: str) -> int:
        return int(run(programs[who] / "sim", "run", bursts, f"hz={hz}", *words).split()[6])

    base = changes("base")
    assert 0.9 * share * base < changes("ours") <= share * base
    assert changes("ours", "saturation_us=0") < base


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
