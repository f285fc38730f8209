# SPDX-License-Identifier: GPL-2.0
"""Each case of each unit that units.py runs."""
from __future__ import annotations

import functools
import re
import subprocess
import warnings
from pathlib import Path

import pytest
import units

pytestmark = pytest.mark.skipif(not units.LINUX.is_dir(), reason="no build/linux (make tree)")

run = functools.cache(units.run)


@pytest.mark.parametrize("unit,case", [(u, c) for u in units.UNITS for c in units.cases(u)])
def test_case(unit: str, case: str) -> None:
    """Of a case with parameters there is a line for each."""
    done = run(unit, units.LINUX)
    lines = re.findall(rf"^(?:not )?ok {case}\b.*", done.stdout, re.M)
    assert lines, done.stderr or "not in the file of build/linux, which make tree updates"
    failed = [line for line in lines if line.startswith("not")]
    assert not failed, "\n".join([*failed, done.stderr])


def test_the_tree_is_ours() -> None:
    """A warning: who edits in build/linux wants to test that."""
    if names := units.differing(units.LINUX):
        warnings.warn(f"build/linux has another {', '.join(names)}: make tree or make refresh",
                      stacklevel=1)


def test_a_file_that_the_tree_has_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                            capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(units, "TOP", tmp_path)
    for top, said in ((tmp_path, "new"), (tmp_path / "build/linux", "old")):
        (top / "kernel/sched").mkdir(parents=True)
        (top / "kernel/sched/one.c").write_text(said)
        (top / "kernel/sched/two.h").write_text("same")
    assert units.differing(tmp_path / "build/linux") == ["kernel/sched/one.c"]
    assert units.differing(tmp_path) == []


def test_each_turbo_model_has_a_case() -> None:
    def models(name: str, file: str) -> set[str]:
        text = (units.TOP / "arch/x86/kernel/cpu" / file).read_text()
        rows = text.partition(f"{name}[] = {{")[2].partition("\n};")[0]
        return set(re.findall(r"\bINTEL_\w+|\bIFM\(.*?\)", rows))

    ours = models("turbo_models", "turbo_table.h")
    assert len(ours) > 10 and "IFM(19, 0x01)" in ours
    assert ours <= models("model_cases", "turbo_table_kunit.c")


def test_teo_on_32_bit(tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text("#include <errno.h>\nint main(void) { return 0; }\n")
    if subprocess.run(["gcc", "-m32", "-o", tmp_path / "x", tmp_path / "x.c"],
                      capture_output=True).returncode:
        pytest.skip("gcc-multilib is not there")
    done = run("teo", units.LINUX, 32)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok ") >= len(units.cases("teo"))


@pytest.mark.parametrize("said,part", [("void absent(void)\n{\n}\n", "present"), ("", "wait")])
def test_what_is_not_there_cannot_be_built(tmp_path: Path, said: str, part: str) -> None:
    (tmp_path / "x.c").write_text(said)
    match = re.match(r"(\S+): (.+)", f"x.c: {part}")
    assert match
    with pytest.raises(units.Unbuildable, match=f"x.c has no {part}"):
        units.parts(tmp_path, match)
