"""Asynchronous copies: the Tensor Memory Accelerator by bytes of a copy, and cp.async by bytes of a thread.

A latency is from a copy's issue by one thread to the end of its wait. A rate has the copies of two turns in flight,
every SM on its own slab of what the second-level cache holds: each turn waits for those of the turn before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ptxtile.measure.plan import Launch, Point
from ptxtile.measure.scenarios.recipe import MEET, Recipe

__all__ = ["recipes"]

_KIB = 1 << 10
_SIZES = (16, 64, 256, _KIB, 4 * _KIB, 16 * _KIB, 32 * _KIB, 64 * _KIB)
_ROWS = (1, 8, 32, 64, 128, 256)
_LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
_STORE = "cp.async.bulk.global.shared::cta.bulk_group"
_ADD = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32"
_ACROSS = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
_TENSOR = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
_EXPECT = "mbarrier.expect_tx.relaxed.cta.shared::cta.b64"
_HELPERS = frozenset(
    "IMAD IADD3 VIADD LOP3 MOV UMOV UIADD3 R2UR ISETP BRA BSSY BSYNC SHF SEL CS2R NOP PRMT SYNCS ULDC USHF ULOP3 "
    "UIADD3 PLOP3 UPLOP3 UP2UR R2P P2R UISETP USEL UPRMT LEA ULEA IMAD LDGDEPBAR DEPBAR UTMACMDFLUSH MEMBAR WARPSYNC "
    "ELECT VOTEU HFMA2 CCTL BREAK".split()
)
_RING = 128 * _KIB
"""Bytes of shared and of global memory that the copies of a turn go around in."""

_ROOM = 1024  # bytes before the ring, for the mbarrier
_COLUMNS = 1024  # of the tensor, in elements of 4 bytes


def recipes() -> Iterator[Recipe]:
    """All points of these scenarios."""
    for size in _SIZES:
        copy = f"{_LOAD} [%to], [%from], {size}, [%bar];"
        yield _counted("tma.latency.bulk.load", _LOAD, copy, size, "UBLKCP", alone=True)
        yield _counted("tma.rate.bulk.load", _LOAD, copy, size, "UBLKCP", alone=False)
        yield _across(size)
        for name, form in (("store", _STORE), ("add.f32", _ADD)):
            for alone in (True, False):
                yield _grouped(name, form, size, alone)
    for columns in (32, 64):
        for rows in _ROWS:
            for alone in (True, False):
                yield _tensor(rows, columns, alone)
    for size, cache in ((4, "ca"), (8, "ca"), (16, "ca"), (16, "cg")):
        yield _cp_async(size, cache, alone=True)
        if cache == "ca":
            yield _cp_async(size, cache, alone=False)


_STEPS = (4, 12)
_SPREAD = 4 * _KIB  # bytes from copy to copy of a latency, at least: they go to lines at all distances
_SOME = 16  # blocks of a latency, on SMs at all distances; one of large copies, which would meet each other


def _blocks(size: int, alone: bool) -> int:
    return (_SOME if size <= 2 * _KIB else 1) if alone else 0


def _slot(turn: int, size: int, alone: bool) -> int:
    """Bytes from the beginning of the ring to where a step's copy goes."""
    distance = max(size, _SPREAD if alone else 0)
    return turn % max(1, _RING // distance) * distance


def _field(size: int, alone: bool) -> int:
    """Bytes of global memory of a block; those of all blocks leave no gaps."""
    return max(size, _RING if alone else min(_RING, _STEPS[1] * size))


def _wait(turn: int) -> list[str]:
    return [
        f"WAIT{turn}:",
        "mbarrier.try_wait.parity.shared::cta.b64 %done, [%shared], %phase;",
        f"@!%done bra WAIT{turn};",
        "xor.b32 %phase, %phase, 1;",
    ]


# The turns take two mbarriers in turn. The n-th use of one completes a phase of parity n & 1; of a fresh one, the phase
# before the first counts as complete.
def _turn_before(label: str) -> tuple[str, ...]:
    """The wait for the copies of the turn before %turn."""
    return (
        "xor.b32 %bar, %bar, 8;",
        "sub.s32 %phase, %turn, 1;",
        "shr.s32 %phase, %phase, 1;",
        "and.b32 %phase, %phase, 1;",
        f"{label}:",
        "mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], %phase;",
        f"@!%done bra {label};",
    )


_BEFORE = (
    "@%first mbarrier.arrive.shared::cta.b64 _, [%bar];",
    *_turn_before("BEFORE"),
    "add.s32 %turn, %turn, 1;",
)
_TRIPS = 64
_DECLARE = (
    ".reg .u32 %to, %phase, %ring, %x, %y, %other, %bar, %turn;",
    ".reg .u64 %from, %map;",
    ".reg .pred %first, %done;",
)
_SETUP = (
    "elect.sync _|%first, 0xffffffff;",  # of which the assembler knows that it is one lane
    "@%first mbarrier.init.shared::cta.b64 [%shared], 1;",
    "@%first mbarrier.init.shared::cta.b64 [%shared+8], 1;",
    "mov.u32 %bar, %shared;",
    "mov.u32 %turn, 0;",
    "fence.mbarrier_init.release.cluster;",
    f"add.u32 %ring, %shared, {_ROOM};",
    "mov.u32 %phase, 0;",
)


def _counted(scenario: str, form: str, copy: str, size: int, sass: str, *, alone: bool) -> Recipe:
    """Copies whose bytes an mbarrier counts."""

    def step(turn: int) -> list[str]:
        place = _slot(turn, size, alone)
        lines = [f"add.u32 %to, %ring, {place};", f"add.u64 %from, %field, {place};"]
        if alone:
            expect = f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%shared], {size};"
            return [*lines, f"@%first {expect}", f"@%first {copy}", *_wait(turn)]
        return [*lines, f"@%first {_EXPECT} [%bar], {size};", f"@%first {copy}"]

    return Recipe(
        Point(
            scenario,
            form,
            "bytes",
            size,
            "cycles" if alone else "B",
            1 if alone else size,
            "" if alone else "mean",
        ),
        Launch(_blocks(size, alone), 32, shared=_ROOM + max(_RING, size), field=_field(size, alone)),
        step,
        {sass: 1},
        _HELPERS,
        declare=_DECLARE,
        setup=_SETUP,
        turned=() if alone else _BEFORE,
        finish=() if alone else _turn_before("LAST"),  # a block must not end under its copies
        steps=_STEPS,
        trips=16 if alone else _TRIPS,
    )


def _across(size: int) -> Recipe:
    """The two blocks of a cluster send to each other's shared memory, and wait for what comes."""

    def step(turn: int) -> list[str]:
        return [
            f"@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%shared], {size};",
            f"@%first {_ACROSS} [%to], [%ring], {size}, [%bar];",
            *_wait(turn),
        ]

    to = ("xor.b32 %other, %rank, 1;", "mapa.shared::cluster.u32 %bar, %shared, %other;")
    return Recipe(
        Point("tma.latency.bulk.distributed", _ACROSS, "bytes", size, "cycles", 1),
        Launch(2, 32, 2, shared=_ROOM + 2 * size),
        step,
        {"UBLKCP": 1},
        _HELPERS,
        declare=_DECLARE,
        setup=(*_SETUP, *to, f"add.u32 %to, %bar, {_ROOM + size};"),
        finish=MEET,
        start=MEET,
        steps=_STEPS,
    )


def _grouped(name: str, form: str, size: int, alone: bool) -> Recipe:
    """Copies out of shared memory, which a bulk group counts; the wait is for their writes."""
    close = ["cp.async.bulk.commit_group;", f"cp.async.bulk.wait_group {0 if alone else 1};"]

    def step(turn: int) -> list[str]:
        place = _slot(turn, size, alone)
        lines = [
            f"add.u32 %to, %ring, {place};", f"add.u64 %from, %field, {place};",
            f"@%first {form} [%from], [%to], {size};",
        ]  # fmt: skip
        return [*lines, *close] if alone else lines

    return Recipe(
        Point(
            f"tma.{'latency' if alone else 'rate'}.bulk.{name}", form, "bytes", size, "cycles" if alone else "B",
            1 if alone else size, "" if alone else "mean",
        ),
        Launch(_blocks(size, alone), 32, shared=_ROOM + max(_RING, size), field=_field(size, alone)),
        step,
        {"UBLKRED" if "reduce" in form else "UBLKCP": 1},
        _HELPERS,
        declare=_DECLARE,
        setup=_SETUP,
        turned=() if alone else tuple(close),
        finish=("cp.async.bulk.wait_group 0;",),
        steps=_STEPS,
        trips=16 if alone else _TRIPS,
    )  # fmt: skip


def _tensor(rows: int, columns: int, alone: bool) -> Recipe:
    """Boxes of `rows` rows of `columns` 4-byte elements, side by side in rows of 4 KiB."""
    size = rows * columns * 4
    copy = f"{_TENSOR} [%to], [%map, {{%x, %y}}], [%bar];"
    plain = _counted(
        f"tma.{'latency' if alone else 'rate'}.tensor.2d.{columns * 4}B",
        _TENSOR,
        copy,
        size,
        "UTMALDG",
        alone=alone,
    )
    places = min(_COLUMNS // columns, max(1, _RING // size))

    def step(turn: int) -> list[str]:
        return [f"add.u32 %x, %zero, {turn % places * columns};", *plain.step(turn)]

    return replace(
        plain,
        launch=replace(plain.launch, field=rows * _COLUMNS * 4, tensor=(rows, _COLUMNS, rows, columns)),
        step=step,
        setup=(
            *plain.setup,
            "mov.b64 %map, map;",
            "cvta.param.u64 %map, %map;",
            f"mul.lo.u32 %y, %block, {rows};",
        ),
    )


def _cp_async(size: int, cache: str, *, alone: bool) -> Recipe:
    """One copy a thread and step; the wait is for all of the thread's copies.

    A rate's turns go to two regions in turn: loads of one line that are in flight together would be one.
    """
    form = f"cp.async.{cache}.shared.global"
    threads = 32 if alone else 4096 // size
    region = _STEPS[1] * threads * size

    def step(turn: int) -> list[str]:
        place = turn * threads * size
        line = f"{form} [%to+{place}], [%from+{place}], {size};"
        return [line, "cp.async.wait_all;"] if alone else [line]

    return Recipe(
        Point(
            f"async.{'latency' if alone else 'rate'}.cp.async.{cache}", form, "bytes a thread", size,
            "cycles" if alone else "B", 1 if alone else threads * size, "" if alone else "mean",
        ),
        Launch(_blocks(size, alone), threads, shared=region, field=2 * region),
        step,
        {"LDGSTS": 1},
        _HELPERS,
        declare=(*_DECLARE, ".reg .s64 %over;"),
        setup=(
            f"mad.lo.u32 %to, %thread, {size}, %shared;", f"mad.wide.u32 %from, %thread, {size}, %field;",
            f"mov.s64 %over, {region};",
        ),
        turned=() if alone else (
            "cp.async.commit_group;", "cp.async.wait_group 1;", "add.s64 %from, %from, %over;", "neg.s64 %over, %over;",
        ),
        finish=("cp.async.wait_all;",),
        steps=_STEPS,
        trips=_TRIPS,
    )  # fmt: skip
