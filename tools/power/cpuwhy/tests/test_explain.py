# SPDX-License-Identifier: GPL-2.0
"""A healthy machine's texts, and one limiter at a time."""
from __future__ import annotations

import json
import re
import shutil
import struct
from pathlib import Path

import pytest
from cpuwhy import cli, doctor, explain, hardware, report, rules, texts
from cpuwhy.case import Case, Finding
from cpuwhy.tests.paste import CPU, HEALTHY, LOG, SYSFS, TURBOSTAT, table


def of(text: str) -> explain.Explanation:
    return explain.explain(Case(texts.read_text(text, "paste.txt")))


def changed(*changes: tuple[str, str]) -> str:
    text = HEALTHY
    for old, new in changes:
        assert re.search(old, text), old
        text = re.sub(old, new, text)
    return text


def slow(mhz: int = 2000, **other: float) -> tuple[str, str]:
    """The table with this clock, while all are busy."""
    return re.escape(table()), table(mhz, **other)


def test_nothing_to_say_of_a_healthy_machine() -> None:
    what = of(HEALTHY)
    assert not what.limiters and not what.earlier and not what.missing and not what.doubts
    assert {note.kind for note in what.notes} == {"clock", "governor"}
    assert "the highest with 4 active cores is 3700: no loss" in what.notes[0].says


# What is changed; kind, a part of what it says, a part of the line that shows it, the command.
PLANTED: list[tuple[list[tuple[str, str]], str, str, str, str]] = [
    ([("TDP_CONTROL: 0x00000000", "TDP_CONTROL: 0x00000001")],
     "ctdp", "level 1 is chosen: base clock 2000 MHz instead of 3400, 35 W", "TDP_CONTROL",
     "wrmsr -a 0x64b 0x0"),
    ([("TDP_CONTROL: 0x00000000", "TDP_CONTROL: 0x80000001")],
     "ctdp", "locked until a reset", "TDP_CONTROL", ""),
    ([("ACTIVATION_RATIO: 0x00000021", "ACTIVATION_RATIO: 0x00000010")],
     "ctdp", "clocks above 1600 MHz count as turbo", "ACTIVATION", "wrmsr -a 0x64c 0x21"),
    ([("LIMIT_REASONS, 0x00000000", "LIMIT_REASONS, 0x00000400"), slow(watts=64)],
     "power-limit", "limit PL1 is 65 W and holds the clock now: 64 W drawn",
     "LIMIT_REASONS", ""),
    ([("LIMIT_REASONS, 0x00000000", "LIMIT_REASONS, 0x00000800")],
     "power-limit", "limit PL2 is 81.2 W and holds the clock now", "LIMIT_REASONS", ""),
    ([("THERM_STATUS: 0x88280000", "THERM_STATUS: 0x88280400"), slow(watts=20)],
     "power-limit", "a power limit holds the clock now; PL1 is 65 W: 20 W drawn, less than that, so"
     " another limit acts too", "THERM_STATUS", ""),
    ([slow(watts=64.5)], "power-limit", "PL1 is 65 W and holds the clock now: 64.5 W drawn",
     "PKG_POWER_LIMIT", ""),
    ([("intel-rapl-mmio:0/constraint_0_power_limit_uw:65", "intel-rapl-mmio:0/"
       "constraint_0_power_limit_uw:15")],
     "power-limit", "limit PL1 is 15 W, the part is made for 65", "mmio",
     "echo 65000000 > /sys/class/powercap/intel-rapl-mmio:0/constraint_0_power_limit_uw"),
    ([("00dd8208 .UNlocked", "00dd8078 (UNlocked")],
     "power-limit", "limit PL1 is 15 W, the part is made for 65", "PKG_POWER_LIMIT", ""),
    ([("(cpu\\d: MSR_IA32_THERM_STATUS: 0x88..000)0", r"\g<1>4"), slow(800)],
     "prochot", "another chip holds the clock at its lowest on CPUs 0-1 at 60 C (limit 100)",
     "THERM_STATUS", "wrmsr -a 0x1fc 0x4005c"),
    ([("cpu0: MSR_IA32_THERM_STATUS: 0x88280000", "cpu0: MSR_IA32_THERM_STATUS: 0x88000005")],
     "prochot", "the CPU is too hot at 100 C", "THERM_STATUS", "fans"),
    # Firmware may lower the limit, so the distance alone does not tell who is hot.
    ([("cpu0: MSR_IA32_THERM_STATUS: 0x88280000", "cpu0: MSR_IA32_THERM_STATUS: 0x88140005")],
     "prochot", "the CPU is too hot at 80 C", "THERM_STATUS", "fans"),
    ([("LIMIT_REASONS, 0x00000000", "LIMIT_REASONS, 0x00000001")],
     "prochot", "another chip", "LIMIT_REASONS", "wrmsr -a 0x1fc"),
    ([("PACKAGE_THERM_STATUS: 0x88280000", "PACKAGE_THERM_STATUS: 0x88000001")],
     "thermal", "the CPU is too hot at 100 C", "PACKAGE_THERM", "fans"),
    ([("TARGET: 0x00640000", "TARGET: 0x14640000")],
     "thermal", "the CPU slows down at 80 C, 20 below", "TEMPERATURE_TARGET",
     "wrmsr -a 0x1a2 0x640000"),
    ([("LIMIT_REASONS, 0x00000000", "LIMIT_REASONS, 0x00000040")],
     "current", "voltage regulator", "LIMIT_REASONS", ""),
    ([("LIMIT_REASONS, 0x00000000", "LIMIT_REASONS, 0x00000100")],
     "current", "electrical limit", "LIMIT_REASONS", ""),
    ([("(cpu0: EPB)", r"0x19a: 0x14\n\1")],
     "clock-modulation", "a CPU run 4 of 16", "0x14", "wrmsr -a 0x19a 0"),
    ([("HWP_REQUEST: 0x80002808", "HWP_REQUEST: 0x80001408")],
     "hwp-max", "HWP may go to 20 of 40 on CPU 0", "HWP_REQUEST", ""),
    ([("HWP_REQUEST: 0x80002808", "HWP_REQUEST: 0x800a2808")],
     "hwp-desired", "desired performance is fixed at 10 of 40", "HWP_REQUEST", ""),
    ([("HWP_REQUEST: 0x80002808", "HWP_REQUEST: 0x8000281e")],
     "hwp-min", "HWP may not go below 30 of 40", "HWP_REQUEST", ""),
    ([("HWP_REQUEST: 0x80002808", "HWP_REQUEST: 0xff002808"),
      (f"{CPU}/cpu\\d/cpufreq/energy_performance_preference:.*\n", "")],
     "epp", "energy preference 255", "HWP_REQUEST", ""),
    ([("(cpu2/cpufreq/energy_performance_preference):balance_performance", r"\1:power")],
     "epp", "power on CPU 2", "cpu2/", "echo balance_performance"),
    ([("(energy_performance_preference):balance_performance", r"\1:balance_power")],
     "epp", "balance_power on CPUs 0-3", "balance_power", "echo balance_performance"),
    ([("(power/energy_perf_bias):6", r"\1:15"), ("EPB: 6 .balanced", "EPB: 15 (powersave")],
     "epp", "15 of 15 on CPUs 0-3", "bias", "echo 6"),
    ([("(cpuinfo_min_freq:800000)", r"\1"), ("min_perf_pct:20", "min_perf_pct:50")],
     "min-perf-pct", "no less than 50 % of the highest clock (hardware: 800 of 4000 MHz = 20 %)",
     "min_perf_pct", "echo 20"),
    ([("max_perf_pct:100", "max_perf_pct:50"), slow()],
     "max-perf-pct", "50 % of the highest clock", "max_perf_pct", "echo 100"),
    ([("(cpu1/cpufreq/scaling_max_freq):4000000", r"\1:2000000"), slow()],
     "policy-max", "scaling_max_freq is 2000 MHz on CPU 1, the hardware's is 4000",
     "cpu1/cpufreq/scaling_max_freq", "echo 4000000"),
    ([("scaling_min_freq:800000", "scaling_min_freq:3000000")],
     "policy-min", "scaling_min_freq is 3000 MHz on CPUs 0-3", "scaling_min_freq", "echo 800000"),
    ([(f"({CPU}/cpu0/cpufreq/base)", rf"{CPU}/cpu0/cpufreq/bios_limit:1200000\n\1")],
     "firmware-max", "firmware (_PPC) allows 1200 of 4000 MHz on CPU 0", "bios_limit",
     "ignore_ppc"),
    ([("no_turbo:0", "no_turbo:1"), slow(3400)], "turbo-off", "turbo is switched off",
     "no_turbo", "echo 0"),
    ([("ENABLE: 0x00850089 .*", "ENABLE: 0x4000850089 (No-TURBO)"), ("no_turbo:0", "no_turbo:1"),
      slow(3400)],
     "turbo-off", "by firmware or a program", "MISC_ENABLE", "wrmsr -a 0x1a0 0x850089"),
    ([("scaling_driver:intel_pstate", "scaling_driver:intel_cpufreq"), slow(800)],
     "governor", "powersave on CPUs 0-3: always the lowest clock under intel_cpufreq",
     "scaling_governor", ""),
    ([("cooling_device0/cur_state:0", "cooling_device0/cur_state:3")],
     "thermal", "thermal control slows CPUs down (Processor, step 3 of 10)", "cur_state", "fans"),
    ([("(cpu3/thermal_throttle/core_throttle_count):0", r"\1:900"),
      ("(cpu3/thermal_throttle/core_throttle_total_time_ms):0", r"\1:400000")],
     "thermal", "CPU 3 got too hot and was slowed down 900 times, 400 s in all since boot,"
     " 11.1 h ago", "core_throttle_count", "fans"),
    ([("times 1024\\): 1114", "times 1024): 1024")],
     "freq-max", "is 1024/1024 of base, the turbo registers give 1114", "Estimated", "microcode"),
    ([("current_driver:intel_idle", "current_driver:none")],
     "idle-missing", "no cpuidle driver", "current_driver", "intel_idle"),
    ([("cmdline:quiet", "cmdline:quiet intel_idle.max_cstate=1")],
     "idle-missing", "intel_idle.max_cstate=1", "cmdline", "update-grub"),
    ([("state2/disable:0", "state2/disable:1")],
     "idle-disabled", "C6 is disabled on CPUs 0-3", "state2/disable", "state2/disable"),
    ([(f"({CPU}/cpu0/cpuidle/state2/disable)", f"{CPU}/cpu0/cpuidle/state2/default_status:disabled"
       r"\n\1"), ("(cpu0/cpuidle/state2/disable):0", r"\1:1")],
     "idle-disabled", "C6 is off by default on CPU 0", "default_status",
     "grep -lx C6"),
    ([("(cpu0: MSR_IA32_PACKAGE_THERM_STATUS: 0x88280000)",
       "cpu0: MSR_IA32_PACKAGE_THERM_STATUS: 0x88280002"), ("\tPkgWatt\n", "\tPkgWatt\tPkgTmp\n"),
      ("\t52.00\n", "\t52.00\t93\n")],
     "thermal", "it got to 93 C of 100, and the log bit says", "93", "fans"),
    ([("(state2/above):90\n", r"\1:40000\n"), ("(state2/usage):9000\n", r"\1:90000\n")],
     "idle-too-deep", "C6 was too deep in 44 % of 360,000 entries; leaving it takes up to 85 us"
     " each time, 3.4 % of the idle time", "state2/above", "cpuwhy idle"),
    ([("(state1/below):900\n", r"\1:6000\n")],
     "idle-too-shallow", "C1 was too shallow in 67 % of 36,000 entries, and has 9 % of the idle"
     " time", "state1/below", "cpuwhy idle"),
    ([("(resume_latency_us):0", r"\1:20")],
     "latency-limit", "may take 20 us to wake up", "resume_latency", "echo 0"),
    ([("cpu_dma_latency: 2000000000 usec .default", "cpu_dma_latency: 20 usec (constrained")],
     "latency-limit", "no more than 20 us", "cpu_dma_latency", "doctor"),
    ([(re.escape(table()), table(1200, 1.5, c6=95))],
     "package-idle", "none of its idle states (Pkg%pc2, Pkg%pc6) while CPUs are busy for 1.5 %;"
     " a device", "1.50", "ltr_show"),
    ([(re.escape(table()), table(1200, 1.5, c6=95)), ("limit=6 .pc8", "limit=0 (pc0")],
     "package-idle", "firmware allows none (package limit pc0)", "1.50", ""),
    ([(f"({CPU}/intel_pstate/status)", f"{CPU}/intel_uncore_frequency/package_00_die_00/"
       f"max_freq_khz:1200000\n{CPU}/intel_uncore_frequency/package_00_die_00/"
       r"initial_max_freq_khz:2400000\n\1")],
     "uncore", "may have 1200 MHz of 2400", "max_freq_khz", "echo 2400000"),
    ([(re.escape(table()), table(1860, 15)), (f"({CPU}/intel_pstate/status)",
       "/sys/fs/cgroup/a.slice/cpu.max:20000 100000\n/sys/fs/cgroup/a.slice/cpu.stat:usage_usec"
       " 800000\n/sys/fs/cgroup/a.slice/cpu.stat:nr_periods 50\n/sys/fs/cgroup/a.slice/cpu.stat:"
       "nr_throttled 24\n/sys/fs/cgroup/a.slice/cpu.stat:throttled_usec 9000000\n\\1")],
     "cpu-limit", "throttled by cpu.max of /a.slice: 24 of 50 periods; busy CPUs ran at 0.47 of the"
     " highest clock: at the highest it would need about 7.44 of its 20 ms a period, instead of 16",
     "nr_throttled 24", "cpupower frequency-set -g performance"),
    ([("current_clocksource:tsc", "current_clocksource:hpet")],
     "clock-source", "clocksource hpet", "hpet", ""),
]


@pytest.mark.parametrize("changes, kind, says, line, remedy", PLANTED,
                         ids=[f"{p[1]}-{n}" for n, p in enumerate(PLANTED)])
def test_one_limiter(changes: list[tuple[str, str]], kind: str, says: str, line: str,
                     remedy: str) -> None:
    what = of(changed(*changes))
    assert what.limiters, what
    first = what.limiters[0]
    assert first.kind == kind and says in first.says, what.limiters
    assert remedy in first.remedy if remedy else not first.remedy
    assert any(line in where.text for where in first.lines), first.lines
    shown = HEALTHY if not changes else changed(*changes)
    for where in first.lines:       # at its place in the text
        assert where.text.split(":")[-1].strip() in shown.splitlines()[where.line - 1]
    assert {found.kind for found in what.limiters} == {kind}


# Only the log bit; the status bit of the same reason is among PLANTED.
LOGGED = [("LIMIT_REASONS, 0x00000000", "LIMIT_REASONS, 0x04000000", "power-limit"),
          ("LIMIT_REASONS, 0x00000000", "LIMIT_REASONS, 0x00010000", "prochot"),
          ("cpu1: MSR_IA32_THERM_STATUS: 0x88300000", "cpu1: MSR_IA32_THERM_STATUS: 0x88300002",
           "thermal"),
          ("PACKAGE_THERM_STATUS: 0x88280000", "PACKAGE_THERM_STATUS: 0x88280800", "power-limit")]


@pytest.mark.parametrize("old, new, kind", LOGGED)
def test_a_log_bit_is_history(old: str, new: str, kind: str) -> None:
    what = of(changed((old, new)))
    assert not what.limiters
    assert [found.kind for found in what.earlier] == [kind]
    assert "not now" in what.earlier[0].says


@pytest.mark.parametrize("value", [0x1000, 0x2000, 0x10002000])
def test_the_turbo_table_at_work_is_no_limit(value: int) -> None:
    what = of(changed(("LIMIT_REASONS, 0x00000000", f"LIMIT_REASONS, 0x{value:08x}")))
    assert not what.limiters and not what.earlier


@pytest.mark.parametrize("model, register, key", [
    (0x3C, 0x690, "PL1"), (0x5E, 0x64F, "PL1"), (0x3F, 0x690, None), (0x5C, 0x64F, None),
    (0x8F, 0x64F, None), (0x37, 0x690, None)])
def test_bit_10_of_each_family(model: int, register: int, key: str | None) -> None:
    """On servers of Haswell it is the turbo table."""
    assert hardware.reasons(model, register).get(10) == (
        "regulator" if model == 0x5C else key)


COUNTED = "CPU\tBusy%\tC1\tC6\tC6-\tC1+\tC6%\tCPU%c6\n-\t5.00\t{}\t{}\t{}\t{}\t{}\t{}\n"


@pytest.mark.parametrize("cells, kinds, says", [
    ((2000, 2000, 100, 100, 60, 55), [], ""),
    ((2000, 2000, 700, 100, 60, 55), [], "C6 too deep in 35 %"),
    ((2000, 2000, 100, 1100, 60, 55), [], "C1 too shallow in 55 %"),
    ((200, 200, 190, 190, 60, 55), [], ""),
    ((2000, 2000, 100, 100, 60, 0.1), ["idle-demoted"], ""),
    ((2000, 2000, 100, 100, 9, 0.1), [], "")])
def test_columns_of_idle_states(cells: tuple[float, ...], kinds: list[str], says: str) -> None:
    what = of(COUNTED.format(*cells))
    assert [found.kind for found in what.limiters] == kinds
    assert [note.says for note in what.notes if note.about == "idle"] == [
        f"{says} of the entries"] * bool(says)


def test_too_deep_at_rest_is_usual() -> None:
    """As on most machines that were recorded; it costs nothing there."""
    what = of(changed(("(state2/above):90\n", r"\1:4000\n")))
    assert not what.limiters
    note, = (note for note in what.notes if note.about == "idle")
    assert "C6 in 44 % of the entries; usual at rest" in note.says


def test_a_short_throttling_is_history() -> None:
    what = of(changed(("(cpu3/thermal_throttle/core_throttle_count):0", r"\1:156"),
                      ("(cpu3/thermal_throttle/core_throttle_total_time_ms):0", r"\1:480")))
    assert not what.limiters
    assert "156 times, 0.48 s in all" in what.earlier[0].says


def test_throttling_in_the_log_alone() -> None:
    text = LOG + ("[  100.000000] mce: CPU5: Core temperature/speed normal\n[  101.000000] CPU5:"
                  " Package temperature above threshold, cpu clock throttled (total events ="
                  " 7)\n")
    found, = of(text).limiters
    assert found.kind == "thermal" and "slowed down 7 times; for how long is not in" in found.says


def test_the_limit_that_equals_the_clock_comes_first() -> None:
    text = changed(slow(1200), ("max_perf_pct:100", "max_perf_pct:75"),
                   ("scaling_max_freq:4000000", "scaling_max_freq:1200000"),
                   ("cpu0: MSR_IA32_THERM_STATUS: 0x88280000",
                    "cpu0: MSR_IA32_THERM_STATUS: 0x88280400"))
    assert [found.kind for found in of(text).limiters][:2] == ["policy-max", "power-limit"]


def test_a_loss_that_nothing_explains() -> None:
    what = of(changed(slow(2000, watts=30)))
    assert not what.limiters and "not in the files" in what.verdict
    assert "had 2000 MHz" in what.notes[0].says and what.notes[0].when == "now"


def test_a_clock_below_what_the_driver_asks_for() -> None:
    """It is the hardware's; the limits of the driver are not to blame."""
    clock = f"{CPU}/cpu0/cpufreq/scaling_cur_freq:"
    what = of(HEALTHY + f"{clock}600000\n")
    assert not what.limiters and "not in the files" in what.verdict
    assert any("CPU 0 had 600 MHz, below the 800" in note.says for note in what.notes)
    assert not any("below" in note.says for note in of(HEALTHY + f"{clock}790000\n").notes)
    raised = changed(("(cpu0/cpufreq/scaling_min_freq):800000", r"\1:2000000"))
    assert [found.kind for found in of(raised).limiters] == ["policy-min"]
    assert not of(raised + f"{clock}600000\n").limiters


@pytest.mark.parametrize("cores, mhz, lost", [(4, 3700, False), (4, 3300, True), (4, 3500, False)])
def test_a_loss_is_measured_by_the_bin(cores: int, mhz: int, lost: bool) -> None:
    assert bool(Case(texts.read_text(changed(slow(mhz)))).losses) == lost


def test_one_busy_core_should_have_the_first_bin() -> None:
    rows = table(3700, 2.0).splitlines()
    rows[2] = rows[2].replace("\t2.00\t", "\t99.00\t")
    text = changed((re.escape(table()), "\n".join(rows) + "\n"))
    (row, mhz, _), = Case(texts.read_text(text)).losses
    assert (row.cpu, mhz) == ("0", 4000)


def test_without_a_busy_cpu_the_clock_is_not_judged() -> None:
    what = of(changed((re.escape(table()), table(800, 3.0, c6=95, pc6=60))))
    assert not what.limiters and "is not in the files" in what.notes[0].says


def test_a_part_without_turbo_is_no_fault() -> None:
    """It says no_turbo 1, and the switch cannot be changed."""
    cpuinfo = "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu aperfmperf hwp\n\n"
    assert not of(cpuinfo + f"{CPU}/intel_pstate/no_turbo:1\n").limiters
    assert of(cpuinfo.replace("hwp", "hwp ida") + f"{CPU}/intel_pstate/no_turbo:1\n").limiters


def test_on_battery() -> None:
    ac = "/sys/class/power_supply/AC/"
    assert [n.kind for n in of(f"{ac}type:Mains\n{ac}online:0\n").notes] == ["battery"]
    assert not of(f"{ac}type:Mains\n{ac}online:1\n").notes


def test_the_slow_cores_of_a_hybrid_are_no_loss() -> None:
    rows = table(3700).splitlines()
    rows[3:] = [row.replace("3700", "2500") for row in rows[3:]]
    text = changed((re.escape(table()), "\n".join(rows) + "\n"))
    assert of(text).notes[0].when == "now"
    hybrid = text + "cpu0: MSR_SECONDARY_TURBO_RATIO_LIMIT: 0x1919191919191919\n"
    assert of(hybrid).notes[0].when == "set"


def test_desired_is_the_drivers_in_passive_mode() -> None:
    text = changed(("HWP_REQUEST: 0x80002808", "HWP_REQUEST: 0x800a2808"),
                   ("scaling_driver:intel_pstate", "scaling_driver:intel_cpufreq"),
                   ("scaling_governor:powersave", "scaling_governor:schedutil"))
    assert not of(text).limiters


@pytest.mark.parametrize("table, limit, firmware, kinds", [
    ("2250000 2000000 1500000", 2250000, 2250000, []), ("", 2250000, 2250000, []),
    ("2250000 1500000", 1500000, 2250000, ["policy-max"]),
    ("2250000 1500000", 1500000, 1500000, ["firmware-max", "policy-max"]),
    ("", 1500000, 2250000, ["policy-max"])])
def test_the_table_of_acpi_cpufreq_ends_below_the_boost(table: str, limit: int, firmware: int,
                                                        kinds: list[str]) -> None:
    files = {"scaling_driver": "acpi-cpufreq", "cpuinfo_max_freq": 3414000,
             "scaling_max_freq": limit, "bios_limit": firmware,
             "scaling_available_frequencies": table}
    text = "".join(f"{CPU}/cpu0/cpufreq/{name}:{value}\n" for name, value in files.items())
    assert [found.kind for found in of(text).limiters] == kinds


def test_a_log_may_be_of_either_kernel() -> None:
    """The series takes all cores of some servers; a text seldom says whose kernel it was."""
    text = ("processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n"
            "flags\t\t: aperfmperf\n\n0xce 0x1400\n0x1ad 0x1e1e1e1e1e1e2626\n"
            "0x1ae 0x3838383838380802\n" + LOG)
    for ratio, wrong in ((1945, False), (1536, False), (1700, True)):
        found = of(text.replace("1114", str(ratio)).replace(LOG.splitlines()[1] + "\n", ""))
        assert [f.kind for f in found.limiters] == ["freq-max"] * wrong


AMD = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 33\n" \
      "flags\t\t: fpu aperfmperf cpb\n\n"


@pytest.mark.parametrize("line, kind", [
    ("0xc0010015: 0x000000004b000011", "turbo-off"),
    ("0xc0010061: 0x0000000000000021", "firmware-max"),
    (f"{CPU}/cpufreq/boost:0", "turbo-off"), (f"{CPU}/cpu0/cpufreq/boost:0", "turbo-off"),
    ("0xc0010015: 0x0000000049000011", None), ("0xc0010061: 0x0000000000000020", None),
    (f"{CPU}/cpufreq/boost:1", None)])
def test_amd(line: str, kind: str | None) -> None:
    assert [found.kind for found in of(AMD + line + "\n").limiters] == ([kind] if kind else [])


def test_c1_off_by_default_is_no_fault() -> None:
    assert not of(f"{CPU}/cpu0/cpuidle/state1/name:C1\n{CPU}/cpu0/cpuidle/state1/disable:1\n"
                  f"{CPU}/cpu0/cpuidle/state1/default_status:disabled\n").limiters


def test_c3_off_by_default_is_a_note_while_c6_is_on() -> None:
    text = "".join(f"{CPU}/cpu0/cpuidle/state{n}/{name}:{value}\n" for n, state, status, off in (
        (1, "C3", "disabled", 1), (2, "C6", "enabled", 0)) for name, value in (
        ("name", state), ("default_status", status), ("disable", off)))
    what = of(text)
    assert not what.limiters and [note.kind for note in what.notes] == ["idle-disabled"]
    assert [found.kind for found in of(text.replace("enabled\n", "disabled\n").replace(
        "disable:0", "disable:1")).limiters] == ["idle-disabled"] * 2


def test_states_that_were_switched_off_by_number() -> None:
    what = of(changed(("(cpu1/cpuidle/state1/disable):0", r"\1:1")))
    found, = what.limiters
    assert "C1 is disabled on CPU 1 while C6 is not: was it written by number?" in found.says
    assert "grep -lx C1" in found.remedy


@pytest.mark.parametrize("part", [TURBOSTAT, table(), SYSFS, LOG])
def test_absence_is_no_fact(part: str) -> None:
    what = of(part)
    assert not what.limiters and not what.earlier
    assert what.missing


@pytest.mark.parametrize("share", range(5, 100, 5))
def test_a_text_that_is_cut_anywhere(share: int) -> None:
    lines = HEALTHY.splitlines()
    cut = len(lines) * share // 100
    for part in (lines[:cut], lines[cut:]):
        assert not of("\n".join(part)).limiters


def test_every_rule_has_its_limiter_here() -> None:
    """A rule without a case in PLANTED could say anything."""
    seen = set()
    texts_ = [changed(*p[0]) for p in PLANTED] + [AMD + "0xc0010061: 0x1\n",
                                                 AMD + f"{CPU}/cpufreq/boost:0\n"]
    for text in texts_:
        case = Case(texts.read_text(text))
        seen |= {rule.ask.__name__ for rule in rules.RULES if next(rule.ask(case), None)}
    elsewhere = {"driver", "clamp", "invariance", "guest", "bias", "shallow_only", "below",
                 "no_tick", "battery", "idle_columns", "demoted"}
    assert {rule.ask.__name__ for rule in rules.RULES} - seen <= elsewhere


def test_files_of_two_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text(TURBOSTAT)
    two.write_text(TURBOSTAT.replace("0x6:5e:3 (6:94:3)", "0x6:8f:8 (6:143:8)"))
    assert cli.main(["explain", str(one), str(two)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "two machines" in said and "143" in said


TRACE = "          <idle>-0       [000] d..1.    77.102839: cpu_idle: state=1 cpu_id=0\n"


@pytest.mark.parametrize("content, says", [
    (b"", "is empty"), (b"hello\n", "no line of a kind"), (b"\x7fELF\2", "is a program"),
    (TRACE.encode(), "a trace, for cpuwhy idle"), (None, "nothing that is known here")])
def test_nothing_to_explain(content: bytes | None, says: str, tmp_path: Path,
                            capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "input"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    assert cli.main(["explain", str(path)]) == 2
    said = capsys.readouterr()
    assert not said.out and said.err.count("\n") == 1 and says in said.err


def test_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "paste.txt"
    path.write_text(changed(("max_perf_pct:100", "max_perf_pct:50"), slow()))
    assert cli.main(["explain", str(path)]) == 0
    text = capsys.readouterr().out
    number = next(n for n, line in enumerate(path.read_text().splitlines(), 1)
                  if "max_perf_pct" in line)
    assert f"      line {number}: " in text and "    echo 100 > /sys/" in text
    assert cli.main(["explain", "--json", str(path)]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["limiters"][0]["kind"] == "max-perf-pct"
    assert data["limiters"][0]["lines"][0]["line"] == number


def test_json_has_what_the_text_has() -> None:
    found = Finding("a", "says", "slow", "remedy", "now", (texts.Where("f", 3, "line"),), 1.0, "k")
    assert report.as_data(found) == {
        "kind": "k", "about": "a", "says": "says", "effect": "slow", "when": "now",
        "remedy": "remedy", "lines": [{"file": "f", "line": 3, "text": "line"}], "mhz": 1.0}


# --- live, of a root that is made up ---

def live_root(root: Path, registers: dict[int, int]) -> Path:
    for line in SYSFS.splitlines():
        match = re.match(r"/(.*):([^:/]*)$", line)
        assert match
        path = root / match[1]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(match[2] + "\n")
    (root / "proc/cpuinfo").write_text(
        "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 94\n"
        "model name\t: Intel(R) Core(TM) i7-6700 CPU @ 3.40GHz\nflags\t\t: aperfmperf hwp ida\n")
    for cpu in range(4):
        path = root / f"dev/cpu/{cpu}/msr"
        path.parent.mkdir(parents=True)
        with open(path, "wb") as file:
            for address, value in sorted(registers.items()):
                file.seek(address)
                file.write(struct.pack("<Q", value))
    return root


#: Eight bytes at each address of a file, so neighbours would overlap: a few at a time.
LIVE = [({0x64F: 0x400, 0x606: 0x3, 0x610: 0x8208}, "power-limit"),
        ({0x19C: 0x88280004}, "prochot"), ({0x648: 0x22, 0x630: 1}, None),
        ({0x1A0: 0x4000850089}, "turbo-off"), ({0x19C: 0x88280000}, None)]


@pytest.mark.parametrize("registers, kind", LIVE)
def test_live(registers: dict[int, int], kind: str | None, tmp_path: Path) -> None:
    case = explain.live(live_root(tmp_path, registers), LOG)
    what = explain.explain(case)
    assert [found.kind for found in what.limiters] == ([kind] if kind else []), what.limiters
    if kind:
        assert what.limiters[0].lines[0].file == "/dev/cpu/0/msr"


LIVE_FILES = [
    ("cpu1/cpufreq/scaling_max_freq", "1200000", "policy-max"),
    ("cpu1/cpufreq/scaling_min_freq", "3000000", "policy-min"),
    ("intel_pstate/max_perf_pct", "50", "max-perf-pct"),
    ("intel_pstate/min_perf_pct", "70", "min-perf-pct"),
    ("intel_pstate/no_turbo", "1", "turbo-off"),
    ("cpu1/cpufreq/energy_performance_preference", "power", "epp"),
    ("cpu1/cpuidle/state2/disable", "1", "idle-disabled"),
    ("cpu1/power/pm_qos_resume_latency_us", "10", "latency-limit"),
    ("cpu1/thermal_throttle/core_throttle_count", "90000", "thermal"),
    ("cpuidle/current_driver", "none", "idle-missing")]


@pytest.mark.parametrize("name, value, kind", LIVE_FILES, ids=[row[2] for row in LIVE_FILES])
def test_live_settings(name: str, value: str, kind: str, tmp_path: Path) -> None:
    """In explain, and in doctor, which asks the same rules."""
    root = live_root(tmp_path, {})
    (root / CPU[1:] / name).write_text(value + "\n")
    if kind == "thermal":
        (root / CPU[1:] / name.replace("count", "total_time_ms")).unlink()
    for limiters in (explain.explain(explain.live(root, LOG)).limiters,
                     doctor.examine(doctor.System(root, LOG, live=True))):
        assert [found.kind for found in limiters] == [kind], limiters


def test_live_without_a_driver(tmp_path: Path) -> None:
    root = live_root(tmp_path, {})
    for policy in root.glob(f"{CPU[1:]}/cpu*/cpufreq"):
        shutil.rmtree(policy)
    assert [found.kind for found in explain.explain(explain.live(root, LOG)).limiters] == [
        "no-driver"]


def test_live_names_registers_that_it_cannot_read(tmp_path: Path) -> None:
    what = explain.explain(explain.live(live_root(tmp_path, {}), LOG))
    assert not what.limiters
    assert [name for name, _ in what.missing] == [
        "registers: why the clock is low, heat and PROCHOT, power limits"]
