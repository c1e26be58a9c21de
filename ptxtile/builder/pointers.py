"""Addresses as values: `pt.address(place)`, for instructions that take one in a register, such as tensormap.replace."""

from __future__ import annotations

from ptxtile.builder import addresses, convert
from ptxtile.builder.convert import Addressable
from ptxtile.builder.values import current, where
from ptxtile.dtypes import Scalar, uint32, uint64
from ptxtile.errors import OperandError
from ptxtile.ir.operand import Register

__all__ = ["address"]

_NARROW = ("shared", "local")


def address(place: object, space: str = "generic") -> Scalar:
    """The address of a tensor's first element, a pointer, a tensor map or an mbarrier.

    space  "generic" (uint64; `cvta` of what is not global), "global" (uint64), or "shared", "local" (uint32)

    Where the address is no register yet, one `mov` of its symbol or one `add` of its offset. OperandError for a thing
    without an address there.
    """
    trace = current("pt.address")
    if space not in ("generic", "global", *_NARROW):
        raise OperandError(
            f'pt.address: space is "generic", "global", "shared" or "local", not {space!r}' + where(trace)
        )
    if not isinstance(place, Addressable):
        raise OperandError(f"pt.address takes a thing in memory, not {convert.given(place)}" + where(trace))
    found = place.address(trace, "" if space == "generic" else f".{space}")
    if found.rest:
        raise OperandError("pt.address takes a tensor map itself, not a box of it" + where(trace))
    if space in _NARROW:
        narrow = isinstance(found.base, Register) and not found.offset
        return trace.value(uint32, found.base if narrow else addresses.in_register(trace, found))
    # A global or generic address is a register and a number: variables of global memory have no names here.
    return trace.value(uint64, addresses.in_wide_register(trace, found))
