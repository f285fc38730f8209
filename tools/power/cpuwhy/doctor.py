# SPDX-License-Identifier: GPL-2.0
"""What is set up badly, a line each with the command that changes it.

Only files under sysfs and proc and the kernel's log are read, below a root that tests
can choose. A check is a function that yields findings; CHECKS lists them.
"""
from __future__ import annotations

import csv
import os
import re
import stat
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from . import turbo

CPUS = "sys/devices/system/cpu"
#: The project's table of real parts: beside this file once installed.
PARTS = (Path(__file__).with_name("turbo.csv"),
         Path(__file__).resolve().parents[2] / "testing/virtual-silicon/data/turbo.csv")
#: A thread that on the average sleeps and wakes this often is listed.
NOISY = 50.0
GRUB = "/etc/default/grub"
#: From here on the ratio's rounding is no explanation.
RATIO_OFF = 0.01


@dataclass(frozen=True)
class Finding:
    """What is wrong, what it does to the machine, and the command that changes it."""
    about: str
    says: str
    effect: str         # slow, hot, awake
    remedy: str


class System:
    """Files of a machine below a root, and what several checks ask for."""

    def __init__(self, root: Path, log: str | None = None):
        self.root = root
        self._log = log

    def text(self, name: str) -> str:
        """A file's content without its last newline; nothing if it cannot be read."""
        try:
            return (self.root / name).read_text(errors="replace").strip()
        except OSError:
            return ""

    def number(self, name: str) -> int | None:
        text = self.text(name)
        return int(text) if re.fullmatch(r"-?\d+", text) else None

    def per_cpu(self, name: str) -> dict[int, str]:
        """A file of each CPU that has it; @name may have wildcards."""
        found = {}
        for path in (self.root / CPUS).glob(f"cpu[0-9]*/{name}"):
            cpu = int(path.relative_to(self.root / CPUS).parts[0][3:])
            if text := self.text(str(path.relative_to(self.root))):
                found[cpu] = text
        return dict(sorted(found.items()))

    def cpus_by_value(self, name: str) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for cpu, value in self.per_cpu(name).items():
            found.setdefault(value, []).append(cpu)
        return found

    @cached_property
    def cpuinfo(self) -> dict[str, str]:
        """Of the first CPU."""
        first = self.text("proc/cpuinfo").split("\n\n")[0]
        pairs = (line.partition(":") for line in first.splitlines())
        return {name.strip(): value.strip() for name, _, value in pairs}

    @cached_property
    def flags(self) -> set[str]:
        return set(self.cpuinfo.get("flags", "").split())

    @cached_property
    def parameters(self) -> list[str]:
        return self.text("proc/cmdline").split()

    @cached_property
    def log(self) -> str:
        if self._log is not None:
            return self._log
        if self.root != Path("/"):
            return self.text("dmesg")
        with suppress(FileNotFoundError):
            return subprocess.run(["dmesg"], capture_output=True, text=True,
                                  errors="replace").stdout
        return ""

    def processes(self) -> Iterator[tuple[int, Path]]:
        for path in sorted((self.root / "proc").glob("[0-9]*")):
            if path.name.isdigit():
                yield int(path.name), path


def cpu_list(cpus: list[int]) -> str:
    """0-3,7 of [0, 1, 2, 3, 7]."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and cpu == parts[-1][-1] + 1:
            parts[-1].append(cpu)
        else:
            parts.append([cpu])
    return ",".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)


def _write(value: str, name: str) -> str:
    return (f"echo {value} | tee /{CPUS}/{name}" if "*" in name
            else f"echo {value} > /{CPUS}/{name}")


def _boot(parameter: str) -> str:
    return (f"sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{parameter} /' {GRUB} && update-grub"
            " && reboot")


def _whom(cpus: list[int]) -> str:
    return f"CPU{'s' * (len(cpus) > 1)} {cpu_list(cpus)}"


# --- frequency ---------------------------------------------------------------

def driver(system: System) -> Iterator[Finding]:
    drivers = system.cpus_by_value("cpufreq/scaling_driver")
    if not drivers:
        if "hypervisor" not in system.flags:
            yield Finding("driver", "no cpufreq driver: firmware alone chooses the clock", "slow",
                          "modprobe acpi-cpufreq")
        return
    if "acpi-cpufreq" in drivers and "hwp" in system.flags:
        yield Finding("driver", "acpi-cpufreq, though the CPU has HWP", "slow",
                      _boot("intel_pstate=active"))
    if "acpi-cpufreq" in drivers and "cppc" in system.flags:
        yield Finding("driver", "acpi-cpufreq, though the CPU has CPPC", "slow",
                      _boot("amd_pstate=active"))


def governor(system: System) -> Iterator[Finding]:
    drivers = system.per_cpu("cpufreq/scaling_driver")
    governors = system.cpus_by_value("cpufreq/scaling_governor")
    own = {"intel_pstate", "amd-pstate-epp"}
    for name, cpus in governors.items():
        # The drivers that let the hardware choose have a powersave of their own.
        if name == "powersave" and drivers.get(cpus[0]) not in own:
            yield Finding("governor", f"powersave on {_whom(cpus)}: always the lowest clock",
                          "slow", "cpupower frequency-set -g schedutil")
        elif name == "userspace":
            yield Finding("governor", f"userspace on {_whom(cpus)}: the clock stays where a"
                          " program put it", "slow", "cpupower frequency-set -g schedutil")
        elif name == "performance" and drivers.get(cpus[0]) not in own:
            yield Finding("governor", f"performance on {_whom(cpus)}: always the highest clock",
                          "hot", "cpupower frequency-set -g schedutil")
    if len(governors) > 1:
        yield Finding("governor", "CPUs differ: " + ", ".join(
            f"{name} on {cpu_list(cpus)}" for name, cpus in governors.items()), "slow",
            "cpupower frequency-set -g schedutil")


def preference(system: System) -> Iterator[Finding]:
    name = "cpufreq/energy_performance_preference"
    for value, cpus in system.cpus_by_value(name).items():
        if value == "power":
            yield Finding("EPP", f"power on {_whom(cpus)}: the clock rises late", "slow",
                          _write("balance_performance", f"cpu*/{name}"))
        elif value in ("performance", "0"):
            yield Finding("EPP", f"performance on {_whom(cpus)}: the clock hardly falls", "hot",
                          _write("balance_performance", f"cpu*/{name}"))
    for value, cpus in system.cpus_by_value("power/energy_perf_bias").items():
        if value.isdigit() and int(value) >= 13:
            yield Finding("EPB", f"{value} of 15 on {_whom(cpus)}: energy before speed", "slow",
                          _write("6", "cpu*/power/energy_perf_bias"))
    if system.text("sys/firmware/acpi/platform_profile") in ("low-power", "quiet"):
        yield Finding("EPP", "the platform's profile is low-power", "slow",
                      "echo balanced > /sys/firmware/acpi/platform_profile")


def limits(system: System) -> Iterator[Finding]:
    for kind, effect, wrong in (("max", "slow", lambda set_, can: set_ < can),
                                ("min", "hot", lambda set_, can: set_ > can)):
        can = system.per_cpu(f"cpufreq/cpuinfo_{kind}_freq")
        found: dict[tuple[int, int], list[int]] = {}
        for cpu, value in system.per_cpu(f"cpufreq/scaling_{kind}_freq").items():
            if value.isdigit() and can.get(cpu, "").isdigit() and wrong(int(value), int(can[cpu])):
                found.setdefault((int(value), int(can[cpu])), []).append(cpu)
        for (khz, limit), cpus in found.items():
            yield Finding("limits", f"scaling_{kind}_freq is {khz // 1000} MHz on {_whom(cpus)},"
                          f" the hardware's is {limit // 1000}", effect,
                          _write(str(limit), f"cpu*/cpufreq/scaling_{kind}_freq"))
    for name, bad, good, says in (
            ("intel_pstate/no_turbo", "1", "0", "turbo is switched off"),
            ("cpufreq/boost", "0", "1", "boost is switched off")):
        if system.text(f"{CPUS}/{name}") == bad:
            yield Finding("limits", says, "slow", _write(good, name))
    top = system.number(f"{CPUS}/intel_pstate/max_perf_pct")
    if top is not None and top < 100:
        yield Finding("limits", f"intel_pstate allows {top} % of the highest clock", "slow",
                      _write("100", "intel_pstate/max_perf_pct"))
    clamp = system.number("proc/sys/kernel/sched_util_clamp_max")
    if clamp is not None and clamp < 1024:
        yield Finding("limits", f"utilisation is clamped to {clamp} of 1024", "slow",
                      "sysctl kernel.sched_util_clamp_max=1024")
    hot = [cpu for cpu, count in system.per_cpu("thermal_throttle/core_throttle_count").items()
           if count.isdigit() and int(count)]
    if hot:
        yield Finding("limits", f"{_whom(hot)} got too hot and was slowed down", "slow",
                      "check fans and cooling")


RATIO_LINE = re.compile(r"Estimated ratio of average max frequency by base frequency"
                        r" \(times 1024\): (\d+)")


FREQ_MAX = "sys/module/aperfmperf/parameters/freq_max"
INVARIANCE = "sys/kernel/debug/x86/freq_invariance"


def invariance(system: System) -> Iterator[Finding]:
    bad = re.findall(r"CPU (\d+): APERF and MPERF make no sense", system.log)
    if bad:
        whom = _whom(sorted({int(cpu) for cpu in bad}))
        yield Finding("invariance", f"counters of {whom} made no sense, their clock counted as the"
                      " highest meanwhile", "slow",
                      "grep cpu /sys/kernel/debug/x86/freq_invariance")
    if system.cpuinfo and "aperfmperf" not in system.flags:
        if "schedutil" in system.cpus_by_value("cpufreq/scaling_governor"):
            yield Finding("invariance", "off: the CPU has no APERF and MPERF, schedutil does not"
                          " know the clock", "slow", "cpupower frequency-set -g ondemand")
        return
    if "went wobbly" in system.log:
        yield Finding("invariance", "off since a bad sample of APERF and MPERF", "slow", "reboot")
    elif system.text(FREQ_MAX) == "off":
        said = re.findall(r"freq_invariance: (off.*)", system.log)
        yield Finding("invariance", said[-1] if said else "off", "slow",
                      "dmesg | grep freq_invariance")
    elif (system.log and not RATIO_LINE.search(system.log)
          and not system.text(FREQ_MAX)
          and system.cpuinfo.get("vendor_id") == "GenuineIntel"
          and "Linux version" in system.log):
        yield Finding("invariance", "off: the kernel found no turbo table of this model"
                      f" ({system.cpuinfo.get('model name', 'unknown')})", "slow",
                      "use a kernel that knows the model")


def why_off(system: System) -> str:
    """"off" and why, if frequency invariance is; nothing if it is on."""
    return next((found.says for found in invariance(system) if found.says.startswith("off")), "")


def parts(paths: tuple[Path, ...] = PARTS) -> list[dict[str, str]]:
    for path in paths:
        if path.is_file():
            with path.open(newline="") as rows:
                return list(csv.DictReader(rows))
    return []


def _all_cores(part: dict[str, str]) -> int:
    """In place of its "expected", which the base's rule gives; 0 if it is not known."""
    registers = {int(key[4:], 16): int(part[key] or "0", 16)
                 for key in ("msr_0xce", "msr_0x1ad", "msr_0x1ae")}
    base = registers[0xCE] >> 8 & 0xFF
    return turbo.freq_max(int(part["model"], 16), registers, base) or 0


def freq_max(system: System) -> Iterator[Finding]:
    name = " ".join(system.cpuinfo.get("model name", "").split())
    ratio = None
    if of_cpus := re.search(r"^cpu \d+ .*freq_max (\d+)", system.text(INVARIANCE), re.M):
        ratio = int(of_cpus[1])
    if ratio is None and (said := RATIO_LINE.search(system.log)):
        ratio = int(said[1])
    if not ratio or not name:
        return
    patched = bool(system.text(FREQ_MAX))
    known: set[int] = set()
    all_cores = False
    for row in parts():
        if " ".join(row["cpu_name"].split()) != name or not row["expected"].isdigit():
            continue
        all_cores = patched and int(row["model"], 16) in turbo.ALL_CORES
        known.add(_all_cores(row) if all_cores else int(row["expected"]))
    if known and all(abs(ratio - value) > RATIO_OFF * value for value in known):
        yield Finding("freq_max", f"is {ratio}/1024 of base, real parts of this name have"
                      f" {'/'.join(map(str, sorted(known)))}",
                      "slow" if ratio > max(known) else "hot",
                      f"echo {'255c' if all_cores else '4c'} > /{FREQ_MAX}" if patched
                      else "update the microcode or the kernel")


def clock(system: System) -> Iterator[Finding]:
    source = "sys/devices/system/clocksource/clocksource0"
    current = system.text(f"{source}/current_clocksource")
    if current in ("hpet", "acpi_pm", "jiffies"):
        said = re.findall(r"Marking (?:TSC unstable|clocksource 'tsc' as unstable) (.*)",
                          system.log)
        why = f" ({said[-1].strip()})" if said else ""
        yield Finding("clock", f"clocksource {current}: each reading takes about a us{why}",
                      "slow", f"echo tsc > /{source}/current_clocksource"
                      if "tsc" in system.text(f"{source}/available_clocksource").split()
                      else "update the firmware")


# --- idle --------------------------------------------------------------------

#: Kernel parameters that keep CPUs awake.
KEEP_AWAKE = (r"idle=poll", r"idle=halt", r"nohz=off", r"highres=off", r"cpuidle\.off=1",
              r"intel_idle\.max_cstate=[0-5]", r"processor\.max_cstate=[0-5]",
              r"intel_idle\.states_off=[1-9]\d*", r"idle=nomwait")


def idle_driver(system: System) -> Iterator[Finding]:
    directory = f"{CPUS}/cpuidle"
    name = system.text(f"{directory}/current_driver")
    if name in ("", "none") and (system.root / CPUS).is_dir():
        yield Finding("idle", "no cpuidle driver: CPUs only halt", "hot",
                      "modprobe intel_idle; check that firmware gives C-states")
    for parameter in system.parameters:
        if any(re.fullmatch(pattern, parameter) for pattern in KEEP_AWAKE):
            yield Finding("idle", f"the kernel was started with {parameter}", "hot",
                          f"sed -i 's/{parameter}//' {GRUB} && update-grub && reboot")
    if system.text(f"{directory}/current_governor") == "ladder" and "nohz=off" not in \
            system.parameters:
        yield Finding("idle", "governor ladder, which is made for a tick that never stops", "hot",
                      f"echo menu > /{directory}/current_governor")


def disabled(system: System) -> Iterator[Finding]:
    found: dict[tuple[str, str], list[int]] = {}
    for path in (system.root / CPUS).glob("cpu[0-9]*/cpuidle/state[0-9]*"):
        name = str(path.relative_to(system.root))
        if system.text(f"{name}/disable") == "1" and \
                system.text(f"{name}/default_status") != "disabled":
            key = (path.name, system.text(f"{name}/name"))
            found.setdefault(key, []).append(int(path.parts[-3][3:]))
    for (state, title), cpus in sorted(found.items()):
        if title != "POLL":
            yield Finding("idle", f"{title} is disabled on {_whom(cpus)}", "hot",
                          _write("0", f"cpu*/cpuidle/{state}/disable"))


def _name_of(system: System, process: Path) -> str:
    name = system.text(str((process / "comm").relative_to(system.root)))
    return f"{name or '?'} (PID {process.name})"


def latency_holders(system: System) -> Iterator[Finding]:
    """Who has /dev/cpu_dma_latency open. The value asked for cannot be seen, but the
    smallest of all can."""
    limit = ""
    device = system.root / "dev/cpu_dma_latency"
    try:
        if stat.S_ISCHR(device.stat().st_mode) or system.root != Path("/"):
            value, = struct.unpack("=i", device.read_bytes()[:4])
            limit = f"; the limit is {value} us"
    except (OSError, struct.error):
        pass
    for pid, process in system.processes():
        try:
            held = any(os.readlink(fd) == "/dev/cpu_dma_latency"
                       for fd in (process / "fd").iterdir())
        except OSError:
            continue
        if held:
            yield Finding("PM QoS", f"{_name_of(system, process)} holds /dev/cpu_dma_latency"
                          f"{limit}", "hot", f"kill {pid}")
    name = "power/pm_qos_resume_latency_us"
    for value, cpus in system.cpus_by_value(name).items():
        if value != "0":
            yield Finding("PM QoS", f"{_whom(cpus)} may take "
                          + ("no latency" if value == "n/a" else f"{value} us")
                          + " to wake up", "hot", _write("0", f"cpu*/{name}"))


def tick(system: System) -> Iterator[Finding]:
    """Of the times that a CPU wanted to be idle, how often the tick was stopped."""
    text = system.text("proc/timer_list")
    bad = []
    for part in re.split(r"^cpu: ", text, flags=re.M)[1:]:
        calls = re.search(r"\.idle_calls\s*: (\d+)", part)
        sleeps = re.search(r"\.idle_sleeps\s*: (\d+)", part)
        if calls and sleeps and int(calls[1]) >= 1000 and int(sleeps[1]) * 100 < int(calls[1]):
            bad.append((int(part.split()[0]), int(calls[1]), int(sleeps[1])))
    if bad:
        calls_, sleeps_ = sum(b[1] for b in bad), sum(b[2] for b in bad)
        yield Finding("tick", f"stopped in {sleeps_} of {calls_} idle times on"
                      f" {_whom([b[0] for b in bad])}", "awake",
                      "cpuwhy idle --record 10 says what is in the way")
    if system.text("proc/sys/kernel/timer_migration") == "0":
        yield Finding("tick", "timers stay on idle CPUs", "awake",
                      "sysctl kernel.timer_migration=1")


def noisy(system: System) -> Iterator[Finding]:
    """Threads that sleep and wake often, on the average since they began."""
    uptime = float((system.text("proc/uptime").split() or ["0"])[0])
    hz = os.sysconf("SC_CLK_TCK")
    found = []
    for _, process in system.processes():
        rate = 0.0
        for thread in (process / "task").glob("[0-9]*"):
            name = str(thread.relative_to(system.root))
            slept = re.search(r"^voluntary_ctxt_switches:\s*(\d+)",
                              system.text(f"{name}/status"), re.M)
            fields = system.text(f"{name}/stat").rpartition(")")[2].split()
            if slept and len(fields) > 19:
                age = uptime - int(fields[19]) / hz
                rate += int(slept[1]) / age if age > 10 else 0
        if rate >= NOISY:
            found.append((rate, process))
    for rate, process in sorted(found, reverse=True, key=lambda item: item[0]):
        yield Finding("timers", f"{_name_of(system, process)} wakes {rate:.0f} times a second",
                      "awake", "cpuwhy idle --record 10 --wakers 20")


CHECKS: tuple[Callable[[System], Iterator[Finding]], ...] = (
    driver, governor, preference, limits, invariance, freq_max, clock,
    idle_driver, disabled, latency_holders, tick, noisy)


def examine(system: System) -> list[Finding]:
    return [finding for check in CHECKS for finding in check(system)]
