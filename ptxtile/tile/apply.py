"""`tile.apply`: the family of a form, and the errors' last line."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ptxtile import location, tracing
from ptxtile.errors import LayoutError, OperandError, PtxtileError, TileError
from ptxtile.isa import find
from ptxtile.isa.form import Form
from ptxtile.tile import memory, registers, scope, tensor_copy, wgmma

if TYPE_CHECKING:
    from ptxtile.builder.trace import Trace


def apply(
    form: Form | str,
    *operands: object,
    scope: str = "thread",
    pred: object = None,
    preserve_dst: bool = False,
    **parameters: object,
) -> None:
    """Issue `form` once for each repeat of its tensor operands, operands in PTX order.

    form          `ptx["fma.rn.f32"]`, or its spelling
    operands      tensors of shape (*group, *repeat, *atom); read-only scalars and numbers serve every repeat
    scope         "thread", "warp", "warpgroup", "cta", "cluster": which threads the group axes are
    pred          a run-time bool_, or a bool_ register tensor over the repeats: guards each instruction
    preserve_dst  keep the destination's old value where `pred` is false; without it that value is undefined
    parameters    of the form's family: cache_policy (ld, st with .L2::cache_hint)

    OperandError for operands that fit no signature, TileError for what the hardware or the scope does not allow.
    """
    made = find(form) if isinstance(form, str) else form
    if not isinstance(made, Form):
        raise OperandError(f'tile.apply takes a form such as ptx["fma.rn.f32"], not {form!r}' + _here())
    trace = cast("Trace", tracing.emitter(f"tile.apply({made.spelling})"))
    try:
        _dispatch(trace, made, operands, scope, pred, preserve_dst, parameters)
    except (LayoutError, OperandError, TileError) as error:
        raise _located(error) from None


def _dispatch(
    trace: Trace,
    form: Form,
    operands: tuple[object, ...],
    scope_name: str,
    pred: object,
    preserve_dst: bool,
    parameters: dict[str, object],
) -> None:
    group = scope.group(trace, scope_name, form.spelling)
    if memory.is_access(form):
        policy = parameters.pop("cache_policy", None)
        _no_more(form, parameters, ("cache_policy",))
        memory.apply(trace, form, operands, group, pred, preserve_dst, policy)
        return
    if wgmma.is_wgmma(form):
        unknown = {name: value for name, value in parameters.items() if name not in wgmma.PARAMETERS}
        _no_more(form, unknown, wgmma.PARAMETERS)
        wgmma.apply(trace, form, operands, group, pred, preserve_dst, parameters)
        return
    if tensor_copy.is_tensor_copy(form):
        _no_more(form, parameters, ())
        tensor_copy.apply(trace, form, operands, group, pred)
        return
    slots = [slot for signature in form.signatures for slot in signature.operands]
    if any(slot.kind not in ("value", "vector", "pair", "sink") for slot in slots):
        raise TileError(
            f"{form.spelling} is no tile operation: its operands are not all registers; call the form itself"
        )
    _no_more(form, parameters, ())
    registers.apply(trace, form, operands, group, pred, preserve_dst)


def _no_more(form: Form, parameters: dict[str, object], known: tuple[str, ...]) -> None:
    if parameters:
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise TileError(
            f"{form.spelling} has no parameter {next(iter(parameters))!r}; {has} beside scope, pred, preserve_dst"
        )


def _located(error: PtxtileError) -> PtxtileError:
    text = str(error)
    return error if "\n  " in text and ".py:" in text else type(error)(text + _here())


def _here() -> str:
    return location.quote(location.here(2))
