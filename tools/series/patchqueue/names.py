# SPDX-License-Identifier: GPL-2.0
"""Which patch a commit of a tree was before one rebased it, and what it is called now."""
from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from virtual_silicon.errors import Fail

from .. import git
from .manifest import Entry, Series
from .tree import NOTES, TIP, Tree


def origins(tree: Tree, base: str, series: Series) -> dict[str, Entry]:
    """{commit of @base..HEAD: the entry it was}. The commit's note says it; without one the
    same diff does, else the same subject, else the same files."""
    before = _traits(tree, f"--max-count={len(series.entries)}", TIP)
    now = _traits(tree, f"{base}..HEAD")
    rest = [([entry.patch, *traits[1:]], entry)
            for traits, entry in zip(before.values(), series.entries)]
    found: dict[str, Entry] = {}
    for kind in range(4):
        for commit, traits in now.items():
            same = [pair for pair in rest if traits[kind] and pair[0][kind] == traits[kind]]
            if same and commit not in found:
                found[commit] = same[0][1]
                rest.remove(same[0])
    return found


def _traits(tree: Tree, *revisions: str) -> dict[str, list[str]]:
    """{commit: note, hash of its diff, subject, files}, the first commit first."""
    said = git.run("log", "--reverse", f"--notes={NOTES}", "--name-only", "--no-renames",
                   "--format=%x01%H%x00%N%x00%s%x00", *revisions, repo=tree.path)
    diffs = git.raw("log", "--patch", "--full-index", "--no-renames", *revisions, repo=tree.path)
    ids = dict(line.split()[::-1] for line in
               git.run("patch-id", "--stable", stdin=diffs).splitlines())
    out = {}
    for text in said.split("\x01")[1:]:
        commit, note, subject, files = text.split("\0")
        # Commits that were squashed have the notes of all; it is the first that goes on.
        out[commit] = [note.partition("\n")[0], ids.get(commit, ""), subject, files.strip()]
    return out


def slug(subject: str) -> str:
    """A patch's name without its number."""
    return "-".join(re.findall(r"[^\W_]+", subject.lower()))[:52].rstrip("-") + ".patch"


def numbered(before: Sequence[int | None], parts: Sequence[int] = ()) -> list[int]:
    """Rising numbers for commits in this order. Those that kept their order keep theirs. A
    new one, or one that was moved, gets a free one after its neighbour's; where there is none
    the neighbours up to the nearest gap make room. @parts are where parts begin: numbers stay
    inside of theirs."""
    stay = _rising(before)
    numbers = [n if place in stay else None for place, n in enumerate(before)]
    homes: list[int] = []
    for place, number in enumerate(before):
        first = homes[-1] if homes else None
        last = next((bisect_right(parts, n) for n in numbers[place:] if n is not None), None)
        own = bisect_right(parts, number) if number is not None else None
        if own is None or own < (first or 0) or (last is not None and own > last):
            own = first if first is not None else last if last is not None else 1
        homes.append(own)
    out: list[int] = []
    for home in dict.fromkeys(homes):
        low = parts[home - 1] if 0 < home <= len(parts) else 1
        high = parts[home] - 1 if home < len(parts) else 9999
        out += _filled([n for n, its in zip(numbers, homes) if its == home], low, high)
    return out


def _rising(numbers: Sequence[int | None]) -> list[int]:
    """Where the longest rising sequence stands in @numbers."""
    ending: dict[int, list[int]] = {}
    for place, number in enumerate(numbers):
        if number is not None:
            before = [e for p, e in ending.items() if (numbers[p] or 0) < number]
            ending[place] = [*max(before, key=len, default=[]), place]
    return max(ending.values(), key=len, default=[])


def _filled(numbers: list[int | None], low: int, high: int) -> list[int]:
    """One part, None replaced."""
    for place, number in enumerate(numbers):
        if number is not None:
            continue
        below = numbers[place - 1] or 0 if place else low - 1
        above = below + 1
        up = _taken(numbers, range(place + 1, len(numbers)), above, 1)
        down = _taken(numbers, range(place - 1, -1, -1), below, -1)
        room_above, room_below = above + len(up) <= high, below - len(down) >= low
        if not room_above and not room_below:
            raise Fail(f"the part of patches {low:04d} to {high:04d} has no free number")
        climb = room_above and (len(up) <= len(down) or not room_below)
        for other in up if climb else down:
            numbers[other] = (numbers[other] or 0) + (1 if climb else -1)
        numbers[place] = above if climb else below
    return [n for n in numbers if n]


def _taken(numbers: Sequence[int | None], places: Iterable[int], number: int,
           step: int) -> list[int]:
    """Places whose numbers follow each other without a gap, from @number on."""
    found: list[int] = []
    for place in places:
        if numbers[place] == number:
            found.append(place)
            number += step
        elif numbers[place] is not None:
            break
    return found
