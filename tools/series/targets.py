# SPDX-License-Identifier: GPL-2.0
"""What each `make` target does, step by step."""
from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

from virtual_silicon.errors import Fail
from virtual_silicon.guest import claim
from virtual_silicon.lab import plan, results
from virtual_silicon.progress import say

from . import guest, paths, proc
from .check import bisect, code, configs, mutants, static, testrun
from .compile import deb, kernel, qemu, replay, stick
from .fetch import base, cache, packages, stock
from .patchqueue import fixes, mails, manifest, port, port_table, refresh
from .patchqueue import tree as trees
from .patchqueue.manifest import Series
from .patchqueue.tree import Tree


def _newer() -> bool:
    return paths.BASE_VERSION != paths.DEFAULT_BASE


@dataclass(frozen=True)
class Target:
    """@first refuses what cannot be, before packages of @groups are installed and @needs built.
    @then makes the exit status; with @alone nobody else may build in this clone meanwhile.
    With @newer BASE= may be newer than the kernel that the series is for."""
    help: str
    groups: str = ""
    needs: Sequence[Callable[[], object]] = ()
    then: Callable[[], int | None] = lambda: 0
    first: Callable[[], object] = lambda: None
    alone: bool = False
    newer: bool = False

    def make(self) -> int:
        if self.groups and not self.newer and _newer():
            names = [name for name, target in TARGETS.items() if target.newer]
            raise Fail(f"BASE={os.environ['BASE']}: this is for {paths.DEFAULT_BASE} alone;"
                       f" another base is for {', '.join(names)}", code=2)
        self.first()
        packages.ensure(*self.groups.split())
        with _alone() if self.needs or self.alone else nullcontext():
            for need in self.needs:
                need()
            if self.alone:
                return self.then() or 0
        return self.then() or 0


def _alone() -> AbstractContextManager[None]:
    """One build at a time in a clone, whatever BASE=. Not held while a guest runs."""
    return cache.lock(paths.build_of(paths.DEFAULT_BASE) / ".lock", "this clone")


def common() -> Series:
    return manifest.load(paths.PATCHES, paths.TOP)


def series() -> Series:
    """The series for the chosen base."""
    return port.of_version(common(), paths.BASE_VERSION)


def linux() -> None:
    """build/linux with the series on the chosen base."""
    chosen = base.choose()
    repo = chosen.repo()
    say(f"base: {chosen.label} (Linux {base.release(repo)}, {chosen.key[:16]})")
    if _newer():
        port.make(trees.LINUX, repo, common(), paths.BASE_VERSION, lambda: base.default().repo())
    else:
        trees.make(trees.LINUX, repo, series())


def try_port() -> int:
    """Each commit of the series on the chosen base; 1 if one needs work."""
    chosen = base.choose()
    rows = port_table.table(chosen.repo(), base.default().repo(), series(), common(), say)
    paths.BUILD.mkdir(parents=True, exist_ok=True)
    table = paths.BUILD / "port.txt"
    table.write_text("".join(f"{row}\n" for row in rows))
    say(f"{chosen.label}: " + ", ".join(
        f"{count} {result}" for result, count in Counter(row.result for row in rows).items())
        + f" ({paths.shown(table)})")
    return int(any(row.result in ("merges", "conflict") for row in rows))


def write_mails() -> None:
    kept = {entry.patch for entry in series().entries}
    mails.write(trees.LINUX, paths.PATCHES, paths.SERIES,
                {entry.patch for entry in common().entries} - kept)
    found = fixes.write(trees.LINUX, port.directory(paths.PATCHES, paths.BASE_VERSION)
                        / fixes.FIXES, series(), paths.SERIES / fixes.FIXES)
    if found:
        say(f"series: {len(found)} fixes, each of which applies alone, in"
            f" {paths.shown(paths.SERIES / fixes.FIXES)}")


def patched() -> None:
    linux()
    kernel.patched(trees.LINUX)


def of_base() -> None:
    kernel.of_base(base.choose())


def compared() -> None:
    if not guest.compared():
        of_base()


def selftests() -> None:
    kernel.selftests(trees.LINUX)


def governors() -> None:
    replay.build(base.choose())


def _guest(text: str, subcommand: str, default: str = "patched") -> Target:
    """Boots the kernel that KERNEL= names, built if it is one of ours."""
    def build() -> None:
        if of_ours := {"patched": patched, "base": of_base}.get(guest.kernel(default)):
            of_ours()

    def check() -> None:
        guest.kernel(default)
        guest.check()

    return Target(text, "build qemu guest", [build, qemu.build],
                  lambda: guest.call(subcommand, guest.kernel(default)), check, newer=True)


def tests() -> list[tuple[str, Callable[[], testrun.Count]]]:
    """On a newer kernel without what has no part of it: docs/howto.md, "A newer kernel"."""
    return ([] if _newer() else [
        ("lint", testrun.lint),
        ("build scripts", lambda: testrun.pytest("build", paths.TOP / "tools/series/tests")),
        ("stick", lambda: testrun.pytest("stick", paths.POWER / "stick/tests")),
    ]) + [
        ("cpuwhy", lambda: testrun.pytest("cpuwhy", paths.CPUWHY / "tests")),
        ("replay", lambda: testrun.pytest("replay", replay.SOURCE / "tests")),
        ("schedutil", lambda: testrun.pytest("schedutil-sim", paths.SCHEDUTIL_SIM / "tests")),
        ("units", lambda: testrun.pytest("units", paths.UNIT)),
        ("fuzz", lambda: testrun.pytest("fuzz", paths.FUZZ / "tests")),
        ("configuration", testrun.configuration),
        ("base releases", lambda: testrun.base_releases(series())),
        *((f"releases of {version}", partial(testrun.newer_releases, common(), version))
          for version in ([] if _newer() else port.versions(paths.PATCHES))),
        ("checkpatch", lambda: static.checkpatch(trees.LINUX)),
        ("KUnit", lambda: testrun.kunit(paths.LINUX)),
        ("kselftests", testrun.selftests),
        *([] if _newer() else [("lab", testrun.lab)]),
        ("virtual silicon", testrun.silicon),
    ]


def chosen_tests() -> dict[str, Callable[[], testrun.Count]]:
    """TESTS="build-scripts units": rows of tests()."""
    rows = {name.replace(" ", "-"): row for name, row in tests()}
    return {name: rows[name] for name in proc.chosen("TESTS", rows)}


#: What these rows need; the others all of it, for their guests.
_ENOUGH: dict[str, Sequence[Callable[[], object]]] = {
    "lint": (), "units": (linux,), "schedutil": (linux,), "fuzz": (linux,), "checkpatch": (linux,),
    "replay": (linux, governors)}


def for_tests() -> None:
    every = (patched, of_base, selftests, governors, qemu.build)
    for need in dict.fromkeys(need for name in chosen_tests()
                              for need in _ENOUGH.get(name, every)):
        need()


def test() -> int:
    say(results.behind())
    return testrun.run(list(chosen_tests().items()))


def may_configure() -> None:
    guest.check()
    configs.wanted()


def may_test() -> None:
    """Once at a time in a clone: each test's guest has one directory there."""
    guest.check()
    chosen_tests()
    claim.claim(paths.TESTS)


def parts(tier: str = "") -> list[str]:
    """PART="clock rise": of the lab; else a tier."""
    wanted = os.environ.get("PART", "").split()
    known = plan.read().parts
    if unknown := [name for name in wanted if name not in known]:
        raise Fail(f"PART={' '.join(unknown)}: there are {' '.join(known)}", code=2)
    return wanted or [f"--tier={tier}"]


def lab(tier: str, *options: str) -> int:
    """With kernels of other bases, outside of the clone's lock, which is one for all bases."""
    whole, words = plan.read(), parts(tier)
    kernels = {whole.kernels[whole.columns[column].kernel].of for part in whole.parts.values()
               if part.name in words or f"--tier={part.tier}" in words for column in part.columns}
    for version in sorted(kernels & set(port.versions(paths.PATCHES))):
        for target in ("base-kernel", "kernel"):
            if code := subprocess.run([guest.PYTHON, "-m", "series", target], cwd=paths.TOP,
                                      env=proc.environment({"BASE": version})).returncode:
                return code
    return guest.silicon("lab", f"--jobs={proc.jobs()}", *options, *words)


def live() -> None:
    """Modules for Debian's kernels. Imported late: python3-pyelftools is installed by then."""
    from .compile import live as modules
    modules.make()


def live_test() -> int:
    from .check import live_guest
    return testrun.run([("live", live_guest.switches), ("live, busy", live_guest.loaded),
                        ("live, lockdown", live_guest.refused),
                        ("live, Secure Boot", live_guest.secure),
                        ("live, compare", live_guest.compared),
                        ("live figures", live_guest.figures)])


def may_live() -> None:
    if not _newer():
        raise Fail("live is for Debian's kernels from 7.3 on: BASE=7.3", code=2)


def for_mutants() -> None:
    linux()
    governors()
    if any(subsystem.guest for subsystem in mutants.subsystems()):
        kernel.patched(trees.LINUX)
        qemu.build()


def take_back() -> None:
    if _newer():
        port.take_back(trees.LINUX, common(), paths.BASE_VERSION)
        return
    refresh.refresh(trees.LINUX, series())
    if trees.QEMU.git_dir.is_dir():
        refresh.refresh(trees.QEMU, qemu.series())


def clean() -> None:
    """Remove what is generated, but no edits that exist nowhere else and no running guest's
    files."""
    for path in (*paths.BUILD.iterdir(), *paths.BUILD.glob("[0-9]*/*")):
        if path.is_dir() and claim.taken(path):
            raise Fail(f"a guest writes to {paths.shown(path)}: end it first")
    newer = [Tree("linux", path, 0) for path in paths.BUILD.glob("*/linux")]
    for tree in (trees.LINUX, trees.QEMU, *newer):
        if tree.git_dir.is_dir():
            trees.refuse_to_lose(tree)
    shutil.rmtree(paths.BUILD)
    say("removed build/")


def show_help() -> None:
    width = max(map(len, TARGETS))
    for name, target in TARGETS.items():
        say(f"  make {name:{width}}  {target.help}")
    say("""
  MACHINE=  a machine (sapphire-rapids; of demo platinum-8592) or the path of its file
  CPUS=     number of CPUs of the guest (4)    CMD=   command to run in it
  KERNEL=   patched, base, or a bzImage or Debian package of yours
  APPEND=   more for the kernel's command line
  TIME=     free (default) or deterministic    JOBS=  parallel compilers, guests of bench, test
  FLAVOUR=  amd64 (default) or cloud: Debian's configuration that deb takes; tools: no kernel
  PART=     parts of bench or figures, in tools/testing/virtual-silicon/virtual_silicon/lab/plans
  BASE=     point release of the base, or a newer kernel: 7.3
  KSRC=     tarball or directory of the base instead
  TESTS=    rows of test: units, fuzz, lint, ... (all); TESTS='?' names them
  MUTANTS=  subsystems, of tools/testing/mutants
  CONFIGS=  rows of tools/series/check/configs.toml, or of bisect: all, 32bit, none, clang, arm64
  TREE=     kernel trees, NAME=path or 7.3, whose idle governors join in replay
  FAULTS=   file with what the CPU is to do wrong, and when
  PYTHON=   interpreter, 3.11 or newer, that has the packages of pyproject.toml""")


TARGETS = {
    "help": Target("this list", then=show_help),
    "machines": Target("the machines of MACHINE=: CPU, cores, clocks, idle states",
                       then=lambda: guest.silicon("check"), newer=True),
    "run": _guest("build what is missing, boot the patched kernel, show what it does", "run"),
    "demo": Target("base (or KERNEL=) and patched kernel side by side on one machine",
                   "build qemu guest", [patched, compared, selftests, qemu.build],
                   lambda: guest.silicon("compare", *guest.user_options("MACHINE"),
                                         *guest.compared()),
                   guest.may_compare, newer=True),
    "shell": _guest("a root shell in the guest", "shell"),
    "base-run": _guest("the same as run with the unpatched base kernel", "run", "base"),
    "test": Target("all tests; the last line counts them",
                   "build qemu guest test lint cpuwhy bench deb",
                   [for_tests], test, may_test, newer=True),
    "bench": Target("loads on kernels, compared (PART=): build/lab; without PART published tables",
                    "build qemu guest bench",
                    [patched, of_base, stock.kernels_of_columns, qemu.build],
                    lambda: lab("model"), parts),
    "validate": Target("the model against published measurements: build/validate",
                       "build qemu guest", [patched, qemu.build],
                       lambda: guest.call("validate", "patched")),
    "mutants": Target("tests have to find the mistakes in tools/testing/mutants",
                      "build test qemu guest", [for_mutants],
                      lambda: testrun.run([("mutants", mutants.run)]), mutants.subsystems),
    "configs": Target("the series in other kernel configurations (tools/series/check/configs.toml)",
                      "build qemu guest", [linux, selftests, qemu.build],
                      lambda: testrun.run(configs.checks(trees.LINUX)),
                      may_configure, alone=True),
    "bisect": Target("each commit of the series compiles: all, 32 bit, none, clang, arm64",
                     "build static", [linux],
                     lambda: testrun.run(bisect.checks(trees.LINUX)), bisect.wanted,
                     alone=True, newer=True),
    "static": Target("checkpatch, sparse, W=1, clang, arm64: nothing that the base does not have",
                     "build static", [linux],
                     lambda: testrun.run(static.checks(trees.LINUX)), alone=True, newer=True),
    "figures": Target("results/ for a release: what is other than before (PART=)",
                      "build qemu guest bench",
                      [patched, of_base, stock.kernels_of_columns, qemu.build],
                      lambda: lab("release", "--results"), parts),
    "lint": Target("mypy and ruff on all Python files (part of test)", "build lint",
                   then=lambda: testrun.run([("lint", testrun.lint)])),
    "kernel": Target("build/out/patched/bzImage", "build", [patched], newer=True),
    "base-kernel": Target("build/out/base/bzImage", "build", [of_base], newer=True),
    "deb": Target("Debian packages of kernel and tools, in build/deb", "build deb",
                  [linux, deb.linux], first=deb.flavour, newer=True),
    "stick": Target("build/stick/x86-dvfs-stick.img: a stick that compares both kernels",
                    "build deb stick", [linux], stick.make, stick.given, alone=True),
    "live": Target("x86-dvfs-live, a package with livepatches for Debian's kernels (BASE=7.3)",
                   "build deb live", [linux, live], first=may_live, newer=True),
    "live-test": Target("what make live made, on Debian's kernel: 200 switches, and its figures",
                        "build qemu guest live", [qemu.build], live_test, may_live, newer=True),
    "qemu": Target("build/out/qemu/qemu-system-x86_64", "build qemu", [qemu.build],
                   newer=True),
    "replay": Target("build/replay/governor-replay: idle governors on recorded traces", "build",
                     [governors], first=replay.others, newer=True),
    "tree": Target("build/linux: git tree, the base and one commit per patch", "build", [linux],
                   newer=True),
    "port": Target("what becomes of each commit on another kernel (BASE=): build/VERSION/port.txt",
                   "build", then=try_port, alone=True, newer=True),
    "refresh": Target("take commits made in build/linux and build/qemu/src into the repository",
                      "build", [take_back], newer=True),
    "series": Target("build/series: the patches as mails, and in parts", "build",
                     [linux, write_mails], newer=True),
    "lines": Target("lines of code that each commit adds: no comments, blanks, tests", "build",
                    [linux], lambda: say("\n".join(code.table(trees.LINUX.path, trees.BASE))),
                    newer=True),
    "releases": Target("try the patches on each base release on offer", "build",
                       then=lambda: testrun.run([
                           ("base releases", lambda: testrun.base_releases(series()))]),
                       alone=True, newer=True),
    "clean": Target("remove build/", needs=[clean]),
    "clean-cache": Target("remove what clones share (XDG_CACHE_HOME/x86-dvfs)", then=cache.clean),
}
