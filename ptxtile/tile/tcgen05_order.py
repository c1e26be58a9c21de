"""tcgen05.commit and tcgen05.shift over tiles (PTX ISA 9.7.16.12.1 and 9.7.16.9.3), each by one thread.

commit    (mbarrier[, cta_mask]): the mbarrier counts one arrival when the thread's copies, products and shifts so
          far are done; with .multicast::cluster the one at its place in each CTA of the mask
shift     (tensor memory,): words (*repeats, 32, 8), whose rows move down by one; the lane is a multiple of 32
"""

from __future__ import annotations

from ptxtile.builder import convert
from ptxtile.builder.scalars import reg
from ptxtile.builder.tensors import Tensor
from ptxtile.dtypes import uint16
from ptxtile.errors import OperandError, TileError
from ptxtile.tile import operand, predicate, registers, tensor_memory_region as region
from ptxtile.tile.family import GUARDED, Call, Family

_ROWS, _WORDS = 32, 8


def _one_thread(call: Call) -> None:
    if call.group.scope != "thread":
        raise TileError(
            f'{call.form.spelling} is issued by one thread: scope="thread", as in pt.if_(pt.elect())'
        )
    predicate.check_preserve(call.form.spelling, call.preserve_dst, call.pred, False)


def issue_commit(call: Call) -> None:
    """tcgen05.commit; see the module's docstring."""
    form = call.form
    _one_thread(call)
    names = [slot.name for slot in form.signatures[0].operands]
    given = list(call.take(len(names), ", ".join(names)))
    if isinstance(given[0], Tensor):
        raise OperandError(
            f"{form.spelling}: operand mbar takes an mbarrier, such as pt.mbarrier(1)[0], not a tensor"
        )
    mask = given[-1].value if isinstance(given[-1], uint16) else given[-1]
    if len(given) == 2 and type(mask) is int and 0 <= mask < 1 << 16:
        given[1] = reg(uint16, mask)  # NVIDIA's assembler of CUDA 13.0 takes no literal here
    convert.emit(call.trace, form, tuple(given), call.pred)


def issue_shift(call: Call) -> None:
    """tcgen05.shift; see the module's docstring."""
    form, trace = call.form, call.trace
    _one_thread(call)
    (given,) = call.take(1, "tensor memory")
    where = f"{form.spelling}: operand taddr"
    tensor = region.tensor_memory(where, given)
    parts = operand.split(where, tensor, call.group, (_ROWS, _WORDS))
    places = region.places_of(tensor)
    lanes = tuple(range(_ROWS)), (0,) * _WORDS
    region.check_atom(where, places, parts, lanes, ((0,) * _ROWS, tuple(range(_WORDS))))
    found = region.issue_addresses(trace, tensor, places, parts, ())
    for address in found:
        if (address.offset >> 16) % _ROWS:
            raise TileError(
                f"{where}: rows are shifted from a lane that is a multiple of 32, not {address.offset >> 16}"
            )
    guards = predicate.guards(trace, form.spelling, call.pred, call.group, parts.repeat, parts.issues)
    registers.emit(trace, form, [found], guards)


COMMIT = Family(
    name="tcgen05.commit",
    section="9.7.16.12.1",
    starts=("tcgen05.commit.",),
    operands=("mbarrier[, cta_mask]",),
    atoms="none: one instruction",
    carriers="none",
    guards=GUARDED,
    scopes="thread",
    judges=("ptxas", "emulator"),
    issue=issue_commit,
)

SHIFT = Family(
    name="tcgen05.shift",
    section="9.7.16.9.3",
    starts=("tcgen05.shift.",),
    operands=("tensor memory",),
    atoms="words (32, 8): rows of 256 bits, from a lane that is a multiple of 32",
    carriers="words of 32 bits",
    guards=GUARDED,
    scopes="thread",
    judges=("ptxas", "emulator"),
    issue=issue_shift,
)
