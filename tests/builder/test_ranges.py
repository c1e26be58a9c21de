"""Extents and proofs: exact against enumeration, and never a falsehood."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest
from hypothesis import given, strategies as st

import ptxtile as pt
from ptxtile.builder import ranges
from ptxtile.builder.extents import Atom, Extent
from ptxtile.encoding import integer_range

OPERATIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
    "and": lambda a, b: a & b,
}
Values = Mapping[Atom, int]


def atoms_of(*bounds: tuple[int, int, int]) -> list[Atom]:
    return [Atom(f"a{i}", low, high, multiple) for i, (low, high, multiple) in enumerate(bounds)]


def everywhere(atoms: list[Atom]) -> list[Values]:
    """Every assignment that the atoms' ranges and multiples allow."""
    spans = [[v for v in range(a.low, a.high + 1) if v % a.multiple == 0] for a in atoms]
    return [dict(zip(atoms, values)) for values in itertools.product(*spans)]


def expression(*atoms: Atom, draw: st.DrawFn) -> Extent:
    """A random sum of products, quotients and remainders of the atoms."""
    total = ranges.constant(draw(st.integers(-9, 9)))
    for _ in range(draw(st.integers(1, 3))):
        part = Extent({(draw(st.sampled_from(atoms)),): 1}, draw(st.integers(-4, 4)))
        way = draw(st.sampled_from(["itself", "times", "div", "mod"]))
        divisor = draw(st.sampled_from([2, 3, 4, 8]))
        if way == "times":
            part = part.times(Extent({(draw(st.sampled_from(atoms)),): 1}, 0))
        elif way == "div":
            part = ranges.quotient(part, divisor)
        elif way == "mod":
            part = ranges.remainder(part, divisor)
        total = total.plus(part, draw(st.integers(-4, 4)))
    return total


@st.composite
def extents(draw: st.DrawFn, signed: bool = True) -> tuple[list[Atom], Extent]:
    bounds = []
    for _ in range(draw(st.integers(1, 2))):
        low = draw(st.integers(-6 if signed else 0, 4))
        bounds.append((low, low + draw(st.integers(0, 9)), draw(st.sampled_from([1, 1, 2, 4]))))
    atoms = [a for a in atoms_of(*bounds) if any(v % a.multiple == 0 for v in range(a.low, a.high + 1))]
    if not atoms:
        atoms = atoms_of((0, 5, 1))
    return atoms, expression(*atoms, draw=draw)


@given(extents())
def test_bounds_and_divisors_hold_everywhere(case):
    atoms, what = case
    low, high = what.bounds()
    for values in everywhere(atoms):
        value = ranges.evaluate(what, values)
        assert low <= value <= high
        assert value == 0 if what.divisor() == 0 else value % what.divisor() == 0


@given(extents(), st.integers(1, 12))
def test_quotient_and_remainder_are_pythons(case, divisor):
    atoms, what = case
    whole, rest = ranges.quotient(what, divisor), ranges.remainder(what, divisor)
    again = whole.times(divisor).plus(rest)
    for values in everywhere(atoms):
        value = ranges.evaluate(what, values)
        assert ranges.evaluate(whole, values) == value // divisor
        assert ranges.evaluate(rest, values) == value % divisor
        assert ranges.evaluate(ranges.recombined(again), values) == value


@given(extents(), st.integers(1, 12))
def test_what_was_taken_apart_comes_together(case, divisor):
    _, what = case
    again = ranges.quotient(what, divisor).times(divisor).plus(ranges.remainder(what, divisor))
    assert ranges.recombined(again) == what


@given(
    st.data(), st.sampled_from(list(OPERATIONS)), st.sampled_from([pt.uint16, pt.int16, pt.uint32, pt.int64])
)
def test_combine_is_pythons_arithmetic_or_says_that_it_may_wrap(data, name, dtype):
    low, high = integer_range(dtype)
    atoms = atoms_of(
        *(
            (max(low, at), max(low, at) + 5, 1)
            for at in data.draw(st.lists(st.integers(-8, 200), min_size=2, max_size=2))
        )
    )
    left = Extent({(atoms[0],): data.draw(st.sampled_from([1, 3, 1000]))}, 0)
    number = data.draw(st.integers(1, 15)) if name not in ("add", "sub", "mul") else None
    right: ranges.Known = Extent({(atoms[1],): 1}, 0) if number is None else number
    made = ranges.combine(name, left, right, dtype)
    for values in everywhere(atoms):
        a = ranges.evaluate(left, values)
        exact = OPERATIONS[name](a, ranges.evaluate(right, values) if isinstance(right, Extent) else right)
        if isinstance(made, Extent):
            assert ranges.evaluate(made, values) == exact
            assert low <= exact <= high
        elif isinstance(made, ranges.Wrapped):
            assert ranges.evaluate(made.exact, values) == exact
            assert name in ("add", "sub", "mul", "shl")


@given(extents(), st.data())
def test_a_proof_is_never_false(case, data):
    atoms, what = case
    facts = [expression(*atoms, draw=data.draw) for _ in range(data.draw(st.integers(0, 3)))]
    if data.draw(st.booleans()):
        divisor = data.draw(st.sampled_from([2, 4, 6]))
        inner = Extent({(atoms[0],): 1}, data.draw(st.integers(0, 3)))
        equal = ranges.compare("eq", ranges.remainder(inner, divisor), 0)
        facts += ranges.facts_of(equal)
    cases = [v for v in everywhere(atoms) if all(ranges.evaluate(fact, v) >= 0 for fact in facts)]
    if ranges.nonnegative(what, facts):
        assert all(ranges.evaluate(what, v) >= 0 for v in cases)
    for divisor in (2, 3, 4, 8):
        if ranges.divisible(what, divisor, facts):
            assert all(ranges.evaluate(what, v) % divisor == 0 for v in cases)


@given(extents(), st.sampled_from(["lt", "le", "gt", "ge", "eq", "ne"]), st.integers(-9, 9))
def test_comparisons_their_facts_and_their_opposites(case, op, number):
    atoms, what = case
    holds = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}[op]
    said = ranges.compare(op, what, number)
    for values in everywhere(atoms):
        truth = eval(f"a {holds} b", {"a": ranges.evaluate(what, values), "b": number})
        assert ranges.holds(said, values) is truth
        assert ranges.holds(ranges.negate(said), values) is not truth
        if truth:
            assert all(ranges.evaluate(fact, values) >= 0 for fact in ranges.facts_of(said))


def big(name: str = "n", multiple: int = 1) -> Extent:
    return ranges.atom(name, 0, 2**31 - 1, multiple=multiple)


def test_proofs_over_ranges_too_large_to_try():
    n, i, j = big("n", 128), big("i", 128), big("j")
    less = ranges.facts_of(ranges.compare("lt", i, n))
    assert ranges.nonnegative(
        n.plus(i, -1).plus(-128), less
    )  # both are multiples of 128, so one below is 128 below
    assert not ranges.nonnegative(n.plus(i, -1).plus(-129), less)
    chain = [*less, *ranges.facts_of(ranges.compare("le", j, i))]
    assert ranges.nonnegative(n.plus(j, -1).plus(-1), chain)
    assert not ranges.nonnegative(n.plus(j, -1).plus(-1), chain[1:])


def test_congruences_over_ranges_too_large_to_try():
    n, m = big("n"), big("m")
    sum_is = ranges.facts_of(ranges.compare("eq", ranges.remainder(n.plus(m).plus(2), 8), 0))
    assert ranges.divisible(n.plus(m).plus(2), 8, sum_is)
    assert ranges.divisible(n.plus(m).plus(2).times(3).plus(24), 8, sum_is)
    assert not ranges.divisible(n.plus(m), 8, sum_is)
    each = ranges.facts_of(ranges.compare("eq", ranges.remainder(n, 8), 0))
    assert ranges.divisible(n.times(m).plus(n), 8, each)
    assert not ranges.divisible(n.times(m).plus(m), 8, each)
    nothing = ranges.facts_of(ranges.compare("ge", ranges.remainder(n, 8), 0))  # true of every number
    assert not ranges.divisible(n, 8, nothing)


@pytest.mark.parametrize("mask", [1, 3, 6, 12, 252, 5, 0])
def test_masks(mask):
    (a,) = atoms = atoms_of((-40, 40, 1))
    made = ranges.combine("and", Extent({(a,): 1}, 0), mask, pt.int32)
    assert (made is None) == (mask == 5)
    if isinstance(made, Extent):
        assert all(ranges.evaluate(made, v) == v[a] & mask for v in everywhere(atoms))
        assert made.bounds() == (0, mask)


def test_what_wrapped_keeps_its_low_bits():
    (a,) = atoms_of((0, 2**32 - 1, 1))
    made = ranges.combine("mul", Extent({(a,): 1}, 0), 4, pt.uint32)
    assert isinstance(made, ranges.Wrapped)
    value = object.__new__(pt.uint32)
    value.value, value.operand, value.block, value.extent, value.mutable = None, None, None, made, False
    known = ranges.of_value(value)
    assert known is not None and known.bounds() == (0, 2**32 - 1) and known.divisor() == 4
    assert ranges.unwrapped(known) == made.exact
    assert ranges.combine("mod", known, 8, pt.uint32) == ranges.remainder(made.exact, 8)
    assert ranges.combine("mod", known, 6, pt.uint32) != ranges.remainder(made.exact, 6)


def test_extents_are_values():
    (a,) = atoms_of((0, 9, 1))
    one, other = Extent({(a,): 2}, 1), Extent({(a,): 1}, 0).times(2).plus(1)
    assert one == other and hash(one) == hash(other) and one != Extent({(a,): 2}, 2)
    assert repr(one) == "2*a0 + 1"
    assert one.plus(one, -1).known == 0
    assert ranges.of_value(pt.float32(1)) is None and ranges.of_value(True) is None
