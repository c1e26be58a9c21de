"""Operators on run-time values: the sequence of each, what it computes, and the messages where there is none."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest

import ptxtile as pt
from builder.running import failure, instructions, run, spellings, text

FLOATS = (pt.float16, pt.bfloat16, pt.float32, pt.float64)
SIGNED = (pt.int16, pt.int32, pt.int64)
UNSIGNED = (pt.uint16, pt.uint32, pt.uint64)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_float_arithmetic_is_one_rounded_instruction(dtype: pt.DType, name: str) -> None:
    assert spellings(getattr(operator, name), dtype, dtype) == [f"{name}.rn{dtype.ptx}"]


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_integer_operators_are_one_instruction(dtype: pt.DType) -> None:
    width = dtype.bits
    table: dict[Callable[..., object], str] = {
        operator.add: f"add{dtype.ptx}",
        operator.sub: f"sub{dtype.ptx}",
        operator.mul: f"mul.lo{dtype.ptx}",
        operator.and_: f"and.b{width}",
        operator.or_: f"or.b{width}",
        operator.xor: f"xor.b{width}",
        operator.lt: f"setp.lt{dtype.ptx}",
        operator.le: f"setp.le{dtype.ptx}",
        operator.gt: f"setp.gt{dtype.ptx}",
        operator.ge: f"setp.ge{dtype.ptx}",
        operator.eq: f"setp.eq{dtype.ptx}",
        operator.ne: f"setp.ne{dtype.ptx}",
    }
    for function, spelling in table.items():
        assert spellings(function, dtype, dtype) == [spelling]
    assert spellings(operator.lshift, dtype, pt.uint32) == [f"shl.b{width}"]
    assert spellings(operator.rshift, dtype, pt.uint32) == [f"shr{dtype.ptx}"]
    assert spellings(operator.invert, dtype) == [f"not.b{width}"]


def test_the_rest_of_the_table() -> None:
    assert spellings(operator.truediv, pt.float32, pt.float32) == ["div.rn.f32"]
    assert spellings(operator.truediv, pt.float64, pt.float64) == ["div.rn.f64"]
    assert spellings(operator.neg, pt.float16) == ["neg.f16"]
    assert spellings(abs, pt.bfloat16) == ["abs.bf16"]
    assert spellings(operator.neg, pt.int64) == ["neg.s64"]
    assert spellings(abs, pt.int16) == ["abs.s16"]
    assert spellings(operator.floordiv, pt.uint32, pt.uint32) == ["div.u32"]
    assert spellings(operator.mod, pt.uint64, pt.uint64) == ["rem.u64"]
    assert spellings(operator.ne, pt.float32, pt.float32) == ["setp.neu.f32"]
    assert spellings(operator.eq, pt.float32, pt.float32) == ["setp.eq.f32"]
    for name, spelling in (("and_", "and.pred"), ("or_", "or.pred"), ("xor", "xor.pred")):
        assert spellings(getattr(operator, name), pt.bool_, pt.bool_) == [spelling]
    assert spellings(operator.invert, pt.bool_) == ["not.pred"]
    assert spellings(operator.eq, pt.bool_, pt.bool_) == ["xor.pred", "not.pred"]


def test_signed_division_is_the_documented_sequence() -> None:
    assert instructions(lambda a, b: a // b, pt.int32, pt.int32) == [
        "rem.s32 %r3, %r0, %r1",
        "xor.b32 %r4, %r3, %r1",
        "setp.ne.s32 %p0, %r3, 0",
        "setp.lt.and.s32 %p1, %r4, 0, %p0",
        "div.s32 %r6, %r0, %r1",
        "selp.b32 %r5, -1, 0, %p1",
        "add.s32 %r2, %r6, %r5",
    ]
    assert instructions(lambda a, b: a % b, pt.int32, pt.int32) == [
        "rem.s32 %r3, %r0, %r1",
        "xor.b32 %r4, %r3, %r1",
        "setp.ne.s32 %p0, %r3, 0",
        "setp.lt.and.s32 %p1, %r4, 0, %p0",
        "selp.b32 %r5, %r1, 0, %p1",
        "add.s32 %r2, %r3, %r5",
    ]
    assert instructions(lambda a: a // 8, pt.int32) == ["shr.s32 %r1, %r0, 3"]
    assert instructions(lambda a: a % 8, pt.int32) == ["and.b32 %r1, %r0, 7"]


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
def test_division_rounds_down(dtype: type[np.signedinteger]) -> None:
    info = np.iinfo(dtype)
    edges = [info.min, info.min + 1, -9, -8, -7, -1, 0, 1, 2, 7, 8, 9, info.max - 1, info.max]
    a, b = (np.array(side, dtype) for side in zip(*[(x, y) for x in edges for y in edges if y]))
    with np.errstate(all="ignore"):
        assert np.array_equal(run(lambda x, y: x // y, a, b), np.floor_divide(a, b))
        assert np.array_equal(run(lambda x, y: x % y, a, b), np.mod(a, b))
        for divisor in (1, 2, 7, 8, -1, -3, -8):
            assert np.array_equal(run(lambda x, d=divisor: x // d, a), a // dtype(divisor))
            assert np.array_equal(run(lambda x, d=divisor: x % d, a), a % dtype(divisor))


def test_float_operators_compute_what_numpy_does() -> None:
    rng = np.random.default_rng(1)
    for dtype in (np.float16, np.float32, np.float64):
        a, b = (rng.standard_normal(256).astype(dtype) for _ in range(2))
        for function in (operator.add, operator.sub, operator.mul):
            assert np.array_equal(run(function, a, b), function(a, b))
        assert np.array_equal(run(lambda x: -abs(x), a), -abs(a))
    assert np.array_equal(run(operator.truediv, a, b), a / b)


def test_multiply_and_add_are_not_contracted() -> None:
    one = np.full(4, 1 + 2.0**-12, np.float32)
    assert np.array_equal(run(lambda a: a * a - (1 + 2.0**-11), one), one * one - np.float32(1 + 2.0**-11))
    assert run(lambda a: pt.fma(a, a, -(1 + 2.0**-11)), one)[0] == np.float32(2.0**-24)


def test_a_nan_is_unequal_to_itself() -> None:
    a = np.array([np.nan, 1, np.inf], np.float32)
    assert np.array_equal(run(lambda x: pt.cast(x != x, pt.int32), a, result=pt.int32), [1, 0, 0])
    assert np.array_equal(run(lambda x: pt.cast(x == x, pt.int32), a, result=pt.int32), [0, 1, 1])


def test_shift_counts_are_clamped_as_python_shifts() -> None:
    a = np.array([-5, 7, 1 << 30, -(1 << 31)], np.int32)
    for count in (0, 1, 31, 32, 40):
        wide = a.astype(np.int64)
        expected = (wide << min(count, 32)).astype(np.int32)
        assert np.array_equal(run(lambda x, n=count: x << n, a), expected)
        assert np.array_equal(run(lambda x, n=count: x >> n, a), wide >> count)


def test_variables_are_written_in_place() -> None:
    def body(x: pt.float32) -> None:
        total = pt.reg(pt.float32, 1)
        same = total
        total += x
        total *= 2
        assert total is same

    assert instructions(body, pt.float32) == [
        "mov.f32 %f1, 0f3F800000",
        "add.rn.f32 %f1, %f1, %f0",
        "mul.rn.f32 %f1, %f1, 0f40000000",
    ]


def test_constants_are_computed_on_the_host() -> None:
    def body() -> None:
        assert repr(pt.float32(1) / pt.float32(3)) == "pt.float32(0.3333333432674408)"
        assert repr(pt.int32(7) // -2) == "pt.int32(-4)"
        assert repr(pt.uint32(1) - 2) == "pt.uint32(4294967295)"
        assert repr(pt.int32(2**31 - 1) + 1) == "pt.int32(-2147483648)"
        assert repr(pt.bfloat16(1) + 2.0**-8) == "pt.bfloat16(1.0)"
        assert repr(pt.float32(1) < 2) == "pt.bool_(True)"
        assert repr(~pt.bool_(True)) == "pt.bool_(False)"

    assert instructions(body) == []


def test_a_half_constant_goes_through_a_register() -> None:
    assert instructions(lambda h: h + 1, pt.float16) == ["mov.b16 %rs1, 15360", "add.rn.f16 %rs2, %rs0, %rs1"]


def test_a_constant_side_of_a_predicate_is_simplified() -> None:
    assert instructions(lambda p: p & True, pt.bool_) == []
    assert instructions(lambda p: p ^ True, pt.bool_) == ["not.pred %p1, %p0"]


HERE = "\n  <string>:1"


@pytest.mark.parametrize(
    ("source", "dtypes", "kind", "message"),
    [
        (
            "a + b",
            "float32 int32",
            "OperandError",
            (
                "float32 + int32: float32 and int32 never mix; convert one side with pt.cast(value, "
                "pt.float32) or pt.cast(value, pt.int32)"
            ),
        ),
        ("a + 2.5", "int32", "OperandError", "int32 + 2.5: 2.5 is a float and the other side is int32"),
        (
            "a + -1",
            "uint32",
            "OperandError",
            ("uint32 + -1: -1 does not fit pt.uint32, which holds 0 to 4294967295"),
        ),
        (
            "a / 2",
            "int32",
            "TraceError",
            (
                "int32 has no operator /, because PTX has no instruction for it: write // for the floor "
                "of the quotient, or pt.cast(value, pt.float32)"
            ),
        ),
        (
            "a / 2",
            "float16",
            "TraceError",
            (
                "float16 has no operator /, because PTX has no instruction for it: divide in float32, "
                "with pt.cast(value, pt.float32)"
            ),
        ),
        (
            "a // 2",
            "float32",
            "TraceError",
            ("float32 has no operator //, because PTX has no instruction for it: write pt.floor(a / b)"),
        ),
        (
            "a % 2",
            "float32",
            "TraceError",
            ("float32 has no operator %, because PTX has no instruction for it: write pt.fmod(a, b)"),
        ),
        (
            "-a",
            "uint32",
            "TraceError",
            (
                "uint32 has no operator -, because PTX has no instruction for it: write 0 - value, which "
                "wraps, or pt.cast(value, pt.int32)"
            ),
        ),
        (
            "abs(a)",
            "uint32",
            "TraceError",
            (
                "uint32 has no operator abs(), because PTX has no instruction for it: an unsigned value "
                "is its own magnitude"
            ),
        ),
        (
            "a < b",
            "bool_ bool_",
            "TraceError",
            (
                "bool_ has no operator <, because PTX has no instruction for it: a predicate has & | ^ ~ "
                "== != only; pt.select(p, a, b) makes a number of it"
            ),
        ),
        (
            "a + 1",
            "int8",
            "TraceError",
            (
                "int8 has no operator +, because PTX has no instruction for it: convert with "
                "pt.cast(value, pt.int32)"
            ),
        ),
        (
            "a & 1",
            "float32",
            "TraceError",
            (
                "float32 has no operator &, because PTX has no instruction for it: pt.bitcast(value, "
                "pt.uint32) gives its bits as an integer"
            ),
        ),
        ("a << -1", "int32", "OperandError", "int32 << -1: a negative shift count"),
        (
            "a << b",
            "uint32 uint64",
            "OperandError",
            ("uint32 << uint64: the count of a shift is a uint32; write pt.cast(count, pt.uint32)"),
        ),
        ("a // 0", "int32", "OperandError", "int32 // 0: division by the constant 0"),
        (
            "a.set(1)",
            "int32",
            "TraceError",
            ("int32.set(): this is a value, which never changes; make a variable with pt.reg(pt.int32)"),
        ),
        (
            "pt.int32(1).set(2)",
            "int32",
            "TraceError",
            ("int32.set(): this is a constant, which never changes; make a variable with pt.reg(pt.int32)"),
        ),
        (
            "pt.reg(pt.int32).set(2.5)",
            "int32",
            "OperandError",
            "int32.set(): 2.5 is a float and the other side is int32",
        ),
        (
            "pt.reg(pt.int32).set(pt.int64(2))",
            "int32",
            "OperandError",
            (
                "int32.set(): int32 is wanted and this is int64; nothing is converted silently: write "
                "pt.cast(value, pt.int32)"
            ),
        ),
    ],
)
def test_messages(source: str, dtypes: str, kind: str, message: str) -> None:
    error = failure(
        lambda *values: eval(source, {"pt": pt, **dict(zip("ab", values))}), *map(_dtype, dtypes.split())
    )
    assert type(error).__name__ == kind
    assert str(error) == message + HERE


def _dtype(name: str) -> pt.DType:
    return getattr(pt, name)


def test_a_run_time_value_in_a_python_if() -> None:
    error = failure(lambda a: 1 if a < 2 else 3, pt.int32)
    assert text(error) == (
        "a run-time bool_ was used as a Python condition: its value exists only when the kernel runs; use pt.if_, "
        "pt.while_, pt.select or pred=, & | ~ for and, or, not, pt.minimum and pt.maximum for min and max\n"
        "  test_operators.py:N: error = failure(lambda a: 1 if a < 2 else 3, pt.int32)"
    )


def test_operators_outside_a_trace() -> None:
    with pytest.raises(pt.TraceError) as caught:
        pt.float32(1) + 2
    assert str(caught.value) == (
        "operator 'add' on ptxtile values was called outside a trace: forms and run-time operations only have a "
        "meaning while a @pt.kernel is traced or inside a ModuleBuilder entry"
    )
