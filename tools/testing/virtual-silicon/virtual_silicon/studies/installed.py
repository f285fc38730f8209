# SPDX-License-Identifier: GPL-2.0
"""Kernel packages on a Debian 12 of its own: installed, booted, used, removed.

A disk image is made of Debian's packages (debootstrap), with Debian's kernel, GRUB,
initramfs-tools and systemd. It is booted three times: apt installs the packages; their
kernel runs the programs that people have; apt removes them, and the old kernel is back.
Needs root, for chroot and loop devices, and the network once.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from .. import cli, paths, progress
from ..errors import GuestError, MissingError, UsageError
from ..guest import boot, claim
from ..machine.machine import Machine, load

SYSTEM = ("systemd-sysv", "udev", "dbus", "initramfs-tools", "linux-base", "grub-pc", "zstd")
CLIENTS = ("linux-cpupower", "linux-perf", "stress-ng", "tuned", "irqbalance", "powertop",
           "linux-image-cloud-amd64", "python3-rich")
STAGES = ("install", "installed", "removed")
SIZE_MIB = 4096
CORE_RESIDENCIES = (0x3fc, 0x3fd, 0x3fe)	# C3, C6, C7
GUEST = paths.SILICON / "guest"

_SOURCES = """\
deb http://deb.debian.org/debian bookworm main
deb http://deb.debian.org/debian bookworm-updates main
deb http://deb.debian.org/debian-security bookworm-security main
"""
_UNIT = """\
[Unit]
Description=What the virtual machine is to do
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/usr/lib/vs/installed.sh
[Install]
WantedBy=default.target
"""

#: On a busy host tuned takes longer to start than systemd's 90 s.
_WORDS = ("console=ttyS0 panic=-1 msr.allow_writes=on tsc=reliable"
          " systemd.default_timeout_start_sec=900")
_GRUB = f"""\
GRUB_DEFAULT=0
GRUB_TIMEOUT=0
GRUB_DISABLE_OS_PROBER=true
GRUB_TERMINAL=console
GRUB_CMDLINE_LINUX="{_WORDS}"
"""

#: In a chroot with what programs expect; the mounts end with their namespace.
_CHROOT = """\
for kind in proc sys dev; do mount --bind "/$kind" "$0/$kind" || exit; done
exec chroot "$0" "$@"
"""


def _run(*words: str | Path, log: Path, within: Path | None = None) -> None:
    """@within a system's directory, or outside."""
    before: list[str | Path] = []
    if within:
        before = ["unshare", "--mount", "sh", "-c", _CHROOT, within]
    with log.open("a") as out:
        out.write(f"+ {' '.join(map(str, words))}\n")
        out.flush()
        done = subprocess.run([str(word) for word in (*before, *words)], stdout=out, stderr=out,
                              stdin=subprocess.DEVNULL, check=False,
                              env={**os.environ, "DEBIAN_FRONTEND": "noninteractive",
                                   "LC_ALL": "C.UTF-8"})
    if done.returncode:
        raise GuestError(f"{words[0]} {words[1]} failed (exit {done.returncode}); see {log}")


def system(root: Path, log: Path) -> None:
    """A Debian 12 in a directory; made once for the packages that it has."""
    made, wanted = root / "made", "\n".join((*SYSTEM, *CLIENTS))
    if made.exists() and made.read_text() == wanted:
        return
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    _run("debootstrap", "--variant=minbase", f"--include={','.join(SYSTEM)}", "bookworm", root,
         "http://deb.debian.org/debian", log=log)
    (root / "etc/apt/sources.list").write_text(_SOURCES)
    (root / "etc/hostname").write_text("virtual-silicon\n")
    (root / "etc/fstab").write_text("LABEL=root / ext4 defaults 0 1\n")
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    _run("apt-get", "update", log=log, within=root)
    _run("apt-get", "install", "--yes", "--no-install-recommends", *CLIENTS, log=log, within=root)
    _run("apt-get", "clean", log=log, within=root)
    _run("systemctl", "disable", "tuned", "irqbalance", log=log, within=root)
    made.write_text(wanted)


def image(root: Path, packages: list[Path], target: Path, log: Path) -> None:
    """A disk with the system, the packages to install, and GRUB."""
    for path in (GUEST / "guest.sh", GUEST / "installed.sh"):
        (root / "usr/lib/vs").mkdir(exist_ok=True)
        shutil.copy(path, root / "usr/lib/vs" / path.name)
        (root / "usr/lib/vs" / path.name).chmod(0o755)
    (root / "etc/systemd/system/vs.service").write_text(_UNIT)
    (root / "etc/default/grub").write_text(_GRUB)
    # Modules of this machine only: all of them take several minutes in emulation.
    (root / "etc/initramfs-tools/conf.d/vs").write_text("MODULES=dep\n")
    (root / "root/stage").write_text(STAGES[0])
    shutil.rmtree(root / "root/packages", ignore_errors=True)
    (root / "root/packages").mkdir()
    for package in packages:
        shutil.copy(package, root / "root/packages")
    target.unlink(missing_ok=True)
    with target.open("wb") as file:
        file.truncate(SIZE_MIB << 20)
    mount = target.parent / "mount"
    mount.mkdir(exist_ok=True)
    _run("mkfs.ext4", "-q", "-L", "root", "-d", root, target, log=log)
    device = subprocess.run(["losetup", "--find", "--show", str(target)], text=True,
                            stdout=subprocess.PIPE, check=True).stdout.strip()
    try:
        _run("mount", device, mount, log=log)
        try:
            _run("systemctl", "enable", "vs.service", log=log, within=mount)
            # The disk has no partitions: --force lets GRUB use a list of blocks.
            _run("grub-install", "--target=i386-pc", "--force", device, log=log, within=mount)
            _first_menu(mount)
        finally:
            _run("umount", mount, log=log)
    finally:
        _run("losetup", "--detach", device, log=log)


def _first_menu(root: Path) -> None:
    """For the first boot: update-grub, which runs when a kernel is installed, does not
    understand loop devices."""
    release = next(path.name.removeprefix("vmlinuz-") for path in root.glob("boot/vmlinuz-*"))
    (root / "boot/grub/grub.cfg").write_text(
        f"search --set=root --label root\nlinux /boot/vmlinuz-{release} root=LABEL=root {_WORDS}\n"
        f"initrd /boot/initrd.img-{release}\nboot\n")


def check(packages: list[Path]) -> None:
    if os.geteuid() != 0:
        raise UsageError("this needs root, for chroot and loop devices")
    for package in packages:
        if not package.is_file():
            raise UsageError(f"{package}: not there (make deb builds the packages)")
    for program, package_ in (("debootstrap", "debootstrap"), ("mkfs.ext4", "e2fsprogs")):
        if not shutil.which(program):
            raise MissingError(f"{program} is not installed (package {package_})")


def _for_powertop(m: Machine) -> Machine:
    """powertop ends where a core lacks a register that it reads of all models; that these
    are there and stand still is assumed."""
    have = {state.residency_msr for state in m.idle} | set(m.features.zero_msrs)
    zeros = (*m.features.zero_msrs, *(msr for msr in CORE_RESIDENCIES if msr not in have))
    return replace(m, features=replace(m.features, zero_msrs=zeros))


def boots(m: Machine, qemu: Path, disk: Path, out: Path) -> Iterator[tuple[str, boot.Result]]:
    """Each stage and what its boot answered."""
    for stage in STAGES:
        c = boot.Config(machine=_for_powertop(m), cpus=4, kernel=disk, qemu=qemu, initramfs=disk,
                        out=out / stage, disk=disk, trace=False,
                        limits=boot.Limits(boot=600, silence=900, overall=2400))
        yield stage, boot.run(c)


def problems(stage: str, result: boot.Result, old: str) -> list[str]:
    """What is not as it should be after a boot; @old is Debian's kernel."""
    release = result.text("kernel")
    ours = "x86dvfs" in release
    found = [f"step {name} failed: {' '.join(section.lines[-1:])}"
             for name, section in result.answer.sections.items() if section.status]
    if units := result.text("failed-units"):
        found.append(f"units failed: {units}")
    if ours != (stage == "installed"):
        found.append(f"runs {release}")
    if stage == "removed" and release != old:
        found.append(f"runs {release} instead of {old}")
    if stage == "installed":
        if result.text("governor") != "schedutil":
            found.append(f"the governor is {result.text('governor')}")
        if result.text("invariance") != "1":
            found.append("frequency invariance is off")
        if result.text("idle-governor") != "teo":
            found.append(f"the idle governor is {result.text('idle-governor')}")
        if int(result.text("polled-us")) > 1_000_000:
            found.append(f"with tuned's latency profile CPU 0 polled for {result.text('polled-us')}"
                         " us of 5 s")
        if not re.search(r"\bC1\+", result.text("turbostat-x86dvfs")):
            found.append("turbostat-x86dvfs has no columns for idle states that were too deep or"
                         " too shallow")
    return found


def add(sub: cli.Commands) -> None:
    one = sub.add_parser("installed", help="kernel packages on a Debian 12: installed, "
                         "booted, used, removed")
    one.add_argument("packages", nargs="+", metavar="DEB")
    one.add_argument("--machine", default=cli.DEFAULT_MACHINE)
    one.add_argument("--qemu", help="emulator (default: the built one)")
    one.add_argument("--out", default=str(paths.BUILD / "installed"), help="directory for output")
    one.set_defaults(run=command)


def command(args: argparse.Namespace) -> int:
    """1 if a boot is not as it should be."""
    packages, out = [Path(name).resolve() for name in args.packages], Path(args.out).resolve()
    check(packages)
    claim.claim(out)
    m, log, say = load(args.machine), out / "log", progress.stopwatch()
    system(out / "root", log)
    say("a Debian 12")
    image(out / "root", packages, out / "disk.img", log)
    say("a disk with it")
    wrong, old = False, ""
    for stage, result in boots(m, paths.qemu(args.qemu), out / "disk.img", out):
        old = old or result.text("kernel")
        found = problems(stage, result, old)
        say(f"{stage}: {result.text('kernel')}: " + ("; ".join(found) or "as it should be"))
        wrong |= bool(found)
    return int(wrong)
