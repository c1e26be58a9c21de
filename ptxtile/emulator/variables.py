"""The first bytes of module variables (PTX ISA 5.4.4)."""

from __future__ import annotations

from collections.abc import Callable

from ptxtile.emulator.operands import literal_bits
from ptxtile.emulator.placement import size_of
from ptxtile.emulator.widths import bytes_of
from ptxtile.errors import EmulatorError
from ptxtile.ir.module import GenericSymbol, Initial, MaskedSymbol, Variable
from ptxtile.ir.operand import Float, Integer, Symbol

AddressOf = Callable[[str, bool], int]


def initial_bytes(variable: Variable, address_of: AddressOf) -> bytes:
    """The bytes of a variable with an initialiser; what the initialiser leaves out is zero.

    address_of   from a symbol's name, and whether its generic address is meant, to its address
    """
    raw = bytearray()
    _append(raw, variable, variable.initial, variable.shape, address_of)
    size = size_of(variable) or len(raw)
    if len(raw) > size:
        raise EmulatorError(
            f"the initialiser of {variable.name} has {len(raw)} bytes for {size}", kind="launch"
        )
    return bytes(raw).ljust(size, b"\0")


def _append(
    raw: bytearray, variable: Variable, value: Initial | None, shape: tuple[int, ...], address_of: AddressOf
) -> None:
    width = bytes_of(variable.type)
    if isinstance(value, tuple):
        inner = shape[1:]
        start = len(raw)
        for number, element in enumerate(value):
            if inner:
                row = width * variable.vector
                for extent in inner:
                    row *= extent
                raw.extend(bytes(max(0, start + number * row - len(raw))))
            _append(raw, variable, element, inner, address_of)
        return
    raw.extend(_scalar(variable, value, address_of).to_bytes(width, "little"))


def _scalar(variable: Variable, value: Initial | None, address_of: AddressOf) -> int:
    if isinstance(value, (Integer, Float)):
        return literal_bits(value, variable.type)
    mask = (1 << bytes_of(variable.type) * 8) - 1
    if isinstance(value, MaskedSymbol):
        shift = (value.mask & -value.mask).bit_length() - 1
        return (_address(value.symbol, address_of) & value.mask) >> shift & mask
    if isinstance(value, (Symbol, GenericSymbol)):
        return _address(value, address_of) & mask
    raise EmulatorError(f"the emulator cannot initialise {variable.name} with {value!r}", kind="unsupported")


def _address(value: Symbol | GenericSymbol, address_of: AddressOf) -> int:
    symbol = value.symbol if isinstance(value, GenericSymbol) else value
    return address_of(symbol.name, isinstance(value, GenericSymbol)) + symbol.offset
