"""Tensor memory of sm_100: columns that one warp allocates, and tensors in them (PTX ISA 9.7.16.7).

memory = pt.tensor_memory(128)
with pt.if_(pt.warp_id() == 0):
    memory.alloc()                      # one whole warp
pt.cta_sync()
d = memory.tensor((128, 64), pt.float32, layout=datapath("D", 64))
…
with pt.if_(pt.warp_id() == 0):
    memory.dealloc()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtile.builder.parameters import alloc_shared
from ptxtile.builder.storage import Memory
from ptxtile.builder.tensors import Tensor
from ptxtile.builder.values import current, where
from ptxtile.dtypes import dtype_of, uint32
from ptxtile.errors import LayoutError, OperandError
from ptxtile.ir.operand import Integer, Register
from ptxtile.layout import ComposeLayout, TCol, as_layout

if TYPE_CHECKING:
    from ptxtile.builder.trace import Trace

_COLUMNS = (32, 64, 128, 256, 512)


class tensor_memory:
    """`columns` columns of all 128 lanes: 32, 64, 128, 256 or 512; `ctas` is the .cta_group, 1 or 2."""

    def __init__(self, columns: int, ctas: int = 1) -> None:
        trace = current("pt.tensor_memory")
        if not isinstance(columns, int) or columns not in _COLUMNS:
            raise OperandError(
                f"pt.tensor_memory: columns are {', '.join(map(str, _COLUMNS))}, not {columns!r}"
                + where(trace)
            )
        if isinstance(ctas, bool) or not isinstance(ctas, int) or ctas not in (1, 2):
            raise OperandError(f"pt.tensor_memory: ctas= is 1 or 2, not {ctas!r}" + where(trace))
        self.columns = columns
        self.group = f".cta_group::{ctas}"
        self.slot: Tensor = alloc_shared((1,), uint32)

    def alloc(self) -> None:
        """`tcgen05.alloc.cta_group::N.sync.aligned.shared::cta.b32 [slot], columns`, by one whole warp. A barrier of
        the CTA must stand between it and the first `tensor`."""
        trace = current("tensor_memory.alloc")
        spelling = f"tcgen05.alloc{self.group}.sync.aligned.shared::cta.b32"
        trace.instruction(spelling, self.slot.address(trace, ".shared::cta"), Integer(self.columns))

    def relinquish(self) -> None:
        """`tcgen05.relinquish_alloc_permit`: this CTA allocates no more. By one whole warp."""
        trace = current("tensor_memory.relinquish")
        trace.instruction(f"tcgen05.relinquish_alloc_permit{self.group}.sync.aligned")

    def dealloc(self) -> None:
        """`tcgen05.dealloc.cta_group::N.sync.aligned.b32 address, columns`, by one whole warp, after all use."""
        trace = current("tensor_memory.dealloc")
        spelling = f"tcgen05.dealloc{self.group}.sync.aligned.b32"
        trace.instruction(spelling, self._base(trace), Integer(self.columns))

    def tensor(self, shape: object, dtype: object, layout: object, column: int = 0) -> Tensor:
        """A tensor of words of 32 bits in these columns, from `column` on; its layout lies on TLane and TCol.

        One `ld.shared.u32` of the address where none is at hand. LayoutError for another layout or dtype, and for one
        that reaches beyond the columns or 128 lanes.
        """
        trace = current("tensor_memory.tensor")
        kind = dtype_of(dtype)
        if kind.bits != 32:
            raise LayoutError(
                f"tensor memory holds words of 32 bits, and {kind.name} has {kind.bits}: take uint32 for "
                "packed elements"
            )
        given = as_layout(layout)
        if isinstance(given, ComposeLayout):
            raise LayoutError("tensor memory has no swizzle")
        if isinstance(column, bool) or not isinstance(column, int) or column < 0:
            raise LayoutError(f"column= is the first column, an integer from 0, not {column!r}")
        placed = given + column @ TCol if column else given
        made = Tensor(shape, kind, placed)
        names = {axis.name for axis in placed.axes}
        if not names <= {"TLane", "TCol", "m"} or placed.span("m") > 1:
            raise LayoutError(f"a tensor in tensor memory lies on TLane and TCol, and {placed!r} does not")
        for axis, most in (("TLane", 128), ("TCol", self.columns)):
            if axis in names and placed.span(axis) > most:
                raise LayoutError(f"{placed!r} reaches {axis} {placed.span(axis) - 1}, and there are {most}")
        return Tensor.bind(made.static_shape, kind, Memory("tensor", self._base(trace), 1, None), placed)

    def _base(self, trace: Trace) -> Register:
        key = ("tensor memory", self)
        found = trace.computed(key)
        if found is None:
            found = trace.register("b32")
            trace.instruction("ld.shared.u32", found, self.slot.address(trace, ".shared"))
            trace.remember_value(key, found)
        return found
