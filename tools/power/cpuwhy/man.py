# SPDX-License-Identifier: GPL-2.0
"""The manual page, made of the parser: options are described once."""
from __future__ import annotations

import argparse
from collections.abc import Iterator

from . import VERSION, form

LEFT_OUT = (argparse._SubParsersAction, argparse._HelpAction)
EXAMPLES = (
    ("What holds the clock of this machine down?", "cpuwhy explain"),
    ("What does this report say? Files, folders, archives, or a paste on standard input:",
     "cpuwhy explain turbostat.txt sys.tar.gz; xclip -o | cpuwhy explain -"),
    ("What is set up badly on the machine of a sosreport?", "cpuwhy doctor --root sosreport-a"),
    ("Who waited for a higher clock?", "cpuwhy freq --record 10"),
    ("Which idle states were wrong while a program ran, and who woke the CPUs?",
     "cpuwhy record trace.dat 30 ./bench; cpuwhy idle trace.dat --wakers 20"),
    ("Is the governor performance better than schedutil, for what runs now, and for a build?",
     "cpuwhy compare --a 'cpupower frequency-set -g schedutil'"
     " --b 'cpupower frequency-set -g performance' [-- make]"))


def quote(text: str) -> str:
    """For troff: no commands at the start of a line, minus signs that can be copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in ".'" else line for line in text.splitlines())


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    formatter = argparse.HelpFormatter(parser.prog)
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or isinstance(action, LEFT_OUT):
            continue
        name = formatter._format_action_invocation(action)
        if not action.option_strings and isinstance(action.metavar, str):
            name = action.metavar
        yield f".TP\n\\fB{quote(name)}\\fR\n{quote((action.help or '').replace('%%', '%'))}"


def page(parser: argparse.ArgumentParser, commands: dict[str, argparse.ArgumentParser]) -> str:
    lines = [f'.TH CPUWHY 8 "" "cpuwhy {VERSION}" "System administration"', ".SH NAME",
             "cpuwhy \\- why CPUs slept, woke and clocked as they did", ".SH SYNOPSIS"]
    for sub in commands.values():
        usage = " ".join(sub.format_usage().split()).removeprefix("usage: ")
        lines += [quote(usage), ".br"]
    lines += [".SH DESCRIPTION", quote(parser.description or ""), ".nf",
              quote(parser.epilog or ""), ".fi"]
    lines += [".SH OPTIONS", f".TP\n\\fB{quote('-h, --help')}\\fR\nof cpuwhy or of a command",
              *_arguments(parser)]
    for name, sub in commands.items():
        lines += [f".SH CPUWHY {quote(name.upper())}", quote(sub.description or "")]
        lines += _arguments(sub)
    lines.append(".SH FIELDS OF A PROBE")
    for name, about in form.fields():
        lines += [".TP", f"\\fB{quote(name)}\\fR", quote(about)]
    lines.append(".SH EXAMPLES")
    for about, command in EXAMPLES:
        lines += [".TP", quote(about), ".br", f"\\fB{quote(command)}\\fR"]
    lines += [".SH SEE ALSO", "perf\\-record(1), trace\\-cmd(1), turbostat(8), cpupower(1)"]
    return "\n".join(lines) + "\n"
