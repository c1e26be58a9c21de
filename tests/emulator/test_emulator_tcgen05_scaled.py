"""tcgen05.mma with block scaling, with elements of six and four bits, with sparse A, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tensor_memory_kernel import descriptor, instruction, place, run

SMALL = {
    "e4m3": (ml_dtypes.float8_e4m3fn, 0),
    "e5m2": (ml_dtypes.float8_e5m2, 1),
    "e2m3": (ml_dtypes.float6_e2m3fn, 3),
    "e3m2": (ml_dtypes.float6_e3m2fn, 4),
    "e2m1": (ml_dtypes.float4_e2m1fn, 5),
}
VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, -0.5, -1, -2, -3])
M, N = 128, 32


def codes(values, kind):
    return values.astype(SMALL[kind][0]).view(np.uint8)


def padded(values, kind):
    """Elements of f8f6f4 in shared memory: 16 in 16 bytes, six and four bits together and then padding."""
    held = codes(values, kind)
    bits = {"e2m3": 6, "e3m2": 6, "e2m1": 4}.get(kind, 8)
    out = np.zeros(held.shape, np.uint8)
    for row, start in np.ndindex(held.shape[0], held.shape[1] // 16):
        number = sum(int(x) << (bits * i) for i, x in enumerate(held[row, start * 16 : start * 16 + 16]))
        out[row, start * 16 : start * 16 + 16] = np.frombuffer(number.to_bytes(16, "little"), np.uint8)
    return out


def packed(values):
    held = codes(values, "e2m1")
    return held[:, ::2] | held[:, 1::2] << 4


def matrices(lines_a, lines_b):
    raw_a, along_a, down_a = place(lines_a, 32, 8192)
    raw_b, along_b, down_b = place(lines_b, 64 if lines_b.shape[1] == 64 else 32, 8192)
    swizzle = 64 if lines_b.shape[1] == 64 else 32
    return (
        np.concatenate([raw_a, raw_b]),
        descriptor(along_a, down_a, 32),
        descriptor(along_b, down_b, swizzle, 8192),
    )


def product(form, idesc, a, b, tail="", flag="%p6", places=()):
    lines = [f"mov.b32 %r55, {idesc}; add.u64 %rd12, %rd10, {b};"]
    lines.append(f"add.u64 %rd11, %rd10, {a};" if isinstance(a, int) else f"add.u32 %r56, %r50, {a[1:]};")
    lines += [f"add.u32 %r{57 + i}, %r50, {column};" for i, column in enumerate(places)]
    left = "%rd11" if isinstance(a, int) else "[%r56]"
    return "\n".join([*lines, f"{form} [%r50], {left}, %rd12, {tail}{flag};"])


@pytest.mark.parametrize(
    ("a_kind", "b_kind"), [("e2m1", "e4m3"), ("e2m3", "e3m2"), ("e3m2", "e2m1"), ("e5m2", "e2m3")]
)
@pytest.mark.parametrize("inside", [False, True])
def test_six_and_four_bits(a_kind, b_kind, inside):
    rng = np.random.default_rng(1)
    a, b = rng.choice(VALUES, (M, 32)), rng.choice(VALUES, (N, 32))
    shared, left, right = matrices(padded(a, a_kind), padded(b, b_kind))
    words = np.zeros((128, N + 8), np.uint32)
    held = codes(a, a_kind) << (2 if a_kind == "e2m1" else 0)  # in the middle of a byte
    words[:, N:] = np.ascontiguousarray(held).view(np.uint32)
    idesc = instruction(M, N, SMALL[a_kind][1], SMALL[b_kind][1])
    form = "tcgen05.mma.cta_group::1.kind::f8f6f4"
    out = run(product(form, idesc, f"+{N}" if inside else left, right, "%r55, "), shared, words)
    np.testing.assert_array_equal(out[:, :N].view(np.float32), a @ b.T)


def factors(rng, lines, vector, kind):
    """Scale factors: values and bytes (lines, vector)."""
    if kind == "ue8m0":
        power = rng.integers(-3, 4, (lines, vector))
        return 2.0**power, (power + 127).astype(np.uint8)
    value = rng.choice([0.5, 1, 1.5, 3], (lines, vector))
    return value, value.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)


def lay(words, column, held, first):
    """Scale factors in tensor memory: line 32 c + l in lanes l, 32 + l, …, of column c, from byte `first` on."""
    raw = words.view(np.uint8).reshape(*words.shape, 4)
    for line, i in np.ndindex(held.shape):
        raw[line % 32 :: 32, column + line // 32, first + i] = held[line, i]


SCALED = [
    ("mxf8f6f4", ".scale_vec::1X", 1, "ue8m0", 32),
    ("mxf8f6f4", "", 1, "ue8m0", 32),
    ("mxf4", ".block32", 2, "ue8m0", 64),
    ("mxf4nvf4", ".scale_vec::2X", 2, "ue8m0", 64),
    ("mxf4nvf4", ".scale_vec::4X", 4, "ue8m0", 64),
    ("mxf4nvf4", ".block16", 4, "ue4m3", 64),
]


@pytest.mark.parametrize(("kind", "vector_of", "vector", "scale", "k"), SCALED)
@pytest.mark.parametrize("first", [0, 2])
def test_block_scaling(kind, vector_of, vector, scale, k, first):
    rng = np.random.default_rng(k + vector)
    if first % vector:
        first = 0
    a, b = rng.choice(VALUES, (M, k)), rng.choice(VALUES, (N, k))
    c = rng.integers(-9, 9, (M, N)).astype(np.float32)
    by_a, bytes_a = factors(rng, M, vector, scale)
    by_b, bytes_b = factors(rng, N, vector, scale)
    four = kind != "mxf8f6f4"
    shared, left, right = matrices(
        packed(a) if four else padded(a, "e3m2"), packed(b) if four else padded(b, "e2m1")
    )
    words = np.zeros((128, N + 8), np.uint32)
    words[:, :N] = c.view(np.uint32)
    lay(words, N, bytes_a, first)
    lay(words, N + 4, bytes_b, first)
    types = (1, 1) if four else (4, 5)
    idesc = instruction(M, N, *types, 0, ue8m0=int(scale == "ue8m0"), sfa=first, sfb=first)
    form = f"tcgen05.mma.cta_group::1.kind::{kind}.block_scale{vector_of}"
    tail = "%r55, [%r57], [%r58], "
    out = run(product(form, idesc, left, right, tail, "%p5", (N, N + 4)), shared, words)
    block = k // vector
    due = (a * np.repeat(by_a, block, axis=1)) @ (b * np.repeat(by_b, block, axis=1)).T + c
    np.testing.assert_array_equal(out[:, :N].view(np.float32), due)


def compress(rng, dense, kept, unit, width=1):
    """`kept` of each `unit` (of `width` neighbours) stay: the stored half, what is left, and the kept places."""
    rows, k = dense.shape
    groups = dense.reshape(rows, k // (unit * width), unit, width)
    order = np.sort(np.argsort(rng.random(groups.shape[:3]), axis=2)[:, :, :kept], axis=2)
    stored = np.take_along_axis(groups, order[..., None], axis=2)
    left = np.zeros_like(groups)
    np.put_along_axis(left, order[..., None], stored, axis=2)
    return stored.reshape(rows, -1), left.reshape(rows, k), order


def lay_metadata(words, column, order, kind, selector):
    """By the bit that each group's four begin at: 128 lanes of 128 bits, as CUTLASS lays them out."""
    rows, groups = order.shape[:2]
    nibbles = np.where(order[..., 0] == 0, 4, 14) if kind == "tf32" else order[..., 0] | order[..., 1] << 2
    for row, group in np.ndindex(rows, groups):
        if kind in ("f16", "tf32"):
            bit = row % 8 * 128 + row // 8 % 2 * 16 + row // 16 * 2048 + group % 4 * 4 + group // 4 * 1024
            bit += selector * 32
        else:
            bit = row * 128 + group * 4
        words[bit // 128, column + bit % 128 // 32] |= np.uint32(int(nibbles[row, group]) << bit % 32)


SPARSE = [("f16", 32, np.float16, 0, 0), ("f16", 32, np.float16, 0, 1), ("tf32", 16, np.float32, 2, 1),
          ("f8f6f4", 64, None, 0, 0), ("i8", 64, np.int8, 1, 0), ("mxf8f6f4", 64, None, 0, 0), ("mxf4", 128, None, 1, 0)]  # fmt: skip


@pytest.mark.parametrize(("kind", "k", "dtype", "code", "selector"), SPARSE)
def test_sparse(kind, k, dtype, code, selector):
    rng = np.random.default_rng(k)
    scaled = kind.startswith("mx")
    dense, b = rng.choice(VALUES[[0, 2, 4, 5, 7, 9]], (M, k)), rng.choice(VALUES[[0, 2, 4, 5, 7, 9]], (N, k))
    kept, unit, width = (1, 2, 1) if kind == "tf32" else (2, 4, 2 if kind == "mxf4" else 1)
    stored, left, order = compress(rng, dense, kept, unit, width)
    if kind == "mxf4":
        lines = packed(stored), packed(b)
    elif dtype is None:
        lines = padded(stored, "e4m3"), padded(b, "e4m3")
    else:
        lines = tuple(
            np.ascontiguousarray(x.astype(dtype)).view(np.uint8).reshape(len(x), -1) for x in (stored, b)
        )
    shared, a_desc, b_desc = matrices(*lines)
    words = np.zeros((128, N + 16), np.uint32)
    lay_metadata(words, N, order, kind, selector)
    by_a, by_b = np.ones((M, 1)), np.ones((N, 1))
    if scaled:
        vector = 2 if kind == "mxf4" else 1
        by_a, bytes_a = factors(rng, M, vector, "ue8m0")
        by_b, bytes_b = factors(rng, N, vector, "ue8m0")
        lay(words, N + 4, bytes_a, 0)
        lay(words, N + 8, bytes_b, 0)
    more = {"ue8m0": 1} if scaled else {"selector": selector}
    idesc = instruction(M, N, code, code, 0 if scaled else 2 if kind == "i8" else 1, sparse=1, **more)
    form = f"tcgen05.mma.sp.cta_group::1.kind::{kind}{'.block_scale' if scaled else ''}"
    tail = "[%r57], %r55, " + ("[%r58], [%r59], " if scaled else "")
    out = run(product(form, idesc, a_desc, b_desc, tail, places=(N, N + 4, N + 8)), shared, words)
    due = (left * np.repeat(by_a, k // by_a.shape[1], axis=1)) @ (
        b * np.repeat(by_b, k // by_b.shape[1], axis=1)
    ).T
    np.testing.assert_array_equal(out[:, :N].view(np.int32 if kind == "i8" else np.float32), due)


def test_sparse_rows_in_half_of_the_lanes():
    rng = np.random.default_rng(2)
    dense, b = rng.integers(-4, 5, (64, 32)), rng.integers(-4, 5, (N, 32))
    stored, left, order = compress(rng, dense, 2, 4)
    lines = [
        np.ascontiguousarray(x.astype(np.float16)).view(np.uint8).reshape(len(x), -1) for x in (stored, b)
    ]
    shared, a_desc, b_desc = matrices(*lines)
    whole = np.zeros((128, 4), np.uint32)
    lay_metadata(whole, 0, order, "f16", 0)
    words = np.zeros((128, N + 8), np.uint32)
    row = np.arange(64)
    lanes = row // 16 * 32 + row % 16
    words[lanes, N : N + 4] = whole[:64]  # 16 lanes of each 32
    form = "tcgen05.mma.sp.cta_group::1.kind::f16"
    idesc = instruction(64, N, sparse=1)
    out = run(product(form, idesc, a_desc, b_desc, "[%r57], %r55, ", places=(N,)), shared, words)
    np.testing.assert_array_equal(out[lanes, :N].view(np.float32), left @ b.T)
