"""Barriers, fences, and messages through mbarriers: cycles of one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from ptxtile.measure.plan import Launch, Point
from ptxtile.measure.scenarios.recipe import MEET, Recipe

__all__ = ["recipes"]

_THREADS = (32, 64, 128, 256, 512, 1024)
_CLUSTERS = (2, 4, 8, 16)
_HELPERS = frozenset(
    "IMAD IADD3 VIADD LOP3 MOV UMOV UIADD3 R2UR ISETP BRA BSSY BSYNC SHF SEL CS2R NOP PRMT NANOSLEEP YIELD WARPSYNC "
    "CCTL ERRBAR MEMBAR UCGABAR_ARV S2R S2UR ULEA USHF ULOP3 CALL RET PLOP3 P2R R2P B2R LDS CGAERRBAR FENCE".split()
)
_FENCES = (
    ("membar.cta", "MEMBAR.SC.CTA"), ("membar.gl", "MEMBAR.SC.GPU"), ("membar.sys", "MEMBAR.SC.SYS"),
    ("fence.acq_rel.cta", "MEMBAR.ALL.CTA"), ("fence.acq_rel.cluster", "MEMBAR.ALL.GPU"),
    ("fence.acq_rel.gpu", "MEMBAR.ALL.GPU"), ("fence.acq_rel.sys", "MEMBAR.ALL.SYS"),
    ("fence.sc.cta", "MEMBAR.SC.CTA"), ("fence.sc.gpu", "MEMBAR.SC.GPU"), ("fence.sc.sys", "MEMBAR.SC.SYS"),
    ("fence.proxy.async", "FENCE.VIEW.ASYNC"), ("fence.mbarrier_init.release.cluster", "NOP"),
)  # fmt: skip


def recipes() -> Iterator[Recipe]:
    """All points of these scenarios."""
    for threads in _THREADS:
        yield _block("bar.sync", "bar.sync 0;", "BAR.SYNC", threads)
        yield _block("bar.red.or.pred", "bar.red.or.pred %p, 0, %p;", "BAR.RED", threads)
        yield _mbarrier(threads)
    for threads in (32, 1024):
        yield _block("bar.warp.sync", "bar.warp.sync %mask;", "NOP", threads)
    for cluster in _CLUSTERS:
        yield _cluster("barrier.cluster", MEET, cluster)
        yield _cluster(
            "barrier.cluster.relaxed", ("barrier.cluster.arrive.relaxed.aligned;", MEET[1]), cluster
        )
    for cluster in (2, 4, 8):
        yield _message("barriers.mbarrier.remote", "release", "acquire", cluster)
        yield _message("barriers.mbarrier.remote.relaxed", "relaxed", "relaxed", cluster)
    for form, sass in _FENCES:
        for stores in (0, 1):
            yield _fence(form, sass, stores)


def _block(form: str, line: str, sass: str, threads: int) -> Recipe:
    return Recipe(
        Point(f"barriers.{form}", form, "threads", threads, "cycles", 1),
        Launch(1, threads),
        lambda turn: [line],
        {sass: 1},
        _HELPERS,
        declare=(".reg .pred %p;", ".reg .b32 %mask;"),
        setup=("setp.ne.u32 %p, %zero, 0;", "sub.u32 %mask, %zero, 1;"),
        finish=("selp.u32 %acc, 1, 0, %p;", "@%never st.global.u32 [%out], %acc;"),
    )


def _cluster(name: str, lines: tuple[str, ...], blocks: int) -> Recipe:
    return Recipe(
        Point(f"barriers.{name}", lines[0].rstrip(";"), "blocks of the cluster", blocks, "cycles", 1),
        Launch(blocks, 128, blocks),
        lambda turn: list(lines),
        {"UCGABAR_ARV": 1, "UCGABAR_WAIT": 1},
        _HELPERS,
        start=MEET,
    )


def _mbarrier(threads: int) -> Recipe:
    """Every thread arrives and waits for the phase that its arrival ends."""
    form = "mbarrier.arrive.shared::cta.b64"
    return Recipe(
        Point("barriers.mbarrier", form, "threads", threads, "cycles", 1),
        Launch(1, threads, shared=64),
        lambda turn: [
            f"{form} %state, [%shared];",
            f"WAIT{turn}:",
            "mbarrier.try_wait.shared::cta.b64 %done, [%shared], %state;",
            f"@!%done bra WAIT{turn};",
        ],
        {"SYNCS.ARRIVE": 1, "SYNCS.PHASECHK": 1},
        _HELPERS,
        declare=(".reg .b64 %state;", ".reg .pred %first, %done;"),
        setup=(
            "setp.eq.u32 %first, %thread, 0;",
            f"@%first mbarrier.init.shared::cta.b64 [%shared], {threads};",
        ),
    )


def _message(name: str, arrival: str, wait: str, blocks: int) -> Recipe:
    """Pairs of blocks: one arrives at the other's mbarrier, which answers: two messages a step."""
    form = f"mbarrier.arrive.{arrival}.cluster.shared::cluster.b64"
    return Recipe(
        Point(name, form, "blocks of the cluster", blocks, "cycles", 2),
        Launch(blocks, 32, blocks, shared=64),
        lambda turn: [
            f"@%leads {form} _, [%remote];",
            f"WAIT{turn}:",
            f"mbarrier.try_wait.parity.{wait}.cluster.shared::cta.b64 %done, [%shared], %phase;",
            f"@!%done bra WAIT{turn};",
            "xor.b32 %phase, %phase, 1;",
            f"@%answers {form} _, [%remote];",
        ],
        {"SYNCS.ARRIVE": 2, "SYNCS.PHASECHK": 1},
        _HELPERS,
        declare=(".reg .u32 %remote, %phase, %other;", ".reg .pred %first, %leads, %answers, %done;"),
        setup=(
            "setp.eq.u32 %first, %thread, 0;",
            "@%first mbarrier.init.shared::cta.b64 [%shared], 1;",
            "fence.mbarrier_init.release.cluster;",
            "xor.b32 %other, %rank, 1;",
            "mapa.shared::cluster.u32 %remote, %shared, %other;",
            "and.b32 %other, %rank, 1;",
            "setp.eq.and.u32 %leads, %other, 0, %first;",
            "setp.ne.and.u32 %answers, %other, 0, %first;",
            "mov.u32 %phase, 0;",
        ),
        finish=MEET,
        start=MEET,
    )


def _fence(form: str, sass: str, stores: int) -> Recipe:
    return Recipe(
        Point(f"barriers.{form}", form, "stores before it", stores, "cycles", 1),
        Launch(16, 32, field=24 * 128),
        lambda turn: [f"st.global.u32 [%cell+{128 * (turn % 24)}], %thread;"] * stores + [f"{form};"],
        {sass: 1, **({"STG.E": 1} if stores else {})},
        _HELPERS,
        declare=(".reg .u64 %cell;",),
        setup=("mad.wide.u32 %cell, %thread, 4, %field;",),
    )
