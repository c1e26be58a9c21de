"""wmma, sparse A, and the four products of m8n8k4, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ptxtile.emulator import launch
from tests.emulator.test_emulator_matrix import a_index, c_index, draw, program

HELD = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "f32": np.float32,
    "f64": np.float64,
    "s8": np.int8,
    "u8": np.uint8,
    "s32": np.int32,
}


def wmma(shape, layouts, types, counts, strides):
    """Load A, B, C, multiply, store D."""
    dtype, atype, btype, ctype = types
    width = "f64" if dtype == "f64" else "b32"
    names = {x: "{" + ", ".join(f"%{x}{i}" for i in range(n)) + "}" for x, n in zip("abcd", counts)}
    multiply = f"{dtype}.{ctype}" if atype == "f16" else f"{dtype}.{atype}.{btype}.{ctype}"
    sm = f"wmma.mma.sync.aligned.{layouts[0]}.{layouts[1]}.{shape}.{multiply}"
    return f""".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 A, .param .u64 B, .param .u64 C, .param .u64 D)
{{
.reg .b64 %rd<9>; .reg .{width} %a<9>, %b<9>, %c<9>, %d<9>;
ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B]; ld.param.u64 %rd3, [C]; ld.param.u64 %rd4, [D];
wmma.load.a.sync.aligned.{layouts[0]}.{shape}.global.{atype} {names["a"]}, [%rd1]{strides[0]};
wmma.load.b.sync.aligned.{layouts[1]}.{shape}.global.{btype} {names["b"]}, [%rd2]{strides[1]};
wmma.load.c.sync.aligned.row.{shape}.global.{ctype} {names["c"]}, [%rd3]{strides[2]};
{sm} {names["d"]}, {names["a"]}, {names["b"]}, {names["c"]};
wmma.store.d.sync.aligned.row.{shape}.global.{dtype} [%rd4], {names["d"]}{strides[2]};
ret;
}}
"""


SHAPES = [
    *[(s, ("f32", "f16", "f16", "f32"), (8, 8, 8, 8)) for s in ((16, 16, 16), (8, 32, 16), (32, 8, 16))],
    ((16, 16, 16), ("f16", "f16", "f16", "f32"), (8, 8, 8, 4)),
    ((16, 16, 16), ("f32", "bf16", "bf16", "f32"), (4, 4, 8, 8)),
    ((8, 32, 16), ("f32", "bf16", "bf16", "f32"), (2, 8, 8, 8)),
    ((16, 16, 8), ("f32", "tf32", "tf32", "f32"), (4, 4, 8, 8)),
    ((16, 16, 16), ("s32", "s8", "s8", "s32"), (2, 2, 8, 8)),
    ((8, 8, 4), ("f64", "f64", "f64", "f64"), (1, 1, 2, 2)),
]


@pytest.mark.parametrize("layouts", [("row", "col"), ("col", "row")])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(("extents", "types", "counts"), SHAPES)
def test_wmma(extents, types, counts, layouts, padded):
    rng = np.random.default_rng(1)
    m, n, k = extents
    dtype, atype, btype, ctype = types
    a, b, c = draw(rng, atype, (m, k)), draw(rng, btype, (k, n)), draw(rng, ctype, (m, n))
    extra = 16 if padded else 0

    def laid(matrix, layout):
        lines = matrix if layout == "row" else matrix.T
        return np.ascontiguousarray(np.pad(lines, [(0, 0), (0, extra)]))

    given = [laid(a, layouts[0]), laid(b, layouts[1]), laid(c, "row")]
    d = np.zeros((m, n + extra), HELD[dtype])
    strides = [f", {x.shape[1]}" if padded else "" for x in given]
    text = wmma(f"m{m}n{n}k{k}", layouts, types, counts, strides)
    launch(text, "k", 1, 32, [x.view(np.uint8) for x in given] + [d.view(np.uint8)])
    due = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    assert (d[:, :n].astype(np.float64) == due).all() and not d[:, n:].any()


def test_wmma_of_four_bits():
    rng = np.random.default_rng(2)
    a, b = rng.integers(-8, 8, (8, 32)), rng.integers(-8, 8, (8, 32))

    def pack(matrix):
        pairs = (matrix & 15).astype(np.uint8)
        return np.ascontiguousarray(pairs[:, ::2] | pairs[:, 1::2] << 4)

    c, d = np.arange(64, dtype=np.int32).reshape(8, 8), np.zeros((8, 8), np.int32)
    text = wmma("m8n8k32", ("row", "col"), ("s32", "s4", "s4", "s32"), (1, 1, 2, 2), ("", "", ""))
    launch(text, "k", 1, 32, [pack(a), pack(b), c, d])
    assert (d == a @ b.T + c).all()


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("layouts", [("row", "col"), ("col", "row")])
def test_four_products_of_quad_pairs(dtype, layouts):
    rng = np.random.default_rng(3)
    a, b = (
        rng.integers(-4, 5, (4, 8, 4)).astype(np.float16),
        rng.integers(-4, 5, (4, 4, 8)).astype(np.float16),
    )
    held = HELD[dtype]
    c = rng.integers(-4, 5, (4, 8, 8)).astype(held)
    ra, rb = np.zeros((32, 4), np.float16), np.zeros((32, 4), np.float16)
    rc, due = np.zeros((32, 8), held), np.zeros((32, 8), held)
    exact = a.astype(float) @ b.astype(float) + c.astype(float)
    for lane in range(32):
        high, quad, t = lane // 16, lane // 4 % 4, lane % 4
        for i in range(4):
            ra[lane, i] = a[quad, t + 4 * high, i] if layouts[0] == "row" else a[quad, i + 4 * high, t]
            rb[lane, i] = b[quad, t, i + 4 * high] if layouts[1] == "row" else b[quad, i, t + 4 * high]
        for i in range(8):
            row, column = t + 4 * high, i
            if dtype == "f32":
                row, column = (lane & 1) + (i & 2) + 4 * high, (i & 4) + (lane & 2) + (i & 1)
            rc[lane, i], due[lane, i] = c[quad, row, column], exact[quad, row, column]
    count = 8 if dtype == "f32" else 4
    d = np.zeros_like(rc)
    spelling = f"mma.sync.aligned.m8n8k4.{layouts[0]}.{layouts[1]}.{dtype}.f16.f16.{dtype}"
    raw = [x.view(np.uint8).reshape(-1) for x in (ra, rb, rc, d)]
    launch(program(spelling, [2, 2, count, count], False), "k", 1, 32, raw)
    assert (d == due).all()


SPARSE = [
    ("f16", 16, 3),
    ("bf16", 32, 1),
    ("tf32", 8, 2),
    ("tf32", 16, 0),
    ("s8", 32, 1),
    ("u8", 64, 0),
]


@pytest.mark.parametrize(("kind", "k", "selector"), SPARSE)
def test_a_sparse_factor(kind, k, selector):
    rng = np.random.default_rng(4)
    held = HELD[kind]
    bits = np.dtype(held).itemsize * 8
    of = 2 if kind == "tf32" else 4  # one of two, or two of four
    groups = k // of
    values = draw(rng, kind, (16, groups, of // 2))
    picks = np.sort(np.argsort(rng.random((16, groups, of)), axis=-1)[..., : of // 2], axis=-1)
    dense = np.zeros((16, groups, of), held)
    np.put_along_axis(dense, picks, values, axis=-1)
    nibbles = np.where(picks[..., 0] == 1, 0b1110, 0b0100) if of == 2 else picks[..., 0] | picks[..., 1] << 2
    metadata = np.zeros((32, 1), np.uint32)
    words = [sum(int(n) << (4 * i) for i, n in enumerate(row)) for row in nibbles]
    for g in range(8):
        low, high = words[g], words[g + 8]
        if bits >= 16:
            for part in range(groups // 4):
                lane = 4 * g + (selector if groups == 4 else 2 * selector + part)
                metadata[lane] = (low >> 16 * part & 0xFFFF) | (high >> 16 * part & 0xFFFF) << 16
        elif groups == 8:
            metadata[4 * g + 2 * selector], metadata[4 * g + 2 * selector + 1] = low, high
        else:
            for part in range(2):
                metadata[4 * g + 2 * part] = low >> 32 * part & 0xFFFFFFFF
                metadata[4 * g + 2 * part + 1] = high >> 32 * part & 0xFFFFFFFF
    right = draw(rng, kind, (8, k))
    accumulate = "s32" if kind in ("s8", "u8") else "f32"
    start = draw(rng, accumulate, (16, 8))
    ai, bi, ci = a_index(16, k // 2, bits), a_index(8, k, bits), c_index(16)
    packed = values.reshape(16, k // 2)
    given = [packed[ai[..., 0], ai[..., 1]], right[bi[..., 0], bi[..., 1]], start[ci[..., 0], ci[..., 1]]]
    d = np.zeros_like(given[2])
    counts = [x[0].nbytes // 4 for x in (*given, d)]
    spelling = f"mma.sp.sync.aligned.m16n8k{k}.row.col.{accumulate}.{kind}.{kind}.{accumulate}"
    text = program(spelling, counts, False)
    c = "{" + ", ".join(f"%c{i}" for i in range(4)) + "};"
    text = text.replace(c, c.replace(";", f", %r3, {selector};"))
    text = text.replace("k(.param .u64 A", "k(.param .u64 E, .param .u64 A").replace(
        "mov.u32 %r1, %tid.x;",
        "mov.u32 %r1, %tid.x;\nld.param.u64 %rd7, [E]; mul.wide.u32 %rd8, %r1, 4; add.u64 %rd7, %rd7, %rd8; "
        "ld.global.b32 %r3, [%rd7];",
    )
    launch(
        text, "k", 1, 32, [metadata, *(np.ascontiguousarray(x).view(np.uint8).reshape(-1) for x in given), d]
    )
    due = dense.reshape(16, k).astype(np.float64) @ right.astype(np.float64).T + start
    assert (d.astype(np.float64) == due[ci[..., 0], ci[..., 1]]).all()
