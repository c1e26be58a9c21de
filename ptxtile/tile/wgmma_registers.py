"""Registers of wgmma: one instruction's fragment after the other, of a tensor over threads or of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ptxtile.builder import convert
from ptxtile.builder.storage import Layout, Registers
from ptxtile.builder.tensors import Tensor
from ptxtile.errors import OperandError, TileError
from ptxtile.ir.operand import Register
from ptxtile.layout import ComposeLayout
from ptxtile.tile import operand
from ptxtile.tile.scope import Group

ROWS = 64
"""Of D and A, in one instruction."""

Fragments = list[list[tuple[Register, ...]]]
_THREAD = {"laneid": 1, "wid_in_wg": 32, "tid_in_wg": 1}


def fragments(
    what: str,
    tensor: object,
    group: Group,
    count: int,
    fragment: Layout | None,
    repeats: tuple[int, int] | None,
    dtypes: Sequence[str],
) -> Fragments:
    """The registers of each instruction, by its repeats along rows and columns.

    Args:
        what: begins an error.
        tensor: (4, 32, *repeats, count), or a matrix of 64 rows and the fragment's columns for each repeat.
        group: the warpgroup.
        count: registers of one instruction in one thread.
        fragment: of one instruction's matrix, None where the operand is none.
        repeats: how many there must be, None for any.
        dtypes: names of those that may be.

    Raises:
        OperandError, TileError: another tensor, owner or shape.
    """
    if not isinstance(tensor, Tensor) or not isinstance(tensor.bound, Registers):
        raise OperandError(f"{what} takes a register tensor, not {convert.given(tensor)}")
    if tensor.dtype.name not in dtypes:
        raise OperandError(f"{what} takes registers of {' or '.join(dtypes)}, not {tensor.dtype.name}")
    if len(tensor.static_shape) == 2 and fragment is not None:
        return _of_matrix(what, tensor, fragment, repeats)
    parts = operand.split(what, tensor, group, (count,))
    operand.check_owner(what, tensor, group)
    repeat = parts.repeat or (1, 1)
    if len(repeat) != 2 or (repeats is not None and repeat != repeats):
        due = f"{repeats}" if repeats else "two"
        raise TileError(f"{what} has repeats {parts.repeat}; {due} are due, rows and then columns")
    issues = operand.issue_registers(tensor, parts)
    return [issues[at * repeat[1] : (at + 1) * repeat[1]] for at in range(repeat[0])]


def _of_matrix(what: str, tensor: Tensor, fragment: Layout, repeats: tuple[int, int] | None) -> Fragments:
    shape, columns = tensor.static_shape, fragment.size() // ROWS
    if shape[0] % ROWS or shape[1] % columns:
        raise TileError(
            f"{what} has shape {shape}; a matrix has a multiple of {ROWS} rows and of {columns} columns"
        )
    found = (shape[0] // ROWS, shape[1] // columns)
    if repeats is not None and found != repeats:
        due = (repeats[0] * ROWS, repeats[1] * columns)
        raise TileError(f"{what} has shape {shape}; with these a and b it is {due}")
    return _registers(what, tensor, fragment, columns, found)


def _registers(
    what: str, tensor: Tensor, fragment: Layout, columns: int, repeats: tuple[int, int]
) -> Fragments:
    layout, storage = tensor.layout, tensor.bound
    assert layout is not None and isinstance(storage, Registers)
    owners, (offset, places) = _tables(what, layout, tensor.static_shape)
    due, (_, slots) = _tables(what, fragment, (ROWS, columns))
    start = offset + (tensor.origin.known or 0)
    result: Fragments = []
    for i in range(repeats[0]):
        line = []
        for j in range(repeats[1]):
            held = [0] * (1 + max(slots[0]) + max(slots[1]))
            for dim, (first, size) in enumerate(((i * ROWS, ROWS), (j * columns, columns))):
                part = slice(first, first + size)
                _check(what, fragment, owners[dim][part], due[dim])
                _check_places(what, fragment, places[dim][part], slots[dim])
            for row, across in _first_lane(due):
                held[slots[0][row] + slots[1][across]] = (
                    start + places[0][i * ROWS + row] + places[1][j * columns + across]
                )
            line.append(tuple([storage.registers[place] for place in held]))
        result.append(line)
    return result


Table = tuple[int, tuple[tuple[int, ...], ...]]


@lru_cache(maxsize=256)
def _tables(what: str, layout: Layout, shape: tuple[int, int]) -> tuple[tuple[tuple[int, ...], ...], Table]:
    """The thread of the warpgroup, by row and by column (offsets in the rows), and the table of `m`."""
    found = operand.tables(layout, shape)
    unknown = [axis for axis in found if axis not in _THREAD and axis != "m"]
    if unknown or isinstance(layout, ComposeLayout):
        reason = f"names {unknown[0]}" if unknown else "is swizzled"
        raise TileError(
            f"{what}: its layout {reason}; a fragment's axes are wid_in_wg, laneid (or tid_in_wg) and m"
        )
    rows, columns = [0] * shape[0], [0] * shape[1]
    for axis, unit in _THREAD.items():
        if axis in found:
            offset, (down, across) = found[axis]
            rows = [value + (step + offset) * unit for value, step in zip(rows, down)]
            columns = [value + step * unit for value, step in zip(columns, across)]
    return (tuple(rows), tuple(columns)), found.get("m", (0, ((0,) * shape[0], (0,) * shape[1])))


def _first_lane(threads: tuple[tuple[int, ...], ...]) -> list[tuple[int, int]]:
    """The elements of a fragment that thread 0 holds."""
    rows = [at for at, thread in enumerate(threads[0]) if thread == 0]
    columns = [at for at, thread in enumerate(threads[1]) if thread == 0]
    return [(row, column) for row in rows for column in columns]


def _check(what: str, fragment: Layout, threads: Sequence[int], due: Sequence[int]) -> None:
    if tuple(threads) != tuple(due):
        raise TileError(
            f"{what}: its elements are not with the threads that hold them in the fragment {fragment!r}"
        )


def _check_places(what: str, fragment: Layout, places: Sequence[int], slots: Sequence[int]) -> None:
    """One register of the fragment is one register of the tensor, whichever thread asks."""
    known: dict[int, int] = {}
    for slot, place in zip(slots, places):
        if known.setdefault(slot, place) != place:
            raise TileError(
                f"{what}: threads keep the same part of the fragment {fragment!r} in different registers"
            )
