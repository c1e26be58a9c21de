"""What the emulator lacks is a list, and the list is right."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from ptxtile.emulator import EmulatorError, launch
from ptxtile.emulator.support import has_opcode, missing, supports
from ptxtile.isa import forms, table


def test_every_instruction_of_the_table_is_there_or_listed():
    listed = {glob.partition(".")[0] for glob in missing() if glob.endswith(".*") and glob.count(".") == 1}
    lacking = {opcode for opcode in table.chapters() if not has_opcode(opcode)}
    assert lacking == listed & set(table.chapters())


@pytest.mark.parametrize("glob", [glob for glob in missing() if glob.partition(".")[0] in table.chapters()])
def test_every_entry_of_the_list_means_something(glob):
    assert fnmatchcase(next(iter(forms(glob))), glob)


def test_a_launch_is_refused_before_it_starts():
    text = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
.reg .b64 %rd<3>;
st.global.b32 [%rd1], 1;
stacksave.u64 %rd2;
ret;
}
"""
    assert not supports("stacksave.u64")
    with pytest.raises(EmulatorError) as caught:
        launch(text, "k", 1, 1, [])
    assert (caught.value.kind, caught.value.line) == ("unsupported", 8)
    assert str(caught.value) == "the emulator cannot run stacksave.u64 yet\n  line 8: stacksave.u64 %rd2"


def test_a_special_register_that_is_missing():
    text = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
.reg .b32 %r<3>;
mov.u32 %r1, %pm0;
ret;
}
"""
    with pytest.raises(EmulatorError) as caught:
        launch(text, "k", 1, 1, [])
    assert str(caught.value) == "the emulator has no special register %pm0\n  line 7: mov.u32 %r1, %pm0"


def test_only_the_closed_list_is_missing():
    """Textures and surfaces beyond points of one and two dimensions, and the family of alloca."""
    closed = {"alloca", "stacksave", "stackrestore", "tex", "tld4", "txq", "suld", "sust", "sured"}
    assert {glob.partition(".")[0] for glob in missing()} == closed
    plain = (
        "tex.1d.v4.f32.f32",
        "tex.2d.v4.u32.s32",
        "tld4.r.2d.v4.f32.f32",
        "suld.b.2d.b32.trap",
        "txq.width.b32",
    )
    assert all(supports(spelling) for spelling in plain)
