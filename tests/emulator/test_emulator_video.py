"""SIMD video instructions against the manual's pseudo-code, one thread at a time."""

from __future__ import annotations

import numpy as np
import pytest

OPERATIONS = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vavrg": lambda a, b: a + b + 1 >> 1 if a + b >= 0 else a + b >> 1,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
}


def parts(a, b, chosen, bits, signed):
    whole = a | b << 32
    found = []
    for which in reversed(chosen):
        value = whole >> int(which) * bits & (1 << bits) - 1
        found.append(value - (1 << bits) if signed and value >> bits - 1 else value)
    return found


def model(work, a, b, c, count, asel, bsel, mask, types, sat, add):
    bits = 32 // count
    left, right = parts(a, b, asel, bits, types[1] == "s32"), parts(a, b, bsel, bits, types[2] == "s32")
    results = [work(x, y) for x, y in zip(left, right)]
    if sat:
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if types[0] == "s32" else (0, (1 << bits) - 1)
        results = [min(max(x, low), high) for x in results]
    lanes = [int(digit) for digit in mask]
    if add:
        return c + sum(results[i] for i in lanes) & 0xFFFFFFFF
    every = (1 << bits) - 1
    merged = [results[i] & every if i in lanes else c >> i * bits & every for i in range(count)]
    return sum(x << i * bits for i, x in enumerate(merged))


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("name", [*OPERATIONS, "vset"])
def test_against_the_pseudo_code(run, name, count):
    rng = np.random.default_rng(3)
    letter, digits, others = ("h", "10", "32") if count == 2 else ("b", "3210", "7654")
    for number, (types, extra) in enumerate(
        [(("u32", "u32", "s32"), ""), (("s32", "s32", "u32"), ".sat"), (("s32", "s32", "s32"), ".add")]
    ):
        if name == "vset" and extra == ".sat":
            continue
        asel = digits if number == 0 else "".join(map(str, rng.integers(0, 2 * count, count)))
        bsel = others if number == 0 else "".join(map(str, rng.integers(0, 2 * count, count)))
        mask = digits if number == 0 else digits[1:]
        words = rng.integers(0, 1 << 32, (32, 3), np.uint64).astype(np.uint32)
        words[:8] = rng.choice([0, 0x7FFF8000, 0x80007FFF, 0xFFFFFFFF, 0x7F80FF01], (8, 3))
        out = np.zeros(32, np.uint32)
        middle = f".{types[1]}.{types[2]}.lt{extra}" if name == "vset" else f".{'.'.join(types)}{extra}"
        marks = [f".{letter}{x}" if number else "" for x in (mask, asel, bsel)]
        run(
            f"""
            ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B]; mov.u32 %r1, %tid.x;
            mul.wide.u32 %rd3, %r1, 12; add.u64 %rd1, %rd1, %rd3; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd2, %rd2, %rd3;
            ld.global.b32 %r2, [%rd1]; ld.global.b32 %r3, [%rd1+4]; ld.global.b32 %r4, [%rd1+8];
            {name}{count}{middle} %r5{marks[0]}, %r2{marks[1]}, %r3{marks[2]}, %r4;
            st.global.b32 [%rd2], %r5;
            """,
            [words, out],
        )
        work = OPERATIONS.get(name, lambda a, b: int(a < b))
        for row, found in zip(words.tolist(), out.tolist()):
            due = model(work, *row, count, asel, bsel, mask, types, extra == ".sat", extra == ".add")
            assert found == due, (name, count, extra, [hex(x) for x in row])
