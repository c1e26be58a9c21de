"""tcgen05.ld, tcgen05.st and tcgen05.cp over tiles (PTX ISA 9.7.16.8 and 9.7.16.9).

Operands in PTX order. ld and st, above thread scope, by warps that are known, each in its own 32 lanes:
    registers        (*repeats, *fragment): (32, N) of .32x32b, (16, 2 N) .16x64b, (16, 4 N) .16x128b, (16, 8 N) .16x256b,
                     (2, 16, N) .16x32bx2
    tensor memory    the same; with .pack::16b or .unpack::16b one more axis, (…, 2): two columns a word
The half_split_off of .16x32bx2 is the distance of its two regions in columns. tcgen05.wait is the caller's.

cp, by one thread: (tensor memory, shared memory), words (128, 8), (128, 4), (4, 8), (64, 4), (32, 4); the shared matrix
is K-major, without swizzle. Of the multicasts the layout names the first copy.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ptxtile.errors import LayoutError, OperandError, TileError
from ptxtile.ir.operand import Integer, Operand, Vector
from ptxtile.isa.form import Form
from ptxtile.layout.mma_fragment import Fragment
from ptxtile.layout.tensor_memory import tensor_memory_fragment
from ptxtile.tile import collective, operand, overlap, predicate, registers, tensor_memory_region as region
from ptxtile.tile.family import GUARDED, Call, Family
from ptxtile.tile.scope import coordinate
from ptxtile.tile.tcgen05_matrix import copy_descriptor

_SHAPES = ("32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2")


def fragment(form: Form) -> Fragment:
    """The registers of a tcgen05.ld or .st."""
    shape = next(word[1:] for word in form.modifiers if word[1:] in _SHAPES)
    count = next(int(word[2:]) for word in form.modifiers if word[:2] == ".x" and word[2:].isdigit())
    return tensor_memory_fragment(shape, count)


def issue(call: Call) -> None:
    """tcgen05.ld and tcgen05.st."""
    form, trace = call.form, call.trace
    loads = ".ld" in form.modifiers
    order = "registers, tensor memory" if loads else "tensor memory, registers"
    given = call.take(2, order)
    group = collective.warps(form.spelling, call.group)
    predicate.check_preserve(form.spelling, call.preserve_dst, call.pred, loads)
    words = fragment(form)
    at = 0 if loads else 1
    what, where = f"{form.spelling}: operand r", f"{form.spelling}: operand taddr"
    held = collective.held(what, given[at], group, words, 32)
    tensor = region.tensor_memory(where, given[1 - at])
    packed = any("pack::16b" in word for word in form.modifiers)
    shape = (*words.shape, 2) if packed else words.shape
    parts = operand.split(where, tensor, group, shape)
    places = region.places_of(tensor)
    half = _half(where, places, len(parts.group) + len(parts.repeat)) if len(words.shape) == 3 else None
    region.check_atom(where, places, parts, _atom(words.shape, packed, half or 0))
    region.check_slab(where, places, parts, group, words.shape[-2])
    if parts.repeat != held.repeat:
        raise TileError(f"{where} has repeats {parts.repeat}, and r has {held.repeat}: both repeat alike")
    if loads:
        overlap.check_destination(what, held.issues)
    values: list[Operand] = [Vector(tuple(row)) for row in held.issues]
    addresses = region.issue_addresses(trace, tensor, places, parts, coordinate(call.group)[:-1])
    columns: list[Sequence[Operand]] = [values, addresses] if loads else [addresses, values]
    if half is not None:
        columns.insert(2 if loads else 1, [Integer(half)] * len(values))
    guards = predicate.guards(trace, form.spelling, call.pred, call.group, parts.repeat, parts.issues)
    registers.emit(trace, form, columns, guards)


def _half(what: str, places: region.Places, first: int) -> int:
    """The distance in columns of the two regions of .16x32bx2."""
    if places.lanes[first][1] != places.lanes[first][0]:
        raise TileError(f"{what}: the two regions of .16x32bx2 lie in the same lanes, so many columns apart")
    return places.columns[first][1] - places.columns[first][0]


def _atom(shape: tuple[int, ...], packed: bool, half: int) -> list[tuple[tuple[int, ...], int, int]]:
    """(coordinate, lane, column) of each word of the atom, from its first."""
    *region_, rows, columns = shape
    found = []
    for front in itertools.product(*map(range, region_)):
        for row, column in itertools.product(range(rows), range(columns)):
            start = sum(front) * half
            if not packed:
                found.append(((*front, row, column), row, start + column))
                continue
            found += [((*front, row, column, part), row, start + 2 * column + part) for part in range(2)]
    return found


# --- from shared memory -----------------------------------------------------------------------------------------------
_COPIES = {".128x256b": (128, 8), ".4x256b": (4, 8), ".128x128b": (128, 4), ".64x128b": (64, 4), ".32x128b": (32, 4)}


def copy(call: Call) -> None:
    """tcgen05.cp."""
    form, trace = call.form, call.trace
    if call.group.scope != "thread":
        raise TileError(f'{form.spelling} is issued by one thread: scope="thread", as in pt.if_(pt.elect())')
    if call.preserve_dst:
        raise TileError(f"{form.spelling}: preserve_dst=True requires a destination in registers")
    to, source = call.take(2, "tensor memory, shared memory")
    if any(word.startswith((".b8x16", ".b6x16", ".b4x16")) for word in form.modifiers):
        raise OperandError(f"{form.spelling} decompresses: call the form itself with a descriptor of your own")
    rows, columns = next(_COPIES[word] for word in form.modifiers if word in _COPIES)
    where = f"{form.spelling}: operand taddr"
    tensor = region.tensor_memory(where, to)
    parts = operand.split(where, tensor, call.group, (rows, columns))
    places = region.places_of(tensor)
    region.check_atom(where, places, parts, _atom((rows, columns), False, 0))
    addresses = region.issue_addresses(trace, tensor, places, parts, ())
    for each in addresses:
        if each.offset % 4:
            raise LayoutError(f"{where}: a copy starts at a multiple of 4 columns, not at {each.offset & 0xFFFF}")
    sources = copy_descriptor(trace, f"{form.spelling}: operand s_desc", source, (rows, columns), parts)
    guards = predicate.guards(trace, form.spelling, call.pred, call.group, parts.repeat, parts.issues)
    registers.emit(trace, form, [addresses, sources], guards)


FAMILY = Family(
    name="tcgen05.ld, tcgen05.st",
    section="9.7.16.8",
    starts=("tcgen05.ld.sync.", "tcgen05.st.sync."),
    operands=("ld: registers, tensor memory", "st: tensor memory, registers"),
    atoms="(32, N) .32x32b, (16, 2 N) .16x64b, (16, 4 N) .16x128b, (16, 8 N) .16x256b, (2, 16, N) .16x32bx2",
    carriers="words of 32 bits",
    scopes="warp and above",
    judges=("ptxas",),
    issue=issue,
)

COPY = Family(
    name="tcgen05.cp",
    section="9.7.16.9.2",
    starts=("tcgen05.cp.",),
    operands=("tensor memory, shared memory",),
    atoms="words (128, 8), (128, 4), (4, 8), (64, 4), (32, 4)",
    carriers="words of 32 bits in tensor memory; uint32 in shared memory",
    guards=GUARDED,
    scopes="thread",
    judges=("ptxas",),
    issue=copy,
)
