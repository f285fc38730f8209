# SPDX-License-Identifier: GPL-2.0
"""make mutants: each plausible mistake has to be found by the test that it names.

tools/testing/mutants/SUBSYSTEM/NAME.patch is a mistake. Above its diff stand two
lines, "Reason: ..." and "Test: NAME"; tests.toml beside it says what NAME runs, and on
a copy of which files; "guest = true" says that some need the patched kernel and the
emulator to be built. Without the mistake all named tests have to pass, and a mistake
has to make its test end with status 1. Any other end is not that of a test that found
something: a patch that does not apply or a tree that does not compile is a failure.
"""
from __future__ import annotations

import re
import shutil
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from .. import paths, proc
from ..fetch import cache
from ..ui import Fail, Step, chosen, say
from .testrun import Count

ROOT = paths.TOP / "tools/testing/mutants"
_HEADER = re.compile(r"^(Reason|Test): (.+)$", re.M)


@dataclass(frozen=True)
class Mutant:
    file: Path
    reason: str
    test: str

    @property
    def name(self) -> str:
        return f"{self.file.parent.name}/{self.file.stem}"


class Subsystem:
    def __init__(self, directory: Path):
        self.name = directory.name
        config = directory / "tests.toml"
        try:
            found = tomllib.loads(config.read_text())
            self.tree = paths.TOP / found["tree"]
            self.paths: list[str] = found["paths"]
            self.tests: dict[str, list[str]] = found["tests"]
            self.guest: bool = found.get("guest", False)
        except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
            raise Fail(f"{paths.shown(config)}: {error}; it needs tree, paths and"
                       " [tests]") from None
        self.mutants = [self._read(f) for f in sorted(directory.glob("*.patch"))]

    def _read(self, file: Path) -> Mutant:
        header = dict(_HEADER.findall(file.read_text().split("\n--- ")[0]))
        if set(header) != {"Reason", "Test"} or header["Test"] not in self.tests:
            raise Fail(f"{paths.shown(file)}: above the diff stand 'Reason: ...' and 'Test: NAME',"
                       f" NAME one of {', '.join(self.tests)}")
        return Mutant(file, header["Reason"], header["Test"])

    def copy(self, target: Path) -> None:
        shutil.rmtree(target, ignore_errors=True)
        # By pyproject.toml pytest knows the copy for one, and imports what is in it.
        for path in self.paths + ["pyproject.toml"] * (self.tree == paths.TOP):
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
        words = [w.format(tree=tree, top=paths.TOP) for w in self.tests[test]]
        done = proc.capture(words, cwd=paths.TOP, check=False)
        return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def subsystems() -> list[Subsystem]:
    """Those that MUTANTS= names; all without it."""
    there = sorted(d.name for d in ROOT.iterdir() if list(d.glob("*.patch")))
    return [Subsystem(ROOT / name) for name in chosen("MUTANTS", there)]


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
            verdict = _judge(subsystem, mutant, tree) if mutant.test in sound else \
                f"{mutant.test} fails without it"
            say(f"  {'found' if not verdict else 'MISSED'}  {mutant.name:44} {mutant.test:10}"
                f" {time.monotonic() - begin:5.1f} s  {mutant.reason}")
            if verdict:
                count.failures.append(f"{mutant.name}: {verdict}")
            else:
                count.passed += 1
    return count


def _judge(subsystem: Subsystem, mutant: Mutant, tree: Path) -> str:
    """Nothing if the mistake was found, else what was wrong."""
    subsystem.copy(tree)
    applied = proc.capture(["patch", "-p1", "--batch", "--fuzz=0", "--no-backup-if-mismatch",
                            f"--input={mutant.file}"], cwd=tree, check=False)
    if applied.returncode:
        said = (applied.stdout + applied.stderr).decode(errors="replace").strip()
        return f"the patch does not apply: {said.splitlines()[-1] if said else ''}"
    code, said = subsystem.run(mutant.test, tree)
    if code == 1 and not re.search(r"^[^ ]+:\d+:\d+: (fatal )?error: ", said, re.M):
        return ""
    if not code:
        return f"{mutant.test} passes with it"
    error = re.search(r"\berror: .*", said)
    return f"{mutant.test} could not run (exit {code}){': ' + error[0] if error else ''}"
