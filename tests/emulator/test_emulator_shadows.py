"""Undefined bits, bit by bit: no bit that counts as defined changes with an undefined bit of a source."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtile.emulator import semantics
from ptxtile.emulator.semantics import Call
from ptxtile.emulator.shadows import rule_of
from ptxtile.isa import find

N = 4000
CASES = {
    # spelling: bits of the sources, and which of them may be undefined
    "and.b32": ((32, 32), (0, 1)),
    "or.b64": ((64, 64), (0, 1)),
    "xor.b16": ((16, 16), (0, 1)),
    "not.b32": ((32,), (0,)),
    "shl.b16": ((16, 32), (0,)),
    "shl.b64": ((64, 32), (0,)),
    "shr.u32": ((32, 32), (0,)),
    "shr.s32": ((32, 32), (0,)),
    "shr.s64": ((64, 32), (0,)),
    "cvt.u32.u16": ((16,), (0,)),
    "cvt.s32.s8": ((8,), (0,)),
    "cvt.u16.u32": ((32,), (0,)),
    "cvt.s64.s32": ((32,), (0,)),
    "cvt.u64.s16": ((16,), (0,)),
    "add.s32": ((32, 32), (0, 1)),
    "sub.u64": ((64, 64), (0, 1)),
    "mul.lo.u32": ((32, 32), (0, 1)),
    "mad.lo.s32": ((32, 32, 32), (0, 1, 2)),
    "prmt.b32": ((32, 32, 32), (0, 1)),
    "bfi.b32": ((32, 32, 32, 32), (0, 1)),
    "bfe.u32": ((32, 32, 32), (0,)),
    "bfe.s32": ((32, 32, 32), (0,)),
    "min.u32": ((32, 32), (0, 1)),
}


def compute(spelling, values):
    form = find(spelling)
    call = Call(spelling, form.opcode, form.modifiers, form.signatures[0].slots, (), len(values[0]))
    return call, semantics.find(form.opcode)(call, *values)


def drawn(chance, spelling, widths):
    values = [chance.integers(0, 1 << bits, N, dtype=f"u{bits // 8}") for bits in widths]
    if spelling.startswith(("shl", "shr")):
        values[1] = chance.integers(0, 70, N).astype(np.uint32)
    if spelling.startswith(("bfi", "bfe")):
        values[-2:] = [chance.integers(0, 40, N).astype(np.uint32) for _ in range(2)]
    return values


@pytest.mark.parametrize("spelling", CASES)
def test_a_defined_bit_depends_on_defined_bits(spelling):
    chance = np.random.default_rng(9)
    widths, open_to = CASES[spelling]
    values = drawn(chance, spelling, widths)
    masks = [chance.integers(0, 1 << bits, N, dtype=f"u{bits // 8}") & (m := chance.integers(0, 1 << bits, N, dtype=f"u{bits // 8}")) & np.roll(m, 1) for bits in widths]  # fmt: skip
    masks = [mask if place in open_to else np.zeros_like(mask) for place, mask in enumerate(masks)]
    shadows = [mask if place in open_to else None for place, mask in enumerate(masks)]
    call, first = compute(spelling, values)
    lost = rule_of(call.opcode)(call, list(values), shadows)
    if lost.dtype == np.bool_:
        lost = np.where(lost, np.array(-1).astype(first.dtype), first.dtype.type(0))
    seen = np.zeros_like(first)
    for _ in range(40):
        other = [
            v ^ (m & chance.integers(0, 1 << b, N, dtype=v.dtype)) for v, m, b in zip(values, masks, widths)
        ]
        seen |= compute(spelling, other)[1] ^ first
    assert not (seen & ~lost).any()
    if spelling.partition(".")[0] in ("and", "or", "xor", "not", "shl", "shr", "prmt", "bfi"):
        assert (seen == lost).mean() > 0.99  # and what counts as undefined does change


def test_lop3_follows_its_table():
    chance = np.random.default_rng(10)
    for table in (0xE8, 0xC0, 0x96, 0x1B, 0xF8):
        a, b, c = (chance.integers(0, 1 << 32, N, dtype=np.uint32) for _ in range(3))
        masks = [chance.integers(0, 1 << 32, N, dtype=np.uint32) & np.uint32(0x0F0F3355) for _ in range(3)]
        fixed = np.full(N, table, np.uint32)
        call, first = compute("lop3.b32", [a, b, c, fixed])
        lost = rule_of("lop3")(call, [a, b, c, fixed], [*masks, None])
        seen = np.zeros_like(first)
        for _ in range(60):
            other = [
                v ^ (m & chance.integers(0, 1 << 32, N, dtype=np.uint32)) for v, m in zip((a, b, c), masks)
            ]
            seen |= compute("lop3.b32", [*other, fixed])[1] ^ first
        assert not (seen & ~lost).any() and (seen == lost).mean() > 0.99


def test_a_bit_field_in_memory_that_was_never_written(run, fail):
    """As compilers write one: read, clear, set, write; then cut out."""
    body = """
    .local .align 4 .b8 field[4];
    ld.param.u64 %rd1, [A];
    ld.local.u8 %h1, [field]; and.b16 %h2, %h1, -3; or.b16 %h3, %h2, 2; st.local.u8 [field], %h3;
    ld.local.u8 %h4, [field]; shl.b16 %h5, %h4, SHIFT; and.b16 %h6, %h5, 255; shr.u16 %h7, %h6, 7;
    cvt.u32.u16 %r1, %h7; cvt.s32.s8 %r2, %r1; setp.ne.s32 %p1, %r2, 0; selp.u32 %r3, 1, 0, %p1;
    st.global.u32 [%rd1], %r3;
    """
    out = np.zeros(1, np.uint32)
    run(body.replace("SHIFT", "6"), [out], block=1)
    assert out[0] == 1
    assert fail(body.replace("SHIFT", "7"), [out], block=1).kind == "uninitialised"


@pytest.mark.parametrize("spelling", ["xor.b32", "sub.s32"])
def test_a_register_against_itself_is_zero(run, spelling):
    out = np.ones(1, np.uint32)
    run(f"ld.param.u64 %rd1, [A]; {spelling} %r1, %r2, %r2; st.global.u32 [%rd1], %r1;", [out], block=1)
    assert out[0] == 0
