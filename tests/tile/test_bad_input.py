"""What tile operations and raw instructions refuse, word for word, at the user's line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import ptxtile as pt
from ptxtile import OperandError, S, TileError, laneid, ptx, tile, warpid
from tile.running import failure, message

CTA = S[(2, 32, 1) : (1 @ warpid, 1 @ laneid, 1)]
CASES: list[object] = []


def refused(error: type[Exception], text: str, block: int = 1) -> Callable[..., object]:
    def note(body: Callable[..., object]) -> Callable[..., object]:
        CASES.append(pytest.param(body, block, error, text, id=body.__name__))
        return body

    return note


def regs(*shape: int, dtype: pt.DType = pt.float32, layout: object = "default") -> pt.Tensor:
    return pt.alloc_local(shape, dtype, layout=layout)


# --- operands -------------------------------------------------------------------------------------------------------
@refused(OperandError, "mul.wide.s32: operand d takes .s64, not a tensor of int32")
def wrong_width(k):
    d = regs(4, 1, dtype=pt.int32)
    tile.apply(ptx["mul.wide.s32"], d, d, d)


@refused(OperandError, "add.u32: operand b takes .u32, not 2.0: 2.0 is no integer")
def float_for_an_integer(k):
    d = regs(4, 1, dtype=pt.uint32)
    tile.apply(ptx["add.u32"], d, d, 2.0)


@refused(OperandError, "add.f32: operand b takes .f32, not True: a bool is no number here")
def bool_for_a_float(k):
    d = regs(4, 1)
    tile.apply(ptx["add.f32"], d, d, True)


@refused(
    OperandError,
    "add.rn.f16x2: operand b takes .f16x2 packed in a uint32, not 2: a plain number holds one value: pack it, "
    "pt.pack(2, …, dtype=…)",
)
def number_for_a_carrier(k):
    d = regs(4, 1, dtype=pt.uint32)
    tile.apply(ptx["add.rn.f16x2"], d, d, 2)


@refused(OperandError, "add.rn.f16x2: operand d takes .f16x2 packed in a uint32, not a tensor of int32")
def signed_carrier(k):
    d = regs(4, 1, dtype=pt.int32)
    tile.apply(ptx["add.rn.f16x2"], d, d, d)


@refused(
    OperandError, "add.f32: operand a takes registers, and the tensor is in global memory: load it first"
)
def memory_for_a_register(k):
    tile.apply(ptx["add.f32"], regs(64, 4, 1), k.A.view(64, 4, 1), 1.0)


@refused(OperandError, "add.f32 takes 3 operands (d, a, b); 2 were given")
def operand_missing(k):
    tile.apply(ptx["add.f32"], regs(4, 1), 1.0)


@refused(
    OperandError, "add.f32: operand d is a destination and takes a register tensor, not a run-time float32"
)
def scalar_destination(k):
    tile.apply(ptx["add.f32"], pt.reg(pt.float32), k.x, 1.0)


@refused(TileError, "add.f32 has no parameter 'chunk'; it has none beside scope, pred, preserve_dst")
def unknown_parameter(k):
    tile.apply(ptx["add.f32"], regs(4, 1), 1.0, 1.0, chunk=3)


@refused(TileError, "add.f32: scope= is one of thread, warp, warpgroup, cta, cluster, not 'block'")
def unknown_scope(k):
    tile.apply(ptx["add.f32"], regs(4, 1), 1.0, 1.0, scope="block")


@refused(TileError, "bra is no tile operation: its operands are not all registers; call the form itself")
def no_tile_operation(k):
    tile.apply(ptx["bra"], "end")


@refused(OperandError, 'tile.apply takes a form such as ptx["fma.rn.f32"], not 3')
def no_form(k):
    tile.apply(3, 1)


# --- shapes ---------------------------------------------------------------------------------------------------------
@refused(TileError, "add.f32: operand a has repeats (2,), and d has (4,): all tensor operands repeat alike")
def repeats_differ(k):
    tile.apply(ptx["add.f32"], regs(4, 1), regs(2, 1), 1.0)


@refused(
    TileError,
    "add.f32: operand d has shape (4,); its trailing axes are the instruction's registers, (1,); view(4, 1) makes 4 "
    "repeats of them",
)
def atom_missing(k):
    tile.apply(ptx["add.f32"], regs(4), 1.0, 1.0)


@refused(
    TileError,
    "add.f32: operand d has shape (32, 2, 1); at cta scope the leading axes are (2, 32), the threads active here",
    block=64,
)
def group_axes(k):
    tile.apply(ptx["add.f32"], regs(32, 2, 1), 1.0, 1.0, scope="cta")


@refused(TileError, "add.f32: operand d has shape (1,); it needs the group axes (2, 32) and then any repeats and then the atom (1,)", block=64)  # fmt: skip
def group_axes_missing(k):
    tile.apply(ptx["add.f32"], regs(1), 1.0, 1.0, scope="cta")


# --- owners ---------------------------------------------------------------------------------------------------------
@refused(TileError, "add.f32: operand d: incorrect laneid owner: the element at (1, 0) belongs to laneid 1 and is executed by 0", block=64)  # fmt: skip
def wrong_owner(k):
    tile.apply(
        ptx["add.f32"],
        regs(2, 32, 1, layout=S[(2, 32, 1) : (1 @ laneid, 1 @ laneid, 1)]),
        1.0,
        1.0,
        scope="cta",
    )


@refused(TileError, "add.f32: operand d: incorrect warpid owner: the element at (0, 0) belongs to warpid 1 and is executed by 0", block=64)  # fmt: skip
def shifted_owner(k):
    tile.apply(ptx["add.f32"], regs(2, 32, 1, layout=CTA + 1 @ warpid), 1.0, 1.0, scope="cta")


@refused(
    TileError,
    "add.f32: operand d: its registers are not divided among the threads: the layout puts the group axes on m; give them "
    "owner axes (1 @ warpid, 1 @ laneid)",
    block=64,
)
def no_owner(k):
    tile.apply(ptx["add.f32"], regs(2, 32, 1), 1.0, 1.0, scope="cta")


@refused(
    TileError,
    "add.f32: operand d: incorrect laneid owner: it changes along the repeats or the atom, which one thread executes",
    block=64,
)
def owner_along_repeats(k):
    tile.apply(ptx["add.f32"], regs(32, 1, layout=S[(32, 1) : (1 @ laneid, 1)]), 1.0, 1.0)


@refused(
    TileError,
    "add.f32: at cta scope every active warp needs the same lanes, and warp 1 has 16 of them; guard the partial warp by "
    "itself (pt.if_ on pt.warp_id()), use a block that is a multiple of 32, or thread scope",
    block=48,
)
def partial_warp(k):
    tile.apply(ptx["add.f32"], regs(2, 32, 1, layout=CTA), 1.0, 1.0, scope="cta")


@refused(TileError, "add.f32: the enclosing conditions leave no thread active", block=64)
def nobody(k):
    with pt.if_(pt.thread_idx("x") >= 64):
        tile.apply(ptx["add.f32"], regs(2, 32, 1, layout=CTA), 1.0, 1.0, scope="cta")


@refused(TileError, "add.f32: cluster scope needs cluster= on the kernel", block=64)
def no_cluster(k):
    tile.apply(ptx["add.f32"], regs(2, 32, 1, layout=CTA), 1.0, 1.0, scope="cluster")


# --- overlap --------------------------------------------------------------------------------------------------------
@refused(
    TileError,
    "add.f32: operand d: two of its elements are one register (%r4), so later repeats would overwrite earlier ones; a "
    "destination's layout must be injective (no zero strides)",
)
def zero_stride_destination(k):
    tile.apply(ptx["add.f32"], regs(1).view(4, 1, layout=S[(4, 1) : (0, 1)]), 1.0, 2.0)


OVERWRITTEN = (
    "{}: repeat {} reads {} from {}, which repeat 0 has already overwritten; in place is fine only element by element: copy "
    "first, or go the other way"
)


@refused(TileError, OVERWRITTEN.format("add.f32", 1, "a", "%r5"))
def shifted_in_place(k):
    r = regs(5, 1)
    tile.apply(ptx["add.f32"], r[1:5], r[0:4], 1.0)


@refused(TileError, OVERWRITTEN.format("add.f32", 1, "b", "%r4"))
def scalar_of_the_destination(k):
    r = regs(4, 1)
    tile.apply(ptx["add.f32"], r, r, r[0, 0])


@refused(TileError, OVERWRITTEN.format("setp.gt.f32", 1, "pred", "%p0"))
def predicate_of_the_destination(k):
    r, p = regs(4, 1), regs(4, 1, dtype=pt.bool_)
    tile.apply(ptx["setp.gt.f32"], p, r, 0.0, pred=p[0, 0])


@refused(TileError, "setp.gt.f32: operand q: its register %p0 is another destination's too")
def one_register_twice(k):
    r, p = regs(1, 1), regs(1, 1, dtype=pt.bool_)
    tile.apply(ptx["setp.gt.f32"], (p, p), r, 0.0)


@refused(
    TileError,
    "st.global.f32: operand a: two elements of the destination are one place in memory, so the order of the stores would "
    "decide; a destination's layout must be injective (no zero strides)",
)
def store_through_a_zero_stride(k):
    tile.apply(ptx["st.global.f32"], k.A.view(4, 1, layout=S[(4, 1) : (0, 1)]), regs(4, 1))


# --- memory ---------------------------------------------------------------------------------------------------------
ALIGNED = "ld.global.v4.f32: operand a: an atom of 16 bytes must start at a multiple of 16 bytes, which is not proven of every atom here"  # fmt: skip


@refused(TileError, ALIGNED + ": the region starts at element 1")
def misaligned(k):
    tile.apply(ptx["ld.global.v4.f32"], regs(4), k.A.view(256)[1:5])


@refused(TileError, ALIGNED + ": the layout's strides are not multiples of the atom")
def misaligned_rows(k):
    tile.apply(ptx["ld.global.v4.f32"], regs(2, 4), k.A.view(2, 4, layout=S[(2, 4) : (6, 1)]))


@refused(
    TileError,
    "ld.global.v8.b32: operand a: an atom of 32 bytes needs a base aligned to 32 bytes, and this tensor's is aligned to 16 "
    "(align=)",
)
def misaligned_base(k):
    tile.apply(ptx["ld.global.v8.b32"], regs(8), k.A.view(256)[0:8])


@refused(
    TileError,
    "ld.global.v4.f32: operand a: the 4 elements of an atom must lie side by side in memory, and this layout puts them apart",
)
def elements_apart(k):
    tile.apply(ptx["ld.global.v4.f32"], regs(4), k.A.permute(1, 0)[0, 0:4])


@refused(
    TileError,
    "ld.global.v4.f32: operand a: the region is not proven to lie inside its tensor: -1*%tid.x + 23 >= 0 does not follow "
    "from the ranges known here; enclose it in pt.if_, or state it with pt.assume",
    block=32,
)
def out_of_bounds(k):
    tile.apply(ptx["ld.global.v4.f32"], regs(4), k.A[pt.thread_idx("x") + 40])


@refused(
    OperandError,
    "ld.global.b32: operand a: the form moves elements of 32 bits and the tensor's are float16; view(…) it as a dtype of 32 "
    "bits",
)
def element_width(k):
    tile.apply(ptx["ld.global.b32"], regs(64, 1, dtype=pt.uint32), k.H.view(64, 1))


@refused(OperandError, "ld.shared.b16: operand a is .shared memory and the tensor is in global memory")
def space(k):
    tile.apply(ptx["ld.shared.b16"], regs(64, 1, dtype=pt.uint16), k.H.view(64, 1))


@refused(
    OperandError,
    "ld.global.f32: operand a takes a tensor in memory, not registers; the order is registers, memory",
)
def order_of_operands(k):
    tile.apply(ptx["ld.global.f32"], k.A.view(256, 1), regs(256, 1))


# --- predicates -----------------------------------------------------------------------------------------------------
@refused(TileError, "add.f32: preserve_dst=True requires pred=")
def preserve_without_pred(k):
    tile.apply(ptx["add.f32"], regs(4, 1), 1.0, 1.0, preserve_dst=True)


@refused(TileError, "st.global.f32: preserve_dst=True requires a destination in registers")
def preserve_memory(k):
    tile.apply(ptx["st.global.f32"], k.A.view(256, 1)[0:4], regs(4, 1), pred=k.n < 3, preserve_dst=True)


@refused(TileError, "add.f32: pred has repeats (2,) and the operands have (4,)")
def predicate_repeats(k):
    tile.apply(ptx["add.f32"], regs(4, 1), 1.0, 1.0, pred=regs(2, dtype=pt.bool_))


@refused(
    OperandError, "add.f32: pred= takes a run-time bool_, such as a comparison gives, not a run-time uint32"
)
def predicate_kind(k):
    tile.apply(ptx["add.f32"], regs(4, 1), 1.0, 1.0, pred=k.n)


@pytest.mark.parametrize(("body", "block", "kind", "text"), CASES)
def test_refused(body: Callable[..., object], block: int, kind: type[Exception], text: str) -> None:
    error = failure(body, block)
    assert message(error, __file__) == text
    assert type(error) is kind
