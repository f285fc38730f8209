# SPDX-License-Identifier: GPL-2.0
"""Trace reader and plot."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest
from virtual_silicon.errors import UsageError
from virtual_silicon.readers import plot, trace

TEXT = """\
# virtual-silicon trace 1
0 F 0 2000000
0 F 1 800000
1000000 M 0 10
1000000 C 0 2000 2000 3000 1000000 C1=2:100 C6=1:200
1000000 C 1 2000 0 0 0 C1=0:0 C6=1:900000
1000000 P 0 5000000 3000000 1000000
2000000 I 1 C6
3000000 E 0 6000000
4000000 W 1 irq C6
5000000 F 0 3000000
11000000 M 0 11
11000000 C 0 22000 22000 28000 11000000 C1=3:1100 C6=1:200
11000000 C 1 22000 0 4000 5000000 C1=0:0 C6=3:5900000
11000000 P 0 9000000 6000000 1500000
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "trace.txt"
    target.write_text(TEXT)
    return target


def test_events(path: Path) -> None:
    t = trace.read(path)
    assert t.khz[0] == [(0, 2000000), (5000000, 3000000)]
    assert t.idle[1] == [(2000000, "C6"), (4000000, None)]
    assert t.wakes[1] == [(4000000, "irq", "C6")]
    assert t.energy[0] == [(3000000, 6000000)]
    assert t.end_ns == 11000000


def test_window_between_marks(path: Path) -> None:
    w = trace.window(trace.read(path), 10, 11)
    assert w.seconds == pytest.approx(0.010)
    assert (w.package_j, w.cores_j, w.dram_j) == pytest.approx((4, 3, 0.5))
    assert w.cpus[0].busy == pytest.approx(1)
    assert w.cpus[0].mhz == pytest.approx(2.5)		# 25000 cycles in 10 ms
    assert w.cpus[1].busy == pytest.approx(0.5)
    assert w.cpus[1].states["C6"] == pytest.approx(0.5)
    assert w.cpus[1].entries == {"C1": 0, "C6": 2}


def test_missing_mark(path: Path) -> None:
    with pytest.raises(UsageError, match="no mark 99"):
        trace.window(trace.read(path), 10, 99)


def test_marks_in_wrong_order(path: Path) -> None:
    with pytest.raises(UsageError, match="not after"):
        trace.window(trace.read(path), 11, 10)


def test_last_line_cut_short_is_left_out(path: Path) -> None:
    path.write_text(TEXT + "12000000 F 0 29")
    assert trace.read(path).khz[0][-1] == (5000000, 3000000)


@pytest.mark.parametrize("line", ["x F 0 1", "1 F", "1 Q 0 1", "1 F 0 fast", ""])
def test_damaged_line_is_named(path: Path, line: str) -> None:
    path.write_text(TEXT + line + "\n")
    with pytest.raises(UsageError, match=r"trace.txt:16: not a trace event"):
        trace.read(path)


def test_compressed_form(path: Path, tmp_path: Path) -> None:
    packed = tmp_path / "trace.gz"
    packed.write_bytes(gzip.compress(TEXT.encode()))
    assert trace.read(packed) == trace.read(path)


def test_compressed_form_cut_short(tmp_path: Path) -> None:
    """The emulator was killed: what has come out is read, up to a whole line."""
    packer = zlib.compressobj(wbits=31)
    packed = tmp_path / "trace.gz"
    packed.write_bytes(packer.compress(TEXT.encode() + b"12000000 F 0 29")
                       + packer.flush(zlib.Z_SYNC_FLUSH))
    assert trace.read(packed).end_ns == 11000000


def test_not_a_trace(path: Path) -> None:
    path.write_text("hello\n")
    with pytest.raises(UsageError, match="not a trace"):
        trace.read(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        trace.read(tmp_path / "none")


def test_segments(path: Path) -> None:
    assert plot.segments(trace.read(path), 1, 0, 6000000) == [
        pytest.approx((0, 0.002, None)), pytest.approx((0.002, 0.004, "C6")),
        pytest.approx((0.004, 0.006, None))]


def test_bins_weigh_frequency_by_busy_time(path: Path) -> None:
    t = trace.read(path)
    (_, busy, mhz), = plot.bins(t, 0, 0, 10000000, 1)
    assert busy == pytest.approx(1) and mhz == pytest.approx(2500)
    (_, busy, mhz), = plot.bins(t, 1, 0, 10000000, 1)
    assert busy == pytest.approx(0.8) and mhz == pytest.approx(800)


def test_plot_writes_a_picture(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "p.png"
    plot.draw(trace.read(path), target)
    assert target.read_bytes().startswith(b"\x89PNG")


def test_plot_of_nothing(path: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to draw"):
        plot.draw(trace.read(path), tmp_path / "p.png", 5, 4)
