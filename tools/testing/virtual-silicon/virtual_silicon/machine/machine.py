# SPDX-License-Identifier: GPL-2.0
"""A machine: read from its file, checked, with what follows from its data."""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from cpuwhy import turbo

from .. import paths
from ..errors import MachineError, UsageError, unread
from .schema import (
    Checker,
    CoreClass,
    Features,
    Frequency,
    Hwp,
    Identity,
    IdleState,
    Limits,
    PackageState,
    Power,
    Quantile,
    Tables,
    Time,
    Transition,
    Turbo,
    Umwait,
)

MACHINES = paths.SILICON / "machines"

#: The guest kernels are built for so many (NR_CPUS in kernel.config).
MAX_CPUS = 64

#: Units of time that an instruction may take where the cheapest takes some.
MAX_INSN_COST = 127

#: The emulator's room for a distribution.
MAX_QUANTILES = 16


def at_median(quantiles: list[Quantile]) -> Quantile:
    """Half of a distribution: linear between its quantiles."""
    before = quantiles[0]
    for point in quantiles:
        if point[0] >= 500_000:
            span = point[0] - before[0]
            share = (500_000 - before[0]) / span if span else 0.0
            return (500_000, before[1] + share * (point[1] - before[1]),
                    before[2] + share * (point[2] - before[2]))
        before = point
    return before


@dataclass(frozen=True, kw_only=True)
class Machine(Identity, Frequency):
    """One machine.  Frequencies are ratios of the bus clock.

    `part` is set in what of_class() returns: the machine that the cores belong to.
    """

    name: str
    path: Path
    turbo: Turbo
    features: Features
    idle: tuple[IdleState, ...]
    package: tuple[PackageState, ...]
    transition: Transition
    hwp: Hwp
    umwait: Umwait
    power: Power
    limits: Limits
    time: Time
    classes: tuple[CoreClass, ...] = ()
    part: Machine | None = None

    @property
    def max_ratio(self) -> int:
        return self.turbo.ratios[0]

    @property
    def tsc_khz(self) -> int:
        """The TSC runs at the base frequency on all parts described here."""
        return (self.part or self).base_ratio * self.bus_khz

    @property
    def ratios(self) -> range:
        return range(self.min_ratio, self.max_ratio + 1)

    def cppc(self, ratio: int) -> int:
        """CPPC performance (AMD): one scale for all kinds of cores."""
        whole, f = self.part or self, self.features
        if f.cppc_nominal and ratio < whole.max_ratio:
            return f.cppc_nominal * ratio // whole.base_ratio
        return f.cppc_highest * ratio // whole.max_ratio

    def mhz(self, ratio: int) -> float:
        return ratio * self.bus_khz / 1000

    def voltage(self, ratio: int) -> float:
        """Core voltage: linear from point to point of the part's range."""
        power, at = self.power, self.mhz(ratio)
        low, high = self.mhz(self.min_ratio), self.mhz(self.max_ratio)
        curve = [(low, power.v_min)]
        curve += [point for point in zip(power.v_mhz, power.v_volts) if low < point[0] < high]
        curve.append((high, power.v_max))
        above = next((i for i, point in enumerate(curve) if point[0] >= at and i), len(curve) - 1)
        (left, low_v), (right, high_v) = curve[above - 1], curve[above]
        return low_v + (at - left) / (right - left) * (high_v - low_v) if right > left else high_v

    def dynamic_w(self, ratio: int) -> float:
        """What a core that runs usual code draws by switching: C*V^2*f*activity."""
        return (self.power.capacitance_nf * 1e-9 * self.voltage(ratio)**2
                * ratio * self.bus_khz * 1e3 * self.power.activity)

    def leakage_w(self, ratio: int) -> float:
        """Grows faster than the voltage; the cube is a fit, not physics."""
        return self.power.leakage_w * (self.voltage(ratio) / self.power.v_max)**3

    def share_w(self, ratio: int, permille: float) -> float:
        """A core at this clock that switches so much of what a busy one does."""
        return self.dynamic_w(ratio) * permille / 1000 + self.leakage_w(ratio)

    def active_w(self, ratio: int) -> float:
        """Power of one busy core."""
        return self.share_w(ratio, 1000)

    def idle_w(self, state: IdleState, ratio: int) -> float:
        """Power of a core in `state` while its clock is to be `ratio`."""
        watts = state.power_mw / 1000
        if state.voltage == "off":
            return watts
        at = ratio if state.voltage == "core" else self.min_ratio
        return watts + self.share_w(at, state.dynamic_permille)

    def uncore_w(self, ratio: int) -> float:
        """Of a package with its fastest active core at `ratio`: between the lowest
        clock and base it follows the cores' dynamic power."""
        high = self.power.uncore_w
        low = high * self.power.uncore_low_permille / 1000
        bottom, top = self.dynamic_w(self.min_ratio), self.dynamic_w(self.base_ratio)
        if ratio >= self.base_ratio or bottom == top:
            return high
        return low + (high - low) * (self.dynamic_w(ratio) - bottom) / (top - bottom)

    def package_w(self, state: PackageState) -> float:
        """Of a package without its cores in `state`."""
        return self.power.uncore_w * state.uncore_permille / 1000

    def base_w(self) -> float:
        """Power of a package with all cores at base, with the load that switches most."""
        def core(ratio: int) -> float:
            return self.share_w(ratio, 1000 / self.power.activity)
        first = self.cores - sum(kind.cores for kind in self.classes)
        return self.power.uncore_w + self.power.traffic_w + first * core(self.base_ratio) + sum(
            kind.cores * core(kind.base_ratio or self.base_ratio)
            * kind.power_permille / 1000 for kind in self.classes)

    def of_class(self, kind: CoreClass) -> Machine:
        """The machine as one of these cores shows it in its registers."""
        base = kind.base_ratio or self.base_ratio
        ratios = tuple(min(ratio, kind.max_ratio) for ratio in self.turbo.ratios)
        states = (base, *self.pstate_ratios[1:]) if self.pstate_ratios else ()
        return replace(
            self, base_ratio=base, pstate_ratios=states, part=self,
            turbo=replace(self.turbo, ratios=ratios),
            hwp=replace(self.hwp, unit_khz=kind.hwp_unit_khz or self.bus_khz,
                        efficient_ratio=kind.efficient_ratio or self.hwp.efficient_ratio),
            features=replace(self.features, core_type=kind.core_type))

    def sockets(self, cpus: int) -> int:
        """Packages used for so many CPUs: one while it has the threads."""
        return -(-cpus // (self.cores * self.threads))

    def class_cpus(self, cpus: int) -> list[tuple[CoreClass, list[int]]]:
        """CPUs of each class where so many are there: of each kind in proportion to
        the whole part, rounded to a core, and the first kind first."""
        cores = cpus // self.threads // self.sockets(cpus)
        out: list[tuple[CoreClass, list[int]]] = []
        end = cores
        for kind in reversed(self.classes):
            count = min(round(cores * kind.cores / self.cores), end - 1)
            out.append((kind, [cpu for package in range(self.sockets(cpus))
                               for core in range(end - count, end)
                               for cpu in self._siblings(package * cores + core)]))
            end -= count
        return out[::-1]

    def _siblings(self, core: int) -> range:
        return range(core * self.threads, (core + 1) * self.threads)

    def check_cpus(self, cpus: int) -> int:
        """The number itself, or UsageError with what is allowed."""
        package = self.cores * self.threads
        most = min(MAX_CPUS, self.packages * package)
        if not 1 <= cpus <= most:
            limit = ("the guest kernel's limit" if most == MAX_CPUS
                     else f"{self.packages} x {self.cores} cores"
                     + (f" x {self.threads} threads" if self.threads > 1 else ""))
            raise UsageError(f"CPUs: {cpus} asked for, {self.name} allows "
                             f"1 to {most} ({limit})")
        if cpus % self.sockets(cpus):
            raise UsageError(f"CPUs: {cpus} asked for; more than {package} on "
                             f"{self.name} are spread over {self.sockets(cpus)} "
                             f"packages and must be a multiple of it")
        if cpus % (self.sockets(cpus) * self.threads):
            raise UsageError(f"CPUs: {cpus} asked for; a core of {self.name} has "
                             f"{self.threads}, which come together")
        return cpus


@cache
def families() -> dict[str, list[str]]:
    """Names of machines by the file that they are in: its parts, or itself."""
    out: dict[str, list[str]] = {}
    for path in sorted(MACHINES.glob("*.toml")):
        parts = list(_read(path)[1].get("part", {path.stem: {}}))
        for other, names in out.items():
            if twice := set(parts) & set(names):
                raise UsageError(f"{path}: {', '.join(twice)} is already in {other}.toml")
        out[path.stem] = parts
    return out


def names() -> list[str]:
    return sorted(name for parts in families().values() for name in parts)


def find(name: str) -> tuple[Path, str]:
    """File of a machine given by name or by the file's path; the part's name in it."""
    if name.endswith(".toml") or "/" in name:
        path = Path(name)
        if not path.is_file():
            raise UsageError(f"machine file {name}: not found")
        return path, path.stem
    for family, parts in families().items():
        if name in parts:
            return MACHINES / f"{family}.toml", name
    width = max(map(len, families()))
    raise UsageError(f"unknown machine {name!r}; the names by family\n" + "\n".join(
        f"  {family:{width}}  {', '.join(parts)}" for family, parts in families().items()))


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MachineError(path, 0, unread(error)) from error
    return text, _tables(text, path)


def load(name: str) -> Machine:
    path, part = find(name)
    return parse(_read(path)[0], path, part)


def parse(text: str, path: Path, name: str = "") -> Machine:
    """Machine from the text of a file; MachineError names file and line."""
    name = name or path.stem
    checker = Checker(path, text, name)
    t = checker.check(_whole(_tables(text, path), name, checker))
    t = replace(t, turbo=_turbo(checker, t))
    _check_turbo(checker, t)
    _check_idle(checker, t)
    _check_package(checker, t)
    _check_power(checker, t)
    _check_control(checker, t)
    _check_classes(checker, t)
    _check_time(checker, t)
    tables = dict(vars(t))
    m = Machine(name=name, path=path, **vars(tables.pop("machine")),
                **vars(tables.pop("frequency")), **tables)
    return m if t.power.capacitance_nf else _at_tdp(checker, m)


def _at_tdp(checker: Checker, m: Machine) -> Machine:
    """With such a capacitance that all cores at base draw the TDP."""
    def with_nf(nf: float) -> Machine:
        return replace(m, power=replace(m.power, capacitance_nf=nf))

    none, one = with_nf(0).base_w(), with_nf(1).base_w()
    if none >= m.power.tdp_w:
        raise checker.fail(f"tdp_w {m.power.tdp_w:g} is not above {none:.1f} W, uncore "
                           "and leakage of all cores at base", "power", "tdp_w")
    return with_nf(round((m.power.tdp_w - none) / (one - none), 5))


def _tables(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(error, text, path) from error


def _whole(data: dict[str, Any], name: str, checker: Checker) -> dict[str, Any]:
    """The tables of a machine: the file's, its part's in front of them; behind them
    those of the machines that it is like."""
    data = _with_part(data, name, checker)
    own = data.get("machine")
    if not isinstance(own, dict) or "like" not in own:
        return data
    like = own.pop("like")
    path, part = _other("machine", "like", like, checker)
    text, model = _read(path)
    if "like" in model.get("machine", {}):
        raise checker.fail(f"{like} is itself like another machine", "machine", "like")
    return _in_front(_whole(model, part, Checker(path, text, part)), data, checker)


def _with_part(data: dict[str, Any], name: str, checker: Checker) -> dict[str, Any]:
    """The tables of a file with what it says of this part."""
    parts = data.pop("part", {name: {}})
    if not isinstance(parts, dict) or not isinstance(parts.get(name), dict):
        raise UsageError(f"{checker.path} has several machines; give a name: "
                         + ", ".join(parts))
    return _in_front(_with_likes(data, checker), _with_likes(parts[name], checker), checker)


def _with_likes(data: dict[str, Any], checker: Checker) -> dict[str, Any]:
    """With the tables that [like] takes from other machines behind its own."""
    likes = data.pop("like", {})
    if not isinstance(likes, dict):
        raise checker.fail("[like] must be a table: of which machine each table is", "like")
    for table, name in likes.items():
        if isinstance(data.get(table), list):
            raise checker.fail(f"[[{table}]] replaces what like.{table} takes from {name}; "
                               f"change it by name, {table}.NAME", "like", table)
        data = _in_front({table: _table_of(table, name, checker)}, data, checker)
    return data


def _other(table: str, key: str, name: object, checker: Checker) -> tuple[Path, str]:
    """File and part of a machine that another one names."""
    if name not in names():
        raise checker.fail(f"{table}.{key} names no machine; there are: {', '.join(names())}",
                           table, key)
    return find(str(name))


def _table_of(table: str, name: object, checker: Checker) -> object:
    """[like]: that table of another machine."""
    path, part = _other("like", table, name, checker)
    text, data = _read(path)
    its = Checker(path, text, part)
    for level in (data, data.get("part", {}).get(part, {})):
        if table in level.pop("like", {}):
            raise checker.fail(f"{name} has its own [{table}] from another machine", "like",
                               table)
    whole = _with_part(data, part, its)
    if table not in whole:
        raise checker.fail(f"{name} has no table [{table}]; it has: " + ", ".join(whole),
                           "like", table)
    return whole[table]


def _in_front(back: dict[str, Any], front: dict[str, Any],
              checker: Checker) -> dict[str, Any]:
    """Key by key; an array of tables is replaced as a whole by another one, and changed
    entry by entry by tables that have their names: idle.C6.exit_us."""
    out = dict(back)
    for name, table in front.items():
        behind = back.get(name)
        if isinstance(table, dict) and isinstance(behind, list):
            table = _changed(name, behind, table, checker)
            if not table:	# none is left
                del out[name]
                continue
        elif isinstance(table, dict) and isinstance(behind, dict):
            # a turbo table is given in one of two ways
            other = ("cores", "ratios") if "registers" in table else (
                ("registers",) if "ratios" in table else ())
            table = _in_front({key: value for key, value in behind.items()
                               if name != "turbo" or key not in other}, table, checker)
        out[name] = table
    return {name: table for name, table in out.items() if table != []}	# all taken away


def _changed(table: str, entries: list[dict[str, Any]], changes: dict[str, Any],
             checker: Checker) -> list[dict[str, Any]]:
    """The entries with these changes by name; false takes one away."""
    there = [entry.get("name") for entry in entries]
    for name, change in changes.items():
        if name not in there:
            raise checker.fail(f"[[{table}]] has no {name!r}; there are: "
                               + ", ".join(map(str, there)), table, name)
        if change is not False and not isinstance(change, dict):
            raise checker.fail(f"{table}.{name} must be a table, or false where the part "
                               "has none", table, name)
    return [entry | changes.get(str(entry.get("name")), {}) for entry in entries
            if changes.get(str(entry.get("name"))) is not False]


def _syntax_error(error: Exception, text: str, path: Path) -> MachineError:
    """tomllib puts the place at the end of its message."""
    match = re.match(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)$",
                     str(error))
    if not match:
        return MachineError(path, 0, str(error))
    line = int(match[2]) if match[2] else len(text.splitlines())
    return MachineError(path, line, f"syntax: {match[1]}")


def _turbo(checker: Checker, t: Tables) -> Turbo:
    """The table, from the part's registers if these are given."""
    given = t.turbo
    if bool(given.registers) == bool(given.cores or given.ratios):
        raise checker.fail("[turbo] needs cores and ratios, or else registers", "turbo")
    if not given.registers:
        return given
    numbers = turbo.registers(given.layout)
    if given.layout == "none" or len(given.registers) > len(numbers):
        raise checker.fail(f"layout \"{given.layout}\" has fewer registers", "turbo",
                           "registers")
    try:
        steps = turbo.steps(
            turbo.decode(given.layout, dict(zip(numbers, given.registers))),
            t.machine.cores, t.frequency.base_ratio)
    except ValueError as error:
        raise checker.fail(str(error), "turbo", "registers") from error
    return replace(given, cores=tuple(cores for cores, _ in steps),
                   ratios=tuple(ratio for _, ratio in steps))


def _check_turbo(checker: Checker, t: Tables) -> None:
    freq, cores, ratios = t.frequency, t.turbo.cores, t.turbo.ratios
    count = t.machine.cores
    if len(cores) != len(ratios):
        raise checker.fail(f"{len(cores)} core counts but {len(ratios)} ratios",
                           "turbo", "ratios")
    if any(b <= a for a, b in zip(cores, cores[1:])):
        raise checker.fail(f"core counts must rise: {cores}", "turbo", "cores")
    if any(b > a for a, b in zip(ratios, ratios[1:])):
        raise checker.fail("turbo ratios must not rise with the number of active "
                           f"cores: {ratios}", "turbo", "ratios")
    if cores[-1] != count:
        raise checker.fail(f"the last step is for {cores[-1]} cores, the machine "
                           f"has {count}", "turbo", "cores")
    if not t.turbo.registers:
        _check_layout(checker, t.turbo)
    _check_vendor(checker, t)
    if freq.min_ratio > freq.base_ratio:
        raise checker.fail(f"min_ratio {freq.min_ratio} is above base_ratio "
                           f"{freq.base_ratio}", "frequency", "min_ratio")
    if freq.base_ratio > ratios[-1]:
        raise checker.fail(f"base_ratio {freq.base_ratio} is above the lowest "
                           f"turbo ratio {ratios[-1]}", "frequency", "base_ratio")


#: Most cores, most steps and highest ratio that the registers have room for.
LAYOUT_ROOM = {"bytes": (24, 24, 127), "groups": (255, 8, 255),
               "deltas": (127, 7, 255), "atom": (4, 4, 63),
               "none": (255, 16, 255)}


def _check_layout(checker: Checker, table: Turbo) -> None:
    layout, cores, ratios = table.layout, table.cores, table.ratios
    most_cores, most_steps, most_ratio = LAYOUT_ROOM[layout]
    if cores[-1] > most_cores:
        raise checker.fail(f"layout \"{layout}\" has room for {most_cores} cores, the "
                           f"machine has {cores[-1]}", "turbo", "layout")
    if len(cores) > most_steps:
        raise checker.fail(f"layout \"{layout}\" has room for {most_steps} steps, not "
                           f"{len(cores)}", "turbo", "cores")
    if ratios[0] > most_ratio:
        raise checker.fail(f"layout \"{layout}\" has room for ratio {most_ratio}, not "
                           f"{ratios[0]}", "turbo", "ratios")
    if layout == "deltas" and (
            any(b - a > 31 for a, b in zip(cores, cores[1:]))
            or any(a - b > 7 for a, b in zip(ratios, ratios[1:]))):
        raise checker.fail("layout \"deltas\" has steps of at most 31 cores and 7 "
                           "ratios", "turbo", "cores")


def _check_vendor(checker: Checker, t: Tables) -> None:
    """AMD parts have P-states by number, and no register with a turbo table."""
    amd = t.machine.vendor == "AuthenticAMD"
    states, base = t.frequency.pstate_ratios, t.frequency.base_ratio
    if amd != (t.turbo.layout == "none"):
        raise checker.fail("layout \"none\" goes with vendor \"AuthenticAMD\", and only "
                           "with it", "turbo", "layout")
    if amd != bool(states):
        raise checker.fail("pstate_ratios go with vendor \"AuthenticAMD\", and only with "
                           "it", "frequency", "pstate_ratios")
    if t.features.cppc_msrs and not amd:
        raise checker.fail("cppc_msrs goes with vendor \"AuthenticAMD\"", "features",
                           "cppc_msrs")
    if amd and (len(states) > 8 or states[0] != base
                or any(b >= a for a, b in zip(states, states[1:]))):
        raise checker.fail(f"pstate_ratios are at most 8, fall, and begin with {base}",
                           "frequency", "pstate_ratios")


def _check_idle(checker: Checker, t: Tables) -> None:
    seen: dict[int, str] = {}
    last = 0.0
    for index, state in enumerate(t.idle):
        name, exit_us = state.name, state.exit_us
        if exit_us <= 0:
            raise checker.fail(f"{name}: exit latency must be above zero",
                               "idle", "exit_us", index)
        if exit_us <= last:
            raise checker.fail(f"{name}: exit latency {exit_us} us does not rise; "
                               f"the state before has {last}", "idle", "exit_us", index)
        last = exit_us
        if bool(state.hints) == bool(state.port):
            raise checker.fail(f"{name}: needs hints, or else a port", "idle", "hints",
                               index)
        _check_wake(checker, state, index)
        for hint in state.hints:
            if hint in seen:
                raise checker.fail(f"{name}: hint {hint:#04x} is already "
                                   f"{seen[hint]}'s", "idle", "hints", index)
            seen[hint] = name
    state_names = [state.name for state in t.idle]
    for index, name in enumerate(state_names):
        if not re.fullmatch(r"C[0-9A-Za-z]+", name) or name in state_names[:index]:
            raise checker.fail(f"state name {name!r} must be C and letters or "
                               "digits, and unique", "idle", "name", index)


def _check_wake(checker: Checker, state: IdleState, index: int) -> None:
    ppm, times, name = state.wake_ppm, state.wake_us, state.name
    if len(ppm) != len(times) or len(state.timer_us) not in (0, len(ppm)) \
            or len(ppm) > MAX_QUANTILES:
        raise checker.fail(f"{name}: wake_us, and timer_us if it is there, need as many "
                           f"entries as wake_ppm, at most {MAX_QUANTILES}", "idle",
                           "wake_us", index)
    if list(ppm) != sorted(set(ppm)) or any(
            list(us) != sorted(us) for us in (times, state.timer_us)):
        raise checker.fail(f"{name}: wake_ppm must rise, wake_us and timer_us not fall",
                           "idle", "wake_us", index)
    if any(timer > device for timer, device in zip(state.timer_us, times)):
        raise checker.fail(f"{name}: timer_us is above wake_us", "idle", "timer_us", index)


def _check_package(checker: Checker, t: Tables) -> None:
    """Deeper package states need deeper core states and draw less."""
    order = [state.name for state in t.idle]
    depth, share = -1, t.power.uncore_low_permille
    for index, state in enumerate(t.package):
        name, core = state.name, state.core_state
        if core not in order:
            raise checker.fail(f"{name}: no idle state {core!r}; there are: "
                               + ", ".join(order), "package", "core_state", index)
        if order.index(core) < depth:
            raise checker.fail(f"{name}: core_state must not be less deep than the "
                               "one before", "package", "core_state", index)
        if state.uncore_permille > share:
            raise checker.fail(f"{name}: uncore_permille {state.uncore_permille} is more "
                               f"than {share} without it", "package", "uncore_permille",
                               index)
        depth, share = order.index(core), state.uncore_permille
    if len(t.package) > 3:
        raise checker.fail("more than 3 package states", "package", "", 3)


def _check_control(checker: Checker, t: Tables) -> None:
    hwp, freq, limits = t.hwp, t.frequency, t.limits
    efficient = hwp.efficient_ratio
    if hwp.present and not freq.min_ratio <= efficient <= freq.base_ratio:
        raise checker.fail(f"efficient_ratio {efficient} is not within min_ratio and "
                           "base_ratio", "hwp", "efficient_ratio")
    if limits.thermal_resistance and not limits.thermal_tau_s:
        raise checker.fail("thermal_resistance needs thermal_tau_s above zero",
                           "limits", "thermal_resistance")


def _check_time(checker: Checker, t: Tables) -> None:
    """The emulator counts in the largest unit that both rates are multiples of, and
    a block of 512 instructions must fit into its 16 bits."""
    kernel, user = t.time.kernel_cycles_per_1000_insns, t.time.user_cycles_per_1000_insns
    if max(kernel, user) // math.gcd(kernel, user) > MAX_INSN_COST:
        raise checker.fail(
            f"kernel_cycles_per_1000_insns {kernel} and user_cycles_per_1000_insns "
            f"{user}: the dearer must be at most {MAX_INSN_COST} times their greatest "
            "common divisor", "time", "user_cycles_per_1000_insns")


def _check_classes(checker: Checker, t: Tables) -> None:
    freq, classes = t.frequency, t.classes
    amd, top = bool(freq.pstate_ratios), t.turbo.ratios[0]
    for index, kind in enumerate(classes):
        base = kind.base_ratio or freq.base_ratio
        if not freq.min_ratio <= base <= kind.max_ratio <= top:
            raise checker.fail(
                f"{kind.name}: base_ratio {base} and max_ratio {kind.max_ratio} "
                f"do not rise from min_ratio {freq.min_ratio} to the machine's "
                f"highest, {top}", "class", "max_ratio", index)
        if kind.efficient_ratio > base:
            raise checker.fail(f"{kind.name}: efficient_ratio is above base_ratio",
                               "class", "efficient_ratio", index)
        if amd and len(freq.pstate_ratios) > 1 and base <= freq.pstate_ratios[1]:
            raise checker.fail(f"{kind.name}: base_ratio {base} is not above the "
                               "second of pstate_ratios", "class", "base_ratio", index)
        if amd and kind.core_type > 15:
            raise checker.fail(f"{kind.name}: core_type {kind.core_type} does not fit "
                               "the 4 bits of CPUID 80000026H", "class", "core_type", index)
        if not amd and bool(kind.core_type) != bool(t.features.core_type):
            raise checker.fail(f"{kind.name}: core_type is for all kinds of cores, "
                               "features.core_type for the first, or for none",
                               "class", "core_type", index)
        if not re.fullmatch(r"\w+", kind.name) or kind.name in [
                other.name for other in classes[:index]]:
            raise checker.fail(f"class name {kind.name!r} must be letters or digits, "
                               "and unique", "class", "name", index)
    if sum(kind.cores for kind in classes) >= t.machine.cores and classes:
        raise checker.fail("the classes leave no core of the first kind", "class",
                           "cores", len(classes) - 1)


def _check_power(checker: Checker, t: Tables) -> None:
    power = t.power
    if power.v_max < power.v_min:
        raise checker.fail(f"v_max {power.v_max} is below v_min {power.v_min}",
                           "power", "v_max")
    if len(power.v_mhz) != len(power.v_volts):
        raise checker.fail(f"{len(power.v_mhz)} clocks but {len(power.v_volts)} voltages",
                           "power", "v_mhz")
    if list(power.v_mhz) != sorted(set(power.v_mhz)):
        raise checker.fail("v_mhz must rise", "power", "v_mhz")
    if t.features.waitpkg and not t.umwait.c02_exit_cycles:
        raise checker.fail("waitpkg needs [umwait] with c02_exit_cycles above zero",
                           "features", "waitpkg")
