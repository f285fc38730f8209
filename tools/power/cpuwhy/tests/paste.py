# SPDX-License-Identifier: GPL-2.0
"""What somebody attaches of a healthy machine: an i7-6700 with all cores busy."""
from __future__ import annotations

CPU = "/sys/devices/system/cpu"
TURBOSTAT = """\
turbostat version 2023.11.07 - Len Brown <lenb@kernel.org>
CPUID(0): GenuineIntel 0x16 CPUID levels
CPUID(1): family:model:stepping 0x6:5e:3 (6:94:3) microcode 0xf0
CPUID(6): APERF, TURBO, DTS, PTM, HWP, HWPnotify, HWPwindow, HWPepp, No-HWPpkg, EPB
cpu2: MSR_IA32_MISC_ENABLE: 0x00850089 (TCC EIST MWAIT PREFETCH TURBO)
cpu2: MSR_PLATFORM_INFO: 0x80838f1012200
8 * 100.0 = 800.0 MHz max efficiency frequency
34 * 100.0 = 3400.0 MHz base frequency
cpu2: MSR_IA32_POWER_CTL: 0x0004005d (C1E auto-promotion: DISabled)
cpu2: MSR_TURBO_RATIO_LIMIT: 0x25262728
37 * 100.0 = 3700.0 MHz max turbo 4 active cores
38 * 100.0 = 3800.0 MHz max turbo 3 active cores
39 * 100.0 = 3900.0 MHz max turbo 2 active cores
40 * 100.0 = 4000.0 MHz max turbo 1 active cores
cpu2: MSR_CONFIG_TDP_NOMINAL: 0x00000022 (base_ratio=34)
cpu2: MSR_CONFIG_TDP_LEVEL_1: 0x00140118 (PKG_TDP_LVL1=280 LVL1_RATIO=20)
cpu2: MSR_CONFIG_TDP_LEVEL_2: 0x00000000 ()
cpu2: MSR_CONFIG_TDP_CONTROL: 0x00000000 ( lock=0)
cpu2: MSR_TURBO_ACTIVATION_RATIO: 0x00000021 (MAX_NON_TURBO_RATIO=33 lock=0)
cpu2: MSR_PKG_CST_CONFIG_CONTROL: 0x1e008006 (locked, pkg-cstate-limit=6 (pc8))
/dev/cpu_dma_latency: 2000000000 usec (default)
cpu0: MSR_PM_ENABLE: 0x00000001 (HWP)
cpu0: MSR_HWP_CAPABILITIES: 0x01082228 (high 40 guar 34 eff 8 low 1)
cpu0: MSR_HWP_REQUEST: 0x80002808 (min 8 max 40 des 0 epp 0x80 window 0x0 pkg 0x0)
cpu0: EPB: 6 (balanced)
cpu0: MSR_CORE_PERF_LIMIT_REASONS, 0x00000000 (Active: ) (Logged: )
cpu0: MSR_RAPL_POWER_UNIT: 0x000a0e03 (0.125000 Watts, 0.000061 Joules, 0.000977 sec.)
cpu0: MSR_PKG_POWER_INFO: 0x00000208 (65 W TDP, RAPL 0 - 0 W, 0.000000 sec.)
cpu0: MSR_PKG_POWER_LIMIT: 0x0042828a00dd8208 (UNlocked)
cpu0: MSR_IA32_TEMPERATURE_TARGET: 0x00640000 (100 C)
cpu0: MSR_IA32_PACKAGE_THERM_STATUS: 0x88280000 (60 C)
cpu0: MSR_IA32_THERM_STATUS: 0x88280000 (60 C +/- 1)
cpu1: MSR_IA32_THERM_STATUS: 0x88300000 (52 C +/- 1)
"""
COLUMNS = "Core\tCPU\tAvg_MHz\tBusy%\tBzy_MHz\tTSC_MHz\tCPU%c1\tCPU%c6\tPkg%pc2\tPkg%pc6\tPkgWatt\n"


def table(mhz: int = 3700, busy: float = 99.5, c6: float = 0, pc6: float = 0,
          watts: float = 52.0) -> str:
    """Of four cores, alike."""
    cells = f"{mhz * busy / 100:.0f}\t{busy:.2f}\t{mhz}\t3408\t0.10\t{c6:.2f}"
    package = f"\t0.00\t{pc6:.2f}\t{watts:.2f}"
    return COLUMNS + f"-\t-\t{cells}{package}\n" + "".join(
        f"{cpu}\t{cpu}\t{cells}{package if not cpu else ''}\n" for cpu in range(4))


SYSFS = "".join(f"{CPU}/cpu{n}/{name}:{value}\n" for n in range(4) for name, value in {
    "cpufreq/scaling_driver": "intel_pstate", "cpufreq/scaling_governor": "powersave",
    "cpufreq/scaling_available_governors": "performance powersave",
    "cpufreq/cpuinfo_max_freq": "4000000", "cpufreq/scaling_max_freq": "4000000",
    "cpufreq/cpuinfo_min_freq": "800000", "cpufreq/scaling_min_freq": "800000",
    "cpufreq/base_frequency": "3400000",
    "cpufreq/energy_performance_preference": "balance_performance",
    "cpufreq/energy_performance_available_preferences":
        "default performance balance_performance balance_power power",
    "power/energy_perf_bias": "6", "power/pm_qos_resume_latency_us": "0",
    "thermal_throttle/core_throttle_count": "0",
    "thermal_throttle/core_throttle_total_time_ms": "0",
    "cpuidle/state0/name": "POLL", "cpuidle/state0/disable": "0",
    "cpuidle/state1/name": "C1", "cpuidle/state1/disable": "0", "cpuidle/state1/latency": "2",
    "cpuidle/state1/usage": "9000", "cpuidle/state1/above": "90", "cpuidle/state1/below": "900",
    "cpuidle/state1/time": "9000000",
    "cpuidle/state2/name": "C6", "cpuidle/state2/disable": "0", "cpuidle/state2/latency": "85",
    "cpuidle/state2/usage": "9000", "cpuidle/state2/above": "90", "cpuidle/state2/below": "0",
    "cpuidle/state2/time": "90000000"}.items()) + f"""\
{CPU}/intel_pstate/status:active
{CPU}/intel_pstate/no_turbo:0
{CPU}/intel_pstate/max_perf_pct:100
{CPU}/intel_pstate/min_perf_pct:20
{CPU}/cpuidle/current_driver:intel_idle
{CPU}/cpuidle/current_governor:menu
/sys/class/powercap/intel-rapl:0/constraint_0_name:long_term
/sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw:65000000
/sys/class/powercap/intel-rapl:0/constraint_0_max_power_uw:65000000
/sys/class/powercap/intel-rapl-mmio:0/constraint_0_name:long_term
/sys/class/powercap/intel-rapl-mmio:0/constraint_0_power_limit_uw:65000000
/sys/class/thermal/cooling_device0/type:Processor
/sys/class/thermal/cooling_device0/cur_state:0
/sys/class/thermal/cooling_device0/max_state:10
/proc/uptime:40000.00 100000.00
/proc/cmdline:quiet
/sys/devices/system/clocksource/clocksource0/current_clocksource:tsc
"""
LOG = """\
[    0.000000] Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org)
[    0.060000] smpboot: CPU0: Intel(R) Core(TM) i7-6700 CPU @ 3.40GHz (family: 0x6, model: 0x5e)
[    0.070000] smpboot: Estimated ratio of average max frequency by base frequency \
(times 1024): 1114
[    0.080000] smp: Brought up 1 node, 4 CPUs
"""
HEALTHY = TURBOSTAT + table() + "\n" + SYSFS + LOG
