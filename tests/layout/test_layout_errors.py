"""Every refusal, with its whole text."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtile.layout as namespace
from ptxtile.errors import LayoutError
from ptxtile.layout import S

NAMES = {name: getattr(namespace, name) for name in namespace.__all__} | {"np": np, "L": S[8, 4]}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("S[(2, 3) : (1,)]", "2 extents (2, 3) but 1 stride (1,)\n  give one stride for each extent"),
        ("S[(2, 3) : 1]", "2 extents (2, 3) but 1 stride (1,)\n  give one stride for each extent"),
        ("S[8:2:1]", "S[extents : strides] takes no step; 1 stands after a second colon"),
        (
            "S[2, 8:1]",
            "S[…] mixes extents with extents : strides\n  write S[(8, 4) : (4 @ laneid, 1)]: all extents, a colon, all strides",
        ),
        ("S[:2]", "S[extents : strides] has no extents before the colon"),
        ("S[8:]", "S[extents : strides] has no strides after the colon"),
        ("S[()]", "a layout needs at least one extent, as in S[1]"),
        ("S[True]", "an extent must be an int, not True (bool)"),
        ("S[8 : True]", "a stride must be an int, not True (bool)"),
        ("S[2.0]", "an extent must be an int, not 2.0 (float)"),
        ("S[0]", "an extent must be at least 1, not 0"),
        ('S["8"]', "an extent must be an int, not '8' (str)"),
        (
            'S[8 : "lane"]',
            "unknown axis 'lane'; did you mean 'laneid'?\n  the axes are m bx by bz cbx cby cbz tx warpid laneid wgid tid_in_wg wid_in_wg TLane TCol",
        ),
        (
            'S[8 : "laneld"]',
            "unknown axis 'laneld'; did you mean 'laneid'?\n  the axes are m bx by bz cbx cby cbz tx warpid laneid wgid tid_in_wg wid_in_wg TLane TCol",
        ),
        ("S[8 : (1, 2, 3)]", "1 extent (8,) but 3 strides (1, 2, 3)\n  give one stride for each extent"),
        (
            'Axis("thread")',
            "unknown axis 'thread'\n  the axes are m bx by bz cbx cby cbz tx warpid laneid wgid tid_in_wg wid_in_wg TLane TCol",
        ),
        ("1.5 @ laneid", "the step along laneid must be an int, not 1.5 (float)"),
        ("True @ laneid", "the step along laneid must be an int, not True (bool)"),
        (
            "S[8] + S[4]",
            "S[8] + S[4]: a layout has one shard; list all extents in one S[…], or place one over the other with tile()",
        ),
        ("S[8] + 1.5", "cannot add 1.5 to a layout; add R[…], n, or n @ axis"),
        ("S[8] + True", "a stride must be an int, not True (bool)"),
        (
            "TileLayout(R[2 : 4 @ warpid])",
            "a tile layout is due, not R[2 : 4 @ warpid]; a layout starts from S[…]",
        ),
        ("TileLayout((2, 4))", "a tile layout is due, not (2, 4); a layout starts from S[…]"),
        ("TileLayout(S[8 : -1])", "S[8 : -1] reaches -7 on m; values start at 0: add 7 as an offset"),
        ("R[2]", "R[extents : strides] needs the strides at which the copies lie, as in R[2 : 4 @ warpid]"),
        ("(S[8 : -1]).apply(0)", "S[8 : -1] reaches -7 on m; values start at 0: add 7 as an offset"),
        (
            "L.apply()",
            "0 coordinates for extents (8, 4)\n  give one linear index, one coordinate for each extent, or shape=",
        ),
        (
            "L.apply(1, 2, 3)",
            "3 coordinates for extents (8, 4)\n  give one linear index, one coordinate for each extent, or shape=",
        ),
        ("L.apply(32)", "coordinate 32 is out of range: 0 to 31"),
        ("L.apply(8, 0)", "dimension 0: coordinate 8 is out of range: 0 to 7"),
        ("L.apply(-1, 0)", "dimension 0: coordinate -1 is out of range: 0 to 7"),
        ("L.apply(True)", "coordinate must be an int, not True (bool)"),
        ("L.apply(1.5)", "coordinate must be an int, not 1.5 (float)"),
        ("L.apply(np.array([1.5, 2.0]))", "a coordinate array must hold integers, not float64"),
        ("L.apply(np.arange(9), 0)", "dimension 0: coordinate 8 is out of range: 0 to 7"),
        ("L.apply(0, shape=(5, 7))", "shape (5, 7) has 35 elements, the layout has 32"),
        (
            "L.apply(0, 0, 0, shape=(8, 4))",
            "3 coordinates for shape (8, 4)\n  give one linear index, one coordinate for each extent",
        ),
        ("L.apply(0, 0, shape=8)", "shape must be a tuple of ints, not 8"),
        ("L.plan((5, 7))", "shape (5, 7) has 35 elements, the layout has 32"),
        (
            "S[4, 3].plan((3, 4))",
            "S[4, 3] cannot be grouped by shape (3, 4), dimension 1: 4 does not divide the extent 3, nor the other way round",
        ),
        ("S[17].tile_to((17,), (8,))", "dimension 0: a tile of 8 does not divide 17; 16 or 24 would do"),
        ("S[8].tile_to((4,), (8,))", "dimension 0: a tile of 8 does not divide 4; 8 or 16 would do"),
        ("S[8].tile_to((4, 2), (8,))", "to_shape (4, 2) and cur_shape (8,) differ in rank"),
        (
            "S[8].tile(S[2], (2, 1), (8,))",
            "an outer shape of rank 2 over an inner one of rank 1; the ranks must be equal",
        ),
        ("S[8:2].inverse()", "S[8 : 2] has no inverse: on m a stride of 2 stands where 1 is due (a gap)"),
        (
            "S[(2, 2) : (1, 1)].inverse()",
            "S[(2, 2) : (1, 1)] has no inverse: on m a stride of 1 stands where 2 is due (an overlap)",
        ),
        (
            "(S[8] + 1).inverse()",
            "S[8] + 1 has no inverse: its offsets start above 0; invert it without them",
        ),
        (
            "S[(8, 2) : (laneid, 1)].inverse((m,))",
            "S[(8, 2) : (1 @ laneid, 1)] has no inverse over (m): it also uses laneid",
        ),
        (
            "ComposeLayout(0, 1, 1, S[4]).inverse()",
            "the inverse of ComposeLayout(0, 1, 1, TileLayout(S[4])) is no layout\n  the swizzle is its own inverse: base.inverse().apply(swizzle.apply(place)) gives the index",
        ),
        (
            "S[8].compose(S[9])",
            "S[8] cannot be composed with S[9]: it gives indices 0 to 8, the outer layout takes 0 to 7",
        ),
        (
            "S[8].compose(S[8 : laneid])",
            "S[8] cannot be composed with S[8 : 1 @ laneid]: the inner layout may have neither owner axes nor replicas",
        ),
        (
            "S[(3, 4) : (5, 1)].compose(S[2:6] + 0).compose(S[2])",
            "S[(3, 4) : (5, 1)] cannot be composed with S[2 : 6] + 0: S[2 : 6] does not step evenly through the outer extents",
        ),
        (
            "S[(3, 4) : (5, 1)].compose(S[(2, 2) : (3, 3)])",
            "S[(3, 4) : (5, 1)] cannot be composed with S[(2, 2) : (3, 3)]: a sum of inner strides carries from one outer extent into the next",
        ),
        (
            "S[(3, 4) : (5, 1)].compose(S[3:3])",
            "S[(3, 4) : (5, 1)] cannot be composed with S[3 : 3]: S[3 : 3] does not step evenly through the outer extents",
        ),
        (
            "S[(3, 4) : (5, 1)].compose(S[2 : -1] + 4)",
            "S[(3, 4) : (5, 1)] cannot be composed with S[2 : -1] + 4: a sum of inner strides carries from one outer extent into the next",
        ),
        ("L.permute_dims((0, 0))", "(0, 0) is no permutation of 0 to 1"),
        ("L.permute_by_groups((0, 1), (0,))", "separators (0, 1) must rise from 0 to the number of iters, 2"),
        (
            "S[4:2].pack(2)",
            "S[4 : 2] cannot be packed by 2: its innermost coordinates are no run of 2 neighbours on m",
        ),
        (
            "S[9].pack(2)",
            "S[9] cannot be packed by 2: its innermost coordinates are no run of 2 neighbours on m",
        ),
        (
            "S[(4, 2) : (3, 1)].pack(2)",
            "S[(4, 2) : (3, 1)] cannot be packed by 2: a stride or offset of 3 on m is no multiple of 2",
        ),
        (
            "(S[4] + 1).pack(2)",
            "S[4] + 1 cannot be packed by 2: a stride or offset of 1 on m is no multiple of 2",
        ),
        ("S[4].pack(0)", "a packing factor must be at least 1, not 0"),
        (
            "ComposeLayout(0, 1, 1, S[4]).pack(2)",
            "ComposeLayout(0, 1, 1, TileLayout(S[4])) cannot be packed by 2: it moves units of 2**0 elements",
        ),
        ("ComposeLayout(0, 1, 1, S[4]).unpack(3)", "a swizzled layout is packed by powers of two, not by 3"),
        (
            "L.slice((32,), (2,), (3,)).slice((3,), (0,), (4,))",
            "dimension 0: a window of 4 from 0 leaves its extent of 3",
        ),
        (
            "S[(8, 4) : (9, 1)].slice((32,), (2,), (3,))",
            "dimension 0 of shape (32,) on S[(8, 4) : (9, 1)]: a window of 3 from 2 crosses the end of an iter of extent 4\n  start and size must be multiples of 4, or stay inside one",
        ),
        (
            "S[(8, 4) : (9, 1)].window((32,), (8,), (2,))",
            "dimension 0 of shape (32,) on S[(8, 4) : (9, 1)]: a window of 8 from a multiple of 2 crosses the end of an iter of extent 4\n  start and size must be multiples of 4, or stay inside one",
        ),
        (
            "S[(8, 4) : (9, 1)].window((32,), (8,))",
            "dimension 0 of shape (32,) on S[(8, 4) : (9, 1)]: a window of 8 from an unknown start crosses the end of an iter of extent 4\n  start and size must be multiples of 4, or stay inside one",
        ),
        ("L.slice((8, 4), (0,), (1, 1))", "starts (0,) has 1 dimension, shape (8, 4) has 2"),
        ("L.slice((8, 4), (-1, 0), (1, 1))", "dimension 0: a window of 1 from -1 leaves its extent of 8"),
        ("L.window((8, 4), (1, 1), (0, 1))", "dimension 0: a multiple must be at least 1, not 0"),
        ("L.is_run((8, 4), 3)", "there are no 3 last dimensions in a shape of 2"),
        (
            "S[(2, 2) : (TLane, TCol)].span()",
            "span() of a layout with several memory axes (TLane, TCol): name one",
        ),
        (
            "ComposeLayout(0, 2, 1, S[8])",
            "atom_len 1 is below swizzle_len 2: it would read bits that it writes",
        ),
        ("ComposeLayout(-1, 2, 1, S[8])", "per_element must be at least 0, not -1"),
        (
            "ComposeLayout(0, 0, 1, S[8 : laneid])",
            "a swizzled layout has no axis but m; TileLayout(S[8 : 1 @ laneid]) also names laneid",
        ),
        ("ComposeLayout(0, 0, 1, (8,))", "a tile layout is due, not (8,); a layout starts from S[…]"),
        ("ComposeLayout(0, 0, 1, S[8], swizzle_inner=1)", "swizzle_inner must be a bool, not 1"),
        ('as_layout("S[8]")', "a tile layout is due, not 'S[8]'; a layout starts from S[…]"),
        ('Iter(4, "1")', "a stride must be an int, not '1' (str)"),
        (
            "TileLayout.from_iters([])",
            "a layout needs at least one shard iter; a single element is Iter(1, 1)",
        ),
        ("S[1].group(())", "a layout cannot be grouped by the empty shape ()"),
    ],
)
def test_message(source, message):
    with pytest.raises(LayoutError) as caught:
        eval(source, NAMES)
    assert str(caught.value) == message


def test_arrays_that_do_not_broadcast():
    with pytest.raises(LayoutError, match=r"^coordinate arrays must broadcast together: .*\(3,\) \(4,\)$"):
        S[8, 4].apply(np.arange(3), np.arange(4))
