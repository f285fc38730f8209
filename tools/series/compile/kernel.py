# SPDX-License-Identifier: GPL-2.0
"""Building the guest kernels: patched from build/linux, base in the cache.

Objects lie in a directory directly below the source (`OBJ`). The kernel's
Makefile then names its sources by a relative path, and ccache finds what the
other tree has compiled already.
"""
from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from virtual_silicon.errors import Fail
from virtual_silicon.progress import Step, counter, say

from .. import git, paths, proc
from ..fetch import cache, importer
from ..fetch.base import Base
from ..patchqueue import tree as trees
from ..patchqueue.tree import Tree

OBJ = ".obj"
OBJ_MIB = 500
#: Of the guest's kernel, roughly.
OBJECTS = 1480
COMPILED = re.compile(r"^  (CC|AS|HOSTCC|LD) ")


def patched_fragments() -> list[Path]:
    return [paths.KERNEL_CONFIG, paths.PATCHED_CONFIG, *_of_version()]


def base_fragments() -> list[Path]:
    return [paths.KERNEL_CONFIG, *_of_version()]


def _of_version() -> list[Path]:
    """What is otherwise with a newer kernel; later lines count."""
    file = paths.KERNEL_CONFIG.with_name(f"kernel-{paths.BASE_VERSION}.config")
    return [file] if file.exists() else []


def patched(tree: Tree) -> None:
    """build/out/patched from the tree as it stands, edits included."""
    stamp = _stamp(tree, patched_fragments())
    out = paths.kernel_image("patched").parent
    mark = out / "made-from"
    if not (stamp and _read(mark) == stamp and (out / "bzImage").exists()):
        build(tree.path, "patched", patched_fragments())
        out.mkdir(parents=True, exist_ok=True)
        mark.unlink(missing_ok=True)
        _install(tree.path / OBJ, out)
        mark.write_text(stamp)
    edits = "" if stamp else " and uncommitted changes"
    head = git.run("rev-parse", "--short=12", "HEAD", repo=tree.path)
    _tell("patched", out, source=f"{paths.shown(tree.path)} {head}{edits}")


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _stamp(tree: Tree, fragments: list[Path]) -> str:
    """Names everything the build depends on, or '' if that has no name."""
    if trees.uncommitted(tree):
        return ""
    return cache.key(tree.ref("HEAD") or "", compiler(), *(f.read_bytes() for f in fragments))


def of_base(base: Base) -> None:
    """build/out/base, which every clone shares through the cache."""
    digest = cache.key("kernel 1", base.key, compiler(),
                       *(f.read_bytes() for f in base_fragments()))

    def make(part: Path) -> list[str]:
        source = part / "linux"
        _check_out(base.repo(), source)
        build(source, "base", base_fragments())
        _install(source / OBJ, part)
        with Step("kernel (base): removing its source and objects"):
            shutil.rmtree(source)
        return ["bzImage", "config"]

    entry = cache.get("kernel", digest, make, resume=True)
    out = paths.kernel_image("base").parent
    for name in ("bzImage", "config"):
        link(out / name, entry / name)
    _tell("base", out, source=base.label)


def _check_out(repo: Path, target: Path) -> None:
    """The base's files, once: a complete checkout has its mark."""
    done = target / ".checked-out"
    if done.exists():
        return
    proc.need_space(target, trees.LINUX.mib, "the base kernel's tree")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with Step("kernel (base): writing its source"):
        index = {"GIT_INDEX_FILE": str(target.parent / "index")}
        git.run(f"--git-dir={repo}", f"--work-tree={target}", "-c", "core.bare=false",
                "-c", "checkout.workers=0", "read-tree", "--reset", "-u", importer.BRANCH,
                env=index)
        (target.parent / "index").unlink()
    done.touch()


def build(source: Path, name: str, fragments: list[Path]) -> None:
    """The image of a tree, in its OBJ."""
    obj = source / OBJ
    proc.need_space(source, OBJ_MIB, f"the {name} kernel's objects")
    wanted = "".join(f.read_text() for f in fragments)
    configure(make(source, obj), obj, wanted, wanted, f"kernel ({name})",
              paths.LOG / f"config-{name}.log")
    log = paths.LOG / f"kernel-{name}.log"
    compiled([*make(source, obj), "bzImage"], f"kernel ({name})", log, paths.LOG / "kernel.count",
             first=OBJECTS)
    if not (obj / "arch/x86/boot/bzImage").is_file():
        raise Fail(f"kernel ({name}): make ended well but there is no bzImage (see {log})")


def compiled(call: list[str], what: str, log: Path, known_total: Path,
             env: dict[str, str] | None = None, first: int = 0) -> None:
    """Run make on all CPUs, and count objects up to how many there were last time; @first
    before there was one."""
    total = int(known_total.read_text()) if known_total.exists() else first
    with Step(f"{what}: compiling") as step:
        done = proc.logged([*call, f"-j{proc.jobs()}"], log, what=what, count=COMPILED,
                           progress=counter(step, "objects", total), env=env)
    known_total.write_text(str(max(done, total)))


def make(source: Path, obj: Path, arch: str = "x86_64") -> list[str]:
    """Fixed names and times, so that equal sources give equal images. The
    release has no '+' of a git tree in it: LOCALVERSION is set, to nothing."""
    return ["make", "-C", str(source), f"O={obj}", f"ARCH={arch}", "LOCALVERSION=",
            "KBUILD_BUILD_USER=x86-dvfs", "KBUILD_BUILD_HOST=build", "KBUILD_BUILD_VERSION=1",
            "KBUILD_BUILD_TIMESTAMP=2026-01-01"]


def configure(call: list[str], obj: Path, fragments: str, asked: str, what: str,
              log: Path) -> None:
    """allnoconfig plus the fragments; each line of @asked must come true."""
    obj.mkdir(exist_ok=True)
    wanted, fresh = obj / "fragment.config", obj / "fresh.config"
    wanted.write_text(fragments)
    proc.logged([*call, f"KCONFIG_ALLCONFIG={wanted}", f"KCONFIG_CONFIG={fresh}", "allnoconfig"],
                log, what=f"{what} configuration")
    adopt(fresh, obj, asked, what)


def adopt(fresh: Path, obj: Path, asked: str, what: str) -> None:
    """Make it the configuration if it has what was asked for. An unchanged one keeps its
    time, and with it everything compiled."""
    if lost := unmet(asked, fresh.read_text()):
        raise Fail(f"{what}: {len(lost)} requested symbols did not come out as asked: "
                   + ", ".join(lost) + " (a dependency is missing, or the symbol does not exist)")
    config = obj / ".config"
    if not config.exists() or config.read_bytes() != fresh.read_bytes():
        shutil.copyfile(fresh, config)


def selftests(tree: Tree) -> None:
    """Install our kselftests that the tree has for the guest."""
    ours = sorted(d.name for d in (paths.TOP / "tools/testing/selftests").iterdir())
    have = [t for t in ours if (tree.path / "tools/testing/selftests" / t).is_dir()]
    shutil.rmtree(paths.SELFTESTS, ignore_errors=True)
    if have:
        proc.logged(["make", "-C", tree.path / "tools/testing/selftests", "install",
                     f"TARGETS={' '.join(have)}", f"INSTALL_PATH={paths.SELFTESTS}"],
                    paths.LOG / "selftests.log", what="kselftests")


_SETTING = re.compile(r"^(?:(CONFIG_\w+)=(.*)|# (CONFIG_\w+) is not set)$", re.M)


def settings(config: str) -> dict[str, str]:
    """{symbol: value}; "n" for one that is not set."""
    return {m[1] or m[3]: m[2] if m[1] else "n" for m in _SETTING.finditer(config)}


def unmet(fragment: str, config: str) -> list[str]:
    """Settings of the fragment that the configuration does not have."""
    got = settings(config)
    return [f"{symbol}={value} (is {got.get(symbol, 'n')})"
            for symbol, value in settings(fragment).items() if got.get(symbol, "n") != value]


def _install(obj: Path, out: Path) -> None:
    for source, name in ((obj / "arch/x86/boot/bzImage", "bzImage"), (obj / ".config", "config")):
        part = out / (name + ".part")
        shutil.copyfile(source, part)
        part.replace(out / name)


def link(name: Path, target: Path) -> None:
    """Point `name` at `target`, replacing what was there in one step."""
    name.parent.mkdir(parents=True, exist_ok=True)
    part = name.with_name(name.name + ".part")
    part.unlink(missing_ok=True)
    part.symlink_to(target)
    os.replace(part, name)


def _tell(name: str, out: Path, source: str) -> None:
    """What an image is and what it was made from."""
    image = cache.file_hash(out / "bzImage")
    say(f"kernel ({name}): {paths.shown(out)}/bzImage {image[:16]}, from {source}")


def compiler() -> str:
    return proc.text(["gcc", "--version"], env=proc.build_environment()).splitlines()[0]
