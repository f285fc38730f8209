# SPDX-License-Identifier: GPL-2.0
"""The guest kernels' configuration against Debian's: the comparison finds what it is for."""
from __future__ import annotations

from pathlib import Path

import pytest
from virtual_silicon.errors import Fail

from ..check import likeness

RULES = """
kconfig = ["kernel/Kconfig.hz"]
sources = ["kernel/sched/*.[ch]"]
[[differs]]
reason = "guests have no disk"
symbols = ["SWAP"]
"""
DEBIAN = "CONFIG_HZ_250=y\nCONFIG_HZ=250\nCONFIG_CFS_BANDWIDTH=y\nCONFIG_SWAP=y\nCONFIG_KVM=m\n"
OURS = "CONFIG_HZ_250=y\nCONFIG_HZ=250\nCONFIG_CFS_BANDWIDTH=y\n# CONFIG_SWAP is not set\n" \
       "CONFIG_KVM=y\n"
GOOD: dict[str, list[str]] = {
    "kernel/Kconfig.hz": [], "kernel/sched/*.[ch]": [], "SWAP differs": []}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "kernel/sched").mkdir(parents=True)
    (tmp_path / "kernel/Kconfig.hz").write_text(
        "choice\n\tprompt \"Timer\"\n\n\tconfig HZ_250\n\t\tbool \"250\"\nendchoice\n\n"
        "config HZ\n\tint\n")
    (tmp_path / "kernel/sched/fair.c").write_text(
        "#ifdef CONFIG_CFS_BANDWIDTH\n#elif defined(CONFIG_SWAP)\n"
        "#elif defined(CONFIG_KVM) || defined(CONFIG_KVM_MODULE)\n#endif\n")
    return tmp_path


def problems(tree: Path, ours: str = OURS, rules: str = RULES) -> dict[str, list[str]]:
    return likeness.problems(tree, likeness.load(rules), {"patched": OURS, "base": ours}, DEBIAN)


def test_symbols_of_kconfig_and_sources(tree: Path) -> None:
    assert likeness.areas(tree, likeness.load(RULES)) == {
        "kernel/Kconfig.hz": {"HZ_250", "HZ"},
        "kernel/sched/*.[ch]": {"CFS_BANDWIDTH", "SWAP", "KVM"}}


def test_alike_and_a_module_is_built_in(tree: Path) -> None:
    assert problems(tree) == GOOD


@pytest.mark.parametrize("symbol, area, mine, debians", [
    ("CFS_BANDWIDTH", "kernel/sched/*.[ch]", "n", "y"),
    ("HZ", "kernel/Kconfig.hz", "n", "250")])
def test_removed_option(tree: Path, symbol: str, area: str, mine: str, debians: str) -> None:
    without = "".join(line for line in OURS.splitlines(True) if f"_{symbol}=" not in line)
    assert problems(tree, without) == {
        **GOOD, area: [f"{symbol}={mine} in base, {debians} in Debian's"]}


def test_option_that_debian_has_not(tree: Path) -> None:
    (tree / "kernel/sched/core.c").write_text("#ifdef CONFIG_SCHED_CORE\n")
    assert problems(tree, OURS + "CONFIG_SCHED_CORE=y\n") == {
        **GOOD, "kernel/sched/*.[ch]": ["SCHED_CORE=y in base, n in Debian's"]}


def test_exception_needs_a_difference_and_a_reason(tree: Path) -> None:
    more = RULES.replace('["SWAP"]', '["SWAP", "HZ"]')
    assert problems(tree, rules=more) == {**GOOD, "HZ differs": ["it does not"]}
    mute = RULES.replace("guests have no disk", " ")
    assert problems(tree, rules=mute) == {**GOOD, "SWAP differs": ["without a reason"]}


def test_exception_for_one_base(tree: Path) -> None:
    alone = RULES + 'base = "7.3"\n'
    assert likeness.load(alone, "7.3").reasons == likeness.load(RULES).reasons
    assert problems(tree, rules=alone) == {
        "kernel/Kconfig.hz": [],
        "kernel/sched/*.[ch]": [f"SWAP=n in {name}, y in Debian's" for name in ("patched", "base")]}


def test_rules_that_name_what_is_not_there(tree: Path) -> None:
    with pytest.raises(Fail, match="the kernel has no kernel/shed"):
        problems(tree, rules=RULES.replace("kernel/sched", "kernel/shed"))
    with pytest.raises(Fail, match="SWAP is listed twice"):
        likeness.load(RULES.replace('["SWAP"]', '["SWAP", "SWAP"]'))
