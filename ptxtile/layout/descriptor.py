"""Matrix descriptors of wgmma, derived from the layout of the matrix in shared memory (PTX ISA 9.7.15.5.1.2).

A matrix is (rows, k): rows are M of A or N of B. K-major: neighbours along k are neighbours in memory; MN-major:
neighbours along the rows are. The hardware knows the matrix as blocks of eight lines of 16, 32, 64 or 128 bytes, the
chunks permuted by the swizzle of that span, and two distances between such blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ptxtile.errors import LayoutError
from ptxtile.layout.shared import SWIZZLES
from ptxtile.layout.swizzle import ComposeLayout, Layout, Swizzle

__all__ = ["MatrixDescriptor", "wgmma_descriptor"]

_CHUNK = 16
_LINES = 8
_MODES = {0: 0, 128: 1, 64: 2, 32: 3}
_FIELD = 1 << 14


@dataclass(frozen=True, slots=True)
class MatrixDescriptor:
    """What a descriptor says beside the start address.

    major      "k" or "mn"
    swizzle    bytes of the span, 0 for none
    leading, stride    byte offsets
    alignment  bytes: the first line of a block of eight must start at a multiple of it
    """

    major: str
    swizzle: int
    leading: int
    stride: int

    @property
    def alignment(self) -> int:
        """Bytes that divide the address of a block of eight lines."""
        return _LINES * self.swizzle if self.swizzle else _CHUNK

    @property
    def bits(self) -> int:
        """The 64 bits, the start address being 0."""
        return self.leading >> 4 << 16 | self.stride >> 4 << 32 | _MODES[self.swizzle] << 62


def _steps(layout: Layout, shape: Sequence[int]) -> list[list[int]]:
    """What each coordinate of each dimension adds to the place on `m`."""
    rows = [[0] * extent for extent in shape]
    for term in layout.plan(shape):
        row = rows[term.dim]
        for at in range(len(row)):
            digit = at // term.div
            row[at] += (digit if term.mod is None else digit % term.mod) * term.stride
    return rows


def _split(what: str, steps: Sequence[int], inner: int) -> tuple[int, int]:
    """(a, b) with steps[i] == i % inner * a + i // inner * b; LayoutError otherwise."""
    first = steps[1] - steps[0] if len(steps) > 1 else 0
    outer = steps[inner] - steps[0] if len(steps) > inner else 0
    for at, step in enumerate(steps):
        if step - steps[0] != at % inner * first + at // inner * outer:
            raise LayoutError(
                f"{what}: the matrix does not advance in equal blocks of {inner} in shared memory"
            )
    return first, outer


def _span(what: str, swizzle: Swizzle | None, itemsize: int) -> int:
    if swizzle is None or not swizzle.swizzle_len:
        return 0
    due = (_CHUNK // itemsize).bit_length() - 1
    if not swizzle.inner or swizzle.atom_len != 3 or swizzle.per_element != due or swizzle.swizzle_len > 3:
        raise LayoutError(
            f"{what}: the tensor core permutes 16-byte chunks by the line's number, {swizzle} is another swizzle; "
            "use pt.shared_layout(shape, dtype, swizzle)"
        )
    return next(span for span, bits in SWIZZLES.items() if bits == swizzle.swizzle_len)


def wgmma_descriptor(
    what: str, layout: Layout, shape: Sequence[int], itemsize: int, mn_major: Sequence[int] = (2,)
) -> MatrixDescriptor:
    """The descriptor of one operand of an instruction.

    Args:
        what: begins an error.
        layout: of the matrix, on `m`, in elements.
        shape: (rows, k), what one instruction reads; k is 32 bytes.
        itemsize: bytes of an element.
        mn_major: the sizes of elements whose matrices may be MN-major; those of tcgen05.mma are 1 and 2.

    Raises:
        LayoutError: no descriptor says this layout.
    """
    rows, columns = _steps(layout, shape)
    span = _span(what, layout.swizzle if isinstance(layout, ComposeLayout) else None, itemsize)
    chunk = _CHUNK // itemsize
    width = span // itemsize if span else chunk
    if columns[1] - columns[0] == 1:
        unit, across = _split(what, columns, chunk)
        pitch, stride = _split(what, rows, _LINES)
        made = MatrixDescriptor("k", span, _CHUNK if span else across * itemsize, stride * itemsize)
        fits = pitch == width and unit == 1 and (not span or across == chunk or len(columns) == chunk)
    elif rows[1] - rows[0] == 1:
        if itemsize not in mn_major:
            sizes = " and ".join(f"{8 * size}" for size in mn_major)
            which = f"only matrices of {sizes}-bit elements may" if sizes else "these elements may not"
            raise LayoutError(f"{what}: {which} be MN-major; here k must be contiguous")
        unit, across = _split(what, rows, width)
        pitch, down = _split(what, columns, _LINES)
        leading, stride = (across, down) if span else (down, across)
        made = MatrixDescriptor("mn", span, leading * itemsize, stride * itemsize)
        fits = pitch == width and unit == 1
    else:
        raise LayoutError(f"{what}: neither dimension of the matrix is contiguous in shared memory")
    if not fits:
        raise LayoutError(
            f"{what}: lines are {pitch * itemsize} bytes apart; the tensor core takes lines of "
            f"{width * itemsize} bytes that follow each other; use pt.shared_layout(shape, dtype, swizzle)"
        )
    for name, value in (("leading", made.leading), ("stride", made.stride)):
        if value % _CHUNK or not 0 <= value >> 4 < _FIELD:
            raise LayoutError(f"{what}: the {name} byte offset {value} is no multiple of 16 below 2**18")
    return made
