# SPDX-License-Identifier: GPL-2.0
"""Groups with a CPU limit, and CPUs without a tick: each rule, and what is no fault."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from cpuwhy import doctor, explain, quota, settings, states, texts
from cpuwhy.case import Case, Finding
from cpuwhy.tests.scripted import Script
from cpuwhy.tests.test_doctor import CPU, LOG, system
from cpuwhy.tests.test_freq import Counters, analyse, ask, busy

V2, V1 = "sys/fs/cgroup/a.slice", "sys/fs/cgroup/cpu,cpuacct/a.slice"
POD = "/kubepods.slice/kubepods-pod0dd5ea70_0bad_4c0f_8a5e_5ec4e7000001.slice/cri-" + "ab" * 32


def stat(periods: int, throttled: int, used: int = 0, waited: int = 5_000_000) -> str:
    return (f"usage_usec {used}\nnr_periods {periods}\nnr_throttled {throttled}\n"
            f"throttled_usec {waited}")


def group(text: str, limit: str = "20000 100000") -> dict[str, str | None]:
    return {f"{V2}/cpu.max": limit, f"{V2}/cpu.stat": text}


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nobody waits."""
    slept: list[float] = []
    monkeypatch.setattr(quota.time, "sleep", slept.append)
    return slept


def found(root: Path, files: dict[str, str | None], live: bool = False) -> list[Finding]:
    return doctor.examine(system(root, files, live))


@pytest.mark.parametrize("files, says", [
    (group(stat(100, 60, 1_600_000)), "throttled by cpu.max of /a.slice: 60 of 100 periods; it"
     " used 16 of its 20 ms a period"),
    ({f"{V1}/cpu.cfs_quota_us": "20000", f"{V1}/cpu.cfs_period_us": "100000",
      f"{V1}/cpuacct.usage": "1600000000",
      f"{V1}/cpu.stat": "nr_periods 100\nnr_throttled 60\nthrottled_time 5000000000"},
     "throttled by cpu.cfs_quota_us of /a.slice: 60 of 100 periods; it used 16 of its 20 ms a"
     " period"),
    ({f"sys/fs/cgroup{POD}/cpu.stat": stat(100, 60)},
     "throttled by cpu.max of /kubepods.slice/kubepods-pod0dd5ea70.slice/cri-abababababab: 60 of"
     " 100 periods"),
    ({f"sys/fs/cgroup/{name}": text for name, text in (
        ("cpu.stat", stat(100, 60)), ("cpu.max", "5000 100000"))},
     "throttled by cpu.max of /: 60 of 100 periods; it may use 5 ms a period")])
def test_throttled(files: dict[str, str | None], says: str, tmp_path: Path) -> None:
    one, = found(tmp_path, files)
    assert (one.kind, one.effect, one.when, one.says) == (
        "cpu-limit", "slow", "seen", says + ", which a low clock uses up sooner")
    assert any("nr_throttled 60" in line.text for line in one.lines)
    assert [limit.waited for limit in quota.read(tmp_path).values()] == [5_000_000]


@pytest.mark.parametrize("files", [
    group(stat(100, 60), "max 100000"), group(stat(100, 0)), group(stat(100, 4)),
    group("usage_usec 5"), {f"{V1}/cpu.cfs_quota_us": "-1", f"{V1}/cpu.stat": stat(100, 60)},
    {f"{V2}/memory.stat": stat(100, 60)}])
def test_no_limit_or_hardly_any_throttling(files: dict[str, str | None], tmp_path: Path) -> None:
    assert found(tmp_path, files) == []


def test_a_limit_that_was_never_reached() -> None:
    what = explain.explain(Case(texts.read_text("nr_periods 400\nnr_throttled 0\n")))
    assert what.read and not what.limiters + what.earlier


def test_only_the_worst_are_listed(tmp_path: Path) -> None:
    files: dict[str, str | None] = {f"sys/fs/cgroup/{n}/cpu.stat": stat(100, 10 + n)
                                    for n in range(9)}
    listed = found(tmp_path, files)
    assert [one.says.split(":")[0][-2:] for one in listed[:6]] == [f"/{n}" for n in range(8, 2, -1)]
    assert listed[6].says == "3 more groups were throttled" and len(listed) == 7


def watched(root: Path, monkeypatch: pytest.MonkeyPatch, after: str, mhz: int = 1700,
            state: str = "R") -> tuple[list[Finding], list[float]]:
    """Of a group whose task runs on CPU 1, while one looks."""
    task = f"77 (a daemon) {state} {'0 ' * 35}1"
    machine = system(root, {
        **group(stat(1000, 100, 9_000_000)), f"{V2}/leaf/cgroup.procs": "77",
        "proc/77/task/77/stat": task, f"{CPU}/cpu0/cpufreq/scaling_cur_freq": "3400000",
        f"{CPU}/cpu1/cpufreq/scaling_cur_freq": str(mhz * 1000)})
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        (root / V2 / "cpu.stat").write_text(after)

    monkeypatch.setattr(quota.time, "sleep", sleep)
    return doctor.examine(machine), slept


def test_what_is_throttled_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (one,), slept = watched(tmp_path, monkeypatch, stat(1040, 124, 9_640_000))
    assert (one.when, one.says) == (
        "now", "throttled by cpu.max of /a.slice: 24 of 40 periods; its CPUs ran at 0.50 of the"
        " highest clock: at the highest it would need about 8 of its 20 ms a period, instead of"
        " 16")
    assert one.remedy.startswith("cpupower frequency-set -g performance")
    assert sum(slept) == pytest.approx(quota.SECONDS)


@pytest.mark.parametrize("after, mhz, state, when, says", [
    (stat(1040, 138, 9_800_000), 1700, "R", "now", "about 10 or more of its 20 ms"),
    (stat(1040, 124, 9_640_000), 3400, "R", "now",
     "it used 16 of its 20 ms a period at the highest clock"),
    # Who sleeps says nothing of the clock.
    (stat(1040, 124, 9_640_000), 1700, "S", "now", "it used 16 of its 20 ms a period"),
    (stat(1040, 100, 9_640_000), 1700, "R", "seen", "100 of 1,040 periods; it used 9.27 of its")])
def test_what_is_watched(after: str, mhz: int, state: str, when: str, says: str, tmp_path: Path,
                         monkeypatch: pytest.MonkeyPatch) -> None:
    (one,), _ = watched(tmp_path, monkeypatch, after, mhz, state)
    assert one.when == when and says in one.says, one.says
    assert ("CPUs ran at" in one.says) == ("or more" in one.says) == ("-g" in one.remedy)


def test_nobody_waits_without_throttling(tmp_path: Path, sleeps: list[float]) -> None:
    assert found(tmp_path, group(stat(100, 0)), live=True) == [] and not sleeps
    assert quota.growth({}, {"/": quota.Limit("/", periods=9)}) == {}


def test_a_loop_of_links_is_not_followed(tmp_path: Path) -> None:
    copy = system(tmp_path, group(stat(100, 60)), live=False)
    for name in "bc":
        (tmp_path / "sys/fs/cgroup" / name).symlink_to(tmp_path / "sys/fs/cgroup")
    assert len(quota.read(tmp_path)) == 1 and len(doctor.examine(copy)) == 1


# --- texts -------------------------------------------------------------------------

PROM = ('container_cpu_cfs_periods_total{container="app",id="/kubepods/x",pod="web-1"} 400\n'
        'container_cpu_cfs_throttled_periods_total{container="app",pod="web-1"} 1.2e+2 1718\n'
        'container_cpu_cfs_throttled_seconds_total{container="app",pod="web-1"} 12.5\n'
        'container_cpu_usage_seconds_total{container="app",cpu="total",pod="web-1"} 6.4\n'
        'container_spec_cpu_quota{container="app",pod="web-1"} 20000\n')


@pytest.mark.parametrize("text, says", [
    ("nr_periods 400\nnr_throttled 120\nthrottled_time 1234567\n", "of /: 120 of 400 periods"),
    ("> nr_periods 400\n> nr_throttled 120\n> nr_periods 900\n", "of /: 120 of 400 periods"),
    ("# cat /sys/fs/cgroup/cpu.stat\nusage_usec 6400000\nnr_periods 400\nnr_throttled 120\n"
     "# cat /sys/fs/cgroup/cpu.max\n20000 100000\n", "120 of 400 periods; it used 16 of its 20 ms"),
    ("$ kubectl exec -it web-1 -- cat /sys/fs/cgroup/cpu.max\n20000 100000\n\n"
     "nr_periods 400\nnr_throttled 120\n", "/: 120 of 400 periods; it may use 20 ms"),
    ("/sys/fs/cgroup/cpu,cpuacct/user@1000.service/cpu.stat:nr_periods 400\n"
     "/sys/fs/cgroup/cpu,cpuacct/user@1000.service/cpu.stat:nr_throttled 120\n",
     "of /user@1000.service: 120 of 400"),
    ("cpu.max:20000 100000\ncpu.stat:nr_periods 400\ncpu.stat:nr_throttled 120\n", "may use 20 ms"),
    ("==> /sys/fs/cgroup/a/cpu.stat <==\nnr_periods 400\nnr_throttled 120\n", "of /a: 120 of 400"),
    (PROM, "of /web-1/app: 120 of 400 periods; it used 16 of its 20 ms a period"),
    ('"cpu_stats":{"throttling_data":{"periods":400,"throttled_periods":120,'
     '"throttled_time":9}}\n', "of /: 120 of 400 periods")])
def test_what_people_attach(text: str, says: str) -> None:
    what = explain.explain(Case(texts.read_text(text)))
    one, = what.limiters
    assert one.kind == "cpu-limit" and says in one.says, one.says
    assert any(word in line.text for line in one.lines
               for word in ("nr_throttled 120", "throttled_periods"))


# --- nohz_full ---------------------------------------------------------------------

def isolated(**more: str | None) -> dict[str, str | None]:
    """Both CPUs have a deep state."""
    return {f"{CPU}/nohz_full": "0-1", f"{CPU}/cpu0/cpuidle/state1/latency": "190", **more}


SERIES = {f"sys/{settings.FREQ_MAX}": "4c", f"{CPU}/cpuidle/current_governor": "teo"}
FAST = {f"{CPU}/cpu{n}/cpufreq/scaling_governor": "performance" for n in (0, 1)}


@pytest.mark.parametrize("files, said", [
    ({f"{CPU}/nohz_full": "(null)"}, []), ({f"{CPU}/nohz_full": ""}, []),
    (isolated(), [("slow", "that runs alone keeps that clock", "cpupower -c 0-1 frequency-set"),
                  ("slow", "menu goes by the next timer there, and messages are waited for in C6",
                   "idle-set -D 20")]),
    (isolated(**SERIES), [("note", "asks for the highest while one task runs there", ""),
                          ("note", "teo lets it tick there while a stay may be too long", "")]),
    (isolated(**{**SERIES, f"{CPU}/cpuidle/current_governor": "menu"}),
     [("note", "schedutil asks", ""), ("slow", "menu goes by the next timer", "echo teo")]),
    (isolated(**{f"{CPU}/cpu0/cpuidle/state1/latency": "20"}),
     [("slow", "keeps that clock", "frequency-set")]),
    (isolated(**{f"{CPU}/cpu0/cpuidle/state1/disable": "1"}),
     [("slow", "keeps that clock", "frequency-set")]),
    (isolated(**FAST, **{f"{CPU}/cpuidle/current_governor": "teo"}),
     [("slow", "teo goes by the next timer", "idle-set -D 20")]),
    ({f"{CPU}/nohz_full": "1", **FAST, f"{CPU}/cpu0/cpufreq/scaling_governor": "schedutil"}, [])])
def test_cpus_without_a_tick(files: dict[str, str | None], said: list[tuple[str, str, str]],
                             tmp_path: Path) -> None:
    ours = [one for one in found(tmp_path, files, live=True) if one.kind == "no-tick"]
    assert len(ours) == len(said), ours
    for one, (effect, says, remedy) in zip(ours, said):
        assert one.effect == effect and says in one.says and remedy in one.remedy
        assert "CPUs 0-1" in one.says


def test_the_kernel_of_a_copy_is_not_known(tmp_path: Path) -> None:
    assert {one.effect for one in found(tmp_path, isolated())} == {"note"}
    series = found(tmp_path, isolated(dmesg=LOG + "[ 1.000000] freq_invariance: x"))
    assert "asks for the highest while" in series[0].says


# --- freq --------------------------------------------------------------------------

MACHINE = states.Machine(policies={0: states.Policy("schedutil", 3_000_000, 3_000_000)})


@pytest.mark.parametrize("cpus, ms, mhz, stuck", [
    ([0], 100, 1200, True), ([1], 100, 1200, False), ([0], 19, 1200, False),
    ([0], 100, 2800, False)])
def test_a_clock_that_nothing_raises(cpus: list[int], ms: int, mhz: int, stuck: bool,
                                     script: Script, tmp_path: Path) -> None:
    ask(script, 0, mhz)
    busy(script, 10, 7)
    busy(script, 10 + ms, 0)
    episodes = analyse(script, tmp_path, machine=replace(MACHINE, no_tick=cpus)).episodes
    assert [(e.waited, e.low, e.high) for e in episodes] == [
        (ms * 1_000_000, mhz * 1000, 3_000_000)] * stuck
    assert all("no tick (nohz_full)" in e.why() for e in episodes)


def test_throttling_beside_the_clock(script: Script, tmp_path: Path) -> None:
    ask(script, 0, 1500)
    busy(script, 10, 7)
    counters = Counters(script, 10)
    counters.read(14, 1500)
    counters.read(18, 1500)
    busy(script, 30, 0)
    limit = quota.Limit("/a.slice", "", 40, 24, 300_000, 640_000, 20_000)
    machine = replace(MACHINE, limits=[limit])
    path = tmp_path / "machine.json"
    machine.write(path)
    assert states.load(path).limits == [limit]
    episode, = analyse(script, tmp_path, machine=machine).episodes
    assert (episode.task, episode.waited, episode.high) == ("/a.slice", 300_000_000, 3_000_000)
    assert episode.low == pytest.approx(1_500_000, rel=1e-3)
    assert episode.why() == (
        "throttled by cpu.max of /a.slice: 24 of 40 periods; busy CPUs ran at 0.50 of the highest"
        " clock: at the highest it would need about 8 of its 20 ms a period, instead of 16")
