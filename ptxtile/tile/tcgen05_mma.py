"""tcgen05.mma over tiles: dense, sparse, block-scaled, weights stationary (PTX ISA 9.7.16.10).

Operands in PTX order, by one thread; the instruction descriptor and enable_input_d are made here:
    d            tensor memory (*(M repeats, N repeats), rows, N) in the datapath of the shape
                 (layout/tensor_memory.py); rows = M / ctas; the repeat axes are left out together
    a            shared memory (M repeats * rows, K repeats * k), K-major or MN-major; or tensor memory (*(M repeats,
                 K repeats), rows, words of k)
    b            shared memory (N repeats * N / ctas, K repeats * k), K-major or MN-major
    metadata     of .sp: tensor memory (*(M repeats, K repeats), lanes, columns); the address alone is looked at
    scale_a, scale_b    of .block_scale: tensor memory (*(row repeats, words along K), rows), rows being those of a in
                 this CTA and N of b; see tcgen05_scales.py
`instruction_shape` is (M, N); k is 32 bytes of a row of A. K is innermost; `accumulate` is of the first K repeat, later
ones accumulate. MN-major are the transposed shape, permuted. Commits, fences and waits are the caller's.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from ptxtile import location
from ptxtile.builder import convert
from ptxtile.builder.convert import Mismatch
from ptxtile.builder.tensors import Tensor
from ptxtile.dtypes import Scalar, bool_
from ptxtile.errors import OperandError, TileError
from ptxtile.ir.operand import Address, Integer, Operand, Register
from ptxtile.isa import bind
from ptxtile.isa.form import Form, Operand as Slot, Signature
from ptxtile.layout.tensor_memory import datapath, datapath_of
from ptxtile.tile import operand, predicate, registers, tensor_memory_region as region
from ptxtile.tile.family import GUARDED, Call, Family, Parameter
from ptxtile.tile.tcgen05_instruction import Instruction, element_kind, instruction_descriptor, scale_format
from ptxtile.tile.tcgen05_matrix import descriptors, operand_matrix
from ptxtile.tile.tcgen05_scales import Scales, metadata, scales, selectors
from ptxtile.tile.wgmma_matrix import Matrix

_ROW = 32  # bytes of K of one instruction
LANES = 128


@dataclass(frozen=True, slots=True)
class Extents:
    """Of one instruction: rows of d and a in this CTA, rows of b, columns of d; bytes of a row of a and of b."""

    rows: int
    b_rows: int
    columns: int
    a_bytes: int
    b_bytes: int


def issue(call: Call) -> None:
    """See the module's docstring."""
    form, trace = call.form, call.trace
    if call.group.scope != "thread":
        raise TileError(f'{form.spelling} is issued by one thread: scope="thread", as in pt.if_(pt.elect())')
    if call.preserve_dst:
        raise TileError(f"{form.spelling}: preserve_dst=True requires a destination in registers")
    sparse, scaled = ".sp" in form.modifiers, ".block_scale" in form.modifiers
    names = ["d", "a", "b", *(["metadata"] if sparse else []), *(["scale_a", "scale_b"] if scaled else [])]
    given = dict(zip(names, call.take(len(names), ", ".join(names))))
    made = _instruction(call, given["a"], given["b"])
    ctas = 2 if ".cta_group::2" in form.modifiers else 1
    if scaled and made.m != LANES * ctas:
        raise TileError(
            f"{form.spelling}: M of instruction_shape= is {LANES * ctas} here, not {made.m}: of other products no "
            "layout says where their scale factors lie"
        )
    extents = Extents(made.m // ctas, made.n // ctas, made.n, _ROW, 2 * _ROW if sparse else _ROW)
    letter = datapath_of(made.m, ctas, ".ws" in form.modifiers, sparse)
    sums, repeats = _sums(call, given["d"], extents, letter)
    right = _right(call, given["b"], extents, made.b)
    left = _left(call, given["a"], extents, made)
    k = left.steps if isinstance(left, Matrix) else len(left[0])
    rows = len(left.offsets) if isinstance(left, Matrix) else len(left)
    if (rows, len(right.offsets)) != repeats or right.steps != k:
        raise TileError(
            f"{form.spelling}: a has {rows} x {k} repeats, b {len(right.offsets)} x {right.steps} and d {repeats}; "
            "they are M x K, N x K and (M, N)"
        )
    made = replace(made, mn_a=_mn(left), mn_b=_mn(right))
    table = _Table(call, given, extents, repeats, k)
    instruction_descriptor(form, made)  # what it refuses is refused before anything is written
    lines = _Lines(call)
    first = _flag(call)
    lefts = descriptors(trace, left) if isinstance(left, Matrix) else left
    rights = descriptors(trace, right)
    for i, j, step in itertools.product(range(rows), range(repeats[1]), range(k)):
        a = lefts[i][step] if isinstance(lefts, list) else lefts.at(i, step)
        b = rights.at(j, step)
        fixed, bits = table.at(made, i, j, step)
        flag = first if step == 0 else _predicate(call, True)
        lines.write(
            {"d": sums[i][j], "a": a, "b": b, "idesc": _constant(call, bits), "enable_input_d": flag, **fixed}
        )


def _mn(made: Matrix | list[list[Operand]]) -> bool:
    return isinstance(made, Matrix) and made.descriptor.major == "mn"


class _Table:
    """Metadata and scale factors, by repeat."""

    def __init__(
        self, call: Call, given: dict[str, object], extents: Extents, repeats: tuple[int, int], k: int
    ) -> None:
        self.form = call.form
        self.known: dict[tuple[int, int, int], int] = {}
        self.metadata: list[list[Operand]] | None = None
        self.scales: tuple[Scales, Scales] | None = None
        self.selectors = selectors(call, k)
        if "metadata" in given:
            self.metadata = metadata(call, given["metadata"], repeats[0], k)
        if "scale_a" in given:
            self.scales = (
                scales(call, "scale_a", given["scale_a"], extents.rows, repeats[0], k),
                scales(call, "scale_b", given["scale_b"], extents.columns, repeats[1], k),
            )

    def at(self, made: Instruction, i: int, j: int, step: int) -> tuple[dict[str, Operand], int]:
        """The operands of a repeat by name, and its descriptor."""
        fixed: dict[str, Operand] = {}
        first = second = 0
        if self.metadata is not None:
            fixed["metadata"] = self.metadata[i][step]
        if self.scales is not None:
            fixed["scale_a"], first = self.scales[0].at(i, step)
            fixed["scale_b"], second = self.scales[1].at(j, step)
        key = self.selectors[step], first, second
        if key not in self.known:
            changed = replace(made, selector=key[0], scale_a=first, scale_b=second)
            self.known[key] = instruction_descriptor(self.form, changed)
        return fixed, self.known[key]


def _instruction(call: Call, a: object, b: object) -> Instruction:
    form = call.form
    m, n = _shape(call)
    ctas = 2 if ".cta_group::2" in form.modifiers else 1
    step = 32 if ctas == 2 else 16 if m == 128 else 8
    if ".ws" in form.modifiers:
        fits = n in (64, 128, 256)
        told = "64, 128 or 256 with .ws"
    elif ".kind::i8" in form.modifiers:
        fits = n in (8, 24) if step == 8 and n % 16 else n % max(step, 16) == 0 and step <= n <= 256
        told = f"8, 24 or a multiple of {max(step, 16)} up to 256"
    else:
        fits = n % step == 0 and step <= n <= 256
        told = f"a multiple of {step} up to 256 with M {m}"
    if not fits:
        raise TileError(f"{form.spelling}: N of instruction_shape= is {told}, not {n}")
    formats = [
        element_kind(form, name, tensor, call.parameters.get(f"{name}_format"))
        for name, tensor in (("a", a), ("b", b))
    ]
    negative = [_bool(call, f"neg_{name}") for name in "ab"]
    return Instruction(
        m, n, formats[0], formats[1], negative[0], negative[1], _bool(call, "saturate"),
        str(call.parameters.get("d_format", "f32")), 0,
        scale_format=scale_format(form, call.parameters.get("scale_format")),
    )  # fmt: skip


def _shape(call: Call) -> tuple[int, int]:
    shape = call.parameters.get("instruction_shape")
    if isinstance(shape, (tuple, list)) and len(shape) == 2:
        m, n = shape
        if isinstance(m, int) and isinstance(n, int) and not isinstance(m, bool) and not isinstance(n, bool):
            return m, n
    raise TileError(f"{call.form.spelling} needs instruction_shape=(M, N), not {shape!r}")


def _bool(call: Call, name: str) -> bool:
    value = call.parameters.get(name, False)
    if not isinstance(value, bool):
        raise TileError(f"{call.form.spelling}: {name}= is True or False, not {value!r}")
    return value


# --- operands ---------------------------------------------------------------------------------------------------------
def _sums(
    call: Call, given: object, extents: Extents, letter: str
) -> tuple[list[list[Operand]], tuple[int, int]]:
    """The address of d in each repeat."""
    what = f"{call.form.spelling}: operand d"
    tensor = region.tensor_memory(what, given)
    atom = (extents.rows, extents.columns)
    parts = operand.split(what, tensor, call.group, atom)
    if len(parts.repeat) not in (0, 2):
        raise TileError(f"{what} has repeats {parts.repeat}; they are (M, N), or left out")
    places = region.places_of(tensor)
    due = operand.tables(datapath(letter, extents.columns), atom)
    region.check_atom(f"{what} (datapath {letter})", places, parts, due["TLane"][1], due["TCol"][1])
    found = region.issue_addresses(call.trace, tensor, places, parts, ())
    m, n = parts.repeat or (1, 1)
    return [[found[i * n + j] for j in range(n)] for i in range(m)], (m, n)


def _right(call: Call, given: object, extents: Extents, format_: str) -> Matrix:
    what = f"{call.form.spelling}: operand b"
    atom = extents.b_rows, _elements(what, given, extents.b_bytes)
    return operand_matrix(call.trace, what, given, atom, _kind(given), format_)


def _left(call: Call, given: object, extents: Extents, made: Instruction) -> Matrix | list[list[Operand]]:
    what = f"{call.form.spelling}: operand a"
    if not isinstance(given, Tensor) or given.space != "tensor":
        atom = extents.rows, _elements(what, given, extents.a_bytes)
        return operand_matrix(call.trace, what, given, atom, _kind(given), made.a)
    if not any(slot.name == "a_tmem" for signature in call.form.signatures for slot in signature.operands):
        raise OperandError(f"{what} takes shared memory: this form has no A in tensor memory")
    words = extents.a_bytes // 4
    parts = operand.split(what, given, call.group, (extents.rows, words))
    if len(parts.repeat) not in (0, 2):
        raise TileError(f"{what} has repeats {parts.repeat}; they are (M, K), or left out")
    places = region.places_of(given)
    if extents.rows == LANES:
        lanes, columns = tuple(range(LANES)), tuple(range(words))
        none = (0,) * LANES, (0,) * words
        region.check_atom(what, places, parts, (lanes, none[1]), (none[0], columns))
    found = region.issue_addresses(call.trace, given, places, parts, ())
    m, k = parts.repeat or (1, 1)
    return [[found[i * k + step] for step in range(k)] for i in range(m)]


def _elements(what: str, given: object, size: int) -> int:
    if not isinstance(given, Tensor):
        raise OperandError(f"{what} takes a tensor in shared memory, not {convert.given(given)}")
    return size // given.dtype.itemsize


_KINDS = {
    "float16": ".f16", "bfloat16": ".bf16", "float32": ".tf32", "uint32": ".tf32", "float8_e4m3fn": ".e4m3",
    "float8_e5m2": ".e5m2", "int8": ".s8", "uint8": ".u8", "uint16": ".f16",
}  # fmt: skip


def _kind(given: object) -> str:
    return _KINDS.get(given.dtype.name, ".u8") if isinstance(given, Tensor) else ".u8"


def _constant(call: Call, value: int) -> Register:
    key = ("tcgen05 instruction descriptor", value)
    found = call.trace.computed(key)
    if found is None:
        found = call.trace.register("b32")
        call.trace.instruction("mov.b32", found, Integer(value))
        call.trace.remember_value(key, found)
    return found


def _predicate(call: Call, value: bool) -> Register:
    key = ("tcgen05 enable_input_d", value)
    found = call.trace.computed(key)
    if found is None:
        found = call.trace.register("pred")
        call.trace.instruction("setp.eq.u32", found, Integer(int(value)), Integer(1))
        call.trace.remember_value(key, found)
    return found


def _flag(call: Call) -> Operand:
    """enable_input_d of the first K repeat."""
    value: object = call.parameters.get("accumulate", True)
    if isinstance(value, bool_) and isinstance(value, Scalar) and value.value is None:
        call.trace.live(value, call.form.spelling)
        assert isinstance(value.operand, Register)
        return value.operand
    if not isinstance(value, bool):
        raise OperandError(
            f"{call.form.spelling}: accumulate= is True, False or a run-time bool_, not {convert.given(value)}"
        )
    return _predicate(call, value)


_TAILS = ("disable_output_lane", "scale_input_d", "zero_column_mask")
_SLOTS = {
    "d_tmem": "d", "a_desc": "a", "a_tmem": "a", "b_desc": "b", "sp_meta_tmem": "metadata", "scale_a_tmem": "scale_a",
    "scale_b_tmem": "scale_b", "zero_column_mask_desc": "zero_column_mask",
}  # fmt: skip


class _Lines:
    """Writes the instructions of a call: the first one is checked and bound, the others are like it."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.guards = predicate.guards(call.trace, call.form.spelling, call.pred, call.group, (), 1)
        self.names: list[str] = []
        self.constants: dict[str, Operand] = {}
        self.bound: Signature | None = None
        self.mark = call.trace.source or location.mark(2)

    def write(self, values: dict[str, Operand]) -> None:
        """One instruction; `values` are its operands by name, all but those that keywords give."""
        call = self.call
        if self.bound is None:
            self._choose(values)
        known = values | self.constants
        words = [known[name] for name in self.names]
        if self.bound is None:
            registers.emit(call.trace, call.form, [[word] for word in words], self.guards)
            self.bound = bind(call.form, tuple(word.shape for word in words))
        else:
            call.trace.append(call.form, self.bound, words, self.guards[0], self.mark)

    def _choose(self, values: dict[str, Operand]) -> None:
        """The signature that takes these operands and those of the keywords."""
        call, form = self.call, self.call.form
        extras = {name: call.parameters[name] for name in _TAILS if call.parameters.get(name) is not None}
        signature = _signature(form, set(values) | set(extras), isinstance(values["a"], Address))
        if signature is None:
            raise TileError(f"{form.spelling} takes no {', '.join(sorted(extras))} beside these operands")
        for slot in signature.operands:
            name = _SLOTS.get(slot.name, slot.name)
            self.names.append(name)
            if name not in values:
                self.constants[name] = _extra(call, slot, extras[name])


def _signature(form: Form, wanted: set[str], in_tensor_memory: bool) -> Signature | None:
    for signature in form.signatures:
        names = [slot.name for slot in signature.operands]
        if {_SLOTS.get(name, name) for name in names} == wanted and ("a_tmem" in names) is in_tensor_memory:
            return signature
    return None


def _extra(call: Call, slot: Slot, value: object) -> Operand:
    try:
        return convert.settle(call.trace, convert.convert(call.trace, call.form, slot, value))
    except Mismatch as reason:
        raise OperandError(f"{call.form.spelling}: {convert.refusal(slot, value, reason)}") from None


FAMILY = Family(
    name="tcgen05.mma",
    section="9.7.16.10",
    starts=("tcgen05.mma.",),
    operands=("d, a, b", "sparse: d, a, b, metadata", "block-scaled: d, a, b[, metadata], scale_a, scale_b"),
    atoms="d (rows, N) in its datapath; a (rows, k) shared, or (rows, words) tensor memory; b (N, k) shared; "
    "metadata (lanes, columns); scale factors (rows,)",
    carriers="d words of 32 bits; a and b the kind's types, uint8 for six and four bits",
    parameters=(
        Parameter("instruction_shape", "(M, N); always due"),
        Parameter("accumulate", "False: d is not added to, in the first K repeat; True, or a run-time bool_"),
        Parameter("a_format", "the format of uint8 elements: e4m3 e5m2 e2m3 e3m2 e2m1"),
        Parameter("b_format", "the same of b"),
        Parameter("d_format", '"f32", or "f16" of .kind::f16 and .kind::f8f6f4'),
        Parameter("neg_a", "True: a is negated"),
        Parameter("neg_b", "True: b is negated"),
        Parameter("saturate", "True: .kind::i8 saturates"),
        Parameter("selector", "of the metadata, 0 to 3; or a tuple, one for each K repeat"),
        Parameter("scale_format", '"ue8m0" or, the default of blocks of 16, "ue4m3"'),
        Parameter("scale_input_d", "d is first divided by 2 to so many"),
        Parameter("disable_output_lane", "a tuple of 4 or 8 uint32, a bit a lane"),
        Parameter("zero_column_mask", "uint64, with .ws"),
    ),
    guards=GUARDED,
    scopes="thread",
    judges=("ptxas", "emulator"),
    issue=issue,
)
