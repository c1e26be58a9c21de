"""Faults in kernels written in Python: the finding names the Python line, and the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import ptx, tile
from ptxtile.emulator import EmulatorError

LINES = Path(__file__).read_text(encoding="utf-8").splitlines()
LOAD = ptx["cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"]
STORE = ptx["cp.async.bulk.global.shared::cta.bulk_group"]
BYTES = 4 * 64


@pt.kernel(grid=1, block=64)
def reverse(X: pt.Tensor((64,), pt.float32), Out: pt.Tensor((64,), pt.float32), *, fault: str = ""):
    s = pt.alloc_shared((64,), pt.float32)
    other = pt.alloc_shared((64,), pt.float32)
    i = pt.thread_idx("x")
    other[i] = pt.float32(0)
    far = i + 1 if fault == "index" else i
    s[far] = X[i]  # store
    if fault == "divergent":
        with pt.if_(i < 16):
            pt.cta_sync()  # divergent
    elif fault != "sync":
        pt.cta_sync()
    value = pt.reg(pt.float32)
    if fault != "unset":
        value.set(s[63 - i])  # load
    Out[i * 2 if fault == "global" else i] = value  # out


@pt.kernel(grid=1, block=64)
def doubled(X: pt.Tensor((64,), pt.uint32), Out: pt.Tensor((64,), pt.uint32), *, fault: str = ""):
    s = pt.alloc_shared((64,), pt.uint32, align=128)
    full = pt.mbarrier(2 if fault == "count" else 1)
    i = pt.thread_idx("x")
    with pt.if_(i == 0):
        full.init()  # init
        if fault != "init fence":
            pt.fence_mbarrier_init()
    if fault != "init sync":
        pt.cta_sync()
    with pt.if_(i == 0):
        full[0].arrive_expect_tx(BYTES + (16 if fault == "bytes" else 0))  # expect
        tile.apply(LOAD, s, X, chunk_bytes=BYTES, mbar=full[0])  # copy in
    if fault != "wait":
        full[0].wait(1 if fault == "parity" else 0)  # wait
    s[i] = s[i] * 2  # change
    if fault != "proxy":
        pt.fence_async()
    if fault != "sync":
        pt.cta_sync()
    with pt.if_(i == 0):
        tile.apply(STORE, Out, s, chunk_bytes=BYTES)  # copy out
        if fault != "commit":
            ptx.cp.async_.bulk.commit_group()
        if fault == "reuse":
            s[0] = pt.uint32(0)  # reuse
        if fault != "exit":
            ptx.cp.async_.bulk.wait_group.read(0)


@pt.kernel(grid=2, block=32)
def flagged(F: pt.Tensor((1,), pt.uint32), Out: pt.Tensor((2,), pt.uint32), *, fault: str = ""):
    first = pt.thread_rank() == 0
    with pt.if_(first):
        with pt.if_(pt.block_idx("x") == 0):
            Out[0] = pt.uint32(7)  # message
            if fault == "relaxed":
                ptx["st.relaxed.gpu.global.u32"](F[0:1], pt.uint32(1))
            elif fault != "silent":
                ptx["st.release.gpu.global.u32"](F[0:1], pt.uint32(1))
        with pt.else_():
            seen = pt.reg(pt.uint32)
            seen.set(pt.uint32(0))
            with pt.while_(lambda: seen == 0):
                ptx["ld.acquire.gpu.global.u32"](seen, F[0:1])  # poll
            Out[1] = Out[0] + 1  # read


FAULTS = [
    (reverse, "sync", "race", "load"),
    (reverse, "index", "out-of-bounds", "store"),
    (reverse, "unset", "uninitialised", "out"),
    (reverse, "global", "out-of-bounds", "out"),
    (reverse, "divergent", "barrier", "divergent"),
    (doubled, "init fence", "proxy", "copy in"),
    (doubled, "init sync", "race", "wait"),
    (doubled, "count", "deadlock", "wait"),
    (doubled, "bytes", "deadlock", "wait"),
    (doubled, "parity", "in-flight", "change"),
    (doubled, "wait", "in-flight", "change"),
    (doubled, "proxy", "proxy", "copy out"),
    (doubled, "sync", "race", "copy out"),
    (doubled, "commit", "exit", "copy out"),
    (doubled, "reuse", "in-flight", "reuse"),
    (doubled, "exit", "exit", "copy out"),
    (flagged, "relaxed", "race", "read"),
    (flagged, "silent", "deadlock", "poll"),
]


def run(kernel, fault):
    if kernel is flagged:
        flag, out = np.zeros(1, np.uint32), np.zeros(2, np.uint32)
        kernel.launch(flag, out, device="emulator", fault=fault)
        assert out.tolist() == [7, 8]
        return
    kind = np.float32 if kernel is reverse else np.uint32
    x, out = np.arange(64).astype(kind), np.zeros(64, kind)
    kernel.launch(x, out, device="emulator", fault=fault)
    assert (out == (x[::-1] if kernel is reverse else 2 * x)).all()


@pytest.mark.parametrize("kernel", [reverse, doubled, flagged], ids=lambda k: k.__name__)
def test_a_right_kernel(kernel):
    run(kernel, "")


@pytest.mark.parametrize(("kernel", "fault", "kind", "mark"), FAULTS)
def test_a_fault_is_found_at_its_python_line(kernel, fault, kind, mark):
    with pytest.raises(EmulatorError) as caught:
        run(kernel, fault)
    where = caught.value.location
    assert caught.value.kind == kind, str(caught.value)
    assert where is not None and Path(where.file).name == Path(__file__).name
    assert LINES[where.line - 1].endswith(f"# {mark}"), str(caught.value)
    assert f"{where}: {where.source}" in str(caught.value)
