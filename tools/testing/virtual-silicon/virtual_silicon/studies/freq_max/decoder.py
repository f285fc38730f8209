# SPDX-License-Identifier: GPL-2.0
"""The kernel's own decoder of turbo tables, compiled for user space."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from ... import paths

HERE = Path(__file__).resolve().parent
#: Of a tree with a mistake in it, for tools/testing/mutants.
CPU = Path(os.environ.get("INVARIANCE_TREE", paths.ROOT)) / "arch/x86/kernel/cpu"
TREE = paths.BUILD / "linux"
DATA = paths.SILICON / "data/turbo.csv"

#: Headers of the base; all others that the sources name are in kernel.h.
HEADERS = ("asm/intel-family.h", "asm/msr-index.h")


def build(where: Path) -> Path:
    """The decoder; headers of the kernel's that it does not need are empty."""
    sources = [CPU / "turbo_table.c", CPU / "turbo_table.h"]
    for name in re.findall(r"#include <(.+)>", "".join(s.read_text() for s in sources)):
        header = where / name
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text("")
    for name in HEADERS:
        text = (TREE / "arch/x86/include" / name).read_text()
        (where / name).write_text(re.sub(r"#include .*", "", text))
    program = where / "decode"
    subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-include", HERE / "kernel.h",
                    f"-I{where}", f"-I{CPU}", f"-I{HERE}", "-o", program,
                    HERE / "decode.c", CPU / "turbo_table.c"], check=True)
    return program
