"""`tile.ewise`: a scalar function inlined at every coordinate."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ptxtile import location, tracing
from ptxtile.builder import convert, values
from ptxtile.builder.function import Function
from ptxtile.builder.storage import Registers
from ptxtile.builder.tensors import Tensor
from ptxtile.dtypes import DType, Scalar, bool_
from ptxtile.errors import OperandError, TileError
from ptxtile.ir.operand import Register
from ptxtile.tile import operand, overlap, predicate, scope as scopes
from ptxtile.tile.scope import Group

if TYPE_CHECKING:
    from ptxtile.builder.trace import Trace


def ewise(
    function: Function[..., Scalar], dst: Tensor, *inputs: object, scope: str = "thread", pred: object = None
) -> None:
    """dst[c] = function(inputs[c]…) at every coordinate, in registers.

    function  a `@pt.function`; its code is inlined once a coordinate
    dst       a register tensor of shape (*group, *repeat), of the function's return dtype
    inputs    register tensors of the same shape, or scalars; dtypes match exactly, nothing is cast
    pred      a run-time bool_, or a bool_ register tensor over the repeats: guards the writes

    OperandError for wrong dtypes or counts, TileError for shapes, owners and overlaps.
    """
    trace = cast("Trace", tracing.emitter("tile.ewise"))
    try:
        _ewise(trace, function, dst, inputs, scope, pred)
    except (OperandError, TileError) as error:
        text = str(error)
        raise error if ".py:" in text else type(error)(text + location.quote(location.here())) from None


def _ewise(
    trace: Trace,
    function: Function[..., Scalar],
    dst: Tensor,
    inputs: tuple[object, ...],
    scope: str,
    pred: object,
) -> None:
    if not isinstance(function, Function):
        raise OperandError(f"tile.ewise takes a @pt.function, not {function!r}")
    what = f"ewise({function.name})"
    group = scopes.group(trace, scope, what)
    if len(inputs) != len(function.parameters):
        raise OperandError(
            f"{what} takes {len(function.parameters)} inputs; {convert.counted(len(inputs))} given"
        )
    rows, repeat = _registers(f"{what}: dst", dst, group)
    if dst.dtype is not function.returns:
        raise OperandError(
            f"{what}: dst is {dst.dtype.name} and the function returns {function.returns.name}"
        )
    columns: list[list[Scalar]] = []
    for (name, dtype), given in zip(function.parameters, inputs):
        if isinstance(given, Tensor):
            if given.dtype is not dtype:
                raise OperandError(f"{what}: input {name} is {given.dtype.name} and must be {dtype.name}")
            held, held_repeat = _registers(f"{what}: input {name}", given, group)
            if held_repeat != repeat:
                raise TileError(f"{what}: input {name} has repeats {held_repeat}, and dst has {repeat}")
            columns.append([trace.value(dtype, row[0]) for row in held])
        else:
            columns.append([_scalar(trace, what, name, dtype, given)] * len(rows))
    guards = predicate.guards(trace, what, pred, group, repeat, len(rows))
    read: list[tuple[str, list[Register]]] = []
    for (name, _), column in zip(function.parameters, columns):
        known = [value.operand for value in column if isinstance(value.operand, Register)]
        if known:  # a constant has no register
            read.append((name, known))
    overlap.check(what, [(f"{what}: dst", rows)], [*read, *overlap.guarded(guards)])
    move = "mov.pred" if dst.dtype is bool_ else f"mov.b{max(dst.dtype.bits, 16)}"
    for index, row in enumerate(rows):
        made = function.inline(trace, [column[index] for column in columns])
        source = convert.settle(trace, _word(made))
        trace.instruction(move, row[0], source, guard=guards[index])


def _word(value: Scalar) -> convert.Converted:
    if value.value is None:
        return value.operand  # type: ignore[return-value]
    return convert.Constant(type(value), convert.literal(type(value), value.value))


def _registers(what: str, tensor: Tensor, group: Group) -> tuple[list[tuple[Register, ...]], tuple[int, ...]]:
    if not isinstance(tensor, Tensor) or not isinstance(tensor.bound, Registers):
        found = f"in {tensor.space} memory" if isinstance(tensor, Tensor) else convert.given(tensor)
        raise OperandError(f"{what} must be a register tensor, and is {found}")
    parts = operand.split(what, tensor, group, ())
    operand.check_owner(what, tensor, group)
    return operand.issue_registers(tensor, parts), parts.repeat


def _scalar(trace: Trace, what: str, name: str, dtype: DType, given: object) -> Scalar:
    if isinstance(given, Scalar) and values.dtype_in(given) is not dtype:
        raise OperandError(f"{what}: input {name} must be {dtype.name}, not {convert.given(given)}")
    if isinstance(given, bool) and dtype is not bool_:
        raise OperandError(f"{what}: input {name} must be {dtype.name}, not {given}")
    return values.scalar(trace, dtype, given, f"{what}: input {name}")
