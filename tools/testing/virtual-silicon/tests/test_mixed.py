# SPDX-License-Identifier: GPL-2.0
"""Parts with cores of two kinds, and freq_max over changes of the cpufreq driver.

The model has one figure for how much work a core of another kind does in a cycle: for
E-cores of Alder Lake 787 for 1000 of a P-core's (machine file), for dense AMD cores
the same as for fast ones. Utilisation of a task that does fixed work is the same on both
if frequency scale times capacity is clock times work per cycle.
"""

from __future__ import annotations

import re

import pytest
from guests import Guests, each
from scenarios import AMD_MODES, GOVERNED_MS, INTEL_MODES, MIXED, MOVES, MOVING_KHZ, SCENARIOS
from test_invariance import state
from virtual_silicon.guest.boot import Result
from virtual_silicon.machine import machine
from virtual_silicon.machine.machine import Machine
from virtual_silicon.readers import sysfs
from virtual_silicon.studies.invariance import pelt

PERIOD_NS = 10_000_000
#: Not looked at: before a move, which is known to 10 ms, and after it, when utilisation
#: still shows the other CPU's.
BEFORE_NS, AFTER_NS = 20_000_000, 100_000_000


@pytest.fixture(params=each(MIXED))
def mixed(request: pytest.FixtureRequest, guests: Guests) -> tuple[str, Machine, Result]:
    name = request.param
    return name, machine.load(SCENARIOS[name].machine), guests.get(name)


def rows(text: str) -> list[tuple[int, int, float]]:
    """End of each burst in ns, ns that the task has run for, utilisation."""
    return [(int(w[0]), int(w[1]), float(w[2])) for line in text.splitlines()
            if len(w := line.split()) == 3 and w[0].isdigit()]


def by_cpu(text: str, name: str) -> dict[int, list[tuple[float, float]]]:
    """(run time in ns, utilisation) of each burst, by the CPU that it ran on."""
    moved = [float(t) * 1e9 for t in re.findall(r"^moved ([\d.]+)$", text, re.MULTILINE)]
    assert len(moved) == MOVES
    out: dict[int, list[tuple[float, float]]] = {cpu: [] for cpu in MIXED[name]}
    seen = rows(text)
    for (_, before, _), (end, ran, util) in zip(seen, seen[1:]):
        # vs-util says -1 for a period at whose end the task did not sleep yet
        if min(before, ran) < 0 or end - seen[0][0] < pelt.SETTLE_NS or \
                any(-BEFORE_NS < end - t < AFTER_NS for t in moved):
            continue
        out[MIXED[name][sum(end > t for t in moved) % 2]].append((ran - before, util))
    assert all(len(bursts) > 15 for bursts in out.values())
    return out


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


@pytest.mark.parametrize("khz", MOVING_KHZ)
def test_fixed_work_takes_longer_on_the_other_kind(mixed: tuple[str, Machine, Result],
                                                   khz: int) -> None:
    """By the machine file: otherwise what follows would prove nothing."""
    name, m, result = mixed
    kind = m.classes[0]
    ran = [mean([r for r, _ in bursts])
           for bursts in by_cpu(result.text(f"moving-{khz}"), name).values()]
    clocks = 1 if khz else m.max_ratio / kind.max_ratio
    assert ran[1] / ran[0] == pytest.approx(clocks * 1000 / kind.work_permille, rel=0.03)


@pytest.mark.parametrize("khz", MOVING_KHZ)
def test_moving_task_keeps_its_utilisation(mixed: tuple[str, Machine, Result],
                                           khz: int) -> None:
    name, m, result = mixed
    first, second = (mean([u for _, u in on]) for on in
                     by_cpu(result.text(f"moving-{khz}"), name).values())
    # Above freq_max, which a fast AMD core can clock, utilisation is that of freq_max
    top = (khz or m.max_ratio * m.bus_khz) / m.tsc_khz * 1024
    clipped = max(top / state(result.text(f"ratios-{khz}")).of("freq_max")[0], 1)
    assert second / first == pytest.approx(clipped, abs=0.02)


@pytest.mark.parametrize("khz", MOVING_KHZ)
def test_utilisation_is_of_the_fast_kinds_freq_max(mixed: tuple[str, Machine, Result],
                                                   khz: int) -> None:
    """What PELT made of the run time, on the first kind: its clock over freq_max."""
    name, m, result = mixed
    first = by_cpu(result.text(f"moving-{khz}"), name)[MIXED[name][0]]
    share = mean([pelt.steady_run(util, PERIOD_NS) / ran for ran, util in first])
    ratio = state(result.text(f"ratios-{khz}")).of("freq_max")[MIXED[name][0]]
    clock = (khz or m.max_ratio * m.bus_khz) / m.tsc_khz * 1024
    assert share == pytest.approx(min(clock / ratio, 1), rel=0.02)


@pytest.mark.boots("invariance-mixed-amd")
def test_freq_max_of_fast_and_dense_cores(result: Result) -> None:
    """Half-way to the fast cores' highest over the nominal performance, 196 over 128: one for
    all, so that utilisation has one unit."""
    assert state(result.text("ratios")).of("freq_max") == pytest.approx([1296] * 6, abs=8)


@pytest.mark.boots("invariance-hybrid")
def test_freq_max_of_p_and_e_cores(result: Result) -> None:
    """5.2 and 3.9 over 3.2 GHz, in performance levels of 78.741 MHz on P-cores."""
    now = state(result.text("ratios")).of("freq_max")
    assert now == pytest.approx([1673] * 2 + [1248] * 2, abs=8)


@pytest.mark.boots("invariance-hybrid")
@pytest.mark.parametrize("which", (0, 1))
def test_governor_gives_each_kind_what_it_needs(result: Result, which: int) -> None:
    """A quarter more than utilisation, which is at its highest a little above the mean. The
    clock is up to 5 % higher: the next step of 100 MHz, and 1/64 of the highest for noise."""
    ran = [r for _, r, _ in rows(result.text(f"governed-{which}"))]
    busy = mean([b - a for a, b in zip(ran[60:], ran[61:])]) / (GOVERNED_MS * 1e6)
    assert 0.75 * 0.95 - 0.03 < busy < 0.75 + 0.03


@pytest.mark.parametrize("name,wanted", [
    pytest.param(name, wanted, marks=pytest.mark.boots(name), id=name)
    for name, wanted in (("invariance-hybrid", {"SD_ASYM_CPUCAPACITY"}),
                         ("invariance-mixed-amd", {"SD_ASYM_PACKING"}))])
def test_what_the_scheduler_goes_by(result: Result, name: str, wanted: set[str]) -> None:
    """Ranks of preferred cores (ITMT) or capacities. The base's intel_pstate may put the
    ranks on after it took them off: by a work item."""
    text = result.text("domains")
    flags = set(" ".join(sysfs.pairs(text).values()).split())
    if name == "invariance-hybrid":
        flags.discard("SD_ASYM_PACKING")
    assert flags & {"SD_ASYM_PACKING", "SD_ASYM_CPUCAPACITY"} == wanted


class Look:
    """What a driver's files and ours said after a step."""

    def __init__(self, block: str) -> None:
        words, _, rest = block.partition("\n")
        self.words = words.split()
        self.files = sysfs.pairs(rest)
        self.ratios = state(rest).of("freq_max")

    def file(self, name: str) -> str:
        return self.files[f"/sys/devices/system/cpu/{name}"]


def looks(text: str) -> list[Look]:
    return [Look(block) for block in text.split("look ")[1:]]


@pytest.mark.boots("invariance-mixed-amd")
@pytest.mark.parametrize("mode", AMD_MODES)
def test_amd_pstate_and_boost(result: Result, mode: str) -> None:
    """After each step, by boost, which may be on or off in a new mode. amd-pstate of 7.3 takes
    the boost of fast cores for that of dense ones, with or without the series."""
    dense = 3_500_000 if "Linux version 6." in result.text("dmesg") else 4_900_000
    found = [look for look in looks(result.text("drivers"))
             if look.words[0] == mode]
    assert [look.words[1] for look in found] == ["new", "1", "0", "1", "0"]
    for look in found:
        on = look.file("cpufreq/boost") == "1"
        assert look.words[1] in ("new", str(int(on)))
        assert look.file("amd_pstate/status") == mode
        tops = [int(look.file(f"cpu{cpu}/cpufreq/cpuinfo_max_freq")) for cpu in range(6)]
        assert tops == ([4_900_000] * 2 + [dense] * 4 if on else [3_200_000] * 6)
        assert look.ratios == pytest.approx([1296 if on else 1024] * 6, abs=8), look.words


INTEL = pytest.mark.boots("invariance-intel-drivers")
#: Turbo with all cores active, 3.0 of 2.0 GHz.
TURBO = 1536


def check_intel(look: Look, off: bool) -> None:
    assert look.file("intel_pstate/no_turbo") == str(int(off))
    tops = {int(look.file(f"cpu{cpu}/cpufreq/cpuinfo_max_freq")) for cpu in (0, 1)}
    assert tops == {2_000_000 if off else 3_800_000}
    assert look.ratios == [1024 if off else TURBO] * 2, look.words


@INTEL
@pytest.mark.parametrize("step,words", [("firmware", ["off", "refused", "on"]),
                                        ("later", ["off", "on"])])
def test_turbo_off_by_firmware_then_on(result: Result, step: str, words: list[str]) -> None:
    """Bit 38 of 0x1A0: while it is set no_turbo stays 1."""
    found = looks(result.text(step))
    assert [look.words[0] for look in found] == words
    for look in found:
        check_intel(look, look.words[0] != "on")


@INTEL
def test_intel_pstate_modes_and_no_turbo(result: Result) -> None:
    """After each step; a new mode switches turbo on."""
    found = looks(result.text("modes"))
    assert [look.words for look in found] == \
        [[mode, step] for mode in INTEL_MODES for step in ("new", "0", "1", "0", "1")]
    for look in found:
        assert look.file("intel_pstate/status") == look.words[0]
        check_intel(look, look.words[1] == "1")
