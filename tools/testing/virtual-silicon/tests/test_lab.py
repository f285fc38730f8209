# SPDX-License-Identifier: GPL-2.0
"""Experiments: what a plan may say, which cells share a guest, what a cell's line means, who
loses, and that a guest refuses what does not hold."""

from __future__ import annotations

import argparse
import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from virtual_silicon import paths
from virtual_silicon.__main__ import main
from virtual_silicon.errors import Fail, GuestError, UsageError
from virtual_silicon.guest import boot, initramfs, pool
from virtual_silicon.lab import (
    commands,
    kernels,
    pages,
    picture,
    plan,
    results,
    store,
    table,
    variants,
)
from virtual_silicon.loads import HERE as PROGRAMS
from virtual_silicon.machine import machine

PLAN = plan.read()
TINY = """
[kernel.base]
[kernel.ours]
like = "patched"
[column.base]
kernel = "base"
[column.ours]
kernel = "ours"
set = ["feature=NO_X"]
[load.turns]
title = "turns"
takes = '\\d+'
run = "stopwatch turns $N"
prints = ["result", "p99"]
[load.end]
title = "ends"
run = "stopwatch end"
better = "less"
[part.one]
question = "?"
machines = ["sapphire-rapids"]
cpus = 4
columns = ["base", "ours"]
loads = ["turns:1", "turns:2", "end"]
seeds = 2
[part.one.holds]
"ours/base turns:1 result" = [1.5, 2.5]
"""


def tiny(where: Path, old: str = "", new: str = "") -> plan.Plan:
    assert old in TINY
    (where / "a.toml").write_text(TINY.replace(old, new, 1) if old else TINY)
    return plan.read(where)


@pytest.mark.parametrize("old, new, said", [
    ('better = "less"', 'best = 1', "a.toml: load end: no field best; there are: title, run, "),
    ('run = "stopwatch end"', '', "a.toml: load end lacks run"),
    ('better = "less"', 'better = "fewer"',
     "a.toml: load end: better: no value fewer; there are: more, less"),
    ('"p99"', '"p98"', "a.toml: load turns: prints: no measure p98; there are: -, result, "),
    ("turns $N", "turns", "a.toml: load turns: run has $N if and only if"),
    ("stopwatch end", "stopwatch end $N", "a.toml: load end: run has $N if and only if"),
    ('"turns:2"', '"turns:two"',
     r"a.toml: part one: load turns:two: no parameter two; it takes \d+"),
    ('"turns:2"', '"turns"', r"a.toml: part one: load turns: no parameter given; it takes \d+"),
    ('"end"]', '"end:3"]', "a.toml: part one: load end:3: no parameter 3; it takes none"),
    ('"end"]', '"ends"]', "a.toml: part one: no load ends; there are: turns, end"),
    ('["base", "ours"]', '["base", "our"]',
     "a.toml: part one: no column our; there are: base, ours"),
    ('"sapphire-rapids"', '"saphire"', "a.toml: part one: no machine saphire; there are: "),
    ("seeds = 2", 'seeds = 2\ntier = "night"',
     "a.toml: part one: no tier night; there are: check, release, model"),
    ("turns:1 result", "turns:3 result",
     "a.toml: part one: holds: no load turns:3; there are: turns:1, turns:2, end"),
    ("turns:1 result", "turns:1 rate",
     "a.toml: part one: holds: no measure rate; there are: result, W, "),
    ("ours/base turns", "our/base turns",
     "a.toml: part one: holds: no column our; there are: base, ours"),
    ("ours/base turns", "ours/stock turns",
     "a.toml: part one: holds: no column that it is over stock; there are: base"),
    ("seeds = 2", 'seeds = 2\nonly = {our = ["end"]}',
     "a.toml: part one: only: no column our; there are: base, ours"),
    ("seeds = 2", 'seeds = 2\nonly = {ours = ["ends*"]}',
     "a.toml: part one: only: no load like ends*; there are: turns:1, turns:2, end"),
    ("seeds = 2", 'seeds = 2\nvariants = ["other"]',
     "a.toml: part one: no variant other; there are: kernel cycles x 0.5, "),
    ('"feature=NO_X"', '"pair=0"', "a.toml: column ours: no setting pair; there are: status, "),
    ('kernel = "ours"', 'kernel = "ours"\nvariant = "HWPs"',
     "a.toml: column ours: no variant HWPs; there are: "),
    ('better = "less"', 'programs = ["hg"]',
     "a.toml: load end: programs: no package in recipe.txt hg; there are: "),
    ('kernel = "ours"', 'kernel = "our"',
     "a.toml: column ours: no kernel our; there are: base, ours"),
    ("[load.end]", "[loads.end]", "a.toml: no table loads; there are: kernel, column, load, part"),
    ("[load.end]", "[load.end", "a.toml: "),
])
def test_wrong_plans(tmp_path: Path, old: str, new: str, said: str) -> None:
    """Are refused in a line with file, name, and what is allowed."""
    with pytest.raises(UsageError) as error:
        tiny(tmp_path, old, new)
    assert str(error.value).startswith(said) and "\n" not in str(error.value)


def test_a_name_in_two_files(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text('[column.ours]\nkernel = "base"\n')
    with pytest.raises(UsageError, match="^b.toml: column ours is in a.toml: column ours too$"):
        tiny(tmp_path)


def test_cells_share_guests(tmp_path: Path) -> None:
    """Each cell is in one guest, which has one part, machine, boot and kind of user code."""
    for whole in (PLAN, tiny(tmp_path, "[load.end]", "[load.end]\ncycles = 1000")):
        every = plan.cells(whole, list(whole.parts))
        of = plan.starts(every)
        assert len(set(every)) == len(every) and len({s.name for s in of}) == len(of)
        assert sorted(map(str, every)) == sorted(str(c) for s in of for c in s.cells)
        assert all(len({(c.part, c.machine, c.column.boot, c.load.cycles, c.load.memory)
                        for c in s.cells}) == 1 for s in of)
    assert len(of) == 4 and len(every) == 12
    # A repetition comes after all other loads
    assert [(c.key[2], c.seed) for c in of[0].cells] == [
        ("turns:1", 1), ("turns:2", 1), ("turns:1", 2), ("turns:2", 2)]


def test_columns_that_have_not_all_loads(tmp_path: Path) -> None:
    whole = tiny(tmp_path, "seeds = 2", 'seeds = 1\nonly = {ours = ["turns:*"]}')
    assert [(c.key[3], c.key[2]) for c in plan.cells(whole, ["one"])] == [
        ("base", "turns:1"), ("base", "turns:2"), ("base", "end"), ("ours", "turns:1"),
        ("ours", "turns:2")]


def test_variants_have_guests_of_their_own(tmp_path: Path) -> None:
    """And a machine that differs in one assumption."""
    whole = tiny(tmp_path, "seeds = 2", 'seeds = 2\nvariants = ["", "worst exits"]')
    of = plan.starts(plan.cells(whole, ["one"]))
    assert [s.cells[0].key[1] for s in of] == 2 * ["sapphire-rapids"] + \
        2 * ["sapphire-rapids, worst exits"] and len({s.name for s in of}) == 4


@pytest.mark.parametrize("name", variants.ASSUMPTIONS)
def test_variants_change_one_thing(name: str) -> None:
    m = machine.load("sapphire-rapids")
    m = dataclasses.replace(m, time=dataclasses.replace(m.time, quantum_ns=store.QUANTUM_NS))
    changed = variants.changed(m, name)
    assert len([key for key, value in vars(m).items() if value != getattr(changed, key)]) == 1


def test_shares_of_the_cpus() -> None:
    assert [plan.number(word, 8) for word in ("n", "n/2", "n/16", "3", "n=16", "")] == [
        "8", "4", "1", "3", "n=16", ""]


@pytest.fixture
def guests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pool.Guests:
    for name in ("base", "ours", "qemu", "archive"):
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(store.kernels, "image", lambda kernel: (tmp_path / kernel.name, {}))
    return pool.Guests(tmp_path / "out", tmp_path / "archive", tmp_path / "qemu")


def test_key_covers_what_decides(guests: pool.Guests, tmp_path: Path) -> None:
    """What is kept of one cell is not the answer of another."""
    def keys(old: str = "", new: str = "") -> list[str]:
        whole = tiny(tmp_path, old, new)
        return [guests.key(store.guest(start, whole)) for start in
                plan.starts(plan.cells(whole, ["one"]))]
    base, ours = keys()
    for old, new in ((', "turns:2"', ""), ("turns $N", "turn $N"), ("seeds = 2", "seeds = 3"),
                     ("[load.turns]", "[load.turns]\ncycles = 9"), ("cpus = 4", "cpus = 2"),
                     ('prints = ["result", "p99"]', 'prints = ["result"]')):
        assert not {base, ours} & set(keys(old, new)), (old, new)
    for old, new in (('"feature=NO_X"', '"feature=NO_Y"'), ('kernel = "ours"', 'kernel = "base"'),
                     ('kernel = "ours"', 'kernel = "ours"\nappend = "nosmt"'),
                     ('kernel = "ours"', 'kernel = "ours"\nvariant = "HWP"'),
                     ('kernel = "ours"', 'kernel = "ours"\nfaults = "0 msr msr=0x1ad value=0"'),
                     ('kernel = "ours"', 'kernel = "ours"\nidle = "menu"')):
        assert ours not in keys(old, new), (old, new)


def test_machine_of_a_guest(guests: pool.Guests, tmp_path: Path) -> None:
    """With cycles and memory of the load's user code, and the uncore of all packages where the part
    says so; nothing else is another."""
    old = TINY[TINY.index("machines ="):TINY.index("cpus =")]
    m = machine.load("e5-2698-v4")
    for packages, times in (("false", 1), ("true", 2)):
        whole = tiny(tmp_path, "[load.turns]", "[load.turns]\ncycles = 1300\nmemory = 94")
        (tmp_path / "a.toml").write_text((tmp_path / "a.toml").read_text().replace(
            old, f'machines = ["e5-2698-v4"]\npackages = {packages}\n'))
        whole = plan.read(tmp_path)
        found = store.guest(plan.starts(plan.cells(whole, ["one"]))[0], whole).machine
        assert found.power.uncore_w == times * m.power.uncore_w
        assert (found.time.user_cycles_per_1000_insns, found.time.memory_permille) == (1300, 94)
        assert dataclasses.replace(found, power=m.power, time=m.time) == m


def test_hwp_is_of_a_column(guests: pool.Guests) -> None:
    of = {column: store.guest(plan.starts([dataclasses.replace(
        cell("hackbench", column), machine="e3-1240-v5")])[0], PLAN).machine
        for column in ("i_pstate", "i_pstate-HWP")}
    assert [m.hwp.present for m in of.values()] == [False, True]
    assert dataclasses.replace(of["i_pstate-HWP"], hwp=of["i_pstate"].hwp) == of["i_pstate"]


def good_answer(start: plan.Start) -> str:
    """As a guest says it."""
    columns = dict.fromkeys(c.column.name for c in start.cells)
    return "\n".join(["vs:ready 1", *(line for name in columns for line in (
        f"vs:begin {name}", *(f"cell {c.load.name} {c.parameter or '-'} {c.seed} {GOOD} "
                             + " ".join("7" for _ in c.load.prints)
                             for c in start.cells if c.column.name == name),
        f"vs:end {name} 0")), "vs:exit 0", ""])


def test_what_is_measured_is_kept(guests: pool.Guests, tmp_path: Path,
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it would be another; a guest that fails is started again."""
    booted: list[boot.Config] = []
    whole = tiny(tmp_path)
    start = plan.starts(plan.cells(whole, ["one"]))[0]
    guest, text = store.guest(start, whole), good_answer(start)

    def outcome(of: pool.Guests) -> boot.Result | Fail | None:
        return of.outcomes([guest])[0]

    def fail(c: boot.Config, on_section: object) -> boot.Result:
        booted.append(c)
        (c.out / "results.log").write_text(text)
        raise GuestError("it panicked")

    def answer(c: boot.Config, on_section: object) -> boot.Result:
        booted.append(c)
        (c.out / "results.log").write_text(text)
        result = boot.Result(0, boot.Answer(), 9, 1, "", {}, None)
        result.answer.feed(text)
        return result
    assert guests.outcomes([guest], kept_only=True) == [None]
    monkeypatch.setattr(pool, "boot", SimpleNamespace(**vars(boot) | {"run": fail}))
    assert str(outcome(guests)) == "it panicked"
    monkeypatch.setattr(pool, "boot", SimpleNamespace(**vars(boot) | {"run": answer}))
    found = [store.Measured(), store.Measured()]
    for measured in found:
        result = outcome(guests)
        assert isinstance(result, boot.Result)
        store.read(start, result, 1, measured)
    assert found[0] == found[1] and len(found[0].samples) == 6 and len(booted) == 2
    (tmp_path / "base").write_text("other")
    later = pool.Guests(guests.out, tmp_path / "archive", tmp_path / "qemu")
    later.key(guest)
    (tmp_path / "base").write_text("replaced while it runs")
    assert "anew" in str(outcome(later)) and len(booted) == 3
    outcome(later)
    assert len(booted) == 4


def test_half_an_answer_is_not_kept(guests: pool.Guests, tmp_path: Path) -> None:
    """As a power cut may leave it."""
    whole = tiny(tmp_path)
    start = plan.starts(plan.cells(whole, ["one"]))[0]
    guest = store.guest(start, whole)
    out = guests.config(guest).out
    out.mkdir(parents=True)
    (out / "key").write_text(guests.key(guest))
    for text, kept in ((good_answer(start), True), (good_answer(start)[:-30], False)):
        (out / "results.log").write_text(text)
        assert bool(guests.outcomes([guest], kept_only=True)[0]) == kept
    (out / "results.log").unlink()
    assert guests.outcomes([guest], kept_only=True) == [None]


def test_only_packages_have_modules(guests: pool.Guests, monkeypatch: pytest.MonkeyPatch,
                                    tmp_path: Path) -> None:
    monkeypatch.setattr(store.kernels, "image", lambda kernel: (
        tmp_path / "base", {"modules/00-msr.ko": b"msr"} if kernel.name == "stock" else {}))
    for name, files in (("stock", {"modules/00-msr.ko": b"msr"}), ("base", {})):
        start = plan.starts([cell("hackbench", name)])[0]
        assert store.guest(start, PLAN).job.files == files


MAKEFILE = """
olddefconfig:
	sed -i s/TYPO=y// $(O)/.config
bzImage:
	mkdir -p $(O)/arch/x86/boot
	cat what $(O)/.config >$(O)/arch/x86/boot/bzImage
"""


def test_kernels_with_other_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the first commit or the last, once; an option that does not come out is an error."""
    tree = tmp_path / "linux"
    monkeypatch.setattr(kernels.paths, "BUILD", tmp_path)
    monkeypatch.setattr(kernels, "OUT", tmp_path / "kernels")
    for name in ("base", "patched"):
        (tmp_path / "out" / name).mkdir(parents=True)
        (tmp_path / "out" / name / "bzImage").touch()
        (tmp_path / "out" / name / "config").write_text("CONFIG_HZ_250=y\n")
    subprocess.run(["git", "init", "-q", tree], check=True)
    (tree / "Makefile").write_text(MAKEFILE)

    def commit(what: str) -> None:
        (tree / "what").write_text(f"{what}\n")
        subprocess.run(["git", "add", "-A"], cwd=tree, check=True)
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
                       cwd=tree, check=True)
    commit("first")
    commit("last")
    base, ours = (kernels.image(plan.Kernel(f"{like}-1000", like, config=("HZ_1000=y",)))[0]
                  for like in ("base", "patched"))
    assert base.read_text() == "first\nCONFIG_HZ_250=y\nCONFIG_HZ_1000=y\n"
    assert ours.read_text() == "last\nCONFIG_HZ_250=y\nCONFIG_HZ_1000=y\n"
    base.write_text("kept")
    again = plan.Kernel("base-1000", config=("HZ_1000=y",))
    assert kernels.image(again)[0].read_text() == "kept"
    assert kernels.image(dataclasses.replace(again, config=("HZ_100=y",)))[0].read_text() != "kept"
    with pytest.raises(GuestError, match="^kernel typo: not what came out: TYPO=y$"):
        kernels.image(plan.Kernel("typo", config=("TYPO=y",)))
    (tree / "Makefile").write_text("bzImage:\n\tfalse\nolddefconfig:\n")
    commit("broken")
    with pytest.raises(GuestError, match="^a kernel was not built; see .*/kernels/ours-1000/log$"):
        kernels.image(plan.Kernel("ours-1000", "patched", config=("HZ_1000=y",)))


def cell(load: str = "turns", column: str = "ours", seed: int = 1, where: plan.Plan = PLAN,
         **changes: Any) -> plan.Cell:
    return plan.Cell("one", "sapphire-rapids", 4, where.columns[column],
                     dataclasses.replace(where.loads[load], **changes), "1", seed)


GOOD = "0 2 30 400 500 1000 60 8 4 9000 3"


def test_numbers_of_a_line(tmp_path: Path) -> None:
    """By hand: 2 s, 30 J, 400 of something, half of the TSC's clock."""
    whole = tiny(tmp_path)
    of = store.parse(cell(where=whole, prints=()), GOOD.split(), 2_000_000).of
    assert of == {"result": 200, "W": 15, "mJ": 75, "MHz": 1000, "wait us": 3, "changes/s": 30,
                  "above/s": 4, "below/s": 2}
    of = store.parse(cell("end", where=whole), GOOD.split(), 2_000_000).of
    assert (of["result"], of["mJ"]) == (2, 30_000)
    of = store.parse(cell(where=whole, prints=("-", "result", "W", "p99")),
                     f"{GOOD} 9 50 10 7".split(), 2_000_000).of
    assert (of["result"], of["W"], of["mJ"], of["p99"]) == (50, 10, 200, 7) and "-" not in of


@pytest.mark.parametrize("words, reason", [
    ("", "did not come to it"), ("1" + GOOD[1:] + " 7 7", "status 1"),
    ("125 ended too early 0", "status 125"),
    (GOOD, "11 numbers instead of 13: the load prints result, p99"),
    (GOOD + " 7", "12 numbers instead of 13"), (GOOD + " 7 7 7", "14 numbers instead of 13"),
    (GOOD + " 0 7", "result is 0"), (GOOD + " nan 7", "result is nan"),
    (GOOD + " x 7", "could not convert"), (GOOD.replace(" 2 ", " 0 ") + " 7 7", "is 0"),
    (GOOD.replace(" 30 ", " 0 ") + " 7 7", "is 0"),
    (GOOD.replace(" 1000 ", " 0 ") + " 7 7", "is 0"),
])
def test_what_is_no_result(tmp_path: Path, words: str, reason: str) -> None:
    """A load that prints nothing, or fails, has no number."""
    with pytest.raises(ValueError, match=reason):
        store.parse(cell(where=tiny(tmp_path)), words.split(), 1)


def test_a_cell_without_a_line_has_failed(tmp_path: Path) -> None:
    """And is named; the others count. A column that was refused has none."""
    whole = tiny(tmp_path)
    start = plan.Start("sapphire-rapids", 4, whole.columns["base"].boot, tuple(
        cell(load, column, seed, whole) for column in ("base", "ours")
        for load in ("turns", "end") for seed in (1, 2)))
    answer = boot.Answer()
    answer.feed("\n".join((
        "vs:begin base", f"cell turns 1 1 {GOOD} 7 7", f"cell turns 1 2 {GOOD}", "no device",
        f"cell end 1 2 {GOOD}", "vs:end base 0", "vs:begin ours", "feature=NO_X does not hold",
        "vs:end ours 1", "vs:exit 1", "")))
    found = store.Measured()
    store.read(start, boot.Result(0, answer, 0, 0, "", {}, None), 1000, found)
    assert [str(sample.cell) for sample in found.samples] == [
        "one/sapphire-rapids/turns:1/base, seed 1", "one/sapphire-rapids/end:1/base, seed 2"]
    assert found.failed[:2] == [
        "one/sapphire-rapids/turns:1/base, seed 2: 11 numbers instead of 13: the load prints "
        "result, p99 (no device)",
        "one/sapphire-rapids/end:1/base, seed 1: the guest did not come to it (no device)"]
    assert len(found.failed) == 6
    assert all("feature=NO_X does not hold" in text for text in found.failed[2:])


def test_samples_are_kept_as_they_are(tmp_path: Path) -> None:
    """A table of them is the same. Cells that the plan has no more, or new, are named."""
    whole = tiny(tmp_path)
    cells = plan.cells(whole, ["one"])
    samples = [store.Sample(one, {"result": 1.5 + n, **({"p99": 7.25} if n % 2 else {})}, "ab")
               for n, one in enumerate(cells)]
    file = tmp_path / "samples.csv"
    store.save(samples, file)
    assert store.saved(cells, file) == store.Measured(samples)
    fewer = store.saved(cells[1:], file)
    assert not store.saved(cells[1:], file, cells).failed
    assert fewer.samples == samples[1:]
    assert fewer.failed == [f"{file}: one/sapphire-rapids/turns:1/base, seed 1: not in the plan"]
    store.save(samples[1:], file)
    assert store.saved(cells, file).failed == [f"{cells[0]}: not in {file}"]
    assert store.saved([], file) == store.Measured()


def test_only_what_changed_is_booted(guests: pool.Guests, tmp_path: Path,
                                     monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of results/ is taken if its guest would do the same, and only then."""
    booted: list[str] = []

    def outcomes(self: pool.Guests, todo: list[pool.Guest], kept_only: bool) -> list[GuestError]:
        booted.extend(guest.kernel.name for guest in todo)
        return [GuestError("no") for _ in todo]
    monkeypatch.setattr(pool.Guests, "outcomes", outcomes)
    monkeypatch.setattr(store, "archive", lambda out: tmp_path / "archive")
    whole = tiny(tmp_path)
    cells = plan.cells(whole, ["one"])

    def measured(known: list[store.Sample]) -> tuple[list[str], list[store.Sample]]:
        booted.clear()
        return booted, store.measure(cells, whole, tmp_path / "out", tmp_path / "qemu", 1,
                                     known=known).samples
    made = {start.boot.kernel: store.made_from(store.guest(start, whole), guests)
            for start in plan.starts(cells)}
    known = [store.Sample(one, {"result": 1}, made[one.column.kernel]) for one in cells]
    assert len(set(made.values())) == 2 and measured(known) == ([], known)
    (tmp_path / "archive").write_text("as another compiler made it")
    assert measured(known[::-1]) == ([], known)
    (tmp_path / "ours").write_text("another kernel")
    base = [one for one in known if one.cell.column.kernel == "base"]
    assert measured(known) == (["ours"], base)
    assert measured(base[1:]) == (["base", "ours"], [])


def test_programs_count_where_they_run(guests: pool.Guests, tmp_path: Path,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> list[str]:
        return [store.made_from(store.guest(start, whole), guests) for start in plan.starts(
            plan.cells(whole, ["one"]))]
    whole = tiny(tmp_path, "stopwatch end", "stopwatch handovers")
    before, read = made(), Path.read_bytes
    for name, same in (("conversations.c", True), ("vs-hostile.c", True), ("handovers.c", False),
                       ("disk.c", False), ("cells.sh", False)):
        monkeypatch.setattr(Path, "read_bytes", lambda self, name=name: (
            b"other" + read(self) if self.name == name else read(self)))
        assert (made() == before) == same, name
    monkeypatch.setattr(Path, "read_bytes", read)
    monkeypatch.setattr(store, "COMMON_SHELL", tmp_path / "guest.sh")
    shell = (initramfs.GUEST / "guest.sh").read_text()
    for function, same in (("dump_cpuidle", True), ("only", False)):
        (tmp_path / "guest.sh").write_text(shell.replace(f"\n{function}()\n{{\n",
                                                         f"\n{function}()\n{{\n\t:\n"))
        assert (made() == before) == same, function


def test_results_of_some_parts_replace_theirs(tmp_path: Path) -> None:
    """And leave the others' alone; what the plan has no more goes."""
    more = TINY[TINY.index("[part.one]"):TINY.index("[part.one.holds]")].replace("one", "two")
    (tmp_path / "b.toml").write_text(more)
    whole, where = tiny(tmp_path), tmp_path / "results"
    every = plan.cells(whole, ["one", "two"])
    assert results.kept(whole, "release", where) == []
    assert results.keep(whole, "release", every, [store.Sample(c, {"result": 1}) for c in every],
                        where)
    one = [c for c in every if c.part == "one"]
    again = [store.Sample(c, {"result": 2}) for c in one]
    assert not results.keep(whole, "release", one, again[1:], where)
    assert results.keep(whole, "release", one, again, where)
    found = results.kept(whole, "release", where)
    assert [(sample.cell, sample.of["result"]) for sample in found] == [
        (c, 2 if c.part == "one" else 1) for c in every]
    fewer = plan.Plan(whole.kernels, whole.columns, whole.loads, {"two": whole.parts["two"]})
    assert {sample.cell.part for sample in results.kept(fewer, "release", where)} == {"two"}


def test_results_are_of_one_tier(tmp_path: Path) -> None:
    parts = [PLAN.parts["first"], PLAN.parts["assumptions"]]
    with pytest.raises(UsageError, match="^--results: parts of one tier of release, model, not "
                                         "model, release$"):
        results.tier(parts)
    with pytest.raises(UsageError, match="not check$"):
        results.tier([PLAN.parts["canary"]])
    assert results.tier(parts[:1]) == "release"


def test_version_of_the_results(tmp_path: Path) -> None:
    """And commits since, of what changes them."""
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path,
                       check=True, capture_output=True)

    def commit(*names: str) -> None:
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(str(len(list(tmp_path.rglob("*")))))
        git("add", "-A")
        git("commit", "-qm", "x")
    git("init", "-q")
    commit("kernel/a.c", "results/x")
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n## 3\n\n- a\n\n## 2\n")
    results.sign(tmp_path)
    assert (tmp_path / "results/VERSION").read_text().split()[0] == "3"
    commit("results/VERSION.bak")
    commit("patches/0001", "docs/a.md")
    commit("docs/b.md")
    commit("tools/testing/virtual-silicon/qemu/a.c", "kernel/b.c")
    assert results.behind(tmp_path).startswith(
        "results are of v3: since then, commits: 2 of the kernel, 1 of the model, 0 of the loads")


def rows(where: Path, ours: dict[str, list[float]], load: str = "turns",
         base: float = 1) -> tuple[plan.Plan, list[table.Row]]:
    """Of measures that are 1, 1.01 ... on the base."""
    whole = tiny(where)
    samples = [store.Sample(cell(load, column, seed, whole), {
        measure: (values[seed - 1] if column == "ours" else base + 0.01 * seed)
        for measure, values in ours.items()})
        for column in ("base", "ours") for seed in range(1, len(next(iter(ours.values()))) + 1)]
    return whole, table.rows(samples, whole)


def verdicts(of: list[table.Row]) -> dict[str, str]:
    return {row.measure: row.verdict for row in of if row.key[3] == "ours"}


def test_verdicts(tmp_path: Path) -> None:
    """Of a result as the load says, of all else but the clock less is better."""
    twice = [2.0, 2.02]
    _, of = rows(tmp_path, {"result": twice, "mJ": twice, "p99": twice, "MHz": twice})
    assert verdicts(of) == {"result": "better", "mJ": "worse", "p99": "worse", "MHz": "better"}
    assert verdicts(rows(tmp_path, {"result": twice}, "end")[1]) == {"result": "worse"}
    # Within 3 %; far from 1, but as far from each other
    _, of = rows(tmp_path, {"result": [1.03, 1.04], "mJ": [0.5, 2.0]})
    assert verdicts(of) == {"result": "same", "mJ": "same"}


def test_ratio_and_interval(tmp_path: Path) -> None:
    """4 and 1 over 1 are 2 by geometric means; one seed has a ratio and no interval."""
    row = table.Row(("p", "m", "l", "c"), "result", (4.0, 1.0), "base", (1.0, 1.0))
    assert row.ratio == pytest.approx(2)
    assert row.interval and row.interval.low < 1 < row.interval.high
    _, of = rows(tmp_path, {"result": [2.02]})
    one = next(row for row in of if row.key[3] == "ours")
    assert one.ratio == pytest.approx(2) and one.interval is None and one.verdict == ""
    assert one.cells()[5:] == ["1", "2.02", "2.02", "2.02", "base", "2.000", "", "", ""]
    # What is compared with has no ratio of its own, and 0 none at all
    assert [row.over for row in of if row.key[3] == "base"] == [""]
    assert table.Row(row.key, "changes/s", (0.0, 1.0), "base", (1.0, 1.0)).ratio is None


def test_each_load_has_words() -> None:
    """Documents call no load by its name in the plan."""
    assert [word for part in PLAN.parts.values() for word in part.loads
            if pages.label(PLAN.load(word, part.name)[0], word).startswith("`")] == []


def test_losers(tmp_path: Path) -> None:
    """In what is judged, of columns that are."""
    twice = [2.0, 2.02]
    whole, of = rows(tmp_path, {"result": twice, "mJ": twice, "W": twice, "p99": twice})
    assert [row.measure for row in table.losers(of, whole)] == ["mJ", "p99"]
    whole = tiny(tmp_path, "seeds = 2", "seeds = 2\njudged = []")
    assert table.losers(of, whole) == []


@pytest.mark.parametrize("result, said", [(2, ""), (1.4, ": 1.38, and is to be 1.5 to 2.5"),
                                          (2.6, ": 2.56, and is to be 1.5 to 2.5")])
def test_what_a_part_says_must_hold(tmp_path: Path, result: float, said: str) -> None:
    whole, of = rows(tmp_path, {"result": [result, result]})
    found = table.broken(of, whole)
    assert len(found) == bool(said)
    assert all(text.endswith(f"ours/base turns:1 result{said}") for text in found)
    assert table.broken([], whole)[0].endswith("not measured, and is to be 1.5 to 2.5")


def options(*words: str, **changes: Any) -> argparse.Namespace:
    return argparse.Namespace(**{"words": list(words), "tier": None, "columns": None, "loads": None,
                                 "machines": None, "cpus": None, "seeds": None, "kernel": [],
                                 "append": "", **changes})


def test_what_is_chosen(tmp_path: Path) -> None:
    whole = tiny(tmp_path)
    found = commands.chosen(whole, options("one", loads=["turns:2"], seeds=5)).parts["one"]
    assert (found.loads, found.seeds, found.columns) == (("turns:2",), 5, ("base", "ours"))
    assert found.holds == {} and commands.chosen(whole, options(tier="release")).parts
    for words, said in ((options("two"), "^no part two; there are: one$"),
                        (options("one", columns=["our"]), "^part one: no column our; there are: "),
                        (options("one", loads=["end:4"]), "no parameter 4; it takes none$")):
        with pytest.raises(UsageError, match=said):
            commands.chosen(whole, words)


def test_chosen_loads_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                capsys: pytest.CaptureFixture[str]) -> None:
    """On the screen, as documents have them."""
    monkeypatch.setattr(sys, "argv", [
        "virtual-silicon", "lab", "first", "--loads", "paced:tcp", "--columns", "base,ours",
        f"--samples={results.DIR / 'samples.csv'}", f"--out={tmp_path}"])
    main()
    assert re.search(r"^\| paced round trips, TCP, us \| \d\S*; \d\S* \| \d\S*; \d\S* \|$",
                     capsys.readouterr().out, re.M)


def test_other_kernels(tmp_path: Path) -> None:
    whole = tiny(tmp_path)
    found = commands.booted(whole, options(kernel=[("ours", "a/bzImage")], append="nosmt"))
    assert found.kernels["ours"].of == "a/bzImage" and found.kernels["base"] == \
        whole.kernels["base"]
    assert {column.append for column in found.columns.values()} == {"nosmt"}
    with pytest.raises(UsageError, match="^no kernel our; there are: base, ours$"):
        commands.booted(whole, options(kernel=[("our", "a")]))


def test_power_that_cannot_be_read(tmp_path: Path) -> None:
    """Where the plan says so; else it is an error."""
    words = GOOD.replace(" 30 ", " 0 ").split()
    of = store.parse(dataclasses.replace(cell(where=tiny(tmp_path), prints=()), power=False),
                     words, 1).of
    assert of["result"] == 200 and not of.keys() & {"W", "mJ"}


def test_picture(tmp_path: Path) -> None:
    """Of a result more is to the right, also of a time; of what was not measured there is none."""
    whole, of = rows(tmp_path, {"result": [2.0, 2.02], "mJ": [0.5, 0.5]}, "end")
    part = dataclasses.replace(whole.parts["one"], loads=("end:1",))
    assert picture.bars(of, part, "sapphire-rapids", "result")["ours"]["end:1"] < 0.6
    assert picture.bars(of, part, "sapphire-rapids", "mJ")["ours"]["end:1"] < 0.6
    picture.draw(of, part, tmp_path / "out.png")
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="part one has nothing over base"):
        picture.draw([], part, tmp_path / "out.png")


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    """For every name; with the shell of what it calls."""
    for name in (*PLAN.parts, *PLAN.columns, *PLAN.loads):
        assert commands.show(PLAN, name) == 0
    said = capsys.readouterr().out
    assert "stopwatch handovers" in said and "options()\n{\n" in said and "settings()\n{\n" in said
    with pytest.raises(UsageError, match="^no part, column or load hops; there are: first, "):
        commands.show(PLAN, "hops")


class Shell:
    """cells.sh on this machine: what it names is below a directory."""

    def __init__(self, root: Path) -> None:
        self.root, cpu = root, root / "sys/devices/system/cpu"
        self.files = {
            cpu / "cpufreq/policy0/scaling_governor": "schedutil",
            cpu / "cpufreq/policy1/scaling_governor": "schedutil",
            cpu / "cpu0/cpufreq/cpuinfo_max_freq": "3800000",
            cpu / "cpuidle/current_governor": "menu",
            root / "sys/kernel/debug/sched/features": "PAIRS",
            root / "sys/module/aperfmperf/parameters/freq_max": "4c",
            root / "sys/kernel/tracing/trace": "", root / "tmp/x": "",
            root / "sys/kernel/tracing/buffer_size_kb": "",
            root / "sys/kernel/tracing/events/msr/write_msr/filter": "",
            root / "sys/kernel/tracing/events/msr/write_msr/enable": "",
            root / "proc/schedstat": "cpu0 0 0 5 5 5 5 100 2000 4",
            cpu / "cpuidle/available_governors": "menu teo",
            root / "dev/cpu_dma_latency": "", root / "usr/lib/vs/x": "",
            **{cpu / f"cpu{n}/cpuidle/state{s}/{name}": value for n in (0, 1)
               for s, of in enumerate((("POLL", "0"), ("C1", "2"), ("C6", "170")))
               for name, value in (("name", of[0]), ("latency", of[1]), ("disable", "0"),
                                   ("above", "1"), ("below", "2"))}}
        for file, text in self.files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{text}\n")
        for name, text in (("vs-load", ""), ("uclampset", "echo $* >>{root}/uclamp"),
                           ("handovers", 'echo "$*"'),
                           ("stopwatch", '"$@" >{root}/tmp/output; status=$?; '
                            "echo 2 30 400 500 1000; exit $status")):
            program = root / "usr/bin" / name
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text(f"#!/bin/sh\n{text.format(root=root)}\n")
            program.chmod(0o755)
        scripts = (initramfs.GUEST / "guest.sh", PROGRAMS / "programs.sh",
                   store.HERE / "cells.sh")
        self.script = "\n".join(
            re.sub(r"(?<=[ \t=>(\"'])/(?=(sys|tmp|dev|proc|usr)\b)", f"{root}/",
                   script.read_text()).replace(f". {root}/usr/lib/vs/programs.sh", "")
            for script in scripts) + (
                f"\nsleep() {{ :; }}\nPATH={root}/usr/bin:$PATH\n")

    def __call__(self, text: str) -> list[str]:
        return subprocess.run(["busybox", "sh", "-c", f"{self.script}\n{text}"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False).stdout.splitlines()

    def values(self, end: str) -> set[str]:
        return {file.read_text().strip() for file in self.files if str(file).endswith(end)}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_settings_are_those_of_the_plan() -> None:
    cases = re.findall(r"^\t\t(\w+)=\*\)", (store.HERE / "cells.sh").read_text(), re.M)
    assert cases == ["governor", "idle", *plan.SETTINGS]


def test_a_column_sets_only_what_it_names(shell: Shell) -> None:
    """All else is as the kernel began, whatever the column before has set."""
    before = {file: file.read_text() for file in shell.files}
    both = ("settings governor=performance idle=teo freq_max=1c feature=NO_PAIRS states=POLL,C1 "
            "hint=9")
    assert shell(f"prepare\n{both} || echo no") == []
    assert shell.values("scaling_governor") == {"performance"}
    assert shell.values("current_governor") == {"teo"} and shell.values("freq_max") == {"1c"}
    assert shell.values("features") == {"NO_PAIRS"} and shell.values("/2/disable") == set()
    assert shell.values("state2/disable") == {"1"} and shell.values("state1/disable") == {"0"}
    for file, text in before.items():
        file.write_text(text)
    assert shell(f"prepare\n{both} && settings governor=schedutil idle= || echo no") == []
    knobs = [file for file in before if "tracing" not in str(file)]
    assert {file: file.read_text() for file in knobs} == {file: before[file] for file in knobs}
    said = (shell.root / "uclamp").read_text().split()
    assert said[1::4] == ["9", "9", "-1"]


@pytest.mark.parametrize("word, file", [
    ("governor=performance", "policy1/scaling_governor"), ("idle=teo", "cpuidle/current_governor"),
    ("freq_max=1c", "freq_max"), ("status=active", ""), ("feature=NO_PAIRS", "features"),
    ("states=POLL,C9", ""), ("idle_poll=c02", ""),
    ("shallower=20", "cpu1/cpuidle/state2/disable"), ("limit=9", "cpu_dma_latency"), ("x=1", "")])
def test_a_setting_that_does_not_hold(shell: Shell, word: str, file: str) -> None:
    """A write that changes nothing, and what the kernel does not have."""
    if file:
        path = next(f for f in shell.files if str(f).endswith(file))
        path.unlink()
        path.symlink_to("/dev/null")
    assert shell(f": >{shell.root}/tmp/began\nsettings {word} && echo yes")[-1] == \
        f"{word} does not hold"


def test_refused_column_is_not_measured(shell: Shell, tmp_path: Path) -> None:
    whole = tiny(tmp_path)
    start = plan.Start("sapphire-rapids", 4, whole.columns["ours"].boot, (
        cell("turns", where=whole), cell("end", where=whole)))
    text = dict(store.job(start).steps)["ours"].replace(store.SCRIPT, ":")
    for holds, said in (("true", ["cell turns", "cell end"]), ("false", [])):
        assert shell(f'settings() {{ {holds}; }}; cell() {{ echo "cell $1"; }}\n'
                     f"step() {{ {text}\n}}\nstep") == said


def test_line_of_a_cell(shell: Shell) -> None:
    """What the load prints last is at its end; a load that prints nothing has nothing there,
    whatever the one before has left."""
    assert shell("cell hop n=1 2 1 'stopwatch handovers $N $SEED'; cell none 1 1 1 :; "
                 "cell quiet '' 1 1 'stopwatch true'; cell bad 1 1 0 'stopwatch false'") == [
        "cell hop n=1 2 0 2 30 400 500 1000 0 0 0 0 0  n=1 2",
        "cell none 1 1 0  0 0 0 0 0  ",
        "cell quiet - 1 0 2 30 400 500 1000 0 0 0 0 0  ",
        "cell bad 1 1 1 2 30 400 500 1000 0 0 0 0 0  "]


def test_counters_of_a_cell(shell: Shell) -> None:
    """Rises, each at its place."""
    cpu, root = shell.root / "sys/devices/system/cpu/cpu0/cpuidle/state1", shell.root
    more = root / "more"
    more.write_text(
        f"#!/bin/sh\necho 4 >{cpu}/above; echo 12 >{cpu}/below\n"
        f"echo cpu0 0 0 5 5 5 5 100 2700 9 >{root}/proc/schedstat\n"
        f"printf '%s\\n' '[000] write_msr: 199, value a' '[000] write_msr: 199, value b' "
        "'[001] write_msr: 199, value a' '[000] write_msr: 199, value b' "
        f">{root}/sys/kernel/tracing/trace\n")
    more.chmod(0o755)
    assert shell(f"cell x 1 1 0 'stopwatch {more}'") == [
        "cell x 1 1 0 2 30 400 500 1000 1 3 10 700 5  "]


@pytest.mark.parametrize("parameter, words", [("n=4", "-n 4"), ("o=burst,n=5,w=3000,p=7000",
                                                               "-o burst -n 5 -w 3000 -p 7000")])
def test_options_of_handovers(shell: Shell, parameter: str, words: str) -> None:
    assert shell(f"options {parameter}") == [f" {words}"]


def test_numbers_of_loads(shell: Shell) -> None:
    """Of many lines: by name, or ranks."""
    output = f"{shell.root}/tmp/output"
    assert shell(f"printf '%s\n' 'mean 7' 'p99 9' 'watts 80.5' 'state C1 3' >{output}; "
                 f"pick mean p99 watts; cat {output}; echo; seq 100 -1 1 >{output}; ranks; "
                 f"cat {output}; : >{output}; ranks; cat {output}") == ["7 9 80.5 ", "51 100"]


def test_words_of_loads(shell: Shell) -> None:
    assert shell("task step; task behind,300; periods every,6,20,2") == [
        "-m step -f", "-m new -p 300", "every 0,1,2,3 2 6 20"]


def test_limits_of_groups(shell: Shell) -> None:
    """Each in its turn, with what may be saved up, below a group that has the controller."""
    groups = shell.root / "sys/fs/cgroup"
    (groups / "outer").mkdir(parents=True)
    (shell.root / "proc/mounts").write_text(f"none {groups} cgroup2 rw 0 0\n")
    said = shell("hold() { echo $1 ${2##*/cgroup/}; }; "
                 "within outer/one max-20,5-40 cat $CGROUPS/outer/one/cgroup.procs; echo $?")
    held = [line for line in said if "/" in line]
    assert held == [f"{wrote} outer/one/{file}" for value, saved in (
        ("max", 0), ("20000", 5000), ("40000", 0)) for wrote, file in (
        (0, "cpu.max.burst"), (f"{value} 100000", "cpu.max"), (saved, "cpu.max.burst"))]
    assert [line for line in said if line not in held][1:] == ["0"]
    assert (groups / "outer/cgroup.subtree_control").read_text() == "+cpu\n"


@pytest.mark.parametrize("name", PLAN.loads)
def test_parameter_and_seed_reach_the_load(shell: Shell, name: str) -> None:
    """Two parameters give two command lines, and none has an unset variable in it."""
    load = PLAN.loads[name]
    given = [word for word in (
        "", "3", "5", "n=4", "k=2,o=ring", "pipe", "tcp", "step", "new", "work,30", "noise,30",
        "every,6,20,2", "timed,50,200,5", "4,600", "36,300", "poll", "handover", "timer", "signal",
        "tcp-rr", "pipe-io", "service,20", "pool,max", "heap,60", "light,none")
        if re.fullmatch(load.takes, word)]
    calls = "; ".join(f'{program}() {{ echo "$*"; }}' for program in (
        "stopwatch", "within", "beside", "pgbench", "kernbench", "dbench_once"))
    stub = (f"{calls}; total() {{ :; }}; lateness() {{ :; }}; pick() {{ :; }}; ranks() {{ :; }}; "
            "set -u; STEPS=7 TOP=38 SCRIPTS=/; ")
    said = [shell(f"{stub}N='{one}' SEED=5; {load.run}") for one in given]
    assert all(len(lines) == 1 and "unbound" not in lines[0] and "not set" not in lines[0]
               for lines in said), said
    assert len({lines[0] for lines in said}) == len(said) >= (2 if load.takes else 1)
    other = shell(f"{stub}N='{given[0]}' SEED=6; {load.run}")
    assert (other != said[0]) == ("$SEED" in load.run)


def test_two_runs_are_identical(request: pytest.FixtureRequest, tmp_path: Path,
                                monkeypatch: pytest.MonkeyPatch) -> None:
    """And two parameters of a load, or two seeds, are not."""
    base = paths.kernel(request.config.getoption("--base-kernel"))
    monkeypatch.setattr(store.kernels, "image", lambda _: (base, {}))
    part = dataclasses.replace(PLAN.parts["canary"], columns=("base",), cpus=2,
                               loads=("hop:n=4", "hop:n=4,k=2", "idle:1"), seeds=2)
    whole = dataclasses.replace(PLAN, parts={"canary": part})
    runs = [store.measure(plan.cells(whole, ["canary"]), whole, tmp_path / number,
                          paths.qemu(request.config.getoption("--qemu")), 1) for number in "12"]
    assert runs[0].samples == runs[1].samples and not runs[0].failed
    results = [tuple(s.of.values()) for s in runs[0].samples if s.cell.load.name == "hop"]
    assert len(set(results)) == 4


def test_columns_in_another_order_are_identical_but_for_chance(
        request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a column is left in the next: governor, states, limit, idle governor. Without them
    an idle machine draws up to three times as much."""
    base = paths.kernel(request.config.getoption("--base-kernel"))
    monkeypatch.setattr(store.kernels, "image", lambda _: (base, {}))
    columns = ("base", "shallow", "base-teo", "base-1us", "base-POLL", "base-C1")
    found = []
    for order in (columns, columns[::-1]):
        part = dataclasses.replace(PLAN.parts["canary"], columns=order, cpus=2, over=(), holds={},
                                   loads=("idle:1", "timers"), seeds=1)
        whole = dataclasses.replace(PLAN, parts={"canary": part})
        run = store.measure(plan.cells(whole, ["canary"]), whole, tmp_path / order[0],
                            paths.qemu(request.config.getoption("--qemu")), 1)
        assert not run.failed
        found.append({sample.cell.key: sample.of for sample in run.samples})
    for key, of in found[0].items():
        chance = 0.03 if key[2] == "idle:1" else 0.15
        assert found[1][key]["W"] == pytest.approx(of["W"], rel=chance), key
        assert found[1][key]["result"] == pytest.approx(of["result"], rel=0.15), key
    watts = {key[3]: of["W"] for key, of in found[0].items() if key[2] == "idle:1"}
    assert watts["base-POLL"] > 1.3 * watts["base"] and watts["shallow"] > 1.2 * watts["base"]
