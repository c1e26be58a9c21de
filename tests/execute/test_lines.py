"""Log lines, mapped through the module's own text to lines of Python."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from standin import CUresult, Standin

from ptxtile import execute
from ptxtile.errors import AssemblerError, DriverError
from ptxtile.execute import Entry
from ptxtile.execute.lines import locator
from ptxtile.ir.instruction import Instruction
from ptxtile.ir.module import Module
from ptxtile.ir.reader import parse
from ptxtile.ir.writer import LineInfo, lines
from ptxtile.location import Mark

TEXT = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .b32 %r<3>;
add.u32 %r0, %r1, %r2;
ret;
}
"""


def here() -> tuple[Mark, int]:
    """A mark of the caller's line, and that line."""
    frame = sys._getframe(1)
    return (frame.f_code, frame.f_lasti), frame.f_lineno


def marked() -> tuple[Module, int, int]:
    """The module with marks; the lines of Python of its function and of its first instruction."""
    module = parse(TEXT)
    (function,) = module.functions
    outer, outer_line = here()
    inner, inner_line = here()
    assert function.body is not None
    body = tuple(
        item._replace(mark=inner) if isinstance(item, Instruction) and item.form.opcode == "add" else item
        for item in function.body
    )
    return replace(module, items=(replace(function, body=body, mark=outer),)), outer_line, inner_line


@pytest.mark.parametrize("lineinfo", [None, "relative"])
def test_lines_of_text_find_python(lineinfo: LineInfo) -> None:
    module, outer, inner = marked()
    text = lines(module, lineinfo)[0].splitlines()
    locate = locator(module, lineinfo)

    def found(fragment: str) -> int | None:
        where = locate(1 + next(index for index, row in enumerate(text) if fragment in row), "")
        return where.line if where else None

    assert found("add.u32") == inner
    assert found(".entry") == found(".reg") == outer
    assert found(".version") is None
    by_name = locate(0, "k")
    assert by_name is not None and by_name.line == outer
    assert locate(0, "other") is None and locate(0, "") is None


def test_a_foreign_text_has_no_python() -> None:
    assert locator(None)(7, "k") is None


def test_a_refused_load_shows_the_python_line(standin: Standin) -> None:
    module, _, inner = marked()
    entry = Entry(module, "k")
    number = 1 + entry.text.splitlines().index("\tadd.u32 %r0, %r1, %r2;")
    log = f"ptxas application ptx input, line {number}; error   : Arguments mismatch for instruction 'add'\n"
    standin.fail_next("cuModuleLoadDataEx", CUresult.CUDA_ERROR_INVALID_PTX, error_log=log)
    with pytest.raises(DriverError) as caught:
        entry.loaded(0)
    assert str(caught.value).splitlines()[-3:] == [
        "  written at:",
        f"  line {number}: Arguments mismatch for instruction 'add'",
        f"    {__file__}:{inner}: inner, inner_line = here()",
    ]


def test_a_refused_assembly_shows_the_python_line(cache_folder: Path) -> None:
    module, _, inner = marked()
    broken = replace(module, version="6.0")  # sm_90 came with PTX 7.8
    with pytest.raises(AssemblerError) as caught:
        execute.assemble(broken)
    assert "refused the module for sm_90" in str(caught.value)
    (function,) = module.functions
    assert function.body is not None
    body = tuple(
        item._replace(operands=(*item.operands[:2], replace(item.operands[2], name="%nowhere")))
        if isinstance(item, Instruction) and item.operands
        else item
        for item in function.body
    )
    with pytest.raises(AssemblerError) as caught:
        execute.assemble(replace(module, items=(replace(function, body=body),)))
    assert str(caught.value).endswith(f"    {__file__}:{inner}: inner, inner_line = here()")
