# SPDX-License-Identifier: GPL-2.0
"""make test: every kind of test, and one line that counts them all."""
from __future__ import annotations

import json
import os
import re
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from virtual_silicon.errors import Fail
from virtual_silicon.progress import Step, clock, counter, say

from .. import guest, paths, proc
from ..compile import deb
from ..fetch import aptget, base
from ..patchqueue import port, releases
from ..patchqueue.manifest import Series
from . import likeness
from . import lint as checks

_CASE_DONE = re.compile(r" (PASSED|FAILED|SKIPPED|ERROR|XFAIL|XPASS)\b.*%\]")


@dataclass
class Count:
    """Cases of one kind of test. `failures` name the failed ones."""
    passed: int = 0
    skipped: int = 0
    failures: list[str] = field(default_factory=list)

    def __add__(self, other: Count) -> Count:
        return Count(self.passed + other.passed, self.skipped + other.skipped,
                     self.failures + other.failures)

    def __str__(self) -> str:
        return f"{self.passed} passed, {len(self.failures)} failed, {self.skipped} skipped"


def run(kinds: list[tuple[str, Callable[[], Count]]]) -> int:
    """Run all kinds, whatever becomes of each; the last line is the total."""
    paths.TESTS.mkdir(parents=True, exist_ok=True)
    total, begin = Count(), time.monotonic()
    for title, kind in kinds:
        try:
            count = kind()
        except Fail as failure:
            # Not one case ran: that is a failure, not an absence of tests.
            say(failure.details)
            count = Count(failures=[str(failure)])
        for name in count.failures:
            say(f"FAILED {title}: {name}")
        say(f"{title}: {count}")
        total += count
    say(f"all tests took {clock(time.monotonic() - begin)}")
    say(str(total))
    return int(bool(total.failures) or not total.passed)


def pytest(name: str, directory: Path, *options: str) -> Count:
    """A directory of pytest files, in a process of its own: those of several directories
    have the same names."""
    junit, log = paths.TESTS / f"{name}.xml", paths.LOG / f"test-{name}.log"
    junit.unlink(missing_ok=True)
    command = [guest.PYTHON, "-m", "pytest", "-v", "-rfE", "-p", "no:cacheprovider",
               f"--junitxml={junit}", *options, str(directory)]
    with Step(f"test: {name}") as step:
        try:
            proc.logged(command, log, what=name, cwd=paths.TOP, count=_CASE_DONE,
                        env=guest.environment(), progress=counter(step, "cases"))
        except Fail as failure:
            if not junit.exists():
                raise
            say(failure.details)
            count = count_junit(junit.read_text())
            # Of an error that is no case's
            return count if count.failures else count + Count(failures=[str(failure)])
    return count_junit(junit.read_text())


def count_junit(xml: str) -> Count:
    count = Count()
    for case in ElementTree.fromstring(xml).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            count.failures.append(f"{case.get('classname')}.{case.get('name')}")
        elif case.find("skipped") is not None:
            count.skipped += 1
        else:
            count.passed += 1
    return count


def lint() -> Count:
    """One case for each tool and directory; what it said goes to the output."""
    with Step("test: lint"):
        said = checks.problems(paths.TOP)
    for text in said.values():
        if text:
            say(text)
    return Count(passed=sum(not text for text in said.values()),
                 failures=[name for name, text in said.items() if text])


def configuration() -> Count:
    """The guest kernels against Debian's: one case for each area, and each that may differ."""
    ours = {name: (paths.kernel_image(name).parent / "config").read_text()
            for name in ("patched", "base")}
    said = likeness.problems(paths.LINUX, likeness.load(paths.DEBIAN_RULES.read_text()), ours,
                             deb.debian_config("amd64"))
    return Count(passed=sum(not texts for texts in said.values()),
                 failures=[f"{case}: {text}" for case, texts in said.items() for text in texts])


def base_releases(series: Series) -> Count:
    """One case for each point release on offer."""
    results = releases.check(series, base.on_offer())
    return Count(passed=sum(not reason for _, reason in results),
                 failures=[f"{release}: {reason}" for release, reason in results if reason])


def newer_releases(common: Series, version: str) -> Count:
    """The same of a newer kernel; what is not on offer is skipped."""
    offered = base.on_offer(version=version)
    if not offered:
        say(f"linux-source-{version} is not on offer; there are"
            f" {', '.join(aptget.versions('linux-source')) or 'none'}")
        return Count(skipped=1)
    results = releases.check(port.of_version(common, version), offered[:1])
    return Count(passed=sum(not reason for _, reason in results),
                 failures=[f"{release}: {reason}" for release, reason in results if reason])


def silicon() -> Count:
    """Two guests at a time, or as many as JOBS= says."""
    jobs = [f"--jobs={proc.jobs()}"] if os.environ.get("JOBS") else []
    return pytest("silicon", paths.SILICON / "tests", *jobs)


def lab() -> Count:
    """Its tier "check": one case for each cell, and each statement that no longer holds."""
    with Step("test: lab"):
        done = proc.capture(guest.command("lab", "--tier=check", f"--jobs={proc.jobs()}"),
                            check=False, cwd=paths.TOP, env=guest.environment())
    said = done.stdout.decode(errors="replace")
    if not (cells := re.search(r"^(\d+) of \d+ cells, ", said, re.M)):
        raise Fail("the lab's cells were not measured", done.stderr.decode(errors="replace"))
    say(said.strip().splitlines()[-1])
    wrong = re.findall(r"^(?:FAILED|HOLDS NO LONGER) (.*)$", said, re.M)
    if bool(wrong) != bool(done.returncode):
        wrong.append(f"lab ended with {done.returncode}")
    return Count(passed=int(cells[1]), failures=wrong)


#: The kernel's parser fails where "Freeing initrd memory" comes between the lines of a suite.
KUNIT = "--append=initramfs_async=0 kunit.enable=1"
_SUITE = re.compile(r'struct kunit_suite \w+ = \{\s*\.name\s*=\s*"([^"]+)"')


def kunit_suites(top: Path,
                 parts: tuple[str, ...] = ("arch", "drivers", "kernel", "lib")) -> set[str]:
    """Names of the suites in the series' own files."""
    files = [file for part in parts for file in (top / part).rglob("*_kunit.c")]
    return {name for file in files for name in _SUITE.findall(file.read_text())}


def kunit(linux: Path) -> Count:
    """The suites built into the patched kernel, run by it at boot and read
    by the kernel's own parser."""
    out = paths.TESTS / "kunit"
    with Step("test: KUnit in the guest"):
        guest.boot("true", out, KUNIT)
    return kunit_results(linux, out, kunit_suites(paths.TOP))


def kunit_alone(linux: Path, image: Path, out: Path) -> Count:
    """The same of a kernel of 32 bit, which runs no program of the guest: it is off after
    the suites. Those in arch are of 64 bit."""
    try:
        guest.boot("true", out, f"{KUNIT} kunit_shutdown=poweroff", image=image)
    except Fail as end:
        if "emulator ended (status 0)" not in str(end):
            raise
    return kunit_results(linux, out, kunit_suites(paths.TOP, ("drivers", "kernel")))


def kunit_results(linux: Path, out: Path, expected: set[str]) -> Count:
    """What the guest's console in @out says of them."""
    parsed = out / "kunit.json"
    parsed.unlink(missing_ok=True)
    parser = linux / "tools/testing/kunit/kunit.py"
    done = proc.capture([guest.PYTHON, parser, "parse", f"--json={parsed}",
                         out / "console.log"], cwd=linux, check=False)
    (paths.LOG / "test-kunit.log").write_bytes(done.stdout + done.stderr)
    if not parsed.exists():
        raise Fail("kunit.py could not read the guest's console",
                   done.stdout.decode(errors="replace")[-2000:])
    group = json.loads(parsed.read_text())
    console = (out / "console.log").read_text(errors="replace")
    return count_kunit(group) + unseen(
        expected, {suite["name"] for suite in group["sub_groups"]}, console, console)


#: Of races, which KCSAN finds everywhere, those of our functions
_COMPLAINT = re.compile(r"WARNING:|BUG:(?! KCSAN:)|KCSAN:.*(?:sugov|pair|gov_attr|governor)|"
                        r"\bOops|Call Trace|suspicious RCU|INFO: .*lock|UBSAN:|ODEBUG:|not ok ")


#: Of idle states the guest's CPU has as many as it has.
_MAY_SKIP = re.compile(r"# SKIP idle, \d+ states: ")


def unseen(expected: set[str], ran: set[str], console: str, said: str = "") -> Count:
    """What no case tells: tests that did not run or were skipped by what they say, and
    complaints of the guest's kernel."""
    failures = [f"{name} did not run" for name in sorted(expected - ran)]
    failures += [f"skipped: {line}" for line in said.splitlines()
                 if "# SKIP" in line and not _MAY_SKIP.search(line)]
    failures += [f"the kernel says: {line}" for line in console.splitlines()
                 if _COMPLAINT.search(line)]
    return Count(passed=int(not failures), failures=failures)


def count_kunit(group: dict, path: str = "") -> Count:
    """Leaf cases of the tree that kunit.py writes."""
    count = Count()
    for case in group.get("test_cases", []):
        if case["status"] == "PASS":
            count.passed += 1
        elif case["status"] == "SKIP":
            count.skipped += 1
        else:
            count.failures.append(f"{path}{case['name']} ({case['status']})")
    for inner in group.get("sub_groups", []):
        count += count_kunit(inner, f"{path}{inner['name']}.")
    return count


_PROGRAM = re.compile(r"^(?:not )?ok \d+ selftests: (\S+): (\S+)", re.M)


def selftests() -> Count:
    """The kselftests of ours, run in the guest."""
    out = paths.TESTS / "selftests"
    with Step("test: kselftests in the guest"):
        said = guest.boot("cd /selftests && ./run_kselftest.sh", out, "--time=deterministic")
    (paths.LOG / "test-selftests.log").write_text(said)
    return count_kselftests(said) + unseen(
        set((paths.SELFTESTS / "kselftest-list.txt").read_text().split()),
        programs_run(said), (out / "console.log").read_text(errors="replace"), said)


def programs_run(said: str) -> set[str]:
    """As kselftest-list.txt names them."""
    return {f"{directory}:{program}" for directory, program in _PROGRAM.findall(said)}


def count_kselftests(said: str) -> Count:
    """What a guest printed; that none ran is no success."""
    count = count_tap(said)
    if not count.passed + count.skipped + len(count.failures):
        raise Fail("the guest ran no kselftest", said[-2000:])
    return count


_RESULT = re.compile(r"^(?P<lead>[# ]*)(?P<bad>not )?ok \d+(?: - | |$)(?P<name>.*?)"
                     r"(?:\s*# (?P<word>\w+).*)?\s*$")


def count_tap(text: str) -> Count:
    """Cases of kselftest output. A program's own results, which are indented
    or marked, come before the runner's line on the program. They are what
    counts if there are any; only a program that dies after good results is
    known by the runner's line alone."""
    count, inner, inner_bad = Count(), False, False
    for line in text.splitlines():
        found = _RESULT.match(line)
        if not found:
            continue
        if found["lead"]:
            inner, inner_bad = True, inner_bad or bool(found["bad"])
        else:
            told = inner and (inner_bad or not found["bad"])
            inner = inner_bad = False
            if told:
                continue
        if (found["word"] or "").upper() == "SKIP":
            count.skipped += 1
        elif found["bad"]:
            count.failures.append(found["name"])
        else:
            count.passed += 1
    return count
