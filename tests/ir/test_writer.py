"""Records to text: one canonical spelling of everything, and which line holds what."""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import dedent

from ptxtile import isa, location
from ptxtile.ir import (
    Address,
    Function,
    Guard,
    Instruction,
    Integer,
    Module,
    Register,
    Symbol,
    line,
    lines,
    parse,
    write,
)
from ptxtile.ir.lineinfo import from_package


def test_a_module_in_canonical_form() -> None:
    text = """
        .version 8.0 .target sm_90a,debug
        .const .f32 t[2]={1.0,0f40000000}; .extern .func (.param .b32 r) f(.param .b64 a);
        .visible .entry k(.param .u64 .ptr .align 8 .global a,.param .b8 .align 64 m[128]) .maxntid 64,1,1
        .pragma "x"; {
        .reg .pred p<2>; .reg .b32 x,y; .reg .v2 .f32 V; { .reg .u16 a; @!p1 mov.u16 a,3; } L:
        ld.param.v2.f32 V,[m+4]; tab: .branchtargets L; .loc 1 2 3
        mad.lo.s32 x,y,-1,x; ret;}
        .file 1 "x.py" .section .debug_str{ s: .b8 1,2 }
    """
    assert str(parse(text)) == dedent(
        """\
        .version 8.0
        .target sm_90a, debug
        .address_size 64
        .const .f32 t[2] = {0d3FF0000000000000, 0f40000000};

        .extern .func (.param .b32 r) f(.param .b64 a);

        .visible .entry k(
        \t.param .u64 .ptr .global .align 8 a,
        \t.param .align 64 .b8 m[128]
        )
        .maxntid 64, 1, 1
        .pragma "x";
        {
        \t.reg .pred p<2>;
        \t.reg .b32 x, y;
        \t.reg .v2 .f32 V;
        \t{
        \t\t.reg .u16 a;
        \t\t@!p1 mov.u16 a, 3;
        \t}
        L:
        \tld.param.v2.f32 {V.x, V.y}, [m+4];
        \ttab: .branchtargets L;
        \t.loc 1 2 3
        \tmad.lo.s32 x, y, -1, x;
        \tret;
        }
        .file 1 "x.py"
        .section .debug_str
        {
        s:
        \t.b8 1, 2
        }
        """
    )


def test_one_line() -> None:
    r1, address = Register("%r1", "b32"), Address(Register("%d1", "b64"), -4)
    assert line(isa.validate("ld.global.u32"), (r1, address)) == "ld.global.u32 %r1, [%d1+-4];"
    assert line(isa.validate("ret"), (), Guard(Register("%p1", "pred"), True)) == "@!%p1 ret;"
    moved = (Register("%d1", "b64"), Symbol("a", "global", 8))
    assert line(isa.validate("mov.u64"), moved) == "mov.u64 %d1, a+8;"


def test_an_instruction_says_the_same_as_its_line() -> None:
    form, operands = isa.validate("add.u32"), (Register("a", "b32"), Register("b", "b32"), Integer(5, True))
    assert str(Instruction(form, operands)) == line(form, operands) == "add.u32 a, b, 5U;"


def test_lines_of_the_text() -> None:
    module = parse(".version 8.0\n.target sm_90\n.entry k() { .reg .b32 a; { mov.u32 a, 1; } ret; }\n")
    text, origins = lines(module)
    rows = text.splitlines()
    assert text == write(module)
    named = {rows[number - 1].strip(): what for number, what in origins.items()}
    assert set(named) == {".entry k()", "mov.u32 a, 1;", "ret;"}
    assert isinstance(named[".entry k()"], Function)
    assert str(named["mov.u32 a, 1;"]) == "mov.u32 a, 1;"


def _marked() -> Module:
    ret = isa.validate("ret")
    here = [Instruction(ret, (), mark=location.mark()), Instruction(ret, (), mark=location.mark())]
    here.append(Instruction(ret, (), mark=location.mark()))
    return Module("8.0", "sm_90", (Function("k", True, body=tuple(here)),))


def test_line_information() -> None:
    module = _marked()
    first = _marked.__code__.co_firstlineno + 2
    assert ".loc" not in write(module)
    name = from_package(os.path.abspath(__file__))
    assert name.endswith("ir/test_writer.py") and not name.startswith("/")
    assert write(module, "relative").splitlines() == [
        ".version 8.0",
        ".target sm_90",
        ".address_size 64",
        f'.file 1 "{name}"',
        "",
        ".entry k()",
        "{",
        f"\t.loc 1 {first} 0",
        "\tret;",
        "\tret;",
        f"\t.loc 1 {first + 1} 0",
        "\tret;",
        "}",
    ]
    assert f'.file 1 "{Path(__file__).as_posix()}"' in write(module, "absolute")


def test_line_numbers_count_the_files_that_line_information_adds() -> None:
    module = _marked()
    text, origins = lines(module, "relative")
    rows = text.splitlines()
    assert {rows[number - 1] for number in origins} == {".entry k()", "\tret;"}


def test_deep_blocks_are_written_without_recursion() -> None:
    from ptxtile.ir import Block, Statement

    body: tuple[Statement, ...] = ()
    for _ in range(2_000):
        body = (Block(body),)
    text = write(Module("8.0", "sm_90", (Function("k", True, body=body),)))
    assert text.count("{") == text.count("}") == 2_001
    while body:  # a nest this deep is taken apart from outside, as its destructor is recursive
        (block,) = body
        assert isinstance(block, Block)
        body = block.body
