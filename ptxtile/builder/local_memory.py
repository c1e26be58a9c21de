"""Local memory: arrays of each thread, for indices that only the running program knows (PTX ISA 5.1.5)."""

from __future__ import annotations

from ptxtile.builder.storage import Memory
from ptxtile.builder.tensors import Tensor, checked_alignment, default_layout
from ptxtile.builder.values import current, where
from ptxtile.dtypes import dtype_of
from ptxtile.errors import LayoutError
from ptxtile.ir.module import Variable
from ptxtile.ir.operand import Symbol
from ptxtile.layout import as_layout


def alloc_stack(shape: object, dtype: object, layout: object = "default", align: int | None = None) -> Tensor:
    """Local memory of the executing thread, `align` bytes aligned (16 unless given); its content is undefined.

    A `.local` variable: it may be indexed at run time, which registers may not, and lies in the caches and beyond. ld
    and st of it take `.local`, or no space at all (a generic address, by cvta.local). LayoutError if the layout names
    owners.
    """
    trace = current("pt.alloc_stack")
    kind = dtype_of(dtype)
    extents = Tensor(shape, kind).static_shape
    placed = default_layout(extents) if layout is None or layout == "default" else as_layout(layout)
    described = Tensor(shape, kind, placed)
    assert described.layout is not None
    if described.layout.owner_axes:
        raise LayoutError(
            f"local memory is each thread's own: {described.layout!r} names owners" + where(trace)
        )
    alignment = checked_alignment(align, kind.itemsize)
    size = described.layout.span("m") * kind.itemsize
    name = f"{trace.name}$local_{sum(each.space == 'local' for each in trace.variables)}"
    trace.variables.append(Variable("local", "b8", name, (size,), alignment))
    memory = Memory("local", Symbol(name, "local"), alignment, size)
    return Tensor.bind(described.static_shape, kind, memory, described.layout)
