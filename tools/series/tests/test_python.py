# SPDX-License-Identifier: GPL-2.0
"""What an interpreter needs: pyproject.toml, Debian's packages and the imports agree."""
from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib

import pytest

from .. import git, guest, paths
from ..fetch import packages

PROJECT = tomllib.loads((paths.TOP / "pyproject.toml").read_text())["project"]
OURS = {"series", "cpuwhy", "virtual_silicon"}
OPTIONAL = ("plots", "test", "live")
#: A module that is not called as its package.
NAMES = {"elftools": "pyelftools"}


def needed(*groups: str) -> set[str]:
    """Of the optional groups, or what is always needed."""
    lists = [PROJECT["optional-dependencies"][name] for name in groups] or [
        PROJECT["dependencies"]]
    return {re.split(r"[^\w-]", line)[0] for names in lists for line in names}


def sources() -> dict[str, str]:
    names = git.run("ls-files", "-z", "tools/*.py", repo=paths.TOP).rstrip("\0").split("\0")
    return {name: (paths.TOP / name).read_text() for name in names}


def imports() -> list[tuple[str, str, str]]:
    """File, module and name of each import of another project in the packages of ours."""
    found = []
    for file, text in sources().items():
        if not OURS & set(file.split("/")):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found += [(file, node.module, alias.name) for alias in node.names]
            elif isinstance(node, ast.Import):
                found += [(file, alias.name, "") for alias in node.names]
    return [(file, module, name) for file, module, name in found
            if module.split(".")[0] not in sys.stdlib_module_names | OURS]


def test_imports_are_declared():
    names = {module.split(".")[0] for _, module, _ in imports()}
    assert {NAMES.get(name, name) for name in names} == needed() | needed(*OPTIONAL)


def test_nothing_changes_where_imports_come_from():
    """pyproject.toml says it to pytest, mypy and pip, and the Makefile to the rest."""
    assert not [name for name, text in sources().items() if re.search(r"\bsys\.path\b", text)]


def test_imports_are_public():
    assert not [line for line in imports() if re.search(r"(^|\.)_", ".".join(line[1:]))]


def test_debian_has_what_is_declared():
    offered = {name for group in packages.load().values() for name in group}
    assert {f"python3-{name}" for name in needed() | needed(*OPTIONAL)} <= offered


def test_version_is_that_of_the_changes():
    assert f"\n## {PROJECT['version']}\n" in (paths.TOP / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("code, package, said", [
    (2, "rich", ["cpuwhy", "idle", "trace"]),
    (3, "matplotlib", ["virtual_silicon", "plot", "trace", "x.png"])])
def test_missing_package_is_one_line(code, package, said, tmp_path):
    """-S: the interpreter alone, without what is installed."""
    (tmp_path / "trace").write_text("# virtual-silicon trace 1\n0 F 0 2000000\n9 F 0 800000\n")
    done = subprocess.run([guest.PYTHON, "-S", "-m", *said], capture_output=True, text=True,
                          cwd=tmp_path, env={"PYTHONPATH": f"{paths.PYTHONPATH}:{paths.POWER}"})
    assert (done.returncode, done.stderr.splitlines()) == (code, [
        f"{said[0].replace('_', '-')}: {package} is not installed: "
        f"apt-get install python3-{package}, or pip install {package}"])
