"""tcgen05.mma on the emulator: every kind, shape and place of A against NumPy, exact by small integers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tensor_memory_kernel import descriptor, instruction, place, run

HALF, BF16, FP8, FP8W = np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
SIZE = 32768
# kind: the dtype that holds an element, its code, and k
KINDS = {
    "f16": [(HALF, 0, 16), (BF16, 1, 16)],
    "tf32": [(np.float32, 2, 8)],
    "f8f6f4": [(FP8, 0, 32), (FP8W, 1, 32)],
    "i8": [(np.uint8, 0, 32), (np.int8, 1, 32)],
}


def lines_of(matrix, dtype):
    """A matrix of numbers as lines of bytes."""
    held = np.ascontiguousarray(matrix.astype(dtype))
    return held.view(np.uint8).reshape(len(held), -1)


def lanes(letter, rows):
    row = np.arange(rows)
    return row // 16 * 32 + row % 16 if letter in "CF" else row


def unfold(words, letter, rows, n):
    """D from tensor memory, (128, columns) to (rows, n)."""
    if letter in "ACDF":
        return words[lanes(letter, rows), :n]
    parts = 128 // rows
    return np.concatenate(
        [words[part * rows : (part + 1) * rows, : n // parts] for part in range(parts)], axis=1
    )


def fold(matrix, letter, words):
    """The inverse: into (128, columns)."""
    rows, n = matrix.shape
    if letter in "ACDF":
        words[lanes(letter, rows), :n] = matrix
        return
    parts = 128 // rows
    for part in range(parts):
        words[part * rows : (part + 1) * rows, : n // parts] = matrix[
            :, part * n // parts : (part + 1) * n // parts
        ]


def numbers(rng, low, high, shape):
    return rng.integers(low, high, shape).astype(np.int64)


def work(form, idesc, a, b, extra="", flag="%p5", off=""):
    """One product: D at column 0, the matrices by descriptor or address."""
    lines = [f"mov.b32 %r55, {idesc};"]
    if isinstance(a, int):
        lines.append(f"add.u64 %rd11, %rd10, {a};")
    else:
        lines.append(f"add.u32 %r56, %r50, {a[1:]};")
    lines.append(f"add.u64 %rd12, %rd10, {b};")
    left = "%rd11" if isinstance(a, int) else "[%r56]"
    return "\n".join([*lines, f"{form} [%r50], {left}, %rd12, {extra}%r55, {off}{flag};"])


def shared_of(pieces, size=SIZE):
    raw = np.zeros(size, np.uint8)
    for start, piece in pieces:
        raw[start : start + len(piece)] = piece
    return raw


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("kind", list(KINDS))
def test_dense_from_shared_memory(kind, swizzle):
    rng = np.random.default_rng(1)
    for dtype, code, k in KINDS[kind]:
        m, n = 128, 64
        low = 0 if dtype is np.uint8 else -4
        a, b, c = numbers(rng, low, 5, (m, k)), numbers(rng, low, 5, (n, k)), numbers(rng, -9, 9, (m, n))
        raw_a, along_a, down_a = place(lines_of(a, dtype), swizzle, 16384)
        raw_b, along_b, down_b = place(lines_of(b, dtype), swizzle, 16384)
        idesc = instruction(m, n, code, code, 2 if kind == "i8" else 1)
        held = np.int32 if kind == "i8" else np.float32
        words = np.ascontiguousarray(c.astype(held)).view(np.uint32)
        out = run(
            work(
                f"tcgen05.mma.cta_group::1.kind::{kind}",
                idesc,
                descriptor(along_a, down_a, swizzle),
                descriptor(along_b, down_b, swizzle, 16384),
            ),
            shared_of([(0, raw_a), (16384, raw_b)]),
            words,
        )
        np.testing.assert_array_equal(out.view(held), a @ b.T + c)


SHAPES = [
    (64, 24, "F", "", False),
    (128, 16, "D", "", False),
    (128, 256, "D", "", False),
    (32, 64, "G", ".ws", False),
    (64, 128, "E", ".ws", False),
    (128, 64, "D", ".ws", False),
    (128, 64, "B", "", True),
    (256, 96, "A", "", True),
]


@pytest.mark.parametrize(("m", "n", "letter", "form", "pair"), SHAPES)
@pytest.mark.parametrize("place_of_a", ["shared", "tensor"])
def test_shapes_and_layouts_of_d(m, n, letter, form, pair, place_of_a):
    rng = np.random.default_rng(m + n)
    k, ctas = 16, 2 if pair else 1
    rows = m // ctas
    a, b, c = numbers(rng, -4, 5, (m, k)), numbers(rng, -4, 5, (n, k)), numbers(rng, -9, 9, (m, n))
    columns = n if letter in "ACDF" else n * rows // 128
    words = np.zeros((ctas, 128, columns + 8), np.uint32)
    shared = np.zeros((ctas, 32768), np.uint8)
    for cta in range(ctas):
        mine = a[cta * rows : (cta + 1) * rows]
        raw_a, along_a, down_a = place(lines_of(mine, HALF), 32, 16384)
        raw_b, along_b, down_b = place(lines_of(b[cta * n // ctas : (cta + 1) * n // ctas], HALF), 64, 16384)
        shared[cta, :16384], shared[cta, 16384:] = raw_a, raw_b
        fold(c[cta * rows : (cta + 1) * rows].astype(np.float32).view(np.uint32), letter, words[cta])
        words[cta, lanes(letter, rows), columns:] = lines_of(mine, HALF).view(np.uint32)
    group = 2 if pair else 1
    out = run(
        work(
            f"tcgen05.mma{form}.cta_group::{group}.kind::f16",
            instruction(m, n),
            descriptor(along_a, down_a, 32) if place_of_a == "shared" else f"+{columns}",
            descriptor(along_b, down_b, 64, 16384),
        ),
        shared if pair else shared[0],
        words if pair else words[0],
        pair,
    ).reshape(words.shape)
    found = np.concatenate([unfold(each, letter, rows, n) for each in out])
    np.testing.assert_array_equal(found.view(np.float32), a @ b.T + c)
    np.testing.assert_array_equal(out[:, :, columns:], words[:, :, columns:])


@pytest.mark.parametrize("which", ["a", "b", "both"])
@pytest.mark.parametrize(("dtype", "kind", "code", "k", "swizzle"), [
    (HALF, "f16", 0, 16, 0), (HALF, "f16", 0, 16, 32), (HALF, "f16", 0, 16, 128), (np.int8, "i8", 1, 32, 64),
    (np.int8, "i8", 1, 32, 0),
])  # fmt: skip
def test_transposed_matrices(which, dtype, kind, code, k, swizzle):
    rng = np.random.default_rng(k)
    m, n = 128, 64
    a, b = numbers(rng, -4, 5, (m, k)), numbers(rng, -4, 5, (n, k))
    made = []
    for offset, matrix, turned in ((0, a, which != "b"), (16384, b, which != "a")):
        raw, along, down = place(lines_of(matrix.T if turned else matrix, dtype), swizzle, 16384)
        if turned and not swizzle:
            along, down = down, along
        made.append((raw, descriptor(along, down, swizzle, offset)))
    idesc = instruction(
        m, n, code, code, 2 if kind == "i8" else 1, trans_a=which != "b", trans_b=which != "a"
    )
    out = run(
        work(f"tcgen05.mma.cta_group::1.kind::{kind}", idesc, made[0][1], made[1][1], flag="%p6"),
        shared_of([(0, made[0][0]), (16384, made[1][0])]),
        np.zeros((128, n), np.uint32),
    )
    np.testing.assert_array_equal(out.view(np.int32 if kind == "i8" else np.float32), a @ b.T)


def test_transposed_tf32_has_swizzled_pairs_of_chunks():
    rng = np.random.default_rng(8)
    m, n, k = 128, 32, 8
    a, b = numbers(rng, -9, 10, (m, k)), numbers(rng, -9, 10, (n, k))
    lines = lines_of(a.T, np.float32)  # 8 lines of k, 512 bytes: blocks of 4 lines of 128 bytes
    raw = np.zeros(16384, np.uint8)
    for line, chunk in np.ndindex(k, m // 4):
        start = (chunk // 8 * 2 + line // 4) * 512 + line % 4 * 128 + chunk % 8 * 16
        start ^= start >> 2 & 0x60
        raw[start : start + 16] = lines[line, chunk * 16 : chunk * 16 + 16]
    raw_b, along, down = place(lines_of(b, np.float32), 32, 16384)
    out = run(
        work(
            "tcgen05.mma.cta_group::1.kind::tf32",
            instruction(m, n, 2, 2, trans_a=1),
            descriptor(1024, 512, "pairs"),
            descriptor(along, down, 32, 16384),
            flag="%p6",
        ),
        shared_of([(0, raw), (16384, raw_b)]),
        np.zeros((128, n), np.uint32),
    )
    np.testing.assert_array_equal(out.view(np.float32), a @ b.T)


def test_signs_flags_and_sums_of_f16():
    rng = np.random.default_rng(3)
    m, n, k = 64, 16, 16
    a, b, c = numbers(rng, -4, 5, (m, k)), numbers(rng, -4, 5, (n, k)), numbers(rng, -9, 9, (m, n))
    raw_a, along_a, down_a = place(lines_of(a, HALF), 32, 8192)
    raw_b, along_b, down_b = place(lines_of(b, HALF), 32, 8192)
    parts = [(0, raw_a), (8192, raw_b)]
    descriptors = descriptor(along_a, down_a, 32), descriptor(along_b, down_b, 32, 8192)
    words = np.full((128, n), 0xABCD0000, np.uint32)
    fold(c.astype(HALF).view(np.uint16).astype(np.uint32) | 0xABCD0000, "F", words)
    form = "tcgen05.mma.cta_group::1.kind::f16"
    for idesc, flag, due in (
        (instruction(m, n, d=0), "%p5", a @ b.T + c),
        (instruction(m, n, d=0, neg_a=1), "%p5", c - a @ b.T),
        (instruction(m, n, d=0, neg_b=1), "!%p6", c - a @ b.T),
        (instruction(m, n, d=0), "%p6", a @ b.T),
        (instruction(m, n, d=0), "%p5, 2", a @ b.T + c / 4),
    ):
        out = unfold(
            run(work(form, idesc, *descriptors, flag=flag), shared_of(parts, 16384), words), "F", m, n
        )
        assert (out >> 16 == 0xABCD).all()
        np.testing.assert_array_equal(out.astype(np.uint16).view(HALF), due)


def test_lanes_that_are_off_keep_their_sums():
    rng = np.random.default_rng(4)
    m, n, k = 128, 16, 16
    a, b = numbers(rng, -4, 5, (m, k)), numbers(rng, -4, 5, (n, k))
    raw_a, along_a, down_a = place(lines_of(a, HALF), 32, 8192)
    raw_b, along_b, down_b = place(lines_of(b, HALF), 32, 8192)
    off = "mov.b32 %r57, 1; mov.b32 %r58, 0; mov.b32 %r59, -1; mov.b32 %r60, 0x80000000;\n"
    words = np.full((128, n), 7, np.uint32)
    out = run(
        off
        + work(
            "tcgen05.mma.cta_group::1.kind::f16",
            instruction(m, n),
            descriptor(along_a, down_a, 32),
            descriptor(along_b, down_b, 32, 8192),
            flag="%p6",
            off="{%r57, %r58, %r59, %r60}, ",
        ),
        shared_of([(0, raw_a), (8192, raw_b)], 16384),
        words,
    )
    kept = np.zeros(128, bool)
    kept[[0, *range(64, 96), 127]] = True
    assert (out[kept] == 7).all()
    np.testing.assert_array_equal(out[~kept].view(np.float32), (a @ b.T)[~kept])


def test_columns_of_b_that_count_as_zero():
    rng = np.random.default_rng(5)
    m, n, k = 64, 64, 16
    a, b = numbers(rng, -4, 5, (m, k)), numbers(rng, -4, 5, (n + 8, k))
    raw_a, along_a, down_a = place(lines_of(a, HALF), 32, 8192)
    raw_b, along_b, down_b = place(lines_of(b, HALF), 32, 8192)
    # the third example of the manual: mask0 111 0000 111 …, mask1 0000 111 …; and B from its third column on
    mask = 1 << 32 | 1 << 39 | 2 << 40 | 3 << 48 | 2 << 56
    out = run(
        f"mov.b64 %rd13, {mask};\n"
        + work(
            "tcgen05.mma.ws.cta_group::1.kind::f16",
            instruction(m, n),
            descriptor(along_a, down_a, 32),
            descriptor(along_b, down_b, 32, 8192),
            flag="%p6, %rd13",
        ),
        shared_of([(0, raw_a), (8192, raw_b)], 16384),
        np.zeros((128, n // 2), np.uint32),
    )
    zero = np.array([[c % 7 < 3 for c in range(32)], [c % 7 >= 4 for c in range(32)]]).reshape(-1)
    due = np.where(zero, 0, a @ b[2 : n + 2].T)
    np.testing.assert_array_equal(unfold(out, "E", m, n).view(np.float32), due)


def test_shifted_rows_of_a():
    rng = np.random.default_rng(6)
    m, n, k = 128, 16, 16
    a, b = numbers(rng, -4, 5, (m, k)), numbers(rng, -4, 5, (n, k))
    raw_b, along_b, down_b = place(lines_of(b, HALF), 32, 8192)
    words = np.zeros((128, n + 8), np.uint32)
    words[:, n:] = lines_of(a, HALF).view(np.uint32)
    out = run(
        work(
            "tcgen05.mma.cta_group::1.kind::f16.ashift",
            instruction(m, n),
            f"+{n}",
            descriptor(along_b, down_b, 32),
            flag="%p6",
        ),
        raw_b,
        words,
    )
    np.testing.assert_array_equal(out[:, :n].view(np.float32), a[[*range(1, 128), 127]] @ b.T)
