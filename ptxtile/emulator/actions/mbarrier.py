"""mbarrier (PTX ISA 9.7.13.15). try_wait never blocks here: a loop around it polls, and polling loops are fair."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.actions.access import space_of
from ptxtile.emulator.lanes import Lanes, Threads
from ptxtile.emulator.mbarrier import MOST, MBarrier, Misuse
from ptxtile.emulator.operands import Read, address_reader, reader, refuse_undefined, writer
from ptxtile.emulator.ordering import SCOPES, Claims, Strength
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.report import fault
from ptxtile.emulator.spaces import Part
from ptxtile.emulator.step import Run, action
from ptxtile.emulator.widths import Bits
from ptxtile.ir.operand import Address, Operand

TOUCH = Strength(SCOPES[".sys"])

Users = Iterator[tuple[int, NDArray[np.intp]]]
"""For each object that an instruction uses: its offset, and the positions of the threads that use it."""


@action("mbarrier")
def mbarrier(program: Program, site: Site) -> Run:
    """Every operation but those on behalf of other instructions."""
    verb = site.instruction.form.modifiers[0]
    if verb == ".pending_count":
        return _pending_count(program, site)
    if verb == ".init":
        return _init(program, site)
    if verb == ".inval":
        return _inval(program, site)
    if verb in (".arrive", ".arrive_drop"):
        return _arrive(program, site)
    if verb in (".expect_tx", ".complete_tx"):
        return _transactions(program, site, 1 if verb == ".expect_tx" else -1)
    return _wait(program, site)


def locator(
    program: Program, site: Site, operand: Operand
) -> Callable[[Lanes, str], Iterator[tuple[Part, Users]]]:
    """How the objects that an address operand names are found."""
    locate = address_reader(program, site, operand)
    space = space_of(program, site, operand)

    def find(lanes: Lanes, verb: str) -> Iterator[tuple[Part, Users]]:
        for part in lanes.wave.spaces.parts(lanes, space, locate(lanes), 8, verb):
            if part.store is not lanes.wave.spaces.shared:
                raise fault("out-of-bounds", "an mbarrier must lie in shared memory", part.lanes, 0)
            yield part, _users(part)

    return find


def _users(part: Part) -> Users:
    for offset in np.unique(part.offsets).tolist():
        yield offset, np.flatnonzero(part.offsets == offset)


def object_of(part: Part, offset: int, positions: NDArray[np.intp]) -> MBarrier:
    """The object at an offset, or the error that there is none."""
    found = part.lanes.wave.mbarriers.objects.get(offset)
    if found is None:
        text = "the mbarrier was not initialised, or its memory was used for something else"
        raise fault("mbarrier", text, part.lanes, int(positions[0]))
    return found


def _number(lanes: Lanes, read: Read | None, default: int) -> NDArray[np.int64]:
    if read is None:
        return np.full(lanes.count, default, np.int64)
    value, shadow = read(lanes)
    if shadow is not None:
        refuse_undefined(lanes, shadow, "the operand", "a register")
    return value.astype(np.int64)


def _touch(part: Part, strength: Strength, writes: bool) -> None:
    sanitizer = part.lanes.wave.machine.sanitizer
    if sanitizer is not None and writes:
        sanitizer.write(part, 8, strength, ())
    elif sanitizer is not None:
        sanitizer.read(part, 8, strength)


def _init(program: Program, site: Site) -> Run:
    find = locator(program, site, site.instruction.operands[0])
    read = reader(program, site, site.instruction.operands[1], ".u32")

    def run(lanes: Lanes) -> None:
        count = _number(lanes, read, 0)
        bad = (count < 1) | (count > MOST)
        if bad.any():
            position = int(np.flatnonzero(bad)[0])
            text = f"an mbarrier takes 1 to {MOST} arrivals, not {int(count[position])}"
            raise fault("mbarrier", text, lanes, position)
        for part, users in find(lanes, "initialises an mbarrier of"):
            _touch(part, Strength(), writes=True)
            part.store.scatter(part.index(8), 8, np.zeros(part.lanes.count, np.uint64))
            chosen = count if part.positions is None else count[part.positions]
            for offset, positions in users:
                number = int(chosen[positions[-1]])
                made = lanes.wave.mbarriers.objects[offset] = MBarrier(site, number, number)
                ordering = lanes.wave.machine.ordering
                if ordering is not None:
                    creator = int(ordering.id[part.lanes.threads[positions[-1]]])
                    made.creator = (creator, ordering.now)
        lanes.wave.happened()

    return run


def _inval(program: Program, site: Site) -> Run:
    find = locator(program, site, site.instruction.operands[0])

    def run(lanes: Lanes) -> None:
        for part, users in find(lanes, "invalidates an mbarrier of"):
            _touch(part, TOUCH, writes=True)
            for offset, positions in users:
                object_of(part, offset, positions)
                del lanes.wave.mbarriers.objects[offset]

    return run


def _arrive(program: Program, site: Site) -> Run:
    modifiers = site.instruction.form.modifiers
    operands = list(site.instruction.operands)
    write = writer(site, operands.pop(0), ".b64") if not isinstance(operands[0], Address) else None
    find = locator(program, site, operands[0])
    read = reader(program, site, operands[1], ".u32") if len(operands) > 1 else None
    expects = ".expect_tx" in modifiers
    drop, releases, no_complete = (
        modifiers[0] == ".arrive_drop",
        ".relaxed" not in modifiers,
        ".noComplete" in modifiers,
    )

    def run(lanes: Lanes) -> None:
        number = _number(lanes, read, 1)
        for part, users in find(lanes, "arrives on an mbarrier of"):
            _touch(part, TOUCH, writes=False)
            given = number if part.positions is None else number[part.positions]
            states = np.zeros(part.lanes.count, np.uint64)
            for offset, positions in users:
                barrier = object_of(part, offset, positions)
                states[positions] = barrier.state
                count = len(positions) if expects else int(given[positions].sum())
                try:
                    if no_complete and count >= barrier.pending:
                        raise Misuse("an arrival with .noComplete would complete the phase")
                    if expects:
                        barrier.bytes += int(given[positions].sum())
                    barrier.arrive(count, _claims(part.lanes, positions) if releases else {}, drop)
                except Misuse as misuse:
                    raise fault("mbarrier", f"mbarrier: {misuse}", part.lanes, int(positions[0])) from None
            if write is not None:
                write(part.lanes, states, None)
        lanes.wave.happened()

    return run


def _claims(lanes: Lanes, positions: NDArray[np.intp]) -> Claims:
    ordering = lanes.wave.machine.ordering
    if ordering is None:
        return {}
    threads: Threads = lanes.threads[positions]
    ordering.now += 1
    return ordering.arrived([(threads, ordering.now)])


def _transactions(program: Program, site: Site, sign: int) -> Run:
    find = locator(program, site, site.instruction.operands[0])
    read = reader(program, site, site.instruction.operands[1], ".u32")

    def run(lanes: Lanes) -> None:
        number = _number(lanes, read, 0)
        for part, users in find(lanes, "counts on an mbarrier of"):
            _touch(part, TOUCH, writes=False)
            given = number if part.positions is None else number[part.positions]
            for offset, positions in users:
                try:
                    object_of(part, offset, positions).expect(sign * int(given[positions].sum()))
                except Misuse as misuse:
                    raise fault("mbarrier", f"mbarrier: {misuse}", part.lanes, int(positions[0])) from None
        lanes.wave.happened()

    return run


def _wait(program: Program, site: Site) -> Run:
    modifiers = site.instruction.form.modifiers
    destination, address, which = site.instruction.operands[:3]
    parity, acquires = ".parity" in modifiers, ".relaxed" not in modifiers
    find = locator(program, site, address)
    read = reader(program, site, which, ".u32" if parity else ".b64")
    write = writer(site, destination, ".pred")

    def run(lanes: Lanes) -> None:
        value = _number(lanes, read, 0)
        for part, users in find(lanes, "waits on an mbarrier of"):
            if part.lanes.wave.machine.sanitizer is not None:
                part.lanes.wave.machine.sanitizer.look(part, 8, TOUCH)
            given = value if part.positions is None else value[part.positions]
            result: Bits = np.zeros(part.lanes.count, np.bool_)
            for offset, positions in users:
                barrier = object_of(part, offset, positions)
                asked = given[positions]
                done = (asked & 1) != barrier.phase & 1 if parity else (asked >> 32) < barrier.phase
                result[positions] = done
                if not done.all():
                    late = positions[~done]
                    value_asked = int(given[late[0]])
                    lanes.wave.mbarriers.ask(offset, site, part.lanes.threads[late], value_asked, parity)
                ordering = lanes.wave.machine.ordering
                if acquires and ordering is not None and done.any():
                    ordering.learn(part.lanes.threads[positions[done]], barrier.known)
            write(part.lanes, result, None)

    return run


def _pending_count(program: Program, site: Site) -> Run:
    destination, state = site.instruction.operands
    read, write = reader(program, site, state, ".b64"), writer(site, destination, ".b32")

    def run(lanes: Lanes) -> None:
        value, shadow = read(lanes)
        write(lanes, value.astype(np.uint32), None if shadow is None else shadow.astype(np.uint32))

    return run


def arrive_after_copies(program: Program, site: Site) -> Run:
    """cp.async.mbarrier.arrive (9.7.13.15.15): an arrival of each thread when its cp.async so far are done."""
    find = locator(program, site, site.instruction.operands[0])
    counted = ".noinc" in site.instruction.form.modifiers

    def run(lanes: Lanes) -> None:
        wave = lanes.wave
        for part, users in find(lanes, "arrives on an mbarrier of"):
            _touch(part, TOUCH, writes=False)
            for offset, positions in users:
                barrier = object_of(part, offset, positions)
                if not counted:
                    barrier.pending += len(positions)
                chosen = part.lanes.at(positions)
                effect = _arrival(chosen, barrier, wave.pending.started)
                wave.pending.start(site, chosen.threads, effect, "generic", "mbarrier")

    return run


def _arrival(lanes: Lanes, barrier: MBarrier, until: int) -> Callable[[NDArray[np.intp]], None]:
    """The arrivals, once the first `until` operations of the wave are done as far as they are these threads'."""

    def effect(positions: NDArray[np.intp]) -> None:
        lanes.wave.pending.wait_all(lanes.threads[positions], "group", until)
        try:
            barrier.arrive(len(positions), _claims(lanes, positions))
        except Misuse as misuse:
            raise fault("mbarrier", f"mbarrier: {misuse}", lanes, int(positions[0])) from None

    return effect
