"""mma of eight, six and four bits with scale factors and sparse A, and the moves of bytes that feed it, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import ptxtile as pt
from ptxtile.emulator import EmulatorError, launch
from ptxtile.layout.mma_fragment import ldmatrix, mma_a, mma_b, mma_c, stmatrix

SMALL = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}
VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, -0.5, -1, -2, -3])


def vector(name, count):
    return "{" + ", ".join(f"%{name}{i}" for i in range(count)) + "}"


def program(form, counts, tail, target="sm_120a", version="9.1"):
    """Registers of A, B, C, E (one), SA, SB (one each) from memory, the instruction, D to memory."""
    names = dict(zip("abc", counts))
    lines = [f".version {version}\n.target {target}\n.address_size 64", ".visible .entry k("]
    lines.append(", ".join(f".param .u64 {x}" for x in ("A", "B", "C", "E", "SA", "SB", "D")) + ")\n{")
    lines.append(".reg .b64 %rd<16>; .reg .b32 %r<8>, %a<9>, %b<9>, %c<9>, %d<9>;\nmov.u32 %r1, %tid.x;")
    for i, name in enumerate(("A", "B", "C", "E", "SA", "SB", "D")):
        count = names.get(name.lower(), counts[2] if name == "D" else 1)
        lines.append(
            f"ld.param.u64 %rd{i}, [{name}]; mul.wide.u32 %rd9, %r1, {4 * count}; add.u64 %rd{i}, %rd{i}, %rd9;"
        )
        for j in range(count if name in "ABC" else 0):
            lines.append(f"ld.global.b32 %{name.lower()}{j}, [%rd{i}+{4 * j}];")
    lines += [f"ld.global.b32 %r{2 + i}, [%rd{3 + i}];" for i in range(3)]
    operands = ", ".join(vector(x, names[x]) for x in "abc")
    lines.append(f"{form} {vector('d', counts[2])}, {operands}{tail};")
    lines += [f"st.global.b32 [%rd6+{4 * j}], %d{j};" for j in range(counts[2])]
    return "\n".join([*lines, "ret;\n}"]) + "\n"


def registers(fragment, words, count):
    made = np.zeros((32, count), np.uint32)
    found = fragment.layout.apply(*np.indices(fragment.shape), shape=fragment.shape)
    made[found["laneid"], found["m"]] = words
    return made


def as_words(values, kind, packed):
    """Rows of numbers as the words that registers hold."""
    held = values.astype(SMALL[kind]).view(np.uint8)
    if packed:
        held = held[:, ::2] | held[:, 1::2] << 4
    elif kind == "e2m1":
        held = held << 2  # in the middle of a byte
    return np.ascontiguousarray(held).view(np.uint32)


def run(form, shape, kinds, a, b, c, e=None, scales=None, tail="", packed=False, sparse=False):
    """D of one warp."""
    bits = 4 if packed else 8
    fragments = (
        mma_a(shape, bits, sparse),
        mma_b(shape, bits),
        mma_c(shape, 16 if c.dtype == np.float16 else 32),
    )
    words = (
        as_words(a, kinds[0], packed),
        as_words(b, kinds[1], packed),
        np.ascontiguousarray(c).view(np.uint32),
    )
    counts = [-(-word.size // 32) for word in words]
    held = [registers(*each) for each in zip(fragments, words, counts)]
    zeros = np.zeros(32, np.uint32)
    e = zeros if e is None else e
    sa, sb = scales or (zeros, zeros)
    out = np.zeros((32, counts[2]), np.uint32)
    launch(program(form, counts, tail), "k", 1, 32, [*held, e, sa, sb, out])
    found = fragments[2].layout.apply(*np.indices(fragments[2].shape), shape=fragments[2].shape)
    return np.ascontiguousarray(out[found["laneid"], found["m"]]).view(c.dtype)


@pytest.mark.parametrize("kinds", [("e4m3", "e5m2"), ("e2m1", "e2m3"), ("e3m2", "e2m1"), ("e2m3", "e3m2")])
@pytest.mark.parametrize("sums", [np.float32, np.float16])
def test_mixed_small_floats(kinds, sums):
    rng = np.random.default_rng(1)
    a, b = rng.choice(VALUES, (16, 32)), rng.choice(VALUES, (8, 32))
    c = rng.integers(-9, 9, (16, 8)).astype(sums)
    d = "f16" if sums is np.float16 else "f32"
    form = f"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.{d}.{kinds[0]}.{kinds[1]}.{d}"
    np.testing.assert_array_equal(run(form, "m16n8k32", kinds, a, b, c), (a @ b.T + c).astype(sums))


def factors(rng, lines, vector_size, kind):
    if kind == "ue8m0":
        power = rng.integers(-3, 4, (lines, vector_size))
        return 2.0**power, (power + 127).astype(np.uint8)
    value = rng.choice([0.5, 1, 1.5, 3], (lines, vector_size))
    return value, value.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)


def spread(rng, held, byte, thread, rows):
    """One register of each lane; what is not read is random."""
    words = rng.integers(0, 256, (32, 4), np.uint8)
    for line in range(len(held)):
        lane = 4 * (line % 8) + 2 * thread + line // 8 if rows else 4 * line + thread
        words[lane, byte : byte + held.shape[1]] = held[line]
    return np.ascontiguousarray(words).view(np.uint32).reshape(-1)


SCALED = [
    ("mxf8f6f4", ".scale_vec::1X", 1, "ue8m0", 32, (3, 1), (2, 3)),
    ("mxf8f6f4", "", 1, "ue8m0", 32, (0, 0), (1, 2)),
    ("mxf4", "", 2, "ue8m0", 64, (2, 1), (0, 1)),
    ("mxf4nvf4", ".scale_vec::2X", 2, "ue8m0", 64, (0, 0), (2, 3)),
    ("mxf4nvf4", ".scale_vec::4X", 4, "ue4m3", 64, (0, 1), (0, 2)),
    ("mxf4nvf4", ".scale_vec::4X", 4, "ue8m0", 64, (0, 0), (0, 0)),
]


@pytest.mark.parametrize(("kind", "vector_of", "size", "scale", "k", "at_a", "at_b"), SCALED)
@pytest.mark.parametrize("sparse", [False, True])
def test_block_scaling(kind, vector_of, size, scale, k, at_a, at_b, sparse):
    rng = np.random.default_rng(k + size)
    packed = kind != "mxf8f6f4"
    kinds = ("e2m1", "e2m1") if packed else ("e3m2", "e4m3")
    k = 2 * k if sparse else k
    dense, b = rng.choice(VALUES, (16, k)), rng.choice(VALUES, (8, k))
    c = rng.integers(-9, 9, (16, 8)).astype(np.float32)
    stored, e = dense, None
    if sparse:
        stored, dense, e = compress(rng, dense, 2 if packed else 1)
    by_a, bytes_a = factors(rng, 16, size, scale)
    by_b, bytes_b = factors(rng, 8, size, scale)
    words = spread(rng, bytes_a, *at_a, True), spread(rng, bytes_b, *at_b, False)
    variant = ".sp::ordered_metadata" if sparse else ""
    form = f"mma{variant}.sync.aligned.m16n8k{k}.row.col.kind::{kind}.block_scale{vector_of}.f32.{kinds[0]}.{kinds[1]}.f32.{scale}"
    tail = (
        ", %r2, 0" if sparse else ""
    ) + f", {{%r3}}, {{{at_a[0]}, {at_a[1]}}}, {{%r4}}, {{{at_b[0]}, {at_b[1]}}}"
    out = run(form, f"m16n8k{k}", kinds, stored, b, c, e, words, tail, packed, sparse)
    block = k // size
    due = (dense * np.repeat(by_a, block, axis=1)) @ (b * np.repeat(by_b, block, axis=1)).T + c
    np.testing.assert_array_equal(out, due.astype(np.float32))


def compress(rng, dense, width):
    """Two of four (of `width` neighbours) stay: the stored half, what is left, and each lane's metadata.

    Of 16 groups a row, lane 4 g + 2 (groups 8 to 15) + (row g + 8) holds eight.
    """
    rows, k = dense.shape
    groups = dense.reshape(rows, k // (4 * width), 4, width)
    order = np.sort(np.argsort(rng.random(groups.shape[:3]), axis=2)[:, :, :2], axis=2)
    stored = np.take_along_axis(groups, order[..., None], axis=2)
    left = np.zeros_like(groups)
    np.put_along_axis(left, order[..., None], stored, axis=2)
    nibbles = order[..., 0] | order[..., 1] << 2
    words = np.zeros(32, np.uint32)
    for row, group in np.ndindex(nibbles.shape):
        lane = 4 * (row % 8) + 2 * (group // 8) + row // 8
        words[lane] |= np.uint32(int(nibbles[row, group]) << 4 * (group % 8))
    return stored.reshape(rows, -1), left.reshape(rows, k), words


@pytest.mark.parametrize("kind", ["", "kind::f8f6f4."])
def test_sparse_bytes(kind):
    rng = np.random.default_rng(3)
    dense, b = rng.choice(VALUES, (16, 64)), rng.choice(VALUES, (8, 64))
    c = rng.integers(-9, 9, (16, 8)).astype(np.float32)
    stored, left, e = compress(rng, dense, 1)
    form = f"mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.{kind}f32.e4m3.e5m2.f32"
    out = run(form, "m16n8k64", ("e4m3", "e5m2"), stored, b, c, e, tail=", %r2, 0", sparse=True)
    np.testing.assert_array_equal(out, left @ b.T + c)


def test_infinities_and_nans_of_scale_factors():
    a, b, c = np.ones((16, 32)), np.ones((8, 32)), np.zeros((16, 8), np.float32)
    words = np.full(32, 0x7F7F7F7F, np.uint32)
    words[4:8] = 0xFF
    form = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
    tail = ", {%r3}, {0, 0}, {%r4}, {0, 0}"
    out = run(form, "m16n8k32", ("e4m3", "e4m3"), a, b, c, None, (words, np.full(32, 0x7F, np.uint32)), tail)
    assert (out.view(np.uint32)[[1, 9]] == 0x7FFFFFFF).all()
    assert (np.delete(out, [1, 9], axis=0) == 32).all()
    top = np.full(32, 0xFE, np.uint32)
    assert (run(form, "m16n8k32", ("e4m3", "e4m3"), a, b, c, None, (top, top), tail) == np.inf).all()


# --- moves -------------------------------------------------------------------------------------------------------------
MOVE = """.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 A, .param .u64 B)
{{
.reg .b64 %rd<8>; .reg .b32 %r<32>;
.shared .align 16 .b8 s[1024];
ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B]; mov.u32 %r1, %tid.x; mov.u32 %r2, s;
mul.wide.u32 %rd3, %r1, 32; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
shl.b32 %r3, %r1, 4; add.u32 %r2, %r2, %r3;
ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%rd1];
{body}
ret;
}}
"""
LOAD = """st.shared.v4.b32 [%r2], {{%r4, %r5, %r6, %r7}};
bar.warp.sync -1;
{form} {registers}, [%r2];
"""


def move(body, held):
    out = np.zeros((32, 8), np.uint32)
    given = np.zeros((32, 8), np.uint32)
    given[:, :4] = held
    launch(MOVE.format(body=body), "k", 1, 32, [given, out])
    return out


@pytest.mark.parametrize("source", ["", ".b6x16_p32", ".b4x16_p64"])
@pytest.mark.parametrize(
    ("shape", "count"), [("m8n16", 1), ("m8n16", 2), ("m8n16", 4), ("m16n16", 1), ("m16n16", 2)]
)
def test_loads_of_bytes(shape, count, source):
    if shape == "m8n16" and not source:
        return
    rng = np.random.default_rng(count)
    bits = int(source[2]) if source else 8
    values = rng.integers(0, 1 << bits, (32, 16), np.uint8)
    lines = np.zeros((32, 16), np.uint8)
    for row in range(32):
        number = sum(int(x) << (bits * i) for i, x in enumerate(values[row]))
        lines[row] = np.frombuffer(number.to_bytes(16, "little"), np.uint8)
    registers = count * (2 if shape == "m16n16" else 1)
    kind = f".b8x16{source}" if source else ".b8"
    form = f"ldmatrix.sync.aligned.{shape}.x{count}{'.trans' if shape == 'm16n16' else ''}.shared::cta{kind}"
    names = "{" + ", ".join(f"%r{10 + i}" for i in range(registers)) + "}"
    body = LOAD.format(form=form, registers=names)
    body += "\n".join(f"st.global.b32 [%rd2+{4 * i}], %r{10 + i};" for i in range(registers))
    out = move(body, np.ascontiguousarray(lines).view(np.uint32))
    rows = 16 if shape == "m16n16" else 8
    matrices = values[: rows * count].reshape(count, rows, 16)
    if shape == "m16n16":
        matrices = matrices.transpose(0, 2, 1)
    words = np.ascontiguousarray(matrices).view(np.uint32)
    fragment = ldmatrix(shape, count)
    found = fragment.layout.apply(*np.indices(fragment.shape), shape=fragment.shape)
    np.testing.assert_array_equal(out[found["laneid"], found["m"]], words.reshape(fragment.shape))


@pytest.mark.parametrize("count", [1, 2, 4])
def test_stores_of_bytes(count):
    rng = np.random.default_rng(count)
    held = rng.integers(0, 1 << 32, (32, 4), np.uint64).astype(np.uint32)
    names = "{" + ", ".join(f"%r{4 + i}" for i in range(count)) + "}"
    body = f"""st.shared.v4.b32 [%r2], {{0, 0, 0, 0}};
bar.warp.sync -1;
stmatrix.sync.aligned.m16n8.x{count}.trans.shared::cta.b8 [%r2], {names};
bar.warp.sync -1;
ld.shared.v4.b32 {{%r10, %r11, %r12, %r13}}, [%r2];
st.global.v4.b32 [%rd2], {{%r10, %r11, %r12, %r13}};"""
    out = move(body, held)[:, :4]
    memory = np.zeros((32, 16), np.uint8)
    fragment = stmatrix("m16n8", count)
    found = fragment.layout.apply(*np.indices(fragment.shape), shape=fragment.shape)
    for matrix, g, t in np.ndindex(fragment.shape):
        word = int(held[found["laneid"][matrix, g, t], found["m"][matrix, g, t]])
        for j, (row, column) in enumerate(((g, 2 * t), (g, 2 * t + 1), (g + 8, 2 * t), (g + 8, 2 * t + 1))):
            memory[8 * matrix + column, row] = word >> 8 * j & 255
    np.testing.assert_array_equal(out.view(np.uint8), memory)


def test_rows_of_bytes_are_aligned():
    body = LOAD.format(
        form="add.u32 %r2, %r2, 8;\nldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64", registers="{%r10}"
    )
    with pytest.raises(EmulatorError, match="misaligned: reads a row at shared address 0x408") as caught:
        move(body, np.zeros((32, 4), np.uint32))
    assert caught.value.kind == "misaligned"


def test_nvidias_assembler_takes_the_programs():
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    form = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e2m1.f32.ue8m0"
    text = program(form, (4, 2, 4), ", {%r3}, {0, 0}, {%r4}, {0, 0}")
    assert pt.assemble(text.replace(".version 9.1", ".version 8.8"), "sm_120a")
    form = "ldmatrix.sync.aligned.m16n16.x2.trans.shared::cta.b8x16.b6x16_p32"
    text = MOVE.format(body=LOAD.format(form=form, registers="{%r10, %r11, %r12, %r13}"))
    assert pt.assemble(text.replace(".version 9.1", ".version 8.8"), "sm_100a")
