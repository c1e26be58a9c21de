"""`ptxtile …`: the questions a person asks from a shell. Each command stands on the public API, like a user.

    ptxtile check fma.rn.f32 --target sm_90       is this spelling right?         (also a module: kernel.ptx, or -)
    ptxtile forms 'cvt.*' --target sm_100a        which spellings are there?
    ptxtile explain mbarrier.init.b64             operands, targets, versions
    ptxtile layout 'S[4, 8]' --svg out.svg        a picture of a layout
    ptxtile emulate kernel.ptx --arg in.npy       run a kernel on the CPU, checked
    ptxtile measure 'fma.*' --json fma.jsonl      what instructions cost, on the GPU here
    ptxtile doctor                                what this installation has

Exit status: 0 yes; 1 no (a spelling or a module is invalid, nothing matches, a kernel was stopped); 2 the question
itself is wrong. With `--json` the answer is one JSON document on standard output, described in `docs/cli.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

import ptxtile as pt

__all__ = ["Answer", "UsageFault", "main"]

_SIGPIPE = 141
"""What a shell calls a process that a closed pipe ended."""


class Answer(NamedTuple):
    """What a command has to say: whether yes, as text for a person, as values for JSON."""

    good: bool
    text: str
    data: object


class UsageFault(Exception):
    """A question that cannot be answered: a file that is not there, options that do not go together."""


def _layout_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    layout = commands.add_parser("layout", help="draw a layout, in the terminal or as SVG")
    layout.add_argument("layout", help="'S[(8, 4) : (4 @ laneid, 1)]', 'ComposeLayout(3, 3, 3, S[8, 64])'")
    layout.add_argument(
        "--shape", metavar="R,C", help="the shape to see it in, as 8,16; without it its extents"
    )
    layout.add_argument("--svg", metavar="FILE", help="write an SVG file (- for standard output)")
    layout.add_argument(
        "--bits", type=int, metavar="N", help="width of an element, for the banks of shared memory"
    )
    layout.add_argument(
        "--access", type=int, metavar="BYTES", help="show one access of a warp and its bank conflicts"
    )
    layout.add_argument(
        "--along", type=int, default=0, metavar="DIM", help="the dimension that the lanes go along"
    )
    return layout


def _parser() -> argparse.ArgumentParser:
    from ptxtile.cli import emulate, measuring  # not above: they import this module

    parser = argparse.ArgumentParser(
        prog="ptxtile",
        description="Ask about PTX instructions, PTX modules and layouts.",
        epilog="Exit status: 0 yes, 1 no (invalid, or nothing found), 2 the question is wrong.",
    )
    parser.add_argument("--version", action="version", version=f"ptxtile {pt.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    check = commands.add_parser("check", help="is a spelling, or a whole PTX module, right?")
    check.add_argument(
        "what", nargs="+", metavar="SPELLING|FILE", help="fma.rn.f32, kernel.ptx, or - for standard input"
    )
    check.add_argument("--target", help="sm_90a; without it any target (of a module: its own)")
    check.add_argument(
        "--ptx-version", metavar="X.Y", help="of spellings: the PTX ISA version, without it the newest"
    )

    forms = commands.add_parser("forms", help="list the canonical spellings that match a pattern")
    forms.add_argument("pattern", nargs="?", default="*", help="a glob such as 'cvt.*' (quote it)")
    forms.add_argument("--target", help="only what this target has")
    forms.add_argument("--limit", type=int, metavar="N", help="stop after N")
    forms.add_argument("--count", action="store_true", help="only say how many")

    explain = commands.add_parser("explain", help="signatures of a form: operands, targets, versions")
    explain.add_argument("form", help="a spelling")

    layout = _layout_parser(commands)
    emulated = emulate.add_parser(commands)
    measuring.add_parser(commands)
    doctor = commands.add_parser("doctor", help="what this installation has and where")
    for command in (check, forms, explain, layout, emulated, doctor):
        command.add_argument("--json", action="store_true", help="answer in JSON")
    return parser


def _answer(options: argparse.Namespace) -> Answer | int:
    """Ask the module of the command; those that write as they go give an exit status."""
    if options.command == "check":
        from ptxtile.cli import check

        return check.answer(options.what, options.target, options.ptx_version)
    if options.command == "explain":
        from ptxtile.cli import explain

        return explain.answer(options.form)
    if options.command == "layout":
        from ptxtile.cli import layout

        return layout.answer(options)
    if options.command == "emulate":
        from ptxtile.cli import emulate

        return emulate.answer(options)
    if options.command == "measure":
        from ptxtile.cli import measuring

        return measuring.run(options)
    if options.command == "doctor":
        from ptxtile.cli import health

        return health.answer()
    from ptxtile.cli import listing

    return listing.run(options, sys.stdout)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status. `arguments` are without the program's name, by default the process's own."""
    options = _parser().parse_args(arguments)
    try:
        found = _answer(options)
        if isinstance(found, Answer):
            text = json.dumps(found.data, indent=2, ensure_ascii=False) if options.json else found.text
            sys.stdout.write(text.rstrip("\n") + "\n")
            found = 0 if found.good else 1
        sys.stdout.flush()
        return found
    except (UsageFault, pt.TargetError, pt.LayoutError, pt.NotationError) as error:
        sys.stderr.write(f"ptxtile {options.command}: {error}\n")
        return 2
    except BrokenPipeError:  # the reader has seen enough: no complaint, now or when Python flushes at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _SIGPIPE
    except KeyboardInterrupt:
        return 130
