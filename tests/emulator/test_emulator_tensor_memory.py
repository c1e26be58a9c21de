"""Tensor memory: what loads, stores, copies and shifts move, allocation, and the hazards of what is in flight."""

from __future__ import annotations

import numpy as np
import pytest
from tensor_memory_kernel import descriptor, instruction, place, run, text, vector

import ptxtile as pt
from ptxtile.emulator import EmulatorError, launch
from ptxtile.layout.tensor_memory import datapath, tensor_memory_fragment

SHAPES = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
RNG = np.random.default_rng(0)
NOTHING = np.zeros(2048, np.uint8)


def cells(shape, count, half, packed):
    """(lane, register) of each cell of the 16 or 32 lanes that a warp moves: {(row, column, half of a word): …}."""
    fragment = tensor_memory_fragment(shape, count)
    found = {}
    for at in np.ndindex(fragment.shape):
        place_of = fragment.layout.apply(*at, shape=fragment.shape)
        row, column = at[-2:]
        start = half * at[0] if len(at) == 3 else 0
        for i in range(2 if packed else 1):
            found[row, column * (2 if packed else 1) + start + i, i] = (
                int(place_of["laneid"]),
                int(place_of["m"]),
            )
    return found


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("shape", list(SHAPES))
def test_loads_and_stores_of_every_shape(shape, packed, count):
    registers = SHAPES[shape] * count
    half = ", 10" if shape == "16x32bx2" else ""
    upper = 16 << 16 if shape != "32x32b" else 0
    pack, unpack = (".pack::16b", ".unpack::16b") if packed else ("", "")
    everyone = f"""add.u32 %r57, %r51, {upper};
tcgen05.ld.sync.aligned.{shape}.x{count}{pack}.b32 {vector(registers)}, [%r57]{half};
tcgen05.wait::ld.sync.aligned;
tcgen05.st.sync.aligned.32x32b.x16.b32 [%r51+128], {vector(16)};
tcgen05.st.sync.aligned.{shape}.x{count}{unpack}.b32 [%r57+64]{half}, {vector(registers)};
tcgen05.wait::st.sync.aligned;"""
    everyone = "\n".join(f"mov.b32 %v{i}, 0;" for i in range(16)) + everyone
    words = RNG.integers(0, 1 << 32, (128, 144), np.uint64).astype(np.uint32)
    out = run("", NOTHING, words, everyone=everyone)
    due = words.copy()
    due[:, 128:] = 0
    for warp in range(4):
        for (row, column, i), (lane, register) in cells(shape, count, 10, packed).items():
            at = 32 * warp + row + (16 if upper else 0)
            value = words[at, column]
            if packed:
                due[32 * warp + lane, 128 + register] |= (value & 0xFFFF) << 16 * i
                due[at, 64 + column] = words[at, 64 + column] & 0xFFFF0000 | value & 0xFFFF
            else:
                due[32 * warp + lane, 128 + register] = value
                due[at, 64 + column] = value
    np.testing.assert_array_equal(out, due)


@pytest.mark.parametrize("operation", ["min.u32", "max.u32", "min.s32", "max.s32", "min.f32", "max.abs.f32", "min.NaN.f32", "max.f32"])  # fmt: skip
def test_loads_that_reduce(operation):
    words = RNG.integers(0, 1 << 32, (128, 16), np.uint64).astype(np.uint32)
    words[5, 2] = 0x7FC00001
    words[6, :4] = 0xFFC00000
    words[7, :4] = [0x80000000, 0, 0x80000000, 0]
    everyone = f"""tcgen05.ld.red.sync.aligned.32x32b.x4.{operation} {vector(4)}, %v4, [%r51];
tcgen05.wait::ld.sync.aligned;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r51+8], {{%v4}};
tcgen05.wait::st.sync.aligned;"""
    out = run("", NOTHING, words, everyone=everyone, target="sm_103a")
    taken, reduce = words[:, :4], np.max if operation.startswith("max") else np.min
    if "f32" not in operation:
        due = reduce(taken.view(np.int32 if "s32" in operation else np.uint32), axis=1).view(np.uint32)
    else:
        numbers = taken.view(np.float32)
        numbers = np.abs(numbers) if "abs" in operation else numbers
        nan = np.isnan(numbers)
        worst = -np.inf if operation.startswith("max") else np.inf
        due = reduce(np.where(nan, worst, numbers), axis=1).astype(np.float32).view(np.uint32)
        lost = nan.any(axis=1) if "NaN" in operation else nan.all(axis=1)
        due = np.where(lost, 0x7FFFFFFF, due)
        due[7] = 0 if "max" in operation else 0x80000000
    np.testing.assert_array_equal(out[:, 8], due)


COPIES = {
    "128x256b": (128, 2, lambda row: [row]),
    "4x256b": (4, 2, lambda row: [32 * row]),
    "128x128b": (128, 1, lambda row: [row]),
    "64x128b.warpx2::02_13": (64, 1, lambda row: [row, row + 64]),
    "64x128b.warpx2::01_23": (64, 1, lambda row: [row + row // 32 * 32, row + row // 32 * 32 + 32]),
    "32x128b.warpx4": (32, 1, lambda row: [row, row + 32, row + 64, row + 96]),
}


@pytest.mark.parametrize("swizzle", [0, 32, 128])
@pytest.mark.parametrize("shape", list(COPIES))
def test_copies(shape, swizzle):
    rows, chunks, lanes = COPIES[shape]
    lines = RNG.integers(0, 256, (-(-rows // 8) * 8, max(16 * chunks, swizzle)), np.uint8)
    raw, along, down = place(lines, swizzle, 16384)
    words = RNG.integers(0, 1 << 32, (128, 16), np.uint64).astype(np.uint32)
    work = f"add.u64 %rd11, %rd10, {descriptor(along, down, swizzle)}; add.u32 %r55, %r50, 4;\n"
    out = run(f"{work}tcgen05.cp.cta_group::1.{shape} [%r55], %rd11;", raw, words)
    due = words.copy()
    for row in range(rows):
        for lane in lanes(row):
            due[lane, 4 : 4 + 4 * chunks] = lines[row, : 16 * chunks].view(np.uint32)
    np.testing.assert_array_equal(out, due)


@pytest.mark.parametrize("source", ["b6x16_p32", "b4x16_p64"])
def test_copies_that_decompress(source):
    bits = int(source[1])
    values = RNG.integers(0, 1 << bits, (128, 16), np.uint8)
    lines = np.zeros((128, 16), np.uint8)
    for row in range(128):
        number = sum(int(x) << (bits * i) for i, x in enumerate(values[row]))
        lines[row] = np.frombuffer(number.to_bytes(16, "little"), np.uint8)
    raw, along, down = place(lines, 0, 4096)
    work = f"add.u64 %rd11, %rd10, {descriptor(along, down, 0)};\n"
    work += f"tcgen05.cp.cta_group::1.128x128b.b8x16.{source} [%r50], %rd11;"
    out = run(work, raw, np.zeros((128, 4), np.uint32))
    np.testing.assert_array_equal(out.view(np.uint8), values << (2 if bits == 4 else 0))


def test_a_copy_in_both_ctas_of_a_pair():
    lines = RNG.integers(0, 256, (2, 32, 16), np.uint8)
    made = [place(each, 0, 2048) for each in lines]
    work = f"add.u64 %rd11, %rd10, {descriptor(*made[0][1:], 0)};\n"
    work += "tcgen05.cp.cta_group::2.32x128b.warpx4 [%r50], %rd11;"
    out = run(work, np.stack([raw for raw, *_ in made]), np.zeros((2, 128, 4), np.uint32), pair=True)
    np.testing.assert_array_equal(out.view(np.uint8), np.tile(lines, (1, 4, 1)))


def test_a_shift_of_rows():
    words = RNG.integers(0, 1 << 32, (128, 16), np.uint64).astype(np.uint32)
    out = run("add.u32 %r55, %r50, 0x200004; tcgen05.shift.cta_group::1.down [%r55];", NOTHING, words)
    due = words.copy()
    due[32:63, 4:12] = words[33:64, 4:12]
    np.testing.assert_array_equal(out, due)


@pytest.mark.parametrize("letter", "ABCDEFG")
def test_layouts_of_d_are_the_librarys(letter):
    from ptxtile.emulator.datapaths import sum_places

    rows = {"A": 128, "D": 128, "G": 32}.get(letter, 64)
    lane, column = sum_places(letter, rows, 64)
    found = datapath(letter, 64).apply(*np.indices((rows, 64)), shape=(rows, 64))
    np.testing.assert_array_equal(lane, found["TLane"])
    np.testing.assert_array_equal(column, found["TCol"])


def test_nvidias_assembler_takes_the_kernel():
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    for pair in (False, True):
        work = f"mov.b32 %r55, {instruction(256 if pair else 128, 32)}; tcgen05.mma.cta_group::{1 + pair}.kind::f16 [%r50], %rd10, %rd10, %r55, %p5;"
        assert pt.assemble(text(work, 4096, 32, pair), "sm_100a")


# --- allocation and what is in flight ------------------------------------------------------------------------------
MATRICES = descriptor(1024, 128, 0), descriptor(1024, 128, 0, 4096)
PRODUCT = f"""mov.b32 %r55, {instruction(64, 16)}; add.u64 %rd11, %rd10, {MATRICES[0]}; add.u64 %rd12, %rd10, {MATRICES[1]};
tcgen05.mma.cta_group::1.kind::f16 [%r50], %rd11, %rd12, %r55, %p5;"""
WAIT = "mbarrier.try_wait.parity.shared.b64 %p7, [bar], 0; @!%p7 bra WORKED;"


def stopped(change, everyone="", work=PRODUCT, **options):
    """The error of the kernel with a change: {what stands there: what takes its place}."""

    def changed(made):
        for old, new in change.items():
            assert made.count(old), old
            made = made.replace(old, new, 1)
        return made

    words = np.zeros((128, 32), np.uint32)
    with pytest.raises(EmulatorError) as caught:
        run(work, np.zeros(8192, np.uint8), words, everyone=everyone, change=changed, **options)
    return caught.value


def test_the_kernel_itself_is_right():
    for seed in range(3):
        run(PRODUCT + PRODUCT, np.zeros(8192, np.uint8), np.zeros((128, 32), np.uint32), seed=seed)


FAULTS = {
    "a load's registers before its wait": (
        {"tcgen05.wait::ld.sync.aligned;\nst.global": "st.global"},
        "in-flight",
        "in flight: register %v0 is read before tcgen05.wait::ld has waited for the load that writes it",
        "issued at line",
    ),
    "a product of what a store writes": (
        {"tcgen05.wait::st.sync.aligned;": ""},
        "in-flight",
        "in flight: asynchronous work writes what other asynchronous work wrote that was not waited for",
        "started it at line",
    ),
    "a load of what a product writes": (
        {WAIT: ""},
        "in-flight",
        "in flight: asynchronous work reads what other asynchronous work wrote that was not waited for",
        "started it at line",
    ),
    "no barrier after the stores": (
        {"tcgen05.fence::before_thread_sync;\nbar.sync 0;": ""},
        "in-flight",
        "in flight: asynchronous work writes what other asynchronous work wrote that was not waited for",
        "started it at line",
    ),
    "no proxy fence": (
        {"fence.proxy.async;": ""},
        "proxy",
        "proxy: asynchronous work reads what a thread wrote without a fence.proxy.async between the two",
        "wrote it at line",
    ),
    "a matrix is overwritten too early": (
        {"WORKED:\n": "@%p2 st.shared.b32 [s], %r1;\nWORKED:\n"},
        "in-flight",
        "in flight: memory is overwritten that asynchronous work still reads; wait for the work first",
        "started it at line",
    ),
    "freed while others still load": (
        {"bar.sync 0;\n@!%p1 bra FREED;": "@!%p1 bra FREED;"},
        "in-flight",
        "in flight: tensor memory is freed, and nothing tells this warp that it has been read",
        "started it at line",
    ),
    "never freed": (
        {"tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r50, 32;": ""},
        "tensor-memory",
        "tensor memory: CTA (0, 0, 0) has ended with 32 columns from 0 allocated; tcgen05.dealloc gives them back",
        "tcgen05.alloc",
    ),
    "freed in part": (
        {"%r50, 32;\nFREED": "%r50, 64;\nFREED"},
        "tensor-memory",
        "tensor memory: 64 columns from 0 are freed, and no allocation of the CTA is that; it has 32 from 0",
        "tcgen05.dealloc",
    ),
    "freed twice": (
        {"%r50, 32;\nFREED": "%r50, 32; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r50, 32;\nFREED"},
        "tensor-memory",
        "tensor memory: 32 columns from 0 are freed, and no allocation of the CTA is that; it has none",
        "tcgen05.dealloc",
    ),
    "used when freed": (
        {"FREED:": "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v1}, [%r51];\nFREED:"},
        "tensor-memory",
        "tensor memory: loads column 0, and column 0 was freed at line",
        "tcgen05.ld",
    ),
    "beyond the columns": (
        {"tcgen05.mma.cta_group::1.kind::f16 [%r50]": "tcgen05.mma.cta_group::1.kind::f16 [%r50+24]"},
        "tensor-memory",
        "tensor memory: multiplies in columns 24 to 39, and column 32 is not allocated",
        "tcgen05.mma",
    ),
    "lanes of another warp": (
        {"tcgen05.ld.sync.aligned.32x32b.x32.b32": "add.u32 %r51, %r50, 0x200000;\ntcgen05.ld.sync.aligned.32x32b.x32.b32"},
        "tensor-memory",
        "tensor memory: loads 32 lanes from lane 32; warp 0 of the CTA reaches lanes 0 to 31, 32 at a time",
        "tcgen05.ld",
    ),
    "allocated after the right was given up": (
        {
            "tcgen05.alloc": "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\ntcgen05.alloc",
        },
        "tensor-memory",
        "tensor memory: the CTA has given up the right to allocate",
        "at line",
    ),
    "more columns than there are": (
        {"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;": "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;"},
        "deadlock",
        "deadlock: all 128 threads left wait",
        "tcgen05.alloc",
    ),
    "a shape that there is not": (
        {f"mov.b32 %r55, {instruction(64, 16)};": f"mov.b32 %r55, {instruction(96, 16)};"},
        "tensor-memory",
        f"tensor memory: the instruction descriptor {instruction(96, 16):#010x}: M is 96, and it is 64 or 128",
        "tcgen05.mma",
    ),
    "types that there are not": (
        {f"mov.b32 %r55, {instruction(64, 16)};": f"mov.b32 %r55, {instruction(64, 16, 3)};"},
        "tensor-memory",
        f"tensor memory: the instruction descriptor {instruction(64, 16, 3):#010x}: bits 7 to 9 name no type of A",
        "tcgen05.mma",
    ),
    "the bits of an older descriptor": (
        {f"add.u64 %rd11, %rd10, {MATRICES[0]};": f"add.u64 %rd11, %rd10, {MATRICES[0] & ~(1 << 46)};"},
        "tensor-memory",
        "bits 46 to 48 are 0b000; a matrix descriptor of tcgen05 has 0b001 there",
        "tcgen05.mma",
    ),
    "a descriptor that leads out of shared memory": (
        {f"add.u64 %rd12, %rd10, {MATRICES[1]};": f"add.u64 %rd12, %rd10, {MATRICES[1] + 1024};"},
        "out-of-bounds",
        "out of bounds: the descriptor of b_desc (",
        "tcgen05.mma",
    ),
    "the CTA ends before its work": (
        {WAIT: "bra FREED;", "tcgen05.fence::after_thread_sync;\ntcgen05.ld": "tcgen05.ld"},
        "exit",
        "exit: CTA (0, 0, 0) has ended, and asynchronous work still uses its shared memory",
        "started it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(FAULTS))
def test_faults_are_found(name):
    change, kind, message, where = FAULTS[name]
    error = stopped(change)
    assert error.kind == kind, str(error)
    assert message in str(error)
    assert where in str(error)
    assert error.line


def test_products_of_a_thread_follow_each_other_without_a_wait():
    """Two commits: whoever waits for the first alone may not read what the second is for."""
    second = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];"
    error = stopped({second: f"{second}\n{PRODUCT}"})
    assert error.kind == "in-flight"
    assert "tcgen05.ld" in str(error)


def test_sums_that_nobody_wrote_are_undefined():
    def unfilled(made):
        lines = [line for line in made.split("\n") if not line.startswith("tcgen05.st")]
        return "\n".join(lines)

    words = np.zeros((128, 32), np.uint32)
    with pytest.raises(EmulatorError, match="uninitialised") as caught:
        run(PRODUCT, np.zeros(8192, np.uint8), words, change=unfilled)
    assert "st.global" in str(caught.value)


@pytest.mark.parametrize("name", ["blackwell_tile", "tensor_memory_round_trip"])
def test_the_examples_run(name, monkeypatch, capsys):
    import runpy
    from pathlib import Path

    monkeypatch.setenv("PTXTILE_DEVICE", "emulator")
    root = Path(__file__).resolve().parent.parent.parent
    runpy.run_path(str(root / "examples" / f"{name}.py"), run_name="__main__")
    assert "on: the emulator" in capsys.readouterr().out


def test_more_ctas_than_have_tensor_memory_at_once():
    words = RNG.integers(0, 1 << 32, (40, 128, 4), np.uint64).astype(np.uint32)
    out = np.zeros_like(words)
    launch(text("", 2048, 4), "k", 40, 128, [np.zeros((40, 2048), np.uint8), words, out])
    np.testing.assert_array_equal(out, words)
