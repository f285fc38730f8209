# SPDX-License-Identifier: GPL-2.0
"""cpuwhy explain accuses no machine that is as its file says."""

from __future__ import annotations

import pytest
from cpuwhy import explain, texts, turbo
from cpuwhy.case import Case
from virtual_silicon.machine import amd, intel, machine
from virtual_silicon.machine.machine import Machine

CPU = "/sys/devices/system/cpu"


def registers(m: Machine) -> str:
    """Of each kind of core, as rdmsr prints them."""
    by = amd if m.vendor == "AuthenticAMD" else intel
    found = by.msrs(m) | {msr: value for msr, (value, _) in by.msrs_rw(m).items()}
    if m.hwp.present:
        caps = m.max_ratio | m.base_ratio << 8 | m.hwp.efficient_ratio << 16 | m.min_ratio << 24
        found |= {0x770: 1, 0x771: caps,
                  0x774: m.min_ratio | m.max_ratio << 8 | 0x80 << 24}
    return "".join(f"{msr:#x} {value:#x}\n" for msr, value in found.items())


def cpuinfo(m: Machine) -> str:
    flags = "fpu msr aperfmperf monitor " + ("hwp ida" if m.hwp.present else "ida")
    return (f"processor\t: 0\nvendor_id\t: {m.vendor}\ncpu family\t: {m.family}\nmodel\t\t: "
            f"{m.model}\nmodel name\t: {m.title}\nstepping\t: {m.stepping}\nflags\t\t: {flags}\n\n")


def sysfs(m: Machine) -> str:
    khz = {"min": m.min_ratio * m.bus_khz, "max": m.max_ratio * m.bus_khz}
    driver = ("intel_pstate" if m.hwp.present else "acpi-cpufreq" if m.vendor != "GenuineIntel"
              else "intel_cpufreq")
    files = {"cpufreq/scaling_driver": driver,
             "cpufreq/scaling_governor": "powersave" if m.hwp.present else "schedutil",
             "cpufreq/base_frequency": m.base_ratio * m.bus_khz,
             "thermal_throttle/core_throttle_count": 0, "power/energy_perf_bias": 6}
    for kind, value in khz.items():
        files[f"cpufreq/cpuinfo_{kind}_freq"] = files[f"cpufreq/scaling_{kind}_freq"] = value
    for number, state in enumerate(m.idle, 1):
        files |= {f"cpuidle/state{number}/{name}": value for name, value in (
            ("name", state.name), ("latency", round(state.exit_us)), ("disable", 0),
            ("usage", 50_000), ("above", 5_000), ("below", 5_000), ("time", 10**8))}
    percent = -(-100 * khz["min"] // khz["max"])
    return "".join(f"{CPU}/cpu0/{name}:{value}\n" for name, value in files.items()) + (
        f"{CPU}/intel_pstate/no_turbo:0\n{CPU}/intel_pstate/max_perf_pct:100\n"
        f"{CPU}/intel_pstate/min_perf_pct:{percent}\n" if m.vendor == "GenuineIntel" else
        f"{CPU}/cpufreq/boost:1\n") + f"{CPU}/cpuidle/current_driver:intel_idle\n"


def log(m: Machine) -> str:
    """What the base's kernel says at boot; of hybrids it depends on the CPU that boots."""
    if m.vendor != "GenuineIntel" or m.classes:
        return "[    0.000000] Linux version 6.12.90\n"
    cores = 1 if m.model in turbo.ONE_CORE else turbo.CORES
    ratio = (m.part or m).turbo.limit(min(cores, m.cores)) * 1024 // m.base_ratio
    return ("[    0.000000] Linux version 6.12.90\n[    0.100000] smp: Brought up 1 node\n"
            "[    0.200000] smpboot: Estimated ratio of average max frequency by base frequency"
            f" (times 1024): {ratio}\n")


def busy(m: Machine) -> str:
    """All cores at the clock that all may have."""
    mhz = round(m.mhz((m.part or m).turbo.limit(m.cores)))
    rows = "".join(f"{core}\t{core}\t{mhz}\t99.90\t{mhz}\t{m.tsc_khz // 1000}\n"
                   for core in range(min(m.cores, 8 if m.classes else 256)))
    return "Core\tCPU\tAvg_MHz\tBusy%\tBzy_MHz\tTSC_MHz\n" + rows + "\n"


@pytest.mark.parametrize("name", machine.names())
def test_no_machine_is_accused(name: str) -> None:
    m = machine.load(name)
    known = cpuinfo(m) + registers(m)
    for text in (known, known + busy(m), known + sysfs(m), sysfs(m),
                 known + busy(m) + sysfs(m) + log(m)):
        what = explain.explain(Case(texts.read_text(text, name)))
        assert not what.limiters and not what.earlier, (what.limiters, what.earlier)


def test_a_limit_is_seen_on_each() -> None:
    """The texts are such that one would be."""
    for name in machine.names():
        m = machine.load(name)
        text = cpuinfo(m) + registers(m) + sysfs(m)
        half = text.replace(f"scaling_max_freq:{m.max_ratio * m.bus_khz}",
                            f"scaling_max_freq:{m.max_ratio * m.bus_khz // 2}")
        what = explain.explain(Case(texts.read_text(half, name)))
        assert [found.kind for found in what.limiters] == ["policy-max"], name
