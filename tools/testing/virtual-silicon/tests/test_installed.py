# SPDX-License-Identifier: GPL-2.0
"""What counts as wrong after a boot of the installed system."""

from __future__ import annotations

import pytest
from virtual_silicon.guest import boot, job
from virtual_silicon.studies import installed

OLD, OURS = "6.1.0-1-cloud-amd64", "6.12.1-x86dvfs9-cloud"
ANSWERS = {"kernel": OURS, "failed-units": "", "governor": "schedutil", "idle-governor": "teo",
           "invariance": "1", "polled-us": "1200",
           "turbostat-x86dvfs": "Busy%\tC1+\tC6-\tC1%"}


def result(answers: dict[str, str], status: int = 0) -> boot.Result:
    answer = job.Answer()
    for name, text in answers.items():
        answer.feed(f"vs:begin {name}\n{text}\nvs:end {name} {status}\n")
    return boot.Result(status, answer, 0, 0, "", {}, None)


@pytest.mark.parametrize("stage, kernel", list(zip(installed.STAGES, (OLD, OURS, OLD))))
def test_nothing_is_wrong(stage: str, kernel: str) -> None:
    assert installed.problems(stage, result(ANSWERS | {"kernel": kernel}), OLD) == []


@pytest.mark.parametrize("stage, step, said, problem", [
    ("install", "kernel", OURS, f"runs {OURS}"),
    ("installed", "kernel", OLD, f"runs {OLD}"),
    ("removed", "kernel", "6.1.0-2-cloud-amd64", f"runs 6.1.0-2-cloud-amd64 instead of {OLD}"),
    ("removed", "failed-units", "x.service loaded failed", "units failed: x.service loaded failed"),
    ("installed", "governor", "powersave", "the governor is powersave"),
    ("installed", "idle-governor", "menu", "the idle governor is menu"),
    ("installed", "invariance", "0", "frequency invariance is off"),
    ("installed", "polled-us", "4900000", "with tuned's latency profile CPU 0 polled for"
     " 4900000 us of 5 s"),
    ("installed", "turbostat-x86dvfs", "Busy%\tC1%", "turbostat-x86dvfs has no columns for idle"
     " states that were too deep or too shallow"),
])
def test_what_is_wrong_is_told(stage: str, step: str, said: str, problem: str) -> None:
    kernel = {"kernel": OURS if stage == "installed" else OLD}
    assert installed.problems(stage, result(ANSWERS | kernel | {step: said}), OLD) == [problem]


def test_failed_steps_are_told() -> None:
    found = installed.problems("installed", result(ANSWERS, 7), OLD)
    assert "step governor failed: schedutil" in found and len(found) == len(ANSWERS)
