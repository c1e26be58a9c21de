"""Tensor copies: what is refused, and in which words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import ptx, tile
from tile.running import failure, message
from tile.test_tensor_copy import LOAD, MAPS, PREFETCH, REDUCE, STORE, _four, shared, store


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


def test_messages_of_interleaved_maps():
    form = "cp.async.bulk.prefetch.tensor.4d.L2.global.tile"
    shape, box = (2, 4, 6, 20, 8), (1, 1, 2, 16, 8)
    made = pt.TensorMap(shape, pt.uint16, box=box, interleave=16, swizzle=128)
    three = form.replace("4d", "3d")
    error = failure(lambda k: tile.apply(three, k.T[0, 0, 0, 0]), params={"T": made}, block=32)
    assert message(error) == f"{three} copies 3 dimensions, and {made!r} has 4 of units"
    error = failure(lambda k: k.T[0, 0, 0, 0, 0], params={"T": made}, block=32)
    assert message(error) == f"{made!r} has 4 dimensions of units; 5 were given"

    def plain(k):
        tile.apply(
            LOAD.format(4, "tile"),
            pt.alloc_shared(box, pt.uint16, align=1024),
            k.T[0, 0, 0, 0],
            pt.mbarrier(1)[0],
        )

    assert message(failure(plain, params={"T": made}, block=32)).endswith(
        "laid out without a swizzle, and the tensor map writes a swizzle of 128 bytes; use ComposeLayout(3, 3, 3, S[1, 1, 2, 16, 8])"
    )


@pytest.mark.parametrize(
    ("shape", "box", "text"),
    [
        ((4, 6, 20), (1, 2, 16), ("with interleave=16 a tensor is (images, slices, *pixels, 8), four dimensions or more, and its box has "
         "as many; these have 3 and 3")),
        ((2, 4, 20, 16), (1, 1, 16, 16), ("with interleave=16 the last dimension is a unit of 16 bytes, 8 elements, in the tensor and in "
         "the box; these have 16 and 16")),
        ((2, 4, 20, 8), (1, 2, 16, 8), "with interleave=16 a copy moves one slice of channels, so the box is 1 there, not 2"),
        ((2, 4, 20, 8), (1, 1, 4, 8), "the innermost extent of the box is 4 elements, 8 bytes; it must be a multiple of 16 bytes"),
    ],
)  # fmt: skip
def test_interleaved_maps_that_are_none(shape, box, text):
    with pytest.raises(pt.LayoutError) as caught:
        pt.TensorMap(shape, pt.uint16, box=box, interleave=16)
    assert str(caught.value) == f"pt.TensorMap: {text}"


def test_messages_of_wide_pixels():
    form = "cp.async.bulk.prefetch.tensor.4d.L2.global.im2col::w"
    assert _refused(lambda k: tile.apply(form, k.I[0, 0, 0, 0], (0, 0))) == (
        f"{form} takes a tensor map of its own kind, which cuTensorMapEncodeIm2colWide makes and pt.TensorMap does not; call the form "
        "itself"
    )


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
