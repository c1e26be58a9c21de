"""Matrices in shared memory: swizzled layouts against a second formula, descriptors, bank conflicts, messages."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ptxtile import dtypes
from ptxtile.errors import LayoutError
from ptxtile.layout import ComposeLayout, S
from ptxtile.layout.banks import bank_conflicts
from ptxtile.layout.descriptor import MatrixDescriptor, wgmma_descriptor
from ptxtile.layout.shared import shared_layout, swizzle_of

WIDTHS = {1: dtypes.uint8, 2: dtypes.bfloat16, 4: dtypes.float32, 8: dtypes.float64}
SPANS = (0, 32, 64, 128)


def places(layout, shape):
    """The place of every element."""
    return layout.apply(*np.indices(shape), shape=shape)["m"]


def second(rows: int, columns: int, itemsize: int, span: int) -> np.ndarray:
    """Bytes, without XOR: in a line of `span` bytes, chunk c of row r lies where a table of eight lines says.

    The lines of 128 bytes are numbered from an address that is a multiple of 1024. In line i the chunks of each span
    are in the order of the i-th row of a Latin square: of 8, 4 (each row twice) or 2 (each four times).
    """
    width = span // itemsize
    count = span // 16
    squares = {
        1: [[0]],
        2: [[0, 1], [1, 0]],
        4: [[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]],
    }
    squares[8] = [
        [*(squares[4][i % 4] if i < 4 else [c + 4 for c in squares[4][i % 4]]),
         *([c + 4 for c in squares[4][i % 4]] if i < 4 else squares[4][i % 4])]
        for i in range(8)
    ]  # fmt: skip
    made = np.zeros((rows, columns), np.int64)
    for row, column in itertools.product(range(rows), range(columns)):
        block, inside = divmod(column, width)
        chunk, byte = divmod(inside * itemsize, 16)
        start = block * rows * span + row * span
        line = start // 128 % 8
        made[row, column] = start + squares[count][line % count][chunk] * 16 + byte
    return made


@pytest.mark.parametrize("itemsize", WIDTHS)
@pytest.mark.parametrize("span", SPANS[1:])
def test_swizzled_layouts_have_a_second_source(itemsize, span):
    shape = (24, 2 * span // itemsize)
    found = places(shared_layout(shape, WIDTHS[itemsize], span), shape)
    np.testing.assert_array_equal(found * itemsize, second(*shape, itemsize, span))


@pytest.mark.parametrize("itemsize", WIDTHS)
@pytest.mark.parametrize("span", SPANS)
def test_shared_layouts_are_bijections(itemsize, span):
    shape = (2, 16, 2 * (span or 16) // itemsize)
    layout = shared_layout(shape, WIDTHS[itemsize], span)
    found = places(layout, shape)
    assert sorted(found.ravel()) == list(range(found.size))
    assert (found[1] - found[0] == found[0].size).all()


def test_a_swizzle_is_what_the_reference_says():
    assert shared_layout((8, 64), dtypes.bfloat16) == ComposeLayout(3, 3, 3, S[(8, 1, 64) : (64, 512, 1)])
    assert swizzle_of(32, 4).swizzle_len == 1 and swizzle_of(32, 4).per_element == 2


@pytest.mark.parametrize("span", SPANS[1:])
@pytest.mark.parametrize("itemsize", [1, 2, 4])
def test_ldmatrix_and_wide_accesses_have_no_conflicts(span, itemsize):
    """Eight rows' chunks, as ldmatrix and 16-byte loads down a column want them, against a layout without a swizzle."""
    shape = (32, span // itemsize)
    rows = [(row, 0) for row in range(8)]
    layout = shared_layout(shape, WIDTHS[itemsize], span)
    swizzled = bank_conflicts(layout, rows, width_bytes=16, element_bits=itemsize * 8, shape=shape)
    plain = bank_conflicts(S[shape], rows, width_bytes=16, element_bits=itemsize * 8, shape=shape)
    assert swizzled.servings == swizzled.phases == 1
    assert plain.servings == span // 16


@pytest.mark.parametrize("span", SPANS[1:])
@pytest.mark.parametrize("width", [4, 8, 16])
def test_whole_rows_have_no_conflicts(span, width):
    """A warp reads or writes rows one after the other, `width` bytes a lane."""
    shape = (64, span // 2)
    each = width // 2
    lanes = [divmod(lane * each, shape[1]) for lane in range(32)]
    layout = shared_layout(shape, dtypes.float16, span)
    found = bank_conflicts(layout, lanes, width_bytes=width, element_bits=16, shape=shape)
    assert found.servings == found.phases == width // 4


def test_fragments_of_stores_have_conflicts_that_are_counted():
    """Pairs of float16 as an accumulator holds them (8 rows, 4 lanes each): swizzled, one serving; plain, eight."""
    shape = (8, 64)
    pairs = [(lane // 4, lane % 4 * 2) for lane in range(32)]
    found = [
        bank_conflicts(layout, pairs, width_bytes=4, element_bits=16, shape=shape).servings
        for layout in (shared_layout(shape, dtypes.float16), S[shape])
    ]
    assert found == [1, 8]


# --- descriptors ----------------------------------------------------------------------------------------------------
def descriptor(layout, shape, atom, itemsize=2):
    return wgmma_descriptor("b", layout.slice(shape, (0, 0), atom), atom, itemsize)


@pytest.mark.parametrize(
    ("span", "leading", "stride"), [(0, 64 * 16, 128), (32, 16, 256), (64, 16, 512), (128, 16, 1024)]
)
def test_k_major(span, leading, stride):
    shape = (64, 64)
    found = descriptor(shared_layout(shape, dtypes.bfloat16, span), shape, (64, 16))
    assert found == MatrixDescriptor("k", span, leading, stride)
    assert found.alignment == (8 * span or 16)


@pytest.mark.parametrize(
    ("span", "leading", "stride"),
    [(0, 128, 64 * 16), (32, 64 * 32, 256), (64, 64 * 64, 512), (128, 64 * 128, 1024)],
)
def test_mn_major(span, leading, stride):
    """128 rows along lines of memory, k down: blocks of `span` bytes of rows are `leading` apart, 8 lines `stride`."""
    shape = (64, 128)
    layout = shared_layout(shape, dtypes.bfloat16, span).permute_by_groups((0, 1, 3), (1, 0))
    found = wgmma_descriptor("b", layout.slice((128, 64), (0, 0), (128, 16)), (128, 16), 2)
    assert found == MatrixDescriptor("mn", span, leading, stride)


@pytest.mark.parametrize(("span", "mode"), [(0, 0), (128, 1), (64, 2), (32, 3)])
def test_bits_of_a_descriptor(span, mode):
    """Offsets in units of 16 bytes at bits 16 and 32, the mode at bit 62 (9.7.15.5.1.2)."""
    bits = MatrixDescriptor("k", span, 32, 1024).bits
    assert (bits & 0xFFFF, bits >> 16 & 0x3FFF, bits >> 32 & 0x3FFF, bits >> 62) == (0, 2, 64, mode)


def test_messages_of_descriptors():
    def refused(layout, shape=(64, 16), itemsize=2):
        with pytest.raises(LayoutError) as caught:
            wgmma_descriptor("b", layout, shape, itemsize)
        return str(caught.value)

    assert refused(S[64, 16]) == (
        "b: lines are 32 bytes apart; the tensor core takes lines of 16 bytes that follow each other; use "
        "pt.shared_layout(shape, dtype, swizzle)"
    )
    assert refused(ComposeLayout(2, 3, 3, S[(64, 16) : (64, 1)])) == (
        "b: the tensor core permutes 16-byte chunks by the line's number, Swizzle(per_element=2, swizzle_len=3, "
        "atom_len=3, inner=True) is another swizzle; use pt.shared_layout(shape, dtype, swizzle)"
    )
    assert (
        refused(S[(64, 16) : (32, 2)]) == "b: neither dimension of the matrix is contiguous in shared memory"
    )
    assert refused(S[(64, 32) : (1, 64)], (64, 32), 1) == (
        "b: only matrices of 16-bit elements may be MN-major; here k must be contiguous"
    )
    assert refused(S[(2, 4, 8, 2, 8) : (1000, 64, 8, 256, 1)]) == (
        "b: the matrix does not advance in equal blocks of 8 in shared memory"
    )
    assert refused(S[(8, 8, 2, 8) : (65536 * 8, 8, 64, 1)]) == (
        "b: the stride byte offset 1048576 is no multiple of 16 below 2**18"
    )


# --- messages -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("shape", "span", "message"),
    [
        (
            (8, 32),
            128,
            "a shared matrix with swizzle 128 has a multiple of 8 rows and of 64 columns of float16, not 8 x 32",
        ),
        (
            (4, 64),
            128,
            "a shared matrix with swizzle 128 has a multiple of 8 rows and of 64 columns of float16, not 4 x 64",
        ),
        ((8, 64), 16, "a swizzle spans 0, 32, 64, 128 bytes, not 16"),
        ((64,), 128, "a shared matrix has a shape (…, rows, columns), not (64,)"),
        (64, 128, "a shared matrix has a shape (…, rows, columns), not 64"),
        ((8, 0), 128, "a shared matrix has a shape (…, rows, columns), not (8, 0)"),
    ],
)
def test_messages_of_shared_layouts(shape, span, message):
    with pytest.raises(LayoutError) as caught:
        shared_layout(shape, dtypes.float16, span)
    assert str(caught.value) == message
