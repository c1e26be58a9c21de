"""Stores and reductions of tensor tiles, as an H200 was seen to do them."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtile.emulator import EmulatorError
from tests.emulator.test_emulator_tensor_copy import DONE, INIT, LOAD, WAIT, map_of, run

STORED = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
REDUCED = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"


@pytest.mark.parametrize(
    ("form", "verb", "at"),
    [
        (STORED, "stores to", "{0, -3}"),
        (STORED.replace(".tile", ""), "stores to", "{-4, 2}"),
        (REDUCED, "reduces into", "{0, -1}"),
    ],
)
def test_a_store_cannot_begin_before_its_tensor(form, verb, at):
    """An H200 stops there, whatever the swizzle and the element."""
    given = map_of(np.zeros((16, 16), np.uint32), (16, 8))
    body = "@%p1 st.shared.b32 [%r2], %r1;\nfence.proxy.async;\nbar.sync 0;\n"
    with pytest.raises(EmulatorError) as caught:
        run(body + f"@%p1 {form} [%rd2, {at}], [%r2];\n" + DONE, given, given, np.zeros(1, np.uint32))
    assert caught.value.kind == "out-of-bounds"
    assert str(caught.value).splitlines()[0] == (
        f"out of bounds: {verb} a tile from the coordinates {at}; hardware stops with CUDA_ERROR_ILLEGAL_INSTRUCTION "
        "where one of them is negative, and clips only what hangs over the upper ends"
    )


def test_a_reduction_of_f32_keeps_subnormals_unless_the_map_flushes_them():
    """Measured for the reductions without a tensor map; the element f32.ftz is the map's own way to flush."""
    for element, due in (("f32", 5), ("f32.ftz", 0)):
        tile = np.full((8, 8), 2, np.uint32).view(np.float32)
        out = np.full((8, 8), 3, np.uint32).view(np.float32)
        source, target = map_of(tile, (8, 8), element=element), map_of(out, (8, 8), element=element)
        body = INIT + "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 256;\n"
        body += "@%p1 " + LOAD.format(rank=2, at="{0, 0}") + "\n" + WAIT
        body += f"@%p1 {REDUCED} [%rd2, {{0, 0}}], [%r2];\n"
        run(body + DONE, source, target, np.zeros(1, np.uint32))
        assert (out.view(np.uint32) == due).all()
