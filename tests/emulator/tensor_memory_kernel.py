"""A kernel around tcgen05: shared memory and tensor memory are filled from arrays, one thread does the work in question,
and tensor memory comes back. The numbers that the tests expect are NumPy's.
"""

from __future__ import annotations

import numpy as np

from ptxtile.emulator import launch

COLUMNS = 512
SWIZZLES = {0: 0, 128: 2, 64: 4, 32: 6, "pairs": 1}
MASKS = {0: 0, 32: 0x10, 64: 0x30, 128: 0x70}

TEXT = """.version {version}
.target {target}
.address_size 64
.visible .entry k(.param .u64 S, .param .u64 W, .param .u64 O){cluster}
{{
.reg .pred %p<16>; .reg .b16 %h<4>; .reg .b32 %r<64>, %v<{width}>; .reg .b64 %rd<32>;
.shared .align 1024 .b8 s[{size}];
.shared .align 8 .b64 bar;
.shared .align 4 .b32 slot;
ld.param.u64 %rd1, [S]; ld.param.u64 %rd2, [W]; ld.param.u64 %rd3, [O];
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; shr.u32 %r3, %r1, 5;
setp.eq.u32 %p1, %r3, 0; setp.eq.u32 %p2, %r1, 0; setp.ne.u32 %p3, %r2, 0;
@!%p1 bra ALLOCATED;
tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [slot], {columns};
ALLOCATED:
@%p2 mbarrier.init.shared.b64 [bar], 1;
@%p2 fence.mbarrier_init.release.cluster;
mad.lo.u32 %r5, %r2, {size}, 0; cvt.u64.u32 %rd4, %r5; add.u64 %rd1, %rd1, %rd4; mov.u32 %r6, s;
shl.b32 %r7, %r1, 4; cvt.u64.u32 %rd4, %r7; add.u64 %rd1, %rd1, %rd4; add.u32 %r6, %r6, %r7; mov.u32 %r8, %r7;
FILL: ld.global.v4.b32 {{%r9, %r10, %r11, %r12}}, [%rd1]; st.shared.v4.b32 [%r6], {{%r9, %r10, %r11, %r12}};
add.u64 %rd1, %rd1, 2048; add.u32 %r6, %r6, 2048; add.u32 %r8, %r8, 2048; setp.lt.u32 %p4, %r8, {size}; @%p4 bra FILL;
fence.proxy.async;
{barrier}
ld.shared.u32 %r50, [slot];
shl.b32 %r13, %r3, 21; add.u32 %r51, %r50, %r13;
mad.lo.u32 %r14, %r2, 128, %r1; mul.wide.u32 %rd5, %r14, {bytes};
add.u64 %rd2, %rd2, %rd5; add.u64 %rd3, %rd3, %rd5;
{fill}
tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync;
{barrier}
tcgen05.fence::after_thread_sync;
mov.u32 %r52, s; shr.u32 %r52, %r52, 4; cvt.u64.u32 %rd10, %r52;
setp.eq.u32 %p5, %r50, %r50; setp.ne.u32 %p6, %r50, %r50;
{everyone}
@!%p2 bra WORKED;
{skip}
{work}
tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster{multicast}.b64 [bar]{mask};
WORKED:
mbarrier.try_wait.parity.shared.b64 %p7, [bar], 0; @!%p7 bra WORKED;
tcgen05.fence::after_thread_sync;
{read}
{barrier}
@!%p1 bra FREED;
tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %r50, {columns};
FREED:
{barrier}
ret;
}}
"""


def vector(count, first=0):
    return "{" + ", ".join(f"%v{first + i}" for i in range(count)) + "}"


def _moves(count, chunk=64):
    fill, read = [], []
    start = 0
    while start < count:
        size = min(chunk, 1 << (count - start).bit_length() - 1)
        fill += [f"ld.global.b32 %v{i}, [%rd2+{4 * (start + i)}];" for i in range(size)]
        fill += [f"tcgen05.st.sync.aligned.32x32b.x{size}.b32 [%r51+{start}], {vector(size)};"]
        read += [f"tcgen05.ld.sync.aligned.32x32b.x{size}.b32 {vector(size)}, [%r51+{start}];"]
        read += ["tcgen05.wait::ld.sync.aligned;"]
        read += [f"st.global.b32 [%rd3+{4 * (start + i)}], %v{i};" for i in range(size)]
        start += size
    return "\n".join(fill), "\n".join(read)


def text(work, size, count, pair=False, target="sm_100a", version="8.8", everyone=""):
    """The kernel's text: `size` bytes of shared memory, `count` columns that are filled and read.

    work   of one thread     everyone   of all threads, before it
    """
    fill, read = _moves(count)
    return TEXT.format(
        version=version,
        target=target,
        cluster=" .reqnctapercluster 2, 1, 1" if pair else "",
        width=64,
        size=size,
        group=2 if pair else 1,
        columns=max(32, 1 << (count - 1).bit_length()),
        barrier="barrier.cluster.arrive; barrier.cluster.wait;" if pair else "bar.sync 0;",
        bytes=4 * count,
        fill=fill,
        read=read,
        skip="@%p3 bra WORKED;" if pair else "",
        work=work,
        everyone=everyone,
        multicast=".multicast::cluster" if pair else "",
        mask=", %h1" if pair else "",
    ).replace("mov.u32 %r52, s;", "mov.b16 %h1, 3; mov.u32 %r52, s;")


def run(work, shared, words, pair=False, **options):
    """What the first columns of tensor memory hold afterwards.

    shared   uint8 (bytes), or (2, bytes) for a pair     words   uint32 (128, columns), or (2, 128, columns)
    """
    out = np.zeros_like(words)
    chosen = {name: options.pop(name) for name in ("target", "version", "everyone") if name in options}
    change = options.pop("change", lambda made: made)
    kernel = change(text(work, shared.shape[-1], words.shape[-1], pair, **chosen))
    args = [shared, np.ascontiguousarray(words), out]
    launch(kernel, "k", 2 if pair else 1, 128, args, cluster=2 if pair else 1, **options)
    return out


def place(lines, swizzle, size):
    """Lines of bytes, (lines, bytes), in shared memory in blocks of eight; and the offsets of the descriptor.

    Blocks follow each other down first. Returns the bytes, and the distances to the next block along, and down.
    """
    span = swizzle or 16
    blocks = -(-len(lines) // 8)
    raw = np.zeros(size, np.uint8)
    for line, chunk in np.ndindex(len(lines), lines.shape[1] // 16):
        column = chunk * 16 // span
        start = (column * blocks + line // 8) * 8 * span + line % 8 * span + chunk * 16 % span
        start ^= start >> 3 & MASKS[swizzle]
        raw[start : start + 16] = lines[line, chunk * 16 : chunk * 16 + 16]
    return raw, blocks * 8 * span, 8 * span


def descriptor(leading, stride, swizzle, offset=0):
    """The 64 bits but for the base address, which the kernel adds."""
    return offset >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | SWIZZLES[swizzle] << 61


def instruction(m, n, a=0, b=0, d=1, **more):
    """The 32 bits of the instruction descriptor."""
    found = d << 4 | a << 7 | b << 10 | n >> 3 << 17 | m >> 4 << 24
    places = {
        "sparse": 2,
        "saturate": 3,
        "neg_a": 13,
        "neg_b": 14,
        "trans_a": 15,
        "trans_b": 16,
        "selector": 0,
        "ue8m0": 23,
    }
    places |= {"sfa": 29, "sfb": 4}
    for name, value in more.items():
        found |= value << places[name]
    return found
