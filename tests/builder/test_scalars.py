"""Variables, selection, thread indices, assumptions: text, values, what the prover learns, and the messages."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtile as pt
from builder.running import failure, instructions, run, spellings
from ptxtile import tracing
from ptxtile.builder.trace import Launch, Trace


def test_selection() -> None:
    assert instructions(lambda p, a: pt.select(p, a, 1), pt.bool_, pt.float32) == [
        "selp.f32 %f1, %f0, 0f3F800000, %p0"
    ]
    assert spellings(lambda p, a: pt.select(p, a, a), pt.bool_, pt.float16) == ["selp.b16"]
    assert spellings(lambda p, q: pt.select(p, q, p), pt.bool_, pt.bool_) == [
        "and.pred", "not.pred", "and.pred", "or.pred",
    ]  # fmt: skip
    assert spellings(lambda a: pt.select(pt.bool_(True), a, 1), pt.int32) == []


def test_extremes_and_fma() -> None:
    assert spellings(lambda a: pt.minimum(a, 3), pt.int32) == ["min.s32"]
    assert spellings(lambda a: pt.maximum(3, a), pt.float32) == ["max.f32"]
    assert spellings(pt.minimum, pt.bfloat16, pt.bfloat16) == ["min.bf16"]
    assert spellings(lambda a: pt.fma(a, 2, a), pt.float32) == ["fma.rn.f32"]
    assert spellings(lambda a: pt.fma(a, 2, a), pt.uint64) == ["mad.lo.u64"]
    a, b = np.array([1, np.nan, -0.0, 5], np.float32), np.array([2, 3, 0.0, np.nan], np.float32)
    assert np.array_equal(run(pt.minimum, a, b), [1, 3, -0.0, 5])


def test_variables() -> None:
    assert instructions(lambda a: pt.reg(pt.float32, a), pt.float32) == ["mov.f32 %f1, %f0"]
    assert instructions(lambda: pt.reg(pt.bool_, False)) == ["setp.eq.b32 %p0, 0, 1"]
    assert instructions(lambda: pt.reg(pt.float64)) == []


@pytest.mark.parametrize(
    ("block", "expected"),
    [((64, 1, 1), "tid.x"), ((8, 4, 1), "y*8+x"), ((4, 3, 5), "z*3+y)*4+x"), ((1, 1, 32), "tid.z")],
)
def test_ranks_follow_the_block(block: tuple[int, int, int], expected: str) -> None:
    x, y, z = block
    builder = pt.ModuleBuilder()
    with builder.entry("k", {"Out": pt.Tensor((2, x * y * z), pt.uint32)}, block=block) as k:
        rank = pt.thread_idx("x") + x * (pt.thread_idx("y") + y * pt.thread_idx("z"))
        k.Out[0, rank] = pt.warp_id()
        k.Out[1, rank] = pt.lane_id()
    out = np.zeros((2, x * y * z), np.uint32)
    pt.emulator.launch(builder.module(), "k", 1, block, [out])
    assert np.array_equal(out[0], np.arange(x * y * z) // 32), expected
    assert np.array_equal(out[1], np.arange(x * y * z) % 32)


def test_indices_have_ranges_and_known_dimensions_are_constants() -> None:
    trace = Trace("k", Launch(grid=(7, None, 1), block=(64, 2, 1), cluster=(2, 1, 1)))
    with tracing.use(trace):
        assert pt.thread_idx("x").extent.bounds() == (0, 63)
        assert pt.block_idx("x").extent.bounds() == (0, 6)
        assert pt.block_idx("y").extent.bounds() == (0, 65534)
        assert repr(pt.block_dim("y")) == "pt.uint32(2)"
        assert repr(pt.grid_dim("x")) == "pt.uint32(7)"
        assert pt.grid_dim("y").extent.bounds() == (1, 65535)
        assert pt.warp_id().extent.bounds() == (0, 3)
        assert pt.lane_id().extent.bounds() == (0, 31)
        assert pt.cluster_rank().extent.bounds() == (0, 1)
        assert repr(pt.cluster_size()) == "pt.uint32(2)"
        assert (pt.thread_idx("x") // 4).extent.bounds() == (0, 15)
        assert pt.thread_idx("x") is pt.thread_idx("x")
        assert pt.cast(pt.thread_idx("x"), pt.int32).extent == pt.thread_idx("x").extent
        assert pt.cast(pt.block_idx("y"), pt.int16).extent is None
        assert pt.minimum(pt.thread_idx("x"), 9).extent.bounds() == (0, 9)
        assert pt.maximum(pt.thread_idx("x"), 9).extent.bounds() == (9, 63)


def test_synchronization_traps_and_assumptions() -> None:
    assert instructions(pt.cta_sync) == ["bar.sync 0"]
    assert instructions(lambda a: pt.trap_if(a < 0), pt.int32) == ["setp.lt.s32 %p0, %r0, 0", "@%p0 trap"]
    assert instructions(lambda a: pt.assume(a >= 0), pt.int32) == ["setp.ge.s32 %p0, %r0, 0", "$assume_1_p0:"]
    assert instructions(lambda: pt.assume(pt.int32(3) < 4)) == []


def test_a_trap_stops_the_emulator() -> None:
    def body(a: pt.int32) -> pt.int32:
        pt.trap_if(a == 3)
        return a

    assert np.array_equal(run(body, np.array([1, 2], np.int32)), [1, 2])
    with pytest.raises(pt.EmulatorError) as caught:
        run(body, np.array([1, 3], np.int32))
    assert caught.value.kind == "trap"


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("pt.reg(3)", "OperandError", "pt.reg takes a dtype such as pt.float32, not 3"),
        (
            "pt.reg(pt.int32, 2.5)",
            "OperandError",
            ("pt.reg(pt.int32, …): 2.5 is a float and the other side is int32"),
        ),
        (
            "pt.select(a < 1, a, pt.int32(1))",
            "OperandError",
            (
                "pt.select: float32 and int32 never mix; convert one side with pt.cast(value, "
                "pt.float32) or pt.cast(value, pt.int32)"
            ),
        ),
        (
            "pt.minimum(1, 2)",
            "OperandError",
            (
                "pt.minimum: no operand has a dtype, so it is not known which instruction is meant; "
                "write pt.float32(…)"
            ),
        ),
        (
            "pt.minimum(pt.cast(a, pt.int8), 2)",
            "TraceError",
            ("pt.minimum: PTX has no min for int8; convert with pt.cast first"),
        ),
        (
            "pt.fma(pt.cast(a, pt.int8), 2, 2)",
            "TraceError",
            "pt.fma: PTX has none for int8; convert with pt.cast first",
        ),
    ],
)
def test_messages(source: str, kind: str, message: str) -> None:
    error = failure(lambda a: eval(source, {"pt": pt, "a": a}), pt.float32)
    assert type(error).__name__ == kind
    assert str(error) == message + "\n  <string>:1"


def test_an_unknown_axis() -> None:
    error = failure(lambda: eval("pt.thread_idx('w')"))
    assert str(error) == 'pt.thread_idx takes "x", "y" or "z", not \'w\'\n  <string>:1'
