"""Fragments of mma and of the moves of matrices: bijections, and the manual's formulas by lane and element."""

from __future__ import annotations

import itertools

import pytest

from ptxtile.errors import LayoutError
from ptxtile.layout.mma_fragment import Fragment, ldmatrix, mma_a, mma_b, mma_c, per_lane, stacked, stmatrix
from ptxtile.layout.tensor_memory import DATAPATHS, datapath, datapath_of, tensor_memory_fragment

SHAPES = [  # (shape, bits of an element of A and B)
    ("m16n8k8", 16), ("m16n8k16", 16), ("m16n8k4", 32), ("m16n8k8", 32), ("m16n8k16", 8), ("m16n8k32", 8),
    ("m8n8k16", 8), ("m8n8k32", 4), ("m16n8k32", 4), ("m16n8k64", 4), ("m8n8k128", 1), ("m16n8k128", 1),
    ("m16n8k256", 1), ("m8n8k4", 64), ("m16n8k4", 64), ("m16n8k8", 64), ("m16n8k16", 64),
]  # fmt: skip
SPARSE = [("m16n8k16", 16), ("m16n8k32", 16), ("m16n8k8", 32), ("m16n8k16", 32), ("m16n8k32", 8), ("m16n8k64", 8),
          ("m16n8k64", 4), ("m16n8k128", 4)]  # fmt: skip
MOVES = [ldmatrix("m8n8", n) for n in (1, 2, 4)] + [ldmatrix("m8n16", n) for n in (1, 2, 4)]
MOVES += [ldmatrix("m16n16", n) for n in (1, 2)] + [stmatrix("m8n8", 4), stmatrix("m16n8", 2)]
TENSOR = [tensor_memory_fragment(*case) for case in (
    ("32x32b", 1), ("32x32b", 128), ("16x64b", 4), ("16x128b", 64), ("16x256b", 32), ("16x32bx2", 8)
)]  # fmt: skip
QUADS = [mma_a("m8n8k4", 16), mma_a("m8n8k4", 16, order="col"), mma_b("m8n8k4", 16), mma_b("m8n8k4", 16, "row"),
         mma_c("m8n8k4", 16, True), mma_c("m8n8k4", 32, True)]  # fmt: skip
FRAGMENTS: list[Fragment] = [
    *(make(shape, bits) for shape, bits in SHAPES for make in (mma_a, mma_b)),
    *(mma_a(shape, bits, sparse=True) for shape, bits in SPARSE),
    *(mma_c(shape, bits) for shape, bits in (("m16n8k16", 16), ("m16n8k16", 32), ("m8n8k16", 32), ("m16n8k4", 64))),
    *MOVES, *TENSOR, *QUADS, per_lane(),
]  # fmt: skip


def held(fragment: Fragment) -> dict[tuple[int, ...], tuple[int, int]]:
    """Coordinate to (lane, register)."""
    found = {}
    for at in itertools.product(*map(range, fragment.shape)):
        where = fragment.layout.apply(*at, shape=fragment.shape)
        found[at] = where["laneid"], where["m"]
    return found


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=lambda fragment: fragment.name)
def test_a_fragment_is_a_bijection_of_lanes_and_registers(fragment):
    places = sorted(held(fragment).values())
    assert places == [(lane, register) for lane in range(32) for register in range(fragment.registers)]


# --- the manual's formulas, in its own terms ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "bits"), [case for case in SHAPES if case[0].startswith("m16") and case[1] < 64]
)
def test_a_of_sixteen_rows(shape, bits):
    """9.7.14.5.4 on: groupID = lane / 4, threadID = lane % 4; elements fill registers, two registers a half of K."""
    per = 32 // bits
    fragment = mma_a(shape, bits)
    where = held(fragment)
    k = int(shape.partition("k")[2])
    for lane in range(32):
        group, thread = lane >> 2, lane % 4
        for i in range(16 * k // 32):
            register, inside = divmod(i, per)
            row = group if register % 2 == 0 else group + 8
            column = thread * per + inside + (4 * per if register >= 2 else 0)
            assert where[row, column // per] == (lane, register)
            assert column % per == inside


@pytest.mark.parametrize(("shape", "bits"), [case for case in SHAPES if case[1] < 64])
def test_b(shape, bits):
    per = 32 // bits
    where = held(mma_b(shape, bits))
    k = int(shape.partition("k")[2])
    for lane in range(32):
        group, thread = lane >> 2, lane % 4
        for i in range(8 * k // 32):
            register, inside = divmod(i, per)
            row = thread * per + inside + 4 * per * register  # of K
            assert where[group, row // per] == (lane, register)


def test_double_precision():
    """m16n8k16 (9.7.14.5.11): a_i in row g + 8 (i % 2), column t + 4 (i / 2); b_i in row t + 4 i."""
    a, b = held(mma_a("m16n8k16", 64)), held(mma_b("m16n8k16", 64))
    for lane, i in itertools.product(range(32), range(8)):
        group, thread = lane >> 2, lane % 4
        assert a[group + 8 * (i % 2), thread + 4 * (i // 2)] == (lane, i)
        if i < 4:
            assert b[group, thread + 4 * i] == (lane, i)


def test_sums():
    where = held(mma_c("m16n8k16", 32))
    pairs = held(mma_c("m16n8k16", 16))
    for lane, i in itertools.product(range(32), range(4)):
        row = (lane >> 2) + (8 if i >= 2 else 0)
        column = (lane % 4) * 2 + (i & 1)
        assert where[row, column] == (lane, i)
        assert pairs[row, column // 2] == (lane, i // 2)


def test_four_products_of_quad_pairs():
    """m8n8k4 (9.7.14.5.1): product q is of lanes 4 q + {0 … 3, 16 … 19}."""
    sums, a, b = held(QUADS[5]), held(QUADS[0]), held(QUADS[2])
    columns = held(QUADS[1])
    for lane in range(32):
        product, low, high = lane % 16 // 4, lane % 4, lane >= 16
        for i in range(8):
            row = (lane & 1) + (i & 2) + 4 * high
            column = (i & 4) + (lane & 2) + (i & 1)
            assert sums[product, row, column] == (lane, i)
        for i in range(4):
            assert a[product, low + 4 * high, i // 2] == (lane, i // 2)
            assert b[product, low + 4 * high, i // 2] == (lane, i // 2)
            assert columns[product, low, (i + 4 * high) // 2] == (lane, i // 2)


def test_matrices_of_bytes():
    """CUTLASS's value order of SM100_U8x8_LDSM_T after its exchange of bytes: lane, then register, then byte."""
    where = held(ldmatrix("m16n16", 1))
    for lane, register in itertools.product(range(32), range(2)):
        assert where[0, lane // 4 + 8 * register, lane % 4] == (lane, register)


# --- tensor memory: two sources -------------------------------------------------------------------------------------
def test_loads_of_tensor_memory_as_triton_has_them():
    """getTileLayout: the place that each bit of the lane and of the register adds, (row, column)."""
    lanes = {
        "32x32b": [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)],
        "16x64b": [(8, 0), (0, 1), (1, 0), (2, 0), (4, 0)],
        "16x128b": [(0, 1), (0, 2), (1, 0), (2, 0), (4, 0)],
        "16x256b": [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)],
    }
    registers = {
        "32x32b": [(0, 1)],
        "16x64b": [(0, 2)],
        "16x128b": [(8, 0), (0, 4)],
        "16x256b": [(0, 1), (8, 0), (0, 8)],
    }
    for shape, bases in lanes.items():
        fragment = tensor_memory_fragment(shape, 2)
        where = {place: at for at, place in held(fragment).items()}
        for lane, register in where:
            parts = [bases[bit] for bit in range(5) if lane >> bit & 1]
            parts += [registers[shape][bit] for bit in range(3) if register >> bit & 1]
            assert where[lane, register] == (sum(p[0] for p in parts), sum(p[1] for p in parts))


def test_loads_of_tensor_memory_as_cutlass_has_them():
    """Copy_Traits of SM100_TMEM_LOAD_16dp*2x: strides in bits of a (row, bit) space of 16 rows."""
    traits = {
        "16x64b": (((2, 1024), (2, 32), (8, 128)), ((2, 64),), 128),
        "16x128b": (((4, 32), (8, 256)), ((2, 2048), (2, 128)), 256),
        "16x256b": (((4, 64), (8, 512)), ((2, 32), (2, 4096), (2, 256)), 512),
        "16x32bx2": (((16, 128), (2, 64)), ((2, 32),), 128),
    }

    def place(number: int, digits: tuple[tuple[int, int], ...]) -> int:
        total = 0
        for extent, stride in digits:
            total += number % extent * stride
            number //= extent
        return total

    for shape, (lane_digits, register_digits, row_bits) in traits.items():
        fragment = tensor_memory_fragment(shape, 2)
        for at, (lane, register) in held(fragment).items():
            bit = place(lane, lane_digits) + place(register, register_digits)
            row, column = bit // row_bits, bit % row_bits // 32
            due = (at[1], at[0] * 2 + at[2]) if shape == "16x32bx2" else at
            assert (row, column) == due


def test_datapaths():
    """9.7.16.10.5, as Apache TVM TIRx 0.1.0a4 (tmem_datapath_layout) has it too: (row, column) to (lane, column)."""
    expected = {
        "A": lambda r, c: (r, c), "D": lambda r, c: (r, c),
        "B": lambda r, c: (r + 64 * (c >= 8), c % 8), "E": lambda r, c: (r + 64 * (c >= 8), c % 8),
        "C": lambda r, c: (r // 16 * 32 + r % 16, c), "F": lambda r, c: (r // 16 * 32 + r % 16, c),
        "G": lambda r, c: (r + 32 * (c // 4), c % 4),
    }  # fmt: skip
    for letter, rows in DATAPATHS.items():
        layout, seen = datapath(letter, 16), set()
        for row, column in itertools.product(range(rows), range(16)):
            at = layout.apply(row, column, shape=(rows, 16))
            assert (at["TLane"], at["TCol"]) == expected[letter](row, column)
            seen.add((at["TLane"], at["TCol"]))
        assert len(seen) == rows * 16


def test_datapath_of_an_instruction():
    assert [datapath_of(128, 1), datapath_of(64, 1), datapath_of(256, 2), datapath_of(128, 2)] == [
        "D",
        "F",
        "A",
        "B",
    ]
    assert datapath_of(128, 2, sparse=True) == "C"
    assert [datapath_of(m, 1, True) for m in (32, 64, 128)] == ["G", "E", "D"]


# --- errors ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: mma_a("m16n16k16", 16), "a shape of mma is such as m16n8k16, with 8 or 16 rows and 8 columns, not 'm16n16k16'"),
        (lambda: mma_a(16, 16), "a shape of mma is such as m16n8k16, with 8 or 16 rows and 8 columns, not 16"),
        (lambda: mma_c(16, 32), "a shape of mma is such as m16n8k16, with 8 or 16 rows and 8 columns, not 16"),
        (lambda: mma_a("m16n8k16", 6), "mma_a('m16n8k16', 6): elements have 1, 4, 8, 16, 32 or 64 bits, not 6"),
        (lambda: mma_b("m16n8k4", 16), "mma_b('m16n8k4', 16): a row of 4 elements of 16 bits does not fill four lanes' registers"),
        (lambda: mma_c("m16n8k16", 8), "mma_c('m16n8k16', 8): accumulators have 16, 32 or 64 bits"),
        (lambda: ldmatrix("m8n8", 3), "ldmatrix loads 1, 2 or 4 matrices, not 3"),
        (lambda: ldmatrix("m16n16", 4), "ldmatrix has m8n8, m8n16 and, for 1 or 2 matrices, m16n16, not 'm16n16'"),
        (lambda: stmatrix("m8n16", 1), "stmatrix has m8n8 and m16n8, not 'm8n16'"),
        (lambda: stacked(per_lane(), 0), "repeats are positive integers, not (0,)"),
        (lambda: datapath("H", 16), "a datapath layout is one of A, B, C, D, E, F, G, not 'H'"),
        (lambda: datapath("G", 6), "datapath G has a positive multiple of 4 columns, not 6"),
        (lambda: datapath_of(64, 2), "tcgen05.mma with .cta_group::2 has M 128, 256, not 64"),
        (lambda: tensor_memory_fragment("16x256b", 64), "tcgen05.ld has 32x32b, 16x64b, 16x128b, 16x256b, 16x32bx2, times a power of two up to 32, not 16x256b x 64"),
    ],
)  # fmt: skip
def test_what_no_instruction_has_is_refused(make, text):
    with pytest.raises(LayoutError) as caught:
        make()
    assert str(caught.value) == text
