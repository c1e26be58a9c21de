"""wgmma: matrices by descriptor in every layout, types, scales, and the hazards of what is in flight."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ptxtile.emulator import EmulatorError, launch

HELD = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "s8": np.int8,
    "u8": np.uint8,
}
MODES = {0: 0, 128: 1, 64: 2, 32: 3}
BYTES = 8192  # of shared memory for each matrix


def place(matrix, swizzle, major):
    """The bytes of a matrix (rows, k) in shared memory, and the leading and stride byte offsets.

    Blocks of eight lines follow each other along the lines' direction first; chunks of 16 bytes are exchanged.
    """
    size = matrix.itemsize
    span = swizzle or 16
    lines = matrix if major == "k" else matrix.T  # rows of what is contiguous
    blocks, across = lines.shape[0] // 8, lines.shape[1] * size // span
    raw = np.zeros(BYTES, np.uint8)
    for line, chunk in np.ndindex(lines.shape[0], lines.shape[1] * size // 16):
        block, column = line // 8, chunk * 16 // span
        start = (column * blocks + block) * 8 * span + line % 8 * span + chunk * 16 % span
        start ^= start >> 3 & {0: 0, 32: 0x10, 64: 0x30, 128: 0x70}[swizzle]
        piece = np.ascontiguousarray(lines[line, chunk * 16 // size : (chunk + 1) * 16 // size])
        raw[start : start + 16] = piece.view(np.uint8)
    along, down = blocks * 8 * span, 8 * span  # to the next column of blocks, to the next block of a column
    assert across * blocks * 8 * span <= BYTES
    if major == "k":
        return raw, along, down
    return (raw, along, down) if swizzle else (raw, down, along)


def descriptor(leading, stride, swizzle):
    return leading >> 4 << 16 | stride >> 4 << 32 | MODES[swizzle] << 62


BODY = """
.shared .align 1024 .b8 s[16384];
ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B]; ld.param.u64 %rd3, [C];
mov.u32 %r1, %tid.x; mov.u32 %r2, s; shl.b32 %r3, %r1, 7; add.u32 %r2, %r2, %r3; cvt.u64.u32 %rd4, %r3;
add.u64 %rd4, %rd1, %rd4; mov.u32 %r4, 0;
L: ld.global.v4.b32 {%r5, %r6, %r7, %r8}, [%rd4]; st.shared.v4.b32 [%r2], {%r5, %r6, %r7, %r8};
add.u64 %rd4, %rd4, 16; add.u32 %r2, %r2, 16; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 8; @%p1 bra L;
<FENCE>
bar.sync 0;
mul.wide.u32 %rd5, %r1, <WIDTH>; add.u64 %rd3, %rd3, %rd5;
<INIT>
mov.u32 %r9, s; shr.u32 %r9, %r9, 4; and.b32 %r9, %r9, 0x3fff; cvt.u64.u32 %rd6, %r9;
add.u64 %rd7, %rd6, <BDESC>; add.u64 %rd7, %rd7, 512; add.u64 %rd6, %rd6, <ADESC>;
setp.eq.u32 %p2, %r1, %r1;
<LOAD>
<WFENCE>
wgmma.mma_async.sync.aligned.<SHAPE>.<TYPES> {<D>}, <OPERANDS>;
<COMMIT>
<WAIT>
<STORE>
"""


def text(shape, types, count, operands, a_descriptor, b_descriptor, **changes):
    """The kernel: copies 16 KiB to shared memory, multiplies, stores the registers D."""
    d = [f"%d{i}" for i in range(count)]
    bits = "f32" if types.startswith(("f32", ".f32")) else "b32"
    parts = {
        "FENCE": "fence.proxy.async;",
        "INIT": "\n".join(f"ld.global.b32 {x}, [%rd3+{4 * i}];" for i, x in enumerate(d)),
        "LOAD": "",
        "WFENCE": "wgmma.fence.sync.aligned;",
        "COMMIT": "wgmma.commit_group.sync.aligned;",
        "WAIT": "wgmma.wait_group.sync.aligned 0;",
        "STORE": "\n".join(f"st.global.b32 [%rd3+{4 * i}], {x};" for i, x in enumerate(d)),
        **changes,
    }
    parts.update(WIDTH=str(4 * count), SHAPE=shape, TYPES=types, D=", ".join(d), OPERANDS=operands)
    parts.update(ADESC=str(a_descriptor), BDESC=str(b_descriptor))
    body = BODY
    for name, part in parts.items():
        body = body.replace(f"<{name}>", part)
    registers = f".reg .pred %p<9>; .reg .b32 %r<32>, %a<4>; .reg .b64 %rd<16>; .reg .{bits} %d<{count}>;"
    head = ".version 8.0\n.target sm_90a\n.address_size 64\n"
    entry = ".visible .entry k(.param .u64 A, .param .u64 B, .param .u64 C)"
    return f"{head}{entry}\n{{\n{registers}\n{body.strip()}\nret;\n}}\n"


def spread(matrix, count):
    """D (64, n) as registers: (128, registers)."""
    n = matrix.shape[1]
    found = np.zeros((128, n // 2), matrix.dtype)
    for thread in range(128):
        warp, lane = divmod(thread, 32)
        for i in range(n // 2):
            row = 16 * warp + lane // 4 + 8 * (i // 2 % 2)
            found[thread, i] = matrix[row, i // 4 * 8 + lane % 4 * 2 + i % 2]
    return found.reshape(128, -1)


def multiply(
    kind, n, k, *, swizzles=(128, 128), majors=("k", "k"), accumulate="f32", signs=(1, 1), scale="%p2"
):
    """Run one product; what is in C afterwards, and what should be."""
    rng = np.random.default_rng(11)
    held = HELD[kind]
    low = 0 if kind == "u8" else -4
    a, b = rng.integers(low, 5, (64, k)).astype(held), rng.integers(low, 5, (n, k)).astype(held)
    (ra, *a_offsets), (rb, *b_offsets) = (
        place(x, swizzle, major) for x, swizzle, major in zip((a, b), swizzles, majors)
    )
    result = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[accumulate]
    c = rng.integers(-9, 9, (64, n)).astype(result)
    registers = np.ascontiguousarray(spread(c, n))
    count = registers.nbytes // 512
    trans = [int(major == "mn") for major in majors]
    tail = ""
    if kind in ("f16", "bf16", "tf32", "e4m3"):
        tail = f", {signs[0]}, {signs[1]}" + (f", {trans[0]}, {trans[1]}" if k == 16 else "")
    shape, types = f"m64n{n}k{k}", f"{accumulate}.{kind}.{kind}"
    source = text(
        shape,
        types,
        count,
        f"%rd6, %rd7, {scale}{tail}",
        descriptor(*a_offsets, swizzles[0]),
        descriptor(*b_offsets, swizzles[1]),
    )
    if accumulate == "f16":
        source = source.replace(f".reg .f32 %d<{count}>", f".reg .b32 %d<{count}>")
    launch(source, "k", 1, 128, [np.concatenate([ra, rb]), np.zeros(1, np.uint8), registers])
    due = signs[0] * signs[1] * a.astype(np.float64) @ b.astype(np.float64).T
    due = due + (c.astype(np.float64) if scale == "%p2" else 0)
    return registers.astype(np.float64), spread(due, n)


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("major", ["k", "mn"])
def test_every_layout_of_both_matrices(swizzle, major):
    found, due = multiply("f16", 64, 16, swizzles=(swizzle, swizzle), majors=(major, major))
    assert (found == due).all()


@pytest.mark.parametrize(
    ("kind", "k", "accumulate"),
    [
        ("bf16", 16, "f32"),
        ("tf32", 8, "f32"),
        ("e4m3", 32, "f32"),
        ("s8", 32, "s32"),
        ("u8", 32, "s32"),
        ("f16", 16, "f16"),
    ],
)
def test_every_type(kind, k, accumulate):
    found, due = multiply(kind, 16, k, swizzles=(32, 32), accumulate=accumulate)
    assert (found == due).all()


def test_signs_and_a_fresh_accumulator():
    found, due = multiply("f16", 8, 16, swizzles=(0, 64), majors=("k", "mn"), signs=(-1, 1), scale="!%p2")
    assert (found == due).all()


# -- hazards, and what is none

PLAIN = ("m64n8k16", "f32.f16.f16", 4, "%rd6, %rd7, %p2, 1, 1, 0, 0", 1 << 62, 1 << 62)
SAME = "%rd6, %rd7, %p2, 1, 1, 0, 0"


def arrays():
    return [np.zeros(16384, np.uint8), np.zeros(1, np.uint8), np.zeros((128, 4), np.float32)]


def stopped(**changes):
    with pytest.raises(EmulatorError) as caught:
        launch(text(*PLAIN, **changes), "k", 1, 128, arrays())
    lines = str(caught.value).splitlines()
    return caught.value.kind, lines[0], lines[1]


def test_registers_that_are_read_too_early():
    assert stopped(WAIT="") == (
        "in-flight",
        "in flight: register %d0 is read before wgmma.wait_group has waited for the operation that works on it",
        "  line 28: st.global.b32 [%rd3+0], %d0",
    )
    assert stopped(COMMIT="")[0] == "in-flight"
    assert stopped(WAIT="wgmma.wait_group.sync.aligned 1;")[0] == "in-flight"
    assert stopped(WAIT="mov.f32 %d1, 0f00000000;\nwgmma.wait_group.sync.aligned 0;")[1:] == (
        "in flight: register %d1 is written before wgmma.wait_group has waited for the operation that works on it",
        "  line 27: mov.f32 %d1, 0f00000000",
    )


def test_registers_without_a_fence():
    kind, first, second = stopped(WFENCE="")
    assert kind == "in-flight"
    assert first == (
        "wgmma.fence: register %d0 was accessed, or is used for the first time, and no wgmma.fence has come since"
    )
    assert second.startswith(
        "  line 25: wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3},"
    )
    assert stopped(WFENCE="wgmma.fence.sync.aligned;\nmov.f32 %d2, 0f00000000;")[0] == "in-flight"


def test_memory_without_a_proxy_fence():
    assert stopped(FENCE="")[:2] == (
        "proxy",
        "proxy: asynchronous work reads what a thread wrote without a fence.proxy.async between the two",
    )


def test_memory_that_changes_under_the_operation():
    kind, first, second = stopped(WAIT="st.shared.b32 [s], 1;\nwgmma.wait_group.sync.aligned 0;")
    assert (kind, second) == ("in-flight", "  line 27: st.shared.b32 [s], 1")
    assert first == (
        "in flight: memory is overwritten that asynchronous work still reads; wait for the work first"
    )


def test_memory_may_change_after_the_wait():
    own = "wgmma.wait_group.sync.aligned 0;\nsetp.eq.u32 %p3, %r1, 0;\n@%p3 st.shared.b32 [s], 1;"
    launch(text(*PLAIN, WAIT=own), "k", 1, 128, arrays())


def test_without_the_sanitizer_the_operation_is_late():
    given = arrays()
    given[2][:] = 5
    early = "\n".join(f"st.global.b32 [%rd3+{4 * i}], %d{i};" for i in range(4))
    launch(text(*PLAIN, COMMIT=early, STORE=""), "k", 1, 128, given, sanitize=False)
    assert (given[2] == 5).all()


def test_accumulating_twice_needs_no_fence_between():
    twice = f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%d0, %d1, %d2, %d3}}, {SAME};\n"
    launch(text(*PLAIN, COMMIT=twice + "wgmma.commit_group.sync.aligned;"), "k", 1, 128, arrays())


def test_a_fresh_accumulator_may_be_uninitialised():
    fresh = "setp.ne.u32 %p2, %r1, %r1;"
    launch(text(*PLAIN, INIT="", LOAD=fresh), "k", 1, 128, arrays())
    assert stopped(INIT="")[:2] == (
        "uninitialised",
        "uninitialised: the stored value depends on register %d0, which holds bits that were never written",
    )


def test_a_descriptor_out_of_bounds():
    kind, first, _ = stopped(LOAD="add.u64 %rd6, %rd6, 1024;")
    assert kind == "out-of-bounds"
    assert first == (
        "out of bounds: a matrix descriptor (0x4000000000000440) leads to shared address 0x4400; the CTA has 0x400 to 0x4400"
    )


def test_half_a_warpgroup_is_no_warpgroup():
    with pytest.raises(EmulatorError) as caught:
        launch(text(*PLAIN), "k", 1, 64, arrays())
    assert str(caught.value).splitlines()[0] == "the warpgroup has 64 threads left; all 128 must take part"


def test_warps_that_come_one_after_the_other_meet():
    detour = "setp.lt.u32 %p4, %r1, 64; @%p4 bra M;\nadd.u32 %r20, %r1, 1;\nM:"
    launch(text(*PLAIN, WFENCE="wgmma.fence.sync.aligned;\n" + detour), "k", 1, 128, arrays())
    never = "setp.lt.u32 %p4, %r1, 32; @%p4 bar.sync 1, 64;"
    with pytest.raises(EmulatorError) as caught:
        launch(text(*PLAIN, LOAD=never), "k", 1, 128, arrays())
    assert caught.value.kind == "deadlock"
    assert (
        "96 threads (thread (32, 0, 0) of CTA (0, 0, 0), …) wait for the rest of their warpgroup at line 25"
        in str(caught.value)
    )


@pytest.mark.parametrize(
    ("kind", "k", "selector"), [("f16", 32, 0), ("f16", 32, 1), ("tf32", 16, 1), ("s8", 64, 0)]
)
def test_sparse(kind, k, selector):
    rng = np.random.default_rng(12)
    held, n = HELD[kind], 16
    of = 2 if kind == "tf32" else 4
    groups = k // of
    values = rng.integers(-4, 5, (64, groups, of // 2)).astype(held)
    picks = np.sort(np.argsort(rng.random((64, groups, of)), axis=-1)[..., : of // 2], axis=-1)
    dense = np.zeros((64, groups, of), held)
    np.put_along_axis(dense, picks, values, axis=-1)
    nibbles = np.where(picks[..., 0] == 1, 0b1110, 0b0100) if of == 2 else picks[..., 0] | picks[..., -1] << 2
    metadata = np.zeros(128, np.uint32)
    for row in range(64):
        word = sum(int(nibble) << 4 * i for i, nibble in enumerate(nibbles[row]))
        lane, high = row // 16 * 32 + row % 8 * 4, row % 16 // 8
        for half in range(2):
            if kind == "s8":  # 32 bits for each half of k, a lane for each row
                metadata[lane + 2 * half + high] = word >> 32 * half & 0xFFFFFFFF
            else:  # 16 bits for each half of k, a lane for each half
                metadata[lane + 2 * selector + half] |= (word >> 16 * half & 0xFFFF) << 16 * high
    b = rng.integers(-4, 5, (n, k)).astype(held)
    (ra, *a_offsets), (rb, *b_offsets) = place(values.reshape(64, -1), 32, "k"), place(b, 64, "k")
    given = np.concatenate([ra, rb, metadata.view(np.uint8)])
    result = np.int32 if kind == "s8" else np.float32
    registers = np.zeros((128, n // 2), result)
    tail = {"f16": ", 1, 1, 0, 0", "tf32": ", 1, 1", "s8": ""}[kind]
    source = text(
        f"m64n{n}k{k}",
        f"{'s32' if kind == 's8' else 'f32'}.{kind}.{kind}",
        n // 2,
        f"%rd6, %rd7, %r20, {selector}, %p2{tail}",
        descriptor(*a_offsets, 32),
        descriptor(*b_offsets, 64),
        LOAD="mul.wide.u32 %rd10, %r1, 4; add.u64 %rd10, %rd1, %rd10; ld.global.b32 %r20, [%rd10+16384];",
    ).replace("wgmma.mma_async.sync", "wgmma.mma_async.sp.sync")
    launch(source, "k", 1, 128, [given, np.zeros(1, np.uint8), registers])
    due = dense.reshape(64, k).astype(np.float64) @ b.astype(np.float64).T
    assert (registers.astype(np.float64) == spread(due, n)).all()
