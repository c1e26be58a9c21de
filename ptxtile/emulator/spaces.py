"""From an address in a state space to bytes in a store, checked: bounds, alignment, whose memory it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator import windows
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.memory import GRAIN, Addresses, Index, Memory, Offsets, Store
from ptxtile.emulator.placement import RED_ZONE
from ptxtile.emulator.program import Program
from ptxtile.emulator.report import count_of, fault
from ptxtile.emulator.tensor_memory import TensorMemory

if TYPE_CHECKING:
    from ptxtile.emulator.machine import Wave


@dataclass(frozen=True, slots=True)
class Part:
    """The accesses of one instruction that fall into one store.

    lanes      the threads that make them
    positions  where these stand among the instruction's threads; None: they are all of them
    offsets    bytes from the start of the store
    stride     bytes from each thread's offset to the next one's where that is constant and not negative, else None
    """

    store: Store
    lanes: Lanes
    positions: NDArray[np.intp] | None
    offsets: Offsets
    stride: int | None

    def index(self, unit: int, shift: int = 0) -> Index:
        """Each access's place, `shift` bytes on, in an array of elements of `unit` bytes.

        A slice where the places are regular, since NumPy reads and writes those several times faster.
        """
        if self.stride and self.stride % unit == 0:
            start, step = (int(self.offsets[0]) + shift) // unit, self.stride // unit
            return slice(start, start + step * (len(self.offsets) - 1) + 1, step)
        places = self.offsets + shift if shift else self.offsets
        return places if unit == 1 else places >> (unit.bit_length() - 1)


def stride_of(offsets: Offsets) -> int | None:
    """The constant, not negative difference of neighbouring offsets, or None."""
    if len(offsets) == 1:
        return 1 << 20
    step = int(offsets[1]) - int(offsets[0])
    if step < 0 or int(offsets[-1]) - int(offsets[0]) != step * (len(offsets) - 1):
        return None
    return step if (np.diff(offsets) == step).all() else None


class Spaces:
    """The memory that the threads of a wave can reach."""

    def __init__(self, wave: Wave, memory: Memory, sanitize: bool) -> None:
        self.wave = wave
        self.memory = memory
        self.sanitize = sanitize
        self.shared_size = wave.shared_size
        self.shared_stride = -(-max(self.shared_size, 1) // GRAIN) * GRAIN
        self.shared = Store("shared memory", 0, self.shared_stride * wave.ctas, written=not sanitize)
        self.gaps = gaps_of(wave.launch.program, self.shared_size)
        self.local_size = wave.local_size
        self.local_stride = -(-max(self.local_size, 1) // GRAIN) * GRAIN
        self.local = Store("local memory", 0, self.local_stride * wave.count, written=not sanitize)
        self.tensor = TensorMemory(wave, sanitize)
        self._last: Store | None = None

    def parts(self, lanes: Lanes, space: str, addresses: Addresses, width: int, verb: str) -> Iterator[Part]:
        """Where each access of `width` bytes goes. `space` has no dot, "" is generic; `verb` is for messages."""
        self._aligned(lanes, space, addresses, width, verb)
        if space:
            yield from self._in_space(lanes, space, addresses, None, width, verb)
            return
        lowest, highest = windows.space_of(int(addresses.min())), windows.space_of(int(addresses.max()))
        if lowest == highest:
            yield from self._generic(lanes, lowest, addresses, None, width, verb)
            return
        names = np.array([windows.space_of(int(address)) for address in addresses])
        for name in np.unique(names):
            positions = np.flatnonzero(names == name)
            part = addresses[positions]
            yield from self._generic(lanes.at(positions), str(name), part, positions, width, verb)

    def parts_of(
        self, lanes: Lanes, addresses: Addresses, width: int, size: int, verb: str
    ) -> Iterator[Part]:
        """Where accesses of global memory go that are aligned to `width` bytes and touch the first `size` of them."""
        self._aligned(lanes, "global", addresses, width, verb)
        yield from self._global(lanes, addresses, None, size, verb)

    def _generic(
        self,
        lanes: Lanes,
        space: str,
        addresses: Addresses,
        positions: NDArray[np.intp] | None,
        width: int,
        verb: str,
    ) -> Iterator[Part]:
        if space == "global":
            yield from self._global(lanes, addresses, positions, width, verb)
            return
        inside = addresses - np.uint64(windows.WINDOWS[space])
        within = "shared::cluster" if space == "shared" else space
        yield from self._in_space(lanes, within, inside, positions, width, verb)

    def _in_space(
        self,
        lanes: Lanes,
        space: str,
        addresses: Addresses,
        positions: NDArray[np.intp] | None,
        width: int,
        verb: str,
    ) -> Iterator[Part]:
        if space == "global":
            yield from self._global(lanes, addresses, positions, width, verb)
        elif space.startswith("shared"):
            yield _part(self.shared, lanes, positions, self._shared(lanes, space, addresses, width, verb))
        elif space == "local":
            yield _part(self.local, lanes, positions, self._local(lanes, addresses, width, verb))
        else:
            store = self.wave.constants if space == "const" else self.wave.parameters
            yield _part(store, lanes, positions, self._flat(lanes, space, store, addresses, width, verb))

    def _aligned(self, lanes: Lanes, space: str, addresses: Addresses, width: int, verb: str) -> None:
        if width == 1:
            return
        low = addresses & np.uint64(width - 1)
        if low.any():
            position = int(np.flatnonzero(low)[0])
            text = (
                f"misaligned: {verb} {count_of(width, 'byte')} at {_spell(space, int(addresses[position]))}, which is "
                f"not a multiple of {width}"
            )
            raise fault("misaligned", text, lanes, position)

    def _global(
        self,
        lanes: Lanes,
        addresses: Addresses,
        positions: NDArray[np.intp] | None,
        width: int,
        verb: str,
    ) -> Iterator[Part]:
        lowest, highest = int(addresses.min()), int(addresses.max())
        store = self._last
        if store is None or not (store.base <= lowest and highest + width <= store.base + store.size):
            store = self.memory.find(lowest)
        if store is not None and highest + width <= store.base + store.size:
            self._last = store
            yield _part(store, lanes, positions, (addresses - np.uint64(store.base)).view(np.int64))
            return
        owners = self._owners(lanes, addresses, width, verb)
        for store in dict.fromkeys(owners):
            chosen = np.flatnonzero(np.array([owner is store for owner in owners]))
            offsets = (addresses[chosen] - np.uint64(store.base)).view(np.int64)
            yield _part(store, lanes.at(chosen), chosen if positions is None else positions[chosen], offsets)

    def _owners(self, lanes: Lanes, addresses: Addresses, width: int, verb: str) -> list[Store]:
        owners = []
        for position, value in enumerate(addresses):
            address = int(value)
            store = self.memory.find(address)
            if store is None or address + width > store.base + store.size:
                text = f"out of bounds: {verb} {count_of(width, 'byte')} at {address:#x}{self._neighbour(address)}"
                raise fault("out-of-bounds", text, lanes, position)
            owners.append(store)
        return owners

    def _neighbour(self, address: int) -> str:
        store = self.memory.nearest(address)
        if address < 1 << 16:
            return ", which is near null"
        if store is None:
            return ", and nothing is allocated"
        extent = f"{store.name} ({count_of(store.size, 'byte')} at {store.base:#x})"
        if address >= store.base + store.size:
            past = address - store.base - store.size
            return f", {count_of(past, 'byte') if past else 'just'} past the end of {extent}"
        if address < store.base:
            return f", {count_of(store.base - address, 'byte')} before the start of {extent}"
        return f", across the end of {extent}"

    def _shared(self, lanes: Lanes, space: str, addresses: Addresses, width: int, verb: str) -> Offsets:
        own = self.wave.rank_of(lanes)
        rank = addresses.view(np.int64) >> windows.RANK_SHIFT
        inside = (addresses.view(np.int64) & ((1 << windows.RANK_SHIFT) - 1)) - windows.SHARED_START
        bad = (inside < 0) | (inside + width > self.shared_size)
        if space == "shared::cluster":
            bad |= (rank < 0) | (rank >= self.wave.cluster_size)
        else:
            bad |= rank != own
        if bad.any():
            position = int(np.flatnonzero(bad)[0])
            raise fault("out-of-bounds", self._shared_text(addresses, position, width, verb), lanes, position)
        if self.gaps is not None:
            self._between(lanes, inside, width, verb)
        cta: NDArray[np.int64] = self.wave.cta[lanes.where]
        if space == "shared::cluster":
            cta = cta - own + rank
            if self.sanitize and self.wave.cluster_size > 1:
                self.wave.clusters.visit(lanes, cta)
        offsets: Offsets = cta * self.shared_stride + inside
        return offsets

    def _between(self, lanes: Lanes, inside: Offsets, width: int, verb: str) -> None:
        """Stop on an access to bytes between two variables."""
        gaps = self.gaps
        assert gaps is not None
        if gaps[int(inside.max()) + width] == gaps[int(inside.min())]:
            return
        hit = gaps[inside + width] != gaps[inside]
        if hit.any():
            position = int(np.flatnonzero(hit)[0])
            address = int(inside[position]) + windows.SHARED_START
            places = self.wave.launch.program.shared_places
            before = [place for place in places if place.address <= address]
            after = [place for place in places if place.address > address]
            text = f"out of bounds: {verb} {count_of(width, 'byte')} at shared address {address:#x}, "
            if before and address < before[-1].address + before[-1].size + RED_ZONE:
                past = address - before[-1].address - before[-1].size
                how = "across" if past < 0 else "just past" if not past else f"{count_of(past, 'byte')} past"
                text += f"{how} the end of {before[-1].name} ({count_of(before[-1].size, 'byte')})"
            else:
                text += f"before the start of {after[0].name if after else 'dynamic shared memory'}"
            raise fault("out-of-bounds", text, lanes, position)

    def _shared_text(self, addresses: Addresses, position: int, width: int, verb: str) -> str:
        address = int(addresses[position])
        start = windows.SHARED_START
        if not self.shared_size:
            extent = "this launch has no shared memory"
        else:
            end = start + self.shared_size
            extent = f"the CTA has {count_of(self.shared_size, 'byte')} of it, {start:#x} to {end:#x}"
        return f"out of bounds: {verb} {count_of(width, 'byte')} at shared address {address:#x}; {extent}"

    def _local(self, lanes: Lanes, addresses: Addresses, width: int, verb: str) -> Offsets:
        inside = addresses.view(np.int64) - windows.LOCAL_START
        bad = (inside < 0) | (inside + width > self.local_size)
        if bad.any():
            position = int(np.flatnonzero(bad)[0])
            text = (
                f"out of bounds: {verb} {count_of(width, 'byte')} at local address {int(addresses[position]):#x}; the "
                f"thread has {count_of(self.local_size, 'byte')} of it from {windows.LOCAL_START:#x}"
            )
            raise fault("out-of-bounds", text, lanes, position)
        offsets: Offsets = lanes.threads * self.local_stride + inside
        return offsets

    def _flat(
        self, lanes: Lanes, space: str, store: Store, addresses: Addresses, width: int, verb: str
    ) -> Offsets:
        inside = addresses.view(np.int64) - store.base
        bad = (inside < 0) | (inside + width > store.size)
        if bad.any():
            position = int(np.flatnonzero(bad)[0])
            text = (
                f"out of bounds: {verb} {count_of(width, 'byte')} at {space} address {int(addresses[position]):#x}; "
                f"the {store.name} has {count_of(store.size, 'byte')} from {store.base:#x}"
            )
            raise fault("out-of-bounds", text, lanes, position)
        return inside


def gaps_of(program: Program, size: int) -> NDArray[np.int64] | None:
    """How many bytes that belong to no variable lie before each byte of a CTA's shared memory; None: there are none."""
    if len(program.shared_places) < 2 and program.static_shared == program.static_bytes:
        return None
    free: NDArray[np.bool_] = np.zeros(size + 1, np.bool_)
    free[: program.static_shared] = True
    for place in program.shared_places:
        start = place.address - windows.SHARED_START
        free[start : start + place.size] = False
    found: NDArray[np.int64] = np.concatenate([[0], np.cumsum(free)])
    return found


def _part(store: Store, lanes: Lanes, positions: NDArray[np.intp] | None, offsets: Offsets) -> Part:
    return Part(store, lanes, positions, offsets, stride_of(offsets))


def _spell(space: str, address: int) -> str:
    named = {"": "", "global": ""}.get(space, f"{space.partition('::')[0]} address ")
    return f"{named}{address:#x}"
