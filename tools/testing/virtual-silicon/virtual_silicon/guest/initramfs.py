# SPDX-License-Identifier: GPL-2.0
"""The guest's root file system, put together from installed packages.

guest/recipe.txt lists what goes in; shared libraries follow by ldd.  A job is
a second archive, which the kernel unpacks over the first.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import paths
from ..errors import GuestError, MissingError
from . import claim, distribution
from .cpio import Archive

GUEST = paths.SILICON / "guest"
RECIPE = GUEST / "recipe.txt"
COMMON = GUEST / "src/vs-common.h"


@dataclass(frozen=True)
class Item:
    """One line of a recipe."""

    kind: str		# "package", "unpack", "own", "compile"
    source: str
    target: str
    package: str = ""


def read_recipe(path: Path = RECIPE) -> list[Item]:
    items = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        kind, *rest = words
        if kind in ("package", "unpack") and len(rest) == 2:
            items.append(Item(kind, rest[1], rest[1], rest[0]))
        elif kind in ("own", "compile") and len(rest) == 2:
            items.append(Item(kind, str(path.parent / rest[0]), rest[1]))
        else:
            raise GuestError(f"{path}:{number}: expected 'package|unpack NAME FILE' "
                             f"or 'own|compile SOURCE TARGET', got {line.strip()!r}")
    return items


def packages(items: list[Item]) -> list[str]:
    """Debian packages that the recipe needs installed."""
    return sorted({item.package for item in items if item.kind == "package"})


def libraries(binary: Path) -> list[Path]:
    """Shared libraries and the loader a program needs; none if static."""
    result = subprocess.run(["ldd", str(binary)], capture_output=True, text=True,
                            check=False)
    if result.returncode:
        return []	# static, or a script
    if missing := re.findall(r"(\S+) => not found", result.stdout):
        raise MissingError(f"{binary} needs {', '.join(missing)}")
    return [Path(path) for path in
            re.findall(r"(?:=> )?(/\S+) \(0x", result.stdout)]


def _add_program(archive: Archive, source: Path, target: str) -> None:
    archive.copy(source.resolve(), target)
    for library in libraries(source):
        if str(library) not in archive:
            archive.copy(library.resolve(), str(library))


def compiled(source: Path, build: Path, shared: bool = False) -> Path:
    """Static program from one C file; rebuilt when it or vs-common.h is newer.

    @shared: to be preloaded.
    """
    target = build / source.with_suffix(".so" if shared else "").name
    newest = max(path.stat().st_mtime for path in (source, COMMON))
    if target.exists() and target.stat().st_mtime >= newest:
        return target
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        raise MissingError("no C compiler (package gcc)")
    build.mkdir(parents=True, exist_ok=True)
    how = ("-shared", "-fPIC") if shared else ("-static", "-pthread")
    command = [compiler, "-O2", "-Wall", "-Wextra", "-Werror", *how, "-Wl,--build-id=none",
               "-I", str(COMMON.parent), "-o", str(target), str(source)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise GuestError(f"{source.name} does not compile",
                         "\n".join(result.stderr.splitlines()[-10:]))
    return target


def _add_busybox(archive: Archive, busybox: Path) -> None:
    """Links for its applets, except where a real program of that name is in."""
    result = subprocess.run([str(busybox), "--list"], capture_output=True, text=True,
                            check=True)
    have = {Path(name).name for name in archive.names()}
    for applet in sorted(set(result.stdout.split()) - have):
        archive.symlink(f"bin/{applet}", "/bin/busybox")


def _skeleton(archive: Archive) -> None:
    for name in ("dev", "proc", "sys", "tmp", "run", "root", "job", "results",
                 "usr/bin", "usr/sbin", "bin", "sbin", "etc"):
        archive.directory(name)
    # Before devtmpfs is mounted /init must be able to speak.
    archive.node("dev/console", 5, 1)
    archive.node("dev/null", 1, 3, 0o666)
    archive.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
    archive.file("etc/group", b"root:x:0:\n")


def _add_item(archive: Archive, item: Item, build: Path) -> None:
    source = Path(item.source)
    if item.kind == "own":
        archive.copy(source, item.target)
    elif item.kind == "compile":
        archive.copy(compiled(source, build, item.target.endswith(".so")), item.target)
    elif item.kind == "unpack":
        where = build / "packages"
        root = distribution.unpacked(distribution.fetch(item.package, where), where)
        _add_program(archive, root / item.source.lstrip("/"), item.target)
    elif source.exists():
        _add_program(archive, source, item.target)
    else:
        raise MissingError(f"{source} is not installed (package {item.package})")


def assemble(build: Path, recipe: Path = RECIPE, selftests: Path | None = None,
             more: Sequence[Item] = ()) -> bytes:
    """The base archive.  `build` keeps compiled helpers, `more` is of a study's recipe."""
    archive = Archive()
    _skeleton(archive)
    busybox: Path | None = None
    for item in (*read_recipe(recipe), *more):
        _add_item(archive, item, build)
        if Path(item.source).name == "busybox":
            busybox = Path(item.source)
    if selftests:
        add_selftests(archive, selftests)
    if busybox:
        _add_busybox(archive, busybox)
    return archive.data()


def add_selftests(archive: Archive, directory: Path,
                  target: str = "selftests") -> None:
    """An installed kselftest directory (executables and their settings)."""
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            name = f"{target}/{path.relative_to(directory)}"
            if os.access(path, os.X_OK):
                _add_program(archive, path, name)
            else:
                archive.copy(path, name)


def ensure(build: Path, selftests: Path | None = None, more: Path | Sequence[Item] = ()) -> Path:
    """Writes build/initramfs.cpio unless it already has these bytes. @more: of a study."""
    items = read_recipe(more) if isinstance(more, Path) else more
    target = build / "initramfs.cpio"
    with claim.waited_for(build):
        data = assemble(build / "guest", selftests=selftests, more=items)
        if not target.exists() or target.read_bytes() != data:
            scratch = target.with_suffix(".tmp")	# others may read the old one
            scratch.write_bytes(data)
            scratch.replace(target)
    return target


def job(files: dict[str, bytes]) -> bytes:
    """Archive with the files of a job; scripts are executable."""
    archive = Archive()
    for name, data in files.items():
        archive.file(f"job/{name}", data,
                     0o755 if data.startswith(b"#!") else 0o644)
    return archive.data()
