"""A module on either machine: the GPU through the driver, or the emulator."""

from ptxtile.execute.arguments import ArrayFacts, array_facts
from ptxtile.execute.arrays import DeviceArray, asarray, empty, zeros
from ptxtile.execute.assembly import assemble, assemble_module, disassemble
from ptxtile.execute.dispatch import launch, run, target_here
from ptxtile.execute.entry import Entry, entry_of
from ptxtile.execute.geometry import geometry
from ptxtile.execute.logs import AssemblerWarning
from ptxtile.execute.machine import Machine, choose, default_device

__all__ = [
    "ArrayFacts",
    "AssemblerWarning",
    "DeviceArray",
    "Entry",
    "Machine",
    "array_facts",
    "asarray",
    "assemble",
    "assemble_module",
    "choose",
    "default_device",
    "disassemble",
    "empty",
    "entry_of",
    "geometry",
    "launch",
    "run",
    "target_here",
    "zeros",
]
