# SPDX-License-Identifier: GPL-2.0
"""Hostile inputs, some seconds of them: see fuzz_texts.py."""
from __future__ import annotations

import io
import tarfile
import time
from pathlib import Path

import pytest
from cpuwhy import cli, events, texts
from cpuwhy.tests import fuzz_texts

EVENT = "  a-1 [000] d..1. 77.102839: cpu_idle: state=1 cpu_id=0\n"
VALUE = "sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq"


def test_cases_of_fixed_seeds() -> None:
    assert fuzz_texts.fuzz(1, 0, fuzz_texts.samples(None), 12) == {}


@pytest.mark.parametrize("files", [
    {"proc/cmdline": "Serial Number: QX7 intel_idle.max_cstate=1\n"},
    {"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "Mar 7 QX7 kernel: x\n",
     "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n"},
])
def test_what_a_file_must_not_hold_is_not_shown(files: dict[str, str], tmp_path: Path,
                                                capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for words in (["doctor", f"--root={tmp_path}"], ["explain", str(tmp_path)]):
        for more in ("", "--json"):
            cli.main([*words, *more.split()])
    said = capsys.readouterr().out
    assert said and "QX7" not in said


def test_a_row_of_blanks() -> None:
    table = "CPU\tAvg_MHz\tBusy%\tBzy_MHz\n"
    assert texts.read_text(f"{table}\u2003\n0\t1\t2\t3\n", "t").tables[0].rows


def test_a_link_out_of_a_copy_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("800000\n")
    path = tmp_path / "copy" / VALUE
    path.parent.mkdir(parents=True)
    path.symlink_to(outside)
    assert not texts.read([str(tmp_path / "copy")]).sysfs
    path.unlink()
    path.write_text("800000\n")
    assert len(texts.read([str(tmp_path / "copy")]).sysfs) == 1


def test_a_text_without_events_is_left_early(tmp_path: Path,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "text"
    path.write_text("a: b\n" * events.PATIENCE + EVENT)
    assert cli.main(["idle", str(path)]) == 2
    assert "no events in it" in capsys.readouterr().err
    path.write_text(EVENT + "a: b\n" * events.PATIENCE)
    assert cli.main(["idle", str(path)]) == 0


def test_archives_in_archives(tmp_path: Path) -> None:
    data = b"cpu0: MSR_PLATFORM_INFO: 0x80838f3012300\n"
    read = []
    for _ in range(6):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            info = tarfile.TarInfo("dump")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        data = out.getvalue()
        (tmp_path / "tar").write_bytes(data)
        read.append(0xCE in texts.read([str(tmp_path / "tar")]).registers)
    assert read == [True] * 4 + [False] * 2


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_nothing_private_is_shown(option: list[str], tmp_path: Path,
                                  capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "home" / fuzz_texts.USER / "report"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(fuzz_texts.PLANTED))
    cli.main(["explain", *option, str(path)])
    said = capsys.readouterr().out
    assert "intel_idle.max_cstate=1" in said and "678246" in said
    assert not [secret for secret in fuzz_texts.SECRETS if secret in said]


@pytest.mark.parametrize("line", ["x: " + "9" * 8000, "1" * 4000 + " GHz" * 900, "> " * 4000,
                                  "a: " * 2500, "rdmsr" + " -a" * 2500],
                         ids=["digits", "GHz", "quotes", "colons", "options"])
def test_long_lines_take_no_longer_than_their_length(line: str) -> None:
    begin = time.process_time()
    texts.read_text("analyzing CPU 0:\n" + f"{line}\n" * 100)
    assert time.process_time() - begin < 2
