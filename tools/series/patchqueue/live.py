# SPDX-License-Identifier: GPL-2.0
"""What a livepatch can carry of the series, as files of the kernel: taken from the commits of `make
tree BASE=7.3`, so that there is no second copy.

A livepatch cannot change the layout of structs, the numbers of sched_feat() or what runs at boot.
What stands in for that is in tools/power/x86-dvfs-live, a file per part.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from virtual_silicon.errors import Fail

from .. import git, paths
from .tree import BASE, Tree

GLUE = paths.POWER / "x86-dvfs-live"
FAIR, MENU = "kernel/sched/fair.c", "drivers/cpuidle/governors/menu.c"
UTIL, PERF = "kernel/sched/cpufreq_schedutil.c", "arch/x86/kernel/cpu/aperfmperf.c"


@dataclass(frozen=True)
class Source:
    """The files of a tree."""
    tree: Tree

    def base(self, path: str) -> str:
        return self._text(BASE, path)

    def ours(self, path: str) -> str:
        return self._text("HEAD", path)

    def _text(self, commit: str, path: str) -> str:
        if (data := git.blob(self.tree.path, commit, path)) is None:
            raise Fail(f"live: {commit} has no {path}")
        return data.decode()


def edited(text: str, *edits: tuple[str, str]) -> str:
    """Each old text stands there exactly once."""
    for old, new in edits:
        if (count := text.count(old)) != 1:
            raise Fail(f"live: {count} times, not once: {old}")
        text = text.replace(old, new)
    return text


def function(text: str, name: str) -> str:
    """The definition of a function, without its comment."""
    found = re.findall(rf"^(?:\w[^\n;]*\n)?[^\n#/*;]*\b{name}\((?:[^;{{]*)\)\n{{\n.*?^}}\n", text,
                       re.M | re.S)
    if len(found) != 1:
        raise Fail(f"live: {len(found)} definitions of {name}()")
    return found[0]


def glue(name: str) -> str:
    return (GLUE / name).read_text()


def choice(source: Source) -> dict[str, str]:
    """Without what CPU limits ask for, which is in structs."""
    base, fair = source.base(FAIR), source.ours(FAIR)
    for name in ("__assign_cfs_rq_runtime", "unthrottle_cfs_rq"):
        fair = edited(fair, (function(fair, name), function(base, name)))
    fair = edited(fair, ('#include "pairs.h"\n', ""), (function(fair, "cfs_rq_ask"), ""),
                  ("sched_feat(SIS_SHALLOW)", "READ_ONCE(live_choice)"),
                  ("#define SLOW_EXIT_US", "static bool live_choice = true;\n#define SLOW_EXIT_US"))
    return {FAIR: fair + glue("choice.c")}


def teo(source: Source) -> dict[str, str]:
    """Debian does not build teo: it is compiled behind menu."""
    governors = "drivers/cpuidle/governors/"
    return {MENU: source.base(MENU) + glue("teo.c"),
            governors + "teo_series.c": source.ours(governors + "teo.c"),
            governors + "teo_core.h": source.ours(governors + "teo_core.h")}


def freq(source: Source) -> dict[str, str]:
    """Bad samples, but for their counter, which would be in a struct; and the turbo table."""
    base, ours = source.base(PERF), source.ours(PERF)
    tick = edited(function(ours, "freq_max_of") + "\n" + function(ours, "scale_freq_tick"),
                  ("\tthis_cpu_inc(cpu_samples.skipped);\n", ""))
    table = "\nstatic struct turbo_table turbo_table;\n\n" + function(ours, "read_turbo_table")
    header = "arch/x86/kernel/cpu/turbo_table.h"
    perf = edited(base, (function(base, "scale_freq_tick"), tick),
                  ('#include "cpu.h"\n', '#include "cpu.h"\n#include "turbo_table.h"\n'))
    return {PERF: perf + table.replace("__init ", "") + glue("freq.c"),
            header: source.ours(header)}


def schedutil(source: Source) -> dict[str, str]:
    """Without pairs, whose hooks are in try_to_wake_up(). sugov_start() stays the base's: it stores
    the address of an update function, which is to outlive the module."""
    base, text = source.base(UTIL), source.ours(UTIL)
    text = re.sub(r"^static atomic_t sugov_users;.*?(?=^static struct cpufreq_governor)", "", text,
                  flags=re.M | re.S)
    for name in ("sugov_start", "sugov_init", "sugov_exit", "sugov_update_rate_limit_us",
                 "rate_limit_us_show", "rate_limit_us_store"):
        text = edited(text, (function(text, name), function(base, name)))
    struct, members = {}, {"policy": "holdoff|min_perf|max_perf|looked|most",
                           "cpu": "saturated|needed"}
    for of, names in members.items():
        struct[of] = found = re.search(rf"^struct sugov_{of} {{\n.*?^}};\n", text, re.M | re.S)
        assert found
        text = edited(text, (found[0], re.sub(rf"^\t[^;\n]*\b(?:{names});.*\n", "", found[0],
                                              flags=re.M)))
        text = re.sub(rf"\b((?:\w+->)?\w*sg_{of})->({names})\b", rf"live_{of}(\1).\2", text)
    text = text.replace("pair_util(READ_ONCE(rq->pairs), jiffies)", "0UL")
    restarted = ("\t/* The base's sugov_start() knows nothing of what is ours. */\n"
                 "\tif (unlikely(!sg_policy->last_freq_update_time)) {\n"
                 "\t\tlive_cpu(sg_cpu) = (struct live_cpu){ };\n\t\tholdoff_forget(h, 0);\n\t}\n")
    text = edited(text, ('#include "cpufreq_holdoff.h"\n#include "pairs.h"\n', ""),
                  ("static DEFINE_PER_CPU(struct sugov_cpu, sugov_cpu);\n",
                   "static DEFINE_PER_CPU(struct sugov_cpu, sugov_cpu);\n" + glue("schedutil.h")),
                  ("\ttrace_sugov_util_tp(sg_cpu->cpu, util, saturated);\n", ""),
                  ("\tsugov_look_at_tick(sg_cpu, rq);\n",
                   restarted + "\tsugov_look_at_tick(sg_cpu, rq);\n"))
    holdoff = "kernel/sched/cpufreq_holdoff.h"
    return {UTIL: text + glue("schedutil.c"), holdoff: source.ours(holdoff)}


@dataclass(frozen=True)
class Part:
    object: str                             # what is compiled anew
    files: Callable[[Source], dict[str, str]]


#: In the order of trust.
PARTS = {"choice": Part("kernel/sched/fair", choice),
         "teo": Part("drivers/cpuidle/governors/menu", teo),
         "freq": Part("arch/x86/kernel/cpu/aperfmperf", freq),
         "schedutil": Part("kernel/sched/build_utility", schedutil)}
