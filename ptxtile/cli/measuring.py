"""`ptxtile measure`: what instructions cost, on the GPU that is here, or prepared here for one that is elsewhere."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import ptxtile as pt
from ptxtile.cli import UsageFault

if TYPE_CHECKING:
    from ptxtile.measure import Record

__all__ = ["add_parser", "run"]


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command `measure` and its options."""
    parser = commands.add_parser("measure", help="what instructions cost: latency, throughput, their SASS")
    parser.add_argument(
        "patterns", nargs="*", metavar="PATTERN", help="globs of spellings: 'fma.*' 'cvt.rn.*'"
    )
    parser.add_argument(
        "--scenarios",
        action="append",
        default=[],
        metavar="PATTERN",
        help="globs of scenarios and their points: 'memory.*', 'tma.rate.bulk.load/4KiB'; 'list' lists them",
    )
    parser.add_argument("--spellings", type=Path, metavar="FILE", help="more patterns, one a line")
    parser.add_argument("--target", help="what to assemble for (the GPU's own target; without a GPU sm_90a)")
    parser.add_argument(
        "--prepare", type=Path, metavar="DIR", help="only assemble and prove, into DIR; needs no GPU"
    )
    parser.add_argument("--prepared", type=Path, metavar="DIR", help="time what was prepared in DIR")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write records as JSON lines; go on if there"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a report, one file for a browser")
    parser.add_argument(
        "--rebuild",
        action="store_true",
        help="with --prepared and --json: records anew from FILE.raw, no GPU",
    )
    parser.add_argument(
        "--compare", nargs=2, type=Path, metavar="FILE", help="two files of records side by side"
    )
    parser.add_argument(
        "--ptx",
        action="store_true",
        help="print the timed kernels of one spelling or point, and time nothing",
    )
    parser.add_argument("--device", type=int, default=0, metavar="N", help="CUDA ordinal")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="processes that assemble")
    parser.add_argument(
        "--hang", type=float, default=30.0, metavar="S", help="seconds after which a kernel is stopped"
    )


def _progress() -> Callable[[str], None]:
    if not sys.stderr.isatty():
        return lambda text: None
    count = 0

    def show(text: str) -> None:
        nonlocal count
        count += 1
        sys.stderr.write(f"\r\033[K{count:6d}  {text}")
        sys.stderr.flush()

    return show


def _spellings(options: argparse.Namespace) -> list[str]:
    from ptxtile import measure

    patterns = list(options.patterns)
    if options.spellings:
        patterns += options.spellings.read_text().split()
    if not patterns and not options.scenarios:
        raise UsageFault("name at least one pattern, such as 'fma.*', or --prepared DIR, or --compare A B")
    found: dict[str, None] = {}
    for pattern in patterns:
        if any(sign in pattern for sign in "*?["):
            found.update(dict.fromkeys(pt.forms(pattern, options.target)))
        else:
            found[pt.validate(pattern).spelling] = None
    for pattern in options.scenarios:
        points = list(measure.scenario_names(pattern))
        if not points:
            raise UsageFault(f"no scenario is named {pattern!r}; --scenarios list lists them")
        found.update(dict.fromkeys(points))
    return list(found)


def run(options: argparse.Namespace) -> int:
    """Prepare, time or compare; 0 if there is a number (or, comparing, no difference), else 1."""
    try:
        return _run(options)
    except (pt.FormError, pt.DriverError, pt.AssemblerError, OSError, ValueError) as error:
        raise UsageFault(str(error)) from error


def _run(options: argparse.Namespace) -> int:
    from ptxtile import measure

    if options.scenarios == ["list"]:
        sys.stdout.writelines(f"{name}\n" for name in measure.scenario_names())
        return 0
    if options.compare:
        before, after = (list(measure.read(path)) for path in options.compare)
        text, same = measure.compare(before, after)
        sys.stdout.write(text + "\n")
        return 0 if same else 1
    show = _progress()
    options.target = options.target or measure.default_target(options.device)
    if options.ptx:
        names = _spellings(options)
        if len(names) != 1:
            raise UsageFault(f"--ptx prints the kernels of one spelling or point, not of {len(names)}")
        sys.stdout.write(measure.source(names[0], options.target))
        return 0
    if options.prepare:
        measure.prepare(
            _spellings(options), options.target, options.prepare, workers=options.workers, progress=show
        )
        return 0
    records = _records(options, show)
    if options.html:
        options.html.parent.mkdir(parents=True, exist_ok=True)
        options.html.write_text(measure.report(records), encoding="utf-8")
    sys.stdout.write(measure.table(records) + "\n")
    return 0 if any(record.skipped is None for record in records) else 1


def _records(options: argparse.Namespace, show: Callable[[str], None]) -> list[Record]:
    """Timed now, or rebuilt from times, or, of a file of records alone, read."""
    from ptxtile import measure

    if options.rebuild:
        if not options.prepared or not options.json:
            raise UsageFault("--rebuild needs --prepared DIR and --json FILE, beside which FILE.raw is")
        return measure.rebuild(options.prepared, options.json)
    if (
        options.html
        and options.json
        and options.json.exists()
        and not (options.patterns or options.scenarios or options.prepared)
    ):
        return list(measure.read(options.json))
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.prepared
        if folder is None:
            folder = Path(scratch)
            measure.prepare(
                _spellings(options), options.target, folder, workers=options.workers, progress=show
            )
        out = options.json or Path(scratch) / "out.jsonl"
        return measure.run(folder, out, device=options.device, limit=options.hang, progress=show)
