"""What control flow at run time refuses: every message in full."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import ptxtile as pt
from builder.running import failure, text


def rebound(x: pt.float32) -> None:
    acc = 0.0
    with pt.for_range(0, 4):
        acc = acc + x


def rebound_deep(x: pt.float32) -> None:
    acc = x
    with pt.for_range(0, 4) as i, pt.if_(i > 2):
        acc = x * 2
    del acc


def outside(x: pt.float32) -> None:
    with pt.if_(x < 1):
        y = x + 1
    y * 2


def late_else(x: pt.float32) -> None:
    with pt.if_(x < 1):
        pass
    x + 1
    with pt.else_():
        pass


def lone_else(x: pt.float32) -> None:
    with pt.else_():
        pass


def second_else(x: pt.float32) -> None:
    with pt.if_(x < 1):
        pass
    with pt.else_():
        pass
    with pt.else_():
        pass


def no_step(x: pt.float32) -> None:
    with pt.for_range(0, 4, 0):
        pass


def far_end(x: pt.float32) -> None:
    with pt.for_range(0, 2**31 - 2, 3):
        pass


def float_loop(x: pt.float32) -> None:
    with pt.for_range(0, x):
        pass


def mixed_loop(x: pt.float32) -> None:
    with pt.for_range(pt.int32(0), pt.uint32(4)):
        pass


def value_while(x: pt.float32) -> None:
    with pt.while_(x < 1):
        pass


def known_if(x: pt.float32) -> None:
    with pt.if_(True):
        pass


def float_if(x: pt.float32) -> None:
    with pt.if_(x):
        pass


def lone_break(x: pt.float32) -> None:
    pt.break_()


def bad_label(x: pt.float32) -> None:
    pt.label("1st")


def same_label(x: pt.float32) -> None:
    pt.label("here")
    pt.label("here")


def false_assume(x: pt.float32) -> None:
    pt.assume(pt.int32(3) > 4)


def loop_index(x: pt.float32) -> None:
    with pt.for_range(0, 4) as i:
        i += 1
        i.set(3)


_LOST = (
    "this float32 was made inside a pt.if_ block that has ended, so it may never have been computed; declare a "
    "variable with pt.reg(pt.float32) before the block and write it inside with .set(…)"
)
_ELSE = "pt.else_ must stand directly after the block of its pt.if_"
_REBOUND = (
    "the new float32 exists only there, and what comes after would not see it; make it a variable before the block, "
    "acc = pt.reg(pt.float32, …), and write it inside with acc += … or acc.set(…)"
)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (rebound, f"acc is rebound inside a pt.for_range block: {_REBOUND}\n  F: acc = acc + x"),
        (rebound_deep, f"acc is rebound inside a pt.if_ block: {_REBOUND}\n  F: acc = x * 2"),
        (outside, f"float32 * 2: {_LOST}\n  F: with pt.if_(x < 1):"),
        (late_else, f"{_ELSE}\n  F: with pt.else_():"),
        (lone_else, f"{_ELSE}\n  F: with pt.else_():"),
        (second_else, f"{_ELSE}\n  F: with pt.else_():"),
        (no_step, "pt.for_range: step is 0, so the loop would never end\n  F: with pt.for_range(0, 4, 0):"),
        (
            far_end,
            (
                "pt.for_range: with step 3 and end 2147483646 the index would leave int32 and the loop "
                "would not end\n"
                "  F: with pt.for_range(0, 2**31 - 2, 3):"
            ),
        ),
        (
            float_loop,
            (
                "pt.for_range counts in an integer dtype of 16 bits or more, not float32\n"
                "  F: with pt.for_range(0, x):"
            ),
        ),
        (
            mixed_loop,
            (
                "pt.for_range: int32 and uint32 never mix; convert one side with pt.cast(value, "
                "pt.int32) or pt.cast(value, pt.uint32)\n"
                "  F: with pt.for_range(pt.int32(0), pt.uint32(4)):"
            ),
        ),
        (
            value_while,
            (
                "pt.while_ takes a function that computes the condition, as in pt.while_(lambda: n < "
                "10): it is traced at the loop's head, and a value would be computed once\n"
                "  F: with pt.while_(x < 1):"
            ),
        ),
        (
            known_if,
            ("pt.if_: the condition is known while tracing; use Python's own if\n  F: with pt.if_(True):"),
        ),
        (
            float_if,
            (
                "pt.if_: bool_ is wanted and this is float32; nothing is converted silently: write "
                "pt.cast(value, pt.bool_)\n"
                "  F: with pt.if_(x):"
            ),
        ),
        (lone_break, "pt.break_ stands in no pt.for_range or pt.while_\n  F: pt.break_()"),
        (
            bad_label,
            (
                "pt.label: '1st' is no label name; PTX takes letters, digits, _ and $, beginning with a "
                "letter or an _\n"
                '  F: pt.label("1st")'
            ),
        ),
        (same_label, "pt.label: there is a label 'here' already\n  F: pt.label(\"here\")"),
        (false_assume, "pt.assume: the condition is known to be false\n  F: pt.assume(pt.int32(3) > 4)"),
        (
            loop_index,
            (
                "int32.set(): this is a value, which never changes; make a variable with "
                "pt.reg(pt.int32)\n"
                "  F: i.set(3)"
            ),
        ),
    ],
)
def test_messages(body: Callable[..., object], message: str) -> None:
    assert text(failure(body, pt.float32)) == message.replace("F:", "test_control_messages.py:N:")
