# SPDX-License-Identifier: GPL-2.0
"""Debian packages: what a target needs is installed before it starts."""
from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from virtual_silicon import loads
from virtual_silicon.errors import Fail
from virtual_silicon.guest import initramfs
from virtual_silicon.progress import Step, say

from .. import paths, proc

_NO_NETWORK = re.compile(r"Could not resolve|Temporary failure|Unable to connect|Could not connect"
                         r"|Network is unreachable|Connection (refused|timed out|failed)"
                         r"|No route to host|Could not handshake")


def load(file: Path = paths.PACKAGES) -> dict[str, list[str]]:
    """{group: packages} of packages.txt, and programs that are loads."""
    groups: dict[str, list[str]] = {}
    current: list[str] | None = None
    for number, raw in enumerate(file.read_text().splitlines(), 1):
        line = raw.split("#")[0].strip()
        if line.startswith("[") and line.endswith("]"):
            current = groups.setdefault(line[1:-1], [])
        elif line:
            if current is None or " " in line:
                raise Fail(f"{file}:{number}: expected one package, below a [group]")
            current.append(line)
    groups["bench"] += initramfs.packages(loads.RECIPE)
    return groups


def installed() -> set[str]:
    if not shutil.which("dpkg-query"):
        raise Fail("this needs Debian 12, for its packages; on other systems Containerfile has the"
                   " two lines to type")
    said = proc.text(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n"])
    return {line.split()[0] for line in said.splitlines() if line.endswith(" installed")}


def missing(groups: list[str]) -> list[str]:
    """Packages of the groups that are not installed, alternatives left in."""
    have, wanted = installed(), load()
    names = dict.fromkeys(p for g in groups for p in wanted[g])
    return [p for p in names if not have & set(p.split("|"))]


def ensure(*groups: str) -> None:
    """Install what the groups lack, or say how and stop."""
    lacking = missing(list(groups)) if groups else []
    if not lacking:
        return
    if _rights() is None:
        names = " ".join(_candidate(p) or p.split("|")[0] for p in lacking)
        raise Fail("packages are missing and this user may not install them; run:\n"
                   f"  sudo apt-get install --no-install-recommends {names}")
    if not all(_candidate(p) for p in lacking):
        update()
    chosen = [_choose(p) for p in lacking]
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *chosen]
    say(f"packages: {' '.join(chosen)}")
    with Step(f"packages: installing {len(chosen)}"):
        try:
            _as_root(command)
        except Fail as failure:
            if not re.search(r"404|Failed to fetch|Unable to fetch", failure.details):
                raise
            update()
            _as_root(command)


def _candidate(package: str) -> str | None:
    """The first of the alternatives that apt can install."""
    for name in package.split("|"):
        said = proc.text(["apt-cache", "policy", name])
        if re.search(r"^  Candidate: (?!\(none\))", said, re.M):
            return name
    return None


def _choose(package: str) -> str:
    name = _candidate(package)
    if not name:
        raise Fail(f"the package manager has no {package.replace('|', ' or ')}:"
                   " this needs Debian 12 with the main component")
    return name


def update() -> None:
    """Read the package lists again."""
    with Step("packages: reading the lists"):
        _as_root(["apt-get", "update"])


def _as_root(command: list[str]) -> None:
    """Run apt-get with the rights it needs, its words in a log."""
    prefix = _rights()
    if prefix is None:
        raise Fail(f"this needs root: run  sudo {' '.join(command)}")
    done = proc.capture([*prefix, *command, "-o", "DPkg::Lock::Timeout=300",
                         "-o", "APT::Update::Error-Mode=any"], check=False)
    # Of any base, also of one that is not there.
    log = paths.build_of(paths.DEFAULT_BASE) / "log/packages.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab") as out:
        out.write(done.stdout + done.stderr)
    if done.returncode:
        said = done.stderr.decode(errors="replace")
        raise Fail(reason(said, " ".join(command[:2])), said.strip())


def _rights() -> list[str] | None:
    """What to put before a command to run it as root; None: impossible."""
    if os.geteuid() == 0:
        return []
    try:
        asked = subprocess.run(["sudo", "-n", "true"], capture_output=True)
    except OSError:
        return None
    return ["sudo", "-n"] if asked.returncode == 0 else None


def reason(said: str, what: str) -> str:
    """One line out of what apt wrote to its error output."""
    if found := _NO_NETWORK.search(said):
        return f"{what} failed: no network ({found[0]})"
    first = re.search(r"^E: (.*)$", said, re.M)
    return f"{what} failed" + (f": {first[1]}" if first else "")
