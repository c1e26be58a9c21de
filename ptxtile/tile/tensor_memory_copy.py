"""tcgen05.cp over tiles: shared to tensor memory (PTX ISA 9.7.16.9.2).

Operands in PTX order, by one thread: (tensor memory, shared memory), words (*repeats, rows, columns) in both: (128, 8),
(4, 8), (128, 4), (64, 4) or (32, 4). The shared matrix is K-major, with a swizzle or without. Rows go to lanes in
order, those of .4x256b 32 lanes apart; of a multicast the layout names the first copy: .warpx4 lanes 0 to 31, .02_13
lanes 0 to 63, .01_23 lanes 0 to 31 and 64 to 95. A decompressing copy (.b8x16) makes 16 bytes of each 16 bytes, which
begin with 16 elements of four or six bits, packed, and end in padding: so the two shapes stay alike.
Sources: PTX ISA 9.7.16.9.2; CUTLASS include/cute/atom/copy_traits_sm100.hpp (SM100_UTCCP_*); what Apache TVM's
simulator of tensor memory takes and gives (tests of tirx, raw_tcgen_cp_*).
"""

from __future__ import annotations

from ptxtile.errors import LayoutError, TileError
from ptxtile.isa.form import Form
from ptxtile.tile import operand, predicate, registers, tensor_memory_region as region
from ptxtile.tile.family import GUARDED, Call, Family
from ptxtile.tile.tcgen05_matrix import copy_descriptor

_SHAPES = {
    ".128x256b": (128, 8),
    ".4x256b": (4, 8),
    ".128x128b": (128, 4),
    ".64x128b": (64, 4),
    ".32x128b": (32, 4),
}


def issue(call: Call) -> None:
    """See the module's docstring."""
    form, trace = call.form, call.trace
    if call.group.scope != "thread":
        raise TileError(f'{form.spelling} is issued by one thread: scope="thread", as in pt.if_(pt.elect())')
    predicate.check_preserve(form.spelling, call.preserve_dst, call.pred, False)
    to, source = call.take(2, "tensor memory, shared memory")
    rows, columns = next(_SHAPES[word] for word in form.modifiers if word in _SHAPES)
    where = f"{form.spelling}: operand taddr"
    tensor = region.tensor_memory(where, to)
    parts = operand.split(where, tensor, call.group, (rows, columns))
    places = region.places_of(tensor)
    region.check_atom(
        where, places, parts, (_lanes(form, rows), (0,) * columns), ((0,) * rows, tuple(range(columns)))
    )
    addresses = region.issue_addresses(trace, tensor, places, parts, ())
    for each in addresses:
        if each.offset % 4:
            raise LayoutError(
                f"{where}: a copy starts at a multiple of 4 columns, not at {each.offset & 0xFFFF}"
            )
    sources = copy_descriptor(trace, f"{form.spelling}: operand s_desc", source, (rows, columns), parts)
    guards = predicate.guards(trace, form.spelling, call.pred, call.group, parts.repeat, parts.issues)
    registers.emit(trace, form, [addresses, sources], guards)


def _lanes(form: Form, rows: int) -> tuple[int, ...]:
    """The lane of each row, counted from the first."""
    if ".4x256b" in form.modifiers:
        return tuple(range(0, 32 * rows, 32))
    apart = 32 if ".warpx2::01_23" in form.modifiers else 0
    return tuple(row + apart * (row >= 32) for row in range(rows))


FAMILY = Family(
    name="tcgen05.cp",
    section="9.7.16.9.2",
    starts=("tcgen05.cp.",),
    operands=("tensor memory, shared memory",),
    atoms="words (128, 8), (4, 8), (128, 4), (64, 4), (32, 4)",
    carriers="words of 32 bits in tensor memory; uint32 in shared memory, packed elements with their padding",
    guards=GUARDED,
    scopes="thread",
    judges=("ptxas", "emulator"),
    issue=issue,
)
