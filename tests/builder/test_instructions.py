"""Raw instructions: operands as written, what they return, what they refuse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tile.running import assembles, failure, lines, machines, message

import ptxtile as pt
from ptxtile import OperandError, TraceError, ptx

PARAMS = {
    "A": pt.Tensor((64, 4), pt.float32),
    "P": pt.Pointer(pt.float32),
    "n": pt.uint32,
    "i": pt.int32,
    "w": pt.uint64,
    "x": pt.float32,
    "h": pt.float16,
}


def text(body: Callable[..., object]) -> list[str]:
    return lines(body, params=PARAMS)


# --- destinations ---------------------------------------------------------------------------------------------------
def test_the_destination_may_be_left_out():
    kinds = []

    def body(k):
        made = ptx.add.f32(k.x, 1.0)
        kinds.append(type(made))
        kinds.append(type(ptx["setp.lt.f32"](made, k.x)))
        kinds.append(type(ptx["mul.wide.u32"](k.n, 3)))
        kinds.append(type(ptx["add.rn.f16x2"](k.n, k.n)))
        kinds.append(type(ptx["cvt.rn.f16.f32"](made)))
        kinds.append(type(ptx["mul.wide.s32"](k.i, k.i)))

    assert text(body) == [
        "add.f32 %f1, %f0, 0f3F800000",
        "setp.lt.f32 %p0, %f1, %f0",
        "mul.wide.u32 %rd5, %r0, 3",
        "add.rn.f16x2 %r2, %r0, %r0",
        "cvt.rn.f16.f32 %rs1, %f1",
        "mul.wide.s32 %rd6, %r1, %r1",
    ]
    assert kinds == [pt.float32, pt.bool_, pt.uint64, pt.uint32, pt.float16, pt.int64]


def test_the_destination_is_returned():
    def body(k):
        d, p, q = pt.reg(pt.float32), pt.reg(pt.bool_), pt.reg(pt.bool_)
        assert ptx.add.f32(d, k.x, k.x) is d
        assert ptx.add.f32(d, k.x, k.x) is d  # the second time by the short way
        pair = (p, q)
        assert ptx["setp.lt.f32"](pair, d, k.x) is pair
        assert ptx.st.global_.f32(k.P, d) is None
        assert ptx.bar.sync(0) is None

    assert len(text(body)) == 5


def test_the_short_way_gives_the_same_instructions():
    def body(k, again):
        d, e, p = pt.reg(pt.float32), pt.reg(pt.float32), pt.reg(pt.bool_)
        for _ in range(2):
            for pred in (None, p) if again else (p, None):
                ptx.fma.rn.f32(d, e, k.x, d, pred=pred)
                ptx["setp.lt.f32"](p, d, e, pred=pred)
                ptx.ld.global_.f32(d, k.w, pred=pred)
                ptx.st.global_.f32(k.w, d, pred=pred)
        return d

    first, second = text(lambda k: body(k, True)), text(lambda k: body(k, False))
    assert sorted(first) == sorted(second)
    assert first[:4] == [
        "fma.rn.f32 %f1, %f2, %f0, %f1",
        "setp.lt.f32 %p0, %f1, %f2",
        "ld.global.f32 %f1, [%rd4]",
        "st.global.f32 [%rd4], %f1",
    ]
    assert first[4:8] == [f"@%p0 {line}" for line in first[:4]]
    assert first[8:] == first[:8]


def test_pairs_vectors_and_sinks():
    def body(k):
        p, q, a, b = pt.reg(pt.bool_), pt.reg(pt.bool_), pt.reg(pt.float32), pt.reg(pt.float32)
        lo, hi = pt.reg(pt.uint32), pt.reg(pt.uint32)
        ptx["setp.lt.and.f32"]((p, q), k.x, 1.0, p)
        ptx["setp.lt.f32"]((p, None), k.x, 1.0)
        ptx["ld.global.v2.f32"]((a, b), k.A)
        ptx["ld.global.v2.f32"]((a, None), k.A[2])
        ptx["st.global.v2.f32"](k.A[3], (a, 1.0))
        ptx.mov.b64((lo, hi), k.w)
        ptx.mov.b64((lo, hi))

    assert text(body) == [
        "setp.lt.and.f32 %p0|%p1, %f0, 0f3F800000, %p0",
        "setp.lt.f32 %p0|_, %f0, 0f3F800000",
        "ld.global.v2.f32 {%f1, %f2}, [%rd1]",
        "ld.global.v2.f32 {%f1, _}, [%rd1+32]",
        "st.global.v2.f32 [%rd1+48], {%f1, 0f3F800000}",
        "mov.b64 {%r2, %r3}, %rd4",
        "mov.b64 %rd5, {%r2, %r3}",
    ]


@machines
def test_addresses_of_every_kind(device):
    """A tensor, a region, a pointer, a 64-bit number, and generic addresses of shared memory."""

    @pt.kernel(grid=1, block=1)
    def loads(A: pt.Tensor((4, 4), pt.uint32), P: pt.Pointer(pt.uint32), Out: pt.Tensor((6,), pt.uint32)):
        sh = pt.alloc_shared((4,), pt.uint32)
        ptx.st.shared.u32(sh[2:3], 77)
        base = ptx.cvta.to.global_.u64(ptx.cvta.global_.u64(address := _base(P)))
        Out[0] = ptx.ld.global_.u32(A)
        Out[1] = ptx.ld.global_.u32(A[1, 1:3])
        Out[2] = ptx.ld.global_.u32(P)
        Out[3] = ptx.ld.global_.u32(base)
        Out[4] = ptx.ld.u32(sh[2:3])
        Out[5] = ptx.ld.u32(A[3])
        assert address is not None

    a, out = np.arange(16, dtype=np.uint32).reshape(4, 4) + 5, np.zeros(6, np.uint32)
    loads.launch(a, a[2:].copy(), out, device=device)
    np.testing.assert_array_equal(out, [5, 10, 13, 13, 77, 17])
    assembles(loads)


def _base(pointer: pt.Pointer) -> pt.uint64:
    """The pointer as a number: what `lea` is elsewhere."""
    made = pt.reg(pt.uint64)
    made.operand = pointer.memory.base  # type: ignore[union-attr]
    return made  # type: ignore[return-value]


def test_constants_where_only_registers_stand():
    def body(k):
        d, p = pt.reg(pt.float16), pt.reg(pt.bool_)
        ptx.add.f16(d, d, 1.5)
        ptx["fma.rn.bf16"](pt.reg(pt.bfloat16), pt.bfloat16(1), 2.0, pt.reg(pt.bfloat16))
        ptx["and.pred"](p, p, pt.bool_(True))
        ptx["add.rn.f32x2"](pt.reg(pt.uint64), k.w, pt.uint64(1))

    assert text(body) == [
        "mov.b16 %rs2, 15872",
        "add.f16 %rs1, %rs1, %rs2",
        "mov.b16 %rs5, 16256",
        "mov.b16 %rs6, 16384",
        "fma.rn.bf16 %rs3, %rs5, %rs6, %rs4",
        "and.pred %p0, %p0, 1",
        "mov.b64 %rd6, 1",
        "add.rn.f32x2 %rd5, %rd4, %rd6",
    ]


@machines
def test_guards_and_branches(device):
    @pt.kernel(grid=1, block=32)
    def collatz(A: pt.Tensor((32,), pt.uint32)):
        t = pt.thread_idx("x")
        n, steps = pt.reg(pt.uint32, A[t]), pt.reg(pt.uint32, 0)
        pt.label("again")
        ptx.bra("done", pred=n <= 1)
        odd = (n & 1) == 1
        ptx["mad.lo.u32"](n, n, 3, 1, pred=odd)
        ptx["shr.u32"](n, n, 1, pred=~odd)
        steps += 1
        ptx.bra("again")
        pt.label("done")
        A[t] = steps

    def reference(n: int) -> int:
        return 0 if n <= 1 else 1 + reference(3 * n + 1 if n % 2 else n // 2)

    a = np.arange(32, dtype=np.uint32)
    collatz.launch(a, device=device)
    np.testing.assert_array_equal(a, [reference(n) for n in range(32)])
    assembles(collatz)


# --- what is refused ------------------------------------------------------------------------------------------------
REFUSED = [
    (lambda k: ptx.add.f32(k.n, k.x), OperandError, "add.f32: operand a takes .f32, not a run-time uint32"),
    (lambda k: ptx.add.f32(k.x), OperandError, "add.f32 takes d, a, b; 1 was given"),
    (lambda k: ptx.add.f32(), OperandError, "add.f32 takes d, a, b; 0 were given"),
    (lambda k: ptx.add.f32(k.x + 1, k.x, k.x), OperandError, "add.f32: operand d: a destination must be a variable, and this float32 is a value; make one with pt.reg(pt.float32)"),
    (lambda k: ptx.add.f32(pt.float32(1), k.x, k.x), OperandError, "add.f32: operand d: a destination must be a variable, and this is a constant; make one with pt.reg(pt.float32)"),
    (lambda k: ptx.add.f32(k.x, k.x, pred=k.n < 3), OperandError, "add.f32: name the destination with dst=: with pred= its old value matters"),
    (lambda k: ptx.add.f32(pt.reg(pt.float32), k.x, k.x, pred=k.n), OperandError, "add.f32: pred= takes a run-time bool_, such as a comparison gives, not a run-time uint32"),
    (lambda k: ptx.add.f32(pt.reg(pt.float32), k.x, k.x, pred=True), OperandError, "add.f32: pred= takes a run-time bool_, such as a comparison gives, not True"),
    (lambda k: ptx.add.u32(k.n, 2.0), OperandError, "add.u32: operand b takes .u32, not 2.0: 2.0 is no integer"),
    (lambda k: ptx.add.u32(k.n, 1 << 32), OperandError, "add.u32: operand b takes .u32, not 4294967296: 4294967296 does not fit 32 bits"),
    (lambda k: ptx.add.f32(k.x, k.A), OperandError, "add.f32: operand b takes .f32, not a Tensor"),
    (lambda k: ptx["add.rn.f16x2"](k.n, 2.0), OperandError, "add.rn.f16x2: operand b takes .f16x2 packed in a uint32, not 2.0: a plain number holds one value: pack it, pt.pack(2.0, …, dtype=…)"),
    (lambda k: ptx.ld.shared.f32(k.P), OperandError, "ld.shared.f32: operand a: the instruction addresses .shared memory, and pt.Pointer(pt.float32) points to global memory"),
    (lambda k: ptx.ld.shared.f32(k.A), OperandError, "ld.shared.f32: operand a: the instruction addresses .shared memory, and pt.Tensor((64, 4), pt.float32, TileLayout(S[64, 4])) is in global memory"),
    (lambda k: ptx.ld.global_.f32(pt.alloc_local((4,), pt.float32)), OperandError, "ld.global.f32: operand a: the instruction addresses .global memory, and pt.Tensor((4,), pt.float32, TileLayout(S[4])) is in registers"),
    (lambda k: ptx.ld.global_.f32(k.n), OperandError, "ld.global.f32: operand a takes an address in .global, not a run-time uint32: an address here has 64 bits"),
    (lambda k: ptx.ld.global_.f32(k.x), OperandError, "ld.global.f32: operand a takes an address in .global, not a run-time float32: an address is an integer of 64 bits (32 in shared and local memory)"),
    (lambda k: ptx.ld.global_.f32(pt.uint64(4096)), OperandError, "ld.global.f32: operand a takes an address in .global, not pt.uint64(4096): an address is a run-time value"),
    (lambda k: ptx["ld.global.v4.f32"]((pt.reg(pt.float32),) * 2, k.A), OperandError, "ld.global.v4.f32: operand d takes a tuple of 4 values of type .f32, not a tuple of 2"),
    (lambda k: ptx.bra(3), OperandError, "bra: operand tgt takes a label, not 3"),
    (lambda k: ptx["bar.red.popc.u32"](pt.reg(pt.uint32), 0, k.n < 3), OperandError, "bar.red.popc.u32: name the destination with dst=: its operands fit with and without one in front"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "kind", "expected"), REFUSED)
def test_refused(body, kind, expected):
    error = failure(body, params=PARAMS)
    assert type(error) is kind
    assert message(error, __file__) == expected


def test_a_value_of_a_closed_block():
    def body(k, times):
        d = pt.reg(pt.float32)
        for _ in range(times):
            ptx.add.f32(d, k.x, k.x)
        with pt.if_(k.n < 3):
            y = k.x + 1
        ptx.add.f32(d, y, y)

    for times in (0, 2):
        error = failure(lambda k, times=times: body(k, times), params=PARAMS)
        assert isinstance(error, TraceError)
        assert message(error) == (
            "add.f32: this float32 was made inside a pt.if_ block that has ended, so it may never have been computed; declare "
            "a variable with pt.reg(pt.float32) before the block and write it inside with .set(…)"
        )


def test_outside_a_trace():
    with pytest.raises(TraceError) as caught:
        ptx["add.f32"](1.0, 2.0)
    assert str(caught.value) == (
        "add.f32 was called outside a trace: forms and run-time operations only have a meaning while a @pt.kernel is traced "
        "or inside a ModuleBuilder entry"
    )


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            lambda k: ptx["setmaxnreg.inc.sync.aligned.u32"](7),
            "setmaxnreg.inc.sync.aligned.u32: operand 1 (imm_reg_count) is 7, but must be 24 to 256",
        ),
        (
            lambda k: ptx["setmaxnreg.inc.sync.aligned.u32"](25),
            "setmaxnreg.inc.sync.aligned.u32: operand 1 (imm_reg_count) is 25, but must be a multiple of 8",
        ),
    ],
)
def test_integers_that_the_instruction_has_no_room_for(body, text):
    assert message(failure(body, params=PARAMS), __file__) == text
