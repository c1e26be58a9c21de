"""redux.sync of f32, which sm_100 has, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtile.emulator import launch

NAN = 0x7FFFFFFF
TEXT = """.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 A, .param .u64 B)
{{
.reg .b32 %r<4>; .reg .b64 %rd<6>;
ld.param.u64 %rd1, [A];
ld.param.u64 %rd2, [B];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd1, %rd1, %rd3;
add.u64 %rd2, %rd2, %rd3;
ld.global.b32 %r2, [%rd1];
redux.sync.{0}.f32 %r3, %r2, 0xffffffff;
st.global.b32 [%rd2], %r3;
ret;
}}
"""


def words(seed):
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 32, (64, 32), np.uint64).astype(np.uint32)
    specials = np.array(
        [0, 0x80000000, 1, 0x80000001, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFC00000], np.uint32
    )
    bits[:32] = rng.choice(specials[:6], (32, 32))
    bits[8:16] = rng.choice(specials, (8, 32))
    bits[3], bits[4] = 0xFFC00000, 0x80000000
    return bits


def reduced(row, least, size, nan):
    """The result of one warp's words, by the order of values with -0 below +0."""
    floats = (row & 0x7FFFFFFF if size else row).astype(np.uint32).view(np.float32)
    lost = np.isnan(floats)
    if lost.all() or (nan and lost.any()):
        return NAN
    kept = floats[~lost]
    key = [(float(x), -int(np.signbit(x))) for x in kept]
    best = (min if least else max)(range(len(key)), key=key.__getitem__)
    return int(kept.view(np.uint32)[best])


@pytest.mark.parametrize("nan", ["", ".NaN"])
@pytest.mark.parametrize("size", ["", ".abs"])
@pytest.mark.parametrize("mode", ["min", "max"])
def test_floats(mode, size, nan):
    given = words(5)
    found = np.zeros_like(given)
    for part in range(2):  # a CTA has at most 32 warps
        half = found[32 * part : 32 * part + 32].copy()
        launch(TEXT.format(mode + size + nan), "k", 1, 1024, [given[32 * part : 32 * part + 32].copy(), half])
        found[32 * part : 32 * part + 32] = half
    for row, got in zip(given, found):
        assert set(got.tolist()) == {reduced(row, mode == "min", bool(size), bool(nan))}
