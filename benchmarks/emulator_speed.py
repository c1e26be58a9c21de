"""How fast the emulator is, in CPU time of one core, and whether its memory grows: python benchmarks/emulator_speed.py.

    straight     f32 add, mul, fma on 2**20 threads: thread-instructions a second (limits 300 M, 300 M, 100 M)
    divergent    one CTA of 128 threads in a loop of branches: warp-instructions a second (limit 20,000)
    activation   SiLU of 2**20 elements (limit 0.3 s)
    gemm         examples/hopper_gemm.py at 256 x 256 x 256 (limit 5 s without the sanitizer)
    memory       the most memory that a loop of 1,000 and of 10,000 laps takes

Each with the sanitizer and without; it may cost five times as much. The best of several rounds is kept: load makes
times longer, never shorter.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import machine

import ptxtile as pt
from ptxtile import S, TileLayout, laneid, ptx, tile, warpid
from ptxtile.emulator import Loaded, launch, pack

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 A)\n{\n"
REGISTERS = ".reg .pred %p<4>; .reg .f32 %f<10>; .reg .b32 %r<8>; .reg .b64 %rd<4>;\n"
THREADS = 1 << 20
Facts = dict[str, Any]


def best(run: Callable[[], object], rounds: int) -> float:
    """The least CPU time of some rounds, in seconds; the first one, which compiles, is not counted."""
    run()
    times = []
    for _ in range(rounds):
        began = time.process_time()
        run()
        times.append(time.process_time() - began)
    return min(times)


def straight_text(spelling: str, count: int) -> str:
    """A kernel of so many instructions in a row, on eight registers, whose result each thread's check depends on."""
    operands = 3 if spelling.startswith("fma") else 2
    lines = [
        f"{spelling} %f{1 + i % 8}, "
        + ", ".join(f"%f{1 + (i + 3 * j) % 8}" for j in range(1, operands + 1))
        + ";"
        for i in range(count)
    ]
    first = "mov.u32 %r1, %tid.x;\n" + "".join(f"cvt.rn.f32.u32 %f{i}, %r1;\n" for i in range(1, 9))
    return f"{HEAD}{REGISTERS}{first}" + "\n".join(lines) + "\nret;\n}\n"


def straight(spelling: str, sanitize: bool, rounds: int) -> float:
    """Thread-instructions a second, from the difference of two lengths."""
    seconds = []
    for count in (32, 288):
        loaded = Loaded(straight_text(spelling, count))
        parameters = pack(loaded.program.code("k").function, [0], [None])
        run = partial(loaded.launch, "k", 1024, 1024, parameters, sanitize=sanitize)
        seconds.append(best(run, rounds))
    return 256 * THREADS / (seconds[1] - seconds[0])


DIVERGENT = f"""{HEAD}{REGISTERS}ld.param.u64 %rd1, [A];
mov.u32 %r1, %tid.x;
mov.u32 %r2, 0;
mov.u32 %r3, 0;
LOOP:
xor.b32 %r5, %r2, %r1;
and.b32 %r5, %r5, 1;
setp.eq.u32 %p1, %r5, 0;
@%p1 bra EVEN;
add.u32 %r3, %r3, 1;
mul.lo.u32 %r3, %r3, 3;
xor.b32 %r3, %r3, %r1;
add.u32 %r3, %r3, 7;
bra NEXT;
EVEN:
sub.u32 %r3, %r3, 1;
shl.b32 %r6, %r3, 2;
add.u32 %r3, %r3, %r6;
xor.b32 %r3, %r3, 5;
NEXT:
add.u32 %r2, %r2, 1;
setp.lt.u32 %p2, %r2, LAPS;
@%p2 bra LOOP;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd1, %rd1, %rd2;
st.global.u32 [%rd1], %r3;
ret;
}}
"""
LAP = 4 + 5 + 4 + 3
"""Warp-instructions of a warp in a lap: both sides of the branch."""


def divergent(sanitize: bool, rounds: int) -> float:
    out, laps = np.zeros(128, np.uint32), 2000
    text = DIVERGENT.replace("LAPS", str(laps))
    return 4 * laps * LAP / best(lambda: launch(text, "k", 1, 128, [out], sanitize=sanitize), rounds)


TILE = (2, 32, 4)
LAYOUT = TileLayout(S[TILE : (1 @ warpid, 1 @ laneid, 1)])


@pt.function
def silu_affine(x: pt.float32, scale: pt.float32, bias: pt.float32) -> pt.float32:
    y = x / (pt.float32(1) + pt.exp(-x))
    return y * scale + bias


@pt.kernel(grid=4096, block=64)
def activation(A: pt.Tensor((4096, *TILE), pt.float32), Out: pt.Tensor((4096, *TILE), pt.float32)) -> None:
    r = pt.alloc_local(TILE, pt.float32, layout=LAYOUT)
    own = pt.block_idx("x")
    tile.apply(ptx["ld.global.v4.b32"], r, A[own], scope="cta")
    tile.ewise(silu_affine, r, r, pt.float32(2), pt.float32(1), scope="cta")
    tile.apply(ptx["st.global.v4.b32"], Out[own], r, scope="cta")


def whole_activation(sanitize: bool, rounds: int) -> float:
    x = np.linspace(-8, 8, THREADS, dtype=np.float32).reshape(4096, *TILE)
    out = np.zeros_like(x)
    module = activation.module()
    seconds = best(lambda: launch(module, "activation", 4096, 64, [x, out], sanitize=sanitize), rounds)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(out, wide / (1 + np.exp(-wide)) * 2 + 1, rtol=2e-6, atol=2e-6)
    return seconds


def gemm(sanitize: bool, rounds: int) -> float:
    import ml_dtypes

    from examples.hopper_gemm import hopper_gemm

    chance = np.random.default_rng(0)
    a, b = (chance.integers(-3, 4, (256, 256)).astype(ml_dtypes.bfloat16) for _ in range(2))
    c = np.zeros((256, 256), ml_dtypes.bfloat16)

    def run() -> None:
        hopper_gemm.launch(a, b, c, device="emulator", ctas=2)

    if not sanitize:
        run = partial(unchecked, run)  # type: ignore[assignment]
    seconds = best(run, rounds)
    due = (a.astype(np.float32) @ b.astype(np.float32).T).astype(ml_dtypes.bfloat16)
    assert (c == due).all()
    return seconds


def unchecked(run: Callable[[], None]) -> None:
    """Run with `sanitize` off, which a kernel object does not ask about."""
    from ptxtile import emulator

    emulator.launch = lambda *args, **options: launch(*args, **{**options, "sanitize": False})  # type: ignore[assignment]
    try:
        run()
    finally:
        emulator.launch = launch


def memory(sanitize: bool) -> Facts:
    """Peaks in bytes of two launches of which the second runs ten times as many instructions."""
    out = np.zeros(128, np.uint32)
    peaks = {}
    for laps in (1000, 10_000):
        text = DIVERGENT.replace("LAPS", str(laps))
        launch(DIVERGENT.replace("LAPS", "1"), "k", 1, 128, [out], sanitize=sanitize)
        tracemalloc.start()
        launch(text, "k", 1, 128, [out], sanitize=sanitize)
        peaks[str(laps)] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peaks


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    rows: Facts = {}
    for sanitize in (False, True):
        how = "sanitized" if sanitize else "plain"
        for spelling in ("add.rn.f32", "mul.rn.f32", "fma.rn.f32"):
            rows[f"{spelling} {how}, thread-instructions/s"] = straight(spelling, sanitize, asked.rounds)
        rows[f"divergent {how}, warp-instructions/s"] = divergent(sanitize, asked.rounds)
        rows[f"activation {how}, s"] = whole_activation(sanitize, asked.rounds)
        rows[f"gemm {how}, s"] = gemm(sanitize, asked.rounds)
        rows[f"memory {how}, bytes by laps"] = memory(sanitize)
    for name, value in rows.items():
        print(
            f"{name:48} {value if isinstance(value, dict) else f'{value:,.3f}' if value < 100 else f'{value:,.0f}'}"
        )
    if asked.json:
        head: Facts = {"command": " ".join(["python", *sys.argv]), "clock": "process CPU time", **machine()}
        asked.json.write_text(json.dumps({**head, "results": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
