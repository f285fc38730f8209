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
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from virtual_silicon.errors import Fail
from virtual_silicon.progress import Step

from .. import git, proc

BRANCH = "base"
Check = Callable[[str, bytes], None]
Wanted = Callable[[str], bool]


def everything(path: str) -> bool:
    return True


@dataclass(frozen=True)
class Item:
    """A file of the tree: mode as git writes it, content or link target."""
    path: str
    mode: str
    data: bytes


@dataclass(frozen=True)
class Opened:
    """A tree about to be read: its date (seconds) and its files."""
    date: int
    items: Iterator[Item]


def open_tar(stream: IO[bytes], wanted: Wanted) -> Opened:
    """An uncompressed tar, its files without their leading directory."""
    tar = tarfile.open(fileobj=stream, mode="r|")
    first = tar.next()
    if first is None:
        raise Fail("the archive is empty")
    return Opened(int(first.mtime), _tar_items(tar, wanted))


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


@contextmanager
def open_archive(path: Path, wanted: Wanted = everything) -> Iterator[Opened]:
    """A compressed tar, unpacked by its own program next to our reading."""
    child = subprocess.Popen(_decompressor(path), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=proc.environment())
    assert child.stdout and child.stderr
    try:
        yield open_tar(child.stdout, wanted)
        child.stdout.read()
    except tarfile.TarError as error:
        raise Fail(f"{path}: damaged archive: {error}") from None
    except BaseException:
        child.kill()
        raise
    finally:
        code = child.wait()
    if code:
        raise Fail(f"{path}: damaged archive", child.stderr.read().decode(errors="replace").strip())


def open_dir(root: Path, names: Iterable[str], date: int) -> Opened:
    return Opened(date, _dir_items(root, names))


def _dir_items(root: Path, names: Iterable[str]) -> Iterator[Item]:
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


_MAGIC = {b"\xfd7zXZ": ["xz", "-dc", "-T0"], b"\x1f\x8b": ["gzip", "-dc"],
          b"BZh": ["bzip2", "-dc"], b"\x28\xb5\x2f\xfd": ["zstd", "-dc"]}


def _decompressor(path: Path) -> list[str]:
    """The command that writes the tar inside `path` to its output."""
    head = path.open("rb").read(512)
    for magic, command in _MAGIC.items():
        if head.startswith(magic):
            return [*command, str(path)]
    if head[257:262] == b"ustar":
        return ["cat", str(path)]
    raise Fail(f"{path}: not a tar archive (xz, gzip, bzip2, zstd or plain)")


def commit(repo: Path, tree: Opened, *, message: str,
           step: Step | None = None, check: Check = lambda path, data: None) -> None:
    """Make bare `repo` with one commit of `tree` on branch `BRANCH`.

    `check` sees each file and may raise, which stops the import at once.
    """
    git.run("init", "--quiet", "--bare", repo)
    child = subprocess.Popen(
        ["git", "-C", str(repo), "-c", "pack.compression=1", "-c", "core.compression=1",
         "-c", "fastimport.unpackLimit=0", "fast-import", "--quiet", "--depth=0", "--done"],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=git.environment())
    assert child.stdin and child.stderr
    try:
        _feed(child.stdin, tree, message.encode(), step, check)
        child.stdin.close()
    except BrokenPipeError:
        raise Fail("git fast-import failed", child.stderr.read().decode()) from None
    except BaseException:
        child.kill()
        raise
    finally:
        code = child.wait()
    if code:
        raise Fail("git fast-import failed", child.stderr.read().decode())


def _feed(out: IO[bytes], tree: Opened, message: bytes, step: Step | None,
          check: Check) -> None:
    out.write(f"commit refs/heads/{BRANCH}\ncommitter {git.IDENTITY} {tree.date} +0000\n"
              f"data {len(message)}\n".encode() + message + b"\n")
    for done, item in enumerate(tree.items, 1):
        check(item.path, item.data)
        out.write(f"M {item.mode} inline {item.path}\ndata {len(item.data)}\n".encode())
        out.write(item.data + b"\n")
        if step and done % 500 == 0:
            step.update(f"{done} files")
    out.write(b"\ndone\n")


def packed_files(repo: Path) -> list[str]:
    """The files a repository cannot do without, for the cache's checksums."""
    packs = [p for p in sorted((repo / "objects/pack").iterdir()) if p.suffix in (".pack", ".idx")]
    wanted = [repo / "HEAD", repo / "config", repo / "refs/heads" / BRANCH, *packs]
    return [str(p.relative_to(repo.parent)) for p in wanted]
