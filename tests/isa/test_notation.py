"""The notation: what each sign of it means, and what is refused, with its place."""

from __future__ import annotations

import pytest

from isa.table_text import form, lines, read
from ptxtile.errors import NotationError
from ptxtile.isa import notation

HEAD = 'instruction op "Test" 9.7.1;\nsince ptx 1.0;\nout d : type;  a, b, c : type;\n'


def spells(text: str, spelling: str) -> bool:
    found = read(text, spelling)
    return bool(found) and found[0].canonical


def counts(text: str, spelling: str) -> list[int]:
    return [len(each.operands) for each in form(text, spelling).signatures]


def test_slots_words_and_options() -> None:
    text = HEAD + ".rnd = { .rn, .rz };\nop.rnd{.sat}.f32 d, a, b;"
    assert spells(text, "op.rn.f32") and spells(text, "op.rz.sat.f32")
    assert not read(text, "op.f32") and not read(text, "op.rn") and not read(text, "op.rm.f32")


def test_group_sets_override_the_instructions() -> None:
    text = HEAD + ".t = { .u32 };\nop.t d, a;\n---\n.t = { .f32 };\nop.x.t d, a;"
    assert spells(text, "op.u32") and spells(text, "op.x.f32")
    assert not read(text, "op.f32") and not read(text, "op.x.u32")


def test_statements_after_a_line_hold_for_it_alone() -> None:
    text = HEAD + "op.u32 d, a;\n  since ptx 8.0, sm_90;\nop.s32 d, a;"
    assert form(text, "op.u32").targets["sm_90"] == "8.0"
    assert form(text, "op.s32").targets["sm_75"] == "6.3"


def test_optional_operands_make_signatures() -> None:
    assert counts(HEAD + "op.u32 d, a{, b{, c}};", "op.u32") == [2, 3, 4]


def test_conditions_may_ask_for_operands() -> None:
    text = HEAD + "op.u32{.x} d, a{, b};\nwhere .x <-> b;\nsince ptx 8.0 when b;"
    assert counts(text, "op.u32") == [2] and counts(text, "op.u32.x") == [3]
    assert form(text, "op.u32.x").targets["sm_75"] == "8.0"


def test_pairs_negation_and_sinks() -> None:
    text = HEAD + "op.u32 p{|q}, a, {!}n;\nout p, q : .pred sink;  n : .pred;"
    one, two = form(text, "op.u32").signatures
    assert (one.operands[0].kind, two.operands[0].kind) == ("value", "pair")
    assert [each.sink for each in two.operands[0].elements] == [True, True]
    assert one.operands[2].negatable and not one.operands[1].negatable


def test_brackets() -> None:
    text = HEAD + "op.u32 d, [x, {a, }v];\n[x] : .global;  v : .s32[2];"
    one, two = form(text, "op.u32").signatures
    assert [each.kind for each in one.operands[1].elements] == ["vector"]
    assert [each.kind for each in two.operands[1].elements] == ["value", "vector"]
    assert one.operands[1].space == ".global" and one.operands[1].elements[0].length == 2


def test_vectors_by_length_and_written_out() -> None:
    text = HEAD + ".vec = { .v2, .v4 };\nop{.vec}.u32 d, {a, b};\nout d : type[len(.vec)];"
    assert form(text, "op.u32").signatures[0].operands[0].kind == "value"
    wide = form(text, "op.v4.u32").signatures[0].operands
    assert (wide[0].length, wide[1].length, [each.name for each in wide[1].elements]) == (4, 2, ["a", "b"])


def test_last_type_double_and_when() -> None:
    text = (
        HEAD + ".t = { .u16, .u32 };\nop.wide.t.cc d, a, b;\nout d : double(.t);  b : .u64 when .t == .u32;"
    )
    assert [each.type for each in form(text, "op.wide.u16.cc").signatures[0].operands] == [
        ".u32",
        ".u16",
        ".u16",
    ]
    assert [each.type for each in form(text, "op.wide.u32.cc").signatures[0].operands] == [
        ".u64",
        ".u32",
        ".u64",
    ]


def test_attributes() -> None:
    text = (
        HEAD + "op.u32 d, n, m, r;\nn : imm .u32 range(-1, 0x1f);  m : .u32 among(4, 8) imm;  r : .u32 reg;"
    )
    d, n, m, r = form(text, "op.u32").signatures[0].operands
    assert (n.register, n.immediate, n.bounds, m.choices) == (False, True, (-1, 31), (4, 8))
    assert (d.immediate, r.immediate, r.register, d.role, r.role) == (False, False, True, "out", "in")


def test_labels_functions_lists() -> None:
    text = HEAD + "op.u32 (x), f, l, q;\nf : function;  l : label;  q : prototype;"
    assert [each.kind for each in form(text, "op.u32").signatures[0].operands] == [
        "list", "function", "label", "prototype",
    ]  # fmt: skip


def test_part_selectors() -> None:
    text = HEAD + ".sel = { .b0, .h1 };\nop.u32 d.sel, a{.sel};"
    d, a = form(text, "op.u32").signatures[0].operands
    assert (d.selector, d.selected, a.selector, a.selected) == (("b0", "h1"), True, ("b0", "h1"), False)


def test_what_may_be_left_out() -> None:
    text = HEAD + ".scope = { .cta, .gpu };\n.op = { .x, .y };\nop{.aligned}?{.scope = .gpu}?{.op}?.u32 d, a;"
    assert spells(text, "op.aligned.cta.x.u32")
    [found] = read(text, "op.x.u32")
    assert (found.canonical, found.spelling) == (False, "op.aligned.gpu.x.u32")
    [found] = read(text, "op.aligned.cta.u32")
    assert (found.canonical, found.spelling) == (False, "op.aligned.cta.u32")


def test_one_slot_twice_has_one_value() -> None:
    text = HEAD + ".t = { .u16, .u32 };\nop.t.t d, a;"
    assert spells(text, "op.u16.u16") and not read(text, "op.u16.u32")


def test_alternatives_carry_their_version() -> None:
    text = HEAD + "op.u32 d, a;\nsince ptx 8.6, sm_100a | sm_103a | ptx 8.8, sm_100f;"
    found = form(text, "op.u32").targets
    assert (found["sm_100a"], found["sm_103a"], found["sm_100f"]) == ("8.6", "8.8", "8.8")
    assert "sm_100" not in found and "sm_120a" not in found


def test_removal() -> None:
    text = HEAD + "op.u32 d, a;\nremoved ptx 6.4, sm_70;"
    [signature] = form(text, "op.u32").signatures
    assert (signature.targets["sm_70"], signature.removed["sm_70"]) == ("6.0", "6.4")
    assert "sm_35" not in signature.removed
    assert "sm_80" not in signature.targets  # it came with PTX 7.0, when the form was gone


def test_functions() -> None:
    text = HEAD + (
        ".s = { .m8n8k4, .m16n8k16 };\n.t = { .u8, .s8, .u16, .s32 };\n.dim = { .1d, .a2d };\nop{.s}{.dim}.t d, a;\n"
        "where .s -> m(.s) * n(.s) / 8 + k(.s) - 1 == 31 and bits(.t) <= 16;\nwhere .dim -> dim(.dim) == 2;\n"
        "where not .s -> covers(.s32, .t);"
    )
    assert (
        spells(text, "op.m16n8k16.u16")
        and not read(text, "op.m8n8k4.u8")
        and not read(text, "op.m16n8k16.s32")
    )
    assert spells(text, "op.a2d.u8") and not read(text, "op.1d.u8")


def test_a_slot_of_another_group_is_absent() -> None:
    text = (
        HEAD
        + "where .ss in { absent, .global };\n---\n.ss = { .global, .local };\nop{.ss}.u32 d, a;\n---\nop.nc.u32 d, a;"
    )
    assert spells(text, "op.nc.u32") and spells(text, "op.global.u32") and not read(text, "op.local.u32")


ORDER = HEAD + ".dst = { .f32, .u32 };\n.src = { .s32 };\nop.mode{.sat}.dst.src.sync d, a;\npinned .mode;"


@pytest.mark.parametrize(
    ("spelling", "taken"),
    [
        ("op.mode.f32.sat.s32.sync", True),
        ("op.mode.sync.sat.f32.s32", True),
        ("op.mode.s32.f32.sync", False),
        ("op.f32.mode.s32.sync", False),
        ("op.mode.sat.sat.f32.s32.sync", False),
    ],
)
def test_order(spelling: str, taken: bool) -> None:
    """Types keep their order among themselves, pinned modifiers their place; all else is free."""
    assert bool(read(ORDER, spelling)) is taken


def test_the_instructions_name_is_pinned() -> None:
    text = 'instruction op.bulk.sync "T" 9.7.1;\nop.bulk.sync.x a;\na : .u32;'
    assert read(text, "op.bulk.x.sync") and not read(text, "op.x.bulk.sync")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('instruction op "T" 9.7.1;\nop.x d a;', "t.isa:2:8: unexpected 'a'; here may stand "),
        (
            'instruction op "T" 9.7.1;\nop.x d, a',
            "t.isa:2:9: unexpected the end of the file; here may stand ",
        ),
        ('instruction op "T" 9.7.1;\nop.x d ° a;', "t.isa:2:8: unexpected '°'; here may stand "),
    ],
)
def test_syntax_errors_say_where(text: str, message: str) -> None:
    with pytest.raises(NotationError) as error:
        notation.parse(text, "chapter", "t.isa")
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + ".x = { .a };\n.x = { .b };", "t.isa:5:1: the set .x is defined twice in one scope"),
        (HEAD + ".x = { .a, .a };", "t.isa:4:1: the set .x has a value twice"),
        (HEAD + "oq.u32 d;", "t.isa:4:1: a line of op begins with 'oq'"),
        (HEAD + ".s = { .cta };\nop{.s = .gpu}?.u32 d;", "t.isa:5:1: .gpu is no value of .s"),
        (
            HEAD + "---\n.s = { .a };\nop.s.u32 d;\n---\nop.s.x.u32 d;",
            "t.isa:8:1: .s is a set in another group of the instruction, but not here",
        ),
    ],
)
def test_faults_of_scope(text: str, message: str) -> None:
    with pytest.raises(NotationError) as error:
        lines(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "op.u32 d, z;", "t.isa:4:1: the operand z is not declared"),
        (HEAD + "op.u32 d, [z];", "t.isa:4:1: the operand [z] is not declared"),
        (HEAD + "op.x d, a;", "t.isa:3:1: `type` stands for the last type of a spelling that has none"),
        (HEAD + "op.u32 d, a;\na : .nope;", "t.isa:5:1: a has the type .nope, which is none, in op.u32 d, a"),
        (HEAD + "op.u32 d, a;\na : .u32[bits(.x)];", "t.isa:5:1: a would have 0 elements"),
        (HEAD + "op.u32 d, a.sel;", "t.isa:4:1: there is no set .sel of part selectors"),
    ],
)
def test_faults_of_operands(text: str, message: str) -> None:
    spelling = "op.x" if "op.x" in text else "op.u32"
    with pytest.raises(NotationError) as error:
        form(text, spelling)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("where zz;", "t.isa:4:1: the condition names 'zz', which is no operand here"),
        ("where bits(.u32);", "t.isa:4:1: a number stands where a truth is wanted"),
        ("where (.a -> .b) == 1;", "t.isa:4:1: a truth or an operand stands where a value is wanted"),
    ],
)
def test_faults_of_conditions(clause: str, message: str) -> None:
    with pytest.raises(NotationError) as error:
        read(HEAD + "op.u32 d, a;\n" + clause, "op.u32")
    assert str(error.value) == message
