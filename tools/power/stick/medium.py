# SPDX-License-Identifier: GPL-2.0
"""The stick's own partition: the only thing that is ever mounted or written."""
from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Of the file system, at its place in the first sector of FAT16.
LABEL, LABEL_AT = b"X86DVFS    ", 43
#: The last line of a file that was written to its end, before the checksum of the rest.
MARK = "sha256 "


def find(sys: Path = Path("/sys"), dev: Path = Path("/dev")) -> Path | None:
    """The partition, if it is on USB and has our label."""
    for part in sorted(sys.glob("class/block/sd*[0-9]")):
        if "/usb" not in os.path.realpath(part):
            continue
        try:
            with open(dev / part.name, "rb") as file:
                sector = file.read(512)
        except OSError:
            continue
        if sector[LABEL_AT:LABEL_AT + len(LABEL)] == LABEL:
            return dev / part.name
    return None


def wait(seconds: float) -> Path | None:
    """USB takes a while."""
    end = time.monotonic() + seconds
    while not (found := find()) and time.monotonic() < end:
        time.sleep(0.5)
    return found


@contextmanager
def mounted(device: Path, at: Path = Path("/run/stick")) -> Iterator[Path]:
    """Only while something is read or written, so that it may be pulled out in between. What a
    loss of power left is repaired first."""
    at.mkdir(parents=True, exist_ok=True)
    subprocess.run(["fsck.fat", "-a", device], stdout=subprocess.DEVNULL)
    subprocess.run(["busybox", "mount", "-t", "vfat", "-o", "noatime", device, at], check=True)
    try:
        yield at
    finally:
        subprocess.run(["busybox", "umount", at], check=True)


def write(path: Path, text: str) -> None:
    """Whole or not at all: FAT keeps no journal, so a reader judges by the checksum."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    part = path.with_suffix(".new")
    with open(part, "w", encoding="utf-8") as file:
        file.write(f"{text}{MARK}{digest}\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def read(path: Path) -> str | None:
    """None of what is not there or was not written to its end."""
    try:
        text, _, digest = path.read_text(encoding="utf-8").rpartition(MARK)
    except (OSError, UnicodeDecodeError):
        return None
    return text if hashlib.sha256(text.encode()).hexdigest() == digest.strip() else None
