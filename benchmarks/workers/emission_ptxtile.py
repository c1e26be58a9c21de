"""One round: a new kernel of ten forms on distinct registers, traced, checked and written as a module's text."""

from __future__ import annotations

import sys
from collections.abc import Callable

from worker import serve

import ptxtile as pt
from ptxtile import ptx

COUNT = int(sys.argv[1])
REGISTERS = 1000


def fresh() -> pt.Kernel:
    @pt.kernel(grid=1, block=32)
    def emission():
        f = [pt.reg(pt.float32) for _ in range(REGISTERS)]
        s = [pt.reg(pt.int32) for _ in range(REGISTERS)]
        fma, fadd, fmul, fsub = ptx.fma.rn.f32, ptx.add.rn.f32, ptx.mul.rn.f32, ptx.sub.rn.f32
        add, sub, mul, mad, and_, xor = (
            ptx.add.s32,
            ptx.sub.s32,
            ptx.mul.lo.s32,
            ptx.mad.lo.s32,
            ptx.and_.b32,
            ptx.xor.b32,
        )
        for turn in range(COUNT // 10):
            d, a, b, c = (turn * 7 + offset for offset in range(4))
            fd, fa, fb, fc = f[d % REGISTERS], f[a % REGISTERS], f[b % REGISTERS], f[c % REGISTERS]
            sd, sa, sb, sc = s[d % REGISTERS], s[a % REGISTERS], s[b % REGISTERS], s[c % REGISTERS]
            fma(fd, fa, fb, fc)
            fadd(fa, fb, fc)
            fmul(fb, fc, fd)
            fsub(fc, fd, fa)
            add(sd, sa, sb)
            sub(sa, sb, sc)
            mul(sb, sc, sd)
            mad(sc, sd, sa, sb)
            and_(sd, sb, sc)
            xor(sa, sc, sd)

    return emission


def prepare() -> Callable[[], object]:
    return fresh().ptx


text = fresh().ptx()
serve(
    prepare,
    {
        "ptxtile": pt.__version__,
        "python": sys.version.split()[0],
        "lines": text.count("\n"),
        "path": "hoisted forms",
    },
)
