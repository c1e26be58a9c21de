"""What scalar functions refuse when they are called: every message in full."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import ptxtile as pt
from builder.running import failure, text


@pt.function
def square(x: pt.float32) -> pt.float32:
    return x * x


@pt.function
def calls_itself(x: pt.float32) -> pt.float32:
    return calls_itself(x)


@pt.function
def half_bound(x: pt.float32) -> pt.float32:
    if x > 0:
        y = x
    return y


@pt.function  # noqa: RET503
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
        (
            calls_itself,
            (
                "@pt.function calls_itself calls itself; scalar functions are inlined\n"
                "  F: return calls_itself(x)"
            ),
        ),
        (
            half_bound,
            ("@pt.function half_bound: y is bound on one path only; bind it before the if\n  F: return y"),
        ),
        (
            falls_off,
            (
                "@pt.function falls_off: a path ends without a return; every path returns a value\n"
                "  F: if x > 0:"
            ),
        ),
        (
            wrong_result,
            (
                "wrong_result: the result: int32 is wanted and this is float32; nothing is converted "
                "silently: write pt.cast(value, pt.int32)\n"
                "  F: return x"
            ),
        ),
        (
            two_numbers,
            (
                "@pt.function two_numbers: y is 1 on one path and 2 on the other; give them a dtype, as "
                "in pt.float32(1)\n"
                "  F: return x * y"
            ),
        ),
        (
            two_types,
            (
                "@pt.function two_types: y is float32 on one path and int32 on the other; convert one "
                "with pt.cast\n"
                "  F: return y"
            ),
        ),
        (
            python_min,
            ("@pt.function python_min: min() of a run-time value: write pt.minimum\n  F: return min(x, 2)"),
        ),
        (
            host_math,
            (
                "@pt.function host_math: math.exp computes on the host only; write pt.exp\n"
                "  F: return math.exp(x)"
            ),
        ),
        (
            mixes,
            (
                "float32 + int32: float32 and int32 never mix; convert one side with pt.cast(value, "
                "pt.float32) or pt.cast(value, pt.int32)\n"
                "  F: return x + pt.int32(2)"
            ),
        ),
        (
            converts,
            (
                "pt.float32(…) makes constants and does not convert run-time values: write the cvt form, "
                "or pt.cast(value, pt.float32)\n"
                "  in @pt.function converts, F"
            ),
        ),
        (
            no_condition,
            (
                "@pt.function no_condition: a run-time float32 is no condition; compare it, as in x != 0\n"
                "  F: return 1 if x else 2"
            ),
        ),
        (
            attribute,
            (
                "@pt.function attribute: a scalar has no .set in a scalar function; assign its name anew "
                "to change it\n"
                "  F: x.set(3)"
            ),
        ),
        (
            undefined,
            (
                "@pt.function undefined: missing_name is not bound here\n"
                "  F: return x + missing_name  # noqa: F821"
            ),
        ),
        (power, "@pt.function power: ** on scalars: write pt.pow(x, y), or the product\n  F: return x**2"),
        (
            run_time_break,
            (
                "@pt.function run_time_break: break and continue under a run-time condition: loops are "
                "unrolled while compiling\n"
                "  F: break"
            ),
        ),
        (
            run_time_range,
            (
                "@pt.function run_time_range: a loop runs over range(…) or a tuple that is known while "
                "compiling\n"
                "  F: for _ in x:"
            ),
        ),
        (
            wrong_argument,
            (
                "square: argument x: float32 is wanted and this is float64; nothing is converted "
                "silently: write pt.cast(value, pt.float32)\n"
                "  F: return square(pt.cast(x, pt.float64))"
            ),
        ),
        (
            fails_on_host,
            (
                "@pt.function fails_on_host: ZeroDivisionError: integer division or modulo by zero\n"
                "  F: return x * (1 // 0)"
            ),
        ),
        (
            calls_plain,
            (
                "@pt.function calls_plain: plain is called with a run-time value and is no @pt.function; "
                "decorate it with @pt.function\n"
                "  F: return plain(x)"
            ),
        ),
    ],
)
def test_messages_of_calls(function: Callable[..., object], message: str) -> None:
    error = failure(function, pt.float32)
    assert text(error) == message.replace("F: ", "test_function_messages.py:N: ").replace(
        ", F", ", test_function_messages.py:N"
    )


def test_messages_of_the_call_itself() -> None:
    assert text(failure(lambda x: square(x, x), pt.float32)) == (
        "square takes 1 arguments (x), not 2\n"
        "  test_function_messages.py:N: assert text(failure(lambda x: square(x, x), pt.float32)) == ("
    )
    assert text(failure(square, pt.int32)) == (
        "square: argument x: float32 is wanted and this is int32; nothing is converted silently: write pt.cast(value, "
        "pt.float32)\n  running.py:N: body(*(trace.value(dtype) for dtype in dtypes))"
    )
    with pytest.raises(pt.TraceError) as caught:
        square(1.0)
    assert text(caught.value) == (
        "square is a scalar function of kernels: call it while a @pt.kernel is traced, or pass it to tile.ewise\n"
        "  test_function_messages.py:N: square(1.0)"
    )
