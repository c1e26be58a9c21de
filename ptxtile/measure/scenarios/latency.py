"""Latency of loads by level and footprint: a pointer chase by one warp of each SM through all cells of a footprint.

Cells lie `STRIDE` bytes apart. Each holds the address of the next one, in an order that a linear congruence gives:
every cell once, neighbours far apart. Before the clock starts, the kernel writes the cells and reads them all, so
that a footprint lies in the nearest level that has room for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxtile.measure.plan import Launch, Point
from ptxtile.measure.scenarios.recipe import MEET, Recipe

__all__ = ["STRIDE", "recipes"]

STRIDE = 128
"""Bytes from cell to cell: a line of the caches."""

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
_CACHED = tuple(_KIB << n for n in (2, 4, 5, 6, 7, 8, 9, 10)) + tuple(
    _MIB << n for n in (1, 2, 3, 4, 5, 6, 8, 10)
)
_BEYOND = tuple(_KIB << n for n in (2, 6, 9, 10)) + tuple(_MIB << n for n in (2, 3, 4, 5, 6, 8, 10))
_LARGE = (
    256 * _MIB,
    _GIB,
)  # in the order of addresses: pages and rows of the memory are those of the load before
_SHARED = tuple(_KIB << n for n in (2, 5, 7))
_FEW = 16  # blocks of a chase through more than the second-level cache
_APART = 40503  # cells from the first one of a block to that of the next, so that no block follows another
_MULTIPLIER, _INCREMENT = 1664525, 1013904223  # of a congruence that visits every cell of a power of two


def recipes() -> Iterator[Recipe]:
    """All points of these scenarios."""
    for size in _CACHED:
        yield _global("memory.latency.global", "ld.global.b64", size)
    for size in _BEYOND:
        yield _global("memory.latency.global.cg", "ld.global.cg.b64", size)
    for size in _LARGE:
        yield _global("memory.latency.global.cg.ordered", "ld.global.cg.b64", size, ordered=True)
    for size in _SHARED:
        yield _shared("memory.latency.shared", "ld.shared.b32", size, 1)
    yield _indexed("memory.latency.global.indexed", "ld.global.b32", 4 * _KIB)
    yield _indexed("memory.latency.global.indexed", "ld.global.b32", 64 * _KIB)
    yield _indexed("memory.latency.shared.indexed", "ld.shared.b32", 4 * _KIB)
    for cluster in (2, 4, 8):
        yield _distributed(cluster)
        yield _shared("memory.latency.distributed", "ld.shared::cluster.b32", 32 * _KIB, cluster)


def _next(cells: int, *, ordered: bool = False) -> list[str]:
    """Statements from the number %index of a cell to that of the next one, %after."""
    multiplier, increment = (1, 1) if ordered else (_MULTIPLIER, _INCREMENT)
    return [
        f"mad.lo.u32 %after, %index, {multiplier}, {increment};",
        f"and.b32 %after, %after, {cells - 1};",
    ]


def _walk(label: str, cells: int, body: list[str]) -> list[str]:
    """`body` for each cell %index, the lanes side by side."""
    return [
        "mov.u32 %index, %lane;", f"{label}:", *body, "add.u32 %index, %index, 32;",
        f"setp.lt.u32 %more, %index, {cells};", f"@%more bra {label};",
    ]  # fmt: skip


def _global(scenario: str, form: str, size: int, *, ordered: bool = False) -> Recipe:
    cells = size // STRIDE
    where = f"mad.wide.u32 %cell, %index, {STRIDE}, %field;"
    write = [
        *_next(cells, ordered=ordered),
        where,
        f"mad.wide.u32 %x, %after, {STRIDE}, %field;",
        "st.global.b64 [%cell], %x;",
    ]
    read = [
        where,
        f"{form} %x, [%cell];",
        "mov.b64 {%low, %high}, %x;",
        "mad.lo.u32 %acc, %low, %zero, %acc;",
    ]
    return Recipe(
        Point(scenario, form, "bytes", size, "cycles", 1),
        Launch(0 if size <= 32 * _MIB else _FEW, 32, common=size),
        lambda turn: [f"{form} %x, [%x];"],
        {"LDG.E": 1},
        declare=(".reg .u32 %index, %after, %low, %high;", ".reg .u64 %cell, %x;", ".reg .pred %more;"),
        setup=(
            *_walk("WRITE", cells, write),
            "membar.gl;",
            *_walk("READ", cells, read),
            f"mul.lo.u32 %index, %block, {_APART};",
            f"and.b32 %index, %index, {cells - 1};",
            f"mad.wide.u32 %x, %index, {STRIDE}, %field;",
        ),
        finish=("cvt.u32.u64 %acc, %x;", "@%never st.global.u32 [%out], %acc;"),
        steps=(16, 48),
        trips=64 if size > 128 * _KIB else 16,
    )


def _shared(scenario: str, form: str, size: int, cluster: int) -> Recipe:
    """Cells in the shared memory of the block itself, or of the next block of its cluster."""
    cells = size // STRIDE
    mine = f"mad.lo.u32 %cell, %index, {STRIDE}, %shared;"
    target = f"mad.lo.u32 %x, %after, {STRIDE}, %shared;"
    map_: list[str] = []
    first: list[str] = ["mov.u32 %x, %shared;"]
    meet: tuple[str, ...] = ()
    if cluster > 1:
        map_ = ["mapa.shared::cluster.u32 %x, %x, %rank;"]
        first = [
            "mov.u32 %after, %cluster_nctarank;", "add.u32 %index, %rank, 1;", "rem.u32 %index, %index, %after;",
            "mapa.shared::cluster.u32 %x, %shared, %index;",
        ]  # fmt: skip
        meet = MEET
    write = [*_next(cells), mine, target, *map_, "st.shared.b32 [%cell], %x;"]
    at = Point(scenario, form, "blocks of the cluster", cluster, "cycles", 1)
    return Recipe(
        at if cluster > 1 else Point(scenario, form, "bytes", size, "cycles", 1),
        Launch(cluster, 32, cluster, shared=size),
        lambda turn: [f"{form} %x, [%x];"],
        {"LD.E" if cluster > 1 else "LDS": 1},
        frozenset(["MOV", "IMAD"]),  # generic addresses have two halves
        declare=(".reg .u32 %index, %after, %cell, %x;", ".reg .pred %more;"),
        setup=(*_walk("WRITE", cells, write), *meet, *first),
        finish=("@%never st.global.u32 [%out], %x;", *meet),
        steps=(16, 48),
        start=meet or ("bar.sync 0;",),
    )


def _indexed(scenario: str, form: str, size: int) -> Recipe:
    """Cells that hold the number of the next one, as arrays do: the chain has the computation of its address."""
    cells, shared = size // STRIDE, "shared" in form
    base = "%shared" if shared else "%field"
    where = f"mad{'.lo' if shared else '.wide'}.u32 %cell, %index, {STRIDE}, {base};"
    space = "shared" if shared else "global"
    write = [*_next(cells), where, f"st.{space}.b32 [%cell], %after;"]
    read = [where, f"{form} %x, [%cell];", "mad.lo.u32 %acc, %x, %zero, %acc;"]
    return Recipe(
        Point(scenario, form, "bytes", size, "cycles", 1),
        Launch(1, 32, shared=size if shared else 0, field=0 if shared else size),
        lambda turn: [where.replace("%index", "%x"), f"{form} %x, [%cell];"],
        {"LDS" if shared else "LDG.E": 1},
        frozenset(["IMAD", "LEA", "IADD3"]),
        declare=(
            f".reg .u{32 if shared else 64} %cell;",
            ".reg .u32 %index, %after, %x;",
            ".reg .pred %more;",
        ),
        setup=(*_walk("WRITE", cells, write), "membar.gl;", *_walk("READ", cells, read), "mov.u32 %x, 0;"),
        finish=("@%never st.global.u32 [%out], %x;",),
        steps=(16, 48),
    )


def _distributed(cluster: int) -> Recipe:
    """As of shared memory, by generic addresses, which are what the hardware takes: nothing stands beside the load."""
    cells, form = 32 * _KIB // STRIDE, "ld.b64"
    write = [
        *_next(cells),
        f"mad.lo.u32 %cell, %index, {STRIDE}, %shared;",
        f"mad.wide.u32 %x, %after, {STRIDE}, %mine;",
        "st.shared.b64 [%cell], %x;",
    ]
    return Recipe(
        Point("memory.latency.distributed.generic", form, "blocks of the cluster", cluster, "cycles", 1),
        Launch(cluster, 32, cluster, shared=32 * _KIB),
        lambda turn: [f"{form} %x, [%x];"],
        {"LD.E.64": 1},
        declare=(".reg .u32 %index, %after, %cell;", ".reg .u64 %x, %mine;", ".reg .pred %more;"),
        setup=(
            "cvt.u64.u32 %x, %shared;",
            "cvta.shared.u64 %x, %x;",
            "mapa.u64 %mine, %x, %rank;",
            *_walk("WRITE", cells, write),
            *MEET,
            "mov.u32 %after, %cluster_nctarank;",
            "add.u32 %index, %rank, 1;",
            "rem.u32 %index, %index, %after;",
            "cvt.u64.u32 %x, %shared;",
            "cvta.shared.u64 %x, %x;",
            "mapa.u64 %x, %x, %index;",
        ),
        finish=("cvt.u32.u64 %acc, %x;", "@%never st.global.u32 [%out], %acc;", *MEET),
        steps=(16, 48),
        start=MEET,
    )
