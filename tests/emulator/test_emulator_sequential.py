"""The last CTA adds up what all threads left: fences before a barrier, one thread's atomic behind it."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtile as pt

TEXT = """.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 parts, .param .u64 count, .param .u64 out)
{
	.reg .b32 %r<12>;
	.reg .b64 %rd<8>;
	.reg .pred %p<3>;
	ld.param.u64 %rd0, [parts];
	ld.param.u64 %rd1, [count];
	ld.param.u64 %rd2, [out];
	mov.u32 %r0, %tid.x;
	mov.u32 %r1, %ctaid.x;
	mad.lo.u32 %r2, %r1, 64, %r0;
	mad.wide.u32 %rd3, %r2, 4, %rd0;
	st.global.u32 [%rd3], %r2;
	FIRST
	bar.sync 0;
	setp.ne.u32 %p0, %r0, 0;
	mov.u32 %r4, 0;
	@%p0 bra OVER;
	atom.global.add.u32 %r4, [%rd1], 1;
	SECOND
OVER:
	bar.red.popc.u32 %r5, 0, %p0;
	setp.eq.u32 %p1, %r4, 3;
	@%p0 bra OUT;
	@!%p1 bra OUT;
	mov.u32 %r6, 0;
	mov.u32 %r7, 0;
ADD:
	mad.wide.u32 %rd4, %r6, 4, %rd0;
	ld.global.u32 %r8, [%rd4];
	add.u32 %r7, %r7, %r8;
	add.u32 %r6, %r6, 1;
	setp.lt.u32 %p2, %r6, 256;
	@%p2 bra ADD;
	st.global.u32 [%rd2], %r7;
OUT:
	ret;
}
"""


def total(first: str, second: str, seed: int) -> int:
    parts, count, out = np.zeros(256, np.uint32), np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    text = TEXT.replace("FIRST", first).replace("SECOND", second)
    pt.emulator.launch(text, "k", 4, 64, [parts, count, out], seed=seed)
    return int(out[0])


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("fence", ["membar.gl;", "fence.sc.gpu;", "membar.sys;"])
def test_fences_before_a_barrier_are_passed_on(fence, seed):
    assert total(fence, fence, seed) == sum(range(256))


@pytest.mark.parametrize(
    ("first", "second"), [("", "membar.gl;"), ("membar.gl;", ""), ("membar.cta;", "membar.gl;")]
)
def test_without_one_of_them_it_is_a_race(first, second):
    with pytest.raises(pt.EmulatorError) as error:
        total(first, second, 0)
    assert error.value.kind == "race"
    assert error.value.line == TEXT[: TEXT.index("ld.global.u32 %r8")].count("\n") + 1
