# SPDX-License-Identifier: GPL-2.0
"""What guests, the stick and this machine run: C, shell, and the packages of programs."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from ..guest import initramfs

HERE = Path(__file__).resolve().parent
RECIPE = initramfs.read_recipe(HERE / "recipe.txt")


def packages() -> dict[str, list[str]]:
    """Files of each package that guests get."""
    found: dict[str, list[str]] = defaultdict(list)
    for item in RECIPE:
        if item.package:
            found[item.package].append(item.source)
    return dict(found)
