# SPDX-License-Identifier: GPL-2.0
"""Texts whose lines belong to the CPU, state or zone of a line above: cpupower and
cpufreq-info in any language (by their numbers, not their words), cpupower idle-info, trees
of powercap; and single lines of i7z and of a log without times.

What such a tool says of a file of sysfs is put there.
"""
from __future__ import annotations

import re
from collections.abc import Callable

BASE = "devices/system/cpu"
#: Of cpupower's lines: patterns below take the square of a line's length.
LONGEST = 300
CLOCK = r"([\d.]+) ([kMG])Hz"
DRIVER = re.compile(r"(?:[^:]*: ?|\w+ )(acpi-cpufreq|intel_pstate|intel_cpufreq|amd[-_]pstate"
                    r"(?:-epp)?|pcc-cpufreq|cppc_cpufreq|powernow-k\d|speedstep-\w+|p4-clockmod)$")
ANALYSING = re.compile(r"(?:an[aá]l\w+|analy\w+) (?:\w+ )?CPU (\d+) ?: *$|CPU (\d+) wird \w+:$",
                       re.I)
HARDWARE = re.compile(rf"[^:]+: {CLOCK} - {CLOCK}$")
POLICY = re.compile(rf"[^:]+: .*?{CLOCK} \w+ {CLOCK} ?\.?$")
CURRENT = re.compile(rf"current CPU frequency(?: is|:) +{CLOCK}")
GOVERNOR = re.compile(r'[^"]*"(conservative|ondemand|performance|powersave|schedutil|userspace)"')
OFFERED = re.compile(r"[^:]+: ((?:(?:conservative|ondemand|performance|powersave|schedutil"
                     r"|userspace)[, ]*)+)$")
#: cpupower frequency-info -o
SHORT = re.compile(r"CPU +(\d+) +(\d+) kHz \( *\d+ %\) +- +(\d+) kHz \( *(\d+) %\) +- +(\w+)$")
OF_STATE = {"Flags/Description": "desc", "Latency": "latency", "Residency": "residency",
            "Usage": "usage", "Duration": "time"}
OF_ZONE = re.compile(r"(name|enabled|max_power_uw|power_limit_uw|time_window_us): (\S+)$")
I7Z = re.compile(r"TURBO (?:DISABLED|ENABLED) on|CPU Multiplier \d+x|Max TURBO Multiplier|"
                 r"Real Current Frequency")
#: throttled --debug says each bit of register 0x19c in words.
THROTTLED = re.compile(r"(?:\[D\] )?core (\d+) thermal status: ([\w ]+?) (status|log) = ([01])$")
BITS = {"thermal limit": 0, "prochot or forcepr": 2, "crit temp": 4, "power limit": 10,
        "current limit": 12, "cross domain limit": 14}
#: Of a log without times
KERNEL = re.compile(r"(?:mce: )?CPU\d+: (?:Core|Package) (?:temperature|power)|Linux version \d|"
                    r"(?:smpboot|intel_pstate|intel_idle|clocksource|tsc|acpi_cpufreq): |"
                    r"Scheduler frequency invariance ")


def khz(value: str, unit: str) -> str:
    return str(round(float(value) * {"k": 1, "M": 1e3, "G": 1e6}[unit]))


class Blocks:
    """@put: a path of sysfs and its content, of the line that is being read; @register: an
    address, its value, the CPU."""

    def __init__(self, put: Callable[[str, str], object],
                 register: Callable[[int, int, int], object]) -> None:
        self.put, self.register = put, register
        self.begin()

    def begin(self) -> None:
        """A new file."""
        self.cpu: int | None = None
        self.names: list[str] = []
        self.state = self.zone = self.limit = ""
        self.control = "intel-rapl"
        self.boost = ""
        self.intel = False

    def line(self, text: str) -> str:
        """The kind of the line; nothing if it is none of these."""
        if I7Z.search(text):
            return "i7z"
        if KERNEL.match(text):
            return "dmesg"
        if (found := THROTTLED.match(text)) and found[2] in BITS:
            bit = BITS[found[2]] + (found[3] == "log")
            self.register(0x19C, int(found[4]) << bit, int(found[1]))
            return "throttled"
        return self._powercap(text) or self._cpupower(text)

    def _cpupower(self, text: str) -> str:
        if short := SHORT.match(text):
            policy = f"{BASE}/cpu{short[1]}/cpufreq"
            self.put(f"{policy}/scaling_min_freq", short[2])
            self.put(f"{policy}/scaling_max_freq", short[3])
            if 0 < int(short[4]) < 100:
                self.put(f"{policy}/cpuinfo_max_freq", str(int(short[3]) * 100 // int(short[4])))
            self.put(f"{policy}/scaling_governor", short[5])
            return "cpupower"
        if idle := re.match(r"CPUidle (driver|governor): (\S+)$", text):
            self.put(f"{BASE}/cpuidle/current_{idle[1]}", idle[2])
            return "cpupower"
        if found := ANALYSING.match(text):
            self.cpu, self.state, self.names = int(found[1] or found[2]), "", []
            return "cpupower"
        if self.cpu is None or len(text) > LONGEST:
            return ""
        return "cpupower" if self._frequency(text) or self._idle(text) else ""

    def _frequency(self, text: str) -> bool:
        policy = f"{BASE}/cpu{self.cpu}/cpufreq"
        if found := DRIVER.match(text):
            self.intel = found[1].startswith("intel")
            self.put(f"{policy}/scaling_driver", found[1])
        elif re.match(r"(?:no or unknown|kein oder|pas de|nessun) .*cpufreq", text):
            self.put(f"{policy}/scaling_driver", "none")
        elif found := HARDWARE.match(text):
            self.put(f"{policy}/cpuinfo_min_freq", khz(found[1], found[2]))
            self.put(f"{policy}/cpuinfo_max_freq", khz(found[3], found[4]))
        elif found := POLICY.match(text):
            self.put(f"{policy}/scaling_min_freq", khz(found[1], found[2]))
            self.put(f"{policy}/scaling_max_freq", khz(found[3], found[4]))
        elif found := CURRENT.match(text):
            self.put(f"{policy}/scaling_cur_freq", khz(found[1], found[2]))
        elif found := GOVERNOR.match(text):
            self.put(f"{policy}/scaling_governor", found[1])
        elif found := OFFERED.match(text):
            self.put(f"{policy}/scaling_available_governors", found[1].replace(",", " "))
        elif found := re.match(r"(Supported|Active|Unterstützt|Aktiv): (yes|no|ja|nein)$", text):
            on = found[2] in ("yes", "ja")
            if found[1] in ("Supported", "Unterstützt"):
                self.boost = "supported" if on else ""
            elif self.boost:
                path, value = (("intel_pstate/no_turbo", not on) if self.intel else
                               ("cpufreq/boost", on))
                self.put(f"{BASE}/{path}", str(int(value)))
        else:
            return False
        return True

    def _idle(self, text: str) -> bool:
        if found := re.match(r"Available idle states: (.+)", text):
            self.names = found[1].split()
        elif found := re.match(r"([\w-]+)( \(DISABLED\))? ?:$", text):
            if found[1] not in self.names:
                return False
            self.state = f"{BASE}/cpu{self.cpu}/cpuidle/state{self.names.index(found[1])}"
            self.put(f"{self.state}/name", found[1])
            self.put(f"{self.state}/disable", str(int(bool(found[2]))))
        elif self.state and (found := re.match(r"([\w/]+): (.+)", text)) and found[1] in OF_STATE:
            self.put(f"{self.state}/{OF_STATE[found[1]]}", found[2])
        else:
            return text.startswith("Number of idle states: ")
        return True

    def _powercap(self, text: str) -> str:
        if re.match(r"intel-rapl(-mmio)?$", text):
            self.control, self.zone, self.limit = text, "", ""
        elif found := re.match(r"Zone (\d+(?::\d+)?)$", text):
            self.zone, self.limit = found[1], ""
        elif self.zone and (found := re.match(r"Constraint (\d)$", text)):
            self.limit = f"constraint_{found[1]}_"
        elif self.zone and (found := OF_ZONE.match(text)):
            self.put(f"class/powercap/{self.control}:{self.zone}/{self.limit}{found[1]}", found[2])
        else:
            return ""
        return "powercap"
