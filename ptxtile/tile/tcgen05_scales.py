"""Scale factors and sparse metadata of tcgen05.mma: operands in tensor memory, an address a repeat (PTX ISA 9.7.16.10).

Scale factors are bytes, as many for a row in one instruction as the form's scale_vec says: 1, 2 or 4. A word of 32 bits
holds those of four, two or one K repeats; the instruction descriptor says which of them. Row r is in lane r % 32 and
column r / 32 of the operand, four times over (`layout.tensor_memory.scale_factors`).
Sources: CUTLASS include/cute/atom/mma_traits_sm100_frag.hpp (tmem_sf_frg) and arch/mma_sm100_desc.hpp; the cells that
Apache TVM's simulator of tensor memory takes (tests of tirx, raw_tcgen_mma_block_scaled_*).

Of metadata the address alone is checked: what its words are is in figures of the manual.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxtile.errors import TileError
from ptxtile.ir.operand import Operand
from ptxtile.isa.form import Form
from ptxtile.tile import operand, tensor_memory_region as region
from ptxtile.tile.family import Call

_WORD = 4
_LANES = 32
_BYTES = {".scale_vec::1X": 1, ".scale_vec::2X": 2, ".scale_vec::4X": 4, ".block16": 4}


def scale_bytes(form: Form) -> int:
    """Scale factors of a row in one instruction, a byte each."""
    for word, count in _BYTES.items():
        if word in form.modifiers:
            return count
    return 1 if ".kind::mxf8f6f4" in form.modifiers else 2


@dataclass(frozen=True, slots=True)
class Scales:
    """The words of one matrix's scale factors, by (row repeat, word along K), and how many bytes a K repeat takes."""

    words: list[list[Operand]]
    step: int

    def at(self, row: int, k: int) -> tuple[Operand, int]:
        """The address for one repeat, and the byte of its word that it begins with."""
        each = _WORD // self.step
        return self.words[row][k // each], k % each * self.step


def scales(call: Call, name: str, given: object, rows: int, repeats: int, k: int) -> Scales:
    """scale_a or scale_b: words (rows,), or (row repeats, words along K, rows). TileError for another shape, place."""
    what = f"{call.form.spelling}: operand {name}"
    tensor = region.tensor_memory(what, given)
    step = scale_bytes(call.form)
    due = (repeats, -(-k * step // _WORD))
    if ".sp" in call.form.modifiers and k > 1:
        raise TileError(
            f"{call.form.spelling} takes one K repeat at a time: where scale factors of the next one lie is not known "
            "of sparse products"
        )
    parts = operand.split(what, tensor, call.group, (rows,))
    if (parts.repeat or (1, 1)) != due:
        raise TileError(
            f"{what} has repeats {parts.repeat}; {due} are due: row repeats, and words of {_WORD // step} K repeats "
            "each; both may be left out where they are 1"
        )
    places = region.places_of(tensor)
    lanes, columns = tuple(at % _LANES for at in range(rows)), tuple(at // _LANES for at in range(rows))
    region.check_atom(what, places, parts, (lanes,), (columns,))
    found = region.issue_addresses(call.trace, tensor, places, parts, ())
    return Scales([list(found[at * due[1] : (at + 1) * due[1]]) for at in range(due[0])], step)


def metadata(call: Call, given: object, repeats: int, k: int) -> list[list[Operand]]:
    """The address of metadata for each (M repeat, K repeat): words (lanes, columns), or (M, K, lanes, columns)."""
    what = f"{call.form.spelling}: operand metadata"
    tensor = region.tensor_memory(what, given)
    shape = tensor.static_shape
    if shape[:-2] != (repeats, k) and (len(shape) != 2 or (repeats, k) != (1, 1)):
        raise TileError(
            f"{what} has shape {shape}; ({repeats}, {k}, lanes, columns) is due, the metadata of each M and K repeat; "
            "both may be left out where they are 1"
        )
    parts = operand.split(what, tensor, call.group, shape[-2:])
    found = region.issue_addresses(call.trace, tensor, region.places_of(tensor), parts, ())
    return [list(found[at * k : (at + 1) * k]) for at in range(repeats)]


def selectors(call: Call, k: int) -> list[int]:
    """selector= of each K repeat."""
    if ".sp" not in call.form.modifiers and "selector" in call.parameters:
        raise TileError(f"{call.form.spelling} has no metadata, so no selector=: it is of the sparse forms")
    value = call.parameters.get("selector", 0)
    found: list[int] = []
    for one in value if isinstance(value, (tuple, list)) else [value] * k:
        if isinstance(one, bool) or not isinstance(one, int) or not 0 <= one <= 3:
            raise TileError(f"{call.form.spelling}: selector= is 0 to 3, or a tuple of them, not {value!r}")
        found.append(one)
    if len(found) != k:
        raise TileError(
            f"{call.form.spelling}: selector= has {len(found)} entries, and there are {k} K repeats"
        )
    return found
