# SPDX-License-Identifier: GPL-2.0
"""Configuration checks, logs, packages, counts and the Makefile's refusals."""
from __future__ import annotations

import re
import subprocess
from contextlib import contextmanager

import pytest
from virtual_silicon.errors import Fail
from virtual_silicon.progress import Step

from .. import guest, paths, proc, targets
from ..check import bisect, configs, testrun
from ..compile import kernel
from ..fetch import packages
from ..patchqueue import tree as trees
from .conftest import write


def test_unmet_settings_are_listed():
    fragment = "# text\nCONFIG_A=y\nCONFIG_B=64\n# CONFIG_C is not set\nCONFIG_D=y\n"
    config = "CONFIG_A=y\nCONFIG_B=32\nCONFIG_C=y\n"
    assert kernel.unmet(fragment, config) == [
        "CONFIG_B=64 (is 32)", "CONFIG_C=n (is y)", "CONFIG_D=y (is n)"]
    assert kernel.unmet("# CONFIG_X is not set\n", "") == []


def test_failure_shows_reason_and_end_of_the_log(tmp_path):
    script = "for i in $(seq 30); do echo line $i; done; echo 'a.c:3: error: no such thing'; exit 2"
    with pytest.raises(Fail) as error:
        proc.logged(["sh", "-c", script], tmp_path / "x.log", what="compiling")
    assert str(error.value).startswith("compiling failed: a.c:3: error: no such thing")
    assert error.value.details.splitlines()[0] == "line 12"
    assert len(error.value.details.splitlines()) == 20


def test_progress_counts_or_believes_the_program(tmp_path):
    seen = []
    count = proc.logged(["printf", "  CC a.o\nnoise\n  CC b.o\n"], tmp_path / "a.log", what="x",
                        count=re.compile("^  CC "), progress=lambda *a: seen.append(a))
    assert count == 2 and seen == [(1, 0), (2, 0)]
    seen.clear()
    proc.logged(["echo", "[3/9] x"], tmp_path / "b.log", what="x",
                count=re.compile(r"\[(?P<done>\d+)/(?P<total>\d+)\]"),
                progress=lambda *a: seen.append(a))
    assert seen == [(3, 9)]


def test_the_first_build_has_a_total(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Step, "HEARTBEAT", -1)
    for known in ("of about 5 objects", "of about 7 objects"):
        kernel.compiled(["printf", "  CC a.o\n"], "x", tmp_path / "log", tmp_path / "count",
                        first=5)
        assert f"1 {known}" in capsys.readouterr().out
        (tmp_path / "count").write_text("7")


def test_no_space_is_said_before_the_work(tmp_path):
    with pytest.raises(Fail,
                       match=r"no disk space for it: .* has \d+ MiB free, \d+ MiB are needed"):
        proc.need_space(tmp_path / "not/yet/there", 1 << 40, "it")


@pytest.mark.parametrize("value", ["0", "-2", "many"])
def test_jobs_must_be_a_number(monkeypatch, value):
    monkeypatch.setenv("JOBS", value)
    with pytest.raises(Fail, match=f"JOBS={value}"):
        proc.jobs()


def test_make_variables_do_not_reach_other_programs(monkeypatch):
    makefile = (paths.TOP / "Makefile").read_text().replace("\\\n", "")
    exported = re.search(r"^VARIABLES := (.*)$", makefile, re.M)
    assert exported and "CMD" in exported[1].split()
    ours = {"MAKEFLAGS", *exported[1].split()}
    for name in ours:
        monkeypatch.setenv(name, "x")
    assert not ours & set(proc.environment())


def test_compiler_cache_knows_what_assembler_includes(tmp_path, monkeypatch):
    """bzImage is linked from an assembler file that includes the compressed kernel."""
    monkeypatch.setattr(paths, "cache_root", lambda: tmp_path)
    (tmp_path / "a.S").write_text('.incbin "data"\n')
    objects = []
    for data in ("old", "new"):
        (tmp_path / "data").write_text(data)
        proc.capture(["gcc", "-c", "-Wp,-MMD,a.d", "a.S", "-o", "a.o"], cwd=tmp_path,
                     env=proc.build_environment())
        objects.append((tmp_path / "a.o").read_bytes())
    assert b"old" in objects[0] and b"new" in objects[1]


def test_packages_file_is_sound():
    groups = packages.load()
    assert set(groups) == {"build", "deb", "stick", "qemu", "guest", "test", "cpuwhy", "lint",
                           "bench", "live", "static", "fuzz"}
    assert all(groups.values())


def test_fresh_machine_gets_as_far_as_installing():
    """Nothing but Python is there when make looks at its variables."""
    for what in (["-m", "series", "help"], ["-m", "virtual_silicon", "check"],
                 ["-m", "virtual_silicon", "run", "--help"]):
        done = subprocess.run([guest.PYTHON, "-S", *what], cwd=paths.TOP, capture_output=True,
                              text=True, env={"PYTHONPATH": paths.PYTHONPATH})
        assert not done.returncode, done.stderr


def test_packages_of_the_guest_are_listed():
    lines = (paths.SILICON / "guest/recipe.txt").read_text()
    needed = set(re.findall(r"^package\s+(\S+)", lines, re.M))
    assert needed and needed <= set(packages.load()["guest"])


def test_packages_error_names_the_line(tmp_path):
    (tmp_path / "p").write_text("[build]\ngcc make\n")
    with pytest.raises(Fail, match="p:2: expected one package"):
        packages.load(tmp_path / "p")


def test_alternatives_count_as_installed(monkeypatch):
    monkeypatch.setattr(packages, "installed", lambda: {"b"})
    monkeypatch.setattr(packages, "load", lambda: {"g": ["a|b", "c"]})
    assert packages.missing(["g"]) == ["c"]


def test_user_who_may_not_install_gets_the_line(monkeypatch):
    monkeypatch.setattr(packages, "_rights", lambda: None)
    monkeypatch.setattr(packages, "missing", lambda groups: ["bison", "flex"])
    monkeypatch.setattr(packages, "_candidate", lambda name: name)
    with pytest.raises(Fail, match=r"(?s)run:\n  sudo apt-get install .*bison flex$"):
        packages.ensure("build")


def test_no_network_is_told_in_one_line():
    said = ("Err:1 http://m bookworm InRelease\n  Temporary failure resolving 'm'\n"
            "E: Failed to fetch http://m/x  Temporary failure resolving 'm'\n")
    assert packages.reason(said, "apt-get update") == \
        "apt-get update failed: no network (Temporary failure)"
    assert packages.reason("E: Unable to locate package x\n", "apt-get install") == \
        "apt-get install failed: Unable to locate package x"


def test_junit_counts_cases():
    count = testrun.count_junit(
        '<testsuites><testsuite><testcase classname="a" name="ok"/>'
        '<testcase classname="a" name="bad"><failure/></testcase>'
        '<testcase classname="a" name="worse"><error/></testcase>'
        '<testcase classname="a" name="not"><skipped/></testcase></testsuite></testsuites>')
    assert str(count) == "1 passed, 2 failed, 1 skipped"
    assert count.failures == ["a.bad", "a.worse"]


def test_pytest_that_fails_without_a_failed_case(tmp_path, monkeypatch):
    for name in ("TESTS", "LOG"):
        monkeypatch.setattr(paths, name, tmp_path / name)
        (tmp_path / name).mkdir()
    (tmp_path / "test_one.py").write_text("def test_good(): pass\n")
    assert str(testrun.pytest("good", tmp_path)) == "1 passed, 0 failed, 0 skipped"
    (tmp_path / "conftest.py").write_text(
        "import os\ndef pytest_unconfigure(config): os._exit(7)\n")
    assert str(testrun.pytest("bad", tmp_path)) == "1 passed, 1 failed, 0 skipped"


def test_bisect_compiles_again_what_has_changed(tmp_path, monkeypatch):
    built = []

    class Config:
        def __init__(self, name, data, tree):
            self.symbols = data["symbols"]

        def configure(self):
            if self.symbols == "bad":
                raise Fail("no such symbol")

        def compile(self, directories):
            built.append(self.symbols)

    monkeypatch.setattr(bisect, "Config", Config)
    monkeypatch.setattr(bisect, "DONE", tmp_path / "done")
    monkeypatch.setattr(bisect.git, "run", lambda *words, repo: words[-1])

    def check(commit, symbols, compiler="gcc 1"):
        monkeypatch.setattr(kernel, "compiler", lambda: compiler)
        monkeypatch.setitem(bisect.CONFIGS, "all", {"symbols": symbols})
        return bisect.check(commit, "all", []).passed
    for _ in range(2):
        assert check("1", "a") and check("2", "a") and check("1", "b")
        assert check("1", "a", "gcc 2")
        with pytest.raises(Fail):
            check("1", "bad")
    assert built == ["a", "a", "b", "a"]


def test_directories_of_an_architecture(tmp_path, monkeypatch):
    wanted = {"arch/x86/lib/": "x86", "arch/arm64/lib/": "arm64", "kernel/": "both"}
    for name in wanted:
        (tmp_path / name).mkdir(parents=True)
    for arch, mine in (("x86_64", "x86"), ("i386", "x86"), ("arm64", "arm64")):
        config = configs.Config("c", {"symbols": "", "arch": arch}, trees.Tree("t", tmp_path, 1))
        built: list[str] = []
        monkeypatch.setattr(config, "build", lambda *targets, to=built: to.extend(targets))
        config.compile([*wanted, "not/there/"])
        assert built == ["prepare", *(d for d in wanted if wanted[d] in (mine, "both"))]


def test_kunit_counts_leaves():
    count = testrun.count_kunit({"sub_groups": [
        {"name": "suite", "test_cases": [{"name": "a", "status": "PASS"},
                                         {"name": "b", "status": "SKIP"}],
         "sub_groups": [{"name": "rows", "test_cases": [{"name": "1", "status": "FAIL"},
                                                        {"name": "2", "status": "ERROR"}]}]}]})
    assert str(count) == "1 passed, 2 failed, 1 skipped"
    assert count.failures == ["suite.rows.1 (FAIL)", "suite.rows.2 (ERROR)"]


def test_tap_counts_inner_cases_where_there_are_any():
    count = testrun.count_tap(
        "TAP version 13\n1..3\n# selftests: x: two\n# TAP version 13\n# 1..2\n"
        "# ok 1 first\n# not ok 2 second\n# ok 3 # SKIP one CPU\n"
        "not ok 1 selftests: x: two # exit=1\n"
        "# selftests: x: plain\n# says something\nok 2 selftests: x: plain\n"
        "# selftests: x: none\n# 1..0 # SKIP no device\nok 3 selftests: x: none # SKIP\n")
    assert str(count) == "2 passed, 1 failed, 2 skipped"
    assert str(testrun.count_tap("# ok 1 first\nnot ok 1 dies later\n")) == \
        "1 passed, 1 failed, 0 skipped"


@pytest.mark.parametrize("said, code, passed, failures", [
    ("40 of 40 cells, 1:05: x", 0, 40, []),
    ("FAILED canary-base-short: 18 cells: the guest hangs (console.log)\n22 of 40 cells, 1:05: x",
     1, 22, ["canary-base-short: 18 cells: the guest hangs (console.log)"]),
    ("HOLDS NO LONGER canary/m: ours/base idle:1 W: 2, and is to be 0.9 to 1\n40 of 40 cells, 1: x",
     1, 40, ["canary/m: ours/base idle:1 W: 2, and is to be 0.9 to 1"]),
    ("40 of 40 cells, 1:05: x", 1, 40, ["lab ended with 1"])])
def test_cells_of_the_lab_are_cases(monkeypatch, said, code, passed, failures):
    monkeypatch.setattr(proc, "capture", lambda *_, **__: subprocess.CompletedProcess(
        [], code, said.encode(), b""))
    assert testrun.lab() == testrun.Count(passed=passed, failures=failures)


def test_lab_that_does_not_begin(monkeypatch):
    monkeypatch.setattr(proc, "capture", lambda *_, **__: subprocess.CompletedProcess(
        [], 3, b"", b"virtual-silicon: bzImage is not there"))
    with pytest.raises(Fail, match="not measured"):
        testrun.lab()


def test_suites_and_programs_that_have_to_run(tmp_path):
    suite = 'static struct kunit_suite s = {\n\t.name\t= "a-1",\n'
    write(tmp_path, kernel__sched__a_kunit_dot_c=suite, kernel__b_dot_c="struct kunit_suite;\n")
    assert testrun.kunit_suites(tmp_path) == {"a-1"}
    assert {"cpuidle-teo", "schedutil_holdoff", "turbo_table"} < testrun.kunit_suites(paths.TOP)
    assert testrun.programs_run(
        "# ok 1 inner\nok 1 selftests: x: a.sh\nnot ok 2 selftests: x: b # exit=1\n"
        "# selftests: x: c\nok 4 selftests: y: d # SKIP\n") == {"x:a.sh", "x:b", "y:d"}


def test_what_no_case_tells():
    assert testrun.unseen({"a"}, {"a", "b"}, "[    0.1] all is well\n") == testrun.Count(passed=1)
    console = "[    0.1] WARNING: CPU: 0 at x.c\n[    0.2] well\n"
    assert testrun.unseen({"a", "c", "d"}, {"a"}, console).failures == [
        "c did not run", "d did not run", "the kernel says: [    0.1] WARNING: CPU: 0 at x.c"]
    said = "# ok 1 # SKIP idle, 2 states: all of them poll\nok 2 a # SKIP no device\n"
    assert testrun.unseen(set(), set(), "", said).failures == ["skipped: ok 2 a # SKIP no device"]


def test_kernel_that_runs_no_program_is_off_after_its_suites(tmp_path, monkeypatch):
    def ends(reason):
        def boot(*words, **named):
            raise Fail(reason)
        monkeypatch.setattr(guest, "boot", boot)
        return testrun.kunit_alone(tmp_path, tmp_path, tmp_path)

    monkeypatch.setattr(testrun, "kunit_results", lambda linux, out, expected: expected)
    assert ends("the emulator ended (status 0) before the guest was done") == \
        {"cpuidle-teo", "schedutil_pairs", "schedutil_holdoff"}
    with pytest.raises(Fail, match="panicked"):
        ends("the guest's kernel panicked: Attempted to kill init!")


def test_guest_that_runs_no_kselftest(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "LOG", tmp_path)
    monkeypatch.setattr(paths, "TESTS", tmp_path)
    monkeypatch.setattr(guest, "boot", lambda *words, **named: "sh: can't cd to /selftests\n")
    config = configs.Config("x", {"symbols": ""}, trees.LINUX)
    (tmp_path / "configs-x-1").mkdir()
    (tmp_path / "configs-x-1/console.log").write_text("")
    for run in (testrun.selftests, lambda: config.run(1, "")):
        with pytest.raises(Fail, match="ran no kselftest"):
            run()


def test_total_is_the_last_line_and_decides(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "TESTS", tmp_path)

    def breaks():
        raise Fail("the guest hangs", "last console line")

    good = testrun.Count(passed=2, skipped=1)
    assert testrun.run([("a", lambda: good), ("b", breaks)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "2 passed, 1 failed, 1 skipped"
    assert testrun.run([("a", lambda: good)]) == 0
    assert testrun.run([]) == 1


@pytest.mark.parametrize("goal, said", [
    ("bogus", "unknown target: bogus; there are: help machines run demo shell"),
    ("run MACHINE=no-such-machine", "no-such-machine"),
    ("run CPUS=0", "CPUS|CPU"),
    ("run CPUS=many", "many"),
    ("run TIME=warp", "warp"),
    ("help PYTHON=no/python3", "no/python3: not found"),
    ("run KERNEL=bse", "KERNEL=bse: neither patched nor base nor the file"),
    ("demo KERNEL=nowhere", "KERNEL=nowhere: neither"),
    ("bench PART=nowhere", "PART=nowhere: there are"),
    ("figures PART=nowhere", "PART=nowhere: there are"),
    ("kernel JOBS=x", "JOBS=x: a number"),
    ("deb FLAVOUR=x", "FLAVOUR=x: there are: amd64, cloud, tools"),
    ("run MACHINES=e3-1240-v5 CMD=true", "unknown variable: MACHINES; there are: MACHINE CPUS CMD"),
    ("run FAULTS=/nonexistent", "fault file /nonexistent: No such file"),
    ("demo MACHINE=epyc-7742", "epyc-7742: compare reads registers that only Intel's CPUs have"),
    ("configs CONFIGS=foo", "CONFIGS=foo: there are "),
    ("bisect CONFIGS=foo", "CONFIGS=foo: there are all, "),
    ("run KERNEL=README.md", "KERNEL=README.md: neither patched nor base nor the file of a bzI"),
    ("test TESTS=unit", "TESTS=unit: there are lint, build-scripts, stick, cpuwhy, replay, "),
    ("run CPUS=abc", "make run: CPUS=abc: a number"),
    ("help machine=e3-1240-v5", "unknown variable: machine; there are: MACHINE CPUS CMD"),
])
def test_bad_requests_are_refused_at_once(goal, said):
    done = subprocess.run(["make", "-s", "-C", paths.TOP, *goal.split()],
                          capture_output=True, text=True, timeout=20)
    assert done.returncode == 2
    assert re.search(said, done.stderr)


def test_help_from_anywhere(tmp_path):
    done = subprocess.run(["make", "-s", "-f", paths.TOP / "Makefile", "help"], cwd=tmp_path,
                          capture_output=True, text=True, env=proc.environment())
    assert "make run " in done.stdout, done.stderr


@pytest.mark.parametrize("name", ["a clone", "a:clone"])
def test_a_path_that_the_kernel_refuses(name, tmp_path):
    (tmp_path / name).mkdir()
    done = subprocess.run(["make", "-C", tmp_path / name, "-f", paths.TOP / "Makefile", "help"],
                          capture_output=True, text=True)
    assert done.returncode == 2 and "no path with a space or a colon" in done.stderr


@pytest.mark.parametrize("variable", ["CMD", "APPEND"])
def test_variables_arrive_as_typed(variable, tmp_path):
    """As an argument of make and from its environment: a shell's "$" and all else."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\n[ "$1" = -c ] || printf "%s" "${variable}" >"$0".said\n')
    python.chmod(0o755)
    typed = """for s in a b; do echo $s $(cat $s) $$ "#" 'x y' \\ ; done\n$HOME"""
    call = ["make", "-s", "-C", str(paths.TOP), "help", f"PYTHON={python}"]
    ways: list[tuple[list[str], dict[str, str]]] = [
        ([*call, f"{variable}={typed}"], {}), (call, {variable: typed})]
    for words, env in ways:
        subprocess.run(words, env={"PATH": "/usr/bin:/bin"} | env, check=True)
        assert (tmp_path / "python.said").read_text() == typed


@pytest.mark.parametrize("goal, status, said", [
    ("help", 0, "build what is missing"), ("machines", 0, "\nsapphire-rapids: Intel(R) Xeon(R)"),
    ("kernel", 2, "this needs Debian 12, for its packages; on other systems Containerfile has")])
def test_other_systems(goal, status, said, tmp_path):
    """Where dpkg is not installed."""
    (tmp_path / "sh").symlink_to("/bin/sh")
    done = subprocess.run(["/usr/bin/make", "-s", "-C", paths.TOP, goal],
                          env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == status and said in done.stdout + done.stderr


def test_a_base_that_is_not_there_leaves_nothing():
    """Its build begins with the lock of the clone, which is one for all bases."""
    code = ("from series import paths, targets\nwith targets._alone():\n"
            "    assert paths.BUILD.name == '9.9' and not paths.BUILD.exists()")
    subprocess.run([guest.PYTHON, "-c", code], check=True,
                   env={"PYTHONPATH": paths.PYTHONPATH, "BASE": "9.9"})


def test_some_tests(monkeypatch):
    ran: list[str] = []
    monkeypatch.setattr(testrun, "run", lambda rows: ran.extend(name for name, _ in rows))
    monkeypatch.setattr(targets.results, "behind", lambda: "")
    monkeypatch.setenv("TESTS", "fuzz build-scripts")
    targets.test()
    assert ran == ["fuzz", "build-scripts"]


@pytest.mark.parametrize("rows, built", [
    ("lint", []), ("units fuzz", ["linux"]), ("units stick", ["linux", "patched"])])
def test_some_tests_need_no_kernel(monkeypatch, rows, built):
    done: list[str] = []
    monkeypatch.setattr(targets, "_ENOUGH", {
        name: tuple((lambda: done.append("linux"),)[:len(needs)])
        for name, needs in targets._ENOUGH.items()})
    for name in ("of_base", "selftests", "governors"):
        monkeypatch.setattr(targets, name, lambda: None)
    monkeypatch.setattr(targets.qemu, "build", lambda: None)
    monkeypatch.setattr(targets, "patched", lambda: done.append("patched"))
    monkeypatch.setenv("TESTS", rows)
    targets.for_tests()
    assert sorted(set(done)) == built


def test_a_tree_that_is_none(monkeypatch, tmp_path):
    monkeypatch.setenv("TREE", f"7.3 mine={tmp_path}")
    with pytest.raises(Fail, match="is no kernel tree, with drivers/cpuidle/governors"):
        targets.TARGETS["replay"].first()


@contextmanager
def has(directory):
    """Another process runs guests there."""
    code = ("import sys, pathlib; from virtual_silicon.guest import claim\n"
            "claim.claim(pathlib.Path(sys.argv[1])); print(flush=True); sys.stdin.read()")
    with subprocess.Popen([guest.PYTHON, "-c", code, directory], stdout=subprocess.PIPE,
                          env={"PYTHONPATH": paths.PYTHONPATH}, stdin=subprocess.PIPE) as other:
        assert other.stdout and other.stdout.readline()
        yield


def test_tests_run_once_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(targets.paths, "TESTS", tmp_path / "test")
    with has(tmp_path / "test"), pytest.raises(Fail, match="test: another process runs guests"):
        targets.may_test()
    targets.may_test()


def test_clean_leaves_a_running_guest_alone(tmp_path, monkeypatch):
    """Which another process has; without one all goes."""
    monkeypatch.setattr(targets.paths, "BUILD", tmp_path / "build")
    monkeypatch.setattr(targets.trees, "LINUX", trees.Tree("linux", tmp_path / "x", 1))
    monkeypatch.setattr(targets.trees, "QEMU", trees.Tree("qemu", tmp_path / "x", 1))
    run = tmp_path / "build/run"
    with has(run):
        with pytest.raises(Fail, match="a guest writes to .*build/run: end it first"):
            targets.clean()
        assert run.is_dir()
    targets.clean()
    assert not run.exists()
