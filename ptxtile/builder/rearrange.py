"""`Tensor.rearrange`: dimensions split, reordered and joined by a pattern such as "a (b c) -> b a c"."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ptxtile.builder import views
from ptxtile.errors import LayoutError

if TYPE_CHECKING:
    from ptxtile.builder.tensors import Tensor


def rearrange(tensor: Tensor, pattern: str, sizes: Mapping[str, int]) -> Tensor:
    """See Tensor.rearrange."""
    left, arrow, right = pattern.partition("->") if isinstance(pattern, str) else ("", "", "")
    if not arrow:
        raise LayoutError(f"a pattern is 'a (b c) -> b a c'; {pattern!r} has no ->")
    before, after = _groups(left, pattern), _groups(right, pattern)
    names = [name for group in before for name in group]
    wanted = [name for group in after for name in group]
    if sorted(names) != sorted(wanted) or len(set(names)) != len(names):
        raise LayoutError(f"both sides of {pattern!r} must name the same dimensions, each once")
    if len(before) != tensor.ndim:
        raise LayoutError(f"{pattern!r} describes {len(before)} dimensions and the tensor has {tensor.ndim}")
    if set(sizes) - set(names):
        raise LayoutError(f"{pattern!r} has no dimension {sorted(set(sizes) - set(names))[0]!r}")
    extents: dict[str, int] = {}
    for group, extent in zip(before, tensor.static_shape):
        _split(group, extent, sizes, extents, pattern)
    split = views.view(tensor, [extents[name] for name in names] or [1], None)
    moved = views.permute(split, [names.index(name) for name in wanted]) if names else split
    return views.view(moved, [math.prod(extents[name] for name in group) for group in after] or [1], None)


def _groups(text: str, pattern: str) -> list[list[str]]:
    groups: list[list[str]] = []
    inside = False
    for word in text.replace("(", " ( ").replace(")", " ) ").split():
        if word == "(" and not inside:
            groups.append([])
            inside = True
        elif word == ")" and inside:
            inside = False
        elif word.isidentifier():
            groups[-1].append(word) if inside else groups.append([word])
        elif word != "1" or inside:
            raise LayoutError(f"{pattern!r}: {word!r} is no name of a dimension")
        else:
            groups.append([])
    if inside:
        raise LayoutError(f"{pattern!r}: a parenthesis is not closed")
    return groups


def _split(
    group: list[str], extent: int, sizes: Mapping[str, int], extents: dict[str, int], pattern: str
) -> None:
    open_names = [name for name in group if name not in sizes]
    known = math.prod(sizes[name] for name in group if name in sizes)
    if known < 1 or len(open_names) > 1 or extent % known or (not open_names and known != extent):
        raise LayoutError(
            f"{pattern!r}: {extent} elements do not split into ({' '.join(group)}) with {dict(sizes)}"
        )
    for name in group:
        extents[name] = sizes[name] if name in sizes else extent // known
