"""Coordinate → register, lane, warp, address: axes, tile layouts, swizzles, and what follows from them.

Nothing here knows PTX, tensors or traces; a builder lowers `plan()` itself. `picture` says what there is to see of a
layout, with its bank conflicts, and `draw` makes SVG or text of it.
"""

from ptxtile.layout import draw as draw, picture as picture
from ptxtile.layout.axis import (
    AXES,
    Axis,
    Step,
    TCol,
    TLane,
    bx,
    by,
    bz,
    cbx,
    cby,
    cbz,
    laneid,
    m,
    tid_in_wg,
    tx,
    warpid,
    wgid,
    wid_in_wg,
)
from ptxtile.layout.grouping import Term
from ptxtile.layout.iters import Iter
from ptxtile.layout.layout import Replica, TileLayout
from ptxtile.layout.notation import R, S
from ptxtile.layout.reading import parse_layout
from ptxtile.layout.swizzle import ComposeLayout, Layout, Swizzle, as_layout

__all__ = [
    "AXES",
    "Axis",
    "ComposeLayout",
    "Iter",
    "Layout",
    "R",
    "Replica",
    "S",
    "Step",
    "Swizzle",
    "TCol",
    "TLane",
    "Term",
    "TileLayout",
    "as_layout",
    "bx",
    "by",
    "bz",
    "cbx",
    "cby",
    "cbz",
    "draw",
    "laneid",
    "m",
    "parse_layout",
    "picture",
    "tid_in_wg",
    "tx",
    "warpid",
    "wgid",
    "wid_in_wg",
]
