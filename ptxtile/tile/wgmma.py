"""wgmma over tiles: descriptors derived from the layouts of A and B in shared memory (PTX ISA 9.7.15.5, 9.7.15.6).

Operands, at warpgroup scope:
    d     registers (4, 32, *(M / 64, N / n), registers of one instruction); the two repeat axes are left out together
          where both are 1. Or the matrix itself, (M, N) of 32-bit elements in `fragment.wgmma_accumulator`, for a .f16
          result (M, N / 2) words in `fragment.wgmma_words`
    a     shared memory (M, K), K-major or (16-bit types) MN-major; or registers (4, 32, *(M / 64, K / k), 4), or a
          matrix of words (M, K * bytes / 4) in `fragment.wgmma_words(8)`
    b     shared memory (N, K), K-major or (16-bit types) MN-major
    meta  sparse forms: registers (4, 32, *(M / 64, K / k), 1) of uint32; a has K / 2 columns
One instruction for each (M, N, K) repeat, K innermost, the later ones accumulating: `scale_d` is of the first.
Nothing else is added: wgmma.fence, commit_group and wait_group are the caller's. Single bits lie eight in a uint8, so
that K counts bytes.

Descriptors: `bfe.u32 low, address, 4, 14` once an operand, then for each issue `add.u32 part, low, offset >> 4 +
leading << 16` and `mov.b64 descriptor, {part, high}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ptxtile.builder import convert
from ptxtile.builder.storage import Registers
from ptxtile.builder.tensors import Tensor
from ptxtile.builder.trace import Trace
from ptxtile.dtypes import Scalar, bool_
from ptxtile.errors import OperandError, TileError
from ptxtile.ir.operand import Integer, Operand, Vector
from ptxtile.isa import type_bits
from ptxtile.isa.form import Form, Signature
from ptxtile.layout.fragment import wgmma_accumulator, wgmma_words
from ptxtile.tile import overlap
from ptxtile.tile.family import Call, Family, Parameter
from ptxtile.tile.wgmma_matrix import Matrix, descriptors, matrix
from ptxtile.tile.wgmma_registers import ROWS, fragments

_SHAPE = re.compile(r"\.m64n(\d+)k(\d+)")
_TYPES = {".f16", ".bf16", ".f32", ".tf32", ".e4m3", ".e5m2", ".s8", ".u8", ".s32", ".b1"}
_RESULTS = {".f32": ("float32",), ".f16": ("uint32",), ".s32": ("int32", "uint32")}
_ORDER = "d, a, b"
_SPARSE_ORDER = "d, a, b, metadata"


@dataclass(frozen=True, slots=True)
class Shape:
    """What one instruction multiplies.

    n         columns of D
    k         columns of B as elements of shared memory; of A half of them where it is sparse
    result    type of D, with its dot
    kinds     types of A and B
    sparse    whether A is
    """

    n: int
    k: int
    result: str
    kinds: tuple[str, str]
    sparse: bool

    @property
    def itemsize(self) -> int:
        """Bytes of an element in shared memory: single bits lie eight in a byte."""
        return max(type_bits(self.kinds[0]) // 8, 1)

    @property
    def k_a(self) -> int:
        """Stored columns of A: 32 bytes."""
        return self.k // 2 if self.sparse else self.k


def _shape(form: Form) -> Shape:
    found = next(part for part in map(_SHAPE.fullmatch, form.modifiers) if part)
    result, first, second = (part for part in form.modifiers if part in _TYPES)
    bits = type_bits(first)
    columns = int(found[2]) // 8 if bits < 8 else int(found[2])
    return Shape(int(found[1]), columns, result, (first, second), ".sp" in form.modifiers)


def issue(call: Call) -> None:
    """See the module's docstring. TileError, LayoutError for what the hardware cannot do."""
    trace, form, group = call.trace, call.form, call.group
    if group.scope != "warpgroup" or group.extents != (4, 32):
        raise TileError(
            f'{form.spelling} is done by a whole warpgroup: scope="warpgroup" with its 128 threads active'
        )
    if call.pred is not None or call.preserve_dst:
        raise TileError(f"{form.spelling} takes no pred=: all warps of the warpgroup execute it")
    shape = _shape(form)
    if not shape.sparse and "sp_sel" in call.parameters:
        raise TileError(f"{form.spelling} has no metadata, so no sp_sel=: it is of the sparse forms")
    d, a, b, *more = call.take(4 if shape.sparse else 3, _SPARSE_ORDER if shape.sparse else _ORDER)
    from_registers = isinstance(a, Tensor) and isinstance(a.bound, Registers)
    signature = next(s for s in form.signatures if (s.operands[1].kind == "vector") is from_registers)
    right = matrix(trace, f"{form.spelling}: operand b", b, (shape.n, shape.k), shape.kinds[1])
    left = _left(call, a, shape, from_registers)
    steps = len(left[0]) if isinstance(left, list) else len(left.offsets[0])
    if steps != right.steps:
        half = " / 2" if shape.sparse else ""
        raise TileError(
            f"{form.spelling}: a has {steps * shape.k_a} columns and b has {right.steps * shape.k}: a has K{half}, b K"
        )
    rows = len(left) if isinstance(left, list) else len(left.offsets)
    meta = _metadata(call, more[0], (rows, steps)) if more else None
    results = _results(call, d, shape, signature, (rows, len(right.offsets)))
    scale, signs = _scales(trace, form, call.parameters)
    tails = _tails(form, signature, signs, left, right)
    selector = () if meta is None else (Integer(_selector(call)),)
    lefts = left if isinstance(left, list) else descriptors(trace, left)
    rights = descriptors(trace, right)
    appends: list[Callable[[tuple[Operand, ...]], None]] = []
    for row, line in enumerate(results):
        for column, result in enumerate(line):
            for step in range(steps):
                one = lefts[row][step] if isinstance(lefts, list) else lefts.at(row, step)
                other = rights.at(column, step)
                data = () if meta is None else (meta[row][step], *selector)
                words = (result, one, other, *data, scale if step == 0 else Integer(1), *tails)
                if len(appends) <= bool(
                    step
                ):  # the first K repeat, whose scale may be a register, and the others
                    appends.append(trace.repeated(form, tuple(word.shape for word in words)))
                appends[bool(step)](words)


def _left(call: Call, a: object, shape: Shape, from_registers: bool) -> list[list[Operand]] | Matrix:
    what = f"{call.form.spelling}: operand a"
    if not from_registers:
        return matrix(call.trace, what, a, (ROWS, shape.k_a), shape.kinds[0])
    allowed = ("uint32", "float32") if shape.kinds[0] == ".tf32" else ("uint32",)
    rows = fragments(what, a, call.group, 4, wgmma_words(8), None, allowed)
    return [[Vector(tuple(registers)) for registers in line] for line in rows]


def _metadata(call: Call, given: object, repeats: tuple[int, int]) -> list[list[Operand]]:
    what = f"{call.form.spelling}: the metadata"
    if isinstance(given, Scalar) and repeats == (1, 1) and given.value is None:
        call.trace.live(given, call.form.spelling)
        assert given.operand is not None
        return [[given.operand]]  # type: ignore[list-item]
    rows = fragments(what, given, call.group, 1, None, repeats, ("uint32",))
    return [[registers[0] for registers in line] for line in rows]


def _results(
    call: Call, d: object, shape: Shape, signature: Signature, repeats: tuple[int, int]
) -> list[list[Vector]]:
    what = f"{call.form.spelling}: operand d"
    count = signature.operands[0].length
    fragment = wgmma_words(shape.n // 2) if shape.result == ".f16" else wgmma_accumulator(shape.n)
    made = fragments(what, d, call.group, count, fragment, repeats, _RESULTS[shape.result])
    overlap.check_distinct(what, [registers for line in made for registers in line])
    return [[Vector(tuple(registers)) for registers in line] for line in made]


# --- immediates -----------------------------------------------------------------------------------------------------
def _scales(trace: Trace, form: Form, parameters: Mapping[str, object]) -> tuple[Operand, tuple[int, int]]:
    scale: object = parameters.get("scale_d", True)
    if isinstance(scale, (bool, bool_)) and not (isinstance(scale, Scalar) and scale.value is None):
        word: Operand = Integer(int(bool(scale.value if isinstance(scale, Scalar) else scale)))
    elif isinstance(scale, bool_):
        trace.live(scale, form.spelling)
        word = scale.operand  # type: ignore[assignment]
    else:
        raise OperandError(
            f"{form.spelling}: scale_d= is True, False or a run-time bool_, not {convert.given(scale)}"
        )
    signs = []
    for name in ("scale_a", "scale_b"):
        sign = parameters.get(name, 1)
        if isinstance(sign, bool) or sign not in (1, -1):
            raise OperandError(f"{form.spelling}: {name}= is 1 or -1, not {sign!r}")
        signs.append(1 if sign == 1 else -1)
    return word, (signs[0], signs[1])


def _selector(call: Call) -> int:
    """Which pair of each four lanes holds the metadata."""
    given = call.parameters.get("sp_sel", 0)
    slot = next(slot for slot in call.form.signatures[0].operands if slot.name == "sp_sel")
    if isinstance(given, bool) or not isinstance(given, int) or given not in slot.choices:
        allowed = " or ".join(map(str, slot.choices))
        raise OperandError(f"{call.form.spelling}: sp_sel= is {allowed}, not {given!r}")
    return given


def _tails(
    form: Form,
    signature: Signature,
    signs: tuple[int, int],
    left: list[list[Operand]] | Matrix,
    right: Matrix,
) -> list[Operand]:
    """imm_scale_a, imm_scale_b, imm_trans_a, imm_trans_b, as far as the form has them."""
    values = {
        "imm_scale_a": signs[0],
        "imm_scale_b": signs[1],
        "imm_trans_a": int(isinstance(left, Matrix) and left.descriptor.major == "mn"),
        "imm_trans_b": int(right.descriptor.major == "mn"),
    }
    names = [slot.name for slot in signature.operands]
    for name in ("scale_a", "scale_b"):
        if f"imm_{name}" not in names and values[f"imm_{name}"] != 1:
            raise TileError(f"{form.spelling} negates neither A nor B: {name}= is 1")
    return [Integer(values[name]) for name in names if name in values]


FAMILY = Family(
    name="wgmma",
    section="9.7.15.5",
    starts=("wgmma.mma_async.",),
    operands=(_ORDER, f"sparse: {_SPARSE_ORDER}"),
    atoms="d: the registers of one instruction; a: (M, K) in shared memory, or 4 registers; b: (N, K) in shared "
    "memory; metadata: a register. d and a in registers may also be matrices in layout.fragment's layouts",
    carriers="d float32, int32, or uint32 (pairs of float16); a and b the form's own types or unsigned integers of "
    "their width; a in registers uint32",
    parameters=(
        Parameter("scale_d", "False: d is not added to, in the first K repeat; True, or a run-time bool_"),
        Parameter("scale_a", "1 or -1"),
        Parameter("scale_b", "1 or -1"),
        Parameter("sp_sel", "sparse: 0 or 1, the pair of each four lanes that holds the metadata"),
    ),
    guards="none",
    scopes="warpgroup",
    judges=("ptxas", "emulator", "H200"),
    issue=issue,
)
