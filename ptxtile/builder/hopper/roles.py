"""Who does what: elected lanes, roles of warpgroups with their registers, directives, dependent grids, fences."""

from __future__ import annotations

import sys
from types import TracebackType

from ptxtile.builder.control import if_
from ptxtile.builder.scalars import warp_id
from ptxtile.builder.values import current, home, where
from ptxtile.dtypes import Scalar, bool_
from ptxtile.errors import OperandError, TraceError
from ptxtile.ir.module import Directive
from ptxtile.ir.operand import Integer, Pair, Sink

__all__ = [
    "directive",
    "elect",
    "fence_async",
    "fence_mbarrier_init",
    "launch_dependents",
    "wait_on_dependencies",
    "warpgroup_role",
]

_DIRECTIVES = {"maxnreg": 1, "minnctapersm": 1, "maxntid": 3, "pragma": 1}
_FENCED = {None: "", "shared": ".shared::cta", "cluster": ".shared::cluster", "global": ".global"}


def elect(mask: int = 0xFFFFFFFF) -> Scalar:
    """True in one lane of the warp, a bool_: `elect.sync _|p, mask`. All lanes of the mask execute it (9.7.13.14)."""
    trace = current("pt.elect")
    if isinstance(mask, bool) or not isinstance(mask, int) or not 0 < mask < 1 << 32:
        raise OperandError(
            f"pt.elect: mask names lanes of a warp, 1 to 0xffffffff, not {mask!r}" + where(trace)
        )
    made = trace.value(bool_)
    trace.instruction("elect.sync", Pair(Sink(), home(made)), Integer(mask))
    return made


class warpgroup_role(if_):
    """`with pt.warpgroup_role(first, count):` the warps of warpgroups first … first + count - 1 run the body.

    A branch on pt.warp_id(); then `setmaxnreg.dec.sync.aligned.u32 decrease_to` or `setmaxnreg.inc… increase_to` if it
    is given: registers a thread, 24 to 256, a multiple of 8 (9.7.19.5). The assembler needs to know the count at entry:
    pt.directive("maxnreg", n) or pt.directive("minnctapersm", 1).
    """

    kind = "pt.warpgroup_role"

    def __init__(
        self, first: int, count: int = 1, *, decrease_to: int | None = None, increase_to: int | None = None
    ) -> None:
        trace = current("pt.warpgroup_role")
        for name, value, least in (("first", first, 0), ("count", count, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise OperandError(
                    f"pt.warpgroup_role: {name} is an integer of at least {least}, not {value!r}"
                    + where(trace)
                )
        if decrease_to is not None and increase_to is not None:
            raise OperandError(
                "pt.warpgroup_role: give decrease_to= or increase_to=, not both" + where(trace)
            )
        for registers in (decrease_to, increase_to):
            if registers is not None and (
                not isinstance(registers, int) or registers % 8 or not 24 <= registers <= 256
            ):
                raise OperandError(
                    f"pt.warpgroup_role: a thread has 24 to 256 registers, a multiple of 8, not {registers!r}"
                    + where(trace)
                )
        threads = trace.launch.threads
        if threads is not None and threads < (first + count) * 128:
            raise TraceError(
                f"pt.warpgroup_role: the block has {threads} threads, and warpgroups {first} to {first + count - 1} "
                f"end at {(first + count) * 128}" + where(trace)
            )
        warp = warp_id()
        condition = warp < (first + count) * 4 if first == 0 else warp >= first * 4
        if first and threads != (first + count) * 128:
            condition = condition & (warp < (first + count) * 4)
        super().__init__(condition)
        self._registers = ("dec", decrease_to) if decrease_to is not None else ("inc", increase_to)

    def __enter__(self) -> None:
        self.enter(sys._getframe(1))
        action, count = self._registers
        if count is not None:
            self.trace.instruction(f"setmaxnreg.{action}.sync.aligned.u32", Integer(count))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace_back: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace_back)


def directive(name: str, *values: int | str) -> None:
    """A performance directive of this entry (PTX ISA 11.4): `.maxnreg n`, `.minnctapersm n`, `.pragma "…"`."""
    trace = current("pt.directive")
    due = _DIRECTIVES.get(name)
    if due is None:
        raise TraceError(
            f"pt.directive: {name!r} is none of {', '.join(_DIRECTIVES)}; the shape of blocks and clusters is said by "
            "@pt.kernel" + where(trace)
        )
    if len(values) != due:
        raise TraceError(f"pt.directive: .{name} takes {due} values, not {len(values)}" + where(trace))
    for value in values:
        if name == "pragma":
            if not isinstance(value, str) or not value.isascii() or not value.isprintable() or '"' in value:
                raise OperandError(
                    f'pt.directive: .pragma takes printable text without ", not {value!r}' + where(trace)
                )
        elif isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise OperandError(f"pt.directive: .{name} takes integers from 1, not {value!r}" + where(trace))
    trace.directives.append(Directive(name, values))


# --- dependent grids (9.7.13.13) ------------------------------------------------------------------------------------
def wait_on_dependencies() -> None:
    """Wait until the grids before this one are done and their memory is seen: `griddepcontrol.wait`."""
    current("pt.wait_on_dependencies").instruction("griddepcontrol.wait")


def launch_dependents() -> None:
    """Let the next grid start once every CTA has said so or has ended: `griddepcontrol.launch_dependents`."""
    current("pt.launch_dependents").instruction("griddepcontrol.launch_dependents")


# --- fences (9.7.13.4) ----------------------------------------------------------------------------------------------
def fence_mbarrier_init() -> None:
    """Show initialised mbarriers to the cluster and the asynchronous proxy: `fence.mbarrier_init.release.cluster`."""
    current("pt.fence_mbarrier_init").instruction("fence.mbarrier_init.release.cluster")


def fence_async(space: str | None = "shared") -> None:
    """Order this thread's plain accesses before asynchronous ones: `fence.proxy.async.shared::cta`.

    space: "shared" (of this CTA), "cluster", "global", or None for all: `fence.proxy.async`.
    """
    trace = current("pt.fence_async")
    if space not in _FENCED:
        raise OperandError(
            f'pt.fence_async takes "shared", "cluster", "global" or None, not {space!r}' + where(trace)
        )
    trace.instruction(f"fence.proxy.async{_FENCED[space]}")
