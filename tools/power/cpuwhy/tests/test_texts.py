# SPDX-License-Identifier: GPL-2.0
"""What people attach, read: the dialects, how it was copied, and what holds it."""
from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from cpuwhy import texts
from cpuwhy.topology import Topology, state_name, topology

STATE = "devices/system/cpu/cpu0/cpuidle/state1"
GOVERNOR = "devices/system/cpu/cpu{}/cpufreq/scaling_governor"


def read(text: str) -> texts.Material:
    return texts.read_text(text, "text")


def values(m: texts.Material) -> dict[int, list[tuple[int | None, int]]]:
    return {address: [(one.cpu, one.value) for one in found]
            for address, found in m.registers.items()}


REGISTERS = {
    "cpu6: MSR_PLATFORM_INFO: 0x4043df1011400\n": {0xCE: [(6, 0x4043DF1011400)]},
    "cpu0: MSR_NHM_PLATFORM_INFO: 0xc0000011401\n": {0xCE: [(0, 0xC0000011401)]},
    "cpu0: MSR_CORE_PERF_LIMIT_REASONS, 0x00020000 (Active: ) (Logged: PkgPwrL1, )\n":
        {0x690: [(0, 0x20000)]},
    "cpu2: ENERGY_PERF_BIAS: 0x00000006 (balanced)\n": {0x1B0: [(2, 6)]},
    "cpu0: MSR_RAPL_PWR_UNIT: 0x000a1003 (0.125000 Watts)\n": {0xC0010299: [(0, 0xA1003)]},
    "0x1ad 0x25262727\n0x1ae: 0x0\n": {0x1AD: [(None, 0x25262727)], 0x1AE: [(None, 0)]},
    "1ad:0|2b2b 1|2b2b\n": {0x1AD: [(0, 0x2B2B), (1, 0x2B2B)]},
    "user@host:~$ sudo rdmsr -a 0x199\n2000\n2100\nuser@host:~$ ls\n":
        {0x199: [(0, 0x2000), (1, 0x2100)]},
    "# rdmsr -p 3 -0 0x64f\n0000000000000002\n# rdmsr 429\n25262727\n":
        {0x64F: [(3, 2)], 0x1AD: [(0, 0x25262727)]},
    "$ rdmsr -f 15:8 0xce\n18\n$ rdmsr -o 0xce\n14000\n": {},
    "$ rdmsr -a -d 0x1fc\n2883676\n2883676\n": {0x1FC: [(0, 0x2C005C), (1, 0x2C005C)]},
    "# rdmsr 0x19C -f 63:0\n88410800\n": {0x19C: [(0, 0x88410800)]},
    "rdmsr 0x771: 10d1f2c\n": {0x771: [(None, 0x10D1F2C)]},
    "$ rdmsr -a 0xc00102b1 | uniq --count\n 384 1\n": {},
    " MSR 0x000000CE = 0x00080838:0xF1011300 (MSR_PLATFORM_INFO)\n": {0xCE: [(0, 0x80838F1011300)]},
    "====== UNIQUE MSRs  (core 1) ======\n MSR 0x0000019C = 0x00000000:0x88430000 (X)\n":
        {0x19C: [(1, 0x88430000)]},
    "MSR_PLATFORM_INFO......(0xCE)  : 0x80838F1012200\n": {0xCE: [(None, 0x80838F1012200)]},
    "------[ MSR Registers / Logical CPU #2 ]------\nMSR 000001AD: 0000-0000-2526-2727 [S200]\n":
        {0x1AD: [(2, 0x25262727)]},
}


@pytest.mark.parametrize("text", REGISTERS)
def test_registers(text: str) -> None:
    m = read(text)
    assert values(m) == REGISTERS[text] and not m.cut


@pytest.mark.parametrize("text", [
    "cpu0: MSR_TURBO_RATIO_LIMIT1: 0x302e2c", "cpu0: MSR_TURBO_RATIO_LIMIT1: 0x302e2c\n",
    "cpu0: MSR_TURBO_RATIO_LIMIT1: 0x302e2c2a2622", "cpu0: MSR_TURBO_RATIO_LIMIT: 0x\n",
    "0x1ad 0x2526", " MSR 0x000000CE = 0x00080838:0xF101\n", "1ad:0|2b2b 1|2b",
    "$ rdmsr 0x1ad\n2526", "MSR 000001AD: 0000-0000-25\n", "cpu0: MSR_PLATFORM_INFO: 0x4043d...\n"])
def test_a_register_that_is_cut_is_none(text: str) -> None:
    m = read(text)
    assert len(m.cut) == 1 and not [one for one in values(m).values() if one != [(0, 0x2B2B)]]


LSCPU = {
    "German": "Anbieterkennung: GenuineIntel\nModellname: Intel(R) X\nProzessorfamilie: 6\n"
              "Modell: 142\nThread(s) pro Kern: 2\nKern(e) pro Socket: 4\nSockel: 1\n"
              "Stepping: 11\n",
    "Spanish": "ID de fabricante: GenuineIntel\nNombre del modelo: X\nFamilia de CPU: 6\n"
               "Modelo: 142\nHilo(s) de procesamiento por núcleo: 2\nNúcleo(s) por «socket»: 4\n"
               "«Socket(s)»                         1\nRevisión: 11\n",
    "French": "Thread(s) par cœur : 2\nCœur(s) par socket : 4\nSocket(s) : 1\n"
              "Identifiant constructeur : GenuineIntel\nFamille de processeur : 6\nModèle : 142\n"
              "Nom de modèle : X\nRévision : 11\n",
    "Russian": "ID прроизводителя: GenuineIntel\nСемейство ЦПУ: 6\nМодель: 142\n"
               "Потоков на ядро: 2\nЯдер на сокет: 4\nСокетов: 1\nСтеппинг: 11\n",
    "Polish": "Wątków na rdzeń: 2\nRdzeni na gniazdo: 4\nGniazd: 1\nID producenta: GenuineIntel\n"
              "Rodzina CPU: 6\nModel: 142\nNazwa modelu: X\nWersja: 11\n",
    "Chinese": "厂商 ID： GenuineIntel\nCPU 系列： 6\n型号： 142\n每个核的线程数： 2\n"
               "每个座的核数： 4\n座： 1\n步进： 11\n",
    "Japanese": "コアあたりのスレッド数:2\nソケットあたりのコア数:4\nSocket(s): 1\n"
                "ベンダーID: GenuineIntel\nCPUファミリー: 6\nモデル: 142\nステッピング: 11\n",
    "unknown, since 2.37": "A: x86_64\nB: 8\nC: 0-7\nD: GenuineIntel\nE: Intel(R) X\nF: 6\nG: 142\n"
                           "H: 2\nI: 4\nJ: 1\nK: 11\n",
    "unknown, before": "A: x86_64\nB: 8\nC: 0-7\nD: 2\nE: 4\nF: 1\nG: GenuineIntel\nH: 6\nI: 142\n"
                       "J: Intel(R) X\nK: 11\n",
    "JSON": '{"lscpu": [\n{"field": "Vendor ID:", "data": "GenuineIntel",\n "children": [\n'
            '{"field": "CPU family:", "data": "6"},\n{"field": "Model:", "data": "142"},\n'
            '{\n"field": "Thread(s) per core:",\n"data": "2"\n},{\n'
            '"field": "Core(s) per socket:",\n"data": "4"},\n'
            '{"field": "Socket(s):", "data": "1"},\n{"field": "Stepping:", '
            '"data": "11"}\n',
}


@pytest.mark.parametrize("language", LSCPU)
def test_lscpu_in_any_language(language: str) -> None:
    m = read(LSCPU[language])
    assert [m.known(name) for name in ("vendor", "family", "model", "stepping", "threads",
                                       "cores", "sockets")] == ["GenuineIntel", 6, 142, 11, 2, 4, 1]
    assert [part.kind for part in m.recognised] == ["lscpu"] and not m.unknown


def test_such_words_elsewhere_are_not_lscpus() -> None:
    m = read("Model: 3\nStepping: 1\nSocket: 9\n")
    assert not m.cpu and m.unknown
    m = read("Model: 3\n" + "x\n" * 30 + LSCPU["German"])
    assert m.known("model") == 142 and not m.conflicts


def test_extended_lscpu() -> None:
    head = "CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE    MAXMHZ   MINMHZ\n"
    rows = "".join(f"  {cpu}    0      0    {cpu // 2} 0:0:0:0  yes {top} 400.0000\n"
                   for cpu, top in enumerate(("4700.0000", "4700.0000", "3500.0000")))
    m = read(head + rows)
    assert [place.core for place in m.logical.values()] == [0, 0, 1]
    assert m.file("devices/system/cpu/cpu2/cpufreq/cpuinfo_max_freq") == "3500000"
    m = read("# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\n0,0,0,0,,0,0,0,0\n1,1,0,0,,1,1,1,0\n")
    assert topology(m) == Topology(1, 2, 0, 1, "the places of all CPUs")


FILES = {
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor:powersave\n": "powersave",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor: powersave\n": "powersave",
    "cpu0/cpufreq/scaling_governor:powersave\n": "powersave",
    "scaling_governor:powersave\n": "powersave",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor = powersave\n": "powersave",
    "==> /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor <==\npowersave\n\n": "powersave",
    "$ cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor\npowersave\n$ ls\nx\n":
        "powersave",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor\npowersave\n": "powersave",
    "$ grep . /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor\npowersave\n# ls\n":
        "powersave",
    "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor:powersave\n": "powersave",
    "rw|/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor|powersave\n": "powersave",
}


@pytest.mark.parametrize("text", FILES)
def test_copies_of_sysfs(text: str) -> None:
    m = read(text)
    assert m.file(GOVERNOR.format(0)) == FILES[text]
    assert m.sysfs[GOVERNOR.format(0)].where.text.endswith("powersave")


def test_a_pattern_in_the_order_of_the_shell() -> None:
    lines = "".join(f"{cpu}\n" for cpu in (0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9))
    m = read("# cat /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor\n" + lines)
    assert [m.file(GOVERNOR.format(cpu)) for cpu in range(12)] == [str(n) for n in range(12)]


def test_rows_of_tables_as_people_paste_them() -> None:
    m = read("Core CPU CPUGFX%Pkg%pc2 Bzy_MHz GFXWattRAMWatt\n")
    assert m.tables[0].columns == ["Core", "CPU", "CPUGFX%", "Pkg%pc2", "Bzy_MHz", "GFXWatt",
                                   "RAMWatt"]
    m = read("Core    CPU     Busy%   GFXAMHzPkg%pc2 PkgWatt\n"
             "-       -       100.00  150   0.00     6.22\n"
             "0       0       99.00   150   0.10     6.22    <<< one busy\n"
             "^C0       2       98.00\n")
    assert m.tables[0].columns == ["Core", "CPU", "Busy%", "GFXAMHz", "Pkg%pc2", "PkgWatt"]
    assert [row.get("PkgWatt") for row, _ in m.tables[0].rows] == ["6.22", "6.22", None]
    assert {cpu: place.core for cpu, place in m.logical.items()} == {0: 0, 2: 0}


def test_signatures_of_turbostat() -> None:
    """Wrapped by a mail; and of AMD, whose family versions before 2018 print as 15."""
    m = read("CPUID(0): GenuineIntel 0x1b CPUID levels; 0x80000008 xlevels;\n"
             "family:model:stepping 0x6:7e:5 (6:126:5)\n")
    assert [m.known(name) for name in ("family", "model", "stepping")] == [6, 126, 5]
    m = read("CPUID(0): AuthenticAMD 13 CPUID levels; family:model:stepping 0xf:1:1 (15:1:1)\n"
             "cpu family\t: 23\nmodel\t\t: 1\n")
    assert (m.known("family"), m.known("model"), m.conflicts) == (23, 1, [])


def test_sysctl() -> None:
    m = read("kernel.sched_util_clamp_max = 512\nkernel.hostname = secret\n")
    assert m.file("proc/sys/kernel/sched_util_clamp_max") == "512"
    assert "secret" not in repr(m)


LINE = "cpu0: MSR_PLATFORM_INFO: 0x4043df1011400"


@pytest.mark.parametrize("text", [
    f"> {LINE}\n", f">> > {LINE}\n", f"\t  {LINE}\n", f"&gt; {LINE}\n", f"\x1b[32m{LINE}\x1b[0m\n",
    f"[COLOR=#FF0000]{LINE}[/COLOR]\n", f"a\rb\r{LINE}\n", f"{LINE}\r\n",
    "=C2=A0 a=3D3\n=C2=A0 x\nb =3D 1\ncpu0: MSR_PLATFORM_INFO: 0x4043df=\n1011400\n",
    f"  1  a\n  2  b\n  3  {LINE}\n  4  c\n", f"7: a\n8: {LINE}\n9: c\n"])
def test_how_it_was_copied(text: str) -> None:
    assert values(read(text)) == {0xCE: [(0, 0x4043DF1011400)]}


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_encodings(coding: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(f"{LINE}\n".encode(coding))
    assert values(texts.read([str(path)])) == {0xCE: [(0, 0x4043DF1011400)]}


def test_a_table_is_not_taken_for_numbered_lines() -> None:
    rows = "".join(f"{cpu}\t{cpu}\t{cpu}.50\t1000\n" for cpu in range(1, 65))
    m = read("Core\tCPU\tBusy%\tBzy_MHz\n" + rows)
    assert len(m.tables[0].rows) == 64 and len(m.logical) == 64


def tar(members: dict[str, str], mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


TREE = {
    "sosreport-secret-2024/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
    "sosreport-secret-2024/proc/cmdline": "quiet\n",
    "sosreport-secret-2024/sos_commands/processor/lscpu": LSCPU["German"],
    "sosreport-secret-2024/sos_commands/kernel/dmesg":
        "[    0.100000] smpboot: CPU0: Intel(R) X (family: 0x6, model: 0x8e, stepping: 0xb)\n",
    "sosreport-secret-2024/sos_commands/networking/ip_addr": LINE + "\n",
}


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, bz2.compress])
def test_an_sosreport(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """Only what is of interest, and not its host's name."""
    path = tmp_path / "report"
    path.write_bytes(pack(tar(TREE)))
    m = texts.read([str(path)])
    assert m.file(GOVERNOR.format(0)) == "powersave" and m.file("proc/cmdline") == "quiet"
    assert m.known("cores") == 4 and len(m.log) == 1 and not m.registers and not m.conflicts
    assert "secret" not in repr(m)


def test_folders_and_other_archives(tmp_path: Path) -> None:
    top = tmp_path / "copy"
    for name, text in TREE.items():
        path = top / name.partition("/")[2]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name, text in TREE.items():
            archive.writestr(name, text)
    for source in ("copy", "x.zip"):
        m = texts.read([str(tmp_path / source)])
        assert m.file(GOVERNOR.format(0)) == "powersave" and m.known("model") == 142


NOT_READ = {
    "nothing": (b"", "is empty"), "prose": (b"It was dark.\n", "no line of a kind"),
    "ELF": (b"\x7fELF" + bytes(99), "a program"), "binary": (bytes(range(256)) * 9, "no line"),
    "picture": (b"\x89PNG\r\n\x1a\n", "give the text"), "trace": (b"PERFILE2", "cpuwhy idle"),
    "cut": (gzip.compress(b"x" * 9999)[:-12], "damaged or cut off"),
    "zstd": (b"\x28\xb5\x2f\xfd" + bytes(9), "zstd"),
    "half a tar": (tar(TREE)[:700], "damaged or cut off"),
}


@pytest.mark.parametrize("kind", NOT_READ)
def test_what_is_not_read_is_named(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(NOT_READ[kind][0])
    m = texts.read([str(path)])
    assert len(m.unknown) == 1 and NOT_READ[kind][1] in m.unknown[0][1]


@pytest.mark.parametrize("name, desc, want", [
    ("C1_ACPI", "ACPI FFH MWAIT 0x0", "C1"), ("C2_ACPI", "ACPI FFH MWAIT 0x21", "C6"),
    ("C3_ACPI", "ACPI FFH MWAIT 0x60", "C10"), ("C2", "ACPI FFH INTEL MWAIT 0x10", "C3"),
    ("C3", "ACPI FFH MWAIT 0x31", "C7"), ("C2_ACPI", "ACPI IOPORT 0x414", "C2"),
    ("C6", "MWAIT 0x20", "C6"), ("C1E", "MWAIT 0x01", "C1E"), ("POLL", "CPUIDLE CORE POLL IDLE",
                                                               "POLL")])
def test_states_that_firmware_numbers(name: str, desc: str, want: str) -> None:
    assert state_name(name, desc) == want


def test_the_log_is_kept_without_names() -> None:
    m = read("Nov 28 12:00:00 secret kernel: [    1.500000] CPU3: Core temperature above threshold,"
             " cpu clock throttled (total events = 156)\n"
             "Nov 28 12:00:01 secret kernel: [    1.600000] acpi device 00:11:22:33:44:55 clock\n")
    assert [line.text for line in m.log] == [
        "[    1.500000] CPU3: Core temperature above threshold, cpu clock throttled"
        " (total events = 156)"]
    assert "secret" not in repr(m) and "00:11" not in repr(m)


@pytest.mark.parametrize("cpus", [512, 700])
def test_a_register_of_many_cpus(cpus: int) -> None:
    """What does not fit into a line that is read is left out, not half read."""
    line = "774:" + " ".join(f"{cpu}|20002708" for cpu in range(cpus)) + "\n"
    material = texts.read_text(line)
    found = material.registers.get(0x774, [])
    assert {read.value for read in found} <= {0x20002708}
    assert len(found) == (512 if cpus == 512 else 0) and bool(material.cut) == (cpus == 700)
