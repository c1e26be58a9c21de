"""Names and what they mean in one scope of a text: a module, a function body, a block (PTX ISA 4.3, 5.4, 7.1)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Optional, Union

from ptxtile.ir import constant
from ptxtile.ir.constant import Fault
from ptxtile.ir.operand import (
    Integer,
    Label,
    Operand,
    Register,
    Selected,
    Sink,
    Special,
    Symbol,
    Vector,
)
from ptxtile.ir.scan import Scanner
from ptxtile.ir.words import Guards, Operands, Shapes, Words

Named = Union[Register, Symbol, Label, Vector]

_DIGITS = "0123456789"
_SINK = Sink()
# A vector register's elements: position, and colour (5.4.2).
_ELEMENTS = ("xyzw", "rgba")
# b0 to b3 and h0, h1 choose one part of a register; the SIMD video instructions choose two or four (9.7.20).
_PART = re.compile(r"b[0-7]{1,4}|h[0-3]{1,2}")


class Scope:
    """One scope. `special` says whether a name is a special register."""

    __slots__ = (
        "__weakref__",
        "declared",
        "externs",
        "fresh",
        "guards",
        "labels",
        "numbered",
        "operands",
        "parent",
        "prototypes",
        "ranges",
        "shapes",
        "sizes",
        "special",
        "words",
    )

    def __init__(self, parent: Optional[Scope], special: Callable[[str], bool], scanner: Scanner) -> None:
        self.parent = parent
        self.special = special
        self.declared: dict[str, Named] = {}
        self.ranges: dict[str, tuple[int, str, int]] = {}
        self.numbered: dict[str, int] = {}
        self.fresh: list[str] = []
        self.sizes: dict[str, int] = {}
        self.externs: set[str] = set()
        self.labels: set[str] = set()
        self.prototypes: set[str] = set()
        self.words = Words(self)
        self.shapes = Shapes(self.words)
        self.operands = Operands(self.words, scanner)
        self.guards = Guards(self.operands)

    # ---- declaring

    def declare(self, name: str, meaning: Named, start: int) -> None:
        """Give `name` a meaning in this scope; a second one is a Fault."""
        require_name(name, start)
        if (
            name in self.declared
            or name in self.labels
            or (self.ranges and self.numbered_register(name) is not None)
        ):
            raise Fault(f"{name} is declared twice in the same scope", start)
        self.declared[name] = meaning
        if name[-1] in _DIGITS:
            self.fresh.append(name)
        if self.words:
            self._forget()

    def mark(self, name: str, meaning: Named, start: int) -> None:
        """What stands before a colon, once in a scope."""
        require_name(name, start)
        if name in self.declared:
            raise Fault(f"{name} is declared twice in the same scope", start)
        self.declared[name] = meaning

    def _forget(self) -> None:
        for memo in (self.words, self.shapes, self.operands, self.guards):
            memo.clear()

    def declare_variable(self, name: str, space: str, linkage: str, start: int, element: int = 0) -> None:
        """Declare a variable; one that was `.extern` may be declared again.

        `element` is the size in bytes of an element, if the variable is an array.
        """
        if name in self.externs:
            del self.declared[name]
        self.declare(name, Symbol(name, space), start)
        if element:
            self.sizes[name] = element
        if linkage == "extern":
            self.externs.add(name)
        else:
            self.externs.discard(name)

    def register(self, name: str, type_: str, vector: int, start: int) -> None:
        """Declare one register, or a vector of them."""
        self.declare(name, _register(name, type_, vector), start)

    def range(self, prefix: str, count: int, type_: str, vector: int, start: int) -> None:
        """Declare `prefix<count>`: prefix0 to prefix(count-1)."""
        if prefix in self.ranges:
            raise Fault(f"{prefix}<{count}> is declared twice in the same scope", start)
        self._number()
        if self.numbered.get(prefix, count) < count:
            name = f"{prefix}{self.numbered[prefix]}"
            raise Fault(f"{prefix}<{count}> declares {name} a second time in the same scope", start)
        self.ranges[prefix] = (count, type_, vector)
        if self.words:
            self._forget()

    def _number(self) -> None:
        """Enter the names with a number at the end that were declared since the last range."""
        for name in self.fresh:
            prefix, index = _split(name)
            if _is_index(index):
                self.numbered[prefix] = min(int(index), self.numbered.get(prefix, 1 << 62))
        self.fresh.clear()

    # ---- looking up

    def meaning(self, text: str) -> Operand:
        """What a word or a literal is here; a Fault if it is nothing."""
        if text[0].isdigit() or text[0] in "-.":
            return constant.number(text)
        if text == "_":
            return _SINK
        if text == "WARP_SZ":
            return Integer(32)
        found = self.find(text)
        if found is not None:
            return found
        if self.special(text):
            return Special(text)
        base, dot, part = text.partition(".")
        if dot:
            return self._part(text, base, part)
        raise Fault(f"{text} is not declared")

    def _own(self, name: str) -> Optional[Named]:
        """What this scope itself says of a name, or None."""
        found = self.declared.get(name) or self.numbered_register(name)
        if found is None and name in self.prototypes:
            return Symbol(name, "proto")
        return Label(name) if found is None and name in self.labels else found

    def element(self, name: str) -> int:
        """The bytes of an element of the array that the name means here; 0 if it means no array."""
        scope: Optional[Scope] = self
        while scope is not None:
            if scope._own(name) is not None:
                return scope.sizes.get(name, 0)
            scope = scope.parent
        return 0

    def find(self, name: str) -> Optional[Named]:
        """The nearest declaration of a name, or None."""
        scope: Optional[Scope] = self
        while scope is not None:
            found = scope._own(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def numbered_register(self, name: str) -> Optional[Named]:
        """The register of that name of a range declared in this scope itself, or None."""
        prefix = name.rstrip(_DIGITS)
        found = self.ranges.get(prefix)
        if found is None:
            return None
        count, type_, vector = found
        digits = name[len(prefix) :]
        if not digits or (len(digits) > 9 and not _is_index(digits)) or int(digits) >= count:
            return None
        if digits[0] == "0" and len(digits) > 1:  # %r01 is %r1
            name = f"{prefix}{int(digits)}"
        return Register(name, type_) if vector == 1 else _register(name, type_, vector)

    def _part(self, text: str, base: str, part: str) -> Operand:
        found = self.find(base)
        if isinstance(found, Vector):
            for names in _ELEMENTS:
                at = names.find(part)
                if len(part) == 1 and 0 <= at < len(found.elements):
                    return found.elements[at]
            raise Fault(f"{base} has {len(found.elements)} elements; {text} is none of them")
        if isinstance(found, Register) and _PART.fullmatch(part):
            return Selected(found, part)
        if found is None:
            raise Fault(f"{text} is not declared")
        raise Fault(f"{base} has no part .{part}")


def require_name(name: str, start: int) -> None:
    """A Fault for a word that may not be declared."""
    if "." in name or ":" in name or name == "_" or name == "WARP_SZ":
        raise Fault(f"{name} is no name", start)


def _split(name: str) -> tuple[str, str]:
    """`%r12` is number 12 of the range `%r`: all digits at the end count, as for the assembler."""
    prefix = name.rstrip(_DIGITS)
    return prefix, name[len(prefix) :]


def _is_index(digits: str) -> bool:
    """Whether digits may number a register of a range: leading zeros do not count, for the assembler."""
    return digits.isdigit() and len(digits.lstrip("0")) < 10


def _register(name: str, type_: str, vector: int) -> Union[Register, Vector]:
    """A vector register is the brace group of its elements, however it is written."""
    if vector == 1:
        return Register(name, type_)
    return Vector(tuple(Register(f"{name}.{part}", type_) for part in "xyzw"[:vector]))
