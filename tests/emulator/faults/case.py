"""A right kernel, how it is run and checked, and the faults that are seeded into it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

HEAD = """.version 8.6
.target sm_90a
.address_size 64
"""


@dataclass(frozen=True)
class Fault:
    """`old` becomes `new` in the text; then a finding of this kind is due at an instruction that begins with `where`.

    where   several are separated by " or ", where two parties are to blame and either may be named
    """

    name: str
    old: str
    new: str
    kind: str
    where: str
    count: int = 1


@dataclass(frozen=True)
class Case:
    """`check(text, seed, sanitize)` runs the kernel and asserts that its results are right."""

    name: str
    text: str
    check: Callable[[str, int, bool], None]
    faults: list[Fault] = field(default_factory=list)
    legal: dict[str, tuple[str, str]] = field(default_factory=dict)

    def broken(self, fault: Fault) -> str:
        """The text with the fault in it."""
        assert fault.old in self.text, f"{self.name}: {fault.name} changes nothing"
        return self.text.replace(fault.old, fault.new, fault.count)

    def varied(self, name: str) -> str:
        """A variant of the text that is as right."""
        old, new = self.legal[name]
        assert old in self.text, f"{self.name}: {name} changes nothing"
        return self.text.replace(old, new)
