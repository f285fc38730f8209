# SPDX-License-Identifier: GPL-2.0
"""Debian packages: the patched kernel with Debian's own configuration plus debian.config,
and the tools that go with it."""
from __future__ import annotations

import lzma
import os
import re
import shutil
from email.utils import format_datetime, localtime
from pathlib import Path

from virtual_silicon.errors import Fail
from virtual_silicon.guest import distribution
from virtual_silicon.progress import Step, say

from .. import paths, proc
from ..fetch import aptget, base, cache
from ..patchqueue import tree as trees
from ..patchqueue.tree import Tree
from . import kernel

#: FLAVOUR=: what Debian calls it, and its configuration in linux-config.
FLAVOURS = {"amd64": "config.amd64_none_amd64.xz", "cloud": "config.amd64_none_cloud-amd64.xz"}
#: Or no kernel.
TOOLS = "tools"
FRAGMENT = Path(__file__).with_name("debian.config")
CONFIGS = f"linux-config-{base.WANTED}"
NAME, EMAIL = "x86-dvfs developers", "maintainers@x86-dvfs.invalid"


def flavour() -> str:
    name = os.environ.get("FLAVOUR") or "amd64"
    if name not in (*FLAVOURS, TOOLS):
        raise Fail(f"FLAVOUR={name}: there are: {', '.join((*FLAVOURS, TOOLS))}", code=2)
    return name


def series_version() -> str:
    """The newest one in CHANGELOG.md."""
    found = re.search(r"^## (\S+)", (paths.TOP / "CHANGELOG.md").read_text(), re.M)
    if not found:
        raise Fail("CHANGELOG.md has no line '## VERSION'")
    return found[1]


def debian_config(name: str) -> str:
    """Debian's configuration of a flavour."""
    offers = base.offers(CONFIGS)
    if not offers:
        raise Fail(f"the package manager has no {CONFIGS}: this needs Debian 12 with"
                   " security updates")

    def make(part: Path) -> list[str]:
        package = aptget.download(offers[0], part)
        proc.capture(["dpkg-deb", "-x", package, part])
        package.unlink()
        return [str(config.relative_to(part)) for config in part.rglob("config.*.xz")]

    entry = cache.get("debian-config", offers[0].sha256, make)
    packed = entry / "usr/src" / CONFIGS / FLAVOURS[name]
    return lzma.decompress(packed.read_bytes()).decode()


def build(tree: Tree, release: str) -> list[Path]:
    """The packages of build/linux, in build/deb/FLAVOUR."""
    name = flavour()
    version = f"{release}+x86dvfs{series_version()}-1"
    out = paths.BUILD / "deb" / name
    for old in out.glob("*.deb"):
        old.unlink()
    if name != TOOLS:
        _kernel(tree, name, version, out)
    tools(tree.path / "tools/power/x86", version, out)
    found = sorted(out.glob("*.deb"))
    judge(found)
    for deb in found:
        say(paths.shown(deb))
    return found


def _kernel(tree: Tree, name: str, version: str, out: Path) -> None:
    obj = out / "obj"
    # The package of headers has the build's own programs, and lintian wants them stripped.
    make = [*configured(tree, name, obj, 4000, f"packages ({name})"), f"KDEB_PKGVERSION={version}",
            "KDEB_CHANGELOG_DIST=bookworm", "HOSTLDFLAGS=-s"]
    kernel.compiled([*make, "KBUILD_VERBOSE=", "bindeb-pkg"], f"packages ({name})",
                    paths.LOG / f"deb-{name}.log", paths.LOG / f"deb-{name}.count",
                    proc.build_environment({"DEBFULLNAME": NAME, "DEBEMAIL": EMAIL}))
    for unwanted in out.glob("linux-libc-dev_*.deb"):
        unwanted.unlink()


def tools(power: Path, version: str, out: Path) -> None:
    """x86-dvfs-tools and cpuwhy; `power` is tools/power/x86 of the tree."""
    work = out / "tools"
    shutil.rmtree(work, ignore_errors=True)
    source = work / "x86-dvfs-tools"
    shutil.copytree(paths.SETTINGS, source)
    shutil.copytree(paths.POWER / "debian", source / "debian")
    for name in ("c02-bench", "c02-bench.8"):
        shutil.copy(paths.POWER / "c02-bench" / name, source)
    changelog(source, version)
    env = proc.build_environment({"POWER": str(power)})
    with Step("packages (tools)"):
        proc.logged(["dpkg-buildpackage", "-us", "-uc", "-b"], paths.LOG / "deb-tools.log",
                    what="packages (tools)", cwd=source, env=env)
        proc.logged(["make", "-C", paths.CPUWHY, "deb", f"DEB={work / 'cpuwhy'}"],
                    paths.LOG / "deb-cpuwhy.log", what="packages (cpuwhy)")
    for deb in work.rglob("*.deb"):
        deb.replace(out / deb.name)


def changelog(source: Path, version: str) -> None:
    """Of a package that is named as its directory."""
    (source / "debian/changelog").write_text(
        f"{source.name} ({version}) bookworm; urgency=low\n\n"
        "  * For the kernel of the same version.\n\n"
        f" -- {NAME} <{EMAIL}>  {format_datetime(localtime())}\n")


def live(modules: Path, version: str, out: Path) -> Path:
    """x86-dvfs-live, with what is in directories of releases in `modules`."""
    source = out / "deb/x86-dvfs-live"
    shutil.rmtree(source.parent, ignore_errors=True)
    shutil.copytree(paths.POWER / "x86-dvfs-live", source)
    shutil.copytree(modules, source / "modules")
    shutil.copy(paths.POWER / "debian/copyright", source / "debian")
    changelog(source, version)
    with Step("package (live)"):
        proc.logged(["dpkg-buildpackage", "-us", "-uc", "-b"], paths.LOG / "deb-live.log",
                    what="package (live)", cwd=source)
    found = [deb.replace(out / deb.name) for deb in source.parent.glob("*_amd64.deb")]
    judge(found)
    return found[0]


def judge(packages: list[Path]) -> None:
    """Errors of lintian are ours."""
    done = proc.capture(["lintian", "--allow-root", "--fail-on=error", *packages], check=False)
    said = done.stdout.decode(errors="replace")
    if done.returncode:
        errors = [line for line in said.splitlines() if line.startswith("E:")]
        raise Fail(f"lintian: {errors[0] if errors else done.stderr.decode(errors='replace')}",
                   said)


def configured(tree: Tree, name: str, obj: Path, mib: int, what: str) -> list[str]:
    """The call of make for a tree in Debian's configuration, then ours, each line of which must
    come true. Variables on its command line reach all that it calls. Uncommitted changes have
    no version."""
    if trees.uncommitted(tree):
        raise Fail(f"{paths.shown(tree.path)} has uncommitted changes: commit them, and make"
                   " refresh")
    obj.mkdir(parents=True, exist_ok=True)
    proc.need_space(obj, mib, f"the {what}")
    make = ["make", "-C", str(tree.path), f"O={obj}", "ARCH=x86_64",
            f"LOCALVERSION=-x86dvfs{series_version()}-{name}", "KBUILD_BUILD_USER=x86-dvfs",
            "KBUILD_BUILD_HOST=build"]
    fragment = FRAGMENT.read_text()
    fresh = obj / "fresh.config"
    fresh.write_text(debian_config(name) + fragment)
    proc.logged([*make, f"KCONFIG_CONFIG={fresh}", "olddefconfig"],
                paths.LOG / f"config-deb-{name}.log", what=f"{what} configuration")
    kernel.adopt(fresh, obj, fragment, what)
    return make


def unpacked(tree: Tree, modules: list[str], out: Path) -> distribution.Kernel:
    """The amd64 kernel that `build` would package, with these of its modules alone: minutes in
    place of hours. They are named by their paths, drivers/usb/core/usbcore.ko."""
    obj, root = out / "obj", out / "kernel"
    make = configured(tree, "amd64", obj, 1500, "kernel (patched, as Debian's)")
    # In one call make would link each module as if there were no other.
    for what, targets in (("kernel", ["bzImage"]), ("modules", modules)):
        log = paths.LOG / f"{what}-as-debian.log"
        kernel.compiled([*make, *targets], f"{what} (patched, as Debian's)", log,
                        log.with_suffix(".count"))
    release = proc.text([*make, "-s", "kernelrelease"]).strip()
    shutil.rmtree(root, ignore_errors=True)
    for source, target in ((obj / "arch/x86/boot/bzImage", f"boot/vmlinuz-{release}"),
                           *((obj / module, f"lib/modules/{release}/kernel/{module}")
                             for module in modules)):
        (root / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, root / target)
    return distribution.Kernel(release, root / f"boot/vmlinuz-{release}", root)


def linux() -> list[Path]:
    release = proc.text(["make", "-s", "-C", trees.LINUX.path, "kernelversion"]).strip()
    return build(trees.LINUX, release)
