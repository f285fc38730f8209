# SPDX-License-Identifier: GPL-2.0
"""Downloads by apt that are not installed: kernel and QEMU source.

apt checks what it downloads against the signed lists. Source packages need
deb-src entries, which few machines have: they are derived from the machine's
own sources and kept, with their lists, in a directory of ours.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from virtual_silicon.errors import Fail

from .. import paths, proc
from . import packages

ETC = Path("/etc/apt")


@dataclass(frozen=True)
class Offer:
    """A version of a package that apt can download."""
    package: str
    version: str
    sha256: str

    @property
    def release(self) -> str:
        """The upstream part: 6.12.117 of 6.12.117-1~deb12u1."""
        return re.sub(r"^\d+:", "", self.version).split("-")[0]


def offers(package: str) -> list[Offer]:
    """Versions of a binary package that can be downloaded, newest first."""
    done = proc.capture(["apt-cache", "show", "--all-versions", package], check=False)
    return parse_offers(package, done.stdout.decode(errors="replace"))


def parse_offers(package: str, shown: str) -> list[Offer]:
    """Offers from what apt-cache show prints, in its order. The entry of an
    installed version that is on offer no more has no checksum."""
    found: dict[str, Offer] = {}
    for stanza in shown.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|SHA256): (\S+)$", stanza, re.M))
        if fields.get("Package") == package and "SHA256" in fields:
            found.setdefault(fields["Version"],
                             Offer(package, fields["Version"], fields["SHA256"]))
    return list(found.values())


def download(offer: Offer, directory: Path) -> Path:
    """The .deb of an offer. The lists are read again if they are out of date."""
    command = ["apt-get", "download", f"{offer.package}={offer.version}",
               "-o", "APT::Sandbox::User=root"]
    done = proc.capture(command, cwd=directory, check=False)
    if done.returncode and b"404" in done.stderr:
        packages.update()
        done = proc.capture(command, cwd=directory, check=False)
    found = list(directory.glob(f"{offer.package}_*.deb"))
    if done.returncode or len(found) != 1:
        said = done.stderr.decode(errors="replace")
        raise Fail(packages.reason(said, f"download of {offer.package} {offer.version}"),
                   said.strip())
    return found[0]


def download_source(package: str, version: str, directory: Path) -> Path:
    """The .dsc of a source package, with its archives next to it."""
    options = _private_apt()
    command = ["apt-get", *options, "source", "--download-only", f"{package}={version}"]
    said = ""
    done = proc.capture(command, cwd=directory, check=False)
    if done.returncode:
        # Third-party entries without source make the update fail as a whole;
        # what counts is whether the package is there afterwards.
        updated = proc.capture(["apt-get", *options, "update"], check=False)
        said = updated.stderr.decode(errors="replace")
        done = proc.capture(command, cwd=directory, check=False)
    found = list(directory.glob(f"{package}_*.dsc"))
    if done.returncode or len(found) != 1:
        said += done.stderr.decode(errors="replace")
        raise Fail(packages.reason(said, f"download of the source of {package} {version}"),
                   said.strip())
    return found[0]


def _private_apt() -> list[str]:
    """Options that make apt-get use deb-src entries and lists of ours."""
    root = paths.cache_root() / "apt"
    parts = root / "sources"
    for directory in (parts, root / "lists/partial", root / "cache/archives/partial"):
        directory.mkdir(parents=True, exist_ok=True)
    for old in parts.iterdir():
        old.unlink()
    for file in [ETC / "sources.list", *sorted((ETC / "sources.list.d").glob("*"))]:
        if file.suffix in (".list", ".sources") and file.is_file():
            (parts / file.name).write_text(sources_of(file.read_text()))
    settings = {"Dir::Etc::sourcelist": "/dev/null", "Dir::Etc::sourceparts": parts,
                "Dir::State::lists": root / "lists", "Dir::Cache": root / "cache",
                "APT::Sandbox::User": "root"}
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def sources_of(text: str) -> str:
    """Entries for source packages instead of binary ones, of either form of a sources file."""
    text = re.sub(r"^(\s*)deb\s", r"\1deb-src ", text, flags=re.M)
    return re.sub(r"^Types:.*$", "Types: deb-src", text, flags=re.M | re.I)
