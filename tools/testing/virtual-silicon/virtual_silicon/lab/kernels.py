# SPDX-License-Identifier: GPL-2.0
"""The kernels that columns name: built or unpacked when they are first needed."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from pathlib import Path

from .. import paths
from ..errors import GuestError
from ..guest import distribution, options
from .plan import Kernel

OUT = paths.BUILD / "kernels"


def packages(kernel: Kernel) -> list[str]:
    """Of Debian; from 7.3 on its modules have a package of their own."""
    return [re.sub("-binary-", "-modules-", kernel.of), kernel.of] \
        if kernel.of.startswith("linux-") and not kernel.of.endswith(".deb") else []


def image(kernel: Kernel) -> tuple[Path, dict[str, bytes]]:
    """And the modules that a job needs."""
    if "/" in kernel.of or kernel.of.endswith(".deb"):
        return options.image(kernel.of, OUT)
    if names := packages(kernel):
        found = distribution.unpack([distribution.fetch(name, OUT) for name in names][-1], OUT)
        return found.image, found.files()
    if kernel.config:
        return _built(kernel), {}
    out = paths.BUILD / ("out" if kernel.of == "6.12" else f"{kernel.of}/out")
    return paths.need(out / kernel.like / "bzImage",
                      f"make kernel base-kernel BASE={kernel.of}"), {}


def _run(log: Path, *words: str | Path) -> None:
    with log.open("a", encoding="utf-8") as said:
        if subprocess.run(words, stdout=said, stderr=said, check=False).returncode:
            raise GuestError(f"a kernel was not built; see {log}")


def _git(tree: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(tree), *words], check=True, capture_output=True,
                          text=True).stdout.strip()


def _built(kernel: Kernel) -> Path:
    """From the commits of `make tree`, with the configuration of `make kernel` and options that
    come last, so that they count."""
    tree = paths.BUILD / "linux"
    paths.need(tree / "Makefile", "make tree")
    config = paths.kernel(kernel.like).with_name("config").read_text(encoding="utf-8")
    commit = _git(tree, "rev-list", "--max-parents=0", "HEAD") if kernel.like == "base" else \
        _git(tree, "rev-parse", "HEAD")
    config += "".join(f"CONFIG_{option}\n" for option in kernel.config)
    made_from = hashlib.sha256((commit + config).encode()).hexdigest()
    out, source = OUT / kernel.name, OUT / f"source-{kernel.like}"
    objects, mark, log = source / f".obj-{kernel.name}", out / "made-from", out / "log"
    if mark.exists() and mark.read_text(encoding="ascii") == made_from:
        return out / "bzImage"
    out.mkdir(parents=True, exist_ok=True)
    mark.unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    _git(tree, "worktree", "prune")
    if not source.exists():
        _run(log, "git", "-C", tree, "worktree", "add", "--detach", source, commit)
    _run(log, "git", "-C", source, "checkout", "--force", "--detach", commit)
    objects.mkdir(exist_ok=True)
    (objects / ".config").write_text(config, encoding="utf-8")
    for target in ("olddefconfig", "bzImage"):
        _run(log, "make", "-C", source, f"O={objects}", "ARCH=x86_64", "LOCALVERSION=",
             "KBUILD_BUILD_VERSION=1", "KBUILD_BUILD_USER=x86-dvfs", "KBUILD_BUILD_HOST=build",
             "KBUILD_BUILD_TIMESTAMP=2026-01-01", f"-j{os.environ.get('JOBS') or os.cpu_count()}",
             target)
    have = (objects / ".config").read_text(encoding="utf-8").split()
    if lacking := [option for option in kernel.config if f"CONFIG_{option}" not in have]:
        raise GuestError(f"kernel {kernel.name}: not what came out: {', '.join(lacking)}")
    (out / "bzImage").write_bytes((objects / "arch/x86/boot/bzImage").read_bytes())
    mark.write_text(made_from, encoding="ascii")
    return out / "bzImage"
