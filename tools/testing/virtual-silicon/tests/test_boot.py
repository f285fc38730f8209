# SPDX-License-Identifier: GPL-2.0
"""Guests that go wrong, with scripts in the emulator's place."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from virtual_silicon import paths
from virtual_silicon.errors import GuestError, UsageError
from virtual_silicon.guest import boot
from virtual_silicon.machine import machine

#: Finds the files of the two serial ports among its arguments, as $CONSOLE and
#: $RESULTS, and leaves its process id.
PROLOGUE = """#!/bin/sh
for word; do
	case $word in
	file:*console.log) CONSOLE=${word#file:} ;;
	file:*results.log) RESULTS=${word#file:} ;;
	esac
done
echo $$ >"${CONSOLE%/*}/pid"
"""

GOOD = """
echo 'Linux version 6.12' >$CONSOLE
printf 'vs:ready 1.5\\nvs:begin a\\nhello\\n\\nvs:end a 0\\n' >$RESULTS
printf 'vs:begin b\\nworld\\nvs:end b 3\\nvs:exit 3\\n' >>$RESULTS
"""


def config(tmp_path: Path, body: str, **limits: float) -> boot.Config:
    emulator = tmp_path / "qemu"
    emulator.write_text(PROLOGUE + body)
    emulator.chmod(0o755)
    (tmp_path / "initramfs").write_bytes(b"archive")
    return boot.Config(
        machine=machine.load("sapphire-rapids"), cpus=2, kernel=tmp_path / "bzImage",
        qemu=emulator, initramfs=tmp_path / "initramfs", out=tmp_path / "out",
        limits=boot.Limits(**limits))


def gone(tmp_path: Path) -> bool:
    """Nothing of the emulator's process group runs any more, or soon."""
    group = int((tmp_path / "out/pid").read_text())
    deadline = time.monotonic() + 5	# a killed process takes a moment to go
    while time.monotonic() < deadline:
        if not any(_runs_in(stat, group) for stat in Path("/proc").glob("[0-9]*/stat")):
            return True
        time.sleep(0.05)
    return False


def _runs_in(stat: Path, group: int) -> bool:
    try:
        state, _, pgrp = stat.read_text().rpartition(")")[2].split()[:3]
    except OSError:
        return False	# ended meanwhile
    return int(pgrp) == group and state != "Z"


def fails(c: boot.Config) -> GuestError:
    with pytest.raises(GuestError) as error:
        boot.run(c)
    return error.value


def test_good_guest(tmp_path: Path) -> None:
    result = boot.run(config(tmp_path, GOOD))
    assert result.status == 3 and result.text("a") == "hello"
    assert result.step_status("b") == 3
    assert result.answer.ready == 1.5
    with pytest.raises(GuestError, match="has not answered step 'c'"):
        result.text("c")


def test_panic_is_reported_with_the_console(tmp_path: Path) -> None:
    error = fails(config(tmp_path, """
echo 'booting' >$CONSOLE
echo '[ 1.0] Kernel panic - not syncing: No working init found.' >>$CONSOLE
echo '[ 1.1] Call Trace:' >>$CONSOLE
sleep 60
"""))
    assert "panicked: No working init found." in str(error)
    assert error.details.splitlines()[-1] == "[ 1.1] Call Trace:"
    assert gone(tmp_path)


def test_silent_guest_hangs(tmp_path: Path) -> None:
    error = fails(config(tmp_path, """
echo 'vs:ready 1' >$RESULTS; echo 'last words' >$CONSOLE; sleep 60
""", silence=1))
    assert "hangs: not a line for 1 s" in str(error)
    assert error.details == "last words"
    assert gone(tmp_path)


def test_guest_that_does_not_boot(tmp_path: Path) -> None:
    error = fails(config(tmp_path, "while :; do echo dots >>$CONSOLE; sleep 0.1; done",
                         boot=1))
    assert "not booted within 1 s" in str(error)
    assert gone(tmp_path)


def test_guest_that_never_ends(tmp_path: Path) -> None:
    error = fails(config(tmp_path, """
echo 'vs:ready 1' >$RESULTS
while :; do echo dots >>$CONSOLE; sleep 0.1; done
""", overall=1))
    assert "not done within 1 s" in str(error)
    assert gone(tmp_path)


def test_emulator_that_dies(tmp_path: Path) -> None:
    error = fails(config(tmp_path, "echo booting >$CONSOLE; kill -SEGV $$"))
    assert "the emulator ended (signal 11)" in str(error)
    assert error.details == "booting"


def test_emulator_that_refuses_its_options(tmp_path: Path) -> None:
    error = fails(config(tmp_path, "echo 'qemu: -object: bad' >&2; exit 1"))
    assert "ended (status 1)" in str(error) and "qemu: -object: bad" in str(error)


def test_children_of_the_emulator_go_too(tmp_path: Path) -> None:
    fails(config(tmp_path, "sleep 61 & trap '' TERM; sleep 62 & wait; wait; sleep 63",
                 boot=0.5))
    assert gone(tmp_path)


def test_guest_that_does_not_power_off(tmp_path: Path,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    wait = boot._wait_off
    monkeypatch.setattr(boot, "_wait_off", lambda process: wait(process, 0.2))
    assert boot.run(config(tmp_path, GOOD + "sleep 60")).status == 3
    assert gone(tmp_path)


def test_terminal_escapes_are_not_shown() -> None:
    assert boot.tail("\x1bc\x1b[?7l\x1b[2JSeaBIOS\r\n\n one \n") == ["SeaBIOS", " one"]


def test_damaged_report(tmp_path: Path) -> None:
    with pytest.raises(GuestError, match="damaged"):
        boot.run(config(tmp_path, GOOD + 'echo "{" >"${CONSOLE%/*}/model.json"'))


def test_too_many_cpus_start_nothing(tmp_path: Path) -> None:
    c = config(tmp_path, GOOD)
    c.cpus = 57
    with pytest.raises(UsageError, match="allows 1 to 56"):
        boot.run(c)
    assert not (tmp_path / "out").exists()


#: An emulator whose guest's port is emptied when the console is opened, and then has a shell.
SHELL = """
for word; do case $word in file:*results.log) RESULTS=${word#file:} ;; esac; done
timeout 0.5 cat >/dev/null
echo vs:ready 1 >$RESULTS
sh -c "$(head -c 25)" >"${RESULTS%/*}/said" 2>&1
echo vs:exit $? >>$RESULTS
"""


def test_a_shell_gets_what_was_typed_before(tmp_path: Path) -> None:
    """All of it, and its exit status is the shell's."""
    c = config(tmp_path, "")
    c.qemu.write_text(f"#!/bin/sh\n{SHELL}")
    out, into = os.pipe()
    os.write(into, b"echo first\necho b\nexit 3")
    os.close(into)
    before = os.dup(0)
    os.dup2(out, 0)
    try:
        assert boot.interactive(c) == 3
    finally:
        os.dup2(before, 0)
    assert (c.out / "said").read_text() == "first\nb\n"


def interrupted(words: list[str], out: Path, number: signal.Signals) -> int:
    """Exit status of Python with @words, which gets the signal once its guest runs."""
    with subprocess.Popen([sys.executable, *words], cwd=paths.SILICON,
                          stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                          start_new_session=True,
                          # A shell's background job, as the tests may be one, ignores it
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                          ) as process:
        deadline = time.monotonic() + 20
        while not (out / "pid").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        try:
            return process.wait(20)
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupt_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    """The whole command, as make calls it."""
    c = config(tmp_path, "echo up >$CONSOLE; exec sleep 60")
    c.kernel.write_bytes(b"kernel")
    words = ["-m", "virtual_silicon", "run", "--kernel", str(c.kernel),
             "--qemu", str(c.qemu), "--out", str(c.out)]
    assert interrupted(words, c.out, number) in (130, 143, -signal.SIGKILL)
    assert gone(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_ends_guests_of_threads(tmp_path: Path, number: signal.Signals) -> None:
    """They would go on to their end, and the command wait for them."""
    c = config(tmp_path, "echo up >$CONSOLE; while :; do sleep 1; done")
    code = f"""if True:
        import argparse, pickle
        from concurrent.futures import ThreadPoolExecutor
        from virtual_silicon import __main__ as main
        from virtual_silicon.guest import boot
        def run(args):
            with ThreadPoolExecutor(1) as pool:
                list(pool.map(boot.run, [pickle.loads({pickle.dumps(c)!r})]))
        parsed = argparse.ArgumentParser()
        parsed.set_defaults(run=run)
        main.parser = lambda: parsed
        raise SystemExit(main.main())"""
    assert interrupted(["-c", code], c.out, number) in (130, 143)
    assert gone(tmp_path)


def test_model_options_take_any_path(tmp_path: Path) -> None:
    c = config(tmp_path, GOOD)
    c.out = tmp_path / 'a,b "c"'
    options = boot.machine_options(c)
    given = json.loads(options[options.index("-object") + 1])
    assert given["report"] == str(c.out / "model.json")


#: Answers with the last word that its job would print, once both have been started.
ECHO = """
word=$(grep -ao 'echo [a-z]*' "${CONSOLE%/*}/initrd" | tail -1)
echo "$word" >>"$0.started"
n=0; while [ "$(wc -l <"$0.started")" -lt 2 ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n + 1)); done
sleep 0.5
printf 'vs:ready 1\\nvs:begin command\\n%s\\nvs:end command 0\\nvs:exit 0\\n' \
	"${word#echo }" >$RESULTS
"""


def started(c: boot.Config, word: str, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "virtual_silicon", "run", "--kernel", str(c.kernel), "--qemu",
         str(c.qemu), f"--cmd=sleep 1; echo {word}", *more], cwd=paths.SILICON, text=True,
        env=os.environ | {"X86_DVFS_BUILD": str(c.out)}, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)


def test_two_at_once_in_one_clone(tmp_path: Path) -> None:
    """Each has its own answer, also while neither finds its guest's programs compiled. Not
    more directories than guests at the same time; one that is asked for has one guest."""
    c = config(tmp_path, ECHO)
    c.kernel.write_bytes(b"kernel")
    for second in ("second", "third"):
        both = [started(c, "first"), started(c, second)]
        said = [process.communicate(timeout=100) for process in both]
        assert [process.returncode for process in both] == [0, 0], said
        assert [out for out, _ in said] == ["first\n", f"{second}\n"]
        assert sorted("run-2" in error for _, error in said) == [False, True]
        assert {path.name for path in c.out.iterdir()} == {"guest", "run", "run-2"}
        Path(f"{c.qemu}.started").unlink()

    named = ["--out", str(c.out / "run")]
    waits = started(c, "fourth", *named)
    while not Path(f"{c.qemu}.started").exists():
        time.sleep(0.05)
    refused = started(c, "fifth", *named)
    out, error = refused.communicate(timeout=100)
    assert (refused.returncode, out) == (2, "")
    assert error.count("\n") == 1 and "another process runs guests there" in error
    waits.kill()
    waits.communicate()
    after = started(c, "sixth", *named)
    assert after.communicate(timeout=100)[0] == "sixth\n"
