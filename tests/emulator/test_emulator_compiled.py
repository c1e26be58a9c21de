"""What compilers write: tables of functions, polls in functions, undefined bytes on the stack, mbarriers taken away."""

from __future__ import annotations

import numpy as np

TABLE = """
.func (.param .b32 r) plus(.param .b32 a) { .reg .b32 %x; ld.param.b32 %x, [a]; add.s32 %x, %x, 1; st.param.b32 [r], %x; ret; }
.func (.param .b32 r) twice(.param .b32 a) { .reg .b32 %x; ld.param.b32 %x, [a]; shl.b32 %x, %x, 1; st.param.b32 [r], %x; ret; }
.global .align 8 .u64 table[2] = {plus, twice};
"""
CALL = """
.param .b32 a0; .param .b32 r0;
ld.param.u64 %rd1, [A]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; mul.wide.u32 %rd2, %r2, 8;
mov.u64 %rd3, table; add.u64 %rd3, %rd3, %rd2; ld.global.u64 %rd4, [%rd3];
st.param.b32 [a0], %r1;
p: .callprototype (.param .b32 _) _ (.param .b32 _);
call (r0), %rd4, (a0), p;
ld.param.b32 %r3, [r0];
mul.wide.u32 %rd5, %r1, 4; add.u64 %rd1, %rd1, %rd5; st.global.u32 [%rd1], %r3;
"""


def test_functions_that_only_a_table_names(run):
    out = np.zeros(8, np.uint32)
    run(CALL, [out], block=8, module=TABLE)
    assert out.tolist() == [1, 2, 3, 6, 5, 10, 7, 14]


LOCK = """
.func (.param .b32 r) take(.param .b64 a)
{ .reg .b32 %x; .reg .b64 %y; ld.param.b64 %y, [a]; bra.uni NEXT;
NEXT: atom.acquire.gpu.global.cas.b32 %x, [%y], 0, 1; st.param.b32 [r], %x; ret; }
"""
TAKE = """
.param .b64 a0; .param .b32 r0;
ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B];
AGAIN: st.param.b64 [a0], %rd1; call (r0), take, (a0); ld.param.b32 %r1, [r0];
setp.ne.u32 %p1, %r1, 0; @%p1 bra AGAIN;
ld.global.u32 %r2, [%rd2]; add.u32 %r2, %r2, 1; st.global.u32 [%rd2], %r2;
st.release.gpu.global.u32 [%rd1], 0;
"""


def test_a_lock_that_is_taken_in_a_function(run):
    """Who waits for it looks in the function, and must not keep its holder from running."""
    lock, count = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    run(TAKE, [lock, count], grid=6, block=1, module=LOCK)
    assert (lock[0], count[0]) == (0, 6)


def test_undefined_bytes_may_lie_on_the_stack(run, fail):
    body = """
    .local .align 4 .b8 stack[8];
    ld.param.u64 %rd1, [A];
    mov.u64 %rd2, stack; cvta.local.u64 %rd2, %rd2;
    st.u8 [%rd2], %h1;
    st.local.u32 [stack+4], 7;
    ld.u32 %r1, [%rd2+4];
    LOAD
    st.global.u32 [%rd1], %r1;
    """
    out = np.zeros(1, np.uint32)
    run(body.replace("LOAD", ""), [out], block=1)
    assert out[0] == 7
    error = fail(body.replace("LOAD", "ld.u8 %r1, [%rd2];"), [out], block=1)
    assert error.kind == "uninitialised"


def test_who_leaves_last_takes_the_mbarrier_away(run):
    """As cuda::pipeline ends: a warp's leader counts for all of its lanes, which have arrived before."""
    body = """
    .shared .align 8 .b64 bar; .shared .align 4 .b32 count;
    mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared.b64 [bar], 64;
    @%p1 st.shared.u32 [count], 0;
    bar.sync 0;
    mbarrier.arrive.shared.b64 %rd1, [bar];
    and.b32 %r2, %r1, 31; setp.ne.u32 %p2, %r2, 0;
    activemask.b32 %r3; match.any.sync.b32 %r4, %r3, %r3;
    @%p2 bra DONE;
    fence.sc.cta;
    atom.acquire.cta.shared.add.u32 %r5, [count], 32;
    setp.ne.u32 %p3, %r5, 32;
    @%p3 bra DONE;
    mbarrier.inval.shared.b64 [bar];
    DONE:
    """
    run(body, [], block=64)


def test_reserved_shared_memory_ends_where_that_of_the_program_begins(run):
    out = np.zeros(3, np.uint32)
    body = """
    .shared .align 4 .b32 s;
    ld.param.u64 %rd1, [A];
    mov.u32 %r1, %reserved_smem_offset_begin; st.global.u32 [%rd1], %r1;
    mov.u32 %r1, %reserved_smem_offset_end; st.global.u32 [%rd1+4], %r1;
    mov.u32 %r1, s; st.global.u32 [%rd1+8], %r1;
    """
    run(body, [out], block=1)
    assert out.tolist() == [0, 1024, 1024]


def test_wmma_of_tf32_adds_four_products_at_a_time(run):
    """As an H200 does: 2**26 + 4 is cut to f32 before the other four products come."""
    a, b, c = np.zeros((16, 8), np.float32), np.zeros((16, 8), np.float32), np.zeros((16, 16), np.float32)
    a[:, [0, 1, 4]] = (2.0**13, 4.0, -(2.0**13))
    b[:, [0, 1, 4]] = (2.0**13, 1.0, 2.0**13)
    body = """
    ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B]; ld.param.u64 %rd3, [C];
    wmma.load.a.sync.aligned.row.m16n16k8.global.tf32 {%r1, %r2, %r3, %r4}, [%rd1], 8;
    wmma.load.b.sync.aligned.col.m16n16k8.global.tf32 {%r5, %r6, %r7, %r8}, [%rd2], 8;
    wmma.load.c.sync.aligned.row.m16n16k8.global.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, [%rd3], 16;
    wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7},
      {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7};
    wmma.store.d.sync.aligned.row.m16n16k8.global.f32 [%rd3], {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, 16;
    """
    run(body, [a, b, c])
    assert not c.any()
    a[:, 4] = 0
    run(body, [a, b, c])
    assert (c == 2.0**26).all()
