"""`tile.apply`: the family of a form, and the errors' last line."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ptxtile import location, tracing
from ptxtile.errors import LayoutError, OperandError, PtxtileError, TileError
from ptxtile.isa import find
from ptxtile.isa.form import Form
from ptxtile.tile import scope as groups
from ptxtile.tile.catalogue import family_of
from ptxtile.tile.family import Call

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
    parameters    of the form's family: docs/tile.md lists them

    OperandError for operands that fit no signature, TileError for what the hardware or the scope does not allow.
    """
    made = find(form) if isinstance(form, str) else form
    if not isinstance(made, Form):
        raise OperandError(f'tile.apply takes a form such as ptx["fma.rn.f32"], not {form!r}' + _here())
    trace = cast("Trace", tracing.emitter(f"tile.apply({made.spelling})"))
    try:
        group = groups.group(trace, scope, made.spelling)
        family = family_of(made)
        family.check_parameters(made, parameters)
        family.issue(Call(trace, made, operands, group, pred, preserve_dst, parameters))
    except (LayoutError, OperandError, TileError) as error:
        raise _located(error) from None


def _located(error: PtxtileError) -> PtxtileError:
    text = str(error)
    return error if "\n  " in text and ".py:" in text else type(error)(text + _here())


def _here() -> str:
    return location.quote(location.here(2))
