# SPDX-License-Identifier: GPL-2.0
"""The rules of `explain`; those of the set-up are also `doctor`'s."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from . import hardware, quota, settings, sleep
from .case import Case, Finding, Findings


@dataclass(frozen=True)
class Rule:
    """@kind: of its findings; @setup: a question of doctor's too."""
    ask: Callable[[Case], Findings]
    kind: str
    setup: bool = False


#: In this order among those that are alike otherwise.
RULES = (
    Rule(hardware.prochot, "prochot"), Rule(hardware.heat, "thermal"),
    Rule(hardware.cooling, "thermal"), Rule(hardware.duty, "clock-modulation"),
    Rule(hardware.power, "power-limit"), Rule(hardware.electrical, "current"),
    Rule(hardware.ctdp, "ctdp"), Rule(hardware.p_state_limit, "firmware-max"),
    Rule(settings.policy_limits, "policy-max", True),
    Rule(settings.percent_limits, "max-perf-pct", True), Rule(settings.boost, "turbo-off", True),
    Rule(settings.driver, "driver", True), Rule(settings.governor, "governor", True),
    Rule(hardware.hwp, "hwp-max"), Rule(settings.preference, "epp", True),
    Rule(hardware.bias, "epb"), Rule(settings.balance_power, "epp"),
    Rule(quota.cpu_limit, "cpu-limit", True), Rule(settings.no_tick, "no-tick", True),
    Rule(settings.clamp, "util-clamp", True), Rule(settings.uncore, "uncore", True),
    Rule(settings.invariance, "invariance", True), Rule(settings.freq_max, "freq-max", True),
    Rule(settings.clock_source, "clock-source", True), Rule(hardware.throttled, "thermal", True),
    Rule(sleep.idle_driver, "idle-governor", True), Rule(sleep.shallow_only, "idle-missing"),
    Rule(sleep.disabled, "idle-disabled", True), Rule(sleep.off_by_default, "idle-disabled"),
    Rule(sleep.resume_latency, "latency-limit", True), Rule(sleep.latency_limit, "latency-limit"),
    Rule(sleep.idle_counters, "idle", True), Rule(sleep.idle_columns, "idle"),
    Rule(sleep.demoted, "idle-demoted"), Rule(sleep.package_states, "package-idle"),
    Rule(hardware.below, "clock"), Rule(hardware.lost_clock, "clock"),
    Rule(settings.governor_name, "governor"), Rule(settings.guest, "guest", True),
    Rule(settings.battery, "battery"))


def ask(case: Case, setup: bool = False) -> list[Finding]:
    return [replace(found, kind=found.kind or rule.kind)
            for rule in RULES if rule.setup or not setup for found in rule.ask(case)]
