# SPDX-License-Identifier: GPL-2.0
"""Instructions and registers by the manuals' rules, asked by programs without a kernel.

The programs are the emulator's own tests (tests/tcg/x86_64/system/virtual-silicon-*.c
in its source); each check of theirs prints a line of TAP.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from virtual_silicon import paths
from virtual_silicon.guest import boot
from virtual_silicon.machine import machine, qapi

#: Program, machine: each rule depends on what the part has.
RUNS = [
    ("mwait", "sapphire-rapids"), ("mwait", "epyc-7763"),
    ("umwait", "sapphire-rapids"), ("umwait", "platinum-8180"),	# without WAITPKG
    ("msr", "sapphire-rapids"), ("msr", "sapphire-rapids-hwp"),
    ("msr", "epyc-7742"), ("msr", "epyc-7763"),		# without and with CPPC
    ("reset", "sapphire-rapids-hwp"), ("reset", "epyc-7763"),
]


def run(request: pytest.FixtureRequest, tmp_path: Path, program: str, name: str,
        mode: str) -> str:
    """What the program said on a guest of two CPUs; it must end by itself."""
    m = machine.load(name)
    qemu = paths.qemu(request.config.getoption("qemu"))
    guest = paths.need(qemu.with_name(f"virtual-silicon-{program}"), "make qemu builds it")
    said = tmp_path / "said"
    command = [
        str(qemu), *boot.cpu_options(m, 2, mode),
        "-object", qapi.option(m, 2, time=mode),
        "-M", "q35", "-nodefaults", "-no-user-config", "-display", "none", "-m", "64",
        "-chardev", f"file,id=out,path={said}", "-device", "isa-debugcon,chardev=out",
        "-device", "isa-debug-exit,iobase=0xf4,iosize=4", "-kernel", str(guest)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.stderr == ""
    return said.read_text()


@pytest.mark.parametrize("mode", boot.MODES)
@pytest.mark.parametrize("program,name", RUNS, ids=[f"{p}-{m}" for p, m in RUNS])
def test_rules(request: pytest.FixtureRequest, tmp_path: Path, program: str, name: str,
               mode: str) -> None:
    # Where time is the host's, a busy host lets interrupts come before the deadlines of UMWAIT.
    for _ in range(3 if (program, mode) == ("umwait", "free") else 1):
        said = run(request, tmp_path, program, name, mode)
        if "not ok" not in said:
            break
    assert re.findall("^not ok.*", said, re.M) == []
    assert said.splitlines()[-1] == f"1..{len(re.findall('^ok', said, re.M))}"
