"""One round with pyptx: the same ten forms on the same registers.

`argv[2]` picks its path: "chain" (ptx.inst, looked up at every use) or "hoisted" (ptx.inst, looked up once).
"""

import sys
from importlib.metadata import version

from pyptx import kernel, ptx, reg
from pyptx.types import f32, s32
from worker import serve

COUNT, PATH = int(sys.argv[1]), sys.argv[2]
REGISTERS = 1000


def hoisted():
    f = list(reg.array(f32, REGISTERS))
    s = list(reg.array(s32, REGISTERS))
    i = ptx.inst
    fma, fadd, fmul, fsub = i.fma.rn.f32, i.add.rn.f32, i.mul.rn.f32, i.sub.rn.f32
    add, sub, mul, mad, and_, xor = (
        i.add.s32,
        i.sub.s32,
        i.mul.lo.s32,
        i.mad.lo.s32,
        getattr(i, "and").b32,
        i.xor.b32,
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
    ptx.ret()


def chain():
    f = list(reg.array(f32, REGISTERS))
    s = list(reg.array(s32, REGISTERS))
    for turn in range(COUNT // 10):
        d, a, b, c = (turn * 7 + offset for offset in range(4))
        fd, fa, fb, fc = f[d % REGISTERS], f[a % REGISTERS], f[b % REGISTERS], f[c % REGISTERS]
        sd, sa, sb, sc = s[d % REGISTERS], s[a % REGISTERS], s[b % REGISTERS], s[c % REGISTERS]
        ptx.inst.fma.rn.f32(fd, fa, fb, fc)
        ptx.inst.add.rn.f32(fa, fb, fc)
        ptx.inst.mul.rn.f32(fb, fc, fd)
        ptx.inst.sub.rn.f32(fc, fd, fa)
        ptx.inst.add.s32(sd, sa, sb)
        ptx.inst.sub.s32(sa, sb, sc)
        ptx.inst.mul.lo.s32(sb, sc, sd)
        ptx.inst.mad.lo.s32(sc, sd, sa, sb)
        getattr(ptx.inst, "and").b32(sd, sb, sc)
        ptx.inst.xor.b32(sa, sc, sd)
    ptx.ret()


def prepare():
    return kernel(arch="sm_90a")({"chain": chain, "hoisted": hoisted}[PATH]).ptx


text = prepare()()
serve(
    prepare,
    {"pyptx": version("pyptx"), "python": sys.version.split()[0], "lines": text.count("\n"), "path": PATH},
)
