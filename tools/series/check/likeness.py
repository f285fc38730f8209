# SPDX-License-Identifier: GPL-2.0
"""Are the guest kernels configured as Debian's is, where it matters to the series?

kernel-debian.toml names the Kconfig files and sources that tell which symbols matter, and
the symbols that may differ, each with its reason."""
from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from virtual_silicon.errors import Fail

from .. import paths
from ..compile import kernel

_DEFINED = re.compile(r"^\s*(?:menu)?config (\w+)$", re.M)
_ASKED_FOR = re.compile(r"\bCONFIG_([A-Z0-9_]+)\b")


@dataclass(frozen=True)
class Rules:
    kconfig: list[str]
    sources: list[str]
    reasons: dict[str, str]       # of the symbols that may differ


def load(text: str, version: str = paths.BASE_VERSION) -> Rules:
    """A group with a base is for that kernel alone."""
    data = tomllib.loads(text)
    reasons: dict[str, str] = {}
    for group in data["differs"]:
        if group.get("base", version) != version:
            continue
        for symbol in group["symbols"]:
            if symbol in reasons:
                raise Fail(f"{symbol} is listed twice")
            reasons[symbol] = group.get("reason", "").strip()
    return Rules(data["kconfig"], data["sources"], reasons)


def areas(tree: Path, rules: Rules) -> dict[str, set[str]]:
    """{pattern of files: the symbols that these define or ask for}."""
    return {**{pattern: _found(tree, pattern, _DEFINED) for pattern in rules.kconfig},
            **{pattern: _found(tree, pattern, _ASKED_FOR) for pattern in rules.sources}}


def _found(tree: Path, pattern: str, symbol: re.Pattern[str]) -> set[str]:
    files = list(tree.glob(pattern))
    if not files:
        raise Fail(f"the kernel has no {pattern}")
    return {name.removesuffix("_MODULE") for file in files
            for name in symbol.findall(file.read_text())}


def _value(settings: dict[str, str], symbol: str) -> str:
    """A module counts as built in."""
    value = settings.get(f"CONFIG_{symbol}", "n")
    return "y" if value == "m" else value


def problems(tree: Path, rules: Rules, configs: dict[str, str],
             debian: str) -> dict[str, list[str]]:
    """{case: what is wrong}: a case for each area, and one for each symbol that may differ."""
    theirs = kernel.settings(debian)
    said: dict[str, list[str]] = {}
    differing: set[str] = set()
    for area, symbols in areas(tree, rules).items():
        said[area] = []
        for name, config in configs.items():
            ours = kernel.settings(config)
            for symbol in sorted(symbols):
                mine, debians = _value(ours, symbol), _value(theirs, symbol)
                if mine != debians:
                    differing.add(symbol)
                    if symbol not in rules.reasons:
                        said[area].append(f"{symbol}={mine} in {name}, {debians} in Debian's")
    for symbol, reason in rules.reasons.items():
        said[f"{symbol} differs"] = (["without a reason"] * (not reason)
                                     + ["it does not"] * (symbol not in differing))
    return said
