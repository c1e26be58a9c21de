"""cp.async, bulk copies and prefetches over tiles: text, every direction, and bad input."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import tile
from tile.running import failure, lines, machines, message, module, takes

CA, CG = "cp.async.ca.shared.global", "cp.async.cg.shared.global"
LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
SEND = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.global.shared::cta.bulk_group"
PARAMS = {"G": pt.Tensor((32, 3, 8), pt.float16), "R": pt.Tensor((3, 128), pt.float16, align=128)}


def shared(shape=(32, 3, 8), align=None):
    return pt.alloc_shared(shape, pt.float16, align=align)


def written(body, *starts, block=32, **options):
    options.setdefault("params", PARAMS)
    return [line for line in lines(body, block, **options) if line.startswith(starts)]


# --- cp.async -------------------------------------------------------------------------------------------------------
def test_sizes_come_last_in_ptx_and_as_keywords_here():
    def body(k):
        s = shared()
        tile.apply(CA, s, k.G, scope="warp", chunk_bytes=16, src_size=8)
        tile.apply(CA, s, k.G, scope="warp", chunk_bytes=16, ignore_src=pt.lane_id() > 3)
        tile.apply(CG, s, k.G, scope="warp", chunk_bytes=16, pred=pt.lane_id() > 3)

    found = written(body, "cp.async", "@")
    assert [line.rpartition("], ")[2] for line in found] == ["16, 8"] * 3 + ["16, %p0"] * 3 + ["16"] * 3
    assert [line[0] for line in found[6:]] == ["@"] * 3


def test_offsets_are_constant():
    def body(k):
        tile.apply(CG, shared(), k.G, scope="warp", chunk_bytes=16)

    found = [re.findall(r"\[(%rd?\d+)(?:\+(\d+))?\]", line) for line in written(body, "cp.async")]
    assert [[offset for _, offset in pair] for pair in found] == [["", ""], ["16", "16"], ["32", "32"]]
    assert len({(pair[0][0], pair[1][0]) for pair in found}) == 1


def test_chunks_of_four_bytes():
    def body(k):
        tile.apply(CA, shared((32, 12, 2)), k.G.view(32, 12, 2), scope="warp", chunk_bytes=4)

    assert len(written(body, "cp.async")) == 12


def test_both_sides_may_have_their_own_dtype():
    def body(k):
        tile.apply(CG, pt.alloc_shared((32, 3, 4), pt.uint32), k.G, scope="warp", chunk_bytes=16)

    assert len(written(body, "cp.async")) == 3


# --- bulk -----------------------------------------------------------------------------------------------------------
def every_direction(k):
    s, t, bar = shared((3, 128), 128), shared((3, 128), 128), pt.mbarrier(1)
    size = {"chunk_bytes": 256}
    tile.apply(LOAD, s, k.R, mbar=bar[0], **size)
    tile.apply(LOAD + ".multicast::cluster", s, k.R, mbar=bar[0], cta_mask=pt.uint16(3), **size)
    tile.apply(LOAD.replace("cluster.global", "cta.global"), s, k.R, mbar=bar[0], **size)
    tile.apply(LOAD + ".L2::cache_hint", s, k.R, mbar=bar[0], cache_policy=pt.reg(pt.uint64, 0), **size)
    tile.apply(SEND, t, s, mbar=bar[0], remote=1, **size)
    tile.apply(STORE, k.R, s, **size)
    tile.apply("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16", k.R, s, **size)
    name = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32"
    tile.apply(name, t, s, mbar=bar[0], remote=1, **size)
    tile.apply("cp.async.bulk.prefetch.L2.global", k.R, **size)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_nvidias_assembler_takes_every_direction(target):
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    text = str(module(every_direction, 1, cluster=(2, 1, 1), params=PARAMS))
    # Multicast is slow on plain targets, and the assembler says so.
    text = text.replace(".target sm_90\n", f".target {target}\n").replace(".version 8.6", ".version 8.7")
    assert pt.assemble(text, target)[:4] == b"\x7fELF"


def test_later_forms_are_assembled_too():
    def body(k):
        s, bar = shared((3, 128), 128), pt.mbarrier(1)
        tile.apply(STORE + ".cp_mask", k.R, s, chunk_bytes=256, byte_mask=pt.uint16(0xFF))
        name = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob"
        tile.apply(name, s, k.R, chunk_bytes=256, mbar=bar[0], ignore_left=0, ignore_right=15)
        tile.apply("multimem.cp.async.bulk.global.shared::cta.bulk_group", k.R, s, chunk_bytes=256)
        name = "multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16"
        tile.apply(name, k.R, s, chunk_bytes=256)

    assert takes(module(body, 1, params=PARAMS), "sm_100a")


def test_each_repeat_is_a_copy():
    found = written(every_direction, "cp.", block=1, cluster=(2, 1, 1))
    assert len(found) == 9 * 3
    assert sum("mapa" in line for line in lines(every_direction, 1, cluster=(2, 1, 1), params=PARAMS)) == 4


# --- lines of caches ------------------------------------------------------------------------------------------------
def test_prefetches():
    def body(k):
        tile.apply("prefetch.global.L2", k.R[:, 0:1])
        tile.apply("discard.global.L2", k.R[:, 0:64])
        tile.apply("applypriority.global.L2::evict_normal", k.R[:, 64:128])

    found = written(body, "prefetch", "discard", "applypriority", block=1)
    assert [line.rpartition("]")[2] for line in found] == [""] * 3 + [", 128"] * 6


# --- bad input ------------------------------------------------------------------------------------------------------
def wrong(body, block=32, **options):
    options.setdefault("params", PARAMS)
    return message(failure(body, block, **options), __file__)


@pytest.mark.parametrize(
    ("spelling", "keywords", "text"),
    [
        (CA, {}, f"{CA} needs chunk_bytes=, the bytes of one copy: 4, 8 or 16"),
        (CG, {"chunk_bytes": 8}, f"{CG}: chunk_bytes= is 16, not 8"),
        (CA, {"chunk_bytes": 16.0}, f"{CA}: chunk_bytes= is 4, 8 or 16, not 16.0"),
        (CA, {"chunk_bytes": True}, f"{CA}: chunk_bytes= is 4, 8 or 16, not True"),
        (CA, {"chunk_bytes": 16, "src_size": 17}, f"{CA}: src_size= is 0 to chunk_bytes, 16, not 17"),
        (CA, {"chunk_bytes": 16, "cache_policy": 0},
         f"{CA} has no cache_policy=: a 64-bit value made by createpolicy goes with .L2::cache_hint"),
        (CA + ".L2::cache_hint", {"chunk_bytes": 16},
         f"{CA}.L2::cache_hint needs cache_policy=: a 64-bit value made by createpolicy goes with .L2::cache_hint"),
        (CA, {"chunk_bytes": 16, "ignore_src": 1}, f"{CA}: operand ignore_src takes .pred, not 1: a predicate is a run-time bool_"),
        (CA, {"chunk_bytes": 8},
         f"{CA}: operand dst has shape (32, 3, 8); its trailing axes are the instruction's registers, (4,); view(32, 6, 4) makes 6 repeats of them"),
    ],
)  # fmt: skip
def test_keywords_of_cp_async(spelling, keywords, text):
    assert wrong(lambda k: tile.apply(spelling, shared(), k.G, scope="warp", **keywords)) == text


def test_two_ways_to_read_less():
    def body(k):
        tile.apply(CA, shared(), k.G, scope="warp", chunk_bytes=16, src_size=4, ignore_src=pt.lane_id() > 3)

    assert wrong(body) == f"{CA}: src_size= and ignore_src= are one or the other"


def test_the_order_of_a_copy():
    assert wrong(lambda k: tile.apply(CG, k.G, shared(), scope="warp", chunk_bytes=16)) == (
        f"{CG}: operand dst is .shared memory and the tensor is in global memory"
    )


def test_preserving_what_is_not_a_register():
    def body(k):
        p = pt.lane_id() > 3
        tile.apply(CG, shared(), k.G, scope="warp", chunk_bytes=16, pred=p, preserve_dst=True)

    assert wrong(body) == f"{CG}: preserve_dst=True requires a destination in registers"


def test_a_chunk_that_is_not_aligned():
    def body(k):
        tile.apply(
            CG, pt.alloc_shared((1, 8), pt.float16), k.U[pt.lane_id() : pt.lane_id() + 1], chunk_bytes=16
        )

    assert wrong(body, params={"U": pt.Tensor((64, 8), pt.float16, align=4)}) == (
        f"{CG}: operand src: an atom of 16 bytes needs a base aligned to 16 bytes, and this tensor's is aligned to 4 (align=)"
    )


@pytest.mark.parametrize(
    ("spelling", "keywords", "text"),
    [
        (LOAD, {}, f"{LOAD} needs chunk_bytes=, the bytes of one copy: a positive multiple of 16"),
        (LOAD, {"chunk_bytes": 24}, f"{LOAD}: chunk_bytes= is a positive multiple of 16, not 24"),
        (LOAD, {"chunk_bytes": 0}, f"{LOAD}: chunk_bytes= is a positive multiple of 16, not 0"),
        (LOAD, {"chunk_bytes": 256},
         f"{LOAD} needs mbar=: the mbarrier that counts the bytes goes with .mbarrier::complete_tx::bytes"),
        (LOAD + ".multicast::cluster", {"chunk_bytes": 256, "mbar": 0},
         f"{LOAD}.multicast::cluster needs cta_mask=: the CTAs of the cluster that receive go with .multicast::cluster"),
        (LOAD, {"chunk_bytes": 256, "mbar": 0, "cta_mask": 3},
         f"{LOAD} has no cta_mask=: the CTAs of the cluster that receive go with .multicast::cluster"),
        (LOAD, {"chunk_bytes": 256, "mbar": 0}, f"{LOAD}: operand mbar takes an address in .shared::cta, not 0"),
        (LOAD, {"chunk_bytes": 128, "mbar": 0},
         f"{LOAD}: operand dst has shape (3, 128); its trailing axes are the instruction's registers, (64,); view(6, 64) makes 6 repeats of them"),
    ],
)  # fmt: skip
def test_keywords_of_bulk_copies(spelling, keywords, text):
    def body(k):
        tile.apply(spelling, shared((3, 128), 128), k.R, **keywords)

    assert wrong(body, 1) == text


def test_a_store_goes_to_no_other_cta():
    def body(k):
        tile.apply(STORE, k.R, shared((3, 128), 128), chunk_bytes=256, remote=1)

    assert wrong(body, 1) == f"{STORE} has no remote=: its destination is not .shared::cluster"


def test_a_line_is_128_bytes():
    assert wrong(lambda k: tile.apply("discard.global.L2", k.R), 1) == (
        "discard.global.L2: operand a has shape (3, 128); its trailing axes are the instruction's registers, (64,); view(6, 64) "
        "makes 6 repeats of them"
    )


@machines
def test_lines_are_fetched_and_read(device):
    @pt.kernel(grid=1, block=32)
    def fetched(A: pt.Tensor((4, 32), pt.float32, align=128), Out: pt.Tensor((4, 32), pt.float32)):
        with pt.if_(pt.thread_idx() == 0):
            for form in (
                "prefetch.global.L1",
                "prefetch.global.L2::evict_normal",
                "applypriority.global.L2::evict_normal",
            ):
                tile.apply(form, A if form[0] == "a" else A[:, 0:1])
        for row in range(4):
            Out[row, pt.thread_idx()] = A[row, pt.thread_idx()]

    a, out = np.arange(128, dtype=np.float32).reshape(4, 32), np.zeros((4, 32), np.float32)
    fetched.launch(a, out, device=device)
    np.testing.assert_array_equal(out, a)
