"""wgmma on a Hopper GPU, element by element: fragments of D, A and metadata, descriptors of every layout and swizzle.

    python benchmarks/device_wgmma.py [--only WORD …] [--json FILE] [--device emulator]

Each case is one kernel. Its A and B are random small integers, D begins as random integers, so every product is exact.
Registers go in and come out by thread and register number; which element each is, the layouts of ptxtile.layout say,
applied here on the host. A matrix in shared memory is written element by element through its layout. A wrong fragment,
swizzle, offset or transpose gives another product than NumPy's.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import ptxtile as pt
from ptxtile import ptx, tile
from ptxtile.layout.fragment import (
    wgmma_accumulator,
    wgmma_metadata,
    wgmma_registers,
    wgmma_words,
)

Array = np.ndarray[Any, np.dtype[Any]]
ROWS = range(8, 257, 8)
INTEGER_ROWS = (8, 16, 24, *range(32, 257, 16))
CARRIERS = {1: pt.uint8, 2: pt.uint16, 4: pt.uint32}


@dataclass(frozen=True)
class Kind:
    """Types of one form. `k`: elements of A and B in 32 bytes; `low`, `high`: of the integers that are multiplied."""

    result: str
    a: str
    b: str
    itemsize: int
    low: int
    high: int
    tail: str = ""

    @property
    def k(self) -> int:
        return 32 // self.itemsize


HALF = Kind(".f32", ".bf16", ".bf16", 2, -3, 4)
KINDS = (
    HALF,
    Kind(".f32", ".f16", ".f16", 2, -3, 4),
    Kind(".f16", ".f16", ".f16", 2, -2, 3),
    Kind(".f32", ".tf32", ".tf32", 4, -9, 10),
    Kind(".f32", ".e4m3", ".e4m3", 1, -3, 4),
    Kind(".f32", ".e5m2", ".e4m3", 1, -3, 4),
    Kind(".f16", ".e4m3", ".e5m2", 1, -2, 3),
    Kind(".s32", ".s8", ".s8", 1, -128, 128),
    Kind(".s32", ".u8", ".s8", 1, 0, 128),
    Kind(".s32", ".u8", ".u8", 1, 0, 256),
    Kind(".s32", ".b1", ".b1", 1, 0, 256, ".and.popc"),
)


@dataclass(frozen=True)
class Case:
    """One kernel: `rows` x `columns` products of instructions with N = n; K of `steps` instructions."""

    name: str
    kind: Kind
    n: int
    swizzle: int = 128
    steps: int = 2
    trans_a: bool = False
    trans_b: bool = False
    registers: bool = False
    rows: int = 64
    repeat: int = 1
    selector: int | None = None
    scale_a: int = 1
    scale_b: int = 1
    scale_d: bool = True

    @property
    def k(self) -> int:
        """Of one instruction, in elements of B in shared memory."""
        return self.kind.k * (1 if self.selector is None else 2)

    @property
    def form(self) -> str:
        kind = self.kind
        k = self.k * (8 if kind.a == ".b1" else 1)
        sparse = "" if self.selector is None else ".sp"
        shape = f".m64n{self.n}k{k}"
        return f"wgmma.mma_async{sparse}.sync.aligned{shape}{kind.result}{kind.a}{kind.b}{kind.tail}"


def cases() -> Iterator[Case]:
    """Everything that is asked."""
    for kind in KINDS:
        for n in ROWS if kind.result != ".s32" else INTEGER_ROWS:
            yield Case("types", kind, n, 128, 128 // 32)
    for kind in KINDS:
        for n in (8, 64, 256):
            yield Case("a in registers", kind, n, 64, registers=True)
        for swizzle in (0, 32, 64):
            yield Case("swizzle", kind, 32, swizzle)
    for swizzle, n in ((0, 8), (0, 24), (32, 16), (32, 80), (64, 32), (64, 160), (128, 64), (128, 256)):
        for trans_a, trans_b in ((True, False), (False, True), (True, True)):
            for kind in KINDS[:2]:
                yield Case("transposed", kind, n, swizzle, 4, trans_a, trans_b)
        yield Case("transposed", HALF, n, swizzle, 4, False, True, registers=True)
    for rows, repeat in ((64, 2), (128, 1), (128, 2)):
        yield Case("repeats", HALF, 64, 128, 4, rows=rows, repeat=repeat)
        yield Case("repeats", HALF, 32, 64, 2, rows=rows, repeat=repeat, registers=True)
        yield Case("repeats", HALF, 64, 128, 4, True, True, rows=rows, repeat=repeat)
    for scale_a, scale_b in ((-1, 1), (1, -1), (-1, -1)):
        yield Case("scales", HALF, 16, scale_a=scale_a, scale_b=scale_b, steps=4)
    yield Case("scales", HALF, 16, scale_d=False, steps=4)
    for selector in (0, 1):
        for kind in KINDS[:10] if selector == 0 else KINDS[:4]:  # 8-bit types have but one
            for n in (8, 128, 256):
                yield Case("sparse", kind, n, 128, 4, selector=selector)
            yield Case("sparse", kind, 32, 0, 2, selector=selector)
            yield Case("sparse", kind, 32, 64, 1, selector=selector, registers=True)


def fragment(case: Case) -> tuple[Any, int, int]:
    """D's layout for one instruction, its columns, and registers a thread."""
    if case.kind.result == ".f16":
        return wgmma_words(case.n // 2), case.n // 2, case.n // 4
    return wgmma_accumulator(case.n), case.n, case.n // 2


def place(layout: Any, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """(thread of the warpgroup, place in its registers) of each element."""
    found = layout.apply(*np.indices(shape), shape=shape)
    return found["wid_in_wg"] * 32 + found["laneid"], found["m"]


def by_thread(layout: Any, matrix: Array, count: int) -> Array:
    """A matrix of 64 rows as (128, count): by thread of the warpgroup and register."""
    made = np.zeros((128, count), matrix.dtype)
    made[place(layout, matrix.shape)] = matrix
    return made


def as_matrix(layout: Any, held: Array, columns: int) -> Array:
    """The reverse."""
    made: Array = held[place(layout, (64, columns))]
    return made


def blocks(matrix: Array, rows: int, columns: int) -> Iterator[Array]:
    """Tiles of a matrix, row by row."""
    for i in range(0, matrix.shape[0], rows):
        for j in range(0, matrix.shape[1], columns):
            yield matrix[i : i + rows, j : j + columns]


def shared(case: Case, shape: tuple[int, int], transposed: bool, source: Any) -> Any:
    """(rows, k) in shared memory, written element by element; with `transposed`, k lies along the columns."""
    extents = shape[::-1] if transposed else shape
    layout = pt.shared_layout(extents, source.dtype, case.swizzle)
    made = pt.alloc_shared(extents, source.dtype, layout=layout, align=1024)
    with pt.for_range(pt.thread_rank(), extents[0] * extents[1], 128) as i:
        made[i // extents[1], i % extents[1]] = source[i // extents[1], i % extents[1]]
    return made.permute(1, 0) if transposed else made


def fragments(repeats: tuple[int, int], count: int, dtype: Any) -> Any:
    """Registers of repeats[0] x repeats[1] instructions, `count` each."""
    every = repeats[0] * repeats[1] * count
    return pt.alloc_local((4, 32, *repeats, count), dtype, layout=wgmma_registers(every))


def exchange(held: Any, memory: Any, load: bool) -> None:
    """Registers from or to memory, (instructions, 128, count)."""
    _, _, down, across, count = held.static_shape
    for issue in range(down * across):
        for i in range(count):
            at = (0, 0, issue // across, issue % across, i)
            place = (issue, pt.thread_rank(), i)
            if load:
                held[at] = memory[place]
            else:
                memory[place] = held[at]


def keywords(case: Case) -> dict[str, object]:
    """Of tile.apply."""
    words: dict[str, object] = {"scale_d": case.scale_d}
    if case.kind.result != ".s32":
        words |= {"scale_a": case.scale_a, "scale_b": case.scale_b}
    return words if case.selector is None else words | {"sp_sel": case.selector}


def kernel(case: Case) -> pt.Kernel:
    """The kernel of a case: A and B by element, or A by register; D and metadata by register."""
    carrier = CARRIERS[case.kind.itemsize]
    k = case.k * case.steps
    k_a = k if case.selector is None else k // 2
    columns = case.n * case.repeat
    _, _, count = fragment(case)
    down = case.rows // 64
    steps = down * case.steps
    result = {".f32": pt.float32, ".f16": pt.uint32, ".s32": pt.int32}[case.kind.result]

    @pt.kernel(grid=1, block=128)
    def wgmma(
        A: pt.Tensor((k_a, case.rows) if case.trans_a else (case.rows, k_a), carrier),
        W: pt.Tensor((steps, 128, 4), pt.uint32),
        B: pt.Tensor((k, columns) if case.trans_b else (columns, k), carrier),
        E: pt.Tensor((steps, 128, 1), pt.uint32),
        D: pt.Tensor((down * case.repeat, 128, count), result),
    ) -> None:
        b = shared(case, (columns, k), case.trans_b, B)
        if case.registers:
            a = fragments((down, case.steps), 4, pt.uint32)
            exchange(a, W, load=True)
        else:
            a = shared(case, (case.rows, k_a), case.trans_a, A)
        more = []
        if case.selector is not None:
            more.append(fragments((down, case.steps), 1, pt.uint32))
            exchange(more[0], E, load=True)
        d = fragments((down, case.repeat), count, result)
        exchange(d, D, load=True)
        pt.fence_async()
        pt.cta_sync()
        ptx.wgmma.fence.sync.aligned()
        tile.apply(ptx[case.form], d, a, b, *more, scope="warpgroup", **keywords(case))
        ptx.wgmma.commit_group.sync.aligned()
        ptx.wgmma.wait_group.sync.aligned(0)
        exchange(d, D, load=False)

    return wgmma


def encode(values: Array, type_: str) -> Array:
    """Integers as the bits of a type."""
    import ml_dtypes

    made: Any = {
        ".bf16": ml_dtypes.bfloat16,
        ".f16": np.float16,
        ".tf32": np.float32,
        ".e4m3": ml_dtypes.float8_e4m3fn,
        ".e5m2": ml_dtypes.float8_e5m2,
        ".s8": np.int8,
    }.get(type_, np.uint8)
    held = values.astype(made)
    return np.ascontiguousarray(held).view(f"u{held.dtype.itemsize}")


def compress(case: Case, dense: Array, rng: Any) -> tuple[Array, Array, Array]:
    """A sparse matrix: what is left of it, the stored half, and its metadata, 16 bits for each four groups of a row.

    Two of each four elements are kept, their places two bits each; of .tf32 one of each two, four bits: 4 or 14.
    """
    rows, k = dense.shape
    pair = case.kind.itemsize == 4
    unit, kept = (2, 1) if pair else (4, 2)
    groups = dense.reshape(rows, k // unit, unit)
    order = np.sort(np.argsort(rng.random(groups.shape), axis=2)[:, :, :kept], axis=2)
    stored = np.take_along_axis(groups, order, axis=2)
    left = np.zeros_like(groups)
    np.put_along_axis(left, order, stored, axis=2)
    codes = np.where(order[:, :, 0] == 0, 4, 14) if pair else order[:, :, 0] | order[:, :, 1] << 2
    shifts = np.arange(4, dtype=np.uint16) * 4
    halves = (codes.reshape(rows, -1, 4).astype(np.uint16) << shifts).sum(axis=2, dtype=np.uint16)
    return left.reshape(rows, k), stored.reshape(rows, k * kept // unit), halves


def product(case: Case, a: Array, b: Array) -> Array:
    """What the instruction adds, exactly."""
    if case.kind.a == ".b1":
        bits = [np.unpackbits(each.astype(np.uint8), axis=1).astype(np.int64) for each in (a, b)]
        return bits[0] @ bits[1].T
    return case.scale_a * case.scale_b * (a.astype(np.int64) @ b.astype(np.int64).T)


def words_of(values: Array, kind: Kind) -> Array:
    """D as registers hold it."""
    if kind.result == ".f16":
        return np.ascontiguousarray(values.astype(np.float16)).view(np.uint32)
    return values.astype(np.float32 if kind.result == ".f32" else np.int32)


def run(case: Case, device: object) -> int:
    """How many elements of D are wrong."""
    rng = np.random.default_rng(case.n)
    kind, k = case.kind, case.k * case.steps
    layout, columns, count = fragment(case)
    b = rng.integers(kind.low, kind.high, (case.n * case.repeat, k))
    a = rng.integers(kind.low, kind.high, (case.rows, k))
    if kind.a == ".u8" and kind.b == ".s8":
        b -= 64
    metadata = np.zeros((case.rows // 64 * case.steps, 128, 1), np.uint32)
    stored = a
    if case.selector is not None:
        a, stored, halves = compress(case, a, rng)
        for at, block in enumerate(blocks(halves, 64, halves.shape[1] // case.steps)):
            metadata[at, :, 0] = by_metadata(case, block, rng)
    start = rng.integers(-50, 50, (case.rows, case.n * case.repeat))
    held = np.stack([by_thread(layout, part, count) for part in blocks(words_of(start, kind), 64, columns)])
    left, right = encode(stored, kind.a), encode(b, kind.b)
    registers = [by_thread(wgmma_words(8), part, 4) for part in blocks(left.view(np.uint32), 64, 8)]
    kernel(case).launch(
        np.ascontiguousarray(left.T if case.trans_a else left),
        np.stack(registers),
        np.ascontiguousarray(right.T if case.trans_b else right),
        metadata,
        held,
        device=device,
    )
    due = words_of(product(case, a, b) + (start if case.scale_d else 0), kind)
    parts = zip(held, blocks(due, 64, columns))
    return sum(int((as_matrix(layout, part, columns) != want).sum()) for part, want in parts)


def by_metadata(case: Case, halves: Array, rng: Any) -> Array:
    """The metadata register of each thread; those that are not read are random."""
    made = rng.integers(0, 1 << 16, (128, 2), dtype=np.uint16)
    made[place(wgmma_metadata(case.kind.itemsize, case.selector or 0), halves.shape)] = halves
    return made.view(np.uint32)[:, 0]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", help="groups of cases: types, swizzle, transposed, …")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--device", default="0")
    parser.add_argument("--assemble", action="store_true", help="make each cubin without a GPU, and end")
    chosen = parser.parse_args()
    device: object = int(chosen.device) if chosen.device.isdigit() else chosen.device
    found: dict[str, list[int]] = {}
    bad: list[str] = []
    began = time.perf_counter()
    for case in cases():
        if chosen.only and case.name not in chosen.only:
            continue
        try:
            wrong = len(kernel(case).cubin("sm_90a")) < 1 if chosen.assemble else run(case, device)
        except Exception as error:  # the other cases still have something to say
            wrong = -1
            if not bad:
                traceback.print_exc()
            bad.append(f"{case}: {type(error).__name__}: {error}".splitlines()[0])
        row = found.setdefault(f"{case.name:15} {case.kind.result}{case.kind.a}{case.kind.b}", [0, 0])
        row[0] += 1
        row[1] += bool(wrong)
        if wrong > 0:
            bad.append(f"{case}: {wrong} of {case.rows * case.n * case.repeat} elements are wrong")
    for name, (count, wrong) in found.items():
        print(f"{name:40} {count:4} cases  {'right' if not wrong else f'{wrong} WRONG'}")
    print(*bad[:20], sep="\n")
    print(f"{time.perf_counter() - began:.1f} s")
    if chosen.json is not None:
        record = {"command": sys.argv, "cases": found, "wrong": bad, "version": pt.__version__}
        chosen.json.write_text(json.dumps(record, indent=1) + "\n")
    return bool(bad)


if __name__ == "__main__":
    raise SystemExit(main())
