# SPDX-License-Identifier: GPL-2.0
"""The stick: one image for UEFI and BIOS, for a USB stick or a server's virtual media."""
from __future__ import annotations

import os
import shutil
from pathlib import Path

from virtual_silicon.errors import Fail
from virtual_silicon.guest import distribution, initramfs
from virtual_silicon.progress import Step, say

from .. import paths, proc
from ..fetch import base, cache
from ..patchqueue import tree as trees
from . import deb

SOURCE = paths.POWER / "stick"
OUT = paths.BUILD / "stick"
IMAGE = OUT / "x86-dvfs-stick.img"
LABEL = "X86DVFS"
#: Of the userland, beside the loads. PostgreSQL would be a third of the image.
USERLAND = ("base-files", "base-passwd", "bash", "binutils", "busybox-static", "coreutils",
            "cpp-12", "dash", "dbench", "dosfstools", "gcc-12", "git", "grep", "iperf3",
            "kexec-tools", "libc-bin", "linux-cpupower", "linux-perf", "make", "python3",
            "qrencode", "rt-tests", "sed")
#: What nobody reads or runs there.
UNWANTED = ("usr/lib/gcc/x86_64-linux-gnu/12/lto1", "usr/share/doc", "usr/share/man",
            "usr/share/locale", "usr/share/info", "var/cache", "var/lib/apt", "var/lib/dpkg")
#: What Debian has as modules: screen and disks of the machine are left alone.
DRIVERS = ("msr", "cpuid", "intel_rapl_common", "intel_rapl_msr", "acpi-cpufreq", "coretemp",
           "k10temp", "ac", "xhci-pci", "ehci-pci", "uhci-hcd", "ohci-pci", "usbhid",
           "hid-generic", "sd_mod", "usb-storage", "uas", "vfat", "nls_cp437", "nls_ascii")
MODULES = ("normal", "linux", "search", "search_label", "search_fs_file", "configfile", "iso9660",
           "fat", "part_msdos", "part_gpt", "test", "echo", "reboot", "halt", "all_video")
DATA_MIB, MOST_MIB = 32, 250


def given() -> Path | None:
    """The patched kernel's package."""
    name = os.environ.get("KERNEL")
    if name and not (name.endswith(".deb") and Path(name).is_file()):
        raise Fail(f"KERNEL={name}: the stick takes the file of a Debian package, *.deb", code=2)
    return Path(name).resolve() if name else None


def kernels() -> dict[str, distribution.Kernel]:
    """Debian's own package of the base. The patched kernel is the one that is given, or is
    compiled in the same configuration."""
    name = f"linux-image-{base.release(base.choose().repo())}+deb12-amd64"
    debian = distribution.unpack(distribution.fetch(name, OUT / "deb"), OUT / "deb")
    if package := given():
        shutil.rmtree(OUT / "given", ignore_errors=True)
        return {"base": debian, "patched": distribution.unpack(package, OUT / "given")}
    return {"base": debian, "patched": deb.unpacked(trees.LINUX, paths_of(debian), OUT)}


def paths_of(kernel: distribution.Kernel) -> list[str]:
    """Where the source has the modules that the stick takes."""
    files = [file.relative_to(kernel.root) for file in kernel.modules(DRIVERS)]
    return [str(file).removesuffix(".xz").partition("/kernel/")[2] for file in files]


def sources() -> str:
    """Where this machine has Debian 12 from."""
    said = proc.text(["apt-get", "indextargets", "--format",
                      "$(ORIGIN) $(CODENAME) deb $(REPO_URI) $(RELEASE) $(COMPONENT)",
                      "Created-By: Packages"])
    found = [words[2] for line in said.splitlines() if (words := line.split(" ", 2))[0] == "Debian"
             and words[1].startswith("bookworm") and "backports" not in words[1]]
    if not found:
        raise Fail("apt has no sources of Debian 12 (bookworm)")
    return "".join(f"{line}\n" for line in dict.fromkeys(found))


def userland() -> Path:
    """A directory of Debian's packages, unpacked and not configured: it needs no root, and
    nothing there wants to be set up. Made again when the list changes."""
    root, mark = OUT / "root", OUT / "root.made-from"
    key = cache.key(*USERLAND, *UNWANTED)
    if mark.exists() and mark.read_text() == key:
        return root
    mark.unlink(missing_ok=True)
    shutil.rmtree(root, ignore_errors=True)
    (OUT / "sources.list").write_text(sources())
    with Step("stick: userland from Debian's packages"):
        proc.logged(["mmdebstrap", "--variant=extract", f"--include={','.join(USERLAND)}",
                     "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
                     '--aptopt=APT::Install-Recommends "false"', "bookworm", root,
                     OUT / "sources.list"], paths.LOG / "stick-userland.log",
                    what="stick: userland")
    for name in UNWANTED:
        path = root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    mark.write_text(key)
    return root


def programs(root: Path, found: dict[str, distribution.Kernel]) -> None:
    """Ours, and the kernels, into the userland."""
    own, boot = root / "opt/x86-dvfs", root / "boot"
    for old in (own, boot):
        shutil.rmtree(old, ignore_errors=True)
    (own / "bin").mkdir(parents=True)
    boot.mkdir()
    ignore = shutil.ignore_patterns("__pycache__", "tests", "*.png", "*.csv")
    for source in (paths.CPUWHY, SOURCE, paths.SILICON / "virtual_silicon"):
        shutil.copytree(source, own / "lib" / source.name, ignore=ignore)
    loads = paths.SILICON / "virtual_silicon/loads"
    shutil.copy(initramfs.compiled(loads / "stopwatch.c", OUT), own / "bin")
    shutil.copy(initramfs.compiled(loads / "disk.c", OUT, shared=True), own / "bin")
    shutil.copy(SOURCE / "init", root / "init")
    for name, kernel in found.items():
        shutil.copy(kernel.image, boot / name)
        for file, data in kernel.files(DRIVERS).items():
            target = own / "modules" / kernel.release / Path(file).name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)


def archive(root: Path, target: Path) -> None:
    """The initramfs."""
    with Step("stick: packing the userland"):
        proc.logged(["sh", "-c", "cd \"$1\" && find . -print0 | LC_ALL=C sort -z | cpio --null"
                     " --quiet --reproducible -R 0:0 -o -H newc | zstd -q -12 -T0 -f -o \"$2\"",
                     "sh", root, target], paths.LOG / "stick-archive.log", what="stick: archive")


def image(files: Path, target: Path) -> None:
    """An ISO that is a disk, too: the partitions are the files, the EFI program, and the
    stick's own, which alone is ever written."""
    work = OUT / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    log = paths.LOG / "stick-image.log"
    (work / "early.cfg").write_text("search --file --set=root /boot/x86-dvfs.id\n"
                                    "set prefix=($root)/boot/grub\nconfigfile $prefix/grub.cfg\n")
    (files / "boot/x86-dvfs.id").write_text("x86-dvfs\n")
    for form, name, more in (("i386-pc-eltorito", files / "boot/grub/bios.img", ["biosdisk"]),
                             ("x86_64-efi", work / "bootx64.efi", ["efi_gop"])):
        proc.logged(["grub-mkimage", "-O", form, "-o", name, "-p", "/boot/grub", "-c",
                     work / "early.cfg", *MODULES, *more], log, what="stick: GRUB")
    efi, data = work / "efi.img", work / "data.img"
    for path, mib, label in ((efi, 4, "EFI"), (data, DATA_MIB, LABEL)):
        with open(path, "wb") as file:
            file.truncate(mib << 20)
        fat = ["-F", "16"] if path == data else []
        proc.logged(["mkfs.fat", *fat, "-n", label, path], log, what="stick: file systems")
    proc.logged(["sh", "-c", 'mmd -i "$1" ::EFI ::EFI/BOOT && mcopy -i "$1" "$2"'
                 ' ::EFI/BOOT/BOOTX64.EFI', "sh", efi, work / "bootx64.efi"], log,
                what="stick: EFI partition")
    proc.logged(["mcopy", "-i", data, SOURCE / "README.txt", "::README.TXT"], log,
                what="stick: its partition")
    proc.logged(["xorriso", "-as", "mkisofs", "-quiet", "-R", "-V", "X86DVFS_BOOT",
                 "--grub2-mbr", "/usr/lib/grub/i386-pc/boot_hybrid.img",
                 "-b", "boot/grub/bios.img", "-no-emul-boot", "-boot-load-size", "4",
                 "-boot-info-table", "--grub2-boot-info", "--mbr-force-bootable",
                 "-append_partition", "2", "0xef", efi, "-append_partition", "3", "0x0e", data,
                 "-eltorito-alt-boot", "-e", "--interval:appended_partition_2:all::",
                 "-no-emul-boot", "-o", target, files], log, what="stick: image")


def make() -> int:
    OUT.mkdir(parents=True, exist_ok=True)
    found = kernels()
    root = userland()
    programs(root, found)
    files = OUT / "files"
    shutil.rmtree(files, ignore_errors=True)
    (files / "boot/grub").mkdir(parents=True)
    archive(root, files / "boot/initrd")
    shutil.copy(found["base"].image, files / "boot/base")
    shutil.copy(SOURCE / "grub.cfg", files / "boot/grub/grub.cfg")
    image(files, IMAGE)
    mib = IMAGE.stat().st_size / (1 << 20)
    if mib > MOST_MIB:
        raise Fail(f"{paths.shown(IMAGE)} has {mib:.0f} MiB, allowed are {MOST_MIB}")
    say(f"{paths.shown(IMAGE)}, {mib:.0f} MiB, sha256 {cache.file_hash(IMAGE)}")
    return 0
