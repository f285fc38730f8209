# SPDX-License-Identifier: GPL-2.0
"""Running other programs: quietly, or into a log with a counter."""
from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from virtual_silicon.errors import Fail

from . import paths

# make hands its own flags and our variables (CMD=, CPUS=) to every child; the
# kernel's make would take them for its own.
_MAKE_STATE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES",
               "MACHINE", "CPUS", "CMD", "KERNEL", "APPEND", "FAULTS", "KSRC", "BASE",
               "TIME", "JOBS", "TESTS", "MUTANTS", "CONFIGS", "FLAVOUR", "PART", "TREE")


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The caller's environment without make's state, in the C locale."""
    env = {k: v for k, v in os.environ.items() if k not in _MAKE_STATE}
    env.update(LC_ALL="C.UTF-8", DEBIAN_FRONTEND="noninteractive")
    env.update(extra or {})
    return env


def build_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """As little as a compiler needs, so that results depend on inputs only."""
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
           "HOME": os.environ.get("HOME", "/")}
    if Path("/usr/lib/ccache").is_dir():
        env["PATH"] = "/usr/lib/ccache:" + env["PATH"]
        # Paths below "basedir" are made relative, so that clones share their objects.
        # Not with "depend": it saves the preprocessor, which is what finds .incbin, so
        # that a kernel could be made of another one's compressed image.  The cache has
        # another name since then.
        env.update(CCACHE_DIR=str(paths.cache_root() / "ccache-2"), CCACHE_MAXSIZE="1G",
                   CCACHE_BASEDIR=str(paths.TOP), CCACHE_NOHASHDIR="1")
    env.update(extra or {})
    return env


def capture(argv: Sequence[str | Path], *, cwd: Path | None = None,
            stdin: bytes | None = None, check: bool = True,
            env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run to the end with output kept as bytes. A failure is a Fail that
    carries what the program said."""
    words = [str(a) for a in argv]
    try:
        done = subprocess.run(words, cwd=cwd, input=stdin, env=env or environment(),
                              stdin=None if stdin is not None else subprocess.DEVNULL,
                              capture_output=True)
    except FileNotFoundError:
        raise Fail(f"{words[0]} is not installed") from None
    if check and done.returncode:
        raise Fail(f"{' '.join(words[:4])} failed (exit {done.returncode})",
                   done.stderr.decode(errors="replace").strip())
    return done


def text(argv: Sequence[str | Path], *, cwd: Path | None = None,
         env: Mapping[str, str] | None = None) -> str:
    return capture(argv, cwd=cwd, env=env).stdout.decode(errors="replace")


def logged(argv: Sequence[str | Path], log: Path, *, what: str, cwd: Path | None = None,
           env: Mapping[str, str] | None = None,
           count: re.Pattern[str] | None = None,
           progress: Callable[[int, int], None] = lambda done, total: None) -> int:
    """Run with output to `log`. Lines that match `count` are counted and
    reported; groups `done` and `total` of the pattern say it themselves.
    Returns the count. On failure the log's end is shown."""
    log.parent.mkdir(parents=True, exist_ok=True)
    done = 0
    with open(log, "w") as out:
        # Ended when we are killed, or the next call would build in the same
        # directory at the same time.
        child = subprocess.Popen(["setpriv", "--pdeathsig=TERM", *map(str, argv)], cwd=cwd,
                                 env=env or build_environment(),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, errors="replace")
        assert child.stdout
        try:
            for line in child.stdout:
                out.write(line)
                if count and (found := count.search(line)):
                    said = found.groupdict()
                    done = int(said.get("done", done + 1))
                    progress(done, int(said.get("total", 0)))
        except BaseException:
            child.terminate()
            child.wait()
            raise
        code = child.wait()
    if code:
        lines = log.read_text(errors="replace").splitlines()
        raise Fail(failure_reason(lines, what, log), "\n".join(lines[-20:]))
    return done


_ERROR_LINE = re.compile(r"\berror:|No space left|fatal error|\bERROR\b")


def failure_reason(lines: list[str], what: str, log: Path) -> str:
    """The first line that names an error, since make's last one never does."""
    named = next((f": {line.strip()}" for line in lines if _ERROR_LINE.search(line)), "")
    return f"{what} failed{named}  (whole log: {paths.shown(log)})"


def need_space(where: Path, mib: int, what: str) -> None:
    """Refuse before work starts that would fill the disk."""
    while not where.exists():
        where = where.parent
    free = shutil.disk_usage(where).free >> 20
    if free < mib:
        raise Fail(f"no disk space for {what}: {where} has {free} MiB free, {mib} MiB are needed")


def jobs() -> int:
    """JOBS= or one per CPU."""
    value = os.environ.get("JOBS") or str(len(os.sched_getaffinity(0)))
    if not value.isdigit() or int(value) < 1:
        raise Fail(f"JOBS={value}: a number, 1 or more", code=2)
    return int(value)


def chosen(variable: str, there: Iterable[str]) -> list[str]:
    """The names in an environment variable, separated by blanks; all without it."""
    names = list(there)
    wanted = os.environ.get(variable, "").split() or names
    for name in wanted:
        if name not in names:
            raise Fail(f"{variable}={name}: there are {', '.join(names)}", code=2)
    return wanted
