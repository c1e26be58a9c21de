"""tcgen05.mma with scale factors, with metadata, and of MN-major matrices: descriptors, addresses, values, bad input."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import S, TCol, TLane, laneid, tile, warpid
from ptxtile.errors import LayoutError
from ptxtile.layout.mma_fragment import stacked
from ptxtile.layout.tensor_memory import datapath, scale_factors, tensor_memory_fragment
from tile.running import failure, lines, message, module

SCALED = "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale"
SPARSE = "tcgen05.mma.sp.cta_group::1.kind::f16"
MMA = "tcgen05.mma.cta_group::1.kind::f16"
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"


def memory(columns=512):
    made = pt.tensor_memory(columns)
    pt.cta_sync()
    return made


def shared(rows, columns, dtype=pt.float16, swizzle=128):
    shape = (rows, columns)
    return pt.alloc_shared(shape, dtype, layout=pt.shared_layout(shape, dtype, swizzle), align=1024)


def sums(held, columns=64):
    return held.tensor((128, columns), pt.float32, layout=datapath("D", columns))


def factors(held, rows, column):
    return held.tensor((rows,), pt.uint32, layout=scale_factors(rows), column=column)


def products(body, block=1):
    """The operands of each tcgen05.mma, its descriptor as the integer that was moved there."""
    text = lines(body, block, params={})
    moved = dict(
        re.match(r"mov\.b32 (%r\d+), (\d+)$", line).groups()
        for line in text
        if re.match(r"mov\.b32 %r\d+, \d+$", line)
    )
    found = [re.findall(r"\[[^]]*\]|[^ ,]+", line)[1:] for line in text if line.startswith("tcgen05.mma")]
    return [[int(moved[word]) if word in moved else word for word in row] for row in found]


# --- scale factors ----------------------------------------------------------------------------------------------------
def test_a_row_s_word_is_in_its_lane_in_each_quarter():
    layout = scale_factors(128)
    for row in (0, 31, 32, 127):
        assert sorted((owner["TLane"], owner["TCol"]) for owner in layout.owners(row)) == [
            (row % 32 + 32 * quarter, row // 32) for quarter in range(4)
        ]
    assert scale_factors(8).apply(5)["TLane"] == 5


@pytest.mark.parametrize("rows", [0, 48, True, "128"])
def test_rows_of_scale_factors(rows):
    with pytest.raises(LayoutError) as caught:
        scale_factors(rows)
    assert str(caught.value) == f"scale factors are of up to 32 rows, or of a multiple of 32, not {rows!r}"


@pytest.mark.parametrize(
    ("name", "dtype", "bytes_"),
    [
        ("mxf8f6f4.block_scale", pt.float8_e4m3fn, 1),
        ("mxf8f6f4.block_scale.block32", pt.float8_e4m3fn, 1),
        ("mxf4.block_scale", pt.uint8, 2),
        ("mxf4nvf4.block_scale.scale_vec::2X", pt.uint8, 2),
        ("mxf4nvf4.block_scale.block16", pt.uint8, 4),
    ],
)
def test_each_k_repeat_takes_the_next_bytes(name, dtype, bytes_):
    def body(_):
        held = memory()
        each = held.tensor(
            (1, bytes_, 128),
            pt.uint32,
            layout=S[(1, bytes_, 4, 32) : (4 @ TCol, 4 @ TCol, 1 @ TCol, 1 @ TLane)],
            column=64,
        )
        other = held.tensor(
            (1, bytes_, 64),
            pt.uint32,
            layout=S[(1, bytes_, 2, 32) : (2 @ TCol, 2 @ TCol, 1 @ TCol, 1 @ TLane)],
            column=96,
        )
        tile.apply(
            f"tcgen05.mma.cta_group::1.kind::{name}",
            sums(held),
            shared(128, 128, dtype),
            shared(64, 128, dtype),
            each,
            other,
            instruction_shape=(128, 64),
        )

    found = products(body)
    assert len(found) == 4
    for k, row in enumerate(found):
        assert (row[3] >> 29, row[3] >> 4 & 3) == (k * bytes_ % 4,) * 2
        offsets = [int(re.search(r"\+(\d+)\]", word)[1]) for word in row[4:6]]
        assert offsets == [64 + k * bytes_ // 4 * 4, 96 + k * bytes_ // 4 * 2]
        assert row[3] >> 23 & 1 == (bytes_ != 4)


def test_ue8m0_of_blocks_of_16():
    def body(_):
        held = memory()
        tile.apply("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X", sums(held), shared(128, 32, pt.uint8, 32),
                   shared(64, 32, pt.uint8, 32), factors(held, 128, 64), factors(held, 64, 68), instruction_shape=(128, 64), scale_format="ue8m0")  # fmt: skip

    assert products(body)[0][3] >> 23 & 1 == 1


# --- metadata ---------------------------------------------------------------------------------------------------------
def test_metadata_and_selectors_of_each_repeat():
    def body(_):
        held = memory()
        words = held.tensor(
            (1, 4, 128, 1),
            pt.uint32,
            layout=S[(1, 2, 2, 128, 1) : (4 @ TCol, 2 @ TCol, 0, 1 @ TLane, 1 @ TCol)],
            column=64,
        )
        tile.apply(
            SPARSE,
            sums(held),
            shared(128, 64),
            shared(64, 128),
            words,
            instruction_shape=(128, 64),
            selector=(0, 1, 0, 1),
        )

    found = products(body)
    assert [row[3].partition("+")[2] for row in found] == ["64]", "64]", "66]", "66]"]
    assert [row[4] & 7 for row in found] == [4, 5, 4, 5]


# --- MN-major ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kind", "dtype"), [("f16", pt.float16), ("f8f6f4", pt.float8_e5m2), ("i8", pt.int8)]
)
@pytest.mark.parametrize("swizzle", [32, 64, 128])
def test_majors_are_in_the_descriptor(kind, dtype, swizzle):
    unit = dtype.itemsize

    def body(_):
        held = memory()
        k = 64 // unit  # two steps
        a, b = shared(k, 128, dtype, swizzle), shared(64, k, dtype, 64)
        tile.apply(
            f"tcgen05.mma.cta_group::1.kind::{kind}",
            sums(held),
            a.permute(1, 0),
            b,
            instruction_shape=(128, 64),
        )
        if swizzle <= 64 * unit:
            tile.apply(
                f"tcgen05.mma.cta_group::1.kind::{kind}",
                sums(held),
                shared(128, k, dtype, 64),
                shared(k, 64, dtype, swizzle).permute(1, 0),
                instruction_shape=(128, 64),
            )

    found = products(body)
    assert [row[3] >> 15 & 3 for row in found] == [1, 1] + [2, 2] * (swizzle <= 64 * unit)
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    assert pt.assemble(str(module(body, 1, params={})), "sm_100a")[:4] == b"\x7fELF"


def test_distances_of_an_mn_major_matrix():
    """CUTLASS's example of MN-major operands: 64 columns a group, groups K x 64 elements apart, eight lines of K 1024 bytes."""

    def body(_):
        tile.apply(
            MMA, sums(memory()), shared(64, 128).permute(1, 0), shared(64, 64), instruction_shape=(128, 64)
        )

    high = [
        int(line.split(", ")[1])
        for line in lines(body, 1, params={})
        if re.match(r"mov\.b32 %r\d+, \d+$", line)
    ]
    assert (1024 >> 4) | 1 << 14 | 2 << 29 in high
    low = [int(line.split(", ")[2]) for line in lines(body, 1, params={}) if line.startswith("add.u32")]
    assert low[0] >> 16 == 64 * 64 * 2 >> 4
    assert [at - low[0] for at in low[::2]] == [0, 128, 256, 384]  # 16 of K are 2048 bytes


# --- values, on the emulator ------------------------------------------------------------------------------------------
WORDS = tensor_memory_fragment("32x32b", 64)


def place_factors(held, given, count, column):
    """A word of each row into its lane, in every quarter of the lanes."""
    fragment = tensor_memory_fragment("32x32b", count)
    words = pt.alloc_local((4, 32, count), pt.uint32, layout=stacked(fragment, warps=4))
    source = given.view(4, 32, count, 1, layout=S[(4, 32, count, 1) : (0, 1, 32, 1)])
    tile.apply("ld.global.b32", words.view(4, 32, count, 1), source, scope="cta")
    layout = S[(4, 32, count) : (32 @ TLane, 1 @ TLane, 1 @ TCol)]
    place = held.tensor((4, 32, count), pt.uint32, layout=layout, column=column)
    tile.apply(f"tcgen05.st.sync.aligned.32x32b.x{count}.b32", place, words, scope="cta")


def scaled_product(mn):
    """C = (A * SA) @ (B * SB).T: e4m3 (128, 64) and (64, 64), a word of scale factors for each row."""

    @pt.kernel(grid=1, block=128)
    def product(
        A: pt.Tensor((128, 64), pt.uint8), B: pt.Tensor((64, 64), pt.uint8), SA: pt.Tensor((128,), pt.uint32),
        SB: pt.Tensor((64,), pt.uint32), C: pt.Tensor((128, 64), pt.float32),
    ):  # fmt: skip
        held, full, t = pt.tensor_memory(128), pt.mbarrier(1), pt.thread_idx()
        a = shared(64, 128, pt.uint8).permute(1, 0) if mn else shared(128, 64, pt.uint8, 64)
        b = shared(64, 64, pt.uint8, 64)
        with pt.if_(pt.warp_id() == 0):
            held.alloc()
        with pt.if_(t == 0):
            full.init()
            pt.fence_mbarrier_init()
        for j in range(64):
            a[t, j] = A[t, j]
            with pt.if_(t < 64):
                b[t, j] = B[t, j]
        pt.fence_async()
        pt.cta_sync()
        for given, count, column in ((SA, 4, 64), (SB, 2, 68)):
            place_factors(held, given, count, column)
        pt.ptx["tcgen05.wait::st.sync.aligned"]()
        pt.ptx["tcgen05.fence::before_thread_sync"]()
        pt.cta_sync()
        pt.ptx["tcgen05.fence::after_thread_sync"]()
        d = sums(held)
        with pt.if_(pt.warp_id() == 0), pt.if_(pt.elect()):
            tile.apply(SCALED, d, a, b, factors(held, 128, 64), factors(held, 64, 68),
                       instruction_shape=(128, 64), accumulate=False, a_format="e4m3", b_format="e4m3")  # fmt: skip
            tile.apply(COMMIT, full[0])
        full[0].wait(0)
        pt.ptx["tcgen05.fence::after_thread_sync"]()
        r = pt.alloc_local((4, 32, 64), pt.float32, layout=stacked(WORDS, warps=4))
        tile.apply("tcgen05.ld.sync.aligned.32x32b.x64.b32", r, d.view(4, 32, 64), scope="cta")
        pt.ptx["tcgen05.wait::ld.sync.aligned"]()
        rows = r.view(4, 32, 16, 4, layout=S[(4, 32, 16, 4) : (1 @ warpid, 1 @ laneid, 4, 1)])
        tile.apply("st.global.v4.f32", C.view(4, 32, 16, 4), rows, scope="cta")
        pt.cta_sync()
        with pt.if_(pt.warp_id() == 0):
            held.dealloc()

    return product


@pytest.mark.parametrize("mn", [False, True])
def test_values_of_a_scaled_product(mn):
    """Each row has scale factors of its own, and so has each 32 of K."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-3, 4, (rows, 64)).astype(ml_dtypes.float8_e4m3fn) for rows in (128, 64))
    exponents = [rng.integers(-3, 4, (rows, 4)) for rows in (128, 64)]
    words = [(each + 127).astype(np.uint8).view(np.uint32).ravel() for each in exponents]
    c = np.zeros((128, 64), np.float32)
    scaled_product(mn).launch(a.view(np.uint8), b.view(np.uint8), *words, c, device="emulator")
    left, right = (
        (each.astype(np.float64).reshape(-1, 2, 32) * 2.0 ** powers[:, :2, None]).reshape(-1, 64)
        for each, powers in zip((a, b), exponents)
    )
    np.testing.assert_array_equal(c, left @ right.T)


# --- bad input --------------------------------------------------------------------------------------------------------
def wrong(body, block=1):
    return message(failure(body, block, params={}), __file__)


def scaled(**keywords):
    def body(_):
        held = memory()
        made = {"a": shared(128, 128, pt.float8_e4m3fn), "b": shared(64, 128, pt.float8_e4m3fn),
                "scale_a": factors(held, 128, 64), "scale_b": factors(held, 64, 68), "instruction_shape": (128, 64)}  # fmt: skip
        made |= {name: value(held) if callable(value) else value for name, value in keywords.items()}
        form = made.pop("form", SCALED)
        operands = [made.pop(name) for name in ("a", "b", "scale_a", "scale_b")]
        tile.apply(form, sums(held), *operands, **made)

    return body


BAD = [
    (scaled(scale_a=lambda held: factors(held, 64, 64)),
     f"{SCALED}: operand scale_a has shape (64,); its trailing axes are the instruction's registers, (128,)"),
    (scaled(scale_b=lambda held: held.tensor((2, 1, 64), pt.uint32, layout=S[(2, 1, 64) : (2 @ TCol, 0, 1 @ TLane)])),
     (f"{SCALED}: operand scale_b has repeats (2, 1); (1, 1) are due: row repeats, and words of 4 K repeats each; both may be left "
     "out where they are 1")),
    (scaled(scale_a=lambda held: held.tensor((128,), pt.uint32, layout=S[128 : 1 @ TLane])),
     (f"{SCALED}: operand scale_a: element (32,) of the atom must lie 0 lanes and 1 columns from the first, and the layout puts it "
     "32 and 0 away")),
    (scaled(instruction_shape=(64, 64)),
     (f"{SCALED}: M of instruction_shape= is 128 here, not 64: of other products no layout says where their scale factors lie")),
    (scaled(scale_format="ue4m3"), f"{SCALED}: scale_format= is ue8m0, not 'ue4m3'"),
    (scaled(a=lambda _: shared(128, 128, pt.uint8), a_format="e2m1", b=lambda _: shared(128, 64, pt.uint8, 64).permute(1, 0), b_format="e2m1"),
     f"{SCALED}: operand b: these elements may not be MN-major; here k must be contiguous"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "text"), BAD)
def test_bad_scale_factors(body, text):
    assert wrong(body) == text


def sparse(words, **keywords):
    def body(_):
        held = memory()
        tile.apply(
            SPARSE,
            sums(held),
            shared(128, 64),
            shared(64, 128),
            words(held),
            instruction_shape=(128, 64),
            **keywords,
        )

    return body


def one(held):
    return held.tensor((128, 1), pt.uint32, layout=S[(128, 1) : (1 @ TLane, 1 @ TCol)], column=64)


def four(held):
    return held.tensor(
        (1, 4, 128, 1), pt.uint32, layout=S[(1, 4, 128, 1) : (0, 1 @ TCol, 1 @ TLane, 1 @ TCol)], column=64
    )


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (sparse(one), (f"{SPARSE}: operand metadata has shape (128, 1); (1, 4, lanes, columns) is due, the metadata of each M and K "
         "repeat; both may be left out where they are 1")),
        (sparse(four, selector=4), f"{SPARSE}: selector= is 0 to 3, or a tuple of them, not 4"),
        (sparse(four, selector=(0, 1)), f"{SPARSE}: selector= has 2 entries, and there are 4 K repeats"),
        (sparse(four, scale_format="ue8m0"), f"{SPARSE}: scale_format= is of .block_scale, not 'ue8m0'"),
    ],
)  # fmt: skip
def test_bad_metadata(body, text):
    assert wrong(body) == text


def test_a_selector_without_metadata():
    dense = "tcgen05.mma.cta_group::1.kind::f16"

    def body(_):
        tile.apply(
            dense,
            sums(memory()),
            shared(128, 64),
            shared(64, 64),
            instruction_shape=(128, 64),
            selector=0,
        )

    assert wrong(body) == f"{dense} has no metadata, so no selector=: it is of the sparse forms"


def test_sparse_scale_factors_of_one_k_repeat():
    form = "tcgen05.mma.sp.cta_group::1.kind::mxf8f6f4.block_scale"

    def body(_):
        held = memory()
        tile.apply(form, sums(held), shared(128, 64, pt.float8_e4m3fn, 64), shared(64, 128, pt.float8_e4m3fn), four(held)[:, :2],
                   factors(held, 128, 72), factors(held, 64, 76), instruction_shape=(128, 64))  # fmt: skip

    assert wrong(body) == (
        f"{form} takes one K repeat at a time: where scale factors of the next one lie is not known of sparse products"
    )


def test_words_of_32_bits_are_k_major():
    def body(_):
        tile.apply("tcgen05.mma.cta_group::1.kind::tf32", sums(memory()), shared(32, 128, pt.float32).permute(1, 0),
                   shared(64, 32, pt.float32), instruction_shape=(128, 64))  # fmt: skip

    assert wrong(body) == (
        "tcgen05.mma.cta_group::1.kind::tf32: operand a: only matrices of 8 and 16-bit elements may be MN-major; here k must be "
        "contiguous"
    )
