# SPDX-License-Identifier: GPL-2.0
"""The two kernels side by side: what it says of made-up answers, and one real run."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest
from virtual_silicon import paths
from virtual_silicon.studies.demo import compare

ROW = compare.Row("a clock", "ms", "", "", digits=1)


@pytest.mark.parametrize("base, ours, verdict", [
    ([100], [102.9], "same"), ([100], [103.1], "worse"), ([103.1], [100], "better"),
    ([0.31], [0.34], "same"),		# the same digits are shown
    ([0], [0], "same"), ([0], [1], "worse"),
    ([50, 60, 70], [55, 66, 77], "same"), ([50, 51, 52], [55, 66, 77], "worse"),
    ([55, 66, 77], [50, 51, 52], "better")])
def test_verdict(base: list[float], ours: list[float], verdict: str) -> None:
    assert compare._verdict(ROW, base, ours) == verdict


def test_run(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Bounds that the README states; what the registers hold is in the machine's file."""
    if request.config.getoption("--base-kernel") != "base":
        pytest.skip("compares the kernels that were built")
    done = subprocess.run([sys.executable, "-m", "virtual_silicon", "compare", f"--out={tmp_path}"],
                          cwd=paths.ROOT / "tools/testing/virtual-silicon", text=True,
                          stdout=subprocess.PIPE, check=True)
    rows = list(csv.DictReader((tmp_path / "compare.csv").open()))
    said = {row["what"].split(",")[0].split(":")[0]: row for row in rows}
    highest = said["clock taken for the highest"]
    assert (highest["base"], highest["patched"]) == ("1670", "1562")
    busy = said["a light task becomes busy"]
    assert float(busy["patched"]) < 20 < 80 < float(busy["base"])
    changes = said["changes of clock in 1 s of a thread's random bursts"]
    assert float(changes["patched"]) < 1.5 * float(changes["base"])
    bursts = said["twelve of these bursts"]
    assert float(bursts["patched"]) < 1.06 * float(bursts["base"])
    assert float(said["a thread is woken now and then"]["patched"]) < 10
    energy = said["energy of 5 s with a little work each 100 ms"]
    assert float(energy["patched"]) < 1.03 * float(energy["base"])
    fault = said["counters read 0 in a tick"]
    assert (fault["base"], fault["patched"]) == ("no", "yes")
    assert max(map(len, done.stdout.splitlines()[-25:-2])) <= 80
    assert (tmp_path / "compare.png").read_bytes().startswith(b"\x89PNG")


def test_amd_is_refused() -> None:
    done = subprocess.run([sys.executable, "-m", "virtual_silicon", "compare",
                           "--machine=epyc-7763"], text=True, stderr=subprocess.PIPE,
                          cwd=paths.ROOT / "tools/testing/virtual-silicon")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "Intel" in done.stderr
