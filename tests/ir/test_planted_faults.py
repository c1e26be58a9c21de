"""A hundred kinds of fault, each planted alone in a right module: one Diagnostic, where « stands."""

from __future__ import annotations

import pytest

from ptxtile.ir import check_text

MODULE = """.version 8.0
.target sm_90
.address_size 64
.file 1 "kernel.cu"
.extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 list);
.global .align 4 .u32 counts[4] = {1, 2, 3, 4};
.global .f32 scale = 0f3F800000;
.const .u64 table[2] = {counts, counts+8};
.shared .align 16 .b8 tile[1024];
.global .texref picture;
.func (.param .b32 out) twice (.param .b32 in)
{
.reg .b32 %r<3>;
ld.param.u32 %r1, [in];
shl.b32 %r2, %r1, 1;
st.param.b32 [out], %r2;
ret;
}
.visible .entry kernel (.param .u64 .ptr .global .align 16 data, .param .u32 n)
.maxntid 256, 1, 1
{
.reg .pred %p<9>;
.reg .b16 %h<9>;
.reg .b32 %r<19>;
.reg .f32 %f<19>;
.reg .b64 %d<19>;
.local .align 8 .b8 stack[16];
.loc 1 10 3
ld.param.u64 %d1, [data];
ld.param.u32 %r1, [n];
mov.u32 %r2, %tid.x;
setp.ge.u32 %p1, %r2, %r1;
@%p1 bra done;
cvta.to.global.u64 %d2, %d1;
mad.wide.u32 %d3, %r2, 4, %d2;
ld.global.f32 %f1, [%d3];
fma.rn.f32 %f2, %f1, %f1, 0f40000000;
setp.gt.ftz.f32 %p2|%p3, %f2, %f1;
selp.f32 %f3, %f2, %f1, %p2;
cvt.rzi.s32.f32 %r3, %f3;
st.shared.u32 [tile+4], %r3;
bar.sync 0;
ld.shared.v2.u32 {%r4, %r5}, [tile];
shfl.sync.bfly.b32 %r6|%p4, %r4, 1, 31, -1;
atom.global.add.u32 %r7, [counts], %r6;
{
.param .b32 in;
st.param.b32 [in+0], %r7;
.param .b32 out;
call.uni (out), twice, (in);
ld.param.b32 %r8, [out+0];
}
mov.b64 %d4, {%r7, %r8};
st.global.u64 [%d3], %d4;
st.local.b32 [stack], %r8;
ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r9, %r10}, [tile];
mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f4,%f5,%f6,%f7}, {%r9,%r10}, {%r11}, {%f4,%f5,%f6,%f7};
tex.2d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [picture, {%f1,%f2}];
done:
ret;
}
"""
FORM = " is not a PTX form"
FIT = " does not take these operands"
TWICE = " is declared twice in the same scope"
UNKNOWN = " is not declared"
FMA = "fma.rn.f32 %f2, %f1, %f1, 0f40000000;"
SETP = "setp.ge.u32 %p1, %r2, %r1;"
MMA = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f4,%f5,%f6,%f7}, {%r9,%r10}, {%r11}, {%f4,%f5,%f6,%f7};"
COUNTS = ".global .align 4 .u32 counts[4] = {1, 2, 3, 4};"

FAULTS = [
    # spellings
    (FMA, "«fma.f32 %f2, %f1, %f1, 0f40000000;", "fma.f32" + FORM),
    (FMA, "«fma.rn.f23 %f2, %f1, %f1, 0f40000000;", "fma.rn.f23" + FORM),
    (FMA, "«fam.rn.f32 %f2, %f1, %f1, 0f40000000;", "fam.rn.f32" + FORM),
    (FMA, "«fma.rn.rn.f32 %f2, %f1, %f1, 0f40000000;", "fma.rn.rn.f32" + FORM),
    (FMA, "«fma.rn.ftz.f64 %f2, %f1, %f1, 0f40000000;", "fma.rn.ftz.f64" + FORM),
    (FMA, "«FMA.rn.f32 %f2, %f1, %f1, 0f40000000;", "FMA.rn.f32" + FORM),
    (SETP, "«setp.u32 %p1, %r2, %r1;", "setp.u32" + FORM),
    (SETP, "«setp.ltu.u32 %p1, %r2, %r1;", "setp.ltu.u32" + FORM),
    ("bar.sync 0;", "«bar.sink 0;", "bar.sink" + FORM),
    ("cvt.rzi.s32.f32 %r3, %f3;", "«cvt.s32.f32 %r3, %f3;", "cvt.s32.f32" + FORM),
    ("cvta.to.global.u64 %d2, %d1;", "«cvta.to.reg.u64 %d2, %d1;", "cvta.to.reg.u64" + FORM),
    ("mad.wide.u32 %d3, %r2, 4, %d2;", "«mad.wide.u64 %d3, %r2, 4, %d2;", "mad.wide.u64" + FORM),
    ("ld.global.f32 %f1, [%d3];", "«ld.global.v3.f32 %f1, [%d3];", "ld.global.v3.f32" + FORM),
    (MMA, MMA.replace("mma", "«mma").replace("m16n8k8", "m16n8k9"), "mma.sync.aligned.m16n8k9"),
    ("shl.b32 %r2, %r1, 1;", "«shl.u32 %r2, %r1, 1;", "shl.u32" + FORM),
    ("@%p1 bra done;", "@%p1 «bra.unique done;", "bra.unique" + FORM),
    # forms that this target or version lacks
    (FMA, "«fma.rn.f32x2 %d1, %d1, %d1, %d1;", "fma.rn.f32x2 is not available on sm_90"),
    (
        "bar.sync 0;",
        "«tcgen05.wait::ld.sync.aligned;",
        "tcgen05.wait::ld.sync.aligned is not available on sm_90",
    ),
    ("bar.sync 0;", "«wgmma.fence.sync.aligned;", "wgmma.fence.sync.aligned is not available on sm_90"),
    ("bar.sync 0;", "@!%p2 «setmaxnreg.inc.sync.aligned.u32 24;", "setmaxnreg.inc.sync.aligned.u32 is not"),
    ("bar.sync 0;", "«vote.all.pred %p5, %p6;", "vote.all.pred is not available on sm_90"),
    (".reg .b16 %h<9>;", "«.reg .b128 %h;", "the type .b128 needs PTX ISA 8.3 on sm_90"),
    (".version 8.0", ".version «7.4", "sm_90 needs PTX ISA 7.8"),
    (".version 8.0", ".version «8.9", "there is no PTX ISA version 8.9"),
    (".target sm_90", ".target «sm_91", "there is no target 'sm_91'"),
    (".address_size 64", ".address_size «32", ".address_size 32: the assembler no longer"),
    # operands: number
    (FMA, "«fma.rn.f32 %f2, %f1, %f1;", "fma.rn.f32 takes 4 operands, 3 given"),
    (FMA, "«fma.rn.f32 %f2, %f1, %f1, %f1, %f1;", "fma.rn.f32 takes 4 operands, 5 given"),
    ("ld.param.u32 %r1, [n];", "«ld.param.u32 %r1;", "ld.param.u32 takes"),
    ("@%p1 bra done;", "@%p1 «bra;", "bra takes 1 operand, 0 given"),
    # operands: kind, class, width, place
    (FMA, "fma.rn.f32 «%d2, %f1, %f1, 0f40000000;", "fma.rn.f32" + FIT),
    (FMA, "fma.rn.f32 %f2, «%h1, %f1, 0f40000000;", "fma.rn.f32" + FIT),
    (FMA, "fma.rn.f32 %f2, %f1, «%p1, 0f40000000;", "fma.rn.f32" + FIT),
    (FMA, "fma.rn.f32 %f2, %f1, %f1, «2;", "fma.rn.f32" + FIT),
    (FMA, "fma.rn.f32 «0f40000000, %f1, %f1, %f1;", "fma.rn.f32" + FIT),
    (FMA, "fma.rn.f32 %f2, «[%d1], %f1, %f1;", "fma.rn.f32" + FIT),
    (FMA, "fma.rn.f32 %f2, %f1, «{%f1, %f2}, %f1;", "fma.rn.f32" + FIT),
    (FMA, "fma.rn.f32 %f2, %f1, %f1, «%tid.x;", "fma.rn.f32" + FIT),
    (FMA, "fma.rn.f32 %f2, %f1, %f1, «done;", "fma.rn.f32" + FIT),
    (SETP, "setp.ge.u32 «%r3, %r2, %r1;", "setp.ge.u32" + FIT),
    (SETP, "setp.ge.u32 %p1, «%f2, %r1;", "setp.ge.u32" + FIT),
    (SETP, "setp.ge.u32 %p1, %r2, «%d1;", "setp.ge.u32" + FIT),
    (SETP, "setp.ge.u32 «%p1|%r3, %r2, %r1;", "setp.ge.u32" + FIT),
    ("selp.f32 %f3, %f2, %f1, %p2;", "selp.f32 %f3, %f2, %f1, «%r2;", "selp.f32" + FIT),
    ("ld.global.f32 %f1, [%d3];", "ld.global.f32 %f1, «%d3;", "ld.global.f32" + FIT),
    ("ld.global.f32 %f1, [%d3];", "ld.global.f32 %f1, «[%f3];", "ld.global.f32" + FIT),
    ("ld.global.f32 %f1, [%d3];", "ld.global.f32 «%h1, [%d3];", "ld.global.f32" + FIT),
    ("ld.shared.v2.u32 {%r4, %r5}, [tile];", "ld.shared.v2.u32 «%r4, [tile];", "ld.shared.v2.u32" + FIT),
    (
        "ld.shared.v2.u32 {%r4, %r5}, [tile];",
        "ld.shared.v2.u32 «{%r4, %r5, %r6}, [tile];",
        "ld.shared.v2.u32" + FIT,
    ),
    (
        "ld.shared.v2.u32 {%r4, %r5}, [tile];",
        "ld.shared.v2.u32 «{%r4, %h5}, [tile];",
        "ld.shared.v2.u32" + FIT,
    ),
    ("st.shared.u32 [tile+4], %r3;", "st.shared.u32 «tile, %r3;", "st.shared.u32" + FIT),
    ("mov.u32 %r2, %tid.x;", "mov.u32 %r2, «%d1;", "mov.u32" + FIT),
    ("mov.u32 %r2, %tid.x;", "mov.u32 «%tid.x, %r2;", "mov.u32" + FIT),
    ("mov.u32 %r2, %tid.x;", "mov.u32 «5, %r2;", "mov.u32" + FIT),
    ("mov.b64 %d4, {%r7, %r8};", "mov.b64 %d4, «{%r7, %f1, %r8};", "mov.b64" + FIT),
    ("mov.b64 %d4, {%r7, %r8};", "mov.b64 «%r4, {%r7, %r8};", "mov.b64" + FIT),
    ("cvt.rzi.s32.f32 %r3, %f3;", "cvt.rzi.s32.f32 %r3, «%h3;", "cvt.rzi.s32.f32" + FIT),
    (
        "atom.global.add.u32 %r7, [counts], %r6;",
        "atom.global.add.u32 %r7, [counts], «%h6;",
        "atom.global.add.u32" + FIT,
    ),
    (
        "atom.global.add.u32 %r7, [counts], %r6;",
        "atom.global.add.u32 %r7, «%d1, %r6;",
        "atom.global.add.u32" + FIT,
    ),
    (MMA, MMA.replace("{%r11}", "«{%r11,%r12}"), "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32" + FIT),
    (MMA, MMA.replace("{%r9,%r10}", "«{%d9,%d10}"), "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32" + FIT),
    ("@%p1 bra done;", "@%p1 bra «%r1;", "bra" + FIT),
    ("@%p1 bra done;", "@«%r1 bra done;", "a guard is a predicate register; %r1 is none"),
    ("bar.sync 0;", "bar.sync «16;", "bar.sync: operand 1 (a) is 16, but must be 0 to 15"),
    (
        "shfl.sync.bfly.b32 %r6|%p4, %r4, 1, 31, -1;",
        "shfl.sync.bfly.b32 «%r6|%r5, %r4, 1, 31, -1;",
        "shfl.sync.bfly.b32" + FIT,
    ),
    ("shl.b32 %r2, %r1, 1;", "shl.b32 %r2, «!%r1, 1;", "shl.b32" + FIT),
    ("st.global.u64 [%d3], %d4;", "«st.global.u64 [tile], %d4;", "tile is in .shared; st.global.u64 wants"),
    ("st.local.b32 [stack], %r8;", "«st.shared.b32 [stack], %r8;", "stack is in .local; st.shared.b32 wants"),
    (
        "st.shared.u32 [tile+4], %r3;",
        "«st.shared.u32 [counts+4], %r3;",
        "counts is in .global; st.shared.u32",
    ),
    # names
    (FMA, "fma.rn.f32 %f2, %f1, «%f19, 0f40000000;", "%f19" + UNKNOWN),
    (FMA, "fma.rn.f32 %f2, %f1, «f1, 0f40000000;", "f1" + UNKNOWN),
    ("mov.u32 %r2, %tid.x;", "mov.u32 %r2, «%tid.v;", "%tid.v" + UNKNOWN),
    ("mov.u32 %r2, %tid.x;", "mov.u32 %r2, «%tidy.x;", "%tidy.x" + UNKNOWN),
    ("@%p1 bra done;", "@%p1 bra «gone;", "gone" + UNKNOWN),
    ("@%p1 bra done;", "@«%q1 bra done;", "%q1" + UNKNOWN),
    ("st.shared.u32 [tile+4], %r3;", "st.shared.u32 [«tiles+4], %r3;", "tiles" + UNKNOWN),
    ("call.uni (out), twice, (in);", "call.uni (out), «thrice, (in);", "thrice" + UNKNOWN),
    ("call.uni (out), twice, (in);", "call.uni («back), twice, (in);", "back" + UNKNOWN),
    ("ld.param.u64 %d1, [data];", "ld.param.u64 %d1, [«date];", "date" + UNKNOWN),
    ("mov.b64 %d4, {%r7, %r8};", "mov.b64 %d4, {%r7, «%r99};", "%r99" + UNKNOWN),
    (
        ".const .u64 table[2] = {counts, counts+8};",
        ".const .u64 table[2] = {counts, «count+8};",
        "count is no variable",
    ),
    (".reg .b16 %h<9>;", ".reg .b16 «%p<9>;", "%p<9>" + TWICE),
    (".reg .b16 %h<9>;", ".reg .b16 %h<9>, «%p3;", "%p3" + TWICE),
    (".reg .b16 %h<9>;", ".reg .b16 %h<9>, x, «x;", "x" + TWICE),
    ("done:\nret;", "done:\n«done: ret;", "done" + TWICE),
    (".shared .align 16 .b8 tile[1024];", ".shared .align 16 .b8 tile[1024], «counts[4];", "counts" + TWICE),
    (".local .align 8 .b8 stack[16];", ".local .align 8 .b8 stack[16], «data[16];", "data" + TWICE),
    # literals
    (FMA, "fma.rn.f32 %f2, %f1, %f1, «0f4000000;", "'0' cannot stand here"),
    (
        "mad.wide.u32 %d3, %r2, 4, %d2;",
        "mad.wide.u32 %d3, %r2, «09, %d2;",
        "09 starts with 0, so it is octal",
    ),
    (
        "mad.wide.u32 %d3, %r2, 4, %d2;",
        "mad.wide.u32 %d3, %r2, «0x10000000000000000, %d2;",
        "the integer 0x1",
    ),
    ("mad.wide.u32 %d3, %r2, 4, %d2;", "mad.wide.u32 %d3, %r2, «4.5, %d2;", "mad.wide.u32" + FIT),
    (
        COUNTS,
        ".global .align 4 .u32 «counts[3] = {1, 2, 3, 4};",
        "counts has 3 elements where 4 values are given",
    ),
    (
        COUNTS,
        ".global .align 4 .u32 «counts[4] = {1, 2, 3.0, 4};",
        "0d4008000000000000 is no value of type .u32",
    ),
    (COUNTS, ".global .align «3 .u32 counts[4] = {1, 2, 3, 4};", "an alignment is a power of two, not 3"),
    (COUNTS, ".global .align 4 .u32 counts[4] = {1, 2, 3 «4};", "'4' cannot stand here"),
    (COUNTS, ".global .align 4 .u32 counts[4] = {1, 2, 3, «4 / 0};", "division by zero"),
    # declarations
    (
        ".global .f32 scale = 0f3F800000;",
        "«.global scale = 0f3F800000;",
        ".global declares nothing without a type",
    ),
    (
        ".global .f32 scale = 0f3F800000;",
        ".global «.f33 scale = 0f3F800000;",
        ".f33 is no state space, type or linkage",
    ),
    (
        ".global .f32 scale = 0f3F800000;",
        ".global .f32 «.s32 scale = 0f3F800000;",
        ".s32 after .f32: one of them",
    ),
    (".global .f32 scale = 0f3F800000;", "«.global .pred scale;", "a predicate is a register"),
    (
        ".global .f32 scale = 0f3F800000;",
        ".shared .f32 «scale = 0f3F800000;",
        "a .shared variable takes no initial value",
    ),
    (".global .f32 scale = 0f3F800000;", ".global .f32 «scale[];", "scale[] has an extent left open"),
    (".global .f32 scale = 0f3F800000;", "«.reg .f32 scale;", "this belongs in the body of a function"),
    (
        ".global .f32 scale = 0f3F800000;",
        "«add.u32 a, b, c;",
        "an instruction belongs in the body of a function",
    ),
    (".reg .b16 %h<9>;", ".reg .b16 «%h<0>;", "%h<0> declares no register"),
    (".reg .b16 %h<9>;", ".reg .b16 «%h[9];", "the register %h takes neither extents nor a value"),
    (".maxntid 256, 1, 1", "«.maxntid 256, 1, 1, 1", ".maxntid takes 1 to 3 values, not 4"),
    (".maxntid 256, 1, 1", "«.maxthreads 256", ".maxthreads is no directive of a function"),
    (".version 8.0", ".version 8.0\n.version «8.0", "a second .version"),
    # syntax
    ("bar.sync 0;\nld", "bar.sync 0\n«ld", "'ld.shared.v2.u32' cannot stand here"),
    (FMA, "fma.rn.f32 %f2 «%f1, %f1, 0f40000000;", "'%f1' cannot stand here: , or ; is expected"),
    (FMA, "fma.rn.f32 %f2, %f1,«, %f1, 0f40000000;", "',' cannot stand here"),
    ("ld.global.f32 %f1, [%d3];", "ld.global.f32 %f1, [%d3«;", "';' cannot stand here"),
    ("ld.global.f32 %f1, [%d3];", "ld.global.f32 %f1, %d3«];", "']' cannot stand here"),
    ("ld.global.f32 %f1, [%d3];", "ld.global.f32 %f1, [%d3«-4];", "'-' cannot stand here"),
    (FMA, "«? " + FMA, "'?' begins no statement"),
    (FMA, "fma.rn.f32 %f2, %f1, «é, 0f40000000;", "'\\xe9' cannot stand here"),
    (FMA, "fma.rn.f32 %f2, %f1, «\0, 0f40000000;", "'\\x00' cannot stand here"),
    (".loc 1 10 3\nld", ".loc 1 10\n«ld", "'ld.param.u64' cannot stand here: a number is expected"),
    (".loc 1 10 3", ".loc 1 10 3 «/* never closed", "this comment is never closed"),
    ("{\n.reg .pred", "«{\n{\n.reg .pred", "this { is never closed"),
    ("done:\nret;\n}", "done:\nret;\n}\n«}", "this } closes nothing"),
]


def planted(old: str, new: str) -> tuple[str, int, int]:
    """The module with the fault, and the line and column of its mark."""
    assert MODULE.count(old) == 1, old
    marked = MODULE.replace(old, new)
    before, _, after = marked.partition("«")
    return before + after, before.count("\n") + 1, len(before) - before.rfind("\n")


def test_the_module_is_right() -> None:
    assert check_text(MODULE) == []


@pytest.mark.parametrize(("old", "new", "message"), FAULTS)
def test_one_fault_is_one_diagnostic_at_its_place(old: str, new: str, message: str) -> None:
    text, line, column = planted(old, new)
    found = check_text(text)
    assert [(each.line, each.column) for each in found] == [(line, column)]
    assert found[0].message.startswith(message)


def test_there_are_a_hundred_kinds() -> None:
    assert len({new for _, new, _ in FAULTS}) >= 100
