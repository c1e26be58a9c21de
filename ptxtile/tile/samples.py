"""Spellings of each family of tile operations, for its page and its tests: one of each kind of form."""

from __future__ import annotations

SAMPLES: dict[str, tuple[str, ...]] = {
    "ld, st": (
        "ld.global.v4.b32", "ld.global.nc.L1::no_allocate.b32", "ld.shared::cta.v2.f32", "ld.local.b64", "ld.b32",
        "ld.acquire.gpu.global.u32", "ld.global.L2::cache_hint.v4.b32", "st.global.v4.b32", "st.shared.b16", "st.local.b32",
        "st.release.sys.global.u64", "ld.global.v8.b32",
    ),
    "atom, red": (
        "atom.global.add.u32", "atom.shared.cas.b64", "atom.acq_rel.gpu.global.exch.b32", "atom.global.add.noftz.f16x2",
        "atom.global.add.v4.f32", "red.global.add.f32", "red.relaxed.sys.global.max.s64", "red.global.add.noftz.v8.bf16",
    ),
    "multimem": (
        "multimem.ld_reduce.relaxed.gpu.global.add.v4.f32", "multimem.st.weak.global.v4.f32",
        "multimem.red.relaxed.gpu.global.add.v2.f16x2",
    ),
    "st.async, red.async": (
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32",
        "st.async.release.gpu.global.b32",
    ),
    "cp.async": ("cp.async.ca.shared.global", "cp.async.cg.shared.global.L2::cache_hint.L2::128B"),
    "bulk copies": (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster",
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes",
        "cp.async.bulk.global.shared::cta.bulk_group", "cp.async.bulk.global.shared::cta.bulk_group.cp_mask",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32",
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32",
        "cp.async.bulk.prefetch.L2.global", "multimem.cp.async.bulk.global.shared::cta.bulk_group",
    ),
    "prefetch, discard, applypriority": (
        "prefetch.global.L2", "prefetchu.L1", "discard.global.L2", "applypriority.global.L2::evict_normal",
    ),
    "shfl, vote, match, redux, elect, activemask": (
        "shfl.sync.bfly.b32", "vote.sync.ballot.b32", "match.any.sync.b32", "redux.sync.add.u32", "redux.sync.min.f32",
        "elect.sync", "activemask.b32",
    ),
    "ldmatrix, stmatrix": (
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16", "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16",
        "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8", "ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b4x16_p64",
        "stmatrix.sync.aligned.m8n8.x4.shared.b16", "stmatrix.sync.aligned.m16n8.x2.trans.shared.b8",
    ),
    "movmatrix": ("movmatrix.sync.aligned.m8n8.trans.b16",),
    "mma": (
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc",
        "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0",
    ),
    "wgmma": (
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8",
    ),
    "tensor copies": (
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group",
    ),
    "tensor prefetch": ("cp.async.bulk.prefetch.tensor.2d.L2.global.tile",),
    "tcgen05.ld, tcgen05.st": (
        "tcgen05.ld.sync.aligned.32x32b.x32.b32", "tcgen05.ld.sync.aligned.16x256b.x8.b32",
        "tcgen05.ld.sync.aligned.16x32bx2.x8.b32", "tcgen05.ld.sync.aligned.32x32b.x16.pack::16b.b32",
        "tcgen05.st.sync.aligned.16x128b.x4.b32",
    ),
    "tcgen05.cp": ("tcgen05.cp.cta_group::1.128x256b", "tcgen05.cp.cta_group::1.32x128b.warpx4"),
    "tcgen05.mma": (
        "tcgen05.mma.cta_group::1.kind::f16", "tcgen05.mma.cta_group::2.kind::f8f6f4", "tcgen05.mma.sp.cta_group::1.kind::tf32",
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale", "tcgen05.mma.ws.cta_group::1.kind::f16",
    ),
    "registers": ("fma.rn.f32", "add.rn.f16x2", "cvt.rn.f16x2.f32", "setp.lt.f32", "lop3.b32", "prmt.b32"),
}  # fmt: skip
"""By the family's name. A test holds them to the catalogue."""
