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


QUICK = [
    ".global .u32 deep[2][2][2] = {{{1,2}, {3}}, {{0x10}}};" + "// long" * 60,
    ".global .u32 deep[2][300] = {{" + "1," * 290 + "1}, {}};",
    ".global .u32 deep[300] = {" + "1," * 290 + "};",
    ".global .u32 deep[300] = {" + "1," * 290 + ",1};",
    ".global .u32 deep[300] = {" + "1," * 290 + "{1};",
    ".global .u32 deep[300] = {" + "1," * 290 + "1}};",
    ".global .u32 deep[300] = {" + "1," * 290 + "1 2};",
    ".global .u32 deep[300] = {" + "1," * 290 + "0x11111111111111111};",
    ".global .u32 deep[300] = " + "{" * 70 + "1," * 290 + "1" + "}" * 70 + ";",
    ".visible .func (.param .u64 r1) f (.param .u64 a, .param .align 8 .b8 b[16]);",
    ".visible .func (.param .u64 r2) g (.param .u64 c, .param .align 8 .b8 d[16]);",
    ".visible .func (.param .u64 r2) g (.param .u64 c, .param .align 7 .b8 d[16]);",
    ".func h (.reg .u32 a, .reg .u32 b) .noreturn;",
    ".func i (.reg .u32 a, .reg .u32 a) .noreturn;",
    ".entry j (.param .u64 .ptr .global .align 8 a) .maxntid 1, 2 { ret; }",
    ".entry l (.param .u64 .ptr .global .align 4 b) .maxntid 1, 2 { ret; }",
    ".entry l2 (.param .u64 .ptr .global .align 4 b) .maxntid 1, x { ret; }",
    ".section .debug_x {\nq:\n.b8 1\n.b32 .debug_y+4\n.b64 q, q+1, 3\n.b8 1,2 , -3 .b8 4\n.b32 q-q\n\n.b8 1\n}",
    ".section .debug_x { .b8 1,\n2\n.b8 }",
    ".section x { .b8 09\n}",
    ".entry m () {\n.loc 1 2 3\n.loc 1 2 0\n.loc 01 2 0\n.loc 1 2 3, function_name s, inlined_at 4 5 6\nret; }",
    ".entry m2 () {\n.loc 1 2 3, function_name s+16 , inlined_at 4 5 6\n.loc 1 2 3, inlined_at 4 5 6, function_name s\nret; }",
    ".entry n () {\n.reg .b32 a; .reg .b32 b<3>; .reg .b32 c[3]; .reg .b32 d; .reg .pred a; .reg .f16x2 z; .reg .b32 b1;\n}",
]


@pytest.mark.parametrize("item", QUICK)
def test_what_is_read_without_the_grammar_is_read_the_same(item: str) -> None:
    text = f".version 8.0\n.target sm_90\n{item}\n"
    assert outcome(text, {}) == outcome(text, NoPlans())
    assert outcome(text + text[28:], {}) == outcome(text + text[28:], NoPlans())


def test_the_whole_grammar_says_where_it_stops() -> None:
    with pytest.raises(ModuleSyntaxError) as caught:
        reader.parse_whole(FRAME.format("add.u32 %r1 %r1;"))
    assert str(caught.value) == "6:13: '%r1' cannot stand here: , or ; is expected"
