"""ldmatrix, stmatrix, movmatrix over tiles: registers, addresses of the lanes, every form, and bad input."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import S, laneid, tile
from ptxtile.layout.mma_fragment import ldmatrix, stacked
from ptxtile.tile import matrix_move
from tile.running import failure, lines, machines, message, module

X4 = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
STORE = "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16"


def words(count, *repeats, warps=None):
    fragment = ldmatrix("m8n8", count)
    front = () if warps is None else (warps,)
    return pt.alloc_local(
        (*front, *repeats, *fragment.shape), pt.uint32, layout=stacked(fragment, *repeats, warps=warps)
    )


@machines
@pytest.mark.parametrize("swizzle", [None, 128])
@pytest.mark.parametrize("trans", [False, True])
def test_values(device, swizzle, trans):
    """A 64 x 64 tile as 8 x 8 matrices, four at a time, plain and swizzled, written back transposed or not."""
    layout = pt.shared_layout((64, 64), pt.uint16, swizzle) if swizzle else "default"
    name = ".trans" if trans else ""

    @pt.kernel(grid=1, block=32)
    def move(A: pt.Tensor((64, 64), pt.uint16), Out: pt.Tensor((64, 64), pt.uint16)):
        source = pt.alloc_shared((64, 64), pt.uint16, layout=layout, align=1024)
        back = pt.alloc_shared((64, 64), pt.uint16, layout=layout, align=1024)
        lane = pt.lane_id()
        with pt.for_range(pt.uint32(0), 16) as step:
            row, column = step * 4 + lane // 8, lane % 8 * 8
            for half in range(8):
                source[row, column + half] = A[row, column + half]
        ptx_sync()
        blocks = "(n i) (m j) -> n m i j"
        r = words(4, 8, 2)
        tile.apply(
            f"ldmatrix.sync.aligned.m8n8.x4{name}.shared.b16", r,
            source.rearrange(blocks, i=8, j=8).view(8, 2, 4, 8, 8), scope="warp",
        )  # fmt: skip
        tile.apply(
            "stmatrix.sync.aligned.m8n8.x4.shared.b16", back.rearrange(blocks, i=8, j=8).view(8, 2, 4, 8, 8), r,
            scope="warp",
        )  # fmt: skip
        ptx_sync()
        with pt.for_range(pt.uint32(0), 16) as step:
            row, column = step * 4 + lane // 8, lane % 8 * 8
            for half in range(8):
                Out[row, column + half] = back[row, column + half]

    a = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    out = np.zeros_like(a)
    move.launch(a, out, device=device)
    blocks = a.reshape(8, 8, 8, 8)
    due = blocks.transpose(0, 3, 2, 1).reshape(64, 64) if trans else a
    np.testing.assert_array_equal(out, due)


def ptx_sync():
    pt.ptx.bar.warp.sync(pt.uint32(0xFFFFFFFF))


def test_a_swizzled_tile_takes_few_bases():
    """128-byte rows: repeats a whole number of the swizzle's periods apart share one address."""

    def body(_):
        layout = pt.shared_layout((64, 64), pt.uint16, 128)
        s = pt.alloc_shared((64, 64), pt.uint16, layout=layout, align=1024)
        tile.apply(
            X4,
            words(4, 8, 2),
            s.rearrange("(n i) (m j) -> n m i j", i=8, j=8).view(8, 2, 4, 8, 8),
            scope="warp",
        )

    found = [
        re.search(r"\[(%r\d+)(?:\+(\d+))?\]", line) for line in lines(body, 32) if line.startswith("ldmatrix")
    ]
    bases = [each[1] for each in found if each]
    assert len(bases) == 16
    assert len(set(bases)) == 2
    assert found[2] and found[2][2] == "1024"


def every_form():
    for pattern in ("ldmatrix.*", "stmatrix.*"):
        for spelling in pt.forms(pattern):
            form = pt.validate(spelling)
            for target in ("sm_75", "sm_90a", "sm_100a", "sm_120a"):
                if target in form.targets:
                    yield target, form
                    break


@pytest.mark.parametrize("target", ["sm_75", "sm_90a", "sm_100a"])
def test_nvidias_assembler_takes_every_form(target):
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    forms = [form for where, form in every_form() if where == target]
    assert forms

    def body(_):
        for form in forms:
            fragment = matrix_move.fragment(form)
            r = pt.alloc_local(fragment.shape, pt.uint32, layout=fragment.layout)
            rows = 16 if ".m16n16" in form.modifiers else 8
            s = pt.alloc_shared((fragment.shape[0], rows, 16), pt.uint8)
            tile.apply(form, *((r, s) if form.opcode == "ldmatrix" else (s, r)), scope="warp")

    assert pt.assemble(str(module(body, 32)), target)[:4] == b"\x7fELF"


def test_lanes_beyond_the_matrices_repeat_valid_rows():
    def body(_):
        tile.apply(
            "ldmatrix.sync.aligned.m8n8.x1.shared.b16",
            words(1),
            pt.alloc_shared((1, 8, 8), pt.uint16),
            scope="warp",
        )

    assert "and.b32" in " ".join(lines(body, 32))  # lane % 8


# --- bad input ------------------------------------------------------------------------------------------------------
def wrong(body, block=32):
    return message(failure(body, block), __file__)


def test_rows_that_are_not_aligned():
    def body(_):
        s = pt.alloc_shared((4, 8, 12), pt.uint16)
        tile.apply(X4, words(4), s[:, :, 0:8], scope="warp")

    assert wrong(body) == (
        f"{X4}: operand p: an atom of 16 bytes must start at a multiple of 16 bytes, which is not proven of every atom here: "
        "the layout's strides are not multiples of the atom"
    )


def test_rows_with_gaps():
    def body(_):
        s = pt.alloc_shared((4, 8, 16), pt.uint16)
        tile.apply(
            X4, words(4), s.rearrange("m r (c e) -> m r c e", e=2)[:, :, :, 0:1].view(4, 8, 8), scope="warp"
        )

    assert wrong(body) == (
        f"{X4}: operand p: the 8 elements of an atom must lie side by side in memory, and this layout puts them apart"
    )


def test_another_count_of_matrices():
    assert wrong(lambda _: tile.apply(X4, words(4), pt.alloc_shared((2, 8, 8), pt.uint16), scope="warp")) == (
        f"{X4}: operand p has shape (2, 8, 8); its trailing axes are the instruction's registers, (4, 8, 8)"
    )


def test_global_memory():
    def body(k):
        tile.apply(X4, words(4), k.G, scope="warp")

    text = message(failure(body, 32, params={"G": pt.Tensor((4, 8, 8), pt.uint16)}), __file__)
    assert text == f"{X4}: operand p is .shared memory and the tensor is in global memory"


def test_the_order_of_the_operands():
    text = wrong(lambda _: tile.apply(STORE, words(2), pt.alloc_shared((2, 8, 8), pt.uint16), scope="warp"))
    assert text == f"{STORE}: operand r takes a register tensor, not a tensor in shared memory"


def test_a_store_to_one_place():
    def body(_):
        s = pt.alloc_shared((2, 8, 8), pt.uint16)
        tile.apply(STORE, s.view(2, 8, 8, layout=S[(2, 8, 8) : (0, 8, 1)]), words(2), scope="warp")

    assert wrong(body) == (
        f"{STORE}: operand p: two elements of the destination are one place in memory, so the order of the stores would "
        "decide; a destination's layout must be injective (no zero strides)"
    )


def test_movmatrix_in_place_and_apart():
    name = "movmatrix.sync.aligned.m8n8.trans.b16"

    def body(_):
        a, b = (
            pt.alloc_local((3, 8, 4), pt.uint32, layout=S[(3, 8, 4) : (1, 4 @ laneid, 1 @ laneid)])
            for _ in range(2)
        )
        tile.apply(name, a, b, scope="warp")
        tile.apply(name, a, a, scope="warp")

    found = [line for line in lines(body, 32) if line.startswith("mov")]
    assert found == [f"{name} %r{i}, %r{3 + i}" for i in range(3)] + [
        f"{name} %r{i}, %r{i}" for i in range(3)
    ]
