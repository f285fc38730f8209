# SPDX-License-Identifier: GPL-2.0
"""lab: measure parts of the plan, print their tables, and say who loses."""

from __future__ import annotations

import argparse
import platform
import time
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

from .. import cli, paths
from ..errors import UsageError
from ..guest import initramfs, options
from ..loads import HERE as PROGRAMS
from ..progress import clock
from ..text import publish, write_csv
from . import claims, host, pages, picture, plan, published, results, store, table


def add(sub: cli.Commands) -> None:
    one = sub.add_parser("lab", help="experiments: loads on kernels, compared",
                         description="Without words: the parts. show NAME: what is done for a "
                         "part, a column or a load. claims: do the numbers in documents and "
                         "messages still hold? pages: the tables in documents, from results/.")
    one.add_argument("words", nargs="*", metavar="PART",
                     help="of lab/plans, or show NAME, claims, pages")
    one.add_argument("--list", action="store_true", help="of claims: those that hold, too")
    one.add_argument("--set", action="store_true",
                     help="of claims: write the new numbers where the old ones no longer hold")
    one.add_argument("--tier", choices=plan.TIERS, help="all parts of it")
    one.add_argument("--columns", type=options.words, help="in place of the parts'")
    one.add_argument("--loads", type=str.split, help="the same, NAME or NAME:PARAMETER")
    one.add_argument("--machines", type=options.words, help="the same")
    one.add_argument("--cpus", type=cli.count, help="the same")
    one.add_argument("--seeds", type=cli.count, help="the same")
    one.add_argument("--kernel", type=named, action="append", default=[], metavar="NAME=IMAGE",
                     help="a bzImage or a Debian package for a kernel of lab/plans/columns.toml")
    one.add_argument("--kernels", type=options.words, help="only cells of these")
    one.add_argument("--append", default="", help="more for all kernel command lines")
    one.add_argument("--kept", action="store_true", help="what was measured before, no guest")
    one.add_argument("--samples", type=Path, metavar="FILE",
                     help="tables of samples.csv of an earlier run, no guest")
    one.add_argument("--results", action="store_true", help="keep samples and losers in results/; "
                     "a guest that would measure what is there is not booted")
    one.add_argument("--dry", action="store_true", help="count guests and cells")
    one.add_argument("--picture", type=Path, metavar="FILE", help="of the only part, .png")
    one.add_argument("--out", type=Path, default=paths.BUILD / "lab")
    options.pool_options(one)
    one.set_defaults(run=command)

    one = sub.add_parser("run-on-host", help="loads of the lab on this machine, which must not be "
                         "used meanwhile; every setting is put back")
    one.add_argument("-o", "--output", type=Path, default=paths.BUILD / "lab-host",
                     help="directory for the tables")
    one.set_defaults(run=on_host)


def named(word: str) -> tuple[str, str]:
    name, found, image = word.partition("=")
    if not found:
        raise argparse.ArgumentTypeError(f"{word!r} is not NAME=IMAGE")
    return name, image


def booted(whole: plan.Plan, args: argparse.Namespace) -> plan.Plan:
    """With the images and the command line that were asked for."""
    kernels = dict(whole.kernels)
    for name, image in args.kernel:
        if name not in kernels:
            raise UsageError(f"no kernel {name}; there are: {', '.join(kernels)}")
        kernels[name] = replace(kernels[name], of=image)
    columns = {name: replace(column, append=f"{column.append} {args.append}".strip())
               for name, column in whole.columns.items()}
    return replace(whole, kernels=kernels, columns=columns)


def chosen(whole: plan.Plan, args: argparse.Namespace) -> plan.Plan:
    """Only the parts that were asked for, and as the options have them."""
    names = [*args.words, *(part.name for part in whole.parts.values() if part.tier == args.tier)]
    if unknown := [name for name in names if name not in whole.parts]:
        raise UsageError(f"no part {', '.join(unknown)}; there are: {', '.join(whole.parts)}")
    changes = {key: tuple(value) if isinstance(value, list) else value for key in
               ("columns", "loads", "machines", "cpus", "seeds") if (value := getattr(args, key))}
    parts = {}
    for part in (whole.parts[name] for name in names):
        # What holds is of what is measured.
        holds = {} if changes.keys() & {"columns", "machines", "cpus"} else {
            name: of for name, of in part.holds.items()
            if name.split()[1] in changes.get("loads", part.loads)}
        parts[part.name] = replace(part, **changes, holds=holds)
        # Columns and loads that "only" names may be left out.
        whole.check(replace(parts[part.name], only={}), f"part {part.name}")
    return replace(whole, parts=parts)


def counted(whole: plan.Plan, jobs: int) -> int:
    """A line per part: guests, cells, minutes, question."""
    for of in (*([part] for part in whole.parts.values()), list(whole.parts.values())):
        cells = plan.cells(whole, [part.name for part in of])
        starts = plan.starts(cells)
        name, asks = ("all", "") if len(of) != 1 else (of[0].name, of[0].question)
        print(f"{name:16} {len(starts):3} guests {len(cells):4} cells "
              f"{sum(map(store.cost, starts)) / 60 / jobs:5.1f} min  {asks}".rstrip())
    return 0


def show(whole: plan.Plan, name: str) -> int:
    """What is done for a name: its fields, and all shell that is run for it."""
    everything: list[plan.Part | plan.Column | plan.Load] = [
        *whole.parts.values(), *whole.columns.values(), *whole.loads.values()]
    found = [one for one in everything if one.name == name]
    if not found:
        raise UsageError(f"no part, column or load {name}; there are: " + ", ".join(
            one.name for one in everything))
    script = (store.HERE / "cells.sh").read_text(encoding="utf-8")
    for one in found:
        print(f"[{type(one).__name__.lower()}.{name}]")
        for f in fields(one):
            if f.name != "name" and (value := getattr(one, f.name)):
                print(f"{f.name} = {', '.join(value) if isinstance(value, tuple) else value}")
        if isinstance(one, plan.Part):
            for start in plan.starts(plan.cells(whole, [name])):
                print(f"\n# guest {start.name}\n" + "\n".join(
                    text for _, text in store.job(start).steps))
            continue
        shell = store.setting(one) if isinstance(one, plan.Column) else \
            f"{one.before or ':'}\n{one.run}"
        print("\n# in the guest\n" + "\n".join([shell, *store.helpers(shell, script)]))
    return 0


def of(args: argparse.Namespace) -> tuple[Path, ...]:
    """The samples."""
    return (args.samples,) if args.samples else claims.SAMPLES


def judged(args: argparse.Namespace) -> int:
    """1 if a claim does not hold."""
    check = claims.check(of(args))
    if args.set:
        print("\n".join(check.set()))
    found = list(check)
    problems = claims.problems(found)
    for line in map(str, found) if args.list else problems:
        print(line)
    print(f"{len(found)} numbers in {len(check.claims)} sentences, {len(problems)} do not hold")
    return int(bool(problems))


def command(args: argparse.Namespace) -> int:
    """1 if a cell failed, or a judged column is not where its part says."""
    whole = plan.read()
    if args.words[:1] == ["show"] and len(args.words) == 2:
        return show(whole, args.words[1])
    if args.words == ["claims"]:
        return judged(args)
    if args.list or args.set:
        raise UsageError("--list and --set are of lab claims alone")
    if args.words == ["pages"]:
        changed = pages.fill(pages.documents(), of(args))
        print("\n".join([*map(str, changed), f"{len(changed)} documents changed"]))
        return 0
    if not args.words and not args.tier:
        return counted(whole, args.jobs)
    wanted = chosen(booted(whole, args), args)
    if args.results and (wanted.parts.items() - whole.parts.items() or args.kernel or args.append):
        raise UsageError("--results: whole parts of the plan, without other options")
    tier = results.tier(wanted.parts.values()) if args.results else ""
    if args.picture and len(wanted.parts) > 1:
        raise UsageError("--picture: of one part, not " + ", ".join(wanted.parts))
    if args.dry:
        return counted(wanted, args.jobs)
    begin = time.monotonic()
    cells = [cell for cell in plan.cells(wanted, list(wanted.parts))
             if not args.kernels or cell.column.kernel in args.kernels]
    if args.samples:
        parts = [name for name in wanted.parts if name in whole.parts]
        found = store.saved(cells, args.samples, plan.cells(whole, parts))
    else:
        found = store.measure(cells, wanted, args.out, paths.qemu(args.qemu), args.jobs, args.kept,
                              results.kept(whole, tier) if args.results else ())
        store.save(found.samples, args.out / "samples.csv")
    if args.results:
        every = results.keep(whole, tier, cells, found.samples)
        if every and args.tier == tier == "release" and not args.kernels:
            results.sign()
    rows = table.rows(found.samples, wanted)
    for name, part in wanted.parts.items():
        write_csv(args.out / f"{name}.csv", table.HEAD,
                  [row.cells() for row in rows if row.key[0] == name], part.question, table.NOTE)
    publish(args.out / "losers.csv", table.HEAD,
            [row.cells() for row in table.losers(rows, wanted)],
            "Where judged columns are worse.", table.NOTE)
    if any(name.startswith(published.PART) for name in wanted.parts):
        published.write(rows, wanted, results.DIR if args.results else args.out)
    for part in wanted.parts.values() if args.picture else ():
        picture.draw(rows, part, args.picture)
    for part in wanted.parts.values() if args.loads else ():
        print("\nmedians of result and mJ\n" + pages.medians(
            rows, wanted, part, part.columns, part.loads, pages.MEASURES))
    wrong = [*(f"FAILED {text}" for text in found.failed),
             *(f"HOLDS NO LONGER {text}" for text in table.broken(rows, wanted))]
    print("\n".join([*wrong, f"{len(found.samples)} of {len(cells)} cells, "
                     f"{clock(time.monotonic() - begin)}: {args.out}/"
                     f"{{{','.join((*wanted.parts, 'losers'))}}}.csv"]))
    return int(bool(wrong))


def on_host(args: argparse.Namespace) -> int:
    """1 if a cell failed or a setting could not be put back."""
    knobs = host.Knobs(Path("/"))
    host.check(knobs)
    out = args.output.resolve()
    initramfs.compiled(PROGRAMS / "stopwatch.c", out)
    initramfs.compiled(PROGRAMS / "disk.c", out, shared=True)
    of, found, lost = host.run(knobs, partial(host.load, out, host.tsc_khz()), print,
                               host.surroundings(out))
    whole = plan.Plan({}, {}, host.LOADS, {"host": host.part(of)})
    store.save(found.samples, out / "samples.csv")
    publish(out / "host.csv", table.HEAD,
            [row.cells() for row in table.rows(found.samples, whole)], platform.release(),
            table.NOTE)
    print("\n".join(f"FAILED {text}" for text in found.failed))
    return int(bool(lost or found.failed))
