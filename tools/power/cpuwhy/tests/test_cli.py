# SPDX-License-Identifier: GPL-2.0
"""The program as a user calls it."""
from __future__ import annotations

import ast
import errno
import io
import json
import re
import shutil
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from cpuwhy import cli, probe
from cpuwhy.tests.scripted import Script

PROGRAM = Path(__file__).resolve().parents[1] / "cpuwhy"
COMMANDS = sorted(cli.subcommands(cli.parser()))


def run(*argv: object, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *map(str, argv)], input=text, capture_output=True, text=True)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    script = Script()
    for number in range(40):
        begin = number * 1000
        script.idle(begin, 2 if number % 2 else 1)
        script.add(begin + 90, 0, "swapper", 0, "irq:irq_handler_entry",
                   f"irq={number} name=a-device-with-a-rather-long-name-{number}")
        script.idle(begin + 95, -1)
        script.task(begin + 97, 0, 100 + number, f"task-with-a-name{number}")
    path = tmp_path / "a-trace"
    path.write_text(script.text())
    return path


def test_every_command_explains_itself() -> None:
    for command in COMMANDS:
        done = run(command, "--help")
        assert done.returncode == 0 and done.stdout.startswith(f"usage: cpuwhy {command}")


def test_fits_80_columns_without_colour(trace: Path, table: Path) -> None:
    done = run("idle", trace, trace, "--states", table, "--per-cpu")
    assert done.returncode == 0 and not done.stderr
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "side by side" in done.stdout


def test_doctor_breaks_all_but_commands() -> None:
    done = run("doctor", "--root", PROGRAM.parent / "tests/data/badly-set-up")
    assert done.returncode == 1
    # After each finding, of one line or more, the command that changes it is one line.
    assert max(len(line) for line in done.stdout.splitlines()
               if not line.startswith("      ")) <= 80
    assert any(len(line) > 80 for line in done.stdout.splitlines())


def test_standard_input(trace: Path, table: Path) -> None:
    assert (run("idle", "-", "--states", table, text=trace.read_text()).stdout.splitlines()[1:]
            == run("idle", trace, "--states", table).stdout.splitlines()[1:])


def test_json(trace: Path, table: Path) -> None:
    result, = json.loads(run("idle", trace, "--states", table, "--json").stdout)
    c6 = next(row for row in result["states"] if row["state"] == "C6")
    assert (c6["entered"], c6["too_deep"], c6["adequate"]) == (20, 20, 0)
    assert sum(row["count"] for row in result["wakers"]) == 40
    costs = [row["cost_ns"] for row in result["wakers"]]
    assert costs == sorted(costs, reverse=True) and costs[0] > costs[-1]


@pytest.mark.parametrize("suffix", ["png", "svg", "html"])
def test_plot(suffix: str, trace: Path, table: Path, tmp_path: Path) -> None:
    picture = tmp_path / f"picture.{suffix}"
    assert run("idle", trace, "--states", table, "--plot", picture).returncode == 0
    data = picture.read_bytes()
    if suffix == "png":
        assert data.startswith(b"\x89PNG")
    elif suffix == "svg":
        assert ElementTree.fromstring(data).tag.endswith("svg")
    else:
        assert data.startswith(b"<!DOCTYPE html>") and b"<svg" in data


BAD = [
    (["idle"], "nothing to read"),
    (["idle", "nowhere"], "nowhere: no such file"),
    (["idle", "TRACE", "--record", "1"], "not both"),
    (["idle", "TRACE", "--states", "nowhere"], "nowhere: No such file"),
    (["idle", "TRACE", "--states", sys.executable], "is not text"),
    (["idle", "TRACE", "--states", "."], ".: Is a directory"),
    (["idle", "TRACE", "--states", "TRACE"], "must be NAME EXIT_LATENCY TARGET_RESIDENCY in ns"),
    (["replay", "TRACE", "x"], "CONFIG_HZ of the recording is not known"),
]


@pytest.mark.parametrize("argv, reason", BAD)
def test_bad_input_gets_one_line(argv: list[str], reason: str, trace: Path) -> None:
    done = run(*(str(trace) if word == "TRACE" else word for word in argv))
    assert done.returncode == 2 and not done.stdout
    assert re.fullmatch(r"cpuwhy: .*\n", done.stderr) and reason in done.stderr


@pytest.mark.parametrize("said, written", [("y\n", True), ("n\n", False), ("", False)])
def test_probe_asks_before_it_writes(said: str, written: bool, tmp_path: Path,
                                     monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of the input, ctrl-D, is no."""
    terminal = io.StringIO(said)
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    monkeypatch.setattr(probe, "run", lambda seconds, tell: "text\n")
    assert cli.main(["probe", "-o", str(tmp_path / "file")]) == 0
    assert (tmp_path / "file").exists() == written


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(seconds: float, tell: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(probe, "run", full)
    assert cli.main(["probe"]) == 2
    assert capsys.readouterr().err == "cpuwhy: No space left on device\n"


@pytest.mark.parametrize("command", ["idle", "freq"])
def test_lost_events_are_told(command: str, trace: Path) -> None:
    """In the text and in the data, however good the rest is."""
    lines = trace.read_text().splitlines()
    lines.insert(20, "            perf 11088 [001]  1000.009500000: PERF_RECORD_LOST lost 45")
    lines.append("  x 1 [000] 1000.900000000: power:cpu_frequency: state=800000 cpu_id=0")
    trace.write_text("\n".join(lines) + "\n")
    assert "CPU 1 lost 45 events: its counts are too low" in run(command, trace).stdout
    data, = json.loads(run(command, trace, "--json").stdout)
    assert data["lost_events"] == {"1": 45}


@pytest.mark.parametrize("command, lacks", [("idle", "power:cpu_idle"),
                                            ("freq", "power:cpu_frequency")])
def test_a_trace_without_the_needed_events(command: str, lacks: str, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("  x 1 [000] 1000.900000000: sched:sched_waking: comm=x pid=1\n")
    done = run(command, path)
    assert done.returncode == 2 and not done.stdout
    assert re.fullmatch(r"cpuwhy: .*\n", done.stderr) and lacks in done.stderr


@pytest.mark.parametrize("argv", [["idle", "--plot", "x.jpg"], ["idle", "--record", "0"],
                                  ["nonsense"], []])
def test_wrong_usage(argv: list[str]) -> None:
    done = run(*argv)
    assert done.returncode == 2 and done.stderr.splitlines()[-1].startswith("cpuwhy")


def test_manual_page_has_every_option() -> None:
    page = run("man").stdout
    assert page.startswith(".TH CPUWHY 8")
    for command in COMMANDS:
        assert f"cpuwhy {command}" in page.replace("\\-", "-")
    for option in cli.options(cli.parser()):
        assert option.replace("-", "\\-") in page, option


def test_installed(tmp_path: Path) -> None:
    """As the package has it: the program, its table of parts, its manual page."""
    subprocess.run(["make", "-s", "-C", PROGRAM.parent, "install", f"DESTDIR={tmp_path}",
                    "PREFIX=/usr"], check=True)
    done = subprocess.run([tmp_path / "usr/sbin/cpuwhy", "doctor", "--root",
                           PROGRAM.parent / "tests/data/badly-set-up"],
                          capture_output=True, text=True)
    assert done.returncode == 1 and "real parts of this name and" in done.stdout
    assert (tmp_path / "usr/share/man/man8/cpuwhy.8").read_text().startswith(".TH CPUWHY 8")


def oldest() -> str | None:
    """Python 3.9, if it is installed."""
    found = shutil.which("python3.9")
    works = found and subprocess.run([found, "--version"], capture_output=True).returncode == 0
    return found if works else None


@pytest.mark.parametrize("interpreter", [sys.executable, oldest()])
def test_single_file(interpreter: str | None) -> None:
    """-S: without any package, and elsewhere."""
    if not interpreter:
        pytest.skip("there is no python3.9")
    subprocess.run(["make", "-s", "-C", PROGRAM.parent, "pyz"], check=True)
    file, data = PROGRAM.parents[3] / "build/cpuwhy.pyz", PROGRAM.parent / "tests/data"
    for argv, code, said in ((["explain", f"{data}/stuck.txt"], 0, "cTDP: level 1"),
                             (["doctor", "--root", f"{data}/badly-set-up"], 1, "have 1057"),
                             (["probe", "--help"], 0, "--seconds")):
        done = subprocess.run([interpreter, "-S", file, *argv], capture_output=True, text=True,
                              cwd="/")
        assert done.returncode == code and said in " ".join(done.stdout.split()), done.stderr


def test_the_grammar_is_that_of_python_3_9() -> None:
    for path in PROGRAM.parent.glob("*.py"):
        ast.parse(path.read_text(), str(path), feature_version=(3, 9))


def samples() -> list[tuple[list[str], str]]:
    """(arguments, the indented text under them) of the README's commands on recorded data."""
    readme = (PROGRAM.parent / "README.md").read_text()
    return [(re.split(r"\s+", argv), textwrap.dedent(text)) for argv, text in re.findall(
        r"`cpuwhy ([^`]*tests/data/[^`]*)`[^`]*?:\n\n((?:    .*\n|\n(?=    ))+)", readme)]


def test_readme_has_samples_of_each() -> None:
    assert [argv[0] for argv, _ in samples()] == ["explain", "doctor", "idle", "freq"]


@pytest.mark.parametrize("argv, sample", samples(), ids=[" ".join(a) for a, _ in samples()])
def test_readme_sample_is_what_it_prints(argv: list[str], sample: str) -> None:
    """In its order; only where there is an ellipsis lines are left out."""
    done = subprocess.run([PROGRAM, *argv], capture_output=True, text=True, cwd=PROGRAM.parent)
    printed = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
    for part in filter(None, sample.split("…\n")):
        _, found, printed = printed.partition(part)
        assert found, f"not printed, but in README.md:\n{part}\nprinted:\n{done.stdout}"
