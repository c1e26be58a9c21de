"""`[a].unified`: where it may stand, and that it survives reading and writing."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtile import check_text
from ptxtile.emulator import launch
from ptxtile.ir import Address, Instruction, Register, UnifiedAddress, parse

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .b32 r<4>;
.reg .b64 d<4>;
ld.param.u64 d1, [p];
"""
FIRST = HEAD.count("\n") + 1


def module(line: str) -> str:
    return f"{HEAD}{line}\nst.global.u32 [d1], r1;\nret;\n}}\n"


def test_the_record_and_the_text() -> None:
    read = parse(module("ld.global.u32 r1, [d1+4].unified;"))
    loads = [each for each in read.function("k").body or () if isinstance(each, Instruction)]
    address = loads[1].operands[1]
    assert address == UnifiedAddress(Register("d1", "b64"), 4)
    assert address != Address(Register("d1", "b64"), 4)
    assert str(address) == "[d1+4].unified"
    assert parse(str(read)) == read


@pytest.mark.parametrize(
    "line",
    [
        "ld.u32 r1, [d1].unified;",
        "ld.volatile.global.u32 r1, [d1].unified;",
        "ld.global.nc.u32 r1, [d1].unified;",
        "ldu.global.u32 r1, [d1+8].unified;",
        "atom.global.add.u32 r1, [d1].unified, r2;",
    ],
)
def test_where_it_may_stand(line: str) -> None:
    assert check_text(module(line)) == []


@pytest.mark.parametrize(
    ("line", "spelling"),
    [
        ("ld.shared.u32 r1, [d1].unified;", "ld.shared.u32"),
        ("st.global.u32 [d1].unified, r1;", "st.global.u32"),
        ("red.global.add.u32 [d1].unified, r1;", "red.global.add.u32"),
    ],
)
def test_where_it_may_not(line: str, spelling: str) -> None:
    (found,) = check_text(module(line))
    assert (found.line, found.message) == (FIRST, f"{spelling} does not take these operands")


def test_the_emulator_loads_as_ever() -> None:
    data = np.array([7, 8], np.uint32)
    launch(module("ld.global.u32 r1, [d1+4].unified;"), "k", 1, 1, [data])
    assert data.tolist() == [8, 8]
