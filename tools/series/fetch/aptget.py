# SPDX-License-Identifier: GPL-2.0
"""Downloads by apt that are not installed: kernel and QEMU source.

apt checks what it downloads against the signed lists. Source packages need
deb-src entries and new kernels those of backports, which few machines have: they are
derived from the machine's own sources and kept, with their lists, in directories of ours.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from virtual_silicon.errors import Fail

from .. import paths, proc
from . import cache, packages

ETC = Path("/etc/apt")
SUITE = "trixie-backports"      # has the newest kernel that Debian has released
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


@dataclass(frozen=True)
class Offer:
    """A version of a package that apt can download."""
    package: str
    version: str
    sha256: str
    options: tuple[str, ...] = ()       # for apt, to look where it is on offer

    @property
    def release(self) -> str:
        """The upstream part: 6.12.117 of 6.12.117-1~deb12u1."""
        return re.sub(r"^\d+:", "", self.version).split("-")[0]


def offers(package: str, options: tuple[str, ...] = ()) -> list[Offer]:
    """Versions of a binary package that can be downloaded, newest first."""
    done = proc.capture(["apt-cache", *options, "show", "--all-versions", package], check=False)
    return parse_offers(package, done.stdout.decode(errors="replace"), options)


def versions(package: str) -> list[str]:
    """6.12 of package-6.12, for all that the machine's sources and backports have."""
    said = "".join(proc.text(["apt-cache", *options, "pkgnames", f"{package}-"])
                   for options in ((), backports()))
    found = re.findall(rf"^{re.escape(package)}-(\d+)\.(\d+)$", said, re.M)
    return [".".join(v) for v in sorted(set(found), key=lambda v: [*map(int, v)], reverse=True)]


def parse_offers(package: str, shown: str, options: tuple[str, ...] = ()) -> list[Offer]:
    """Offers from what apt-cache show prints, in its order. The entry of an
    installed version that is on offer no more has no checksum."""
    found: dict[str, Offer] = {}
    for stanza in shown.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|SHA256): (\S+)$", stanza, re.M))
        if fields.get("Package") == package and "SHA256" in fields:
            found.setdefault(fields["Version"],
                             Offer(package, fields["Version"], fields["SHA256"], options))
    return list(found.values())


def download(offer: Offer, directory: Path) -> Path:
    """The .deb of an offer. The lists are read again if they are out of date."""
    command = ["apt-get", *offer.options, "download", f"{offer.package}={offer.version}",
               "-o", "APT::Sandbox::User=root"]
    done = proc.capture(command, cwd=directory, check=False)
    if done.returncode and b"404" in done.stderr:
        if offer.options:
            backports(update=True)
        else:
            packages.update()
        there = [o.version for o in offers(offer.package, offer.options)]
        if offer.version not in there:
            raise Fail(f"{offer.package} {offer.version} is on offer no more; there are "
                       + (", ".join(there) or "none"))
        done = proc.capture(command, cwd=directory, check=False)
    found = list(directory.glob(f"{offer.package}_*.deb"))
    if done.returncode or len(found) != 1:
        said = done.stderr.decode(errors="replace")
        raise Fail(packages.reason(said, f"download of {offer.package} {offer.version}"),
                   said.strip())
    return found[0]


def download_source(package: str, version: str, directory: Path) -> Path:
    """The .dsc of a source package, with its archives next to it."""
    options = _private_apt(paths.cache_root() / "apt", {
        file.name: sources_of(file.read_text()) for file in _sources()})
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


def backports(update: bool = False) -> tuple[str, ...]:
    """Options that make apt know what Debian's SUITE has, and nothing else. Its list is read
    the first time, and by @update."""
    text = "".join(file.read_text() for file in _sources())
    root = paths.cache_root() / "apt-backports"
    options = _private_apt(root, {"debian.list": (
        f"deb [signed-by={KEYRING}] {mirror(text)} {SUITE} main\n")})
    with cache.lock(root / ".lock", f"the list of {SUITE}"):
        if update or not any((root / "lists").glob("*_Packages*")):
            done = proc.capture(["apt-get", *options, "update", "-o", "Acquire::Languages=none",
                                 "-o", "APT::Update::Error-Mode=any"], check=False)
            if done.returncode:
                said = done.stderr.decode(errors="replace")
                raise Fail(packages.reason(said, f"reading the list of {SUITE}"), said.strip())
    return tuple(options)


def mirror(text: str) -> str:
    """The mirror of Debian in a sources file of either form."""
    found = re.search(r"^\s*(?:deb\s.*?|URIs:\s*)(https?://\S+/debian/?)(?=\s)", text, re.M)
    return found[1] if found else "http://deb.debian.org/debian"


def _sources() -> list[Path]:
    """The files that say where the machine's packages come from."""
    files = [ETC / "sources.list", *sorted((ETC / "sources.list.d").glob("*"))]
    return [f for f in files if f.suffix in (".list", ".sources") and f.is_file()]


def _private_apt(root: Path, sources: dict[str, str]) -> list[str]:
    """Options that make apt use these sources and lists of ours."""
    parts = root / "sources"
    for directory in (parts, root / "lists/partial", root / "cache/archives/partial"):
        directory.mkdir(parents=True, exist_ok=True)
    for old in parts.iterdir():
        if old.name not in sources:
            old.unlink()
    for name, text in sources.items():
        (parts / name).write_text(text)
    settings = {"Dir::Etc::sourcelist": "/dev/null", "Dir::Etc::sourceparts": parts,
                "Dir::State::lists": root / "lists", "Dir::Cache": root / "cache",
                "APT::Sandbox::User": "root"}
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def sources_of(text: str) -> str:
    """Entries for source packages instead of binary ones, of either form of a sources file."""
    text = re.sub(r"^(\s*)deb\s", r"\1deb-src ", text, flags=re.M)
    return re.sub(r"^Types:.*$", "Types: deb-src", text, flags=re.M | re.I)
