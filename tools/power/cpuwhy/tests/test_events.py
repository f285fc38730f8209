# SPDX-License-Identifier: GPL-2.0
"""Reading: the forms of the lines, what was lost, and what is no trace."""
from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cpuwhy.errors import Fail
from cpuwhy.events import Facts, Reader, Source, switch, task

Seen = list[tuple[int, int, str, int, str]]


def read(path: Path, *names: str) -> tuple[Facts, Seen]:
    seen: Seen = []

    def handler(now: int, cpu: int, head: str, text: str) -> None:
        seen.append((now, cpu, *task(head), text.strip()))
    return Reader(Source(path), dict.fromkeys(names, handler)).run(), seen


LINES = {
    "perf": "    my [0] a: b  1234 [003]  1273.322543200:   sched:sched_waking: comm=x pid=1",
    "trace-cmd": "cw:  my [0] a: b-1234  [003]  1273.322543200: sched_waking:   comm=x pid=1",
    "one buffer": "     my [0] a: b-1234  [003]  1273.322543200: sched_waking:  comm=x pid=1",
    "plain ns": "cw:  my [0] a: b-1234  [003]  1273322543200: sched_waking:   comm=x pid=1",
    "tracefs": "     my [0] a: b-1234  [003] d..2.  1273.322543: sched_waking: comm=x pid=1",
    "many CPUs": "     my [0] a: b 1234 [1003]  1273.322543200:  sched:sched_waking: comm=x pid=1",
}


@pytest.mark.parametrize("form", LINES)
def test_a_line_of_each_form(form: str, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text(LINES[form] + "\n")
    facts, seen = read(path, "sched_waking")
    ns = 1273322543000 if form == "tracefs" else 1273322543200
    assert seen == [(ns, 1003 if form == "many CPUs" else 3, "my [0] a: b", 1234, "comm=x pid=1")]
    assert (facts.events, facts.bad_lines, facts.seen) == (1, 0, {"sched_waking": 1})


@pytest.mark.parametrize("text, expected", [
    ("prev_comm=a b:1 prev_pid=7 prev_prio=120 prev_state=R+ ==> next_comm=x [1] next_pid=0"
     " next_prio=120", ("7", "x [1]", "0")),
    ("a b:1:7 [120] R+ ==> x [1]:0 [-1]", ("7", "x [1]", "0")),
    ("nonsense", None), ("a ==> b", None)])
def test_both_forms_of_a_switch(text: str, expected: tuple[str, str, str] | None) -> None:
    assert switch(text) == expected


@pytest.mark.parametrize("line, lost", [
    ("            perf 11088 [001]  1464.256183589: PERF_RECORD_LOST lost 45", {1: 45}),
    ("CPU:2 [7 EVENTS DROPPED]", {2: 7}),
    ("CPU:2 [EVENTS DROPPED]", {2: 1}),
    ("CPU:3 [LOST 12 EVENTS]", {3: 12}),
])
def test_lost_events_are_counted(line: str, lost: dict[int, int], tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text(LINES["perf"] + "\n" + line + "\n")
    facts, _ = read(path)
    assert facts.lost == lost


def test_text_through_xz_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "trace.xz"
    path.write_bytes(lzma.compress((LINES["perf"] + "\n").encode()))
    assert len(read(path, "sched_waking")[1]) == 1


def test_header_tells_the_architecture(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("# arch : aarch64\n" + LINES["perf"] + "\n")
    assert read(path)[0].arch == "aarch64"


BAD = {
    "nothing": (b"", "is empty"),
    "prose": (b"It was a dark and stormy night.\n", "no events in it"),
    "binary": (b"\x7fELF\0\0\0\0" * 9, "neither perf.data nor trace.dat"),
    "byte order": (b"2ELIFREP" + bytes(100), "byte order"),
    "cut xz": (lzma.compress(b"x" * 100000)[:-20], "cut off"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_trace(kind: str, tmp_path: Path) -> None:
    data, reason = BAD[kind]
    path = tmp_path / "bad"
    path.write_bytes(data)
    with pytest.raises(Fail, match=reason) as fail:
        read(path)
    assert "\n" not in str(fail.value)


@pytest.mark.skipif(not shutil.which("perf"), reason="no perf")
@pytest.mark.parametrize("part", [0.3, 0.7, 0.95])
def test_perf_data_that_is_cut_off(part: float, tmp_path: Path) -> None:
    """What perf itself wrote, without its end."""
    whole = tmp_path / "perf.data"
    subprocess.run(["perf", "record", "-q", "-e", "dummy", "-o", whole, "true"], check=True,
                   capture_output=True)
    cut = tmp_path / "cut.data"
    cut.write_bytes(whole.read_bytes()[:round(whole.stat().st_size * part)])
    with pytest.raises(Fail, match="cut off") as fail:
        read(cut)
    assert "\n" not in str(fail.value)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
@pytest.mark.skipif(not shutil.which("perf"), reason="no perf")
def test_packed_perf_data(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """It is what it is, and what perf says of it is said of the packed one."""
    whole = tmp_path / "perf.data"
    subprocess.run(["perf", "record", "-q", "-e", "dummy", "-o", whole, "true"], check=True,
                   capture_output=True)
    packed = tmp_path / "packed"
    packed.write_bytes(pack(whole.read_bytes()))
    source = Source(packed)
    assert source.kind == "perf" and "dummy" in source.header
    packed.write_bytes(pack(b"PERFILE2" + bytes(90)))
    with pytest.raises(Fail, match=f"{packed}: cut off or damaged; perf"):
        read(packed)


@pytest.mark.parametrize("magic, name", [(b"\x28\xb5\x2f\xfd", "zstd"),
                                         (b"\x04\x22\x4d\x18", "lz4")])
def test_packed_by_what_python_cannot_open(magic: bytes, name: str, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(magic + bytes(40))
    with pytest.raises(Fail, match=f"compressed by {name}: unpack it first"):
        read(path)


def test_packed_file_that_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "trace.gz"
    path.write_bytes(gzip.compress(b"PERFILE2" + bytes(9999))[:-20])
    with pytest.raises(Fail, match="cut off or damaged"):
        read(path)


def test_made_by_a_newer_perf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trace").write_text(LINES["perf"])
    source = Source(tmp_path / "trace")
    said = "incompatible file format (rerun with -v to learn more)\n"
    for more, match in (("file uses a more recent and unsupported ABI (8 bytes extra)",
                         "made by a newer perf"),
                        ("magic/endian check failed", "cut off or damaged")):
        monkeypatch.setattr(subprocess, "run", lambda *command, more=more, **options:
                            subprocess.CompletedProcess(command, 0, "", more))
        with pytest.raises(Fail, match=match):
            source._judge("perf", 0, said)


@pytest.mark.parametrize("order, wrong", [((3, 1, 2), True), ((1, 2, 3), False)])
def test_text_that_is_not_in_order(order: tuple[int, ...], wrong: bool, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("".join(LINES["perf"].replace("1273.3", f"127{n}.3") + "\n" for n in order))
    if not wrong:
        assert read(path)[0].events == 3
        return
    with pytest.raises(Fail, match="the times go back from 1273.322543 to 1271.322543 s"):
        read(path)
    # By 2 us, as in a public trace: an exit would come before its entry
    path.write_text(LINES["perf"] + "\n" + LINES["perf"].replace("322543", "322541") + "\n")
    with pytest.raises(Fail, match="the times go back"):
        read(path)


@pytest.mark.skipif(not shutil.which("trace-cmd"), reason="no trace-cmd")
def test_trace_dat_that_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "trace.dat"
    path.write_bytes(b"\x17\x08\x44tracing6\0\0\0\x08")
    with pytest.raises(Fail, match="trace-cmd") as fail:
        read(path)
    assert "\n" not in str(fail.value)


IGNORING = "'trace' not valid for unknown events. Ignoring.\n"


@pytest.mark.parametrize("status, said", [
    (0, IGNORING + "incompatible file format (rerun with -v to learn more)\n"),
    (0, "WARNING: The perf.data file's data size field is 0 which is unexpected.\n"),
    (-11, IGNORING)])
def test_what_a_reader_says_of_a_damaged_file(status: int, said: str, tmp_path: Path) -> None:
    (tmp_path / "trace").write_text(LINES["perf"])
    source = Source(tmp_path / "trace")
    with pytest.raises(Fail, match="cut off or damaged") as fail:
        source._judge("perf", status, said)
    assert "\n" not in str(fail.value) and "Ignoring" not in str(fail.value)
    source._judge("perf", 0, IGNORING)
