"""`ptxtile forms`: spellings, written as they are found, for there may be very many."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from typing import TextIO

import ptxtile as pt
from ptxtile.cli import UsageFault

__all__ = ["run"]


def run(options: argparse.Namespace, out: TextIO) -> int:
    """Write the spellings, or their number, to `out`; 0 if there are any, else 1."""
    if options.limit is not None and options.limit < 1:
        raise UsageFault(f"--limit must be at least 1, not {options.limit}")
    found = itertools.islice(pt.forms(options.pattern, options.target), options.limit)
    if options.count:
        number = sum(1 for _ in found)
        head = {"pattern": options.pattern, "target": options.target, "count": number}
        out.write((json.dumps(head) if options.json else str(number)) + "\n")
        return 0 if number else 1
    if options.json:
        out.write(
            f'{{"pattern": {json.dumps(options.pattern)}, "target": {json.dumps(options.target)}, "forms": ['
        )
    number = 0
    for spelling in found:
        if options.json:
            out.write(f"{',' if number else ''}\n  {json.dumps(spelling)}")
        else:
            out.write(spelling + "\n")
        number += 1
    if options.json:
        out.write("\n]}\n" if number else "]}\n")
    if not number:
        where = f" on {options.target}" if options.target else ""
        sys.stderr.write(f"ptxtile forms: no spelling matches {options.pattern!r}{where}\n")
    return 0 if number else 1
