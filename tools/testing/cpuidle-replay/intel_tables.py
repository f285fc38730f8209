#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Write intel_idle's state tables as C for the replay program.

The tables stay where they are decided, in drivers/idle/intel_idle.c; this
takes names, exit latencies and target residencies out of it at build time.
"""
import argparse
import re
import sys
from pathlib import Path

TABLE = re.compile(r"^static struct cpuidle_state (\w+)\[\] __initdata = \{\n(.*?)^\};", re.S | re.M)
STATE = re.compile(r"\{(.*?)\}", re.S)
FIELD = re.compile(r"\.(name|exit_latency|target_residency)(_ns)?\s*=\s*\"?([\w.-]+)\"?")


def states(body: str) -> list[tuple[str, int, int]]:
    """The states of one table, times in us; C0.x are left out: the replay adds its own."""
    found = []
    for text in STATE.findall(body):
        fields = {m[0] + m[1]: m[2] for m in FIELD.findall(text)}
        if "exit_latency" in fields and "name" in fields:
            found.append((fields["name"], int(fields["exit_latency"]), int(fields["target_residency"])))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="intel_idle.c")
    source = parser.parse_args().source

    tables = [(name, states(body)) for name, body in TABLE.findall(source.read_text())]
    if not tables:
        print(f"{source}: has no state tables, must be intel_idle.c of a 6.12 kernel", file=sys.stderr)
        return 1

    print("/* SPDX-License-Identifier: GPL-2.0 */")
    print(f"/* Generated from {source.name}. */")
    print('#include "replay.h"\n')
    print("const struct intel_table intel_tables[] = {")
    for name, rows in tables:
        print(f'\t{{ "{name}", {{')
        for state, latency, residency in rows:
            print(f'\t\t{{ "{state}", {latency}, {residency} }},')
        print("\t} },")
    print("\t{ NULL, { { NULL, 0, 0 } } }\n};")
    return 0


if __name__ == "__main__":
    sys.exit(main())
