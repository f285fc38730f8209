# SPDX-License-Identifier: GPL-2.0
"""make live-test: what make live made, on Debian's unmodified kernel in virtual silicon."""
from __future__ import annotations

import os
import re
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from virtual_silicon.errors import Fail
from virtual_silicon.guest import boot, distribution, initramfs, python
from virtual_silicon.guest.job import Job
from virtual_silicon.guest.pool import Guest, Guests
from virtual_silicon.lab import plan, store
from virtual_silicon.loads import RECIPE
from virtual_silicon.machine import machine
from virtual_silicon.progress import say

from .. import paths, proc
from ..fetch import aptget
from ..patchqueue import live as parts
from .testrun import Count

TOOL = parts.GLUE / "x86-dvfs-live"
FLOCK = initramfs.Item("package", "/usr/bin/flock", "usr/bin/flock", "util-linux")
MACHINE, PASSIVE = "sapphire-rapids", "intel_pstate=passive"
COMMON = """export X86_DVFS_LIVE_DIR=/job/live; live=/job/x86-dvfs-live
governors() { put $1 $CPU/cpufreq/policy*/scaling_governor; }
# What no switch may leave in the log
clean() { ! dmesg | grep -E 'WARNING|BUG:|Oops|stall|lockup|hung_task'; }
"""
#: Rows of the lab, in each column.
LOADS = ("hop:n=16", "hop:w=60", "hop:p=500", "turns:pipe", "busy:step", "busy:new", "messages:3",
         "tbench:1", "tbench:4", "gitsource:4")
SEEDS = 2
#: On and off while tasks come and go, CPUs leave and governors change; each ninth
#: is killed, so that it is another part each time.
SWITCH = """governors schedutil
( while :; do hackbench -g 1 -l 20 >/dev/null; sleep 1; done ) & load=$!
( while :; do for cpu in 2 3; do put 0 $CPU/cpu$cpu/online; sleep 2; put 1 $CPU/cpu$cpu/online
	governors performance; sleep 1; governors schedutil; done; done ) 2>/dev/null & churn=$!
now() { cut -d' ' -f1 /proc/uptime; }
for round in $(seq $ROUNDS); do for do in on off; do
	set -- $(echo $PARTS | tr ' ' '\\n' | sed -n "$((round % 4 + 1))p")
	if [ $((round % 9)) = 8 ]; then
		$live $do $1 >/dev/null 2>&1 & sleep 0.$((round / 10)); kill -9 $! 2>/dev/null
	fi
	from=$(now); $live $do $1 >/dev/null || echo "failed: round $round, $do $1"
	[ $((round % 9)) = 8 ] || echo "took $do $from $(now)"
done; done
kill $load $churn; $live status; clean
"""
#: The same while all CPUs are busy without a pause.
LOADED = """governors schedutil
now() { cut -d' ' -f1 /proc/uptime; }
under() {
	name=$1; shift; setsid "$@" >/tmp/load 2>&1 & load=$!; sleep 0.5
	for round in 1 2; do for part in choice freq schedutil; do for do in on off; do
		from=$(now); $live $do $part >/dev/null || echo "failed: $name, $do $part"
		echo "took $name $from $(now)"
	done; done; done
	kill -0 $load || cat /tmp/load; kill -9 -$load; sleep 0.5
}
under hackbench hackbench -g 1 -l 1000000
under stress-ng stress-ng --cpu 4 --cpu-method int64 --switch 2 --fork 2 --vm 1 --vm-bytes 16M
sh /usr/lib/vs/kernbench.sh new 1 16
under gcc sh -c 'while :; do sh /usr/lib/vs/kernbench.sh make 4; done'
$live status; clean
"""
#: Debian's package ovmf, and what firmware of machines with Microsoft's keys starts.
OVMF = Path("/usr/share/OVMF")
SIGNED = (("shim-signed", "usr/lib/shim/shimx64.efi.signed", "BOOTX64.EFI"),
          ("grub-efi-amd64-signed", "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed",
           "grubx64.efi"))
OFF = "$live off; [ $(cat $CPU/cpuidle/current_governor) = menu ] && clean"
REFUSED = """mount -t securityfs s /sys/kernel/security; $live on
ls -d /sys/module/x86_dvfs_* 2>/dev/null"""
COMPARED = """governors schedutil; handovers >/tmp/steps; ln -s $live /usr/bin/x86-dvfs-live
cd /job && python3 -S -m cpuwhy compare --blocks 8 --seconds 1 --warm-up 0.3 \\
	--number '^([0-9.]+)' -- sh -c 'handovers -c $(cat /tmp/steps) -n 16 -w 20 -s 0.1 -S 1'
$live status; clean"""
LOCKED = ("x86-dvfs-live: lockdown (Secure Boot) refuses modules that are not signed; nothing was"
          " changed")


def packages(release: str) -> Path:
    """Debian's image, with its modules beside it."""
    out = paths.BUILD / "kernels"
    out.mkdir(parents=True, exist_ok=True)
    found = []
    for kind in ("modules", "binary"):
        name = f"linux-{kind}-{release}"
        if not (there := list(out.glob(f"{name}_*.deb"))):
            there = [aptget.download(aptget.offers(name, aptget.backports())[0], out)]
        found.append(there[0])
    return found[-1]


def releases() -> list[str]:
    """There are modules for."""
    found = [path.name for path in (paths.BUILD / "live/modules").glob("*")]
    if not found:
        raise Fail("there are no modules: make live BASE=7.3")
    return sorted(found, key=lambda release: ("cloud" not in release, release))


def files(release: str) -> dict[str, bytes]:
    """The tool and its modules."""
    return {"x86-dvfs-live": TOOL.read_bytes(),
            **{f"live/{release}/{file.name}": file.read_bytes()
               for file in (paths.BUILD / "live/modules" / release).iterdir()}}


def pool(name: str, more: Sequence[initramfs.Item] = RECIPE) -> Guests:
    out = paths.BUILD / "live-test" / name
    archive = initramfs.ensure(out / "guest", None, [*more, FLOCK])
    return Guests(out, archive, paths.QEMU_BINARY, proc.jobs())


def guest(name: str, release: str, shell: str, append: str = PASSIVE) -> Guest:
    """With one step."""
    kernel = distribution.unpack(packages(release), paths.BUILD / "kernels")
    job = Job(files={**kernel.files(), **files(release)})
    job.step("step", f'PARTS="{" ".join(parts.PARTS)}"\n{COMMON}{shell}')
    return Guest(name, machine.load(MACHINE), 4, kernel.image, job, append=append)


def took(said: str, wanted: int) -> tuple[list[str], list[str]]:
    """A line for each that is repeated, and what went wrong."""
    of: dict[str, list[float]] = {}
    for name, begin, end in re.findall(r"^took (.+) (\S+) (\S+)$", said, re.M):
        of.setdefault(name, []).append(float(end) - float(begin))
    bad = re.findall(r"^(?!took|\w+: off$|taint: ).+", said, re.M)
    if (count := sum(map(len, of.values()))) != wanted:
        bad.append(f"{count} of {wanted} switches")
    return [f"{len(s)} times {name}: median {statistics.median(s):.2f} s, longest {max(s):.2f} s"
            for name, s in of.items()], bad


def switched(name: str, todo: dict[str, Guest], wanted: dict[str, int]) -> Count:
    """Each switch comes to its end, and the log is clean."""
    count = Count()
    for title, answer in zip(todo, pool(name).answers(list(todo.values()))):
        rows, bad = took(answer.text("step"), wanted[title])
        for row in rows:
            say(f"live: {title}: {row}")
        count += Count(int(not bad), 0, [f"{title}: {line}" for line in bad])
    return count


def switches() -> Count:
    """200 of the first flavour, in two boots; some of the others."""
    first, *others = releases()
    rounds = {f"{first}-1": (first, 0, 49), f"{first}-2": (first, 50, 99),
              **{release: (release, 90, 99) for release in others}}
    todo, wanted = {}, {}
    for title, (release, begin, end) in rounds.items():
        todo[title] = guest(title, release, f'ROUNDS="{begin} {end}"\n{SWITCH}')
        wanted[title] = 2 * sum(n % 9 != 8 for n in range(begin, end + 1))
    return switched("switch", todo, wanted)


def loaded() -> Count:
    """In free time: a busy second of four CPUs would take a minute of deterministic time."""
    first = releases()[0]
    of = guest(first, first, LOADED)
    return switched("loaded", {first: replace(of, mode="free")}, {first: 36})


def refused() -> Count:
    """By a kernel in lockdown: a line, and nothing is changed."""
    count = Count()
    todo = [guest(release, release, REFUSED, f"{PASSIVE} lockdown=integrity")
            for release in releases()]
    for answer in pool("refused").answers(todo):
        said = answer.text("step")
        count += Count(int(said == LOCKED), 0, [said] * (said != LOCKED))
    return count


def secure() -> Count:
    """With Secure Boot: firmware with Microsoft's keys, and shim, GRUB and kernel of Debian."""
    release, guests = releases()[0], pool("secure", ())     # GRUB loads no 200 MB
    c = replace(guests.prepared(guest(release, release, REFUSED)), mode="free")
    boot.prepare(c)                     # writes the initrd
    disk, config, variables = (c.out / name for name in ("disk", "grub.cfg", "variables"))
    shutil.copy(OVMF / "OVMF_VARS_4M.ms.fd", variables)
    config.write_text(f"linux /vmlinuz {boot.kernel_command_line(c)}\ninitrd /initrd\nboot\n")
    disk.write_bytes(b"")
    os.truncate(disk, 128 << 20)
    for words in (("mformat", "-F", "::"), ("mmd", "::EFI", "::EFI/BOOT", "::EFI/debian")):
        proc.capture([words[0], "-i", disk, *words[1:]])
    for source, target in ((c.kernel, "vmlinuz"), (c.out / "initrd", "initrd"),
                           (config, "EFI/debian/grub.cfg"),
                           *((distribution.unpacked(distribution.fetch(package, c.out), c.out)
                              / file, f"EFI/BOOT/{name}") for package, file, name in SIGNED)):
        proc.capture(["mcopy", "-i", disk, source, f"::{target}"])
    answer = boot.run(replace(c, disk=disk, firmware=(OVMF / "OVMF_CODE_4M.secboot.fd", variables)))
    said = answer.text("step")
    good = said == LOCKED and "Secure boot enabled" in answer.console
    return Count(int(good), 0, [f"Secure Boot: {said}"] * (not good))


def compared() -> Count:
    """cpuwhy compare with its own settings, off and on: hand-overs are better, as its text says."""
    release = releases()[0]
    of, out = guest(release, release, COMPARED), paths.BUILD / "live-test/compared"
    of.job.files.update({f"cpuwhy/{path.name}": path.read_bytes()
                         for path in (paths.CPUWHY).glob("*.py")})
    said = pool("compared", [*RECIPE, *python.items(out)]).answer(of).text("step")
    good = re.search(r"^verdict +better$", said, re.M)
    say(f"live: {release}: compare\n{said}")
    return Count(int(bool(good)), 0, [f"compare: {said}"] * (not good))


def columns(release: str) -> plan.Plan:
    """Debian's kernel, with all parts on, and off again; of those that are built, the base in the
    project's configuration, the series on it, and that without pairs, which are not carried."""
    whole, name = plan.read(), f"linux-{release}"
    ours = whole.columns["7.3-ours"]
    own = (whole.columns["7.3"], ours,
           replace(ours, name="7.3-no-pairs", set=("feature=NO_PAIRS",)))
    return replace(whole, kernels={**whole.kernels, name: plan.Kernel(name, of=str(
        packages(release)))}, columns={
            "stock": plan.Column("stock", name), "on": plan.Column("on", name, idle="teo"),
            "off": plan.Column("off", name), **{
                column.name: column for column in own if
                paths.kernel_image(whole.kernels[column.kernel].like).exists()}})


def figures() -> Count:
    """Threads that hand work on gain what they gain on the series' own kernel, and nothing is left
    afterwards."""
    release = releases()[0]
    whole, found, todo = columns(release), store.Measured(), []
    for start in plan.starts(
            plan.Cell("live", MACHINE, 8, column, *whole.load(word, "live"), seed)
            for column in whole.columns.values() for seed in range(1, SEEDS + 1)
            for word in LOADS):
        of = store.guest(start, whole)
        of.job.files.update(files(release))
        at = {name: n for n, (name, _) in enumerate(of.job.steps)}
        for name, shell in (("off", OFF), ("on", "$live on")) if "on" in at else ():
            of.job.steps.insert(at[name], (f"switch-{name}", COMMON + shell))
        todo.append((start, of))
    for (start, of), answer in zip(todo, pool("figures").answers([of for _, of in todo])):
        store.read(start, answer, of.machine.tsc_khz, found)
        found.failed += [f"{name}: {section.text}" for name, section in
                         answer.answer.sections.items() if section.status]
    rows: dict[str, dict[str, float]] = {}
    for word in LOADS:
        rows[word] = {column: statistics.fmean(values) for column in whole.columns if (
            values := [sample.of["result"] for sample in found.samples
                       if sample.cell.key[2:] == (word, column)])}
        say(f"live: {release}: {word}: "
            + ", ".join(f"{column} {value:.5g}" for column, value in rows[word].items()))
    bad = found.failed + [f"{word} with all parts on" for word in ("hop:n=16", "hop:w=60")
                          if rows[word]["on"] < (0.9 * rows[word].get("7.3-ours", 0)
                                                 or 5 * rows[word]["stock"])]
    bad += [f"{word} off again" for word in ("hop:n=16", "hop:w=60", "messages:3")
            if abs(rows[word]["off"] / rows[word]["stock"] - 1) > 0.1]
    return Count(int(not bad), 0, [f"{release}: {line}" for line in bad])
