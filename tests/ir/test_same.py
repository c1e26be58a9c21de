"""The grammar is the truth: the scanner and the plans find what it finds in a whole text, or the reader is wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, strategies as st

from ptxtile.errors import ModuleSyntaxError
from ptxtile.ir import parse, reader, syntax, write
from ptxtile.ir.constant import Fault
from ptxtile.ir.instructions import Context
from ptxtile.ir.plan import Plan
from ptxtile.ir.reading import Reading

PLACES = {"start", "end"}


class NoPlans(dict[str, Plan]):
    """A memo that forgets: every statement goes to the grammar."""

    def __setitem__(self, key: str, value: Plan) -> None:
        pass


def bare(node: object) -> object:
    """A node without its offsets in the text."""
    fields = getattr(node, "_fields", None)
    if fields is not None:
        named = [(name, bare(getattr(node, name))) for name in fields if name not in PLACES]
        return (type(node).__name__, *named)
    if isinstance(node, tuple):
        return tuple(map(bare, node))
    return node


def pieces(text: str) -> list[object]:
    """The node of every piece the scanner cuts, each parsed by the grammar's `statement`."""
    shared, found = reader.context(), []

    def statement(piece: str) -> object:
        found.append(shared.statement(piece))
        return found[-1]

    def report(fault: Fault) -> None:
        raise fault

    Reading(text, Context(shared.scanner, statement, NoPlans(), quick=False), report).read()
    return [bare(node) for node in found]


def whole(text: str) -> list[object]:
    """The same by the grammar's `module` alone."""
    module = reader.parse_whole(text)
    return [bare(node) for node in flat((*module.head, *module.items))]


def flat(nodes: tuple[object, ...]) -> Iterator[object]:
    for node in nodes:
        if isinstance(node, syntax.FunctionNode):
            yield node.header
            if node.body is not None:
                yield from flat(node.body.pieces)
        elif isinstance(node, syntax.BodyNode):
            yield from flat(node.pieces)
        else:
            yield node


def test_the_scanner_cuts_what_the_grammar_finds(program: str) -> None:
    assert pieces(program) == whole(program)


def test_plans_read_what_the_grammar_reads(program: str) -> None:
    shared = reader.context()
    shared.plans.clear()
    first, second = parse(program), parse(program)

    def report(fault: Fault) -> None:
        raise fault

    assert (
        first
        == second
        == Reading(program, Context(shared.scanner, shared.statement, NoPlans(), quick=False), report).read()
    )


OPERANDS = [
    "%r1",
    "5",
    "-5",
    "0x1F",
    "WARP_SZ",
    "1.5",
    "V.x",
    "%tid.x",
    "4+4",
    "(4)",
    "_",
    "%r1.b0",
    "buffer",
    "end",
]
SHAPES = [
    "add.u32 %r0, {}, {};",
    "mov.b64 %d0, {{{}, {}}};",
    "ld.shared.u32 %r0, [{}+{}];",
    "ld.shared.u32 %r0, [{}];",
    "st.shared.u32 [{}],{};",
    "setp.eq.u32 {}|{}, %r1, %r1;",
    "setp.eq.and.u32 p, %r1, {}, !{};",
    "@{} bra {};",
    "call ({}), {};",
    "mov.u64 %d0, {}+{};",
]
FRAME = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k() {{
.reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred p; .reg .v2 .f32 V; .shared .b8 buffer[64];
{}
end: ret; }}
"""


def outcome(text: str, plans: dict[str, Plan]) -> str:
    shared = reader.context()
    found: list[str] = []

    def report(fault: Fault) -> None:
        found.append(f"{fault.position}: {fault.message}")

    quick = not isinstance(plans, NoPlans)
    module = Reading(text, Context(shared.scanner, shared.statement, plans, quick=quick), report).read()
    return "\n".join([write(module), *found])


@given(st.sampled_from(SHAPES), st.lists(st.tuples(*[st.sampled_from(OPERANDS)] * 2), min_size=2, max_size=5))
def test_an_earlier_statement_never_changes_the_meaning_of_a_later_one(
    shape: str, fills: list[tuple[str, str]]
) -> None:
    text = FRAME.format("\n".join(shape.format(*fill) for fill in fills))
    assert outcome(text, {}) == outcome(text, NoPlans())


def test_a_long_list_is_what_the_grammar_reads() -> None:
    elements = [
        "1",
        "-2",
        "0x1F",
        "here",
        "here+4",
        "generic(here)",
        "0xFF(here)",
        "3+4",
        "(5)",
        "WARP_SZ",
    ] * 200
    text = f".version 8.0\n.target sm_90\n.global .u64 here;\n.global .u64 list[2000] = {{{', '.join(elements)}}};\n"
    assert len(text) > 4096
    assert outcome(text, {}) == outcome(text, NoPlans())
    assert "\n4:" not in outcome(text, {})


def test_the_whole_grammar_says_where_it_stops() -> None:
    with pytest.raises(ModuleSyntaxError) as caught:
        reader.parse_whole(FRAME.format("add.u32 %r1 %r1;"))
    assert str(caught.value) == "6:13: '%r1' cannot stand here: , or ; is expected"
