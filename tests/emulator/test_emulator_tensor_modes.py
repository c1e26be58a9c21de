"""Tensor copies of sm_100: pixels along the width with halos, and what a swizzle of 128 bytes keeps together."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtile.emulator import EmulatorError
from ptxtile.ir.tensor_map import Im2col, Mapped, TiledMap
from tests.emulator import test_emulator_tensor_copy as copies
from tests.emulator.test_emulator_tensor_copy import DONE, HEAD, INIT, STORE, WAIT, dump

LOAD = "cp.async.bulk.tensor.{rank}d.shared::cta.global.{mode}.mbarrier::complete_tx::bytes [%r2], [%rd1, {at}], [%r3]{tail};"


@pytest.fixture(autouse=True)
def newer(monkeypatch):
    monkeypatch.setattr(copies, "HEAD", HEAD.replace("sm_90a", "sm_100a"))


def load(given, mode, at, size, tail="", **options):
    """`size` bytes of shared memory after a load."""
    out = np.zeros(max(size, 128) // 4, np.uint32)
    copy = LOAD.format(rank=given.map.rank, mode=mode, at="{" + ", ".join(map(str, at)) + "}", tail=tail)
    expect = f"@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], {size};\n"
    copies.run(INIT + expect + f"@%p1 {copy}\n" + WAIT + dump(size), given, given, out, **options)
    return out.view(np.uint8)[:size]


def pixels(tensor, lower, upper, box, stride=1, swizzle=32):
    images, height, width, channels = tensor.shape
    return Mapped(
        TiledMap(
            "u16",
            (channels, width, height, images),
            tensor.strides[::-1][1:],
            box,
            (1, stride, 1, 1),
            0,
            swizzle,
            im2col=Im2col((lower, 0), (upper, 0)),
        ),
        tensor,
    )


def walk(tensor, at, lower, upper, count, halo, move, stride, wide):
    """The pixels (…, 16 channels), by the manual's words."""
    _, w, h, image = at
    width = tensor.shape[2]
    lower, upper, w = lower + move, upper + move, w + move
    found = []

    def add(x, n):
        inside = 0 <= x < width and 0 <= n < len(tensor) and 0 <= h < tensor.shape[1]
        found.append(tensor[n, h, x, at[0] : at[0] + 16] if inside else np.zeros(16, tensor.dtype))

    for i in range(128 if wide else count):
        add(w, image)
        if i % 32 == 31 if wide else i == count - 1:
            for j in range(halo):
                add(w + stride * (j + 1), image)
        w += stride
        if w > width - 1 + upper:
            w, image = lower, image + 1
    return np.stack(found)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(
    ("at", "lower", "upper", "halo", "move", "stride"),
    [((0, 2, 3, 0), 0, 0, 2, 0, 1), ((16, -1, 2, 1), -1, 0, 1, 0, 2), ((0, -1, 0, 0), -1, -1, 0, 2, 3)],
)
def test_pixels_along_the_width(at, lower, upper, halo, move, stride, wide):
    tensor = np.random.default_rng(1).integers(0, 1 << 16, (30, 7, 9, 32)).astype(np.uint16)
    given = pixels(tensor, lower, upper, (16, 40), stride)
    due = walk(tensor, at, lower, upper, 40, halo, move, stride, wide)
    mode = "im2col::w::128" if wide else "im2col::w"
    found = load(given, mode, at, due.nbytes, f", {{{halo}, {move}}}")
    lines = due.view(np.uint8).reshape(-1, 16)
    place = np.arange(len(lines)) * 16
    expected = np.zeros_like(lines)
    expected[(place ^ (place >> 3 & 0x10)) // 16] = lines
    np.testing.assert_array_equal(found.reshape(-1, 16), expected)


def test_pixels_along_the_width_need_a_swizzle():
    tensor = np.zeros((2, 3, 4, 16), np.uint16)
    with pytest.raises(EmulatorError) as caught:
        load(pixels(tensor, 0, 0, (16, 4), swizzle=0), "im2col::w", (0, 0, 0, 0), 128, ", {0, 0}")
    first = "tensor map: .im2col::w takes a map with a swizzle, one that exchanges no halves of 16 bytes, and without interleaving"
    assert str(caught.value).splitlines()[0] == first
    assert caught.value.kind == "tensor-map"


def tiles(tensor, atomicity):
    box = tensor.shape[::-1]
    return Mapped(
        TiledMap("u32", box, tensor.strides[::-1][1:], box, (1, 1), 0, 128, atomicity=atomicity), tensor
    )


PATTERNS = {
    0: [[c ^ line for c in range(8)] for line in range(8)],
    1: [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [2, 3, 0, 1, 6, 7, 4, 5],
        [4, 5, 6, 7, 0, 1, 2, 3],
        [6, 7, 4, 5, 2, 3, 0, 1],
    ]
    * 2,
    2: [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [2, 3, 0, 1, 6, 7, 4, 5],
        [4, 5, 6, 7, 0, 1, 2, 3],
        [6, 7, 4, 5, 2, 3, 0, 1],
    ]
    * 2,
    3: [[0, 1, 2, 3, 4, 5, 6, 7], [4, 5, 6, 7, 0, 1, 2, 3]] * 4,
}


@pytest.mark.parametrize("atomicity", list(PATTERNS))
def test_what_a_swizzle_keeps_together(atomicity):
    tensor = np.random.default_rng(2).integers(0, 1 << 32, (16, 32), np.uint64).astype(np.uint32)
    found = load(tiles(tensor, atomicity), "tile", (0, 0), tensor.nbytes).view(np.uint32).reshape(16, 8, 4)
    chunks = tensor.reshape(16, 8, 4)
    for line in range(16):
        due = chunks[line, PATTERNS[atomicity][line % 8]]
        if atomicity == 2 and line % 2:
            due = due[:, [2, 3, 0, 1]]
        np.testing.assert_array_equal(found[line], due)


@pytest.mark.parametrize("atomicity", [1, 3])
def test_there_and_back(atomicity):
    tensor = np.arange(512, dtype=np.uint32).reshape(16, 32)
    target = np.zeros_like(tensor)
    body = INIT + "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 2048;\n@%p1 "
    body += LOAD.format(rank=2, mode="tile", at="{0, 0}", tail="") + "\n" + WAIT
    body += "@%p1 " + STORE.format(rank=2, at="{0, 0}") + "\n" + DONE
    copies.run(body, tiles(tensor, atomicity), tiles(target, atomicity), np.zeros(32, np.uint32))
    np.testing.assert_array_equal(target, tensor)


def test_exchanged_halves_are_not_stored():
    target = np.zeros((16, 32), np.uint32)
    body = "st.shared.u32 [%r2], 0; bar.sync 0;\n@%p1 " + STORE.format(rank=2, at="{0, 0}") + "\n" + DONE
    with pytest.raises(EmulatorError) as caught:
        copies.run(body, tiles(target, 2), tiles(target, 2), np.zeros(32, np.uint32))
    first = "tensor map: a swizzle that exchanges halves of 16 bytes is for copies to shared memory"
    assert str(caught.value).splitlines()[0] == first


def test_the_atomicity_is_replaced():
    tensor = np.random.default_rng(3).integers(0, 1 << 32, (16, 32), np.uint64).astype(np.uint32)
    given = tiles(tensor, 0)
    replace = """.shared .align 128 .b8 m[128];
mov.u32 %r20, m; shl.b32 %r21, %r1, 2; add.u32 %r22, %r20, %r21; cvt.u64.u32 %rd9, %r21; add.u64 %rd9, %rd1, %rd9;
ld.b32 %r23, [%rd9]; st.shared.b32 [%r22], %r23; bar.sync 0;
@%p1 tensormap.replace.tile.swizzle_atomicity.shared::cta.b1024.b32 [%r20], 3;
bar.sync 0; ld.shared.b32 %r23, [%r22]; cvt.u64.u32 %rd8, %r21; add.u64 %rd8, %rd3, %rd8; st.global.b32 [%rd8], %r23;
"""
    out = np.zeros(32, np.uint32)
    copies.run(replace, given, given, out)
    changed, _ = TiledMap.unpack(out.tobytes())
    assert changed.atomicity == 3
    assert (changed.swizzle, changed.box) == (128, given.map.box)
