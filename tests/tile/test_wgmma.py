"""wgmma as a tile operation: descriptors and fragments in the text, products on both machines, messages."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import ptx, tile
from ptxtile.layout.fragment import wgmma_accumulator, wgmma_registers, wgmma_words
from tile.running import failure, machines, message, module

HALF = "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16"
SPARSE = "wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.bf16.bf16"


def shared(
    rows: int, k: int, dtype: pt.DType = pt.bfloat16, swizzle: int = 128, align: int = 1024
) -> pt.Tensor:
    layout = pt.shared_layout((rows, k), dtype, swizzle)
    return pt.alloc_shared((rows, k), dtype, layout=layout, align=align)


def accumulator(columns: int = 64) -> pt.Tensor:
    return pt.alloc_local((64, columns), pt.float32, layout=wgmma_accumulator(columns))


def apply(form: str, *operands: object, **words: object) -> None:
    tile.apply(ptx[form], *operands, scope="warpgroup", **words)


def products(body: Callable[[object], object]) -> list[str]:
    """The operands behind D of each wgmma in the text."""
    text = str(module(body, 128, params={"x": pt.uint32}))
    return re.findall(r"wgmma\.mma_async\S* \{[^}]*\}, (.*);", text)


# --- text -----------------------------------------------------------------------------------------------------------
def test_k_major_and_mn_major_differ_in_the_transpose_immediates():
    """scale_d, scale_a, scale_b, trans_a, trans_b."""

    def body(k):
        apply(HALF, accumulator(), shared(64, 64), shared(64, 64))
        apply(HALF, accumulator(), shared(16, 64).permute(1, 0), shared(16, 64).permute(1, 0), scale_a=-1)

    found = [line.split(", ", 2)[2] for line in products(body)]
    assert found == ["1, 1, 1, 0, 0"] * 4 + ["1, -1, 1, 1, 1"]


def test_scale_d_is_of_the_first_step():
    def body(k):
        apply(HALF, accumulator(), shared(64, 64), shared(64, 64), scale_d=False)
        apply(HALF, accumulator(), shared(64, 64), shared(64, 64), scale_d=k.x > 3)

    found = [line.split(", ")[2] for line in products(body)]
    assert found[:4] == ["0", "1", "1", "1"] and found[5:] == ["1", "1", "1"] and found[4].startswith("%p")


def test_a_matrix_and_its_registers_are_one_operand():
    """D as (64, n) and as (4, 32, n / 2), A as (64, 8) words and as (4, 32, 4): the same registers, in order."""

    def registers(matrix: bool) -> list[str]:
        def body(k):
            if matrix:
                d = accumulator()
                a = pt.alloc_local((64, 8), pt.uint32, layout=wgmma_words(8))
            else:
                d = pt.alloc_local((4, 32, 32), pt.float32, layout=wgmma_registers(32))
                a = pt.alloc_local((4, 32, 4), pt.uint32, layout=wgmma_registers(4)).view(4, 32, 1, 1, 4)
            apply(HALF, d, a, shared(16, 64).permute(1, 0))

        text = str(module(body, 128, params={}))
        return re.findall(r"wgmma\.mma_async\S* (.*);", text)

    assert registers(True) == registers(False)


def test_sparse_has_metadata_and_a_selector():
    def body(k):
        meta = pt.alloc_local((4, 32, 1, 2, 1), pt.uint32, layout=wgmma_registers(2))
        apply(SPARSE, accumulator(), shared(64, 32, swizzle=64), shared(64, 64), meta, sp_sel=1)

    found = products(body)
    assert [re.sub(r"%\w+", "%", line) for line in found] == ["%, %, %, 1, 1, 1, 1, 0, 0"] * 2
    assert len({line.split(", ")[2] for line in found}) == 2


TYPES = [
    ("wgmma.mma_async.sync.aligned.m64n24k16.f16.f16.f16", pt.float16, 16),
    ("wgmma.mma_async.sync.aligned.m64n24k8.f32.tf32.tf32", pt.float32, 8),
    ("wgmma.mma_async.sync.aligned.m64n24k32.f32.e4m3.e5m2", pt.uint8, 32),
    ("wgmma.mma_async.sync.aligned.m64n24k32.satfinite.s32.s8.u8", pt.uint8, 32),
    ("wgmma.mma_async.sync.aligned.m64n24k256.s32.b1.b1.and.popc", pt.uint8, 32),
    ("wgmma.mma_async.sp.sync.aligned.m64n24k32.f32.f16.f16", pt.float16, 32),
    ("wgmma.mma_async.sp.sync.aligned.m64n24k16.f32.tf32.tf32", pt.float32, 16),
    ("wgmma.mma_async.sp.sync.aligned.m64n24k64.f16.e5m2.e5m2", pt.uint8, 64),
    ("wgmma.mma_async.sp.sync.aligned.m64n24k64.s32.u8.s8", pt.uint8, 64),
]


@pytest.mark.parametrize(("form", "dtype", "k"), TYPES, ids=[form[16:] for form, *_ in TYPES])
@pytest.mark.parametrize("registers", [False, True])
def test_every_type_assembles(form, dtype, k, registers):
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    sparse = ".sp." in form

    @pt.kernel(grid=1, block=128)
    def types():
        if re.search(r"k\d+\.f16\.", form):
            d = pt.alloc_local((64, 12), pt.uint32, layout=wgmma_words(12))
        else:
            result = pt.int32 if ".s32" in form else pt.float32
            d = pt.alloc_local((64, 24), result, layout=wgmma_accumulator(24))
        stored = k // 2 if sparse else k
        a = pt.alloc_local((64, 8), pt.uint32, layout=wgmma_words(8))
        if not registers:
            a = shared(64, stored, dtype, 32)
        b = shared(24, k, dtype, 64 if sparse else 32)
        meta = [pt.alloc_local((4, 32, 1, 1, 1), pt.uint32, layout=wgmma_registers(1))] if sparse else []
        ptx.wgmma.fence.sync.aligned()
        apply(form, d, a, b, *meta)
        ptx.wgmma.commit_group.sync.aligned()
        ptx.wgmma.wait_group.sync.aligned(0)

    assert types.cubin("sm_90a")[:4] == b"\x7fELF"
    assert form in types.ptx() and pt.check_text(types.ptx()) == []


# --- products -------------------------------------------------------------------------------------------------------
@machines
@pytest.mark.parametrize(
    ("n", "swizzle", "transposed"), [(8, 128, False), (64, 128, True), (24, 0, True), (80, 32, False)]
)
def test_product(device, n, swizzle, transposed):
    """Integers, written and read element by element; D begins as other integers."""
    import ml_dtypes

    k = 64
    shape = (k, n) if transposed else (n, k)
    form = f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.bf16.bf16"

    @pt.kernel(grid=1, block=128)
    def multiply(
        A: pt.Tensor((64, k), pt.uint16),
        B: pt.Tensor(shape, pt.uint16),
        D: pt.Tensor((128, n // 2), pt.float32),
    ):
        a, b = shared(64, k, pt.uint16, swizzle), shared(*shape, pt.uint16, swizzle)
        for held, source in ((a, A), (b, B)):
            columns = held.static_shape[1]
            with pt.for_range(pt.thread_rank(), held.static_shape[0] * columns, 128) as i:
                held[i // columns, i % columns] = source[i // columns, i % columns]
        d = pt.alloc_local((4, 32, n // 2), pt.float32, layout=wgmma_registers(n // 2))
        for i in range(n // 2):
            d[0, 0, i] = D[pt.thread_rank(), i]
        pt.fence_async()
        pt.cta_sync()
        ptx.wgmma.fence.sync.aligned()
        matrix = d.view(64, n, layout=wgmma_accumulator(n))
        apply(form, matrix, a, b.permute(1, 0) if transposed else b)
        ptx.wgmma.commit_group.sync.aligned()
        ptx.wgmma.wait_group.sync.aligned(0)
        for i in range(n // 2):
            D[pt.thread_rank(), i] = d[0, 0, i]

    rng = np.random.default_rng(n)
    a, b = (rng.integers(-4, 5, size).astype(ml_dtypes.bfloat16) for size in ((64, k), shape))
    start = rng.integers(-9, 10, (64, n)).astype(np.float32)
    place = wgmma_accumulator(n).apply(*np.indices((64, n)), shape=(64, n))
    at = place["wid_in_wg"] * 32 + place["laneid"], place["m"]
    held = np.zeros((128, n // 2), np.float32)
    held[at] = start
    multiply.launch(a.view(np.uint16), b.view(np.uint16), held, device=device)
    right = b.astype(np.float32) if transposed else b.astype(np.float32).T
    np.testing.assert_array_equal(held[at], start + a.astype(np.float32) @ right)


# --- messages -------------------------------------------------------------------------------------------------------
def registers(count: int, dtype: pt.DType = pt.float32) -> pt.Tensor:
    return pt.alloc_local((4, 32, count), dtype, layout=wgmma_registers(count))


MESSAGES = [
    (
        lambda k: apply(HALF, accumulator(), shared(64, 64), shared(64, 64), scale=1),
        f"{HALF} has no parameter 'scale'; it has scale_d, scale_a, scale_b, sp_sel beside scope, pred, preserve_dst",
    ),
    (
        lambda k: apply(HALF, accumulator(), shared(64, 64), shared(64, 64), sp_sel=1),
        f"{HALF} has no metadata, so no sp_sel=: it is of the sparse forms",
    ),
    (
        lambda k: tile.apply(ptx[HALF], accumulator(), shared(64, 64), shared(64, 64)),
        f'{HALF} is done by a whole warpgroup: scope="warpgroup" with its 128 threads active',
    ),
    (
        lambda k: apply(HALF, accumulator(), shared(64, 64)),
        f"{HALF} takes 3 operands (d, a, b); 2 were given",
    ),
    (
        lambda k: apply(SPARSE, accumulator(), shared(64, 64), shared(64, 128, swizzle=128)),
        f"{SPARSE} takes 4 operands (d, a, b, metadata); 3 were given",
    ),
    (
        lambda k: apply(HALF, accumulator(), shared(64, 64), shared(64, 128)),
        f"{HALF}: a has 64 columns and b has 128: a has K, b K",
    ),
    (
        lambda k: apply(HALF, accumulator(), shared(64, 64), shared(64, 64, pt.float16)),
        f"{HALF}: operand b takes elements of bfloat16 or uint16, not float16",
    ),
    (
        lambda k: apply(HALF, accumulator(), shared(64, 64), shared(32, 64)),
        f"{HALF}: operand b has shape (32, 64); it takes (a multiple of 64, a multiple of 16)",
    ),
    (
        lambda k: apply(HALF, accumulator(), shared(64, 64), accumulator()),
        f"{HALF}: operand b takes a tensor in shared memory, not a Tensor",
    ),
    (
        lambda k: apply(HALF, shared(64, 64), shared(64, 64), shared(64, 64)),
        f"{HALF}: operand d takes a register tensor, not a Tensor",
    ),
    (
        lambda k: apply(HALF, registers(32, pt.int32), shared(64, 64), shared(64, 64)),
        f"{HALF}: operand d takes registers of float32, not int32",
    ),
    (
        lambda k: apply(HALF, accumulator(64), shared(128, 64), shared(64, 64)),
        f"{HALF}: operand d has shape (64, 64); with these a and b it is (128, 64)",
    ),
    (
        lambda k: apply(HALF, registers(16), shared(64, 64), shared(64, 64)),
        f"{HALF}: operand d has shape (4, 32, 16); its trailing axes are the instruction's registers, (32,)",
    ),
    (
        lambda k: apply(
            HALF,
            pt.alloc_local((64, 64), pt.float32, layout=wgmma_words(64)),
            shared(64, 64),
            shared(64, 64),
        ),
        f"{HALF}: operand d: its elements are not with the threads that hold them in the fragment {wgmma_accumulator(64)!r}",
    ),
    (
        lambda k: apply(HALF, accumulator(), shared(64, 64), shared(64, 64, align=128)),
        f"{HALF}: operand b: a matrix with swizzle 128 needs memory aligned to 1024 bytes, and this is aligned to 128 (align=)",
    ),
    (
        lambda k: apply(
            HALF, accumulator(), shared(64, 64), pt.alloc_shared((64, 64), pt.bfloat16, align=1024)
        ),
        f"{HALF}: operand b: lines are 128 bytes apart; the tensor core takes lines of 16 bytes that follow each other; use pt.shared_layout(shape, dtype, swizzle)",
    ),
    (
        lambda k: apply(HALF, accumulator(), shared(64, 64), shared(72, 64)[4:68]),
        f"{HALF}: operand b: the region must start in the first of eight lines of 128 bytes, at a multiple of 16 bytes, and that is not proven of its start at element 256",
    ),
    (
        lambda k: apply(HALF, accumulator(), shared(64, 64), shared(64, 64), scale_a=2),
        f"{HALF}: scale_a= is 1 or -1, not 2",
    ),
    (
        lambda k: apply(HALF, accumulator(), shared(64, 64), shared(64, 64), scale_d=k.x),
        f"{HALF}: scale_d= is True, False or a run-time bool_, not a run-time uint32",
    ),
    (
        lambda k: apply(HALF, accumulator(), shared(64, 64), shared(64, 64), pred=k.x > 1),
        f"{HALF} takes no pred=: all warps of the warpgroup execute it",
    ),
    (
        lambda k: apply(
            SPARSE,
            accumulator(),
            shared(64, 16, swizzle=32),
            shared(64, 32, swizzle=64),
            registers(1, pt.uint32).view(4, 32, 1, 1, 1),
            sp_sel=2,
        ),
        f"{SPARSE}: sp_sel= is 0 or 1, not 2",
    ),
]


@pytest.mark.parametrize(
    ("body", "text"), MESSAGES, ids=[text.partition(HALF)[2][:40] for _, text in MESSAGES]
)
def test_messages(body, text):
    assert message(failure(body, 128, params={"x": pt.uint32})) == text


def test_integers_are_not_negated():
    form = "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8"

    def body(k):
        apply(
            form,
            registers(32, pt.int32),
            shared(64, 32, pt.int8, 32),
            shared(64, 32, pt.int8, 32),
            scale_b=-1,
        )

    assert message(failure(body, 128, params={})) == f"{form} negates neither A nor B: scale_b= is 1"


def test_only_16_bit_types_may_be_mn_major():
    form = "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8"

    def body(k):
        apply(
            form,
            registers(32, pt.int32),
            shared(64, 32, pt.int8, 32),
            shared(32, 64, pt.int8, 64).permute(1, 0),
        )

    assert message(failure(body, 128, params={})) == (
        f"{form}: operand b: only matrices of 16-bit elements may be MN-major; here k must be contiguous"
    )


def test_wgmma_needs_the_a():
    @pt.kernel(grid=1, block=128, target="sm_90")
    def plain():
        apply(HALF, accumulator(), shared(64, 64), shared(64, 64))

    with pytest.raises(pt.PtxtileError) as caught:
        plain.ptx()
    assert "sm_90a" in str(caught.value) and HALF in str(caught.value)
