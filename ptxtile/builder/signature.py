"""The signature of a kernel's Python function: its described parameters, and its static ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin

from ptxtile.builder import parameters
from ptxtile.builder.parameters import Plan, Pointer
from ptxtile.builder.tensor_map import TensorMap
from ptxtile.builder.tensors import Tensor
from ptxtile.errors import TraceError

__all__ = ["described"]


def described(
    function: Callable[..., object], namespace: Mapping[str, object]
) -> tuple[Plan, dict[str, object]]:
    """The plan of the positional parameters, and the static parameters with their defaults."""
    described: dict[str, object] = {}
    statics: dict[str, object] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY:
            statics[name] = parameter.default
        elif parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            if parameter.default is not parameter.empty:
                raise TraceError(
                    f"{function.__name__}: parameter {name!r} has a default, which only static (keyword-only) "
                    "parameters may have: arguments of a launch are all given"
                )
            described[name] = _annotation(function, name, parameter.annotation, namespace)
        else:
            raise TraceError(
                f"{function.__name__}: parameter {name!r} is {parameter.kind.description}; a kernel's parameters are "
                "named one by one, static ones after a *"
            )
    return parameters.plan(described), statics


def _annotation(function: Any, name: str, annotation: object, namespace: Mapping[str, object]) -> object:
    if annotation is inspect.Parameter.empty:
        raise TraceError(
            f"{function.__name__}: parameter {name!r} has no annotation; write {name}: pt.Tensor(shape, dtype), a "
            "dtype or pt.Pointer(dtype), or make it keyword-only if it is a static Python value"
        )
    if isinstance(annotation, str):
        closure = inspect.getclosurevars(function).nonlocals
        try:
            annotation = eval(annotation, function.__globals__, {**namespace, **closure})  # noqa: S307
        except Exception as error:
            raise TraceError(
                f"{function.__name__}: the annotation of {name!r}, {annotation!r}, fails: {error}"
            ) from error
    if get_origin(annotation) is Annotated:
        inner = [item for item in get_args(annotation)[1:] if isinstance(item, (Tensor, TensorMap, Pointer))]
        if len(inner) != 1:
            raise TraceError(
                f"{function.__name__}: Annotated parameter {name!r} needs one pt.Tensor(…) or pt.Pointer(…)"
            )
        return inner[0]
    return annotation
