# SPDX-License-Identifier: GPL-2.0
"""git without the user's settings: what we make must not depend on them."""
from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from . import proc

IDENTITY = "x86-dvfs build <build@x86-dvfs.invalid>"
_NAME, _MAIL = IDENTITY[:-1].split(" <")


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    env = {k: v for k, v in proc.environment().items() if not k.startswith("GIT_")}
    env.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1", TZ="UTC",
               GIT_COMMITTER_NAME=_NAME, GIT_COMMITTER_EMAIL=_MAIL,
               GIT_AUTHOR_NAME=_NAME, GIT_AUTHOR_EMAIL=_MAIL,
               # In a container the repository may be another user's than root's.
               GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="safe.directory", GIT_CONFIG_VALUE_0="*")
    env.update(extra or {})
    return env


def call(*args: str | Path, repo: Path | None = None, stdin: bytes | None = None,
         check: bool = True, env: Mapping[str, str] | None = None,
         ) -> subprocess.CompletedProcess[bytes]:
    where: list[str | Path] = ["-C", repo] if repo else []
    return proc.capture(["git", *where, *args], stdin=stdin, check=check,
                        env=environment(env))


def raw(*args: str | Path, repo: Path | None = None, stdin: bytes | None = None,
        env: Mapping[str, str] | None = None) -> bytes:
    return call(*args, repo=repo, stdin=stdin, env=env).stdout


def run(*args: str | Path, repo: Path | None = None, stdin: bytes | None = None,
        env: Mapping[str, str] | None = None) -> str:
    """Output of a git command, without the newline at its end."""
    return raw(*args, repo=repo, stdin=stdin, env=env).decode(
        errors="surrogateescape").rstrip("\n")


def resolve(repo: Path, name: str) -> str | None:
    """The commit that `name` stands for, or None."""
    done = call("rev-parse", "--quiet", "--verify", name + "^{commit}", repo=repo, check=False)
    return done.stdout.decode().strip() or None if done.returncode == 0 else None


def blob(repo: Path, commit: str, path: str) -> bytes | None:
    """Content of `path` in `commit`, or None if it is not there."""
    done = call("cat-file", "blob", f"{commit}:{path}", repo=repo, check=False)
    return done.stdout if done.returncode == 0 else None
