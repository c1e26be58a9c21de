"""Barriers in shared memory (mbarrier, PTX ISA 9.7.13.15), rings of stages, and named barriers (9.7.13.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxtile.builder import addresses, convert, ranges, views
from ptxtile.builder.control import branch
from ptxtile.builder.hopper.cluster import remote
from ptxtile.builder.parameters import alloc_shared
from ptxtile.builder.storage import Memory
from ptxtile.builder.tensors import Tensor
from ptxtile.builder.values import current, home, move, scalar, where, word
from ptxtile.dtypes import Scalar, bool_, uint32, uint64
from ptxtile.errors import OperandError, TileError
from ptxtile.ir.operand import Address, Integer, Operand, Sink

if TYPE_CHECKING:
    from ptxtile.builder.trace import Trace

_GREATEST_COUNT = (1 << 20) - 1
_SCOPES = (None, "cta", "cluster")


class mbarrier:
    """`stages` barriers in shared memory, 8 bytes each; a phase of one completes after `count` arrivals and all bytes
    that were expected.

    `bar[i]` is one of them, i an integer or a run-time value. `bar.init()` initialises all, by one thread; then comes
    pt.fence_mbarrier_init() for the cluster and the asynchronous proxy, and a barrier of the CTA or the cluster.
    OperandError for a count that is no integer, TileError for one that is not 1 to 2**20 - 1.
    """

    def __init__(self, count: int, stages: int = 1) -> None:
        trace = current("pt.mbarrier")
        for name, value, most in (("count", count, _GREATEST_COUNT), ("stages", stages, 1 << 16)):
            integer = isinstance(value, int) and not isinstance(value, bool)
            if not integer or not 1 <= value <= most:
                kind = TileError if integer else OperandError
                raise kind(
                    f"pt.mbarrier: {name} is an integer from 1 to {most}, not {value!r}" + where(trace)
                )
        self.count = count
        self.stages = stages
        self.storage: Tensor = alloc_shared((stages,), uint64)

    def init(self) -> None:
        """`mbarrier.init.shared::cta.b64 [bar], count` for each stage, by the executing thread."""
        trace = current("mbarrier.init")
        for stage in range(self.stages):
            address = self[stage].address(trace, ".shared::cta")
            trace.instruction("mbarrier.init.shared::cta.b64", address, Integer(self.count))

    def __getitem__(self, stage: int | Scalar) -> Barrier:
        if isinstance(stage, bool) or not isinstance(stage, (int, Scalar)):
            raise OperandError(f"a stage of a pt.mbarrier is an integer or a run-time integer, not {stage!r}")
        if isinstance(stage, int) and not 0 <= stage < self.stages:
            raise OperandError(f"this pt.mbarrier has {self.stages} stages; there is no {stage}")
        return Barrier(self.storage, stage)

    def __iter__(self) -> None:
        raise TypeError("a pt.mbarrier is indexed, not iterated over")

    def address(self, trace: Trace, space: str) -> Address:
        """Always an OperandError: an operand is one barrier of the array."""
        raise OperandError(
            f"a pt.mbarrier is an array of {self.stages}; the operand is one of them, bar[stage]"
        )


@dataclass(frozen=True, slots=True)
class Barrier:
    """One mbarrier of an array. It stands as the [mbar] operand of copies."""

    storage: Tensor
    stage: int | Scalar

    def address(self, trace: Trace, space: str) -> Address:
        """Its address in shared memory, or as a generic one. OperandError for an instruction of another space."""
        if space:
            self.storage.address(trace, space)
        found = self.storage.address_of(trace, views.coordinate(self.storage, self.stage))
        assert isinstance(self.storage.bound, Memory)
        return found if space else addresses.generic(trace, self.storage.bound, found)

    def arrive(
        self, count: int | None = None, *, cta: object = None, scope: str | None = None, pred: object = None
    ) -> None:
        """One arrival, or `count`: `mbarrier.arrive.shared::cta.b64 _, [bar]`.

        With `cta`, the same barrier of that CTA of the cluster: `mapa.shared::cluster.u32` and
        `mbarrier.arrive.shared::cluster.b64 _, [mapped]`. `scope="cluster"` writes .release.cluster: the thread's
        plain stores before are then seen by who waits in another CTA. It costs a fence of the whole GPU, which a ring
        that only hands free stages back, read by wgmma or copies, does not need.
        """
        trace = current("mbarrier.arrive")
        order = _order(trace, "arrive", "release", scope)
        guard = convert.guard(trace, "mbarrier.arrive", pred)
        tail = () if count is None else (Integer(_positive(trace, "arrive", count)),)
        address = self.address(trace, ".shared::cta")
        spelling = f"mbarrier.arrive{order}.shared::cta.b64"
        if cta is not None:
            spelling = f"mbarrier.arrive{order}.shared::cluster.b64"
            address = remote(trace, address, cta)
        trace.instruction(spelling, Sink(), address, *tail, guard=guard)

    def expect_tx(self, nbytes: int | Scalar) -> None:
        """Expect so many more bytes in this phase: `mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], nbytes`."""
        trace = current("mbarrier.expect_tx")
        words = self.address(trace, ".shared::cta"), _bytes(trace, "expect_tx", nbytes)
        trace.instruction("mbarrier.expect_tx.relaxed.cta.shared::cta.b64", *words)

    def arrive_expect_tx(self, nbytes: int | Scalar) -> None:
        """Expect bytes and arrive: `mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], nbytes`."""
        trace = current("mbarrier.arrive_expect_tx")
        words = self.address(trace, ".shared::cta"), _bytes(trace, "arrive_expect_tx", nbytes)
        trace.instruction("mbarrier.arrive.expect_tx.shared::cta.b64", Sink(), *words)

    def wait(self, phase: int | Scalar, *, scope: str | None = None) -> None:
        """Wait until the phase of this parity (0, 1, 0, …) is complete.

            $wait:
            mbarrier.try_wait.parity.shared::cta.b64 p, [bar], phase;
            @!p bra $wait;

        `scope="cluster"` writes .acquire.cluster: arrivals of other CTAs are then acquired.
        """
        trace = current("mbarrier.wait")
        order = _order(trace, "wait", "acquire", scope)
        parity = _parity(trace, "wait", phase)
        address = self.address(trace, ".shared::cta")
        done = trace.value(bool_)
        again = trace.label("wait")
        trace.place(again)
        trace.instruction(f"mbarrier.try_wait.parity{order}.shared::cta.b64", home(done), address, parity)
        branch(trace, again, unless=done)

    def test(self, phase: int | Scalar) -> Scalar:
        """Whether the phase of this parity is complete, a bool_: `mbarrier.test_wait.parity.shared::cta.b64`."""
        trace = current("mbarrier.test")
        parity = _parity(trace, "test", phase)
        done = trace.value(bool_)
        address = self.address(trace, ".shared::cta")
        trace.instruction("mbarrier.test_wait.parity.shared::cta.b64", home(done), address, parity)
        return done


def _order(trace: Trace, use: str, word_: str, scope: str | None) -> str:
    if scope not in _SCOPES:
        raise OperandError(f'mbarrier.{use}: scope= is "cta" or "cluster", not {scope!r}' + where(trace))
    return f".{word_}.{scope}" if scope else ""


def _word(trace: Trace, use: str, value: int | Scalar) -> Operand:
    return word(trace, scalar(trace, uint32, value, f"mbarrier.{use}"))


def _parity(trace: Trace, use: str, phase: int | Scalar) -> Operand:
    known = phase.value if isinstance(phase, Scalar) else phase
    if known is not None and (isinstance(known, bool) or known not in (0, 1)):
        raise OperandError(f"mbarrier.{use}: phase is a parity, 0 or 1, not {known!r}" + where(trace))
    return _word(trace, use, phase)


def _bytes(trace: Trace, use: str, nbytes: int | Scalar) -> Operand:
    if isinstance(nbytes, int) and not 0 <= nbytes <= _GREATEST_COUNT:
        raise OperandError(
            f"mbarrier.{use}: a phase counts up to {_GREATEST_COUNT} bytes, not {nbytes}" + where(trace)
        )
    return _word(trace, use, nbytes)


def _positive(trace: Trace, use: str, count: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= _GREATEST_COUNT:
        raise OperandError(
            f"mbarrier.{use}: count is an integer from 1 to {_GREATEST_COUNT}, not {count!r}" + where(trace)
        )
    return count


class ring:
    """Where one role is in a ring of stages: `stage`, from 0 to stages - 1, and `phase`, the parity that flips each
    time the stage returns to 0. Two variables; `phase` is where it starts (1: the first round of waits is over at once,
    as a producer wants it)."""

    def __init__(self, stages: int, phase: int = 0) -> None:
        trace = current("pt.ring")
        if isinstance(stages, bool) or not isinstance(stages, int) or stages < 1:
            raise OperandError(f"pt.ring: stages is a positive integer, not {stages!r}" + where(trace))
        if phase not in (0, 1):
            raise OperandError(f"pt.ring: phase is 0 or 1, not {phase!r}" + where(trace))
        self.stages = stages
        self._stage = trace.value(uint32, mutable=True)
        self._phase = trace.value(uint32, mutable=True)
        move(trace, uint32, home(self._stage), uint32(0))
        move(trace, uint32, home(self._phase), uint32(phase))

    @property
    def stage(self) -> Scalar:
        """The stage now, uint32: one mov, known to be below `stages`."""
        trace = current("ring.stage")
        made = trace.value(uint32)
        move(trace, uint32, home(made), self._stage)
        made.extent = ranges.atom("stage", 0, self.stages - 1, scalar=made)
        return made

    @property
    def phase(self) -> Scalar:
        """The parity now, uint32: one mov."""
        trace = current("ring.phase")
        made = trace.value(uint32)
        move(trace, uint32, home(made), self._phase)
        return made

    def advance(self) -> None:
        """To the next stage.

        add.u32 stage, stage, 1;  setp.eq.u32 p, stage, stages;  @p xor.b32 phase, phase, 1;  @p mov.u32 stage, 0;
        """
        trace = current("ring.advance")
        stage, phase = home(self._stage), home(self._phase)
        trace.live(self._stage, "ring.advance")
        trace.instruction("add.u32", stage, stage, Integer(1))
        wrapped = home(trace.value(bool_))
        trace.instruction("setp.eq.u32", wrapped, stage, Integer(self.stages))
        guard = convert.guard(trace, "ring.advance", wrapped)
        trace.instruction("xor.b32", phase, phase, Integer(1), guard=guard)
        trace.instruction("mov.u32", stage, Integer(0), guard=guard)


class named_barrier:
    """Barrier `number` of the CTA, 0 to 15 (pt.cta_sync is 0), for `threads` threads: whole warps.

    `number` may be a run-time uint32. OperandError for a number or a count that there is not.
    """

    def __init__(self, number: int | Scalar, threads: int) -> None:
        trace = current("pt.named_barrier")
        if isinstance(number, bool) or (isinstance(number, int) and not 0 <= number <= 15):
            raise OperandError(f"pt.named_barrier: number is 0 to 15, not {number!r}" + where(trace))
        if (
            isinstance(threads, bool)
            or not isinstance(threads, int)
            or threads % 32
            or not 32 <= threads <= 1024
        ):
            raise OperandError(
                f"pt.named_barrier: threads is a multiple of 32 up to 1024, not {threads!r}" + where(trace)
            )
        self.number = scalar(trace, uint32, number, "pt.named_barrier")
        self.threads = threads

    def _issue(self, opcode: str) -> None:
        trace = current(f"named_barrier.{opcode}")
        if self.number.value is None:
            trace.live(self.number, f"named_barrier.{opcode}")
        trace.instruction(f"bar.{opcode}", word(trace, self.number), Integer(self.threads))

    def sync(self) -> None:
        """Wait for all: `bar.sync number, threads`."""
        self._issue("sync")

    def arrive(self) -> None:
        """Arrive without waiting: `bar.arrive number, threads`."""
        self._issue("arrive")
