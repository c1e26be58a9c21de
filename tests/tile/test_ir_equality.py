"""The 21st kernel of the catalogue: a fill is four instructions, and the module equals the one that text says."""

from __future__ import annotations

import ptxtile as pt
from ptxtile import tile

TEXT = """.version 6.3
.target sm_75
.address_size 64

.visible .entry fill()
.reqntid 1, 1, 1
{
\t.reg .b32 %r<4>;
\tmov.b32 %r0, 0f00000000;
\tmov.b32 %r1, 0f00000000;
\tmov.b32 %r2, 0f00000000;
\tmov.b32 %r3, 0f00000000;
\tret;
}
"""


def fill(value: object) -> pt.Module:
    builder = pt.ModuleBuilder("sm_75", "6.3")
    with builder.entry("fill", block=1):
        tile.apply("mov.b32", pt.alloc_local((4, 1), pt.float32), value)
    return builder.module()


def test_the_same_module():
    assert fill(pt.float32(0)) == pt.parse(TEXT)
    assert str(fill(pt.float32(0))) == TEXT


def test_another_value_is_another_module():
    assert fill(pt.float32(-0.0)) != pt.parse(TEXT)
    assert fill(pt.uint32(0)) != pt.parse(TEXT)  # an integer literal is another operand than a float one


def test_equal_input_gives_equal_bytes():
    assert str(fill(pt.float32(0))) == str(fill(pt.float32(0)))
