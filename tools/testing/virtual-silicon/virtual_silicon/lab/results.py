# SPDX-License-Identifier: GPL-2.0
"""What is committed of the lab: samples, the losers among them, and of which version they are."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from .. import paths
from ..errors import UsageError
from ..text import write_csv
from . import plan, store, table

DIR = paths.ROOT / "results"
#: Of the tiers that are kept.
SAMPLES = {"release": "samples.csv", "model": "samples-model.csv"}
#: Changes of which make results older.
OF = {"kernel": ("arch", "drivers", "include", "kernel", "patches"),
      "model": ("tools/testing/virtual-silicon/qemu", "tools/testing/virtual-silicon/machines"),
      "loads": ("tools/testing/virtual-silicon/virtual_silicon/lab",
                "tools/testing/virtual-silicon/virtual_silicon/loads")}


def tier(parts: Iterable[plan.Part]) -> str:
    """Of all parts that are measured together."""
    tiers = {part.tier for part in parts}
    if len(tiers) != 1 or not tiers <= SAMPLES.keys():
        raise UsageError(f"--results: parts of one tier of {', '.join(SAMPLES)}, not "
                         + ", ".join(sorted(tiers)))
    return tiers.pop()


def of_tier(whole: plan.Plan, name: str) -> list[plan.Cell]:
    return plan.cells(whole, [part.name for part in whole.parts.values() if part.tier == name])


def kept(whole: plan.Plan, name: str, where: Path = DIR) -> list[store.Sample]:
    """Of a tier, as far as the plan still has them."""
    file = where / SAMPLES[name]
    return store.saved(of_tier(whole, name), file).samples if file.exists() else []


def keep(whole: plan.Plan, name: str, cells: Iterable[plan.Cell],
         measured: Iterable[store.Sample], where: Path = DIR) -> bool:
    """Of a tier, in place of what was kept of these cells. Whether there is a sample of each."""
    gone = set(cells)
    found = {sample.cell: sample for sample in (
        *(sample for sample in kept(whole, name, where) if sample.cell not in gone),
        *measured)}
    every = of_tier(whole, name)
    samples = [found[cell] for cell in every if cell in found]
    store.save(samples, where / SAMPLES[name])
    if name == "release":
        write_csv(where / "losers.csv", table.HEAD, [row.cells() for row in table.losers(
            table.rows(samples, whole), whole)], "Where judged columns are worse.", table.NOTE)
    return len(samples) == len(every)


def _git(*words: str, top: Path) -> str:
    return subprocess.run(["git", "-c", "safe.directory=*", *words], cwd=top, check=True,
                          capture_output=True, text=True).stdout.strip()


def sign(top: Path = paths.ROOT) -> None:
    """VERSION: the newest of CHANGELOG.md, and the commit that was measured."""
    newest = re.search(r"^## (\S+)$", (top / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert newest, "CHANGELOG.md has a heading per version"
    (top / "results/VERSION").write_text(
        f"{newest[1]} {_git('rev-parse', '--short=12', 'HEAD', top=top)}\n", encoding="ascii")


def behind(top: Path = paths.ROOT) -> str:
    """How many commits the results do not have."""
    version, *commit = (top / "results/VERSION").read_text(encoding="ascii").split()
    made = commit[0] if commit else _git("log", "-1", "--format=%H", "--", "results/VERSION",
                                         top=top)
    since = ", ".join(_git("rev-list", "--count", f"{made}..HEAD", "--", *where, top=top)
                      + f" of the {what}" for what, where in OF.items())
    return (f"results are of v{version}: since then, commits: {since} (make figures makes them "
            "anew)")
