# SPDX-License-Identifier: GPL-2.0
"""compare, probe or shell, as the boot menu said on the kernel's command line."""
from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from cpuwhy import form, probe
from cpuwhy.errors import Fail as ProbeFail
from virtual_silicon.errors import Fail

from . import measure, medium, plan, report

BOOT = Path("/boot")
#: Empty a screen, a line of it.
CLEAR, LINE = "\033[H\033[2J", "\r\033[K"
#: What the next kernel's command line does not have from this one's.
OWN = ("stick.run", "stick.kernel", "BOOT_IMAGE", "initrd")


def consoles() -> list[Path]:
    """Screen and serial lines that the kernel writes to."""
    try:
        names = Path("/sys/class/tty/console/active").read_text().split()
    except OSError:
        names = ["console"]
    return [Path("/dev") / name for name in names]


def is_screen(console: Path) -> bool:
    return re.fullmatch(r"tty\d+", console.name) is not None


def put(console: Path, text: str) -> None:
    with suppress(OSError), open(console, "w", encoding="utf-8") as file:
        file.write(text.replace("\n", "\r\n"))


def tell(text: str) -> None:
    for console in consoles():
        put(console, f"{LINE * is_screen(console)}{text}\n")


def going(text: str) -> None:
    """What happens now. On a screen it replaces the last, so that the headline stays."""
    for console in consoles():
        put(console, f"{LINE}  {text}" if is_screen(console) else f"  {text}\n")


def headline(what: str, seconds: float, more: str = "") -> None:
    """At the top of a screen."""
    text = (f"x86-dvfs stick {what}, about {max(1, round(seconds / 60))} min left\n"
            f"The machine's disks are not touched. Switching off is safe at any time{more}.\n")
    for console in consoles():
        put(console, f"{CLEAR}{text}\n" if is_screen(console) else f"{text}\n")


def size(console: Path) -> tuple[int, int]:
    """Rows and columns."""
    with suppress(OSError), open(console, encoding="utf-8") as file:
        columns, rows = os.get_terminal_size(file.fileno())
        if rows and columns:
            return rows, columns
    return 25, 80


def words(line: str) -> dict[str, str]:
    return {key: value for key, _, value in (word.partition("=") for word in line.split())}


def command_line(line: str, kernel: str, number: int) -> str:
    kept = [word for word in line.split() if word.partition("=")[0] not in OWN]
    return " ".join([*kept, f"stick.kernel={kernel}", f"stick.run={number}"])


def boot(kernel: str, number: int) -> None:
    """Without the firmware, which takes minutes on servers; the initramfs is in memory."""
    line = command_line(Path("/proc/cmdline").read_text(), kernel, number)
    subprocess.run(["kexec", "-s", "-l", BOOT / kernel, "--initrd=/sys/firmware/initrd",
                    f"--command-line={line}"], check=True)
    going(f"run {number}: starting the {kernel} kernel")
    subprocess.run(["kexec", "-e"], check=True)


def probed(seconds: float) -> str:
    try:
        return probe.run(seconds, going)
    except (ProbeFail, OSError) as fail:
        return f"# Not probed: {fail}.\n"


def run_headline(name: str, what: str, seconds: float) -> None:
    headline(f"compares two kernels: {what}", seconds, ": booted\nagain, the stick goes on. The"
             f" result comes here and to {name}/report.txt")


def compare(said: Mapping[str, str]) -> None:
    """Goes on where the stick is; does not come back before the last run."""
    if why := measure.lacks():
        raise Fail(f"nothing to compare: {why}; \"Probe\" says what it can")
    device = medium.wait(30)
    if device is None:
        raise Fail("the stick's partition was not found on USB: without it only \"Probe\" works"
                   " (it shows its text on the screen)")
    with medium.mounted(device) as root:
        name = plan.current(root)
        if name is None:
            name = plan.fresh(root)
            made = plan.wanted(said, random.SystemRandom().randrange(10**6))
            (root / name).mkdir(exist_ok=True)
            medium.write(root / name / "plan.txt", made.text())
        store = plan.Store(root, name)
        todo = store.plan()
        assert todo
        text = medium.read(store.root / "probe.txt")
        number = store.next(todo)
        mine = number is not None and said.get("stick.run") == str(number)
        if mine and number:
            store.begin(number)
    order = todo.order()
    if text is None:
        left = todo.probe + (todo.left(number) if number else 0)
        run_headline(name, "first a probe", left)
        text = probed(todo.probe)
        with medium.mounted(device):
            medium.write(store.root / "probe.txt", text)
    if number is None:
        finish(device, store, todo)
        return
    if not mine:
        boot(order[number - 1], number)
    run_headline(name, f"run {number} of {len(order)}, {said['stick.kernel']}", todo.left(number))
    result = measure.run(todo, number, said["stick.kernel"], going)
    with medium.mounted(device):
        medium.write(store.run(number), json.dumps(result) + "\n")
        following = store.next(todo)
    if following is None:
        finish(device, store, todo)
    else:
        boot(order[following - 1], following)


def finish(device: Path, store: plan.Store, todo: plan.Plan) -> None:
    with medium.mounted(device):
        texts = [medium.read(store.run(n)) for n in range(1, len(todo.order()) + 1)]
        runs = [json.loads(text) for text in texts if text]
        text = report.text(todo, runs, medium.read(store.root / "probe.txt") or "")
        medium.write(store.root / "report.txt", text)
    show(text, f"{store.root.name}/report.txt")


def show(text: str, name: str) -> None:
    code = report.code(text)
    picture = subprocess.run(["qrencode", "-t", "UTF8", "-o", "-", f"x86-dvfs {code}"],
                             capture_output=True, text=True).stdout
    last = f"{name} on the stick; its code is {code}"
    for console in consoles():
        if is_screen(console):
            put(console, CLEAR + report.screen(text, picture, last, *size(console)))
        else:
            put(console, f"{text}\n{picture}\n{last}\n")


def only_probe(said: Mapping[str, str]) -> None:
    """Shown before it is written."""
    seconds = float(said.get("stick.probe", 60))
    headline("measures this machine", seconds)
    text = probed(seconds)
    tell(text)
    for console in filter(is_screen, consoles()):
        if text.count("\n") >= size(console)[0]:     # what is for people comes first there
            put(console, "".join(f"{row}\n" for row in text.splitlines() if row[:2] == "# "))
    if "form =" in text:
        form.check(text)
    device = medium.wait(10)
    if device is None:
        raise Fail("there is no partition of the stick to write to: the text above is all")
    if "stick.off" not in said and input("Write this to the stick? [y/N] ").lower() != "y":
        return
    with medium.mounted(device) as root:
        medium.write(root / "probe.txt", text)
    tell(f"probe.txt on the stick; its code is {report.code(text)}")


def main() -> int:
    said = words(Path("/proc/cmdline").read_text())
    what = said.get("stick", "shell")
    status = 0
    try:
        {"compare": compare, "probe": only_probe}.get(what, lambda _: None)(said)
    except (Fail, OSError, subprocess.CalledProcessError) as error:
        tell(f"stick: {error}")
        status = 1
    if "stick.off" in said:
        os.sync()
        subprocess.run(["busybox", "poweroff", "-f"])
    return status


if __name__ == "__main__":
    sys.exit(main())
