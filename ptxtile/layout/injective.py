"""Whether iters along one axis ever give the same value twice: decided exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ptxtile.layout.iters import Iter

__all__ = ["is_injective"]

_MASK_BITS = 1 << 24
"""Sums below this are marked in one int, a bit each; a set of sums holds what reaches further."""


def _peeled(digits: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The (extent, stride) pairs, ascending by stride, without those that cannot collide.

    The widest goes while it steps over all the others together; the narrowest while the steps of all the
    others are multiples of something that it never reaches.
    """
    while digits:
        *rest, (_, stride) = digits
        if stride > sum((extent - 1) * step for extent, step in rest):
            digits = rest
            continue
        (extent, stride), *rest = digits
        if (extent - 1) * stride >= math.gcd(*(step for _, step in rest)):
            break
        digits = rest
    return digits


def _distinct_masks(digits: Sequence[tuple[int, int]]) -> bool:
    sums = 1
    for extent, stride in digits:
        reached = sums
        for count in range(1, extent):
            moved = sums << count * stride
            if reached & moved:
                return False
            reached |= moved
        sums = reached
    return True


def _distinct_sets(digits: Sequence[tuple[int, int]]) -> bool:
    sums = {0}
    for extent, stride in digits:
        reached = {at + count * stride for at in sums for count in range(extent)}
        if len(reached) != len(sums) * extent:
            return False
        sums = reached
    return True


def is_injective(iters: Sequence[Iter]) -> bool:
    """Whether no two coordinates of `iters` (all on one axis) have the same value.

    The sign of a stride makes no difference: it only mirrors its digit. (3, 2) : (2, 3) is injective, a
    stride of 0 is not.
    """
    digits = sorted(((it.extent, abs(it.stride)) for it in iters if it.extent > 1), key=lambda pair: pair[1])
    if any(stride == 0 for _, stride in digits):
        return False
    digits = _peeled(digits)
    if not digits:
        return True
    common = math.gcd(*(stride for _, stride in digits))
    digits = [(extent, stride // common) for extent, stride in digits]
    reach = sum((extent - 1) * stride for extent, stride in digits)
    if math.prod(extent for extent, _ in digits) > reach + 1:
        return False
    return _distinct_masks(digits) if reach < _MASK_BITS else _distinct_sets(digits)
