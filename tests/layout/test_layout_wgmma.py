"""Fragments of wgmma: bijections, and each element against the manual's index formulas (9.7.15.5.1.1, 9.7.15.6.1)."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtile.errors import LayoutError
from ptxtile.layout.fragment import (
    wgmma_a,
    wgmma_accumulator,
    wgmma_metadata,
    wgmma_registers,
    wgmma_words,
)


def elements(layout, columns):
    """{(thread of the warpgroup, place): (row, column)} of a fragment of 64 rows; fails unless it is one to one."""
    rows, across = np.indices((64, columns))
    found = layout.apply(rows, across, shape=(64, columns))
    threads = (found["wid_in_wg"] * 32 + found["laneid"]).ravel()
    made = dict(zip(zip(threads, found["m"].ravel()), zip(rows.ravel(), across.ravel())))
    assert len(made) == 64 * columns
    return made


@pytest.mark.parametrize("n", range(8, 257, 8))
def test_accumulators(n):
    """Register i of lane l of warp w: row 16 w + l / 4 + 8 for i & 2, column 8 (i / 4) + 2 (l % 4) + i & 1."""
    found = elements(wgmma_accumulator(n), n)
    assert set(found) == {(thread, i) for thread in range(128) for i in range(n // 2)}
    for (thread, i), (row, column) in found.items():
        lane = thread % 32
        assert row == thread // 32 * 16 + lane // 4 + (8 if i & 2 else 0)
        assert column == i // 4 * 8 + lane % 4 * 2 + (i & 1)


@pytest.mark.parametrize("itemsize", [1, 2, 4])
def test_a_in_registers(itemsize):
    """Element i: rows as D's; a register has 4 / itemsize neighbours, the second pair of registers 16 bytes on."""
    pack, columns = 4 // itemsize, 32 // itemsize
    found = elements(wgmma_a(itemsize), columns)
    assert len(found) == 128 * 4 * pack
    for (thread, i), (row, column) in found.items():
        lane, (register, part) = thread % 32, divmod(i, pack)
        assert row == thread // 32 * 16 + lane // 4 + (8 if register & 1 else 0)
        assert column == lane % 4 * pack + part + (4 * pack if register >= 2 else 0)


@pytest.mark.parametrize("itemsize", [1, 2, 4])
def test_words_are_elements_packed(itemsize):
    """A's words are A's elements, 4 bytes together."""
    assert wgmma_a(itemsize).pack(4 // itemsize).canonicalize() == wgmma_words(8).canonicalize()


@pytest.mark.parametrize("n", [8, 24, 256])
def test_pairs_of_float16_are_an_accumulator_packed(n):
    assert wgmma_accumulator(n).pack(2).canonicalize() == wgmma_words(n // 2).canonicalize()


def second_metadata(itemsize, selector):
    """{(thread, half of its register): (row, half of the row)}, from CUTLASS's layouts of metadata (mma_traits for SM90
    sparse GMMA): thread bits and value steps as strides over row + 64 * column, columns of 16 bits in all of a half."""
    columns = {1: 16, 2: 16, 4: 8}[itemsize]
    made = {}
    for bit0, bit1, group, warp in np.ndindex(2, 2, 8, 4):
        thread = warp * 32 + group * 4 + bit1 * 2 + bit0
        for value in range(2):
            index = group + 16 * warp
            if itemsize == 1:
                index += bit0 * 8 + bit1 * 2048 + value * 64 * columns
            elif bit1 == selector:
                index += bit0 * 64 * columns + value * 8
            else:
                continue
            made[thread, value] = (index % 64, index // 64 // columns)
    return made


@pytest.mark.parametrize(("itemsize", "selector"), [(1, 0), (2, 0), (2, 1), (4, 0), (4, 1)])
def test_metadata_has_a_second_source(itemsize, selector):
    layout = wgmma_metadata(itemsize, selector)
    assert elements(layout, 4 if itemsize == 1 else 2) == second_metadata(itemsize, selector)


def test_registers_are_warps_lanes_and_places():
    assert wgmma_registers(6).apply(3, 31, 5) == {"wid_in_wg": 3, "laneid": 31, "m": 5}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: wgmma_accumulator(12), "wgmma has N from 8 to 256 in steps of 8, not 12"),
        (lambda: wgmma_accumulator(264), "wgmma has N from 8 to 256 in steps of 8, not 264"),
        (lambda: wgmma_a(8), "A of wgmma has elements of 1, 2 or 4 bytes, not 8"),
        (lambda: wgmma_words(6), "a fragment of wgmma has a multiple of 4 columns of words, not 6"),
        (lambda: wgmma_metadata(2, 2), "the sparsity selector is 0 or 1 for elements of 2 bytes, not 2"),
        (lambda: wgmma_metadata(1, 1), "the sparsity selector is 0 for elements of 1 bytes, not 1"),
        (lambda: wgmma_metadata(3), "A of wgmma has elements of 1, 2 or 4 bytes, not 3"),
        (lambda: wgmma_registers(0), "a fragment has a positive number of registers, not 0"),
    ],
)
def test_messages(make, message):
    with pytest.raises(LayoutError) as caught:
        make()
    assert str(caught.value) == message
