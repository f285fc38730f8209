# SPDX-License-Identifier: GPL-2.0
"""What a machine file may say: keys, types, ranges and defaults, all in one place.

Each table is a class.  The rest of the package sees only what passed through them.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Extra, Field, ValidationError, validator
from pydantic.fields import SHAPE_SINGLETON, ModelField

from ..errors import MachineError

Ratio = Annotated[int, Field(ge=1, le=255)]
OwnRatio = Annotated[int, Field(ge=0, le=255)]		# 0: none of its own
Ratios = Annotated[tuple[int, ...], Field(ge=1, le=255)]
Hints = Annotated[tuple[int, ...], Field(ge=0, le=0xFF)]
Register = Annotated[int, Field(ge=0, le=0xFFFFFFFF)]	# 0: none
NotNegative = Annotated[float, Field(ge=0)]
Cycles = Annotated[int, Field(ge=0, le=1_000_000)]
Permille = Annotated[int, Field(ge=0, le=1000)]
Volts = Annotated[float, Field(ge=0.1, le=2)]

_NAMES: dict[type, str] = {bool: "true or false", int: "an integer", float: "a number",
                           str: "a string"}
_LISTS: dict[type, str] = {int: "a list of integers", float: "a list of numbers"}


class Table(BaseModel):
    """Types are TOML's: 1 is not true, and "1" not an integer."""

    class Config:
        extra = Extra.forbid
        frozen = True

    @validator("*", pre=True)
    def _toml_type(cls, value: Any, field: ModelField) -> Any:
        kind = next((kind for kind in _NAMES if isinstance(field.type_, type)
                     and issubclass(field.type_, kind)), None)
        several = field.shape != SHAPE_SINGLETON
        items = value if several and isinstance(value, list | tuple) else [value]
        if several and (items is not value or items == []) or kind and not all(
                isinstance(item, (int, float) if kind is float else kind)
                and isinstance(item, bool) == (kind is bool) for item in items):
            names = _LISTS if several else _NAMES
            raise ValueError(f"must be {names[kind] if kind else 'a list'}, not {value!r}")
        return value


class Identity(Table):
    """[machine]"""

    title: str
    vendor: Literal["GenuineIntel", "AuthenticAMD"] = "GenuineIntel"
    family: int = Field(default=6, ge=6, le=31)
    model: int = Field(ge=0, le=255)
    stepping: int = Field(default=0, ge=0, le=15)
    microcode: int = Field(default=1, ge=1, le=2**32 - 1)
    packages: int = Field(default=1, ge=1, le=8)
    cores: int = Field(ge=1, le=512)
    threads: int = Field(default=1, ge=1, le=4)		# of each core
    packages_together: bool = False			# none rests before all can


class Frequency(Table):
    bus_khz: int = Field(default=100_000, ge=25_000, le=200_000)
    min_ratio: Ratio
    base_ratio: Ratio
    pstate_ratios: Ratios = ()			# AMD: P0 (base) and on
    domain_cpus: int = Field(default=1, ge=1, le=256)	# whose P-state _PSD says is one
    coordination: Literal["hw", "all", "any"] = "hw"


class Transition(Table):
    """From a request, or a changed limit, to the new clock: a wait for the next slot,
    then the change itself.  All 0: at once."""

    scope: Literal["package", "core"] = "package"	# whose cores have the same slots
    period_us: float = Field(default=0.0, ge=0, le=100_000)	# from slot to slot
    # another period, for clocks above this, so long after the last change; 0: none
    long_period_us: float = Field(default=0.0, ge=0, le=100_000)
    long_above_ratio: OwnRatio = 255
    long_after_us: float = Field(default=0.0, ge=0, le=100_000)
    up_us: float = Field(default=0.0, ge=0, le=10_000)		# from slot to effect
    down_us: float = Field(default=0.0, ge=0, le=10_000)
    halt_us: float = Field(default=0.0, ge=0, le=1_000)		# no core executes then
    # so long after a change, going back takes this, without a slot
    return_within_us: float = Field(default=0.0, ge=0, le=100_000)
    return_above_ratio: OwnRatio = 0				# if both clocks are above
    return_up_us: float = Field(default=0.0, ge=0, le=10_000)
    return_down_us: float = Field(default=0.0, ge=0, le=10_000)
    told_us: int = Field(default=10, ge=0, le=10_000)		# what _PSS says of it


class CoreClass(Table):
    """Cores that differ from the machine's first kind; 0: as those."""

    name: str
    cores: int = Field(ge=1, le=255)		# so many of the machine's
    base_ratio: OwnRatio = 0
    max_ratio: Ratio
    efficient_ratio: OwnRatio = 0
    hwp_unit_khz: int = Field(default=0, ge=0, le=200_000)
    power_permille: int = Field(default=1000, ge=1, le=10_000)
    work_permille: int = Field(default=1000, ge=100, le=4_000)	# of the first's per cycle
    # CPUID 1AH, with features.core_type; AMD: 80000026H, 1: efficient
    core_type: int = Field(default=0, ge=0, le=255)


class Hwp(Table):
    present: bool = False
    efficient_ratio: OwnRatio = 0
    unit_khz: int = Field(default=0, ge=0, le=200_000)	# of a performance level, 0: bus_khz
    epp: bool = True				# else the energy-performance bias


class Turbo(Table):
    """Highest ratio by the number of active cores: steps, the last covers the rest."""

    layout: Literal["bytes", "groups", "deltas", "atom", "none"]
    cores: Ratios = ()
    ratios: Ratios = ()
    # in their place: the registers of the part, in the order of turbo.registers()
    registers: Annotated[tuple[int, ...], Field(ge=0, le=2**64 - 1)] = ()

    def limit(self, active: int) -> int:
        """Highest ratio while `active` cores are."""
        for cores, ratio in zip(self.cores, self.ratios):
            if active <= cores:
                return ratio
        return self.ratios[-1]


class Features(Table):
    waitpkg: bool = False
    client_msrs: bool = False
    pkg_cstate_limit: int = Field(default=0, ge=0, le=15)
    tj_max: int = Field(default=100, ge=1, le=127)
    core_type: int = Field(default=0, ge=0, le=255)	# CPUID 1AH, of a hybrid part
    counter_unit: int = Field(default=1, ge=1, le=1024)	# cycles of APERF and MPERF
    cppc_msrs: bool = False			# AMD: requests by MSRC001_02Bx
    cppc_highest: Ratio = 255			# AMD: performance at the top
    cppc_nominal: OwnRatio = 0			# at base; 0: by the ratio
    zero_msrs: Annotated[tuple[int, ...], Field(ge=0, le=0xFFFFFFFF)] = ()
    cst_hints: Hints = ()			# _CST: MWAIT hints, C1 first


#: Exit latency: parts per million of all wake-ups, us, and us if the core's own timer
#: ends the rest.
Quantile = tuple[int, float, float]

#: Where no distribution was measured, shares of what the driver says.  Median and 99.99 %
#: are those of Ice Lake's C6 (128 and 170 us), with a timer those of Ivy Bridge's (24 and
#: 66 % of what a device takes); the least is assumed.
EXIT_SHAPE = ((0, 0.5, 0.0), (500_000, 0.753, 0.18), (999_900, 1.0, 0.66))


class IdleState(Table):
    """One state that MWAIT enters, or a read of an I/O port.

    Its exit latency is a distribution, and cycles of the core's clock beside it.  At
    `voltage` "off" it draws power_mw; else besides what a core leaks at that voltage
    and so much of what it would draw by switching.
    """

    name: str
    hints: Hints = ()
    port: int = Field(default=0, ge=0, le=0xFFFF)
    exit_us: float				# what driver or firmware says of it
    wake_ppm: Annotated[tuple[int, ...], Field(ge=0, le=1_000_000)] = ()	# quantiles
    wake_us: Annotated[tuple[float, ...], Field(ge=0)] = ()
    wake_cycles: Cycles = 0
    timer_us: Annotated[tuple[float, ...], Field(ge=0)] = ()	# if its timer wakes it
    entry_us: NotNegative = 0.0
    residency_us: NotNegative
    residency_msr: Register = 0
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


class PackageState(Table):
    """What the package does once every core rests in `core_state` or deeper."""

    name: str
    core_state: str
    uncore_permille: Permille			# of what it draws awake at base
    exit_us: NotNegative = 0.0			# beside the core's
    residency_msr: Register = 0


class Umwait(Table):
    c01_entry_cycles: Cycles = 0
    c02_entry_cycles: Cycles = 0
    c01_exit_cycles: Cycles = 0
    c02_exit_cycles: Cycles = 0
    c01_permille: Permille = 1000		# of dynamic power
    c02_permille: Permille = 1000


class Power(Table):
    tdp_w: float = Field(ge=1, le=1000)
    uncore_w: NotNegative			# a core is awake, at base or above
    uncore_low_permille: Permille = 1000	# of that at the lowest clock
    dram_w: NotNegative = 0.0
    v_min: Volts
    v_max: Volts
    leakage_w: NotNegative
    # None: such that all cores at base draw the TDP
    capacitance_nf: NotNegative | None = None
    activity: float = Field(default=1.0, ge=0.01, le=1)
    pause_permille: Permille = 550		# of dynamic power, in PAUSE; assumed
    sibling_permille: Permille = 150		# more for a further thread; as on Zen 2
    energy_unit_shift: int = Field(default=14, ge=1, le=31)	# 1/2^n J
    energy_unit_uj: int = Field(default=0, ge=0, le=4096)	# in its place
    dram_unit_nj: int = Field(default=0, ge=0)
    rapl: tuple[Literal["package", "cores", "dram"], ...]


class Limits(Table):
    # window of limit 1 in 0x610 at the start; 0: the register is locked, nothing enforced
    power_tau_s: float = Field(default=0.0, ge=0, le=1000)
    thermal_resistance: float = Field(default=0.0, ge=0, le=100)	# K/W
    thermal_tau_s: float = Field(default=0.0, ge=0, le=1000)
    ambient_c: float = Field(default=25.0, ge=0, le=100)


class Time(Table):
    # Kernel code that is warm takes 1.06 (poll), 1.20 (TCP on Ice Lake), 1.39
    # (timers, Ice Lake) and 1.45 (UDP, one thread, Ivy Bridge) cycles per
    # instruction in reports of Intel's kernel test robot, perf-stat.overall.cpi:
    # lore.kernel.org messages 202501101058.cd8beeba-lkp, 202406041514.1051ae19,
    # 202502051546.fca7cd-lkp, 202405291024.412dc03e.
    kernel_cycles_per_1000_insns: int = Field(default=1500, ge=100, le=100_000)
    # Dearer than any real program's: it is what a guest second can afford.
    user_cycles_per_1000_insns: int = Field(default=8000, ge=100, le=100_000)
    quantum_ns: int = Field(default=10_000, ge=1_000, le=1_000_000)
    memory_permille: int = Field(default=0, ge=0, le=1000)
    pause_cycles: int = Field(default=0, ge=0, le=1_000_000)
    smt_permille: int = Field(default=600, ge=100, le=1000)
    ipi_ns: int = Field(default=0, ge=0, le=1_000_000)	# interrupt to one that rests
    store_ns: int = Field(default=0, ge=0, le=1_000_000)	# store to its monitored line
    remote_ns: int = Field(default=0, ge=0, le=1_000_000)	# more from another package
    latency: Literal["measured", "median", "worst"] = "measured"	# of exits
    seed: int = Field(default=1, ge=0, le=2**32 - 1)	# of what is drawn from quantiles


class Tables(Table):
    """A whole file.  Tuples are arrays of tables, [[idle]]."""

    machine: Identity
    frequency: Frequency
    turbo: Turbo
    idle: tuple[IdleState, ...]
    power: Power
    classes: tuple[CoreClass, ...] = Field(default=(), alias="class")
    transition: Transition = Transition()
    hwp: Hwp = Hwp()
    features: Features = Features()
    package: tuple[PackageState, ...] = ()
    umwait: Umwait = Umwait()
    limits: Limits = Limits()
    time: Time = Time()


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
                self._at.setdefault((table, index, key[1]), number)

    def of(self, table: str, key: str = "", index: int = 0) -> int:
        """Line of the key; of its table if the key is not there; else 0."""
        places = [(self._part, 0, f"{table}.{key}"),
                  (f"{self._part}.{table}", index, key), (table, index, key),
                  (f"{self._part}.{table}", index, ""), (table, index, ""),
                  ("", 0, table)]
        return next((self._at[place] for place in places if place in self._at), 0)


class Checker:
    """Checks one parsed file against the tables and fills in the defaults."""

    def __init__(self, path: object, text: str, part: str = "") -> None:
        self.path = path
        self.lines = Lines(text, part)

    def fail(self, reason: str, table: str = "", key: str = "",
             index: int = 0) -> MachineError:
        return MachineError(self.path, self.lines.of(table, key, index), reason)

    def check(self, data: dict[str, Any]) -> Tables:
        try:
            return Tables.parse_obj(data)
        except ValidationError as error:
            # A misspelt key is missing as well: say which is there.
            first = min(error.errors(), key=lambda e: e["type"] != "value_error.extra")
            raise self._error(data, first) from error

    def _error(self, data: dict[str, Any], error: Any) -> MachineError:
        """Its place is table, index in an array of tables, key, index in a list."""
        table, *rest = error["loc"]
        field, index = _field(Tables, table), 0
        if field is None:
            return self.fail(f"unknown table [{table}]; allowed: {_keys(Tables)}", table)
        if error["type"] == "value_error.missing" and not rest:
            return self.fail(f"table [{table}] is missing")
        given = data[table]
        if rest and isinstance(rest[0], int):
            index = rest.pop(0)
            given = given[index]
        if not rest:
            return self.fail(f"write [[{table}]], once per entry"
                             if field.shape != SHAPE_SINGLETON
                             else f"[{table}] must be a table", table)
        key, kind = rest[0], error["type"]
        if kind == "value_error.extra":
            return self.fail(f"unknown key {key!r} in [{table}]; allowed: "
                             + _keys(field.type_), table, key, index)
        if kind == "value_error.missing":
            return self.fail(f"[{table}] needs the key {key!r}", table, "", index)
        for part in rest:
            given = given[part]
        return self.fail(f"{key} {_reason(_field(field.type_, key), given, error)}",
                         table, key, index)


def _field(model: type[Table], name: str) -> ModelField | None:
    return next((field for field in model.__fields__.values() if field.alias == name),
                None)


def _keys(model: type[Table]) -> str:
    return ", ".join(field.alias for field in model.__fields__.values())


def _reason(field: ModelField | None, given: Any, error: Any) -> str:
    """Why a value is refused, and what is allowed."""
    if error["type"] == "value_error.const":
        return f"cannot be {given!r}; allowed: " + ", ".join(error["ctx"]["permitted"])
    if field and error["type"].startswith("value_error.number"):
        low, high = field.field_info.ge, field.field_info.le
        return f"is {given}, allowed is " + (f"at least {low:g}" if high is None
                                             else f"{low:g} to {high:g}")
    return str(error["msg"])
