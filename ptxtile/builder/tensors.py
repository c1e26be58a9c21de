"""Tensors: a shape, a dtype, and for each coordinate the register or the address that holds the element.

One class serves as annotation and as value: `pt.Tensor(shape, dtype, layout)` in a signature describes an argument;
while tracing, the name is bound to a Tensor with storage. Views share storage and copy nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

from ptxtile import tracing
from ptxtile.builder import addresses, elements, ranges
from ptxtile.builder.ranges import Extent
from ptxtile.builder.storage import SPACES, Layout, Memory, Registers, Storage
from ptxtile.dtypes import DType, Scalar, dtype_of
from ptxtile.errors import LayoutError, OperandError, TraceError
from ptxtile.ir.operand import Address, Register
from ptxtile.layout import ComposeLayout, S, TileLayout, as_layout

if TYPE_CHECKING:
    from ptxtile.builder.trace import Trace

Index = Union[int, Scalar]
Size = Union[int, Scalar]

ALIGNMENT = 16
"""Bytes to which a tensor's first element is aligned, unless its description says otherwise."""


def checked_alignment(align: int | None, least: int) -> int:
    """`align` bytes if it is a power of two of at least `least`, or the default."""
    if align is None:
        return max(ALIGNMENT, least)
    if isinstance(align, bool) or not isinstance(align, int) or align < least or align & (align - 1):
        raise LayoutError(f"align= must be a power of two of at least {least} bytes, not {align!r}")
    return align


class Dim:
    """A run-time size in the shape of a kernel's tensor: `pt.dim("K", multiple_of=8)`, or a bare "K".

    `multiple_of` is checked at every launch and used in proofs.
    """

    __slots__ = ("name", "multiple_of")

    def __init__(self, name: str, multiple_of: int = 1) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise LayoutError(f"a run-time size is named by an identifier, not {name!r}")
        if not isinstance(multiple_of, int) or multiple_of < 1:
            raise LayoutError(f"multiple_of of {name!r} must be a positive integer, not {multiple_of!r}")
        self.name = name
        self.multiple_of = multiple_of

    def __repr__(self) -> str:
        extra = f", multiple_of={self.multiple_of}" if self.multiple_of != 1 else ""
        return f"pt.dim({self.name!r}{extra})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and (self.name, self.multiple_of) == (other.name, other.multiple_of)

    def __hash__(self) -> int:
        return hash((self.name, self.multiple_of))


def dim(name: str, multiple_of: int = 1) -> Dim:
    """A run-time size in a tensor's shape; see Dim."""
    return Dim(name, multiple_of)


def checked_shape(shape: object) -> tuple[int | Dim, ...]:
    """A shape of positive integers, names and Dims; LayoutError otherwise."""
    parts = shape if isinstance(shape, (tuple, list)) else (shape,)
    made: list[int | Dim] = []
    for part in parts:
        if isinstance(part, str):
            made.append(Dim(part))
        elif isinstance(part, Dim) or (isinstance(part, int) and not isinstance(part, bool) and part > 0):
            made.append(part)
        else:
            raise LayoutError(f"a shape holds positive integers, names and pt.dim(…), not {part!r}")
    return tuple(made)


class Tensor:
    """A tensor of a kernel; see the module's docstring.

    shape    extents: integers, and in a bound tensor a run-time uint32 where the size is a Dim
    dtype    of an element
    layout   from coordinate to place; None for row-major order with run-time sizes
    claims   extents that must be >= 0 for the region to lie inside its tensor; tile operations prove them
    align    bytes to which an argument's address is aligned (16 unless given), checked at every launch
    """

    __slots__ = (
        "shape",
        "dtype",
        "layout",
        "storage",
        "origin",
        "sizes",
        "strides",
        "dims",
        "alignment",
        "claims",
    )

    shape: tuple[Any, ...]
    dtype: DType
    layout: Layout | None
    storage: Storage | None
    origin: Extent
    sizes: tuple[Extent, ...]
    strides: tuple[Extent, ...]
    dims: tuple[int | Dim, ...]
    alignment: int
    claims: tuple[Extent, ...]

    def __init__(
        self, shape: object, dtype: object, layout: object = None, *, align: int | None = None
    ) -> None:
        self.dims = checked_shape(shape)
        self.shape = self.dims
        self.dtype = dtype_of(dtype)
        self.alignment = checked_alignment(align, self.dtype.itemsize)
        self.layout = None if layout is None else as_layout(layout)
        if self.layout is not None:
            fixed = [part for part in self.dims if isinstance(part, int)]
            if len(fixed) != len(self.dims):
                raise LayoutError(
                    f"a tensor with run-time sizes is row-major: {self.dims} cannot take a layout"
                )
            size = 1
            for part in fixed:
                size *= part
            if self.layout.size() != size:
                raise LayoutError(
                    f"the layout has {self.layout.size()} elements and the shape {tuple(fixed)} has {size}"
                )
        self.storage = None
        self.origin = ranges.constant(0)
        self.sizes = ()
        self.strides = ()
        self.claims = ()

    # --- making bound tensors and views ---------------------------------------------------------------------------
    @classmethod
    def bind(
        cls,
        shape: Sequence[Size],
        dtype: DType,
        storage: Storage,
        layout: Layout | None = None,
        *,
        origin: Extent | None = None,
        sizes: Sequence[Extent] = (),
        strides: Sequence[Extent] = (),
        claims: Sequence[Extent] = (),
    ) -> Tensor:
        """A tensor with storage. Without a layout, `strides` (in elements) say where the elements are."""
        made = cls.__new__(cls)
        made.shape = tuple(shape)
        made.dims = ()
        made.alignment = storage.alignment
        made.dtype = dtype
        made.storage = storage
        made.layout = layout
        made.origin = origin if origin is not None else ranges.constant(0)
        made.sizes = tuple(sizes) or tuple(_size(part) for part in made.shape)
        made.strides = tuple(strides)
        made.claims = tuple(claims)
        if layout is None and not strides:
            made.strides = row_major(made.sizes)
        return made

    def _like(
        self,
        shape: Sequence[Size],
        *,
        dtype: DType | None = None,
        layout: Layout | None = None,
        origin: Extent | None = None,
        sizes: Sequence[Extent] = (),
        strides: Sequence[Extent] = (),
        claims: Sequence[Extent] = (),
    ) -> Tensor:
        return Tensor.bind(
            shape,
            dtype or self.dtype,
            self.bound,
            layout,
            origin=self.origin if origin is None else origin,
            sizes=sizes,
            strides=strides,
            claims=(*self.claims, *claims),
        )

    @property
    def bound(self) -> Storage:
        """The storage; TraceError for a mere description."""
        if self.storage is None:
            raise TraceError(f"{self!r} describes an argument; it has elements only inside a kernel's trace")
        return self.storage

    @property
    def space(self) -> str:
        """ "registers", "global", "shared", "local", …"""
        return self.bound.space

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape, all integers; LayoutError if a size is known at run time only."""
        for part in self.shape:
            if not isinstance(part, int):
                raise LayoutError(f"this needs a shape known while tracing, and {self!r} has a run-time size")
        return self.shape

    def __repr__(self) -> str:
        shape = ", ".join(
            str(part) if isinstance(part, int) else repr(part.name) if isinstance(part, Dim) else "?"
            for part in self.shape
        )
        text = f"pt.Tensor(({shape}{',' if len(self.shape) == 1 else ''}), {self.dtype!r}"
        return text + (f", {self.layout!r})" if self.layout is not None else ")")

    # --- places ---------------------------------------------------------------------------------------------------
    def place(self, coordinate: Sequence[Extent]) -> Extent:
        """The place of an element on `m`, in elements, before any swizzle."""
        total = self.origin
        if self.layout is None:
            for at, stride in zip(coordinate, self.strides):
                total = total.plus(at.times(stride))
            return total
        tile = self.layout.base if isinstance(self.layout, ComposeLayout) else self.layout
        for term in tile.plan(self.static_shape):
            if term.axis.name != "m":
                continue
            digit = coordinate[term.dim]
            if term.div != 1:
                digit = ranges.quotient(digit, term.div)
            if term.mod is not None:
                digit = ranges.remainder(digit, term.mod)
            total = total.plus(digit, term.stride)
        return total.plus(_offset(tile))

    def address_of(self, trace: Trace, coordinate: Sequence[Extent]) -> Address:
        """The address of an element in memory, as an operand."""
        storage = self.bound
        if not isinstance(storage, Memory):
            raise OperandError(f"{self!r} lives in registers and has no address")
        place = self.place(coordinate)
        if isinstance(self.layout, ComposeLayout):
            return elements.swizzled(trace, storage, place, self.layout.swizzle, self.dtype.itemsize)
        return addresses.address(trace, storage, place, self.dtype.itemsize)

    def register_of(self, coordinate: Sequence[int]) -> Register:
        """The register of the executing thread's element at a static coordinate."""
        storage = self.bound
        if not isinstance(storage, Registers):
            raise OperandError(f"{self!r} lives in {storage.space} memory, not in registers")
        place = self.place([ranges.constant(at) for at in coordinate]).known
        assert place is not None
        if isinstance(self.layout, ComposeLayout):
            place = self.layout.swizzle.apply(place)
        return storage.registers[place]

    def address(self, trace: Trace, space: str) -> Address:
        """The address of the first element, for an address operand of a raw instruction."""
        storage = self.bound
        if not isinstance(storage, Memory) or storage.space not in SPACES.get(space, (space[1:],)):
            where = "registers" if isinstance(storage, Registers) else f"{storage.space} memory"
            raise OperandError(
                f"the instruction addresses {space or 'generic'} memory, and {self!r} is in {where}"
            )
        found = self.address_of(trace, [ranges.constant(0)] * self.ndim)
        return found if space else addresses.generic(trace, storage, found)

    # --- views (builder.views) ------------------------------------------------------------------------------------
    def view(self, *shape: object, layout: object = None) -> Tensor:
        """The same elements under another shape, layout or dtype; nothing is copied.

        view(2, 32, 4)             the same order of elements; one extent may be -1
        view(2, 32, layout=L)      the same storage read through another layout
        view(pt.uint32)            the same bits as another dtype; the last extent is scaled
        """
        from ptxtile.builder import views

        return views.view(self, shape, layout)

    def permute(self, *order: int) -> Tensor:
        """The dimensions in another order: dimension i of the result is dimension order[i]."""
        from ptxtile.builder import views

        return views.permute(self, order)

    def rearrange(self, pattern: str, **sizes: int) -> Tensor:
        """Split, reorder and join dimensions: rearrange("a (b c) -> b a c", c=4)."""
        from ptxtile.builder import rearrange

        return rearrange.rearrange(self, pattern, sizes)

    def __getitem__(self, index: object) -> Any:
        """An element if every index is a number (loaded now; of registers, the register itself as a variable), else
        the region that slices and indices select."""
        from ptxtile.builder import views

        if views.is_element(self, index):
            return elements.load(_trace(), self, views.coordinate(self, index))
        return views.region(self, index)

    def __setitem__(self, index: object, value: object) -> None:
        """Store one element: `value` is a number or a run-time value of the tensor's dtype."""
        from ptxtile.builder import views

        if not views.is_element(self, index):
            raise TraceError("a region cannot be assigned: copy it with tile.apply of a ld, st or mov form")
        elements.store(_trace(), self, views.coordinate(self, index), value)

    def __iter__(self) -> Any:
        raise TypeError("a Tensor of a kernel is not iterated over: index it, or use pt.for_range")


def _trace() -> Trace:
    return tracing.emitter("indexing a Tensor")  # type: ignore[return-value]


def _size(part: Size) -> Extent:
    found = ranges.of_value(part)
    if found is None:
        raise LayoutError(f"{part!r} is no size")
    return found


def _offset(tile: TileLayout) -> int:
    return sum(step.amount for step in tile.offset if step.axis.name == "m")


def row_major(sizes: Sequence[Extent]) -> tuple[Extent, ...]:
    """The strides, in elements, of row-major order."""
    strides = [ranges.constant(1)]
    for size in reversed(sizes[1:]):
        strides.append(strides[-1].times(size))
    return tuple(reversed(strides)) if sizes else ()


def default_layout(shape: Sequence[int]) -> TileLayout:
    """Row-major order of a static shape."""
    return S[tuple(shape)] if shape else S[1]
