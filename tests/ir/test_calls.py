"""Arguments of calls against what the callee or the prototype declares: the assembler's verdicts, and full messages."""

from __future__ import annotations

import pytest

from ptxtile import check_text

_HEAD = """.version 8.0
.target sm_90
.address_size 64
.func plain (.reg .b32 a) { ret; }
.func (.param .align 4 .b8 r[8]) wide (.param .f32 x, .param .b64 y) { ret; }
.func open_ended (.param .b32 x, .param .align 8 .b8 more[]) { ret; }
.func (.reg .u32 r) nullary () { mov.u32 r, 0; ret; }
.func same (.reg .b32 x);
.alias same, plain;
.visible .entry k (.param .u64 p)
{
.reg .b32 r<4>;
.reg .u32 u<4>;
.reg .s32 s<4>;
.reg .f32 f<4>;
.reg .b64 d<4>;
.reg .pred q<4>;
.param .b32 word;
.param .f32 single;
.param .b64 double;
.param .b32 pair[2];
.param .align 4 .b8 bytes[8];
.param .b8 loose[8];
.param .align 8 .b8 rest[16];
like: .callprototype _ (.reg .b32 _);
list: .calltargets plain;
"""
_LINE = _HEAD.count("\n") + 1


def found(call: str) -> list[tuple[int, str]]:
    return [
        (each.line - _LINE, each.message) for each in check_text(f"{_HEAD}{call}\nret;\n}}\n", target="sm_90")
    ]


@pytest.mark.parametrize(
    "call",
    [
        "call plain, (r1);",
        "call plain, (u1);",
        "call plain, (f1);",
        "call plain, (word);",
        "call plain, (3);",
        "call plain, (0f3F800000);",
        "call same, (r1);",
        "call (bytes), wide, (f1, d1);",
        "call (pair), wide, (single, double);",
        "call (_), wide, (r1, 3);",
        "call open_ended, (r1);",
        "call open_ended, (r1, rest);",
        "call (s1), nullary;",
        "call (u1), nullary, ();",
        "call d1, (r1), like;",
        "call d1, (r1), list;",
        "{ .param .b32 inner; call plain, (inner); }",
    ],
)
def test_what_fits(call: str) -> None:
    assert found(call) == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("call plain;", "plain has 1 parameter, but 0 given here"),
        ("call plain, (r1, r2);", "plain has 1 parameter, but 2 given here"),
        ("call wide, (f1, d1);", "wide has 1 return value, but 0 given here"),
        ("call (bytes), wide, (f1);", "wide has 2 parameters, but 1 given here"),
        (
            "call plain, (d1);",
            "argument 1 of this call of plain is a .b64 register; plain declares .reg .b32",
        ),
        (
            "call plain, (q1);",
            "argument 1 of this call of plain is a .pred register; plain declares .reg .b32",
        ),
        (
            "call plain, (double);",
            "argument 1 of this call of plain is .param .b64; plain declares .reg .b32",
        ),
        (
            "call (bytes), wide, (u1, d1);",
            "argument 1 of this call of wide is a .u32 register; wide declares .param .f32",
        ),
        ("call (bytes), wide, (3, d1);", "argument 1 of this call of wide is 3; wide declares .param .f32"),
        (
            "call (loose), wide, (f1, d1);",
            "result 1 of this call of wide is .param .b8[8]; wide declares .param .align 4 .b8[8]",
        ),
        (
            "call open_ended, (r1, loose);",
            "argument 2 of this call of open_ended is .param .b8[8]; open_ended declares .param .align 8 .b8[]",
        ),
        (
            "call (f1), nullary;",
            "result 1 of this call of nullary is a .f32 register; nullary declares .reg .u32",
        ),
        (
            "call d1, (d2), like;",
            "argument 1 of this call of like is a .b64 register; like declares .reg .b32",
        ),
        ("call d1, (r1, r2), list;", "list has 1 parameter, but 2 given here"),
        (
            "call d1, (r1), plain;",
            "plain is a function; what follows a pointer to one is a prototype or a list of targets",
        ),
        ("call like, (r1);", "like is a prototype, and no function"),
    ],
)
def test_what_does_not_fit(call: str, message: str) -> None:
    assert found(call) == [(0, message)]


def test_every_wrong_call_is_told() -> None:
    assert [line for line, _ in found("call plain;\ncall plain, (r1);\ncall plain;")] == [0, 2]
