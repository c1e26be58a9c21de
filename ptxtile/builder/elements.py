"""Single elements: `A[i, j]` loads, `A[i, j] = v` stores, one instruction each (bool_ takes a comparison as well)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxtile import location
from ptxtile.builder import addresses, convert
from ptxtile.builder.ranges import Extent
from ptxtile.builder.storage import Memory, Registers
from ptxtile.builder.values import is_numpy_scalar
from ptxtile.dtypes import DType, Scalar, bool_, dtype_of, uint8
from ptxtile.errors import OperandError, TraceError
from ptxtile.ir.operand import Address, Integer, Operand, Register
from ptxtile.layout import Swizzle

if TYPE_CHECKING:
    from ptxtile.builder.tensors import Tensor
    from ptxtile.builder.trace import Trace


def swizzled(trace: Trace, memory: Memory, place: Extent, swizzle: Swizzle, unit: int) -> Address:
    """The address of a swizzled place: `place ^ (place & mask) >> shift`, static where the place is."""
    moving = Extent(place.terms, 0)
    if moving.divisor() % swizzle.period == 0:
        # The run-time part is a whole number of periods, so only the constant part is permuted.
        still = (
            swizzle.apply(place.constant % swizzle.period) + place.constant // swizzle.period * swizzle.period
        )
        return addresses.address(trace, memory, moving.plus(still), unit)
    key = (memory, place, swizzle, unit)
    found = trace.computed(key)
    if found is None:
        bits = memory.address_bits
        index = addresses.lower(trace, place, 32)
        read, moved, mixed, found = (trace.register("b32") for _ in range(4))
        trace.instruction("and.b32", read, index, Integer(swizzle.mask))
        way = "shr.u32" if swizzle.shift >= 0 else "shl.b32"
        trace.instruction(way, moved, read, Integer(abs(swizzle.shift)))
        trace.instruction("xor.b32", mixed, index, moved)
        base = addresses.symbol_address(trace, memory)
        if bits == 64:
            found = trace.register("b64")
            trace.instruction("mad.wide.u32", found, mixed, Integer(unit), base)
        else:
            trace.instruction("mad.lo.u32", found, mixed, Integer(unit), base)
        trace.remember_value(key, found)
    return Address(found)


def memory_type(dtype: DType) -> str:
    """The type of the ld or st of one element: ".f32", ".b16" for 16-bit floats, ".u8" for bool_."""
    if dtype.kind in ("int", "uint"):
        return dtype.ptx
    if dtype is bool_:
        return ".u8"
    return dtype.ptx if dtype.bits >= 32 else f".b{dtype.bits}"


def _space(memory: Memory) -> str:
    return "" if memory.space == "generic" else "." + memory.space


def _integer_coordinate(tensor: Tensor, coordinate: Sequence[Extent]) -> list[int]:
    known = [at.known for at in coordinate]
    if any(at is None for at in known):
        raise TraceError(
            f"registers have no addresses: an index of {tensor!r} is known at run time only; unroll with a Python "
            "loop, or keep the data in shared or local memory" + location.quote(location.here())
        )
    return [at for at in known if at is not None]


def load(trace: Trace, tensor: Tensor, coordinate: Sequence[Extent]) -> Scalar:
    """The element as a run-time value; in registers, the register itself as a variable."""
    storage = tensor.bound
    if isinstance(storage, Registers):
        where = _integer_coordinate(tensor, coordinate)
        variable = trace.value(tensor.dtype, tensor.register_of(where), mutable=True)
        variable.block = trace.body
        return variable
    address = tensor.address_of(trace, coordinate)
    if tensor.dtype is bool_:
        byte = trace.value(uint8)
        trace.instruction(f"ld{_space(storage)}.u8", _register(byte), address)
        flag = trace.value(bool_)
        trace.instruction("setp.ne.u16", _register(flag), _register(byte), Integer(0))
        return flag
    made = trace.value(tensor.dtype)
    trace.instruction(f"ld{_space(storage)}{memory_type(tensor.dtype)}", _register(made), address)
    return made


def store(trace: Trace, tensor: Tensor, coordinate: Sequence[Extent], value: object) -> None:
    """Write one element; OperandError if `value` is of another dtype."""
    storage = tensor.bound
    dtype = tensor.dtype
    if isinstance(storage, Registers):
        load(trace, tensor, coordinate).set(value)
        return
    word = operand(trace, value, dtype, f"storing into {tensor!r}")
    if dtype is bool_ and not isinstance(word, Integer):
        byte = trace.register("b16")
        trace.instruction("selp.u16", byte, Integer(1), Integer(0), word)
        word = byte
    address = tensor.address_of(trace, coordinate)
    if isinstance(word, Integer) and dtype.kind == "float":
        made = trace.register(dtype.register)
        trace.instruction(f"mov.b{dtype.bits if dtype.bits > 8 else 16}", made, word)
        word = made
    trace.instruction(f"st{_space(storage)}{memory_type(dtype)}", address, word)


def operand(trace: Trace, value: object, dtype: DType, what: str) -> Operand:
    """The IR operand of a number, constant or run-time value that must be of `dtype`."""
    if is_numpy_scalar(value):
        value = dtype_of(value)(value)
    if isinstance(value, Scalar):
        if dtype_of(value) is not dtype:
            raise OperandError(
                f"{what}: the value is {type(value).name} and must be {dtype.name}; convert it with "
                f"pt.cast(value, {dtype!r})" + location.quote(location.here())
            )
        if value.value is None:
            trace.live(value, what)
            return _register(value)
        return convert.literal(dtype, value.value)
    if isinstance(value, (int, float)):
        if isinstance(value, float) and dtype.kind != "float":
            raise OperandError(f"{what}: {value!r} is no {dtype.name}" + location.quote(location.here()))
        try:
            return convert.literal(dtype, value)
        except (OverflowError, TypeError) as error:
            raise OperandError(f"{what}: {error}" + location.quote(location.here())) from None
    raise OperandError(f"{what}: {convert.given(value)} is no {dtype.name}" + location.quote(location.here()))


def _register(value: Scalar) -> Register:
    assert isinstance(value.operand, Register)
    return value.operand
