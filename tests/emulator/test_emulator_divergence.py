"""Random programs of nested branches and loops, with break and continue: every thread against a model in Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

MASK = 0xFFFFFFFF
HEAD = """
ld.param.u64 %rd1, [A]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
mad.lo.u32 %r2, %r1, 2654435761, 12345;
"""

# A statement is ("mix", k) | ("if", bit, body, body) | ("loop", most, body) | ("break", bit) | ("continue", bit).
# The thread's one variable is x; a loop runs x mod (most + 1) times.
leaves = st.one_of(
    st.tuples(st.just("mix"), st.integers(1, 99)),
    st.tuples(st.just("break"), st.integers(0, 7)),
    st.tuples(st.just("continue"), st.integers(0, 7)),
)
programs = st.lists(
    st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(
                st.just("if"), st.integers(0, 7), st.lists(inner, max_size=3), st.lists(inner, max_size=3)
            ),
            st.tuples(st.just("loop"), st.integers(1, 5), st.lists(inner, min_size=1, max_size=3)),
        ),
        max_leaves=12,
    ),
    min_size=1,
    max_size=4,
)


@dataclass
class Text:
    """PTX of a program; loop counters live in registers from %r10 up, one for each depth."""

    lines: list[str] = field(default_factory=list)
    labels: int = 0

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def test(self, bit: int) -> None:
        self.lines.append(f"shr.u32 %r3, %r2, {bit + 9}; and.b32 %r3, %r3, 1; setp.ne.u32 %p1, %r3, 0;")

    def body(self, statements: list[Any], depth: int, ends: tuple[str, str] | None) -> None:
        for statement in statements:
            getattr(self, statement[0] + "_")(statement, depth, ends)

    def mix_(self, statement: Any, depth: int, ends: Any) -> None:
        self.lines.append(f"mad.lo.u32 %r2, %r2, 1664525, {statement[1]};")

    def if_(self, statement: Any, depth: int, ends: Any) -> None:
        other, end = self.label(), self.label()
        self.test(statement[1])
        self.lines.append(f"@!%p1 bra {other};")
        self.body(statement[2], depth, ends)
        self.lines.append(f"bra {end};\n{other}:")
        self.body(statement[3], depth, ends)
        self.lines.append(f"{end}:")

    def loop_(self, statement: Any, depth: int, ends: Any) -> None:
        head, step, end = self.label(), self.label(), self.label()
        counter = f"%r{10 + depth}"
        self.lines.append(f"rem.u32 {counter}, %r2, {statement[1] + 1};")
        self.lines.append(f"{head}: setp.eq.u32 %p2, {counter}, 0; @%p2 bra {end};")
        self.mix_(("mix", 7), depth, ends)
        self.body(statement[2], depth + 1, (end, step))
        self.lines.append(f"{step}: sub.u32 {counter}, {counter}, 1; bra {head};\n{end}:")

    def break_(self, statement: Any, depth: int, ends: Any) -> None:
        if ends:
            self.test(statement[1])
            self.lines.append(f"@%p1 bra {ends[0]};")

    def continue_(self, statement: Any, depth: int, ends: Any) -> None:
        if ends:
            self.test(statement[1])
            self.lines.append(f"@%p1 bra {ends[1]};")


def model(statements: list[Any], x: int, inside: bool = False) -> tuple[int, str]:
    """What one thread computes: x, and how the body was left ("", "break", "continue")."""
    for statement in statements:
        kind = statement[0]
        if kind == "mix":
            x = (x * 1664525 + statement[1]) & MASK
        elif kind == "if":
            x, left = model(statement[2 if x >> (statement[1] + 9) & 1 else 3], x, inside)
            if left:
                return x, left
        elif kind == "loop":
            for _ in range(x % (statement[1] + 1)):
                x, left = model([("mix", 7), *statement[2]], x, True)
                if left == "break":
                    break
        elif inside and x >> (statement[1] + 9) & 1:
            return x, kind
    return x, ""


@settings(max_examples=40)
@given(programs)
def test_every_thread_computes_what_it_would_alone(program):
    from ptxtile.emulator import launch
    from tests.emulator.conftest import kernel

    text = Text()
    text.body(program, 0, None)
    code = HEAD + "\n".join(text.lines) + "\nactivemask.b32 %r5;\nst.global.v2.b32 [%rd1], {%r2, %r5};"
    out = np.zeros((40, 2), np.uint32)
    launch(kernel(code.replace("%r1, 4", "%r1, 8"), ".param .u64 A"), "k", 1, 40, [out])
    expected = [model(program, (i * 2654435761 + 12345) & MASK)[0] for i in range(40)]
    assert out[:, 0].tolist() == expected
    assert (out[:32, 1] == MASK).all(), "the warp did not come together again"
    assert (out[32:, 1] == 0xFF).all()
