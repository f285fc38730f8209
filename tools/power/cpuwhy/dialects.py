# SPDX-License-Identifier: GPL-2.0
"""Lines of turbostat, lscpu, cpupower, rdmsr, inteltool, the kernel's log and others.

A Reader takes cleaned lines and fills a Material (texts.py).  Each rule is a pattern and a
method; the first that matches a line counts.  turbostat's lines are those of all versions
since 4.7 (its source has them: each register is printed as "0x%08llx").
"""
from __future__ import annotations

import re
import struct
from collections.abc import Callable

from . import blocks, lscpu
from .texts import (
    MOST_LINES,
    Conflict,
    Fact,
    Logical,
    Material,
    Part,
    Register,
    Table,
    Where,
    sysfs_path,
)

#: Names of registers, in turbostat's and others' spelling, without MSR_ and IA32_.
NAMES = {
    "PLATFORM_ID": 0x17, "FEATURE_CONTROL": 0x3A, "FSB_FREQ": 0xCD, "PLATFORM_INFO": 0xCE,
    "PKG_CST_CONFIG_CONTROL": 0xE2, "SNB_PKG_CST_CFG_CTL": 0xE2, "PMG_CST_CONFIG_CONTROL": 0xE2,
    "PERF_STATUS": 0x198, "PERF_CTL": 0x199, "THERM_INTERRUPT": 0x19B, "THERM_STATUS": 0x19C,
    "MISC_ENABLE": 0x1A0, "TEMPERATURE_TARGET": 0x1A2, "MISC_FEATURE_CONTROL": 0x1A4,
    "MISC_PWR_MGMT": 0x1AA, "TURBO_POWER_CURRENT_LIMIT": 0x1AC, "TURBO_RATIO_LIMIT": 0x1AD,
    "TURBO_RATIO_LIMIT1": 0x1AE, "TURBO_RATIO_LIMIT2": 0x1AF, "IVT_TURBO_RATIO_LIMIT": 0x1AE,
    "ENERGY_PERF_BIAS": 0x1B0, "PACKAGE_THERM_STATUS": 0x1B1, "PACKAGE_THERM_INTERRUPT": 0x1B2,
    "POWER_CTL": 0x1FC, "VR_CURRENT_CONFIG": 0x601, "RAPL_POWER_UNIT": 0x606,
    "PKGC3_IRTL": 0x60A, "PKGC6_IRTL": 0x60B, "PKGC7_IRTL": 0x60C, "PKG_POWER_LIMIT": 0x610,
    "PKG_POWER_INFO": 0x614, "DRAM_POWER_LIMIT": 0x618, "DRAM_POWER_INFO": 0x61C,
    "PKGC8_IRTL": 0x633, "PKGC9_IRTL": 0x634, "PKGC10_IRTL": 0x635, "PP0_POWER_LIMIT": 0x638,
    "PP0_POLICY": 0x63A, "PP1_POWER_LIMIT": 0x640, "PP1_POLICY": 0x642,
    "CONFIG_TDP_NOMINAL": 0x648, "CONFIG_TDP_LEVEL_1": 0x649, "CONFIG_TDP_LEVEL1": 0x649,
    "CONFIG_TDP_LEVEL_2": 0x64A, "CONFIG_TDP_LEVEL2": 0x64A, "CONFIG_TDP_CONTROL": 0x64B,
    "TURBO_ACTIVATION_RATIO": 0x64C, "SECONDARY_TURBO_RATIO_LIMIT": 0x650,
    "CC6_DEMOTION_POLICY_CONFIG": 0x668, "MC6_DEMOTION_POLICY_CONFIG": 0x669,
    "ATOM_CORE_RATIOS": 0x66A, "ATOM_CORE_TURBO_RATIOS": 0x66C,
    "CORE_PERF_LIMIT_REASONS": 0x690, "GFX_PERF_LIMIT_REASONS": 0x6B0,
    "RING_PERF_LIMIT_REASONS": 0x6B1, "PM_ENABLE": 0x770, "HWP_CAPABILITIES": 0x771,
    "HWP_REQUEST_PKG": 0x772, "HWP_INTERRUPT": 0x773, "HWP_REQUEST": 0x774, "HWP_STATUS": 0x777,
    "RAPL_PWR_UNIT": 0xC0010299, "AMD_RAPL_POWER_UNIT": 0xC0010299,
    "AMD_CPPC_CAP1": 0xC00102B0, "AMD_CPPC_ENABLE": 0xC00102B1, "AMD_CPPC_CAP2": 0xC00102B2,
    "AMD_CPPC_REQ": 0xC00102B3, "AMD_CPPC_STATUS": 0xC00102B4,
}
#: cAdvisor's counters, as files of cgroups have them, and how many of the units are in one
METRICS = {"cpu_cfs_periods_total": ("nr_periods", 1), "spec_cpu_quota": ("cpu.max", 1),
           "cpu_cfs_throttled_periods_total": ("nr_throttled", 1),
           "cpu_cfs_throttled_seconds_total": ("throttled_usec", 1_000_000),
           "cpu_usage_seconds_total": ("usage_usec", 1_000_000)}
#: turbostat prints at least so many digits of a register.
DIGITS = 8
#: Bus clocks that parts have: thirds of 400 MHz and others are rounded by turbostat.
BUS_KHZ = (100_000, 133_333, 83_333, 116_667, 80_000)
#: Its lines that are kept as it says them.
TURBOSTAT = re.compile(
    r"turbostat version|cpu\d+: |CPUID\(|\d+ \* [\d.]+ = |RAPL|TSC: |TURBO_|SLM BCLK|NSFOD "
    r"|current_(?:driver|governor)|cpufreq |C-state Pre-wake|/dev/cpu_dma_latency"
    r"|Uncore Frequency|Kernel command line|dev_cpu_dma|[a-z_]*perf_limit|cpuidle"
    r"|\d+ MHz max turbo|MSR_\w+[:,]")
LOG_WORDS = (
    "cpu", "tsc", "clock", "therm", "temperature", "throttl", "power", "mwait", "idle", "pstate",
    "p-state", "c-state", "cppc", "acpi:", "hypervisor", "linux version", "command line", "dmi: ",
    "microcode", "freq", "wobbly", "prochot", "rapl", "turbo", "epb", "msr", "timer", "smp",
    "x86/", "tpmi", "dptf", "int340")
#: Before what the kernel says
LOG_HEAD = re.compile(
    r"(?:.*?\bkernel: |kern +:\w+ *: |<\d+>)?(\[ *\d+\.\d{6}\](?:\[ *[TC]\d+\])?|"
    r"\[\w{3} \w{3} +\d+ [\d:]{8} \d{4}\])? ?(.*)")
#: Of a log, what names a machine or its owner.
PRIVATE = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}|\b(?:serial|uuid)\b", re.I)


def number(name: str) -> int | None:
    """Of a register by any tool's name."""
    name = re.sub(r"^(?:MSR_)?(?:NHM_|IA32_|CORE_PERF$)?", "", name.upper())
    return NAMES.get(name, NAMES.get(name.replace("IA32_", "")))


class Reader:
    """Feeds lines to a material."""

    def __init__(self, material: Material) -> None:
        self.m = material
        self.states: dict[int, dict[str, Fact]] = {}
        self.ratio = 0          # the highest one of which a clock was told
        self.blocks = blocks.Blocks(
            lambda path, value: self.m.put_file(path, value, self.where), self._msr)
        self.begin("")
        self.aida_cpus: set[int] = set()
        self.aida_sections: set[int] = set()
        #: kind, what the line must contain (which is quick to tell), pattern, method
        table: tuple[tuple[str, str, str, Callable[[re.Match[str]], object]], ...] = (
            ("turbostat", "0x", r"(?:cpu(\d+): )?((?:MSR_|ENERGY_PERF_|IA32_)\w+)[:,] ?"
             r"(0x[0-9a-fA-F]*)(.*)", self._named),
            ("turbostat", "pkg", r"cpu (\d+) pkg (\d+) (?:\w+ \d+ )*core (\d+)(?: thread \d+)?",
             self._place),
            ("turbostat", "CPUID(0)", r"CPUID\(0\): (\w+)(?:.*family:model:stepping \S+ "
             r"\((\d+):(\d+):(\d+)\))?", self._cpuid0),
            ("turbostat", "family:", r"(?:CPUID\(1\): )?family:model:stepping \S+ "
             r"\((\d+):(\d+):(\d+)\)(?: microcode (0x[0-9a-fA-F]+))?", self._cpuid1),
            ("turbostat", "CPUID(6)", r"CPUID\(6\): (.*)", self._cpuid6),
            ("turbostat", "CPUID(7)", r"CPUID\(7\): (.*)", self._cpuid7),
            ("turbostat", " * ", r"(\d+) \* ([\d.]+) = ([\d.]+) MHz", self._clock),
            ("turbostat", "cpu", r"cpu(\d+): (\w[\w-]*): ((?:MWAIT|ACPI|CPUIDLE|FFH|HLT|IOPORT).*)",
             self._state),
            ("turbostat", ": ", r"(?:cpu(\d+): )?(?:cpufreq (driver|governor)|cpufreq (boost)|"
             r"cpufreq intel_pstate (no_turbo)|current_(driver|governor)(?:_ro)?): (\S+)$",
             self._driver),
            ("proc", "line: ", r"(?:cmdline|Kernel command line): +(.*)", self._cmdline),
            ("turbostat", "EPB", r"cpu(\d+): EPB: (\d+) ", self._bias),
            ("sysfs", "", r"(?:r[ow]\|)?(?:\./)?(/?(?:[\w:.,@\\*-]+/)*[\w.-]+)"
             r"(?:[:|] ?|\s*=\s+|\t| )(.*)$", self._file),
            ("cpuid", "eax=", r"(0x[0-9a-fA-F]{8}) (0x[0-9a-fA-F]{2}): "
             r"eax=(0x\w+) ebx=(0x\w+) ecx=(0x\w+) edx=(0x\w+)", self._cpuid),
            ("rdmsr", "0x", r"(0x[0-9a-fA-F]{1,8})[,:]?\s+(?:=\s*)?(0x[0-9a-fA-F]{1,16})\s*$",
             self._numbered),
            ("rdmsr", "|", r"([0-9a-f]{1,8}):((?:\d+\|[0-9a-f]*\s*)+)$", self._each_cpu),
            ("rdmsr", "rdmsr", r"(?:.*\s)?rdmsr (?:-[ap]\s*)?(0x[0-9a-fA-F]{1,8}): "
             r"([0-9a-f]{1,16})$",
             self._numbered),
            ("rdmsr", "rdmsr", r".*\brdmsr\b((?:\s+[-\w:]+)+)\s*$", self._rdmsr),
            ("rdmsr", "0x", r"MSR[ \[(]*(0x[0-9a-fA-F]{1,8})[\])]*\s*[:=]\s*"
             r"(0x[0-9a-fA-F]{1,16})\s*$", self._numbered),
            ("lscpu", '"field"', r'[{\s]*"field": *"([^"]*?):?", *"data": *"([^"]*)"', self._json),
            ("lscpu", '"field"', r'"field": *"([^"]*?):?",?$', self._json_field),
            ("lscpu", '"data"', r'"data": *"([^"]*)"[,}\s]*$', self._json_data),
            ("lscpu", "CPU", r"(?:# ?)?(CPU[\s,].*\bC(?:ORE|ore)\b.*)$", self._extended),
            ("sysfs", "/", r"==> (\S+) <==$", self._heading),
            ("sysfs", "/", r"(?:.*[$#>%:] *)?(?:sudo )?(?:cat|head|tail|more|grep) "
             r"(?:-\S+ (?:\d+ )?|[.'\"]+ )*(/(?:sys|proc)/\S+)$", self._heading),
            ("sysfs", "/", r"(/(?:sys|proc)/[\w/:.,@\\-]+)$", self._heading),
            ("sysfs", " exec ", r".{0,200} exec .{1,120} cat (/sys/fs/cgroup/\S+)$", self._heading),
            ("sysfs", "_", r"((?:nr_(?:periods|throttled)|throttled_(?:usec|time)|usage_usec)"
             r" \d{1,19})$", self._count_of),
            ("metrics", "container_", r"container_(\w{8,40})\{([^}]{0,2000})\} ([\d.e+]{1,25})",
             self._metric),
            ("docker", "throttling_data", r'.*"throttling_data": ?\{"periods": ?(\d{1,19}), ?'
             r'"throttled_periods": ?(\d{1,19}), ?"throttled_time": ?(\d{1,19})', self._docker),
            ("sysfs", "kernel.", r"(kernel\.\w+) = (.*)", self._sysctl),
            ("inteltool", "MSR 0x", r"MSR 0x([0-9A-Fa-f]{1,8}) = "
             r"0x([0-9A-Fa-f]*)(?::0x([0-9A-Fa-f]*))?", self._inteltool),
            ("inteltool", "MSRs", r"=+ *(?:UNIQUE|SHARED) MSRs +\((?:core (\d+)|.*)\)", self._core),
            ("AppleIntelInfo", "0x", r"(?:MSR_|IA32_)\w+[. ]*\((0x[0-9A-Fa-f]+)\)\s*: "
             r"(0x[0-9A-Fa-f]{1,16})", self._numbered),
            ("aida64", "------[", r"------\[ (\w+) Registers / Logical CPU #(\d+) \]",
             self._section),
            ("aida64", "------[", r"------\[ ()", self._section),
            ("aida64", "MSR ", r"MSR ([0-9A-F]*): *(.*)", self._aida_msr),
            ("aida64", "CPUID ", r"CPUID ([0-9A-F]{8})(.*)", self._aida_cpuid),
            ("aida64", "allcpu", r"allcpu: Package (\d+) / Core (\d+) / Thread \d+: Valid(.*)",
             self._aida_cpu),
            ("aida64", "CPU ", r"(CPU TDP|CPU Thermal Design Power)\s*:\s*(\d+)", self._tdp),
            ("cpuinfo", ":", r"(processor|vendor_id|cpu family|model|model name|stepping|microcode"
             r"|physical id|core id|flags|cpu cores|siblings|cpu MHz)\s*\t+\s*: ?(.*)",
             self._cpuinfo),
            ("cpuinfo", ":", r"(processor|vendor_id|cpu family|model|model name|stepping|microcode"
             r"|physical id|core id|flags|cpu cores|siblings|cpu MHz) *: (.*)", self._cpuinfo),
        )
        self.rules = [(kind, part, re.compile(pattern), rule)
                      for kind, part, pattern, rule in table]

    # --- files ---

    def begin(self, name: str) -> None:
        self.name, self.known, self.parts = name, 0, {}         # type: ignore[var-annotated]
        self.run: list[tuple[str, str, Where]] = []
        self.table: Table | None = None
        self.package, self.cpu, self.section, self.clocks = 0, 0, "", 0
        # Register, CPU, next CPU too, base of its digits
        self.asked: tuple[int, int | None, bool, int] | None = None
        self.pending, self.values = "", list[Where]()    # a path, and its lines
        self.field = ""                                 # of lscpu's JSON
        self.extended: list[str] = []                   # columns of lscpu -e
        self.blocks.begin()
        base = name.rpartition("/")[2]
        self.is_log = base.startswith(("dmesg", "kern.log", "boot.msg"))

    def tree_file(self, name: str, path: str, text: str) -> None:
        """A file of a copy of /sys or /proc. A device's has one line."""
        if text:
            first = next((line for line in text.splitlines() if line.startswith("nr_throttled")),
                         text[:200].splitlines()[0])
            whole = path.startswith(("proc/", "kernel/", "fs/"))
            self.m.put_file(path, text if whole else first, Where(name, 0, first, "sysfs"))
            self._count(name, "sysfs" if not path.startswith("proc/") else "proc", 0)

    def _count(self, name: str, kind: str, line: int) -> None:
        # One entry for all files of a tree
        key = (name if line else "", kind)
        if line:
            first, lines = self.parts.get(kind, (line, 0))
            self.parts[kind] = (first, lines + 1)
        else:
            for at, part in enumerate(self.m.recognised):
                if part.kind == kind and not part.first:
                    self.m.recognised[at] = part._replace(lines=part.lines + 1)
                    return
            self.m.recognised.append(Part(name, key[1], 0, 1))

    def end(self) -> None:
        self._flush()
        self._lscpu()
        for kind, (first, lines) in self.parts.items():
            self.m.recognised.append(Part(self.name, kind, first, lines))

    def line(self, at: int, text: str, whole: bool) -> int:
        """One more; how many of the file were known so far."""
        self.where = Where(self.name, at, text[:300])
        self.m.end = Where(self.name, at, "")
        self.whole = whole
        try:
            kind = self._kind(text)
        except (ValueError, OverflowError):     # a number that no machine has
            kind = ""
        if kind:
            self.known += 1
            self._count(self.name, kind, at)
            if len(self.m.said.setdefault(kind, [])) < MOST_LINES and kind not in (
                    "sysfs", "dmesg", "cpuinfo", "lscpu"):
                self.m.said[kind].append(self.where)
        return self.known

    def _kind(self, text: str) -> str:
        if not text:
            self.table = None
            self._flush()
            return ""
        if kind := self._answer(text):
            return kind
        if self.table and self._row(text):
            return "turbostat"
        if self._columns(text):
            return "turbostat"
        if self._log(text):
            return "dmesg"
        place = self.where
        if kind := self.blocks.line(text):
            if kind == "dmesg":
                self.is_log = True
                self._log(text)
                self.is_log = False
            return kind
        for kind, part, pattern, rule in self.rules:
            if part in text and (match := pattern.match(text)):
                self.where = place._replace(kind=kind)
                if rule(match) is not False:
                    return kind
        self.where = place._replace(kind="lscpu")
        self._word(text)
        self.where = place
        if TURBOSTAT.match(text):
            return "turbostat"
        return ""

    def _cut(self, what: str) -> None:
        self.m.cut.append((what, self.where))

    # --- turbostat ---

    def _named(self, match: re.Match[str]) -> bool | None:
        address = number(match[2])
        digits = match[3][2:]
        if len(digits) < DIGITS or len(digits) > 16 or not (match[4] or self.whole) or (
                match[4][:1] not in ("", " ", "(")):
            self._cut("the line of a register")
            return None
        if address is not None:
            self._msr(address, int(digits, 16), int(match[1]) if match[1] else None)
        return None

    def _msr(self, address: int, value: int, cpu: int | None) -> None:
        self.m.put_register(address, Register(cpu, value, self.where))

    def _place(self, match: re.Match[str]) -> None:
        self.m.logical.setdefault(int(match[1]), Logical(int(match[2]), int(match[3]), None))

    def _signature(self, family: str, model: str, stepping: str) -> None:
        for name, value in (("family", family), ("model", model), ("stepping", stepping)):
            # Before 2018 it left out what AMD adds to 15
            if (name, value, self.m.known("vendor")) != ("family", "15", "AuthenticAMD"):
                self.m.put(name, int(value), self.where)

    def _cpuid0(self, match: re.Match[str]) -> None:
        self.m.put("vendor", match[1], self.where)
        if match[2]:
            self._signature(match[2], match[3], match[4])

    def _cpuid1(self, match: re.Match[str]) -> None:
        self._signature(match[1], match[2], match[3])
        if match[4]:
            self.m.put("microcode", int(match[4], 16), self.where)

    def _cpuid6(self, match: re.Match[str]) -> None:
        words = match[1].replace(",", " ").split()
        for word, name in (("HWP", "hwp"), ("APERF", "aperf"), ("EPB", "epb"),
                           ("TURBO", "turbo"), ("HWPepp", "epp")):
            if word in words or f"No-{word}" in words:
                self.m.put(name, word in words, self.where)

    def _cpuid7(self, match: re.Match[str]) -> None:
        words = match[1].split()
        if "Hybrid" in words or "No-Hybrid" in words:
            self.m.put("hybrid", "Hybrid" in words, self.where)

    def _clock(self, match: re.Match[str]) -> None:
        """The product of the highest ratio tells the bus clock best; it has one digit."""
        ratio, mhz = int(match[1]), float(match[3])
        if ratio <= self.ratio or not 20 < mhz / ratio < 250:
            return
        self.ratio = ratio
        khz = 1000 * mhz / ratio
        usual = [bus for bus in BUS_KHZ if abs(khz - bus) < 60 / ratio + 5]
        self.m.bus_khz = Fact(usual[0] if usual else round(khz), self.where)

    def _state(self, match: re.Match[str]) -> None:
        """An idle state: its name and how it is entered. Its number is not told."""
        states = self.states.setdefault(int(match[1]), {})
        states.setdefault(match[2], Fact(match[3], self.where))

    def _driver(self, match: re.Match[str]) -> None:
        cpu, policy, boost, no_turbo, idle, value = match.groups()
        base = "devices/system/cpu"
        self.m.put_file(
            f"{base}/cpu{cpu or 0}/cpufreq/scaling_{policy}" if policy else
            f"{base}/cpufreq/boost" if boost else
            f"{base}/intel_pstate/no_turbo" if no_turbo else
            f"{base}/cpuidle/current_{idle}", value, self.where)

    def _cmdline(self, match: re.Match[str]) -> None:
        self.m.put_file("proc/cmdline", match[1], self.where)

    def _bias(self, match: re.Match[str]) -> None:
        self.m.put_file(f"devices/system/cpu/cpu{match[1]}/power/energy_perf_bias", match[2],
                        self.where)

    def _columns(self, text: str) -> bool:
        if "MHz" not in text and "Busy" not in text:
            return False
        # Versions glue a column's name to the next
        words = re.sub(r"(?<=\S)(?=Pkg%pc|GFXWatt|RAMWatt)|(?<=MHz)(?=[A-Z])", " ", text).split()
        if len(words) < 3 or not {"Avg_MHz", "Bzy_MHz", "Busy%", "%Busy"} & set(words):
            return False
        self.table = Table(words)
        self.tabs = "\t" in text
        if len(self.m.tables) < 1000:
            self.m.tables.append(self.table)
        return True

    def _row(self, text: str) -> bool:
        cells = text.split("\t") if self.tabs and "\t" in text else text.split()
        table = self.table
        if table is not None and len(cells) > len(table.columns) and not re.match(
                r"[-\d]", cells[len(table.columns)]):
            del cells[len(table.columns):]      # a remark behind the row
        if not cells:
            return False
        if cells[0].startswith("^C"):
            cells[0] = cells[0][2:]
        if table is None or len(cells) < 2 or len(cells) > len(table.columns) or not re.match(
                r"-$|-?\d+(\.\d+)?$", cells[0].strip()):
            return False
        row = {name: cell.strip() for name, cell in zip(table.columns, cells) if cell.strip()}
        if sum(len(known.rows) for known in self.m.tables) < MOST_LINES:
            table.rows.append((row, self.where))
        if row.get("CPU", "").isdigit() and row.get("Core", "").isdigit():
            package = row.get("Package", row.get("PKG", "0"))
            self.m.logical.setdefault(int(row["CPU"]), Logical(
                int(package) if package.isdigit() else 0, int(row["Core"]), None))
        return True

    # --- sysfs ---

    def _file(self, match: re.Match[str]) -> bool | None:
        path = sysfs_path(match[1], shortened=True)
        if not path:
            return False
        # tlp-stat has units, and words for what is not there.
        value = re.sub(r" \[[\w%/]+\]$", "", match[2].strip())
        if path.endswith("cpu.stat"):
            self._add(path, value)
        elif not value.startswith("(not "):
            self.m.put_file(path, value, self.where)
        return None

    # --- groups with a CPU limit ---

    def _add(self, path: str, line: str) -> None:
        """A line of a file whose lines come one by one; of equal ones the first counts."""
        known = self.m.sysfs.get(path)
        if known is None:
            self.m.put_file(path, line, self.where)
        elif line.split(" ")[0] not in known.value.split() and len(known.value) < 1000:
            self.m.sysfs[path] = Fact(f"{known.value}\n{line}", self.where if
                                      line.startswith("nr_throttled") else known.where)

    def _count_of(self, match: re.Match[str]) -> None:
        """A group's that is not told."""
        self._add("fs/cgroup/cpu.stat", match[1])

    def _metric(self, match: re.Match[str]) -> bool | None:
        """cAdvisor's, as Prometheus prints them."""
        name, labels, value = match.groups()
        key, factor = METRICS.get(name, ("", 0))
        if not key:
            return False
        told = {key: re.sub(r"[^\w.-]", "", value) for key, value in
                re.findall(r'\b(pod|container)(?:_name)?="([^"]{1,100})"', labels)}
        group = "/".join(filter(None, ("fs/cgroup", told.get("pod"), told.get("container"))))
        count = round(float(value) * factor)
        if key == "cpu.max":
            self.m.put_file(f"{group}/{key}", str(count), self.where)
        else:
            self._add(f"{group}/cpu.stat", f"{key} {count}")
        return None

    def _docker(self, match: re.Match[str]) -> None:
        """A line of what its API says."""
        for key, value in zip(("nr_periods", "nr_throttled", "throttled_time"), match.groups()):
            self._add("fs/cgroup/cpu.stat", f"{key} {value}")

    # --- registers ---

    def _numbered(self, match: re.Match[str]) -> None:
        if not self.whole:
            return self._cut("the line of a register")
        return self._msr(int(match[1], 16), int(match[2], 16), None)

    def _each_cpu(self, match: re.Match[str]) -> None:
        pairs = [word.split("|") for word in match[2].split()]
        if not self.whole or any(not value for _, value in pairs):
            return self._cut("the line of a register")
        for cpu, value in pairs:
            self._msr(int(match[1], 16), int(value, 16), int(cpu))
        return None

    def _rdmsr(self, match: re.Match[str]) -> bool | None:
        """A command in a shell; its answer is below it."""
        cpu: int | None = 0
        every, base, words = False, 16, match[1].split()
        for at, word in enumerate(words):
            if word in ("-a", "--all"):
                every = True
            elif word.startswith("-p"):
                told = word[2:] or (words[at + 1] if at + 1 < len(words) else "")
                cpu = int(told) if told.isdigit() else None
            elif word in ("-d", "-u", "--decimal", "--unsigned"):
                base = 10
            elif word.startswith(("-f", "-o", "--bitfield")) and "63:0" not in (
                    word[2:], *words[at + 1:at + 2]):
                return None     # not the whole register, or octal
        told = [word for word in words if re.match(r"0[xX][0-9a-fA-F]{1,8}$", word)] or words
        if not re.match(r"0[xX][0-9a-fA-F]{1,8}$|\d{1,9}$", told[-1]):
            return False
        self.asked = (int(told[-1], 16 if told[-1][:2] in ("0x", "0X") else 10), cpu, every, base)
        return None

    def _answer(self, text: str) -> str:
        """Is the line what a command above printed?"""
        if self.asked and re.match(r"(?:0x)?[0-9a-fA-F]{1,16}$", text):
            address, cpu, every, base = self.asked
            if not self.whole:
                self._cut("the line of a register")
            else:
                self._msr(address, int(text, base), cpu)
            self.asked = (address, (cpu or 0) + 1, True, base) if every else None
            return "rdmsr"
        self.asked = None
        if self.extended and self._extended_row(text):
            return "lscpu"
        if self.pending:
            if re.match(r"==> |(?:.*[$#>%] *)?(?:sudo )?\w+ .*/(?:sys|proc)/|/(?:sys|proc)/"
                        r"|\S+@\S+[:~]|[$#%] ", text):
                self._flush()
            elif len(self.values) < 512:
                self.values.append(self.where)
                return "sysfs"
        return ""

    def _heading(self, match: re.Match[str]) -> bool | None:
        """The name of a file, whose content is below it; or of several, as a pattern."""
        self._flush()
        path = match[1]
        probe = sysfs_path(re.sub(r"\*|\[[^\]]*\]|\{[^}]*\}", "0", path), shortened=True)
        if not probe:
            return False
        self.pending = path if re.search(r"[*\[{]", path) else probe
        return None

    def _flush(self) -> None:
        path, values = self.pending, self.values
        self.pending, self.values = "", []
        if not path or not values:
            return
        if not re.search(r"[*\[{]", path):
            shows = next((value for value in values if "nr_throttled" in value.text), values[0])
            self.m.put_file(path, "\n".join(value.text for value in values), shows)
            return
        # In the order of the shell: cpu0, cpu1, cpu10, cpu2
        order = sorted(range(len(values)), key=str)
        for number, value in zip(order, values):
            name = sysfs_path(re.sub(r"\*|\[[^\]]*\]|\{[^}]*\}", str(number), path, count=1))
            if name and "*" not in name:
                self.m.put_file(name, value.text, value)

    def _sysctl(self, match: re.Match[str]) -> bool | None:
        path = sysfs_path("proc/sys/" + match[1].replace(".", "/"))
        if path:
            self.m.put_file(path, match[2].strip(), self.where)
        return None if path else False

    def _inteltool(self, match: re.Match[str]) -> None:
        high, low = match[2], match[3]
        if low is None or len(low) < 8 or len(high) < 8:
            return self._cut("the line of a register")
        return self._msr(int(match[1], 16), int(high + low, 16), self.cpu)

    def _core(self, match: re.Match[str]) -> None:
        self.cpu = int(match[1] or 0)

    def _cpuid(self, match: re.Match[str]) -> None:
        leaf, sub, *words = (int(word, 16) for word in match.groups())
        self.m.leaves.setdefault((leaf, sub), Fact(tuple(words), self.where))

    # --- AIDA64 ---

    def _section(self, match: re.Match[str]) -> None:
        self.section = match[1]
        if self.section:
            self.cpu = int(match[2])
        if self.section == "MSR":
            self.aida_sections.add(self.cpu)

    def _aida_msr(self, match: re.Match[str]) -> None:
        value = re.match(r"(?:([0-9A-F]{4}(?:-[0-9A-F]{4}){3})|< FAILED >)", match[2])
        if not value or len(match[1]) != 8:
            return self._cut("the line of a register")
        if value[1]:
            self._msr(int(match[1], 16), int(value[1].replace("-", ""), 16), self.cpu)
        return None

    def _aida_cpuid(self, match: re.Match[str]) -> None:
        value = re.match(r": ([0-9A-F]{8}(?:-[0-9A-F]{8}){3})(?: \[SL (\d\d)\])?", match[2])
        if not value:
            return self._cut("the line of a CPUID leaf")
        if int(match[1], 16) == 0x1A and int(value[1][:2], 16) == 0x20 and self.m.logical:
            last = max(self.m.logical)
            self.m.logical[last] = self.m.logical[last]._replace(small=True)
        if self.cpu == 0:
            self.m.leaves.setdefault(
                (int(match[1], 16), int(value[2] or "0")),
                Fact(tuple(int(word, 16) for word in value[1].split("-")), self.where))
        return None

    def _aida_cpu(self, match: re.Match[str]) -> None:
        cpu = len(self.aida_cpus)
        self.aida_cpus.add(cpu)
        self.m.logical[cpu] = Logical(int(match[1]), int(match[2]),
                                      True if "Atom" in match[3] else
                                      False if "Core" in match[3] else None)

    def _tdp(self, match: re.Match[str]) -> None:
        self.m.put("tdp_w", int(match[2]), self.where)

    # --- /proc/cpuinfo and lscpu ---

    def _cpuinfo(self, match: re.Match[str]) -> None:
        name, value = match[1], match[2].strip()
        if name == "processor":
            self.cpu, self.package = int(value) if value.isdigit() else 0, 0
        elif name == "cpu MHz":     # one for each CPU, also if these are all the lines
            self.m.put_file(f"devices/system/cpu/cpu{self.clocks}/cpufreq/scaling_cur_freq",
                            str(round(float(value) * 1000)), self.where)
            self.clocks += 1
        elif name == "physical id":
            self.package = int(value)
        elif name == "core id":
            self.m.logical.setdefault(self.cpu, Logical(self.package, int(value), None))
        elif name == "flags":
            self._flags(value)
        elif name == "microcode":
            self.m.put(name, int(value, 16 if value.startswith("0x") else 10), self.where)
        elif name in ("vendor_id", "model name"):
            self.m.put({"vendor_id": "vendor"}.get(name, "name"), value, self.where)
        elif name in ("cpu family", "model", "stepping") and value.isdigit():
            self.m.put(name.replace("cpu ", ""), int(value), self.where)

    def _flags(self, value: str) -> None:
        flags = frozenset(value.split())
        self.m.put("flags", flags, self.where)
        if "hypervisor" in flags:
            self.m.put("hypervisor", "", self.where)

    def _json(self, match: re.Match[str]) -> None:
        self.run.append((match[1], match[2], self.where))

    def _json_field(self, match: re.Match[str]) -> None:
        self.field = match[1]

    def _json_data(self, match: re.Match[str]) -> None:
        self.run.append((self.field, match[1], self.where))

    def _extended(self, match: re.Match[str]) -> bool | None:
        """lscpu -e, or -p with commas."""
        self.extended = [word.upper() for word in re.split(r"[\s,]", match[1]) if word]
        return None if {"CPU", "CORE"} <= set(self.extended) else False

    def _extended_row(self, text: str) -> bool:
        words = text.split(",") if "," in text and " " not in text else text.split()
        row = dict(zip(self.extended, words))
        if not (row.get("CPU", "").isdigit() and len(words) > 1):
            self.extended = []
            return False
        cpu, core, package = row["CPU"], row.get("CORE", ""), row.get("SOCKET", "0")
        if core.isdigit() and package.isdigit():
            self.m.logical.setdefault(int(cpu), Logical(int(package), int(core), None))
        for column, name in (("MAXMHZ", "max"), ("MINMHZ", "min")):
            if re.match(r"\d+[.,]?\d*$", row.get(column, "")):
                khz = round(float(row[column].replace(",", ".")) * 1000)
                self.m.put_file(f"devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_{name}_freq",
                                str(khz), self.where)
        return True

    def _word(self, text: str) -> None:
        """Kept until the lines beside it tell whether it is lscpu's."""
        match = re.match(r"([^:：]{1,70}?)\s*[:：]\s*(\S.*)?$", text) or re.match(
            r"(«Socket\(s\)»)\s+(\d+)$", text)     # lscpu's Spanish has no colon there
        if not match or re.match(r"[\d/\[]", text):
            return
        # Those of other texts far from these are not lscpu's.
        if self.run and (self.where.line - self.run[-1][2].line > 12 or len(self.run) > 400):
            self._lscpu()
        self.run.append((match[1], (match[2] or "").strip(), self.where))

    def _lscpu(self) -> None:
        run, self.run = self.run, []
        for name, value, where in lscpu.resolve(run):
            self.known += 1
            self._count(where.file, "lscpu", where.line)
            if name == "flags":
                self.where = where
                self._flags(value)
            elif name == "max_mhz":
                if re.match(r"\d+[.,]?\d*$", value):
                    self.m.put(name, float(value.replace(",", ".")), where)
            else:
                self.m.put(name, int(value) if value.isdecimal() else value, where)

    # --- the kernel's log ---

    def _log(self, text: str) -> bool:
        if not (self.is_log or text[0] in "[<k" or "kernel: " in text):
            return False
        match = LOG_HEAD.match(text)
        if match is None or not (match[1] or " kernel: " in text or self.is_log):
            return False
        said = match[2]
        self.where = self.where._replace(text=f"{match[1] or ''} {said}".strip()[:300],
                                         kind="dmesg")
        small = said.lower()
        if not any(map(small.__contains__, LOG_WORDS)):
            return True
        if len(self.m.log) < MOST_LINES and not PRIVATE.search(said):
            self.m.log.append(self.where)
        if boot := re.search(r"smpboot: CPU0: (.*?) \((?:fam|family): (0x\w+|\d+), model: "
                             r"(0x\w+|\d+)(?:, stepping: (0x\w+|\d+))?", said):
            self.m.put("name", boot[1], self.where)
            for name, value in zip(("family", "model", "stepping"), boot.groups()[1:]):
                if value:
                    self.m.put(name, int(value, 16), self.where)
        elif found := re.search(r"Hypervisor detected: (.*)", said):
            self.m.put("hypervisor", found[1], self.where)
        elif found := re.search(r"(?:Kernel command line|Command line): (.*)", said):
            self.m.put_file("proc/cmdline", found[1], self.where)
        return True

    # --- all together ---

    def finish(self) -> None:
        if self.aida_sections and len(self.aida_sections) < len(self.aida_cpus):
            self._cut(f"the dump of {len(self.aida_cpus)} CPUs, with registers of "
                      f"{len(self.aida_sections)},")
        self._of_leaves()
        self._base_ratios()
        self._policies()
        if not any("/cpuidle/state" in path for path in self.m.sysfs):
            self._states()

    def _states(self) -> None:
        """Those that turbostat names, where no copy of sysfs does: it has all, in order."""
        for cpu, states in self.states.items():
            for at, (name, fact) in enumerate(states.items()):
                base = f"devices/system/cpu/cpu{cpu}/cpuidle/state{at}"
                self.m.put_file(f"{base}/name", name, fact.where)
                self.m.put_file(f"{base}/desc", fact.value, fact.where)

    def _of_leaves(self) -> None:
        leaves = self.m.leaves
        if (0, 0) in leaves:
            _, ebx, ecx, edx = leaves[0, 0].value
            vendor = struct.pack("<III", ebx, edx, ecx).decode("ascii", "replace")
            self.m.put("vendor", vendor, leaves[0, 0].where)
        if eax := self.m.leaf(1, 0):
            family, model = eax >> 8 & 0xF, eax >> 4 & 0xF
            if family in (6, 15):
                model |= eax >> 12 & 0xF0
            family += eax >> 20 & 0xFF if family == 15 else 0
            for name, value in (("family", family), ("model", model), ("stepping", eax & 0xF)):
                self.m.put(name, value, leaves[1, 0].where)
        words = [word for leaf in (0x80000002, 0x80000003, 0x80000004)
                 for word in (leaves[leaf, 0].value if (leaf, 0) in leaves else ())]
        brand = struct.pack(f"<{len(words)}I", *words).decode("ascii", "replace").strip("\0 ")
        if brand:
            self.m.put("name", brand, leaves[0x80000002, 0].where)
        for leaf, register, bit, name in ((6, 0, 7, "hwp"), (7, 3, 15, "hybrid")):
            if (leaf, 0) in leaves:
                self.m.put(name, bool(self.m.leaf(leaf, register) >> bit & 1),
                           leaves[leaf, 0].where)

    def _base_ratios(self) -> None:
        """Of 0xce, which each package has one of: two files with two are two machines."""
        found = self.m.registers.get(0xCE, [])
        for other in found[1:]:
            if other.value >> 8 & 0xFF != found[0].value >> 8 & 0xFF:
                self.m.conflicts.append(Conflict("base ratio", *(Fact(
                    one.value >> 8 & 0xFF, one.where) for one in (found[0], other))))
                break

    def _policies(self) -> None:
        """cpuN/cpufreq is a link to a policy, which alone is in some copies."""
        for path, fact in list(self.m.sysfs.items()):
            match = re.match(r"devices/system/cpu/cpufreq/policy(\d+)/(.*)", path)
            if not match:
                continue
            base = f"devices/system/cpu/cpufreq/policy{match[1]}"
            cpus = self.m.file(f"{base}/affected_cpus") or match[1]
            for cpu in cpus.split():
                if cpu.isdigit():
                    self.m.sysfs.setdefault(f"devices/system/cpu/cpu{cpu}/cpufreq/{match[2]}",
                                            fact)
