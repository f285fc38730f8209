# SPDX-License-Identifier: GPL-2.0
"""What the base kernel, stock turbostat and stock cpupower say of each machine.

What they read is compared with the model's own count over the same stretch; with the
published data of the machine, in test_families.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from guests import Guests, each, events
from parts import PARTS as READ
from parts import idle_table
from scenarios import MARKS, RESIDENCY_MARK, STOCK_MACHINES
from test_families import PARTS
from virtual_silicon.guest.boot import Result
from virtual_silicon.machine import machine
from virtual_silicon.readers import sysfs, trace, turbostat
from virtual_silicon.readers.trace import Trace, Window

LOADS = list(MARKS)

@dataclass
class StockTools:
    """One machine's guest and the model's trace of it."""

    name: str
    result: Result
    trace: Trace

    def table(self, load: str) -> turbostat.Table:
        return turbostat.table(self.result.text(load))

    def window(self, load: str) -> Window:
        return trace.window(self.trace, MARKS[load], MARKS[load] + 1)


@pytest.fixture(params=each(STOCK_MACHINES, "stock-"))
def stock(request: pytest.FixtureRequest, guests: Guests) -> StockTools:
    result = guests.get(f"stock-{request.param}")
    return StockTools(request.param, result, events(result))


def test_cpupower_reads_limits_and_driver(stock: StockTools) -> None:
    low, high = PARTS[stock.name].low, max(PARTS[stock.name].turbo.values())
    text = stock.result.text("frequency-info")
    low_text = f"{low} MHz" if low < 1000 else f"{low / 1000:.2f} GHz"
    assert f"hardware limits: {low_text} - {high / 1000:.2f} GHz" in text
    assert "driver: intel_cpufreq" in text
    assert 'The governor "performance"' in text


def test_cpupower_lists_idle_states(stock: StockTools) -> None:
    states = " ".join(s.name for s in machine.load(stock.name).idle)
    text = stock.result.text("idle-info")
    assert "CPUidle driver: intel_idle" in text
    assert f"Available idle states: POLL {states}" in text


#: A part of the same model, or with the same table, whose idle states were recorded.
RECORDED = {"sapphire-rapids": "platinum-8460h", "e5-2698-v4": "e5-2697-v4",
            "e5-2670-v3": "e5-2699-v3", "e3-1240-v5": "e-2278g"}


def test_kernel_has_the_idle_states_of_the_part(stock: StockTools) -> None:
    """Names, latencies and residencies as a kernel told them on such a part; the E3 has
    fewer of them."""
    recorded = READ[RECORDED[stock.name]].idle
    seen = sysfs.idle_states(stock.result.text("cpuidle"))
    for states in seen.values():
        assert not any(s.disabled for s in states)
    table = idle_table(stock.result)
    assert table == recorded[:len(table)]
    assert len(table) == len(recorded) - (2 if stock.name == "e3-1240-v5" else 0)


def test_unknown_registers_fault(stock: StockTools) -> None:
    lines = stock.result.text("registers").splitlines()
    assert "0x66a fault" in lines and "0x4e fault" in lines


def test_writing_a_constant_register_faults(stock: StockTools) -> None:
    assert stock.result.text("registers").splitlines()[-1] == "0xce fault"


def test_all_busy_reach_turbo_of_that_many(stock: StockTools) -> None:
    for row in stock.table("all").cpus.values():
        assert row["Bzy_MHz"] == pytest.approx(PARTS[stock.name].four, rel=0.01)


@pytest.mark.parametrize("load", LOADS)
def test_busy_mhz_is_the_models(stock: StockTools, load: str) -> None:
    """On CPUs that were busy enough for turbostat's own work not to count."""
    window = stock.window(load)
    compared = 0
    for cpu, row in stock.table(load).cpus.items():
        if window.cpus[cpu].busy > 0.15:
            assert row["Bzy_MHz"] == pytest.approx(window.cpus[cpu].mhz, rel=0.01)
            compared += 1
    assert compared or load == "idle"


@pytest.mark.parametrize("load", LOADS)
def test_busy_and_residencies_make_the_whole(stock: StockTools, load: str) -> None:
    for cpu, row in stock.table(load).cpus.items():
        assert turbostat.residency_sum(row) == pytest.approx(100, abs=1), f"CPU {cpu}"


@pytest.mark.parametrize("load", LOADS)
def test_residencies_are_the_models(stock: StockTools, load: str) -> None:
    """Registers against the model's own account, per residency counter.

    turbostat's window begins a few ms before the first mark and ends after the
    second; where a CPU was in that time is open, for the rest they must agree.
    C1 is what turbostat has left over: that also holds time spent waking.
    """
    counters = {0x3FC: "CPU%c3", 0x3FD: "CPU%c6", 0x3FE: "CPU%c7"}
    window, states = stock.window(load), machine.load(stock.name).idle
    table = stock.table(load)
    around = table.seconds - window.seconds
    assert 0 < around < 0.02
    for cpu, row in table.cpus.items():
        for msr, column in counters.items():
            inside = window.seconds * sum(window.cpus[cpu].states[s.name]
                                          for s in states if s.residency_msr == msr)
            if column in row:
                seen = row[column] / 100 * table.seconds
                assert -0.001 <= seen - inside <= around + 0.001, f"CPU {cpu} {column}"


def test_residency_registers_are_the_models(stock: StockTools) -> None:
    """Read directly; states that share a register count there together."""
    before, _, after = stock.result.text("residency").partition("--")
    rises = sysfs.msr_rises(before, after)
    window = trace.window(stock.trace, RESIDENCY_MARK, RESIDENCY_MARK + 1)
    m = machine.load(stock.name)
    tsc_hz = m.tsc_khz * 1000
    around = rises[0x10] / tsc_hz - window.seconds
    assert 0 < around < 0.02
    for msr in {s.residency_msr for s in m.idle} - {0}:
        inside = window.seconds * sum(window.cpus[1].states[s.name]
                                      for s in m.idle if s.residency_msr == msr)
        seen = rises[msr] / tsc_hz
        assert -0.0001 <= seen - inside <= around + 0.0001, hex(msr)


@pytest.mark.parametrize("load", LOADS)
def test_package_energy_is_the_models(stock: StockTools, load: str) -> None:
    used = sysfs.energy(stock.result.text("zones") + "\n"
                            + stock.result.text(load))
    assert used["package"] == pytest.approx(stock.window(load).package_j, rel=0.01)


@pytest.mark.parametrize("load", LOADS)
def test_dram_energy_is_the_models(stock: StockTools, load: str) -> None:
    used = sysfs.energy(stock.result.text("zones") + "\n"
                            + stock.result.text(load))
    assert used["dram"] == pytest.approx(stock.window(load).dram_j, rel=0.01)


@pytest.mark.parametrize("load", LOADS)
def test_turbostat_energy_is_the_models(stock: StockTools, load: str) -> None:
    """turbostat's window is a few ms longer than the marks', in which it executes."""
    table, window = stock.table(load), stock.window(load)
    more = (table.seconds - window.seconds) * machine.load(stock.name).power.tdp_w
    assert 0.99 * window.package_j < table.summary["Pkg_J"] < 1.01 * window.package_j + more


def test_full_load_costs_what_the_power_model_says(stock: StockTools) -> None:
    """All CPUs at their clock, from the model's formula, not its counter."""
    m, window = machine.load(stock.name), stock.window("all")
    busy = sum(cpu.busy for cpu in window.cpus.values())
    ratio = round(PARTS[stock.name].four * 1000 / m.bus_khz)
    watts = busy * m.active_w(ratio) + m.power.uncore_w
    assert window.package_j / window.seconds == pytest.approx(watts, rel=0.02)
