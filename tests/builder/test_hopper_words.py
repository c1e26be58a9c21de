"""Words for sm_90: the exact text of each, its messages, and what they do on both machines."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from tile.running import assembles, failure, machines, message, module

import ptxtile as pt
from ptxtile import driver, ptx

PARAMS = {"A": pt.TensorMap((64, 64), pt.float16, box=(8, 64)), "x": pt.uint32, "p": pt.Pointer(pt.float32)}


def written(body: Callable[..., object], block: object = 128, **options: object) -> list[str]:
    """The instructions of a body from its first mbarrier, barrier or other word on: registers by their class alone."""
    text = str(module(body, block, params=PARAMS, **options))
    body_ = text[text.index("{") :].splitlines()[1:-1]
    kept = []
    for line in body_:
        word = line.strip().removesuffix(";")
        if word and not word.startswith((".reg", ".shared", "ld.param", "cvta", "mov.u64", "ret")):
            kept.append(re.sub(r"%(rd|rs|r|p|f|fd)\d+", r"%\1", word.replace("k$shared_", "shared")))
    return kept


def test_mbarrier_init_and_fence():
    def body(k):
        bar = pt.mbarrier(3, stages=2)
        bar.init()
        pt.fence_mbarrier_init()

    assert written(body) == [
        "mbarrier.init.shared::cta.b64 [shared0], 3",
        "mbarrier.init.shared::cta.b64 [shared0+8], 3",
        "fence.mbarrier_init.release.cluster",
    ]


def test_arrivals():
    def body(k):
        bar = pt.mbarrier(1)[0]
        bar.arrive()
        bar.arrive(2)
        bar.arrive(scope="cluster")
        bar.expect_tx(64)
        bar.arrive_expect_tx(k.x)

    assert written(body) == [
        "mbarrier.arrive.shared::cta.b64 _, [shared0]",
        "mbarrier.arrive.shared::cta.b64 _, [shared0], 2",
        "mbarrier.arrive.release.cluster.shared::cta.b64 _, [shared0]",
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [shared0], 64",
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [shared0], %r",
    ]


def test_arrival_at_another_cta():
    def body(k):
        pt.mbarrier(1)[0].arrive(cta=1)

    assert written(body, cluster=(2, 1, 1), grid=2) == [
        "mov.u32 %r, shared0",
        "mapa.shared::cluster.u32 %r, %r, 1",
        "mbarrier.arrive.shared::cluster.b64 _, [%r]",
    ]


@pytest.mark.parametrize(
    ("scope", "order"), [(None, ""), ("cta", ".acquire.cta"), ("cluster", ".acquire.cluster")]
)
def test_waiting(scope, order):
    def body(k):
        pt.mbarrier(1)[0].wait(1, scope=scope)

    found = written(body)
    label = found[0].removesuffix(":")
    assert found == [
        f"{label}:",
        f"mbarrier.try_wait.parity{order}.shared::cta.b64 %p, [shared0], 1",
        f"@!%p bra {label}",
    ]


def test_testing():
    assert written(lambda k: pt.mbarrier(1)[0].test(k.x)) == [
        "mbarrier.test_wait.parity.shared::cta.b64 %p, [shared0], %r"
    ]


def test_ring():
    def body(k):
        at = pt.ring(3, phase=1)
        at.advance()

    assert written(body) == [
        "mov.b32 %r, 0",
        "mov.b32 %r, 1",
        "add.u32 %r, %r, 1",
        "setp.eq.u32 %p, %r, 3",
        "@%p xor.b32 %r, %r, 1",
        "@%p mov.u32 %r, 0",
    ]


def test_named_barriers_and_elections():
    def body(k):
        both = pt.named_barrier(2, 64)
        both.sync()
        both.arrive()
        pt.named_barrier(k.x, 128).sync()
        pt.elect()

    assert written(body) == [
        "bar.sync 2, 64",
        "bar.arrive 2, 64",
        "bar.sync %r, 128",
        "elect.sync _|%p, 4294967295",
    ]


def test_clusters():
    def body(k):
        pt.cluster_arrive()
        pt.cluster_arrive(relaxed=True)
        pt.cluster_wait()
        pt.cluster_sync()
        pt.mapa(pt.alloc_shared((4,), pt.float32), 1)

    assert written(body, cluster=(2, 1, 1), grid=2) == [
        "barrier.cluster.arrive.release",
        "barrier.cluster.arrive.relaxed",
        "barrier.cluster.wait.acquire",
        "barrier.cluster.arrive.release",
        "barrier.cluster.wait.acquire",
        "mov.u32 %r, shared0",
        "mapa.shared::cluster.u32 %r, %r, 1",
    ]


def test_fences_and_dependent_grids():
    def body(k):
        pt.wait_on_dependencies()
        pt.launch_dependents()
        for space in ("shared", "cluster", "global", None):
            pt.fence_async(space)

    assert written(body) == [
        "griddepcontrol.wait",
        "griddepcontrol.launch_dependents",
        "fence.proxy.async.shared::cta",
        "fence.proxy.async.shared::cluster",
        "fence.proxy.async.global",
        "fence.proxy.async",
    ]


def test_roles():
    def body(k):
        pt.directive("minnctapersm", 1)
        with pt.warpgroup_role(0, decrease_to=24):
            pt.launch_dependents()
        with pt.else_():
            ptx.setmaxnreg.inc.sync.aligned.u32(240)

    found = written(body, block=256)
    words = [word for word in found if not word.startswith("$")]
    tail = words[words.index("setmaxnreg.dec.sync.aligned.u32 24") - 2 :]
    assert tail[0] == "setp.lt.u32 %p, %r, 4" and re.fullmatch(r"@!%p bra \$\S+", tail[1])
    assert tail[2:4] == ["setmaxnreg.dec.sync.aligned.u32 24", "griddepcontrol.launch_dependents"]
    assert tail[-1] == "setmaxnreg.inc.sync.aligned.u32 240"
    assert ".minnctapersm 1" in str(module(body, 256, params=PARAMS))


def test_all_words_assemble():
    @pt.kernel(grid=2, block=256, cluster=(2, 1, 1))
    def words(x: pt.uint32):
        pt.directive("minnctapersm", 1)
        bar = pt.mbarrier(2, stages=3)
        with pt.if_(pt.thread_rank() == 0):
            bar.init()
            pt.fence_mbarrier_init()
        pt.cluster_sync()
        pt.wait_on_dependencies()
        with pt.warpgroup_role(1, increase_to=240):
            use = pt.ring(3)
            bar[use.stage].arrive(cta=1, scope="cluster", pred=pt.elect())
            bar[use.stage].wait(use.phase, scope="cluster")
            pt.named_barrier(1, 128).sync()
        pt.launch_dependents()

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert words.cubin("sm_90a")[:4] == b"\x7fELF"
    codes = [str(each.message) for each in told if each.category is pt.AssemblerWarning]
    assert len(codes) == len(told) and all("C7504" in each for each in codes)
    # 13.5 says that it leaves setmaxnreg out; 13.0 does so without a word.
    assert codes or driver.find_assembler().version < (13, 5)


@machines
def test_a_ring_hands_stages_from_warp_to_warp(device):
    """Warp 0 fills three stages nine times, warp 1 empties them: full and empty barriers, phases that flip."""

    @pt.kernel(grid=1, block=64)
    def relay(Out: pt.Tensor((9, 32), pt.uint32)):
        box = pt.alloc_shared((3, 32), pt.uint32)
        full, empty = pt.mbarrier(32, stages=3), pt.mbarrier(32, stages=3)
        with pt.if_(pt.thread_rank() == 0):
            full.init()
            empty.init()
        pt.cta_sync()
        lane = pt.lane_id()
        with pt.if_(pt.warp_id() == 0):
            fill = pt.ring(3, phase=1)
            with pt.for_range(pt.uint32(0), 9) as i:
                empty[fill.stage].wait(fill.phase)
                box[fill.stage, lane] = i * 100 + lane
                full[fill.stage].arrive()
                fill.advance()
        with pt.else_():
            use = pt.ring(3)
            with pt.for_range(pt.uint32(0), 9) as i:
                full[use.stage].wait(use.phase)
                Out[i, lane] = box[use.stage, lane]
                empty[use.stage].arrive()
                use.advance()

    out = np.zeros((9, 32), np.uint32)
    relay.launch(out, device=device)
    np.testing.assert_array_equal(out, np.arange(9)[:, None] * 100 + np.arange(32))


@machines
def test_mapa_reaches_the_other_cta(device):
    @pt.kernel(grid=2, block=32, cluster=(2, 1, 1))
    def swap(Out: pt.Tensor((2, 32), pt.uint32)):
        mine = pt.alloc_shared((32,), pt.uint32)
        rank, lane = pt.cluster_rank(), pt.lane_id()
        mine[lane] = rank * 100 + lane
        pt.cluster_sync()
        there = pt.mapa(mine, rank ^ 1)
        Out[rank, lane] = ptx.ld.shared__cluster.u32(there + lane * 4)
        pt.cluster_sync()

    out = np.zeros((2, 32), np.uint32)
    swap.launch(out, device=device)
    np.testing.assert_array_equal(out, [100 + np.arange(32), np.arange(32)])


def test_a_barrier_has_a_generic_address_too():
    """For forms without a state space, and as a value."""

    def body(k):
        bar = pt.mbarrier(1, stages=2)
        ptx["cp.async.mbarrier.arrive.noinc.b64"](bar[1])
        ptx["cp.async.mbarrier.arrive.noinc.b64"](bar[k.x])
        pt.address(bar[1])

    assert written(body) == [
        "mov.u32 %r, shared0",
        "cvt.u64.u32 %rd, %r",
        "cp.async.mbarrier.arrive.noinc.b64 [%rd+8]",
        "mad.lo.u32 %r, %r, 8, %r",
        "cvt.u64.u32 %rd, %r",
        "cp.async.mbarrier.arrive.noinc.b64 [%rd]",
        "add.s64 %rd, %rd, 8",
    ]


@machines
def test_an_arrival_through_a_generic_address(device):
    @pt.kernel(grid=1, block=32)
    def arrive(Out: pt.Tensor((1,), pt.uint32)):
        bar = pt.mbarrier(32, 2)
        with pt.if_(pt.thread_rank() == 0):
            ptx["mbarrier.init.b64"](bar[1], 32)
        pt.cta_sync()
        ptx["mbarrier.arrive.b64"](pt.reg(pt.uint64), bar[1])
        with pt.while_(lambda: ~bar[1].test(0)):
            pass
        with pt.if_(pt.thread_rank() == 0):
            Out[0] = 7

    out = np.zeros(1, np.uint32)
    arrive.launch(out, device=device)
    assert out[0] == 7


# --- messages -------------------------------------------------------------------------------------------------------
MESSAGES = [
    (lambda k: pt.mbarrier(0), "pt.mbarrier: count is an integer from 1 to 1048575, not 0"),
    (lambda k: pt.mbarrier(1 << 20), "pt.mbarrier: count is an integer from 1 to 1048575, not 1048576"),
    (lambda k: pt.mbarrier(1, 0), "pt.mbarrier: stages is an integer from 1 to 65536, not 0"),
    (lambda k: pt.mbarrier(1)[1], "this pt.mbarrier has 1 stages; there is no 1"),
    (lambda k: pt.mbarrier(1)[0].arrive(0), "mbarrier.arrive: count is an integer from 1 to 1048575, not 0"),
    (
        lambda k: pt.mbarrier(1)[0].arrive(scope="gpu"),
        'mbarrier.arrive: scope= is "cta" or "cluster", not \'gpu\'',
    ),
    (
        lambda k: pt.mbarrier(1)[0].expect_tx(1 << 20),
        "mbarrier.expect_tx: a phase counts up to 1048575 bytes, not 1048576",
    ),
    (
        lambda k: pt.mbarrier(1, 4)[0:2],
        "a stage of a pt.mbarrier is an integer or a run-time integer, not slice(0, 2, None)",
    ),
    (
        lambda k: pt.mbarrier(1, 4)[1.0],
        "a stage of a pt.mbarrier is an integer or a run-time integer, not 1.0",
    ),
    (lambda k: pt.mbarrier(1)[0].wait(2), "mbarrier.wait: phase is a parity, 0 or 1, not 2"),
    (lambda k: pt.mbarrier(1)[0].wait(True), "mbarrier.wait: phase is a parity, 0 or 1, not True"),
    (lambda k: pt.mbarrier(1)[0].test(pt.uint32(3)), "mbarrier.test: phase is a parity, 0 or 1, not 3"),
    (lambda k: pt.directive("maxnreg", 0), "pt.directive: .maxnreg takes integers from 1, not 0"),
    (lambda k: pt.directive("maxnreg", "64"), "pt.directive: .maxnreg takes integers from 1, not '64'"),
    (
        lambda k: pt.directive("pragma", 'a"b'),
        "pt.directive: .pragma takes printable text without \", not 'a\"b'",
    ),
    (lambda k: pt.ring(0), "pt.ring: stages is a positive integer, not 0"),
    (lambda k: pt.ring(2, phase=2), "pt.ring: phase is 0 or 1, not 2"),
    (lambda k: pt.named_barrier(16, 32), "pt.named_barrier: number is 0 to 15, not 16"),
    (lambda k: pt.named_barrier(1, 48), "pt.named_barrier: threads is a multiple of 32 up to 1024, not 48"),
    (lambda k: pt.elect(0), "pt.elect: mask names lanes of a warp, 1 to 0xffffffff, not 0"),
    (
        lambda k: pt.warpgroup_role(0, increase_to=20),
        "pt.warpgroup_role: a thread has 24 to 256 registers, a multiple of 8, not 20",
    ),
    (
        lambda k: pt.warpgroup_role(0, increase_to=32, decrease_to=24),
        "pt.warpgroup_role: give decrease_to= or increase_to=, not both",
    ),
    (
        lambda k: pt.warpgroup_role(1),
        "pt.warpgroup_role: the block has 128 threads, and warpgroups 1 to 1 end at 256",
    ),
    (lambda k: pt.warpgroup_role(-1), "pt.warpgroup_role: first is an integer of at least 0, not -1"),
    (
        lambda k: pt.directive("reqntid", 1),
        "pt.directive: 'reqntid' is none of maxnreg, minnctapersm, maxntid, pragma; the shape of blocks and clusters is said by @pt.kernel",
    ),
    (lambda k: pt.directive("maxnreg"), "pt.directive: .maxnreg takes 1 values, not 0"),
    (
        lambda k: pt.fence_async("local"),
        'pt.fence_async takes "shared", "cluster", "global" or None, not \'local\'',
    ),
    (
        lambda k: pt.mapa(pt.alloc_local((4,), pt.float32), 1),
        "pt.mapa: pt.Tensor((4,), pt.float32, TileLayout(S[4])) is not in shared memory",
    ),
]


@pytest.mark.parametrize(("body", "text"), MESSAGES, ids=[text[:40] for _, text in MESSAGES])
def test_messages(body, text):
    assert message(failure(body, 128, params=PARAMS)) == text


def test_counts_are_refused_by_the_hardware_and_other_things_by_their_type():
    for arguments, kind in (((0,), pt.TileError), ((1, 0), pt.TileError), ((1.0,), pt.OperandError)):
        assert type(failure(lambda k, given=arguments: pt.mbarrier(*given), 128, params=PARAMS)) is kind


def test_a_cta_outside_the_cluster():
    def body(k):
        pt.mapa(pt.alloc_shared((4,), pt.float32), 2)

    error = failure(body, 128, params=PARAMS, cluster=(2, 1, 1))
    assert message(error) == "mapa: the cluster has CTAs 0 to 1, and this is CTA 2"


def test_outside_a_trace():
    with pytest.raises(pt.TraceError):
        pt.mbarrier(1)


def test_words_of_a_cluster_assemble_for_every_generation():
    @pt.kernel(grid=2, block=128, cluster=(2, 1, 1))
    def words():
        pt.cluster_sync()
        pt.mbarrier(1)[0].arrive(cta=0, pred=pt.elect())

    assembles(words, ("sm_90a", "sm_100a", "sm_120a"))
