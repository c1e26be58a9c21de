"""Kernels that apply one matrix instruction to many hard operands, for device_tensor_core.py.

A case is a module, its launch, and its arrays; the emulator and a GPU run the same bytes. Operands are drawn by warp
from five regimes: random bits, ordinary numbers, few values that cancel, subnormals, and magnitudes far apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Draw = Callable[[np.random.Generator, str, tuple[int, ...]], Array]
"""Bit patterns of a type, of some shape whose first axis is warps or tiles."""
HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
BLOCK = 128
# bits, exponent bits, mantissa bits
FORMATS = {
    "f16": (16, 5, 10),
    "bf16": (16, 8, 7),
    "tf32": (32, 8, 23),
    "f32": (32, 8, 23),
    "e4m3": (8, 4, 3),
    "e5m2": (8, 5, 2),
    "f64": (64, 11, 52),
}


@dataclass(frozen=True)
class Case:
    """One kernel `k`: its text, CTAs, arrays as parameters; the last one holds the results of type `kind`."""

    name: str
    text: str
    grid: int
    arrays: list[Array]
    kind: str


def encodings(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Array:
    """Bit patterns of a type; the first axis is warps, which take turns with the regimes."""
    bits = FORMATS[kind][0] if kind in FORMATS else {"s8": 8, "u8": 8, "s32": 32}.get(kind, 32)
    carrier = np.dtype(f"u{bits // 8}")
    raw = rng.integers(0, 1 << bits, shape, np.uint64 if bits == 64 else np.int64).astype(np.uint64)
    if kind not in FORMATS:
        return raw.astype(carrier)
    _, wide, mantissa = FORMATS[kind]
    top, bias = (1 << wide) - 1, (1 << (wide - 1)) - 1
    exponent = raw >> np.uint64(mantissa) & np.uint64(top)
    regime = np.arange(shape[0]).reshape(-1, *(1,) * (len(shape) - 1)) % 5
    spread = min(bias - 2, 28)
    drawn = [
        np.where((exponent == top) & (rng.random(shape) < 0.97), bias, exponent),
        rng.integers(max(bias - 6, 0), min(bias + 6, top), shape),
        rng.integers(bias - 1, bias + 1, shape),
        rng.integers(0, 3, shape) if bits < 32 else rng.integers(bias - 60, bias - 50, shape),
        rng.integers(bias - spread, bias + spread, shape),
    ]
    chosen = np.select([regime == i for i in range(5)], drawn).astype(np.uint64)
    few = rng.choice(np.array([0, 1, (1 << mantissa) - 1], np.uint64), shape)
    fraction = np.where(regime == 2, few, raw & np.uint64((1 << mantissa) - 1))
    found = raw & np.uint64(1 << (bits - 1)) | chosen << np.uint64(mantissa) | fraction
    return np.where(rng.random(shape) < 0.03, 0, found).astype(carrier)


def registers(
    rng: np.random.Generator, kind: str, threads: int, count: int, width: int = 32, draw: Draw = encodings
) -> Array:
    """`count` registers of each thread as (threads, count)."""
    bits = FORMATS[kind][0] if kind in FORMATS else 8 if kind in ("s8", "u8") else 32
    found = draw(rng, kind, (threads // 32, 32, count * width // bits))
    return np.ascontiguousarray(found).view(f"u{width // 8}").reshape(threads, count)


def vector(name: str, count: int) -> str:
    return "{" + ", ".join(f"%{name}{i}" for i in range(count)) + "}"


def kernel(counts: dict[str, int], body: str, width: int = 32, extra: str = "") -> str:
    """Load the registers of every array but the last, run the body, store the last one's."""
    kind, size = ("f64", 8) if width == 64 else ("b32", 4)
    names = list(counts)
    lines = [HEAD + f".visible .entry k({', '.join(f'.param .u64 {n.upper()}' for n in names)})\n{{"]
    lines.append(f".reg .pred %p<4>; .reg .b64 %rd<24>; .reg .b32 %r<16>;{extra}")
    lines.extend(f".reg .{kind} %{n}<{max(c, 1) + 1}>;" for n, c in counts.items())
    lines.append(f"mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, {BLOCK}, %r1;")
    for i, (name, count) in enumerate(counts.items()):
        lines.append(f"ld.param.u64 %rd{i}, [{name.upper()}]; mul.wide.u32 %rd20, %r3, {count * size};")
        lines.append(f"add.u64 %rd{i + 8}, %rd{i}, %rd20;")
    for i, (name, count) in enumerate(list(counts.items())[:-1]):
        lines.extend(f"ld.global.{kind} %{name}{j}, [%rd{i + 8}+{j * size}];" for j in range(count))
    lines.append(body)
    last, target = names[-1], len(names) + 7
    lines.extend(f"st.global.{kind} [%rd{target}+{j * size}], %{last}{j};" for j in range(counts[last]))
    return "\n".join([*lines, "ret;", "}"]) + "\n"


def mma_case(
    name: str,
    types: tuple[str, str, str, str],
    counts: tuple[int, int, int, int],
    warps: int,
    seed: int,
    draw: Draw = encodings,
) -> Case:
    """mma.sync of (d, a, b, c) types on as many warps."""
    rng = np.random.default_rng([seed, len(name), *name.encode()])
    width = 64 if types[0] == "f64" else 32
    threads = warps * 32
    given = {x: registers(rng, t, threads, n, width, draw) for x, t, n in zip("abc", types[1:], counts[1:])}
    sizes = {**dict(zip("abc", counts[1:])), "d": counts[0]}
    operands = [vector("d", counts[0]), *(vector(x, sizes[x]) for x in "abc")]
    if ".sp" in name:
        selector = name.partition("#")[2]
        given["e"] = _metadata(rng, types[1], threads)
        sizes = {"a": counts[1], "b": counts[2], "c": counts[3], "e": 1, "d": counts[0]}
        operands += ["%e0", selector]
    spelling = name.partition("#")[0]
    text = kernel(sizes, f"{spelling} {', '.join(operands)};", width)
    out = np.zeros((threads, counts[0]), given["c"].dtype)
    return Case(name, text, threads // BLOCK, [*given.values(), out], types[0])


def mma_cases(warps: int, seed: int) -> Iterator[Case]:
    """Every dense form of sm_90a, and the sparse ones whose metadata the emulator reads."""
    for kind in ("f16", "bf16", "tf32"):
        for k in (4, 8, 16):
            bits = 32 if kind == "tf32" else 16
            if (kind == "tf32") == (k == 16) or (bits == 16 and k == 4):
                continue
            a, b = 16 * k * bits // 1024, 8 * k * bits // 1024
            for c in ("f32", "f16") if kind == "f16" else ("f32",):
                n = 4 if c == "f32" else 2
                name = f"mma.sync.aligned.m16n8k{k}.row.col.{c}.{kind}.{kind}.{c}"
                yield mma_case(name, (c, kind, kind, c), (n, a, b, n), warps, seed)
    for pair in (("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e5m2", "e5m2")):
        for k, c in ((32, "f32"), (16, "f32"), (32, "f16")):
            n = 4 if c == "f32" else 2
            name = f"mma.sync.aligned.m16n8k{k}.row.col.{c}.{pair[0]}.{pair[1]}.{c}"
            yield mma_case(name, (c, *pair, c), (n, k // 8, k // 16, n), warps, seed)
    for m, k in ((8, 4), (16, 4), (16, 8), (16, 16)):
        name = f"mma.sync.aligned.m{m}n8k{k}.row.col.f64.f64.f64.f64"
        yield mma_case(name, ("f64",) * 4, (m // 4, m * k // 32, k // 4, m // 4), warps // 8, seed)
    for extra in ("", ".satfinite"):
        for pair in (("s8", "u8"), ("u8", "s8")):
            name = f"mma.sync.aligned.m16n8k32.row.col{extra}.s32.{pair[0]}.{pair[1]}.s32"
            yield mma_case(name, ("s32", *pair, "s32"), (4, 4, 2, 4), warps, seed)
        name = f"mma.sync.aligned.m16n8k64.row.col{extra}.s32.s4.u4.s32"
        yield mma_case(name, ("s32", "s32", "s32", "s32"), (4, 4, 2, 4), warps, seed)
    for operation in ("xor", "and"):
        name = f"mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.{operation}.popc"
        yield mma_case(name, ("s32",) * 4, (4, 4, 2, 4), warps, seed)
    for layouts in ("row.col", "col.row"):
        for d, c, large, small in (("f32", "f32", 8, 8), ("f16", "f16", 4, 4), ("f32", "f16", 8, 4)):
            name = f"mma.sync.aligned.m8n8k4.{layouts}.{d}.f16.f16.{c}"
            yield mma_case(name, (d, "f16", "f16", c), (large, 2, 2, small), warps, seed)
    yield from _sparse(warps, seed)


def _metadata(rng: np.random.Generator, kind: str, threads: int) -> Array:
    """Random words of valid indices of sparse A."""
    nibbles = rng.choice([0x4, 0xE] if kind == "tf32" else [0x4, 0x8, 0xC, 0x9, 0xD, 0xE], (threads, 8))
    shifted = nibbles.astype(np.uint32) << (4 * np.arange(8, dtype=np.uint32))
    found: Array = shifted.sum(axis=1, dtype=np.uint32)[:, None]
    return found


def _sparse(warps: int, seed: int) -> Iterator[Case]:
    forms = [("f16", 16, 3), ("f16", 32, 1), ("bf16", 32, 0), ("tf32", 8, 2), ("tf32", 16, 1), ("s8", 32, 1)]
    for kind, k, selector in [*forms, ("u8", 64, 0), ("e4m3", 64, 0), ("e5m2", 64, 0)]:
        bits = {"tf32": 32, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8}.get(kind, 16)
        c = "s32" if kind in ("s8", "u8") else "f32"
        name = f"mma.sp::ordered_metadata.sync.aligned.m16n8k{k}.row.col.{c}.{kind}.{kind}.{c}#{selector}"
        counts = (4, 16 * k * bits // 2048, 8 * k * bits // 1024, 4)
        yield mma_case(name, (c, kind, kind, c), counts, warps, seed)


def move_cases(seed: int) -> Iterator[Case]:
    """ldmatrix, stmatrix, movmatrix on distinct values."""
    shared = " .shared .align 16 .b8 s[2048];"
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 1 << 32, (BLOCK, 4), np.uint64).astype(np.uint32)
    place = "mov.u32 %r5, s; shl.b32 %r6, %r1, 4; add.u32 %r5, %r5, %r6;\n"
    whole = f"st.shared.v4.b32 [%r5], {vector('a', 4)};\nbar.sync 0;\n"
    zeros = "st.shared.v4.b32 [%r5], {0, 0, 0, 0};\nbar.sync 0;\n"
    read = f"bar.sync 0;\nld.shared.v4.b32 {vector('d', 4)}, [%r5];"
    for trans in ("", ".trans"):
        for count in (1, 2, 4):
            rest = "".join(f"mov.b32 %d{i}, 0;\n" for i in range(count, 4))
            name = f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16"
            body = place + whole + rest + f"{name} {vector('d', count)}, [%r5];"
            yield Case(name, kernel({"a": 4, "d": 4}, body, extra=shared), 1, [values, values * 0], "b32")
            name = f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16"
            body = place + zeros + f"{name} [%r5], {vector('a', count)};\n" + read
            yield Case(name, kernel({"a": 4, "d": 4}, body, extra=shared), 1, [values, values * 0], "b32")
    name = "movmatrix.sync.aligned.m8n8.trans.b16"
    yield Case(
        name,
        kernel({"a": 1, "d": 1}, f"{name} %d0, %a0;"),
        1,
        [values[:, :1].copy(), values[:, :1] * 0],
        "b32",
    )


WGMMA = """mov.u32 %r5, s; shl.b32 %r6, %r1, 7; add.u32 %r5, %r5, %r6; cvt.u64.u32 %rd20, %r6;
mul.wide.u32 %rd21, %r2, 16384; add.u64 %rd20, %rd20, %rd21; add.u64 %rd20, %rd0, %rd20; mov.u32 %r7, 0;
L: ld.global.v4.b32 {{%r8, %r9, %r10, %r11}}, [%rd20]; st.shared.v4.b32 [%r5], {{%r8, %r9, %r10, %r11}};
add.u64 %rd20, %rd20, 16; add.u32 %r5, %r5, 16; add.u32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, 8; @%p1 bra L;
fence.proxy.async; bar.sync 0;
mov.u32 %r12, s; shr.u32 %r12, %r12, 4; and.b32 %r12, %r12, 0x3fff; cvt.u64.u32 %rd22, %r12;
add.u64 %rd22, %rd22, {descriptor}; add.u64 %rd23, %rd22, 512; setp.{test}.u32 %p2, %r1, %r1;
{moves}
wgmma.fence.sync.aligned;
{name} {d}, {a}, %rd23{sparse}, %p2{tail};
wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"""


def wgmma_case(
    kinds: tuple[str, str, str],
    n: int,
    grid: int,
    seed: int,
    *,
    source: str = "shared",
    tail: str = "",
    extra: str = "",
    fresh: bool = False,
    selector: int | None = None,
    draw: Draw = encodings,
) -> Case:
    """wgmma of (d, a, b) types: matrices K-major without a swizzle, columns of blocks 128 bytes * rows / 8 apart."""
    d, atype, btype = kinds
    bits = {"b1": 1, "s8": 8, "u8": 8}.get(atype, FORMATS.get(atype, (8,))[0])
    k = 256 // bits * (1 if selector is None else 2)
    sparse = "" if selector is None else ".sp"
    name = f"wgmma.mma_async{sparse}.sync.aligned.m64n{n}k{k}{extra}.{d}.{atype}.{btype}" + (
        ".and.popc" if bits == 1 else ""
    )
    label = f"{name} A {source}{' scale-d 0' if fresh else ''} {selector}{tail}"
    rng = np.random.default_rng([seed, *label.encode()])
    rows = max(n, 64)
    held = [draw(rng, kind if kind != "b1" else "u8", (grid * 5, 64, 64)) for kind in (atype, btype)]
    halves = [x.view(np.uint8).reshape(-1)[: grid * 8192].reshape(grid, 8192) for x in held]
    shared = np.concatenate(halves, axis=1)
    count = n // 2 if d in ("f32", "s32") else n // 4
    threads = grid * BLOCK
    c = registers(rng, d, threads, count, draw=draw)
    a = registers(rng, atype if bits > 1 else "u8", threads, 4, draw=draw)
    # leading: to the next 16 bytes of k; stride: to the next eight rows
    descriptor = (rows * 16 >> 4) << 16 | (128 >> 4) << 32
    body = WGMMA.format(
        descriptor=descriptor,
        test="ne" if fresh else "eq",
        moves="\n".join(f"mov.b32 %d{i}, %c{i};" for i in range(count)),
        name=name,
        d=vector("d", count),
        a="%rd22" if source == "shared" else vector("a", 4),
        tail=tail,
        sparse="" if selector is None else f", %e0, {selector}",
    )
    text = kernel(
        {"m": 0, "a": 4, "e": 1, "c": count, "d": count}, body, extra=" .shared .align 1024 .b8 s[16384];"
    )
    if d == "f32":
        text = text.replace(f".reg .b32 %d<{count + 1}>", f".reg .f32 %d<{count + 1}>")
    return Case(label, text, grid, [shared, a, _metadata(rng, atype, threads), c, np.zeros_like(c)], d)


def wgmma_cases(grid: int, seed: int) -> Iterator[Case]:
    """Every type, A from shared memory and from registers, signs, fresh accumulators, a few widths."""
    plain, signs = ", 1, 1", ", -1, 1"
    for kind in ("f16", "bf16", "tf32"):
        both = kind != "tf32"
        for source in ("shared", "registers"):
            trans = ("", ", 0, 0" if source == "shared" else ", 0")[both]
            yield wgmma_case(("f32", kind, kind), 64, grid, seed, source=source, tail=plain + trans)
        yield wgmma_case(("f32", kind, kind), 8, grid, seed, tail=signs + (", 0, 0" if both else ""))
        yield wgmma_case(
            ("f32", kind, kind),
            256,
            max(grid // 4, 1),
            seed,
            tail=plain + (", 0, 0" if both else ""),
            fresh=True,
        )
    yield wgmma_case(("f16", "f16", "f16"), 64, grid, seed, tail=", 1, 1, 0, 0")
    yield wgmma_case(("f16", "f16", "f16"), 64, grid, seed, source="registers", tail=", 1, 1, 0")
    for pair in (("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e5m2", "e5m2")):
        yield wgmma_case(("f32", *pair), 64, grid, seed, tail=plain)
        yield wgmma_case(("f16", *pair), 64, grid, seed, tail=plain)
    yield wgmma_case(("f32", "e4m3", "e5m2"), 64, grid, seed, source="registers", tail=plain)
    for extra in ("", ".satfinite"):
        yield wgmma_case(("s32", "s8", "u8"), 64, grid, seed, extra=extra)
    yield wgmma_case(("s32", "u8", "u8"), 64, grid, seed, source="registers")
    yield wgmma_case(("s32", "b1", "b1"), 64, grid, seed)
    yield wgmma_case(("f32", "f16", "f16"), 64, grid, seed, tail=", 1, 1, 0, 0", selector=0)
    yield wgmma_case(
        ("f32", "bf16", "bf16"), 64, grid, seed, source="registers", tail=", 1, 1, 0", selector=1
    )
    yield wgmma_case(("f32", "tf32", "tf32"), 64, grid, seed, tail=", 1, 1", selector=1)
    yield wgmma_case(("s32", "s8", "u8"), 64, grid, seed, selector=0)
    yield wgmma_case(("f32", "e4m3", "e4m3"), 64, grid, seed, tail=", 1, 1", selector=0)


def reduction_cases(seed: int) -> Iterator[Case]:
    """What reductions into memory do with subnormals: bulk, vector and scalar ones."""
    rng = np.random.default_rng(seed)
    tiny = rng.integers(0, 1 << 25, (BLOCK, 4), np.uint64).astype(np.uint32)
    tiny |= (rng.integers(0, 2, (BLOCK, 4)) << 31).astype(np.uint32)
    other = np.ascontiguousarray(tiny[::-1])
    place = "mov.u32 %r5, s; shl.b32 %r6, %r1, 4; add.u32 %r5, %r5, %r6;\n"
    start = "st.global.v4.b32 [%rd10], " + vector("b", 4) + ";\n"
    finish = f"\nbar.sync 0;\nld.global.v4.b32 {vector('d', 4)}, [%rd10];"
    for kind in ("add.f32", "add.noftz.f16", "add.noftz.bf16"):
        name = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{kind}"
        body = place + start + f"st.shared.v4.b32 [%r5], {vector('a', 4)};\nfence.proxy.async; bar.sync 0;\n"
        body += (
            f"{name} [%rd10], [%r5], 16;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" + finish
        )
        text = kernel({"a": 4, "b": 4, "d": 4}, body, extra=" .shared .align 16 .b8 s[2048];")
        yield Case(name, text, 1, [tiny, other, tiny * 0], kind.rpartition(".")[2])
    for name in ("red.global.add.v4.f32", "red.global.add.v2.f32"):
        count = int(name[16])
        values = "{" + ", ".join(f"%f{i}" for i in range(count)) + "}"
        moves = "".join(f"mov.b32 %f{i}, %a{i};\n" for i in range(count))
        text = kernel(
            {"a": 4, "b": 4, "d": 4},
            start + moves + f"{name} [%rd10], {values};" + finish,
            extra=" .reg .f32 %f<4>;",
        )
        yield Case(name, text, 1, [tiny, other, tiny * 0], "f32")
