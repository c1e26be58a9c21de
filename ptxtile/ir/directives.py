"""Performance directives of functions: which there are, with which values, and which go together (PTX ISA 11.4)."""

from __future__ import annotations

from collections.abc import Sequence

from ptxtile.ir import module as m, syntax
from ptxtile.ir.constant import Fault

_DIRECTIVES = {
    "maxntid": (1, 3),
    "reqntid": (1, 3),
    "reqnctapercluster": (1, 3),
    "minnctapersm": (1, 1),
    "maxnctapersm": (1, 1),
    "maxnreg": (1, 1),
    "maxclusterrank": (1, 1),
    "abi_preserve": (1, 1),
    "abi_preserve_control": (1, 1),
    "explicitcluster": (0, 0),
    "blocksareclusters": (0, 0),
    "noreturn": (0, 0),
}


# What stands at a .func or a prototype; all others at an .entry.
_OF_FUNCTIONS = frozenset(["noreturn", "abi_preserve", "abi_preserve_control"])
_POSITIVE = frozenset(["maxntid", "reqntid", "minnctapersm", "maxnreg"])
_CONFLICTS = (("maxntid", "reqntid"), ("maxclusterrank", "reqnctapercluster"))


def directives(nodes: Sequence[syntax.DirectiveNode], entry: bool, returns: bool) -> tuple[m.Directive, ...]:
    """The performance directives of one function, which must go together."""
    found = tuple(map(directive, nodes))
    starts = {each.name: each.start for each in nodes}
    for name, start in starts.items():
        if name != "pragma" and (name in _OF_FUNCTIONS) == entry:
            raise Fault(f".{name} is for {'a .func' if entry else 'an .entry'}", start)
    if returns and "noreturn" in starts:
        raise Fault(".noreturn at a function that returns a value", starts["noreturn"])
    for one, other in _CONFLICTS:
        if one in starts and other in starts:
            raise Fault(f".{one} and .{other} exclude each other", max(starts[one], starts[other]))
    if "blocksareclusters" in starts and not {"reqntid", "reqnctapercluster"} <= starts.keys():
        raise Fault(".blocksareclusters needs .reqntid and .reqnctapercluster", starts["blocksareclusters"])
    return found


def directive(node: syntax.DirectiveNode) -> m.Directive:
    """A performance directive or .pragma (11.4)."""
    if node.name != "pragma":
        if node.name not in _DIRECTIVES:
            raise Fault(f".{node.name} is no directive of a function", node.start)
        low, high = _DIRECTIVES[node.name]
        if not low <= len(node.values) <= high:
            wanted = str(low) if low == high else f"{low} to {high}"
            raise Fault(f".{node.name} takes {wanted} values, not {len(node.values)}", node.start)
        least = int(node.name in _POSITIVE)
        for value in node.values:
            if not isinstance(value, int) or not least <= value < 1 << 32:
                raise Fault(f"a value of .{node.name} is an integer of 32 bits from {least}", node.start)
    return m.Directive(node.name, node.values)
