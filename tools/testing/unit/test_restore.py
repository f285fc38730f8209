# SPDX-License-Identifier: GPL-2.0
"""Scripts that switch idle states set back what they changed, whatever ends them.

They run on a copy of the files in sysfs that they use. KERNEL_TREE names another tree than
build/linux.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import units

TREE = Path(os.environ.get("KERNEL_TREE", units.LINUX))
SCRIPTS = ["tools/power/c02-bench/c02-bench", "tools/testing/selftests/intel_idle/states.sh",
           "tools/testing/selftests/sched_pairs/pairs.sh"]

pytestmark = pytest.mark.skipif(not units.LINUX.is_dir(), reason="no build/linux (make tree)")

FILES = {
    **{f"cpu/cpu{cpu}/cpuidle/state{i}/{key}": value
       for cpu in (0, 1) for i, (name, disabled) in enumerate(
           [("POLL", 0), ("C0.2", 0), ("C1", 1)])
       for key, value in (("name", name), ("disable", disabled), ("latency", i), ("usage", 0),
                          ("time", 0))},
    "cpu/cpu1/cpufreq/scaling_min_freq": 900, "cpu/cpu1/cpufreq/scaling_max_freq": 3000,
    "cpu/cpu1/cpufreq/cpuinfo_min_freq": 800, "cpu/cpu1/cpufreq/cpuinfo_max_freq": 3800,
    "cpu/cpu1/cpufreq/base_frequency": 2000,
    "cpu/cpufreq/policy0/scaling_governor": "schedutil",
    "cpu/cpuidle/current_driver": "intel_idle", "cpu/cpuidle/current_governor": "menu",
    "cpu/cpuidle/available_governors": "menu ladder",
    "cpu/umwait_control/enable_c02": 1, "cpu/umwait_control/max_time": 100000,
    "module/intel_idle/parameters/c02": "on", "module/intel_idle/parameters/states_off": 0,
    "module/umwait/parameters/idle_poll": "off",
    "cpuinfo": "cpu family\t: 6\nmodel\t: 143\nflags\t: waitpkg",
}
#: The script waits where most is changed.
PROGRAMS = {"id": "echo 0", "conversations": '[ "$(cat {0}/cpu/cpu1/cpuidle/state0/disable)" = 0 ] '
                                            '|| {{ : >{0}/waits; exec {1} 60; }}; echo 1',
            "hackbench": "exit 1", "wult": "exit 1",
            "cyclictest": ": >{0}/waits; exec {1} 60",
            "sleep": '[ "$(cat {0}/cpu/cpuidle/current_governor)" = menu ] || '
                     '{{ : >{0}/waits; exec {1} 60; }}'}


def contents(root: Path) -> dict[str, str]:
    return {name: (root / name).read_text().strip() for name in FILES}


def begin(script: str, root: Path) -> subprocess.Popen[bytes]:
    for name, value in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{value}\n")
    (root / "bin").mkdir()
    for name, text in PROGRAMS.items():
        (root / "bin" / name).write_text(f"#!/bin/sh\n{text.format(root, '/bin/sleep')}\n")
        (root / "bin" / name).chmod(0o755)
    (root / "kselftest").symlink_to(units.LINUX / "tools/testing/selftests/kselftest")
    text = (units.TOP / script).read_text() if "/power/" in script else (TREE / script).read_text()
    for real, copy in (("/sys/devices/system/cpu", "cpu"), ("/sys/module", "module"),
                       ("/proc/cpuinfo", "cpuinfo"), ("/dev/cpu_dma_latency", "absent")):
        text = text.replace(real, f"{root}/{copy}")
    (root / "test").mkdir()
    (root / "test/script").write_text(text)
    (root / "test/conversations").symlink_to(root / "bin/conversations")
    # What is ignored when a shell begins it cannot trap; nohup ignores SIGHUP.
    return subprocess.Popen(["env", "--default-signal", "sh", root / "test/script"],
                            stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, start_new_session=True,
                            env={"PATH": f"{root}/bin:{os.environ['PATH']}"})


@pytest.mark.parametrize("end", ["HUP", "INT", "PIPE", "TERM"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_all_is_set_back(script: str, end: str, tmp_path: Path) -> None:
    changing = ("cpuidle/current_governor" if "states" in script else
                "cpu1/cpuidle/state0/disable" if "pairs" in script else
                "cpu1/cpuidle/state1/disable")
    with begin(script, tmp_path) as child:
        before = {name: str(value) for name, value in FILES.items()}
        file, deadline = f"cpu/{changing}", time.monotonic() + 60
        # A signal that comes while the shell starts a program may be lost in the child.
        while contents(tmp_path)[file] in ("", before[file]) or not (tmp_path / "waits").exists():
            assert child.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        os.killpg(child.pid, signal.Signals[f"SIG{end}"])
        try:
            assert child.wait(60)
        finally:
            child.kill()
    assert contents(tmp_path) == before
