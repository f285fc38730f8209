# SPDX-License-Identifier: GPL-2.0
"""Frequency invariance of the patched kernel: freq_max, faults, boost."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest
from guests import each
from scenarios import (
    BAD_WORDS,
    FAMILY_MACHINES,
    FAULT_SECONDS,
    FREQ_MAX,
    GP_AT_BOOT,
    INVARIANCE,
    STOCK_MACHINES,
    TOGGLES,
    WORDS,
)
from virtual_silicon.guest.boot import Result
from virtual_silicon.machine import machine
from virtual_silicon.readers import sysfs, turbostat

#: The E5-2698 v4 with 8 CPUs of 20: 1024 * freq_max / base by word.
RATIOS = {"nominal": 1024, "1c": 1675, "3c": 1582, "4c": 1536, "8c": 1349, "12c": 1256,
          "255c": 1256, "midpoint": 1349, "boost": 1675}


@dataclass
class State:
    """The parameter, and the file in debugfs, at one time."""

    word: str = ""
    turbo: dict[int, int] = field(default_factory=dict)	# MHz by active cores
    cpus: dict[int, dict[str, int]] = field(default_factory=dict)

    def of(self, name: str) -> list[int]:
        return [values[name] for _, values in sorted(self.cpus.items())]


def state(text: str) -> State:
    out = State()
    for line in text.splitlines():
        path, _, value = line.partition(":")
        words = value.split()
        if path == FREQ_MAX:
            out.word = value
        elif path == INVARIANCE and words[0] == "turbo":
            out.turbo[int(words[1])] = int(words[2])
        elif path == INVARIANCE:	# cpu N NAME VALUE...
            out.cpus[int(words[1])] = dict(zip(words[2::2], map(int, words[3::2])))
    return out


@pytest.mark.parametrize("name", each((*STOCK_MACHINES, *FAMILY_MACHINES), "patched-"))
def test_turbo_table_is_the_machines_and_turbostats(name: str, result: Result) -> None:
    """debugfs, the machine file, and what stock turbostat printed in the same guest."""
    m, table = machine.load(name), state(result.text("invariance")).turbo
    for cores, mhz in table.items():
        ratio = next(r for c, r in zip(m.turbo.cores, m.turbo.ratios) if c >= cores)
        assert mhz == pytest.approx(ratio * m.bus_khz / 1000, rel=0.001)
    assert max(table) >= max(m.turbo.cores)
    for cores, said in turbostat.header(result.text("header")).turbo.items():
        ours = next(n for c, n in sorted(table.items()) if c >= cores)
        assert ours == pytest.approx(said, rel=0.001)


class TestControl:
    pytestmark = pytest.mark.boots("invariance-control")

    @pytest.fixture
    def text(self, result: Result):
        return result.text

    def test_unknown_word_at_boot_keeps_the_default(self, text) -> None:
        boot = state(text("boot"))
        assert boot.word == "4c" and set(boot.of("freq_max")) == {1536}
        assert text("dmesg").count("`nonsense' invalid for parameter `aperfmperf.freq_max'") == 1

    @pytest.mark.parametrize("word", WORDS)
    def test_word(self, text, word: str) -> None:
        assert text(f"word-{word}").startswith(f"{word}:taken")
        now = state(text(f"word-{word}"))
        assert now.word == word
        assert set(now.of("freq_max")) == {RATIOS[word]}

    @pytest.mark.parametrize("index", range(len(BAD_WORDS)))
    def test_bad_word_changes_nothing(self, text, index: int) -> None:
        assert text(f"bad-{index}").startswith(f"{BAD_WORDS[index]}:refused")
        now = state(text(f"bad-{index}"))
        assert now.word == "3c" and set(now.of("freq_max")) == {1582}

    def test_no_turbo_is_followed(self, text) -> None:
        lines = [line.split() for line in text("no_turbo").splitlines() if line]
        assert len(lines) == 2 * TOGGLES
        for off, *ratios in lines:
            assert set(ratios) == {"1024" if off == "1" else "1582"}

    def test_never_above_what_cpufreq_can_request(self, text) -> None:
        """1C is the highest bin there is; the divisor's resolution is 1/1024."""
        m, now = machine.load("e5-2698-v4"), state(text("limit"))
        tops = sysfs.pairs(text("limit"))
        assert now.word == "1c"
        for cpu, values in now.cpus.items():
            top = int(tops[f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq"])
            assert values["freq_max"] / 1024 * m.tsc_khz <= top + m.tsc_khz / 1024


@dataclass
class Look:
    time_ns: int
    state: State


def looks(text: str, tsc_khz: int) -> list[Look]:
    out = []
    for block in text.split("look ")[1:]:
        tsc, _, rest = block.partition("\n")
        out.append(Look(int(tsc) * 1_000_000 // tsc_khz, state(rest)))
    return out


class TestFaults:
    pytestmark = pytest.mark.boots("invariance-faults")
    MS = 1_000_000
    @pytest.mark.parametrize("second", FAULT_SECONDS)
    def test_scale_stays_sane(self, result, second: int) -> None:
        """Busy CPUs at the highest clock: the fault does not reach the scale.

        But for one that APERF stands still in alone: the samples in which that
        begins and ends look like any other, of a lower clock.
        """
        for look in looks(result.text(f"second-{second}"), 2_000_000)[2:]:
            for cpu in (1, 2, 3):
                at_ms = look.time_ns / self.MS - second * 1000
                # The time is read before the files are
                if (second, cpu) != (2, 3) or not (-20 < at_ms < 20 or 80 < at_ms < 120):
                    assert look.state.cpus[cpu]["scale"] >= 1000

    def test_faults_are_counted(self, result) -> None:
        skipped = state(result.text("invariance")).of("skipped")
        assert skipped[0] == 0 and all(n >= 9 for n in skipped[1:])

    def test_one_message(self, result) -> None:
        lines = [line for line in result.text("dmesg").splitlines() if "are unusable" in line]
        assert len(lines) == 1
        assert re.search("CPU [123]: APERF and MPERF are unusable, frequency scale is 1024 "
                         "until they recover", lines[0])

    def test_still_on(self, result) -> None:
        assert "wobbly" not in result.text("dmesg")
        now = state(result.text("invariance"))
        assert now.word == "255c" and set(now.of("freq_max")) == {3000 * 1024 // 2000}

    @pytest.mark.boots("invariance-faults-base")
    def test_base_kernel_gives_up(self, result) -> None:
        dmesg = result.text("dmesg")
        assert "went wobbly" in dmesg and "unchecked MSR access" in dmesg


#: Highest over nominal by machine, from the machine files: boost and the middle.
AMD = {"acpi": ("epyc-7742", "midpoint", 0), "amd-pstate": ("epyc-7763", "boost", 0)}


@pytest.mark.parametrize("driver", each(AMD, "invariance-"))
class TestBoost:
    @staticmethod
    def boost(driver: str) -> int:
        m = machine.load(AMD[driver][0])
        return m.turbo.ratios[0] * 1024 // m.base_ratio

    def test_words(self, result: Result, driver: str) -> None:
        text, boost = result.text, self.boost(driver)
        wanted = {"boost": boost, "midpoint": (boost + 1024) // 2, "nominal": 1024}
        assert state(text("boot")).word == AMD[driver][1]
        for word, ratio in wanted.items():
            now = state(text(f"word-{word}"))
            assert now.word == word
            assert now.of("freq_max") == pytest.approx([ratio] * 2, abs=8)
        assert text("word-4c").startswith("4c:refused")
        assert state(text("word-4c")).word == "nominal"

    def test_boost_is_followed(self, result: Result, driver: str) -> None:
        middle = (self.boost(driver) + 1024) // 2
        base = machine.load(AMD[driver][0]).tsc_khz
        lines = [line for line in result.text("boost").splitlines() if line]
        assert len(lines) == 2 * TOGGLES
        for line in lines:
            on, *ratios = line.partition("/")[0].split()
            tops = line.partition("/")[2].split()
            assert [int(r) for r in ratios] == \
                pytest.approx([middle if on == "1" else 1024] * 2, abs=8)
            for ratio, top in zip(ratios, tops):
                assert int(ratio) / 1024 * base <= int(top) + base / 1024

    def test_boost_of_single_policies(self, result: Result, driver: str) -> None:
        """CPUs of one kind share freq_max: that of those that have boost and are online."""
        middle = (self.boost(driver) + 1024) // 2
        found = [int(n) for n in result.text("local-boost").split()]
        wanted = [middle] * 2 + [1024] * 2 + [middle] * 2 + [1024] + [middle] * 2 \
            + [1024] * 2 + [middle] * 2
        assert found == pytest.approx(wanted, abs=8)


@pytest.mark.boots("invariance-two-kinds")
def test_amd_cores_of_two_kinds_have_the_fast_ones_freq_max(result: Result) -> None:
    """Half-way to the highest over nominal performance, 196 / 128 of the fast core and 140 /
    128 of the others."""
    now = state(result.text("invariance"))
    assert now.word == "midpoint" and now.of("freq_max") == [1296] * 4


@pytest.mark.boots("invariance-zen5")
def test_fast_cores_of_zen_5_have_196(result: Result) -> None:
    """Half-way to 196 / 77, which kernel 6.13 logged as 1815 on a Ryzen AI 9 365; no model
    number of the base's says so. Dense cores, the last four CPUs, can have 3.3 GHz."""
    now = state(result.text("invariance"))
    assert now.word == "midpoint" and now.of("freq_max") == [1815] * 6
    assert "by base frequency (times 1024): 1815" in result.text("dmesg")
    freq = sysfs.pairs(result.text("cpufreq"))
    tops = [int(freq[f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq"])
            for cpu in range(6)]
    assert tops[:2] == pytest.approx([5_000_000] * 2, rel=0.03)
    assert tops[2:] == pytest.approx([3_300_000] * 4, rel=0.05)


@pytest.mark.parametrize("msr", [pytest.param(msr, id=f"{msr:#x}", marks=pytest.mark.boots(
    f"gp-{msr:#x}")) for msr in GP_AT_BOOT])
def test_register_that_faults_at_boot(msr: int, result: Result) -> None:
    """Without counts of cores the ratios are still bytes, of which servers take the last, of all
    cores; without any other of them there is no invariance. A counter that cannot be read is
    complained of once, as by the base."""
    now, usable = state(result.text("invariance")), msr == 0x1AE
    assert now.word == ("255c" if usable else "off")
    # acpi-cpufreq can request 2001 MHz at most, its word for turbo
    assert now.of("freq_max") == [1025 if usable else 1024]
    complaints = sysfs.warnings(result.text("dmesg"))
    assert all("unchecked MSR" in line or "Call Trace" in line for line in complaints)
    assert bool(complaints) == (msr in (0xE7, 0xE8))
