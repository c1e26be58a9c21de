"""What is known of run-time integers while tracing, and proofs from it.

A value's extent is its exact mathematical value (`extents`). Arithmetic that could wrap in its dtype gives a new
unknown, so an extent is never wrong, at worst ignorant. A bool_ keeps the Comparison that made it; blocks turn
comparisons into facts, polynomials known to be >= 0, that the proofs use. A proof that fails means "not proven", never
"false".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Union

from ptxtile.builder.extents import (
    Atom,
    Extent,
    atom,
    constant,
    evaluate,
    quotient,
    recombined,
    remainder,
)
from ptxtile.dtypes import DType, Scalar
from ptxtile.encoding import integer_range

__all__ = [
    "Atom",
    "Comparison",
    "Extent",
    "Known",
    "Wrapped",
    "atom",
    "before_wrapping",
    "combine",
    "compare",
    "constant",
    "divisible",
    "evaluate",
    "facts_of",
    "holds",
    "negate",
    "nonnegative",
    "of_value",
    "quotient",
    "recombined",
    "remainder",
    "unknown",
    "unwrapped",
]

_ENUMERATION_LIMIT = 1 << 14

Known = Union[Extent, int]


def of_value(value: object) -> Extent | None:
    """The extent of a Scalar or Python integer; None where nothing is known (floats, variables)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return constant(value)
    if isinstance(value, Scalar):
        if value.value is not None:
            return constant(value.value) if type(value).kind in ("int", "uint") else None  # type: ignore[arg-type]
        if not value.mutable and type(value).kind in ("int", "uint"):
            # A value never changes, so what is learnt of it stays true.
            if isinstance(value.extent, Wrapped):
                value.extent = value.extent.unknown(value)
            elif value.extent is None:
                value.extent = unknown(value)
        return value.extent if isinstance(value.extent, Extent) else None
    return None


def unknown(value: Scalar) -> Extent:
    """An extent for a run-time integer of which only the dtype's range is known."""
    low, high = integer_range(type(value))
    return atom(type(value).name, low, high, scalar=value)


@dataclass(frozen=True, slots=True)
class Wrapped:
    """The extent of a result that may have wrapped, until someone asks for it; `exact` is the result before wrapping.

    Wrapping subtracts multiples of a power of two, so powers of two that divide the exact result divide what is left.
    """

    exact: Extent

    def unknown(self, value: Scalar) -> Extent:
        """An unknown of the dtype's range that remembers what it comes from."""
        dtype = type(value)
        low, high = integer_range(dtype)
        multiple = math.gcd(self.exact.divisor(), 1 << dtype.bits)
        return Extent({(Atom(dtype.name, low, high, multiple, value, None, self.exact),): 1}, 0)


def unwrapped(what: Extent) -> Extent:
    """A result before it wrapped: equal to it modulo 2 to the width of its dtype."""
    if len(what.terms) == 1 and what.constant == 0:
        ((monomial, factor),) = what.terms.items()
        if factor == 1 and len(monomial) == 1 and monomial[0].exact is not None:
            return monomial[0].exact
    return what


def before_wrapping(what: Extent, dtype: DType) -> Extent:
    """`what` with every result of `dtype` in it as it was before it wrapped: equal modulo 2 to the width of dtype."""
    found = constant(what.constant)
    for monomial, factor in what.terms.items():
        part = constant(factor)
        for each in monomial:
            exact = each.exact if each.name == dtype.name else None
            part = part.times(Extent({(each,): 1}, 0) if exact is None else before_wrapping(exact, dtype))
        found = found.plus(part)
    return found


def combine(name: str, left: Known | None, right: Known | None, dtype: DType) -> Extent | Wrapped | None:
    """The extent of `left name right` ("add", "sub", "mul", "floordiv", "mod", "shl", "shr", "and"); Wrapped where the
    result could leave the range of `dtype`, None where nothing is known."""
    if left is None or right is None:
        return None
    a = constant(left) if isinstance(left, int) else left
    b = constant(right) if isinstance(right, int) else right
    result = _combine(name, a, b)
    if result is None:
        return None
    low, high = result.bounds()
    least, greatest = integer_range(dtype)
    if least <= low and high <= greatest:
        return result
    return Wrapped(result) if name in ("add", "sub", "mul", "shl") else None


def _combine(name: str, a: Extent, b: Extent) -> Extent | None:
    if name == "add":
        return a.plus(b)
    if name == "sub":
        return a.plus(b, -1)
    if name == "mul":
        return a.times(b)
    number = b.known
    if number is None or number < 0:
        return None
    if name == "shl" and number < 64:
        return a.times(1 << number)
    if name == "shr" and number < 64:
        return quotient(a, 1 << number)
    if name == "floordiv" and number:
        return quotient(a, number)
    if name == "mod" and number:
        return remainder(unwrapped(a) if number & (number - 1) == 0 else a, number)
    return _masked(a, number) if name == "and" else None


def _masked(a: Extent, mask: int) -> Extent | None:
    """a & mask, for a mask of adjacent bits: in two's complement the low bits are a remainder, whatever the sign."""
    low = mask & -mask
    if not mask or (mask + low) & mask:
        return constant(0) if not mask else None
    rest = remainder(unwrapped(a), mask + low)
    return quotient(rest, low).times(low) if low != 1 else rest


# --- facts ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Comparison:
    """What a bool_ says: `left op right` with op "lt le gt ge eq ne", or "and" of two Comparisons."""

    op: str
    left: Extent | Comparison
    right: Extent | Comparison


def compare(op: str, left: Known | None, right: Known | None) -> Comparison | None:
    """The Comparison of two known integers, or None."""
    if left is None or right is None:
        return None
    return Comparison(
        op,
        constant(left) if isinstance(left, int) else left,
        constant(right) if isinstance(right, int) else right,
    )


_NEGATED = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}


def negate(what: object) -> Comparison | None:
    """The opposite of a simple Comparison (for `else_`); None for what cannot be said."""
    if isinstance(what, Comparison) and what.op in _NEGATED:
        return Comparison(_NEGATED[what.op], what.left, what.right)
    return None


def facts_of(what: object) -> list[Extent]:
    """The polynomials >= 0 that a Comparison states; none for "ne" and for what is no Comparison."""
    if not isinstance(what, Comparison):
        return []
    left, right = what.left, what.right
    if what.op == "and":
        return facts_of(left) + facts_of(right)
    if not isinstance(left, Extent) or not isinstance(right, Extent):
        return []
    difference = right.plus(left, -1)
    table = {
        "lt": [difference.plus(-1)],
        "le": [difference],
        "gt": [difference.times(-1).plus(-1)],
        "ge": [difference.times(-1)],
        "eq": [difference, difference.times(-1)],
    }
    return table.get(what.op, [])


def holds(what: object, values: Mapping[Atom, int]) -> bool | None:
    """Whether a Comparison holds where its free atoms have these values; None if it asks for others."""
    if not isinstance(what, Comparison):
        return None
    if isinstance(what.left, Comparison) or isinstance(what.right, Comparison):
        sides = holds(what.left, values), holds(what.right, values)
        # "and": one side that is known to fail decides; a side about other atoms cannot narrow the set.
        return False if False in sides else (None if sides == (None, None) else True)
    difference = what.right.plus(what.left, -1)
    if any(member.of is None and member not in values for member in difference.atoms()):
        return None
    gap = evaluate(difference, values)
    table = {"lt": gap > 0, "le": gap >= 0, "gt": gap < 0, "ge": gap <= 0, "eq": gap == 0, "ne": gap != 0}
    return table[what.op]


def _tightened(fact: Extent) -> Extent:
    """The strongest constant with which `fact` >= 0 still holds: its other terms have a common divisor."""
    divisor = Extent(fact.terms, 0).divisor()
    return Extent(fact.terms, fact.constant // divisor * divisor) if divisor else fact


def nonnegative(what: Extent, facts: Sequence[Extent] = ()) -> bool:
    """Whether `what` >= 0 is proven by ranges, by up to two of the facts, or by trying every value of few atoms."""
    if what.bounds()[0] >= 0:
        return True
    useful = [_tightened(fact) for fact in facts if fact.terms and fact.terms.keys() & what.terms.keys()]
    reduced = [what.plus(fact, -scale) for fact in useful for scale in _scales(what, fact)]
    if any(rest.bounds()[0] >= 0 for rest in reduced):
        return True
    for rest in reduced:
        for fact in useful:
            if any(rest.plus(fact, -scale).bounds()[0] >= 0 for scale in _scales(rest, fact)):
                return True
    return _everywhere(what, facts, lambda value: value >= 0)


def _scales(what: Extent, fact: Extent) -> set[int]:
    """Positive factors of `fact` that cancel one of its terms in `what`."""
    found = {what.terms[m] // f for m, f in fact.terms.items() if m in what.terms and what.terms[m] % f == 0}
    return {scale for scale in found if scale > 0}


def divisible(what: Extent, divisor: int, facts: Sequence[Extent] = ()) -> bool:
    """Whether `divisor` is proven to divide `what`: by what its atoms are multiples of, by facts such as `n % 8 == 0`,
    or by trying every value of few atoms."""
    if divisor == 1 or what.divisor() % divisor == 0:
        return True
    known = _congruences(facts)
    multiples = {
        next(iter(e.terms))[0]: d for e, d in known if e.constant == 0 and list(map(len, e.terms)) == [1] and
        list(e.terms.values()) == [1]
    }  # fmt: skip
    rests = [what]
    for e, d in known:
        scales = {
            what.terms[m] // f for m, f in e.terms.items() if m in what.terms and what.terms[m] % f == 0
        }
        rests += [what.plus(e, -scale) for scale in scales if scale * d % divisor == 0]
    if any(_divisor(rest, multiples) % divisor == 0 for rest in rests):
        return True
    return _everywhere(what, facts, lambda value: value % divisor == 0)


def _congruences(facts: Iterable[Extent]) -> list[tuple[Extent, int]]:
    """(e, d) for each fact that says d divides e: `-(e % d) >= 0`."""
    found: list[tuple[Extent, int]] = []
    for fact in facts:
        if fact.constant == 0 and len(fact.terms) == 1:
            ((monomial, factor),) = fact.terms.items()
            of = monomial[0].of
            if factor < 0 and len(monomial) == 1 and of is not None and of[0] == "mod":
                found.append((of[1], of[2]))
    return found


def _divisor(what: Extent, multiples: Mapping[Atom, int]) -> int:
    """Extent.divisor, where more is known of some atoms."""
    divisor = what.constant
    for monomial, factor in what.terms.items():
        known = math.prod(math.lcm(member.multiple, multiples.get(member, 1)) for member in monomial)
        divisor = math.gcd(divisor, factor * known)
    return abs(divisor)


def _roots(what: Extent) -> list[Atom]:
    return [a for a in sorted(what.atoms(), key=lambda a: a.serial) if a.of is None]


def _everywhere(what: Extent, facts: Iterable[Extent], holds: Callable[[int], bool]) -> bool:
    """Whether `holds` at every assignment of the free atoms that satisfies the facts about them; False if too many."""
    roots = _roots(what)
    if math.prod(max(a.high - a.low, 0) + 1 for a in roots) > _ENUMERATION_LIMIT:
        return False
    known = [fact for fact in facts if fact.atoms() and all(a.of or a in roots for a in fact.atoms())]
    values: dict[Atom, int] = {}

    def walk(index: int) -> bool:
        if index == len(roots):
            if any(evaluate(fact, values) < 0 for fact in known):
                return True
            return holds(evaluate(what, values))
        root = roots[index]
        for value in range(-(-root.low // root.multiple) * root.multiple, root.high + 1, root.multiple):
            values[root] = value
            if not walk(index + 1):
                return False
        return True

    return walk(0)
