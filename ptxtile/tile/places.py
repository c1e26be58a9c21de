"""Memory operands of tile operations: what must be true of a region, and the addresses of its atoms.

An atom is a run of consecutive elements, aligned and in bounds; its address in each repeat is one base register plus a
constant number of bytes wherever the layout is linear, or its swizzle's period divides the distance between repeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ptxtile.builder import addresses, convert, elements, ranges
from ptxtile.builder.ranges import Comparison, Extent
from ptxtile.builder.storage import SPACES, Memory
from ptxtile.builder.tensors import Tensor
from ptxtile.builder.trace import Trace
from ptxtile.dtypes import Scalar
from ptxtile.errors import OperandError, TileError
from ptxtile.ir.operand import Address, addresses_from
from ptxtile.layout import ComposeLayout, Swizzle
from ptxtile.tile import operand
from ptxtile.tile.operand import Split


@dataclass(frozen=True, slots=True)
class Region:
    """A tensor in memory as an operand of an instruction.

    what       begins messages
    tensor     the region
    space      of the instruction, with its dot; "" is generic
    length     consecutive elements of an atom
    alignment  bytes, of the first element of each atom
    """

    what: str
    tensor: Tensor
    space: str
    length: int
    alignment: int

    @property
    def storage(self) -> Memory:
        """Where the tensor lies."""
        assert isinstance(self.tensor.bound, Memory)
        return self.tensor.bound


def memory_tensor(what: str, given: object, space: str, order: str) -> Tensor:
    """`given`, which must be a tensor in memory of that space. OperandError otherwise."""
    if not isinstance(given, Tensor) or not isinstance(given.bound, Memory):
        found = given.space if isinstance(given, Tensor) else convert.given(given)
        raise OperandError(f"{what} takes a tensor in memory, not {found}; the order is {order}")
    check_space(what, given.bound, space)
    return given


def check_space(what: str, storage: Memory, space: str) -> None:
    """OperandError unless an instruction of that space reaches the storage."""
    if storage.space not in SPACES.get(space, (space[1:],)):
        raise OperandError(
            f"{what} is {space or 'generic'} memory and the tensor is in {storage.space} memory"
        )


def check(trace: Trace, region: Region, pred: object = None) -> None:
    """TileError unless the layout lies on m, the region in its tensor, and atoms are consecutive and aligned."""
    tensor = region.tensor
    if tensor.layout is not None and any(axis.name != "m" for axis in tensor.layout.axes):
        owners = ", ".join(axis.name for axis in tensor.layout.axes if axis.name != "m")
        raise TileError(
            f"{region.what}: a memory tensor's layout lies on m alone, and this one names {owners}"
        )
    extra = [pred.extent] if isinstance(pred, Scalar) and isinstance(pred.extent, Comparison) else []
    operand.prove_claims(trace, region.what, tensor, extra)
    _check_run(trace, region)


def _check_run(trace: Trace, region: Region) -> None:
    """Consecutive elements, and every atom aligned."""
    tensor, length, what = region.tensor, region.length, region.what
    unit = tensor.dtype.itemsize
    if region.alignment <= unit and length == 1:
        return
    due = -(-region.alignment // unit)  # elements
    facts = [fact for known in trace.facts() for fact in ranges.facts_of(known)]
    if tensor.layout is None:
        consecutive = length == 1 or tensor.strides[-1].known == 1
        aligned = all(ranges.divisible(stride, due, facts) for stride in tensor.strides[:-1])
    else:
        consecutive = length == 1 or tensor.layout.is_run(tensor.static_shape, 1)
        aligned = consecutive and tensor.layout.run_alignment(tensor.static_shape, 1) % due == 0
    if not consecutive:
        raise TileError(
            f"{what}: the {length} elements of an atom must lie side by side in memory, and this layout puts them apart"
        )
    size = length * unit
    if region.storage.alignment % region.alignment:
        raise TileError(
            f"{what}: an atom of {size} bytes needs a base aligned to {region.alignment} bytes, and this tensor's is "
            f"aligned to {region.storage.alignment} (align=)"
        )
    if not aligned or not ranges.divisible(tensor.origin, due, facts):
        raise TileError(
            f"{what}: an atom of {size} bytes must start at a multiple of {region.alignment} bytes, which is not "
            "proven of every atom here" + _alignment_hint(tensor, due)
        )


def _alignment_hint(tensor: Tensor, due: int) -> str:
    if tensor.layout is None and any(stride.divisor() % due for stride in tensor.strides[:-1]):
        return f": a row's length is not known to be a multiple of {due}; say so with pt.dim(name, multiple_of={due})"
    if tensor.origin.divisor() % due:
        return f": the region starts at element {tensor.origin}"
    return ": the layout's strides are not multiples of the atom"


def check_store(region: Region) -> None:
    """TileError if two elements of a destination are one place."""
    layout = region.tensor.layout
    if layout is not None and not layout.is_injective("m"):
        raise TileError(
            f"{region.what}: two elements of the destination are one place in memory, so the order of the stores would "
            "decide; a destination's layout must be injective (no zero strides)"
        )


def of_repeats(trace: Trace, region: Region, parts: Split, group: Sequence[Extent]) -> list[Address]:
    """The address of each repeat's atom, for a thread whose group coordinate is `group`."""
    tensor = region.tensor
    start = operand.group_place(tensor, group)
    if tensor.layout is None:
        unit = tensor.dtype.itemsize
        steps = operand.strided_places(tensor, parts)
        found = [addresses.address(trace, region.storage, start.plus(step), unit) for step in steps]
        return as_generic(trace, region, found)
    return of_places(trace, region, start, operand.issue_places(tensor, parts))


def of_places(trace: Trace, region: Region, start: Extent, steps: Sequence[int]) -> list[Address]:
    """The addresses of the elements at `start` plus each constant step; the tensor has a layout."""
    tensor = region.tensor
    if isinstance(tensor.layout, ComposeLayout):
        found = _swizzled(trace, region, start, steps, tensor.layout.swizzle)
    else:
        found = _linear(trace, region, start, steps)
    return as_generic(trace, region, found)


def as_generic(trace: Trace, region: Region, found: list[Address]) -> list[Address]:
    """The addresses as the instruction takes them: generic if it names no space."""
    return found if region.space else [addresses.generic(trace, region.storage, each) for each in found]


def _linear(trace: Trace, region: Region, start: Extent, steps: Sequence[int]) -> list[Address]:
    """One base computation; every repeat is a constant offset from it."""
    unit = region.tensor.dtype.itemsize
    first = addresses.address(trace, region.storage, start.plus(steps[0]), unit)
    start_at = first.offset - steps[0] * unit
    return addresses_from(first.base, [start_at + step * unit for step in steps])


def _swizzled(
    trace: Trace, region: Region, start: Extent, steps: Sequence[int], swizzle: Swizzle
) -> list[Address]:
    """One base for all repeats whose distance the swizzle's period divides."""
    unit, period = region.tensor.dtype.itemsize, swizzle.period
    bases: dict[int, tuple[int, Address]] = {}
    found = []
    for step in steps:
        known = bases.get(step % period)
        if known is None:
            known = step, elements.swizzled(trace, region.storage, start.plus(step), swizzle, unit)
            bases[step % period] = known
        found.append(Address(known[1].base, known[1].offset + (step - known[0]) * unit))
    return found
