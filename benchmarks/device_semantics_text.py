"""PTX text, operands and verdicts for `device_semantics.py`; nothing here needs a GPU."""

from __future__ import annotations

from collections.abc import Sequence

import device_semantics_halfway as halfway
import numpy as np
from device_semantics_cases import Case
from numpy.typing import NDArray

from ptxtile.emulator import numeric_float as nf, semantics
from ptxtile.emulator.numeric import FORMATS, Format
from ptxtile.emulator.semantics.kinds import kind_of

Words = NDArray[np.generic]

SOURCES = 5
TARGETS = 2
ELEMENTS = 10240
"""Operands that a case with more than one source, or a wide one, is asked about."""
CLASSES = {1: "p", 8: "r", 16: "h", 32: "r", 64: "d"}


def width(operand: str) -> int:
    """Bits of an operand type: 1 for "pred", 32 for "f16x2" and "tf32"."""
    name = operand.partition(":")[0]
    if name == "pred":
        return 1
    kind = kind_of("." + name)
    if kind is None:
        raise ValueError(f"no PTX type {name!r}")
    return 32 if kind.format == "tf32" else kind.bits * kind.lanes


def register_class(case: Case, operand: str) -> str:
    """The first letter of an operand's register: next to bf16 the assembler takes bytes in .b8 registers alone."""
    bits = width(operand)
    return "q" if bits == 8 and "bf16" in case.spelling else CLASSES[bits]


def _load(position: int, bits: int, octet: str = "r") -> list[str]:
    size = max(bits, 8)
    register = ("r" if bits == 1 else octet) if size == 8 else CLASSES[size]
    lines = [
        f"ld.param.u64 a, [in{position}];",
        f"mad.wide.u32 a, i, {size // 8}, a;",
        f"ld.global.{'u8' if size == 8 else f'b{size}'} {register}s{position}, [a];",
    ]
    if bits == 1:
        lines.append(f"setp.ne.b32 ps{position}, rs{position}, 0;")
    return lines


def _store(position: int, bits: int, register: str) -> list[str]:
    size = max(bits, 8)
    lines = [f"ld.param.u64 a, [out{position}];", f"mad.wide.u32 a, i, {size // 8}, a;"]
    if bits == 1:
        lines.append(f"selp.b32 rt{position}, 1, 0, {register};")
        register = f"rt{position}"
    return [*lines, f"st.global.{'u8' if size == 8 else f'b{size}'} [a], {register};"]


def immediate_place(case: Case) -> int:
    """The source that is a literal: the fourth of lop3, which a predicate may follow; -1 where there is none."""
    return 3 if case.immediate is not None else -1


def _body(case: Case) -> list[str]:
    lines: list[str] = []
    literal = immediate_place(case)
    for position, source in enumerate(case.sources):
        if position != literal:
            lines += _load(position, width(source), register_class(case, source))
    names = [f"{register_class(case, s)}s{i}" for i, s in enumerate(case.sources)]
    if case.immediate is not None:
        names[literal] = hex(case.immediate)
    targets = [f"{register_class(case, t)}t{i}" for i, t in enumerate(case.targets)]
    if case.carry:
        # Adding all ones to 0 or 1 leaves just that as the carry; the last addition reads the new one.
        carry = len(case.sources)
        lines += [*_load(carry, 8), f"add.cc.u32 rt1, rs{carry}, 0xffffffff;"]
    lines.append(f"{case.spelling} {'|'.join(targets)}, {', '.join(names)};")
    if case.carry:
        lines.append("addc.u32 rt1, 0, 0;")
        lines += _store(1, 32, "rt1")
    for position, target in enumerate(case.targets):
        lines += _store(position, width(target), targets[position])
    return lines


def kernel(name: str, case: Case) -> str:
    """One entry: thread i applies the instruction to element i of each array; n elements."""
    parameters = [f".param .u64 out{i}" for i in range(TARGETS)] + [
        f".param .u64 in{i}" for i in range(SOURCES)
    ]
    declarations = [".reg .pred p, ps<6>, pt<2>;", ".reg .b16 hs<6>, ht<2>;", ".reg .b32 rs<6>, rt<2>;"]
    declarations.append(".reg .b8 qs<2>, qt<2>;")
    declarations += [".reg .b64 ds<6>, dt<2>, a;", ".reg .b32 i, n, m;"]
    start = ["mov.u32 i, %ctaid.x;", "mov.u32 n, %ntid.x;", "mov.u32 m, %tid.x;", "mad.lo.u32 i, i, n, m;"]
    start += ["ld.param.u32 n, [count];", "setp.ge.u32 p, i, n;", "@p bra done;"]
    body = "\n".join(["{", *declarations, *start, *_body(case), "done:", "ret;", "}"])
    return f".visible .entry {name}({', '.join(parameters)}, .param .u32 count)\n{body}\n"


def module(cases: Sequence[Case], version: str, target: str) -> str:
    """A module with entries case0, case1, …"""
    head = f".version {version}\n.target {target}\n.address_size 64\n"
    return head + "".join(kernel(f"case{i}", case) for i, case in enumerate(cases))


def _float_specials(form: Format) -> list[int]:
    top, hidden, one = form.infinity, form.hidden, form.one
    positive = [0, 1, 2, hidden - 1, hidden, hidden + 1, one - 1, one, one + 1, one // 2, one + hidden // 2]
    positive += [
        top - 1,
        top - 2,
        top,
        top + 1,
        top + hidden // 2,
        top + hidden // 2 + 1,
        form.sign - 1,
        form.sign - 2,
    ]
    if form.bits == 16:
        positive.append(0x7FF7)  # what .oob takes for an element out of bounds
    return [sign | value for value in positive for sign in (0, form.sign)]


def _integer_specials(bits: int) -> list[int]:
    ones = (1 << bits) - 1
    values = [
        0,
        1,
        2,
        3,
        ones,
        ones - 1,
        ones >> 1,
        (ones >> 1) + 1,
        (ones >> 1) + 2,
        ones // 3,
        0x80,
        0xFF,
        0x7F,
    ]
    return [value & ones for value in values]


def _draw(operand: str, count: int, rng: np.random.Generator) -> Words:
    """`count` values of an operand type: half of them special."""
    name, _, hint = operand.partition(":")
    bits = width(name)
    if bits == 1:
        return rng.integers(0, 2, count).astype(np.bool_)
    if hint:
        low, high = {"bit": (0, 32), "small": (-34, 35), "byte": (0, 256), "amount": (0, 70)}[hint]
        drawn = rng.integers(low, high, count)
        if hint == "amount":
            drawn = np.where(rng.random(count) < 0.1, rng.integers(0, 1 << 32, count), drawn)
        return drawn.astype(np.int64).view(np.uint64).astype(f"u{bits // 8}")
    kind = kind_of("." + name)
    assert kind is not None
    lane = max(bits // kind.lanes, 8)
    lanes = count * (bits // lane)
    drawn = rng.integers(0, 1 << lane, lanes, dtype=np.uint64)
    ieee = kind.floating and kind.format in ("f16", "bf16", "f32", "f64")
    specials = _float_specials(FORMATS[kind.format]) if ieee else _integer_specials(lane)
    picked = np.array(specials, np.uint64)[rng.integers(0, len(specials), lanes)]
    mixed = np.where(rng.random(lanes) < 0.4, picked, drawn)
    if ieee and lane >= 32:
        # Numbers near one in size, whose sums and conversions to integers are interesting.
        form = FORMATS[kind.format]
        near = (mixed & np.uint64(form.sign | form.hidden - 1)) | (
            (rng.integers(-40, 70, lanes) + 1 - form.emin).astype(np.uint64) << np.uint64(form.precision - 1)
        )
        mixed = np.where(rng.random(lanes) < 0.3, near, mixed)
    return mixed.astype(f"u{lane // 8}").view(f"u{bits // 8}")


def _edge_lanes(form: Format, count: int, rng: np.random.Generator) -> list[Words]:
    """Factors with products just below the least normal number, and addends with which they nearly are that."""
    lane = f"u{form.bits // 8}"
    k = rng.integers(1, 1 << (form.precision + 1) // 2, count)
    signs = [np.where(rng.integers(0, 2, count) == 1, form.sign, 0) for _ in range(3)]
    small = rng.integers(0, form.hidden << 4, count)
    near = rng.integers(0, 2, count) == 1
    a = np.where(near, form.hidden + k, small) | signs[0]
    b = np.where(near, form.one - 2 * k, small[::-1]) | signs[1]
    c = np.where(near, rng.integers(0, 2, count), form.hidden) | signs[2]
    return [x.astype(np.int64).view(np.uint64).astype(lane) for x in (a, b, c)]


def _edges(case: Case, arrays: list[Words], rng: np.random.Generator) -> list[Words]:
    """The last eighth of the operands of a flushing instruction, put where results are barely subnormal."""
    opcode, source = case.spelling.partition(".")[0], case.sources[0]
    kind = kind_of("." + source)
    count = len(arrays[0]) // 8
    if ".ftz" not in case.spelling or kind is None or not kind.floating:
        return arrays
    if opcode in ("mul", "fma"):
        lanes = _edge_lanes(kind.form, count * kind.lanes, rng)
        edges = [lane.view(f"u{kind.bits * kind.lanes // 8}") for lane in lanes]
    elif case.spelling.startswith("cvt") and (case.targets[0], source) == ("f32", "f64"):
        # 2**-126 less up to 2**-23 of itself
        drawn = (897 << 52) - (rng.integers(0, 1 << 30, count) >> rng.integers(0, 30, count))
        edges = [(drawn | np.where(rng.integers(0, 2, count) == 1, -(1 << 63), 0)).view(np.uint64)]
    else:
        return arrays
    return [np.concatenate([array[:-count], edge]) for array, edge in zip(arrays, edges)]


def operands(case: Case, seed: int) -> list[Words]:
    """The arrays of one case; a single source of 16 bits or fewer takes all its values."""
    rng = np.random.default_rng([seed, *case.spelling.encode()])
    first = case.sources[0]
    if len(case.sources) == 1 and width(first) <= 16 and width(first) > 1:
        return [np.arange(1 << width(first), dtype=f"u{width(first) // 8}")]
    arrays = [_draw(source, ELEMENTS, rng) for source in case.sources]
    if len(arrays) > 1 and arrays[0].dtype == arrays[1].dtype and arrays[0].dtype != np.bool_:
        equal = rng.random(arrays[0].shape) < 0.1
        arrays[1] = np.where(equal, arrays[0], arrays[1])
    arrays = halfway.replace(case, _edges(case, arrays, rng), rng)
    if case.immediate is not None:
        arrays[immediate_place(case)] = np.full(arrays[0].shape, case.immediate, np.uint32)
    if case.carry:
        arrays.append(rng.integers(0, 2, arrays[0].shape).astype(np.uint8))
    return arrays


def expected(case: Case, arrays: Sequence[Words]) -> list[Words]:
    """What the emulator computes; after a case with carry, the flag too."""
    opcode, *modifiers = case.spelling.split(".")
    types = tuple("." + operand.partition(":")[0] for operand in (*case.targets, *case.sources))
    function = semantics.find(opcode)
    if function is None:
        raise LookupError(f"no semantics for {opcode}")
    flag = arrays[-1].astype(np.bool_) if case.carry else None
    call = semantics.Call(
        case.spelling, opcode, tuple("." + m for m in modifiers), {}, types, len(arrays[0]), flag
    )
    outcome = function(call, *(arrays[:-1] if case.carry else arrays))
    if isinstance(outcome, semantics.WithCarry):
        return [outcome.value, outcome.carry.astype(np.uint32)]
    results = list(outcome) if isinstance(outcome, tuple) else [outcome]
    flags = [] if flag is None else [flag.astype(np.uint32)]
    return [*(part for part in results if not isinstance(part, tuple)), *flags]


def agreement(case: Case, name: str, got: Words, want: Words) -> tuple[NDArray[np.bool_], float]:
    """Where device and emulator agree on one target, and an approximation's largest error in ulp.

    Elements within the absolute bound do not count for the latter.
    """
    same = np.asarray(got == want, np.bool_)
    kind = kind_of("." + name) if name != "pred" else None
    if kind is None or not kind.floating or kind.format not in ("f16", "bf16", "f32", "f64"):
        return same, 0.0
    form = FORMATS[kind.format]
    lanes = [np.ascontiguousarray(x).view(f"u{kind.bits // 8}") for x in (got, want)]
    both = nf.is_nan(lanes[0], form) & nf.is_nan(lanes[1], form)
    if case.any_nan:
        return (lanes[0] == lanes[1]) | both, 0.0
    if case.ulp is None:
        return same, 0.0
    # Sign and magnitude apart: 64-bit encodings would lose their last bits as doubles.
    sizes = [(x & x.dtype.type(form.sign - 1)).astype(np.uint64) for x in lanes]
    apart = np.maximum(*sizes) - np.minimum(*sizes)
    same_sign = nf.is_negative(lanes[0], form) == nf.is_negative(lanes[1], form)
    distance = np.where(same_sign, apart, sizes[0] + sizes[1]).astype(np.float64)
    with np.errstate(all="ignore"):
        error = np.abs(nf.to_double(lanes[0], form) - nf.to_double(lanes[1], form))
    one_nan = nf.is_nan(lanes[0], form) ^ nf.is_nan(lanes[1], form)
    distance = np.where(both, 0.0, np.where(one_nan, np.inf, distance))
    close = (distance <= case.ulp) | (error <= case.absolute)
    exact = np.where(both, lanes[0] == lanes[1], close)
    whole = np.asarray(exact.reshape(-1, kind.lanes).all(axis=1), np.bool_)
    return whole, float(np.where(error <= case.absolute, 0.0, distance).max())
