# SPDX-License-Identifier: GPL-2.0
"""Turbo tables as registers hold them (SDM volume 4, the tables of the models)."""

from __future__ import annotations

from collections.abc import Iterator

TURBO_RATIO_LIMIT = 0x1AD
TURBO_RATIO_LIMIT1 = 0x1AE
TURBO_RATIO_LIMIT2 = 0x1AF
ATOM_TURBO_RATIOS = 0x66C

#: Models by layout, beyond family 6 with the family, as number() has them.
LAYOUTS = {
    # two sockets and more since Skylake, Goldmont and the servers after it, by turbostat
    # Diamond Rapids (0x1301), too; and Bartlett Lake (0xd7), by its registers
    "groups": {0x55, 0x5C, 0x5F, 0x6A, 0x6C, 0x7A, 0x86, 0x8F, 0xAD, 0xAE, 0xAF, 0xB6,
               0xCF, 0xD7, 0xDD, 0x1301},
    "deltas": {0x57, 0x85},
    "atom": {0x37, 0x4A, 0x4C, 0x4D, 0x5A, 0x5D, 0x75},
    # Nehalem to Ivy Bridge; Haswell and Broadwell; Skylake to Comet Lake; Ice to
    # Rocket Lake, with Tremont's clients; Alder Lake and on
    "bytes": {0x1A, 0x1E, 0x25, 0x2A, 0x2C, 0x2D, 0x3A, 0x3E,
              0x3C, 0x3D, 0x3F, 0x45, 0x46, 0x47, 0x4F, 0x56,
              0x4E, 0x5E, 0x66, 0x8E, 0x9E, 0xA5, 0xA6,
              0x7D, 0x7E, 0x8C, 0x8D, 0xA7, 0x96, 0x9C,
              0x97, 0x9A, 0xAA, 0xAC, 0xB5, 0xB7, 0xBA, 0xBD, 0xBE, 0xBF, 0xC5, 0xC6,
              0xCC, 0xD5},
}


def number(family: int, model: int) -> int:
    """A model's, of any family."""
    return model if family == 6 else family << 8 | model


def layout(model: int) -> str | None:
    """Of a model by its number(); None if it is not known here."""
    return next((name for name, models in LAYOUTS.items() if model in models), None)


#: Models of layout "bytes" that go on in the next registers.
LONG = {0x3E, 0x3F, 0x4F}


def registers(layout: str) -> tuple[int, ...]:
    """Which hold the table, in this order."""
    if layout == "atom":
        return (ATOM_TURBO_RATIOS,)
    count = {"bytes": 3, "groups": 2, "deltas": 1}.get(layout, 0)
    return (TURBO_RATIO_LIMIT, TURBO_RATIO_LIMIT1, TURBO_RATIO_LIMIT2)[:count]


def _bytes(value: int) -> list[int]:
    return [value >> shift & 0xFF for shift in range(0, 64, 8)]


def _deltas(value: int) -> Iterator[tuple[int, int]]:
    """The first group whole, then 5 bits more cores and 3 bits less ratio."""
    cores, ratio, *rest = value >> 1 & 0x7F, value >> 8 & 0xFF, *_bytes(value)[2:]
    yield cores, ratio
    for delta in rest:
        cores, ratio = cores + (delta & 0x1F), ratio - (delta >> 5)
        yield cores, ratio


def decode(layout: str, values: dict[int, int]) -> list[tuple[int, int]]:
    """(active cores, ratio) of the entries in use, as they stand.

    An entry without a ratio, or a group without cores, is not in use.
    """
    limits = [values.get(msr, 0) for msr in registers(layout)]
    if layout == "groups":
        pairs = list(zip(_bytes(limits[1]), _bytes(limits[0])))
    elif layout == "deltas":
        pairs = list(_deltas(limits[0]))
    elif layout == "atom":
        pairs = [(n, ratio & 0x3F) for n, ratio in enumerate(_bytes(limits[0])[:4], 1)]
    else:
        ratios = [ratio & 0x7F for limit in limits for ratio in _bytes(limit)]
        pairs = list(enumerate(ratios, 1))
    return [(cores, ratio) for cores, ratio in pairs if cores and ratio]


def steps(pairs: list[tuple[int, int]], cores: int, base: int) -> list[tuple[int, int]]:
    """What they say of a part with so many cores, equal neighbours as one; ValueError if
    they contradict each other or the base ratio."""
    if not pairs:
        raise ValueError("the turbo registers are empty")
    out: list[tuple[int, int]] = []
    for count, ratio in pairs:
        last, above = out[-1] if out else (0, 255)
        if count < last:
            raise ValueError(f"turbo: {count} cores after {last}: counts must not fall")
        if ratio > above:
            raise ValueError(f"turbo: ratio {ratio} with {count} cores, but {above} with "
                             f"{last}: ratios must not rise")
        if ratio < base:
            raise ValueError(f"turbo: ratio {ratio} with {count} cores is below the base "
                             f"ratio {base}")
        if count > last and out and ratio == above:
            out[-1] = (min(count, cores), ratio)
        elif count > last:
            out.append((min(count, cores), ratio))
        if count >= cores:
            break
    return [*out[:-1], (cores, out[-1][1])]


#: The base's rule takes the clock with so many active cores for the highest; on these
#: models that with one.
CORES, ONE_CORE = 4, {0x5C, 0x5F, 0x7A}
#: Servers since Ice Lake: the series takes the clock with all cores active.
ALL_CORES = {0x6A, 0x6C, 0x8F, 0xAD, 0xAE, 0xCF, 0x1301}


def freq_max(model: int, values: dict[int, int], base: int, patched: bool = True) -> int | None:
    """Over base in 1/1024, by the rule of the series or by the base's, which reads the
    registers of some models wrongly; None where those that it needs were not read. The
    series ignores clocks below base, as some guests have them."""
    which = layout(model)
    if which == "atom" or not base or (which == "groups" and TURBO_RATIO_LIMIT1 not in values):
        return None
    pairs = decode(which or "bytes", values)
    if patched:
        pairs = [(cores, ratio) for cores, ratio in pairs if ratio >= base]
    if not pairs:
        return None
    if which == "deltas":	# the second level; the only one of a part with one
        ratio = next((r for _, r in pairs if r < pairs[0][1]), pairs[0][1])
    elif patched and model in ALL_CORES:
        ratio = max(pairs, key=lambda pair: pair[0])[1]
    else:
        cores = 1 if model in ONE_CORE else CORES
        # Fewer cores than that: the highest there is
        ratio = next((r for c, r in pairs if c >= cores), pairs[0][1])
    return ratio * 1024 // base
