"""What the measured peer (Apache TVM TIRx 0.1.0a4) lacks or gets wrong, one test for each; ours does it."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import S, laneid, ptx, tile, warpid
from tile.running import failure, lines, machines, message, module


def test_01_one_register_a_thread_at_warp_and_cta_scope():
    def body(k):
        for shape, layout, scope in (
            ((2, 32, 1), S[(2, 32, 1) : (1 @ warpid, 1 @ laneid, 1)], "cta"),
            ((2, 32), S[(2, 32) : (1 @ warpid, 1 @ laneid)], None),
        ):
            r = pt.alloc_local(shape, pt.float32, layout=layout)
            tile.apply("neg.f32", r.view(2, 32, 1), r.view(2, 32, 1), scope=scope or "cta")

    assert [line for line in lines(body, 64) if line.startswith("neg")] == [
        "neg.f32 %r0, %r0",
        "neg.f32 %r1, %r1",
    ]


def test_02_a_block_that_is_no_multiple_of_32_is_refused_above_thread_scope():
    def body(_):
        r = pt.alloc_local((1, 32, 1), pt.float32, layout=S[(1, 32, 1) : (1 @ warpid, 1 @ laneid, 1)])
        tile.apply("neg.f32", r, r, scope="cta")

    assert message(failure(body, 48)) == (
        "neg.f32: at cta scope every active warp needs the same lanes, and warp 1 has 16 of them; guard the partial warp by "
        "itself (pt.if_ on pt.warp_id()), use a block that is a multiple of 32, or thread scope"
    )


@pt.function
def sign_and_root(x: pt.float32) -> pt.float32:
    y = x
    for _ in range(2):
        y = y + x
    if x < pt.float32(0):
        return -halved(y)
    else:
        return halved(y)


@pt.function
def halved(x: pt.float32) -> pt.float32:
    return x * pt.float32(0.5)


@machines
def test_03_scalar_functions_branch_loop_call_and_rebind(device):
    @pt.kernel(grid=1, block=1)
    def run(A: pt.Tensor((4, 1), pt.float32), Out: pt.Tensor((4, 1), pt.float32)):
        r = pt.alloc_local((4, 1), pt.float32)
        tile.apply("ld.global.f32", r, A)
        tile.ewise(sign_and_root, r.view(4), r.view(4))
        tile.apply("st.global.f32", Out, r)

    a = np.array([[1], [-2], [0], [4]], np.float32)
    out = np.zeros_like(a)
    run.launch(a, out, device=device)
    np.testing.assert_array_equal(out.ravel(), [1.5, 3, 0, 6])


@pytest.mark.parametrize("shift", [1, -1])
def test_04_a_shifted_or_broadcast_source_in_place(shift):
    def shifted(_):
        r = pt.alloc_local((5, 1), pt.float32)
        tile.apply("mov.b32", r[1:5], r[0:4]) if shift > 0 else tile.apply("mov.b32", r[0:4], r[1:5])

    def broadcast(_):
        r = pt.alloc_local((4, 1), pt.float32)
        tile.apply("add.rn.f32", r, r, r.view(4, 1, layout=S[(4, 1) : (0, 1)]))

    if shift < 0:  # reads what is still there
        assert len([line for line in lines(shifted) if line.startswith("mov")]) == 4
        return
    tail = "which repeat 0 has already overwritten; in place is fine only element by element: copy first, or go the other way"
    numbered = re.sub(r"%r\d+", "%r", message(failure(shifted)))
    assert numbered == f"mov.b32: repeat 1 reads a from %r, {tail}"
    numbered = re.sub(r"%r\d+", "%r", message(failure(broadcast)))
    assert numbered == f"add.rn.f32: repeat 1 reads b from %r, {tail}"


def test_05_stores_to_one_place():
    def body(k):
        r = pt.alloc_local((4, 1), pt.float32)
        tile.apply("st.global.f32", k.A.view(4, 1, layout=S[(4, 1) : (0, 1)]), r)

    assert message(failure(body, params={"A": pt.Tensor((4, 1), pt.float32)})) == (
        "st.global.f32: operand a: two elements of the destination are one place in memory, so the order of the stores would "
        "decide; a destination's layout must be injective (no zero strides)"
    )


def test_06_the_target_is_checked_before_any_assembler():
    @pt.kernel(grid=1, block=1)
    def pairs():
        r = pt.alloc_local((2, 1), pt.uint64)
        tile.apply("add.rn.f32x2", r, r, r)

    assert pairs.ptx().splitlines()[1] == ".target sm_100"
    with pytest.raises(pt.TargetError) as caught:
        pairs.ptx("sm_90")
    assert "add.rn.f32x2" in str(caught.value) and "sm_100" in str(caught.value)


def test_07_guards_prove_bounds_and_narrow_the_threads():
    def body(k):
        with pt.if_(pt.thread_idx("x") < 32):
            r = pt.alloc_local((1, 32, 1), pt.float32, layout=S[(1, 32, 1) : (1 @ warpid, 1 @ laneid, 1)])
            tile.apply("ld.global.f32", r, k.A.view(1, 32, 1), scope="cta")
        at = pt.block_idx("x") * 64 + pt.thread_idx("x")
        with pt.if_(at < 100):
            one = pt.alloc_local((1,), pt.float32)
            tile.apply("ld.global.f32", one, k.B[at : at + 1])

    params = {"A": pt.Tensor((32,), pt.float32), "B": pt.Tensor((100,), pt.float32)}
    assert sum(line.startswith("ld.global") for line in lines(body, 64, grid=2, params=params)) == 2


def test_08_a_predicate_for_each_repeat():
    def body(_):
        p, r = pt.alloc_local((3,), pt.bool_), pt.alloc_local((3, 1), pt.float32)
        tile.apply("neg.f32", r, r, pred=p)

    assert [line[:4] for line in lines(body) if "neg" in line] == ["@%p0", "@%p1", "@%p2"]


@machines
def test_09_the_old_value_of_a_16_bit_destination(device):
    @pt.kernel(grid=1, block=32)
    def run(A: pt.Tensor((32, 1), pt.float16), Out: pt.Tensor((32, 1), pt.float16)):
        r = pt.alloc_local((32, 1), pt.float16, layout=S[(32, 1) : (1 @ laneid, 1)])
        tile.apply("ld.global.b16", r, A, scope="warp")
        tile.apply("add.rn.f16", r, r, r, scope="warp", pred=pt.lane_id() < 5, preserve_dst=True)
        tile.apply("st.global.b16", Out, r, scope="warp")

    a = np.arange(32, dtype=np.float16).reshape(32, 1)
    out = np.zeros_like(a)
    run.launch(a, out, device=device)
    np.testing.assert_array_equal(out, np.where(np.arange(32)[:, None] < 5, a + a, a))


def test_10_a_missing_keyword_is_explained():
    def body(k):
        tile.apply("cp.async.ca.shared.global", pt.alloc_shared((4,), pt.float32), k.A)

    assert message(failure(body, params={"A": pt.Tensor((4,), pt.float32)})) == (
        "cp.async.ca.shared.global needs chunk_bytes=, the bytes of one copy: 4, 8 or 16"
    )


def test_11_constants_are_packed_by_type():
    def body(_):
        r = pt.alloc_local((1,), pt.uint32)
        tile.apply("add.rn.f16x2", r, r, pt.pack(2.0, 2.0, dtype=pt.float16))
        tile.apply("add.rn.bf16x2", r, r, pt.pack(1.0, 1.0, dtype=pt.bfloat16))

    found = [line for line in lines(body) if line.startswith("mov.b32")]
    assert [int(line.rpartition(" ")[2]) for line in found] == [0x40004000, 0x3F803F80]


def test_12_scalar_halves_as_halves():
    def body(_):
        for dtype, spelling in ((pt.float16, "add.rn.f16"), (pt.bfloat16, "add.rn.bf16")):
            r = pt.alloc_local((1,), dtype)
            tile.apply(spelling, r, r, r)

    assert [line for line in lines(body) if line.startswith("add")] == [
        "add.rn.f16 %rs0, %rs0, %rs0", "add.rn.bf16 %rs1, %rs1, %rs1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "spelling",
    ["rsqrt.approx.f32", "tanh.approx.f32", "sin.approx.f32", "cos.approx.f32", "and.b32", "shl.b32", "lop3.b32", "prmt.b32",
     "mad.lo.u32", "dp4a.u32.u32", "popc.b32", "copysign.f32", "setp.lt.f32", "selp.f32", "shfl.sync.bfly.b32",
     "redux.sync.add.u32", "vote.sync.ballot.b32", "match.any.sync.b32"],
)  # fmt: skip
def test_13_families_by_their_true_spelling(spelling):
    form = ptx[spelling]
    slots = form.signatures[0].operands
    dtypes = {".pred": pt.bool_, ".f32": pt.float32}

    def body(_):
        given = []
        for slot in slots:
            if not slot.register or (slot.name in ("membermask", "b", "c") and "shfl" in spelling):
                given.append(pt.uint32(0xFFFFFFFF) if slot.name == "membermask" else 3)
            else:
                given.append(pt.alloc_local((2, 1), dtypes.get(slot.type, pt.uint32)))
        tile.apply(form, *given)

    assert sum(line.startswith(spelling) for line in lines(body, 32)) == 2


@pt.function
def as_written(x: pt.float32) -> pt.float32:
    return x * pt.float32(2) + pt.float32(0)


def test_14_scalar_functions_are_ieee_as_written():
    def body(_):
        r = pt.alloc_local((1,), pt.float32)
        tile.ewise(as_written, r, r)

    found = [line.partition(" ")[0] for line in lines(body) if line.startswith(("mul", "add", "fma"))]
    assert found == ["mul.rn.f32", "add.rn.f32"]


def test_15_repeats_are_base_and_constant():
    def body(k):
        r = pt.alloc_local((32, 8, 1), pt.float32, layout=S[(32, 8, 1) : (1 @ laneid, 1, 1)])
        tile.apply("ld.global.f32", r, k.A, scope="warp")

    found = lines(body, 32, params={"A": pt.Tensor((32, 8, 1), pt.float32)})
    assert (
        len(
            {
                line.partition("[")[2].partition("+")[0].rstrip("]")
                for line in found
                if line.startswith("ld.global")
            }
        )
        == 1
    )
    assert sum(line.startswith(("mad", "add", "mul")) for line in found) == 1


def test_16_ptx_without_a_compiler():
    def body(k):
        r = pt.alloc_local((512, 1), pt.float32)
        tile.apply("fma.rn.f32", r, r, r, r)

    module(body)
    before = time.process_time()
    text = str(module(body))
    assert text.count("fma.rn.f32") == 512
    assert time.process_time() - before < 0.5  # the peer: 1.8 s to C++ source, more to PTX


@pt.kernel(grid=1, block=32)
def reversed_rows(A: pt.Tensor((32, 4, 1), pt.uint32), Out: pt.Tensor((32, 4, 1), pt.uint32)):
    kept = pt.alloc_stack((4,), pt.uint32)
    r = pt.alloc_local((32, 4, 1), pt.uint32, layout=S[(32, 4, 1) : (1 @ laneid, 1, 1)])
    tile.apply("ld.global.b32", r, A, scope="warp")
    own = r.view(4, 1, layout=S[4, 1])
    tile.apply("st.local.b32", kept.view(4, 1), own)
    with pt.for_range(pt.uint32(0), 4) as i:
        Out[pt.lane_id(), i, 0] = kept[3 - i]


@machines
def test_17_local_memory_is_addressed_in_its_own_space(device):
    a = np.arange(128, dtype=np.uint32).reshape(32, 4, 1)
    out = np.zeros_like(a)
    reversed_rows.launch(a, out, device=device)
    np.testing.assert_array_equal(out, a[:, ::-1])
    assert "cvta.local" not in reversed_rows.ptx()
    assert reversed_rows.ptx().count("st.local.b32") == 4


def test_17_local_memory_is_assembled():
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    assert reversed_rows.cubin("sm_90a")[:4] == b"\x7fELF"
    assert reversed_rows.cubin("sm_75")[:4] == b"\x7fELF"


@machines
def test_18_narrow_and_generic_loads(device):
    @pt.kernel(grid=1, block=1)
    def run(A: pt.Tensor((4, 1), pt.int8), Out: pt.Tensor((2, 4, 1), pt.int32)):
        wide = pt.alloc_local((4, 1), pt.int32)
        tile.apply("ld.global.s8", wide, A)
        tile.apply("st.global.s32", Out[0], wide)
        tile.apply("ld.s8", wide, A)
        tile.apply("st.s32", Out[1], wide)

    a = np.array([[-1], [2], [-128], [127]], np.int8)
    out = np.zeros((2, 4, 1), np.int32)
    run.launch(a, out, device=device)
    np.testing.assert_array_equal(out, [a, a])
