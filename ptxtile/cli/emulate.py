"""`ptxtile emulate`: run a kernel of a PTX file on the emulator, with arguments from the command line."""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ptxtile as pt
from ptxtile.cli import Answer, UsageFault
from ptxtile.cli.values import Given, given

if TYPE_CHECKING:
    from ptxtile.ir.module import Function, Module

__all__ = ["add_parser", "answer"]

Extent = tuple[int, ...]
_ARGUMENTS = """An --arg is one of
  2.0, 7, -1                 a number, as the parameter's type
  f32=2.0, u32:7             a number of this type
  zeros:f32:1024             an array of f32 (also ones, arange, random); 32x64 for two dimensions
  in.npy                     an array from a file
An array may end in :out.npy, a file that gets what the kernel left there: zeros:f32:1024:out.npy, in.npy:out.npy."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The options of the command."""
    parser = commands.add_parser(
        "emulate",
        help="run a kernel of a PTX file on the CPU, checked",
        epilog=_ARGUMENTS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", help="kernel.ptx, or - for standard input")
    parser.add_argument("--entry", metavar="NAME", help="which kernel; without it the only one")
    parser.add_argument("--grid", default="1", metavar="X,Y,Z", help="CTAs of the grid (1)")
    parser.add_argument("--block", metavar="X,Y,Z", help="threads of a CTA (what .reqntid says, else 1)")
    parser.add_argument("--cluster", metavar="X,Y,Z", help="CTAs of a cluster")
    parser.add_argument(
        "--arg", action="append", default=[], metavar="ARG", help="a parameter's value, in order; see below"
    )
    parser.add_argument("--shared", type=int, default=0, metavar="N", help="bytes of dynamic shared memory")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="order of asynchronous work; random arrays"
    )
    parser.add_argument("--no-sanitize", action="store_true", help="do not look for races and the like")
    parser.add_argument(
        "--trace",
        nargs="?",
        const="",
        metavar="LINES",
        help="write each instruction to standard error, or those on these lines of the file (12,15)",
    )
    parser.add_argument(
        "--show", default="", metavar="REGISTERS", help="with --trace: values of registers, as %%r1,%%f2"
    )
    return parser


def answer(options: argparse.Namespace) -> Answer:
    """Run it: good unless the emulator stopped it, or the text is no module."""
    text = _text(options.file)
    try:
        module = pt.parse(text)
    except pt.ModuleSyntaxError as error:
        return _stopped(options, None, {"kind": "syntax", "line": error.line, "message": str(error)})
    entry = _entry(module, options.entry)
    if len(options.arg) != len(entry.parameters):
        listed = ", ".join(f".{p.type} {p.name}" for p in entry.parameters) or "none"
        raise UsageFault(
            f"{entry.name} takes {len(entry.parameters)} parameters ({listed}), {len(options.arg)} --arg were given"
        )
    arguments = [given(text, options.seed) for text in options.arg]
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed) if options.json else contextlib.nullcontext():
            _run(options, text, entry, arguments)
    except pt.EmulatorError as error:
        if error.kind == "launch":
            raise UsageFault(str(error)) from None
        fact = {"kind": error.kind, "line": error.line, "message": str(error)}
        return _stopped(options, entry, fact, printed.getvalue())
    for argument in arguments:
        argument.save()
    return _ended(options, entry, arguments, printed.getvalue())


def _run(options: argparse.Namespace, text: str, entry: Function, arguments: list[Given]) -> None:
    with _tracing(options):
        pt.emulator.launch(
            text,
            entry.name,
            _extent("--grid", options.grid),
            _block(entry, options.block),
            [argument.value for argument in arguments],
            cluster=None if options.cluster is None else _extent("--cluster", options.cluster),
            dynamic_shared=options.shared,
            sanitize=not options.no_sanitize,
            seed=options.seed,
        )


def _text(file: str) -> str:
    try:
        if file == "-":
            return sys.stdin.read()
        return Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageFault(f"{file} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageFault(f"{file} is no text in UTF-8") from None


def _entry(module: Module, name: str | None) -> Function:
    entries = {each.name: each for each in module.functions if each.entry and each.body is not None}
    listed = ", ".join(entries) or "none"
    if name is None and len(entries) == 1:
        return next(iter(entries.values()))
    if name is None:
        raise UsageFault(f"--entry must say which kernel to run; there are: {listed}")
    if name not in entries:
        raise UsageFault(f"the module has no kernel {name}; it has: {listed}")
    return entries[name]


def _extent(option: str, text: str) -> Extent:
    parts = text.replace("x", ",").split(",")
    if not 1 <= len(parts) <= 3 or not all(part.strip().isdigit() and int(part) for part in parts):
        raise UsageFault(f"{option} is one to three positive numbers, written like 4,2,1, not {text!r}")
    return tuple(int(part) for part in parts)


def _block(entry: Function, text: str | None) -> Extent:
    if text is not None:
        return _extent("--block", text)
    for directive in entry.directives:
        if directive.name == "reqntid":
            return tuple(int(value) for value in directive.values if isinstance(value, int))
    return (1,)


def _tracing(options: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    if options.trace is None:
        return contextlib.nullcontext()
    lines = [part.strip() for part in options.trace.split(",") if part.strip()]
    if not all(line.isdigit() for line in lines):
        raise UsageFault(f"--trace takes lines of the file, written like 12,15, not {options.trace!r}")
    names = [name.strip() for name in options.show.split(",") if name.strip()]

    def write(moment: Any) -> None:
        sys.stderr.write(f"{moment!r}\n")
        for name in names:
            if name in moment.registers:
                found = moment.registers[name][moment.active]
                values = " ".join(str(value) for value in found[:8].tolist())
                sys.stderr.write(f"    {name}: {values}{' …' if len(found) > 8 else ''}\n")

    return pt.emulator.tracing(write, breakpoints=[int(line) for line in lines] or None)


def _facts(options: argparse.Namespace, entry: Function | None) -> dict[str, object]:
    return {
        "file": options.file,
        "entry": options.entry if entry is None else entry.name,
        "sanitize": not options.no_sanitize,
        "seed": options.seed,
    }


def _stopped(
    options: argparse.Namespace, entry: Function | None, error: dict[str, object], printed: str = ""
) -> Answer:
    data = {"good": False, **_facts(options, entry), "error": error, "arguments": [], "printed": printed}
    return Answer(False, f"{options.file}: {error['message']}", data)


def _ended(options: argparse.Namespace, entry: Function, arguments: list[Given], printed: str) -> Answer:
    how = "unchecked (--no-sanitize)" if options.no_sanitize else "no findings"
    lines = [f"{options.file}: {entry.name} ran to its end, {how}"]
    rows = []
    for parameter, argument in zip(entry.parameters, arguments):
        rows.append({"parameter": parameter.name, **argument.facts()})
        if argument.is_array:
            lines.append(f"  {parameter.name}: {argument.described()}")
    data = {"good": True, **_facts(options, entry), "error": None, "arguments": rows, "printed": printed}
    return Answer(True, "\n".join(lines), data)
