"""mma.sync over tiles: fragments of registers, K innermost (PTX ISA 9.7.14.5.14 and 9.7.14.6.3).

Operands in PTX order, above thread scope; the axes before a fragment's atom are the warps of the scope and repeats:
    d, c    (*batch, M, N, 16, 8), or (…, 16, 4) of float16 pairs; c may be one number or value for every element
    a       (*batch, M, K, 16, words of K)
    b       (*batch, N, K, 8, words of K)
    metadata, scale_a, scale_b    one word of every lane, (*batch, M, K, 32), for b (*batch, N, K, 32); or one value
    selector, (byte, thread)      integers
The repeat axes may all be left out. Later K repeats take d as their c; no other overlap of d is allowed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ptxtile.builder import convert
from ptxtile.builder.convert import Mismatch
from ptxtile.builder.tensors import Tensor
from ptxtile.dtypes import uint32
from ptxtile.errors import OperandError, TileError
from ptxtile.ir.operand import Operand, Register, Vector
from ptxtile.isa import type_bits
from ptxtile.isa.form import Form, Operand as Slot
from ptxtile.layout.mma_fragment import Fragment, mma_a, mma_b, mma_c, per_lane
from ptxtile.tile import collective, overlap, predicate, registers
from ptxtile.tile.collective import Held
from ptxtile.tile.family import Call, Family
from ptxtile.tile.operand import Shape
from ptxtile.tile.scope import Group

_TYPES = frozenset(
    ".f16 .bf16 .tf32 .f32 .f64 .s32 .e4m3 .e5m2 .e3m2 .e2m3 .e2m1 .u8 .s8 .u4 .s4 .b1".split()
)
_SCALED = ("scale_a", "scale_b")


@dataclass(frozen=True, slots=True)
class Shapes:
    """The fragments of d, a, b and c of a form, and the bits of a register."""

    d: Fragment
    a: Fragment
    b: Fragment
    c: Fragment
    bits: int


def shapes(form: Form) -> Shapes:
    """The fragments of a mma form."""
    words = form.modifiers
    shape = next(word for word in words if word[1:2] == "m" and "n8k" in word)
    d, a, b, c = [word for word in words if word in _TYPES][:4]
    bytes_each = ".kind::f8f6f4" in words or ".kind::mxf8f6f4" in words
    widths = [8 if bytes_each else type_bits(each) for each in (a, b)]
    sparse = any(word.startswith(".sp") for word in words)
    quad = shape == ".m8n8k4" and a == ".f16"
    orders = [word[1:] for word in words if word in (".row", ".col")]
    return Shapes(
        mma_c(shape, type_bits(d), quad),
        mma_a(shape, widths[0], sparse, orders[0]),
        mma_b(shape, widths[1], orders[1]),
        mma_c(shape, type_bits(c), quad),
        64 if d == ".f64" else 32,
    )


def issue(call: Call) -> None:
    """See the module's docstring."""
    form, trace = call.form, call.trace
    signature = form.signatures[0]
    slots = signature.operands
    given = call.take(len(slots), ", ".join(slot.name for slot in slots))
    group = collective.warps(form.spelling, call.group)
    predicate.check_preserve(form.spelling, call.preserve_dst, call.pred, True)
    found = shapes(form)
    d = collective.held(_name(form, slots[0]), given[0], group, found.d, found.bits)
    a = collective.held(_name(form, slots[1]), given[1], group, found.a, found.bits)
    b = collective.held(_name(form, slots[2]), given[2], group, found.b, found.bits)
    batch, m, n, k = _repeats(form, d, a, b)
    c = _addend(call, slots[3], given[3], group, found, d)
    tails = [_tail(call, slot, item, group, (batch, m, n, k)) for slot, item in zip(slots[4:], given[4:])]
    order = list(itertools.product(range(_size(batch)), range(m), range(n), range(k)))
    sums = [d.issues[(x * m + i) * n + j] for x, i, j, _ in order]
    ds: list[Operand] = [Vector(row) for row in d.issues]
    lefts: list[Operand] = [Vector(row) for row in a.issues]
    rights: list[Operand] = [Vector(row) for row in b.issues]
    out = [ds[(x * m + i) * n + j] for x, i, j, _ in order]
    left = [lefts[(x * m + i) * k + s] for x, i, _, s in order]
    right = [rights[(x * n + j) * k + s] for x, _, j, s in order]
    start = [
        out[at] if step[3] else c[(step[0] * m + step[1]) * n + step[2]] for at, step in enumerate(order)
    ]
    columns: list[Sequence[Operand]] = [out, left, right, start]
    columns += [
        [tail[_tail_index(slot, at, m, n, k)] for at in order] for slot, tail in zip(slots[4:], tails)
    ]
    repeats = (*batch, m, n, k)
    guards = predicate.guards(
        trace, form.spelling, call.pred, call.group, repeats if d.repeat else (), len(order)
    )
    _check_overlap(form, slots, d, sums, columns, guards)
    registers.emit(trace, form, columns, guards)


def _name(form: Form, slot: Slot) -> str:
    return f"{form.spelling}: operand {slot.name}"


def _size(extents: Shape) -> int:
    total = 1
    for extent in extents:
        total *= extent
    return total


def _repeats(form: Form, d: Held, a: Held, b: Held) -> tuple[Shape, int, int, int]:
    """(batch, M, N, K). TileError where the three operands do not agree."""
    ranks = {len(each.repeat) for each in (d, a, b)}
    told = f"d has repeats {d.repeat}, a {a.repeat} and b {b.repeat}"
    if ranks == {0}:
        return (), 1, 1, 1
    if len(ranks) != 1 or ranks == {1}:
        raise TileError(
            f"{form.spelling}: {told}; they are (*batch, M, N), (*batch, M, K) and (*batch, N, K)"
        )
    *batch, m, n = d.repeat
    k = a.repeat[-1]
    if a.repeat != (*batch, m, k) or b.repeat != (*batch, n, k):
        raise TileError(
            f"{form.spelling}: {told}; they are (*batch, M, N), (*batch, M, K) and (*batch, N, K)"
        )
    return tuple(batch), m, n, k


def _addend(call: Call, slot: Slot, given: object, group: Group, found: Shapes, d: Held) -> Sequence[Operand]:
    """c of each (batch, M, N)."""
    form = call.form
    if isinstance(given, Tensor):
        c = collective.held(_name(form, slot), given, group, found.c, found.bits)
        if c.repeat != d.repeat:
            raise TileError(
                f"{_name(form, slot)} has repeats {c.repeat}, and d has {d.repeat}: both repeat alike"
            )
        return [Vector(row) for row in c.issues]
    word = _word(call, slot, given, form)
    return [Vector((word,) * found.c.registers)] * len(d.issues)


def _word(call: Call, slot: Slot, given: object, form: Form) -> Operand:
    """One value for every register of c, of the accumulator's type; a pair of float16 is a register."""
    type_ = [word for word in form.modifiers if word in _TYPES][3]
    due = {".f16": ".f16x2", ".s32": ".s32"}.get(type_, type_)
    literals = {".f16": frozenset[str](), ".s32": frozenset({"int"})}.get(type_, frozenset({"f32", "f64"}))
    one = Slot(
        slot.name, "in", "value", due, slot.carrier, slot.registers | {"u32", "s32"}, immediate=bool(literals),
        literals=literals,
    )  # fmt: skip
    if type_ == ".f16" and type(given) in (int, float) and given == 0:
        given = uint32(0)  # the one packing that needs no word of its order
    try:
        return convert.settle(call.trace, convert.convert(call.trace, form, one, given))
    except Mismatch as reason:
        raise OperandError(f"{form.spelling}: {convert.refusal(one, given, reason)}") from None


def _tail(
    call: Call, slot: Slot, given: object, group: Group, repeats: tuple[Shape, int, int, int]
) -> list[Operand]:
    """metadata, selector, scale factors and their places, for each (batch, row or column, K)."""
    form, (batch, m, n, k) = call.form, repeats
    lines = n if slot.name == "scale_b" else m
    if isinstance(given, Tensor):
        what = _name(form, slot)
        one = collective.held(what, given, group, per_lane(), 32)
        single = _size(batch) * lines * k == 1
        if one.repeat != (*batch, lines, k) and not (single and not one.repeat):
            raise TileError(
                f"{what} has repeats {one.repeat}; {(*batch, lines, k)} are due: one word a lane for each"
            )
        return [row[0] for row in one.issues]
    try:
        word = convert.settle(call.trace, convert.convert(call.trace, form, slot, given))
    except Mismatch as reason:
        raise OperandError(f"{form.spelling}: {convert.refusal(slot, given, reason)}") from None
    return [word] * (_size(batch) * lines * k)


def _tail_index(slot: Slot, at: tuple[int, ...], m: int, n: int, k: int) -> int:
    batch, i, j, s = at
    return (batch * n + j) * k + s if slot.name == "scale_b" else (batch * m + i) * k + s


def _check_overlap(
    form: Form,
    slots: Sequence[Slot],
    d: Held,
    sums: Sequence[Sequence[Register]],
    columns: Sequence[Sequence[Operand]],
    guards: predicate.Guards,
) -> None:
    """No source but the accumulator itself is a register of d that an earlier issue wrote."""
    written = overlap.check_destination(_name(form, slots[0]), d.issues).keys()
    writer: dict[str, int] = {}
    out = columns[0]
    for slot, column in zip(slots[1:], columns[1:]):
        # One look at the operands of all issues: nearly always they are other registers than d's.
        fed_back = slot is slots[3]
        others = [word for word, own in zip(column, out) if word is not own] if fed_back else column
        if written.isdisjoint(overlap.names_in(others)):
            continue
        writer = writer or _writers(sums)
        for number, word in enumerate(column):
            if not fed_back or word is not out[number]:
                _check_word(form, slot.name, number, word, writer)
    for number, guard in enumerate(guards):
        if guard is not None and guard.register.name in written:
            _check_word(form, "pred", number, guard.register, writer or _writers(sums))


def _writers(sums: Sequence[Sequence[Register]]) -> dict[str, int]:
    """The issue that first writes each register of d."""
    writer: dict[str, int] = {}
    for number, row in enumerate(sums):
        for register in row:
            writer.setdefault(register.name, number)
    return writer


def _check_word(form: Form, name: str, number: int, word: Operand, writer: dict[str, int]) -> None:
    elements = word.elements if type(word) is Vector else (word,)
    for register in elements:
        if type(register) is Register and writer.get(register.name, number) < number:
            raise TileError(
                f"{form.spelling}: issue {number} reads {name} from {register}, which issue {writer[register.name]} "
                "has already overwritten; d may be c in place, and nothing else"
            )


FAMILY = Family(
    name="mma",
    section="9.7.14.5 and 9.7.14.6",
    starts=("mma.sync.", "mma.sp.sync.", "mma.sp::ordered_metadata.sync."),
    operands=(
        "d, a, b, c",
        "sparse: d, a, b, c, metadata, selector",
        "block-scaled: d, a, b, c[, metadata, selector], scale_a, (byte_a, thread_a), scale_b, (byte_b, thread_b)",
    ),
    atoms="d, c (16, 8), pairs (16, 4); a (16, words of K); b (8, words of K); words of lanes (32,)",
    carriers="words of 32 bits (uint32, float32), float64",
    scopes="warp and above",
    judges=("ptxas", "emulator", "H200"),
    issue=issue,
)
