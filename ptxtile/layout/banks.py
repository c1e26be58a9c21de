"""Which lanes collide on the banks of shared memory when a warp makes one access.

Model: 32 banks of 4 bytes. A warp's access of 4 bytes or less a lane is one phase; of 8 bytes, two phases of
16 lanes; of 16 bytes, four phases of 8 lanes. In a phase, a bank serves one 4-byte word at a time; lanes that
want the same word share it. The count is of such servings; it says nothing about time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ptxtile.errors import LayoutError
from ptxtile.layout.axis import m, whole
from ptxtile.layout.swizzle import as_layout

__all__ = ["BankReport", "Conflict", "bank_conflicts"]

_BANKS = 32
_WORD_BYTES = 4


@dataclass(frozen=True, slots=True)
class Conflict:
    """One bank that several words are wanted from in one phase: for each word, the lanes that want it."""

    phase: int
    bank: int
    lanes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class BankReport:
    """`servings` in all, `phases` at the least; `conflicts` says where the difference comes from."""

    width_bytes: int
    phases: int
    servings: int
    conflicts: tuple[Conflict, ...]

    def __str__(self) -> str:
        lines = [f"{self.servings} servings where {self.phases} would do, at {self.width_bytes} bytes a lane"]
        for conflict in self.conflicts:
            groups = " against ".join(",".join(map(str, lanes)) for lanes in conflict.lanes)
            lines.append(f"  phase {conflict.phase}, bank {conflict.bank}: lanes {groups}")
        return "\n".join(lines)


def _phase_size(width_bytes: int) -> int:
    if width_bytes not in (1, 2, 4, 8, 16):
        raise LayoutError(f"an access is 1, 2, 4, 8 or 16 bytes wide, not {width_bytes}")
    return _BANKS * _WORD_BYTES // max(width_bytes, _WORD_BYTES)


def _place(layout: object, coord: tuple[int, ...], shape: Sequence[int] | None, element_bits: int) -> int:
    """The byte address of one lane, from the tensor's base."""
    values = as_layout(layout).apply(*coord, shape=shape)
    bits = values[m.name] * element_bits
    if bits % 8:
        raise LayoutError(f"coordinate {coord} lies at bit {bits}, inside a byte")
    return bits // 8


def bank_conflicts(
    layout: object,
    coords: Sequence[tuple[int, ...] | None],
    *,
    width_bytes: int,
    element_bits: int,
    shape: Sequence[int] | None = None,
) -> BankReport:
    """What one access costs: lane i touches `width_bytes` bytes from coords[i] on (None: the lane is off).

    `element_bits` is the width of the layout's elements; the base is taken to be aligned to all banks (128
    bytes). Raises LayoutError for more than 32 lanes, a wrong width, or a misaligned address.
    """
    size = _phase_size(whole(width_bytes, "width_bytes"))
    if len(coords) > 32:
        raise LayoutError(f"a warp has 32 lanes, not {len(coords)}")
    phases, servings = 0, 0
    conflicts: list[Conflict] = []
    for phase in range(0, len(coords), size):
        banks: dict[int, dict[int, list[int]]] = {}
        for lane, coord in enumerate(coords[phase : phase + size], phase):
            if coord is None:
                continue
            start = _place(layout, coord, shape, element_bits)
            if start % width_bytes:
                raise LayoutError(f"lane {lane} at byte {start} is not aligned to its {width_bytes} bytes")
            for word in range(start // _WORD_BYTES, (start + width_bytes - 1) // _WORD_BYTES + 1):
                banks.setdefault(word % _BANKS, {}).setdefault(word, []).append(lane)
        if banks:
            phases += 1
            servings += max(map(len, banks.values()))
        for bank, words in sorted(banks.items()):
            if len(words) > 1:
                lanes = tuple(map(tuple, words.values()))
                conflicts.append(Conflict(phase // size, bank, lanes))
    return BankReport(width_bytes, phases, servings, tuple(conflicts))
