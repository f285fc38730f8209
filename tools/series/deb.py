# SPDX-License-Identifier: GPL-2.0
"""Debian packages of the patched kernel: Debian's own configuration plus debian.config."""
from __future__ import annotations

import lzma
import os
import re
import shutil
import tempfile
from pathlib import Path

import aptget
import paths
import proc
import tree as trees
from tree import Tree
from ui import Fail, say

import kernel

#: FLAVOUR=: what Debian calls it, and its configuration in linux-config-6.12.
FLAVOURS = {"amd64": "config.amd64_none_amd64.xz", "cloud": "config.amd64_none_cloud-amd64.xz"}
FRAGMENT = Path(__file__).with_name("debian.config")
CONFIGS = "linux-config-6.12"


def flavour() -> str:
    name = os.environ.get("FLAVOUR") or "amd64"
    if name not in FLAVOURS:
        raise Fail(f"FLAVOUR={name}: there are: {', '.join(FLAVOURS)}")
    return name


def series_version() -> str:
    """The newest one in CHANGELOG.md."""
    found = re.search(r"^## (\S+)", (paths.TOP / "CHANGELOG.md").read_text(), re.M)
    if not found:
        raise Fail("CHANGELOG.md has no line '## VERSION'")
    return found[1]


def debian_config(name: str) -> str:
    """Debian's configuration of a flavour."""
    offers = aptget.offers(CONFIGS)
    if not offers:
        raise Fail(f"the package manager has no {CONFIGS}: this needs Debian 12 with"
                   " security updates")
    with tempfile.TemporaryDirectory() as directory:
        package = aptget.download(offers[0], Path(directory))
        proc.capture(["dpkg-deb", "-x", package, directory])
        packed = Path(directory) / "usr/src" / CONFIGS / FLAVOURS[name]
        return lzma.decompress(packed.read_bytes()).decode()


def build(tree: Tree, release: str) -> list[Path]:
    """The packages of build/linux, in build/deb/FLAVOUR."""
    name, version = flavour(), series_version()
    out = paths.BUILD / "deb" / name
    obj = out / "obj"
    obj.mkdir(parents=True, exist_ok=True)
    proc.need_space(obj, 4000, f"the packages ({name})")
    # Variables on make's command line reach all that it calls.
    make = ["make", "-C", str(tree.path), f"O={obj}", "ARCH=x86_64",
            f"LOCALVERSION=-x86dvfs{version}-{name}", "KBUILD_BUILD_USER=x86-dvfs",
            "KBUILD_BUILD_HOST=build", f"KDEB_PKGVERSION={release}+x86dvfs{version}-1",
            "KDEB_CHANGELOG_DIST=bookworm"]
    _configure(make, obj, name)
    for old in out.glob("*.deb"):
        old.unlink()
    maintainer = {"DEBFULLNAME": "x86-dvfs developers", "DEBEMAIL": "maintainers@x86-dvfs.invalid"}
    kernel.compiled([*make, "KBUILD_VERBOSE=", "bindeb-pkg"], f"packages ({name})",
                    paths.LOG / f"deb-{name}.log", paths.LOG / f"deb-{name}.count",
                    proc.build_environment(maintainer))
    found = sorted(deb for deb in out.glob("*.deb") if "libc-dev" not in deb.name)
    for deb in found:
        say(paths.shown(deb))
    return found


def _configure(make: list[str], obj: Path, name: str) -> None:
    """Debian's, then ours, each line of which must come true."""
    fragment = FRAGMENT.read_text()
    wanted = obj / "wanted.config"
    wanted.write_text(debian_config(name) + fragment)
    fresh = obj / "fresh.config"
    shutil.copyfile(wanted, fresh)
    proc.logged([*make, f"KCONFIG_CONFIG={fresh}", "olddefconfig"],
                paths.LOG / f"config-deb-{name}.log", what=f"packages ({name}) configuration")
    if lost := kernel.unmet(fragment, fresh.read_text()):
        raise Fail(f"packages ({name}): requested symbols did not come out as asked: "
                   + ", ".join(lost))
    kernel.adopt(fresh, obj)


def linux() -> list[Path]:
    """Of the tree as it stands; uncommitted changes have no version."""
    if trees.uncommitted(trees.LINUX):
        raise Fail("build/linux has uncommitted changes: commit them, and make refresh")
    release = proc.text(["make", "-s", "-C", trees.LINUX.path, "kernelversion"]).strip()
    return build(trees.LINUX, release)
