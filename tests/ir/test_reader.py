"""Text to records: names, scopes, literals, declarations, and the messages for what is wrong."""

from __future__ import annotations

import pytest

from ptxtile.errors import ModuleSyntaxError
from ptxtile.ir import (
    Address,
    Block,
    Directive,
    Float,
    Function,
    GenericSymbol,
    Instruction,
    Integer,
    Label,
    Loc,
    MaskedSymbol,
    Negated,
    Operand,
    Pair,
    Parameter,
    Prototype,
    Register,
    RegisterDeclaration,
    Section,
    Sink,
    Special,
    Symbol,
    Targets,
    Variable,
    Vector,
    parse,
)
from ptxtile.ir.demand import statements

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"
REGISTERS = (
    ".reg .pred p, q; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .f64 %g<9>; .reg .b16 %h<9>;\n"
)


def body(text: str, before: str = "") -> list[Instruction]:
    module = parse(f"{HEAD}{before}.visible .entry k() {{\n{REGISTERS}{text}\n}}\n")
    found = statements(module.function("k").body or ())
    return [statement for statement in found if isinstance(statement, Instruction)]


def operand(text: str) -> Operand:
    """The last operand of the one instruction in `text`."""
    return body(text)[0].operands[-1]


def fault(text: str) -> str:
    with pytest.raises(ModuleSyntaxError) as caught:
        parse(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("add.u32 %r1, %r2, %r3;", Register("%r3", "b32")),
        ("add.u32 %r1, %r2, 7;", Integer(7)),
        ("add.u32 %r1, %r2, -7;", Integer(-7)),
        ("add.u32 %r1, %r2, - 7;", Integer(-7)),
        ("add.u32 %r1, %r2, 7U;", Integer(7, True)),
        ("add.u32 %r1, %r2, 0x1F;", Integer(31)),
        ("add.u32 %r1, %r2, 0b101;", Integer(5)),
        ("add.u32 %r1, %r2, 017;", Integer(15)),
        ("add.u32 %r1, %r2, WARP_SZ;", Integer(32)),
        ("add.u32 %r1, %r2, 2+3*4;", Integer(14)),
        ("add.u32 %r1, %r2, (1 > 0) ? 5 : 6;", Integer(5)),
        ("add.u32 %r1, %r2, (4);", Integer(4)),
        ("add.u32 %r1, %r2, ~0;", Integer(-1)),
        ("add.u32 %r1, %r2, -7/2;", Integer(-3)),
        ("add.u64 %d1, %d2, 0xFFFFFFFFFFFFFFFF;", Integer(2**64 - 1)),
        ("add.u64 %d1, %d2, 0xFFFFFFFFFFFFFFFF+2;", Integer(1, True)),
        ("add.u64 %d1, %d2, (.u64)-1;", Integer(2**64 - 1, True)),
        ("add.f32 %f1, %f2, 0f3F800000;", Float(0x3F800000, 32)),
        ("add.f32 %f1, %f2, 1.5;", Float(0x3FF8000000000000, 64)),
        ("add.f32 %f1, %f2, -.5;", Float(0xBFE0000000000000, 64)),
        ("add.f64 %g1, %g2, 1.0/4.0;", Float(0x3FD0000000000000, 64)),
        ("mov.u32 %r1, %tid.x;", Special("%tid.x")),
        ("ld.global.u32 %r1, [%d1];", Address(Register("%d1", "b64"))),
        ("ld.global.u32 %r1, [%d1+4];", Address(Register("%d1", "b64"), 4)),
        ("ld.global.u32 %r1, [%d1+-4];", Address(Register("%d1", "b64"), -4)),
        ("ld.global.u32 %r1, [%d1+(4+4)*2-1];", Address(Register("%d1", "b64"), 15)),
        ("mov.b64 %d1, {%r1, %r2};", Vector((Register("%r1", "b32"), Register("%r2", "b32")))),
        ("selp.b32 %r1, %r2, %r3, p;", Register("p", "pred")),
        ("setp.eq.and.u32 p, %r2, %r3, !q;", Negated(Register("q", "pred"))),
    ],
)
def test_an_operand_is_its_value(written: str, meant: Operand) -> None:
    assert operand(written) == meant


def test_first_operands() -> None:
    pair, *_ = body("setp.eq.u32 p|q, %r2, %r3;")[0].operands
    vector, *_ = body("mov.b64 {%r1, _}, %d1;")[0].operands
    assert pair == Pair(Register("p", "pred"), Register("q", "pred"))
    assert vector == Vector((Register("%r1", "b32"), Sink()))


def test_a_guard() -> None:
    plain, negated, none = body("@p mov.u32 %r1, 0;\n@!q mov.u32 %r1, 0;\nmov.u32 %r1, 0;")
    assert str(plain.guard) == "@p" and str(negated.guard) == "@!q" and none.guard is None


def test_a_tolerated_order_is_written_in_the_canonical_one() -> None:
    assert str(body("fma.f32.rn %f1, %f2, %f3, %f4;")[0]) == "fma.rn.f32 %f1, %f2, %f3, %f4;"
    assert str(body("add .u32 %r1, %r2, %r3;")[0]) == "add.u32 %r1, %r2, %r3;"


def test_every_instruction_has_its_signature() -> None:
    whole, packed = body("mov.b64 %d1, %d2; mov.b64 %d1, {%r1, %r2};")
    assert whole.signature is not None and whole.signature.operands[1].kind == "value"
    assert packed.signature is not None and packed.signature.operands[1].kind == "vector"


def test_an_inner_scope_hides_an_outer_one_and_ends() -> None:
    text = """
    mov.u32 %r1, 1;
    { .reg .b64 %r<4>; .reg .f32 x; mov.u64 %r1, 2; { mov.f32 x, %f1; mov.u32 %r5, 3; } }
    mov.u32 %r1, 4;"""
    first, inner, deeper, outer, last = body(text)
    assert first.operands[0] == last.operands[0] == Register("%r1", "b32")
    assert inner.operands[0] == Register("%r1", "b64")
    assert deeper.operands == (Register("x", "f32"), Register("%f1", "f32"))
    assert outer.operands[0] == Register("%r5", "b32")


def test_a_label_belongs_to_its_block_and_may_come_later() -> None:
    jump, inner = body("bra later; { bra later; later: } later: ")
    assert jump.operands == inner.operands == (Label("later"),)
    text = f"{HEAD}.entry k() {{ {{ inside: }} bra inside; }}"
    assert fault(text) == "4:30: inside is not declared"


def test_registers_hide_special_registers() -> None:
    assert body(".reg .b32 %tid; mov.u32 %tid, %tid;")[0].operands[1] == Register("%tid", "b32")


def test_a_vector_register_is_its_elements() -> None:
    whole, part = body(".reg .v2 .f32 V; ld.global.v2.f32 V, [%d1]; mov.f32 V.x, V.g;")
    x, y = Register("V.x", "f32"), Register("V.y", "f32")
    assert whole.operands[0] == Vector((x, y))
    assert part.operands == (x, y)


def test_declarations() -> None:
    module = parse(
        HEAD + ".visible .global .align 8 .v2 .f32 a[2][3] = {{1.0}}, b;\n.extern .shared .b8 s[];\n"
    )
    value = Float(0x3FF0000000000000, 64)
    assert module.items == (
        Variable("global", "f32", "a", (2, 3), 8, 2, "visible", ((value,),)),
        Variable("global", "f32", "b", (), 8, 2, "visible"),
        Variable("shared", "b8", "s", (0,), linkage="extern"),
    )


def test_initialisers_with_names() -> None:
    text = ".global .u32 a;\n.global .u64 b[3] = {a+4, generic(a)+8, 0xFF00(generic(a))};\n"
    variable = parse(HEAD + text).items[1]
    assert isinstance(variable, Variable)
    generic = GenericSymbol(Symbol("a", "global", 8))
    masked = MaskedSymbol(0xFF00, GenericSymbol(Symbol("a", "global")))
    assert variable.initial == (Symbol("a", "global", 4), generic, masked)


def test_a_long_list_of_numbers_is_read_like_a_short_one() -> None:
    short = parse(HEAD + ".global .s32 a[3] = {1, -2, 0x10};\n").items[0]
    long = parse(HEAD + f".global .s32 a[9000] = {{{', '.join(['1', '-2', '0x10'] * 3000)}}};\n").items[0]
    assert isinstance(short, Variable) and isinstance(long, Variable)
    assert long.initial == tuple(short.initial or ()) * 3000  # type: ignore[arg-type]


def test_a_header() -> None:
    text = HEAD + (
        ".visible .entry k(.param .u64 .ptr .global .align 16 a, .param .align 64 .b8 m[128]) "
        '.maxntid 128, 1, 1 .pragma "nounroll"; .minnctapersm 2 { ret; }\n.weak .func (.reg .b32 o) f(.reg .b32 i);'
    )
    kernel, function = parse(text).functions
    assert kernel.parameters == (
        Parameter("a", "u64", pointer=True, pointer_space="global", pointer_align=16),
        Parameter("m", "b8", (128,), 64),
    )
    assert kernel.directives == (
        Directive("maxntid", (128, 1, 1)),
        Directive("pragma", ("nounroll",)),
        Directive("minnctapersm", (2,)),
    )
    one = Parameter("i", "b32", space="reg")
    assert function == Function("f", False, (one,), (Parameter("o", "b32", space="reg"),), (), "weak", None)


def test_statements_that_are_no_instruction() -> None:
    text = """.func g() { ret; }
    .entry k() {
    .reg .b32 a, b; .reg .b32 c<2>, d;
    .loc 1 2 3, function_name $L, inlined_at 1 4 5
    .pragma "nounroll";
    t: .branchtargets x, y;
    s: .callprototype _ (.param .b64 _) .noreturn;
    x: { y: }
    }
    .section .debug_str { $L: .b8 1, 2 .b32 .debug_x+4 .b64 $L-x }
    .file 1 "a.cu", 5, 6"""
    module = parse(HEAD + text.replace("{ y: }", "y: { }"))
    assert module.function("k").body[:8] == (  # type: ignore[index]
        RegisterDeclaration("b32", ("a", "b")),
        RegisterDeclaration("b32", ("c",), 2),
        RegisterDeclaration("b32", ("d",)),
        Loc(1, 2, 3, Symbol("$L", "label"), 1, 4, 5),
        Directive("pragma", ("nounroll",)),
        Targets("t", "branchtargets", ("x", "y")),
        Prototype("s", (), (Parameter("_", "b64"),), True),
        module.function("k").body[7],  # type: ignore[index]
    )
    assert module.function("k").body[-1] == Block(())  # type: ignore[index]
    rows = (
        ("$L", "", ()),
        ("", "b8", (1, 2)),
        ("", "b32", (Symbol(".debug_x", "section", 4),)),
        ("", "b64", ((Symbol("$L", "label"), Symbol("x", "label")),)),
    )
    assert module.items[-2:] == (Section(".debug_str", rows), Directive("file", (1, "a.cu", 5, 6)))


def test_head() -> None:
    module = parse(".version 7.8\n.target sm_80, texmode_independent, debug\n")
    assert (module.version, module.target, module.modes) == ("7.8", "sm_80", ("texmode_independent", "debug"))
    assert module.address_size == 64


def test_comments_and_strings_do_not_mix() -> None:
    text = '.pragma "not // a /* comment"; // but this is\n/* and\nthis */ .global .u32 a; /**/'
    assert parse(HEAD + text).items == (
        Directive("pragma", ("not // a /* comment",)),
        Variable("global", "u32", "a"),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1: a module begins with .version and .target; this has no .version and no .target"),
        (".version 8.0\n.global .u32 a;", "1:1: a module begins with .version and .target; this has no .target"),
        (HEAD + "}", "4:1: this } closes nothing"),
        (HEAD + ".entry k() {", "4:12: this { is never closed"),
        (HEAD + ".entry k() { { ret; }", "4:12: this { is never closed"),
        (HEAD + "/* never", "4:1: this comment is never closed"),
        (HEAD + ".foo .u32 a;", "4:1: .foo is no state space, type or linkage"),
        (HEAD + ".global a;", "4:1: .global declares nothing without a type"),
        (HEAD + ".global .shared .u32 a;", "4:9: .shared after .global: one of them is too many"),
        (HEAD + ".global .align 3 .u32 a;", "4:16: an alignment is a power of two, not 3"),
        (HEAD + ".global .u32 a; .shared .u32 a;", "4:30: a is declared twice in the same scope"),
        (HEAD + ".global .u64 a = b;", "4:18: b is no variable or function declared before"),
        (HEAD + ".global .u32 a = 1/0;", "4:18: division by zero in a constant expression"),
        (HEAD + ".global .u32 a = 0x10000000000000000;",
         "4:18: the integer 0x10000000000000000 does not fit in 64 bits"),
        (HEAD + ".global .u32 a = 08;", "4:18: 08 starts with 0, so it is octal, and has a digit that octal has not"),
        (HEAD + ".reg .b32 a;", "4:1: this belongs in the body of a function"),
        (HEAD + "ret;", "4:1: an instruction belongs in the body of a function"),
        (HEAD + ".entry k() { .reg .b99 a; }", "4:19: .b99 is no state space, type or linkage"),
        (HEAD + ".entry k() { .reg .bf16 a; }", "4:19: .bf16 is no state space, type or linkage"),
        (HEAD + ".entry k() { .reg .b32 a<3>, a2; }", "4:30: a2 is declared twice in the same scope"),
        (HEAD + ".entry k() { .reg .b32 a2, a<3>; }", "4:28: a<3> declares a2 a second time in the same scope"),
        (HEAD + ".entry k() { x: x: }", "4:17: x is declared twice in the same scope"),
        (HEAD + ".entry k() {}\n.entry k() {}", "5:8: k is declared twice"),
        (HEAD + ".entry k() {\n\tbra nowhere;\n}", "5:6: nowhere is not declared"),
        (HEAD + ".entry k() { .reg .b32 a;\nadd.u32 a, a a; }", "5:14: 'a' cannot stand here: , or ; is expected"),
        (HEAD + ".entry k() { .reg .b32 a;\nadd.u32 a, a, ; }", "5:15: ';' cannot stand here"),
        (HEAD + ".entry k() { .reg .b32 a;\nmov.u32 a, #; }", "5:12: '#' cannot stand here"),
        (HEAD + ".entry k() { .reg .b32 a;\nmov.u32 a, a\nret;\n}", "6:1: 'ret' cannot stand here: , or ; is expected"),
        (HEAD + ".entry k() {\nret", "5:1: the statement that begins with 'ret' has no end"),
        (HEAD + ".entry k() { .reg .b32 a;\n@a ret;\n}", "5:2: a guard is a predicate register; a is none"),
        (HEAD + ".entry k() { .reg .b32 a;\n mov.u32 a, a+4;\n}",
         "5:2: a is no variable: only the address of one takes an offset outside brackets"),
        (HEAD + ".entry k() { .reg .pred p;\nsetp.eq.u32 p|WARP_SZ, 1, 1; }",
         "5:1: WARP_SZ is a number, where a name belongs"),
        (HEAD + "\0", "4:1: '\\x00' begins no statement"),
        (HEAD + "é", "4:1: '\\xe9' begins no statement"),
        (HEAD + ".global .pred a;", "4:1: a predicate is a register; no variable has the type .pred"),
        (HEAD + ".param .b32 a;", "4:1: a .param variable belongs in a function"),
        (HEAD + ".shared .u32 a = 1;", "4:14: a .shared variable takes no initial value"),
        (HEAD + ".global .u32 a[];", "4:14: a[] has an extent left open, which only an .extern variable may"),
        (HEAD + ".global .u32 a[2] = {1, 2, 3};", "4:14: a has 2 elements where 3 values are given"),
        (HEAD + ".global .u32 a = 1.0;", "4:14: 0d3FF0000000000000 is no value of type .u32"),
        (HEAD + ".global .f32 a = 1;", "4:14: 1 is no value of type .f32"),
        (HEAD + ".entry k() .foo 3 { }", "4:12: .foo is no directive of a function"),
        (HEAD + ".entry k() .maxntid { }", "4:12: .maxntid takes 1 to 3 values, not 0"),
        (HEAD + ".address_size 64", "4:15: a second .address_size"),
        (HEAD + ".global .u32 a;\n.version 8.0", "5:10: a second .version"),
    ],
)  # fmt: skip
def test_messages(text: str, message: str) -> None:
    assert fault(text) == message


def test_a_spelling_that_ptx_does_not_have() -> None:
    assert fault(HEAD + ".entry k() { .reg .f32 f;\n\tfma.f32 f, f, f, f; }").startswith(
        "5:2: fma.f32 is not a PTX form\n"
    )


def test_operands_that_fit_no_signature() -> None:
    message = fault(HEAD + ".entry k() { .reg .f32 f; .reg .b64 d;\nadd.f32 f, f, d; }")
    assert message.startswith("5:15: add.f32 does not take these operands\n") and "b64" in message


def test_an_element_of_an_array_is_an_address() -> None:
    """The assembler takes `a[3]` for the address of the element, with brackets around it or not."""
    head = (
        HEAD
        + ".global .u32 a[8]; .global .v2 .f64 w[4]; .global .u32 one;\n.entry k() { .reg .b64 d; .reg .b32 %r<3>;\n"
    )
    text = str(
        parse(head + "mov.u64 d, a[3]; mov.u64 d, w[1]; ld.global.u32 %r1, a[2]; st.global.u32 a[0], %r1; }")
    )
    for line in (
        "mov.u64 d, a+12;",
        "mov.u64 d, w+16;",
        "ld.global.u32 %r1, [a+8];",
        "st.global.u32 [a], %r1;",
    ):
        assert line in text
    assert fault(head + "mov.u64 d, one[3]; }") == "6:1: one is no array: only an array takes a subscript"
    assert fault(head + "mov.u64 d, d[3]; }") == "6:1: d is no array: only an array takes a subscript"


def test_leading_zeros_of_a_register_of_a_range_do_not_count() -> None:
    text = str(parse(HEAD + ".entry k() { .reg .b32 %r<12>;\nmov.u32 %r01, %r0011; }"))
    assert "mov.u32 %r1, %r11;" in text
    assert fault(HEAD + ".entry k() { .reg .b32 %r<12>;\n.reg .b32 %r01; }") == (
        "5:11: %r01 is declared twice in the same scope"
    )
    assert (
        fault(HEAD + ".entry k() { .reg .b32 %r<12>;\nmov.u32 %r1, %r012; }") == "5:14: %r012 is not declared"
    )


def test_an_offset_of_zero_that_is_written_stays() -> None:
    """Code for a debugger has an addition for it."""
    text = str(parse(HEAD + ".global .u32 a;\n.entry k() { .reg .b64 d; .reg .b32 r;\n"
                     "ld.u32 r, [d]; ld.u32 r, [d+0];\nld.u32 r, [d+0];\nld.u32 r, [d];\nld.global.u32 r, [a+0]; }"))  # fmt: skip
    assert [line.strip() for line in text.splitlines() if "ld." in line] == [
        *(
            "ld.u32 r, [d];",
            "ld.u32 r, [d+0];",
            "ld.u32 r, [d+0];",
            "ld.u32 r, [d];",
            "ld.global.u32 r, [a+0];",
        ),
    ]
    assert parse(text) == parse(str(parse(text)))


def test_the_address_size_is_not_written_where_the_directive_was_not_yet() -> None:
    old = ".version 2.1\n.target sm_20\n"
    assert str(parse(old + ".entry k() { ret; }")).startswith(old + "\n")
    assert ".address_size 64\n" in str(parse(".version 2.3\n.target sm_20\n"))
