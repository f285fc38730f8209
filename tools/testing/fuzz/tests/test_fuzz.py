# SPDX-License-Identifier: GPL-2.0
"""The corpus and random inputs hold in each unit, and each unit finds a mistake."""
from __future__ import annotations

import shutil
from pathlib import Path

import fuzz
import pytest

pytestmark = pytest.mark.skipif(not fuzz.LINUX.is_dir(), reason="no build/linux (make tree)")

FREQ_MAX = "arch/x86/kernel/cpu/freq_max.h"
TURBO = "arch/x86/kernel/cpu/turbo_table.h"
HOLDOFF = "kernel/sched/cpufreq_holdoff.h"
TEO = "drivers/cpuidle/governors/teo_core.h"

#: (unit, file, what stands there, what is to stand there)
MISTAKES = [
    ("freq_max", FREQ_MAX, "digits >= sizeof(number) ||", ""),
    ("freq_max", FREQ_MAX, "*word == '0' ||", ""),
    ("turbo_table", TURBO, "ratio < table->base || n == TURBO_BINS_MAX ||",
     "n == TURBO_BINS_MAX ||"),
    ("turbo_table", TURBO, "bin < table->bins + table->nr_bins - 1)",
     "bin < table->bins + table->nr_bins)"),
    ("holdoff", HOLDOFF, "first -= min(first, HOLDOFF_NOISE(h->unit))",
     "first -= HOLDOFF_NOISE(h->unit)"),
    ("holdoff", HOLDOFF, "(s64)(now - h->since) >=", "now - h->since >= (u64)"),
    ("holdoff", HOLDOFF, "h->lo = U32_MAX;", "h->lo = 0;"),
    ("holdoff", HOLDOFF, "h->lo = min(h->lo, first);", "h->lo = first;"),
    ("teo", TEO, "clamp_t(s64, needed, NSEC_PER_USEC, NSEC_PER_SEC / 2)", "needed"),
    ("teo", TEO, "min(idle, (s64)TEO_MOST * needed)", "idle"),
    ("teo", TEO, "cpu->nr_pending < TEO_PENDING", "cpu"),
]


@pytest.mark.parametrize("unit", fuzz.UNITS)
def test_properties_hold(unit: str) -> None:
    fuzz.once(unit, fuzz.LINUX, 20000)


@pytest.mark.parametrize("unit,name,right,wrong", MISTAKES)
def test_mistake_is_found(unit: str, name: str, right: str, wrong: str, tmp_path: Path) -> None:
    file = tmp_path / name
    # What includes it by its own directory has to find it there
    shutil.copytree((fuzz.LINUX / name).parent, file.parent,
                    ignore=lambda _, names: [n for n in names if not n.endswith((".c", ".h"))])
    text = file.read_text()
    assert text.count(right) == 1
    file.write_text(text.replace(right, wrong))
    with pytest.raises(fuzz.Failed) as failed:
        fuzz.once(unit, tmp_path, 20000)
    assert failed.value.status == 1


def test_what_cannot_run_is_no_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def said() -> str:
        with pytest.raises(fuzz.Failed) as failed:
            fuzz.once("holdoff", fuzz.LINUX, 1)
        assert failed.value.status == 2
        return failed.value.said
    monkeypatch.setattr(fuzz, "CORPUS", tmp_path)
    assert "holdoff.txt: No such file" in said()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "gcc is not installed" in said()
