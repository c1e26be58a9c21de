"""Scalar functions compiled from source: what they emit and compute, where their lines are, what they refuse."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from builder.running import instructions, run, spellings
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
        return not (x < y or (x > 2 and y > 2))

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


def test_free_names_are_those_of_the_function() -> None:
    factor = 4

    @pt.function
    def scaled(x: pt.float32) -> pt.float32:
        return x * factor

    assert instructions(scaled, pt.float32) == ["mul.rn.f32 %f1, %f0, 0f40800000"]
