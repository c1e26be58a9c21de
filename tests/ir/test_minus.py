"""`-r` before a source of vmad: where it may stand, and that it survives reading and writing."""

from __future__ import annotations

import pytest

from ptxtile import check_text
from ptxtile.ir import Instruction, Minus, Register, parse

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
.reg .b32 r<5>;
"""
FIRST = HEAD.count("\n") + 1


def module(line: str) -> str:
    return f"{HEAD}{line}\nret;\n}}\n"


def test_the_record_and_the_text() -> None:
    read = parse(module("vmad.s32.s32.s32 r1, -r2.h0, -r3, r4;"))
    vmad = next(each for each in read.function("k").body or () if isinstance(each, Instruction))
    assert vmad.operands[2] == Minus(Register("r3", "b32"))
    assert str(vmad) == "vmad.s32.s32.s32 r1, -r2.h0, -r3, r4;"
    assert parse(str(read)) == read


@pytest.mark.parametrize(
    "operands", ["-r2, r3, r4", "r2, -r3.b1, r4", "-r2, -r3, r4", "r2, r3, -r4", "-r2, -r3, -r4"]
)
def test_where_it_may_stand(operands: str) -> None:
    assert check_text(module(f"vmad.u32.u32.u32.sat r1, {operands};")) == []


@pytest.mark.parametrize(
    ("line", "spelling"),
    [
        ("vmad.s32.s32.s32 r1, -r2, r3, -r4;", "vmad.s32.s32.s32"),
        ("vmad.s32.s32.s32.po r1, -r2, r3, r4;", "vmad.s32.s32.s32.po"),
        ("vadd.s32.s32.s32 r1, -r2, r3;", "vadd.s32.s32.s32"),
        ("add.s32 r1, -r2, r3;", "add.s32"),
    ],
)
def test_where_it_may_not(line: str, spelling: str) -> None:
    (found,) = check_text(module(line))
    assert (found.line, found.message) == (FIRST, f"{spelling} does not take these operands")


def test_before_what_is_no_register() -> None:
    (found,) = check_text(module("vmad.s32.s32.s32 r1, -%tid.x, r3, r4;"))
    assert found.message == "- belongs before a register or a number; %tid.x is neither"
