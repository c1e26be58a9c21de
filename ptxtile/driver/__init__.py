"""The CUDA driver and NVIDIA's assembler: bytes and integers in, bytes and integers out.

Nothing here knows PTX beyond its header line. cuda-python is imported at the first call that needs a GPU; without
one, `available()` is False and every such call raises a DriverError that says why.
"""

from ptxtile.driver.assembler import Assembly, assemble, assemble_with_log, find_assembler
from ptxtile.driver.device import Device, activate, current_ordinal, device, device_count, synchronize
from ptxtile.driver.disassembler import disassemble, find_disassembler
from ptxtile.driver.launch import Dim3, Geometry, Launcher, ParameterBlock, Slot, Value
from ptxtile.driver.library import Session, available, driver_ptx, driver_version, in_order, session, use
from ptxtile.driver.memory import (
    DeviceBuffer,
    copy_from_device,
    copy_on_device,
    copy_to_device,
    fill,
    scratch,
)
from ptxtile.driver.module import Function, FunctionFacts, LoadedModule, load
from ptxtile.driver.status import highest_ptx, release_for_ptx
from ptxtile.driver.stream import (
    Event,
    Stream,
    StreamLike,
    is_capturing,
    order_after,
    stream_handle,
    synchronize_stream,
)
from ptxtile.driver.tensor_map import TiledFields, encode_tiled

__all__ = [
    "Assembly",
    "Device",
    "DeviceBuffer",
    "Dim3",
    "Event",
    "Function",
    "FunctionFacts",
    "Geometry",
    "Launcher",
    "LoadedModule",
    "ParameterBlock",
    "Session",
    "Slot",
    "Stream",
    "StreamLike",
    "TiledFields",
    "Value",
    "activate",
    "assemble",
    "assemble_with_log",
    "available",
    "copy_from_device",
    "copy_on_device",
    "copy_to_device",
    "current_ordinal",
    "device",
    "device_count",
    "disassemble",
    "driver_ptx",
    "driver_version",
    "encode_tiled",
    "fill",
    "find_assembler",
    "find_disassembler",
    "highest_ptx",
    "in_order",
    "is_capturing",
    "load",
    "order_after",
    "release_for_ptx",
    "scratch",
    "session",
    "stream_handle",
    "synchronize",
    "synchronize_stream",
    "use",
]
