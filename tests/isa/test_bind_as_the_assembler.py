"""Operand lists that the assembler takes beside the manual's: vectors of mixed, longer or other elements, narrow addresses."""

from __future__ import annotations

import pytest

from ptxtile.errors import OperandError
from ptxtile.isa import Shape, bind, validate


def _vector(*elements: Shape) -> Shape:
    return ("{", *elements)


def _surface(coordinates: Shape) -> Shape:
    return ("[", "b64", coordinates)


RIGHT: list[tuple[str, tuple[Shape, ...]]] = [
    # one element of bit-size type: others of its width, and literals where the vector is read
    ("st.global.v2.f32", (("[", "b64"), _vector("b32", "u32"))),
    ("multimem.st.v2.bf16x2", (("[", "b64"), _vector("b32", "int"))),
    ("tcgen05.st.sync.aligned.32x32b.x2.b32", (("[", "b32"), _vector("b32", "int"))),
    # a narrow address register is extended
    ("ld.global.u32", ("b32", ("[", "u16"))),
    # one register, in braces all the same
    ("tcgen05.ld.sync.aligned.32x32b.x1.b32", (_vector("b32"), ("[", "b32"))),
    # coordinates in a longer vector, data in any that is as wide in all
    ("suld.b.2d.b32.trap", ("b32", _surface(_vector("s32", "s32", "s32", "s32")))),
    ("suld.b.1d.b64.trap", (_vector("b16", "b16", "b16", "b16"), _surface("s32"))),
    ("tex.1d.v4.f32.f32", (_vector("f32", "_", "_", "f32"), _surface(_vector("f32")))),
    # a vector of wider registers, of one width
    ("ld.v2.u16", (_vector("u64", "b64"), ("[", "b64"))),
    # any register type where the assembler does not look
    ("cp.async.bulk.prefetch.tensor.1d.L2.global.tile", (("[", "f32", _vector("s32")),)),
    ("shfl.sync.idx.b32", ("b32", "b32", "f32", "f32", "u32")),
    # conversions of bf16 take registers of the types' own widths, 8 bits among them
    ("cvt.rn.bf16.s8", ("b16", "b8")),
    ("cvt.rzi.u8.bf16", ("u8", "b16")),
    ("cvt.rn.relu.f16.f32", ("b32", "b64")),
    # a vector and a predicate
    ("tex.1d.v4.f32.f32", (("|", _vector("f32", "f32", "f32", "f32"), "pred"), _surface(_vector("f32")))),
    # parts of registers
    ("vadd.s32.u32.u32.sat", ((".", "b0", "b32"), (".", "h1", "b32"), "b32", "b32")),
    ("vadd4.s32.u32.u32", ("b32", (".", "b7654", "b32"), "b32", "b32")),
]

WRONG: list[tuple[str, tuple[Shape, ...]]] = [
    ("st.global.v2.f32", (("[", "b64"), _vector("f32", "u32"))),
    ("multimem.st.v2.bf16x2", (("[", "b64"), _vector("int", "int"))),
    ("tcgen05.st.sync.aligned.32x32b.x2.b32", (("[", "b32"), _vector("b32", "pred"))),
    ("tcgen05.st.sync.aligned.32x32b.x2.b32", (("[", "b32"), _vector("int", "int"))),
    ("tcgen05.ld.sync.aligned.32x32b.x1.b32", ("b32", ("[", "b32"))),
    ("tcgen05.mma.cta_group::1.kind::f16", (("[", "u32"), "b64", "b64", "b32", "pred")),
    ("multimem.red.add.u32", (("[", "b32"), "b32")),
    ("tex.2d.v4.f32.f32", (_vector("f32", "f32", "f32", "f32"), ("[", "b32", _vector("f32", "f32")))),
    ("suld.b.3d.b32.trap", ("b32", _surface(_vector("s32", "s32")))),
    ("suld.b.1d.b64.trap", (_vector("b16", "b16"), _surface("s32"))),
    ("sust.b.1d.v2.b8.zero", (_surface("s32"), _vector("b64"))),
    ("vadd.s32.u32.u32", ("b32", (".", "h2", "b32"), "b32")),
    ("ld.v2.u16", (_vector("u16", "u32"), ("[", "b64"))),
    ("st.v4.f32", (("[", "b64"), _vector("f32", "f32", "b64", "f32"))),
    ("red.global.add.noftz.v2.bf16x2", (("[", "b64"), _vector("int", "b32"))),
    ("suld.b.1d.b32.trap", ("b32", _surface("int"))),
    ("shfl.sync.idx.b32", ("b32", "b32", "b32", "b32", "f32")),
    ("redux.sync.and.b32", ("f32", "b32", "b32")),
    ("ld.global.L2::cache_hint.u32", ("b32", ("[", "b64"), "f64")),
    ("mbarrier.arrive.b64", ("f64", ("[", "b64"))),
    ("cvt.rn.bf16.s16", ("b16", "b32")),
    ("cvt.rzi.u32.bf16", ("b64", "b16")),
    ("setp.eq.and.bf16", ("pred", "b16", "b16", "int")),
    ("ldmatrix.sync.aligned.m8n8.x1.b16", (_vector("b32"), ("[", "b16"))),
    (
        "mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
        (
            _vector("b32", "b32"),
            _vector("b32", "b32"),
            _vector("b32", "b32"),
            _vector("b32", "b32"),
            "int",
            "int",
        ),
    ),
    ("vadd2.s32.u32.u32", ("b32", (".", "h14", "b32"), "b32", "b32")),
    ("vadd2.s32.u32.u32", ("b32", "b32", "int", "b32")),
]


@pytest.mark.parametrize(("spelling", "shapes"), RIGHT)
def test_taken(spelling: str, shapes: tuple[Shape, ...]) -> None:
    assert bind(validate(spelling), shapes) in validate(spelling).signatures


@pytest.mark.parametrize(("spelling", "shapes"), WRONG)
def test_refused(spelling: str, shapes: tuple[Shape, ...]) -> None:
    with pytest.raises(OperandError):
        bind(validate(spelling), shapes)
