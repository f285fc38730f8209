# SPDX-License-Identifier: GPL-2.0
"""A guest in deterministic time whose wake-ups are scripted, and its recording.

vs-wake makes so many wake-ups of CPU 1 by its own timer, by the HPET and by another CPU.
trace-cmd records them as `cpuwhy record` would; the host gets trace.dat, the idle states
and their counters, and the trace of the model.
"""
from __future__ import annotations

import base64
import gzip
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from cpuwhy import doctor, record, states
from virtual_silicon import paths
from virtual_silicon.guest import boot, initramfs
from virtual_silicon.guest.job import Job
from virtual_silicon.machine import machine
from virtual_silicon.readers.trace import Trace
from virtual_silicon.readers.trace import read as read_trace

TRACE_CMD = Path("/usr/bin/trace-cmd")
MARK = "0x400000f0"
BEGIN, END = 100, 101
#: How many wake-ups of each kind; no two alike.
TIMERS, DEVICES, SIGNALS = 61, 47, 53
CPU, CALLER = 1, 2

#: What states.py reads of a machine, one line a value.
COUNTERS = ("grep -s '' $CPU/cpu[0-9]*/cpuidle/state[0-9]*/[abdlnrtu][a-z]*"
            " $CPU/cpu[0-9]*/cpufreq/scaling_governor $CPU/cpu[0-9]*/cpufreq/*_max_freq"
            " /sys/kernel/debug/x86/freq_invariance >/tmp/{0}")


def _record(load: str, kind: str) -> str:
    """Snapshot of sysfs, load between marks of the model, snapshot unless the load took it.
    The recording is not read before it has ended."""
    events = ((*record.FREQ, *record.FREQ_OPTIONAL) if kind == "freq"
              else (*record.IDLE, *record.OPTIONAL))
    wanted = [event.replace(":", "/") for event in events]
    filters = "\n".join(f"put '{text}' $T/events/{event.replace(':', '/')}/filter"
                        for event, text in record.FILTERS.items())
    return f"""
        chmod +x /job/trace-cmd; taskset -p 1 $$ >/dev/null
        T=/sys/kernel/tracing/instances/cpuwhy; mkdir $T || return 1
        put 0 $T/tracing_on; put mono $T/trace_clock; put 0 $T/options/overwrite
        put 20000 $T/buffer_size_kb
        {filters}
        for e in {' '.join(wanted)}; do [ ! -d $T/events/$e ] || put 1 $T/events/$e/enable; done
        {COUNTERS.format('before')}
        vs-msr 0 {MARK}={BEGIN}; put 1 $T/tracing_on
        {load}
        put 0 $T/tracing_on; vs-msr 0 {MARK}={END}
        [ -s /tmp/after ] || {{ {COUNTERS.format('after')}; }}
        LD_LIBRARY_PATH=/job /job/trace-cmd extract -B cpuwhy -o /tmp/trace.dat >&2 || return 1
        rm -f /tmp/trace.dat.*; ls -l /tmp >&2"""


LOAD = f"""
        vs-wake -m timer -c {CPU} -n {TIMERS} -w 200 -x 4000 >/dev/null || return 1
        vs-wake -m device -c {CPU} -n {DEVICES} -w 1000 -x 3000 >/dev/null || return 1
        vs-wake -m signal -c {CPU} -k {CALLER} -n {SIGNALS} -w 300 -x 3000 >/dev/null \
                || return 1
        sleep 10"""


#: Snapshots within the recording, when idle times of all CPUs have just ended as in record.py
_WAKE_ALL = ("for c in $CPU/cpu[0-9]*; do "
             "taskset $(printf %x $((1 << ${c##*cpu}))) true; done; ")


def between_snapshots(load: str) -> str:
    return (_WAKE_ALL + COUNTERS.format("before") + f"\n{load}\n"
            + _WAKE_ALL + COUNTERS.format("after"))


def job(load: str = LOAD, kind: str = "idle") -> bytes:
    listed = subprocess.run(["ldd", TRACE_CMD], capture_output=True, text=True, check=True).stdout
    libraries = [Path(p) for p in re.findall(r"=> (/\S+)", listed)]
    made = Job(files={p.name: p.read_bytes() for p in [TRACE_CMD, *libraries]
                      if not p.name.startswith("libc.")})
    made.step("record", _record(load, kind))
    made.step("governor", "cat $CPU/cpuidle/current_driver $CPU/cpuidle/current_governor_ro")
    if kind == "freq":
        made.step("log", "dmesg; grep -h '' /proc/version")
        made.step("cpuinfo", "cat /proc/cpuinfo")
    for name in ("before", "after"):
        made.step(name, f"cat /tmp/{name}")
    made.step("trace", "gzip -c /tmp/trace.dat | base64")
    return made.archive()


@dataclass
class Recorded:
    path: Path
    model: Trace
    result: boot.Result


def tree(root: Path, text: str) -> Path:
    """Files of a machine as they were, from lines "file:value"."""
    shutil.rmtree(root, ignore_errors=True)
    for line in text.splitlines():
        name, _, value = line.partition(":")
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as f:
            f.write(value + "\n")
    return root


def run(out: Path, kernel: Path, qemu: Path, load: str = LOAD, cpus: int = 4,
        append: str = "", kind: str = "idle", part: str = "sapphire-rapids",
        rate_limit: int = 0, faults: str = "", recipe: Path | None = None,
        overall: float = 400) -> Recorded:
    """@recipe: what the load needs beside the guest's own."""
    archive = initramfs.ensure(out / "guest", paths.selftests() if kernel != paths.kernel("base")
                               else None, recipe or ())
    broken = out / "faults"
    broken.write_text(faults)
    config = boot.Config(machine=machine.load(part), cpus=cpus, kernel=kernel,
                         qemu=qemu, initramfs=archive, out=out, job=job(load, kind),
                         mode="deterministic", append=append,
                         faults=broken if faults else None,
                         limits=boot.Limits(boot=120, silence=overall / 2, overall=overall))
    result = boot.run(config)
    path = out / "trace.dat"
    path.write_bytes(gzip.decompress(base64.b64decode(result.text("trace"))))
    driver, governor = result.text("governor").splitlines()
    before, after = (tree(out / "files" / name, result.text(name)) for name in ("before", "after"))
    about = states.Machine("6.12", "x86_64", driver, governor, 250, clock="mono",
                           base_khz=config.machine.tsc_khz, workload="scripted wake-ups",
                           with_tool="trace-cmd",
                           events=["power:cpu_idle", "power:cpu_idle_miss"],
                           states=states.difference(states.read_sysfs(before),
                                                    states.read_sysfs(after)))
    if kind == "freq":
        (after / "proc").mkdir()
        (after / "proc/cpuinfo").write_text(result.text("cpuinfo"))
        about.policies = {cpu: replace(policy, rate_limit=rate_limit)
                          for cpu, policy in states.read_policies(after).items()}
        about.turbo = states.read_turbo(after)
        about.skipped = states.growth(states.read_skipped(before), states.read_skipped(after))
        about.invariance = doctor.why_off(doctor.System(after, result.text("log")))
    about.write(record.sidecar(path))
    return Recorded(path, read_trace(result.trace or paths.RUN / "trace.txt"), result)
