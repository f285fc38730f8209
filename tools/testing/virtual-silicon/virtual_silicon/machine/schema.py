# SPDX-License-Identifier: GPL-2.0
"""What a machine file may say: keys, types, ranges and defaults, all in one place.

Each table is a class.  The rest of the package sees only what passed through them.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from cpuwhy import turbo

from ..errors import MachineError


class Range(NamedTuple):
    """What a number may be."""

    low: float
    high: float | None = None


Ratio = Annotated[int, Range(1, 255)]
OwnRatio = Annotated[int, Range(0, 255)]		# 0: none of its own
Hint = Annotated[int, Range(0, 0xFF)]
Register = Annotated[int, Range(0, 0xFFFFFFFF)]	# 0: none
NotNegative = Annotated[float, Range(0)]
Cycles = Annotated[int, Range(0, 1_000_000)]
Permille = Annotated[int, Range(0, 1000)]
Volts = Annotated[float, Range(0.1, 2)]

#: Of a field: what a file leaves out follows from the rest of it, as _derive() says.
DERIVED = {"derived": True}


@dataclass(frozen=True, kw_only=True)
class Identity:
    """[machine]"""

    title: str
    vendor: Literal["GenuineIntel", "AuthenticAMD"] = "GenuineIntel"
    family: Annotated[int, Range(6, 31)] = 6
    model: Annotated[int, Range(0, 255)]
    stepping: Annotated[int, Range(0, 15)] = 0
    microcode: Annotated[int, Range(1, 2**32 - 1)] = 1
    packages: Annotated[int, Range(1, 8)] = 1
    cores: Annotated[int, Range(1, 512)]
    threads: Annotated[int, Range(1, 4)] = 1		# of each core
    packages_together: bool = False			# none rests before all can


@dataclass(frozen=True, kw_only=True)
class Frequency:
    bus_khz: Annotated[int, Range(25_000, 200_000)] = 100_000
    min_ratio: Ratio = field(metadata=DERIVED)
    base_ratio: Ratio = field(metadata=DERIVED)
    pstate_ratios: tuple[Ratio, ...] = ()			# AMD: P0 (base) and on
    domain_cpus: Annotated[int, Range(1, 256)] = 1	# whose P-state _PSD says is one
    coordination: Literal["hw", "all", "any"] = "hw"


@dataclass(frozen=True, kw_only=True)
class Transition:
    """From a request, or a changed limit, to the new clock: a wait for the next slot,
    then the change itself.  All 0: at once."""

    scope: Literal["package", "core"] = "package"	# whose cores have the same slots
    period_us: Annotated[float, Range(0, 100_000)] = 0.0	# from slot to slot
    # another period, for clocks above this, so long after the last change; 0: none
    long_period_us: Annotated[float, Range(0, 100_000)] = 0.0
    long_above_ratio: OwnRatio = 255
    long_after_us: Annotated[float, Range(0, 100_000)] = 0.0
    up_us: Annotated[float, Range(0, 10_000)] = 0.0		# from slot to effect
    down_us: Annotated[float, Range(0, 10_000)] = 0.0
    halt_us: Annotated[float, Range(0, 1_000)] = 0.0		# no core executes then
    # so long after a change, going back takes this, without a slot
    return_within_us: Annotated[float, Range(0, 100_000)] = 0.0
    return_above_ratio: OwnRatio = 0				# if both clocks are above
    return_up_us: Annotated[float, Range(0, 10_000)] = 0.0
    return_down_us: Annotated[float, Range(0, 10_000)] = 0.0
    told_us: Annotated[int, Range(0, 10_000)] = 10		# what _PSS says of it


@dataclass(frozen=True, kw_only=True)
class CoreClass:
    """Cores that differ from the machine's first kind; 0: as those."""

    name: str
    cores: Annotated[int, Range(1, 255)]		# so many of the machine's
    base_ratio: OwnRatio = 0
    max_ratio: Ratio
    efficient_ratio: OwnRatio = 0
    hwp_unit_khz: Annotated[int, Range(0, 200_000)] = 0
    power_permille: Annotated[int, Range(1, 10_000)] = 1000
    work_permille: Annotated[int, Range(100, 4_000)] = 1000	# of the first's per cycle
    # CPUID 1AH, with features.core_type; AMD: 80000026H, 1: efficient
    core_type: Annotated[int, Range(0, 255)] = 0


@dataclass(frozen=True, kw_only=True)
class Hwp:
    present: bool = False
    efficient_ratio: OwnRatio = 0
    unit_khz: Annotated[int, Range(0, 200_000)] = 0	# of a performance level, 0: bus_khz
    epp: bool = True				# else the energy-performance bias


@dataclass(frozen=True, kw_only=True)
class Turbo:
    """Highest ratio by the number of active cores: steps, the last covers the rest."""

    layout: Literal["bytes", "groups", "deltas", "atom", "none"] = field(metadata=DERIVED)
    cores: tuple[Ratio, ...] = ()
    ratios: tuple[Ratio, ...] = ()
    # in their place: the registers of the part, in the order of turbo.registers()
    registers: tuple[Annotated[int, Range(0, 2**64 - 1)], ...] = ()

    def limit(self, active: int) -> int:
        """Highest ratio while `active` cores are."""
        for cores, ratio in zip(self.cores, self.ratios):
            if active <= cores:
                return ratio
        return self.ratios[-1]


@dataclass(frozen=True, kw_only=True)
class Features:
    waitpkg: bool = False
    client_msrs: bool = False
    pkg_cstate_limit: Annotated[int, Range(0, 15)] = 0
    tj_max: Annotated[int, Range(1, 127)] = 100
    core_type: Annotated[int, Range(0, 255)] = 0	# CPUID 1AH, of a hybrid part
    l2_cores: Annotated[int, Range(1, 64)] = 1	# Intel: that share an L2, as CPUID 4 says
    counter_unit: Annotated[int, Range(1, 1024)] = 1	# cycles of APERF and MPERF
    cppc_msrs: bool = False			# AMD: requests by MSRC001_02Bx
    cppc_highest: Ratio = 255			# AMD: performance at the top
    cppc_nominal: OwnRatio = 0			# at base; 0: by the ratio
    zero_msrs: tuple[Annotated[int, Range(0, 0xFFFFFFFF)], ...] = ()
    cst_hints: tuple[Hint, ...] = ()			# _CST: MWAIT hints, C1 first


#: Exit latency: parts per million of all wake-ups, us, and us if the core's own timer
#: ends the rest.
Quantile = tuple[int, float, float]

#: Where no distribution was measured, shares of what the driver says.  Median and 99.99 %
#: are those of Ice Lake's C6 (128 and 170 us), with a timer those of Ivy Bridge's (24 and
#: 66 % of what a device takes); the least is assumed.
EXIT_SHAPE = ((0, 0.5, 0.0), (500_000, 0.753, 0.18), (999_900, 1.0, 0.66))


@dataclass(frozen=True, kw_only=True)
class IdleState:
    """One state that MWAIT enters, or a read of an I/O port.

    Its exit latency is a distribution, and cycles of the core's clock beside it.  At
    `voltage` "off" it draws power_mw; else besides what a core leaks at that voltage
    and so much of what it would draw by switching.
    """

    name: str
    hints: tuple[Hint, ...] = ()
    port: Annotated[int, Range(0, 0xFFFF)] = 0
    exit_us: float				# what driver or firmware says of it
    wake_ppm: tuple[Annotated[int, Range(0, 1_000_000)], ...] = ()	# quantiles
    wake_us: tuple[NotNegative, ...] = ()
    wake_cycles: Cycles = 0
    timer_us: tuple[NotNegative, ...] = ()	# if its timer wakes it
    entry_us: NotNegative = field(metadata=DERIVED)
    residency_us: NotNegative
    residency_msr: Register = field(metadata=DERIVED)
    power_mw: NotNegative = 0.0
    voltage: Literal["off", "lowest", "core"] = "off"
    dynamic_permille: Permille = 0
    active: bool = False

    @property
    def quantiles(self) -> list[Quantile]:
        """Of the exit latency without cycles.  A timer is foreseen where that was measured,
        and by default by states for MWAIT in which the core has no voltage."""
        if self.wake_us:
            return list(zip(self.wake_ppm, self.wake_us, self.timer_us or self.wake_us,
                            strict=True))
        if self.wake_cycles:
            return [(0, 0.0, 0.0)]
        return [(ppm, share * self.exit_us,
                 (timer if self.voltage == "off" and self.hints else share) * self.exit_us)
                for ppm, share, timer in EXIT_SHAPE]


@dataclass(frozen=True, kw_only=True)
class PackageState:
    """What the package does once every core rests in `core_state` or deeper."""

    name: str
    core_state: str
    uncore_permille: Permille			# of what it draws awake at base
    exit_us: NotNegative = 0.0			# beside the core's
    residency_msr: Register = 0


@dataclass(frozen=True, kw_only=True)
class Umwait:
    c01_entry_cycles: Cycles = 0
    c02_entry_cycles: Cycles = 0
    c01_exit_cycles: Cycles = 0
    c02_exit_cycles: Cycles = 0
    c01_permille: Permille = 1000		# of dynamic power
    c02_permille: Permille = 1000


@dataclass(frozen=True, kw_only=True)
class Power:
    tdp_w: Annotated[float, Range(1, 1000)]
    uncore_w: NotNegative = field(metadata=DERIVED)	# a core is awake, at base or above
    uncore_low_permille: Permille = 1000	# of that at the lowest clock
    traffic_w: NotNegative = 0.0		# more of it under the load that draws the TDP
    dram_w: NotNegative = 0.0
    v_min: Volts				# at min_ratio
    v_max: Volts				# at the highest ratio; between them points
    v_mhz: tuple[Annotated[int, Range(100, 10_000)], ...] = ()
    v_volts: tuple[Volts, ...] = ()
    leakage_w: NotNegative = field(metadata=DERIVED)	# per core at v_max
    # 0: such that all cores at base draw the TDP with the load that switches most
    capacitance_nf: NotNegative = 0.0
    # What usual code, a thread a core, switches of that: on Zen 2 at 2.5 GHz the 64 cores draw
    # 85.1 W in roco2's "compute" and, with two threads each, 163.5 W in "matmul"
    # (tud-zih-energy/2021-rome-ee: roco2/conway.tsv).
    activity: Annotated[float, Range(0.01, 1)] = 0.52
    pause_permille: Permille = 550		# of dynamic power, in PAUSE; assumed
    sibling_permille: Permille = 150		# more for a further thread; assumed
    energy_unit_shift: Annotated[int, Range(1, 31)] = 14	# 1/2^n J
    energy_unit_uj: Annotated[int, Range(0, 4096)] = 0	# in its place
    dram_unit_nj: Annotated[int, Range(0)] = 0
    rapl: tuple[Literal["package", "cores", "dram"], ...] = ()	# none: before Sandy Bridge


@dataclass(frozen=True, kw_only=True)
class Limits:
    # window of limit 1 in 0x610 at the start; 0: the register is locked, nothing enforced
    power_tau_s: Annotated[float, Range(0, 1000)] = 0.0
    thermal_resistance: Annotated[float, Range(0, 100)] = 0.0	# K/W
    thermal_tau_s: Annotated[float, Range(0, 1000)] = 0.0
    ambient_c: Annotated[float, Range(0, 100)] = 25.0


@dataclass(frozen=True, kw_only=True)
class Time:
    # Kernel code that is warm takes 1.06 (poll), 1.20 (TCP on Ice Lake), 1.39
    # (timers, Ice Lake) and 1.45 (UDP, one thread, Ivy Bridge) cycles per
    # instruction in reports of Intel's kernel test robot, perf-stat.overall.cpi:
    # lore.kernel.org messages 202501101058.cd8beeba-lkp, 202406041514.1051ae19,
    # 202502051546.fca7cd-lkp, 202405291024.412dc03e.
    kernel_cycles_per_1000_insns: Annotated[int, Range(100, 100_000)] = 1500
    # Dearer than any real program's: it is what a guest second can afford.
    user_cycles_per_1000_insns: Annotated[int, Range(100, 100_000)] = 8000
    quantum_ns: Annotated[int, Range(1_000, 1_000_000)] = 10_000
    memory_permille: Annotated[int, Range(0, 1000)] = 0
    pause_cycles: Annotated[int, Range(0, 1_000_000)] = 0
    smt_permille: Annotated[int, Range(100, 1000)] = 600
    ipi_ns: Annotated[int, Range(0, 1_000_000)] = 0	# interrupt to one that rests
    store_ns: Annotated[int, Range(0, 1_000_000)] = 0	# store to its monitored line
    remote_ns: Annotated[int, Range(0, 1_000_000)] = 0	# more from another package
    latency: Literal["measured", "median", "worst"] = "measured"	# of exits
    seed: Annotated[int, Range(0, 2**32 - 1)] = 1	# of what is drawn from quantiles


@dataclass(frozen=True, kw_only=True)
class Tables:
    """A whole file.  Tuples are arrays of tables, [[idle]]."""

    machine: Identity
    frequency: Frequency
    turbo: Turbo
    idle: tuple[IdleState, ...]
    power: Power
    classes: tuple[CoreClass, ...] = field(default=(), metadata={"key": "class"})
    transition: Transition = Transition()
    hwp: Hwp = Hwp()
    features: Features = Features()
    package: tuple[PackageState, ...] = ()
    umwait: Umwait = Umwait()
    limits: Limits = Limits()
    time: Time = Time()


#: What the name of an idle state says of it: MWAIT's hint; that its clocks are gated and
#: it leaks at the voltage of the clock asked for, in C1E at that of the lowest; and that it
#: counts as active (SDM vol. 3, turbo: C0 and C1 do; AMD: assumed).  What still switches
#: is assumed.
BY_NAME: dict[str, dict[str, Any]] = {
    "C1": {"hints": (0x00,), "active": True, "voltage": "core", "dynamic_permille": 50},
    "C1E": {"hints": (0x01,), "active": True, "voltage": "lowest", "dynamic_permille": 50}}

#: Intel's residency register by the number in a state's name: SDM vol. 4.  C8 and deeper are
#: core C7.
RESIDENCY = {"3": 0x3FC, "6": 0x3FD, "7": 0x3FE, "8": 0x3FE, "9": 0x3FE, "10": 0x3FE}

#: Of a part with waitpkg whose file has no [umwait]: assumed.
UMWAIT = {"c01_entry_cycles": 30, "c02_entry_cycles": 60, "c01_exit_cycles": 60,
          "c02_exit_cycles": 180, "c01_permille": 450, "c02_permille": 330}


def _derive(tables: dict[str, Any]) -> None:
    """Puts what follows from other data, and what is assumed of every part, where a file
    does not say it."""
    machine, frequency, power = tables["machine"], tables["frequency"], tables["power"]
    intel = machine.get("vendor") != "AuthenticAMD"
    if states := frequency.get("pstate_ratios"):
        frequency.setdefault("base_ratio", states[0])
        frequency.setdefault("min_ratio", states[-1])
    if layout := turbo.layout(
            turbo.number(machine.get("family", 6), machine["model"])) if intel else "none":
        tables["turbo"].setdefault("layout", layout)
    if len(tables["turbo"].get("ratios", ())) == 1:	# with all cores as with one: assumed
        tables["turbo"].setdefault("cores", (machine["cores"],))
    for state in tables["idle"]:
        for key, value in BY_NAME.get(state["name"], {}).items():
            if key != "hints" or "port" not in state:
                state.setdefault(key, value)
        # assumed: a quarter of the exit latency
        state.setdefault("entry_us", state["exit_us"] / 4)
        state.setdefault("residency_msr",
                         RESIDENCY.get(re.sub(r"C(\d+).*", r"\1", state["name"]), 0)
                         if intel else 0)
    # assumed: a quarter and 12 % of the TDP
    power.setdefault("uncore_w", power["tdp_w"] / 4)
    power.setdefault("leakage_w", float(f"{0.12 * power['tdp_w'] / machine['cores']:.3g}"))
    features, hwp = tables.get("features", {}), tables.get("hwp", {})
    if features.get("waitpkg"):
        tables.setdefault("umwait", UMWAIT)
    if "efficient_ratio" in hwp:
        hwp.setdefault("present", True)
    if intel and features.get("core_type"):		# of Core: the other kind is Atom
        for kind in tables.get("class", ()):
            kind.setdefault("core_type", 0x20)
            # assumed: an E-core at the clock of a P-core
            kind.setdefault("power_permille", 400)


class Lines:
    """Line of each table and key of a TOML text, which tomllib does not tell.

    Keys are (table, index, key); index counts the entries of an array of
    tables, key is "" for the header itself.  A key of a part is that of the table
    in its place: "frequency.base_ratio" below [part.NAME], [[part.NAME.idle]].
    """

    _HEADER = re.compile(r"^\s*(\[\[?)\s*([\w.-]+)\s*\]\]?\s*(#.*)?$")
    _KEY = re.compile(r"^\s*([\w.-]+)\s*=")

    def __init__(self, text: str, part: str = "") -> None:
        self._at: dict[tuple[str, int, str], int] = {}
        self._part = f"part.{part}"
        seen: dict[str, int] = {}
        table, index = "", 0
        for number, line in enumerate(text.splitlines(), 1):
            if header := self._HEADER.match(line):
                table = header[2]
                index = seen[table] = seen.get(table, -1) + 1
                self._at[table, index, ""] = number
            elif key := self._KEY.match(line):
                words = key[1].split(".")
                for count in range(1, len(words) + 1):
                    self._at.setdefault((table, index, ".".join(words[:count])), number)

    def of(self, table: str, key: str = "", index: int = 0, name: str = "") -> int:
        """Line of the key, of the entry of this name; of its table if the key is not
        there; else 0."""
        places = [(self._part, 0, f"{table}.{name}.{key}"), ("", 0, f"{table}.{name}.{key}"),
                  (self._part, 0, f"{table}.{key}"), ("", 0, f"{table}.{key}"),
                  (f"{self._part}.{table}", index, key), (table, index, key),
                  (f"{self._part}.{table}", index, ""), (table, index, ""),
                  ("", 0, table)]
        return next((self._at[place] for place in places if place in self._at), 0)


class Checker:
    """Checks one parsed file against the tables and fills in the defaults.

    Types are TOML's: 1 is not true, and "1" not an integer.
    """

    def __init__(self, path: object, text: str, part: str = "") -> None:
        self.path = path
        self.lines = Lines(text, part)
        self._names: dict[str, list[str]] = {}	# of the entries of arrays of tables

    def fail(self, reason: str, table: str = "", key: str = "",
             index: int = 0) -> MachineError:
        name = dict(enumerate(self._names.get(table, []))).get(index, "")
        return MachineError(self.path, self.lines.of(table, key, index, name), reason)

    def check(self, data: dict[str, Any]) -> Tables:
        known = _keys(Tables)
        for table in data:
            if table not in known:
                raise self.fail(f"unknown table [{table}]; allowed: {', '.join(known)}", table)
        checked = {table: self._table(table, known[table].hint, given)
                   for table, given in data.items()}
        for table, key in known.items():
            if key.required and table not in data:
                raise self.fail(f"table [{table}] is missing")
        _derive(checked)
        return Tables(**{known[table].name: self._built(table, known[table].hint, values)
                         for table, values in checked.items()})

    def _built(self, table: str, hint: Any, values: Any) -> Any:
        """A table, or those of an array of tables, as objects."""
        if isinstance(values, list):
            return tuple(get_args(hint)[0](**entry) for entry in values)
        for name, key in _keys(hint).items():
            if key.derived and key.name not in values:
                raise self.fail(f"[{table}] needs the key {name!r}: it follows from nothing "
                                "else here", table)
        return hint(**values)

    def _table(self, table: str, hint: Any, given: Any) -> Any:
        """A table, or those of an array of tables."""
        if get_origin(hint) is not tuple:
            if not isinstance(given, dict):
                raise self.fail(f"[{table}] must be a table", table)
            return self._entry(table, hint, given)
        if not isinstance(given, list) or not given or not all(
                isinstance(entry, dict) for entry in given):
            raise self.fail(f"write [[{table}]], once per entry", table)
        self._names[table] = [str(entry.get("name", "")) for entry in given]
        return [self._entry(table, get_args(hint)[0], entry, index)
                for index, entry in enumerate(given)]

    def _entry(self, table: str, model: type, given: dict[str, Any],
               index: int = 0) -> dict[str, Any]:
        known = _keys(model)
        # A misspelt key is missing as well: say which is there.
        for name in given:
            if name not in known:
                raise self.fail(f"unknown key {name!r} in [{table}]; allowed: "
                                + ", ".join(known), table, name, index)
        for name, key in known.items():
            if key.required and name not in given:
                raise self.fail(f"[{table}] needs the key {name!r}", table, "", index)
        checked = {}
        for name, value in given.items():
            try:
                checked[known[name].name] = _checked(value, known[name].hint)
            except ValueError as error:
                raise self.fail(f"{name} {error}", table, name, index) from error
        return checked


class Key(NamedTuple):
    name: str			# of the attribute
    hint: Any
    required: bool
    derived: bool


@cache
def _keys(model: type) -> dict[str, Key]:
    """The keys of a table, or the tables of a file, as they are written."""
    hints = get_type_hints(model, include_extras=True)
    return {f.metadata.get("key", f.name): Key(
                f.name, hints[f.name], f.default is MISSING and "derived" not in f.metadata,
                "derived" in f.metadata)
            for f in fields(model)}


#: What a value, and a list of such values, is called.
_NAMES: dict[type, tuple[str, str]] = {
    bool: ("true or false", "a list of true or false"), int: ("an integer", "a list of integers"),
    float: ("a number", "a list of numbers"), str: ("a string", "a list of strings")}


def _checked(given: Any, hint: Any) -> Any:
    """The value as its type has it; ValueError says what is allowed."""
    origin, words = get_origin(hint), get_args(hint)
    if origin is tuple:
        kind = _kind(words[0])
        if not isinstance(given, list) or not given or not all(_is(one, kind) for one in given):
            raise ValueError(f"must be {_NAMES[kind][1]}, not {given!r}")
        return tuple(_checked(one, words[0]) for one in given)
    if origin is Literal:
        if given not in words:
            raise ValueError(f"cannot be {given!r}; allowed: {', '.join(words)}")
        return given
    kind = _kind(hint)
    if not _is(given, kind):
        raise ValueError(f"must be {_NAMES[kind][0]}, not {given!r}")
    for low, high in words[1:]:
        if not low <= given <= (given if high is None else high):
            raise ValueError(f"is {given}, allowed is " + (
                f"at least {low:g}" if high is None else f"{low:g} to {high:g}"))
    return kind(given)


def _kind(hint: Any) -> type:
    return str if get_origin(hint) is Literal else next(iter(get_args(hint)), hint)


def _is(given: Any, kind: type) -> bool:
    """An integer is a number as well, but true is no integer."""
    return isinstance(given, (int, float) if kind is float else kind) \
        and isinstance(given, bool) == (kind is bool)
