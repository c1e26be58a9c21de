"""Bulk copies of some bytes of sixteen, past the ends of a tensor, and to all replicas; multimem of eight-bit floats."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtile.emulator import EmulatorError, launch
from tests.emulator.conftest import kernel
from tests.emulator.test_emulator_bulk import COMMIT, INIT, READ, START, WAIT


def run(body, args):
    text = kernel(body).replace(".version 8.0", ".version 9.2").replace("sm_90a", "sm_100a")
    launch(text, "k", 1, 32, args)


STAGE = "ld.global.u32 %r6, [%rd5]; st.shared.u32 [%r5], %r6;\nfence.proxy.async; bar.sync 0;\n"
OFFSET = "add.u64 %rd5, %rd1, %rd3;\n"


@pytest.mark.parametrize("form", ["cp.async.bulk", "multimem.cp.async.bulk"])
def test_some_bytes_of_sixteen(form):
    given, out = np.arange(128, dtype=np.uint8), np.full(128, 200, np.uint8)
    copy = (
        f"mov.u16 %h1, 0xA005;\n@%p1 {form}.global.shared::cta.bulk_group.cp_mask [%rd2], [%r2], 128, %h1;\n"
    )
    run(START + OFFSET + STAGE + copy + COMMIT, [given, out])
    kept = 0xA005 >> np.arange(128) % 16 & 1
    np.testing.assert_array_equal(out, np.where(kept, given, 200))


def test_every_byte_to_all_replicas():
    given, out = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    copy = "@%p1 multimem.cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], 128;\n"
    run(START + OFFSET + STAGE + copy + COMMIT, [given, out])
    np.testing.assert_array_equal(out, given)


@pytest.mark.parametrize(
    ("operation", "kind"), [("add.u32", np.uint32), ("min.s32", np.int32), ("add.noftz.f16", np.float16)]
)
def test_reductions_in_all_replicas(operation, kind):
    rng = np.random.default_rng(1)
    given, out = (rng.integers(0, 50, 128 // np.dtype(kind).itemsize).astype(kind) for _ in range(2))
    due = np.minimum(given, out) if "min" in operation else given + out
    copy = (
        f"@%p1 multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation} [%rd2], [%r2], 128;\n"
    )
    run(START + OFFSET + STAGE + copy + COMMIT, [given, out])
    np.testing.assert_array_equal(out, due)


IGNORING = """@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 128;
@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%r2], [%rd1], 128, {left}, {right}, [%r3];
"""


def test_ends_that_are_ignored():
    given, out = np.arange(29, dtype=np.uint32), np.zeros(32, np.uint32)
    body = START + INIT + IGNORING.format(left=0, right=12) + WAIT
    run(body + "setp.lt.u32 %p3, %r1, 29;\n@%p3 " + READ.replace("; ", ";\n@%p3 "), [given, out])
    np.testing.assert_array_equal(out[:29], given)
    assert (out[29:] == 0).all()


def test_what_is_ignored_is_undefined():
    given, out = np.arange(29, dtype=np.uint32), np.zeros(32, np.uint32)
    with pytest.raises(EmulatorError, match="uninitialised") as caught:
        run(START + INIT + IGNORING.format(left=4, right=12) + WAIT + READ, [given, out])
    assert "st.global" in str(caught.value)


@pytest.mark.parametrize(
    ("left", "right", "length", "text"),
    [
        (0, 8, 29, "out of bounds: copies 1 byte at "),
        (0, "%r9", 29, "out of bounds: a bulk copy ignores 0 to 15 bytes at either end, not 0 and 120"),
    ],
)
def test_ends_that_are_not_ignored(left, right, length, text):
    given, out = np.arange(length, dtype=np.uint32), np.zeros(32, np.uint32)
    with pytest.raises(EmulatorError) as caught:
        run(START + INIT + IGNORING.format(left=left, right=right) + WAIT + READ, [given, out])
    assert str(caught.value).startswith(text)


def test_eight_bit_floats_of_all_replicas():
    given, out = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    body = (
        START
        + OFFSET
        + "multimem.ld_reduce.global.add.e4m3x4 %r6, [%rd5];\nmultimem.st.global.e5m2x4 [%rd4], %r6;\n"
    )
    run(body, [given, out])
    np.testing.assert_array_equal(out, given)
    wide = "multimem.ld_reduce.relaxed.gpu.global.add.acc::f16.v4.e5m2x4 {%r10, %r11, %r12, %r13}, [%rd1];\n"
    run(START + wide + "@%p1 st.global.v4.u32 [%rd2], {%r10, %r11, %r12, %r13};\n", [given[4:].copy(), out])
    np.testing.assert_array_equal(out[:4], given[4:8])
