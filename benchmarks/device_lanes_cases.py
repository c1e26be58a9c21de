"""The instructions that `device_lanes.py` asks about: scalar and SIMD video, and what threads of a warp do together.

They are asked as kernels, which a GPU and the emulator both run: a thread has four words in r1 to r4 (r4 is a member
mask of its warp, which it belongs to where p1 is set) and gives two, r5 and r6.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

import device_atomics_cases
import numpy as np
from numpy.typing import NDArray

from ptxtile import isa

THREADS = 10240
TARGET = "sm_90a"
PTX_VERSION = "9.0"
PARTS = ("", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1")
SCALAR = ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset")
SIMD = tuple(
    f"{name}{n}" for n in (2, 4) for name in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset")
)
DRAWN = 3
"""Choices of parts that a spelling of a video instruction is asked about."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One instruction with its operands, as PTX; `draw` names what the four words are drawn as."""

    text: str
    draw: str


def _spellings(opcode: str) -> Iterator[str]:
    for spelling in isa.forms(f"{opcode}.*", target=TARGET):
        if isa.is_valid(spelling, TARGET, PTX_VERSION):
            yield spelling


def _scalar(seed: int) -> Iterator[Kernel]:
    rng = random.Random(f"scalar {seed}")
    for opcode in SCALAR:
        draw = "shift" if opcode in ("vshl", "vshr") else "numbers"
        for spelling in _spellings(opcode):
            last = spelling.split(".")[-1]
            merges = opcode != "vmad" and last not in ("add", "min", "max")
            for number in range(DRAWN):
                a, b = ("", "") if number == 0 else (rng.choice(PARTS), rng.choice(PARTS))
                third = "" if merges else ", r3"
                yield Kernel(f"{spelling} r5, r1{a}, r2{b}{third};", draw)
                if merges:
                    part = rng.choice(PARTS[1:])
                    yield Kernel(f"{spelling} r5{part}, r1{a}, r2{b}, r3;", draw)


def _digits(rng: random.Random, letter: str, count: int) -> str:
    digits = "".join(str(rng.randrange(2 * count)) for _ in range(count))
    # The assembler reads .b1024 as the name of a type.
    return f".{letter}{digits if digits != '1024' else '1025'}"


def _simd(seed: int) -> Iterator[Kernel]:
    rng = random.Random(f"simd {seed}")
    for opcode in SIMD:
        count = int(opcode[-1])
        letter = "h" if count == 2 else "b"
        masks = range(1, 1 << count)
        for spelling in _spellings(opcode):
            for number in range(DRAWN):
                mask = a = b = ""
                if number:
                    chosen = rng.choice(masks)
                    mask = f".{letter}" + "".join(str(i) for i in reversed(range(count)) if chosen >> i & 1)
                    a, b = _digits(rng, letter, count), _digits(rng, letter, count)
                yield Kernel(f"{spelling} r5{mask}, r1{a}, r2{b}, r3;", "numbers")


SEGMENTS = (0x1F, 0x00, 0x101F, 0x100F, 0x1807, 0x1C03, 0x0A1F)


def _warp(seed: int) -> Iterator[Kernel]:
    for mode in ("up", "down", "bfly", "idx"):
        yield Kernel(
            f"shfl.sync.{mode}.b32 r5|p2, r1, r2, r3, 0xffffffff;\nselp.b32 r6, 1, 0, p2;", "shuffle"
        )
        for segment in SEGMENTS:
            text = f"shfl.sync.{mode}.b32 r5|p2, r1, r2, {segment:#x}, 0xffffffff;\nselp.b32 r6, 1, 0, p2;"
            yield Kernel(text, "shuffle")
    for mask in ("0xffffffff", "r4"):
        guard = "" if mask[0] == "0" else "@p1 "
        for mode in ("all", "any", "uni"):
            yield Kernel(f"{guard}vote.sync.{mode}.pred p2, p3, {mask};\nselp.b32 r5, 1, 0, p2;", "votes")
            yield Kernel(f"{guard}vote.sync.{mode}.pred p2, !p3, {mask};\nselp.b32 r5, 1, 0, p2;", "votes")
        yield Kernel(f"{guard}vote.sync.ballot.b32 r5, p3, {mask};", "votes")
        for kind, value in (("b32", "r1"), ("b64", "d1")):
            yield Kernel(f"{guard}match.any.sync.{kind} r5, {value}, {mask};", "few")
            text = f"{guard}match.all.sync.{kind} r5|p2, {value}, {mask};\nselp.b32 r6, 1, 0, p2;"
            yield Kernel(text, "few")
        for spelling in _spellings("redux"):
            yield Kernel(f"{guard}{spelling} r5, r1, {mask};", "numbers")
        yield Kernel(f"{guard}elect.sync r5|p2, {mask};\nselp.b32 r6, 1, 0, p2;", "numbers")
    yield Kernel("activemask.b32 r5;", "numbers")
    yield Kernel("@p1 bra in;\nbra out;\nin: activemask.b32 r5;\nout:", "numbers")


def _atomic(seed: int) -> Iterator[Kernel]:
    for text in device_atomics_cases.texts(TARGET, PTX_VERSION):
        yield Kernel(text, "floats" if re.search(r"\.b?f\d", text) else "numbers")


CHAPTERS = {"scalar": _scalar, "simd": _simd, "warp": _warp, "atomic": _atomic}
FLOATS = (
    0x7F800000,
    0xFF800000,
    0x7FC00001,
    0x3F800000,
    0xBF800000,
    0x00800000,
    0x80800001,
    0x007FFFFF,
    0x33800000,
)
FLOATS += (
    0x7C003C00,
    0xFC000001,
    0x04008400,
    0x7F803F80,
    0x00808001,
    0x3FF00000,
    0x7FF00000,
    0x00100000,
    0x3C800000,
)
WORDS = (
    0,
    1,
    2,
    0x7F,
    0x80,
    0xFF,
    0x100,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x10000,
    0x7FFFFFFF,
    0x80000000,
    0x80000001,
    0xFFFFFFFF,
)
WORDS += (0xFFFF8000, 0xFFFFFF80, 0x7FFF8000, 0x80007FFF, 0x7F80FF01, 0xFFFFFFFE, 0x00FF00FF, 0xFF00FF00)


def words(draw: str, seed: int) -> NDArray[np.uint32]:
    """(threads, 4): half of the numbers at boundaries; member masks are the same throughout a warp and not empty."""
    rng = np.random.default_rng([seed, *draw.encode()])
    shape = (THREADS, 4)
    found = rng.integers(0, 1 << 32, shape, np.uint64)
    found >>= rng.integers(0, 32, shape).astype(np.uint64) * (rng.random(shape) < 0.3)
    found = np.where(rng.random(shape) < 0.5, rng.choice(np.array(WORDS, np.uint64), shape), found)
    if draw == "floats":
        found = np.where(rng.random(shape) < 0.4, rng.choice(np.array(FLOATS, np.uint64), shape), found)
    if draw == "shift":
        amounts = rng.integers(0, 70, THREADS).astype(np.uint64) * np.uint64(0x01010101)
        found[:, 1] = np.where(rng.random(THREADS) < 0.8, amounts & np.uint64(0xFFFFFFFF), found[:, 1])
    if draw == "shuffle":
        found[:, 2] &= np.uint64(0x1F1F)
    if draw in ("votes", "few"):
        # By warp: mostly alike, so that all agree in some warps and few do in others.
        odds = np.repeat(rng.choice([0.0, 0.02, 0.5, 1.0], THREADS // 32), 32)
        for column in (0, 1):
            found[:, column] = 7 + (rng.random(THREADS) < odds)
    masks = rng.integers(1, 1 << 32, THREADS // 32, np.uint64)
    if draw == "floats":
        found[::64] = (0, 0x7FF00000, 0, 0xFFF00000)  # as doubles an infinity, and another of the other sign
        return found.astype(np.uint32)
    found[:, 3] = np.repeat(
        np.where(rng.random(THREADS // 32) < 0.3, masks & np.uint64(0x80000001) | 1, masks), 32
    )
    return found.astype(np.uint32)


def entry(name: str, kernel: Kernel) -> str:
    """A kernel of `THREADS` threads: words at IN, 16 bytes a thread; results at OUT, 8 bytes a thread."""
    return f""".visible .entry {name}(.param .u64 OUT, .param .u64 IN)
{{
.reg .pred p<4>; .reg .b32 r<12>; .reg .b64 d<6>;
ld.param.u64 d2, [OUT]; ld.param.u64 d3, [IN];
mov.u32 r7, %ctaid.x; mov.u32 r8, %ntid.x; mov.u32 r9, %tid.x; mad.lo.u32 r7, r7, r8, r9;
mul.wide.u32 d4, r7, 16; add.u64 d3, d3, d4; mul.wide.u32 d4, r7, 8; add.u64 d2, d2, d4;
ld.global.v4.b32 {{r1, r2, r3, r4}}, [d3];
mov.b64 d1, {{r1, r2}}; mov.u32 r10, %laneid; shr.u32 r11, r4, r10; and.b32 r11, r11, 1;
setp.ne.b32 p1, r11, 0; setp.eq.b32 p3, r1, 7; setp.ne.b32 p2, 0, 0; mov.b32 r5, 0; mov.b32 r6, 0;
{kernel.text}
st.global.v2.b32 [d2], {{r5, r6}};
ret;
}}
"""


def module(kernels: list[Kernel]) -> str:
    """A module with entries k0, k1, …"""
    head = f".version {PTX_VERSION}\n.target {TARGET}\n.address_size 64\n"
    return head + "".join(entry(f"k{i}", kernel) for i, kernel in enumerate(kernels))
