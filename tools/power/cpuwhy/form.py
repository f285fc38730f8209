# SPDX-License-Identifier: GPL-2.0
"""The form of what `cpuwhy probe` says of a machine: TOML with the keys below, no others.

A value is a number, true or false, or a text that its pattern matches as a whole; so there
is no place for a name, an address or a serial number. The lines of comment follow from the
values, and check() refuses others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

FORM = 1
#: No file may be longer.
MOST_BYTES = 100_000

#: Quantiles of wake-ups, in per cent; the model's are parts per million.
QUANTILES = (0, 10, 50, 90, 99)

Data = dict[str, Any]
NUMBERS, TREES = (int, float), (dict, list)      # unions are not before Python 3.10


@dataclass(frozen=True)
class Key:
    """@kind: int, float, bool or str; @pattern: of a str, whole; @many: a list of them."""

    kind: type
    about: str
    pattern: str = ""
    many: bool = False
    low: float = 0
    high: float = 2**64 - 1


def _word(about: str, *words: str, many: bool = False) -> Key:
    return Key(str, about, "|".join(map(re.escape, words)), many)


def _number(about: str, high: float = 1e9, many: bool = False) -> Key:
    return Key(float, about, many=many, high=high)


def _count(about: str, high: float = 2**32 - 1, many: bool = False) -> Key:
    return Key(int, about, many=many, high=high)


_BRAND = (r"(\d\dth Gen )?(Intel|INTEL|Genuine|AMD|GENUINE|Pentium|Celeron|Virtual CPU)"
          r"[A-Za-z0-9 ()@.,+/-]{0,47}")
_NAME = r"[A-Z][A-Za-z0-9_.]{0,15}"
#: What may be said of the command line: names, and values without room for a text.
PARAMETER = (r"(intel_pstate|intel_idle\.\w+|amd_pstate|processor\.max_cstate|idle|nohz|"
             r"cpuidle\.governor|cpuidle\.off|cpufreq\.default_governor|aperfmperf\.freq_max|"
             r"mitigations|nosmt|tsc)(=[a-z0-9_,]{1,24})?")
FLAGS = ("aperfmperf", "arat", "cppc", "epb", "hwp", "hwp_epp", "ida", "monitor", "waitpkg")
DRIVERS = ("acpi-cpufreq", "acpi_idle", "amd-pstate", "amd-pstate-epp", "amd_pstate",
           "cppc_cpufreq", "haltpoll", "intel_cpufreq", "intel_idle", "intel_pstate",
           "pcc-cpufreq", "none", "other")
GOVERNORS = ("conservative", "haltpoll", "ladder", "menu", "ondemand", "performance",
             "powersave", "schedutil", "teo", "userspace", "none", "other")
STATUS = ("active", "passive", "guided", "off", "none")
EPP = ("balance_performance", "balance_power", "default", "performance", "power", "custom")

#: Registers that are read; none has a serial number (0x4f and 0xc00102f1 would).
INTEL = (0xCD, 0xCE, 0xE2, 0x1A2, 0x1AD, 0x1AE, 0x1AF, 0x1FC, 0x606, 0x610, 0x614, 0x618,
         0x638, 0x64F, 0x650, 0x66A, 0x66C, 0x771)
AMD = (*range(0xC0010064, 0xC001006C), 0xC0010015, 0xC0010299, 0xC00102B0)

#: Why a part of the file is missing; nothing else may be said.
WHY = {
    "registers": "the registers of /dev/cpu/*/msr cannot be read",
    "virtual": "this is a virtual machine: clocks and idle states are the host's",
    "cpufreq": "no cpufreq driver",
    "idle": "no cpuidle driver",
    "alone": "one core is not enough to wake another",
    "tracing": "tracefs is not there or cannot be used",
    "energy": "no energy counters (powercap's package zones)",
    "counters": "no APERF and MPERF",
    "log": "the kernel said nothing of its highest clock at boot, or its messages are gone",
    "state": "an idle state with a name that no CPU's has",
    "turbo": "the turbo registers are empty, or of a model that is not known here",
}

TABLES: dict[str, dict[str, Key]] = {
    "": {"form": _count("of this file", FORM),
         "others": _number("CPUs that others kept busy meanwhile, in the mean", 65536),
         "missing": _word("what is not in it, and why", *WHY, many=True)},
    "cpu": {
        "vendor": _word("of the CPU", "GenuineIntel", "AuthenticAMD", "other"),
        "name": Key(str, "the CPU's own (CPUID); left out if it is no CPU's", _BRAND),
        "family": _count("by CPUID", 255), "model": _count("by CPUID", 255),
        "stepping": _count("by CPUID", 15),
        "microcode": _count("its version"),
        "virtual": Key(bool, "whether it is a virtual machine's"),
        "packages": _count("sockets", 64), "cores": _count("of a package", 1024),
        "threads": _count("of a core", 8), "e_cores": _count("of these cores", 1024),
        "mwait_edx": _count("CPUID 5: sub-states of MWAIT"),
        "flags": _word("features", *FLAGS, many=True)},
    "kernel": {
        "release": Key(str, "its version without what a distribution adds",
                       r"\d{1,2}\.\d{1,3}(\.\d{1,3})?"),
        "patched": Key(bool, "whether it has this series"),
        "freq_max": _count("its highest clock over the base clock, in 1/1024; as it said at boot",
                           65536),
        "parameters": Key(str, "of the command line, those of clocks and idle states", PARAMETER,
                          many=True)},
    "registers": {f"{number:#x}": Key(int, "register of the first CPU that was measured")
                  for number in (*INTEL, *AMD)},
    "clock": {
        "base_mhz": _number("base clock", 1e5), "low_mhz": _number("lowest clock", 1e5),
        "high_mhz": _number("highest clock, as cpufreq has it", 1e5),
        "freq_max": _count("as kernel.freq_max, by the turbo registers", 65536),
        "turbo_cores": _count("up to so many active cores ...", 1024, many=True),
        "turbo_mhz": _number("... this is the highest clock", 1e5, many=True),
        "cppc": _count("AMD: highest, nominal, lowest nonlinear, lowest performance", 1023,
                       many=True),
        "driver": _word("of cpufreq", *DRIVERS),
        "status": _word("mode of intel_pstate or amd_pstate", *STATUS),
        "governor": _word("of cpufreq", *GOVERNORS),
        "epp": Key(str, "energy preference", "|".join(EPP) + r"|\d{1,3}"),
        "epb": _count("energy bias", 15),
        "limit_mhz": _number("highest clock allowed", 1e5),
        "boost": Key(bool, "whether turbo is on")},
    "idle": {"driver": _word("of cpuidle", *DRIVERS), "governor": _word("of cpuidle", *GOVERNORS),
             "poll_us": _number("until a CPU that polls has left its loop: median", 1e6)},
    "state": {
        "name": Key(str, "idle state", _NAME),
        "enter": Key(str, "how it is entered", r"MWAIT 0x[0-9a-f]{2}|IOPORT 0x[0-9a-f]{1,4}|"
                     r"POLL|HLT|UMWAIT|other"),
        "exit_us": _count("exit latency, as driver or firmware says"),
        "residency_us": _count("target residency, the same"),
        "disabled": Key(bool, "whether it was disabled"),
        "samples": _count("wake-ups by another CPU"),
        "wake_us": _number(f"how long these took: quantiles {QUANTILES} %", 1e6, many=True),
        "timer_samples": _count("wake-ups by the CPU's own timer"),
        "timer_us": _number("how long these took", 1e6, many=True)},
    "change": {
        "from_mhz": _number("clock before", 1e5), "to_mhz": _number("clock after", 1e5),
        "asked": _word("what the time is counted from: write of the register, event of cpufreq",
                       "register", "event"),
        "samples": _count("changes"),
        "us": _number("until APERF and MPERF show it: least, median, most", 1e6, many=True)},
    "busy": {"cpus": _count("busy cores", 65536), "mhz": _number("clock of one of them", 1e5)},
    "power": {"idle_w": _number("all packages, idle", 1e4),
              "busy_w": _number("with one busy core", 1e4),
              "two_busy_w": _number("with two", 1e4)},
    "handover": {
        "work_us": _count("work between two hand-overs"),
        "states": _word("idle states: as found, or only the two shallowest", "all", "shallow"),
        "us": _number("a hand-over through a pipe between two CPUs, without the work: median",
                      1e6)},
}
#: From so many CPUs that others keep busy on, what is measured is doubtful.
OTHERS = 0.1

#: Tables of which there may be several.
ARRAYS = ("state", "change", "busy", "handover")


def fields() -> Iterator[tuple[str, str]]:
    """All that a file may say, and what each is."""
    for table, keys in TABLES.items():
        if table == "registers":
            yield table, ("numbers and values of one CPU's, none of which has a serial number: "
                          f"Intel {', '.join(map(hex, INTEL))}; AMD {', '.join(map(hex, AMD))}")
        else:
            yield from ((f"{table}.{key}".lstrip("."), of.about) for key, of in keys.items())


def _wrong(where: str, key: Key, value: object) -> str:
    """What is wrong with a value; nothing if all is well."""
    if key.many:
        if not isinstance(value, list) or not value or len(value) > 64:
            return f"{where} must be a list of 1 to 64"
        return next((text for one in value
                     if (text := _wrong(where, Key(key.kind, "", key.pattern, False, key.low,
                                                   key.high), one))), "")
    kinds = (int, float) if key.kind is float else (key.kind,)
    if isinstance(value, bool) != (key.kind is bool) or not isinstance(value, kinds):
        return f"{where} must be {key.kind.__name__}, not {value!r}"
    if isinstance(value, str):
        return "" if re.fullmatch(key.pattern, value) else f"{where} cannot be {value!r}"
    if isinstance(value, NUMBERS) and not key.low <= value <= key.high:
        return f"{where} is {value}, allowed is {key.low} to {key.high:g}"
    return ""


def problems(data: Data) -> Iterator[str]:
    """What is not of the form."""
    top = {key: value for key, value in data.items() if not isinstance(value, TREES)
           or key in TABLES[""]}
    places: list[tuple[str, Data]] = [("", top)]
    for table, value in data.items():
        if table in top:
            continue
        if table not in TABLES or isinstance(value, list) != (table in ARRAYS):
            yield f"unknown table {table!r}"
            continue
        places += [(table, one) for one in (value if isinstance(value, list) else [value])]
    for table, entry in places:
        if not isinstance(entry, dict):
            yield f"{table} must be a table"
            continue
        for name, value in entry.items():
            where = f"{table}.{name}" if table else name
            if key := TABLES[table].get(name):
                if text := _wrong(where, key, value):
                    yield text
            else:
                yield f"unknown key {where!r}"
    if data.get("form") != FORM:
        yield f"form must be {FORM}"
    for table in ("cpu", "kernel"):
        if not isinstance(data.get(table), dict):
            yield f"table {table} is missing"


def _ghz(mhz: float) -> str:
    return f"{mhz / 1000:.2f}".rstrip("0").rstrip(".")


def _us(value: float) -> str:
    return f"{value / 1000:.2g} ms" if value >= 1000 else f"{value:.3g} us"


def sentences(data: Data) -> Iterator[str]:
    """What is in it, for people."""
    cpu, kernel, clock = data["cpu"], data["kernel"], data.get("clock", {})
    yield (f"{cpu.get('name', 'A CPU')}, Linux {kernel.get('release', '?')}"
           f"{' of the series' if kernel.get('patched') else ''}.")
    if data.get("others", 0) >= OTHERS:
        yield (f"Others kept {data['others']:g} CPUs busy meanwhile: what was measured may be"
               " wrong, so try again when the machine is idle.")
    base, said, right = (clock.get("base_mhz", 0), kernel.get("freq_max"), clock.get("freq_max"))
    if base and said and right:
        took, really = _ghz(base * said / 1024), _ghz(base * right / 1024)
        yield (f"Your kernel takes {took} GHz for your highest clock; "
               + ("that is right" if abs(said - right) <= 0.01 * right else f"it is {really}")
               + (f", with several cores busy: one alone reaches {_ghz(one)}"
                  if (one := clock.get("high_mhz", 0)) > 1.01 * base * right / 1024 else "") + ".")
    elif base and said:
        yield f"Your kernel takes {_ghz(base * said / 1024)} GHz for your highest clock."
    elif base and right:
        yield f"Your highest clock is {_ghz(base * right / 1024)} GHz; what the kernel takes for"\
            " it is not known."
    for state in data.get("state", ()):
        if "wake_us" in state:
            yield (f"To wake from {state['name']} takes {_us(state['wake_us'][2])}; "
                   f"the driver says {state['exit_us']} us.")
    for change in data.get("change", ()):
        yield (f"From {_ghz(change['from_mhz'])} to {_ghz(change['to_mhz'])} GHz takes "
               f"{_us(change['us'][1])}, at most {_us(change['us'][2])}.")
    if power := data.get("power"):
        yield f"Idle {power['idle_w']:g} W, with one busy core {power['busy_w']:g} W."
    for work in sorted({one["work_us"] for one in data.get("handover", ())}):
        by = {one["states"]: one["us"] for one in data["handover"] if one["work_us"] == work}
        if len(by) == 2:
            yield (f"A hand-over after {work} us of work takes {_us(by['all'])}"
                   + (f", without deep idle states {_us(by['shallow'])}"
                      if len(data.get("state", ())) > 2 else "") + ".")
    for reason in data.get("missing", ()):
        yield f"Not measured: {WHY[reason]}."


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _entry(table: str, entry: Data) -> Iterator[str]:
    if table:
        yield f"\n[[{table}]]" if table in ARRAYS else f"\n[{table}]"
    for name, value in entry.items():
        number = hex(value) if table == "registers" or name in ("microcode", "mwait_edx") \
            else _toml(value)
        yield f"{name} = {number}"


def render(data: Data) -> str:
    """The text of a file; in the order of TABLES."""
    lines = ["# What cpuwhy probe has read and measured on one machine. In it are no names, no",
             "# addresses and no serial numbers, and it has been sent to nobody.", "#",
             *(f"# {line}" for line in sentences(data)), ""]
    top = {key: data[key] for key in TABLES[""] if key in data}
    lines += _entry("", top)
    for table in TABLES:
        if not table or table not in data:
            continue
        for entry in data[table] if table in ARRAYS else [data[table]]:
            lines += _entry(table, {key: entry[key] for key in TABLES[table] if key in entry})
    return "\n".join(lines) + "\n"


def check(text: str) -> Data:
    """The data; ValueError says what is not of the form."""
    if len(text.encode()) > MOST_BYTES:
        raise ValueError(f"{len(text.encode())} bytes, allowed are {MOST_BYTES}")
    import tomllib  # not before Python 3.11, which only reading needs

    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"is no TOML: {error}") from error
    for problem in problems(data):
        raise ValueError(problem)
    try:
        again = render(data)
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"lacks {error}") from error
    for number, (ours, theirs) in enumerate(zip(again.splitlines(), text.splitlines()), 1):
        if ours != theirs:
            raise ValueError(f"line {number} was changed by hand: {theirs[:60]!r}")
    if again != text:
        raise ValueError("lines were added or removed by hand")
    return data
