# SPDX-License-Identifier: GPL-2.0
"""The base kernel: Debian's linux-source of the version that BASE= asks for, 6.12 without it, or
what KSRC= names.

Whatever its form, it ends as a bare git repository in the cache that holds one
commit, found again by the hash of what it was made from.
"""
from __future__ import annotations

import os
import re
import subprocess
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from virtual_silicon.errors import Fail
from virtual_silicon.progress import Step

from .. import git, paths, proc
from . import aptget, cache, importer, packages
from .importer import Item, Opened, Wanted

WANTED = paths.BASE_VERSION
REPO = "base.git"
IMPORT_VERSION = "import 2"
IMPORT_MIB = 900


@dataclass(frozen=True)
class Base:
    """A base kernel that can be had. Nothing is fetched before `repo()`."""
    label: str          # what is printed and recorded
    key: str            # hash of the content it is made from
    open: Callable[[Wanted], AbstractContextManager[Opened]]
    offer: aptget.Offer | None = None
    version: str = ""   # that of BASE= if empty

    def repo(self) -> Path:
        """Bare repository with the base as branch `importer.BRANCH`."""
        return self._import(cache.key(IMPORT_VERSION, self.key), importer.everything)

    def excerpt(self, directories: set[str]) -> Path:
        """The same with only the files that lie directly in `directories`:
        enough to try patches on, in a hundredth of the space."""
        name = cache.key(IMPORT_VERSION, self.key, *sorted(directories))
        return self._import(name, lambda p: p == "Makefile" or os.path.dirname(p) in directories)

    def _import(self, digest: str, wanted: Wanted) -> Path:
        def make(part: Path) -> list[str]:
            proc.need_space(part, IMPORT_MIB, "the base kernel")
            with self.open(wanted) as tree, Step(f"base: importing {self.label}") as step:
                items = _prepared(tree.items, self.version or WANTED)
                importer.commit(part / REPO, tree._replace(items=items), f"{self.label}\n", step)
            release(part / REPO)
            return importer.packed_files(part / REPO)
        return cache.get("base", digest, make) / REPO


def release(repo: Path) -> str:
    """The point release of an imported base, from its Makefile."""
    makefile = git.blob(repo, importer.BRANCH, "Makefile")
    if makefile is None:
        raise Fail("this is no kernel source: it has no Makefile at its top")
    return version(makefile)


def version(makefile: bytes) -> str:
    """6.12.117 from the kernel's top Makefile."""
    parts = [re.search(rb"^%s = *(\d*)$" % name, makefile, re.M)
             for name in (b"VERSION", b"PATCHLEVEL", b"SUBLEVEL")]
    found = [part[1].decode() for part in parts if part]
    if len(found) < len(parts):
        raise Fail("this is no kernel source: its Makefile has no VERSION, PATCHLEVEL and SUBLEVEL")
    return ".".join(found)


def _prepared(items: Iterable[Item], wanted: str) -> Iterator[Item]:
    """Of another version nothing is imported. Debian's .gitignore hides all files from git but
    those of the packaging: who adds one to a commit would have to know."""
    for item in items:
        if item.path == "Makefile":
            found = version(item.data)
            if found.rsplit(".", 1)[0] != wanted:
                raise Fail(f"the base is Linux {found}; the series is for {wanted}.x"
                           f" (BASE={found.rsplit('.', 1)[0]} says that it is meant)")
        if item.path == ".gitignore":
            item = item._replace(data=re.sub(rb"^/\*\n!/debian/\n", b"", item.data, flags=re.M))
        yield item


def choose() -> Base:
    """The base that KSRC= or BASE= ask for, else the newest on offer."""
    if source := os.environ.get("KSRC"):
        return from_path(Path(source).expanduser())
    found = on_offer() or on_offer(update=True)
    wanted = os.environ.get("BASE") or WANTED
    for base in found:
        if base.offer and wanted in (WANTED, base.offer.version, base.offer.release):
            return base
    there = [b.offer.release for b in found if b.offer] or aptget.versions("linux-source")
    raise Fail(f"BASE={wanted}: not on offer; there are {', '.join(there) or 'none'}"
               " (KSRC= takes a tarball or a directory)", code=2)


def default() -> Base:
    """The newest one of the kernel that the patches are for, whatever BASE= says."""
    if found := on_offer(version=paths.DEFAULT_BASE):
        return found[0]
    raise Fail(f"linux-source-{paths.DEFAULT_BASE} is not on offer")


def on_offer(update: bool = False, version: str = "") -> list[Base]:
    """What the package manager can download, newest first: of a newer kernel than the
    default from backports, too."""
    wanted = version or WANTED
    package = f"linux-source-{wanted}"
    if update and wanted == paths.DEFAULT_BASE:
        packages.update()
    found = offers(package, wanted, update)
    return [Base(f"{package} {o.version}", o.sha256, partial(_open_deb, o), o, wanted)
            for o in found]


def offers(package: str, version: str = "", update: bool = False) -> list[aptget.Offer]:
    """A package of that kernel, of BASE= by default; of a newer one from backports, too."""
    found = aptget.offers(package)
    if not found and (version or WANTED) != paths.DEFAULT_BASE:
        found = aptget.offers(package, aptget.backports(update))
    return found


@contextmanager
def _open_deb(offer: aptget.Offer, wanted: Wanted) -> Iterator[Opened]:
    """The source archive in a .deb, which is downloaded for as long as it is read."""
    with cache.scratch() as scratch:
        with Step(f"base: downloading {offer.package} {offer.version}"):
            deb = aptget.download(offer, scratch)
        unpack = ["dpkg-deb", "--fsys-tarfile", str(deb)]
        with (subprocess.Popen(unpack, stdout=subprocess.PIPE) as child,
              tarfile.open(fileobj=child.stdout, mode="r|") as tar):
            source = next((m for m in tar if m.isreg() and "/src/linux-source" in m.name), None)
            if not source:
                raise Fail(f"{deb.name} has no source archive in it")
            with importer.open_tar(deb, wanted, tar.extractfile(source)) as tree:
                yield tree


def from_path(source: Path) -> Base:
    """A tarball or a directory of the user's."""
    if source.is_dir():
        return _from_dir(source.resolve())
    if not source.is_file():
        raise Fail(f"KSRC={source}: neither a tarball nor a directory", code=2)
    return Base(f"KSRC {source.name}", cache.file_hash(source),
                lambda wanted: importer.open_tar(source, wanted))


def _from_dir(source: Path) -> Base:
    """A directory counts as changed when a file's size or time has: reading
    all of it at each call would take longer than everything else."""
    makefile = source / "Makefile"
    if not makefile.is_file():
        raise Fail(f"KSRC={source}: no kernel source: it has no Makefile at its top", code=2)
    names = importer.tracked(source) or importer.walk(source)
    stats = ((name, os.lstat(source / name)) for name in names)
    key = cache.key(*(f"{name} {s.st_mode} {s.st_size} {s.st_mtime_ns}" for name, s in stats))

    @contextmanager
    def open_(wanted: Wanted) -> Iterator[Opened]:
        yield Opened(int(makefile.stat().st_mtime),
                     importer.dir_items(source, filter(wanted, names)))

    return Base(f"KSRC {source}", key, open_)
