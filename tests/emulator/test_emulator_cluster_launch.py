"""clusterlaunchcontrol: CTAs that take over the work of others, each piece of work done once."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtile.emulator import EmulatorError, launch

TEXT = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 WORK, .param .u64 MINE)
{
.shared .align 16 .b8 answer[16];
.shared .align 8 .b64 bar;
.reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .b128 %q<2>;
ld.param.u64 %rd1, [WORK];
ld.param.u64 %rd2, [MINE];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ctaid.y;
mov.u32 %r9, %nctaid.x;
mad.lo.u32 %r8, %r2, %r9, %r1;
mbarrier.init.shared::cta.b64 [bar], 1;
fence.mbarrier_init.release.cluster;
mov.u32 %r3, 0;
next:
mbarrier.arrive.expect_tx.shared::cta.b64 %rd3, [bar], 16;
clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [answer], [bar];
mad.lo.u32 %r4, %r2, %r9, %r1;
mul.wide.u32 %rd4, %r4, 4;
add.u64 %rd5, %rd1, %rd4;
red.global.add.u32 [%rd5], 1;
add.u64 %rd5, %rd2, %rd4;
st.global.u32 [%rd5], %r8;
wait:
mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], %r3;
@!%p1 bra wait;
xor.b32 %r3, %r3, 1;
ld.shared.b128 %q1, [answer];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q1;
@!%p2 bra done;
clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r1, %r2, %r6, _}, %q1;
clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r7, %q1;
setp.ne.u32 %p3, %r1, %r7;
@%p3 trap;
fence.proxy.async.shared::cta;
bra next;
done:
AFTER
ret;
}
"""


def run(seed=0, after="", grid=(7, 5)):
    work, mine = np.zeros(35, np.uint32), np.zeros(35, np.uint32)
    launch(TEXT.replace("AFTER", after), "k", grid, 1, [work, mine], seed=seed)
    return work, mine


def test_every_piece_of_work_is_done_once():
    takers = set()
    for seed in range(6):
        work, mine = run(seed)
        assert work.tolist() == [1] * 35
        takers.add(len(set(mine.tolist())))
    assert len(takers) > 1  # some launches cancel more than others
    assert min(takers) < 35


def test_the_same_seed_cancels_the_same():
    assert (run(3)[1] == run(3)[1]).all()


def test_who_has_heard_no_asks_no_more():
    again = """
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [answer], [bar];
    """
    with pytest.raises(EmulatorError) as caught:
        run(0, again)
    assert (caught.value.kind, caught.value.line) == ("cluster-launch", 42)
    assert str(caught.value).splitlines()[0] == (
        "cluster-launch: the CTA asks again after it has seen that there is nothing left to cancel"
    )


def test_a_no_names_no_cta():
    with pytest.raises(EmulatorError) as caught:
        run(0, "clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r7, %q1;")
    assert caught.value.kind == "cluster-launch"
    assert str(caught.value).splitlines()[0] == (
        "cluster-launch: the CTA of an answer that nothing was cancelled is asked for"
    )


MULTICAST = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 WORK)
.reqnctapercluster 2
{
.shared .align 16 .b8 answer[16];
.shared .align 8 .b64 bar;
.reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<12>; .reg .b128 %q<2>;
ld.param.u64 %rd1, [WORK];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %cluster_ctaid.x;
mov.u64 %rd6, answer;
cvta.shared.u64 %rd6, %rd6;
mov.u64 %rd7, bar;
cvta.shared.u64 %rd7, %rd7;
mbarrier.init.shared::cta.b64 [bar], 1;
fence.mbarrier_init.release.cluster;
mov.u32 %r3, 0;
next:
mbarrier.arrive.expect_tx.shared::cta.b64 %rd3, [bar], 16;
barrier.cluster.arrive;
barrier.cluster.wait;
setp.eq.u32 %p1, %r2, 0;
@%p1 clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%rd6], [%rd7];
mul.wide.u32 %rd4, %r1, 4;
add.u64 %rd5, %rd1, %rd4;
red.global.add.u32 [%rd5], 1;
wait:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [bar], %r3;
@!%p1 bra wait;
xor.b32 %r3, %r3, 1;
ld.shared.b128 %q1, [answer];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q1;
@!%p2 bra done;
clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r1, %q1;
add.u32 %r1, %r1, %r2;
fence.proxy.async.shared::cta;
bra next;
done:
barrier.cluster.arrive;
barrier.cluster.wait;
ret;
}
"""


def test_a_cluster_hears_together():
    for seed in range(4):
        work = np.zeros(24, np.uint32)
        launch(MULTICAST, "k", 24, 1, [work], seed=seed)
        assert work.tolist() == [1] * 24
