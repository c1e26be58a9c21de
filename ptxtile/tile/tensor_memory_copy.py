"""tcgen05.cp over tiles: shared to tensor memory (PTX ISA 9.7.16.9.2).

Operands in PTX order, by one thread: (tensor memory, shared memory), words (*repeats, rows, columns) in both; (128, 8),
(128, 4), (64, 4) or (32, 4). The shared matrix is K-major, without swizzle. Rows go to lanes in order; of a multicast
the layout names the first copy: .warpx4 lanes 0 to 31, .02_13 lanes 0 to 63, .01_23 lanes 0 to 31 and 64 to 95.
Sources: PTX ISA 9.7.16.9.2; CUTLASS include/cute/atom/copy_traits_sm100.hpp (SM100_UTCCP_*). Of .4x256b there is one
source alone, so it is left to the form itself.
"""

from __future__ import annotations

from ptxtile.errors import LayoutError, TileError
from ptxtile.tile import operand, predicate, registers, tensor_memory_region as region
from ptxtile.tile.family import GUARDED, Call, Family
from ptxtile.tile.tcgen05_matrix import copy_descriptor

_SHAPES = {".128x256b": (128, 8), ".128x128b": (128, 4), ".64x128b": (64, 4), ".32x128b": (32, 4)}


def issue(call: Call) -> None:
    """See the module's docstring."""
    form, trace = call.form, call.trace
    if call.group.scope != "thread":
        raise TileError(f'{form.spelling} is issued by one thread: scope="thread", as in pt.if_(pt.elect())')
    predicate.check_preserve(form.spelling, call.preserve_dst, call.pred, False)
    to, source = call.take(2, "tensor memory, shared memory")
    found = [_SHAPES[word] for word in form.modifiers if word in _SHAPES]
    if not found or ".b8x16" in form.modifiers:
        what = "decompresses" if found else "writes four lanes"
        raise TileError(f"{form.spelling} {what}, which no layout here says: call the form itself")
    rows, columns = found[0]
    where = f"{form.spelling}: operand taddr"
    tensor = region.tensor_memory(where, to)
    parts = operand.split(where, tensor, call.group, (rows, columns))
    places = region.places_of(tensor)
    apart = 32 if ".warpx2::01_23" in form.modifiers else 0
    lanes = tuple(row + apart * (row >= 32) for row in range(rows)), (0,) * columns
    region.check_atom(where, places, parts, lanes, ((0,) * rows, tuple(range(columns))))
    addresses = region.issue_addresses(trace, tensor, places, parts, ())
    for each in addresses:
        if each.offset % 4:
            raise LayoutError(
                f"{where}: a copy starts at a multiple of 4 columns, not at {each.offset & 0xFFFF}"
            )
    sources = copy_descriptor(trace, f"{form.spelling}: operand s_desc", source, (rows, columns), parts)
    guards = predicate.guards(trace, form.spelling, call.pred, call.group, parts.repeat, parts.issues)
    registers.emit(trace, form, [addresses, sources], guards)


FAMILY = Family(
    name="tcgen05.cp",
    section="9.7.16.9.2",
    starts=("tcgen05.cp.",),
    operands=("tensor memory, shared memory",),
    atoms="words (128, 8), (128, 4), (64, 4), (32, 4)",
    carriers="words of 32 bits in tensor memory; uint32 in shared memory",
    guards=GUARDED,
    scopes="thread",
    judges=("ptxas",),
    issue=issue,
)
