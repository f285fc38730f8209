# SPDX-License-Identifier: GPL-2.0
"""A machine that is set up well, and one mistake at a time."""
from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from cpuwhy import case, doctor, settings

CPU = "sys/devices/system/cpu"
MODEL = "Intel(R) Core(TM) i5-2400 CPU @ 3.10GHz"
LOG = ("[    0.000000] Linux version 6.12.117\n[    0.200000] smp: Brought up 1 node, 2 CPUs\n"
       "[    0.300000] smpboot: Estimated ratio of average max frequency by base frequency (times"
       " 1024): 1057\n")
#: Of a server with 64 cores, 39 for 2.05 and 29 for 1.52 times its base clock of 1.9 GHz
SERVER = "INTEL(R) XEON(R) PLATINUM 8592+"
CPUINFO = (f"processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 42\n"
           f"model name\t: {MODEL}\nflags\t\t: fpu aperfmperf ida\n\nprocessor\t: 1\n")
TIMERS = ("cpu: 0\n  .idle_calls     : 5000\n  .idle_sleeps    : 3000\n"
          "cpu: 1\n  .idle_calls     : 5000\n  .idle_sleeps    : 3000\n")
STAT = "77 (a daemon) S " + " ".join(["0"] * 18 + ["100"]) + " 0"
GOOD: dict[str, str | None] = {
    "proc/cpuinfo": CPUINFO, "proc/timer_list": TIMERS,
    "proc/cmdline": "quiet", "proc/uptime": "1000.00 1900.00", "dmesg": LOG,
    "proc/sys/kernel/timer_migration": "1", "proc/sys/kernel/sched_util_clamp_max": "1024",
    "proc/77/comm": "daemon",
    "proc/77/task/77/stat": STAT,
    "proc/77/task/77/status": "Name:\tdaemon\nvoluntary_ctxt_switches:\t900\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
    f"{CPU}/cpuidle/current_driver": "intel_idle", f"{CPU}/cpuidle/current_governor": "menu",
    f"{CPU}/intel_pstate/no_turbo": "0", f"{CPU}/intel_pstate/max_perf_pct": "100",
    **{f"{CPU}/cpu{n}/{name}": value for n in (0, 1) for name, value in {
        "cpufreq/scaling_driver": "intel_cpufreq", "cpufreq/scaling_governor": "schedutil",
        "cpufreq/cpuinfo_max_freq": "3400000", "cpufreq/scaling_max_freq": "3400000",
        "cpufreq/scaling_available_governors": "ondemand performance schedutil",
        "cpufreq/cpuinfo_min_freq": "1200000", "cpufreq/scaling_min_freq": "1200000",
        "power/pm_qos_resume_latency_us": "0", "power/energy_perf_bias": "6",
        "thermal_throttle/core_throttle_count": "0",
        "cpuidle/state0/name": "POLL", "cpuidle/state0/disable": "0",
        "cpuidle/state1/name": "C6", "cpuidle/state1/disable": "0"}.items()}}


OF_SERVER: dict[str, str | None] = {
    "proc/cpuinfo": CPUINFO.replace(MODEL, SERVER).replace("42", "207"),
    **{f"{CPU}/cpu{n}/cpufreq/{name}": value for n in (0, 1) for name, value in (
        ("base_frequency", "1900000"), ("cpuinfo_max_freq", "3900000"),
        ("scaling_max_freq", "3900000"))}}


def system(root: Path, changes: dict[str, str | None], live: bool = True) -> doctor.System:
    """@live: as on the machine itself."""
    for name, text in {**GOOD, **changes}.items():
        if text is not None:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
    return doctor.System(root, live=live)


def examine(root: Path, changes: dict[str, str | None]) -> list[case.Finding]:
    return doctor.examine(system(root, changes))


def test_nothing_to_say_of_a_good_machine(tmp_path: Path) -> None:
    assert examine(tmp_path, {}) == []


def test_all_cores_of_a_server_are_right(tmp_path: Path) -> None:
    assert examine(tmp_path, {
        **OF_SERVER, doctor.FREQ_MAX: "255c",
        "dmesg": LOG.replace("1057", "1562")}) == []


# What is changed; about what the finding is, a part of what it says, and of the command.
MISTAKES: list[tuple[dict[str, str | None], str, str, str]] = [
    ({f"{CPU}/cpu{n}/cpufreq/scaling_driver": None for n in (0, 1)},
     "driver", "no cpufreq driver", "modprobe"),
    ({"proc/cpuinfo": CPUINFO.replace("fpu", "hwp"),
      **{f"{CPU}/cpu{n}/cpufreq/scaling_driver": "acpi-cpufreq" for n in (0, 1)}},
     "driver", "though the CPU has HWP", "intel_pstate=active"),
    ({f"{CPU}/cpu1/cpufreq/scaling_governor": "powersave"},
     "governor", "powersave on CPU 1: always the lowest", "schedutil"),
    ({f"{CPU}/cpu1/cpufreq/scaling_governor": "ondemand"},
     "governor", "CPUs differ: schedutil on 0, ondemand on 1", "schedutil"),
    ({f"{CPU}/cpu{n}/cpufreq/scaling_governor": "performance" for n in (0, 1)},
     "governor", "performance on CPUs 0-1", "schedutil"),
    ({f"{CPU}/cpu0/cpufreq/energy_performance_preference": "power"},
     "EPP", "power on CPU 0", "echo balance_performance"),
    ({f"{CPU}/cpu0/power/energy_perf_bias": "15"}, "EPB", "15 of 15 on CPU 0", "echo 6"),
    ({f"{CPU}/cpu1/cpufreq/scaling_max_freq": "1200000"},
     "limits", "scaling_max_freq is 1200 MHz on CPU 1, the hardware's is 3400", "echo 3400000"),
    ({f"{CPU}/cpu1/cpufreq/scaling_min_freq": "1300000"},
     "limits", "scaling_min_freq is 1300 MHz on CPU 1", "echo 1200000"),
    ({f"{CPU}/intel_pstate/no_turbo": "1"}, "limits", "turbo is switched off", "echo 0"),
    ({f"{CPU}/intel_pstate/max_perf_pct": "99"}, "limits", "99 %", "echo 100"),
    ({"proc/sys/kernel/sched_util_clamp_max": "512"}, "limits", "512 of 1024", "sysctl"),
    ({f"{CPU}/cpu1/thermal_throttle/core_throttle_count": "3"}, "limits", "CPU 1 got too hot",
     "cooling"),
    ({"dmesg": LOG + "Scheduler frequency invariance went wobbly, disabling!"},
     "invariance", "since a bad sample", "reboot"),
    ({"dmesg": "\n".join(LOG.splitlines()[:2])},
     "invariance", "found no turbo table", "a kernel that knows"),
    ({doctor.FREQ_MAX: "off",
      "dmesg": LOG + "freq_invariance: off, APERF and MPERF do not count"},
     "invariance", "off, APERF and MPERF do not count", "dmesg"),
    ({"dmesg": LOG + "freq_invariance: CPU 1: APERF and MPERF make no sense, frequency scale"},
     "invariance", "counters of CPU 1 made no sense", "debug"),
    ({"proc/cpuinfo": CPUINFO.replace("aperfmperf", "")},
     "invariance", "no APERF and MPERF", "ondemand"),
    ({"dmesg": LOG.replace("1057", "1024")}, "freq_max", "is 1024/1024", "microcode"),
    ({doctor.FREQ_MAX: "nominal",
      f"sys/{settings.INVARIANCE}": "turbo 1 3600\ncpu 0 scale 700 freq_max 1024 skipped 0"},
     "freq_max", "is 1024/1024", "echo 4c"),
    ({**OF_SERVER, doctor.FREQ_MAX: "4c",
      f"sys/{settings.INVARIANCE}": "turbo 32 3900\ncpu 0 scale 700 freq_max 2101 skipped 0"},
     "freq_max", "is 2101/1024 of base, real parts of this name and these clocks have 1562",
     "echo 255c"),
    ({**OF_SERVER, "dmesg": LOG.replace("1057", "1670")},
     "freq_max", "is 1670/1024 of base, real parts of this name and these clocks have 2101",
     "the kernel"),
    ({"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet",
      "sys/devices/system/clocksource/clocksource0/available_clocksource": "hpet acpi_pm"},
     "clock", "clocksource hpet", "firmware"),
    ({f"{CPU}/cpuidle/current_driver": "none"}, "idle", "no cpuidle driver", "intel_idle"),
    ({"proc/cmdline": "quiet intel_idle.max_cstate=1"},
     "idle", "intel_idle.max_cstate=1", "update-grub"),
    ({f"{CPU}/cpuidle/current_governor": "ladder"}, "idle", "ladder", "echo menu"),
    ({f"{CPU}/cpu{n}/cpuidle/state1/disable": "1" for n in (0, 1)},
     "idle", "C6 is disabled on CPUs 0-1", "state1/disable"),
    ({f"{CPU}/cpu1/power/pm_qos_resume_latency_us": "20"},
     "PM QoS", "CPU 1 may take 20 us to wake up", "echo 0"),
    ({"proc/timer_list": TIMERS.replace("3000", "49")},
     "tick", "stopped in 98 of 10000 idle times on CPUs 0-1", "cpuwhy idle"),
    ({"proc/sys/kernel/timer_migration": "0"}, "tick", "timers stay on idle CPUs", "sysctl"),
    ({"proc/77/task/77/status": "voluntary_ctxt_switches:\t99900"},
     "wake-ups", "daemon (PID 77) went to sleep and was woken 100 times a second", "cpuwhy idle"),
]


@pytest.mark.parametrize("changes, about, says, remedy", MISTAKES,
                         ids=[f"{m[1]}-{n}" for n, m in enumerate(MISTAKES)])
def test_one_mistake(changes: dict[str, str | None], about: str, says: str, remedy: str,
                     tmp_path: Path) -> None:
    found = examine(tmp_path, changes)
    matching = [f for f in found if f.about == about and says in f.says]
    assert len(matching) == 1 and remedy in matching[0].remedy, found
    # Two governors may both be worth a line; anything else is a consequence.
    assert {f.about for f in found} == {about}


def test_who_holds_the_latency_limit(tmp_path: Path) -> None:
    device = tmp_path / "dev/cpu_dma_latency"
    device.parent.mkdir()
    device.write_bytes(struct.pack("=i", 20))
    (tmp_path / "proc/77/fd").mkdir(parents=True)
    os.symlink("/dev/cpu_dma_latency", tmp_path / "proc/77/fd/5")
    finding, = examine(tmp_path, {})
    assert finding.says == "daemon (PID 77) holds /dev/cpu_dma_latency; the limit is 20 us"


@pytest.mark.parametrize("drivers", ["intel_pstate", "amd-pstate-epp"])
def test_powersave_is_right_where_the_hardware_chooses(drivers: str, tmp_path: Path) -> None:
    assert examine(tmp_path, {f"{CPU}/cpu{n}/cpufreq/scaling_{name}": value for n in (0, 1)
                              for name, value in (("driver", drivers),
                                                  ("governor", "powersave"))}) == []


def test_the_table_of_real_parts_is_there() -> None:
    assert len(settings.parts()) > 100


# --- copies of machines, where absence is no fact ---

INTEL = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: {}\nflags\t\t: {}\n\n"


def copy(root: Path, files: dict[str, str]) -> doctor.System:
    (root / CPU).mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return doctor.System(root)


def found_in(root: Path, files: dict[str, str]) -> list[case.Finding]:
    return [one for one in doctor.examine(copy(root, files)) if one.effect != "note"]


SPARSE: list[dict[str, str]] = [
    {}, {"proc/cpuinfo": INTEL.format("a", "fpu aperfmperf hwp")},
    {"proc/cpuinfo": INTEL.format("a", "fpu aperfmperf hwp\ncpu MHz\t\t: 802.990")},
    {f"{CPU}/intel_pstate/status": "active", f"{CPU}/intel_pstate/min_perf_pct": "26",
     f"{CPU}/cpuidle/current_driver": "intel_idle", f"{CPU}/cpu0/topology/core_id": "0"},
    {f"{CPU}/cpu0/topology/core_id": "0", f"{CPU}/cpu1/online": "0"},
    # Virtual machines halt; the host has idle states and clocks.
    {"proc/cpuinfo": INTEL.format("a", "fpu msr hypervisor"),
     f"{CPU}/cpuidle/current_driver": "none", f"{CPU}/cpuidle/current_governor_ro": "menu"},
    {"proc/cpuinfo": INTEL.format("a", "fpu hypervisor"), f"{CPU}/cpuidle/current_driver": "none",
     f"{CPU}/cpuidle/current_governor": "ladder", "proc/cmdline": "idle=halt"}]


@pytest.mark.parametrize("files", SPARSE)
def test_absence_is_no_fact(files: dict[str, str], tmp_path: Path) -> None:
    assert found_in(tmp_path, files) == []
    unseen = doctor.unseen(doctor.System(tmp_path))
    assert {"cpuN/cpufreq", "dmesg", "proc/timer_list"} <= set(unseen)


def test_on_the_machine_absence_is_one(tmp_path: Path) -> None:
    gone: dict[str, str | None] = {name: None for name in GOOD if "cpufreq" in name}
    assert [one.kind for one in examine(tmp_path, gone)] == ["no-driver"]
    assert "cpuN/cpufreq" not in doctor.unseen(system(tmp_path, {}, live=True))


def test_what_the_good_machine_lacks(tmp_path: Path) -> None:
    assert doctor.unseen(system(tmp_path, {}, live=False)) == []
    (tmp_path / "dmesg").unlink()
    assert doctor.unseen(doctor.System(tmp_path, live=False)) == ["dmesg"]


@pytest.mark.parametrize("name", [
    "dmesg", "sos_commands/kernel/dmesg", "var/log/dmesg", "logs/dmesg", "boot.txt"])
def test_where_collectors_put_the_log(name: str, tmp_path: Path) -> None:
    """sos, hw-probe, supportconfig."""
    log = LOG + "[   99.000000] Scheduler frequency invariance went wobbly, disabling!"
    found = found_in(tmp_path, {
        "proc/cpuinfo": INTEL.format("a", "fpu aperfmperf"), name: log})
    assert [one.kind for one in found] == ["invariance"]


def test_a_log_that_is_given(tmp_path: Path) -> None:
    copy(tmp_path, {"proc/cpuinfo": INTEL.format("a", "fpu aperfmperf")})
    given = doctor.System(tmp_path, LOG + "[   99.000000] invariance went wobbly, disabling!")
    assert [one.kind for one in doctor.examine(given)] == ["invariance"]


LOGGED = [(row["cpu_name"], value) for row in settings.parts()
          for value in (row["logged"] or "").replace("/", " ").split()]


@pytest.mark.parametrize("name, value", LOGGED)
def test_what_real_machines_have_logged(name: str, value: str, tmp_path: Path) -> None:
    """cTDP, overclocking and firmware move base or table within one name."""
    assert found_in(tmp_path, {
        "proc/cpuinfo": INTEL.format(name, "fpu aperfmperf"),
        "dmesg": LOG.replace("1057", value)}) == []


def test_there_are_logged_values() -> None:
    assert len({name for name, _ in LOGGED}) > 20


@pytest.mark.parametrize("driver, offered, governor, command", [
    ("acpi-cpufreq", "conservative powersave userspace ondemand performance", "performance",
     "-g ondemand"),
    ("acpi-cpufreq", "conservative performance schedutil", "powersave", "-g schedutil"),
    ("acpi-cpufreq", "performance powersave", "powersave", ""),
    ("intel_pstate", "performance powersave", "userspace", "-g powersave")])
def test_a_governor_that_is_offered(driver: str, offered: str, governor: str, command: str,
                                    tmp_path: Path) -> None:
    found, = found_in(tmp_path, {f"{CPU}/cpu0/cpufreq/scaling_{name}": value for name, value in (
        ("driver", driver), ("available_governors", offered), ("governor", governor))})
    assert found.remedy == f"cpupower frequency-set {command}" * bool(command)


PERCENT = {f"{CPU}/cpu0/cpufreq/cpuinfo_min_freq": "400000",
           f"{CPU}/cpu0/cpufreq/cpuinfo_max_freq": "4600000"}


@pytest.mark.parametrize("percent, wrong", [(9, False), (11, False), (12, True), (50, True)])
def test_min_perf_pct_against_the_hardware(percent: int, wrong: bool, tmp_path: Path) -> None:
    found = found_in(tmp_path, {**PERCENT, f"{CPU}/intel_pstate/min_perf_pct": str(percent)})
    assert bool(found) == wrong
    if wrong:
        assert "(hardware: 400 of 4600 MHz = 9 %)" in found[0].says


@pytest.mark.parametrize("stat, uptime, listed", [
    (STAT, "1000.00 1900.00", True),
    (STAT.replace(") S " + "0 " * 6, ") S " + "0 " * 5 + f"{doctor.KTHREAD} "), "1000.00 1900.00",
     False),                                        # a thread of the kernel
    (STAT, "1000.00 900.00", False),                # the machine is busy
    ("77 (a daemon) S " + " ".join(["0"] * 11 + ["90000"] + ["0"] * 6 + ["100"]) + " 0",
     "1000.00 1900.00", False)])                    # the program is busy
def test_who_is_woken_often(stat: str, uptime: str, listed: bool, tmp_path: Path) -> None:
    found = examine(tmp_path, {
        "proc/77/task/77/status": "voluntary_ctxt_switches:\t99900",
        "proc/77/task/77/stat": stat, "proc/uptime": uptime})
    assert [one.kind for one in found] == ["wake-ups"] * listed


def test_c1e_off_c6_on(tmp_path: Path) -> None:
    """What a script does that writes state2/disable where another state is in front."""
    names: dict[str, str | None] = {
        f"{CPU}/cpu{n}/cpuidle/state{at}/{name}": value for n in (0, 1)
        for at, state, off in ((1, "C1", "0"), (2, "C1E", "1"), (3, "C6", "0"))
        for name, value in (("name", state), ("disable", off))}
    found, = examine(tmp_path, names)
    assert "C1E is disabled on CPUs 0-1 while C6 is not: was it written by number?" in found.says
    assert "grep -lx C1E" in found.remedy
    deepest = {name: "1" for name, value in names.items() if name.endswith("state3/disable")}
    both, c6 = examine(tmp_path, {**names, **deepest})
    assert "number" not in both.says and "number" not in c6.says
