# SPDX-License-Identifier: GPL-2.0
"""What each `make` target does, step by step."""
from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from virtual_silicon.errors import Fail
from virtual_silicon.progress import say

from . import guest, paths, proc
from .check import bisect, configs, figures, mutants, static, testrun
from .compile import deb, kernel, qemu, replay
from .fetch import base, cache, packages
from .fetch.base import Base
from .patchqueue import mails, manifest, refresh, releases
from .patchqueue import tree as trees
from .patchqueue.manifest import Series


@dataclass(frozen=True)
class Target:
    help: str
    make: Callable[[], int]


def series() -> Series:
    return manifest.load(paths.PATCHES, paths.TOP)


@contextmanager
def _alone() -> Iterator[None]:
    """One build at a time in a clone. Not held while a guest runs."""
    with cache.lock(paths.BUILD / ".lock", "this clone"):
        yield


def _linux() -> Base:
    """build/linux with the series on the chosen base."""
    chosen = base.choose()
    repo = chosen.repo()
    release = base.release(repo)
    say(f"base: {chosen.label} (Linux {release}, {chosen.key[:16]})")
    trees.make(trees.LINUX, repo, series())
    return chosen


def tree() -> int:
    packages.ensure("build")
    with _alone():
        _linux()
    return 0


def patched_kernel() -> int:
    packages.ensure("build")
    with _alone():
        _linux()
        kernel.patched(trees.LINUX)
    return 0


def debian_packages() -> int:
    deb.flavour()
    packages.ensure("build", "deb")
    with _alone():
        _linux()
        deb.linux()
    return 0


def base_kernel() -> int:
    packages.ensure("build")
    with _alone():
        kernel.of_base(base.choose())
    return 0


def emulator() -> int:
    packages.ensure("build", "qemu")
    with _alone():
        qemu.build()
    return 0


def _guest(subcommand: str, default: str = "patched") -> int:
    """Build what is missing, then hand over to the virtual machine."""
    which = guest.kernel(default)
    guest.check()
    packages.ensure("build", "qemu", "guest")
    with _alone():
        if which == "patched":
            _linux()
            kernel.patched(trees.LINUX)
        elif which == "base":
            kernel.of_base(base.choose())
        qemu.build()
    return guest.call(subcommand, which)


def governor_replay() -> int:
    packages.ensure("build")
    with _alone():
        replay.build(base.choose())
    return 0


def run() -> int:
    return _guest("run")


def shell() -> int:
    return _guest("shell")


def base_run() -> int:
    return _guest("run", "base")


def demo() -> int:
    guest.check()
    packages.ensure("build", "qemu", "guest")
    with _alone():
        _linux()
        kernel.patched(trees.LINUX)
        kernel.of_base(base.choose())
        kernel.selftests(trees.LINUX)
        qemu.build()
    return guest.silicon("compare", *guest.user_options("MACHINE"))


def test() -> int:
    guest.check()
    packages.ensure("build", "qemu", "guest", "test", "lint", "cpuwhy", "bench", "deb")
    with _alone():
        _linux()
        kernel.patched(trees.LINUX)
        kernel.of_base(base.choose())
        selftests = kernel.selftests(trees.LINUX)
        replay.build(base.choose())
        qemu.build()
    figures.tell(figures.stale(figures.load()))
    return testrun.run([
        ("lint", testrun.lint),
        ("build scripts", lambda: testrun.pytest("build", paths.TOP / "tools/series/tests")),
        ("cpuwhy", lambda: testrun.pytest("cpuwhy", paths.CPUWHY / "tests")),
        ("replay", lambda: testrun.pytest("replay", replay.SOURCE / "tests")),
        ("schedutil", lambda: testrun.pytest("schedutil-sim", paths.SCHEDUTIL_SIM / "tests")),
        ("units", lambda: testrun.pytest("units", paths.UNIT)),
        ("fuzz", lambda: testrun.pytest("fuzz", paths.FUZZ / "tests")),
        ("base releases", lambda: testrun.base_releases(series())),
        ("KUnit", lambda: testrun.kunit(paths.LINUX)),
        *([("kselftests", testrun.selftests)] if selftests else []),
        ("virtual silicon", lambda: testrun.pytest("silicon", paths.SILICON / "tests")),
    ])


def bench() -> int:
    """What an earlier call has measured is kept."""
    wanted = os.environ.get("BENCH") or "short"
    if wanted not in ("short", "results", "full"):
        raise Fail(f"BENCH={wanted}: short, results or full", code=2)
    packages.ensure("build", "qemu", "guest", "bench")
    with _alone():
        _linux()
        kernel.patched(trees.LINUX)
        kernel.of_base(base.choose())
        qemu.build()
    return guest.silicon("bench", f"--jobs={proc.jobs()}", f"--extent={wanted}")


def validate() -> int:
    """The table in the documentation is made anew."""
    packages.ensure("build", "qemu", "guest")
    with _alone():
        _linux()
        kernel.patched(trees.LINUX)
        qemu.build()
    return guest.call("validate", "patched", f"--output={paths.SILICON}")


def lint() -> int:
    packages.ensure("build", "lint")
    return testrun.run([("lint", testrun.lint)])


def find_mutants() -> int:
    packages.ensure("build", "test")
    guests = any(subsystem.guest for subsystem in mutants.subsystems())
    if guests:
        packages.ensure("qemu", "guest")
    with _alone():
        replay.build(_linux())
        if guests:
            kernel.patched(trees.LINUX)
            qemu.build()
    return testrun.run([("mutants", mutants.run)])


def other_configs() -> int:
    guest.check()
    packages.ensure("build", "qemu", "guest")
    with _alone():
        _linux()
        kernel.selftests(trees.LINUX)
        qemu.build()
        return testrun.run(configs.checks(trees.LINUX))


def each_commit() -> int:
    packages.ensure("build", "static")
    with _alone():
        _linux()
        return testrun.run(bisect.checks(trees.LINUX))


def static_checks() -> int:
    packages.ensure("build", "static")
    with _alone():
        _linux()
        return testrun.run(static.checks(trees.LINUX))


def make_figures() -> int:
    """Those that are older than what they describe."""
    return figures.make()


def take_back() -> int:
    packages.ensure("build")
    with _alone():
        refresh.refresh(trees.LINUX, series())
        if trees.QEMU.git_dir.is_dir():
            refresh.refresh(trees.QEMU, qemu.series())
    return 0


def write_series() -> int:
    packages.ensure("build")
    with _alone():
        _linux()
        mails.write(trees.LINUX, paths.PATCHES, paths.SERIES)
    return 0


def check_releases() -> int:
    packages.ensure("build")
    with _alone():
        results = releases.check(series(), base.on_offer())
    return int(not results or any(reason for _, reason in results))


def clean() -> int:
    """Remove what is generated, but no edits that exist nowhere else."""
    with _alone():
        for tree_ in (trees.LINUX, trees.QEMU):
            if tree_.git_dir.is_dir():
                trees.refuse_to_lose(tree_)
        for path in paths.BUILD.iterdir():
            if path.name != ".lock":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(paths.BUILD)
    say("removed build/")
    return 0


def clean_cache() -> int:
    cache.clean()
    return 0


def show_help() -> int:
    width = max(map(len, TARGETS))
    for name, target in TARGETS.items():
        say(f"  make {name:{width}}  {target.help}")
    say("""
  MACHINE=  a machine or the path of its file; MACHINE=? lists them by family
  CPUS=     number of CPUs of the guest        CMD=   command to run in it
  KERNEL=   patched, base, or a bzImage or Debian package of yours
  APPEND=   more for the kernel's command line
  TIME=     free or deterministic              JOBS=  parallel compilers, guests of bench
  FLAVOUR=  amd64 or cloud: Debian's configuration that deb takes
  BENCH=    short (default, 25 minutes), results: tbench and pgbench, too, and each assumption
            of the model changed (70 minutes), full: and more parameters of each load (hours)
  BASE=     point release of the base          KSRC=  tarball or directory instead
  MUTANTS=  subsystems, of tools/testing/mutants
  CONFIGS=  rows of tools/series/check/configs.toml
  TREE=     kernel trees, NAME=path, whose idle governors join in replay
  FAULTS=   file with what the CPU is to do wrong, and when""")
    return 0


TARGETS = {
    "help": Target("this list", show_help),
    "run": Target("build what is missing, boot the patched kernel, show what it does", run),
    "demo": Target("base and patched kernel side by side on one machine", demo),
    "shell": Target("a root shell in the guest", shell),
    "base-run": Target("the same as run with the unpatched base kernel", base_run),
    "test": Target("all tests; the last line counts them", test),
    "bench": Target("the published tables, base and patched, in guests: build/bench/report.html",
                  bench),
    "validate": Target("the model against published measurements: build/validate", validate),
    "mutants": Target("tests have to find the mistakes in tools/testing/mutants", find_mutants),
    "configs": Target("the series in other kernel configurations (tools/series/check/configs.toml)",
                    other_configs),
    "bisect": Target("each commit of the series compiles: all, 32 bit, none, clang, arm64",
                   each_commit),
    "static": Target("checkpatch, sparse, W=1, clang, arm64: nothing that the base does not have",
                   static_checks),
    "figures": Target("tables and pictures of documents that are older than what they describe",
                    make_figures),
    "lint": Target("mypy and ruff on all Python files (part of test)", lint),
    "kernel": Target("build/out/patched/bzImage", patched_kernel),
    "base-kernel": Target("build/out/base/bzImage", base_kernel),
    "deb": Target("Debian packages of the patched kernel, in build/deb", debian_packages),
    "qemu": Target("build/out/qemu/qemu-system-x86_64", emulator),
    "replay": Target("build/replay/governor-replay: idle governors on recorded traces",
                   governor_replay),
    "tree": Target("build/linux: git tree, the base and one commit per patch", tree),
    "refresh": Target("take commits made in build/linux and build/qemu/src into the repository",
                    take_back),
    "series": Target("build/series: the patches as mails, and in parts", write_series),
    "releases": Target("try the patches on each base release on offer", check_releases),
    "clean": Target("remove build/", clean),
    "clean-cache": Target("remove what clones share (XDG_CACHE_HOME/x86-dvfs)", clean_cache),
}
