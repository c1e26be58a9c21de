"""Scalar functions compiled from source: what they emit and compute, where their lines are, what they refuse."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from builder.running import failure, instructions, run, spellings, text

import ptxtile as pt
from ptxtile import location, tracing
from ptxtile.builder.trace import Launch, Trace
from ptxtile.ir.instruction import Instruction
from ptxtile.isa import ptx

ROUNDS = 3
FLAG = True
TABLE = (0.5, 0.25, 2.0)


@pt.function
def silu_affine(x: pt.float32, scale: pt.float32, bias: pt.float32) -> pt.float32:
    y = x / (pt.float32(1) + pt.exp(-x))
    return y * scale + bias


@pt.function
def square(x: pt.float32) -> pt.float32:
    return x * x


@pt.function
def steps(x: pt.float32, n: pt.int32) -> pt.float32:
    """A docstring, a loop, a chain of comparisons, a merge and an early return."""
    y = x
    for i in range(ROUNDS):
        if i == 2:
            break
        y = y * 2 + square(x)
    if 0 < x < 10 and n != 3:
        y += 1
        z = 3.0
    elif n == 2:
        return y
    else:
        y = pt.float32(2)
        z = x
    w = z if x > y else 1
    return w * y


def steps_in_python(x: float, n: int) -> np.float32:
    f = np.float32
    y = f(x)
    for i in range(ROUNDS):
        if i == 2:
            break
        y = f(y * f(2)) + f(f(x) * f(x))
    if 0 < x < 10 and n != 3:
        y = y + f(1)
        z = f(3)
    elif n == 2:
        return y
    else:
        y, z = f(2), f(x)
    return (z if x > y else f(1)) * y


def test_the_sequence_is_as_written() -> None:
    lines = spellings(lambda x: silu_affine(x, 2, 1), pt.float32)
    assert lines[0] == "neg.f32"
    assert lines[-4:] == ["add.rn.f32", "div.rn.f32", "mul.rn.f32", "add.rn.f32"]
    assert lines.count("ex2.approx.f32") == 1
    assert not any("fma" in line or "ftz" in line for line in lines)


def test_silu_is_accurate() -> None:
    x = np.linspace(-2, 2, 256, dtype=np.float32)
    exact = x.astype(np.float64)
    assert np.allclose(
        run(lambda v: silu_affine(v, 2, 1), x), exact / (1 + np.exp(-exact)) * 2 + 1, 2e-6, 2e-6
    )


def test_branches_merge_as_python_does() -> None:
    x, n = (np.array(side) for side in zip(*[(a, b) for a in (-3.5, 0.5, 2.0, 9.0, 12.0) for b in (1, 2, 3)]))
    x, n = x.astype(np.float32), n.astype(np.int32)
    expected = np.array([steps_in_python(float(a), int(b)) for a, b in zip(x, n)], np.float32)
    assert np.array_equal(run(steps, x, n), expected)


def test_the_text_of_a_branch() -> None:
    @pt.function
    def magnitude(x: pt.float32) -> pt.float32:
        if x > 0:
            return x
        else:
            return -x

    assert instructions(magnitude, pt.float32) == [
        "setp.gt.f32 %p0, %f0, 0f00000000",
        "@!%p0 bra $else_1",
        "mov.f32 %f1, %f0",
        "bra $return_2",
        "$else_1:",
        "neg.f32 %f2, %f0",
        "mov.f32 %f1, %f2",
        "$return_2:",
    ]


def test_names_that_agree_need_no_register() -> None:
    @pt.function
    def same(x: pt.float32) -> pt.float32:
        k = 2
        if x > 0:
            k = 2
            y = x
        else:
            y = x
        return y * k

    assert instructions(same, pt.float32) == [
        "setp.gt.f32 %p0, %f0, 0f00000000",
        "@!%p0 bra $else_1",
        "$else_1:",
        "mul.rn.f32 %f1, %f0, 0f40000000",
    ]


def test_known_conditions_choose_while_compiling() -> None:
    @pt.function
    def chosen(x: pt.float32) -> pt.float32:
        if FLAG and ROUNDS > 2:
            y = x if not FLAG else x * TABLE[1]
        elif x > 3:
            y = x + x
        else:
            return pt.float32(0)
        return y

    assert instructions(chosen, pt.float32) == ["mul.rn.f32 %f1, %f0, 0f3E800000"]


def test_boolean_operators() -> None:
    @pt.function
    def logic(x: pt.float32, y: pt.float32) -> pt.bool_:
        return not (x < y or x > 2 and y > 2)

    assert [line.split(" ")[0] for line in instructions(logic, pt.float32, pt.float32)] == [
        "setp.lt.f32", "setp.gt.f32", "setp.gt.f32", "and.pred", "or.pred", "not.pred",
    ]  # fmt: skip


def test_loops_over_tuples_and_several_names() -> None:
    @pt.function
    def weighted(x: pt.float32) -> pt.float32:
        total: pt.float32 = 0
        a, b = x, x * 2
        for i, weight in ((1, TABLE[0]), (2, TABLE[2])):
            if i == 5:
                continue
            total += a * weight
            a, b = b, a
        return total

    x = np.array([1, 3], np.float32)
    assert np.array_equal(run(weighted, x), x * np.float32(0.5) + x * 2 * np.float32(2))


def test_forms_may_be_named() -> None:
    @pt.function
    def fused(x: pt.float32) -> pt.float32:
        return ptx.fma.rn.f32(x, x, x)

    assert spellings(fused, pt.float32) == ["fma.rn.f32"]


def test_a_variable_given_is_neither_changed_nor_shared() -> None:
    @pt.function
    def same(x: pt.float32) -> pt.float32:
        return x

    @pt.function
    def more(x: pt.float32) -> pt.float32:
        x += 1
        return x

    def body(x: pt.float32) -> pt.float32:
        total = pt.reg(pt.float32, x)
        before = same(total)
        total += more(total)
        return before + total

    assert np.array_equal(run(body, np.array([1, 5], np.float32)), [4, 16])


def test_instructions_carry_the_lines_of_the_function() -> None:
    trace = Trace("k", Launch())
    with tracing.use(trace):
        steps(trace.value(pt.float32), trace.value(pt.int32))
    sources = [location.resolve(r.mark).source for r in trace.records if isinstance(r, Instruction)]  # type: ignore[union-attr]
    assert sources[:3] == ["y = y * 2 + square(x)", "return x * x", "y = y * 2 + square(x)"]
    assert "if 0 < x < 10 and n != 3:" in sources


def test_the_function_says_what_it_is() -> None:
    assert silu_affine.name == "silu_affine"
    assert silu_affine.parameters == (("x", pt.float32), ("scale", pt.float32), ("bias", pt.float32))
    assert silu_affine.returns is pt.float32
    assert repr(square) == "<@pt.function square(x: pt.float32) -> pt.float32>"
    assert steps.__doc__ == "A docstring, a loop, a chain of comparisons, a merge and an early return."


# --- messages, when it is called --------------------------------------------------------------------------------------
@pt.function
def calls_itself(x: pt.float32) -> pt.float32:
    return calls_itself(x)


@pt.function
def half_bound(x: pt.float32) -> pt.float32:
    if x > 0:
        y = x
    return y


@pt.function
def falls_off(x: pt.float32) -> pt.float32:
    if x > 0:
        return x


@pt.function
def wrong_result(x: pt.float32) -> pt.int32:
    return x


@pt.function
def two_numbers(x: pt.float32) -> pt.float32:
    if x > 0:
        y = 1
    else:
        y = 2
    return x * y


@pt.function
def two_types(x: pt.float32) -> pt.float32:
    if x > 0:
        y = x
    else:
        y = pt.int32(2)
    return y


@pt.function
def python_min(x: pt.float32) -> pt.float32:
    return min(x, 2)


@pt.function
def host_math(x: pt.float32) -> pt.float32:
    return math.exp(x)


@pt.function
def mixes(x: pt.float32) -> pt.float32:
    return x + pt.int32(2)


@pt.function
def converts(x: pt.float32) -> pt.float32:
    return pt.float32(x)


@pt.function
def no_condition(x: pt.float32) -> pt.float32:
    return 1 if x else 2


@pt.function
def attribute(x: pt.float32) -> pt.float32:
    x.set(3)
    return x


@pt.function
def undefined(x: pt.float32) -> pt.float32:
    return x + missing_name  # noqa: F821


@pt.function
def power(x: pt.float32) -> pt.float32:
    return x**2


@pt.function
def run_time_break(x: pt.float32) -> pt.float32:
    for _ in range(3):
        if x > 0:
            break
    return x


@pt.function
def run_time_range(x: pt.float32) -> pt.float32:
    for _ in x:
        pass
    return x


@pt.function
def wrong_argument(x: pt.float32) -> pt.float32:
    return square(pt.cast(x, pt.float64))


@pt.function
def fails_on_host(x: pt.float32) -> pt.float32:
    return x * (1 // 0)


def plain(x: object) -> object:
    return x


@pt.function
def calls_plain(x: pt.float32) -> pt.float32:
    return plain(x)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (calls_itself, "@pt.function calls_itself calls itself; scalar functions are inlined\n  F: return calls_itself(x)"),
        (half_bound, "@pt.function half_bound: y is bound on one path only; bind it before the if\n  F: return y"),
        (falls_off, "@pt.function falls_off: a path ends without a return; every path returns a value\n  F: if x > 0:"),
        (wrong_result, "wrong_result: the result: int32 is wanted and this is float32; nothing is converted silently: write "
         "pt.cast(value, pt.int32)\n  F: return x"),
        (two_numbers, "@pt.function two_numbers: y is 1 on one path and 2 on the other; give them a dtype, as in "
         "pt.float32(1)\n  F: return x * y"),
        (two_types, "@pt.function two_types: y is float32 on one path and int32 on the other; convert one with pt.cast"
         "\n  F: return y"),
        (python_min, "@pt.function python_min: min() of a run-time value: write pt.minimum\n  F: return min(x, 2)"),
        (host_math, "@pt.function host_math: math.exp computes on the host only; write pt.exp\n  F: return math.exp(x)"),
        (mixes, "float32 + int32: float32 and int32 never mix; convert one side with pt.cast(value, pt.float32) or "
         "pt.cast(value, pt.int32)\n  F: return x + pt.int32(2)"),
        (converts, "pt.float32(…) makes constants and does not convert run-time values: write the cvt form, or "
         "pt.cast(value, pt.float32)\n  in @pt.function converts, F"),
        (no_condition, "@pt.function no_condition: a run-time float32 is no condition; compare it, as in x != 0"
         "\n  F: return 1 if x else 2"),
        (attribute, "@pt.function attribute: a scalar has no .set in a scalar function; assign its name anew to change it"
         "\n  F: x.set(3)"),
        (undefined, "@pt.function undefined: missing_name is not bound here\n  F: return x + missing_name  # noqa: F821"),
        (power, "@pt.function power: ** on scalars: write pt.pow(x, y), or the product\n  F: return x**2"),
        (run_time_break, "@pt.function run_time_break: break and continue under a run-time condition: loops are unrolled "
         "while compiling\n  F: break"),
        (run_time_range, "@pt.function run_time_range: a loop runs over range(…) or a tuple that is known while compiling"
         "\n  F: for _ in x:"),
        (wrong_argument, "square: argument x: float32 is wanted and this is float64; nothing is converted silently: write "
         "pt.cast(value, pt.float32)\n  F: return square(pt.cast(x, pt.float64))"),
        (fails_on_host, "@pt.function fails_on_host: ZeroDivisionError: integer division or modulo by zero"
         "\n  F: return x * (1 // 0)"),
        (calls_plain, "@pt.function calls_plain: plain is called with a run-time value and is no @pt.function; decorate it "
         "with @pt.function\n  F: return plain(x)"),
    ],
)  # fmt: skip
def test_messages_of_calls(function: Callable[..., object], message: str) -> None:
    error = failure(lambda x: function(x), pt.float32)
    assert text(error) == message.replace("F: ", "test_function.py:N: ").replace(
        ", F", ", test_function.py:N"
    )


def test_messages_of_the_call_itself() -> None:
    assert text(failure(lambda x: square(x, x), pt.float32)) == (
        "square takes 1 arguments (x), not 2\n"
        "  test_function.py:N: assert text(failure(lambda x: square(x, x), pt.float32)) == ("
    )
    assert text(failure(lambda x: square(x), pt.int32)) == (
        "square: argument x: float32 is wanted and this is int32; nothing is converted silently: write pt.cast(value, "
        "pt.float32)\n  test_function.py:N: assert text(failure(lambda x: square(x), pt.int32)) == ("
    )
    with pytest.raises(pt.TraceError) as caught:
        square(1.0)
    assert text(caught.value) == (
        "square is a scalar function of kernels: call it while a @pt.kernel is traced, or pass it to tile.ewise\n"
        "  test_function.py:N: square(1.0)"
    )


# --- messages, when it is defined ---------------------------------------------------------------------------------------
def loops(x: pt.float32) -> pt.float32:
    while x > 0:
        x = x - 1
    return x


def no_dtype(x, y: pt.float32) -> pt.float32:  # type: ignore[no-untyped-def]
    return y


def no_result(x: pt.float32):  # type: ignore[no-untyped-def]
    return x


def no_such(x: foo.bar) -> pt.float32:  # noqa: F821
    return x


def a_number(x: 3) -> pt.float32:
    return x


def with_default(x: pt.float32 = 3) -> pt.float32:
    return x


def empty_return(x: pt.float32) -> pt.float32:
    return


def tries(x: pt.float32) -> pt.float32:
    try:
        return x
    finally:
        pass


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (loops, "@pt.function loops contains a while loop: its length is not known while compiling; write for … in range(…), "
         "or compute the loop in the kernel\n  F: while x > 0:"),
        (no_dtype, "@pt.function no_dtype: parameter x has no dtype; write x: pt.float32"
         "\n  F: def no_dtype(x, y: pt.float32) -> pt.float32:  # type: ignore[no-untyped-def]"),
        (no_result, "@pt.function no_result: the result has no dtype; write -> pt.float32"
         "\n  F: def no_result(x: pt.float32):  # type: ignore[no-untyped-def]"),
        (no_such, "@pt.function no_such: the annotation 'foo.bar' of x cannot be evaluated here (name 'foo' is not defined)"
         "\n  F: def no_such(x: foo.bar) -> pt.float32:  # noqa: F821"),
        (a_number, "@pt.function a_number: parameter x is annotated with 3, which is no dtype; write x: pt.float32"
         "\n  F: def a_number(x: 3) -> pt.float32:"),
        (with_default, "@pt.function with_default: parameters are plain names with a dtype each; *, /, ** and defaults have no "
         "meaning here\n  F: def with_default(x: pt.float32 = 3) -> pt.float32:"),
        (empty_return, "@pt.function empty_return: a return without a value\n  F: return"),
        (tries, "@pt.function tries contains a try statement: nothing raises at run time\n  F: try:"),
    ],
)  # fmt: skip
def test_messages_of_definitions(function: Callable[..., object], message: str) -> None:
    with pytest.raises(pt.TraceError) as caught:
        pt.function(function)
    assert text(caught.value) == message.replace("F: ", "test_function.py:N: ")


def test_a_function_without_source() -> None:
    space: dict[str, object] = {"pt": pt}
    exec("def ghost(x: pt.float32) -> pt.float32:\n    return x\n", space)
    with pytest.raises(pt.TraceError) as caught:
        pt.function(space["ghost"])  # type: ignore[arg-type]
    assert str(caught.value) == (
        "@pt.function ghost: its source cannot be read (<string>:1), and scalar functions are compiled from source; define "
        "it with def in a file or a notebook cell"
    )
    with pytest.raises(pt.TraceError) as caught:
        pt.function(len)
    assert str(caught.value) == "@pt.function takes a Python function, not <built-in function len>"


def test_free_names_are_those_of_the_function() -> None:
    factor = 4

    @pt.function
    def scaled(x: pt.float32) -> pt.float32:
        return x * factor

    assert instructions(scaled, pt.float32) == ["mul.rn.f32 %f1, %f0, 0f40800000"]
