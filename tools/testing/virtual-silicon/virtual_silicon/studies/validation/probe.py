# SPDX-License-Identifier: GPL-2.0
"""What was measured on a machine beside what the same probe measures on its model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cpuwhy import form

from ... import paths
from ...errors import Fail, GuestError
from ...guest import boot, pool
from ...machine import adopt, machine
from ...machine.machine import Machine
from . import probe_guest

HEAD = ("what", "measured", "model", "unit", "error", "number")
PREDICTED, PUT_IN = "predicted", "put in"


@dataclass(frozen=True)
class Value:
    """One number of a probe; @source: whether the model was told."""

    what: str
    unit: str
    value: float
    source: str


def values(data: form.Data) -> Iterator[Value]:
    """Medians."""
    if ratio := data["kernel"].get("freq_max"):
        yield Value("highest clock as the kernel has it, over base", "1/1024", ratio, PREDICTED)
    for state in data.get("state", ()):
        for key, how in (("wake_us", "another CPU"), ("timer_us", "its timer")):
            if key in state:
                yield Value(f"wake from {state['name']} by {how}", "us", state[key][2], PUT_IN)
    for change in data.get("change", ()):
        way = "up" if change["to_mhz"] > change["from_mhz"] else "down"
        yield Value(f"change of clock, {way}", "us", change["us"][1], PUT_IN)
    for row in data.get("busy", ()):
        yield Value(f"clock with {row['cpus']} busy", "MHz", row["mhz"],
                    PREDICTED if data["cpu"]["vendor"] == "GenuineIntel" else PUT_IN)
    for key, what in (("idle_w", "idle"), ("busy_w", "one busy core"),
                      ("two_busy_w", "two busy cores")):
        if key in data.get("power", ()):
            yield Value(f"power, {what}", "W", data["power"][key], PUT_IN)
    for row in data.get("handover", ()):
        yield Value(f"hand-over after {row['work_us']} us of work, {row['states']} states", "us",
                    row["us"], PREDICTED)


def table(measured: form.Data, model: form.Data) -> list[list[str]]:
    """Of what both have."""
    have = {one.what: one for one in values(model)}
    return [[one.what, f"{one.value:g}", f"{have[one.what].value:g}", one.unit,
             f"{100 * (have[one.what].value / one.value - 1):+.0f} %" if one.value else "",
             one.source] for one in values(measured) if one.what in have]


def probe(name: str, m: Machine, guests: pool.Guests, kernel: Path) -> form.Data:
    """What cpuwhy says of a model."""
    found = guests.outcomes([probe_guest.guest(name, m, kernel)])[0]
    if isinstance(found, Fail):
        raise found
    assert isinstance(found, boot.Result)
    text = found.text("probe")
    if found.step_status("probe"):
        raise GuestError(f"cpuwhy failed on {m.name}", found.text("said"))
    return form.check(text + "\n")


def run(path: Path, kernel: Path, qemu: Path, out: Path) -> list[list[str]]:
    """Adopts the file, probes the machine that this makes, and compares."""
    measured = adopt.read(path)
    m = machine.parse(adopt.text(measured, path.name), out / f"{path.stem}.toml")
    guests = pool.Guests(out, probe_guest.archive(out / "guest"), qemu)
    return table(measured, probe(f"probe-{path.stem}", m, guests, kernel))


def kernel_of(data: form.Data) -> Path:
    """Base or patched, as the machine had it."""
    return paths.kernel("patched" if data["kernel"].get("patched") else "base")
