# SPDX-License-Identifier: GPL-2.0
"""What a machine file may say: keys, types, ranges and defaults, all in one place.

The rest of the package sees only values that passed through check().
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .errors import MachineError

REQUIRED = object()


@dataclass(frozen=True)
class Key:
    """One key of a table: its type, default and allowed range."""

    kind: str  # "int", "number", "bool", "string", "ints", "strings"
    default: Any = REQUIRED
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()


#: Tables and keys.  "[[idle]]" is an array of tables, at least one.
SCHEMA: dict[str, dict[str, Key]] = {
    "machine": {
        "like": Key("string", ""),
        "title": Key("string"),
        "vendor": Key("string", "GenuineIntel", choices=("GenuineIntel", "AuthenticAMD")),
        "family": Key("int", 6, 6, 31),
        "model": Key("int", low=0, high=255),
        "stepping": Key("int", 0, 0, 15),
        "microcode": Key("int", 1, 1, 2**32 - 1),
        "packages": Key("int", 1, 1, 8),
        "cores": Key("int", low=1, high=256),
        "threads": Key("int", 1, 1, 4),		# of each core
    },
    "class": {
        "name": Key("string"),
        "cores": Key("int", low=1, high=255),	# so many of the machine's
        "base_ratio": Key("int", 0, 0, 255),	# 0: as the machine
        "max_ratio": Key("int", low=1, high=255),
        "efficient_ratio": Key("int", 0, 0, 255),
        "hwp_unit_khz": Key("int", 0, 0, 200_000),
        "power_permille": Key("int", 1000, 1, 10_000),
        "core_type": Key("int", 0, 0, 255),	# CPUID 1AH, with features.core_type;
						# AMD: 80000026H, 1: efficient
    },
    "frequency": {
        "bus_khz": Key("int", 100_000, 25_000, 200_000),
        "min_ratio": Key("int", low=1, high=255),
        "base_ratio": Key("int", low=1, high=255),
        "transition_us": Key("number", 0.0, 0, 10_000),
        "pstate_ratios": Key("ints", (), 1, 255),	# AMD: P0 (base) and on
        "domain_cpus": Key("int", 1, 1, 256),	# whose P-state _PSD says is one
        "coordination": Key("string", "hw", choices=("hw", "all", "any")),
    },
    "hwp": {
        "present": Key("bool", False),
        "efficient_ratio": Key("int", 0, 0, 255),
        "unit_khz": Key("int", 0, 0, 200_000),	# of a performance level, 0: bus_khz
        "epp": Key("bool", True),		# else the energy-performance bias
    },
    "turbo": {
        "layout": Key("string", choices=("bytes", "groups", "deltas", "atom", "none")),
        "cores": Key("ints", low=1, high=255),
        "ratios": Key("ints", low=1, high=255),
    },
    "features": {
        "waitpkg": Key("bool", False),
        "client_msrs": Key("bool", False),
        "pkg_cstate_limit": Key("int", 0, 0, 15),
        "tj_max": Key("int", 100, 1, 127),
        "core_type": Key("int", 0, 0, 255),	# CPUID 1AH, of a hybrid part
        "counter_unit": Key("int", 1, 1, 1024),	# cycles of APERF and MPERF
        "cppc_msrs": Key("bool", False),	# AMD: requests by MSRC001_02Bx
        "cppc_highest": Key("int", 255, 1, 255),	# AMD: performance at the top
        "zero_msrs": Key("ints", (), 0, 0xFFFFFFFF),
        "cst_hints": Key("ints", (), 0, 0xFF),	# _CST: MWAIT hints, C1 first
    },
    "idle": {
        "name": Key("string"),
        "hints": Key("ints", (), 0, 0xFF),
        "port": Key("int", 0, 0, 0xFFFF),	# a read of it enters the state
        "exit_us": Key("number"),
        "entry_us": Key("number", 0.0, 0),
        "residency_us": Key("number", low=0),
        "residency_msr": Key("int", 0, 0, 0xFFFFFFFF),
        "power_mw": Key("number", low=0),
        "active": Key("bool", False),
    },
    "package": {
        "name": Key("string"),
        "core_state": Key("string"),
        "uncore_w": Key("number", low=0),
        "residency_msr": Key("int", low=1, high=0xFFFFFFFF),
    },
    "umwait": {
        "c01_exit_ns": Key("int", 0, 0),
        "c02_exit_ns": Key("int", 0, 0),
        "c01_power_mw": Key("number", 0.0, 0),
        "c02_power_mw": Key("number", 0.0, 0),
    },
    "power": {
        "tdp_w": Key("number", low=1, high=1000),
        "uncore_w": Key("number", low=0),
        "dram_w": Key("number", 0.0, 0),
        "v_min": Key("number", low=0.1, high=2),
        "v_max": Key("number", low=0.1, high=2),
        "leakage_w": Key("number", low=0),
        "capacitance_nf": Key("number", low=0),
        "activity": Key("number", 1.0, 0.01, 1),
        "energy_unit_shift": Key("int", 14, 1, 31),	# 1/2^n J
        "energy_unit_uj": Key("int", 0, 0, 4096),	# in its place
        "dram_unit_nj": Key("int", 0, 0),
        "rapl": Key("strings", choices=("package", "cores", "dram")),
    },
    "limits": {
        "power_tau_s": Key("number", 0.0, 0, 1000),
        "thermal_resistance": Key("number", 0.0, 0, 100),	# K/W
        "thermal_tau_s": Key("number", 0.0, 0, 1000),
        "ambient_c": Key("number", 25.0, 0, 100),
    },
    "time": {
        "cycles_per_1000_insns": Key("int", 8000, 100, 100_000),
        "quantum_ns": Key("int", 10_000, 1_000, 1_000_000),
        "memory_permille": Key("int", 0, 0, 1000),
        "pause_cycles": Key("int", 0, 0, 1_000_000),
        "smt_permille": Key("int", 600, 100, 1000),
        "ipi_ns": Key("int", 0, 0, 1_000_000),
    },
}

OPTIONAL_TABLES = {"umwait", "time", "features", "hwp", "package", "limits",
                   "class"}
ARRAY_TABLES = {"idle", "package", "class"}

_TYPE_NAMES = {
    "int": "an integer", "number": "a number", "bool": "true or false",
    "string": "a string", "ints": "a list of integers",
    "strings": "a list of strings",
}


class Lines:
    """Line of each table and key of a TOML text, which tomllib does not tell.

    Keys are (table, index, key); index counts the entries of an array of
    tables, key is "" for the header itself.
    """

    _HEADER = re.compile(r"^\s*(\[\[?)\s*([\w.-]+)\s*\]\]?\s*(#.*)?$")
    _KEY = re.compile(r"^\s*([\w-]+)\s*=")

    def __init__(self, text: str) -> None:
        self._at: dict[tuple[str, int, str], int] = {}
        seen: dict[str, int] = {}
        table, index = "", 0
        for number, line in enumerate(text.splitlines(), 1):
            if header := self._HEADER.match(line):
                table = header[2]
                index = seen[table] = seen.get(table, -1) + 1
                self._at[table, index, ""] = number
            elif key := self._KEY.match(line):
                self._at.setdefault((table, index, key[1]), number)

    def of(self, table: str, key: str = "", index: int = 0) -> int:
        """Line of the key; of its table if the key is not there; else 0."""
        return self._at.get((table, index, key),
                            self._at.get((table, index, ""), 0))


class Checker:
    """Checks one parsed file against SCHEMA and fills in the defaults."""

    def __init__(self, path: object, text: str) -> None:
        self.path = path
        self.lines = Lines(text)

    def fail(self, reason: str, table: str = "", key: str = "",
             index: int = 0) -> MachineError:
        return MachineError(self.path, self.lines.of(table, key, index), reason)

    def check(self, data: dict[str, Any]) -> dict[str, Any]:
        for name in data:
            if name not in SCHEMA:
                line = self.lines.of(name) or self.lines.of("", name)
                raise MachineError(self.path, line,
                                   f"unknown table [{name}]; allowed: "
                                   + ", ".join(SCHEMA))
        return {name: self._table(name, data) for name in SCHEMA}

    def _table(self, name: str, data: dict[str, Any]) -> Any:
        if name not in data and name not in OPTIONAL_TABLES:
            raise self.fail(f"table [{name}] is missing")
        if name in ARRAY_TABLES:
            entries = data.get(name)
            if entries is None:
                return []
            if not isinstance(entries, list) or not entries:
                raise self.fail(f"write [[{name}]], once per entry", name)
            return [self._keys(name, entry, i) for i, entry in enumerate(entries)]
        value = data.get(name, {})
        if not isinstance(value, dict):
            raise self.fail(f"[{name}] must be a table",
                            *((name,) if self.lines.of(name) else ("", name)))
        return self._keys(name, value, 0)

    def _keys(self, table: str, values: dict[str, Any], index: int) -> dict[str, Any]:
        for key in values:
            if key not in SCHEMA[table]:
                raise self.fail(f"unknown key {key!r} in [{table}]; allowed: "
                                + ", ".join(SCHEMA[table]), table, key, index)
        out = {}
        for key, rule in SCHEMA[table].items():
            if key in values:
                out[key] = self._value(table, key, rule, values[key], index)
            elif rule.default is REQUIRED:
                raise self.fail(f"[{table}] needs the key {key!r}", table, "", index)
            else:
                out[key] = rule.default
        return out

    def _value(self, table: str, key: str, rule: Key, value: Any, index: int) -> Any:
        if not _has_type(rule.kind, value):
            raise self.fail(f"{key} must be {_TYPE_NAMES[rule.kind]}, not {value!r}",
                            table, key, index)
        for item in value if isinstance(value, list) else [value]:
            self._range(table, key, rule, item, index)
        return value

    def _range(self, table: str, key: str, rule: Key, item: Any, index: int) -> None:
        if rule.choices and item not in rule.choices:
            raise self.fail(f"{key} cannot be {item!r}; allowed: "
                            + ", ".join(rule.choices), table, key, index)
        low = rule.low if rule.low is not None else float("-inf")
        high = rule.high if rule.high is not None else float("inf")
        if isinstance(item, (int, float)) and not low <= item <= high:
            allowed = (f"{low:g} to {high:g}" if high < float("inf")
                       else f"at least {low:g}")
            raise self.fail(f"{key} is {item}, allowed is {allowed}",
                            table, key, index)


def _has_type(kind: str, value: Any) -> bool:
    """TOML types; bool is an int to Python, but not here."""
    if kind in ("ints", "strings"):
        return (isinstance(value, list) and bool(value)
                and all(_has_type(kind[:-1], item) for item in value))
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "string":
        return isinstance(value, str)
    numeric = (int,) if kind == "int" else (int, float)
    return isinstance(value, numeric) and not isinstance(value, bool)
