# SPDX-License-Identifier: GPL-2.0
"""ACPI table: contents, and that the compiler takes it."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from virtual_silicon.errors import GuestError
from virtual_silicon.machine import machine, ssdt


def test_turbo_entry_comes_first() -> None:
    states = ssdt.pstates(machine.load("e5-2698-v4"))
    assert states[0][0] == 2201 and states[0][2] == 36 << 8
    assert [mhz for mhz, _, _ in states[1:]] == list(range(2200, 1100, -100))
    powers = [mw for _, mw, _ in states]
    assert powers == sorted(powers, reverse=True)


@pytest.mark.parametrize("cpus", [1, 4, 16])
def test_exactly_the_cpus_present(cpus: int) -> None:
    asl = ssdt.source(machine.load("sapphire-rapids"), cpus)
    assert asl.count("Scope (") == cpus
    assert asl.count("_PSD") == cpus
    assert f"C{cpus - 1:03X}" in asl and f"C{cpus:03X}" not in asl


def domains(m: machine.Machine, cpus: int) -> list[list[int]]:
    """Of each CPU: number of its domain, coordination, size."""
    return [[int(word) for word in found.split(", ")] for found in
            re.findall(r"_PSD, Package \(\) { Package \(\) { 5, 0, ([\d, ]+) }",
                       ssdt.source(m, cpus))]


def test_each_cpu_is_a_domain() -> None:
    assert domains(machine.load("sapphire-rapids"), 3) == [[0, 254, 1], [1, 254, 1],
                                                           [2, 254, 1]]


@pytest.mark.parametrize("how, code", [("all", 252), ("any", 253)])
def test_domains_of_several_cpus(how: str, code: int) -> None:
    m = replace(machine.load("sapphire-rapids"), domain_cpus=2, coordination=how)
    assert domains(m, 3) == [[0, code, 2], [0, code, 2], [1, code, 1]]


@pytest.mark.parametrize("name", machine.names())
def test_compiles_without_a_warning(name: str, tmp_path: Path) -> None:
    target = tmp_path / "t.aml"
    m = machine.load(name)
    ssdt.compile_table(ssdt.source(m, 4), target)
    data = target.read_bytes()
    assert data[:4] == b"SSDT" and sum(data) % 256 == 0
    if m.pstate_ratios:
        assert data.count(b"_CPC") == 4
    else:	# control word of the turbo state, little endian
        assert (m.max_ratio << 8).to_bytes(2, "little") in data


def test_states_by_number() -> None:
    """AMD: P-state 0 is base, the control word the state's number."""
    states = ssdt.pstates(machine.load("epyc-7742"))
    assert [(mhz, word) for mhz, _, word in states] == [(2250, 0), (2000, 1), (1500, 2)]


def test_decompiles_to_the_same_control_words(tmp_path: Path) -> None:
    target = tmp_path / "t.aml"
    ssdt.compile_table(ssdt.source(machine.load("e3-1240-v5"), 2), target)
    subprocess.run(["iasl", "-d", str(target)], check=True, capture_output=True)
    text = (tmp_path / "t.dsl").read_text()
    assert "0x2700" in text and "0x0800" in text


def test_refused_source_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GuestError, match="iasl"):
        ssdt.compile_table("DefinitionBlock (", tmp_path / "t.aml")
