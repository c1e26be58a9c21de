"""Tensor copies between global and shared memory: every swizzle and element width, modes, and the messages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import ptxtile as pt
from ptxtile import ptx, tile
from tile.running import assembles, lines, machines

LOAD = "cp.async.bulk.tensor.{}d.shared::cluster.global.{}.mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.tensor.{}d.global.shared::cta.{}.bulk_group"
PREFETCH = "cp.async.bulk.prefetch.tensor.{}d.L2.global.tile"
REDUCE = "cp.reduce.async.bulk.tensor.{}d.global.shared::cta.{}.tile.bulk_group"
DTYPES = {1: pt.uint8, 2: pt.uint16, 4: pt.uint32, 8: pt.uint64}
NUMBERS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def shared(map_: pt.TensorMap, shape: tuple[int, ...] | None = None) -> pt.Tensor:
    """Shared memory for a box: dense, with the map's swizzle."""
    shape = shape or map_.tile
    tall = (1, *shape)[-2:] if len(shape) < 2 else shape
    layout = pt.shared_layout(tall, map_.dtype, map_.swizzle) if map_.swizzle else "default"
    return pt.alloc_shared(shape, map_.dtype, layout=layout, align=1024)


def load(map_: pt.TensorMap, box: object, into: pt.Tensor, mode: str = "tile", *more: object) -> None:
    """One load and its wait, by the whole CTA."""
    full = pt.mbarrier(1)
    with pt.if_(pt.thread_rank() == 0):
        full.init()
        pt.fence_mbarrier_init()
        full[0].arrive_expect_tx(into.static_shape[0] * (map_.box_bytes // map_.box[0]))
        tile.apply(ptx[LOAD.format(len(map_.dims), mode)], into, box, full[0], *more)
    pt.cta_sync()
    full[0].wait(0)


def store(map_: pt.TensorMap, box: object, source: pt.Tensor, spelling: str) -> None:
    """One store and its wait, of what the CTA has written."""
    pt.fence_async()
    pt.cta_sync()
    with pt.if_(pt.thread_rank() == 0):
        tile.apply(ptx[spelling], box, source)
        ptx.cp.async_.bulk.commit_group()
        ptx.cp.async_.bulk.wait_group(0)


def spread(tensor: pt.Tensor, other: pt.Tensor, into: bool) -> None:
    """Copy a tensor of two dimensions element by element: into shared memory, or out of it."""
    columns = tensor.static_shape[1]
    with pt.for_range(pt.thread_rank(), tensor.static_shape[0] * columns, 32) as i:
        at = i // columns, i % columns
        if into:
            tensor[at] = other[at]
        else:
            other[at] = tensor[at]


def pieces(tensor: NDArray[np.generic], start: tuple[int, ...], box: tuple[int, ...]) -> NDArray[np.generic]:
    """A box of a tensor, zero outside of it."""
    made = np.zeros(box, tensor.dtype)
    for at in np.ndindex(*box):
        place = tuple(a + b for a, b in zip(at, start))
        if all(0 <= p < extent for p, extent in zip(place, tensor.shape)):
            made[at] = tensor[place]
    return made


def numbers(shape: tuple[int, ...], width: int) -> NDArray[np.generic]:
    return (np.arange(np.prod(shape)) * 2654435761 >> 7).astype(NUMBERS[width]).reshape(shape)


# --- what is moved --------------------------------------------------------------------------------------------------
@machines
@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_shared_layouts_are_what_the_copy_writes(device, width, swizzle):
    """Loaded by one copy, read element by element through the layout; and the way back."""
    dtype, columns = DTYPES[width], (swizzle or 64) // width
    box, shape = (16, columns), (21, columns + 32 // width)

    @pt.kernel(grid=1, block=32)
    def move(
        A: pt.TensorMap(shape, dtype, box=box, swizzle=swizzle),
        Seen: pt.Tensor(box, dtype),
        C: pt.TensorMap(shape, dtype, box=box, swizzle=swizzle),
        Given: pt.Tensor(box, dtype),
    ):
        a, b = shared(A), shared(C)
        load(A, A[3, 16 // width], a)
        spread(a, Seen, into=False)
        spread(b, Given, into=True)
        store(C, C[8, 48 // width], b, STORE.format(2, "tile"))

    source, seen, given = numbers(shape, width), np.zeros(box, NUMBERS[width]), numbers(box, width) + 1
    target = np.full(shape, 7, NUMBERS[width])
    due = target.copy()
    kept = shape[1] - 48 // width
    due[8:21, 48 // width :] = given[:13, :kept]
    move.launch(source, seen, target, given, device=device)
    np.testing.assert_array_equal(seen, pieces(source, (3, 16 // width), box))
    np.testing.assert_array_equal(target, due)


@machines
@pytest.mark.parametrize("rank", [1, 3, 4, 5])
def test_ranks(device, rank):
    shape, box, start = (3, 2, 4, 5, 24)[-rank:], (2, 1, 3, 2, 16)[-rank:], (1, 1, 2, -1, 8)[-rank:]
    flat = (int(np.prod(box)) // 16, 16)

    @pt.kernel(grid=1, block=32)
    def move(A: pt.TensorMap(shape, pt.float32, box=box), Seen: pt.Tensor(flat, pt.float32)):
        a = shared(A)
        full = pt.mbarrier(1)
        with pt.if_(pt.thread_rank() == 0):
            full.init()
            pt.fence_mbarrier_init()
            full[0].arrive_expect_tx(A.box_bytes)
            tile.apply(ptx[LOAD.format(rank, "tile")], a, A[start], full[0])
        pt.cta_sync()
        full[0].wait(0)
        spread(a.view(*flat), Seen, into=False)

    source, seen = numbers(shape, 4).astype(np.float32), np.zeros(flat, np.float32)
    move.launch(source, seen, device=device)
    np.testing.assert_array_equal(seen.reshape(box), pieces(source, start, box))


@machines
def test_element_strides_take_every_second_row(device):
    @pt.kernel(grid=1, block=32)
    def move(
        A: pt.TensorMap((16, 8), pt.float32, box=(8, 8), element_strides=(2, 1)),
        Seen: pt.Tensor((4, 8), pt.float32),
    ):
        assert A.tile == (4, 8) and A.box_bytes == 4 * 8 * 4
        a = pt.alloc_shared(A.tile, pt.float32, align=128)
        full = pt.mbarrier(1)
        with pt.if_(pt.thread_rank() == 0):
            full.init()
            pt.fence_mbarrier_init()
            full[0].arrive_expect_tx(A.box_bytes)
            tile.apply(ptx[LOAD.format(2, "tile")], a, A[1, 0], full[0])
        pt.cta_sync()
        full[0].wait(0)
        spread(a, Seen, into=False)

    source, seen = numbers((16, 8), 4).astype(np.float32), np.zeros((4, 8), np.float32)
    move.launch(source, seen, device=device)
    np.testing.assert_array_equal(seen, source[1:9:2])


@machines
def test_nan_outside(device):
    @pt.kernel(grid=1, block=32)
    def move(
        A: pt.TensorMap(("M", 8), pt.float32, box=(8, 8), nan=True), Seen: pt.Tensor((8, 8), pt.float32)
    ):
        a = shared(A)
        load(A, A[0, 0], a)
        spread(a, Seen, into=False)

    source, seen = np.ones((5, 8), np.float32), np.zeros((8, 8), np.float32)
    move.launch(source, seen, device=device)
    assert (seen[:5] == 1).all() and np.isnan(seen[5:]).all()


@machines
@pytest.mark.parametrize(
    ("operation", "dtype", "combine"),
    [
        (".add", pt.float32, np.add),
        (".add", pt.uint32, np.add),
        (".max", pt.int32, np.maximum),
        (".min", pt.uint64, np.minimum),
        (".xor", pt.uint32, np.bitwise_xor),
    ],
)
def test_reductions(device, operation, dtype, combine: Callable[..., NDArray[np.generic]]):
    @pt.kernel(grid=1, block=32)
    def move(C: pt.TensorMap((12, 8), dtype, box=(8, 8)), Given: pt.Tensor((8, 8), dtype)):
        b = shared(C)
        spread(b, Given, into=True)
        store(C, C[6, 0], b, REDUCE.format(2, operation[1:]))

    rng = np.random.default_rng(0)
    target, given = (rng.integers(0, 100, (rows, 8)).astype(dtype.numpy) for rows in (12, 8))
    due = target.copy()
    due[6:] = combine(due[6:], given[:6])
    move.launch(target, given, device=device)
    np.testing.assert_array_equal(target, due)


# --- the text -------------------------------------------------------------------------------------------------------
TILES = pt.TensorMap((64, 64), pt.float16, box=(16, 64), swizzle=128)
ROWS = pt.TensorMap((64, 64), pt.float16, box=(1, 64), swizzle=128)
PIXELS = pt.TensorMap((2, 16, 16, 64), pt.float16, box=(32, 64), swizzle=128, im2col=((-1, -1), (-1, -1)))
MAPS = {"A": TILES, "R": ROWS, "I": PIXELS, "x": pt.int32}


def test_a_load_is_one_instruction():
    def body(k):
        full = pt.mbarrier(1)
        tile.apply(ptx[LOAD.format(2, "tile")], shared(k.A), k.A[k.x, 8], full[0])

    found = [line for line in lines(body, params=MAPS) if line.startswith("cp")]
    assert len(found) == 1 and found[0].startswith(LOAD.format(2, "tile") + " [")
    assert found[0].partition("], [")[2].startswith("%rd") and ", {8, %r" in found[0]


def test_coordinates_are_written_innermost_first():
    def body(k):
        tile.apply(ptx[PREFETCH.format(2)], k.A[1, 2])
        tile.apply(ptx["cp.async.bulk.prefetch.tensor.4d.L2.global.im2col"], k.I[1, 2, 3, 4], (5, 6))

    found = [line.partition(", ")[2] for line in lines(body, params=MAPS) if line.startswith("cp")]
    assert found[0] == "{2, 1}]"
    assert found[1].startswith("{4, 3, 2, 1}], {")


def test_pixels_assemble():
    @pt.kernel(grid=1, block=32)
    def pixels(P: PIXELS):
        a = shared(P)
        full = pt.mbarrier(1)
        tile.apply(ptx[LOAD.format(4, "im2col")], a, P[1, 2, 3, 0], full[0], (pt.uint16(1), pt.uint16(2)))
        tile.apply(ptx[STORE.format(4, "im2col_no_offs")], P[1, 2, 3, 0], a)

    assembles(pixels, ("sm_90a", "sm_100a"))


def test_rows_assemble():
    """gather4 and scatter4 need sm_100."""

    @pt.kernel(grid=1, block=32)
    def rows(R: ROWS):
        a = _four(R)
        full = pt.mbarrier(1)
        tile.apply(ptx[LOAD.format(2, "tile::gather4")], a, R.rows((1, 2, 3, 4), 0), full[0])
        tile.apply(ptx[STORE.format(2, "tile::scatter4")], R.rows((5, 6, 7, 8), 0), a)

    text = rows.ptx(target="sm_100a")
    assert "{0, 1, 2, 3, 4}]" in text and "{0, 5, 6, 7, 8}]" in text
    assembles(rows, ("sm_100a",))


def _four(map_: pt.TensorMap) -> pt.Tensor:
    """Four rows of eight with a swizzle."""
    whole = pt.alloc_shared((8, 64), map_.dtype, layout=pt.shared_layout((8, 64), map_.dtype), align=1024)
    return whole[0:4]
