"""atom, red, multimem, st.async, red.async over tiles: text, values, addresses in registers, and bad input."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import S, laneid, tile
from tile.running import failure, lines, machines, message, module, takes

LAYOUT = S[(32, 2, 1) : (1 @ laneid, 1, 1)]
PARAMS = {
    "G": pt.Tensor((32, 2, 1), pt.uint32),
    "V": pt.Tensor((32, 2, 4), pt.float32),
    "P": pt.Pointer(pt.uint32),
}
ASYNC = "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32"


def held(dtype=pt.uint32):
    return pt.alloc_local((32, 2, 1), dtype, layout=LAYOUT)


def written(body, *starts, block=32, **options):
    options.setdefault("params", PARAMS)
    return [line for line in lines(body, block, **options) if line.startswith(starts)]


def test_one_base_and_constant_offsets():
    def body(k):
        tile.apply("atom.global.add.u32", held(), k.G, held(), scope="warp")

    first, second = written(body, "atom")
    assert first.startswith("atom.global.add.u32 %r0, [%rd")
    assert second.split(", ")[1] == first.split(", ")[1].replace("]", "+4]")


def test_a_sink_and_a_scalar():
    def body(k):
        tile.apply("atom.global.add.u32", None, k.G, 1, scope="warp")
        tile.apply("red.global.add.u32", k.G, pt.uint32(3), scope="warp")

    found = written(body, "atom", "red")
    assert [line.split(" ", 1)[1][:2] for line in found] == ["_,", "_,", "[%", "[%"]
    assert [line[-1] for line in found] == ["1", "1", "3", "3"]


def test_vectors_and_packed():
    def body(k):
        v = pt.alloc_local((32, 2, 4), pt.float32, layout=S[(32, 2, 4) : (1 @ laneid, 4, 1)])
        tile.apply("red.global.add.v4.f32", k.V, v, scope="warp")
        tile.apply("red.global.add.noftz.f16x2", k.G, held(), scope="warp")

    assert [line.partition(" ")[0] for line in written(body, "red")] == [
        "red.global.add.v4.f32", "red.global.add.v4.f32", "red.global.add.noftz.f16x2", "red.global.add.noftz.f16x2",
    ]  # fmt: skip


def test_addresses_in_registers_are_taken_as_they_are():
    def body(k):
        places = pt.alloc_local((32, 2, 1), pt.uint64, layout=LAYOUT)
        near = held()
        tile.apply("red.global.add.u32", places, 1, scope="warp")
        tile.apply("red.shared.add.u32", near, 1, scope="warp")

    assert written(body, "red", params={}) == [
        "red.global.add.u32 [%rd0], 1", "red.global.add.u32 [%rd1], 1", "red.shared.add.u32 [%r0], 1",
        "red.shared.add.u32 [%r1], 1",
    ]  # fmt: skip


@machines
def test_values(device):
    @pt.kernel(grid=2, block=32)
    def add(Total: pt.Tensor((32, 2, 1), pt.uint32), Old: pt.Tensor((2, 32, 2, 1), pt.uint32)):
        old = held()
        tile.apply("atom.global.add.u32", old, Total, pt.lane_id(), scope="warp")
        tile.apply("st.global.u32", Old[pt.block_idx("x")], old, scope="warp")

    total, old = np.full((32, 2, 1), 5, np.uint32), np.zeros((2, 32, 2, 1), np.uint32)
    add.launch(total, old, device=device)
    lanes = np.arange(32, dtype=np.uint32)[:, None, None]
    np.testing.assert_array_equal(total, np.broadcast_to(5 + 2 * lanes, total.shape))
    np.testing.assert_array_equal(np.sort(old, axis=0)[0], np.broadcast_to(5, total.shape))


def test_a_predicate_for_each_repeat_keeps_the_old_destination():
    def body(k):
        p = pt.alloc_local((32, 2), pt.bool_, layout=S[(32, 2) : (1 @ laneid, 1)])
        tile.apply("atom.global.exch.b32", held(), k.G, 1, scope="warp", pred=p, preserve_dst=True)

    assert [line[:4] for line in written(body, "@")] == ["@%p0", "@%p1"]


def test_the_other_cta_is_mapped_once_for_all_repeats():
    def body(_):
        bar = pt.mbarrier(1)
        s = pt.alloc_shared((32, 2, 1), pt.uint32)
        tile.apply(ASYNC, s, held(), scope="warp", mbar=bar[0], remote=1)

    assert len(written(body, "mapa", cluster=(2, 1, 1))) == 2
    stores = written(body, "st.async", cluster=(2, 1, 1))
    assert stores[1].replace("+4", "").split(", ")[0].split("[")[1] == stores[0].split(", ")[0].split("[")[1]


@pytest.mark.parametrize("target", ["sm_75", "sm_90a", "sm_100a", "sm_120a"])
def test_nvidias_assembler_takes_every_scalar_form_of_the_default_order(target):
    forms = [
        pt.validate(s)
        for p in ("atom.global.*", "red.shared.*")
        for s in pt.forms(p, target)
        if "L2::" not in s
    ]
    assert len(forms) > 20
    dtypes = {8: pt.uint8, 16: pt.uint16, 32: pt.uint32, 64: pt.uint64}

    def body(_):
        for form in forms:
            slot = next(each for each in form.signatures[0].operands if each.name == "b")
            bits = pt.isa.type_bits(slot.type)
            if bits > 64:
                continue
            dtype = {".f32": pt.float32, ".f64": pt.float64, ".s32": pt.int32, ".s64": pt.int64}.get(
                slot.type, dtypes[bits]
            )
            many = [pt.alloc_local((slot.length,), dtype) for _ in range(3)]
            place = pt.alloc_local((1,), pt.uint64)
            names = [each.name for each in form.signatures[0].operands]
            values = iter(many)
            tile.apply(form, *(place if name == "a" else next(values) for name in names))

    assert takes(module(body), target)


# --- bad input ------------------------------------------------------------------------------------------------------
def wrong(body, block=32, **options):
    options.setdefault("params", PARAMS)
    return message(failure(body, block, **options), __file__)


def test_an_element_of_another_width():
    def body(k):
        tile.apply("red.global.add.u64", k.G, held(pt.uint64), scope="warp")

    assert wrong(body) == (
        "red.global.add.u64: operand a: the form takes elements of 64 bits and the tensor's are uint32; view(…) it as a "
        "dtype of 64 bits"
    )


def test_a_float_where_an_integer_is_due():
    assert wrong(lambda k: tile.apply("red.global.add.u32", k.G, 1.5, scope="warp")) == (
        "red.global.add.u32: operand b takes .u32, not 1.5: 1.5 is no integer"
    )


def test_an_operand_too_many():
    assert wrong(lambda k: tile.apply("red.global.add.u32", held(), k.G, held(), scope="warp")) == (
        "red.global.add.u32 takes 2 operands (a, b); 3 were given"
    )


def test_repeats_disagree():
    def body(k):
        b = pt.alloc_local((32, 3, 1), pt.uint32, layout=S[(32, 3, 1) : (1 @ laneid, 1, 1)])
        tile.apply("red.global.add.u32", k.G, b, scope="warp")

    assert wrong(body) == (
        "red.global.add.u32: operand b has repeats (3,), and a has (2,): all tensor operands repeat alike"
    )


def test_an_address_of_another_width():
    assert wrong(lambda _: tile.apply("red.global.add.u32", held(), 1, scope="warp")) == (
        "red.global.add.u32: operand a takes a tensor in memory, or a register tensor of addresses (uint64), not of uint32"
    )


def test_memory_of_another_space():
    def body(_):
        tile.apply("red.global.add.u32", pt.alloc_shared((32, 2, 1), pt.uint32), 1, scope="warp")

    assert wrong(body) == "red.global.add.u32: operand a is .global memory and the tensor is in shared memory"


def test_nothing_is_a_tensor():
    def body(k):
        tile.apply("red.global.add.u32", pt.reg(pt.uint64), 1)

    assert wrong(body) == (
        "red.global.add.u32: operand a takes a tensor in memory, not a run-time uint64; the order is a, b"
    )


def test_a_policy_without_its_modifier_and_the_other_way():
    def without(k):
        tile.apply("red.global.add.u32", k.G, 1, scope="warp", cache_policy=pt.reg(pt.uint64))

    def missing(k):
        tile.apply("red.global.add.L2::cache_hint.u32", k.G, 1, scope="warp")

    assert wrong(without) == "red.global.add.u32: cache_policy= is only for forms with .L2::cache_hint"
    assert wrong(missing) == (
        "red.global.add.L2::cache_hint.u32: .L2::cache_hint needs cache_policy=, a 64-bit value made by createpolicy"
    )


def test_an_asynchronous_store_needs_its_mbarrier():
    def body(_):
        tile.apply(ASYNC, pt.alloc_shared((32, 2, 1), pt.uint32), held(), scope="warp")

    assert wrong(body) == f"{ASYNC} needs mbar=, the mbarrier of that CTA that counts the bytes"


def test_global_memory_has_no_other_cta():
    def body(k):
        tile.apply("st.async.release.gpu.global.b32", k.G, held(), scope="warp", remote=1)

    assert (
        wrong(body) == "st.async.release.gpu.global.b32 is of global memory: it has no mbar= and no remote="
    )


def test_a_vector_that_is_not_aligned():
    def body(k):
        v = pt.alloc_local((31, 4), pt.float32)
        tile.apply("red.global.add.v4.f32", k.F, v)

    text = wrong(body, 1, params={"F": pt.Tensor((31, 4), pt.float32, align=8)})
    assert text == (
        "red.global.add.v4.f32: operand a: an atom of 16 bytes needs a base aligned to 16 bytes, and this tensor's is aligned "
        "to 8 (align=)"
    )
