"""mma.sync, ldmatrix, stmatrix, movmatrix: which register of which lane holds which element, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ptxtile.emulator import EmulatorError, launch

WARPS = 2
HELD = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "f32": np.float32,
    "f64": np.float64,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "s8": np.int8,
    "u8": np.uint8,
    "s32": np.int32,
}


def a_index(m, k, bits):
    """(row, k) of every element of A by lane, register and place in the register, as the manual's figures say."""
    each = max(32 // bits, 1)
    count = m * k // 32 // each
    found = np.zeros((32, count, each, 2), int)
    for lane, register, place in np.ndindex(32, count, each):
        group, thread = divmod(lane, 4)
        half = register % 2 if m == 16 else 0
        block = register // 2 if m == 16 else register
        found[lane, register, place] = group + 8 * half, block * 4 * each + thread * each + place
    return found


def c_index(m):
    found = np.zeros((32, m // 4, 2), int)
    for lane, i in np.ndindex(32, m // 4):
        group, thread = divmod(lane, 4)
        found[lane, i] = group + 8 * (i // 2), thread * 2 + i % 2
    return found


def program(spelling, counts, wide):
    """A kernel whose threads load A, B, C registers from arrays, execute, and store D."""
    size = 8 if wide else 4
    kind = "f64" if wide else "b32"
    lines = [".version 8.7", ".target sm_90a", ".address_size 64"]
    lines.append(f".visible .entry k({', '.join(f'.param .u64 {x}' for x in 'ABCD')})\n{{")
    lines.append(f".reg .b64 %rd<9>; .reg .b32 %r<4>; .reg .{kind} %a<9>, %b<9>, %c<9>, %d<9>;")
    lines.append("mov.u32 %r1, %tid.x;")
    for i, (name, count) in enumerate(zip("ABCD", counts)):
        lines.append(f"ld.param.u64 %rd{i}, [{name}]; mul.wide.u32 %rd8, %r1, {count * size};")
        lines.append(f"add.u64 %rd{i}, %rd{i}, %rd8;")
    for i, (name, count) in enumerate(zip("abc", counts)):
        lines.extend(f"ld.global.{kind} %{name}{j}, [%rd{i}+{j * size}];" for j in range(count))

    def vector(name, count):
        return "{" + ", ".join(f"%{name}{j}" for j in range(count)) + "}"

    order = zip("dabc", (counts[3], *counts[:3]))
    lines.append(f"{spelling} {', '.join(vector(name, count) for name, count in order)};")
    lines.extend(f"st.global.{kind} [%rd3+{j * size}], %d{j};" for j in range(counts[3]))
    return "\n".join([*lines, "ret;", "}"])


def draw(rng, kind, shape):
    held = HELD[kind]
    if kind[0] in "su" and kind != "s32":
        return rng.integers(np.iinfo(held).min, np.iinfo(held).max + 1, shape).astype(held)
    if kind == "s32":
        return rng.integers(-1000, 1000, shape).astype(held)
    return rng.integers(-4, 5, shape).astype(held)  # small integers: every sum is exact


CASES = [
    *[(m, k, t, t, c, "") for t, k in (("f16", 16), ("f16", 8)) for m, c in ((16, "f32"), (16, "f16"))],
    *[(16, k, "bf16", "bf16", "f32", "") for k in (8, 16)],
    *[(16, k, "tf32", "tf32", "f32", "") for k in (4, 8)],
    (16, 32, "e4m3", "e4m3", "f32", ""),
    (16, 16, "e4m3", "e4m3", "f16", ""),
    *[(m, k, "s8", "u8", "s32", ".satfinite") for m, k in ((8, 16), (16, 16), (16, 32))],
    *[(m, k, "f64", "f64", "f64", "") for m, k in ((8, 4), (16, 4), (16, 8), (16, 16))],
]


@pytest.mark.parametrize(("m", "k", "a", "b", "c", "extra"), CASES)
def test_a_product_of_fragments(m, k, a, b, c, extra):
    rng = np.random.default_rng(7)
    bits = np.dtype(HELD[a]).itemsize * 8
    left, right = draw(rng, a, (WARPS, m, k)), draw(rng, b, (WARPS, 8, k))
    start = draw(rng, c, (WARPS, m, 8))
    ai, bi, ci = a_index(m, k, bits), a_index(8, k, bits), c_index(m)
    arrays = [
        left[:, ai[..., 0], ai[..., 1]],
        right[:, bi[..., 0], bi[..., 1]],
        start[:, ci[..., 0], ci[..., 1]],
    ]
    result = np.zeros_like(arrays[2])
    wide = a == "f64"
    counts = [x[0, 0].nbytes // (8 if wide else 4) for x in (*arrays, result)]
    spelling = f"mma.sync.aligned.m{m}n8k{k}.row.col{extra}.{c}.{a}.{b}.{c}"
    raw = [np.ascontiguousarray(x).view(np.uint8).reshape(-1) for x in (*arrays, result)]
    launch(program(spelling, counts, wide), "k", 1, 32 * WARPS, raw)
    due = np.einsum("wik,wjk->wij", left.astype(np.float64), right.astype(np.float64)) + start.astype(
        np.float64
    )
    found = raw[3].view(result.dtype).reshape(result.shape)
    assert (found.astype(np.float64) == due[:, ci[..., 0], ci[..., 1]]).all()


@pytest.mark.parametrize(("m", "k", "kind"), [(8, 32, "s4"), (16, 32, "u4"), (16, 64, "s4")])
def test_four_bit_integers(m, k, kind):
    rng = np.random.default_rng(8)
    low, high = (-8, 8) if kind == "s4" else (0, 16)
    left, right = rng.integers(low, high, (m, k)), rng.integers(low, high, (8, k))
    ai, bi, ci = a_index(m, k, 4), a_index(8, k, 4), c_index(m)

    def pack(matrix, index):
        parts = (matrix[index[..., 0], index[..., 1]] & 15).astype(np.uint32)
        return np.bitwise_or.reduce(parts << (4 * np.arange(8, dtype=np.uint32)), axis=-1).astype(np.uint32)

    a, b = pack(left, ai), pack(right, bi)
    c = np.zeros((32, m // 4), np.uint32)
    d = c.copy()
    spelling = f"mma.sync.aligned.m{m}n8k{k}.row.col.s32.{kind}.{kind}.s32"
    counts = [x.shape[1] for x in (a, b, c, d)]
    launch(program(spelling, counts, False), "k", 1, 32, [a, b, c, d])
    assert (d.view(np.int32) == (left @ right.T)[ci[..., 0], ci[..., 1]]).all()


@pytest.mark.parametrize("operation", ["xor", "and"])
@pytest.mark.parametrize(("m", "k"), [(8, 128), (16, 128), (16, 256)])
def test_single_bits(m, k, operation):
    rng = np.random.default_rng(9)
    left, right = rng.integers(0, 2, (m, k)), rng.integers(0, 2, (8, k))
    ai, bi, ci = a_index(m, k, 1), a_index(8, k, 1), c_index(m)

    def pack(matrix, index):
        parts = matrix[index[..., 0], index[..., 1]].astype(np.uint64)
        return (parts << np.arange(32, dtype=np.uint64)).sum(axis=-1).astype(np.uint32)

    a, b = pack(left, ai), pack(right, bi)
    c = np.arange(32 * (m // 4), dtype=np.uint32).reshape(32, m // 4)
    d = np.zeros_like(c)
    spelling = f"mma.sync.aligned.m{m}n8k{k}.row.col.s32.b1.b1.s32.{operation}.popc"
    launch(program(spelling, [x.shape[1] for x in (a, b, c, d)], False), "k", 1, 32, [a, b, c, d])
    both = left[:, None] ^ right[None] if operation == "xor" else left[:, None] & right[None]
    assert (d == c + both.sum(axis=-1)[ci[..., 0], ci[..., 1]]).all()


def test_an_undefined_source_makes_the_warps_result_undefined():
    spelling = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
    text = program(spelling, [2, 1, 4, 4], False).replace("ld.global.b32 %b0", "@false ld.global.b32 %b0")
    text = text.replace(
        "mov.u32 %r1, %tid.x;", "mov.u32 %r1, %tid.x; .reg .pred false; setp.gt.u32 false, %r1, 30;"
    )
    arrays = [np.zeros((32, n), np.uint32) for n in (2, 1, 4, 4)]
    with pytest.raises(EmulatorError) as caught:
        launch(text, "k", 1, 32, arrays)
    assert (caught.value.kind, str(caught.value).splitlines()[0]) == (
        "uninitialised",
        "uninitialised: the stored value depends on register %d0, which holds bits that were never written",
    )


def test_lanes_that_come_one_after_the_other_meet(run):
    """Half of the warp takes another way to the same instruction."""
    a, b = np.arange(64, dtype=np.uint16), np.zeros(32, np.uint32)
    run(
        """
        ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B];
        mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
        ld.global.b32 %r2, [%rd1];
        setp.lt.u32 %p1, %r1, 16; @%p1 bra L;
        add.u32 %r3, %r1, 1;
        L: movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r2;
        st.global.b32 [%rd2], %r4;
        """,
        [a, b],
    )
    assert (b.view(np.uint16).reshape(8, 8) == a.reshape(8, 8).T).all()


MATRICES = """
.shared .align 16 .b8 s[512];
ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B];
mov.u32 %r1, %tid.x; mov.u32 %r2, s; shl.b32 %r3, %r1, 4; add.u32 %r2, %r2, %r3;
mul.wide.u32 %rd3, %r1, 16; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
"""


@pytest.mark.parametrize("trans", ["", ".trans"])
def test_ldmatrix(run, trans):
    a, b = np.arange(256, dtype=np.uint16), np.zeros(256, np.uint16)
    run(
        MATRICES
        + f"""
        ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%rd1]; st.shared.v4.b32 [%r2], {{%r4, %r5, %r6, %r7}};
        bar.warp.sync -1;
        ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%r4, %r5, %r6, %r7}}, [%r2];
        st.global.v4.b32 [%rd2], {{%r4, %r5, %r6, %r7}};
        """,
        [a, b],
    )
    matrices = a.reshape(4, 8, 8)
    if trans:
        matrices = matrices.transpose(0, 2, 1)
    due = matrices.reshape(4, 32, 2).transpose(1, 0, 2)
    assert (b.reshape(32, 4, 2) == due).all()


@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix(run, count, trans):
    a, b = np.arange(256, dtype=np.uint16), np.zeros(256, np.uint16)
    vector = ", ".join(["%r4", "%r5", "%r6", "%r7"][:count])
    run(
        MATRICES
        + f"""
        st.shared.v4.b32 [%r2], {{0, 0, 0, 0}};
        ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%rd1];
        bar.warp.sync -1;
        stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%r2], {{{vector}}};
        bar.warp.sync -1;
        ld.shared.v4.b32 {{%r4, %r5, %r6, %r7}}, [%r2]; st.global.v4.b32 [%rd2], {{%r4, %r5, %r6, %r7}};
        """,
        [a, b],
    )
    due = a.reshape(32, 4, 2).transpose(1, 0, 2).reshape(4, 8, 8)
    if trans:
        due = due.transpose(0, 2, 1)
    assert (b.reshape(4, 8, 8)[:count] == due[:count]).all()
    assert not b.reshape(4, 8, 8)[count:].any()


def test_a_row_must_be_aligned(fail):
    error = fail(
        MATRICES + "add.u32 %r2, %r2, 8;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r2];",
        [np.zeros(256, np.uint16), np.zeros(256, np.uint16)],
    )
    assert str(error) == (
        "misaligned: reads a row at shared address 0x408, which is not a multiple of 16\n"
        "  line 12: ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r2]\n"
        "  thread (0, 0, 0) of CTA (0, 0, 0)"
    )


def test_rows_of_other_threads_take_a_barrier(fail):
    error = fail(
        MATRICES
        + "st.shared.v4.b32 [%r2], {0, 0, 0, 0};\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r2];",
        [np.zeros(256, np.uint16), np.zeros(256, np.uint16)],
    )
    assert error.kind == "race"
