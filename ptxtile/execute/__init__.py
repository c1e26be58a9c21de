"""A module on either machine: the GPU through the driver, or the emulator."""

from ptxtile.execute.arrays import DeviceArray, asarray, empty, zeros
from ptxtile.execute.assembly import assemble, disassemble
from ptxtile.execute.entry import Entry
from ptxtile.execute.geometry import geometry
from ptxtile.execute.logs import AssemblerWarning
from ptxtile.execute.machine import Machine, choose
from ptxtile.execute.dispatch import launch, run

__all__ = [
    "AssemblerWarning",
    "DeviceArray",
    "Entry",
    "Machine",
    "asarray",
    "assemble",
    "choose",
    "disassemble",
    "empty",
    "geometry",
    "launch",
    "run",
    "zeros",
]
