"""mma.sync over tiles: order, accumulation, every form of the table through NVIDIA's assembler, and bad input."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import S, laneid, tile
from ptxtile.layout.mma_fragment import mma_a, mma_b, mma_c, per_lane, stacked
from ptxtile.tile import mma
from tile.running import failure, lines, machines, message, module, takes

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
A, B, C = mma_a("m16n8k16", 16), mma_b("m16n8k16", 16), mma_c("m16n8k16", 32)


def local(fragment, *repeats, dtype=pt.uint32, warps=None):
    front = () if warps is None else (warps,)
    return pt.alloc_local(
        (*front, *repeats, *fragment.shape), dtype, layout=stacked(fragment, *repeats, warps=warps)
    )


def operands(m=1, n=1, k=1, warps=None):
    return (
        local(C, m, n, dtype=pt.float32, warps=warps),
        local(A, m, k, warps=warps),
        local(B, n, k, warps=warps),
    )


def issues(body, block=32):
    """(d, a, b, c) of each mma, registers by number."""
    found = []
    for line in lines(body, block):
        if line.startswith("mma"):
            found.append(tuple(
                tuple(int(word) if word.isdigit() else word for word in re.findall(r"%r(\d+)|(0f\w+)|\b(\d+)\b", group) for word in word if word)
                for group in re.findall(r"\{([^}]*)\}", line)
            ))  # fmt: skip
    return found


def test_k_is_innermost_and_feeds_back():
    def body(_):
        d, a, b = operands(2, 2, 3)
        tile.apply(F16, d, a, b, 0, scope="warp")

    found = issues(body)
    assert len(found) == 12
    for number, (d, a, b, c) in enumerate(found):
        i, j, step = number // 6, number // 3 % 2, number % 3
        assert d == tuple(range(4 * (2 * i + j), 4 * (2 * i + j) + 4))
        assert a[0] == 16 + 4 * (3 * i + step)
        assert b[0] == 16 + 24 + 2 * (3 * j + step)
        assert c == (d if step else ("0f00000000",) * 4)


def test_a_batch_leads():
    def body(_):
        d = local(C, 2, 1, 1, dtype=pt.float32)
        tile.apply(F16, d, local(A, 2, 1, 2), local(B, 2, 1, 2), d, scope="warp")

    assert [row[0][0] for row in issues(body)] == [0, 0, 4, 4]


def test_repeats_may_be_left_out():
    def body(_):
        tile.apply(F16, local(C, dtype=pt.float32), local(A), local(B), 1.5, scope="warp")

    assert issues(body) == [((0, 1, 2, 3), (4, 5, 6, 7), (8, 9), ("0f3FC00000",) * 4)]


def test_warps_of_a_cta_each_have_their_own():
    def body(_):
        d, a, b = operands(warps=4)
        tile.apply(F16, d, a, b, 0, scope="cta")

    assert len(issues(body, 128)) == 1


def test_an_integer_sum_starts_from_an_integer_and_a_pair_from_a_register():
    def body(_):
        c = mma_c("m16n8k32", 32)
        tile.apply(
            "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", local(c, dtype=pt.int32), local(mma_a("m16n8k32", 8)),
            local(mma_b("m16n8k32", 8)), -5, scope="warp",
        )  # fmt: skip
        pairs = mma_c("m16n8k16", 16)
        tile.apply(
            "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
            local(pairs),
            local(A),
            local(B),
            0,
            scope="warp",
        )

    found = [line for line in lines(body, 32) if line.startswith(("mma", "mov"))]
    assert "{-5, -5, -5, -5}" in found[0]
    assert found[1:] == ["mov.b32 %r18, 0", found[2]]
    assert found[2].endswith("{%r18, %r18}")


@machines
def test_values(device):
    """Two warps, 2 x 2 tiles, two steps of K, against exact integers."""

    @pt.kernel(grid=1, block=64)
    def multiply(P: pt.Tensor((2, 32, 2, 2, 4), pt.uint32), Q: pt.Tensor((2, 32, 2, 2, 2), pt.uint32),
                 R: pt.Tensor((2, 32, 2, 2, 4), pt.float32)):  # fmt: skip
        d, a, b = operands(2, 2, 2, warps=2)
        for register, memory, count in ((a, P, 4), (b, Q, 2)):
            shape = (2, 32, 2, 2, count)
            flat = S[shape : (1 @ pt.warpid, 1 @ laneid, 2 * count, count, 1)]
            tile.apply(f"ld.global.v{count}.b32", register.view(*shape, layout=flat), memory, scope="cta")
        tile.apply(F16, d, a, b, 0, scope="cta")
        shape = (2, 32, 2, 2, 4)
        flat = S[shape : (1 @ pt.warpid, 1 @ laneid, 8, 4, 1)]
        tile.apply("st.global.v4.b32", R, d.view(*shape, layout=flat), scope="cta")

    rng = np.random.default_rng(2)
    left = rng.integers(-9, 9, (2, 2, 2, 16, 16)).astype(np.float16)  # warp, m, k, row, column
    right = rng.integers(-9, 9, (2, 2, 2, 8, 16)).astype(np.float16)
    p, q = spread(left, A), spread(right, B)
    r = np.zeros((2, 32, 2, 2, 4), np.float32)
    multiply.launch(p, q, r, device=device)
    due = np.einsum("wmkrc,wnkjc->wmnrj", left.astype(np.float64), right.astype(np.float64))
    np.testing.assert_array_equal(r, spread(due.astype(np.float32), C))


def spread(matrices, fragment):
    """(warp, x, y, rows, elements) as (warp, lane, x, y, register)."""
    words = np.ascontiguousarray(matrices)
    if words.itemsize == 2:
        words = words.view(np.uint32)
    made = np.zeros((2, 32, 2, 2, fragment.registers), words.dtype)
    for at in np.ndindex(fragment.shape):
        where = fragment.layout.apply(*map(int, at), shape=fragment.shape)
        made[:, where["laneid"], :, :, where["m"]] = words[(..., *at)]
    return made


# --- every form -----------------------------------------------------------------------------------------------------
TARGETS = ("sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a")


def target_of(form):
    return next((target for target in TARGETS if target in form.targets), None)


def every_form():
    found = defaultdict(list)
    for pattern in ("mma.sync.*", "mma.sp.*", "mma.sp::ordered_metadata.*"):
        for spelling in pt.forms(pattern):
            form = pt.validate(spelling)
            target = target_of(form)
            if target is not None and ".spvariant" not in spelling:
                found[target].append(form)
    return found


def call(form):
    shapes = mma.shapes(form)
    wide = shapes.bits == 64
    dtype = pt.float64 if wide else pt.uint32
    given = [local(fragment, 1, 1, dtype=dtype) for fragment in (shapes.d, shapes.a, shapes.b, shapes.c)]
    for slot in form.signatures[0].operands[4:]:
        if slot.kind == "vector":
            given.append((0, 0))
        elif slot.name == "selector":
            given.append(0)
        else:
            given.append(local(per_lane(), 1, 1))
    tile.apply(form, *given, scope="warp")


@pytest.mark.parametrize("target", TARGETS)
def test_nvidias_assembler_takes_every_form(target):
    forms = every_form()[target]
    assert forms

    def body(_):
        for form in forms[:: max(1, len(forms) // 150)]:
            call(form)

    assert takes(module(body, 32), target)


# --- bad input ------------------------------------------------------------------------------------------------------
HELP = "the instruction's own is ptxtile.layout.mma_fragment."


def wrong(body, block=32):
    return message(failure(body, block), __file__)


def test_thread_scope():
    assert wrong(lambda _: tile.apply(F16, *operands(), 0)) == (
        f'{F16} is done by a whole warp: scope="warp", "warpgroup", "cta" or "cluster"'
    )


def test_a_partial_warp():
    assert wrong(lambda _: tile.apply(F16, *operands(), 0, scope="warp"), 16) == (
        f"{F16} requires all 32 lanes of a warp to be active; active here are 16 from lane 0"
    )


def test_an_operand_is_missing():
    assert wrong(lambda _: tile.apply(F16, *operands(), scope="warp")) == (
        f"{F16} takes 4 operands (d, a, b, c); 3 were given"
    )


def test_repeats_disagree():
    def body(_):
        d, a, _b = operands(2, 2, 3)
        tile.apply(F16, d, a, local(B, 3, 2), 0, scope="warp")

    assert wrong(body) == (
        f"{F16}: d has repeats (2, 2), a (2, 3) and b (3, 2); they are (*batch, M, N), (*batch, M, K) and (*batch, N, K)"
    )


def test_another_layout():
    def body(_):
        d, _a, b = operands()
        a = pt.alloc_local(
            (1, 1, 16, 8), pt.uint32, layout=S[(1, 1, 16, 2, 4) : (1, 1, 1 @ laneid, 16 @ laneid, 1)]
        )
        tile.apply(F16, d, a, b, 0, scope="warp")

    assert wrong(body) == (
        f"{F16}: operand a: incorrect laneid owner: word (0, 1) of the fragment belongs to laneid 1 and the layout puts it "
        f"on 0; {HELP}mma_a('m16n8k16', 16)"
    )


def test_registers_that_differ_between_lanes():
    def body(_):
        d, _a, b = operands()
        layout = S[(1, 1, 2, 2, 4, 2, 4) : (1, 1, 1, 16 @ laneid, 4 @ laneid, 2, 1 @ laneid)]
        swapped = pt.alloc_local((1, 1, 16, 8), pt.uint32, layout=layout)
        tile.apply(F16, d, swapped, b, 0, scope="warp")
        other = S[(1, 1, 2, 8, 2, 4) : (1, 1, 1, 4 @ laneid, 2, 1 @ laneid)]
        odd = pt.alloc_local((1, 1, 16, 8), pt.uint32, layout=other)
        tile.apply(
            F16, d, odd.view(1, 1, 8, 2, 8).permute(0, 1, 3, 2, 4).view(1, 1, 16, 8), b, 0, scope="warp"
        )

    assert wrong(body) == (
        f"{F16}: operand a: incorrect laneid owner: word (1, 0) of the fragment belongs to laneid 4 and the layout puts it "
        f"on 8; {HELP}mma_a('m16n8k16', 16)"
    )


def test_no_lanes_at_all():
    def body(_):
        d, _a, b = operands()
        tile.apply(F16, d, pt.alloc_local((1, 1, 16, 8), pt.uint32), b, 0, scope="warp")

    assert wrong(body) == (
        f"{F16}: operand a: the layout names no laneid: a fragment is spread over the lanes; {HELP}mma_a('m16n8k16', 16)"
    )


def test_elements_where_words_are_due():
    def body(_):
        d, _a, b = operands()
        a = pt.alloc_local((1, 1, 16, 8), pt.float16, layout=stacked(A, 1, 1))
        tile.apply(F16, d, a, b, 0, scope="warp")

    assert wrong(body) == (
        f"{F16}: operand a takes registers of 32 bits and the tensor's elements are float16; view(…) it as a dtype of 32 bits"
    )


def test_memory_where_registers_are_due():
    def body(_):
        d, _a, b = operands()
        tile.apply(F16, d, pt.alloc_shared((1, 1, 16, 8), pt.uint32), b, 0, scope="warp")

    assert wrong(body) == f"{F16}: operand a takes a register tensor, not a tensor in shared memory"


def test_a_sum_of_another_type():
    def body(_):
        d, a, b = operands()
        tile.apply(F16, d, a, b, pt.int32(1), scope="warp")

    assert wrong(body) == f"{F16}: operand c takes .f32, not pt.int32(1)"


def test_a_source_that_the_sum_overwrites():
    def body(_):
        d = local(C, 2, 1, dtype=pt.float32)
        a = d.view(pt.uint32).view(2, 1, 16, 8, layout=stacked(A, 2, 1))
        tile.apply(F16, d, a, local(B, 1, 1), 0, scope="warp")
        d = local(C, 2, 1, dtype=pt.float32)
        a = d.view(pt.uint32).view(
            2, 1, 16, 8, layout=S[(2, 1, 2, 8, 2, 4) : (0, 0, 1, 4 @ laneid, 2, 1 @ laneid)]
        )
        tile.apply(F16, d, a, local(B, 1, 1), 0, scope="warp")

    assert re.sub(r"%r\d+", "%r", wrong(body)) == (
        f"{F16}: issue 1 reads a from %r, which issue 0 has already overwritten; d may be c in place, and nothing else"
    )


def test_warps_of_a_warpgroup_are_named_by_their_place_in_it():
    def right(_):
        d, a, b = (
            pt.alloc_local(
                (4, 1, 1, *each.shape), dtype, layout=stacked(each, 1, 1, warps=4, axis=pt.wid_in_wg)
            )
            for each, dtype in ((C, pt.float32), (A, pt.uint32), (B, pt.uint32))
        )
        tile.apply(F16, d, a, b, 0, scope="warpgroup")

    def by_warpid(_):
        d, a, b = operands(warps=4)
        tile.apply(F16, d, a, b, 0, scope="warpgroup")

    assert len(issues(right, 256)) == 1
    assert message(failure(by_warpid, 256)) == (
        f"{F16}: operand d: owner axis warpid does not fit: warpgroup scope does not tell the executing warp's; name its "
        "warps by wid_in_wg"
    )


def test_metadata_repeats_with_a():
    sparse = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"

    def body(_):
        shapes = mma.shapes(pt.validate(sparse))
        d, a, b = local(shapes.d, 1, 1, dtype=pt.float32), local(shapes.a, 1, 2), local(shapes.b, 1, 2)
        tile.apply(sparse, d, a, b, 0, local(per_lane(), 1, 1), 0, scope="warp")

    assert wrong(body) == (
        f"{sparse}: operand metadata has repeats (1, 1); (1, 2) are due: one word a lane for each"
    )


def test_a_selector_out_of_range():
    sparse = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"

    def body(_):
        shapes = mma.shapes(pt.validate(sparse))
        d, a, b = local(shapes.d, dtype=pt.float32), local(shapes.a), local(shapes.b)
        tile.apply(sparse, d, a, b, 0, local(per_lane()), 4, scope="warp")

    assert wrong(body) == f"{sparse}: operand 6 (selector) is 4, but must be 0 to 3"
