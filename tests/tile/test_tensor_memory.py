"""tcgen05 over tiles: loads, stores and dense products of tensor memory as text, through NVIDIA's assembler; bad input."""

from __future__ import annotations

import re

import pytest

import ptxtile as pt
from ptxtile import S, TCol, TLane, laneid, tile, warpid
from ptxtile.layout.iters import Iter
from ptxtile.layout.mma_fragment import stacked
from ptxtile.layout.tensor_memory import datapath, tensor_memory_fragment
from ptxtile.tile.tcgen05_instruction import Instruction, instruction_descriptor
from tile.running import failure, lines, message, module

MMA = "tcgen05.mma.cta_group::1.kind::f16"
LD = "tcgen05.ld.sync.aligned.32x32b.x8.b32"
SHAPES = ["32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"]


def memory(columns=128, ctas=1):
    made = pt.tensor_memory(columns, ctas)
    pt.cta_sync()
    return made


def accumulator(columns=64, letter="D", held=None):
    rows = {"D": 128, "A": 128, "G": 32}.get(letter, 64)
    return (held or memory()).tensor((rows, columns), pt.float32, layout=datapath(letter, columns))


def shared(rows, columns, dtype=pt.float16, swizzle=128):
    shape = (rows, columns)
    return pt.alloc_shared(shape, dtype, layout=pt.shared_layout(shape, dtype, swizzle), align=1024)


def registers(shape, count, *repeats):
    fragment = tensor_memory_fragment(shape, count)
    return pt.alloc_local(
        (4, *repeats, *fragment.shape), pt.float32, layout=stacked(fragment, *repeats, warps=4)
    )


def region(shape, count, packed=False):
    """(4 warps, *atom) in tensor memory."""
    *front, rows, columns = tensor_memory_fragment(shape, count).shape
    wide = columns * 2 if packed else columns
    step = [max(wide, 1)] if front else []
    extents = (4, *front, rows, *((columns, 2) if packed else (columns,)))
    strides = (
        32 @ TLane,
        *(x @ TCol for x in step),
        1 @ TLane,
        *((2 @ TCol, 1 @ TCol) if packed else (1 @ TCol,)),
    )
    return memory(512).tensor(extents, pt.float32, layout=S[extents:strides])


def written(body, *starts, block=128):
    return [line for line in lines(body, block, params={}) if line.startswith(starts)]


# --- loads and stores -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("packed", [False, True])
def test_nvidias_assembler_takes_every_shape(shape, packed):
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    half = ".pack::16b" if packed else ""

    def body(_):
        for count in (1, 2, 32):
            r, place = registers(shape, count), region(shape, count, packed)
            tile.apply(f"tcgen05.ld.sync.aligned.{shape}.x{count}{half}.b32", r, place, scope="cta")
            tile.apply(
                f"tcgen05.st.sync.aligned.{shape}.x{count}{half.replace('.', '.un')}.b32",
                place,
                r,
                scope="cta",
            )

    for target in ("sm_100a", "sm_103a"):
        assert pt.assemble(str(module(body, 128)), target)[:4] == b"\x7fELF"


def test_a_warp_s_lanes_are_one_product():
    def body(_):
        tile.apply(
            LD,
            registers("32x32b", 8, 2),
            accumulator().view(4, 32, 8, 8).permute(0, 2, 1, 3)[:, 0:2],
            scope="cta",
        )

    found = written(body, "mad", "tcgen05.ld", "shr")
    assert found[1] == "mad.lo.u32 %r18, %r19, 2097152, %r16"  # 32 lanes << 16, a warp
    assert [re.search(r"\[(.*)\]", line)[1] for line in found[2:]] == ["%r18", "%r18+8"]


def test_half_split_off_is_the_distance_of_the_regions():
    def body(_):
        tile.apply(
            "tcgen05.ld.sync.aligned.16x32bx2.x8.b32",
            registers("16x32bx2", 8),
            region("16x32bx2", 8),
            scope="cta",
        )

    assert written(body, "tcgen05.ld")[0].endswith(", 8")


def test_one_warp_by_its_guard():
    def body(_):
        place = accumulator().view(4, 32, 64)
        fragment = tensor_memory_fragment("32x32b", 64)
        r = pt.alloc_local(fragment.shape, pt.float32, layout=fragment.layout)
        with pt.if_(pt.warp_id() == 2):
            tile.apply("tcgen05.ld.sync.aligned.32x32b.x64.b32", r, place[2], scope="warp")

    assert written(body, "tcgen05.ld")[0].endswith(f"+{64 << 16}]")


# --- products -------------------------------------------------------------------------------------------------------
def test_k_steps_and_repeats():
    def body(_):
        held = memory(256)
        d = held.tensor(
            (2, 2, 128, 64),
            pt.float32,
            layout=S[(2, 2, 128, 64) : (128 @ TCol, 64 @ TCol, 1 @ TLane, 1 @ TCol)],
        )
        tile.apply(MMA, d, shared(256, 64), shared(128, 64), instruction_shape=(128, 64), accumulate=False)

    found = written(body, "tcgen05.mma", block=1)
    assert len(found) == 2 * 2 * 4
    flags = [line.rpartition(", ")[2] for line in found]
    assert flags == [flags[0], *[flags[1]] * 3] * 4
    places = [re.search(r"\[([^\]]*)\]", line)[1] for line in found[::4]]
    assert [place.partition("+")[2] for place in places] == ["", "64", "128", "192"]


KINDS = [  # (kind, dtype, format, k elements, targets)
    ("f16", pt.float16, None, 16), ("f16", pt.bfloat16, None, 16), ("tf32", pt.float32, None, 8),
    ("f8f6f4", pt.float8_e4m3fn, None, 32), ("f8f6f4", pt.uint8, "e2m1", 32), ("i8", pt.int8, None, 32),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "dtype", "format_", "k"), KINDS)
@pytest.mark.parametrize("word", ["", "ws."])
def test_nvidias_assembler_takes_every_kind(kind, dtype, format_, k, word):
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    formats = {} if format_ is None else {"a_format": format_, "b_format": format_}

    def body(_):
        a, b = shared(128, 4 * k, dtype), shared(64, 4 * k, dtype)
        form = f"tcgen05.mma.{word}cta_group::1.kind::{kind}"
        d = accumulator()
        tile.apply(form, d, a, b, instruction_shape=(128, 64), **formats)
        half = shared(64, 4 * k, dtype)
        letter = "E" if word else "F"
        tile.apply(form, accumulator(64, letter), half, b, instruction_shape=(64, 64), **formats)
        left = memory().tensor(
            (1, 4, 128, 8), pt.uint32, layout=S[(1, 4, 128, 8) : (1 @ TLane, 8 @ TCol, 1 @ TLane, 1 @ TCol)]
        )
        given = formats or {
            "a_format": {
                "float16": "f16",
                "bfloat16": "bf16",
                "float32": "tf32",
                "float8_e4m3fn": "e4m3",
                "int8": "s8",
            }[dtype.name]
        }
        tile.apply(form, d, left, b, instruction_shape=(128, 64), **given)

    assert pt.assemble(str(module(body, 1)), "sm_100a")[:4] == b"\x7fELF"


def test_a_pair_of_ctas():
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")

    def body(_):
        d = accumulator(64, "B", memory(128, 2))
        tile.apply(
            "tcgen05.mma.cta_group::2.kind::f16",
            d,
            shared(64, 64),
            shared(32, 64),
            instruction_shape=(128, 64),
        )

    assert pt.assemble(str(module(body, 1, cluster=(2, 1, 1))), "sm_100a")[:4] == b"\x7fELF"


def test_instruction_descriptors():
    """Bit by bit after PTX ISA 9.7.16.4.2 and CUTLASS's InstrDescriptor."""

    def bits(spelling, *rest):
        return instruction_descriptor(pt.validate(spelling), Instruction(128, 64, *rest))

    assert (
        bits(MMA, "bf16", "bf16", False, True, False, "f32", 0)
        == 1 << 4 | 1 << 7 | 1 << 10 | 1 << 14 | 8 << 17 | 8 << 24
    )
    i8 = "tcgen05.mma.cta_group::1.kind::i8"
    assert bits(i8, "s8", "u8", False, False, True, "f32", 0) == 1 << 3 | 2 << 4 | 1 << 7 | 8 << 17 | 8 << 24
    scaled = "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale"
    assert (
        bits(scaled, "e4m3", "e2m1", False, False, False, "f32", 0) == 5 << 10 | 8 << 17 | 1 << 23 | 8 << 24
    )
    nv = "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16"
    rest = (False, False, False, "f32", 0)
    assert bits(nv, "e2m1", "e2m1", *rest, False, False, "ue4m3") == 1 << 7 | 1 << 10 | 8 << 17 | 8 << 24
    assert bits(nv, "e2m1", "e2m1", *rest, False, False, "ue8m0", 1, 2) == (
        1 << 7 | 1 << 10 | 8 << 17 | 8 << 24 | 1 << 23 | 1 << 29 | 2 << 4
    )
    assert bits(MMA, "f16", "f16", *rest, True, True) == 1 << 4 | 3 << 15 | 8 << 17 | 8 << 24
    sparse = "tcgen05.mma.sp.cta_group::1.kind::f16"
    assert bits(sparse, "f16", "f16", False, False, False, "f16", 2) == 2 | 1 << 2 | 8 << 17 | 8 << 24


def test_a_shared_descriptor():
    """Bits 46 to 48 are 1, the swizzle of 128 bytes is 2 at bit 61, the stride 1024 bytes."""

    def body(_):
        tile.apply(MMA, accumulator(), shared(128, 64), shared(64, 64), instruction_shape=(128, 64))

    assert f"mov.b32 %r3, {(1024 >> 4) | 1 << 14 | 2 << 29}" in [
        re.sub(r"%r\d+", "%r3", line) for line in written(body, "mov", block=1)
    ]


# --- bad input ------------------------------------------------------------------------------------------------------
def wrong(body, block=128):
    return message(failure(body, block, params={}), __file__)


def product(**keywords):
    def body(_):
        made = {
            "d": accumulator,
            "a": lambda: shared(128, 64),
            "b": lambda: shared(64, 64),
            "instruction_shape": (128, 64),
        }
        made |= keywords
        d, a, b = (made.pop(name)() for name in "dab")
        tile.apply(MMA, d, a, b, **made)

    return body


CASES = [
    (product(instruction_shape=None), f"{MMA} needs instruction_shape=(M, N), not None"),
    (product(instruction_shape=(128, 60)), f"{MMA}: N of instruction_shape= is a multiple of 16 up to 256 with M 128, not 60"),
    (product(instruction_shape=(96, 64)), "tcgen05.mma with .cta_group::1 has M 64, 128, not 96"),
    (product(a=lambda: shared(128, 64, pt.float32)), f"{MMA}: a is tf32, and .kind::f16 has f16, bf16"),
    (product(a=lambda: shared(128, 64, pt.uint16)), f"{MMA} needs a_format=, one of f16, bf16: elements of uint16 do not say it"),
    (product(a=lambda: shared(128, 32, swizzle=64)), f"{MMA}: a has 1 x 2 repeats, b 1 x 4 and d (1, 1); they are M x K, N x K and (M, N)"),
    (product(d=lambda: pt.alloc_shared((128, 64), pt.float32)),
     f"{MMA}: operand d takes a tensor in tensor memory, pt.tensor_memory(…).tensor(…), not a tensor in shared"),
    (product(d=lambda: memory().tensor((128, 64), pt.float32, layout=S[(128, 64) : (1 @ TLane, 2 @ TCol)])),
     f"{MMA}: operand d (datapath D): element (0, 1) of the atom must lie 0 lanes and 1 columns from the first, and the layout puts it 0 and 2 away"),
    (product(accumulate=1), f"{MMA}: accumulate= is True, False or a run-time bool_, not 1"),
    (product(d_format="s32"), f"{MMA}: d_format= is f32, or f16 of .kind::f16 and .kind::f8f6f4, not 's32'"),
    (product(saturate=True), f"{MMA}: saturate= is of .kind::i8"),
    (product(zero_column_mask=0), f"{MMA} takes no zero_column_mask beside these operands"),
    (product(scale_input_d=16), f"{MMA}: operand 6 (scale_input_d) is 16, but must be 0 to 15"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "text"), CASES)
def test_bad_products(body, text):
    assert wrong(body, 1) == text


def test_a_product_is_one_thread_s():
    def body(_):
        tile.apply(
            MMA, accumulator(), shared(128, 64), shared(64, 64), scope="warp", instruction_shape=(128, 64)
        )

    assert wrong(body) == f'{MMA} is issued by one thread: scope="thread", as in pt.if_(pt.elect())'


def test_another_warp_s_lanes():
    def body(_):
        fragment = tensor_memory_fragment("32x32b", 64)
        r = pt.alloc_local(fragment.shape, pt.float32, layout=fragment.layout)
        place = accumulator().view(4, 32, 64)
        with pt.if_(pt.warp_id() == 2):
            tile.apply("tcgen05.ld.sync.aligned.32x32b.x64.b32", r, place[1], scope="warp")

    assert wrong(body) == (
        "tcgen05.ld.sync.aligned.32x32b.x64.b32: operand taddr: warp 2 of a warpgroup reaches lanes 64 to 95 of tensor memory, "
        "16 or 32 at a time, and 32 lanes from 32 are asked for"
    )


def test_a_warp_that_is_not_known():
    def body(_):
        fragment = tensor_memory_fragment("32x32b", 8)
        r = pt.alloc_local(fragment.shape, pt.float32, layout=fragment.layout)
        tile.apply(LD, r, accumulator(8)[0:32], scope="warp")

    assert wrong(body) == (
        f"{LD}: operand taddr: a warp reaches lanes 32 (warp % 4) on of tensor memory alone, so which warps are active must be "
        'known: guard with pt.if_(pt.warp_id() == …), or use scope="warpgroup" or "cta"'
    )


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: pt.tensor_memory(48), "pt.tensor_memory: columns are 32, 64, 128, 256, 512, not 48"),
        (lambda: pt.tensor_memory(32.0), "pt.tensor_memory: columns are 32, 64, 128, 256, 512, not 32.0"),
        (lambda: pt.tensor_memory(64, 3), "pt.tensor_memory: ctas= is 1 or 2, not 3"),
        (lambda: memory(32).tensor((128, 64), pt.float32, layout=datapath("D", 64)),
         "TileLayout(S[(128, 64) : (1 @ TLane, 1 @ TCol)]) reaches TCol 63, and there are 32"),
        (lambda: memory().tensor((128, 8), pt.float16, layout=datapath("D", 8)),
         "tensor memory holds words of 32 bits, and float16 has 16: take uint32 for packed elements"),
        (lambda: memory().tensor((128, 8), pt.float32, layout=S[128, 8]),
         "a tensor in tensor memory lies on TLane and TCol, and TileLayout(S[128, 8]) does not"),
    ],
)  # fmt: skip
def test_bad_tensors(make, text):
    assert message(failure(lambda _: make(), 128, params={})) == text


def test_a_copy_to_lanes_of_another_multicast():
    form = "tcgen05.cp.cta_group::1.64x128b.warpx2::01_23"

    def body(_):
        tile.apply(
            form,
            memory().tensor((64, 4), pt.uint32, layout=S[(64, 4) : (1 @ TLane, 1 @ TCol)]),
            shared(64, 32, pt.uint32),
        )

    assert wrong(body, 1) == (
        f"{form}: operand taddr: element (32, 0) of the atom must lie 64 lanes and 0 columns from the first, and the layout puts "
        "it 32 and 0 away"
    )


# --- loads that reduce ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("shape", "rest"),
    [("32x32b", "max.f32"), ("32x32b", "min.u32"), ("16x32bx2", "max.abs.NaN.f32"), ("16x32bx2", "min.s32")],
)
def test_loads_that_reduce(shape, rest):
    def body(_):
        total = pt.alloc_local((4, 2, 32), pt.float32, layout=S[(4, 2, 32) : (1 @ warpid, 1, 1 @ laneid)])
        place = region(shape, 8)
        both = memory(512).tensor((4, 2, *place.static_shape[1:]), pt.float32, layout=twice(place))
        tile.apply(
            f"tcgen05.ld.red.sync.aligned.{shape}.x8.{rest}", registers(shape, 8, 2), total, both, scope="cta"
        )

    builder = pt.ModuleBuilder("sm_103a")
    with builder.entry("k", {}, block=128):
        body(None)
    found = re.findall(r"tcgen05\.ld\.red\S+ \{[^}]*\}, (%r\d+), \[(\S+)\](, 8)?;", str(builder))
    assert len({register for register, *_ in found}) == 2
    assert [place.partition("+")[2] for _, place, _ in found] == ["", "64"]
    assert [half for *_, half in found] == [", 8" if shape == "16x32bx2" else ""] * 2
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    assert pt.assemble(str(builder), "sm_103a")[:4] == b"\x7fELF"


def twice(place):
    """The layout of a tensor (4, …) once more 64 columns on: (4, 2, …)."""
    first, *rest = place.layout.shard
    return pt.TileLayout.from_iters([first, Iter(2, 64, TCol), *rest])


@pytest.mark.parametrize(
    ("total", "text"),
    [
        (lambda: pt.alloc_local((4, 32), pt.float32, layout=S[(4, 32) : (1 @ warpid, 1 @ laneid)]),
         "operand redval has repeats (), and r has (1,): both repeat alike"),
        (lambda: pt.alloc_local((4, 1, 32), pt.float16, layout=S[(4, 1, 32) : (1 @ warpid, 1, 1 @ laneid)]),
         "operand redval takes registers of 32 bits and the tensor's elements are float16; view(…) it as a dtype of 32 bits"),
        (lambda: 1.0, "operand redval takes a register tensor, not 1.0"),
    ],
)  # fmt: skip
def test_bad_reductions(total, text):
    form = "tcgen05.ld.red.sync.aligned.32x32b.x8.max.f32"

    def body(_):
        place = memory().tensor(
            (4, 1, 32, 8), pt.float32, layout=S[(4, 1, 32, 8) : (32 @ TLane, 8 @ TCol, 1 @ TLane, 1 @ TCol)]
        )
        tile.apply(form, registers("32x32b", 8, 1), total(), place, scope="cta")

    assert wrong(body) == f"{form}: {text}"
