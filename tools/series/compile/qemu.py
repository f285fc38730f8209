# SPDX-License-Identifier: GPL-2.0
"""Building the emulator: Debian's QEMU source with our files and patches.

Source and objects stay in build/qemu, so that a change of ours compiles only
what it touches; the program itself is kept in the cache by its inputs.
"""
from __future__ import annotations

import bz2
import re
import shutil
from pathlib import Path

from virtual_silicon.errors import Fail
from virtual_silicon.progress import Step, counter, say

from .. import paths, proc
from ..fetch import aptget, cache, importer, packages
from ..patchqueue import commits, manifest
from ..patchqueue import tree as trees
from ..patchqueue.manifest import Series
from . import kernel

# All of one source package, one version; this one is the same on every architecture.
SOURCE, WITNESS = "qemu", "qemu-system-data"
WANTED = "7.2"
PROGRAM = "qemu-system-x86_64"
# Guest programs that test it, at home in its tests/tcg/x86_64/system.
GUESTS = "virtual-silicon-*.c"
OBJ_MIB = 600

CONFIGURE = ["--target-list=x86_64-softmmu", "--without-default-features", "--enable-tcg",
             "--enable-fdt=system", "--disable-docs", "--disable-tools", "--disable-werror",
             "--disable-debug-info", "--meson=/usr/bin/meson", "--with-git-submodules=ignore"]

_IMPORT = "qemu import 1"
_NINJA = re.compile(r"^\[(?P<done>\d+)/(?P<total>\d+)\]")


def series() -> Series:
    root = paths.SILICON / "qemu"
    return manifest.load(root / "patches", root / "files")


def offered_version() -> str:
    """The source version that goes with the package manager's QEMU."""
    found = aptget.offers(WITNESS)
    if not found:
        packages.update()
        found = aptget.offers(WITNESS)
    if not found:
        raise Fail(f"the package manager offers no {WITNESS}: this needs Debian 12")
    if not found[0].release.startswith(WANTED):
        raise Fail(f"the package manager's QEMU is {found[0].release}; the virtual silicon is"
                   f" for {WANTED} (Debian 12)")
    return found[0].version


def build() -> None:
    """build/out/qemu/qemu-system-x86_64, from the cache or compiled."""
    version, ours = offered_version(), series()
    if trees.QEMU.git_dir.is_dir() and (edits := trees.edits(trees.QEMU)):
        # What someone works at there is what they want to run, and nothing for the cache.
        say(f"qemu: building {paths.shown(trees.QEMU.path)} with its {edits}")
        _publish(compiled(paths.QEMU))
        return
    digest = cache.key("qemu 1", kernel.compiler(), *CONFIGURE, version, commits.inputs_key(ours))
    entry = cache.get("qemu", digest, lambda part: _fill(part, version, ours))
    _publish([*entry.glob("virtual-silicon-*"), entry / PROGRAM])
    program = cache.file_hash(entry / PROGRAM)
    say(f"qemu: {paths.shown(paths.QEMU_BINARY)} {program[:16]}, from {SOURCE} {version}"
        f" with {len(ours.entries)} commits")


def _publish(files: list[Path]) -> None:
    for file in files:
        kernel.link(paths.QEMU_BINARY.with_name(file.name), file)


def source(version: str, ours: Series) -> None:
    """build/qemu/src: Debian's source with the series on it."""
    repo = cache.get("qemu-source", cache.key(_IMPORT, version),
                     lambda part: _import(part, version)) / "qemu.git"
    paths.QEMU.mkdir(parents=True, exist_ok=True)
    trees.make(trees.QEMU, repo, ours)


def _import(part: Path, version: str) -> list[str]:
    """Debian's patched tree as a repository."""
    proc.need_space(part, 800, "QEMU's source")
    with cache.scratch() as scratch:
        with Step(f"qemu: downloading the source of {SOURCE} {version}"):
            dsc = aptget.download_source(SOURCE, version, scratch)
        with Step(f"qemu: importing {SOURCE} {version}") as step:
            unpacked = scratch / "src"
            proc.capture(["dpkg-source", "--no-check", "-x", dsc, unpacked])
            _stand_in_firmware(unpacked)
            date = int((unpacked / "debian/changelog").stat().st_mtime)
            items = importer.dir_items(unpacked, importer.walk(unpacked))
            importer.commit(part / "qemu.git", importer.Opened(date, items),
                            f"{SOURCE} {version}\n", step)
    return importer.packed_files(part / "qemu.git")


def _fill(part: Path, version: str, ours: Series) -> list[str]:
    source(version, ours)
    return [shutil.copy2(file, part / file.name).name for file in compiled(paths.QEMU)]


def compiled(root: Path) -> list[Path]:
    """Bring the objects in `root` up to date with the source there; returns the guest
    programs and, last, the emulator."""
    obj = root / "obj"
    proc.need_space(root, OBJ_MIB, "QEMU's objects")
    log = paths.LOG / "qemu.log"
    if not (obj / "build.ninja").exists():
        _configure(obj, root / "src")
    with Step("qemu: compiling") as step:
        proc.logged(["ninja", "-v", "-C", obj, f"-j{proc.jobs()}", PROGRAM], log,
                    what="qemu", count=_NINJA, progress=counter(step, "steps"))
        guests = sorted(file.stem for file in
                        (root / "src/tests/tcg/x86_64/system").glob(GUESTS))
        directory = obj / "tests/tcg/x86_64-softmmu"
        proc.logged(["make", "-C", directory, *guests], paths.LOG / "qemu-guests.log",
                    what="qemu's guest programs")
    return [directory / name for name in guests] + [obj / PROGRAM]


def _configure(obj: Path, source: Path) -> None:
    """Configure in an empty directory: meson does not take up half a one."""
    shutil.rmtree(obj, ignore_errors=True)
    obj.mkdir(parents=True)
    with Step("qemu: configuring"):
        proc.logged([source / "configure", *CONFIGURE], paths.LOG / "qemu-configure.log",
                    what="qemu configuration", cwd=obj,
                    # Of Debian, as the meson that it imports is Debian's; --python is
                    # refused together with the system's meson.
                    env=proc.build_environment({"PYTHON": "/usr/bin/python3"}))


def _stand_in_firmware(source: Path) -> None:
    """Debian's source lacks the edk2 images that the build installs; guests
    here start from seabios, and empty archives satisfy the build."""
    roms = source / "pc-bios"
    for name in re.findall(r"'(edk2-[\w.-]+\.fd)'", (roms / "meson.build").read_text()):
        if not (roms / f"{name}.bz2").exists():
            (roms / f"{name}.bz2").write_bytes(bz2.compress(b""))
