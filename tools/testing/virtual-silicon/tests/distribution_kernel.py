# SPDX-License-Identifier: GPL-2.0
"""A distribution's kernel on every machine: not among the tests that are always
run, because each boot takes half a minute of CPU time.

    python3 -m pytest tests/distribution_kernel.py --kernel-package=FILE.deb
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from guests import Guests
from virtual_silicon.guest import boot, distribution
from virtual_silicon.machine import machine
from virtual_silicon.studies import stock_tools


@pytest.mark.parametrize("name", machine.names())
def test_kernel_of_the_distribution(request: pytest.FixtureRequest, guests: Guests,
                                    tmp_path: Path, name: str) -> None:
    """Each machine: no warning, and the clocks of the file."""
    package = request.config.getoption("--kernel-package")
    assert package, "give --kernel-package=FILE.deb"
    kernel = distribution.unpack(Path(package), tmp_path / "kernels")
    c = dataclasses.replace(guests.config("two-kinds-amd", b""), out=tmp_path / "out",
                            limits=boot.Limits(600, 600, 1800))
    (row,) = stock_tools.rows([machine.load(name)], [(kernel.release, kernel.image, kernel)],
                          c, 2)
    cells = dict(zip(stock_tools.HEAD, row.cells))
    assert cells["warnings"] == "none"
    for seen, file in (("one CPU MHz", "one CPU in file"), ("all MHz", "all in file")):
        assert [int(mhz) for mhz in cells[seen].split("/")] == pytest.approx(
            [int(mhz) for mhz in cells[file].split("/")], rel=0.01)
