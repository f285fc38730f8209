# SPDX-License-Identifier: GPL-2.0
"""make mutants: each plausible mistake has to be found by the test that it names.

tools/testing/mutants/SUBSYSTEM.toml has them, and begins with the tree and the paths in it
that are copied. [tests] names commands, whose first word may be one of COMMANDS; {tree} is
the copy, {top} this repository. Each [[mutants]] names one of the tests and the files that
its rows change: ["reason", 'edit', ...]. An edit is source with the mistake as git's word
diff has it: [-text-] goes, {+text+} comes. Its old text must stand exactly once in these
files.

Without a mistake all tests have to pass, and a mistake has to make its test end with status
1. Any other end is not that of a test that found something: text that is not there or a
tree that does not compile is a failure.
"""
from __future__ import annotations

import re
import shlex
import shutil
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from virtual_silicon.errors import Fail
from virtual_silicon.progress import Step, say

from .. import guest, paths, proc
from ..fetch import cache
from .testrun import Count

ROOT = paths.TOP / "tools/testing/mutants"
COMMANDS = {
    "emulator": "{python} -m series.check.mutant_qemu {tree}",
    "guest": "{python} -m series.check.mutant_kernel {tree}",
    "judge": "{python} {top}/tools/testing/schedutil-sim/judge.py {tree}",
    "pytest": "{python} -m pytest -q -x -p no:cacheprovider",
    "replay": "{top}/tools/testing/mutants/replay.sh {tree} {top}",
    "units": "{python} {top}/tools/testing/unit/units.py --tree={tree}",
}
#: Of a compiler; and of pytest, whose status is 1 if what a test needs could not be made, too.
_COMPILER = re.compile(r"^[^ ]+:\d+:\d+: (fatal )?error: ", re.M)
#: An edit's text that goes, and text that comes.
_EDIT = re.compile(r"\[-(.*?)-\]|\{\+(.*?)\+\}", re.S)
_FAILED, _ERROR = re.compile(r"^FAILED ", re.M), re.compile(r"^ERROR ", re.M)


@dataclass(frozen=True)
class Mutant:
    test: str
    files: list[str]
    reason: str
    edits: list[tuple[str, str]]


def edits(texts: list[str]) -> list[tuple[str, str]]:
    """Old and new text of each."""
    if not texts or not all(map(_EDIT.search, texts)):
        raise ValueError(f"a row needs a reason and edits, each with [-old-] or {{+new+}}: {texts}")
    return [(_EDIT.sub(r"\1", text), _EDIT.sub(r"\2", text)) for text in texts]


class Subsystem:
    def __init__(self, file: Path):
        self.name = file.stem
        try:
            found = tomllib.loads(file.read_text())
            self.tree = paths.TOP / found["tree"]
            self.paths: list[str] = found["paths"]
            self.tests = {name: shlex.split(text) for name, text in found["tests"].items()}
            self.mutants = [Mutant(group["test"], group["files"], reason, edits(texts))
                            for group in found["mutants"] for reason, *texts in group["rows"]]
        except KeyError as error:
            raise Fail(f"{paths.shown(file)} has no {error.args[0]}; it needs tree, paths,"
                       " tests, and [[mutants]] with test, files and rows") from None
        except (OSError, ValueError) as error:
            raise Fail(f"{paths.shown(file)}: {error}") from None
        if unknown := {m.test for m in self.mutants} - set(self.tests):
            raise Fail(f"{paths.shown(file)}: no test {', '.join(unknown)}; there are:"
                       f" {', '.join(self.tests)}")
        self.guest = any(words[0] == "guest" for words in self.tests.values())

    def copy(self, target: Path) -> None:
        for path in self.paths:
            source = self.tree / path
            if source.is_dir():
                shutil.copytree(source, target / path, symlinks=True,
                                ignore=shutil.ignore_patterns("*.o", "*.cmd", "__pycache__"))
            elif source.is_file():
                (target / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target / path)
            else:
                raise Fail(f"{self.name}: {paths.shown(source)} does not exist")

    def run(self, test: str, tree: Path) -> tuple[int, str]:
        first, *words = self.tests[test]
        done = proc.capture(
            [w.format(python=guest.PYTHON, tree=tree, top=paths.TOP)
             for w in [*COMMANDS.get(first, first).split(), *words]], cwd=paths.TOP, check=False,
            env=guest.environment() | {"KERNEL_TREE": str(tree), "PYTHON": guest.PYTHON,
                                       "PYTHONDONTWRITEBYTECODE": "1"})
        return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def subsystems() -> list[Subsystem]:
    """Those that MUTANTS= names; all without it."""
    there = {file.stem: file for file in sorted(ROOT.glob("*.toml"))}
    return [Subsystem(there[name]) for name in proc.chosen("MUTANTS", there)]


def run() -> Count:
    total = Count()
    for subsystem in subsystems():
        with cache.scratch() as scratch:
            total += _run(subsystem, scratch / "tree")
    return total


def _run(subsystem: Subsystem, tree: Path) -> Count:
    count = Count()
    tests = sorted({m.test for m in subsystem.mutants})
    sound = set()
    with Step(f"mutants: {subsystem.name}") as step:
        subsystem.copy(tree)
        for test in tests:
            step.update(f"{test} without a mistake")
            code, said = subsystem.run(test, tree)
            if code:
                say(said[-2000:])
                count.failures.append(f"{subsystem.name}: {test} ends with {code} without a"
                                      " mistake")
            else:
                sound.add(test)
        for number, mutant in enumerate(subsystem.mutants, 1):
            step.update(f"{number} of {len(subsystem.mutants)}")
            begin = time.monotonic()
            verdict = judge(subsystem, mutant, tree) if mutant.test in sound else \
                f"{mutant.test} fails without it"
            say(f"  {'found' if not verdict else 'MISSED'}  {subsystem.name}: {mutant.test:10}"
                f" {time.monotonic() - begin:5.1f} s  {mutant.reason}")
            if verdict:
                count.failures.append(f"{subsystem.name}: {mutant.reason}: {verdict}")
            else:
                count.passed += 1
    return count


def judge(subsystem: Subsystem, mutant: Mutant, tree: Path) -> str:
    """Nothing if the mistake was found, else what was wrong."""
    try:
        wrong = mutated(mutant, tree)
    except LookupError as error:
        return str(error)
    right = {file: file.read_text() for file in wrong}
    write(wrong)
    code, said = subsystem.run(mutant.test, tree)
    write(right)
    if code == 1 and not _COMPILER.search(said) and (_FAILED.search(said)
                                                     or not _ERROR.search(said)):
        return ""
    if not code:
        return f"{mutant.test} passes with it"
    why = re.search(r"\berror: .*", said)
    return f"{mutant.test} could not run (exit {code}){': ' + why[0] if why else ''}"


def mutated(mutant: Mutant, tree: Path) -> dict[Path, str]:
    """Its files with the mistake."""
    texts = {tree / name: (tree / name).read_text() for name in mutant.files}
    for old, new in mutant.edits:
        found = [file for file, text in texts.items() for _ in range(text.count(old))]
        if len(found) != 1:
            raise LookupError(f"{', '.join(mutant.files)} must have this once, and has it"
                              f" {len(found)} times: {old!r}")
        texts[found[0]] = texts[found[0]].replace(old, new)
    return texts


def write(texts: dict[Path, str]) -> None:
    for file, text in texts.items():
        file.write_text(text)
