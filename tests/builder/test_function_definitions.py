"""What scalar functions refuse when they are defined: every message in full."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import ptxtile as pt
from builder.running import text


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
        (
            loops,
            (
                "@pt.function loops contains a while loop: its length is not known while compiling; "
                "write for … in range(…), or compute the loop in the kernel\n"
                "  F: while x > 0:"
            ),
        ),
        (
            no_dtype,
            (
                "@pt.function no_dtype: parameter x has no dtype; write x: pt.float32\n"
                "  F: def no_dtype(x, y: pt.float32) -> pt.float32:  # type: ignore[no-untyped-def]"
            ),
        ),
        (
            no_result,
            (
                "@pt.function no_result: the result has no dtype; write -> pt.float32\n"
                "  F: def no_result(x: pt.float32):  # type: ignore[no-untyped-def]"
            ),
        ),
        (
            no_such,
            (
                "@pt.function no_such: the annotation 'foo.bar' of x cannot be evaluated here (name "
                "'foo' is not defined)\n"
                "  F: def no_such(x: foo.bar) -> pt.float32:  # noqa: F821"
            ),
        ),
        (
            a_number,
            (
                "@pt.function a_number: parameter x is annotated with 3, which is no dtype; write x: "
                "pt.float32\n"
                "  F: def a_number(x: 3) -> pt.float32:"
            ),
        ),
        (
            with_default,
            (
                "@pt.function with_default: parameters are plain names with a dtype each; *, /, ** and "
                "defaults have no meaning here\n"
                "  F: def with_default(x: pt.float32 = 3) -> pt.float32:"
            ),
        ),
        (empty_return, "@pt.function empty_return: a return without a value\n  F: return"),
        (tries, "@pt.function tries contains a try statement: nothing raises at run time\n  F: try:"),
    ],
)
def test_messages_of_definitions(function: Callable[..., object], message: str) -> None:
    with pytest.raises(pt.TraceError) as caught:
        pt.function(function)
    assert text(caught.value) == message.replace("F: ", "test_function_definitions.py:N: ")


def test_a_function_without_source() -> None:
    space: dict[str, object] = {"pt": pt}
    exec("def ghost(x: pt.float32) -> pt.float32:\n    return x\n", space)
    with pytest.raises(pt.TraceError) as caught:
        pt.function(space["ghost"])  # type: ignore[arg-type]
    assert str(caught.value) == (
        "@pt.function ghost: its source cannot be read (<string>:1), and scalar functions are compiled from source; "
        "define it with def in a file or a notebook cell"
    )
    with pytest.raises(pt.TraceError) as caught:
        pt.function(len)
    assert str(caught.value) == "@pt.function takes a Python function, not <built-in function len>"
