"""shfl, vote, match, redux, elect and activemask over tiles: registers, by the whole warp (PTX ISA 9.7.9.6, 9.7.13).

Operands as the manual writes them, as of any register form; a tuple for d|p. Every lane of the warp takes part: at
thread scope too, all 32 are active, or `membermask` is a constant that names exactly those that are.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxtile.dtypes import Scalar
from ptxtile.errors import TileError
from ptxtile.tile import registers, scope
from ptxtile.tile.family import Call, Family
from ptxtile.tile.scope import WARP, Steps


def issue(call: Call) -> None:
    """One instruction a repeat, after the check of the lanes."""
    if call.form.opcode != "activemask" and call.trace.launch.threads is not None:
        lanes = scope.group(call.trace, "warp", call.form.spelling).lanes
        assert lanes is not None
        _check(call, lanes, call.operands)
    registers.apply(call.trace, call.form, call.operands, call.group, call.pred, call.preserve_dst)


def _check(call: Call, lanes: Steps, operands: Sequence[object]) -> None:
    if (lanes.count, lanes.first) == (WARP, 0):
        return
    active = sum(1 << lanes[at] for at in range(lanes.count))
    given = operands[-1] if operands else None
    mask = given.value if isinstance(given, Scalar) else given
    if mask != active:
        raise TileError(
            f"{call.form.spelling} requires all 32 lanes of a warp to be active; active here are {lanes.count} from "
            f"lane {lanes.first}: they alone take part if membermask is the constant {active:#x}"
        )


FAMILY = Family(
    name="shfl, vote, match, redux, elect, activemask",
    section="9.7.9.6 and 9.7.13.9 to 9.7.13.14",
    starts=("shfl.", "vote.", "match.", "redux.", "elect.", "activemask."),
    operands=("as the manual writes them; a tuple for d|p",),
    atoms="(1,)",
    carriers="the slot's dtype, bool_ for predicates",
    judges=("ptxas", "emulator", "H200"),
    issue=issue,
)
