# SPDX-License-Identifier: GPL-2.0
"""Debian's Python and cpuwhy for guests, without the packages that idle and freq need."""

from __future__ import annotations

import io
import os
import re
import subprocess
import zipfile
from pathlib import Path

from .. import paths
from .initramfs import Item

PYTHON = Path("/usr/bin/python3.11")
POWER = paths.ROOT / "tools/power"
#: All that cpuwhy takes of the library, now or later.
IMPORTS = """\
import importlib, pkgutil, runpy, site, sys
import encodings.ascii, encodings.latin_1, gzip, tomllib
import cpuwhy
for module in pkgutil.iter_modules(cpuwhy.__path__, "cpuwhy."):
    if module.name not in ("cpuwhy.__main__", "cpuwhy.plot", "cpuwhy.show"):
        importlib.import_module(module.name)
for module in sys.modules.values():
    print(getattr(module, "__file__", None))
"""


def items(out: Path) -> list[Item]:
    """The interpreter, its library in a zip, cpuwhy; nothing where Debian 12's is not."""
    if not PYTHON.exists():
        return []
    said = subprocess.run([PYTHON, "-c", IMPORTS], env=os.environ | {"PYTHONPATH": str(POWER)},
                          capture_output=True, text=True, check=True).stdout
    found = [Item("package", str(PYTHON), "/usr/bin/python3", "python3.11-minimal")]
    whole = io.BytesIO()
    with zipfile.PyZipFile(whole, "w") as archive:
        for path in map(Path, sorted(set(said.split()))):
            if path.suffix == ".so":
                found.append(Item("package", str(path), str(path), "libpython3.11-stdlib"))
            elif path.suffix == ".py" and POWER not in path.parents:
                archive.writepy(str(path), re.sub(r"^/usr/lib/python3\.11/", "",
                                                  f"{path.parent}/"))
    out.mkdir(parents=True, exist_ok=True)
    zipped = out / "python311.zip"
    zipped.write_bytes(whole.getvalue())
    found.append(Item("own", str(zipped), "usr/lib/python311.zip"))
    # The program looks for its package beside the directory that it is in.
    found.append(Item("own", str(POWER / "cpuwhy/cpuwhy"), "usr/bin/cpuwhy"))
    for path in sorted((POWER / "cpuwhy").glob("*.py")):
        found.append(Item("own", str(path), f"usr/cpuwhy/{path.name}"))
    return found
