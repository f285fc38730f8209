# SPDX-License-Identifier: GPL-2.0
"""What is measured: a cell is one load, once, under one setting of one machine.

Cells that need the same start of a guest share one (starts()).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from ...guest.job import Job
from ...lab.variants import COEFFICIENTS
from .loads import EXTENTS, LOADS, WORK, Load, numbers

SEEDS = 3


@dataclass(frozen=True)
class Boot:
    """How a kernel is started; @machine is another file of the same part."""

    kernel: str		# base, patched or stock
    append: str = ""
    faults: str = ""	# as in a file of faults
    machine: str = ""


@dataclass(frozen=True)
class Setting:
    """A column: what is set at run time. "-" leaves a knob as it is."""

    name: str
    boot: Boot
    governor: str = "schedutil"
    idle: str = "menu"
    freq_max: str = "-"
    status: str = "-"		# of intel_pstate
    features: int = 0		# chains and the choice of CPU, of kernels that have them
    states: str = ""		# idle states that may be used, if not all

    @property
    def shell(self) -> str:
        """Sets it up in the guest and fails where that cannot be."""
        text = f"setup {self.status} {self.governor} {self.idle} {self.freq_max} {self.features}"
        return text + f" && only '{self.states}'" * bool(self.states)


@dataclass(frozen=True)
class Machine:
    """@cpus: of the guest, which has fewer than the part; of one package.  @packages: whose
    power counts."""

    name: str
    cpus: int
    settings: tuple[Setting, ...]
    packages: int = 1
    variant: str = ""	# one of COEFFICIENTS

    @property
    def title(self) -> str:
        return self.name + f", {self.variant}" * bool(self.variant)


@dataclass(frozen=True)
class Cell:
    """@extent: the first that has it."""

    machine: Machine
    setting: Setting
    load: Load
    parameter: int
    seed: int
    extent: str = "short"

    @property
    def name(self) -> str:
        return (f"{self.machine.title}, {self.setting.name}, "
                f"{self.load.name}-{self.parameter}, seed {self.seed}")


#: The base reads the turbo table once at boot, for freq_max alone: without that there is
#: no invariance. The CPU's turbo and what the driver reads later stay as they are.
NOT_INVARIANT = "0 msr msr=0x1ad value=0 reads=1"
PASSIVE = "intel_pstate=passive cpufreq.default_governor=schedutil"
ACPI = "cpufreq.default_governor=schedutil"


def intel(wide: str, hwp: str = "") -> tuple[Setting, ...]:
    """@wide: the freq_max nearer to the base clock; @hwp: file of the part with HWP."""
    base, ours, stock = (Boot(kernel, PASSIVE) for kernel in ("base", "patched", "stock"))
    active = Boot("base", "intel_pstate=active", machine=hwp) if hwp else base
    return (
        Setting("non-inv", Boot("base", PASSIVE, NOT_INVARIANT)),
        *(Setting(word, ours, freq_max=word) for word in ("1c", "3c", "4c", wide) if word),
        Setting("ours-menu", ours, freq_max="4c", features=1),
        Setting("ours", ours, idle="teo", freq_max="4c", features=1),
        Setting("base", base), Setting("stock", stock),
        Setting("performance", base, "performance"),
        Setting("i_pstate", active, "powersave", status="active"),
    )


def amd() -> tuple[Setting, ...]:
    base, ours, stock = (Boot(kernel, ACPI) for kernel in ("base", "patched", "stock"))
    return (
        Setting("ondemand", base, "ondemand"), Setting("performance", base, "performance"),
        Setting("base", base), Setting("stock", stock),
        Setting("non-inv", Boot("base", ACPI + " clearcpuid=aperfmperf")),
        *(Setting(word, ours, freq_max=word) for word in ("boost", "midpoint", "nominal")),
        Setting("ours-menu", ours, freq_max="midpoint", features=1),
        Setting("ours", ours, idle="teo", freq_max="midpoint", features=1),
    )


def shallow() -> tuple[Setting, ...]:
    """As in the model of C0.2: POLL alone, and POLL with C0.2."""
    ours = Boot("patched", PASSIVE)
    return tuple(Setting(name, ours, states=states)
                 for name, states in (("POLL", "POLL"), ("C0.2", "POLL C0.2")))


SKYLAKE = Machine("e3-1240-v5", 4, intel("", "e3-1240-v5-hwp"))
BROADWELL = Machine("e5-2698-v4", 8, intel("8c"), 2)
HASWELL = Machine("e5-2670-v3", 8, intel("12c"), 2)
ROME = Machine("epyc-7742", 8, amd(), 2)
SAPPHIRE_RAPIDS = Machine("sapphire-rapids", 4, shallow())
MACHINES = (SKYLAKE, BROADWELL, HASWELL, ROME, SAPPHIRE_RAPIDS)
#: Machines of most loads.
PUBLISHED = tuple(machine.name for machine in MACHINES[:-1])


def parameters(machine: Machine, load: Load) -> Sequence[int]:
    """Of the loads that a machine has."""
    if machine.name not in (load.machines or PUBLISHED):
        return ()
    return numbers(load.sizes, machine.cpus)


def all_cells(extent: str, machines: Collection[Machine] = MACHINES) -> list[Cell]:
    if extent == "assumptions":
        return _other_assumptions() if BROADWELL in machines else []
    found = [Cell(machine, setting, load, parameter, seed, load.extent)
             for machine in machines for setting in machine.settings
             for load in LOADS.values() for parameter in parameters(machine, load)
             for seed in range(1, SEEDS + 1)
             if setting.name in (load.settings or setting.name)]
    wanted = EXTENTS[:EXTENTS.index(extent) + 1]
    return [cell for cell in found if cell.extent in wanted]


#: Loads and parameters that are measured with other coefficients.
OTHERWISE = (("tbench", 4), ("gitsource", 40))


def _other_assumptions() -> list[Cell]:
    """The invariance table in short, with each assumption of the model changed."""
    settings = tuple(s for s in BROADWELL.settings if s.name in ("non-inv", "4c"))
    return [Cell(replace(BROADWELL, settings=settings, variant=variant), setting, LOADS[load],
                 parameter, seed)
            for variant in COEFFICIENTS for setting in settings
            for load, parameter in OTHERWISE for seed in range(1, SEEDS + 1)]


@dataclass(frozen=True)
class Start:
    """One guest, and the cells that it measures, in this order."""

    machine: Machine
    boot: Boot
    batch: str
    cells: tuple[Cell, ...]

    @property
    def name(self) -> str:
        number = list(dict.fromkeys(s.boot for s in self.machine.settings)).index(self.boot)
        machine = self.machine.title.replace(", ", "-").replace(" ", "")
        return f"{machine}-{self.boot.kernel}{number}-{self.batch}"

    def job(self) -> Job:
        """A step per setting; a repetition of a load comes after all others."""
        job = Job()
        job.step("prepare", f"WORK={WORK}; . /usr/lib/vs/bench.sh; prepare {self.batch} || return; "
                 "dmesg | grep -i 'max freq\\|invarian'; cat $CPU/cpu0/cpufreq/scaling_driver")
        for setting in dict.fromkeys(cell.setting for cell in self.cells):
            wanted = [f"cell {c.load.name} {c.parameter} {c.seed}" for seed in range(1, SEEDS + 1)
                      for c in self.cells if c.setting == setting and c.seed == seed]
            job.step(setting.name.replace(" ", "-"), f". /usr/lib/vs/bench.sh; {setting.shell} "
                     "|| return; " + "; ".join(wanted))
        return job


def starts(cells: Iterable[Cell]) -> list[Start]:
    found: dict[tuple[Machine, Boot, str], list[Cell]] = {}
    for cell in cells:
        key = cell.machine, cell.setting.boot, cell.load.batch
        found.setdefault(key, []).append(cell)
    return [Start(*key, tuple(of)) for key, of in found.items()]
