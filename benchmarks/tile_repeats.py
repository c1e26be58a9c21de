"""What a repeat of tile.apply costs to trace, check and write, in microseconds of one core.

    python benchmarks/tile_repeats.py [--repeats 4096] [--rounds 7] [--json FILE]

Allocating the registers is left out; making the module's text is in. The limit is 5 µs a repeat up to 4,096 repeats.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import ptxtile as pt
from ptxtile import S, TCol, TLane, laneid, tile
from ptxtile.layout.mma_fragment import ldmatrix, mma_a, mma_b, mma_c, stacked
from ptxtile.layout.tensor_memory import tensor_memory_fragment

LIMIT = 5.0
ALL = pt.uint32(0xFFFFFFFF)
Prepared = tuple[str, tuple[Any, ...], dict[str, Any]]


def registers(n: int, _: Any) -> Prepared:
    return "fma.rn.f32", (*(pt.alloc_local((n, 1), pt.float32) for _ in range(3)), 1.0), {"scope": "thread"}


def product(n: int, _: Any) -> Prepared:
    a, b, c = mma_a("m16n8k16", 16), mma_b("m16n8k16", 16), mma_c("m16n8k16", 32)
    k = n // 16
    d = pt.alloc_local((4, 4, *c.shape), pt.float32, layout=stacked(c, 4, 4))
    left = pt.alloc_local((4, k, *a.shape), pt.uint32, layout=stacked(a, 4, k))
    right = pt.alloc_local((4, k, *b.shape), pt.uint32, layout=stacked(b, 4, k))
    return "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", (d, left, right, 0), {"scope": "warp"}


def matrices(n: int, _: Any) -> Prepared:
    r = pt.alloc_local((n, 4, 8, 4), pt.uint32, layout=stacked(ldmatrix("m8n8", 4), n))
    # Shared memory holds 64 of them: every 64 repeats read the same.
    shared = pt.alloc_shared((64, 4, 8, 4), pt.uint32)
    again = shared.view(n, 4, 8, 4, layout=S[(n // 64, 64, 4, 8, 4) : (0, 128, 32, 4, 1)])
    return "ldmatrix.sync.aligned.m8n8.x4.shared.b16", (r, again), {"scope": "warp"}


def _vector(n: int, dtype: Any = pt.float32) -> Any:
    return pt.alloc_local((32, n, 4), dtype, layout=S[(32, n, 4) : (1 @ laneid, 4, 1)])


def load(n: int, memory: Any) -> Prepared:
    return "ld.global.v4.f32", (_vector(n), memory), {"scope": "warp"}


def reduction(n: int, memory: Any) -> Prepared:
    return "red.global.add.v4.f32", (memory, _vector(n)), {"scope": "warp"}


def exchange(n: int, _: Any) -> Prepared:
    r = pt.alloc_local((32, n, 1), pt.uint32, layout=S[(32, n, 1) : (1 @ laneid, 1, 1)])
    return "shfl.sync.bfly.b32", (r, r, 1, 31, ALL), {"scope": "warp"}


def atomic(n: int, memory: Any) -> Prepared:
    d, b = (
        pt.alloc_local((32, n, 1), pt.uint32, layout=S[(32, n, 1) : (1 @ laneid, 1, 1)]) for _ in range(2)
    )
    return "atom.global.add.u32", (d, memory.view(pt.uint32)[:, :, 0:1], b), {"scope": "warp"}


def bulk(n: int, memory: Any) -> Prepared:
    shared = pt.alloc_shared((64, 4), pt.float32)
    again = shared.view(n, 4, layout=S[(n // 64, 64, 4) : (0, 4, 1)])
    return "cp.async.bulk.global.shared::cta.bulk_group", (memory[0], again), {"chunk_bytes": 16}


def opaque(n: int, memory: Any) -> Prepared:
    shape = (32, n // 8, 8)
    r = pt.alloc_local(shape, pt.float32, layout=S[shape : (1 @ laneid, 8, 1)])
    matrices = memory.view(n // 8, 32, 32)[:, 0:16, 0:16]
    return "wmma.load.c.sync.aligned.row.m16n16k16.global.f32", (r, matrices), {"scope": "warp"}


def tensor_memory(n: int, _: Any) -> Prepared:
    words = tensor_memory_fragment("32x32b", 4)
    r = pt.alloc_local((n, *words.shape), pt.float32, layout=stacked(words, n))
    shape = (n // 128, 128, 32, 4)
    layout = S[shape : (0, 4 @ TCol, 1 @ TLane, 1 @ TCol)]
    place = pt.tensor_memory(512).tensor((n, *words.shape), pt.float32, layout=layout)
    return "tcgen05.ld.sync.aligned.32x32b.x4.b32", (r, place), {"scope": "warp"}


CASES: tuple[Callable[[int, Any], Prepared], ...] = (
    registers, product, matrices, load, reduction, exchange, atomic, bulk, opaque, tensor_memory
)  # fmt: skip


def once(case: Callable[[int, Any], Prepared], n: int) -> float:
    """Microseconds a repeat."""
    noted: list[float] = []
    forms: list[str] = []

    @pt.kernel(grid=1, block=32)
    def k(G: pt.Tensor((32, n, 4), pt.float32, align=64)) -> None:  # type: ignore[valid-type]
        form, operands, options = case(n, G)
        forms.append(form)
        noted.append(time.process_time())
        tile.apply(form, *operands, **options)

    text = k.ptx()
    return (time.process_time() - noted[0]) / text.count(forms[0]) * 1e6


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--repeats", type=int, default=4096)
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--json")
    given = arguments.parse_args()
    results = {}
    for case in CASES:
        times = sorted(once(case, given.repeats) for _ in range(given.rounds))
        results[case.__name__] = {"median": statistics.median(times), "least": times[0], "most": times[-1]}
        print(
            f"{case.__name__:12s} {statistics.median(times):6.2f} µs a repeat ({times[0]:.2f} to {times[-1]:.2f}); "
            f"limit {LIMIT} µs"
        )
    if given.json:
        facts = {
            "repeats": given.repeats,
            "rounds": given.rounds,
            "machine": platform.processor(),
            "python": platform.python_version(),
        }
        Path(given.json).write_text(json.dumps({**facts, "microseconds a repeat": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
