"""A and B of wgmma in shared memory: one descriptor, and the start address of each repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ptxtile.builder import addresses, convert, ranges
from ptxtile.builder.storage import Memory
from ptxtile.builder.tensors import Tensor
from ptxtile.builder.trace import Trace
from ptxtile.errors import LayoutError, OperandError, TileError
from ptxtile.ir.operand import Address, Integer, Register, Vector
from ptxtile.isa import find
from ptxtile.layout.descriptor import MatrixDescriptor, wgmma_descriptor
from ptxtile.tile import operand

_CARRIERS = {
    ".f16": ("float16", "uint16"),
    ".bf16": ("bfloat16", "uint16"),
    ".tf32": ("float32", "uint32"),
    ".e4m3": ("float8_e4m3fn", "uint8"),
    ".e5m2": ("float8_e5m2", "uint8"),
    ".s8": ("int8", "uint8"),
    ".u8": ("uint8",),
    ".b1": ("uint8",),
}


@dataclass(frozen=True, slots=True)
class Matrix:
    """A or B in shared memory: its descriptor, and where each repeat starts.

    low      the register of the start address / 16, base of all repeats
    offsets  bytes from there, by (row repeat, k repeat)
    """

    descriptor: MatrixDescriptor
    low: Register
    offsets: tuple[tuple[int, ...], ...]

    @property
    def steps(self) -> int:
        """Repeats along K."""
        return len(self.offsets[0])


def matrix(
    trace: Trace, what: str, given: object, atom: tuple[int, int], kind: str, mn_major: Sequence[int] = (2,)
) -> Matrix:
    """The matrix of an operand whose elements have the form's type `kind`; one instruction reads `atom`: (rows, k).

    Raises:
        OperandError, TileError: it is no matrix in shared memory of that type, or of another shape.
        LayoutError: no descriptor says where it lies.
    """
    rows, k = atom
    if not isinstance(given, Tensor) or not isinstance(given.bound, Memory) or given.space != "shared":
        raise OperandError(f"{what} takes a tensor in shared memory, not {convert.given(given)}")
    if given.dtype.name not in _CARRIERS[kind]:
        raise OperandError(f"{what} takes elements of {' or '.join(_CARRIERS[kind])}, not {given.dtype.name}")
    shape = given.static_shape
    if len(shape) != 2 or shape[0] % rows or shape[1] % k:
        raise TileError(f"{what} has shape {shape}; it takes (a multiple of {rows}, a multiple of {k})")
    operand.prove_claims(trace, what, given)
    assert given.layout is not None
    itemsize = given.dtype.itemsize
    found = wgmma_descriptor(what, given.layout.slice(shape, (0, 0), atom), atom, itemsize, mn_major)
    offset, tables = operand.tables(given.layout, shape)["m"]
    starts = tuple(
        tuple(tables[0][i] + tables[1][j] for j in range(0, shape[1], k)) for i in range(0, shape[0], rows)
    )
    _check_equal(what, tables, atom)
    _check_start(trace, what, given, found, starts)
    address = addresses.address(trace, given.bound, given.origin.plus(offset), itemsize)
    low = _low(trace, address)
    extra = address.offset if isinstance(address.base, Register) else 0
    return Matrix(found, low, tuple(tuple(extra + at * itemsize for at in line) for line in starts))


def _check_equal(what: str, tables: Sequence[Sequence[int]], atom: tuple[int, int]) -> None:
    """Every repeat has the first one's form."""
    for table, size in zip(tables, atom):
        for start in range(0, len(table), size):
            if any(table[start + at] - table[start] != table[at] - table[0] for at in range(size)):
                raise LayoutError(f"{what}: its tiles of {size} are not laid out alike in shared memory")


def _check_start(
    trace: Trace, what: str, tensor: Tensor, found: MatrixDescriptor, starts: Sequence[Sequence[int]]
) -> None:
    """The start of each block of eight lines is aligned; along a line of a swizzled matrix any chunk may be first."""
    due, itemsize = found.alignment, tensor.dtype.itemsize
    if tensor.bound.alignment % due:
        raise LayoutError(
            f"{what}: a matrix with swizzle {found.swizzle} needs memory aligned to {due} bytes, and this is aligned "
            f"to {tensor.bound.alignment} (align=)"
        )
    assert tensor.layout is not None
    offset, _ = operand.tables(tensor.layout, tensor.static_shape)["m"]
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


def _low(trace: Trace, address: Address) -> Register:
    base = address.base if isinstance(address.base, Register) else addresses.in_register(trace, address)
    key = ("wgmma descriptor", address.base, 0 if isinstance(address.base, Register) else address.offset)
    found = trace.computed(key)
    if found is None:
        found = trace.register("b32")
        trace.instruction("bfe.u32", found, base, Integer(4), Integer(14))
        trace.remember_value(key, found)
    return found


class Descriptors:
    """The descriptors of a matrix's repeats, each made where it is used: `add.u32 part, low, constant` and
    `mov.b64 descriptor, {part, high}`. `bits` are the 64 of the first, its start address being 0; `key` names the upper
    half, which is moved into a register once."""

    def __init__(
        self, trace: Trace, key: str, bits: int, low: Register, offsets: Sequence[Sequence[int]]
    ) -> None:
        self._trace, self._key, self._bits, self._low, self._offsets = trace, key, bits, low, offsets
        self._add = trace.repeated(find("add.u32"), ("b32", "b32", "int"))
        self._mov = trace.repeated(find("mov.b64"), ("b64", ("{", "b32", "b32")))
        self._high: Register | None = None

    def at(self, row: int, step: int) -> Register:
        """That of one repeat, in a new register."""
        trace = self._trace
        high = self._high = self._high or upper_half(trace, self._key, self._bits)
        part, made = trace.register("b32"), trace.register("b64")
        self._add((part, self._low, Integer((self._bits & 0xFFFFFFFF) + (self._offsets[row][step] >> 4))))
        self._mov((made, Vector((part, high))))
        return made


def upper_half(trace: Trace, key: str, bits: int) -> Register:
    """The upper 32 of 64 bits in a register, the same one in an open block."""
    found = trace.computed((key, bits >> 32))
    if found is None:
        found = trace.register("b32")
        trace.instruction("mov.b32", found, Integer(bits >> 32))
        trace.remember_value((key, bits >> 32), found)
    return found


def descriptors(trace: Trace, made: Matrix) -> Descriptors:
    """Those of wgmma."""
    key = "wgmma descriptor's high half"
    return Descriptors(trace, key, made.descriptor.bits, made.low, made.offsets)
