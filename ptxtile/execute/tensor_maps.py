"""Tensor maps of launches: encoded by the driver for the device address of their array, and kept."""

from __future__ import annotations

import threading
from collections import OrderedDict

from ptxtile import driver
from ptxtile.errors import OperandError
from ptxtile.ir.tensor_map import ELEMENTS, TiledMap

__all__ = ["encode"]

_KEPT = 1024
_encoded: OrderedDict[tuple[TiledMap, int, int], bytes] = OrderedDict()
_lock = threading.Lock()


def encode(what: object, map_: TiledMap, address: int, ordinal: int) -> bytes:
    """The GPU's 128 bytes of a map for a tensor at a device address; the last 1024 are kept.

    Raises:
        OperandError: the address is not aligned as the map needs.
        DriverError: the driver refused the map.
    """
    if address % map_.address_alignment:
        raise OperandError(
            f"{what}: the tensor starts at device address {address:#x}, and a tensor map needs a multiple of "
            f"{map_.address_alignment}"
        )
    key = (map_, address, ordinal)
    with _lock:
        found = _encoded.get(key)
        if found is not None:
            _encoded.move_to_end(key)
            return found
    fields = driver.TiledFields(
        ELEMENTS.index(map_.element),
        map_.extents,
        map_.strides,
        map_.box,
        map_.element_strides,
        map_.interleave,
        map_.swizzle,
        map_.l2_promotion,
        map_.nan,
        None if map_.im2col is None else (map_.im2col.lower, map_.im2col.upper),
        map_.atomicity,
    )
    made = driver.encode_tiled(fields, address, ordinal)
    with _lock:
        _encoded[key] = made
        if len(_encoded) > _KEPT:
            _encoded.popitem(last=False)
    return made
