"""What is known of run-time integers while tracing: exact polynomials over atoms with ranges, and proofs about them.

An `Extent` is the mathematical value of a run-time integer: a polynomial over atoms (thread indices, loop variables,
launch sizes, quotients and remainders by constants). Arithmetic that could wrap in its dtype gives a fresh atom, so an
extent is never wrong, at worst ignorant. A bool_ keeps the Comparison that made it; blocks turn comparisons into facts,
polynomials known to be >= 0, that the proofs use. A proof that fails means "not proven", never "false".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Union

from ptxtile.dtypes import DType, Scalar
from ptxtile.encoding import integer_range

_ENUMERATION_LIMIT = 1 << 14
_serials = itertools.count()


@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """An integer unknown, compared by identity.

    low, high   inclusive range
    multiple    a divisor that is known to divide it
    scalar      the run-time value, for lowering (None for an atom that only proofs use)
    of          (operation, extent, constant) for a quotient or a remainder: ("div", e, 4)
    """

    name: str
    low: int
    high: int
    multiple: int = 1
    scalar: Scalar | None = None
    of: tuple[str, Extent, int] | None = None
    serial: int = field(default_factory=lambda: next(_serials))

    def __repr__(self) -> str:
        return self.name


Monomial = tuple[Atom, ...]


class Extent:
    """A polynomial with integer coefficients over atoms. Immutable; equal polynomials are equal."""

    __slots__ = ("terms", "constant", "_hash")

    def __init__(self, terms: Mapping[Monomial, int], constant: int) -> None:
        self.terms = {monomial: factor for monomial, factor in terms.items() if factor}
        self.constant = constant
        self._hash: int | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Extent) and self.constant == other.constant and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.constant, frozenset(self.terms.items())))
        return self._hash

    def __repr__(self) -> str:
        words = [f"{factor}*{'*'.join(map(repr, m))}" for m, factor in self.terms.items()]
        return " + ".join([*words, str(self.constant)])

    @property
    def known(self) -> int | None:
        """The value, if it is a constant."""
        return None if self.terms else self.constant

    def plus(self, other: Extent | int, factor: int = 1) -> Extent:
        """self + factor * other"""
        if isinstance(other, int):
            return Extent(self.terms, self.constant + factor * other)
        terms = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            terms[monomial] = terms.get(monomial, 0) + factor * coefficient
        return Extent(terms, self.constant + factor * other.constant)

    def times(self, other: Extent | int) -> Extent:
        """self * other"""
        if isinstance(other, int):
            return Extent({m: f * other for m, f in self.terms.items()}, self.constant * other)
        product = other.times(self.constant)
        for monomial, factor in self.terms.items():
            shifted = {
                tuple(sorted(monomial + m, key=lambda a: a.serial)): f * factor
                for m, f in other.terms.items()
            }
            product = product.plus(Extent({**shifted}, 0)).plus(
                Extent({monomial: factor * other.constant}, 0)
            )
        return product

    def atoms(self) -> set[Atom]:
        """Every atom, those inside quotients and remainders included."""
        found: set[Atom] = set()
        for monomial in self.terms:
            for atom in monomial:
                found.add(atom)
                if atom.of is not None:
                    found |= atom.of[1].atoms()
        return found

    def bounds(self) -> tuple[int, int]:
        """Inclusive interval that holds it."""
        low = high = self.constant
        for monomial, factor in self.terms.items():
            ends = [factor]
            for atom in monomial:
                ends = [end * side for end in ends for side in (atom.low, atom.high)]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def divisor(self) -> int:
        """The greatest number known to divide it (0 for the constant zero)."""
        divisor = self.constant
        for monomial, factor in self.terms.items():
            divisor = math.gcd(divisor, factor * math.prod(atom.multiple for atom in monomial))
        return abs(divisor)


Known = Union[Extent, int]


def constant(value: int) -> Extent:
    """The extent of a known integer."""
    return Extent({}, value)


def atom(name: str, low: int, high: int, *, multiple: int = 1, scalar: Scalar | None = None) -> Extent:
    """The extent of a new unknown in [low, high] (inclusive)."""
    return constant(low) if low == high else Extent({(Atom(name, low, high, multiple, scalar),): 1}, 0)


def of_value(value: object) -> Extent | None:
    """The extent of a Scalar or Python integer; None where nothing is known (floats, variables)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return constant(value)
    if isinstance(value, Scalar):
        if value.value is not None:
            return constant(value.value) if type(value).kind in ("int", "uint") else None  # type: ignore[arg-type]
        if value.extent is None and not value.mutable and type(value).kind in ("int", "uint"):
            value.extent = unknown(value)  # a value never changes, so what is learnt of it stays true
        return value.extent if isinstance(value.extent, Extent) else None
    return None


def unknown(value: Scalar) -> Extent:
    """An extent for a run-time integer of which only the dtype's range is known."""
    low, high = integer_range(type(value))
    return atom(type(value).name, low, high, scalar=value)


def combine(name: str, left: Known | None, right: Known | None, dtype: DType) -> Extent | None:
    """The extent of `left name right` ("add", "sub", "mul", "floordiv", "mod", "shl", "shr", "and"), or None where
    nothing is known or the result could wrap in `dtype`."""
    if left is None or right is None:
        return None
    a = constant(left) if isinstance(left, int) else left
    b = constant(right) if isinstance(right, int) else right
    result = _combine(name, a, b)
    if result is None:
        return None
    low, high = result.bounds()
    least, greatest = integer_range(dtype)
    return result if least <= low and high <= greatest else None


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
        return remainder(a, number)
    if name == "and" and number & (number + 1) == 0 and a.bounds()[0] >= 0:
        return remainder(a, number + 1)
    return None


_quotients: dict[tuple[Extent, int], Extent] = {}
_remainders: dict[tuple[Extent, int], Extent] = {}
_MEMO_LIMIT = 4096


def _split(a: Extent, divisor: int) -> tuple[Extent, Extent]:
    """a == whole * divisor + rest, with every term that `divisor` divides in `whole`."""
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, factor in a.terms.items():
        (whole if factor % divisor == 0 else rest)[monomial] = factor
    shift, left = divmod(a.constant, divisor)
    return Extent({m: f // divisor for m, f in whole.items()}, shift), Extent(rest, left)


def quotient(a: Extent, divisor: int) -> Extent:
    """floor(a / divisor), divisor > 0."""
    whole, rest = _split(a, divisor)
    low, high = rest.bounds()
    if low // divisor == high // divisor:
        return whole.plus(low // divisor)
    key = rest, divisor
    found = _quotients.get(key)
    if found is None:
        made = Atom(f"({rest})/{divisor}", low // divisor, high // divisor, of=("div", rest, divisor))
        found = Extent({(made,): 1}, 0)
        _remember(_quotients, key, found)
    return whole.plus(found)


def remainder(a: Extent, divisor: int) -> Extent:
    """a mod divisor, in [0, divisor)."""
    rest = _split(a, divisor)[1]
    low, high = rest.bounds()
    if low // divisor == high // divisor:
        return rest.plus(-(low // divisor) * divisor)
    key = rest, divisor
    found = _remainders.get(key)
    if found is None:
        common = math.gcd(rest.divisor(), divisor)
        made = Atom(f"({rest})%{divisor}", 0, divisor - 1, max(common, 1), of=("mod", rest, divisor))
        found = Extent({(made,): 1}, 0)
        _remember(_remainders, key, found)
    return found


def _remember(memo: dict[tuple[Extent, int], Extent], key: tuple[Extent, int], found: Extent) -> None:
    if len(memo) >= _MEMO_LIMIT:
        memo.clear()
    memo[key] = found


def recombined(what: Extent) -> Extent:
    """The same value with `d * (e / d) + e % d` written as `e` wherever both stand with matching factors."""
    for monomial, factor in what.terms.items():
        if len(monomial) != 1 or monomial[0].of is None or monomial[0].of[0] != "mod":
            continue
        _operation, inner, divisor = monomial[0].of
        whole = _quotients.get((inner, divisor))
        if whole is not None and all(what.terms.get(m) == factor * divisor for m in whole.terms):
            rest = Extent(
                {m: f for m, f in what.terms.items() if m != monomial and m not in whole.terms}, what.constant
            )
            return recombined(rest.plus(inner, factor))
    return what


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


def nonnegative(what: Extent, facts: Sequence[Extent] = ()) -> bool:
    """Whether `what` >= 0 is proven by ranges, by up to two of the facts, or by trying every value of few atoms."""
    if what.bounds()[0] >= 0:
        return True
    useful = [fact for fact in facts if fact.terms and fact.terms.keys() & what.terms.keys()]
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
    """Whether `divisor` is proven to divide `what`."""
    if divisor == 1 or what.divisor() % divisor == 0:
        return True
    return _everywhere(what, facts, lambda value: value % divisor == 0)


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


def evaluate(what: Extent, values: Mapping[Atom, int]) -> int:
    """The value of an extent where its free atoms have these values."""
    total = what.constant
    for monomial, factor in what.terms.items():
        for member in monomial:
            factor *= _value(member, values)
        total += factor
    return total


def _value(member: Atom, values: Mapping[Atom, int]) -> int:
    if member.of is None:
        return values[member]
    operation, inner, divisor = member.of
    value = evaluate(inner, values)
    return value // divisor if operation == "div" else value % divisor
