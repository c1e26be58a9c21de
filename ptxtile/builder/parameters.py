"""The parameters of an entry: what a signature describes, the `.param` it becomes, the value a trace sees."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, Union

from ptxtile import location, tracing
from ptxtile.builder import elements, ranges
from ptxtile.builder.storage import SPACES, Memory
from ptxtile.builder.tensor_map import TensorMap
from ptxtile.builder.tensors import Dim, Tensor, checked_alignment, default_layout
from ptxtile.dtypes import DType, Scalar, bool_, dtype_of, uint8, uint32
from ptxtile.errors import LayoutError, OperandError, TraceError
from ptxtile.ir.module import Parameter
from ptxtile.ir.operand import Address, Integer, Register, Symbol
from ptxtile.ir.tensor_map import BYTES

if TYPE_CHECKING:
    from ptxtile.builder.trace import Trace

GREATEST_SIZE = (1 << 31) - 1
"""Run-time sizes are uint32 values up to this, so that sums of two never wrap."""


class Pointer:
    """A global pointer parameter, `pt.Pointer(pt.float32)`: a 64-bit address without a shape.

    In the kernel `p[i]` loads and `p[i] = v` stores (i in elements), `p.tensor(shape, layout=None)` is a Tensor at it,
    and it stands as the address operand of a raw instruction.
    """

    __slots__ = ("dtype", "alignment", "memory")

    def __init__(self, dtype: object, *, align: int | None = None) -> None:
        self.dtype = dtype_of(dtype)
        self.alignment = checked_alignment(align, self.dtype.itemsize)
        self.memory: Memory | None = None

    def __repr__(self) -> str:
        return f"pt.Pointer({self.dtype!r})"

    def _bound(self) -> Memory:
        if self.memory is None:
            raise TraceError(
                f"{self!r} describes an argument; it has an address only inside a kernel's trace"
            )
        return self.memory

    def tensor(self, shape: object, layout: object = None) -> Tensor:
        """The memory here as a global tensor of a static shape; its bounds are the caller's word."""
        described = Tensor(shape, self.dtype, layout)
        return Tensor.bind(
            described.static_shape,
            self.dtype,
            self._bound(),
            described.layout or default_layout(described.static_shape),
        )

    def address(self, trace: Trace, space: str) -> Address:
        """The address itself, for an address operand of a raw instruction. OperandError outside global memory."""
        memory = self._bound()
        if memory.space not in SPACES.get(space, ()):
            raise OperandError(
                f"the instruction addresses {space} memory, and {self!r} points to {memory.space} memory"
            )
        return Address(memory.base)

    def _flat(self) -> Tensor:
        return Tensor.bind(
            [GREATEST_SIZE], self.dtype, self._bound(), strides=[ranges.constant(1)],
            sizes=[ranges.constant(1 << 62)],
        )  # fmt: skip

    def __getitem__(self, index: int | Scalar) -> Any:
        return self._flat()[index]

    def __setitem__(self, index: int | Scalar, value: object) -> None:
        self._flat()[index] = value

    def __iter__(self) -> NoReturn:
        raise TypeError("a pt.Pointer is not iterated over: index it, or use pt.for_range")

    def _no_arithmetic(self, other: object) -> NoReturn:
        raise OperandError(
            f"{self!r} has no arithmetic: p[i] is element i, and p.tensor((n,))[i : i + 1] stands as an address operand"
            + location.quote(location.here())
        )

    __add__ = __radd__ = __sub__ = __rsub__ = _no_arithmetic


Description = Union[Tensor, TensorMap, Pointer, DType]


@dataclass(frozen=True, slots=True)
class Plan:
    """The `.param` list of an entry: one for each described argument, then one uint32 for each run-time size.

    names    of the described arguments, in order
    dims     the run-time sizes, in order of first appearance
    """

    names: tuple[str, ...]
    descriptions: tuple[Description, ...]
    dims: tuple[Dim, ...]
    parameters: tuple[Parameter, ...]


def plan(described: Mapping[str, object]) -> Plan:
    """The parameter list of these arguments. TraceError for what describes none."""
    parameters: list[Parameter] = []
    checked: list[Description] = []
    dims: dict[str, Dim] = {}
    if not isinstance(described, Mapping):
        raise TraceError(
            f'params maps names to descriptions, as in {{"A": pt.Tensor((32,), pt.float32)}}; {described!r} does not'
        )
    for name, description in described.items():
        if (
            not isinstance(name, str)
            or not name.isascii()
            or not name.isidentifier()
            or name in ("_", "WARP_SZ")
        ):
            raise TraceError(f"{name!r} cannot name a parameter in PTX (letters, digits and _, not WARP_SZ)")
        checked.append(_checked(name, description))
        parameters.append(_parameter(name, checked[-1]))
        if isinstance(description, (Tensor, TensorMap)):
            for part in description.dims:
                if isinstance(part, Dim):
                    _add_dim(dims, part)
    for dim in dims.values():
        if dim.name in described:
            raise TraceError(f"the run-time size {dim.name!r} and a parameter share a name")
        if f"size_{dim.name}" in described:
            raise TraceError(
                f"the parameter 'size_{dim.name}' has the name that the run-time size {dim.name!r} takes in PTX"
            )
        parameters.append(Parameter(f"size_{dim.name}", "u32"))
    return Plan(tuple(described), tuple(checked), tuple(dims.values()), tuple(parameters))


def _checked(name: str, description: object) -> Description:
    if isinstance(description, (Tensor, TensorMap, Pointer)):
        return description
    if isinstance(description, DType) and "name" in vars(description):
        return description
    raise TraceError(
        f"parameter {name!r} is annotated {description!r}: a parameter is a pt.Tensor(shape, dtype), a dtype, a "
        "pt.Pointer(dtype), or keyword-only if it is a static Python value"
    )


def _add_dim(dims: dict[str, Dim], part: Dim) -> None:
    known = dims.setdefault(part.name, part)
    dims[part.name] = Dim(part.name, math.lcm(known.multiple_of, part.multiple_of))


def _parameter(name: str, description: Description) -> Parameter:
    if isinstance(description, (Tensor, Pointer)):
        return Parameter(
            name, "u64", pointer=True, pointer_space="global", pointer_align=description.alignment
        )
    if isinstance(description, TensorMap):
        return Parameter(name, "b8", align=64, shape=(BYTES,))
    if description is bool_:
        return Parameter(name, "u8")
    return Parameter(
        name,
        description.ptx[1:]
        if description.kind != "float" or description.bits >= 32
        else f"b{description.bits}",
    )


# --- binding into a trace -------------------------------------------------------------------------------------------
def bind_all(trace: Trace, planned: Plan) -> dict[str, object]:
    """The values that the traced body sees, by parameter name; loads stand in the prologue."""
    sizes = {dim.name: _size(trace, dim) for dim in planned.dims}
    trace.sizes = sizes
    return {
        name: _bind(trace, name, description, sizes)
        for name, description in zip(planned.names, planned.descriptions)
    }


def argument(description: Description, given: object) -> object:
    """What a launch passes for an argument: a Python number given for a float of 16 bits or fewer as that constant,
    because the untyped `.param` of one takes bits."""
    if not isinstance(description, DType) or description.kind != "float" or description.bits >= 32:
        return given
    if isinstance(given, (Scalar, Sequence)) or not isinstance(given, (float, SupportsIndex)):
        return given
    if not isinstance(given, float):
        try:
            given = operator.index(given)
        except TypeError:  # an array
            return given
    return description(given)


def _size(trace: Trace, dim: Dim) -> Scalar:
    made = trace.value(uint32)
    made.extent = ranges.atom(dim.name, 0, GREATEST_SIZE, multiple=dim.multiple_of, scalar=made)
    trace.first("ld.param.u32", _register(made), Address(Symbol(f"size_{dim.name}", "param")))
    return made


def _global(trace: Trace, name: str) -> Register:
    raw, base = trace.register("b64"), trace.register("b64")
    trace.first("ld.param.u64", raw, Address(Symbol(name, "param")))
    trace.first("cvta.to.global.u64", base, raw)
    return base


def _bind(trace: Trace, name: str, description: Description, sizes: Mapping[str, Scalar]) -> object:
    if isinstance(description, Tensor):
        return _bind_tensor(trace, name, description, sizes)
    if isinstance(description, TensorMap):
        return description.bind(trace, name, sizes)
    if isinstance(description, Pointer):
        made = Pointer(description.dtype, align=description.alignment)
        made.memory = Memory("global", _global(trace, name), description.alignment, None)
        return made
    return _bind_scalar(trace, name, description)


def _bind_scalar(trace: Trace, name: str, dtype: DType) -> Scalar:
    source = Address(Symbol(name, "param"))
    if dtype is bool_:
        byte = trace.value(uint8)
        trace.first("ld.param.u8", _register(byte), source)
        flag = trace.value(bool_)
        trace.first("setp.ne.u16", _register(flag), _register(byte), Integer(0))
        return flag
    made = trace.value(dtype)
    trace.first(f"ld.param{elements.memory_type(dtype)}", _register(made), source)
    return made


def _bind_tensor(trace: Trace, name: str, description: Tensor, sizes: Mapping[str, Scalar]) -> Tensor:
    shape = [sizes[part.name] if isinstance(part, Dim) else part for part in description.dims]
    fixed = [part for part in description.dims if isinstance(part, int)]
    size, layout = None, description.layout
    if len(fixed) == len(shape):
        layout = layout or default_layout(fixed)
        size = layout.span("m") * description.dtype.itemsize
    memory = Memory("global", _global(trace, name), description.alignment, size)
    return Tensor.bind(shape, description.dtype, memory, layout)


def _register(value: Scalar) -> Register:
    assert isinstance(value.operand, Register)
    return value.operand


# --- allocation inside a kernel -------------------------------------------------------------------------------------
def _layout(shape: Sequence[int], layout: object) -> Any:
    from ptxtile.layout import as_layout

    if isinstance(layout, str):
        if layout != "default":
            raise LayoutError(f'layout= is a layout or "default" (row-major), not {layout!r}')
        return default_layout(shape)
    return as_layout(layout)


def alloc_local(shape: object, dtype: object, layout: object = "default") -> Tensor:
    """Registers of the executing thread, one for each place on `m` that the layout has; their content is undefined.

    An element's owner axes (laneid, warpid, …) say which thread holds it. LayoutError if the layout does not fit.
    """
    trace = _trace("alloc_local")
    kind = dtype_of(dtype)
    described = Tensor(shape, kind, _layout(Tensor(shape, kind).static_shape, layout))
    assert described.layout is not None
    from ptxtile.builder.storage import Registers

    # Bit registers: a view of another dtype of the same width needs no move.
    bits = "pred" if kind is bool_ else f"b{max(kind.bits, 16)}"
    storage = Registers(tuple(trace.register(bits) for _ in range(described.layout.span("m"))))
    return Tensor.bind(described.static_shape, kind, storage, described.layout)


def alloc_shared(
    shape: object, dtype: object, layout: object = "default", align: int | None = None
) -> Tensor:
    """Shared memory of the CTA, `align` bytes aligned (16 unless given); its content is undefined.

    Static while all allocations of the kernel fit 48 KiB together, else dynamic: the launch adds what is needed.
    """
    trace = _trace("alloc_shared")
    kind = dtype_of(dtype)
    described = Tensor(shape, kind, _layout(Tensor(shape, kind).static_shape, layout))
    assert described.layout is not None
    if described.layout.owner_axes:
        raise LayoutError(f"shared memory belongs to the whole CTA: {described.layout!r} names owners")
    alignment = checked_alignment(align, kind.itemsize)
    size = described.layout.span("m") * kind.itemsize
    symbol = trace.shared.allocate(size, alignment)
    return Tensor.bind(
        described.static_shape, kind, Memory("shared", symbol, alignment, size), described.layout
    )


def _trace(what: str) -> Trace:
    return tracing.emitter(f"pt.{what}()")  # type: ignore[return-value]
