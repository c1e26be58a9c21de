"""Tensor maps as kernel parameters: `A: pt.TensorMap(("M", "K"), pt.bfloat16, box=(128, 64), swizzle=128)`.

The parameter is `.param .align 64 .b8 A[128]`. A launch takes the array itself, whose map is encoded for its address
and kept, or 128 bytes that are a map already. Shapes, boxes and coordinates are written like the tensor's, outermost
dimension first; the text has them innermost first, as the hardware counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

from ptxtile.builder import addresses, convert
from ptxtile.builder.storage import Memory
from ptxtile.builder.tensors import Dim, Tensor, checked_shape
from ptxtile.builder.values import current, where
from ptxtile.dtypes import DType, Scalar, dtype_of, uint64
from ptxtile.errors import LayoutError, OperandError, TraceError
from ptxtile.ir.operand import Address, Integer, Operand, Register, Symbol, Vector
from ptxtile.ir.tensor_map import BYTES, Im2col, TiledMap, element_of
from ptxtile.layout import S

if TYPE_CHECKING:
    from ptxtile.builder.trace import Trace

_KEPT = 64
_ALIGNMENT = 64


class TensorMap:
    """A tensor map (PTX ISA 5.5): which tensor in global memory, and which box of it a copy moves.

    shape            extents of the tensor, row-major; integers, names and pt.dim(…) for run-time sizes
    dtype            of an element
    box              extents of what one copy moves, 1 to 256 each; the innermost a multiple of 16 bytes
    swizzle          0, 32, 64 or 128: bytes of shared memory whose 16-byte chunks are permuted; the innermost
                     extent of the box is that wide
    interleave       0, 16 or 32 bytes: the tensor is (images, slices, *pixels, unit), a unit of that many bytes; a box
                     is of one slice, and its innermost pixels are a multiple of 16 bytes of elements
    element_strides  how far apart the elements of a box are in the tensor, 1 to 8
    l2_promotion     0, 64, 128 or 256 bytes that an access brings into L2 at least
    nan              elements outside the tensor read as NaN, not as zero (floats)
    element          an element type of the hardware in place of the dtype's own: "tf32", "f32.ftz", "tf32.ftz"
    im2col           (lower, upper): corners of the bounding box of pixels, an entry for each dimension between images
                     and channels; the shape is (images, *pixels, channels) and the box (pixels, channels)

    In the kernel `map[i, j]` is the box whose first element is (i, j), an operand of tensor copies; coordinates are
    integers of 32 bits and may lie outside. `map.rows((i0, i1, i2, i3), j)` are four rows of a matrix, for gather4 and
    scatter4. `map.shape` has the run-time sizes. LayoutError for what no map can say.
    """

    __slots__ = ("dims", "shape", "dtype", "box", "template", "base", "known")

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
        im2col: tuple[Sequence[int], Sequence[int]] | None = None,
    ) -> None:
        self.dims = checked_shape(shape)
        self.shape: tuple[Any, ...] = self.dims
        self.dtype: DType = dtype_of(dtype)
        self.box = _integers("box", box)
        counted = self.box
        if interleave in (16, 32):
            _check_units(self.dims, self.box, interleave, self.dtype.itemsize)
            counted = self.box[:-1]
        rank = len(self.dims) - (counted is not self.box)
        steps = (1,) * rank if element_strides is None else _integers("element_strides", element_strides)
        self.template = TiledMap(
            element or element_of(self.dtype),
            (1,) * rank,
            (0,) * (rank - 1),
            counted[::-1],
            steps[::-1],
            interleave,
            swizzle,
            l2_promotion,
            nan,
            None if im2col is None else _corners(im2col),
        )
        self.known: dict[tuple[int, ...], TiledMap] = {}
        self.template.check("pt.TensorMap")
        if self.template.itemsize != self.dtype.itemsize:
            raise LayoutError(
                f"pt.TensorMap: elements of type {element} have {self.template.itemsize} bytes, and "
                f"{self.dtype.name} has {self.dtype.itemsize}"
            )
        self.base: Register | None = None
        fixed = [part if isinstance(part, int) else None for part in self.dims]
        if None not in fixed:
            self.of([part for part in fixed if part is not None]).check("pt.TensorMap")

    def __repr__(self) -> str:
        shape = ", ".join(repr(part) if isinstance(part, (int, Dim)) else "?" for part in self.shape)
        return f"pt.TensorMap(({shape}), {self.dtype!r}, box={self.box}, swizzle={self.template.swizzle})"

    def of(self, shape: Sequence[int]) -> TiledMap:
        """The map of a row-major tensor of this shape; the last 64 are kept, since every launch asks."""
        found = self.known.get(tuple(shape))
        if found is None:
            if len(self.known) >= _KEPT:
                self.known.clear()
            found = self.known[tuple(shape)] = self._made(shape)
        return found

    def _made(self, shape: Sequence[int]) -> TiledMap:
        extents = tuple(shape)[: self.template.rank][::-1]
        strides: list[int] = []
        step = self.template.interleave or self.template.itemsize
        for extent in extents[:-1]:
            step *= extent
            strides.append(step)
        return replace(self.template, extents=extents, strides=tuple(strides))

    @property
    def swizzle(self) -> int:
        """Bytes, 0 for none."""
        return self.template.swizzle

    @property
    def tile(self) -> tuple[int, ...]:
        """The shape of what one copy of the box is in shared memory: the box, but for element strides."""
        return self.template.tile[::-1]

    @property
    def box_bytes(self) -> int:
        """Bytes that one load of the box completes on its mbarrier."""
        return self.template.box_bytes

    def _same(self) -> TensorMap:
        made = TensorMap.__new__(TensorMap)
        made.dims, made.dtype, made.box, made.template = self.dims, self.dtype, self.box, self.template
        made.known = self.known
        return made

    # --- inside a trace -------------------------------------------------------------------------------------------
    def bind(self, trace: Trace, name: str, sizes: Mapping[str, Scalar]) -> TensorMap:
        """The value of the parameter `name` in a trace: its generic address, made once at the start."""
        made = self._same()
        made.shape = tuple(sizes[part.name] if isinstance(part, Dim) else part for part in self.dims)
        narrow, wide = trace.register("b64"), trace.register("b64")
        trace.first("mov.u64", narrow, Symbol(name, "param"))
        trace.first("cvta.param.u64", wide, narrow)
        made.base = wide
        return made

    def __getitem__(self, coordinates: object) -> MapTile:
        parts = coordinates if isinstance(coordinates, tuple) else (coordinates,)
        if len(parts) != self.template.rank:
            units = " of units" if self.template.interleave else ""
            raise LayoutError(
                f"{self!r} has {self.template.rank} dimensions{units}; {convert.counted(len(parts))} given"
            )
        return MapTile(self, parts)

    def rows(self, rows: Sequence[object], column: object) -> MapTile:
        """Four rows of a matrix from a column on, `[map, {column, row0, row1, row2, row3}]`: the operand of gather4 and
        scatter4. The box is (1, columns); the tensor in shared memory is (4, columns)."""
        if len(self.dims) != 2 or self.box[0] != 1 or self.template.im2col is not None:
            raise LayoutError(
                f"{self!r}.rows: rows are taken from a matrix with a box of one row, box=(1, columns)"
            )
        if not isinstance(rows, (tuple, list)) or len(rows) != 4:
            raise LayoutError(f"{self!r}.rows takes four rows and a column, not {rows!r}")
        return MapTile(self, (*reversed(rows), column), True)

    def words(self) -> Tensor:
        """The map itself, (16,) of uint64 at its generic address: what a kernel copies before it changes the copy."""
        if self.base is None:
            trace = current("TensorMap.words")
            raise TraceError(
                f"{self!r} describes an argument: words() are those inside a kernel" + where(trace)
            )
        return Tensor.bind(
            (BYTES // 8,), uint64, Memory("generic", self.base, _ALIGNMENT, BYTES), S[BYTES // 8]
        )

    def at(self, place: Tensor) -> TensorMap:
        """The same description of a map that lies elsewhere: `place` is its 128 bytes in global memory, aligned to 64,
        such as a kernel makes with tensormap.replace. Boxes of the result go through that map."""
        trace = current("TensorMap.at")
        if self.base is None:
            raise TraceError(
                f"{self!r} describes an argument: at() is of the map inside a kernel's trace" + where(trace)
            )
        if not isinstance(place, Tensor) or place.space != "global":
            found = f"a tensor in {place.space}" if isinstance(place, Tensor) else convert.given(place)
            raise OperandError(
                f"{self!r}.at takes a tensor of 128 bytes in global memory, not {found}" + where(trace)
            )
        if prod(place.static_shape) * place.dtype.itemsize != BYTES or place.bound.alignment % _ALIGNMENT:
            raise LayoutError(
                f"{self!r}.at: a tensor map is {BYTES} bytes that start at a multiple of {_ALIGNMENT}; this is "
                f"{place.static_shape} of {place.dtype.name}, aligned to {place.bound.alignment} (align=)"
                + where(trace)
            )
        made = self._same()
        made.shape, made.base = self.shape, addresses.in_wide_register(trace, place.address(trace, ".global"))
        return made

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
    """The box of a tensor map at a coordinate, outermost dimension first: the operand `[map, {…}]`.

    `by_row`: four rows instead, the last one first, and a column.
    """

    map: TensorMap
    coordinates: tuple[object, ...]
    by_row: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the tensor in shared memory."""
        return (4, self.map.box[1]) if self.by_row else self.map.tile

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


def _check_units(dims: Sequence[object], box: Sequence[int], unit: int, itemsize: int) -> None:
    """LayoutError unless the last dimension is a unit, and the box one slice of channels."""
    due = unit // itemsize
    if len(dims) < 4 or len(box) != len(dims):
        raise LayoutError(
            f"pt.TensorMap: with interleave={unit} a tensor is (images, slices, *pixels, {due}), four dimensions or "
            f"more, and its box has as many; these have {len(dims)} and {len(box)}"
        )
    if dims[-1] != due or box[-1] != due:
        raise LayoutError(
            f"pt.TensorMap: with interleave={unit} the last dimension is a unit of {unit} bytes, {due} elements, in "
            f"the tensor and in the box; these have {dims[-1]} and {box[-1]}"
        )
    if box[1] != 1:
        raise LayoutError(
            f"pt.TensorMap: with interleave={unit} a copy moves one slice of channels, so the box is 1 there, not "
            f"{box[1]}"
        )


def _corners(given: object) -> Im2col:
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise LayoutError(f"pt.TensorMap: im2col= is (lower corner, upper corner), not {given!r}")
    lower, upper = (_integers("a corner of im2col", corner) for corner in given)
    return Im2col(lower[::-1], upper[::-1])
