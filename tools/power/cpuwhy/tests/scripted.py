# SPDX-License-Identifier: GPL-2.0
"""Traces made of scripts whose outcome is known."""
from __future__ import annotations

from dataclasses import dataclass, field

#: POLL, C1, C6 with latencies and residencies in ns.
TABLE = "POLL 0 0\nC1 2000 2000 power=0.5\nC6 133000 600000 power=0.1\n"


@dataclass
class Script:
    """Events as `perf script --ns` or `trace-cmd report -t` would print them."""
    form: str = "perf"
    start: int = 1_000_000_000_000
    lines: list[str] = field(default_factory=list)

    def add(self, us: float, cpu: int, comm: str, tid: int, event: str, text: str) -> None:
        ns = self.start + round(us * 1000)
        stamp = f"{ns // 10**9}.{ns % 10**9:09}"
        group, name = event.split(":")
        if self.form == "perf":
            self.lines.append(f"{comm:>16} {tid:5} [{cpu:03}] {stamp}: {group}:{name}: {text}")
        else:
            self.lines.append(f"cpuwhy-1: {comm:>16}-{tid:<5} [{cpu:03}] {stamp}: {name + ':':21} "
                              f"{text}")

    def idle(self, us: float, state: int, cpu: int = 0) -> None:
        comm = "swapper" if self.form == "perf" else "<idle>"
        self.add(us, cpu, comm, 0, "power:cpu_idle", f"state={state % 2**32} cpu_id={cpu}")

    def task(self, us: float, cpu: int, tid: int, comm: str) -> None:
        """The idle task gives way to another."""
        self.switch(us, cpu, (f"swapper/{cpu}", 0), (comm, tid))

    def switch(self, us: float, cpu: int, before: tuple[str, int], after: tuple[str, int]) -> None:
        """As the kernel words it or, of trace-cmd, its plugin."""
        text = (f"prev_comm={before[0]} prev_pid={before[1]} prev_prio=120 prev_state=S ==>"
                f" next_comm={after[0]} next_pid={after[1]} next_prio=120"
                if self.form == "perf" else
                f"{before[0]}:{before[1]} [120] S ==> {after[0]}:{after[1]} [120]")
        self.add(us, cpu, *before, "sched:sched_switch", text)

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
