"""Clusters: barriers of all their threads (PTX ISA 9.7.13.3), and addresses in other CTAs (9.7.9.23)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ptxtile.builder import addresses, convert
from ptxtile.builder.storage import Memory
from ptxtile.builder.tensors import Tensor
from ptxtile.builder.values import current, scalar, where, word
from ptxtile.dtypes import Scalar, uint32
from ptxtile.errors import OperandError
from ptxtile.ir.operand import Address, Register

if TYPE_CHECKING:
    from ptxtile.builder.trace import Trace

__all__ = ["cluster_arrive", "cluster_sync", "cluster_wait", "mapa", "remote"]


def cluster_arrive(*, relaxed: bool = False) -> None:
    """Arrive at the cluster's barrier: `barrier.cluster.arrive.release`, or `.relaxed`, which orders no memory."""
    current("pt.cluster_arrive").instruction(f"barrier.cluster.arrive.{'relaxed' if relaxed else 'release'}")


def cluster_wait() -> None:
    """Wait until all threads of the cluster have arrived: `barrier.cluster.wait.acquire`."""
    current("pt.cluster_wait").instruction("barrier.cluster.wait.acquire")


def cluster_sync() -> None:
    """All threads of the cluster wait for all: `barrier.cluster.arrive.release; barrier.cluster.wait.acquire`."""
    trace = current("pt.cluster_sync")
    trace.instruction("barrier.cluster.arrive.release")
    trace.instruction("barrier.cluster.wait.acquire")


def mapa(tensor: Any, cta: int | Scalar) -> Scalar:
    """The shared-window address, uint32, that a tensor or mbarrier in shared memory has in CTA `cta` of the cluster:
    `mapa.shared::cluster.u32`. It stands as an address operand of .shared::cluster instructions."""
    trace = current("pt.mapa")
    if not isinstance(tensor, Tensor) and (isinstance(tensor, Scalar) or not hasattr(tensor, "address")):
        raise OperandError(
            f"pt.mapa takes a tensor or mbarrier in shared memory, not {convert.given(tensor)}; s[i : i + 1] is the "
            "region that begins at element i" + where(trace)
        )
    if isinstance(tensor, Tensor) and (
        not isinstance(tensor.bound, Memory) or tensor.bound.space != "shared"
    ):
        raise OperandError(f"pt.mapa: {tensor!r} is not in shared memory" + where(trace))
    address = remote(trace, tensor.address(trace, ".shared::cta"), cta)
    return trace.value(uint32, address.base)


def remote(trace: Trace, address: Address, cta: object) -> Address:
    """An address in shared memory as the same place of CTA `cta`: the address in a register, then one `mapa`."""
    rank = scalar(trace, uint32, cta, "mapa: the CTA")
    cluster, known = trace.launch.cluster, rank.value
    if cluster is not None and known is not None and known >= math.prod(cluster):
        raise OperandError(
            f"mapa: the cluster has CTAs 0 to {math.prod(cluster) - 1}, and this is CTA {known}"
            + where(trace)
        )
    mapped, source = trace.register("b32"), address.base
    if address.offset or not isinstance(source, Register):
        source = addresses.in_register(trace, address)
    trace.instruction("mapa.shared::cluster.u32", mapped, source, word(trace, rank))
    return Address(mapped)
