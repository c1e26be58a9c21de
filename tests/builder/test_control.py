"""Loops and branches at run time: text, behaviour on the emulator, facts for the prover, and the messages."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtile as pt
from builder.running import instructions, run
from ptxtile import tracing
from ptxtile.builder import ranges
from ptxtile.builder.trace import Launch, Trace
from ptxtile.isa import ptx


def test_a_loop_tests_at_the_top() -> None:
    def body(n: pt.int32, x: pt.float32) -> None:
        total = pt.reg(pt.float32, 0)
        with pt.for_range(0, n):
            total += x

    assert instructions(body, pt.int32, pt.float32) == [
        "mov.f32 %f1, 0f00000000",
        "mov.b32 %r1, 0",
        "$for_1:",
        "setp.ge.s32 %p0, %r1, %r0",
        "@%p0 bra $endfor_2",
        "add.rn.f32 %f1, %f1, %f0",
        "$next_3:",
        "add.s32 %r1, %r1, 1",
        "bra $for_1",
        "$endfor_2:",
    ]


def test_if_else_and_while_as_text() -> None:
    def body(p: pt.bool_, x: pt.float32) -> None:
        total = pt.reg(pt.float32, x)
        with pt.if_(p):
            total += 1
        with pt.else_(), pt.while_(lambda: total < 4):
            total += 2

    assert instructions(body, pt.bool_, pt.float32) == [
        "mov.f32 %f1, %f0",
        "@!%p0 bra $else_1",
        "add.rn.f32 %f1, %f1, 0f3F800000",
        "bra $endif_2",
        "$else_1:",
        "$while_3:",
        "setp.lt.f32 %p1, %f1, 0f40800000",
        "@!%p1 bra $endwhile_4",
        "add.rn.f32 %f1, %f1, 0f40000000",
        "bra $while_3",
        "$endwhile_4:",
        "$endif_2:",
    ]


@pytest.mark.parametrize(
    "bounds", [(0, 7, 1), (3, 3, 1), (5, 2, 1), (0, 10, 3), (10, 0, -1), (10, -1, -4), (-5, 6, 2), (2, 1, -1)]
)
@pytest.mark.parametrize("known", [True, False])
def test_loops_run_as_python_ranges(bounds: tuple[int, int, int], known: bool) -> None:
    low, high, step = bounds

    def body(lo: pt.int32, hi: pt.int32) -> pt.int32:
        total = pt.reg(pt.int32, 1)
        with pt.for_range(low if known else lo, high if known else hi, step) as i:
            total.set(total * 3 + i)
        return total

    expected = 1
    for i in range(low, high, step):
        expected = expected * 3 + i
    got = run(body, np.full(2, low, np.int32), np.full(2, high, np.int32))
    assert got[0] == np.int64(expected).astype(np.int32)


def test_unsigned_and_64_bit_loops() -> None:
    def down(n: pt.uint64) -> pt.uint64:
        total = pt.reg(pt.uint64, 0)
        with pt.for_range(n, 0, -1) as i:
            total += i
        return total

    n = np.array([0, 1, 5, 10], np.uint64)
    assert np.array_equal(run(down, n), n * (n + 1) // 2)


def test_the_end_of_a_loop_is_read_once() -> None:
    def body(n: pt.int32) -> pt.int32:
        end = pt.reg(pt.int32, n)
        count = pt.reg(pt.int32, 0)
        with pt.for_range(0, end):
            end += 1
            count += 1
        return count

    assert np.array_equal(run(body, np.arange(5, dtype=np.int32)), np.arange(5))


def test_threads_diverge_break_and_continue() -> None:
    def collatz(n: pt.int32) -> pt.int32:
        value, steps = pt.reg(pt.int32, n), pt.reg(pt.int32, 0)
        with pt.while_(lambda: value != 1):
            with pt.if_(value % 2 == 0):
                value.set(value // 2)
            with pt.else_():
                value.set(value * 3 + 1)
            steps += 1
        return steps

    def reference(n: int) -> int:
        steps = 0
        while n != 1:
            n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
        return steps

    n = np.arange(1, 65, dtype=np.int32)
    assert np.array_equal(run(collatz, n), [reference(int(v)) for v in n])

    def odd_until_ten(n: pt.int32) -> pt.int32:
        total = pt.reg(pt.int32, 0)
        with pt.for_range(0, n) as i:
            with pt.if_(i % 2 == 0):
                pt.continue_()
            with pt.if_(i > 10):
                pt.break_()
            total += i
        return total

    assert np.array_equal(run(odd_until_ten, n), [sum(i for i in range(v) if i % 2 and i <= 10) for v in n])


def test_an_endless_while_ends_with_break() -> None:
    def body(n: pt.int32) -> pt.int32:
        count = pt.reg(pt.int32, 0)
        with pt.while_(lambda: True):
            with pt.if_(count >= n):
                pt.break_()
            count += 2
        return count

    assert np.array_equal(run(body, np.array([0, 1, 5], np.int32)), [0, 2, 6])


def test_labels_and_raw_branches() -> None:
    def body(n: pt.int32) -> pt.int32:
        count = pt.reg(pt.int32, 0)
        again = pt.label("again")
        count += 1
        ptx.bra(again, pred=count < n)
        return count

    assert np.array_equal(run(body, np.array([0, 1, 5], np.int32)), [1, 1, 5])


def test_blocks_tell_the_prover_what_holds() -> None:
    trace = Trace("k", Launch())
    with tracing.use(trace):
        n = trace.value(pt.int32)
        with pt.for_range(0, n) as i:
            facts = [fact for what in trace.facts() for fact in ranges.facts_of(what)]
            room = ranges.unknown(n) if n.extent is None else n.extent
            assert ranges.nonnegative(room.plus(i.extent, -1).plus(-1), facts)
        with pt.for_range(4, 64, 4) as i:
            assert i.extent.bounds() == (4, 63)
            assert ranges.divisible(i.extent, 4)
        with pt.for_range(pt.thread_idx("x") * 8, 4096, 1024) as i:
            assert ranges.divisible(i.extent, 8)
        with pt.if_(n < 8):
            facts = [fact for what in trace.facts() for fact in ranges.facts_of(what)]
            assert ranges.nonnegative(n.extent.times(-1).plus(7), facts)
        with pt.else_():
            facts = [fact for what in trace.facts() for fact in ranges.facts_of(what)]
            assert ranges.nonnegative(n.extent.plus(-8), facts)
        assert trace.facts() == []
        pt.assume(n % 4 == 0)
        assert len(trace.facts()) == 1


def test_a_variable_in_a_condition_is_no_fact() -> None:
    trace = Trace("k", Launch())
    with tracing.use(trace):
        n = pt.reg(pt.int32, 3)
        with pt.if_(n < 8):
            assert trace.facts() == []


def test_an_exception_leaves_the_blocks() -> None:
    trace = Trace("k", Launch())
    with tracing.use(trace):
        p = trace.value(pt.bool_)
        with pytest.raises(ZeroDivisionError), pt.for_range(0, 4), pt.if_(p), pt.while_(lambda: p):
            1 // 0  # noqa: B018
    assert trace.block is trace.body


def test_names_may_be_reused_where_nothing_is_lost() -> None:
    def body(x: pt.float32) -> None:
        i = 0
        with pt.for_range(i, 4) as i:
            y = x * 2
        with pt.for_range(0, 4) as i:
            y = x + 1
        with pt.if_(x < 1):
            y = x + 2
            y = y + 3
        for n in range(2):
            with pt.if_(x < n):
                z = x * n
        del i, y, z

    instructions(body, pt.float32)
