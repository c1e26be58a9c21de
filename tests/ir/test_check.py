"""Everything that is wrong with a text, one Diagnostic a cause."""

from __future__ import annotations

import pytest

from ptxtile.errors import Diagnostic, TargetError
from ptxtile.ir import check_text, parse

FRAME = """.version {version}
.target {target}
.address_size 64
.global .u32 far[8]; .shared .u32 near;
.visible .entry k(.param .u64 a)
{{
.reg .pred p, q; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .b16 %h<9>;
{body}
ret;
}}
"""
FIRST = 8  # the line of the body's first line


def check(body: str, target: str = "sm_90", version: str = "8.0") -> list[Diagnostic]:
    return check_text(FRAME.format(target=target, version=version, body=body))


def only(body: str, target: str = "sm_90", version: str = "8.0") -> Diagnostic:
    (found,) = check(body, target, version)
    assert found.severity == "error"
    return found


def test_a_right_module_has_nothing(program: str) -> None:
    assert [found for found in check_text(program) if "32-bit addresses" not in found.message] == []


@pytest.mark.parametrize(
    ("body", "column", "message"),
    [
        ("fma.f32 %f1, %f2, %f3, %f4;", 1, "fma.f32 is not a PTX form"),
        ("frobnicate.u32 %r1;", 1, "frobnicate.u32 is not a PTX form"),
        ("add.u32 %r1, %r2;", 1, "add.u32 takes 3 operands, 2 given"),
        ("add.u32 %r1, %r2, %d3;", 19, "add.u32 does not take these operands"),
        ("add.u32 %r1, %f2, %r3;", 14, "add.u32 does not take these operands"),
        ("add.u32 5, %r2, %r3;", 9, "add.u32 does not take these operands"),
        ("  add.u32 %r1, %r2, %r9;", 21, "%r9 is not declared"),
        ("add.u32 %r1, %r2, %r3", 1, "'ret' cannot stand here: , or ; is expected"),
        ("ld.global.u32 %r1, [near];", 1, "near is in .shared; ld.global.u32 wants an address in .global"),
        ("ld.shared.u32 %r1, [far];", 1, "far is in .global; ld.shared.u32 wants an address in .shared"),
        ("ld.u32 %r1, [a];", 1, "a is in .param; ld.u32 wants a generic address"),
        ("bfe.u32 %r1, %r2, 1, 300;", 22, "bfe.u32: operand 4 (c) is 300, but must be 0 to 255"),
        ("add.rn.f32x2 %d1, %d2, %d3;", 1, "add.rn.f32x2 is not available on sm_90"),
        (".reg .b32 %r<3>;", 11, "%r<3> is declared twice in the same scope"),
        (".reg .b32 p;", 11, "p is declared twice in the same scope"),
        ("x: x:", 4, "x is declared twice in the same scope"),
        ("bra nowhere;", 5, "nowhere is not declared"),
        (
            "add.u32 %r1, %r2, 0x1FFFFFFFFFFFFFFFF;",
            19,
            "the integer 0x1FFFFFFFFFFFFFFFF does not fit in 64 bits",
        ),
    ],
)
def test_one_cause_is_one_diagnostic_at_its_place(body: str, column: int, message: str) -> None:
    found = only(body)
    line = FIRST + 1 if "'ret'" in message else FIRST
    assert (found.line, found.column, found.message) == (line, column, message)


def test_the_hint_says_what_would_be_right() -> None:
    found = only("add.rn.f32x2 %d1, %d2, %d3;")
    assert str(found) == "8:1: error: add.rn.f32x2 is not available on sm_90\n  it needs sm_100 or later"
    found = only("add.u32 %r1, %r2, %d3;")
    assert found.hint.startswith("  add.u32 d, a, b\n    operand 3 (b) must be a .u32 register")


def test_versions() -> None:
    found = only("{ .reg .b128 x; }", "sm_90", "8.2")
    assert (
        str(found) == "8:3: error: the type .b128 needs PTX ISA 8.3 on sm_90\n  the module's .version is 8.2"
    )
    found = only("", "sm_90", "7.5")
    assert str(found) == "1:10: error: sm_90 needs PTX ISA 7.8; the module's .version is 7.5"
    assert only("", version="8.9").message == "there is no PTX ISA version 8.9; the newest is 9.5"
    assert only("", target="sm_91").message == "there is no target 'sm_91'"


def test_the_target_may_be_given() -> None:
    text = FRAME.format(target="sm_90", version="8.7", body="add.rn.f32x2 %d1, %d2, %d3;")
    assert len(check_text(text)) == 1
    assert check_text(text, target="sm_120") == []
    with pytest.raises(TargetError, match="unknown target 'sm_91'"):
        check_text(text, target="sm_91")


def test_a_cause_is_told_once_at_its_first_use() -> None:
    found = check(
        "add.u32 %r1, %r2, missing;\nadd.u32 missing, %r1, %r2;\n"
        "add.rn.f32x2 %d1, %d2, %d3;\nadd.rn.f32x2 %d2, %d2, %d3;"
    )
    assert [(each.line, each.message) for each in found] == [
        (8, "missing is not declared"),
        (10, "add.rn.f32x2 is not available on sm_90"),
    ]


def test_each_cause_in_one_statement_is_told() -> None:
    found = check("fma.f32 %f1, no, nor, no;")
    assert [(each.column, each.message) for each in found] == [
        (1, "fma.f32 is not a PTX form"),
        (14, "no is not declared"),
        (18, "nor is not declared"),
    ]
    found = check("  @p add.rn.f32x2 %d1, %d2, %r3;")
    assert [(each.column, each.message) for each in found] == [
        (6, "add.rn.f32x2 is not available on sm_90"),
        (29, "add.rn.f32x2 does not take these operands"),
    ]
    found = check("add.rn.f32x2 %d1, %d2, no;\nadd.rn.f32x2 %d1, %d2, %d3;")
    assert [(each.line, each.column) for each in found] == [(8, 1), (8, 24)]


def test_a_wrong_spelling_is_told_once() -> None:
    found = check("fma.f32 %f1, %f2, %f3, %f4;\nfma.f32 %f1, %f2, %f3, %f4;\nadd.u99 %r1, %r2, %r3;")
    assert [(each.line, each.message) for each in found] == [
        (8, "fma.f32 is not a PTX form"),
        (10, "add.u99 is not a PTX form"),
    ]


def test_a_module_for_an_older_target_may_be_held_against_a_newer_one() -> None:
    text = ".version 2.1\n.target sm_20\n.entry k() { ret; }"
    assert check_text(text) == check_text(text, target="sm_75") == []
    (found,) = check_text(text.replace("sm_20", "sm_90"), target="sm_75")
    assert found.message == "sm_90 needs PTX ISA 7.8; the module's .version is 2.1"


def test_all_causes_are_told_in_order() -> None:
    body = "add.u32 %r1, %r2;\nadd.u32 %r1, %r2 %r3;\nbra no;\nadd.f32 %f1, %f2, %f3;\nmul.u32 %r1, %r2, %r3;"
    assert [each.line for each in check(body)] == [8, 9, 10, 12]


def test_heads_and_functions() -> None:
    assert [str(each) for each in check_text("")] == [
        "1:1: error: a module begins with .version and .target; this has no .version and no .target"
    ]
    head = ".version 8.0\n.target sm_80\n"
    (cluster,) = check_text(head + ".entry k()\n.reqnctapercluster 2 { ret; }")
    assert (cluster.line, cluster.message) == (3, ".reqnctapercluster is not available on sm_80")
    (many,) = check_text(head.replace("8.0", "8.1") + ".entry k(.param .b8 a[32765]) { ret; }")
    assert many.message == "k has 32,765 bytes of parameters; 32,764 are possible"
    (old,) = check_text(head + ".address_size 32\n.entry k() { ret; }")
    assert old.message == ".address_size 32: the assembler no longer makes code with 32-bit addresses"


def test_names_that_are_no_addresses() -> None:
    head = (
        ".version 9.0\n.target sm_90\n.address_size 64\n.global .texref t;\n.global .surfref s;\n.const .b32 c;\n"
        ".shared .b32 z;\n.func f () { ret; }\n.visible .entry k () {\n.reg .b32 r<4>;\n.reg .b64 d<4>;\n.reg .f32 f<4>;\n"
    )
    first = head.count("\n") + 1
    lines = {
        "ld.u32 r1, [c];": "c is in .const; ld.u32 wants a generic address",
        "cvta.global.u64 d1, z;": "z is in .shared; cvta.global.u64 wants an address in .global",
        "cvta.shared.u64 d1, z;": "",
        "tex.2d.v4.f32.f32 {f0,f1,f2,f3}, [t+4, {f1,f2}];": (
            "an address with more than its base in the brackets takes no offset"
        ),
        "ld.global.u32 r1, [t];": "ld.global.u32 does not take these operands",
        "atom.global.add.u32 r1, [f], r2;": "atom.global.add.u32 does not take these operands",
        "tex.2d.v4.f32.f32 {f0,f1,f2,f3}, [s, {f1,f2}];": "tex.2d.v4.f32.f32 does not take these operands",
        "suq.width.b32 r1, [s];": "",
        "suq.width.b32 r1, [t];": "suq.width.b32 does not take these operands",
    }
    told = {each.line - first: each.message for each in check_text(head + "\n".join(lines) + "\nret;\n}\n")}
    assert told == {place: message for place, message in enumerate(lines.values()) if message}


@pytest.mark.parametrize(
    ("head", "line", "told"),
    [
        (".version 1.4\n.target sm_10\n", "mad.f32 f1, f2, f3, f0;", []),
        (".version 3.1\n.target sm_20\n", "mad.f32 f1, f2, f3, f0;", []),
        (".version 3.2\n.target sm_20\n", "mad.f32 f1, f2, f3, f0;", ["mad.f32 is not available on sm_75"]),
        (".version 7.0\n.target sm_60\n", "shfl.idx.b32 r0, r1, r2, r3;", []),
        (
            ".version 6.4\n.target sm_70\n",
            "shfl.idx.b32 r0, r1, r2, r3;",
            ["shfl.idx.b32 was removed from sm_75 in PTX ISA 6.4"],
        ),
    ],
)
def test_what_was_removed_is_judged_by_the_target_that_the_module_names(
    head: str, line: str, told: list[str]
) -> None:
    text = f"{head}.entry k ()\n{{\n.reg .f32 f<4>;\n.reg .b32 r<4>;\n{line}\nret;\n}}\n"
    assert [each.message for each in check_text(text, target="sm_75")] == told


_UNIFIED = "which the texturing mode of this module does not have"


@pytest.mark.parametrize(
    ("modes", "line", "told"),
    [
        ("", "tex.2d.v4.f32.f32 {f0,f1,f2,f3}, [t, {f4,f5}];", []),
        (
            "",
            "tex.2d.v4.f32.f32 {f0,f1,f2,f3}, [t, d2, {f4,f5}];",
            [f"tex.2d.v4.f32.f32 names a sampler, {_UNIFIED}"],
        ),
        (
            ", texmode_unified",
            "tld4.r.2d.v4.f32.f32 {f0,f1,f2,f3}, [t, d2, {f4,f5}];",
            [f"tld4.r.2d.v4.f32.f32 names a sampler, {_UNIFIED}"],
        ),
        (", texmode_independent", "tex.2d.v4.f32.f32 {f0,f1,f2,f3}, [t, d2, {f4,f5}];", []),
        (
            ", texmode_independent",
            "tex.2d.v4.f32.f32 {f0,f1,f2,f3}, [t, {f4,f5}];",
            ["tex.2d.v4.f32.f32 reads without a sampler, which a module in texmode_independent must name"],
        ),
    ],
)
def test_a_sampler_beside_a_texture_is_as_the_mode_asks(modes: str, line: str, told: list[str]) -> None:
    text = (
        f".version 8.0\n.target sm_90{modes}\n.address_size 64\n.global .texref t;\n.entry k ()\n{{\n"
        f".reg .f32 f<6>;\n.reg .b64 d<3>;\n{line}\nret;\n}}\n"
    )
    assert [each.message for each in check_text(text)] == told


def test_a_sampler_is_declared_where_the_mode_has_one() -> None:
    text = ".version 8.0\n.target sm_90{}\n.address_size 64\n.global .samplerref s;\n"
    assert check_text(text.format(", texmode_independent")) == []
    (found,) = check_text(text.format(""))
    assert (found.line, found.message) == (4, f"s is a sampler, {_UNIFIED}")
    assert found.hint == "write .target …, texmode_independent; without it a texture has a sampler of its own"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("mov.b64 {_, _}, %d1;", "mov.b64 does not take these operands"),
        ("ld.global.v2.u32 {_, _}, [%d1];", "ld.global.v2.u32 does not take these operands"),
        ("atom.global.add.u32 %r1, far[4], %r2;", "atom.global.add.u32 does not take these operands"),
        ("prefetch.global.L1 far[4];", "prefetch.global.L1 does not take these operands"),
        ("call far;", "call does not take these operands"),
        ("P: .callprototype _ (); P: .callprototype _ ();", "P is declared twice in the same scope"),
        ("T: .branchtargets A; A: T:", "T is declared twice in the same scope"),
        (
            "createpolicy.range.global.L2::evict_last.b64 %d1, [%d2], 256, 16;",
            (
                "createpolicy.range.global.L2::evict_last.b64: operand 3 (primary_size) is 256, but must be no more "
                "than total_size, which is 16"
            ),
        ),
    ],
)
def test_what_the_assembler_refuses(line: str, message: str) -> None:
    assert only(line).message == message


def test_a_subscript_of_a_parameter() -> None:
    text = ".version 9.5\n.target sm_90\n.visible .entry k(.param .b32 a[4]) { .reg .b32 r; ld.param.b32 r, a[1]; }"
    assert check_text(text) == []
    assert "[a+4]" in str(parse(text))
