"""Tensor copies between global and shared memory: every swizzle and element width, modes, and the messages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import ptxtile as pt
from ptxtile import ptx, tile
from tile.running import assembles, failure, lines, machines, message

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


# --- messages -------------------------------------------------------------------------------------------------------
def _refused(body: Callable[[object], object]) -> str:
    return message(failure(body, params=MAPS, block=32))


def test_messages_of_operands():
    load_, store_ = LOAD.format(2, "tile"), STORE.format(2, "tile")

    def with_shared(make: Callable[..., object]) -> Callable[[object], object]:
        def body(k):
            tile.apply(ptx[load_], make(k), k.A[0, 0], pt.mbarrier(1)[0])

        return body

    def plain(
        shape: tuple[int, ...], dtype: pt.DType, align: int = 1024, swizzle: int = 128
    ) -> Callable[..., object]:
        layout = (lambda: pt.shared_layout(shape, dtype, swizzle)) if swizzle else (lambda: "default")
        return lambda k: pt.alloc_shared(shape, dtype, layout=layout(), align=align)

    what = f"{load_}: the shared tensor"
    assert _refused(with_shared(plain((32, 64), pt.float16))) == (
        f"{what} has shape (32, 64), and the tensor map's box is (16, 64)"
    )
    assert _refused(with_shared(plain((16, 64), pt.bfloat16))) == (
        f"{what} is bfloat16, and the tensor map's elements are float16"
    )
    assert _refused(with_shared(plain((16, 64), pt.float16, swizzle=64))) == (
        f"{what} is laid out with Swizzle(per_element=3, swizzle_len=2, atom_len=3, inner=True), and the tensor map "
        "writes a swizzle of 128 bytes; use pt.shared_layout(shape, dtype, 128)"
    )
    assert _refused(with_shared(plain((16, 64), pt.float16, swizzle=0))) == (
        f"{what} is laid out without a swizzle, and the tensor map writes a swizzle of 128 bytes; use "
        "pt.shared_layout(shape, dtype, 128)"
    )
    assert _refused(with_shared(plain((16, 64), pt.float16, 128))) == (
        f"{what} must start at a multiple of 1024 bytes; its memory is aligned to 128 (align=) and it starts at "
        "element 0 of 2 bytes"
    )
    assert _refused(with_shared(lambda k: pt.alloc_local((16, 64), pt.float16))) == f"{what} is in registers"
    assert _refused(lambda k: tile.apply(ptx[store_], k.A[0, 0])) == (
        f"{store_} takes one box of a tensor map, map[i, j], and one tensor in shared memory; given are 1 and 0"
    )
    assert _refused(lambda k: tile.apply(ptx[store_], k.A[0, 0], shared(k.A), scope="warp")) == (
        f'{store_} is issued by one thread: scope="thread", as in pt.if_(pt.elect())'
    )


def test_messages_of_modes():
    def rows(k):
        tile.apply(ptx[STORE.format(2, "tile")], k.R.rows((1, 2, 3, 4), 0), _four(k.R))

    def no_rows(k):
        tile.apply(ptx[STORE.format(2, "tile::scatter4")], k.R[0, 0], _four(k.R))

    def rank(k):
        tile.apply(ptx[PREFETCH.format(3)], k.A[0, 0])

    def pixels(k):
        tile.apply(ptx[PREFETCH.format(4)], k.I[0, 0, 0, 0])

    def reduced(k):
        tile.apply(ptx[REDUCE.format(2, "inc")], k.A[0, 0], shared(k.A))

    a = "pt.TensorMap((64, 64), float16, box=(16, 64), swizzle=128)"
    i = "pt.TensorMap((2, 16, 16, 64), float16, box=(32, 64), swizzle=128)"
    a, i = (text.replace("float16", repr(pt.float16)) for text in (a, i))
    assert _refused(rows) == f"{STORE.format(2, 'tile')} takes the box at a coordinate, map[i, j]"
    assert _refused(no_rows) == (
        f"{STORE.format(2, 'tile::scatter4')} takes four rows, map.rows((i0, i1, i2, i3), j)"
    )
    assert _refused(rank) == f"{PREFETCH.format(3)} copies 3 dimensions, and {a} has 2"
    assert _refused(pixels) == f"{PREFETCH.format(4)} takes a tensor map without im2col=, not {i}"
    assert _refused(reduced) == (
        f"{REDUCE.format(2, 'inc')} reduces elements of type u32, and the tensor map's are f16"
    )
    assert _refused(lambda k: k.A.rows((1, 2, 3, 4), 0)) == (
        f"{a}.rows: rows are taken from a matrix with a box of one row, box=(1, columns)"
    )
    assert _refused(lambda k: k.A[1]) == f"{a} has 2 dimensions; 1 was given"


def test_messages_of_stores_before_the_tensor():
    """Hardware faults; loads may begin there."""
    store_, reduce_ = STORE.format(2, "tile"), REDUCE.format(2, "add")

    def at(spelling: str, *coordinates: object) -> str:
        return _refused(lambda k: tile.apply(ptx[spelling], k.A[coordinates], shared(k.A)))

    rest = (
        "hardware faults where a store begins before its tensor (it clips only what hangs over the upper ends); begin "
        "at 0 or above"
    )
    assert at(store_, 0, -8) == f"{store_} stores to a box whose coordinate 1 is -8: {rest}"
    assert at(store_, pt.int32(-1), 0) == f"{store_} stores to a box whose coordinate 0 is -1: {rest}"
    assert at(reduce_, -3, 0) == f"{reduce_} reduces into a box whose coordinate 0 is -3: {rest}"


@pytest.mark.parametrize("at", [(-3, 0), (2, -4)])
def test_a_store_at_run_time_is_judged_by_the_emulator(at):
    @pt.kernel(grid=1, block=32)
    def move(C: pt.TensorMap((16, 16), pt.uint32, box=(8, 8)), row: pt.int32, column: pt.int32):
        b = shared(C)
        with pt.for_range(pt.thread_rank(), 64, 32) as i:
            b[i // 8, i % 8] = pt.uint32(1)
        store(C, C[row, column], b, STORE.format(2, "tile"))

    with pytest.raises(pt.EmulatorError) as caught:
        move.launch(np.zeros((16, 16), np.uint32), *at, device="emulator")
    assert caught.value.kind == "out-of-bounds"


def test_messages_of_coordinates():
    a = f"pt.TensorMap((64, 64), {pt.float16!r}, box=(16, 64), swizzle=128)"

    def at(coordinate: object) -> str:
        return _refused(lambda k: tile.apply(ptx[PREFETCH.format(2)], k.A[coordinate, 0]))

    prefix = f"{PREFETCH.format(2)}: operand tensor_map: "
    assert at(1.5) == f"{prefix}a coordinate of {a} is an integer of 32 bits, not 1.5"
    assert at(True) == f"{prefix}a coordinate of {a} is an integer, not True"
    assert at(1 << 31) == f"{prefix}a coordinate of {a} is an integer of 32 bits, not 2147483648"


def test_messages_of_parameters():
    """What is missing, misspelled, out of range, of the wrong type."""
    form, wide = LOAD.format(2, "tile"), LOAD.format(2, "tile") + ".multicast::cluster"

    def at(spelling: str, *more: Callable[[], object], **words: object) -> str:
        def body(k):
            tile.apply(ptx[spelling], shared(k.A), k.A[0, 0], *(make() for make in more), **words)

        return _refused(body)

    def bar() -> object:
        return pt.mbarrier(1)[0]

    assert at(form) == f"{form} takes dst, tensor_map, mbar; 2 were given"
    assert at(form, bar, lambda: 3) == f"{form} takes dst, tensor_map, mbar; 4 were given"
    assert at(form, lambda: pt.mbarrier(1, 4)) == (
        f"{form}: operand mbar: a pt.mbarrier is an array of 4; the operand is one of them, bar[stage]"
    )
    assert at(form, lambda: 8) == f"{form}: operand mbar takes an address in .shared::cluster, not 8"
    assert at(wide, bar) == f"{wide} takes dst, tensor_map, mbar, cta_mask; 3 were given"
    assert at(wide, bar, lambda: 1 << 17) == (
        f"{wide}: operand cta_mask takes .u16, not 131072: 131072 does not fit 16 bits"
    )
    assert at(form, bar, box=(8, 8)) == (
        f"{form} has no parameter 'box'; it has none beside scope, pred, preserve_dst"
    )
    assert at(form, bar, pred=True) == (
        f"{form}: pred= takes a run-time bool_, such as a comparison gives, not True"
    )
    assert at(form, bar, preserve_dst=True) == (
        f"{form} takes no preserve_dst=: it has no register destination"
    )
