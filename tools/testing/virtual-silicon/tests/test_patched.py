# SPDX-License-Identifier: GPL-2.0
"""The commands that boot the patched kernel."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from guests import Guests
from virtual_silicon import paths
from virtual_silicon.errors import GuestError
from virtual_silicon.guest import boot, initramfs


def command(config: pytest.Config, out: Path, *options: str,
            timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """The program as make calls it."""
    words = [sys.executable, "-m", "virtual_silicon", *options, f"--out={out}"]
    if qemu := config.getoption("--qemu"):
        words.append(f"--qemu={qemu}")
    words.append(f"--kernel={config.getoption('--patched-kernel')}")
    return subprocess.run(words, cwd=paths.ROOT / "tools/testing/virtual-silicon",
                          capture_output=True, text=True, timeout=timeout, check=False)


def test_demonstration(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """All tables come out, and their values agree with each other."""
    out = tmp_path / "run"
    done = command(pytestconfig, out, "run", "--cpus=2", "--time=deterministic",
                   "--seconds=0.5")
    assert done.returncode == 0, done.stderr
    machine, loads, idle, light, knobs = json.loads((out / "report.json").read_text()).values()
    said = dict(machine)
    assert said["machine"].startswith("sapphire-rapids: ") and said["CPUs"][0] == "2"
    assert said["frequency invariance"] == "on, ratio 1536/1024"
    assert said["  from the registers"]\
        == "1945 for 4 active cores, 1945 for 1, 1536 for all"
    assert "schedutil" in said["cpufreq"] and said["kernel warnings"] == "none"
    phases = {row[0].removesuffix(" CPU"): row[1:] for row in loads[1:] + knobs[1:]}
    assert len(phases) == 8
    for name, (*_, guest, model, _) in phases.items():
        assert float(guest) == pytest.approx(float(model), rel=0.01), name
    mhz = {name: float(row[3]) for name, row in phases.items() if row[3] != "-"}
    # schedutil raises the clock from lowest to highest within the load
    assert mhz["full: all 2 CPUs"] > 3000
    assert mhz["light: 20 % on each"] < 0.7 * mhz["full: all 2 CPUs"]
    assert mhz["full: no_turbo 1"] == pytest.approx(2000, rel=0.03)
    assert mhz["full: at most 1400 MHz"] == pytest.approx(1400, rel=0.03)
    assert mhz["light: performance"] == pytest.approx(3800, rel=0.01)
    assert phases["idle: C6 disabled"][-1] == "C1E" and phases["idle: idle"][-1] == "C6"
    assert idle[-1][0] == light[-1][0] == "C6" and float(idle[-1][-1]) > 90
    assert max(len(line) for line in done.stdout.splitlines() if line[:2] == "  ") <= 80
    for title in ("Machine", "Frequency and energy", "Idle states", "Knobs"):
        assert title in done.stdout


def test_command_output_and_status(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    done = command(pytestconfig, tmp_path / "run", "run", "--cmd=echo it \"works\"; exit 42")
    assert (done.returncode, done.stdout, done.stderr) == (42, "it works\n", "")


def test_panic_in_the_guest(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    done = command(pytestconfig, tmp_path / "run", "run",
                   "--cmd=echo c >/proc/sysrq-trigger")
    assert done.returncode == 1
    first, *console = done.stderr.splitlines()
    assert first.startswith("virtual-silicon: the guest's kernel panicked: sysrq")
    assert 3 < len(console) <= boot.TAIL_LINES
    assert all(line.startswith("  | ") for line in console)


def test_kernel_patches_itself_while_all_cpus_run(pytestconfig: pytest.Config,
                                                  tmp_path: Path) -> None:
    """A CPU that executes code from before the last change dies of "Oops: int3"."""
    done = command(pytestconfig, tmp_path / "run", "run",
                   "--cmd=cyclictest -q -t4 -a -i 1000 -D 600 >/dev/null & "
                   "for n in $(seq 25); do for on in 1 0; do "
                   "echo $on >/sys/kernel/tracing/events/sched/sched_switch/enable; done; done")
    assert (done.returncode, done.stderr) == (0, "")


def test_kernel_without_init(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    done = command(pytestconfig, tmp_path / "run", "run", "--cmd=true",
                   "--append=rdinit=/nowhere")
    assert done.returncode == 1 and "panicked" in done.stderr


def test_hang_in_the_guest(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    done = command(pytestconfig, tmp_path / "run", "run", "--cmd=sleep 600", "--limit=8")
    assert done.returncode == 1
    assert "8 s" in done.stderr.splitlines()[0]


def test_image_that_is_no_kernel(guests: Guests, tmp_path: Path) -> None:
    c = guests.config("patched-e3-1240-v5", initramfs.job({"run": b"#!/bin/sh\n"}))
    c.kernel, c.out = tmp_path / "bzImage", tmp_path / "out"
    c.kernel.write_bytes(b"not a kernel")
    c.limits = boot.Limits(boot=8)
    with pytest.raises(GuestError):
        boot.run(c)


@pytest.mark.parametrize("options,reason", [
    (["--machine=pentium"], "unknown machine 'pentium'"),
    (["--cpus=0"], "allows 1 to 56"), (["--cpus=57"], "allows 1 to 56"),
    (["--time=slow"], "invalid choice"), (["--seconds=0"], "not above 0")])
def test_bad_options_are_refused_before_booting(
        pytestconfig: pytest.Config, tmp_path: Path, options: list[str],
        reason: str) -> None:
    done = command(pytestconfig, tmp_path / "run", "run", *options)
    assert done.returncode == 2 and reason in done.stderr
    assert not (tmp_path / "run").exists()
