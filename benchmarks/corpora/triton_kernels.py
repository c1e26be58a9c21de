"""Kernels for the Triton compiler, and their PTX for targets that are not there: python triton_kernels.py FOLDER.

Runs in an environment that has Triton; needs no GPU. Writes FOLDER/NAME.sm_NN.ptx and prints Triton's version.
"""

import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    raised = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + at, raised / tl.sum(raised, axis=0), mask=at < columns)


@triton.jit
def layer_norm(x, weight, bias, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=0).to(tl.float32)
    mean = tl.sum(values, axis=0) / columns
    centred = tl.where(at < columns, values - mean, 0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + 1e-5)
    tl.store(
        out + row * columns + at,
        centred * scale * tl.load(weight + at) + tl.load(bias + at),
        mask=at < columns,
    )


@triton.jit
def matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        left = tl.load(a + rows[:, None] * k + start + inner[None, :])
        right = tl.load(b + (start + inner[:, None]) * n + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(c.dtype.element_ty))


@triton.jit
def histogram(x, out, BLOCK: tl.constexpr, BINS: tl.constexpr):
    values = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(out + tl.arange(0, BINS), tl.histogram(values, BINS))


@triton.jit
def scan(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.cumsum(tl.load(x + at), axis=0))


@triton.jit
def sort(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@triton.jit
def atomics(x, locks, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    while tl.atomic_cas(locks, 0, 1) == 1:
        pass
    tl.atomic_max(out + at, tl.load(x + at))
    tl.debug_barrier()
    tl.atomic_xchg(locks, 0)


@triton.jit
def dropout(x, out, n, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, at) > 0.5
    tl.store(out + at, tl.where(keep, tl.load(x + at, mask=at < n) * 2, 0.0), mask=at < n)


@triton.jit
def transpose(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tile = tl.load(x + at[:, None] * n + at[None, :])
    tl.store(out + at[:, None] * n + at[None, :], tl.trans(tile))


CASES = [
    (add, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 1024}),
    (add, {"x": "*bf16", "y": "*bf16", "out": "*bf16", "n": "i32"}, {"BLOCK": 512}),
    (add, {"x": "*i8", "y": "*i8", "out": "*i8", "n": "i64"}, {"BLOCK": 512}),
    (softmax, {"x": "*fp16", "out": "*fp16", "columns": "i32"}, {"BLOCK": 2048}),
    (
        layer_norm,
        {"x": "*fp16", "weight": "*fp32", "bias": "*fp32", "out": "*fp16", "columns": "i32"},
        {"BLOCK": 1024},
    ),
    *(
        (
            matmul,
            {"a": f"*{t}", "b": f"*{t}", "c": f"*{r}", "m": "i32", "n": "i32", "k": "i32"},
            {"M": 64, "N": 64, "K": 32},
        )
        for t, r in (("fp16", "fp16"), ("bf16", "fp32"), ("fp32", "fp32"), ("fp8e4nv", "fp32"))
    ),
    (histogram, {"x": "*i32", "out": "*i32"}, {"BLOCK": 512, "BINS": 64}),
    (scan, {"x": "*fp32", "out": "*fp32"}, {"BLOCK": 1024}),
    (sort, {"x": "*i32", "out": "*i32"}, {"BLOCK": 128}),
    (atomics, {"x": "*fp32", "locks": "*i32", "out": "*fp32"}, {"BLOCK": 128}),
    (dropout, {"x": "*fp32", "out": "*fp32", "n": "i32", "seed": "i32"}, {"BLOCK": 256}),
    (transpose, {"x": "*fp64", "out": "*fp64", "n": "i32"}, {"BLOCK": 32}),
]
TARGETS = (80, 89, 90, 100, 120)


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for number in TARGETS:
        for place, (kernel, signature, constants) in enumerate(CASES):
            whole = {**signature, **dict.fromkeys(constants, "constexpr")}
            places = list(whole)
            fixed = {(places.index(name),): value for name, value in constants.items()}
            source = ASTSource(kernel, whole, constexprs=fixed)
            try:
                made = triton.compile(source, target=GPUTarget("cuda", number, 32))
            except Exception as error:  # a type that the target lacks: what compiles is the corpus
                print(f"{kernel.__name__} {place} sm_{number}: {type(error).__name__}", file=sys.stderr)
                continue
            (folder / f"triton_{place:02}_{kernel.__name__}.sm_{number}.ptx").write_text(made.asm["ptx"])
    print(triton.__version__)


main()
