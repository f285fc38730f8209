# SPDX-License-Identifier: GPL-2.0
"""The guest's root file system, jobs, and the readers of what comes back."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from virtual_silicon import text
from virtual_silicon.errors import GuestError, MissingError
from virtual_silicon.guest import initramfs, python
from virtual_silicon.guest.cpio import Archive
from virtual_silicon.guest.job import Answer, Job
from virtual_silicon.machine import intel, machine
from virtual_silicon.readers import sysfs, turbostat


def test_same_recipe_same_bytes(tmp_path: Path) -> None:
    first = initramfs.assemble(tmp_path / "one")
    assert first == initramfs.assemble(tmp_path / "two")


def test_order_of_adding_does_not_matter() -> None:
    a, b = Archive(), Archive()
    a.file("x/one", b"1")
    a.file("y", b"2")
    b.file("y", b"2")
    b.file("x/one", b"1")
    assert a.data() == b.data()


@pytest.mark.skipif(not shutil.which("cpio"), reason="cpio is not installed")
def test_cpio_reads_the_archive(tmp_path: Path) -> None:
    archive = Archive()
    archive.file("dir/script", b"#!/bin/sh\n", 0o755)
    archive.symlink("link", "dir/script")
    archive.directory("empty")
    subprocess.run(["cpio", "-id", "--quiet"], input=archive.data(), cwd=tmp_path,
                   check=True)
    assert (tmp_path / "dir/script").read_bytes() == b"#!/bin/sh\n"
    assert (tmp_path / "dir/script").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "link").readlink() == Path("dir/script")
    assert (tmp_path / "empty").is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
def test_cpuwhy_is_in_the_shell(tmp_path: Path) -> None:
    """With nothing of the host's but what was packed."""
    if not (packed := python.items(tmp_path)):
        pytest.skip(f"{python.PYTHON} is not there")
    (tmp_path / "a.cpio").write_bytes(initramfs.assemble(tmp_path, more=packed))
    root = tmp_path / "root"
    root.mkdir()
    subprocess.run(["cpio", "-idm", "--quiet", "--no-absolute-filenames"], cwd=root, check=True,
                   stdin=(tmp_path / "a.cpio").open("rb"))
    for words, said in ((["--version"], "cpuwhy "), (["explain", "-"], "Nothing that was read")):
        done = subprocess.run(["chroot", root, "/usr/bin/cpuwhy", *words], text=True, check=True,
                              input="/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor:"
                                    "powersave\n", capture_output=True)
        assert said in done.stdout, done


def test_recipe_line_that_says_nothing(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.txt"
    recipe.write_text("# comment\npackage busybox\n")
    with pytest.raises(GuestError, match="recipe.txt:2: expected"):
        initramfs.read_recipe(recipe)


def test_program_not_installed_names_its_package(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.txt"
    recipe.write_text("package some-package /usr/bin/not-there\n")
    with pytest.raises(MissingError, match=r"not-there .*\(package some-package\)"):
        initramfs.assemble(tmp_path, recipe)


def test_package_that_is_not_installed(tmp_path: Path) -> None:
    root, kept = tmp_path / "root", tmp_path / "build/packages"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text("Package: p\nVersion: 1\nArchitecture: all\n"
                                         "Maintainer: m\nDescription: d\n")
    (root / "data").write_bytes(b"of the package")
    kept.mkdir(parents=True)
    subprocess.run(["dpkg-deb", "-b", root, kept / "p_1_all.deb"], check=True,
                   stdout=subprocess.DEVNULL)
    recipe = tmp_path / "recipe.txt"
    recipe.write_text("unpack p /data\n")
    assert b"of the package" in initramfs.assemble(tmp_path / "build", recipe)
    assert initramfs.packages(initramfs.read_recipe(recipe)) == []


def test_helper_that_does_not_compile(tmp_path: Path) -> None:
    (tmp_path / "bad.c").write_text("int main(void) { return x; }\n")
    recipe = tmp_path / "recipe.txt"
    recipe.write_text("compile bad.c usr/bin/bad\n")
    with pytest.raises(GuestError, match="bad.c does not compile"):
        initramfs.assemble(tmp_path / "build", recipe)


def test_helper_follows_its_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of all directories find the common header, and are no older than it."""
    header, source = tmp_path / "vs-common.h", tmp_path / "other/program.c"
    source.parent.mkdir()
    source.write_text('#include "vs-common.h"\nint main(void) { return STATUS; }\n')
    monkeypatch.setattr(initramfs, "COMMON", header)
    now = source.stat().st_mtime
    for status in (3, 4):
        header.write_text(f"#define STATUS {status}\n")
        os.utime(header, (now + 100 * status, now + 100 * status))
        program = initramfs.compiled(source, tmp_path / "build")
        assert subprocess.run([program]).returncode == status


def test_libraries_follow(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.txt"
    recipe.write_text("package linux-cpupower /usr/bin/cpupower\n")
    data = initramfs.assemble(tmp_path, recipe)
    assert b"libcpupower.so" in data and b"ld-linux-x86-64.so.2" in data


def test_job_script_is_valid_shell() -> None:
    job = Job()
    job.step("one", "echo 'it''s'; false || return 1")
    job.step("two", "for i in 1 2; do echo $i; done")
    subprocess.run(["sh", "-n"], input=job.script(), check=True)


def test_step_names_have_no_blanks() -> None:
    with pytest.raises(ValueError):
        Job().step("a b", "true")


def test_answer_in_pieces() -> None:
    answer, ended = Answer(), []
    text = "vs:ready 0.5\r\nvs:begin a\nline vs:end b 0\n\nvs:end a 7\nvs:exit 7\n"
    for char in text:
        ended += answer.feed(char)
    assert [s.name for s in ended] == ["a"]
    assert answer.sections["a"].lines == ["line vs:end b 0"]
    assert (answer.sections["a"].status, answer.exit, answer.ready) == (7, 7, 0.5)


TURBOSTAT = """\
20 * 100.0 = 2000.0 MHz base frequency
8 * 100.0 = 800.0 MHz max efficiency frequency
38 * 100.0 = 3800.0 MHz max turbo 2 active cores
2.002781 sec
Node\tCore\tCPU\tBusy%\tBzy_MHz\tC6\tC6%\tCPU%c1\tCPU%c6\tPkg_J
-\t-\t-\t25.00\t3775\t146\t74.38\t1.12\t73.88\t210.5
-1\t0\t0\t99.92\t3777\t0\t0.00\t0.08\t0.00\t210.5
-1\t1\t1\t0.06\t1256\t87\t99.70\t1.50\t98.44
"""


def test_turbostat_table() -> None:
    table = turbostat.table(TURBOSTAT)
    assert table.seconds == 2.002781
    assert table.summary["Pkg_J"] == 210.5
    assert table.cpus[1]["Bzy_MHz"] == 1256 and "Pkg_J" not in table.cpus[1]
    assert turbostat.residency_sum(table.cpus[1]) == pytest.approx(100)


def test_turbostat_header() -> None:
    header = turbostat.header(TURBOSTAT)
    assert (header.base, header.low, header.turbo) == (2000, 800, {2: 3800})


def test_turbostat_that_failed() -> None:
    with pytest.raises(GuestError, match="no table"):
        turbostat.table("turbostat: msr read failed")


def test_idle_use_between_dumps() -> None:
    def dump(usage: int, time_us: int) -> str:
        base = "/sys/devices/system/cpu/cpu0/cpuidle/state1/"
        return "\n".join(f"{base}{key}:{value}" for key, value in {
            "name": "C1", "usage": usage, "time": time_us, "latency": 1,
            "residency": 1, "disable": 0}.items())
    assert sysfs.idle_used(dump(5, 100), dump(8, 2_000_100)) == {"C1": (3, 2.0)}


def test_energy_is_summed_by_kind() -> None:
    text = """/sys/class/powercap/intel-rapl:0/name:package-0
/sys/class/powercap/intel-rapl:1/name:package-1
/sys/class/powercap/intel-rapl:0:0/name:dram
energy intel-rapl:0 1000000
energy intel-rapl:1 500000
energy intel-rapl:0:0 250000"""
    assert sysfs.energy(text) == {"package": 1.5, "dram": 0.25}


@pytest.mark.parametrize("line,ratio", [
    ("Estimated ratio of average max frequency by base frequency (times 1024): 1740", 1740),
    ("freq_invariance: Estimated ratio of average max frequency by base frequency"
     " (times 1024): 1945", 1945),
    ("nothing of the kind", None)])
def test_invariance_message(line: str, ratio: int | None) -> None:
    assert sysfs.invariance_ratio(f"[ 0.1] {line}\n") == ratio


@pytest.mark.parametrize("name,ratio", [
    ("sapphire-rapids", 38 * 1024 // 20), ("e5-2698-v4", 33 * 1024 // 22),
    ("e5-2670-v3", 28 * 1024 // 23), ("e3-1240-v5", 37 * 1024 // 35)])
def test_ratio_from_registers(name: str, ratio: int) -> None:
    m = machine.load(name)
    msrs: dict[int, int | None] = dict(intel.msrs(m))
    assert sysfs.turbo_ratio(m, msrs) == ratio


def test_ratio_without_the_registers() -> None:
    assert sysfs.turbo_ratio(machine.load("e3-1240-v5"), {0xCE: None}) is None


@pytest.mark.parametrize("line", [
    "unchecked MSR access error: RDMSR from 0x17", "Call Trace:",
    "tsc: Marking TSC unstable due to check", "WARNING: CPU: 0 PID: 1 at kernel/x.c",
    "process: freq invariance went wobbly", "rcu: INFO: rcu_sched self-detected stall"])
def test_kernel_warnings_are_found(line: str) -> None:
    assert sysfs.warnings(f"[ 0.1] fine\n[ 0.2] {line}\n") == [f"[ 0.2] {line}"]


def test_missing_mitigation_is_no_fault_of_the_machine() -> None:
    line = "[ 0.1] RETBleed: WARNING: Spectre v2 mitigation leaves CPU vulnerable"
    assert sysfs.warnings(line) == []


def test_plain_table() -> None:
    shown = text.plain("T", ["a", "bb"], [["x", "1"], ["yyy", "22"]])
    assert shown == "T\n  a    bb\n  x     1\n  yyy  22"
