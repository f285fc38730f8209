# SPDX-License-Identifier: GPL-2.0
"""build/versions.json: what the products in build/ were made from."""
from __future__ import annotations

import json

from . import paths


def read() -> dict[str, dict[str, str]]:
    try:
        return json.loads(paths.VERSIONS.read_text())
    except (OSError, ValueError):
        return {}


def record(product: str, **facts: str) -> None:
    """Replace what is known of `product`."""
    known = read()
    if known.get(product) == facts:
        return
    known[product] = facts
    paths.VERSIONS.parent.mkdir(parents=True, exist_ok=True)
    part = paths.VERSIONS.with_suffix(".part")
    part.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    part.replace(paths.VERSIONS)
