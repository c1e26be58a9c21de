"""Tensor maps of pixels, changed on the way, interleaved."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtile.emulator import launch
from ptxtile.emulator.tiles import unit_tile
from ptxtile.ir.tensor_map import Mapped, TiledMap
from tests.emulator.test_emulator_tensor_copy import HEAD, INIT, LOAD, WAIT, dump, map_of, numbers, run


@pytest.mark.parametrize("stride", [1, 2])
def test_a_column_of_pixels(stride):
    """Two images of 5 x 6 pixels and 8 channels under a 3 x 3 filter with a border of one."""
    from ptxtile.ir.tensor_map import Im2col

    images = numbers((2, 5, 6, 8))
    made = TiledMap(
        "u32",
        images.shape[::-1],
        images.strides[::-1][1:],
        (4, 32),
        (1, stride, stride, 1),
        im2col=Im2col((-1, -1), (-1, -1)),
    )
    padded = np.pad(images, [(0, 8), (1, 3), (1, 3), (0, 0)])
    for tap, first in (((0, 0), (-1, -1, 0)), ((1, 2), (1, 0, 1))):
        out = np.zeros(128, np.uint32)
        w, h, image = first
        body = INIT + "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 512;\n"
        body += "mov.b16 %h1, " + f"{tap[0]}; mov.b16 %h2, {tap[1]};\n"
        body += "@%p1 cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        body += f"[%r2], [%rd1, {{4, {w}, {h}, {image}}}], [%r3], {{%h1, %h2}};\n" + WAIT + dump(512)
        run(".reg .b16 %h<3>;\n" + body, Mapped(made, images), Mapped(made, images), out)
        due = []
        for _ in range(32):
            due.append(padded[image, h + 1 + tap[1], w + 1 + tap[0], 4:8])
            w += stride
            if w > 6 - 2:
                w, h = -1, h + stride
            if h > 5 - 2:
                h, image = -1, image + 1
        assert (out.reshape(32, 4) == np.array(due)).all()


def test_a_map_that_is_changed_on_the_way():
    array, other = numbers((16, 8)), numbers((16, 8)) + 1000
    given = map_of(array, (8, 8))
    raw = np.zeros(256, np.uint8)
    out = np.zeros(64, np.uint32)
    text = HEAD.replace("k(", "k(.param .u64 RAW, .param .u64 OTHER, ") + (
        "ld.param.u64 %rd6, [RAW]; ld.param.u64 %rd7, [OTHER]; mov.u32 %r20, s; add.u32 %r20, %r20, 1024;\n"
        "shl.b32 %r21, %r1, 2; cvt.u64.u32 %rd8, %r21; add.u64 %rd9, %rd1, %rd8; ld.b32 %r22, [%rd9];\n"
        "add.u32 %r23, %r20, %r21; st.shared.b32 [%r23], %r22;\nbar.sync 0;\n"
        "@%p1 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r20], %rd7;\n"
        "@%p1 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r20], 1, 12;\nbar.sync 0;\n"
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd6], [%r20], 128;\n"
        "fence.proxy.tensormap::generic.acquire.gpu [%rd6], 128;\nmov.u64 %rd1, %rd6;\n"
        + INIT
        + "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 256;\n@%p1 "
        + LOAD.format(rank=2, at="{0, 8}")
        + "\n"
        + WAIT
        + dump(256)
        + "ret;\n}\n"
    )
    launch(text, "k", 1, 32, [raw, other, given, given, out])
    due = other[8:].copy()
    due[4:] = 0
    assert (out.reshape(8, 8) == due).all()


def test_units_are_copied_as_an_h200_does():
    """Interleaved: what stood in shared memory, in elements of 16 bits from the tensor's first, 1 being that one."""
    map_ = TiledMap("u16", (4, 3, 2, 32, 2), (64, 192, 384, 1536), (8, 2, 2, 16, 2), (1,) * 5, 16)
    made = unit_tile(map_, (1, 0, 0, 1, 0))
    rows = [
        start
        for first in (201, 233, 297, 329, 969, 1001, 1065, 1097)
        for start in (first, first + 8, first + 16, *[0] * 5)
    ]
    assert ((made.rows // 2 + 1) * made.present).tolist() == rows
    assert (made.size, map_.box_bytes) == (1024, 1024)
    steps = TiledMap("u16", (8, 4, 64, 2), (128, 512, 4096), (8, 4, 24, 1), (2, 2, 1, 1), 16)
    assert (unit_tile(steps, (0, 0, 0, 0)).rows // 2 + 1).tolist() == [1, 17, 33, 49, 129, 145, 161, 177]
    assert steps.box_bytes == 128
