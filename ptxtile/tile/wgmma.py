"""wgmma over tiles: descriptors derived from the layouts of A and B in shared memory (PTX ISA 9.7.15.5).

Operands, at warpgroup scope:
    d    registers (4, 32, *(M / 64, N / n), registers of one instruction); the two repeat axes are left out together
         where both are 1
    a    shared memory (M, K), K-major or (16-bit types) MN-major; or registers (4, 32, *(M / 64, K / k), 4)
    b    shared memory (N, K), K-major or (16-bit types) MN-major
One instruction for each (M, N, K) repeat, K innermost, the later ones accumulating: `scale_d` is of the first.
Nothing else is added: wgmma.fence, commit_group and wait_group are the caller's.

Descriptors: `bfe.u32 low, address, 4, 14` once an operand, then for each issue `add.u32 part, low, offset >> 4 +
leading << 16` and `mov.b64 descriptor, {part, high}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ptxtile.builder import addresses, convert, ranges
from ptxtile.builder.storage import Memory, Registers
from ptxtile.builder.tensors import Tensor
from ptxtile.builder.trace import Trace
from ptxtile.dtypes import Scalar, bool_
from ptxtile.errors import LayoutError, OperandError, TileError
from ptxtile.ir.operand import Address, Integer, Operand, Register, Vector
from ptxtile.isa import bind, type_bits
from ptxtile.isa.form import Form, Signature
from ptxtile.layout.descriptor import MatrixDescriptor, wgmma_descriptor
from ptxtile.tile import operand, overlap
from ptxtile.tile.scope import Group

PARAMETERS = ("scale_d", "scale_a", "scale_b")
_SHAPE = re.compile(r"\.m64n(\d+)k(\d+)")


@dataclass(frozen=True, slots=True)
class Matrix:
    """A or B in shared memory: its descriptor, and where each repeat starts.

    low      the register of the start address / 16, base of all repeats
    offsets  bytes from there, by (row repeat, k repeat)
    """

    descriptor: MatrixDescriptor
    low: Register
    offsets: tuple[tuple[int, ...], ...]


def is_wgmma(form: Form) -> bool:
    """Whether the form is a dense wgmma.mma_async."""
    return form.spelling.startswith("wgmma.mma_async.sync")


def apply(
    trace: Trace,
    form: Form,
    operands: Sequence[object],
    group: Group,
    pred: object,
    preserve_dst: bool,
    parameters: Mapping[str, object],
) -> None:
    """See the module's docstring. TileError, LayoutError for what the hardware cannot do."""
    if group.scope != "warpgroup" or group.extents != (4, 32):
        raise TileError(
            f'{form.spelling} is done by a whole warpgroup: scope="warpgroup" with its 128 threads active'
        )
    if pred is not None or preserve_dst:
        raise TileError(f"{form.spelling} takes no pred=: all warps of the warpgroup execute it")
    if len(operands) != 3:
        raise OperandError(
            f"{form.spelling} takes 3 operands (d, a, b); {convert.counted(len(operands))} given"
        )
    n, k = _extents(form)
    d, a, b = operands
    from_registers = isinstance(a, Tensor) and isinstance(a.bound, Registers)
    signature = _signature(form, from_registers)
    width = type_bits(_operand_type(form)) // 8
    right = _matrix(trace, f"{form.spelling}: operand b", b, n, k, width)
    left = _registers_a(form, a, group) if from_registers else None
    matrix = None if from_registers else _matrix(trace, f"{form.spelling}: operand a", a, 64, k, width)
    held = left if left is not None else matrix.offsets if matrix is not None else ()
    if len(held[0]) != len(right.offsets[0]):
        raise TileError(
            f"{form.spelling}: a has {len(held[0]) * k} columns and b has {len(right.offsets[0]) * k}: K is the "
            "same in both"
        )
    results = _accumulators(form, d, group, signature, (len(held), len(right.offsets)))
    scale, signs = _scales(trace, form, parameters)
    tails = _tails(form, signature, signs, matrix, right)
    for row, line in enumerate(results):
        for column, registers in enumerate(line):
            for step in range(len(right.offsets[0])):
                first = left[row][step] if left is not None else _descriptor(trace, matrix, row, step)
                second = _descriptor(trace, right, column, step)
                words = (Vector(tuple(registers)), first, second, scale if step == 0 else Integer(1), *tails)
                bound = bind(form, tuple(word.shape for word in words))
                trace.append(form, bound, words)


def _extents(form: Form) -> tuple[int, int]:
    shape = next(found for found in map(_SHAPE.fullmatch, form.modifiers) if found)
    return int(shape[1]), int(shape[2])


def _operand_type(form: Form) -> str:
    """The type of an element of A."""
    types = [part for part in form.modifiers if part in _TYPES]
    return types[1]


_TYPES = {".f16", ".bf16", ".f32", ".tf32", ".e4m3", ".e5m2", ".s8", ".u8", ".s32", ".b1"}


def _signature(form: Form, from_registers: bool) -> Signature:
    return next(s for s in form.signatures if (s.operands[1].kind == "vector") is from_registers)


# --- registers ------------------------------------------------------------------------------------------------------
def _rows(
    what: str, tensor: object, group: Group, length: int, repeats: tuple[int, int] | None
) -> list[list[list[Register]]]:
    """The registers of each of two repeat axes."""
    if not isinstance(tensor, Tensor) or not isinstance(tensor.bound, Registers):
        raise OperandError(f"{what} takes a register tensor, not {convert.given(tensor)}")
    if tensor.dtype.itemsize != 4:
        raise OperandError(f"{what} takes registers of 32 bits, not {tensor.dtype.name}")
    parts = operand.split(what, tensor, group, (length,))
    operand.check_owner(what, tensor, group)
    repeat = parts.repeat or (1, 1)
    if len(repeat) != 2 or (repeats is not None and repeat != repeats):
        due = f"{repeats}" if repeats else "two"
        raise TileError(f"{what} has repeats {parts.repeat}; {due} are due, rows and then columns")
    issues = operand.issue_registers(tensor, parts)
    return [issues[at * repeat[1] : (at + 1) * repeat[1]] for at in range(repeat[0])]


def _accumulators(
    form: Form, d: object, group: Group, signature: Signature, repeats: tuple[int, int]
) -> list[list[list[Register]]]:
    what = f"{form.spelling}: operand d"
    made = _rows(what, d, group, signature.operands[0].length, repeats)
    overlap.check_destination(what, [registers for line in made for registers in line])
    return made


def _registers_a(form: Form, a: object, group: Group) -> list[list[Operand]]:
    rows = _rows(f"{form.spelling}: operand a", a, group, 4, None)
    return [[Vector(tuple(registers)) for registers in line] for line in rows]


# --- shared memory --------------------------------------------------------------------------------------------------
def _matrix(trace: Trace, what: str, given: object, rows: int, k: int, itemsize: int) -> Matrix:
    if not isinstance(given, Tensor) or not isinstance(given.bound, Memory) or given.space != "shared":
        raise OperandError(f"{what} takes a tensor in shared memory, not {convert.given(given)}")
    if given.dtype.itemsize != itemsize:
        raise OperandError(
            f"{what} takes elements of {itemsize * 8} bits, and the tensor's are {given.dtype.name}"
        )
    shape = given.static_shape
    if len(shape) != 2 or shape[0] % rows or shape[1] % k:
        raise TileError(f"{what} has shape {shape}; it takes (a multiple of {rows}, a multiple of {k})")
    operand.prove_claims(trace, what, given)
    assert given.layout is not None
    atom = given.layout.slice(shape, (0, 0), (rows, k))
    found = wgmma_descriptor(what, atom, (rows, k), itemsize)
    offset, tables = operand.tables(given.layout, shape)["m"]
    starts = tuple(
        tuple(tables[0][i] + tables[1][j] for j in range(0, shape[1], k)) for i in range(0, shape[0], rows)
    )
    _check_equal(what, tables, rows, k)
    _check_start(trace, what, given, offset, found, starts, itemsize)
    place = given.origin.plus(offset)
    address = addresses.address(trace, given.bound, place, itemsize)
    low = _low(trace, given.bound, address)
    extra = address.offset if isinstance(address.base, Register) else 0
    return Matrix(found, low, tuple(tuple(extra + at * itemsize for at in line) for line in starts))


def _check_equal(what: str, tables: Sequence[Sequence[int]], rows: int, k: int) -> None:
    """Every repeat has the first one's form."""
    for table, size in zip(tables, (rows, k)):
        for start in range(0, len(table), size):
            if any(table[start + at] - table[start] != table[at] - table[0] for at in range(size)):
                raise LayoutError(f"{what}: its tiles of {size} are not laid out alike in shared memory")


def _check_start(
    trace: Trace,
    what: str,
    tensor: Tensor,
    offset: int,
    found: MatrixDescriptor,
    starts: Sequence[Sequence[int]],
    itemsize: int,
) -> None:
    """The start of each block of eight lines is aligned; along a line of a swizzled matrix any chunk may be first."""
    due = found.alignment
    if tensor.bound.alignment % due:
        raise LayoutError(
            f"{what}: a matrix with swizzle {found.swizzle} needs memory aligned to {due} bytes, and this is aligned "
            f"to {tensor.bound.alignment} (align=)"
        )
    facts = [fact for known in trace.facts() for fact in ranges.facts_of(known)]
    line = found.swizzle or 16
    origin = tensor.origin.plus(offset)
    inside = origin.constant * itemsize % due
    moving = ranges.constant(0).plus(origin).plus(-origin.constant)
    bad = not ranges.divisible(moving, due // itemsize, facts)
    for start in (at * itemsize for row in starts for at in row):
        bad = bad or (inside + start) % due >= line or (inside + start) % 16 != 0
    if bad:
        raise LayoutError(
            f"{what}: the region must start in the first of eight lines of {line} bytes, at a multiple of 16 bytes, "
            f"and that is not proven of its start at element {origin}"
        )


def _low(trace: Trace, memory: Memory, address: Address) -> Register:
    base = address.base if isinstance(address.base, Register) else addresses.in_register(trace, address)
    key = ("wgmma descriptor", address.base, 0 if isinstance(address.base, Register) else address.offset)
    found = trace.computed(key)
    if found is None:
        found = trace.register("b32")
        trace.instruction("bfe.u32", found, base, Integer(4), Integer(14))
        trace.remember_value(key, found)
    return found


def _descriptor(trace: Trace, matrix: Matrix | None, row: int, step: int) -> Register:
    assert matrix is not None
    bits = matrix.descriptor.bits
    high_key = ("wgmma descriptor's high half", bits >> 32)
    high = trace.computed(high_key)
    if high is None:
        high = trace.register("b32")
        trace.instruction("mov.b32", high, Integer(bits >> 32))
        trace.remember_value(high_key, high)
    part, made = trace.register("b32"), trace.register("b64")
    constant = (bits & 0xFFFFFFFF) + (matrix.offsets[row][step] >> 4)
    trace.instruction("add.u32", part, matrix.low, Integer(constant))
    trace.instruction("mov.b64", made, Vector((part, high)))
    return made


# --- immediates -----------------------------------------------------------------------------------------------------
def _scales(trace: Trace, form: Form, parameters: Mapping[str, object]) -> tuple[Operand, tuple[int, int]]:
    scale: object = parameters.get("scale_d", True)
    if isinstance(scale, (bool, bool_)) and not (isinstance(scale, Scalar) and scale.value is None):
        word: Operand = Integer(int(bool(scale.value if isinstance(scale, Scalar) else scale)))
    elif isinstance(scale, bool_):
        trace.live(scale, form.spelling)
        assert isinstance(scale.operand, Register)
        word = scale.operand
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


def _tails(
    form: Form, signature: Signature, signs: tuple[int, int], left: Matrix | None, right: Matrix
) -> list[Operand]:
    """imm_scale_a, imm_scale_b, imm_trans_a, imm_trans_b, as far as the form has them."""
    values = {
        "imm_scale_a": signs[0],
        "imm_scale_b": signs[1],
        "imm_trans_a": int(left is not None and left.descriptor.major == "mn"),
        "imm_trans_b": int(right.descriptor.major == "mn"),
    }
    names = [slot.name for slot in signature.operands[4:]]
    for name, value in values.items():
        if name not in names and value not in (0, 1 if name.startswith("imm_scale") else 0):
            raise TileError(f"{form.spelling} has no {name}: A and B are K-major and not negated")
    return [Integer(values[name]) for name in names]
