"""Tensor copies of four rows (gather4, scatter4: sm_100, here on the emulator) and of pixels (im2col)."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import ComposeLayout, S, ptx, tile
from tile.running import machines

GATHER = "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes"
SCATTER = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group"
UNITS = "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
BACK = "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group"
PIXELS = "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"


def test_four_rows_on_the_emulator():
    """Rows in any order, some outside: gathered, read through the layout, scattered to others."""

    @pt.kernel(grid=1, block=32)
    def move(
        A: pt.TensorMap((16, 64), pt.uint16, box=(1, 64), swizzle=128),
        Seen: pt.Tensor((4, 64), pt.uint16),
        C: pt.TensorMap((16, 64), pt.uint16, box=(1, 64), swizzle=128),
    ):
        whole = pt.alloc_shared((8, 64), pt.uint16, layout=pt.shared_layout((8, 64), pt.uint16), align=1024)
        rows = whole[0:4]
        full = pt.mbarrier(1)
        with pt.if_(pt.thread_rank() == 0):
            full.init()
            pt.fence_mbarrier_init()
            full[0].arrive_expect_tx(4 * 64 * 2)
            tile.apply(ptx[GATHER], rows, A.rows((9, 2, 16, 5), 0), full[0])
        pt.cta_sync()
        full[0].wait(0)
        with pt.for_range(pt.thread_rank(), 4 * 64, 32) as i:
            Seen[i // 64, i % 64] = rows[i // 64, i % 64]
        with pt.if_(pt.thread_rank() == 0):
            tile.apply(ptx[SCATTER], C.rows((0, 15, 7, -1), 0), rows)
            ptx.cp.async_.bulk.commit_group()
            ptx.cp.async_.bulk.wait_group(0)

    source = np.arange(16 * 64, dtype=np.uint16).reshape(16, 64) + 1
    seen, target = np.zeros((4, 64), np.uint16), np.zeros((16, 64), np.uint16)
    move.launch(source, seen, target, device="emulator")
    np.testing.assert_array_equal(seen, [source[9], source[2], 0 * source[0], source[5]])
    due = np.zeros_like(target)
    due[0], due[15] = source[9], source[2]
    np.testing.assert_array_equal(target, due)


@machines
@pytest.mark.parametrize(("dh", "dw"), [(0, 0), (1, 2), (2, 0)])
def test_pixels(device, dh, dw):
    """A column of the matrix of a 3 x 3 convolution with a border of one: pixels run along w, h and images in the box,
    and each is taken at its filter tap."""
    images, height, width, channels, pixels = 2, 6, 7, 16, 64

    @pt.kernel(grid=1, block=32)
    def move(
        A: pt.TensorMap(
            (images, height, width, channels), pt.float32, box=(pixels, channels), im2col=((-1, -1), (-1, -1))
        ),
        Seen: pt.Tensor((pixels, channels), pt.float32),
    ):
        a = pt.alloc_shared(A.tile, pt.float32, align=128)
        full = pt.mbarrier(1)
        with pt.if_(pt.thread_rank() == 0):
            full.init()
            pt.fence_mbarrier_init()
            full[0].arrive_expect_tx(A.box_bytes)
            tile.apply(ptx[PIXELS], a, A[0, 1, 2, 0], full[0], (pt.uint16(dw), pt.uint16(dh)))
        pt.cta_sync()
        full[0].wait(0)
        with pt.for_range(pt.thread_rank(), pixels * channels, 32) as i:
            Seen[i // channels, i % channels] = a[i // channels, i % channels]

    shape = (images, height, width, channels)
    source = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 1
    seen = np.zeros((pixels, channels), np.float32)
    move.launch(source, seen, device=device)
    # The box runs from -1 to extent - 2 along both, that is `extent` places; the copy begins at (0, 1, 2).
    start = (0 * height + 1 + 1) * width + 2 + 1
    due = np.zeros_like(seen)
    for at in range(pixels):
        image, rest = divmod(start + at, height * width)
        y, x = rest // width - 1 + dh, rest % width - 1 + dw
        if image < images and 0 <= y < height and 0 <= x < width:
            due[at] = source[image, y, x]
    np.testing.assert_array_equal(seen, due)


# --- interleaved: (images, slices of channels, rows, columns, unit) ---------------------------------------------------
BOX = (1, 1, 2, 16, 8)


def interleaved(swizzle):
    """Out = the box at (1, 2, 3, 4) of units of 16 bytes, which hangs over the right edge."""
    layout = ComposeLayout(3, swizzle.bit_length() - 5, 3, S[BOX]) if swizzle else S[BOX]

    @pt.kernel(grid=1, block=32)
    def copy(
        A: pt.TensorMap((2, 4, 6, 18, 8), pt.uint16, box=BOX, interleave=16, swizzle=swizzle),
        Out: pt.Tensor((2, 16, 8), pt.uint16),
        C: pt.TensorMap((2, 4, 6, 18, 8), pt.uint16, box=BOX, interleave=16, swizzle=swizzle),
    ):
        box, full = pt.alloc_shared(BOX, pt.uint16, layout=layout, align=1024), pt.mbarrier(1)
        t = pt.thread_idx()
        with pt.if_(t == 0):
            full.init()
            pt.fence_mbarrier_init()
            full[0].arrive_expect_tx(A.box_bytes)
            tile.apply(ptx[UNITS], box, A[1, 2, 3, 4], full[0])
        pt.cta_sync()
        full[0].wait(0)
        with pt.if_(t < 16):
            for row in range(2):
                for at in range(8):
                    Out[row, t, at] = box[0, 0, row, t, at]
        with pt.if_(t == 0):
            tile.apply(ptx[BACK], C[0, 3, 1, 2], box)
            ptx.cp.async_.bulk.commit_group()
            ptx["cp.async.bulk.wait_group"](0)

    return copy


@pytest.mark.parametrize("swizzle", [0, 32, 128])
@machines
def test_units(swizzle, device):
    a = np.arange(2 * 4 * 6 * 18 * 8, dtype=np.uint16).reshape(2, 4, 6, 18, 8)
    c, out = np.zeros_like(a), np.ones((2, 16, 8), np.uint16)
    interleaved(swizzle).launch(a, out, c, device=device)
    due = np.zeros((2, 16, 8), np.uint16)
    due[:, :14] = a[1, 2, 3:5, 4:18]
    np.testing.assert_array_equal(out, due)
    stored = np.zeros_like(a)
    stored[0, 3, 1:3, 2:18] = due
    np.testing.assert_array_equal(c, stored)


@pytest.mark.parametrize("swizzle", [0, 64])
def test_units_are_in_the_text(swizzle):
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    kernel = interleaved(swizzle)
    assert "{4, 3, 2, 1}" in kernel.ptx() and f", {2 * 16 * 16};" in kernel.ptx()
    assert kernel.cubin("sm_90a")[:4] == b"\x7fELF"


@machines
def test_steps_between_units(device):
    """Element strides count units along the innermost dimension, too: columns 0, 2, 4, 6 of rows 0 and 2."""
    box = (1, 1, 4, 8, 8)

    @pt.kernel(grid=1, block=32)
    def copy(
        A: pt.TensorMap((2, 4, 6, 18, 8), pt.uint16, box=box, interleave=16, element_strides=(1, 1, 2, 2)),
        Out: pt.Tensor((2, 4, 8), pt.uint16),
    ):
        held, full, t = pt.alloc_shared(A.tile, pt.uint16, align=128), pt.mbarrier(1), pt.thread_idx()
        with pt.if_(t == 0):
            full.init()
            pt.fence_mbarrier_init()
            full[0].arrive_expect_tx(A.box_bytes)
            tile.apply(ptx[UNITS], held, A[0, 0, 0, 0], full[0])
        pt.cta_sync()
        full[0].wait(0)
        for row in range(2):
            Out[row, t // 8, t % 8] = held[0, 0, row, t // 8, t % 8]

    a = np.arange(2 * 4 * 6 * 18 * 8, dtype=np.uint16).reshape(2, 4, 6, 18, 8)
    out = np.zeros((2, 4, 8), np.uint16)
    copy.launch(a, out, device=device)
    np.testing.assert_array_equal(out, a[0, 0, 0:4:2, 0:8:2])
