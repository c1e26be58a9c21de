"""Sparse wgmma on both machines: A compressed, its metadata placed by its layout."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import ptx, tile
from ptxtile.layout.fragment import wgmma_accumulator, wgmma_metadata, wgmma_registers
from tile.running import machines

N = 8


def compressed(rng: np.random.Generator, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A of 64 x k with two of each four elements, its stored half, and 16 bits of metadata for each four groups."""
    kept = np.sort(np.argsort(rng.random((64, k // 4, 4)), axis=2)[:, :, :2], axis=2)
    stored = rng.integers(-3, 4, kept.shape)
    dense = np.zeros((64, k // 4, 4), np.int64)
    np.put_along_axis(dense, kept, stored, axis=2)
    nibbles = (kept[:, :, 0] | kept[:, :, 1] << 2).astype(np.uint16).reshape(64, -1, 4)
    halves = (nibbles << (np.arange(4, dtype=np.uint16) * 4)).sum(axis=2, dtype=np.uint16)
    return dense.reshape(64, k), stored.reshape(64, k // 2), halves


def shared(source: pt.Tensor, swizzle: int) -> pt.Tensor:
    """A matrix of global memory in shared memory."""
    shape = source.static_shape
    layout = pt.shared_layout(shape, source.dtype, swizzle)
    made = pt.alloc_shared(shape, source.dtype, layout=layout, align=1024)
    with pt.for_range(pt.thread_rank(), shape[0] * shape[1], 128) as i:
        made[i // shape[1], i % shape[1]] = source[i // shape[1], i % shape[1]]
    return made


@machines
@pytest.mark.parametrize(("kind", "selector"), [("bf16", 0), ("bf16", 1), ("s8", 0)])
def test_product(device, kind, selector):
    import ml_dtypes

    half = kind == "bf16"
    k, itemsize = (32, 2) if half else (64, 1)
    dtype, result = (pt.uint16, pt.float32) if half else (pt.int8, pt.int32)
    form = f"wgmma.mma_async.sp.sync.aligned.m64n{N}k{k}.{'f32.bf16.bf16' if half else 's32.s8.s8'}"

    @pt.kernel(grid=1, block=128)
    def multiply(
        A: pt.Tensor((64, k // 2), dtype),
        B: pt.Tensor((N, k), dtype),
        E: pt.Tensor((128,), pt.uint32),
        D: pt.Tensor((128, N // 2), result),
    ):
        held = [shared(A, 32), shared(B, 64)]
        meta = pt.alloc_local((4, 32, 1, 1, 1), pt.uint32, layout=wgmma_registers(1))
        meta[0, 0, 0, 0, 0] = E[pt.thread_rank()]
        d = pt.alloc_local((4, 32, N // 2), result, layout=wgmma_registers(N // 2))
        for i in range(N // 2):
            d[0, 0, i] = result(0)
        pt.fence_async()
        pt.cta_sync()
        ptx.wgmma.fence.sync.aligned()
        tile.apply(ptx[form], d, *held, meta, scope="warpgroup", sp_sel=selector)
        ptx.wgmma.commit_group.sync.aligned()
        ptx.wgmma.wait_group.sync.aligned(0)
        for i in range(N // 2):
            D[pt.thread_rank(), i] = d[0, 0, i]

    rng = np.random.default_rng(7)
    dense, stored, halves = compressed(rng, k)
    b = rng.integers(-3, 4, (N, k))
    words = rng.integers(0, 1 << 16, (128, 2), dtype=np.uint16)  # what is not read may be anything
    at = wgmma_metadata(itemsize, selector).apply(*np.indices(halves.shape), shape=halves.shape)
    words[at["wid_in_wg"] * 32 + at["laneid"], at["m"]] = halves
    given = [
        part.astype(ml_dtypes.bfloat16).view(np.uint16) if half else part.astype(np.int8)
        for part in (stored, b)
    ]
    out = np.zeros((128, N // 2), result.numpy)
    multiply.launch(*given, words.view(np.uint32)[:, 0].copy(), out, device=device)
    place = wgmma_accumulator(N).apply(*np.indices((64, N)), shape=(64, N))
    seen = out[place["wid_in_wg"] * 32 + place["laneid"], place["m"]]
    np.testing.assert_array_equal(seen, dense @ b.T)
