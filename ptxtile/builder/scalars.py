"""Scalars while tracing: variables, selection, fused multiply-add, thread indices, and what a kernel takes for granted.

Each function emits the sequence that its docstring states. All need a trace (TraceError outside one).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ptxtile import location
from ptxtile.builder import folding, operators, ranges
from ptxtile.builder.convert import guard as guard_of
from ptxtile.builder.trace import Trace
from ptxtile.builder.values import common, current, home, move, register, scalar, where, word
from ptxtile.dtypes import DType, Scalar, bool_, uint32
from ptxtile.errors import OperandError, TraceError
from ptxtile.ir.operand import Integer

T = TypeVar("T", bound=Scalar)
AXES = ("x", "y", "z")
_MAX_BLOCK = (1024, 1024, 64)
_MAX_GRID = (2**31 - 1, 65535, 65535)


def reg(dtype: type[T], initial: object = None) -> T:
    """A variable in a register: the one kind of scalar that may be written again, by `.set(v)`, `+=` and the like, or
    as the destination of an instruction. With `initial` (a number, or a scalar of the same dtype) one mov."""
    trace = current("pt.reg")
    if not isinstance(dtype, DType):
        raise OperandError(f"pt.reg takes a dtype such as pt.float32, not {dtype!r}" + where(trace))
    made = trace.value(dtype, mutable=True)
    if initial is not None:
        source = scalar(trace, dtype, initial, f"pt.reg({dtype!r}, …)")
        move(trace, dtype, home(made), source)
    return made  # type: ignore[return-value]


def select(p: object, a: object, b: object) -> Scalar:
    """`a` where `p` holds, else `b`; both are computed. One selp; for bool_ operands (p & a) | (~p & b)."""
    trace = current("pt.select")
    condition = scalar(trace, bool_, p, "pt.select: the condition")
    dtype, (left, right) = common(trace, "pt.select", (a, b))
    if condition.value is not None:
        return left if condition.value else right
    if dtype is bool_:
        return (condition & left) | (~condition & right)
    words = word(trace, left), word(trace, right)
    made = trace.value(dtype)
    trace.instruction(f"selp.{dtype.register}", home(made), *words, home(condition))
    return made


def minimum(a: object, b: object) -> Scalar:
    """The lesser: one `min`. Of a float and a NaN it is the float; -0 is less than +0 (PTX ISA 9.7.3.11)."""
    return _extremum("min", "pt.minimum", a, b)


def maximum(a: object, b: object) -> Scalar:
    """The greater: one `max`. Of a float and a NaN it is the float; +0 is greater than -0 (PTX ISA 9.7.3.12)."""
    return _extremum("max", "pt.maximum", a, b)


def _extremum(opcode: str, use: str, a: object, b: object) -> Scalar:
    trace = current(use)
    dtype, (left, right) = common(trace, use, (a, b))
    if dtype.bits < 16:
        raise TraceError(
            f"{use}: PTX has no {opcode} for {dtype.name}; convert with pt.cast first" + where(trace)
        )
    if dtype.kind != "float" and left.value is not None and right.value is not None:
        return folding.make(
            dtype, min(left.value, right.value) if opcode == "min" else max(left.value, right.value)
        )
    words = word(trace, left), word(trace, right)
    made = trace.value(dtype)
    made.extent = _between(min if opcode == "min" else max, made, left, right)
    trace.instruction(f"{opcode}{dtype.ptx}", home(made), *words)
    return made


def _between(
    pick: Callable[[int, int], int], made: Scalar, left: Scalar, right: Scalar
) -> ranges.Extent | None:
    """The extent of the lesser or greater of two integers, from the ends of theirs."""
    one, other = ranges.of_value(left), ranges.of_value(right)
    if one is None or other is None:
        return None
    ends = [pick(a, b) for a, b in zip(one.bounds(), other.bounds())]
    return ranges.atom("extremum", *ends, scalar=made)


def fma(a: object, b: object, c: object) -> Scalar:
    """a * b + c: floats rounded once (`fma.rn`), integers modulo their width (`mad.lo`)."""
    trace = current("pt.fma")
    dtype, values = common(trace, "pt.fma", (a, b, c))
    if dtype.bits < 16:
        raise TraceError(f"pt.fma: PTX has none for {dtype.name}; convert with pt.cast first" + where(trace))
    words = [word(trace, value) for value in values]
    made = trace.value(dtype)
    spelling = "fma.rn" if dtype.kind == "float" else "mad.lo"
    trace.instruction(spelling + dtype.ptx, home(made), *words)
    return made


# --- where a thread is ----------------------------------------------------------------------------------------------
def _axis(axis: str, use: str) -> int:
    if axis not in AXES:
        raise OperandError(f'{use} takes "x", "y" or "z", not {axis!r}' + location.quote(location.here()))
    return AXES.index(axis)


def _special(trace: Trace, name: str, low: int, high: int) -> Scalar:
    """A 32-bit special register in [low, high], read once at the start of the kernel."""
    found = trace.read_special(name, uint32)
    if found.extent is None:
        found.extent = ranges.atom(name, low, high, scalar=found)
    return found


def thread_idx(axis: str = "x") -> Scalar:
    """%tid of an axis, uint32: the thread's index in its block."""
    trace, index = current("pt.thread_idx"), _axis(axis, "pt.thread_idx")
    extent = trace.launch.block[index] or _MAX_BLOCK[index]
    return _special(trace, f"%tid.{axis}", 0, extent - 1)


def block_idx(axis: str = "x") -> Scalar:
    """%ctaid of an axis, uint32: the block's index in the grid."""
    trace, index = current("pt.block_idx"), _axis(axis, "pt.block_idx")
    extent = trace.launch.grid[index] or _MAX_GRID[index]
    return _special(trace, f"%ctaid.{axis}", 0, extent - 1)


def block_dim(axis: str = "x") -> Scalar:
    """%ntid of an axis, uint32: threads of a block; a constant where the kernel fixes it."""
    trace, index = current("pt.block_dim"), _axis(axis, "pt.block_dim")
    known = trace.launch.block[index]
    return uint32(known) if known is not None else _special(trace, f"%ntid.{axis}", 1, _MAX_BLOCK[index])


def grid_dim(axis: str = "x") -> Scalar:
    """%nctaid of an axis, uint32: blocks of the grid; a constant where the kernel fixes it."""
    trace, index = current("pt.grid_dim"), _axis(axis, "pt.grid_dim")
    known = trace.launch.grid[index]
    return uint32(known) if known is not None else _special(trace, f"%nctaid.{axis}", 1, _MAX_GRID[index])


def lane_id() -> Scalar:
    """%laneid, uint32: the thread's lane in its warp, 0 to 31."""
    return _special(current("pt.lane_id"), "%laneid", 0, 31)


def thread_rank() -> Scalar:
    """The thread's linear index in its block, x + X * (y + Y * z), uint32: one `mad.lo.u32` for each further axis that
    the block has, at the start of the kernel."""
    trace = current("pt.thread_rank")
    found = trace.special.get("rank")
    if found is None:
        found = _rank(trace)
        trace.special["rank"] = found
    return found


def _rank(trace: Trace) -> Scalar:
    used = [axis for axis, extent in zip(AXES, trace.launch.block) if extent != 1] or ["x"]
    rank = thread_idx(used[-1])
    for axis in reversed(used[:-1]):
        width, index = block_dim(axis), thread_idx(axis)
        made = trace.value(uint32)
        made.block = trace.body
        trace.first("mad.lo.u32", home(made), home(rank), word(trace, width), home(index))
        known = [ranges.of_value(part) for part in (rank, width, index)]
        if width.value is not None and all(known):
            made.extent = known[0].times(known[1]).plus(known[2])  # type: ignore[union-attr, arg-type]
        else:
            made.extent = ranges.atom("thread rank", 0, (trace.launch.threads or 1024) - 1, scalar=made)
        rank = made
    return rank


def warp_id() -> Scalar:
    """The thread's warp in its block, uint32: thread_rank() >> 5 (`shr.u32`). Not %warpid, which PTX calls volatile."""
    rank = thread_rank()
    return operators.operate(current("pt.warp_id"), "shr", (rank, 5))


def cluster_rank() -> Scalar:
    """%cluster_ctarank, uint32: the block's linear index in its cluster (sm_90)."""
    trace = current("pt.cluster_rank")
    return _special(trace, "%cluster_ctarank", 0, _cluster_size(trace) - 1)


def cluster_size() -> Scalar:
    """%cluster_nctarank, uint32: blocks of a cluster (sm_90); a constant where the kernel fixes it."""
    trace = current("pt.cluster_size")
    return (
        uint32(_cluster_size(trace)) if trace.launch.cluster else _special(trace, "%cluster_nctarank", 1, 16)
    )


def cluster_idx(axis: str = "x") -> Scalar:
    """%cluster_ctaid of an axis, uint32: the block's index in its cluster (sm_90)."""
    trace, index = current("pt.cluster_idx"), _axis(axis, "pt.cluster_idx")
    extent = trace.launch.cluster[index] if trace.launch.cluster else 16
    return _special(trace, f"%cluster_ctaid.{axis}", 0, extent - 1)


def _cluster_size(trace: Trace) -> int:
    if trace.launch.cluster is None:
        return 16
    x, y, z = trace.launch.cluster
    return x * y * z


# --- synchronization, assumptions -----------------------------------------------------------------------------------
def cta_sync() -> None:
    """All threads of the block wait for each other, and see each other's memory accesses before: `bar.sync 0`."""
    current("pt.cta_sync").instruction("bar.sync", Integer(0))


def trap_if(p: object) -> None:
    """Stop the kernel with an error where `p` holds: `@p trap`."""
    trace = current("pt.trap_if")
    condition = scalar(trace, bool_, p, "pt.trap_if")
    if condition.value is None:
        trace.instruction("trap", guard=guard_of(trace, "pt.trap_if", condition))
    elif condition.value:
        trace.instruction("trap")


def assume(condition: object) -> None:
    """Take `condition` for granted from here to the end of the block: the prover uses it, the emulator checks it.

    The comparison is emitted, though only the emulator reads it (the assembler drops it), and after it a label that no
    branch names, `$assume_N_p3` for the predicate %p3: the one mark that text carries to the emulator and that costs
    the hardware nothing. TraceError for a condition that is known to be false.
    """
    trace = current("pt.assume")
    known = scalar(trace, bool_, condition, "pt.assume")
    if known.value is not None:
        if not known.value:
            raise TraceError("pt.assume: the condition is known to be false" + where(trace))
        return
    if known.extent is not None:
        trace.block.facts.append(known.extent)
    name = f"{trace.label('assume')}_{register(trace, known).name[1:]}"
    trace.place(name)
    trace.assumptions.append(known)
