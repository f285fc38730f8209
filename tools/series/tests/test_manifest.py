# SPDX-License-Identifier: GPL-2.0
"""patches/series: what they may say, where they err."""
from __future__ import annotations

import pytest
from virtual_silicon.errors import Fail

from ..patchqueue import manifest
from ..patchqueue.manifest import WholeFile


def test_reads_and_writes_the_same(place):
    text = (place.top / "patches/series").read_text()
    series = place.series()
    assert [e.patch for e in series.entries] == ["0001-kernel.patch", "0002-lib.patch"]
    assert series.entries[1].files == [WholeFile("lib/new.c"),
                                       WholeFile("lib/old.c", ("edeb834d7f96",))]
    assert manifest.dump(series.entries, series.trailer) == text


@pytest.mark.parametrize("lines, line, reason", [
    (["\tlib/a.c"], 1, "below the patch"),
    (["0001-a.patch", "", "# x", "0001-a.patch"], 4, "named twice, first in line 1"),
    (["0001-a.patch", "\tlib/a.c", "\tlib/a.c"], 3, "named twice"),
    (["0001-a.patch lib/a.c"], 1, "'lib/a.c' after the patch name"),
    (["lib/a.c"], 1, "indent the line"),
    (["0001-a"], 1, "called 0001-what-it-does.patch"),
    (["0001-a.patch", "\t/lib/a.c"], 2, "relative to the top"),
    (["0001-a.patch", "\tlib/../../a.c"], 2, "relative to the top"),
    (["0001-a.patch", "\tlib/a.c replace"], 2, "there may stand 'replaces'"),
    (["0001-a.patch", "\tlib/a.c replaces"], 2, "there may stand 'replaces'"),
])
def test_errors_name_the_line(lines, line, reason):
    with pytest.raises(Fail, match=f"^series:{line}: .*{reason}"):
        manifest.parse(lines, "series")


@pytest.mark.parametrize("missing, line", [("patches/0001-kernel.patch", 3), ("lib/new.c", 6)])
def test_missing_file_is_named(place, missing, line):
    (place.top / missing).unlink()
    with pytest.raises(Fail, match=rf"series:{line}: .*{missing} does not exist"):
        place.series()


def test_no_manifest_is_an_empty_series(tmp_path):
    assert manifest.load(tmp_path, tmp_path).entries == []
