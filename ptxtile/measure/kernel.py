"""The text of a timed kernel.

    PASS:  bar.sync; t0 = %clock64
    LOOP:  unroll × chains steps, interleaved over the chains      (trips times)
           t1 = %clock64; again from PASS: the first pass only warms caches up

Two kernels of one chain differ in `unroll` alone; the difference of their times is that of the added steps, and the
clock reads, the loop and the wait for the first operand cancel.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxtile.measure import memory
from ptxtile.measure.chain import Way
from ptxtile.measure.links import Link, bits, opaque, path
from ptxtile.measure.values import immediate, offset, pattern_of, rotation

if TYPE_CHECKING:
    from ptxtile.isa import Form, Operand, Signature

__all__ = ["Shape", "bare", "entry", "link_of", "step_text"]

_PARAMETERS = ".param .u64 out, .param .u64 in, .param .u64 cells, .param .u32 trips, .param .u32 passes"
_CARRY_IN = frozenset(["addc", "subc", "madc"])


@dataclass(frozen=True, slots=True)
class Shape:
    """How many independent chains a thread has, and how many steps of each a turn of the loop takes."""

    chains: int
    unroll: int


def link_of(form: Form | None, way: Way, name: str = "") -> Link | None:
    """The link of a linked chain; of a link that is measured alone, the link itself."""
    if form is None:
        return opaque(name.rpartition(".")[2])
    if way.kind != "linked":
        return None
    signature = form.signatures[way.signature]
    result = next(each for each in signature.operands if each.role == "out")
    source, target = result.carrier or "", signature.operands[way.position].carrier or ""
    return opaque(source) if source == target else path(source, target)


class _Writer:
    """One kernel: registers, the lines that fill them, the lines of a step."""

    def __init__(self, form: Form | None, way: Way, name: str, fresh: bool = False) -> None:
        self.form, self.way = form, way
        self.unshared = fresh
        self.signature: Signature | None = form.signatures[way.signature] if form else None
        self.link = link_of(form, way, name)
        self.carrier = name.rpartition(".")[2]
        self.counts: dict[str, int] = defaultdict(int)
        self.preamble: list[str] = []
        self.constants: dict[tuple[str, str, int], str] = {}
        self.temporaries: dict[str, str] = {}

    def register(self, carrier: str) -> str:
        self.counts[carrier] += 1
        return f"%{carrier}_{self.counts[carrier] - 1}"

    def loaded(self, carrier: str, pattern: str, number: int) -> str:
        """A fresh register, filled from memory before the first pass, from a place that goes by a number."""
        name = self.register(carrier)
        where = f"[%mine+{offset(pattern, number, max(bits(carrier) // 8, 4))}]"
        if carrier == "pred":
            word = self.register("b32")
            self.preamble += [
                f"ld.global.b32 {word}, {where};",
                f"setp.ne.s32 {name}, {word}, 0;",
                f"vote.sync.any.pred {name}, {name}, 0xffffffff;",  # no comparison to merge with the instruction
            ]
        else:
            self.preamble.append(f"ld.global.{carrier} {name}, {where};")
        return name

    def constant(self, carrier: str, pattern: str, turn: int) -> str:
        key = (carrier, pattern, len(self.constants) if self.unshared else turn % rotation(carrier, 1))
        if key not in self.constants:
            self.constants[key] = self.loaded(carrier, pattern, key[2])
        return self.constants[key]

    def value(self, operand: Operand, turn: int) -> tuple[str, ...]:
        """The registers of an operand that is no link of the chain, in turn `turn`."""
        carrier = operand.carrier or "b32"
        if operand.name == "cache_policy":
            return (self.policy(),)
        pattern = pattern_of(operand.type)
        turns = rotation(carrier, operand.length)
        names = []
        for element in range(operand.length):
            number = len(self.constants) if self.unshared else turn % turns
            key = (carrier, f"{operand.name}:{pattern}:{element}", number)
            if key not in self.constants:
                self.constants[key] = self.loaded(carrier, pattern, number + element * turns)
            names.append(self.constants[key])
        return tuple(names)

    def policy(self) -> str:
        """A cache policy, which must be one that `createpolicy` made."""
        key = ("b64", "policy", 0)
        if key not in self.constants:
            self.constants[key] = self.register("b64")
            self.preamble.append(f"createpolicy.fractional.L2::evict_first.b64 {self.constants[key]}, 1.0;")
        return self.constants[key]

    def fresh(self, operand: Operand, number: int) -> tuple[str, ...]:
        """The registers of an operand of chain `number`."""
        carrier, pattern, length = operand.carrier or "b32", pattern_of(operand.type), operand.length
        return tuple(self.loaded(carrier, pattern, number * length + element) for element in range(length))

    def instruction(self, result: tuple[str, ...], given: dict[int, tuple[str, ...]], turn: int) -> str:
        """One statement of the form."""
        assert self.form is not None and self.signature is not None
        written = []
        for index, operand in enumerate(self.signature.operands):
            if operand.kind == "address":
                written.append(self.address(operand, given.get(index), turn))
                continue
            literal = immediate(operand, self.form.opcode)
            if operand.role == "out":
                names = result
            elif index in given:
                names = given[index]
            elif literal is not None:
                names = (literal,)
            else:
                names = self.value(operand, turn)
            braces = operand.kind == "vector"
            text = ", ".join(names)
            if operand.selected and operand.selector:
                text += "." + {"hxy": "h10", "bxyzw": "b3210"}.get(operand.selector[0], operand.selector[0])
            written.append(f"{{{text}}}" if braces else text)
        return f"{self.form.spelling} {', '.join(written)};"

    def address(self, operand: Operand, given: tuple[str, ...] | None, turn: int) -> str:
        """An address: a link of the chain if it is given."""
        if given is None:
            return memory.address(operand, turn)
        assert self.signature is not None
        result = next(each for each in self.signature.operands if each.role == "out")
        return memory.chased(result, given[0], operand.space)

    def linked(self, link: Link, source: str, target: str, turn: int, chain: int) -> list[str]:
        names = {"s": source, "d": target}
        for number, carrier in enumerate(link.temporary):
            key = f"{carrier}:{number}:{chain}"
            if key not in self.temporaries:
                self.temporaries[key] = self.register(carrier)
            names[f"t{number}"] = self.temporaries[key]
        for number, (carrier, pattern) in enumerate(link.constants):
            names[f"c{number}"] = self.constant(carrier, pattern, turn + number)
        return [line.format(**names) for line in link.lines]


class _Chain:
    """The registers of one chain, and its steps."""

    def __init__(self, writer: _Writer, number: int) -> None:
        self.writer, self.number = writer, number
        way, signature = writer.way, writer.signature
        if signature is None:
            kind = {"f32": "float", "f64": "double"}.get(writer.carrier, "int")
            self.x: tuple[str, ...] = (writer.loaded(writer.carrier, kind, number),)
            self.live: list[tuple[tuple[str, ...], str]] = [(self.x, writer.carrier)]
            return
        source = signature.operands[way.position]
        result = next(each for each in signature.operands if each.role == "out")
        if way.kind == "chase":
            shared = memory.is_shared(source.space)
            self.x = (writer.register("b32" if shared else "b64"),)
            writer.preamble.append(
                f"mov.b32 {self.x[0]}, %room;" if shared else f"mov.b64 {self.x[0]}, %cells;"
            )
            self.live = [(self.x, "b32" if shared else "b64"), (("%acc",), "b32")]
            self.d = tuple(writer.register(result.carrier or "b32") for _ in range(result.length))
            return
        self.x = writer.fresh(source, number)
        self.live = [(self.x, source.carrier or "b32")]
        if way.feed >= 0:
            self.f = writer.fresh(signature.operands[way.feed], number)
        if way.kind == "fibonacci":
            self.y = writer.fresh(signature.operands[way.second], number + 1)
            self.live.append((self.y, source.carrier or "b32"))
        elif way.kind == "linked":
            self.d = tuple(writer.register(result.carrier or "b32") for _ in range(result.length))

    def step(self, turn: int) -> list[str]:
        writer, way = self.writer, self.writer.way
        if writer.signature is None:
            assert writer.link is not None
            return writer.linked(writer.link, self.x[0], self.x[0], turn, self.number)
        if way.kind == "direct" and way.feed >= 0:
            given = {way.position: self.x, way.feed: self.f}
            return [writer.instruction(self.x, given, turn), f"mov.b32 {self.f[0]}, {self.x[0]};"]
        if way.kind == "direct":
            return self._carry([writer.instruction(self.x, {way.position: self.x}, turn)], self.x[0], turn)
        if way.kind == "fibonacci":
            last, before = (self.x, self.y) if turn % 2 == 0 else (self.y, self.x)
            given = {way.position: last, way.second: before}
            return self._carry([writer.instruction(before, given, turn)], before[0], turn)
        if way.kind == "chase":
            operands = writer.signature.operands
            result = next(each for each in operands if each.role == "out")
            assert writer.form is not None
            after = memory.next_address(
                operands[way.position], result, self.d, self.x[0], writer.register,
                transposed=".trans" in writer.form.modifiers,
            )  # fmt: skip
            return [writer.instruction(self.d, {way.position: self.x}, turn), *after]
        assert writer.link is not None
        lines = self._carry([writer.instruction(self.d, {way.position: self.x}, turn)], self.d[0], turn)
        return [*lines, *writer.linked(writer.link, self.d[0], self.x[0], turn, self.number)]

    def _carry(self, lines: list[str], result: str, turn: int) -> list[str]:
        """With what sets the carry flag before, and what reads it after, where the form reads or sets it."""
        form = self.writer.form
        assert form is not None
        if form.opcode in _CARRY_IN:
            one = self.writer.constant("b32", "int", turn)
            junk = self.writer.register("b32")
            low = self.x[0]
            if self.live[0][1] in ("b16", "b64"):
                low = self.writer.register("b32")
                lines.insert(0, f"cvt.u32.u{self.live[0][1][1:]} {low}, {self.x[0]};")
            lines.insert(len(lines) - 1, f"add.cc.u32 {junk}, {low}, {one};")
        if ".cc" in form.modifiers:
            word = "u64" if form.modifiers[-1].endswith("64") else "u32"
            zero = self.writer.constant("b64" if word == "u64" else "b32", "zero", turn)
            lines.append(f"addc.{word} {result}, {result}, {zero};")
        return lines


def step_text(form: Form | None, way: Way, link_name: str = "") -> tuple[str, ...]:
    """The statements of one step, to be shown."""
    writer = _Writer(form, way, link_name)
    return tuple(_Chain(writer, 0).step(0))


def bare(name: str, form: Form, way: Way, chains: int) -> str:
    """A kernel that is not timed: one step of each chain, no loop, and every operand read from memory for itself.

    Nothing in it can be hoisted, computed once or merged with a neighbour, so that two of them with different numbers
    of chains show the instructions that the form needs.
    """
    text = entry(name, form, way, Shape(chains, 1), fresh=True)
    text = text.replace("ld.global.", "ld.volatile.global.")
    return text.replace("@%again bra LOOP;\n", "").replace("@%again bra PASS;\n", "")


def entry(
    name: str, form: Form | None, way: Way, shape: Shape, link_name: str = "", *, fresh: bool = False
) -> str:
    """One timed kernel. `form` None measures the link `link_name` alone; `fresh` lets no two steps share an operand."""
    writer = _Writer(form, way, link_name, fresh)
    chains = [_Chain(writer, number) for number in range(shape.chains)]
    body = [line for turn in range(shape.unroll) for chain in chains for line in chain.step(turn)]
    sink: list[str] = []
    for chain in chains:
        for names, carrier in chain.live:
            for register in names:
                if carrier == "pred":
                    number = writer.register("b32")
                    sink += [
                        f"selp.b32 {number}, 1, 0, {register};",
                        f"@%never st.global.b32 [%mine], {number};",
                    ]
                else:
                    sink.append(f"@%never st.global.{carrier} [%mine], {register};")
    declarations = [f".reg .{carrier} %{carrier}_<{count}>;" for carrier, count in writer.counts.items()]
    where = "", ""
    if form and writer.signature and any(each.kind == "address" for each in writer.signature.operands):
        result = next(each for each in writer.signature.operands if each.role == "out")
        where = memory.DECLARATIONS, memory.opening(memory.ring_of(form, result))
    return _ENTRY.format(
        name=name,
        threads=32 if way.kind == "chase" else 1024,
        memory=where[0],
        opening=where[1],
        parameters=_PARAMETERS,
        declarations="\n".join(declarations),
        preamble="\n".join(writer.preamble),
        body="\n".join(body),
        sink="\n".join(sink),
    )


# The place where results would go is written only if `trips` were its greatest value: the chains stay live, and no
# store is timed.
_ENTRY = """
.visible .entry {name}({parameters})
.maxntid {threads}
{{
.reg .u64 %out, %in, %mine, %t0, %t1, %slot;
.reg .u32 %trips, %passes, %count, %thread, %warp, %block;
.reg .pred %again, %never;
{memory}{declarations}
ld.param.u64 %out, [out];
ld.param.u64 %in, [in];
ld.param.u32 %trips, [trips];
ld.param.u32 %passes, [passes];
mov.u32 %thread, %tid.x;
mov.u32 %block, %ctaid.x;
mad.wide.u32 %mine, %thread, 16, %in;
{opening}{preamble}
PASS:
bar.sync 0;
mov.u32 %count, %trips;
mov.u64 %t0, %clock64;
LOOP:
.pragma "nounroll";
{body}
sub.u32 %count, %count, 1;
setp.ne.u32 %again, %count, 0;
@%again bra LOOP;
mov.u64 %t1, %clock64;
sub.u32 %passes, %passes, 1;
setp.ne.u32 %again, %passes, 0;
@%again bra PASS;
shr.u32 %warp, %thread, 5;
mov.u32 %count, %ntid.x;
shr.u32 %count, %count, 5;
mad.lo.u32 %warp, %block, %count, %warp;
mad.wide.u32 %slot, %warp, 16, %out;
st.global.u64 [%slot], %t0;
st.global.u64 [%slot+8], %t1;
setp.eq.u32 %never, %trips, 0xffffffff;
{sink}
ret;
}}
"""
