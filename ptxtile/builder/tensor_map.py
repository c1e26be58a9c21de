"""Tensor maps as kernel parameters: `A: pt.TensorMap(("M", "K"), pt.bfloat16, box=(128, 64), swizzle=128)`.

The parameter is `.param .align 64 .b8 A[128]`. A launch takes the array itself, whose map is encoded for its address
and kept, or 128 bytes that are a map already. Shapes, boxes and coordinates are written like the tensor's, outermost
dimension first; the text has them innermost first, as the hardware counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ptxtile.builder import convert
from ptxtile.builder.tensors import Dim, checked_shape
from ptxtile.dtypes import DType, Scalar, dtype_of
from ptxtile.errors import LayoutError, OperandError, TraceError
from ptxtile.ir.operand import Address, Integer, Operand, Register, Symbol, Vector
from ptxtile.ir.tensor_map import TiledMap, element_of

if TYPE_CHECKING:
    from ptxtile.builder.trace import Trace


class TensorMap:
    """A tensor map (PTX ISA 5.5): which tensor in global memory, and which box of it a copy moves.

    shape            extents of the tensor, row-major; integers, names and pt.dim(…) for run-time sizes
    dtype            of an element
    box              extents of what one copy moves, 1 to 256 each; the innermost a multiple of 16 bytes
    swizzle          0, 32, 64 or 128: bytes of shared memory whose 16-byte chunks are permuted; the box is no wider
    interleave       0, 16 or 32 bytes
    element_strides  how far apart the elements of a box are in the tensor, 1 to 8
    l2_promotion     0, 64, 128 or 256 bytes that an access brings into L2 at least
    nan              elements outside the tensor read as NaN, not as zero (floats)
    element          an element type of the hardware in place of the dtype's own: "tf32", "f32.ftz", "tf32.ftz"

    In the kernel `map[i, j]` is the box whose first element is (i, j), an operand of tensor copies; coordinates are
    integers of 32 bits and may lie outside. `map.shape` has the run-time sizes. LayoutError for what no map can say.
    """

    __slots__ = ("dims", "shape", "dtype", "box", "template", "base")

    def __init__(
        self,
        shape: object,
        dtype: object,
        box: Sequence[int],
        *,
        swizzle: int = 0,
        interleave: int = 0,
        element_strides: Sequence[int] | None = None,
        l2_promotion: int = 0,
        nan: bool = False,
        element: str | None = None,
    ) -> None:
        self.dims = checked_shape(shape)
        self.shape: tuple[Any, ...] = self.dims
        self.dtype: DType = dtype_of(dtype)
        self.box = _integers("box", box)
        steps = (
            (1,) * len(self.box) if element_strides is None else _integers("element_strides", element_strides)
        )
        self.template = TiledMap(
            element or element_of(self.dtype),
            (1,) * len(self.dims),
            (0,) * (len(self.dims) - 1),
            self.box[::-1],
            steps[::-1],
            interleave,
            swizzle,
            l2_promotion,
            nan,
        )
        self.template.check("pt.TensorMap")
        self.base: Register | None = None
        fixed = [part if isinstance(part, int) else None for part in self.dims]
        if None not in fixed:
            self.of([part for part in fixed if part is not None]).check("pt.TensorMap")

    def __repr__(self) -> str:
        shape = ", ".join(repr(part) if isinstance(part, (int, Dim)) else "?" for part in self.shape)
        return f"pt.TensorMap(({shape}), {self.dtype!r}, box={self.box}, swizzle={self.template.swizzle})"

    def of(self, shape: Sequence[int]) -> TiledMap:
        """The map of a row-major tensor of this shape."""
        extents = tuple(shape)[::-1]
        strides: list[int] = []
        step = self.template.itemsize
        for extent in extents[:-1]:
            step *= extent
            strides.append(step)
        return TiledMap(
            self.template.element,
            extents,
            tuple(strides),
            self.template.box,
            self.template.element_strides,
            self.template.interleave,
            self.template.swizzle,
            self.template.l2_promotion,
            self.template.nan,
        )

    @property
    def swizzle(self) -> int:
        """Bytes, 0 for none."""
        return self.template.swizzle

    @property
    def box_bytes(self) -> int:
        """Bytes that one load of the box completes on its mbarrier."""
        return self.template.box_bytes

    # --- inside a trace -------------------------------------------------------------------------------------------
    def bind(self, trace: Trace, name: str, sizes: Mapping[str, Scalar]) -> TensorMap:
        """The value of the parameter `name` in a trace: its generic address, made once at the start."""
        made = TensorMap.__new__(TensorMap)
        made.dims, made.dtype, made.box, made.template = self.dims, self.dtype, self.box, self.template
        made.shape = tuple(sizes[part.name] if isinstance(part, Dim) else part for part in self.dims)
        narrow, wide = trace.register("b64"), trace.register("b64")
        trace.first("mov.u64", narrow, Symbol(name, "param"))
        trace.first("cvta.param.u64", wide, narrow)
        made.base = wide
        return made

    def __getitem__(self, coordinates: object) -> MapTile:
        parts = coordinates if isinstance(coordinates, tuple) else (coordinates,)
        if len(parts) != len(self.box):
            raise LayoutError(f"{self!r} has {len(self.box)} dimensions; {convert.counted(len(parts))} given")
        return MapTile(self, parts)

    def __iter__(self) -> Any:
        raise TypeError("a TensorMap is not iterated over: index it")

    def address(self, trace: Trace, space: str) -> Address:
        """The map itself, for an address operand such as that of prefetch.tensormap."""
        if self.base is None:
            raise TraceError(
                f"{self!r} describes an argument; it has an address only inside a kernel's trace"
            )
        if space:
            raise OperandError(
                f"the instruction addresses {space} memory, and a tensor map's address is generic"
            )
        return Address(self.base)


@dataclass(frozen=True, slots=True)
class MapTile:
    """The box of a tensor map at a coordinate, outermost dimension first: the operand `[map, {…}]`."""

    map: TensorMap
    coordinates: tuple[object, ...]

    def address(self, trace: Trace, space: str) -> Address:
        """`[map, {c0, c1, …}]`, innermost coordinate first."""
        base = self.map.address(trace, space).base
        words = [_coordinate(trace, self.map, part) for part in reversed(self.coordinates)]
        return Address(base, 0, (Vector(tuple(words)),))


def _coordinate(trace: Trace, map_: TensorMap, part: object) -> Operand:
    if isinstance(part, bool):
        raise OperandError(f"a coordinate of {map_!r} is an integer, not {part!r}")
    if isinstance(part, Scalar):
        if type(part).kind not in ("int", "uint") or type(part).bits != 32:
            raise OperandError(
                f"a coordinate of {map_!r} is an integer of 32 bits, not {convert.given(part)}; convert it with "
                "pt.cast(value, pt.int32)"
            )
        if part.value is None:
            trace.live(part, "a coordinate")
            assert isinstance(part.operand, Register)
            return part.operand
        part = part.__index__()
    if not isinstance(part, int) or not -(1 << 31) <= part < 1 << 31:
        raise OperandError(f"a coordinate of {map_!r} is an integer of 32 bits, not {convert.given(part)}")
    return Integer(part)


def _integers(name: str, given: Sequence[int]) -> tuple[int, ...]:
    if not isinstance(given, (tuple, list)):
        raise LayoutError(f"pt.TensorMap: {name}= is a tuple of integers, not {given!r}")
    for part in given:
        if isinstance(part, bool) or not isinstance(part, int):
            raise LayoutError(f"pt.TensorMap: {name}= is a tuple of integers, not {given!r}")
    return tuple(given)
