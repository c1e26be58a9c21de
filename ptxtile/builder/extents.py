"""Exact integer polynomials over the run-time unknowns of a trace: `Extent` over `Atom`s.

An extent is the mathematical value of a run-time integer, written with thread indices, loop variables, launch sizes,
and quotients and remainders of extents by constants. Nothing here wraps; `ranges` decides when an extent may stand for
a value.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ptxtile.dtypes import Scalar

_serials = itertools.count()


@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """An integer unknown, compared by identity.

    low, high   inclusive range
    multiple    a divisor that is known to divide it
    scalar      the run-time value, for lowering (None for an atom that only proofs use)
    of          (operation, extent, constant) for a quotient or a remainder: ("div", e, 4)
    exact       what it would be had its arithmetic not wrapped, where it may have
    """

    name: str
    low: int
    high: int
    multiple: int = 1
    scalar: Scalar | None = None
    of: tuple[str, Extent, int] | None = None
    exact: Extent | None = None
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


def constant(value: int) -> Extent:
    """The extent of a known integer."""
    return Extent({}, value)


def atom(name: str, low: int, high: int, *, multiple: int = 1, scalar: Scalar | None = None) -> Extent:
    """The extent of a new unknown in [low, high] (inclusive)."""
    return constant(low) if low == high else Extent({(Atom(name, low, high, multiple, scalar),): 1}, 0)


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
