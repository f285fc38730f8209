# SPDX-License-Identifier: GPL-2.0
"""Livepatches of the series for Debian's kernels of the version in BASE=, and their package.

klp-build compiles a kernel and all its modules, twice. Here only the objects concerned are
compiled, with the flags that kbuild has for a module of Debian's headers, linked to a small
vmlinux.o, and given to the kernel's own "objtool klp". That this is the code of Debian's kernel is
not taken for granted: check/live.py compares it.
"""
from __future__ import annotations

import os
import re
import shutil
import sys
from functools import partial
from pathlib import Path

from virtual_silicon.errors import Fail
from virtual_silicon.progress import Step, say

from .. import git, paths, proc
from ..check import live as check
from ..fetch import aptget, base, cache
from ..patchqueue import live as parts
from ..patchqueue import tree as trees
from . import deb

OUT = paths.BUILD / "live"
ROOT = OUT / "root"
MODULES = OUT / "modules"
FLAVOURS = ("cloud-amd64", "amd64")
#: What modules are built with: Debian's own compiler, of the release that has the kernels.
INCLUDE = ("gcc", "libc6-dev", "make", "libelf-dev", "libxxhash-dev", "pahole", "dash", "bash",
           "coreutils", "diffutils", "findutils", "grep", "mawk", "sed")
#: With what patched code names and the kernel does not export.
OBJECTS = ("kernel/sched/core", "kernel/sched/fair", "kernel/sched/build_policy",
           "kernel/sched/build_utility", "drivers/cpuidle/governors/menu",
           "drivers/cpuidle/governor", "drivers/cpuidle/cpuidle", "arch/x86/kernel/cpu/aperfmperf")
SOURCES = ("kernel", "io_uring", "drivers/cpuidle", "arch/x86/kernel")
TOOLS = ("tools", "scripts", "include", "arch/x86/include", "arch/x86/lib")
SECTIONS = "-ffunction-sections -fdata-sections"
VMLINUX_TO_ELF = "1.4.0"


def run(script: str, log: str, where: str = "/") -> None:
    proc.logged(["unshare", "--mount", "sh", "-ec",
                 'mount --bind /proc "$0/proc"; exec chroot "$0" /bin/sh -ec "$1"',
                 ROOT, f"cd {where}; {script}"],
                paths.LOG / f"live-{log}.log", what=f"live ({log})",
                env={"PATH": "/usr/sbin:/usr/bin", "LC_ALL": "C", "SRCARCH": "x86"})


def userland(offer: aptget.Offer) -> None:
    """Compiler, headers and images, unpacked and not configured; anew for another release."""
    found = [f"linux-{kind}-{offer.release}+deb13-{flavour}/{aptget.SUITE}"
             for flavour in FLAVOURS for kind in ("headers", "binary")]
    mark, key = OUT / "root.made-from", cache.key(offer.version, *INCLUDE, *found)
    if mark.exists() and mark.read_text() == key:
        return
    mark.unlink(missing_ok=True)
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    proc.need_space(OUT, 1500, "Debian 13's compiler")
    mirror = aptget.mirror("".join(file.read_text() for file in aptget._sources()))
    (OUT / "sources.list").write_text("".join(
        f"deb [signed-by={aptget.KEYRING}] {mirror} {suite} main\n"
        for suite in (aptget.SUITE.partition("-")[0], aptget.SUITE)))
    with Step(f"live: compiler, headers and images of {offer.version}"):
        proc.logged(["mmdebstrap", "--variant=extract", f"--include={','.join([*INCLUDE, *found])}",
                     "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
                     '--aptopt=APT::Install-Recommends "false"', "trixie", ROOT,
                     OUT / "sources.list"], paths.LOG / "live-userland.log", what="live: userland")
    (ROOT / "usr/bin/awk").symlink_to("mawk")       # alternatives are not configured
    with Step("live: objtool"):
        unpacked("k", trees.BASE, *SOURCES, *TOOLS)
        run("make -s -C tools/objtool srctree=/k ARCH=x86", "objtool", "/k")
    mark.write_text(key)


def unpacked(where: str, commit: str, *names: str) -> None:
    (ROOT / where).mkdir()
    data = git.raw("archive", "--format=tar", commit, *names, repo=trees.LINUX.path)
    proc.capture(["tar", "x", "-C", ROOT / where], stdin=data)


def with_lines(old: Path, new: Path) -> str:
    """The new text, each line that is not new with its old number: numbers are in the code."""
    diff = proc.capture(["diff", "-U0", old, new], check=False).stdout.decode()
    lines = new.read_text().splitlines(keepends=True)
    hunks = re.findall(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", diff, re.M)
    for first, count, at, added in reversed(hunks):
        # Where nothing is removed or added, diff counts from the line before.
        was = int(first) + (int(count) if count else 1) + (count == "0")
        now = int(at) + (int(added) if added else 1) + (added == "0")
        lines.insert(now - 1, f"#line {was}\n")
    return "".join(lines)


class Build:
    """Of one kernel. Directories of the chroot: /k has the base's source, /o/RELEASE objects."""

    def __init__(self, release: str) -> None:
        self.release, self.headers = release, f"/usr/src/linux-headers-{release}"
        self.o = f"/o/{release}"

    def path(self, name: str) -> Path:
        return ROOT / self.o.lstrip("/") / name

    def flags(self) -> tuple[str, str]:
        """Of compiler and objtool, as kbuild prints them for an empty module."""
        probe = self.path("probe")
        shutil.rmtree(probe, ignore_errors=True)
        probe.mkdir(parents=True)
        (probe / "x.c").write_text('#include <linux/module.h>\nMODULE_LICENSE("GPL");\n')
        (probe / "Kbuild").write_text("obj-m := x.o\n")
        run(f"make -C {self.headers} M={self.o}/probe V=1 modules", "flags")
        said = (paths.LOG / "live-flags.log").read_text()
        cc = re.search(r"^  *\S*gcc-14 (.*) -DMODULE .* -o x\.o ", said, re.M)
        objtool = re.search(r"objtool (--hacks.*) --module x\.o", said)
        if not cc or not objtool:
            raise Fail("live: kbuild does not print its flags as expected; see live-flags.log")
        return re.sub(r"-Wp,-MMD,\S* ", "", cc[1]), objtool[1]

    def compile(self, name: str, source: str, to: str, *more: str) -> str:
        stem = name.rpartition("/")[2]
        return (f"cd {source}; gcc-14 {self.cc} {' '.join(more)} -g0 -Wno-unused-but-set-variable"
                f" -I{source}/{os.path.dirname(name)} -DKBUILD_MODFILE='\"{name}\"'"
                f" -DKBUILD_BASENAME='\"{stem}\"' -DKBUILD_MODNAME='\"{stem}\"'"
                f" -D__KBUILD_MODNAME={stem} -c -o {to}/{stem}.o {name}.c\n")

    def link(self, where: str) -> str:
        stems = " ".join(name.rpartition("/")[2] + ".o" for name in OBJECTS)
        return (f"cd {where}; ld -m elf_x86_64 -z noexecstack -r -o vmlinux.o {stems}\n"
                f"/k/tools/objtool/objtool {self.objtool} --noinstr --unret --klp-symids --link"
                " vmlinux.o\n")

    def originals(self) -> None:
        """With a section for each function, as objtool wants them; and plain, as Debian's."""
        with Step(f"live: {len(OBJECTS)} objects of {self.release}"):
            self.cc, self.objtool = self.flags()
            if self.path("made").exists():
                return
            for kind, more in (("orig", SECTIONS), ("plain", "")):
                self.path(kind).mkdir(exist_ok=True)
                run("".join(self.compile(name, "/k", f"{self.o}/{kind}", more) for name in OBJECTS)
                    + self.link(f"{self.o}/{kind}"), kind)
            # Of this one objtool reads the positions of symbols whose names are not unique.
            run("cp orig/vmlinux.o .; /k/tools/objtool/objtool klp checksum vmlinux.o;"
                "ld -m elf_x86_64 --unresolved-symbols=ignore-all -o vmlinux orig/vmlinux.o"
                f" 2>/dev/null || :; cp {self.headers}/Module.symvers .; touch made",
                "checksum", self.o)

    def part(self, name: str, part: parts.Part) -> Path:
        """The module of a part."""
        where, source = self.path(name), ROOT / f"s/{name}"
        for old in (where, source):
            shutil.rmtree(old, ignore_errors=True)
        shutil.copytree(self.path("orig"), where)
        for directory in SOURCES:
            shutil.copytree(ROOT / "k" / directory, source / directory, copy_function=os.link)
        for file, text in part.files(parts.Source(trees.LINUX)).items():
            old, new = ROOT / "k" / file, source / file
            new.unlink(missing_ok=True)
            new.write_text(text)
            if old.exists():
                new.write_text(with_lines(old, new))
        kmod, module = f"{self.o}/{name}/kmod", f"x86-dvfs-{name}"
        (where / "kmod").mkdir()
        (where / "kmod/Kbuild").write_text(
            f"obj-m := {module}.o\n{module}-y := init.o vmlinux.o\n")
        tool = "/k/tools/objtool/objtool klp"
        with Step(f"live: {name} for {self.release}"):
            run(self.compile(part.object, f"/s/{name}", f"{self.o}/{name}", SECTIONS)
                + self.link(f"{self.o}/{name}")
                + f"{tool} checksum vmlinux.o; cd ..\n"
                f"{tool} diff vmlinux.o {name}/vmlinux.o {name}/kmod/vmlinux.o\n"
                f"cd {kmod}; cp /k/scripts/livepatch/init.c .; cp vmlinux.o vmlinux.o_shipped\n"
                f"touch .vmlinux.o.cmd; make -s -C {self.headers} M={kmod}"
                f" KCFLAGS='{SECTIONS} -DKLP_NO_REPLACE' modules\n"
                f"objcopy -g -R .BTF {module}.ko; {tool} post-link {module}.ko",
                f"{name}-{self.release}")
        return where / f"kmod/{module}.ko"


def image(release: str) -> Path:
    """Debian's image with names and addresses of all symbols, which it has packed in itself."""
    def installed(part: Path) -> list[str]:
        with Step(f"live: installing vmlinux-to-elf {VMLINUX_TO_ELF}"):
            proc.capture([sys.executable, "-m", "venv", part])
            proc.capture([part / "bin/pip", "install", "--no-cache-dir",
                          f"vmlinux-to-elf=={VMLINUX_TO_ELF}"])
        return ["bin/vmlinux-to-elf"]

    def unpack(source: Path, part: Path) -> list[str]:
        with Step(f"live: symbols of {release}"):
            # The entry was made under another name, which is the first line of its programs.
            proc.capture([tool / "bin/python3", tool / "bin/vmlinux-to-elf", source,
                          part / "vmlinux"])
        return ["vmlinux"]

    tool = cache.get("vmlinux-to-elf", cache.key(VMLINUX_TO_ELF), installed)
    source = ROOT / f"usr/lib/modules/{release}/vmlinuz"
    return cache.get("debian-vmlinux", cache.key(VMLINUX_TO_ELF, cache.file_hash(source)),
                     partial(unpack, source)) / "vmlinux"


def make() -> None:
    """build/VERSION/live/modules/RELEASE: modules that have passed the checks, and the build id."""
    offer = base.choose().offer
    if not offer:
        raise Fail("live is for Debian's own source: not with KSRC=")
    if os.geteuid():
        raise Fail("live needs root: Debian 13's compiler runs in a directory of its own (chroot)")
    userland(offer)
    for flavour in FLAVOURS:
        release = f"{offer.release}+deb13-{flavour}"
        build = Build(release)
        build.originals()
        found = {name: build.part(name, part) for name, part in parts.PARTS.items()}
        stock = check.Kernel(image(release))
        say(f"live: {release}: {stock.same(build.path('plain/vmlinux.o'))}")
        for name, module in found.items():
            say(f"live: {release}: {name}: {stock.fits(module)}; {check.pointers(module)}")
        target = MODULES / release
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for module in found.values():
            shutil.copy(module, target)
        (target / "build-id").write_text(stock.build_id() + "\n")
    version = f"{offer.release}+x86dvfs{deb.series_version()}-1"
    package = deb.live(MODULES, version, OUT)
    say(f"live: {paths.shown(package)}, {package.stat().st_size >> 10} KiB")
