"""Special registers (PTX ISA 10), each as an array over the threads of a wave."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator import windows
from ptxtile.emulator.widths import Bits

if TYPE_CHECKING:
    from ptxtile.emulator.lanes import Lanes
    from ptxtile.emulator.machine import Wave

Factory = Callable[["Wave"], Bits]
Extent = tuple[int, int, int]

MULTIPROCESSORS = 132
WARPS_PER_MULTIPROCESSOR = 64
NANOSECONDS_PER_STEP = 1


def _even(value: Callable[[Wave], int], kind: type[np.unsignedinteger] = np.uint32) -> Factory:
    return lambda wave: np.broadcast_to(np.array(value(wave), kind), (wave.count,))


def _split(numbers: NDArray[np.int64], extent: Extent, axis: int) -> Bits:
    divisor = (1, extent[0], extent[0] * extent[1])[axis]
    found = numbers // divisor
    return (found % extent[axis] if axis < 2 else found).astype(np.uint32)


def _tid(axis: int) -> Factory:
    return lambda wave: _split(wave.tid, wave.launch.block, axis)


def _cta(wave: Wave, axis: int) -> NDArray[np.int64]:
    return _split(wave.number, wave.launch.grid, axis).astype(np.int64)


def _ctaid(axis: int) -> Factory:
    return lambda wave: _cta(wave, axis).astype(np.uint32)[wave.cta]


def _cluster_ctaid(axis: int) -> Factory:
    return lambda wave: (_cta(wave, axis) % wave.launch.cluster[axis]).astype(np.uint32)[wave.cta]


def _clusterid(axis: int) -> Factory:
    return lambda wave: (_cta(wave, axis) // wave.launch.cluster[axis]).astype(np.uint32)[wave.cta]


def _lanemask(relation: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]) -> Factory:
    lanes: NDArray[np.int64] = np.arange(32, dtype=np.int64)
    table = (relation(lanes[None, :], lanes[:, None]) << lanes).sum(axis=1).astype(np.uint32)
    return lambda wave: table[wave.lane]


def _axes(name: str, factory: Callable[[int], Factory]) -> dict[str, Factory]:
    axes: dict[str, Factory] = {f"%{name}.{letter}": factory(i) for i, letter in enumerate("xyz")}
    axes[f"%{name}.w"] = _even(lambda wave: 0)
    return axes


def _grid_in_clusters(wave: Wave, axis: int) -> int:
    return wave.launch.grid[axis] // wave.launch.cluster[axis]


def _shared_bytes(wave: Wave) -> int:
    return wave.launch.program.static_bytes + wave.launch.dynamic_shared


SPECIALS: dict[str, Factory] = {
    **_axes("tid", _tid),
    **_axes("ntid", lambda axis: _even(lambda wave: wave.launch.block[axis])),
    **_axes("ctaid", _ctaid),
    **_axes("nctaid", lambda axis: _even(lambda wave: wave.launch.grid[axis])),
    **_axes("cluster_ctaid", _cluster_ctaid),
    **_axes("cluster_nctaid", lambda axis: _even(lambda wave: wave.launch.cluster[axis])),
    **_axes("clusterid", _clusterid),
    **_axes("nclusterid", lambda axis: _even(lambda wave: _grid_in_clusters(wave, axis))),
    "%laneid": lambda wave: wave.lane.astype(np.uint32),
    "%warpid": lambda wave: (wave.tid // 32).astype(np.uint32),
    "%nwarpid": _even(lambda wave: WARPS_PER_MULTIPROCESSOR),
    "%smid": lambda wave: (wave.number // wave.cluster_size % MULTIPROCESSORS).astype(np.uint32)[wave.cta],
    "%nsmid": _even(lambda wave: MULTIPROCESSORS),
    "%gridid": _even(lambda wave: 1, np.uint64),
    "%cluster_ctarank": lambda wave: wave.rank.astype(np.uint32)[wave.cta],
    "%cluster_nctarank": _even(lambda wave: wave.cluster_size),
    "%is_explicit_cluster": lambda wave: np.broadcast_to(np.array(wave.cluster_size > 1), (wave.count,)),
    "%lanemask_eq": _lanemask(np.equal),
    "%lanemask_le": _lanemask(np.less_equal),
    "%lanemask_lt": _lanemask(np.less),
    "%lanemask_ge": _lanemask(np.greater_equal),
    "%lanemask_gt": _lanemask(np.greater),
    "%dynamic_smem_size": _even(lambda wave: wave.launch.dynamic_shared),
    "%total_smem_size": _even(_shared_bytes),
    "%aggr_smem_size": _even(_shared_bytes),
    "%reserved_smem_offset_begin": _even(lambda wave: 0),
    "%reserved_smem_offset_end": _even(lambda wave: windows.SHARED_START),
    "%reserved_smem_offset_cap": _even(lambda wave: windows.SHARED_START),
    "%reserved_smem_offset_0": _even(lambda wave: 0),
    "%reserved_smem_offset_1": _even(lambda wave: 0),
}

CLOCKS = {
    "%clock": 32,
    "%clock_hi": 32,
    "%clock64": 64,
    "%globaltimer": 64,
    "%globaltimer_lo": 32,
    "%globaltimer_hi": 32,
}


def known(name: str) -> bool:
    """Whether the emulator has this special register, alone or, as %tid, by its elements."""
    return name in SPECIALS or name in CLOCKS or f"{name}.x" in SPECIALS


def compute(name: str, wave: Wave, lanes: Lanes) -> Bits:
    """A register that changes while the program runs: clocks count instruction issues."""
    machine = wave.machine
    now = (machine.launch.steps - machine.steps_left) * NANOSECONDS_PER_STEP
    if name.endswith("_hi"):
        now >>= 32
    kind = np.uint64 if CLOCKS[name] == 64 else np.uint32
    return np.full(lanes.count, now & ((1 << CLOCKS[name]) - 1), kind)
