# SPDX-License-Identifier: GPL-2.0
"""make live without a kernel: the checks find what is planted, and the tool, on a kernel that is a
directory, refuses, switches, and goes on after kill -9 at any step."""
from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from virtual_silicon.errors import Fail

pytest.importorskip("elftools")

from ..check import live as check  # noqa: E402
from ..check import live_guest as guests  # noqa: E402
from ..compile import live as build  # noqa: E402
from ..patchqueue import live as parts  # noqa: E402

RELEASE = "7.3.4+deb13-amd64"
BUILD_ID = "ab" * 20
PARTS = list(parts.PARTS)

#: Time passes while the tool sleeps: transitions end, and at step KILL the tool is killed.
STEP = """echo >>$TOP/steps
[ "$(wc -l <$TOP/steps)" != "$KILL" ] || kill -9 $PPID
"""
PROGRAMS = {
    "id": "echo ${ID:-0}",
    "uname": f"echo {RELEASE}",
    "systemd-detect-virt": "exit ${CONTAINER:-1}",
    "sleep": STEP + """for d in $TOP/sys/kernel/livepatch/*; do [ -d $d ] || continue
case $(cat $d/enabled) in 1) [ -n "$STUCK" ] || echo 0 >$d/transition ;; *) rm -r $d ;; esac
done""",
    "insmod": STEP + """m=$(basename $1 .ko | tr - _); mkdir $TOP/sys/module/$m || exit 1
mkdir $TOP/sys/kernel/livepatch/$m; cd $TOP/sys/kernel/livepatch/$m
echo 1 >transition; echo 1 >enabled
""" + STEP,
    "rmmod": STEP + "[ ! -d $TOP/sys/kernel/livepatch/$1 ] && rmdir $TOP/sys/module/$1\n" + STEP,
}


@pytest.fixture
def machine(tmp_path):
    for name in ("bin", "run", "sys/kernel/livepatch", "sys/kernel/security", "sys/module",
                 "proc/sys/kernel", f"modules/{RELEASE}"):
        (tmp_path / name).mkdir(parents=True)
    for name, text in PROGRAMS.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\nTOP={tmp_path}\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "proc/sys/kernel/tainted").write_text("0\n")
    (tmp_path / "sys/kernel/notes").write_bytes(
        bytes.fromhex("0400000014000000030000004700") + b"rest"
        + bytes.fromhex("040000001400000003000000474e5500" + BUILD_ID) + b"\x07\0\0\0")
    (tmp_path / f"modules/{RELEASE}/build-id").write_text(BUILD_ID + "\n")
    return tmp_path


def tool(top: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    (top / "steps").unlink(missing_ok=True)
    return subprocess.run(
        [parts.GLUE / "x86-dvfs-live", *words], text=True, capture_output=True,
        env={"PATH": f"{top}/bin:/usr/bin:/bin", "X86_DVFS_LIVE_TOP": str(top),
             "X86_DVFS_LIVE_DIR": str(top / "modules"), **env})


def states(top: Path) -> list[str]:
    said = tool(top, "status").stdout.splitlines()
    return [line.partition(": ")[2] for line in said[:len(PARTS)]]


def test_on_and_off(machine):
    assert tool(machine, "on").stdout.splitlines() == [f"{part}: on" for part in PARTS]
    assert states(machine) == ["on"] * len(PARTS)
    assert not tool(machine, "on").stdout
    assert tool(machine, "off").stdout.splitlines() == [f"{part}: off" for part in PARTS[::-1]]
    assert not list((machine / "sys/module").iterdir())


def test_one_part(machine):
    assert tool(machine, "on", "teo").stdout == "teo: on\n"
    assert states(machine) == ["on" if part == "teo" else "off" for part in PARTS]
    assert "no part nonsense" in tool(machine, "off", "nonsense").stderr


@pytest.mark.parametrize("what", ["root", "container", "release", "build", "lockdown", "livepatch"])
def test_refusals_are_one_line_and_change_nothing(machine, what):
    env = {"root": {"ID": "1000"}, "container": {"CONTAINER": "0"}}.get(what, {})
    if what == "release":
        (machine / f"modules/{RELEASE}").rename(machine / "modules/7.3.5+deb13-amd64")
    elif what == "build":
        (machine / f"modules/{RELEASE}/build-id").write_text("cd" * 20 + "\n")
    elif what == "lockdown":
        (machine / "sys/kernel/security/lockdown").write_text("none [integrity] confidentiality\n")
    elif what == "livepatch":
        (machine / "sys/kernel/livepatch").rmdir()
    done = tool(machine, "on", **env)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and not done.stdout
    assert what in done.stderr or "modules for" in done.stderr and "7.3.5" in done.stderr
    assert "nothing was changed" in done.stderr and not list((machine / "sys/module").iterdir())


@pytest.mark.parametrize("first", ["on", "off"])
def test_killed_at_any_step(machine, first):
    for step in range(1, 40):
        if first == "off":
            tool(machine, "on")
        if tool(machine, first, KILL=str(step)).returncode != -9:
            assert step > 2 * len(PARTS)
            break
        assert set(states(machine)) <= {"on", "off", "loaded", "switching on", "switching off"}
        assert tool(machine, "off").returncode == 0
        assert states(machine) == ["off"] * len(PARTS)
        assert not list((machine / "sys/module").iterdir())
    else:
        raise AssertionError("it never ended")


def test_what_a_killed_call_has_started_is_waited_for(machine):
    lock = machine / "run/x86-dvfs-live.lock"
    with subprocess.Popen(["flock", lock, "sh", "-c", "echo; sleep 1"],
                          stdout=subprocess.PIPE) as child:
        assert child.stdout and child.stdout.readline()
        assert tool(machine, "on", "teo").stdout == "teo: on\n"


def test_a_task_that_does_not_let_it_switch(machine):
    done = tool(machine, "on", "choice", STUCK="1")
    assert done.returncode == 1 and "it is off" in done.stderr
    assert states(machine) == ["off"] * len(PARTS)


def compiled(where: Path, name: str, text: str) -> Path:
    (where / f"{name}.c").write_text(text)
    subprocess.run(["gcc", "-O2", "-fno-pic", "-mcmodel=kernel", "-fcf-protection=none", "-c",
                    "-o", where / f"{name}.o", where / f"{name}.c"], check=True)
    return where / f"{name}.o"


CODE = """int base; extern int other(int);
int __attribute__((noinline)) twice(int a) { return a * 2 + base; }
int patched(int a) { return twice(a) + other(a); }
"""


def kernel(where: Path) -> check.Kernel:
    stock = [compiled(where, "stock", CODE),
             compiled(where, "more", "int other(int a) { return a; }")]
    subprocess.run(["ld", "-e0", "-Ttext=0x400000", "-o", where / "vmlinux", *stock], check=True)
    return check.Kernel(where / "vmlinux")


def test_same_finds_a_difference(tmp_path):
    stock = kernel(tmp_path)
    assert stock.same(compiled(tmp_path, "same", CODE)).startswith("2 functions")
    for planted in (CODE.replace("a * 2", "a * 3"), CODE.replace("twice(a) +", "twice(a) -"),
                    CODE.replace("patched", "unknown")):
        with pytest.raises(Fail, match="1 of 2"):
            stock.same(compiled(tmp_path, "planted", planted))


def test_fits_finds_a_symbol_that_is_not_there_once(tmp_path):
    stock = kernel(tmp_path)
    text = 'extern int x asm("\\".klp.sym.vmlinux.%s,0\\""); int f(void) { return x; }'
    assert stock.fits(compiled(tmp_path, "module", text % "twice")).startswith("1 symbols")
    with pytest.raises(Fail, match="gone"):
        stock.fits(compiled(tmp_path, "module", text % "gone"))


@pytest.mark.parametrize("planted", ["*hook = mine;", "table[0] = mine;", ""])
def test_pointers_finds_one_that_outlives_the_module(tmp_path, planted):
    module = compiled(tmp_path, "module", f"""
typedef int fn(int); extern fn **hook; fn *table[1];
int __attribute__((noinline)) mine(int a) {{ return a + (long)&table; }}
int start(int a) {{ {planted} return mine(a) + 1; }}
int last(int a) {{ return mine(a); }}""")
    if not planted:
        assert check.pointers(module).startswith("0")
        return
    with pytest.raises(Fail, match=r"mine\(\) in start"):
        check.pointers(module)


def test_lines_keep_their_numbers(tmp_path):
    old = [f"line {n}\n" for n in range(1, 31)]
    new = ["first\n", *old[:4], "more\n", "more\n", *old[4:9], *old[12:19], "other\n", *old[20:]]
    (tmp_path / "a").write_text("".join(old))
    (tmp_path / "b").write_text("".join(new))
    number = 1
    for line in build.with_lines(tmp_path / "a", tmp_path / "b").splitlines():
        if line.startswith("#line "):
            number = int(line.split()[1])
            continue
        assert not line.startswith("line ") or line == f"line {number}"
        number += 1


def test_edits_and_functions():
    text = ("/* f() */\nstatic int f(int a,\n\t\t int b)\n{\n\treturn 1;\n}\n\n"
            "int g(void)\n{\n\tf(1, 2);\n}\n")
    assert parts.function(text, "f").startswith("static int f(") and "g(void)" not in \
        parts.function(text, "f")
    assert parts.edited(text, ("return 1", "return 2")).count("return 2") == 1
    for old in ("f(", "nothing"):
        with pytest.raises(Fail, match="not once"):
            parts.edited(text, (old, ""))


def test_a_switch_that_fails_or_that_is_missing_is_found():
    good = "took on 1.0 2.5\ntook off 3.0 4.0\nteo: off\ntaint: 0 (and so on)"
    assert guests.took(good, 2) == (["1 times on: median 1.50 s, longest 1.50 s",
                                     "1 times off: median 1.00 s, longest 1.00 s"], [])
    for planted, wanted in (("failed: round 3, on teo", 2), ("teo: switching off", 2),
                            ("[ 9.1] WARNING: CPU: 0", 2), ("teo: off", 3)):
        assert len(guests.took(f"{good}\n{planted}", wanted)[1]) == 1
