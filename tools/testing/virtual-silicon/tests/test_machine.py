# SPDX-License-Identifier: GPL-2.0
"""Machine files: what is accepted, and what is refused with which line."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from virtual_silicon import paths
from virtual_silicon.errors import MachineError, UsageError
from virtual_silicon.machine import machine, qapi

QAPI = paths.SILICON / "qemu/files/qapi/virtual-silicon.json"

GOOD = """\
[machine]
title = "Test CPU"
model = 94
cores = 4
[frequency]
base_ratio = 20
min_ratio = 8
[turbo]
layout = "bytes"
cores = [1, 2, 4]
ratios = [30, 28, 25]
[[idle]]
name = "C1"
hints = [0x00]
exit_us = 2
residency_us = 2
power_mw = 500
active = true
[[idle]]
name = "C6"
hints = [0x20]
exit_us = 100
residency_us = 300
power_mw = 10
[power]
tdp_w = 50
uncore_w = 10
v_min = 0.7
v_max = 1.1
leakage_w = 0.5
capacitance_nf = 3.0
rapl = ["package"]
"""

LINES = {line: number for number, line in enumerate(GOOD.splitlines(), 1)}


def parse(text: str) -> machine.Machine:
    return machine.parse(text, Path("test.toml"))


#: old text, new text, line that must be named (of the old text), part of the reason
BAD = [
    ("model = 94", "model = ", "model = 94", "syntax"),
    ("cores = 4", "cores = 4\ncores = 5", None, "overwrite"),
    ("title = \"Test CPU\"", "title = \"Test", "title = \"Test CPU\"", "syntax"),
    ("model = 94", "modell = 94", "model = 94", "unknown key 'modell'"),
    ("[frequency]", "[frequencies]", "[frequency]", "unknown table [frequencies]"),
    ("model = 94", "", "[machine]", "needs the key 'model'"),
    ("exit_us = 100", "", None, "needs the key 'exit_us'"),
    ("base_ratio = 20", "base_ratio = \"20\"", "base_ratio = 20", "an integer"),
    ("base_ratio = 20", "base_ratio = true", "base_ratio = 20", "an integer"),
    ("active = true", "active = 1", "active = true", "true or false"),
    ("cores = [1, 2, 4]", "cores = []", "cores = [1, 2, 4]", "a list of integers"),
    ("rapl = [\"package\"]", "rapl = [\"psys\"]", "rapl = [\"package\"]",
     "allowed: package, cores, dram"),
    ("ratios = [30, 28, 25]", "ratios = [30, 31, 25]", "ratios = [30, 28, 25]",
     "must not rise"),
    ("ratios = [30, 28, 25]", "ratios = [30, 28]", "ratios = [30, 28, 25]",
     "3 core counts but 2 ratios"),
    ("cores = [1, 2, 4]", "cores = [1, 1, 4]", "cores = [1, 2, 4]", "must rise"),
    ("cores = [1, 2, 4]", "cores = [1, 2, 3]", "cores = [1, 2, 4]",
     "the machine has 4"),
    ("layout = \"bytes\"", "layout = \"words\"", "layout = \"bytes\"",
     "allowed: bytes, groups, deltas, atom"),
    ("base_ratio = 20", "base_ratio = 26", "base_ratio = 20", "above the lowest turbo"),
    ("min_ratio = 8", "min_ratio = 21", "min_ratio = 8", "above base_ratio"),
    ("exit_us = 2", "exit_us = 0", "exit_us = 2", "must be above zero"),
    ("exit_us = 2", "exit_us = -1", "exit_us = 2", "must be above zero"),
    ("exit_us = 100", "exit_us = 2", "exit_us = 100", "does not rise"),
    ("hints = [0x20]", "hints = [0x20, 0x00]", "hints = [0x20]", "already C1's"),
    ("name = \"C6\"", "name = \"C1\"", "name = \"C6\"", "unique"),
    ("name = \"C6\"", "name = \"deep\"", "name = \"C6\"", "state name 'deep'"),
    ("v_max = 1.1", "v_max = 0.6", "v_max = 1.1", "below v_min"),
    ("v_max = 1.1", "v_max = 1.1\nv_mhz = [1500]", "v_max = 1.1", "1 clocks but 0 voltages"),
    ("v_max = 1.1", "v_max = 1.1\nv_volts = [0.8, 0.9]\nv_mhz = [2000, 1500]", "v_max = 1.1",
     "v_mhz must rise"),
    ("tdp_w = 50", "tdp_w = 0", "tdp_w = 50", "allowed is 1 to 1000"),
    ("model = 94", "model = 300", "model = 94", "allowed is 0 to 255"),
    ("cores = 4", "cores = 0", "cores = 4", "allowed is 1 to 512"),
]


#: tables that a machine may have besides: text, and part of the reason
BAD_TABLES = [
    ("[features]\ntj_max = 0\n", "allowed is 1 to 127"),
    ("[features]\ncppc_msrs = true\n", "goes with vendor"),
    ("[hwp]\npresent = true\nefficient_ratio = 7\n", "7 is not within min_ratio"),
    ("[hwp]\npresent = true\n", "0 is not within min_ratio"),
    ("[hwp]\npresent = 1\n", "true or false"),
    ("[limits]\nthermal_resistance = 0.2\n", "needs thermal_tau_s"),
    ("[limits]\npower_tau_s = -1\n", "allowed is 0 to 1000"),
    ("[transition]\nscope = \"die\"\n", "allowed: package, core"),
    ("[time]\nuser_cycles_per_1000_insns = 8001\n", "at most 127 times"),
    ("[[package]]\nname = \"PC6\"\ncore_state = \"C7\"\nuncore_permille = 100\n"
     "residency_msr = 0x3f9\n", "no idle state 'C7'; there are: C1, C6"),
    ("[[package]]\nname = \"PC6\"\ncore_state = \"C6\"\nuncore_permille = 900\n"
     "[[package]]\nname = \"PC7\"\ncore_state = \"C6\"\nuncore_permille = 901\n",
     "901 is more than 900 without it"),
    ("[[package]]\nname = \"PC6\"\ncore_state = \"C6\"\nuncore_permille = 100\n"
     "residency_msr = 0x3f9\n[[package]]\nname = \"PC2\"\ncore_state = \"C1\"\n"
     "uncore_permille = 100\nresidency_msr = 0x60d\n", "must not be less deep"),
    ("[package]\nname = \"PC6\"\n", "write [[package]]"),
]


@pytest.mark.parametrize("text,reason", BAD_TABLES, ids=[text for text, _ in BAD_TABLES])
def test_bad_table_names_line_and_reason(text: str, reason: str) -> None:
    with pytest.raises(MachineError, match=re.escape(reason)) as error:
        parse(GOOD + text)
    first = len(GOOD.splitlines()) + 1
    assert error.value.line in range(first, first + len(text.splitlines()))


#: change of the EPYC's file, and part of the reason
BAD_AMD = [
    ("[part.epyc-7742]\n", "[part.epyc-7742]\nturbo.layout = \"groups\"\n",
     "goes with vendor"),
    ("pstate_ratios = [90, 80, 60]", "base_ratio = 90\nmin_ratio = 60",
     "pstate_ratios go with vendor"),
    ("[90, 80, 60]", "[90, 80, 60]\nbase_ratio = 92", "begin with 92"),
    ("[90, 80, 60]", "[90, 80, 80]", "at most 8, fall"),
    ("[part.epyc-7742]\n", "[part.epyc-7742]\nmachine.vendor = \"GenuineIntel\"\n"
     "turbo.layout = \"none\"\n", "goes with vendor"),
]


@pytest.mark.parametrize("old,new,reason", BAD_AMD)
def test_bad_amd_machine(old: str, new: str, reason: str) -> None:
    path, name = machine.find("epyc-7742")
    text = path.read_text()
    assert old in text
    with pytest.raises(MachineError, match=reason):
        machine.parse(text.replace(old, new), path, name)


#: As short as a file can be: the rest follows, or is assumed.
SHORT = """\
[machine]
title = "Test CPU"
model = 94
cores = 4
[frequency]
base_ratio = 20
min_ratio = 8
[turbo]
ratios = [25]
[features]
waitpkg = true
core_type = 0x40
[hwp]
efficient_ratio = 9
[[class]]
name = "E"
cores = 2
max_ratio = 24
[[idle]]
name = "C1"
exit_us = 2
residency_us = 2
[[idle]]
name = "C1E"
exit_us = 10
residency_us = 20
[[idle]]
name = "C6"
hints = [0x20]
exit_us = 170
residency_us = 300
[power]
tdp_w = 46
v_min = 0.7
v_max = 1.1
rapl = ["package"]
"""


def test_what_a_file_leaves_out_follows() -> None:
    m = parse(SHORT)
    assert (m.power.uncore_w, m.power.leakage_w) == (11.5, 1.38)
    assert (m.turbo.layout, m.turbo.cores, m.hwp.present) == ("bytes", (4,), True)
    assert [(s.hints, s.active, s.voltage, s.dynamic_permille, s.entry_us, s.residency_msr)
            for s in m.idle] == [((0,), True, "core", 50, 0.5, 0),
                                 ((1,), True, "lowest", 50, 2.5, 0),
                                 ((0x20,), False, "off", 0, 42.5, 0x3FD)]
    assert (m.umwait.c01_exit_cycles, m.umwait.c02_permille) == (60, 330)
    assert (m.classes[0].core_type, m.classes[0].power_permille) == (0x20, 400)
    amd = machine.load("ryzen-7-1800x")
    assert (amd.base_ratio, amd.min_ratio, amd.turbo.layout) == (144, 88, "none")
    assert [state.residency_msr for state in amd.idle] == [0, 0, 0]


#: text of SHORT, what stands there instead, and what the file is then taken at its word for
OWN = [
    ("v_min = 0.7", "v_min = 0.7\nuncore_w = 9", lambda m: m.power.uncore_w == 9),
    ("v_min = 0.7", "v_min = 0.7\nleakage_w = 0.5", lambda m: m.power.leakage_w == 0.5),
    ("ratios = [25]", "ratios = [25]\nlayout = \"groups\"",
     lambda m: m.turbo.layout == "groups"),
    ("efficient_ratio = 9", "efficient_ratio = 9\npresent = false",
     lambda m: not m.hwp.present),
    ("exit_us = 170", "exit_us = 170\nentry_us = 40", lambda m: m.idle[2].entry_us == 40),
    ("exit_us = 170", "exit_us = 170\nresidency_msr = 0x3ff",
     lambda m: m.idle[2].residency_msr == 0x3FF),
    ("exit_us = 10", "exit_us = 10\ndynamic_permille = 16",
     lambda m: m.idle[1].dynamic_permille == 16),
    ("exit_us = 10", "exit_us = 10\nport = 0x414", lambda m: not m.idle[1].hints),
    ("max_ratio = 24", "max_ratio = 24\npower_permille = 700",
     lambda m: m.classes[0].power_permille == 700),
]


@pytest.mark.parametrize("old,new,holds", OWN, ids=[new for _, new, _ in OWN])
def test_what_a_file_says_stays(old: str, new: str,
                                holds: Callable[[machine.Machine], bool]) -> None:
    assert not holds(parse(SHORT))
    assert holds(parse(SHORT.replace(old + "\n", new + "\n")))


def test_voltage_goes_from_point_to_point() -> None:
    """Those outside of the part's range do not count."""
    m = parse(GOOD.replace("v_max = 1.1", "v_max = 1.1\nv_mhz = [500, 2000, 4000]\n"
                           "v_volts = [0.2, 0.8, 1.6]"))
    assert [m.voltage(ratio) for ratio in (8, 14, 20, 25, 30)] == pytest.approx(
        [0.7, 0.75, 0.8, 0.95, 1.1])
    straight = parse(GOOD)
    assert straight.voltage(19) == pytest.approx(0.9)


def test_usual_code_draws_less_than_what_the_tdp_is_for() -> None:
    """And the traffic that goes with the TDP is not the cores'."""
    text = GOOD.replace("capacitance_nf = 3.0", "activity = 0.5")
    m, busy = parse(text), parse(text + "traffic_w = 8\n")
    assert m.base_w() == pytest.approx(50)
    assert 10 + 4 * (2 * m.dynamic_w(20) + m.leakage_w(20)) == pytest.approx(50)
    assert busy.base_w() == pytest.approx(50)
    assert 4 * 2 * (m.dynamic_w(20) - busy.dynamic_w(20)) == pytest.approx(8, rel=1e-4)


@pytest.mark.parametrize("old,table,key", [
    ("model = 94", "turbo", "layout"), ("min_ratio = 8\n", "frequency", "min_ratio")])
def test_what_does_not_follow_is_needed(old: str, table: str, key: str) -> None:
    text = SHORT.replace(old, "model = 255" if "model" in old else "")
    with pytest.raises(MachineError) as error:
        parse(text)
    assert f"[{table}] needs the key '{key}': it follows from nothing" in str(error.value)
    assert text.splitlines()[error.value.line - 1] == f"[{table}]"


@pytest.mark.parametrize("family", machine.families())
def test_no_file_repeats_what_follows(family: str) -> None:
    data = tomllib.loads((machine.MACHINES / f"{family}.toml").read_text())
    for tables in (data, *data.get("part", {}).values()):
        power, cores = tables.get("power", {}), tables.get("machine", {}).get("cores")
        if "tdp_w" in power:
            assert power.get("uncore_w") != power["tdp_w"] / 4
        if "tdp_w" in power and cores:
            assert power.get("leakage_w") != float(f"{0.12 * power['tdp_w'] / cores:.3g}")
        for state in tables.get("idle", ()) if isinstance(tables.get("idle"), list) else ():
            assert state.get("entry_us") != state["exit_us"] / 4, state["name"]


PARTS = GOOD + """\
[part.first]
[part.second]
idle.C6.exit_us = 120
[part.third]
idle.C1 = false
"""


def test_part_changes_an_idle_state_by_its_name() -> None:
    first, second, third = (machine.parse(PARTS, Path("test.toml"), name)
                            for name in ("first", "second", "third"))
    assert second.idle == (first.idle[0], replace(first.idle[1], exit_us=120, entry_us=30))
    assert third.idle == first.idle[1:]


def test_part_without_the_deepest_state() -> None:
    """README's examples. A package state of it goes, too, also if it is the only one."""
    text = "idle.C8 = false\npackage.PC8 = false\n[machine]\nlike = \"e3-1240-v5\"\n"
    m, like = machine.parse(text, Path("test.toml")), machine.load("e3-1240-v5")
    assert (m.idle, m.package) == (like.idle[:-1], ())
    slower = text.replace("idle.C8 = false\npackage.PC8 = false", "idle.C8.exit_us = 250")
    assert machine.parse(slower, Path("test.toml")).idle[-1].exit_us == 250
    with pytest.raises(MachineError, match="PC8: no idle state 'C8'"):
        machine.parse(text.replace("package.PC8 = false", ""), Path("test.toml"))


@pytest.mark.parametrize("change,reason", [
    ("idle.C7.exit_us = 120", "[[idle]] has no 'C7'; there are: C1, C6"),
    ("idle.C6 = true", "idle.C6 must be a table, or false"),
    ("idle.C6.exit_us = 1", "C6: exit latency 1.0 us does not rise"),
    ("idle.C6.exit = 1", "unknown key 'exit' in [idle]"),
])
def test_wrong_change_by_name(change: str, reason: str) -> None:
    text = PARTS.replace("idle.C6.exit_us = 120", change)
    with pytest.raises(MachineError, match=re.escape(reason)) as error:
        machine.parse(text, Path("test.toml"), "second")
    assert text.splitlines()[error.value.line - 1] == change


def test_tables_of_another_machine() -> None:
    """Changed by name; a part's stand in front of its family's."""
    other = machine.load("platinum-8180")
    head = "like.idle = \"platinum-8180\"\nidle.C6.exit_us = 140\n"
    start, end = GOOD.index("[[idle]]"), GOOD.index("[power]")
    m = parse(head + GOOD[:start] + GOOD[end:])
    assert m.idle == (*other.idle[:2], replace(other.idle[2], exit_us=140, entry_us=35))
    m = machine.parse(GOOD + "[part.one]\nlike.idle = \"platinum-8180\"\n", Path("test.toml"),
                      "one")
    assert m.idle == other.idle


@pytest.mark.parametrize("like,reason", [
    ("like.umwait = \"pentium\"", "like.umwait names no machine; there are: "),
    ("like.umwait = \"platinum-8180\"", "platinum-8180 has no table [umwait]; it has: "),
    ("like.transition = \"e3-1240-v5\"",
     "e3-1240-v5 has its own [transition] from another machine"),
    ("like.idle = \"platinum-8180\"", "change it by name, idle.NAME"),
    ("like = \"platinum-8180\"", "[like] must be a table"),
])
def test_tables_of_a_wrong_machine(like: str, reason: str) -> None:
    with pytest.raises(MachineError, match=re.escape(reason)) as error:
        parse(like + "\n" + GOOD)
    assert error.value.line == 1


def test_machine_like_another() -> None:
    """Keys of its own in place of the other's; the rest is the other's."""
    other = machine.load("sapphire-rapids")
    m = parse("[machine]\nlike = \"sapphire-rapids\"\n[power]\nuncore_w = 90\n")
    assert (m.model, m.turbo, m.idle) == (other.model, other.turbo, other.idle)
    assert (m.power.uncore_w, m.power.leakage_w) == (90, other.power.leakage_w)
    assert m.base_w() == pytest.approx(other.base_w())


@pytest.mark.parametrize("like,reason", [
    ("pentium", "machine.like names no machine"), ("sapphire-rapids-hwp", "itself like")])
def test_machine_like_a_wrong_one(like: str, reason: str) -> None:
    with pytest.raises(MachineError, match=reason) as error:
        parse(f"[machine]\nlike = \"{like}\"\n")
    assert error.value.line == 2


#: layout, core counts, ratios, and part of the reason; the machine has as many cores
BAD_LAYOUTS = [
    ("atom", [1, 2, 8], [30, 28, 25], "room for 4 cores, the machine has 8"),
    ("atom", [1, 4], [64, 25], "room for ratio 63, not 64"),
    ("bytes", [24, 25], [30, 28], "room for 24 cores"),
    ("groups", [1, 2, 3, 4, 5, 6, 7, 8, 9], [25] * 9, "room for 8 steps, not 9"),
    ("deltas", [1, 33], [30, 28], "at most 31 cores and 7 ratios"),
    ("deltas", [1, 30], [30, 22], "at most 31 cores and 7 ratios"),
]


@pytest.mark.parametrize("layout,cores,ratios,reason", BAD_LAYOUTS)
def test_table_that_the_registers_cannot_hold(layout: str, cores: list[int],
                                              ratios: list[int], reason: str) -> None:
    with pytest.raises(MachineError, match=reason):
        parse(GOOD.replace("\"bytes\"", f"\"{layout}\"")
              .replace("cores = 4", f"cores = {cores[-1]}")
              .replace("[1, 2, 4]", str(cores)).replace("[30, 28, 25]", str(ratios)))


#: a class, the line of it that must be named, and part of the reason
BAD_CLASSES = [
    ("name = \"E\"\ncores = 2\nmax_ratio = 31\n", 3, "do not rise from min_ratio 8"),
    ("name = \"E\"\ncores = 2\nbase_ratio = 26\nmax_ratio = 25\n", 4, "do not rise"),
    ("name = \"E\"\ncores = 2\nbase_ratio = 7\nmax_ratio = 25\n", 4, "do not rise"),
    ("name = \"E\"\ncores = 4\nmax_ratio = 25\n", 2, "leave no core of the first kind"),
    ("name = \"E\"\ncores = 0\nmax_ratio = 25\n", 2, "allowed is 1 to 255"),
    ("name = \"E-core\"\ncores = 2\nmax_ratio = 25\n", 1, "must be letters or digits"),
    ("name = \"E\"\ncores = 2\nmax_ratio = 25\ncore_type = 0x20\n", 4,
     "features.core_type for the first"),
    ("name = \"E\"\ncores = 2\nmax_ratio = 25\nefficient_ratio = 21\n", 4,
     "above base_ratio"),
    ("name = \"E\"\ncores = 2\nmax_ratio = 25\nturbo = 1\n", 4, "unknown key 'turbo'"),
    ("name = \"E\"\nmax_ratio = 25\n", 0, "needs the key 'cores'"),
]


@pytest.mark.parametrize("text,at,reason", BAD_CLASSES,
                         ids=[reason for _, _, reason in BAD_CLASSES])
def test_bad_class_names_line_and_reason(text: str, at: int, reason: str) -> None:
    with pytest.raises(MachineError, match=re.escape(reason)) as error:
        parse(GOOD + "[[class]]\n" + text)
    assert error.value.line == GOOD.count("\n") + 1 + at


@pytest.mark.parametrize("cpus,first", [(1, 1), (2, 1), (3, 1), (4, 1), (6, 2)])
def test_guest_gets_kinds_in_proportion(cpus: int, first: int) -> None:
    """The part has two and four; at least one of the first kind, then the others."""
    (kind, numbers), = machine.load("ryzen-5-7545u").class_cpus(cpus)
    assert kind.name == "dense" and numbers == list(range(first, cpus))


def test_threads_come_together() -> None:
    m = machine.load("sapphire-rapids-smt")
    assert m.check_cpus(4) == 4 and m.sockets(64) == 1
    with pytest.raises(UsageError, match="a core of sapphire-rapids-smt has 2"):
        m.check_cpus(3)


def test_state_needs_a_hint_or_a_port() -> None:
    for more in ("hints = [0x20]\nport = 0x814", ""):
        with pytest.raises(MachineError, match="C6: needs hints, or else a port"):
            parse(GOOD.replace("hints = [0x20]", more))


def test_good_file_is_accepted() -> None:
    m = parse(GOOD)
    assert (m.min_ratio, m.base_ratio, m.max_ratio) == (8, 20, 30)
    assert m.tsc_khz == 2_000_000
    assert [state.name for state in m.idle] == ["C1", "C6"]


@pytest.mark.parametrize("old,new,at,reason", BAD,
                         ids=[f"{new or 'no ' + old}".split("\n")[0] for old, new, _, _ in BAD])
def test_bad_file_names_line_and_reason(old: str, new: str, at: str | None,
                                        reason: str) -> None:
    assert GOOD.count(old + "\n") == 1
    with pytest.raises(MachineError, match=re.escape(reason)) as error:
        parse(GOOD.replace(old + "\n", new + "\n"))
    if at is not None:
        line = LINES[at] + new.count("\n")	# a key that was put below it
        assert str(error.value).startswith(f"test.toml:{line}: ")


def test_missing_table_is_named() -> None:
    with pytest.raises(MachineError, match=r"table \[turbo\] is missing"):
        parse(GOOD.replace("[turbo]", "[time]").replace(
            "layout = \"bytes\"\ncores = [1, 2, 4]\nratios = [30, 28, 25]\n", ""))


def test_empty_file_is_refused() -> None:
    with pytest.raises(MachineError, match="missing"):
        parse("")


def test_waitpkg_needs_latencies() -> None:
    with pytest.raises(MachineError, match="needs .umwait."):
        parse(GOOD + "[features]\nwaitpkg = true\n[umwait]\nc01_exit_cycles = 60\n")


@pytest.mark.parametrize("active,ratio", [(0, 30), (1, 30), (2, 28), (3, 25), (4, 25),
                                          (9, 25)])
def test_turbo_limit_by_active_cores(active: int, ratio: int) -> None:
    assert parse(GOOD).turbo.limit(active) == ratio


@pytest.mark.parametrize("cpus", [1, 2, 4])
def test_allowed_cpu_counts(cpus: int) -> None:
    assert parse(GOOD).check_cpus(cpus) == cpus


@pytest.mark.parametrize("cpus", [0, -1, 5, 65])
def test_refused_cpu_counts_say_what_is_allowed(cpus: int) -> None:
    with pytest.raises(UsageError, match="allows 1 to 4"):
        parse(GOOD).check_cpus(cpus)


def test_guest_kernel_limits_cpus() -> None:
    text = GOOD.replace("cores = 4\n", "cores = 100\n").replace(
        "cores = [1, 2, 4]", "cores = [1, 2, 4, 8, 16, 32, 64, 100]").replace(
        "ratios = [30, 28, 25]", "ratios = [30, 28, 25, 25, 25, 25, 25, 25]").replace(
        "\"bytes\"", "\"groups\"")
    with pytest.raises(UsageError, match="allows 1 to 64"):
        parse(text).check_cpus(65)


def test_cpus_of_two_packages_must_divide() -> None:
    m = parse(GOOD.replace("cores = 4\n", "cores = 4\npackages = 2\n"))
    assert m.sockets(4) == 1 and m.sockets(6) == 2
    with pytest.raises(UsageError, match="multiple"):
        m.check_cpus(5)


def test_unknown_machine_lists_the_known() -> None:
    listed = r"(?s)\n  sapphire-rapids +sapphire-rapids, platinum-8460h, .*\n  zen-"
    with pytest.raises(UsageError, match=listed):
        machine.load("pentium")


@pytest.mark.parametrize("name", machine.names())
def test_all_cores_at_base_draw_the_tdp(name: str) -> None:
    m = machine.load(name)
    assert m.base_w() == pytest.approx(m.power.tdp_w, rel=0.01)

@pytest.mark.parametrize("name, shared", [("xeon-6746e", [3 << 14]), ("sapphire-rapids", [])])
def test_cores_that_share_an_l2(name: str, shared: list[int]) -> None:
    e = qapi.machine(machine.load(name))
    assert [leaf["eax"] for leaf in e["cpuid-set"] if (leaf["leaf"], leaf.get("sub")) == (4, 2)] \
        == shared



@pytest.mark.parametrize("name", machine.names())
def test_power_falls_with_each_deeper_state_at_every_clock(name: str) -> None:
    """As the emulator gets it: running, PAUSE, C0.1, C0.2 and the machine's states."""
    m = machine.load(name)
    e = qapi.machine(m)
    named = [("C0", e["power"]["active-uw"]), ("PAUSE", e["power"]["pause-uw"])]
    if "umwait" in e:
        named += [("C0.1", e["umwait"]["c01"]["power-uw"]),
                  ("C0.2", e["umwait"]["c02"]["power-uw"])]
    named += [(state["name"], state["rest"]["power-uw"]) for state in e["idle"]]
    for i, ratio in enumerate(m.ratios):
        for (upper, more), (lower, less) in zip(named, named[1:]):
            # At the lowest clock C1 is C1E; a machine without a figure of its own for
            # PAUSE says that it draws what work does.
            same = (lower == "C1E" and ratio == m.min_ratio
                    or lower == "PAUSE" and m.power.pause_permille == 1000)
            assert less[i] < more[i] or same and less[i] == more[i], \
                f"{lower} draws {less[i]} uW, {upper} {more[i]} at {m.mhz(ratio)} MHz"


@pytest.mark.parametrize("name", machine.names())
def test_power_rises_with_frequency(name: str) -> None:
    m = machine.load(name)
    watts = [m.active_w(ratio) for ratio in m.ratios]
    assert watts == sorted(watts)
    # Faster than frequency: else running fast would always be cheapest.
    assert watts[-1] / watts[0] > m.max_ratio / m.min_ratio


@pytest.mark.parametrize("family", machine.families())
def test_every_datum_has_a_source(family: str) -> None:
    """A comment on the line, or on the line before, or a comment heads the table."""
    text = (machine.MACHINES / f"{family}.toml").read_text()
    block, before = "", ""
    for line in text.splitlines():
        if line.startswith("[part.") and before.startswith("#"):
            block = before
        elif line.startswith("[[part."):
            pass	# one more table of the same part
        elif line.startswith("[") or not line:
            block = ""
        elif line.startswith("#"):
            block = line
        elif line.split("=")[0].strip().split(".")[-1] in (
                "tdp_w", "uncore_w", "v_min", "v_max", "leakage_w", "ratios",
                "registers", "base_ratio", "min_ratio", "cores", "capacitance_nf"):
            assert "#" in line or block, line
        before = line


def qapi_types() -> dict[str, dict[str, Any]]:
    """{struct: its members} of the emulator's schema, which is Python's literals."""
    text = re.sub(r"#.*", "", QAPI.read_text(encoding="utf-8"))
    found = ast.literal_eval("[" + re.sub(r"\}\s*\{", "}, {", text) + "]")
    return {one["struct"]: one["data"] for one in found if "struct" in one}


def misfits(value: Any, kind: Any, types: dict[str, dict[str, Any]]) -> list[str]:
    if isinstance(kind, list):
        return [what for one in value for what in misfits(one, kind[0], types)]
    if kind not in types:
        return []
    members = {name.lstrip("*"): of for name, of in types[kind].items()}
    needed = {name for name in types[kind] if not name.startswith("*")}
    return [f"{kind} lacks {name}" for name in value.keys() - members.keys()] + \
        [f"no {name} for {kind}" for name in needed - value.keys()] + \
        [what for name in value.keys() & members.keys()
         for what in misfits(value[name], members[name], types)]


@pytest.mark.parametrize("name", machine.names())
def test_emulator_has_a_place_for_each_datum(name: str) -> None:
    """Names alone; its start checks ranges."""
    wrong = misfits(qapi.machine(machine.load(name)), "VirtualSiliconMachine", qapi_types())
    assert not wrong, f"machine/qapi.py and {QAPI.name}: {', '.join(wrong)}"


def test_emulator_reads_each_datum() -> None:
    """By its name: one that another type has too may be read from that alone."""
    model = QAPI.parents[1] / "target/i386/tcg/sysemu/virtual-silicon"
    code = "\n".join(file.read_text(encoding="utf-8") for file in model.glob("*.c"))
    read = set(re.findall(r"(?:->|\.)(\w+)", code))
    types = qapi_types()
    del types["VirtualSiliconProperties"]		# of the object, by functions
    unread = [f"{struct}.{name}" for struct, members in types.items() for name in members
              if name.strip("*").replace("-", "_") not in read]
    assert not unread, f"{model.name} does not read {', '.join(unread)}"
