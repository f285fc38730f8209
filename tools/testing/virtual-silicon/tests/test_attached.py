# SPDX-License-Identifier: GPL-2.0
"""Machine files from what people attached to public reports (data/), and from the same with
one thing changed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from cpuwhy import texts, turbo
from virtual_silicon.errors import UsageError
from virtual_silicon.machine import convert, intel, machine
from virtual_silicon.machine.machine import Machine

DATA = Path(__file__).with_name("data")
FOUR_BY_TWO = "CPU(s): 8\nThread(s) per core: 2\nCore(s) per socket: 4\nSocket(s): 1\n"
ATOM = "/sys/devices/cpu_core/cpus:0-7\n/sys/devices/cpu_atom/cpus:8-23\n"


def data(*names: str) -> str:
    return "".join((DATA / f"{name}.txt").read_text() for name in names)


def toml(text: str) -> dict[str, Any]:
    return tomllib.loads(convert.machine_file(texts.read_text(text, "dump")))


def made(text: str) -> Machine:
    return machine.parse(convert.machine_file(texts.read_text(text, "dump")), Path("made.toml"))


def refused(text: str) -> str:
    with pytest.raises(UsageError) as error:
        made(text)
    return str(error.value)


def source(text: str, key: str) -> str:
    """What the file says of where a key is from."""
    found = re.search(rf"^{key} = .*# (.*)$",
                      convert.machine_file(texts.read_text(text, "dump")), re.MULTILINE)
    assert found, key
    return found[1]


@pytest.mark.parametrize("cpu", ["cpu6: ", "cpu0: ", "cpu143: ", ""])
def test_registers_of_the_cpu_that_turbostat_ran_on(cpu: str) -> None:
    m = made(data("whiskey-lake-cpu6").replace("cpu6: ", cpu))
    assert (m.base_ratio, [m.turbo.limit(n) for n in range(1, 5)]) == (20, [46, 45, 41, 41])


@pytest.mark.parametrize("name,base,top,model", [
    ("arrandale-20.03", 18, 22, 37), ("nehalem-4.7", 20, 22, 26)])
def test_turbostat_before_2021(name: str, base: int, top: int, model: int) -> None:
    """Model and family in the line of CPUID 0, with and without xlevels; names of 4.7."""
    state = "/sys/devices/system/cpu/cpu0/cpuidle/state1/"
    m = made(data(name) + FOUR_BY_TWO.replace("4", "2").replace("8", "4")
             + f"{state}name:C1\n{state}desc:MWAIT 0x00\n{state}latency:3\n{state}residency:6\n")
    assert (m.model, m.base_ratio, m.max_ratio) == (model, base, top)


def test_places_by_turbostat() -> None:
    m = made(data("spr-guest"))
    assert (m.packages, m.cores, m.threads, m.base_ratio) == (1, 4, 2, 24)
    assert m.turbo.limit(4) == 38


def test_places_by_turbostats_table() -> None:
    text = "".join(line for line in data("arrandale-133").splitlines(keepends=True)
                   if not re.match(r"Socket|Core\(s\)|Thread", line))
    assert [toml(text)["machine"][key] for key in ("packages", "cores", "threads")] == [1, 2, 2]
    two = re.sub(r"^Node\tCore\tCPU", "Package\tCore\tCPU", text, flags=re.M)
    two = re.sub(r"^-1\t2\t", "1\t0\t", re.sub(r"^-1\t0\t", "0\t0\t", two, flags=re.M), flags=re.M)
    assert [toml(two)["machine"][key] for key in ("packages", "cores", "threads")] == [2, 1, 2]


@pytest.mark.parametrize("mark", ["> ", ">> ", "  ", "\t", "&gt; ", "> > ", "    > "])
def test_quoted_and_indented(mark: str) -> None:
    text = "".join(mark + line for line in data("spr-guest").splitlines(keepends=True))
    assert made(text) == made(data("spr-guest"))


def test_other_ends_of_lines_and_encodings() -> None:
    text, want = data("spr-guest"), made(data("spr-guest"))
    coloured = re.sub(r"^", "\x1b[0;32m", text, flags=re.M).replace("\n", "\x1b[0m\n")
    numbered = "".join(f"{n:4}. {line}" for n, line in enumerate(text.splitlines(True), 7))
    for changed in (text.replace("\n", "\r\n"), coloured, numbered, "\ufeff" + text):
        assert made(changed) == want


def test_the_reports_own_quoted_text_lacks_a_register() -> None:
    assert refused(data("spr-quoted")) == "dump:20: the dump ends and lacks register 0x1ae"


def test_bus_clock_of_133_mhz() -> None:
    m = made(data("arrandale-133"))
    assert [round(m.mhz(ratio)) for ratio in (m.min_ratio, m.base_ratio, m.max_ratio)] == \
        [1200, 2400, 2933]
    eax, ebx, crystal, _ = intel.cpuid(m)[0x15, None]
    assert crystal * ebx // eax == 2_400_000_000 and crystal // 1000 * ebx < 2**32
    bare = re.sub(r"^\d+ \* .*\n", "", data("arrandale-133"), flags=re.M)
    assert made(bare).bus_khz == 133_333 and source(bare, "bus_khz").startswith("assumed")


@pytest.mark.parametrize("bus,khz", [("100.0", 100_000), ("103.2", 103_200)])
def test_bus_clock_of_other_parts(bus: str, khz: int) -> None:
    text = re.sub(r"^(\d+) \* 100.0 = [\d.]+",
                  lambda match: f"{match[1]} * {bus} = {int(match[1]) * float(bus):.1f}",
                  data("spr-guest"), flags=re.M)
    assert made(text).bus_khz == pytest.approx(khz, abs=2)


def test_no_rapl_before_sandy_bridge() -> None:
    m = made(data("arrandale-133"))
    assert not m.power.rapl
    assert not {0x606, 0x610, 0x611, 0x614} & set(intel.msrs(m))


NO_SPLIT = "two kinds of cores, and nothing says which are E-cores"


@pytest.mark.parametrize("idle", [(), ("arrow-lake-idle",)])
def test_hybrid_whose_kinds_nothing_tells(idle: tuple[str, ...]) -> None:
    assert NO_SPLIT in refused(data("arrow-lake", *idle, "arrow-lake-lscpu"))
    # Also without turbostat's word and the register of E-cores: by the model
    bare = re.sub(r"^.*(?:SECONDARY|Hybrid).*\n", "", data("arrow-lake"), flags=re.M)
    assert NO_SPLIT in refused(bare + data("arrow-lake-lscpu"))


@pytest.mark.parametrize("idle", [(), ("arrow-lake-idle",)])
def test_hybrid_by_sysfs(idle: tuple[str, ...]) -> None:
    m = made(data("arrow-lake", *idle, "arrow-lake-lscpu") + ATOM)
    assert (m.cores, [(c.cores, c.max_ratio) for c in m.classes]) == (24, [(16, 46)])


def test_hybrid_by_its_threads() -> None:
    """P-cores alone have two: of 20 CPUs on 14 cores 6 P and 8 E."""
    lscpu = FOUR_BY_TWO.replace("CPU(s): 8", "CPU(s): 20").replace("4", "14")
    m = made(data("arrow-lake", "arrow-lake-idle") + lscpu)
    assert (m.cores, m.classes[0].cores) == (14, 8)
    # All cores have two: the E-cores are switched off
    lscpu = FOUR_BY_TWO.replace("CPU(s): 8", "CPU(s): 16").replace("4", "8")
    for idle in ((), ("arrow-lake-idle",)):
        m = made(data("arrow-lake", *idle) + lscpu)
        assert (m.cores, m.threads, m.classes, m.features.core_type) == (8, 2, (), 0)


def test_hybrid_by_the_clocks_of_its_cpus() -> None:
    base = "/sys/devices/system/cpu/cpu"
    text = data("arrow-lake", "arrow-lake-idle") + "".join(
        f"cpu {cpu} pkg 0 core {cpu} thread 0\n{base}{cpu}/cpufreq/cpuinfo_max_freq:"
        f"{5_400_000 if cpu < 8 else 4_600_000}\n" for cpu in range(24))
    assert (made(text).cores, made(text).classes[0].cores) == (24, 16)


def test_hybrid_by_cppc() -> None:
    """As in a report: 61 and 46 with the highest ratios 54 and 46."""
    text = data("arrow-lake", "arrow-lake-idle") + "".join(
        f"cpu {cpu} pkg 0 core {cpu} thread 0\n/sys/devices/system/cpu/cpu{cpu}/acpi_cppc/"
        f"highest_perf:{61 if cpu < 8 else 46}\n" for cpu in range(24))
    assert (made(text).cores, made(text).classes[0].cores) == (24, 16)
    bare = re.sub(r"^cpu \d+ pkg.*\n", "", text, flags=re.M) + data("arrow-lake-lscpu")
    assert (made(bare).cores, made(bare).classes[0].cores) == (24, 16)


def test_states_that_firmware_numbers() -> None:
    """What MWAIT's hint enters counts."""
    m = made(data("arrow-lake", "arrow-lake-idle", "arrow-lake-lscpu") + ATOM)
    assert [(s.name, s.hints[0], s.exit_us, s.residency_msr) for s in m.idle] == [
        ("C1", 0x00, 1, 0), ("C6", 0x21, 127, 0x3FD), ("C10", 0x60, 1048, 0x3FE)]


def test_nothing_says_it_was_read_that_was_not() -> None:
    text = data("rome")
    assert toml(text)["power"]["energy_unit_shift"] == 16
    assert source(text, "energy_unit_shift") == "MSR 0xc0010299"
    assert source(text, "title").startswith("assumed")
    assert source(text, "rapl").startswith("assumed")
    assert source(text, "hints") == "cpuidle"
    without = re.sub(r"^cpu0: MSR_RAPL.*\n", "", text, flags=re.M)
    assert source(without, "energy_unit_shift") == "assumed"
    assert toml(without)["power"]["energy_unit_shift"] == 16    # of all Zen


@pytest.mark.parametrize("end", ["0x302e2c", "0x302e2c2a26221e", "0x"])
def test_register_that_is_cut_off(end: str) -> None:
    text = data("spr-cut")
    cut = text[:text.index("0x302e2c")] + end
    assert "the line of a register is cut off" in refused(cut + "\n" + FOUR_BY_TWO
                                                           if len(end) < 10 else cut)


def test_register_that_is_cut_off_within_a_text() -> None:
    """Eight digits are left, as many as a register has at least."""
    for whole in ("0x2020212123242526", "0x302e2c2a26221e18"):
        text = data("spr-guest")
        assert refused(text.replace(whole, whole[:10])) != ""
    said = refused(data("spr-guest").replace("0x2020212123242526", "0x20202121"))
    assert said == ("dump:26: ratio 35 is in none of the registers: one of them is cut off, or of "
                    "another machine")


def test_files_of_two_machines() -> None:
    said = refused(data("spr-guest") + "Model name: Intel(R) Core(TM) Ultra 9 185H\n"
                   "CPU family: 6\nModel: 170\nThread(s) per core: 2\n"
                   "Core(s) per socket: 16\nSocket(s): 1\n")
    assert said == "dump:50: model 170, but 143 at dump:10: these are two machines"


@pytest.mark.parametrize("other,what", [
    ("CPUID(1): family:model:stepping 0x6:8f:6 (6:143:6)\n", "stepping 6, but 8"),
    ("cpu0: MSR_PLATFORM_INFO: 0x80080001400\n", "base ratio 20, but 24"),
    ("Core(s) per socket: 4\nThread(s) per core: 2\nSocket(s): 1\n" + "\n" * 20 +
     "Core(s) per socket: 56\nThread(s) per core: 2\nSocket(s): 1\n", "cores 56, but 4"),
    ("Core(s) per socket: 2\nThread(s) per core: 2\nSocket(s): 1\n",
     "4 cores have a place, but lscpu tells of 2"),
    ("vendor_id\t: AuthenticAMD\n", "vendor AuthenticAMD, but GenuineIntel"),
    ("[    0.2] x\n[    0.123456] smpboot: CPU0: Intel(R) Xeon(R) W-2155 CPU @ 3.30GHz (family: "
     "0x6, model: 0x55, stepping: 0x4)\n", "model 85, but 143")])
def test_two_machines_by_any_line(other: str, what: str) -> None:
    assert what in refused(data("spr-guest") + other)


def test_turbo_table_below_base() -> None:
    assert "is below the base ratio 40" in refused(data("below-base") + FOUR_BY_TWO)


def test_no_decoder_takes_a_table_below_base() -> None:
    """The base's rule would: 793/1024."""
    m = texts.read_text(data("below-base"))
    values, base = {0x1AD: m.value(0x1AD)}, m.value(0xCE) >> 8 & 0xFF
    assert turbo.freq_max(m.known("model"), values, base) is None
    assert turbo.freq_max(m.known("model"), values, base, patched=False) == 793


def test_german_lscpu() -> None:
    states = "".join(f"{0xC0010064 + n:#x} {value:#x}\n" for n, value in enumerate(
        (0x8000000049120890, 0x800000004D120A94)))
    state = "/sys/devices/system/cpu/cpu0/cpuidle/state1/"
    m = made(data("lscpu-german") + states + f"{state}name:C1\n{state}desc:ACPI FFH MWAIT 0x0\n"
             f"{state}latency:1\n{state}residency:2\n")
    assert (m.vendor, m.family, m.model, m.cores, m.threads) == ("AuthenticAMD", 25, 116, 8, 2)
