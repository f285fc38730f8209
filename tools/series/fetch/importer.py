# SPDX-License-Identifier: GPL-2.0
"""Source trees into git: one commit, straight from the archive.

git fast-import takes the files as the archive is read and writes one pack. A
kernel takes half a minute that way and a fifth of the disk space that its
unpacked tree would.
"""
from __future__ import annotations

import os
import re
import subprocess
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from virtual_silicon.errors import Fail
from virtual_silicon.progress import Step

from .. import git

BRANCH = "base"
Wanted = Callable[[str], bool]


class Item(NamedTuple):
    """A file of the tree: mode as git writes it, content or link target."""
    path: str
    mode: str
    data: bytes


class Opened(NamedTuple):
    """A tree about to be read: its date (seconds) and its files."""
    date: int
    items: Iterable[Item]


def everything(path: str) -> bool:
    return True


@contextmanager
def open_tar(name: Path, wanted: Wanted, stream: IO[bytes] | None = None) -> Iterator[Opened]:
    """A tar archive, its files without their leading directory."""
    try:
        with tarfile.open(None if stream else name, "r|*", stream) as tar:
            first = tar.next()
            yield Opened(int(first.mtime) if first else 0, _tar_items(tar, wanted))
    except tarfile.TarError as error:
        raise Fail(f"{name}: no tar archive (xz, gzip, bzip2 or plain), or a damaged one:"
                   f" {error}") from None


def _tar_items(tar: tarfile.TarFile, wanted: Wanted) -> Iterator[Item]:
    for member in tar:
        path = re.sub(r"^(\./)?[^/]+/?", "", member.name)
        if not path or not wanted(path):
            continue
        if member.issym():
            yield Item(path, "120000", member.linkname.encode())
        elif member.isreg():
            mode = "100755" if member.mode & 0o100 else "100644"
            file = tar.extractfile(member)
            assert file
            yield Item(path, mode, file.read())


def dir_items(root: Path, names: Iterable[str]) -> Iterator[Item]:
    for name in names:
        path = root / name
        if path.is_symlink():
            yield Item(name, "120000", os.readlink(path).encode())
        elif path.is_file():
            mode = "100755" if os.access(path, os.X_OK) else "100644"
            yield Item(name, mode, path.read_bytes())


def tracked(root: Path) -> list[str]:
    """The files that git knows below `root`, if that is a working tree."""
    if not (root / ".git").exists():
        return []
    names = git.run("ls-files", "-z", repo=root).split("\0")
    return [n for n in names if n and os.path.lexists(root / n)]


def walk(root: Path) -> list[str]:
    """All files below `root`, without what git or a kernel build left there."""
    found = []
    for where, dirs, files in os.walk(root):
        dirs[:] = sorted(d for d in dirs if d != ".git")
        dirs_as_links = [d for d in dirs if os.path.islink(os.path.join(where, d))]
        for name in sorted(files) + dirs_as_links:
            if not name.endswith((".o", ".a", ".ko", ".cmd")):
                found.append(os.path.relpath(os.path.join(where, name), root))
    return found


def commit(repo: Path, tree: Opened, message: str, step: Step) -> None:
    """Make bare `repo` with one commit of `tree` on branch `BRANCH`."""
    git.run("init", "--quiet", "--bare", repo)
    child = subprocess.Popen(
        ["git", "-C", str(repo), "-c", "pack.compression=1", "-c", "core.compression=1",
         "-c", "fastimport.unpackLimit=0", "fast-import", "--quiet", "--depth=0", "--done"],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=git.environment())
    try:
        assert child.stdin
        _feed(child.stdin, tree, message.encode(), step)
    except BrokenPipeError:
        pass
    except BaseException:
        child.kill()
        raise
    said = child.communicate()[1].decode(errors="replace")
    if child.returncode:
        raise Fail("git fast-import failed", said)


def _feed(out: IO[bytes], tree: Opened, message: bytes, step: Step) -> None:
    out.write(f"commit refs/heads/{BRANCH}\ncommitter {git.IDENTITY} {tree.date} +0000\n"
              f"data {len(message)}\n".encode() + message + b"\n")
    for done, item in enumerate(tree.items, 1):
        out.write(f"M {item.mode} inline {item.path}\ndata {len(item.data)}\n".encode())
        out.write(item.data + b"\n")
        if done % 500 == 0:
            step.update(f"{done} files")
    out.write(b"\ndone\n")


def packed_files(repo: Path) -> list[str]:
    """The files a repository cannot do without, for the cache's checksums."""
    packs = [p for p in sorted((repo / "objects/pack").iterdir()) if p.suffix in (".pack", ".idx")]
    wanted = [repo / "HEAD", repo / "config", repo / "refs/heads" / BRANCH, *packs]
    return [str(p.relative_to(repo.parent)) for p in wanted]
