"""The timed part: loads prepared cubins on the GPU and launches their kernels. Runs in a process of its own.

One line of JSON a case goes to standard output, "begin" before it and "end" after it, so that whoever started the
process knows which case hung it or ended it.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ptxtile import driver
from ptxtile.measure.memory import CELLS, cells
from ptxtile.measure.plan import Batch, Case, Launch, Rate, batches, image_of
from ptxtile.measure.values import image

__all__ = ["REPEATS", "WARPS", "main"]

WARPS = (1, 2, 4, 8, 16, 32)
"""Warps of the one block that throughput is measured with."""

REPEATS = 7
_PASSES = 2
_SLOTS = [*(driver.Slot("Q", 8 * i, 8) for i in range(3)), driver.Slot("I", 24, 4), driver.Slot("I", 28, 4)]
_BOUNDARY = 1 << 16
_AT_ONCE = 4 << 30
_UINT32 = 2  # the driver's number of the type

CLOCK = """.version 6.4
.target sm_75
.address_size 64
.visible .entry clock(.param .u64 out) {
.reg .u64 %out, %t0, %t1, %n0, %n1, %d;
.reg .pred %more;
ld.param.u64 %out, [out];
mov.u64 %n0, %globaltimer;
mov.u64 %t0, %clock64;
LOOP:
mov.u64 %t1, %clock64;
sub.u64 %d, %t1, %t0;
setp.lt.u64 %more, %d, 4000000;
@%more bra LOOP;
mov.u64 %n1, %globaltimer;
st.global.u64 [%out], %t0;
st.global.u64 [%out+8], %t1;
st.global.u64 [%out+16], %n0;
st.global.u64 [%out+24], %n1;
ret;
}
"""


@dataclass(slots=True)
class _Spare:
    """Memory that scenarios walk, as much as the largest so far wanted."""

    ordinal: int
    buffer: driver.DeviceBuffer | None = None

    def take(self, size: int) -> int:
        """The address of at least `size` bytes, on a boundary of 64 KiB; what is in them is zeros at first."""
        whole = size + 2 * _BOUNDARY
        if self.buffer is None or self.buffer.nbytes < whole:
            if self.buffer is not None:
                self.buffer.free()
            self.buffer = driver.DeviceBuffer(whole, self.ordinal)
            driver.fill(self.buffer.address, 0, whole, ordinal=self.ordinal)
        return -(-self.buffer.address // _BOUNDARY) * _BOUNDARY


@dataclass(frozen=True, slots=True)
class _Ground:
    """Buffers on the device: operands, cells, fields of scenarios, times."""

    operands: driver.DeviceBuffer
    room: driver.DeviceBuffer
    ordinal: int
    field: _Spare
    stamps: _Spare

    @property
    def cells(self) -> int:
        """Where the cells of pointer chases begin, on a boundary of their size."""
        return -(-self.room.address // CELLS) * CELLS


def _ground(ordinal: int) -> _Ground:
    data = image()
    operands = driver.DeviceBuffer(len(data), ordinal)
    held = ctypes.create_string_buffer(data, len(data))
    driver.copy_to_device(operands.address, ctypes.addressof(held), len(data), ordinal=ordinal)
    room = driver.DeviceBuffer(2 * CELLS, ordinal)
    made = _Ground(operands, room, ordinal, _Spare(ordinal), _Spare(ordinal))
    driver.fill(made.cells, 0, CELLS, ordinal=ordinal)
    chased = cells(made.cells)
    ring = ctypes.create_string_buffer(chased, len(chased))
    driver.copy_to_device(made.cells, ctypes.addressof(ring), len(chased), ordinal=ordinal)
    driver.synchronize(ordinal)
    return made


def _read(address: int, launches: int, warps: int, ordinal: int) -> list[list[int]]:
    """For each launch, the times of all its warps: t0, t1, t0, t1, …"""
    width = 2 * warps
    held = (ctypes.c_uint64 * (width * launches))()
    driver.copy_from_device(ctypes.addressof(held), address, ctypes.sizeof(held), ordinal=ordinal)
    driver.synchronize(ordinal)
    return [list(held[width * number : width * (number + 1)]) for number in range(launches)]


def _cycles(times: Sequence[int], blocks: int, *, slowest: bool) -> float:
    """The mean time of the blocks of a launch, or that of the slowest one.

    A block's is from its first warp's start to its last one's end: clocks of different SMs do not compare.
    """
    width = len(times) // blocks
    if width == 2 and not slowest:  # one warp a block
        return (sum(times[1::2]) - sum(times[0::2])) / blocks
    each = [times[place : place + width] for place in range(0, len(times), width)]
    spans = [max(used[1::2]) - min(used[0::2]) for used in each]
    return max(spans) if slowest else sum(spans) / blocks


def _time(
    module: driver.LoadedModule, rate: Rate, warps: int, repeats: int, ground: _Ground
) -> list[list[float]]:
    """Cycles of the shorter and of the longer kernel, repeated."""
    blocks = rate.grid or driver.device(ground.ordinal).multiprocessors
    geometry = driver.Geometry((blocks, 1, 1), (32 * warps, 1, 1))
    values = [ground.operands.address, ground.cells, rate.trips, _PASSES]
    return _launched(module, rate, geometry, _SLOTS, values, repeats, ground)


def _launched(
    module: driver.LoadedModule,
    rate: Rate,
    geometry: driver.Geometry,
    slots: Sequence[driver.Slot],
    values: Sequence[driver.Value],
    repeats: int,
    ground: _Ground,
    *,
    slowest: bool = False,
) -> list[list[float]]:
    """Both kernels in turn, `repeats` times; the first parameter is where times go."""
    launchers = [driver.Launcher(module.function(name), geometry, slots) for name in (rate.short, rate.long)]
    blocks = geometry.grid[0]
    warps = blocks * -(-geometry.block[0] // 32)
    stamps = ground.stamps.take(16 * warps * 2 * repeats)
    for number in range(2 * repeats):
        launchers[number % 2]([stamps + 16 * warps * number, *values])
    found: list[list[float]] = [[], []]
    for number, times in enumerate(_read(stamps, 2 * repeats, warps, ground.ordinal)):
        found[number % 2].append(_cycles(times, blocks, slowest=slowest))
    return found


def _map(tensor: Sequence[int], blocks: int, address: int, ordinal: int) -> bytes:
    """The tensor map of a scenario: the fields of all blocks one below the other."""
    rows, columns, high, wide = tensor
    fields = driver.TiledFields(
        _UINT32, (columns, rows * blocks), (columns * 4,), (wide, high), (1, 1), 0, 0, 0, nan=False
    )
    return driver.encode_tiled(fields, address, ordinal)


def _needed(launch: Launch, blocks: int) -> int:
    """Bytes of global memory that a launch walks."""
    return launch.field * blocks + launch.common


def _time_point(
    module: driver.LoadedModule, rate: Rate, launch: Launch, ground: _Ground, whole: str
) -> tuple[list[list[float]], int]:
    """Cycles of the shorter and of the longer kernel, repeated, and the blocks that ran."""
    blocks = launch.grid or driver.device(ground.ordinal).multiprocessors
    cluster = (launch.cluster, 1, 1) if launch.cluster > 1 else None
    geometry = driver.Geometry((blocks, 1, 1), (launch.block, 1, 1), cluster, dynamic_shared=launch.shared)
    field = ground.field.take(_needed(launch, blocks))
    # What is timed whole has one pass, at whose start the blocks are together.
    values: list[driver.Value] = [ground.operands.address, field, rate.trips, 1 if whole else _PASSES]
    slots = _SLOTS
    if launch.tensor:
        slots = [*_SLOTS, driver.Slot("128s", 64, 128)]
        values.append(_map(launch.tensor, blocks, field, ground.ordinal))
    slowest = whole == "slowest"
    return _launched(module, rate, geometry, slots, values, REPEATS, ground, slowest=slowest), blocks


def _measure(module: driver.LoadedModule, case: Case, ground: _Ground) -> dict[str, object]:
    found: dict[str, object] = {}
    if case.launch is not None and case.point is not None:
        rate = case.dependent or case.independent
        assert rate is not None
        times, blocks = _time_point(module, rate, case.launch, ground, case.point.whole)
        return {"point": times, "blocks": blocks}
    if case.dependent is not None:
        found["dependent"] = _time(module, case.dependent, 1, REPEATS, ground)
    if case.independent is not None:
        found["independent"] = {
            str(warps): _time(module, case.independent, warps, 3 if warps < 32 else 5, ground)
            for warps in WARPS
        }
    return found


def _clock(ground: _Ground) -> float:
    """The SM clock now, in MHz."""
    with driver.load(CLOCK, ground.ordinal) as module:
        launch = driver.Launcher(module.function("clock"), driver.Geometry((1, 1, 1), (1, 1, 1)), _SLOTS[:1])
        times = ground.stamps.take(32)
        launch([times])
        t0, t1, n0, n1 = _read(times, 1, 2, ground.ordinal)[0]
    return round(1000 * (t1 - t0) / max(n1 - n0, 1), 1)


def _say(**values: object) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def _batch(batch: Batch, folder: Path, done: Sequence[str], ground: _Ground) -> None:
    left = [case for case in batch.cases if case.spelling not in done]
    if not left:
        return
    sms = driver.device(ground.ordinal).multiprocessors
    needs = [_needed(case.launch, case.launch.grid or sms) for case in left if case.launch is not None]
    if needs and max(needs) <= _AT_ONCE:
        ground.field.take(max(needs))  # memory is new once a batch: its first use is slower
    with driver.load(image_of(batch, folder), ground.ordinal) as module:
        _say(event="batch", batch=batch.name, mhz=_clock(ground))
        for case in left:
            _say(event="begin", spelling=case.spelling)
            _say(event="end", spelling=case.spelling, **_measure(module, case, ground))


def main(arguments: Sequence[str]) -> int:
    """`python -m ptxtile.measure.device FOLDER DEVICE`; spellings to leave out come on standard input, one a line."""
    folder, ordinal = Path(arguments[0]), int(arguments[1])
    done = frozenset(sys.stdin.read().split("\n"))
    ground = _ground(ordinal)
    facts = driver.device(ordinal)
    _say(
        event="device",
        name=facts.name,
        target=facts.target,
        driver=driver.driver_version(),
        sms=facts.multiprocessors,
    )
    for batch in batches(folder):
        _batch(batch, folder, list(done), ground)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
