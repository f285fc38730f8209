# SPDX-License-Identifier: GPL-2.0
"""What was read on the parts that machines were made from (data/parts.csv)."""

from __future__ import annotations

import csv
from dataclasses import dataclass

from cpuwhy import turbo
from virtual_silicon import paths
from virtual_silicon.guest.boot import Result
from virtual_silicon.machine.machine import load
from virtual_silicon.readers import sysfs

State = tuple[str, int, int]		# name, exit latency and target residency in us


@dataclass(frozen=True)
class Part:
    """0 and empty: not known."""

    ratio: int				# freq_max over base as the base kernel logs it
    registers: dict[int, int]		# of the turbo table
    turbo: dict[int, float]		# MHz by active cores
    idle: list[State]


def _part(line: dict[str, str]) -> Part:
    m = load(line["machine"])
    values = [int(line[key], 16) for key in ("msr_turbo", "msr_counts") if line[key]]
    registers = dict(zip(turbo.registers(m.turbo.layout)[:len(m.turbo.registers)], values))
    idle = [(name, int(latency), int(residency)) for name, latency, residency in
            (state.split(":") for state in line["idle"].split())]
    return Part(int(line["ratio_x1024"] or 0), registers,
                {cores: m.mhz(ratio) for cores, ratio in
                 turbo.decode(m.turbo.layout, registers)}, idle)


with (paths.SILICON / "data/parts.csv").open(encoding="utf-8", newline="") as _file:
    PARTS = {line["machine"]: _part(line) for line in csv.DictReader(_file)}


def idle_table(result: Result) -> list[State]:
    states = sysfs.idle_states(result.text("cpuidle")).get(0, [])
    return [(s.name, s.latency_us, s.residency_us) for s in states if s.name != "POLL"]
