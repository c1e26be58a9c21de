"""Matrices in shared memory as the fifth generation's tensor cores read them: their descriptors (PTX ISA 9.7.16.4).

The canonical layouts are wgmma's; the 64 bits differ: bits 46 to 48 are 0b001, the swizzle has three bits at 61.
Sources: PTX ISA 9.7.16.4.1; CUTLASS include/cute/arch/mma_sm100_desc.hpp (SmemDescriptor); Modular's MMASmemDescriptor.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ptxtile.builder import addresses, convert
from ptxtile.builder.storage import Memory
from ptxtile.builder.tensors import Tensor
from ptxtile.builder.trace import Trace
from ptxtile.errors import LayoutError, OperandError
from ptxtile.ir.operand import Address, Integer, Operand, Register
from ptxtile.layout.descriptor import MatrixDescriptor, wgmma_descriptor
from ptxtile.tile import operand
from ptxtile.tile.operand import Split
from ptxtile.tile.wgmma_matrix import Descriptors, Matrix, matrix

_MODES = {0: 0, 128: 2, 64: 4, 32: 6}
_VERSION = 1 << 46
_KEY = "tcgen05 descriptor's high half"


def bits(found: MatrixDescriptor) -> int:
    """The 64 bits of a descriptor, the start address being 0."""
    return found.leading >> 4 << 16 | found.stride >> 4 << 32 | _VERSION | _MODES[found.swizzle] << 61


def operand_matrix(
    trace: Trace, what: str, given: object, atom: tuple[int, int], kind: str, format_: str
) -> Matrix:
    """A or B of tcgen05.mma: (rows, k) of one instruction. LayoutError for what no descriptor says: MN-major are 16-bit
    elements and the 8-bit types alone, not those of six and four bits in bytes."""
    narrow = format_ in ("e2m3", "e3m2", "e2m1")
    return matrix(trace, what, given, atom, kind, () if narrow else (1, 2))


def descriptors(trace: Trace, made: Matrix) -> Descriptors:
    """Those of the repeats of A or B."""
    return Descriptors(trace, _KEY, bits(made.descriptor), made.low, made.offsets)


def copy_descriptor(
    trace: Trace, what: str, given: object, atom: tuple[int, int], parts: Split
) -> Sequence[Operand]:
    """The descriptor of each repeat of a tensor (*repeats, rows, words) in shared memory."""
    if not isinstance(given, Tensor) or not isinstance(given.bound, Memory) or given.space != "shared":
        raise OperandError(f"{what} takes a tensor in shared memory, not {convert.given(given)}")
    if given.dtype.itemsize != 4:
        raise OperandError(f"{what} takes words of 32 bits, not {given.dtype.name}: view(…) it as uint32")
    shape = given.static_shape
    if shape != (*parts.repeat, *atom):
        raise OperandError(f"{what} has shape {shape}; {(*parts.repeat, *atom)} is due")
    operand.prove_claims(trace, what, given)
    assert given.layout is not None
    zeros = (0,) * len(parts.repeat)
    one = given.layout.slice(shape, (*zeros, 0, 0), (*(1,) * len(zeros), *atom))
    found = wgmma_descriptor(what, one, atom, 4)
    if found.major != "k" or given.bound.alignment % found.alignment:
        raise LayoutError(
            f"{what}: the matrix is K-major, and its memory aligned to {found.alignment} bytes (align=)"
        )
    offset, rows = operand.tables(given.layout, shape)["m"]
    address = addresses.address(trace, given.bound, given.origin.plus(offset), 4)
    base = (
        address.base
        if isinstance(address.base, Register)
        else addresses.in_register(trace, Address(address.base))
    )
    low = trace.register("b32")
    trace.instruction("bfe.u32", low, base, Integer(4), Integer(14))
    steps = [address.offset + 4 * sum(values) for values in itertools.product(*rows[: len(zeros)])]
    line = found.swizzle or 16
    if any(step % 16 or step % found.alignment >= line for step in steps):
        raise LayoutError(
            f"{what}: each copy starts in the first of eight lines of {line} bytes, at a multiple of 16 bytes"
        )
    made = Descriptors(trace, _KEY, bits(found), low, [steps])
    return [made.at(0, step) for step in range(len(steps))]
