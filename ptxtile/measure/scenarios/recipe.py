"""One point of a scenario: what its timed kernel does, and the kernel's text.

    PASS:  a barrier of the block; t0 = %clock64
    LOOP:  turn, steps × step, turned                 (trips times)
           t1 = %clock64; again from PASS: the first pass only warms caches up

As with chains of spellings, two kernels differ in the number of steps of a turn, and a step is the difference.
Statements may use registers that every kernel has:

    %field   .u64  the block's own global memory, of `Launch.field` bytes
    %shared  .u32  the block's dynamic shared memory
    %thread, %lane, %warp, %block, %rank   .u32  rank is that of the block in its cluster
    %zero    .u32  nothing, which only run time knows
    %acc     .u32  what is added to it counts as used
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ptxtile.measure.plan import Launch, Point
from ptxtile.measure.values import offset

__all__ = ["MEET", "Recipe", "Step", "place_name", "size_name", "text"]

MEET = ("barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;")
"""Statements at which all threads of a cluster meet."""

Step = Callable[[int], "list[str]"]
"""The statements of step `turn` of a turn."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A point, and all that its kernel needs.

    launch   how it is launched
    step     statements of a step
    wanted   prefixes of SASS mnemonics, and how many of each a step must have: the proof
    helpers  kinds of SASS instructions that may stand beside them (addresses, sums)
    declare  declarations
    setup    statements before the first pass
    turn, turned  statements of the loop before and after the steps
    finish   statements after the last pass
    steps    of a turn, in the shorter and the longer kernel
    trips    turns of the loop
    start    statements at which the threads of a block meet before a pass
    """

    point: Point
    launch: Launch
    step: Step
    wanted: dict[str, int]
    helpers: frozenset[str] = frozenset()
    declare: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    turn: tuple[str, ...] = ()
    turned: tuple[str, ...] = ()
    finish: tuple[str, ...] = ()
    steps: tuple[int, int] = (8, 24)
    trips: int = 16
    start: tuple[str, ...] = ("bar.sync 0;",)

    @property
    def name(self) -> str:
        """The scenario and its point: "memory.latency.global.ca/64KiB"."""
        return f"{self.point.scenario}/{place_name(self.point.axis, self.point.at)}"


def place_name(axis: str, at: float) -> str:
    """A place on an axis: bytes with their unit, else the number."""
    return size_name(at) if axis == "bytes" else f"{at:.12g}"


def size_name(size: float) -> str:
    """A number of bytes in the largest unit that divides it: 65536 is "64KiB"."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size / factor:g}{unit}"
    return f"{size:g}B"


def text(name: str, recipe: Recipe, steps: int) -> str:
    """The kernel `name` with `steps` steps a turn."""
    launch = recipe.launch
    return _ENTRY.format(
        name=name,
        map=", .param .align 64 .b8 map[128]" if launch.tensor else "",
        threads=launch.block,
        cluster=f".explicitcluster\n.reqnctapercluster {launch.cluster}" if launch.cluster > 1 else "",
        room=f".extern .shared .align 1024 .b8 {name}_room[];" if launch.shared else "",
        declare="\n".join(recipe.declare),
        rank="mov.u32 %rank, %cluster_ctarank;" if launch.cluster > 1 else "mov.u32 %rank, 0;",
        shared=f"mov.u32 %shared, {name}_room;" if launch.shared else "mov.u32 %shared, 0;",
        zero=offset("zero", 0),
        size=launch.field,
        setup="\n".join(recipe.setup),
        start="\n".join(recipe.start),
        turn="\n".join(recipe.turn),
        body="\n".join(line for turn in range(steps) for line in recipe.step(turn)),
        turned="\n".join(recipe.turned),
        finish="\n".join(recipe.finish),
    )


_ENTRY = """
{room}
.visible .entry {name}(.param .u64 out, .param .u64 in, .param .u64 field, .param .u32 trips, .param .u32 passes{map})
.maxntid {threads}
{cluster}
{{
.reg .u64 %out, %in, %field, %t0, %t1, %slot;
.reg .u32 %trips, %passes, %count, %thread, %lane, %warp, %block, %rank, %shared, %zero, %acc, %line;
.reg .pred %again, %never;
{declare}
ld.param.u64 %out, [out];
ld.param.u64 %in, [in];
ld.param.u64 %field, [field];
ld.param.u32 %trips, [trips];
ld.param.u32 %passes, [passes];
mov.u32 %thread, %tid.x;
and.b32 %lane, %thread, 31;
shr.u32 %warp, %thread, 5;
mov.u32 %block, %ctaid.x;
{rank}
{shared}
ld.global.u32 %zero, [%in+{zero}];
mad.wide.u32 %field, %block, {size}, %field;
mov.b32 %acc, 0;
{setup}
PASS:
{start}
mov.u32 %count, %trips;
mov.u64 %t0, %clock64;
LOOP:
.pragma "nounroll";
{turn}
{body}
{turned}
sub.u32 %count, %count, 1;
setp.ne.u32 %again, %count, 0;
@%again bra LOOP;
mov.u64 %t1, %clock64;
sub.u32 %passes, %passes, 1;
setp.ne.u32 %again, %passes, 0;
@%again bra PASS;
mov.u32 %line, %ntid.x;
add.u32 %line, %line, 31;
shr.u32 %line, %line, 5;
mad.lo.u32 %line, %block, %line, %warp;
mad.wide.u32 %slot, %line, 16, %out;
st.global.u64 [%slot], %t0;
st.global.u64 [%slot+8], %t1;
setp.eq.u32 %never, %trips, 0xffffffff;
@%never st.global.u32 [%out], %acc;
{finish}
ret;
}}
"""
