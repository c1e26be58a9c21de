"""`ptxtile layout`: a picture of a layout, in the terminal or in an SVG file."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import ptxtile as pt
from ptxtile.cli import Answer, UsageFault

__all__ = ["answer"]


def answer(options: argparse.Namespace) -> Answer:
    """The picture; with --svg a file is written, and the answer says which (or is the SVG itself, for -)."""
    layout = pt.layout.parse_layout(options.layout)
    shape = _shape(options.shape)
    bits, access, along = options.bits, options.access, options.along
    data: dict[str, object] = {"layout": repr(layout), "shape": list(shape or layout.extents)}
    if options.json:
        data["elements"] = [[dict(each) for each in layout.owners(index)] for index in range(layout.size())]
    if options.svg is None:
        drawn = pt.layout.draw.text(
            pt.layout.picture.picture(layout, shape, bits=bits, access=access, along=along), _coloured()
        )
        return Answer(True, drawn, data)
    drawn = layout.svg(shape, bits=bits, access=access, along=along)
    if options.svg == "-":
        return Answer(True, drawn, {**data, "svg": drawn})
    try:
        Path(options.svg).write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise UsageFault(f"{options.svg} cannot be written: {error.strerror or error}") from None
    return Answer(True, f"wrote {options.svg}", {**data, "file": options.svg})


def _shape(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    parts = text.replace("x", ",").replace("×", ",").strip("()[] ").split(",")
    try:
        return tuple(int(part) for part in parts if part.strip())
    except ValueError:
        raise UsageFault(f"--shape is written like 8,16, not {text!r}") from None


def _coloured() -> bool:
    """Colours are for a terminal, unless NO_COLOR says otherwise (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
