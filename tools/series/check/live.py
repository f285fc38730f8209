# SPDX-License-Identifier: GPL-2.0
"""Refusals before a livepatch is offered: what it leaves alone has to be what the stock kernel has,
and nothing of the kernel may keep a pointer into a module that goes."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection
from virtual_silicon.errors import Fail

#: Weak ones that x86 overrides: another object's are in the kernel.
OVERRIDDEN = frozenset((
    "arch_asym_cpu_priority", "arch_cpu_idle", "arch_cpu_idle_dead", "arch_cpu_idle_enter",
    "arch_sched_node_distance", "arch_update_cpu_topology", "sched_clock"))
#: Who stores the address of a function of the module, and who takes it back.
TAKEN_BACK = {
    ("teo_governor", "teo_enable_device"): "post_unpatch takes the governor off the list",
    ("teo_governor", "teo_select"): "the same",
    ("teo_governor", "teo_reflect"): "the same",
}
_WIDE = (1, 24)                 # R_X86_64_64, R_X86_64_PC64
_CALLS = (2, 4)                 # R_X86_64_PC32, R_X86_64_PLT32


def _elf(file: Path) -> ELFFile:
    return ELFFile(file.open("rb"))


def _symbols(elf: ELFFile) -> SymbolTableSection:
    return elf.get_section_by_name(".symtab")


def _relocations(elf: ELFFile) -> Iterator[tuple[int, int, int, int]]:
    """Section, offset, type and symbol of each."""
    for section in elf.iter_sections():
        if isinstance(section, RelocationSection):
            for r in section.iter_relocations():
                yield section["sh_info"], r["r_offset"], r["r_info_type"], r["r_info_sym"]


class Kernel:
    """Debian's image."""

    def __init__(self, vmlinux: Path) -> None:
        self.elf = _elf(vmlinux)
        self.at: dict[str, list[int]] = defaultdict(list)
        for symbol in _symbols(self.elf).iter_symbols():
            self.at[symbol.name].append(symbol["st_value"])
        self.loads = [s for s in self.elf.iter_segments() if s["p_type"] == "PT_LOAD"]

    def read(self, address: int, size: int) -> bytes:
        for s in self.loads:
            if s["p_vaddr"] <= address < s["p_vaddr"] + s["p_filesz"]:
                self.elf.stream.seek(s["p_offset"] + address - s["p_vaddr"])
                return bytes(self.elf.stream.read(size))
        return b""

    def build_id(self) -> str:
        """Of the note that /sys/kernel/notes shows."""
        notes = self.elf.get_section_by_name(".notes").data()
        at = notes.find(b"\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0")
        if at < 0:
            raise Fail("live: the kernel has no build id")
        return notes[at + 16:at + 36].hex()

    def same(self, plain: Path) -> str:
        """Are the functions of our compile those of the image, byte for byte but for what is
        filled in when it is linked?"""
        elf = _elf(plain)
        holes: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for section, offset, kind, _ in _relocations(elf):
            holes[section].append((offset, 8 if kind in _WIDE else 4))
        count, differ = 0, []
        for symbol in _symbols(elf).iter_symbols():
            at, size, index = symbol["st_value"], symbol["st_size"], symbol["st_shndx"]
            if symbol["st_info"]["type"] != "STT_FUNC" or index == "SHN_UNDEF" or not size:
                continue
            within = elf.get_section(index)
            if within.name.startswith((".init", ".exit")) or symbol.name.startswith("__pfx_"):
                continue
            here = [(a - at, n) for a, n in holes[index] if at <= a < at + size]
            ours = _without(within.data()[at:at + size], here)
            if symbol.name in OVERRIDDEN:
                continue
            count += 1
            if not any(_without(self.read(a, size), here) == ours for a in self.at[symbol.name]):
                differ.append(symbol.name)
        if differ or not count:
            raise Fail(f"live: {len(differ)} of {count} functions are not what the kernel has: "
                       + " ".join(differ[:20]))
        return f"{count} functions are those of Debian's kernel"

    def fits(self, module: Path) -> str:
        """Is each symbol that the module looks up in the kernel there, once?"""
        names = [s.name.split(".", 4)[4].rpartition(",")[0]
                 for s in _symbols(_elf(module)).iter_symbols() if s.name.startswith(".klp.sym.")]
        if bad := [name for name in names if len(self.at[name]) != 1]:
            raise Fail(f"live: {module.name} looks up what is not in the kernel once: "
                       + " ".join(bad))
        return f"{len(names)} symbols, each there once"


def _without(code: bytes, holes: list[tuple[int, int]]) -> bytes:
    raw = bytearray(code)
    for at, size in holes:
        raw[at:at + size] = bytes(size)
    return bytes(raw)


def stored(module: Path) -> set[tuple[str, str]]:
    """(where, function): what takes the address of a function of the module. Not what the
    livepatch itself goes by, which the kernel forgets with it."""
    elf = _elf(module)
    symbols = list(_symbols(elf).iter_symbols())
    inside = [(s["st_shndx"], s["st_value"], max(s["st_size"], 1), s.name) for s in symbols
              if s["st_info"]["type"] in ("STT_FUNC", "STT_OBJECT")]
    found = set()
    for section, offset, kind, index in _relocations(elf):
        name, to = elf.get_section(section).name, symbols[index]
        code = elf.get_section(section).data()[max(offset - 2, 0):offset]
        called = kind in _CALLS and (code[1:] in (b"\xe8", b"\xe9") or code[:1] == b"\x0f")
        if (name.startswith((".text", ".data", ".rodata", ".bss")) and not called
                and to["st_info"]["type"] == "STT_FUNC" and to["st_shndx"] != "SHN_UNDEF"
                and not to.name.startswith(".klp.")):
            found.add((next((n for x, v, size, n in inside
                             if x == section and v <= offset < v + size), name), to.name))
    return found


def pointers(module: Path) -> str:
    """After rmmod the kernel would run what is there no more."""
    found = stored(module)
    if bad := sorted(found - TAKEN_BACK.keys()):
        raise Fail(f"live: {module.name}: a pointer may outlive the module: "
                   + ", ".join(f"{function}() in {where}" for where, function in bad))
    return f"{len(found)} pointers, all taken back"
