"""Fragment layouts, element by element, through the instructions themselves.

    python benchmarks/device_fragments.py [--device 0|emulator] [--match m16n8k16] [--json FILE]

mma: A holds values and B is one-hot, so that each D is one element of A, and the other way around: a wrong lane or
register of any of the three fragments gives a wrong value. Sparse A: the same, the metadata naming elements 0 and 1
of each four. ldmatrix, stmatrix, movmatrix: every element of a matrix has a value of its own. The host packs and
unpacks by `ptxtile.layout.mma_fragment` alone. Prints what differs; the results stand in benchmarks/results/.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import ptxtile as pt
from ptxtile import S, laneid, tile
from ptxtile.layout.mma_fragment import Fragment, ldmatrix, per_lane, stmatrix
from ptxtile.tile import mma

TYPES: dict[str, tuple[Any, int, int]] = {  # NumPy dtype, bits of an element, greatest value used
    ".f16": (np.float16, 16, 2000), ".bf16": (ml_dtypes.bfloat16, 16, 250), ".tf32": (np.float32, 32, 1000),
    ".e4m3": (ml_dtypes.float8_e4m3fn, 8, 15), ".e5m2": (ml_dtypes.float8_e5m2, 8, 7), ".f64": (np.float64, 64, 10**6),
    ".s8": (np.int8, 8, 127), ".u8": (np.uint8, 8, 255), ".s4": (np.int8, 4, 7), ".u4": (np.uint8, 4, 15),
    ".b1": (np.uint8, 1, 1),
}  # fmt: skip
SUMS = {".f32": np.float32, ".f16": np.float16, ".s32": np.int32, ".f64": np.float64}
PAIRS = 0x44444444  # elements 0 and 1 of each four are there


def forms(match: str, target: str) -> list[pt.Form]:
    found = []
    for pattern in ("mma.sync.*", "mma.sp::ordered_metadata.*"):
        for spelling in pt.forms(pattern, target):
            words = spelling.split(".")
            plain = (
                not {"rz", "rm", "rp", "satfinite", "xor", "m8n8k4"} & set(words)
                or "m8n8k4.row.col.f64" in spelling
            )
            sparse_here = (
                "sp::ordered_metadata" not in words
                or {"f16", "bf16"} & set(words)
                or {"s8", "u8"} & set(words)
            )
            if plain and sparse_here and match in spelling and not {"rz", "rm", "rp"} & set(words):
                found.append(pt.validate(spelling))
    return found


def kernel(form: pt.Form, trials: int) -> Any:
    """One mma a block on words that lie by lane in global memory."""
    shapes = mma.shapes(form)
    dtype = pt.float64 if shapes.bits == 64 else pt.uint32
    counts = [fragment.registers for fragment in (shapes.d, shapes.a, shapes.b)]
    sparse = ".sp::ordered_metadata" in form.modifiers

    def body(D: Any, A: Any, B: Any) -> None:
        block, lane = pt.block_idx("x"), pt.lane_id()
        held = [
            pt.alloc_local(fragment.shape, dtype, layout=fragment.layout)
            for fragment in (shapes.d, shapes.a, shapes.b)
        ]
        flat = [
            each.view(32, count, layout=S[(32, count) : (1 @ laneid, 1)]) for each, count in zip(held, counts)
        ]
        words = f"b{dtype.bits}"
        for register, memory in ((flat[1], A), (flat[2], B)):
            for i in range(register.shape[1]):
                tile.apply(
                    f"ld.global.{words}", register[:, i : i + 1], memory[block][:, i : i + 1], scope="warp"
                )
        extra: tuple[object, ...] = ()
        if sparse:
            metadata = pt.alloc_local((32,), pt.uint32, layout=per_lane().layout)
            tile.apply("mov.b32", metadata.view(32, 1), PAIRS, scope="warp")
            extra = metadata, 0
        tile.apply(form, *held, 0, *extra, scope="warp")
        del lane
        for i in range(counts[0]):
            tile.apply(f"st.global.{words}", D[block][:, i : i + 1], flat[0][:, i : i + 1], scope="warp")

    body.__annotations__ = {name: pt.Tensor((trials, 32, count), dtype) for name, count in zip("DAB", counts)}
    body.__name__ = "fragments"
    return pt.kernel(grid=trials, block=32)(body)


def words_of(values: np.ndarray, bits: int) -> np.ndarray:
    """(…, rows, elements) as (…, rows, words): low bits first."""
    if bits == 64:
        return np.ascontiguousarray(values)
    if bits >= 8:
        return np.ascontiguousarray(values).view(np.uint32)
    parts = (values.astype(np.int64) & (1 << bits) - 1).astype(np.uint32)
    per = 32 // bits
    grouped = parts.reshape(*parts.shape[:-1], -1, per) << (bits * np.arange(per, dtype=np.uint32))
    return np.bitwise_or.reduce(grouped, axis=-1).astype(np.uint32)


def by_lane(words: np.ndarray, fragment: Fragment) -> np.ndarray:
    """(trials, *fragment.shape) as (trials, lane, register)."""
    made = np.zeros((len(words), 32, fragment.registers), words.dtype)
    for at in itertools.product(*map(range, fragment.shape)):
        where = fragment.layout.apply(*at, shape=fragment.shape)
        made[:, where["laneid"], where["m"]] = words[(slice(None), *at)]
    return made


def from_lanes(held: np.ndarray, fragment: Fragment) -> np.ndarray:
    made = np.zeros((len(held), *fragment.shape), held.dtype)
    for at in itertools.product(*map(range, fragment.shape)):
        where = fragment.layout.apply(*at, shape=fragment.shape)
        made[(slice(None), *at)] = held[:, where["laneid"], where["m"]]
    return made


def one_hot(trials: int, rows: int, k: int) -> np.ndarray:
    """Trial t: row r has its 1 in column t * rows + r."""
    made = np.zeros((trials, rows, k))
    for trial, row in itertools.product(range(trials), range(rows)):
        if trial * rows + row < k:
            made[trial, row, trial * rows + row] = 1
    return made


def check_mma(form: pt.Form, device: object, rng: np.random.Generator) -> int:
    """The number of elements that differ."""
    shapes = mma.shapes(form)
    names = [word for word in form.modifiers if word in TYPES or word in SUMS]
    (a_type, a_bits, a_most), (b_type, b_bits, b_most) = TYPES[names[1]], TYPES[names[2]]
    m, k = shapes.a.shape[0], shapes.b.shape[1] * (32 // b_bits if b_bits < 64 else 1)
    sparse = ".sp::ordered_metadata" in form.modifiers
    steps = -(-k // 8)
    most = min(a_most, b_most) if names[0] != ".f16" else min(a_most, b_most, 2000)
    a = np.zeros((2 * steps, m, k))
    b = np.zeros((2 * steps, 8, k))
    a[:steps] = rng.integers(0, most + 1, (steps, m, k))
    b[:steps] = one_hot(steps, 8, k)
    a[steps:] = one_hot(steps, m, k)
    b[steps:] = rng.integers(0, most + 1, (steps, 8, k))
    kept = a
    if sparse:  # elements 2 and 3 of each four are zero
        mask = np.arange(k) % 4 < 2
        a = a * mask
        kept = a[:, :, mask]
    due = np.einsum("tmk,tnk->tmn", a, b)
    left = by_lane(words_of(kept.astype(a_type), a_bits), shapes.a)
    right = by_lane(words_of(b.astype(b_type), b_bits), shapes.b)
    held = np.zeros((len(a), 32, shapes.d.registers), np.float64 if shapes.bits == 64 else np.uint32)
    kernel(form, len(a)).launch(held, left, right, device=device)
    found = np.ascontiguousarray(from_lanes(held, shapes.d)).view(SUMS[names[0]])
    return int(np.sum(found.astype(np.float64) != due))


# --- moves of matrices ------------------------------------------------------------------------------------------------
def check_move(count: int, trans: bool, store: bool, device: object) -> int:
    """ldmatrix from, or stmatrix to, distinct 16-bit elements: what each lane holds, by the layout."""
    fragment = (stmatrix if store else ldmatrix)("m8n8", count)
    name = ".trans" if trans else ""
    spelling = f"{'st' if store else 'ld'}matrix.sync.aligned.m8n8.x{count}{name}.shared.b16"

    def body(Matrix: Any, Words: Any) -> None:
        shared = pt.alloc_shared((count, 8, 8), pt.uint16)
        lane = pt.lane_id()
        r = pt.alloc_local(fragment.shape, pt.uint32, layout=fragment.layout)
        flat = r.view(32, count, layout=S[(32, count) : (1 @ laneid, 1)])
        row, half = lane % 8, lane // 8
        for i in range(count):
            for j in range(2):
                shared[i, row, half * 2 + j] = Matrix[i, row, half * 2 + j]
        pt.ptx.bar.warp.sync(pt.uint32(0xFFFFFFFF))
        for i in range(count):
            tile.apply("ld.global.b32", flat[:, i : i + 1], Words[:, i : i + 1], scope="warp")
        operands = (shared, r) if store else (r, shared)
        tile.apply(spelling, *operands, scope="warp")
        pt.ptx.bar.warp.sync(pt.uint32(0xFFFFFFFF))
        for i in range(count):
            tile.apply("st.global.b32", Words[:, i : i + 1], flat[:, i : i + 1], scope="warp")
            for j in range(2):
                Matrix[i, row, half * 2 + j] = shared[i, row, half * 2 + j]

    body.__annotations__ = {
        "Matrix": pt.Tensor((count, 8, 8), pt.uint16), "Words": pt.Tensor((32, count), pt.uint32),
    }  # fmt: skip
    matrix = np.arange(count * 64, dtype=np.uint16).reshape(count, 8, 8)
    turned = np.ascontiguousarray(matrix.transpose(0, 2, 1)) if trans else matrix
    words = by_lane(turned.view(np.uint32)[None], fragment)[0]
    there = np.zeros_like(matrix) if store else matrix.copy()
    held = words.copy() if store else np.zeros_like(words)
    pt.kernel(grid=1, block=32)(body).launch(there, held, device=device)
    return int(np.sum(there != matrix) + np.sum(held != words))


def check_movmatrix(device: object) -> int:
    def body(Words: Any) -> None:
        r = pt.alloc_local((8, 4), pt.uint32, layout=ldmatrix("m8n8", 1).layout.group((8, 4))[0])
        flat = r.view(32, 1)
        tile.apply("ld.global.b32", flat, Words, scope="warp")
        tile.apply("movmatrix.sync.aligned.m8n8.trans.b16", r, r, scope="warp")
        tile.apply("st.global.b32", Words, flat, scope="warp")

    body.__annotations__ = {"Words": pt.Tensor((32, 1), pt.uint32)}
    matrix = np.arange(64, dtype=np.uint16).reshape(8, 8)
    words = matrix.view(np.uint32).reshape(32, 1).copy()
    pt.kernel(grid=1, block=32)(body).launch(words, device=device)
    return int(np.sum(words.reshape(8, 4).view(np.uint16) != matrix.T))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--device", default="0")
    arguments.add_argument("--match", default="")
    arguments.add_argument("--target", default="sm_90a")
    arguments.add_argument("--json")
    given = arguments.parse_args()
    device = given.device if given.device == "emulator" else int(given.device)
    rng = np.random.default_rng(1)
    results: dict[str, int | str] = {}
    started = time.perf_counter()
    checks: list[tuple[str, Any]] = [
        (form.spelling, lambda form=form: check_mma(form, device, rng))
        for form in forms(given.match, given.target)
    ]
    for count, trans, store in itertools.product((1, 2, 4), (False, True), (False, True)):
        name = f"{'stmatrix' if store else 'ldmatrix'} m8n8 x{count}{' trans' if trans else ''}"
        checks.append(
            (name, lambda count=count, trans=trans, store=store: check_move(count, trans, store, device))
        )
    checks.append(("movmatrix m8n8 trans", lambda: check_movmatrix(device)))
    for name, check in checks:
        try:
            results[name] = check()
        except (pt.PtxtileError, ValueError) as error:
            results[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    bad = {name: found for name, found in results.items() if found != 0}
    print(
        f"{len(results) - len(bad)} of {len(results)} agree element by element, {time.perf_counter() - started:.1f} s"
    )
    for name, found in bad.items():
        print(f"  {name}: {found}")
    if given.json:
        where = str(pt.default_device()) if device != "emulator" else "emulator"
        Path(given.json).write_text(json.dumps({"device": where, "differences": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
