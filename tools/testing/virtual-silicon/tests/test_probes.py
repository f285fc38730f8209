# SPDX-License-Identifier: GPL-2.0
"""cpuwhy probe in guests of known machines, what is made of its file, and the folder of such."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from cpuwhy import form, turbo
from virtual_silicon import paths
from virtual_silicon.errors import Fail, MissingError, UsageError
from virtual_silicon.guest import boot, pool
from virtual_silicon.machine import adopt, machine, vendor
from virtual_silicon.machine.machine import Machine
from virtual_silicon.machine.schema import IdleState
from virtual_silicon.studies.validation import probe, probe_folder, probe_guest

FOLDER = paths.SILICON / "data/probes"
#: What the guest of the first of MACHINES said once.
EXAMPLE = Path(__file__).with_name("probe-platinum-8592.txt")
#: Made from dumps of real machines: groups and bytes of turbo ratios, AMD with CPPC; states by
#: MWAIT and by ports.
MACHINES = ("platinum-8592", "e3-1240-v5", "platinum-8180", "epyc-7543", "ryzen-7-5800x")
#: Of latencies: the share, and us below which nothing can be told apart. From the exit to the task
#: it is up to 0.5 us longer on Linux 7.3, whose build is in build/7.3.
SHARE, FLOOR_US = 0.1, 0.5 if paths.BUILD.name == "build" else 1


@cache
def probed(name: str) -> boot.Result:
    """Of a guest, kept for the next time."""
    out = paths.BUILD / "test/probes"
    try:
        kernel, qemu = paths.kernel("base"), paths.qemu()
    except MissingError as missing:
        pytest.skip(str(missing))
    guests = pool.Guests(out, probe_guest.archive(out / "guest"), qemu)
    found = guests.outcomes([probe_guest.guest(name, machine.load(name), kernel)])[0]
    if isinstance(found, Fail):
        raise found
    assert found
    return found


def adopted(name: str) -> tuple[Machine, form.Data]:
    """The machine that comes back, and what was said of it."""
    data = form.check(probed(name).text("probe") + "\n")
    return machine.parse(adopt.text(data, name), Path("adopted.toml")), data


@pytest.mark.parametrize("name", MACHINES)
def test_the_same_clocks(name: str) -> None:
    """Of as many cores as the guest has; and the whole table of registers."""
    m, (back, data) = machine.load(name), adopted(name)
    assert (back.min_ratio * back.bus_khz, back.base_ratio * back.bus_khz) == (
        m.min_ratio * m.bus_khz, m.base_ratio * m.bus_khz)
    for active in range(1, back.cores + 1):
        assert back.mhz(back.turbo.limit(active)) == m.mhz(m.turbo.limit(active))
    if m.vendor == "GenuineIntel":
        known = {n: v for n, v in vendor.encoding(m).msrs(m).items()
                 if n in turbo.registers(m.turbo.layout)}
        assert dict(zip(turbo.registers(back.turbo.layout), back.turbo.registers)).items() \
            <= known.items()
        said = turbo.steps([(n, round(mhz / 100)) for n, mhz in zip(
            data["clock"]["turbo_cores"], data["clock"]["turbo_mhz"])], m.cores, m.base_ratio)
        assert [next(ratio for cores, ratio in said if n <= cores) for n in range(1, m.cores + 1)
                ] == [m.turbo.limit(n) for n in range(1, m.cores + 1)]


#: Between these of the truth the median of 120 draws lies, but for one time in 500.
MEDIANS = (0.36, 0.64)


def at(state: IdleState, share: float, column: int) -> float:
    """A quantile: 1 by another CPU, 2 by its timer."""
    points = state.quantiles
    ppm = share * 1e6
    for before, after in zip(points, points[1:]):
        if before[0] <= ppm <= after[0]:
            part = (ppm - before[0]) / (after[0] - before[0])
            return before[column] + part * (after[column] - before[column])
    return points[0 if ppm < points[0][0] else -1][column]


@pytest.mark.parametrize("name", MACHINES)
def test_the_same_idle_states(name: str) -> None:
    m, (back, _) = machine.load(name), adopted(name)
    assert [(s.name, s.port, s.exit_us, s.residency_us) for s in back.idle] == [
        (s.name, s.port, s.exit_us, s.residency_us) for s in m.idle]
    for ours, truth in zip(back.idle, m.idle):
        # The driver names one of them
        assert set(ours.hints) <= set(truth.hints) and bool(ours.hints) == bool(truth.hints)
        cycles_us = 1000 * truth.wake_cycles / (m.max_ratio * m.bus_khz)
        expected = at(truth, 0.5, 1) + cycles_us
        print(f"{name} {ours.name}: by another CPU {at(ours, 0.5, 1):.2f} us, true {expected:.2f}")
        assert abs(at(ours, 0.5, 1) - expected) <= max(SHARE * expected, FLOOR_US), (
            ours.name, at(ours, 0.5, 1), expected)
        # Another CPU is awake, and its package, but nobody is when a timer fires
        cycles_us += max((p.exit_us for p in m.package if p.core_state == truth.name), default=0)
        low, middle, high = (at(truth, share, 2) + cycles_us for share in (
            MEDIANS[0], 0.5, MEDIANS[1]))
        print(f"{name} {ours.name}: by its timer {at(ours, 0.5, 2):.2f} us, true {middle:.2f}")
        assert low - FLOOR_US <= at(ours, 0.5, 2) <= high + FLOOR_US, (
            ours.name, low, at(ours, 0.5, 2), high)


@pytest.mark.parametrize("name", MACHINES)
def test_the_same_changes_of_clock(name: str) -> None:
    """The period from 30 changes each way; the change itself is at the end of that."""
    m, (back, _) = machine.load(name), adopted(name)
    period = m.transition.period_us
    print(f"{name}: period {back.transition.period_us:.0f} us, true {period:.0f}")
    assert back.transition.period_us == pytest.approx(period, rel=0.2)
    for ours, truth in ((back.transition.up_us, m.transition.up_us),
                        (back.transition.down_us, m.transition.down_us)):
        assert abs(ours - truth) <= 0.15 * period


@pytest.mark.parametrize("name", MACHINES)
def test_settings_are_put_back(name: str) -> None:
    """And no instance of tracefs is left."""
    clock = form.check(probed(name).text("probe") + "\n")["clock"]
    lines = probed(name).text("settings").splitlines()
    limits = {}
    for line in lines:
        path, _, value = line.partition(":")
        if path.endswith("/disable"):
            assert value == "0"
        elif found := re.search(r"scaling_(min|max)_freq$", path):
            limits[found[1]] = int(value)
        else:
            assert path.endswith("scaling_cur_freq"), line
    assert limits == {"min": clock["low_mhz"] * 1000, "max": clock["limit_mhz"] * 1000}


def test_the_kernels_mistake_is_said() -> None:
    """The base reads the turbo table of this machine wrongly."""
    said = probed("platinum-8592").text("probe")
    assert "# Your kernel takes 3.1 GHz for your highest clock; it is 3.9.\n" in said
    # Of which one core alone reaches more, as the box says
    data = form.check(EXAMPLE.read_text(encoding="utf-8"))
    data["kernel"]["freq_max"] = data["clock"]["freq_max"] = 1994
    assert ("Your kernel takes 3.7 GHz for your highest clock; that is right, with several cores"
            " busy: one alone reaches 3.9.") in form.sentences(data)


def test_adopt_says_what_was_measured() -> None:
    """Each line has its source; what nobody has measured is assumed, and says so."""
    data = adopt.read(EXAMPLE)
    text = adopt.text(data, EXAMPLE.name)
    m = machine.parse(text, Path("adopted.toml"))
    lines = [line for line in text.splitlines() if " = " in line]
    assert all("\t# " in line for line in lines)
    source = {line.partition(" = ")[0]: line.partition("\t# ")[2] for line in lines}
    for key in ("period_us", "up_us", "down_us", "wake_us", "timer_us", "uncore_w",
                "capacitance_nf"):
        assert source[key].startswith("measured"), key
    assert source["v_min"] == source["v_max"] == "assumed"
    assert EXAMPLE.name in text.splitlines()[1]
    c6 = next(state for state in data["state"] if state["name"] == "C6")
    assert machine.at_median(m.idle[-1].quantiles)[1] == c6["wake_us"][2]
    asleep = min(m.idle_w(state, m.min_ratio) for state in m.idle)
    idle, one, two = data["power"].values()
    core = m.active_w(m.max_ratio)
    assert core == pytest.approx(two - one + asleep, rel=0.01)
    assert m.power.uncore_w + core + (m.cores - 1) * asleep == pytest.approx(one, rel=0.01)
    assert m.package_w(m.package[0]) + m.cores * asleep == pytest.approx(idle, rel=0.01)


@pytest.mark.parametrize(("old", "new", "said"), [
    ("virtual = false", "virtual = true", "is of a virtual machine"),
    ("form = 1\n", "form = 1\nhost = \"a\"\n", "unknown key 'host'"),
    ("# INTEL", "# Intel", "line 4 was changed by hand"), ("[cpu]", "[cpu", "is no TOML"),
    ("model = 207", "model = 2", "is unknown; known are")])
def test_adopt_refuses(old: str, new: str, said: str, tmp_path: Path) -> None:
    text = EXAMPLE.read_text()
    assert old in text
    path = tmp_path / "mine.txt"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UsageError, match=said) as error:
        adopt.text(adopt.read(path), path.name)
    assert "mine.txt" in str(error.value) and "\n" not in str(error.value)


def test_compare_is_of_what_both_have() -> None:
    data = adopt.read(EXAMPLE)
    less = {key: value for key, value in data.items() if key != "power"}
    rows = {row[0]: row for row in probe.table(data, less)}
    assert "power, idle" not in rows
    assert rows["wake from C6 by another CPU"][-2:] == ["+0 %", "put in"]
    assert rows["highest clock as the kernel has it, over base"][-1] == "predicted"


def test_folder_has_files_of_the_form() -> None:
    """What others have sent: its form, and so that nobody is in it; that it can be used, and that
    the table has it."""
    assert list(probe_folder.problems(FOLDER)) == []


ROW = ("| [mine](mine.txt) | INTEL(R) XEON(R) PLATINUM 8592+ | 6.12.117 | 3.10 | 3.90 |"
       " C6: 207, 290 | 26.52, 101.48 |")


@pytest.mark.parametrize(("name", "old", "new", "table", "said"), [
    ("mine.txt", "", "", ROW, []),
    ("mine.txt", "", "", "", [f"README.md lacks: {ROW}"]),
    ("mine.txt", "", "", ROW.replace("207", "20"),
     [f"README.md lacks: {ROW}", f"README.md has, but no file: {ROW.replace('207', '20')}"]),
    ("Erikas laptop.txt", "", "", "", ["Erikas laptop.txt: a file is called NAME.txt, of a-z,"]),
    ("mine.toml", "", "", "", ["mine.toml: a file is called NAME.txt, of a-z, 0-9 and -"]),
    ("mine.txt", "[kernel]\n", "[kernel]\nhost = \"erika\"\n", "",
     ["unknown key 'kernel.host'"]),
    ("mine.txt", "# Idle", "# erika\n# Idle", "", ["was changed by hand: '# erika'"]),
    ("mine.txt", "virtual = false", "virtual = true", "", ["of a virtual machine"])])
def test_folder_refuses(name: str, old: str, new: str, table: str, said: list[str],
                        tmp_path: Path) -> None:
    text = EXAMPLE.read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new, 1) if old else text)
    (tmp_path / "README.md").write_text((FOLDER / "README.md").read_text() + f"\n{table}\n")
    found = list(probe_folder.problems(tmp_path))
    assert len(found) == len(said) and all(part in whole for part, whole in zip(said, found))
