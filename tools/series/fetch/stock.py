# SPDX-License-Identifier: GPL-2.0
"""Debian's kernels that columns of the lab name, where the lab looks for them."""
from __future__ import annotations

from virtual_silicon.errors import Fail
from virtual_silicon.lab import kernels, plan

from . import aptget


def kernels_of_columns() -> None:
    """From backports where the machine's own sources do not have them."""
    kernels.OUT.mkdir(parents=True, exist_ok=True)
    for kernel in plan.read().kernels.values():
        for name in kernels.packages(kernel):
            if not list(kernels.OUT.glob(f"{name}_*.deb")):
                if not (found := aptget.offers(name) or aptget.offers(name, aptget.backports())):
                    raise Fail(f"{name} is not on offer; lab/plans/columns.toml names it")
                aptget.download(found[0], kernels.OUT)
