"""Values that the design fixes, and one example of everything a layout answers."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

from ptxtile.layout import (
    ComposeLayout,
    Iter,
    R,
    S,
    Step,
    Swizzle,
    TCol,
    Term,
    TileLayout,
    TLane,
    as_layout,
    bx,
    laneid,
    m,
    tx,
    warpid,
)

MMA = S[(8, 2, 4, 2) : (4 @ laneid, 1 @ warpid, 1 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid


def test_memory_strides():
    assert S[8:2].apply(3) == {"m": 6}
    assert S[4, 8].apply(1, 2) == {"m": 10}
    assert S[4, 8].apply(10) == {"m": 10}


@pytest.mark.parametrize(
    ("coord", "base", "warps"),
    [
        ((0, 8), {"laneid": 0, "warpid": 6, "m": 0}, [6, 10]),
        ((7, 15), {"laneid": 31, "warpid": 6, "m": 1}, [6, 10]),
        ((1, 0), {"laneid": 4, "warpid": 5, "m": 0}, [5, 9]),
    ],
)
def test_fragment_with_replicas_and_offset(coord, base, warps):
    assert MMA.apply(*coord, shape=(8, 16)) == base
    assert MMA.owners(*coord, shape=(8, 16)) == tuple({**base, "warpid": warp} for warp in warps)


def test_swizzles():
    assert ComposeLayout(0, 2, 3, S[8, 8]).apply(1, 2) == {"m": 11}
    inner = ComposeLayout(0, 2, 2, S[16])
    order = [0, 1, 2, 3, 5, 4, 7, 6, 10, 11, 8, 9, 15, 14, 13, 12]
    assert [inner.apply(i)["m"] for i in range(16)] == order
    outer = ComposeLayout(0, 2, 2, S[16], swizzle_inner=False)
    assert [outer.apply(i)["m"] for i in range(16)] == [0, 5, 10, 15, 4, 1, 14, 11, 8, 13, 2, 7, 12, 9, 6, 3]
    assert list(inner.apply(np.arange(16))["m"]) == order
    assert inner.owners(5) == ({"m": 4},)


@pytest.mark.parametrize("mode", [1, 2, 3])
def test_shared_memory_swizzles_move_16_byte_units(mode):
    """Float16, swizzles of 32, 64, 128 bytes: XOR 1 to 3 bits of the line into those of the 16-byte unit."""
    layout = ComposeLayout(3, mode, 3, S[8, 8, 8])
    for line, unit, element in np.ndindex(8, 8, 8):
        moved = unit ^ line % (1 << mode)
        assert layout.apply(line, unit, element) == {"m": 64 * line + 8 * moved + element}


def test_every_way_to_write_a_stride():
    due = TileLayout.from_iters([Iter(8, 4, laneid), Iter(2, 1, laneid)])
    assert S[(8, 2) : (4 @ laneid, laneid)] == due
    assert S[(8, 2) : (laneid @ 4, "laneid")] == due
    assert S[(8, 2) : ((4, laneid), (1, "laneid"))] == due
    assert S[8 : (4, laneid)] == TileLayout.from_iters([Iter(8, 4, laneid)])
    assert S[np.int64(8) : np.int32(2)] == S[8:2]
    assert S[(4, 8)] == S[4, 8] == S[(4, 8) : (8, 1)]


def test_order_of_terms_does_not_matter():
    assert 5 @ warpid + S[8] + R[2 : 8 @ warpid] == R[2 : 8 @ warpid] + 5 @ warpid + S[8]
    assert S[8] + 3 + 2 @ laneid + 4 == 7 + S[8] + 2 @ laneid
    assert (S[8] + 3).offset == (Step(3, m),)


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        (
            S[(2, 32, 4) : (1 @ warpid, 1 @ laneid, 1)],
            "TileLayout(S[(2, 32, 4) : (1 @ warpid, 1 @ laneid, 1)])",
        ),
        (S[4, 8], "TileLayout(S[4, 8])"),
        (S[8:2], "TileLayout(S[8 : 2])"),
        (S[8:-1] + 7, "TileLayout(S[8 : -1] + 7)"),
        (S[8] + R[2 : 4 @ warpid] + 5 @ warpid, "TileLayout(S[8] + R[2 : 4 @ warpid] + 5 @ warpid)"),
        (S[8] + R[(2, 2) : (4 @ warpid, 1 @ bx)], "TileLayout(S[8] + R[(2, 2) : (4 @ warpid, 1 @ bx)])"),
        (ComposeLayout(3, 3, 3, S[8, 64]), "ComposeLayout(3, 3, 3, TileLayout(S[8, 64]))"),
        (
            ComposeLayout(0, 1, 2, S[8], swizzle_inner=False),
            "ComposeLayout(0, 1, 2, TileLayout(S[8]), swizzle_inner=False)",
        ),
        (R[2 : 4 @ warpid], "R[2 : 4 @ warpid]"),
        (4 @ laneid, "4 @ laneid"),
        (S, "S"),
        (R, "R"),
    ],
)
def test_repr(layout, text):
    assert repr(layout) == text


def test_values_are_equal_hashable_and_copy():
    again = S[(8, 2, 4, 2) : (4 @ laneid, 1 @ warpid, 1 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid
    assert {MMA: 1}[again] == 1
    assert TileLayout(MMA) == MMA and as_layout(MMA) is MMA
    assert pickle.loads(pickle.dumps(MMA)) == copy.deepcopy(MMA) == MMA
    swizzled = ComposeLayout(0, 1, 1, S[4])
    assert pickle.loads(pickle.dumps(swizzled)) == swizzled and hash(swizzled) == hash(copy.copy(swizzled))
    assert S[2, 4] != S[8] and S[2, 4].canonicalize() == S[8].canonicalize()
    assert swizzled != S[4]


def test_axes():
    assert MMA.axes == (laneid, warpid, m)
    assert MMA.owner_axes == (laneid, warpid) and MMA.memory_axes == (m,)
    assert (m.kind, TLane.kind, TCol.kind, tx.kind) == ("memory", "memory", "memory", "owner")
    assert S[4 : 1 @ laneid].apply(3) == {"laneid": 3, "m": 0}


def test_one_element_a_thread_keeps_all_axes():
    layout = S[(2, 32, 1) : (1 @ warpid, 1 @ laneid, 1)]
    grouped, marks = layout.group((2, 32, 1))
    assert grouped == layout and marks == (0, 1, 2, 3)
    assert layout.apply(1, 5, 0) == {"warpid": 1, "laneid": 5, "m": 0}
    assert layout.canonicalize().apply(37) == {"warpid": 1, "laneid": 5, "m": 0}
    assert S[(1, 4) : (1 @ warpid, 1)].canonicalize() == S[(1, 4) : (1 @ warpid, 1)]


def test_canonicalize():
    assert S[(2, 1, 4) : (4, 9, 1)].canonicalize() == S[8]
    assert (S[8] + R[(2, 2, 3) : (4, 8, 0)] + 0).canonicalize() == S[8] + R[4:4]
    assert S[(4, 2) : (0, 0)].canonicalize() == S[8:0]
    assert S[1, 1].canonicalize() == S[1]


def test_size_and_span():
    assert (MMA.size(), MMA.size("laneid"), MMA.size(m), MMA.size(bx)) == (128, 32, 2, 1)
    assert (MMA.span(), MMA.span(laneid), MMA.span("warpid"), MMA.span(bx)) == (2, 32, 11, 1)
    assert S[8:0].span() == 1
    assert (S[8:-2] + 14).span() == 15
    swizzled = ComposeLayout(0, 2, 2, S[10])
    assert (swizzled.size(), swizzled.span(), swizzled.span(laneid)) == (10, 12, 1)
    assert ComposeLayout(3, 3, 3, S[128, 64]).span() == 8192


def test_tile_to_repeats_row_by_row():
    assert S[8, 8].tile_to((16, 16), (8, 8)) == S[(2, 8, 2, 8) : (128, 8, 64, 1)]
    atom = ComposeLayout(3, 3, 3, S[8, 64])
    assert atom.tile_to((128, 64), (8, 64)) == ComposeLayout(3, 3, 3, S[8192])
    warps = S[(8, 4) : (4 @ laneid, 1 @ laneid)].tile(S[2 : 1 @ warpid], (2, 1), (8, 4))
    assert warps == S[(2, 32) : (1 @ warpid, 1 @ laneid)]


def test_inverse_and_compose():
    fragment = S[(8, 4, 2) : (4 @ laneid, 1 @ laneid, 1)]
    assert fragment.inverse() == S[(32, 2) : (2, 1)]
    assert fragment.inverse((m, laneid)) == S[(2, 32) : (1, 2)]
    assert S[(2, 4) : (1, 2)].inverse() == S[(4, 2) : (1, 4)]
    copies = S[4 : 1 @ laneid] + R[2 : 4 @ laneid]
    assert [copies.inverse().apply(lane)["m"] for lane in range(8)] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert fragment.compose(S[(2, 32) : (1, 2)]) == S[(2, 32) : (1, 1 @ laneid)]
    assert S[4, 8].compose(S[4:2] + 9).canonicalize() == S[4:2] + 9
    assert ComposeLayout(0, 1, 1, S[8]).compose(S[(2, 4) : (1, 2)]).apply(1, 1) == {"m": 2}


def test_permutations():
    layout = S[(2, 3, 4) : (1 @ warpid, 4, 1)]
    assert layout.permute_dims((2, 0, 1)) == S[(4, 2, 3) : (1, 1 @ warpid, 4)]
    assert layout.permute_by_groups((0, 1, 3), (1, 0)) == S[(3, 4, 2) : (4, 1, 1 @ warpid)]
    assert ComposeLayout(0, 1, 1, S[2, 3]).permute_dims((1, 0)).base == S[(3, 2) : (1, 3)]


def test_pack_and_unpack():
    assert S[4, 8].pack(2) == S[4, 4]
    assert S[4, 4].unpack(2) == S[4, 8]
    assert (S[4:3] + 1).unpack(2) == S[(4, 2) : (6, 1)] + 2
    assert S[(32, 2) : (1 @ laneid, 1)].pack(2) == S[32 : 1 @ laneid]
    assert ComposeLayout(3, 3, 3, S[8, 64]).pack(2) == ComposeLayout(2, 3, 3, S[8, 32])


def test_plan_has_no_division_for_whole_dimensions():
    layout = S[(2, 32, 4) : (1 @ warpid, 1 @ laneid, 1)]
    assert layout.plan() == (
        Term(0, 1, None, 1, warpid, 2),
        Term(1, 1, None, 1, laneid, 32),
        Term(2, 1, None, 1, m, 4),
    )
    assert layout.plan((64, 4)) == (
        Term(0, 32, None, 1, warpid, 2),
        Term(0, 1, 32, 1, laneid, 32),
        Term(1, 1, None, 1, m, 4),
    )
    assert S[4, 8].plan((32,)) == S[32].plan() == (Term(0, 1, None, 1, m, 32),)
    assert S[32].plan((4, 8)) == (Term(0, 1, None, 8, m, 4), Term(1, 1, None, 1, m, 8))
    assert S[4:0].plan() == ()
    assert ComposeLayout(0, 2, 2, S[16]).plan((4, 4)) == S[4, 4].plan()


def test_slice_and_window():
    layout = S[(2, 32, 4) : (1 @ warpid, 1 @ laneid, 1)]
    assert layout.slice((2, 32, 4), (1, 4, 0), (1, 8, 4)) == (
        S[(1, 8, 4) : (1 @ warpid, 1 @ laneid, 1)] + 4 @ laneid + 1 @ warpid
    )
    assert S[16, 64].window((16, 64), (4, 8)) == S[(4, 8) : (64, 1)]
    split = S[(4, 8) : (100, 1)]
    assert split.window((32,), (16,), (8,)) == S[(2, 8) : (100, 1)]
    assert split.window((32,), (4,), (4,)) == S[4]
    swizzled = ComposeLayout(0, 2, 2, S[4, 4]).slice((4, 4), (1, 0), (2, 4))
    assert swizzled == ComposeLayout(0, 2, 2, S[(2, 4) : (4, 1)] + 4)
    assert swizzled.apply(0, 1) == {"m": 4}


def test_predicates():
    assert S[(3, 2) : (2, 3)].is_injective() and not S[(3, 2) : (2, 4)].is_injective()
    assert not S[4:0].is_injective() and S[1:0].is_injective()
    assert S[(8, 4) : (1 @ laneid, 1)].is_injective() and not S[(8, 4) : (0 @ laneid, 1)].is_injective()
    wide = S[(1 << 20, 1 << 20) : (1 << 20, 1)]
    assert wide.is_injective() and not (wide + 0).permute_dims((1, 0)).compose(S[4:0]).is_injective()
    far = S[(3, 2, 3, 2) : (2 << 40, 3 << 40, 2, 3)]
    assert far.is_injective()
    assert (
        S[4, 8].is_run((4, 8), 1) and S[4, 8].is_run((4, 8), 2) and not S[(4, 8) : (9, 1)].is_run((4, 8), 2)
    )
    assert S[(4, 8) : (12, 1)].run_alignment((4, 8), 1) == 12
    assert (S[(4, 8) : (12, 1)] + 8).run_alignment((4, 8), 1) == 4
    swizzled = ComposeLayout(3, 3, 3, S[64, 64])
    assert swizzled.is_run((64, 8, 8), 1) and not swizzled.is_run((64, 64), 1)
    assert swizzled.run_alignment((64, 8, 8), 1) == 8
    assert S[8].is_trivial() and (S[8] + 1).is_contiguous() and not (S[8] + 1).is_trivial()
    assert not S[8:2].is_contiguous() and S[(2, 8) : (1 @ warpid, 1)].is_contiguous()
    assert not ComposeLayout(0, 1, 2, S[8]).is_trivial() and ComposeLayout(0, 1, 2, S[4]).is_trivial()


def test_swizzle_as_mask_and_shift():
    inner, outer = Swizzle(3, 2, 3), Swizzle(3, 2, 3, inner=False)
    assert (inner.mask, inner.shift, inner.period) == (0b11000000, 3, 256)
    assert (outer.mask, outer.shift, outer.period) == (0b11000, -3, 256)


def test_numpy_is_not_imported():
    code = "import sys, ptxtile.layout as L; L.S[8].apply(3); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
