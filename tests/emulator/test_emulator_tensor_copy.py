"""Copies of tensor tiles: swizzles, edges, ranks, reductions, multicast, and their hazards."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ptxtile.emulator import EmulatorError, launch
from ptxtile.emulator.tiles import chunks, tile_of
from ptxtile.ir.tensor_map import Mapped, TiledMap

HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 M[128], .param .align 64 .b8 N[128], .param .u64 B)
{
.reg .pred %p<16>; .reg .b32 %r<64>; .reg .b64 %rd<32>;
.shared .align 1024 .b8 s[16384];
.shared .align 8 .b64 bar;
mov.u64 %rd1, M; cvta.param.u64 %rd1, %rd1; mov.u64 %rd2, N; cvta.param.u64 %rd2, %rd2; ld.param.u64 %rd3, [B];
mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, s; mov.u32 %r3, bar;
"""
INIT = """@%p1 mbarrier.init.shared.b64 [%r3], 1;
@%p1 fence.mbarrier_init.release.cluster;
bar.sync 0;
"""
LOAD = "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd1, {at}], [%r3];"
WAIT = """W: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0;
@!%p2 bra W;
"""
STORE = "cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [%rd2, {at}], [%r2];"
DONE = """@%p1 cp.async.bulk.commit_group;
@%p1 cp.async.bulk.wait_group.read 0;
"""


def coordinates(at):
    return "{" + ", ".join(str(x) for x in at) + "}"


def run(body, source, target, out, **options):
    launch(HEAD + body + "ret;\n}\n", "k", options.pop("grid", 1), 32, [source, target, out], **options)


def map_of(array, box, swizzle=0, strides=None, element="u32", nan=False):
    """The map of a C-contiguous array; its box is given outermost first, like its shape."""
    return Mapped(
        TiledMap(
            element,
            array.shape[::-1],
            array.strides[::-1][1:],
            box[::-1],
            (strides or (1,) * array.ndim)[::-1],
            0,
            swizzle,
            0,
            nan,
        ),
        array,
    )


def dump(size):
    """Copies `size` bytes of s to B."""
    return f"""
mov.u32 %r10, 0; shl.b32 %r11, %r1, 2; add.u32 %r12, %r2, %r11; cvt.u64.u32 %rd4, %r11; add.u64 %rd4, %rd3, %rd4;
D: add.u32 %r14, %r10, %r11; setp.lt.u32 %p4, %r14, {size};
@%p4 ld.shared.b32 %r13, [%r12]; @%p4 st.global.b32 [%rd4], %r13;
add.u32 %r12, %r12, 128; add.u64 %rd4, %rd4, 128; add.u32 %r10, %r10, 128; setp.lt.u32 %p3, %r10, {size}; @%p3 bra D;
"""


def load(array, box, at, **options):
    """What a load of a box leaves in shared memory."""
    given = map_of(array, box, **options)
    steps = given.map.element_strides[::-1]
    size = int(np.prod([-(-b // s) for b, s in zip(box, steps)])) * array.itemsize
    out = np.zeros(max(size, 128) // 4, np.uint32)
    body = INIT + f"@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], {size};\n"
    body += "@%p1 " + LOAD.format(rank=array.ndim, at=coordinates(at[::-1])) + "\n" + WAIT + dump(size)
    run(body, given, given, out)
    return out.view(array.dtype)[: size // array.itemsize]


def numbers(shape, dtype=np.uint32):
    return np.arange(1, np.prod(shape) + 1).astype(dtype).reshape(shape)


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_a_swizzled_tile(swizzle):
    array = numbers((64, 64))
    inner = (swizzle or 64) // 4
    found = load(array, (16, inner), (8, 16), swizzle=swizzle)
    tile = array[8:24, 16 : 16 + inner]
    places = chunks(0x400, tile.nbytes, swizzle) - 0x400
    due = np.zeros(tile.nbytes // 16, "4u4")
    due[places // 16] = tile.reshape(-1, 4)
    assert (found.reshape(-1, 4) == due).all()
    if swizzle == 128:  # line 1 has its chunks exchanged in pairs
        assert places[8:16].tolist() == [128 + 16 * (i ^ 1) for i in range(8)]


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_every_rank_and_what_lies_outside(rank):
    shape = (3, 4, 5, 6, 16)[-rank:]
    box = (2, 2, 3, 2, 8)[-rank:]
    array = numbers(shape)
    for at in itertools.islice(itertools.product(*[(-1, 0, extent - 1) for extent in shape]), 0, None, 11):
        padded = np.pad(array, [(4, 8)] * rank)
        window = tuple(slice(a + 4, a + 4 + b) for a, b in zip(at, box))
        assert (load(array, box, at) == padded[window].reshape(-1)).all()


def test_elements_that_stand_apart():
    array = numbers((32, 32))
    found = load(array, (9, 8), (1, 4), strides=(2, 1))
    assert (found.reshape(5, 8) == array[1:10:2, 4:12]).all()


def test_what_lies_outside_may_be_nan():
    array = numbers((8, 8), np.float32)
    found = load(array, (8, 8), (4, 0), element="f32", nan=True).reshape(8, 8)
    assert (found[:4] == array[4:]).all() and np.isnan(found[4:]).all()


@pytest.mark.parametrize("at", [(0, 0), (3, 2), (9, 11), (13, 20)])
def test_a_store_leaves_what_lies_outside(at):
    out = np.full((16, 16), 7, np.uint32)
    fill = "shl.b32 %r4, %r1, 4; add.u32 %r4, %r4, %r2;\nst.shared.v4.b32 [%r4], {%r1, 100, 101, 102};\n"
    body = fill + "fence.proxy.async;\nbar.sync 0;\n"
    body += "@%p1 " + STORE.format(rank=2, at=coordinates(at[::-1])) + "\n" + DONE
    given = map_of(out, (16, 8))
    run(body, given, given, np.zeros(1, np.uint32))
    tile = np.stack([np.arange(32), *[np.full(32, v) for v in (100, 101, 102)]], axis=1).reshape(16, 8)
    due = np.full((48, 48), 7)
    due[at[0] + 16 : at[0] + 32, at[1] + 16 : at[1] + 24] = tile
    assert (out == due[16:32, 16:32]).all()


@pytest.mark.parametrize(
    ("operation", "element", "function"),
    [
        ("add", "u32", np.add),
        ("min", "s32", np.minimum),
        ("max", "u32", np.maximum),
        ("or", "u32", np.bitwise_or),
        ("add", "f32", np.add),
        ("add", "f16", np.add),
    ],
)
def test_a_reduction(operation, element, function):
    held = {"u32": np.uint32, "s32": np.int32, "f32": np.float32, "f16": np.float16}[element]
    rng = np.random.default_rng(1)
    out = rng.integers(0, 100, (16, 16)).astype(held)
    tile = rng.integers(0, 100, (8, 8)).astype(held)
    before = out.copy()
    source, target = map_of(tile, (8, 8), element=element), map_of(out, (8, 8), element=element)
    body = INIT + f"@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], {tile.nbytes};\n"
    body += "@%p1 " + LOAD.format(rank=2, at="{0, 0}") + "\n" + WAIT
    body += f"@%p1 cp.reduce.async.bulk.tensor.2d.global.shared::cta.{operation}.tile.bulk_group [%rd2, {{4, 6}}], [%r2];\n"
    run(body + DONE, source, target, np.zeros(1, np.uint32))
    before[6:14, 4:12] = function(before[6:14, 4:12], tile)
    assert (out == before).all()


def test_a_multicast_reaches_every_cta_of_its_mask():
    array = numbers((8, 8))
    out = np.zeros((4, 64), np.uint32)
    body = INIT.replace("bar.sync 0;", "barrier.cluster.arrive; barrier.cluster.wait;")
    body += "mov.u32 %r5, %cluster_ctarank; setp.ne.u32 %p4, %r5, 1; setp.eq.and.u32 %p5, %r5, 2, %p1; and.pred %p4, %p4, %p1;\n"
    body += "@%p4 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 256;\n"
    body += "@%p5 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
    body += "[%r2], [%rd1, {0, 0}], [%r3], 13;\nsetp.eq.u32 %p6, %r5, 1; @%p6 bra E;\n" + WAIT
    body += "mul.wide.u32 %rd5, %r5, 256; add.u64 %rd3, %rd3, %rd5;\n" + dump(256)
    body += "E: barrier.cluster.arrive; barrier.cluster.wait;\n"
    given = map_of(array, (8, 8))
    run(body, given, given, out, grid=4, cluster=4)
    assert (out[[0, 2, 3]] == array.reshape(-1)).all() and not out[1].any()


def test_rows_that_are_no_neighbours():
    array = numbers((32, 16))
    out = np.zeros(64, np.uint32)
    body = INIT + "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 256;\n"
    body += "@%p1 cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes "
    body += "[%r2], [%rd1, {0, 3, 30, -1, 7}], [%r3];\n" + WAIT + dump(256)
    given = map_of(array, (1, 16))
    text = (HEAD + body + "ret;\n}\n").replace("sm_90a", "sm_100a")
    launch(text, "k", 1, 32, [given, given, out])
    due = array[[3, 30, 0, 7]]
    due[2] = 0
    assert (out.reshape(4, 16) == due).all()


def test_a_tile_in_numbers():
    made = TiledMap("u16", (10, 4), (32,), (8, 2), (1, 1))
    tile = tile_of(made, (5, -1))
    assert (tile.rows.tolist(), tile.present.tolist()) == ([-22, 10], [False, True])
    assert (tile.low, tile.high, tile.pitch, tile.size) == (0, 10, 16, 32)


# -- what goes wrong

ROUND = (
    INIT
    + "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 1024;\n@%p1 "
    + LOAD.format(rank=2, at="{0, 0}")
    + "\n"
    + WAIT
    + "shl.b32 %r4, %r1, 5; add.u32 %r5, %r2, %r4;\nld.shared.b32 %r6, [%r5]; add.u32 %r6, %r6, 1; "
    + "st.shared.b32 [%r5], %r6;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n@%p1 "
    + STORE.format(rank=2, at="{0, 0}")
    + "\n"
    + DONE
)


def round_trip(body=ROUND, **options):
    array, out = numbers((32, 8)), np.zeros((32, 8), np.uint32)
    run(body, map_of(array, (32, 8)), map_of(out, (32, 8)), np.zeros(1, np.uint32), **options)
    return array, out


def test_a_round_trip_without_fault():
    for seed in range(3):
        array, out = round_trip(seed=seed)
        array[:, 0] += 1
        assert (out == array).all()


LOADED = LOAD.format(rank=2, at="{0, 0}").rstrip(";")
STORED = STORE.format(rank=2, at="{0, 0}").rstrip(";")
WHO = "  thread (0, 0, 0) of CTA (0, 0, 0)"


@pytest.mark.parametrize(
    ("old", "new", "kind", "text"),
    [
        (
            WAIT,
            "",
            "in-flight",
            (
                "in flight: a thread reads what asynchronous work wrote that was not waited for\n"
                f"  line 17: ld.shared.b32 %r6, [%r5]\n{WHO}\n{WHO} started it at line 15: @%p1 {LOADED}"
            ),
        ),
        (
            "fence.proxy.async.shared::cta;\n",
            "",
            "proxy",
            (
                "proxy: asynchronous work reads what a thread wrote without a fence.proxy.async between the two\n"
                f"  line 21: @%p1 {STORED}\n{WHO}\n{WHO} wrote it at line 19: st.shared.b32 [%r5], %r6"
            ),
        ),
        (
            "shared::cta;\nbar.sync 0;\n",
            "shared::cta;\n",
            "race",
            (
                "race: asynchronous work reads what a thread wrote, and nothing orders the two\n"
                f"  line 21: @%p1 {STORED}\n{WHO}\n  thread (1, 0, 0) of CTA (0, 0, 0) wrote it at line 19: "
                "st.shared.b32 [%r5], %r6"
            ),
        ),
        (
            "@%p1 fence.mbarrier_init.release.cluster;\n",
            "",
            "proxy",
            (
                "proxy: asynchronous work completes on an mbarrier that was initialised without a fence.mbarrier_init or "
                f"fence.proxy.async since\n  line 14: @%p1 {LOADED}\n{WHO}\n"
                "  initialised at line 11: @%p1 mbarrier.init.shared.b64 [%r3], 1"
            ),
        ),
        (
            "@%p1 cp.async.bulk.wait_group.read 0;\n",
            "",
            "exit",
            (
                "exit: CTA (0, 0, 0) has ended, and asynchronous work still uses its shared memory\n"
                f"  line 22: @%p1 {STORED}\n{WHO} started it"
            ),
        ),
        (
            "@%p1 cp.async.bulk.wait_group.read 0;\n",
            "@%p1 st.shared.b32 [%r5], 0;\n",
            "in-flight",
            (
                "in flight: memory is overwritten that asynchronous work still reads; wait for the work first\n"
                f"  line 24: @%p1 st.shared.b32 [%r5], 0\n{WHO}\n{WHO} started it at line 22: @%p1 {STORED}"
            ),
        ),
        (
            "[%r2], [%rd1",
            "[%r2+64], [%rd1",
            "misaligned",
            (
                "misaligned: copies 1024 bytes at shared address 0x440, which is not a multiple of 128\n"
                f"  line 15: @%p1 {LOADED.replace('[%r2]', '[%r2+64]')}\n{WHO}"
            ),
        ),
        (
            "[%r2], [%rd1",
            "[%r2+16256], [%rd1",
            "out-of-bounds",
            (
                "out of bounds: copies 16 bytes at shared address 0x4770; the CTA has 16408 bytes of it, 0x400 to 0x4418\n"
                f"  line 15: @%p1 {LOADED.replace('[%r2]', '[%r2+16256]')}\n{WHO}"
            ),
        ),
        (
            "2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd1, {0, 0}]",
            "1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd1, {0}]",
            "tensor-map",
            (
                "tensor map: a 1-dimensional copy of a tensor map of 2 dimensions\n"
                f"  line 15: @%p1 {LOADED.replace('2d.', '1d.').replace('{0, 0}', '{0}')}\n{WHO}"
            ),
        ),
    ],
)
def test_what_is_said_of_a_fault(old, new, kind, text):
    assert old in ROUND
    with pytest.raises(EmulatorError) as caught:
        round_trip(ROUND.replace(old, new, 1))
    assert (caught.value.kind, str(caught.value)) == (kind, text)


def test_bytes_that_are_no_tensor_map():
    with pytest.raises(EmulatorError) as caught:
        run(ROUND, np.zeros(128, np.uint8), np.zeros(128, np.uint8), np.zeros(1, np.uint32))
    assert str(caught.value).splitlines()[0] == "tensor map: these bytes are no tensor map of the emulator"


def test_a_tile_that_reaches_beyond_its_allocation():
    array = numbers((4, 8))
    given = Mapped(TiledMap("u32", (8, 8), (32,), (8, 8), (1, 1)), array)
    with pytest.raises(EmulatorError) as caught:
        run(ROUND.replace("1024", "256"), given, given, np.zeros(1, np.uint32))
    assert caught.value.kind == "out-of-bounds"
    assert str(caught.value).startswith("out of bounds: reads a tile from 0x7f")


def test_bytes_that_nobody_expects_hold_the_phase_open():
    with pytest.raises(EmulatorError) as caught:
        round_trip(ROUND.replace("1024", "1008"))
    assert caught.value.kind == "deadlock"
    assert "lacks 0 of 1 arrivals; 16 bytes came that no expect_tx announced" in str(caught.value)


def test_a_transient_negative_count_is_legal():
    expect = "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 1024;\n"
    late = ROUND.replace(expect, "").replace("W: mbar", f"nanosleep.u32 20;\n{expect}W: mbar", 1)
    round_trip(late)


def test_unwritten_bytes_of_shared_memory_are_not_stored():
    body = "fence.proxy.async;\nbar.sync 0;\n@%p1 " + STORE.format(rank=2, at="{0, 0}") + "\n" + DONE
    with pytest.raises(EmulatorError) as caught:
        round_trip(body)
    assert str(caught.value).splitlines()[0] == (
        "uninitialised: the copied value depends on shared memory, which holds bits that were never written"
    )
