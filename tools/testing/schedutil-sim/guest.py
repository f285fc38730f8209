#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""schedutil in a guest: shared policies, loads and steps, kernels side by side.

policies: the random life of guest-policies.sh, for each size of a policy and each way
to set its frequency. loads: guest-loads.sh. steps: how long a CPU-bound task waits for
the highest frequency. All in deterministic time: equal arguments, equal numbers.
"""
from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[2]
sys.path.insert(0, str(HERE.parent / "virtual-silicon"))

from virtual_silicon import boot, cpio, initramfs, machine, paths  # noqa: E402
from virtual_silicon.errors import MissingError  # noqa: E402
from virtual_silicon.job import Job  # noqa: E402

PERF = Path("/usr/bin/perf")
ACPI = "intel_pstate=disable cpufreq.default_governor=schedutil"
PASSIVE = "intel_pstate=passive cpufreq.default_governor=schedutil"
LOADS = ("perf_pipe", "perf_messaging", "hackbench", "pipe_pair", "churn", "cyclic_100us",
         "cyclic_1ms", "cyclic_10ms", "rt_100us", "rt_1ms", "rt_10ms", "processes",
         "bursts")
MODES = ("step", "new", "return")
#: 5 % of 10 ms at 3.8 GHz
LIGHT_STEPS = 59000


def guest(options: argparse.Namespace, name: str, machine_name: str, cpus: int,
          kernel: str, script: str, append: str, job_more: bytes = b"") -> str:
    """What the script says in the guest."""
    job = Job()
    job.step("script", script)
    out = options.out / name
    limits = boot.Limits(boot=300, silence=options.limit, overall=options.limit)
    result = boot.run(boot.Config(
        machine=machine.load(machine_name), cpus=cpus, kernel=paths.kernel(kernel),
        qemu=paths.qemu(None), initramfs=initramfs.ensure(options.out, None), out=out,
        job=job.archive() + job_more, mode="deterministic", append=append, trace=False,
        limits=limits))
    (out / "script.txt").write_text(result.text("script") + "\n")
    return result.text("script")


def program(path: Path) -> bytes:
    """An archive with a program that the guest does not have, and its libraries."""
    if not path.exists():
        raise MissingError(f"{path} is not installed")
    archive = cpio.Archive()
    for file in (path, *initramfs.libraries(path)):
        archive.copy(file.resolve(), str(file).lstrip("/"))
    return archive.data()


def kernels(options: argparse.Namespace) -> list[tuple[str, str]]:
    """(what it is called, image)"""
    named = [name.partition("=") for name in options.kernel]
    return [(name, image or name) for name, _, image in named]


def policies(options: argparse.Namespace) -> int:
    script = (HERE / "guest-policies.sh").read_text()
    lost = 0
    for name, image in kernels(options):
        for how in options.coordination:
            for cpus in options.cpus:
                said = guest(options, f"{name}-{how}-{cpus}", str(HERE / f"shared-{how}.toml"),
                             cpus, image, f"SEED={options.seed} LENGTH={options.seconds} "
                             f"HZ={options.hz}\n{script}", ACPI)
                print(f"{name}, {cpus} CPUs, {how}:\n{said}", flush=True)
                lost += not said.endswith("complaints 0 stayed 0 lost 0")
    return int(lost > 0)


def middle(values: list[float]) -> str:
    return f"{statistics.median(values):g} ({min(values):g} to {max(values):g})"


def loads(options: argparse.Namespace) -> int:
    """Medians of calls, computed, sent; median and range of the result."""
    script = (HERE / "guest-loads.sh").read_text()
    rows: dict[str, dict[str, list[list[float]]]] = {}
    for name, image in kernels(options):
        said = guest(options, f"loads-{name}", "sapphire-rapids", 4, image,
                     f"REPEAT={options.repeat} LOADS='{' '.join(options.load)}'\n{script}",
                     PASSIVE, program(PERF))
        for line in said.splitlines():
            load, *words = line.split()
            if load in LOADS and len(words) == 4:
                rows.setdefault(load, {}).setdefault(name, []).append(
                    [float(word) for word in words])
            else:
                print(f"{name}: {line}")
    for load, found in rows.items():
        for name, values in found.items():
            result, calls, computed, sent = zip(*values)
            print(f"{load:15} {name:8} calls {statistics.median(calls):6g} "
                  f"computed {statistics.median(computed):6g} sent {middle(list(sent)):18} "
                  f"result {middle(list(result))}")
    return 0


def steps(options: argparse.Namespace) -> int:
    """ms until the highest frequency is asked for and kept, and, after 300 ms, less."""
    script = "\n".join(
        f"echo {mode}; vs-rise -c 1 -m {mode} -r 38 -f -n {options.repeat} -k 12 -b 300 "
        f"-w {LIGHT_STEPS}" for mode in MODES)
    for name, image in kernels(options):
        mode, found = "", {}
        for line in guest(options, f"steps-{name}", "sapphire-rapids", 2, image, script,
                          PASSIVE).splitlines():
            if line in MODES:
                mode = line
            else:
                found.setdefault(mode, []).append([float(word) for word in line.split()])
        for mode, values in found.items():
            first, kept, fall = zip(*values)
            print(f"{mode:7} {name:8} first {middle(list(first)):28} "
                  f"kept {middle(list(kept)):28} fall {middle(list(fall))}", flush=True)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["policies", "loads", "steps"])
    parser.add_argument("--kernel", nargs="+", default=["patched"], metavar="NAME[=IMAGE]",
                        help="patched, base, or a name and the path of a bzImage")
    parser.add_argument("--out", type=Path, default=TOP / "build/schedutil-guest")
    parser.add_argument("--limit", type=float, default=7200,
                        help="host seconds after which a guest counts as hung")
    group = parser.add_argument_group("policies")
    group.add_argument("--seed", type=int, default=1)
    group.add_argument("--seconds", type=int, default=600, help="virtual, of each guest")
    group.add_argument("--cpus", type=int, nargs="+", default=[2, 4, 8])
    group.add_argument("--coordination", nargs="+", choices=["any", "all"],
                       default=["any", "all"])
    group.add_argument("--hz", type=int, default=250, help="of the kernel")
    group = parser.add_argument_group("loads and steps")
    group.add_argument("--repeat", type=int, default=20)
    group.add_argument("--load", nargs="+", default=list(LOADS), choices=LOADS)
    return parser.parse_args()


def main() -> int:
    options = parse()
    return {"policies": policies, "loads": loads, "steps": steps}[options.what](options)


if __name__ == "__main__":
    sys.exit(main())
